/* SPDX-License-Identifier: Apache-2.0 */
/* Extents: which bytes of which files a row is. What is accepted lies in its file, whatever the
 * numbers; every row is found as by a search from front to back; parts of rows come from where
 * a second computation says they are.
 */
#include "check.h"

#include <errno.h>

#include "base/mem.h"
#include "files/io.h"
#include "scratch.h"
#include "store/store.h"

static const embla_row_format plain = {.dim = 160, .dtype = EMBLA_F8_E4M3};
static const embla_row_format scaled = {
    .dim = 256, .dtype = EMBLA_F8_E4M3, .scales = EMBLA_SCALES_UE8M0_32};

/* A store over bytes of the test, and the map of them. */
typedef struct {
    uint8_t *bytes;
    size_t size;
    embla_map *map;
    embla_store *store;
} fixture;

static fixture begin(const embla_row_format *format, size_t size)
{
    fixture f = {.size = size, .bytes = malloc(size)};
    assert_non_null(f.bytes);
    check_fill_bytes(size, size, f.bytes);
    assert_ok(embla_map_bytes(f.bytes, size, "some/file", &f.map));
    assert_ok(embla_store_begin(format, NULL, &f.store));
    return f;
}

static void end(fixture *f)
{
    embla_store_free(f->store);
    embla_map_free(f->map);
    free(f->bytes);
}

static embla_extent_at rows_at(const fixture *f, int64_t rows, uint64_t offset, uint64_t stride)
{
    return (embla_extent_at){.rows = rows, .map = {f->map}, .offset = {offset}, .stride = {stride}};
}

/* ---- what is accepted ---- */

static void rows_that_end_where_the_file_ends_are_accepted_and_one_more_byte_is_not(void **state)
{
    fixture f = begin(&plain, 1000);
    (void)state;
    assert_ok(embla_extents_add(f.store, rows_at(&f, 6, 40, 160)));
    assert_int_equal(f.store->rows, 6);
    assert_int_equal(f.store->bytes, 960);
    assert_status(embla_extents_add(f.store, rows_at(&f, 6, 41, 160)), EMBLA_ERR_SHAPE);
    assert_error_has("some/file: 6 rows from byte 41 on end at byte 1001, but the file has 1000");
    assert_status(embla_extents_add(f.store, rows_at(&f, 7, 0, 160)), EMBLA_ERR_SHAPE);
    /* The last row needs its bytes, not its stride. */
    assert_ok(embla_extents_add(f.store, rows_at(&f, 2, 0, 840)));
    assert_status(embla_extents_add(f.store, rows_at(&f, 2, 0, 841)), EMBLA_ERR_SHAPE);
    assert_int_equal(f.store->rows, 8);
    assert_int_equal(f.store->extent_count, 2);
    assert_int_equal(f.store->extents[1].first, 6);
    assert_int_equal(f.store->source_count, 1);
    end(&f);
}

static void numbers_that_cannot_be_are_refused(void **state)
{
    static const struct {
        int64_t rows;
        uint64_t offset, stride;
        embla_status status;
        const char *said;
    } bad[] = {
        {0, 0, 160, EMBLA_ERR_ARGUMENT, "0 rows after 0 rows; a table must have 1 to 2^40 rows"},
        {-1, 0, 160, EMBLA_ERR_ARGUMENT, "-1 rows"},
        {INT64_MIN, 0, 160, EMBLA_ERR_ARGUMENT, "rows after 0"},
        {((int64_t)1 << 40) + 1, 0, 160, EMBLA_ERR_ARGUMENT, "1099511627777 rows"},
        {INT64_MAX, 0, 160, EMBLA_ERR_ARGUMENT, "rows after 0"},
        {1, 0, 159, EMBLA_ERR_SHAPE, "the stride of its rows is 159 bytes, less than the 160"},
        {1, 0, 0, EMBLA_ERR_SHAPE, "the stride of its rows is 0 bytes, less than the"},
        {1, UINT64_MAX, 160, EMBLA_ERR_ARGUMENT, "do not fit in any file"},
        {1, INT64_MAX, 160, EMBLA_ERR_ARGUMENT, "do not fit in any file"},
        {1, (uint64_t)INT64_MAX - 159, 160, EMBLA_ERR_ARGUMENT, "do not fit in any file"},
        {1, (uint64_t)INT64_MAX - 160, 160, EMBLA_ERR_SHAPE, "but the file has 1000 bytes"},
        {2, 0, UINT64_MAX, EMBLA_ERR_ARGUMENT, "do not fit in any file"},
        {2, 0, INT64_MAX, EMBLA_ERR_ARGUMENT, "do not fit in any file"},
        {(int64_t)1 << 40, 0, (uint64_t)1 << 24, EMBLA_ERR_ARGUMENT, "do not fit in any file"},
        {(int64_t)1 << 40, 0, (uint64_t)1 << 22, EMBLA_ERR_SHAPE, "but the file has 1000 bytes"},
        {1, 841, 160, EMBLA_ERR_SHAPE, "on end at byte 1001"},
    };
    fixture f = begin(&plain, 1000);
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_status(
            embla_extents_add(f.store, rows_at(&f, bad[i].rows, bad[i].offset, bad[i].stride)),
            bad[i].status);
        assert_error_has(bad[i].said);
        assert_int_equal(f.store->rows, 0);
        assert_int_equal(f.store->extent_count, 0);
        assert_int_equal(f.store->source_count, 0);
    }
    /* One row with any stride is one row. */
    assert_ok(embla_extents_add(f.store, rows_at(&f, 1, 840, UINT64_MAX)));
    end(&f);
}

static void all_rows_together_are_counted(void **state)
{
    fixture f = begin(&plain, 1000);
    (void)state;
    assert_ok(embla_extents_add(f.store, rows_at(&f, 6, 0, 160)));
    f.store->rows = EMBLA_ROWS_MOST - 1; /* as if so many had been added */
    assert_status(embla_extents_add(f.store, rows_at(&f, 2, 0, 160)), EMBLA_ERR_ARGUMENT);
    assert_error_has("2 rows after 1099511627775 rows; a table must have 1 to 2^40 rows");
    assert_ok(embla_extents_add(f.store, rows_at(&f, 1, 0, 160)));
    assert_int_equal(f.store->rows, EMBLA_ROWS_MOST);
    end(&f);
}

static void both_planes_are_checked(void **state)
{
    fixture f = begin(&scaled, 1320); /* 5 rows: 1280 and 40 */
    embla_extent_at e = {.rows = 5, .map = {f.map, f.map}, .offset = {0, 1280}, .stride = {256, 8}};
    (void)state;
    assert_ok(embla_extents_add(f.store, e));
    assert_int_equal(f.store->extents[0].planes, 2);
    e.offset[1] = 1281;
    assert_status(embla_extents_add(f.store, e), EMBLA_ERR_SHAPE);
    assert_error_has("5 scales from byte 1281 on end at byte 1321, but the file has 1320");
    e.offset[1] = 0;
    e.stride[1] = 7;
    assert_status(embla_extents_add(f.store, e), EMBLA_ERR_SHAPE);
    assert_error_has("the stride of its scales is 7 bytes, less than the 8");
    e.stride[1] = UINT64_MAX / 2;
    assert_status(embla_extents_add(f.store, e), EMBLA_ERR_ARGUMENT);
    assert_error_has("do not fit in any file");
    /* Planes may overlap, and so may rows of different extents: they are only read. */
    e.stride[1] = 8;
    assert_ok(embla_extents_add(f.store, e));
    assert_ok(embla_extents_add(f.store, e));
    assert_int_equal(f.store->rows, 15);
    end(&f);
}

static void scales_right_behind_each_row_are_one_plane(void **state)
{
    fixture f = begin(&scaled, 5 * 272);
    embla_extent_at e = {
        .rows = 5, .map = {f.map, f.map}, .offset = {0, 256}, .stride = {272, 272}};
    (void)state;
    assert_ok(embla_extents_add(f.store, e));
    assert_int_equal(f.store->extents[0].planes, 1);
    assert_int_equal(f.store->extents[0].bytes[0], 264);
    e.offset[1] = 264; /* a gap between */
    assert_ok(embla_extents_add(f.store, e));
    assert_int_equal(f.store->extents[1].planes, 2);
    e.offset[1] = 256;
    e.stride[1] = 264; /* not as far apart */
    e.rows = 4;
    assert_ok(embla_extents_add(f.store, e));
    assert_int_equal(f.store->extents[2].planes, 2);
    /* Numbers so close that the scales of one row lie in the next: no row of their own. */
    e = (embla_extent_at){
        .rows = 4, .map = {f.map, f.map}, .offset = {0, 256}, .stride = {256, 256}};
    assert_ok(embla_extents_add(f.store, e));
    assert_int_equal(f.store->extents[3].planes, 2);
    end(&f);
}

/* ---- finding ---- */

/* Every row, and the ends of every extent, as by a search from front to back. */
static void check_find(const embla_store *store)
{
    size_t at = 0;
    for (int64_t row = 0; row < store->rows; row++) {
        while (row >= store->extents[at].first + store->extents[at].rows) at++;
        if (embla_extents_find(store, row) != &store->extents[at])
            fail_msg("row %" PRId64 " is not in extent %zu", row, at);
    }
}

static void rows_are_found_in_parts_of_all_sizes(void **state)
{
    uint64_t seed = 11;
    (void)state;
    for (size_t round = 0; round < 200; round++) {
        fixture f = begin(&(embla_row_format){.dim = 1, .dtype = EMBLA_I8}, 4096);
        size_t parts = 1 + check_below(&seed, 140);
        int64_t usual = 1 + (int64_t)check_below(&seed, 40);
        for (size_t i = 0; i < parts; i++) {
            int64_t rows = usual;
            if (round % 4 == 1) rows = usual + (int64_t)(i % 3);             /* nearly */
            if (round % 4 == 2) rows = 1 + (int64_t)check_below(&seed, 300); /* any */
            if (round % 4 == 3) /* one large: in the middle, or the first */
                rows = i == (round % 8 == 3 ? parts / 2 : 0) ? 4000 : 1 + (int64_t)(i % 2);
            assert_ok(embla_extents_add(f.store, rows_at(&f, rows, 0, 1)));
        }
        check_find(f.store); /* by halves */
        assert_true(!(f.store->extents_a_row > 0.0));
        embla_extents_settle(f.store);
        if (round % 4 == 0 && parts > 1) assert_true(f.store->extents_a_row > 0.0);
        if (round % 4 == 3 && parts > 8) assert_true(!(f.store->extents_a_row > 0.0));
        check_find(f.store);
        end(&f);
    }
}

/* Tables of the size that they have: only their ends are looked at. */
static void rows_of_giant_tables_are_found_at_once(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        static embla_extent_at extents[128];
        embla_store store = {.extents = extents};
        int64_t first = 0;
        store.extent_count = kind == 1 ? 12 : 128;
        for (size_t i = 0; i < store.extent_count; i++) {
            int64_t rows = kind == 0   ? 2500012                   /* Qwen */
                           : kind == 1 ? 10223617 + 2 * (int64_t)i /* LongCat */
                                       : (int64_t)1 << 33;         /* as many as there can be */
            extents[i] = (embla_extent_at){.first = first, .rows = rows, .planes = 1};
            first += rows;
        }
        store.rows = store.held = first;
        embla_extents_settle(&store);
        assert_true(store.extents_a_row > 0.0);
        for (size_t i = 0; i < store.extent_count; i++) {
            const embla_extent_at *e = &extents[i];
            assert_ptr_equal(embla_extents_find(&store, e->first), e);
            assert_ptr_equal(embla_extents_find(&store, e->first + e->rows / 2), e);
            assert_ptr_equal(embla_extents_find(&store, e->first + e->rows - 1), e);
        }
    }
}

/* ---- reading ---- */

static void check_parts(const fixture *f, int64_t row, size_t code, size_t scale)
{
    static const struct {
        size_t first, n;
    } parts[] = {{0, 0}, {0, 32}, {32, 0}, {224, 32}, {64, 96}, {0, 256}};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        embla_row_part part;
        assert_ok(embla_row_part_of(&f->store->row, parts[i].first, parts[i].n, &part));
        check_guarded out = check_guard(part.bytes, 0);
        assert_ok(embla_extents_read(f->store, row, &part, out.bytes));
        check_guards(&out);
        size_t n = parts[i].n ? parts[i].n : 256 - parts[i].first;
        assert_memory_equal(out.bytes, f->bytes + code + parts[i].first, n);
        assert_memory_equal(out.bytes + n, f->bytes + scale + parts[i].first / 32, n / 32);
        check_guard_free(&out);
    }
}

static void parts_of_rows_are_read_from_where_they_are(void **state)
{
    fixture f = begin(&scaled, 20000);
    embla_extent_at apart = {
        .rows = 9, .map = {f.map, f.map}, .offset = {3, 9001}, .stride = {300, 11}};
    embla_extent_at joined = {
        .rows = 7, .map = {f.map, f.map}, .offset = {11, 267}, .stride = {270, 270}};
    (void)state;
    assert_ok(embla_extents_add(f.store, apart));
    assert_ok(embla_extents_add(f.store, joined));
    for (size_t r = 0; r < 9; r++) check_parts(&f, (int64_t)r, 3 + 300 * r, 9001 + 11 * r);
    for (size_t r = 0; r < 7; r++) check_parts(&f, 9 + (int64_t)r, 11 + 270 * r, 267 + 270 * r);
    end(&f);
}

static void a_file_that_ends_early_is_a_status(void **state)
{
    scratch s;
    embla_row_part part;
    embla_map *map = NULL;
    embla_store *store = NULL;
    static char bytes[4096], out[160];
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "rows"), bytes, sizeof bytes);
    assert_ok(embla_map_open(EMBLA_HERE, s.path, s.path, true, &map));
    assert_ok(embla_store_begin(&plain, NULL, &store));
    assert_ok(
        embla_extents_add(store, (embla_extent_at){.rows = 25, .map = {map}, .stride = {160}}));
    embla_map_free(map); /* the store has it */
    assert_ok(embla_row_part_of(&store->row, 0, 0, &part));
    assert_ok(embla_extents_read(store, 24, &part, out));
    assert_int_equal(truncate(s.path, 24 * 160 + 159), 0);
    assert_status(embla_extents_read(store, 24, &part, out), EMBLA_ERR_IO);
    assert_error_has("was truncated while it was open");
    assert_status(embla_sources_check(store), EMBLA_ERR_IO);
    assert_error_has("was truncated while it was open");
    assert_ok(embla_extents_read(store, 23, &part, out));
    embla_io_fail(1, false, EMBLA_SYSTEM_OTHER);
    assert_status(embla_extents_read(store, 23, &part, out), EMBLA_ERR_IO);
    embla_io_fail(0, false, 0);
    assert_error_has("cannot read it");
    embla_store_free(store);
    scratch_free(&s);
}

/* A file of rows has no header: its first row may be the bytes of a compressed file. */
static void rows_may_begin_as_a_compressed_file_does(void **state)
{
    scratch s;
    embla_store *store = NULL;
    static char bytes[160] = "\x1f\x8b\x08";
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "rows"), bytes, sizeof bytes);
    const embla_extent extent = {.file = s.path, .rows = 1};
    assert_ok(embla_store_open_extents(&plain, &extent, 1, NULL, &store));
    embla_store_free(store);
    scratch_free(&s);
}

/* ---- memory ---- */

static void every_allocation_may_fail(void **state)
{
    size_t live = embla_mem_live(), failed = 0;
    uint8_t bytes[4096] = {0};
    (void)state;
    for (int forever = 0; forever < 2; forever++)
        for (size_t n = 1;; n++) {
            embla_map *map = NULL;
            embla_store *store = NULL;
            assert_ok(embla_map_bytes(bytes, sizeof bytes, "some/file", &map));
            embla_mem_fail(n, forever);
            embla_status status = embla_store_begin(&plain, NULL, &store);
            for (size_t i = 0; i < 40 && status == EMBLA_OK; i++)
                status = embla_extents_add(
                    store,
                    (embla_extent_at){.rows = 1 + (int64_t)i % 20, .map = {map}, .stride = {160}});
            embla_mem_fail(0, false);
            if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
            embla_store_free(store);
            embla_map_free(map);
            assert_int_equal(embla_mem_live(), live);
            if (status == EMBLA_OK) break;
            failed++;
        }
    assert_true(failed >= 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_end_where_the_file_ends_are_accepted_and_one_more_byte_is_not),
        cmocka_unit_test(numbers_that_cannot_be_are_refused),
        cmocka_unit_test(all_rows_together_are_counted),
        cmocka_unit_test(both_planes_are_checked),
        cmocka_unit_test(scales_right_behind_each_row_are_one_plane),
        cmocka_unit_test(rows_are_found_in_parts_of_all_sizes),
        cmocka_unit_test(rows_of_giant_tables_are_found_at_once),
        cmocka_unit_test(parts_of_rows_are_read_from_where_they_are),
        cmocka_unit_test(a_file_that_ends_early_is_a_status),
        cmocka_unit_test(rows_may_begin_as_a_compressed_file_does),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
