/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the library have the same bytes on any number of threads, and on those of any host.
 * Their numbers are so small that a thread which flushes them to zero would change the bytes.
 */
#include "embla_store.h"
#include "embla_text.h"
#include "files/cursor.h"
#include "scratch.h"
#include "share_host.h"

/* Each call moves over 1 MiB, so that 8 threads are worth it. */
enum { ROWS = 3000, DIM = 128, TOKENS = 4096, LENGTH = 512, TEXTS = 3000, WORDS = 26 };
#define SMALL 1e-39f

static int32_t tokens[TOKENS];
static const char *texts[TEXTS];
static size_t lengths[TEXTS];

static size_t run_init(int threads, void *out)
{
    embla_table *table = check_zeros(EMBLA_F32, ROWS, DIM);
    const embla_init_options options = {.seed = 3, .spread = SMALL, .threads = threads};
    assert_ok(embla_table_init(table, &options));
    memcpy(out, embla_table_data(table), ROWS * DIM * sizeof(float));
    embla_table_free(table);
    return ROWS * DIM * sizeof(float);
}

static size_t run_lookup(int threads, void *out)
{
    embla_table *table = NULL;
    static uint8_t codes[ROWS * DIM];
    const embla_table_options how = {.scale = SMALL};
    for (size_t i = 0; i < sizeof codes; i++) codes[i] = (uint8_t)(i * 7 % 120);
    assert_ok(
        embla_table_view(&(embla_table_layout){.dtype = EMBLA_F8_E4M3, .rows = ROWS, .dim = DIM},
                         codes, sizeof codes, &how, &table));
    assert_ok(
        embla_lookup(table, tokens, TOKENS, &(embla_lookup_options){.threads = threads}, out));
    embla_table_free(table);
    return TOKENS * DIM * sizeof(float);
}

static size_t run_pool(int threads, void *out)
{
    embla_table *table = check_zeros(EMBLA_F32, ROWS, DIM);
    assert_ok(embla_table_init(table, &(embla_init_options){.spread = SMALL, .threads = 1}));
    const embla_pool_options options = {.threads = threads};
    assert_ok(embla_lookup_pool(table, tokens, TOKENS / 16, 16, &options, out));
    embla_table_free(table);
    return TOKENS / 16 * DIM * sizeof(float);
}

static size_t run_ngrams(int threads, void *out)
{
    embla_ngram *ngram = NULL;
    embla_ngram_info info;
    const embla_ngram_parameters p = {.kind = EMBLA_NGRAM_LONGCAT,
                                      .vocab = ROWS,
                                      .orders = 4,
                                      .rows_per_ngram = 16,
                                      .ratio = 1.5,
                                      .eos = 2};
    assert_ok(embla_ngram_new(&p, &ngram));
    assert_ok(embla_ngram_describe(ngram, &info));
    const embla_ngram_options options = {.threads = threads};
    assert_ok(embla_ngram_rows(ngram, tokens, TOKENS / LENGTH, LENGTH, &options, out));
    embla_ngram_free(ngram);
    return TOKENS * info.rows_per_token * sizeof(int64_t);
}

/* ---- a static model: a vector for each letter ---- */

static embla_encoder *encoder;

static void put_model(const char *path)
{
    static uint8_t bytes[256 + WORDS * DIM * 4];
    int used = snprintf((char *)bytes + 8, 200,
                        "{\"embeddings\":{\"dtype\":\"F32\",\"shape\":[%d,%d],"
                        "\"data_offsets\":[0,%d]}}",
                        WORDS, DIM, WORDS * DIM * 4);
    while (used % 8 > 0) bytes[8 + used++] = ' ';
    embla_put_le64((uint64_t)used, bytes);
    for (int i = 0; i < WORDS * DIM; i++)
        memcpy(bytes + 8 + used + i * 4, &(float){(float)(i * 37 % 101 - 50) * SMALL}, 4);
    scratch_write(path, bytes, (size_t)(8 + used + WORDS * DIM * 4));
}

static int make_all(void **state)
{
    static char long_text[400];
    char json[2000], *at = json;
    scratch s;
    (void)state;
    for (int i = 0; i < TOKENS; i++) tokens[i] = (int32_t)((int64_t)i * 7919 % ROWS);
    for (size_t i = 0; i + 1 < sizeof long_text; i++)
        long_text[i] = i % 2 ? ' ' : (char)('a' + i * 5 % WORDS);
    for (size_t i = 0; i < TEXTS; i++) {
        texts[i] = long_text + i % 29;
        lengths[i] = i % 7 == 0 ? 300 : i % 40;
    }
    at += sprintf(at, "{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":{\"type\":"
                      "\"Whitespace\"},\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\","
                      "\"vocab\":{");
    for (int i = 0; i < WORDS; i++) at += sprintf(at, "%s\"%c\":%d", i ? "," : "", 'a' + i, i);
    at += sprintf(at, "}}}");
    scratch_new(&s);
    put_model(scratch_path(&s, "model.safetensors"));
    scratch_write(scratch_path(&s, "config.json"), "{\"normalize\":false}", 19);
    scratch_write(scratch_path(&s, "tokenizer.json"), json, (size_t)(at - json));
    const embla_encoder_options as = {.compat = EMBLA_COMPAT_MODEL2VEC};
    assert_ok(embla_encoder_open(s.folder, &as, &encoder));
    scratch_free(&s);
    return 0;
}

static int drop_all(void **state)
{
    (void)state;
    embla_encoder_free(encoder);
    return 0;
}

static size_t run_encoder(int threads, void *out)
{
    const embla_encode_options options = {.threads = threads};
    const embla_texts all = {.texts = texts, .lengths = lengths, .count = TEXTS};
    assert_ok(embla_encoder_encode(encoder, &all, &options, out, NULL));
    return TEXTS * DIM * sizeof(float);
}

static size_t run_tokenizer(int threads, void *out)
{
    embla_tokenized *tokenized = NULL;
    const embla_tokenize_options options = {.threads = threads};
    assert_ok(embla_tokenized_new(embla_encoder_tokenizer(encoder), &tokenized));
    const embla_texts all = {.texts = texts, .lengths = lengths, .count = TEXTS};
    assert_ok(embla_tokenize_batch(tokenized, &all, &options));
    size_t bytes = embla_tokenized_count(tokenized) * sizeof(int32_t);
    memcpy(out, embla_tokenized_tokens(tokenized), bytes);
    embla_tokenized_free(tokenized);
    return bytes;
}

/* ---- the same bytes ---- */

static size_t (*const calls[])(int threads, void *out) = {run_init,   run_lookup,  run_pool,
                                                          run_ngrams, run_encoder, run_tokenizer};
enum { CALLS = COUNT_OF(calls), OUT = 1 << 21 };
static uint8_t alone[CALLS][OUT], shared[OUT];
static size_t sizes[CALLS];

static void check_calls(int threads)
{
    for (size_t i = 0; i < CALLS; i++) {
        memset(shared, 0xff, sizeof shared);
        assert_int_equal(calls[i](threads, shared), sizes[i]);
        assert_memory_equal(shared, alone[i], sizes[i]);
    }
}

static void run_alone(void)
{
    for (size_t i = 0; i < CALLS; i++) {
        sizes[i] = calls[i](1, alone[i]);
        assert_true(sizes[i] > 0 && sizes[i] <= OUT);
    }
}

static const int numbers[] = {0, 1, 2, 3, 8};

static void calls_have_the_same_bytes_on_any_number_of_threads(void **state)
{
    (void)state;
    run_alone();
    for (size_t n = 0; n < COUNT_OF(numbers); n++) check_calls(numbers[n]);
}

static atomic_size_t parts_seen;

static void count_parts(void *context, size_t count, embla_parallel_part part, void *job)
{
    atomic_fetch_add(&parts_seen, count);
    run_on_host(context, count, part, job);
}

static void calls_have_the_same_bytes_on_the_threads_of_any_host(void **state)
{
    host hosts[] = {plain_host(0), plain_host(0), plain_host(-1), plain_host(3), plain_host(-1)};
    (void)state;
    run_alone();
    hosts[1].reversed = true;
    hosts[3].flush = 0x8040; /* FTZ and DAZ */
    hosts[4].flush = 0x8040;
    hosts[4].rounding = FE_UPWARD;
    for (size_t h = 0; h < COUNT_OF(hosts); h++) {
        assert_ok(embla_set_parallel(count_parts, &hosts[h], 8));
        for (size_t n = 0; n < COUNT_OF(numbers); n++) {
            atomic_store(&parts_seen, 0);
            check_calls(numbers[n]);
            size_t each = numbers[n] == 0 ? 8 : numbers[n] == 1 ? 0 : (size_t)numbers[n];
            assert_true(atomic_load(&parts_seen) >= CALLS * each); /* all went to the host */
        }
        assert_false(atomic_load(&hosts[h].wrong));
    }
    assert_ok(embla_set_parallel(NULL, NULL, 0));
}

/* Progress comes from the calling thread. A host that runs no part there hears nothing, and
 * stopping ends the call. */
typedef struct {
    pthread_t caller;
    atomic_int told, elsewhere;
} watcher;

static bool stop_at_once(void *context, const char *what, int64_t done, int64_t total)
{
    watcher *w = context;
    (void)what, (void)done, (void)total;
    atomic_fetch_add(&w->told, 1);
    if (!pthread_equal(pthread_self(), w->caller)) atomic_fetch_add(&w->elsewhere, 1);
    return false;
}

static void progress_comes_from_the_calling_thread(void **state)
{
    static char many[TEXTS * 400];
    static const char *large[TEXTS];
    static size_t large_lengths[TEXTS];
    enum { FEW = 64 };
    watcher w = {.caller = pthread_self()};
    embla_tokenized *tokenized = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof many; i++) many[i] = i % 2 ? ' ' : (char)('a' + i * 5 % WORDS);
    for (size_t i = 0; i < TEXTS; i++) {
        large[i] = many;
        large_lengths[i] = 200000;
    }
    const embla_tokenize_options options = {.threads = 4, .progress = stop_at_once, .context = &w};
    assert_ok(embla_tokenized_new(embla_encoder_tokenizer(encoder), &tokenized));
    embla_texts all = {.texts = large, .lengths = large_lengths, .count = TEXTS};
    assert_status(embla_tokenize_batch(tokenized, &all, &options), EMBLA_ERR_STOPPED);
    assert_int_equal(atomic_load(&w.told), 1);
    assert_int_equal(atomic_load(&w.elsewhere), 0);

    host elsewhere = plain_host(-1);
    assert_ok(embla_set_parallel(run_on_host, &elsewhere, 4));
    all.count = FEW;
    assert_ok(embla_tokenize_batch(tokenized, &all, &options));
    assert_int_equal(atomic_load(&w.told), 1);
    assert_ok(embla_set_parallel(NULL, NULL, 0));
    embla_tokenized_free(tokenized);
}

/* ---- one encoder ---- */

/* More threads than an encoder keeps memory for. */
enum { CALLERS = 24, TIMES = 40, SOME = 32 };

typedef struct {
    size_t first; /* text */
    float wanted[SOME * DIM];
    bool wrong;
} caller;

static embla_status encode_texts(size_t first, float *out)
{
    const embla_texts some = {.texts = texts + first, .lengths = lengths + first, .count = SOME};
    return embla_encoder_encode(encoder, &some, &(embla_encode_options){.threads = 1}, out, NULL);
}

static void *encode_often(void *argument)
{
    caller *c = argument;
    float out[SOME * DIM];
    for (int i = 0; i < TIMES; i++)
        if (encode_texts(c->first, out) != EMBLA_OK || memcmp(out, c->wanted, sizeof out) != 0)
            c->wrong = true;
    return NULL;
}

static void many_threads_may_use_one_encoder(void **state)
{
    static caller callers[CALLERS];
    pthread_t threads[CALLERS];
    (void)state;
    for (size_t i = 0; i < CALLERS; i++) {
        callers[i].first = i * SOME;
        assert_ok(encode_texts(callers[i].first, callers[i].wanted));
    }
    for (size_t i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, encode_often, &callers[i]), 0);
    for (size_t i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_false(callers[i].wrong);
    }
}

/* A test that fails must not leave its host to the next one. */
static int forget_host(void **state)
{
    (void)state;
    return embla_set_parallel(NULL, NULL, 0) == EMBLA_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_have_the_same_bytes_on_any_number_of_threads),
        cmocka_unit_test_teardown(calls_have_the_same_bytes_on_the_threads_of_any_host,
                                  forget_host),
        cmocka_unit_test_teardown(progress_comes_from_the_calling_thread, forget_host),
        cmocka_unit_test(many_threads_may_use_one_encoder),
    };
    return cmocka_run_group_tests(tests, make_all, drop_all);
}
