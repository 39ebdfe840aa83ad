/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a lookup.
 *
 *   tokens          table, 12 x 8                  result, 5 x 8
 *   the     2 -+    2  -0.55  0.34 -0.10 .. --+->  2  -0.55  0.34 -0.10 ..
 *
 * Two vertical lines connect the three parts: the first leads from tokens to their rows, the second
 * from rows to the result. A token, its row and its result have the same colour. Lines and arrows
 * are box characters if the locale has them, else ASCII. In a narrow terminal first the headings
 * lose their numbers, then words are cut and numbers left out; no line is wider than the terminal.
 */
#include "draw/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/answers.h"
#include "draw/chosen.h"
#include "draw/pen.h"

enum {
    ROWS = CLI_PEN_ROWS, /* maximum of the table, and of the result */
    LINES = CLI_CHOSEN_LINES,
    GAP = 5 /* between the parts: " -+> " */
};

/* ---- layout ---- */

typedef struct {
    const cli_picture *picture;
    bool utf8;
    int width;
    cli_pen_labels labels; /* of tokens */
    cli_chosen chosen;
    float values[ROWS][CLI_PEN_NUMBERS]; /* of the chosen rows */
    cli_pen_cells cells;
    size_t count, digits; /* numbers of a row; digits of a row number */
    bool dots;            /* ".." after the numbers of a row */
    size_t left, block;   /* width of the tokens; of table and result each */
} sketch;

static int read_values(sketch *s)
{
    size_t dim = embla_table_dim(s->picture->table);
    float *row = malloc(dim * sizeof *row);
    if (!row) return cli_failed("no memory for a row of %zu numbers", dim);
    for (size_t i = 0; i < s->chosen.count; i++) {
        if (embla_lookup_rows(s->picture->table, &s->chosen.rows[i], 1, NULL, row) != EMBLA_OK) {
            free(row);
            return cli_failed("%s", embla_error());
        }
        for (size_t k = 0; k < CLI_PEN_NUMBERS && k < dim; k++) s->values[i][k] = row[k];
    }
    free(row);
    return CLI_DONE;
}

typedef struct {
    char tokens[16], table[2 * CLI_CELL], result[4 * CLI_CELL];
} headings;

static headings headings_of(const cli_picture *p, bool full)
{
    headings h = {"tokens", "table", "result"};
    int64_t dim = (int64_t)embla_table_dim(p->table), shown = (int64_t)p->dim;
    char a[CLI_CELL], b[CLI_CELL], c[CLI_CELL];
    if (!full) return h;
    snprintf(h.table, sizeof h.table, "table, %s x %s", cli_commas(embla_table_rows(p->table), a),
             cli_commas(dim, b));
    snprintf(h.result, sizeof h.result, "result, %s x %s%s%s",
             cli_commas((int64_t)p->tokens.count, a), cli_commas(shown < dim ? shown : dim, c),
             shown < dim ? " of " : "", shown < dim ? b : "");
    return h;
}

/* Sets the layout for this many numbers per row. Returns whether it fits the width. */
static bool try_layout(sketch *s, const headings *h, size_t count, bool dots)
{
    size_t longest = strlen(h->table) > strlen(h->result) ? strlen(h->table) : strlen(h->result);
    size_t labels = cli_pen_label_columns(&s->labels);
    s->count = count;
    s->dots = dots;
    s->block = s->digits + count * s->cells.wide + (dots ? 3 : 0);
    if (s->block < longest) s->block = longest;
    s->left = labels > strlen(h->tokens) ? labels : strlen(h->tokens);
    return s->left + 2 * (GAP + s->block) <= (size_t)s->width;
}

/* Chooses as many numbers per row as fit. If none fits, first the headings lose their numbers, then
 * words are cut, then only row numbers are left. */
static bool choose_layout(sketch *s, headings *h)
{
    static const size_t words[] = {CLI_PEN_WORD, 8, 5};
    enum { WORDS = sizeof words / sizeof words[0] };
    size_t dim = embla_table_dim(s->picture->table);
    size_t most = s->picture->dim < dim ? s->picture->dim : dim;
    char digits[32];
    if (most > CLI_PEN_NUMBERS) most = CLI_PEN_NUMBERS;
    s->digits = (size_t)snprintf(digits, sizeof digits, "%lld",
                                 (long long)s->chosen.rows[s->chosen.count - 1]);
    s->cells = cli_pen_measure(&(const float *){s->values[0]}, 1, s->chosen.count, most);
    *h = headings_of(s->picture, true);
    for (size_t count = most; count > 0; count--)
        if (try_layout(s, h, count, count < dim)) return true;
    *h = headings_of(s->picture, false);
    for (size_t w = 0; w < 2 * WORDS; w++) {
        size_t least = w < WORDS; /* minimum numbers per row: first 1, then 0 */
        cli_pen_label(&s->picture->tokens, s->utf8, words[w % WORDS], &s->labels);
        for (size_t count = most + 1; count-- > least;)
            if (try_layout(s, h, count, count < dim)) return true;
    }
    cli_pen_label(&s->picture->tokens, s->utf8, 0, &s->labels);
    return try_layout(s, h, 0, true) || try_layout(s, h, 0, false);
}

/* ---- output ---- */

/* The colour of a row: that of its first token. */
static int paint_of(const sketch *s, int64_t row)
{
    return cli_chosen_color(s->picture->tokens.rows, s->labels.shown, row);
}

static void draw_row(cli_pen *ink, const sketch *s, size_t which)
{
    cli_pen_begin(ink, paint_of(s, s->chosen.rows[which]));
    cli_pen_row(ink, &s->cells, s->chosen.rows[which], s->digits, s->values[which], s->count,
                s->dots, s->block);
    cli_pen_end(ink);
}

/* ---- connecting lines ---- */

/* A vertical line: which text lines enter it, and which leave it. */
typedef struct {
    bool in[LINES], out[LINES];
    size_t first, last;
} bus;

static void find_extent(bus *b, size_t lines)
{
    b->first = lines;
    for (size_t i = 0; i < lines; i++) {
        if (!b->in[i] && !b->out[i]) continue;
        if (b->first == lines) b->first = i;
        b->last = i;
    }
}

static void draw_joint(cli_pen *ink, const sketch *s, const bus *b, size_t line)
{
    static const char *const box[16] = {" ", "─", "─", "─", "│", "┘", "└", "┴",
                                        "│", "┐", "┌", "┬", "│", "┤", "├", "┼"};
    static const char *const ascii[16] = {" ", "-", "-", "-", "|", "+", "+", "+",
                                          "|", "+", "+", "+", "|", "+", "+", "+"};
    bool up = line > b->first && line <= b->last, down = line >= b->first && line < b->last;
    unsigned joint = (unsigned)b->in[line] + 2u * b->out[line] + 4u * up + 8u * down;
    cli_pen_skip(ink, 1);
    if (b->in[line])
        cli_pen_draw(ink, s->utf8 ? "─" : "-", 1, 1);
    else
        cli_pen_skip(ink, 1);
    if (joint > 0)
        cli_pen_draw(ink, s->utf8 ? box[joint] : ascii[joint], 1, 1);
    else
        cli_pen_skip(ink, 1);
    if (b->out[line])
        cli_pen_draw(ink, s->utf8 ? "▶" : ">", 1, 1);
    else
        cli_pen_skip(ink, 1);
    cli_pen_skip(ink, 1);
}

/* ---- the whole ---- */

typedef struct {
    size_t lines, token_top, table_top, token_lines;
    bus to_table, to_result;
} frame;

/* Centres tokens, table and result vertically. */
static frame arrange_lines(const sketch *s)
{
    frame f = {.token_lines = s->labels.shown + (s->labels.more > 0)};
    f.lines = s->chosen.line_count > f.token_lines ? s->chosen.line_count : f.token_lines;
    f.token_top = (f.lines - f.token_lines) / 2;
    f.table_top = (f.lines - s->chosen.line_count) / 2;
    for (size_t i = 0; i < s->labels.shown; i++)
        f.to_table.in[f.token_top + i] = f.to_result.out[f.token_top + i] = true;
    for (size_t i = 0; i < s->chosen.line_count; i++) {
        size_t which = s->chosen.lines[i];
        bool asked = which != CLI_CHOSEN_GAP && paint_of(s, s->chosen.rows[which]) != CLI_PEN_FAINT;
        f.to_table.out[f.table_top + i] = f.to_result.in[f.table_top + i] = asked;
    }
    find_extent(&f.to_table, f.lines);
    find_extent(&f.to_result, f.lines);
    return f;
}

static void draw_line(const sketch *s, const frame *f, size_t line)
{
    cli_pen ink = {.color = s->picture->color};
    size_t token = line - f->token_top,
           at = line - f->table_top; /* unsigned: huge outside the range */
    int paint = token < s->labels.shown ? paint_of(s, s->picture->tokens.rows[token]) : 0;
    cli_pen_token(&ink, &s->labels, token, paint, s->left);
    draw_joint(&ink, s, &f->to_table, line);
    if (at < s->chosen.line_count && s->chosen.lines[at] != CLI_CHOSEN_GAP) {
        draw_row(&ink, s, s->chosen.lines[at]);
    } else if (at < s->chosen.line_count) {
        cli_pen_skip(&ink, s->digits > 2 ? s->digits - 2 : 0);
        cli_pen_draw(&ink, "..", s->digits > 2 ? s->digits : 2, s->block);
    } else {
        cli_pen_skip(&ink, s->block);
    }
    draw_joint(&ink, s, &f->to_result, line);
    if (token < s->labels.shown)
        draw_row(&ink, s, cli_chosen_find(&s->chosen, s->picture->tokens.rows[token]));
    if (token == s->labels.shown && s->labels.more > 0) cli_pen_draw(&ink, "..", 2, 2);
    putchar('\n');
}

int cli_picture_draw(const cli_picture *picture, bool *drawn)
{
    sketch s = {.picture = picture, .width = cli_pen_width(), .utf8 = cli_utf8_wanted()};
    headings h;
    cli_pen ink = {0};
    cli_pen_label(&picture->tokens, s.utf8, CLI_PEN_WORD, &s.labels);
    s.chosen =
        cli_chosen_of(embla_table_rows(picture->table), picture->tokens.rows, s.labels.shown, ROWS);
    int code = read_values(&s);
    if (code != CLI_DONE) return code;
    *drawn = s.width >= CLI_PEN_NARROWEST && choose_layout(&s, &h);
    if (!*drawn) return CLI_DONE;
    cli_pen_draw(&ink, h.tokens, strlen(h.tokens), s.left);
    cli_pen_skip(&ink, GAP);
    cli_pen_draw(&ink, h.table, strlen(h.table), s.block);
    cli_pen_skip(&ink, GAP);
    cli_pen_draw(&ink, h.result, strlen(h.result), s.block);
    fputs("\n\n", stdout);
    frame f = arrange_lines(&s);
    for (size_t line = 0; line < f.lines; line++) draw_line(&s, &f, line);
    return CLI_DONE;
}
