/* SPDX-License-Identifier: Apache-2.0 */
/* A sharded table: which rank has which row, memory, and initial rows. */
#include "cluster/sharded.h"

#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/layout.h"
#include "base/options.h"
#include "base/threads.h"
#include "lookup/unique.h"
#include "table/access.h"

/* ---- options ---- */

/* What all ranks need to agree on anything. */
static embla_status check_comm(const embla_comm *comm)
{
    EMBLA_NEED_OF("embla_sharded_new", "comm", comm);
    EMBLA_TRY(embla_reserved_check(comm->reserved, sizeof comm->reserved / sizeof(uint64_t)));
    if (comm->size >= 1 && comm->rank >= 0 && comm->rank < comm->size) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT, "the communicator has rank %d of %d", comm->rank,
                      comm->size);
}

static embla_status check(const embla_comm *comm, const embla_sharded_options *o,
                          embla_sharded *const *out)
{
    EMBLA_NEED_OF("embla_sharded_new", "options", o);
    EMBLA_NEED_OF("embla_sharded_new", "out", out);
    EMBLA_TRY(embla_options_check(o));
    EMBLA_TRY(embla_threads_check(o->threads));
    if (o->rows < 1 || o->rows > EMBLA_ROWS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "rows is %" PRId64 "; it must be from 1 to %" PRId64,
                          o->rows, EMBLA_ROWS_MOST);
    size_t buckets = o->buckets ? o->buckets : embla_buckets_usual(o->rows);
    EMBLA_TRY(embla_buckets_check(buckets));
    if ((size_t)comm->size > buckets)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%d ranks share %zu buckets; there must be at least a bucket for each "
                          "rank",
                          comm->size, buckets);
    if (o->capacity < 1 || o->capacity > EMBLA_UNIQUE_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the capacity is %zu row numbers; it must be from 1 to %d", o->capacity,
                          EMBLA_UNIQUE_MOST);
    return EMBLA_OK;
}

/* ---- create, free ---- */

static embla_status new_block(const embla_comm *comm, const embla_sharded_options *o,
                              embla_sharded **out)
{
    embla_layout layout = {0};
    size_t ranks = (size_t)comm->size, most = o->capacity;
    void *memory = NULL;
    (void)embla_layout_add(&layout, 1, sizeof(embla_sharded));
    size_t first = embla_layout_add(&layout, ranks, sizeof(int64_t));
    size_t buckets = o->buckets ? o->buckets : embla_buckets_usual(o->rows);
    size_t rank_of = embla_layout_add(&layout, buckets, sizeof(int32_t));
    size_t local_of = embla_layout_add(&layout, buckets, sizeof(int64_t));
    size_t near_of = embla_layout_add(&layout, buckets, sizeof(int64_t));
    size_t slots = embla_layout_add(&layout, embla_unique_slots(most), sizeof(uint32_t));
    size_t found = embla_layout_add(&layout, most, sizeof(int64_t));
    size_t where = embla_layout_add(&layout, most, sizeof(int64_t));
    size_t place = embla_layout_add(&layout, most, sizeof(int64_t));
    size_t numbers = embla_layout_add(&layout, most, sizeof(int64_t));
    size_t counts = embla_layout_add(&layout, 4 * (ranks + 1), sizeof(size_t));
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "lookups of %zu row numbers do not fit in memory",
                          most);
    EMBLA_TRY(embla_mem_new(layout.bytes, "a sharded table", &memory));
    char *block = memory;
    embla_sharded *s = memory;
    s->bytes = layout.bytes;
    s->near_first = (void *)(block + first);
    s->rank_of = (void *)(block + rank_of);
    s->local_of = (void *)(block + local_of);
    s->near_of = (void *)(block + near_of);
    s->slots = (void *)(block + slots);
    s->found = (void *)(block + found);
    s->where = (void *)(block + where);
    s->place = (void *)(block + place);
    s->numbers = (void *)(block + numbers);
    s->counts = (void *)(block + counts);
    s->comm = comm;
    s->options = *o;
    s->options.buckets = buckets;
    s->shift = (unsigned)__builtin_ctzll(buckets);
    s->bucket_rows = ((size_t)o->rows + buckets - 1) / buckets;
    s->first = embla_buckets_begin(comm->rank, comm->size, buckets);
    s->buckets = embla_buckets_begin(comm->rank + 1, comm->size, buckets) - s->first;
    for (int r = 0; r < comm->size; r++) {
        size_t begin = embla_buckets_begin(r, comm->size, buckets);
        size_t end = embla_buckets_begin(r + 1, comm->size, buckets);
        for (size_t i = begin; i < end; i++) {
            size_t bucket = embla_sharded_bucket(s, i);
            s->rank_of[bucket] = r;
            s->local_of[bucket] = (int64_t)((i - begin) * s->bucket_rows);
        }
    }
    *out = s;
    return EMBLA_OK;
}

/* Rows that each rank's part of a window has: those of the rank with the most buckets, and enough
 * that the next part begins a cache line. */
static embla_status part_size(const embla_sharded *s, int64_t *rows, size_t *bytes)
{
    enum { LINE = 64 };
    size_t row_bytes, unused;
    uint64_t most = (s->options.buckets + (size_t)s->comm->size - 1) / (size_t)s->comm->size;
    uint64_t n, total;
    const embla_row_format format = {.dim = s->options.dim, .dtype = s->options.dtype};
    EMBLA_TRY(embla_row_bytes(&format, &row_bytes));
    if (!embla_mul_ok(most, s->bucket_rows, &n) || !embla_add_ok(n, LINE, &n) ||
        !embla_mul_ok(n / LINE * LINE, row_bytes, &total) ||
        !embla_mul_ok(total, (uint64_t)s->comm->size, &n) || !embla_size_ok(n, &unused))
        return embla_fail(EMBLA_ERR_MEMORY, "%zu buckets of %zu rows do not fit in memory",
                          s->options.buckets, s->bucket_rows);
    *rows = (int64_t)(total / row_bytes);
    *bytes = (size_t)total;
    return EMBLA_OK;
}

/* Makes one table of the parts of a window. They must follow each other in the order of ranks. */
static embla_status join_parts(embla_sharded *s, size_t bytes)
{
    const embla_sharded_options *o = &s->options;
    char *base = NULL;
    int64_t parts = 0;
    s->all_near = true;
    for (int r = 0; r < s->comm->size; r++) {
        char *part = s->window.parts[r];
        s->near_first[r] = part ? parts * s->part_rows : -1;
        s->all_near = s->all_near && part;
        if (!part) continue;
        if (!base) base = part;
        if (part != base + (size_t)parts * bytes)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "the window's part of rank %d begins at byte %td, not at %zu", r,
                              part - base, (size_t)parts * bytes);
        parts++;
    }
    for (size_t b = 0; b < o->buckets; b++)
        s->near_of[b] = s->near_first[s->rank_of[b]] + s->local_of[b];
    return embla_table_view(
        &(embla_table_layout){.dtype = o->dtype, .rows = parts * s->part_rows, .dim = o->dim}, base,
        (size_t)parts * bytes, NULL, &s->near);
}

/* Tries to allocate the rows in memory that the host's ranks share. All ranks do, or none. */
static embla_status try_window(embla_sharded *s, bool *made)
{
    size_t bytes;
    *made = false;
    EMBLA_TRY(part_size(s, &s->part_rows, &bytes));
    if (s->options.send || !s->comm->window_new) return EMBLA_OK;
    embla_status status = s->comm->window_new(s->comm->owner, bytes, &s->window);
    if (status == EMBLA_OK) status = join_parts(s, bytes);
    int64_t failed = status != EMBLA_OK;
    EMBLA_TRY(
        s->comm->allreduce(s->comm->owner, &failed, 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX));
    if (failed == 0) {
        *made = true;
        return EMBLA_OK;
    }
    embla_table_free(s->near);
    s->near = NULL;
    s->all_near = false;
    if (s->window.handle) s->comm->window_free(s->comm->owner, &s->window);
    return EMBLA_OK;
}

static embla_status new_rows(embla_sharded *s)
{
    const embla_sharded_options *o = &s->options;
    int64_t rows = (int64_t)(s->buckets * s->bucket_rows);
    bool shared;
    EMBLA_TRY(try_window(s, &shared));
    if (!shared) {
        for (int r = 0; r < s->comm->size; r++) s->near_first[r] = -1;
        return embla_table_new(o->dtype, rows, o->dim, NULL, &s->table);
    }
    size_t row_bytes = embla_table_row_bytes(s->near);
    return embla_table_view(&(embla_table_layout){.dtype = o->dtype, .rows = rows, .dim = o->dim},
                            s->window.parts[s->comm->rank], (size_t)rows * row_bytes,
                            &(embla_table_options){.writable = true}, &s->table);
}

embla_status embla_sharded_new(const embla_comm *comm, const embla_sharded_options *options,
                               embla_sharded **out)
{
    embla_sharded *s = NULL;
    EMBLA_TRY(check_comm(comm));
    embla_status status = check(comm, options, out);
    if (status == EMBLA_OK) status = new_block(comm, options, &s);
    status = embla_comm_agree(comm, status, "it cannot create a sharded table");
    if (status == EMBLA_OK)
        status = embla_comm_agree(comm, new_rows(s), "the rows of a sharded table");
    if (status != EMBLA_OK) {
        embla_sharded_free(s);
        return status;
    }
    *out = s;
    return EMBLA_OK;
}

void embla_sharded_free(embla_sharded *sharded)
{
    embla_sharded *s = sharded;
    if (!s) return;
    embla_sharded_settle(s);
    embla_table_free(s->table);
    embla_table_free(s->near);
    embla_table_free(s->staged);
    embla_scatter_free(s->mine);
    embla_scatter_free(s->owned);
    embla_scratch_free(&s->asked);
    embla_scratch_free(&s->answer);
    embla_scratch_free(&s->parts);
    embla_scratch_free(&s->sent);
    embla_scratch_free(&s->received);
    embla_scratch_free(&s->keys);
    embla_scratch_free(&s->sums);
    embla_scratch_free(&s->loss);
    if (s->window.handle) s->comm->window_free(s->comm->owner, &s->window);
    embla_mem_free(s, s->bytes);
}

embla_status embla_sharded_check_lengths(const size_t *lengths, size_t shards, size_t count,
                                         const char *what)
{
    uint64_t sum = 0;
    if (!lengths) return EMBLA_OK;
    for (size_t i = 0; i < shards; i++)
        if (!embla_add_ok(sum, lengths[i], &sum) || sum > count) break;
    if (sum == count) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_SHAPE,
                      "the lengths of %zu micro-batches sum to %" PRIu64 ", but there are %zu %s",
                      shards, sum, count, what);
}

/* ---- places ---- */

embla_table *embla_sharded_table(embla_sharded *sharded)
{
    return sharded ? sharded->table : NULL;
}

int embla_sharded_owner(const embla_sharded *sharded, int64_t row)
{
    if (!sharded || row < 0 || row >= sharded->options.rows) return -1;
    return embla_sharded_rank(sharded, row);
}

int64_t embla_sharded_local(const embla_sharded *sharded, int64_t row)
{
    if (!sharded || row < 0 || row >= sharded->options.rows) return -1;
    return embla_sharded_at(sharded, sharded->local_of, row);
}

int64_t embla_sharded_global(const embla_sharded *sharded, int64_t local)
{
    if (!sharded || local < 0 || local >= embla_table_rows(sharded->table)) return -1;
    size_t place = sharded->first + (size_t)local / sharded->bucket_rows;
    size_t bucket = embla_sharded_bucket(sharded, place);
    int64_t row =
        (int64_t)((size_t)local % sharded->bucket_rows * sharded->options.buckets + bucket);
    return row < sharded->options.rows ? row : -1;
}

embla_status embla_sharded_publish(embla_sharded *sharded)
{
    EMBLA_NEED(sharded);
    EMBLA_TRY(embla_sharded_idle(sharded));
    return sharded->near ? sharded->comm->barrier(sharded->comm->owner, 0) : EMBLA_OK;
}

/* ---- initial rows ---- */

static int64_t number_of(const void *owner, int64_t row)
{
    return embla_sharded_global(owner, row);
}

embla_status embla_sharded_init(embla_sharded *sharded, const embla_init_options *options)
{
    EMBLA_NEED(sharded);
    EMBLA_TRY(embla_sharded_idle(sharded));
    const embla_table_part part = {
        .rows = sharded->options.rows, .number = number_of, .owner = sharded};
    EMBLA_TRY(embla_comm_agree(sharded->comm, embla_table_init_part(sharded->table, options, &part),
                               "initial rows"));
    return embla_sharded_publish(sharded);
}

/* Copies the rows of the bucket at a place. */
static embla_status fill_bucket(embla_sharded *s, const embla_table *table, size_t place)
{
    enum { SOME = 512 };
    int64_t rows[SOME], begin = (int64_t)(place - s->first) * (int64_t)s->bucket_rows;
    const embla_lookup_options raw = {.raw = true, .threads = s->options.threads};
    for (int64_t i = 0; i < (int64_t)s->bucket_rows;) {
        size_t n = 0;
        while (n < SOME && i + (int64_t)n < (int64_t)s->bucket_rows) {
            int64_t row = embla_sharded_global(s, begin + i + (int64_t)n);
            if (row < 0) break;
            rows[n++] = row;
        }
        if (n == 0) break;
        char *to = embla_table_data(s->table);
        EMBLA_TRY(embla_lookup_rows(table, rows, n, &raw,
                                    to + (size_t)(begin + i) * embla_table_row_bytes(s->table)));
        i += (int64_t)n;
    }
    return EMBLA_OK;
}

static embla_status fill(embla_sharded *s, const embla_table *table)
{
    const embla_sharded_options *o = &s->options;
    EMBLA_NEED_OF("embla_sharded_fill", "table", table);
    if (embla_table_rows(table) != o->rows || embla_table_dim(table) != o->dim)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "the table is %" PRId64 " x %zu, but the sharded table %" PRId64 " x %zu",
                          embla_table_rows(table), embla_table_dim(table), o->rows, o->dim);
    if (embla_table_dtype(table) != o->dtype)
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "the table has dtype %s, but the sharded table %s",
                          embla_dtype_name(embla_table_dtype(table)), embla_dtype_name(o->dtype));
    for (size_t b = 0; b < s->buckets; b++) EMBLA_TRY(fill_bucket(s, table, s->first + b));
    return EMBLA_OK;
}

embla_status embla_sharded_fill(embla_sharded *sharded, const embla_table *table)
{
    EMBLA_NEED(sharded);
    EMBLA_TRY(embla_sharded_idle(sharded));
    EMBLA_TRY(embla_comm_agree(sharded->comm, fill(sharded, table), "copying rows"));
    return embla_sharded_publish(sharded);
}
