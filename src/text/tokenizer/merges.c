/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the tables of BPE: merges, the symbols of bytes, and whether a text may be cut at "▁". */
#include "tokenizer/merges.h"

#include <string.h>

#include "tokenizer/grow.h"

static const char MARK[] = "\xe2\x96\x81"; /* U+2581, which SentencePiece writes for a space */

bool embla_unmap(const char *text, size_t length, char *out, size_t *count)
{
    size_t used = 0;
    for (size_t at = 0, size = 0; at < length; at += size) {
        int byte = embla_byte_of_code(embla_char_at(text + at, &size));
        if (byte < 0) return false;
        out[used++] = (char)byte;
    }
    *count = used;
    return true;
}

/* ---- the table ---- */

/* Puts a merge into the table. A pair that is there already gets the later rank. */
static bool insert(embla_merges *m, embla_pair_merge merge)
{
    embla_pair_merge *slot = m->slots + embla_merges_home(m, merge.pair);
    for (size_t tries = 0; tries < EMBLA_MERGE_PROBES; tries++, slot++) {
        if (slot->pair != merge.pair && slot->pair != EMBLA_MERGE_FREE) continue;
        *slot = merge;
        return true;
    }
    return false;
}

static bool insert_all(embla_merges *m, const embla_pair_merge *list, size_t count)
{
    for (size_t i = 0; i < m->homes + EMBLA_MERGE_PROBES; i++)
        m->slots[i] = (embla_pair_merge){.pair = EMBLA_MERGE_FREE};
    for (size_t i = 0; i < count; i++)
        if (!insert(m, list[i])) return false;
    return true;
}

static embla_status build_table(embla_tokenizer *t, const embla_pair_merge *list, size_t count)
{
    embla_merges *m = &t->bpe.merges;
    void *memory = NULL;
    const size_t homes = count < 32 ? 64 : count * 2;
    EMBLA_TRY(embla_mem_new((homes + EMBLA_MERGE_PROBES) * sizeof *m->slots, "merges", &memory));
    m->slots = memory;
    m->homes = homes;
    m->count = count;
    for (int tries = 0; tries < 16; tries++) {
        m->seed = embla_splitmix64((uint64_t)tries);
        if (insert_all(m, list, count)) return EMBLA_OK;
    }
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: its %zu merges collide in every one of 16 hash tables", t->name,
                      count);
}

void embla_bpe_free(embla_bpe *bpe)
{
    const embla_merges *m = &bpe->merges;
    if (m->slots) embla_mem_free(m->slots, (m->homes + EMBLA_MERGE_PROBES) * sizeof *m->slots);
    bpe->merges = (embla_merges){0};
}

/* ---- merges by their strings ---- */

typedef struct {
    embla_tokenizer *t;
    char *text, *bytes; /* room for two strings joined, and for the bytes they stand for */
} reading;

/* The token of a string of the vocabulary; -1 if there is none. */
static int32_t find(reading *r, const char *text, size_t length)
{
    size_t count = 0;
    int32_t token = -1;
    if (!r->t->byte_level)
        token = embla_trie_find(&r->t->trie, 0, text, length);
    else if (embla_unmap(text, length, r->bytes, &count))
        token = embla_trie_find(&r->t->trie, 0, r->bytes, count);
    return token >= 0 ? token : embla_tokenizer_literal(r->t, text, length);
}

static embla_status no_string(const reading *r, size_t rank, const char *text, size_t length)
{
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: merge %zu needs '%.*s', which is not in the vocabulary of %zu",
                      r->t->name, rank, length < 64 ? (int)length : 64, text, r->t->vocab_count);
}

static embla_status read_merge(reading *r, const embla_name *a, const embla_name *b, size_t rank,
                               embla_pair_merge *out)
{
    const size_t skip = r->t->bpe.prefix.length;
    const size_t first = a->length, second = b->length, need = first + second;
    int32_t left = find(r, a->bytes, a->length), right = find(r, b->bytes, b->length);
    if (left < 0) return no_string(r, rank, a->bytes, a->length);
    if (right < 0 || second < skip) return no_string(r, rank, b->bytes, b->length);
    if (first > 0) memcpy(r->text, a->bytes, first);
    if (second > skip) memcpy(r->text + first, b->bytes + skip, second - skip);
    int32_t merged = find(r, r->text, need - skip);
    if (merged < 0) return no_string(r, rank, r->text, need - skip);
    *out = (embla_pair_merge){(uint64_t)(uint32_t)left << 32 | (uint32_t)right, (uint32_t)rank,
                              (uint32_t)merged};
    return EMBLA_OK;
}

/* ---- merges by rank ---- */

/* Longer strings are made of pairs that are searched for: their square is bounded. */
enum { SPLIT_MOST = 1024 };

typedef struct {
    embla_pair_merge *items;
    size_t count, room;
} merge_list;

/* Lists every way to make a string of two tokens. */
static embla_status split_string(const embla_tokenizer *t, size_t number, merge_list *list)
{
    char bytes[SPLIT_MOST];
    const embla_name *s = &t->vocab[number];
    const char *text = s->bytes;
    size_t length = s->length;
    if (length > SPLIT_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: the string of token %" PRIu32 " has %zu bytes; the limit is %d",
                          t->name, s->number, length, SPLIT_MOST);
    if (t->byte_level) {
        if (!embla_unmap(text, s->length, bytes, &length)) return EMBLA_OK;
        text = bytes;
    }
    for (size_t at = 1; at < length; at++) {
        if (!t->byte_level && ((uint8_t)text[at] & 0xc0) == 0x80) continue;
        int32_t left = embla_trie_find(&t->trie, 0, text, at);
        int32_t right = left < 0 ? -1 : embla_trie_find(&t->trie, 0, text + at, length - at);
        if (right < 0) continue;
        EMBLA_TRY(embla_grow(&list->items, &list->room, list->count, list->count + 1,
                             sizeof *list->items, "merges"));
        list->items[list->count++] = (embla_pair_merge){
            (uint64_t)(uint32_t)left << 32 | (uint32_t)right, t->bpe.ranks[number], s->number};
    }
    return EMBLA_OK;
}

/* Whether the strings allow cutting at marks: none has one after something else. */
static bool marks_come_first(const embla_tokenizer *t)
{
    for (size_t i = 0; i < t->vocab_count; i++) {
        const embla_name *s = &t->vocab[i];
        if (t->bpe.ranks[i] == UINT32_MAX) continue;
        for (size_t at = 3; at + 3 <= s->length; at++)
            if (memcmp(s->bytes + at, MARK, 3) == 0 && memcmp(s->bytes + at - 3, MARK, 3) != 0)
                return false;
    }
    return embla_trie_find(&t->trie, 0, MARK, 3) >= 0;
}

static embla_status build_by_rank(embla_tokenizer *t)
{
    merge_list list = {0};
    embla_status status = EMBLA_OK;
    for (size_t i = 0; status == EMBLA_OK && i < t->vocab_count; i++)
        if (t->bpe.ranks[i] != UINT32_MAX) status = split_string(t, i, &list);
    if (status == EMBLA_OK) status = build_table(t, list.items, list.count);
    embla_mem_free(list.items, list.room * sizeof *list.items);
    t->bpe.cuts_at_marks = !t->byte_level && status == EMBLA_OK && marks_come_first(t);
    return status;
}

/* ---- all tables ---- */

static bool ends_with_mark(const embla_name *s)
{
    return s->length >= 3 && memcmp(s->bytes + s->length - 3, MARK, 3) == 0;
}

static bool begins_with_mark(const embla_name *s)
{
    return s->length >= 3 && memcmp(s->bytes, MARK, 3) == 0;
}

/* Whether a word may be cut before each mark that follows something else: no merge crosses such a
 * place, and the mark is a symbol of its own. */
static bool cuts_at_marks(const embla_tokenizer *t, const embla_name *merges, size_t count)
{
    const embla_bpe *b = &t->bpe;
    if (t->byte_level || b->ignore_merges || b->prefix.length > 0 || b->suffix.length > 0 ||
        embla_trie_find(&t->trie, 0, MARK, 3) < 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!ends_with_mark(&merges[2 * i]) && begins_with_mark(&merges[2 * i + 1])) return false;
    return true;
}

/* The token of a byte with prefix and suffix, for byte-level vocabularies. */
static void find_symbols(embla_tokenizer *t)
{
    embla_bpe *b = &t->bpe;
    char key[64];
    for (unsigned kind = 0; kind < 4; kind++)
        for (unsigned byte = 0; byte < 256; byte++) {
            const embla_name prefix = kind & 1 ? b->prefix : (embla_name){0};
            const embla_name suffix = kind & 2 ? b->suffix : (embla_name){0};
            size_t length = 0, more = 0;
            b->symbols[kind][byte] = -1;
            if (prefix.length > 24 || suffix.length > 24 ||
                !embla_unmap(prefix.bytes, prefix.length, key, &length))
                continue;
            key[length++] = (char)byte;
            if (!embla_unmap(suffix.bytes, suffix.length, key + length, &more)) continue;
            b->symbols[kind][byte] = embla_trie_find(&t->trie, 0, key, length + more);
        }
}

static embla_status build_listed(embla_tokenizer *t, const embla_name *merges, size_t count)
{
    embla_pair_merge *list = NULL;
    size_t room = 0, most = 1;
    void *texts = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t both = (size_t)merges[2 * i].length + merges[2 * i + 1].length;
        most = both > most ? both : most;
    }
    EMBLA_TRY(embla_mem_new(2 * most, "merges", &texts));
    reading r = {t, texts, (char *)texts + most};
    embla_status status =
        embla_grow(&list, &room, 0, count > 0 ? count : 1, sizeof *list, "merges");
    for (size_t i = 0; status == EMBLA_OK && i < count; i++)
        status = read_merge(&r, &merges[2 * i], &merges[2 * i + 1], i, &list[i]);
    if (status == EMBLA_OK) status = build_table(t, list, count);
    embla_mem_free(list, room * sizeof *list);
    embla_mem_free(texts, 2 * most);
    t->bpe.cuts_at_marks = status == EMBLA_OK && cuts_at_marks(t, merges, count);
    return status;
}

embla_status embla_bpe_build(embla_tokenizer *t, const embla_name *merges, size_t count)
{
    EMBLA_TRY(t->bpe.ranks ? build_by_rank(t) : build_listed(t, merges, count));
    embla_byte_tokens(t, t->bpe.byte_tokens);
    if (t->byte_level) find_symbols(t);
    return EMBLA_OK;
}
