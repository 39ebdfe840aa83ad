/* SPDX-License-Identifier: Apache-2.0 */
/* Trainings that several ranks make together, for the tests of teams: models of a few kinds, a job
 * that trains one of them on ranks that are threads (thread_comm.h), and what it finds.
 */
#ifndef EMBLA_TESTS_TEAM_JOB_H
#define EMBLA_TESTS_TEAM_JOB_H

#include <math.h>
#include <stdio.h>

#include "check.h"
#include "gpt_shapes.h"
#include "name_corpus.h"
#include "scratch.h"
#include "thread_comm.h"

#include "base/checksum.h"
#include "base/mem.h"
#include "cluster/train_team.h"
#include "model/gpt_ngram.h"

enum { STEPS = 12, BATCH = 7, SHARDS = 5 };

/* ---- models ---- */

typedef struct {
    const char *name;
    embla_gpt_shape shape;
    embla_train_options options;
    bool documents;
} variant;

#define RATE                                                                                       \
    {                                                                                              \
        .rate = 0.003, .final = 0.0003, .steps = 20, .warm_up = 2, .kind = EMBLA_SCHEDULE_COSINE   \
    }

static const variant variants[] = {
    {"microgpt",
     {.dim = 16, .layers = 1, .heads = 4, .hidden = 64, .positions = 16, MICROGPT_KIND},
     {.batch = BATCH, .schedule = RATE, .beta1 = 0.85, .beta2 = 0.99},
     true},
    {"gpt2, dropout",
     {.dim = 32, .layers = 2, .heads = 4, .positions = 24, .biases = true, .dropout = 0.1},
     {.batch = BATCH, .schedule = RATE, .decay = 0.1, .clip = 0.5, .seed = 9},
     false},
    {"llama, negatives",
     {.dim = 32, .layers = 1, .heads = 4, .kv_heads = 2, .hidden = 48, .positions = 24, LLAMA_KIND},
     {.batch = BATCH, .length = 23, .schedule = RATE, .negatives = 8},
     false},
    {"n-grams, bf16",
     {.dim = 32,
      .layers = 2,
      .heads = 4,
      .positions = 24,
      .ngram = {.rows = 500, .heads = 2, .layer = 1}},
     {.batch = BATCH, .schedule = RATE, .decay = 0.1, .clip = 0.5, .compute = EMBLA_BF16},
     false},
};

static inline embla_corpus *corpus_of(const variant *v)
{
    const embla_corpus_options options = {.documents = v->documents, .validation = 0.2, .seed = 3};
    static char text[300 * NAME_MOST];
    return open_text(&options, text, write_names(text, 300, 16, 11));
}

/* ---- a job ---- */

typedef struct {
    embla_checksum state;     /* weights, n-gram table */
    embla_checksum optimizer; /* rank 0 has all of it */
    double losses[STEPS], norms[STEPS], validation;
} outcome;

/* What ranks do, and what they find. */
typedef struct {
    const variant *v;
    const embla_corpus *corpus;
    embla_team_options team;
    bool alone; /* do not join */
    int threads;
    const char *load, *save;            /* NULL means neither */
    const char *model;                  /* a folder for the model; NULL means none */
    bool send;                          /* ranks share no memory */
    int64_t until;                      /* steps */
    int odd;                            /* a rank that does something else; -1 means none */
    void (*change)(embla_train *train); /* what the odd rank does after joining */
    embla_status (*before)(embla_train_options *options);
    outcome found[THREAD_RANKS_MOST];
} job;

static inline void add_table(embla_checksum_state *state, const embla_train *t)
{
    embla_table *table = embla_gpt_ngram_table(t->gpt);
    embla_optim_state squares;
    if (!table || embla_gpt_ngram_where(t->gpt)->away) return;
    if (embla_optim_state_at(t->ngram, 0, &squares) != EMBLA_OK) return;
    embla_checksum_add(state, embla_table_data(table),
                       (size_t)embla_table_rows(table) * embla_table_dim(table) * sizeof(float));
    embla_checksum_add(state, squares.values, (size_t)squares.rows * squares.dim * sizeof(float));
}

static inline embla_checksum sum_of(const embla_train *t)
{
    embla_checksum_state state;
    size_t bytes = t->gpt->numbers * sizeof(float);
    embla_checksum_begin(&state);
    embla_checksum_add(&state, t->gpt->weights, bytes);
    add_table(&state, t);
    return embla_checksum_end(&state);
}

static inline embla_checksum optimizer_of(const embla_train *t)
{
    embla_checksum_state state;
    size_t bytes = t->gpt->numbers * sizeof(float);
    embla_checksum_begin(&state);
    embla_checksum_add(&state, t->mean, bytes);
    embla_checksum_add(&state, t->squares, bytes);
    return embla_checksum_end(&state);
}

/* Gives rank 0 the state of the optimizer for all weights. */
static inline embla_status gather_optimizer(const embla_train *t)
{
    if (!t->shared) return EMBLA_OK;
    EMBLA_TRY(embla_team_gather(t->team, t, t->mean, false));
    return embla_team_gather(t->team, t, t->squares, false);
}

static inline embla_status run_training(const embla_comm *comm, job *j, embla_train *t)
{
    outcome *found = &j->found[comm->rank];
    if (!j->alone) EMBLA_TRY(embla_train_join(t, comm, &j->team));
    if (j->load) EMBLA_TRY(embla_train_load(t, j->load));
    if (j->odd == comm->rank && j->change) j->change(t);
    while (embla_train_steps(t) < j->until) {
        int64_t step = embla_train_steps(t);
        embla_train_report report;
        EMBLA_TRY(embla_train_step(t, &report));
        if (report.step != step || report.skipped || report.tokens < 1)
            return embla_fail(EMBLA_ERR_ARGUMENT, "a wrong report");
        found->losses[step] = report.loss;
        found->norms[step] = report.norm;
    }
    EMBLA_TRY(embla_train_validate(t, 0, &found->validation));
    EMBLA_TRY(gather_optimizer(t));
    found->state = sum_of(t);
    if (comm->rank == 0) found->optimizer = optimizer_of(t);
    if (j->model) EMBLA_TRY(embla_train_save_model(t, j->model, NULL));
    return j->save ? embla_train_save(t, j->save, "a note") : EMBLA_OK;
}

static inline embla_status run_rank(const embla_comm *comm, void *context)
{
    job *j = context;
    embla_comm ours = *comm; /* outlives the training */
    embla_gpt *gpt = NULL;
    embla_train *train = NULL;
    embla_gpt_shape shape = j->v->shape;
    embla_train_options options = j->v->options;
    shape.vocab = embla_corpus_vocab(j->corpus);
    options.threads = j->threads;
    if (j->odd == comm->rank && j->before) EMBLA_TRY(j->before(&options));
    embla_status status = embla_gpt_new(&shape, 1, 0.08, &gpt);
    if (status == EMBLA_OK) status = embla_train_new(gpt, j->corpus, &options, &train);
    if (j->send) ours.window_new = NULL;
    if (status == EMBLA_OK) status = run_training(&ours, j, train);
    char sentence[512];
    (void)snprintf(sentence, sizeof sentence, "%s", embla_error());
    embla_train_free(train);
    embla_gpt_free(gpt);
    return status == EMBLA_OK ? EMBLA_OK : embla_fail(status, "%s", sentence);
}

static inline job job_of(const variant *v, const embla_corpus *corpus)
{
    return (job){.v = v,
                 .corpus = corpus,
                 .team = {.micro_batches = SHARDS},
                 .threads = 1,
                 .until = STEPS,
                 .odd = -1};
}

/* Weights, losses, norms, validation; the rows are those of the saved model. */
static inline void same_but_rows(const outcome *a, const outcome *b)
{
    assert_memory_equal(a->losses, b->losses, sizeof a->losses);
    assert_memory_equal(a->norms, b->norms, sizeof a->norms);
    assert_memory_equal(&a->validation, &b->validation, sizeof a->validation);
    assert_memory_equal(&a->optimizer, &b->optimizer, sizeof a->optimizer);
}

static inline void same(const outcome *a, const outcome *b)
{
    same_but_rows(a, b);
    assert_memory_equal(&a->state, &b->state, sizeof a->state);
}

/* Runs with `size` ranks; all must find the same. */
static inline void run_job(job *j, int size)
{
    thread_comm_run(size, run_rank, j);
    for (int r = 1; r < size; r++) {
        j->found[r].optimizer = j->found[0].optimizer;
        same(&j->found[r], &j->found[0]);
    }
}

/* ---- files and failures ---- */

/* A folder in the scratch folder, and its file of weights. */
typedef struct {
    char folder[SCRATCH_PATH], weights[SCRATCH_PATH + 32];
} model_place;

static inline model_place place_of(scratch *s, const char *name)
{
    model_place p;
    (void)snprintf(p.folder, sizeof p.folder, "%s", scratch_path(s, name));
    (void)snprintf(p.weights, sizeof p.weights, "%s/model.safetensors", p.folder);
    return p;
}

static inline void same_file(const char *a, const char *b)
{
    size_t count = 0;
    unsigned char *bytes = scratch_read(a, &count);
    assert_true(bytes && count > 0);
    assert_true(scratch_holds(b, bytes, count));
    free(bytes);
}

/* Removes a folder in the scratch folder. */
static inline void remove_folder(const scratch *s, const char *name)
{
    scratch inside = {.folder = ""};
    (void)snprintf(inside.folder, sizeof inside.folder, "%.200s/%.40s", s->folder, name);
    scratch_free(&inside);
}

/* Every rank fails; the sentence of rank `who` has this text. */
static inline void refused(job *j, int size, int who, embla_status status, const char *text)
{
    thread_result results[THREAD_RANKS_MOST];
    thread_comm_try(size, run_rank, j, results);
    for (int r = 0; r < size; r++) assert_status(results[r].status, status);
    if (!strstr(results[who].sentence, text))
        fail_msg("'%s' is not in '%s'", text, results[who].sentence);
}

#endif
