/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: errors and open files.
 *
 * A file may be renamed, replaced and removed while it is open, as on other systems, because every
 * handle of ours shares it. There are no permissions like those of chmod: a file is 0644, or 0444
 * if it is read-only, and belongs to the user of this process. A lock is of one byte far beyond the
 * end of the file, because a lock of Windows also stops other handles from reading what it covers.
 */
#include "system/win.h"

#include <stdio.h>
#include <string.h>

/* ---- errors ---- */

typedef struct {
    DWORD number;
    embla_system_error error;
    const char *sentence; /* NULL means that of Windows, which is in the user's language */
} meaning;

enum { QUOTA_EXCEEDED = 1295 }; /* ERROR_DISK_QUOTA_EXCEEDED of newer headers */

static const meaning meanings[] = {
    {ERROR_FILE_NOT_FOUND, EMBLA_SYSTEM_NOT_FOUND, "No such file or directory"},
    {ERROR_PATH_NOT_FOUND, EMBLA_SYSTEM_NOT_FOUND, "No such file or directory"},
    {ERROR_INVALID_DRIVE, EMBLA_SYSTEM_NOT_FOUND, "No such drive"},
    {ERROR_BAD_NETPATH, EMBLA_SYSTEM_NOT_FOUND, NULL},
    {ERROR_BAD_NET_NAME, EMBLA_SYSTEM_NOT_FOUND, NULL},
    {ERROR_DIRECTORY, EMBLA_SYSTEM_NOT_FOUND, "Not a directory"},
    {ERROR_FILE_EXISTS, EMBLA_SYSTEM_EXISTS, "File exists"},
    {ERROR_ALREADY_EXISTS, EMBLA_SYSTEM_EXISTS, "File exists"},
    {ERROR_LOCK_VIOLATION, EMBLA_SYSTEM_BUSY, "Another process has locked it"},
    {ERROR_SHARING_VIOLATION, EMBLA_SYSTEM_BUSY, "Another program has it open; close that program"},
    {ERROR_BUSY, EMBLA_SYSTEM_BUSY, NULL},
    {ERROR_DISK_FULL, EMBLA_SYSTEM_NO_SPACE, "No space left on device"},
    {ERROR_HANDLE_DISK_FULL, EMBLA_SYSTEM_NO_SPACE, "No space left on device"},
    {QUOTA_EXCEEDED, EMBLA_SYSTEM_NO_SPACE, NULL},
    {ERROR_NOT_ENOUGH_MEMORY, EMBLA_SYSTEM_NO_MEMORY, "Cannot allocate memory"},
    {ERROR_OUTOFMEMORY, EMBLA_SYSTEM_NO_MEMORY, "Cannot allocate memory"},
    {ERROR_COMMITMENT_LIMIT, EMBLA_SYSTEM_NO_MEMORY, "The page file is too small"},
    {ERROR_NO_SYSTEM_RESOURCES, EMBLA_SYSTEM_NO_MEMORY, NULL},
    {ERROR_ACCESS_DENIED, EMBLA_SYSTEM_REFUSED, "Permission denied"},
    {ERROR_PRIVILEGE_NOT_HELD, EMBLA_SYSTEM_REFUSED, NULL},
    {ERROR_WRITE_PROTECT, EMBLA_SYSTEM_REFUSED, NULL},
    {ERROR_INVALID_NAME, EMBLA_SYSTEM_REFUSED, "Windows does not allow this name"},
    {ERROR_NO_UNICODE_TRANSLATION, EMBLA_SYSTEM_REFUSED, "Its name is not valid UTF-8"},
    {ERROR_USER_MAPPED_FILE, EMBLA_SYSTEM_BUSY, "A process has it mapped; close that one first"},
    {ERROR_NOT_SUPPORTED, EMBLA_SYSTEM_UNSUPPORTED, "Operation not supported"},
    {ERROR_INVALID_FUNCTION, EMBLA_SYSTEM_UNSUPPORTED, "Operation not supported"},
    {ERROR_CALL_NOT_IMPLEMENTED, EMBLA_SYSTEM_UNSUPPORTED, "Operation not supported"},
    {ERROR_CANT_RESOLVE_FILENAME, EMBLA_SYSTEM_LINK, "Too many levels of symbolic links"},
    {ERROR_OPERATION_ABORTED, EMBLA_SYSTEM_INTERRUPTED, "Interrupted system call"},
    {EMBLA_WIN_IS_FOLDER, EMBLA_SYSTEM_OTHER, "Is a directory"},
    {ERROR_IO_DEVICE, EMBLA_SYSTEM_OTHER, "Input/output error"},
};
enum { MEANINGS = sizeof meanings / sizeof meanings[0] };

embla_outcome embla_win_outcome(DWORD number)
{
    embla_outcome done = {.error = number == ERROR_SUCCESS ? EMBLA_SYSTEM_OK : EMBLA_SYSTEM_OTHER,
                          .number = (int)number};
    for (size_t i = 0; i < MEANINGS; i++)
        if (meanings[i].number == number) done.error = meanings[i].error;
    return done;
}

embla_outcome embla_win_failed(void)
{
    DWORD number = GetLastError();
    return embla_win_outcome(number == ERROR_SUCCESS ? ERROR_IO_DEVICE : number);
}

embla_outcome embla_win_ended(BOOL worked)
{
    return worked ? (embla_outcome){.error = EMBLA_SYSTEM_OK} : embla_win_failed();
}

embla_outcome embla_system_outcome(embla_system_error error)
{
    static const DWORD numbers[] = {
        [EMBLA_SYSTEM_OK] = ERROR_SUCCESS,
        [EMBLA_SYSTEM_NOT_FOUND] = ERROR_FILE_NOT_FOUND,
        [EMBLA_SYSTEM_EXISTS] = ERROR_ALREADY_EXISTS,
        [EMBLA_SYSTEM_BUSY] = ERROR_LOCK_VIOLATION,
        [EMBLA_SYSTEM_NO_SPACE] = ERROR_DISK_FULL,
        [EMBLA_SYSTEM_NO_MEMORY] = ERROR_NOT_ENOUGH_MEMORY,
        [EMBLA_SYSTEM_REFUSED] = ERROR_ACCESS_DENIED,
        [EMBLA_SYSTEM_UNSUPPORTED] = ERROR_NOT_SUPPORTED,
        [EMBLA_SYSTEM_LINK] = ERROR_CANT_RESOLVE_FILENAME,
        [EMBLA_SYSTEM_INTERRUPTED] = ERROR_OPERATION_ABORTED,
        [EMBLA_SYSTEM_OTHER] = ERROR_IO_DEVICE,
    };
    return (embla_outcome){.error = error, .number = (int)numbers[error]};
}

/* The sentence of Windows in English if it has one, without the line's end. */
static bool describe_in(DWORD language, DWORD number, char *out, size_t size)
{
    wchar_t text[256];
    DWORD length = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS |
                                      FORMAT_MESSAGE_MAX_WIDTH_MASK,
                                  NULL, number, language, text, 255, NULL);
    while (length > 0 && (text[length - 1] <= L' ' || text[length - 1] == L'.')) length--;
    text[length] = L'\0';
    return length > 0 && embla_win_narrow(text, out, size);
}

void embla_system_describe(int number, char *out, size_t size)
{
    const DWORD english = MAKELANGID(LANG_ENGLISH, SUBLANG_ENGLISH_US);
    for (size_t i = 0; i < MEANINGS; i++)
        if (meanings[i].number == (DWORD)number && meanings[i].sentence) {
            (void)snprintf(out, size, "%s", meanings[i].sentence);
            return;
        }
    if (!describe_in(english, (DWORD)number, out, size) &&
        !describe_in(0, (DWORD)number, out, size))
        (void)snprintf(out, size, "error %d of Windows", number);
}

/* ---- open files ---- */

enum { PATIENCE = 2000, PAUSE = 20 }; /* milliseconds */

bool embla_win_again(DWORD number, int *tries)
{
    if (number != ERROR_SHARING_VIOLATION || *tries >= PATIENCE / PAUSE) return false;
    (*tries)++;
    Sleep(PAUSE);
    return true;
}

embla_outcome embla_win_open(const embla_win_path *path, DWORD access, DWORD how, DWORD flags,
                             HANDLE *out)
{
    const DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    DWORD number = ERROR_SUCCESS;
    int tries = 0;
    do {
        HANDLE file = CreateFileW(path->text, access, share, NULL, how,
                                  FILE_FLAG_BACKUP_SEMANTICS | flags, NULL);
        if (file != INVALID_HANDLE_VALUE) {
            *out = file;
            return embla_win_outcome(ERROR_SUCCESS);
        }
        number = GetLastError();
    } while (embla_win_again(number, &tries));
    return embla_win_outcome(number);
}

bool embla_win_is_link(HANDLE file)
{
    FILE_ATTRIBUTE_TAG_INFO tag;
    return GetFileInformationByHandleEx(file, FileAttributeTagInfo, &tag, sizeof tag) &&
           (tag.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0 &&
           (tag.ReparseTag == IO_REPARSE_TAG_SYMLINK ||
            tag.ReparseTag == IO_REPARSE_TAG_MOUNT_POINT);
}

static bool is_folder(HANDLE file)
{
    BY_HANDLE_FILE_INFORMATION found;
    return GetFileInformationByHandle(file, &found) &&
           (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

/* What the intents do not allow is found once the file is open. */
static embla_outcome check_intents(HANDLE file, unsigned intents)
{
    if ((intents & (EMBLA_OPEN_NO_LINK | EMBLA_OPEN_NEW)) && embla_win_is_link(file))
        return embla_system_outcome(EMBLA_SYSTEM_LINK);
    if ((intents & EMBLA_OPEN_FOLDER) && !is_folder(file))
        return embla_win_outcome(ERROR_DIRECTORY);
    if ((intents & EMBLA_OPEN_WRITE) && is_folder(file))
        return embla_win_outcome(EMBLA_WIN_IS_FOLDER);
    return embla_win_outcome(ERROR_SUCCESS);
}

embla_outcome embla_system_open(embla_folder folder, const char *name, unsigned intents,
                                unsigned mode, embla_handle *out)
{
    embla_win_path path;
    HANDLE file;
    DWORD how = OPEN_EXISTING, access = 0, flags = 0;
    (void)mode;
    if (intents & EMBLA_OPEN_CREATE) how = OPEN_ALWAYS;
    if (intents & EMBLA_OPEN_NEW) how = CREATE_NEW;
    if (intents & EMBLA_OPEN_READ) access |= GENERIC_READ;
    if (intents & EMBLA_OPEN_WRITE) access |= GENERIC_WRITE;
    if (access == 0) access = FILE_READ_ATTRIBUTES | SYNCHRONIZE;
    if (intents & EMBLA_OPEN_NO_LINK) flags |= FILE_FLAG_OPEN_REPARSE_POINT;
    embla_outcome done = embla_win_find(folder, name, &path);
    if (embla_worked(done)) done = embla_win_open(&path, access, how, flags, &file);
    if (!embla_worked(done)) return done;
    done = check_intents(file, intents);
    if (embla_worked(done))
        *out = (embla_handle)file;
    else
        (void)CloseHandle(file);
    return done;
}

embla_outcome embla_system_close(embla_handle file)
{
    return embla_win_ended(CloseHandle(embla_win_handle(file)));
}

embla_outcome embla_system_again(embla_handle file, embla_handle *out)
{
    HANDLE again, process = GetCurrentProcess();
    if (!DuplicateHandle(process, embla_win_handle(file), process, &again, 0, FALSE,
                         DUPLICATE_SAME_ACCESS))
        return embla_win_failed();
    *out = (embla_handle)again;
    return embla_win_outcome(ERROR_SUCCESS);
}

/* ---- facts ---- */

/* The number of 128 bits; file systems without one have a number of 64 bits. */
static embla_file_id id_of(HANDLE file, const BY_HANDLE_FILE_INFORMATION *found)
{
    embla_file_id id = {.volume = found->dwVolumeSerialNumber};
    FILE_ID_INFO wide;
    if (GetFileInformationByHandleEx(file, FileIdInfo, &wide, sizeof wide)) {
        id.volume = wide.VolumeSerialNumber;
        memcpy(id.id, &wide.FileId, sizeof id.id);
    } else {
        id.id[0] = (uint64_t)found->nFileIndexHigh << 32 | found->nFileIndexLow;
    }
    return id;
}

/* Windows counts 100 nanoseconds from 1601. */
static void set_time(FILETIME time, embla_file_facts *out)
{
    const int64_t unix_epoch = 116444736000000000;
    int64_t ticks =
        (int64_t)((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) - unix_epoch;
    out->seconds = ticks / 10000000;
    out->nanoseconds = ticks % 10000000 * 100;
    if (out->nanoseconds >= 0) return;
    out->nanoseconds += 1000000000;
    out->seconds--;
}

static embla_outcome facts_of(HANDLE file, embla_file_facts *out)
{
    BY_HANDLE_FILE_INFORMATION found;
    FILE_STANDARD_INFO standard;
    DWORD type = GetFileType(file);
    *out = (embla_file_facts){
        .kind = type == FILE_TYPE_PIPE ? EMBLA_IS_PIPE : EMBLA_IS_DEVICE, .mode = 0666, .names = 1};
    if (type != FILE_TYPE_DISK) return embla_win_outcome(ERROR_SUCCESS);
    if (!GetFileInformationByHandle(file, &found)) return embla_win_failed();
    bool folder = (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
    bool fixed = (found.dwFileAttributes & FILE_ATTRIBUTE_READONLY) != 0;
    out->kind = embla_win_is_link(file) ? EMBLA_IS_LINK
                : folder                ? EMBLA_IS_FOLDER
                                        : EMBLA_REGULAR_FILE;
    out->id = id_of(file, &found);
    out->size = folder ? 0 : (uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow;
    out->mode = folder ? 0755 : fixed ? 0444 : 0644;
    set_time(found.ftLastWriteTime, out);
    if (GetFileInformationByHandleEx(file, FileStandardInfo, &standard, sizeof standard))
        out->names = standard.DeletePending ? 0 : standard.NumberOfLinks;
    return embla_win_outcome(ERROR_SUCCESS);
}

embla_outcome embla_system_facts(embla_handle file, embla_file_facts *out)
{
    return facts_of(embla_win_handle(file), out);
}

embla_outcome embla_system_facts_at(embla_folder folder, const char *name, bool follow,
                                    embla_file_facts *out)
{
    embla_win_path path;
    HANDLE file;
    embla_outcome done = embla_win_find(folder, name, &path);
    if (embla_worked(done))
        done = embla_win_open(&path, FILE_READ_ATTRIBUTES, OPEN_EXISTING,
                              follow ? 0 : FILE_FLAG_OPEN_REPARSE_POINT, &file);
    if (!embla_worked(done)) return done;
    done = facts_of(file, out);
    (void)CloseHandle(file);
    return done;
}

/* ---- transfers ---- */

embla_outcome embla_system_read(embla_handle file, uint64_t offset, void *out, size_t bytes,
                                size_t *got)
{
    OVERLAPPED at = {.Offset = (DWORD)(offset & 0xffffffffu), .OffsetHigh = (DWORD)(offset >> 32)};
    DWORD n = 0;
    if (!ReadFile(embla_win_handle(file), out, (DWORD)bytes, &n, &at)) {
        DWORD number = GetLastError();
        if (number != ERROR_HANDLE_EOF && number != ERROR_BROKEN_PIPE)
            return embla_win_outcome(number);
        n = 0;
    }
    *got = n;
    return embla_win_outcome(ERROR_SUCCESS);
}

/* From the end of what was written before: reads have their own offsets. */
embla_outcome embla_system_write(embla_handle file, const void *bytes, size_t count,
                                 size_t *written)
{
    DWORD n = 0;
    if (!WriteFile(embla_win_handle(file), bytes, (DWORD)count, &n, NULL))
        return embla_win_failed();
    *written = n;
    return embla_win_outcome(ERROR_SUCCESS);
}

embla_outcome embla_system_direct(embla_handle file, embla_handle *out)
{
    const DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    HANDLE direct = ReOpenFile(embla_win_handle(file), GENERIC_READ, share, FILE_FLAG_NO_BUFFERING);
    if (direct == INVALID_HANDLE_VALUE) return embla_win_failed();
    *out = (embla_handle)direct;
    return embla_win_outcome(ERROR_SUCCESS);
}

void embla_system_forget(embla_handle file, uint64_t offset, uint64_t bytes)
{
    (void)file, (void)offset, (void)bytes;
}

/* ---- sizes ---- */

embla_outcome embla_system_set_size(embla_handle file, uint64_t size)
{
    FILE_END_OF_FILE_INFO end = {.EndOfFile = {.QuadPart = (LONGLONG)size}};
    return embla_win_ended(
        SetFileInformationByHandle(embla_win_handle(file), FileEndOfFileInfo, &end, sizeof end));
}

/* A file has space for all of its size, because ours are not sparse: so only a longer one needs
 * more. */
embla_outcome embla_system_allocate(embla_handle file, uint64_t offset, uint64_t bytes)
{
    embla_file_facts found;
    embla_outcome done = embla_system_facts(file, &found);
    if (!embla_worked(done) || offset + bytes <= found.size) return done;
    return embla_system_set_size(file, offset + bytes);
}

embla_outcome embla_system_set_mode(embla_handle file, unsigned mode)
{
    (void)file, (void)mode;
    return embla_win_outcome(ERROR_SUCCESS);
}

/* Windows cannot sync a folder; it writes what changes the names in one to its journal. */
embla_outcome embla_system_sync(embla_handle file)
{
    if (FlushFileBuffers(embla_win_handle(file))) return embla_win_outcome(ERROR_SUCCESS);
    embla_outcome done = embla_win_failed();
    return is_folder(embla_win_handle(file)) ? embla_win_outcome(ERROR_SUCCESS) : done;
}

embla_outcome embla_system_space(embla_handle file, uint64_t *out)
{
    embla_win_path path;
    ULARGE_INTEGER available;
    embla_outcome done = embla_win_path_of(embla_win_handle(file), &path);
    if (!embla_worked(done)) return done;
    wchar_t *last = wcsrchr(path.text, L'\\');
    if (last && !is_folder(embla_win_handle(file))) last[1] = L'\0';
    if (!GetDiskFreeSpaceExW(path.text, &available, NULL, NULL)) return embla_win_failed();
    *out = available.QuadPart;
    return embla_win_outcome(ERROR_SUCCESS);
}

/* ---- locks ---- */

static OVERLAPPED lock_place(void)
{
    return (OVERLAPPED){.Offset = 0, .OffsetHigh = 0x7fff0000};
}

/* A second lock by the same handle replaces the first. */
embla_outcome embla_system_lock(embla_handle file, embla_lock_kind kind)
{
    OVERLAPPED at = lock_place();
    DWORD flags = LOCKFILE_FAIL_IMMEDIATELY;
    if (kind == EMBLA_LOCK_ALONE) flags |= LOCKFILE_EXCLUSIVE_LOCK;
    embla_system_unlock(file);
    embla_outcome done = embla_win_ended(LockFileEx(embla_win_handle(file), flags, 0, 1, 0, &at));
    if (done.number == ERROR_IO_PENDING) done = embla_win_outcome(ERROR_LOCK_VIOLATION);
    return done;
}

void embla_system_unlock(embla_handle file)
{
    OVERLAPPED at = lock_place();
    (void)UnlockFileEx(embla_win_handle(file), 0, 1, 0, &at);
}

bool embla_system_lock_holder(embla_handle file, long *process, unsigned *user)
{
    (void)file, (void)process, (void)user;
    return false;
}
