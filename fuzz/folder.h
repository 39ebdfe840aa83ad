/* SPDX-License-Identifier: Apache-2.0 */
/* A folder in memory for the files of one input, if the system has such a place. It is removed when
 * the program ends. */
#ifndef EMBLA_FUZZ_FOLDER_H
#define EMBLA_FUZZ_FOLDER_H

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "input.h"

enum { FOLDER_PATH = 512 };

static char folder[64];

/* The path of a file in the folder. Returns out. */
static inline const char *folder_path(const char *name, char out[FOLDER_PATH])
{
    (void)snprintf(out, FOLDER_PATH, "%s/%.300s", folder, name);
    return out;
}

/* Removes all files of a folder, and those of its subfolders, which have none themselves. */
static inline void folder_clear(const char *path, bool inner)
{
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char name[FOLDER_PATH];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        (void)snprintf(name, sizeof name, "%.200s/%.300s", path, entry->d_name);
        if (unlink(name) == 0 || inner) continue;
        folder_clear(name, true);
        (void)rmdir(name);
    }
    if (dir) (void)closedir(dir);
}

static inline void folder_remove(void)
{
    folder_clear(folder, false);
    (void)rmdir(folder);
}

/* Makes the folder, once for all inputs. */
static inline void folder_make(const char *target)
{
    if (folder[0]) return;
    (void)snprintf(folder, sizeof folder, "%s/embla-fuzz-%.16s-%d",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", target, (int)getpid());
    if ((mkdir(folder, 0700) != 0 && errno != EEXIST) || atexit(folder_remove) != 0) exit(1);
}

static inline void folder_write(const char *name, const void *bytes, size_t size)
{
    char path[FOLDER_PATH];
    FILE *file = fopen(folder_path(name, path), "wb");
    if (!file || (size > 0 && fwrite(bytes, size, 1, file) != 1) || fclose(file) != 0) exit(1);
}

#endif
