/* SPDX-License-Identifier: Apache-2.0 */
/* Twice the input costs at most 2.5 times the work: rows of nearly one direction, prompts, names of
 * tensors, vocabularies. Work is counted where the code counts it; elsewhere it is the CPU time of
 * this process, the least of three runs, so that busy neighbours do not change it much.
 */
#include "toy.h"

#include <sys/resource.h>

#include "core/speak.h"
#include "see/alike.h"
#include "slow.h"
#include "tokenizer/tokenizer.h"

/* What main.c has for the program. */
const cli_verb *const cli_verbs[] = {NULL};
const cli_option cli_global_options[] = {{.name = NULL}};

enum { RUNS = 3, TRIES = 5 };
#define MOST 2.5

static double cpu_seconds(void)
{
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static double least_seconds(void (*run)(const char *path), const char *path)
{
    double least = 0;
    for (int i = 0; i < RUNS; i++) {
        double before = cpu_seconds();
        run(path);
        double spent = cpu_seconds() - before;
        if (i == 0 || spent < least) least = spent;
    }
    return least;
}

/* make(path, size) writes an input, run(path) uses it. */
static void assert_growth(void (*make)(const char *path, size_t size),
                          void (*run)(const char *path), size_t size)
{
    scratch one, two;
    double ratio = 0;
    scratch_new(&one);
    two = one;
    make(scratch_path(&one, "one"), size);
    make(scratch_path(&two, "two"), 2 * size);
    for (int i = 0; i < TRIES && (i == 0 || ratio > MOST); i++) {
        double small = least_seconds(run, one.path), large = least_seconds(run, two.path);
        ratio = large / small;
        print_message("%zu: %.3f s, %zu: %.3f s, %.2f times\n", size, small, 2 * size, large,
                      ratio);
    }
    assert_true(ratio <= MOST);
    scratch_free(&one);
}

/* ---- rows of nearly one direction ---- */

static embla_alike find_alike(float *values, int64_t rows, size_t dim)
{
    embla_table *table = NULL;
    embla_alike a;
    float *row = malloc(dim * sizeof *row);
    assert_non_null(row);
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = rows, .dim = dim},
                               values, (size_t)rows * dim * sizeof *values, NULL, &table));
    assert_ok(embla_alike_new(table, 0.999999, &a));
    for (int64_t i = 0; i < rows; i++) {
        bool finite = embla_alike_read(&a, i, row);
        embla_alike_note(&a, i, row, finite);
    }
    a.threads = 2;
    assert_ok(embla_alike_find(&a));
    free(row);
    embla_table_free(table);
    return a;
}

/* One direction and a little of another, different for each row: no two rows are alike, but only
 * a comparison shows it. */
static void rows_of_nearly_one_direction_take_no_square(void **state)
{
    enum { DIM = 256 };
    static const int64_t rows[] = {4096, 8192};
    int64_t looked[2];
    (void)state;
    float *values = malloc((size_t)rows[1] * DIM * sizeof *values);
    assert_non_null(values);
    check_fill(43, (size_t)rows[1] * DIM, values);
    for (size_t i = 0; i < (size_t)rows[1] * DIM; i++) values[i] = 1.0f + 0.012f * values[i];
    for (int i = 0; i < 2; i++) {
        embla_alike a = find_alike(values, rows[i], DIM);
        looked[i] = a.looked;
        /* no silent limit: nearly all rows after the first thousand are counted */
        assert_in_range(a.uncertain, rows[i] - 3 * EMBLA_ALIKE_COMPARED, rows[i]);
        embla_alike_free(&a);
    }
    print_message("%" PRId64 " rows: %" PRId64 ", %" PRId64 " rows: %" PRId64 "\n", rows[0],
                  looked[0], rows[1], looked[1]);
    assert_true((double)looked[1] <= MOST * (double)looked[0]);
    free(values);
}

/* ---- prompts ---- */

enum { WORDS = 3 + 9 + 27 + 81 + 243 }; /* all of one to five letters */

/* All words of one to five of the letters a, b, c. The letters come first; the others follow in
 * an order that has nothing to do with their length. */
static embla_vocab *words_of_three_letters(void)
{
    char words[WORDS][8] = {"a", "b", "c"};
    toy_bytes text = {0};
    uint64_t seed = 5;
    embla_vocab *vocab = NULL;
    scratch s;
    for (int i = 3; i < WORDS; i++) {
        memcpy(words[i], words[i / 3 - 1], 8);
        words[i][strlen(words[i])] = (char)('a' + i % 3);
    }
    for (int i = WORDS - 1; i > 3; i--) {
        int other = 3 + (int)check_below(&seed, (uint64_t)i - 2);
        char word[8];
        memcpy(word, words[i], 8);
        memcpy(words[i], words[other], 8);
        memcpy(words[other], word, 8);
    }
    for (int i = 0; i < WORDS; i++) {
        toy_put(&text, words[i], strlen(words[i]));
        toy_put(&text, "\n", 1);
    }
    scratch_new(&s);
    scratch_write(scratch_path(&s, "vocab.txt"), text.bytes, text.used);
    assert_ok(embla_vocab_open_file(s.path, &vocab));
    free(text.bytes);
    scratch_free(&s);
    return vocab;
}

static void write_letters(char *text, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) text[i] = (char)('a' + check_below(&seed, 3));
    text[count] = '\0';
}

static int32_t word_of_two(const embla_vocab *vocab, int32_t a, int32_t b)
{
    char both[32];
    size_t first, second;
    int32_t token;
    const char *left = embla_vocab_word(vocab, a, &first);
    const char *right = embla_vocab_word(vocab, b, &second);
    memcpy(both, left, first);
    memcpy(both + first, right, second);
    return embla_vocab_find(vocab, both, first + second, &token) == EMBLA_OK ? token : INT32_MAX;
}

/* The definition: the leftmost pair with the lowest token, again and again. */
static size_t merge_plainly(const embla_vocab *vocab, const char *text, int32_t *tokens)
{
    size_t count = strlen(text);
    for (size_t i = 0; i < count; i++) tokens[i] = text[i] - 'a';
    for (;;) {
        size_t best = 0;
        int32_t lowest = INT32_MAX;
        for (size_t i = 0; i + 1 < count; i++) {
            int32_t token = word_of_two(vocab, tokens[i], tokens[i + 1]);
            if (token < lowest) lowest = token, best = i;
        }
        if (lowest == INT32_MAX) return count;
        tokens[best] = lowest;
        for (size_t i = best + 1; i + 1 < count; i++) tokens[i] = tokens[i + 1];
        count--;
    }
}

static void words_alone_are_merged_by_the_definition(void **state)
{
    embla_vocab *vocab = words_of_three_letters();
    embla_tokenizer *tokenizer = NULL;
    embla_tokenized *e = NULL;
    (void)state;
    assert_ok(embla_tokenizer_new_words(vocab, &tokenizer));
    assert_ok(embla_tokenized_new(tokenizer, &e));
    for (uint64_t n = 1; n < 120; n++) {
        char text[128];
        int32_t wanted[128];
        write_letters(text, n, 1000 + n);
        size_t plain = merge_plainly(vocab, text, wanted);
        assert_ok(embla_tokenize(e, text, n, NULL));
        assert_int_equal(embla_tokenized_count(e), plain);
        assert_memory_equal(embla_tokenized_tokens(e), wanted, plain * sizeof *wanted);
    }
    embla_tokenized_free(e);
    embla_tokenizer_free(tokenizer);
    embla_vocab_free(vocab);
}

static embla_tokenizer *letters;

static void make_prompt(const char *path, size_t size)
{
    char *text = malloc(size + 1);
    assert_non_null(text);
    write_letters(text, size, 7);
    scratch_write(path, text, size);
    free(text);
}

static void read_prompt(const char *path)
{
    cli_speaker speaker;
    embla_tokenized *e = NULL;
    size_t bytes = 0, count = 0;
    int32_t *tokens = NULL;
    unsigned char *text = scratch_read(path, &bytes);
    assert_non_null(text);
    assert_ok(embla_tokenized_new(letters, &e));
    cli_speaker_of_tokenizer(letters, e, WORDS, &speaker);
    assert_int_equal(cli_speaker_prompt(&speaker, (const char *)text, &tokens, &count), CLI_DONE);
    assert_in_range(count, bytes / 5, bytes / 2);
    embla_tokenized_free(e);
    free(tokens);
    free(text);
}

static void a_longer_prompt_takes_no_square(void **state)
{
    (void)state;
    embla_vocab *vocab = words_of_three_letters();
    assert_ok(embla_tokenizer_new_words(vocab, &letters));
    assert_growth(make_prompt, read_prompt, (size_t)steps_of(100000));
    embla_tokenizer_free(letters);
    embla_vocab_free(vocab);
}

/* ---- names of tensors ---- */

static void make_tensors(const char *path, size_t count)
{
    char(*names)[64] = calloc(count, sizeof *names);
    toy_tensor *tensors = calloc(count, sizeof *tensors);
    assert_true(names && tensors);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof names[i], "layers.%zu.attn.%zu.weight", i / 7, i % 7);
        tensors[i] = (toy_tensor){names[i], 1, 0, 1};
    }
    toy_safetensors(path, tensors, count);
    free(tensors);
    free(names);
}

static void open_tensors(const char *path)
{
    embla_checkpoint *cp = NULL;
    size_t count;
    assert_ok(embla_checkpoint_open(path, NULL, &cp));
    const embla_tensor *tensors = embla_checkpoint_tensors(cp, &count);
    assert_true(tensors && count > 0);
    embla_checkpoint_free(cp);
}

static void more_tensors_take_no_square(void **state)
{
    (void)state;
    assert_growth(make_tensors, open_tensors, (size_t)steps_of(40000));
}

/* ---- vocabularies ---- */

static void make_words(const char *path, size_t count)
{
    toy_bytes text = {0};
    char line[64];
    for (size_t i = 0; i < count; i++) {
        uint64_t seed = i;
        int n = snprintf(line, sizeof line, "%s\"%" PRIx64 "\":%zu", i > 0 ? "," : "{",
                         check_next(&seed), i);
        toy_put(&text, line, (size_t)n);
    }
    toy_put(&text, "}", 1);
    scratch_write(path, text.bytes, text.used);
    free(text.bytes);
}

static void open_words(const char *path)
{
    embla_vocab *vocab = NULL;
    int32_t token;
    assert_ok(embla_vocab_open_file(path, &vocab));
    assert_status(embla_vocab_find(vocab, "no such word", 12, &token), EMBLA_ERR_NOT_FOUND);
    embla_vocab_free(vocab);
}

static void more_words_take_no_square(void **state)
{
    (void)state;
    assert_growth(make_words, open_words, (size_t)steps_of(400000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_nearly_one_direction_take_no_square),
        cmocka_unit_test(words_alone_are_merged_by_the_definition),
        cmocka_unit_test(a_longer_prompt_takes_no_square),
        cmocka_unit_test(more_tensors_take_no_square),
        cmocka_unit_test(more_words_take_no_square),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
