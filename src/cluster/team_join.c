/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks join: each checks what it has, allocates what the steps need, and compares its settings
 * with those of rank 0. A training changes only after all ranks have everything.
 */
#include "base/layout.h"
#include "base/mem.h"
#include "base/options.h"
#include "cluster/comm.h"
#include "cluster/train_team.h"
#include "engine/engine.h"
#include "model/gpt_trunk.h"

enum { PIECES = 12 }; /* the default: 1, 2, 3, 4, 6 and 12 ranks have equal parts */

typedef embla_team team;

/* Most sequences that a rank has. */
static size_t largest_part(const team *w)
{
    size_t most = 0;
    for (size_t r = 0; r < (size_t)w->comm->size; r++) {
        size_t from = embla_team_sequence(w, embla_team_first_piece(w, r));
        size_t to = embla_team_sequence(w, embla_team_first_piece(w, r + 1));
        if (to - from > most) most = to - from;
    }
    return most;
}

void embla_team_free(void *owner)
{
    team *w = owner;
    embla_team_tokens_free(w->tokens);
    embla_team_grams_free(w->grams);
    embla_team_rows_free(&w->rows);
    embla_exact_free(&w->sums);
    embla_team_slices_free(&w->slices);
    embla_mem_free(w->held, w->held_bytes);
    embla_mem_free(w, w->bytes);
}

/* What a training with divided token rows cannot do. */
static embla_status check_tokens(const embla_train *t)
{
    if (t->options.negatives > 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "token rows that are divided need the loss against all %" PRId64
                          " tokens, not against %zu drawn ones",
                          t->gpt->shape.vocab, t->options.negatives);
    if (t->step > 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "token rows are divided before the first step, but the training has made "
                          "%" PRId64 "; join first, then load its checkpoint",
                          t->step);
    if (!embla_engine_has_products())
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "token rows that are divided need an engine for the products of %" PRId64
                          " rows; install OpenBLAS or oneDNN",
                          t->gpt->shape.vocab);
    return EMBLA_OK;
}

static embla_status check_join(const embla_train *t, const embla_comm *comm,
                               const embla_team_options *o, size_t *pieces)
{
    if (t->shared)
        return embla_fail(EMBLA_ERR_ARGUMENT, "the training has joined %d ranks already",
                          ((const team *)t->team)->comm->size);
    if (o->shard_ngrams && !t->ngram)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the model has no n-gram table that %d ranks could divide", comm->size);
    if (o->shard_tokens) EMBLA_TRY(check_tokens(t));
    size_t batch = t->options.batch;
    *pieces = o->micro_batches > 0 ? o->micro_batches : batch < PIECES ? batch : PIECES;
    if (*pieces > batch)
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "%zu micro-batches, but a batch has only %zu sequences; use a larger batch", *pieces,
            batch);
    if (*pieces > EMBLA_EXACT_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu micro-batches; at most %d are possible", *pieces,
                          (int)EMBLA_EXACT_MOST);
    if ((size_t)comm->size > *pieces)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%d ranks, but a batch of %zu sequences has only %zu %s; use fewer ranks "
                          "or more micro-batches",
                          comm->size, batch, *pieces,
                          *pieces == 1 ? "micro-batch" : "micro-batches");
    return EMBLA_OK;
}

/* Allocates the struct and the lists of pieces. */
static embla_status new_team(const embla_train *t, const embla_comm *comm, size_t micro_batches,
                             size_t numbers, const embla_team_options *o, team **out)
{
    bool fast = o->fast;
    embla_layout layout = {0};
    void *memory = NULL;
    size_t pieces = fast ? (size_t)comm->size : micro_batches, rank = (size_t)comm->rank;
    (void)embla_layout_add(&layout, 1, sizeof(team));
    size_t losses = embla_layout_add(&layout, pieces, sizeof(double));
    size_t shared = embla_layout_add(
        &layout, EMBLA_TEAM_NUMBERS + pieces + numbers / EMBLA_EXACT_BLOCK + 2, sizeof(int64_t));
    size_t lengths = embla_layout_add(&layout, micro_batches, sizeof(size_t));
    size_t counted = embla_layout_add(&layout, pieces, sizeof(int64_t));
    EMBLA_TRY(embla_mem_new(layout.bytes, "a team of ranks", &memory));
    char *block = memory;
    team *w = memory;
    *w = (team){.comm = comm,
                .bytes = layout.bytes,
                .batch = t->options.batch,
                .options = {.micro_batches = micro_batches,
                            .fast = fast,
                            .shard_ngrams = o->shard_ngrams,
                            .shard_tokens = o->shard_tokens},
                .pieces = pieces,
                .losses = (double *)(void *)(block + losses),
                .shared = (int64_t *)(void *)(block + shared),
                .counted = (int64_t *)(void *)(block + counted),
                .lengths = (size_t *)(void *)(block + lengths),
                .compared = -2};
    w->first = fast ? rank : embla_team_first_piece(w, rank);
    w->end = fast ? rank + 1 : embla_team_first_piece(w, rank + 1);
    *out = w;
    return EMBLA_OK;
}

/* Exact sums, and gradients of pieces that wait to be added. */
static embla_status new_sums(team *w, size_t numbers)
{
    size_t own = w->end - w->first, held = (own < EMBLA_TEAM_HELD ? own : EMBLA_TEAM_HELD) - 1;
    void *memory = NULL;
    EMBLA_TRY(embla_exact_new(numbers, (size_t)w->comm->size, &w->sums));
    if (held == 0) return EMBLA_OK;
    /* as many bytes as the gradients, a few times: no overflow */
    w->held_bytes = held * numbers * sizeof(float);
    EMBLA_TRY(embla_mem_new(w->held_bytes, "the gradients of micro-batches", &memory));
    w->held = memory;
    return EMBLA_OK;
}

/* Everything that a team needs. *states has room for the settings of all ranks. */
static embla_status make_team(const embla_train *t, const embla_comm *comm,
                              const embla_team_options *o, team **out, void **states)
{
    size_t pieces = 0;
    EMBLA_TRY(check_join(t, comm, o, &pieces));
    size_t numbers = o->shard_tokens ? embla_gpt_trunk_numbers(t->gpt) : t->gpt->numbers;
    EMBLA_TRY(new_team(t, comm, pieces, numbers, o, out));
    EMBLA_TRY(embla_team_slices_new(comm, numbers, &(*out)->slices));
    if (!o->fast) EMBLA_TRY(new_sums(*out, numbers));
    EMBLA_TRY(embla_team_rows_new(comm, t, (*out)->end - (*out)->first, largest_part(*out),
                                  o->shard_ngrams, &(*out)->rows));
    return embla_mem_new((size_t)comm->size * sizeof(embla_train_state),
                         "the settings of all ranks", states);
}

/* Compares the model's shape, the options and the corpus with those of rank 0. */
static embla_status compare_states(const embla_train *t, const team *w, void *states)
{
    const embla_comm *comm = w->comm;
    const embla_train_state *all = states;
    embla_train_state ours;
    embla_train_state_of(t, &ours);
    ours.split = embla_team_split(w);
    EMBLA_TRY(comm->allgather(comm->owner, &ours, states, sizeof ours));
    return embla_comm_agree(comm, embla_train_state_compare(&ours, &all[0], "rank 0", false),
                            "its settings are not those of rank 0");
}

/* Divides tables. *optim is for the n-gram rows of this rank. */
static embla_status divide_tables(embla_train *t, team *w, embla_optim **optim)
{
    if (w->options.shard_ngrams) EMBLA_TRY(embla_team_grams_new(w->comm, t, &w->grams, optim));
    if (!w->options.shard_tokens) return EMBLA_OK;
    return embla_team_tokens_new(w->comm, t, largest_part(w), w->options.fast, &w->tokens);
}

/* From now on the team makes the training, and this rank updates its slice and its rows alone. */
static void take_over(embla_train *t, team *w, embla_optim *optim)
{
    static const embla_train_shared calls = {.step = embla_team_step,
                                             .validate = embla_team_validate,
                                             .save = embla_team_save,
                                             .checkpoint = embla_team_checkpoint,
                                             .save_model = embla_team_save_model,
                                             .load = embla_team_load,
                                             .leave = embla_team_free};
    if (w->tokens) embla_team_tokens_use(w->tokens, t);
    size_t slice = w->slices.slice, numbers = t->gpt->numbers, from = (size_t)w->comm->rank * slice;
    w->slice_from = from < numbers ? from : numbers;
    w->slice_end = numbers - w->slice_from < slice ? numbers : w->slice_from + slice;
    t->shared = &calls;
    t->team = w;
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
    EMBLA_NEED(train);
    EMBLA_NEED(comm);
    if (!options) options = &defaults;
    embla_status status = make_team(train, comm, options, &w, &states);
    status = embla_comm_agree(comm, status, "it cannot join the training");
    /* one rank, nothing to sum or to divide */
    bool whole = w && w->options.micro_batches == 1 && !w->options.fast &&
                 !w->options.shard_ngrams && !w->options.shard_tokens;
    if (status == EMBLA_OK && w && !whole) {
        status = compare_states(train, w, states);
        if (status == EMBLA_OK) status = divide_tables(train, w, &optim);
        if (status == EMBLA_OK)
            take_over(train, w, optim);
        else
            embla_optim_free(optim);
    }
    embla_mem_free(states, (size_t)comm->size * sizeof(embla_train_state));
    if (w && (status != EMBLA_OK || whole)) embla_team_free(w);
    return status;
}

embla_status embla_train_describe_team(const embla_train *train, embla_team_options *out)
{
    EMBLA_NEED(train);
    EMBLA_NEED(out);
    if (!train->shared)
        return embla_fail(EMBLA_ERR_NOT_FOUND, "one process makes this training alone");
    *out = ((const team *)train->team)->options;
    return EMBLA_OK;
}
