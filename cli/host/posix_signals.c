/* SPDX-License-Identifier: Apache-2.0 */
/* Signals and other programs on systems like Unix. One handler serves all that end the program. */
#include "host/host.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/complain.h"
#include "host/paths.h"

extern char **environ; /* NOLINT(readability-redundant-declaration): macOS has no header */

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING = sizeof ending / sizeof ending[0], CLEANERS = 4 };

static void (*cleaners[CLEANERS])(void);
static volatile sig_atomic_t cleaner_count, records, recorded;

static void on_signal(int number)
{
    if (records) {
        recorded = number;
        return;
    }
    for (int i = 0; i < cleaner_count; i++) cleaners[i]();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

/* A signal that is ignored stays so: nohup ignores SIGHUP. No SA_RESTART, so that a read ends. */
static void install(void)
{
    struct sigaction ours = {.sa_handler = on_signal}, was;
    (void)sigemptyset(&ours.sa_mask);
    for (size_t i = 0; i < ENDING; i++)
        if (sigaction(ending[i], NULL, &was) == 0 && was.sa_handler == SIG_DFL)
            (void)sigaction(ending[i], &ours, NULL);
}

void cli_at_signal(void (*clean)(void))
{
    for (int i = 0; i < cleaner_count; i++)
        if (cleaners[i] == clean) return;
    if (cleaner_count == CLEANERS) return;
    cleaners[cleaner_count] = clean;
    cleaner_count = cleaner_count + 1;
    install();
}

void cli_signals_record(void)
{
    recorded = 0;
    records = 1;
    install();
}

bool cli_signals_recorded(void)
{
    return recorded != 0;
}

bool cli_signals_interrupted(void)
{
    return recorded == SIGINT;
}

void cli_signals_release(void)
{
    records = 0;
}

void cli_signals_repeat(void)
{
    if (recorded) (void)raise(recorded);
}

/* ---- pipes ---- */

void cli_host_prepare(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    /* A reader that closes the pipe (| head) ends the program silently, even if the parent process
     * ignores the signal. */
    cli_pipe_ends(true);
    /* A file that reaches the limit of its size (ulimit -f) gives an error message too. */
    (void)signal(SIGXFSZ, SIG_IGN);
}

void cli_pipe_ends(bool ends)
{
    (void)signal(SIGPIPE, ends ? SIG_DFL : SIG_IGN);
}

void cli_end_by_pipe(void)
{
    cli_pipe_ends(true);
    (void)raise(SIGPIPE);
}

bool cli_is_pipe_error(int number)
{
    return number == EPIPE;
}

/* ---- a limit of time ---- */

static const char *late;

static void on_late(int number)
{
    ssize_t written = write(STDERR_FILENO, late, strlen(late));
    (void)number, (void)written;
    _exit(CLI_FAILED);
}

void cli_time_limit(unsigned seconds, const char *text)
{
    if (seconds > 0) {
        late = text;
        (void)signal(SIGALRM, on_late);
    }
    (void)alarm(seconds);
    if (seconds == 0) (void)signal(SIGALRM, SIG_DFL);
}

/* ---- other programs ---- */

bool cli_child_start(const char *const words[], embla_handle output, cli_child *out)
{
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    errno = posix_spawn_file_actions_init(&actions);
    if (errno != 0) return cli_because_errno();
    int error = posix_spawn_file_actions_adddup2(&actions, (int)output, STDOUT_FILENO);
    if (error == 0)
        error = posix_spawnp(&child, words[0], &actions, NULL, (char *const *)(uintptr_t)words,
                             environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    out->id = child;
    errno = error;
    return error == 0 || cli_because_errno();
}

bool cli_child_ended(cli_child child, char *how, size_t size)
{
    int status = 0;
    if (waitpid((pid_t)child.id, &status, WNOHANG) == 0) return false;
    how[0] = '\0';
    if (WIFSIGNALED(status))
        (void)snprintf(how, size, "signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        (void)snprintf(how, size, "exit code %d", WEXITSTATUS(status));
    return true;
}

void cli_child_stop(cli_child child)
{
    (void)kill((pid_t)child.id, SIGTERM);
}
