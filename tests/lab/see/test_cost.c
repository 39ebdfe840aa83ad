/* SPDX-License-Identifier: Apache-2.0 */
/* What a model's tables cost: the documents' figures, with the two that are wrong there
 * put right (128,000 x 4,096 in bytes; ANDREA-120M in parameters), published totals of
 * the presets, and sizes that no 64 bits hold.
 */
#include <math.h>
#include <string.h>

#include "check.h"

#include "embla_lab.h"

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

static void notes_say_which_quoted_figures_are_wrong(void **state)
{
    embla_cost_model model = {.rows = 128000, .dim = 4096};
    (void)state;
    assert_non_null(strstr(embla_cost_note(&model, 0), "2.10 GB in f32"));
    assert_null(embla_cost_note(&model, 1));
    model.untied = true;
    assert_non_null(strstr(embla_cost_note(&model, 1), "no longer so"));
    assert_null(embla_cost_note(&model, 2));
    assert_ok(embla_cost_preset("andrea-120m", &model));
    embla_cost cost = cost_of(model);
    double share = (double)cost.tokens.parameters / (double)cost.total.parameters;
    assert_true(fabs(share - 0.0657) < 0.00005);
    assert_non_null(strstr(embla_cost_note(&model, 0), "6.57%"));
    assert_ok(embla_cost_preset("gpt2", &model));
    assert_null(embla_cost_note(&model, 0));
    assert_null(embla_cost_note(NULL, 0));
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
    } known[] = {{"microgpt", 2 * 27 * 16 + 8 * 16 + 12 * 16 * 16},
                 {"gpt2", 124439808},
                 {"andrea-12m", 12780288},
                 {"andrea-120m", 98698752},
                 {"llama-3.1-8b", INT64_C(8030261248)},
                 {"llama-3.1-405b", INT64_C(405853388800)}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        assert_int_equal(cost_of_preset(known[i].name).total.parameters, known[i].parameters);
}

static void every_preset_can_be_found_and_costed(void **state)
{
    static const char *const wanted[] = {
        "microgpt",       "gpt2",    "andrea-12m",          "andrea-120m",       "llama-3.1-8b",
        "llama-3.1-405b", "gemma-3", "deepseek-v4.1-flash", "qwen3.8-flash-next"};
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

/* ---- refusals ---- */

static void refuse(embla_cost_model model, embla_status wanted)
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
        {.rows = 4, .dim = 4, .dtype = (embla_dtype)99},
        {.rows = 4, .dim = 4, .dtype = (embla_dtype)-1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) refuse(bad[i], EMBLA_ERR_ARGUMENT);
    refuse((embla_cost_model){.rows = 4, .dim = 33, .dtype = EMBLA_Q8_0}, EMBLA_ERR_SHAPE);
    refuse((embla_cost_model){.rows = 4,
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
    for (size_t i = 0; i < COUNT_OF(bad); i++) refuse(bad[i], EMBLA_ERR_ARGUMENT);
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
