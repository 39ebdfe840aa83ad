/* SPDX-License-Identifier: Apache-2.0 */
/* The library maps files, so a compressed one must be unpacked first. The program that made it does
 * that: it is installed where such files are used, and runs in its own process, so that a damaged
 * file cannot harm this one.
 */
#include "core/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/complain.h"
#include "core/out.h"
#include "core/progress.h"

static const struct {
    const char *program, *ending;
    unsigned char magic[6];
    size_t bytes;
} packers[] = {{"gzip", ".gz", {0x1f, 0x8b, 8}, 3},
               {"xz", ".xz", {0xfd, '7', 'z', 'X', 'Z', 0}, 6},
               {"zstd", ".zst", {0x28, 0xb5, 0x2f, 0xfd}, 4},
               {"bzip2", ".bz2", {'B', 'Z', 'h'}, 3}};
enum { PACKERS = sizeof packers / sizeof packers[0], BZIP2 = PACKERS - 1, HEAD = 10 };

/* Whether bytes are those of bzip2 after its first three: the block size, 1 to 9, and a block or
 * the end. A text may begin with BZh. */
static bool is_bzip2(const unsigned char *first, size_t count)
{
    return count >= HEAD && first[3] >= '1' && first[3] <= '9' &&
           (memcmp(first + 4, "1AY&SY", 6) == 0 ||
            memcmp(first + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0);
}

/* The number of the program that makes files with these first bytes; PACKERS means none. */
static size_t find_packer(const unsigned char *first, size_t count)
{
    size_t n = 0;
    while (n < PACKERS &&
           (count < packers[n].bytes || memcmp(first, packers[n].magic, packers[n].bytes) != 0))
        n++;
    return n == BZIP2 && !is_bzip2(first, count) ? PACKERS : n;
}

const char *cli_packed_with(const unsigned char *first, size_t count)
{
    size_t n = find_packer(first, count);
    return n < PACKERS ? packers[n].program : NULL;
}

/* The number of the program that packed path; PACKERS means none. */
static size_t packer_of(const char *path)
{
    unsigned char first[HEAD] = {0};
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return PACKERS;
    FILE *file = fopen(path, "rb");
    size_t count = file ? fread(first, 1, sizeof first, file) : 0;
    if (file) (void)fclose(file);
    return find_packer(first, count);
}

/* The name of path without its folder and without the ending. */
static char *plain_name(const char *path, const char *ending)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name), end = strlen(ending);
    if (length > end && strcmp(name + length - end, ending) == 0) length -= end;
    return strndup(name, length);
}

/* Creates the folder and the file, and returns the file; -1 after a message. */
static int create(const char *path, const char *ending, cli_unpacked *out)
{
    const char *root = getenv("TMPDIR");
    char *name = plain_name(path, ending), *folder = NULL;
    int file = -1;
    if (!name || asprintf(&folder, "%s/embla-XXXXXX", root && *root ? root : "/tmp") < 0) {
        free(name);
        (void)cli_failed("no memory for the name of a temporary file");
        return -1;
    }
    if (!mkdtemp(folder)) {
        (void)cli_failed("cannot create a folder for the decompressed file, '%s': %s", folder,
                         strerror(errno));
        free(folder);
    } else {
        out->folder = folder;
        if (asprintf(&out->path, "%s/%s", folder, name) < 0) out->path = NULL;
        if (out->path) file = open(out->path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        if (file < 0) (void)cli_failed("cannot create a file in '%s': %s", folder, strerror(errno));
    }
    free(name);
    return file;
}

const char *cli_beside_name(size_t n)
{
    static const char *const names[] = {"config.json",
                                        "tokenizer.json",
                                        "vocab.json",
                                        "vocab.txt",
                                        "tokenizer.bin",
                                        "tokenizer.model",
                                        "spiece.model",
                                        "modules.json",
                                        "../tokenizer.json",
                                        "merges.txt",
                                        "config_sentence_transformers.json"};
    return n < sizeof names / sizeof names[0] ? names[n] : NULL;
}

/* Links to a file beside path, if there is one. Without the link the model would lose its settings
 * or words, so a failure is reported. */
static int link_beside(const char *path, const char *name, cli_unpacked *out)
{
    const char *slash = strrchr(path, '/');
    char *from = NULL, *target = NULL, *link = NULL;
    if (asprintf(&from, "%.*s/%s", slash ? (int)(slash - path) : 1, slash ? path : ".", name) < 0)
        return cli_failed("no memory for the name of a file");
    target = realpath(from, NULL);
    free(from);
    if (!target) return CLI_DONE;
    const char *last = strrchr(name, '/'); /* of ../tokenizer.json, unless it has its own */
    if (asprintf(&link, "%s/%s", out->folder, last ? last + 1 : name) < 0) link = NULL;
    if (link && last && access(link, F_OK) == 0) {
        free(link);
        free(target);
        return CLI_DONE;
    }
    int code = link && symlink(target, link) == 0
                   ? CLI_DONE
                   : cli_failed("cannot create a link in '%s': %s", out->folder, strerror(errno));
    if (code == CLI_DONE)
        out->links[out->link_count++] = link;
    else
        free(link);
    free(target);
    return code;
}

/* Links to everything that may belong to a model: known names, and NAME.vocab.txt. */
static int link_all(const char *path, cli_unpacked *out)
{
    const char *slash = strrchr(out->path, '/'), *name = slash ? slash + 1 : out->path;
    const char *dot = strrchr(name, '.');
    char *words = NULL;
    int code = CLI_DONE;
    for (size_t n = 0; cli_beside_name(n) && code == CLI_DONE; n++)
        if (strcmp(cli_beside_name(n), name) != 0)
            code = link_beside(path, cli_beside_name(n), out);
    if (code != CLI_DONE || !dot) return code;
    if (asprintf(&words, "%.*s.vocab.txt", (int)(dot - name), name) < 0)
        return cli_failed("no memory for the name of a file");
    code = link_beside(path, words, out);
    free(words);
    return code;
}

/* Waits for the program, and shows how much it has written. Kills it after Ctrl-C. Returns its
 * status. */
static int wait_for(pid_t child, int file, const char *path, cli_progress *progress)
{
    struct stat about = {0};
    int status = 0;
    char text[256], size[CLI_CELL];
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (cli_progress_caught()) (void)kill(child, SIGTERM);
        if (progress->shown && fstat(file, &about) == 0) {
            (void)snprintf(text, sizeof text, "decompressing %.50s  %s", path,
                           cli_size((int64_t)about.st_size, size));
            cli_progress_draw(progress, text);
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    }
    cli_progress_wipe(progress);
    return status;
}

static int run_program(const char *program, const char *path, int file, cli_progress *progress)
{
    const char *const words[] = {program, "-dc", "--", path, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) return cli_failed("%s: %s", program, strerror(error));
    error = posix_spawn_file_actions_adddup2(&actions, file, STDOUT_FILENO);
    if (error == 0)
        error =
            posix_spawnp(&child, program, &actions, NULL, (char *const *)(uintptr_t)words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        return cli_failed("%s is compressed, and %s, which decompresses it, cannot be started: %s",
                          path, program, strerror(error));
    int status = wait_for(child, file, path, progress);
    if (status == 0) return CLI_DONE;
    if (cli_progress_caught()) return CLI_FAILED;
    return cli_failed("%s was not decompressed: %s ended with %s %d", path, program,
                      WIFEXITED(status) ? "exit code" : "signal",
                      WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

int cli_unpack(const char *path, bool quiet, cli_unpacked *out)
{
    cli_progress progress = {0};
    *out = (cli_unpacked){0};
    size_t n = packer_of(path);
    if (n == PACKERS) return CLI_DONE;
    cli_progress_begin(&progress, quiet);
    int file = create(path, packers[n].ending, out);
    int code = file < 0 ? CLI_FAILED : run_program(packers[n].program, path, file, &progress);
    if (code == CLI_DONE) code = link_all(path, out);
    if (file >= 0 && close(file) != 0 && code == CLI_DONE)
        code = cli_failed("%s: %s", out->path, strerror(errno));
    if (code != CLI_DONE) cli_unpack_free(out);
    cli_progress_end(&progress, "interrupted");
    return code;
}

/* Writes all bytes, or says why not. */
static int write_all(int file, const char *bytes, size_t count, const char *path)
{
    while (count > 0) {
        ssize_t n = write(file, bytes, count);
        if (n < 0 && errno == EINTR && !cli_progress_caught()) continue;
        if (n < 0) return cli_failed("%s: %s", path, strerror(errno));
        bytes += n;
        count -= (size_t)n;
    }
    return CLI_DONE;
}

static int copy_stdin(int file, const char *path, cli_progress *progress)
{
    static char piece[1 << 16];
    char text[128], size[CLI_CELL];
    int64_t copied = 0;
    for (double last = 0;;) {
        ssize_t n = read(STDIN_FILENO, piece, sizeof piece);
        if (cli_progress_caught()) return CLI_FAILED;
        if (n == 0) return CLI_DONE;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return cli_failed("standard input: %s", strerror(errno));
        int code = write_all(file, piece, (size_t)n, path);
        if (code != CLI_DONE) return code;
        copied += n;
        if (!progress->shown || cli_progress_now() - last < 0.1) continue;
        (void)snprintf(text, sizeof text, "reading standard input  %s", cli_size(copied, size));
        cli_progress_draw(progress, text);
        last = cli_progress_now();
    }
}

int cli_unpack_stdin(bool quiet, cli_unpacked *out)
{
    cli_progress progress = {0};
    *out = (cli_unpacked){0};
    cli_progress_begin(&progress, quiet);
    int file = create("standard-input", "", out);
    int code = file < 0 ? CLI_FAILED : copy_stdin(file, out->path, &progress);
    if (file >= 0 && close(file) != 0 && code == CLI_DONE)
        code = cli_failed("%s: %s", out->path, strerror(errno));
    if (code != CLI_DONE) cli_unpack_free(out);
    cli_progress_end(&progress, "interrupted");
    return code;
}

void cli_unpack_free(cli_unpacked *unpacked)
{
    for (size_t i = 0; i < unpacked->link_count; i++) {
        (void)unlink(unpacked->links[i]);
        free(unpacked->links[i]);
    }
    if (unpacked->path) (void)unlink(unpacked->path);
    if (unpacked->folder) (void)rmdir(unpacked->folder);
    free(unpacked->path);
    free(unpacked->folder);
    *unpacked = (cli_unpacked){0};
}
