/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench text: text to tokens, to vectors, and back, on a made-up language (made_text.c).
 *
 *   KIND           lines of a text are tokenized as a batch; KIND is wordpiece, bpe or unigram.
 *                  The limit finds the words of the same lines and reads one cache line for each
 *                  from a table of 4 MiB: what any tokenizer with a cache of words must do.
 *   KIND/line      one line of 10 MB. The limit is a line of 1 MB: the ratio is 1 if the time is
 *                  linear in the length.
 *   KIND/decode    tokens to text. The limit is memcpy of the text.
 *   vector         lines to vectors of 256 numbers. The limit sums the same rows, with the tokens
 *                  known beforehand.
 *   open/json      a tokenizer.json of BPE is opened and closed. The limit reads its bytes.
 *   open/compiled  the same tokenizer from a file of embla_tokenizer_compile. The limit is the
 * same.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/cases.h"
#include "bench/made_text.h"
#include "bench/measure.h"
#include "embla_text.h"

enum {
    TEXT = 4000000,
    LONG = 10000000,
    SHORT = 1000000,
    DIM = 256,
    TURNS = 7,
    TABLE = 1 << 22,
    LINE = 64
};

static const char *const kinds[] = {"wordpiece", "bpe", "unigram"};

typedef struct {
    const bench_options *options;
    bench_cases cases;
    int threads;
    bench_string text, longest, json;
    const char **lines;
    size_t *lengths, count;
    char *table; /* of the limit */
    embla_tokenizer *tokenizer;
    embla_tokenized *tokenized;
    embla_encoder *encoder;
    float *rows, *out;
    int32_t *tokens; /* of all lines, those of line i from starts[i] on */
    size_t *starts, token_count;
    const char *path;
    bool failed;
    atomic_uint_fast64_t sink; /* keeps the compiler from leaving out the limit */
} state;

/* ---- what is timed ---- */

static void tokenize_lines(void *context, size_t step)
{
    state *s = context;
    const embla_tokenize_options options = {.threads = s->threads};
    (void)step;
    const embla_texts texts = {.texts = s->lines, .lengths = s->lengths, .count = s->count};
    if (embla_tokenize_batch(s->tokenized, &texts, &options) != EMBLA_OK) s->failed = true;
}

static uint64_t hash_words(const char *table, const char *text, size_t length)
{
    uint64_t sum = 0, hash = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] != ' ') {
            hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x9E3779B97F4A7C15);
            continue;
        }
        uint64_t found = 0;
        memcpy(&found, table + (hash >> 32 & (TABLE / LINE - 1)) * LINE, sizeof found);
        sum += found;
        hash = 0;
    }
    return sum + hash;
}

enum { LINES_AT_ONCE = 64 };
static embla_status hash_lines(void *job, size_t first, size_t end, size_t slot)
{
    state *s = job;
    uint64_t sum = 0;
    (void)slot;
    for (size_t i = first; i < end; i++) sum += hash_words(s->table, s->lines[i], s->lengths[i]);
    (void)atomic_fetch_add_explicit(&s->sink, sum, memory_order_relaxed);
    return EMBLA_OK;
}

static void find_words(void *context, size_t step)
{
    const state *s = context;
    (void)step;
    bench_shared(s->threads, s->count, LINES_AT_ONCE, hash_lines, s);
}

static void tokenize_first(state *s, size_t bytes)
{
    size_t length = bytes < s->longest.count ? bytes : s->longest.count;
    if (embla_tokenize(s->tokenized, s->longest.bytes, length, NULL) != EMBLA_OK) s->failed = true;
}

static void tokenize_long(void *context, size_t step)
{
    (void)step;
    tokenize_first(context, LONG);
}

static void tokenize_short(void *context, size_t step)
{
    (void)step;
    for (int i = 0; i < LONG / SHORT; i++) tokenize_first(context, SHORT);
}

static void decode_lines(void *context, size_t step)
{
    state *s = context;
    const char *text = NULL;
    size_t length = 0;
    (void)step;
    for (size_t i = 0; i < s->count; i++)
        if (embla_detokenize(s->tokenized, s->tokens + s->starts[i],
                             s->starts[i + 1] - s->starts[i], true, &text, &length) != EMBLA_OK)
            s->failed = true;
}

static void copy_text(void *context, size_t step)
{
    state *s = context;
    (void)step;
    for (size_t i = 0; i < s->count; i++) memcpy(s->table, s->lines[i], s->lengths[i]);
    s->sink += (unsigned char)s->table[0];
}

static void encode_lines(void *context, size_t step)
{
    state *s = context;
    const embla_encode_options options = {.threads = s->threads};
    (void)step;
    const embla_texts texts = {.texts = s->lines, .lengths = s->lengths, .count = s->count};
    if (embla_encoder_encode(s->encoder, &texts, &options, s->out, NULL) != EMBLA_OK)
        s->failed = true;
}

static embla_status sum_lines(void *job, size_t first, size_t end, size_t slot)
{
    const state *s = job;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        float *out = s->out + i * DIM;
        memset(out, 0, DIM * sizeof *out);
        for (size_t k = s->starts[i]; k < s->starts[i + 1]; k++) {
            const float *row = s->rows + (size_t)s->tokens[k] * DIM;
            for (size_t d = 0; d < DIM; d++) out[d] += row[d];
        }
    }
    return EMBLA_OK;
}

static void sum_rows(void *context, size_t step)
{
    const state *s = context;
    (void)step;
    bench_shared(s->threads, s->count, LINES_AT_ONCE, sum_lines, s);
}

static void open_file(void *context, size_t step)
{
    state *s = context;
    embla_tokenizer *opened = NULL;
    (void)step;
    if (embla_tokenizer_open_file(s->path, &opened) != EMBLA_OK) s->failed = true;
    embla_tokenizer_free(opened);
}

static void read_file(void *context, size_t step)
{
    state *s = context;
    FILE *file = fopen(s->path, "rb");
    size_t got = 0;
    (void)step;
    if (!file) {
        s->failed = true;
        return;
    }
    do {
        got = fread(s->table, 1, TABLE, file);
        s->sink += (unsigned char)s->table[0];
    } while (got == TABLE);
    (void)fclose(file);
}

/* ---- what they need ---- */

static bool complain(const state *s, const char *what, const char *why)
{
    s->options->complain("bench text: %s: %s", what, why);
    return false;
}

/* Lists the lines of the text. */
static bool make_lines(state *s)
{
    s->text = bench_made_text(TEXT, true);
    s->table = bench_memory(TABLE);
    s->lines = malloc((size_t)TEXT / 16 * sizeof *s->lines);
    s->lengths = malloc((size_t)TEXT / 16 * sizeof *s->lengths);
    if (s->text.failed || !s->table || !s->lines || !s->lengths)
        return complain(s, "the text", "no memory");
    for (size_t at = 0; at < s->text.count && s->count < TEXT / 16;) {
        const char *line = s->text.bytes + at;
        const char *end = memchr(line, '\n', s->text.count - at);
        size_t length = end ? (size_t)(end - line) : s->text.count - at;
        s->lines[s->count] = line;
        s->lengths[s->count++] = length;
        at += length + 1;
    }
    return true;
}

static bool open_kind(state *s, int kind)
{
    s->json = bench_made_tokenizer((bench_tokenizer_kind)kind);
    if (s->json.failed) return complain(s, "a tokenizer", "no memory");
    if (embla_tokenizer_open_bytes(s->json.bytes, s->json.count, kinds[kind], &s->tokenizer) !=
            EMBLA_OK ||
        embla_tokenized_new(s->tokenizer, &s->tokenized) != EMBLA_OK)
        return complain(s, kinds[kind], embla_error());
    return true;
}

/* Keeps the tokens of all lines, for what begins with tokens. */
static bool keep_tokens(state *s)
{
    s->threads = 1;
    tokenize_lines(s, 0);
    if (s->failed) return complain(s, "tokens", embla_error());
    s->token_count = embla_tokenized_count(s->tokenized);
    s->tokens = malloc(s->token_count * sizeof *s->tokens + 1);
    s->starts = malloc((s->count + 1) * sizeof *s->starts);
    if (!s->tokens || !s->starts) return complain(s, "tokens", "no memory");
    memcpy(s->tokens, embla_tokenized_tokens(s->tokenized), s->token_count * sizeof *s->tokens);
    memcpy(s->starts, embla_tokenized_starts(s->tokenized), (s->count + 1) * sizeof *s->starts);
    return true;
}

static bool write_file(state *s, const char *name, const void *head, size_t head_bytes,
                       const void *bytes, size_t count)
{
    s->path = bench_file(name);
    FILE *file = s->path ? fopen(s->path, "wb") : NULL;
    bool good = file && fwrite(head, 1, head_bytes, file) == head_bytes &&
                fwrite(bytes, 1, count, file) == count;
    int why = errno;
    if (file && fclose(file) != 0) good = false;
    return good || complain(s, name, strerror(why));
}

/* Writes a static model with random rows, as Model2Vec has them, and opens it. */
static bool make_model(state *s)
{
    static const char config[] = "{\"model_type\":\"model2vec\",\"normalize\":true}";
    embla_tokenizer_info info;
    if (embla_tokenizer_describe(s->tokenizer, &info) != EMBLA_OK) return false;
    size_t numbers = (size_t)info.tokens * DIM;
    char header[136] = {0};
    s->rows = bench_memory(numbers * sizeof *s->rows);
    s->out = bench_memory(s->count * DIM * sizeof *s->out);
    if (!s->rows || !s->out) return complain(s, "a model", "no memory");
    for (size_t i = 0; i < numbers; i++)
        s->rows[i] = (float)((uint32_t)i * 2654435761u >> 8) * 0x1p-23f - 1.0f;
    int used = snprintf(header + 8, sizeof header - 8,
                        "{\"embeddings\":{\"dtype\":\"F32\",\"shape\":[%lld,%d],"
                        "\"data_offsets\":[0,%zu]}}",
                        (long long)info.tokens, DIM, numbers * sizeof *s->rows);
    memset(header + 8 + used, ' ', 128 - (size_t)used);
    header[0] = (char)128;
    return write_file(s, "config.json", config, sizeof config - 1, "", 0) &&
           write_file(s, "tokenizer.json", s->json.bytes, s->json.count, "", 0) &&
           write_file(s, "model.safetensors", header, sizeof header, s->rows,
                      numbers * sizeof *s->rows);
}

static bool open_model(state *s)
{
    char folder[512];
    if (!make_model(s)) return false;
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(s->path, '/') - s->path), s->path);
    if (embla_encoder_open(folder, NULL, &s->encoder) != EMBLA_OK)
        return complain(s, "a model", embla_error());
    return true;
}

/* Frees what belongs to one kind. */
static void close_kind(state *s)
{
    embla_tokenized_free(s->tokenized);
    embla_encoder_free(s->encoder);
    embla_tokenizer_free(s->tokenizer);
    bench_string_free(&s->json);
    bench_string_free(&s->longest);
    free(s->tokens);
    free(s->starts);
    free(s->rows);
    free(s->out);
    s->tokenized = NULL;
    s->encoder = NULL;
    s->tokenizer = NULL;
    s->tokens = NULL;
    s->starts = NULL;
    s->rows = s->out = NULL;
    bench_file_drop();
}

/* ---- cases ---- */

/* `work` is what one call does, in units. */
static bool run_case(state *s, const char *name, bench_usual usual, bench_fn *ours, bench_fn *limit,
                     const char *limit_is, double work, const char *unit)
{
    const bench_teams teams = bench_teams_for(s->options, usual);
    for (size_t i = 0; i < teams.count; i++) {
        s->threads = teams.threads[i];
        bench_times times = bench_measure(ours, limit, s, TURNS, 1);
        if (s->failed) return complain(s, name, embla_error());
        bench_result result = {.bench = "text",
                               .name = name,
                               .threads = s->threads,
                               .unit = unit,
                               .limit_is = limit_is,
                               .value = work / times.seconds,
                               .limit = work / times.limit_seconds};
        bench_print(s->options, &result);
    }
    return true;
}

static bool run_kind(state *s, int kind, bool lines, bool line, bool decode)
{
    char name[32];
    const double bytes = 1e-6 * (double)s->text.count;
    bool good = open_kind(s, kind);
    if (good && lines)
        good = run_case(s, kinds[kind], BENCH_BOTH, tokenize_lines, find_words, "finding words",
                        bytes, "MB/s");
    if (good && line) {
        (void)snprintf(name, sizeof name, "%s/line", kinds[kind]);
        s->longest = bench_made_text(LONG, false);
        good = s->longest.failed ? complain(s, name, "no memory")
                                 : run_case(s, name, BENCH_ALONE, tokenize_long, tokenize_short,
                                            "lines of 1 MB", 1e-6 * LONG, "MB/s");
    }
    if (good && decode) {
        (void)snprintf(name, sizeof name, "%s/decode", kinds[kind]);
        good = keep_tokens(s) &&
               run_case(s, name, BENCH_ALONE, decode_lines, copy_text, "memcpy", bytes, "MB/s");
    }
    close_kind(s);
    return good;
}

static bool run_vector(state *s)
{
    bool good = open_kind(s, BENCH_WORDPIECE) && keep_tokens(s) && open_model(s) &&
                run_case(s, "vector", BENCH_BOTH, encode_lines, sum_rows, "sum of the rows",
                         1e-6 * (double)s->text.count, "MB/s");
    close_kind(s);
    return good;
}

static bool compile_file(state *s)
{
    const char *json = s->path;
    s->path = bench_file("tokenizer.tok");
    return embla_tokenizer_compile(json, s->path) == EMBLA_OK ||
           complain(s, "open/compiled", embla_error());
}

static bool run_open(state *s, const char *name, bool compiled)
{
    bool good =
        open_kind(s, BENCH_BPE) &&
        write_file(s, "tokenizer.json", s->json.bytes, s->json.count, "", 0) &&
        (!compiled || compile_file(s)) &&
        run_case(s, name, BENCH_ALONE, open_file, read_file, "reading the file", 1.0, "1/s");
    close_kind(s);
    return good;
}

/* The cases that are not of one kind of model. */
static bool run_others(state *s)
{
    static const char *const names[] = {"vector", "open/json", "open/compiled"};
    bool good = true;
    for (int i = 0; i < 3 && good; i++) {
        if (!bench_wants(&s->cases, names[i], true)) continue;
        good = (s->count > 0 || make_lines(s)) &&
               (i == 0 ? run_vector(s) : run_open(s, names[i], i == 2));
    }
    return good;
}

static bool run_kinds(state *s)
{
    static const char *const ends[] = {"", "/line", "/decode"};
    bool good = true;
    for (int kind = 0; kind < BENCH_TOKENIZERS && good; kind++) {
        bool wanted[3];
        for (int i = 0; i < 3; i++) {
            char name[32];
            (void)snprintf(name, sizeof name, "%s%s", kinds[kind], ends[i]);
            wanted[i] = bench_wants(&s->cases, name, true);
        }
        if (wanted[0] || wanted[1] || wanted[2])
            good = (s->count > 0 || make_lines(s)) &&
                   run_kind(s, kind, wanted[0], wanted[1], wanted[2]);
    }
    return good;
}

int bench_text(const bench_options *options)
{
    state s = {.options = options};
    int exit_code = bench_begin("text", options, &s.cases);
    if (exit_code != 0) return exit_code;
    bool good = run_kinds(&s) && run_others(&s);
    bench_string_free(&s.text);
    free(s.lines);
    free(s.lengths);
    free(s.table);
    return bench_end(&s.cases, good ? 0 : 1);
}
