/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two tables row by row. First every row gets a letter: same, changed, or changed with a
 * NaN or infinity in one of the two. Stored bytes are compared if both tables store rows alike, and
 * rows are decoded only where bytes differ. Then the changed rows are measured.
 *
 * Values are compared in double, so differences between f64 tables are not rounded to float. A NaN
 * equals a NaN, an infinity equals itself, and -0 equals 0.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/kernels.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "embla_lab.h"
#include "files/cursor.h"
#include "near/order.h"
#include "table/access.h"

enum { AT_ONCE = 256 }; /* rows that a thread takes */

/* Letters for a row of the first table. */
enum { ALONE, SAME, CHANGED, CHANGED_NONFINITE };

struct embla_diff {
    embla_arena arena; /* all of it */
    embla_diff_info info;
    embla_diff_row *rows; /* most distant first */
};

/* Working memory. */
typedef struct {
    embla_diff *diff;
    const embla_row_source *sources[2]; /* the rows of both tables */
    embla_decode_fn *decode[2];
    embla_diff_options options;
    embla_arena arena;
    bool alike; /* both tables store rows alike: equal bytes are equal values */
    int threads;
    char *letters;        /* letter of each row of the first table */
    embla_diff_row *rows; /* changed rows, in order */
} work;

static embla_status new_array(embla_arena *arena, int64_t count, size_t bytes, void *out)
{
    return embla_arena_many(arena, (uint64_t)count, bytes, "rows that changed", out);
}

/* The row of the second table that a row is compared with; -1 means none. */
static int64_t other_of(const work *w, int64_t row)
{
    if (w->options.other) return w->options.other[row];
    return row < w->sources[1]->rows ? row : -1;
}

/* ---- numbers ---- */

/* Decodes values first .. first+n-1 of a row to double; first is a multiple of EMBLA_PIECE, n at
 * most that. */
static void read_piece(const work *w, int which, int64_t row, size_t first, size_t n, double *out)
{
    const embla_row_source *source = w->sources[which];
    const embla_row *format = source->row;
    const char *bytes = embla_source_at(source, row) + embla_dtype_bytes(format->info, first);
    float values[EMBLA_PIECE];
    if (format->format.dtype == EMBLA_F64) {
        for (size_t k = 0; k < n; k++) {
            uint64_t bits = embla_le64((const uint8_t *)bytes + 8 * k);
            memcpy(&out[k], &bits, sizeof bits);
        }
        return;
    }
    w->decode[which](bytes, n, format->format.scale, EMBLA_WRITE_PLAIN, values);
    for (size_t k = 0; k < n; k++) out[k] = (double)values[k];
}

static bool same_number(double a, double b, double tolerance)
{
    return a == b || fabs(a - b) <= tolerance || (isnan(a) && isnan(b));
}

/* A difference is infinite if one value is NaN or infinite, or if the subtraction overflowed. */
static bool compare_piece(const double *a, const double *b, size_t n, double tolerance,
                          bool *nonfinite)
{
    bool same = true;
    for (size_t k = 0; k < n; k++) {
        if (same_number(a[k], b[k], tolerance)) continue;
        same = false;
        *nonfinite = *nonfinite || !isfinite(a[k]) || !isfinite(b[k]);
    }
    return same;
}

static char compare(const work *w, int64_t row, int64_t other)
{
    const embla_row_source *a = w->sources[0], *b = w->sources[1];
    const size_t dim = a->row->format.dim;
    double x[EMBLA_PIECE], y[EMBLA_PIECE];
    bool same = true, nonfinite = false;
    if (w->alike && memcmp(embla_source_at(a, row), embla_source_at(b, other), a->row->bytes) == 0)
        return SAME;
    for (size_t first = 0; first < dim && !nonfinite; first += EMBLA_PIECE) {
        size_t n = dim - first < EMBLA_PIECE ? dim - first : EMBLA_PIECE;
        read_piece(w, 0, row, first, n, x);
        read_piece(w, 1, other, first, n, y);
        same = compare_piece(x, y, n, w->options.tolerance, &nonfinite) && same;
    }
    return same ? SAME : nonfinite ? CHANGED_NONFINITE : CHANGED;
}

/* ---- a changed row ---- */

typedef struct {
    double gap, dot, a, b; /* sums of products of values divided by a scale */
    double most;           /* the largest magnitude */
    double difference;
    bool spoilt; /* both rows have the same NaN or infinity here, which is left out */
} sums;

static sums sums_of(const work *w, int64_t row, int64_t other, double scale)
{
    sums s = {0};
    double x[EMBLA_PIECE], y[EMBLA_PIECE];
    size_t dim = w->sources[0]->row->format.dim;
    for (size_t first = 0; first < dim; first += EMBLA_PIECE) {
        size_t n = dim - first < EMBLA_PIECE ? dim - first : EMBLA_PIECE;
        read_piece(w, 0, row, first, n, x);
        read_piece(w, 1, other, first, n, y);
        for (size_t k = 0; k < n; k++) {
            double a = x[k] / scale, b = y[k] / scale, gap = a - b;
            if (!isfinite(x[k]) || !isfinite(y[k])) {
                s.spoilt = true;
                continue;
            }
            s.gap += gap * gap;
            s.dot += a * b;
            s.a += a * a;
            s.b += b * b;
            s.most = fmax(s.most, fmax(fabs(x[k]), fabs(y[k])));
            s.difference = fmax(s.difference, fabs(x[k] - y[k]));
        }
    }
    return s;
}

/* Squares of f64 values may overflow or underflow; then the sums are computed again with a scale.
 */
static void measure(const work *w, embla_diff_row *out)
{
    double scale = 1;
    if (w->letters[out->row] == CHANGED_NONFINITE) {
        out->distance = out->difference = INFINITY;
        out->cosine = NAN;
        return;
    }
    sums s = sums_of(w, out->row, out->other, scale);
    if (!isfinite(s.gap + s.a + s.b) || s.a < 1e-200 || s.b < 1e-200) {
        scale = s.most > 0 ? s.most : 1;
        s = sums_of(w, out->row, out->other, scale);
    }
    double norms = sqrt(s.a) * sqrt(s.b);
    out->difference = s.difference;
    out->distance = fmax(sqrt(s.gap) * scale, s.difference);
    out->cosine = norms > 0 && !s.spoilt ? s.dot / norms : NAN;
}

/* ---- all rows ---- */

static embla_status compare_some(void *job, size_t first, size_t end, size_t slot)
{
    const work *w = job;
    (void)slot;
    for (int64_t row = (int64_t)first; row < (int64_t)end; row++) {
        int64_t other = other_of(w, row);
        w->letters[row] = other < 0 ? ALONE : compare(w, row, other);
    }
    return EMBLA_OK;
}

static embla_status compare_rows(work *w)
{
    for (int i = 0; i < 2; i++) EMBLA_TRY(embla_source_check(w->sources[i]));
    EMBLA_TRY(embla_share(w->threads, (size_t)w->sources[0]->rows, AT_ONCE, compare_some, w));
    for (int i = 0; i < 2; i++) EMBLA_TRY(embla_source_check(w->sources[i]));
    return EMBLA_OK;
}

/* Counts rows of the second table that no row of the first was compared with. */
static embla_status count_unmatched(work *w)
{
    embla_diff_info *s = &w->diff->info;
    char *met = NULL;
    s->only[1] = s->rows[1] - s->compared;
    if (!w->options.other) return EMBLA_OK;
    EMBLA_TRY(new_array(&w->arena, s->rows[1], 1, &met));
    s->only[1] = s->rows[1];
    for (int64_t row = 0; row < s->rows[0]; row++) {
        int64_t other = w->options.other[row];
        if (other < 0 || met[other]) continue;
        met[other] = 1;
        s->only[1]--;
    }
    return EMBLA_OK;
}

static embla_status count_rows(work *w)
{
    embla_diff_info *s = &w->diff->info;
    int64_t counts[4] = {0}, at = 0;
    for (int64_t row = 0; row < s->rows[0]; row++) counts[(int)w->letters[row]]++;
    s->same = counts[SAME];
    s->nonfinite = counts[CHANGED_NONFINITE];
    s->changed = counts[CHANGED] + s->nonfinite;
    s->compared = s->same + s->changed;
    s->only[0] = counts[ALONE];
    EMBLA_TRY(count_unmatched(w));
    EMBLA_TRY(new_array(&w->arena, s->changed, sizeof *w->rows, &w->rows));
    for (int64_t row = 0; row < s->rows[0]; row++)
        if (w->letters[row] >= CHANGED)
            w->rows[at++] = (embla_diff_row){.row = row, .other = other_of(w, row)};
    return EMBLA_OK;
}

static embla_status measure_some(void *job, size_t first, size_t end, size_t slot)
{
    const work *w = job;
    (void)slot;
    for (size_t i = first; i < end; i++) measure(w, &w->rows[i]);
    return EMBLA_OK;
}

static embla_status measure_rows(work *w)
{
    EMBLA_TRY(embla_share(w->threads, (size_t)w->diff->info.changed, AT_ONCE, measure_some, w));
    for (int i = 0; i < 2; i++) EMBLA_TRY(embla_source_check(w->sources[i]));
    return EMBLA_OK;
}

static void summarize(work *w)
{
    embla_diff_info *s = &w->diff->info;
    double distances = 0, cosines = 0;
    int64_t finite = s->changed - s->nonfinite, turned = 0;
    for (int64_t i = 0; i < s->changed; i++) {
        const embla_diff_row *r = &w->rows[i];
        if (w->letters[r->row] == CHANGED_NONFINITE) continue;
        distances += r->distance;
        s->difference = fmax(s->difference, r->difference);
        if (isnan(r->cosine)) continue;
        cosines += r->cosine;
        turned++;
    }
    s->distance_mean = finite > 0 ? distances / (double)finite : NAN;
    s->cosine_mean = turned > 0 ? cosines / (double)turned : NAN;
}

static embla_status sort_rows(work *w)
{
    embla_diff *d = w->diff;
    int64_t count = d->info.changed;
    embla_key *keys = NULL, *space = NULL;
    EMBLA_TRY(new_array(&w->arena, count, sizeof *keys, &keys));
    EMBLA_TRY(new_array(&w->arena, count, sizeof *space, &space));
    EMBLA_TRY(new_array(&d->arena, count, sizeof *d->rows, &d->rows));
    for (int64_t i = 0; i < count; i++)
        keys[i] = (embla_key){embla_key_down(w->rows[i].distance), i};
    embla_order(keys, space, (size_t)count);
    for (int64_t i = 0; i < count; i++) d->rows[i] = w->rows[keys[i].row];
    return EMBLA_OK;
}

/* ---- all of it ---- */

static embla_status check(const work *w)
{
    const embla_row_source *a = w->sources[0], *b = w->sources[1];
    const size_t dim = a->row->format.dim, other_dim = b->row->format.dim;
    const embla_diff_options *o = &w->options;
    EMBLA_TRY(embla_threads_check(o->threads));
    if (!(o->tolerance >= 0) || !isfinite(o->tolerance)) /* an infinite tolerance is refused, too */
        return embla_fail(EMBLA_ERR_ARGUMENT, "tolerance is %g; it must be 0 or greater",
                          o->tolerance);
    if (dim != other_dim)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "the first table has dim %zu and the second %zu; they must be equal", dim,
                          other_dim);
    for (int64_t row = 0; o->other && row < a->rows; row++)
        if (o->other[row] < -1 || o->other[row] >= b->rows)
            return embla_fail(EMBLA_ERR_RANGE,
                              "row %" PRId64 " is mapped to row %" PRId64
                              ", but the second table has %" PRId64 " rows",
                              row, o->other[row], b->rows);
    return EMBLA_OK;
}

static embla_status examine(work *w)
{
    const embla_row_source *a = w->sources[0];
    const embla_row_format *one = &a->row->format, *two = &w->sources[1]->row->format;
    embla_diff_info *s = &w->diff->info;
    for (int i = 0; i < 2; i++) {
        s->rows[i] = w->sources[i]->rows;
        w->decode[i] =
            embla_dtype_decoder(w->sources[i]->row->format.dtype, embla_kernels_get()->isa);
    }
    w->alike = one->dtype == two->dtype && one->scale == two->scale;
    w->threads = embla_threads_for(w->options.threads, (size_t)a->rows * a->row->bytes); /* fits */
    EMBLA_TRY(new_array(&w->arena, a->rows, 1, &w->letters));
    EMBLA_TRY(compare_rows(w));
    EMBLA_TRY(count_rows(w));
    EMBLA_TRY(measure_rows(w));
    summarize(w);
    return sort_rows(w);
}

embla_status embla_diff_new(const embla_table *first, const embla_table *second,
                            const embla_diff_options *options, embla_diff **out)
{
    EMBLA_TRY(embla_options_check(options));
    embla_arena arena = {0};
    work w = {0};
    if (options) w.options = *options;
    EMBLA_NEED(first);
    EMBLA_NEED(second);
    EMBLA_NEED(out);
    w.sources[0] = embla_table_source(first);
    w.sources[1] = embla_table_source(second);
    EMBLA_TRY(check(&w));
    EMBLA_TRY(new_array(&arena, 1, sizeof *w.diff, &w.diff));
    w.diff->arena = arena;
    embla_status status = examine(&w);
    embla_arena_free(&w.arena);
    if (status != EMBLA_OK) {
        embla_diff_free(w.diff);
        return status;
    }
    *out = w.diff;
    return EMBLA_OK;
}

void embla_diff_free(embla_diff *diff)
{
    if (!diff) return;
    embla_arena arena = diff->arena; /* the arena holds the struct that it is part of */
    embla_arena_free(&arena);
}

embla_status embla_diff_describe(const embla_diff *diff, embla_diff_info *out)
{
    EMBLA_NEED(diff);
    EMBLA_NEED(out);
    *out = diff->info;
    return EMBLA_OK;
}

const embla_diff_row *embla_diff_rows(const embla_diff *diff, size_t *count)
{
    *count = diff ? (size_t)diff->info.changed : 0;
    return diff ? diff->rows : NULL;
}
