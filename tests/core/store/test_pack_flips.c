/* SPDX-License-Identifier: Apache-2.0 */
/* Packs against damage: every bit of the header and of the lists of a pack is flipped. A flip that
 * changes an answer is refused when the pack is opened, or by embla_pack_verify. Also packs of
 * version 1, which have no checksum of their manifest, and verification against another hasher.
 */
#include "check.h"

#include <fcntl.h>
#include <unistd.h>

#include "checkpoint/pack_manifest.h"
#include "store/store.h"
#include "store_tables.h"

enum { ROWS = 1000, TOKENS = 24, COLUMNS = 8, HEADS = 4, SHOWN = 40, DIM = 160 };

static const embla_store_options direct = {.placement = EMBLA_PLACEMENT_DIRECT};
static const embla_store_options pread_rows = {.placement = EMBLA_PLACEMENT_READ};

/* A pack with all its parts: a hasher with a fold, and bundles. */
typedef struct {
    table t;
    embla_fold *fold;
    embla_ngram *ngram;
    embla_store *source;
    char path[SCRATCH_PATH];
} full_pack;

static embla_ngram *make_hasher(const embla_fold *fold, int64_t base)
{
    const embla_ngram_parameters engram = {.kind = EMBLA_NGRAM_ENGRAM,
                                           .vocab = 4,
                                           .orders = 3,
                                           .rows_per_ngram = HEADS,
                                           .base = base,
                                           .layer = 5,
                                           .pad = 2,
                                           .fold = fold};
    embla_ngram *ngram = NULL;
    assert_ok(embla_ngram_new(&engram, &ngram));
    return ngram;
}

static void make_full(full_pack *p)
{
    static const int32_t values[6] = {0, 1, 1, 2, 0, 3};
    int64_t bundles[6 * HEADS];
    *p = (full_pack){0};
    make(&p->t, 0, ROWS);
    assert_ok(embla_fold_new(values, 6, &p->fold));
    p->ngram = make_hasher(p->fold, 100);
    for (size_t i = 0; i < COUNT_OF(bundles); i++) bundles[i] = (int64_t)(i * 37 % ROWS);
    (void)snprintf(p->path, sizeof p->path, "%s", scratch_path(&p->t.s, "packed"));
    assert_ok(
        embla_store_open_extents(&p->t.format, p->t.extents, p->t.count, &direct, &p->source));
    const embla_pack_options how = {.name = "t",
                                    .ngram = p->ngram,
                                    .rows_per_ngram = HEADS,
                                    .bundles = bundles,
                                    .bundle_count = 6};
    assert_ok(embla_pack_write(p->source, p->path, &how, NULL));
}

static void free_full(full_pack *p)
{
    embla_store_free(p->source);
    embla_ngram_free(p->ngram);
    embla_fold_free(p->fold);
    finish(&p->t);
}

/* ---- answers ---- */

/* What a program can learn from a pack. */
typedef struct {
    int64_t table_rows, table_dim, row_bytes, layer, history;
    int64_t rows[TOKENS * COLUMNS];
    float numbers[SHOWN * DIM];
} answers;

static embla_status ask_store(const embla_checkpoint *cp, const embla_store_options *how,
                              answers *out)
{
    embla_store *store = NULL;
    embla_store_info info;
    int64_t rows[SHOWN];
    EMBLA_TRY(embla_store_open(cp, NULL, -1, how, &store));
    embla_status status = embla_store_describe(store, &info);
    out->table_rows = info.rows;
    out->table_dim = (int64_t)info.format.dim;
    out->row_bytes = (int64_t)info.row_bytes;
    for (int64_t i = 0; i < SHOWN; i++) rows[i] = i * 37 % ROWS;
    if (status == EMBLA_OK && info.format.dim == DIM)
        status = embla_store_lookup(store, rows, SHOWN, NULL, out->numbers);
    embla_store_free(store);
    return status;
}

static embla_status ask_hasher(const embla_checkpoint *cp, answers *out)
{
    embla_ngram *ngram = NULL;
    embla_ngram_info info;
    int32_t tokens[TOKENS];
    EMBLA_TRY(embla_ngram_open(cp, -1, NULL, &ngram));
    assert_ok(embla_ngram_describe(ngram, &info));
    out->layer = info.layer;
    out->history = (int64_t)info.history;
    for (int32_t i = 0; i < TOKENS; i++) tokens[i] = (i * 5 + i / 6) % 6;
    embla_status status = info.rows_per_token == COLUMNS
                              ? embla_ngram_rows(ngram, tokens, 1, TOKENS, NULL, out->rows)
                              : EMBLA_OK;
    embla_ngram_free(ngram);
    return status;
}

/* EMBLA_OK with all answers, or the status of what refused. */
static embla_status ask(const char *path, const embla_store_options *how, answers *out)
{
    embla_checkpoint *cp = NULL;
    memset(out, 0, sizeof *out);
    EMBLA_TRY(embla_checkpoint_open(path, NULL, &cp));
    embla_status status = ask_store(cp, how, out);
    if (status == EMBLA_OK) status = ask_hasher(cp, out);
    embla_checkpoint_free(cp);
    return status;
}

/* Whether embla_pack_verify finds fault, without a source or with one. */
static bool verify_refuses(const full_pack *p, bool source)
{
    const embla_pack_options how = {.ngram = source ? p->ngram : NULL};
    embla_checkpoint *cp = NULL;
    embla_pack_report report = {0};
    if (embla_checkpoint_open(p->path, NULL, &cp) != EMBLA_OK) return true;
    embla_status status = embla_pack_verify(cp, source ? p->source : NULL, &how, &report);
    embla_checkpoint_free(cp);
    return status != EMBLA_OK || report.different > 0 || report.bundles_wrong > 0;
}

/* ---- flips ---- */

typedef struct {
    size_t all, opened, changed, unnoticed;
    uint64_t first; /* the bit of the first that nothing notices */
} flip_count;

static void flip(int fd, uint64_t bit)
{
    unsigned char byte;
    assert_int_equal(pread(fd, &byte, 1, (off_t)(bit / 8)), 1);
    byte ^= (unsigned char)(1U << bit % 8);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
}

/* Flips each bit of some bytes. A pack that opens with other answers must be refused by verify. */
static void flip_each(const full_pack *p, const embla_store_options *how, uint64_t from,
                      uint64_t bytes, flip_count *n)
{
    static answers before, after;
    int fd = open(p->path, O_RDWR);
    assert_true(fd >= 0);
    assert_ok(ask(p->path, how, &before));
    for (uint64_t bit = from * 8; bit < (from + bytes) * 8; bit++) {
        flip(fd, bit);
        n->all++;
        if (ask(p->path, how, &after) == EMBLA_OK) {
            n->opened++;
            if (memcmp(&before, &after, sizeof before) != 0) {
                n->changed++;
                if (!verify_refuses(p, false) || !verify_refuses(p, true))
                    if (n->unnoticed++ == 0) n->first = bit;
            }
        }
        flip(fd, bit);
    }
    assert_ok(ask(p->path, how, &after));
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(close(fd), 0);
}

/* Where a tensor of the pack is. */
static uint64_t offset_of(const char *path, const char *tensor)
{
    embla_checkpoint *cp = NULL;
    const embla_entry *entry = NULL;
    assert_ok(embla_checkpoint_open(path, NULL, &cp));
    assert_ok(embla_checkpoint_named(cp, tensor, &entry));
    uint64_t offset = entry->offset;
    embla_checkpoint_free(cp);
    return offset;
}

static void no_flip_of_the_header_changes_an_answer_unnoticed(void **state)
{
    flip_count n = {0};
    full_pack p;
    (void)state;
    make_full(&p);
    uint64_t header = offset_of(p.path, EMBLA_PACK_INDEX); /* the first tensor */
    flip_each(&p, &pread_rows, 0, header, &n);
    print_message("%zu flips: %zu open, %zu with other answers, %zu unnoticed (first: bit %" PRIu64
                  ")\n",
                  n.all, n.opened, n.changed, n.unnoticed, n.first);
    assert_int_equal(n.unnoticed, 0);
    assert_int_equal(n.changed, 0); /* opening refuses them all */
    free_full(&p);
}

/* The fold decides which rows an n-gram has; index, order and sums find and check what is read. */
static void no_flip_of_a_list_changes_an_answer_unnoticed(void **state)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } lists[] = {{EMBLA_PACK_FOLD, 6 * sizeof(int32_t)},
                 {EMBLA_PACK_INDEX, 6 * sizeof(uint64_t)},
                 {EMBLA_PACK_ORDER, 6 * sizeof(uint32_t)},
                 {EMBLA_PACK_SUMS, 32}};
    full_pack p;
    (void)state;
    make_full(&p);
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        flip_count n = {0};
        uint64_t at = offset_of(p.path, lists[i].name);
        flip_each(&p, &direct, at, lists[i].bytes, &n);
        print_message("%s: %zu flips, %zu open, %zu with other answers, %zu unnoticed\n",
                      lists[i].name, n.all, n.opened, n.changed, n.unnoticed);
        assert_int_equal(n.unnoticed, 0);
        assert_int_equal(n.changed, 0);
        for (uint64_t byte = 0; byte < lists[i].bytes; byte += 3) { /* verify reads every list */
            int fd = open(p.path, O_RDWR);
            assert_true(fd >= 0);
            flip(fd, (at + byte) * 8 + byte % 8);
            assert_true(verify_refuses(&p, false));
            flip(fd, (at + byte) * 8 + byte % 8);
            assert_int_equal(close(fd), 0);
        }
    }
    assert_false(verify_refuses(&p, false));
    assert_false(verify_refuses(&p, true));
    free_full(&p);
}

/* ---- version 1 ---- */

/* Replaces a text in the header of the file by one of the same length. */
static void edit(const char *path, const char *old, const char *new)
{
    static char header[4096];
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, header, sizeof header, 0), sizeof header);
    char *at = memmem(header, sizeof header, old, strlen(old));
    assert_non_null(at);
    assert_int_equal(pwrite(fd, new, strlen(new), at - header), strlen(new));
    assert_int_equal(close(fd), 0);
}

/* Without the pair of the checksum, and with `version`, the file is what version 1 wrote, apart
 * from members of the manifest that it does not know. */
static void remove_checksum(const char *path, char version)
{
    static const char pair[] = ",\"" EMBLA_PACK_KEY_SUM "\":\"0123456789abcdef0123456789abcdef\"";
    char spaces[sizeof pair], text[] = "version\\\":2";
    memset(spaces, ' ', sizeof spaces);
    spaces[sizeof spaces - 1] = '\0';
    edit(path, ",\"" EMBLA_PACK_KEY_SUM "\"", spaces);
    text[sizeof text - 2] = version;
    edit(path, "version\\\":2", text);
}

static void a_pack_of_version_1_opens_with_a_note(void **state)
{
    static answers before, after;
    embla_checkpoint *cp = NULL;
    embla_pack_report report;
    size_t count;
    full_pack p;
    (void)state;
    make_full(&p);
    assert_ok(ask(p.path, &direct, &before));
    assert_ok(embla_checkpoint_open(p.path, NULL, &cp));
    (void)embla_checkpoint_notes(cp, &count);
    assert_int_equal(count, 0);
    assert_ok(embla_pack_verify(cp, p.source, &(embla_pack_options){.ngram = p.ngram}, &report));
    assert_true(report.version == 2 && report.hasher && report.hasher_compared);
    embla_checkpoint_free(cp);
    remove_checksum(p.path, '1');
    assert_ok(ask(p.path, &direct, &after));
    assert_memory_equal(&before, &after, sizeof before);
    assert_ok(embla_checkpoint_open(p.path, NULL, &cp));
    const char *const *notes = embla_checkpoint_notes(cp, &count);
    assert_int_equal(count, 1);
    assert_non_null(strstr(notes[0], "no checksum (version 1)"));
    assert_ok(embla_pack_verify(cp, p.source, NULL, &report));
    assert_true(report.version == 1 && report.hasher && !report.hasher_compared);
    embla_checkpoint_free(cp);
    /* with the hasher of the source, a changed constant is found without a checksum */
    assert_false(verify_refuses(&p, true));
    edit(p.path, "sizes\\\":[1", "sizes\\\":[2");
    assert_true(verify_refuses(&p, true));
    assert_error_has("sizes[0] is 2");
    free_full(&p);
}

static void version_2_without_its_checksum_is_refused(void **state)
{
    answers *all = malloc(sizeof *all);
    full_pack p;
    (void)state;
    make_full(&p);
    remove_checksum(p.path, '2');
    assert_status(ask(p.path, &direct, all), EMBLA_ERR_FORMAT);
    assert_error_has("version 2 without 'embla.pack.checksum'");
    free_full(&p);
    free(all);
}

/* ---- another hasher ---- */

static void verify_names_the_constant_that_differs(void **state)
{
    static const int32_t values[6] = {0, 1, 2, 2, 0, 3};
    embla_checkpoint *cp = NULL;
    embla_pack_report report;
    embla_fold *fold = NULL;
    full_pack p;
    (void)state;
    make_full(&p);
    assert_ok(embla_checkpoint_open(p.path, NULL, &cp));
    embla_ngram *larger = make_hasher(p.fold, 110);
    embla_pack_options how = {.ngram = larger};
    assert_status(embla_pack_verify(cp, p.source, &how, &report), EMBLA_ERR_SHAPE);
    assert_error_has("another hasher than the source: rows is");
    embla_ngram_free(larger);
    assert_ok(embla_fold_new(values, 6, &fold));
    embla_ngram *folded = make_hasher(fold, 100);
    how.ngram = folded;
    assert_status(embla_pack_verify(cp, p.source, &how, &report), EMBLA_ERR_SHAPE);
    assert_error_has("another fold than the source");
    embla_ngram_free(folded);
    embla_fold_free(fold);
    embla_checkpoint_free(cp);
    free_full(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_flip_of_the_header_changes_an_answer_unnoticed),
        cmocka_unit_test(no_flip_of_a_list_changes_an_answer_unnoticed),
        cmocka_unit_test(a_pack_of_version_1_opens_with_a_note),
        cmocka_unit_test(version_2_without_its_checksum_is_refused),
        cmocka_unit_test(verify_names_the_constant_that_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
