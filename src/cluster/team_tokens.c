/* SPDX-License-Identifier: Apache-2.0 */
/* A tied model has one table, whose gradient is that of the head plus that of the rows that were
 * looked up. An untied one has two. AdamW updates every row at every step, so a rank has a gradient
 * for each of its rows.
 */
#include "cluster/team_tokens.h"

#include <string.h>

#include "base/kernels.h"
#include "base/layout.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "cluster/team_table.h"
#include "learn/clip.h"
#include "learn/wide_sum.h"
#include "model/gpt_trunk.h"

/* Tables: that of the tokens, which is the head too if they are tied, and a separate head. */
enum { TOKENS, HEAD, TABLES };

/* Blocks of the model without its rows, and of the optimizer's state for it. */
enum { WEIGHTS, GRADIENTS, MEAN, SQUARES, BLOCKS };

enum {
    SCALED = 65536, /* numbers that are scaled at once */
    PIECES = 64     /* of the rows whose squares are summed */
};

typedef struct {
    embla_team_table table;
    embla_optim *optim;
    float *gradient;   /* of this rank's rows */
    size_t numbers;    /* of this rank's rows */
    uint8_t *frozen;   /* a byte for each of this rank's rows; NULL means none is frozen */
    size_t local_rows; /* rows of this rank, some of them not used */
} part;

struct embla_team_tokens {
    const embla_comm *comm;
    size_t bytes; /* of this block */
    part parts[TABLES];
    size_t count; /* tables */
    size_t dim;
    bool fast;
    int threads;
    int64_t *numbers;     /* row numbers of this rank's part of a batch */
    float *rows;          /* their rows, then their gradients */
    float *hidden;        /* their hidden vectors, then their gradients */
    void *blocks[BLOCKS]; /* for the model; NULL after embla_team_tokens_use */
    size_t block_bytes;
};

/* ---- new, free ---- */

static embla_status new_block(const embla_train *t, size_t sequences, embla_team_tokens **out)
{
    const embla_gpt_shape *s = &t->gpt->shape;
    size_t tokens = sequences * t->options.length; /* int32_t of each are allocated */
    embla_layout layout = {0};
    void *memory = NULL;
    (void)embla_layout_add(&layout, 1, sizeof(embla_team_tokens));
    size_t numbers = embla_layout_add(&layout, tokens, sizeof(int64_t));
    size_t rows = embla_layout_add(&layout, tokens, s->dim * sizeof(float));
    size_t hidden = embla_layout_add(&layout, tokens, s->dim * sizeof(float));
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "the rows of %zu tokens do not fit in memory", tokens);
    EMBLA_TRY(embla_mem_new(layout.bytes, "the token rows of a batch", &memory));
    char *block = memory;
    embla_team_tokens *x = memory;
    *x = (embla_team_tokens){.bytes = layout.bytes,
                             .count = s->untied ? 2 : 1,
                             .dim = s->dim,
                             .threads = t->options.threads,
                             .numbers = (int64_t *)(void *)(block + numbers),
                             .rows = (float *)(void *)(block + rows),
                             .hidden = (float *)(void *)(block + hidden)};
    x->parts[TOKENS].table = (embla_team_table){.suffix = "tokens", .what = "token rows"};
    x->parts[HEAD].table = (embla_team_table){.suffix = "head", .what = "rows of the head"};
    *out = x;
    return EMBLA_OK;
}

/* Memory for the model without its rows. */
static embla_status new_blocks(const embla_gpt *gpt, embla_team_tokens *x)
{
    static const char *const names[BLOCKS] = {"the weights of a model", "the gradients of a model",
                                              "the means of gradients", "the squares of gradients"};
    x->block_bytes = embla_gpt_trunk_numbers(gpt) * sizeof(float);
    for (int i = 0; i < BLOCKS; i++)
        EMBLA_TRY(embla_mem_new(x->block_bytes, names[i], &x->blocks[i]));
    return EMBLA_OK;
}

/* Marks the rows of this rank that are frozen. */
static embla_status mark_frozen(const embla_train_options *o, bool all, part *p)
{
    void *memory = NULL;
    if (!all && o->freeze_below == 0) return EMBLA_OK;
    EMBLA_TRY(embla_mem_new(p->local_rows, "frozen token rows", &memory));
    p->frozen = memory;
    for (size_t i = 0; i < p->local_rows; i++) {
        int64_t row = embla_sharded_global(p->table.sharded, (int64_t)i);
        p->frozen[i] = all || (row >= 0 && row < o->freeze_below);
    }
    return EMBLA_OK;
}

/* The optimizer and the gradients of this rank's rows. */
static embla_status new_state(const embla_train *t, bool all_frozen, part *p)
{
    const embla_train_options *o = &t->options;
    embla_table *own = embla_sharded_table(p->table.sharded);
    embla_optim_options adamw = {.kind = EMBLA_OPTIM_ADAMW,
                                 .beta1 = o->beta1,
                                 .beta2 = o->beta2,
                                 .epsilon = o->epsilon,
                                 .decay = o->decay,
                                 .threads = o->threads};
    void *memory = NULL;
    p->local_rows = (size_t)embla_table_rows(own);
    p->numbers = p->local_rows * embla_table_dim(own); /* the table has as many */
    EMBLA_TRY(mark_frozen(o, all_frozen, p));
    adamw.frozen.mask = p->frozen;
    EMBLA_TRY(embla_optim_new(own, &adamw, &p->optim));
    EMBLA_TRY(embla_mem_new(p->numbers * sizeof(float), "the gradients of token rows", &memory));
    p->gradient = memory;
    return EMBLA_OK;
}

static embla_status new_table(const embla_comm *comm, const embla_train *t, size_t which, part *p)
{
    const embla_gpt *gpt = t->gpt;
    const embla_sharded_options options = {.rows = gpt->shape.vocab,
                                           .dim = gpt->shape.dim,
                                           .dtype = EMBLA_F32,
                                           .capacity = t->options.batch * t->options.length,
                                           .threads = t->options.threads};
    bool frozen = which == TOKENS && (t->options.freeze & EMBLA_FREEZE_TOKENS) != 0;
    EMBLA_TRY(embla_sharded_new(comm, &options, &p->table.sharded));
    EMBLA_TRY(embla_sharded_fill(p->table.sharded, which == HEAD ? gpt->head : gpt->tokens));
    return embla_comm_agree(comm, new_state(t, frozen, p),
                            "it has no memory for the optimizer of token rows");
}

embla_status embla_team_tokens_new(const embla_comm *comm, const embla_train *train,
                                   size_t sequences, bool fast, embla_team_tokens **out)
{
    embla_team_tokens *x = NULL;
    embla_status status = new_block(train, sequences, &x);
    if (status == EMBLA_OK) status = new_blocks(train->gpt, x);
    status = embla_comm_agree(comm, status, "it has no memory for token rows");
    for (size_t i = 0; x && i < x->count && status == EMBLA_OK; i++)
        status = new_table(comm, train, i, &x->parts[i]);
    if (status != EMBLA_OK || !x) {
        embla_team_tokens_free(x);
        return status;
    }
    x->comm = comm;
    x->fast = fast;
    *out = x;
    return EMBLA_OK;
}

void embla_team_tokens_free(embla_team_tokens *x)
{
    if (!x) return;
    for (size_t i = 0; i < x->count; i++) {
        part *p = &x->parts[i];
        embla_mem_free(p->gradient, p->numbers * sizeof(float));
        embla_optim_free(p->optim);
        embla_mem_free(p->frozen, p->local_rows);
        embla_sharded_free(p->table.sharded);
    }
    for (int i = 0; i < BLOCKS; i++) embla_mem_free(x->blocks[i], x->block_bytes);
    embla_mem_free(x, x->bytes);
}

/* The training is at step 0, so the state of its optimizer is 0. */
void embla_team_tokens_use(embla_team_tokens *x, embla_train *t)
{
    size_t bytes = t->gpt->numbers * sizeof(float);
    embla_mem_free(t->mean, bytes);
    embla_mem_free(t->squares, bytes);
    embla_gpt_drop_rows(t->gpt, x->blocks[WEIGHTS], x->blocks[GRADIENTS]);
    t->mean = x->blocks[MEAN];
    t->squares = x->blocks[SQUARES];
    memset(x->blocks, 0, sizeof x->blocks);
    embla_train_resize(t);
}

/* ---- a step ---- */

embla_status embla_team_tokens_fetch(embla_team_tokens *x, const int32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) x->numbers[i] = ids[i];
    return embla_sharded_lookup(x->parts[TOKENS].table.sharded, x->numbers, count, x->rows);
}

float *embla_team_tokens_rows(const embla_team_tokens *x, size_t first)
{
    return x->rows + first * x->dim;
}

float *embla_team_tokens_hidden(const embla_team_tokens *x, size_t first)
{
    return x->hidden + first * x->dim;
}

embla_status embla_team_tokens_loss(embla_team_tokens *x, embla_status ready,
                                    const int32_t *targets, const embla_team_cut *cut, bool learns,
                                    embla_loss_report *report)
{
    const embla_sharded_loss_options options = {.fast = x->fast};
    part *head = &x->parts[x->count - 1];
    EMBLA_TRY(embla_comm_agree(x->comm, ready, "it cannot compute its hidden vectors"));
    for (size_t i = 0; learns && i < x->count; i++)
        memset(x->parts[i].gradient, 0, x->parts[i].numbers * sizeof(float));
    return embla_sharded_loss(head->table.sharded,
                              &(embla_sharded_loss_batch){.hidden = x->hidden,
                                                          .targets = targets,
                                                          .count = cut->tokens,
                                                          .lengths = cut->lengths,
                                                          .micro_batches = cut->count},
                              &options, learns ? x->hidden : NULL, learns ? head->gradient : NULL,
                              report);
}

/* A frozen row has no gradient: it is no part of the norm. */
static void clear_frozen(const part *p, size_t dim)
{
    for (size_t i = 0; p->frozen && i < p->local_rows; i++)
        if (p->frozen[i]) memset(p->gradient + i * dim, 0, dim * sizeof *p->gradient);
}

embla_status embla_team_tokens_sum(embla_team_tokens *x, const embla_team_cut *cut)
{
    part *p = &x->parts[TOKENS];
    embla_sharded_sums got;
    EMBLA_TRY(embla_sharded_sum(p->table.sharded,
                                &(embla_sharded_batch){.rows = x->numbers,
                                                       .count = cut->tokens,
                                                       .lengths = cut->lengths,
                                                       .micro_batches = cut->count},
                                x->rows, &got));
    for (size_t i = 0; i < got.count; i++) {
        float *to = p->gradient + (size_t)got.rows[i] * x->dim;
        for (size_t c = 0; c < x->dim; c++) to[c] += got.sums[i * x->dim + c];
    }
    for (size_t i = 0; i < x->count; i++) clear_frozen(&x->parts[i], x->dim);
    return EMBLA_OK;
}

/* ---- norm, update ---- */

/* The squares of a part. */
typedef struct {
    const part *part;
    size_t dim;
    embla_wide_sum sums[PIECES];
} squaring;

static embla_status square_pieces(void *job, size_t first, size_t end, size_t slot)
{
    squaring *s = job;
    const part *p = s->part;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        size_t stop = (i + 1) * p->local_rows / PIECES;
        for (size_t row = i * p->local_rows / PIECES; row < stop; row++)
            embla_wide_add(&s->sums[i], embla_squares_leaf(p->gradient + row * s->dim, s->dim));
    }
    return EMBLA_OK;
}

/* Each piece of the rows has a sum of its own. They are integers, so their order does not matter.
 */
static embla_status add_squares(const embla_team_tokens *x, const part *p, embla_wide_sum *sum)
{
    squaring s = {.part = p, .dim = x->dim};
    int threads = embla_threads_for(x->threads, p->numbers * sizeof(float));
    EMBLA_TRY(embla_share(threads, PIECES, 1, square_pieces, &s));
    for (size_t i = 0; i < PIECES; i++)
        for (size_t k = 0; k < EMBLA_WIDE_WORDS; k++) sum->words[k] += s.sums[i].words[k];
    return EMBLA_OK;
}

embla_status embla_team_tokens_squares(const embla_team_tokens *x, double *out)
{
    embla_wide_sum sum = {0};
    for (size_t i = 0; i < x->count; i++) EMBLA_TRY(add_squares(x, &x->parts[i], &sum));
    EMBLA_TRY(x->comm->allreduce(x->comm->owner, sum.words, EMBLA_WIDE_WORDS, EMBLA_COMM_TYPE_INT64,
                                 EMBLA_COMM_OP_SUM));
    *out = embla_wide_round(&sum);
    return EMBLA_OK;
}

typedef struct {
    const part *part;
    float factor;
} scaling;

static embla_status scale_pieces(void *job, size_t first, size_t end, size_t slot)
{
    const scaling *s = job;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        size_t from = i * SCALED, left = s->part->numbers - from;
        float *g = s->part->gradient + from;
        embla_kernels_get()->scale(g, s->factor, left < SCALED ? left : SCALED, g);
    }
    return EMBLA_OK;
}

static embla_status scale_gradient(const embla_team_tokens *x, const part *p, double factor)
{
    const scaling s = {.part = p, .factor = (float)factor};
    int threads = embla_threads_for(x->threads, p->numbers * sizeof(float));
    return embla_share(threads, (p->numbers + SCALED - 1) / SCALED, 0, scale_pieces, &s);
}

embla_status embla_team_tokens_update(embla_team_tokens *x, double rate, double factor)
{
    for (size_t i = 0; i < x->count; i++) {
        if (factor != 1.0) EMBLA_TRY(scale_gradient(x, &x->parts[i], factor));
        EMBLA_TRY(embla_optim_step(x->parts[i].optim, rate, x->parts[i].gradient));
    }
    for (size_t i = 0; i < x->count; i++) EMBLA_TRY(embla_team_table_publish(&x->parts[i].table));
    return EMBLA_OK;
}

/* ---- files ---- */

bool embla_team_tokens_kept(const embla_team_tokens *x, const char *path)
{
    for (size_t i = 0; i < x->count; i++)
        if (!embla_team_table_kept(&x->parts[i].table, path)) return false;
    return true;
}

embla_status embla_team_tokens_save(embla_team_tokens *x, const char *path, int64_t step)
{
    for (size_t i = 0; i < x->count; i++)
        EMBLA_TRY(embla_team_table_save(&x->parts[i].table, x->parts[i].optim, path, step));
    return EMBLA_OK;
}

embla_status embla_team_tokens_load(embla_team_tokens *x, const char *path, int64_t step)
{
    for (size_t i = 0; i < x->count; i++)
        EMBLA_TRY(embla_team_table_load(&x->parts[i].table, x->parts[i].optim, path, step));
    return EMBLA_OK;
}

embla_sharded *embla_team_tokens_table(const embla_team_tokens *x)
{
    return x->parts[TOKENS].table.sharded;
}

embla_sharded *embla_team_tokens_head(const embla_team_tokens *x)
{
    return x->count > 1 ? x->parts[HEAD].table.sharded : NULL;
}
