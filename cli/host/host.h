/* SPDX-License-Identifier: Apache-2.0 */
/* What the program needs of the operating system beyond core/system of the library: the terminal,
 * the standard streams, signals, other programs, and facts about the machine. One file for each
 * system has these functions, with what systems like Unix share in posix_*.c; CMake chooses them.
 *
 * A function that returns false and can say more has called cli_because, see paths.h.
 */
#ifndef CLI_HOST_HOST_H
#define CLI_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "system/system.h"

/* Before anything is read or printed: the encoding of arguments and streams, and what happens when
 * the reader of a pipe has gone. */
void cli_host_prepare(int *argc, char ***argv);

/* ---- the terminal ---- */

typedef enum { CLI_STDIN, CLI_STDOUT, CLI_STDERR } cli_stream;

bool cli_is_terminal(cli_stream stream);
/* The columns and lines of the terminal. False if the stream is none, or does not tell. */
bool cli_terminal_size(cli_stream stream, int *columns, int *lines);
/* Whether the terminal shows colours. */
bool cli_terminal_has_colors(void);
/* Whether text that people read may be UTF-8. */
bool cli_host_utf8(void);
/* The columns of a character on the terminal; -1 if it is not printable. */
int cli_character_columns(uint32_t code);

/* ---- streams and files ---- */

embla_handle cli_stream_handle(cli_stream stream);
/* fopen for a path in UTF-8. The file is not open in other programs. */
FILE *cli_file_open(const char *path, const char *mode);
/* A stream whose text is in memory. *text and *size are valid after cli_text_close; free(*text). */
FILE *cli_text_open(char **text, size_t *size);
bool cli_text_close(FILE *stream, char **text, size_t *size);
/* Opens a file to be read by the next function; a pipe is waited for. */
embla_outcome cli_stream_open(const char *path, embla_handle *out);
/* Reads on in a file or a pipe; *got 0 means its end. */
embla_outcome cli_stream_read(embla_handle file, void *out, size_t bytes, size_t *got);
/* Whether a read would return at once. */
bool cli_stream_ready(embla_handle file);
/* Writes continue at the end of the file. */
embla_outcome cli_seek_end(embla_handle file);

/* Sends what is written to stdout to an open file, which may be closed then. May be repeated inside
 * itself, up to 4 times. */
embla_outcome cli_stdout_divert(embla_handle file);
/* Ends the last one. Flush stdout first: what is not flushed goes where stdout went before. */
bool cli_stdout_restore(void);
/* Drops what could not be flushed. cli_stdout_restore follows. */
void cli_stdout_drop(void);
/* Sends stdout nowhere until cli_stdout_restore. */
bool cli_stdout_silence(void);

/* ---- paths ---- */

/* The path without links, "." and ".."; NULL if there is no such file. free it. */
char *cli_path_real(const char *path);
/* The folder for temporary files. */
const char *cli_temporary_folder(void);
bool cli_enter_folder(const char *path);
/* Whether this user may create files in the folder. */
embla_outcome cli_folder_writable(const char *path);
/* Makes the file `target` known as `path` too, for reading. */
embla_outcome cli_link_file(const char *target, const char *path);
/* The path of this program. False if the system does not tell. */
bool cli_program_path(char *out, size_t size);

/* ---- signals ---- */

/* Calls clean when Ctrl-C, or the end of the session, ends the program. clean may only remove
 * files. At most 4. */
void cli_at_signal(void (*clean)(void));
/* From now on Ctrl-C, and the end of the session, are only recorded. */
void cli_signals_record(void);
bool cli_signals_recorded(void);
/* Whether the recorded signal is that of Ctrl-C. */
bool cli_signals_interrupted(void);
/* Ends that. */
void cli_signals_release(void);
/* Ends the program by the signal that was recorded, if there is one. */
void cli_signals_repeat(void);
/* Whether a write to a pipe whose reader has gone ends the program. */
void cli_pipe_ends(bool ends);
/* Ends the program as such a write would. */
void cli_end_by_pipe(void);
/* Whether this error of the C library, an errno, is that of such a write. */
bool cli_is_pipe_error(int number);
/* Writes the text to stderr and ends the program with CLI_FAILED when the time has passed; 0
 * seconds end that. */
void cli_time_limit(unsigned seconds, const char *text);

/* ---- other programs ---- */

typedef struct {
    intptr_t id;
} cli_child;

/* Starts a program, which is found as a shell finds it, and which writes its output to the file. */
bool cli_child_start(const char *const words[], embla_handle output, cli_child *out);
/* Whether it has ended. how is "" after success, else "exit code 1" or "signal 9". */
bool cli_child_ended(cli_child child, char *how, size_t size);
void cli_child_stop(cli_child child);

/* ---- the machine ---- */

/* See cli_memory_available in core/memory.h. */
int64_t cli_host_memory(const char **why);
/* CPUs of the machine. */
int cli_host_cpus(void);
void cli_host_name(char *out, size_t size);
/* Sets a variable of the environment that the user has not set. */
void cli_environment_default(const char *name, const char *value);

#endif
