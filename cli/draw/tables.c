/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a lookup in one or two tables.
 *
 * The three columns are centred on each other. Each token has one line of the result, or three with
 * two tables: the row of the token, the row of its position, and their sum.
 */
#include "draw/tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/chosen.h"
#include "draw/heat.h"

enum {
    TALL = 22,       /* pixels of a row */
    STEP = TALL + 5, /* from one row to the next */
    GAP = 70,        /* between the columns, for the curves */
    BETWEEN = 46,    /* from one table to the next, with its heading */
    GROUP = 14,      /* between the sums of two tokens */
    HEADINGS = CLI_SHEET_TOP + 22,
    TOP = HEADINGS + 12,
    ROWS_ONE = 26, /* of a single table */
    ROWS_TWO = 12, /* of each of two */
    WORD = 14      /* columns of a word */
};

typedef struct {
    const cli_tables *tables;
    size_t shown; /* tokens */
    cli_chosen chosen[2];
    float *values[2]; /* of the chosen rows, numbers each */
    cli_heat heat;
    bool dots;                                      /* numbers of a row are left out */
    double chips, numbers_wide, labels_wide, block; /* widths */
    double table_x, result_x, width, height;
    double table_y[2], group_y;
} plan;

size_t cli_tables_shown(size_t count, size_t views)
{
    size_t most = views > 1 ? CLI_TABLES_SUMS : CLI_TABLES_TOKENS;
    return count < most ? count : most;
}

/* ---- what is shown ---- */

static int read_rows(plan *p, size_t v)
{
    const cli_tables *t = p->tables;
    const cli_table_view *view = &t->views[v];
    float *row = malloc(t->dim * sizeof *row);
    p->chosen[v] =
        cli_chosen_of(view->all, view->chosen, p->shown, t->view_count > 1 ? ROWS_TWO : ROWS_ONE);
    p->values[v] = malloc((p->chosen[v].count * t->numbers + 1) * sizeof *p->values[v]);
    int code = row && p->values[v] ? CLI_DONE : cli_failed("no memory for the rows of a picture");
    for (size_t i = 0; i < p->chosen[v].count && code == CLI_DONE; i++) {
        code = view->read(view->context, p->chosen[v].rows[i], row);
        if (code == CLI_DONE) memcpy(p->values[v] + i * t->numbers, row, t->numbers * sizeof *row);
    }
    free(row);
    return code;
}

static void measure_cells(plan *p)
{
    const cli_tables *t = p->tables;
    double narrow = t->numbers > CLI_TABLES_NUMBERS ? fmax(6, floor(384 / (double)t->numbers)) : 0;
    p->heat = cli_heat_of(p->values[0], p->chosen[0].count * t->numbers, narrow, TALL);
    if (narrow > 0) p->heat.numbers = false;
    for (size_t v = 1; v < t->view_count; v++)
        cli_heat_add(&p->heat, p->values[v], p->chosen[v].count * t->numbers);
    for (size_t i = 0; i < p->shown; i++)
        cli_heat_add(&p->heat, t->results + i * t->dim, t->numbers);
    if (narrow > 0) p->heat.width = narrow;
    p->dots = t->numbers < t->dim;
}

/* ---- texts ---- */

/* The word of token i and its number, as far as they are known. */
static void label_of(const plan *p, size_t i, char word[CLI_WORD_TEXT], char id[64])
{
    const cli_tables *t = p->tables;
    int64_t token = t->tokens[i], row = t->views[0].chosen[i];
    size_t length;
    const bool mapped = t->asked->model.facts.mapping != NULL;
    (void)cli_token_show(t->asked, token, false, WORD, word);
    id[0] = '\0';
    if (token >= 0 && mapped)
        snprintf(id, 64, "%" PRId64 ">%" PRId64, token, row);
    else if (token >= 0 && cli_word_of(t->asked->vocab, token, &length))
        snprintf(id, 64, "%" PRId64, token);
}

/* The label of line n of a token's result: "4", or "row 4", "+ position 2", "= x". */
static void name_line(const plan *p, size_t i, size_t n, char text[64])
{
    const cli_tables *t = p->tables;
    if (n == t->view_count)
        snprintf(text, 64, "= x");
    else if (t->view_count > 1)
        snprintf(text, 64, "%s%s %" PRId64, n > 0 ? "+ " : "", t->views[n].name,
                 t->views[n].chosen[i] - t->views[n].zero);
    else if (t->views[0].chosen[i] >= 0)
        snprintf(text, 64, "%" PRId64, t->views[0].chosen[i]);
    else
        text[0] = '\0';
}

static void chip_text(const plan *p, size_t i, size_t v, char text[64])
{
    const cli_table_view *view = &p->tables->views[v];
    snprintf(text, 64, "%s %" PRId64, view->name, view->chosen[i] - view->zero);
}

static size_t lines_of(const plan *p)
{
    return p->tables->view_count > 1 ? p->tables->view_count + 1 : 1;
}

/* ---- layout ---- */

static void measure_texts(plan *p)
{
    const cli_tables *t = p->tables;
    char word[CLI_WORD_TEXT], text[64];
    for (size_t i = 0; i < p->shown; i++) {
        label_of(p, i, word, text);
        double wide =
            cli_sheet_width(CLI_SHEET_BOLD, word) + cli_sheet_width(CLI_SHEET_LABEL, text);
        p->chips = fmax(p->chips, wide + 30);
        for (size_t v = 1; v < t->view_count; v++) {
            chip_text(p, i, v, text);
            p->chips = fmax(p->chips, cli_sheet_width(CLI_SHEET_LABEL, text) + 20);
        }
        for (size_t n = 0; n < lines_of(p); n++) {
            name_line(p, i, n, text);
            p->labels_wide = fmax(p->labels_wide, cli_sheet_width(CLI_SHEET_LABEL, text) + 8);
        }
    }
    for (size_t v = 0; v < t->view_count; v++) {
        if (p->chosen[v].count == 0) continue; /* no token has a row */
        snprintf(text, sizeof text, "%" PRId64, p->chosen[v].rows[p->chosen[v].count - 1]);
        p->numbers_wide = fmax(p->numbers_wide, cli_sheet_width(CLI_SHEET_LABEL, text) + 8);
    }
}

static void arrange(plan *p)
{
    const cli_tables *t = p->tables;
    const double group = (double)lines_of(p) * STEP + (t->view_count > 1 ? GROUP : 0);
    const bool more = t->count > p->shown;
    double tables = 0, groups = (double)p->shown * group + (more ? STEP : 0), heading = 0;
    measure_texts(p);
    p->block = (double)t->numbers * p->heat.width + (p->dots ? 20 : 0);
    for (size_t v = 0; v < t->view_count; v++) {
        heading = fmax(heading, cli_sheet_width(CLI_SHEET_LABEL, t->views[v].heading));
        if (v > 0) tables += BETWEEN;
        p->table_y[v] = tables;
        tables += (double)p->chosen[v].line_count * STEP;
    }
    p->height = fmax(tables, groups);
    for (size_t v = 0; v < t->view_count; v++) p->table_y[v] += TOP + (p->height - tables) / 2;
    p->group_y = TOP + (p->height - groups) / 2;
    p->height += TOP + CLI_SHEET_MARGIN;
    /* whole pixels: no seams between cells */
    p->table_x = ceil(CLI_SHEET_MARGIN + p->chips + GAP + p->numbers_wide);
    p->result_x =
        ceil(p->table_x + fmax(p->block, heading - p->numbers_wide) + GAP + p->labels_wide);
    heading = cli_sheet_width(CLI_SHEET_LABEL, t->result) - p->labels_wide;
    p->width = p->result_x + fmax(p->block, heading) + CLI_SHEET_MARGIN;
}

/* ---- drawing ---- */

static double line_y(const plan *p, size_t i, size_t n)
{
    size_t lines = lines_of(p);
    return p->group_y + (double)(i * lines + n) * STEP + (lines > 1 ? (double)i * GROUP : 0);
}

/* The y of a chosen row; NaN if it is not drawn. */
static double row_y(const plan *p, size_t v, int64_t row)
{
    const cli_chosen *c = &p->chosen[v];
    for (size_t line = 0; line < c->line_count; line++)
        if (c->lines[line] != CLI_CHOSEN_GAP && c->rows[c->lines[line]] == row)
            return p->table_y[v] + (double)line * STEP;
    return NAN;
}

static void write_at(cli_sheet *sheet, double x, double y, cli_sheet_anchor anchor, int color,
                     const char *text)
{
    const cli_sheet_style style = {x, y, anchor, CLI_SHEET_LABEL, color};
    cli_sheet_text(sheet, &style, text);
}

static void draw_cells(cli_sheet *sheet, const plan *p, double x, double y, const float *values,
                       bool pale)
{
    cli_heat heat = p->heat;
    heat.pale = pale;
    cli_heat_row(sheet, &heat, x, y, values, p->tables->numbers);
    if (p->dots)
        write_at(sheet, x + (double)p->tables->numbers * p->heat.width + 6, y + TALL / 2.0 + 4,
                 CLI_SHEET_START, CLI_SHEET_SOFT, "..");
}

static void frame_row(cli_sheet *sheet, const plan *p, double x, double y, int color)
{
    const double wide = (double)p->tables->numbers * p->heat.width;
    cli_sheet_frame(sheet, &(cli_sheet_spot){x - 1, y - 1, wide + 2, TALL + 2}, color, 2);
}

static void draw_table(cli_sheet *sheet, const plan *p, size_t v)
{
    const cli_table_view *view = &p->tables->views[v];
    const cli_chosen *c = &p->chosen[v];
    write_at(sheet, p->table_x - p->numbers_wide, p->table_y[v] - 12, CLI_SHEET_START,
             CLI_SHEET_SOFT, view->heading);
    for (size_t line = 0; line < c->line_count; line++) {
        const double y = p->table_y[v] + (double)line * STEP, base = y + TALL / 2.0 + 4;
        const size_t i = c->lines[line];
        char text[64];
        if (i == CLI_CHOSEN_GAP) {
            write_at(sheet, p->table_x - 8, base, CLI_SHEET_END, CLI_SHEET_SOFT, "..");
            continue;
        }
        const int color = cli_chosen_color(view->chosen, p->shown, c->rows[i]);
        snprintf(text, sizeof text, "%" PRId64, c->rows[i] - view->zero);
        write_at(sheet, p->table_x - 8, base, CLI_SHEET_END, color < 0 ? CLI_SHEET_SOFT : color,
                 text);
        draw_cells(sheet, p, p->table_x, y, p->values[v] + i * p->tables->numbers, color < 0);
        if (color >= 0) frame_row(sheet, p, p->table_x, y, color);
    }
}

/* A token, or its position, as a box with text. */
static void draw_chip(cli_sheet *sheet, const plan *p, size_t i, size_t v, int color)
{
    const double y = line_y(p, i, v), base = y + TALL / 2.0 + 4,
                 right = CLI_SHEET_MARGIN + p->chips;
    char word[CLI_WORD_TEXT], text[64];
    cli_sheet_frame(sheet, &(cli_sheet_spot){CLI_SHEET_MARGIN, y, p->chips, TALL}, color, 1.5);
    if (v > 0) {
        chip_text(p, i, v, text);
        write_at(sheet, CLI_SHEET_MARGIN + 9, base, CLI_SHEET_START, CLI_SHEET_INK, text);
        return;
    }
    label_of(p, i, word, text);
    const cli_sheet_style style = {CLI_SHEET_MARGIN + 9, base, CLI_SHEET_START, CLI_SHEET_BOLD,
                                   CLI_SHEET_INK};
    cli_sheet_text(sheet, &style, word);
    write_at(sheet, right - 8, base, CLI_SHEET_END, CLI_SHEET_SOFT, text);
}

/* The curves from a token to its row, and from there to the result. */
static void draw_curves(cli_sheet *sheet, const plan *p, size_t i, size_t v)
{
    const int64_t row = p->tables->views[v].chosen[i];
    const double from = line_y(p, i, v) + TALL / 2.0, at = row_y(p, v, row) + TALL / 2.0;
    const int color = cli_chosen_color(p->tables->views[v].chosen, p->shown, row);
    const double wide = (double)p->tables->numbers * p->heat.width;
    if (isnan(at)) return;
    cli_sheet_curve(sheet,
                    (const double[4]){CLI_SHEET_MARGIN + p->chips + 1, from,
                                      p->table_x - p->numbers_wide - 2, at},
                    color, 1.5);
    cli_sheet_curve(sheet,
                    (const double[4]){p->table_x + (p->dots ? p->block : wide + 2), at,
                                      p->result_x - p->labels_wide - 2, from},
                    color, 1.5);
}

/* The lines of the result of token i. */
static void draw_result(cli_sheet *sheet, const plan *p, size_t i)
{
    const cli_tables *t = p->tables;
    const size_t lines = lines_of(p);
    for (size_t n = 0; n < lines; n++) {
        const double y = line_y(p, i, n);
        const size_t v = n < t->view_count ? n : 0;
        const size_t at = cli_chosen_find(&p->chosen[v], t->views[v].chosen[i]);
        const bool sum = n + 1 == lines;
        int color = cli_chosen_color(t->views[v].chosen, p->shown, t->views[v].chosen[i]);
        char text[64];
        name_line(p, i, lines > 1 ? n : 0, text);
        write_at(sheet, p->result_x - 8, y + TALL / 2.0 + 4, CLI_SHEET_END,
                 sum && lines > 1 ? CLI_SHEET_INK : color, text);
        draw_cells(sheet, p, p->result_x, y,
                   sum ? t->results + i * t->dim : p->values[v] + at * t->numbers, false);
        frame_row(sheet, p, p->result_x, y, sum && lines > 1 ? CLI_SHEET_INK : color);
    }
}

static void draw_all(cli_sheet *sheet, const void *context)
{
    const plan *p = context;
    const cli_tables *t = p->tables;
    char more[64];
    write_at(sheet, CLI_SHEET_MARGIN, HEADINGS, CLI_SHEET_START, CLI_SHEET_SOFT, "tokens");
    write_at(sheet, p->result_x - p->labels_wide, HEADINGS, CLI_SHEET_START, CLI_SHEET_SOFT,
             t->result);
    cli_heat_legend(sheet, &p->heat, p->width - CLI_SHEET_MARGIN, 55);
    for (size_t v = 0; v < t->view_count; v++)
        for (size_t i = 0; i < p->shown; i++) draw_curves(sheet, p, i, v);
    for (size_t v = 0; v < t->view_count; v++) draw_table(sheet, p, v);
    for (size_t i = 0; i < p->shown; i++) {
        for (size_t v = 0; v < t->view_count; v++)
            draw_chip(sheet, p, i, v,
                      cli_chosen_color(t->views[v].chosen, p->shown, t->views[v].chosen[i]));
        draw_result(sheet, p, i);
    }
    if (t->count == p->shown) return;
    snprintf(more, sizeof more, "%zu more", t->count - p->shown);
    write_at(sheet, CLI_SHEET_MARGIN, line_y(p, p->shown, 0) + TALL / 2.0 + 4, CLI_SHEET_START,
             CLI_SHEET_SOFT, more);
}

int cli_tables_print(cli_sheet_kind kind, const cli_tables *tables)
{
    plan p = {.tables = tables, .shown = cli_tables_shown(tables->count, tables->view_count)};
    int code = CLI_DONE;
    for (size_t v = 0; v < tables->view_count && code == CLI_DONE; v++) code = read_rows(&p, v);
    if (code == CLI_DONE) {
        measure_cells(&p);
        arrange(&p);
        /* room for the legend beside the facts */
        double facts = cli_sheet_width(CLI_SHEET_LABEL, tables->facts) + 320;
        if (p.width < facts) p.width = facts;
        const cli_sheet_page page = {tables->title, tables->facts, tables->about, p.width,
                                     p.height};
        code = cli_sheet_print(kind, &page, draw_all, &p);
    }
    for (size_t v = 0; v < 2; v++) free(p.values[v]);
    return code;
}
