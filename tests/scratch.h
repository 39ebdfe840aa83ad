/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of its own for each test that needs real files: made below TMPDIR, emptied and
 * removed at the end. Files are made, read and compared here by plain system calls, so that
 * nothing a test relies on passes through the code it tests.
 */
#ifndef EMBLA_TESTS_SCRATCH_H
#define EMBLA_TESTS_SCRATCH_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

enum { SCRATCH_PATH = 4096 };

typedef struct {
    char folder[256];
    char path[SCRATCH_PATH]; /* of the last scratch_path */
} scratch;

static inline void scratch_new(scratch *s)
{
    const char *below = getenv("TMPDIR");
    int n = snprintf(s->folder, sizeof s->folder, "%s/embla-test-XXXXXX",
                     below && *below ? below : "/tmp");
    assert_true(n > 0 && (size_t)n < sizeof s->folder);
    assert_non_null(mkdtemp(s->folder));
}

/* The path of name in the folder; lives until the next call with the same s. */
static inline const char *scratch_path(scratch *s, const char *name)
{
    int n = snprintf(s->path, sizeof s->path, "%s/%s", s->folder, name);
    assert_true(n > 0 && (size_t)n < sizeof s->path);
    return s->path;
}

/* Calls each with every name in the folder but "." and "..". */
static inline size_t scratch_each(const scratch *s, void (*each)(const scratch *s, const char *),
                                  const char *part)
{
    size_t found = 0;
    DIR *dir = opendir(s->folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (part && !strstr(entry->d_name, part)) continue;
        found++;
        if (each) each(s, entry->d_name);
    }
    assert_int_equal(closedir(dir), 0);
    return found;
}

/* How many names in the folder hold this text; NULL: how many there are. */
static inline size_t scratch_count(const scratch *s, const char *part)
{
    return scratch_each(s, NULL, part);
}

static inline void scratch_remove(const scratch *s, const char *name)
{
    char path[SCRATCH_PATH];
    (void)snprintf(path, sizeof path, "%s/%s", s->folder, name);
    if (unlink(path) != 0) (void)rmdir(path);
}

static inline void scratch_free(scratch *s)
{
    (void)scratch_each(s, scratch_remove, NULL);
    assert_int_equal(rmdir(s->folder), 0);
}

/* A file of these bytes. */
static inline void scratch_write(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    if (count > 0) assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

/* All bytes of a file, with a 0 after them; free() them. NULL and a count of 0 if there is none. */
static inline unsigned char *scratch_read(const char *path, size_t *count)
{
    struct stat found;
    FILE *file = fopen(path, "rb");
    *count = 0;
    if (!file) return NULL;
    assert_int_equal(fstat(fileno(file), &found), 0);
    *count = (size_t)found.st_size;
    unsigned char *bytes = malloc(*count + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *count, file), *count);
    bytes[*count] = 0;
    assert_int_equal(fclose(file), 0);
    return bytes;
}

/* Whether the file has exactly these bytes. */
static inline bool scratch_holds(const char *path, const void *bytes, size_t count)
{
    size_t have = 0;
    unsigned char *found = scratch_read(path, &have);
    bool same = found && have == count && memcmp(found, bytes, count) == 0;
    free(found);
    return same;
}

/* glove-50k of EMBLA_DATA, unpacked in a new folder: its path. Skips the test, and leaves no
 * folder, where that is not to be had. */
static inline const char *scratch_glove(scratch *s)
{
    const char *data = getenv("EMBLA_DATA");
    char command[3 * SCRATCH_PATH];
    if (!data) {
        print_message("EMBLA_DATA is not set: skipped\n");
        skip();
    }
    scratch_new(s);
    (void)snprintf(command, sizeof command, "xz -dc '%s'/glove-50k/*.xz > '%s'", data,
                   scratch_path(s, "glove.txt"));
    if (system(command) != 0) {
        scratch_free(s);
        print_message("glove-50k cannot be unpacked: skipped\n");
        skip();
    }
    return s->path;
}

#endif
