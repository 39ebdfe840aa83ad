/* SPDX-License-Identifier: Apache-2.0 */
/* The strings of a tokenizer: by token, by string of the vocabulary, and what a tokenizer is.
 *
 * A tokenizer that was read from a file of text has its vocabulary in memory. That of a compiled
 * file is in the file (compiled.h), and is checked string by string when it is used.
 */
#include <string.h>

#include "base/utf8.h"
#include "files/map.h"
#include "tokenizer/tokenizer.h"

const char *embla_tokenizer_kind_name(embla_tokenizer_kind kind)
{
    static const char *const names[] = {"", "WordPiece", "WordLevel", "BPE", "Unigram", "Words"};
    return names[kind];
}

embla_name embla_vocab_name(const embla_tokenizer *t, size_t i)
{
    if (t->vocab) return t->vocab[i];
    const embla_vocab_place place = t->places[i];
    const char *bytes = t->pool + place.at;
    if ((uint64_t)place.at + place.length >= t->pool_bytes || bytes[place.length] != 0 ||
        embla_utf8_valid(bytes, place.length) < place.length)
        return (embla_name){NULL, 0, place.number};
    return (embla_name){bytes, place.length, place.number};
}

bool embla_token_name(const embla_tokenizer *t, int32_t token, bool decoded, embla_name *out)
{
    if ((uint64_t)token >= t->token_end) return false;
    const uint32_t i = t->by_token[token];
    if (i < t->vocab_count) {
        *out = embla_vocab_name(t, i);
        return out->bytes != NULL;
    }
    if (i - t->vocab_count >= t->added_count) return false;
    const embla_added *a = &t->added[i - t->vocab_count];
    *out = decoded ? a->matched : a->content;
    return out->bytes != NULL;
}

embla_status embla_tokenizer_check(const embla_tokenizer *t)
{
    return t->map ? embla_map_check(t->map) : EMBLA_OK;
}

/* ---- searching ---- */

embla_status embla_tokenizer_sort(embla_tokenizer *t)
{
    embla_arena scratch = {0};
    embla_names names = {0};
    uint32_t *sorted = NULL;
    embla_status status = embla_names_sort(&scratch, t->vocab, t->vocab_count, &names);
    if (status == EMBLA_OK)
        status =
            embla_arena_many(&t->arena, t->vocab_count, sizeof *sorted, "a vocabulary", &sorted);
    if (status == EMBLA_OK)
        for (size_t i = 0; i < names.count; i++) sorted[i] = (uint32_t)(names.sorted[i] - t->vocab);
    t->sorted = sorted;
    embla_arena_free(&scratch);
    return status;
}

/* Compares string i of the vocabulary, as memcmp does. */
static int compare(const embla_tokenizer *t, uint32_t i, const char *bytes, size_t length)
{
    const embla_name s = embla_vocab_name(t, i);
    size_t shorter = s.length < length ? s.length : length;
    int order = shorter > 0 ? memcmp(s.bytes, bytes, shorter) : 0;
    return order != 0 ? order : (s.length > length) - (s.length < length);
}

int32_t embla_tokenizer_literal(const embla_tokenizer *t, const char *bytes, size_t length)
{
    size_t low = 0, high = t->vocab_count;
    if (!t->sorted) return embla_trie_find(&t->trie, 0, bytes, length);
    while (low < high) { /* the first that is not less */
        size_t middle = low + (high - low) / 2;
        if (compare(t, t->sorted[middle], bytes, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == t->vocab_count || compare(t, t->sorted[low], bytes, length) != 0) return -1;
    return (int32_t)embla_vocab_name(t, t->sorted[low]).number;
}

/* ---- queries ---- */

embla_status embla_tokenizer_describe(const embla_tokenizer *tokenizer, embla_tokenizer_info *out)
{
    EMBLA_NEED(tokenizer);
    EMBLA_NEED(out);
    const embla_tokenizer *t = tokenizer;
    int64_t added = 0;
    for (size_t i = 0; i < t->added_count; i++) added += t->added[i].content.bytes != NULL;
    *out = (embla_tokenizer_info){.kind = t->kind,
                                  .kind_name = embla_tokenizer_kind_name(t->kind),
                                  .source = t->source,
                                  .pipeline = t->pipeline,
                                  .vocab = (int64_t)t->vocab_count,
                                  .added = added,
                                  .tokens = (int64_t)t->token_end,
                                  .merges = (int64_t)t->bpe.merges.count,
                                  .byte_level = t->byte_level,
                                  .unknown = t->unknown,
                                  .max_tokens = t->truncation.on ? t->truncation.most : 0,
                                  .pad_length = t->padding.on ? t->padding.most : 0};
    return EMBLA_OK;
}

const char *embla_tokenizer_text(const embla_tokenizer *tokenizer, int32_t token, size_t *length)
{
    embla_name text;
    if (!tokenizer || !embla_token_name(tokenizer, token, false, &text)) return NULL;
    if (length) *length = text.length;
    return text.bytes;
}

int32_t embla_tokenizer_token(const embla_tokenizer *tokenizer, const char *text, size_t length)
{
    if (!tokenizer || !text) return -1;
    for (size_t i = 0; i < tokenizer->added_count; i++) {
        const embla_name *content = &tokenizer->added[i].content;
        if (content->bytes && content->length == length &&
            memcmp(content->bytes, text, length) == 0)
            return (int32_t)content->number;
    }
    return embla_tokenizer_literal(tokenizer, text, length);
}
