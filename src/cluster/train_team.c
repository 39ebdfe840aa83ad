/* SPDX-License-Identifier: Apache-2.0 */
/* A training that several ranks make together: each has the whole model, computes the gradients of
 * its part of every batch, and updates a slice of the weights. Tables may be divided instead.
 *
 * A batch is cut into micro-batches, pieces of whole sequences that do not depend on the number of
 * ranks. A rank has a range of micro-batches. It computes the gradients of each micro-batch alone,
 * so that all products have the same shapes for any number of ranks, and adds them to exact sums
 * (cluster/exact.h). A rank gets the sums of its slice, which do not depend on who computed which
 * micro-batch. After the update all ranks get the new weights. So a rank does its share of the
 * update, has its share of the optimizer's state, and as many bytes are sent as if all ranks got
 * the gradients.
 *
 * In fast mode a rank computes its whole part at once, and floats are summed in the order of ranks.
 * Then results depend on the number of ranks.
 *
 * Token rows may be divided among the ranks (cluster/team_tokens.h). Then the loss is computed by
 * all ranks together, between the forward and the backward passes of all pieces. The activations of
 * a piece are not kept until then, but computed a second time: memory stays that of one piece.
 */
#include "cluster/train_team.h"

#include <string.h>

#include "base/checksum.h"
#include "base/hash.h"
#include "cluster/comm.h"
#include "learn/clip.h"
#include "model/gpt_pass.h"

/* The numbers of share_step; losses of all pieces follow, then levels of exact sums. */
enum { VOTE, STEP, STEP_BELOW, WEIGHTS, WEIGHTS_BELOW, LOSSES = EMBLA_TEAM_NUMBERS };

enum { TILE = 65536 }; /* weights that are compared at each step */

typedef embla_team team;

/* ---- pieces ---- */

/* The first sequence of a piece. */
static size_t sequence_of(const team *w, size_t piece)
{
    return embla_team_sequence(w, w->options.fast ? embla_team_first_piece(w, piece) : piece);
}

/* This rank's micro-batches of a batch whose sequences have `length` tokens. */
static embla_team_cut cut_part(team *w, size_t length)
{
    size_t rank = (size_t)w->comm->rank, end = embla_team_first_piece(w, rank + 1);
    embla_team_cut cut = {.lengths = w->lengths};
    for (size_t i = embla_team_first_piece(w, rank); i < end; i++) {
        size_t sequences = embla_team_sequence(w, i + 1) - embla_team_sequence(w, i);
        w->lengths[cut.count++] = sequences * length;
        cut.tokens += sequences * length;
    }
    return cut;
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

/* The sequences of a piece, and its options. */
typedef struct {
    embla_gpt_given given;
    embla_gpt_options how;
    size_t first; /* token of this rank's part */
} piece_of;

/* Gives the model the n-gram vectors of the piece. */
static piece_of begin_piece(const team *w, const embla_train *t, size_t piece, size_t length,
                            const embla_gpt_options *options)
{
    size_t from = sequence_of(w, piece);
    piece_of x = {.given.batch = {.tokens = t->tokens[t->now] + from * length,
                                  .targets = t->targets[t->now] + from * length,
                                  .batch = sequence_of(w, piece + 1) - from,
                                  .length = length},
                  .how = *options,
                  .first = (from - sequence_of(w, w->first)) * length};
    x.how.seed = seed_of(options->seed, piece);
    if (w->grams) embla_team_grams_give(w->grams, t->gpt, x.first);
    if (w->tokens) x.given.rows = embla_team_tokens_rows(w->tokens, x.first);
    return x;
}

/* The hidden vectors of a piece. One without targets needs none. */
static embla_status hide_piece(team *w, embla_train *t, size_t piece, size_t length, bool learns,
                               const embla_gpt_options *options)
{
    const piece_of x = begin_piece(w, t, piece, length, options);
    float *hidden = embla_team_tokens_hidden(w->tokens, x.first);
    size_t row = t->gpt->shape.dim * sizeof *hidden;
    if (w->counted[piece] > 0)
        return embla_gpt_pass_forward(t->gpt, &x.given, &x.how, learns, hidden);
    memset(hidden, 0, x.given.batch.batch * length * row);
    memset(embla_team_tokens_rows(w->tokens, x.first), 0, x.given.batch.batch * length * row);
    return EMBLA_OK;
}

/* With divided token rows: the loss of the batch of all ranks. If it learns, hidden vectors become
 * their gradients. */
static embla_status find_loss(team *w, embla_train *t, embla_status ready, size_t length,
                              bool learns, const embla_gpt_options *options)
{
    const embla_team_cut cut = cut_part(w, length);
    const int32_t *targets = t->targets[t->now] + sequence_of(w, w->first) * length;
    for (size_t p = w->first; p < w->end && ready == EMBLA_OK; p++)
        ready = hide_piece(w, t, p, length, learns, options);
    return embla_team_tokens_loss(w->tokens, ready, targets, &cut, learns, &w->report);
}

/* Adds the gradients of a piece to a block like the weights; NULL means the model's own. */
static embla_status run_piece(team *w, embla_train *t, size_t piece, size_t length, int64_t counted,
                              const embla_gpt_options *options, float *gradients)
{
    piece_of x = begin_piece(w, t, piece, length, options);
    embla_loss_report report = {0};
    x.given.gradients = gradients;
    if (w->tokens) {
        EMBLA_TRY(embla_gpt_pass_backward(t->gpt, &x.given, &x.how, w->end - w->first > 1,
                                          embla_team_tokens_hidden(w->tokens, x.first),
                                          embla_team_tokens_rows(w->tokens, x.first)));
        return embla_team_rows_append(&w->rows, t->gpt, piece - w->first);
    }
    x.how.weight = (double)w->counted[piece] / (double)counted;
    EMBLA_TRY(embla_gpt_pass_learn(t->gpt, &x.given, &x.how, &report));
    w->losses[piece] = report.loss;
    return embla_team_rows_append(&w->rows, t->gpt, piece - w->first);
}

/* Runs up to EMBLA_TEAM_HELD pieces, each with a block of gradients of its own, and adds these to
 * the sums at once: the sums are much larger than the gradients, so each pass over them costs. */
static embla_status run_exactly(team *w, embla_train *t, const size_t *pieces, size_t count,
                                size_t length, int64_t counted, const embla_gpt_options *options)
{
    float *blocks[EMBLA_TEAM_HELD] = {(float *)(void *)t->gpt->gradients};
    embla_status status = EMBLA_OK;
    for (size_t i = 1; i < count; i++) blocks[i] = w->held + (i - 1) * t->gpt->numbers;
    for (size_t i = 0; i < count && status == EMBLA_OK; i++)
        status = run_piece(w, t, pieces[i], length, counted, options, blocks[i]);
    if (status != EMBLA_OK && w->held) memset(w->held, 0, w->held_bytes);
    EMBLA_TRY(status);
    return embla_exact_take(&w->sums, blocks, count, options->threads);
}

/* Gets the rows of this rank's part of the batch that other ranks may have. Without the batch it
 * takes part with none. */
static embla_status fetch_part(team *w, const embla_train *t, embla_status ready, size_t length)
{
    size_t from = sequence_of(w, w->first), sequences = sequence_of(w, w->end) - from;
    const int32_t *tokens = t->tokens[t->now] + from * length;
    embla_status got = EMBLA_OK;
    if (w->grams)
        got = embla_team_grams_fetch(w->grams, tokens, ready == EMBLA_OK ? sequences : 0, length);
    if (ready == EMBLA_OK) ready = got;
    if (w->tokens)
        got =
            embla_team_tokens_fetch(w->tokens, tokens, ready == EMBLA_OK ? sequences * length : 0);
    return ready != EMBLA_OK ? ready : got;
}

/* The gradients and losses of the pieces of this rank. A piece without targets has none. */
static embla_status run_pieces(team *w, embla_train *t, embla_status ready, size_t length,
                               const embla_gpt_options *options, int64_t *counted)
{
    embla_status fetched = fetch_part(w, t, ready, length);
    *counted = count_targets(w, t->targets[t->now], length);
    if (w->tokens) fetched = find_loss(w, t, fetched, length, true, options);
    EMBLA_TRY(fetched);
    memset(w->losses, 0, w->pieces * sizeof *w->losses);
    embla_team_rows_clear(&w->rows);
    if (!w->options.fast) embla_exact_clear(&w->sums);
    size_t pieces[EMBLA_TEAM_HELD], held = 0;
    for (size_t p = w->first; p < w->end; p++) {
        if (w->counted[p] > 0) pieces[held++] = p;
        if (held == 0 || (held < EMBLA_TEAM_HELD && p + 1 < w->end)) continue;
        EMBLA_TRY(w->options.fast ? run_piece(w, t, pieces[0], length, *counted, options, NULL)
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
    embla_checksum_add(&state, gpt->weights + from * sizeof(float), count * sizeof(float));
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

embla_status embla_team_gradients(embla_team *w, embla_train *t, embla_status ready, size_t length,
                                  const embla_gpt_options *options, embla_loss_report *loss,
                                  embla_train_rows *rows)
{
    double sum = 0.0;
    int64_t counted = 0;
    embla_status status = run_pieces(w, t, ready, length, options, &counted);
    EMBLA_TRY(share_step(w, t, status));
    EMBLA_TRY(sum_gradients(w, t->gpt, options->threads));
    EMBLA_TRY(embla_team_rows_sum(&w->rows, w->grams, options->threads, rows));
    if (w->tokens) {
        const embla_team_cut cut = cut_part(w, length);
        *loss = w->report;
        return embla_team_tokens_sum(w->tokens, &cut);
    }
    for (size_t p = 0; p < w->pieces; p++) sum += w->losses[p] * (double)w->counted[p];
    *loss =
        (embla_loss_report){.loss = counted > 0 ? sum / (double)counted : 0.0, .counted = counted};
    return EMBLA_OK;
}

embla_status embla_team_loss(embla_team *w, embla_train *t, embla_status ready, size_t length,
                             const embla_gpt_options *options, embla_loss_report *out)
{
    embla_status status = fetch_part(w, t, ready, length);
    (void)count_targets(w, t->targets[t->now], length);
    EMBLA_TRY(find_loss(w, t, status, length, false, options));
    *out = w->report;
    return EMBLA_OK;
}
