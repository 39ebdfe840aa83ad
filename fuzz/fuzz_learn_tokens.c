/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the text that a tokenizer is trained on. The first three bytes choose kind, size and
 * options. Promises:
 *   - the training succeeds or leaves a sentence, and in the end nothing stays allocated;
 *   - the file it wrote is read back, and has as many tokens as it says, at most the size;
 *   - each line of the text is encoded with it, and a byte-level one gives every line back.
 */
#include "base/mem.h"
#include "embla_train.h"
#include "folder.h"
#include "input.h"

static void use_line(embla_tokenized *e, const char *line, size_t length, int64_t tokens, bool same)
{
    const char *decoded = NULL;
    size_t bytes = 0;
    PROMISE(embla_tokenize(e, line, length, NULL) == EMBLA_OK);
    size_t count = embla_tokenized_count(e);
    const int32_t *found = embla_tokenized_tokens(e);
    for (size_t i = 0; i < count; i++) PROMISE(found[i] >= 0 && found[i] < tokens);
    PROMISE(embla_detokenize(e, found, count, false, &decoded, &bytes) == EMBLA_OK);
    if (same) PROMISE(bytes == length && (length == 0 || memcmp(decoded, line, length) == 0));
}

static void use_tokenizer(const char *path, const char *text, size_t size, int64_t tokens,
                          bool same)
{
    embla_tokenizer *t = NULL;
    embla_tokenized *e = NULL;
    embla_tokenizer_info info;
    PROMISE(embla_tokenizer_open_file(path, &t) == EMBLA_OK);
    PROMISE(embla_tokenizer_describe(t, &info) == EMBLA_OK);
    PROMISE(info.tokens == tokens);
    PROMISE(embla_tokenized_new(t, &e) == EMBLA_OK);
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at;
        use_line(e, text + at, length, tokens, same);
        at += length + 1;
    }
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const embla_tokenizer_kind kinds[] = {EMBLA_TOKENIZER_BPE, EMBLA_TOKENIZER_WORDPIECE,
                                                 EMBLA_TOKENIZER_WORDLEVEL,
                                                 EMBLA_TOKENIZER_UNIGRAM};
    static const char *const special[] = {"<s>", "<unk>"};
    input in = {data, size};
    char text[FOLDER_PATH], out[FOLDER_PATH];
    embla_tokenizer_trained made;
    const embla_tokenizer_kind kind = kinds[take_below(&in, 4)];
    const size_t more = take_below(&in, 256), flags = take_below(&in, 16);
    const embla_tokenizer_train_options options = {
        .kind = kind,
        .max_tokens = (int64_t)more + (kind == EMBLA_TOKENIZER_BPE ? 250 : 0),
        .min_count = (int64_t)(flags & 3),
        .lowercase = (flags & 4) != 0,
        .special = special,
        .special_count = flags & 8 ? 2 : 0,
        .threads = 1};
    const size_t live = embla_mem_live();
    folder_make("learn-tokens");
    folder_write("text", in.data, in.size);
    embla_status status =
        embla_tokenizer_train(folder_path("text", text), folder_path("out", out), &options, &made);
    PROMISE(status == EMBLA_OK || *embla_error());
    if (status == EMBLA_OK) {
        PROMISE(options.max_tokens == 0 || made.tokens <= options.max_tokens);
        use_tokenizer(out, (const char *)in.data, in.size, made.tokens,
                      kind == EMBLA_TOKENIZER_BPE && flags < 4);
    }
    PROMISE(embla_mem_live() == live);
    return 0;
}
