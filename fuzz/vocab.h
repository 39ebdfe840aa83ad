/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the fuzz targets of vocabularies: reading bytes as a file, checks of every vocabulary,
 * and choices for mutators. */
#ifndef EMBLA_FUZZ_VOCAB_H
#define EMBLA_FUZZ_VOCAB_H

#include "base/mem.h"
#include "checkpoint/vocab.h"
#include "input.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

/* Tokens ascend, each word is found again (or an equal one before it), and a 0 follows it. */
static inline void check_vocab(const embla_vocab *vocab)
{
    PROMISE(vocab->count >= 1 && embla_vocab_count(vocab) == (int64_t)vocab->count);
    PROMISE(embla_vocab_end(vocab) <= INT64_C(1) << 31);
    PROMISE(embla_vocab_end(vocab) == (int64_t)vocab->words[vocab->count - 1].number + 1);
    PROMISE(embla_vocab_fits(vocab, embla_vocab_end(vocab)));
    PROMISE(!embla_vocab_word(vocab, -1, NULL));
    if (vocab->end <= INT32_MAX) PROMISE(!embla_vocab_word(vocab, (int32_t)vocab->end, NULL));
    for (size_t i = 0; i < vocab->count; i += 1 + i / 16) { /* only some of many */
        const embla_name *name = &vocab->words[i];
        int32_t found = -1;
        size_t length = 0;
        PROMISE(i == 0 || name[-1].number < name->number);
        PROMISE(embla_vocab_word(vocab, (int32_t)name->number, &length) == name->bytes);
        PROMISE(length == name->length && name->bytes[length] == '\0');
        PROMISE(embla_vocab_find(vocab, name->bytes, length, &found) == EMBLA_OK);
        const char *same = embla_vocab_word(vocab, found, &length);
        PROMISE(found >= 0 && (uint32_t)found <= name->number && length == name->length);
        PROMISE(memcmp(same, name->bytes, length) == 0);
        if (i > 0 && name->number > 0 && name[-1].number < name->number - 1)
            PROMISE(!embla_vocab_word(vocab, (int32_t)name->number - 1, NULL));
    }
}

/* A word with a leading space is found if one of the three spellings is a word. */
static inline void check_space(const embla_vocab *vocab)
{
    static const char *const spellings[] = {" the", "\xe2\x96\x81the", "\xc4\xa0the"};
    int32_t found = -1, first = -1;
    bool there = embla_vocab_find(vocab, " the", 4, &found) == EMBLA_OK;
    for (size_t i = 0; i < 3 && first < 0; i++)
        for (size_t j = 0; j < vocab->count && first < 0; j++)
            if (vocab->words[j].length == strlen(spellings[i]) &&
                memcmp(vocab->words[j].bytes, spellings[i], vocab->words[j].length) == 0)
                first = (int32_t)vocab->words[j].number;
    PROMISE(there == (first >= 0) && found == first);
}

/* Reads the bytes. An accepted vocabulary is checked, and the caller frees it. NULL after an error,
 * with nothing left allocated. */
static inline embla_vocab *read_vocab(const void *data, size_t size, embla_vocab_hint hint)
{
    embla_map *map = NULL;
    embla_vocab *vocab = NULL;
    size_t live = embla_mem_live();
    PROMISE(embla_map_bytes(data, size, "input", &map) == EMBLA_OK);
    embla_status status = embla_vocab_read(map, "input", hint, &vocab);
    embla_map_free(map);
    if (status == EMBLA_OK) {
        check_vocab(vocab);
        check_space(vocab);
        return vocab;
    }
    PROMISE(status == EMBLA_ERR_FORMAT || status == EMBLA_ERR_UNSUPPORTED ||
            status == EMBLA_ERR_NOT_FOUND);
    PROMISE(strncmp(embla_error(), "input: ", 7) == 0);
    PROMISE(!vocab && embla_mem_live() == live);
    return NULL;
}

/* 0 .. limit-1. */
static inline size_t choose(unsigned *seed, size_t limit)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (size_t)(((uint64_t)*seed * limit) >> 32);
}

/* Inserts count bytes at offset, if there is room for all; returns the new length. */
static inline size_t insert(uint8_t *data, size_t size, size_t most, size_t at, const void *bytes,
                            size_t count)
{
    if (count > most - size) return size;
    memmove(data + at + count, data + at, size - at);
    memcpy(data + at, bytes, count);
    return size + count;
}

#endif
