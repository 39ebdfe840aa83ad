/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: names, and files by their names.
 *
 * Names are UTF-8 for Embla and UTF-16 for Windows; bytes that are not UTF-8 are refused, because
 * any other name for them would be invented. A folder is open while its files are, and a name in it
 * is looked up by the path that the folder has at that moment. Windows itself resolves "..",
 * slashes and drive letters (GetFullPathNameW), and says which names belong to devices, such as
 * CON.
 */
#include "system/win.h"

#include <stdlib.h>
#include <string.h>
#include <winioctl.h>

/* ---- text ---- */

bool embla_win_widen(const char *text, wchar_t *out, size_t size)
{
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, out, (int)size) > 0;
}

bool embla_win_narrow(const wchar_t *text, char *out, size_t size)
{
    return WideCharToMultiByte(CP_UTF8, 0, text, -1, out, (int)size, NULL, NULL) > 0;
}

/* ---- paths ---- */

static bool begins(const wchar_t *text, const wchar_t *with)
{
    return wcsncmp(text, with, wcslen(with)) == 0;
}

/* \\?\C:\x becomes C:\x, and \\?\UNC\server\x becomes \\server\x. */
static void shorten(wchar_t *text)
{
    static const wchar_t far_away[] = L"\\\\?\\UNC\\", local[] = L"\\\\?\\";
    size_t cut = begins(text, far_away) ? 6 : begins(text, local) ? 4 : 0;
    if (cut == 0) return;
    memmove(text, text + cut, (wcslen(text + cut) + 1) * sizeof *text);
    if (cut == 6) text[0] = L'\\'; /* the C of UNC */
}

/* The opposite, for a path that is too long without it. */
static bool lengthen(wchar_t *text)
{
    enum { MOST = 247 }; /* of a folder that gets a file of a short name */
    bool far_away = begins(text, L"\\\\");
    const wchar_t *front = far_away ? L"\\\\?\\UNC" : L"\\\\?\\";
    size_t length = wcslen(text), cut = far_away ? 1 : 0, more = wcslen(front);
    if (length <= MOST || begins(text, L"\\\\?\\") || begins(text, L"\\\\.\\")) return true;
    if (length + more >= EMBLA_WIN_PATH) return false;
    memmove(text + more, text + cut, (length + 1 - cut) * sizeof *text);
    memcpy(text, front, more * sizeof *text);
    return true;
}

embla_outcome embla_win_path_of(HANDLE file, embla_win_path *out)
{
    DWORD length = GetFinalPathNameByHandleW(file, out->text, EMBLA_WIN_PATH, FILE_NAME_NORMALIZED);
    if (length == 0) return embla_win_failed();
    if (length >= EMBLA_WIN_PATH) return embla_win_outcome(ERROR_INVALID_NAME);
    shorten(out->text);
    return embla_win_outcome(ERROR_SUCCESS);
}

static bool is_separator(wchar_t c)
{
    return c == L'/' || c == L'\\';
}

static bool is_whole(const wchar_t *name)
{
    return is_separator(name[0]) || (name[0] != L'\0' && name[1] == L':');
}

/* Makes a path full. A name that Windows keeps for a device is refused, except NUL. */
static embla_outcome make_full(const wchar_t *given, embla_win_path *out)
{
    DWORD length = GetFullPathNameW(given, EMBLA_WIN_PATH, out->text, NULL);
    if (length == 0) return embla_win_failed();
    if (length >= EMBLA_WIN_PATH || !lengthen(out->text))
        return embla_win_outcome(ERROR_INVALID_NAME);
    if (begins(out->text, L"\\\\.\\") && !begins(given, L"\\\\.\\") &&
        _wcsicmp(out->text + 4, L"NUL") != 0)
        return embla_win_outcome(ERROR_INVALID_NAME);
    /* a colon after the drive names a second content of a file, which no other program shows */
    const wchar_t *colon = wcsrchr(out->text, L':');
    if (colon && colon > out->text + 1 && !begins(out->text, L"\\\\"))
        return embla_win_outcome(ERROR_INVALID_NAME);
    return embla_win_outcome(ERROR_SUCCESS);
}

embla_outcome embla_win_find(embla_folder folder, const char *name, embla_win_path *out)
{
    embla_win_path wide, whole;
    if (*name == '\0') return embla_win_outcome(ERROR_PATH_NOT_FOUND);
    if (!embla_win_widen(name, wide.text, EMBLA_WIN_PATH)) return embla_win_failed();
    if (is_whole(wide.text) && wide.text[1] == L':' && wide.text[2] == L'\0')
        wcscpy(wide.text + 2, L"\\"); /* the folder of C:\x without its separator */
    if (folder == EMBLA_HERE || is_whole(wide.text)) return make_full(wide.text, out);
    embla_outcome done = embla_win_path_of(embla_win_handle(folder), &whole);
    if (!embla_worked(done)) return done;
    size_t length = wcslen(whole.text), more = wcslen(wide.text);
    if (length + more + 2 > EMBLA_WIN_PATH) return embla_win_outcome(ERROR_INVALID_NAME);
    whole.text[length] = L'\\';
    memcpy(whole.text + length + 1, wide.text, (more + 1) * sizeof(wchar_t));
    return make_full(whole.text, out);
}

size_t embla_system_path(embla_handle file, char *out, size_t size)
{
    embla_win_path path;
    if (!embla_worked(embla_win_path_of(embla_win_handle(file), &path))) return 0;
    return embla_win_narrow(path.text, out, size) ? strlen(out) : 0;
}

const char *embla_system_slash(const char *path)
{
    const char *slash = strrchr(path, '/'), *back = strrchr(path, '\\');
    return !slash || (back && back > slash) ? back : slash;
}

/* ---- rename and remove ---- */

/* With the meaning that other systems have: the new name leads to the new file at once, and who has
 * the old one open keeps it. Not every file system can. */
static embla_outcome rename_open(HANDLE file, const wchar_t *to)
{
    size_t bytes = wcslen(to) * sizeof *to, all = sizeof(FILE_RENAME_INFO) + bytes;
    FILE_RENAME_INFO *info = calloc(1, all);
    if (!info) return embla_win_outcome(ERROR_NOT_ENOUGH_MEMORY);
    info->Flags = 1 | 2; /* FILE_RENAME_FLAG_REPLACE_IF_EXISTS | .. POSIX_SEMANTICS */
    info->FileNameLength = (DWORD)bytes;
    memcpy(info->FileName, to, bytes);
    embla_outcome done = embla_win_ended(
        SetFileInformationByHandle(file, (FILE_INFO_BY_HANDLE_CLASS)22, info, (DWORD)all));
    free(info);
    return done;
}

/* By its old way, which fails if another process has opened the target. */
static embla_outcome move(const wchar_t *from, const wchar_t *to, DWORD flags)
{
    DWORD number;
    int tries = 0;
    do {
        if (MoveFileExW(from, to, flags | MOVEFILE_WRITE_THROUGH))
            return embla_win_outcome(ERROR_SUCCESS);
        number = GetLastError();
    } while (embla_win_again(number, &tries));
    return embla_win_outcome(number);
}

embla_outcome embla_system_rename(embla_folder folder, const char *from, const char *to,
                                  bool replace)
{
    embla_win_path old, new;
    HANDLE file;
    embla_outcome done = embla_win_find(folder, from, &old);
    if (embla_worked(done)) done = embla_win_find(folder, to, &new);
    if (!embla_worked(done)) return done;
    if (!replace) return move(old.text, new.text, 0);
    done = embla_win_open(&old, DELETE | SYNCHRONIZE, OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT,
                          &file);
    if (!embla_worked(done)) return done;
    done = rename_open(file, new.text);
    (void)CloseHandle(file);
    return embla_worked(done) ? done : move(old.text, new.text, MOVEFILE_REPLACE_EXISTING);
}

embla_outcome embla_system_add_name(embla_folder folder, const char *name, const char *second)
{
    embla_win_path old, new;
    embla_outcome done = embla_win_find(folder, name, &old);
    if (embla_worked(done)) done = embla_win_find(folder, second, &new);
    if (!embla_worked(done)) return done;
    return embla_win_ended(CreateHardLinkW(new.text, old.text, NULL));
}

/* Frees the name at once, though the file may be open; file systems that cannot free it with the
 * last handle. */
static embla_outcome remove_open(HANDLE file)
{
    DWORD flags = 1 | 2 | 16; /* DELETE, POSIX_SEMANTICS, IGNORE_READONLY_ATTRIBUTE */
    return embla_win_ended(
        SetFileInformationByHandle(file, (FILE_INFO_BY_HANDLE_CLASS)21, &flags, sizeof flags));
}

embla_outcome embla_system_remove(embla_folder folder, const char *name)
{
    embla_win_path path;
    HANDLE file;
    embla_outcome done = embla_win_find(folder, name, &path);
    if (!embla_worked(done)) return done;
    DWORD found = GetFileAttributesW(path.text);
    if (found != INVALID_FILE_ATTRIBUTES && (found & FILE_ATTRIBUTE_DIRECTORY) &&
        !(found & FILE_ATTRIBUTE_REPARSE_POINT))
        return embla_system_outcome(EMBLA_SYSTEM_REFUSED);
    done = embla_win_open(&path, DELETE | SYNCHRONIZE, OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT,
                          &file);
    if (!embla_worked(done)) return done;
    done = remove_open(file);
    (void)CloseHandle(file);
    return embla_worked(done) ? done : embla_win_ended(DeleteFileW(path.text));
}

embla_outcome embla_system_remove_folder(embla_folder folder, const char *name)
{
    embla_win_path path;
    embla_outcome done = embla_win_find(folder, name, &path);
    return embla_worked(done) ? embla_win_ended(RemoveDirectoryW(path.text)) : done;
}

embla_outcome embla_system_make_folder(const char *path, unsigned mode)
{
    embla_win_path full;
    (void)mode;
    embla_outcome done = embla_win_find(EMBLA_HERE, path, &full);
    return embla_worked(done) ? embla_win_ended(CreateDirectoryW(full.text, NULL)) : done;
}

bool embla_system_readable(embla_folder folder, const char *name)
{
    embla_handle file;
    if (!embla_worked(embla_system_open(folder, name, EMBLA_OPEN_READ, 0, &file))) return false;
    (void)embla_system_close(file);
    return true;
}

/* ---- symbolic links ---- */

/* What a link holds; the headers have it only for drivers. */
typedef struct {
    ULONG tag;
    USHORT bytes, reserved;
    USHORT target_at, target_bytes, shown_at, shown_bytes;
    ULONG flags;
    wchar_t names[8192 - 10];
} link_content;

static embla_outcome read_link(HANDLE file, char *out, size_t size, size_t *length)
{
    link_content content;
    DWORD got;
    if (!DeviceIoControl(file, FSCTL_GET_REPARSE_POINT, NULL, 0, &content, sizeof content, &got,
                         NULL))
        return embla_win_failed();
    if (content.tag != IO_REPARSE_TAG_SYMLINK || content.shown_bytes == 0 ||
        content.shown_at + (size_t)content.shown_bytes > sizeof content.names)
        return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
    int n =
        WideCharToMultiByte(CP_UTF8, 0, content.names + content.shown_at / sizeof(wchar_t),
                            content.shown_bytes / (int)sizeof(wchar_t), out, (int)size, NULL, NULL);
    if (n <= 0) return embla_win_failed();
    for (int i = 0; i < n; i++)
        if (out[i] == '\\') out[i] = '/';
    *length = (size_t)n;
    return embla_win_outcome(ERROR_SUCCESS);
}

embla_outcome embla_system_link(embla_folder folder, const char *name, char *out, size_t size,
                                size_t *length)
{
    embla_win_path path;
    HANDLE file;
    embla_outcome done = embla_win_find(folder, name, &path);
    if (embla_worked(done))
        done = embla_win_open(&path, FILE_READ_ATTRIBUTES, OPEN_EXISTING,
                              FILE_FLAG_OPEN_REPARSE_POINT, &file);
    if (!embla_worked(done)) return done;
    done = read_link(file, out, size, length);
    (void)CloseHandle(file);
    return done;
}

/* ---- the names in a folder ---- */

struct embla_names_list {
    embla_folder folder;
    HANDLE search;
    bool first; /* found.cFileName was not returned yet */
    WIN32_FIND_DATAW found;
    char name[3 * MAX_PATH + 1];
};

embla_outcome embla_system_list(embla_folder folder, embla_names_list **out)
{
    embla_win_path path;
    embla_outcome done = embla_win_find(folder, ".", &path);
    if (!embla_worked(done)) return done;
    size_t length = wcslen(path.text);
    if (length + 3 > EMBLA_WIN_PATH) return embla_win_outcome(ERROR_INVALID_NAME);
    memcpy(path.text + length, is_separator(path.text[length - 1]) ? L"*" : L"\\*",
           (is_separator(path.text[length - 1]) ? 2 : 3) * sizeof(wchar_t));
    embla_names_list *list = calloc(1, sizeof *list);
    if (!list) return embla_win_outcome(ERROR_NOT_ENOUGH_MEMORY);
    list->folder = folder;
    list->search = FindFirstFileW(path.text, &list->found);
    list->first = list->search != INVALID_HANDLE_VALUE;
    if (!list->first && GetLastError() != ERROR_FILE_NOT_FOUND) {
        done = embla_win_failed();
        free(list);
        return done;
    }
    *out = list;
    return embla_win_outcome(ERROR_SUCCESS);
}

embla_outcome embla_system_list_next(embla_names_list *list, const char **name)
{
    *name = NULL;
    if (list->search == INVALID_HANDLE_VALUE) return embla_win_outcome(ERROR_SUCCESS);
    if (!list->first && !FindNextFileW(list->search, &list->found)) {
        DWORD number = GetLastError();
        return embla_win_outcome(number == ERROR_NO_MORE_FILES ? ERROR_SUCCESS : number);
    }
    list->first = false;
    if (!embla_win_narrow(list->found.cFileName, list->name, sizeof list->name))
        return embla_win_failed();
    *name = list->name;
    return embla_win_outcome(ERROR_SUCCESS);
}

void embla_system_list_end(embla_names_list *list)
{
    if (list->search != INVALID_HANDLE_VALUE) (void)FindClose(list->search);
    (void)embla_system_close(list->folder);
    free(list);
}
