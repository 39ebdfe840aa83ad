/* SPDX-License-Identifier: Apache-2.0 */
/* Binds memory to a node of a machine with several (NUMA), with the system's calls and without a
 * library. Memory that cannot be bound is refused: rows on another node would be looked up more
 * slowly, and nobody would notice.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files/io.h"
#include "store/store.h"

enum { NODES = 1024, WORD = 8 * sizeof(unsigned long) }; /* no Linux has more nodes */

typedef struct {
    unsigned long words[NODES / WORD];
} node_set;

static bool contains(const node_set *set, int node)
{
    return node >= 0 && node < NODES && (set->words[node / WORD] >> node % WORD & 1) != 0;
}

/* The node must be one whose memory this process may use. */
static embla_status check_node(int node)
{
    node_set allowed = {{0}};
    int highest = -1;
    if (syscall(SYS_get_mempolicy, NULL, allowed.words, (unsigned long)NODES, NULL,
                (unsigned long)MPOL_F_MEMS_ALLOWED) != 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "memory cannot be bound to NUMA node %d: the system does not tell which "
                          "nodes there are (error %d: %s)",
                          node, errno, strerror(errno));
    for (int i = 0; i < NODES; i++)
        if (contains(&allowed, i)) highest = i;
    if (contains(&allowed, node)) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "there is no NUMA node %d that this process may use; the highest is %d", node,
                      highest);
}

embla_status embla_numa_bind(void *memory, size_t bytes, int node)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    node_set only = {{0}};
    EMBLA_TRY(check_node(node));
    if ((uintptr_t)memory % page != 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a buffer that is bound to NUMA node %d must be aligned to a page of %zu "
                          "bytes",
                          node, page);
    only.words[node / WORD] = 1UL << node % WORD;
    /* pages of the caller's buffer that already exist are moved */
    if (syscall(SYS_mbind, memory, (unsigned long)((bytes + page - 1) / page * page),
                (unsigned long)MPOL_BIND, only.words, (unsigned long)NODES + 1,
                (unsigned long)(MPOL_MF_STRICT | MPOL_MF_MOVE)) != 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%zu bytes cannot be bound to NUMA node %d (error %d: %s)", bytes, node,
                          errno, strerror(errno));
    return EMBLA_OK;
}

/* The number of kilobytes after a word such as "MemFree:"; 0 if it is missing. */
static uint64_t kilobytes_of(const char *text, const char *word)
{
    unsigned long long number = 0;
    const char *at = strstr(text, word);
    return at && sscanf(at + strlen(word), "%llu", &number) == 1 ? number : 0;
}

/* Memory that is free, or that the page cache would give back. If too little were left, the system
 * would end the process while the rows are read. */
embla_status embla_numa_room(size_t bytes, int node)
{
    char path[64], text[4096];
    embla_handle file = -1;
    size_t got = 0;
    EMBLA_TRY(check_node(node));
    (void)snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", node);
    embla_status status = embla_io_open(EMBLA_HERE, path, EMBLA_OPEN_READ, 0, &file);
    if (status == EMBLA_ERR_NOT_FOUND) return EMBLA_OK; /* a system that does not tell */
    EMBLA_TRY(status);
    status = embla_io_pread(file, path, 0, sizeof text - 1, text, &got);
    embla_io_drop(file);
    EMBLA_TRY(status);
    text[got] = '\0';
    uint64_t cache = kilobytes_of(text, "FilePages:"), shared = kilobytes_of(text, "Shmem:");
    uint64_t left = kilobytes_of(text, "MemFree:") + (cache > shared ? cache - shared : 0);
    if (left == 0 || bytes / 1024 <= left) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_MEMORY,
                      "%zu bytes of rows do not fit on NUMA node %d, which has %" PRIu64
                      " bytes left",
                      bytes, node, left * 1024);
}

embla_status embla_numa_check(const void *memory, size_t bytes, int node)
{
    enum { STEP = 2 << 20, FEW = 16 << 20 }; /* every page of few, else one page of each 2 MiB */
    size_t step = bytes > FEW ? STEP : (size_t)sysconf(_SC_PAGESIZE);
    for (size_t at = 0; at < bytes; at += step) {
        int found = -1;
        if (syscall(SYS_get_mempolicy, &found, NULL, 0UL, (const char *)memory + at,
                    (unsigned long)(MPOL_F_NODE | MPOL_F_ADDR)) != 0)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "the system does not tell on which node the rows are, node %d is "
                              "wanted (error %d: %s)",
                              node, errno, strerror(errno));
        if (found != node)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "byte %zu of the rows is on NUMA node %d, not on node %d", at, found,
                              node);
    }
    return EMBLA_OK;
}
