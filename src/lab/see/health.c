/* SPDX-License-Identifier: Apache-2.0 */
/* Finds rows that look wrong: two passes over the table, and between them a closer look at rows
 * that may be alike (see/alike.h) and at rows known to be unused.
 *
 * The ranking follows the idea of "Fishing for Magikarp" (Land and Bartolo, 2024): tokens that
 * training never met lie close together. As in the paper, rows of a tied table or of a head are
 * ranked by their cosine with the mean of unused rows after the table's mean is subtracted (the
 * paper's indicator without the mean). Rows of the input table of an untied model, which only
 * weight decay moves, are ranked by their norm.
 *
 * Four things differ from the paper. Unused rows are not a list made by hand for each model: they
 * are the rows given, or padding, or the largest group of rows that share a direction. Rows that
 * are not finite do not count, and rows of zeros do not count as unused. The first principal
 * component is never subtracted. No model is asked to confirm a candidate.
 *
 * Sums over rows are computed in double for fixed parts of the table, and the parts are added in
 * order.
 */
#include <math.h>

#include "base/arena.h"
#include "base/kernels.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "embla_lab.h"
#include "near/order.h"
#include "see/alike.h"

enum { PARTS_MOST = 256, PART_LEAST = 128 }; /* parts of a table; minimum rows of a part */

struct embla_health {
    embla_arena arena; /* all of it */
    embla_health_info info;
    int64_t *nonfinite, *zero; /* row numbers */
    embla_health_duplicate *duplicates;
    embla_health_group *groups; /* largest first */
    size_t group_count;
    int64_t *members; /* rows of all groups, group by group */
    int64_t *unused;  /* unused rows, with which the others are compared */
    int64_t unused_count;
    embla_neighbour *ranked;
    int64_t ranked_count;
};

/* Working memory. */
typedef struct {
    embla_health *health;
    const embla_table *table;
    int64_t row_count; /* of the table */
    size_t dim;
    embla_health_options options;
    embla_alike alike;
    embla_arena arena;
    int threads;
    int64_t parts;    /* number of parts of the table */
    int64_t part;     /* rows of a part */
    double *sums;     /* parts x 2 x dim: sums of rows and of unit rows */
    float *rows;      /* parts x dim: the decoded row of each part */
    double *mean;     /* dim */
    double *toward;   /* dim: from the mean of the table to the mean of unused rows */
    double *distance; /* distance of each row from the mean */
    double *score;    /* what each row is ranked by */
    embla_key *keys, *space;
} work;

static embla_status new_array(embla_arena *arena, int64_t count, size_t bytes, void *out)
{
    return embla_arena_many(arena, (uint64_t)count, bytes, "the health of rows", out);
}

/* ---- first pass: norms, sums, data for see/alike.h ---- */

static void examine_part(work *w, int64_t part)
{
    const embla_kernels *kernels = embla_kernels_get();
    size_t dim = w->dim;
    double *sum = w->sums + (size_t)part * 2 * dim, *units = sum + dim;
    float *values = w->rows + (size_t)part * dim;
    int64_t end = (part + 1) * w->part;
    if (end > w->row_count) end = w->row_count;
    for (int64_t row = part * w->part; row < end; row++) {
        bool finite = embla_alike_read(&w->alike, row, values);
        embla_alike_note(&w->alike, row, values, finite);
        if (!(w->alike.norms[row] > 0)) continue;
        kernels->accumulate(values, 1.0, dim, sum);
        kernels->accumulate(values, 1.0 / w->alike.norms[row], dim, units);
    }
}

static embla_status examine_parts(void *job, size_t first, size_t end, size_t slot)
{
    (void)slot;
    for (size_t part = first; part < end; part++) examine_part(job, (int64_t)part);
    return EMBLA_OK;
}

static double square(const double *x, size_t dim)
{
    double sum = 0;
    for (size_t k = 0; k < dim; k++) sum += x[k] * x[k];
    return sum;
}

static embla_status first_pass(work *w)
{
    size_t dim = w->dim;
    EMBLA_TRY(embla_table_check_file(w->table));
    EMBLA_TRY(embla_share(w->threads, (size_t)w->parts, 1, examine_parts, w));
    EMBLA_TRY(embla_table_check_file(w->table));
    for (int64_t part = 1; part < w->parts; part++)
        for (size_t k = 0; k < 2 * dim; k++) w->sums[k] += w->sums[(size_t)part * 2 * dim + k];
    return EMBLA_OK;
}

/* ---- the summary ---- */

static void count_rows(work *w)
{
    embla_health_info *s = &w->health->info;
    *s = (embla_health_info){
        .rows = w->row_count, .dim = (int64_t)w->dim, .uncertain = w->alike.uncertain};
    for (int64_t row = 0; row < s->rows; row++) {
        s->nonfinite += w->alike.norms[row] < 0;
        s->zero += w->alike.norms[row] == 0;
        s->duplicates += w->alike.original[row] != row;
    }
    if (w->options.tokens > 0 && w->options.tokens < s->rows)
        s->padding = s->rows - w->options.tokens;
}

/* Interpolates linearly between two values, as numpy does. */
static double quantile(const embla_key *keys, const double *norms, int64_t count, double share)
{
    double at = share * (double)(count - 1);
    int64_t low = (int64_t)at, high = low + 1 < count ? low + 1 : low;
    double a = norms[keys[low].row], b = norms[keys[high].row];
    return a + (b - a) * (at - (double)low);
}

/* Statistics of the norms of finite rows, which are sorted by norm. */
static void norm_facts(work *w, int64_t count)
{
    static const double shares[EMBLA_HEALTH_QUANTILES] = {0.001, 0.01, 0.05, 0.25, 0.5,
                                                          0.75,  0.95, 0.99, 0.999};
    embla_health_info *s = &w->health->info;
    const double *norms = w->alike.norms;
    double sum = 0, squares = 0;
    s->norm_min = norms[w->keys[0].row];
    s->norm_max = norms[w->keys[count - 1].row];
    for (int i = 0; i < EMBLA_HEALTH_QUANTILES; i++)
        s->norm_quantiles[i] = quantile(w->keys, norms, count, shares[i]);
    for (int64_t i = 0; i < count; i++) sum += norms[w->keys[i].row];
    s->norm_mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++) {
        double norm = norms[w->keys[i].row], gap = norm - s->norm_mean;
        double span = s->norm_max - s->norm_min;
        int bin = span > 0 ? (int)((norm - s->norm_min) / span * EMBLA_HEALTH_BINS) : 0;
        s->norm_bins[bin < EMBLA_HEALTH_BINS ? bin : EMBLA_HEALTH_BINS - 1]++;
        squares += gap * gap;
    }
    s->norm_deviation = sqrt(squares / (double)count);
}

/* Sorts the finite rows by a number of each, to keys; returns how many there are. */
static int64_t sort_rows(work *w, const double *numbers, bool largest_first)
{
    int64_t count = 0;
    for (int64_t row = 0; row < w->row_count; row++) {
        if (w->alike.norms[row] < 0) continue;
        w->keys[count++] = (embla_key){
            largest_first ? embla_key_down(numbers[row]) : embla_key_up(numbers[row]), row};
    }
    embla_order(w->keys, w->space, (size_t)count);
    return count;
}

static void summarize(work *w)
{
    embla_health_info *s = &w->health->info;
    size_t dim = w->dim;
    count_rows(w);
    int64_t finite = sort_rows(w, w->alike.norms, false);
    double whole = (double)(finite - s->zero);
    if (finite > 0) norm_facts(w, finite);
    for (size_t k = 0; k < dim; k++) w->mean[k] = finite > 0 ? w->sums[k] / (double)finite : 0;
    s->mean_norm = sqrt(square(w->mean, dim));
    s->anisotropy = whole < 2 ? NAN : (square(w->sums + dim, dim) - whole) / (whole * (whole - 1));
}

/* ---- rows worth naming ---- */

static embla_status list_rows(work *w)
{
    embla_health *h = w->health;
    int64_t at[3] = {0, 0, 0};
    EMBLA_TRY(new_array(&h->arena, h->info.nonfinite, sizeof(int64_t), &h->nonfinite));
    EMBLA_TRY(new_array(&h->arena, h->info.zero, sizeof(int64_t), &h->zero));
    EMBLA_TRY(new_array(&h->arena, h->info.duplicates, sizeof *h->duplicates, &h->duplicates));
    for (int64_t row = 0; row < w->row_count; row++) {
        if (w->alike.norms[row] < 0) h->nonfinite[at[0]++] = row;
        if (w->alike.norms[row] == 0) h->zero[at[1]++] = row;
        if (w->alike.original[row] == row) continue;
        h->duplicates[at[2]++] =
            (embla_health_duplicate){.row = row, .original = w->alike.original[row]};
    }
    return EMBLA_OK;
}

/* Lists groups, the largest first; groups of equal size are ordered by their first row. */
static embla_status list_groups(work *w)
{
    embla_health *h = w->health;
    int64_t rows = w->row_count, *counts = NULL, *places = NULL, in_groups = 0;
    size_t found = 0;
    EMBLA_TRY(new_array(&w->arena, rows, sizeof *counts, &counts));
    EMBLA_TRY(new_array(&w->arena, rows, sizeof *places, &places));
    for (int64_t row = 0; row < rows; row++) counts[w->alike.first[row]]++;
    for (int64_t row = 0; row < rows; row++)
        if (counts[row] > 1)
            w->keys[found++] = (embla_key){embla_key_down((double)counts[row]), row};
    embla_order(w->keys, w->space, found);
    EMBLA_TRY(new_array(&h->arena, (int64_t)found, sizeof *h->groups, &h->groups));
    for (size_t i = 0; i < found; i++) in_groups += counts[w->keys[i].row];
    EMBLA_TRY(new_array(&h->arena, in_groups, sizeof(int64_t), &h->members));
    int64_t *members = h->members;
    for (size_t i = 0; i < found; i++) {
        int64_t first = w->keys[i].row;
        h->groups[i] = (embla_health_group){
            .count = counts[first], .rows = members, .norm_min = INFINITY, .cosine_min = 1};
        members += counts[first];
        counts[first] = 0;
        places[first] = (int64_t)i + 1; /* 0 means that the row is in no group */
    }
    h->group_count = found;
    for (int64_t row = 0; row < rows; row++) {
        int64_t first = w->alike.first[row];
        if (places[first] == 0) continue;
        embla_health_group *mine = &h->groups[places[first] - 1];
        double norm = w->alike.norms[row];
        h->members[mine->rows - h->members + counts[first]++] = row;
        mine->norm_min = fmin(mine->norm_min, norm);
        mine->norm_max = fmax(mine->norm_max, norm);
        mine->cosine_min = fmin(mine->cosine_min, w->alike.cosine[row]);
    }
    return EMBLA_OK;
}

/* ---- unused rows ---- */

/* Uses those of count rows that are finite and not zero. If list is NULL, these are the rows from
 * first on. */
static embla_status set_unused(work *w, const int64_t *list, int64_t first, int64_t count)
{
    embla_health *h = w->health;
    EMBLA_TRY(new_array(&h->arena, count, sizeof(int64_t), &h->unused));
    for (int64_t i = 0; i < count; i++) {
        int64_t row = list ? list[i] : first + i;
        if (w->alike.norms[row] > 0) h->unused[h->unused_count++] = row;
    }
    return EMBLA_OK;
}

static embla_status find_unused(work *w)
{
    embla_health *h = w->health;
    const embla_health_options *o = &w->options;
    /* Two rows may share a direction by chance, and with few dims all do. */
    enum { GROUP_LEAST = 3, DIM_LEAST = 8 };
    if (o->untied) return EMBLA_OK;
    if (o->unused) return set_unused(w, o->unused, 0, (int64_t)o->unused_count);
    if (h->info.padding > 0) EMBLA_TRY(set_unused(w, NULL, o->tokens, h->info.padding));
    if (h->unused_count > 0 || h->group_count == 0 || h->groups[0].count < GROUP_LEAST ||
        w->dim < DIM_LEAST)
        return EMBLA_OK;
    return set_unused(w, h->groups[0].rows, 0, h->groups[0].count);
}

/* The vector from the table's mean to the mean of unused rows; returns false if it is too short to
 * mean anything. */
static bool find_toward(work *w)
{
    const embla_kernels *kernels = embla_kernels_get();
    embla_health *h = w->health;
    size_t dim = w->dim;
    double length = 0;
    if (h->unused_count == 0) return false;
    for (int64_t i = 0; i < h->unused_count; i++) {
        (void)embla_alike_read(&w->alike, h->unused[i], w->rows);
        kernels->accumulate(w->rows, 1.0, dim, w->toward);
    }
    for (size_t k = 0; k < dim; k++) {
        w->toward[k] /= (double)h->unused_count;
        length += w->toward[k] * w->toward[k];
        w->toward[k] -= w->mean[k];
    }
    /* If all rows are unused, for example, only rounding errors are left. */
    return sqrt(square(w->toward, dim)) > 1e-9 * fmax(sqrt(length), h->info.mean_norm);
}

/* ---- second pass: distances from the mean, cosines with the unused rows ---- */

/* Eight partial sums, so that one addition need not wait for the one before. They are added in
 * order. */
static void measure(work *w, int64_t row, const float *values)
{
    size_t dim = w->dim, whole = dim / 8 * 8;
    double squares[8] = {0}, along[8] = {0}, length, dot;
    for (size_t k = 0; k < whole; k += 8) {
        for (size_t i = 0; i < 8; i++) {
            double gap = (double)values[k + i] - w->mean[k + i];
            squares[i] += gap * gap;
            along[i] += gap * w->toward[k + i];
        }
    }
    for (size_t k = whole; k < dim; k++) {
        double gap = (double)values[k] - w->mean[k];
        squares[k - whole] += gap * gap;
        along[k - whole] += gap * w->toward[k];
    }
    length = squares[0];
    dot = along[0];
    for (size_t i = 1; i < 8; i++) {
        length += squares[i];
        dot += along[i];
    }
    w->distance[row] = sqrt(length);
    w->score[row] = dot;
}

static void measure_part(work *w, int64_t part)
{
    float *values = w->rows + (size_t)part * w->dim;
    int64_t end = (part + 1) * w->part;
    if (end > w->row_count) end = w->row_count;
    for (int64_t row = part * w->part; row < end; row++)
        if (w->alike.norms[row] >= 0 && embla_alike_read(&w->alike, row, values))
            measure(w, row, values);
}

static embla_status measure_parts(void *job, size_t first, size_t end, size_t slot)
{
    (void)slot;
    for (size_t part = first; part < end; part++) measure_part(job, (int64_t)part);
    return EMBLA_OK;
}

static embla_status second_pass(work *w)
{
    embla_health_info *s = &w->health->info;
    double count = (double)(s->rows - s->nonfinite), sum = 0, squares = 0;
    EMBLA_TRY(embla_share(w->threads, (size_t)w->parts, 1, measure_parts, w));
    EMBLA_TRY(embla_table_check_file(w->table));
    if (count == 0) return EMBLA_OK;
    for (int64_t row = 0; row < s->rows; row++) sum += w->distance[row];
    s->from_mean = sum / count;
    for (int64_t row = 0; row < s->rows; row++) {
        double gap = w->distance[row] - s->from_mean;
        if (w->alike.norms[row] >= 0) squares += gap * gap;
    }
    s->from_mean_deviation = sqrt(squares / count);
    return EMBLA_OK;
}

/* ---- the ranking ---- */

static embla_status rank(work *w)
{
    embla_health *h = w->health;
    bool by_norm = h->info.ranked_by == EMBLA_HEALTH_RANKING_NORM;
    double length = sqrt(square(w->toward, w->dim));
    for (int64_t row = 0; row < w->row_count && !by_norm; row++) {
        double both = w->distance[row] * length;
        w->score[row] = both > 0 ? w->score[row] / both : 0;
    }
    const double *numbers = by_norm ? w->alike.norms : w->score;
    h->ranked_count = sort_rows(w, numbers, !by_norm);
    EMBLA_TRY(new_array(&h->arena, h->ranked_count, sizeof *h->ranked, &h->ranked));
    for (int64_t i = 0; i < h->ranked_count; i++)
        h->ranked[i] = (embla_neighbour){w->keys[i].row, numbers[w->keys[i].row]};
    return EMBLA_OK;
}

/* ---- all of it ---- */

static embla_status check(const embla_table *table, const embla_health_options *o)
{
    EMBLA_TRY(embla_threads_check(o->threads));
    if (o->tokens < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "tokens is %" PRId64 "; it must be 0 or greater",
                          o->tokens);
    if (o->alike != 0 && !(o->alike >= 0.9 && o->alike < 1))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the cosine threshold is %g; it must be at least 0.9 and below 1",
                          o->alike);
    if (o->unused_count > 0 && !o->unused)
        return embla_fail(EMBLA_ERR_ARGUMENT, "unused is NULL, but unused_count is %zu",
                          o->unused_count);
    const int64_t rows = embla_table_rows(table);
    for (size_t i = 0; o->unused && i < o->unused_count; i++)
        if ((uint64_t)o->unused[i] >= (uint64_t)rows)
            return embla_fail(EMBLA_ERR_RANGE,
                              "unused row %" PRId64 " at index %zu; the table has %" PRId64 " rows",
                              o->unused[i], i, rows);
    return EMBLA_OK;
}

static embla_status prepare(work *w)
{
    int64_t rows = w->row_count, dim = (int64_t)w->dim;
    double alike = w->options.alike > 0 ? w->options.alike : 0.999999;
    w->part = (rows + PARTS_MOST - 1) / PARTS_MOST;
    if (w->part < PART_LEAST) w->part = PART_LEAST;
    w->parts = (rows + w->part - 1) / w->part;
    w->threads = embla_threads_for(w->options.threads,
                                   (size_t)rows * embla_table_row_bytes(w->table)); /* fits */
    EMBLA_TRY(new_array(&w->arena, w->parts * 2 * dim, sizeof(double), &w->sums));
    EMBLA_TRY(new_array(&w->arena, w->parts * dim, sizeof(float), &w->rows));
    EMBLA_TRY(new_array(&w->arena, dim, sizeof(double), &w->mean));
    EMBLA_TRY(new_array(&w->arena, dim, sizeof(double), &w->toward));
    EMBLA_TRY(new_array(&w->arena, rows, sizeof(double), &w->distance));
    EMBLA_TRY(new_array(&w->arena, rows, sizeof(double), &w->score));
    EMBLA_TRY(new_array(&w->arena, rows, sizeof(embla_key), &w->keys));
    EMBLA_TRY(new_array(&w->arena, rows, sizeof(embla_key), &w->space));
    EMBLA_TRY(embla_alike_new(w->table, alike, &w->alike));
    w->alike.threads = w->threads;
    return EMBLA_OK;
}

static embla_status examine(work *w)
{
    embla_health *h = w->health;
    EMBLA_TRY(prepare(w));
    EMBLA_TRY(first_pass(w));
    EMBLA_TRY(embla_alike_find(&w->alike));
    summarize(w);
    EMBLA_TRY(list_rows(w));
    EMBLA_TRY(list_groups(w));
    EMBLA_TRY(find_unused(w));
    h->info.ranked_by = find_toward(w) ? EMBLA_HEALTH_RANKING_UNUSED : EMBLA_HEALTH_RANKING_NORM;
    if (h->info.ranked_by == EMBLA_HEALTH_RANKING_NORM) h->unused_count = 0;
    EMBLA_TRY(second_pass(w));
    return rank(w);
}

embla_status embla_health_new(const embla_table *table, const embla_health_options *options,
                              embla_health **out)
{
    EMBLA_TRY(embla_options_check(options));
    embla_arena arena = {0};
    work w = {.table = table, .row_count = embla_table_rows(table), .dim = embla_table_dim(table)};
    if (options) w.options = *options;
    EMBLA_NEED(table);
    EMBLA_NEED(out);
    EMBLA_TRY(check(table, &w.options));
    EMBLA_TRY(new_array(&arena, 1, sizeof *w.health, &w.health));
    w.health->arena = arena;
    embla_status status = examine(&w);
    embla_alike_free(&w.alike);
    embla_arena_free(&w.arena);
    if (status != EMBLA_OK) {
        embla_health_free(w.health);
        return status;
    }
    *out = w.health;
    return EMBLA_OK;
}

void embla_health_free(embla_health *health)
{
    if (!health) return;
    embla_arena arena = health->arena; /* the arena holds the struct that it is part of */
    embla_arena_free(&arena);
}

/* ---- results ---- */

embla_status embla_health_describe(const embla_health *health, embla_health_info *out)
{
    EMBLA_NEED(health);
    EMBLA_NEED(out);
    *out = health->info;
    return EMBLA_OK;
}

const embla_health_group *embla_health_groups(const embla_health *health, size_t *count)
{
    *count = health ? health->group_count : 0;
    return health ? health->groups : NULL;
}

const embla_neighbour *embla_health_ranked(const embla_health *health, size_t *count)
{
    *count = health ? (size_t)health->ranked_count : 0;
    return health ? health->ranked : NULL;
}

const int64_t *embla_health_unused(const embla_health *health, size_t *count)
{
    *count = health ? (size_t)health->unused_count : 0;
    return health ? health->unused : NULL;
}

const int64_t *embla_health_nonfinite(const embla_health *health, size_t *count)
{
    *count = health ? (size_t)health->info.nonfinite : 0;
    return health ? health->nonfinite : NULL;
}

const int64_t *embla_health_zero(const embla_health *health, size_t *count)
{
    *count = health ? (size_t)health->info.zero : 0;
    return health ? health->zero : NULL;
}

const embla_health_duplicate *embla_health_duplicates(const embla_health *health, size_t *count)
{
    *count = health ? (size_t)health->info.duplicates : 0;
    return health ? health->duplicates : NULL;
}
