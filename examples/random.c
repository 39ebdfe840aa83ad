/* SPDX-License-Identifier: Apache-2.0 */
/* How rows start: two random tables of 100 x 8 from a seed. A number depends only on the seed, its
 * row, its column and the distribution, so the output is the same on every machine.
 *
 *   normal  mean 0, standard deviation 1/sqrt(dim), so that a row has a norm of about 1
 *   Xavier  uniform in [-s, s) with s = sqrt(2/(rows+dim)): no number is larger
 *
 * Two random rows are nearly orthogonal: the standard deviation of their cosine is about
 * 1/sqrt(dim). That is 0.35 for 8 numbers and 0.04 for 768.
 */
#include <embla.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 100, DIM = 8, COUNT = 3 };

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "random: %s\n", embla_error());
    exit(1);
}

/* Rows 1, 2, 3 of a table; dot and cosine of rows 1 and 2. */
static void show_rows(const embla_table *table)
{
    const int32_t ids[COUNT] = {1, 2, 3};
    float out[COUNT][DIM];
    must(embla_lookup(table, ids, COUNT, NULL, out));
    printf("shape (%d, %d)\n", COUNT, DIM);
    for (int i = 0; i < COUNT; i++) {
        printf("row %d ", (int)ids[i]);
        for (int j = 0; j < DIM; j++) printf(" %7.4f", (double)out[i][j]);
        printf("   norm %.4f\n", embla_norm(out[i], DIM));
    }
    printf("dot(row 1, row 2)    = %.6f\n", embla_dot(out[0], out[1], DIM));
    printf("cosine(row 1, row 2) = %.6f\n", embla_cosine(out[0], out[1], DIM));
}

/* What all 800 numbers have in common. */
static void show_spread(const embla_table *table)
{
    double least = 0, most = 0, squares = 0;
    for (int row = 0; row < ROWS; row++) {
        const float *x = embla_table_row(table, row);
        for (int j = 0; j < DIM; j++) {
            least = fmin(least, (double)x[j]);
            most = fmax(most, (double)x[j]);
            squares += (double)x[j] * (double)x[j];
        }
    }
    printf("all numbers: from %.4f to %.4f, standard deviation %.4f\n", least, most,
           sqrt(squares / (ROWS * DIM)));
}

int main(void)
{
    const embla_init_options inits[2] = {{.seed = 42, .kind = EMBLA_INIT_NORMAL},
                                         {.seed = 42, .kind = EMBLA_INIT_XAVIER}};
    embla_table *table = NULL;
    must(embla_table_new(EMBLA_F32, ROWS, DIM, NULL, &table));
    for (int i = 0; i < 2; i++) {
        must(embla_table_init(table, &inits[i]));
        if (inits[i].kind == EMBLA_INIT_NORMAL)
            printf("normal, standard deviation 1/sqrt(%d) = %.4f\n", DIM, 1 / sqrt(DIM));
        else
            printf("\nXavier, s = sqrt(2/(%d+%d)) = %.4f, standard deviation s/sqrt(3) = %.4f\n",
                   ROWS, DIM, sqrt(2.0 / (ROWS + DIM)), sqrt(2.0 / (ROWS + DIM) / 3));
        show_rows(table);
        show_spread(table);
    }
    embla_table_free(table);
    return 0;
}
