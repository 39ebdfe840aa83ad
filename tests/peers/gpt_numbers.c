/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a model, for scripts that hold another program's against them.
 *
 *   gpt_numbers learn SHAPE FILE           a random model of a small shape and a random batch:
 *                                          tensors, their gradients, the loss
 *   gpt_numbers save SHAPE FOLDER          the same model by embla_gpt_save
 *   gpt_numbers logits FOLDER FILE TOKEN.. what a saved model says after each token
 *
 * FILE is a safetensors file, written here in its plainest form; what is not a tensor stands in
 * its __metadata__. Gains and biases are moved off 1 and 0, or nothing would be seen of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpt_shapes.h"
#include "model/gpt.h"

enum { BATCH = 3, LENGTH = 11, TENSORS = 256, TOKENS = 1024 };

static const struct {
    const char *name;
    embla_gpt_shape shape;
} shapes[] = {
    {"gpt2", {.vocab = 61, .dim = 48, .layers = 2, .heads = 4, .positions = 16, .biases = true}},
    {"gpt2-untied",
     {.vocab = 61,
      .dim = 48,
      .layers = 1,
      .heads = 3,
      .hidden = 80,
      .positions = 16,
      .biases = true,
      .untied = true}},
    {"llama",
     {.vocab = 61,
      .dim = 48,
      .layers = 2,
      .heads = 6,
      .kv_heads = 2,
      .hidden = 72,
      .positions = 16,
      LLAMA_KIND,
      .rope_order = EMBLA_ROPE_ORDER_HALF_SPLIT,
      .untied = true}},
    {"llama2c", /* heads in the other order; biases, as Qwen has some; another theta; tied */
     {.vocab = 61,
      .dim = 32,
      .layers = 2,
      .heads = 4,
      .kv_heads = 1,
      .hidden = 56,
      .positions = 16,
      LLAMA_KIND,
      .norm_epsilon = 1e-6,
      .rope_theta = 500,
      .rope_order = EMBLA_ROPE_ORDER_INTERLEAVED,
      .biases = true}},
    {"microgpt", {.vocab = 27, .dim = 16, .layers = 1, .heads = 4, .positions = 16, MICROGPT_KIND}},
    {"squared", /* what no known model has together */
     {.vocab = 61,
      .dim = 48,
      .layers = 2,
      .heads = 4,
      .kv_heads = 2,
      .positions = 16,
      .activation = EMBLA_ACTIVATION_RELU_SQUARED,
      .position_kind = EMBLA_POSITIONS_SINUSOIDAL,
      .norm_first = true}},
};

static void fail(const char *what)
{
    fprintf(stderr, "gpt_numbers: %s\n", what);
    exit(1);
}

static void must(embla_status status)
{
    if (status != EMBLA_OK) fail(embla_error());
}

static const embla_gpt_shape *find(const char *name)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (strcmp(shapes[i].name, name) == 0) return &shapes[i].shape;
    fail("there is no such shape");
    return NULL;
}

/* 0 .. below, the same on every machine. */
static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*state >> 33) % below);
}

/* ---- the file ---- */

typedef struct {
    char name[96];
    const char *dtype;
    int64_t rows;
    size_t dim;
    const void *values;
    size_t bytes;
} tensor;

typedef struct {
    tensor tensors[TENSORS];
    size_t count;
    const embla_gpt_shape *shape;
    double loss;
} contents;

static void add(contents *c, const char *before, const char *name, const char *dtype, size_t size,
                int64_t rows, size_t dim, const void *values)
{
    tensor *t = &c->tensors[c->count];
    if (c->count++ == TENSORS) fail("a model with too many tensors");
    (void)snprintf(t->name, sizeof t->name, "%s%s", before, name);
    t->dtype = dtype;
    t->rows = rows;
    t->dim = dim;
    t->values = values;
    t->bytes = (size_t)rows * dim * size;
}

static void say_shape(FILE *file, const embla_gpt_shape *s, double loss)
{
    fprintf(file,
            "{\"__metadata__\":{\"loss\":\"%.17g\",\"layers\":\"%zu\",\"heads\":\"%zu\","
            "\"kv_heads\":\"%zu\",\"norm\":\"%d\",\"activation\":\"%d\",\"positions\":\"%d\","
            "\"epsilon\":\"%.17g\",\"theta\":\"%.17g\",\"rope_order\":\"%d\",\"first\":\"%d\","
            "\"last\":\"%d\"}",
            loss, s->layers, s->heads, s->kv_heads, (int)s->norm, (int)s->activation,
            (int)s->position_kind, s->norm_epsilon, s->rope_theta, (int)s->rope_order,
            s->norm_first, !s->no_norm_last);
}

/* Eight bytes for the length of the text before the numbers, which is known afterwards. */
static void write_contents(const contents *c, const char *path)
{
    FILE *file = fopen(path, "wb");
    uint64_t length = 0;
    size_t at = 0;
    if (!file) fail("the file cannot be made");
    fwrite(&length, sizeof length, 1, file);
    say_shape(file, c->shape, c->loss);
    for (size_t i = 0; i < c->count; i++) {
        const tensor *t = &c->tensors[i];
        fprintf(file,
                ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%" PRId64 ",%zu],"
                "\"data_offsets\":[%zu,%zu]}",
                t->name, t->dtype, t->rows, t->dim, at, at + t->bytes);
        at += t->bytes;
    }
    fprintf(file, "}");
    length = (uint64_t)ftell(file) - sizeof length;
    for (size_t i = 0; i < c->count; i++)
        fwrite(c->tensors[i].values, 1, c->tensors[i].bytes, file);
    fseek(file, 0, SEEK_SET);
    fwrite(&length, sizeof length, 1, file);
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) fail("the file cannot be written");
}

/* ---- a random model ---- */

static embla_gpt *make(const char *name)
{
    embla_gpt *gpt = NULL;
    uint64_t state = 5;
    must(embla_gpt_new(find(name), 7, 0.2, &gpt));
    for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++) {
        embla_gpt_tensor t;
        must(embla_gpt_tensor_at(gpt, n, &t));
        for (size_t i = 0; !t.decays && i < t.dim; i++)
            t.values[i] += ((float)draw(&state, 1001) - 500) / 1000;
    }
    return gpt;
}

static void learn(const char *name, const char *path)
{
    static contents c;
    static int32_t tokens[BATCH * LENGTH], targets[BATCH * LENGTH];
    embla_gpt *gpt = make(name);
    embla_loss_report report;
    uint64_t state = 9;
    uint32_t vocab = (uint32_t)gpt->shape.vocab;
    for (size_t i = 0; i < BATCH * LENGTH; i++) {
        tokens[i] = (int32_t)draw(&state, vocab);
        targets[i] = i % 7 == 3 ? EMBLA_TARGET_IGNORE : (int32_t)draw(&state, vocab);
    }
    must(embla_gpt_reserve(gpt, BATCH, LENGTH));
    embla_gpt_zero_gradients(gpt);
    must(embla_gpt_backward(
        gpt,
        &(embla_gpt_batch){.tokens = tokens, .targets = targets, .batch = BATCH, .length = LENGTH},
        NULL, &report));
    for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++) {
        embla_gpt_tensor t;
        must(embla_gpt_tensor_at(gpt, n, &t));
        add(&c, "", t.name, "F32", sizeof(float), t.rows, t.dim, t.values);
        add(&c, "d.", t.name, "F32", sizeof(float), t.rows, t.dim, t.gradient);
    }
    add(&c, "", "tokens", "I32", sizeof(int32_t), BATCH, LENGTH, tokens);
    add(&c, "", "targets", "I32", sizeof(int32_t), BATCH, LENGTH, targets);
    c.shape = &gpt->shape;
    c.loss = report.loss;
    write_contents(&c, path);
    embla_gpt_free(gpt);
}

/* ---- a saved model ---- */

static embla_gpt *open_model(const char *folder)
{
    embla_checkpoint *checkpoint = NULL;
    embla_gpt *gpt = NULL;
    must(embla_checkpoint_open(folder, NULL, &checkpoint));
    must(embla_gpt_open(checkpoint, &gpt));
    embla_checkpoint_free(checkpoint);
    return gpt;
}

/* The table that is the head: lm_head, or that of the tokens. */
static embla_gpt_tensor head_of(const embla_gpt *gpt)
{
    embla_gpt_tensor head = {0};
    const char *name = gpt->shape.untied ? "lm_head" : "wte";
    for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++) {
        must(embla_gpt_tensor_at(gpt, n, &head));
        if (strcmp(head.name, name) == 0) return head;
    }
    fail("a model without a head");
    return head;
}

/* Sums are f64: what is compared is the vector before the head. */
static float *times_head(const embla_gpt_tensor *head, const float *hidden, size_t count)
{
    size_t rows = (size_t)head->rows, dim = head->dim;
    const float *table = head->values;
    float *out = malloc(count * rows * sizeof *out);
    if (!out) fail("no memory");
    for (size_t t = 0; t < count; t++)
        for (size_t row = 0; row < rows; row++) {
            double sum = 0;
            for (size_t i = 0; i < dim; i++)
                sum += (double)hidden[t * dim + i] * table[row * dim + i];
            out[t * rows + row] = (float)sum;
        }
    return out;
}

/* The way of training, all tokens at once, and that of generating, one by one. */
static void logits(const char *folder, const char *path, int32_t *tokens, size_t count)
{
    static contents c;
    embla_gpt *gpt = open_model(folder);
    embla_gpt_tensor head = head_of(gpt);
    embla_decoder *decoder = NULL;
    float *hidden = malloc(count * head.dim * sizeof *hidden);
    if (!hidden) fail("no memory");
    must(embla_gpt_reserve(gpt, 1, count));
    must(embla_gpt_loss(
        gpt, &(embla_gpt_batch){.tokens = tokens, .targets = tokens, .batch = 1, .length = count},
        NULL, NULL));
    float *at_once = times_head(&head, embla_gpt_hidden(gpt), count);
    must(embla_decoder_new(gpt, count, &decoder));
    for (size_t t = 0; t < count; t++)
        must(embla_decoder_append(decoder, tokens + t, 1, &(embla_decoder_options){.threads = 1},
                                  hidden + t * head.dim));
    float *one_by_one = times_head(&head, hidden, count);
    add(&c, "", "logits", "F32", sizeof(float), (int64_t)count, (size_t)head.rows, at_once);
    add(&c, "", "decoded", "F32", sizeof(float), (int64_t)count, (size_t)head.rows, one_by_one);
    c.shape = &gpt->shape;
    write_contents(&c, path);
    free(one_by_one);
    free(at_once);
    free(hidden);
    embla_decoder_free(decoder);
    embla_gpt_free(gpt);
}

static void save(const char *name, const char *folder)
{
    embla_gpt *gpt = make(name);
    must(embla_gpt_save(gpt, folder, NULL));
    embla_gpt_free(gpt);
}

int main(int count, char **words)
{
    static int32_t tokens[TOKENS];
    if (count == 4 && strcmp(words[1], "learn") == 0) {
        learn(words[2], words[3]);
    } else if (count == 4 && strcmp(words[1], "save") == 0) {
        save(words[2], words[3]);
    } else if (count > 4 && count - 4 <= TOKENS && strcmp(words[1], "logits") == 0) {
        for (int i = 4; i < count; i++) tokens[i - 4] = (int32_t)strtol(words[i], NULL, 10);
        logits(words[2], words[3], tokens, (size_t)(count - 4));
    } else {
        fprintf(stderr, "gpt_numbers learn SHAPE FILE | save SHAPE FOLDER | "
                        "logits FOLDER FILE TOKEN..\n");
        return 1;
    }
    return 0;
}
