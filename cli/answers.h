/* SPDX-License-Identifier: Apache-2.0 */
/* What verbs share that ask a table about its rows: it is opened with its words, tokens that
 * were typed become rows, rows that were found become tokens again, and are printed.
 *
 * In most checkpoints a token is its row. In Model2Vec's a tensor says which row a token has,
 * and one row may be that of many tokens; it then goes by the first of them.
 */
#ifndef EMBLA_CLI_ANSWERS_H
#define EMBLA_CLI_ANSWERS_H

#include "embla.h"
#include "embla_lab.h"

#include "args.h"
#include "model.h"
#include "out.h"
#include "token.h"

/* ---- the table that is asked ---- */

typedef struct {
    embla_model model;
    embla_table *table;
    const embla_vocab *vocab; /* NULL: there are no words */
    int64_t *first, *sharing; /* by row: its first token (-1: none), how many; NULL: no mapping */
} embla_asked;

/* Opens path by the options of args, with its token table; what is worth a word is said on
 * stderr, unless --quiet. EMBLA_DONE, or another code after a sentence; either way
 * embla_asked_free. */
int embla_asked_open(const embla_args *args, const char *path, embla_asked *out);
void embla_asked_free(embla_asked *asked);

/* The operands after the first: tokens as they are typed, - for those on standard input. Adds
 * to tokens; EMBLA_DONE means that all words are there. */
int embla_asked_tokens(const embla_args *args, const embla_asked *asked, embla_tokens *tokens);
/* The rows of tokens to *rows, for free(); NULL if there are no tokens. EMBLA_FAILED after a
 * sentence, with both numbers, where one has none. */
int embla_asked_rows(const embla_asked *asked, const embla_tokens *tokens, int64_t **rows);
/* To be called once before rows that were found are printed. */
int embla_asked_turn(embla_asked *asked);
/* The token of a row, and of how many tokens it is the row; -1, and 0, if of none. */
int64_t embla_asked_token(const embla_asked *asked, int64_t row, int64_t *sharing);

/* --svg FILE, where it is given, and --force: draw prints the chart of job to stdout, which is FILE
 * meanwhile and then itself again. draw's code, or EMBLA_FAILED after a sentence. */
int embla_asked_svg(const embla_args *args, const embla_asked *asked, int (*draw)(const void *job),
                    const void *job);

/* ---- rows in print ---- */

/* Whether the terminal, or whoever reads, takes more than ASCII. */
bool embla_utf8_wanted(void);

/* The word of a token for people, as embla_word_show gives it, or #5. Returns columns. */
size_t embla_token_show(const embla_asked *asked, int64_t token, bool ascii, size_t columns,
                        char text[EMBLA_WORD_TEXT]);
/* The same for programs, to stdout. */
void embla_token_write(const embla_asked *asked, int64_t token);
/* "token", and "token_hex" where it is no UTF-8; null if it has no word. */
void embla_token_json(const embla_asked *asked, int64_t token, embla_json *json);

/* Options of every verb that ranks rows, and what they come to. */
#define EMBLA_RANK_OPTIONS                                                                         \
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
        .name = "format", .value = "FORMAT", .standard = "auto", .choices = embla_rank_format,     \
        .help = "how rows are printed; auto: a table on a terminal, text elsewhere"                \
    }
const char *embla_rank_format(size_t n);

typedef enum { EMBLA_RANK_TABLE, EMBLA_RANK_TEXT, EMBLA_RANK_JSON } embla_rank_form;

typedef struct {
    const embla_asked *asked;
    embla_rank_form form;
    bool quiet;
    bool utf8;
    int64_t rows; /* that are looked at */
    size_t top;   /* that are printed, at most */
    int threads;
} embla_rank;

/* By the options of args, checked against the table. */
int embla_rank_set_up(const embla_args *args, const embla_asked *asked, embla_rank *out);
/* Up to top rows, best first: rank, token, id, score. bars: the score that fills one; 0: the
 * largest. */
void embla_rank_print(const embla_rank *rank, const embla_neighbour *found, double bars);
/* The same as the array "neighbours". */
void embla_rank_json(const embla_rank *rank, const embla_neighbour *found, embla_json *json);
/* How many rows could not be found, where there are some: after a table below it, after text
 * on stderr. */
void embla_rank_report(const embla_rank *rank, const embla_near_report *report);

#endif
