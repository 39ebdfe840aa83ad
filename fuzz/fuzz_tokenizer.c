/* SPDX-License-Identifier: Apache-2.0 */
/* A tokenizer.json, a SentencePiece model, ranks, a vocab.txt, or any bytes in their place.
 * Promises:
 *   - a refused file gives an error message that begins with its name, and nothing is kept;
 *   - an accepted one encodes a few texts, or says why not, and decodes what it encoded;
 *   - every token has a string, spans lie in the text, and offsets do not change the tokens.
 */
#include "base/mem.h"
#include "embla_text.h"
#include "input.h"

static const char *const texts[] = {
    "",
    "a",
    "\xc3\xa9 ",
    " Hello  world's 123 \xc3\xa9\xe2\x96\x81\xff[CLS]<unk>\n",
    ("e\xcc\x81\xcc\xa3\xe1\x84\x80\xe1\x85\xa1\xe4\xb8\xad\xf0\x9f\x98\x80 "
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
};

static void check_tokens(const embla_tokenizer *t, const embla_tokenized *e, size_t length)
{
    const embla_text_span *spans = embla_tokenized_offsets(e);
    embla_tokenizer_info info;
    PROMISE(embla_tokenizer_describe(t, &info) == EMBLA_OK);
    for (size_t i = 0; i < embla_tokenized_count(e); i++) {
        int32_t token = embla_tokenized_tokens(e)[i];
        PROMISE(token >= 0);
        if (!embla_tokenized_special(e)[i]) PROMISE(token < info.tokens);
        if (spans) PROMISE(spans[i].begin <= length && spans[i].end <= length);
    }
}

static void use(const embla_tokenizer *t, embla_tokenized *e, const char *text)
{
    const embla_tokenize_options with = {.offsets = true, .add_special = true, .truncate = true};
    const size_t length = strlen(text);
    const char *decoded = NULL;
    size_t bytes = 0;
    if (embla_tokenize(e, text, length, NULL) != EMBLA_OK) {
        PROMISE(*embla_error());
        return;
    }
    check_tokens(t, e, length);
    embla_status status = embla_detokenize(e, embla_tokenized_tokens(e), embla_tokenized_count(e),
                                           false, &decoded, &bytes);
    if (status == EMBLA_OK) PROMISE(decoded[bytes] == 0);
    if (embla_tokenize(e, text, length, &with) == EMBLA_OK) check_tokens(t, e, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    embla_tokenizer *t = NULL;
    embla_tokenized *e = NULL;
    size_t live = embla_mem_live();
    embla_status status = embla_tokenizer_open_bytes(data, size, "input", &t);
    if (status != EMBLA_OK) {
        PROMISE(!t && *embla_error());
        PROMISE(embla_mem_live() == live);
        return 0;
    }
    PROMISE(embla_tokenized_new(t, &e) == EMBLA_OK);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) use(t, e, texts[i]);
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
    PROMISE(embla_mem_live() == live);
    return 0;
}
