/* SPDX-License-Identifier: Apache-2.0 */
/* Skip-gram and CBOW for one window, as small matrix products: inputs x outputs scores, then each
 * row gets a sum of the rows on the other side. The negatives are shared by all inputs (as in
 * pWord2Vec: Ji, Satish, Li and Dubey, "Parallelizing Word2Vec in Shared and Distributed Memory",
 * 2016), so a row is read once for several products.
 */
#include "wordvec/window.h"

#include <string.h>

#include "base/kernels.h"
#include "base/math.h"
#include "base/random.h"

enum {
    LANES = EMBLA_WINDOW_LANES,
    TILE = 6, /* outputs whose sums stay in registers */
    STEPS_MOST = 2 * EMBLA_WINDOW_MOST * (EMBLA_NEGATIVES_MOST + 1)
};

/* LANES floats as the compilers know them: one register of AVX-512, two of AVX2. + and * are those
 * of their numbers, so that each set gives the same bits. */
typedef float lanes __attribute__((vector_size(64), aligned(sizeof(float)), may_alias));
typedef float half __attribute__((vector_size(32), aligned(sizeof(float)), may_alias));
typedef float quarter __attribute__((vector_size(16), aligned(sizeof(float)), may_alias));

#define AT(row) (*(lanes *)(row))
#define OF(row) (*(const lanes *)(row))

/* ---- scores ---- */

/* The sum of the numbers of *x, in a fixed order. */
EMBLA_BODY float add_lanes(const lanes *x)
{
    union {
        lanes all;
        half halves[2];
    } a = {.all = *x};
    union {
        half all;
        quarter quarters[2];
    } b = {.all = a.halves[0] + a.halves[1]};
    quarter c = b.quarters[0] + b.quarters[1];
    return (c[0] + c[2]) + (c[1] + c[3]);
}

/* Scores of one input with n outputs; n is a constant after inlining. */
EMBLA_BODY void score_tile(const float *x, float *const *outputs, const size_t n, size_t stride,
                           float *out)
{
    lanes sums[TILE] = {0};
    for (size_t k = 0; k < stride; k += LANES) {
        lanes input = OF(x + k);
        for (size_t b = 0; b < n; b++) sums[b] += input * OF(outputs[b] + k);
    }
    for (size_t b = 0; b < n; b++) out[b] = add_lanes(&sums[b]);
}

EMBLA_BODY void score(const float *x, float *const *outputs, size_t n, size_t stride, float *out)
{
    size_t b = 0;
    for (; b + TILE <= n; b += TILE) score_tile(x, outputs + b, TILE, stride, out + b);
    for (; b < n; b++) score_tile(x, outputs + b, 1, stride, out + b);
}

/* -ln p, at most that of p = 2^-24. NaN stays NaN. */
static double surprise(float p)
{
    if (p != p) return (double)p;
    float scaled = p * 0x1p24f;
    uint32_t k = scaled < 1 ? 1 : scaled > 0x1p24f ? 1 << 24 : (uint32_t)scaled;
    return 0.5 * (double)embla_minus_2_ln(k);
}

/* Adds the loss of one input; p has the sigmoids of its scores. */
static void add_loss(embla_window *w, float times, const float *p)
{
    double loss = 0;
    for (size_t b = 0; b < w->output_count; b++) loss += surprise(b == 0 ? p[b] : 1 - p[b]);
    w->loss += (double)times * loss;
    w->pairs += (double)times;
}

/* Turns scores into steps: rate x (1 - p) for the word itself, -rate x p for negatives. */
EMBLA_BODY void score_to_step(embla_window *w, size_t inputs, float *scores)
{
    size_t outputs = w->output_count, n = inputs * outputs;
    if (n == 0) return;
    for (size_t i = 0; i < n; i++)
        scores[i] = 1.0f / (1.0f + embla_exp_near(embla_exp_clamp(-scores[i])));
    for (size_t a = 0; w->wants_loss && a < inputs; a++)
        add_loss(w, w->times[a], scores + a * outputs);
    for (size_t a = 0; a < inputs; a++) scores[a * outputs] -= 1.0f;
    for (size_t a = 0; a < inputs; a++)
        for (size_t b = 0; b < outputs; b++) scores[a * outputs + b] *= -(w->rate * w->times[a]);
}

/* ---- skip-gram ---- */

/* Moves numbers k .. k+LANES-1 of n outputs, and of all inputs in `moved`. steps begin at the first
 * of these outputs. n is a constant after inlining. */
EMBLA_BODY void move_tile(const embla_window *w, const float *steps, float *const *outputs,
                          const size_t n, size_t k, lanes *moved)
{
    lanes old[TILE], sums[TILE];
    for (size_t b = 0; b < n; b++) sums[b] = old[b] = OF(outputs[b] + k);
    for (size_t a = 0; a < w->input_count; a++, steps += w->output_count) {
        lanes input = OF(w->inputs[a] + k), sum = moved[a];
        for (size_t b = 0; b < n; b++) {
            sum += steps[b] * old[b];
            sums[b] += steps[b] * input;
        }
        moved[a] = sum;
    }
    for (size_t b = 0; b < n; b++) AT(outputs[b] + k) = sums[b];
}

EMBLA_BODY void skipgram_body(embla_window *w)
{
    float steps[STEPS_MOST];
    lanes moved[2 * EMBLA_WINDOW_MOST];
    size_t inputs = w->input_count, outputs = w->output_count;
    for (size_t a = 0; a < inputs; a++)
        score(w->inputs[a], w->outputs, outputs, w->stride, steps + a * outputs);
    score_to_step(w, inputs, steps);
    for (size_t k = 0; k < w->stride; k += LANES) {
        size_t b = 0;
        for (size_t a = 0; a < inputs; a++) moved[a] = OF(w->inputs[a] + k);
        for (; b + TILE <= outputs; b += TILE)
            move_tile(w, steps + b, w->outputs + b, TILE, k, moved);
        for (; b < outputs; b++) move_tile(w, steps + b, w->outputs + b, 1, k, moved);
        for (size_t a = 0; a < inputs; a++) AT(w->inputs[a] + k) = moved[a];
    }
}

EMBLA_ISA_FUNCTION(void, skipgram, (embla_window * w), skipgram_body(w);)

void embla_window_skipgram(embla_window *window)
{
    EMBLA_PICK(skipgram)(window);
}

/* ---- CBOW ---- */

/* Numbers k .. k+LANES-1 of the mean of the inputs. */
EMBLA_BODY void mean_at(const embla_window *w, size_t k, lanes *mean)
{
    lanes sum = OF(w->inputs[0] + k);
    for (size_t a = 1; a < w->input_count; a++) sum += OF(w->inputs[a] + k);
    *mean = sum * (1.0f / (float)(int)w->input_count);
}

/* Scores of the mean with n outputs; n is a constant after inlining. */
EMBLA_BODY void score_mean(const embla_window *w, float *const *outputs, const size_t n, float *out)
{
    lanes sums[TILE] = {0};
    for (size_t k = 0; k < w->stride; k += LANES) {
        lanes mean;
        mean_at(w, k, &mean);
        for (size_t b = 0; b < n; b++) sums[b] += mean * OF(outputs[b] + k);
    }
    for (size_t b = 0; b < n; b++) out[b] = add_lanes(&sums[b]);
}

EMBLA_BODY void cbow_body(embla_window *w)
{
    float steps[EMBLA_NEGATIVES_MOST + 1] = {0};
    size_t b = 0;
    w->times[0] = 1; /* the mean is the only input */
    for (; b + TILE <= w->output_count; b += TILE) score_mean(w, w->outputs + b, TILE, steps + b);
    for (; b < w->output_count; b++) score_mean(w, w->outputs + b, 1, steps + b);
    score_to_step(w, 1, steps);
    for (size_t k = 0; k < w->stride; k += LANES) {
        lanes mean, sum = {0};
        mean_at(w, k, &mean);
        for (b = 0; b < w->output_count; b++) {
            lanes old = OF(w->outputs[b] + k);
            sum += steps[b] * old;
            AT(w->outputs[b] + k) = old + steps[b] * mean;
        }
        for (size_t a = 0; a < w->input_count; a++) AT(w->inputs[a] + k) += sum;
    }
}

EMBLA_ISA_FUNCTION(void, cbow, (embla_window * w), cbow_body(w);)

void embla_window_cbow(embla_window *window)
{
    EMBLA_PICK(cbow)(window);
}
