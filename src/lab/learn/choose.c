/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses tokens, the best or by sampling, from logits that are computed a chunk at a time and not
 * stored.
 *
 * One pass is nearly always enough. Each thread keeps the best tokens it has seen. Each chunk
 * stores its sum of exponentials, and these are added in the order of the chunks. Top-k, top-p and
 * min-p each keep the first tokens of one order (higher logit first, then lower token). Together
 * they keep the tokens before a cut in that order, and the cut is found among the kept tokens.
 *
 * If the cut lies deeper than ROOM tokens (a flat distribution), further passes find it
 * (learn/sieve.h). A draw does not depend on the order of tokens: the luck of each is independent.
 */
#include "learn/choose.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/elementary.h"
#include "base/kernels.h"
#include "base/options.h"
#include "base/threads.h"
#include "learn/head.h"
#include "learn/sieve.h"
#include "learn/softmax.h"
#include "table/access.h"

enum {
    ROOM = 8192,            /* candidates kept for top-p and min-p */
    LIST_BYTES = 16 << 20,  /* approximate bytes of one thread's lists */
    GROUP_MOST = 1024,      /* maximum vectors of a pass */
    GROUP_CHUNKS = 1 << 20, /* maximum sums of chunks of a pass */
    WALK_BLOCK = 128        /* groups are multiples of this, where possible */
};

/* ---- loops for each instruction set ---- */

EMBLA_ISA_FUNCTION(bool, lot_reaches,
                   (uint64_t seed, uint64_t draw, uint64_t lot, const float *x, double inverse,
                    double limit, embla_luck_words words),
                   return embla_body_lot(seed, draw, lot, x, inverse, limit, words);)

/* ---- one pass over all logits of some vectors ---- */

/* The largest logit of a chunk or of all, and sums of e^(logit - most), without and with the
 * temperature. */
typedef struct {
    double plain, tempered;
    float most;
} mass;

typedef struct {
    const embla_logit_walk *walk;
    size_t vector, count; /* vectors of this pass */
    double inverse;       /* 1 / temperature; 0 means no sums with a temperature */
    mass *masses;         /* count x chunks; NULL: not wanted */
    embla_best *lists;    /* threads x count; NULL: not wanted */
    mass *seen;           /* threads x count: sums seen by each thread; NULL means no floor */
    double rare,
        unlikely; /* logs of minimum shares of all and of the likeliest token, to be kept */
    embla_leader *leaders; /* threads x count; NULL means no draw */
    embla_cut cut;         /* of the draw */
    uint64_t seed, draw;   /* draw is that of vector 0 of the call */
} look;

static mass mass_of(const look *l, const float *x, size_t n)
{
    mass m = {.most = embla_softmax_max(x, n)};
    if (m.most == -INFINITY) return m;
    if (m.most == INFINITY) { /* each infinity counts 1, other logits 0 */
        for (size_t i = 0; i < n; i++) m.plain += x[i] == INFINITY;
        m.tempered = m.plain;
        return m;
    }
    m.plain = embla_softmax_mass(x, n, (double)m.most, 1.0);
    m.tempered = m.plain;
    if (l->inverse != 0.0 && l->inverse != 1.0)
        m.tempered = embla_softmax_mass(x, n, (double)m.most, l->inverse);
    return m;
}

static mass total_of(const look *l, size_t v)
{
    const mass *chunks = l->masses + v * (size_t)l->walk->chunks;
    double inverse = l->inverse != 0.0 ? l->inverse : 1.0;
    mass total = {.most = -INFINITY};
    for (int64_t c = 0; c < l->walk->chunks; c++)
        if (chunks[c].most > total.most) total.most = chunks[c].most;
    for (int64_t c = 0; c < l->walk->chunks; c++) {
        if (chunks[c].most == -INFINITY) continue;
        double gap = embla_below((double)chunks[c].most, (double)total.most);
        total.plain += chunks[c].plain * embla_exp(gap);
        total.tempered += chunks[c].tempered * embla_exp(gap * inverse);
    }
    return total;
}

static void keep_best(embla_best *list, const float *x, size_t n, int64_t first, float floor)
{
    float least = fmaxf((float)embla_best_least(list), floor);
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] >= least) || x[i] == -INFINITY) continue; /* NaN is skipped, too */
        embla_best_add(list, (embla_scored){first + (int64_t)i, (double)x[i]});
        least = fmaxf((float)embla_best_least(list), floor);
    }
}

/* Most tokens are too unlikely to be kept by top-p or min-p, whatever follows. Returns the logit
 * below which a token cannot be kept. It is based on what the thread has seen so far, so it is
 * never too high. */
static float floor_so_far(const look *l, mass *seen, const mass *chunk)
{
    if (chunk->most > seen->most) {
        seen->tempered *=
            embla_exp(embla_below((double)seen->most, (double)chunk->most) * l->inverse);
        seen->most = chunk->most;
    }
    if (chunk->most > -INFINITY)
        seen->tempered +=
            chunk->tempered *
            embla_exp(embla_below((double)chunk->most, (double)seen->most) * l->inverse);
    if (!isfinite(seen->most)) return -INFINITY;
    double floor = fmax(l->rare + embla_log(seen->tempered), l->unlikely);
    floor = (double)seen->most + floor / l->inverse;
    return (float)(floor - 1e-6 * fabs(floor) - 1e-30);
}

/* Lets 32 tokens take part in the draw, as far as they are in this chunk. */
static void draw_lot(const look *l, uint64_t draw, uint64_t lot, const float *x, embla_leader *best)
{
    embla_luck_words words;
    if (!EMBLA_PICK(lot_reaches)(l->seed, draw, lot, x, l->inverse, embla_limit_of(best), words))
        return;
    for (size_t i = 0; i < EMBLA_LOT; i++) {
        embla_scored who = {(int64_t)(lot * EMBLA_LOT + i), (double)x[i]};
        if (!(x[i] > -INFINITY) || !embla_is_inside(&l->cut, who)) continue;
        embla_leader mine = {.luck = embla_luck_of(words, i), .who = who};
        mine.key = (double)x[i] * l->inverse + mine.luck;
        if (best->who.row < 0 || embla_is_luckier(&mine, best)) *best = mine;
    }
}

static void draw_chunk(const look *l, uint64_t draw, const float *x, size_t n, int64_t first,
                       embla_leader *best)
{
    const uint64_t from = (uint64_t)first, to = from + n;
    for (uint64_t lot = from / EMBLA_LOT; lot * EMBLA_LOT < to; lot++) {
        uint64_t start = lot * EMBLA_LOT;
        if (start >= from && start + EMBLA_LOT <= to) {
            draw_lot(l, draw, lot, x + (start - from), best);
            continue;
        }
        float some[EMBLA_LOT];
        for (uint64_t i = 0; i < EMBLA_LOT; i++)
            some[i] = start + i >= from && start + i < to ? x[start + i - from] : -INFINITY;
        draw_lot(l, draw, lot, some, best);
    }
}

static void collect_logits(void *context, const embla_logits *logits)
{
    const look *l = context;
    for (size_t i = 0; i < logits->count; i++) {
        size_t vector = logits->vector + i, v = vector - l->vector;
        size_t mine = logits->slot * l->count + v;
        const float *x = logits->logits + i * logits->stride;
        float floor = -INFINITY;
        if (l->masses) {
            const mass m = mass_of(l, x, logits->n);
            l->masses[v * (size_t)l->walk->chunks + (size_t)logits->chunk] = m;
            if (l->seen) floor = floor_so_far(l, &l->seen[mine], &m);
        }
        if (l->lists) keep_best(&l->lists[mine], x, logits->n, logits->first, floor);
        if (l->leaders)
            draw_chunk(l, l->draw + vector, x, logits->n, logits->first, &l->leaders[mine]);
    }
}

/* ---- memory of a pass ---- */

static embla_status new_lists(look *l, embla_arena *arena, size_t room)
{
    size_t lists = (size_t)l->walk->threads * l->count;
    EMBLA_TRY(embla_arena_many(arena, lists, sizeof *l->lists, "lists of tokens", &l->lists));
    for (size_t i = 0; i < lists; i++) {
        embla_best *list = &l->lists[i];
        EMBLA_TRY(
            embla_arena_many(arena, room, sizeof *list->items, "the best tokens", &list->items));
        list->room = room;
    }
    return EMBLA_OK;
}

/* No token below (1 - top_p) / rows belongs to the nucleus of top-p: all such tokens together
 * cannot make up the missing share. Half of that allows for rounding. */
static embla_status new_floors(look *l, embla_arena *arena, double top_p, double min_p)
{
    size_t lists = (size_t)l->walk->threads * l->count;
    bool rare = top_p > 0.0 && top_p < 1.0 - 1e-9;
    l->rare = rare ? embla_log(0.5 * (1.0 - top_p) / (double)l->walk->head.rows) : -INFINITY;
    l->unlikely = min_p > 0.0 ? embla_log(min_p) : -INFINITY;
    if (!rare && min_p == 0.0) return EMBLA_OK;
    EMBLA_TRY(embla_arena_many(arena, lists, sizeof *l->seen, "sums so far", &l->seen));
    for (size_t i = 0; i < lists; i++) l->seen[i] = (mass){.most = -INFINITY};
    return EMBLA_OK;
}

static embla_status new_leaders(look *l, embla_arena *arena)
{
    size_t leaders = (size_t)l->walk->threads * l->count;
    EMBLA_TRY(embla_arena_many(arena, leaders, sizeof *l->leaders, "a draw", &l->leaders));
    for (size_t i = 0; i < leaders; i++)
        l->leaders[i] = (embla_leader){.key = -INFINITY, .who = {.row = -1, .score = -INFINITY}};
    return EMBLA_OK;
}

static embla_status new_masses(look *l, embla_arena *arena)
{
    return embla_arena_many(arena, l->count * (size_t)l->walk->chunks, sizeof *l->masses,
                            "sums of chunks", &l->masses);
}

/* Merges the lists of all threads for vector v into the first thread's. */
static embla_best *merge_lists(look *l, size_t v)
{
    embla_best *all = &l->lists[v];
    for (size_t t = 1; t < (size_t)l->walk->threads; t++)
        embla_best_join(all, &l->lists[t * l->count + v]);
    return all;
}

static embla_leader winner(const look *l, size_t v)
{
    embla_leader best = l->leaders[v];
    for (size_t t = 1; t < (size_t)l->walk->threads; t++) {
        const embla_leader *other = &l->leaders[t * l->count + v];
        if (other->who.row >= 0 && (best.who.row < 0 || embla_is_luckier(other, &best)))
            best = *other;
    }
    return best;
}

static embla_choice choice_of(embla_scored who, const mass *total)
{
    embla_choice none = {.token = -1, .logit = -INFINITY, .log_probability = -INFINITY};
    if (who.row < 0) return none;
    return (embla_choice){.token = (int32_t)who.row,
                          .logit = (float)who.score,
                          .log_probability = embla_below(who.score, (double)total->most) -
                                             embla_log(total->plain)};
}

/* How many vectors one pass serves; this depends on sizes alone. */
static size_t group_of(const embla_logit_walk *walk, size_t room)
{
    size_t group = LIST_BYTES / (room * sizeof(embla_scored) + 1);
    size_t most = GROUP_CHUNKS / (size_t)walk->chunks;
    if (group > most) group = most;
    if (group > GROUP_MOST) group = GROUP_MOST;
    if (group > WALK_BLOCK) group -= group % WALK_BLOCK;
    return group > 0 ? group : 1;
}

/* ---- the best ---- */

static size_t room_of(const embla_logit_walk *walk, size_t k)
{
    return k < (uint64_t)walk->head.rows ? k : (size_t)walk->head.rows;
}

static embla_status top_group(const embla_logit_walk *walk, size_t vector, size_t count, size_t k,
                              embla_choice *out)
{
    embla_arena arena = {0};
    look l = {.walk = walk, .vector = vector, .count = count};
    embla_status status = new_masses(&l, &arena);
    if (status == EMBLA_OK) status = new_lists(&l, &arena, room_of(walk, k));
    if (status == EMBLA_OK) status = embla_walk_run(walk, vector, count, NULL, collect_logits, &l);
    for (size_t v = 0; status == EMBLA_OK && v < count; v++) {
        const mass total = total_of(&l, v);
        embla_best *best = merge_lists(&l, v);
        embla_best_sort(best);
        for (size_t i = 0; i < k; i++)
            out[v * k + i] =
                choice_of(i < best->count ? best->items[i] : (embla_scored){.row = -1}, &total);
    }
    embla_arena_free(&arena);
    return status;
}

/* Choices are written to a copy first, because a later pass may fail. */
static embla_status new_choices(size_t count, size_t k, embla_arena *arena, embla_choice **out)
{
    uint64_t choices;
    if (!embla_mul_ok(count, k, &choices) || choices > PTRDIFF_MAX / sizeof **out)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%zu tokens for each of %zu vectors do not fit in memory", k, count);
    return embla_arena_many(arena, choices, sizeof **out, "chosen tokens", out);
}

embla_status embla_head_top(const embla_head *head, const float *hidden, size_t count, size_t k,
                            const embla_head_options *options, embla_choice *out)
{
    EMBLA_TRY(embla_options_check(options));
    embla_logit_walk walk;
    embla_arena arena = {0};
    embla_choice *choices = NULL;
    EMBLA_TRY(embla_walk_of(head, hidden, count, options ? options->threads : 0, out, &walk));
    if (k < 1) return embla_fail(EMBLA_ERR_ARGUMENT, "k is 0; it must be at least 1");
    if (count == 0) return EMBLA_OK;
    size_t group = group_of(&walk, room_of(&walk, k));
    embla_status status = new_choices(count, k, &arena, &choices);
    for (size_t v = 0; status == EMBLA_OK && v < count; v += group) {
        size_t n = count - v < group ? count - v : group;
        status = top_group(&walk, v, n, k, choices + v * k);
    }
    if (status == EMBLA_OK) status = embla_table_check_file(walk.head.table);
    if (status == EMBLA_OK) memcpy(out, choices, count * k * sizeof *out);
    embla_arena_free(&arena);
    return status;
}

/* ---- sampling ---- */

/* Normalized options; 0 means off. */
typedef struct {
    double temperature, top_p, min_p;
    size_t top_k;
} rules;

static double floor_of(const rules *r, float most)
{
    return r->min_p > 0.0 ? (double)most + r->temperature * embla_log(r->min_p) : -INFINITY;
}

static embla_status draw_deep(const look *first, size_t v, const rules *r, mass *total,
                              embla_scored *who)
{
    embla_logit_walk walk;
    embla_arena arena = {0};
    const embla_logit_walk *all = first->walk;
    EMBLA_TRY(embla_walk_of(&all->head, all->hidden + (first->vector + v) * all->dim, 1,
                            all->threads, who, &walk));
    look l = {.walk = &walk, .count = 1, .inverse = first->inverse};
    int row_bits = 64 - __builtin_clzll((uint64_t)walk.head.rows);
    embla_sieve s = {.walk = &walk, .inverse = l.inverse, .cut = embla_no_cut};
    s.unit = ldexp(1.0, row_bits > 10 ? 62 - row_bits : 52);
    embla_status status = new_masses(&l, &arena);
    if (status == EMBLA_OK) status = embla_walk_run(&walk, 0, 1, NULL, collect_logits, &l);
    if (status == EMBLA_OK) status = new_leaders(&l, &arena);
    if (status == EMBLA_OK)
        status = embla_arena_many(&arena, (size_t)walk.threads * 2 * EMBLA_SIEVE_BUCKETS,
                                  sizeof *s.tallies, "tallies", &s.tallies);
    if (status == EMBLA_OK) *total = total_of(&l, 0);
    s.most = total->most;
    if (status == EMBLA_OK && r->top_k > 0) status = embla_sieve_move(&s, r->top_k, 0.0);
    if (status == EMBLA_OK && r->top_p > 0.0) status = embla_sieve_move(&s, 0, r->top_p);
    l.masses = NULL;
    l.cut = s.cut;
    l.cut.floor = floor_of(r, total->most);
    l.seed = first->seed;
    l.draw = first->draw + first->vector + v;
    if (status == EMBLA_OK) status = embla_walk_run(&walk, 0, 1, NULL, collect_logits, &l);
    if (status == EMBLA_OK) *who = winner(&l, 0).who;
    embla_arena_free(&arena);
    return status;
}

/* Kept tokens, of which the likeliest are taken one by one: most are never needed. */
typedef struct {
    embla_best *kept;
    size_t taken;
} candidates;

/* The i-th likeliest token, from 0. */
static embla_scored candidate(candidates *c, size_t i)
{
    for (; c->taken <= i; c->taken++) embla_best_take(c->kept, c->kept->count - c->taken);
    return c->kept->items[c->kept->count - 1 - i];
}

/* How many of the kept tokens, the likeliest first, take part in the draw. Returns 0 if the cut
 * lies deeper than the kept tokens. Tokens below a floor are not kept and do not take part. */
static size_t count_drawable(const look *l, const rules *r, candidates *c, const mass *total)
{
    const embla_best *kept = c->kept;
    const double floor = floor_of(r, total->most);
    const bool full = kept->count == kept->room && kept->room < (uint64_t)l->walk->head.rows;
    bool deeper = full && (r->top_k == 0 || r->top_k > kept->room);
    size_t n = kept->count;
    if (deeper && r->top_k > 0) return 0;
    if (r->top_p > 0.0) {
        double all = r->top_k > 0 ? 0.0 : total->tempered, sum = 0.0;
        for (size_t i = 0; r->top_k > 0 && i < n; i++)
            all += embla_exp(embla_below(candidate(c, i).score, (double)total->most) * l->inverse);
        for (n = 0; n < kept->count && (n == 0 || sum < r->top_p * all); n++)
            sum += embla_exp(embla_below(candidate(c, n).score, (double)total->most) * l->inverse);
        deeper = deeper && sum < r->top_p * all;
    }
    if (deeper && candidate(c, n - 1).score >= floor) return 0;
    while (n > 1 && candidate(c, n - 1).score < floor) n--;
    return n;
}

static embla_scored draw_kept(const look *l, size_t v, candidates *c, size_t n)
{
    embla_leader best = {.who = {.row = -1}};
    for (size_t i = 0; i < n; i++) {
        const embla_scored who = candidate(c, i);
        uint64_t lot = (uint64_t)who.row / EMBLA_LOT;
        const float none[EMBLA_LOT] = {0};
        embla_luck_words words;
        (void)EMBLA_PICK(lot_reaches)(l->seed, l->draw + l->vector + v, lot, none, 0.0, 0.0, words);
        embla_leader mine = {.luck = embla_luck_of(words, (size_t)who.row % EMBLA_LOT), .who = who};
        mine.key = who.score * l->inverse + mine.luck;
        if (i == 0 || embla_is_luckier(&mine, &best)) best = mine;
    }
    return best.who;
}

static embla_status draw_vector(look *l, size_t v, const rules *r, embla_choice *out)
{
    mass total = total_of(l, v);
    embla_scored who = {.row = -1};
    if (l->leaders) {
        who = winner(l, v).who;
    } else if (total.most > -INFINITY) {
        candidates c = {.kept = merge_lists(l, v)};
        embla_best_turn(c.kept);
        size_t n = count_drawable(l, r, &c, &total);
        if (n > 0)
            who = draw_kept(l, v, &c, n);
        else
            EMBLA_TRY(draw_deep(l, v, r, &total, &who));
    }
    *out = choice_of(who, &total);
    return EMBLA_OK;
}

static embla_status sample_group(const embla_logit_walk *walk, size_t vector, size_t count,
                                 size_t room, const rules *r, const embla_sample_options *options,
                                 embla_choice *out)
{
    embla_arena arena = {0};
    look l = {.walk = walk,
              .vector = vector,
              .count = count,
              .inverse = 1.0 / r->temperature,
              .cut = embla_no_cut,
              .seed = options->seed,
              .draw = (uint64_t)options->step};
    embla_status status = new_masses(&l, &arena);
    if (status == EMBLA_OK)
        status = room > 0 ? new_lists(&l, &arena, room) : new_leaders(&l, &arena);
    if (status == EMBLA_OK && room > 0 && r->top_k == 0)
        status = new_floors(&l, &arena, r->top_p, r->min_p);
    if (status == EMBLA_OK) status = embla_walk_run(walk, vector, count, NULL, collect_logits, &l);
    for (size_t v = 0; status == EMBLA_OK && v < count; v++)
        status = draw_vector(&l, v, r, &out[v]);
    embla_arena_free(&arena);
    return status;
}

static embla_status check_options(const embla_sample_options *o)
{
    if (!isfinite(o->temperature) || o->temperature < 0.0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "temperature is %g; it must be finite and 0 or greater", o->temperature);
    if (!(o->top_p >= 0.0 && o->top_p <= 1.0) || !(o->min_p >= 0.0 && o->min_p <= 1.0))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "top_p is %g and min_p is %g; both must be from 0 to 1", o->top_p,
                          o->min_p);
    return EMBLA_OK;
}

embla_status embla_head_sample(const embla_head *head, const float *hidden, size_t count,
                               const embla_sample_options *options, embla_choice *out)
{
    EMBLA_TRY(embla_options_check(options));
    const embla_sample_options none = {0};
    embla_logit_walk walk;
    embla_arena arena = {0};
    embla_choice *choices = NULL;
    if (!options) options = &none;
    EMBLA_TRY(check_options(options));
    if (options->temperature == 0.0)
        return embla_head_top(head, hidden, count, 1,
                              &(embla_head_options){.threads = options->threads}, out);
    EMBLA_TRY(embla_walk_of(head, hidden, count, options->threads, out, &walk));
    if (count == 0) return EMBLA_OK;
    const uint64_t rows = (uint64_t)walk.head.rows;
    const rules r = {.temperature = fmax(options->temperature, EMBLA_COLDEST),
                     .top_p = options->top_p < 1.0 ? options->top_p : 0.0,
                     .min_p = options->min_p,
                     .top_k = options->top_k < rows ? options->top_k : 0};
    size_t room = r.top_k > 0 && r.top_k < ROOM ? r.top_k : room_of(&walk, ROOM);
    if (r.top_k == 0 && r.top_p == 0.0 && r.min_p == 0.0) room = 0;
    size_t group = group_of(&walk, room);
    embla_status status = new_choices(count, 1, &arena, &choices);
    for (size_t v = 0; status == EMBLA_OK && v < count; v += group) {
        size_t n = count - v < group ? count - v : group;
        status = sample_group(&walk, v, n, room, &r, options, choices + v);
    }
    if (status == EMBLA_OK) status = embla_table_check_file(walk.head.table);
    if (status == EMBLA_OK) memcpy(out, choices, count * sizeof *out);
    embla_arena_free(&arena);
    return status;
}
