/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the room that are for systems like Unix share with the file of each of them. */
#ifndef EMBLA_SYSTEM_POSIX_H
#define EMBLA_SYSTEM_POSIX_H

#include "system/system.h"

#include <sys/stat.h>

/* The outcome of a call that has set errno. */
embla_outcome embla_posix_failed(void);
/* The outcome of a call that returns 0, or -1 with errno set. */
embla_outcome embla_posix_ended(int result);
int embla_posix_folder(embla_folder folder);
/* EMBLA_SYSTEM_OTHER if the system reports a size below 0. */
embla_outcome embla_posix_facts(const struct stat *found, embla_file_facts *out);

/* In posix_process.c, or in the file of a system that needs another: openat. */
int embla_posix_open(int folder, const char *name, int flags, mode_t mode);

/* In the file of each system. */

/* The flag that opens a folder only for its files. */
int embla_posix_search_flag(void);
struct timespec embla_posix_changed(const struct stat *found);

#endif
