/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a film as one self-contained page: page/film.html with the data of the film.
 *
 * The data are base64 in script elements of type text/plain, so that no byte of a word can end the
 * element or become part of the page:
 *   data-film  JSON: words, steps, losses, shares of variance, pairs, texts
 *   data-xy    coordinates, as film_code.c has them
 *   data-near  the nearest rows of every row: two bytes for the row (0xffff means none), two for
 *              32,767 times the cosine. Of NEAR_MOMENTS moments, or fewer if they were too many
 * bytes
 */
#include <math.h>
#include <string.h>

#include "base/base64.h"
#include "base/half.h"
#include "files/durable.h"
#include "map/film.h"

enum { NEAR = 6, PAIRS = 6, NEAR_MOMENTS = 60, NEAR_BYTES = 160000, DIGITS = 5 };

/* Two rows that are near each other. */
typedef struct {
    float cosine; /* -2 means that there is none */
    uint32_t a, b;
} near_pair;

/* What the page shows. */
typedef struct {
    const embla_film *film;
    embla_arena arena;
    embla_film_view view;
    size_t every;      /* the nearest rows are known at every so many moments, and at the last */
    size_t near;       /* nearest rows of each */
    float *units;      /* count x dim: rows of a moment, of norm 1 or 0 */
    bool *known;       /* count: whether the row has a direction */
    float *turned;     /* dim x count: units */
    float *cosines_of; /* count: of one row with the rows after it */
    near_pair *found;  /* count x near: a is the row itself */
    uint8_t *bytes;    /* the same, as the page has them */
    near_pair pairs[PAIRS]; /* the nearest of all in the last moment */
    float *cosines;         /* moments x PAIRS: of these pairs */
} film_page;

/* The file that is written, and the base64 that is on the way to it. */
typedef struct {
    embla_durable *file;
    embla_status status;
    embla_base64 left;
} film_output;

/* ---- nearest rows ---- */

/* Reads n rows of a moment from `first` on, and divides each by its norm. */
static void read_units(film_page *p, size_t moment, size_t first, size_t n)
{
    size_t dim = p->film->dim;
    embla_film_rows(p->film, moment, first, n, p->units + first * dim);
    for (size_t r = first; r < first + n; r++) {
        float *x = p->units + r * dim;
        double norm = embla_norm(x, dim);
        p->known[r] = norm > 0 && isfinite(norm);
        float factor = p->known[r] ? (float)(1 / norm) : 0;
        for (size_t i = 0; i < dim; i++) x[i] = p->known[r] ? x[i] * factor : 0;
    }
}

/* Transposes the units, for the loop of compare_row. */
static void turn_units(film_page *p)
{
    const size_t dim = p->film->dim, count = p->film->count;
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < dim; i++) p->turned[i * count + r] = p->units[r * dim + i];
}

/* The cosines of row a with the rows after it, to cosines_of. All pairs of all moments are many:
 * the inner loop runs over rows, which needs no sum over lanes. */
static void compare_row(const film_page *p, size_t a)
{
    enum { AT_ONCE = 4 };
    const size_t dim = p->film->dim, count = p->film->count;
    const float *x = p->units + a * dim;
    float *restrict out = p->cosines_of;
    size_t i = 0;
    for (size_t b = a + 1; b < count; b++) out[b] = 0;
    for (; i + AT_ONCE <= dim; i += AT_ONCE) {
        const float *y = p->turned + i * count;
        for (size_t b = a + 1; b < count; b++)
            out[b] += (x[i] * y[b] + x[i + 1] * y[count + b]) +
                      (x[i + 2] * y[2 * count + b] + x[i + 3] * y[3 * count + b]);
    }
    for (; i < dim; i++)
        for (size_t b = a + 1; b < count; b++) out[b] += x[i] * p->turned[i * count + b];
}

static void clear(near_pair *list, size_t count)
{
    for (size_t i = 0; i < count; i++) list[i] = (near_pair){.cosine = -2};
}

/* Puts a pair into a list of `most`, the highest cosine first. */
static inline void insert(near_pair *list, size_t most, float cosine, size_t a, size_t b)
{
    if (!(cosine > list[most - 1].cosine)) return;
    size_t at = most - 1;
    for (; at > 0 && cosine > list[at - 1].cosine; at--) list[at] = list[at - 1];
    list[at] = (near_pair){cosine, (uint32_t)a, (uint32_t)b};
}

/* Inserts the pairs of row a with the rows after it. */
static void insert_pairs(film_page *p, size_t a, bool pairs)
{
    const size_t count = p->film->count, near = p->near;
    near_pair *own = p->found + a * near;
    for (size_t b = a + 1; b < count; b++) {
        float cosine = p->cosines_of[b];
        if (!p->known[b]) continue;
        insert(own, near, cosine, a, b);
        insert(p->found + b * near, near, cosine, b, a);
        if (pairs) insert(p->pairs, PAIRS, cosine, a, b);
    }
}

/* Finds the nearest rows of each row among the units, and with `pairs` the nearest of all. Rows
 * without a direction have none. */
static void find_near(film_page *p, bool pairs)
{
    clear(p->found, p->film->count * p->near);
    if (pairs) clear(p->pairs, PAIRS);
    turn_units(p);
    for (size_t a = 0; a + 1 < p->film->count; a++) {
        if (!p->known[a]) continue;
        compare_row(p, a);
        insert_pairs(p, a, pairs);
    }
}

/* The cosines of the pairs at a moment, of which only the rows of the pairs are read. */
static void compare_pairs(film_page *p, size_t moment, size_t pairs)
{
    const size_t dim = p->film->dim;
    for (size_t n = 0; n < pairs; n++) {
        size_t a = p->pairs[n].a, b = p->pairs[n].b;
        read_units(p, moment, a, 1);
        read_units(p, moment, b, 1);
        double cosine = embla_dot(p->units + a * dim, p->units + b * dim, dim);
        p->cosines[moment * PAIRS + n] = (float)cosine;
    }
}

static embla_status prepare(film_page *p)
{
    size_t count = p->film->count;
    p->near = count - 1 < NEAR ? count - 1 : NEAR;
    size_t bytes = 1 + (p->film->taken - 1) * count * p->near * 4 / NEAR_BYTES;
    p->every = 1 + (p->film->taken - 1) / NEAR_MOMENTS;
    if (bytes > p->every) p->every = bytes;
    EMBLA_TRY(embla_arena_many(&p->arena, count, sizeof *p->cosines_of, "cosines", &p->cosines_of));
    EMBLA_TRY(embla_arena_many(&p->arena, count * p->film->dim, sizeof *p->turned,
                               "the rows of a moment", &p->turned));
    EMBLA_TRY(
        embla_arena_many(&p->arena, count, sizeof *p->known, "the rows of a moment", &p->known));
    EMBLA_TRY(embla_film_project(p->film, &p->arena, &p->view));
    EMBLA_TRY(embla_arena_many(&p->arena, count * p->film->dim, sizeof *p->units,
                               "the rows of a moment", &p->units));
    EMBLA_TRY(embla_arena_many(&p->arena, count * (p->near + 1), 4, "nearest rows", &p->bytes));
    EMBLA_TRY(embla_arena_many(&p->arena, p->film->taken * PAIRS, sizeof *p->cosines, "cosines",
                               &p->cosines));
    return embla_arena_many(&p->arena, count * (p->near + 1), sizeof *p->found, "nearest rows",
                            &p->found);
}

static bool near_known(const film_page *p, size_t moment)
{
    return moment % p->every == 0 || moment + 1 == p->film->taken;
}

/* ---- bytes ---- */

static void write_plain(void *to, const char *bytes, size_t length)
{
    film_output *out = to;
    if (out->status == EMBLA_OK) out->status = embla_durable_write(out->file, bytes, length);
}

static void write_base64(void *to, const char *bytes, size_t length)
{
    film_output *out = to;
    const embla_json_sink plain = {.write = write_plain, .to = out};
    embla_base64_add(&out->left, &plain, bytes, length);
}

static void begin_part(film_output *out, const char *id)
{
    const embla_json_sink plain = {.write = write_plain, .to = out};
    embla_json_write(&plain, "<script type=\"text/plain\" id=\"");
    embla_json_write(&plain, id);
    embla_json_write(&plain, "\">");
}

static void end_part(film_output *out)
{
    const embla_json_sink plain = {.write = write_plain, .to = out};
    embla_base64_end(&out->left, &plain);
    embla_json_write(&plain, "</script>\n");
}

static size_t count_pairs(const film_page *p)
{
    size_t pairs = 0;
    while (pairs < PAIRS && p->pairs[pairs].cosine >= -1.5f) pairs++;
    return pairs;
}

static void write_near(film_page *p, film_output *out)
{
    begin_part(out, "data-near");
    read_units(p, p->film->taken - 1, 0, p->film->count);
    find_near(p, true);
    const size_t pairs = count_pairs(p);
    for (size_t m = 0; m < p->film->taken; m++) {
        compare_pairs(p, m, pairs);
        if (!near_known(p, m)) continue;
        read_units(p, m, 0, p->film->count);
        find_near(p, false);
        for (size_t i = 0; i < p->film->count * p->near; i++) {
            const near_pair *pair = &p->found[i];
            uint8_t *bytes = p->bytes + 4 * i;
            double cosine = fmax(-1, fmin(1, (double)pair->cosine));
            uint32_t row = pair->cosine >= -1.5f ? pair->b : 0xffff;
            embla_store_u16(bytes, (uint16_t)row);
            embla_store_u16(bytes + 2, (uint16_t)lrint(32767 * cosine));
        }
        write_base64(out, (const char *)p->bytes, 4 * p->film->count * p->near);
    }
    end_part(out);
}

static embla_status write_places(film_page *p, film_output *out)
{
    uint8_t *code;
    size_t moments = p->film->taken, numbers = 2 * p->film->count;
    EMBLA_TRY(embla_arena_many(&p->arena, embla_film_code_most(moments, numbers), 1,
                               "the coordinates of a film", &code));
    size_t used = embla_film_encode(p->view.xy, moments, numbers, code);
    begin_part(out, "data-xy");
    write_base64(out, (const char *)code, used);
    end_part(out);
    return EMBLA_OK;
}

/* ---- JSON ---- */

static void json_name(const embla_json_sink *to, const char *name)
{
    embla_json_write(to, ",\"");
    embla_json_write(to, name);
    embla_json_write(to, "\":");
}

static void json_number(const embla_json_sink *to, double number)
{
    char digits[EMBLA_JSON_DIGITS];
    embla_json_digits(number, DIGITS, digits);
    embla_json_write(to, digits);
}

static void json_whole(const embla_json_sink *to, const char *name, int64_t number)
{
    json_name(to, name);
    embla_json_write_whole(to, number);
}

static void json_text(const embla_json_sink *to, const char *text, size_t length)
{
    if (text)
        (void)embla_json_write_string(to, text, length, false);
    else
        embla_json_write(to, "null");
}

static void json_rows(const embla_film *f, const embla_json_sink *to)
{
    json_name(to, "numbers");
    for (size_t i = 0; i < f->count; i++) {
        embla_json_write(to, i > 0 ? "," : "[");
        embla_json_write_whole(to, f->rows[i]);
    }
    embla_json_write(to, "]");
    json_name(to, "words");
    for (size_t i = 0; i < f->count; i++) {
        embla_json_write(to, i > 0 ? "," : "[");
        json_text(to, f->words[i], f->words[i] ? strlen(f->words[i]) : 0);
    }
    embla_json_write(to, "]");
    if (!f->axes) return;
    json_name(to, "axes");
    for (size_t i = 0; i < 4; i++) {
        embla_json_write(to, i > 0 ? "," : "[");
        embla_json_write_whole(to, f->axes[i]);
    }
    embla_json_write(to, "]");
}

static void json_moments(const film_page *p, const embla_json_sink *to)
{
    const embla_film *f = p->film;
    bool any = false;
    json_name(to, "moments");
    for (size_t m = 0; m < f->taken; m++) { /* step, loss, share of either axis */
        bool known = m > 0 || f->taken == 1 || isfinite(f->moments[0].loss);
        embla_json_write(to, m > 0 ? ",[" : "[[");
        embla_json_write_whole(to, f->moments[m].step);
        embla_json_write(to, ",");
        json_number(to, f->moments[known ? m : 1].loss); /* a step reports the loss before it */
        for (size_t a = 0; a < 2; a++) {
            embla_json_write(to, ",");
            json_number(to, p->view.share[2 * m + a]);
        }
        embla_json_write(to, "]");
    }
    embla_json_write(to, "]");
    json_name(to, "texts");
    embla_json_write(to, "[");
    for (size_t m = 0; m < f->taken; m++) {
        if (f->moments[m].length == 0) continue;
        embla_json_write(to, any ? ",[" : "[");
        embla_json_write_whole(to, (int64_t)m);
        embla_json_write(to, ",");
        json_text(to, f->moments[m].text, f->moments[m].length);
        embla_json_write(to, "]");
        any = true;
    }
    embla_json_write(to, "]");
}

/* The pairs that are nearest at the end, with their cosines at all moments. */
static void json_pairs(const film_page *p, const embla_json_sink *to)
{
    const size_t pairs = count_pairs(p);
    json_name(to, "pairs");
    embla_json_write(to, "[");
    for (size_t n = 0; n < pairs; n++) {
        embla_json_write(to, n > 0 ? ",[" : "[");
        embla_json_write_whole(to, (int64_t)p->pairs[n].a);
        embla_json_write(to, ",");
        embla_json_write_whole(to, (int64_t)p->pairs[n].b);
        embla_json_write(to, "]");
    }
    embla_json_write(to, "]");
    json_name(to, "cosines");
    for (size_t m = 0; m < p->film->taken; m++) {
        embla_json_write(to, m > 0 ? ",[" : "[[");
        for (size_t n = 0; n < pairs; n++) {
            double cosine = (double)p->cosines[m * PAIRS + n];
            if (n > 0) embla_json_write(to, ",");
            json_number(to, round(1000 * cosine) / 1000);
        }
        embla_json_write(to, "]");
    }
    embla_json_write(to, "]");
}

static void write_json(const film_page *p, film_output *out)
{
    const embla_film *f = p->film;
    const embla_json_sink to = {.write = write_base64, .to = out};
    begin_part(out, "data-film");
    embla_json_write(&to, "{\"title\":");
    json_text(&to, f->title, f->title ? strlen(f->title) : 0);
    json_whole(&to, "rows", (int64_t)f->count);
    json_whole(&to, "all", f->table_rows);
    json_whole(&to, "dim", (int64_t)f->dim);
    json_whole(&to, "steps", f->steps);
    json_name(&to, "guess");
    json_number(&to, f->guess);
    json_whole(&to, "near", (int64_t)p->near);
    json_whole(&to, "every", (int64_t)p->every);
    json_rows(f, &to);
    json_moments(p, &to);
    json_pairs(p, &to);
    embla_json_write(&to, "}");
    end_part(out);
}

/* ---- the page ---- */

/* The place of the data in the template. Its length goes to *mark. */
static size_t data_place(size_t *mark)
{
    static const char text[] = "<!--embla:data-->";
    size_t at = 0, last = embla_film_template_bytes - (sizeof text - 1);
    while (at < last && memcmp(embla_film_template + at, text, sizeof text - 1) != 0) at++;
    *mark = sizeof text - 1;
    return at;
}

static embla_status write_page(film_page *p, film_output *out)
{
    size_t mark, place = data_place(&mark), rest = place + mark;
    EMBLA_TRY(embla_durable_write(out->file, embla_film_template, place));
    EMBLA_TRY(write_places(p, out));
    write_near(p, out); /* finds the pairs, too */
    write_json(p, out);
    EMBLA_TRY(out->status);
    return embla_durable_write(out->file, embla_film_template + rest,
                               embla_film_template_bytes - rest);
}

static embla_status write_file(film_page *p, const char *path, bool overwrite)
{
    film_output out = {.status = EMBLA_OK};
    EMBLA_TRY(embla_durable_target(path, overwrite));
    EMBLA_TRY(prepare(p));
    EMBLA_TRY(embla_durable_open(path, &out.file));
    embla_status status = write_page(p, &out);
    if (status == EMBLA_OK)
        return overwrite ? embla_durable_commit(out.file) : embla_durable_commit_new(out.file);
    embla_durable_abandon(out.file);
    return status;
}

embla_status embla_film_write(const embla_film *film, const char *path, bool overwrite)
{
    EMBLA_NEED(film);
    EMBLA_NEED(path);
    if (film->taken == 0) return embla_fail(EMBLA_ERR_ARGUMENT, "the film has no moment yet");
    film_page page = {.film = film};
    embla_status status = write_file(&page, path, overwrite);
    embla_arena_free(&page.arena);
    return status;
}
