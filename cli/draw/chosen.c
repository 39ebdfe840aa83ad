/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the rows of a picture. */
#include "draw/chosen.h"

static void add_row(cli_chosen *c, int64_t all, size_t most, int64_t row)
{
    size_t at = c->count;
    if (row < 0 || row >= all || c->count == most || cli_chosen_find(c, row) < c->count) return;
    for (; at > 0 && c->rows[at - 1] > row; at--) c->rows[at] = c->rows[at - 1];
    c->rows[at] = row;
    c->count++;
}

cli_chosen cli_chosen_of(int64_t all, const int64_t *wanted, size_t count, size_t most)
{
    cli_chosen c = {.count = 0};
    int64_t next = 0;
    if (most > CLI_CHOSEN_MOST) most = CLI_CHOSEN_MOST;
    for (size_t i = 0; i < count; i++) add_row(&c, all, most, wanted[i]);
    for (int64_t row = 0; all <= (int64_t)most && row < all; row++) add_row(&c, all, most, row);
    for (int64_t far = 1; far <= 2; far++) {
        for (size_t i = 0; i < count; i++) {
            add_row(&c, all, most, wanted[i] - far);
            add_row(&c, all, most, wanted[i] + far);
        }
    }
    for (size_t i = 0; i < c.count; i++) {
        if (c.rows[i] != next) c.lines[c.line_count++] = CLI_CHOSEN_GAP;
        c.lines[c.line_count++] = i;
        next = c.rows[i] + 1;
    }
    if (next != all) c.lines[c.line_count++] = CLI_CHOSEN_GAP;
    return c;
}

size_t cli_chosen_find(const cli_chosen *c, int64_t row)
{
    size_t i = 0;
    while (i < c->count && c->rows[i] != row) i++;
    return i;
}

int cli_chosen_color(const int64_t *wanted, size_t count, int64_t row)
{
    for (size_t i = 0; i < count; i++)
        if (wanted[i] == row) return (int)(i % 6);
    return -1;
}
