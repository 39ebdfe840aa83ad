/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the room that are for Windows share. Windows 10 or newer. */
#ifndef EMBLA_SYSTEM_WIN_H
#define EMBLA_SYSTEM_WIN_H

#undef WINVER
#undef _WIN32_WINNT
#define WINVER              0x0A00
#define _WIN32_WINNT        0x0A00
#define WIN32_LEAN_AND_MEAN 1
#include <windows.h>

#include "system/system.h"

/* The most characters that a path of Windows has. */
enum { EMBLA_WIN_PATH = 32768 };

typedef struct {
    wchar_t text[EMBLA_WIN_PATH];
} embla_win_path;

static inline HANDLE embla_win_handle(embla_handle file)
{
    return (HANDLE)file;
}

/* A file was asked for, and there is a folder: ERROR_DIRECTORY_NOT_SUPPORTED of newer headers. */
enum { EMBLA_WIN_IS_FOLDER = 336 };

/* The outcome of an error number of Windows; 0 means success. */
embla_outcome embla_win_outcome(DWORD number);
/* The outcome of a call that has set the last error. */
embla_outcome embla_win_failed(void);
/* The outcome of a call that returns FALSE with the last error set. */
embla_outcome embla_win_ended(BOOL worked);

/* UTF-8 to UTF-16. False if the bytes are not UTF-8, or `out` has too few characters. */
bool embla_win_widen(const char *text, wchar_t *out, size_t size);
/* UTF-16 to UTF-8; a surrogate without its pair becomes U+FFFD. False if `out` is too small. */
bool embla_win_narrow(const wchar_t *text, char *out, size_t size);

/* The full path of a name in a folder. A long one begins with \\?\, without which Windows takes at
 * most 259 characters. */
embla_outcome embla_win_find(embla_folder folder, const char *name, embla_win_path *out);
/* The full path of an open file, without \\?\. */
embla_outcome embla_win_path_of(HANDLE file, embla_win_path *out);
/* Opens a file. A program that scans files for viruses, or makes a copy of them, may hold one for a
 * moment: the call is repeated for two seconds. */
embla_outcome embla_win_open(const embla_win_path *path, DWORD access, DWORD how, DWORD flags,
                             HANDLE *out);
/* Whether a call that ended like this is worth repeating; sleeps before it says so. *tries counts
 * the repetitions. */
bool embla_win_again(DWORD number, int *tries);
/* Whether an open file is a symbolic link, or a folder that is mounted from elsewhere. */
bool embla_win_is_link(HANDLE file);
/* The library or program with this code stays loaded until the process ends: threads run it. */
void embla_win_stay(void);

#endif
