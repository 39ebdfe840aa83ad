/* SPDX-License-Identifier: Apache-2.0 */
/* replay FOLDER..: feeds every file of the folders to a fuzz target, without libFuzzer, so that
 * every compiler and sanitizer runs the corpora as an ordinary test. A broken promise calls
 * abort(); a folder without files is an error. */
#include <dirent.h>
#include <errno.h>

#include "input.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

/* The number of files fed, or -1 after an error message on stderr. */
static int replay_file(const char *path)
{
    static uint8_t bytes[1 << 20];
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        return -1;
    }
    size_t size = fread(bytes, 1, sizeof bytes, file);
    bool whole = feof(file) && !ferror(file);
    fclose(file);
    if (!whole) {
        fprintf(stderr, "replay: %s: cannot be read, or is above 1 MiB\n", path);
        return -1;
    }
    uint8_t *exact =
        (uint8_t *)block(size); /* exactly this size: a sanitizer detects reads beyond it */
    if (size > 0) memcpy(exact, bytes, size);
    fprintf(stderr, "%s\n", path);
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 1;
}

static int replay_folder(const char *folder)
{
    int fed = 0;
    DIR *dir = opendir(folder);
    if (!dir) {
        fprintf(stderr, "replay: %s: %s\n", folder, strerror(errno));
        return -1;
    }
    for (struct dirent *entry; fed >= 0 && (entry = readdir(dir));) {
        char path[4096];
        if (entry->d_name[0] == '.') continue;
        int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        int more = length > 0 && (size_t)length < sizeof path ? replay_file(path) : -1;
        fed = more < 0 ? -1 : fed + more;
    }
    closedir(dir);
    if (fed == 0) fprintf(stderr, "replay: %s: no files\n", folder);
    return fed > 0 ? fed : -1;
}

int main(int argc, char **argv)
{
    int all = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: replay FOLDER..\n");
        return 2;
    }
    if (LLVMFuzzerInitialize) (void)LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        int fed = replay_folder(argv[i]);
        if (fed < 0) return 1;
        all += fed;
    }
    printf("%d inputs replayed\n", all);
    return 0;
}
