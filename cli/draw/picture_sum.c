/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a sum of rows and positions.
 *
 *   tokens     rows, 27 x 16           positions, 8 x 16      sum, 2 x 16
 *   e   4  ->   4  0.31 -0.02 ..   +   0  0.11  0.05 ..   =    0.42  0.03 ..
 *
 * All numbers have the same width, so that a column of the sum is easy to check. In a narrow
 * terminal first numbers are left out, then headings and words are cut, then "..".
 */
#include <stdio.h>
#include <string.h>

#include "core/answers.h"
#include "draw/picture.h"

enum { PARTS = 3, ARROW = 4 }; /* columns of " -> " */

typedef struct {
    const cli_sum *sum;
    bool utf8;
    size_t parts; /* 1 without positions, else 3 */
    cli_pen_labels labels;
    cli_pen_cells cells;
    size_t count;           /* numbers of a row */
    bool dots;              /* ".." after them */
    size_t sign;            /* columns of "  +  " or " + " */
    size_t digits[PARTS];   /* of row numbers; the sum has none */
    size_t headings[PARTS]; /* bytes of the headings that are printed */
    size_t left, blocks[PARTS];
} sketch;

static size_t longest_number(const int64_t *numbers, size_t count)
{
    size_t longest = 0;
    for (size_t i = 0; i < count; i++) {
        char text[32];
        size_t length = (size_t)snprintf(text, sizeof text, "%lld", (long long)numbers[i]);
        if (length > longest) longest = length;
    }
    return longest;
}

static void measure(sketch *s)
{
    const cli_sum *sum = s->sum;
    s->cells = cli_pen_measure(sum->values, s->parts, s->labels.shown, sum->count);
    s->digits[0] = longest_number(sum->tokens.rows, s->labels.shown);
    if (s->parts > 1) s->digits[1] = longest_number(sum->positions, s->labels.shown);
}

/* Sets the layout for this many numbers per row, with full headings, or without what takes room.
 * Returns whether it fits the width. */
static bool try_layout(sketch *s, size_t count, bool full, bool tight)
{
    size_t whole, labels = cli_pen_label_columns(&s->labels);
    s->count = count;
    s->dots = count < s->sum->dim && !tight;
    s->sign = tight ? 3 : 5;
    s->left = labels > strlen("tokens") ? labels : strlen("tokens");
    whole = s->left + ARROW + (s->parts - 1) * s->sign;
    for (size_t p = 0; p < s->parts; p++) {
        const char *heading = s->sum->headings[p];
        s->headings[p] = full ? strlen(heading) : strcspn(heading, ",");
        s->blocks[p] = s->digits[p] + count * s->cells.wide + (s->dots ? 3 : 0);
        if (s->blocks[p] < s->headings[p]) s->blocks[p] = s->headings[p];
        whole += s->blocks[p];
    }
    return whole <= (size_t)cli_pen_width();
}

static bool choose_layout(sketch *s)
{
    static const size_t words[] = {CLI_PEN_WORD, 8, 5, 0};
    enum { WORDS = sizeof words / sizeof words[0] };
    for (size_t count = s->sum->count; count > 1; count--)
        if (try_layout(s, count, true, false)) return true;
    for (size_t w = 0; w < 2 * WORDS; w++) {
        cli_pen_label(&s->sum->tokens, s->utf8, words[w % WORDS], &s->labels);
        for (size_t count = s->sum->count; count > 0; count--)
            if (try_layout(s, count, false, w >= WORDS)) return true;
    }
    return false;
}

static void draw_headings(const sketch *s)
{
    cli_pen ink = {0};
    cli_pen_draw(&ink, "tokens", strlen("tokens"), s->left);
    cli_pen_skip(&ink, ARROW);
    for (size_t p = 0; p < s->parts; p++) {
        char text[2 * CLI_CELL];
        snprintf(text, sizeof text, "%.*s", (int)s->headings[p], s->sum->headings[p]);
        cli_pen_draw(&ink, text, strlen(text), s->blocks[p]);
        cli_pen_skip(&ink, s->sign);
    }
    fputs("\n\n", stdout);
}

static void draw_line(const sketch *s, size_t i)
{
    const char *const signs[PARTS] = {s->sign == 5 ? "  +  " : " + ",
                                      s->sign == 5 ? "  =  " : " = "};
    const cli_sum *sum = s->sum;
    const int64_t *const numbers[PARTS] = {sum->tokens.rows, sum->positions, sum->positions};
    cli_pen ink = {.color = sum->color};
    cli_pen_token(&ink, &s->labels, i, (int)(i % 6), s->left);
    if (i < s->labels.shown) cli_pen_draw(&ink, s->utf8 ? " ─▶ " : " -> ", ARROW, ARROW);
    for (size_t p = 0; p < s->parts && i < s->labels.shown; p++) {
        cli_pen_begin(&ink, (int)(i % 6));
        cli_pen_row(&ink, &s->cells, s->digits[p] > 0 ? numbers[p][i] : 0, s->digits[p],
                    sum->values[p] + i * CLI_PEN_NUMBERS, s->count, s->dots, s->blocks[p]);
        cli_pen_end(&ink);
        if (p + 1 < s->parts) cli_pen_draw(&ink, signs[p], s->sign, s->sign);
    }
    putchar('\n');
}

int cli_sum_draw(const cli_sum *sum, bool *drawn)
{
    sketch s = {.sum = sum, .utf8 = cli_utf8_wanted(), .parts = sum->values[1] ? PARTS : 1};
    cli_pen_label(&sum->tokens, s.utf8, CLI_PEN_WORD, &s.labels);
    measure(&s);
    *drawn = cli_pen_width() >= CLI_PEN_NARROWEST && choose_layout(&s);
    if (!*drawn) return CLI_DONE;
    draw_headings(&s);
    for (size_t i = 0; i < s.labels.shown + (s.labels.more > 0); i++) draw_line(&s, i);
    return CLI_DONE;
}
