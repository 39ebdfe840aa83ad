/* SPDX-License-Identifier: Apache-2.0 */
/* Learning of rows: scatter, clip, schedules, optimizers, and the head of a few vectors. Losses of
 * the head are not here: an engine computes their products. */
#include "embla_learn.h"

#include <stdlib.h>

#include "bits.h"

enum { ROWS = 60, DIM = 45, COUNT = 260 };

/* ---- scatter, clip, schedules ---- */

static void note_scatter(const embla_scatter_options *options, const char *name)
{
    embla_scatter *scatter = NULL;
    int32_t *tokens = bits_tokens(31, COUNT, ROWS);
    float *gradients = bits_numbers(32, COUNT * DIM), *out = bits_room(ROWS * DIM * sizeof *out);
    OK(embla_scatter_new(ROWS, COUNT, &scatter));
    OK(embla_scatter_plan(scatter, tokens, COUNT, options));
    OK(embla_scatter_sum(scatter, gradients, DIM, out));
    bits_note_f32(out, embla_scatter_count(scatter) * DIM, "scatter.%s", name);
    embla_scatter_free(scatter);
    free(out);
    free(gradients);
    free(tokens);
}

static void note_clip(void)
{
    enum { NUMBERS = 20000 };
    float *x = bits_numbers(33, NUMBERS);
    const embla_span spans[] = {{x, 9000}, {x + 9000, NUMBERS - 9000}};
    double norm;
    OK(embla_clip(spans, 2, 1, &(embla_clip_options){.threads = bits_threads}, &norm));
    bits_note_f64(&norm, 1, "clip.norm");
    bits_note_f32(x, NUMBERS, "clip");
    free(x);
}

static void note_schedules(void)
{
    enum { STEPS = 100 };
    double rates[STEPS];
    for (int kind = 0; embla_schedule_name((embla_schedule_kind)kind); kind++) {
        const embla_schedule schedule = {.rate = 0.01,
                                         .final = 0.0007,
                                         .steps = STEPS,
                                         .warm_up = 7,
                                         .decay = 30,
                                         .kind = (embla_schedule_kind)kind};
        for (int64_t s = 0; s < STEPS; s++) OK(embla_schedule_rate(&schedule, s, &rates[s]));
        bits_note_f64(rates, STEPS, "schedule.%s", embla_schedule_name(schedule.kind));
    }
}

/* ---- optimizers ---- */

/* Twelve steps, of all rows or of some, and then all rows caught up. */
static void note_optimizer(embla_optim_options options, embla_dtype dtype, const char *name)
{
    embla_table *table = bits_table(dtype, ROWS, DIM, 34);
    embla_optim *optim = NULL;
    embla_optim_state state;
    uint64_t seed = 35;
    options.threads = bits_threads;
    OK(embla_optim_new(table, &options, &optim));
    for (uint64_t step = 0; step < 12; step++) {
        int64_t rows[ROWS];
        size_t count = 0;
        float *gradients = bits_numbers(100 + step, ROWS * DIM);
        for (int64_t r = 0; r < ROWS; r++)
            if (bits_below(&seed, 3) == 0) rows[count++] = r;
        if (step % 4 == 0)
            OK(embla_optim_step(optim, 0.01, gradients));
        else
            OK(embla_optim_step_rows(optim, 0.01, rows, count, gradients));
        free(gradients);
    }
    OK(embla_optim_catch_up(optim, NULL, 0));
    if (dtype == EMBLA_F32)
        bits_note_f32(embla_table_data(table), ROWS * DIM, "optim.%s", name);
    else
        bits_note(embla_table_data(table), ROWS * DIM * 2, "optim.%s", name);
    for (size_t n = 0; embla_optim_state_at(optim, n, &state) == EMBLA_OK; n++)
        bits_note_f32(state.values, (size_t)state.rows * state.dim, "optim.%s.%s", name,
                      state.name);
    embla_optim_free(optim);
    embla_table_free(table);
}

static void note_optimizers(void)
{
    const embla_optim_options adamw = {.kind = EMBLA_OPTIM_ADAMW, .decay = 0.1};
    embla_optim_options late = adamw;
    late.catch_up = true;
    note_optimizer((embla_optim_options){.decay = 0.01}, EMBLA_F32, "sgd");
    note_optimizer((embla_optim_options){.momentum = 0.9, .catch_up = true}, EMBLA_F32,
                   "sgd.momentum");
    note_optimizer((embla_optim_options){.momentum = 0.9, .nesterov = true}, EMBLA_F32,
                   "sgd.nesterov");
    note_optimizer((embla_optim_options){.kind = EMBLA_OPTIM_ADAGRAD}, EMBLA_F32, "adagrad");
    note_optimizer((embla_optim_options){.kind = EMBLA_OPTIM_ADAGRAD_ROWWISE}, EMBLA_F32,
                   "adagrad-rowwise");
    note_optimizer(adamw, EMBLA_F32, "adamw");
    note_optimizer(late, EMBLA_F32, "adamw.catch_up");
    note_optimizer(late, EMBLA_BF16, "adamw.bf16");
    note_optimizer(adamw, EMBLA_F16, "adamw.f16");
}

/* ---- head ---- */

static void note_head(embla_dtype dtype)
{
    enum { VOCAB = 1500, WIDTH = 96, VECTORS = 3, TOP = 20, DRAWS = 30 };
    const char *name = embla_dtype_name(dtype);
    embla_table *table = bits_table(dtype, VOCAB, WIDTH, 36);
    float *bias = bits_numbers(37, VOCAB), *hidden = bits_numbers(38, VECTORS * WIDTH);
    float *logits = bits_room(VECTORS * VOCAB * sizeof *logits);
    const embla_head head = {.table = table, .bias = bias, .scale = 3, .soft_cap = 5};
    const embla_head_options options = {.threads = bits_threads};
    embla_choice top[VECTORS * TOP], drawn[VECTORS];
    double logarithms[VECTORS * TOP];
    int32_t tokens[VECTORS * DRAWS];
    OK(embla_head_logits(&head, hidden, VECTORS, &options, logits));
    bits_note_f32(logits, VECTORS * VOCAB, "head.%s.logits", name);
    OK(embla_head_top(&head, hidden, VECTORS, TOP, &options, top));
    for (size_t i = 0; i < VECTORS * TOP; i++) {
        tokens[i] = top[i].token;
        logarithms[i] = top[i].log_probability;
    }
    bits_note_i32(tokens, VECTORS * TOP, "head.%s.top", name);
    bits_note_f64(logarithms, VECTORS * TOP, "head.%s.top.logarithms", name);
    embla_sample_options sample = {.temperature = 0.8, .seed = 39, .threads = bits_threads};
    for (size_t i = 0; i < DRAWS; i++) {
        sample.step = (int64_t)(i * VECTORS);
        sample.top_k = i % 3 == 1 ? 40 : 0;
        sample.top_p = i % 3 == 2 ? 0.9 : 0;
        sample.min_p = i % 5 == 4 ? 0.05 : 0;
        OK(embla_head_sample(&head, hidden, VECTORS, &sample, drawn));
        for (size_t v = 0; v < VECTORS; v++) {
            tokens[i * VECTORS + v] = drawn[v].token;
            logarithms[v] = drawn[v].log_probability;
        }
    }
    bits_note_i32(tokens, VECTORS * DRAWS, "head.%s.drawn", name);
    bits_note_f64(logarithms, VECTORS, "head.%s.drawn.logarithms", name);
    free(logits);
    free(hidden);
    free(bias);
    embla_table_free(table);
}

void bits_learn(void)
{
    note_scatter(&(embla_scatter_options){.threads = bits_threads}, "sum");
    note_scatter(&(embla_scatter_options){.threads = bits_threads, .by_count = true}, "by_count");
    note_scatter(&(embla_scatter_options){.threads = bits_threads, .max_norm = 0.5f}, "max_norm");
    note_scatter(&(embla_scatter_options){.threads = bits_threads, .shard = 50}, "shards");
    note_clip();
    note_schedules();
    note_optimizers();
    note_head(EMBLA_F32);
    note_head(EMBLA_BF16);
    note_head(EMBLA_Q8_0);
    note_head(EMBLA_Q4_0);
}
