/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 at any moment of `embla convert`: the output is the old file or the new one, whole.
 *
 *   kill_convert PROGRAM FOLDER KILLS MEGABYTES
 *
 * Two tables of so many megabytes are written to a new folder below FOLDER, and what each is
 * converted to is kept for comparison. Then the output, which holds one of the two, is
 * replaced by the other, again and again, and the program is killed at a moment drawn evenly
 * from the time that a whole run takes, until it was killed KILLS times. That time follows
 * the machine: a run that ended first makes it shorter, one that was killed late longer, so
 * that few end first and the last moments are met as well. After each the output is compared byte
 * for byte, and there is at most one temporary file: a run sweeps what a dead one left before it
 * makes its own. Prints how often the output was the old file, the new one, and neither: that is a
 * failure. On a file system in memory a run takes less than a second; what is tested is the order
 * of steps, not the disk.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH = 4096, DIM = 1024 };

static const char *program, *folder;

static void die(const char *what)
{
    fprintf(stderr, "kill_convert: %s: %s\n", what, strerror(errno));
    exit(2);
}

static const char *in_folder(const char *name, char out[PATH])
{
    if (snprintf(out, PATH, "%s/%s", folder, name) >= PATH) die("the path is too long");
    return out;
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* An f32 table in safetensors. Whatever the bits, they are numbers below 2. */
static void make_table(const char *path, uint64_t megabytes, uint64_t seed)
{
    uint64_t bytes = megabytes << 20;
    static uint32_t block[1 << 18];
    char header[264] = {0};
    FILE *file = fopen(path, "wb");
    if (!file) die(path);
    memset(header + 8, ' ', 256);
    header[1] = 1; /* 256 bytes */
    int n = snprintf(header + 8, 256,
                     "{\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[%" PRIu64 ",%d],"
                     "\"data_offsets\":[0,%" PRIu64 "]}}",
                     bytes / (4 * DIM), DIM, bytes);
    header[8 + n] = ' ';
    bool ok = fwrite(header, 1, sizeof header, file) == sizeof header;
    for (uint64_t i = 0; ok && i < megabytes; i++) {
        for (size_t k = 0; k < sizeof block / sizeof block[0]; k++)
            block[k] = (uint32_t)random_next(&seed) & 0xbfffffffu;
        ok = fwrite(block, 1, sizeof block, file) == sizeof block;
    }
    if (fclose(file) != 0 || !ok) die(path);
}

/* The two files have the same bytes. */
static bool same(const char *a, const char *b)
{
    const char *paths[2] = {a, b};
    struct stat found[2];
    void *bytes[2];
    for (int i = 0; i < 2; i++) {
        int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &found[i]) != 0) die(paths[i]);
        bytes[i] = found[i].st_size > 0
                       ? mmap(NULL, (size_t)found[i].st_size, PROT_READ, MAP_SHARED, fd, 0)
                       : NULL;
        (void)close(fd);
        if (bytes[i] == MAP_FAILED) die(paths[i]);
    }
    bool equal =
        found[0].st_size == found[1].st_size &&
        (found[0].st_size == 0 || memcmp(bytes[0], bytes[1], (size_t)found[0].st_size) == 0);
    for (int i = 0; i < 2; i++)
        if (bytes[i]) (void)munmap(bytes[i], (size_t)found[i].st_size);
    return equal;
}

static pid_t start(const char *from, const char *to)
{
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child > 0) return child;
    if (!freopen("/dev/null", "w", stdout)) _exit(126);
    execl(program, program, "convert", from, to, "--force", "--quiet", (char *)NULL);
    _exit(127);
}

static int finish(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) die("waitpid");
    return status;
}

static void convert(const char *from, const char *to)
{
    int status = finish(start(from, to));
    if (status == 0) return;
    fprintf(stderr, "kill_convert: %s convert %s %s: status %d\n", program, from, to, status);
    exit(2);
}

/* Temporary files there are. */
static int temporaries(void)
{
    int count = 0;
    DIR *dir = opendir(folder);
    if (!dir) die(folder);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        count += strstr(entry->d_name, ".tmp.") != NULL;
    (void)closedir(dir);
    return count;
}

static char own[PATH], in[2][PATH], kept[2][PATH], out[PATH];
static int holds; /* which of the two the output is */

/* All files; returns how long a run takes that writes over a file, as below. */
static double prepare(uint64_t megabytes)
{
    double longest = 0;
    (void)in_folder("out.npy", out);
    for (int i = 0; i < 2; i++) {
        (void)in_folder(i ? "b.safetensors" : "a.safetensors", in[i]);
        make_table(in[i], megabytes, (uint64_t)i + 1);
        convert(in[i], in_folder(i ? "b.npy" : "a.npy", kept[i]));
    }
    convert(in[0], out);
    for (int i = 0; i < 4; i++) {
        double begun = now();
        convert(in[(i + 1) % 2], out);
        if (now() - begun > longest) longest = now() - begun;
    }
    if (!same(out, kept[0]) || same(kept[0], kept[1])) die("the outputs are not what they must be");
    return longest;
}

typedef enum { OLD, NEW, CORRUPT } result;

/* One run, killed after so many seconds; *ended if it was done before. */
static result kill_after(double seconds, bool *ended)
{
    struct timespec pause = {.tv_sec = (time_t)seconds};
    pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
    pid_t child = start(in[!holds], out);
    (void)nanosleep(&pause, NULL);
    (void)kill(child, SIGKILL);
    int status = finish(child);
    *ended = WIFEXITED(status);
    if (*ended && WEXITSTATUS(status) != 0) die("the program failed by itself");
    if (same(out, kept[holds])) return OLD;
    if (same(out, kept[!holds])) {
        holds = !holds;
        return NEW;
    }
    convert(in[0], out); /* for the runs to come */
    holds = 0;
    return CORRUPT;
}

int main(int argc, char **argv)
{
    uint64_t random = 88172645463325252u;
    long counts[3] = {0, 0, 0}, left = 0, unswept = 0, whole = 0;
    if (argc != 5) {
        fputs("usage: kill_convert PROGRAM FOLDER KILLS MEGABYTES\n", stderr);
        return 2;
    }
    program = argv[1];
    if (snprintf(own, PATH, "%s/embla-crash-XXXXXX", argv[2]) >= PATH || !mkdtemp(own))
        die(argv[2]);
    folder = own;
    long kills = atol(argv[3]), runs = 0;
    double takes = prepare((uint64_t)atol(argv[4]));
    for (; runs - whole < kills; runs++) {
        bool ended = false;
        double drawn = (double)(random_next(&random) >> 11) * 0x1p-53;
        counts[kill_after(takes * drawn, &ended)]++;
        int found = temporaries();
        whole += ended;
        takes *= ended ? 0.95 : drawn > 0.9 ? 1.05 : 1;
        left += found;
        unswept += found > 1;
    }
    convert(in[!holds], out);
    int last = temporaries();
    printf("%ld runs of about %.2f s, %ld killed at any moment, %ld ended before: output old %ld, "
           "new %ld, corrupt %ld; %ld temporary files left by them, %d after the next run\n",
           runs, takes, runs - whole, whole, counts[OLD], counts[NEW], counts[CORRUPT], left, last);
    for (int i = 0; i < 2; i++) (void)(unlink(in[i]) | unlink(kept[i]));
    (void)(unlink(out) | rmdir(folder));
    return counts[CORRUPT] == 0 && last == 0 && unswept == 0 ? 0 : 1;
}
