/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 at any moment of `embla train`: what goes on from the newest checkpoint ends with the
 * same bytes.
 *
 *   kill_train PROGRAM FOLDER KILLS
 *
 * In a new folder below FOLDER: a text of names, made here; a training of STEPS steps with a
 * checkpoint every 20, which nobody disturbs, and what it ends with is kept. Then the same training
 * again and again in another folder, each killed at moments drawn evenly from the time that the
 * whole takes (which follows the machine), taken up by --resume until it is done, until KILLS were
 * killed. At the end of each the model, its config and its tokens must be the same byte for byte,
 * and the losses too, but for the last column, the seconds. A training that was killed before its
 * first checkpoint is begun anew. Prints how often, how many ended well, and how many temporary
 * files were left: a run sweeps what a dead one left. On a file system in memory; what is tested is
 * the order of steps, not the disk.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef STEPS
#define STEPS "3000"
#endif

enum { PATH = 4096, NAMES = 2000 };

static const char *program;
static char own[PATH / 4], text[PATH / 2], calm[PATH / 2], killed[PATH / 2], errors[PATH / 2];

static void die(const char *what)
{
    fprintf(stderr, "kill_train: %s: %s\n", what, strerror(errno));
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

/* ---- files ---- */

static void make_text(void)
{
    static const char *const syllables[] = {"an", "ma", "le", "ri", "o",  "ka", "el", "sa",
                                            "ni", "to", "ja", "be", "lu", "ne", "di", "ra"};
    uint64_t random = 7;
    FILE *file = fopen(text, "w");
    if (!file) die(text);
    for (int i = 0; i < NAMES; i++) {
        for (uint64_t n = 2 + random_next(&random) % 3; n > 0; n--)
            (void)fputs(syllables[random_next(&random) % 16], file);
        (void)fputc('\n', file);
    }
    if (fclose(file) != 0) die(text);
}

/* Removes a folder with all that is in it; none is fine. */
static void remove_tree(const char *path)
{
    char inner[PATH];
    DIR *dir = opendir(path);
    if (!dir) {
        (void)unlink(path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (snprintf(inner, PATH, "%s/%s", path, entry->d_name) >= PATH) die("a long path");
        remove_tree(inner);
    }
    (void)closedir(dir);
    (void)rmdir(path);
}

/* Names in a folder, and in the folders in it, that hold this text. */
static int count_names(const char *path, const char *part)
{
    char inner[PATH];
    int count = 0;
    DIR *dir = opendir(path);
    if (!dir) return 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        count += strstr(entry->d_name, part) != NULL;
        if (snprintf(inner, PATH, "%s/%s", path, entry->d_name) < PATH)
            count += count_names(inner, part);
    }
    (void)closedir(dir);
    return count;
}

static bool has_checkpoint(void)
{
    char path[PATH];
    bool found = false;
    (void)snprintf(path, PATH, "%s/checkpoints", killed);
    DIR *dir = opendir(path);
    if (!dir) return false;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        found = found || strncmp(entry->d_name, "step-", 5) == 0;
    (void)closedir(dir);
    return found;
}

static char *read_all(const char *folder, const char *name, size_t *bytes)
{
    char path[PATH];
    struct stat found;
    (void)snprintf(path, PATH, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &found) != 0) die(path);
    *bytes = (size_t)found.st_size;
    char *all = calloc(*bytes + 1, 1);
    if (!all || fread(all, 1, *bytes, file) != *bytes) die(path);
    (void)fclose(file);
    return all;
}

/* Of each line all but what follows the last comma. Returns how many bytes are left. */
static size_t without_seconds(char *csv, size_t bytes)
{
    size_t used = 0, comma = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (csv[i] == '\n') used = comma;
        if (csv[i] == ',') comma = used;
        csv[used++] = csv[i];
    }
    return used;
}

static bool same(const char *name, bool csv)
{
    size_t bytes[2];
    char *all[2] = {read_all(calm, name, &bytes[0]), read_all(killed, name, &bytes[1])};
    for (int i = 0; i < 2 && csv; i++) bytes[i] = without_seconds(all[i], bytes[i]);
    bool equal = bytes[0] > 0 && bytes[0] == bytes[1] && memcmp(all[0], all[1], bytes[0]) == 0;
    if (!equal) fprintf(stderr, "kill_train: %s differs\n", name);
    free(all[0]);
    free(all[1]);
    return equal;
}

/* ---- runs ---- */

static pid_t start(const char *folder, bool resume)
{
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child > 0) return child;
    if (!freopen("/dev/null", "w", stdout) || !freopen(errors, "w", stderr)) _exit(126);
    if (resume)
        execl(program, program, "train", "--resume", folder, "--quiet", (char *)NULL);
    else
        execl(program, program, "train", text, "--preset", "microgpt", "--steps", STEPS,
              "--save-every", "20", "-o", folder, "--quiet", (char *)NULL);
    _exit(127);
}

static int finish(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) die("waitpid");
    return status;
}

/* A run that failed by itself is the end of the test. */
static void check_ended(int status, bool resume)
{
    size_t bytes = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    char *said = read_all(own, "errors.txt", &bytes);
    fprintf(stderr, "kill_train: %s train%s: status %d: %s\n", program, resume ? " --resume" : "",
            status, said);
    free(said);
    exit(1);
}

static struct {
    long runs, kills, anew, trainings, different, left;
} counts;

static uint64_t random_state = 88172645463325252u;
static double takes; /* seconds, of a whole run; follows the machine */

/* One training from its beginning to its end; killed while there are kills left. */
static void train_once(long most)
{
    bool resume = false;
    remove_tree(killed);
    for (;;) {
        double drawn = takes * (double)(random_next(&random_state) >> 11) * 0x1p-53;
        struct timespec pause = {.tv_sec = (time_t)drawn};
        pause.tv_nsec = (long)((drawn - (double)pause.tv_sec) * 1e9);
        pid_t child = start(killed, resume);
        counts.runs++;
        if (counts.kills < most) {
            (void)nanosleep(&pause, NULL);
            (void)kill(child, SIGKILL);
        }
        int status = finish(child);
        bool ended = !WIFSIGNALED(status);
        if (!resume && counts.kills < most) takes *= ended ? 0.9 : drawn > 0.9 * takes ? 1.05 : 1;
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
            check_ended(status, resume);
            break;
        }
        counts.kills++;
        resume = has_checkpoint();
        if (!resume) {
            counts.anew++;
            remove_tree(killed);
        }
    }
    counts.trainings++;
    counts.left += count_names(killed, ".tmp.");
    bool equal = same("model.safetensors", false);
    equal = same("config.json", false) && equal;
    equal = same("tokenizer.json", false) && equal;
    equal = same("loss.csv", true) && equal;
    counts.different += !equal;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: kill_train PROGRAM FOLDER KILLS\n", stderr);
        return 2;
    }
    program = argv[1];
    if (snprintf(own, sizeof own, "%s/embla-crash-XXXXXX", argv[2]) >= (int)sizeof own ||
        !mkdtemp(own))
        die(argv[2]);
    (void)snprintf(text, sizeof text, "%s/names.txt", own);
    (void)snprintf(calm, sizeof calm, "%s/calm", own);
    (void)snprintf(killed, sizeof killed, "%s/killed", own);
    (void)snprintf(errors, sizeof errors, "%s/errors.txt", own);
    make_text();
    double begun = now();
    check_ended(finish(start(calm, false)), false);
    takes = now() - begun;
    long most = atol(argv[3]);
    while (counts.kills < most) train_once(most);
    printf("%ld kills in %ld runs of %ld trainings of " STEPS
           " steps, each about %.2f s: %ld ended "
           "with other bytes, %ld were begun anew for want of a checkpoint, %ld temporary files "
           "left\n",
           counts.kills, counts.runs, counts.trainings, takes, counts.different, counts.anew,
           counts.left);
    remove_tree(own);
    return counts.different == 0 && counts.left == 0 ? 0 : 1;
}
