/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, re-encodes and counts rows for a writer, one block at a time. */
#include "reshape/stream.h"

#include <string.h>

#include "base/byte_order.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/stop.h"
#include "files/cursor.h"

enum { REPORT_BYTES = 64 << 20, REPORT_MS = 100 }; /* between two reports */

/* ---- progress ---- */

static embla_status report(embla_meter *m)
{
    m->reported = m->done;
    m->when = embla_clock_ns();
    return embla_progress_report(m->options->progress, m->options->context, m->what, m->done,
                                 m->all);
}

embla_status embla_meter_begin(embla_meter *m, const char *what, int64_t all)
{
    m->what = what;
    m->done = 0;
    m->all = all;
    return report(m);
}

embla_status embla_meter_add(embla_meter *m, size_t bytes)
{
    m->done += (int64_t)bytes;
    if (!m->options->progress) return EMBLA_OK;
    int64_t ms = (embla_clock_ns() - m->when) / 1000000;
    bool now_due = m->done - m->reported >= REPORT_BYTES || ms >= REPORT_MS || m->done == m->all;
    return now_due ? report(m) : EMBLA_OK;
}

/* ---- buffers ---- */

embla_status embla_stream_buffers_new(embla_stream_buffers *buffers, const embla_stream *streams,
                                      size_t count)
{
    size_t block = EMBLA_BLOCK, floats = 0;
    void *memory[4] = {NULL, NULL, NULL, NULL};
    for (size_t i = 0; i < count; i++) {
        const embla_stream *s = &streams[i];
        if (s->old_row > block) block = s->old_row;
        if (s->new_row > block) block = s->new_row;
        if (s->dim > floats) floats = s->dim;
    }
    buffers->block = block;
    buffers->floats = floats;
    for (int i = 0; i < 4; i++) {
        EMBLA_TRY(embla_mem_new(i < 2 ? block : floats * sizeof(float), "rows being converted",
                                &memory[i]));
        if (i == 0) buffers->old_rows = memory[i];
        if (i == 1) buffers->new_rows = memory[i];
        if (i == 2) buffers->before = memory[i];
        if (i == 3) buffers->after = memory[i];
    }
    return EMBLA_OK;
}

void embla_stream_buffers_free(embla_stream_buffers *buffers)
{
    embla_mem_free(buffers->old_rows, buffers->block);
    embla_mem_free(buffers->new_rows, buffers->block);
    embla_mem_free(buffers->before, buffers->floats * sizeof(float));
    embla_mem_free(buffers->after, buffers->floats * sizeof(float));
}

/* ---- rows ---- */

static bool is_nan(uint32_t bits)
{
    return (bits & 0x7fffffffu) > 0x7f800000u;
}

/* Replaces every NaN by the one that text can represent. */
static void replace_nans(uint8_t *f32, size_t bytes)
{
    for (size_t i = 0; i + 4 <= bytes; i += 4)
        if (is_nan(embla_le32(f32 + i))) embla_put_le32(0x7fc00000u, f32 + i);
}

/* Decodes a row of a file. Its bytes are the same again at the end. */
static embla_status decode_row(embla_dtype dtype, uint8_t *row, size_t bytes, size_t dim,
                               float *out)
{
    embla_order_rows(dtype, row, bytes);
    embla_status status = embla_dtype_decode(dtype, row, dim, 0.0f, out);
    embla_order_rows(dtype, row, bytes);
    return status;
}

/* Re-encodes one row, decodes the result and counts the row. */
static embla_status recode_row(embla_stream *s, uint8_t *old, uint8_t *new)
{
    embla_stream_buffers *d = s->buffers;
    embla_dtype from = s->entry->element->dtype, to = s->element->dtype;
    EMBLA_TRY(decode_row(from, old, s->old_row, s->dim, d->before));
    EMBLA_TRY(embla_dtype_encode(to, d->before, s->dim, 0.0f, new));
    embla_order_rows(to, new, s->new_row);
    if (s->plain_nan) replace_nans(new, s->new_row);
    EMBLA_TRY(decode_row(to, new, s->new_row, s->dim, d->after));
    embla_account_row(s->line, d->before, from == EMBLA_F64 ? old : NULL, d->after, s->dim);
    return EMBLA_OK;
}

/* Counts a row that keeps its bytes; for text, its NaNs are replaced. */
static embla_status count_row(embla_stream *s, uint8_t *row)
{
    embla_stream_buffers *d = s->buffers;
    embla_dtype dtype = s->element->dtype;
    if (dtype == 0) { /* the numbers cannot be decoded */
        s->line->rows_same++;
        return EMBLA_OK;
    }
    EMBLA_TRY(decode_row(dtype, row, s->new_row, s->dim, d->before));
    if (!s->plain_nan) {
        embla_account_same(s->line, d->before, dtype == EMBLA_F64 ? row : NULL, s->dim);
        return EMBLA_OK;
    }
    replace_nans(row, s->new_row);
    EMBLA_TRY(decode_row(dtype, row, s->new_row, s->dim, d->after));
    embla_account_row(s->line, d->before, NULL, d->after, s->dim);
    return EMBLA_OK;
}

/* Reads rows from `row` into the block of the buffers. Writers read front to back, so each row is
 * counted once. */
static embla_status fill_block(embla_stream *s, uint64_t row)
{
    embla_stream_buffers *d = s->buffers;
    bool recode = s->element != s->entry->element;
    size_t longest = s->old_row > s->new_row ? s->old_row : s->new_row;
    uint64_t count = d->block / longest, left = row < s->rows ? s->rows - row : 0;
    uint8_t *into = recode ? d->old_rows : d->new_rows;
    if (count > left) count = left;
    d->owner = NULL;
    EMBLA_TRY(embla_entry_read(s->checkpoint, s->entry, row * s->old_row,
                               (size_t)count * s->old_row, into));
    for (uint64_t i = 0; i < count; i++) {
        uint8_t *new = d->new_rows + i * s->new_row;
        if (recode)
            EMBLA_TRY(recode_row(s, d->old_rows + i * s->old_row, new));
        else if (s->counted)
            EMBLA_TRY(count_row(s, new));
    }
    d->owner = s;
    d->first = row * s->new_row;
    d->have = count * s->new_row;
    return EMBLA_OK;
}

/* Copies bytes from the block, which is refilled as needed. */
static embla_status read_rows(embla_stream *s, uint64_t offset, size_t bytes, uint8_t *out)
{
    embla_stream_buffers *d = s->buffers;
    while (bytes > 0) {
        if (d->owner != s || offset < d->first || offset - d->first >= d->have)
            EMBLA_TRY(fill_block(s, offset / s->new_row));
        if (offset - d->first >= d->have) /* never loop forever, if rows are not whole bytes */
            return embla_fail(EMBLA_ERR_IO,
                              "tensor '%.128s': there is no row at byte %" PRIu64 " of %" PRIu64,
                              s->entry->name, offset, s->bytes);
        uint64_t left = d->have - (offset - d->first);
        size_t piece = bytes < left ? bytes : (size_t)left;
        memcpy(out, d->new_rows + (offset - d->first), piece);
        offset += piece;
        out += piece;
        bytes -= piece;
    }
    return EMBLA_OK;
}

void embla_stream_begin(embla_stream *s)
{
    embla_checksum_state none;
    embla_checksum_begin(&none);
    s->sum = embla_checksum_end(&none); /* a tensor without bytes is never read */
}

embla_status embla_stream_read(void *context, uint64_t offset, size_t bytes, void *out)
{
    embla_stream *s = context;
    embla_stream_buffers *d = s->buffers;
    bool begins = offset == 0 && s->next == 0 && !d->summing, continues = d->summing == s;
    if (!(begins || continues) || offset != s->next || bytes > s->bytes - offset)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "tensor '%.128s' is read out of order: %zu bytes from byte %" PRIu64
                          ", but byte %" PRIu64 " of %" PRIu64 " is next",
                          s->entry->name, bytes, offset, s->next, s->bytes);
    if (s->by_rows)
        EMBLA_TRY(read_rows(s, offset, bytes, out));
    else
        EMBLA_TRY(embla_entry_read(s->checkpoint, s->entry, offset, bytes, out));
    if (begins) embla_checksum_begin(&d->sum);
    embla_checksum_add(&d->sum, out, bytes);
    s->next += bytes;
    d->summing = s->next < s->bytes ? s : NULL;
    if (!d->summing) s->sum = embla_checksum_end(&d->sum);
    return embla_meter_add(&d->meter, bytes);
}

embla_status embla_stream_checksum(const embla_stream *s, const embla_checkpoint *back,
                                   const embla_entry *entry, embla_checksum *out)
{
    embla_stream_buffers *d = s->buffers;
    embla_checksum_state sum;
    uint64_t rows = entry->rank > 1 && entry->shape[0] > 0 ? entry->shape[0] : 1;
    uint64_t row = entry->made && entry->bytes > rows ? entry->bytes / rows : 1;
    uint64_t block = row <= d->block ? d->block / row * row : row;
    d->owner = NULL; /* the block is reused here */
    embla_checksum_begin(&sum);
    for (uint64_t at = 0; at < entry->bytes; at += block) {
        uint64_t left = entry->bytes - at;
        size_t piece = (size_t)(left < block ? left : block);
        if (piece > d->block)
            return embla_fail(
                EMBLA_ERR_IO,
                "tensor '%.128s' was read back with rows of %zu bytes; the limit is %zu",
                entry->name, piece, d->block);
        EMBLA_TRY(embla_entry_read(back, entry, at, piece, d->old_rows));
        embla_checksum_add(&sum, d->old_rows, piece);
        EMBLA_TRY(embla_meter_add(&d->meter, piece));
    }
    *out = embla_checksum_end(&sum);
    return EMBLA_OK;
}
