/* SPDX-License-Identifier: Apache-2.0 */
/* A program outside the tree, in C. */
#include <embla_lab.h>
#include <embla_learn.h>
#include <embla_search.h>
#include <embla_store.h>
#include <embla_text.h>
#include <embla_train.h>
#include <embla_wordvec.h>
#include <stdio.h>

int main(void)
{
    static const float values[5 * 2] = {0.1f, -0.2f, 0.5f,  0.6f,  -0.9f,
                                        0.1f, 0.4f,  -0.5f, -0.1f, 0.8f};
    const int32_t tokens[3] = {2, 3, 0};
    float out[3 * 2];
    embla_table *table;
    embla_cost cost;
    embla_gpt_preset preset;
    const embla_cost_model model = {.rows = 3, .dim = 4};
    if (embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 5, .dim = 2}, values,
                         sizeof values, NULL, &table) ||
        embla_lookup(table, tokens, 3, NULL, out) || embla_cost_compute(&model, &cost) ||
        embla_gpt_preset_find("microgpt", &preset)) {
        fprintf(stderr, "%s\n", embla_error());
        return 1;
    }
    printf("row 2: %.2f %.2f; 3 rows cost %lld bytes\n", (double)out[0], (double)out[1],
           (long long)cost.total.bytes);
    embla_table_free(table);
    return 0;
}
