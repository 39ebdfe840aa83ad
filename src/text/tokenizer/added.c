/* SPDX-License-Identifier: Apache-2.0 */
/* Added tokens: strings that are cut out of a text before the model sees it. The first one in the
 * text is taken, of several at one place the longest.
 *
 * Their numbers are not those that the file declares, but those that Hugging Face's library gives
 * them: the vocabulary's if it has the string, else the next after the number of its entries. With
 * holes in the vocabulary a new number may be that of another token, which it then replaces.
 */
#include <string.h>

#include "tokenizer/tokenize.h"

/* ---- building ---- */

/* The token that was added before with this content or number, if any. */
static embla_added *find_same(embla_tokenizer *t, const embla_names *index, size_t i)
{
    const embla_name *content = &t->added[i].content;
    const embla_name *first = embla_names_find(index, content->bytes, content->length);
    return first && first->number < i ? &t->added[first->number] : NULL;
}

/* Gives each added token its number. Empty ones, and those that a later one replaces, are dropped
 * by setting their content's bytes to NULL. */
static embla_status number_added(embla_tokenizer *t)
{
    embla_name *contents = NULL;
    embla_names index = {0};
    uint64_t next = t->vocab_count;
    EMBLA_TRY(
        embla_arena_many(&t->arena, t->added_count, sizeof *contents, "added tokens", &contents));
    for (size_t i = 0; i < t->added_count; i++) {
        contents[i] = t->added[i].content;
        contents[i].number = (uint32_t)i;
    }
    EMBLA_TRY(embla_names_sort(&t->arena, contents, t->added_count, &index));
    for (size_t i = 0; i < t->added_count; i++) {
        embla_added *a = &t->added[i];
        embla_added *same = find_same(t, &index, i);
        int32_t token = embla_tokenizer_literal(t, a->content.bytes, a->content.length);
        if (a->content.length == 0) {
            a->content.bytes = NULL;
        } else if (same) { /* the properties of the later one count */
            a->content.number = same->content.number;
            *same = *a;
            a->content.bytes = NULL;
        } else {
            a->content.number = token >= 0 ? (uint32_t)token : (uint32_t)next++;
        }
    }
    return EMBLA_OK;
}

/* Normalizes the content of a token as the text is normalized. */
static embla_status normalize_content(embla_tokenizer *t, embla_tokenized *e, embla_added *a)
{
    embla_view view = {a->content.bytes, a->content.length, NULL}, out;
    const char *copy = NULL;
    a->matched = a->content;
    if (!a->normalized || t->normal_count == 0) return EMBLA_OK;
    EMBLA_TRY(embla_normalize_text(t, e, view, &out));
    EMBLA_TRY(embla_bound_make(&e->bound, out.count));
    EMBLA_TRY(embla_arena_text(&t->arena, out.bytes, out.count, &copy));
    a->matched = (embla_name){copy, (uint32_t)out.count, 0};
    return EMBLA_OK;
}

static bool belongs(const embla_added *a, bool normalized)
{
    return a->content.bytes && a->normalized == normalized && a->matched.length > 0;
}

void embla_matcher_prepare(const embla_tokenizer *t, embla_matcher *matcher, bool normalized)
{
    int firsts = 0;
    matcher->only = -1;
    for (size_t i = 0; i < t->added_count; i++) {
        if (!belongs(&t->added[i], normalized)) continue;
        uint8_t first = (uint8_t)t->added[i].matched.bytes[0];
        firsts += !matcher->first[first];
        matcher->first[first] = true;
        matcher->only = firsts == 1 ? first : -1;
        matcher->count++;
    }
}

static embla_status build_matcher(embla_tokenizer *t, embla_matcher *m, bool normalized)
{
    embla_trie_key *keys = NULL;
    size_t count = 0;
    embla_matcher_prepare(t, m, normalized);
    if (m->count == 0) return EMBLA_OK;
    EMBLA_TRY(embla_arena_many(&t->arena, m->count, sizeof *keys, "added tokens", &keys));
    for (size_t i = 0; i < t->added_count; i++) {
        const embla_name *text = &t->added[i].matched;
        if (belongs(&t->added[i], normalized))
            keys[count++] = (embla_trie_key){text->bytes, text->length, (int32_t)i};
    }
    return embla_trie_build(&m->trie, keys, count);
}

/* Puts added tokens into the list of all tokens, where they replace those of the vocabulary. One
 * whose number a later one has taken is dropped. */
static embla_status list_added(embla_tokenizer *t)
{
    uint32_t *by_token = NULL;
    uint8_t *special = NULL;
    size_t end = t->token_end;
    for (size_t i = 0; i < t->added_count; i++)
        if (t->added[i].content.bytes && t->added[i].content.number >= end)
            end = (size_t)t->added[i].content.number + 1;
    EMBLA_TRY(embla_arena_many(&t->arena, end, sizeof *by_token, "tokens", &by_token));
    EMBLA_TRY(embla_arena_many(&t->arena, end, sizeof *special, "tokens", &special));
    for (size_t i = 0; i < end; i++)
        by_token[i] = i < t->token_end ? t->by_token[i] : EMBLA_NO_STRING;
    for (size_t i = 0; i < t->added_count; i++) {
        const embla_added *a = &t->added[i];
        if (!a->content.bytes) continue;
        by_token[a->content.number] = (uint32_t)(t->vocab_count + i);
        special[a->content.number] = a->special;
    }
    for (size_t i = 0; i < t->added_count; i++) {
        embla_name *content = &t->added[i].content;
        if (content->bytes && by_token[content->number] != t->vocab_count + i)
            content->bytes = NULL;
    }
    t->by_token = by_token;
    t->special = special;
    t->token_end = end;
    return EMBLA_OK;
}

embla_status embla_added_finish(embla_tokenizer *t)
{
    embla_tokenized *e = NULL;
    EMBLA_TRY(number_added(t));
    EMBLA_TRY(list_added(t));
    EMBLA_TRY(embla_tokenized_new(t, &e));
    embla_status status = EMBLA_OK;
    size_t bytes = 0;
    for (size_t i = 0; i < t->added_count; i++) bytes += t->added[i].content.length;
    embla_bound_begin(&e->bound, t->name, "added tokens", bytes);
    for (size_t i = 0; i < t->added_count && status == EMBLA_OK; i++)
        if (t->added[i].content.bytes) status = normalize_content(t, e, &t->added[i]);
    embla_tokenized_free(e);
    if (status == EMBLA_OK) status = build_matcher(t, &t->raw, false);
    if (status == EMBLA_OK) status = build_matcher(t, &t->normalized, true);
    return status;
}

embla_status embla_added_special(embla_tokenizer *t, const char *content, size_t length)
{
    void *list = t->added;
    const char *copy = NULL;
    EMBLA_TRY(embla_arena_grow(&t->arena, sizeof *t->added, t->added_count, "added tokens", &list,
                               &t->added_room));
    t->added = list;
    EMBLA_TRY(embla_arena_text(&t->arena, content, length, &copy));
    t->added[t->added_count++] =
        (embla_added){.content = {copy, (uint32_t)length, 0}, .special = true};
    return EMBLA_OK;
}

/* ---- searching ---- */

/* The longest token at `at`; NULL if there is none. */
static const embla_added *longest(embla_tokenized *e, const embla_matcher *m,
                                  const embla_view *view, size_t at, size_t *end)
{
    const size_t begin = at;
    const embla_added *found = NULL;
    uint32_t state = 0;
    while (at < view->count && embla_trie_step(&m->trie, &state, (uint8_t)view->bytes[at])) {
        at++;
        int32_t index = embla_trie_value(&m->trie, state);
        if (index < 0) continue;
        found = &e->tokenizer->added[index];
        *end = at;
    }
    e->bound.steps += at - begin;
    return found;
}

static size_t find_first(const embla_matcher *m, const embla_view *view, size_t at)
{
    if (m->only >= 0) {
        const char *hit = memchr(view->bytes + at, m->only, view->count - at);
        return hit ? (size_t)(hit - view->bytes) : view->count;
    }
    while (at < view->count && !m->first[(uint8_t)view->bytes[at]]) at++;
    return at;
}

/* Where the character before `at` begins. */
static size_t step_back(const embla_view *view, size_t at)
{
    do at--;
    while (((uint8_t)view->bytes[at] & 0xc0) == 0x80);
    return at;
}

static bool has_bits(const embla_view *view, size_t at, uint32_t bits)
{
    size_t length = 0;
    return (embla_char_bits(embla_char_at(view->bytes + at, &length)) & bits) != 0;
}

static bool inside_word(const embla_view *view, size_t begin, size_t end)
{
    return (begin > 0 && has_bits(view, step_back(view, begin), EMBLA_CHAR_WORD)) ||
           (end < view->count && has_bits(view, end, EMBLA_CHAR_WORD));
}

embla_status embla_added_next(embla_tokenized *e, const embla_matcher *matcher, embla_view view,
                              size_t past, size_t *at, const embla_added **found, size_t *begin,
                              size_t *end)
{
    *found = NULL;
    e->bound.stage = "the search for added tokens";
    if (matcher->count == 0 || view.count == 0) return EMBLA_OK; /* nothing has no address */
    while ((*at = find_first(matcher, &view, *at)) < view.count) {
        size_t from = *at, to = from, length = 0;
        const embla_added *a = longest(e, matcher, &view, from, &to);
        EMBLA_TRY(embla_bound_add(&e->bound, 1));
        *at = a ? to : from + 1;
        if (!a || (e->options.plain && a->special)) continue;
        if (a->single_word && inside_word(&view, from, to)) continue;
        while (a->left && from > past && has_bits(&view, step_back(&view, from), EMBLA_CHAR_WHITE))
            from = step_back(&view, from);
        while (a->right && to < view.count && has_bits(&view, to, EMBLA_CHAR_WHITE)) {
            (void)embla_char_at(view.bytes + to, &length);
            to += length;
        }
        *at = to > *at ? to : *at;
        *begin = from;
        *end = to;
        *found = a;
        break;
    }
    return EMBLA_OK;
}
