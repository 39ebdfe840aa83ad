/* SPDX-License-Identifier: Apache-2.0 */
/* A training that several ranks make together: each has the whole model, computes the gradients of
 * its part of every batch, and updates a slice of the weights.
 *
 * A batch is cut into shards, pieces of whole sequences that do not depend on the number of ranks.
 * A rank has a range of shards. It computes the gradients of each shard alone, so that all products
 * have the same shapes for any number of ranks, and adds them to exact sums (cluster/exact.h). A
 * rank gets the sums of its slice, which do not depend on who computed which shard. After the
 * update all ranks get the new weights. So a rank does its share of the update, has its share of
 * the optimizer's state, and as many bytes are sent as if all ranks got the gradients.
 *
 * In fast mode a rank computes its whole part at once, and floats are summed in the order of ranks.
 * Then results depend on the number of ranks.
 */
#include <string.h>

#include "base/checksum.h"
#include "base/hash.h"
#include "base/layout.h"
#include "base/mem.h"
#include "base/options.h"
#include "cluster/comm.h"
#include "cluster/exact.h"
#include "cluster/team_rows.h"
#include "cluster/team_slices.h"
#include "learn/clip.h"
#include "train/train.h"

/* The numbers of share_step; losses of all pieces follow, then levels of exact sums. */
enum { VOTE, STEP, STEP_BELOW, WEIGHTS, WEIGHTS_BELOW, LOSSES };

enum {
    SHARDS = 12,  /* the default: 1, 2, 3, 4, 6 and 12 ranks have equal parts */
    TILE = 65536, /* weights that are compared at each step */
    HELD = 4      /* pieces whose gradients are added to the sums at once */
};

typedef struct {
    const embla_comm *comm;
    size_t bytes;               /* of this block */
    embla_team_options options; /* with defaults filled in */
    size_t batch;               /* sequences */
    size_t pieces;              /* shards, or ranks in fast mode */
    size_t first, end;          /* the pieces of this rank */
    double *losses;             /* of each piece */
    int64_t *shared;            /* numbers of share_step */
    int64_t *counted;           /* targets of each piece */
    embla_team_slices slices;   /* of the weights */
    embla_exact sums;           /* of the gradients; not in fast mode */
    float *held;                /* gradients of HELD - 1 pieces, or fewer */
    size_t held_bytes;
    int64_t compared;        /* the step at which weights were last compared */
    embla_team_rows rows;    /* gradients of n-gram rows */
    embla_team_grams *grams; /* if the n-gram table is divided among the ranks */
} team;

/* ---- pieces ---- */

static size_t first_shard(const team *w, size_t rank)
{
    return rank * w->options.shards / (size_t)w->comm->size;
}

/* The first sequence of a piece. */
static size_t sequence_of(const team *w, size_t piece)
{
    size_t shard = w->options.fast ? first_shard(w, piece) : piece;
    return shard * w->batch / w->options.shards;
}

/* Most sequences that a rank has. */
static size_t largest_part(const team *w)
{
    size_t most = 0;
    for (size_t r = 0; r < (size_t)w->comm->size; r++) {
        size_t from = first_shard(w, r) * w->batch / w->options.shards;
        size_t to = first_shard(w, r + 1) * w->batch / w->options.shards;
        if (to - from > most) most = to - from;
    }
    return most;
}

/* Counts the targets of each piece. Returns those of the batch. */
static int64_t count_targets(team *w, const int32_t *targets, size_t length)
{
    int64_t all = 0;
    for (size_t p = 0; p < w->pieces; p++) {
        size_t from = sequence_of(w, p) * length, to = sequence_of(w, p + 1) * length;
        int64_t n = 0;
        for (size_t i = from; i < to; i++) n += targets[i] != EMBLA_TARGET_IGNORE;
        w->counted[p] = n;
        all += n;
    }
    return all;
}

/* ---- gradients ---- */

_Static_assert((int)EMBLA_EXACT_TILE % (int)EMBLA_SQUARES_LEAF == 0, "a leaf is in one slice");

/* Each piece draws its own dropout masks and negatives. */
static uint64_t seed_of(uint64_t seed, size_t piece)
{
    return embla_mix64(seed + (piece + 1) * EMBLA_GOLDEN);
}

static embla_status run_piece(team *w, embla_train *t, size_t piece, size_t length, int64_t counted,
                              const embla_gpt_options *options)
{
    size_t from = sequence_of(w, piece), sequences = sequence_of(w, piece + 1) - from;
    embla_gpt_options how = *options;
    embla_loss_report report = {0};
    how.seed = seed_of(options->seed, piece);
    how.weight = (double)w->counted[piece] / (double)counted;
    if (w->grams)
        embla_team_grams_give(w->grams, t->gpt, (from - sequence_of(w, w->first)) * length);
    EMBLA_TRY(embla_gpt_backward(t->gpt, t->tokens[t->now] + from * length,
                                 t->targets[t->now] + from * length, sequences, length, &how,
                                 &report));
    w->losses[piece] = report.loss;
    return embla_team_rows_append(&w->rows, t->gpt, piece - w->first);
}

/* Runs up to HELD pieces, each with a block of gradients of its own, and adds these to the sums at
 * once: the sums are much larger than the gradients, so each pass over them costs. */
static embla_status run_exactly(team *w, embla_train *t, const size_t *pieces, size_t count,
                                size_t length, int64_t counted, const embla_gpt_options *options)
{
    char *home = t->gpt->gradients;
    float *blocks[HELD] = {(float *)(void *)home};
    embla_status status = EMBLA_OK;
    for (size_t i = 1; i < count; i++) blocks[i] = w->held + (i - 1) * t->gpt->numbers;
    for (size_t i = 0; i < count && status == EMBLA_OK; i++) {
        t->gpt->gradients = (char *)(void *)blocks[i];
        status = run_piece(w, t, pieces[i], length, counted, options);
    }
    t->gpt->gradients = home;
    if (status != EMBLA_OK && w->held) memset(w->held, 0, w->held_bytes);
    EMBLA_TRY(status);
    return embla_exact_take(&w->sums, blocks, count, options->threads);
}

/* Gets the n-gram vectors of this rank's part of the batch. */
static embla_status fetch_part(team *w, const embla_train *t, embla_status ready, size_t length)
{
    size_t from = sequence_of(w, w->first), sequences = sequence_of(w, w->end) - from;
    if (!w->grams) return ready;
    embla_status got = embla_team_grams_fetch(w->grams, t->tokens[t->now] + from * length,
                                              ready == EMBLA_OK ? sequences : 0, length);
    return ready != EMBLA_OK ? ready : got;
}

/* The gradients and losses of the pieces of this rank. A piece without targets has none. */
static embla_status run_pieces(team *w, embla_train *t, embla_status ready, size_t length,
                               const embla_gpt_options *options, int64_t *counted)
{
    EMBLA_TRY(fetch_part(w, t, ready, length));
    *counted = count_targets(w, t->targets[t->now], length);
    memset(w->losses, 0, w->pieces * sizeof *w->losses);
    embla_team_rows_clear(&w->rows);
    if (!w->options.fast) embla_exact_clear(&w->sums);
    size_t pieces[HELD], held = 0;
    for (size_t p = w->first; p < w->end; p++) {
        if (w->counted[p] > 0) pieces[held++] = p;
        if (held == 0 || (held < HELD && p + 1 < w->end)) continue;
        EMBLA_TRY(w->options.fast ? run_piece(w, t, pieces[0], length, *counted, options)
                                  : run_exactly(w, t, pieces, held, length, *counted, options));
        held = 0;
    }
    return EMBLA_OK;
}

static embla_status sum_gradients(team *w, const embla_gpt *gpt, int threads)
{
    float *gradients = (float *)(void *)gpt->gradients;
    if (w->options.fast) return embla_team_slices_sum(&w->slices, gradients, gpt->numbers);
    return embla_exact_sum(&w->sums, w->comm, w->shared + LOSSES + w->pieces, threads, gradients);
}

/* A checksum of a tile of the weights, another one at each step. All of them if the last step was
 * not the one before. */
static int64_t weights_sum(team *w, const embla_train *t)
{
    const embla_gpt *gpt = t->gpt;
    size_t tiles = (gpt->numbers + TILE - 1) / TILE, from = 0, count = gpt->numbers;
    embla_checksum_state state;
    if (w->compared + 1 == t->step) {
        from = (size_t)t->step % tiles * TILE;
        count = gpt->numbers - from < TILE ? gpt->numbers - from : TILE;
    }
    w->compared = t->step;
    embla_checksum_begin(&state);
    embla_checksum_add(&state, gpt->weights + from * gpt->real, count * gpt->real);
    return (int64_t)(embla_checksum_end(&state).low >> 1);
}

/* One exchange of all small numbers of a step: whether a rank has failed, whether all are at the
 * same step with the same weights, the losses, and the levels of exact sums. Weights are compared
 * and not gradients: those are summed, so they are equal even if weights are not. The bits of a
 * loss are never below those that the other ranks send for it. */
static embla_status share_step(team *w, const embla_train *t, embla_status status)
{
    const embla_comm *c = w->comm;
    int64_t *s = w->shared, *losses = s + LOSSES, weights = weights_sum(w, t);
    size_t levels = w->options.fast ? 0 : embla_exact_levels(&w->sums);
    s[VOTE] = embla_comm_vote(c, status);
    s[STEP] = t->step;
    s[STEP_BELOW] = -t->step;
    s[WEIGHTS] = weights;
    s[WEIGHTS_BELOW] = -weights;
    for (size_t p = 0; p < w->pieces; p++) {
        losses[p] = INT64_MIN;
        if (p >= w->first && p < w->end) memcpy(&losses[p], &w->losses[p], sizeof *losses);
    }
    if (levels > 0) memcpy(losses + w->pieces, w->sums.levels, levels * sizeof *s);
    EMBLA_TRY(c->allreduce(c->owner, s, LOSSES + w->pieces + levels, EMBLA_COMM_TYPE_INT64,
                           EMBLA_COMM_OP_MAX));
    EMBLA_TRY(embla_comm_verdict(c, status, s[VOTE], "it cannot compute its gradients"));
    if (s[STEP] != -s[STEP_BELOW])
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the ranks are at different steps, from %" PRId64 " to %" PRId64
                          "; load the same checkpoint on all",
                          -s[STEP_BELOW], s[STEP]);
    if (s[WEIGHTS] != -s[WEIGHTS_BELOW])
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the ranks have different weights before step %" PRId64
                          "; go on from the last checkpoint, with the same program on all hosts",
                          t->step);
    memcpy(w->losses, losses, w->pieces * sizeof *losses);
    return EMBLA_OK;
}

static embla_status team_gradients(void *owner, embla_train *t, embla_status ready, size_t length,
                                   const embla_gpt_options *options, embla_loss_report *loss,
                                   embla_train_rows *rows)
{
    team *w = owner;
    double sum = 0.0;
    int64_t counted = 0;
    embla_status status = run_pieces(w, t, ready, length, options, &counted);
    EMBLA_TRY(share_step(w, t, status));
    EMBLA_TRY(sum_gradients(w, t->gpt, options->threads));
    EMBLA_TRY(embla_team_rows_sum(&w->rows, w->grams, options->threads, rows));
    for (size_t p = 0; p < w->pieces; p++) sum += w->losses[p] * (double)w->counted[p];
    *loss =
        (embla_loss_report){.loss = counted > 0 ? sum / (double)counted : 0.0, .counted = counted};
    return EMBLA_OK;
}

/* ---- the other functions of a team ---- */

static embla_status gather(void *owner, void *values, size_t bytes, size_t slice, bool everyone)
{
    return embla_team_slices_gather(&((team *)owner)->slices, values, bytes, slice, everyone);
}

static embla_status join_values(void *owner, double *values, size_t count)
{
    const embla_comm *c = ((team *)owner)->comm;
    if (count == 0) return EMBLA_OK;
    return c->allreduce(c->owner, values, count, EMBLA_COMM_TYPE_DOUBLE, EMBLA_COMM_OP_SUM);
}

static embla_status team_agree(void *owner, embla_status status, const char *what, bool saving)
{
    const embla_comm *c = ((team *)owner)->comm;
    if (saving) { /* a failure of this rank comes first */
        embla_status waited = c->barrier(c->owner, EMBLA_COMM_SAVING);
        if (status == EMBLA_OK) EMBLA_TRY(waited);
    }
    return embla_comm_agree(c, status, what);
}

/* ---- n-gram rows that are divided among the ranks ---- */

static embla_status fetch_batch(void *owner, embla_gpt *gpt, const int32_t *tokens, size_t batch,
                                size_t length)
{
    const team *w = owner;
    embla_team_grams_give(w->grams, gpt, 0);
    return embla_team_grams_fetch(w->grams, tokens, batch, length);
}

static embla_status total_values(void *owner, int64_t *values, size_t count)
{
    const embla_comm *c = ((team *)owner)->comm;
    return c->allreduce(c->owner, values, count, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_SUM);
}

static embla_status publish_rows(void *owner)
{
    return embla_team_grams_publish(((team *)owner)->grams);
}

static embla_status save_rows(void *owner, const embla_train *t, const char *path)
{
    return embla_team_grams_save(((team *)owner)->grams, t->ngram, path, t->step);
}

static embla_status load_rows(void *owner, const embla_train *t, const char *path, int64_t step)
{
    return embla_team_grams_load(((team *)owner)->grams, t->ngram, path, step);
}

static embla_status save_model(void *owner, embla_gpt *gpt, const char *folder,
                               const char *const *words)
{
    return embla_team_grams_save_model(((team *)owner)->grams, gpt, folder, words);
}

/* ---- joining ---- */

static void team_free(void *owner)
{
    team *w = owner;
    embla_team_grams_free(w->grams);
    embla_team_rows_free(&w->rows);
    embla_exact_free(&w->sums);
    embla_team_slices_free(&w->slices);
    embla_mem_free(w->held, w->held_bytes);
    embla_mem_free(w, w->bytes);
}

static embla_status check_join(const embla_train *t, const embla_comm *comm,
                               const embla_team_options *o, size_t *shards)
{
    if (t->team.owner)
        return embla_fail(EMBLA_ERR_ARGUMENT, "the training has joined %d ranks already",
                          t->team.size);
    if (t->gpt->precision != EMBLA_GPT_F32)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "a training of %d ranks needs a model in f32, not f64", comm->size);
    if (o->sharded && !t->ngram)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the model has no n-gram table that %d ranks could divide", comm->size);
    size_t batch = t->options.batch;
    *shards = o->shards > 0 ? o->shards : batch < SHARDS ? batch : SHARDS;
    if (*shards > batch)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%zu shards, but a batch has only %zu sequences; use a larger batch",
                          *shards, batch);
    if (*shards > EMBLA_EXACT_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu shards; at most %d are possible", *shards,
                          (int)EMBLA_EXACT_MOST);
    if ((size_t)comm->size > *shards)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%d ranks, but a batch of %zu sequences has only %zu %s; use fewer ranks "
                          "or more shards",
                          comm->size, batch, *shards, *shards == 1 ? "shard" : "shards");
    return EMBLA_OK;
}

/* Allocates the struct and the lists of pieces. */
static embla_status new_team(const embla_train *t, const embla_comm *comm, size_t shards,
                             const embla_team_options *o, team **out)
{
    bool fast = o->fast;
    embla_layout layout = {0};
    void *memory = NULL;
    size_t pieces = fast ? (size_t)comm->size : shards, rank = (size_t)comm->rank;
    (void)embla_layout_add(&layout, 1, sizeof(team));
    size_t losses = embla_layout_add(&layout, pieces, sizeof(double));
    size_t shared = embla_layout_add(
        &layout, LOSSES + pieces + t->gpt->numbers / EMBLA_EXACT_BLOCK + 2, sizeof(int64_t));
    size_t counted = embla_layout_add(&layout, pieces, sizeof(int64_t));
    EMBLA_TRY(embla_mem_new(layout.bytes, "a team of ranks", &memory));
    char *block = memory;
    team *w = memory;
    *w = (team){.comm = comm,
                .bytes = layout.bytes,
                .batch = t->options.batch,
                .options = {.shards = shards, .fast = fast, .sharded = o->sharded},
                .pieces = pieces,
                .losses = (double *)(void *)(block + losses),
                .shared = (int64_t *)(void *)(block + shared),
                .counted = (int64_t *)(void *)(block + counted),
                .compared = -2};
    w->first = fast ? rank : first_shard(w, rank);
    w->end = fast ? rank + 1 : first_shard(w, rank + 1);
    *out = w;
    return EMBLA_OK;
}

/* Exact sums, and gradients of pieces that wait to be added. */
static embla_status new_sums(team *w, const embla_gpt *gpt)
{
    size_t own = w->end - w->first, held = (own < HELD ? own : HELD) - 1;
    void *memory = NULL;
    EMBLA_TRY(embla_exact_new(gpt->numbers, (size_t)w->comm->size, &w->sums));
    if (held == 0) return EMBLA_OK;
    /* as many bytes as the gradients, a few times: no overflow */
    w->held_bytes = held * gpt->numbers * sizeof(float);
    EMBLA_TRY(embla_mem_new(w->held_bytes, "the gradients of shards", &memory));
    w->held = memory;
    return EMBLA_OK;
}

/* Everything that a team needs. *states has room for the settings of all ranks. */
static embla_status make_team(const embla_train *t, const embla_comm *comm,
                              const embla_team_options *o, team **out, void **states)
{
    size_t shards = 0;
    EMBLA_TRY(check_join(t, comm, o, &shards));
    EMBLA_TRY(new_team(t, comm, shards, o, out));
    EMBLA_TRY(embla_team_slices_new(comm, t->gpt->numbers, &(*out)->slices));
    if (!o->fast) EMBLA_TRY(new_sums(*out, t->gpt));
    EMBLA_TRY(embla_team_rows_new(comm, t, (*out)->end - (*out)->first, largest_part(*out),
                                  o->sharded, &(*out)->rows));
    return embla_mem_new((size_t)comm->size * sizeof(embla_train_state),
                         "the settings of all ranks", states);
}

/* Compares the model's shape, the options and the corpus with those of rank 0. */
static embla_status compare_states(const embla_train *t, const embla_comm *comm, void *states)
{
    const embla_train_state *all = states;
    embla_train_state ours;
    embla_train_state_of(t, &ours);
    EMBLA_TRY(comm->allgather(comm->owner, &ours, states, sizeof ours));
    return embla_comm_agree(comm, embla_train_state_compare(&ours, &all[0], "rank 0", false),
                            "its settings are not those of rank 0");
}

static embla_train_ranks functions_of(team *w)
{
    return (embla_train_ranks){.owner = w,
                               .rank = w->comm->rank,
                               .size = w->comm->size,
                               .shards = w->options.shards,
                               .slice = w->slices.slice,
                               .fast = w->options.fast,
                               .sharded = w->options.sharded,
                               .fetch = fetch_batch,
                               .total = total_values,
                               .publish = publish_rows,
                               .save_rows = save_rows,
                               .load_rows = load_rows,
                               .save_model = save_model,
                               .gradients = team_gradients,
                               .gather = gather,
                               .join = join_values,
                               .agree = team_agree,
                               .leave = team_free};
}

/* From now on this rank updates its slice and its n-gram rows alone. */
static void take_slice(embla_train *t, const team *w, embla_optim *optim)
{
    size_t slice = w->slices.slice, numbers = t->gpt->numbers, from = (size_t)w->comm->rank * slice;
    t->from = from < numbers ? from : numbers;
    t->end = numbers - t->from < slice ? numbers : t->from + slice;
    if (!w->grams) return;
    embla_team_grams_use(w->grams, t->gpt);
    embla_optim_free(t->ngram);
    t->ngram = optim;
}

embla_status embla_train_join(embla_train *train, const embla_comm *comm,
                              const embla_team_options *options)
{
    const embla_team_options defaults = {0};
    team *w = NULL;
    void *states = NULL;
    embla_optim *optim = NULL;
    EMBLA_TRY(embla_options_check(options));
    if (!train || !comm)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_train_join: %s is NULL",
                          train ? "comm" : "train");
    if (!options) options = &defaults;
    embla_status status = make_team(train, comm, options, &w, &states);
    status = embla_comm_agree(comm, status, "it cannot join the training");
    /* one rank, nothing to sum or to divide */
    bool whole = w && w->options.shards == 1 && !w->options.fast && !w->options.sharded;
    if (status == EMBLA_OK && w && !whole) {
        train->team = functions_of(w);
        status = compare_states(train, comm, states);
        if (status == EMBLA_OK && w->options.sharded)
            status = embla_team_grams_new(comm, train, &w->grams, &optim);
        if (status != EMBLA_OK) train->team = (embla_train_ranks){0};
        if (status == EMBLA_OK) take_slice(train, w, optim);
    }
    embla_mem_free(states, (size_t)comm->size * sizeof(embla_train_state));
    if (w && (status != EMBLA_OK || whole)) team_free(w);
    return status;
}

const embla_team_options *embla_train_team(const embla_train *train)
{
    return train && train->team.owner ? &((const team *)train->team.owner)->options : NULL;
}
