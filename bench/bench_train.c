/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench train: one training step (a batch, forward, backward, clip, AdamW) in tokens per
 * second.
 *
 * A case is MODEL/BATCHxLENGTH/COMPUTE. Its limit is the necessary work: the bare products of its
 * linear layers and its head, one forward and two backward each, by the same engine on the same
 * threads, with factors of the compute dtype (f32 if the CPU cannot multiply bf16). Attention,
 * norms, softmax and the optimizer are not included. The products of microgpt are too small for an
 * engine: its limit is plain loops, and it runs on one thread.
 *
 * The corpus is random: token k has probability proportional to 1 / (k + 1). It is written to a
 * temporary folder ($TMPDIR, or /tmp) that is removed at the end.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/cases.h"
#include "bench/measure.h"
#include "bench/products.h"
#include "embla_train.h"

enum {
    TOKENS = 1 << 17,        /* of the corpus */
    NAME = 7,                /* letters of a name: 8 tokens including BOS */
    LOGITS_MOST = 256 << 20, /* bytes, for the bare products of the head */
    MATRICES = 64,           /* of a model */
    MEAN = 64                /* maximum number of steps over which losses are averaged */
};

typedef struct {
    const char *name, *preset;
    size_t batch, length, turns, calls; /* calls: steps of a turn */
    size_t dim, layers, heads;          /* 0 means that of the preset */
    int64_t vocab;
    embla_dtype compute;
    bool small;
} model;

static const model models[] = {
    {"gpt2/4x64/f32", "gpt2", 4, 64, 5, 1, 0, 0, 0, 50257, EMBLA_F32, false},
    {"gpt2/1x1024/f32", "gpt2", 1, 1024, 3, 1, 0, 0, 0, 50257, EMBLA_F32, false},
    {"gpt2/4x64/bf16", "gpt2", 4, 64, 5, 1, 0, 0, 0, 50257, EMBLA_BF16, false},
    {"gpt2/1x1024/bf16", "gpt2", 1, 1024, 3, 1, 0, 0, 0, 50257, EMBLA_BF16, false},
    {"gpt2-256x6/8x256/f32", "gpt2-mini", 8, 256, 7, 1, 256, 6, 4, 256, EMBLA_F32, false},
    {"nano/12x64/f32", "gpt2-mini", 12, 64, 11, 8, 128, 4, 4, 65, EMBLA_F32, false},
    {"microgpt/1x8/f32", "microgpt", 1, 8, 21, 500, 0, 0, 0, 27, EMBLA_F32, true},
};
enum { MODELS = sizeof models / sizeof models[0] };

/* A linear layer: out x in. */
typedef struct {
    size_t out, in;
    const float *weights;
    const uint16_t *weights16; /* of bf16 */
    bench_bare *bare;          /* of bf16 */
} matrix;

typedef struct {
    const model *model;
    int threads;
    embla_gpt *gpt;
    embla_corpus *corpus;
    embla_train *train;
    double losses[MEAN];
    size_t steps;
    matrix matrices[MATRICES];
    size_t count, block; /* matrices; tokens of the head at a time */
    float *x, *y, *dx, *dw;
    uint16_t *x16, *y16, *all16; /* bf16: inputs, outputs, all weights; NULL for f32 */
    bool failed;
} bench_case;

#define ALL_INLINE static inline __attribute__((always_inline))

/* ---- the corpus ---- */

static const char *path; /* of the temporary file */

/* The token format of llm.c: a header of 256 numbers of 4 bytes, three of them used, then 2 bytes
 * for each token. */
static bool write_tokens(FILE *file, const int32_t *tokens)
{
    int32_t header[256] = {20240520, 1, TOKENS};
    uint16_t narrow[1024];
    bool good = fwrite(header, sizeof header, 1, file) == 1;
    for (size_t i = 0; i < TOKENS && good; i += 1024) {
        for (size_t j = 0; j < 1024; j++) narrow[j] = (uint16_t)tokens[i + j];
        good = fwrite(narrow, sizeof narrow, 1, file) == 1;
    }
    return good;
}

/* Writes each letter of the alphabet once, so that all of them are tokens. */
static bool write_names(FILE *file, const int32_t *tokens)
{
    bool good = fputs("abcdefg\nhijklmn\nopqrstu\nvwxyzab\n", file) >= 0;
    for (size_t i = 0; i + NAME <= TOKENS / 8 && good; i += NAME) {
        char line[NAME + 1];
        for (size_t j = 0; j < NAME; j++) line[j] = (char)('a' + tokens[i + j]);
        line[NAME] = '\n';
        good = fwrite(line, sizeof line, 1, file) == 1;
    }
    return good;
}

static bool make_file(const model *m)
{
    int32_t *tokens = malloc(TOKENS * sizeof *tokens);
    path = bench_file("corpus");
    FILE *file = path && tokens ? fopen(path, "wbx") : NULL;
    bool good = file && bench_tokens(true, m->small ? 26 : m->vocab, TOKENS, tokens);
    good = good && (m->small ? write_names : write_tokens)(file, tokens);
    if (file && fclose(file) != 0) good = false;
    free(tokens);
    return good;
}

/* ---- a step ---- */

static void run_step(void *context, size_t step)
{
    bench_case *c = context;
    embla_train_report report;
    (void)step;
    if (embla_train_step(c->train, &report) != EMBLA_OK || report.skipped) {
        c->failed = true;
        return;
    }
    c->losses[c->steps++ % MEAN] = report.loss;
}

/* The mean of the latest losses. */
static double mean_loss(const bench_case *c, size_t most)
{
    size_t n = c->steps < most ? c->steps : most;
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += c->losses[(c->steps - 1 - i) % MEAN];
    return n > 0 ? sum / (double)n : NAN;
}

/* ---- the limit ---- */

static bench_layer layer_bf16(const bench_case *c, const matrix *m)
{
    return (bench_layer){.n = c->model->batch * c->model->length,
                         .out = m->out,
                         .in = m->in,
                         .x = c->x16,
                         .w = m->weights16,
                         .y = c->y,
                         .dy = c->y16,
                         .dx = c->dx,
                         .dw = c->dw};
}

static void run_products_bf16(void *context, size_t step)
{
    bench_case *c = context;
    (void)step;
    for (size_t i = 0; i < c->count; i++)
        if (!bench_bare_run(c->matrices[i].bare)) c->failed = true;
}

/* The three products of a matrix for n tokens; the logits of the head are computed in blocks. */
static void run_products(void *context, size_t step)
{
    bench_case *c = context;
    size_t n = c->model->batch * c->model->length;
    (void)step;
    for (size_t i = 0; i < c->count; i++) {
        const matrix *m = &c->matrices[i];
        size_t most = m->out == (size_t)c->model->vocab ? c->block : n;
        for (size_t at = 0; at < n; at += most) {
            size_t some = n - at < most ? n - at : most;
            const bench_layer layer = {.n = some,
                                       .out = m->out,
                                       .in = m->in,
                                       .x = c->x + at * m->in,
                                       .w = m->weights,
                                       .y = c->y,
                                       .dy = c->y,
                                       .dx = c->dx,
                                       .dw = c->dw};
            if (!bench_layer_run(&layer)) c->failed = true;
        }
    }
}

/* out (m x n) = a (m x k, strides) times b (k x n, strides). */
ALL_INLINE void loops(const float *a, size_t a_row, size_t a_deep, const float *b, size_t m,
                      size_t n, size_t k, float *out)
{
    for (size_t i = 0; i < m; i++) {
        float *restrict to = out + i * n;
        for (size_t j = 0; j < n; j++) to[j] = 0;
        for (size_t p = 0; p < k; p++) {
            float factor = a[i * a_row + p * a_deep];
            for (size_t j = 0; j < n; j++) to[j] += factor * b[p * n + j];
        }
    }
}

ALL_INLINE void transpose(const float *w, size_t rows, size_t columns, float *out)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) out[j * rows + i] = w[i * columns + j];
}

ALL_INLINE void every_loop(bench_case *c)
{
    size_t n = c->model->batch * c->model->length;
    for (size_t i = 0; i < c->count; i++) {
        const matrix *m = &c->matrices[i];
        transpose(m->weights, m->out, m->in, c->dw);
        loops(c->x, m->in, 1, c->dw, n, m->out, m->in, c->y);
        loops(c->y, m->out, 1, m->weights, n, m->in, m->out, c->dx);
        loops(c->y, 1, m->out, c->x, m->out, m->in, n, c->dw);
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void every_loop_avx2(bench_case *c)
{
    every_loop(c);
}
#endif

static void run_loops(void *context, size_t step)
{
    (void)step;
#if defined(__x86_64__)
    if (bench_has_avx2()) {
        every_loop_avx2(context);
        return;
    }
#endif
    every_loop(context);
}

/* Finds the matrix with this name; q, k and v are adjacent and count as one. */
static void add_matrix(bench_case *c, size_t layer, const char *part, size_t out, size_t in)
{
    char name[64];
    embla_gpt_tensor tensor;
    if (part)
        (void)snprintf(name, sizeof name, "layer%zu.%s", layer, part);
    else
        (void)snprintf(name, sizeof name, "wte");
    for (size_t i = 0; i < embla_gpt_tensor_count(c->gpt); i++)
        if (embla_gpt_tensor_at(c->gpt, i, &tensor) == EMBLA_OK && strcmp(tensor.name, name) == 0 &&
            tensor.dim == in && c->count < MATRICES) {
            c->matrices[c->count++] = (matrix){.out = out, .in = in, .weights = tensor.values};
            return;
        }
    c->failed = true;
}

/* Returns false if there is not enough memory. */
static bool make_limit(bench_case *c)
{
    embla_gpt_shape shape, *s = &shape;
    if (embla_gpt_describe(c->gpt, &shape) != EMBLA_OK) return false;
    size_t n = c->model->batch * c->model->length, vocab = (size_t)s->vocab;
    size_t wide = s->hidden > 3 * s->dim ? s->hidden : 3 * s->dim;
    c->block = LOGITS_MOST / (vocab * sizeof(float));
    if (c->block > n) c->block = n;
    for (size_t i = 0; i < s->layers; i++) {
        add_matrix(c, i, "attn.q", 3 * s->dim, s->dim);
        add_matrix(c, i, "attn.o", s->dim, s->dim);
        add_matrix(c, i, "mlp.up", s->hidden, s->dim);
        add_matrix(c, i, "mlp.down", s->dim, s->hidden);
    }
    add_matrix(c, 0, NULL, vocab, s->dim);
    size_t logits = c->block * vocab > n * wide ? c->block * vocab : n * wide;
    size_t largest = vocab > wide ? vocab * s->dim : wide * s->dim;
    c->x = bench_memory(n * wide * sizeof(float));
    c->dx = bench_memory(n * wide * sizeof(float));
    c->y = bench_memory(logits * sizeof(float));
    c->dw = bench_memory(largest * sizeof(float));
    for (size_t i = 0; c->x && i < n * wide; i++) c->x[i] = (float)(i % 1009) * 1e-3f - 0.5f;
    return c->x && c->dx && c->y && c->dw;
}

/* Creates the factors of the bare bf16 products. Returns false if there is not enough memory. */
static bool make_limit_bf16(bench_case *c)
{
    size_t n = c->model->batch * c->model->length, numbers = 0, x = 0, y = 0;
    if (c->model->compute != EMBLA_BF16 || !bench_has_bf16()) return true;
    for (size_t i = 0; i < c->count; i++) {
        const matrix *m = &c->matrices[i];
        numbers += m->out * m->in;
        x = m->in > x ? m->in : x;
        y = m->out > y ? m->out : y;
    }
    if (y > c->block * (size_t)c->model->vocab / n) y = c->block * (size_t)c->model->vocab / n;
    c->x16 = bench_memory(n * x * sizeof *c->x16);
    c->y16 = bench_memory(n * y * sizeof *c->y16);
    c->all16 = bench_memory(numbers * sizeof *c->all16);
    if (!c->x16 || !c->y16 || !c->all16) return false;
    bench_bf16(c->x, n * x, c->x16);
    for (size_t i = 0, from = 0; i < n * y; i++) {
        c->y16[i] = c->x16[from];
        from = from + 1 < n * x ? from + 1 : 0;
    }
    uint16_t *to = c->all16;
    for (size_t i = 0; i < c->count; i++) {
        matrix *m = &c->matrices[i];
        bench_bf16(m->weights, m->out * m->in, to);
        m->weights16 = to;
        to += m->out * m->in;
    }
    for (size_t i = 0; i < c->count; i++) {
        const bench_layer layer = layer_bf16(c, &c->matrices[i]);
        c->matrices[i].bare = bench_bare_new(&layer, y, c->threads);
        if (!c->matrices[i].bare) return false;
    }
    return true;
}

/* ---- a case ---- */

/* An untrained model predicts all tokens equally: the loss is ln(vocab), and a little more for the
 * spread of its logits. After the timed steps it knows which tokens are likely. */
static bool is_right(const bench_case *c, double first)
{
    double blind = log((double)c->model->vocab);
    return !c->failed && first > blind - 0.5 && first < blind + 1.5 &&
           mean_loss(c, c->model->small ? MEAN : 1) < first &&
           embla_train_steps(c->train) == (int64_t)c->steps;
}

static int run_case(bench_case *c, const bench_options *options)
{
    const model *m = c->model;
    for (size_t i = 0; i < (m->small ? MEAN : 1); i++) run_step(c, 0);
    double first = mean_loss(c, MEAN), tokens = (double)(m->batch * m->length);
    bench_fn *limit = m->small ? run_loops : c->all16 ? run_products_bf16 : run_products;
    bench_times times = bench_measure_team(run_step, limit, c, m->turns, m->calls, c->threads);
    if (!is_right(c, first)) {
        options->complain("bench train: %s: loss %g, then %g: wrong, or: %s", m->name, first,
                          mean_loss(c, MEAN), embla_error());
        return 1;
    }
    bench_result result = {.bench = "train",
                           .name = m->name,
                           .threads = c->threads,
                           .unit = "token/s",
                           .limit_is = m->small   ? "bare products, loops"
                                       : c->all16 ? "bare bf16 products"
                                                  : "bare products",
                           .value = tokens / times.seconds,
                           .limit = tokens / times.limit_seconds};
    bench_print(options, &result);
    return 0;
}

static embla_status make_training(bench_case *c)
{
    const model *m = c->model;
    embla_gpt_preset preset;
    const embla_corpus_options corpus = {.kind = m->small ? EMBLA_CORPUS_CHARACTERS
                                                          : EMBLA_CORPUS_TOKENS,
                                         .documents = m->small,
                                         .validation = -1};
    embla_status status = embla_gpt_preset_find(m->preset, &preset);
    embla_gpt_shape *s = &preset.shape;
    const embla_train_options train = {.batch = m->batch,
                                       .length = m->length,
                                       .schedule = {.rate = 1e-3},
                                       .beta1 = preset.beta1,
                                       .beta2 = preset.beta2,
                                       .decay = preset.decay,
                                       .clip = preset.clip,
                                       .compute = m->compute,
                                       .threads = c->threads};
    s->vocab = m->vocab;
    s->dropout = 0;
    if (m->dim > 0) s->dim = m->dim, s->hidden = 0, s->positions = m->length;
    if (m->layers > 0) s->layers = m->layers;
    if (m->heads > 0) s->heads = s->kv_heads = m->heads;
    if (status == EMBLA_OK) status = embla_corpus_open(path, &corpus, &c->corpus);
    if (status == EMBLA_OK) status = embla_gpt_new(s, 1, preset.spread, &c->gpt);
    if (status == EMBLA_OK) status = embla_train_new(c->gpt, c->corpus, &train, &c->train);
    return status;
}

/* Runs all cases of one model. Without enough memory, prints a message and no figure. */
static int run_model(const model *m, int threads, const bench_options *options)
{
    bench_case c = {.model = m, .threads = threads};
    int exit_code = 1;
    bool written = make_file(m);
    embla_status status = written ? make_training(&c) : EMBLA_OK;
    if (!written) {
        options->complain("bench train: no corpus could be written: %s", strerror(errno));
    } else if (status == EMBLA_ERR_MEMORY ||
               (status == EMBLA_OK && !(make_limit(&c) && make_limit_bf16(&c)))) {
        options->complain("bench train: no memory for %s: left out", m->name);
        exit_code = 0;
    } else if (status != EMBLA_OK) {
        options->complain("bench train: %s: %s", m->name, embla_error());
    } else {
        exit_code = run_case(&c, options);
    }
    for (size_t i = 0; i < c.count; i++) bench_bare_free(c.matrices[i].bare);
    embla_train_free(c.train);
    embla_gpt_free(c.gpt);
    embla_corpus_free(c.corpus);
    free(c.all16);
    free(c.y16);
    free(c.x16);
    free(c.dw);
    free(c.y);
    free(c.dx);
    free(c.x);
    bench_file_drop();
    return exit_code;
}

int bench_train(const bench_options *options)
{
    bench_cases cases;
    int exit_code = bench_begin("train", options, &cases);
    if (exit_code != 0) return exit_code;
    for (size_t i = 0; i < MODELS && exit_code == 0; i++) {
        const bench_teams teams =
            bench_teams_for(options, models[i].small ? BENCH_ALONE : BENCH_TWO);
        if (!bench_wants(&cases, models[i].name, true)) continue;
        for (size_t t = 0; t < teams.count && exit_code == 0; t++)
            exit_code = run_model(&models[i], teams.threads[t], options);
    }
    return bench_end(&cases, exit_code);
}
