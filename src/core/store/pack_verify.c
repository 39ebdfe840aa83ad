/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a pack with its checksums, its bundles with its rows, and its rows and its hasher with
 * the source that it was made from. The time of the files plays no part: a copy of the source is as
 * good. */
#include <stdio.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/stop.h"
#include "checkpoint/saved.h"
#include "lookup/lookup.h"
#include "store/bundles.h"
#include "store/pack.h"

enum { SUM = 16, BUNDLES = 512 }; /* more than fit in a page */

typedef struct {
    embla_checksum_state sum; /* first: it is aligned to 64 bytes */
    const embla_checkpoint *cp;
    const embla_store *source; /* NULL means none */
    const embla_pack_options *options;
    embla_store *store; /* the rows of the pack, without its bundles */
    embla_pack_report *report;
    char *memory; /* two windows of rows */
    size_t bytes;
    int64_t done, total; /* bytes, for progress */
    embla_pack pack;
} verifier;

static embla_status report_progress(verifier *v, uint64_t bytes)
{
    v->done += (int64_t)bytes;
    return embla_progress_report(v->options->progress, v->options->context, "verify", v->done,
                                 v->total);
}

/* ---- checksums ---- */

/* Ends checksum `number`, and compares it with the file's. */
static embla_status check_sum(void *context, int64_t number)
{
    verifier *v = context;
    embla_checksum found = embla_checksum_end(&v->sum), wanted;
    embla_checksum_begin(&v->sum);
    EMBLA_TRY(embla_checkpoint_read(v->cp, EMBLA_PACK_SUMS, number * SUM, SUM, &wanted));
    embla_order_turn(&wanted, sizeof wanted.low, 2);
    if (found.high == wanted.high && found.low == wanted.low) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.200s is damaged: block %" PRId64 " of %" PRId64
                      " has the checksum %016" PRIx64 ", but %016" PRIx64 " is recorded (K7)",
                      v->cp->shown, number, embla_pack_block_count(&v->pack), found.low,
                      wanted.low);
}

/* ---- rows ---- */

static void compare_rows(verifier *v, int64_t first, int64_t count, const char *other)
{
    size_t bytes = v->pack.row_bytes;
    if (memcmp(v->memory, other, (size_t)count * bytes) == 0) return;
    for (int64_t i = 0; i < count; i++) {
        if (memcmp(v->memory + (size_t)i * bytes, other + (size_t)i * bytes, bytes) == 0) continue;
        if (v->report->different++ == 0) v->report->first = first + i;
    }
}

static embla_status verify_rows(verifier *v)
{
    int64_t window = embla_pack_window(&v->pack);
    char *other = v->memory + (size_t)window * v->pack.row_bytes;
    for (int64_t first = 0; first < v->pack.rows; first += window) {
        int64_t count = v->pack.rows - first < window ? v->pack.rows - first : window;
        EMBLA_TRY(embla_extents_fill(v->store, first, count, v->memory));
        EMBLA_TRY(embla_pack_sum_rows(&v->pack, &v->sum, v->memory, first, count, check_sum, v));
        if (v->source) {
            EMBLA_TRY(embla_extents_fill(v->source, first, count, other));
            compare_rows(v, first, count, other);
        }
        EMBLA_TRY(report_progress(v, (uint64_t)count * v->pack.row_bytes));
    }
    return EMBLA_OK;
}

/* ---- bundles ---- */

/* Compares the rows of `count` bundles with the rows of the pack. items has the bundles, numbers
 * and rows have room for theirs. */
static embla_status compare_bundles(verifier *v, const char *items, size_t count,
                                    const uint64_t *keys, int64_t *numbers, char *rows)
{
    size_t rows_per_ngram = v->pack.rows_per_ngram, bytes = v->pack.row_bytes,
           step = bytes + EMBLA_PACK_NUMBER;
    embla_row_part part;
    EMBLA_TRY(embla_row_part_of(&v->store->row, 0, 0, &part));
    for (size_t i = 0; i < count * rows_per_ngram; i++) {
        memcpy(&numbers[i], items + i * step, sizeof *numbers);
        embla_order_turn(&numbers[i], sizeof *numbers, 1);
        if (numbers[i] < 0 || numbers[i] >= v->pack.rows) numbers[i] = 0; /* differs by its key */
    }
    const embla_row_source source = embla_store_source(v->store);
    const embla_read_job job = {.rows = numbers,
                                .count = count * rows_per_ngram,
                                .known = count * rows_per_ngram,
                                .part = &part,
                                .out = rows,
                                .out_stride = bytes};
    EMBLA_TRY(embla_source_read(&source, &job));
    for (size_t i = 0; i < count; i++) {
        bool same = embla_hash_rows(numbers + i * rows_per_ngram, rows_per_ngram) == keys[i];
        for (size_t h = i * rows_per_ngram; h < (i + 1) * rows_per_ngram; h++)
            same =
                same && memcmp(items + h * step + EMBLA_PACK_NUMBER, rows + h * bytes, bytes) == 0;
        if (!same) v->report->bundles_wrong++;
    }
    return EMBLA_OK;
}

/* One window of bundles: their pages are read and summed, then compared. */
static embla_status verify_window(verifier *v, int64_t first, size_t count, char *memory)
{
    const embla_pack_pages *p = &v->pack.bundle_pages;
    size_t rows_per_ngram = v->pack.rows_per_ngram;
    size_t groups = (size_t)((count - 1) / p->group + 1), pages = groups * (size_t)p->group_bytes;
    char *items = memory + BUNDLES * (size_t)p->group_bytes;
    char *rows = items + BUNDLES * (size_t)p->bytes;
    int64_t numbers[BUNDLES * 4];
    uint64_t keys[BUNDLES];
    uint64_t at = (uint64_t)first / p->group * p->group_bytes;
    EMBLA_TRY(embla_checkpoint_read(v->cp, EMBLA_PACK_BUNDLES, (int64_t)at, pages, memory));
    EMBLA_TRY(embla_checkpoint_read(v->cp, EMBLA_PACK_INDEX, first * (int64_t)sizeof *keys,
                                    count * sizeof *keys, keys));
    embla_order_turn(keys, sizeof *keys, count);
    embla_checksum_add(&v->sum, memory, pages);
    for (size_t i = 0; i < count; i++)
        memcpy(items + i * (size_t)p->bytes, memory + embla_pack_item_at(p, i), (size_t)p->bytes);
    size_t some = sizeof numbers / sizeof *numbers / rows_per_ngram;
    for (size_t i = 0; i < count; i += some)
        EMBLA_TRY(compare_bundles(v, items + i * (size_t)p->bytes,
                                  count - i < some ? count - i : some, keys + i, numbers, rows));
    return report_progress(v, pages);
}

static embla_status verify_bundles(verifier *v)
{
    const embla_pack_pages *p = &v->pack.bundle_pages;
    int64_t window = BUNDLES / (int64_t)p->group * (int64_t)p->group;
    size_t bytes = BUNDLES * (size_t)(p->group_bytes + 2 * p->bytes);
    void *memory = NULL;
    embla_status status = EMBLA_OK;
    if (v->pack.bundles > 0) EMBLA_TRY(embla_mem_new(bytes, "bundles", &memory));
    for (int64_t i = 0; i < v->pack.bundles && status == EMBLA_OK; i += window) {
        int64_t left = v->pack.bundles - i;
        status = verify_window(v, i, (size_t)(left < window ? left : window), memory);
    }
    embla_mem_free(memory, bytes);
    EMBLA_TRY(status);
    return check_sum(v, embla_pack_block_count(&v->pack));
}

/* ---- lists, hasher ---- */

/* Compares each list with its checksum. Packs of version 1 have none. */
static embla_status verify_lists(const verifier *v)
{
    for (int i = 0; i < EMBLA_PACK_LISTS; i++) {
        embla_checksum found;
        if (!v->pack.sums[i]) continue;
        EMBLA_TRY(embla_pack_list_sum(v->cp, &v->pack, (embla_pack_list)i, &found));
        EMBLA_TRY(embla_pack_list_check(&v->pack, (embla_pack_list)i, found, v->cp->shown));
    }
    return EMBLA_OK;
}

static embla_status other_hasher(const verifier *v, const char *what, int64_t at, int64_t ours,
                                 int64_t theirs)
{
    char place[32] = "";
    if (at >= 0) (void)snprintf(place, sizeof place, "[%" PRId64 "]", at);
    return embla_fail(EMBLA_ERR_SHAPE,
                      "%.200s has another hasher than the source: %s%s is %" PRId64
                      ", that of the source is %" PRId64 "; write the pack again",
                      v->cp->shown, what, place, ours, theirs);
}

static embla_status compare_list(const verifier *v, const char *what, const int64_t *ours,
                                 const int64_t *theirs, int64_t count)
{
    if (!ours != !theirs) return other_hasher(v, what, -1, ours ? count : 0, theirs ? count : 0);
    for (int64_t i = 0; ours && i < count; i++)
        if (ours[i] != theirs[i]) return other_hasher(v, what, i, ours[i], theirs[i]);
    return EMBLA_OK;
}

static embla_status compare_fold(const verifier *v)
{
    embla_ngram_info info;
    embla_checksum ours;
    char text[EMBLA_SUM_TEXT], source[33];
    EMBLA_TRY(embla_ngram_describe(v->options->ngram, &info));
    if (!info.folded) return EMBLA_OK;
    EMBLA_TRY(embla_pack_list_sum(v->cp, &v->pack, EMBLA_PACK_LIST_FOLD, &ours));
    embla_sum_text(ours, text);
    embla_fold_checksum(embla_ngram_fold(v->options->ngram), source);
    if (strcmp(text, source) == 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_SHAPE,
                      "%.200s has another fold than the source: its checksum is %s, that of the "
                      "source is %s; write the pack again",
                      v->cp->shown, text, source);
}

static embla_status compare_hasher(const verifier *v)
{
    const embla_pack_hasher *a = &v->pack.hasher;
    embla_pack_hasher b = {0};
    int32_t layer = -1;
    if (!v->options->ngram) return EMBLA_OK;
    if (!a->given)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%.200s has no hasher, and the source has one; write the pack again",
                          v->cp->shown);
    EMBLA_TRY(embla_pack_hasher_of(v->options->ngram, &b, &layer));
    const struct {
        const char *what;
        int64_t ours, theirs;
    } numbers[] = {{"kind", a->kind, b.kind},
                   {"vocab", a->vocab, b.vocab},
                   {"orders", a->orders, b.orders},
                   {"rows_per_ngram", a->rows_per_ngram, b.rows_per_ngram},
                   {"pad", a->pad, b.pad},
                   {"eos", a->eos, b.eos},
                   {"eos_rule", a->eos_rule, b.eos_rule},
                   {"rows", a->rows, b.rows},
                   {"fold", a->fold, b.fold},
                   {"layer", v->pack.layer, layer}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].ours != numbers[i].theirs)
            return other_hasher(v, numbers[i].what, -1, numbers[i].ours, numbers[i].theirs);
    int64_t columns = (a->orders - 1) * a->rows_per_ngram;
    EMBLA_TRY(compare_list(v, "multipliers", a->multipliers, b.multipliers, a->orders));
    EMBLA_TRY(compare_list(v, "sizes", a->sizes, b.sizes, columns));
    EMBLA_TRY(compare_list(v, "offsets", a->offsets, b.offsets, columns));
    EMBLA_TRY(compare_fold(v));
    v->report->hasher_compared = true;
    return EMBLA_OK;
}

/* ---- all ---- */

/* The source must have rows like those of the pack. */
static embla_status check_source(const verifier *v)
{
    const embla_row_format *a = &v->pack.format, *b = v->source ? &v->source->row.format : a;
    int64_t rows = v->source ? v->source->rows : v->pack.rows;
    if (v->source) EMBLA_TRY(embla_pack_check_source(v->source));
    if (rows == v->pack.rows && a->dim == b->dim && a->dtype == b->dtype &&
        a->scales == b->scales && !(a->scale < b->scale) && !(a->scale > b->scale))
        return EMBLA_OK;
    return embla_fail(EMBLA_ERR_SHAPE,
                      "%.200s was made from another table: %" PRId64 " rows of %zu %s, scale %.9g; "
                      "the source has %" PRId64 " rows of %zu %s, scale %.9g",
                      v->cp->shown, v->pack.rows, a->dim, embla_dtype_name(a->dtype),
                      (double)a->scale, rows, b->dim, embla_dtype_name(b->dtype), (double)b->scale);
}

static embla_status open_rows(verifier *v)
{
    const embla_store_options direct = {.placement = EMBLA_PLACEMENT_DIRECT};
    void *memory = NULL;
    EMBLA_TRY(embla_store_open_pack(v->cp, -1, &direct, &v->store));
    embla_bundles_free(v->store->bundles); /* rows are to come from their own places */
    v->store->bundles = NULL;
    v->bytes = 2 * (size_t)embla_pack_window(&v->pack) * v->pack.row_bytes;
    EMBLA_TRY(embla_mem_new(v->bytes, "rows to compare", &memory));
    v->memory = memory;
    embla_checksum_begin(&v->sum);
    v->total = v->store->bytes + v->pack.bundles * (int64_t)v->pack.bundle_pages.bytes;
    return EMBLA_OK;
}

embla_status embla_pack_verify(const embla_checkpoint *pack, const embla_store *source,
                               const embla_pack_options *options, embla_pack_report *out)
{
    static const embla_pack_options none;
    EMBLA_NEED(pack);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_options_check(options));
    if (!embla_pack_text(pack))
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s is no pack: its %zu tensors have no manifest",
                          pack->shown, pack->count);
    embla_pack_report report = {0};
    verifier v = {
        .cp = pack, .source = source, .options = options ? options : &none, .report = &report};
    embla_status status = embla_pack_open(pack, &v.pack);
    if (status == EMBLA_OK) embla_pack_describe(&v.pack, &report);
    if (status == EMBLA_OK) status = check_source(&v);
    if (status == EMBLA_OK) status = verify_lists(&v);
    if (status == EMBLA_OK) status = compare_hasher(&v);
    if (status == EMBLA_OK) status = open_rows(&v);
    if (status == EMBLA_OK) status = verify_rows(&v);
    if (status == EMBLA_OK) status = verify_bundles(&v);
    embla_mem_free(v.memory, v.bytes);
    embla_store_free(v.store);
    embla_pack_free(&v.pack);
    if (status != EMBLA_OK) return status;
    report.bytes = (int64_t)pack->shards[0].map->size;
    *out = report;
    return EMBLA_OK;
}
