/* SPDX-License-Identifier: Apache-2.0 */
/* Texts to vectors: each thread tokenizes a text and averages the rows of its tokens at once, so
 * neither the tokens nor the rows of a batch are kept. The memory for tokenizing comes from a pool
 * in the encoder, so that a call needs no other handle.
 *
 * The sum is in float and in the order of the tokens, as in the libraries that static models come
 * from; table/row_mean.c says when it is in double.
 */
#include "encoder/encoder.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "base/utf8.h"
#include "table/row_mean.h"
#include "tokenizer/tokenize.h"

/* ---- rules ---- */

static const embla_compat_rules rules[] = {
    [EMBLA_COMPAT_AUTO] = {.name = "auto"},
    [EMBLA_COMPAT_MODEL2VEC] = {.name = "model2vec",
                                .drop_unknown = true,
                                .weighted = true,
                                .most = 512,
                                .limit_first = true,
                                .divisor = EMBLA_DIVISOR_ADD},
    [EMBLA_COMPAT_MODEL2VEC_RS] = {.name = "model2vec-rs",
                                   .drop_unknown = true,
                                   .weighted = true,
                                   .truncates = true,
                                   .pads = true,
                                   .most = 512,
                                   .divisor = EMBLA_DIVISOR_LEAST},
    [EMBLA_COMPAT_ST] = {.name = "st",
                         .weighted = true,
                         .truncates = true,
                         .divisor = EMBLA_DIVISOR_LEAST},
    [EMBLA_COMPAT_WORDLLAMA] = {.name = "wordllama", .clips = true},
    [EMBLA_COMPAT_TABLE] = {.name = "table", .weighted = true},
    [EMBLA_COMPAT_WORDS] = {.name = "words",
                            .drop_unknown = true,
                            .weighted = true,
                            .limit_first = true},
    [EMBLA_COMPAT_ST5] = {.name = "st5", .truncates = true, .divisor = EMBLA_DIVISOR_LEAST}};
enum { RULES = sizeof rules / sizeof rules[0] };

const embla_compat_rules *embla_compat_rules_of(embla_compat compat)
{
    return &rules[compat];
}

bool embla_compat_is_st(embla_compat compat)
{
    return compat == EMBLA_COMPAT_ST || compat == EMBLA_COMPAT_ST5;
}

const char *embla_compat_name(embla_compat compat)
{
    return (unsigned)compat < RULES ? rules[compat].name : NULL;
}

/* ---- one text ---- */

/* A call, with the defaults filled in. */
typedef struct {
    const embla_encoder *encoder;
    embla_row_mean mean;
    size_t most; /* tokens of a text; 0 means no limit */
    bool cuts;   /* a longer text is truncated; otherwise it is refused */
    bool unit;
} call;

/* The bytes of the first `most` characters. A byte that is not UTF-8 counts as one. */
static size_t cut_characters(const char *text, size_t length, size_t most)
{
    size_t at = 0;
    if (length <= most) return length;
    for (size_t n = 0; n < most && at < length; n++) {
        size_t bytes = embla_utf8_length(text + at, length - at);
        at += bytes > 0 ? bytes : 1;
    }
    return at;
}

/* Model2Vec cuts a long text by characters before it is tokenized. */
static size_t cut_text(const call *c, const char *text, size_t length)
{
    uint64_t product = 0;
    size_t most = 0;
    const size_t characters = c->encoder->characters;
    if (c->most == 0 || !c->cuts || characters == 0 || !c->encoder->asked) return length;
    if (!embla_mul_ok(c->most, characters, &product) || !embla_size_ok(product, &most))
        return length;
    return cut_characters(text, length, most);
}

/* Leaves out unknown tokens and clips those without a row. Returns how many are left. */
static size_t select_tokens(const embla_encoder *encoder, int32_t *tokens, size_t count)
{
    const int32_t unknown = encoder->tokenizer->unknown;
    const int64_t limit = embla_table_tokens(encoder->table);
    size_t kept = 0;
    if (encoder->rules.drop_unknown && unknown >= 0) {
        for (size_t i = 0; i < count; i++) {
            tokens[kept] = tokens[i];
            kept += tokens[i] != unknown;
        }
        count = kept;
    }
    for (size_t i = 0; encoder->rules.clips && i < count; i++)
        if (tokens[i] >= limit) tokens[i] = (int32_t)(limit - 1);
    return count;
}

static void normalize(const embla_encoder *encoder, size_t dim, float *out)
{
    double norm = embla_norm(out, dim);
    if (encoder->rules.divisor == EMBLA_DIVISOR_ADD)
        norm += 1e-32;
    else if (norm < 1e-12)
        norm = 1e-12;
    for (size_t i = 0; i < dim; i++) out[i] = (float)((double)out[i] / norm);
}

/* Applies the limit to the first *count tokens. */
static embla_status apply_limit(const call *c, size_t number, size_t *count, bool *truncated)
{
    if (c->most == 0 || *count <= c->most) return EMBLA_OK;
    if (!c->cuts)
        return embla_fail(EMBLA_ERR_RANGE, "text %zu has %zu tokens; the limit is %zu", number,
                          *count, c->most);
    *count = c->most;
    *truncated = true;
    return EMBLA_OK;
}

static embla_status encode_text(const call *c, embla_tokenized *w, const char *text, size_t length,
                                size_t number, float *out, embla_encoded *detail)
{
    const embla_encoder *encoder = c->encoder;
    const size_t dim = c->mean.dim, part = cut_text(c, text, length);
    w->count = w->cut = 0;
    EMBLA_TRY(embla_tokenize_one(w, text, part));
    embla_encoded result = {.truncated = part < length || w->cut > 0};
    size_t all = w->count;
    if (encoder->rules.limit_first) EMBLA_TRY(apply_limit(c, number, &all, &result.truncated));
    size_t count = all;
    if (encoder->subwords)
        EMBLA_TRY(embla_encoder_word_mean(encoder, &c->mean, w, text, &count, out));
    else
        count = select_tokens(encoder, w->tokens, all);
    result.unknown = all - count;
    EMBLA_TRY(apply_limit(c, number, &count, &result.truncated));
    result.tokens = count;
    if (count == 0) {
        memset(out, 0, dim * sizeof *out);
    } else {
        if (!encoder->subwords) embla_row_mean_write(&c->mean, w->tokens, count, out);
        if (encoder->scale != 1.0)
            for (size_t i = 0; i < dim; i++) out[i] = (float)(out[i] * encoder->scale);
        embla_encoder_remove(encoder, out);
        if (c->unit) normalize(encoder, dim, out);
    }
    if (detail) *detail = result;
    return EMBLA_OK;
}

/* ---- a batch ---- */

typedef struct {
    const call *call;
    embla_tokenized *const *workers; /* one for each slot */
    const embla_texts *texts;
    float *out;
    embla_encoded *details; /* NULL means none */
} batch;

static embla_status encode_some(void *job, size_t first, size_t end, size_t slot)
{
    const batch *b = job;
    embla_tokenized *w = b->workers[slot];
    w->bound.caller = embla_share_is_caller();
    for (size_t i = first; i < end; i++) {
        const size_t length = b->texts->lengths[i];
        EMBLA_TRY(encode_text(b->call, w, b->texts->texts[i], length, i,
                              b->out + i * b->call->mean.dim, b->details ? &b->details[i] : NULL));
        EMBLA_TRY(embla_encode_done(w, length));
    }
    return EMBLA_OK;
}

static embla_status encode_all(const call *c, embla_tokenized *e, const embla_texts *texts,
                               float *out, embla_encoded *details)
{
    size_t bytes = 0;
    EMBLA_TRY(embla_texts_check(texts, &bytes));
    int threads = embla_threads_for(e->options.threads, bytes * 16);
    e->watch.total = (int64_t)bytes;
    EMBLA_TRY(embla_encode_workers(e, (size_t)threads));
    const batch b = {
        .call = c, .workers = e->workers, .texts = texts, .out = out, .details = details};
    return embla_share(threads, texts->count, EMBLA_TEXTS_AT_ONCE, encode_some, &b);
}

static embla_status check(const embla_encoder *encoder, const embla_texts *texts,
                          const embla_encode_options *o, const float *out)
{
    const size_t dim = embla_table_dim(encoder->table);
    if (texts->count > 0 && !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu texts to encode, but out is NULL", texts->count);
    if (o->dim > dim)
        return embla_fail(EMBLA_ERR_SHAPE, "a dim of %zu was asked for; the model has %zu", o->dim,
                          dim);
    if (o->dim > 0 && o->dim < dim && encoder->component_count > 0)
        return embla_fail(
            EMBLA_ERR_SHAPE,
            "a dim of %zu was asked for, but the components that were fitted have %zu "
            "numbers: fit and encode with the same dim",
            o->dim, dim);
    if ((unsigned)o->normalize > EMBLA_NORMALIZE_NO)
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown kind %d of normalize; kinds are 0 to %d",
                          (int)o->normalize, (int)EMBLA_NORMALIZE_NO);
    return EMBLA_OK;
}

static call plan(const embla_encoder *encoder, const embla_encode_options *o)
{
    const size_t limit = encoder->asked ? encoder->rules.most : 0;
    return (call){.encoder = encoder,
                  .mean = embla_row_mean_of(encoder->table,
                                            o->dim > 0 ? o->dim : embla_table_dim(encoder->table),
                                            encoder->weights),
                  .most = o->max_tokens > 0 ? o->max_tokens : limit,
                  .cuts = o->max_tokens == 0 || o->truncate,
                  .unit = o->normalize == EMBLA_NORMALIZE_YES ||
                          (o->normalize == EMBLA_NORMALIZE_MODEL && encoder->normalize)};
}

/* ---- the pool ---- */

/* A slot owns the memory of a call that has ended. To put it there releases what the call wrote; to
 * take it (an exchange, so that one thread gets it) acquires that. Looking first is relaxed: a slot
 * that is seen too late only costs an allocation. */

embla_status embla_encoder_pool_new(embla_encoder_pool **out)
{
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(sizeof(embla_encoder_pool), "the pool of an encoder", &memory));
    embla_encoder_pool *pool = memory;
    for (size_t i = 0; i < EMBLA_ENCODER_SLOTS; i++) atomic_init(&pool->slots[i], NULL);
    *out = pool;
    return EMBLA_OK;
}

void embla_encoder_pool_free(embla_encoder_pool *pool)
{
    if (!pool) return;
    for (size_t i = 0; i < EMBLA_ENCODER_SLOTS; i++)
        embla_tokenized_free(atomic_exchange(&pool->slots[i], NULL));
    embla_mem_free(pool, sizeof *pool);
}

/* A slot that is free is only read: threads that find nothing do not take its cache line from each
 * other. */
static embla_status take(const embla_encoder *encoder, embla_tokenized **out)
{
    embla_encoder_pool *pool = encoder->pool;
    for (size_t i = 0; i < EMBLA_ENCODER_SLOTS; i++) {
        if (!atomic_load_explicit(&pool->slots[i], memory_order_relaxed)) continue;
        *out = atomic_exchange_explicit(&pool->slots[i], NULL, memory_order_acquire);
        if (*out) return EMBLA_OK;
    }
    return embla_tokenized_new(encoder->tokenizer, out);
}

static void give_back(embla_encoder_pool *pool, embla_tokenized *tokenized)
{
    for (size_t i = 0; i < EMBLA_ENCODER_SLOTS; i++) {
        embla_tokenized *none = NULL;
        if (!atomic_load_explicit(&pool->slots[i], memory_order_relaxed) &&
            atomic_compare_exchange_strong_explicit(&pool->slots[i], &none, tokenized,
                                                    memory_order_release, memory_order_relaxed))
            return;
    }
    embla_tokenized_free(tokenized);
}

/* ---- the call ---- */

static embla_status encode_with(embla_tokenized *tokenized, const embla_encoder *encoder,
                                const embla_texts *texts, const embla_encode_options *options,
                                float *out, embla_encoded *details)
{
    const call c = plan(encoder, options);
    const embla_tokenize_options how = {.plain = options->plain,
                                        .strict = options->strict,
                                        .offsets = encoder->subwords != NULL,
                                        .truncate = encoder->asked && encoder->rules.truncates,
                                        .pad = encoder->rules.pads,
                                        .threads = options->threads,
                                        .progress = options->progress,
                                        .context = options->context};
    EMBLA_TRY(embla_tokenize_begin(tokenized, &how));
    EMBLA_TRY(embla_table_check_file(encoder->table));
    EMBLA_TRY(encode_all(&c, tokenized, texts, out, details));
    EMBLA_TRY(embla_tokenizer_check(encoder->tokenizer));
    return embla_table_check_file(encoder->table);
}

embla_status embla_encoder_encode(const embla_encoder *encoder, const embla_texts *texts,
                                  const embla_encode_options *options, float *out,
                                  embla_encoded *details)
{
    const embla_encode_options defaults = {0};
    embla_tokenized *tokenized = NULL;
    EMBLA_TRY(embla_options_check(options));
    EMBLA_NEED(encoder);
    EMBLA_NEED(texts);
    EMBLA_TRY(embla_options_check(texts));
    if (!options) options = &defaults;
    EMBLA_TRY(check(encoder, texts, options, out));
    EMBLA_TRY(take(encoder, &tokenized));
    embla_status status = encode_with(tokenized, encoder, texts, options, out, details);
    give_back(encoder->pool, tokenized);
    return status;
}
