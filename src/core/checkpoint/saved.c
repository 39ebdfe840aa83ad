/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/saved.h"

#include <stdio.h>
#include <string.h>

#include "base/byte_order.h"
#include "files/durable.h"

#define KEY_SUM "checksum"

enum { PIECE = 1 << 20 };

/* ---- a list of tensors ---- */

embla_status embla_saved_begin(embla_saved *v, uint64_t most)
{
    return embla_arena_many(&v->arena, most, sizeof *v->tensors, "tensors", &v->tensors);
}

embla_status embla_saved_add(embla_saved *v, const char *name, embla_dtype dtype, int64_t rows,
                             size_t dim, void *at)
{
    size_t row_bytes;
    const embla_element *element;
    EMBLA_TRY(embla_dtype_row_bytes(dtype, dim, &row_bytes));
    EMBLA_TRY(embla_element_find(dtype, name, &element));
    embla_saved_tensor *p = &v->tensors[v->count++];
    p->element = element;
    p->rows = (uint64_t)rows;
    p->dim = dim;
    p->bytes = p->rows * row_bytes;
    p->at = at;
    return embla_arena_text(&v->arena, name, strlen(name), &p->name);
}

const char *embla_saved_value(const embla_directory *directory, const char *key)
{
    for (size_t i = 0; i < directory->pair_count; i++)
        if (strcmp(directory->pairs[i].key, key) == 0) return directory->pairs[i].value;
    return NULL;
}

void embla_sum_text(embla_checksum sum, char out[EMBLA_SUM_TEXT])
{
    (void)snprintf(out, EMBLA_SUM_TEXT, "%016" PRIx64 "%016" PRIx64, sum.high, sum.low);
}

/* ---- checksums ---- */

static void sum_add(embla_checksum *sum, const embla_checksum_state *state)
{
    embla_checksum one = embla_checksum_end(state);
    sum->high += one.high;
    sum->low += one.low;
}

/* Hashes name and shape; the numbers follow. */
static void sum_begin(embla_checksum_state *state, const char *name, uint32_t rank,
                      const uint64_t *shape)
{
    embla_checksum_begin(state);
    embla_checksum_add(state, name, strlen(name) + 1);
    embla_checksum_numbers(state, &rank, sizeof rank, 1);
    embla_checksum_numbers(state, shape, sizeof *shape, rank);
}

static void sum_pairs(const embla_pair *pairs, size_t count, embla_checksum *sum)
{
    for (size_t i = 0; i < count; i++) {
        embla_checksum_state state;
        if (strcmp(pairs[i].key, KEY_SUM) == 0) continue;
        embla_checksum_begin(&state);
        embla_checksum_add(&state, pairs[i].key, strlen(pairs[i].key) + 1);
        embla_checksum_add(&state, pairs[i].value, strlen(pairs[i].value) + 1);
        sum_add(sum, &state);
    }
}

/* Bytes of a number that has another order in memory than in files; otherwise 1. */
static size_t number_bytes(const embla_element *element)
{
    if (!embla_order_is_big() || element->block_bits < 8) return 1;
    bool same = element->dtype != 0 && !embla_order_differs(element->dtype);
    return same ? 1 : element->block_bits / 8;
}

static void sum_tensors(const embla_saved *v, embla_checksum *sum)
{
    for (size_t i = 0; i < v->count; i++) {
        const embla_saved_tensor *p = &v->tensors[i];
        const uint64_t shape[2] = {p->rows, p->dim};
        embla_checksum_state state;
        sum_begin(&state, p->name, 2, shape);
        const size_t size = number_bytes(p->element);
        embla_checksum_numbers(&state, p->at, size, (size_t)p->bytes / size);
        sum_add(sum, &state);
    }
}

/* ---- writing ---- */

static embla_status read_tensor(void *context, uint64_t offset, size_t bytes, void *out)
{
    const embla_saved_tensor *p = context;
    const size_t size = number_bytes(p->element);
    memcpy(out, p->at + offset, bytes);
    embla_order_turn(out, size, bytes / size);
    return EMBLA_OK;
}

static embla_status write_file(embla_saved *v, embla_pair *pairs, size_t count, embla_durable *file)
{
    embla_part *parts = NULL;
    embla_checksum sum = {0};
    char text[EMBLA_SUM_TEXT];
    const embla_format *format = NULL;
    EMBLA_TRY(embla_arena_many(&v->arena, v->count, sizeof *parts, "tensors", &parts));
    for (size_t i = 0; i < v->count; i++) {
        embla_saved_tensor *p = &v->tensors[i];
        parts[i] = (embla_part){.name = p->name,
                                .element = p->element,
                                .rank = 2,
                                .shape = {p->rows, p->dim},
                                .bytes = p->bytes,
                                .read = read_tensor,
                                .context = p};
    }
    sum_pairs(pairs, count, &sum);
    sum_tensors(v, &sum);
    embla_sum_text(sum, text);
    pairs[count++] = (embla_pair){KEY_SUM, text};
    const embla_contents contents = {
        .parts = parts, .count = v->count, .pairs = pairs, .pair_count = count};
    EMBLA_TRY(embla_format_find("safetensors", &format));
    return format->write(file, &contents);
}

embla_status embla_saved_write(embla_saved *v, embla_pair *pairs, size_t count, const char *path)
{
    embla_durable *file = NULL;
    EMBLA_TRY(embla_durable_open(path, &file));
    embla_status status = write_file(v, pairs, count, file);
    if (status == EMBLA_OK) return embla_durable_commit(file);
    embla_durable_abandon(file);
    return status;
}

/* ---- reading ---- */

embla_status embla_saved_open(const char *path, const char *what, embla_checkpoint **out)
{
    embla_checkpoint *cp = NULL;
    EMBLA_TRY(embla_checkpoint_open(path, NULL, &cp));
    if (cp->shard_count != 1 || strcmp(cp->format->name, "safetensors") != 0) {
        embla_status status = embla_fail(EMBLA_ERR_FORMAT,
                                         "%.200s is not %s: it has %zu files of format %s, instead "
                                         "of one safetensors file",
                                         path, what, cp->shard_count, cp->format->name);
        embla_checkpoint_free(cp);
        return status;
    }
    *out = cp;
    return EMBLA_OK;
}

/* Hashes the numbers of a tensor and copies them to `to`. If that is NULL, `space` is used as a
 * buffer. */
static embla_status sum_entry(const embla_checkpoint *cp, const embla_entry *e, char *to,
                              char *space, embla_checksum *sum)
{
    embla_checksum_state state;
    sum_begin(&state, e->name, e->rank, e->shape);
    for (uint64_t at = 0; at < e->bytes; at += PIECE) {
        size_t n = e->bytes - at < PIECE ? (size_t)(e->bytes - at) : PIECE;
        char *out = to ? to + at : space;
        EMBLA_TRY(embla_entry_read(cp, e, at, n, out));
        embla_checksum_add(&state, out, n);
        if (to) embla_order_turn(out, number_bytes(e->element), n / number_bytes(e->element));
    }
    sum_add(sum, &state);
    return EMBLA_OK;
}

static embla_status compare_sum(const embla_checkpoint *cp, const char *path, embla_checksum sum)
{
    const char *said = embla_saved_value(&cp->shards[0].directory, KEY_SUM);
    char found[EMBLA_SUM_TEXT];
    embla_sum_text(sum, found);
    if (said && strcmp(said, found) == 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.200s is damaged: its contents have the checksum %s, but %.64s is recorded",
                      path, found, said ? said : "none");
}

embla_status embla_saved_verify(const embla_checkpoint *cp, const char *path)
{
    const embla_directory *d = &cp->shards[0].directory;
    embla_arena arena = {0};
    embla_checksum sum = {0};
    char *space = NULL;
    embla_status status = embla_arena_many(&arena, PIECE, 1, "a piece of a file", &space);
    sum_pairs(d->pairs, d->pair_count, &sum);
    for (size_t i = 0; i < cp->count && status == EMBLA_OK; i++)
        status = sum_entry(cp, &cp->entries[i], NULL, space, &sum);
    embla_arena_free(&arena);
    return status == EMBLA_OK ? compare_sum(cp, path, sum) : status;
}

/* The file must have exactly these tensors. */
static embla_status match_entries(const embla_checkpoint *cp, const char *path, embla_saved *v)
{
    if (cp->count != v->count)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s has %zu tensors; %zu are expected", path,
                          cp->count, v->count);
    for (size_t i = 0; i < v->count; i++) {
        embla_saved_tensor *p = &v->tensors[i];
        if (embla_checkpoint_named(cp, p->name, &p->entry) != EMBLA_OK)
            return embla_fail(EMBLA_ERR_FORMAT, "%.200s: tensor '%s' is missing", path, p->name);
        const embla_entry *e = p->entry;
        if (e->element == p->element && e->rank == 2 && e->shape[0] == p->rows &&
            e->shape[1] == p->dim && e->bytes == p->bytes)
            continue;
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%s' has rank %u and %" PRIu64
                          " bytes of %s; expected: %" PRIu64 " x %" PRIu64 " of %s",
                          path, p->name, (unsigned)e->rank, e->bytes, e->element->name, p->rows,
                          p->dim, p->element->name);
    }
    return EMBLA_OK;
}

embla_status embla_saved_check(embla_saved *v, const embla_checkpoint *cp, const char *path)
{
    EMBLA_TRY(match_entries(cp, path, v));
    return embla_saved_verify(cp, path);
}

embla_status embla_saved_copy(const embla_saved *v, const embla_checkpoint *cp, const char *path)
{
    const embla_directory *d = &cp->shards[0].directory;
    embla_checksum sum = {0};
    sum_pairs(d->pairs, d->pair_count, &sum);
    for (size_t i = 0; i < v->count; i++)
        EMBLA_TRY(sum_entry(cp, v->tensors[i].entry, v->tensors[i].at, NULL, &sum));
    return compare_sum(cp, path, sum);
}
