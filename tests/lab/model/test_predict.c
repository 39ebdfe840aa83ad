/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions, held against their definitions: logits against embla_head_logits and against
 * products in double, probabilities against a softmax in double, and the weights of attention
 * against a model in double (reference_gpt.h), in every kind of shape.
 */
#include "gpt_models.h"
#include "reference_gpt.h"

#include "base/mem.h"
#include "embla_train.h"
#include "model/decoder.h"

enum { VOCAB = 29, LENGTH = 80, DIM = 24, HEADS = 16 };

/* ---- shapes ---- */

static embla_gpt_shape gpt2_like(void)
{
    return (embla_gpt_shape){.vocab = VOCAB,
                             .dim = DIM,
                             .layers = 3,
                             .heads = 3,
                             .hidden = 60,
                             .positions = LENGTH,
                             .biases = true};
}

static embla_gpt_shape llama_like(void)
{
    return (embla_gpt_shape){.vocab = VOCAB,
                             .dim = DIM,
                             .layers = 2,
                             .heads = 6,
                             .kv_heads = 2,
                             .hidden = 44,
                             .positions = LENGTH,
                             LLAMA_KIND,
                             .rope_order = EMBLA_ROPE_ORDER_HALF_SPLIT,
                             .untied = true};
}

static embla_gpt_shape shape_of(size_t n)
{
    embla_gpt_shape s = n == 1 || n == 3 ? llama_like() : gpt2_like();
    if (n == 2)
        s = (embla_gpt_shape){
            .vocab = VOCAB, .dim = 16, .layers = 1, .heads = 4, .positions = LENGTH, MICROGPT_KIND};
    if (n == 3) s.rope_order = EMBLA_ROPE_ORDER_INTERLEAVED, s.kv_heads = 1;
    return s;
}

enum { SHAPES = 4 };

static void tokens_of(uint64_t seed, size_t count, int32_t *out)
{
    for (size_t i = 0; i < count; i++) out[i] = (int32_t)check_below(&seed, VOCAB);
}

/* The logits after `count` tokens, and their softmax at a temperature, in double. */
static void expect(const embla_gpt *gpt, const int32_t *tokens, size_t count, double temperature,
                   float *logits, double *log_probability)
{
    embla_decoder *d = NULL;
    embla_head head;
    float hidden[DIM];
    double sum = 0;
    assert_ok(embla_decoder_new(gpt, count, &d));
    assert_ok(embla_decoder_head(d, &head));
    assert_ok(embla_decoder_append(d, tokens, count, NULL, hidden));
    assert_ok(embla_head_logits(&head, hidden, 1, NULL, logits));
    for (size_t i = 0; i < VOCAB; i++) sum += exp((double)logits[i] / temperature);
    for (size_t i = 0; i < VOCAB; i++)
        log_probability[i] = (double)logits[i] / temperature - log(sum);
    embla_decoder_free(d);
}

/* ---- the next token ---- */

static void the_next_tokens_are_those_of_the_head_and_a_softmax(void **state)
{
    static const double temperatures[] = {0, 1, 0.25, 7};
    (void)state;
    for (size_t n = 0; n < SHAPES; n++)
        for (size_t t = 0; t < COUNT_OF(temperatures); t++) {
            embla_gpt_shape shape = shape_of(n);
            embla_gpt *gpt = random_gpt(&shape, 5);
            embla_prediction next[VOCAB];
            embla_predict_results results = {.next = next};
            double log_probability[VOCAB], temperature = temperatures[t], sum = 0;
            float logits[VOCAB];
            int32_t tokens[LENGTH];
            size_t count = n == 0 ? LENGTH : 1 + 7 * n;
            tokens_of(n, count, tokens);
            expect(gpt, tokens, count, temperature > 0 ? temperature : 1, logits, log_probability);
            assert_ok(embla_gpt_predict(
                gpt, tokens, count,
                &(embla_predict_options){.temperature = temperature, .top = VOCAB}, &results));
            for (size_t i = 0; i < VOCAB; i++) {
                const int32_t token = next[i].token;
                assert_in_range(token, 0, VOCAB - 1);
                assert_memory_equal(&next[i].logit, &logits[token], sizeof(float));
                assert_near(next[i].log_probability, log_probability[token], 1e-9);
                assert_int_equal(next[i].rank, i + 1);
                if (i > 0) assert_true(next[i].logit <= next[i - 1].logit);
                sum += exp(next[i].log_probability);
            }
            assert_near(sum, 1, 1e-9);
            embla_gpt_free(gpt);
        }
}

static void equal_logits_are_in_the_order_of_tokens(void **state)
{
    embla_gpt_shape shape = llama_like();
    embla_gpt *gpt = random_gpt(&shape, 5);
    embla_gpt_tensor head = {0};
    embla_prediction next[VOCAB], asked[2];
    embla_predict_results results = {.next = next, .asked = asked};
    const int32_t tokens[] = {1, 2, 3}, twins[] = {20, 4};
    (void)state;
    for (size_t i = 0;
         i < embla_gpt_tensor_count(gpt) && strcmp(head.name ? head.name : "", "lm_head"); i++)
        assert_ok(embla_gpt_tensor_at(gpt, i, &head));
    memcpy(head.values + 20 * DIM, head.values + 4 * DIM, DIM * sizeof(float));
    assert_ok(embla_gpt_predict(
        gpt, tokens, 3, &(embla_predict_options){.top = VOCAB, .asked = twins, .asked_count = 2},
        &results));
    assert_true(asked[0].logit == asked[1].logit);
    assert_int_equal(asked[0].rank, asked[1].rank + 1);
    for (size_t i = 0; i < 2; i++)
        assert_memory_equal(&next[asked[i].rank - 1], &asked[i], sizeof asked[i]);
    embla_gpt_free(gpt);
}

static void a_temperature_changes_probabilities_and_no_rank(void **state)
{
    embla_gpt_shape shape = gpt2_like();
    embla_gpt *gpt = random_gpt(&shape, 5);
    embla_prediction cold[VOCAB], warm[VOCAB];
    int32_t tokens[9];
    (void)state;
    tokens_of(3, 9, tokens);
    assert_ok(embla_gpt_predict(gpt, tokens, 9,
                                &(embla_predict_options){.top = VOCAB, .temperature = 1e-200},
                                &(embla_predict_results){.next = cold}));
    assert_ok(embla_gpt_predict(gpt, tokens, 9,
                                &(embla_predict_options){.top = VOCAB, .temperature = 1e200},
                                &(embla_predict_results){.next = warm}));
    for (size_t i = 0; i < VOCAB; i++) {
        assert_int_equal(cold[i].token, warm[i].token);
        assert_true(cold[i].logit == warm[i].logit);
        assert_near(exp(warm[i].log_probability), 1.0 / VOCAB, 1e-12);
        assert_near(exp(cold[i].log_probability), i == 0 ? 1 : 0, 1e-12);
    }
    embla_gpt_free(gpt);
}

/* ---- the tokens of a text ---- */

/* The vectors of all tokens by the way of training, and the head in double. */
static void each_token_has_its_probability_after_those_before_it(void **state)
{
    (void)state;
    for (size_t n = 0; n < SHAPES; n++) {
        embla_gpt_shape shape = shape_of(n);
        embla_gpt *gpt = random_gpt(&shape, 5);
        embla_prediction each[LENGTH];
        embla_predict_results results = {.each = each, .loss = -1};
        int32_t tokens[LENGTH];
        double loss = 0;
        tokens_of(n + 30, LENGTH, tokens);
        assert_ok(embla_gpt_reserve(gpt, 1, LENGTH));
        assert_ok(embla_gpt_loss(
            gpt,
            &(embla_gpt_batch){.tokens = tokens, .targets = tokens, .batch = 1, .length = LENGTH},
            NULL, NULL));
        const float *hidden = embla_gpt_hidden(gpt);
        const float *head = embla_gpt_weight(gpt, embla_gpt_head_slot(gpt));
        assert_ok(embla_gpt_predict(gpt, tokens, LENGTH, NULL, &results));
        assert_int_equal(each[0].token, tokens[0]);
        assert_true(each[0].rank == 0 && each[0].logit == 0 && each[0].log_probability == 0);
        for (size_t i = 1; i < LENGTH; i++) {
            double logits[VOCAB], sum = 0, log_probability;
            int64_t above = 0, near = 0;
            for (size_t v = 0; v < VOCAB; v++) {
                logits[v] = 0;
                for (size_t k = 0; k < shape.dim; k++)
                    logits[v] +=
                        (double)hidden[(i - 1) * shape.dim + k] * (double)head[v * shape.dim + k];
                sum += exp(logits[v]);
            }
            for (size_t v = 0; v < VOCAB; v++) {
                above += logits[v] > logits[tokens[i]];
                near += fabs(logits[v] - logits[tokens[i]]) < 1e-4;
            }
            log_probability = logits[tokens[i]] - log(sum);
            assert_int_equal(each[i].token, tokens[i]);
            assert_near((double)each[i].logit, logits[tokens[i]], 1e-4);
            assert_near(each[i].log_probability, log_probability, 1e-4);
            if (near == 1) assert_int_equal(each[i].rank, above + 1);
            loss -= log_probability / (LENGTH - 1);
        }
        assert_near(results.loss, loss, 1e-5);
        embla_gpt_free(gpt);
    }
}

static void one_token_has_no_loss(void **state)
{
    embla_gpt_shape shape = gpt2_like();
    embla_gpt *gpt = random_gpt(&shape, 5);
    embla_prediction each;
    embla_predict_results results = {.each = &each, .loss = -1};
    (void)state;
    assert_ok(embla_gpt_predict(gpt, &(int32_t){7}, 1, NULL, &results));
    assert_true(results.loss == 0 && each.token == 7 && each.rank == 0);
    embla_gpt_free(gpt);
}

/* ---- attention ---- */

/* The weights of the last token of a sequence in one layer, from the stream before the layer. */
static void weights_in_double(const reference *r, size_t layer, const reference_row *x,
                              size_t count, double *out)
{
    const embla_gpt_shape *s = &r->shape;
    const reference_layer *l = &r->layers[layer];
    size_t size = s->dim / s->heads, kv = size * s->kv_heads;
    reference_row h, q, k;
    reference_normalize(r, l->norm1, x[count - 1], h);
    reference_multiply(l->q, h, s->dim, s->dim, q);
    reference_rotate(s, count - 1, s->heads, q);
    for (size_t t = 0; t < count; t++) {
        reference_normalize(r, l->norm1, x[t], h);
        reference_multiply(l->k, h, s->dim, kv, k);
        reference_rotate(s, t, s->kv_heads, k);
        for (size_t head = 0; head < s->heads; head++) {
            double score = 0;
            const double *key = k + head / (s->heads / s->kv_heads) * size;
            for (size_t i = 0; i < size; i++) score += q[head * size + i] * key[i];
            out[head * count + t] = exp(score / sqrt((double)size));
        }
    }
    for (size_t head = 0; head < s->heads; head++) {
        double sum = 0;
        for (size_t t = 0; t < count; t++) sum += out[head * count + t];
        for (size_t t = 0; t < count; t++) out[head * count + t] /= sum;
    }
}

static void attention_is_a_softmax_of_scores_and_sums_to_one(void **state)
{
    enum { COUNT = 50 };
    static reference_row x[REFERENCE_TOKENS];
    (void)state;
    for (size_t n = 0; n < SHAPES; n++) {
        embla_gpt_shape shape = shape_of(n);
        embla_gpt *gpt = random_gpt(&shape, 5);
        reference r = reference_new(gpt);
        float got[3 * HEADS * COUNT];
        double wanted[HEADS * COUNT];
        int32_t tokens[COUNT];
        tokens_of(n + 60, COUNT, tokens);
        assert_ok(embla_gpt_predict(gpt, tokens, COUNT, NULL,
                                    &(embla_predict_results){.attention = got}));
        for (size_t t = 0; t < COUNT; t++) reference_embed(&r, tokens[t], t, x[t]);
        for (size_t layer = 0; layer < shape.layers; layer++) {
            const float *weights = got + layer * shape.heads * COUNT;
            weights_in_double(&r, layer, (const reference_row *)x, COUNT, wanted);
            for (size_t head = 0; head < shape.heads; head++) {
                double sum = 0;
                for (size_t t = 0; t < COUNT; t++) {
                    sum += (double)weights[head * COUNT + t];
                    assert_near((double)weights[head * COUNT + t], wanted[head * COUNT + t], 1e-5);
                }
                assert_near(sum, 1, 1e-6);
            }
            reference_run_layer(&r, layer, 0, COUNT, x);
        }
        reference_free(&r);
        embla_gpt_free(gpt);
    }
}

/* A sequence that is longer than a block of the decoder, at once and in two parts. */
static void attention_reaches_tokens_of_earlier_calls(void **state)
{
    embla_gpt_shape shape = llama_like();
    embla_gpt *gpt = random_gpt(&shape, 5);
    embla_decoder *d = NULL;
    int32_t tokens[LENGTH];
    static float at_once[2 * 6 * LENGTH], parts[2 * 6 * LENGTH];
    (void)state;
    tokens_of(8, LENGTH, tokens);
    assert_ok(embla_gpt_predict(gpt, tokens, LENGTH, NULL,
                                &(embla_predict_results){.attention = at_once}));
    assert_ok(embla_decoder_new(gpt, LENGTH, &d));
    assert_ok(embla_decoder_append(d, tokens, 7, NULL, NULL));
    assert_ok(
        embla_decoder_run(d, tokens + 7, LENGTH - 7, 1, &(embla_decoder_view){.attention = parts}));
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        assert_near((double)parts[i], (double)at_once[i], 1e-5);
    embla_decoder_free(d);
    embla_gpt_free(gpt);
}

/* ---- threads ---- */

static void the_number_of_threads_changes_no_bit(void **state)
{
    enum { WIDE = 5000, COUNT = 70, TOP = 40 };
    static embla_prediction next[2][TOP], each[2][COUNT];
    static float attention[2][2 * 4 * COUNT];
    embla_gpt_shape shape = {.vocab = WIDE,
                             .dim = 256,
                             .layers = 2,
                             .heads = 4,
                             .kv_heads = 2,
                             .positions = COUNT,
                             LLAMA_KIND};
    embla_gpt *gpt = random_gpt(&shape, 5);
    int32_t tokens[COUNT];
    double loss[2];
    (void)state;
    memset(next, 0, sizeof next);
    memset(each, 0, sizeof each);
    for (size_t i = 0; i < COUNT; i++) tokens[i] = (int32_t)(i * 71 % WIDE);
    for (int threads = 1; threads <= 3; threads++) {
        size_t n = threads > 1;
        embla_predict_results results = {
            .next = next[n], .each = each[n], .attention = attention[n]};
        assert_ok(embla_gpt_predict(gpt, tokens, COUNT,
                                    &(embla_predict_options){.top = TOP, .threads = threads},
                                    &results));
        loss[n] = results.loss;
        if (n == 0) continue;
        assert_memory_equal(attention[1], attention[0], sizeof attention[0]);
        assert_memory_equal(&loss[1], &loss[0], sizeof loss[0]);
        for (size_t i = 0; i < TOP + COUNT; i++) {
            const embla_prediction *a = i < TOP ? &next[0][i] : &each[0][i - TOP];
            const embla_prediction *b = i < TOP ? &next[1][i] : &each[1][i - TOP];
            assert_true(a->token == b->token && a->rank == b->rank);
            assert_memory_equal(&a->logit, &b->logit, sizeof a->logit);
            assert_memory_equal(&a->log_probability, &b->log_probability,
                                sizeof a->log_probability);
        }
    }
    embla_gpt_free(gpt);
}

/* ---- what is refused ---- */

#define REFUSED(status, sentence, tokens, count, ...)                                              \
    do {                                                                                           \
        assert_status(embla_gpt_predict(gpt, tokens, count, &(embla_predict_options){__VA_ARGS__}, \
                                        &results),                                                 \
                      status);                                                                     \
        assert_error_has(sentence);                                                                \
        assert_memory_equal(next, marked, sizeof next);                                            \
    } while (0)

static void what_cannot_be_predicted_is_refused_and_writes_nothing(void **state)
{
    embla_gpt_shape shape = gpt2_like();
    embla_gpt *gpt = random_gpt(&shape, 5);
    embla_prediction next[4], marked[4];
    embla_predict_results results = {.next = next}, reserved = {.reserved = {0, 1}};
    int32_t tokens[LENGTH + 1], good[] = {1, 2}, bad[] = {1, VOCAB};
    (void)state;
    memset(next, CHECK_MARK, sizeof next);
    memcpy(marked, next, sizeof next);
    tokens_of(1, LENGTH + 1, tokens);
    REFUSED(EMBLA_ERR_RANGE, "the text has 81 tokens, but the model has 80 positions", tokens,
            LENGTH + 1, .top = 4);
    REFUSED(EMBLA_ERR_ARGUMENT, "a prediction needs at least 1 token", tokens, 0, .top = 4);
    REFUSED(EMBLA_ERR_ARGUMENT, "tokens is NULL, but its count is 3", NULL, 3, .top = 4);
    REFUSED(EMBLA_ERR_RANGE, "token 29 at index 1 is out of range; the model has tokens 0 to 28",
            bad, 2, .top = 4);
    REFUSED(EMBLA_ERR_RANGE, "top is 30, but the model has 29 tokens", good, 2, .top = 30);
    REFUSED(EMBLA_ERR_RANGE, "asked token 29 at index 1 is out of range", good, 2, .top = 4,
            .asked = bad, .asked_count = 2);
    REFUSED(EMBLA_ERR_ARGUMENT, "asked is NULL, but its count is 2", good, 2, .top = 4,
            .asked_count = 2);
    REFUSED(EMBLA_ERR_ARGUMENT, "temperature is -1; it must be finite and above 0", good, 2,
            .top = 4, .temperature = -1);
    REFUSED(EMBLA_ERR_ARGUMENT, "temperature is nan", good, 2, .top = 4, .temperature = NAN);
    REFUSED(EMBLA_ERR_ARGUMENT, "temperature is inf", good, 2, .top = 4, .temperature = INFINITY);
    REFUSED(EMBLA_ERR_ARGUMENT, "", good, 2, .top = 4, .threads = -1);
    REFUSED(EMBLA_ERR_UNSUPPORTED, "a reserved field is not 0", good, 2, .top = 4, .reserved = {1});
    assert_status(embla_gpt_predict(gpt, good, 2, NULL, &reserved), EMBLA_ERR_UNSUPPORTED);
    assert_status(embla_gpt_predict(gpt, good, 2, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_gpt_predict(NULL, good, 2, NULL, &results), EMBLA_ERR_ARGUMENT);
    embla_gpt_free(gpt);
}

/* Only the row of token 5 in the text is not a number, so the first places are good. */
static void a_logit_that_is_no_number_is_refused(void **state)
{
    embla_gpt_shape shape = llama_like();
    embla_gpt *gpt = random_gpt(&shape, 5);
    embla_prediction next[4], marked[4], each[3];
    embla_predict_results results = {.next = next, .each = each};
    (void)state;
    memset(next, CHECK_MARK, sizeof next);
    memcpy(marked, next, sizeof next);
    embla_gpt_weight(gpt, EMBLA_GPT_WTE)[5 * DIM + 3] = NAN;
    REFUSED(EMBLA_ERR_RANGE, "a logit is NaN or infinite", ((const int32_t[]){1, 5, 2}), 3,
            .top = 4);
    assert_ok(embla_gpt_predict(gpt, (const int32_t[]){1, 2, 3}, 3,
                                &(embla_predict_options){.top = 4}, &results));
    embla_gpt_weight(gpt, EMBLA_GPT_LM_HEAD)[0] = INFINITY;
    memcpy(next, marked, sizeof next);
    REFUSED(EMBLA_ERR_RANGE, "a logit is NaN or infinite", ((const int32_t[]){1}), 1, .top = 4);
    embla_gpt_free(gpt);
}

static void a_call_without_memory_fails_and_leaves_nothing(void **state)
{
    embla_gpt_shape shape = gpt2_like();
    embla_gpt *gpt = random_gpt(&shape, 5);
    embla_prediction next[4], each[3], asked;
    float attention[3 * 3 * 3];
    embla_predict_results results = {
        .next = next, .asked = &asked, .each = each, .attention = attention};
    const embla_predict_options options = {
        .top = 4, .asked = (const int32_t[]){2}, .asked_count = 1, .threads = 1};
    const int32_t tokens[] = {1, 2, 3};
    embla_status status = EMBLA_ERR_MEMORY;
    size_t live = embla_mem_live(), failed = 0;
    (void)state;
    while (status != EMBLA_OK) {
        embla_mem_fail(failed + 1, false);
        status = embla_gpt_predict(gpt, tokens, 3, &options, &results);
        if (status != EMBLA_OK) assert_int_equal(status, EMBLA_ERR_MEMORY);
        assert_int_equal(embla_mem_live(), live);
        assert_true(failed++ < 50);
    }
    embla_mem_fail(0, false);
    assert_true(failed > 3);
    embla_gpt_free(gpt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_tokens_are_those_of_the_head_and_a_softmax),
        cmocka_unit_test(equal_logits_are_in_the_order_of_tokens),
        cmocka_unit_test(a_temperature_changes_probabilities_and_no_rank),
        cmocka_unit_test(each_token_has_its_probability_after_those_before_it),
        cmocka_unit_test(one_token_has_no_loss),
        cmocka_unit_test(attention_is_a_softmax_of_scores_and_sums_to_one),
        cmocka_unit_test(attention_reaches_tokens_of_earlier_calls),
        cmocka_unit_test(the_number_of_threads_changes_no_bit),
        cmocka_unit_test(what_cannot_be_predicted_is_refused_and_writes_nothing),
        cmocka_unit_test(a_logit_that_is_no_number_is_refused),
        cmocka_unit_test(a_call_without_memory_fails_and_leaves_nothing),
    };
    return cmocka_run_group_tests_name("predict", tests, NULL, NULL);
}
