/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of every lookup. There are three ways through it, chosen once for a call:
 *
 *   copy    the stored bytes are the wanted bytes: a kernel copies row after row to out
 *   direct  rows are in memory: each is decoded in place, while lines of later rows are prefetched,
 *           one line of each row in turn (base/lines.h)
 *   staged  rows have to be read: up to 32 of them are read into a small array that stays in the L1
 *           cache, then decoded from there
 *
 * Compared with copying, decoding rows at random addresses takes 2 to 3 times as long without a
 * prefetch, 1.5 times with this prefetch, and 1.6 times staged. Prefetching whole rows at once is
 * slower: the lines of one row arrive one after the other, those of many rows in parallel.
 *
 * Tokens become row numbers here, tile by tile; nothing below this file knows tokens. Decoded
 * numbers go directly to out, or through small arrays where they are scaled, added or converted.
 * One thread writes each vector, so the result does not depend on the number of threads. Nothing is
 * allocated.
 */
#include <string.h>

#include "base/checked.h"
#include "base/kernels.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "lookup/lookup.h"

enum { TILE = 256 };       /* row numbers in a tile, unless a source prefers larger reads */
enum { AT_ONCE = 1024 };   /* row numbers that are copied if a source holds a part of its table */
enum { STAGED = 32 };      /* maximum number of staged rows .. */
enum { STAGE = 18 << 10 }; /* .. and of their bytes: one row of Gemma's per-layer table fits */
enum { NUMBERS = 1024 };   /* numbers of a row that pass through the arrays at once */
enum { SHORT_ROW = 2048 }; /* bytes of a row that is decoded in one piece */

/* The plan of a call, shared by all threads. */
typedef struct {
    const embla_lookup_call *call;
    const embla_kernels *kernels;
    embla_encode_fn *narrow; /* NULL means that the result is f32 */
    const embla_dtype_info *out_info;
    bool consecutive; /* vectors follow each other, row_stride apart, token after token */
    bool in_place;    /* floats are decoded directly to out */
    bool usable;      /* stored rows are aligned floats in memory and need no decoding */
    size_t tile;      /* rows in a tile; for a sum, whole tokens */
    size_t block;     /* numbers of a row that are processed before the next row .. */
    size_t piece;     /* .. this many at a time */
    embla_write_mode mode;
} plan;

/* One thread's state in a tile: the next vector, and the current sum. */
typedef struct {
    const plan *p;
    size_t at, n; /* the block: numbers at .. at+n-1 of the part */
    size_t index; /* of the next vector in the call */
    size_t head;  /* of the next row in its token */
    char *token;  /* the first vector of its token */
    unsigned now; /* which of the two sums is the newer one */
    float sums[2][NUMBERS], numbers[NUMBERS], position[NUMBERS];
    char narrowed[2 * NUMBERS];
} walk;

/* ---- stored bytes ---- */

/* True if the scales of a part of a row in memory follow its codes. */
static bool scales_follow(const embla_row_part *part, const char *codes, const char *scales)
{
    return part->scale_bytes == 0 || scales == codes + part->code_bytes;
}

static void copy_from_memory(const embla_kernels *kernels, const char *codes, const char *scales,
                             size_t stride, bool prefetch, const embla_read_job *job)
{
    const embla_row_part *part = job->part;
    bool one = scales_follow(part, codes, scales);
    embla_copy_job copy = {.data = codes,
                           .row_stride = stride,
                           .row_bytes = one ? part->bytes : part->code_bytes,
                           .rows = job->rows,
                           .count = job->count,
                           .known = job->known,
                           .out = job->out,
                           .out_stride = job->out_stride,
                           .mode = job->mode,
                           .fetch = prefetch};
    kernels->copy_rows(&copy);
    if (one) return;
    copy.data = scales;
    copy.row_bytes = part->scale_bytes;
    copy.out = job->out + part->code_bytes;
    kernels->copy_rows(&copy);
}

/* Copies rows that the source holds. Row numbers count from the first row in `data`. */
static embla_status read_held(const embla_row_source *source, const embla_read_job *job)
{
    const embla_row_part *part = job->part;
    if (!source->data) return source->kind->read(source->owner, job);
    const embla_kernels *kernels = embla_kernels_get();
    bool large = (uint64_t)source->rows * source->stride > EMBLA_SMALL_TABLE;
    copy_from_memory(kernels, source->data + part->code_at,
                     source->data + source->row->code_bytes + part->scale_at, source->stride,
                     large && job->count > EMBLA_GROUP_LEAST, job);
    if (job->mode == EMBLA_WRITE_STREAM) kernels->fence();
    return EMBLA_OK;
}

/* A row that is not held is replaced by one nearby, which is read anyway: so `read` gets many rows
 * at once. Then its place is set to zeros. */
static embla_status read_some(const embla_row_source *source, embla_read_job job)
{
    int64_t rows[AT_ONCE], base = source->data ? source->first : 0, near = 0;
    size_t i = 0;
    while (i < job.count && !embla_source_holds(source, job.rows[i])) i++;
    if (i < job.count) {
        near = job.rows[i];
        for (size_t k = 0; k < job.count; k++) {
            if (embla_source_holds(source, job.rows[k])) near = job.rows[k];
            rows[k] = near - base;
        }
        embla_read_job some = job;
        some.rows = rows;
        some.known = job.count;
        EMBLA_TRY(read_held(source, &some));
    }
    for (size_t k = 0; k < job.count; k++)
        if (!embla_source_holds(source, job.rows[k]))
            memset(job.out + k * job.out_stride, 0, job.part->bytes);
    return EMBLA_OK;
}

embla_status embla_source_read(const embla_row_source *source, const embla_read_job *job)
{
    if (source->held == 0) return read_held(source, job);
    for (size_t done = 0; done < job->count; done += AT_ONCE) {
        embla_read_job some = *job;
        some.rows += done;
        some.out += done * job->out_stride;
        some.count = job->count - done < AT_ONCE ? job->count - done : AT_ONCE;
        EMBLA_TRY(read_some(source, some));
    }
    return EMBLA_OK;
}

/* Copies the tile that begins with vector `start`: all at once if vectors are consecutive,
 * otherwise token by token (a tile may begin and end inside a token). */
static embla_status copy_tile(const plan *p, const int64_t *rows, size_t start, size_t n,
                              size_t known)
{
    const embla_lookup_call *call = p->call;
    for (size_t done = 0; done < n;) {
        size_t i = start + done, left = n - done;
        size_t head = p->consecutive ? 0 : i % call->rows_per_token;
        size_t run = p->consecutive || left < call->rows_per_token - head
                         ? left
                         : call->rows_per_token - head;
        char *out = p->consecutive ? call->out + i * call->row_stride
                                   : call->out + i / call->rows_per_token * call->token_stride +
                                         head * call->row_stride;
        const embla_read_job job = {.rows = rows + done,
                                    .count = run,
                                    .known = known - done,
                                    .part = &call->part,
                                    .out = out,
                                    .out_stride = call->row_stride,
                                    .mode = p->mode};
        if (call->codes)
            copy_from_memory(p->kernels, call->codes, call->scales, call->stride, call->prefetch,
                             &job);
        else
            EMBLA_TRY(embla_source_read(call->source, &job));
        done += run;
    }
    return EMBLA_OK;
}

/* ---- numbers ---- */

/* Numbers at .. at+n-1 of a position's row. */
static const float *position_numbers(const embla_lookup_call *call, size_t index, size_t at,
                                     size_t n, float *space)
{
    const embla_row_source *s = call->positions;
    int64_t row = call->position_rows ? call->position_rows[index]
                                      : call->first_position + (int64_t)(index % call->length);
    const char *codes = s->data + (size_t)row * s->stride + embla_dtype_bytes(s->row->info, at);
    if (s->row->format.dtype == EMBLA_F32 && (uintptr_t)codes % sizeof(float) == 0)
        return (const float *)(const void *)codes;
    embla_row_read(s->row, codes, NULL, n, EMBLA_WRITE_PLAIN, space);
    return space;
}

/* Scales, adds and converts n numbers x as requested, and writes them to out. */
static void write_numbers(walk *w, const float *x, size_t at, size_t n, char *out)
{
    const plan *p = w->p;
    const embla_lookup_call *call = p->call;
    size_t bytes = embla_dtype_bytes(p->out_info, n);
    bool stream = p->mode == EMBLA_WRITE_STREAM;
    bool straight = !p->narrow && !stream && (uintptr_t)out % sizeof(float) == 0;
    float *result = straight ? (float *)(void *)out : w->sums[!w->now];
    if (p->mode == EMBLA_WRITE_AHEAD)
        for (size_t k = 0; k < bytes; k += EMBLA_LINE) embla_fetch_to_write(out + k);
    if (call->positions) {
        const float *y = position_numbers(call, w->index, at, n, w->position);
        p->kernels->scale_add(x, call->scale, y, n, result);
        x = result;
    } else if (call->scale != 1.0f) {
        p->kernels->scale(x, call->scale, n, result);
        x = result;
    }
    const void *written = x;
    if (p->narrow) {
        written = stream ? w->narrowed : out;
        p->narrow(x, n, 1.0f, stream ? w->narrowed : out);
    }
    if (stream)
        p->kernels->stream(out, written, bytes);
    else if (written != (const void *)out)
        memcpy(out, written, bytes);
}

/* The numbers of a piece, decoded to space unless they can be used in place. */
static const float *piece_numbers(const plan *p, const char *codes, const char *scales, size_t n,
                                  float *space)
{
    if (p->usable) return (const float *)(const void *)codes;
    embla_row_read(p->call->source->row, codes, scales, n, EMBLA_WRITE_PLAIN, space);
    return space;
}

/* Adds a row to the sum of its token. A sum's block is one piece. */
static void add_row(walk *w, const char *codes, const char *scales)
{
    const plan *p = w->p;
    if (w->head == 0) {
        embla_row_read(p->call->source->row, codes, scales, w->n, EMBLA_WRITE_PLAIN,
                       w->sums[w->now]);
    } else {
        const float *x = piece_numbers(p, codes, scales, w->n, w->numbers);
        p->kernels->scale_add(x, 1.0f, w->sums[w->now], w->n, w->sums[!w->now]);
        w->now = !w->now;
    }
    if (w->head + 1 == p->call->rows_per_token)
        write_numbers(w, w->sums[w->now], w->at, w->n,
                      w->token + embla_dtype_bytes(p->out_info, w->at));
}

/* Decodes n numbers of a row, from number `at` of the part on, to out. */
static inline void decode_piece(walk *w, const char *codes, const char *scales, size_t at, size_t n,
                                char *out)
{
    const plan *p = w->p;
    if (p->in_place)
        embla_row_read(p->call->source->row, codes, scales, n, p->mode, (float *)(void *)out);
    else
        write_numbers(w, piece_numbers(p, codes, scales, n, w->numbers), at, n, out);
}

/* Lines of later rows that are prefetched while one row is decoded. */
typedef struct {
    embla_fetch fetch;
    size_t lines; /* for each row; 0 means none */
} ahead;

/* Decodes the block of a long row piece by piece. With each piece, as many lines of later rows are
 * prefetched. a may be NULL. */
static void decode_long_row(walk *w, ahead *a, const char *codes, const char *scales, char *out)
{
    const plan *p = w->p;
    const embla_row *row = p->call->source->row;
    size_t lines = a ? a->lines : 0, asked = 0;
    for (size_t first = 0; first < w->n; first += p->piece) {
        size_t n = w->n - first < p->piece ? w->n - first : p->piece;
        size_t bytes = embla_dtype_bytes(row->info, first);
        size_t end = (bytes + embla_dtype_bytes(row->info, n)) / EMBLA_LINE;
        if (end > lines || first + n == w->n) end = lines;
        for (; asked < end; asked++) embla_fetch_line(&a->fetch);
        decode_piece(w, codes + bytes, row->scaled ? scales + first / row->group : NULL,
                     w->at + first, n, out + embla_dtype_bytes(p->out_info, first));
    }
}

/* Decodes the block of the next row, from codes and scales, to its destination. */
static inline void decode_row(walk *w, ahead *a, const char *codes, const char *scales)
{
    const plan *p = w->p;
    const embla_lookup_call *call = p->call;
    char *out = w->token + embla_dtype_bytes(p->out_info, w->at);
    if (call->sum)
        add_row(w, codes, scales);
    else if (w->n <= p->piece)
        decode_piece(w, codes, scales, w->at, w->n, out + w->head * call->row_stride);
    else
        decode_long_row(w, a, codes, scales, out + w->head * call->row_stride);
    w->index++;
    if (++w->head < call->rows_per_token) return;
    w->head = 0;
    w->token += call->token_stride;
}

/* ---- tiles ---- */

/* Decodes rows in place. */
static void direct_tile(walk *w, const embla_row_part *block, const int64_t *rows, size_t n,
                        size_t known)
{
    const embla_lookup_call *call = w->p->call;
    const char *codes = call->codes + (block->code_at - call->part.code_at);
    const char *scales = call->scales + (block->scale_at - call->part.scale_at);
    bool one = scales_follow(block, codes, scales), whole = w->n <= w->p->piece;
    size_t bytes =
        (one ? block->bytes : block->code_bytes) + embla_fetch_offset(codes, call->stride);
    ahead a = {.fetch = embla_fetch_of(codes, call->stride, bytes),
               .lines = call->prefetch ? (bytes - 1) / EMBLA_LINE + 1 : 0};
    embla_fetch fetch = a.fetch; /* a local copy that can stay in registers */
    for (size_t i = 0; i < n && whole; i++) {
        size_t at = (size_t)rows[i] * call->stride;
        if (a.lines > 0) embla_fetch_at(&fetch, rows, i, known);
        for (size_t k = 0; k < a.lines; k++) embla_fetch_line(&fetch);
        decode_row(w, NULL, codes + at, scales + at);
    }
    for (size_t i = 0; i < n && !whole; i++) {
        size_t at = (size_t)rows[i] * call->stride;
        if (a.lines > 0) embla_fetch_at(&a.fetch, rows, i, known);
        decode_row(w, &a, codes + at, scales + at);
    }
}

/* Reads rows into a small array, then decodes them. */
static embla_status staged_tile(walk *w, const embla_row_part *block, const int64_t *rows, size_t n,
                                size_t known)
{
    char stage[STAGE];
    size_t bytes = block->bytes, most = STAGE / bytes < STAGED ? STAGE / bytes : STAGED;
    for (size_t i = 0; i < n; i += most) {
        size_t some = n - i < most ? n - i : most;
        const embla_read_job job = {.rows = rows + i,
                                    .count = some,
                                    .known = known - i,
                                    .part = block,
                                    .out = stage,
                                    .out_stride = bytes,
                                    .mode = EMBLA_WRITE_PLAIN};
        EMBLA_TRY(embla_source_read(w->p->call->source, &job));
        for (size_t k = 0; k < some; k++)
            decode_row(w, NULL, stage + k * bytes, stage + k * bytes + block->code_bytes);
    }
    return EMBLA_OK;
}

/* Decodes a tile block by block. Only very long rows have more than one block. */
static embla_status decode_tile(const plan *p, const int64_t *rows, size_t start, size_t n,
                                size_t known)
{
    const embla_lookup_call *call = p->call;
    walk w; /* not initialized: written before it is read */
    w.p = p;
    w.now = 0;
    for (w.at = 0; w.at < call->part.n; w.at += p->block) {
        size_t left = call->part.n - w.at;
        embla_row_part block = call->part;
        w.n = left < p->block ? left : p->block;
        if (w.n < call->part.n)
            EMBLA_TRY(embla_row_part_of(call->source->row, call->part.first + w.at, w.n, &block));
        w.index = start;
        w.head = call->rows_per_token == 1 ? 0 : start % call->rows_per_token;
        w.token = call->out + start / call->rows_per_token * call->token_stride;
        if (call->codes)
            direct_tile(&w, &block, rows, n, known);
        else
            EMBLA_TRY(staged_tile(&w, &block, rows, n, known));
    }
    return EMBLA_OK;
}

static void map_tokens(const plan *p, const int32_t *tokens, size_t n, int64_t *rows)
{
    const int64_t *token_rows = p->call->token_rows;
    if (!token_rows)
        p->kernels->widen(tokens, n, rows);
    else
        for (size_t i = 0; i < n; i++) rows[i] = token_rows[tokens[i]];
}

static embla_status run_tile(const plan *p, size_t tile)
{
    const embla_lookup_call *call = p->call;
    size_t start = tile * p->tile, known = call->count - start;
    size_t n = known < p->tile ? known : p->tile;
    int64_t widened[TILE + EMBLA_GROUP];
    const int64_t *rows = widened;
    if (call->tokens) {
        if (known > TILE + EMBLA_GROUP) known = TILE + EMBLA_GROUP;
        map_tokens(p, call->tokens + start, known, widened);
    } else {
        rows = call->rows + start;
    }
    embla_status status =
        call->copy ? copy_tile(p, rows, start, n, known) : decode_tile(p, rows, start, n, known);
    if (p->mode == EMBLA_WRITE_STREAM) p->kernels->fence();
    return status;
}

/* ---- plan ---- */

static embla_write_mode choose_mode(const plan *p)
{
    const embla_lookup_call *c = p->call;
    size_t bytes = c->token_total * (c->sum ? 1 : c->rows_per_token) * c->vector_bytes;
    bool whole_lines =
        ((uintptr_t)c->out | c->token_stride | c->row_stride | c->vector_bytes) % EMBLA_LINE == 0;
    embla_write_mode mode = embla_kernels_write_mode(bytes, whole_lines);
    /* Prefetched lines follow in memory, so they must be the next ones that are written. */
    return mode == EMBLA_WRITE_AHEAD && !p->consecutive ? EMBLA_WRITE_PLAIN : mode;
}

/* The largest block that fits in the arrays of a sum and in the stage. */
static size_t choose_block(const embla_lookup_call *call)
{
    size_t most = call->sum ? NUMBERS : call->part.n;
    if (!call->codes && call->part.bytes > STAGE) { /* no number takes more than 8 bytes */
        size_t fit = STAGE / 9 / EMBLA_PIECE * EMBLA_PIECE;
        if (most > fit) most = fit;
    }
    return most;
}

static size_t choose_piece(const embla_lookup_call *call)
{
    return call->part.n <= NUMBERS && call->part.bytes <= SHORT_ROW ? NUMBERS : EMBLA_PIECE;
}

/* The largest tile of whole units, up to `most` rows, for which all threads get the same number of
 * tiles. */
static size_t choose_tile(size_t count, size_t unit, size_t most, int threads)
{
    if (threads == 1 && count <= most) return count; /* one row: divisions would cost as much */
    size_t units = count / unit, fit = unit < most ? most / unit : 1;
    size_t share = (units - 1) / (size_t)threads + 1, tiles = (share - 1) / fit + 1;
    return ((share - 1) / tiles + 1) * unit;
}

static int choose_threads(const embla_lookup_call *call)
{
    size_t row = call->part.bytes > call->vector_bytes ? call->part.bytes : call->vector_bytes;
    uint64_t bytes;
    size_t moved = SIZE_MAX;
    if (embla_mul_ok(call->count, row, &bytes) && !embla_size_ok(bytes, &moved)) moved = SIZE_MAX;
    return embla_threads_for(call->threads, moved);
}

static bool floats_aligned(const char *data, size_t stride)
{
    return ((uintptr_t)data | stride) % sizeof(float) == 0;
}

static void choose_decoding(plan *p)
{
    const embla_lookup_call *call = p->call;
    const embla_row *row = call->source->row;
    bool plain = call->scale == 1.0f && !call->sum && !call->positions;
    if (call->out_dtype != EMBLA_F32)
        p->narrow = embla_dtype_encoder(call->out_dtype, p->kernels->isa);
    p->in_place =
        plain && !p->narrow && floats_aligned(call->out, call->token_stride | call->row_stride);
    p->usable =
        row->format.dtype == EMBLA_F32 && call->codes && floats_aligned(call->codes, call->stride);
    p->block = choose_block(call);
    p->piece = call->sum ? p->block : choose_piece(call);
}

static embla_status run_tiles(void *job, size_t first, size_t end, size_t slot)
{
    (void)slot;
    for (size_t tile = first; tile < end; tile++) EMBLA_TRY(run_tile(job, tile));
    return EMBLA_OK;
}

embla_status embla_lookup_run(const embla_lookup_call *call)
{
    plan p = {.call = call, .kernels = embla_kernels_get()};
    if (call->count == 0) return EMBLA_OK;
    p.out_info = embla_dtype_find_info(call->out_dtype);
    p.consecutive = call->rows_per_token == 1 || call->sum || call->token_total == 1 ||
                    call->token_stride == call->rows_per_token * call->row_stride;
    p.mode = choose_mode(&p);
    if (!call->copy) choose_decoding(&p);
    int threads = choose_threads(call);
    size_t at_once = call->codes ? 0 : call->source->kind->at_once;
    p.tile = choose_tile(call->count, call->sum ? call->rows_per_token : 1,
                         at_once < TILE ? TILE : at_once, threads);
    if (p.tile >= call->count) return run_tile(&p, 0);
    return embla_share(threads, (call->count - 1) / p.tile + 1, 0, run_tiles, &p);
}
