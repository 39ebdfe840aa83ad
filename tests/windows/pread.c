/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes at a place. In a library, so that a test can have its own. */
#include "posix.h"

#include <windows.h>

static OVERLAPPED place(off_t offset)
{
    return (OVERLAPPED){.Offset = (DWORD)offset, .OffsetHigh = (DWORD)((uint64_t)offset >> 32)};
}

ssize_t pread(int file, void *out, size_t bytes, off_t offset)
{
    DWORD moved = 0;
    OVERLAPPED at = place(offset);
    if (ReadFile((HANDLE)_get_osfhandle(file), out, (DWORD)bytes, &moved, &at)) return moved;
    return GetLastError() == ERROR_HANDLE_EOF ? 0 : -1;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset)
{
    DWORD moved = 0;
    OVERLAPPED at = place(offset);
    return WriteFile((HANDLE)_get_osfhandle(file), bytes, (DWORD)count, &moved, &at) ? moved : -1;
}
