/* SPDX-License-Identifier: Apache-2.0 */
/* What people really have on their disks, and what only looks like it: names of folders and
 * parts, configurations that Python wrote, pointers to files that were never downloaded,
 * types below a byte; a GGUF in several files; and what may be asked of all of it.
 */
#include "opened.h"

#include "base/byte_order.h"
#include "checkpoint/checkpoint.h"

static void a_gguf_may_be_called_mixture_of_experts(void **state)
{
    toy_tensor tensors[] = {{"token_embd.weight", 6, 4, 1}};
    (void)state;
    toy_gguf(scratch_path(&place, "mixture-of-experts.gguf"), "llama", 0, tensors, 1);
    embla_checkpoint_free(opened(""));
    scratch_remove(&place, "mixture-of-experts.gguf");
    toy_gguf(scratch_path(&place, "a-00002-of-00003.gguf"), "llama", 0, tensors, 1);
    embla_checkpoint *cp = NULL;
    assert_status(embla_checkpoint_open(place.folder, NULL, &cp), EMBLA_ERR_NOT_FOUND);
}

static void a_static_model_has_its_words_one_folder_down(void **state)
{
    toy_tensor tensors[] = {{"embedding.weight", 2, 4, 1}};
    embla_vocab *vocab = NULL;
    (void)state;
    assert_int_equal(mkdir(scratch_path(&place, "0_StaticEmbedding"), 0700), 0);
    toy_safetensors(scratch_path(&place, "0_StaticEmbedding/model.safetensors"), tensors, 1);
    toy_text(scratch_path(&place, "0_StaticEmbedding/tokenizer.json"),
             "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0,\"b\":1}}}");
    embla_checkpoint *cp = opened("");
    assert_ok(embla_vocab_open(cp, &vocab));
    assert_int_equal(embla_vocab_count(vocab), 2);
    embla_vocab_free(vocab);
    embla_checkpoint_free(cp);
    scratch_remove(&place, "0_StaticEmbedding/model.safetensors");
    scratch_remove(&place, "0_StaticEmbedding/tokenizer.json");
}

static void a_file_in_a_folder_that_cannot_be_listed_opens(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 2, 4, 1}};
    (void)state;
    assert_int_equal(mkdir(scratch_path(&place, "private"), 0700), 0);
    toy_safetensors(scratch_path(&place, "private/a.safetensors"), tensors, 1);
    assert_int_equal(chmod(scratch_path(&place, "private"), 0311), 0);
    embla_checkpoint *cp = NULL;
    embla_status status =
        embla_checkpoint_open(scratch_path(&place, "private/a.safetensors"), NULL, &cp);
    assert_int_equal(chmod(scratch_path(&place, "private"), 0700), 0);
    scratch_remove(&place, "private/a.safetensors");
    assert_ok(status);
    embla_checkpoint_free(cp);
}

static void pythons_infinity_does_not_cost_the_flag(void **state)
{
    toy_tensor tensors[] = {{"backbone.embeddings.weight", 6, 4, 1}, {"x", 4, 0, 2}};
    embla_tie tie;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 2);
    toy_text(scratch_path(&place, "config.json"),
             "{\"time_step_limit\": [0.0, Infinity], \"big\": 99999999999999999999,"
             " \"tie_word_embeddings\": true}");
    embla_checkpoint *cp = opened("");
    assert_null(note_at(cp, 0));
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    assert_int_equal(tie.kind, EMBLA_TIE_TIED);
    embla_checkpoint_free(cp);
}

static void a_pointer_called_tokenizer_json_is_no_vocabulary(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 3, 4, 1}};
    embla_vocab *vocab = NULL;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 1);
    toy_text(scratch_path(&place, "tokenizer.json"),
             "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n");
    embla_checkpoint *cp = opened("");
    assert_status(embla_vocab_open(cp, &vocab), EMBLA_ERR_FORMAT);
    embla_checkpoint_free(cp);
}

static void a_layer_called_linear_is_no_head(void **state)
{
    toy_tensor tensors[] = {{"embedding.weight", 6, 4, 1}, {"layers.1.linear.weight", 4, 4, 2}};
    embla_tensor head;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 2);
    embla_checkpoint *cp = opened("");
    assert_status(embla_checkpoint_role(cp, EMBLA_ROLE_HEAD, &head, NULL), EMBLA_ERR_NOT_FOUND);
    embla_checkpoint_free(cp);
}

static void a_gguf_says_itself_what_it_is(void **state)
{
    toy_tensor tensors[] = {{"token_embd.weight", 6, 4, 1}};
    embla_tie tie;
    (void)state;
    toy_gguf(scratch_path(&place, "a.gguf"), "llama", 0, tensors, 1);
    toy_text(scratch_path(&place, "config.json"), "{\"general\": {\"architecture\": \"bert\"}}");
    embla_checkpoint *cp = opened("a.gguf");
    assert_string_equal(embla_checkpoint_text(cp, "general.architecture"), "llama");
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    assert_int_equal(tie.kind, EMBLA_TIE_TIED);
    embla_checkpoint_free(cp);
}

/* Table and head of F4: two numbers a byte, three in a row. */
static void types_below_a_byte_are_compared_to_the_last_one(void **state)
{
    static const char header[] =
        "{\"lm_head.weight\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]},"
        "\"wte.weight\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[3,6]}}   ";
    for (int differ = 0; differ < 2; differ++) {
        toy_bytes file = {0};
        embla_tie tie;
        (void)state;
        toy_number(&file, sizeof header - 1, 8);
        toy_put(&file, header, sizeof header - 1);
        toy_put(&file, differ ? "\x12\x34\x56\x12\x34\x57" : "\x12\x34\x56\x12\x34\x56", 6);
        scratch_write(scratch_path(&place, "model.safetensors"), file.bytes, file.used);
        free(file.bytes);
        embla_checkpoint *cp = opened("");
        assert_ok(embla_checkpoint_tie(cp, 0, &tie));
        assert_int_equal(tie.kind, differ ? EMBLA_TIE_UNTIED : EMBLA_TIE_STORED_TWICE);
        embla_checkpoint_free(cp);
    }
}

static void a_head_that_is_no_table_differs_from_it(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}, {"lm_head.weight", 24, 0, 1}};
    embla_tie tie;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 2);
    embla_checkpoint *cp = opened("");
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    assert_int_equal(tie.kind, EMBLA_TIE_UNTIED);
    embla_checkpoint_free(cp);
}

/* ---- a GGUF in several files ---- */

static void split_key(toy_bytes *t, const char *key, uint64_t value)
{
    toy_string(t, key);
    toy_number(t, 2, 4); /* u16 */
    toy_number(t, value, 2);
}

/* File number of files, with one table; tail bytes follow it. */
static void split_file(const char *name, uint64_t number, uint64_t files, uint64_t tensors,
                       const char *tensor, size_t tail)
{
    const toy_tensor table = {tensor, 6, 4, 1 + number};
    toy_bytes t = {0};
    toy_put(&t, "GGUF", 4);
    toy_number(&t, 3, 4);
    toy_number(&t, 1, 8);
    toy_number(&t, 3, 8);
    split_key(&t, "split.no", number);
    split_key(&t, "split.count", files);
    split_key(&t, "split.tensors.count", tensors);
    toy_string(&t, tensor);
    toy_number(&t, 2, 4);
    toy_number(&t, table.dim, 8);
    toy_number(&t, table.rows, 8);
    toy_number(&t, 0, 4);
    toy_number(&t, 0, 8);
    while (t.used % 32 != 0) toy_number(&t, 0, 1);
    toy_data(&t, &table); /* 96 bytes: no padding */
    while (tail-- > 0) toy_number(&t, 0, 1);
    scratch_write(scratch_path(&place, name), t.bytes, t.used);
    free(t.bytes);
}

#define FIRST  "m-00001-of-00002.gguf"
#define SECOND "m-00002-of-00002.gguf"

static void refused(const char *name, embla_status status, const char *sentence)
{
    embla_checkpoint *cp = NULL;
    assert_status(
        embla_checkpoint_open(*name ? scratch_path(&place, name) : place.folder, NULL, &cp),
        status);
    assert_error_has(sentence);
    assert_null(cp);
}

static void rule_g13_the_files_of_a_gguf_fit_each_other(void **state)
{
    toy_tensor table[] = {{"b", 6, 4, 1}};
    embla_tensor tensor;
    float row[4];
    (void)state;
    split_file(FIRST, 0, 2, 2, "token_embd.weight", 0);
    split_file(SECOND, 1, 2, 2, "b", 0);
    embla_checkpoint *cp = opened("");
    assert_int_equal(tensor_count(cp), 2);
    assert_ok(embla_checkpoint_find(cp, "b", &tensor));
    assert_non_null(strstr(tensor.file, SECOND));
    assert_ok(embla_checkpoint_read(cp, "b", 80, 16, row));
    embla_order_turn(row, sizeof *row, 4);
    assert_true(row[3] == toy_value(2, 23));
    embla_checkpoint_free(cp);
    refused(SECOND, EMBLA_ERR_FORMAT, "is file 2 of 2; open the first file (G13)");
    split_file(SECOND, 0, 2, 2, "b", 0);
    refused(FIRST, EMBLA_ERR_FORMAT,
            "is file 1 of 2 according to its keys, but 2 of 2 according to its name (G13)");
    split_file(SECOND, 1, 3, 2, "b", 0);
    refused(FIRST, EMBLA_ERR_FORMAT,
            "is file 2 of 3 according to its keys, but 2 of 2 according to its name (G13)");
    split_file(SECOND, 1, 2, 2, "token_embd.weight", 0);
    refused(FIRST, EMBLA_ERR_FORMAT, "two of its 2 files have a tensor 'token_embd.weight' (G13)");
    split_file(SECOND, 1, 2, 2, "b", 0);
    split_file(FIRST, 0, 2, 3, "token_embd.weight", 0);
    refused(FIRST, EMBLA_ERR_FORMAT, "have 2 tensors, but split.tensors.count is 3 (G13)");
    split_file(FIRST, 0, 2, 1, "token_embd.weight", 0);
    refused(FIRST, EMBLA_ERR_FORMAT, "have 2 tensors, but split.tensors.count is 1 (G13)");
    split_file(FIRST, 0, 2, 2, "token_embd.weight", 0);
    toy_safetensors(scratch_path(&place, SECOND), table, 1);
    refused(FIRST, EMBLA_ERR_FORMAT,
            "has the format safetensors, but the files before it have gguf");
    split_file("elsewhere", 1, 2, 2, "b", 0);
    scratch_remove(&place, SECOND);
    assert_int_equal(symlink("elsewhere", scratch_path(&place, SECOND)), 0);
    refused(FIRST, EMBLA_ERR_IO, "symbolic link");
}

static void notes_of_all_files_come_one_after_the_other(void **state)
{
    (void)state;
    split_file(FIRST, 0, 2, 2, "token_embd.weight", 3);
    split_file(SECOND, 1, 2, 2, "b", 5);
    toy_text(scratch_path(&place, "config.json"), "{");
    embla_checkpoint *cp = opened("");
    assert_non_null(strstr(note_at(cp, 0), "config.json is not used"));
    assert_non_null(strstr(note_at(cp, 1), "3 bytes follow"));
    assert_non_null(strstr(note_at(cp, 2), "5 bytes follow"));
    assert_null(note_at(cp, 3));
    embla_checkpoint_free(cp);
}

static void what_a_gguf_does_not_say_config_json_may(void **state)
{
    int64_t number = 0;
    (void)state;
    split_file("a.gguf", 0, 1, 1, "token_embd.weight", 0);
    toy_text(scratch_path(&place, "config.json"),
             "{\"split\": {\"count\": 9}, \"vocab_size\": 7, \"torch_dtype\": \"float32\"}");
    embla_checkpoint *cp = opened("a.gguf");
    assert_ok(embla_checkpoint_integer(cp, "split.count", &number));
    assert_int_equal(number, 1);
    assert_ok(embla_checkpoint_integer(cp, "vocab_size", &number));
    assert_int_equal(number, 7);
    assert_string_equal(embla_checkpoint_text(cp, "torch_dtype"), "float32");
    embla_checkpoint_free(cp);
}

/* ---- folders, names, config.json ---- */

static void a_folder_is_looked_through_for_weights_alone(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 2, 4, 1}};
    (void)state;
    toy_text(scratch_path(&place, "pytorch_model.bin.index.json"), "{}");
    toy_safetensors(scratch_path(&place, ".hidden.safetensors"), tensors, 1);
    toy_gguf(scratch_path(&place, "-00002-of-00003.gguf"), "llama", 0, tensors, 1);
    refused("", EMBLA_ERR_NOT_FOUND, "has no .safetensors");
    toy_text(scratch_path(&place, "a.ckpt"), "\x80\x02}q.");
    refused("", EMBLA_ERR_UNSUPPORTED, "this is a pickle");
    toy_text(scratch_path(&place, "pytorch_model.bin"), "\x80\x02}q."); /* of two as of one */
    refused("", EMBLA_ERR_UNSUPPORTED, "this is a pickle");
    toy_gguf(scratch_path(&place, "a.gguf"), "llama", 0, tensors, 1);
    toy_gguf(scratch_path(&place, "b.gguf"), "llama", 0, tensors, 1);
    refused("", EMBLA_ERR_NOT_FOUND, "has 2 model files");
    toy_safetensors(scratch_path(&place, "a.safetensors"), tensors, 1);
    embla_checkpoint_free(opened("")); /* before both, whichever is listed first */
}

static void the_last_two_colons_name_the_tensor(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 2, 4, 1}, {"b", 3, 4, 2}};
    (void)state;
    toy_safetensors(scratch_path(&place, "a::b"), tensors, 2);
    embla_checkpoint *cp = opened("a::b"); /* a file of the whole name goes first */
    assert_int_equal(tensor_count(cp), 2);
    embla_tensor table;
    assert_ok(embla_checkpoint_role(cp, EMBLA_ROLE_TOKENS, &table, NULL));
    assert_string_equal(table.name, "wte.weight");
    embla_checkpoint_free(cp);
    cp = opened("a::b::b");
    assert_ok(embla_checkpoint_role(cp, EMBLA_ROLE_TOKENS, &table, NULL));
    assert_string_equal(table.name, "b");
    embla_checkpoint_free(cp);
    refused("a::b::", EMBLA_ERR_NOT_FOUND, "a::b::"); /* no tensor: a file of that name */
    cp = NULL;
    assert_status(embla_checkpoint_open("::wte.weight", NULL, &cp), EMBLA_ERR_NOT_FOUND);
    assert_error_has("::wte.weight");
}

static void names_that_begin_with_a_dot(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 2, 4, 1}};
    embla_vocab *vocab = NULL;
    char folder[SCRATCH_PATH];
    (void)state;
    toy_safetensors(scratch_path(&place, ".index.json"), tensors, 1); /* no index of NAME */
    embla_checkpoint_free(opened(".index.json"));
    toy_safetensors(scratch_path(&place, ".a"), tensors, 1);
    toy_text(scratch_path(&place, ".a.vocab.txt"), "x\ny\n");
    toy_text(scratch_path(&place, ".vocab.txt"), "p\nq\n");
    embla_checkpoint *cp = opened(".a");
    assert_ok(embla_vocab_open(cp, &vocab));
    assert_string_equal(embla_vocab_source(vocab), ".a.vocab.txt");
    embla_vocab_free(vocab);
    embla_checkpoint_free(cp);
    /* a folder with a slash behind it is named with one */
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 1);
    (void)snprintf(folder, sizeof folder, "%s/", place.folder);
    assert_ok(embla_checkpoint_open(folder, NULL, &cp));
    assert_null(strstr(file_at(cp, 0, NULL), "//"));
    embla_checkpoint_free(cp);
}

static void config_json_has_4_mib_at_most(void **state)
{
    enum { MOST = 4 << 20 };
    toy_tensor tensors[] = {{"wte.weight", 2, 4, 1}};
    char *text = malloc(MOST + 1);
    int64_t number;
    (void)state;
    assert_non_null(text);
    memset(text, ' ', MOST + 1);
    memcpy(text, "{\"n\":1}", 7);
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 1);
    scratch_write(scratch_path(&place, "config.json"), text, MOST);
    embla_checkpoint *cp = opened("");
    assert_ok(embla_checkpoint_integer(cp, "n", &number));
    assert_null(note_at(cp, 0));
    embla_checkpoint_free(cp);
    scratch_write(scratch_path(&place, "config.json"), text, MOST + 1);
    cp = opened("");
    assert_non_null(strstr(note_at(cp, 0), "4194305 bytes; the limit is 4194304 (T1)"));
    embla_checkpoint_free(cp);
    free(text);
    /* a folder of that name is none */
    scratch_remove(&place, "config.json");
    assert_int_equal(mkdir(scratch_path(&place, "config.json"), 0700), 0);
    cp = opened("");
    assert_non_null(strstr(note_at(cp, 0), "config.json is not used"));
    embla_checkpoint_free(cp);
    /* word vectors have none, whatever lies beside them */
    toy_text(scratch_path(&place, "a.vec"), "1 2\nthe 1 2\n");
    cp = opened("a.vec");
    assert_null(note_at(cp, 0));
    embla_checkpoint_free(cp);
}

static void a_key_of_config_json_has_127_bytes_at_most(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 2, 4, 1}};
    char text[512] = "{\"";
    int64_t number = 0;
    (void)state;
    memset(text + 2, 'k', 128);
    memcpy(text + 130, "\":1,\"", 5);
    memset(text + 135, 'k', 127);
    memcpy(text + 262, "\":2}", 5);
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 1);
    toy_text(scratch_path(&place, "config.json"), text);
    embla_checkpoint *cp = opened("");
    text[262] = '\0';
    assert_ok(embla_checkpoint_integer(cp, text + 135, &number));
    assert_int_equal(number, 2);
    text[130] = '\0';
    assert_status(embla_checkpoint_integer(cp, text + 2, &number), EMBLA_ERR_NOT_FOUND);
    embla_checkpoint_free(cp);
}

/* ---- links of a download cache ---- */

/* Opens a shard that is a link to target, which is put there. */
static embla_status open_linked(const char *target)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}};
    static const char *const folders[] = {"s", "s/main", "blobs", "blobz"};
    char link[SCRATCH_PATH], file[128];
    embla_checkpoint *cp = NULL;
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        (void)mkdir(scratch_path(&place, folders[i]), 0700);
    (void)snprintf(file, sizeof file, "%s", target + strlen("../../"));
    toy_safetensors(scratch_path(&place, file), tensors, 1);
    strcpy(link, scratch_path(&place, "s/main/a.safetensors"));
    assert_int_equal(symlink(target, link), 0);
    toy_text(scratch_path(&place, "s/main/model.safetensors.index.json"),
             "{\"weight_map\": {\"wte.weight\": \"a.safetensors\"}}");
    embla_status status = embla_checkpoint_open(scratch_path(&place, "s/main"), NULL, &cp);
    if (status == EMBLA_OK) embla_checkpoint_free(cp);
    scratch_remove(&place, file);
    scratch_remove(&place, "s/main/a.safetensors");
    scratch_remove(&place, "s/main/model.safetensors.index.json");
    for (size_t i = COUNT_OF(folders); i-- > 0;) scratch_remove(&place, folders[i]);
    return status;
}

static void rule_s13_a_blob_is_called_by_40_to_64_digits(void **state)
{
#define TEN "0123456789"
    (void)state;
    assert_ok(open_linked("../../blobs/" TEN TEN TEN "abcdefabcd"));
    assert_ok(open_linked("../../blobs/" TEN TEN TEN TEN TEN TEN "abcd"));
    assert_status(open_linked("../../blobs/" TEN TEN TEN "abcdefabc"), EMBLA_ERR_IO);
    assert_status(open_linked("../../blobs/" TEN TEN TEN TEN TEN TEN "abcde"), EMBLA_ERR_IO);
    assert_status(open_linked("../../blobs/" TEN TEN TEN "abcdefabcg"), EMBLA_ERR_IO);
    assert_status(open_linked("../../blobz/" TEN TEN TEN "abcdefabcd"), EMBLA_ERR_IO);
#undef TEN
}

static void rule_s13_shards_are_safetensors(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}};
    (void)state;
    toy_gguf(scratch_path(&place, "a.safetensors"), "llama", 0, tensors, 1);
    toy_text(scratch_path(&place, "model.safetensors.index.json"),
             "{\"weight_map\": {\"wte.weight\": \"a.safetensors\"}}");
    refused("", EMBLA_ERR_FORMAT, "shard a.safetensors has the format gguf, not safetensors (S13)");
}

/* ---- questions ---- */

static void a_table_has_limits(void **state)
{
    embla_element const *f32 = embla_element_of(EMBLA_F32);
    embla_entry entry = {
        .name = "t", .element = f32, .rank = 2, .shape = {UINT64_C(1) << 40, 1 << 20}};
    int64_t rows = 0;
    size_t dim = 0;
    (void)state;
    assert_ok(embla_entry_shape(&entry, &rows, &dim));
    assert_true(rows == INT64_C(1) << 40 && dim == 1 << 20);
    entry.shape[0]++;
    assert_status(embla_entry_shape(&entry, &rows, &dim), EMBLA_ERR_SHAPE);
    assert_error_has("(C10)");
    entry.shape[0]--;
    entry.shape[1]++;
    assert_status(embla_entry_shape(&entry, &rows, &dim), EMBLA_ERR_SHAPE);
    assert_error_has("(C10)");
    entry = (embla_entry){.name = "t", .element = f32, .rank = 3, .shape = {2, 3, 4}};
    assert_status(embla_entry_shape(&entry, &rows, &dim), EMBLA_ERR_SHAPE);
    assert_error_has("has 3 dimensions");
    entry.rank = 0;
    assert_status(embla_entry_shape(&entry, &rows, &dim), EMBLA_ERR_SHAPE);
    assert_error_has("has 0 dimensions");
}

static void reading_keeps_to_the_tensor(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}, {"b", 6, 4, 2}};
    float rows[4];
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 2);
    embla_checkpoint *cp = opened("");
    assert_status(embla_checkpoint_read(cp, "wte.weight", 97, 1, rows), EMBLA_ERR_RANGE);
    assert_status(embla_checkpoint_read(cp, "wte.weight", 97, 0, NULL), EMBLA_ERR_RANGE);
    assert_ok(embla_checkpoint_read(cp, "wte.weight", 96, 0, NULL));
    assert_status(embla_checkpoint_read(cp, "wte.weight", -1, 1, rows), EMBLA_ERR_RANGE);
    assert_error_has("is negative");
    embla_checkpoint_free(cp);
    /* rows that are made come whole */
    toy_text(scratch_path(&place, "a.vec"), "2 2\nthe 1 2\nof 3 4\n");
    cp = opened("a.vec");
    assert_ok(embla_checkpoint_read(cp, "vectors", 8, 8, rows));
    embla_order_turn(rows, sizeof *rows, 2);
    assert_true(rows[0] == 3 && rows[1] == 4);
    assert_status(embla_checkpoint_read(cp, "vectors", 4, 8, rows), EMBLA_ERR_ARGUMENT);
    assert_status(embla_checkpoint_read(cp, "vectors", 8, 4, rows), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_checkpoint_read(cp, "vectors", 3, 0, NULL));
    embla_checkpoint_free(cp);
}

static void of_many_candidates_as_many_are_listed_as_fit(void **state)
{
    enum { MANY = 12 };
    toy_tensor tensors[MANY];
    char names[MANY][128];
    embla_tensor table;
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        names[i][0] = '\0';
        for (size_t k = 0; k < 4 + i; k++) strcat(names[i], "model.");
        strcat(names[i], "wte.weight");
        tensors[i] = (toy_tensor){names[i], 2, 4, i};
    }
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, MANY);
    embla_checkpoint *cp = opened("");
    assert_status(embla_checkpoint_role(cp, EMBLA_ROLE_TOKENS, &table, NULL), EMBLA_ERR_NOT_FOUND);
    assert_error_has(
        "12 tensors could have the role 'tokens': model.model.model.model.wte.weight (2 x 4), ");
    embla_checkpoint_free(cp);
    /* a longer name than there is holds one that is nearly it */
    assert_status(embla_checkpoint_open(scratch_path(&place, "model.safetensors::model.model.model."
                                                             "model.wte.weight.data"),
                                        NULL, &cp),
                  EMBLA_ERR_NOT_FOUND);
    assert_error_has("did you mean 'model.model.model.model.wte.weight'?");
}

static void of_two_heads_none_is_the_table(void **state)
{
    toy_tensor tensors[] = {{"lm_head.weight", 6, 4, 1}, {"model.lm_head.weight", 6, 4, 2}};
    embla_tensor table;
    embla_tie tie;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 2);
    toy_text(scratch_path(&place, "config.json"), "{\"tie_word_embeddings\": true}");
    embla_checkpoint *cp = opened("");
    assert_status(embla_checkpoint_role(cp, EMBLA_ROLE_TOKENS, &table, NULL), EMBLA_ERR_NOT_FOUND);
    assert_error_has("has a name known for the role");
    assert_status(embla_checkpoint_tie(cp, 0, &tie), EMBLA_ERR_NOT_FOUND);
    assert_error_has("2 tensors could have the role 'head'");
    embla_checkpoint_free(cp);
}

static void null_is_refused(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}};
    int64_t number;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 1);
    embla_checkpoint *cp = opened("");
    assert_int_equal(tensor_count(NULL), 0);
    assert_int_equal(tensor_count(cp), 1);
    assert_null(note_at(NULL, 0));
    assert_null(file_at(NULL, 0, NULL));
    assert_status(embla_checkpoint_integer(NULL, "a", &number), EMBLA_ERR_ARGUMENT);
    assert_status(embla_checkpoint_integer(cp, NULL, &number), EMBLA_ERR_ARGUMENT);
    assert_null(embla_checkpoint_text(cp, NULL));
    embla_checkpoint_free(cp);
    embla_checkpoint_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_gguf_may_be_called_mixture_of_experts),
        TEST(a_static_model_has_its_words_one_folder_down),
        TEST(a_file_in_a_folder_that_cannot_be_listed_opens),
        TEST(pythons_infinity_does_not_cost_the_flag),
        TEST(a_pointer_called_tokenizer_json_is_no_vocabulary),
        TEST(a_layer_called_linear_is_no_head),
        TEST(a_gguf_says_itself_what_it_is),
        TEST(types_below_a_byte_are_compared_to_the_last_one),
        TEST(a_head_that_is_no_table_differs_from_it),
        TEST(rule_g13_the_files_of_a_gguf_fit_each_other),
        TEST(notes_of_all_files_come_one_after_the_other),
        TEST(what_a_gguf_does_not_say_config_json_may),
        TEST(a_folder_is_looked_through_for_weights_alone),
        TEST(the_last_two_colons_name_the_tensor),
        TEST(names_that_begin_with_a_dot),
        TEST(config_json_has_4_mib_at_most),
        TEST(a_key_of_config_json_has_127_bytes_at_most),
        TEST(rule_s13_a_blob_is_called_by_40_to_64_digits),
        TEST(rule_s13_shards_are_safetensors),
        TEST(a_table_has_limits),
        TEST(reading_keeps_to_the_tensor),
        TEST(of_many_candidates_as_many_are_listed_as_fit),
        TEST(of_two_heads_none_is_the_table),
        TEST(null_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
