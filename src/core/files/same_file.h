/* SPDX-License-Identifier: Apache-2.0 */
/* Which file a path leads to. Files are compared by device and inode, because a path can be written
 * in many ways. Shared with the program (docs/decisions/018).
 */
#ifndef EMBLA_FILES_SAME_FILE_H
#define EMBLA_FILES_SAME_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

typedef struct {
    uint64_t device, inode;
} embla_file_id;

static inline embla_file_id embla_file_id_of(const struct stat *file)
{
    return (embla_file_id){(uint64_t)file->st_dev, (uint64_t)file->st_ino};
}

static inline bool embla_same_file(embla_file_id a, embla_file_id b)
{
    return a.device == b.device && a.inode == b.inode;
}

#endif
