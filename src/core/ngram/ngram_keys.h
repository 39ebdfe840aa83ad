/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a checkpoint that describe n-grams: read, and compared with what the rules give. */
#ifndef EMBLA_NGRAM_NGRAM_KEYS_H
#define EMBLA_NGRAM_NGRAM_KEYS_H

#include "base/arena.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/pack_manifest.h"
#include "ngram/ngram.h"

/* A checkpoint, and what its keys have said so far. */
typedef struct {
    const embla_checkpoint *cp;
    const char *group; /* GGUF: "ARCH.engram."; NULL means config.json, or text_config in it */
    embla_arena arena; /* lists that were read from the file */
    embla_ngram_parameters p;
    int32_t layers[EMBLA_NGRAM_LAYERS_MOST]; /* counted from 0 */
    size_t layer_count, table;
    embla_fold *own;   /* the fold in the file */
    int64_t rows;      /* of the table in the file; 0 if unknown */
    bool exactly;      /* rows must be equal to the computed number, not only large enough */
    bool vocab_stated; /* the vocabulary is known, so multipliers can be computed */
    embla_pack pack;   /* its lists are used */
} embla_keys;

typedef const char *const embla_key_names[]; /* alternative names of one key; ends with NULL */

/* EMBLA_ERR_FORMAT: "FILE describes n-grams, but WHAT". */
embla_status embla_keys_fail(const embla_keys *r, const char *what);

/* Writes the n-th key where a name may be found. False after the last. */
bool embla_keys_name(const embla_keys *r, const char *name, int n, char key[200]);

/* Reads an integer. If there is none, *out is unchanged and *found is false. */
embla_status embla_keys_integer(const embla_keys *r, embla_key_names called, int64_t *out,
                                bool *found);

/* Reads a required integer, 0 to INT32_MAX. */
embla_status embla_keys_need(const embla_keys *r, embla_key_names called, int64_t *out);
embla_status embla_keys_need32(const embla_keys *r, embla_key_names called, int32_t *out);

/* Reads a list of integers into the arena. NULL if there is none. */
embla_status embla_keys_list(embla_keys *r, embla_key_names called, const int64_t **out,
                             size_t *count);

/* Reads the layers with a table. In the file they are counted from `first`. */
embla_status embla_keys_layers(embla_keys *r, embla_key_names called, int64_t first, int32_t layer);

/* The part of a list for this table, if the list has `each` numbers for every table. */
embla_status embla_keys_part(const embla_keys *r, const char *what, const int64_t *numbers,
                             size_t count, size_t each, const int64_t **out);

/* The row numbers of one token: those of its n-grams of all orders. */
size_t embla_keys_rows_per_token(const embla_ngram_parameters *p);

/* Checked here because lists are split by these numbers before embla_ngram_new checks them. */
embla_status embla_keys_check_shape(const embla_keys *r);

/* The constants in the file equal those that its parameters give. What is unknown is not compared.
 */
embla_status embla_keys_check_sizes(const embla_keys *r);
embla_status embla_keys_check_multipliers(const embla_keys *r, int64_t seed);

/* transformers uses the first EOS of a list. */
embla_status embla_keys_eos(embla_keys *r, int32_t *out);

#endif
