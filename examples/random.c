/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a random table of 100 x 8 from a seed and prints rows 1, 2, 3. A number depends only on
 * the seed, its row and its column, so the output is the same on every machine. Two random rows
 * are nearly orthogonal: the standard deviation of their cosine is about 1/sqrt(dim). That is 0.35
 * for 8 numbers (here the cosine is -0.28) and 0.04 for 768.
 */
#include <embla.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 100, DIM = 8, COUNT = 3 };

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "random: %s\n", embla_error());
    exit(1);
}

int main(void)
{
    const int32_t ids[COUNT] = {1, 2, 3};
    float out[COUNT][DIM];
    embla_table *table = NULL;
    must(embla_table_new(EMBLA_F32, ROWS, DIM, NULL, &table));
    must(embla_table_init(table, &(embla_init_options){.seed = 42})); /* normal, 1/sqrt(dim) */
    must(embla_lookup(table, ids, COUNT, NULL, out));
    printf("shape (%d, %d)\n", COUNT, DIM);
    for (int i = 0; i < COUNT; i++) {
        printf("row %d ", (int)ids[i]);
        for (int j = 0; j < DIM; j++) printf(" %7.4f", (double)out[i][j]);
        printf("   norm %.4f\n", embla_norm(out[i], DIM));
    }
    printf("dot(row 1, row 2)    = %.6f\n", embla_dot(out[0], out[1], DIM));
    printf("cosine(row 1, row 2) = %.6f\n", embla_cosine(out[0], out[1], DIM));
    embla_table_free(table);
    return 0;
}
