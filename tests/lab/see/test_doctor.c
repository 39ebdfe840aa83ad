/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the parts of a checkpoint agree: each check with a small file that it is about, the level
 * and the sentence of the finding, its tensor and its rows. Then every allocation fails, and the
 * progress function stops at each of its calls.
 */
#include <math.h>

#include "convert_files.h"
#include "toy.h"

#define TENSOR(name, type, shape, numbers)                                                         \
    {                                                                                              \
        name, type, shape, numbers, sizeof(numbers)                                                \
    }

static const char tied[] = "{\"model_type\":\"gpt2\",\"tie_word_embeddings\":true}";

/* ---- what is asked ---- */

/* model.safetensors in the folder, with this config.json and vocab.txt; NULL means none. */
static void write_model(place *p, const char *config, const char *words,
                        const sample_tensor *tensors, size_t count)
{
    sample_safetensors(scratch_path(&p->s, "model.safetensors"), NULL, tensors, count);
    if (config) toy_text(scratch_path(&p->s, "config.json"), config);
    if (words) toy_text(scratch_path(&p->s, "vocab.txt"), words);
}

/* The findings of a path. The checkpoint is freed: they do not need it. */
static embla_doctor *examine(const char *path)
{
    embla_doctor *doctor = NULL;
    embla_checkpoint *checkpoint = sample_open(path);
    assert_ok(embla_doctor_new(checkpoint, NULL, &doctor));
    embla_checkpoint_free(checkpoint);
    return doctor;
}

static embla_doctor_info info_of(const embla_doctor *doctor)
{
    embla_doctor_info info;
    assert_ok(embla_doctor_describe(doctor, &info));
    return info;
}

/* The finding of this check whose sentence holds `part`. */
static embla_finding finding_of(const embla_doctor *doctor, const char *check, const char *part)
{
    size_t count;
    const embla_finding *findings = embla_doctor_findings(doctor, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(findings[i].check, check) == 0 && strstr(findings[i].found, part))
            return findings[i];
    for (size_t i = 0; i < count; i++)
        print_message("%s: %s\n", findings[i].check, findings[i].found);
    fail_msg("no finding of '%s' has '%s'", check, part);
    return (embla_finding){0};
}

/* There is such a finding with exactly this sentence, about this tensor. A remedy comes with errors
 * and warnings alone. */
static embla_finding has(const embla_doctor *doctor, embla_finding_level level, const char *check,
                         const char *tensor, const char *found)
{
    embla_finding finding = finding_of(doctor, check, found);
    assert_string_equal(finding.found, found);
    assert_string_equal(embla_finding_level_name(finding.level), embla_finding_level_name(level));
    assert_int_equal(finding.remedy != NULL, level >= EMBLA_FINDING_LEVEL_WARNING);
    if (tensor)
        assert_string_equal(finding.tensor, tensor);
    else
        assert_null(finding.tensor);
    return finding;
}

static void about_rows(embla_finding finding, int64_t rows, int64_t first_row)
{
    assert_int_equal(finding.rows, rows);
    assert_int_equal(finding.first_row, first_row);
}

#define FINE    EMBLA_FINDING_LEVEL_FINE
#define SKIPPED EMBLA_FINDING_LEVEL_SKIPPED
#define WARNING EMBLA_FINDING_LEVEL_WARNING
#define ERROR   EMBLA_FINDING_LEVEL_ERROR

/* ---- parts that agree ---- */

static void a_model_whose_parts_agree_has_no_error(void **state)
{
    place p = begin();
    sample_numbers numbers;
    (void)state;
    sample_model(scratch_path(&p.s, "model.safetensors"), &numbers);
    sample_vocab(scratch_path(&p.s, "vocab.json"));
    toy_text(scratch_path(&p.s, "config.json"),
             "{\"model_type\":\"gpt2\",\"vocab_size\":7,\"n_embd\":32,\"n_positions\":5,"
             "\"tie_word_embeddings\":false}");
    embla_doctor *d = examine(p.s.folder);
    embla_doctor_info info = info_of(d);
    assert_true(info.errors == 0 && info.warnings == 0 && info.skipped == 0);
    has(d, FINE, "table", "wte.weight", "wte.weight: 7 x 32, F32, recognised by its name");
    has(d, FINE, "tokens", "wte.weight", "7 rows, 7 tokens in vocab.json");
    has(d, FINE, "vocab_size", "wte.weight", "7 rows, vocab_size = 7");
    has(d, FINE, "dim", "wte.weight", "the table's dim is 32, n_embd = 32");
    has(d, FINE, "head", "lm_head.weight", "lm_head.weight is 7 x 32, the table 7 x 32");
    has(d, FINE, "head bias", "lm_head.bias", "lm_head.bias has 7 numbers, the head 7 rows");
    has(d, FINE, "positions", "wpe.weight", "wpe.weight has 5 rows, n_positions = 5");
    has(d, FINE, "tied", "lm_head.weight",
        "no, the head is a separate tensor (tie_word_embeddings = false)");
    about_rows(has(d, FINE, "numbers", "wpe.weight", "wpe.weight: all are finite"), 0, -1);
    size_t count;
    (void)embla_doctor_findings(d, &count);
    assert_int_equal(count, info.fine);
    embla_doctor_free(d);
    end(&p);
}

static void a_table_in_memory_is_examined(void **state)
{
    place p = begin();
    embla_table *table = check_table(EMBLA_F32, 6, 4, 1);
    embla_checkpoint *checkpoint = NULL;
    embla_doctor *d = NULL;
    (void)state;
    assert_ok(embla_checkpoint_view(table, NULL, &checkpoint));
    assert_ok(embla_doctor_new(checkpoint, NULL, &d));
    assert_int_equal(info_of(d).errors, 0);
    has(d, FINE, "numbers", "vectors", "vectors: all are finite");
    embla_doctor_free(d);
    embla_checkpoint_free(checkpoint);
    embla_table_free(table);
    end(&p);
}

static void a_chosen_tensor_is_named_by_the_caller(void **state)
{
    place p = begin();
    char path[SCRATCH_PATH];
    float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const sample_tensor tensors[] = {TENSOR("a", "F32", "4,2", numbers),
                                     TENSOR("b", "F32", "4,2", numbers)};
    (void)state;
    write_model(&p, NULL, NULL, tensors, 2);
    (void)snprintf(path, sizeof path, "%.3000s::b", scratch_path(&p.s, "model.safetensors"));
    embla_doctor *d = examine(path);
    has(d, FINE, "table", "b", "b: 4 x 2, F32, named by the caller");
    embla_doctor_free(d);
    end(&p);
}

/* ---- numbers ---- */

static void rows_with_nan_and_infinity_are_errors(void **state)
{
    place p = begin();
    const float rows[] = {1, 2, NAN, 1, 3, 4, 0, -INFINITY}, positions[] = {1, 1, INFINITY, 1};
    const sample_tensor tensors[] = {TENSOR("wte.weight", "F32", "4,2", rows),
                                     TENSOR("wpe.weight", "F32", "2,2", positions)};
    (void)state;
    write_model(&p, tied, "a\nb\nc\nd\n", tensors, 2);
    embla_doctor *d = examine(p.s.folder);
    about_rows(has(d, ERROR, "numbers", "wte.weight",
                   "wte.weight: a NaN or an infinity in 2 rows, the first is 1 \"b\""),
               2, 1);
    about_rows(has(d, ERROR, "numbers", "wpe.weight",
                   "wpe.weight: a NaN or an infinity in 1 row, the first is 1"),
               1, 1);
    assert_int_equal(info_of(d).errors, 2);
    embla_doctor_free(d);
    end(&p);
}

/* A single row of zeros is often the padding token; rows without a token are padding. */
static void rows_of_zeros_are_a_warning_if_there_are_several(void **state)
{
    place p = begin();
    const float one[] = {1, 2, 0, 0, 3, 4, 5, 6}, two[] = {1, 2, 0, -0.0f, 3, 4, 0, 0};
    const sample_tensor of_one = TENSOR("wte.weight", "F32", "4,2", one);
    const sample_tensor of_two = TENSOR("wte.weight", "F32", "4,2", two);
    (void)state;
    write_model(&p, tied, NULL, &of_one, 1);
    embla_doctor *d = examine(p.s.folder);
    about_rows(has(d, FINE, "zeros", "wte.weight", "wte.weight: all zero in 1 row"), 1, 1);
    embla_doctor_free(d);
    write_model(&p, tied, NULL, &of_two, 1);
    d = examine(p.s.folder);
    about_rows(
        has(d, WARNING, "zeros", "wte.weight", "wte.weight: all zero in 2 rows, the first is 1"), 2,
        1);
    embla_doctor_free(d);
    write_model(&p, tied, "a\nb\nc\n", &of_two, 1);
    d = examine(p.s.folder);
    has(d, FINE, "tokens", "wte.weight", "4 rows, 3 tokens in vocab.txt: 1 row of padding");
    about_rows(has(d, FINE, "zeros", "wte.weight", "wte.weight: all zero in 2 rows"), 2, 1);
    embla_doctor_free(d);
    write_model(&p, tied, "a\n", &of_two, 1);
    d = examine(p.s.folder);
    about_rows(has(d, FINE, "zeros", "wte.weight", "wte.weight: all zero in 2 rows, of padding"), 2,
               1);
    embla_doctor_free(d);
    end(&p);
}

static void rows_that_cannot_be_read_are_an_error(void **state)
{
    place p = begin();
    const float rows[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const sample_tensor tensor = TENSOR("wte.weight", "F32", "4,2", rows);
    embla_doctor *d = NULL;
    (void)state;
    write_model(&p, tied, NULL, &tensor, 1);
    embla_checkpoint *checkpoint = sample_open(p.s.folder);
    assert_int_equal(truncate(scratch_path(&p.s, "model.safetensors"), 64), 0);
    assert_ok(embla_doctor_new(checkpoint, NULL, &d));
    embla_finding finding = finding_of(d, "numbers", "");
    assert_int_equal(finding.level, ERROR);
    assert_non_null(strstr(finding.remedy, "make sure that the file is complete"));
    assert_string_equal(finding.tensor, "wte.weight");
    embla_doctor_free(d);
    embla_checkpoint_free(checkpoint);
    end(&p);
}

static void a_type_without_a_decoder_is_a_warning(void **state)
{
    place p = begin();
    const int32_t rows[] = {1, 2, 3, 4};
    const sample_tensor tensor = TENSOR("wte.weight", "I32", "2,2", rows);
    (void)state;
    write_model(&p, tied, NULL, &tensor, 1);
    embla_doctor *d = examine(p.s.folder);
    has(d, WARNING, "type", "wte.weight",
        "wte.weight is stored as I32, which is unsupported: its rows were not checked");
    embla_doctor_free(d);
    end(&p);
}

/* ---- the head ---- */

/* Writes a table and a head, if it is not NULL, and returns the findings. */
static embla_doctor *with_head(place *p, const char *config, const float rows[4], const float *head)
{
    const sample_tensor tensors[] = {
        {"model.embed_tokens.weight", "F32", "2,2", rows, 4 * sizeof *rows},
        {"lm_head.weight", "F32", "2,2", head, 4 * sizeof *rows}};
    write_model(p, config, NULL, tensors, head ? 2 : 1);
    return examine(p->s.folder);
}

static void a_tied_head_is_compared_with_the_flag(void **state)
{
    place p = begin();
    const float rows[] = {1, 2, 3, 4}, other[] = {1, 2, 3, 5};
    (void)state;
    embla_doctor *d = with_head(&p, NULL, rows, NULL);
    has(d, WARNING, "tied", NULL,
        "there is no head, and neither a flag nor a known architecture says whether the model has "
        "one (case 4)");
    embla_doctor_free(d);
    d = with_head(&p, "{\"tie_word_embeddings\":true}", rows, other);
    has(d, ERROR, "tied", "lm_head.weight",
        "no, the head is a separate tensor, although the flag says that it is tied "
        "(tie_word_embeddings = true); the largest difference in 2 rows is 1");
    embla_doctor_free(d);
    d = with_head(&p, "{\"tie_word_embeddings\":true}", rows, rows);
    has(d, WARNING, "tied", "lm_head.weight",
        "yes, but stored twice: table and head are equal in all 2 rows (tie_word_embeddings = "
        "true); storing it once would save 16 bytes");
    embla_doctor_free(d);
    d = with_head(&p, "{\"tie_word_embeddings\":true}", rows, NULL);
    has(d, FINE, "tied", NULL, "yes, the head uses the token table (tie_word_embeddings = true)");
    embla_doctor_free(d);
    d = with_head(&p, "{\"tie_word_embeddings\":false}", rows, NULL);
    has(d, ERROR, "tied", NULL,
        "no, but the head is missing from the file (tie_word_embeddings = false)");
    embla_doctor_free(d);
    end(&p);
}

static void a_head_without_a_table_is_an_error(void **state)
{
    place p = begin();
    const float rows[] = {1, 2, 3, 4};
    const sample_tensor head = TENSOR("lm_head.weight", "F32", "2,2", rows);
    (void)state;
    write_model(&p, "{\"tie_word_embeddings\":false}", NULL, &head, 1);
    embla_doctor *d = examine(p.s.folder);
    assert_int_equal(finding_of(d, "table", "no table").level, ERROR);
    has(d, ERROR, "tied", "lm_head.weight",
        "there is a head but no table, and no flag says that the head is the table");
    embla_doctor_free(d);
    end(&p);
}

static void the_text_of_a_tie_fits_its_buffer(void **state)
{
    char text[64] = "x";
    const embla_tie twice = {.kind = EMBLA_TIE_STORED_TWICE,
                             .rule = "1",
                             .flag = "not set",
                             .sampled = true,
                             .rows_compared = 1234};
    const embla_tie none = {.kind = EMBLA_TIE_NO_HEAD, .rule = "no head", .flag = "not set"};
    (void)state;
    assert_string_equal(embla_tie_text(&none, text, sizeof text), "the model has no head");
    assert_string_equal(embla_tie_text(&none, text, 10), "the model");
    char longer[200];
    assert_string_equal(embla_tie_text(&twice, longer, sizeof longer),
                        "yes, but stored twice: table and head are equal in the 1,234 rows "
                        "compared (flag not set)");
    assert_string_equal(embla_tie_text(NULL, text, sizeof text), "");
    assert_null(embla_tie_text(&none, NULL, 0));
}

/* ---- shapes ---- */

static void sizes_are_compared_with_the_config(void **state)
{
    place p = begin();
    float n[48];
    check_fill(1, COUNT_OF(n), n);
    const sample_tensor tensors[] = {{"wte.weight", "F32", "12,4", n, 48 * sizeof *n},
                                     {"wpe.weight", "F32", "8,4", n, 32 * sizeof *n},
                                     {"lm_head.weight", "F32", "11,4", n, 44 * sizeof *n},
                                     {"lm_head.bias", "F32", "12", n, 12 * sizeof *n}};
    (void)state;
    write_model(&p,
                "{\"model_type\":\"gpt2\",\"vocab_size\":10,\"n_embd\":8,\"n_positions\":16,"
                "\"tie_word_embeddings\":false}",
                NULL, tensors, 4);
    embla_doctor *d = examine(p.s.folder);
    has(d, ERROR, "vocab_size", "wte.weight", "12 rows, vocab_size = 10");
    has(d, ERROR, "dim", "wte.weight", "the table's dim is 4, n_embd = 8");
    has(d, ERROR, "head", "lm_head.weight", "lm_head.weight is 11 x 4, the table 12 x 4");
    has(d, ERROR, "head bias", "lm_head.bias", "lm_head.bias has 12 numbers, the head 11 rows");
    has(d, ERROR, "positions", "wpe.weight", "wpe.weight has 8 rows, n_positions = 16");
    has(d, SKIPPED, "tokens", NULL,
        "the file comes without words, so rows cannot be compared with tokens");
    assert_int_equal(info_of(d).errors, 5);
    assert_int_equal(info_of(d).skipped, 1);
    embla_doctor_free(d);
    end(&p);
}

/* The largest number of a config is no overflow. */
static void a_huge_number_of_positions_is_an_error(void **state)
{
    place p = begin();
    const float n[] = {1, 2, 3, 4};
    const sample_tensor tensors[] = {
        TENSOR("model.shared.weight", "F32", "2,2", n),
        TENSOR("model.encoder.embed_positions.weight", "F32", "2,2", n)};
    (void)state;
    write_model(&p,
                "{\"model_type\":\"bart\",\"max_position_embeddings\":9223372036854775807,"
                "\"tie_word_embeddings\":true}",
                NULL, tensors, 2);
    embla_doctor *d = examine(p.s.folder);
    has(d, ERROR, "positions", "model.encoder.embed_positions.weight",
        "model.encoder.embed_positions.weight has 2 rows, position 0 is row 2, "
        "max_position_embeddings = 9,223,372,036,854,775,807");
    embla_doctor_free(d);
    end(&p);
}

static void three_dimensions_are_no_table(void **state)
{
    place p = begin();
    const float n[24] = {1};
    const sample_tensor tensor = TENSOR("a.weight", "F32", "2,3,4", n);
    (void)state;
    write_model(&p, NULL, NULL, &tensor, 1);
    embla_doctor *d = examine(scratch_path(&p.s, "model.safetensors"));
    embla_finding finding =
        has(d, ERROR, "table", NULL,
            "no table: tensor 'a.weight', 2 x 3 x 4, has 3 dimensions; a table has 2, rows x dim");
    assert_string_equal(finding.remedy, "store the table as rows x dim");
    assert_int_equal(info_of(d).errors, 1);
    embla_doctor_free(d);
    end(&p);
}

static void a_config_that_is_not_used_is_a_warning(void **state)
{
    place p = begin();
    const float n[] = {1, 2, 3, 4};
    const sample_tensor tensor = TENSOR("wte.weight", "F32", "2,2", n);
    (void)state;
    write_model(&p, "{\"model_type\":", NULL, &tensor, 1);
    embla_doctor *d = examine(p.s.folder);
    embla_finding finding = finding_of(d, "config", "config.json is not used");
    assert_int_equal(finding.level, WARNING);
    assert_non_null(finding.remedy);
    embla_doctor_free(d);
    end(&p);
}

/* ---- tokens ---- */

static void tokens_without_a_row_are_an_error(void **state)
{
    place p = begin();
    const float n[] = {1, 2, 3, 4};
    const sample_tensor tensor = TENSOR("wte.weight", "F32", "2,2", n);
    (void)state;
    write_model(&p, tied, "a\nb\ntwo words\nd\n", &tensor, 1);
    embla_doctor *d = examine(p.s.folder);
    has(d, ERROR, "tokens", "wte.weight",
        "2 rows, but 4 tokens in vocab.txt: no row for 2 \"two words\", 3 \"d\"");
    embla_doctor_free(d);
    write_model(&p, tied, NULL, &tensor, 1);
    assert_int_equal(unlink(scratch_path(&p.s, "vocab.txt")), 0);
    toy_text(scratch_path(&p.s, "vocab.json"), "{\"a\":0,\"b\":");
    d = examine(p.s.folder);
    embla_finding finding = finding_of(d, "tokens", "vocab.json");
    assert_int_equal(finding.level, ERROR);
    assert_string_equal(finding.remedy, "repair or replace the tokenizer");
    embla_doctor_free(d);
    end(&p);
}

/* A list of words of many bytes ends within its buffer. */
static void a_long_list_of_tokens_is_cut(void **state)
{
    enum { ROWS = 100000, TOKENS = 12, FACES = 24 };
    place p = begin();
    static float rows[ROWS];
    char words[4096] = "{";
    size_t used = 1;
    (void)state;
    for (size_t i = 0; i < ROWS; i++) rows[i] = 1;
    for (int t = 0; t < TOKENS; t++) {
        used += (size_t)snprintf(words + used, sizeof words - used, "%s\"", t > 0 ? "," : "");
        for (int i = 0; i < FACES; i++) /* U+1F600, and one that makes the word another */
            used += (size_t)snprintf(words + used, sizeof words - used, "\xf0\x9f\x98%c",
                                     i > 0 ? 0x80 : 0x81 + t);
        used += (size_t)snprintf(words + used, sizeof words - used, "\":%d", ROWS + t);
    }
    (void)snprintf(words + used, sizeof words - used, "}");
    const sample_tensor tensor = TENSOR("wte.weight", "F32", "100000,1", rows);
    write_model(&p, tied, NULL, &tensor, 1);
    toy_text(scratch_path(&p.s, "vocab.json"), words);
    embla_doctor *d = examine(p.s.folder);
    embla_finding finding = finding_of(
        d, "tokens", "100,000 rows, but 100,012 tokens in vocab.json: no row for 100000");
    assert_non_null(strstr(finding.found, ", 100005 \""));
    assert_null(strstr(finding.found, ", 100006 \""));
    assert_string_equal(finding.found + strlen(finding.found) - 4, "\" ..");
    embla_doctor_free(d);
    end(&p);
}

static void a_gguf_has_as_many_tokens_as_rows(void **state)
{
    place p = begin();
    const toy_tensor table = {"token_embd.weight", 4, 8, 1};
    (void)state;
    toy_gguf(scratch_path(&p.s, "m.gguf"), "llama", 3, &table, 1);
    embla_doctor *d = examine(scratch_path(&p.s, "m.gguf"));
    has(d, ERROR, "tokens", "token_embd.weight", "4 rows, but 3 tokens in tokenizer.ggml.tokens");
    embla_doctor_free(d);
    end(&p);
}

static void a_mapping_has_a_row_and_a_weight_for_each_token(void **state)
{
    place p = begin();
    const float rows[] = {1, 2, 3, 4}, weights[] = {1, 1, 1, 1};
    const int32_t mapping[] = {0, 1, 7};
    const sample_tensor tensors[] = {TENSOR("embeddings", "F32", "2,2", rows),
                                     TENSOR("mapping", "I32", "3", mapping),
                                     TENSOR("weights", "F32", "4", weights)};
    (void)state;
    write_model(&p, NULL, "a\nb\nc\nd\n", tensors, 3);
    embla_doctor *d = examine(p.s.folder);
    has(d, ERROR, "mapping", "mapping", "mapping has 3 numbers, vocab.txt has 4 tokens");
    has(d, ERROR, "mapping", "weights", "weights has 4 weights, mapping has 3 numbers");
    assert_int_equal(finding_of(d, "mapping", "gives token 2 row 7").level, ERROR);
    embla_doctor_free(d);
    end(&p);
}

/* ---- copies, memory and progress ---- */

static const char untied[] = "{\"model_type\":\"deepseek_v3\",\"tie_word_embeddings\":false}";

/* A table, a head, a copy of each that is equal or not, and words. */
static void write_copies(place *p)
{
    const float rows[] = {1, 2, 3, 4}, head[] = {1, 2, 3, 5}, other[] = {1, 2, 3, 6};
    const sample_tensor tensors[] = {
        TENSOR("model.embed_tokens.weight", "F32", "2,2", rows),
        TENSOR("lm_head.weight", "F32", "2,2", head),
        TENSOR("model.layers.61.embed_tokens.weight", "F32", "2,2", rows),
        TENSOR("model.layers.61.shared_head.head.weight", "F32", "2,2", other),
        {"model.layers.62.embed_tokens.weight", "F32", "1,2", rows, 2 * sizeof *rows}};
    write_model(p, untied, "a\nb\n", tensors, COUNT_OF(tensors));
}

static void copies_are_compared_with_their_tensor(void **state)
{
    place p = begin();
    (void)state;
    write_copies(&p);
    embla_doctor *d = examine(p.s.folder);
    has(d, FINE, "copies", "model.layers.61.embed_tokens.weight",
        "model.layers.61.embed_tokens.weight equals model.embed_tokens.weight");
    has(d, WARNING, "copies", "model.layers.61.shared_head.head.weight",
        "model.layers.61.shared_head.head.weight differs from lm_head.weight");
    has(d, WARNING, "copies", "model.layers.62.embed_tokens.weight",
        "model.layers.62.embed_tokens.weight is 1 x 2, F32, but model.embed_tokens.weight is 2 x "
        "2, F32");
    embla_doctor_free(d);
    end(&p);
}

/* How many allocations an examination makes: of so many that may go well, how many are left? */
static size_t count_allocations(const embla_checkpoint *checkpoint)
{
    enum { MANY = 1 << 16 };
    embla_doctor *doctor = NULL;
    void *memory = NULL;
    size_t left = 0;
    embla_mem_fail(MANY, false);
    assert_ok(embla_doctor_new(checkpoint, NULL, &doctor));
    for (; embla_mem_new(1, "counting", &memory) == EMBLA_OK; left++) embla_mem_free(memory, 1);
    embla_mem_fail(0, false);
    embla_doctor_free(doctor);
    return MANY - 1 - left;
}

static void every_allocation_may_fail(void **state)
{
    place p = begin();
    (void)state;
    write_copies(&p);
    embla_checkpoint *checkpoint = sample_open(p.s.folder);
    size_t live = embla_mem_live(), all = count_allocations(checkpoint);
    assert_true(all > 5);
    for (int forever = 0; forever < 2; forever++) {
        for (size_t n = 1; n <= all; n++) {
            embla_doctor *doctor = NULL;
            embla_mem_fail(n, forever);
            embla_status status = embla_doctor_new(checkpoint, NULL, &doctor);
            embla_mem_fail(0, false);
            if (status != EMBLA_ERR_MEMORY)
                fail_msg("allocation %zu of %zu: %s", n, all, embla_status_name(status));
            assert_null(doctor);
            assert_int_equal(embla_mem_live(), live);
        }
    }
    embla_checkpoint_free(checkpoint);
    end(&p);
}

typedef struct {
    int calls, most; /* the call that stops; 0 means none */
    int64_t done, total;
} seen;

static bool see(void *context, const char *what, int64_t done, int64_t total)
{
    seen *s = context;
    assert_string_equal(what, "reading");
    assert_true(done > s->done && done <= total);
    s->done = done;
    s->total = total;
    return ++s->calls != s->most;
}

static void progress_stops_at_each_of_its_calls(void **state)
{
    place p = begin();
    seen s = {0};
    embla_doctor *doctor = NULL;
    embla_doctor_options options = {.threads = 1, .progress = see, .context = &s};
    (void)state;
    write_copies(&p);
    embla_checkpoint *checkpoint = sample_open(p.s.folder);
    size_t live = embla_mem_live();
    assert_ok(embla_doctor_new(checkpoint, &options, &doctor));
    embla_doctor_free(doctor);
    doctor = NULL;
    assert_int_equal(s.calls, 4); /* two copies that are alike, the table, the head */
    assert_true(s.done == s.total);
    for (int most = 1; most <= 4; most++) {
        s = (seen){.most = most};
        assert_status(embla_doctor_new(checkpoint, &options, &doctor), EMBLA_ERR_STOPPED);
        assert_error_has("stopped by the caller: reading");
        assert_null(doctor);
        assert_int_equal(s.calls, most);
        assert_int_equal(embla_mem_live(), live);
    }
    embla_checkpoint_free(checkpoint);
    end(&p);
}

/* ---- arguments ---- */

static void null_and_wrong_arguments_are_refused(void **state)
{
    place p = begin();
    const float n[] = {1, 2, 3, 4};
    const sample_tensor tensor = TENSOR("wte.weight", "F32", "2,2", n);
    const embla_doctor_options negative = {.threads = -1};
    embla_doctor *doctor = NULL;
    embla_doctor_info info;
    size_t count = 7;
    (void)state;
    write_model(&p, tied, NULL, &tensor, 1);
    embla_checkpoint *checkpoint = sample_open(p.s.folder);
    assert_status(embla_doctor_new(NULL, NULL, &doctor), EMBLA_ERR_ARGUMENT);
    assert_string_equal(embla_error(), "embla_doctor_new: checkpoint is NULL");
    assert_status(embla_doctor_new(checkpoint, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_string_equal(embla_error(), "embla_doctor_new: out is NULL");
    assert_status(embla_doctor_new(checkpoint, &negative, &doctor), EMBLA_ERR_ARGUMENT);
    assert_null(doctor);
    assert_null(embla_doctor_findings(NULL, &count));
    assert_int_equal(count, 0);
    assert_status(embla_doctor_describe(NULL, &info), EMBLA_ERR_ARGUMENT);
    assert_string_equal(embla_error(), "embla_doctor_describe: doctor is NULL");
    embla_doctor_free(NULL);
    embla_checkpoint_free(checkpoint);
    end(&p);
}

static void levels_have_names(void **state)
{
    (void)state;
    assert_string_equal(embla_finding_level_name(EMBLA_FINDING_LEVEL_FINE), "fine");
    assert_string_equal(embla_finding_level_name(EMBLA_FINDING_LEVEL_SKIPPED), "skipped");
    assert_string_equal(embla_finding_level_name(EMBLA_FINDING_LEVEL_WARNING), "warning");
    assert_string_equal(embla_finding_level_name(EMBLA_FINDING_LEVEL_ERROR), "error");
    assert_null(embla_finding_level_name((embla_finding_level)4));
    assert_null(embla_finding_level_name((embla_finding_level)-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_whose_parts_agree_has_no_error),
        cmocka_unit_test(a_table_in_memory_is_examined),
        cmocka_unit_test(a_chosen_tensor_is_named_by_the_caller),
        cmocka_unit_test(rows_with_nan_and_infinity_are_errors),
        cmocka_unit_test(rows_of_zeros_are_a_warning_if_there_are_several),
        cmocka_unit_test(rows_that_cannot_be_read_are_an_error),
        cmocka_unit_test(a_type_without_a_decoder_is_a_warning),
        cmocka_unit_test(a_tied_head_is_compared_with_the_flag),
        cmocka_unit_test(a_head_without_a_table_is_an_error),
        cmocka_unit_test(the_text_of_a_tie_fits_its_buffer),
        cmocka_unit_test(sizes_are_compared_with_the_config),
        cmocka_unit_test(a_huge_number_of_positions_is_an_error),
        cmocka_unit_test(three_dimensions_are_no_table),
        cmocka_unit_test(a_config_that_is_not_used_is_a_warning),
        cmocka_unit_test(tokens_without_a_row_are_an_error),
        cmocka_unit_test(a_long_list_of_tokens_is_cut),
        cmocka_unit_test(a_gguf_has_as_many_tokens_as_rows),
        cmocka_unit_test(a_mapping_has_a_row_and_a_weight_for_each_token),
        cmocka_unit_test(copies_are_compared_with_their_tensor),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(progress_stops_at_each_of_its_calls),
        cmocka_unit_test(null_and_wrong_arguments_are_refused),
        cmocka_unit_test(levels_have_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
