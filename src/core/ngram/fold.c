/* SPDX-License-Identifier: Apache-2.0 */
/* A fold maps each token of a vocabulary to a smaller number. " The", "the" and "THE" become one
 * number, so that an n-gram has one row for all its spellings.
 *
 * The number of different values determines every multiplier of the hasher. Therefore the list is
 * checked: numbers must be assigned in order of the tokens, so each new number is one greater than
 * the largest before it. A file that was truncated, sorted or shifted is refused.
 */
#include <stdio.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/checksum.h"
#include "base/mem.h"
#include "checkpoint/checkpoint.h"
#include "ngram/ngram.h"

embla_status embla_fold_room(uint64_t tokens, embla_fold **out)
{
    void *memory = NULL;
    if (tokens < 1 || tokens > EMBLA_NGRAM_VOCAB_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "a fold has %" PRIu64 " tokens; it must have 1 to %d",
                          tokens, (int)EMBLA_NGRAM_VOCAB_MOST);
    enum { FIRST = 64 }; /* values begin on a cache line */
    _Static_assert(sizeof(embla_fold) <= FIRST, "the handle fits before its values");
    size_t bytes = FIRST + (size_t)tokens * sizeof(int32_t);
    EMBLA_TRY(embla_mem_new(bytes, "a fold", &memory));
    embla_fold *fold = memory;
    *fold = (embla_fold){.bytes = bytes,
                         .tokens = (int64_t)tokens,
                         .values = (int32_t *)(void *)((char *)memory + FIRST)};
    *out = fold;
    return EMBLA_OK;
}

embla_status embla_fold_check(embla_fold *fold, const char *name)
{
    int64_t next = 0; /* the next unassigned number */
    for (int64_t i = 0; i < fold->tokens; i++) {
        int32_t value = fold->values[i];
        if (value < 0 || value > next)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: token %" PRId64 " is folded to %" PRId32
                              "; expected 0 to %" PRId64 ", because numbers are assigned in order",
                              name, i, value, next);
        if (value == next) next++;
    }
    fold->count = next;
    return EMBLA_OK;
}

/* Checks and returns the fold, or frees it on failure. */
static embla_status finish(embla_fold *fold, const char *name, embla_status status,
                           embla_fold **out)
{
    if (status == EMBLA_OK) status = embla_fold_check(fold, name);
    if (status == EMBLA_OK)
        *out = fold;
    else
        embla_fold_free(fold);
    return status;
}

embla_status embla_fold_new(const int32_t *folded, size_t tokens, embla_fold **out)
{
    embla_fold *fold = NULL;
    EMBLA_NEED(out);
    EMBLA_NEED(folded);
    EMBLA_TRY(embla_fold_room(tokens, &fold));
    memcpy(fold->values, folded, tokens * sizeof *folded);
    return finish(fold, "a fold", EMBLA_OK, out);
}

/* Reads the only array of an npy file. */
static embla_status read_npy(const embla_checkpoint *file, const char *path, embla_fold **out)
{
    size_t count;
    embla_fold *fold = NULL;
    if (strcmp(file->format->name, "npy") != 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s has format %s; a fold must be an npy file of int32", path,
                          file->format->name);
    const embla_tensor array = *embla_checkpoint_tensors(file, &count); /* an npy file has one */
    if (array.rank != 1 || array.shape[0] < 1 || strcmp(array.type, "I32") != 0)
        return embla_fail(
            EMBLA_ERR_FORMAT,
            "%.200s has %zu dimensions and %" PRId64
            " bytes of %s; a fold has one dimension and type I32, one number for each token",
            path, array.rank, array.bytes, array.type);
    EMBLA_TRY(embla_fold_room((uint64_t)array.shape[0], &fold));
    embla_status status =
        embla_checkpoint_read(file, array.name, 0, (size_t)array.bytes, fold->values);
    embla_order_turn(fold->values, sizeof *fold->values, (size_t)array.shape[0]);
    return finish(fold, path, status, out);
}

embla_status embla_fold_open(const char *path, embla_fold **out)
{
    embla_checkpoint *file = NULL;
    EMBLA_NEED(path);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_checkpoint_open(path, NULL, &file));
    embla_status status = read_npy(file, path, out);
    embla_checkpoint_free(file);
    return status;
}

void embla_fold_free(embla_fold *fold)
{
    if (fold) embla_mem_free(fold, fold->bytes);
}

/* ---- checksum ---- */

void embla_fold_checksum(const embla_fold *fold, char out[33])
{
    embla_checksum_state state;
    out[0] = '\0';
    if (!fold) return;
    embla_checksum_begin(&state);
    for (int64_t i = 0; i < fold->tokens; i++) {
        uint32_t value = (uint32_t)fold->values[i];
        uint8_t bytes[4]; /* the same on every machine */
        for (unsigned k = 0; k < 4; k++) bytes[k] = (uint8_t)(value >> 8 * k);
        embla_checksum_add(&state, bytes, sizeof bytes);
    }
    embla_checksum sum = embla_checksum_end(&state);
    (void)snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, sum.high, sum.low);
}

/* Whether 32 hexadecimal digits are those of a checksum, whose letters are small. */
static bool same_digits(const char found[33], const char *given)
{
    for (int i = 0; i < 32; i++) {
        bool capital = given[i] >= 'A' && given[i] <= 'F';
        if (found[i] != (capital ? given[i] - 'A' + 'a' : given[i])) return false;
    }
    return true;
}

embla_status embla_fold_require(const embla_fold *fold, const char *checksum)
{
    char found[33];
    EMBLA_NEED(fold);
    EMBLA_NEED(checksum);
    if (strlen(checksum) != 32 || strspn(checksum, "0123456789abcdefABCDEF") != 32)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "'%.64s' is not the checksum of a fold; it has 32 hexadecimal digits",
                          checksum);
    embla_fold_checksum(fold, found);
    if (same_digits(found, checksum)) return EMBLA_OK;
    return embla_fail(
        EMBLA_ERR_FORMAT,
        "the fold of %" PRId64 " tokens to %" PRId64
        " has the checksum %s, but %.32s is required: it comes from another tokenizer "
        "or another revision of it",
        fold->tokens, fold->count, found, checksum);
}
