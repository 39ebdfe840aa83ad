/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up a row. It needs libembla alone. */
#include <embla.h>
#include <embla_store.h>
#include <embla_text.h>
#include <stdio.h>

int main(void)
{
    static const float values[3 * 2] = {1, 2, 3, 4, 5, 6};
    const int32_t token = 2;
    float out[2];
    embla_table *table;
    if (embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 3, .dim = 2}, values,
                         sizeof values, NULL, &table) ||
        embla_lookup(table, &token, 1, NULL, out)) {
        fprintf(stderr, "%s\n", embla_error());
        return 1;
    }
    printf("row 2: %g %g\n", (double)out[0], (double)out[1]);
    embla_table_free(table);
    return 0;
}
