/* SPDX-License-Identifier: Apache-2.0 */
/* Linux: the nodes of a machine (NUMA), with the system's calls and without a library. */
#include "system/system_memory.h"

#include "system/posix.h"

#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NODES = 1024, WORD = 8 * sizeof(unsigned long) }; /* no Linux has more nodes */

typedef struct {
    unsigned long words[NODES / WORD];
} node_set;

static bool contains(const node_set *set, int node)
{
    return node >= 0 && node < NODES && (set->words[node / WORD] >> node % WORD & 1) != 0;
}

embla_outcome embla_system_node(int node, bool *allowed, int *highest)
{
    node_set set = {{0}};
    *highest = -1;
    if (syscall(SYS_get_mempolicy, NULL, set.words, (unsigned long)NODES, NULL,
                (unsigned long)MPOL_F_MEMS_ALLOWED) != 0)
        return embla_posix_failed();
    for (int i = 0; i < NODES; i++)
        if (contains(&set, i)) *highest = i;
    *allowed = contains(&set, node);
    return embla_posix_ended(0);
}

embla_outcome embla_system_bind(void *memory, size_t bytes, int node)
{
    node_set only = {{0}};
    only.words[node / WORD] = 1UL << node % WORD;
    /* pages of the caller's buffer that already exist are moved */
    return embla_posix_ended(
        (int)syscall(SYS_mbind, memory, (unsigned long)bytes, (unsigned long)MPOL_BIND, only.words,
                     (unsigned long)NODES + 1, (unsigned long)(MPOL_MF_STRICT | MPOL_MF_MOVE)));
}

embla_outcome embla_system_node_of(const void *address, int *node)
{
    return embla_posix_ended((int)syscall(SYS_get_mempolicy, node, NULL, 0UL, address,
                                          (unsigned long)(MPOL_F_NODE | MPOL_F_ADDR)));
}

/* A line such as "Node 0 MemFree:  123 kB". */
static void find_kilobytes(const char *line, const char *word, uint64_t *out)
{
    unsigned long long number;
    const char *at = strstr(line, word);
    if (at && sscanf(at + strlen(word), "%llu", &number) == 1) *out = number;
}

uint64_t embla_system_node_room(int node)
{
    char line[256];
    uint64_t left = 0, cache = 0, shared = 0;
    (void)snprintf(line, sizeof line, "/sys/devices/system/node/node%d/meminfo", node);
    FILE *file = fopen(line, "re");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        find_kilobytes(line, "MemFree:", &left);
        find_kilobytes(line, "FilePages:", &cache);
        find_kilobytes(line, "Shmem:", &shared);
    }
    (void)fclose(file);
    return (left + (cache > shared ? cache - shared : 0)) * 1024;
}
