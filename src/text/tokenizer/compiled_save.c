/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a compiled tokenizer (compiled.h has the format). All tables are put together in memory
 * first, because their checksums come before them. */
#include <string.h>

#include "base/checksum.h"
#include "files/durable.h"
#include "tokenizer/compiled.h"
#include "tokenizer/grow.h"

typedef struct {
    const embla_tokenizer *t;
    uint8_t *bytes; /* the file from its tables on */
    size_t count, room;
    size_t tables; /* where they begin in the file, if that is known */
    embla_compiled_section sections[EMBLA_SECTIONS];
} writing;

static embla_status put(writing *w, const void *bytes, size_t count)
{
    EMBLA_TRY(embla_grow(&w->bytes, &w->room, w->count, w->count + count, 1, "a file"));
    if (count > 0) memcpy(w->bytes + w->count, bytes, count);
    w->count += count;
    return EMBLA_OK;
}

/* Begins a section. Its place is relative to the tables until all are known. */
static embla_status begin(writing *w, embla_section_kind kind, size_t items)
{
    static const uint8_t zeros[EMBLA_COMPILED_ALIGN] = {0};
    EMBLA_TRY(put(w, zeros,
                  (EMBLA_COMPILED_ALIGN - w->count % EMBLA_COMPILED_ALIGN) % EMBLA_COMPILED_ALIGN));
    w->sections[kind] = (embla_compiled_section){w->count, items};
    return EMBLA_OK;
}

static embla_status put_table(writing *w, embla_section_kind kind, const void *items, size_t count)
{
    EMBLA_TRY(begin(w, kind, count));
    return put(w, items, count * embla_section_item(kind));
}

/* ---- sections ---- */

static embla_status put_fields(writing *w)
{
    const embla_tokenizer *t = w->t;
    const embla_bpe *b = &t->bpe;
    embla_compiled_fields f;
    memset(&f, 0, sizeof f);
    f.kind = (uint32_t)t->kind;
    f.flags = (b->has_unknown ? EMBLA_COMPILED_HAS_UNKNOWN : 0u) |
              (b->fuse ? EMBLA_COMPILED_FUSE : 0u) |
              (b->byte_fallback ? EMBLA_COMPILED_BYTE_FALLBACK : 0u) |
              (b->ignore_merges ? EMBLA_COMPILED_IGNORE_MERGES : 0u) |
              (b->cuts_at_marks ? EMBLA_COMPILED_CUTS_AT_MARKS : 0u) |
              (t->byte_level ? EMBLA_COMPILED_BYTE_LEVEL : 0u) |
              (t->wordpiece.has_inner ? EMBLA_COMPILED_HAS_INNER : 0u) |
              (t->unknown_text.bytes ? EMBLA_COMPILED_UNKNOWN_TEXT : 0u);
    f.unknown = t->unknown;
    f.inner = t->wordpiece.has_inner ? t->wordpiece.inner : 0;
    f.most_chars = t->wordpiece.most_chars;
    f.merge_count = b->merges.count;
    f.merge_seed = b->merges.seed;
    f.unknown_score = t->unigram.unknown_score;
    f.prefix = b->prefix.length;
    f.suffix = b->suffix.length;
    f.unknown_text = t->unknown_text.length;
    memcpy(f.byte_tokens,
           t->kind == EMBLA_TOKENIZER_UNIGRAM ? t->unigram.byte_tokens : b->byte_tokens,
           sizeof f.byte_tokens);
    memcpy(f.symbols, b->symbols, sizeof f.symbols);
    EMBLA_TRY(put_table(w, EMBLA_SECTION_FIELDS, &f, 1));
    EMBLA_TRY(begin(w, EMBLA_SECTION_WORDS, (size_t)(f.prefix + f.suffix + f.unknown_text)));
    EMBLA_TRY(put(w, b->prefix.bytes, b->prefix.length));
    EMBLA_TRY(put(w, b->suffix.bytes, b->suffix.length));
    return put(w, t->unknown_text.bytes, t->unknown_text.length);
}

static embla_status put_vocab(writing *w)
{
    const embla_tokenizer *t = w->t;
    size_t at = 0;
    EMBLA_TRY(begin(w, EMBLA_SECTION_PLACES, t->vocab_count));
    for (size_t i = 0; i < t->vocab_count; i++) {
        const embla_vocab_place place = {(uint32_t)at, t->vocab[i].length, t->vocab[i].number};
        EMBLA_TRY(put(w, &place, sizeof place));
        at += (size_t)place.length + 1;
    }
    EMBLA_TRY(begin(w, EMBLA_SECTION_POOL, at));
    for (size_t i = 0; i < t->vocab_count; i++) {
        EMBLA_TRY(put(w, t->vocab[i].bytes, t->vocab[i].length));
        EMBLA_TRY(put(w, "", 1));
    }
    EMBLA_TRY(put_table(w, EMBLA_SECTION_SORTED, t->sorted, t->sorted ? t->vocab_count : 0));
    return put_table(w, EMBLA_SECTION_SPECIAL, t->special, t->token_end);
}

/* A trie without the free cells at its end. An empty one gets a root without edges. */
static embla_status put_trie(writing *w, embla_section_kind cells, const embla_trie *trie)
{
    static const embla_trie_cell root = {0, EMBLA_TRIE_FREE};
    size_t used = 256;
    for (size_t i = 0; i < trie->count; i++) {
        size_t end = (trie->cells[i].base & ~EMBLA_TRIE_ENDS) + (size_t)256;
        if (trie->cells[i].check == EMBLA_TRIE_FREE && i > 0) continue;
        used = end > used ? end : used;
        used = i >= used ? i + 1 : used;
    }
    EMBLA_TRY(begin(w, cells, used));
    for (size_t i = 0; i < used; i++)
        EMBLA_TRY(put(w, trie->count > 0 ? &trie->cells[i] : &root, sizeof root));
    EMBLA_TRY(begin(w, (embla_section_kind)(cells + 1), used));
    for (size_t i = 0; i < used; i++) {
        bool ends = trie->count > 0 && (trie->cells[i].base & EMBLA_TRIE_ENDS) != 0;
        EMBLA_TRY(put(w, ends ? trie->values + i : &(int32_t){0}, sizeof(int32_t)));
    }
    return EMBLA_OK;
}

/* ---- added tokens ---- */

static embla_status put_added_texts(writing *w)
{
    const embla_tokenizer *t = w->t;
    size_t bytes = 0;
    for (size_t i = 0; i < t->added_count; i++) {
        const embla_added *a = &t->added[i];
        if (a->content.bytes) bytes += (size_t)a->content.length + a->matched.length + 2;
    }
    EMBLA_TRY(begin(w, EMBLA_SECTION_ADDED_TEXT, bytes));
    for (size_t i = 0; i < t->added_count; i++) {
        const embla_added *a = &t->added[i];
        if (!a->content.bytes) continue;
        EMBLA_TRY(put(w, a->content.bytes, a->content.length));
        EMBLA_TRY(put(w, "", 1));
        EMBLA_TRY(put(w, a->matched.bytes, a->matched.length));
        EMBLA_TRY(put(w, "", 1));
    }
    return EMBLA_OK;
}

/* Writes those that were not dropped. numbers[i] is the index in the file of added token i. */
static embla_status put_added(writing *w, uint32_t *numbers)
{
    const embla_tokenizer *t = w->t;
    uint32_t kept = 0;
    EMBLA_TRY(begin(w, EMBLA_SECTION_ADDED, 0));
    for (size_t i = 0; i < t->added_count; i++) {
        const embla_added *a = &t->added[i];
        if (!a->content.bytes) continue;
        const embla_compiled_added out = {a->content.number, a->content.length, a->matched.length,
                                          (a->single_word ? 1u : 0u) | (a->left ? 2u : 0u) |
                                              (a->right ? 4u : 0u) | (a->normalized ? 8u : 0u) |
                                              (a->special ? 16u : 0u)};
        numbers[i] = kept++;
        EMBLA_TRY(put(w, &out, sizeof out));
    }
    w->sections[EMBLA_SECTION_ADDED].count = kept;
    return put_added_texts(w);
}

/* The values of a matcher are indices of added tokens, which have changed. */
static void renumber(writing *w, embla_section_kind values, const uint32_t *numbers)
{
    const embla_compiled_section *s = &w->sections[values];
    for (size_t i = 0; i < s->count; i++) {
        uint8_t *at = w->bytes + s->at + i * sizeof(int32_t);
        int32_t value = 0;
        memcpy(&value, at, sizeof value);
        if (w->t->added_count > 0) value = (int32_t)numbers[value];
        memcpy(at, &value, sizeof value);
    }
}

static embla_status put_matchers(writing *w, uint32_t *numbers)
{
    const embla_tokenizer *t = w->t;
    EMBLA_TRY(put_added(w, numbers));
    EMBLA_TRY(put_trie(w, EMBLA_SECTION_RAW_CELLS, &t->raw.trie));
    EMBLA_TRY(put_trie(w, EMBLA_SECTION_NORMAL_CELLS, &t->normalized.trie));
    renumber(w, EMBLA_SECTION_RAW_VALUES, numbers);
    renumber(w, EMBLA_SECTION_NORMAL_VALUES, numbers);
    EMBLA_TRY(begin(w, EMBLA_SECTION_TOKENS, t->token_end));
    for (size_t i = 0; i < t->token_end; i++) {
        uint32_t string = t->by_token[i];
        if (string != EMBLA_NO_STRING && string >= t->vocab_count)
            string = (uint32_t)t->vocab_count + numbers[string - t->vocab_count];
        EMBLA_TRY(put(w, &string, sizeof string));
    }
    return EMBLA_OK;
}

static embla_status put_all(writing *w, const char *stages, size_t stage_bytes)
{
    const embla_tokenizer *t = w->t;
    const embla_merges *m = &t->bpe.merges;
    const bool unigram = t->kind == EMBLA_TOKENIZER_UNIGRAM;
    uint32_t *numbers = NULL;
    size_t room = 0;
    EMBLA_TRY(put_fields(w));
    EMBLA_TRY(put_table(w, EMBLA_SECTION_STAGES, stages, stage_bytes));
    EMBLA_TRY(put_vocab(w));
    EMBLA_TRY(put_trie(w, EMBLA_SECTION_CELLS, &t->trie));
    EMBLA_TRY(
        put_table(w, EMBLA_SECTION_MERGES, m->slots, m->slots ? m->homes + EMBLA_MERGE_PROBES : 0));
    EMBLA_TRY(put_table(w, EMBLA_SECTION_SCORES, t->unigram.scores, unigram ? t->vocab_count : 0));
    EMBLA_TRY(embla_grow(&numbers, &room, 0, t->added_count + 1, sizeof *numbers, "added tokens"));
    embla_status status = put_matchers(w, numbers);
    embla_mem_free(numbers, room * sizeof *numbers);
    return status;
}

/* ---- the file ---- */

/* Puts the header, the list of sections and the checksums together. */
static embla_status make_head(const writing *w, const void *source, size_t source_bytes,
                              uint8_t *head, size_t tables)
{
    const embla_checksum from = embla_checksum_of(source, source_bytes);
    embla_compiled_header h = {.magic = {0},
                               .version = EMBLA_COMPILED_VERSION,
                               .order = EMBLA_COMPILED_ORDER,
                               .size = tables + w->count,
                               .source_size = source_bytes,
                               .source_checksum = {from.high, from.low},
                               .tables = tables};
    memcpy(h.magic, EMBLA_COMPILED_MAGIC, sizeof h.magic);
    for (int i = 0; i < EMBLA_SECTIONS; i++) {
        const embla_compiled_section s = {w->sections[i].at + tables, w->sections[i].count};
        memcpy(head + sizeof h + (size_t)i * sizeof s, &s, sizeof s);
    }
    uint8_t *at = head + sizeof h + sizeof w->sections;
    for (size_t begin = 0; begin < w->count; begin += EMBLA_COMPILED_BLOCK) {
        size_t left = w->count - begin;
        uint64_t low = embla_checksum_of(w->bytes + begin,
                                         left < EMBLA_COMPILED_BLOCK ? left : EMBLA_COMPILED_BLOCK)
                           .low;
        memcpy(at, &low, sizeof low);
        at += sizeof low;
    }
    memcpy(head, &h, sizeof h);
    h.checksum = embla_checksum_of(head, tables).low;
    memcpy(head, &h, sizeof h);
    return EMBLA_OK;
}

static embla_status write_file(const writing *w, const uint8_t *head, size_t tables,
                               const char *path)
{
    embla_durable *d = NULL;
    EMBLA_TRY(embla_durable_open(path, &d));
    embla_status status = embla_durable_reserve(d, tables + w->count);
    if (status == EMBLA_OK) status = embla_durable_write(d, head, tables);
    if (status == EMBLA_OK) status = embla_durable_write(d, w->bytes, w->count);
    if (status == EMBLA_OK) return embla_durable_commit(d);
    embla_durable_abandon(d);
    return status;
}

embla_status embla_compiled_write(const embla_tokenizer *t, const void *source, size_t source_bytes,
                                  const char *stages, size_t stage_bytes, const char *path)
{
    writing w = {.t = t};
    void *head = NULL;
    size_t tables = 0;
    embla_status status = put_all(&w, stages, stage_bytes);
    if (status == EMBLA_OK) {
        tables = sizeof(embla_compiled_header) + sizeof w.sections +
                 (w.count / EMBLA_COMPILED_BLOCK + 1) * sizeof(uint64_t);
        tables = (tables + EMBLA_COMPILED_ALIGN - 1) / EMBLA_COMPILED_ALIGN * EMBLA_COMPILED_ALIGN;
        status = embla_mem_new(tables, "a file", &head);
    }
    if (status == EMBLA_OK) status = make_head(&w, source, source_bytes, head, tables);
    if (status == EMBLA_OK) status = write_file(&w, head, tables, path);
    embla_mem_free(head, tables);
    embla_mem_free(w.bytes, w.room);
    return status;
}
