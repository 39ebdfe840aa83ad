/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the loss curve. A long training has more steps than a chart has pixels; of the steps of one
 * pixel the lowest and the highest loss are drawn. The mean uses a centred window, so that it does
 * not lag behind.
 */
#include "train/train_plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ending.h"
#include "core/inputs.h"
#include "core/out.h"
#include "draw/svg.h"
#include "host/host.h"
#include "host/paths.h"
#include "train/train_log.h"

enum { POINTS = 700, RECENT = 100 };

typedef struct {
    double *x, *y; /* step numbers and losses */
    double *sums;  /* prefix sums of the losses */
    size_t count, room;
    double *vx, *vy; /* validation */
    size_t valid, valid_room;
    bool full; /* out of memory */
} curve;

/* ---- data ---- */

static bool grow(double **a, double **b, size_t count, size_t *room)
{
    if (count < *room) return true;
    size_t more = *room > 0 ? 2 * *room : 1024;
    double *first = realloc(*a, more * sizeof **a);
    if (first) *a = first;
    double *second = realloc(*b, more * sizeof **b);
    if (second) *b = second;
    if (first && second) *room = more;
    return first && second;
}

static void add_log_line(void *context, const cli_log_line *line)
{
    curve *c = context;
    double at = (double)(line->step + 1); /* steps completed */
    if (isfinite(line->loss)) {
        if (!grow(&c->x, &c->y, c->count, &c->room)) c->full = true;
        if (c->full) return;
        c->x[c->count] = at;
        c->y[c->count++] = line->loss;
    }
    if (isfinite(line->validation)) {
        if (!grow(&c->vx, &c->vy, c->valid, &c->valid_room)) c->full = true;
        if (c->full) return;
        c->vx[c->valid] = at;
        c->vy[c->valid++] = line->validation;
    }
}

static bool sum_losses(curve *c)
{
    c->sums = malloc((c->count + 1) * sizeof *c->sums);
    if (!c->sums) return false;
    c->sums[0] = 0;
    for (size_t i = 0; i < c->count; i++) c->sums[i + 1] = c->sums[i] + c->y[i];
    return true;
}

static double mean(const curve *c, size_t from, size_t to)
{
    return to > from ? (c->sums[to] - c->sums[from]) / (double)(to - from) : NAN;
}

/* The mean around step i, over about a twentieth of all steps. */
static double moving_mean(const curve *c, size_t i)
{
    size_t half = c->count / 40;
    return mean(c, i > half ? i - half : 0, i + half + 1 < c->count ? i + half + 1 : c->count);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The y axis covers all means, all validations, and all but 0.5 % of the steps at each end. */
static bool set_axis_range(const curve *c, cli_svg_axis *axis)
{
    double *sorted = malloc((c->count + 1) * sizeof *sorted);
    if (!sorted) return false;
    if (c->count > 0) memcpy(sorted, c->y, c->count * sizeof *sorted);
    qsort(sorted, c->count, sizeof *sorted, ascending);
    double least = c->count ? sorted[c->count / 200] : NAN;
    double most = c->count ? sorted[c->count - 1 - c->count / 200] : NAN;
    for (size_t i = 0; i < c->count; i += c->count / POINTS + 1) {
        least = fmin(least, moving_mean(c, i));
        most = fmax(most, moving_mean(c, i));
    }
    for (size_t i = 0; i < c->valid; i++) {
        least = fmin(least, c->vy[i]);
        most = fmax(most, c->vy[i]);
    }
    axis->least = least;
    axis->most = most;
    free(sorted);
    return true;
}

/* ---- drawing ---- */

static void draw_steps(const cli_svg *svg, const curve *c)
{
    double x[2 * POINTS], y[2 * POINTS];
    size_t used = 0, each = c->count / POINTS + 1;
    for (size_t i = 0; i < c->count && used + 2 <= 2 * POINTS; i += each) {
        size_t low = i, high = i;
        for (size_t k = i; k < i + each && k < c->count; k++) {
            if (c->y[k] < c->y[low]) low = k;
            if (c->y[k] > c->y[high]) high = k;
        }
        size_t first = low < high ? low : high, second = low < high ? high : low;
        x[used] = c->x[first];
        y[used++] = fmin(fmax(c->y[first], svg->y.least), svg->y.most);
        if (second == first) continue;
        x[used] = c->x[second];
        y[used++] = fmin(fmax(c->y[second], svg->y.least), svg->y.most);
    }
    cli_svg_line(svg, "a raw", x, y, used);
}

static void draw_mean(const cli_svg *svg, const curve *c)
{
    double x[POINTS + 1], y[POINTS + 1];
    size_t used = 0, each = c->count / POINTS + 1;
    for (size_t i = 0; i < c->count && used < POINTS; i += each) {
        x[used] = c->x[i];
        y[used++] = moving_mean(c, i);
    }
    if (c->count > 0 && x[used - 1] < c->x[c->count - 1]) {
        x[used] = c->x[c->count - 1];
        y[used++] = moving_mean(c, c->count - 1);
    }
    cli_svg_line(svg, "a", x, y, used);
    if (c->count == 1) cli_svg_points(svg, "a", x, y, 1, 3);
}

/* The legend, above the plot on the right. */
static void draw_legend(const cli_svg *svg, const curve *c)
{
    double x = svg->right - 4, y = svg->top - 10;
    if (c->valid > 0) {
        cli_svg_text(x, y, NULL, "end", "validation");
        printf("<circle class=\"point b\" cx=\"%.2f\" cy=\"%.2f\" r=\"4\"/>\n", x - 72, y - 4);
        x -= 92;
    }
    cli_svg_text(x, y, NULL, "end", "training");
    printf("<circle class=\"point a\" cx=\"%.2f\" cy=\"%.2f\" r=\"4\"/>\n", x - 60, y - 4);
}

static void draw(const curve *c, cli_svg *svg, int64_t steps, const char *text)
{
    char title[160], subtitle[160], count[CLI_CELL], last[CLI_CELL] = "";
    (void)snprintf(title, sizeof title, "Loss on %.100s", cli_path_title(text));
    if (c->valid > 0) (void)snprintf(last, sizeof last, ", validation %.4f", c->vy[c->valid - 1]);
    if (c->count > 0)
        (void)snprintf(subtitle, sizeof subtitle, "%s: %.4f, the mean of the last %zu%s",
                       cli_plural((int64_t)c->x[c->count - 1], "step", count),
                       mean(c, c->count > RECENT ? c->count - RECENT : 0, c->count),
                       c->count < RECENT ? c->count : (size_t)RECENT, last);
    else
        (void)snprintf(subtitle, sizeof subtitle, "no step yet");
    svg->title = title;
    svg->subtitle = subtitle;
    svg->width = 760;
    svg->height = 440;
    svg->x = (cli_svg_axis){.least = 0, .most = (double)(steps > 0 ? steps : 1), .label = "step"};
    if (c->count > 0) svg->x.most = fmax(svg->x.most, c->x[c->count - 1]);
    svg->x.tight = true;
    svg->y.label = "cross-entropy";
    svg->style = ".line.raw{stroke-width:1;stroke-opacity:.3}\n";
    cli_svg_open(svg);
    if (c->count > 1) draw_steps(svg, c);
    draw_mean(svg, c);
    cli_svg_line(svg, "b", c->vx, c->vy, c->valid);
    cli_svg_points(svg, "b", c->vx, c->vy, c->valid, 3);
    draw_legend(svg, c);
    cli_svg_close(svg);
}

/* ---- the file ---- */

/* Whether text begins with a form of our pictures and has one of the titles that this file,
 * try_plot.c and words_plot.c give. */
static bool is_title(const char *text, size_t length)
{
    static const char *const starts[] = {"<svg ", "<!DOCTYPE html>", "\x89PNG"};
    static const char *const titles[] = {"Loss on ", "Loss of words", "Cosines of words",
                                         "Validation losses on "};
    bool form = false;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        form = form || strncmp(text, starts[i], strlen(starts[i])) == 0;
    for (size_t at = 1; form && at < length; at++) /* after <title>, or the name of a PNG's text */
        for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
            if ((text[at - 1] == '>' || text[at - 1] == '\0') &&
                strncmp(text + at, titles[i], strlen(titles[i])) == 0)
                return true;
    return false;
}

static bool is_plot(const char *path)
{
    char text[8192];
    FILE *from = cli_file_open(path, "r");
    if (!from) return false;
    size_t length = fread(text, 1, sizeof text - 1, from);
    (void)fclose(from);
    text[length] = '\0';
    return is_title(text, length);
}

int cli_plot_check_file(const cli_args *args, const char *path)
{
    int code = cli_inputs_check(args, path);
    if (code != CLI_DONE) return code;
    if (!cli_out_exists(path)) return cli_out_check(path, false);
    if (cli_is_file(path) && is_plot(path)) return CLI_DONE;
    return cli_failed("%s already exists and is not a chart of a training, so it is not replaced; "
                      "choose another name for --plot",
                      path);
}

int cli_plot_check(const cli_args *args, const char *path)
{
    int code = cli_ending_check("plot", path, "SVG");
    return code == CLI_DONE ? cli_plot_check_file(args, path) : code;
}

/* What draw needs. */
typedef struct {
    const curve *curve;
    cli_svg *svg;
    int64_t steps;
    const char *text;
} picture;

static int draw_picture(const void *context)
{
    const picture *p = context;
    draw(p->curve, p->svg, p->steps, p->text);
    return CLI_DONE;
}

int cli_plot_write(const char *path, const char *log, int64_t steps, const char *text)
{
    curve c = {0};
    cli_svg svg = {0};
    const picture p = {&c, &svg, steps, text};
    int code = CLI_DONE;
    if (!cli_log_read(log, INT64_MAX, add_log_line, &c, NULL))
        code = cli_failed("%s: %s", log, cli_why());
    else if (c.full || !sum_losses(&c) || !set_axis_range(&c, &svg.y))
        code = cli_failed("no memory to draw %zu steps", c.count);
    else
        code = cli_out_draw(path, draw_picture, &p);
    free(c.x);
    free(c.y);
    free(c.sums);
    free(c.vx);
    free(c.vy);
    return code;
}
