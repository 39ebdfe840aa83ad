/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an array of tokens from a text with a tokenizer. A stream is one text for each file, so
 * that tokens may cross line ends. Documents are lines, each between two <|endoftext|>; they are
 * shared over threads. */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "corpus/corpus.h"
#include "files/packed.h"
#include "tokenizer/grow.h"

static const char text_end[] = "<|endoftext|>";

typedef struct {
    embla_corpus *corpus;
    embla_tokenized *tokenized;
    const char **texts; /* the documents */
    size_t *lengths;
    size_t count, text_room, length_room;
    uint64_t *starts;
    size_t room; /* of the corpus's tokens, in bytes */
} making;

/* Appends tokens in the width of the corpus. */
static embla_status append(making *m, const int32_t *tokens, size_t count)
{
    embla_corpus *c = m->corpus;
    const unsigned width = c->width;
    size_t used = (size_t)c->count * width;
    EMBLA_TRY(embla_grow(&c->held, &m->room, used, used + count * width, 1, "tokens of a text"));
    c->held_bytes = m->room;
    uint8_t *out = (uint8_t *)c->held + used;
    for (size_t i = 0; i < count; i++)
        for (unsigned b = 0; b < width; b++)
            out[i * width + b] = (uint8_t)((uint32_t)tokens[i] >> (8 * b));
    c->count += count;
    return EMBLA_OK;
}

/* ---- documents ---- */

static embla_status add_line(making *m, const char *line, size_t length)
{
    EMBLA_TRY(embla_grow(&m->texts, &m->text_room, m->count, m->count + 1, sizeof *m->texts,
                         "documents"));
    EMBLA_TRY(embla_grow(&m->lengths, &m->length_room, m->count, m->count + 1, sizeof *m->lengths,
                         "documents"));
    m->texts[m->count] = line;
    m->lengths[m->count++] = length;
    return EMBLA_OK;
}

/* Lists the lines of a file. Lines end with LF or CR LF; an empty line is no document. */
static embla_status list_lines(making *m, const char *text, size_t length)
{
    for (size_t at = 0, next = 0; at < length; at = next) {
        const char *stop = memchr(text + at, '\n', length - at);
        size_t end = stop ? (size_t)(stop - text) : length;
        next = stop ? end + 1 : length;
        if (end > at && text[end - 1] == '\r') end--;
        if (end > at) EMBLA_TRY(add_line(m, text + at, end - at));
    }
    return EMBLA_OK;
}

/* A line may have no tokens, such as one of spaces: then it is no document. */
static embla_status encode_lines(making *m)
{
    embla_corpus *c = m->corpus;
    const int32_t bos = c->bos;
    const embla_texts texts = {.texts = m->texts, .lengths = m->lengths, .count = m->count};
    EMBLA_TRY(embla_tokenize_batch(m->tokenized, &texts, NULL));
    EMBLA_TRY(embla_arena_many(&c->arena, (uint64_t)m->count + 1, sizeof *m->starts,
                               "starts of documents", &m->starts));
    const int32_t *tokens = embla_tokenized_tokens(m->tokenized);
    const size_t *starts = embla_tokenized_starts(m->tokenized);
    EMBLA_TRY(append(m, &bos, 1));
    c->documents = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (starts[i + 1] == starts[i]) continue;
        m->starts[c->documents++] = c->count - 1; /* the BOS before it */
        EMBLA_TRY(append(m, tokens + starts[i], starts[i + 1] - starts[i]));
        EMBLA_TRY(append(m, &bos, 1));
    }
    m->starts[c->documents] = c->count - 1;
    c->starts = m->starts;
    return EMBLA_OK;
}

/* ---- all files ---- */

static embla_status add_part(making *m, const embla_corpus_part *part, const char *text,
                             size_t length)
{
    EMBLA_TRY(embla_packed_check(part->name, (const uint8_t *)text, length, true));
    size_t valid = length > 0 ? embla_utf8_valid(text, length) : 0;
    if (valid < length)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s is not valid UTF-8: byte %zu is 0x%02x; a tokenizer needs text",
                          part->name, valid, (unsigned)(uint8_t)text[valid]);
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
        text += 3;
        length -= 3;
    }
    if (m->corpus->options.documents) return list_lines(m, text, length);
    EMBLA_TRY(embla_tokenize(m->tokenized, text, length, NULL));
    return append(m, embla_tokenized_tokens(m->tokenized), embla_tokenized_count(m->tokenized));
}

static embla_status make(making *m, const char *text, const embla_corpus_part *parts, size_t count)
{
    embla_corpus *c = m->corpus;
    const embla_tokenizer *tokenizer = c->options.tokenizer;
    const char *name = count > 0 ? parts[0].name : "a text";
    embla_tokenizer_info info;
    EMBLA_TRY(embla_tokenizer_describe(tokenizer, &info));
    c->vocab = info.tokens;
    c->width = c->vocab <= 1 << 8 ? 1 : c->vocab <= 1 << 16 ? 2 : 4;
    if (c->options.documents) {
        c->bos = embla_tokenizer_token(tokenizer, text_end, sizeof text_end - 1);
        if (c->bos < 0)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "documents need the special token %s, which is not among the "
                              "tokenizer's %" PRId64 " tokens",
                              text_end, info.tokens);
    }
    for (size_t i = 0, from = 0; i < count; from = parts[i++].end)
        EMBLA_TRY(add_part(m, &parts[i], text + from, parts[i].end - from));
    if (c->options.documents) EMBLA_TRY(encode_lines(m));
    if (c->count == 0 || c->documents == 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s has no text: the tokenizer makes 0 tokens",
                          name);
    c->at = c->held;
    return embla_corpus_split(c, name);
}

embla_status embla_corpus_of_tokenizer(void *bytes, size_t room, const embla_corpus_part *parts,
                                       size_t count, const embla_corpus_options *options,
                                       embla_corpus **out)
{
    making m = {0};
    embla_status status = embla_corpus_new(options, &m.corpus);
    if (status == EMBLA_OK) status = embla_tokenized_new(options->tokenizer, &m.tokenized);
    if (status == EMBLA_OK) status = make(&m, bytes ? bytes : "", parts, count);
    embla_tokenized_free(m.tokenized);
    embla_mem_free((void *)m.texts, m.text_room * sizeof *m.texts);
    embla_mem_free(m.lengths, m.length_room * sizeof *m.lengths);
    embla_mem_free(bytes, room);
    if (status == EMBLA_OK) {
        m.corpus->options.tokenizer = NULL; /* it is not needed any more */
        *out = m.corpus;
    } else {
        embla_corpus_free(m.corpus);
    }
    return status;
}
