/* SPDX-License-Identifier: Apache-2.0 */
/* `embla info` on 200 GB: the time and memory it takes, with files that are mostly holes.
 *
 *   test_giant EMBLA
 *
 * A GGUF with 128,256 words and 723 tensors, and a sharded safetensors folder of 40 files.
 * Where the file system cannot hold such files the test is skipped, and says so.
 * With EMBLA_TEST_SLOW in the environment the figures are printed and not judged.
 */
#include "toy.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static const char *program;
static scratch place;

enum { WORDS = 128256, DIM = 16384, LAYERS = 120, SHARDS = 40, RUNS = 5 };
static const int64_t giant = INT64_C(200) * 1000 * 1000 * 1000;

/* Sets the length of a file; the rest reads as zeros. */
static bool extend(const char *path, uint64_t size)
{
    return truncate(path, (off_t)size) == 0;
}

static void put_info(toy_bytes *t, const char *name, uint64_t rows, uint64_t dim, uint64_t *offset)
{
    toy_string(t, name);
    toy_number(t, 2, 4);
    toy_number(t, dim, 8);
    toy_number(t, rows, 8);
    toy_number(t, 0, 4); /* F32 */
    toy_number(t, *offset, 8);
    *offset += 4 * rows * dim;
}

static void put_words(toy_bytes *t)
{
    char word[32];
    toy_string(t, "tokenizer.ggml.tokens");
    toy_number(t, 9, 4);
    toy_number(t, 8, 4);
    toy_number(t, WORDS, 8);
    for (int i = 0; i < WORDS; i++) {
        (void)snprintf(word, sizeof word, "word%d", i);
        toy_string(t, word);
    }
}

static bool make_gguf(const char *path)
{
    toy_bytes t = {0};
    uint64_t offset = 0, table = (uint64_t)4 * WORDS * DIM;
    uint64_t rows = ((uint64_t)giant - 2 * table) / (6 * LAYERS) / (4 * DIM) + 1;
    char name[64];
    toy_put(&t, "GGUF", 4);
    toy_number(&t, 3, 4);
    toy_number(&t, 2 + 6 * LAYERS, 8);
    toy_number(&t, 2, 8);
    toy_string(&t, "general.architecture");
    toy_number(&t, 8, 4);
    toy_string(&t, "llama");
    put_words(&t);
    put_info(&t, "token_embd.weight", WORDS, DIM, &offset);
    put_info(&t, "output.weight", WORDS, DIM, &offset);
    for (int i = 0; i < 6 * LAYERS; i++) {
        (void)snprintf(name, sizeof name, "blk.%d.part_%d.weight", i / 6, i % 6);
        put_info(&t, name, rows, DIM, &offset);
    }
    while (t.used % 32 != 0) toy_number(&t, 0, 1);
    scratch_write(path, t.bytes, t.used);
    bool made = extend(path, t.used + offset);
    free(t.bytes);
    return made;
}

/* A shard of 18 tensors; the first has the table. *index grows by its lines. */
static bool make_shard(int n, toy_bytes *index)
{
    enum { PARTS = 18 };
    uint64_t rows = (uint64_t)giant / SHARDS / PARTS / (4 * DIM) + 1, offset = 0;
    char text[256], file[64];
    toy_bytes header = {0}, bytes = {0};
    (void)snprintf(file, sizeof file, "model-%05d-of-%05d.safetensors", n + 1, SHARDS);
    for (int i = 0; i < PARTS; i++) {
        bool table = n == 0 && i == 0;
        uint64_t these = table ? WORDS : rows, end = offset + 4 * these * DIM;
        char name[64];
        (void)snprintf(name, sizeof name,
                       table ? "model.embed_tokens.weight" : "model.layers.%d.part_%d.weight", n,
                       i);
        int length = snprintf(text, sizeof text,
                              "%c\"%s\":{\"dtype\":\"F32\",\"shape\":[%" PRIu64
                              ",%d],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                              i > 0 ? ',' : '{', name, these, DIM, offset, end);
        toy_put(&header, text, (size_t)length);
        length = snprintf(text, sizeof text, "%s\"%s\":\"%s\"", n + i > 0 ? "," : "", name, file);
        toy_put(index, text, (size_t)length);
        offset = end;
    }
    toy_put(&header, "}", 1);
    while (header.used % 8 != 0) toy_put(&header, " ", 1);
    toy_number(&bytes, header.used, 8);
    toy_put(&bytes, header.bytes, header.used);
    scratch_write(scratch_path(&place, file), bytes.bytes, bytes.used);
    bool made = extend(scratch_path(&place, file), bytes.used + offset);
    free(header.bytes);
    free(bytes.bytes);
    return made;
}

static bool make_sharded(void)
{
    toy_bytes index = {0};
    bool made = true;
    toy_put(&index, "{\"weight_map\":{", 15);
    for (int n = 0; made && n < SHARDS; n++) made = make_shard(n, &index);
    toy_put(&index, "}}", 2);
    scratch_write(scratch_path(&place, "model.safetensors.index.json"), index.bytes, index.used);
    toy_text(scratch_path(&place, "config.json"),
             "{\"model_type\": \"llama\", \"tie_word_embeddings\": true, \"vocab_size\": 128256}");
    free(index.bytes);
    return made;
}

static double ms_of(struct timeval t)
{
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

/* Runs the program: the shortest time in ms by the clock, the shortest that the processor
 * worked, and the largest resident memory in KiB. */
static void measure(const char *path, double *ms, double *worked, long *kib)
{
    *ms = *worked = 1e9;
    *kib = 0;
    for (int run = 0; run < RUNS; run++) {
        struct timespec begun, ended;
        struct rusage usage;
        int status = 0;
        (void)clock_gettime(CLOCK_MONOTONIC, &begun);
        pid_t child = fork();
        if (child == 0) {
            int null = open("/dev/null", O_WRONLY);
            (void)dup2(null, 1);
            execl(program, program, "info", path, (char *)NULL);
            _exit(127);
        }
        assert_int_equal(wait4(child, &status, 0, &usage), child);
        (void)clock_gettime(CLOCK_MONOTONIC, &ended);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        double took = (double)(ended.tv_sec - begun.tv_sec) * 1e3 +
                      (double)(ended.tv_nsec - begun.tv_nsec) / 1e6;
        double work = ms_of(usage.ru_utime) + ms_of(usage.ru_stime);
        if (took < *ms) *ms = took;
        if (work < *worked) *worked = work;
        if (usage.ru_maxrss > *kib) *kib = usage.ru_maxrss;
    }
}

/* Held to the processor's time: the clock also counts what other programs take from us. */
static void info_is_instant(const char *path)
{
    double ms, worked;
    long kib;
    const char *slow = getenv("EMBLA_TEST_SLOW"); /* a build with sanitizers, or without -O */
    measure(path, &ms, &worked, &kib);
    print_message("info: %.1f ms, of which the processor worked %.1f, %.1f MiB resident\n", ms,
                  worked, (double)kib / 1024);
    if (slow) return;
    assert_true(worked <= 50);
    assert_true(kib <= 32 * 1024);
}

static void a_gguf_of_200_gb(void **state)
{
    (void)state;
    if (!make_gguf(scratch_path(&place, "model.gguf"))) {
        print_message("no file of 200 GB can be made here: skipped\n");
        skip();
    }
    info_is_instant(scratch_path(&place, "model.gguf"));
    scratch_remove(&place, "model.gguf");
}

static void forty_shards_of_5_gb(void **state)
{
    (void)state;
    if (!make_sharded()) {
        print_message("no file of 5 GB can be made here: skipped\n");
        skip();
    }
    info_is_instant(place.folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_gguf_of_200_gb),
                                       cmocka_unit_test(forty_shards_of_5_gb)};
    if (argc != 2) return 2;
    program = argv[1];
    scratch_new(&place);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_free(&place);
    return failed;
}
