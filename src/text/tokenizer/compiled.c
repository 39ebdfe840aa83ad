/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a compiled tokenizer (compiled.h has the format). Nothing is copied except added tokens
 * and stages: an opened file costs one pass over its bytes, for the checksums and for what encode
 * relies on. */
#include "tokenizer/compiled.h"

#include <string.h>

#include "base/checked.h"
#include "base/checksum.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "base/utf8.h"
#include "files/map.h"
#include "tokenizer/stages.h"

size_t embla_section_item(embla_section_kind kind)
{
    static const uint8_t bytes[EMBLA_SECTIONS] = {
        [EMBLA_SECTION_STAGES] = 1,
        [EMBLA_SECTION_WORDS] = 1,
        [EMBLA_SECTION_POOL] = 1,
        [EMBLA_SECTION_PLACES] = sizeof(embla_vocab_place),
        [EMBLA_SECTION_SORTED] = sizeof(uint32_t),
        [EMBLA_SECTION_TOKENS] = sizeof(uint32_t),
        [EMBLA_SECTION_SPECIAL] = 1,
        [EMBLA_SECTION_CELLS] = sizeof(embla_trie_cell),
        [EMBLA_SECTION_VALUES] = sizeof(int32_t),
        [EMBLA_SECTION_MERGES] = sizeof(embla_pair_merge),
        [EMBLA_SECTION_SCORES] = sizeof(double),
        [EMBLA_SECTION_ADDED] = sizeof(embla_compiled_added),
        [EMBLA_SECTION_ADDED_TEXT] = 1,
        [EMBLA_SECTION_RAW_CELLS] = sizeof(embla_trie_cell),
        [EMBLA_SECTION_RAW_VALUES] = sizeof(int32_t),
        [EMBLA_SECTION_NORMAL_CELLS] = sizeof(embla_trie_cell),
        [EMBLA_SECTION_NORMAL_VALUES] = sizeof(int32_t)};
    return kind == EMBLA_SECTION_FIELDS ? sizeof(embla_compiled_fields) : bytes[kind];
}

bool embla_compiled_sniff(const uint8_t *bytes, size_t count)
{
    return count >= 8 && memcmp(bytes, EMBLA_COMPILED_MAGIC, 8) == 0;
}

typedef struct {
    embla_tokenizer *t;
    const uint8_t *bytes;
    embla_compiled_header header;
    embla_compiled_section sections[EMBLA_SECTIONS];
    embla_compiled_fields fields;
    size_t blocks;
} reading;

static embla_status wrong(const reading *r, const char *what, uint64_t found, uint64_t limit)
{
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: %s is %" PRIu64 ", expected %" PRIu64
                      "; compile the tokenizer again",
                      r->t->name, what, found, limit);
}

static embla_status too_large(const reading *r, const char *what, uint64_t found, uint64_t end)
{
    return embla_fail(EMBLA_ERR_FORMAT, "%.256s: %s is %" PRIu64 "; it must be below %" PRIu64,
                      r->t->name, what, found, end);
}

/* ---- the header ---- */

/* The checksum of all bytes before the tables. The header's own field counts as 0. */
static uint64_t sum_header(const reading *r)
{
    embla_checksum_state state;
    embla_compiled_header h = r->header;
    h.checksum = 0;
    embla_checksum_begin(&state);
    embla_checksum_add(&state, &h, sizeof h);
    embla_checksum_add(&state, r->bytes + sizeof h, (size_t)h.tables - sizeof h);
    return embla_checksum_end(&state).low;
}

static embla_status read_header(reading *r, uint64_t size)
{
    embla_compiled_header *h = &r->header;
    const uint64_t least = sizeof *h + sizeof r->sections;
    if (size < least) return wrong(r, "the size of the file", size, least);
    memcpy(h, r->bytes, sizeof *h);
    if (h->version != EMBLA_COMPILED_VERSION)
        return wrong(r, "the version", h->version, EMBLA_COMPILED_VERSION);
    if (h->order != EMBLA_COMPILED_ORDER)
        return wrong(r, "the mark of the byte order", h->order, EMBLA_COMPILED_ORDER);
    if (h->size != size) return wrong(r, "the size of the file", size, h->size);
    if (h->tables < least || h->tables > size || h->tables % EMBLA_COMPILED_ALIGN != 0)
        return wrong(r, "the place of the tables", h->tables, least);
    r->blocks = (size_t)((size - h->tables + EMBLA_COMPILED_BLOCK - 1) / EMBLA_COMPILED_BLOCK);
    if ((h->tables - least) / sizeof(uint64_t) < r->blocks)
        return wrong(r, "the number of checksums", (h->tables - least) / sizeof(uint64_t),
                     r->blocks);
    const uint64_t found = sum_header(r);
    if (found != h->checksum) return wrong(r, "the checksum of the header", found, h->checksum);
    memcpy(r->sections, r->bytes + sizeof *h, sizeof r->sections);
    return EMBLA_OK;
}

static embla_status check_sections(const reading *r)
{
    for (int i = 0; i < EMBLA_SECTIONS; i++) {
        const embla_compiled_section *s = &r->sections[i];
        uint64_t bytes = 0, end = 0;
        if (s->at < r->header.tables || s->at % EMBLA_COMPILED_ALIGN != 0 ||
            !embla_mul_ok(s->count, embla_section_item((embla_section_kind)i), &bytes) ||
            !embla_add_ok(s->at, bytes, &end) || end > r->header.size)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.256s: table %d has %" PRIu64 " items at byte %" PRIu64
                              ", but the file has %" PRIu64 " bytes",
                              r->t->name, i, s->count, s->at, r->header.size);
    }
    return EMBLA_OK;
}

/* ---- one pass over all bytes ---- */

static uint32_t most_u32(const uint8_t *bytes, size_t count, size_t stride, uint32_t mask)
{
    uint32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t value = 0;
        memcpy(&value, bytes + i * stride, sizeof value);
        value &= mask;
        most = value > most ? value : most;
    }
    return most;
}

/* A table of numbers that encode relies on: one u32 at `field` of each item must be below `end`,
 * apart from the bits outside the mask. */
typedef struct {
    embla_section_kind kind;
    uint32_t mask;
    size_t field;
    uint64_t end;
    const char *what;
} rule;
enum { RULES = 9 };

static void list_rules(const reading *r, rule rules[RULES])
{
    const embla_tokenizer *t = r->t;
    const uint64_t tokens = t->kind == EMBLA_TOKENIZER_UNIGRAM ? t->vocab_count : t->token_end;
    const uint64_t some = r->sections[EMBLA_SECTION_ADDED].count;
    const uint64_t added = some > 0 ? some : 1; /* without any there is one value: 0 */
    const uint64_t vocab = t->vocab_count > 0 ? t->vocab_count : 1; /* without any, no value */
    const uint32_t nodes = ~EMBLA_TRIE_ENDS;
    const uint64_t cells = r->sections[EMBLA_SECTION_CELLS].count;
    const uint64_t raw = r->sections[EMBLA_SECTION_RAW_CELLS].count;
    const uint64_t normal = r->sections[EMBLA_SECTION_NORMAL_CELLS].count;
    const rule all[RULES] = {
        {EMBLA_SECTION_PLACES, UINT32_MAX, offsetof(embla_vocab_place, number),
         t->token_end > 0 ? t->token_end : 1, "the token of a string"},
        {EMBLA_SECTION_SORTED, UINT32_MAX, 0, vocab, "a sorted string"},
        {EMBLA_SECTION_CELLS, nodes, 0, cells - 255, "a node of the vocabulary"},
        {EMBLA_SECTION_VALUES, UINT32_MAX, 0, tokens, "a token of the vocabulary"},
        {EMBLA_SECTION_MERGES, UINT32_MAX, offsetof(embla_pair_merge, merged), t->token_end,
         "the token of a merge"},
        {EMBLA_SECTION_RAW_CELLS, nodes, 0, raw - 255, "a node of the added tokens"},
        {EMBLA_SECTION_RAW_VALUES, UINT32_MAX, 0, added, "an added token"},
        {EMBLA_SECTION_NORMAL_CELLS, nodes, 0, normal - 255, "a node of the added tokens"},
        {EMBLA_SECTION_NORMAL_VALUES, UINT32_MAX, 0, added, "an added token"}};
    memcpy(rules, all, sizeof all);
}

/* Checks the items of a rule that begin in a block, which is in the CPU's cache. */
static embla_status check_rule(const reading *r, const rule *asked, uint64_t begin, uint64_t end)
{
    const embla_compiled_section *s = &r->sections[asked->kind];
    const uint64_t item = embla_section_item(asked->kind), last = s->at + s->count * item;
    if (last <= begin || s->at >= end) return EMBLA_OK;
    const uint64_t from = s->at >= begin ? 0 : (begin - s->at + item - 1) / item;
    const uint64_t to = last <= end ? s->count : (end - s->at + item - 1) / item;
    const uint32_t most = most_u32(r->bytes + s->at + from * item + asked->field,
                                   (size_t)(to - from), (size_t)item, asked->mask);
    return most < asked->end ? EMBLA_OK : too_large(r, asked->what, most, asked->end);
}

static embla_status check_block(const reading *r, const rule rules[RULES], size_t block)
{
    const uint64_t begin = r->header.tables + (uint64_t)block * EMBLA_COMPILED_BLOCK;
    const uint64_t left = r->header.size - begin;
    const size_t bytes = left < EMBLA_COMPILED_BLOCK ? (size_t)left : EMBLA_COMPILED_BLOCK;
    uint64_t stored = 0;
    memcpy(&stored, r->bytes + sizeof r->header + sizeof r->sections + block * sizeof stored,
           sizeof stored);
    const uint64_t found = embla_checksum_of(r->bytes + begin, bytes).low;
    if (found != stored)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: block %zu of %zu is damaged: its checksum is %016" PRIx64
                          ", expected %016" PRIx64,
                          r->t->name, block, r->blocks, found, stored);
    for (int i = 0; i < RULES; i++) EMBLA_TRY(check_rule(r, &rules[i], begin, begin + bytes));
    return EMBLA_OK;
}

typedef struct {
    const reading *reading;
    rule rules[RULES];
} checking;

static embla_status check_some(void *job, size_t first, size_t end, size_t slot)
{
    const checking *c = job;
    (void)slot;
    for (size_t block = first; block < end; block++)
        EMBLA_TRY(check_block(c->reading, c->rules, block));
    return EMBLA_OK;
}

static embla_status check_blocks(const reading *r)
{
    checking c = {.reading = r};
    list_rules(r, c.rules);
    return embla_share(embla_threads_for(0, (size_t)r->header.size), r->blocks, 0, check_some, &c);
}

/* ---- counts that must agree ---- */

static uint64_t count_of(const reading *r, embla_section_kind kind)
{
    return r->sections[kind].count;
}

static embla_status check_tries(const reading *r)
{
    static const embla_section_kind cells[] = {EMBLA_SECTION_CELLS, EMBLA_SECTION_RAW_CELLS,
                                               EMBLA_SECTION_NORMAL_CELLS};
    for (int i = 0; i < 3; i++) {
        const uint64_t nodes = count_of(r, cells[i]);
        const uint64_t values = count_of(r, (embla_section_kind)(cells[i] + 1));
        if (nodes < 256 || nodes >= EMBLA_TRIE_ENDS)
            return wrong(r, "the number of nodes", nodes, 256);
        if (values != nodes) return wrong(r, "the number of values", values, nodes);
    }
    return r->fields.inner < count_of(r, EMBLA_SECTION_CELLS)
               ? EMBLA_OK
               : too_large(r, "the node of the prefix", r->fields.inner,
                           count_of(r, EMBLA_SECTION_CELLS));
}

static embla_status check_counts(const reading *r)
{
    const embla_compiled_fields *f = &r->fields;
    const uint64_t vocab = count_of(r, EMBLA_SECTION_PLACES);
    const uint64_t tokens = count_of(r, EMBLA_SECTION_TOKENS);
    const uint64_t sorted = count_of(r, EMBLA_SECTION_SORTED);
    const uint64_t merges = count_of(r, EMBLA_SECTION_MERGES);
    const uint64_t scores = f->kind == EMBLA_TOKENIZER_UNIGRAM ? vocab : 0;
    const uint64_t words = count_of(r, EMBLA_SECTION_WORDS);
    if (f->kind < EMBLA_TOKENIZER_WORDPIECE || f->kind > EMBLA_TOKENIZER_UNIGRAM)
        return wrong(r, "the kind of the model", f->kind, EMBLA_TOKENIZER_UNIGRAM);
    if (vocab >= INT32_MAX || tokens >= INT32_MAX)
        return too_large(r, "the number of tokens", vocab > tokens ? vocab : tokens, INT32_MAX);
    if (f->kind == EMBLA_TOKENIZER_UNIGRAM && vocab > tokens) /* string i is token i */
        return too_large(r, "the number of strings", vocab, tokens + 1);
    if (count_of(r, EMBLA_SECTION_SPECIAL) != tokens)
        return wrong(r, "the number of marks", count_of(r, EMBLA_SECTION_SPECIAL), tokens);
    if (sorted != 0 && sorted != vocab)
        return wrong(r, "the number of sorted strings", sorted, vocab);
    if (count_of(r, EMBLA_SECTION_SCORES) != scores)
        return wrong(r, "the number of scores", count_of(r, EMBLA_SECTION_SCORES), scores);
    if (f->kind == EMBLA_TOKENIZER_BPE &&
        (merges <= EMBLA_MERGE_PROBES || merges - EMBLA_MERGE_PROBES > UINT32_MAX))
        return wrong(r, "the number of slots for merges", merges, EMBLA_MERGE_PROBES + 1);
    if (f->prefix > words || f->suffix > words - f->prefix ||
        f->unknown_text != words - f->prefix - f->suffix)
        return wrong(r, "the length of prefix and suffix", f->prefix + f->suffix, words);
    return check_tries(r);
}

static bool all_below(const int32_t *tokens, size_t count, uint64_t end)
{
    for (size_t i = 0; i < count; i++)
        if (tokens[i] < -1 || (tokens[i] >= 0 && (uint64_t)tokens[i] >= end)) return false;
    return true;
}

static embla_status check_tokens(const reading *r)
{
    const embla_compiled_fields *f = &r->fields;
    const uint64_t end = r->t->token_end;
    if (!all_below(&f->unknown, 1, f->kind == EMBLA_TOKENIZER_UNIGRAM ? r->t->vocab_count : end))
        return too_large(r, "the unknown token", (uint32_t)f->unknown, end);
    if (!all_below(f->byte_tokens, 256, end) || !all_below(f->symbols[0], 1024, end))
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: the token of a byte is not below %" PRIu64,
                          r->t->name, end);
    return EMBLA_OK;
}

/* ---- filling in ---- */

static const void *table_of(const reading *r, embla_section_kind kind)
{
    return r->bytes + r->sections[kind].at;
}

/* Tables in the file are never written to: a tokenizer does not change after it was opened. */
static void *writable(const void *table)
{
    void *same = NULL;
    memcpy(&same, &table, sizeof same);
    return same;
}

static embla_trie trie_of(const reading *r, embla_section_kind cells)
{
    return (embla_trie){writable(table_of(r, cells)),
                        writable(table_of(r, (embla_section_kind)(cells + 1))),
                        (size_t)count_of(r, cells)};
}

static embla_status fill_words(const reading *r)
{
    const embla_compiled_fields *f = &r->fields;
    embla_tokenizer *t = r->t;
    const char *words = table_of(r, EMBLA_SECTION_WORDS);
    size_t all = (size_t)count_of(r, EMBLA_SECTION_WORDS);
    if (embla_utf8_valid(words, all) < all)
        return wrong(r, "the length of valid UTF-8", embla_utf8_valid(words, all), all);
    t->bpe.prefix = (embla_name){words, (uint32_t)f->prefix, 0};
    t->wordpiece.prefix = t->bpe.prefix;
    t->bpe.suffix = (embla_name){words + f->prefix, (uint32_t)f->suffix, 0};
    if (f->flags & EMBLA_COMPILED_UNKNOWN_TEXT)
        t->unknown_text = (embla_name){words + f->prefix + f->suffix, (uint32_t)f->unknown_text, 0};
    return EMBLA_OK;
}

static void fill_model(const reading *r)
{
    const embla_compiled_fields *f = &r->fields;
    embla_tokenizer *t = r->t;
    t->unknown = f->unknown;
    t->wordpiece.inner = f->inner;
    t->wordpiece.has_inner = (f->flags & EMBLA_COMPILED_HAS_INNER) != 0;
    t->wordpiece.most_chars = embla_size_most(f->most_chars);
    t->bpe.has_unknown = (f->flags & EMBLA_COMPILED_HAS_UNKNOWN) != 0;
    t->bpe.fuse = (f->flags & EMBLA_COMPILED_FUSE) != 0;
    t->bpe.byte_fallback = t->unigram.byte_fallback =
        (f->flags & EMBLA_COMPILED_BYTE_FALLBACK) != 0;
    t->bpe.ignore_merges = (f->flags & EMBLA_COMPILED_IGNORE_MERGES) != 0;
    t->bpe.cuts_at_marks = (f->flags & EMBLA_COMPILED_CUTS_AT_MARKS) != 0;
    memcpy(t->bpe.byte_tokens, f->byte_tokens, sizeof f->byte_tokens);
    memcpy(t->unigram.byte_tokens, f->byte_tokens, sizeof f->byte_tokens);
    memcpy(t->bpe.symbols, f->symbols, sizeof f->symbols);
    t->unigram.unknown_score = f->unknown_score;
    t->unigram.scores = writable(table_of(r, EMBLA_SECTION_SCORES));
    if (t->kind == EMBLA_TOKENIZER_BPE)
        t->bpe.merges =
            (embla_merges){.slots = writable(table_of(r, EMBLA_SECTION_MERGES)),
                           .homes = (size_t)count_of(r, EMBLA_SECTION_MERGES) - EMBLA_MERGE_PROBES,
                           .seed = f->merge_seed,
                           .count = (size_t)f->merge_count};
}

static void fill_tables(const reading *r)
{
    embla_tokenizer *t = r->t;
    t->places = table_of(r, EMBLA_SECTION_PLACES);
    t->pool = table_of(r, EMBLA_SECTION_POOL);
    t->pool_bytes = (size_t)count_of(r, EMBLA_SECTION_POOL);
    if (count_of(r, EMBLA_SECTION_SORTED) > 0) t->sorted = table_of(r, EMBLA_SECTION_SORTED);
    t->by_token = table_of(r, EMBLA_SECTION_TOKENS);
    t->special = table_of(r, EMBLA_SECTION_SPECIAL);
    t->trie = trie_of(r, EMBLA_SECTION_CELLS);
    t->raw.trie = trie_of(r, EMBLA_SECTION_RAW_CELLS);
    t->normalized.trie = trie_of(r, EMBLA_SECTION_NORMAL_CELLS);
}

/* A string of the added tokens, which ends with a 0. */
static embla_status next_text(const reading *r, uint64_t *at, uint32_t length, embla_name *out)
{
    const uint64_t all = count_of(r, EMBLA_SECTION_ADDED_TEXT);
    const char *text = table_of(r, EMBLA_SECTION_ADDED_TEXT);
    if (*at >= all || length >= all - *at || text[*at + length] != 0)
        return too_large(r, "the end of an added token's string", *at + length, all);
    text += *at;
    if (embla_utf8_valid(text, length) < length)
        return wrong(r, "the length of valid UTF-8", embla_utf8_valid(text, length), length);
    *out = (embla_name){text, length, 0};
    *at += (uint64_t)length + 1;
    return EMBLA_OK;
}

static embla_status fill_added(const reading *r)
{
    embla_tokenizer *t = r->t;
    const embla_compiled_added *list = table_of(r, EMBLA_SECTION_ADDED);
    uint64_t at = 0;
    t->added_count = (size_t)count_of(r, EMBLA_SECTION_ADDED);
    EMBLA_TRY(
        embla_arena_many(&t->arena, t->added_count, sizeof *t->added, "added tokens", &t->added));
    for (size_t i = 0; i < t->added_count; i++) {
        embla_added *a = &t->added[i];
        if (list[i].number >= t->token_end)
            return too_large(r, "an added token", list[i].number, t->token_end);
        EMBLA_TRY(next_text(r, &at, list[i].content, &a->content));
        EMBLA_TRY(next_text(r, &at, list[i].matched, &a->matched));
        a->content.number = list[i].number;
        a->single_word = (list[i].flags & 1) != 0;
        a->left = (list[i].flags & 2) != 0;
        a->right = (list[i].flags & 4) != 0;
        a->normalized = (list[i].flags & 8) != 0;
        a->special = (list[i].flags & 16) != 0;
    }
    embla_matcher_prepare(t, &t->raw, false);
    embla_matcher_prepare(t, &t->normalized, true);
    return EMBLA_OK;
}

/* ---- all of it ---- */

static embla_status read_tables(reading *r, uint64_t size)
{
    embla_tokenizer *t = r->t;
    EMBLA_TRY(read_header(r, size));
    EMBLA_TRY(check_sections(r));
    if (count_of(r, EMBLA_SECTION_FIELDS) != 1)
        return wrong(r, "the number of fields", count_of(r, EMBLA_SECTION_FIELDS), 1);
    memcpy(&r->fields, table_of(r, EMBLA_SECTION_FIELDS), sizeof r->fields);
    EMBLA_TRY(check_counts(r));
    t->kind = (embla_tokenizer_kind)r->fields.kind;
    t->vocab_count = (size_t)count_of(r, EMBLA_SECTION_PLACES);
    t->token_end = (size_t)count_of(r, EMBLA_SECTION_TOKENS);
    EMBLA_TRY(check_blocks(r));
    return check_tokens(r);
}

embla_status embla_compiled_open(embla_tokenizer *t, embla_map *map)
{
    reading r = {.t = t, .bytes = map->bytes};
    t->map = embla_map_hold(map); /* first: it says whose the tables are */
    t->source = "compiled";
    EMBLA_TRY(read_tables(&r, map->size));
    fill_tables(&r);
    EMBLA_TRY(fill_words(&r));
    EMBLA_TRY(fill_added(&r));
    fill_model(&r);
    EMBLA_TRY(embla_tokenizer_parts(t, table_of(&r, EMBLA_SECTION_STAGES),
                                    (size_t)count_of(&r, EMBLA_SECTION_STAGES)));
    if (t->byte_level != ((r.fields.flags & EMBLA_COMPILED_BYTE_LEVEL) != 0))
        return wrong(&r, "the level of its bytes", t->byte_level, !t->byte_level);
    return embla_map_check(map);
}
