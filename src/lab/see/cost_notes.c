/* SPDX-License-Identifier: Apache-2.0 */
/* Figures that are quoted for models of some shapes and are wrong, each with the right one. A
 * figure in a text below is the one that embla_cost_compute gives for such a model.
 */
#include "embla_lab.h"

static bool is_deep(const embla_cost_model *model)
{
    return model->layers == 12;
}

static bool is_microgpt(const embla_cost_model *model)
{
    return model->layers == 1 && model->positions == 16;
}

/* About 70 billion parameters, tables included. */
static bool is_70b(const embla_cost_model *model)
{
    return model->trunk >= INT64_C(65000000000) && model->trunk <= INT64_C(72000000000);
}

static bool is_untied(const embla_cost_model *model)
{
    return model->untied;
}

/* A note is about a shape, or about all shapes if dim is 0. */
static const struct {
    int64_t least_rows, most_rows, dim;
    bool (*applies)(const embla_cost_model *model); /* NULL: to every model of this shape */
    const char *text;
} notes[] = {
    {27, 27, 16, is_microgpt,
     "8 positions are sometimes quoted for microGPT, which gives 4,064 parameters "
     "(--positions 8); its program has 16"},
    {128000, 128256, 4096, NULL,
     "524 MB is sometimes quoted for this table; it has 524 million parameters, and takes 2.10 GB "
     "in f32 and 1.05 GB in bf16"},
    {128000, 128256, 4096, NULL,
     "'the head costs as much as 4 attention layers' counts multiply-adds of the head and "
     "operations of a layer, where a multiply-add is two; it costs as much as 7.8 layers"},
    {128000, 128256, 4096, NULL,
     "'5-15% of the parameters, and another 5-15% tied' is sometimes quoted for such tables; "
     "a tied head adds none, an untied one as many as the table"},
    {128000, 128256, 4096, is_70b,
     "5-10% of the bandwidth is sometimes quoted for the head of a 70B model; it is 0.75% here, "
     "and 1.51% with dim 8,192; 7% is that of an 8B model"},
    {128000, 128256, 8192, is_70b,
     "5-10% of the bandwidth is sometimes quoted for the head of a 70B model; it is 1.51%; 7% is "
     "that of an 8B model"},
    {2305, 2305, 384, NULL,
     "4,353 rows are sometimes quoted for ANDREA-12M; its 12,780,288 parameters need 2,305"},
    {8449, 8449, 768, is_deep,
     "5.4% and 6% are sometimes quoted for this token table and both input tables, as if the model "
     "had the 120 million parameters of its name; they are 6.57% and 7.37%"},
    {8449, 8449, 768, is_deep,
     "94% is sometimes quoted for the blocks of this model; the trunk has 86.05%, and together "
     "with the untied head 92.63%"},
    {0, 0, 0, is_untied,
     "'almost all models tie' is no longer so: of the presets here only gpt2 and gemma-3 do"},
};

const char *embla_cost_note(const embla_cost_model *model, size_t n)
{
    for (size_t i = 0; model && i < sizeof notes / sizeof notes[0]; i++) {
        bool shape =
            notes[i].dim == 0 || (model->rows >= notes[i].least_rows &&
                                  model->rows <= notes[i].most_rows && model->dim == notes[i].dim);
        if (!shape || (notes[i].applies && !notes[i].applies(model))) continue;
        if (n-- == 0) return notes[i].text;
    }
    return NULL;
}
