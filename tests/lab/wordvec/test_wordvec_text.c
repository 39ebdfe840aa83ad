/* SPDX-License-Identifier: Apache-2.0 */
/* Text to words (wordvec/reading, count, lexicon, grams). What a block has is held against what is
 * plain to see, and blocks of any size together must have every word once. n-grams are held against
 * buckets that fastText 0.9.2 computed.
 */
#include "wordvec/lexicon.h"

#include <locale.h>

#include "base/mem.h"
#include "files/io.h"
#include "scratch.h"
#include "wordvec/grams.h"
#include "wordvec/phrases.h"

/* ---- reading ---- */

typedef struct {
    scratch s;
    embla_arena arena;
    embla_reading reading;
} text;

static text open_text(const void *bytes, size_t size, embla_wordvec_clean clean)
{
    text t = {0};
    scratch_new(&t.s);
    scratch_write(scratch_path(&t.s, "text"), bytes, size);
    assert_ok(embla_reading_open(t.s.path, clean, &t.arena, &t.reading));
    return t;
}

static void close_text(text *t)
{
    embla_reading_free(&t->reading);
    embla_arena_free(&t->arena);
    scratch_free(&t->s);
}

/* The words of bytes from .. to, with "|" between them and "/" where a line ended. */
static void spell(const embla_reading *r, uint64_t from, uint64_t to, char *out, size_t size)
{
    embla_word_reader reader;
    size_t used = strlen(out);
    embla_reader_begin(&reader, r, from, to);
    while (embla_reader_next(&reader))
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", reader.new_line ? "/" : "|",
                                 (int)reader.length, (const char *)reader.word);
}

static void assert_words(const char *bytes, embla_wordvec_clean clean, const char *wanted)
{
    char found[4096] = "";
    text t = open_text(bytes, strlen(bytes), clean);
    spell(&t.reading, 0, UINT64_MAX, found, sizeof found);
    assert_string_equal(found, wanted);
    close_text(&t);
}

/* A machine without locales: words must not depend on what the C library has. */
locale_t newlocale(int mask, const char *name, locale_t base)
{
    (void)mask, (void)name, (void)base;
    return (locale_t)0;
}

static void words_are_between_separators(void **state)
{
    (void)state;
    assert_words("the cat  sat\n\non\tthe\r\nmat.", EMBLA_WORDVEC_CLEAN_PLAIN,
                 "/the|cat|sat/on|the/mat.");
    assert_words("  ", EMBLA_WORDVEC_CLEAN_PLAIN, "");
    assert_words("The Cat's 3 hats!\nGR\xc3\x96SSE \xc3\x89t\xc3\xa9", EMBLA_WORDVEC_CLEAN_WORDS,
                 "/the|cat|s|3|hats/gr\xc3\xb6sse|\xc3\xa9t\xc3\xa9");
    assert_words("\xd0\x9f\xd0\xa0\xd0\x98 \xe4\xb8\xad \xc3", EMBLA_WORDVEC_CLEAN_WORDS,
                 "/\xd0\xbf\xd1\x80\xd0\xb8|\xe4\xb8\xad|\xc3");
    /* a small letter of one byte, or of three, stays a capital */
    assert_words("\xc4\xb0X \xc8\xba \xc5\xb8", EMBLA_WORDVEC_CLEAN_WORDS,
                 "/\xc4\xb0x|\xc8\xba|\xc3\xbf");
    assert_words("The Cat's 3 hats! gr\xc3\xb6", EMBLA_WORDVEC_CLEAN_LETTERS, "/the|cat|s|hats|gr");
}

static void blocks_have_every_word_once(void **state)
{
    static const char bytes[] = "aa b ccc\nd eeeeeeee f\n\n gg h iiiii jj kkkkkkkkkkkk l";
    char whole[512] = "";
    text t = open_text(bytes, sizeof bytes - 1, EMBLA_WORDVEC_CLEAN_PLAIN);
    (void)state;
    spell(&t.reading, 0, UINT64_MAX, whole, sizeof whole);
    for (char *c = whole; *c; c++)
        if (*c == '/') *c = '|';
    for (uint64_t block = 1; block < sizeof bytes; block++) {
        char found[512] = "";
        for (uint64_t at = 0; at < t.reading.size; at += block)
            spell(&t.reading, at, at + block, found, sizeof found);
        for (char *c = found; *c; c++)
            if (*c == '/') *c = '|';
        assert_string_equal(found, whole);
    }
    close_text(&t);
}

static void long_words_are_skipped(void **state)
{
    enum { LONG = 300 };
    char bytes[3 * LONG];
    (void)state;
    for (size_t length = 254; length <= 257; length++) {
        embla_word_reader reader;
        size_t used = (size_t)snprintf(bytes, sizeof bytes, "a ");
        memset(bytes + used, 'x', length);
        used += length;
        used += (size_t)snprintf(bytes + used, sizeof bytes - used, " b");
        text t = open_text(bytes, used, EMBLA_WORDVEC_CLEAN_PLAIN);
        embla_reader_begin(&reader, &t.reading, 0, UINT64_MAX);
        size_t count = 0;
        while (embla_reader_next(&reader)) count++;
        assert_int_equal(count, length <= EMBLA_WORD_LONGEST ? 3 : 2);
        assert_int_equal(reader.too_long, length <= EMBLA_WORD_LONGEST ? 0 : 1);
        close_text(&t);
    }
}

static void folders_are_read_in_order(void **state)
{
    scratch s;
    embla_arena arena = {0};
    embla_reading r = {0};
    char found[256] = "";
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "b"), "three four", 10);
    scratch_write(scratch_path(&s, "a"), "one two", 7);
    scratch_write(scratch_path(&s, "aa"), "", 0);
    scratch_write(scratch_path(&s, ".hidden"), "zero", 4);
    assert_ok(embla_reading_open(s.folder, EMBLA_WORDVEC_CLEAN_PLAIN, &arena, &r));
    assert_int_equal(r.size, 17);
    spell(&r, 0, UINT64_MAX, found, sizeof found);
    assert_string_equal(found, "/one|two/three|four");
    found[0] = 0;
    spell(&r, 4, 8, found, sizeof found); /* begins in a file, ends in the next one's first word */
    assert_string_equal(found, "|two/three");
    embla_reading_free(&r);
    embla_arena_free(&arena);
    scratch_free(&s);
}

static void compressed_texts_are_refused(void **state)
{
    scratch s;
    embla_arena arena = {0};
    embla_reading r = {0};
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "x"), "\x1f\x8b\x08 and so on", 13);
    assert_status(embla_reading_open(s.path, EMBLA_WORDVEC_CLEAN_PLAIN, &arena, &r),
                  EMBLA_ERR_UNSUPPORTED);
    assert_error_has("gunzip");
    embla_reading_free(&r);
    embla_arena_free(&arena);
    scratch_free(&s);
}

/* ---- counting ---- */

/* A text of many words, some of them rare: word i occurs about n / (i + 1) times. */
static char *zipf(size_t words, size_t *size)
{
    char *bytes = malloc(12 * words + 1);
    uint64_t seed = 7;
    size_t used = 0;
    assert_non_null(bytes);
    for (size_t i = 0; i < words; i++) {
        uint64_t word = check_below(&seed, 1 + check_below(&seed, 50000));
        used += (size_t)snprintf(bytes + used, 12, "%" PRIx64 "%c", word,
                                 check_below(&seed, 20) ? ' ' : '\n');
    }
    *size = used;
    return bytes;
}

static void counts_are_those_of_the_text(void **state)
{
    enum { WORDS = 3000000 };
    size_t size;
    char *bytes = zipf(WORDS, &size);
    int64_t *plain = calloc(50000, sizeof *plain);
    text t = open_text(bytes, size, EMBLA_WORDVEC_CLEAN_PLAIN);
    (void)state;
    assert_non_null(plain);
    assert_true(size > 9 << 20); /* more than a section */
    for (char *at = bytes; at < bytes + size; at++) plain[strtol(at, &at, 16)]++;
    for (int threads = 1; threads <= 3; threads++) {
        const embla_wordvec_options options = {.threads = threads};
        embla_text_counts c;
        embla_lexicon l;
        assert_ok(embla_count_words(&t.reading, 1 << 24, &options, &c));
        assert_int_equal(c.tokens, WORDS);
        assert_ok(embla_lexicon_make(c.words, 1, INT64_MAX, 0, &l));
        assert_int_equal(l.tokens, WORDS);
        for (int64_t i = 0; i < l.count; i++) {
            char word[16];
            (void)snprintf(word, sizeof word, "%.*s", (int)l.names[i].length, l.names[i].bytes);
            assert_int_equal(l.counts[i], plain[strtol(word, NULL, 16)]);
            assert_int_equal(embla_lexicon_find(&l, (const uint8_t *)word, strlen(word)), i);
            if (i == 0) continue;
            assert_true(l.counts[i] <= l.counts[i - 1]);
            if (l.counts[i] < l.counts[i - 1]) continue;
            size_t n = l.names[i].length < l.names[i - 1].length ? l.names[i].length
                                                                 : l.names[i - 1].length;
            int order = memcmp(l.names[i - 1].bytes, l.names[i].bytes, n);
            assert_true(order < 0 || (order == 0 && l.names[i - 1].length < l.names[i].length));
        }
        assert_int_equal(embla_lexicon_find(&l, (const uint8_t *)"zz", 2), -1);
        embla_lexicon_free(&l);
        embla_word_list_free(c.words);
    }
    free(plain);
    free(bytes);
    close_text(&t);
}

static void rare_words_are_dropped_to_bound_memory(void **state)
{
    size_t size;
    char *bytes = zipf(3000000, &size);
    text t = open_text(bytes, size, EMBLA_WORDVEC_CLEAN_PLAIN);
    int64_t dropped = -1, first = 0;
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        const embla_wordvec_options options = {.threads = threads};
        embla_text_counts c;
        embla_lexicon l;
        assert_ok(embla_count_words(&t.reading, 10000, &options, &c));
        assert_true(c.words->count <= 10000);
        assert_true(c.dropped > 0 && c.floor > 0);
        assert_ok(embla_lexicon_make(c.words, 1, 1, 0, &l));
        if (threads == 2) assert_int_equal(c.dropped, dropped);
        if (threads == 2) assert_int_equal(l.counts[0], first);
        dropped = c.dropped;
        first = l.counts[0];
        embla_lexicon_free(&l);
        embla_word_list_free(c.words);
    }
    free(bytes);
    close_text(&t);
}

/* Each word is drawn as often as its count^0.75, and kept as word2vec keeps it. */
static void words_are_drawn_by_their_counts(void **state)
{
    enum { DRAWS = 1 << 20 };
    static const char bytes[] = "a a a a a a a a a a a a a a a a b b b b c";
    const embla_wordvec_options options = {0};
    text t = open_text(bytes, sizeof bytes - 1, EMBLA_WORDVEC_CLEAN_PLAIN);
    embla_text_counts c;
    embla_lexicon l;
    int64_t drawn[3] = {0};
    uint64_t seed = 3;
    (void)state;
    assert_ok(embla_count_words(&t.reading, 1000, &options, &c));
    assert_ok(embla_lexicon_make(c.words, 1, 3, 0.1, &l));
    for (int i = 0; i < DRAWS; i++) drawn[embla_lexicon_draw(&l, check_next(&seed))]++;
    double all = 8 + 2.8284271247461903 + 1; /* 16^.75, 4^.75, 1 */
    assert_near((double)drawn[0] / DRAWS, 8 / all, 0.003);
    assert_near((double)drawn[1] / DRAWS, 2.8284271247461903 / all, 0.003);
    assert_near((double)drawn[2] / DRAWS, 1 / all, 0.003);
    /* s / f = 0.1 * 21 / 16 */
    assert_near(l.keep[0] / 0x1p32, 0.3622844186547359 + 0.13125, 1e-6);
    assert_int_equal(l.keep[2], UINT32_MAX);
    embla_lexicon_free(&l);
    embla_word_list_free(c.words);
    close_text(&t);
}

/* ---- phrases ---- */

static void phrases_are_read_as_one(void **state)
{
    /* "new york" 4 of 5 times, and once on two lines; "is big" and "big is" by chance */
    static const char bytes[] =
        "new york\nis big\nnew york is big\nbig is new york\nis\nnew york\nnew\nyork";
    const embla_wordvec_options options = {.min_count = 1, .phrases = 2.1};
    text t = open_text(bytes, sizeof bytes - 1, EMBLA_WORDVEC_CLEAN_PLAIN);
    embla_lexicon phrases;
    char found[512] = "";
    (void)state;
    assert_ok(embla_phrases_find(&t.reading, 1000, &options, &phrases));
    /* (4 - 1) x 17 / (5 x 5) = 2.04; (2 - 1) x 17 / (4 x 3) = 1.4 */
    assert_int_equal(phrases.count, 0);
    embla_lexicon_free(&phrases);
    const embla_wordvec_options lower = {.min_count = 1, .phrases = 2};
    assert_ok(embla_phrases_find(&t.reading, 1000, &lower, &phrases));
    assert_int_equal(phrases.count, 1);
    spell(&t.reading, 0, UINT64_MAX, found, sizeof found);
    assert_string_equal(found,
                        "/new_york/is|big/new_york|is|big/big|is|new_york/is/new_york/new/york");
    embla_lexicon_free(&phrases);
    close_text(&t);
}

/* A phrase is not longer than a word can be, and a long word is no part of one. */
static void phrases_of_long_words(void **state)
{
    char bytes[6 * 300];
    size_t used = 0;
    embla_lexicon phrases;
    const embla_wordvec_options options = {.min_count = 1, .phrases = 0.1};
    (void)state;
    for (int i = 0; i < 3; i++) {
        memset(bytes + used, 'x', 250);
        used += 250;
        used += (size_t)snprintf(bytes + used, sizeof bytes - used, " yyyyyyyy zz ");
    }
    text t = open_text(bytes, used, EMBLA_WORDVEC_CLEAN_WORDS);
    assert_ok(embla_phrases_find(&t.reading, 1000, &options, &phrases));
    for (int64_t i = 0; i < phrases.count; i++)
        assert_true(phrases.names[i].length <= EMBLA_WORD_LONGEST);
    embla_word_reader reader;
    size_t count = 0;
    embla_reader_begin(&reader, &t.reading, 0, UINT64_MAX);
    while (embla_reader_next(&reader)) count += reader.length;
    assert_int_equal(count, 3 * 250 + 3 * (8 + 1 + 2)); /* yyyyyyyy_zz */
    embla_lexicon_free(&phrases);
    close_text(&t);
}

/* ---- n-grams ---- */

/* fasttext.Dictionary, minn 3, maxn 6, bucket 2,000,000: fasttext 0.9.2, get_subwords. */
static void grams_are_those_of_fasttext(void **state)
{
    const embla_gram_rule rule = {3, 6, 2000000};
    int32_t found[EMBLA_GRAMS_MOST];
    (void)state;
    /* "<cat>": <ca <cat <cat> cat cat> at> */
    assert_int_equal(embla_grams_of(&rule, "cat", 3, found), 6);
    static const uint32_t offset = 2166136261u, prime = 16777619u;
    static const char *const grams[] = {"<ca", "<cat", "<cat>", "cat", "cat>", "at>"};
    for (size_t i = 0; i < COUNT_OF(grams); i++) {
        uint32_t hash = offset;
        for (const char *c = grams[i]; *c; c++) hash = (hash ^ (uint32_t)(unsigned char)*c) * prime;
        assert_int_equal(found[i], hash % 2000000);
    }
    /* characters, not bytes: "<\u00e9>" has one n-gram of 3; its bytes count as signed */
    assert_int_equal(embla_grams_of(&rule, "\xc3\xa9", 2, found), 1);
    uint32_t hash = offset;
    static const uint32_t bytes[] = {'<', 0xffffffc3u, 0xffffffa9u, '>'};
    for (size_t i = 0; i < COUNT_OF(bytes); i++) hash = (hash ^ bytes[i]) * prime;
    assert_int_equal(found[0], hash % 2000000);
    const embla_gram_rule ones = {1, 2, 100};
    assert_int_equal(embla_grams_of(&ones, "ab", 2, found), 5); /* <a a ab b b>, not < or > */
    char longest[255];
    memset(longest, 'x', sizeof longest);
    const embla_gram_rule all = {1, EMBLA_GRAM_LONGEST, INT32_MAX};
    assert_true(embla_grams_of(&all, longest, 255, found) <= EMBLA_GRAMS_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_are_between_separators),
                                       cmocka_unit_test(blocks_have_every_word_once),
                                       cmocka_unit_test(long_words_are_skipped),
                                       cmocka_unit_test(folders_are_read_in_order),
                                       cmocka_unit_test(compressed_texts_are_refused),
                                       cmocka_unit_test(counts_are_those_of_the_text),
                                       cmocka_unit_test(rare_words_are_dropped_to_bound_memory),
                                       cmocka_unit_test(words_are_drawn_by_their_counts),
                                       cmocka_unit_test(phrases_are_read_as_one),
                                       cmocka_unit_test(phrases_of_long_words),
                                       cmocka_unit_test(grams_are_those_of_fasttext)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
