/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the predictions of a model.
 *
 * Bars have one scale in all lists: a full bar is probability 1. Weights of attention are shares of
 * 1, too, drawn as blocks.
 */
#include "verbs/predict_view.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BAR = 20, WEIGHT = 6, WEIGHT_WORD = 10 }; /* columns: full bar, weight, word above it */
enum { TOKENS = 16 };                            /* maximum beside each other */

double cli_prediction_bits(const embla_prediction *prediction)
{
    return 0.0 - prediction->log_probability / log(2.0);
}

bool cli_prediction_leads(const cli_prediction *p)
{
    return p->tokens[0] == p->lm->speaker.ends.begin && (p->lm->speaker.ends.leads || !p->text);
}

void cli_prediction_probability(const embla_prediction *e, char cell[CLI_CELL])
{
    double probability = exp(e->log_probability);
    (void)snprintf(cell, CLI_CELL, probability < 0.0001 ? "%.1e" : "%.4f", probability);
}

const char *cli_prediction_perplexity(double loss, char cell[CLI_CELL])
{
    double perplexity = exp(loss);
    if (perplexity >= 1000 && perplexity < 1e15) return cli_commas(llround(perplexity), cell);
    (void)snprintf(cell, CLI_CELL, perplexity < 1000 ? "%.2f" : "%.3g", perplexity);
    return cell;
}

/* ---- cells of tables ---- */

typedef struct {
    int word, id, logit, probability, bits, rank, bar; /* columns */
} widths;

static void widen(int *width, int columns)
{
    if (columns > *width) *width = columns;
}

static void measure(const cli_prediction *p, const embla_prediction *list, size_t count, bool utf8,
                    widths *w)
{
    char word[CLI_WORD_TEXT], cell[CLI_CELL];
    for (size_t i = 0; i < count; i++) {
        widen(&w->word,
              (int)cli_token_show(p->words, list[i].token, !utf8, CLI_WORD_COLUMNS, word));
        widen(&w->id, snprintf(cell, sizeof cell, "%" PRId32, list[i].token));
        widen(&w->logit, snprintf(cell, sizeof cell, "%.2f", (double)list[i].logit));
        widen(&w->rank, snprintf(cell, sizeof cell, "%" PRId64, list[i].rank));
        widen(&w->bits, snprintf(cell, sizeof cell, "%.2f", cli_prediction_bits(&list[i])));
    }
}

static widths widths_of(const cli_prediction *p, const embla_prediction *list, size_t count,
                        bool utf8)
{
    widths w = {.word = (int)strlen("token"),
                .id = (int)strlen("id"),
                .logit = (int)strlen("logit"),
                .probability = (int)strlen("probability"),
                .bits = (int)strlen("bits"),
                .rank = (int)strlen("rank")};
    measure(p, list, count, utf8, &w);
    if (p->asked) measure(p, p->asked, 1, utf8, &w);
    return w;
}

/* What is left for a bar beside `used` columns. */
static int bar_columns(int used)
{
    int left = cli_out_width() - used - 2;
    return left > BAR ? BAR : left < 0 ? 0 : left;
}

static void print_word(const cli_prediction *p, int32_t token, const widths *w, bool utf8)
{
    char word[CLI_WORD_TEXT];
    int columns = (int)cli_token_show(p->words, token, !utf8, CLI_WORD_COLUMNS, word);
    printf("  %s%*s  %*" PRId32, word, w->word - columns, "", w->id, token);
}

/* ---- the text ---- */

static void print_facts(const cli_prediction *p)
{
    const embla_gpt_shape *s = &p->lm->shape;
    char tokens[CLI_CELL], vocab[CLI_CELL];
    const size_t lead = cli_prediction_leads(p);
    if (p->text)
        cli_out_fact("text", "%.200s%s: %s", p->text, strlen(p->text) > 200 ? ".." : "",
                     cli_plural((int64_t)(p->count - lead), "token", tokens));
    else
        cli_out_fact("text", "none: the model begins one");
    cli_out_fact("head", "%s, %s x %zu",
                 s->untied ? "separate from the token table" : "tied to the token table",
                 cli_commas(s->vocab, vocab), s->dim);
    if (p->temperature != 1)
        cli_out_fact("temperature",
                     "%g: probabilities are of logits divided by it; their order stays",
                     p->temperature);
}

static void print_each(const cli_prediction *p, bool utf8)
{
    char cell[CLI_CELL], count[CLI_CELL];
    int place = (int)strlen("position");
    widths w = widths_of(p, p->each, p->count, utf8);
    w.bar = bar_columns(place + w.word + w.id + w.logit + w.probability + w.bits + w.rank + 12);
    printf("\n%*s  %-*s  %*s  %*s  %*s  %*s  %*s\n", place, "position", w.word, "token", w.id, "id",
           w.logit, "logit", w.probability, "probability", w.bits, "bits", w.rank, "rank");
    for (size_t i = 0; i < p->count; i++) {
        const embla_prediction *e = &p->each[i];
        printf("%*zu", place, i);
        print_word(p, e->token, &w, utf8);
        if (e->rank > 0) {
            cli_prediction_probability(e, cell);
            printf("  %*.2f  %*s  %*.2f  %*" PRId64, w.logit, (double)e->logit, w.probability, cell,
                   w.bits, cli_prediction_bits(e), w.rank, e->rank);
            cli_out_bar(exp(e->log_probability), w.bar, utf8, false);
        } else if (i == 0 && cli_prediction_leads(p)) {
            printf("  begins a text");
        }
        putchar('\n');
    }
    if (p->count < 2) return;
    const double bits = p->loss / log(2.0), places = (double)(p->count - 1);
    putchar('\n');
    cli_out_fact("sum", "%.2f bits for %s", bits * places,
                 cli_plural((int64_t)(p->count - 1), "token", count));
    cli_out_fact("mean", "%.2f bits per token: a perplexity of %s", bits,
                 cli_prediction_perplexity(p->loss, cell));
}

/* ---- the next token ---- */

static void print_candidate(const cli_prediction *p, const embla_prediction *e, const widths *w,
                            bool utf8, const char *ends)
{
    char cell[CLI_CELL];
    printf("%*" PRId64, w->rank, e->rank);
    print_word(p, e->token, w, utf8);
    cli_prediction_probability(e, cell);
    printf("  %*.2f  %*s", w->logit, (double)e->logit, w->probability, cell);
    cli_out_bar(exp(e->log_probability), w->bar, utf8, false);
    puts(cli_speaker_ends(&p->lm->speaker, e->token) ? ends : "");
}

static void print_next(const cli_prediction *p, bool utf8)
{
    static const char ends[] = "  ends the text";
    widths w = widths_of(p, p->next, p->top, utf8);
    w.bar = bar_columns(w.rank + w.word + w.id + w.logit + w.probability + 8 + (int)strlen(ends));
    puts("\nThe next token:\n");
    printf("%*s  %-*s  %*s  %*s  %*s\n", w.rank, "rank", w.word, "token", w.id, "id", w.logit,
           "logit", w.probability, "probability");
    for (size_t i = 0; i < p->top; i++) print_candidate(p, &p->next[i], &w, utf8, ends);
    if (!p->asked) return;
    if (p->asked->rank > (int64_t)p->top + 1) printf("%*s\n", w.rank, "..");
    if (p->asked->rank > (int64_t)p->top) print_candidate(p, p->asked, &w, utf8, ends);
    char word[CLI_WORD_TEXT], cell[CLI_CELL], vocab[CLI_CELL];
    (void)cli_token_show(p->words, p->asked->token, !utf8, CLI_WORD_COLUMNS, word);
    putchar('\n');
    cli_prediction_probability(p->asked, cell);
    cli_out_fact("asked", "%s: rank %" PRId64 " of %s, logit %.2f, probability %s", word,
                 p->asked->rank, cli_commas(p->lm->shape.vocab, vocab), (double)p->asked->logit,
                 cell);
}

/* ---- attention ---- */

/* Returns the end of the tokens that fit beside each other, from `first` on. Writes their columns.
 */
static size_t fit_tokens(const cli_prediction *p, size_t first, bool utf8, int *columns)
{
    const int wide = cli_out_width() - (int)strlen("layer  head");
    char word[CLI_WORD_TEXT];
    size_t end = first;
    for (int used = 0; end < p->count && end - first < TOKENS; end++) {
        int column = (int)cli_token_show(p->words, p->tokens[end], !utf8, WEIGHT_WORD, word);
        if (column < WEIGHT) column = WEIGHT;
        used += 2 + column;
        if (used > wide && end > first) break;
        columns[end - first] = column;
    }
    return end;
}

static void print_weights(const cli_prediction *p, size_t first, size_t end, bool utf8,
                          const int *columns)
{
    const embla_gpt_shape *s = &p->lm->shape;
    char word[CLI_WORD_TEXT];
    printf("\nlayer  head");
    for (size_t i = first; i < end; i++) {
        int used = (int)cli_token_show(p->words, p->tokens[i], !utf8, WEIGHT_WORD, word);
        printf("  %*s%s", columns[i - first] - used, "", word);
    }
    putchar('\n');
    for (size_t row = 0; row < s->layers * s->heads; row++) {
        const float *weights = p->attention + row * p->count;
        printf("%5zu  %4zu", row / s->heads, row % s->heads);
        for (size_t i = first; i < end; i++)
            printf("  %*s%s %.2f", columns[i - first] - WEIGHT, "",
                   cli_out_block((double)weights[i], 1, 0, utf8), (double)weights[i]);
        putchar('\n');
    }
}

/* Bands of columns, as many tokens in each as fit. */
static void print_attention(const cli_prediction *p, bool utf8)
{
    int columns[TOKENS];
    char word[CLI_WORD_TEXT];
    (void)cli_token_show(p->words, p->tokens[p->count - 1], !utf8, CLI_WORD_COLUMNS, word);
    putchar('\n');
    cli_out_fact("attention", "of the last token, %s: each head divides a weight of 1", word);
    for (size_t first = 0, end; first < p->count; first = end) {
        end = fit_tokens(p, first, utf8, columns);
        print_weights(p, first, end, utf8, columns);
    }
}

void cli_prediction_table(const cli_prediction *p, bool utf8)
{
    print_facts(p);
    print_each(p, utf8);
    if (p->top > 0 || p->asked) print_next(p, utf8);
    if (p->attention) print_attention(p, utf8);
}

/* ---- for programs ---- */

static void print_line(const cli_prediction *p, const char *part, size_t position,
                       const embla_prediction *e)
{
    printf("%s\t%zu\t", part, position);
    cli_token_write(p->words, e->token);
    printf("\t%" PRId32, e->token);
    if (e->rank > 0)
        printf("\t%" PRId64 "\t%.9g\t%.9g\t%.9g\n", e->rank, (double)e->logit,
               exp(e->log_probability), cli_prediction_bits(e));
    else
        puts("\t-\t-\t-\t-");
}

void cli_prediction_text(const cli_prediction *p)
{
    const embla_gpt_shape *s = &p->lm->shape;
    for (size_t i = 0; i < p->count; i++) print_line(p, "text", i, &p->each[i]);
    for (size_t i = 0; i < p->top; i++) print_line(p, "next", p->count, &p->next[i]);
    if (p->asked) print_line(p, "asked", p->count, p->asked);
    for (size_t row = 0; p->attention && row < s->layers * s->heads; row++)
        for (size_t i = 0; i < p->count; i++) {
            printf("attention\t%zu\t", i);
            cli_token_write(p->words, p->tokens[i]);
            printf("\t%" PRId32 "\t%zu\t%zu\t%.9g\n", p->tokens[i], row / s->heads, row % s->heads,
                   (double)p->attention[row * p->count + i]);
        }
}

static void json_entry(const cli_prediction *p, const char *key, const embla_prediction *e,
                       cli_json *json)
{
    cli_json_open(json, key, '{');
    cli_token_json(p->words, e->token, json);
    cli_json_whole(json, "id", e->token);
    if (e->rank > 0) {
        cli_json_whole(json, "rank", e->rank);
        cli_json_real(json, "logit", (double)e->logit);
        cli_json_real(json, "probability", exp(e->log_probability));
        cli_json_real(json, "bits", cli_prediction_bits(e));
    } else {
        static const char *const keys[] = {"rank", "logit", "probability", "bits"};
        for (size_t i = 0; i < 4; i++) cli_json_text(json, keys[i], NULL);
    }
    cli_json_close(json, '}');
}

static void json_attention(const cli_prediction *p, cli_json *json)
{
    const embla_gpt_shape *s = &p->lm->shape;
    cli_json_open(json, "attention", '[');
    for (size_t row = 0; row < s->layers * s->heads; row++) {
        cli_json_open(json, NULL, '{');
        cli_json_whole(json, "layer", (int64_t)(row / s->heads));
        cli_json_whole(json, "head", (int64_t)(row % s->heads));
        cli_json_open(json, "weights", '[');
        for (size_t i = 0; i < p->count; i++)
            cli_json_real(json, NULL, (double)p->attention[row * p->count + i]);
        cli_json_close(json, ']');
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

void cli_prediction_json(const cli_prediction *p, cli_json *json)
{
    const double bits = p->loss / log(2.0), none = NAN;
    cli_json_open(json, NULL, '{');
    if (p->text)
        (void)cli_json_bytes(json, "text", p->text, strlen(p->text));
    else
        cli_json_text(json, "text", NULL);
    cli_json_open(json, "tokens", '[');
    for (size_t i = 0; i < p->count; i++) json_entry(p, NULL, &p->each[i], json);
    cli_json_close(json, ']');
    cli_json_real(json, "bits", p->count > 1 ? bits * (double)(p->count - 1) : none);
    cli_json_real(json, "bits_per_token", p->count > 1 ? bits : none);
    cli_json_real(json, "perplexity", p->count > 1 ? exp(p->loss) : none);
    cli_json_open(json, "next", '[');
    for (size_t i = 0; i < p->top; i++) json_entry(p, NULL, &p->next[i], json);
    cli_json_close(json, ']');
    if (p->asked) json_entry(p, "asked", p->asked, json);
    if (p->attention) json_attention(p, json);
    cli_json_close(json, '}');
}
