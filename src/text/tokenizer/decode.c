/* SPDX-License-Identifier: Apache-2.0 */
/* From tokens back to text. The strings of the tokens are pieces of a strand; each decoder writes
 * them again into the other strand, and at the end they are joined. */
#include <string.h>

#include "base/byte_text.h"
#include "tokenizer/tokenize.h"

typedef struct {
    const embla_tokenizer *t;
    embla_tokenized *e;
    int from, to; /* strands, and lists of pieces */
} chain;

static embla_text_span *pieces(const chain *c)
{
    return c->e->pieces[c->from];
}

static size_t count(const chain *c)
{
    return c->e->piece_count[c->from];
}

static const char *text_of(const chain *c, size_t i, size_t *length)
{
    const embla_text_span span = pieces(c)[i];
    *length = span.end - span.begin;
    return *length > 0 ? c->e->decoded[c->from].bytes + span.begin : "";
}

/* ---- writing ---- */

static embla_status put(chain *c, const char *bytes, size_t length)
{
    return embla_strand_insert(&c->e->decoded[c->to], bytes, length);
}

/* Ends a piece that began at `begin`. */
static embla_status close_piece(chain *c, size_t begin)
{
    embla_tokenized *e = c->e;
    EMBLA_TRY(embla_grow(&e->pieces[c->to], &e->piece_room[c->to], e->piece_count[c->to],
                         e->piece_count[c->to] + 1, sizeof(embla_text_span), "pieces of a text"));
    e->pieces[c->to][e->piece_count[c->to]++] =
        (embla_text_span){(uint32_t)begin, (uint32_t)e->decoded[c->to].count};
    return EMBLA_OK;
}

static void begin_stage(chain *c)
{
    c->e->piece_count[c->to] = 0;
    embla_strand_begin(&c->e->decoded[c->to], (embla_view){0});
}

static void end_stage(chain *c)
{
    c->from = c->to;
    c->to = 1 - c->to;
}

/* ---- decoders that look at one string at a time ---- */

static embla_status replace_text(chain *c, const char *text, size_t length, const embla_name *old,
                                 const char *new, size_t new_length)
{
    const embla_pattern pattern = {.kind = EMBLA_PATTERN_TEXT, .text = *old};
    const embla_piece piece = {text, 0, length, false};
    size_t last = 0, begin = 0, end = 0;
    bool found = false;
    for (;;) {
        EMBLA_TRY(embla_pattern_next(&pattern, &piece, last, &c->e->bound, &found, &begin, &end));
        if (!found) return put(c, text + last, length - last);
        EMBLA_TRY(put(c, text + last, begin - last));
        EMBLA_TRY(put(c, new, new_length));
        last = end;
    }
}

static embla_status replace_pattern(chain *c, const embla_rejoin *d, const char *text,
                                    size_t length)
{
    const embla_piece piece = {text, 0, length, false};
    size_t last = 0, begin = 0, end = 0;
    bool found = false;
    for (;;) {
        EMBLA_TRY(
            embla_pattern_next(&d->pattern, &piece, last, &c->e->bound, &found, &begin, &end));
        if (!found) return put(c, text + last, length - last);
        EMBLA_TRY(put(c, text + last, begin - last));
        EMBLA_TRY(put(c, d->text.bytes, d->text.length));
        last = end;
    }
}

/* Replaces in place; the new string is not longer, the old one not empty. Returns the new length.
 */
static size_t shorten(char *text, size_t length, const embla_name *old, const char *new,
                      size_t new_length)
{
    size_t out = 0, at = 0;
    for (;;) {
        const char *hit = embla_text_find(text + at, length - at, old->bytes, old->length);
        const size_t kept = hit ? (size_t)(hit - text) - at : length - at;
        memmove(text + out, text + at, kept);
        out += kept;
        if (!hit) return out;
        memcpy(text + out, new, new_length);
        out += new_length;
        at += kept + old->length;
    }
}

/* Removes spaces that WordPiece puts before punctuation and parts of English words. */
static size_t clean_up(char *text, size_t length)
{
    static const char *const pairs[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const embla_name old = {pairs[i][0], (uint32_t)strlen(pairs[i][0]), 0};
        length = shorten(text, length, &old, pairs[i][1], strlen(pairs[i][1]));
    }
    return length;
}

static embla_status decode_wordpiece(chain *c, const embla_rejoin *d, size_t i, const char *text,
                                     size_t length)
{
    embla_strand *out = &c->e->decoded[c->to];
    size_t begin = out->count;
    bool inner = length >= d->text.length && memcmp(text, d->text.bytes, d->text.length) == 0;
    if (i > 0 && inner) {
        text += d->text.length;
        length -= d->text.length;
    } else if (i > 0) {
        EMBLA_TRY(put(c, " ", 1));
    }
    EMBLA_TRY(put(c, text, length));
    if (d->cleanup && out->count > begin) /* nothing has no address */
        out->count = begin + clean_up(out->bytes + begin, out->count - begin);
    return EMBLA_OK;
}

static embla_status decode_strip(chain *c, const embla_rejoin *d, const char *text, size_t length)
{
    const embla_name *mark = &d->text;
    size_t begin = 0, end = length;
    for (size_t i = 0; i < d->start && mark->length > 0 && end - begin >= mark->length; i++) {
        if (memcmp(text + begin, mark->bytes, mark->length) != 0) break;
        begin += mark->length;
    }
    for (size_t i = 0; i < d->stop && mark->length > 0 && end - begin >= mark->length; i++) {
        if (memcmp(text + end - mark->length, mark->bytes, mark->length) != 0) break;
        end -= mark->length;
    }
    return put(c, text + begin, end - begin);
}

static embla_status decode_piece(chain *c, const embla_rejoin *d, size_t i)
{
    size_t length = 0;
    const char *text = text_of(c, i, &length);
    bool first = i == 0, last = i + 1 == count(c);
    switch (d->kind) {
    case EMBLA_UN_REPLACE:
        return replace_pattern(c, d, text, length);
    case EMBLA_UN_WORDPIECE:
        return decode_wordpiece(c, d, i, text, length);
    case EMBLA_UN_METASPACE:
        return replace_text(c, text, length, &d->text, " ", first && !d->keep_first ? 0 : 1);
    case EMBLA_UN_SUFFIX:
        return replace_text(c, text, length, &d->text, " ", last ? 0 : 1);
    default:
        return decode_strip(c, d, text, length);
    }
}

static embla_status decode_each(chain *c, const embla_rejoin *d)
{
    for (size_t i = 0; i < count(c); i++) {
        size_t begin = c->e->decoded[c->to].count;
        EMBLA_TRY(decode_piece(c, d, i));
        EMBLA_TRY(close_piece(c, begin));
    }
    return EMBLA_OK;
}

/* ---- decoders that join strings ---- */

static embla_status fuse(chain *c)
{
    for (size_t i = 0; i < count(c); i++) {
        size_t length = 0;
        const char *text = text_of(c, i, &length);
        EMBLA_TRY(put(c, text, length));
    }
    return close_piece(c, 0);
}

/* ByteLevel: characters become bytes, and those become valid UTF-8. */
static embla_status decode_bytes(chain *c)
{
    embla_strand *bytes = &c->e->spaced[0], *out = &c->e->decoded[c->to];
    embla_strand_begin(bytes, (embla_view){0});
    for (size_t i = 0; i < count(c); i++) {
        size_t length = 0, used = 0;
        const char *text = text_of(c, i, &length);
        if (length == 0) continue;
        EMBLA_TRY(embla_strand_room(bytes, length));
        if (embla_unmap(text, length, bytes->bytes + bytes->count, &used))
            bytes->count += used;
        else
            EMBLA_TRY(embla_strand_insert(bytes, text, length));
    }
    EMBLA_TRY(embla_strand_valid(out, bytes->bytes, bytes->count, false));
    return close_piece(c, 0);
}

/* Writes bytes as one string if they are valid UTF-8, otherwise U+FFFD for each. */
static embla_status put_bytes(chain *c, const embla_strand *bytes)
{
    size_t begin = c->e->decoded[c->to].count;
    if (bytes->count == 0) return EMBLA_OK;
    if (embla_utf8_valid(bytes->bytes, bytes->count) == bytes->count) {
        EMBLA_TRY(put(c, bytes->bytes, bytes->count));
        return close_piece(c, begin);
    }
    for (size_t i = 0; i < bytes->count; i++) {
        begin = c->e->decoded[c->to].count;
        EMBLA_TRY(put(c, "\xef\xbf\xbd", 3));
        EMBLA_TRY(close_piece(c, begin));
    }
    return EMBLA_OK;
}

static embla_status decode_fallback(chain *c)
{
    embla_strand *bytes = &c->e->spaced[0];
    embla_strand_begin(bytes, (embla_view){0});
    for (size_t i = 0; i < count(c); i++) {
        size_t length = 0;
        const char *text = text_of(c, i, &length);
        int byte = embla_byte_token(text, length);
        if (byte >= 0) {
            char one = (char)byte;
            EMBLA_TRY(embla_strand_insert(bytes, &one, 1));
            continue;
        }
        EMBLA_TRY(put_bytes(c, bytes));
        embla_strand_begin(bytes, (embla_view){0});
        size_t begin = c->e->decoded[c->to].count;
        EMBLA_TRY(put(c, text, length));
        EMBLA_TRY(close_piece(c, begin));
    }
    return put_bytes(c, bytes);
}

/* CTC: a string that repeats the one before it is dropped, then the mark of nothing is removed, and
 * what is empty is dropped too. */
static embla_status decode_ctc(chain *c, const embla_rejoin *d)
{
    embla_strand *out = &c->e->decoded[c->to];
    const char *before = NULL;
    size_t before_length = 0;
    for (size_t i = 0; i < count(c); i++) {
        size_t length = 0, begin = out->count;
        const char *text = text_of(c, i, &length);
        bool same =
            i > 0 && length == before_length && (length == 0 || memcmp(text, before, length) == 0);
        before = text;
        before_length = length;
        if (same || length == 0) continue;
        EMBLA_TRY(put(c, text, length));
        char *made = out->bytes + begin;
        if (d->text.length > 0) length = shorten(made, length, &d->text, "", 0);
        if (d->cleanup) length = clean_up(made, length);
        if (d->cleanup) length = shorten(made, length, &d->content, " ", 1);
        out->count = begin + length;
        if (length > 0) EMBLA_TRY(close_piece(c, begin));
    }
    return EMBLA_OK;
}

/* ---- all of them ---- */

/* What messages call a decoder. */
static const char *const names[] = {
    [EMBLA_UN_REPLACE] = "the decoder Replace",
    [EMBLA_UN_BYTES] = "the decoder ByteLevel",
    [EMBLA_UN_WORDPIECE] = "the decoder WordPiece",
    [EMBLA_UN_METASPACE] = "the decoder Metaspace",
    [EMBLA_UN_SUFFIX] = "the decoder BPEDecoder",
    [EMBLA_UN_FALLBACK] = "the decoder ByteFallback",
    [EMBLA_UN_FUSE] = "the decoder Fuse",
    [EMBLA_UN_STRIP] = "the decoder Strip",
    [EMBLA_UN_CTC] = "the decoder CTC",
};

static embla_status run_decoder(chain *c, const embla_rejoin *d)
{
    const embla_strand *out = &c->e->decoded[c->to];
    begin_stage(c);
    c->e->bound.stage = names[d->kind];
    EMBLA_TRY(embla_bound_add(&c->e->bound, c->e->decoded[c->from].count + count(c) + 1));
    switch (d->kind) {
    case EMBLA_UN_BYTES:
        EMBLA_TRY(decode_bytes(c));
        break;
    case EMBLA_UN_FALLBACK:
        EMBLA_TRY(decode_fallback(c));
        break;
    case EMBLA_UN_FUSE:
        EMBLA_TRY(fuse(c));
        break;
    case EMBLA_UN_CTC:
        EMBLA_TRY(decode_ctc(c, d));
        break;
    default:
        EMBLA_TRY(decode_each(c, d));
        break;
    }
    EMBLA_TRY(embla_bound_add(&c->e->bound, out->count));
    end_stage(c);
    return EMBLA_OK;
}

/* Writes the strings of the tokens, which are the input that the bound counts. */
static embla_status list_strings(chain *c, const int32_t *tokens, size_t number, bool skip_special)
{
    const embla_tokenizer *t = c->t;
    c->e->bound.most_bytes = UINT64_MAX;
    begin_stage(c);
    for (size_t i = 0; i < number; i++) {
        size_t begin = c->e->decoded[c->to].count;
        embla_name text;
        if (!embla_token_name(t, tokens[i], true, &text)) continue;
        if (skip_special && t->special[tokens[i]]) continue;
        EMBLA_TRY(put(c, text.bytes, text.length));
        EMBLA_TRY(close_piece(c, begin));
    }
    end_stage(c);
    embla_bound_begin(&c->e->bound, t->name, "the strings of tokens",
                      c->e->decoded[c->from].count + number);
    return EMBLA_OK;
}

/* Joins the strings, with spaces between them if the file has no decoder. */
static embla_status join(chain *c)
{
    begin_stage(c);
    for (size_t i = 0; i < count(c); i++) {
        size_t length = 0;
        const char *text = text_of(c, i, &length);
        if (i > 0 && !c->t->has_decoder) EMBLA_TRY(put(c, " ", 1));
        EMBLA_TRY(put(c, text, length));
    }
    EMBLA_TRY(put(c, "", 1)); /* a 0 after the text */
    return EMBLA_OK;
}

embla_status embla_detokenize(embla_tokenized *tokenized, const int32_t *tokens,
                              size_t count_of_tokens, bool skip_special, const char **text,
                              size_t *length)
{
    embla_tokenized *e = tokenized;
    if (!e || (!tokens && count_of_tokens > 0) || !text || !length)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_detokenize: %s is NULL",
                          !e        ? "tokenized"
                          : !text   ? "text"
                          : !length ? "length"
                                    : "tokens");
    chain c = {e->tokenizer, e, 0, 1};
    EMBLA_TRY(embla_tokenizer_check(c.t));
    EMBLA_TRY(list_strings(&c, tokens, count_of_tokens, skip_special));
    for (size_t i = 0; i < c.t->decoder_count; i++) EMBLA_TRY(run_decoder(&c, &c.t->decoders[i]));
    EMBLA_TRY(join(&c));
    EMBLA_TRY(embla_tokenizer_check(c.t));
    *text = e->decoded[c.to].bytes;
    *length = e->decoded[c.to].count - 1;
    return EMBLA_OK;
}
