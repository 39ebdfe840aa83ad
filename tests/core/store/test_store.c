/* SPDX-License-Identifier: Apache-2.0 */
/* One table, all placements, the same bytes: rows of giant tables' sizes (160, 264 and 144
 * bytes, in many parts, in one plane and in two) are fetched at random and compared with what
 * the test wrote. Then what stands around it: views, hooks, buffers, progress, verify, and every
 * allocation and every call of the system that fails.
 */
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "files/io.h"
#include "slow.h"
#include "store/store.h"
#include "store_tables.h"

/* ---- placements ---- */

enum { WAYS = 7 };
static const embla_placement places[WAYS] = {
    EMBLA_PLACEMENT_RAM,    EMBLA_PLACEMENT_RAM,    EMBLA_PLACEMENT_MAPPED, EMBLA_PLACEMENT_READ,
    EMBLA_PLACEMENT_DIRECT, EMBLA_PLACEMENT_DIRECT, EMBLA_PLACEMENT_DIRECT};
static const embla_reader_kind readers[WAYS] = {
    [4] = EMBLA_READER_AUTO, [5] = EMBLA_READER_PREAD, [6] = EMBLA_READER_BUFFERED};

/* Opens it one of these ways; the second with a buffer, to be freed. */
static embla_status open_way(const table *t, int way, void **buffer, embla_store **out)
{
    embla_store_options options = {.placement = places[way], .threads = 2, .reader = readers[way]};
    size_t bytes = ((size_t)t->rows * t->row_bytes + 63) / 64 * 64;
    *buffer = NULL;
    if (way == 1) {
        *buffer = options.buffer = aligned_alloc(64, bytes);
        assert_non_null(*buffer);
        options.buffer_bytes = (size_t)t->rows * t->row_bytes;
    }
    return embla_store_open_extents(&t->format, t->extents, t->count, &options, out);
}

/* Asked before and after, as a lookup does it. */
static embla_status fetch(const embla_store *store, const int64_t *rows, size_t count, size_t known,
                          const embla_row_part *part, void *out, size_t stride)
{
    const embla_row_source source = embla_store_source(store);
    const embla_read_job job = {.rows = rows,
                                .count = count,
                                .known = known,
                                .part = part,
                                .out = out,
                                .out_stride = stride};
    EMBLA_TRY(embla_source_check(&source));
    EMBLA_TRY(embla_source_read(&source, &job));
    return embla_source_check(&source);
}

static void check_rows(const table *t, const int64_t *rows, size_t count, size_t known,
                       const embla_store *store, size_t first, size_t n)
{
    static unsigned char out[512 * 512];
    embla_row_part part;
    assert_ok(embla_row_part_of(&store->row, first, n, &part));
    size_t stride = part.bytes + 8;
    assert_true((count + 1) * stride <= sizeof out);
    memset(out, CHECK_MARK, (count + 1) * stride);
    assert_ok(fetch(store, rows, count, known, &part, out, stride));
    for (size_t i = 0; i < count; i++) {
        const unsigned char *row = t->truth + (size_t)rows[i] * t->row_bytes;
        if (memcmp(out + i * stride, row + part.code_at, part.code_bytes) != 0 ||
            memcmp(out + i * stride + part.code_bytes, row + t->code_bytes + part.scale_at,
                   part.scale_bytes) != 0)
            fail_msg("%s: row %" PRId64 " is not what was written", store->placement->name,
                     rows[i]);
        check_marks(out + i * stride + part.bytes, out + (i + 1) * stride);
    }
    check_marks(out + count * stride, out + (count + 1) * stride);
}

/* Random rows in batches of random sizes: many twice, the first and the last often. */
static size_t check_random(const table *t, const embla_store *store, size_t wanted)
{
    uint64_t seed = (uint64_t)t->rows + t->row_bytes;
    static int64_t rows[544];
    size_t done = 0;
    while (done < wanted) {
        size_t count = 1 + check_below(&seed, 400), more = check_below(&seed, 100);
        for (size_t i = 0; i < count + more; i++) {
            uint64_t kind = check_below(&seed, 16);
            rows[i] = kind == 0              ? 0
                      : kind == 1            ? t->rows - 1
                      : kind == 2 && i > 0   ? rows[i - 1]
                      : kind == 3 && i > 100 ? rows[i - 100]
                                             : (int64_t)check_below(&seed, (uint64_t)t->rows);
        }
        /* What is not known is not looked at. */
        for (size_t i = 0; i < 16; i++) rows[count + more + i] = INT64_MAX / 4096;
        check_rows(t, rows, count, count + more, store, 0, 0);
        done += count;
    }
    return done;
}

static void every_placement_returns_what_was_written(void **state)
{
    size_t live = embla_mem_live(), files = embla_io_live();
    (void)state;
    for (int which = 0; which < TABLES; which++) {
        table t;
        make(&t, which, which == 0 ? 32000 : 6001);
        for (int way = 0; way < WAYS; way++) {
            embla_store *store = NULL;
            embla_store_info info;
            void *buffer;
            assert_ok(open_way(&t, way, &buffer, &store));
            size_t done = check_random(&t, store, which < 3 ? 280000 / 3 + 1 : 20000);
            if (which < 3) assert_true(3 * done >= 280000);
            assert_ok(embla_store_describe(store, &info));
            assert_int_equal(info.rows, t.rows);
            assert_int_equal(info.row_bytes, t.row_bytes);
            assert_int_equal(info.bytes, t.rows * (int64_t)t.row_bytes);
            assert_int_equal(info.parts, t.count);
            assert_int_equal(info.placement, places[way]);
            assert_true(info.format.dim == t.format.dim && info.format.dtype == t.format.dtype);
            /* All of it has been touched, and the page cache may have lost little since. */
            if (places[way] == EMBLA_PLACEMENT_DIRECT)
                assert_int_equal(info.resident, 0);
            else if (info.resident >= 0) /* the system tells */
                assert_in_range(info.resident, info.bytes / 10 * 9, info.bytes);
            assert_null(info.shared);
            assert_false(info.built);
            embla_store_free(store);
            free(buffer);
        }
        finish(&t);
    }
    assert_int_equal(embla_mem_live(), live);
    assert_int_equal(embla_io_live(), files);
}

static void rows_that_straddle_pages_are_among_them(void **state)
{
    table t;
    (void)state;
    make(&t, 0, 32000);
    for (int way = 0; way < WAYS; way++) {
        embla_store *store = NULL;
        void *buffer;
        size_t found = 0;
        assert_ok(open_way(&t, way, &buffer, &store));
        for (int64_t row = 0; row < t.rows; row++) {
            const embla_extent_at *e = embla_extents_find(store, row);
            uint64_t at = e->offset[0] + (uint64_t)(row - e->first) * e->stride[0];
            if (at / 4096 == (at + t.row_bytes - 1) / 4096) continue;
            check_rows(&t, &row, 1, 1, store, 0, 0);
            found++;
        }
        assert_true(found > 1000);
        embla_store_free(store);
        free(buffer);
    }
    finish(&t);
}

static void parts_of_rows_are_returned_by_every_placement(void **state)
{
    static const size_t slices[][2] = {{0, 32}, {32, 0}, {224, 32}, {96, 64}, {0, 256}};
    uint64_t seed = 3;
    (void)state;
    for (int which = 2; which < TABLES; which++) {
        table t;
        make(&t, which, 501);
        for (int way = 0; way < WAYS; way++) {
            embla_store *store = NULL;
            void *buffer;
            int64_t rows[70];
            assert_ok(open_way(&t, way, &buffer, &store));
            for (size_t i = 0; i < 70; i++) rows[i] = (int64_t)check_below(&seed, 501);
            for (size_t i = 0; i < COUNT_OF(slices); i++)
                for (size_t count = 0; count < 40; count += 13)
                    check_rows(&t, rows, count, 70, store, slices[i][0], slices[i][1]);
            embla_store_free(store);
            free(buffer);
        }
        finish(&t);
    }
}

static void results_do_not_depend_on_threads_or_kernels(void **state)
{
    static const int threads[] = {1, 2, 3, 4, 8, 0};
    (void)state;
    for (int which = 0; which < 4; which++) {
        table t;
        make(&t, which, which == 0 ? 90000 : 40000); /* several windows */
        for (size_t i = 0; i < COUNT_OF(threads); i++) {
            embla_store_options options = {.threads = threads[i]};
            embla_store *store = NULL;
            embla_kernels_use(embla_kernels_find(check_sets[i % CHECK_SETS]));
            assert_ok(embla_store_open_extents(&t.format, t.extents, t.count, &options, &store));
            assert_memory_equal(store->data, t.truth, (size_t)t.rows * t.row_bytes);
            check_random(&t, store, 1000);
            embla_store_free(store);
        }
        embla_kernels_use(NULL);
        finish(&t);
    }
}

/* ---- view ---- */

static void a_view_is_the_caller_s_memory(void **state)
{
    table t;
    embla_store *store = NULL;
    embla_store_info info;
    embla_verify_report verified;
    (void)state;
    make(&t, 2, 300);
    assert_ok(embla_store_view(&t.format, 300, t.truth, 300 * 264, 0, &store));
    check_random(&t, store, 2000);
    assert_ptr_equal(store->data, t.truth);
    assert_ok(embla_store_describe(store, &info));
    assert_int_equal(info.parts, 0);
    assert_int_equal(info.placement, EMBLA_PLACEMENT_VIEW);
    assert_string_equal(embla_placement_name(info.placement), "view");
    assert_int_equal(info.bytes, 300 * 264);
    assert_int_equal(info.resident, info.bytes);
    assert_int_equal(info.huge_bytes, -1);
    assert_ok(embla_store_warm(store, NULL));
    assert_status(embla_store_verify(store, 0, 1, &verified), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("a view has no file");
    embla_store_free(store);
    embla_store_free(NULL);
    finish(&t);
}

static void views_that_do_not_fit_are_refused(void **state)
{
    embla_store *store = NULL;
    static char bytes[1000];
    const embla_row_format bad = {.dim = 30, .dtype = EMBLA_Q4_0};
    (void)state;
    assert_ok(embla_store_view(&qwen, 6, bytes, 960, 0, &store));
    embla_store_free(store);
    assert_ok(embla_store_view(&qwen, 5, bytes, 1000, 210, &store)); /* the last has no gap */
    embla_store_free(store);
    store = NULL;
    assert_status(embla_store_view(&qwen, 6, bytes, 959, 0, &store), EMBLA_ERR_SHAPE);
    assert_error_has("6 rows, 160 bytes apart, need 960 bytes, but data_bytes is 959");
    assert_status(embla_store_view(&qwen, 5, bytes, 999, 210, &store), EMBLA_ERR_SHAPE);
    assert_status(embla_store_view(&qwen, 1, bytes, 1000, 159, &store), EMBLA_ERR_SHAPE);
    assert_error_has("the row stride is 159 bytes, less than a row's 160");
    assert_status(embla_store_view(&qwen, 0, bytes, 1000, 0, &store), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_view(&qwen, -1, bytes, 1000, 0, &store), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_view(&qwen, ((int64_t)1 << 40) + 1, bytes, SIZE_MAX, 0, &store),
                  EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_view(&qwen, (int64_t)1 << 40, bytes, SIZE_MAX, SIZE_MAX, &store),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("do not fit in memory");
    assert_status(embla_store_view(&bad, 1, bytes, 1000, 0, &store), EMBLA_ERR_SHAPE);
    assert_status(embla_store_view(NULL, 1, bytes, 1000, 0, &store), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_view(&qwen, 1, NULL, 1000, 0, &store), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_view(&qwen, 1, bytes, 1000, 0, NULL), EMBLA_ERR_ARGUMENT);
    assert_null(store);
}

/* ---- arguments ---- */

static void placements_have_names(void **state)
{
    (void)state;
    assert_string_equal(embla_placement_name(EMBLA_PLACEMENT_RAM), "ram");
    assert_string_equal(embla_placement_name(EMBLA_PLACEMENT_SHARED), "shared");
    assert_string_equal(embla_placement_name(EMBLA_PLACEMENT_MAPPED), "mapped");
    assert_string_equal(embla_placement_name(EMBLA_PLACEMENT_READ), "read");
    assert_string_equal(embla_placement_name(EMBLA_PLACEMENT_VIEW), "view");
    assert_string_equal(embla_placement_name(EMBLA_PLACEMENT_DIRECT), "direct");
    assert_null(embla_placement_name((embla_placement)6));
    assert_null(embla_placement_name((embla_placement)-1));
}

static void refused(const table *t, const embla_store_options *options, embla_status status,
                    const char *said)
{
    embla_store *store = NULL;
    size_t live = embla_mem_live(), files = embla_io_live();
    assert_status(embla_store_open_extents(&t->format, t->extents, t->count, options, &store),
                  status);
    assert_error_has(said);
    assert_null(store);
    assert_int_equal(embla_mem_live(), live);
    assert_int_equal(embla_io_live(), files);
}

static void arguments_that_cannot_be_are_refused(void **state)
{
    table t;
    embla_store *store = NULL;
    embla_verify_report verified;
    static _Alignas(64) char buffer[20000];
    (void)state;
    make(&t, 1, 100);
    embla_extent saved = t.extents[0];
    refused(&t, &(embla_store_options){.placement = (embla_placement)9}, EMBLA_ERR_ARGUMENT,
            "unknown placement: 9");
    refused(&t, &(embla_store_options){.placement = EMBLA_PLACEMENT_VIEW}, EMBLA_ERR_ARGUMENT,
            "a file cannot be opened with placement view");
    refused(&t, &(embla_store_options){.threads = -1}, EMBLA_ERR_ARGUMENT, "threads is -1");
    refused(&t, &(embla_store_options){.buffer = buffer, .buffer_bytes = 14399}, EMBLA_ERR_SHAPE,
            "the buffer has 14399 bytes, but 100 rows of 144 bytes need 14400");
    refused(&t, &(embla_store_options){.buffer = buffer + 32, .buffer_bytes = 14400},
            EMBLA_ERR_ARGUMENT, "the buffer for rows is not aligned to 64");
    refused(&t,
            &(embla_store_options){
                .buffer = buffer, .buffer_bytes = 14400, .placement = EMBLA_PLACEMENT_MAPPED},
            EMBLA_ERR_ARGUMENT, "not for mapped");
    t.extents[0].rows = 101;
    refused(&t, NULL, EMBLA_ERR_SHAPE, "on end at byte 14555, but the file has 14411 bytes");
    t.extents[0] = saved;
    t.extents[0].offset = -1;
    refused(&t, NULL, EMBLA_ERR_ARGUMENT, "the offset of the rows is -1");
    t.extents[0].offset = INT64_MAX;
    refused(&t, NULL, EMBLA_ERR_ARGUMENT, "do not fit in any file");
    t.extents[0] = saved;
    t.extents[0].stride = SIZE_MAX;
    refused(&t, NULL, EMBLA_ERR_ARGUMENT, "do not fit in any file");
    t.extents[0] = saved;
    t.extents[0].file = NULL;
    refused(&t, NULL, EMBLA_ERR_ARGUMENT, "the file of an extent is NULL");
    t.extents[0].file = "/nowhere/at/all";
    refused(&t, NULL, EMBLA_ERR_NOT_FOUND, "/nowhere/at/all");
    t.extents[0].file = t.s.folder;
    refused(&t, NULL, EMBLA_ERR_UNSUPPORTED, "a folder, not a regular file");
    t.extents[0] = saved;
    t.count = 0;
    refused(&t, NULL, EMBLA_ERR_ARGUMENT, "count is 0; a store needs at least one extent");
    t.count = 1;
    t.format.dim = 255;
    refused(&t, NULL, EMBLA_ERR_SHAPE, "255");
    t.format.dim = 256;
    assert_status(embla_store_open_extents(NULL, t.extents, 1, NULL, &store), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_open_extents(&t.format, NULL, 1, NULL, &store), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_open_extents(&t.format, t.extents, 1, NULL, NULL),
                  EMBLA_ERR_ARGUMENT);
    assert_ok(embla_store_open_extents(&t.format, t.extents, 1, NULL, &store));
    assert_status(embla_store_describe(store, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_describe(NULL, &(embla_store_info){0}), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_warm(NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_warm(store, &(embla_store_options){.threads = -3}),
                  EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_verify(NULL, 0, 0, &verified), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_verify(store, 0, 0, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_verify(store, -1, 0, &verified), EMBLA_ERR_ARGUMENT);
    assert_error_has("sample is -1; it must be 0 or greater");
    embla_store_free(store);
    finish(&t);
}

static void scales_that_cannot_be_are_refused(void **state)
{
    table t;
    (void)state;
    make(&t, 2, 10);
    embla_extent saved = t.extents[0];
    t.extents[0].scale_offset = -2;
    refused(&t, NULL, EMBLA_ERR_ARGUMENT, "and that of the scales -2");
    t.extents[0].scale_offset = -1; /* behind each row, and in another file */
    refused(&t, NULL, EMBLA_ERR_ARGUMENT, "scale_file must be NULL");
    t.extents[0] = saved;
    t.extents[0].scale_file = "/nowhere/scales";
    refused(&t, NULL, EMBLA_ERR_NOT_FOUND, "/nowhere/scales");
    t.extents[0] = saved;
    t.extents[0].scale_offset = 6;
    refused(&t, NULL, EMBLA_ERR_SHAPE,
            "10 scales from byte 6 on end at byte 86, but the file has 85");
    t.extents[0].scale_file = NULL; /* the file of the rows */
    t.extents[0].scale_offset = 0;
    embla_store *store = NULL;
    assert_ok(embla_store_open_extents(&t.format, t.extents, 1, NULL, &store));
    assert_int_equal(store->source_count, 1);
    embla_store_free(store);
    finish(&t);
}

/* ---- memory of the caller, hooks, progress ---- */

typedef struct {
    const table *t;
    void *memory;
    size_t bytes;
    int allocated, released;
    embla_status answer;
    pthread_t thread;
    int64_t last, all, stop_at;
    size_t calls;
    bool wrong;
} hooks;

static embla_status on_allocated(void *context, void *memory, size_t bytes)
{
    hooks *h = context;
    h->memory = memory;
    h->bytes = bytes;
    h->allocated++;
    for (size_t i = 0; i < bytes; i++)
        if (((char *)memory)[i] != 0) h->wrong = true; /* rows are not there yet */
    return h->answer;
}

static void on_released(void *context, void *memory, size_t bytes)
{
    hooks *h = context;
    if (memory != h->memory || bytes != h->bytes) h->wrong = true;
    if (h->allocated != 1) h->wrong = true;
    ((volatile char *)memory)[bytes - 1] = 0; /* it is still there */
    h->released++;
}

static bool on_progress(void *context, const char *what, int64_t done, int64_t bytes)
{
    hooks *h = context;
    if (!pthread_equal(pthread_self(), h->thread) || done <= h->last || done > bytes)
        h->wrong = true;
    if (strcmp(what, "copy") != 0 && strcmp(what, "read") != 0) h->wrong = true;
    h->last = done;
    h->all = bytes;
    h->calls++;
    return h->stop_at == 0 || done < h->stop_at;
}

static void hooks_are_called_around_the_life_of_the_memory(void **state)
{
    table t;
    (void)state;
    make(&t, 0, 20000);
    hooks h = {.t = &t, .thread = pthread_self()};
    embla_store_options options = {.allocated = on_allocated,
                                   .released = on_released,
                                   .progress = on_progress,
                                   .context = &h,
                                   .threads = 2};
    embla_store *store = NULL;
    assert_ok(embla_store_open_extents(&t.format, t.extents, t.count, &options, &store));
    assert_int_equal(h.allocated, 1);
    assert_int_equal(h.released, 0);
    assert_ptr_equal(h.memory, store->data);
    assert_int_equal(h.bytes, 20000 * 160);
    assert_int_equal(h.last, 20000 * 160);
    assert_int_equal(h.all, 20000 * 160);
    assert_true(h.calls >= 1);
    embla_store_free(store);
    assert_int_equal(h.released, 1);
    assert_false(h.wrong);
    finish(&t);
}

static void a_hook_that_fails_ends_the_opening(void **state)
{
    table t;
    (void)state;
    make(&t, 0, 20000);
    hooks h = {.thread = pthread_self(), .answer = EMBLA_ERR_UNSUPPORTED};
    embla_store_options options = {
        .allocated = on_allocated, .released = on_released, .context = &h};
    refused(&t, &options, EMBLA_ERR_UNSUPPORTED,
            "the `allocated` callback failed for 3200000 bytes");
    assert_int_equal(h.allocated, 1);
    assert_int_equal(h.released, 0); /* it was told no */
    /* Rows that cannot be read: the memory is given back after the hook had it. */
    h = (hooks){.thread = pthread_self(), .stop_at = 1};
    options.progress = on_progress;
    refused(&t, &options, EMBLA_ERR_STOPPED, "stopped by the caller: copy, ");
    assert_int_equal(h.allocated, 1);
    assert_int_equal(h.released, 1);
    assert_false(h.wrong);
    finish(&t);
}

static void a_buffer_of_the_caller_is_filled_and_left_to_the_caller(void **state)
{
    table t;
    embla_store *store = NULL;
    (void)state;
    make(&t, 2, 900);
    size_t bytes = 900 * 264;
    check_guarded buffer = check_guard(bytes, 0);
    embla_store_options options = {.buffer = buffer.bytes, .buffer_bytes = bytes};
    assert_ok(embla_store_open_extents(&t.format, t.extents, t.count, &options, &store));
    assert_ptr_equal(store->data, buffer.bytes);
    assert_memory_equal(buffer.bytes, t.truth, bytes);
    embla_store_free(store);
    check_guards(&buffer);
    assert_memory_equal(buffer.bytes, t.truth, bytes);
    check_guard_free(&buffer);
    finish(&t);
}

static void huge_pages_are_counted_by_the_system(void **state)
{
    table t;
    embla_store *store = NULL;
    embla_store_info info;
    (void)state;
    make(&t, 0, 60000); /* 9.6 MB */
    assert_ok(embla_store_open_extents(&t.format, t.extents, t.count, NULL, &store));
    assert_ok(embla_store_describe(store, &info));
    print_message("%" PRId64 " of %" PRId64 " bytes on huge pages\n", info.huge_bytes, info.bytes);
    assert_in_range(info.huge_bytes, 0, info.bytes);
    embla_io_fail(1, true, EMBLA_SYSTEM_REFUSED);
    assert_ok(embla_store_describe(store, &info));
    assert_int_equal(info.huge_bytes, -1); /* not known, and no error */
    embla_io_fail(0, false, 0);
    embla_store_free(store);
    embla_store_options options = {.small_pages = true};
    assert_ok(embla_store_open_extents(&t.format, t.extents, t.count, &options, &store));
    assert_ok(embla_store_describe(store, &info));
    assert_int_equal(info.huge_bytes, 0);
    check_random(&t, store, 1000);
    embla_store_free(store);
    finish(&t);
}

/* ---- the page cache ---- */

/* Bytes of a file in the page cache; with forget, it is asked to drop them first. */
static size_t cached(const char *path, bool forget)
{
    struct stat found;
    size_t pages = 0;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &found), 0);
    if (forget) {
        assert_int_equal(fsync(fd), 0);
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    size_t size = (size_t)found.st_size, count = (size + 4095) / 4096;
    void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    unsigned char *flags = malloc(count);
    assert_true(map != MAP_FAILED && flags);
    assert_int_equal(mincore(map, size, flags), 0);
    for (size_t i = 0; i < count; i++) pages += flags[i] & 1;
    free(flags);
    assert_int_equal(munmap(map, size), 0);
    assert_int_equal(close(fd), 0);
    return pages * 4096;
}

static size_t all_cached(const table *t, size_t files, bool forget)
{
    size_t all = 0;
    for (size_t i = 0; i < files; i++) all += cached(t->paths[i], forget);
    return all;
}

static void filling_leaves_no_second_copy_in_the_page_cache(void **state)
{
    table t;
    embla_store *store = NULL;
    (void)state;
    make(&t, 0, 100000);               /* 16 MB in five files */
    if (all_cached(&t, 5, true) > 0) { /* tmpfs: the files are in memory, whatever happens */
        finish(&t);
        skip_because("the files are in memory (tmpfs)");
    }
    for (int buffered = 0; buffered < 2; buffered++) {
        embla_io_short(buffered ? 10001 : 0); /* odd pieces: direct reads refuse them */
        assert_ok(embla_store_open_extents(&t.format, t.extents, t.count, NULL, &store));
        embla_io_short(0);
        size_t left = all_cached(&t, 5, false);
        print_message("%zu of 16000000 bytes are in the page cache\n", left);
        /* Asked to forget, the system keeps what it is busy with; without asking it keeps all. */
        assert_true(left <= (buffered ? 8 << 20 : 0));
        assert_memory_equal(store->data, t.truth, 16000000);
        embla_store_free(store);
        (void)all_cached(&t, 5, true);
    }
    finish(&t);
}

static void a_row_that_is_mapped_brings_its_own_pages_only(void **state)
{
    table t;
    embla_store *store = NULL;
    embla_store_info info;
    (void)state;
    if (EMULATED) skip_because("an emulator has no table of its pages");
    make(&t, 0, 100000);
    if (all_cached(&t, 5, true) > 0) {
        finish(&t);
        skip_because("the files are in memory (tmpfs)");
    }
    embla_store_options options = {.placement = EMBLA_PLACEMENT_MAPPED};
    assert_ok(embla_store_open_extents(&t.format, t.extents, t.count, &options, &store));
    assert_ok(embla_store_describe(store, &info));
    assert_int_equal(info.resident, 0); /* opening has read nothing */
    embla_io_fail(1, true, EMBLA_SYSTEM_UNSUPPORTED);
    assert_ok(embla_store_describe(store, &info));
    embla_io_fail(0, false, 0);
    assert_int_equal(info.resident, -1); /* a system that does not tell is no error */
    for (int64_t row = 0; row < 100000; row += 10000) check_rows(&t, &row, 1, 1, store, 0, 0);
    assert_ok(embla_store_describe(store, &info));
    assert_in_range(info.resident, 10 * 160, 20 * 4096);
    hooks h = {.thread = pthread_self()};
    embla_store_options warm = {.progress = on_progress, .context = &h, .threads = 2};
    assert_ok(embla_store_warm(store, &warm));
    assert_ok(embla_store_describe(store, &info));
    assert_in_range(info.resident, info.bytes / 10 * 9, info.bytes);
    assert_int_equal(h.last, 16000000);
    assert_false(h.wrong);
    h = (hooks){.thread = pthread_self(), .stop_at = 1};
    assert_status(embla_store_warm(store, &warm), EMBLA_ERR_STOPPED);
    assert_error_has("stopped by the caller: read, ");
    embla_store_free(store);
    finish(&t);
}

/* ---- verify ---- */

/* Changes a byte of a row in its file and leaves no other trace. */
static void spoil(const table *t, int64_t row)
{
    struct stat before;
    int64_t first = 0;
    size_t e = 0;
    while (row - first >= t->extents[e].rows) first += t->extents[e++].rows;
    int fd = open(t->extents[e].file, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &before), 0);
    off_t at = (off_t)(t->extents[e].offset + (row - first) * (int64_t)t->row_bytes) + 5;
    unsigned char byte;
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_int_equal(futimens(fd, (struct timespec[]){before.st_atim, before.st_mtim}), 0);
    assert_int_equal(close(fd), 0);
}

static void verify_finds_rows_that_differ(void **state)
{
    table t;
    embla_store *store = NULL;
    embla_verify_report v;
    (void)state;
    make(&t, 0, 32000);
    for (int threads = 1; threads < 4; threads += 2) {
        embla_store_options options = {.threads = threads};
        assert_ok(embla_store_open_extents(&t.format, t.extents, t.count, &options, &store));
        assert_ok(embla_store_verify(store, 0, 7, &v));
        assert_int_equal(v.rows, 32000);
        assert_int_equal(v.different, 0);
        assert_int_equal(v.first, -1);
        spoil(&t, 17);
        spoil(&t, 20000);
        spoil(&t, 31999);
        assert_ok(embla_store_verify(store, 0, 7, &v));
        assert_int_equal(v.rows, 32000);
        assert_int_equal(v.different, 3);
        assert_int_equal(v.first, 17);
        assert_ok(embla_store_verify(store, 1, 7, &v)); /* the first and the last always */
        assert_int_equal(v.rows, 2);
        assert_int_equal(v.different, 1);
        assert_int_equal(v.first, 31999);
        assert_ok(embla_store_verify(store, 100000, 7, &v));
        assert_int_equal(v.rows, 32000);
        for (int i = 0; i < 3; i++) spoil(&t, (int64_t[]){17, 20000, 31999}[i]); /* as it was */
        assert_ok(embla_store_verify(store, 1000, 7, &v));
        assert_int_equal(v.rows, 1000);
        assert_int_equal(v.different, 0);
        embla_store_free(store);
    }
    finish(&t);
}

/* Which rows a sample takes: seen by spoiling all of a view that is said to be of files. */
static void a_sample_is_even_and_no_row_is_in_it_twice(void **state)
{
    table t;
    embla_store *store = NULL;
    embla_verify_report v;
    (void)state;
    make(&t, 1, 1000);
    assert_ok(embla_store_open_extents(&t.format, t.extents, t.count, NULL, &store));
    for (int64_t row = 0; row < 1000; row++) spoil(&t, row);
    for (int64_t sample = 1; sample <= 1000; sample += 37) {
        assert_ok(embla_store_verify(store, sample, 5, &v));
        assert_int_equal(v.rows, sample < 2 ? 2 : sample);
        assert_int_equal(v.different, v.rows);
        assert_int_equal(v.first, 0);
    }
    /* Only the second half: about half of a sample, by any seed. */
    for (int64_t row = 0; row < 500; row++) spoil(&t, row);
    int64_t first = -1;
    bool differs = false;
    for (uint64_t seed = 0; seed < 20; seed++) {
        assert_ok(embla_store_verify(store, 100, seed, &v));
        assert_int_equal(v.different, 50);
        assert_in_range(v.first, 500, 509);
        if (first >= 0 && v.first != first) differs = true;
        first = v.first;
    }
    assert_true(differs);
    embla_store_free(store);
    finish(&t);
}

/* ---- failures ---- */

static unsigned char fault_out[20 * 264];

/* Opens, looks, warms, compares and closes. */
static embla_status whole_life(const table *t, int way)
{
    static const int64_t rows[] = {0, 9, 3, 3, 5};
    embla_store *store = NULL;
    embla_store_info info;
    embla_verify_report v = {.rows = -1};
    embla_row_part part;
    void *buffer;
    embla_status status = open_way(t, way, &buffer, &store);
    if (status != EMBLA_OK) assert_null(store);
    if (status == EMBLA_OK) status = embla_row_part_of(&store->row, 0, 0, &part);
    if (status == EMBLA_OK) status = fetch(store, rows, 5, 5, &part, fault_out, t->row_bytes);
    if (status == EMBLA_OK)
        for (size_t i = 0; i < 5; i++)
            assert_memory_equal(fault_out + i * t->row_bytes,
                                t->truth + (size_t)rows[i] * t->row_bytes, t->row_bytes);
    if (status == EMBLA_OK) status = embla_store_describe(store, &info);
    if (status == EMBLA_OK) status = embla_store_warm(store, NULL);
    if (status == EMBLA_OK) status = embla_store_verify(store, 0, 1, &v);
    if (status == EMBLA_OK) assert_true(v.rows == 10 && v.different == 0);
    embla_store_free(store);
    free(buffer);
    return status;
}

/* Calls that it makes: of so many that may go well, how many are left afterwards? */
static size_t count_calls(const table *t, int way)
{
    enum { MANY = 4096 };
    size_t left = 0;
    embla_file_facts found;
    embla_io_fail(MANY, false, EMBLA_SYSTEM_OTHER);
    assert_ok(whole_life(t, way));
    while (embla_io_facts(STDERR_FILENO, "counting", &found) == EMBLA_OK) left++;
    embla_io_fail(0, false, 0);
    assert_true(left > 0);
    return MANY - 1 - left;
}

static void every_call_of_a_store_may_fail(void **state)
{
    static const embla_system_error errors[] = {EMBLA_SYSTEM_OTHER, EMBLA_SYSTEM_NO_MEMORY,
                                                EMBLA_SYSTEM_REFUSED, EMBLA_SYSTEM_INTERRUPTED};
    size_t live = embla_mem_live(), files = embla_io_live(), failed = 0;
    (void)state;
    for (int which = 0; which < 4; which++) {
        table t;
        start(&t, which == 0 ? qwen : which == 1 ? q4_k : deepseek, 10);
        if (which == 0) make_shards(&t, 5);
        if (which == 1) make_joined(&t, 0);
        if (which > 1) make_planes(&t, which == 2 ? 0 : 7);
        for (int way = 0; way < WAYS; way++)
            for (size_t e = 0, calls = count_calls(&t, way),
                        kinds = which == 2 && !SLOW_BUILD ? COUNT_OF(errors) : 1;
                 e < kinds; e++)
                for (int forever = 0; forever < (errors[e] == EMBLA_SYSTEM_INTERRUPTED ? 1 : 2);
                     forever++)
                    for (size_t n = 1; n <= calls; n++) {
                        embla_io_fail(n, forever, errors[e]);
                        embla_status status = whole_life(&t, way);
                        embla_io_fail(0, false, 0);
                        assert_int_equal(embla_mem_live(), live);
                        assert_int_equal(embla_io_live(), files);
                        if (status != EMBLA_OK) {
                            bool chosen = readers[way] != EMBLA_READER_AUTO; /* no other is tried */
                            assert_true(status == (errors[e] == EMBLA_SYSTEM_NO_MEMORY
                                                       ? EMBLA_ERR_MEMORY
                                                       : EMBLA_ERR_IO) ||
                                        (chosen && status == EMBLA_ERR_UNSUPPORTED));
                            assert_true(strlen(embla_error()) > 10);
                            failed++;
                        }
                    }
        finish(&t);
    }
    assert_true(failed > 100);
}

static void every_allocation_of_a_store_may_fail(void **state)
{
    size_t live = embla_mem_live(), files = embla_io_live();
    (void)state;
    for (int which = 0; which < 3; which++) {
        table t;
        start(&t, which == 0 ? qwen : which == 1 ? q4_k : deepseek, 10);
        if (which == 0) make_shards(&t, 5);
        if (which == 1) make_joined(&t, 0);
        if (which == 2) make_planes(&t, 0);
        for (int way = 0; way < WAYS; way++)
            for (int forever = 0; forever < 2; forever++)
                for (size_t n = 1;; n++) {
                    embla_mem_fail(n, forever);
                    embla_status status = whole_life(&t, way);
                    embla_mem_fail(0, false);
                    assert_int_equal(embla_mem_live(), live);
                    assert_int_equal(embla_io_live(), files);
                    if (status == EMBLA_OK) break;
                    assert_status(status, EMBLA_ERR_MEMORY);
                    assert_true(n < 1000);
                }
        finish(&t);
    }
}

/* Reads that come back in small pieces are put together. */
static void short_reads_are_taken_up_again(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++) {
        table t;
        make(&t, which, 1000);
        for (int way = 0; way < WAYS; way++) {
            embla_store *store = NULL;
            void *buffer;
            if (places[way] != EMBLA_PLACEMENT_DIRECT) embla_io_short(1000);
            assert_ok(open_way(&t, way, &buffer, &store));
            embla_io_short(1000);
            check_random(&t, store, 1000);
            embla_io_short(0);
            embla_store_free(store);
            free(buffer);
        }
        finish(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_placement_returns_what_was_written),
        cmocka_unit_test(rows_that_straddle_pages_are_among_them),
        cmocka_unit_test(parts_of_rows_are_returned_by_every_placement),
        cmocka_unit_test(results_do_not_depend_on_threads_or_kernels),
        cmocka_unit_test(a_view_is_the_caller_s_memory),
        cmocka_unit_test(views_that_do_not_fit_are_refused),
        cmocka_unit_test(placements_have_names),
        cmocka_unit_test(arguments_that_cannot_be_are_refused),
        cmocka_unit_test(scales_that_cannot_be_are_refused),
        cmocka_unit_test(hooks_are_called_around_the_life_of_the_memory),
        cmocka_unit_test(a_hook_that_fails_ends_the_opening),
        cmocka_unit_test(a_buffer_of_the_caller_is_filled_and_left_to_the_caller),
        cmocka_unit_test(huge_pages_are_counted_by_the_system),
        cmocka_unit_test(filling_leaves_no_second_copy_in_the_page_cache),
        cmocka_unit_test(a_row_that_is_mapped_brings_its_own_pages_only),
        cmocka_unit_test(verify_finds_rows_that_differ),
        cmocka_unit_test(a_sample_is_even_and_no_row_is_in_it_twice),
        cmocka_unit_test(every_call_of_a_store_may_fail),
        cmocka_unit_test(every_allocation_of_a_store_may_fail),
        cmocka_unit_test(short_reads_are_taken_up_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
