/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of qemu that counts the instructions that a program executes, and prints their number on
 * stderr when it ends. Debian has no header for plugins, so what is needed of qemu-plugin.h
 * (version 1) is declared here.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

struct qemu_plugin_tb;
typedef void block_fn(uint64_t id, struct qemu_plugin_tb *block);
typedef void end_fn(uint64_t id, void *data);
enum { ADD_U64 };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, block_fn *translated);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int operation,
                                              void *counter, uint64_t by);
void qemu_plugin_register_atexit_cb(uint64_t id, end_fn *end, void *data);
int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

extern int qemu_plugin_version;
int qemu_plugin_version = 1;

static uint64_t executed;

static void translated(uint64_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, &executed,
                                             qemu_plugin_tb_n_insns(block));
}

static void end(uint64_t id, void *data)
{
    (void)id, (void)data;
    (void)fprintf(stderr, "executed %" PRIu64 "\n", executed);
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, end, NULL);
    return 0;
}
