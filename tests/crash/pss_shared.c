/* SPDX-License-Identifier: Apache-2.0 */
/* One copy for many processes, weighed: together they may use little more than the table itself.
 *
 *   pss_shared SOURCE_FOLDER SHARED_FOLDER MEGABYTES PROCESSES [MOST]
 *
 * Writes a table of so many megabytes, opens it in so many processes as a shared store, has each
 * of them touch every row and compare it with the file, and then adds up what the system says each
 * process's share of memory is (Pss of /proc/self/smaps_rollup: a page that four have mapped is a
 * quarter of a page to each). Fails above MOST times the table, 1.05 if nothing is said.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "embla_store.h"

enum { PATH = 4096, ROW = 160, MANY = 64 };

static char source[PATH];
static const char *shared_folder;
static int64_t rows;
static int processes;

/* Between processes. */
static struct {
    atomic_int opened, weighed, built;
    int64_t pss[MANY], huge[MANY]; /* bytes */
} * told;

static void die(const char *what)
{
    fprintf(stderr, "pss_shared: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void make_source(uint64_t megabytes)
{
    static uint64_t block[1 << 17];
    uint64_t x = 88172645463325252u;
    FILE *file = fopen(source, "wb");
    bool ok = file != NULL;
    for (uint64_t i = 0; ok && i < megabytes; i++) {
        for (size_t k = 0; k < sizeof block / sizeof block[0]; k++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            block[k] = x;
        }
        ok = fwrite(block, 1, sizeof block, file) == sizeof block;
    }
    if (!file || fclose(file) != 0 || !ok) die(source);
    rows = (int64_t)(megabytes << 20) / ROW;
}

static int64_t own_pss(void)
{
    char line[256];
    int64_t kilobytes = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %" SCNd64, &kilobytes) == 1) break;
    if (file) (void)fclose(file);
    return kilobytes << 10;
}

static void wait_until(atomic_int *number)
{
    struct timespec pause = {.tv_nsec = 1000000};
    atomic_fetch_add(number, 1);
    while (atomic_load(number) < processes) (void)nanosleep(&pause, NULL);
}

/* In a child; 0: all rows are right. */
static int weigh(int number)
{
    embla_store *store = NULL;
    embla_store_info info;
    embla_verify_report verified;
    embla_row_format format = {.dim = ROW, .dtype = EMBLA_F8_E4M3, .scale = 1};
    embla_extent extent = {.file = source, .rows = rows};
    embla_store_options options = {
        .placement = EMBLA_PLACEMENT_SHARED, .shared_folder = shared_folder, .threads = 1};
    if (embla_store_open_extents(&format, &extent, 1, &options, &store) != EMBLA_OK ||
        embla_store_verify(store, 0, 0, &verified) != EMBLA_OK || /* touches every row */
        embla_store_describe(store, &info) != EMBLA_OK) {
        fprintf(stderr, "pss_shared: %s\n", embla_error());
        return 2;
    }
    atomic_fetch_add(&told->built, info.built);
    told->huge[number] = info.huge_bytes;
    wait_until(&told->opened);
    told->pss[number] = own_pss();
    wait_until(&told->weighed);
    if (number == 0 && embla_store_unshare(store) != EMBLA_OK) return 2;
    embla_store_free(store);
    return verified.different == 0 && verified.rows == rows ? 0 : 1;
}

int main(int argc, char **argv)
{
    bool right = true;
    int64_t sum = 0;
    if (argc < 5) {
        fputs("usage: pss_shared SOURCE_FOLDER SHARED_FOLDER MEGABYTES PROCESSES [MOST]\n", stderr);
        return 2;
    }
    shared_folder = argv[2];
    processes = atoi(argv[4]);
    double most = argc > 5 ? atof(argv[5]) : 1.05;
    if (processes < 1 || processes > MANY) die("processes");
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED) die("memory");
    if (snprintf(source, PATH, "%.4000s/embla-pss-XXXXXX", argv[1]) >= PATH) die(argv[1]);
    int fd = mkstemp(source);
    if (fd < 0 || close(fd) != 0) die(source);
    make_source((uint64_t)atol(argv[3]));
    pid_t children[MANY];
    for (int i = 0; i < processes; i++) {
        children[i] = fork();
        if (children[i] < 0) die("fork");
        if (children[i] == 0) _exit(weigh(i));
    }
    for (int i = 0; i < processes; i++) {
        int status = -1;
        if (waitpid(children[i], &status, 0) != children[i]) die("waitpid");
        right = right && status == 0;
        sum += told->pss[i];
    }
    (void)unlink(source);
    double ratio = (double)sum / (double)(rows * ROW);
    printf("%d processes, a table of %" PRId64 " bytes: together %" PRId64
           " bytes (Pss), %.4f of it; %d built it; %" PRId64 " bytes on huge pages\n",
           processes, rows * ROW, sum, ratio, atomic_load(&told->built), told->huge[0]);
    if (!right) fputs("pss_shared: a process failed, or rows were different\n", stderr);
    return right && ratio <= most && atomic_load(&told->built) == 1 ? 0 : 1;
}
