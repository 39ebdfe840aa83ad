/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of a gather: where the bytes of its rows are in files, in the order in which they are
 * read. */
#include <string.h>

#include "base/byte_order.h"
#include "store/bundles.h"
#include "store/gather.h"

/* The range that a piece is: a whole part of a row, its codes, its scales, or a row of a bundle
 * with its number. */
enum { WHOLE, CODES, SCALES, BUNDLED };

void embla_gather_init(embla_gather *gather, const embla_store *store, const int64_t *rows,
                       const embla_row_part *part, char *out, size_t out_stride,
                       embla_row_piece *pieces)
{
    *gather = (embla_gather){.store = store,
                             .rows = rows,
                             .part = part,
                             .out = out,
                             .out_stride = out_stride,
                             .pieces = pieces,
                             .failure = EMBLA_NO_FAILURE};
}

size_t embla_row_piece_bytes(const embla_gather *gather, const embla_row_piece *piece)
{
    const embla_row_part *part = gather->part;
    unsigned range = piece->item & 3;
    const embla_bundles *bundles = gather->store->bundles;
    if (bundles && range == BUNDLED) return bundles->step;
    return range == WHOLE ? part->bytes : range == CODES ? part->code_bytes : part->scale_bytes;
}

char *embla_row_piece_out(const embla_gather *gather, const embla_row_piece *piece)
{
    char *row = gather->out + (size_t)(piece->item >> 2) * gather->out_stride;
    return (piece->item & 3) == SCALES ? row + gather->part->code_bytes : row;
}

static void add_piece(embla_gather *g, const embla_extent_at *e, size_t plane,
                      embla_row_piece piece)
{
    const embla_map *map = e->map[plane];
    piece.source = (uint32_t)e->source[plane];
    if (map->file >= 0)
        g->pieces[g->count++] = piece;
    else
        memcpy(embla_row_piece_out(g, &piece), map->bytes + piece.at,
               embla_row_piece_bytes(g, &piece));
}

static void add_row(embla_gather *g, size_t index)
{
    const embla_row_part *part = g->part;
    const embla_store *store = g->store;
    int64_t row = g->rows[index];
    uint64_t at[EMBLA_PLANES];
    if (!embla_store_holds(store, row)) { /* another rank has it */
        memset(g->out + index * g->out_stride, 0, part->bytes);
        return;
    }
    const embla_extent_at *e = embla_extents_find(store, row);
    uint32_t item = (uint32_t)index << 2;
    size_t codes = store->row.code_bytes, second = e->planes - 1;
    (void)embla_extents_locate(store, row, at);
    bool one = part->scale_bytes == 0 ||
               (e->planes == 1 && part->scale_at == 0 && part->code_at + part->code_bytes == codes);
    at[0] += part->code_at;
    add_piece(g, e, 0, (embla_row_piece){.at = at[0], .item = item + (one ? WHOLE : CODES)});
    if (one) return;
    at[1] += part->scale_at;
    add_piece(g, e, second, (embla_row_piece){.at = at[1], .item = item + SCALES});
}

/* Adds the rows of an n-gram from its bundle. Returns false if it has none. */
static bool add_bundle(embla_gather *g, size_t first, size_t count, uint32_t found)
{
    const embla_bundles *b = g->store->bundles;
    uint64_t at;
    if (!b || count < b->rows_per_ngram || !embla_bundles_find(b, g->rows + first, &at))
        return false;
    for (size_t h = 0; h < b->rows_per_ngram; h++) {
        if (found >> h & 1) continue;
        g->pieces[g->count++] = (embla_row_piece){.at = at + h * b->step,
                                                  .source = b->source,
                                                  .item = (uint32_t)(first + h) << 2 | BUNDLED};
        g->bundled++;
    }
    return true;
}

size_t embla_gather_step(const embla_store *store)
{
    enum { MOST = 32 }; /* bits of `found` */
    return store->bundles ? MOST / store->bundles->rows_per_ngram * store->bundles->rows_per_ngram
                          : MOST;
}

void embla_gather_add(embla_gather *g, size_t first, size_t count, uint32_t found)
{
    size_t rows_per_ngram = g->store->bundles ? g->store->bundles->rows_per_ngram : 1;
    uint32_t ngram = rows_per_ngram < 32 ? ((uint32_t)1 << rows_per_ngram) - 1 : UINT32_MAX;
    for (size_t i = 0; i < count; i += rows_per_ngram) {
        size_t n = count - i < rows_per_ngram ? count - i : rows_per_ngram;
        uint32_t have = found >> i & ngram;
        if (have == ngram || add_bundle(g, first + i, n, have)) continue;
        for (size_t k = 0; k < n; k++)
            if (!(have >> k & 1)) add_row(g, first + i + k);
    }
}

/* ---- order ---- */

static bool before(const embla_row_piece *a, const embla_row_piece *b)
{
    return a->source != b->source ? a->source < b->source : a->at < b->at;
}

/* Moves the piece at `root` down to its place in a heap of n pieces with the last one on top. */
static void sift(embla_row_piece *pieces, size_t root, size_t n)
{
    embla_row_piece moved = pieces[root];
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && before(&pieces[child], &pieces[child + 1])) child++;
        if (!before(&moved, &pieces[child])) break;
        pieces[root] = pieces[child];
    }
    pieces[root] = moved;
}

/* Heapsort: it needs no memory, and the C library's qsort may allocate. */
void embla_gather_sort(embla_gather *g)
{
    size_t n = g->count;
    for (size_t i = n / 2; i-- > 0;) sift(g->pieces, i, n);
    while (n > 1) {
        embla_row_piece last = g->pieces[0];
        g->pieces[0] = g->pieces[--n];
        g->pieces[n] = last;
        sift(g->pieces, 0, n);
    }
}

/* ---- reads ---- */

/* The next read: pieces from g->next on that begin in its pages or the one after them, and end
 * within `most` bytes. */
embla_page_read embla_gather_next(embla_gather *g, size_t most)
{
    const embla_row_piece *p = &g->pieces[g->next];
    embla_page_read r = {
        .first = g->next, .source = p->source, .offset = p->at / EMBLA_DIRECT * EMBLA_DIRECT};
    uint64_t end = p->at + embla_row_piece_bytes(g, p);
    for (g->next++; g->next < g->count; g->next++) {
        p = &g->pieces[g->next];
        uint64_t this_end = p->at + embla_row_piece_bytes(g, p);
        if (p->source != r.source || p->at / EMBLA_DIRECT > (end - 1) / EMBLA_DIRECT + 1 ||
            this_end - r.offset > most)
            break;
        if (this_end > end) end = this_end;
    }
    r.count = g->next - r.first;
    r.needed = (size_t)(end - r.offset);
    r.bytes = (r.needed + EMBLA_DIRECT - 1) / EMBLA_DIRECT * EMBLA_DIRECT;
    return r;
}

/* Copies the part of a row from its place in a bundle. Returns false if another row is there. */
static bool copy_bundled(embla_gather *g, const embla_row_piece *p, const char *from)
{
    const embla_row_part *part = g->part;
    char *out = embla_row_piece_out(g, p);
    int64_t number;
    memcpy(&number, from, sizeof number);
    embla_order_turn(&number, sizeof number, 1);
    if (number != g->rows[p->item >> 2]) return false;
    from += EMBLA_PACK_NUMBER;
    memcpy(out, from + part->code_at, part->code_bytes);
    if (part->scale_bytes > 0)
        memcpy(out + part->code_bytes, from + g->store->row.code_bytes + part->scale_at,
               part->scale_bytes);
    return true;
}

/* Reads a piece through the page cache: this works for any file, and reports what is wrong with
 * it. A row that is not in its bundle is read from its own place. */
static embla_status read_again(embla_gather *g, const embla_map *map, const embla_row_piece *p)
{
    size_t bytes = embla_row_piece_bytes(g, p);
    char *out = embla_row_piece_out(g, p);
    if ((p->item & 3) == BUNDLED)
        return embla_extents_read(g->store, g->rows[p->item >> 2], g->part, out);
    EMBLA_TRY(embla_map_read(map, p->at, bytes, out));
    embla_io_forget(map->file, p->at, bytes);
    return EMBLA_OK;
}

/* Copies the pieces of a read that has ended. If it was short or has failed, each piece is read
 * again. */
void embla_gather_copy(embla_gather *g, const embla_store *store, const embla_page_read *r,
                       const char *memory, int64_t result)
{
    const embla_map *map = store->sources[r->source].map;
    for (size_t i = r->first; i < r->first + r->count; i++) {
        const embla_row_piece *p = &g->pieces[i];
        size_t bytes = embla_row_piece_bytes(g, p), at = (size_t)(p->at - r->offset);
        bool there = result >= 0 && at + bytes <= (size_t)result;
        bool bundled = (p->item & 3) == BUNDLED;
        if (there && bundled && copy_bundled(g, p, memory + at)) continue;
        if (there && !bundled)
            memcpy(embla_row_piece_out(g, p), memory + at, bytes);
        else
            embla_failure_keep(&g->failure, read_again(g, map, p));
    }
}
