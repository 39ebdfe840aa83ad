/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of WebAssembly: one block of at most 4 GiB, which grows and never shrinks. No page of it
 * can be protected, shared or left without memory; so a map of a file is a copy of it. */
#include "system/system_memory.h"

#include "system/posix.h"

#include <stdlib.h>
#include <string.h>

/* Only a unit of alignment here: the same as on most systems. */
enum { PAGE = 4096 };

size_t embla_system_page(void)
{
    return PAGE;
}

size_t embla_system_huge_page(void)
{
    return 0;
}

void *embla_system_take(size_t bytes)
{
    void *memory = aligned_alloc(PAGE, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

void embla_system_give(void *memory, size_t bytes)
{
    (void)bytes;
    free(memory);
}

void *embla_system_take_block(size_t alignment, size_t bytes)
{
    return aligned_alloc(alignment, bytes);
}

void embla_system_give_block(void *block)
{
    free(block);
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

bool embla_system_is_limited(void)
{
    return true;
}

/* ---- maps of files ---- */

static embla_outcome read_all(embla_handle file, char *out, size_t bytes)
{
    size_t got = 0;
    for (size_t done = 0; done < bytes; done += got) {
        embla_outcome read = embla_system_read(file, done, out + done, bytes - done, &got);
        if (!embla_worked(read)) return read;
        if (got == 0) return embla_system_outcome(EMBLA_SYSTEM_OTHER); /* the file was cut short */
    }
    return embla_posix_ended(0);
}

/* A copy cannot write to the file. */
embla_outcome embla_system_map(embla_handle file, size_t bytes, embla_map_kind kind, void **out)
{
    if (kind == EMBLA_MAP_SHARED) return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
    if (bytes > SIZE_MAX - PAGE) return embla_system_outcome(EMBLA_SYSTEM_NO_MEMORY);
    size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    char *memory = aligned_alloc(PAGE, whole);
    if (!memory) return embla_system_outcome(EMBLA_SYSTEM_NO_MEMORY);
    embla_outcome done = read_all(file, memory, bytes);
    memset(memory + bytes, 0, whole - bytes);
    if (embla_worked(done))
        *out = memory;
    else
        free(memory);
    return done;
}

void embla_system_unmap(void *memory, size_t bytes)
{
    (void)bytes;
    free(memory);
}

embla_outcome embla_system_random_order(void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
    return embla_posix_ended(0);
}

/* The copy is in memory. */
embla_outcome embla_system_resident(void *memory, size_t bytes, unsigned char *flags)
{
    (void)memory;
    memset(flags, 1, (bytes + PAGE - 1) / PAGE);
    return embla_posix_ended(0);
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

/* No page of a copy can be lost. */
embla_outcome embla_system_guard(bool (*is_ours)(uintptr_t address))
{
    (void)is_ours;
    return embla_posix_ended(0);
}
