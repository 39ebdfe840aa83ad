/* SPDX-License-Identifier: Apache-2.0 */
/* All words of real files, compared with those that tests/peers/vocab.py reads with Python's
 * own means: JSON, text, llama2.c, SentencePiece, GGUF. EMBLA_DATA is where the files are.
 */
#include "vocab_bytes.h"

#include <time.h>

#include "scratch.h"

static const struct {
    const char *kind, *file;
    int64_t count, end;
} real[] = {
    {"json", "tokenizers/gpt2/tokenizer.json", 50257, 50257},
    {"json", "tokenizers/gpt2/vocab.json", 50257, 50257},
    {"json", "tokenizers/bert-base-uncased/tokenizer.json", 30522, 30522},
    {"text", "tokenizers/bert-base-uncased/vocab.txt", 30522, 30522},
    {"json", "tokenizers/qwen2.5/tokenizer.json", 151665, 151665},
    {"json", "tokenizers/albert-base-v2/tokenizer.json.xz", 30000, 30000},
    {"json", "tokenizers/bert-base-cased/tokenizer.json.xz", 28996, 28996},
    {"json", "tokenizers/clip/tokenizer.json.xz", 49408, 49408},
    {"json", "tokenizers/falcon-7b/tokenizer.json.xz", 65024, 65024},
    {"json", "tokenizers/marian-nmt/tokenizer.json.xz", 32000, 32000},
    {"json", "tokenizers/modernbert-base/tokenizer.json.xz", 50368, 50368},
    {"json", "tokenizers/phi-3-mini/tokenizer.json.xz", 32011, 32011},
    {"json", "tokenizers/roberta-base/tokenizer.json.xz", 50265, 50265},
    {"json", "tokenizers/t5-small/tokenizer.json.xz", 32100, 32100},
    {"json", "tokenizers/xlmr-shape/tokenizer.json.xz", 32101, 32101},
    {"json", "model2vec-mini/tokenizer.json", 29528, 29528},
    {"json", "model2vec-mini/vocab-quantized/tokenizer.json", 29524, 29524},
    {"json", "use-lite-8k/vocab.json", 8000, 8000},
    {"text", "names/names.txt", 32033, 32033},
    {"llama2c", "stories260k/tok512.bin", 512, 512},
    {"sentencepiece", "tokenizers/sentencepiece/spiece.model", 30000, 30000},
    {"sentencepiece", "tokenizers/sentencepiece/test_sentencepiece.model", 1000, 1000},
    {"sentencepiece", "tokenizers/sentencepiece/test_sentencepiece_bpe.model", 1000, 1000},
    {"sentencepiece", "tokenizers/sentencepiece/test_sentencepiece_with_bytefallback.model", 2000,
     2000},
    {"gguf", "gguf-vocab/ggml-vocab-gpt-2.gguf", 50257, 50257},
    {"gguf", "gguf-vocab/ggml-vocab-bert-bge.gguf", 30522, 30522},
    {"gguf", "gguf-vocab/ggml-vocab-phi-3.gguf", 32064, 32064},
};

/* The path of a real file, unpacked to the folder if need be. */
static void path_of(scratch *s, const char *file, char out[SCRATCH_PATH])
{
    size_t length = strlen(file);
    (void)snprintf(out, SCRATCH_PATH, "%s/%s", getenv("EMBLA_DATA"), file);
    if (strcmp(file + length - 3, ".xz") != 0) return;
    char command[3 * SCRATCH_PATH];
    (void)snprintf(command, sizeof command, "xz -dc '%s' > '%s'", out,
                   scratch_path(s, "unpacked.json"));
    if (system(command) != 0) fail_msg("failed: %s", command);
    (void)snprintf(out, SCRATCH_PATH, "%s", s->path);
}

/* Compares every word with what the peer wrote: number, length, bytes. */
static void compare(const embla_vocab *vocab, const unsigned char *bytes, size_t size)
{
    size_t at = 0, seen = 0;
    for (; at < size; seen++) {
        uint32_t number, length;
        memcpy(&number, bytes + at, 4);
        memcpy(&length, bytes + at + 4, 4);
        const char *text = (const char *)bytes + at + 8;
        assert_word_bytes(vocab, (int32_t)number, text, length);
        int32_t found = -1;
        size_t same_length = 0;
        assert_ok(embla_vocab_find(vocab, text, length, &found));
        assert_true(found >= 0 && (uint32_t)found <= number);
        const char *same = embla_vocab_word(vocab, found, &same_length);
        assert_true(same_length == length && memcmp(same, text, length) == 0);
        at += 8 + length;
    }
    assert_int_equal(at, size);
    assert_int_equal(seen, embla_vocab_count(vocab));
}

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void words_of_real_files_are_those_that_python_reads(void **state)
{
    static const char python[] = "/usr/bin/python3";
    char path[SCRATCH_PATH], command[4 * SCRATCH_PATH];
    scratch s;
    (void)state;
    if (!getenv("EMBLA_DATA") || access(python, X_OK) != 0) {
        print_message("EMBLA_DATA is not set, or there is no %s\n", python);
        skip();
    }
    scratch_new(&s);
    for (size_t i = 0; i < COUNT_OF(real); i++) {
        embla_vocab *vocab = NULL;
        size_t size = 0;
        path_of(&s, real[i].file, path);
        double begin = seconds();
        assert_ok(embla_vocab_open_file(path, &vocab));
        print_message("%s: %.0f ms\n", real[i].file, (seconds() - begin) * 1e3);
        assert_int_equal(embla_vocab_count(vocab), real[i].count);
        assert_int_equal(embla_vocab_end(vocab), real[i].end);
        (void)snprintf(command, sizeof command, "%s '%s/peers/vocab.py' %s '%s' '%s'", python,
                       TESTS_FOLDER, real[i].kind, path, scratch_path(&s, "words"));
        if (system(command) != 0) fail_msg("failed: %s", command);
        unsigned char *bytes = scratch_read(scratch_path(&s, "words"), &size);
        compare(vocab, bytes, size);
        free(bytes);
        embla_vocab_free(vocab);
    }
    scratch_free(&s);
}

static void some_words_of_real_files(void **state)
{
    static const struct {
        const char *file, *word;
        int32_t token;
    } words[] = {{"stories260k/tok512.bin", " he", 281},
                 {"stories260k/tok512.bin", "<0x0A>", 13},
                 {"tokenizers/gpt2/vocab.json", " the", 262},
                 {"tokenizers/gpt2/tokenizer.json", "<|endoftext|>", 50256},
                 {"tokenizers/qwen2.5/tokenizer.json", "<|endoftext|>", 151643},
                 {"tokenizers/bert-base-uncased/vocab.txt", "[CLS]", 101},
                 {"use-lite-8k/vocab.json", " the", 9},
                 {"gguf-vocab/ggml-vocab-phi-3.gguf", "<|end|>", 32007}};
    char path[SCRATCH_PATH];
    (void)state;
    if (!getenv("EMBLA_DATA")) {
        print_message("EMBLA_DATA is not set\n");
        skip();
    }
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        embla_vocab *vocab = NULL;
        (void)snprintf(path, sizeof path, "%s/%s", getenv("EMBLA_DATA"), words[i].file);
        assert_ok(embla_vocab_open_file(path, &vocab));
        assert_found(vocab, words[i].word, words[i].token);
        assert_string_equal(embla_vocab_source(vocab), path);
        embla_vocab_free(vocab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_real_files_are_those_that_python_reads),
        cmocka_unit_test(some_words_of_real_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
