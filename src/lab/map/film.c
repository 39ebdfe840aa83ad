/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the moments of a film. All memory for rows is taken at the start, so that a film of a
 * long training cannot fail for lack of it at the end.
 */
#include "map/film.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/kernels.h"
#include "base/options.h"
#include "base/shown.h"

enum { ROWS_MOST = 1024, MOMENTS = 120, MOMENTS_MOST = 1000, WORD_MOST = 200 };
static const uint64_t memory_most = UINT64_C(256) << 20;

/* ---- making ---- */

static embla_status check_rows(const embla_table *table, const embla_film_options *o, size_t count)
{
    if (count > ROWS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "a film of %zu rows; the maximum is %d", count,
                          ROWS_MOST);
    if (o->rows) return embla_table_check_rows(table, o->rows, count);
    if ((int64_t)count <= embla_table_rows(table)) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_RANGE, "a film of %zu rows, but the table has %" PRId64, count,
                      embla_table_rows(table));
}

static embla_status check_moments(const embla_film_options *o)
{
    if (o->moments == 1 || o->moments > MOMENTS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "moments is %zu; it must be 2 to %d", o->moments,
                          MOMENTS_MOST);
    if (o->first < 0 || o->steps < o->first)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the film begins after step %" PRId64 " of %" PRId64
                          "; first must be from 0 to steps",
                          o->first, o->steps);
    return EMBLA_OK;
}

/* The numbers of all moments, and one more: the end of a training that is interrupted. */
static embla_status check_memory(embla_film *f, uint64_t *numbers)
{
    uint64_t bytes = 0;
    if (embla_mul_ok(f->count, f->dim, numbers) &&
        embla_mul_ok(*numbers, f->planned + 1, numbers) &&
        embla_mul_ok(*numbers, sizeof(uint16_t), &bytes) && bytes <= memory_most) {
        f->bytes = (int64_t)bytes;
        return EMBLA_OK;
    }
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%zu moments of %zu rows of %zu numbers take more than %" PRIu64
                      " MB; choose fewer rows or moments",
                      f->planned, f->count, f->dim, memory_most >> 20);
}

/* Copies a word, with characters that cannot be seen as escapes. */
static embla_status copy_word(embla_film *f, const char *word, const char **out)
{
    char text[WORD_MOST + EMBLA_SHOWN_CHARACTER + 3];
    size_t used = 0, length = strlen(word);
    while (length > 0 && used < WORD_MOST) {
        size_t taken;
        (void)embla_show_character(word, length, false, NULL, text + used, &taken);
        used += strlen(text + used);
        word += taken;
        length -= taken;
    }
    if (length > 0) used += (size_t)snprintf(text + used, 3, "..");
    return embla_arena_text(&f->arena, text, used, out);
}

static embla_status copy_words(embla_film *f, const char *const *words)
{
    EMBLA_TRY(
        embla_arena_many(&f->arena, f->count, sizeof *f->words, "the words of a film", &f->words));
    for (size_t i = 0; words && i < f->count; i++)
        if (words[i]) EMBLA_TRY(copy_word(f, words[i], &f->words[i]));
    return EMBLA_OK;
}

static embla_status copy_rows(embla_film *f, const int64_t *rows)
{
    int64_t *own;
    EMBLA_TRY(embla_arena_many(&f->arena, f->count, sizeof *own, "the rows of a film", &own));
    for (size_t i = 0; i < f->count; i++) own[i] = rows ? rows[i] : (int64_t)i;
    f->rows = own;
    return EMBLA_OK;
}

/* Finds axes that have no direction, or the same, whatever is learned: before a long training. */
static embla_status check_axes(const int64_t *a)
{
    for (size_t i = 0; i < 4; i += 2)
        if (a[i] == a[i + 1])
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "an axis from row %" PRId64 " to itself has no direction", a[i]);
    if ((a[0] == a[2] && a[1] == a[3]) || (a[0] == a[3] && a[1] == a[2]))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "both axes are those of rows %" PRId64 " and %" PRId64
                          "; choose other rows for one of them",
                          a[0], a[1]);
    return EMBLA_OK;
}

/* The axes as indices of the film's rows. */
static embla_status copy_axes(embla_film *f, const int64_t *axes)
{
    int64_t *own;
    if (!axes) return EMBLA_OK;
    EMBLA_TRY(check_axes(axes));
    EMBLA_TRY(embla_arena_many(&f->arena, 4, sizeof *own, "the axes of a film", &own));
    for (size_t i = 0; i < 4; i++) {
        size_t at = 0;
        while (at < f->count && f->rows[at] != axes[i]) at++;
        if (at == f->count)
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "row %" PRId64 " is the end of an axis, but not a row of the film",
                              axes[i]);
        own[i] = (int64_t)at;
    }
    f->axes = own;
    return EMBLA_OK;
}

static embla_status fill(const embla_film_options *o, uint64_t numbers, embla_film *f)
{
    EMBLA_TRY(copy_rows(f, o->rows));
    EMBLA_TRY(copy_words(f, o->words));
    EMBLA_TRY(copy_axes(f, o->axes));
    if (o->title) EMBLA_TRY(embla_arena_text(&f->arena, o->title, strlen(o->title), &f->title));
    EMBLA_TRY(embla_arena_many(&f->arena, f->planned + 1, sizeof *f->moments,
                               "the moments of a film", &f->moments));
    EMBLA_TRY(embla_arena_many(&f->arena, f->count * f->dim, sizeof *f->now, "the rows of a film",
                               &f->now));
    return embla_arena_many(&f->arena, numbers, sizeof *f->numbers, "the moments of a film",
                            &f->numbers);
}

embla_status embla_film_new(const embla_table *table, const embla_film_options *options,
                            embla_film **out)
{
    const embla_film_options none = {0}, *o = options ? options : &none;
    embla_film made = {0}, *film = NULL;
    uint64_t numbers = 0;
    EMBLA_TRY(embla_options_check(options));
    EMBLA_NEED(table);
    EMBLA_NEED(out);
    uint64_t rows = o->row_count > 0 ? o->row_count : (uint64_t)embla_table_rows(table);
    EMBLA_TRY(check_rows(table, o, (size_t)rows));
    EMBLA_TRY(check_moments(o));
    made.count = (size_t)rows;
    made.dim = embla_table_dim(table);
    made.decode = embla_dtype_decoder(EMBLA_F16, embla_kernels_get()->isa);
    made.encode = embla_dtype_encoder(EMBLA_F16, embla_kernels_get()->isa);
    made.table_rows = embla_table_rows(table);
    made.first = o->first;
    made.steps = o->steps;
    made.guess = o->guess;
    made.planned = o->moments > 0 ? o->moments : MOMENTS;
    if ((int64_t)made.planned > made.steps - made.first + 1)
        made.planned = (size_t)(made.steps - made.first + 1);
    EMBLA_TRY(check_memory(&made, &numbers));
    embla_status status = fill(o, numbers, &made);
    if (status == EMBLA_OK)
        status = embla_arena_many(&made.arena, 1, sizeof *film, "a film", &film);
    if (status != EMBLA_OK) {
        embla_arena_free(&made.arena);
        return status;
    }
    *film = made;
    *out = film;
    return EMBLA_OK;
}

void embla_film_free(embla_film *film)
{
    if (!film) return;
    embla_arena arena = film->arena; /* the arena holds the handle itself */
    embla_arena_free(&film->texts);
    embla_arena_free(&arena);
}

embla_status embla_film_describe(const embla_film *film, embla_film_info *out)
{
    EMBLA_NEED(film);
    EMBLA_NEED(out);
    *out = (embla_film_info){.rows = film->count,
                             .dim = film->dim,
                             .moments = film->taken,
                             .step = film->taken > 0 ? film->moments[film->taken - 1].step : -1,
                             .bytes = film->bytes};
    return EMBLA_OK;
}

/* ---- moments ---- */

/* The step of planned moment n. Each of the first steps is a moment; later ones are further apart,
 * with the cube of n: rows move most at first. */
static int64_t planned_step(const embla_film *f, size_t n)
{
    double share = f->planned > 1 ? (double)n / (double)(f->planned - 1) : 0;
    int64_t spread = (int64_t)((double)(f->steps - f->first) * share * share * share);
    if (n + 1 == f->planned) return f->steps;
    return f->first + (spread > (int64_t)n ? spread : (int64_t)n);
}

bool embla_film_due(embla_film *film, int64_t step, double loss)
{
    if (!film) return false;
    if (isfinite(loss)) {
        film->loss_sum += loss;
        film->loss_count += 1;
    }
    return film->next < film->planned && step >= planned_step(film, film->next);
}

static embla_status check_add(const embla_film *f, const embla_table *table, int64_t step)
{
    if (embla_table_dim(table) != f->dim || embla_table_rows(table) != f->table_rows)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "a table of %" PRId64 " x %zu in a film of one of %" PRId64 " x %zu",
                          embla_table_rows(table), embla_table_dim(table), f->table_rows, f->dim);
    if (f->taken > f->planned)
        return embla_fail(EMBLA_ERR_RANGE, "the film has its %zu moments", f->taken);
    if (step >= f->first && (f->taken == 0 || step > f->moments[f->taken - 1].step))
        return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "a moment after step %" PRId64 ", but the film is at step %" PRId64, step,
                      f->taken > 0 ? f->moments[f->taken - 1].step : f->first);
}

embla_status embla_film_add(embla_film *film, const embla_table *table, int64_t step,
                            const char *text, size_t length)
{
    const embla_lookup_options alone = {.threads = 1};
    EMBLA_NEED(film);
    EMBLA_NEED(table);
    EMBLA_TRY(check_add(film, table, step));
    size_t n = film->count * film->dim;
    embla_film_moment m = {.step = step, .loss = NAN};
    EMBLA_TRY(embla_lookup_rows(table, film->rows, film->count, &alone, film->now));
    if (text && length > 0) {
        EMBLA_TRY(embla_arena_text(&film->texts, text, length, &m.text));
        m.length = length;
    }
    film->encode(film->now, n, 1, film->numbers + film->taken * n);
    if (film->loss_count > 0) m.loss = film->loss_sum / film->loss_count;
    film->loss_sum = film->loss_count = 0;
    film->moments[film->taken++] = m;
    while (film->next < film->planned && planned_step(film, film->next) <= step) film->next++;
    return EMBLA_OK;
}
