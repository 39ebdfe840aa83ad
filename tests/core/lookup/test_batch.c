/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: what comes out is what a lookup without one gives (test_rows.c checks that), each
 * different row is read once, and statistics say what was done.
 */
#include <errno.h>

#include "base/mem.h"
#include "embla_store.h"
#include "files/io.h"
#include "scratch.h"
#include "store/store.h"

enum { ROWS = 3000, DIM = 256, ROW_BYTES = 264, SCALES_AT = ROWS * DIM };

static const embla_row_format format = {
    .dim = DIM, .dtype = EMBLA_F8_E4M3, .scales = EMBLA_SCALES_UE8M0_32};

/* A table of random bytes in a file: numbers, then scales; or (joined) row by row. */
typedef struct {
    scratch s;
    embla_store *store;
} opened;

static void open_table(opened *o, embla_placement place, bool joined)
{
    const embla_store_options options = {
        .placement = place, .shared_folder = o->s.folder, .threads = 1};
    unsigned char *bytes = malloc((size_t)ROWS * ROW_BYTES);
    assert_non_null(bytes);
    scratch_new(&o->s);
    check_fill_bytes(1, (size_t)ROWS * ROW_BYTES, bytes);
    const char *path = scratch_path(&o->s, "table");
    scratch_write(path, bytes, (size_t)ROWS * ROW_BYTES);
    const embla_extent extent = {
        .file = path, .rows = ROWS, .scale_offset = joined ? -1 : (int64_t)SCALES_AT};
    assert_ok(embla_store_open_extents(&format, &extent, 1, &options, &o->store));
    free(bytes);
}

static void close_table(opened *o)
{
    embla_store_free(o->store);
    scratch_free(&o->s);
}

static const embla_placement places[] = {EMBLA_PLACEMENT_RAM, EMBLA_PLACEMENT_SHARED,
                                         EMBLA_PLACEMENT_MAPPED, EMBLA_PLACEMENT_READ};

/* count row numbers, about `different` different ones. */
static int64_t *draw_rows(size_t count, size_t different, uint64_t seed)
{
    int64_t *rows = malloc((count + 1) * sizeof *rows);
    int64_t some[ROWS];
    assert_non_null(rows);
    for (size_t i = 0; i < different; i++) some[i] = (int64_t)check_below(&seed, ROWS);
    for (size_t i = 0; i < count; i++) rows[i] = some[check_below(&seed, different)];
    return rows;
}

/* How many are different, and in `first` the places where each is first seen. */
static size_t count_unique(const int64_t *rows, size_t count)
{
    bool seen[ROWS] = {false};
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += !seen[rows[i]];
        seen[rows[i]] = true;
    }
    return found;
}

/* ---- the same as without ---- */

static void a_batch_gives_what_a_lookup_gives(void **state)
{
    static const embla_store_lookup_options asked[] = {
        {.threads = 1},
        {.rows_per_token = 16, .threads = 2},
        {.rows_per_token = 16, .sum = true, .scale = 0.5f, .threads = 3},
        {.rows_per_token = 8, .raw = true, .threads = 8},
        {.rows_per_token = 4, .out_dtype = EMBLA_BF16, .first_column = 64, .columns = 96},
        {.rows_per_token = 4, .raw = true, .first_column = 64, .columns = 96},
        {.rows_per_token = 16, .token_stride = 1024, .row_stride = (size_t)100 * 1024},
        {.rows_per_token = 16, .out_dtype = EMBLA_F16, .scale = 3.0f},
    };
    enum { MOST = 1600 };
    static const size_t counts[] = {0, 16, 160, 1600}, different[] = {1, 10, 200, 2500};
    (void)state;
    for (size_t p = 0; p < COUNT_OF(places); p++) {
        opened o;
        embla_batch *batch = NULL;
        open_table(&o, places[p], p % 2 == 0);
        assert_ok(embla_batch_new(o.store, MOST, &batch));
        for (size_t c = 0; c < COUNT_OF(counts); c++)
            for (size_t k = 0; k < COUNT_OF(asked); k++) {
                size_t bytes = (size_t)2 << 20;
                int64_t *rows = draw_rows(counts[c], different[c], 7 * k + c);
                unsigned char *want = calloc(1, bytes), *got = calloc(1, bytes);
                assert_true(want && got);
                assert_ok(embla_store_lookup(o.store, rows, counts[c], &asked[k], want));
                assert_ok(embla_batch_lookup(batch, rows, counts[c], &asked[k], got));
                /* scaled NaNs may differ: bytes are compared where there is no arithmetic */
                if (asked[k].scale == 0.0f) assert_memory_equal(want, got, bytes);
                free(want);
                free(got);
                free(rows);
            }
        embla_batch_free(batch);
        close_table(&o);
    }
}

/* Rows that fall on one slot of the hash table, and all orders of first and last. */
static void row_numbers_that_collide_are_told_apart(void **state)
{
    const embla_row_format one = {.dim = 1, .dtype = EMBLA_F32};
    enum { MANY = 4096 };
    float *numbers = malloc(MANY * sizeof *numbers), out[200];
    embla_store *store = NULL;
    embla_batch *batch = NULL;
    embla_batch_info stats;
    (void)state;
    assert_non_null(numbers);
    for (int i = 0; i < MANY; i++) numbers[i] = (float)i;
    assert_ok(embla_store_view(&one, MANY, numbers, MANY * sizeof *numbers, 0, &store));
    assert_ok(embla_batch_new(store, 200, &batch));
    int64_t rows[200], asked = 0;
    for (size_t step = 1; step < 20; step++) {
        for (size_t i = 0; i < 200; i++) rows[i] = (int64_t)(i * step * 233 % MANY);
        assert_ok(embla_batch_lookup(batch, rows, 200, NULL, out));
        for (size_t i = 0; i < 200; i++) assert_true(out[i] == (float)rows[i]);
        asked += 200;
    }
    assert_ok(embla_batch_describe(batch, &stats));
    assert_int_equal(stats.asked, asked);
    assert_int_equal(stats.calls, 19);
    embla_batch_free(batch);
    embla_store_free(store);
    free(numbers);
}

/* Row numbers that all want the last slot of a small hash table: the next is the first one. */
static void the_last_slot_is_followed_by_the_first(void **state)
{
    const embla_row_format one = {.dim = 1, .dtype = EMBLA_F32};
    enum { MANY = 1000, COUNT = 8 };
    float numbers[MANY], out[COUNT];
    int64_t rows[COUNT];
    size_t found = 0;
    embla_store *store = NULL;
    embla_batch *batch = NULL;
    embla_batch_info stats;
    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        numbers[i] = (float)i;
        if (found < COUNT && i * EMBLA_GOLDEN >> 60 == 15) rows[found++] = (int64_t)i;
    }
    assert_int_equal(found, COUNT);
    assert_ok(embla_store_view(&one, MANY, numbers, sizeof numbers, 0, &store));
    assert_ok(embla_batch_new(store, COUNT, &batch));
    for (int i = 0; i < 2; i++) { /* what the first left behind is gone */
        assert_ok(embla_batch_lookup(batch, rows, COUNT, NULL, out));
        for (size_t k = 0; k < COUNT; k++) assert_true(out[k] == (float)rows[k]);
    }
    assert_ok(embla_batch_describe(batch, &stats));
    assert_int_equal(stats.unique, 2 * COUNT);
    embla_batch_free(batch);
    embla_store_free(store);
}

/* ---- each row is read once ---- */

/* Calls to the system that one lookup makes: the first n that it passes without. */
static size_t io_calls(embla_batch *batch, const int64_t *rows, size_t count, void *out)
{
    const embla_store_lookup_options options = {.threads = 1};
    size_t low = 0, high = 4 * count + 16; /* it fails at low calls (if > 0), not at high */
    while (high - low > 1) {
        size_t n = low + (high - low) / 2;
        embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
        embla_status status = embla_batch_lookup(batch, rows, count, &options, out);
        embla_io_fail(0, false, 0);
        if (status == EMBLA_OK)
            high = n;
        else
            low = n;
    }
    return low;
}

static void repeats_cost_no_reads(void **state)
{
    enum { COUNT = 1000 };
    opened o;
    embla_batch *batch = NULL;
    int64_t distinct[COUNT], repeated[COUNT];
    float *out = malloc(COUNT * DIM * sizeof *out);
    (void)state;
    assert_non_null(out);
    open_table(&o, EMBLA_PLACEMENT_READ, true);
    assert_ok(embla_batch_new(o.store, COUNT, &batch));
    for (int i = 0; i < COUNT; i++) {
        distinct[i] = (i * 7 + 3) % ROWS;
        repeated[i] = distinct[i % 100]; /* nine of ten are repeats */
    }
    size_t files = io_calls(batch, distinct, 1, out) - 1; /* looks at the file itself */
    size_t all = io_calls(batch, distinct, COUNT, out) - files;
    size_t few = io_calls(batch, repeated, COUNT, out) - files;
    assert_int_equal(all, COUNT);
    assert_int_equal(few, 100);
    assert_true((double)few <= 0.2 * (double)all);
    free(out);
    embla_batch_free(batch);
    close_table(&o);
}

/* ---- statistics ---- */

/* Units that bytes from at on touch. */
static int64_t units(int64_t at, int64_t bytes, int64_t unit)
{
    return (at + bytes - 1) / unit - at / unit + 1;
}

static void statistics_count_what_was_done(void **state)
{
    enum { COUNT = 500 };
    (void)state;
    for (size_t p = 0; p < COUNT_OF(places); p++)
        for (int joined = 0; joined < 2; joined++) {
            opened o;
            embla_batch *batch = NULL;
            embla_batch_info stats;
            int64_t *rows = draw_rows(COUNT, 120, p), want = 0;
            bool file = places[p] == EMBLA_PLACEMENT_READ || places[p] == EMBLA_PLACEMENT_MAPPED;
            float *out = malloc(COUNT * DIM * sizeof *out);
            assert_non_null(out);
            open_table(&o, places[p], joined);
            assert_ok(embla_batch_new(o.store, COUNT, &batch));
            assert_ok(embla_batch_describe(batch, &stats));
            assert_int_equal(stats.calls + stats.asked + stats.unique + stats.bytes_read, 0);
            size_t unique = count_unique(rows, COUNT);
            assert_ok(embla_batch_lookup(batch, rows, COUNT, NULL, out));
            assert_ok(embla_batch_describe(batch, &stats));
            assert_int_equal(stats.calls, 1);
            assert_int_equal(stats.asked, COUNT);
            assert_int_equal(stats.unique, unique);
            assert_int_equal(stats.bytes_useful, unique * ROW_BYTES);
            assert_int_equal(stats.verified, 0);
            bool seen[ROWS] = {false};
            for (size_t i = 0; i < COUNT; i++) {
                int64_t r = rows[i];
                if (seen[r]) continue;
                seen[r] = true;
                if (!file) /* memory: rows follow each other from a line on */
                    want += 64 * units(r * ROW_BYTES, ROW_BYTES, 64);
                else if (joined)
                    want += 4096 * units(r * ROW_BYTES, ROW_BYTES, 4096);
                else if ((r * DIM + DIM - 1) / 4096 == (SCALES_AT + r * 8) / 4096)
                    want +=
                        4096 * (units(r * DIM, DIM, 4096) + units(SCALES_AT + r * 8, 8, 4096) - 1);
                else
                    want += 4096 * (units(r * DIM, DIM, 4096) + units(SCALES_AT + r * 8, 8, 4096));
            }
            assert_int_equal(stats.bytes_read, want);
            /* part of each row, the same rows again: twice the calls, and less that is useful */
            const embla_store_lookup_options part = {.columns = 32, .raw = true};
            assert_ok(embla_batch_lookup(batch, rows, COUNT, &part, out));
            assert_ok(embla_batch_describe(batch, &stats));
            assert_int_equal(stats.calls, 2);
            assert_int_equal(stats.unique, 2 * unique);
            assert_int_equal(stats.bytes_useful, unique * (ROW_BYTES + 33));
            /* nothing is something, too */
            assert_ok(embla_batch_lookup(batch, NULL, 0, NULL, NULL));
            assert_ok(embla_batch_describe(batch, &stats));
            assert_int_equal(stats.calls, 3);
            assert_int_equal(stats.asked, 2 * COUNT);
            free(out);
            free(rows);
            embla_batch_free(batch);
            close_table(&o);
        }
}

/* Part of a row, its scales before its numbers in the file, or in a line of their own. */
static void statistics_count_where_a_part_is(void **state)
{
    const embla_store_lookup_options part = {.first_column = 224, .columns = 32};
    (void)state;
    for (int ram = 0; ram < 2; ram++) {
        scratch s;
        embla_store *store = NULL;
        embla_batch *batch = NULL;
        embla_batch_info stats;
        unsigned char *bytes = calloc(1, (size_t)ROWS * ROW_BYTES);
        int64_t rows[ROWS], want = 0;
        float *out = malloc((size_t)ROWS * 32 * sizeof *out);
        assert_true(bytes && out);
        scratch_new(&s);
        scratch_write(scratch_path(&s, "table"), bytes, (size_t)ROWS * ROW_BYTES);
        const embla_extent extent = {
            .file = s.path, .rows = ROWS, .offset = (int64_t)ROWS * 8, .scale_offset = 0};
        const embla_store_options options = {.placement =
                                                 ram ? EMBLA_PLACEMENT_RAM : EMBLA_PLACEMENT_READ};
        assert_ok(embla_store_open_extents(&format, &extent, 1, &options, &store));
        assert_ok(embla_batch_new(store, ROWS, &batch));
        for (int64_t r = 0; r < ROWS; r++) {
            int64_t codes = r * ROW_BYTES + 224, scale = r * ROW_BYTES + 263;
            rows[r] = r;
            if (ram)
                want += 64 * (units(codes, 32, 64) + ((codes + 31) / 64 < scale / 64));
            else
                want += 4096 * (units((int64_t)ROWS * 8 + r * DIM + 224, 32, 4096) + 1);
        }
        assert_ok(embla_batch_lookup(batch, rows, ROWS, &part, out));
        assert_ok(embla_batch_describe(batch, &stats));
        assert_int_equal(stats.bytes_read, want);
        embla_batch_free(batch);
        embla_store_free(store);
        scratch_free(&s);
        free(out);
        free(bytes);
    }
}

/* Scales of a wide row: those of the part cross a line, those before it would not. */
static void statistics_count_the_scales_of_a_part(void **state)
{
    enum { WIDE = 4096, WIDE_BYTES = WIDE + WIDE / 32 };
    const embla_row_format wide = {
        .dim = WIDE, .dtype = EMBLA_F8_E4M3, .scales = EMBLA_SCALES_UE8M0_32};
    const embla_store_lookup_options part = {.first_column = 1536, .columns = 1024};
    static _Alignas(64) const unsigned char bytes[WIDE_BYTES];
    static float out[1024];
    const int64_t row = 0;
    embla_store *store = NULL;
    embla_batch *batch = NULL;
    embla_batch_info stats;
    (void)state;
    assert_ok(embla_store_view(&wide, 1, bytes, sizeof bytes, 0, &store));
    assert_ok(embla_batch_new(store, 1, &batch));
    assert_ok(embla_batch_lookup(batch, &row, 1, &part, out));
    assert_ok(embla_batch_describe(batch, &stats));
    assert_int_equal(stats.bytes_read, 64 * (16 + 2));
    assert_int_equal(stats.bytes_useful, 1024 + 32);
    embla_batch_free(batch);
    embla_store_free(store);
}

/* ---- verify ---- */

static void one_row_in_so_many_is_verified(void **state)
{
    enum { COUNT = 1000 };
    static const size_t every[] = {1, 4, 16, 100};
    (void)state;
    for (size_t p = 0; p < COUNT_OF(places); p++) {
        opened o;
        int64_t rows[COUNT];
        float *out = malloc(COUNT * DIM * sizeof *out);
        assert_non_null(out);
        open_table(&o, places[p], p % 2 == 0);
        for (int i = 0; i < COUNT; i++) rows[i] = i * 3;
        for (size_t e = 0; e < COUNT_OF(every); e++) {
            embla_batch *batch = NULL;
            embla_batch_info stats;
            double wanted = 4.0 * COUNT / (double)every[e];
            assert_ok(embla_batch_new(o.store, COUNT, &batch));
            assert_ok(embla_batch_verify(batch, every[e]));
            for (int i = 0; i < 4; i++)
                assert_ok(embla_batch_lookup(batch, rows, COUNT, NULL, out));
            assert_ok(embla_batch_describe(batch, &stats));
            if (every[e] == 1) assert_int_equal(stats.verified, 4 * COUNT);
            assert_true((double)stats.verified > 0.7 * wanted);
            assert_true((double)stats.verified < 1.4 * wanted);
            int64_t before = stats.verified;
            assert_ok(embla_batch_verify(batch, 0));
            assert_ok(embla_batch_lookup(batch, rows, COUNT, NULL, out));
            assert_ok(embla_batch_describe(batch, &stats));
            assert_int_equal(stats.verified, before);
            embla_batch_free(batch);
        }
        free(out);
        close_table(&o);
    }
}

/* A row in memory that is not what the file has: the caller's buffer can be made wrong. */
static void a_row_that_differs_from_its_file_is_found(void **state)
{
    unsigned char *bytes = malloc((size_t)ROWS * ROW_BYTES);
    unsigned char *buffer = aligned_alloc(64, (size_t)ROWS * ROW_BYTES);
    float out[4 * DIM];
    scratch s;
    embla_store *store = NULL;
    embla_batch *batch = NULL;
    embla_batch_info stats;
    const int64_t rows[4] = {5, 2999, 0, 5};
    (void)state;
    assert_true(bytes && buffer);
    scratch_new(&s);
    check_fill_bytes(1, (size_t)ROWS * ROW_BYTES, bytes);
    scratch_write(scratch_path(&s, "table"), bytes, (size_t)ROWS * ROW_BYTES);
    const embla_extent extent = {.file = s.path, .rows = ROWS, .scale_offset = -1};
    const embla_store_options options = {.buffer = buffer,
                                         .buffer_bytes = (size_t)ROWS * ROW_BYTES};
    assert_ok(embla_store_open_extents(&format, &extent, 1, &options, &store));
    assert_ok(embla_batch_new(store, 4, &batch));
    assert_ok(embla_batch_verify(batch, 1));
    assert_ok(embla_batch_lookup(batch, rows, 4, NULL, out));
    buffer[2999 * ROW_BYTES + 263] ^= 0x40;
    memset(out, 0x5a, sizeof out);
    assert_status(embla_batch_lookup(batch, rows, 4, NULL, out), EMBLA_ERR_IO);
    assert_error_has("row 2999 differs from its file: byte 263 of 264 is 0x");
    assert_int_equal(check_bits_of(out[0]), 0x5a5a5a5a);
    assert_ok(embla_batch_describe(batch, &stats));
    assert_int_equal(stats.calls, 1); /* what failed does not count */
    assert_int_equal(stats.verified, 3);
    /* a part that is right is right */
    const embla_store_lookup_options part = {.columns = 32};
    assert_ok(embla_batch_lookup(batch, rows, 4, &part, out));
    embla_batch_free(batch);
    embla_store_free(store);
    scratch_free(&s);
    free(buffer);
    free(bytes);
}

static void a_view_has_no_file_to_compare_with(void **state)
{
    static const unsigned char bytes[ROW_BYTES];
    embla_store *store = NULL;
    embla_batch *batch = NULL;
    (void)state;
    assert_ok(embla_store_view(&format, 1, bytes, sizeof bytes, 0, &store));
    assert_ok(embla_batch_new(store, 1, &batch));
    assert_ok(embla_batch_verify(batch, 0));
    assert_status(embla_batch_verify(batch, 10), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("no file to compare");
    embla_batch_free(batch);
    embla_store_free(store);
}

/* ---- what is refused, and what fails ---- */

static void what_cannot_be_is_refused(void **state)
{
    opened o;
    embla_batch *batch = NULL;
    embla_batch_info stats = {.calls = 77};
    int64_t rows[11] = {0};
    check_guarded out = check_guard(11 * DIM * sizeof(float), 0);
    (void)state;
    open_table(&o, EMBLA_PLACEMENT_READ, true);
    assert_status(embla_batch_new(NULL, 1, &batch), EMBLA_ERR_ARGUMENT);
    assert_error_has("store is NULL");
    assert_status(embla_batch_new(o.store, 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_batch_new(o.store, 0, &batch), EMBLA_ERR_ARGUMENT);
    assert_error_has("the capacity of a batch is 0 row numbers");
    assert_status(embla_batch_new(o.store, SIZE_MAX, &batch), EMBLA_ERR_ARGUMENT);
    assert_null(batch);
    assert_status(embla_batch_lookup(NULL, rows, 1, NULL, out.bytes), EMBLA_ERR_ARGUMENT);
    assert_status(embla_batch_verify(NULL, 1), EMBLA_ERR_ARGUMENT);
    assert_status(embla_batch_describe(NULL, &stats), EMBLA_ERR_ARGUMENT);
    assert_int_equal(stats.calls, 77);
    embla_batch_free(NULL);
    assert_ok(embla_batch_new(o.store, 10, &batch));
    assert_status(embla_batch_lookup(batch, rows, 11, NULL, out.bytes), EMBLA_ERR_ARGUMENT);
    assert_error_has("count is 11; the batch has room for only 10");
    rows[9] = ROWS;
    assert_status(embla_batch_lookup(batch, rows, 10, NULL, out.bytes), EMBLA_ERR_RANGE);
    assert_error_has("row 3000 at index 9 is out of range: the table has 3000 rows");
    const embla_store_lookup_options heads = {.rows_per_token = 3};
    assert_status(embla_batch_lookup(batch, rows, 10, &heads, out.bytes), EMBLA_ERR_SHAPE);
    assert_status(embla_batch_lookup(batch, NULL, 10, NULL, out.bytes), EMBLA_ERR_ARGUMENT);
    assert_status(embla_batch_lookup(batch, rows, 9, NULL, NULL), EMBLA_ERR_ARGUMENT);
    check_untouched(&out);
    assert_ok(embla_batch_describe(batch, &stats));
    assert_int_equal(stats.calls, 0);
    embla_batch_free(batch);
    close_table(&o);
    check_guard_free(&out);
}

static void no_memory_is_a_status_and_lookups_need_none(void **state)
{
    opened o;
    embla_batch *batch = NULL;
    int64_t *rows = draw_rows(600, 200, 3);
    float *out = malloc(600 * DIM * sizeof *out);
    (void)state;
    assert_non_null(out);
    open_table(&o, EMBLA_PLACEMENT_READ, false);
    size_t live = embla_mem_live();
    embla_mem_fail(1, false);
    assert_status(embla_batch_new(o.store, 600, &batch), EMBLA_ERR_MEMORY);
    embla_mem_fail(0, false);
    assert_int_equal(embla_mem_live(), live);
    assert_ok(embla_batch_new(o.store, 600, &batch));
    assert_ok(embla_batch_verify(batch, 2));
    embla_mem_fail(1, true);
    assert_ok(embla_batch_lookup(batch, rows, 600, NULL, out));
    embla_mem_fail(0, false);
    embla_batch_free(batch);
    assert_int_equal(embla_mem_live(), live);
    free(out);
    free(rows);
    close_table(&o);
}

/* Where rows are staged nothing has been written before all of them are there. */
static void whatever_read_fails_leaves_out_alone(void **state)
{
    enum { COUNT = 60 };
    opened o;
    embla_batch *batch = NULL;
    embla_batch_info stats;
    int64_t *rows = draw_rows(COUNT, 20, 3);
    check_guarded out = check_guard(COUNT * DIM * sizeof(float), 0);
    size_t n = 1;
    (void)state;
    open_table(&o, EMBLA_PLACEMENT_READ, false);
    assert_ok(embla_batch_new(o.store, COUNT, &batch));
    assert_ok(embla_batch_verify(batch, 1));
    for (;; n++) {
        embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
        embla_status status = embla_batch_lookup(batch, rows, COUNT, NULL, out.bytes);
        embla_io_fail(0, false, 0);
        if (status == EMBLA_OK) break;
        assert_int_equal(status, EMBLA_ERR_IO);
        check_untouched(&out);
    }
    /* two planes, and once more to compare; the file looked at, before and after */
    size_t looks = 0;
    for (embla_status status = EMBLA_ERR_IO; status != EMBLA_OK; looks++) {
        embla_io_fail(looks + 1, false, EMBLA_SYSTEM_OTHER);
        status = embla_sources_check(o.store);
        embla_io_fail(0, false, 0);
    }
    assert_int_equal(n - 1, 4 * count_unique(rows, COUNT) + 2 * (looks - 1));
    check_guards(&out);
    assert_ok(embla_batch_describe(batch, &stats));
    assert_int_equal(stats.calls, 1);
    embla_batch_free(batch);
    free(rows);
    check_guard_free(&out);
    close_table(&o);
}

/* Rows in a map are not read by calls; but the file is looked at, before and after. */
static void files_are_looked_at_before_and_after(void **state)
{
    opened o;
    embla_batch *batch = NULL;
    int64_t row = 5;
    float out[DIM];
    size_t calls[2] = {0, 0};
    (void)state;
    open_table(&o, EMBLA_PLACEMENT_MAPPED, true);
    assert_ok(embla_batch_new(o.store, 1, &batch));
    for (size_t which = 0; which < 2; which++)
        for (embla_status status = EMBLA_ERR_IO; status != EMBLA_OK; calls[which]++) {
            embla_io_fail(calls[which] + 1, false, EMBLA_SYSTEM_OTHER);
            status = which == 0 ? embla_sources_check(o.store)
                                : embla_batch_lookup(batch, &row, 1, NULL, out);
            embla_io_fail(0, false, 0);
        }
    assert_int_equal(calls[1] - 1, 2 * (calls[0] - 1));
    embla_batch_free(batch);
    close_table(&o);
}

static void a_file_that_changed_is_a_status(void **state)
{
    opened o;
    embla_batch *batch = NULL;
    int64_t row = 1;
    float out[DIM] = {0};
    (void)state;
    open_table(&o, EMBLA_PLACEMENT_READ, true);
    assert_ok(embla_batch_new(o.store, 1, &batch));
    assert_ok(embla_batch_lookup(batch, &row, 1, NULL, out));
    assert_int_equal(truncate(scratch_path(&o.s, "table"), 10), 0);
    assert_status(embla_batch_lookup(batch, &row, 1, NULL, out), EMBLA_ERR_IO);
    embla_batch_free(batch);
    close_table(&o);
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_gives_what_a_lookup_gives),
        cmocka_unit_test(row_numbers_that_collide_are_told_apart),
        cmocka_unit_test(the_last_slot_is_followed_by_the_first),
        cmocka_unit_test(repeats_cost_no_reads),
        cmocka_unit_test(statistics_count_what_was_done),
        cmocka_unit_test(statistics_count_where_a_part_is),
        cmocka_unit_test(statistics_count_the_scales_of_a_part),
        cmocka_unit_test(one_row_in_so_many_is_verified),
        cmocka_unit_test(a_row_that_differs_from_its_file_is_found),
        cmocka_unit_test(a_view_has_no_file_to_compare_with),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(no_memory_is_a_status_and_lookups_need_none),
        cmocka_unit_test(whatever_read_fails_leaves_out_alone),
        cmocka_unit_test(files_are_looked_at_before_and_after),
        cmocka_unit_test(a_file_that_changed_is_a_status),
    };
    if (count > 1) cmocka_set_test_filter(words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
