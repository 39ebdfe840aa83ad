/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation and every call of the system fails, one after the other, once or from then
 * on, in everything that reads or writes a file: open, table and lookup, vocabulary, convert.
 *
 * Each failure must end in a status with a sentence, give back all memory, descriptors and
 * maps, leave the old output whole and no temporary file; and the same call must then go
 * well. What the JSON library allocates by itself is failed in test_json_memory.c.
 */
#include <errno.h>

#include "convert_files.h"

static scratch folder;
static char source[SCRATCH_PATH], out[SCRATCH_PATH];
static const embla_convert_options *how;

/* ---- what is tried ---- */

static embla_status open_it(void)
{
    embla_checkpoint *checkpoint = NULL;
    embla_status status = embla_checkpoint_open(source, NULL, &checkpoint);
    if (status != EMBLA_OK) assert_null(checkpoint);
    embla_checkpoint_free(checkpoint);
    return status;
}

static embla_status look_up(void)
{
    const int32_t tokens[] = {0, 6, 3};
    static float rows[3 * SAMPLE_DIM];
    embla_checkpoint *checkpoint = NULL;
    embla_table *table = NULL;
    embla_status status = embla_checkpoint_open(source, NULL, &checkpoint);
    if (status == EMBLA_OK) status = embla_table_open(checkpoint, NULL, NULL, &table);
    if (status == EMBLA_OK) status = embla_lookup(table, tokens, 3, NULL, rows);
    embla_table_free(table);
    embla_checkpoint_free(checkpoint);
    return status;
}

static embla_status read_words(void)
{
    embla_checkpoint *checkpoint = NULL;
    embla_vocab *vocab = NULL;
    int32_t token = -1;
    embla_status status = embla_checkpoint_open(source, NULL, &checkpoint);
    if (status == EMBLA_OK) status = embla_vocab_open(checkpoint, &vocab);
    if (status == EMBLA_OK) status = embla_vocab_find(vocab, "end", 3, &token);
    if (status == EMBLA_OK) assert_int_equal(token, 6);
    embla_vocab_free(vocab);
    embla_checkpoint_free(checkpoint);
    return status;
}

static embla_status compare_head(void)
{
    embla_checkpoint *checkpoint = NULL;
    embla_tie tie;
    embla_status status = embla_checkpoint_open(source, NULL, &checkpoint);
    if (status == EMBLA_OK) status = embla_checkpoint_tie(checkpoint, 0, &tie);
    embla_checkpoint_free(checkpoint);
    return status;
}

static embla_status convert_it(void)
{
    embla_checkpoint *checkpoint = NULL;
    embla_account *account = NULL;
    embla_status status = embla_checkpoint_open(source, NULL, &checkpoint);
    if (status == EMBLA_OK) status = embla_convert(checkpoint, out, how, &account);
    embla_account_free(account);
    embla_checkpoint_free(checkpoint);
    return status;
}

/* A table in memory with words, as a file. */
static embla_status write_table(void)
{
    static const float rows[2 * SAMPLE_DIM] = {1, 2, 3};
    embla_table *table = NULL;
    embla_vocab *vocab = NULL;
    embla_checkpoint *checkpoint = NULL;
    embla_account *account = NULL;
    embla_status status = embla_vocab_open_file(source, &vocab);
    if (status == EMBLA_OK)
        status = embla_table_view(
            &(embla_table_layout){.dtype = EMBLA_F32, .rows = 2, .dim = SAMPLE_DIM}, rows,
            sizeof rows, NULL, &table);
    if (status == EMBLA_OK) status = embla_checkpoint_view(table, vocab, &checkpoint);
    if (status == EMBLA_OK) status = embla_convert(checkpoint, out, how, &account);
    embla_account_free(account);
    embla_checkpoint_free(checkpoint);
    embla_vocab_free(vocab);
    embla_table_free(table);
    return status;
}

/* ---- how many calls there are to fail ---- */

enum { MANY = 1 << 20 };

/* Calls that work makes: of so many that may go well, how many are left afterwards? */
static size_t count_allocations(embla_status (*work)(void))
{
    size_t left = 0;
    void *memory = NULL;
    embla_mem_fail(MANY, false);
    assert_ok(work());
    while (embla_mem_new(1, "counting", &memory) == EMBLA_OK) {
        embla_mem_free(memory, 1);
        left++;
    }
    embla_mem_fail(0, false);
    return MANY - 1 - left;
}

static size_t count_calls(embla_status (*work)(void))
{
    size_t left = 0;
    embla_file_facts found;
    embla_io_fail(MANY, false, EMBLA_SYSTEM_OTHER);
    assert_ok(work());
    while (embla_io_facts(STDERR_FILENO, "counting", &found) == EMBLA_OK) left++;
    embla_io_fail(0, false, 0);
    return MANY - 1 - left;
}

/* ---- what must hold after each ---- */

typedef struct {
    unsigned char *bytes[2]; /* of the output: before, and as it will be; NULL: none */
    size_t count[2];
    size_t files, memory;
} before;

static before look_around(embla_status (*work)(void))
{
    before b = {.files = embla_io_live(), .memory = embla_mem_live()};
    if (work == convert_it) {
        assert_ok(work());
        b.bytes[1] = scratch_read(out, &b.count[1]);
        scratch_write(out, "precious", 8);
        b.bytes[0] = scratch_read(out, &b.count[0]);
    }
    return b;
}

static void look_again(const before *b, embla_status (*work)(void), size_t n, embla_status status)
{
    bool done = false;
    embla_mem_fail(0, false);
    embla_io_fail(0, false, 0);
    if (status != EMBLA_OK) assert_true(embla_error()[0] != '\0');
    if (embla_io_live() != b->files) fail_msg("call %zu: a descriptor or map is lost", n);
    if (embla_mem_live() != b->memory) fail_msg("call %zu: memory is lost", n);
    if (scratch_count(&folder, ".tmp.") != 0) fail_msg("call %zu leaves a temporary file", n);
    if (work != convert_it) return;
    done = scratch_holds(out, b->bytes[1], b->count[1]);
    if (!done && !scratch_holds(out, b->bytes[0], b->count[0]))
        fail_msg("call %zu: the output is neither the old nor the new one", n);
    if (status == EMBLA_OK) assert_true(done);
    if (done) scratch_write(out, "precious", 8);
}

static void forget(before *b)
{
    free(b->bytes[0]);
    free(b->bytes[1]);
}

/* Once it fails no more, it goes well. Each eighth time is often enough. */
static void again(const before *b, embla_status (*work)(void), size_t n)
{
    if (n % 8 != 0) return;
    assert_ok(work());
    look_again(b, work, n, EMBLA_OK);
}

static void fail_allocations(embla_status (*work)(void), const char *name)
{
    before b = look_around(work);
    size_t all = count_allocations(work);
    if (work == convert_it) scratch_write(out, "precious", 8);
    for (int forever = 0; forever < 2; forever++) {
        for (size_t n = 1; n <= all; n++) {
            embla_mem_fail(n, forever);
            embla_status status = work();
            look_again(&b, work, n, status);
            if (status != EMBLA_ERR_MEMORY)
                fail_msg("%s: allocation %zu of %zu fails, and the status is %s: %s", name, n, all,
                         embla_status_name(status), embla_error());
            again(&b, work, n);
        }
    }
    forget(&b);
}

/* Some calls may fail without harm: a name tried first, a file that need not be there. */
static void fail_calls(embla_status (*work)(void), const char *name)
{
    static const embla_system_error errors[] = {EMBLA_SYSTEM_OTHER, EMBLA_SYSTEM_NO_SPACE,
                                                EMBLA_SYSTEM_REFUSED, EMBLA_SYSTEM_INTERRUPTED};
    before b = look_around(work);
    size_t all = count_calls(work), failed = 0, tried = 0;
    if (work == convert_it) scratch_write(out, "precious", 8);
    for (size_t e = 0; e < COUNT_OF(errors); e++) {
        /* A call that is interrupted is taken up again: for ever would be for ever. */
        for (int forever = 0; forever < (errors[e] == EMBLA_SYSTEM_INTERRUPTED ? 1 : 2);
             forever++) {
            for (size_t n = 1; n <= all; n++) {
                embla_io_fail(n, forever, errors[e]);
                embla_status status = work();
                look_again(&b, work, n, status);
                if (status != EMBLA_OK && status != EMBLA_ERR_IO)
                    fail_msg("%s: call %zu of %zu fails, and the status is %s: %s", name, n, all,
                             embla_status_name(status), embla_error());
                if (forever && status == EMBLA_OK)
                    fail_msg("%s: all calls from %zu of %zu on fail, and all is well", name, n,
                             all);
                failed += status != EMBLA_OK;
                tried++;
                again(&b, work, n);
            }
        }
    }
    print_message("%s: %zu calls, %zu failures, %zu reported\n", name, all, tried, failed);
    assert_true(failed > 0);
    forget(&b);
}

/* ---- the files ---- */

static sample_numbers numbers;

/* A model's folder: safetensors, config.json, vocab.json; and the same in other formats. */
static int make_files(void **state)
{
    static const char config[] = "{\"model_type\":\"gpt2\",\"n_embd\":32,"
                                 "\"architectures\":[\"GPT2LMHeadModel\"]}";
    static const char *const formats[] = {"m.gguf", "m.vec", "m.txt", "m.w2v", "m.npy"};
    embla_convert_options options = {.tables_only = true};
    (void)state;
    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0) /* thousands of syncs */
        (void)setenv("TMPDIR", "/dev/shm", 0);
    scratch_new(&folder);
    sample_model(scratch_path(&folder, "m.safetensors"), &numbers);
    sample_vocab(scratch_path(&folder, "vocab.json"));
    scratch_write(scratch_path(&folder, "config.json"), config, sizeof config - 1);
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        embla_account *account = NULL;
        embla_checkpoint *checkpoint = sample_open(scratch_path(&folder, "m.safetensors"));
        assert_ok(embla_convert(checkpoint, scratch_path(&folder, formats[i]), &options, &account));
        embla_account_free(account);
        embla_checkpoint_free(checkpoint);
    }
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    scratch_free(&folder);
    return 0;
}

static void from(const char *name)
{
    snprintf(source, sizeof source, "%s/%s", folder.folder, name);
}

static void to(const char *name, const embla_convert_options *options)
{
    snprintf(out, sizeof out, "%s/%s", folder.folder, name);
    how = options;
}

static const char *const files[] = {
    "m.safetensors", "m.gguf", "m.npy", "m.vec", "m.txt", "m.w2v", "m.safetensors::lm_head.weight"};

/* Two shards, an index and a config.json in a folder of their own. */
static void make_shards(scratch *s)
{
    static const char index[] = "{\"metadata\":{\"total_size\":1120},\"weight_map\":{"
                                "\"wte.weight\":\"a.safetensors\",\"lm_head.weight\":"
                                "\"b.safetensors\",\"norm\":\"b.safetensors\"}}";
    static const char config[] = "{\"tie_word_embeddings\":false}";
    const sample_tensor one = {"wte.weight", "F32", "4,32", numbers.tokens, 512};
    const sample_tensor two[] = {{"lm_head.weight", "F32", "4,32", numbers.head, 512},
                                 {"norm", "F32", "24", numbers.norm, 96}};
    scratch_new(s);
    sample_safetensors(scratch_path(s, "a.safetensors"), NULL, &one, 1);
    sample_safetensors(scratch_path(s, "b.safetensors"), NULL, two, 2);
    scratch_write(scratch_path(s, "config.json"), config, sizeof config - 1);
    scratch_write(scratch_path(s, "model.safetensors.index.json"), index, sizeof index - 1);
    snprintf(source, sizeof source, "%s", s->folder);
}

/* ---- the tests ---- */

static void opening_survives_every_failure(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        from(files[i]);
        fail_allocations(open_it, files[i]);
        fail_calls(open_it, files[i]);
    }
}

static void opening_shards_survives_every_failure(void **state)
{
    scratch s;
    (void)state;
    make_shards(&s);
    fail_allocations(open_it, "shards");
    fail_calls(open_it, "shards");
    fail_allocations(compare_head, "shards, compared");
    fail_calls(compare_head, "shards, compared");
    scratch_free(&s);
}

static void lookup_survives_every_failure(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        from(files[i]);
        fail_allocations(look_up, files[i]);
        fail_calls(look_up, files[i]);
    }
}

static void words_survive_every_failure(void **state)
{
    static const char *const with_words[] = {"m.safetensors", "m.gguf", "m.vec", "m.txt", "m.w2v"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(with_words); i++) {
        from(with_words[i]);
        fail_allocations(read_words, with_words[i]);
        fail_calls(read_words, with_words[i]);
    }
}

static void converting_survives_every_failure(void **state)
{
    static const embla_convert_options plain = {.overwrite = true, .tables_only = true},
                                       bf16 = {.overwrite = true, .dtype = EMBLA_BF16},
                                       q8 = {.overwrite = true,
                                             .dtype = EMBLA_Q8_0,
                                             .tables_only = true};
    static const struct {
        const char *from, *to;
        const embla_convert_options *how;
    } pairs[] = {{"m.safetensors", "o.safetensors", &bf16},
                 {"m.safetensors", "o.gguf", &q8},
                 {"m.gguf", "o2.gguf", &plain},
                 {"m.gguf", "o.npy", &plain},
                 {"m.safetensors", "o.vec", &plain},
                 {"m.vec", "o.w2v", &plain},
                 {"m.w2v", "o.txt", &plain},
                 {"m.npy", "o3.safetensors", &plain}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        char name[128];
        snprintf(name, sizeof name, "%s to %s", pairs[i].from, pairs[i].to);
        from(pairs[i].from);
        to(pairs[i].to, pairs[i].how);
        fail_allocations(convert_it, name);
        fail_calls(convert_it, name);
    }
}

static void writing_a_table_in_memory_survives_every_failure(void **state)
{
    static const embla_convert_options options = {.overwrite = true};
    (void)state;
    scratch_write(scratch_path(&folder, "two.txt"), "a\nb\n", 4);
    from("two.txt");
    to("memory.safetensors", &options);
    assert_ok(write_table()); /* its words are beside it from now on */
    fail_allocations(write_table, "a table in memory");
    fail_calls(write_table, "a table in memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_survives_every_failure),
        cmocka_unit_test(opening_shards_survives_every_failure),
        cmocka_unit_test(lookup_survives_every_failure),
        cmocka_unit_test(words_survive_every_failure),
        cmocka_unit_test(converting_survives_every_failure),
        cmocka_unit_test(writing_a_table_in_memory_survives_every_failure),
    };
    return cmocka_run_group_tests_name("faults", tests, make_files, remove_files);
}
