/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a text, encoded by small tokenizers of every kind. Promises:
 *   - every text is encoded, and decodes to something;
 *   - offsets do not change the tokens, and lie in the text;
 *   - the words that were encoded before (the cache) do not change the tokens;
 *   - a byte-level tokenizer without normalizers gives valid UTF-8 back;
 *   - a batch of two gives the tokens of each.
 * The first byte chooses the tokenizer.
 */
#include "base/utf8.h"
#include "embla_text.h"
#include "input.h"
#include "tokenizers.h"

enum { KINDS = sizeof fuzz_tokenizers / sizeof fuzz_tokenizers[0] };

static void encode(embla_tokenized *e, const char *text, size_t length, bool offsets)
{
    const embla_tokenize_options options = {.offsets = offsets};
    if (embla_tokenize(e, text, length, &options) == EMBLA_OK) return;
    (void)fprintf(stderr, "%s\n", embla_error());
    PROMISE(false);
}

static void check_same(const embla_tokenized *a, const embla_tokenized *b)
{
    size_t count = embla_tokenized_count(a);
    PROMISE(count == embla_tokenized_count(b));
    if (count > 0)
        PROMISE(memcmp(embla_tokenized_tokens(a), embla_tokenized_tokens(b), count * 4) == 0);
}

static void check_batch(embla_tokenized *both, embla_tokenized *one, const char *text,
                        size_t length)
{
    const char *texts[] = {text, text + length / 2};
    const size_t lengths[] = {length / 2, length - length / 2};
    const embla_texts two = {.texts = texts, .lengths = lengths, .count = 2};
    PROMISE(embla_tokenize_batch(both, &two, NULL) == EMBLA_OK);
    const size_t *starts = embla_tokenized_starts(both);
    for (size_t i = 0; i < 2; i++) {
        encode(one, texts[i], lengths[i], false);
        size_t count = embla_tokenized_count(one);
        PROMISE(starts[i + 1] - starts[i] == count);
        if (count > 0)
            PROMISE(memcmp(embla_tokenized_tokens(both) + starts[i], embla_tokenized_tokens(one),
                           count * 4) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    static embla_tokenizer *opened[KINDS]; /* they are the same for all inputs */
    embla_tokenized *warm = NULL, *cold = NULL;
    size_t kind = take_below(&in, KINDS), bytes = 0;
    const char *json = fuzz_tokenizers[kind], *decoded = NULL;
    char *text = block(in.size);
    if (in.size > 0) memcpy(text, in.data, in.size);
    if (!opened[kind])
        PROMISE(embla_tokenizer_open_bytes(json, strlen(json), "input", &opened[kind]) == EMBLA_OK);
    const embla_tokenizer *t = opened[kind];
    PROMISE(embla_tokenized_new(t, &warm) == EMBLA_OK && embla_tokenized_new(t, &cold) == EMBLA_OK);
    encode(warm, text, in.size, true);
    encode(warm, text, in.size, false);
    encode(cold, text, in.size, true);
    check_same(warm, cold);
    const embla_text_span *spans = embla_tokenized_offsets(cold);
    for (size_t i = 0; i < embla_tokenized_count(cold); i++)
        PROMISE(spans[i].begin <= spans[i].end && spans[i].end <= in.size);
    PROMISE(embla_detokenize(cold, embla_tokenized_tokens(cold), embla_tokenized_count(cold), false,
                             &decoded, &bytes) == EMBLA_OK);
    if (kind == 0 && embla_utf8_valid(text, in.size) == in.size)
        PROMISE(bytes == in.size && memcmp(decoded, text, bytes) == 0);
    check_batch(warm, cold, text, in.size);
    embla_tokenized_free(warm);
    embla_tokenized_free(cold);
    free(text);
    return 0;
}
