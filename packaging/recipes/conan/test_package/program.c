/* SPDX-License-Identifier: Apache-2.0 */
#include <embla.h>
#include <stdio.h>

int main(void)
{
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    const embla_table_layout layout = {.dtype = EMBLA_F32, .rows = 3, .dim = 2};
    const int32_t token = 2;
    float row[2];
    embla_table *table = NULL;
    if (embla_table_view(&layout, values, sizeof values, NULL, &table) != EMBLA_OK ||
        embla_lookup(table, &token, 1, NULL, row) != EMBLA_OK) {
        fprintf(stderr, "%s\n", embla_error());
        return 1;
    }
    printf("embla %s, row 2: %g %g\n", embla_version(), (double)row[0], (double)row[1]);
    embla_table_free(table);
    return row[0] == 5 ? 0 : 1;
}
