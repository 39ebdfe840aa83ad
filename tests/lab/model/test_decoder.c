/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder, held against the whole model: what it says of the last token is what
 * embla_gpt_loss has before the head, in every shape, whether tokens come one by one, all at
 * once or in pieces. And a real model, whose text at temperature 0 is known.
 */
#include "gpt_models.h"
#include "scratch.h"

#include <math.h>

#include "base/mem.h"
#include "embla_train.h"
#include "model/gpt.h"
#include "model/layers.h"

enum { LENGTH = 24, VOCAB = 29 };

/* ---- shapes ---- */

static embla_gpt_shape gpt2_like(void)
{
    return (embla_gpt_shape){
        .vocab = VOCAB, .dim = 24, .layers = 3, .heads = 3, .positions = 80, .biases = true};
}

static embla_gpt_shape llama_like(void)
{
    return (embla_gpt_shape){.vocab = VOCAB,
                             .dim = 32,
                             .layers = 2,
                             .heads = 4,
                             .kv_heads = 2,
                             .hidden = 44,
                             .positions = 80,
                             LLAMA_KIND,
                             .rope_order = EMBLA_ROPE_ORDER_HALF_SPLIT,
                             .untied = true};
}

static embla_gpt_shape microgpt_like(void)
{
    return (embla_gpt_shape){
        .vocab = VOCAB, .dim = 16, .layers = 1, .heads = 4, .positions = 80, MICROGPT_KIND};
}

/* Everything the others have not. */
static embla_gpt_shape other(size_t n)
{
    embla_gpt_shape s = gpt2_like();
    s.norm_first = true;
    s.activation = n == 0 ? EMBLA_ACTIVATION_RELU_SQUARED : EMBLA_ACTIVATION_SWIGLU;
    s.position_kind = n == 0 ? EMBLA_POSITIONS_SINUSOIDAL : EMBLA_POSITIONS_NONE;
    s.kv_heads = 1;
    if (n == 2) s.position_kind = EMBLA_POSITIONS_ROTARY;
    return s;
}

enum { SHAPES = 6 };

static embla_gpt_shape shape_of(size_t n)
{
    return n == 0 ? gpt2_like() : n == 1 ? llama_like() : n == 2 ? microgpt_like() : other(n - 3);
}

static embla_gpt *model(const embla_gpt_shape *shape)
{
    return random_gpt(shape, 5);
}

static void tokens_of(uint64_t seed, size_t count, int32_t *out)
{
    for (size_t i = 0; i < count; i++) out[i] = (int32_t)check_below(&seed, VOCAB);
}

/* Nearer than 1e-4 of the longer numbers. */
static void assert_alike(const float *got, const float *wanted, size_t n)
{
    float most = 0;
    for (size_t i = 0; i < n; i++) most = fmaxf(most, fabsf(wanted[i]));
    assert_true(most > 0.01f);
    for (size_t i = 0; i < n; i++) assert_near(got[i], wanted[i], 1e-4 * (double)most);
}

/* The vectors of all tokens, as the model has them before its head. */
static const float *whole(embla_gpt *gpt, const int32_t *tokens, size_t count)
{
    embla_loss_report report;
    assert_ok(embla_gpt_reserve(gpt, 1, count));
    assert_ok(embla_gpt_loss(
        gpt, &(embla_gpt_batch){.tokens = tokens, .targets = tokens, .batch = 1, .length = count},
        NULL, &report));
    return embla_gpt_hidden(gpt);
}

/* ---- the same as the whole model ---- */

static void one_by_one_is_the_whole_model(void **state)
{
    (void)state;
    for (size_t n = 0; n < SHAPES; n++) {
        embla_gpt_shape shape = shape_of(n);
        embla_gpt *gpt = model(&shape);
        embla_decoder *d = NULL;
        int32_t tokens[LENGTH];
        float hidden[64];
        tokens_of(n, LENGTH, tokens);
        const float *wanted = whole(gpt, tokens, LENGTH);
        assert_ok(embla_decoder_new(gpt, LENGTH, &d));
        for (size_t i = 0; i < LENGTH; i++) {
            assert_ok(embla_decoder_append(d, tokens + i, 1, &(embla_decoder_options){.threads = 1},
                                           hidden));
            assert_alike(hidden, wanted + i * shape.dim, shape.dim);
        }
        embla_decoder_free(d);
        embla_gpt_free(gpt);
    }
}

/* In pieces of any size, also across what is taken at a time, and again after a reset. */
static void pieces_of_a_prompt_are_the_whole_model(void **state)
{
    static const size_t cuts[][3] = {{80, 0, 0}, {64, 16, 0}, {1, 78, 1}, {63, 2, 15}, {7, 70, 3}};
    (void)state;
    for (size_t n = 0; n < SHAPES; n++) {
        embla_gpt_shape shape = shape_of(n);
        embla_gpt *gpt = model(&shape);
        embla_decoder *d = NULL;
        int32_t tokens[80];
        float hidden[64];
        tokens_of(n + 50, 80, tokens);
        const float *wanted = whole(gpt, tokens, 80);
        assert_ok(embla_decoder_new(gpt, 80, &d));
        for (size_t c = 0; c < COUNT_OF(cuts); c++) {
            size_t at = 0;
            embla_decoder_reset(d);
            for (size_t k = 0; k < 3 && cuts[c][k] > 0; k++) {
                assert_ok(embla_decoder_append(d, tokens + at, cuts[c][k],
                                               &(embla_decoder_options){.threads = 1}, hidden));
                at += cuts[c][k];
                assert_alike(hidden, wanted + (at - 1) * shape.dim, shape.dim);
            }
        }
        embla_decoder_free(d);
        embla_gpt_free(gpt);
    }
}

static void the_number_of_threads_changes_no_bit(void **state)
{
    static const int threads[] = {1, 2, 3, 4, 8, 0};
    (void)state;
    embla_gpt_shape shape = {.vocab = VOCAB,
                             .dim = 256,
                             .layers = 2,
                             .heads = 4,
                             .kv_heads = 2,
                             .positions = 80,
                             LLAMA_KIND};
    embla_gpt *gpt = model(&shape);
    int32_t tokens[80];
    float first[2][256], again[2][256];
    tokens_of(9, 80, tokens);
    for (size_t t = 0; t < COUNT_OF(threads); t++) {
        embla_decoder *d = NULL;
        assert_ok(embla_decoder_new(gpt, 80, &d));
        assert_ok(embla_decoder_append(d, tokens, 79,
                                       &(embla_decoder_options){.threads = threads[t]},
                                       t == 0 ? first[0] : again[0]));
        assert_ok(embla_decoder_append(d, tokens + 79, 1,
                                       &(embla_decoder_options){.threads = threads[t]},
                                       t == 0 ? first[1] : again[1]));
        if (t > 0) assert_memory_equal(again, first, sizeof first);
        embla_decoder_free(d);
    }
    embla_gpt_free(gpt);
}

/* The head is the table that the loss is taken with. */
static void the_head_is_that_of_the_model(void **state)
{
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        embla_gpt_shape shape = shape_of(n);
        embla_gpt *gpt = model(&shape);
        embla_gpt_tensor tensor;
        embla_decoder *d = NULL;
        embla_head head;
        assert_ok(embla_decoder_new(gpt, 4, &d));
        assert_ok(embla_decoder_head(d, &head));
        for (size_t i = 0; i < embla_gpt_tensor_count(gpt); i++) {
            assert_ok(embla_gpt_tensor_at(gpt, i, &tensor));
            if (strcmp(tensor.name, n == 0 ? "wte" : "lm_head") == 0) break;
        }
        assert_int_equal(embla_table_rows(head.table), VOCAB);
        assert_ptr_equal(embla_table_row(head.table, 0), tensor.values);
        embla_decoder_free(d);
        embla_gpt_free(gpt);
    }
}

/* ---- what is refused ---- */

static void what_does_not_fit_is_refused_and_takes_nothing(void **state)
{
    embla_gpt_shape shape = gpt2_like();
    embla_gpt *gpt = model(&shape);
    embla_decoder *d = NULL;
    float hidden[24], wanted[24], marked[24];
    const int32_t good[] = {1, 2, 3, 4, 5}, low[] = {1, -1}, high[] = {1, VOCAB};
    (void)state;
    assert_ok(embla_decoder_new(gpt, 5, &d));
    assert_ok(embla_decoder_append(d, good, 5, &(embla_decoder_options){.threads = 1}, wanted));
    embla_decoder_reset(d);
    assert_ok(embla_decoder_append(d, good, 2, &(embla_decoder_options){.threads = 1}, NULL));
    memset(hidden, CHECK_MARK, sizeof hidden);
    memcpy(marked, hidden, sizeof hidden);
    assert_status(embla_decoder_append(d, low, 2, &(embla_decoder_options){.threads = 1}, hidden),
                  EMBLA_ERR_RANGE);
    assert_error_has("token -1 at index 1 is out of range; the model has tokens 0 to 28");
    assert_status(embla_decoder_append(d, high, 2, &(embla_decoder_options){.threads = 1}, hidden),
                  EMBLA_ERR_RANGE);
    assert_error_has("token 29 at index 1");
    assert_status(embla_decoder_append(d, good, 4, &(embla_decoder_options){.threads = 1}, hidden),
                  EMBLA_ERR_RANGE);
    assert_error_has("4 tokens after 2 do not fit: the decoder has 5 positions");
    assert_status(
        embla_decoder_append(d, good, SIZE_MAX, &(embla_decoder_options){.threads = 1}, hidden),
        EMBLA_ERR_RANGE);
    assert_status(embla_decoder_append(d, good, 1, &(embla_decoder_options){.threads = -1}, hidden),
                  EMBLA_ERR_ARGUMENT);
    assert_status(embla_decoder_append(d, NULL, 1, &(embla_decoder_options){.threads = 1}, hidden),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_decoder_append: tokens is NULL, but its count is ");
    assert_status(
        embla_decoder_append(NULL, good, 1, &(embla_decoder_options){.threads = 1}, hidden),
        EMBLA_ERR_ARGUMENT);
    assert_ok(embla_decoder_append(d, NULL, 0, &(embla_decoder_options){.threads = 1},
                                   hidden)); /* no tokens, nothing to say */
    assert_memory_equal(hidden, marked, sizeof hidden);
    assert_ok(embla_decoder_append(d, good + 2, 3, &(embla_decoder_options){.threads = 1}, hidden));
    for (size_t i = 0; i < 24; i++) assert_near(hidden[i], wanted[i], 1e-5);
    assert_status(embla_decoder_append(d, good, 1, &(embla_decoder_options){.threads = 1}, hidden),
                  EMBLA_ERR_RANGE);
    embla_decoder_free(d);
    embla_gpt_free(gpt);
}

static void what_cannot_be_a_decoder_is_refused(void **state)
{
    embla_gpt_shape shape = gpt2_like();
    embla_gpt *gpt = model(&shape);
    embla_decoder *d = NULL;
    embla_head head;
    (void)state;
    assert_status(embla_decoder_new(NULL, 1, &d), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_decoder_new: gpt is NULL");
    assert_status(embla_decoder_new(gpt, 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_decoder_new(gpt, 0, &d), EMBLA_ERR_RANGE);
    assert_status(embla_decoder_new(gpt, 81, &d), EMBLA_ERR_RANGE);
    assert_error_has("capacity is 81; it must be from 1 to the model's 80");
    assert_null(d);
    assert_status(embla_decoder_head(NULL, &head), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_decoder_new(gpt, 80, &d));
    assert_status(embla_decoder_head(d, NULL), EMBLA_ERR_ARGUMENT);
    embla_decoder_free(d);
    embla_decoder_free(NULL);
    embla_decoder_reset(NULL);
    embla_gpt_free(gpt);
}

/* One allocation, and none when tokens are taken. */
static void memory_is_taken_once(void **state)
{
    embla_gpt_shape shape = llama_like();
    embla_gpt *gpt = model(&shape);
    embla_decoder *d = NULL;
    int32_t tokens[80];
    float hidden[32];
    size_t live = embla_mem_live();
    (void)state;
    tokens_of(1, 80, tokens);
    embla_mem_fail(1, false);
    assert_status(embla_decoder_new(gpt, 80, &d), EMBLA_ERR_MEMORY);
    assert_null(d);
    assert_ok(embla_decoder_new(gpt, 80, &d));
    assert_int_equal(embla_mem_live(), live + 1);
    embla_mem_fail(1, true);
    assert_ok(embla_decoder_append(d, tokens, 1, &(embla_decoder_options){.threads = 1}, hidden));
    assert_ok(embla_decoder_append(d, tokens, 79, &(embla_decoder_options){.threads = 1}, hidden));
    embla_mem_fail(0, false);
    embla_decoder_free(d);
    assert_int_equal(embla_mem_live(), live);
    embla_gpt_free(gpt);
}

/* ---- a real model ---- */

enum { PIECES = 512, STEPS = 200, PIECE_MOST = 64 };

/* tok512.bin: the longest word's length, then a score, a length and the bytes of each. */
typedef struct {
    char word[PIECES][PIECE_MOST];
    float score[PIECES];
} pieces;

static void read_pieces(const char *path, pieces *out)
{
    size_t have = 0, at = 4;
    unsigned char *bytes = scratch_read(path, &have);
    assert_non_null(bytes);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < PIECES; i++) {
        int32_t length;
        assert_true(at + 8 <= have);
        memcpy(&out->score[i], bytes + at, 4);
        memcpy(&length, bytes + at + 4, 4);
        assert_true(length >= 0 && length < PIECE_MOST && at + 8 + (size_t)length <= have);
        memcpy(out->word[i], bytes + at + 8, (size_t)length);
        at += 8 + (size_t)length;
    }
    free(bytes);
}

static int32_t piece_of(const pieces *p, const char *word)
{
    for (int32_t i = 0; i < PIECES; i++)
        if (strcmp(p->word[i], word) == 0) return i;
    return -1;
}

/* As llama2.c does it: BOS, a space, then the characters; the pair that makes the word of the
 * highest score becomes that word, until none does. */
static size_t encode(const pieces *p, const char *text, int32_t *out)
{
    size_t count = 0;
    char both[2 * PIECE_MOST];
    out[count++] = 1;
    out[count++] = piece_of(p, " ");
    for (; *text; text++) out[count++] = piece_of(p, (const char[]){*text, 0});
    for (;;) {
        float best = -1e10f;
        size_t where = 0;
        int32_t which = -1;
        for (size_t i = 1; i + 1 < count; i++) {
            (void)snprintf(both, sizeof both, "%s%s", p->word[out[i]], p->word[out[i + 1]]);
            int32_t merged = piece_of(p, both);
            if (merged < 0 || p->score[merged] <= best) continue;
            best = p->score[merged], where = i, which = merged;
        }
        if (which < 0) return count;
        out[where] = which;
        memmove(out + where + 1, out + where + 2, (count - where - 2) * sizeof *out);
        count--;
    }
}

/* Appends the word of a token as text: no space after BOS, one byte for "<0x0A>". */
static void append(const embla_vocab *vocab, int32_t before, int32_t token, char *text)
{
    size_t length = 0, used = strlen(text);
    const char *word = embla_vocab_word(vocab, token, &length);
    unsigned byte;
    assert_non_null(word);
    if (before == 1 && word[0] == ' ') word++;
    if (strlen(word) == 6 && sscanf(word, "<0x%02X>", &byte) == 1) {
        text[used] = (char)byte;
        text[used + 1] = '\0';
    } else {
        memcpy(text + used, word, strlen(word) + 1);
    }
}

/* As llama2.c's run: STEPS tokens, the prompt's own among them, then the end of the line. */
static void generate(const embla_gpt *gpt, const embla_vocab *vocab, const int32_t *prompt,
                     size_t count, bool at_once, char *text)
{
    embla_decoder *d = NULL;
    embla_head head;
    embla_choice choice = {.token = 0};
    float hidden[64];
    int32_t token = prompt[0];
    assert_ok(embla_decoder_new(gpt, STEPS, &d));
    assert_ok(embla_decoder_head(d, &head));
    text[0] = '\0';
    if (at_once)
        assert_ok(embla_decoder_append(d, prompt, count - 1, &(embla_decoder_options){.threads = 1},
                                       NULL));
    for (size_t at = 0; at < STEPS; at++) {
        if (!at_once || at >= count - 1) {
            assert_ok(
                embla_decoder_append(d, &token, 1, &(embla_decoder_options){.threads = 1}, hidden));
            assert_ok(embla_head_sample(&head, hidden, 1, NULL, &choice));
        }
        int32_t next = at + 1 < count ? prompt[at + 1] : (int32_t)choice.token;
        append(vocab, token, next, text);
        token = next;
    }
    memcpy(text + strlen(text), "\n", 2);
    embla_decoder_free(d);
}

static void stories260k_says_what_is_known(void **state)
{
    const char *data = getenv("EMBLA_DATA");
    char path[SCRATCH_PATH], text[STEPS * PIECE_MOST];
    embla_checkpoint *checkpoint = NULL;
    embla_gpt *gpt = NULL;
    embla_vocab *vocab = NULL;
    int32_t prompt[64];
    size_t known_bytes = 0;
    static pieces words;
    (void)state;
    if (!data) skip_because("EMBLA_DATA is not set");
    (void)snprintf(path, sizeof path, "%s/stories260k/tok512.bin", data);
    assert_ok(embla_vocab_open_file(path, &vocab));
    read_pieces(path, &words);
    size_t count = encode(&words, "Once upon a time", prompt);
    (void)snprintf(path, sizeof path, "%s/stories260k/stories260K.bin", data);
    assert_ok(embla_checkpoint_open(path, NULL, &checkpoint));
    assert_ok(embla_gpt_open(checkpoint, &gpt));
    embla_checkpoint_free(checkpoint);
    (void)snprintf(path, sizeof path, "%s/stories260k/greedy-200.txt", data);
    char *known = (char *)scratch_read(path, &known_bytes);
    assert_non_null(known);
    for (int at_once = 0; at_once < 2; at_once++) {
        generate(gpt, vocab, prompt, count, at_once == 1, text);
        assert_string_equal(text, known);
    }
    free(known);
    embla_gpt_free(gpt);
    embla_vocab_free(vocab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_by_one_is_the_whole_model),
        cmocka_unit_test(pieces_of_a_prompt_are_the_whole_model),
        cmocka_unit_test(the_number_of_threads_changes_no_bit),
        cmocka_unit_test(the_head_is_that_of_the_model),
        cmocka_unit_test(what_does_not_fit_is_refused_and_takes_nothing),
        cmocka_unit_test(what_cannot_be_a_decoder_is_refused),
        cmocka_unit_test(memory_is_taken_once),
        cmocka_unit_test(stories260k_says_what_is_known),
    };
    return cmocka_run_group_tests_name("decoder", tests, NULL, NULL);
}
