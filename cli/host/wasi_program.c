/* SPDX-License-Identifier: Apache-2.0 */
/* The program in WebAssembly: streams and paths by WASI; there are no signals, no other programs
 * and one CPU. */
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wasi/libc.h>
#include <wchar.h>

#include "core/complain.h"
#include "host/paths.h"
#include "system/posix.h"

enum { MODULE_BYTES = 65536 }; /* memory grows in pages of this size, of which there are 65536 */

/* A module begins at the root of what the host shows it. If the host passes PWD, and shows that
 * folder, paths are relative to it, as for other programs. */
void cli_host_prepare(int *argc, char ***argv)
{
    const char *folder = getenv("PWD");
    (void)argc, (void)argv;
    if (folder && folder[0] == '/') (void)chdir(folder);
}

/* ---- the terminal ---- */

bool cli_is_terminal(cli_stream stream)
{
    return isatty((int)stream) == 1;
}

bool cli_terminal_size(cli_stream stream, int *columns, int *lines)
{
    (void)stream, (void)columns, (void)lines;
    return false;
}

bool cli_terminal_has_colors(void)
{
    const char *kind = getenv("TERM");
    return kind && strcmp(kind, "dumb") != 0;
}

bool cli_host_utf8(void)
{
    const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *said = NULL;
    for (size_t i = 0; i < 3 && (!said || !*said); i++) said = getenv(names[i]);
    return !said || (strcmp(said, "C") != 0 && strcmp(said, "POSIX") != 0);
}

int cli_character_columns(uint32_t code)
{
    return wcwidth((wchar_t)code);
}

/* ---- streams and files ---- */

embla_handle cli_stream_handle(cli_stream stream)
{
    return (embla_handle)stream;
}

FILE *cli_file_open(const char *path, const char *mode)
{
    return fopen(path, mode);
}

FILE *cli_text_open(char **text, size_t *size)
{
    return open_memstream(text, size);
}

bool cli_text_close(FILE *stream, char **text, size_t *size)
{
    (void)text, (void)size; /* they were set when the stream was opened */
    return fclose(stream) == 0;
}

embla_outcome cli_stream_open(const char *path, embla_handle *out)
{
    int file = open(path, O_RDONLY);
    *out = file;
    return embla_posix_ended(file < 0 ? -1 : 0);
}

embla_outcome cli_stream_read(embla_handle file, void *out, size_t bytes, size_t *got)
{
    ssize_t count = read((int)file, out, bytes);
    *got = count > 0 ? (size_t)count : 0;
    return embla_posix_ended(count < 0 ? -1 : 0);
}

bool cli_stream_ready(embla_handle file)
{
    (void)file;
    return true;
}

embla_outcome cli_seek_end(embla_handle file)
{
    return embla_posix_ended(lseek((int)file, 0, SEEK_END) < 0 ? -1 : 0);
}

/* Opens a folder under this number, which must be the lowest free one or near it: it stands for
 * nothing, but a handle can only be moved onto an open one. */
static bool occupy(int number)
{
    enum { TRIES = 16 };
    int others[TRIES], count = 0, got = -1;
    while (count < TRIES && got != number) {
        got = open(".", O_RDONLY | O_DIRECTORY);
        if (got < 0) got = open("/", O_RDONLY | O_DIRECTORY);
        if (got < 0) break;
        if (got != number) others[count++] = got;
    }
    while (count > 0) (void)close(others[--count]);
    return got == number;
}

/* Where stdout went before. */
static int kept[4];
static int depth;

/* There is no dup, only a way to move a handle onto another, which is closed. So stdout moves onto
 * a folder, and the file onto a folder in its place; a folder takes the file's old number, which
 * the caller closes. */
embla_outcome cli_stdout_divert(embla_handle file)
{
    if (depth == (int)(sizeof kept / sizeof kept[0]))
        return embla_system_outcome(EMBLA_SYSTEM_OTHER);
    int aside = open(".", O_RDONLY | O_DIRECTORY);
    if (aside < 0) aside = open("/", O_RDONLY | O_DIRECTORY);
    if (aside < 0) return embla_posix_failed();
    if (__wasilibc_fd_renumber(STDOUT_FILENO, aside) != 0) {
        embla_outcome done = embla_posix_failed();
        (void)close(aside);
        return done;
    }
    if (!occupy(STDOUT_FILENO) || __wasilibc_fd_renumber((int)file, STDOUT_FILENO) != 0)
        return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
    kept[depth++] = aside;
    return occupy((int)file) ? embla_posix_ended(0) : embla_system_outcome(EMBLA_SYSTEM_OTHER);
}

bool cli_stdout_restore(void)
{
    if (depth == 0) return true;
    return cli_because(
        embla_posix_ended(__wasilibc_fd_renumber(kept[--depth], STDOUT_FILENO) == 0 ? 0 : -1));
}

void cli_stdout_drop(void)
{
    clearerr(stdout);
}

bool cli_stdout_silence(void)
{
    embla_handle nothing;
    embla_outcome done = embla_system_open(EMBLA_HERE, "/dev/null", EMBLA_OPEN_WRITE, 0, &nothing);
    if (!embla_worked(done)) return cli_because(done);
    done = cli_stdout_divert(nothing);
    (void)embla_system_close(nothing);
    return cli_because(done);
}

/* ---- paths ---- */

/* Removes "." and "..", and repeated slashes, from a path that begins with a slash. */
static void simplify(char *path)
{
    char *to = path;
    for (const char *from = path; *from;) {
        size_t length = strcspn(from + 1, "/");
        if (length == 2 && from[1] == '.' && from[2] == '.') {
            while (to > path && *--to != '/') {
            }
        } else if (length > 0 && !(length == 1 && from[1] == '.')) {
            memmove(to, from, length + 1);
            to += length + 1;
        }
        from += length + 1;
    }
    if (to == path) *to++ = '/';
    *to = '\0';
}

/* `folder` up to its last slash, or `here` if folder is NULL, and the path below it. */
static char *join(const char *folder, const char *here, const char *path)
{
    const char *slash = folder ? strrchr(folder, '/') : NULL;
    size_t length = folder ? (size_t)(slash - folder) : strlen(here);
    size_t size = length + strlen(path) + 2;
    char *made = malloc(size);
    if (!made) return NULL;
    (void)snprintf(made, size, "%.*s/%s", (int)length, folder ? folder : here, path);
    simplify(made);
    return made;
}

/* Links to folders are not followed, but a path that is a link is. */
char *cli_path_real(const char *path)
{
    enum { LINKS = 40 };
    char here[CLI_PATH_MOST] = "", target[CLI_PATH_MOST];
    if (!cli_is_there(path)) return NULL;
    if (path[0] != '/' && !getcwd(here, sizeof here)) {
        (void)cli_because_errno();
        return NULL;
    }
    char *real = join(NULL, here, path);
    for (int links = 0; real && links < LINKS; links++) {
        ssize_t length = readlink(real, target, sizeof target - 1);
        if (length <= 0) break;
        target[length] = '\0';
        char *next = join(target[0] == '/' ? NULL : real, "", target);
        free(real);
        real = next;
    }
    return real;
}

const char *cli_temporary_folder(void)
{
    const char *named = getenv("TMPDIR");
    return named && *named ? named : "/tmp";
}

bool cli_enter_folder(const char *path)
{
    return cli_because(embla_posix_ended(chdir(path)));
}

/* Permissions are known only to the host. */
embla_outcome cli_folder_writable(const char *path)
{
    embla_file_facts found;
    embla_outcome done = embla_system_facts_at(EMBLA_HERE, path, true, &found);
    if (embla_worked(done) && found.kind != EMBLA_IS_FOLDER)
        done = embla_system_outcome(EMBLA_SYSTEM_NOT_FOUND);
    return done;
}

embla_outcome cli_link_file(const char *target, const char *path)
{
    return embla_posix_ended(symlink(target, path));
}

bool cli_program_path(char *out, size_t size)
{
    (void)out, (void)size;
    return false;
}

/* ---- signals: there are none ---- */

void cli_at_signal(void (*clean)(void))
{
    (void)clean;
}

void cli_signals_record(void)
{
}

bool cli_signals_recorded(void)
{
    return false;
}

bool cli_signals_interrupted(void)
{
    return false;
}

void cli_signals_release(void)
{
}

void cli_signals_repeat(void)
{
}

void cli_pipe_ends(bool ends)
{
    (void)ends;
}

void cli_end_by_pipe(void)
{
    _Exit(CLI_FAILED);
}

bool cli_is_pipe_error(int number)
{
    return number == EPIPE;
}

void cli_time_limit(unsigned seconds, const char *text)
{
    (void)seconds, (void)text;
}

/* ---- other programs: there are none ---- */

bool cli_child_start(const char *const words[], embla_handle output, cli_child *out)
{
    (void)words, (void)output;
    out->id = 0;
    return cli_because(embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED));
}

bool cli_child_ended(cli_child child, char *how, size_t size)
{
    (void)child;
    (void)snprintf(how, size, "no start");
    return true;
}

void cli_child_stop(cli_child child)
{
    (void)child;
}

/* ---- the machine ---- */

int64_t cli_host_memory(const char **why)
{
    *why = "the memory of a module, 4 GiB";
    return (int64_t)(65536 - __builtin_wasm_memory_size(0)) * MODULE_BYTES;
}

int cli_host_cpus(void)
{
    return 1;
}

void cli_host_name(char *out, size_t size)
{
    (void)snprintf(out, size, "wasm");
}

void cli_environment_default(const char *name, const char *value)
{
    (void)setenv(name, value, 0);
}
