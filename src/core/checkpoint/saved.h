/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in memory, saved to one safetensors file with a checksum, and loaded back into the same
 * memory.
 *
 * The checksum covers everything that is read: for each tensor the XXH3 of name, shape and numbers,
 * and for each metadata pair that of key and value. The hashes are added, so their order in the
 * file does not matter. A load reads the file twice: first to verify it, then to copy the numbers.
 * So nothing changes if the file is damaged, and no second copy is needed in memory.
 */
#ifndef EMBLA_CHECKPOINT_SAVED_H
#define EMBLA_CHECKPOINT_SAVED_H

#include "base/checksum.h"
#include "checkpoint/checkpoint.h"

/* One tensor, and its numbers in memory. */
typedef struct {
    const char *name;
    const embla_element *element;
    uint64_t rows, dim, bytes;
    char *at;
    const embla_entry *entry; /* its tensor in the file, once found */
} embla_saved_tensor;

typedef struct {
    embla_arena arena;
    embla_saved_tensor *tensors;
    size_t count;
} embla_saved;

/* Makes an empty list with room for `most` tensors. Free the arena in any case. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_saved_begin(embla_saved *saved, uint64_t most);
/* Adds a tensor of rows x dim numbers without gaps. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_saved_add(embla_saved *saved, const char *name,
                                                         embla_dtype dtype, int64_t rows,
                                                         size_t dim, void *at);
/* Writes the file: complete, or not at all. pairs are the metadata, with room for one more. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_saved_write(embla_saved *saved, embla_pair *pairs,
                                                           size_t count, const char *path);

/* Opens a file, which must be one safetensors file. what is for messages: "a training checkpoint".
 */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_saved_open(const char *path, const char *what,
                                                          embla_checkpoint **out);
/* The value of a key of the metadata; NULL if there is none. */
EMBLA_PRIVATE const char *embla_saved_value(const embla_directory *directory, const char *key);
/* Reads the whole file and verifies its checksum. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_saved_verify(const embla_checkpoint *cp,
                                                            const char *path);
/* Checks that the file has exactly these tensors, and its checksum. Nothing is copied. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_saved_check(embla_saved *saved,
                                                           const embla_checkpoint *cp,
                                                           const char *path);
/* Copies the numbers of a checked file. EMBLA_ERR_FORMAT if it has changed meanwhile: then some
 * numbers are new and some old. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_saved_copy(const embla_saved *saved,
                                                          const embla_checkpoint *cp,
                                                          const char *path);

enum { EMBLA_SUM_TEXT = 33 }; /* 32 digits and a 0 */
EMBLA_PRIVATE void embla_sum_text(embla_checksum sum, char out[EMBLA_SUM_TEXT]);

#endif
