/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all fuzz targets: reading choices from the front of the input, and aborting if a
 * promise is broken. Beyond its end the input reads as zeros, so every input is a complete case. */
#ifndef EMBLA_FUZZ_INPUT_H
#define EMBLA_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    const uint8_t *data;
    size_t size;
} input;

static inline uint8_t take_byte(input *in)
{
    if (in->size == 0) return 0;
    in->size--;
    return *in->data++;
}

/* Copies the next bytes of in to out; zeros after its end. */
static inline void take(input *in, void *out, size_t bytes)
{
    size_t have = bytes < in->size ? bytes : in->size;
    memset(out, 0, bytes);
    if (have > 0) memcpy(out, in->data, have);
    in->data += have;
    in->size -= have;
}

/* 0 .. limit-1, limit at most 65,536. */
static inline size_t take_below(input *in, size_t limit)
{
    size_t high = limit > 256 ? take_byte(in) : 0;
    return (high << 8 | take_byte(in)) % limit;
}

/* Fills out with the rest of in, repeatedly. */
static inline void fill(const input *in, char *out, size_t bytes)
{
    size_t have = in->size < bytes ? in->size : bytes;
    if (have > 0) memcpy(out, in->data, have);
    if (bytes > 0 && have == 0) out[have++] = 37;
    for (; have < bytes; have *= 2)
        memcpy(out + have, out, have < bytes - have ? have : bytes - have);
}

/* Allocates exactly this size, so that a sanitizer detects an access beyond the end. */
static inline char *block(size_t bytes)
{
    char *memory = malloc(bytes > 0 ? bytes : 1);
    if (!memory) exit(1);
    return memory;
}

/* The next number of splitmix64, for mutators. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t random = embla_splitmix64(*state);
    *state += EMBLA_GOLDEN;
    return random;
}

/* 0 .. limit-1. */
static inline size_t random_below(uint64_t *state, size_t limit)
{
    return (size_t)(next_random(state) >> 33) % limit;
}

/* Checks a promise; the fuzzer reports the input that breaks it. */
#define PROMISE(what)                                                                              \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #what);                     \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
