/* SPDX-License-Identifier: Apache-2.0 */
/* Linux: maps of files, memory and huge pages. */
#include "system/system_memory.h"

#include "system/posix.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Numbers of madvise that the headers of older C libraries lack; an older kernel rejects them. */
enum {
    COLLAPSE = 25,      /* since Linux 6.1 */
    POPULATE_READ = 22, /* since Linux 5.14 */
    POPULATE_WRITE = 23 /* since Linux 5.14 */
};

/* ---- pages ---- */

/* With pages of 64 KiB a huge page has 512 MiB: aligning to it would waste address space, and a
 * table of one row would take as much. */
enum { HUGE_MOST = 32 << 20, HUGE_USUAL = 2 << 20 };

static size_t read_huge_page(void)
{
    unsigned long long bytes = 0;
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "re");
    bool found = file && fscanf(file, "%llu", &bytes) == 1;
    if (file) (void)fclose(file);
    if (!found) return embla_system_page() == 4096 ? HUGE_USUAL : 0; /* the kernel does not tell */
    return bytes <= HUGE_MOST ? (size_t)bytes : 0;
}

size_t embla_system_huge_page(void)
{
    static _Atomic size_t known = SIZE_MAX;
    size_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (bytes != SIZE_MAX) return bytes;
    bytes = read_huge_page();
    atomic_store_explicit(&known, bytes, memory_order_relaxed);
    return bytes;
}

/* ---- memory ---- */

/* Maps one huge page more than asked, and unmaps both ends. */
void *embla_system_take(size_t bytes)
{
    size_t huge = embla_system_huge_page(), more = bytes >= huge ? huge : 0;
    if (bytes > SIZE_MAX - more) return NULL;
    char *base = mmap(NULL, bytes + more, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return NULL;
    if (more == 0) return base;
    size_t front = (more - (uintptr_t)base % more) % more;
    if (front > 0) (void)munmap(base, front);
    if (front < more) (void)munmap(base + front + bytes, more - front);
    embla_system_huge_pages(base + front, bytes);
    return base + front;
}

void embla_system_huge_pages(void *memory, size_t bytes)
{
    (void)madvise(memory, bytes, MADV_HUGEPAGE); /* a failure means that there are none */
}

void embla_system_small_pages(void *memory, size_t bytes)
{
    (void)madvise(memory, bytes,
                  MADV_NOHUGEPAGE); /* a failure means that there are no huge pages */
}

/* ---- huge pages ---- */

/* State while smaps is parsed line by line. */
typedef struct {
    uintptr_t from, to; /* the memory in question */
    uint64_t overlap;   /* bytes of it in the current range of smaps */
    uint64_t found;
} smaps_count;

static void parse_smaps_line(smaps_count *a, const char *line)
{
    static const char *const kinds[] = {"AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"};
    unsigned long long from, to, kilobytes;
    if (sscanf(line, "%llx-%llx ", &from, &to) == 2) {
        uint64_t low = from > a->from ? from : a->from, high = to < a->to ? to : a->to;
        a->overlap = high > low ? high - low : 0;
        return;
    }
    for (size_t k = 0; a->overlap > 0 && k < sizeof kinds / sizeof kinds[0]; k++) {
        size_t length = strlen(kinds[k]);
        if (strncmp(line, kinds[k], length) != 0) continue;
        if (sscanf(line + length, "%llu", &kilobytes) != 1) continue;
        /* the range may be longer than our memory; count only our part */
        uint64_t bytes = (uint64_t)kilobytes * 1024;
        a->found += bytes < a->overlap ? bytes : a->overlap;
    }
}

int64_t embla_system_huge_bytes(const void *memory, size_t bytes)
{
    smaps_count a = {.from = (uintptr_t)memory, .to = (uintptr_t)memory + bytes};
    char line[4096];
    FILE *smaps = fopen("/proc/self/smaps", "re");
    if (!smaps) return -1;
    while (fgets(line, sizeof line, smaps)) parse_smaps_line(&a, line);
    bool whole = ferror(smaps) == 0;
    (void)fclose(smaps);
    return whole ? (int64_t)a.found : -1;
}

/* ---- maps ---- */

/* Finds an address aligned to a huge page with `bytes` free bytes after it. The address is only a
 * hint: another thread may map something there first. */
static void *find_aligned(size_t bytes)
{
    size_t huge = embla_system_huge_page();
    if (huge == 0 || bytes < huge || bytes > SIZE_MAX - huge) return NULL;
    void *found = mmap(NULL, bytes + huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) return NULL;
    (void)munmap(found, bytes + huge);
    return (void *)(((uintptr_t)found + huge - 1) & ~(uintptr_t)(huge - 1));
}

embla_outcome embla_system_map(embla_handle file, size_t bytes, embla_map_kind kind, void **out)
{
    int protection = kind == EMBLA_MAP_READ ? PROT_READ : PROT_READ | PROT_WRITE;
    /* without MAP_NORESERVE the system would set memory aside for a copy of the whole file */
    int flags = kind == EMBLA_MAP_PRIVATE ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED;
    void *memory = mmap(find_aligned(bytes), bytes, protection, flags, (int)file, 0);
    if (memory == MAP_FAILED) return embla_posix_failed();
    *out = memory;
    return embla_posix_ended(0);
}

embla_outcome embla_system_resident(void *memory, size_t bytes, unsigned char *flags)
{
    return embla_posix_ended(mincore(memory, bytes, flags));
}

/* MADV_HUGEPAGE alone is not enough: most systems do not use huge pages for files in memory.
 * MADV_COLLAPSE works, but needs at least one existing page in each huge page. MADV_POPULATE_WRITE
 * creates that page; if the file system is full it returns an error and raises no signal. Before
 * anything is written, a collapse copies one page and fills the others with zeros. */
bool embla_system_huge_shared(void *memory, size_t bytes)
{
    int failures = 0; /* in a row */
    size_t page = embla_system_page(), huge = embla_system_huge_page();
    if (huge == 0) return false;
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    for (size_t at = 0; at + huge <= bytes && failures < 4; at += huge) {
        char *start = (char *)memory + at;
        if (madvise(start, page, POPULATE_WRITE) != 0) return false;
        failures = madvise(start, huge, COLLAPSE) == 0 ? 0 : failures + 1;
    }
    return failures < 4;
}

void embla_system_touch_huge(const void *memory, size_t bytes)
{
    size_t page = embla_system_page(), huge = embla_system_huge_page();
    for (size_t at = 0; huge > 0 && at < bytes; at += huge)
        (void)madvise((char *)(uintptr_t)memory + at, page, POPULATE_READ);
}
