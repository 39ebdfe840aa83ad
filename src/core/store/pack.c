/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a pack: a safetensors file whose data begin a page (docs/formats.md).
 *
 *   index, order   keys of the bundles, and the bundles by frequency
 *   bundles        rows of frequent n-grams, with their numbers
 *   rows           all rows, in pages
 *   sums           checksums: of each 64 MiB of rows, and of all bundles
 *
 * The manifest has the checksums of the lists, and the metadata that of the manifest.
 *
 * The file is written from front to back under a temporary name. Then it is read again and compared
 * with the source (pack_verify.c), and gets its name.
 */
#include "store/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/stop.h"
#include "checkpoint/saved.h"
#include "formats/safetensors.h"
#include "lookup/lookup.h"
#include "store/bundles.h"
#include "store/row_list.h"

enum { WINDOW = 16 << 20, BUNDLE_WINDOW = 2 << 20, PARTS = 6, SUM = 16 };

/* A bundle: its key, and its place in the list of n-grams. */
typedef struct {
    uint64_t key;
    uint32_t rank;
} ranked;

typedef struct {
    const embla_store *source;
    const embla_pack_options *options;
    embla_pack pack;
    embla_arena arena;
    void *ngrams; /* int64_t (count, rows_per_ngram) */
    size_t count, room;
    ranked *bundles; /* by key; pack.bundles of them */
    uint64_t *keys;
    uint32_t *order;
    int32_t *fold;
    unsigned char *sums;
    embla_checksum_state sum;
    char *rows, *pages; /* a window of rows, and of pages */
    size_t rows_bytes, pages_bytes;
    uint64_t from, until; /* the bytes of the part that `pages` has */
    int64_t done, total;  /* bytes, for progress */
} writer;

/* ---- n-grams ---- */

static embla_status add_ngrams(void *context, const int64_t *rows, size_t count, bool *enough)
{
    writer *w = context;
    size_t rows_per_ngram = w->pack.rows_per_ngram;
    (void)enough;
    EMBLA_TRY(embla_lookup_check_rows(rows, count, w->source->rows, "row of a bundle"));
    for (size_t i = 0; i < count; i += rows_per_ngram) {
        if (w->count == INT32_MAX)
            return embla_fail(EMBLA_ERR_ARGUMENT, "more than %d n-grams; a pack has at most %d",
                              INT32_MAX, INT32_MAX);
        EMBLA_TRY(embla_arena_grow(&w->arena, rows_per_ngram * sizeof *rows, w->count, "n-grams",
                                   &w->ngrams, &w->room));
        memcpy((int64_t *)w->ngrams + w->count++ * rows_per_ngram, rows + i,
               rows_per_ngram * sizeof *rows);
    }
    return EMBLA_OK;
}

static const int64_t *rows_of(const writer *w, uint32_t rank)
{
    return (const int64_t *)w->ngrams + rank * w->pack.rows_per_ngram;
}

static int by_key(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : 1;
}

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + EMBLA_PACK_PAGE - 1) / EMBLA_PACK_PAGE * EMBLA_PACK_PAGE;
}

/* Sorts the n-grams by key, and drops those that occur twice. */
static embla_status sort_ngrams(writer *w)
{
    size_t kept = 0, n = 0;
    uint32_t *numbers = NULL; /* of each rank; UINT32_MAX means dropped */
    EMBLA_TRY(embla_arena_many(&w->arena, w->count, sizeof *w->bundles, "bundles", &w->bundles));
    EMBLA_TRY(embla_arena_many(&w->arena, w->count, sizeof *numbers, "bundles", &numbers));
    for (size_t i = 0; i < w->count; i++)
        w->bundles[i] =
            (ranked){.key = embla_hash_rows(rows_of(w, (uint32_t)i), w->pack.rows_per_ngram),
                     .rank = (uint32_t)i};
    qsort(w->bundles, w->count, sizeof *w->bundles, by_key);
    for (size_t i = 0; i < w->count; i++) {
        uint32_t rank = w->bundles[i].rank;
        bool twice = kept > 0 && w->bundles[kept - 1].key == w->bundles[i].key;
        numbers[rank] = twice ? UINT32_MAX : (uint32_t)kept;
        if (!twice) w->bundles[kept++] = w->bundles[i];
    }
    EMBLA_TRY(
        embla_arena_many(&w->arena, whole_pages(kept * sizeof *w->keys), 1, "keys", &w->keys));
    EMBLA_TRY(
        embla_arena_many(&w->arena, whole_pages(kept * sizeof *w->order), 1, "order", &w->order));
    for (size_t i = 0; i < kept; i++) w->keys[i] = w->bundles[i].key;
    for (size_t i = 0; i < w->count; i++)
        if (numbers[i] != UINT32_MAX) w->order[n++] = numbers[i];
    w->pack.bundles = (int64_t)kept;
    return EMBLA_OK;
}

static embla_status collect(writer *w)
{
    const embla_pack_options *o = w->options;
    bool enough = false;
    embla_ngram_info info = {0};
    if (o->ngram) EMBLA_TRY(embla_ngram_describe(o->ngram, &info));
    bool hashed = o->ngram && info.kind != EMBLA_NGRAM_IDENTITY;
    size_t rows_per_ngram = o->rows_per_ngram > 0 ? o->rows_per_ngram
                            : hashed              ? (size_t)info.rows_per_ngram
                                                  : 0;
    if (o->bundle_count == 0 && !o->bundle_file) return EMBLA_OK;
    if (rows_per_ngram < 1 || rows_per_ngram > EMBLA_PACK_BUNDLE_MOST ||
        (o->bundle_count > 0 && !o->bundles))
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "%zu bundles of %zu rows%s; bundles have 1 to %d rows: set rows_per_ngram",
            o->bundle_count, rows_per_ngram,
            o->bundle_count > 0 && !o->bundles ? ", but bundles is NULL" : "",
            EMBLA_PACK_BUNDLE_MOST);
    w->pack.rows_per_ngram = rows_per_ngram;
    if (o->bundle_count > 0)
        EMBLA_TRY(add_ngrams(w, o->bundles, o->bundle_count * rows_per_ngram, &enough));
    if (o->bundle_file)
        EMBLA_TRY(embla_row_list_read(o->bundle_file, rows_per_ngram, add_ngrams, w));
    if (w->count == 0) w->pack.rows_per_ngram = 0;
    return w->count > 0 ? sort_ngrams(w) : EMBLA_OK;
}

/* ---- manifest ---- */

embla_status embla_pack_hasher_of(const embla_ngram *ngram, embla_pack_hasher *out, int32_t *layer)
{
    embla_ngram_info info;
    EMBLA_TRY(embla_ngram_describe(ngram, &info));
    *out = (embla_pack_hasher){.given = true,
                               .kind = (int64_t)info.kind,
                               .vocab = info.vocab,
                               .orders = info.orders,
                               .rows_per_ngram = info.rows_per_ngram,
                               .pad = info.pad,
                               .eos = info.eos,
                               .eos_rule = (int64_t)info.eos_rule,
                               .rows = info.rows,
                               .fold = info.folded ? info.tokens : 0,
                               .multipliers = info.multipliers,
                               .sizes = info.sizes,
                               .offsets = info.offsets};
    *layer = info.layer;
    return EMBLA_OK;
}

static embla_status describe_hasher(writer *w)
{
    embla_ngram_info info;
    void *memory = NULL;
    if (!w->options->ngram) return EMBLA_OK;
    EMBLA_TRY(embla_ngram_describe(w->options->ngram, &info));
    if (info.rows > w->source->rows)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "the hasher is for a table with %" PRId64
                          " rows, but the store has %" PRId64,
                          info.rows, w->source->rows);
    EMBLA_TRY(embla_pack_hasher_of(w->options->ngram, &w->pack.hasher, &w->pack.layer));
    if (!info.folded) return EMBLA_OK;
    size_t bytes = (size_t)info.tokens * sizeof *w->fold;
    EMBLA_TRY(embla_arena_take(&w->arena, (size_t)whole_pages(bytes), "a fold", &memory));
    memcpy(memory, info.folded, bytes);
    w->fold = memory;
    return EMBLA_OK;
}

/* The checksums of the lists that the pack will have. From here on, the lists are in the byte order
 * of files. */
static embla_status sum_lists(writer *w)
{
    void *const lists[EMBLA_PACK_LISTS] = {[EMBLA_PACK_LIST_FOLD] = w->fold,
                                           [EMBLA_PACK_LIST_INDEX] = w->keys,
                                           [EMBLA_PACK_LIST_ORDER] = w->order};
    for (int i = 0; i < EMBLA_PACK_LISTS; i++) {
        char text[EMBLA_SUM_TEXT];
        uint64_t bytes = embla_pack_list_bytes(&w->pack, (embla_pack_list)i);
        if (bytes == 0) continue;
        size_t size = i == EMBLA_PACK_LIST_INDEX ? 8 : 4;
        embla_order_turn(lists[i], size, (size_t)bytes / size);
        embla_sum_text(embla_checksum_of(lists[i], (size_t)bytes), text);
        EMBLA_TRY(embla_arena_text(&w->arena, text, sizeof text - 1, &w->pack.sums[i]));
    }
    return EMBLA_OK;
}

static embla_status describe(writer *w)
{
    w->pack.format = w->source->row.format;
    w->pack.rows = w->source->rows;
    w->pack.layer = -1;
    w->pack.name = w->options->name ? w->options->name : "";
    EMBLA_TRY(describe_hasher(w));
    EMBLA_TRY(collect(w));
    EMBLA_TRY(sum_lists(w));
    return embla_pack_complete(&w->pack, "the pack");
}

/* ---- pages ---- */

int64_t embla_pack_window(const embla_pack *pack)
{
    return (int64_t)embla_pack_items(&pack->row_pages, WINDOW);
}

embla_status embla_pack_check_source(const embla_store *source)
{
    if (source->extent_count == 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "a view of %" PRId64 " rows has no file; the source of a pack must have "
                          "its rows in files",
                          source->rows);
    if (source->held < source->rows)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "the store has %" PRId64 " of %" PRId64
                          " rows; the source of a pack must "
                          "have them all: open it without a range of rows",
                          source->held, source->rows);
    return EMBLA_OK;
}

/* Copies items without gaps to their places in pages, which are zero. */
static void copy_to_pages(const embla_pack_pages *p, const char *items, uint64_t count, char *pages)
{
    for (uint64_t i = 0; i < count; i += p->group) {
        uint64_t n = count - i < p->group ? count - i : p->group;
        memcpy(pages + i / p->group * p->group_bytes, items + i * p->bytes, (size_t)(n * p->bytes));
    }
}

embla_status embla_pack_sum_rows(const embla_pack *pack, embla_checksum_state *sum,
                                 const char *rows, int64_t first, int64_t count,
                                 embla_pack_sum_fn *end_block, void *context)
{
    int64_t block = embla_pack_block_rows(pack), end = first + count;
    size_t bytes = pack->row_bytes;
    for (int64_t row = first, next; row < end; row = next) {
        next = row / block * block + block;
        if (next > end) next = end;
        embla_checksum_add(sum, rows + (size_t)(row - first) * bytes, (size_t)(next - row) * bytes);
        if (next % block == 0 || next == pack->rows)
            EMBLA_TRY(end_block(context, (next - 1) / block));
    }
    return EMBLA_OK;
}

/* Keeps checksum `number`, and begins the next. */
static embla_status end_sum(void *context, int64_t number)
{
    writer *w = context;
    embla_checksum sum = embla_checksum_end(&w->sum);
    embla_order_turn(&sum, sizeof sum.low, 2);
    memcpy(w->sums + (size_t)number * SUM, &sum, SUM);
    embla_checksum_begin(&w->sum);
    return EMBLA_OK;
}

static embla_status make_rows(writer *w, int64_t first)
{
    int64_t count = w->pack.rows - first, most = embla_pack_window(&w->pack);
    if (count > most) count = most;
    EMBLA_TRY(embla_extents_fill(w->source, first, count, w->rows));
    EMBLA_TRY(embla_pack_sum_rows(&w->pack, &w->sum, w->rows, first, count, end_sum, w));
    copy_to_pages(&w->pack.row_pages, w->rows, (uint64_t)count, w->pages);
    uint64_t groups = ((uint64_t)count - 1) / w->pack.row_pages.group + 1;
    w->until = w->from + groups * w->pack.row_pages.group_bytes;
    return EMBLA_OK;
}

static embla_status make_bundles(writer *w, uint64_t first)
{
    const embla_pack *p = &w->pack;
    uint64_t count = (uint64_t)p->bundles - first,
             most = embla_pack_items(&p->bundle_pages, BUNDLE_WINDOW);
    size_t rows_per_ngram = p->rows_per_ngram, step = p->row_bytes + EMBLA_PACK_NUMBER;
    embla_row_part part;
    if (count > most) count = most;
    int64_t *numbers = (int64_t *)(void *)w->rows;
    for (uint64_t i = 0; i < count; i++)
        memcpy(numbers + i * rows_per_ngram, rows_of(w, w->bundles[first + i].rank),
               rows_per_ngram * sizeof *numbers);
    EMBLA_TRY(embla_row_part_of(&w->source->row, 0, 0, &part));
    char *items = w->rows + count * rows_per_ngram * sizeof *numbers;
    const embla_row_source source = embla_store_source(w->source);
    const embla_read_job job = {.rows = numbers,
                                .count = (size_t)count * rows_per_ngram,
                                .known = (size_t)count * rows_per_ngram,
                                .part = &part,
                                .out = items + EMBLA_PACK_NUMBER,
                                .out_stride = step};
    EMBLA_TRY(embla_source_read(&source, &job));
    EMBLA_TRY(embla_source_check(&source));
    for (size_t i = 0; i < job.count; i++) {
        memcpy(items + i * step, numbers + i, EMBLA_PACK_NUMBER);
        embla_order_turn(items + i * step, EMBLA_PACK_NUMBER, 1);
    }
    copy_to_pages(&p->bundle_pages, items, count, w->pages);
    w->until = w->from + ((count - 1) / p->bundle_pages.group + 1) * p->bundle_pages.group_bytes;
    embla_checksum_add(&w->sum, w->pages, (size_t)(w->until - w->from));
    if (first + count == (uint64_t)p->bundles) EMBLA_TRY(end_sum(w, embla_pack_block_count(p)));
    return EMBLA_OK;
}

/* ---- parts ---- */

/* Bytes of a part in pages. Parts are read from front to back, so a window is made once. */
static embla_status read_pages(writer *w, bool bundles, uint64_t offset, size_t bytes, char *out)
{
    const embla_pack_pages *p = bundles ? &w->pack.bundle_pages : &w->pack.row_pages;
    for (size_t got = 0; got < bytes;) {
        uint64_t at = offset + got;
        if (at < w->from || at >= w->until) {
            uint64_t first = at / p->group_bytes * p->group;
            w->from = at / p->group_bytes * p->group_bytes;
            memset(w->pages, 0, w->pages_bytes);
            EMBLA_TRY(bundles ? make_bundles(w, first) : make_rows(w, (int64_t)first));
        }
        size_t n = (size_t)(w->until - at) < bytes - got ? (size_t)(w->until - at) : bytes - got;
        memcpy(out + got, w->pages + (at - w->from), n);
        got += n;
    }
    w->done += (int64_t)bytes;
    return embla_progress_report(w->options->progress, w->options->context, "pack", w->done,
                                 w->total);
}

static embla_status read_rows(void *context, uint64_t offset, size_t bytes, void *out)
{
    writer *w = context;
    if (offset == 0) w->from = w->until = 0;
    return read_pages(w, false, offset, bytes, out);
}

static embla_status read_bundles(void *context, uint64_t offset, size_t bytes, void *out)
{
    writer *w = context;
    if (offset == 0) w->from = w->until = 0;
    return read_pages(w, true, offset, bytes, out);
}

/* A part that is in memory; context is its first byte. */
static embla_status read_memory(void *context, uint64_t offset, size_t bytes, void *out)
{
    memcpy(out, (const char *)context + offset, bytes);
    return EMBLA_OK;
}

static void add_part(embla_part *parts, size_t *count, const char *name, const char *type,
                     uint64_t size, uint64_t bytes, void *context)
{
    const embla_element *element = embla_element_safetensors(type, strlen(type));
    parts[(*count)++] = (embla_part){.name = name,
                                     .element = element,
                                     .rank = 1,
                                     .shape = {bytes / size},
                                     .bytes = bytes,
                                     .read = read_memory,
                                     .context = context};
}

/* The last part is now one of rows of this many bytes. */
static void set_shape(embla_part *parts, size_t count, uint64_t row,
                      embla_status (*read)(void *, uint64_t, size_t, void *))
{
    embla_part *p = &parts[count - 1];
    p->rank = 2;
    p->shape[0] = p->bytes / row;
    p->shape[1] = row;
    if (read) p->read = read;
}

static embla_status write_parts(writer *w, embla_durable *out)
{
    embla_part parts[PARTS];
    size_t n = 0;
    uint64_t rows = w->pack.rows_size, bundles = w->pack.bundles_size;
    uint64_t count = (uint64_t)w->pack.bundles;
    const char *text = NULL;
    EMBLA_TRY(embla_pack_print(&w->pack, &text));
    char sum[EMBLA_SUM_TEXT];
    embla_sum_text(embla_checksum_of(text, strlen(text)), sum);
    const embla_pair pairs[] = {{EMBLA_PACK_KEY, text}, {EMBLA_PACK_KEY_SUM, sum}};
    if (w->fold)
        add_part(parts, &n, EMBLA_PACK_FOLD, "I32", 4,
                 whole_pages(4 * (uint64_t)w->pack.hasher.fold), w->fold);
    if (count > 0) {
        add_part(parts, &n, EMBLA_PACK_INDEX, "U64", 8, whole_pages(8 * count), w->keys);
        add_part(parts, &n, EMBLA_PACK_ORDER, "U32", 4, whole_pages(4 * count), w->order);
        add_part(parts, &n, EMBLA_PACK_BUNDLES, "U8", 1, bundles, w);
        set_shape(parts, n, w->pack.bundle_pages.group_bytes, read_bundles);
    }
    add_part(parts, &n, EMBLA_PACK_ROWS, "U8", 1, rows, w);
    set_shape(parts, n, w->pack.row_pages.group_bytes, read_rows);
    uint64_t sums = SUM * ((uint64_t)embla_pack_block_count(&w->pack) + 1);
    add_part(parts, &n, EMBLA_PACK_SUMS, "U8", 1, sums, w->sums);
    set_shape(parts, n, SUM, NULL);
    w->total = (int64_t)(rows + bundles);
    const embla_contents contents = {
        .parts = parts, .count = n, .pairs = pairs, .pair_count = 2, .align = EMBLA_PACK_PAGE};
    return embla_safetensors_write(out, &contents);
}

static embla_status allocate(writer *w)
{
    const embla_pack *p = &w->pack;
    void *rows = NULL, *pages = NULL;
    uint64_t items = (uint64_t)embla_pack_window(p),
             bundles = p->rows_per_ngram ? embla_pack_items(&p->bundle_pages, BUNDLE_WINDOW) : 0;
    uint64_t all = p->bundle_pages.bytes + p->rows_per_ngram * sizeof(int64_t);
    w->rows_bytes = (size_t)(items * p->row_bytes);
    w->pages_bytes = (size_t)(items / p->row_pages.group * p->row_pages.group_bytes);
    uint64_t bundle_bytes = bundles * all;
    uint64_t bundle_pages = bundles / p->bundle_pages.group * p->bundle_pages.group_bytes;
    if (bundle_bytes > w->rows_bytes) w->rows_bytes = (size_t)bundle_bytes;
    if (bundle_pages > w->pages_bytes) w->pages_bytes = (size_t)bundle_pages;
    EMBLA_TRY(embla_arena_many(&w->arena, (uint64_t)embla_pack_block_count(p) + 1, SUM, "checksums",
                               &w->sums));
    EMBLA_TRY(embla_mem_new(w->rows_bytes, "rows", &rows));
    w->rows = rows;
    EMBLA_TRY(embla_mem_new(w->pages_bytes, "pages", &pages));
    w->pages = pages;
    embla_checksum_begin(&w->sum);
    if (p->bundles == 0) EMBLA_TRY(end_sum(w, embla_pack_block_count(p)));
    return EMBLA_OK;
}

/* Reads the file that was written, under its temporary name, and compares it with the source. */
static embla_status read_back(const writer *w, const char *path, embla_pack_report *report)
{
    embla_checkpoint *cp = NULL;
    EMBLA_TRY(embla_checkpoint_open(path, NULL, &cp));
    embla_status status = embla_pack_verify(cp, w->source, w->options, report);
    embla_checkpoint_free(cp);
    if (status == EMBLA_OK && (report->different > 0 || report->bundles_wrong > 0))
        status = embla_fail(EMBLA_ERR_IO,
                            "%" PRId64 " rows and %" PRId64
                            " bundles that were written differ from the source when read again",
                            report->different, report->bundles_wrong);
    return status;
}

static embla_status write_file(writer *w, const char *path, embla_pack_report *report)
{
    embla_durable *d = NULL;
    const char *temporary = NULL;
    EMBLA_TRY(embla_durable_open(path, &d));
    embla_status status = write_parts(w, d);
    if (status == EMBLA_OK) status = embla_durable_sync(d, &temporary);
    int64_t bytes = (int64_t)embla_durable_size(d);
    if (status == EMBLA_OK) status = read_back(w, temporary, report);
    if (status != EMBLA_OK) {
        embla_durable_abandon(d);
        return status;
    }
    report->bytes = bytes;
    return w->options->overwrite ? embla_durable_commit(d) : embla_durable_commit_new(d);
}

embla_status embla_pack_write(const embla_store *source, const char *path,
                              const embla_pack_options *options, embla_pack_report *out)
{
    static const embla_pack_options none;
    embla_pack_report report = {0};
    EMBLA_NEED_OF("embla_pack_write", "store", source);
    EMBLA_NEED(path);
    EMBLA_TRY(embla_options_check(options));
    EMBLA_TRY(embla_pack_check_source(source));
    writer w = {.source = source, .options = options ? options : &none};
    embla_status status = describe(&w);
    if (status == EMBLA_OK) status = allocate(&w);
    if (status == EMBLA_OK) status = write_file(&w, path, &report);
    embla_mem_free(w.rows, w.rows_bytes);
    embla_mem_free(w.pages, w.pages_bytes);
    embla_pack_free(&w.pack);
    embla_arena_free(&w.arena);
    if (status == EMBLA_OK && out) *out = report;
    return status;
}
