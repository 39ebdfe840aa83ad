/* SPDX-License-Identifier: Apache-2.0 */
/* What is seen in a table: health, differences, singular values and the plane without an engine, a
 * film. */
#include <stdio.h>
#include <stdlib.h>

#include "bits.h"
#include "embla_lab.h"

enum { ROWS = 500, DIM = 48 };

static void note_health(const embla_table *table)
{
    embla_health *health = NULL;
    embla_health_info info;
    size_t count;
    OK(embla_health_new(table, &(embla_health_options){.threads = bits_threads}, &health));
    OK(embla_health_describe(health, &info));
    const double figures[] = {info.norm_min,       info.norm_max,           info.norm_mean,
                              info.norm_deviation, info.anisotropy,         info.mean_norm,
                              info.from_mean,      info.from_mean_deviation};
    bits_note_f64(figures, COUNT_OF(figures), "health.figures");
    bits_note_f64(info.norm_quantiles, EMBLA_HEALTH_QUANTILES, "health.quantiles");
    bits_note_i64(info.norm_bins, EMBLA_HEALTH_BINS, "health.bins");
    const embla_neighbour *ranked = embla_health_ranked(health, &count);
    double *scores = bits_room(2 * count * sizeof *scores);
    for (size_t i = 0; i < count; i++) {
        scores[2 * i] = (double)ranked[i].row;
        scores[2 * i + 1] = ranked[i].score;
    }
    bits_note_f64(scores, 2 * count, "health.ranked");
    free(scores);
    embla_health_free(health);
}

static void note_diff(void)
{
    embla_table *second = bits_table(EMBLA_Q8_0, ROWS, 64, 71);
    embla_table *same = bits_table(EMBLA_F32, ROWS, 64, 71);
    embla_diff *diff = NULL;
    embla_diff_info info;
    size_t count;
    OK(embla_diff_new(same, second, &(embla_diff_options){.threads = bits_threads}, &diff));
    OK(embla_diff_describe(diff, &info));
    const double figures[] = {(double)info.changed, info.difference, info.distance_mean,
                              info.cosine_mean};
    bits_note_f64(figures, COUNT_OF(figures), "diff.figures");
    const embla_diff_row *rows = embla_diff_rows(diff, &count);
    double *numbers = bits_room(4 * count * sizeof *numbers);
    for (size_t i = 0; i < count; i++) {
        numbers[4 * i] = (double)rows[i].row;
        numbers[4 * i + 1] = rows[i].distance;
        numbers[4 * i + 2] = rows[i].cosine;
        numbers[4 * i + 3] = rows[i].difference;
    }
    bits_note_f64(numbers, 4 * count, "diff.rows");
    free(numbers);
    embla_diff_free(diff);
    embla_table_free(same);
    embla_table_free(second);
}

static void note_spectrum(const embla_table *table, bool centred, const char *name)
{
    const embla_spectrum_options options = {
        .threads = bits_threads, .centred = centred, .no_engine = true};
    double singular[DIM];
    embla_spectrum_report report;
    OK(embla_spectrum(table, &options, singular, &report));
    bits_note_f64(singular, DIM, "spectrum.%s", name);
    const double figures[] = {report.effective_rank, report.participation, report.stable_rank,
                              (double)report.rank_50, (double)report.rank_90};
    bits_note_f64(figures, COUNT_OF(figures), "spectrum.%s.figures", name);
}

static void note_plane(const embla_table *table)
{
    const int64_t basis[] = {1, 5, 9, 200, 300, 301, 302, 499};
    embla_plane_options options = {.threads = bits_threads, .no_engine = true};
    float *xy = bits_room(2 * ROWS * sizeof *xy);
    OK(embla_plane(table, &options, xy, NULL));
    bits_note_f32(xy, 2 * ROWS, "plane");
    options.basis = basis;
    options.basis_count = COUNT_OF(basis);
    OK(embla_plane(table, &options, xy, NULL));
    bits_note_f32(xy, 2 * ROWS, "plane.basis");
    free(xy);
}

/* Rows that move for ten moments, to the first of them. */
static void note_film(void)
{
    const embla_film_options options = {.row_count = 40, .steps = 9, .moments = 10, .title = "t"};
    embla_table *table = bits_table(EMBLA_F32, 40, DIM, 72);
    float *values = embla_table_data(table);
    embla_film *film = NULL;
    OK(embla_film_new(table, &options, &film));
    for (int64_t step = 0; step < 10; step++) {
        if (embla_film_due(film, step, 3 - 0.125 * (double)step))
            OK(embla_film_add(film, table, step, "text", 4));
        for (size_t i = DIM; i < 40 * DIM; i++)
            values[i] += 0.0625f * (values[i % DIM] - values[i]);
    }
    OK(embla_film_write(film, bits_path("film.html"), false));
    bits_note_file("film.html", "film");
    remove(bits_path("film.html"));
    embla_film_free(film);
    embla_table_free(table);
}

void bits_see(void)
{
    embla_table *table = bits_table(EMBLA_F32, ROWS, DIM, 70);
    note_health(table);
    note_diff();
    note_spectrum(table, false, "plain");
    note_spectrum(table, true, "centred");
    note_plane(table);
    note_film();
    embla_table_free(table);
}
