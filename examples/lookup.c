/* SPDX-License-Identifier: Apache-2.0 */
/* A small table: 5 rows of 4 numbers. Ids 2, 3, 0 select rows 2, 3, 0. The dot product of two
 * rows is larger the more they have the same direction. A one-hot vector times the table gives the
 * same row as a lookup, but reads every number of the table.
 */
#include <embla.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 5, DIM = 4, COUNT = 3 };

static const float numbers[ROWS][DIM] = {{0.10f, -0.20f, 0.30f, -0.40f},
                                         {0.50f, 0.60f, -0.70f, 0.80f},
                                         {-0.90f, 0.10f, 0.20f, -0.30f},
                                         {0.40f, -0.50f, 0.60f, -0.70f},
                                         {-0.10f, 0.80f, -0.40f, 0.50f}};

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "lookup: %s\n", embla_error());
    exit(1);
}

int main(void)
{
    const int32_t ids[COUNT] = {2, 3, 0}, wrong[COUNT] = {2, 5, 0};
    float out[COUNT][DIM];
    embla_table *table = NULL;
    must(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = DIM},
                          numbers, sizeof numbers, NULL, &table));

    must(embla_lookup(table, ids, COUNT, NULL, out));
    printf("ids 2 3 0 give %d x %d:\n", COUNT, DIM);
    for (int i = 0; i < COUNT; i++) {
        printf("row %d ", (int)ids[i]);
        for (int j = 0; j < DIM; j++) printf(" %5.2f", (double)out[i][j]);
        printf("\n");
    }
    printf("dot(row 0, row 2) = %.2f\n", embla_dot(numbers[0], numbers[2], DIM));

    float one_hot[ROWS] = {0}, product[DIM] = {0}; /* 20 multiplications, 16 of them by zero */
    one_hot[ids[0]] = 1.0f;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < DIM; j++) product[j] += one_hot[i] * numbers[i][j];
    bool same = memcmp(product, out[0], sizeof product) == 0;
    printf("one-hot of 2 times the table is row 2: %s\n", same ? "yes" : "no");

    if (embla_lookup(table, wrong, COUNT, NULL, out) != EMBLA_OK)
        printf("ids 2 5 0 are refused: %s\n", embla_error());
    embla_table_free(table);
    return same ? 0 : 1;
}
