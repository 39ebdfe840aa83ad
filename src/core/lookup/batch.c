/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of row numbers in which some occur more than once. Each different row is fetched once, in
 * the order of its first occurrence, and used for all its occurrences.
 *
 *   rows -> unique rows, and for each row number its index among them
 *   unique rows -> stored bytes, one after the other (staging)
 *   row numbers -> staging -> vectors, by the loop of every lookup (lookup_run.c)
 *
 * If the rows are in memory, nothing is staged: the second access finds a row in a cache, and an
 * extra copy would cost more than it saves. Different rows are still counted.
 */
#include "lookup/batch.h"

#include <string.h>

#include "base/layout.h"
#include "base/mem.h"
#include "base/options.h"
#include "lookup/unique.h"

struct embla_batch {
    embla_row_source source;
    size_t bytes; /* of this block */
    size_t most;
    uint32_t *slots;  /* for lookup/unique.h */
    int64_t *unique;  /* different rows, in the order of their first occurrence */
    int64_t *where;   /* for each row number, its index in unique */
    char *staging;    /* stored bytes of the unique rows; NULL if the rows are in memory */
    char *given;      /* a row as the source returns it */
    char *again;      /* the same row from its file, to compare */
    size_t every;     /* see embla_batch_verify */
    uint64_t counted; /* rows that could have been verified so far */
    embla_batch_info stats;
};

/* ---- create, free ---- */

embla_status embla_batch_over(const embla_row_source *source, size_t most, embla_batch **out)
{
    embla_layout layout = {0};
    void *memory = NULL;
    bool stages = source->kind->distinct;
    if (most < 1 || most > EMBLA_UNIQUE_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the capacity of a batch is %zu row numbers; it must be from 1 to %d",
                          most, EMBLA_UNIQUE_MOST);
    size_t row_bytes = source->row->bytes, self = embla_layout_add(&layout, 1, sizeof(embla_batch));
    size_t slots = embla_layout_add(&layout, embla_unique_slots(most), sizeof(uint32_t));
    size_t unique = embla_layout_add(&layout, most, sizeof(int64_t));
    size_t where = embla_layout_add(&layout, most, sizeof(int64_t));
    size_t given = embla_layout_add(&layout, 2, row_bytes);
    size_t staging = embla_layout_add(&layout, stages ? most : 0, row_bytes);
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY,
                          "a batch of %zu rows of %zu bytes does not fit in memory", most,
                          row_bytes);
    EMBLA_TRY(embla_mem_new(layout.bytes, "a batch of row numbers", &memory));
    char *base = memory;
    embla_batch *batch = (void *)(base + self);
    *batch = (embla_batch){.source = *source,
                           .bytes = layout.bytes,
                           .most = most,
                           .slots = (void *)(base + slots),
                           .unique = (void *)(base + unique),
                           .where = (void *)(base + where),
                           .staging = stages ? base + staging : NULL,
                           .given = base + given,
                           .again = base + given + row_bytes};
    *out = batch;
    return EMBLA_OK;
}

void embla_batch_free(embla_batch *batch)
{
    if (batch) embla_mem_free(batch, batch->bytes);
}

/* ---- statistics ---- */

/* Counts the units of 2^bits bytes that are needed for `bytes` bytes at `at`, from unit *next
 * on. */
static uint64_t touched(uint64_t at, size_t bytes, unsigned bits, uint64_t *next)
{
    uint64_t first = at >> bits, last;
    if (bytes == 0) return 0;
    last = (at + bytes - 1) >> bits;
    if (first < *next) first = *next;
    *next = last + 1;
    return last + 1 - first;
}

/* The addresses of a row's codes and scales, in memory or in a file. Returns true if they are in
 * different files, or the scales come first. */
static bool locate(const embla_row_source *source, int64_t row, uint64_t at[EMBLA_PLANES])
{
    if (!source->data) return source->kind->locate(source->owner, row, at);
    at[0] = (uint64_t)(uintptr_t)source->data + (uint64_t)(row - source->first) * source->stride;
    at[1] = at[0] + source->row->code_bytes;
    return false;
}

static int64_t bytes_touched(const embla_batch *batch, size_t unique, const embla_row_part *part)
{
    unsigned bits = (unsigned)__builtin_ctzll(batch->source.kind->unit);
    uint64_t units = 0, at[EMBLA_PLANES];
    for (size_t i = 0; i < unique; i++) {
        uint64_t next = 0;
        if (!embla_source_holds(&batch->source, batch->unique[i])) continue;
        bool apart = locate(&batch->source, batch->unique[i], at);
        units += touched(at[0] + part->code_at, part->code_bytes, bits, &next);
        if (apart) next = 0;
        units += touched(at[1] + part->scale_at, part->scale_bytes, bits, &next);
    }
    return (int64_t)(units << bits);
}

embla_status embla_batch_describe(const embla_batch *batch, embla_batch_info *out)
{
    EMBLA_NEED(batch);
    EMBLA_NEED(out);
    *out = batch->stats;
    return EMBLA_OK;
}

/* ---- verify ---- */

embla_status embla_batch_verify(embla_batch *batch, size_t every)
{
    EMBLA_NEED(batch);
    if (every > 0 && !batch->source.kind->reread)
        return embla_fail(
            EMBLA_ERR_UNSUPPORTED,
            "the rows are in the caller's memory; there is no file to compare them with");
    batch->every = every;
    return EMBLA_OK;
}

/* Compares row i of unique, from the source or from staging, with its file. */
static embla_status verify_row(const embla_batch *batch, size_t i, const embla_row_part *part)
{
    int64_t row = batch->unique[i];
    const char *given = batch->given;
    if (batch->staging) {
        given = batch->staging + i * part->bytes;
    } else {
        const embla_read_job job = {.rows = &row,
                                    .count = 1,
                                    .known = 1,
                                    .part = part,
                                    .out = batch->given,
                                    .out_stride = part->bytes};
        EMBLA_TRY(embla_source_read(&batch->source, &job));
    }
    EMBLA_TRY(batch->source.kind->reread(batch->source.owner, row, part, batch->again));
    for (size_t k = 0; k < part->bytes; k++)
        if (given[k] != batch->again[k])
            return embla_fail(EMBLA_ERR_IO,
                              "row %" PRId64 " differs from its file: byte %zu of %zu is 0x%02x, "
                              "and 0x%02x in the file",
                              row, k, part->bytes, (unsigned char)given[k],
                              (unsigned char)batch->again[k]);
    return EMBLA_OK;
}

/* Verifies about one row in `every`. The choice depends only on how many rows there were before, so
 * it does not follow a pattern of n-grams. */
static embla_status verify_some(embla_batch *batch, size_t unique, const embla_row_part *part,
                                int64_t *verified)
{
    if (batch->every == 0) return EMBLA_OK;
    for (size_t i = 0; i < unique; i++) {
        if ((embla_unique_hash(++batch->counted) >> 32) % batch->every != 0) continue;
        if (!embla_source_holds(&batch->source, batch->unique[i])) continue;
        EMBLA_TRY(verify_row(batch, i, part));
        ++*verified;
    }
    return EMBLA_OK;
}

/* ---- lookup ---- */

embla_lookup_call embla_batch_call(const embla_row_source *source, const int64_t *rows,
                                   size_t count, const embla_store_lookup_options *options,
                                   void *out)
{
    static const embla_store_lookup_options none;
    if (!options) options = &none;
    return (embla_lookup_call){.source = source,
                               .rows = rows,
                               .count = count,
                               .rows_per_token = options->rows_per_token,
                               .first = options->first_column,
                               .columns = options->columns,
                               .scale = options->scale,
                               .sum = options->sum,
                               .raw = options->raw,
                               .out_dtype = options->out_dtype,
                               .token_stride = options->token_stride,
                               .row_stride = options->row_stride,
                               .out = out,
                               .threads = options->threads};
}

/* Copies the different rows to staging. The caller's output is not written yet. */
static embla_status stage(const embla_batch *batch, const embla_lookup_call *call, size_t unique)
{
    embla_lookup_call copy = {.source = &batch->source,
                              .rows = batch->unique,
                              .count = unique,
                              .first = call->part.first,
                              .columns = call->part.n,
                              .raw = true,
                              .out = batch->staging,
                              .threads = call->threads};
    return embla_lookup_perform(&copy);
}

embla_status embla_batch_lookup(embla_batch *batch, const int64_t *rows, size_t count,
                                const embla_store_lookup_options *options, void *out)
{
    EMBLA_TRY(embla_options_check(options));
    int64_t verified = 0;
    EMBLA_NEED(batch);
    if (count > batch->most)
        return embla_fail(EMBLA_ERR_ARGUMENT, "count is %zu; the batch has room for only %zu rows",
                          count, batch->most);
    embla_lookup_call call = embla_batch_call(&batch->source, rows, count, options, out);
    EMBLA_TRY(embla_lookup_check(&call));
    size_t unique = embla_unique_find(rows, count, batch->slots, batch->unique, batch->where);
    if (count > 0 && batch->staging) {
        EMBLA_TRY(stage(batch, &call, unique));
        call.rows = batch->where;
        embla_lookup_from_staging(&call, batch->staging, unique);
    } else if (count > 0) {
        EMBLA_TRY(embla_source_check(&batch->source));
    }
    EMBLA_TRY(verify_some(batch, unique, &call.part, &verified));
    EMBLA_TRY(embla_lookup_run(&call));
    if (count > 0 && !batch->staging) EMBLA_TRY(embla_source_check(&batch->source));
    embla_batch_info *stats = &batch->stats;
    stats->calls++;
    stats->asked += (int64_t)count;
    stats->unique += (int64_t)unique;
    stats->bytes_read += bytes_touched(batch, unique, &call.part);
    stats->bytes_useful += (int64_t)(unique * call.part.bytes);
    stats->verified += verified;
    return EMBLA_OK;
}
