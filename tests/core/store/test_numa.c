/* SPDX-License-Identifier: Apache-2.0 */
/* Memory on a node of a machine with several (store/numa.c). Most machines that run tests have one
 * node, so the calls of the system are this program's own where a test wants them to be: a machine
 * with nodes 0 and 2, one that refuses, and one that puts pages elsewhere.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "base/mem.h"
#include "files/io.h"
#include "store/store.h"
#include "store_tables.h"

static struct {
    bool on;
    int refuse_nodes, refuse_bind, refuse_page; /* an error number; 0 means that it succeeds */
    unsigned long bound;                        /* the first word of the nodes of mbind .. */
    unsigned long bytes;                        /* .. and how much memory */
    int puts;                                   /* the node of every page; -1 means the bound one */
    size_t wrong_at;                            /* this page is on node 1 */
    const char *memory;
} machine;

static long answer(int error)
{
    errno = error;
    return error == 0 ? 0 : -1;
}

static long pretend(long number, const unsigned long *a)
{
    if (number == SYS_mbind) {
        const unsigned long *nodes = (const unsigned long *)a[3];
        machine.memory = (const char *)a[0];
        machine.bytes = a[1];
        machine.bound = a[2] == MPOL_BIND ? nodes[0] : 0;
        return answer(machine.refuse_bind);
    }
    if (a[4] == MPOL_F_MEMS_ALLOWED) {
        unsigned long *nodes = (unsigned long *)a[1];
        nodes[0] = 5; /* 0 and 2 */
        return answer(machine.refuse_nodes);
    }
    bool wrong = machine.wrong_at > 0 && a[3] == (uintptr_t)machine.memory + machine.wrong_at;
    int *node = (int *)a[0];
    *node = wrong ? 1 : machine.puts >= 0 ? machine.puts : __builtin_ctzl(machine.bound);
    return answer(machine.refuse_page);
}

/* Instead of the C library's. Like that one it reads six values, however many the caller passed. */
__attribute__((no_sanitize_address)) long syscall(long number, ...)
{
    static long (*next)(long, ...);
    unsigned long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, unsigned long);
    va_end(list);
    if (machine.on && (number == SYS_mbind || number == SYS_get_mempolicy))
        return pretend(number, a);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static embla_status open_on(const table *t, int node, void *buffer, embla_store **out)
{
    const embla_store_engine_options engine = {.bind = true, .node = node};
    const embla_store_options options = {.placement = EMBLA_PLACEMENT_RAM,
                                         .buffer = buffer,
                                         .buffer_bytes = (size_t)t->rows * t->row_bytes,
                                         .engine = &engine};
    return embla_store_open_extents(&t->format, t->extents, t->count, &options, out);
}

static void refused(const table *t, int node, embla_status status, const char *said)
{
    size_t live = embla_mem_live();
    embla_store *store = NULL;
    assert_status(open_on(t, node, NULL, &store), status);
    assert_error_has(said);
    assert_null(store);
    assert_int_equal(embla_mem_live(), live);
}

static void check_rows(const table *t, const embla_store *store)
{
    assert_memory_equal(store->data, t->truth, (size_t)t->rows * t->row_bytes);
}

static void rows_are_bound_to_the_node_that_is_asked_for(void **state)
{
    table t;
    embla_store *store = NULL;
    (void)state;
    make(&t, 2, 3000);
    machine.on = true;
    machine.puts = -1;
    for (int node = 0; node < 3; node += 2) {
        machine.bound = 0;
        assert_ok(open_on(&t, node, NULL, &store));
        assert_int_equal(machine.bound, 1UL << node);
        assert_ptr_equal(machine.memory, store->data);
        assert_true(machine.bytes >= 3000 * t.row_bytes);
        check_rows(&t, store);
        embla_store_free(store);
    }
    machine.on = false;
    finish(&t);
}

static void a_node_that_is_not_there_is_refused(void **state)
{
    table t;
    (void)state;
    make(&t, 0, 500);
    machine.on = true;
    refused(&t, 1, EMBLA_ERR_UNSUPPORTED,
            "there is no NUMA node 1 that this process may use; the "
            "highest is 2");
    refused(&t, -1, EMBLA_ERR_UNSUPPORTED, "there is no NUMA node -1");
    refused(&t, 5000, EMBLA_ERR_UNSUPPORTED, "there is no NUMA node 5000");
    machine.on = false;
    finish(&t);
}

/* A container without the right to bind memory. */
static void a_system_that_does_not_bind_is_refused(void **state)
{
    table t;
    (void)state;
    make(&t, 0, 500);
    machine.on = true;
    machine.refuse_nodes = ENOSYS;
    refused(&t, 0, EMBLA_ERR_UNSUPPORTED, "cannot be bound to NUMA node 0");
    machine.refuse_nodes = 0;
    machine.refuse_bind = EPERM;
    refused(&t, 0, EMBLA_ERR_UNSUPPORTED, "80000 bytes cannot be bound to NUMA node 0 (error 1");
    machine.refuse_bind = 0;
    machine.refuse_page = EPERM;
    refused(&t, 0, EMBLA_ERR_UNSUPPORTED, "node 0 is wanted");
    machine.refuse_page = 0;
    machine.on = false;
    finish(&t);
}

static void a_page_on_another_node_is_found(void **state)
{
    table t;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char said[80];
    (void)state;
    make(&t, 4, 500);
    machine.on = true;
    machine.puts = 0;
    refused(&t, 2, EMBLA_ERR_UNSUPPORTED, "byte 0 of the rows is on NUMA node 0, not on node 2");
    machine.puts = -1;
    machine.wrong_at = 3 * page;
    (void)snprintf(said, sizeof said, "byte %zu of the rows is on NUMA node 1, not on node 2",
                   machine.wrong_at);
    refused(&t, 2, EMBLA_ERR_UNSUPPORTED, said);
    machine.wrong_at = 0;
    machine.on = false;
    finish(&t);
}

static void a_buffer_must_begin_on_a_page(void **state)
{
    table t;
    embla_store *store = NULL;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    (void)state;
    make(&t, 4, 500);
    char *buffer = aligned_alloc(page, (500 * t.row_bytes + 2 * page) / page * page);
    assert_non_null(buffer);
    machine.on = true;
    machine.puts = -1;
    assert_status(open_on(&t, 0, buffer + 64, &store), EMBLA_ERR_ARGUMENT);
    assert_error_has("must be aligned to a page");
    assert_ok(open_on(&t, 0, buffer, &store));
    check_rows(&t, store);
    embla_store_free(store);
    machine.on = false;
    free(buffer);
    finish(&t);
}

static void a_node_with_too_little_memory_is_refused(void **state)
{
    struct stat found;
    (void)state;
    if (stat("/sys/devices/system/node/node0/meminfo", &found) != 0)
        skip_because("the system does not list its nodes");
    machine.on = true;
    assert_status(embla_numa_room((size_t)1 << 60, 0), EMBLA_ERR_MEMORY);
    assert_error_has("1152921504606846976 bytes of rows do not fit on NUMA node 0");
    assert_ok(embla_numa_room(1, 0));
    machine.on = false;
}

/* The real system: the memory is on the node, or the reason is said. */
static void this_machine_binds_or_says_why_not(void **state)
{
    table t;
    embla_store *store = NULL;
    (void)state;
    make(&t, 2, 3000);
    embla_status status = open_on(&t, 0, NULL, &store);
    if (status == EMBLA_OK)
        check_rows(&t, store);
    else
        assert_status(status, EMBLA_ERR_UNSUPPORTED);
    embla_store_free(store);
    refused(&t, 1000, EMBLA_ERR_UNSUPPORTED, "NUMA node 1000");
    finish(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_bound_to_the_node_that_is_asked_for),
        cmocka_unit_test(a_node_that_is_not_there_is_refused),
        cmocka_unit_test(a_system_that_does_not_bind_is_refused),
        cmocka_unit_test(a_page_on_another_node_is_found),
        cmocka_unit_test(a_buffer_must_begin_on_a_page),
        cmocka_unit_test(a_node_with_too_little_memory_is_refused),
        cmocka_unit_test(this_machine_binds_or_says_why_not),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
