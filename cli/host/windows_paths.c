/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: streams of files, paths, and facts about the machine. Paths that the program makes have
 * forward slashes, which Windows takes too. */
#include "system/win.h"

#include <io.h>
#include <stdlib.h>
#include <string.h>

#include "host/host.h"
#include "host/paths.h"

/* ---- streams of files ---- */

/* "N" keeps the file from other programs that we start. */
FILE *cli_file_open(const char *path, const char *mode)
{
    embla_win_path found;
    wchar_t letters[8];
    if (!embla_worked(embla_win_find(EMBLA_HERE, path, &found)) ||
        swprintf(letters, 8, L"%hs%lsN", mode, strchr(mode, 'b') ? L"" : L"b") < 0)
        return NULL;
    return _wfopen(found.text, letters);
}

/* The text is in a file that the system removes when it is closed: it stays in memory unless
 * memory is scarce. */
FILE *cli_text_open(char **text, size_t *size)
{
    wchar_t folder[MAX_PATH + 1], path[MAX_PATH + 1];
    *text = NULL;
    *size = 0;
    if (GetTempPathW(MAX_PATH, folder) == 0 || GetTempFileNameW(folder, L"emb", 0, path) == 0)
        return NULL;
    return _wfopen(path,
                   L"w+bTDN"); /* T: not written to the disk at once; D: removed when closed */
}

bool cli_text_close(FILE *stream, char **text, size_t *size)
{
    const long end = fseek(stream, 0, SEEK_END) == 0 ? ftell(stream) : -1;
    bool good = end >= 0 && fseek(stream, 0, SEEK_SET) == 0;
    *text = good ? malloc((size_t)end + 1) : NULL;
    good = *text && fread(*text, 1, (size_t)end, stream) == (size_t)end;
    if (good) (*text)[end] = '\0';
    if (good) *size = (size_t)end;
    if (!good) free(*text);
    if (!good) *text = NULL;
    return fclose(stream) == 0 && good;
}

/* ---- paths ---- */

static void turn_slashes(char *path)
{
    for (; *path; path++)
        if (*path == '\\') *path = '/';
}

static bool narrow_path(const wchar_t *path, char *out, size_t size)
{
    if (!embla_win_narrow(path, out, size)) return false;
    turn_slashes(out);
    return true;
}

char *cli_path_real(const char *path)
{
    embla_win_path found;
    HANDLE file = INVALID_HANDLE_VALUE;
    char *real = malloc(3 * CLI_PATH_MOST);
    embla_outcome done = embla_win_find(EMBLA_HERE, path, &found);
    if (embla_worked(done)) done = embla_win_open(&found, 0, OPEN_EXISTING, 0, &file);
    if (embla_worked(done)) done = embla_win_path_of(file, &found);
    if (file != INVALID_HANDLE_VALUE) (void)CloseHandle(file);
    if (embla_worked(done) && (!real || !narrow_path(found.text, real, 3 * CLI_PATH_MOST)))
        done = embla_win_outcome(ERROR_NOT_ENOUGH_MEMORY);
    if (cli_because(done)) return real;
    free(real);
    return NULL;
}

const char *cli_temporary_folder(void)
{
    static char folder[CLI_PATH_MOST];
    wchar_t path[MAX_PATH + 2];
    DWORD length = GetTempPathW(MAX_PATH + 1, path);
    while (length > 1 && path[length - 1] == L'\\') path[--length] = L'\0';
    if (length == 0 || !narrow_path(path, folder, sizeof folder)) return ".";
    return folder;
}

bool cli_enter_folder(const char *path)
{
    embla_win_path found;
    embla_outcome done = embla_win_find(EMBLA_HERE, path, &found);
    if (embla_worked(done)) done = embla_win_ended(SetCurrentDirectoryW(found.text));
    return cli_because(done);
}

embla_outcome cli_folder_writable(const char *path)
{
    embla_win_path found;
    HANDLE folder = INVALID_HANDLE_VALUE;
    embla_outcome done = embla_win_find(EMBLA_HERE, path, &found);
    if (embla_worked(done)) done = embla_win_open(&found, FILE_ADD_FILE, OPEN_EXISTING, 0, &folder);
    if (embla_worked(done)) (void)CloseHandle(folder);
    return done;
}

/* A second name, or a copy on another drive: links need a privilege. */
embla_outcome cli_link_file(const char *target, const char *path)
{
    embla_win_path from, to;
    embla_outcome done = embla_win_find(EMBLA_HERE, target, &from);
    if (embla_worked(done)) done = embla_win_find(EMBLA_HERE, path, &to);
    if (!embla_worked(done) || CreateHardLinkW(to.text, from.text, NULL)) return done;
    return embla_win_ended(CopyFileW(from.text, to.text, TRUE));
}

bool cli_program_path(char *out, size_t size)
{
    embla_win_path path;
    DWORD length = GetModuleFileNameW(NULL, path.text, EMBLA_WIN_PATH);
    return length > 0 && length < EMBLA_WIN_PATH && narrow_path(path.text, out, size);
}

/* ---- the machine ---- */

static int64_t least_of(DWORDLONG bytes)
{
    return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

int64_t cli_host_memory(const char **why)
{
    MEMORYSTATUSEX memory = {.dwLength = sizeof memory};
    *why = "";
    if (!GlobalMemoryStatusEx(&memory)) return INT64_MAX;
    *why = memory.ullAvailPageFile < memory.ullAvailPhys ? "the page file" : "the machine";
    return least_of(memory.ullAvailPageFile < memory.ullAvailPhys ? memory.ullAvailPageFile
                                                                  : memory.ullAvailPhys);
}

int cli_host_cpus(void)
{
    DWORD all = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return all > 0 && all <= 1 << 20 ? (int)all : 1;
}

void cli_host_name(char *out, size_t size)
{
    wchar_t name[256];
    DWORD length = 256;
    memset(out, 0, size);
    if (!GetComputerNameExW(ComputerNameDnsHostname, name, &length) ||
        !embla_win_narrow(name, out, size))
        out[0] = '\0';
}

void cli_environment_default(const char *name, const char *value)
{
    if (!getenv(name)) (void)_putenv_s(name, value);
}
