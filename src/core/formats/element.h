/* SPDX-License-Identifier: Apache-2.0 */
/* The types of numbers in files: every type of every format that we read, with its size, also
 * types that cannot be decoded to a table (rules S7, G8, N3).
 */
#ifndef EMBLA_FORMATS_ELEMENT_H
#define EMBLA_FORMATS_ELEMENT_H

#include "base/status.h"

typedef struct {
    const char *name;        /* for people: "F32", "Q4_K" */
    const char *safetensors; /* its name in safetensors; NULL if safetensors does not have it */
    const char *npy;         /* its letter and size in npy, "f4"; NULL if npy does not have it */
    uint32_t block;          /* numbers in a block */
    uint32_t block_bits;     /* bits of a block */
    embla_dtype dtype;       /* 0 means it can be copied but not decoded */
    int ggml;                /* its number in GGUF; -1 if GGUF does not have it */
} embla_element;

/* Find a type by its name in a format; NULL if there is no such type. */
EMBLA_PRIVATE const embla_element *embla_element_safetensors(const char *name, size_t length);
const embla_element *embla_element_ggml(uint32_t id);
const embla_element *embla_element_npy(const char *letter_and_size); /* "f4" */
/* The type of a table's dtype; NULL for f4_e2m1, which needs a separate scale. */
EMBLA_PRIVATE const embla_element *embla_element_of(embla_dtype dtype);
/* The same for the rows of `what`: EMBLA_ERR_UNSUPPORTED if no format has the dtype. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_element_find(embla_dtype dtype, const char *what,
                                                            const embla_element **out);
/* Type n, from 0; NULL past the last. */
const embla_element *embla_element_at(size_t n);

/* Computes the bytes of count numbers. Returns false if they are not a whole number of blocks and
 * bytes, or if the result exceeds 63 bits. */
bool embla_element_bytes(const embla_element *element, uint64_t count, uint64_t *out);

#endif
