/* SPDX-License-Identifier: Apache-2.0 */
/* microGPT writes names letter by letter: a..z are tokens 0..25, and 26 begins a name. Its input
 * layer adds rows of two tables: 27 x 16 for tokens and 8 x 16 for positions. This program
 * computes the input of the letter 'e' as the third of a name: x = tokens[4] + positions[2].
 */
#include <embla.h>
#include <stdio.h>
#include <stdlib.h>

enum { VOCAB = 27, POSITIONS = 8, DIM = 16 };

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "microgpt: %s\n", embla_error());
    exit(1);
}

static void print_row(const char *name, const float *row)
{
    printf("%-12s", name);
    for (int j = 0; j < DIM; j++)
        printf("%s %6.3f", j == DIM / 2 ? "\n            " : "", (double)row[j]);
    printf("\n");
}

int main(void)
{
    const int32_t token = 'e' - 'a';
    const int64_t position = 2;
    float x[DIM];
    embla_table *tokens = NULL, *positions = NULL;
    must(embla_table_new(EMBLA_F32, VOCAB, DIM, NULL, &tokens));
    must(embla_table_new(EMBLA_F32, POSITIONS, DIM, NULL, &positions));
    must(embla_table_init(tokens, &(embla_init_options){.seed = 1}));
    must(embla_table_init(positions, &(embla_init_options){.seed = 2}));

    /* One sequence of one token. Two letters came before it, so it begins at position 2. */
    embla_embed_options options = {.position_table = positions, .first_position = position};
    must(embla_embed(tokens, &token, 1, 1, &options, x));

    const float *e = embla_table_row(tokens, token), *third = embla_table_row(positions, position);
    print_row("tokens[4]", e);
    print_row("positions[2]", third);
    print_row("sum", x);
    bool same = true;
    for (int j = 0; j < DIM; j++) same = same && x[j] == e[j] + third[j];
    printf("embed gives the sum: %s\n", same ? "yes" : "no");
    embla_table_free(tokens);
    embla_table_free(positions);
    return same ? 0 : 1;
}
