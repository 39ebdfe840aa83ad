/* SPDX-License-Identifier: Apache-2.0 */
/* embla_convert: every pair of formats keeps every number and every word; what is no table
 * keeps its bytes; what cannot be is refused before anything is written, in a sentence that
 * says what to do; a file that is not what was written never gets its name.
 */
#include <errno.h>

#include "convert_files.h"

/* ---- every pair ---- */

static const char *const one_table_files[] = {"a.vec", "a.txt", "a.w2v", "a.npy"};

/* A table with words, through every pair of formats that hold one: 6 x 6. */
static void a_table_passes_through_every_pair_of_formats(void **state)
{
    static const char *const files[] = {"a.vec", "a.txt",         "a.w2v",
                                        "a.npy", "a.safetensors", "a.gguf"};
    static const char source[] =
        "5 3\nthe 1.5 -0 0.1\nof -2.25 3e-40 7\n\xc3\xa9t\xc3\xa9 16777216 "
        "1e38 -1e-5\n\xff 0.333333343 2 3\nlast 4 5 6\n";
    const float rows[] = {1.5f,   -0.0f,       0.1f, -2.25f, 3e-40f, 7.0f, 16777216.0f, 1e38f,
                          -1e-5f, 1.0f / 3.0f, 2.0f, 3.0f,   4.0f,   5.0f, 6.0f};
    static const char *const words[] = {"the", "of", "\xc3\xa9t\xc3\xa9", "\xff", "last"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        for (size_t k = 0; k < COUNT_OF(files); k++) {
            place p = begin();
            char second[64];
            scratch_write(scratch_path(&p.s, "source.vec"), source, sizeof source - 1);
            embla_account_free(convert(&p, "source.vec", files[i], NULL));
            snprintf(second, sizeof second, "b%s", files[k] + 1);
            embla_account *account = convert(&p, files[i], second, NULL);
            size_t count;
            const embla_account_line line = *embla_account_lines(account, &count);
            assert_int_equal(count, 1);
            assert_true(line.table);
            assert_int_equal(line.rows, 5);
            assert_int_equal(line.new_rows, 5);
            assert_int_equal(line.rows_same, 5);
            assert_int_equal(line.rows_rounded + line.rows_nonfinite, 0);
            assert_true(line.difference == 0);
            assert_string_equal(line.new_type, "F32");
            assert_int_equal(line.bytes, 60);
            assert_int_equal(strlen(line.checksum), 32);
            embla_account_free(account);
            assert_rows(&p, second, rows, 5, 3);
            for (int32_t w = 0; w < 5; w++) assert_word(&p, second, w, words[w]);
            end(&p);
        }
    }
}

static void the_same_bytes_have_the_same_checksum_in_every_format(void **state)
{
    sample_numbers n;
    char sums[8][33] = {{0}};
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    for (size_t i = 0; embla_convert_format_name(i); i++) {
        embla_convert_options options = {.to = embla_convert_format_name(i), .tables_only = true};
        char name[32];
        assert_true(i < COUNT_OF(sums));
        if (strcmp(options.to, "llm.c") == 0) continue;
        snprintf(name, sizeof name, "out%zu", i);
        embla_account *account = convert(&p, "m.safetensors", name, &options);
        embla_account_info info;
        assert_ok(embla_account_describe(account, &info));
        assert_string_equal(info.format, options.to);
        struct stat found;
        assert_int_equal(stat(scratch_path(&p.s, name), &found), 0);
        assert_int_equal(info.bytes, found.st_size);
        memcpy(sums[i], sample_line(account, "wte.weight").checksum, 33);
        embla_account_free(account);
    }
    for (size_t i = 1; i < COUNT_OF(sums); i++)
        if (sums[i][0] && sums[0][0]) assert_string_equal(sums[i], sums[0]);
    end(&p);
}

/* ---- a model ---- */

static void tensors_that_are_no_tables_keep_their_bytes(void **state)
{
    sample_numbers n;
    embla_convert_options options = {.dtype = EMBLA_BF16};
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    embla_account *account = convert(&p, "m.safetensors", "n.safetensors", &options);
    assert_int_equal(sample_lines(account), 7);
    assert_bytes(&p, "n.safetensors", "h.0.ln_1.weight", n.norm, sizeof n.norm);
    assert_bytes(&p, "n.safetensors", "h.0.blob", n.blob, sizeof n.blob);
    assert_bytes(&p, "n.safetensors", "lm_head.bias", n.bias, sizeof n.bias);
    assert_bytes(&p, "n.safetensors", "empty", "", 0);
    embla_account_line line = sample_line(account, "h.0.blob");
    assert_false(line.table);
    assert_string_equal(line.type, "I32");
    assert_string_equal(line.new_type, "I32");
    assert_null(line.why);
    line = sample_line(account, "empty");
    assert_string_equal(line.checksum, "99aa06d3014798d86001c324468d497f");
    line = sample_line(account, "wte.weight");
    assert_true(line.table);
    assert_string_equal(line.new_type, "BF16");
    assert_int_equal(line.bytes, SAMPLE_ROWS * SAMPLE_DIM * 2);
    assert_string_equal(sample_line(account, "lm_head.weight").new_type, "BF16");
    line = sample_line(account, "wpe.weight"); /* halves of small numbers: exact in bf16 */
    assert_string_equal(line.new_type, "BF16");
    assert_int_equal(line.rows_same, 5);
    embla_account_free(account);
    embla_checkpoint *found = sample_open(scratch_path(&p.s, "n.safetensors"));
    assert_string_equal(embla_checkpoint_text(found, "note"), "by hand");
    assert_string_equal(embla_checkpoint_text(found, "format"), "pt");
    embla_checkpoint_free(found);
    end(&p);
}

static void to_gguf_tables_get_its_names_and_back_they_keep_them(void **state)
{
    sample_numbers n;
    embla_convert_options only = {.tables_only = true};
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    embla_account *account = convert(&p, "m.safetensors", "m.gguf", &only);
    assert_string_equal(sample_line(account, "wte.weight").new_name, "token_embd.weight");
    assert_string_equal(sample_line(account, "wpe.weight").new_name, "position_embd.weight");
    assert_string_equal(sample_line(account, "lm_head.weight").new_name, "output.weight");
    assert_string_equal(sample_line(account, "lm_head.bias").new_name, "output.bias");
    embla_account_line line = sample_line(account, "h.0.ln_1.weight");
    assert_null(line.new_name);
    assert_string_equal(line.why, "not one of the tables");
    embla_account_free(account);
    assert_bytes(&p, "m.gguf", "token_embd.weight", n.tokens, sizeof n.tokens);
    assert_bytes(&p, "m.gguf", "output.weight", n.head, sizeof n.head);
    account = convert(&p, "m.gguf", "back.safetensors", NULL);
    assert_string_equal(sample_line(account, "output.weight").new_name, "output.weight");
    embla_account_free(account);
    assert_bytes(&p, "back.safetensors", "token_embd.weight", n.tokens, sizeof n.tokens);
    assert_rows(&p, "back.safetensors", n.tokens, SAMPLE_ROWS, SAMPLE_DIM);
    account = convert(&p, "m.gguf", "again.gguf", NULL); /* its keys are copied */
    embla_account_free(account);
    size_t size = 0;
    unsigned char *bytes = scratch_read(scratch_path(&p.s, "m.gguf"), &size);
    assert_true(scratch_holds(scratch_path(&p.s, "again.gguf"), bytes, size));
    free(bytes);
    end(&p);
}

static void one_table_is_taken_from_a_model_and_the_rest_is_named(void **state)
{
    sample_numbers n;
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    for (size_t i = 0; i < COUNT_OF(one_table_files); i++) {
        embla_account *account = convert(&p, "m.safetensors", one_table_files[i], NULL);
        assert_rows(&p, one_table_files[i], n.tokens, SAMPLE_ROWS, SAMPLE_DIM);
        assert_int_equal(sample_lines(account), 7);
        embla_account_line line = sample_line(account, "lm_head.weight");
        assert_null(line.new_name);
        assert_string_equal(line.why, "the format holds one table");
        line = sample_line(account, "wte.weight");
        assert_string_equal(line.new_name, i < 3 ? "vectors" : "array");
        embla_account_free(account);
    }
    embla_account_free(convert(&p, "m.safetensors::lm_head.weight", "head.npy", NULL));
    assert_rows(&p, "head.npy", n.head, SAMPLE_ROWS, SAMPLE_DIM);
    end(&p);
}

/* ---- words ---- */

static void words_go_along_in_every_way_there_is(void **state)
{
    sample_numbers n;
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    sample_vocab(scratch_path(&p.s, "vocab.json"));
    /* Into files of words: what cannot stand in a line is called by its row. */
    for (int i = 0; i < 3; i++) {
        embla_account *account = convert(&p, "m.safetensors", one_table_files[i], NULL);
        assert_true(sample_noted(account, "3 of 7 rows have no word that"));
        assert_true(sample_noted(account, "#row"));
        embla_account_free(account);
        assert_word(&p, one_table_files[i], 0, "the");
        assert_word(&p, one_table_files[i], 1, "#1"); /* had a space */
        assert_word(&p, one_table_files[i], 2, sample_words[2]);
        assert_word(&p, one_table_files[i], 3, "#3"); /* had none */
        assert_word(&p, one_table_files[i], 4, "#3");
        assert_word(&p, one_table_files[i], 5, "#5"); /* had a tab */
        assert_word(&p, one_table_files[i], 6, "end");
    }
    /* Into GGUF, any bytes. */
    embla_convert_options only = {.tables_only = true};
    embla_account *account = convert(&p, "m.safetensors", "m.gguf", &only);
    assert_true(sample_noted(account, "1 of 7 rows have no word that gguf can hold"));
    embla_account_free(account);
    assert_word(&p, "m.gguf", 1, "two words");
    assert_word(&p, "m.gguf", 5, "a\tb");
    /* A tokenizer beside the source is found by what lies beside it too, .. */
    account = convert(&p, "m.safetensors", "n.safetensors", NULL);
    assert_true(sample_noted(account, "its words are those of vocab.json, beside it"));
    embla_account_free(account);
    assert_int_equal(access(scratch_path(&p.s, "n.vocab.txt"), F_OK), -1);
    /* .. but not by an array, nor from another folder. */
    account = convert(&p, "m.safetensors", "n.npy", NULL);
    assert_true(sample_noted(account, "its words are in "));
    embla_account_free(account);
    assert_word(&p, "n.npy", 1, "two words");
    assert_word(&p, "n.npy", 3, NULL);
    /* Words that came with the file are put beside one that cannot hold them. */
    account = convert(&p, "m.gguf", "k.npy", NULL);
    assert_true(sample_noted(account, "k.vocab.txt"));
    embla_account_free(account);
    assert_word(&p, "k.npy", 1, "two words");
    assert_word(&p, "k.npy", 5, "a\tb");
    assert_word(&p, "k.npy", 3, NULL); /* the GGUF called it [PAD3], which is no word */
    assert_int_equal(unlink(scratch_path(&p.s, "vocab.json")), 0);
    account = convert(&p, "k.npy", "k.safetensors", NULL); /* which has the same words beside it */
    assert_true(sample_noted(account, "k.vocab.txt"));
    embla_account_free(account);
    account = convert(&p, "k.npy", "l.safetensors", NULL);
    embla_account_free(account);
    assert_word(&p, "l.safetensors", 2, sample_words[2]);
    end(&p);
}

static void old_words_beside_a_new_file_are_worth_a_word(void **state)
{
    sample_numbers n;
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    scratch_write(scratch_path(&p.s, "x.vocab.txt"), "a\nb\n", 4);
    embla_account *account = convert(&p, "m.safetensors", "x.npy", NULL);
    assert_true(sample_noted(account, "x.vocab.txt existed before"));
    embla_account_free(account);
    end(&p);
}

static void words_that_do_not_fit_the_rows_are_left_out(void **state)
{
    sample_numbers n;
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    sample_vocab(scratch_path(&p.s, "vocab.json"));
    embla_account *account = convert(&p, "m.safetensors::wpe.weight", "p.vec", NULL);
    assert_true(sample_noted(
        account, "6 words of vocab.json are left out: they do not fit the 5 rows of 'wpe.weight'"));
    embla_account_free(account);
    assert_word(&p, "p.vec", 0, "#0");
    scratch_write(scratch_path(&p.s, "vocab.json"), "{\"a\":0,\"b\":9}", 13);
    account = convert(&p, "m.safetensors", "q.vec", NULL);
    assert_true(sample_noted(account, "1 words of vocab.json are left out: there are only 7 rows"));
    embla_account_free(account);
    assert_word(&p, "q.vec", 0, "a");
    scratch_write(scratch_path(&p.s, "vocab.json"), "{\"a\":0,\"b\":", 11);
    account = convert(&p, "m.safetensors", "r.vec", NULL);
    assert_true(sample_noted(account, "the words are left out, they cannot be read"));
    embla_account_free(account);
    end(&p);
}

/* ---- refusals ---- */

static void what_cannot_be_is_refused_with_advice(void **state)
{
    sample_numbers n;
    static const unsigned char halves[2 * 32 * 2];
    embla_convert_options q8 = {.dtype = EMBLA_Q8_0}, bf16 = {.dtype = EMBLA_BF16},
                          nothing = {.dtype = (embla_dtype)99}, unknown = {.to = "parquet"},
                          llmc = {.to = "llm.c"}, only = {.tables_only = true},
                          i8 = {.dtype = EMBLA_I8}, f8 = {.dtype = EMBLA_F8_E4M3};
    embla_account *account = NULL;
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    refuse(&p, "m.safetensors", "out.bin", NULL, EMBLA_ERR_ARGUMENT, ".safetensors (safetensors)");
    refuse(&p, "m.safetensors", "out", &unknown, EMBLA_ERR_NOT_FOUND, "these are: ");
    refuse(&p, "m.safetensors", "out.npy", &nothing, EMBLA_ERR_ARGUMENT, "no dtype 99");
    refuse(&p, "m.safetensors", "out.vec", &bf16, EMBLA_ERR_UNSUPPORTED,
           "word2vec can hold only f32, not bf16");
    refuse(&p, "m.safetensors", "out.npy", &bf16, EMBLA_ERR_UNSUPPORTED, "convert it to f32");
    refuse(&p, "m.safetensors", "out.safetensors", &q8, EMBLA_ERR_UNSUPPORTED,
           "which safetensors does not have; gguf has Q8_0 (S7)");
    refuse(&p, "m.safetensors", "out", &llmc, EMBLA_ERR_UNSUPPORTED, "'wte'");
    refuse(&p, "m.safetensors", "none/out.npy", NULL, EMBLA_ERR_NOT_FOUND, "none");
    refuse(&p, "m.safetensors::h.0.blob", "out.vec", NULL, EMBLA_ERR_UNSUPPORTED,
           "'h.0.blob' is I32, which cannot be decoded");
    const sample_tensor two[] = {{"wte.weight", "F16", "2,31", halves, 124},
                                 {"a.wte.weight", "F16", "2,31", halves, 124}};
    sample_safetensors(scratch_path(&p.s, "odd.safetensors"), NULL, two, 1);
    refuse(&p, "odd.safetensors", "out.gguf", &q8, EMBLA_ERR_SHAPE,
           "'wte.weight': rows of 31 numbers are not whole blocks of q8_0 (32)");
    const sample_tensor other[] = {{"wte.weight", "F16", "2,31", halves, 124},
                                   {"mask", "BOOL", "2,31", halves, 62}};
    sample_safetensors(scratch_path(&p.s, "other.safetensors"), NULL, other, 2);
    refuse(&p, "other.safetensors", "out.gguf", NULL, EMBLA_ERR_UNSUPPORTED,
           "'mask' is BOOL, which gguf does not have; safetensors has BOOL (G8)");
    embla_account_free(convert(&p, "other.safetensors", "other.gguf", &only));
    const sample_tensor none[] = {{"x", "F16", "2,31", halves, 124},
                                  {"y", "F16", "2,31", halves, 124}};
    sample_safetensors(scratch_path(&p.s, "none.safetensors"), NULL, none, 2);
    refuse(&p, "none.safetensors", "out.npy", NULL, EMBLA_ERR_NOT_FOUND, "FILE::TENSOR");
    refuse(&p, "none.safetensors", "out.safetensors", &only, EMBLA_ERR_NOT_FOUND,
           "nothing to write");
    refuse(&p, "none.safetensors", "out.safetensors", &bf16, EMBLA_ERR_NOT_FOUND,
           "only tables can change their dtype; choose a tensor with 'FILE::TENSOR'");
    embla_account_free(convert(&p, "none.safetensors::y", "y.safetensors", &bf16));
    refuse(
        &p, "m.safetensors", "out.safetensors", &i8, EMBLA_ERR_UNSUPPORTED,
        "i8 needs a separate scale, which no format can store; use q8_0, which has its own scales");
    refuse(&p, "m.safetensors", "out.gguf", &f8, EMBLA_ERR_UNSUPPORTED,
           "F8_E4M3, which gguf does not have; safetensors has F8_E4M3 (G8)");
    refuse(&p, "m.safetensors", "out.npy", &q8, EMBLA_ERR_UNSUPPORTED, "gguf has Q8_0");
    embla_checkpoint *source = sample_open(scratch_path(&p.s, "m.safetensors"));
    assert_status(embla_convert(NULL, "x.npy", NULL, &account), EMBLA_ERR_ARGUMENT);
    assert_status(embla_convert(source, NULL, NULL, &account), EMBLA_ERR_ARGUMENT);
    assert_status(embla_convert(source, "x.npy", NULL, NULL), EMBLA_ERR_ARGUMENT);
    embla_checkpoint_free(source);
    end(&p);
}

static void a_file_that_exists_is_replaced_only_if_asked(void **state)
{
    sample_numbers n;
    embla_convert_options overwrite = {.overwrite = true};
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    scratch_write(scratch_path(&p.s, "out.npy"), "precious", 8);
    refuse(&p, "m.safetensors", "out.npy", NULL, EMBLA_ERR_ARGUMENT,
           "out.npy already exists (8 bytes); choose another name or allow overwriting");
    assert_true(scratch_holds(scratch_path(&p.s, "out.npy"), "precious", 8));
    embla_account_free(convert(&p, "m.safetensors", "out.npy", &overwrite));
    assert_rows(&p, "out.npy", n.tokens, SAMPLE_ROWS, SAMPLE_DIM);
    /* The source itself, while it is open: it stays what it was until the new one is there. */
    overwrite.dtype = EMBLA_F16;
    embla_account_free(convert(&p, "m.safetensors", "m.safetensors", &overwrite));
    assert_bytes(&p, "m.safetensors", "h.0.blob", n.blob, sizeof n.blob);
    /* What is no file is never replaced. */
    assert_int_equal(mkdir(scratch_path(&p.s, "folder.npy"), 0700), 0);
    refuse(&p, "m.safetensors", "folder.npy", &overwrite, EMBLA_ERR_ARGUMENT, "is a folder");
    assert_int_equal(symlink("out.npy", scratch_path(&p.s, "link.npy")), 0);
    refuse(&p, "m.safetensors", "link.npy", &overwrite, EMBLA_ERR_ARGUMENT, "is a symbolic link");
    assert_int_equal(mkfifo(scratch_path(&p.s, "pipe.npy"), 0600), 0);
    refuse(&p, "m.safetensors", "pipe.npy", &overwrite, EMBLA_ERR_ARGUMENT, "a device or a pipe");
    end(&p);
}

static void words_beside_are_not_replaced_unasked_either(void **state)
{
    static const char source[] = "2 2\na 1 2\nb 3 4\n", ours[] = "#embla-vocab 1\nx\ny\nz\n";
    embla_convert_options overwrite = {.overwrite = true};
    (void)state;
    place p = begin();
    scratch_write(scratch_path(&p.s, "m.vec"), source, sizeof source - 1);
    scratch_write(scratch_path(&p.s, "n.vocab.txt"), ours, sizeof ours - 1);
    refuse(&p, "m.vec", "n.npy", NULL, EMBLA_ERR_ARGUMENT, "n.vocab.txt already exists (21 bytes)");
    assert_error_has("allow overwriting");
    assert_true(scratch_holds(scratch_path(&p.s, "n.vocab.txt"), ours, sizeof ours - 1));
    embla_account_free(convert(&p, "m.vec", "n.npy", &overwrite));
    assert_word(&p, "n.npy", 1, "b");
    /* The same words again need no leave. */
    embla_account_free(convert(&p, "m.vec", "n.safetensors", NULL));
    assert_word(&p, "n.safetensors", 1, "b");
    /* What somebody else wrote stays, whatever is asked. */
    scratch_write(scratch_path(&p.s, "o.vocab.txt"), "mine\n", 5);
    refuse(&p, "m.vec", "o.npy", &overwrite, EMBLA_ERR_ARGUMENT,
           "o.vocab.txt exists and was not written by Embla");
    assert_true(scratch_holds(scratch_path(&p.s, "o.vocab.txt"), "mine\n", 5));
    /* A source that is called so is one of the source files. */
    scratch_write(scratch_path(&p.s, "q.vocab.txt"), source, sizeof source - 1);
    refuse(&p, "q.vocab.txt", "q.npy", &overwrite, EMBLA_ERR_ARGUMENT,
           "is one of the source files");
    assert_true(scratch_holds(scratch_path(&p.s, "q.vocab.txt"), source, sizeof source - 1));
    /* A name that is too long for words, though not for the file. */
    char name[256];
    memset(name, 'n', 195);
    memcpy(name + 195, ".npy", 5);
    refuse(&p, "m.vec", name, NULL, EMBLA_ERR_ARGUMENT, "205 bytes; the limit is 200");
    end(&p);
}

/* The rename of the file fails: words are what they were. */
static void words_are_put_back_where_the_file_fails(void **state)
{
    static const char source[] = "2 2\na 1 2\nb 3 4\n", ours[] = "#embla-vocab 1\nx\ny\n";
    (void)state;
    for (int old = 0; old < 2; old++) {
        bool seen = false;
        place p = begin();
        scratch_write(scratch_path(&p.s, "m.vec"), source, sizeof source - 1);
        embla_checkpoint *from = sample_open(scratch_path(&p.s, "m.vec"));
        for (size_t n = 1;; n++) {
            embla_convert_options overwrite = {.overwrite = true};
            embla_account *account = NULL;
            scratch_write(scratch_path(&p.s, "n.npy"), "precious", 8);
            if (old)
                scratch_write(scratch_path(&p.s, "n.vocab.txt"), ours, sizeof ours - 1);
            else
                (void)unlink(scratch_path(&p.s, "n.vocab.txt"));
            embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
            embla_status status =
                embla_convert(from, scratch_path(&p.out, "n.npy"), &overwrite, &account);
            embla_io_fail(0, false, 0);
            embla_account_free(account);
            size_t size = 0;
            unsigned char *words = scratch_read(scratch_path(&p.s, "n.vocab.txt"), &size);
            bool new_file = !scratch_holds(scratch_path(&p.s, "n.npy"), "precious", 8);
            bool new_words = words && strstr((const char *)words, "\na\nb\n");
            bool old_words = old ? words && strcmp((const char *)words, ours) == 0 : !words;
            free(words);
            if (new_file != new_words || new_words == old_words)
                fail_msg("call %zu: the %s file, and %s words", n, new_file ? "new" : "old",
                         new_words ? "new" : "not its");
            seen = seen || (status != EMBLA_OK && new_file); /* the last sync */
            if (status == EMBLA_OK && n > 200) break;        /* it makes fewer */
        }
        assert_true(seen);
        embla_checkpoint_free(from);
        end(&p);
    }
}

/* ---- other formats ---- */

/* 1 layer, 2 heads, 8 channels, 4 positions, 10 tokens in 16 rows. */
static void llm_c_and_safetensors_give_each_other_back(void **state)
{
    enum { C = 8, VP = 16, T = 4 };
    enum {
        NUMBERS = VP * C + T * C + 2 * C + 3 * C * C + 3 * C + C * C + C + 2 * C + 4 * C * C +
                  4 * C + 4 * C * C + C + 2 * C
    };
    static unsigned char file[1024 + 4 * NUMBERS];
    static const int32_t header[] = {20240326, 3, T, 10, 1, 2, C, VP};
    (void)state;
    place p = begin();
    float *numbers = malloc(4 * NUMBERS);
    assert_non_null(numbers);
    check_fill(8, NUMBERS, numbers);
    memcpy(file, header, sizeof header);
    memcpy(file + 1024, numbers, 4 * NUMBERS);
    scratch_write(scratch_path(&p.s, "m.bin"), file, sizeof file);
    embla_account_free(convert(&p, "m.bin", "m.safetensors", NULL));
    assert_rows(&p, "m.safetensors", numbers, VP, C);
    embla_convert_options options = {.to = "llm.c"};
    embla_account_free(convert(&p, "m.safetensors", "back.bin", &options));
    assert_true(scratch_holds(scratch_path(&p.s, "back.bin"), file, sizeof file));
    embla_account_free(convert(&p, "m.bin", "copy.bin", &options));
    assert_true(scratch_holds(scratch_path(&p.s, "copy.bin"), file, sizeof file));
    embla_checkpoint *found = sample_open(scratch_path(&p.s, "m.safetensors"));
    assert_string_equal(embla_checkpoint_text(found, "format"), "pt");
    embla_checkpoint_free(found);
    free(numbers);
    end(&p);
}

/* Columns first and big-endian: rows that do not lie in the file as they are. */
static void an_array_of_columns_is_written_as_rows(void **state)
{
    static const char text[] = "{'descr': '>f4', 'fortran_order': True, 'shape': (3, 2), }";
    static const float rows[] = {1, 4, 2, 5, 3, 6};
    unsigned char file[128 + 24];
    (void)state;
    place p = begin();
    memset(file, ' ', sizeof file);
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(file + 10, text, sizeof text - 1);
    file[127] = '\n';
    for (size_t i = 0; i < 6; i++) {
        uint32_t bits = check_bits_of((float)(i + 1));
        for (size_t b = 0; b < 4; b++)
            file[128 + 4 * i + b] = (unsigned char)(bits >> (24 - 8 * b));
    }
    scratch_write(scratch_path(&p.s, "m.npy"), file, sizeof file);
    embla_account_free(convert(&p, "m.npy", "n.safetensors", NULL));
    assert_rows(&p, "n.safetensors", rows, 3, 2);
    embla_account_free(convert(&p, "m.npy", "n.npy", NULL));
    assert_bytes(&p, "n.npy", "array", rows, sizeof rows);
    end(&p);
}

/* A model that keeps fewer rows than tokens, and a tensor that says which row is whose: what
 * cannot keep that tensor cannot keep the model; what can has words by token. */
static void tokens_that_share_rows_need_their_mapping(void **state)
{
    static const float rows[] = {1, 2, 3, 4, 5, 6};
    static const int32_t rows_of[] = {2, 0, 0, 2, 1, 1};
    static const char words[] = "{\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"e\":4,\"f\":5}";
    static const char *const files[] = {"m.vec", "m.npy", "m.w2v", "m.gguf"};
    (void)state;
    place p = begin();
    scratch there;
    const sample_tensor tensors[] = {{"embeddings", "F32", "3,2", rows, sizeof rows},
                                     {"mapping", "I32", "6", rows_of, sizeof rows_of}};
    sample_safetensors(scratch_path(&p.s, "m.safetensors"), NULL, tensors, 2);
    scratch_write(scratch_path(&p.s, "vocab.json"), words, sizeof words - 1);
    for (size_t i = 0; i < COUNT_OF(files); i++)
        refuse(&p, "m.safetensors", files[i], NULL, EMBLA_ERR_UNSUPPORTED,
               "6 tokens share 3 rows through 'mapping', which");
    assert_error_has("safetensors can");
    scratch_new(&there);
    p.out = there;
    embla_account_free(convert(&p, "m.safetensors", "n.safetensors", NULL));
    scratch here = p.s;
    p.s = there;
    assert_word(&p, "n.safetensors", 5, "f");
    p.s = here;
    scratch_free(&there);
    end(&p);
}

/* Words that are all above the last row are no words of this table. */
static void words_above_the_last_row_alone_are_none(void **state)
{
    static const char *const files[] = {"o.npy", "o.gguf", "o.vec"};
    sample_numbers n;
    embla_convert_options only = {.tables_only = true};
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    scratch_write(scratch_path(&p.s, "vocab.json"), "{\"a\":7,\"b\":9}", 13);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        embla_account *account = convert(&p, "m.safetensors", files[i], &only);
        assert_true(
            sample_noted(account, "2 words of vocab.json are left out: there are only 7 rows"));
        embla_account_free(account);
    }
    assert_int_equal(access(scratch_path(&p.s, "o.vocab.txt"), F_OK), -1);
    end(&p);
}

/* Shards become one file; a head that is stored alone and tied is the table (case 5). */
static void shards_become_one_file_and_a_tied_head_the_table(void **state)
{
    static const char index[] = "{\"weight_map\":{\"norm\":\"a.safetensors\","
                                "\"lm_head.weight\":\"b.safetensors\"}}";
    static const char config[] = "{\"tie_word_embeddings\":true}";
    static const float rows[] = {1, 2, 3, 4}, norm[] = {5, 6};
    (void)state;
    place p = begin();
    const sample_tensor one = {"norm", "F32", "2", norm, sizeof norm};
    const sample_tensor two = {"lm_head.weight", "F32", "2,2", rows, sizeof rows};
    sample_safetensors(scratch_path(&p.s, "a.safetensors"), NULL, &one, 1);
    sample_safetensors(scratch_path(&p.s, "b.safetensors"), NULL, &two, 1);
    scratch_write(scratch_path(&p.s, "model.safetensors.index.json"), index, sizeof index - 1);
    scratch_write(scratch_path(&p.s, "config.json"), config, sizeof config - 1);
    embla_account *account = convert(&p, "", "one.safetensors", NULL);
    assert_int_equal(sample_lines(account), 2);
    embla_account_free(account);
    assert_bytes(&p, "one.safetensors", "norm", norm, sizeof norm);
    assert_bytes(&p, "one.safetensors", "lm_head.weight", rows, sizeof rows);
    account = convert(&p, "one.safetensors", "one.gguf", NULL);
    assert_string_equal(sample_line(account, "lm_head.weight").new_name, "token_embd.weight");
    embla_account_free(account);
    assert_rows(&p, "one.gguf", rows, 2, 2);
    end(&p);
}

/* ---- progress, and a file that is not what was written ---- */

typedef struct {
    int64_t last, calls, stop_at;
    bool verifying;
} watch;

static bool watching(void *context, const char *what, int64_t done, int64_t all)
{
    watch *w = context;
    bool verify = strcmp(what, "verify") == 0;
    assert_true(verify || strcmp(what, "write") == 0);
    if (verify && !w->verifying) w->last = 0;
    w->verifying = verify;
    assert_true(done >= w->last && done <= all && all > 0);
    w->last = done;
    return ++w->calls != w->stop_at;
}

static void progress_runs_from_nothing_to_all_and_can_stop(void **state)
{
    sample_numbers n;
    embla_account *account = NULL;
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    scratch_write(scratch_path(&p.s, "out.npy"), "precious", 8);
    embla_checkpoint *source = sample_open(scratch_path(&p.s, "m.safetensors"));
    for (int64_t stop = 1;; stop++) {
        watch w = {.stop_at = stop};
        embla_convert_options options = {.progress = watching, .context = &w, .overwrite = true};
        embla_status status =
            embla_convert(source, scratch_path(&p.out, "out.npy"), &options, &account);
        if (status == EMBLA_OK) {
            assert_true(stop > 4); /* the start and the end of both */
            assert_true(w.verifying);
            assert_int_equal(w.last, sizeof n.tokens);
            break;
        }
        assert_int_equal(status, EMBLA_ERR_STOPPED);
        assert_error_has("stopped by the caller: ");
        assert_true(scratch_holds(p.out.path, "precious", 8));
        assert_int_equal(scratch_count(&p.s, NULL), 2);
    }
    embla_account_free(account);
    embla_checkpoint_free(source);
    end(&p);
}

/* Changes a byte of the temporary file once it is written, before it is read back. */
typedef struct {
    scratch *s;
    bool done;
} spoiler;

static void spoil_one(const scratch *s, const char *name)
{
    char path[SCRATCH_PATH];
    struct stat found;
    unsigned char byte;
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &found) == 0);
    assert_int_equal(pread(fd, &byte, 1, found.st_size - 40), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, found.st_size - 40), 1);
    assert_int_equal(close(fd), 0);
}

static bool spoil(void *context, const char *what, int64_t done, int64_t all)
{
    spoiler *sp = context;
    (void)done, (void)all;
    if (strcmp(what, "verify") == 0 && !sp->done) {
        assert_int_equal(scratch_each(sp->s, spoil_one, ".tmp."), 1);
        sp->done = true;
    }
    return true;
}

static void a_byte_that_is_not_what_was_written_is_noticed(void **state)
{
    sample_numbers n;
    static const char *const names[] = {"out.npy", "out.safetensors", "out.gguf",
                                        "out.w2v", "out.vec",         "out.txt"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        place p = begin();
        embla_account *account = NULL;
        spoiler sp = {.s = &p.s};
        embla_convert_options options = {.progress = spoil,
                                         .context = &sp,
                                         .overwrite = true,
                                         .tables_only = true,
                                         .dtype = i < 3 ? EMBLA_F16 : (embla_dtype)0};
        sample_model(scratch_path(&p.s, "m.safetensors"), &n);
        scratch_write(scratch_path(&p.s, names[i]), "precious", 8);
        embla_checkpoint *source = sample_open(scratch_path(&p.s, "m.safetensors"));
        assert_status(embla_convert(source, scratch_path(&p.out, names[i]), &options, &account),
                      EMBLA_ERR_IO);
        assert_error_has("the written file failed its check");
        assert_true(scratch_holds(p.out.path, "precious", 8));
        embla_checkpoint_free(source);
        end(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_passes_through_every_pair_of_formats),
        cmocka_unit_test(the_same_bytes_have_the_same_checksum_in_every_format),
        cmocka_unit_test(tensors_that_are_no_tables_keep_their_bytes),
        cmocka_unit_test(to_gguf_tables_get_its_names_and_back_they_keep_them),
        cmocka_unit_test(one_table_is_taken_from_a_model_and_the_rest_is_named),
        cmocka_unit_test(words_go_along_in_every_way_there_is),
        cmocka_unit_test(old_words_beside_a_new_file_are_worth_a_word),
        cmocka_unit_test(words_that_do_not_fit_the_rows_are_left_out),
        cmocka_unit_test(what_cannot_be_is_refused_with_advice),
        cmocka_unit_test(a_file_that_exists_is_replaced_only_if_asked),
        cmocka_unit_test(words_beside_are_not_replaced_unasked_either),
        cmocka_unit_test(llm_c_and_safetensors_give_each_other_back),
        cmocka_unit_test(an_array_of_columns_is_written_as_rows),
        cmocka_unit_test(words_are_put_back_where_the_file_fails),
        cmocka_unit_test(tokens_that_share_rows_need_their_mapping),
        cmocka_unit_test(words_above_the_last_row_alone_are_none),
        cmocka_unit_test(shards_become_one_file_and_a_tied_head_the_table),
        cmocka_unit_test(progress_runs_from_nothing_to_all_and_can_stop),
        cmocka_unit_test(a_byte_that_is_not_what_was_written_is_noticed),
    };
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
