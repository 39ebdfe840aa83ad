/* SPDX-License-Identifier: Apache-2.0 */
/* A text as tokens, and back: prints each token, its string and the text that it adds. A character
 * of several tokens appears with the last of them; a model that generates tokens is printed in this
 * way.
 *
 *   tokens [FILE [TEXT]...]     FILE is a tokenizer.json or another tokenizer; default: one of
 * bytes
 */
#include <embla_text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "tokens: %s\n", embla_error());
    exit(1);
}

/* A tokenizer of the 256 bytes, in the format of tiktoken: lines of a string in base64 and its
 * token. After the bytes come "th" and "the", so that there is something to merge. */
static embla_tokenizer *open_bytes(void)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char ranks[256 * 9 + 64];
    size_t used = 0;
    embla_tokenizer *tokenizer;
    for (int b = 0; b < 256; b++)
        used += (size_t)snprintf(ranks + used, sizeof ranks - used, "%c%c== %d\n", digits[b >> 2],
                                 digits[(b & 3) << 4], b);
    used += (size_t)snprintf(ranks + used, sizeof ranks - used, "dGg= 256\ndGhl 257\n");
    must(embla_tokenizer_open_bytes(ranks, used, "bytes", &tokenizer));
    return tokenizer;
}

/* Prints the tokens of a text, and streams them back. */
static void print_text(const embla_tokenizer *tokenizer, embla_tokenized *tokenized,
                       embla_detokenizer *stream, const char *text)
{
    const char *added;
    size_t length;
    must(embla_tokenize(tokenized, text, strlen(text), NULL));
    const size_t count = embla_tokenized_count(tokenized);
    const int32_t *tokens = embla_tokenized_tokens(tokenized);
    printf("'%s': %zu bytes, %zu tokens\n", text, strlen(text), count);
    embla_detokenizer_begin(stream);
    for (size_t i = 0; i < count; i++) {
        const char *string = embla_tokenizer_text(tokenizer, tokens[i], NULL);
        must(embla_detokenizer_add(stream, &tokens[i], 1, &added, &length));
        printf("%7d  %s -> '%s'\n", (int)tokens[i], string ? string : "", added);
    }
    must(embla_detokenizer_end(stream, &added, &length));
    if (length > 0) printf("%7s  '%s'\n", "end", added);
}

int main(int argc, char **argv)
{
    static const char *const texts[] = {"the caf\xc3\xa9", "\xf0\x9f\x98\x80!"};
    embla_tokenizer *tokenizer = NULL;
    embla_tokenized *tokenized = NULL;
    embla_detokenizer *stream = NULL;
    if (argc > 1)
        must(embla_tokenizer_open_file(argv[1], &tokenizer));
    else
        tokenizer = open_bytes();
    must(embla_tokenized_new(tokenizer, &tokenized));
    must(embla_detokenizer_new(tokenizer, NULL, &stream));

    for (int i = 2; i < argc; i++) print_text(tokenizer, tokenized, stream, argv[i]);
    for (size_t i = 0; argc < 3 && i < sizeof texts / sizeof texts[0]; i++)
        print_text(tokenizer, tokenized, stream, texts[i]);

    embla_detokenizer_free(stream);
    embla_tokenized_free(tokenized);
    embla_tokenizer_free(tokenizer);
    return 0;
}
