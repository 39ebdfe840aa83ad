/* SPDX-License-Identifier: Apache-2.0 */
/* Draws how words learn: the cosines of the watched words over the epochs, or else the loss. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/complain.h"
#include "core/visible.h"
#include "draw/svg.h"
#include "train/words_run.h"

/* The name of a pair, at the end of its line. */
static void draw_name(const cli_words *w, size_t a, size_t b, const cli_svg *svg, double y)
{
    char x[CLI_WORD_TEXT], z[CLI_WORD_TEXT], text[2 * CLI_WORD_TEXT + 4];
    size_t length = 0;
    const embla_vocab *vocab = embla_wordvec_vocab(w->words);
    const char *word = embla_vocab_word(vocab, w->watched[a], &length);
    (void)cli_word_show(word, length, false, 16, x);
    word = embla_vocab_word(vocab, w->watched[b], &length);
    (void)cli_word_show(word, length, false, 16, z);
    (void)snprintf(text, sizeof text, "%s, %s", x, z);
    cli_svg_text(svg->right - 6, cli_svg_y(svg, y) - 5, NULL, "end", text);
}

/* One line for each pair; x and y have room for all points. */
static void draw_cosines(const cli_words *w, const cli_svg *svg, double *x, double *y)
{
    static const char *const classes[] = {"a", "b", "c"};
    size_t n = 0;
    for (size_t a = 0; a + 1 < w->watch_count; a++)
        for (size_t b = a + 1; b < w->watch_count; b++, n++) {
            for (size_t i = 0; i < w->point_count; i++) {
                x[i] = w->points[i].epochs;
                y[i] = w->points[i].cosines[n];
            }
            cli_svg_line(svg, classes[n % 3], x, y, w->point_count);
            cli_svg_points(svg, classes[n % 3], x, y, w->point_count, 3);
            draw_name(w, a, b, svg, y[w->point_count - 1]);
        }
}

static void draw_loss(const cli_words *w, const cli_svg *svg, double *x, double *y)
{
    for (size_t i = 0; i < w->point_count; i++) {
        x[i] = w->points[i].epochs;
        y[i] = w->points[i].loss;
    }
    cli_svg_line(svg, "a", x, y, w->point_count);
    cli_svg_points(svg, "a", x, y, w->point_count, 3);
}

static int draw(const void *context)
{
    const cli_words *w = context;
    bool cosines = w->watch_count > 0;
    double *x = calloc(w->point_count + 1, sizeof *x), *y = calloc(w->point_count + 1, sizeof *y);
    cli_svg svg = {.title = cosines ? "Cosines of words while they learn" : "Loss of words",
                   .subtitle = w->named,
                   .width = 760,
                   .height = 440,
                   .x = {.least = 0, .most = (double)w->options.epochs, .label = "epochs"},
                   .y = {.least = 0, .most = 1, .label = cosines ? "cosine" : "loss"}};
    for (size_t i = 0; i < w->point_count; i++) {
        const cli_words_point *p = &w->points[i];
        if (!cosines) svg.y.most = fmax(svg.y.most, p->loss);
        for (size_t n = 0; cosines && n < CLI_WORDS_PAIRS; n++)
            svg.y.least = fmin(svg.y.least, p->cosines[n]);
    }
    const bool able = x && y;
    if (able) {
        cli_svg_open(&svg);
        if (w->point_count > 0) (cosines ? draw_cosines : draw_loss)(w, &svg, x, y);
        cli_svg_close(&svg);
    }
    free(x);
    free(y);
    return able ? CLI_DONE : cli_failed("no memory to draw %zu points", w->point_count);
}

int cli_words_plot(const cli_words *w)
{
    return cli_out_draw(w->plot, draw, w);
}
