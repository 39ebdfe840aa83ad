/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the verbs that query a table: open it with its vocabulary, convert typed tokens to
 * rows and rows to tokens, and print ranked rows.
 *
 * In most checkpoints token i is row i. A Model2Vec checkpoint maps tokens to rows, and many tokens
 * can share a row: the row is then shown by the first of them.
 */
#ifndef CLI_CORE_ANSWERS_H
#define CLI_CORE_ANSWERS_H

#include "embla.h"
#include "embla_lab.h"
#include "embla_wordvec.h"

#include "core/args.h"
#include "core/model.h"
#include "core/model_text.h"
#include "core/out.h"
#include "core/token.h"
#include "core/visible.h"

/* ---- the queried table ---- */

typedef struct {
    cli_model model;
    embla_table *table;
    const embla_vocab *vocab; /* NULL means no vocabulary */
    embla_subwords *subwords; /* rows of n-grams; NULL means none */
    cli_unseen unseen;        /* words of the command line that the vocabulary does not have */
    int64_t *first, *sharing; /* per row: first token or -1, number of tokens; may be NULL */
} cli_asked;

/* Opens path and its token table with the options of args. Notes go to stderr, unless --quiet.
 * Returns CLI_DONE, or another code after a message. Call cli_asked_free in any case. */
int cli_asked_open(const cli_args *args, const char *path, cli_asked *out);
void cli_asked_free(cli_asked *asked);

/* Appends the tokens of all operands after the first; - reads standard input. CLI_DONE means that
 * all words exist. */
int cli_asked_tokens(const cli_args *args, const cli_asked *asked, cli_tokens *tokens);
/* Writes the rows of tokens to *rows, which the caller frees; NULL if there are no tokens.
 * CLI_FAILED after a message if a token has no row. */
int cli_asked_rows(const cli_asked *asked, const cli_tokens *tokens, int64_t **rows);
/* CLI_FAILED after "token 5 (cat) has no neighbours: number 2 of its row is NaN", where trouble is
 * "has no neighbours", if a number of the row is not finite. */
int cli_asked_check_row(const cli_asked *asked, int64_t token, const float *row,
                        const char *trouble);
/* Lets words that the vocabulary does not have become tokens, if the file has rows of n-grams. */
void cli_asked_allow_unseen(cli_asked *asked, cli_tokens *tokens);
/* Lets operands that are no words be text, and uses --tokenizer. whole: a text of several tokens is
 * one entry, whose vector is that of `embla encode`. Call it after cli_asked_allow_unseen.
 * CLI_DONE, or CLI_FAILED after a message. */
int cli_asked_allow_text(const cli_args *args, bool whole, cli_asked *asked, cli_tokens *tokens);
/* Writes the vectors of count tokens to out (count x dim). A word or text that the vocabulary does
 * not have has row -1; its vector is the mean of its n-grams, or that of `embla encode`. CLI_DONE,
 * or CLI_FAILED after a message. */
int cli_asked_vectors(const cli_asked *asked, const int64_t *tokens, const int64_t *rows,
                      size_t count, int threads, float *out);
/* Finds the tokens of all rows. Call it once before rows are printed. */
int cli_asked_find_tokens(cli_asked *asked);
/* The first token of a row, and how many tokens share the row; -1 and 0 if there is none. */
int64_t cli_asked_token(const cli_asked *asked, int64_t row, int64_t *sharing);

/* Checks before long work that the file of --plot can be written. */
int cli_asked_check_plot(const cli_args *args);
/* Implements --plot FILE and --force: draw prints the chart of job to stdout, which is redirected
 * to FILE meanwhile. Returns the code of draw, or CLI_FAILED after a message. */
int cli_asked_plot(const cli_args *args, int (*draw)(const void *job), const void *job);

/* ---- printing rows ---- */

/* Whether the locale uses UTF-8. */
bool cli_utf8_wanted(void);

/* The word of a token for people, as from cli_word_show, or #5. Returns its width in columns. */
size_t cli_token_show(const cli_asked *asked, int64_t token, bool ascii, size_t columns,
                      char text[CLI_WORD_TEXT]);
/* Prints the word for programs, to stdout. */
void cli_token_write(const cli_asked *asked, int64_t token);
/* Prints "token", and "token_hex" if the word is not UTF-8; null without a word. */
void cli_token_json(const cli_asked *asked, int64_t token, cli_json *json);

/* Options of every verb that ranks rows: those that search a table have --rows too. */
#define CLI_RANK_TOP                                                                               \
    {                                                                                              \
        .name = "top", .letter = 'k', .value = "N", .standard = "10", .count = true, .least = 1,   \
        .help = "number of rows to print"                                                          \
    }
#define CLI_RANK_FORMAT                                                                            \
    {                                                                                              \
        .name = "format", .value = "FORMAT", .standard = "auto", .choices = cli_rank_format,       \
        .help = "output format; auto means table on a terminal, text elsewhere"                    \
    }
#define CLI_RANK_OPTIONS                                                                           \
    CLI_RANK_TOP,                                                                                  \
        {.name = "rows",                                                                           \
         .value = "N",                                                                             \
         .count = true,                                                                            \
         .least = 1,                                                                               \
         .help = "search only the first N rows of the table (default: all)"},                      \
        CLI_RANK_FORMAT
const char *cli_rank_format(size_t n);

typedef enum { CLI_RANK_TABLE, CLI_RANK_TEXT, CLI_RANK_JSON } cli_rank_form;

typedef struct {
    const cli_asked *asked;
    cli_rank_form form;
    bool quiet;
    bool utf8;
    int64_t rows; /* rows to search */
    size_t top;   /* maximum number of printed rows */
    int threads;
} cli_rank;

/* Reads --format and --json. CLI_DONE, or CLI_USAGE after a message. */
int cli_rank_read_form(const cli_args *args, cli_rank_form *out);
/* Reads the options of args and checks them against the table. searches: the verb has --rows, and
 * no more rows can be printed than are searched. */
int cli_rank_set_up(const cli_args *args, bool searches, const cli_asked *asked, cli_rank *out);
/* Prints up to top rows, best first: rank, token, id, score. bars is the score of a full bar; 0
 * means the largest score. */
void cli_rank_print(const cli_rank *rank, const embla_neighbour *found, double bars);
/* Prints the same as the JSON array "neighbours". */
void cli_rank_json(const cli_rank *rank, const embla_neighbour *found, cli_json *json);
/* Reports the number of skipped rows, if any: below a table, or on stderr after text. */
void cli_rank_report(const cli_rank *rank, const embla_near_report *report);

#endif
