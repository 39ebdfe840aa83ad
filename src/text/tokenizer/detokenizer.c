/* SPDX-License-Identifier: Apache-2.0 */
/* Text of tokens that arrive one by one.
 *
 * The text of a token depends on the tokens before it: the first piece of a text has no space, and
 * a character may have several tokens. So new tokens are decoded together with the last one before
 * them, the context, and what is new is the text after that of the context.
 *
 *   tokens:  | context: its text was given | waiting: the beginning of a character |
 *
 * Whether a character is complete is seen from the bytes that tokens stand for, not from a U+FFFD
 * at the end of the text: that may be a character of the text.
 */
#include <string.h>

#include "base/byte_text.h"
#include "base/options.h"
#include "tokenizer/tokenize.h"

enum { WAIT_MOST = 8 }; /* tokens; then the text is given even if a character is not complete */

/* How tokens stand for bytes. */
typedef enum { NO_BYTES, LEVEL_BYTES, FALLBACK_BYTES } byte_kind;

/* The first bytes of a character that is not complete. */
typedef struct {
    uint8_t bytes[4];
    size_t count; /* 0 means that the last character is complete */
} beginning;

struct embla_detokenizer {
    const embla_tokenizer *tokenizer;
    embla_tokenized *decoder; /* memory for decoding; the text that was given is there */
    bool skip_special;
    byte_kind kind;
    int32_t *tokens;
    size_t count, room, context; /* of tokens; those from context on wait */
    beginning partial;           /* at the end of the tokens */
    char *before;                /* text of the context */
    size_t before_room;
};

/* Where the tokens of a call are divided: context from unit to whole, waiting from whole to end. */
typedef struct {
    size_t unit, whole, end;
    beginning partial;
} division;

/* ---- the handle ---- */

static byte_kind kind_of(const embla_tokenizer *t)
{
    for (size_t i = 0; i < t->decoder_count; i++) {
        if (t->decoders[i].kind == EMBLA_UN_BYTES) return LEVEL_BYTES;
        if (t->decoders[i].kind == EMBLA_UN_FALLBACK) return FALLBACK_BYTES;
    }
    return NO_BYTES;
}

embla_status embla_detokenizer_new(const embla_tokenizer *tokenizer,
                                   const embla_detokenizer_options *options,
                                   embla_detokenizer **out)
{
    void *memory = NULL;
    EMBLA_NEED(tokenizer);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_options_check(options));
    EMBLA_TRY(embla_mem_new(sizeof(embla_detokenizer), "the text of tokens", &memory));
    embla_detokenizer *d = memory;
    d->tokenizer = tokenizer;
    d->skip_special = options && options->skip_special;
    d->kind = kind_of(tokenizer);
    embla_status status = embla_tokenized_new(tokenizer, &d->decoder);
    if (status == EMBLA_OK)
        *out = d;
    else
        embla_detokenizer_free(d);
    return status;
}

void embla_detokenizer_free(embla_detokenizer *detokenizer)
{
    embla_detokenizer *d = detokenizer;
    if (!d) return;
    embla_tokenized_free(d->decoder);
    embla_mem_free(d->tokens, d->room * sizeof *d->tokens);
    embla_mem_free(d->before, d->before_room);
    embla_mem_free(d, sizeof *d);
}

void embla_detokenizer_begin(embla_detokenizer *detokenizer)
{
    if (!detokenizer) return;
    detokenizer->count = detokenizer->context = detokenizer->partial.count = 0;
}

/* ---- characters ---- */

/* Adds a byte to the beginning of a character. A byte that does not continue it may begin another
 * one; a byte that can do neither is complete, as U+FFFD. False if it does not continue it. */
static bool add_byte(beginning *b, uint8_t byte)
{
    const size_t kept = b->count;
    b->bytes[b->count++] = byte;
    /* what is missing, so that the length shows whether a character can begin in this way */
    const uint8_t first = b->bytes[0];
    uint8_t whole[4] = {0, first == 0xe0 || first == 0xf0 ? 0xa0 : 0x80, 0x80, 0x80};
    memcpy(whole, b->bytes, b->count);
    const size_t length = embla_utf8_length(whole, sizeof whole);
    if (length > b->count) return true;
    b->count = 0;
    if (length > 0 || kept == 0) return true;
    b->bytes[0] = byte;
    b->count = byte >= 0xc2 && byte <= 0xf4; /* the first byte of several */
    return false;
}

/* Adds the bytes of a string of a byte-level vocabulary. One with other characters is a text. */
static bool add_level(beginning *b, const embla_name *text)
{
    beginning last = *b;
    bool continues = true;
    for (size_t at = 0, size = 0; at < text->length; at += size) {
        size = embla_utf8_length(text->bytes + at, text->length - at);
        int byte = size > 0 ? embla_byte_of_code(embla_utf8_code(text->bytes + at, size)) : -1;
        if (byte < 0) {
            b->count = 0;
            return false;
        }
        const bool right = add_byte(&last, (uint8_t)byte);
        if (at == 0) continues = right;
    }
    *b = last;
    return continues;
}

/* False if the string does not continue the character that has begun. */
static bool add_string(beginning *b, byte_kind kind, const embla_name *text)
{
    int byte = kind == FALLBACK_BYTES ? embla_byte_token(text->bytes, text->length) : -1;
    if (kind == LEVEL_BYTES) return add_level(b, text);
    if (byte >= 0) return add_byte(b, (uint8_t)byte);
    b->count = 0;
    return false;
}

/* ---- tokens ---- */

/* The tokens so far wait no longer. */
static division ended(division at)
{
    at.unit = at.whole;
    at.whole = at.end;
    return at;
}

/* Writes new tokens after those of d, which are not changed, and finds where characters end. Tokens
 * that the decoder leaves out are left out here, so that the context is never without a string. */
static division divide(embla_detokenizer *d, const int32_t *tokens, size_t count)
{
    const embla_tokenizer *t = d->tokenizer;
    division at = {.unit = 0, .whole = d->context, .end = d->count, .partial = d->partial};
    for (size_t i = 0; i < count; i++) {
        embla_name text;
        if (!embla_token_name(t, tokens[i], true, &text)) continue;
        if (d->skip_special && t->special[tokens[i]]) continue;
        const bool continues = add_string(&at.partial, d->kind, &text);
        if (!continues && at.end > at.whole) at = ended(at);
        d->tokens[at.end++] = tokens[i];
        if (at.end - at.whole >= WAIT_MOST) at.partial.count = 0;
        if (at.partial.count == 0) at = ended(at);
    }
    return at;
}

static embla_status decode(embla_detokenizer *d, size_t from, size_t end, const char **text,
                           size_t *length)
{
    return embla_detokenize(d->decoder, d->tokens + from, end - from, false, text, length);
}

/* Decodes the tokens from context to whole. */
static embla_status decode_new(embla_detokenizer *d, size_t whole, const char **text,
                               size_t *length)
{
    const char *now = NULL;
    size_t before = 0, after = 0;
    if (d->context > 0) {
        EMBLA_TRY(decode(d, 0, d->context, &now, &before));
        EMBLA_TRY(embla_grow(&d->before, &d->before_room, 0, before, 1, "the text of tokens"));
        if (before > 0) memcpy(d->before, now, before);
    }
    EMBLA_TRY(decode(d, 0, whole, &now, &after));
    /* Bytes that are not valid UTF-8 may change the text before them, which was given. */
    if (after < before || (before > 0 && memcmp(now, d->before, before) != 0)) {
        EMBLA_TRY(decode(d, d->context, whole, &now, &after));
        before = 0;
    }
    *text = now + before;
    *length = after - before;
    return EMBLA_OK;
}

/* Gives the text of complete characters, and keeps the last of them as the context. */
static embla_status give(embla_detokenizer *d, const division *at, const char **text,
                         size_t *length)
{
    const char *made = "";
    size_t made_length = 0, first = 0;
    if (at->whole > d->context) {
        EMBLA_TRY(decode_new(d, at->whole, &made, &made_length));
        first = at->unit;
    }
    if (first > 0) memmove(d->tokens, d->tokens + first, (at->end - first) * sizeof *d->tokens);
    d->count = at->end - first;
    d->context = at->whole - first;
    d->partial = at->partial;
    *text = made;
    *length = made_length;
    return EMBLA_OK;
}

embla_status embla_detokenizer_add(embla_detokenizer *detokenizer, const int32_t *tokens,
                                   size_t count, const char **text, size_t *length)
{
    embla_detokenizer *d = detokenizer;
    uint64_t need = 0;
    EMBLA_NEED(detokenizer);
    EMBLA_NEED_MANY(tokens, count);
    EMBLA_NEED(text);
    EMBLA_NEED(length);
    if (!embla_add_ok(d->count, count, &need))
        return embla_fail(EMBLA_ERR_MEMORY, "%zu tokens do not fit in memory", count);
    EMBLA_TRY(embla_grow(&d->tokens, &d->room, d->count, (size_t)need, sizeof *d->tokens,
                         "tokens of a text"));
    const division at = divide(d, tokens, count);
    return give(d, &at, text, length);
}

embla_status embla_detokenizer_end(embla_detokenizer *detokenizer, const char **text,
                                   size_t *length)
{
    const embla_detokenizer *d = detokenizer;
    EMBLA_NEED(detokenizer);
    EMBLA_NEED(text);
    EMBLA_NEED(length);
    const division at = {.unit = d->context, .whole = d->count, .end = d->count};
    return give(detokenizer, &at, text, length);
}
