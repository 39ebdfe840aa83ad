/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: Ctrl-C, the end of the session, pipes, a limit of time, and other programs. What the
 * console sends arrives in a thread of its own. */
#include "system/win.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/complain.h"
#include "host/host.h"
#include "host/paths.h"

/* ---- signals ---- */

enum { CLEANERS = 4, ENDED_BY_CTRL_C = (int)0xC000013A };

static void (*cleaners[CLEANERS])(void);
static atomic_int cleaner_count, records;
static atomic_int recorded; /* one more than the kind of event; 0 means none */

static BOOL WINAPI on_event(DWORD kind)
{
    if (atomic_load(&records)) {
        atomic_store(&recorded, (int)kind + 1);
        /* the system ends the program when this returns for the last kinds */
        if (kind != CTRL_C_EVENT && kind != CTRL_BREAK_EVENT) Sleep(INFINITE);
        return TRUE;
    }
    for (int i = 0; i < atomic_load(&cleaner_count); i++) cleaners[i]();
    return FALSE;
}

static void install(void)
{
    static bool installed;
    if (!installed) installed = SetConsoleCtrlHandler(on_event, TRUE);
}

void cli_at_signal(void (*clean)(void))
{
    int count = atomic_load(&cleaner_count);
    for (int i = 0; i < count; i++)
        if (cleaners[i] == clean) return;
    if (count == CLEANERS) return;
    cleaners[count] = clean;
    atomic_store(&cleaner_count, count + 1);
    install();
}

void cli_signals_record(void)
{
    atomic_store(&recorded, 0);
    atomic_store(&records, 1);
    install();
}

bool cli_signals_recorded(void)
{
    return atomic_load(&recorded) != 0;
}

bool cli_signals_interrupted(void)
{
    return atomic_load(&recorded) == CTRL_C_EVENT + 1;
}

void cli_signals_release(void)
{
    atomic_store(&records, 0);
}

void cli_signals_repeat(void)
{
    if (!cli_signals_recorded()) return;
    (void)fflush(stdout);
    ExitProcess((UINT)ENDED_BY_CTRL_C);
}

/* ---- pipes ---- */

/* There is no signal: a write to a pipe without a reader fails. */
void cli_pipe_ends(bool ends)
{
    (void)ends;
}

void cli_end_by_pipe(void)
{
    ExitProcess(CLI_FAILED);
}

/* The C library of Windows has either number for it. */
bool cli_is_pipe_error(int number)
{
    return number == EPIPE ||
           (number == EINVAL &&
            GetFileType((HANDLE)cli_stream_handle(CLI_STDOUT)) == FILE_TYPE_PIPE);
}

/* ---- a limit of time ---- */

static const char *late;
static HANDLE timer;

static void CALLBACK on_late(void *context, BOOLEAN fired)
{
    DWORD written;
    (void)context, (void)fired;
    (void)WriteFile((HANDLE)cli_stream_handle(CLI_STDERR), late, (DWORD)strlen(late), &written,
                    NULL);
    (void)TerminateProcess(GetCurrentProcess(), CLI_FAILED);
}

void cli_time_limit(unsigned seconds, const char *text)
{
    if (timer) (void)DeleteTimerQueueTimer(NULL, timer, INVALID_HANDLE_VALUE);
    timer = NULL;
    if (seconds == 0) return;
    late = text;
    if (!CreateTimerQueueTimer(&timer, NULL, on_late, NULL, seconds * 1000, 0, WT_EXECUTEONLYONCE))
        timer = NULL;
}

/* ---- other programs ---- */

enum { COMMAND = 32768 };

typedef struct {
    char text[COMMAND];
    size_t used;
    bool full;
} command;

static void add(command *c, char letter, size_t times)
{
    for (; times > 0; times--) {
        c->full = c->full || c->used + 1 == COMMAND;
        if (c->full) return;
        c->text[c->used++] = letter;
    }
}

/* A word in quotes, as the C library of the other program takes it apart: before a quote, twice as
 * many backslashes and one more. */
static void add_word(command *c, const char *word)
{
    size_t slashes = 0;
    if (c->used > 0) add(c, ' ', 1);
    add(c, '"', 1);
    for (; *word; word++) {
        if (*word == '"') add(c, '\\', slashes + 1);
        slashes = *word == '\\' ? slashes + 1 : 0;
        add(c, *word, 1);
    }
    add(c, '\\', slashes);
    add(c, '"', 1);
}

static embla_outcome start(wchar_t *words, HANDLE output, cli_child *out)
{
    STARTUPINFOW how = {.cb = sizeof how,
                        .dwFlags = STARTF_USESTDHANDLES,
                        .hStdInput = (HANDLE)cli_stream_handle(CLI_STDIN),
                        .hStdOutput = output,
                        .hStdError = (HANDLE)cli_stream_handle(CLI_STDERR)};
    PROCESS_INFORMATION started;
    embla_outcome done = embla_win_ended(
        CreateProcessW(NULL, words, NULL, NULL, TRUE, 0, NULL, NULL, &how, &started));
    if (!embla_worked(done)) return done;
    (void)CloseHandle(started.hThread);
    out->id = (intptr_t)started.hProcess;
    return done;
}

bool cli_child_start(const char *const words[], embla_handle output, cli_child *out)
{
    command *c = calloc(1, sizeof *c);
    wchar_t *wide = calloc(COMMAND, sizeof *wide);
    HANDLE self = GetCurrentProcess(), again = INVALID_HANDLE_VALUE;
    embla_outcome done = embla_win_outcome(ERROR_NOT_ENOUGH_MEMORY);
    for (size_t i = 0; c && words[i]; i++) add_word(c, words[i]);
    if (c && wide)
        done = embla_win_outcome(c->full ? ERROR_FILENAME_EXCED_RANGE
                                 : embla_win_widen(c->text, wide, COMMAND)
                                     ? ERROR_SUCCESS
                                     : ERROR_NO_UNICODE_TRANSLATION);
    if (embla_worked(done))
        done = embla_win_ended(
            DuplicateHandle(self, (HANDLE)output, self, &again, 0, TRUE, DUPLICATE_SAME_ACCESS));
    if (embla_worked(done)) done = start(wide, again, out);
    if (again != INVALID_HANDLE_VALUE) (void)CloseHandle(again);
    free(wide);
    free(c);
    return cli_because(done);
}

bool cli_child_ended(cli_child child, char *how, size_t size)
{
    HANDLE process = (HANDLE)child.id;
    DWORD code = 0;
    if (WaitForSingleObject(process, 0) == WAIT_TIMEOUT) return false;
    (void)GetExitCodeProcess(process, &code);
    (void)CloseHandle(process);
    how[0] = '\0';
    if (code != 0) (void)snprintf(how, size, "exit code %lu", (unsigned long)code);
    return true;
}

void cli_child_stop(cli_child child)
{
    (void)TerminateProcess((HANDLE)child.id, CLI_FAILED);
}
