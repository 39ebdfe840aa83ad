/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabulary files for tests, in memory: read from a block of exactly their size, so that a
 * sanitizer sees one byte too far; accepted or refused with a sentence that must hold some
 * text and, last, the rule.
 */
#ifndef EMBLA_TESTS_VOCAB_BYTES_H
#define EMBLA_TESTS_VOCAB_BYTES_H

#include "base/mem.h"
#include "check.h"
#include "checkpoint/vocab.h"

#define SHOWN "some/vocab"

static inline embla_status vocab_read(const void *bytes, size_t count, embla_vocab_hint hint,
                                      embla_vocab **out)
{
    embla_map *map = NULL;
    char *exact = malloc(count > 0 ? count : 1);
    assert_non_null(exact);
    if (count > 0) memcpy(exact, bytes, count);
    embla_status status = embla_map_bytes(exact, count, SHOWN, &map);
    if (status == EMBLA_OK) status = embla_vocab_read(map, SHOWN, hint, out);
    embla_map_free(map);
    free(exact);
    return status;
}

/* A vocabulary that must be read. */
static inline embla_vocab *vocab_of(const void *bytes, size_t count, embla_vocab_hint hint)
{
    embla_vocab *vocab = NULL;
    size_t live = embla_mem_live();
    assert_ok(vocab_read(bytes, count, hint, &vocab));
    assert_true(embla_mem_live() > live);
    return vocab;
}

static inline embla_vocab *vocab_of_text(const char *text)
{
    return vocab_of(text, strlen(text), EMBLA_VOCAB_ANY);
}

/* Refused with this status; nothing is left of it. */
static inline void vocab_refused(const void *bytes, size_t count, embla_vocab_hint hint,
                                 embla_status status, const char *text, const char *rule)
{
    embla_vocab *vocab = (embla_vocab *)(uintptr_t)SHOWN;
    size_t live = embla_mem_live(), length = strlen(rule);
    assert_status(vocab_read(bytes, count, hint, &vocab), status);
    assert_ptr_equal(vocab, SHOWN);
    assert_int_equal(embla_mem_live(), live);
    const char *error = embla_error();
    if (strncmp(error, SHOWN ": ", sizeof SHOWN + 1) != 0) fail_msg("no name: %s", error);
    if (strlen(error) < length || strcmp(error + strlen(error) - length, rule) != 0)
        fail_msg("'%s' does not end with %s", error, rule);
    assert_error_has(text);
}

static inline void refuse(const char *json, const char *text, const char *rule)
{
    vocab_refused(json, strlen(json), EMBLA_VOCAB_MARKED, EMBLA_ERR_FORMAT, text, rule);
}

/* The word of a token, whole; a 0 follows it. */
static inline void assert_word_bytes(const embla_vocab *vocab, int32_t token, const void *bytes,
                                     size_t count)
{
    size_t length = 0;
    const char *word = embla_vocab_word(vocab, token, &length);
    if (!word) fail_msg("token %" PRId32 " has no word", token);
    assert_int_equal(length, count);
    if (count > 0) assert_memory_equal(word, bytes, count);
    assert_int_equal(word[length], 0);
}

static inline void assert_word(const embla_vocab *vocab, int32_t token, const char *text)
{
    assert_word_bytes(vocab, token, text, strlen(text));
}

static inline void assert_no_word(const embla_vocab *vocab, int32_t token)
{
    size_t length = 99;
    assert_null(embla_vocab_word(vocab, token, &length));
    assert_int_equal(length, 99);
}

static inline void assert_found(const embla_vocab *vocab, const char *text, int32_t token)
{
    int32_t found = -7;
    assert_ok(embla_vocab_find(vocab, text, strlen(text), &found));
    assert_int_equal(found, token);
}

static inline void assert_not_found(const embla_vocab *vocab, const char *text)
{
    int32_t found = -7;
    assert_status(embla_vocab_find(vocab, text, strlen(text), &found), EMBLA_ERR_NOT_FOUND);
    assert_int_equal(found, -7);
}

/* A file in pieces. */
typedef struct {
    char *bytes;
    size_t used, room;
} vocab_bytes;

static inline void put(vocab_bytes *b, const void *bytes, size_t count)
{
    if (b->used + count > b->room) {
        b->room = 2 * (b->used + count) + 64;
        b->bytes = realloc(b->bytes, b->room);
        assert_non_null(b->bytes);
    }
    if (count > 0) memcpy(b->bytes + b->used, bytes, count);
    b->used += count;
}

static inline void put_text(vocab_bytes *b, const char *text)
{
    put(b, text, strlen(text));
}

static inline void put_times(vocab_bytes *b, const char *text, size_t times)
{
    for (size_t i = 0; i < times; i++) put_text(b, text);
}

static inline void put_i32(vocab_bytes *b, int64_t value)
{
    for (int i = 0; i < 4; i++) put(b, &(char){(char)((uint64_t)value >> (8 * i) & 255)}, 1);
}

static inline void put_end(vocab_bytes *b)
{
    free(b->bytes);
    *b = (vocab_bytes){0};
}

#endif
