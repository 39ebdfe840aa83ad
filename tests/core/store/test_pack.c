/* SPDX-License-Identifier: Apache-2.0 */
/* Packs: their rows are those of the source with every placement and reader, a row is one read,
 * bundles are one read for all rows of an n-gram, and a pack that is damaged, or whose source has
 * changed, is noticed. Also hot rows by n-gram, and the list of frequent n-grams.
 */
#include "check.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "checkpoint/pack_manifest.h"
#include "files/io.h"
#include "gguf_bytes.h"
#include "store/store.h"
#include "store_tables.h"

enum { HEADS = 8, ROWS = 4000 };

static const embla_store_options direct = {.placement = EMBLA_PLACEMENT_DIRECT};

static void open_source(const table *t, embla_store **out)
{
    assert_ok(embla_store_open_extents(&t->format, t->extents, t->count, &direct, out));
}

/* n-gram i of a made-up corpus: its row numbers. */
static void make_ngram(uint64_t i, int64_t *rows)
{
    for (uint64_t h = 0; h < HEADS; h++)
        rows[h] = (int64_t)(embla_splitmix64(i * HEADS + h) % (ROWS / HEADS) + h * (ROWS / HEADS));
}

static void make_ngrams(size_t count, int64_t *rows)
{
    for (size_t i = 0; i < count; i++) make_ngram(i, rows + i * HEADS);
}

/* A pack of a table with `bundles` n-grams, written and opened. */
typedef struct {
    char path[SCRATCH_PATH];
    embla_checkpoint *checkpoint;
    embla_store *store;
    embla_pack_report report;
} packed;

static void make_pack(table *t, size_t bundles, const embla_store_options *options, packed *out)
{
    int64_t *ngrams = calloc(bundles * HEADS + 1, sizeof *ngrams);
    embla_store *source = NULL;
    assert_non_null(ngrams);
    make_ngrams(bundles, ngrams);
    *out = (packed){0};
    (void)snprintf(out->path, sizeof out->path, "%s", scratch_path(&t->s, "packed"));
    open_source(t, &source);
    const embla_pack_options how = {
        .rows_per_ngram = HEADS, .bundles = ngrams, .bundle_count = bundles, .overwrite = true};
    assert_ok(embla_pack_write(source, out->path, &how, &out->report));
    embla_store_free(source);
    free(ngrams);
    assert_ok(embla_checkpoint_open(out->path, NULL, &out->checkpoint));
    assert_ok(embla_store_open(out->checkpoint, NULL, -1, options, &out->store));
}

static void close_pack(packed *p)
{
    embla_store_free(p->store);
    embla_checkpoint_free(p->checkpoint);
}

/* Reads rows with one ticket, and compares them with the table. Returns the reads. */
static int64_t read_rows(const table *t, embla_tickets *tickets, const int64_t *rows, size_t count)
{
    static unsigned char out[1 << 20];
    const embla_store_lookup_options raw = {.raw = true};
    const embla_ticket_request q = {.rows = rows, .count = count, .lookup = &raw, .out = out};
    embla_tickets_info before, after;
    embla_ticket ticket;
    assert_true(count * t->row_bytes <= sizeof out);
    assert_ok(embla_tickets_describe(tickets, &before));
    assert_ok(embla_ticket_submit(tickets, &q, &ticket));
    assert_ok(embla_ticket_wait(tickets, ticket));
    assert_ok(embla_tickets_describe(tickets, &after));
    for (size_t i = 0; i < count; i++)
        assert_memory_equal(out + i * t->row_bytes, t->truth + (size_t)rows[i] * t->row_bytes,
                            t->row_bytes);
    return after.reads - before.reads;
}

/* ---- rows ---- */

static void a_pack_has_the_rows_of_its_source(void **state)
{
    static const embla_placement places[] = {EMBLA_PLACEMENT_RAM, EMBLA_PLACEMENT_MAPPED,
                                             EMBLA_PLACEMENT_READ, EMBLA_PLACEMENT_DIRECT};
    size_t live = embla_mem_live(), files = embla_io_live();
    (void)state;
    for (int which = 0; which < TABLES; which++) {
        table t;
        make(&t, which, ROWS);
        for (size_t k = 0; k < COUNT_OF(places); k++) {
            const embla_store_options options = {.placement = places[k]};
            int64_t rows[500];
            static unsigned char out[500 * 512];
            uint64_t seed = 7;
            packed p;
            make_pack(&t, k % 2 ? 100 : 0, &options, &p);
            assert_int_equal(p.report.rows, ROWS);
            assert_int_equal(p.report.rows_a_page, 4096 / t.row_bytes);
            for (size_t i = 0; i < COUNT_OF(rows); i++) rows[i] = (int64_t)check_below(&seed, ROWS);
            rows[0] = 0;
            rows[1] = ROWS - 1;
            const embla_store_lookup_options raw = {.raw = true};
            assert_ok(embla_store_lookup(p.store, rows, COUNT_OF(rows), &raw, out));
            for (size_t i = 0; i < COUNT_OF(rows); i++)
                assert_memory_equal(out + i * t.row_bytes, t.truth + (size_t)rows[i] * t.row_bytes,
                                    t.row_bytes);
            embla_verify_report verified;
            assert_ok(embla_store_verify(p.store, 0, 1, &verified));
            assert_true(verified.rows == ROWS && verified.different == 0);
            close_pack(&p);
        }
        finish(&t);
    }
    assert_int_equal(embla_mem_live(), live);
    assert_int_equal(embla_io_live(), files);
}

/* Two planes: a row is two reads. Packed: one. */
static void a_packed_row_is_one_read(void **state)
{
    embla_store *source = NULL;
    embla_tickets *plain = NULL, *tickets = NULL;
    int64_t reads = 0, plain_reads = 0;
    table t;
    packed p;
    (void)state;
    make(&t, 2, ROWS);
    make_pack(&t, 0, &direct, &p);
    open_source(&t, &source);
    assert_ok(embla_tickets_new(source, NULL, &plain));
    assert_ok(embla_tickets_new(p.store, NULL, &tickets));
    for (int64_t row = 0; row < ROWS; row += 3) {
        plain_reads += read_rows(&t, plain, &row, 1);
        int64_t one = read_rows(&t, tickets, &row, 1);
        assert_int_equal(one, 1);
        reads += one;
    }
    assert_true(plain_reads >= 2 * reads);
    embla_tickets_info stats;
    assert_ok(embla_tickets_describe(tickets, &stats));
    assert_int_equal(stats.bytes_read, 4096 * reads); /* none crosses a page */
    embla_tickets_free(plain);
    embla_tickets_free(tickets);
    embla_store_free(source);
    close_pack(&p);
    finish(&t);
}

/* Rows that are larger than a page. */
static void large_rows_begin_a_page(void **state)
{
    static const embla_row_format wide = {.dim = 3000, .dtype = EMBLA_BF16};
    embla_tickets *tickets = NULL;
    table t;
    packed p;
    (void)state;
    start(&t, wide, 70);
    make_joined(&t, 0);
    make_pack(&t, 0, &direct, &p);
    assert_int_equal(p.report.rows_a_page, 0);
    assert_ok(embla_tickets_new(p.store, NULL, &tickets));
    for (int64_t row = 0; row < 70; row++) assert_int_equal(read_rows(&t, tickets, &row, 1), 1);
    embla_tickets_free(tickets);
    close_pack(&p);
    finish(&t);
}

/* ---- bundles ---- */

static void a_bundle_is_one_read(void **state)
{
    enum { BUNDLES = 300 };
    static const embla_reader_kind readers[] = {EMBLA_READER_AUTO, EMBLA_READER_PREAD,
                                                EMBLA_READER_BUFFERED};
    (void)state;
    for (int which = 0; which < TABLES; which++)
        for (size_t k = 0; k < COUNT_OF(readers); k++) {
            const embla_store_options options = {.placement = EMBLA_PLACEMENT_DIRECT,
                                                 .reader = readers[k]};
            embla_tickets *tickets = NULL;
            embla_tickets_info stats;
            int64_t rows[4 * HEADS];
            table t;
            packed p;
            make(&t, which, ROWS);
            make_pack(&t, BUNDLES, &options, &p);
            assert_int_equal(p.report.bundles, BUNDLES);
            assert_ok(embla_tickets_new(p.store, NULL, &tickets));
            for (uint64_t i = 0; i < BUNDLES; i += 7) {
                make_ngram(i, rows);
                assert_int_equal(read_rows(&t, tickets, rows, HEADS), 1);
            }
            assert_ok(embla_tickets_describe(tickets, &stats));
            assert_int_equal(stats.bundled, (BUNDLES + 6) / 7 * HEADS);
            /* one n-gram has no bundle, one is in another order, and the last is not whole */
            make_ngram(BUNDLES + 5, rows);
            make_ngram(3, rows + HEADS);
            make_ngram(4, rows + 2 * HEADS);
            int64_t first = rows[2 * HEADS];
            rows[2 * HEADS] = rows[2 * HEADS + 1];
            rows[2 * HEADS + 1] = first;
            make_ngram(5, rows + 3 * HEADS);
            assert_true(read_rows(&t, tickets, rows, 4 * HEADS - 1) > 2);
            embla_tickets_free(tickets);
            close_pack(&p);
            finish(&t);
        }
}

/* A part of a row from a bundle, decoded. */
static void parts_of_rows_come_from_bundles(void **state)
{
    const embla_store_lookup_options part = {
        .rows_per_token = HEADS, .first_column = 64, .columns = 96};
    static float wanted[HEADS * 96], out[HEADS * 96];
    embla_store *source = NULL;
    embla_tickets *tickets = NULL;
    embla_tickets_info stats;
    embla_ticket ticket;
    int64_t rows[HEADS];
    table t;
    packed p;
    (void)state;
    make(&t, 2, ROWS);
    make_pack(&t, 50, &direct, &p);
    open_source(&t, &source);
    make_ngram(20, rows);
    assert_ok(embla_store_lookup(source, rows, HEADS, &part, wanted));
    assert_ok(embla_tickets_new(p.store, NULL, &tickets));
    const embla_ticket_request q = {.rows = rows, .count = HEADS, .lookup = &part, .out = out};
    assert_ok(embla_ticket_submit(tickets, &q, &ticket));
    assert_ok(embla_ticket_wait(tickets, ticket));
    assert_memory_equal(out, wanted, sizeof out);
    assert_ok(embla_tickets_describe(tickets, &stats));
    assert_true(stats.reads == 1 && stats.bundled == HEADS);
    embla_tickets_free(tickets);
    embla_store_free(source);
    close_pack(&p);
    finish(&t);
}

/* Changes bytes of the pack's file: of a tensor, from `offset` on. */
static void damage(const packed *p, const char *tensor, uint64_t offset, size_t count)
{
    embla_checkpoint *cp = NULL;
    const embla_entry *entry = NULL;
    unsigned char byte;
    assert_ok(embla_checkpoint_open(p->path, NULL, &cp));
    assert_ok(embla_checkpoint_named(cp, tensor, &entry));
    FILE *file = fopen(p->path, "r+b");
    assert_non_null(file);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(fseek(file, (long)(entry->offset + offset + i), SEEK_SET), 0);
        assert_int_equal(fread(&byte, 1, 1, file), 1);
        byte ^= 1;
        assert_int_equal(fseek(file, (long)(entry->offset + offset + i), SEEK_SET), 0);
        assert_int_equal(fwrite(&byte, 1, 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
    embla_checkpoint_free(cp);
}

/* Opens the file of a pack again. */
static embla_status open_again(packed *p)
{
    close_pack(p);
    p->store = NULL;
    p->checkpoint = NULL;
    assert_ok(embla_checkpoint_open(p->path, NULL, &p->checkpoint));
    return embla_store_open(p->checkpoint, NULL, -1, &direct, &p->store);
}

/* Two n-grams may have the same key. The row numbers in the file decide. */
static void a_bundle_of_another_ngram_is_not_used(void **state)
{
    embla_tickets *tickets = NULL;
    int64_t rows[HEADS];
    table t;
    packed p;
    (void)state;
    make(&t, 0, ROWS);
    make_pack(&t, 1, &direct, &p);
    damage(&p, EMBLA_PACK_BUNDLES, 3 * (t.row_bytes + 8), 1);      /* the number of row 3 */
    damage(&p, EMBLA_PACK_BUNDLES, 3 * (t.row_bytes + 8) + 20, 9); /* and its numbers */
    assert_ok(open_again(&p));
    make_ngram(0, rows);
    assert_ok(embla_tickets_new(p.store, NULL, &tickets));
    assert_int_equal(read_rows(&t, tickets, rows, HEADS), 1);
    embla_tickets_free(tickets);
    close_pack(&p);
    finish(&t);
}

/* ---- damage, changes ---- */

static void damage_is_noticed(void **state)
{
    embla_pack_report report;
    table t;
    packed p;
    (void)state;
    make(&t, 2, ROWS);
    make_pack(&t, 40, &direct, &p);
    assert_ok(embla_pack_verify(p.checkpoint, NULL, NULL, &report));
    assert_true(report.bundles_wrong == 0 && report.different == 0 && report.first == -1);
    damage(&p, EMBLA_PACK_ROWS, 5000, 1);
    assert_ok(open_again(&p));
    assert_status(embla_pack_verify(p.checkpoint, NULL, NULL, &report), EMBLA_ERR_FORMAT);
    assert_non_null(strstr(embla_error(), "damaged"));
    damage(&p, EMBLA_PACK_ROWS, 5000, 1); /* as it was */
    damage(&p, EMBLA_PACK_BUNDLES, 100, 1);
    assert_ok(open_again(&p));
    assert_status(embla_pack_verify(p.checkpoint, NULL, NULL, &report), EMBLA_ERR_FORMAT);
    damage(&p, EMBLA_PACK_BUNDLES, 100, 1);
    damage(&p, EMBLA_PACK_INDEX, 7, 1); /* the high byte of a key */
    embla_status status = open_again(&p);
    if (status == EMBLA_OK) { /* the keys still ascend */
        assert_ok(embla_pack_verify(p.checkpoint, NULL, NULL, &report));
        assert_int_equal(report.bundles_wrong, 1);
    } else {
        assert_int_equal(status, EMBLA_ERR_FORMAT);
    }
    close_pack(&p);
    finish(&t);
}

static void a_changed_source_is_noticed(void **state)
{
    embla_pack_report report;
    embla_store *source = NULL;
    table t, other;
    packed p;
    (void)state;
    make(&t, 1, ROWS);
    make_pack(&t, 0, &direct, &p);
    open_source(&t, &source);
    assert_ok(embla_pack_verify(p.checkpoint, source, NULL, &report));
    assert_int_equal(report.different, 0);
    embla_store_free(source);
    FILE *file = fopen(t.paths[0], "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 11 + 77 * (long)t.row_bytes, SEEK_SET), 0);
    put(file, "other", 5);
    assert_int_equal(fclose(file), 0);
    open_source(&t, &source);
    assert_ok(embla_pack_verify(p.checkpoint, source, NULL, &report));
    assert_true(report.different == 1 && report.first == 77);
    embla_store_free(source);
    make(&other, 1, ROWS - 1);
    open_source(&other, &source);
    assert_status(embla_pack_verify(p.checkpoint, source, NULL, &report), EMBLA_ERR_SHAPE);
    embla_store_free(source);
    close_pack(&p);
    finish(&other);
    finish(&t);
}

static void existing_files_are_not_replaced(void **state)
{
    const embla_pack_options how = {0};
    embla_store *source = NULL, *view = NULL;
    unsigned char row[160] = {0};
    table t;
    packed p;
    (void)state;
    make(&t, 0, ROWS);
    make_pack(&t, 0, &direct, &p);
    open_source(&t, &source);
    assert_status(embla_pack_write(source, p.path, &how, NULL), EMBLA_ERR_ARGUMENT);
    const int64_t wrong[HEADS] = {0, 1, 2, ROWS};
    embla_pack_options bundles = {
        .rows_per_ngram = HEADS, .bundles = wrong, .bundle_count = 1, .overwrite = true};
    assert_status(embla_pack_write(source, p.path, &bundles, NULL), EMBLA_ERR_RANGE);
    bundles.rows_per_ngram = 33;
    assert_status(embla_pack_write(source, p.path, &bundles, NULL), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_store_view(&t.format, 1, row, sizeof row, 0, &view));
    assert_status(embla_pack_write(view, p.path, &how, NULL), EMBLA_ERR_UNSUPPORTED);
    embla_store_free(view);
    embla_store_free(source);
    close_pack(&p);
    finish(&t);
}

/* A store that holds a range of the rows is no source: not to be packed, nor to be compared. */
static void a_part_of_a_table_is_no_source(void **state)
{
    static const embla_store_engine_options ranges[] = {{.first = 0, .end = ROWS / 2},
                                                        {.first = ROWS / 2, .end = ROWS}};
    table t;
    packed p;
    (void)state;
    make(&t, 0, ROWS);
    make_pack(&t, 0, &direct, &p);
    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        const embla_store_options part = {.placement = EMBLA_PLACEMENT_DIRECT,
                                          .engine = &ranges[i]};
        embla_store *source = NULL;
        embla_pack_report report;
        assert_ok(embla_store_open_extents(&t.format, t.extents, t.count, &part, &source));
        assert_status(embla_pack_write(source, scratch_path(&t.s, "part"), NULL, NULL),
                      EMBLA_ERR_UNSUPPORTED);
        assert_non_null(strstr(embla_error(), "has 2000 of 4000 rows"));
        assert_status(embla_pack_verify(p.checkpoint, source, NULL, &report),
                      EMBLA_ERR_UNSUPPORTED);
        char *rows = malloc(ROWS * t.row_bytes);
        assert_status(embla_extents_fill(source, 0, ROWS, rows), EMBLA_ERR_RANGE);
        free(rows);
        embla_store_free(source);
    }
    close_pack(&p);
    finish(&t);
}

static bool stop_at_half(void *context, const char *what, int64_t done, int64_t total)
{
    (void)context;
    (void)what;
    return 2 * done < total;
}

static void a_stopped_pack_leaves_nothing(void **state)
{
    const embla_pack_options how = {.progress = stop_at_half};
    embla_store *source = NULL;
    table t;
    (void)state;
    make(&t, 0, ROWS);
    open_source(&t, &source);
    const char *path = scratch_path(&t.s, "stopped");
    assert_status(embla_pack_write(source, path, &how, NULL), EMBLA_ERR_STOPPED);
    assert_int_not_equal(access(scratch_path(&t.s, "stopped"), F_OK), 0);
    embla_store_free(source);
    finish(&t);
}

/* Every allocation and every call of the system fails once: a status, and nothing is left. */
static void failures_leave_nothing(void **state)
{
    int64_t ngrams[20 * HEADS];
    const embla_pack_options how = {
        .rows_per_ngram = HEADS, .bundles = ngrams, .bundle_count = 20, .overwrite = true};
    size_t live, files, failed = 0;
    embla_store *source = NULL;
    char path[SCRATCH_PATH];
    table t;
    (void)state;
    make_ngrams(20, ngrams);
    make(&t, 2, ROWS);
    open_source(&t, &source);
    (void)snprintf(path, sizeof path, "%s", scratch_path(&t.s, "failed"));
    live = embla_mem_live();
    files = embla_io_live();
    for (int kind = 0; kind < 2; kind++)
        for (size_t n = 1, passed = 0; passed < 16; n++) { /* some failures are survived */
            if (kind == 0)
                embla_mem_fail(n, false);
            else
                embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
            embla_status status = embla_pack_write(source, path, &how, NULL);
            embla_mem_fail(0, false);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), files);
            passed = status == EMBLA_OK ? passed + 1 : 0;
            if (status != EMBLA_OK) failed++;
        }
    assert_true(failed > 20);
    embla_store_free(source);
    finish(&t);
}

/* ---- hasher ---- */

static void a_pack_has_its_hasher(void **state)
{
    static const int32_t values[6] = {0, 1, 1, 2, 0, 3};
    embla_fold *fold = NULL;
    (void)state;
    assert_ok(embla_fold_new(values, 6, &fold));
    const embla_ngram_parameters kinds[] = {
        {.kind = EMBLA_NGRAM_QWEN,
         .vocab = 500,
         .orders = 3,
         .rows_per_ngram = 8,
         .base = 150,
         .eos = 3,
         .seed = 1234},
        {.kind = EMBLA_NGRAM_ENGRAM,
         .vocab = 4,
         .orders = 3,
         .rows_per_ngram = 4,
         .base = 100,
         .layer = 5,
         .pad = 2,
         .fold = fold},
        {.kind = EMBLA_NGRAM_LONGCAT,
         .vocab = 90,
         .orders = 3,
         .rows_per_ngram = 4,
         .ratio = 4,
         .eos = 7,
         .eos_rule = EMBLA_NGRAM_EOS_ZERO},
        {.kind = EMBLA_NGRAM_LONGCAT,
         .vocab = 90,
         .orders = 3,
         .rows_per_ngram = 4,
         .ratio = 4,
         .eos = 7,
         .eos_rule = EMBLA_NGRAM_EOS_IGNORED},
        {.kind = EMBLA_NGRAM_IDENTITY, .vocab = 400, .pad = 0},
    };
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        embla_ngram *ngram = NULL, *found = NULL;
        embla_ngram_info a, b;
        embla_store *source = NULL;
        embla_checkpoint *cp = NULL;
        int64_t rows[2][6 * 64];
        const int32_t tokens[6] = {1, 5, 3, 0, 4, 2};
        table t;
        make(&t, 0, ROWS);
        open_source(&t, &source);
        assert_ok(embla_ngram_new(&kinds[k], &ngram));
        const embla_pack_options how = {.ngram = ngram, .overwrite = true};
        const char *path = scratch_path(&t.s, "hashed");
        assert_ok(embla_pack_write(source, path, &how, NULL));
        assert_ok(embla_checkpoint_open(scratch_path(&t.s, "hashed"), NULL, &cp));
        assert_ok(embla_ngram_open(cp, -1, NULL, &found));
        assert_ok(embla_ngram_describe(ngram, &a));
        assert_ok(embla_ngram_describe(found, &b));
        assert_true(a.rows == b.rows && a.rows_per_token == b.rows_per_token &&
                    a.eos_rule == b.eos_rule && a.tokens == b.tokens && a.kind == b.kind &&
                    a.history == b.history);
        if (k != 0) assert_int_equal(a.layer, b.layer);
        assert_ok(embla_ngram_rows(ngram, tokens, 1, 6, NULL, rows[0]));
        assert_ok(embla_ngram_rows(found, tokens, 1, 6, NULL, rows[1]));
        assert_memory_equal(rows[0], rows[1], 6 * a.rows_per_token * sizeof rows[0][0]);
        embla_ngram_free(found);
        embla_ngram_free(ngram);
        embla_checkpoint_free(cp);
        embla_store_free(source);
        finish(&t);
    }
    embla_fold_free(fold);
}

/* ---- hot rows by n-gram, from the list of a pack ---- */

static void hot_ngrams_are_found_together(void **state)
{
    enum { BUNDLES = 60 };
    static const size_t budgets[] = {64 << 10, 20 << 10};
    int64_t rows[HEADS];
    table t;
    packed p;
    (void)state;
    make(&t, 2, ROWS);
    make_pack(&t, BUNDLES, &direct, &p);
    for (size_t k = 0; k < COUNT_OF(budgets); k++) {
        embla_tickets *tickets = NULL;
        embla_tickets_info stats;
        const embla_tickets_options options = {
            .hot_bytes = budgets[k], .hot_rows_per_ngram = HEADS, .hot_file = p.path};
        assert_ok(embla_tickets_new(p.store, &options, &tickets));
        assert_ok(embla_tickets_describe(tickets, &stats));
        assert_true(stats.hot_bytes <= (int64_t)budgets[k]);
        int64_t fixed = stats.hot_rows;
        assert_true(fixed > 0 && fixed % HEADS == 0 && fixed < BUNDLES * HEADS);
        for (uint64_t i = 0; i < (uint64_t)fixed / HEADS; i++) { /* the most frequent first */
            make_ngram(i, rows);
            assert_int_equal(read_rows(&t, tickets, rows, HEADS), 0);
        }
        assert_ok(embla_tickets_describe(tickets, &stats));
        assert_true(stats.hot == fixed && stats.hot_fixed == fixed);
        make_ngram(0, rows); /* an n-gram that differs in one row is another one */
        rows[HEADS - 1] = (rows[HEADS - 1] + 1) % ROWS;
        assert_true(read_rows(&t, tickets, rows, HEADS) > 1);
        make_ngram(BUNDLES + 1, rows); /* not in the fixed set: read once, then kept */
        assert_true(read_rows(&t, tickets, rows, HEADS) > 1);
        assert_int_equal(read_rows(&t, tickets, rows, HEADS), 0);
        assert_ok(embla_tickets_describe(tickets, &stats));
        assert_true(stats.hot == fixed + HEADS && stats.hot_fixed == fixed);
        for (uint64_t i = 0; i < 300; i++) { /* more than fit */
            make_ngram(1000 + i, rows);
            (void)read_rows(&t, tickets, rows, HEADS);
        }
        assert_ok(embla_tickets_describe(tickets, &stats));
        assert_true(stats.hot_bytes <= (int64_t)budgets[k] && stats.hot_rows % HEADS == 0);
        embla_tickets_free(tickets);
    }
    const embla_tickets_options wrong = {
        .hot_bytes = 1 << 20, .hot_rows_per_ngram = 3, .hot_file = p.path};
    embla_tickets *tickets = NULL;
    assert_status(embla_tickets_new(p.store, &wrong, &tickets), EMBLA_ERR_SHAPE);
    close_pack(&p);
    finish(&t);
}

/* ---- frequent n-grams ---- */

static void frequent_ngrams_come_first(void **state)
{
    const embla_ngram_parameters parameters = {.kind = EMBLA_NGRAM_QWEN,
                                               .vocab = 500,
                                               .orders = 3,
                                               .rows_per_ngram = 4,
                                               .base = 200,
                                               .eos = 3,
                                               .seed = 1234};
    const int32_t tokens[] = {7, 8, 9, 7, 8, 5, 7, 8, 9, 100};
    embla_ngram *ngram = NULL;
    embla_frequent *frequent = NULL;
    int64_t rows[COUNT_OF(tokens) * 8];
    size_t count, heads;
    (void)state;
    assert_ok(embla_ngram_new(&parameters, &ngram));
    assert_ok(embla_ngram_rows(ngram, tokens, 1, COUNT_OF(tokens), NULL, rows));
    const embla_frequent_options options = {
        .ngram = ngram, .tokens = tokens, .length = COUNT_OF(tokens), .max_ngrams = 2};
    assert_ok(embla_frequent_new(&options, &frequent));
    const int64_t *found = embla_frequent_rows(frequent, &count, &heads);
    assert_true(count == 4 && heads == 4);
    assert_memory_equal(found, rows + 1 * 8, 4 * sizeof *rows);         /* 7 8: 3 times */
    assert_memory_equal(found + 4, rows + 2 * 8, 4 * sizeof *rows);     /* 8 9: twice */
    assert_memory_equal(found + 8, rows + 2 * 8 + 4, 4 * sizeof *rows); /* 7 8 9: twice */
    embla_frequent_free(frequent);
    const embla_frequent_options nothing = {.ngram = ngram, .max_ngrams = 2};
    assert_ok(embla_frequent_new(&nothing, &frequent));
    (void)embla_frequent_rows(frequent, &count, NULL);
    assert_int_equal(count, 0);
    embla_frequent_free(frequent);
    assert_status(embla_frequent_new(&(embla_frequent_options){.max_ngrams = 1}, &frequent),
                  EMBLA_ERR_ARGUMENT);
    embla_ngram_free(ngram);
}

/* A GGUF file with a vocabulary has no tensor at all: no list of rows, and no trace. */
static void a_file_without_tensors_is_no_list(void **state)
{
    gguf_bytes g = {0};
    embla_store *source = NULL;
    embla_tickets *tickets = NULL;
    embla_frequent *frequent = NULL;
    table t;
    (void)state;
    make(&t, 0, ROWS);
    open_source(&t, &source);
    add_head(&g, 3, 0, 1);
    add_array(&g, "tokenizer.ggml.tokens", EMBLA_GGUF_STRING, 1);
    add_text(&g, "a");
    add_padding(&g, 32);
    scratch_write(scratch_path(&t.s, "words.gguf"), g.bytes, g.used);
    free(g.bytes);
    const char *path = t.s.path;
    const embla_tickets_options hot = {.hot_bytes = 1 << 20, .hot_file = path};
    assert_status(embla_tickets_new(source, &hot, &tickets), EMBLA_ERR_FORMAT);
    assert_error_has("words.gguf has format gguf; a list of rows is an npy file");
    const embla_frequent_options trace = {.max_ngrams = 1, .rows_per_ngram = HEADS, .trace = path};
    assert_status(embla_frequent_new(&trace, &frequent), EMBLA_ERR_FORMAT);
    assert_error_has("words.gguf has format gguf; a trace is an npy file");
    embla_store_free(source);
    finish(&t);
}

/* ---- manifests ---- */

static void wrong_manifests_are_refused(void **state)
{
    static const char *const good =
        "{\"version\":1,\"rows\":10,\"layer\":-1,\"name\":\"t\",\"dtype\":\"f8_e4m3\",\"dim\":160,"
        "\"scales\":0,\"scale\":1,\"bundle_heads\":0,\"bundles\":0}";
    static const char *const wrong[][2] = {
        {"\"version\":1", "\"version\":3"},
        {"\"rows\":10", "\"rows\":0"},
        {"\"rows\":10", "\"rows\":1e3"},
        {"\"layer\":-1", "\"layer\":-2"},
        {"f8_e4m3", "f9"},
        {"\"dim\":160", "\"dim\":0"},
        {"\"scales\":0", "\"scales\":4"},
        {"\"scales\":0", "\"scales\":3"},
        {"\"scale\":1,", "\"scale\":0,"},
        {"\"scale\":1,", ""},
        {"\"bundles\":0", "\"bundles\":5"},
        {"\"bundle_heads\":0", "\"bundle_heads\":33"},
        {"}", ",\"ngram\":{}}"},
        {"{", "["},
    };
    char text[600];
    embla_pack pack;
    (void)state;
    assert_ok(embla_pack_parse(good, "file", &pack));
    embla_pack_free(&pack);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        const char *at = strstr(good, wrong[i][0]);
        assert_non_null(at);
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, wrong[i][1],
                       at + strlen(wrong[i][0]));
        embla_status status = embla_pack_parse(text, "file", &pack);
        assert_true(status == EMBLA_ERR_FORMAT || status == EMBLA_ERR_UNSUPPORTED);
        assert_non_null(strstr(embla_error(), "file"));
        embla_pack_free(&pack);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pack_has_the_rows_of_its_source),
        cmocka_unit_test(a_packed_row_is_one_read),
        cmocka_unit_test(large_rows_begin_a_page),
        cmocka_unit_test(a_bundle_is_one_read),
        cmocka_unit_test(parts_of_rows_come_from_bundles),
        cmocka_unit_test(a_bundle_of_another_ngram_is_not_used),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(a_changed_source_is_noticed),
        cmocka_unit_test(existing_files_are_not_replaced),
        cmocka_unit_test(a_part_of_a_table_is_no_source),
        cmocka_unit_test(a_stopped_pack_leaves_nothing),
        cmocka_unit_test(failures_leave_nothing),
        cmocka_unit_test(a_pack_has_its_hasher),
        cmocka_unit_test(hot_ngrams_are_found_together),
        cmocka_unit_test(frequent_ngrams_come_first),
        cmocka_unit_test(a_file_without_tensors_is_no_list),
        cmocka_unit_test(wrong_manifests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
