/* SPDX-License-Identifier: Apache-2.0 */
/* A program outside the tree, in C++. */
#include <embla_lab.h>
#include <embla_learn.h>
#include <embla_search.h>
#include <embla_store.h>
#include <embla_text.h>
#include <embla_train.h>
#include <embla_wordvec.h>

#include <cstdio>
#include <vector>

int main()
{
    const std::vector<float> values = {0.1f, -0.2f, 0.5f,  0.6f,  -0.9f,
                                       0.1f, 0.4f,  -0.5f, -0.1f, 0.8f};
    const std::vector<int32_t> tokens = {2, 3, 0};
    std::vector<float> out(3 * 2);
    embla_table_options options = {0};
    embla_table_layout layout = {};
    embla_lookup_options lookup = {0};
    embla_table *table = nullptr;
    embla_cost_model model = {0};
    embla_cost cost;
    embla_gpt_preset preset;
    layout.dtype = EMBLA_F32;
    layout.rows = 5;
    layout.dim = 2;
    model.rows = 3;
    model.dim = 4;
    if (embla_table_view(&layout, values.data(), values.size() * sizeof(float), &options, &table) ||
        embla_lookup(table, tokens.data(), tokens.size(), &lookup, out.data()) ||
        embla_cost_compute(&model, &cost) || embla_gpt_preset_find("microgpt", &preset)) {
        std::fprintf(stderr, "%s\n", embla_error());
        return 1;
    }
    std::printf("row 2: %.2f %.2f; 3 rows cost %lld bytes\n", (double)out[0], (double)out[1],
                (long long)cost.total.bytes);
    embla_table_free(table);
    return 0;
}
