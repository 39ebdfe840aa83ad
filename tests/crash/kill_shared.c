/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 at any moment of building a shared copy, while others wait for it: what has the copy's
 * name is complete, nobody waits for the dead, and what they left is swept.
 *
 *   kill_shared FOLDER KILLS MEGABYTES
 *
 * In each round three processes open the same rows at once. One of them builds: at a moment drawn
 * evenly from the time that a whole build takes it is killed, or one that waits, or all three. Who
 * is left must end by itself, with the right rows. Whatever then has the copy's name is compared
 * byte for byte with what was published by a run that nobody killed, by this program's own reads;
 * what the dead left besides is left to the next round. Prints what became of them. FOLDER should
 * be on a file system in memory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "embla_store.h"

enum { PATH = 4096, ROW = 160, OPENERS = 3 };

static char folder[PATH], source[PATH], copy[PATH], lock[PATH];
static int64_t rows;
static void *expected; /* the whole file of a copy that nobody disturbed */
static size_t expected_bytes;

static void die(const char *what)
{
    fprintf(stderr, "kill_shared: %s: %s\n", what, strerror(errno));
    exit(2);
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

static void pause_for(double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds};
    pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
    (void)nanosleep(&pause, NULL);
}

static void in_folder(const char *name, char out[PATH])
{
    if (snprintf(out, PATH, "%.4000s/%s", folder, name) >= PATH) die("the path is too long");
}

static void make_source(uint64_t megabytes)
{
    static uint64_t block[1 << 17];
    uint64_t seed = 88172645463325252u;
    FILE *file = fopen(source, "wb");
    if (!file) die(source);
    bool ok = true;
    for (uint64_t i = 0; ok && i < megabytes; i++) {
        for (size_t k = 0; k < sizeof block / sizeof block[0]; k++) block[k] = random_next(&seed);
        ok = fwrite(block, 1, sizeof block, file) == sizeof block;
    }
    if (fclose(file) != 0 || !ok) die(source);
    rows = (int64_t)(megabytes << 20) / ROW;
}

/* ---- one that opens ---- */

/* In a child. 0: all rows are right. */
static int open_and_compare(bool found_only)
{
    embla_store *store = NULL;
    embla_verify_report verified;
    embla_row_format format = {.dim = ROW, .dtype = EMBLA_F8_E4M3, .scale = 1};
    embla_extent extent = {.file = source, .rows = rows};
    embla_store_options options = {.placement = EMBLA_PLACEMENT_SHARED,
                                   .shared_folder = folder,
                                   .shared_name = "copy",
                                   .found_only = found_only,
                                   .threads = 1};
    if (embla_store_open_extents(&format, &extent, 1, &options, &store) != EMBLA_OK ||
        embla_store_warm(store, NULL) != EMBLA_OK ||
        embla_store_verify(store, 1000, 1, &verified) != EMBLA_OK) {
        fprintf(stderr, "kill_shared: %s\n", embla_error());
        return 2;
    }
    embla_store_free(store);
    return verified.different == 0 ? 0 : 1;
}

static pid_t start(bool found_only)
{
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) _exit(open_and_compare(found_only));
    return child;
}

/* Its status; -1: it has not ended by itself for a minute. */
static int finish(pid_t child)
{
    int status = 0;
    for (double end = now() + 60; now() < end; pause_for(0.001)) {
        pid_t found = waitpid(child, &status, WNOHANG);
        if (found == child) return status;
        if (found < 0 && errno != EINTR) die("waitpid");
    }
    (void)kill(child, SIGKILL);
    (void)waitpid(child, &status, 0);
    return -1;
}

/* ---- what there is afterwards ---- */

static bool exists(const char *path)
{
    struct stat found;
    return lstat(path, &found) == 0;
}

/* The whole file at path; NULL: there is none. */
static void *map_of(const char *path, size_t *bytes)
{
    struct stat found;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    if (fstat(fd, &found) != 0) die(path);
    *bytes = (size_t)found.st_size;
    void *memory = mmap(NULL, *bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) die(path);
    (void)close(fd);
    return memory;
}

static bool complete(void)
{
    size_t bytes = 0;
    void *memory = map_of(copy, &bytes);
    bool same = memory && bytes == expected_bytes && memcmp(memory, expected, bytes) == 0;
    if (memory) (void)munmap(memory, bytes);
    return same;
}

/* Files besides the source and the copy. */
static int leftovers(void)
{
    int count = 0;
    DIR *dir = opendir(folder);
    if (!dir) die(folder);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    (void)closedir(dir);
    return count - exists(source) - exists(copy);
}

/* Who has the lock, as the system says; 0: nobody. */
static pid_t builder_now(void)
{
    struct stat found;
    char line[256];
    pid_t builder = 0;
    FILE *locks = stat(lock, &found) == 0 ? fopen("/proc/locks", "re") : NULL;
    while (locks && fgets(line, sizeof line, locks)) {
        long pid;
        unsigned long inode;
        if (sscanf(line, "%*d: FLOCK %*s %*s %ld %*x:%*x:%lu", &pid, &inode) == 2 &&
            inode == (unsigned long)found.st_ino)
            builder = (pid_t)pid;
    }
    if (locks) (void)fclose(locks);
    return builder;
}

/* ---- rounds ---- */

typedef struct {
    long kills, builders, waiters, ended; /* ended before they were killed */
    long complete, absent, corrupt;
    long hung, wrong;             /* of those that were left */
    long left, most, found, lost; /* leftovers after a round; copies that were opened afterwards */
} counts;

static void kill_one(pid_t child, bool builder, counts *c)
{
    if (kill(child, SIGKILL) != 0) die("kill");
    int status = finish(child);
    if (WIFEXITED(status)) {
        c->ended++;
        return;
    }
    c->kills++;
    if (builder)
        c->builders++;
    else
        c->waiters++;
}

static void one_round(double seconds, uint64_t *random, counts *c)
{
    pid_t openers[OPENERS];
    bool alive[OPENERS];
    for (int i = 0; i < OPENERS; i++) openers[i] = start(false);
    pause_for(seconds);
    pid_t builder = builder_now();
    uint64_t choice = random_next(random) % 8;
    int victim = (int)(random_next(random) % OPENERS);
    for (int i = 0; i < OPENERS && choice > 1; i++)
        if (openers[i] == builder) victim = i;
    for (int i = 0; i < OPENERS; i++) {
        alive[i] = choice != 0 && i != victim; /* 0: all */
        if (!alive[i]) kill_one(openers[i], openers[i] == builder, c);
    }
    bool there = exists(copy), whole = there && complete();
    c->complete += whole;
    c->absent += !there;
    c->corrupt += there && !whole;
    for (int i = 0; i < OPENERS; i++) {
        int status = alive[i] ? finish(openers[i]) : 0;
        c->hung += status == -1;
        c->wrong += status != -1 && status != 0;
    }
    if (exists(copy)) {
        int status = finish(start(true));
        c->found += status == 0;
        c->lost += status != 0;
        if (!complete()) c->corrupt++;
    }
    int left = leftovers();
    c->left += left;
    if (left > c->most) c->most = left;
    (void)unlink(copy);
}

/* What a copy is, byte for byte, and how long it takes. */
static double prepare(uint64_t megabytes)
{
    double longest = 0;
    in_folder("rows", source);
    in_folder("copy", copy);
    char lock_name[64];
    (void)snprintf(lock_name, sizeof lock_name, "copy.%u.lock", (unsigned)geteuid());
    in_folder(lock_name, lock);
    make_source(megabytes);
    for (int i = 0; i < 3; i++) {
        double begun = now();
        (void)unlink(copy);
        if (finish(start(false)) != 0) die("a run that nobody killed failed");
        if (now() - begun > longest) longest = now() - begun;
    }
    if (!(expected = map_of(copy, &expected_bytes)) || leftovers() != 0) die("no copy");
    (void)unlink(copy); /* the map keeps it */
    return longest;
}

int main(int argc, char **argv)
{
    uint64_t random = 0x9E3779B97F4A7C15u;
    counts c = {0};
    long rounds = 0;
    if (argc != 4) {
        fputs("usage: kill_shared FOLDER KILLS MEGABYTES\n", stderr);
        return 2;
    }
    if (snprintf(folder, PATH, "%.4000s/embla-crash-XXXXXX", argv[1]) >= PATH || !mkdtemp(folder))
        die(argv[1]);
    double takes = prepare((uint64_t)atol(argv[3]));
    for (; c.builders < atol(argv[2]); rounds++) {
        long ended = c.ended;
        double drawn = (double)(random_next(&random) >> 11) * 0x1p-53;
        one_round(takes * drawn, &random, &c);
        takes *= c.ended > ended ? 0.95 : drawn > 0.9 ? 1.05 : 1;
    }
    int last_status = finish(start(false)), last = leftovers();
    bool right = complete();
    printf("%ld rounds of about %.2f s: %ld killed, %ld of them builders, %ld others; %ld ended "
           "before. Then the copy was complete %ld times, not there %ld, corrupt %ld; opened by "
           "the next %ld times, refused %ld. Of those left %ld hung, %ld were wrong. At most %ld "
           "leftovers, %d after the last\n",
           rounds, takes, c.kills, c.builders, c.waiters, c.ended, c.complete, c.absent, c.corrupt,
           c.found, c.lost, c.hung, c.wrong, c.most, last);
    (void)(unlink(copy) | unlink(source) | unlink(lock) | rmdir(folder));
    return c.corrupt == 0 && c.hung == 0 && c.wrong == 0 && c.lost == 0 && c.most <= 2 &&
                   last_status == 0 && last == 0 && right
               ? 0
               : 1;
}
