/* SPDX-License-Identifier: Apache-2.0 */
/* Words that several ranks learn together: each has all rows, trains some of the lanes of a step,
 * and merges the changes of some of the rows.
 *
 * A step has a fixed number of lanes (wordvec/lane.h), so its result does not depend on who trains
 * which lane. A rank sends its copies of a row to the rank that merges this row. That one adds the
 * changes in the order of lanes and sends the new row to all. So each step exchanges the rows that
 * it changed, and no others: frequent words are exchanged often, rare ones rarely.
 *
 * A word with n-grams is not one row but many, which it shares with other words. Copies of these
 * words go to all ranks, and every rank merges them all.
 *
 * If all ranks are on one host, nothing is sent. The rows are in memory that the ranks share, so a
 * merged row is there for all. So are the lists of copies, which others read where they are. A rank
 * changes its list for the next step when all have merged.
 */
#include <string.h>

#include "base/layout.h"
#include "base/mem.h"
#include "base/threads.h"
#include "cluster/comm.h"
#include "wordvec/wordvec.h"

enum {
    LANES = EMBLA_LANES,
    COMPARED = 64 /* rows that ranks compare at each step */
};

/* What a rank tells another one before it sends rows. */
typedef struct {
    int64_t vote; /* whether it has failed */
    int64_t step;
    uint64_t rows;              /* a checksum of some of the rows before this step */
    int64_t counts[LANES][2];   /* copies of input and of output rows for that rank */
    int64_t tokens_at, rows_at; /* where these begin in its lists */
    int64_t tokens[LANES];
    double losses[LANES], pairs[LANES];
} letter;

/* The lists of a rank that others read: bytes from the beginning of the block that has them. */
typedef struct {
    size_t tokens, rows;     /* copies for each rank */
    size_t merged, new_rows; /* tokens of embla_merge_list, and their rows */
    size_t bytes;            /* of all */
} places;

typedef struct {
    const embla_comm *comm;
    embla_wordvec *words;
    size_t bytes; /* of this block */
    embla_merge_part part;
    letter *sent, *received; /* to and from each rank */
    int64_t *lengths;        /* new rows of each rank */
    size_t *counts;          /* of each rank: rows to send, to receive; tokens likewise */
    places at;
    char *lists;              /* of this rank, in the window if there is one */
    embla_comm_window window; /* of the copies of all ranks; without it they are sent */
    embla_comm_window shared; /* with a window: of the rows */
    embla_table *tables[2];   /* until they replace those of the words: output and input rows */
    /* without a window: */
    char *own;                          /* the memory of lists */
    char *others;                       /* received lists */
    size_t others_bytes;                /* of their memory */
    int32_t *other_tokens, *all_merged; /* in it */
    float *other_rows, *all_new_rows;
} team;

static int32_t *tokens_in(const team *t, char *lists)
{
    return (int32_t *)(void *)(lists + t->at.tokens);
}

static float *rows_in(const team *t, char *lists)
{
    return (float *)(void *)(lists + t->at.rows);
}

static int32_t *merged_in(const team *t, char *lists)
{
    return (int32_t *)(void *)(lists + t->at.merged);
}

static float *new_rows_in(const team *t, char *lists)
{
    return (float *)(void *)(lists + t->at.new_rows);
}

/* The lanes of rank r are those from here to first_lane(r + 1). */
static size_t first_lane(const embla_comm *comm, size_t r)
{
    return r * LANES / (size_t)comm->size;
}

/* ---- letters ---- */

/* Rows that follow each other for a lane: its inputs, with n-grams also as they were, its outputs.
 */
static size_t rows_of(const team *t, const letter *l, size_t lane)
{
    size_t times = t->words->shop.grams ? 2 : 1;
    return (size_t)l->counts[lane][0] * times + (size_t)l->counts[lane][1];
}

static size_t tokens_of(const letter *l, size_t lane)
{
    return (size_t)l->counts[lane][0] + (size_t)l->counts[lane][1];
}

/* A checksum of other rows at each step: ranks that differ must not go on. */
static uint64_t sum_rows(const team *t)
{
    const embla_wordvec *w = t->words;
    size_t rows = (size_t)w->lexicon.count, row = w->shop.stride * sizeof(float);
    size_t from = (size_t)w->step * COMPARED % rows;
    size_t n = rows - from < COMPARED ? rows - from : COMPARED;
    embla_checksum_state state;
    embla_checksum_begin(&state);
    embla_checksum_add(&state, w->shop.input + from * w->shop.stride, n * row);
    embla_checksum_add(&state, w->shop.output + from * w->shop.stride, n * row);
    return embla_checksum_end(&state).low;
}

/* Counts the copies of a lane that rank r merges. */
static void count_copies(const team *t, const embla_lane *lane, size_t r, int64_t counts[2])
{
    const embla_merge_part theirs = {r, t->part.count};
    for (int k = 0; k < 2; k++) {
        const embla_copies *c = k == 1 ? &lane->output : &lane->input;
        counts[k] = 0;
        for (size_t i = 0; i < c->count; i++)
            counts[k] += embla_merge_owns(&t->words->shop, theirs, k == 1, c->tokens[i]);
    }
}

static void write_letters(const team *t, embla_status status, size_t first, size_t end)
{
    const embla_wordvec *w = t->words;
    letter l = {.vote = embla_comm_vote(t->comm, status), .step = w->step, .rows = sum_rows(t)};
    for (size_t i = first; i < end; i++) {
        l.tokens[i] = w->lanes[i].tokens;
        l.losses[i] = w->lanes[i].loss;
        l.pairs[i] = w->lanes[i].pairs;
    }
    for (size_t r = 0; r < t->part.count; r++) {
        t->sent[r] = l;
        for (size_t i = first; i < end && status == EMBLA_OK && r != t->part.index; i++) {
            count_copies(t, &w->lanes[i], r, t->sent[r].counts[i]);
            l.tokens_at += (int64_t)tokens_of(&t->sent[r], i);
            l.rows_at += (int64_t)rows_of(t, &t->sent[r], i);
        }
    }
}

/* Compares what all ranks say, and notes the sums of their lanes. */
static embla_status read_letters(const team *t, embla_status status)
{
    const letter *first = &t->received[0];
    int64_t worst = 0, lowest = t->words->step, highest = lowest;
    bool same = true;
    for (size_t r = 0; r < t->part.count; r++) {
        const letter *l = &t->received[r];
        if (l->vote > worst) worst = l->vote;
        if (l->step < lowest) lowest = l->step;
        if (l->step > highest) highest = l->step;
        same = same && l->rows == first->rows;
        for (size_t i = first_lane(t->comm, r); i < first_lane(t->comm, r + 1); i++) {
            embla_lane *lane = &t->words->lanes[i];
            lane->tokens = l->tokens[i];
            lane->loss = l->losses[i];
            lane->pairs = l->pairs[i];
        }
    }
    EMBLA_TRY(
        embla_comm_verdict(t->comm, status, worst, "it cannot train on its part of the text"));
    if (lowest != highest)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the ranks are at different steps, from %" PRId64 " to %" PRId64
                          "; load the same file on all",
                          lowest, highest);
    if (same) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "the ranks have different rows before step %" PRId64
                      "; go on from the last saved state, with the same program on all hosts",
                      t->words->step);
}

/* ---- copies to those who merge them ---- */

/* Writes the copies of a lane that rank r merges, where they belong in what is sent to it. */
static void pack_lane(const team *t, const embla_lane *lane, size_t r, const letter *l,
                      int32_t *tokens, float *rows)
{
    const embla_merge_part theirs = {r, t->part.count};
    const embla_shop *shop = &t->words->shop;
    size_t stride = shop->stride, lane_number = (size_t)(lane - t->words->lanes);
    float *starts = rows + (size_t)l->counts[lane_number][0] * stride;
    for (int k = 0; k < 2; k++) {
        const embla_copies *c = k == 1 ? &lane->output : &lane->input;
        for (size_t i = 0; i < c->count; i++) {
            if (!embla_merge_owns(shop, theirs, k == 1, c->tokens[i])) continue;
            *tokens++ = c->tokens[i];
            memcpy(rows, c->rows + i * stride, stride * sizeof *rows);
            rows += stride;
            if (!c->starts) continue;
            memcpy(starts, c->starts + i * stride, stride * sizeof *rows);
            starts += stride;
        }
        if (k == 0 && shop->grams) rows = starts;
    }
}

/* The places of each lane for each rank are known, so threads write them in any order. */
static void pack_copies(const team *t, size_t first, size_t end)
{
    const embla_wordvec *w = t->words;
    size_t stride = w->shop.stride, ranks = t->part.count;
    int threads = embla_threads_for(w->options.threads, t->at.bytes);
    (void)threads; /* without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic, 1)
    for (size_t i = first; i < end; i++)
        for (size_t r = 0; r < ranks; r++) {
            const letter *l = &t->sent[r];
            int32_t *tokens = tokens_in(t, t->lists) + l->tokens_at;
            float *rows = rows_in(t, t->lists) + (size_t)l->rows_at * stride;
            for (size_t lane = first; lane < i; lane++) {
                tokens += tokens_of(l, lane);
                rows += rows_of(t, l, lane) * stride;
            }
            if (r != t->part.index) pack_lane(t, &w->lanes[i], r, l, tokens, rows);
        }
}

static embla_status exchange_copies(const team *t)
{
    const embla_comm *c = t->comm;
    size_t ranks = t->part.count, *counts = t->counts;
    if (t->window.handle) return EMBLA_OK;
    memset(counts, 0, 4 * ranks * sizeof *counts);
    for (size_t r = 0; r < ranks; r++)
        for (size_t lane = 0; lane < LANES; lane++) {
            counts[r] += rows_of(t, &t->sent[r], lane);
            counts[ranks + r] += rows_of(t, &t->received[r], lane);
            counts[2 * ranks + r] += tokens_of(&t->sent[r], lane);
            counts[3 * ranks + r] += tokens_of(&t->received[r], lane);
        }
    const embla_exchange tokens = {.send = tokens_in(t, t->lists),
                                   .send_counts = counts + 2 * ranks,
                                   .receive = t->other_tokens,
                                   .receive_counts = counts + 3 * ranks,
                                   .unit = sizeof(int32_t)};
    const embla_exchange rows = {.send = rows_in(t, t->lists),
                                 .send_counts = counts,
                                 .receive = t->other_rows,
                                 .receive_counts = counts + ranks,
                                 .unit = t->words->shop.stride * sizeof(float)};
    EMBLA_TRY(c->alltoallv(c->owner, &tokens));
    return c->alltoallv(c->owner, &rows);
}

/* The copies that another rank sent, as those of a lane. The index is that of our own lane of the
 * same number, which is empty. */
static embla_copies received_copies(const embla_copies *own, size_t count, int32_t *tokens,
                                    float *rows, float *starts)
{
    for (size_t i = 0; i < count; i++) own->copy_of[tokens[i]] = (int32_t)(i + 1);
    return (embla_copies){
        .rows = rows, .starts = starts, .tokens = tokens, .copy_of = own->copy_of, .count = count};
}

/* All lanes of a step: our own, and the received parts of the others. */
static void view_lanes(const team *t, embla_lane view[LANES])
{
    size_t stride = t->words->shop.stride;
    int32_t *tokens = t->other_tokens;
    float *rows = t->other_rows;
    for (size_t i = 0; i < LANES; i++) view[i] = t->words->lanes[i];
    for (size_t r = 0; r < t->part.count; r++) {
        const letter *l = &t->received[r];
        if (t->window.handle) {
            tokens = tokens_in(t, t->window.parts[r]) + l->tokens_at;
            rows = rows_in(t, t->window.parts[r]) + (size_t)l->rows_at * stride;
        }
        for (size_t i = first_lane(t->comm, r); i < first_lane(t->comm, r + 1); i++) {
            size_t inputs = (size_t)l->counts[i][0], outputs = (size_t)l->counts[i][1];
            if (r == t->part.index) continue;
            float *starts = t->words->shop.grams ? rows + inputs * stride : NULL;
            view[i].input = received_copies(&view[i].input, inputs, tokens, rows, starts);
            tokens += inputs;
            rows += (starts ? 2 : 1) * inputs * stride;
            view[i].output = received_copies(&view[i].output, outputs, tokens, rows, NULL);
            tokens += outputs;
            rows += outputs * stride;
        }
    }
}

/* ---- new rows to all ---- */

static float *row_of(const team *t, int32_t token)
{
    const embla_shop *shop = &t->words->shop;
    return token >= 0 ? shop->input + (size_t)token * shop->stride
                      : shop->output + (size_t)(-1 - token) * shop->stride;
}

/* Gives the merged rows of this rank to all ranks, and empties the lanes. */
static embla_status share_rows(const team *t, embla_lane view[LANES], size_t count)
{
    const embla_comm *c = t->comm;
    size_t stride = t->words->shop.stride, row = stride * sizeof(float), most = 0;
    if (t->window.handle) {
        embla_merge_clear(view, count); /* then other ranks may change their copies */
        return c->barrier(c->owner, 0);
    }
    int32_t *merged = merged_in(t, t->lists);
    float *new_rows = new_rows_in(t, t->lists);
    int64_t mine = (int64_t)embla_merge_list(&t->words->shop, view, count, t->part, merged);
    for (int64_t i = 0; i < mine; i++)
        memcpy(new_rows + (size_t)i * stride, row_of(t, merged[i]), row);
    embla_merge_clear(view, count);
    EMBLA_TRY(c->allgather(c->owner, &mine, t->lengths, sizeof mine));
    for (size_t r = 0; r < t->part.count; r++)
        if ((size_t)t->lengths[r] > most) most = (size_t)t->lengths[r];
    if (most == 0) return EMBLA_OK;
    /* lists are sent with the length of the longest */
    EMBLA_TRY(c->allgather(c->owner, merged, t->all_merged, most * sizeof *merged));
    EMBLA_TRY(c->allgather(c->owner, new_rows, t->all_new_rows, most * row));
    for (size_t r = 0; r < t->part.count; r++) {
        const int32_t *tokens = t->all_merged + r * most;
        const float *rows = t->all_new_rows + r * most * stride;
        for (int64_t i = 0; i < t->lengths[r] && r != t->part.index; i++)
            memcpy(row_of(t, tokens[i]), rows + (size_t)i * stride, row);
    }
    return EMBLA_OK;
}

/* ---- a step ---- */

/* CBOW: how many copies of how many rows all ranks have. Every rank has all inputs of words with
 * n-grams. */
static embla_status sum_overlap(const team *t, embla_merge_overlap *overlap)
{
    const embla_comm *c = t->comm;
    int64_t sums[4] = {overlap->copies[1], overlap->rows[1], overlap->copies[0], overlap->rows[0]};
    if (t->words->options.kind != EMBLA_WORDVEC_CBOW) return EMBLA_OK;
    EMBLA_TRY(c->allreduce(c->owner, sums, t->words->shop.grams ? 2 : 4, EMBLA_COMM_TYPE_INT64,
                           EMBLA_COMM_OP_SUM));
    *overlap = (embla_merge_overlap){{sums[2], sums[0]}, {sums[3], sums[1]}};
    return EMBLA_OK;
}

static embla_status merge_all(void *owner, embla_wordvec *w, embla_status status, size_t count)
{
    const team *t = owner;
    const embla_comm *c = t->comm;
    size_t first = w->team.first < count ? w->team.first : count;
    size_t end = w->team.end < count ? w->team.end : count;
    embla_merge_overlap overlap;
    embla_lane view[LANES];
    write_letters(t, status, first, end);
    if (status == EMBLA_OK) pack_copies(t, first, end);
    EMBLA_TRY(c->alltoall(c->owner, t->sent, t->received, sizeof(letter)));
    EMBLA_TRY(read_letters(t, status));
    EMBLA_TRY(exchange_copies(t));
    view_lanes(t, view);
    embla_merge_count(&w->shop, view, count, t->part, &overlap);
    EMBLA_TRY(sum_overlap(t, &overlap));
    embla_merge_rows(&w->shop, view, count, t->part, &overlap, &w->merge);
    for (size_t i = first; i < end; i++) w->lanes[i].input.count = w->lanes[i].output.count = 0;
    return share_rows(t, view, count);
}

/* ---- joining ---- */

static void leave(void *owner)
{
    team *t = owner;
    for (int k = 0; k < 2; k++) embla_table_free(t->tables[k]);
    if (t->shared.handle) t->comm->window_free(t->comm->owner, &t->shared);
    if (t->window.handle) t->comm->window_free(t->comm->owner, &t->window);
    embla_mem_free(t->own, t->at.bytes);
    embla_mem_free(t->others, t->others_bytes);
    embla_mem_free(t, t->bytes);
}

static embla_status check_join(const embla_wordvec *w, const embla_comm *comm)
{
    if (w->team.owner)
        return embla_fail(EMBLA_ERR_ARGUMENT, "these words are learned by %zu ranks already",
                          ((const team *)w->team.owner)->part.count);
    if (w->options.hogwild && comm->size > 1)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "hogwild works in one process only, and there are %d ranks; leave it out",
                          comm->size);
    if (comm->size > LANES)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%d ranks, but a step of words has %d parts; use at most %d ranks",
                          comm->size, (int)LANES, (int)LANES);
    return EMBLA_OK;
}

/* The most tokens that a rank merges in a step. */
static size_t merged_most(const embla_wordvec *w, size_t ranks)
{
    size_t owned = 2 * ((size_t)w->lexicon.count / ranks + 1);
    size_t copies = LANES * (w->lanes[0].input.room + w->lanes[0].output.room);
    return owned < copies ? owned : copies;
}

/* Lists have room for the largest blocks, as lanes do. They are as long on all ranks. */
static embla_status new_team(embla_wordvec *w, const embla_comm *comm, team **out)
{
    embla_layout layout = {0}, lists = {0};
    void *memory = NULL;
    size_t ranks = (size_t)comm->size, own = (LANES + ranks - 1) / ranks;
    size_t inputs = w->lanes[0].input.room, outputs = w->lanes[0].output.room;
    size_t row = w->shop.stride * sizeof(float), merged = merged_most(w, ranks);
    size_t copies = own * (inputs * (w->shop.grams ? ranks : 1) + outputs);
    EMBLA_TRY(check_join(w, comm));
    (void)embla_layout_add(&layout, 1, sizeof(team));
    size_t letters = embla_layout_add(&layout, 2 * ranks, sizeof(letter));
    size_t counts = embla_layout_add(&layout, 4 * ranks, sizeof(size_t));
    size_t lengths = embla_layout_add(&layout, ranks, sizeof(int64_t));
    places at = {.tokens = embla_layout_add(&lists, copies, sizeof(int32_t))};
    at.rows = embla_layout_add(&lists, copies * (w->shop.grams ? 2 : 1), row);
    at.merged = embla_layout_add(&lists, merged, sizeof(int32_t));
    at.new_rows = embla_layout_add(&lists, merged, row);
    at.bytes = lists.bytes;
    if (lists.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "the rows of %d ranks do not fit in memory",
                          comm->size);
    EMBLA_TRY(embla_mem_new(layout.bytes, "ranks that learn words", &memory));
    char *block = memory;
    team *t = memory;
    *t = (team){.comm = comm,
                .words = w,
                .bytes = layout.bytes,
                .part = {(size_t)comm->rank, ranks},
                .sent = (letter *)(void *)(block + letters),
                .counts = (size_t *)(void *)(block + counts),
                .lengths = (int64_t *)(void *)(block + lengths),
                .at = at};
    t->received = t->sent + ranks;
    *out = t;
    return EMBLA_OK;
}

/* Bytes of one table. */
static size_t table_bytes(const embla_wordvec *w)
{
    return (size_t)w->lexicon.count * w->shop.stride * sizeof(float);
}

/* Output rows, and input rows unless they have n-grams: every rank merges those for itself. */
static size_t table_count(const embla_wordvec *w)
{
    return w->shop.grams ? 1 : 2;
}

/* Whether all parts are on this host, one after the other. */
static bool is_one_block(const team *t, const embla_comm_window *window, size_t bytes)
{
    for (int r = 0; r < t->comm->size; r++)
        if (!window->parts[r] ||
            (char *)window->parts[r] != (char *)window->parts[0] + (size_t)r * bytes)
            return false;
    return true;
}

/* Gets memory that all ranks share, if they are on one host. All ranks do, or none. Collective. */
static embla_status try_window(team *t)
{
    enum { LINE = 64 };
    const embla_comm *c = t->comm;
    size_t ranks = t->part.count, all = table_count(t->words) * table_bytes(t->words);
    size_t share = (all / ranks + LINE) / LINE * LINE;
    size_t copies = (t->at.merged + LINE - 1) / LINE * LINE; /* the rest is only for sending */
    if (!c->window_new) return EMBLA_OK;
    embla_status first = c->window_new(c->owner, copies, &t->window);
    embla_status second = c->window_new(c->owner, share, &t->shared);
    int64_t apart = first != EMBLA_OK || second != EMBLA_OK ||
                    !is_one_block(t, &t->window, copies) || !is_one_block(t, &t->shared, share);
    EMBLA_TRY(c->allreduce(c->owner, &apart, 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX));
    if (apart && t->shared.handle) c->window_free(c->owner, &t->shared);
    if (apart && t->window.handle) c->window_free(c->owner, &t->window);
    if (t->window.handle) t->lists = t->window.parts[c->rank];
    return EMBLA_OK;
}

/* Makes tables in the shared memory, with the rows of rank 0. */
static embla_status new_tables(team *t)
{
    const embla_wordvec *w = t->words;
    const embla_table_options options = {.row_stride = w->shop.stride * sizeof(float)};
    const float *const rows[2] = {w->shop.output, w->shop.input};
    size_t bytes = table_bytes(w);
    for (size_t k = 0; k < table_count(w); k++) {
        char *to = (char *)t->shared.parts[0] + k * bytes;
        if (t->part.index == 0) memcpy(to, rows[k], bytes);
        EMBLA_TRY(embla_table_view(EMBLA_F32, w->lexicon.count, w->options.dim, to, bytes, &options,
                                   &t->tables[k]));
    }
    return EMBLA_OK;
}

/* From now on the rows of the words are those that all ranks share. */
static void take_tables(team *t)
{
    embla_wordvec *w = t->words;
    embla_table **const own[2] = {&w->output, &w->input};
    for (size_t k = 0; k < 2 && t->tables[k]; k++) {
        embla_table_free(*own[k]);
        *own[k] = t->tables[k];
        t->tables[k] = NULL;
        float *rows = (float *)(void *)((char *)t->shared.parts[0] + k * table_bytes(w));
        if (k == 0)
            w->shop.output = rows;
        else
            w->shop.input = rows;
    }
}

/* Without a window: memory for lists that are sent and received. What is not written takes no room.
 */
static embla_status new_lists(team *t)
{
    const embla_wordvec *w = t->words;
    size_t ranks = t->part.count, merged = merged_most(w, ranks);
    size_t row = w->shop.stride * sizeof(float);
    size_t copies = LANES * (w->lanes[0].input.room + w->lanes[0].output.room);
    embla_layout layout = {0};
    void *memory = NULL;
    if (t->window.handle) return new_tables(t);
    size_t tokens = embla_layout_add(&layout, copies, sizeof(int32_t));
    size_t rows = embla_layout_add(&layout, copies * (w->shop.grams ? 2 : 1), row);
    size_t all_merged = embla_layout_add(&layout, merged * ranks, sizeof(int32_t));
    size_t all_new_rows = embla_layout_add(&layout, merged * ranks, row);
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "the rows of %zu ranks do not fit in memory", ranks);
    EMBLA_TRY(embla_mem_new(t->at.bytes, "the words of a rank", &memory));
    t->lists = t->own = memory;
    EMBLA_TRY(embla_mem_new(layout.bytes, "the words of all ranks", &memory));
    t->others = memory;
    t->others_bytes = layout.bytes;
    t->other_tokens = (int32_t *)(void *)(t->others + tokens);
    t->other_rows = (float *)(void *)(t->others + rows);
    t->all_merged = (int32_t *)(void *)(t->others + all_merged);
    t->all_new_rows = (float *)(void *)(t->others + all_new_rows);
    return EMBLA_OK;
}

/* Compares text, options and step with those of the other ranks. */
static embla_status compare_words(const embla_comm *c, embla_checksum ours)
{
    int64_t sums[2] = {(int64_t)(ours.low >> 1), -(int64_t)(ours.low >> 1)};
    EMBLA_TRY(c->allreduce(c->owner, sums, 2, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX));
    if (sums[0] == -sums[1]) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "the %d ranks have different texts, options or steps; give all the same",
                      c->size);
}

/* Everything that a team needs; each part follows when all ranks have the one before. */
static embla_status make_team(embla_wordvec *w, const embla_comm *comm, team **out)
{
    static const char *const what = "it cannot learn words with the others";
    embla_checksum sum = {0};
    embla_status status = new_team(w, comm, out);
    if (status == EMBLA_OK) status = embla_wordvec_sum(w, &sum);
    EMBLA_TRY(embla_comm_agree(comm, status, what));
    EMBLA_TRY(compare_words(comm, sum));
    EMBLA_TRY(try_window(*out));
    return embla_comm_agree(comm, new_lists(*out), what);
}

embla_status embla_wordvec_join(embla_wordvec *words, const embla_comm *comm)
{
    team *t = NULL;
    if (!words || !comm)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_wordvec_join: %s is NULL",
                          words ? "comm" : "the handle");
    embla_status status = make_team(words, comm, &t);
    if (status != EMBLA_OK || comm->size == 1) {
        if (t) leave(t);
        return status;
    }
    take_tables(t);
    words->team = (embla_wordvec_ranks){.owner = t,
                                        .first = first_lane(comm, (size_t)comm->rank),
                                        .end = first_lane(comm, (size_t)comm->rank + 1),
                                        .merge = merge_all,
                                        .leave = leave};
    return EMBLA_OK;
}
