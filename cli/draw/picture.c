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

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/answers.h"

enum {
    ROWS = 14, /* maximum of the table, and of the result */
    LINES = 2 * ROWS + 1,
    COLUMNS = 8, /* maximum numbers of a row */
    WORD = 12,   /* maximum width of a word */
    NUMBER = 16,
    NARROWEST = 30, /* minimum width of a picture */
    GAP = 5         /* between the parts: " -+> " */
};

static const char *const color_names[] = {"auto", "always", "never"};

const char *cli_color_name(size_t n)
{
    return n < sizeof color_names / sizeof color_names[0] ? color_names[n] : NULL;
}

bool cli_color_wanted(const char *name)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    if (strcmp(name, "auto") != 0) return strcmp(name, "always") == 0;
    return isatty(STDOUT_FILENO) && !(none && *none) && term && strcmp(term, "dumb") != 0;
}

/* ---- layout ---- */

typedef struct {
    char text[CLI_WORD_TEXT + 128]; /* "the 2" */
    int64_t row;
} label;

typedef struct {
    const cli_picture *picture;
    bool utf8;
    int width;
    label labels[ROWS]; /* labels of tokens */
    size_t label_columns;
    size_t tokens; /* shown tokens; one more line if some are not shown */
    size_t more;   /* tokens not shown */
    int64_t rows[ROWS];
    float values[ROWS][COLUMNS]; /* of rows */
    size_t row_count;
    size_t lines[LINES]; /* lines of the table: index into rows, or ROWS for ".." */
    size_t line_count;
    int decimals;
    size_t cell; /* width of a number with the space before it */
    size_t cells, digits;
    bool dots;          /* ".." after the numbers of a row */
    size_t left, block; /* width of the tokens; of table and result each */
} sketch;

static int terminal_width(void)
{
    const char *said = getenv("COLUMNS");
    struct winsize size;
    long width = said ? strtol(said, NULL, 10) : 0;
    if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
    if (width <= 0) return CLI_WIDTH;
    return width > 1000 ? 1000 : (int)width;
}

static bool is_shown(const sketch *s, int64_t row)
{
    for (size_t i = 0; i < s->row_count; i++)
        if (s->rows[i] == row) return true;
    return false;
}

static void add_row(sketch *s, int64_t row)
{
    size_t at = s->row_count;
    if (row < 0 || row >= embla_table_rows(s->picture->table) || s->row_count == ROWS ||
        is_shown(s, row))
        return;
    for (; at > 0 && s->rows[at - 1] > row; at--) s->rows[at] = s->rows[at - 1];
    s->rows[at] = row;
    s->row_count++;
}

/* Shows the selected rows; then, if there is room, the whole table or adjacent rows. */
static void choose_rows(sketch *s)
{
    int64_t all = embla_table_rows(s->picture->table);
    for (size_t i = 0; i < s->tokens; i++) add_row(s, s->labels[i].row);
    for (int64_t row = 0; all <= ROWS && row < all; row++) add_row(s, row);
    for (int64_t far = 1; far <= 2; far++) {
        for (size_t i = 0; i < s->tokens; i++) {
            add_row(s, s->labels[i].row - far);
            add_row(s, s->labels[i].row + far);
        }
    }
    int64_t next = 0;
    for (size_t i = 0; i < s->row_count; i++) {
        if (s->rows[i] != next) s->lines[s->line_count++] = ROWS;
        s->lines[s->line_count++] = i;
        next = s->rows[i] + 1;
    }
    if (next != all) s->lines[s->line_count++] = ROWS;
}

static int read_values(sketch *s)
{
    size_t dim = embla_table_dim(s->picture->table);
    float *row = malloc(dim * sizeof *row);
    if (!row) return cli_failed("no memory for a row of %zu numbers", dim);
    for (size_t i = 0; i < s->row_count; i++) {
        if (embla_lookup_rows(s->picture->table, &s->rows[i], 1, NULL, row) != EMBLA_OK) {
            free(row);
            return cli_failed("%s", embla_error());
        }
        for (size_t k = 0; k < COLUMNS && k < dim; k++) s->values[i][k] = row[k];
    }
    free(row);
    return CLI_DONE;
}

/* Formats a number; 1e6 and more gets an exponent. */
static int format_number(const sketch *s, float value, char text[NUMBER])
{
    if (!isfinite(value) || fabsf(value) >= 1e6f)
        return snprintf(text, NUMBER, "%.2g", (double)value);
    return snprintf(text, NUMBER, "%.*f", s->decimals, (double)value);
}

/* Two decimals, or four if all numbers are small. */
static void measure_cells(sketch *s, size_t most)
{
    float largest = 0;
    for (size_t i = 0; i < s->row_count; i++)
        for (size_t k = 0; k < most; k++)
            if (fabsf(s->values[i][k]) > largest) largest = fabsf(s->values[i][k]);
    s->decimals = largest > 0 && largest < 0.1f ? 4 : 2;
    for (size_t i = 0; i < s->row_count; i++) {
        for (size_t k = 0; k < most; k++) {
            char text[NUMBER];
            size_t length = (size_t)format_number(s, s->values[i][k], text);
            if (length + 1 > s->cell) s->cell = length + 1;
        }
    }
}

/* Words have at most `most` columns; 0 means no words. */
static void make_labels(sketch *s, size_t most)
{
    const cli_picture *p = s->picture;
    size_t word_columns = 0;
    char words[ROWS][CLI_WORD_TEXT] = {{0}}, ids[ROWS][48];
    size_t wide[ROWS] = {0}, id_columns = 0;
    s->tokens = p->count <= ROWS ? p->count : ROWS - 1;
    s->more = p->count - s->tokens;
    for (size_t i = 0; i < s->tokens; i++) {
        size_t length = 0;
        const char *word = most > 0 ? cli_word_of(p->vocab, p->tokens[i], &length) : NULL;
        if (word) wide[i] = cli_word_show(word, length, !s->utf8, most, words[i]);
        if (wide[i] > word_columns) word_columns = wide[i];
        if (p->mapped)
            snprintf(ids[i], sizeof ids[i], "%lld>%lld", (long long)p->tokens[i],
                     (long long)p->rows[i]);
        else
            snprintf(ids[i], sizeof ids[i], "%lld", (long long)p->tokens[i]);
        if (strlen(ids[i]) > id_columns) id_columns = strlen(ids[i]);
        s->labels[i].row = p->rows[i];
    }
    for (size_t i = 0; i < s->tokens; i++) { /* the word on the left, the number on the right */
        int gap = (int)(id_columns - strlen(ids[i]));
        if (word_columns > 0) gap += (int)(word_columns - wide[i]) + 1;
        snprintf(s->labels[i].text, sizeof s->labels[i].text, "%.*s%*s%s", CLI_WORD_TEXT - 1,
                 words[i], gap < 60 ? gap : 60, "", ids[i]);
    }
    s->label_columns = word_columns + (word_columns > 0) + id_columns;
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
    snprintf(h.result, sizeof h.result, "result, %s x %s%s%s", cli_commas((int64_t)p->count, a),
             cli_commas(shown < dim ? shown : dim, c), shown < dim ? " of " : "",
             shown < dim ? b : "");
    return h;
}

/* Sets the layout for this many numbers per row. Returns whether it fits the width. */
static bool try_layout(sketch *s, const headings *h, size_t cells, bool dots)
{
    char more[32];
    size_t longest = strlen(h->table) > strlen(h->result) ? strlen(h->table) : strlen(h->result);
    s->cells = cells;
    s->dots = dots;
    s->block = s->digits + cells * s->cell + (dots ? 3 : 0);
    if (s->block < longest) s->block = longest;
    s->left = s->label_columns > strlen(h->tokens) ? s->label_columns : strlen(h->tokens);
    if (s->more > 0) {
        size_t columns = (size_t)snprintf(more, sizeof more, "%zu more", s->more);
        if (columns > s->left) s->left = columns;
    }
    return s->left + 2 * (GAP + s->block) <= (size_t)s->width;
}

/* Chooses as many numbers per row as fit. If none fits, first the headings lose their numbers, then
 * words are cut, then only row numbers are left. */
static bool choose_layout(sketch *s, headings *h)
{
    static const size_t words[] = {WORD, 8, 5};
    enum { WORDS = sizeof words / sizeof words[0] };
    size_t dim = embla_table_dim(s->picture->table);
    size_t most = s->picture->dim < dim ? s->picture->dim : dim;
    char digits[32];
    if (most > COLUMNS) most = COLUMNS;
    s->digits =
        (size_t)snprintf(digits, sizeof digits, "%lld", (long long)s->rows[s->row_count - 1]);
    measure_cells(s, most);
    *h = headings_of(s->picture, true);
    for (size_t cells = most; cells > 0; cells--)
        if (try_layout(s, h, cells, cells < dim)) return true;
    *h = headings_of(s->picture, false);
    for (size_t w = 0; w < 2 * WORDS; w++) {
        size_t least = w < WORDS; /* minimum numbers per row: first 1, then 0 */
        make_labels(s, words[w % WORDS]);
        for (size_t cells = most + 1; cells-- > least;)
            if (try_layout(s, h, cells, cells < dim)) return true;
    }
    make_labels(s, 0);
    return try_layout(s, h, 0, true) || try_layout(s, h, 0, false);
}

/* ---- output ---- */

typedef struct {
    size_t spaces; /* pending spaces, printed only before more text: a line has none at its end */
    bool color;
} pen;

static void skip(pen *ink, size_t columns)
{
    ink->spaces += columns;
}

static void draw(pen *ink, const char *text, size_t columns, size_t of)
{
    printf("%*s%s", (int)ink->spaces, "", text);
    ink->spaces = of > columns ? of - columns : 0;
}

/* A paint of 0 to 5 is the colour of a token; FAINT is for rows without a token. */
enum { FAINT = -1, PLAIN = -2 };

static void begin_color(pen *ink, int paint)
{
    static const char *const codes[] = {"1;36", "1;33", "1;32", "1;35", "1;34", "1;31"};
    if (!ink->color || paint == PLAIN) return;
    printf("%*s\033[%sm", (int)ink->spaces, "", paint == FAINT ? "2" : codes[paint % 6]);
    ink->spaces = 0;
}

static void end_color(const pen *ink, int paint)
{
    if (ink->color && paint != PLAIN) fputs("\033[0m", stdout);
}

/* The colour of a row: that of its first token. */
static int paint_of(const sketch *s, int64_t row)
{
    for (size_t i = 0; i < s->tokens; i++)
        if (s->labels[i].row == row) return (int)(i % 6);
    return FAINT;
}

static void draw_row(pen *ink, const sketch *s, size_t which)
{
    char text[64];
    size_t used =
        (size_t)snprintf(text, sizeof text, "%*lld", (int)s->digits, (long long)s->rows[which]);
    int paint = paint_of(s, s->rows[which]);
    begin_color(ink, paint);
    draw(ink, text, used, used);
    for (size_t k = 0; k < s->cells; k++) {
        char number[NUMBER];
        (void)format_number(s, s->values[which][k], number);
        snprintf(text, sizeof text, "%*s", (int)s->cell, number);
        draw(ink, text, s->cell, s->cell);
        used += s->cell;
    }
    if (s->dots) draw(ink, " ..", 3, 3);
    end_color(ink, paint);
    skip(ink, s->block - used - (s->dots ? 3 : 0));
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

static void draw_joint(pen *ink, const sketch *s, const bus *b, size_t line)
{
    static const char *const box[16] = {" ", "─", "─", "─", "│", "┘", "└", "┴",
                                        "│", "┐", "┌", "┬", "│", "┤", "├", "┼"};
    static const char *const ascii[16] = {" ", "-", "-", "-", "|", "+", "+", "+",
                                          "|", "+", "+", "+", "|", "+", "+", "+"};
    bool up = line > b->first && line <= b->last, down = line >= b->first && line < b->last;
    unsigned joint = (unsigned)b->in[line] + 2u * b->out[line] + 4u * up + 8u * down;
    skip(ink, 1);
    if (b->in[line])
        draw(ink, s->utf8 ? "─" : "-", 1, 1);
    else
        skip(ink, 1);
    if (joint > 0)
        draw(ink, s->utf8 ? box[joint] : ascii[joint], 1, 1);
    else
        skip(ink, 1);
    if (b->out[line])
        draw(ink, s->utf8 ? "▶" : ">", 1, 1);
    else
        skip(ink, 1);
    skip(ink, 1);
}

/* ---- the whole ---- */

static size_t row_index(const sketch *s, int64_t row)
{
    size_t i = 0;
    while (i + 1 < s->row_count && s->rows[i] != row) i++;
    return i;
}

typedef struct {
    size_t lines, token_top, table_top, token_lines;
    bus to_table, to_result;
} frame;

/* Centres tokens, table and result vertically. */
static frame arrange_lines(const sketch *s)
{
    frame f = {.token_lines = s->tokens + (s->more > 0)};
    f.lines = s->line_count > f.token_lines ? s->line_count : f.token_lines;
    f.token_top = (f.lines - f.token_lines) / 2;
    f.table_top = (f.lines - s->line_count) / 2;
    for (size_t i = 0; i < s->tokens; i++)
        f.to_table.in[f.token_top + i] = f.to_result.out[f.token_top + i] = true;
    for (size_t i = 0; i < s->line_count; i++) {
        bool asked = s->lines[i] < ROWS && paint_of(s, s->rows[s->lines[i]]) != FAINT;
        f.to_table.out[f.table_top + i] = f.to_result.in[f.table_top + i] = asked;
    }
    find_extent(&f.to_table, f.lines);
    find_extent(&f.to_result, f.lines);
    return f;
}

static void draw_token(pen *ink, const sketch *s, size_t token)
{
    char text[64];
    if (token < s->tokens) {
        int paint = paint_of(s, s->labels[token].row);
        begin_color(ink, paint);
        draw(ink, s->labels[token].text, s->label_columns, s->left);
        end_color(ink, paint);
    } else if (token == s->tokens && s->more > 0) {
        size_t columns = (size_t)snprintf(text, sizeof text, "%zu more", s->more);
        draw(ink, text, columns, s->left);
    } else {
        skip(ink, s->left);
    }
}

static void draw_line(const sketch *s, const frame *f, size_t line)
{
    pen ink = {.color = s->picture->color};
    size_t token = line - f->token_top,
           at = line - f->table_top; /* unsigned: huge outside the range */
    draw_token(&ink, s, token);
    draw_joint(&ink, s, &f->to_table, line);
    if (at < s->line_count && s->lines[at] < ROWS) {
        draw_row(&ink, s, s->lines[at]);
    } else if (at < s->line_count) {
        skip(&ink, s->digits > 2 ? s->digits - 2 : 0);
        draw(&ink, "..", s->digits > 2 ? s->digits : 2, s->block);
    } else {
        skip(&ink, s->block);
    }
    draw_joint(&ink, s, &f->to_result, line);
    if (token < s->tokens) draw_row(&ink, s, row_index(s, s->labels[token].row));
    if (token == s->tokens && s->more > 0) draw(&ink, "..", 2, 2);
    putchar('\n');
}

int cli_picture_draw(const cli_picture *picture, bool *drawn)
{
    sketch s = {.picture = picture, .width = terminal_width(), .utf8 = cli_utf8_wanted()};
    headings h;
    pen ink = {0};
    make_labels(&s, WORD);
    choose_rows(&s);
    int code = read_values(&s);
    if (code != CLI_DONE) return code;
    *drawn = s.width >= NARROWEST && choose_layout(&s, &h);
    if (!*drawn) return CLI_DONE;
    draw(&ink, h.tokens, strlen(h.tokens), s.left);
    skip(&ink, GAP);
    draw(&ink, h.table, strlen(h.table), s.block);
    skip(&ink, GAP);
    draw(&ink, h.result, strlen(h.result), s.block);
    fputs("\n\n", stdout);
    frame f = arrange_lines(&s);
    for (size_t line = 0; line < f.lines; line++) draw_line(&s, &f, line);
    return CLI_DONE;
}
