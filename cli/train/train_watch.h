/* SPDX-License-Identifier: Apache-2.0 */
/* Watches rows of the token table during training: how far each has moved, and its nearest rows.
 * It shows the tokens of --watch and those that moved most since the last update.
 */
#ifndef CLI_TRAIN_TRAIN_WATCH_H
#define CLI_TRAIN_TRAIN_WATCH_H

#include <stdio.h>

#include "embla_lab.h"
#include "embla_train.h"

#include "core/out.h"

enum { CLI_WATCH_ASKED = 16, CLI_WATCH_MOVERS = 5, CLI_WATCH_NEAR = 5 };

typedef struct {
    int64_t token;
    double moved; /* distance from the initial row */
    double since; /* distance since the last update */
    embla_neighbour near[CLI_WATCH_NEAR];
} cli_watched;

typedef struct {
    const embla_corpus *corpus; /* NULL means that nothing is watched */
    const char **words;         /* the words of all tokens; NULL means that they have none */
    const embla_table *table;   /* the current rows */
    int64_t asked[CLI_WATCH_ASKED];
    size_t asked_count;
    float *first, *last; /* the table at the start and at the last update */
    float *now;
    size_t rows, dim;
    cli_watched found[CLI_WATCH_ASKED + CLI_WATCH_MOVERS]; /* the tokens of --watch first */
    size_t found_count;
    double cost; /* seconds of the last update */
} cli_watch;

/* Where the token of a word is looked up, and the option that names it in messages. */
typedef struct {
    const embla_corpus *corpus;
    const char **words; /* of all tokens; NULL means that they have none */
    int64_t rows;
    const char *option;
} cli_watch_words;

/* Finds one token: "e" or "#5". Returns the exit code, after a message. */
int cli_watch_token(const cli_watch_words *in, const char *text, size_t length, int64_t *out);
/* list is the value of --watch: e,m,a or #5. start has the initial rows; it may be gpt itself and
 * is not used afterwards. Returns the exit code, after a message on failure. */
int cli_watch_open(const embla_corpus *corpus, const char **words, const embla_gpt *gpt,
                   const embla_gpt *start, const char *list, cli_watch *out);
void cli_watch_close(cli_watch *watch);
/* Updates the distances and the nearest rows. */
int cli_watch_look(cli_watch *watch, int threads);
/* Prints the result of the last update: at most `most` lines, no wider than columns. */
void cli_watch_print(const cli_watch *watch, FILE *to, int columns, int most);
void cli_watch_json(const cli_watch *watch, cli_json *json);

#endif
