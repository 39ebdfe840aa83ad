/* SPDX-License-Identifier: Apache-2.0 */
/* A compressed file is refused wherever the library reads one, with a sentence that names the
 * program that unpacks it. Read as it is, a compressed text would give words that nobody wrote.
 */
#include "embla_lab.h"
#include "embla_search.h"
#include "embla_store.h"
#include "embla_train.h"
#include "embla_wordvec.h"
#include "files/packed.h"
#include "scratch.h"

static const struct {
    const char *bytes, *sentence;
    size_t length;
    bool text; /* a container of other files too, so only a text is refused */
} packed[] = {
    {"\x1f\x8b\x08\0\0\0\0\0\0\3cat\n", " is compressed with gzip; unpack it with gunzip first", 14,
     false},
    {"\xfd\x37zXZ\0\0\4cat\n", " is compressed with xz; unpack it with unxz first", 12, false},
    {"\x28\xb5\x2f\xfd\4\0cat\n", " is compressed with zstd; unpack it with unzstd first", 10,
     false},
    {"BZh91AY&SYcat\n", " is compressed with bzip2; unpack it with bunzip2 first", 14, false},
    {"PK\3\4cat\n", " is compressed with zip; unpack it with unzip first", 8, true},
};
enum { PACKED = sizeof packed / sizeof packed[0] };

typedef struct {
    scratch s;
    char path[SCRATCH_PATH]; /* of the compressed file */
    char out[SCRATCH_PATH];  /* what must not be written */
    embla_checkpoint *words;
    embla_table *table;
    embla_vocab *vocab;
    embla_encoder *encoder;
} place;

static void set_up(place *p)
{
    static const char vectors[] = "cat 1 0\ndog 0 1\nsea 1 1\nred 1 2\n";
    scratch_new(&p->s);
    scratch_write(scratch_path(&p->s, "words.txt"), vectors, sizeof vectors - 1);
    assert_ok(embla_checkpoint_open(p->s.path, NULL, &p->words));
    assert_ok(embla_table_open(p->words, NULL, NULL, &p->table));
    assert_ok(embla_vocab_open(p->words, &p->vocab));
    assert_ok(embla_encoder_open(p->s.path, NULL, &p->encoder));
    (void)snprintf(p->out, sizeof p->out, "%s", scratch_path(&p->s, "out"));
}

static void tear_down(place *p)
{
    embla_encoder_free(p->encoder);
    embla_vocab_free(p->vocab);
    embla_table_free(p->table);
    embla_checkpoint_free(p->words);
    scratch_free(&p->s);
}

/* ---- every reader ---- */

static embla_status read_checkpoint(const place *p)
{
    embla_checkpoint *out = NULL;
    return embla_checkpoint_open(p->path, NULL, &out);
}

static embla_status read_vocab(const place *p)
{
    embla_vocab *out = NULL;
    return embla_vocab_open_file(p->path, &out);
}

static embla_status read_tokenizer(const place *p)
{
    embla_tokenizer *out = NULL;
    return embla_tokenizer_open_file(p->path, &out);
}

static embla_status compile_tokenizer(const place *p)
{
    return embla_tokenizer_compile(p->path, p->out);
}

static embla_status train_tokenizer(const place *p)
{
    return embla_tokenizer_train(p->path, p->out, NULL, NULL);
}

static embla_status read_corpus(const place *p)
{
    static const embla_corpus_options bytes = {.kind = EMBLA_CORPUS_BYTES};
    embla_corpus *out = NULL;
    return embla_corpus_open(p->path, &bytes, &out);
}

static embla_status read_corpus_tokens(const place *p)
{
    static const embla_corpus_options tokens = {.kind = EMBLA_CORPUS_TOKENS};
    embla_corpus *out = NULL;
    return embla_corpus_open(p->path, &tokens, &out);
}

static embla_status learn_words(const place *p)
{
    embla_wordvec *out = NULL;
    return embla_wordvec_new(p->path, NULL, &out);
}

static embla_status read_analogies(const place *p)
{
    embla_eval *out = NULL;
    return embla_eval_new_analogies(p->table, p->vocab, p->path, NULL, &out);
}

static embla_status read_pairs(const place *p)
{
    embla_eval *out = NULL;
    return embla_eval_new_pairs(p->table, p->vocab, p->path, NULL, &out);
}

static embla_status read_sentences(const place *p)
{
    embla_eval_part part = {0};
    return embla_eval_sentences(p->encoder, p->path, NULL, &part);
}

static embla_status index_lines(const place *p)
{
    embla_index *out = NULL;
    return embla_index_new(p->encoder, p->path, NULL, &out);
}

static embla_status open_index(const place *p)
{
    embla_index *out = NULL;
    char corpus[SCRATCH_PATH];
    (void)snprintf(corpus, sizeof corpus, "%s/words.txt", p->s.folder);
    return embla_index_open(p->path, p->encoder, corpus, &out);
}

static embla_status fit_corpus(const place *p)
{
    return embla_fit(p->encoder, p->path, p->out, NULL, NULL);
}

static embla_status fit_counts(const place *p)
{
    const embla_fit_options options = {.a = 0.001, .counts = p->path};
    char corpus[SCRATCH_PATH];
    (void)snprintf(corpus, sizeof corpus, "%s/words.txt", p->s.folder);
    return embla_fit(p->encoder, corpus, p->out, &options, NULL);
}

static embla_status read_fit(const place *p)
{
    const embla_encoder_options options = {.fit = p->path};
    embla_encoder *out = NULL;
    char model[SCRATCH_PATH];
    (void)snprintf(model, sizeof model, "%s/words.txt", p->s.folder);
    return embla_encoder_open(model, &options, &out);
}

static embla_status read_fold(const place *p)
{
    embla_fold *out = NULL;
    return embla_fold_open(p->path, &out);
}

static embla_status count_trace(const place *p)
{
    const embla_frequent_options options = {.trace = p->path, .rows_per_ngram = 1, .max_ngrams = 1};
    embla_frequent *out = NULL;
    return embla_frequent_new(&options, &out);
}

static const struct {
    const char *name;
    embla_status (*read)(const place *p);
    bool text;
} readers[] = {
    {"embla_checkpoint_open", read_checkpoint, false},
    {"embla_vocab_open_file", read_vocab, true},
    {"embla_tokenizer_open_file", read_tokenizer, false},
    {"embla_tokenizer_compile", compile_tokenizer, false},
    {"embla_tokenizer_train", train_tokenizer, true},
    {"embla_corpus_open", read_corpus, true},
    {"embla_corpus_open (tokens)", read_corpus_tokens, true},
    {"embla_wordvec_new", learn_words, true},
    {"embla_eval_new_analogies", read_analogies, true},
    {"embla_eval_new_pairs", read_pairs, true},
    {"embla_eval_sentences", read_sentences, true},
    {"embla_index_new", index_lines, true},
    {"embla_index_open", open_index, false},
    {"embla_fit", fit_corpus, true},
    {"embla_fit (counts)", fit_counts, true},
    {"embla_encoder_open (fit)", read_fit, false},
    {"embla_fold_open", read_fold, false},
    {"embla_frequent_new (trace)", count_trace, false},
};
enum { READERS = sizeof readers / sizeof readers[0] };

static void every_reader_refuses_a_compressed_file_and_names_the_program(void **state)
{
    place p = {0};
    (void)state;
    set_up(&p);
    (void)snprintf(p.path, sizeof p.path, "%s", scratch_path(&p.s, "in.txt"));
    for (size_t f = 0; f < PACKED; f++) {
        scratch_write(p.path, packed[f].bytes, packed[f].length);
        for (size_t r = 0; r < READERS; r++) {
            if (packed[f].text && !readers[r].text) continue;
            char sentence[2 * SCRATCH_PATH];
            (void)snprintf(sentence, sizeof sentence, "%s%s", p.path, packed[f].sentence);
            embla_status status = readers[r].read(&p);
            if (status != EMBLA_ERR_UNSUPPORTED || !strstr(embla_error(), sentence))
                fail_msg("%s: status %d, %s", readers[r].name, (int)status, embla_error());
            assert_int_not_equal(access(p.out, F_OK), 0);
        }
    }
    tear_down(&p);
}

static void a_text_that_only_begins_alike_is_no_compressed_file(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
    } texts[] = {{"\x1f\x8b\x09\0", 4},  {"\x1f\x8b", 2}, {"BZh91AY&S", 9}, {"BZh01AY&SY", 10},
                 {"BZhang went on", 14}, {"PK\3", 3},     {"", 0},          {"\xfd\x37zXZ", 5},
                 {"\x28\xb5\x2f", 3}};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_ok(embla_packed_check("x", (const uint8_t *)texts[i].bytes, texts[i].length, true));
    assert_ok(embla_packed_check("x", (const uint8_t *)"PK\3\4", 4, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reader_refuses_a_compressed_file_and_names_the_program),
        cmocka_unit_test(a_text_that_only_begins_alike_is_no_compressed_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
