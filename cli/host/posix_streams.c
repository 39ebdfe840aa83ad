/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals, streams and paths of systems like Unix. */
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "host/paths.h"

/* The outcome of a call that returned a negative number and set errno, or worked. */
static embla_outcome outcome_of(long result)
{
    embla_outcome done = {.error = EMBLA_SYSTEM_OK};
    if (result < 0)
        done = (embla_outcome){.error = errno == ENOENT   ? EMBLA_SYSTEM_NOT_FOUND
                                        : errno == EINTR  ? EMBLA_SYSTEM_INTERRUPTED
                                        : errno == EEXIST ? EMBLA_SYSTEM_EXISTS
                                                          : EMBLA_SYSTEM_OTHER,
                               .number = errno};
    return done;
}

/* ---- the terminal ---- */

bool cli_is_terminal(cli_stream stream)
{
    return isatty((int)stream) == 1;
}

bool cli_terminal_size(cli_stream stream, int *columns, int *lines)
{
    struct winsize size;
    if (!isatty((int)stream) || ioctl((int)stream, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return false;
    *columns = size.ws_col;
    *lines = size.ws_row;
    return true;
}

bool cli_terminal_has_colors(void)
{
    const char *kind = getenv("TERM");
    return kind && strcmp(kind, "dumb") != 0;
}

bool cli_host_utf8(void)
{
    (void)setlocale(LC_CTYPE, "");
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
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
    char letters[8];
    (void)snprintf(letters, sizeof letters, "%se", mode);
    return fopen(path, letters);
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
    int file = open(path, O_RDONLY | O_CLOEXEC);
    *out = file;
    return outcome_of(file);
}

embla_outcome cli_stream_read(embla_handle file, void *out, size_t bytes, size_t *got)
{
    ssize_t count = read((int)file, out, bytes);
    *got = count > 0 ? (size_t)count : 0;
    return outcome_of(count);
}

bool cli_stream_ready(embla_handle file)
{
    struct pollfd input = {.fd = (int)file, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

embla_outcome cli_seek_end(embla_handle file)
{
    return outcome_of(lseek((int)file, 0, SEEK_END) < 0 ? -1 : 0);
}

/* What stdout was before each divert that has not ended. */
enum { DEEP = 4 };
static int kept[DEEP], depth;

embla_outcome cli_stdout_divert(embla_handle file)
{
    (void)fflush(stdout);
    if (depth == DEEP) return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
    int before = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (before < 0) return outcome_of(-1);
    embla_outcome done = outcome_of(dup2((int)file, STDOUT_FILENO));
    if (embla_worked(done))
        kept[depth++] = before;
    else
        (void)close(before);
    return done;
}

bool cli_stdout_restore(void)
{
    if (depth == 0) return true;
    int before = kept[--depth];
    bool good = cli_because(outcome_of(dup2(before, STDOUT_FILENO)));
    (void)close(before);
    return good;
}

void cli_stdout_drop(void)
{
    if (!freopen("/dev/null", "w", stdout)) clearerr(stdout);
}

bool cli_stdout_silence(void)
{
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nothing < 0) return cli_because(outcome_of(-1));
    embla_outcome done = cli_stdout_divert(nothing);
    (void)close(nothing);
    return cli_because(done);
}

/* ---- paths ---- */

char *cli_path_real(const char *path)
{
    char *real = realpath(path, NULL);
    if (!real) (void)cli_because(outcome_of(-1));
    return real;
}

const char *cli_temporary_folder(void)
{
    const char *named = getenv("TMPDIR");
    return named && *named ? named : "/tmp";
}

bool cli_enter_folder(const char *path)
{
    return cli_because(outcome_of(chdir(path)));
}

embla_outcome cli_folder_writable(const char *path)
{
    return outcome_of(access(path, W_OK | X_OK));
}

embla_outcome cli_link_file(const char *target, const char *path)
{
    return outcome_of(symlink(target, path));
}

void cli_environment_default(const char *name, const char *value)
{
    (void)setenv(name, value, 0);
}

void cli_host_name(char *out, size_t size)
{
    memset(out, 0, size);
    (void)gethostname(out, size - 1);
}
