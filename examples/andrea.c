/* SPDX-License-Identifier: Apache-2.0 */
/* The input of ANDREA-120M: 1,024 tokens become 1,024 x 768 numbers. One call looks up rows of
 * the token table (8,449 x 768) and of the position table (1,024 x 768) and adds them. The
 * program also prints the cost of the tables, which embla_lab.h computes.
 */
#include <embla_lab.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { VOCAB = 8449, LENGTH = 1024, DIM = 768 };

static int32_t tokens[LENGTH];
static float x[LENGTH][DIM], rows[LENGTH][DIM], places[LENGTH][DIM];

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "andrea: %s\n", embla_error());
    exit(1);
}

static void print_cost(void)
{
    embla_cost_model model;
    embla_cost cost;
    must(embla_cost_preset("andrea-120m", &model));
    must(embla_cost_compute(&model, &cost));
    printf("token table  %9" PRId64 " parameters %9" PRId64 " bytes\n", cost.tokens.parameters,
           cost.tokens.bytes);
    printf("positions    %9" PRId64 " parameters %9" PRId64 " bytes\n", cost.positions.parameters,
           cost.positions.bytes);
    printf("whole model  %9" PRId64 " parameters %9" PRId64 " bytes\n", cost.total.parameters,
           cost.total.bytes);
    printf("one token    %9" PRId64 " bytes looked up, %" PRId64 " multiply-adds in the head\n",
           cost.lookup_bytes, cost.head_madds);
}

int main(void)
{
    embla_table *token_table = NULL, *position_table = NULL;
    must(embla_table_new(EMBLA_F32, VOCAB, DIM, NULL, &token_table));
    must(embla_table_new(EMBLA_F32, LENGTH, DIM, NULL, &position_table));
    must(embla_table_init(token_table, &(embla_init_options){.seed = 1}));
    must(embla_table_init(position_table, &(embla_init_options){.seed = 2}));
    const int32_t first[] = {256, 1842, 7301};
    for (int32_t i = 0; i < LENGTH; i++) tokens[i] = i < 3 ? first[i] : i * 2711 % VOCAB;

    must(embla_embed(token_table, tokens, 1, LENGTH,
                     &(embla_embed_options){.position_table = position_table}, x));

    /* The same with two lookups and a sum. */
    int64_t position[LENGTH];
    bool same = true;
    for (int64_t i = 0; i < LENGTH; i++) position[i] = i;
    must(embla_lookup(token_table, tokens, LENGTH, NULL, rows));
    must(embla_lookup_rows(position_table, position, LENGTH, NULL, places));
    for (int i = 0; i < LENGTH; i++)
        for (int j = 0; j < DIM; j++) same = same && x[i][j] == rows[i][j] + places[i][j];

    printf("%d tokens 256 1842 7301 .. give %d x %d\n", LENGTH, LENGTH, DIM);
    printf("x[0] begins %.6f %.6f %.6f\n", (double)x[0][0], (double)x[0][1], (double)x[0][2]);
    printf("one embed call equals two lookups summed: %s\n", same ? "yes" : "no");
    print_cost();
    embla_table_free(token_table);
    embla_table_free(position_table);
    return same ? 0 : 1;
}
