/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the progress of `embla words`. Facts, reports and the summary go to stdout, the redrawn
 * lines to stderr, if that is a terminal.
 */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/complain.h"
#include "core/inputs.h"
#include "core/token.h"
#include "core/visible.h"
#include "host/host.h"
#include "host/paths.h"
#include "train/words_run.h"

enum { PAIRS_DRAWN = 6, WORD_DRAWN = 16, REPORTS_MOST = 20 };

/* ---- watched words ---- */

int cli_words_watch(cli_words *w, const char *list)
{
    cli_tokens tokens = {.strict = true}; /* a mistake is found before a long training */
    char count[CLI_CELL];
    int code = cli_tokens_words(&tokens, embla_wordvec_vocab(w->words), list, "--watch");
    if (code == CLI_DONE) code = cli_tokens_finish(&tokens, embla_wordvec_vocab(w->words));
    if (code == CLI_DONE && (tokens.count < 2 || tokens.count > CLI_WORDS_WATCHED))
        code = cli_usage("--watch has %s; it needs 2 to %d",
                         cli_plural((int64_t)tokens.count, "word", count), (int)CLI_WORDS_WATCHED);
    for (size_t i = 0; code == CLI_DONE && i < tokens.count; i++) {
        if (tokens.ids[i] >= w->about.words)
            code = cli_failed("--watch: there is no word #%" PRId64 "; the last is #%" PRId64,
                              tokens.ids[i], w->about.words - 1);
        else
            w->watched[w->watch_count++] = (int32_t)tokens.ids[i];
    }
    cli_tokens_free(&tokens);
    return code;
}

double cli_words_cosine(const cli_words *w, size_t a, size_t b)
{
    const embla_table *table = NULL;
    if (embla_wordvec_table(w->words, &table) != EMBLA_OK) return NAN;
    const float *x = embla_table_row(table, w->watched[a]);
    const float *y = embla_table_row(table, w->watched[b]);
    size_t dim = embla_table_dim(table);
    double norms = embla_norm(x, dim) * embla_norm(y, dim);
    return norms > 0 ? embla_cosine(x, y, dim) : NAN;
}

static const char *word_of(const cli_words *w, size_t n, char text[CLI_WORD_TEXT])
{
    size_t length = 0;
    const char *word = embla_vocab_word(embla_wordvec_vocab(w->words), w->watched[n], &length);
    (void)cli_word_show(word, length, false, WORD_DRAWN, text);
    return text;
}

/* "cat-dog 0.71": pair n of the watched words. False past the last. */
static bool pair_of(const cli_words *w, size_t n, size_t *a, size_t *b)
{
    for (*a = 0; *a + 1 < w->watch_count; ++*a)
        for (*b = *a + 1; *b < w->watch_count; ++*b)
            if (n-- == 0) return true;
    return false;
}

/* Writes a line with the cosines of the first pairs, as many as fit in `width` columns. */
static void write_pairs(const cli_words *w, size_t most, int width, FILE *to)
{
    char x[CLI_WORD_TEXT], y[CLI_WORD_TEXT], pair[2 * CLI_WORD_TEXT + CLI_CELL];
    size_t a, b;
    int used = 0;
    for (size_t n = 0; n < most && pair_of(w, n, &a, &b); n++) {
        (void)snprintf(pair, sizeof pair, "  %s-%s %.3f", word_of(w, a, x), word_of(w, b, y),
                       cli_words_cosine(w, a, b));
        if (used + (int)cli_columns(pair) > width) break;
        used += (int)cli_columns(pair);
        fputs(pair, to);
    }
    if (used > 0) fputc('\n', to);
}

/* ---- the beginning ---- */

static void json_start(const cli_words *w)
{
    const embla_wordvec_options *o = &w->options;
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "event", w->dry_run ? "plan" : "start");
    cli_json_text(&json, "text", w->named);
    cli_json_whole(&json, "bytes", w->about.bytes);
    cli_json_whole(&json, "tokens", w->about.tokens);
    cli_json_whole(&json, "known", w->about.known);
    cli_json_whole(&json, "words", w->about.words);
    cli_json_whole(&json, "too_long", w->about.too_long);
    cli_json_whole(&json, "dropped", w->about.dropped);
    cli_json_whole(&json, "subwords", w->about.grams);
    cli_json_whole(&json, "phrases", w->about.phrases);
    cli_json_whole(&json, "memory", w->about.memory);
    cli_json_text(&json, "kind", embla_wordvec_kind_name(o->kind));
    cli_json_text(&json, "clean", embla_wordvec_clean_name(o->clean));
    cli_json_whole(&json, "dim", (int64_t)o->dim);
    cli_json_whole(&json, "window", (int64_t)o->window);
    cli_json_whole(&json, "negatives", (int64_t)o->negatives);
    cli_json_whole(&json, "epochs", (int64_t)o->epochs);
    cli_json_real(&json, "rate", o->rate);
    cli_json_real(&json, "sample", fmax(o->sample, 0));
    cli_json_bool(&json, "hogwild", o->hogwild);
    cli_json_close(&json, '}');
    putchar('\n');
}

static void print_text(const cli_words *w)
{
    char tokens[CLI_CELL], words[CLI_CELL], number[CLI_CELL], size[CLI_CELL];
    const embla_wordvec_text *t = &w->about;
    cli_out_fact("text", "%s: %s, %s", w->named, cli_size(t->bytes, size),
                 cli_plural(t->tokens, "word", tokens));
    cli_out_fact("vocabulary", "%s that occur %s or more; they are %.1f %% of the text",
                 cli_plural(t->words, "word", words),
                 cli_plural(w->options.min_count, "time", number),
                 t->tokens > 0 ? 100.0 * (double)t->known / (double)t->tokens : 0.0);
    if (w->options.phrases > 0)
        cli_out_fact("phrases", "%s read as one word", cli_plural(t->phrases, "pair", words));
    if (t->too_long > 0)
        cli_out_fact("note", "%s longer than 255 bytes left out",
                     cli_plural(t->too_long, "word", words));
    if (t->dropped > 0)
        cli_out_fact("note", "%s dropped while counting, to bound memory",
                     cli_plural(t->dropped, "rare word", words));
}

void cli_words_show_start(const cli_words *w)
{
    const embla_wordvec_options *o = &w->options;
    char rows[CLI_CELL], memory[CLI_CELL], epochs[CLI_CELL];
    if (w->json) {
        json_start(w);
        return;
    }
    if (w->quiet && !w->dry_run) return;
    print_text(w);
    cli_out_fact("table", "%s x %zu, %s, window %zu, %zu negatives",
                 cli_commas(w->about.words, rows), o->dim, embla_wordvec_kind_name(o->kind),
                 o->window, o->negatives);
    if (w->about.grams > 0)
        cli_out_fact("subwords", "%s x %zu: n-grams of %zu to %zu characters",
                     cli_commas(w->about.grams, rows), o->dim, o->min_gram, o->max_gram);
    cli_out_fact("training", "%s, rate %g to 0, sample %g%s",
                 cli_plural((int64_t)o->epochs, "epoch", epochs), o->rate, fmax(o->sample, 0),
                 o->hogwild ? "; hogwild: each run gives another result" : "");
    cli_out_fact("memory", "%s, of which the text %s", cli_size(w->about.memory, memory),
                 cli_size(w->about.bytes, rows));
    cli_film_say_start(&w->film);
    if (w->before > 0) cli_out_fact("resumed", "after %.2f epochs", w->before);
}

/* ---- progress ---- */

static double speed_of(const cli_words *w)
{
    double seconds = cli_progress_now() - w->begun - w->pauses;
    return seconds > 0 ? (double)w->tokens / seconds : 0;
}

static const char *left_text(const cli_words *w, char text[CLI_CELL])
{
    double done = w->last.epochs - w->before, left = (double)w->options.epochs - w->last.epochs;
    double seconds = done > 0 ? (cli_progress_now() - w->begun) / done * left : 0;
    int64_t all = (int64_t)(seconds + 0.5);
    (void)snprintf(text, CLI_CELL, "%" PRId64 ":%02d", all / 60, (int)(all % 60));
    return text;
}

/* Writes the redrawn line, no wider than the terminal: if it does not fit, without the speed, then
 * without the loss. */
static void progress_line(const cli_words *w, FILE *to)
{
    char text[256], loss[CLI_CELL], speed[CLI_CELL], paced[2 * CLI_CELL], left[CLI_CELL];
    (void)snprintf(loss, sizeof loss, "  loss %.3f", w->last.loss);
    (void)snprintf(paced, sizeof paced, "  %s words/s", cli_commas((int64_t)speed_of(w), speed));
    char *const less[] = {paced, loss, NULL};
    for (size_t n = 0;; n++) {
        int used = snprintf(text, sizeof text, "epoch %.2f of %zu%s%s  %s left", w->last.epochs,
                            w->options.epochs, loss, paced, left_text(w, left));
        if (used <= cli_progress_width() || !less[n]) break;
        less[n][0] = '\0';
    }
    fprintf(to, "%.*s", cli_progress_width(), text);
}

void cli_words_draw(cli_words *w)
{
    char *text = NULL;
    size_t size = 0;
    double now = cli_progress_now();
    if (!w->progress.shown || now - w->progress.last < 0.1) return;
    FILE *to = cli_text_open(&text, &size);
    if (!to) return;
    write_pairs(w, PAIRS_DRAWN, cli_progress_width(), to);
    progress_line(w, to);
    if (cli_text_close(to, &text, &size)) cli_progress_draw(&w->progress, text);
    free(text);
    w->progress.last = now;
}

/* ---- reports ---- */

/* A score of --eval: the share of right analogies, or Spearman's correlation. */
typedef struct {
    bool analogies;
    int64_t asked, covered;
    double score;
} score;

static int evaluate(const cli_words *w, const char *path, score *out)
{
    const embla_eval_options options = {.threads = w->options.threads};
    const embla_vocab *vocab = embla_wordvec_vocab(w->words);
    const embla_table *table = NULL;
    embla_eval *eval = NULL;
    size_t count = 0;
    int64_t correct = 0;
    embla_status status = embla_wordvec_table(w->words, &table);
    if (status == EMBLA_OK)
        status = embla_eval_new_analogies(table, vocab, cli_input_path(path), &options, &eval);
    *out = (score){.analogies = status == EMBLA_OK};
    if (status == EMBLA_ERR_UNSUPPORTED)
        status = embla_eval_new_pairs(table, vocab, cli_input_path(path), &options, &eval);
    if (status != EMBLA_OK) return cli_failed("%s", embla_error());
    const embla_eval_part *parts = embla_eval_parts(eval, &count);
    for (size_t i = 0; i < count; i++) {
        out->asked += parts[i].asked;
        out->covered += parts[i].covered;
        correct += parts[i].correct;
        out->score = parts[i].spearman;
    }
    if (out->analogies)
        out->score = out->covered > 0 ? (double)correct / (double)out->covered : NAN;
    embla_eval_free(eval);
    return CLI_DONE;
}

static void print_score(const cli_words *w, const char *path, const score *s, cli_json *json)
{
    char covered[CLI_CELL], asked[CLI_CELL];
    if (!w->json) {
        printf("  %.4f  %s of %s  %s %s\n", s->score, cli_commas(s->covered, covered),
               cli_commas(s->asked, asked), s->analogies ? "analogies of" : "Spearman of",
               cli_path_title(path));
        return;
    }
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "file", cli_path_title(path));
    cli_json_text(json, "measure", s->analogies ? "analogies" : "spearman");
    cli_json_real(json, "score", s->score);
    cli_json_whole(json, "covered", s->covered);
    cli_json_whole(json, "asked", s->asked);
    cli_json_close(json, '}');
}

static int print_scores(const cli_words *w, cli_json *json)
{
    int code = CLI_DONE;
    if (w->json) cli_json_open(json, "scores", '[');
    for (size_t i = 0; i < w->eval_count && code == CLI_DONE; i++) {
        score s;
        code = evaluate(w, w->evals[i], &s);
        if (code == CLI_DONE) print_score(w, w->evals[i], &s, json);
    }
    if (w->json) cli_json_close(json, ']');
    return code;
}

static void json_cosines(const cli_words *w, cli_json *json)
{
    char x[CLI_WORD_TEXT], y[CLI_WORD_TEXT];
    size_t a, b;
    cli_json_open(json, "cosines", '[');
    for (size_t n = 0; pair_of(w, n, &a, &b); n++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "a", word_of(w, a, x));
        cli_json_text(json, "b", word_of(w, b, y));
        cli_json_real(json, "cosine", cli_words_cosine(w, a, b));
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static bool add_point(cli_words *w)
{
    size_t a, b;
    if (w->point_count == w->point_room) {
        size_t room = w->point_room > 0 ? 2 * w->point_room : 64;
        cli_words_point *points = realloc(w->points, room * sizeof *points);
        if (!points) return false;
        w->points = points;
        w->point_room = room;
    }
    cli_words_point *p = &w->points[w->point_count++];
    *p = (cli_words_point){.epochs = w->last.epochs, .loss = w->loss};
    for (size_t n = 0; pair_of(w, n, &a, &b); n++) p->cosines[n] = cli_words_cosine(w, a, b);
    return true;
}

/* Prints the cosines of all pairs after `used` columns of a report. A terminal that is too
 * narrow gets several lines. */
static void print_pairs(const cli_words *w, int used)
{
    char x[CLI_WORD_TEXT], y[CLI_WORD_TEXT], pair[2 * CLI_WORD_TEXT + CLI_CELL];
    size_t a, b;
    for (size_t n = 0; pair_of(w, n, &a, &b); n++) {
        (void)snprintf(pair, sizeof pair, "  %s-%s %.3f", word_of(w, a, x), word_of(w, b, y),
                       cli_words_cosine(w, a, b));
        int columns = (int)cli_columns(pair);
        if (!cli_out_fits(used + columns)) {
            putchar('\n');
            used = 0;
        }
        fputs(pair, stdout);
        used += columns;
    }
    putchar('\n');
}

/* On a terminal a report for each of hundreds of epochs hides the rest of the screen, and the line
 * that is redrawn says the same: every tenth of them is reported. */
static bool is_report_due(const cli_words *w, bool scores)
{
    int64_t epochs = (int64_t)w->options.epochs;
    if (w->json || epochs <= REPORTS_MOST || !w->progress.shown || !cli_is_terminal(CLI_STDOUT))
        return true;
    if ((scores && w->eval_count > 0) || w->last.step == w->last.steps) return true;
    return w->epoch % (epochs / 10) == 0;
}

int cli_words_report(cli_words *w, bool scores)
{
    char speed[CLI_CELL];
    cli_json json = {0};
    int code = CLI_DONE;
    if (w->plot && !add_point(w)) return cli_failed("no memory for the points of the plot");
    if (w->quiet && !w->json) return CLI_DONE;
    if (!is_report_due(w, scores)) return CLI_DONE;
    cli_progress_wipe(&w->progress);
    if (w->json) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "event", "report");
        cli_json_real(&json, "epochs", w->last.epochs);
        cli_json_real(&json, "loss", w->loss);
        cli_json_real(&json, "rate", w->last.rate);
        cli_json_real(&json, "words_per_second", floor(speed_of(w)));
        if (w->watch_count > 0) json_cosines(w, &json);
        if (scores && w->eval_count > 0) code = print_scores(w, &json);
        cli_json_close(&json, '}');
        putchar('\n');
    } else {
        int used = printf("epoch %.2f of %zu  loss %.3f  %s words/s", w->last.epochs,
                          w->options.epochs, w->loss, cli_commas((int64_t)speed_of(w), speed));
        print_pairs(w, used);
        if (scores && w->eval_count > 0) code = print_scores(w, NULL);
    }
    (void)fflush(stdout);
    return code;
}

/* ---- the end ---- */

/* The first word that can be typed as it is: the most frequent word of three letters or more. */
static const char *example_word(const cli_words *w)
{
    const embla_vocab *vocab = embla_wordvec_vocab(w->words);
    for (int32_t token = 0; token < (int32_t)w->about.words; token++) {
        size_t length = 0, at = 0;
        const char *word = embla_vocab_word(vocab, token, &length);
        while (word && at < length && isalpha((unsigned char)word[at])) at++;
        if (word && at == length && length >= 3 && length <= 20) return word;
    }
    return "'#0'";
}

void cli_words_show_end(const cli_words *w)
{
    double seconds = cli_progress_now() - w->begun;
    cli_json json = {0};
    if (w->json) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "event", "done");
        cli_json_text(&json, "output", w->output);
        cli_json_whole(&json, "words", w->about.words);
        cli_json_real(&json, "seconds", seconds);
        if (w->film.bytes > 0) cli_json_text(&json, "film", w->film.path);
        cli_json_close(&json, '}');
        putchar('\n');
    } else if (!w->quiet) {
        char rows[CLI_CELL];
        cli_out_fact("written", "%s: %s x %zu in %.1f s", w->output,
                     cli_commas(w->about.words, rows), w->options.dim, seconds);
        cli_film_say_end(&w->film);
        cli_out_fact("next", "embla near %s %s", w->output, example_word(w));
    }
}
