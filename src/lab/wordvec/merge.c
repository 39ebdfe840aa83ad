/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the changes of parts. A row that several parts changed gets a share of their sum
 * (docs/decisions/023): all of it would be too much, because no part saw what the others did.
 */
#include "wordvec/merge.h"

#include <math.h>
#include <string.h>

#include "base/kernels.h"
#include "base/parallel.h"
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

/* What the loops over words share. Their indices are numbers below `threads`: index i has the rows
 * whose number modulo `threads` is i. */
typedef struct {
    const embla_step_context *context;
    copies_list all;
    size_t count; /* parts */
    int quarters, threads;
    float *rows;        /* words x stride, to be changed */
    embla_merge *merge; /* NULL without n-grams */
    size_t listed;      /* words that changed, in merge->tokens */
} merging;

/* Whether a row belongs to the indices first .. end-1. */
static bool is_own(const merging *m, size_t row, size_t first, size_t end)
{
    size_t index = row % (size_t)m->threads;
    return index >= first && index < end;
}

static embla_status merge_words(void *job, size_t first, size_t end, size_t slot)
{
    merging *m = job;
    size_t stride = m->context->stride;
    (void)slot;
    for (size_t part = 0; part < m->count; part++)
        for (size_t i = 0; i < m->all[part]->count; i++) {
            int32_t token = m->all[part]->tokens[i];
            float *copies[EMBLA_STEP_PARTS];
            if (!is_own(m, (size_t)token, first, end)) continue;
            size_t found = find_copies(m->all, m->count, part, token, stride, copies);
            if (found > 0) EMBLA_PICK(add_changes)
            (copies, found, stride, share_of(m->quarters, found), m->rows + (size_t)token * stride);
        }
    return EMBLA_OK;
}

/* ---- words with n-grams ---- */

/* Computes how much the means of listed words changed. The indices are places in the list. */
static embla_status find_changes(void *job, size_t first, size_t end, size_t slot)
{
    merging *m = job;
    size_t stride = m->context->stride;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        float *found[EMBLA_STEP_PARTS], *change = m->merge->changes + i * stride;
        int32_t token = m->merge->tokens[i];
        size_t part = 0, n;
        while (part + 1 < m->count && !m->all[part]->copy_of[token]) part++;
        n = find_copies(m->all, m->count, part, token, stride, found);
        const float *start = m->all[part]->starts + (found[0] - m->all[part]->rows);
        EMBLA_PICK(change_of)(found, n, start, stride, share_of(m->quarters, n), change);
    }
    return EMBLA_OK;
}

/* Lists the words that changed. */
static void list_words(merging *m)
{
    float *copies[EMBLA_STEP_PARTS];
    for (size_t part = 0; part < m->count; part++)
        for (size_t i = 0; i < m->all[part]->count; i++) {
            int32_t token = m->all[part]->tokens[i];
            if (find_copies(m->all, m->count, part, token, m->context->stride, copies) > 0)
                m->merge->tokens[m->listed++] = token;
        }
}

/* Adds changes to own rows of n-grams. An n-gram of c changed words gets a share of their sum, as a
 * row that several parts changed. */
static void add_to_grams(const merging *m, size_t first, size_t end)
{
    const embla_grams *g = m->context->grams;
    const embla_merge *to = m->merge;
    size_t stride = m->context->stride;
    for (int pass = 0; pass < 3; pass++)
        for (size_t i = 0; i < m->listed; i++) {
            size_t token = (size_t)to->tokens[i];
            for (uint64_t j = g->first[token]; j < g->first[token + 1]; j++) {
                size_t row = (size_t)g->rows[j];
                if (!is_own(m, row, first, end)) continue;
                if (pass == 0) to->changed[row]++;
                if (pass == 1) EMBLA_PICK(add_row)
                (to->changes + i * stride, 1.0f / sqrtf((float)to->changed[row]), stride,
                 g->values + row * stride);
                if (pass == 2) to->changed[row] = 0;
            }
        }
}

/* A change of a word's mean is a change of each of its rows. */
static embla_status add_to_words(void *job, size_t first, size_t end, size_t slot)
{
    const merging *m = job;
    size_t stride = m->context->stride;
    (void)slot;
    for (size_t i = 0; i < m->listed; i++) {
        size_t token = (size_t)m->merge->tokens[i];
        if (is_own(m, token, first, end)) EMBLA_PICK(add_row)
        (m->merge->changes + i * stride, 1, stride, m->rows + token * stride);
    }
    add_to_grams(m, first, end);
    return EMBLA_OK;
}

static embla_status merge_grams(merging *m)
{
    list_words(m);
    EMBLA_TRY(embla_share(m->threads, m->listed, 64, find_changes, m));
    return embla_share(m->threads, (size_t)m->threads, 0, add_to_words, m);
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

/* The merging of one table. */
static embla_status merge_table(merging *m)
{
    m->quarters = quarters_of(m->context, m->all, m->count);
    if (m->merge) return merge_grams(m);
    return embla_share(m->threads, (size_t)m->threads, 0, merge_words, m);
}

embla_status embla_merge_rows(const embla_step_context *context, embla_step_part *parts,
                              size_t count, embla_merge *merge)
{
    merging in = {.context = context, .count = count, .rows = context->input};
    merging out = {.context = context, .count = count, .rows = context->output};
    size_t rows = 0;
    list_copies(parts, count, false, in.all);
    list_copies(parts, count, true, out.all);
    for (size_t i = 0; i < count; i++) rows += in.all[i]->count + out.all[i]->count;
    in.threads = out.threads =
        embla_threads_for(context->options->threads, rows * context->stride * sizeof(float));
    if (context->grams) in.merge = merge;
    embla_status status = merge_table(&in);
    if (status == EMBLA_OK) status = merge_table(&out);
    clear_parts(parts, count);
    return status;
}
