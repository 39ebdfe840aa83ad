/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the tokens of a text after the model: offsets without spaces, truncation, special
 * tokens, padding. */
#include <string.h>

#include "text/encode.h"

/* ---- offsets ---- */

/* The number of spaces that a token's string begins or ends with. A space is U+0120 in a byte-level
 * vocabulary. */
static size_t count_spaces(const embla_name *text, bool at_end)
{
    size_t count = 0, begin = 0, end = text->length, length = 0;
    while (begin < end) {
        size_t at = begin;
        if (at_end) {
            at = end - 1;
            while (at > begin && ((uint8_t)text->bytes[at] & 0xc0) == 0x80) at--;
        }
        uint32_t code = embla_char_at(text->bytes + at, &length);
        if (code != 0x120 && !(embla_char_bits(code) & EMBLA_CHAR_WHITE)) break;
        count++;
        if (at_end)
            end = at;
        else
            begin += length;
    }
    return count;
}

/* Removes the spaces of each token from its span; a space that was put in front of the text stays,
 * because it is not in the text. */
static void trim_offsets(const embla_tokenizer *t, embla_encoding *e, size_t first)
{
    for (size_t i = first; i < e->count; i++) {
        embla_text_span *span = &e->offsets[i];
        embla_name text;
        if (!embla_token_name(t, e->tokens[i], false, &text)) continue;
        size_t leading = count_spaces(&text, false), trailing = count_spaces(&text, true);
        if (leading == 1 && t->post.trim_prefix && (i == first || span->begin == 0)) leading = 0;
        span->begin =
            leading < span->end - span->begin ? span->begin + (uint32_t)leading : span->end;
        if (trailing > 0 && span->end >= trailing)
            span->end =
                span->end - trailing > span->begin ? span->end - (uint32_t)trailing : span->begin;
    }
}

/* ---- moving tokens ---- */

/* Moves `count` tokens to another place of the list, where there is room. */
static void move(embla_encoding *e, size_t from, size_t to, size_t count)
{
    memmove(e->tokens + to, e->tokens + from, count * sizeof *e->tokens);
    memmove(e->special + to, e->special + from, count);
    if (e->options.offsets) memmove(e->offsets + to, e->offsets + from, count * sizeof *e->offsets);
}

/* Writes a token that is not in the text. */
static void write_special(embla_encoding *e, size_t at, int32_t token)
{
    e->tokens[at] = token;
    e->special[at] = 1;
    if (e->options.offsets) e->offsets[at] = (embla_text_span){0, 0};
}

static void truncate_to(embla_encoding *e, size_t first, size_t most, bool left)
{
    size_t count = e->count - first;
    if (count <= most) return;
    if (left) move(e, e->count - most, first, most);
    e->cut += count - most;
    e->count = first + most;
}

static embla_status truncate_text(const embla_tokenizer *t, embla_encoding *e, size_t first)
{
    size_t added = e->options.add_special ? t->post.added : 0;
    size_t file = t->truncation.most, own = e->options.max_tokens;
    if (e->options.truncate && t->truncation.on) {
        if (added > file)
            return embla_fail(EMBLA_ERR_SHAPE,
                              "%.256s: truncation to %zu tokens leaves no room for %zu special "
                              "ones",
                              t->name, file, added);
        if (t->truncation.only_second && e->count - first > file - added)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "%.256s: it truncates only the second of two texts", t->name);
        truncate_to(e, first, file - added, t->truncation.left);
    }
    if (own == 0) return EMBLA_OK;
    if (added > own)
        return embla_fail(EMBLA_ERR_SHAPE, "%zu tokens at most leave no room for %zu special ones",
                          own, added);
    truncate_to(e, first, own - added, false);
    return EMBLA_OK;
}

/* ---- special tokens ---- */

/* How many tokens stand before and after the text. A template that has the text more than once, or
 * not at all, has no such form. */
static embla_status add_special(const embla_tokenizer *t, embla_encoding *e, size_t first)
{
    const embla_post *post = &t->post;
    size_t before = 0, texts = 0, count = e->count - first;
    for (size_t i = 0; i < post->count; i++) {
        texts += post->parts[i].text;
        if (texts == 0) before += post->parts[i].count;
    }
    if (texts != 1)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: the template has the text %zu times instead of once", t->name,
                          texts);
    EMBLA_TRY(embla_encoding_room(e, post->added));
    move(e, first, first + before, count);
    size_t at = first;
    for (size_t i = 0; i < post->count; i++) {
        const embla_template_part *part = &post->parts[i];
        if (part->text) at += count;
        for (size_t j = 0; j < part->count; j++) write_special(e, at++, part->tokens[j]);
    }
    e->count += post->added;
    return EMBLA_OK;
}

/* ---- padding ---- */

static size_t padded_length(const embla_limit *pad, size_t longest)
{
    size_t length = pad->longest ? longest : pad->most;
    if (pad->multiple > 0 && length % pad->multiple > 0)
        length += pad->multiple - length % pad->multiple;
    return length;
}

static embla_status pad_last(const embla_tokenizer *t, embla_encoding *e, size_t first)
{
    size_t count = e->count - first, length = padded_length(&t->padding, count);
    if (length <= count) return EMBLA_OK;
    size_t more = length - count;
    EMBLA_TRY(embla_encoding_room(e, more));
    if (t->padding.left) move(e, first, first + more, count);
    size_t at = t->padding.left ? first : e->count;
    for (size_t i = 0; i < more; i++) write_special(e, at + i, t->padding.token);
    e->count += more;
    return EMBLA_OK;
}

embla_status embla_post_pad_batch(embla_encoding *e)
{
    const embla_limit *pad = &e->tokenizer->padding;
    size_t longest = 0, total = 0;
    if (!e->options.pad || !pad->on || !pad->longest) return EMBLA_OK;
    for (size_t i = 0; i < e->texts; i++)
        if (e->starts[i + 1] - e->starts[i] > longest) longest = e->starts[i + 1] - e->starts[i];
    longest = padded_length(pad, longest);
    total = longest * e->texts;
    EMBLA_TRY(embla_encoding_room(e, total - e->count));
    for (size_t i = e->texts; i-- > 0;) { /* from the last, so that nothing is overwritten */
        size_t count = e->starts[i + 1] - e->starts[i], more = longest - count;
        move(e, e->starts[i], i * longest + (pad->left ? more : 0), count);
        for (size_t j = 0; j < more; j++)
            write_special(e, i * longest + (pad->left ? j : count + j), pad->token);
    }
    for (size_t i = 0; i <= e->texts; i++) e->starts[i] = i * longest;
    e->count = total;
    return EMBLA_OK;
}

embla_status embla_post_process(embla_encoding *e, size_t first)
{
    const embla_tokenizer *t = e->tokenizer;
    EMBLA_TRY(truncate_text(t, e, first));
    if (t->post.trim && e->options.offsets) trim_offsets(t, e, first);
    if (e->options.add_special && t->post.count > 0) EMBLA_TRY(add_special(t, e, first));
    bool batch = e->texts > 1 && t->padding.longest; /* done when all texts are known */
    return e->options.pad && t->padding.on && !batch ? pad_last(t, e, first) : EMBLA_OK;
}
