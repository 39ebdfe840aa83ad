/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes texts for the scripts that compare tokens with other programs.
 *
 *   token_ids TOKENIZER FLAGS     texts on standard input, each a u32 length and its bytes
 *   token_ids TOKENIZER exhaustive
 *
 * FLAGS are letters: o offsets, s special tokens, l the file's limits (truncation, padding), d the
 * text that the tokens decode to, - nothing. For each text: the number of tokens (i32, -1 for an
 * error), the tokens, then begin and end of each, then a length and the decoded text.
 *
 * exhaustive: every code point alone, between "a" and "b", and before U+0301; for each block of 256
 * one line with its number and an FNV-1a hash of the counts and tokens in each of the three places.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "embla_text.h"

static void stop(const char *what)
{
    (void)fprintf(stderr, "%s: %s\n", what, embla_error());
    exit(1);
}

static void put_u32(uint32_t number)
{
    (void)fwrite(&number, sizeof number, 1, stdout);
}

static uint32_t hash(uint32_t h, uint32_t number)
{
    for (int i = 0; i < 4; i++, number >>= 8) h = (h ^ (number & 255)) * 16777619u;
    return h;
}

static uint32_t hash_tokens(embla_tokenized *e, uint32_t h, const char *text, size_t length)
{
    if (embla_tokenize(e, text, length, NULL) != EMBLA_OK) stop("a code point");
    h = hash(h, (uint32_t)embla_tokenized_count(e));
    for (size_t i = 0; i < embla_tokenized_count(e); i++)
        h = hash(h, (uint32_t)embla_tokenized_tokens(e)[i]);
    return h;
}

static void exhaustive(embla_tokenized *e)
{
    for (uint32_t block = 0; block < 0x1100; block++) {
        uint32_t h[3] = {2166136261u, 2166136261u, 2166136261u};
        if (block >= 0xd8 && block < 0xe0) continue; /* surrogates */
        for (uint32_t code = block * 256; code < block * 256 + 256; code++) {
            char text[16] = "a";
            size_t length = embla_utf8_encode(code, text + 1);
            h[0] = hash_tokens(e, h[0], text + 1, length);
            text[1 + length] = 'b';
            h[1] = hash_tokens(e, h[1], text, length + 2);
            memcpy(text + 1 + length, "\xcc\x81", 2);
            h[2] = hash_tokens(e, h[2], text + 1, length + 2);
        }
        (void)printf("%x %08x %08x %08x\n", block, h[0], h[1], h[2]);
    }
}

static void answer(embla_tokenized *e, const char *text, size_t length, const char *flags)
{
    embla_tokenize_options options = {.offsets = strchr(flags, 'o') != NULL,
                                      .add_special = strchr(flags, 's') != NULL,
                                      .truncate = strchr(flags, 'l') != NULL,
                                      .pad = strchr(flags, 'l') != NULL};
    const char *decoded = NULL;
    size_t bytes = 0;
    if (embla_tokenize(e, text, length, &options) != EMBLA_OK) {
        put_u32(UINT32_MAX);
        return;
    }
    size_t count = embla_tokenized_count(e);
    put_u32((uint32_t)count);
    if (count > 0) (void)fwrite(embla_tokenized_tokens(e), sizeof(int32_t), count, stdout);
    if (options.offsets && count > 0)
        (void)fwrite(embla_tokenized_offsets(e), sizeof(embla_text_span), count, stdout);
    if (!strchr(flags, 'd')) return;
    if (embla_detokenize(e, embla_tokenized_tokens(e), count, true, &decoded, &bytes) != EMBLA_OK)
        stop("decoding");
    put_u32((uint32_t)bytes);
    (void)fwrite(decoded, 1, bytes, stdout);
}

int main(int argc, char **argv)
{
    embla_tokenizer *tokenizer = NULL;
    embla_tokenized *e = NULL;
    char *text = NULL;
    uint32_t length = 0;
    if (argc != 3) return 2;
    if (embla_tokenizer_open_file(argv[1], &tokenizer) != EMBLA_OK) stop("open");
    if (embla_tokenized_new(tokenizer, &e) != EMBLA_OK) stop("tokenized");
    if (strcmp(argv[2], "exhaustive") == 0) exhaustive(e);
    while (strcmp(argv[2], "exhaustive") != 0 && fread(&length, sizeof length, 1, stdin) == 1) {
        text = realloc(text, (size_t)length + 1);
        if (!text || fread(text, 1, length, stdin) != length) return 2;
        answer(e, text, length, argv[2]);
        if (length > 0 && argc > 3) (void)fflush(stdout);
    }
    free(text);
    embla_tokenized_free(e);
    embla_tokenizer_free(tokenizer);
    return ferror(stdout) ? 1 : 0;
}
