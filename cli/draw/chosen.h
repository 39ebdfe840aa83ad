/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of a table a picture shows: the chosen ones, and of the others as many as there is
 * room for.
 */
#ifndef CLI_DRAW_CHOSEN_H
#define CLI_DRAW_CHOSEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLI_CHOSEN_MOST = 32, CLI_CHOSEN_LINES = 2 * CLI_CHOSEN_MOST + 1 };
/* A line that stands for rows that are left out. */
#define CLI_CHOSEN_GAP SIZE_MAX

typedef struct {
    int64_t rows[CLI_CHOSEN_MOST]; /* in order */
    size_t count;
    size_t lines[CLI_CHOSEN_LINES]; /* of the picture: an index of rows, or CLI_CHOSEN_GAP */
    size_t line_count;
} cli_chosen;

/* Chooses up to `most` of `all` rows: the count rows in `wanted` (those outside the table do not
 * count), then the whole table if it fits, else rows beside them. */
cli_chosen cli_chosen_of(int64_t all, const int64_t *wanted, size_t count, size_t most);
/* The index of a row; count if it is not there. */
size_t cli_chosen_find(const cli_chosen *chosen, int64_t row);
/* The colour of a row: the index of the first token that has it; -1 if none has. */
int cli_chosen_color(const int64_t *wanted, size_t count, int64_t row);

#endif
