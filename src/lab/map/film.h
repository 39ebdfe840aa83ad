/* SPDX-License-Identifier: Apache-2.0 */
/* A film of rows: collected in film.c, projected in film_plane.c, coded in film_code.c, written as
 * a page in film_page.c.
 *
 * A moment's rows are f16: a cosine has three digits then, and a film of 300 rows x 128 takes 9 MB.
 */
#ifndef EMBLA_MAP_FILM_H
#define EMBLA_MAP_FILM_H

#include "base/arena.h"
#include "base/dtype.h"
#include "embla_lab.h"

typedef struct {
    int64_t step;
    double loss; /* the mean since the moment before; NaN means unknown */
    const char *text;
    size_t length; /* of the text; 0 means none */
} embla_film_moment;

struct embla_film {
    embla_arena arena; /* has the handle itself and all below */
    embla_arena texts; /* of the moments */
    size_t count, dim;
    embla_decode_fn *decode; /* of f16 */
    embla_encode_fn *encode;
    int64_t table_rows;   /* of the whole table */
    const int64_t *rows;  /* count */
    const char **words;   /* count, printable; NULL means no word */
    const int64_t *axes;  /* 4 indices of rows; NULL means PCA */
    const char *title;    /* NULL means none */
    double guess;         /* 0 means none */
    int64_t first, steps; /* before the film, and in all */
    size_t planned;       /* moments */
    size_t next;          /* of these, the next that is due */
    size_t taken;
    embla_film_moment *moments;  /* planned + 1 */
    uint16_t *numbers;           /* planned + 1, count, dim */
    float *now;                  /* count x dim: rows before they are rounded */
    double loss_sum, loss_count; /* since the last moment */
    int64_t bytes;
};

/* Rows first .. first+n-1 of a moment as floats: n x dim. */
static inline void embla_film_rows(const embla_film *film, size_t moment, size_t first, size_t n,
                                   float *out)
{
    const uint16_t *from = film->numbers + (moment * film->count + first) * film->dim;
    film->decode(from, n * film->dim, 1, EMBLA_WRITE_PLAIN, out);
}

/* ---- film_plane.c ---- */

typedef struct {
    double *xy;    /* taken x count x 2, within -1 .. 1; NaN for a row that is not finite */
    double *share; /* taken x 2: of the variance of a moment, along each axis */
} embla_film_view;

/* Projects all moments on the plane of the last one, in memory of the arena. */
EMBLA_CHECKED embla_status embla_film_project(const embla_film *film, embla_arena *arena,
                                              embla_film_view *out);

/* ---- film_code.c ---- */

/* The largest number of bytes of moments x count numbers. */
size_t embla_film_code_most(size_t moments, size_t count);
/* Codes numbers within -1 .. 1 (NaN means none): moments x count. Returns the bytes written. */
size_t embla_film_encode(const double *numbers, size_t moments, size_t count, uint8_t *out);

/* ---- the page that the build embeds ---- */

extern const unsigned char embla_film_template[];
extern const size_t embla_film_template_bytes;

#endif
