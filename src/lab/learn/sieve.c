/* SPDX-License-Identifier: Apache-2.0 */
/* Further passes over all logits, for a cut that lies too deep for a list of candidates. They
 * narrow it down by counts and masses in integers, whose sums do not depend on the order of
 * threads.
 */
#include "learn/sieve.h"

#include "base/arena.h"
#include "engine/score.h"
#include "table/access.h"

enum { BITS = EMBLA_SIEVE_BITS };

static void tally_logits(void *context, const embla_logits *logits)
{
    const embla_sieve *s = context;
    uint64_t *counts = s->tallies + logits->slot * 2 * EMBLA_SIEVE_BUCKETS;
    uint64_t *masses = counts + EMBLA_SIEVE_BUCKETS;
    int64_t ties = 0;
    for (size_t i = 0; i < logits->n; i++) {
        float x = logits->logits[i];
        if (!(x > -INFINITY)) continue;
        if (!embla_is_inside(&s->cut, (embla_scored){logits->first + (int64_t)i, (double)x}))
            continue;
        ties += x == s->tie;
        uint32_t place = embla_place_of(x);
        if (s->ties || (uint64_t)(place ^ s->among) >> s->above != 0) continue;
        double power = embla_exp_below(embla_below((double)x, (double)s->most) * s->inverse);
        size_t bucket = (place >> s->shift) & (EMBLA_SIEVE_BUCKETS - 1);
        counts[bucket]++;
        masses[bucket] += (uint64_t)(power * s->unit + 0.5);
    }
    if (s->ties) s->ties[logits->chunk] = ties;
}

static embla_status tally(embla_sieve *s)
{
    memset(s->tallies, 0, (size_t)s->walk->threads * 2 * EMBLA_SIEVE_BUCKETS * sizeof *s->tallies);
    EMBLA_TRY(embla_walk_run(s->walk, 0, 1, NULL, tally_logits, s));
    for (size_t t = 1; t < (size_t)s->walk->threads; t++)
        for (size_t b = 0; b < 2 * EMBLA_SIEVE_BUCKETS; b++)
            s->tallies[b] += s->tallies[t * 2 * EMBLA_SIEVE_BUCKETS + b];
    return EMBLA_OK;
}

/* Finds the n-th token (from 1) inside the cut with the logit s->tie. */
static embla_status find_tie(embla_sieve *s, uint64_t n, int64_t *token)
{
    const embla_logit_walk *w = s->walk;
    embla_arena arena = {0};
    void *ties = NULL, *logits = NULL;
    embla_status status =
        embla_arena_many(&arena, (size_t)w->chunks, sizeof *s->ties, "ties", &ties);
    if (status == EMBLA_OK)
        status = embla_arena_many(&arena, w->chunk, sizeof(float), "logits", &logits);
    s->ties = ties;
    if (status == EMBLA_OK) status = embla_walk_run(w, 0, 1, NULL, tally_logits, s);
    if (status == EMBLA_OK) {
        int64_t chunk = 0;
        for (; n > (uint64_t)s->ties[chunk]; chunk++) n -= (uint64_t)s->ties[chunk];
        const int64_t first = chunk * (int64_t)w->chunk;
        const int64_t left = w->head.rows - first;
        const size_t length = left < (int64_t)w->chunk ? (size_t)left : w->chunk;
        float *x = logits;
        embla_score(&(embla_score_job){.rows = embla_table_source(w->head.table),
                                       .first = first,
                                       .n = length,
                                       .vectors = w->hidden,
                                       .count = 1,
                                       .dots = x,
                                       .stride = length});
        embla_head_finish(&w->head, first, length, x);
        for (size_t i = 0; i < length && n > 0; i++) {
            *token = first + (int64_t)i;
            n -= x[i] == s->tie && embla_is_inside(&s->cut, (embla_scored){*token, (double)x[i]});
        }
    }
    s->ties = NULL;
    embla_arena_free(&arena);
    return status;
}

/* Three passes find the logit, and a fourth finds the token if several have that logit. */
embla_status embla_sieve_move(embla_sieve *s, uint64_t most, double share)
{
    static const unsigned shifts[] = {32 - BITS, 32 - 2 * BITS, 0}; /* 12, 12 and 8 bits */
    const uint64_t *tallies = s->tallies + (most > 0 ? 0 : EMBLA_SIEVE_BUCKETS);
    uint64_t before = 0, want = most;
    size_t bucket = 0;
    s->among = 0;
    for (size_t p = 0; p < 3; p++) {
        s->shift = shifts[p];
        s->above = p == 0 ? 32 : shifts[p - 1];
        EMBLA_TRY(tally(s));
        if (p == 0) {
            uint64_t all = 0;
            for (size_t b = 0; b < EMBLA_SIEVE_BUCKETS; b++) all += tallies[b];
            if (most == 0) want = (uint64_t)ceil(share * (double)all);
            if (want < 1) want = 1;
            if (want >= all) return EMBLA_OK; /* everything stays */
        }
        for (bucket = EMBLA_SIEVE_BUCKETS - 1; before + tallies[bucket] < want; bucket--)
            before += tallies[bucket];
        s->among = (s->among & ~((EMBLA_SIEVE_BUCKETS - 1u) << s->shift)) | (uint32_t)bucket
                                                                                << s->shift;
    }
    uint64_t each = tallies[bucket] / s->tallies[bucket];
    uint64_t needed = (want - before + each - 1) / each;
    s->tie = embla_at_place(s->among);
    embla_scored last = {INT64_MAX, (double)s->tie};
    if (needed < s->tallies[bucket]) EMBLA_TRY(find_tie(s, needed, &last.row));
    s->cut.last = last;
    return EMBLA_OK;
}
