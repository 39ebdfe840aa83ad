/* SPDX-License-Identifier: Apache-2.0 */
/* What a model's tables cost: the documents' figures, with the two that are wrong there
 * put right (128,000 x 4,096 in bytes; ANDREA-120M in parameters), published totals of
 * the presets, checkpoints, and sizes that no 64 bits hold.
 */
#include <math.h>
#include <string.h>

#include "convert_files.h"
#include "toy.h"

static embla_cost cost_of(embla_cost_model model)
{
    embla_cost cost;
    assert_ok(embla_cost_compute(&model, &cost));
    return cost;
}

static embla_cost cost_of_preset(const char *name)
{
    embla_cost_model model;
    assert_ok(embla_cost_preset(name, &model));
    return cost_of(model);
}

static void bytes_of_128000_by_4096_are_right(void **state)
{
    embla_cost_model model = {.rows = 128000, .dim = 4096};
    (void)state;
    embla_cost f32 = cost_of(model);
    assert_int_equal(f32.tokens.parameters, 524288000);
    assert_int_equal(f32.tokens.bytes, INT64_C(2097152000));
    model.dtype = EMBLA_BF16;
    assert_int_equal(cost_of(model).tokens.bytes, 1048576000);
    model.dtype = EMBLA_Q4_0;
    assert_int_equal(cost_of(model).tokens.bytes, 128000 * 128 * 18);
}

static void the_head_of_128000_by_4096_is_worth_8_attention_layers(void **state)
{
    (void)state;
    embla_cost cost = cost_of((embla_cost_model){.rows = 128000, .dim = 4096, .untied = true});
    assert_true(cost.head_layers == 524288000.0 / (4.0 * 4096 * 4096));
    assert_true(cost.head_layers == 7.8125);
    assert_int_equal(cost.read_bytes, 0); /* no trunk is known */
}

static void input_tables_are_all_tables_without_the_head(void **state)
{
    (void)state;
    embla_cost andrea = cost_of_preset("andrea-120m"),
               giant = cost_of_preset("deepseek-v4.1-flash");
    assert_int_equal(andrea.inputs.parameters, 7275264);
    assert_int_equal(andrea.inputs.bytes, 4 * 7275264);
    assert_int_equal(andrea.tables.parameters - andrea.inputs.parameters, andrea.head.parameters);
    assert_int_equal(giant.inputs.bytes, giant.tokens.bytes + giant.ngram.bytes);
}

/* A token reads the trunk once, the head once, and one row of each input table. */
static void bytes_read_for_a_token_are_trunk_head_and_rows(void **state)
{
    (void)state;
    embla_cost gpt2 = cost_of_preset("gpt2"); /* tied: the head reads the token table */
    assert_int_equal(gpt2.read_bytes, 4 * (INT64_C(85056000) + 50257 * 768 + 2 * 768));
    assert_int_equal(gpt2.read_bytes, gpt2.trunk.bytes + gpt2.head_bytes + gpt2.lookup_bytes);
}

/* Whether one of the notes of a model has this text. */
static bool notes_have(const embla_cost_model *model, const char *text)
{
    for (size_t n = 0; embla_cost_note(model, n); n++)
        if (strstr(embla_cost_note(model, n), text)) return true;
    return false;
}

static size_t notes_of(const embla_cost_model *model)
{
    size_t n = 0;
    while (embla_cost_note(model, n)) n++;
    return n;
}

static void notes_say_which_quoted_figures_are_wrong(void **state)
{
    embla_cost_model model = {.rows = 128000, .dim = 4096};
    (void)state;
    assert_true(notes_have(&model, "2.10 GB in f32"));
    assert_true(notes_have(&model, "7.8 layers"));
    assert_true(notes_have(&model, "a tied head adds none"));
    assert_int_equal(notes_of(&model), 3);
    model.untied = true;
    assert_true(notes_have(&model, "no longer so"));
    assert_int_equal(notes_of(&model), 4);
    assert_ok(embla_cost_preset("gpt2", &model));
    assert_null(embla_cost_note(&model, 0));
    assert_null(embla_cost_note(NULL, 0));
    assert_ok(embla_cost_preset("andrea-12m", &model));
    assert_true(notes_have(&model, "12,780,288"));
    model.rows = 4353; /* does not fit */
    assert_int_equal(cost_of(model).total.parameters, 14353152);
}

/* "12.34%", the share of parameters a in b. */
static const char *percent(int64_t a, int64_t b, char text[16])
{
    (void)snprintf(text, 16, "%.2f%%", 100 * (double)a / (double)b);
    return text;
}

/* Shares in the notes are those that the cost has. */
static void notes_of_andrea_120m_have_its_shares(void **state)
{
    embla_cost_model model;
    char text[16];
    (void)state;
    assert_ok(embla_cost_preset("andrea-120m", &model));
    const embla_cost c = cost_of(model);
    const int64_t all = c.total.parameters;
    assert_true(notes_have(&model, percent(c.tokens.parameters, all, text)));
    assert_true(notes_have(&model, percent(c.inputs.parameters, all, text)));
    assert_true(notes_have(&model, percent(c.trunk.parameters, all, text)));
    assert_true(notes_have(&model, percent(c.trunk.parameters + c.head.parameters, all, text)));
}

/* 80 layers of hidden size 8,192 with 8 of 64 heads for keys and values, an MLP of 28,672, two
 * gains a layer, and one at the end. */
static void the_head_of_a_70b_model_takes_less_than_2_percent_of_the_bandwidth(void **state)
{
    const int64_t d = 8192, layer = 2 * d * d + 2 * d * (d / 8) + 3 * d * 28672 + 2 * d;
    embla_cost_model model;
    char text[16];
    (void)state;
    assert_ok(embla_cost_preset("llama-3.1-70b", &model));
    embla_cost c = cost_of(model);
    assert_int_equal(c.trunk.parameters, 80 * layer + d);
    assert_true(notes_have(&model, percent(c.head_bytes, c.read_bytes, text)));
    assert_string_equal(text, "1.51%");

    model = (embla_cost_model){.rows = 128000, .dim = 4096, .dtype = EMBLA_BF16, .untied = true};
    model.trunk = INT64_C(70000000000) - cost_of(model).tables.parameters;
    c = cost_of(model);
    assert_true(notes_have(&model, percent(c.head_bytes, c.read_bytes, text)));
    assert_string_equal(text, "0.75%");

    assert_ok(embla_cost_preset("llama-3.1-8b", &model));
    c = cost_of(model);
    assert_string_equal(percent(c.head_bytes, c.read_bytes, text), "7.00%");
    assert_false(notes_have(&model, "bandwidth"));
}

static void microgpt_has_the_16_positions_of_its_program(void **state)
{
    embla_cost_model model;
    (void)state;
    assert_ok(embla_cost_preset("microgpt", &model));
    assert_int_equal(model.positions, 16);
    assert_int_equal(cost_of(model).total.parameters, 4192);
    assert_true(notes_have(&model, "4,064"));
    model.positions = 8;
    assert_int_equal(cost_of(model).total.parameters, 4064);
    assert_false(notes_have(&model, "4,064"));
}

/* The note about tying names every preset that ties. */
static void the_note_about_tying_names_the_presets_that_tie(void **state)
{
    const embla_cost_model untied = {.rows = 1, .dim = 1, .untied = true};
    const char *note = embla_cost_note(&untied, 0);
    (void)state;
    for (size_t n = 0; embla_cost_preset_name(n); n++) {
        embla_cost_model model;
        assert_ok(embla_cost_preset(embla_cost_preset_name(n), &model));
        assert_int_equal(strstr(note, embla_cost_preset_name(n)) != NULL, !model.untied);
    }
}

/* 2Vd + Td + 12Ld^2 */
static void andrea_120m_has_98698752_parameters(void **state)
{
    (void)state;
    embla_cost cost = cost_of_preset("andrea-120m");
    assert_int_equal(cost.tokens.parameters, 8449 * 768);
    assert_int_equal(cost.head.parameters, 8449 * 768);
    assert_int_equal(cost.positions.parameters, 1024 * 768);
    assert_int_equal(cost.trunk.parameters, 12 * 12 * 768 * 768);
    assert_int_equal(cost.total.parameters, 98698752);
    assert_int_equal(cost.total.bytes, 98698752 * 4);
}

static void presets_have_their_published_totals(void **state)
{
    const struct {
        const char *name;
        int64_t parameters;
    } known[] = {{"microgpt", 2 * 27 * 16 + 16 * 16 + 12 * 16 * 16},
                 {"gpt2", 124439808},
                 {"andrea-12m", 12780288},
                 {"andrea-120m", 98698752},
                 {"andrea-480m", 480513024},
                 {"llama-3.1-8b", INT64_C(8030261248)},
                 {"llama-3.1-70b", INT64_C(70553706496)},
                 {"llama-3.1-405b", INT64_C(405853388800)}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        assert_int_equal(cost_of_preset(known[i].name).total.parameters, known[i].parameters);
}

static void every_preset_can_be_found_and_costed(void **state)
{
    static const char *const wanted[] = {"microgpt",          "gpt2",
                                         "andrea-12m",        "andrea-120m",
                                         "andrea-480m",       "llama-3.1-8b",
                                         "llama-3.1-70b",     "llama-3.1-405b",
                                         "gemma-3",           "deepseek-v4.1-flash",
                                         "qwen3.8-flash-next"};
    size_t n = 0;
    (void)state;
    for (; embla_cost_preset_name(n); n++) {
        assert_non_null(embla_cost_preset_about(n));
        embla_cost cost = cost_of_preset(embla_cost_preset_name(n));
        assert_true(cost.tokens.parameters > 0 && cost.total.bytes >= cost.tables.bytes);
    }
    assert_null(embla_cost_preset_about(n));
    assert_null(embla_cost_preset_name(SIZE_MAX));
    assert_int_equal(n, COUNT_OF(wanted));
    for (size_t i = 0; i < n; i++) (void)cost_of_preset(wanted[i]);
}

static void an_unknown_preset_is_answered_with_the_names_there_are(void **state)
{
    embla_cost_model model = {.rows = 42};
    (void)state;
    assert_status(embla_cost_preset("gpt5", &model), EMBLA_ERR_NOT_FOUND);
    assert_error_has("'gpt5'");
    for (size_t n = 0; embla_cost_preset_name(n); n++) assert_error_has(embla_cost_preset_name(n));
    assert_int_equal(model.rows, 42);
}

/* 203 GB of n-gram rows, and 48 of them read for a token. */
static void n_gram_tables_cost_rows_and_scales(void **state)
{
    const int64_t rows = INT64_C(384006168) + 384016682;
    (void)state;
    embla_cost cost = cost_of_preset("deepseek-v4.1-flash");
    assert_int_equal(cost.ngram.parameters, rows * 256);
    assert_int_equal(cost.ngram.bytes, rows * (256 + 8));
    assert_int_equal(cost.lookup_bytes, 5120 * 2 + 48 * (256 + 8));
    assert_int_equal(cost.tables.bytes, cost.ngram.bytes + 2 * INT64_C(129280) * 5120 * 2);
}

static void a_tied_head_saves_memory_but_not_work(void **state)
{
    embla_cost_model model = {.rows = 50257, .dim = 768};
    (void)state;
    embla_cost tied = cost_of(model);
    model.untied = true;
    embla_cost untied = cost_of(model);
    assert_int_equal(tied.head.parameters, 0);
    assert_int_equal(tied.head.bytes, 0);
    assert_int_equal(untied.head.parameters, 50257 * 768);
    assert_int_equal(untied.total.bytes, 2 * tied.total.bytes);
    assert_int_equal(tied.head_madds, 50257 * 768);
    assert_int_equal(tied.head_madds, untied.head_madds);
    assert_int_equal(tied.head_bytes, untied.head_bytes);
}

static void a_lookup_reads_a_row_and_a_position(void **state)
{
    embla_cost_model model = {.rows = 27, .dim = 16};
    (void)state;
    assert_int_equal(cost_of(model).lookup_bytes, 64);
    assert_int_equal(cost_of(model).one_hot_madds, 27 * 16);
    model.positions = 8;
    assert_int_equal(cost_of(model).lookup_bytes, 128);
}

static void a_trunk_may_be_given_by_its_parameters(void **state)
{
    (void)state;
    embla_cost cost = cost_of((embla_cost_model){.rows = 10, .dim = 32, .trunk = 1000});
    assert_int_equal(cost.trunk.parameters, 1000);
    assert_int_equal(cost.trunk.bytes, 4000);
    cost = cost_of((embla_cost_model){.rows = 10, .dim = 32, .trunk = 256, .dtype = EMBLA_Q4_0});
    assert_int_equal(cost.trunk.bytes, 8 * 18);
}

/* ---- checkpoints ---- */

enum { V = 6, D = 4, T = 3 };

typedef struct {
    embla_cost_model model;
    embla_cost cost;
} priced;

/* The cost of model.safetensors with this config.json; NULL means none. */
static priced price(const char *config, const sample_tensor *tensors, size_t count)
{
    place at = begin();
    priced p;
    sample_safetensors(scratch_path(&at.s, "model.safetensors"), NULL, tensors, count);
    if (config) toy_text(scratch_path(&at.s, "config.json"), config);
    embla_checkpoint *checkpoint = sample_open(at.s.folder);
    assert_ok(embla_cost_checkpoint(checkpoint, &p.model, &p.cost));
    assert_ok(embla_cost_checkpoint(checkpoint, NULL, &p.cost));
    embla_checkpoint_free(checkpoint);
    end(&at);
    return p;
}

static const float zeros[V * D * 4];

/* A mask is no parameter, and a bias of the same name is. Two bytes a number in the trunk. */
static void a_checkpoint_costs_what_its_tensors_hold(void **state)
{
    const sample_tensor tensors[] = {{"wte.weight", "F32", "6,4", zeros, V * D * 4},
                                     {"wpe.weight", "F16", "3,4", zeros, T * D * 2},
                                     {"h.0.attn.bias", "F32", "1,1,3,3", zeros, 36},
                                     {"h.0.attn.masked_bias", "F32", "", zeros, 4},
                                     {"h.0.attn.c_attn.weight", "F16", "4,12", zeros, 96},
                                     {"h.0.attn.c_attn.bias", "F16", "12", zeros, 24}};
    (void)state;
    const priced p = price("{\"model_type\":\"gpt2\"}", tensors, COUNT_OF(tensors));
    assert_int_equal(p.model.rows, V);
    assert_int_equal(p.model.dim, D);
    assert_int_equal(p.model.positions, T);
    assert_int_equal(p.model.dtype, EMBLA_F32);
    assert_false(p.model.untied || p.model.headless);
    assert_int_equal(p.cost.tokens.bytes, V * D * 4);
    assert_int_equal(p.cost.positions.bytes, T * D * 2);
    assert_int_equal(p.cost.trunk.parameters, 60);
    assert_int_equal(p.cost.trunk.bytes, 120);
    assert_int_equal(p.model.trunk, 60);
    assert_int_equal(p.cost.total.parameters, V * D + T * D + 60);
    assert_int_equal(p.cost.lookup_bytes, D * 4 + D * 2);
    assert_int_equal(p.cost.read_bytes, p.cost.lookup_bytes + 120 + V * D * 4);
}

/* One dtype: the sizes alone give the same. */
static void a_checkpoint_of_one_dtype_costs_as_much_as_its_sizes(void **state)
{
    float other[V * D] = {1};
    const sample_tensor tensors[] = {{"model.embed_tokens.weight", "F32", "6,4", zeros, V * D * 4},
                                     {"lm_head.weight", "F32", "6,4", other, V * D * 4},
                                     {"model.norm.weight", "F32", "4", zeros, D * 4}};
    (void)state;
    const priced p = price(NULL, tensors, COUNT_OF(tensors));
    assert_true(p.model.untied);
    assert_int_equal(p.cost.head.parameters, V * D);
    const embla_cost again = cost_of(p.model);
    assert_memory_equal(&again, &p.cost, sizeof again);
}

/* Equal: one table. Missing: as large as the table, if it is known that the model has one. */
static void a_head_counts_if_the_model_has_one_of_its_own(void **state)
{
    const char *const untied = "{\"tie_word_embeddings\":false}";
    const sample_tensor tensors[] = {{"model.embed_tokens.weight", "F32", "6,4", zeros, V * D * 4},
                                     {"lm_head.weight", "F32", "6,4", zeros, V * D * 4}};
    (void)state;
    priced p = price(NULL, tensors, 2);
    assert_false(p.model.untied || p.model.headless);
    assert_int_equal(p.cost.total.parameters, V * D);
    p = price(untied, tensors, 1);
    assert_true(p.model.untied);
    assert_int_equal(p.cost.total.parameters, 2 * V * D);
    p = price(NULL, tensors, 1);
    assert_true(p.model.headless);
    assert_int_equal(p.cost.total.parameters, V * D);
    assert_int_equal(p.cost.head_madds + p.cost.head_bytes, 0);
    assert_true(p.cost.head_layers == 0);
}

static void a_checkpoint_without_a_table_is_refused(void **state)
{
    place p = begin();
    const sample_tensor tensor = {"wte.weight", "F32", "2,3,4", zeros, 96};
    const sample_tensor none[] = {{"a", "F32", "4", zeros, 16}, {"b", "F32", "4", zeros, 16}};
    embla_cost cost;
    (void)state;
    sample_safetensors(scratch_path(&p.s, "cube.safetensors"), NULL, &tensor, 1);
    embla_checkpoint *checkpoint = sample_open(scratch_path(&p.s, "cube.safetensors::wte.weight"));
    assert_status(embla_cost_checkpoint(checkpoint, NULL, &cost), EMBLA_ERR_SHAPE);
    assert_error_has("has 3 dimensions");
    embla_checkpoint_free(checkpoint);
    sample_safetensors(scratch_path(&p.s, "none.safetensors"), NULL, none, 2);
    checkpoint = sample_open(scratch_path(&p.s, "none.safetensors"));
    assert_status(embla_cost_checkpoint(checkpoint, NULL, &cost), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_cost_checkpoint(checkpoint, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_cost_checkpoint(NULL, NULL, &cost), EMBLA_ERR_ARGUMENT);
    embla_checkpoint_free(checkpoint);
    end(&p);
}

/* ---- refusals ---- */

static void refuse_sizes(embla_cost_model model, embla_status wanted)
{
    embla_cost cost, before;
    memset(&cost, 0x5a, sizeof cost);
    memcpy(&before, &cost, sizeof cost);
    assert_status(embla_cost_compute(&model, &cost), wanted);
    assert_memory_equal(&cost, &before, sizeof cost);
}

static void sizes_that_are_missing_or_negative_are_refused(void **state)
{
    const embla_cost_model bad[] = {
        {.rows = 0, .dim = 4},
        {.rows = 4, .dim = 0},
        {.rows = -1, .dim = 4},
        {.rows = 4, .dim = INT64_MIN},
        {.rows = 4, .dim = 4, .positions = -1},
        {.rows = 4, .dim = 4, .layers = -1},
        {.rows = 4, .dim = 4, .trunk = -1},
        {.rows = 4, .dim = 4, .ngram_rows = -1},
        {.rows = 4, .dim = 4, .ngram_rows = 9, .ngram_dim = 0, .ngram_rows_per_token = 1},
        {.rows = 4, .dim = 4, .ngram_rows = 9, .ngram_dim = 9, .ngram_rows_per_token = 0},
        {.rows = 4, .dim = 4, .ngram_scale_bytes = -1},
        {.rows = 4, .dim = 4, .layers = 1, .trunk = 1},
        {.rows = 4, .dim = 4, .untied = true, .headless = true},
        {.rows = 4, .dim = 4, .dtype = (embla_dtype)99},
        {.rows = 4, .dim = 4, .dtype = (embla_dtype)-1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) refuse_sizes(bad[i], EMBLA_ERR_ARGUMENT);
    refuse_sizes((embla_cost_model){.rows = 4, .dim = 33, .dtype = EMBLA_Q8_0}, EMBLA_ERR_SHAPE);
    refuse_sizes((embla_cost_model){.rows = 4,
                                    .dim = 32,
                                    .ngram_rows = 4,
                                    .ngram_dim = 33,
                                    .ngram_rows_per_token = 1,
                                    .ngram_dtype = EMBLA_Q4_0},
                 EMBLA_ERR_SHAPE);
}

static void sizes_that_64_bits_do_not_hold_are_refused(void **state)
{
    const int64_t big = INT64_C(1) << 31, giant = INT64_MAX;
    const embla_cost_model bad[] = {
        {.rows = big * 2, .dim = big},             /* parameters */
        {.rows = big, .dim = big},                 /* bytes */
        {.rows = giant, .dim = 1},                 /* bytes */
        {.rows = 1, .dim = giant},                 /* a row */
        {.rows = 1, .dim = 1, .positions = giant}, /* positions */
        {.rows = 1, .dim = big, .layers = big},    /* trunk */
        {.rows = 1, .dim = 1, .layers = giant},
        {.rows = 1, .dim = 1, .trunk = giant},
        {.rows = giant / 2, .dim = 1, .untied = true, .positions = 2, .dtype = EMBLA_I8}, /* sum */
        {.rows = giant, .dim = 1, .trunk = 1, .dtype = EMBLA_I8},
        {.rows = 1, .dim = 1, .ngram_rows = big, .ngram_dim = big, .ngram_rows_per_token = 1},
        {.rows = 1, .dim = 1, .ngram_rows = 1, .ngram_dim = 8, .ngram_rows_per_token = giant},
        {.rows = 1,
         .dim = 1,
         .ngram_rows = 1,
         .ngram_dim = 8,
         .ngram_rows_per_token = 1,
         .ngram_scale_bytes = giant},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) refuse_sizes(bad[i], EMBLA_ERR_ARGUMENT);
}

static void the_largest_that_fits_is_exact(void **state)
{
    (void)state;
    embla_cost cost = cost_of((embla_cost_model){.rows = INT64_MAX, .dim = 1, .dtype = EMBLA_I8});
    assert_true(cost.total.bytes == INT64_MAX && cost.total.parameters == INT64_MAX);
}

static void null_is_refused(void **state)
{
    embla_cost_model model = {.rows = 1, .dim = 1};
    embla_cost cost;
    (void)state;
    assert_status(embla_cost_compute(NULL, &cost), EMBLA_ERR_ARGUMENT);
    assert_status(embla_cost_compute(&model, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_cost_preset(NULL, &model), EMBLA_ERR_ARGUMENT);
    assert_status(embla_cost_preset("gpt2", NULL), EMBLA_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_128000_by_4096_are_right),
        cmocka_unit_test(the_head_of_128000_by_4096_is_worth_8_attention_layers),
        cmocka_unit_test(input_tables_are_all_tables_without_the_head),
        cmocka_unit_test(bytes_read_for_a_token_are_trunk_head_and_rows),
        cmocka_unit_test(notes_say_which_quoted_figures_are_wrong),
        cmocka_unit_test(notes_of_andrea_120m_have_its_shares),
        cmocka_unit_test(the_head_of_a_70b_model_takes_less_than_2_percent_of_the_bandwidth),
        cmocka_unit_test(microgpt_has_the_16_positions_of_its_program),
        cmocka_unit_test(a_checkpoint_costs_what_its_tensors_hold),
        cmocka_unit_test(a_checkpoint_of_one_dtype_costs_as_much_as_its_sizes),
        cmocka_unit_test(a_head_counts_if_the_model_has_one_of_its_own),
        cmocka_unit_test(a_checkpoint_without_a_table_is_refused),
        cmocka_unit_test(the_note_about_tying_names_the_presets_that_tie),
        cmocka_unit_test(andrea_120m_has_98698752_parameters),
        cmocka_unit_test(presets_have_their_published_totals),
        cmocka_unit_test(every_preset_can_be_found_and_costed),
        cmocka_unit_test(an_unknown_preset_is_answered_with_the_names_there_are),
        cmocka_unit_test(n_gram_tables_cost_rows_and_scales),
        cmocka_unit_test(a_tied_head_saves_memory_but_not_work),
        cmocka_unit_test(a_lookup_reads_a_row_and_a_position),
        cmocka_unit_test(a_trunk_may_be_given_by_its_parameters),
        cmocka_unit_test(sizes_that_are_missing_or_negative_are_refused),
        cmocka_unit_test(sizes_that_64_bits_do_not_hold_are_refused),
        cmocka_unit_test(the_largest_that_fits_is_exact),
        cmocka_unit_test(null_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
