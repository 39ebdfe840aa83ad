/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled tokenizer in which bytes were changed, with checksums that are right. Promises:
 *   - a refused file gives an error message, and nothing is kept;
 *   - an accepted one encodes and decodes texts, or says why not;
 *   - every token is below the number of tokens, spans lie in the text, decoded text is UTF-8.
 * The first byte chooses one of the tokenizers, the second whether checksums stay as they are. Then
 * each four bytes are a change: which eighth of a kind of places, a place, and a value.
 */
#include "base/mem.h"
#include "base/utf8.h"
#include "compiled.h"
#include "embla_text.h"
#include "folder.h"
#include "input.h"
#include "tokenizers.h"

enum { KINDS = sizeof fuzz_tokenizers / sizeof fuzz_tokenizers[0] };

static struct {
    uint8_t *bytes;
    size_t size;
} files[KINDS];

/* Compiles a tokenizer, once for all inputs. */
static void make(size_t kind)
{
    char from[FOLDER_PATH], to[FOLDER_PATH];
    folder_make("compiled");
    folder_write("tokenizer.json", fuzz_tokenizers[kind], strlen(fuzz_tokenizers[kind]));
    PROMISE(embla_tokenizer_compile(folder_path("tokenizer.json", from),
                                    folder_path("compiled", to)) == EMBLA_OK);
    FILE *file = fopen(to, "rb");
    PROMISE(file && fseek(file, 0, SEEK_END) == 0);
    files[kind].size = (size_t)ftell(file);
    files[kind].bytes = (uint8_t *)block(files[kind].size);
    rewind(file);
    PROMISE(fread(files[kind].bytes, files[kind].size, 1, file) == 1);
    (void)fclose(file);
}

/* Changes a byte: of the header and list of tables, of the items of a table, or anywhere. */
static void change(uint8_t *bytes, size_t size, input *in)
{
    const uint8_t where = take_byte(in);
    size_t at = take_byte(in), first = 0, count = size;
    at = at << 8 | take_byte(in);
    if (where < 64) {
        count = sizeof(embla_compiled_header) + EMBLA_SECTIONS * sizeof(embla_compiled_section);
    } else if (where < 64 + 8 * EMBLA_SECTIONS) {
        embla_compiled_section s;
        const size_t kind = (size_t)(where - 64) / 8;
        memcpy(&s, bytes + sizeof(embla_compiled_header) + kind * sizeof s, sizeof s);
        if (s.at < size && s.count > 0) {
            first = (size_t)s.at;
            count = size - first;
        }
    }
    bytes[first + at % count] = take_byte(in);
}

static void use(const embla_tokenizer *t, embla_tokenized *e, const char *text)
{
    const embla_tokenize_options with = {.offsets = true, .add_special = true};
    const size_t length = strlen(text);
    const char *decoded = NULL;
    size_t bytes = 0;
    embla_tokenizer_info info;
    PROMISE(embla_tokenizer_describe(t, &info) == EMBLA_OK);
    if (embla_tokenize(e, text, length, &with) != EMBLA_OK) {
        PROMISE(*embla_error());
        return;
    }
    const embla_text_span *spans = embla_tokenized_offsets(e);
    for (size_t i = 0; i < embla_tokenized_count(e); i++) {
        const int32_t token = embla_tokenized_tokens(e)[i];
        size_t name_bytes = 0;
        if (!embla_tokenized_special(e)[i]) PROMISE(token >= 0 && token < info.tokens);
        PROMISE(spans[i].begin <= length && spans[i].end <= length);
        const char *name = embla_tokenizer_text(t, token, &name_bytes);
        if (name) (void)embla_tokenizer_token(t, name, name_bytes);
    }
    if (embla_detokenize(e, embla_tokenized_tokens(e), embla_tokenized_count(e), false, &decoded,
                         &bytes) == EMBLA_OK)
        PROMISE(decoded[bytes] == 0 && embla_utf8_valid(decoded, bytes) == bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const texts[] = {
        "a hello the aaaa 12 \xc3\xa9", " Hello  world's [CLS]<unk>\n",
        "e\xcc\x81\xe4\xb8\xad\xf0\x9f\x98\x80 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    input in = {data, size};
    const size_t kind = take_below(&in, KINDS), live = embla_mem_live();
    const bool seal = take_byte(&in) != 0xff;
    embla_tokenizer *t = NULL;
    embla_tokenized *e = NULL;
    if (!files[kind].bytes) make(kind);
    const size_t bytes = files[kind].size;
    uint8_t *copy = (uint8_t *)block(bytes);
    memcpy(copy, files[kind].bytes, bytes);
    while (in.size > 0) change(copy, bytes, &in);
    if (seal) compiled_seal(copy, bytes);
    if (embla_tokenizer_open_bytes(copy, bytes, "input", &t) != EMBLA_OK) {
        PROMISE(!t && *embla_error());
    } else {
        PROMISE(embla_tokenized_new(t, &e) == EMBLA_OK);
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) use(t, e, texts[i]);
    }
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
    free(copy);
    PROMISE(embla_mem_live() == live);
    return 0;
}
