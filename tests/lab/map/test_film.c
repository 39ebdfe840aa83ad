/* SPDX-License-Identifier: Apache-2.0 */
/* Films of rows: the code of coordinates against a reader of its own, the plane against rows whose
 * plane is known, the moments, and what is refused.
 */
#include "scratch.h"

#include <errno.h>
#include <float.h>
#include <math.h>

#include "base/base64.h"
#include "base/mem.h"
#include "embla_lab.h"
#include "files/io.h"
#include "map/film.h"

/* ---- coordinates ---- */

/* What a page does: numbers x moments, back to moments x numbers. Returns the bytes read. */
static size_t decode(const uint8_t *bytes, size_t moments, size_t count, double *out)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        int known = 0;
        for (size_t m = 0; m < moments; m++) {
            int change = m == 0 ? -128 : (int8_t)bytes[at++];
            if (change == -128) {
                known = (int16_t)(bytes[at] | bytes[at + 1] << 8);
                at += 2;
            } else if (known != -32768) {
                known += 16 * change;
            }
            out[m * count + i] = known == -32768 ? NAN : known / 32000.0;
        }
    }
    return at;
}

static void check_code(const double *numbers, size_t moments, size_t count)
{
    size_t most = embla_film_code_most(moments, count);
    uint8_t *bytes = malloc(most);
    double *back = malloc(moments * count * sizeof *back);
    size_t used = embla_film_encode(numbers, moments, count, bytes);
    assert_in_range(used, 1, most);
    assert_int_equal(decode(bytes, moments, count, back), used);
    for (size_t i = 0; i < moments * count; i++) {
        double quantum = i < count ? 0.5 / 32000 : 8.51 / 32000;
        if (isnan(numbers[i]))
            assert_true(isnan(back[i]));
        else
            assert_near(back[i], numbers[i], quantum);
    }
    free(back);
    free(bytes);
}

static void errors_of_differences_do_not_add_up(void **state)
{
    enum { MOMENTS = 1000, COUNT = 5 };
    static double numbers[MOMENTS * COUNT];
    uint64_t seed = 1;
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        double x = 0; /* a walk that stays inside */
        for (size_t m = 0; m < MOMENTS; m++) {
            x += ((double)(embla_mix64(seed++) >> 11) / 9007199254740992.0 - 0.5) / 50;
            numbers[m * COUNT + i] = fmax(-1, fmin(1, x));
        }
    }
    check_code(numbers, MOMENTS, COUNT);
    uint8_t *bytes = malloc(embla_film_code_most(MOMENTS, COUNT));
    size_t used = embla_film_encode(numbers, MOMENTS, COUNT, bytes);
    assert_true(used < COUNT * (MOMENTS + 10)); /* a byte for each, but for the first */
    free(bytes);
}

static void jumps_and_missing_numbers_are_exact(void **state)
{
    (void)state;
    const double numbers[] = {-1, 0, NAN, 1,   1e-9, NAN, -1,  NAN, 0.5, -1,
                              1,  1, NAN, 0.1, -1,   NAN, 0.3, 1,   NAN, 1};
    check_code(numbers, 5, 4);
    check_code(numbers, 20, 1);
    check_code(numbers, 1, 20);
}

/* ---- the plane ---- */

enum { ROWS = 40, DIM = 7 };

/* Rows on an ellipse: they vary most along number 5, less along number 2, and little along the
 * others; `grown` is the share of the way that they have gone. */
static void fill_rows(float *x, double grown)
{
    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < DIM; i++) {
            double noise = (double)(embla_mix64(r * DIM + i) >> 11) / 9007199254740992.0 - 0.5;
            double turned = 2 * 3.14159265358979 * (double)r / ROWS;
            double way = i == 5 ? 8 * cos(turned) : i == 2 ? 3 * sin(turned) : 0.2 * noise;
            x[r * DIM + i] = (float)(1 + grown * way);
        }
}

static embla_table *view(float *x, int64_t rows, size_t dim)
{
    embla_table *table = NULL;
    const embla_table_layout layout = {.dtype = EMBLA_F32, .rows = rows, .dim = dim};
    assert_ok(embla_table_view(&layout, x, (size_t)rows * dim * sizeof *x, NULL, &table));
    return table;
}

static embla_table *view_of(float *x)
{
    return view(x, ROWS, DIM);
}

/* A film of the rows at three moments. */
static embla_film *film_of(embla_table *table, float *x, const embla_film_options *options)
{
    embla_film *film = NULL;
    embla_film_options o = *options;
    o.steps = 2;
    assert_ok(embla_film_new(table, &o, &film));
    for (int64_t step = 0; step < 3; step++) {
        fill_rows(x, (double)step / 2);
        assert_int_equal(embla_film_due(film, step, 3.0 - (double)step), true);
        assert_ok(embla_film_add(film, table, step, "text", 4));
    }
    return film;
}

static void the_plane_is_that_of_the_largest_variance(void **state)
{
    (void)state;
    static float x[ROWS * DIM];
    embla_table *table = view_of(x);
    embla_film *film = film_of(table, x, &(embla_film_options){0});
    embla_arena arena = {0};
    embla_film_view view;
    double mean[2] = {0, 0}, scale = 0;
    assert_ok(embla_film_project(film, &arena, &view));
    for (size_t r = 0; r < ROWS; r++) {
        mean[0] += (double)x[r * DIM + 5] / ROWS;
        mean[1] += (double)x[r * DIM + 2] / ROWS;
    }
    for (size_t r = 0; r < ROWS; r++) /* the axes are nearly those numbers, and point upwards */
        if (fabs((double)x[r * DIM + 5] - mean[0]) > scale)
            scale = fabs((double)x[r * DIM + 5] - mean[0]);
    const double *last = view.xy + 2 * 2 * ROWS;
    for (size_t r = 0; r < ROWS; r++) {
        assert_near(last[2 * r], ((double)x[r * DIM + 5] - mean[0]) / scale, 0.03);
        assert_near(last[2 * r + 1], ((double)x[r * DIM + 2] - mean[1]) / scale, 0.03);
    }
    for (size_t i = 0; i < 2; i++) /* the first moment has one point: no variance */
        assert_near(view.share[i], 0, 0);
    assert_true(view.share[4] > 0.8 && view.share[5] > 0.05);
    assert_true(view.share[4] + view.share[5] > 0.98 && view.share[4] + view.share[5] <= 1);
    /* the same plane at all moments: half of the way is half of the picture */
    for (size_t r = 0; r < 2 * ROWS; r++) {
        double begin = view.xy[r], middle = view.xy[2 * ROWS + r], end = view.xy[4 * ROWS + r];
        assert_near(middle - begin, (end - begin) / 2, 2e-3); /* f16 */
    }
    embla_arena_free(&arena);
    embla_film_free(film);
    embla_table_free(table);
}

static void axes_of_pairs_point_from_row_to_row(void **state)
{
    (void)state;
    static float x[ROWS * DIM];
    const int64_t axes[] = {3, 9, 12, 3};
    embla_table *table = view_of(x);
    embla_film *film = film_of(table, x, &(embla_film_options){.axes = axes});
    embla_arena arena = {0};
    embla_film_view view;
    assert_ok(embla_film_project(film, &arena, &view));
    const double *last = view.xy + 4 * ROWS;
    assert_near(last[2 * 3 + 1], last[2 * 9 + 1], 1e-9); /* from 3 to 9 is exactly across */
    assert_true(last[2 * 9] > last[2 * 3]);
    assert_true(last[2 * 3 + 1] > last[2 * 12 + 1]); /* from 12 to 3 is upwards */
    embla_arena_free(&arena);
    embla_film_free(film);
    embla_table_free(table);
}

static void rows_that_are_not_finite_are_left_out(void **state)
{
    (void)state;
    static float x[ROWS * DIM];
    scratch s;
    embla_table *table = view_of(x);
    embla_film *film = NULL;
    embla_arena arena = {0};
    embla_film_view view;
    assert_ok(embla_film_new(table, &(embla_film_options){.steps = 9}, &film));
    fill_rows(x, 1);
    assert_ok(embla_film_add(film, table, 0, NULL, 0));
    x[4 * DIM] = NAN;
    x[5 * DIM] = 1e30f; /* not finite as f16 */
    assert_ok(embla_film_add(film, table, 1, NULL, 0));
    assert_ok(embla_film_project(film, &arena, &view));
    for (size_t r = 0; r < ROWS; r++) {
        assert_true(isfinite(view.xy[2 * r]));
        assert_int_equal(isfinite(view.xy[2 * ROWS + 2 * r]), r != 4 && r != 5);
    }
    for (size_t i = 0; i < ROWS * DIM; i++) x[i] = NAN; /* a training that has diverged */
    assert_ok(embla_film_add(film, table, 2, NULL, 0));
    scratch_new(&s);
    assert_ok(embla_film_write(film, scratch_path(&s, "film.html"), false));
    scratch_free(&s);
    embla_arena_free(&arena);
    embla_film_free(film);
    embla_table_free(table);
}

/* ---- moments ---- */

static void moments_are_dense_at_first(void **state)
{
    (void)state;
    static float x[ROWS * DIM];
    embla_table *table = view_of(x);
    embla_film *film = NULL;
    embla_film_info info;
    int64_t taken[200], last = 0;
    size_t count = 0;
    assert_ok(embla_film_new(table, &(embla_film_options){.steps = 1000}, &film));
    assert_ok(embla_film_add(film, table, 0, NULL, 0));
    for (int64_t step = 1; step <= 1000; step++) {
        if (!embla_film_due(film, step, 1)) continue;
        assert_ok(embla_film_add(film, table, step, NULL, 0));
        taken[count++] = step;
    }
    assert_ok(embla_film_describe(film, &info));
    assert_int_equal(info.moments, 120);
    assert_int_equal(info.step, 1000);
    for (size_t i = 0; i < 40; i++) assert_int_equal(taken[i], i + 1);
    for (size_t i = 0, gap = 1; i < count; last = taken[i++]) { /* never denser again */
        assert_true((size_t)(taken[i] - last) + 1 >= gap);
        gap = (size_t)(taken[i] - last);
    }
    embla_film_free(film);
    embla_table_free(table);
}

static void a_film_that_is_interrupted_ends_where_it_is(void **state)
{
    (void)state;
    static float x[ROWS * DIM];
    embla_table *table = view_of(x);
    embla_film *film = NULL;
    embla_film_info info;
    assert_ok(embla_film_new(table, &(embla_film_options){.first = 50, .steps = 53}, &film));
    for (int64_t step = 50; step <= 53; step++) {
        assert_true(embla_film_due(film, step, NAN));
        assert_ok(embla_film_add(film, table, step, NULL, 0));
    }
    assert_false(embla_film_due(film, 54, NAN));
    assert_ok(embla_film_add(film, table, 54, NULL, 0)); /* one more than planned */
    assert_status(embla_film_add(film, table, 55, NULL, 0), EMBLA_ERR_RANGE);
    assert_ok(embla_film_describe(film, &info));
    assert_int_equal(info.moments, 5);
    embla_film_free(film);
    assert_false(embla_film_due(NULL, 1, 1));
    embla_table_free(table);
}

/* ---- the page ---- */

static char *read_page(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *page = calloc(1, 1 << 20);
    assert_in_range(fread(page, 1, (1 << 20) - 1, file), 10000, 300000);
    assert_int_equal(fclose(file), 0);
    return page;
}

/* The bytes of an element, with a 0 after them. */
static char *part_of(const char *page, const char *id)
{
    char begin[64];
    (void)snprintf(begin, sizeof begin, "<script type=\"text/plain\" id=\"%s\">", id);
    const char *at = strstr(page, begin);
    assert_non_null(at);
    at += strlen(begin);
    size_t length = (size_t)(strchr(at, '<') - at), used = 0;
    char *out = calloc(1, length + 4);
    assert_true(embla_base64_decode(at, length, (uint8_t *)out, &used));
    return out;
}

static void the_page_has_everything_and_asks_for_nothing(void **state)
{
    (void)state;
    static float x[ROWS * DIM];
    static const char hostile[] = "</script><script>alert(1)</script>";
    const int64_t rows[] = {7, 3, 11, 0};
    const char *const words[] = {hostile, "b\n\"c\"", NULL, "d"};
    scratch s;
    scratch_new(&s);
    embla_table *table = view_of(x);
    embla_film *film = film_of(
        table, x,
        &(embla_film_options){
            .rows = rows, .row_count = 4, .words = words, .guess = 3.5, .title = "<b>title</b>"});
    assert_ok(embla_film_write(film, scratch_path(&s, "film.html"), false));
    char *page = read_page(s.path);
    assert_null(strstr(page, hostile));
    assert_null(strstr(page, "<b>title"));
    assert_null(strstr(page, "embla:data-->"));
    assert_null(strstr(page, "embla:head"));
    assert_null(strstr(page, "embla:css"));
    assert_null(strstr(page, "embla:js"));
    assert_null(strstr(page, "http:"));
    assert_null(strstr(page, "https:"));
    assert_null(strstr(page, " src="));
    assert_non_null(strstr(page, "default-src 'none'"));
    char *json = part_of(page, "data-film"), *near = part_of(page, "data-near");
    assert_non_null(strstr(json, "\"title\":\"<b>title</b>\""));
    assert_non_null(strstr(json, "\"numbers\":[7,3,11,0]"));
    assert_non_null(strstr(json, "\"b\\\\n\\\"c\\\"\",null,\"d\"]"));
    assert_non_null(strstr(json, "\"moments\":[[0,3,0,0],[1,2,"));
    assert_non_null(strstr(json, "\"guess\":3.5"));
    assert_non_null(strstr(json, "\"texts\":[[0,\"text\"],[1,\"text\"],[2,\"text\"]]"));
    /* the nearest row of the last of three moments, three of each row */
    double best = -2;
    size_t nearest = 0;
    for (size_t b = 1; b < 4; b++) {
        double cosine = embla_cosine(x + rows[0] * DIM, x + rows[b] * DIM, DIM);
        if (cosine > best) best = cosine, nearest = b;
    }
    const uint8_t *first = (const uint8_t *)near + 2 * 4 * 3 * 4;
    assert_int_equal(first[0] | first[1] << 8, nearest);
    assert_near((int16_t)(first[2] | first[3] << 8) / 32767.0, best, 2e-3);
    free(json);
    free(near);
    free(page);
    embla_film_free(film);
    embla_table_free(table);
    scratch_free(&s);
}

static void pairs_have_their_cosines_at_each_moment(void **state)
{
    (void)state;
    static float x[ROWS * DIM];
    const int64_t rows[] = {7, 3, 31, 0};
    scratch s;
    scratch_new(&s);
    embla_table *table = view_of(x);
    embla_film *film = film_of(table, x, &(embla_film_options){.rows = rows, .row_count = 4});
    assert_ok(embla_film_write(film, scratch_path(&s, "pairs.html"), false));
    char *page = read_page(s.path), *json = part_of(page, "data-film");
    const char *at = strstr(json, "\"pairs\":[["), *cosines = strstr(json, "\"cosines\":[[");
    unsigned long a, b;
    char *end;
    assert_true(at && cosines);
    a = strtoul(at + strlen("\"pairs\":[["), &end, 10);
    b = strtoul(end + 1, NULL, 10);
    assert_true(a < 4 && b < 4 && a != b);
    cosines += strlen("\"cosines\":[");
    for (size_t m = 0; m < 3; m++, cosines = strchr(cosines, ']') + 2) {
        fill_rows(x, (double)m / 2);
        assert_near(strtod(cosines + 1, NULL),
                    embla_cosine(x + rows[a] * DIM, x + rows[b] * DIM, DIM), 2e-3);
    }
    free(json);
    free(page);
    embla_film_free(film);
    embla_table_free(table);
    scratch_free(&s);
}

static void nearest_rows_of_many_are_kept_for_some_moments(void **state)
{
    (void)state;
    enum { MANY = 300 };
    static float x[MANY * 2];
    scratch s;
    embla_table *table = view(x, MANY, 2);
    embla_film *film = NULL;
    for (size_t i = 0; i < 2 * MANY; i++) x[i] = (float)(embla_mix64(i) >> 40);
    assert_ok(embla_film_new(table, &(embla_film_options){.steps = 500}, &film));
    for (int64_t step = 0; step <= 500; step++)
        if (embla_film_due(film, step, 1)) assert_ok(embla_film_add(film, table, step, NULL, 0));
    scratch_new(&s);
    assert_ok(embla_film_write(film, scratch_path(&s, "many.html"), false));
    struct stat file;
    assert_int_equal(stat(s.path, &file), 0);
    assert_in_range(file.st_size, 200000, 500000);
    scratch_free(&s);
    embla_film_free(film);
    embla_table_free(table);
}

/* ---- what is refused ---- */

static void wrong_films_are_refused(void **state)
{
    (void)state;
    static float x[ROWS * DIM];
    const int64_t rows[] = {1, 2, ROWS}, axes[] = {0, 1, 2, 39}, same[] = {3, 3, 1, 2};
    const int64_t turned[] = {3, 5, 5, 3};
    embla_table *table = view_of(x);
    embla_film *film = NULL;
    const struct {
        embla_film_options options;
        embla_status status;
        const char *text;
    } wrong[] = {{{.rows = rows, .row_count = 3}, EMBLA_ERR_RANGE, "40"},
                 {{.row_count = 41}, EMBLA_ERR_RANGE, "the table has 40"},
                 {{.row_count = 5000}, EMBLA_ERR_ARGUMENT, "the maximum is 1024"},
                 {{.moments = 1}, EMBLA_ERR_ARGUMENT, "must be 2 to 1000"},
                 {{.moments = 1001}, EMBLA_ERR_ARGUMENT, "must be 2 to 1000"},
                 {{.first = 5, .steps = 4}, EMBLA_ERR_ARGUMENT, "first must be from 0 to steps"},
                 {{.first = -1}, EMBLA_ERR_ARGUMENT, "first must be from 0 to steps"},
                 {{.row_count = 30, .axes = axes}, EMBLA_ERR_ARGUMENT, "row 39"},
                 {{.axes = same}, EMBLA_ERR_ARGUMENT, "an axis from row 3 to itself"},
                 {{.axes = turned}, EMBLA_ERR_ARGUMENT, "both axes are those of rows 3 and 5"},
                 {{.reserved = {1}}, EMBLA_ERR_UNSUPPORTED, "reserved"}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_status(embla_film_new(table, &wrong[i].options, &film), wrong[i].status);
        assert_error_has(wrong[i].text);
        assert_null(film);
    }
    assert_status(embla_film_new(NULL, NULL, &film), EMBLA_ERR_ARGUMENT);
    assert_status(embla_film_new(table, NULL, NULL), EMBLA_ERR_ARGUMENT);
    embla_table_free(table);
}

static void a_film_of_too_much_memory_is_refused(void **state)
{
    (void)state;
    embla_table *table = NULL;
    embla_film *film = NULL;
    assert_ok(embla_table_new(EMBLA_F32, 1024, 16384, NULL, &table));
    assert_status(embla_film_new(table, &(embla_film_options){.steps = 1000}, &film),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("120 moments of 1024 rows of 16384 numbers take more than 256 MB");
    embla_table_free(table);
}

static void wrong_moments_and_files_are_refused(void **state)
{
    (void)state;
    static float x[ROWS * DIM];
    const int64_t axes[] = {1, 2, 3, 2};
    scratch s;
    embla_table *table = view_of(x), *other = NULL;
    embla_film *film = NULL;
    scratch_new(&s);
    const char *path = scratch_path(&s, "film.html");
    fill_rows(x, 1);
    memcpy(x + 3 * DIM, x + DIM, DIM * sizeof *x); /* row 3 has become row 1 */
    assert_ok(embla_film_new(table, &(embla_film_options){.steps = 10, .axes = axes}, &film));
    assert_status(embla_film_write(film, path, false), EMBLA_ERR_ARGUMENT);
    assert_error_has("no moment");
    assert_ok(embla_table_new(EMBLA_F32, ROWS, DIM + 1, NULL, &other));
    assert_status(embla_film_add(film, other, 0, NULL, 0), EMBLA_ERR_SHAPE);
    assert_ok(embla_film_add(film, table, 3, NULL, 0));
    assert_status(embla_film_add(film, table, 3, NULL, 0), EMBLA_ERR_ARGUMENT);
    assert_status(embla_film_write(film, path, false), EMBLA_ERR_ARGUMENT);
    assert_error_has("the direction of the other axis");
    embla_film_free(film);
    assert_ok(embla_film_new(table, NULL, &film));
    assert_ok(embla_film_add(film, table, 0, NULL, 0));
    scratch_write(path, "kept", 4);
    assert_status(embla_film_write(film, path, false), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_film_write(film, path, true));
    embla_film_free(film);
    embla_table_free(other);
    embla_table_free(table);
    scratch_free(&s);
}

/* Makes a film of three moments and writes it. */
static embla_status whole_film(embla_table *table, const char *path)
{
    embla_film *film = NULL;
    const char *const words[] = {"a", "b", "c", "d"};
    const embla_film_options options = {.steps = 2, .row_count = 4, .words = words, .title = "t"};
    embla_status status = embla_film_new(table, &options, &film);
    for (int64_t step = 0; step < 3 && status == EMBLA_OK; step++)
        status = embla_film_add(film, table, step, "text", 4);
    if (status == EMBLA_OK) status = embla_film_write(film, path, true);
    embla_film_free(film);
    return status;
}

static void failures_leave_nothing_behind(void **state)
{
    (void)state;
    static float x[ROWS * DIM];
    scratch s;
    scratch_new(&s);
    embla_table *table = view_of(x);
    fill_rows(x, 1);
    for (int memory = 0; memory < 2; memory++) {
        size_t failures = 0;
        for (size_t at = 1;; at++) {
            size_t live = embla_mem_live(), open = embla_io_live();
            if (memory)
                embla_mem_fail(at, true);
            else
                embla_io_fail(at, true, EMBLA_SYSTEM_OTHER);
            embla_status status = whole_film(table, scratch_path(&s, "film.html"));
            embla_mem_fail(0, false);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), open);
            if (status == EMBLA_OK) break;
            assert_status(status, memory ? EMBLA_ERR_MEMORY : EMBLA_ERR_IO);
            failures++;
        }
        assert_true(failures >= 4);
    }
    embla_table_free(table);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_differences_do_not_add_up),
        cmocka_unit_test(jumps_and_missing_numbers_are_exact),
        cmocka_unit_test(the_plane_is_that_of_the_largest_variance),
        cmocka_unit_test(axes_of_pairs_point_from_row_to_row),
        cmocka_unit_test(rows_that_are_not_finite_are_left_out),
        cmocka_unit_test(moments_are_dense_at_first),
        cmocka_unit_test(a_film_that_is_interrupted_ends_where_it_is),
        cmocka_unit_test(the_page_has_everything_and_asks_for_nothing),
        cmocka_unit_test(pairs_have_their_cosines_at_each_moment),
        cmocka_unit_test(nearest_rows_of_many_are_kept_for_some_moments),
        cmocka_unit_test(wrong_films_are_refused),
        cmocka_unit_test(a_film_of_too_much_memory_is_refused),
        cmocka_unit_test(wrong_moments_and_files_are_refused),
        cmocka_unit_test(failures_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
