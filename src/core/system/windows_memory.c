/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: memory and maps of files. Windows sets memory aside when it is asked for, not when it is
 * accessed: a table of 8 GB of which three rows are used needs 8 GB of memory and page file. A
 * mapped file cannot be cut short, so no handler for lost pages is needed on disks of this machine;
 * a disk of another machine that disappears ends the process. */
#include "system/system_memory.h"

#include "system/win.h"

#include <malloc.h>

/* ---- pages and blocks ---- */

size_t embla_system_page(void)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwPageSize;
}

/* Large pages are only for users with the right to lock memory. */
size_t embla_system_huge_page(void)
{
    return 0;
}

void *embla_system_take(size_t bytes)
{
    return VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void embla_system_give(void *memory, size_t bytes)
{
    (void)bytes;
    (void)VirtualFree(memory, 0, MEM_RELEASE);
}

void *embla_system_take_block(size_t alignment, size_t bytes)
{
    return _aligned_malloc(bytes, alignment);
}

void embla_system_give_block(void *block)
{
    _aligned_free(block);
}

void embla_system_small_pages(void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
}

int64_t embla_system_huge_bytes(const void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
    return -1;
}

/* The page file and the machine's memory limit what can be allocated at once. */
bool embla_system_is_limited(void)
{
    return true;
}

/* ---- maps of files ---- */

embla_outcome embla_system_map(embla_handle file, size_t bytes, embla_map_kind kind, void **out)
{
    static const DWORD protections[] = {[EMBLA_MAP_READ] = PAGE_READONLY,
                                        [EMBLA_MAP_PRIVATE] = PAGE_WRITECOPY,
                                        [EMBLA_MAP_SHARED] = PAGE_READWRITE};
    static const DWORD accesses[] = {[EMBLA_MAP_READ] = FILE_MAP_READ,
                                     [EMBLA_MAP_PRIVATE] = FILE_MAP_COPY,
                                     [EMBLA_MAP_SHARED] = FILE_MAP_READ | FILE_MAP_WRITE};
    HANDLE map = CreateFileMappingW(embla_win_handle(file), NULL, protections[kind], 0, 0, NULL);
    if (!map) return embla_win_failed();
    void *memory = MapViewOfFile(map, accesses[kind], 0, 0, bytes);
    embla_outcome done = embla_win_ended(memory != NULL);
    (void)CloseHandle(map); /* the view keeps it */
    if (memory) *out = memory;
    return done;
}

void embla_system_unmap(void *memory, size_t bytes)
{
    (void)bytes;
    (void)UnmapViewOfFile(memory);
}

embla_outcome embla_system_random_order(void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
    return embla_win_outcome(ERROR_SUCCESS);
}

embla_outcome embla_system_resident(void *memory, size_t bytes, unsigned char *flags)
{
    (void)memory, (void)bytes, (void)flags;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

bool embla_system_huge_shared(void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
    return false;
}

void embla_system_touch_huge(const void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
}

/* ---- lost pages ---- */

embla_outcome embla_system_guard(bool (*is_ours)(uintptr_t address))
{
    (void)is_ours;
    return embla_win_outcome(ERROR_SUCCESS);
}
