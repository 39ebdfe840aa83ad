/* SPDX-License-Identifier: Apache-2.0 */
/* Makes small checkpoints for the command-line tests, from words on its command line:
 *
 *   make_model OUT.safetensors NAME:TYPE:SHAPE[:KEY=VALUE].. [meta:KEY=TEXT]..
 *   make_model OUT.gguf NAME:TYPE:SHAPE.. [text:KEY=TEXT] [number:KEY=N] [tokens:A,B,C]..
 *   make_model giant FOLDER
 *
 * TYPE is F32, F16, BF16, I32, I64 or another name with 0x11 in every byte; SHAPE is 12x8,
 * rows first. Numbers depend on row, column and seed alone, so tensors with the same seed are
 * equal. KEY is seed=N, zero=ROW, nan=ROW, or mod=N: whole numbers 0, 1, 2.. modulo N (for a
 * mapping). What these formats demand is written by hand here, on purpose:
 * the tests do not rest on the writers they test.
 *
 * A giant table is one of qwen4_exp, small: 2,304 rows of 160 f8_e4m3 in four parts, one scale,
 * the constants of its n-grams and a config.json, in a new folder.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TENSORS = 32, RANK = 4, WORDS = 64, ALIGN = 32 };

typedef struct {
    char name[128], type[16];
    int rank;
    uint64_t shape[RANK]; /* slowest first */
    unsigned seed;
    long zero, nan;      /* a row, -1: none */
    long modulo;         /* above 0: whole numbers 0, 1, .. modulo this */
    bool any;            /* any byte that is no NaN of f8_e4m3 */
    float number;        /* not 0: all are this */
    const int64_t *list; /* these */
    uint64_t bytes;
} tensor;

typedef struct {
    char kind; /* 't'ext, 'n'umber, 'w'ords */
    char key[128];
    const char *value;
} pair;

static tensor tensors[TENSORS];
static pair pairs[WORDS];
static size_t tensor_count, pair_count;

static void fail(const char *what, const char *word)
{
    fprintf(stderr, "make_model: %s: %s\n", what, word);
    exit(2);
}

/* ---- the command line ---- */

static const struct {
    const char *name;
    int bits, ggml, block, block_bytes;
} types[] = {{"F32", 32, 0, 1, 4},     {"F16", 16, 1, 1, 2},   {"BF16", 16, 30, 1, 2},
             {"F64", 64, 28, 1, 8},    {"I32", 32, 26, 1, 4},  {"I64", 64, 27, 1, 8},
             {"I8", 8, 24, 1, 1},      {"U8", 8, -1, 1, 1},    {"F8_E4M3", 8, -1, 1, 1},
             {"Q4_0", 0, 2, 32, 18},   {"Q8_0", 0, 8, 32, 34}, {"Q4_K", 0, 12, 256, 144},
             {"F8_E8M0", 8, -1, 1, 1}, {"BOOL", 8, -1, 1, 1},  {"U16", 16, -1, 1, 2},
             {"Q2_K", 0, 10, 256, 84}};

static size_t type_of(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, name) == 0) return i;
    fail("no such type", name);
    return 0;
}

static void read_option(tensor *t, const char *word)
{
    if (sscanf(word, "seed=%u", &t->seed) == 1) return;
    if (sscanf(word, "zero=%ld", &t->zero) == 1) return;
    if (sscanf(word, "nan=%ld", &t->nan) == 1) return;
    if (sscanf(word, "mod=%ld", &t->modulo) == 1) return;
    fail("no such key", word);
}

static void read_tensor(char *word)
{
    tensor *t = &tensors[tensor_count++];
    char *place = NULL, *name = strtok_r(word, ":", &place), *type = strtok_r(NULL, ":", &place);
    char *shape = strtok_r(NULL, ":", &place), *option;
    uint64_t count = 1;
    if (tensor_count > TENSORS || !name || !type || !shape) fail("not NAME:TYPE:SHAPE", word);
    *t = (tensor){.zero = -1, .nan = -1};
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->type, sizeof t->type, "%s", type);
    for (char *at = shape; *at && t->rank < RANK; at += *at == 'x') {
        t->shape[t->rank] = strtoull(at, &at, 10);
        count *= t->shape[t->rank++];
    }
    while ((option = strtok_r(NULL, ":", &place))) read_option(t, option);
    size_t k = type_of(t->type);
    t->bytes = count / (uint64_t)types[k].block * (uint64_t)types[k].block_bytes;
}

static bool read_pair(const char *word)
{
    static const char *const kinds[] = {"text:", "meta:", "number:", "tokens:"};
    for (size_t i = 0; i < 4; i++) {
        const char *rest = word + strlen(kinds[i]);
        if (strncmp(word, kinds[i], strlen(kinds[i])) != 0) continue;
        pair *p = &pairs[pair_count++];
        size_t length = strcspn(rest, "=");
        p->kind = i == 3 ? 'w' : i == 2 ? 'n' : 't';
        snprintf(p->key, sizeof p->key, "%.*s", i == 3 ? 0 : (int)length, rest);
        p->value = i == 3 ? rest : rest + length + 1;
        return true;
    }
    return false;
}

/* ---- numbers ---- */

static void put(FILE *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) fputc((int)(value >> (8 * i) & 0xff), out);
}

/* In [-1, 1), a multiple of 1/128: exact in every float type but the eight-bit ones. */
static float value_of(const tensor *t, uint64_t row, uint64_t column)
{
    uint64_t x = (row + 1) * 2654435761u ^ (column + 1) * 40503u ^ (uint64_t)t->seed * 97u;
    x ^= x >> 15;
    x *= 0x2545F4914F6CDD1Du;
    if ((long)row == t->zero) return 0.0f;
    if ((long)row == t->nan) return NAN;
    return (float)((int)(x >> 56) - 128) / 128.0f;
}

/* The nearest half: the values above are exact, NaN is NaN. */
static uint16_t half_of(float value)
{
    int exponent;
    float part = frexpf(fabsf(value), &exponent);
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value)) return 0x7e00;
    if (value == 0.0f) return 0;
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)(part * 2048.0f) & 0x3ff));
}

static void put_value(FILE *out, const tensor *t, uint64_t row, uint64_t column)
{
    float value = t->number != 0.0f ? t->number : value_of(t, row, column);
    uint64_t whole = t->modulo > 0 ? (row + column) % (uint64_t)t->modulo : row + column;
    uint32_t bits;
    if (t->list) whole = (uint64_t)t->list[column];
    memcpy(&bits, &value, 4);
    if (strcmp(t->type, "F32") == 0)
        put(out, bits, 4);
    else if (strcmp(t->type, "BF16") == 0)
        put(out, bits >> 16, 2);
    else if (strcmp(t->type, "F16") == 0)
        put(out, half_of(value), 2);
    else if (strcmp(t->type, "I32") == 0)
        put(out, whole, 4);
    else if (strcmp(t->type, "I64") == 0)
        put(out, whole, 8);
}

static void put_numbers(FILE *out, const tensor *t)
{
    static const char *const known[] = {"F32", "BF16", "F16", "I32", "I64"};
    uint64_t columns = t->rank > 0 ? t->shape[t->rank - 1] : 1, rows = 1;
    bool is_known = false;
    for (size_t i = 0; i < 5; i++) is_known = is_known || strcmp(known[i], t->type) == 0;
    for (int i = 0; i + 1 < t->rank; i++) rows *= t->shape[i];
    if (t->any) {
        uint64_t x = 88172645463325252u + t->seed;
        for (uint64_t i = 0; i < t->bytes; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            fputc((x >> 40 & 0x7f) == 0x7f ? 0 : (int)(x >> 40 & 0xff), out);
        }
        return;
    }
    if (!is_known) {
        for (uint64_t i = 0; i < t->bytes; i++) fputc(0x11 + (int)(t->seed & 7), out);
        return;
    }
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t column = 0; column < columns; column++) put_value(out, t, row, column);
}

/* ---- safetensors ---- */

static void make_safetensors(FILE *out)
{
    char *json = NULL;
    size_t size = 0;
    uint64_t at = 0;
    FILE *text = open_memstream(&json, &size);
    if (!text) fail("no memory", "header");
    fputc('{', text);
    for (size_t i = 0; i < pair_count; i++)
        fprintf(text, "%s\"%s\":\"%s\"%s", i == 0 ? "\"__metadata__\":{" : ",", pairs[i].key,
                pairs[i].value, i + 1 == pair_count ? "}," : "");
    for (size_t i = 0; i < tensor_count; i++) {
        const tensor *t = &tensors[i];
        fprintf(text, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i > 0 ? "," : "", t->name, t->type);
        for (int k = 0; k < t->rank; k++)
            fprintf(text, "%s%" PRIu64, k > 0 ? "," : "", t->shape[k]);
        fprintf(text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + t->bytes);
        at += t->bytes;
    }
    fputc('}', text);
    fclose(text);
    uint64_t padded = (size + 7) / 8 * 8;
    put(out, padded, 8);
    fprintf(out, "%-*s", (int)padded, json);
    free(json);
    for (size_t i = 0; i < tensor_count; i++) put_numbers(out, &tensors[i]);
}

/* ---- GGUF ---- */

static void put_string(FILE *out, const char *text, size_t length)
{
    put(out, length, 8);
    fwrite(text, 1, length, out);
}

static void put_words(FILE *out, const char *words)
{
    uint64_t count = 1;
    for (const char *c = words; *c; c++) count += *c == ',';
    put_string(out, "tokenizer.ggml.tokens", 21);
    put(out, 9, 4); /* an array */
    put(out, 8, 4); /* of strings */
    put(out, count, 8);
    for (; count > 0; count--) {
        size_t length = strcspn(words, ",");
        put_string(out, words, length);
        words += length + 1;
    }
}

static void put_pair(FILE *out, const pair *p)
{
    if (p->kind == 'w') {
        put_words(out, p->value);
        return;
    }
    put_string(out, p->key, strlen(p->key));
    put(out, p->kind == 'n' ? 4 : 8, 4); /* u32, string */
    if (p->kind == 'n')
        put(out, strtoull(p->value, NULL, 10), 4);
    else
        put_string(out, p->value, strlen(p->value));
}

static void pad(FILE *out)
{
    while (ftell(out) % ALIGN != 0) fputc(0, out);
}

static void make_gguf(FILE *out)
{
    uint64_t at = 0;
    fwrite("GGUF", 1, 4, out);
    put(out, 3, 4);
    put(out, tensor_count, 8);
    put(out, pair_count, 8);
    for (size_t i = 0; i < pair_count; i++) put_pair(out, &pairs[i]);
    for (size_t i = 0; i < tensor_count; i++) {
        const tensor *t = &tensors[i];
        put_string(out, t->name, strlen(t->name));
        put(out, (uint64_t)t->rank, 4);
        for (int k = t->rank; k-- > 0;) put(out, t->shape[k], 8); /* fastest first */
        put(out, (uint64_t)types[type_of(t->type)].ggml, 4);
        put(out, at, 8);
        at += (t->bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    if (tensor_count > 0) pad(out);
    for (size_t i = 0; i < tensor_count; i++) {
        put_numbers(out, &tensors[i]);
        pad(out);
    }
}

/* ---- a giant table ---- */

enum { VOCAB = 1000, ORDERS = 3, HEADS = 8, COLUMNS = (ORDERS - 1) * HEADS, PARTS = 4 };

static void add_tensor(const char *name, const char *type, uint64_t rows, uint64_t columns,
                       const tensor *like)
{
    tensor *t = &tensors[tensor_count++];
    *t = *like;
    t->zero = t->nan = -1;
    snprintf(t->name, sizeof t->name, "model.ple.ple_embedding.%s", name);
    snprintf(t->type, sizeof t->type, "%s", type);
    if (rows > 0) t->shape[t->rank++] = rows;
    if (columns > 0) t->shape[t->rank++] = columns;
    t->bytes = (rows > 0 ? rows : 1) * (columns > 0 ? columns : 1) *
               (uint64_t)types[type_of(type)].block_bytes;
}

static FILE *file_in(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    if (!out) fail("cannot write", path);
    return out;
}

/* By the rules that the model is published with: primes, and multipliers by splitmix64. */
static void make_giant(const char *folder)
{
    static int64_t sizes[COLUMNS], offsets[COLUMNS], multipliers[ORDERS];
    const uint64_t step = 0x9E3779B97F4A7C15u;
    uint64_t rows = 0, most = (uint64_t)INT64_MAX / VOCAB / 2;
    int64_t prime = 100;
    for (int i = 0; i < COLUMNS; i++, prime++) {
        for (int64_t by = 2; by * by <= prime; by++)
            if (prime % by == 0) by = 1, prime++;
        sizes[i] = prime;
        offsets[i] = (int64_t)rows;
        rows += (uint64_t)prime;
    }
    for (uint64_t i = 0; i < ORDERS; i++) {
        uint64_t v = 1234 + step * (i + 2);
        v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9u;
        v = (v ^ v >> 27) * 0x94D049BB133111EBu;
        multipliers[i] = (int64_t)(2 * ((v ^ v >> 31) % most) + 1);
    }
    rows = (rows + 127) / 128 * 128;
    for (unsigned i = 0; i < PARTS; i++) {
        char name[64];
        snprintf(name, sizeof name, "ngram_embedding.shard_%u.weight", i);
        add_tensor(name, "F8_E4M3", rows / PARTS, 160, &(tensor){.any = true, .seed = i});
    }
    add_tensor("ngram_embedding.weight_scale", "BF16", 0, 0, &(tensor){.number = 0.0625f});
    add_tensor("layer_multipliers", "I64", ORDERS, 0, &(tensor){.list = multipliers});
    add_tensor("ngram_heads_offsets", "I64", COLUMNS, 0, &(tensor){.list = offsets});
    add_tensor("ngram_heads_vocab_sizes", "I64", COLUMNS, 0, &(tensor){.list = sizes});
    if (mkdir(folder, 0777) != 0) fail("cannot make", folder);
    FILE *out = file_in(folder, "config.json");
    fprintf(out,
            "{\"model_type\":\"qwen4_exp\",\"vocab_size\":%d,\"eos_token_id\":2,\"ngram_size\":%d,"
            "\"heads_per_ngram\":%d,\"ngram_vocab_size_base\":100,\"ple_layer_ids\":[2],"
            "\"make_ngram_vocab_size_divisible_by\":128,\"seed\":1234}\n",
            VOCAB, ORDERS, HEADS);
    if (fclose(out) != 0) fail("cannot write", "config.json");
    out = file_in(folder, "model.safetensors");
    make_safetensors(out);
    if (ferror(out) || fclose(out) != 0) fail("cannot write", "model.safetensors");
}

int main(int argc, char **argv)
{
    if (argc < 2) fail("usage", "make_model OUT TENSOR..");
    if (argc == 3 && strcmp(argv[1], "giant") == 0) {
        make_giant(argv[2]);
        return 0;
    }
    for (int i = 2; i < argc; i++)
        if (!read_pair(argv[i])) read_tensor(argv[i]);
    FILE *out = fopen(argv[1], "wb");
    if (!out) fail("cannot write", argv[1]);
    if (strstr(argv[1], ".gguf"))
        make_gguf(out);
    else
        make_safetensors(out);
    if (ferror(out) || fclose(out) != 0) fail("cannot write", argv[1]);
    return 0;
}
