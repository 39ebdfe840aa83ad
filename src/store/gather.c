/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of a gather: where the bytes of its rows are in files, in the order in which they are
 * read. */
#include <string.h>

#include "store/gather.h"

/* The range that a piece is: a whole part of a row, its codes, or its scales. */
enum { WHOLE, CODES, SCALES };

void embla_gather_init(embla_gather *gather, const embla_row_part *part, char *out,
                       size_t out_stride, embla_row_piece *pieces)
{
    *gather = (embla_gather){.part = part,
                             .out = out,
                             .out_stride = out_stride,
                             .pieces = pieces,
                             .failure = EMBLA_NO_FAILURE};
}

size_t embla_row_piece_bytes(const embla_gather *gather, const embla_row_piece *piece)
{
    const embla_row_part *part = gather->part;
    unsigned range = piece->item & 3;
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
    if (map->fd >= 0)
        g->pieces[g->count++] = piece;
    else
        memcpy(embla_row_piece_out(g, &piece), map->bytes + piece.at,
               embla_row_piece_bytes(g, &piece));
}

void embla_gather_add(embla_gather *g, const embla_store *store, int64_t row, size_t index)
{
    const embla_row_part *part = g->part;
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

/* Copies the pieces of a read that has ended. If it was short or has failed, each piece is read
 * again through the page cache: this works for any file, and reports what is wrong with it. */
void embla_gather_copy(embla_gather *g, const embla_store *store, const embla_page_read *r,
                       const char *memory, int64_t result)
{
    const embla_map *map = store->sources[r->source].map;
    for (size_t i = r->first; i < r->first + r->count; i++) {
        const embla_row_piece *p = &g->pieces[i];
        size_t bytes = embla_row_piece_bytes(g, p), at = (size_t)(p->at - r->offset);
        char *out = embla_row_piece_out(g, p);
        if (result >= 0 && at + bytes <= (size_t)result) {
            memcpy(out, memory + at, bytes);
            continue;
        }
        embla_failure_keep(&g->failure, embla_map_read(map, p->at, bytes, out));
        embla_io_forget(map->fd, p->at, bytes);
    }
}
