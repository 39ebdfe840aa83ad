/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes two texts as one: "[CLS] first [SEP] second [SEP]". The tokens of both are made one after
 * the other, truncated together, and copied to their places in the template of the file. The copy
 * goes behind the tokens, so a template may have the texts in any order.
 */
#include <string.h>

#include "tokenizer/tokenize.h"

/* The tokens of one of the texts. */
typedef struct {
    size_t first, count;
    const char *text;
} side;

/* ---- truncation ---- */

static void shorten(embla_tokenized *e, side *s, size_t count, bool left)
{
    if (count >= s->count) return;
    if (left) s->first += s->count - count;
    e->cut += s->count - count;
    s->count = count;
}

/* Takes tokens from the longer text until both are equally long, then from both: as Hugging Face's
 * longest_first. If the number is odd, the text that was longer has one more. */
static void shorten_longest(embla_tokenized *e, side sides[2], size_t most, bool left)
{
    const size_t a = sides[0].count, b = sides[1].count;
    const size_t less = a < b ? a : b;
    size_t small = less, large = less > most || most - less < less ? less : most - less;
    if (small + large > most) {
        small = most / 2;
        large = small + most % 2;
    }
    shorten(e, &sides[0], a > b ? large : small, left);
    shorten(e, &sides[1], a > b ? small : large, left);
}

static embla_status shorten_one(embla_tokenized *e, side *s, size_t more, bool left)
{
    if (s->count <= more)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%.256s: truncation has to remove %zu tokens of one text, which has %zu",
                          e->tokenizer->name, more, s->count);
    shorten(e, s, s->count - more, left);
    return EMBLA_OK;
}

/* Truncates both to `most` tokens, `added` special ones included. rules NULL means longest first.
 */
static embla_status truncate_pair(embla_tokenized *e, side sides[2], size_t most, size_t added,
                                  const embla_limit *rules)
{
    const bool left = rules && rules->left;
    if (added > most)
        return embla_fail(EMBLA_ERR_SHAPE, "%zu tokens at most leave no room for %zu special ones",
                          most, added);
    most -= added;
    size_t count = sides[0].count + sides[1].count;
    if (count <= most) return EMBLA_OK;
    if (most > 0 && rules && rules->only_first)
        return shorten_one(e, &sides[0], count - most, left);
    if (most > 0 && rules && rules->only_second)
        return shorten_one(e, &sides[1], count - most, left);
    shorten_longest(e, sides, most, left);
    return EMBLA_OK;
}

/* ---- the template ---- */

static const embla_template_part both[] = {{.text = 1, .type = 0}, {.text = 2, .type = 1}};

/* Without a template of pairs the second text follows the first, with the type id 1. */
static void list_parts(const embla_tokenizer *t, const embla_template_part **parts, size_t *count)
{
    *parts = t->post.pair.count > 0 ? t->post.pair.parts : both;
    *count = t->post.pair.count > 0 ? t->post.pair.count : 2;
}

static void copy_side(embla_tokenized *e, const side *s, size_t to, uint8_t number, uint8_t type)
{
    embla_post_move(e, s->first, to, s->count);
    memset(e->types + to, type, s->count);
    memset(e->sides + to, number, s->count);
}

static embla_status put_together(embla_tokenized *e, const side sides[2])
{
    const embla_template_part *parts = NULL;
    size_t part_count = 0, total = 0, from = e->count, to = from;
    list_parts(e->tokenizer, &parts, &part_count);
    for (size_t i = 0; i < part_count; i++)
        total += parts[i].text > 0 ? sides[parts[i].text - 1].count : parts[i].count;
    EMBLA_TRY(embla_tokenized_room(e, total));
    for (size_t i = 0; i < part_count; i++) {
        if (parts[i].text > 0) {
            copy_side(e, &sides[parts[i].text - 1], to, parts[i].text, parts[i].type);
            to += sides[parts[i].text - 1].count;
        } else if (e->options.add_special) {
            for (size_t j = 0; j < parts[i].count; j++)
                embla_post_special(e, to++, parts[i].tokens[j], parts[i].type);
        }
    }
    embla_post_move(e, from, 0, to - from);
    e->count = to - from;
    return EMBLA_OK;
}

/* ---- all of it ---- */

static embla_status encode_both(embla_tokenized *e, const char *const texts[2],
                                const size_t lengths[2])
{
    const embla_tokenizer *t = e->tokenizer;
    const size_t added = e->options.add_special ? t->post.pair.added : 0;
    side sides[2];
    for (int i = 0; i < 2; i++) {
        sides[i] = (side){e->count, 0, texts[i]};
        EMBLA_TRY(embla_tokenize_text(e, texts[i], lengths[i]));
        sides[i].count = e->count - sides[i].first;
    }
    if (e->options.truncate && t->truncation.on)
        EMBLA_TRY(truncate_pair(e, sides, t->truncation.most, added, &t->truncation));
    if (e->options.max_tokens > 0)
        EMBLA_TRY(truncate_pair(e, sides, e->options.max_tokens, added, NULL));
    for (int i = 0; i < 2; i++)
        embla_post_trim(e, sides[i].text, sides[i].first, sides[i].first + sides[i].count);
    EMBLA_TRY(put_together(e, sides));
    return e->options.pad && t->padding.on ? embla_post_pad(e, 0) : EMBLA_OK;
}

embla_status embla_tokenize_pair(embla_tokenized *tokenized, const char *first, size_t first_length,
                                 const char *second, size_t second_length,
                                 const embla_tokenize_options *options)
{
    embla_tokenized *e = tokenized;
    const char *const texts[] = {first, second};
    const size_t lengths[] = {first_length, second_length};
    if (!e || (!first && first_length > 0) || (!second && second_length > 0))
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_tokenize_pair: %s is NULL",
                          e ? "a text" : "tokenized");
    EMBLA_TRY(embla_tokenize_begin(e, options));
    EMBLA_TRY(embla_grow(&e->starts, &e->start_room, 0, 2, sizeof *e->starts, "a text"));
    e->pair = true;
    return embla_tokenize_end(e, encode_both(e, texts, lengths));
}

const uint8_t *embla_tokenized_types(const embla_tokenized *tokenized)
{
    return tokenized && tokenized->pair ? tokenized->types : NULL;
}

const uint8_t *embla_tokenized_sides(const embla_tokenized *tokenized)
{
    return tokenized && tokenized->pair ? tokenized->sides : NULL;
}
