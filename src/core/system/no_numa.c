/* SPDX-License-Identifier: Apache-2.0 */
/* Systems that do not say which memory is near which CPU, and take no advice about huge pages. */
#include "system/system_memory.h"

void embla_system_huge_pages(void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
}

embla_outcome embla_system_node(int node, bool *allowed, int *highest)
{
    (void)node;
    *allowed = false;
    *highest = -1;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

embla_outcome embla_system_bind(void *memory, size_t bytes, int node)
{
    (void)memory, (void)bytes, (void)node;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

embla_outcome embla_system_node_of(const void *address, int *node)
{
    (void)address;
    *node = -1;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

uint64_t embla_system_node_room(int node)
{
    (void)node;
    return 0;
}
