/* SPDX-License-Identifier: Apache-2.0 */
/* What safetensors offers beside its embla_format: the header it writes, as bytes, and the
 * index of a checkpoint that is cut into shards (model.safetensors.index.json).
 *
 * An index is only names: which tensor is in which file. Names of files come from strangers,
 * so they are checked here to be plain names (S13); checkpoint.c opens them in the folder of
 * the index, and what is found inside is then held against the index.
 */
#ifndef EMBLA_FORMATS_SAFETENSORS_H
#define EMBLA_FORMATS_SAFETENSORS_H

#include "formats/checkpoint.h"
#include "formats/format.h"

#define EMBLA_SAFETENSORS_METADATA "__metadata__"

/* What reader and writer hold each other to. */
enum {
    EMBLA_SAFETENSORS_PREFIX = 8,                /* bytes of the length */
    EMBLA_SAFETENSORS_HEADER_MOST = 100000000,   /* bytes; S1, S14 */
    EMBLA_SAFETENSORS_TENSORS_MOST = 1000000,    /* S11 */
    EMBLA_SAFETENSORS_NAME_MOST = 4096,          /* bytes; S11 */
    EMBLA_SAFETENSORS_METADATA_MOST = 10000000,  /* bytes; S10 */
    EMBLA_SAFETENSORS_METADATA_PAIRS = 64 * 1024 /* S10 */
};

/* The writer, for embla_format_safetensors. */
EMBLA_CHECKED embla_status embla_safetensors_write(embla_durable *out,
                                                   const embla_contents *contents);
/* The bytes before the data: length, header, padding; *length is a multiple of 64 (S14).
 * The data of parts[order[0]], parts[order[1]], .. follow, without gaps. All of it lives in
 * the arena. EMBLA_ERR_UNSUPPORTED names a tensor that safetensors cannot hold. */
EMBLA_CHECKED embla_status embla_safetensors_header(const embla_contents *contents,
                                                    embla_arena *arena, uint8_t **bytes,
                                                    size_t *length, uint32_t **order);

typedef struct {
    const char **shards; /* plain file names, sorted */
    size_t shard_count;
    const embla_name *tensors; /* in the order of the file; number: in which shard */
    size_t tensor_count;
    embla_names by_name; /* of tensors, for embla_names_find */
    int64_t total_size;  /* as the index has it, in bytes; -1: it does not say; -2: no number */
} embla_shard_index;

/* Reads an index. name is what messages call it; out lives in the arena. */
EMBLA_CHECKED embla_status embla_safetensors_index(const void *bytes, size_t count,
                                                   const char *name, embla_arena *arena,
                                                   embla_shard_index *out);
/* Holds the index against its opened shards, shards[i] being index->shards[i]: every tensor
 * is in the shard it is said to be in, and no name is in two. A total_size that differs, and
 * tensors the index does not know, are worth a note in out. */
EMBLA_CHECKED embla_status embla_safetensors_index_check(const embla_shard_index *index,
                                                         const char *name,
                                                         const embla_shard *shards,
                                                         embla_directory *out);

#endif
