/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the changes of parts. A row that several parts changed gets a share of their sum
 * (docs/decisions/023): all of it would be too much, because no part saw what the others did.
 */
#include "wordvec/merge.h"

#include <math.h>
#include <string.h>

#include "base/kernels.h"
#include "base/threads.h"

/* How much of the sum of k changes a row gets: 1, 1 / k^(1/4) or 1 / k^(1/2). Only square roots:
 * they are the same on every machine. */
static float share_of(int quarters, size_t k)
{
    float root = sqrtf((float)(int)k);
    return quarters == 0 ? 1 : 1.0f / (quarters == 1 ? sqrtf(root) : root);
}

/* ---- arithmetic ---- */

/* The sum of what copies differ from base, times share. */
EMBLA_BODY void change_body(float *const *copies, size_t count, const float *base, size_t stride,
                            float share, float *out)
{
    for (size_t k = 0; k < stride; k++) out[k] = copies[0][k] - base[k];
    for (size_t i = 1; i < count; i++)
        for (size_t k = 0; k < stride; k++) out[k] += copies[i][k] - base[k];
    for (size_t k = 0; k < stride; k++) out[k] *= share;
}

EMBLA_ISA_FUNCTION(void, change_of,
                   (float *const *copies, size_t count, const float *base, size_t stride,
                    float share, float *restrict out),
                   change_body(copies, count, base, stride, share, out);)

/* base += sum of what copies differ from it, times share; a few numbers at a time. */
EMBLA_BODY void add_body(float *const *copies, size_t count, size_t stride, float share,
                         float *base)
{
    enum { LANES = 16 };
    for (size_t k = 0; k < stride; k += LANES) {
        float sum[LANES], old[LANES];
        for (size_t i = 0; i < LANES; i++) {
            old[i] = base[k + i];
            sum[i] = copies[0][k + i] - old[i];
        }
        for (size_t c = 1; c < count; c++)
            for (size_t i = 0; i < LANES; i++) sum[i] += copies[c][k + i] - old[i];
        for (size_t i = 0; i < LANES; i++) base[k + i] = old[i] + share * sum[i];
    }
}

EMBLA_ISA_FUNCTION(void, add_changes,
                   (float *const *copies, size_t count, size_t stride, float share, float *base),
                   add_body(copies, count, stride, share, base);)

EMBLA_BODY void add_row_body(const float *x, float share, size_t n, float *out)
{
    for (size_t k = 0; k < n; k++) out[k] += share * x[k];
}

EMBLA_ISA_FUNCTION(void, add_row, (const float *x, float share, size_t n, float *restrict out),
                   add_row_body(x, share, n, out);)

/* ---- rows of words ---- */

typedef embla_copies *copies_list[EMBLA_STEP_PARTS];

/* Finds the copies of a token, in the order of parts. 0 if a part before `part` has one, which then
 * does the work. */
static size_t find_copies(copies_list all, size_t count, size_t part, int32_t token, size_t stride,
                          float *out[EMBLA_STEP_PARTS])
{
    size_t found = 0;
    for (size_t i = 0; i < part; i++)
        if (all[i]->copy_of[token]) return 0;
    for (size_t i = part; i < count; i++) {
        int32_t copy = all[i]->copy_of[token];
        if (copy) out[found++] = all[i]->rows + (size_t)(copy - 1) * stride;
    }
    return found;
}

static void list_copies(embla_step_part *parts, size_t count, bool output, copies_list out)
{
    for (size_t i = 0; i < count; i++) out[i] = output ? &parts[i].output : &parts[i].input;
}

/* A step of CBOW changes a row less than one of skip-gram, and the sum is not too much, unless
 * nearly all parts change the same rows: a text of few words. */
static int quarters_of(const embla_step_context *context, copies_list all, size_t count)
{
    int64_t copies = 0, rows = 0;
    float *found_at[EMBLA_STEP_PARTS];
    if (context->options->kind == EMBLA_WORDVEC_SKIPGRAM) return 2;
    for (size_t part = 0; part < count; part++)
        for (size_t i = 0; i < all[part]->count; i++) {
            size_t found =
                find_copies(all, count, part, all[part]->tokens[i], context->stride, found_at);
            copies += (int64_t)found;
            rows += found > 0;
        }
    return copies < 2 * rows ? 0 : copies < 4 * rows ? 1 : 2;
}

/* A thread has the tokens whose number modulo the threads is its own. */
static void merge_words(const embla_step_context *context, copies_list all, size_t count,
                        int quarters, int team, float *rows)
{
    size_t stride = context->stride;
    (void)team; /* without OpenMP */
#pragma omp parallel num_threads(team)
    {
        size_t threads = embla_threads_team(), mine = (size_t)embla_threads_mine();
        for (size_t part = 0; part < count; part++)
            for (size_t i = 0; i < all[part]->count; i++) {
                int32_t token = all[part]->tokens[i];
                float *copies[EMBLA_STEP_PARTS];
                if ((size_t)token % threads != mine) continue;
                size_t found = find_copies(all, count, part, token, stride, copies);
                if (found > 0) EMBLA_PICK(add_changes)
                (copies, found, stride, share_of(quarters, found), rows + (size_t)token * stride);
            }
    }
}

/* ---- words with n-grams ---- */

/* Lists the words that changed, and how much their means did. */
static size_t list_changes(const embla_step_context *context, copies_list all, size_t count,
                           int quarters, int team, embla_merge *m)
{
    size_t listed = 0, stride = context->stride;
    float *copies[EMBLA_STEP_PARTS];
    for (size_t part = 0; part < count; part++)
        for (size_t i = 0; i < all[part]->count; i++)
            if (find_copies(all, count, part, all[part]->tokens[i], stride, copies) > 0)
                m->tokens[listed++] = all[part]->tokens[i];
    (void)team;
#pragma omp parallel for num_threads(team) schedule(dynamic, 64)
    for (size_t i = 0; i < listed; i++) {
        float *found[EMBLA_STEP_PARTS], *change = m->changes + i * stride;
        int32_t token = m->tokens[i];
        size_t part = 0, n;
        while (part + 1 < count && !all[part]->copy_of[token]) part++;
        n = find_copies(all, count, part, token, stride, found);
        const float *start = all[part]->starts + (found[0] - all[part]->rows);
        EMBLA_PICK(change_of)(found, n, start, stride, share_of(quarters, n), change);
    }
    return listed;
}

/* Adds changes to the rows of n-grams that belong to one thread. An n-gram of c changed words gets
 * a share of their sum, as a row that several parts changed. */
static void add_to_grams(const embla_step_context *context, const embla_merge *m, size_t listed,
                         size_t threads, size_t mine)
{
    const embla_grams *g = context->grams;
    size_t stride = context->stride;
    for (int pass = 0; pass < 3; pass++)
        for (size_t i = 0; i < listed; i++) {
            size_t token = (size_t)m->tokens[i];
            for (uint64_t j = g->first[token]; j < g->first[token + 1]; j++) {
                size_t row = (size_t)g->rows[j];
                if (row % threads != mine) continue;
                if (pass == 0) m->changed[row]++;
                if (pass == 1) EMBLA_PICK(add_row)
                (m->changes + i * stride, 1.0f / sqrtf((float)m->changed[row]), stride,
                 g->values + row * stride);
                if (pass == 2) m->changed[row] = 0;
            }
        }
}

/* A change of a word's mean is a change of each of its rows. */
static void merge_grams(const embla_step_context *context, copies_list all, size_t count,
                        int quarters, int team, embla_merge *m)
{
    size_t stride = context->stride, listed = list_changes(context, all, count, quarters, team, m);
#pragma omp parallel num_threads(team)
    {
        size_t threads = embla_threads_team(), mine = (size_t)embla_threads_mine();
        for (size_t i = 0; i < listed; i++) {
            size_t token = (size_t)m->tokens[i];
            if (token % threads == mine) EMBLA_PICK(add_row)
            (m->changes + i * stride, 1, stride, context->input + token * stride);
        }
        add_to_grams(context, m, listed, threads, mine);
    }
}

/* ---- both tables ---- */

/* Empties the parts. */
static void clear_parts(embla_step_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        embla_copies_clear(&parts[i].input);
        embla_copies_clear(&parts[i].output);
    }
}

void embla_merge_rows(const embla_step_context *context, embla_step_part *parts, size_t count,
                      embla_merge *merge)
{
    copies_list inputs, outputs;
    size_t rows = 0;
    list_copies(parts, count, false, inputs);
    list_copies(parts, count, true, outputs);
    for (size_t i = 0; i < count; i++) rows += inputs[i]->count + outputs[i]->count;
    int team = embla_threads_for(context->options->threads, rows * context->stride * sizeof(float));
    int quarters = quarters_of(context, inputs, count);
    if (context->grams)
        merge_grams(context, inputs, count, quarters, team, merge);
    else
        merge_words(context, inputs, count, quarters, team, context->input);
    merge_words(context, outputs, count, quarters_of(context, outputs, count), team,
                context->output);
    clear_parts(parts, count);
}
