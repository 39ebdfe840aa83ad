/* SPDX-License-Identifier: Apache-2.0 */
/* The predictions of a model as a picture for a file.
 *
 * Above, a line for each token of the text: a bar of its probability, its figures, and with
 * --attention a cell for each head that shows how much of the head's weight the last token gives to
 * it. Below, the next tokens. Both are one list of bars, so that all bars have one scale: a full
 * bar is probability 1.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/bars.h"
#include "draw/heat.h"
#include "host/paths.h"
#include "verbs/predict_view.h"

enum {
    FIRST = 4, /* tokens of a long text that are shown, with the last ones */
    LAST = 36,
    HEADS = 160,  /* more heads are left out, in whole layers */
    COUNTED = 24, /* up to so many heads have numbers in their cells */
    BAR = 220,    /* pixels: full bar, line, between columns, between layers */
    STEP = 22,
    GAP = 16,
    LAYER_GAP = 6,
    WORD = 16,                        /* columns of a token */
    LINES = FIRST + LAST + 1          /* of the text */
            + CLI_PREDICTION_NEXT + 2 /* next tokens and the asked one */
            + 6                       /* headings */
};

enum { LOGIT, RANK, BITS, COLUMNS };
static const char *const columns[COLUMNS] = {"logit", "rank", "bits"};

typedef enum { TITLE, HEADING, TOKEN } line_kind;

typedef struct {
    line_kind kind;
    bool of_text;                  /* in the upper part */
    size_t position;               /* of a token of the text */
    char word[CLI_WORD_TEXT];      /* of a token, or the text of a title */
    char probability[CLI_CELL];    /* or why there is none */
    char cells[COLUMNS][CLI_CELL]; /* or headings */
    const char *note;              /* behind the columns; NULL means none */
} line;

typedef struct {
    const cli_prediction *p;
    line lines[LINES];
    cli_bar bars[LINES];
    cli_bar_list list;
    double ends[COLUMNS]; /* the right ends of the columns */
    double notes, heads;  /* the left ends of notes and of cells */
    size_t first_layer;   /* that is shown */
    cli_heat heat;
    char title[160], facts[320], about[640], weights[64];
} picture;

/* ---- lines ---- */

static line *add_line(picture *s, line_kind kind, const char *text)
{
    line *l = &s->lines[s->list.count];
    s->bars[s->list.count++] =
        (cli_bar){.label = kind == TOKEN ? l->word : "", .text = l->probability, .value = NAN};
    *l = (line){.kind = kind};
    (void)snprintf(l->word, sizeof l->word, "%s", text);
    return l;
}

static void add_heading(picture *s, bool of_text)
{
    line *l = add_line(s, HEADING, "");
    l->of_text = of_text;
    (void)snprintf(l->probability, sizeof l->probability, "probability");
    for (size_t i = 0; i < COLUMNS; i++)
        if (of_text || i != BITS) (void)snprintf(l->cells[i], CLI_CELL, "%s", columns[i]);
}

static line *add_token(picture *s, const embla_prediction *e, int color)
{
    line *l = add_line(s, TOKEN, "");
    cli_bar *bar = &s->bars[s->list.count - 1];
    (void)cli_token_show(s->p->words, e->token, false, WORD, l->word);
    if (e->rank == 0) return l;
    bar->value = exp(e->log_probability);
    bar->color = color;
    cli_prediction_probability(e, l->probability);
    (void)snprintf(l->cells[LOGIT], CLI_CELL, "%.2f", (double)e->logit);
    (void)snprintf(l->cells[RANK], CLI_CELL, "%" PRId64, e->rank);
    return l;
}

static void add_text(picture *s)
{
    const cli_prediction *p = s->p;
    const size_t lead = cli_prediction_leads(p);
    const size_t skipped = p->count > FIRST + LAST ? p->count - FIRST - LAST : 0;
    char text[CLI_CELL], more[CLI_WORD_TEXT] = "The text";
    if (p->text)
        (void)snprintf(more, sizeof more, "The text: %s",
                       cli_plural((int64_t)(p->count - lead), "token", text));
    add_line(s, TITLE, more)->of_text = true;
    add_heading(s, true);
    for (size_t i = 0; i < p->count; i++) {
        if (i == FIRST && skipped > 0) {
            line *gap = add_line(s, TOKEN, "..");
            gap->position = SIZE_MAX;
            (void)snprintf(gap->probability, CLI_CELL, "%.16s more",
                           cli_commas((int64_t)skipped, text));
            i += skipped;
        }
        line *l = add_token(s, &p->each[i], 0);
        l->of_text = true;
        l->position = i;
        if (p->each[i].rank > 0)
            (void)snprintf(l->cells[BITS], CLI_CELL, "%.2f", cli_prediction_bits(&p->each[i]));
        else if (i < lead)
            (void)snprintf(l->probability, CLI_CELL, "begins a text");
        else
            (void)snprintf(l->probability, CLI_CELL, "nothing before it");
    }
    (void)add_line(s, TITLE, ""); /* an empty line */
}

/* The next tokens and, in another colour, the asked one. */
static void add_next(picture *s)
{
    const cli_prediction *p = s->p;
    add_line(s, TITLE, "The next token");
    add_heading(s, false);
    for (size_t i = 0; i <= p->top; i++) {
        const embla_prediction *e = i < p->top ? &p->next[i] : p->asked;
        if (!e || (i == p->top && e->rank <= (int64_t)p->top)) break;
        if (i == p->top && e->rank > (int64_t)p->top + 1) (void)add_line(s, TOKEN, "..");
        const bool asked = p->asked && p->asked->token == e->token;
        line *l = add_token(s, e, asked ? 1 : 0);
        if (cli_speaker_ends(&p->lm->speaker, e->token)) l->note = "ends the text";
    }
}

/* ---- attention ---- */

/* The layers that are shown: the last ones. */
static void choose_layers(picture *s)
{
    const embla_gpt_shape *shape = &s->p->lm->shape;
    size_t layers = HEADS / shape->heads;
    if (layers < 1) layers = 1;
    s->first_layer = layers < shape->layers ? shape->layers - layers : 0;
    const size_t shown = (shape->layers - s->first_layer) * shape->heads;
    const float *weights = s->p->attention + s->first_layer * shape->heads * s->p->count;
    s->heat = cli_heat_of(weights, shown * s->p->count, shown > COUNTED ? 9 : 0, STEP - 2);
    (void)snprintf(s->weights, sizeof s->weights, "Attention of the last token: weights up to %.2f",
                   s->heat.limit);
}

/* The left end of a head's cells. */
static double head_at(const picture *s, size_t layer, size_t head)
{
    const double heads = (double)s->p->lm->shape.heads;
    return s->heads + (double)(layer - s->first_layer) * (heads * s->heat.width + LAYER_GAP) +
           (double)head * s->heat.width;
}

static void draw_weights(cli_sheet *sheet, const picture *s, size_t position, double top)
{
    const embla_gpt_shape *shape = &s->p->lm->shape;
    for (size_t layer = s->first_layer; layer < shape->layers; layer++)
        for (size_t head = 0; head < shape->heads; head++) {
            const size_t row = layer * shape->heads + head;
            cli_heat_row(sheet, &s->heat, head_at(s, layer, head), top,
                         s->p->attention + row * s->p->count + position, 1);
        }
}

/* Names the layers: "layer 3", or 3 where that is too wide. */
static void draw_layer_names(cli_sheet *sheet, const picture *s, double base)
{
    const embla_gpt_shape *shape = &s->p->lm->shape;
    const double width = (double)shape->heads * s->heat.width;
    char text[CLI_CELL];
    for (size_t layer = s->first_layer; layer < shape->layers; layer++) {
        const cli_sheet_style style = {head_at(s, layer, 0), base, CLI_SHEET_START,
                                       CLI_SHEET_NUMBER, CLI_SHEET_SOFT};
        (void)snprintf(text, sizeof text, "layer %zu", layer);
        const bool fits = cli_sheet_width(CLI_SHEET_NUMBER, text) <= width;
        cli_sheet_text(sheet, &style, fits ? text : text + strlen("layer "));
    }
}

/* ---- the drawing ---- */

static void draw_line(cli_sheet *sheet, const picture *s, const line *l, double top)
{
    const double base = top + STEP / 2.0 + 4;
    cli_sheet_style style = {CLI_SHEET_MARGIN, base, CLI_SHEET_START,
                             l->kind == TITLE ? CLI_SHEET_BOLD : CLI_SHEET_LABEL, CLI_SHEET_INK};
    if (l->kind == TITLE) cli_sheet_text(sheet, &style, l->word);
    if (l->kind == TITLE && l->of_text && s->p->attention) {
        style.x = s->heads;
        cli_sheet_text(sheet, &style, s->weights);
    }
    style.font = CLI_SHEET_LABEL;
    style.color = l->kind == HEADING ? CLI_SHEET_SOFT : CLI_SHEET_INK;
    style.anchor = CLI_SHEET_END;
    for (size_t i = 0; i < COLUMNS; i++) {
        style.x = s->ends[i];
        if (l->cells[i][0]) cli_sheet_text(sheet, &style, l->cells[i]);
    }
    style = (cli_sheet_style){s->notes, base, CLI_SHEET_START, CLI_SHEET_LABEL, CLI_SHEET_SOFT};
    if (l->note) cli_sheet_text(sheet, &style, l->note);
    if (!l->of_text || !s->p->attention) return;
    if (l->kind == HEADING) draw_layer_names(sheet, s, base);
    if (l->kind == TOKEN && l->position != SIZE_MAX) draw_weights(sheet, s, l->position, top + 1);
}

static void draw(cli_sheet *sheet, const void *context)
{
    const picture *s = context;
    cli_bars_draw(sheet, &s->list, CLI_SHEET_MARGIN, CLI_SHEET_TOP);
    for (size_t i = 0; i < s->list.count; i++)
        draw_line(sheet, s, &s->lines[i], CLI_SHEET_TOP + (double)i * STEP);
}

/* Places the columns; returns the width of the page. */
static double arrange(picture *s)
{
    const embla_gpt_shape *shape = &s->p->lm->shape;
    double at = CLI_SHEET_MARGIN + ceil(cli_bars_width(&s->list)), right = 0;
    for (size_t c = 0; c < COLUMNS; c++) {
        double wide = 0;
        for (size_t i = 0; i < s->list.count; i++)
            wide = fmax(wide, cli_sheet_width(CLI_SHEET_LABEL, s->lines[i].cells[c]));
        at += GAP + ceil(wide);
        s->ends[c] = at;
    }
    s->notes = s->ends[RANK] + GAP;
    s->heads = s->ends[BITS] + GAP;
    for (size_t i = 0; i < s->list.count; i++) {
        const line *l = &s->lines[i];
        if (l->note) right = fmax(right, s->notes + cli_sheet_width(CLI_SHEET_LABEL, l->note));
        if (l->kind == TITLE)
            right = fmax(right, CLI_SHEET_MARGIN + cli_sheet_width(CLI_SHEET_BOLD, l->word));
    }
    if (s->p->attention)
        right = fmax(right, fmax(s->heads + cli_sheet_width(CLI_SHEET_BOLD, s->weights),
                                 head_at(s, shape->layers - 1, shape->heads)));
    return fmax(right, at) + CLI_SHEET_MARGIN;
}

static void describe(const char *path, picture *s)
{
    const cli_prediction *p = s->p;
    const embla_gpt_shape *shape = &p->lm->shape;
    const char *name = cli_path_title(path);
    char text[CLI_WORD_TEXT] = "", vocab[CLI_CELL], scale[CLI_CELL] = "", loss[CLI_CELL];
    if (p->text) (void)cli_word_show(p->text, strlen(p->text), false, CLI_WORD_COLUMNS, text);
    (void)snprintf(s->title, sizeof s->title, p->text ? "What follows: %s" : "What begins a text%s",
                   text);
    if (p->temperature != 1)
        (void)snprintf(scale, sizeof scale, "; temperature %g", p->temperature);
    (void)snprintf(s->facts, sizeof s->facts, "%.80s: %s, %s x %zu%s", name,
                   shape->untied ? "a separate head" : "the head is the token table",
                   cli_commas(shape->vocab, vocab), shape->dim, scale);
    if (p->count > 1) {
        size_t used = strlen(s->facts);
        (void)snprintf(s->facts + used, sizeof s->facts - used,
                       "; %.2f bits per token of the text, perplexity %s", p->loss / log(2.0),
                       cli_prediction_perplexity(p->loss, loss));
    }
    (void)snprintf(s->about, sizeof s->about,
                   "Bars of probability: above for each token of the text, after the tokens before "
                   "it, below for the next token. A full bar is probability 1.%s",
                   p->attention ? " On the right a column for each head of each layer: how it "
                                  "divides its weight among the tokens, for the last one. Stronger "
                                  "orange is more."
                                : "");
    if (p->attention && s->first_layer > 0) {
        size_t used = strlen(s->about);
        (void)snprintf(s->about + used, sizeof s->about - used, " Layers 0 to %zu are left out.",
                       s->first_layer - 1);
    }
}

int cli_prediction_sheet(const char *path, const cli_prediction *p, cli_sheet_kind kind)
{
    picture *s = calloc(1, sizeof *s);
    if (!s) return cli_failed("no memory for a picture of %zu tokens", p->count);
    s->p = p;
    s->list = (cli_bar_list){.bars = s->bars, .full = 1, .width = BAR, .step = STEP};
    add_text(s);
    if (p->top > 0 || p->asked) add_next(s);
    if (p->attention) choose_layers(s);
    describe(path, s);
    const cli_sheet_page page = {s->title, s->facts, s->about, arrange(s),
                                 CLI_SHEET_TOP + cli_bars_height(&s->list) + CLI_SHEET_MARGIN};
    int code = cli_sheet_print(kind, &page, draw, s);
    free(s);
    return code;
}
