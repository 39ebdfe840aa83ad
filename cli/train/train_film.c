/* SPDX-License-Identifier: Apache-2.0 */
/* The film of `embla train`. What the model writes is drawn with the same seed at every moment, so
 * that the texts differ by the weights alone.
 */
#include "train/train_film.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/train_sample.h"

enum { TEXT_EVERY = 15, SEEN = 20000 }; /* moments between texts; tokens that are counted */

/* ---- the rows ---- */

/* Counts the tokens of the first batches. Returns false if there is no memory. */
static bool count_tokens(const cli_training *t, int64_t *counts)
{
    size_t length = t->options.length, batch = t->options.batch, all = batch * length;
    int32_t *tokens = malloc(2 * all * sizeof *tokens);
    bool good = tokens != NULL;
    for (int64_t step = 0, seen = 0; good && seen < SEEN; step++) {
        size_t used = 0;
        const embla_corpus_request request = {.step = step, .batch = batch, .length = length};
        if (embla_corpus_batch(t->corpus, &request, tokens, tokens + all, &used) != EMBLA_OK) break;
        for (size_t i = 0; i < batch * used; i++)
            if (tokens[all + i] >= 0) counts[tokens[all + i]]++;
        seen += (int64_t)(batch * used) + 1;
    }
    free(tokens);
    return good;
}

typedef struct {
    int64_t token, count;
} counted;

static int more_frequent(const void *a, const void *b)
{
    const counted *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return (x->token > y->token) - (x->token < y->token);
}

/* All tokens by frequency; of equally frequent ones the lower first. NULL if there is no memory. */
static int64_t *frequent_tokens(const cli_training *t, size_t vocab)
{
    int64_t *counts = calloc(vocab, sizeof *counts);
    counted *order = malloc(vocab * sizeof *order);
    bool good = counts && order && count_tokens(t, counts);
    for (size_t i = 0; good && i < vocab; i++) order[i] = (counted){(int64_t)i, counts[i]};
    if (good) qsort(order, vocab, sizeof *order, more_frequent);
    for (size_t i = 0; good && i < vocab; i++) counts[i] = order[i].token;
    free(order);
    if (good) return counts;
    free(counts);
    return NULL;
}

static int choose_rows(cli_training *t, const embla_table *table)
{
    int64_t vocab = embla_table_rows(table), *order = NULL;
    if (t->watch.asked_count > 0)
        return cli_film_choose(&t->film, table, t->watch.asked, t->watch.asked_count);
    if (vocab <= CLI_FILM_ROWS) return cli_film_choose(&t->film, table, NULL, (size_t)vocab);
    order = frequent_tokens(t, (size_t)vocab);
    if (!order) return cli_failed("no memory to count %" PRId64 " tokens", vocab);
    int code = cli_film_choose(&t->film, table, order, (size_t)vocab);
    free(order);
    return code;
}

static int find_row(void *context, const char *word, size_t length, int64_t *row)
{
    const cli_training *t = context;
    const cli_watch_words in = {t->corpus, t->words, t->shape.vocab, "--film-axes"};
    return cli_watch_token(&in, word, length, row);
}

int cli_train_film_start(cli_training *t)
{
    const embla_table *table = embla_gpt_tokens(t->gpt);
    const embla_film_options options = {
        .first = embla_train_steps(t->train),
        .steps = t->steps,
        .guess = t->options.negatives > 0 ? 0 : log((double)t->shape.vocab)};
    if (!t->film.path) return CLI_DONE;
    if (!table) return cli_usage("--film needs a model of f32");
    int code = choose_rows(t, table);
    if (code == CLI_DONE) code = cli_film_read_axes(&t->film, find_row, t);
    for (size_t i = 0; code == CLI_DONE && t->words && i < t->film.of->count; i++)
        t->film.of->words[i] = t->words[t->film.of->rows[i]];
    return code == CLI_DONE
               ? cli_film_begin(&t->film, table, t->named ? t->named : t->text, &options)
               : code;
}

/* ---- moments ---- */

/* A divided n-gram table cannot be asked for a text by one rank alone. */
static bool text_due(const cli_training *t, size_t moments, bool now)
{
    bool last = embla_train_steps(t->train) >= t->steps;
    return !t->team.shard_ngrams && (now || last || moments % TEXT_EVERY == 0);
}

int cli_train_film_step(cli_training *t, bool now)
{
    const cli_sample_how how = {.temperature = 0.5, .tokens = 48, .texts = 3};
    int64_t step = embla_train_steps(t->train);
    embla_film_info info;
    char *text = NULL;
    size_t length = 0;
    int code = CLI_DONE;
    if (!t->film.film || embla_film_describe(t->film.film, &info) != EMBLA_OK) return CLI_DONE;
    bool due = now ? info.step != step : embla_film_due(t->film.film, step, t->last.loss);
    if (!due) return CLI_DONE;
    if (text_due(t, info.moments, now)) code = cli_sample_text(t, &how, &text, &length);
    if (code == CLI_DONE)
        code = cli_film_moment(&t->film, embla_gpt_tokens(t->gpt), step, text, length);
    free(text);
    t->paused = true;
    return code;
}
