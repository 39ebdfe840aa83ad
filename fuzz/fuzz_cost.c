/* SPDX-License-Identifier: Apache-2.0 */
/* A tokenizer that is made to be slow, and a text for it. Promises:
 *   - opening it, encoding the text and decoding the tokens stay within the bound
 * (tokenizer/bound.h): what they count, and, in a build with libFuzzer, what they do. There the
 * compiler counts each load of the text room, and there are few loads for a step. Work that no
 * stage counts is found by that;
 *   - beyond the bound a message names the file and the stage, and there are no tokens.
 * The first byte chooses the kind of file.
 */
#include "base/mem.h"
#include "hostile.h"
#include "tokenizer/tokenize.h"

/* Loads that a step may need, and those of a call of any size. The most that was seen is a third of
 * both. */
enum { LOADS_OF_STEP = 96, LOADS_OF_CALL = 1 << 19, LOADS_OF_FILE = 2048 };

static uint64_t loads;

#ifdef EMBLA_COUNT_LOADS
void __sanitizer_cov_load1(uint8_t *at);
void __sanitizer_cov_load2(uint16_t *at);
void __sanitizer_cov_load4(uint32_t *at);
void __sanitizer_cov_load8(uint64_t *at);
void __sanitizer_cov_load16(void *at);
#define COUNT_LOAD(name, type)                                                                     \
    __attribute__((no_sanitize("coverage"))) void name(type *at)                                   \
    {                                                                                              \
        (void)at;                                                                                  \
        loads++;                                                                                   \
    }
COUNT_LOAD(__sanitizer_cov_load1, uint8_t)
COUNT_LOAD(__sanitizer_cov_load2, uint16_t)
COUNT_LOAD(__sanitizer_cov_load4, uint32_t)
COUNT_LOAD(__sanitizer_cov_load8, uint64_t)
COUNT_LOAD(__sanitizer_cov_load16, void)
#endif

/* What a call has counted and done, and what its error says. */
static void check(const embla_bound *bound, embla_status status)
{
    if (status == EMBLA_OK) PROMISE(bound->steps <= bound->most_steps);
    if (status == EMBLA_OK) PROMISE(bound->made <= bound->most_bytes);
    const uint64_t work = bound->steps + bound->made;
    if (loads > LOADS_OF_STEP * work + LOADS_OF_CALL)
        (void)fprintf(stderr, "%llu loads for %llu steps and bytes\n", (unsigned long long)loads,
                      (unsigned long long)work);
    PROMISE(loads <= LOADS_OF_STEP * work + LOADS_OF_CALL);
    if (status == EMBLA_OK || !strstr(embla_error(), "the limit is")) return;
    PROMISE(strncmp(embla_error(), "input: ", 7) == 0 && strlen(bound->stage) > 3);
    PROMISE(strstr(embla_error(), bound->stage));
}

static void use(const embla_tokenizer *t, const made *text, bool offsets)
{
    const embla_tokenize_options options = {.offsets = offsets};
    embla_tokenized *e = NULL;
    const char *decoded = NULL;
    size_t bytes = 0;
    PROMISE(embla_tokenized_new(t, &e) == EMBLA_OK);
    loads = 0;
    embla_status status = embla_tokenize(e, text->bytes, text->count, &options);
    check(&e->bound, status);
    if (status != EMBLA_OK) PROMISE(*embla_error() && embla_tokenized_count(e) == 0);
    const size_t count = embla_tokenized_count(e);
    PROMISE(count <= EMBLA_BOUND_BYTES * text->count + EMBLA_BOUND_FREE);
    int32_t *tokens = (int32_t *)(void *)block(count * sizeof *tokens);
    if (count > 0) memcpy(tokens, embla_tokenized_tokens(e), count * sizeof *tokens);
    loads = 0;
    status = embla_detokenize(e, tokens, count < 64 ? count : 64, false, &decoded, &bytes);
    check(&e->bound, status);
    free(tokens);
    embla_tokenized_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    const size_t live = embla_mem_live();
    const uint8_t kind = take_byte(&in);
    made file = {0}, text = {0};
    embla_tokenizer *t = NULL;
    put(&text, "");
    put_runs(&text, &in);
    if (kind % 4 == 3)
        put_sentencepiece(&file, &in);
    else
        put_json(&file, &in);
    if (kind == 255) (void)fwrite(file.bytes, 1, file.count, stderr);
    loads = 0;
    embla_status status = embla_tokenizer_open_bytes(file.bytes, file.count, "input", &t);
    if (loads > LOADS_OF_FILE * (uint64_t)file.count + LOADS_OF_CALL)
        (void)fprintf(stderr, "%llu loads to open %zu bytes\n", (unsigned long long)loads,
                      file.count);
    PROMISE(loads <= LOADS_OF_FILE * (uint64_t)file.count + LOADS_OF_CALL);
    if (status == EMBLA_OK)
        use(t, &text, kind & 4);
    else
        PROMISE(!t && strncmp(embla_error(), "input: ", 7) == 0);
    embla_tokenizer_free(t);
    free(file.bytes);
    free(text.bytes);
    PROMISE(embla_mem_live() == live);
    return 0;
}
