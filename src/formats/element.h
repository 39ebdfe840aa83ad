/* SPDX-License-Identifier: Apache-2.0 */
/* How numbers are stored in files: every type that a format we read knows, with its size,
 * including those that no table can be made of. One row for each (rules S7, G8, N3).
 */
#ifndef EMBLA_FORMATS_ELEMENT_H
#define EMBLA_FORMATS_ELEMENT_H

#include "base/status.h"

typedef struct {
    const char *name;        /* as people write it: "F32", "Q4_K" */
    const char *safetensors; /* its name there; NULL: safetensors does not have it */
    const char *npy;         /* its letter and size there, "f4"; NULL: npy does not have it */
    uint32_t block;          /* numbers in a block */
    uint32_t block_bits;     /* bits of a block */
    embla_dtype dtype;       /* 0: can be sized and copied, not decoded */
    int ggml;                /* its number in GGUF; -1: GGUF does not have it */
} embla_element;

/* NULL where there is no such type. */
const embla_element *embla_element_safetensors(const char *name, size_t length);
const embla_element *embla_element_ggml(uint32_t id);
const embla_element *embla_element_npy(const char *letter_and_size); /* "f4" */
/* The type a table's dtype is stored as; never NULL for a dtype there is. */
EMBLA_PRIVATE const embla_element *embla_element_of(embla_dtype dtype);
/* The n-th type of all, NULL past the last. */
const embla_element *embla_element_at(size_t n);

/* Bytes of count numbers, a whole number of blocks and of bytes; false where it is not,
 * or where it does not fit 63 bits. */
bool embla_element_bytes(const embla_element *element, uint64_t count, uint64_t *out);

#endif
