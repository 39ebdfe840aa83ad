/* SPDX-License-Identifier: Apache-2.0 */
/* The library maps files, so a compressed one must be unpacked first. The program that made it does
 * that: it is installed where such files are used, and runs in its own process, so that a damaged
 * file cannot harm this one.
 */
#include "core/unpack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/complain.h"
#include "core/out.h"
#include "core/progress.h"
#include "host/host.h"
#include "host/paths.h"

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
    if (!cli_is_file(path)) return PACKERS;
    FILE *file = cli_file_open(path, "rb");
    size_t count = file ? fread(first, 1, sizeof first, file) : 0;
    if (file) (void)fclose(file);
    return find_packer(first, count);
}

/* The name of path without its folder and without the ending. */
static char *plain_name(const char *path, const char *ending)
{
    const char *slash = embla_system_slash(path), *name = slash ? slash + 1 : path;
    size_t length = strlen(name), end = strlen(ending);
    if (length > end && strcmp(name + length - end, ending) == 0) length -= end;
    return cli_copy_text(name, length);
}

/* "FOLDER/NAME". NULL if there is no memory. */
static char *join(const char *folder, const char *name, int length)
{
    const size_t size = strlen(folder) + (size_t)length + 2;
    char *path = malloc(size);
    if (path) (void)snprintf(path, size, "%s/%.*s", folder, length, name);
    return path;
}

/* Creates the folder and the file. False after a message. */
static bool create(const char *path, const char *ending, cli_unpacked *out, embla_handle *file)
{
    char folder[CLI_PATH_MOST];
    if (!cli_new_temporary("embla", folder)) {
        (void)cli_failed("cannot create a folder for the decompressed file, '%s': %s", folder,
                         cli_why());
        return false;
    }
    char *name = plain_name(path, ending);
    if (name) {
        out->folder = cli_copy_text(folder, strlen(folder));
        out->path = out->folder ? join(folder, name, (int)strlen(name)) : NULL;
    }
    free(name);
    if (!out->path) {
        if (!out->folder) (void)cli_remove_folder(folder);
        (void)cli_failed("no memory for the name of a temporary file");
        return false;
    }
    if (cli_because(embla_system_open(EMBLA_HERE, out->path, EMBLA_OPEN_WRITE | EMBLA_OPEN_NEW,
                                      0600, file)))
        return true;
    (void)cli_failed("cannot create a file in '%s': %s", folder, cli_why());
    return false;
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
    const char *slash = embla_system_slash(path),
               *last = embla_system_slash(name); /* of ../tokenizer.json */
    const char *plain = last ? last + 1 : name;
    char *folder = slash ? cli_copy_text(path, (size_t)(slash - path)) : cli_copy_text(".", 1);
    char *from = folder ? join(folder, name, (int)strlen(name)) : NULL;
    char *target = from ? cli_path_real(from) : NULL;
    char *link = target ? join(out->folder, plain, (int)strlen(plain)) : NULL;
    int code = CLI_DONE;
    if (!from || (target && !link)) {
        code = cli_failed("no memory for the name of a file");
    } else if (target && !(last && cli_is_there(link))) { /* unless it has its own */
        if (cli_because(cli_link_file(target, link)))
            out->links[out->link_count++] = link;
        else
            code = cli_failed("cannot create a link in '%s': %s", out->folder, cli_why());
        if (code == CLI_DONE) link = NULL;
    }
    free(folder);
    free(from);
    free(target);
    free(link);
    return code;
}

/* Links to everything that may belong to a model: known names, and NAME.vocab.txt. */
static int link_all(const char *path, cli_unpacked *out)
{
    const char *slash = embla_system_slash(out->path), *name = slash ? slash + 1 : out->path;
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

/* Waits for the program, and shows how much it has written. Ends it after Ctrl-C. how gets how it
 * ended. */
static void wait_for(cli_child child, embla_handle file, const char *path, cli_progress *progress,
                     char how[CLI_CELL])
{
    embla_file_facts about;
    char text[256], size[CLI_CELL];
    while (!cli_child_ended(child, how, CLI_CELL)) {
        if (cli_progress_caught()) cli_child_stop(child);
        if (progress->shown && embla_worked(embla_system_facts(file, &about))) {
            (void)snprintf(text, sizeof text, "decompressing %.50s  %s", path,
                           cli_size((int64_t)about.size, size));
            cli_progress_draw(progress, text);
        }
        embla_system_sleep(20 * 1000 * 1000);
    }
    cli_progress_wipe(progress);
}

static int run_program(const char *program, const char *path, embla_handle file,
                       cli_progress *progress)
{
    const char *const words[] = {program, "-dc", "--", path, NULL};
    char how[CLI_CELL];
    cli_child child;
    if (!cli_child_start(words, file, &child))
        return cli_failed("%s is compressed, and %s, which decompresses it, cannot be started: %s",
                          path, program, cli_why());
    wait_for(child, file, path, progress, how);
    if (!*how) return CLI_DONE;
    if (cli_progress_caught()) return CLI_FAILED;
    return cli_failed("%s was not decompressed: %s ended with %s", path, program, how);
}

/* Closes the file, and removes everything if the code is not CLI_DONE. Returns the code. */
static int finish(int code, embla_handle file, cli_unpacked *out, cli_progress *progress)
{
    if (file != EMBLA_NO_FILE && !cli_close(file) && code == CLI_DONE)
        code = cli_failed("%s: %s", out->path, cli_why());
    if (code != CLI_DONE) cli_unpack_free(out);
    cli_progress_end(progress, "interrupted");
    return code;
}

int cli_unpack(const char *path, bool quiet, cli_unpacked *out)
{
    cli_progress progress = {0};
    embla_handle file = EMBLA_NO_FILE;
    int code = CLI_FAILED;
    *out = (cli_unpacked){0};
    size_t n = packer_of(path);
    if (n == PACKERS) return CLI_DONE;
    cli_progress_begin(&progress, quiet);
    if (create(path, packers[n].ending, out, &file))
        code = run_program(packers[n].program, path, file, &progress);
    if (code == CLI_DONE) code = link_all(path, out);
    return finish(code, file, out, &progress);
}

static int copy_stdin(embla_handle file, const char *path, cli_progress *progress)
{
    static char piece[1 << 16];
    char text[128], size[CLI_CELL];
    int64_t copied = 0;
    for (double last = 0;;) {
        size_t n = 0;
        embla_outcome done = cli_stream_read(cli_stream_handle(CLI_STDIN), piece, sizeof piece, &n);
        if (cli_progress_caught()) return CLI_FAILED;
        if (done.error == EMBLA_SYSTEM_INTERRUPTED) continue;
        if (!cli_because(done)) return cli_failed("standard input: %s", cli_why());
        if (n == 0) return CLI_DONE;
        if (!cli_write_all(file, piece, n, NULL)) return cli_failed("%s: %s", path, cli_why());
        copied += (int64_t)n;
        if (!progress->shown || cli_progress_now() - last < 0.1) continue;
        (void)snprintf(text, sizeof text, "reading standard input  %s", cli_size(copied, size));
        cli_progress_draw(progress, text);
        last = cli_progress_now();
    }
}

int cli_unpack_stdin(bool quiet, cli_unpacked *out)
{
    cli_progress progress = {0};
    embla_handle file = EMBLA_NO_FILE;
    *out = (cli_unpacked){0};
    cli_progress_begin(&progress, quiet);
    int code = create("standard-input", "", out, &file) ? copy_stdin(file, out->path, &progress)
                                                        : CLI_FAILED;
    return finish(code, file, out, &progress);
}

void cli_unpack_free(cli_unpacked *unpacked)
{
    for (size_t i = 0; i < unpacked->link_count; i++) {
        (void)cli_remove(unpacked->links[i]);
        free(unpacked->links[i]);
    }
    if (unpacked->path) (void)cli_remove(unpacked->path);
    if (unpacked->folder) (void)cli_remove_folder(unpacked->folder);
    free(unpacked->path);
    free(unpacked->folder);
    *unpacked = (cli_unpacked){0};
}
