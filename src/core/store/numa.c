/* SPDX-License-Identifier: Apache-2.0 */
/* Binds memory to a node of a machine with several (NUMA). Memory that cannot be bound is refused:
 * rows on another node would be looked up more slowly, and nobody would notice.
 */
#include "base/mem.h"
#include "store/store.h"
#include "system/system_memory.h"

/* The node must be one whose memory this process may use. */
static embla_status check_node(int node)
{
    bool allowed = false;
    int highest = -1;
    char why[128];
    embla_outcome done = embla_system_node(node, &allowed, &highest);
    embla_system_describe(done.number, why, sizeof why);
    if (!embla_worked(done))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "memory cannot be bound to NUMA node %d: the system does not tell which "
                          "nodes there are (error %d: %s)",
                          node, done.number, why);
    if (allowed) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "there is no NUMA node %d that this process may use; the highest is %d", node,
                      highest);
}

embla_status embla_numa_bind(void *memory, size_t bytes, int node)
{
    size_t page = embla_mem_page();
    char why[128];
    EMBLA_TRY(check_node(node));
    if ((uintptr_t)memory % page != 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a buffer that is bound to NUMA node %d must be aligned to a page of %zu "
                          "bytes",
                          node, page);
    embla_outcome done = embla_system_bind(memory, (bytes + page - 1) / page * page, node);
    if (embla_worked(done)) return EMBLA_OK;
    embla_system_describe(done.number, why, sizeof why);
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "%zu bytes cannot be bound to NUMA node %d (error %d: %s)", bytes, node,
                      done.number, why);
}

/* If too little were left, the system would end the process while the rows are read. */
embla_status embla_numa_room(size_t bytes, int node)
{
    EMBLA_TRY(check_node(node));
    uint64_t left = embla_system_node_room(node);
    if (left == 0 || bytes <= left) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_MEMORY,
                      "%zu bytes of rows do not fit on NUMA node %d, which has %" PRIu64
                      " bytes left",
                      bytes, node, left);
}

embla_status embla_numa_check(const void *memory, size_t bytes, int node)
{
    enum { STEP = 2 << 20, FEW = 16 << 20 }; /* every page of few, else one page of each 2 MiB */
    size_t step = bytes > FEW ? STEP : embla_mem_page();
    for (size_t at = 0; at < bytes; at += step) {
        int found = -1;
        char why[128];
        embla_outcome done = embla_system_node_of((const char *)memory + at, &found);
        embla_system_describe(done.number, why, sizeof why);
        if (!embla_worked(done))
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "the system does not tell on which node the rows are, node %d is "
                              "wanted (error %d: %s)",
                              node, done.number, why);
        if (found != node)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "byte %zu of the rows is on NUMA node %d, not on node %d", at, found,
                              node);
    }
    return EMBLA_OK;
}
