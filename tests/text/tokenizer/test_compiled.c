/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled tokenizers: they give what their tokenizer.json gives, and a file that is damaged, cut
 * short or hostile is refused or does no harm. The tokenizers are the small ones of fuzz/, one of
 * each kind. */
#include <errno.h>

#include "../fuzz/compiled.h"
#include "../fuzz/tokenizers.h"
#include "base/mem.h"
#include "embla_text.h"
#include "files/io.h"
#include "scratch.h"
#include "tokenizer/tokenizer.h"

enum {
    KINDS = sizeof fuzz_tokenizers / sizeof fuzz_tokenizers[0],
    GPT2 = 0,
    BERT = 7,
    UNIGRAM = 9
};

static const char *const texts[] = {
    "", "hello world the aaaa aaaaaa 12 123",
    " Hello  world's caf\xc3\xa9 \xe3\x81\x82 \xff[CLS]<unk> sep \n",
    "e\xcc\x81\xe4\xb8\xad\xf0\x9f\x98\x80 the! in? ing"};

typedef struct {
    scratch s;
    char json[SCRATCH_PATH], path[SCRATCH_PATH]; /* a tokenizer.json, and the compiled file */
    uint8_t *bytes;
    size_t size;
} compiled;

static compiled compile(int kind)
{
    compiled c = {0};
    scratch_new(&c.s);
    (void)snprintf(c.json, sizeof c.json, "%s", scratch_path(&c.s, "tokenizer.json"));
    (void)snprintf(c.path, sizeof c.path, "%s", scratch_path(&c.s, "compiled"));
    scratch_write(c.json, fuzz_tokenizers[kind], strlen(fuzz_tokenizers[kind]));
    assert_ok(embla_tokenizer_compile(c.json, c.path));
    struct stat info;
    assert_int_equal(stat(c.path, &info), 0);
    c.size = (size_t)info.st_size;
    c.bytes = malloc(c.size);
    FILE *file = fopen(c.path, "rb");
    assert_true(c.bytes && file && fread(c.bytes, c.size, 1, file) == 1);
    (void)fclose(file);
    return c;
}

static void drop(compiled *c)
{
    free(c->bytes);
    scratch_free(&c->s);
}

static void assert_refused(const uint8_t *bytes, size_t size, const char *sentence)
{
    embla_tokenizer *t = NULL;
    const size_t live = embla_mem_live();
    assert_status(embla_tokenizer_open_bytes(bytes, size, "test", &t), EMBLA_ERR_FORMAT);
    assert_error_has(sentence);
    assert_null(t);
    assert_int_equal(embla_mem_live(), live);
}

/* ---- the same tokenizer ---- */

static void assert_same_text(embla_tokenized *a, embla_tokenized *b, const char *text)
{
    const embla_tokenize_options options = {.offsets = true, .add_special = true};
    const char *texts_back[2] = {0};
    size_t lengths[2] = {0};
    assert_ok(embla_tokenize(a, text, strlen(text), &options));
    assert_ok(embla_tokenize(b, text, strlen(text), &options));
    const size_t count = embla_tokenized_count(a);
    assert_int_equal(embla_tokenized_count(b), count);
    if (count > 0) {
        assert_memory_equal(embla_tokenized_tokens(a), embla_tokenized_tokens(b), count * 4);
        assert_memory_equal(embla_tokenized_offsets(a), embla_tokenized_offsets(b), count * 8);
    }
    assert_ok(
        embla_detokenize(a, embla_tokenized_tokens(a), count, true, &texts_back[0], &lengths[0]));
    assert_ok(
        embla_detokenize(b, embla_tokenized_tokens(b), count, true, &texts_back[1], &lengths[1]));
    assert_int_equal(lengths[0], lengths[1]);
    assert_memory_equal(texts_back[0], texts_back[1], lengths[0]);
}

static void assert_same_strings(const embla_tokenizer *a, const embla_tokenizer *b)
{
    embla_tokenizer_info x, y;
    assert_ok(embla_tokenizer_describe(a, &x));
    assert_ok(embla_tokenizer_describe(b, &y));
    assert_string_equal(y.source, "compiled");
    assert_string_equal(x.pipeline, y.pipeline);
    assert_true(x.kind == y.kind && x.vocab == y.vocab && x.added == y.added &&
                x.tokens == y.tokens && x.merges == y.merges && x.byte_level == y.byte_level &&
                x.unknown == y.unknown);
    for (int32_t token = -1; token <= x.tokens; token++) {
        size_t length = 0, other = 0;
        const char *text = embla_tokenizer_text(a, token, &length);
        const char *same = embla_tokenizer_text(b, token, &other);
        assert_int_equal(text == NULL, same == NULL);
        if (!text) continue;
        assert_int_equal(a->special[token], b->special[token]);
        assert_string_equal(text, same);
        assert_int_equal(length, other);
        assert_int_equal(embla_tokenizer_token(a, text, length),
                         embla_tokenizer_token(b, text, length));
    }
    assert_int_equal(embla_tokenizer_token(b, "no such string", 14), -1);
}

static void a_compiled_tokenizer_gives_the_same_as_its_json(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        compiled c = compile(kind);
        embla_tokenizer *tokenizers[2] = {0};
        embla_tokenized *e[2] = {0};
        assert_ok(embla_tokenizer_open_file(c.json, &tokenizers[0]));
        assert_ok(embla_tokenizer_open_file(c.path, &tokenizers[1]));
        assert_same_strings(tokenizers[0], tokenizers[1]);
        for (int i = 0; i < 2; i++) assert_ok(embla_tokenized_new(tokenizers[i], &e[i]));
        for (size_t i = 0; i < COUNT_OF(texts); i++) assert_same_text(e[0], e[1], texts[i]);
        for (int i = 0; i < 2; i++) {
            embla_tokenized_free(e[i]);
            embla_tokenizer_free(tokenizers[i]);
        }
        drop(&c);
    }
}

static void only_a_tokenizer_json_is_compiled(void **state)
{
    (void)state;
    scratch s;
    scratch_new(&s);
    char from[SCRATCH_PATH];
    (void)snprintf(from, sizeof from, "%s", scratch_path(&s, "vocab.txt"));
    scratch_write(from, "[UNK]\n[CLS]\n[SEP]\na\n##b\n", 24);
    assert_status(embla_tokenizer_compile(from, scratch_path(&s, "out")), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("vocab.txt; only a tokenizer.json can be compiled");
    assert_status(embla_tokenizer_compile(scratch_path(&s, "none"), from), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_tokenizer_compile(NULL, from), EMBLA_ERR_ARGUMENT);
    assert_status(embla_tokenizer_compile(from, NULL), EMBLA_ERR_ARGUMENT);
    assert_int_equal(scratch_count(&s, NULL), 1);
    scratch_free(&s);
}

/* ---- damage ---- */

static void every_changed_byte_is_noticed(void **state)
{
    (void)state;
    compiled c = compile(BERT);
    for (size_t at = 8; at < c.size; at++) { /* without the magic it is another kind of file */
        c.bytes[at] ^= 0x10;
        assert_refused(c.bytes, c.size, "test: ");
        c.bytes[at] ^= 0x10;
    }
    drop(&c);
}

static void a_file_that_is_cut_short_is_refused(void **state)
{
    (void)state;
    compiled c = compile(BERT);
    for (size_t size = 8; size < c.size; size++) {
        uint8_t *copy = malloc(size); /* of this size, for sanitizers */
        assert_non_null(copy);
        memcpy(copy, c.bytes, size);
        assert_refused(copy, size, "the size of the file");
        free(copy);
    }
    drop(&c);
}

static void another_version_or_byte_order_is_refused(void **state)
{
    (void)state;
    compiled c = compile(BERT);
    c.bytes[8] = 2;
    compiled_seal(c.bytes, c.size);
    assert_refused(c.bytes, c.size, "the version is 2, expected 1; compile the tokenizer again");
    c.bytes[8] = 1;
    c.bytes[12] = 9;
    compiled_seal(c.bytes, c.size);
    assert_refused(c.bytes, c.size, "byte order");
    drop(&c);
}

/* ---- hostile files, whose checksums are right ---- */

static embla_compiled_section *section_of(const compiled *c, embla_section_kind kind)
{
    return (embla_compiled_section *)(void *)(c->bytes + sizeof(embla_compiled_header)) + kind;
}

/* Sets a u32 at byte `at` of a table, expects the file to be refused, and restores it. */
static void assert_checked(compiled *c, embla_section_kind kind, size_t at, uint32_t value,
                           const char *sentence)
{
    uint8_t *to = c->bytes + section_of(c, kind)->at + at;
    uint32_t before = 0;
    memcpy(&before, to, 4);
    memcpy(to, &value, 4);
    compiled_seal(c->bytes, c->size);
    assert_refused(c->bytes, c->size, sentence);
    memcpy(to, &before, 4);
    compiled_seal(c->bytes, c->size);
}

static void nodes_and_tokens_out_of_range_are_refused(void **state)
{
    (void)state;
    compiled c = compile(GPT2);
    const size_t cells = (size_t)section_of(&c, EMBLA_SECTION_CELLS)->count;
    const size_t slots = (size_t)section_of(&c, EMBLA_SECTION_MERGES)->count;
    const uint32_t tokens = (uint32_t)section_of(&c, EMBLA_SECTION_TOKENS)->count;
    assert_checked(&c, EMBLA_SECTION_CELLS, 0, (uint32_t)cells - 255, "a node of the vocabulary");
    assert_checked(&c, EMBLA_SECTION_CELLS, 8 * (cells - 1), 0x7fffffff, "a node of the vocab");
    assert_checked(&c, EMBLA_SECTION_VALUES, 4 * (cells - 1), tokens, "a token of the vocabulary");
    assert_checked(&c, EMBLA_SECTION_VALUES, 0, UINT32_MAX, "a token of the vocabulary");
    assert_checked(&c, EMBLA_SECTION_MERGES, 16 * (slots - 1) + 12, tokens, "the token of a merge");
    assert_checked(&c, EMBLA_SECTION_FIELDS, offsetof(embla_compiled_fields, kind), 9, "the kind");
    assert_checked(&c, EMBLA_SECTION_FIELDS, offsetof(embla_compiled_fields, unknown), tokens,
                   "the unknown token");
    assert_checked(&c, EMBLA_SECTION_FIELDS, offsetof(embla_compiled_fields, inner),
                   (uint32_t)cells, "the node of the prefix");
    assert_checked(&c, EMBLA_SECTION_FIELDS, offsetof(embla_compiled_fields, byte_tokens), tokens,
                   "the token of a byte");
    assert_checked(&c, EMBLA_SECTION_FIELDS, offsetof(embla_compiled_fields, symbols) + 4092,
                   tokens, "the token of a byte");
    assert_checked(&c, EMBLA_SECTION_FIELDS, offsetof(embla_compiled_fields, prefix), 7, "prefix");
    assert_checked(&c, EMBLA_SECTION_FIELDS, offsetof(embla_compiled_fields, flags), 0, "level");
    drop(&c);
    c = compile(BERT);
    const uint32_t all = (uint32_t)section_of(&c, EMBLA_SECTION_TOKENS)->count;
    assert_checked(&c, EMBLA_SECTION_ADDED, 0, all, "an added token");
    assert_checked(&c, EMBLA_SECTION_ADDED, 4, 1 << 30, "the end of an added token's string");
    assert_checked(&c, EMBLA_SECTION_RAW_CELLS, 0, 0x7fffff00, "a node of the added tokens");
    assert_checked(&c, EMBLA_SECTION_RAW_VALUES, 0, 2, "an added token is 2; it must be below 2");
    assert_checked(&c, EMBLA_SECTION_NORMAL_VALUES, 0, 2, "an added token");
    drop(&c);
    c = compile(UNIGRAM);
    assert_checked(&c, EMBLA_SECTION_VALUES, 0,
                   (uint32_t)section_of(&c, EMBLA_SECTION_PLACES)->count, "a token of the vocab");
    /* string i is token i: fewer tokens than strings leave strings without one */
    section_of(&c, EMBLA_SECTION_TOKENS)->count = section_of(&c, EMBLA_SECTION_SPECIAL)->count = 3;
    compiled_seal(c.bytes, c.size);
    assert_refused(c.bytes, c.size, "the number of strings");
    drop(&c);
}

static void strings_are_sorted_and_numbered_inside_of_their_tables(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        compiled c = compile(kind);
        const uint32_t strings = (uint32_t)section_of(&c, EMBLA_SECTION_PLACES)->count;
        const uint32_t tokens = (uint32_t)section_of(&c, EMBLA_SECTION_TOKENS)->count;
        assert_checked(&c, EMBLA_SECTION_PLACES, offsetof(embla_vocab_place, number), tokens,
                       "the token of a string");
        if (section_of(&c, EMBLA_SECTION_SORTED)->count > 0) {
            assert_checked(&c, EMBLA_SECTION_SORTED, 0, strings, "a sorted string");
            assert_checked(&c, EMBLA_SECTION_SORTED, 4 * ((size_t)strings - 1), UINT32_MAX,
                           "a sorted string");
        }
        drop(&c);
    }
}

static void tables_outside_of_the_file_are_refused(void **state)
{
    (void)state;
    compiled c = compile(GPT2);
    for (int kind = 0; kind < EMBLA_SECTIONS; kind++) {
        embla_compiled_section *s = section_of(&c, (embla_section_kind)kind);
        const embla_compiled_section before = *s;
        const embla_compiled_section wrongs[] = {{before.at + 1, before.count},
                                                 {0, before.count},
                                                 {UINT64_MAX - 63, before.count},
                                                 {before.at, UINT64_MAX},
                                                 {before.at, UINT64_C(1) << 61},
                                                 {before.at, (uint64_t)c.size},
                                                 {(c.size + 63) / 64 * 64 + 64, before.count}};
        for (size_t i = 0; i < COUNT_OF(wrongs); i++) {
            *s = wrongs[i];
            compiled_seal(c.bytes, c.size);
            assert_refused(c.bytes, c.size, "test: ");
        }
        *s = before;
    }
    drop(&c);
}

/* Strings are checked when they are used. */
static void strings_out_of_range_are_missing(void **state)
{
    (void)state;
    compiled c = compile(GPT2);
    embla_vocab_place *places = (void *)(c.bytes + section_of(&c, EMBLA_SECTION_PLACES)->at);
    uint32_t *by_token = (void *)(c.bytes + section_of(&c, EMBLA_SECTION_TOKENS)->at);
    places[by_token['a']].at = UINT32_MAX;
    places[by_token['b']].length = UINT32_MAX;
    places[by_token['c']].length = 0xffff;
    places[by_token['d']].at++; /* where it is the 0 after the string */
    by_token['e'] = 1 << 30;
    compiled_seal(c.bytes, c.size);
    embla_tokenizer *t = NULL;
    embla_tokenized *e = NULL;
    const char *text = NULL;
    size_t length = 0;
    assert_ok(embla_tokenizer_open_bytes(c.bytes, c.size, "test", &t));
    for (int32_t token = 'a'; token <= 'e'; token++)
        assert_null(embla_tokenizer_text(t, token, NULL));
    assert_string_equal(embla_tokenizer_text(t, 'f', NULL), "f");
    assert_ok(embla_tokenized_new(t, &e));
    assert_ok(embla_tokenize(e, "abcdef", 6, NULL));
    assert_ok(embla_detokenize(e, embla_tokenized_tokens(e), 6, true, &text, &length));
    assert_string_equal(text, "f");
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
    drop(&c);
}

/* A table of merges without a free slot is searched for no longer than any other. */
static void full_tables_of_merges_end_the_search(void **state)
{
    (void)state;
    compiled c = compile(GPT2);
    const embla_compiled_section *s = section_of(&c, EMBLA_SECTION_MERGES);
    embla_pair_merge *slots = (void *)(c.bytes + s->at);
    for (size_t i = 0; i < s->count; i++) slots[i].pair = 1;
    /* "he" in the last slot, which is more than 64 after the first that a search may begin at */
    slots[s->count - 1] = (embla_pair_merge){(uint64_t)'h' << 32 | 'e', 0, 256};
    compiled_seal(c.bytes, c.size);
    embla_tokenizer *t = NULL;
    embla_tokenized *e = NULL;
    assert_ok(embla_tokenizer_open_bytes(c.bytes, c.size, "test", &t));
    assert_ok(embla_tokenized_new(t, &e));
    assert_ok(embla_tokenize(e, "hello", 5, NULL));
    assert_int_equal(embla_tokenized_count(e), 5);
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
    drop(&c);
}

/* ---- the file while it is in use ---- */

static void a_file_that_shrinks_is_noticed(void **state)
{
    (void)state;
    compiled c = compile(GPT2);
    embla_tokenizer *t = NULL;
    embla_tokenized *e = NULL;
    const char *text = "hello", *back = NULL;
    const size_t length = 5;
    size_t bytes = 0;
    const int32_t token = 1;
    assert_ok(embla_tokenizer_open_file(c.path, &t));
    assert_ok(embla_tokenized_new(t, &e));
    assert_ok(embla_tokenize(e, text, length, NULL));
    assert_int_equal(truncate(c.path, (off_t)c.size - 1), 0);
    assert_status(embla_tokenize(e, text, length, NULL), EMBLA_ERR_IO);
    const embla_texts one = {.texts = &text, .lengths = &length, .count = 1};
    assert_status(embla_tokenize_batch(e, &one, NULL), EMBLA_ERR_IO);
    assert_status(embla_detokenize(e, &token, 1, false, &back, &bytes), EMBLA_ERR_IO);
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
    drop(&c);
}

/* Compiles, opens and encodes. */
static embla_status use(const compiled *c)
{
    embla_tokenizer *t = NULL;
    embla_tokenized *e = NULL;
    embla_status status = embla_tokenizer_compile(c->json, c->path);
    if (status == EMBLA_OK) status = embla_tokenizer_open_file(c->path, &t);
    if (status == EMBLA_OK) status = embla_tokenized_new(t, &e);
    if (status == EMBLA_OK) status = embla_tokenize(e, "hello", 5, NULL);
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
    t = NULL;
    if (status == EMBLA_OK) status = embla_tokenizer_open_bytes(c->bytes, c->size, "test", &t);
    embla_tokenizer_free(t);
    return status;
}

static void every_allocation_and_call_of_the_system_may_fail(void **state)
{
    (void)state;
    static const int kinds[] = {BERT, UNIGRAM};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        compiled c = compile(kinds[k]);
        const size_t live = embla_mem_live(), files = embla_io_live();
        embla_status status = EMBLA_ERR_MEMORY;
        for (size_t n = 1; status != EMBLA_OK; n++) {
            embla_mem_fail(n, false);
            status = use(&c);
            embla_mem_fail(0, false);
            if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
            assert_int_equal(embla_mem_live(), live);
            assert_true(n < 2000);
        }
        for (size_t n = 1; n < 60; n++) {
            embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
            status = use(&c);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), files);
        }
        drop(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_compiled_tokenizer_gives_the_same_as_its_json),
        cmocka_unit_test(only_a_tokenizer_json_is_compiled),
        cmocka_unit_test(every_changed_byte_is_noticed),
        cmocka_unit_test(a_file_that_is_cut_short_is_refused),
        cmocka_unit_test(another_version_or_byte_order_is_refused),
        cmocka_unit_test(nodes_and_tokens_out_of_range_are_refused),
        cmocka_unit_test(strings_are_sorted_and_numbered_inside_of_their_tables),
        cmocka_unit_test(tables_outside_of_the_file_are_refused),
        cmocka_unit_test(strings_out_of_range_are_missing),
        cmocka_unit_test(full_tables_of_merges_end_the_search),
        cmocka_unit_test(a_file_that_shrinks_is_noticed),
        cmocka_unit_test(every_allocation_and_call_of_the_system_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
