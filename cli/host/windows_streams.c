/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: the console and the standard streams. Everything is UTF-8 and binary: a line ends with
 * one character, as on other systems. */
#include "system/win.h"

#include <fcntl.h>
#include <io.h>
#include <shellapi.h>
#include <stdlib.h>
#include <string.h>

#include "host/host.h"
#include "host/paths.h"

static HANDLE handle_of(cli_stream stream)
{
    return (HANDLE)_get_osfhandle((int)stream);
}

static bool is_console(HANDLE handle)
{
    DWORD mode;
    return GetConsoleMode(handle, &mode) != 0;
}

/* ---- before main ---- */

static UINT code_page; /* of the console, before it was ours */

static void restore_console(void)
{
    (void)SetConsoleOutputCP(code_page);
}

static void prepare_console(void)
{
    const cli_stream streams[] = {CLI_STDOUT, CLI_STDERR};
    bool shown = false;
    for (size_t i = 0; i < 2; i++) {
        DWORD mode;
        HANDLE handle = handle_of(streams[i]);
        if (!GetConsoleMode(handle, &mode)) continue;
        shown = true;
        (void)SetConsoleMode(handle, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    }
    if (!shown) return;
    code_page = GetConsoleOutputCP();
    if (SetConsoleOutputCP(CP_UTF8)) (void)atexit(restore_console);
}

/* The arguments in UTF-8; NULL if there is no memory. They are kept until the program ends. */
static char **read_arguments(int *count)
{
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), count);
    char **words = wide ? calloc((size_t)*count + 1, sizeof *words) : NULL;
    for (int i = 0; words && i < *count; i++) {
        const size_t size = 3 * wcslen(wide[i]) + 1;
        words[i] = malloc(size);
        if (!words[i] || !embla_win_narrow(wide[i], words[i], size)) return NULL;
    }
    return words;
}

void cli_host_prepare(int *argc, char ***argv)
{
    static const int streams[] = {CLI_STDIN, CLI_STDOUT, CLI_STDERR};
    int count = 0;
    char **words = read_arguments(&count);
    if (words) {
        *argc = count;
        *argv = words;
    }
    for (size_t i = 0; i < 3; i++) (void)_setmode(streams[i], _O_BINARY);
    /* as on other systems: messages appear at once, results together */
    (void)setvbuf(stderr, NULL, _IONBF, 0);
    if (!is_console(handle_of(CLI_STDOUT))) (void)setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    prepare_console();
}

/* ---- the terminal ---- */

bool cli_is_terminal(cli_stream stream)
{
    return is_console(handle_of(stream));
}

bool cli_terminal_size(cli_stream stream, int *columns, int *lines)
{
    CONSOLE_SCREEN_BUFFER_INFO screen;
    if (!GetConsoleScreenBufferInfo(handle_of(stream), &screen)) return false;
    *columns = screen.srWindow.Right - screen.srWindow.Left + 1;
    *lines = screen.srWindow.Bottom - screen.srWindow.Top + 1;
    return *columns > 0;
}

bool cli_terminal_has_colors(void)
{
    DWORD mode;
    return GetConsoleMode(handle_of(is_console(handle_of(CLI_STDOUT)) ? CLI_STDOUT : CLI_STDERR),
                          &mode) &&
           (mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0;
}

/* The variables of other systems are heeded: C asks for ASCII. */
bool cli_host_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < 3; i++) {
        const char *named = getenv(names[i]);
        if (named && (strcmp(named, "C") == 0 || strcmp(named, "POSIX") == 0)) return false;
    }
    return code_page == 0 || GetConsoleOutputCP() == CP_UTF8;
}

/* The C library of Windows does not tell. These are the ranges of the scripts that people write;
 * both lists are sorted. */
typedef struct {
    uint32_t first, last;
} range;

static const range empty[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},     {0x64b, 0x65f},
    {0x6d6, 0x6dc},   {0x6df, 0x6e4},   {0x6e7, 0x6e8},   {0x6ea, 0x6ed},     {0x730, 0x74a},
    {0x7a6, 0x7b0},   {0x8ca, 0x902},   {0x93a, 0x93a},   {0x93c, 0x93c},     {0x941, 0x948},
    {0x94d, 0x94d},   {0x951, 0x957},   {0x9bc, 0x9bc},   {0x9c1, 0x9c4},     {0x9cd, 0x9cd},
    {0xa3c, 0xa3c},   {0xa41, 0xa51},   {0xb3c, 0xb3c},   {0xbc0, 0xbc0},     {0xbcd, 0xbcd},
    {0xe31, 0xe31},   {0xe34, 0xe3a},   {0xe47, 0xe4e},   {0xeb1, 0xeb1},     {0xeb4, 0xebc},
    {0xec8, 0xecd},   {0x1160, 0x11ff}, {0x135d, 0x135f}, {0x1ab0, 0x1aff},   {0x1dc0, 0x1dff},
    {0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x2064}, {0x20d0, 0x20f0},   {0x302a, 0x302d},
    {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
};
static const range doubled[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
    {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x26aa, 0x26ab},
    {0x26bd, 0x26be},   {0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},
    {0x274c, 0x274c},   {0x2753, 0x2755},   {0x2795, 0x2797},   {0x2b1b, 0x2b1c},
    {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0xa4cf},   {0xa960, 0xa97c},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},
    {0xff01, 0xff60},   {0xffe0, 0xffe6},   {0x17000, 0x18cd5}, {0x1b000, 0x1b2fb},
    {0x1f300, 0x1f320}, {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c}, {0x1f37e, 0x1f393},
    {0x1f3a0, 0x1f3ca}, {0x1f3e0, 0x1f3f0}, {0x1f400, 0x1f43e}, {0x1f440, 0x1f440},
    {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f54e}, {0x1f550, 0x1f567},
    {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f90c, 0x1f9ff}, {0x1fa70, 0x1faff},
    {0x20000, 0x3fffd},
};

static bool is_in(const range *ranges, size_t count, uint32_t code)
{
    size_t low = 0;
    while (low < count && ranges[low].last < code) low++;
    return low < count && ranges[low].first <= code;
}

int cli_character_columns(uint32_t code)
{
    if (code == 0) return 0;
    if (code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0xd800 && code < 0xe000) ||
        code > 0x10ffff)
        return -1;
    if (is_in(empty, sizeof empty / sizeof empty[0], code)) return 0;
    return is_in(doubled, sizeof doubled / sizeof doubled[0], code) ? 2 : 1;
}

/* ---- reading ---- */

embla_handle cli_stream_handle(cli_stream stream)
{
    return (embla_handle)handle_of(stream);
}

embla_outcome cli_stream_open(const char *path, embla_handle *out)
{
    embla_win_path found;
    HANDLE file = INVALID_HANDLE_VALUE;
    embla_outcome done = embla_win_find(EMBLA_HERE, path, &found);
    if (embla_worked(done)) done = embla_win_open(&found, GENERIC_READ, OPEN_EXISTING, 0, &file);
    *out = (embla_handle)file;
    return done;
}

/* Characters of the console in UTF-8. Ctrl-Z at the beginning of a line ends the input. Half of a
 * character waits for the rest. */
static embla_outcome read_console(HANDLE console, char *out, size_t bytes, size_t *got)
{
    static wchar_t first; /* of a pair */
    wchar_t wide[256], *at = wide;
    DWORD most = bytes / 3 < 255 ? (DWORD)(bytes / 3) : 255, count = 0, kept = 0;
    int used = 0;
    if (first) *at++ = first;
    first = 0;
    if (!ReadConsoleW(console, at, most - (DWORD)(at - wide), &count, NULL))
        return embla_win_failed();
    count += (DWORD)(at - wide);
    for (DWORD i = 0; i < count; i++)
        if (wide[i] != L'\r') wide[kept++] = wide[i];
    if (kept > 0 && wide[0] == 0x1a) kept = 0;
    if (kept > 0 && wide[kept - 1] >= 0xd800 && wide[kept - 1] < 0xdc00) first = wide[--kept];
    if (kept > 0)
        used = WideCharToMultiByte(CP_UTF8, 0, wide, (int)kept, out,
                                   (int)(bytes < 1024 ? bytes : 1024), NULL, NULL);
    *got = (size_t)used;
    return embla_win_outcome(ERROR_SUCCESS);
}

embla_outcome cli_stream_read(embla_handle file, void *out, size_t bytes, size_t *got)
{
    HANDLE handle = (HANDLE)file;
    DWORD count = 0, most = bytes < 1u << 30 ? (DWORD)bytes : 1u << 30;
    *got = 0;
    if (bytes >= 6 && is_console(handle)) return read_console(handle, out, bytes, got);
    if (!ReadFile(handle, out, most, &count, NULL)) {
        DWORD number = GetLastError();
        if (number == ERROR_BROKEN_PIPE || number == ERROR_HANDLE_EOF) /* the writer has gone */
            number = ERROR_SUCCESS;
        if (number == ERROR_INVALID_FUNCTION) number = EMBLA_WIN_IS_FOLDER;
        return embla_win_outcome(number);
    }
    *got = count;
    return embla_win_outcome(ERROR_SUCCESS);
}

bool cli_stream_ready(embla_handle file)
{
    HANDLE handle = (HANDLE)file;
    DWORD bytes = 0;
    if (GetFileType(handle) == FILE_TYPE_PIPE)
        return PeekNamedPipe(handle, NULL, 0, NULL, &bytes, NULL)
                   ? bytes > 0
                   : GetLastError() == ERROR_BROKEN_PIPE;
    return !is_console(handle) || WaitForSingleObject(handle, 0) == WAIT_OBJECT_0;
}

embla_outcome cli_seek_end(embla_handle file)
{
    const LARGE_INTEGER none = {.QuadPart = 0};
    return embla_win_ended(SetFilePointerEx((HANDLE)file, none, NULL, FILE_END));
}

/* ---- stdout ---- */

/* What stdout was before each divert that has not ended. */
enum { DEEP = 4 };
static int kept_streams[DEEP], depth;

/* A descriptor of the C library for a second handle of the file; -1 if that fails. */
static int descriptor_of(HANDLE file)
{
    HANDLE again = INVALID_HANDLE_VALUE, self = GetCurrentProcess();
    if (!DuplicateHandle(self, file, self, &again, 0, FALSE, DUPLICATE_SAME_ACCESS)) return -1;
    int found = _open_osfhandle((intptr_t)again, _O_BINARY);
    if (found < 0) (void)CloseHandle(again);
    return found;
}

embla_outcome cli_stdout_divert(embla_handle file)
{
    (void)fflush(stdout);
    if (depth == DEEP) return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
    int before = _dup(CLI_STDOUT), now = descriptor_of((HANDLE)file);
    bool good = before >= 0 && now >= 0 && _dup2(now, CLI_STDOUT) == 0;
    if (now >= 0) (void)_close(now);
    if (good)
        kept_streams[depth++] = before;
    else if (before >= 0)
        (void)_close(before);
    return embla_win_outcome(good ? ERROR_SUCCESS : ERROR_TOO_MANY_OPEN_FILES);
}

bool cli_stdout_restore(void)
{
    if (depth == 0) return true;
    int before = kept_streams[--depth];
    bool good = _dup2(before, CLI_STDOUT) == 0;
    (void)_close(before);
    return good || cli_because(embla_win_outcome(ERROR_INVALID_HANDLE));
}

void cli_stdout_drop(void)
{
    if (!freopen("NUL", "wb", stdout)) clearerr(stdout);
}

bool cli_stdout_silence(void)
{
    HANDLE nothing = CreateFileW(L"NUL", GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
                                 OPEN_EXISTING, 0, NULL);
    if (nothing == INVALID_HANDLE_VALUE) return cli_because(embla_win_failed());
    embla_outcome done = cli_stdout_divert((embla_handle)nothing);
    (void)CloseHandle(nothing);
    return cli_because(done);
}
