/* SPDX-License-Identifier: Apache-2.0 */
/* The film of `embla words`: the words of --watch, or the most frequent ones. A film has no texts,
 * because the rows alone write none.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/complain.h"
#include "core/token.h"
#include "train/words_run.h"

static int find_row(void *context, const char *word, size_t length, int64_t *row)
{
    const cli_words *w = context;
    const embla_vocab *vocab = embla_wordvec_vocab(w->words);
    cli_tokens tokens = {.strict = true};
    int code = cli_tokens_word(&tokens, vocab, word, length);
    if (code == CLI_DONE) code = cli_tokens_finish(&tokens, vocab);
    if (code == CLI_DONE && tokens.ids[0] >= w->about.words)
        code = cli_failed("--film-axes: there is no word #%" PRId64 "; the last is #%" PRId64,
                          tokens.ids[0], w->about.words - 1);
    if (code == CLI_DONE) *row = tokens.ids[0];
    cli_tokens_free(&tokens);
    return code;
}

static int choose_rows(cli_words *w, const embla_table *table)
{
    int64_t watched[CLI_WORDS_WATCHED];
    for (size_t i = 0; i < w->watch_count; i++) watched[i] = w->watched[i];
    if (w->watch_count > 0) return cli_film_choose(&w->film, table, watched, w->watch_count);
    return cli_film_choose(&w->film, table, NULL, (size_t)w->about.words);
}

int cli_words_film_start(cli_words *w)
{
    const embla_table *table = NULL;
    /* at first every probability is one half: of the word, and of each negative */
    const embla_film_options options = {.first = w->last.step,
                                        .steps = w->last.steps,
                                        .guess = (1 + (double)w->options.negatives) * log(2)};
    if (!w->film.path) return CLI_DONE;
    if (embla_wordvec_table(w->words, &table) != EMBLA_OK) return cli_failed("%s", embla_error());
    int code = choose_rows(w, table);
    if (code == CLI_DONE) code = cli_film_read_axes(&w->film, find_row, w);
    for (size_t i = 0; code == CLI_DONE && i < w->film.of->count; i++)
        w->film.of->words[i] =
            embla_vocab_word(embla_wordvec_vocab(w->words), (int32_t)w->film.of->rows[i], NULL);
    if (code == CLI_DONE) code = cli_film_begin(&w->film, table, w->named, &options);
    return code == CLI_DONE ? cli_words_film_step(w, true) : code;
}

int cli_words_film_step(cli_words *w, bool now)
{
    const embla_table *table = NULL;
    embla_film_info info;
    double loss = w->last.loss > 0 ? w->last.loss : NAN; /* of too few windows it is not known */
    if (!w->film.film || embla_film_describe(w->film.film, &info) != EMBLA_OK) return CLI_DONE;
    bool due = now ? info.step != w->last.step : embla_film_due(w->film.film, w->last.step, loss);
    if (!due) return CLI_DONE;
    if (embla_wordvec_table(w->words, &table) != EMBLA_OK) return cli_failed("%s", embla_error());
    return cli_film_moment(&w->film, table, w->last.step, NULL, 0);
}
