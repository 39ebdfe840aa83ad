/* SPDX-License-Identifier: Apache-2.0 */
/* Part of every test program for Windows: the functions of Unix that posix.h promises, made of
 * those of Windows. Nothing here passes through the library.
 */
#include "posix.h"

#include <windows.h>

#include <psapi.h>

#include "sys/mman.h"
#include "sys/resource.h"

/* Files are bytes, and no window asks what to do after a failure. */
__attribute__((constructor)) static void begin(void)
{
    _fmode = _O_BINARY;
    (void)_setmode(1, _O_BINARY);
    (void)SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
    (void)setvbuf(stdout, NULL, _IONBF, 0);
}

/* ---- memory ---- */

/* Memory of VirtualAlloc begins where that of malloc never does. */
void *aligned_alloc(size_t alignment, size_t bytes)
{
    if (alignment > 65536 || (alignment & (alignment - 1)) != 0) return NULL;
    return VirtualAlloc(NULL, bytes ? bytes : 1, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void __real_free(void *memory);
void __wrap_free(void *memory)
{
    MEMORY_BASIC_INFORMATION found;
    if (memory && ((uintptr_t)memory & 65535) == 0 &&
        VirtualQuery(memory, &found, sizeof found) == sizeof found &&
        found.AllocationBase == memory)
        (void)VirtualFree(memory, 0, MEM_RELEASE);
    else
        __real_free(memory);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    (void)protection, (void)offset;
    if (at || file >= 0 || !(flags & MAP_ANONYMOUS)) {
        (void)test_lacks("this test maps a file by the call of Unix");
        return MAP_FAILED;
    }
    void *memory = VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    return memory ? memory : MAP_FAILED;
}

int munmap(void *memory, size_t bytes)
{
    (void)bytes;
    return VirtualFree(memory, 0, MEM_RELEASE) ? 0 : -1;
}

int mprotect(void *memory, size_t bytes, int protection)
{
    DWORD before;
    return VirtualProtect(memory, bytes, protection ? PAGE_READWRITE : PAGE_NOACCESS, &before) ? 0
                                                                                               : -1;
}

long sysconf(int what)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return what == _SC_PAGESIZE ? (long)info.dwPageSize : -1;
}

void *memmem(const void *in, size_t size, const void *part, size_t count)
{
    const char *at = in;
    for (size_t i = 0; i + count <= size; i++)
        if (memcmp(at + i, part, count) == 0) return (void *)(uintptr_t)(at + i);
    return NULL;
}

/* ---- the process ---- */

int setenv(const char *name, const char *value, int replace)
{
    if (!replace && getenv(name)) return 0;
    return _putenv_s(name, value);
}

int unsetenv(const char *name)
{
    return _putenv_s(name, "");
}

/* Instead of the C library's, which would give the command to cmd.exe. */
int __wrap_system(const char *command)
{
    (void)command;
    return test_lacks("Windows has no shell of Unix");
}

int chroot(const char *path)
{
    (void)path;
    return LACKS_FORK;
}

/* A part of the library for Linux; its case is left out. */
int embla_linux_quota(const char *proc, const char *groups)
{
    (void)proc, (void)groups;
    return 0;
}

static struct timeval time_of(FILETIME t)
{
    uint64_t units = (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime;
    return (struct timeval){.tv_sec = (long)(units / 10000000),
                            .tv_usec = (long)(units % 10000000 / 10)};
}

int getrusage(int who, struct rusage *out)
{
    PROCESS_MEMORY_COUNTERS memory = {.cb = sizeof memory};
    FILETIME begun, ended, kernel, user;
    (void)who;
    if (!K32GetProcessMemoryInfo(GetCurrentProcess(), &memory, sizeof memory) ||
        !GetProcessTimes(GetCurrentProcess(), &begun, &ended, &kernel, &user))
        return -1;
    out->ru_maxrss = (long)(memory.PeakWorkingSetSize / 1024);
    out->ru_utime = time_of(user);
    out->ru_stime = time_of(kernel);
    return 0;
}

int windows_poll(void *files, unsigned long count, int milliseconds)
{
    if (count > 0 && files) return test_lacks("Windows has no event that is a file");
    Sleep((DWORD)milliseconds);
    return 0;
}

/* ---- files ---- */

int windows_fcntl(intptr_t handle)
{
    DWORD flags;
    return GetHandleInformation((HANDLE)handle, &flags) ? 0 : -1;
}

char *mkdtemp(char *path)
{
    static unsigned count;
    char *end = path + strlen(path) - 6;
    unsigned seed = (unsigned)GetCurrentProcessId() * 2654435761u + (unsigned)GetTickCount();
    for (int tries = 0; tries < 1000; tries++) {
        unsigned random = seed + count++ * 40503u;
        for (int i = 0; i < 6; i++, random = random / 32 + random * 2654435761u)
            end[i] = "0123456789abcdefghijklmnopqrstuv"[random % 32];
        if (_mkdir(path) == 0) return path;
        if (errno != EEXIST) return NULL;
    }
    return NULL;
}

/* A file of Windows can be made read-only, and no more. */
int windows_chmod(const char *path, unsigned mode)
{
    if (!path || !(mode & 0400)) return test_lacks("Windows has no mode of a file");
    return _chmod(path, mode & 0200 ? _S_IREAD | _S_IWRITE : _S_IREAD);
}

#undef rename
int windows_rename(const char *from, const char *to)
{
    return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING) ? 0 : -1;
}

static const uint64_t EPOCH = 11644473600ull; /* seconds between 1601 and 1970 */

static struct timespec unix_time(FILETIME t)
{
    uint64_t units = (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime;
    return (struct timespec){.tv_sec = (time_t)(units / 10000000 - EPOCH),
                             .tv_nsec = (long)(units % 10000000 * 100)};
}

static FILETIME windows_time(struct timespec t)
{
    uint64_t units = ((uint64_t)t.tv_sec + EPOCH) * 10000000 + (uint64_t)t.tv_nsec / 100;
    return (FILETIME){.dwHighDateTime = (DWORD)(units >> 32), .dwLowDateTime = (DWORD)units};
}

static int facts(HANDLE file, struct windows_stat *out)
{
    BY_HANDLE_FILE_INFORMATION found;
    if (!GetFileInformationByHandle(file, &found)) {
        errno = EBADF;
        return -1;
    }
    bool folder = found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
    bool read_only = found.dwFileAttributes & FILE_ATTRIBUTE_READONLY;
    *out = (struct windows_stat){
        .st_dev = found.dwVolumeSerialNumber,
        .st_ino = (uint64_t)found.nFileIndexHigh << 32 | found.nFileIndexLow,
        .st_mode = folder ? _S_IFDIR | 0755 : _S_IFREG | (read_only ? 0444 : 0644),
        .st_nlink = found.nNumberOfLinks,
        .st_size = (off_t)((uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow),
        .st_atim = unix_time(found.ftLastAccessTime),
        .st_mtim = unix_time(found.ftLastWriteTime),
    };
    return 0;
}

static HANDLE opened(const char *path, DWORD access)
{
    return CreateFileA(path, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                       OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
}

int windows_stat(const char *path, struct windows_stat *out)
{
    HANDLE file = opened(path, FILE_READ_ATTRIBUTES);
    if (file == INVALID_HANDLE_VALUE) {
        errno = ENOENT;
        return -1;
    }
    int done = facts(file, out);
    (void)CloseHandle(file);
    return done;
}

int windows_fstat(int file, struct windows_stat *out)
{
    return facts((HANDLE)_get_osfhandle(file), out);
}

/* Instead of the C library's: it says why a file is not cut. */
int __wrap_truncate(const char *path, off32_t size)
{
    HANDLE file = opened(path, GENERIC_WRITE);
    LARGE_INTEGER end = {.QuadPart = size};
    bool done = SetFilePointerEx(file, end, NULL, FILE_BEGIN) && SetEndOfFile(file);
    bool mapped = !done && GetLastError() == ERROR_USER_MAPPED_FILE;
    (void)CloseHandle(file);
    if (mapped) return test_lacks("Windows does not cut a file that is mapped");
    return done ? 0 : -1;
}

static int set_times(HANDLE file, const struct timespec *times)
{
    FILETIME access = windows_time(times[0]), change = windows_time(times[1]);
    return SetFileTime(file, NULL, times[0].tv_nsec == UTIME_OMIT ? NULL : &access, &change) ? 0
                                                                                             : -1;
}

int futimens(int file, const struct timespec *times)
{
    return set_times((HANDLE)_get_osfhandle(file), times);
}

int windows_set_times(const char *path, const struct timespec *times)
{
    HANDLE file = opened(path, FILE_WRITE_ATTRIBUTES);
    if (file == INVALID_HANDLE_VALUE) return -1;
    int done = set_times(file, times);
    (void)CloseHandle(file);
    return done;
}
