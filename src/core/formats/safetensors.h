/* SPDX-License-Identifier: Apache-2.0 */
/* What safetensors has besides its embla_format: the header that is written, and the index of a
 * checkpoint in several shards (model.safetensors.index.json).
 *
 * An index lists which tensor is in which file. The file names are untrusted, so they must be
 * plain names (S13). checkpoint_open.c opens the shards in the folder of the index and then
 * compares their tensors with the index.
 */
#ifndef EMBLA_FORMATS_SAFETENSORS_H
#define EMBLA_FORMATS_SAFETENSORS_H

#include "formats/format.h"

#define EMBLA_SAFETENSORS_METADATA "__metadata__"

/* Limits that both the reader and the writer enforce. */
enum {
    EMBLA_SAFETENSORS_PREFIX = 8,                /* bytes of the header length */
    EMBLA_SAFETENSORS_HEADER_MOST = 100000000,   /* bytes; S1, S14 */
    EMBLA_SAFETENSORS_TENSORS_MOST = 1000000,    /* S11 */
    EMBLA_SAFETENSORS_NAME_MOST = 4096,          /* bytes; S11 */
    EMBLA_SAFETENSORS_METADATA_MOST = 10000000,  /* bytes; S10 */
    EMBLA_SAFETENSORS_METADATA_PAIRS = 64 * 1024 /* S10 */
};

/* The writer, for embla_format_safetensors. */
EMBLA_CHECKED embla_status embla_safetensors_write(embla_durable *out,
                                                   const embla_contents *contents);
/* embla_format.keeps of the writer. */
bool embla_safetensors_keeps(const embla_pair *pair, size_t count, size_t bytes);
/* Makes the bytes before the data: length, header, padding; *length is a multiple of
 * contents->align (S14). The data of parts[order[0]], parts[order[1]], .. follow without gaps. The
 * results are in the arena. EMBLA_ERR_UNSUPPORTED if safetensors cannot hold a tensor; the message
 * names it. */
EMBLA_CHECKED embla_status embla_safetensors_header(const embla_contents *contents,
                                                    embla_arena *arena, uint8_t **bytes,
                                                    size_t *length, uint32_t **order);

typedef struct {
    const char **shards; /* plain file names, sorted */
    size_t shard_count;
    const embla_name *tensors; /* in the order of the index; number is the shard */
    size_t tensor_count;
    embla_names by_name; /* of tensors, for embla_names_find */
    int64_t total_size;  /* bytes, from the index; -1 if absent; -2 if not a number */
} embla_shard_index;

/* Parses an index. Messages call it `name`; the result is in the arena. */
EMBLA_CHECKED embla_status embla_safetensors_index(const void *bytes, size_t count,
                                                   const char *name, embla_arena *arena,
                                                   embla_shard_index *out);
/* Compares the index with its opened shards, where shards[i] is index->shards[i]. Every tensor
 * must be in the shard that the index says, and no name may be in two shards. A different
 * total_size, and tensors that the index does not list, become notes in out. */
EMBLA_CHECKED embla_status embla_safetensors_index_check(const embla_shard_index *index,
                                                         const char *name,
                                                         const embla_shard *shards,
                                                         embla_directory *out);

#endif
