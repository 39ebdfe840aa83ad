/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the token table while they learn: how far each has moved, and what is near it now. For
 * tokens that were asked for, and for those that moved most since they were last looked at.
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
    double moved; /* the length of what was added to it since the start */
    double since; /* since the last look */
    embla_neighbour near[CLI_WATCH_NEAR];
} cli_watched;

typedef struct {
    const embla_corpus *corpus; /* NULL: nothing is watched */
    const embla_table *table;   /* the rows as they are now */
    int64_t asked[CLI_WATCH_ASKED];
    size_t asked_count;
    float *first, *last; /* the table at the start, and at the last look */
    float *now;
    size_t rows, dim;
    cli_watched found[CLI_WATCH_ASKED + CLI_WATCH_MOVERS]; /* asked ones first */
    size_t found_count;
    double cost; /* seconds that the last look took */
} cli_watch;

/* list: tokens as they are typed, e,m,a or #5. start has the rows that were the first; it may be
 * gpt itself, and is not needed afterwards. The exit code, after a sentence. */
int cli_watch_open(const embla_corpus *corpus, const embla_gpt *gpt, const embla_gpt *start,
                   const char *list, cli_watch *out);
void cli_watch_close(cli_watch *watch);
/* Looks at all rows. */
int cli_watch_look(cli_watch *watch, int threads);
/* What was seen, as a table of lines no wider than columns, at most `most` of them. */
void cli_watch_print(const cli_watch *watch, FILE *to, int columns, int most);
void cli_watch_json(const cli_watch *watch, cli_json *json);

#endif
