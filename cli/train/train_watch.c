/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the rows that moved and their nearest rows. It keeps two copies of the table, the initial
 * rows and those of the last update, and each update passes over all rows.
 */
#include "train/train_watch.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/answers.h"
#include "core/args.h"
#include "core/progress.h"
#include "core/visible.h"

/* ---- the tokens of --watch ---- */

/* The token whose word is text; -1 if there is none. */
static int64_t find_word(const char **words, int64_t rows, const char *text, size_t length)
{
    for (int64_t i = 0; words && i < rows; i++)
        if (words[i] && strlen(words[i]) == length && memcmp(words[i], text, length) == 0) return i;
    return -1;
}

int cli_watch_token(const cli_watch_words *in, const char *text, size_t length, int64_t *out)
{
    int32_t token = 0;
    size_t count = 0;
    char shown[CLI_CELL];
    (void)snprintf(shown, sizeof shown, "%.*s", (int)(length < 60 ? length : 60), text);
    if (length > 1 && text[0] == '#' && strspn(text + 1, "0123456789") >= length - 1) {
        *out = length < 18 ? strtoll(text + 1, NULL, 10) : INT64_MAX;
        if (*out < in->rows) return CLI_DONE;
        return cli_usage("%s: token %s is out of range; there are %" PRId64 " tokens, from #0 on",
                         in->option, shown, in->rows);
    }
    *out = find_word(in->words, in->rows, text, length);
    if (*out >= 0) return CLI_DONE;
    if (embla_corpus_tokenize(in->corpus, text, length, 1, &token, &count) != EMBLA_OK)
        return cli_usage("%s: %s", in->option, embla_error());
    if (count != 1)
        return cli_usage(
            "%s: '%s' is %zu tokens; separate tokens by commas, or use a number such as #5",
            in->option, shown, count);
    if (token == embla_corpus_unknown(in->corpus, NULL))
        return cli_usage("%s: '%s' is not among the %" PRId64 " words of the vocabulary",
                         in->option, shown, in->rows);
    *out = token;
    return CLI_DONE;
}

/* Parses one token: "e" or "#5". */
static int read_token(cli_watch *w, const char *text, size_t length)
{
    const cli_watch_words in = {w->corpus, w->words, (int64_t)w->rows, "--watch"};
    if (w->asked_count == CLI_WATCH_ASKED)
        return cli_usage("--watch: too many tokens at '%.*s'; the maximum is %d",
                         (int)(length < 60 ? length : 60), text, CLI_WATCH_ASKED);
    int code = cli_watch_token(&in, text, length, &w->asked[w->asked_count]);
    if (code == CLI_DONE) w->asked_count++;
    return code;
}

static int read_list(cli_watch *w, const char *list)
{
    int code = CLI_DONE;
    for (;; list++) {
        size_t length = strcspn(list, ",");
        if (length == 0)
            return cli_usage("--watch: an empty token; separate tokens by commas, as in e,m,a");
        code = read_token(w, list, length);
        list += length;
        if (code != CLI_DONE || *list == '\0') return code;
    }
}

static float *rows_of(const embla_gpt *gpt)
{
    embla_gpt_tensor tensor;
    for (size_t n = 0; embla_gpt_tensor_at(gpt, n, &tensor) == EMBLA_OK; n++)
        if (strcmp(tensor.name, "wte") == 0) return tensor.values;
    return NULL;
}

int cli_watch_open(const embla_corpus *corpus, const char **words, const embla_gpt *gpt,
                   const embla_gpt *start, const char *list, cli_watch *out)
{
    embla_gpt_shape shape;
    if (embla_gpt_describe(gpt, &shape) != EMBLA_OK) return cli_failed("%s", embla_error());
    cli_watch w = {.corpus = corpus,
                   .words = words,
                   .table = embla_gpt_tokens(gpt),
                   .now = rows_of(gpt),
                   .rows = (size_t)shape.vocab,
                   .dim = shape.dim};
    if (!w.now || !w.table || w.rows == 0) return cli_usage("--watch needs a model of f32");
    int code = read_list(&w, list);
    if (code != CLI_DONE) return code;
    size_t bytes = w.rows * w.dim * sizeof *w.first;
    w.first = malloc(bytes);
    w.last = malloc(bytes);
    if (!w.first || !w.last) code = cli_failed("no memory for two copies of %zu rows", w.rows);
    if (code != CLI_DONE) {
        cli_watch_close(&w);
        return code;
    }
    memcpy(w.first, rows_of(start), bytes);
    memcpy(w.last, w.now, bytes);
    *out = w;
    return CLI_DONE;
}

void cli_watch_close(cli_watch *watch)
{
    free(watch->first);
    free(watch->last);
    *watch = (cli_watch){0};
}

/* ---- updates ---- */

static double distance(const float *a, const float *b, size_t dim)
{
    double sum = 0;
    for (size_t i = 0; i < dim; i++) {
        double far = (double)a[i] - (double)b[i];
        sum += far * far;
    }
    return sqrt(sum);
}

static bool is_asked(const cli_watch *w, int64_t token)
{
    for (size_t i = 0; i < w->asked_count; i++)
        if (w->asked[i] == token) return true;
    return false;
}

/* Finds the rows that moved most since the last update, by distance. */
static void find_movers(cli_watch *w)
{
    size_t from = w->found_count;
    for (size_t row = 0; row < w->rows; row++) {
        double since = distance(w->now + row * w->dim, w->last + row * w->dim, w->dim);
        if (!(since > 0) || !isfinite(since) || is_asked(w, (int64_t)row)) continue;
        size_t at = w->found_count;
        while (at > from && w->found[at - 1].since < since) at--;
        if (at == from + CLI_WATCH_MOVERS) continue;
        if (w->found_count < from + CLI_WATCH_MOVERS) w->found_count++;
        memmove(&w->found[at + 1], &w->found[at], (w->found_count - 1 - at) * sizeof *w->found);
        w->found[at] = (cli_watched){.token = (int64_t)row, .since = since};
    }
}

static int find_near(cli_watch *w, int threads)
{
    size_t count = w->found_count, most = CLI_WATCH_ASKED + CLI_WATCH_MOVERS;
    int64_t own[CLI_WATCH_ASKED + CLI_WATCH_MOVERS];
    embla_neighbour near[(CLI_WATCH_ASKED + CLI_WATCH_MOVERS) * CLI_WATCH_NEAR];
    float *queries = calloc(most * w->dim, sizeof *queries);
    if (!queries) return cli_failed("no memory for %zu rows", most);
    for (size_t i = 0; i < count; i++) {
        own[i] = w->found[i].token;
        memcpy(queries + i * w->dim, w->now + (size_t)own[i] * w->dim, w->dim * sizeof *queries);
    }
    embla_near_options options = {
        .k = CLI_WATCH_NEAR, .exclude = own, .exclude_count = 1, .threads = threads};
    embla_status status = embla_near(w->table, queries, count, &options, near, NULL);
    free(queries);
    if (status != EMBLA_OK) return cli_failed("%s", embla_error());
    for (size_t i = 0; i < count; i++)
        memcpy(w->found[i].near, near + i * CLI_WATCH_NEAR, sizeof w->found[i].near);
    return CLI_DONE;
}

int cli_watch_look(cli_watch *w, int threads)
{
    double begun = cli_progress_now();
    w->found_count = w->asked_count;
    for (size_t i = 0; i < w->asked_count; i++) {
        size_t at = (size_t)w->asked[i] * w->dim;
        w->found[i] = (cli_watched){.token = w->asked[i],
                                    .since = distance(w->now + at, w->last + at, w->dim)};
    }
    find_movers(w);
    for (size_t i = 0; i < w->found_count; i++) {
        size_t at = (size_t)w->found[i].token * w->dim;
        w->found[i].moved = distance(w->now + at, w->first + at, w->dim);
    }
    int code = find_near(w, threads);
    memcpy(w->last, w->now, w->rows * w->dim * sizeof *w->last);
    w->cost = cli_progress_now() - begun;
    return code;
}

/* ---- printing ---- */

enum { WORD = 10 }; /* columns of a word */

/* The word of a token, or NULL. The corpus also knows a word that is byte 0. */
static const char *word_of(const cli_watch *w, int64_t token, size_t *length)
{
    const char *word = embla_corpus_word(w->corpus, (int32_t)token, length);
    if (word || !w->words || !w->words[token]) return word;
    *length = strlen(w->words[token]);
    return w->words[token];
}

/* Writes the word of a token to text. Returns its width in columns. */
static size_t token_text(const cli_watch *w, int64_t token, bool ascii, char text[CLI_WORD_TEXT])
{
    size_t length = 0;
    const char *word = word_of(w, token, &length);
    if (word) return cli_word_show(word, length, ascii, WORD, text);
    return (size_t)snprintf(text, CLI_WORD_TEXT, "#%" PRId64, token);
}

static void print_row(const cli_watch *w, const cli_watched *row, bool ascii, FILE *to, int columns)
{
    char word[CLI_WORD_TEXT];
    int used = (int)token_text(w, row->token, ascii, word);
    fprintf(to, "%s%*s", word, used < WORD ? WORD - used : 0, "");
    used = (used < WORD ? WORD : used) + fprintf(to, "  %8.4f  %8.4f ", row->moved, row->since);
    for (size_t i = 0; i < CLI_WATCH_NEAR && row->near[i].row >= 0; i++) {
        char score[CLI_CELL];
        int length = snprintf(score, sizeof score, " %5.2f", row->near[i].score);
        int wide = (int)token_text(w, row->near[i].row, ascii, word);
        if (used + 1 + wide + length > columns) break;
        fprintf(to, " %s%s", word, score);
        used += 1 + wide + length;
    }
    fputc('\n', to);
}

void cli_watch_print(const cli_watch *w, FILE *to, int columns, int most)
{
    bool ascii = !cli_utf8_wanted();
    int lines = 1;
    if (most < 2) return;
    fprintf(to, "%-*s  %8s  %8s  %.*s\n", WORD, "token", "moved", "now",
            columns > 40 ? columns - 40 : 0, columns > 61 ? "nearest, with cosines" : "nearest");
    for (size_t i = 0; i < w->found_count && lines < most; i++, lines++)
        print_row(w, &w->found[i], ascii, to, columns);
}

static void json_word(const cli_watch *w, int64_t token, cli_json *json)
{
    size_t length = 0;
    bool bos = token == embla_corpus_bos(w->corpus);
    const char *word = bos ? NULL : word_of(w, token, &length);
    if (word)
        (void)cli_json_bytes(json, "token", word, length);
    else
        cli_json_text(json, "token", NULL);
    cli_json_whole(json, "id", token);
}

void cli_watch_json(const cli_watch *w, cli_json *json)
{
    cli_json_open(json, "rows", '[');
    for (size_t i = 0; i < w->found_count; i++) {
        const cli_watched *row = &w->found[i];
        cli_json_open(json, NULL, '{');
        json_word(w, row->token, json);
        cli_json_bool(json, "asked", i < w->asked_count);
        cli_json_real(json, "moved", row->moved);
        cli_json_real(json, "moved_since", row->since);
        cli_json_open(json, "near", '[');
        for (size_t k = 0; k < CLI_WATCH_NEAR && row->near[k].row >= 0; k++) {
            cli_json_open(json, NULL, '{');
            json_word(w, row->near[k].row, json);
            cli_json_real(json, "cosine", row->near[k].score);
            cli_json_close(json, '}');
        }
        cli_json_close(json, ']');
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}
