/* SPDX-License-Identifier: Apache-2.0 */
/* What verbs share that ask a table about its rows: it is opened with its words, tokens that
 * were typed become rows, rows that were found become tokens again, and are printed.
 *
 * In most checkpoints token i is row i. A Model2Vec checkpoint maps tokens to rows, and many tokens
 * can share a row: the row is then shown by the first of them.
 */
#ifndef CLI_CORE_ANSWERS_H
#define CLI_CORE_ANSWERS_H

#include "embla.h"
#include "embla_lab.h"

#include "core/args.h"
#include "core/model.h"
#include "core/out.h"
#include "core/token.h"
#include "core/visible.h"

/* ---- the table that is asked ---- */

typedef struct {
    cli_model model;
    embla_table *table;
    const embla_vocab *vocab; /* NULL: there are no words */
    int64_t *first, *sharing; /* by row: its first token (-1: none), how many; NULL: no mapping */
} cli_asked;

/* Opens path by the options of args, with its token table; what is worth a word is said on
 * stderr, unless --quiet. CLI_DONE, or another code after a sentence; either way
 * cli_asked_free. */
int cli_asked_open(const cli_args *args, const char *path, cli_asked *out);
void cli_asked_free(cli_asked *asked);

/* The operands after the first: tokens as they are typed, - for those on standard input. Adds
 * to tokens; CLI_DONE means that all words are there. */
int cli_asked_tokens(const cli_args *args, const cli_asked *asked, cli_tokens *tokens);
/* The rows of tokens to *rows, for free(); NULL if there are no tokens. CLI_FAILED after a
 * sentence, with both numbers, where one has none. */
int cli_asked_rows(const cli_asked *asked, const cli_tokens *tokens, int64_t **rows);
/* Finds the tokens of all rows. Call it once before rows that were found are printed. */
int cli_asked_find_tokens(cli_asked *asked);
/* The token of a row, and of how many tokens it is the row; -1, and 0, if of none. */
int64_t cli_asked_token(const cli_asked *asked, int64_t row, int64_t *sharing);

/* --svg FILE, where it is given, and --force: draw prints the chart of job to stdout, which is FILE
 * meanwhile and then itself again. draw's code, or CLI_FAILED after a sentence. */
int cli_asked_svg(const cli_args *args, const cli_asked *asked, int (*draw)(const void *job),
                  const void *job);

/* ---- rows in print ---- */

/* Whether the terminal, or whoever reads, takes more than ASCII. */
bool cli_utf8_wanted(void);

/* The word of a token for people, as cli_word_show gives it, or #5. Returns columns. */
size_t cli_token_show(const cli_asked *asked, int64_t token, bool ascii, size_t columns,
                      char text[CLI_WORD_TEXT]);
/* The same for programs, to stdout. */
void cli_token_write(const cli_asked *asked, int64_t token);
/* "token", and "token_hex" where it is no UTF-8; null if it has no word. */
void cli_token_json(const cli_asked *asked, int64_t token, cli_json *json);

/* Options of every verb that ranks rows, and what they come to. */
#define CLI_RANK_OPTIONS                                                                           \
    {.name = "top",                                                                                \
     .letter = 'k',                                                                                \
     .value = "N",                                                                                 \
     .standard = "10",                                                                             \
     .count = true,                                                                                \
     .help = "how many rows are printed"},                                                         \
        {.name = "rows",                                                                           \
         .value = "N",                                                                             \
         .count = true,                                                                            \
         .help = "only the first N rows of the table are looked at; without it all are"},          \
    {                                                                                              \
        .name = "format", .value = "FORMAT", .standard = "auto", .choices = cli_rank_format,       \
        .help = "how rows are printed; auto: a table on a terminal, text elsewhere"                \
    }
const char *cli_rank_format(size_t n);

typedef enum { CLI_RANK_TABLE, CLI_RANK_TEXT, CLI_RANK_JSON } cli_rank_form;

typedef struct {
    const cli_asked *asked;
    cli_rank_form form;
    bool quiet;
    bool utf8;
    int64_t rows; /* that are looked at */
    size_t top;   /* that are printed, at most */
    int threads;
} cli_rank;

/* By the options of args, checked against the table. */
int cli_rank_set_up(const cli_args *args, const cli_asked *asked, cli_rank *out);
/* Up to top rows, best first: rank, token, id, score. bars: the score that fills one; 0: the
 * largest. */
void cli_rank_print(const cli_rank *rank, const embla_neighbour *found, double bars);
/* The same as the array "neighbours". */
void cli_rank_json(const cli_rank *rank, const embla_neighbour *found, cli_json *json);
/* How many rows could not be found, where there are some: after a table below it, after text
 * on stderr. */
void cli_rank_report(const cli_rank *rank, const embla_near_report *report);

#endif
