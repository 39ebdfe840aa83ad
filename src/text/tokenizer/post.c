/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the tokens of a text after the model: offsets without spaces, truncation, special
 * tokens, padding. */
#include <string.h>

#include "base/checked.h"
#include "base/utf8.h"
#include "tokenizer/tokenize.h"

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

/* Whether a token is an added one that takes the white space beside it (lstrip, rstrip). */
static bool takes_spaces(const embla_tokenizer *t, int32_t token)
{
    if ((uint64_t)token >= t->token_end) return false;
    const uint32_t i = t->by_token[token];
    if (i < t->vocab_count || i - t->vocab_count >= t->added_count) return false;
    return t->added[i - t->vocab_count].left || t->added[i - t->vocab_count].right;
}

/* Where the character that ends before `end` begins; a byte that is not UTF-8 counts as one. */
static size_t step_back(const char *text, size_t begin, size_t end)
{
    size_t at = end - 1;
    while (at > begin && end - at < 4 && ((uint8_t)text[at] & 0xc0) == 0x80) at--;
    return at + embla_utf8_length(text + at, end - at) == end ? at : end - 1;
}

static size_t step(const char *text, size_t at, size_t end)
{
    size_t length = embla_utf8_length(text + at, end - at);
    return at + (length > 0 ? length : 1);
}

/* The number of characters of white space that a part of the text begins or ends with. */
static size_t span_spaces(const char *text, embla_text_span span, bool at_end)
{
    size_t begin = span.begin, end = span.end, count = 0;
    for (; begin < end; count++) {
        size_t at = at_end ? step_back(text, begin, end) : begin;
        size_t length = embla_utf8_length(text + at, end - at);
        if (length == 0) break; /* not UTF-8 */
        if (!(embla_char_bits(embla_utf8_code(text + at, length)) & EMBLA_CHAR_WHITE)) break;
        if (at_end)
            end = at;
        else
            begin += length;
    }
    return count;
}

/* Removes the spaces of each token from its span: as many characters of the text as its string has
 * spaces. The string of an added token is what it matched. A space that was put in front of the
 * text stays, because it is not in the text. */
void embla_post_trim(embla_tokenized *e, const char *text, size_t first, size_t end)
{
    const embla_tokenizer *t = e->tokenizer;
    if (!t->post.trim || !e->options.offsets) return;
    for (size_t i = first; i < end; i++) {
        const embla_text_span span = e->offsets[i];
        const bool added = takes_spaces(t, e->tokens[i]);
        embla_name name;
        if (!embla_token_name(t, e->tokens[i], false, &name)) continue;
        size_t leading = added ? span_spaces(text, span, false) : count_spaces(&name, false);
        size_t trailing = added ? span_spaces(text, span, true) : count_spaces(&name, true);
        size_t begin = span.begin, stop = span.end;
        if (leading == 1 && t->post.trim_prefix && (i == first || begin == 0)) leading = 0;
        for (; leading > 0 && begin < stop; leading--) begin = step(text, begin, stop);
        for (; trailing > 0 && begin < stop; trailing--) stop = step_back(text, begin, stop);
        e->offsets[i] = (embla_text_span){(uint32_t)begin, (uint32_t)stop};
    }
}

/* ---- moving tokens ---- */

/* Moves `count` tokens to another place of the list, where there is room. */
void embla_post_move(embla_tokenized *e, size_t from, size_t to, size_t count)
{
    memmove(e->tokens + to, e->tokens + from, count * sizeof *e->tokens);
    memmove(e->special + to, e->special + from, count);
    if (e->options.offsets) memmove(e->offsets + to, e->offsets + from, count * sizeof *e->offsets);
    if (!e->pair) return;
    memmove(e->types + to, e->types + from, count);
    memmove(e->sides + to, e->sides + from, count);
}

/* Writes a token that is not in the text. */
void embla_post_special(embla_tokenized *e, size_t at, int32_t token, uint8_t type)
{
    e->tokens[at] = token;
    e->special[at] = 1;
    if (e->options.offsets) e->offsets[at] = (embla_text_span){0, 0};
    if (!e->pair) return;
    e->types[at] = type;
    e->sides[at] = 0;
}

static void truncate_to(embla_tokenized *e, size_t first, size_t most, bool left)
{
    size_t count = e->count - first;
    if (count <= most) return;
    if (left) embla_post_move(e, e->count - most, first, most);
    e->cut += count - most;
    e->count = first + most;
}

static embla_status truncate_text(const embla_tokenizer *t, embla_tokenized *e, size_t first)
{
    size_t added = e->options.add_special ? t->post.single.added : 0;
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
static embla_status add_special(const embla_tokenizer *t, embla_tokenized *e, size_t first)
{
    const embla_template *post = &t->post.single;
    size_t before = 0, texts = 0, count = e->count - first;
    for (size_t i = 0; i < post->count; i++) {
        texts += post->parts[i].text > 0;
        if (texts == 0) before += post->parts[i].count;
    }
    if (texts != 1)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: the template has the text %zu times instead of once", t->name,
                          texts);
    EMBLA_TRY(embla_tokenized_room(e, post->added));
    embla_post_move(e, first, first + before, count);
    size_t at = first;
    for (size_t i = 0; i < post->count; i++) {
        const embla_template_part *part = &post->parts[i];
        if (part->text > 0) at += count;
        for (size_t j = 0; j < part->count; j++)
            embla_post_special(e, at++, part->tokens[j], part->type);
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

embla_status embla_post_pad(embla_tokenized *e, size_t first)
{
    const embla_tokenizer *t = e->tokenizer;
    size_t count = e->count - first, length = padded_length(&t->padding, count);
    if (length <= count) return EMBLA_OK;
    size_t more = length - count;
    EMBLA_TRY(embla_tokenized_room(e, more));
    if (t->padding.left) embla_post_move(e, first, first + more, count);
    size_t at = t->padding.left ? first : e->count;
    for (size_t i = 0; i < more; i++)
        embla_post_special(e, at + i, t->padding.token, t->padding.type);
    e->count += more;
    return EMBLA_OK;
}

embla_status embla_post_pad_batch(embla_tokenized *e)
{
    const embla_limit *pad = &e->tokenizer->padding;
    uint64_t all = 0;
    size_t longest = 0, total = 0;
    if (!e->options.pad || !pad->on || !pad->longest) return EMBLA_OK;
    for (size_t i = 0; i < e->texts; i++)
        if (e->starts[i + 1] - e->starts[i] > longest) longest = e->starts[i + 1] - e->starts[i];
    longest = padded_length(pad, longest);
    if (!embla_mul_ok(longest, e->texts, &all) || !embla_size_ok(all, &total))
        return embla_fail(EMBLA_ERR_MEMORY, "%zu texts of %zu tokens do not fit in memory",
                          e->texts, longest);
    EMBLA_TRY(embla_tokenized_room(e, total - e->count));
    for (size_t i = e->texts; i-- > 0;) { /* from the last, so that nothing is overwritten */
        size_t count = e->starts[i + 1] - e->starts[i], more = longest - count;
        embla_post_move(e, e->starts[i], i * longest + (pad->left ? more : 0), count);
        for (size_t j = 0; j < more; j++)
            embla_post_special(e, i * longest + (pad->left ? j : count + j), pad->token, pad->type);
    }
    for (size_t i = 0; i <= e->texts; i++) e->starts[i] = i * longest;
    e->count = total;
    return EMBLA_OK;
}

embla_status embla_post_process(embla_tokenized *e, const char *text, size_t first)
{
    const embla_tokenizer *t = e->tokenizer;
    EMBLA_TRY(truncate_text(t, e, first));
    embla_post_trim(e, text, first, e->count);
    if (e->options.add_special && t->post.single.count > 0) EMBLA_TRY(add_special(t, e, first));
    bool batch = e->texts > 1 && t->padding.longest; /* done when all texts are known */
    return e->options.pad && t->padding.on && !batch ? embla_post_pad(e, first) : EMBLA_OK;
}
