/* SPDX-License-Identifier: Apache-2.0 */
/* llama2.c's first .bin (export version 0): seven integers, then f32 tensors, each for all layers
 * together. There is no magic number. A file is recognised if every integer is valid for a model
 * and the sizes add up exactly to the file's size. Our rules:
 *
 *   LL1  each integer is in its range; a negative vocab_size means that the head is separate
 *   LL2  dim is divisible by n_heads, the quotient is even, n_heads is divisible by n_kv_heads
 *   LL3  header and tensors are exactly the whole file
 *   LL4  later exports ("ak42", versions 1 and 2) are recognised and refused
 *
 * Tensors get the names of Meta's files, from which llama2.c exports, so that the usual rules find
 * the token table and the head. Names of layers have no layer number, because one tensor holds all
 * layers.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "files/cursor.h"
#include "formats/format.h"

#define LATER_MAGIC UINT32_C(0x616b3432) /* "ak42" as a number */

enum { FIELDS = 7, HEADER = 4 * FIELDS };
enum { DIM_MOST = 65536, HIDDEN_MOST = 1 << 20, LAYERS_MOST = 1024, SEQUENCE_MOST = 1 << 24 };

typedef struct {
    uint32_t dim, hidden, layers, heads, kv_heads, tokens, positions;
    bool tied; /* there is no separate head */
} model;

/* ---- LL1, LL2: the header; sniff uses both functions, so they make no messages ---- */

/* Reads the fields. Returns the name of a field that is out of range, or NULL. */
static const char *read_fields(const uint8_t *header, model *m, int64_t *value)
{
    const struct {
        const char *name;
        uint32_t *out, most;
    } fields[FIELDS] = {{"dim", &m->dim, DIM_MOST},
                        {"hidden_dim", &m->hidden, HIDDEN_MOST},
                        {"n_layers", &m->layers, LAYERS_MOST},
                        {"n_heads", &m->heads, DIM_MOST},
                        {"n_kv_heads", &m->kv_heads, DIM_MOST},
                        {"vocab_size", &m->tokens, INT32_MAX},
                        {"seq_len", &m->positions, SEQUENCE_MOST}};
    m->tied = true;
    for (size_t i = 0; i < FIELDS; i++) {
        uint32_t bits = embla_le32(header + 4 * i);
        *value = bits > INT32_MAX ? (int64_t)bits - (INT64_C(1) << 32) : (int64_t)bits;
        bool negative = *value < 0 && fields[i].out == &m->tokens;
        int64_t size = negative ? -*value : *value;
        if (negative) m->tied = false;
        if (size < 1 || size > fields[i].most) return fields[i].name;
        *fields[i].out = (uint32_t)size;
    }
    return NULL;
}

static bool heads_fit(const model *m)
{
    return m->dim % m->heads == 0 && m->dim / m->heads % 2 == 0 &&
           m->heads % m->kv_heads == 0; /* so kv_heads <= heads */
}

/* ---- the tensors, in the order of the file ---- */

enum { TENSORS = 14 };

typedef struct {
    const char *name;
    uint64_t shape[3]; /* ends at 0 */
} tensor;

/* Lists the tensors and returns their number. The head, if there is one, is the last. */
static size_t list(const model *m, tensor out[TENSORS])
{
    const uint64_t d = m->dim, h = m->hidden, n = m->layers, v = m->tokens, t = m->positions;
    const uint64_t kv = d / m->heads * m->kv_heads, pairs = d / m->heads / 2;
    const tensor all[TENSORS] = {
        {"tok_embeddings.weight", {v, d}},
        {"layers.attention_norm.weight", {n, d}},
        {"layers.attention.wq.weight", {n, d, d}},
        {"layers.attention.wk.weight", {n, kv, d}},
        {"layers.attention.wv.weight", {n, kv, d}},
        {"layers.attention.wo.weight", {n, d, d}},
        {"layers.ffn_norm.weight", {n, d}},
        {"layers.feed_forward.w1.weight", {n, h, d}},
        {"layers.feed_forward.w2.weight", {n, d, h}},
        {"layers.feed_forward.w3.weight", {n, h, d}},
        {"norm.weight", {d}},
        {"rope.freqs_cos", {t, pairs}},
        {"rope.freqs_sin", {t, pairs}},
        {"output.weight", {v, d}},
    };
    memcpy(out, all, sizeof all);
    return m->tied ? TENSORS - 1 : TENSORS;
}

/* Bytes of the whole file; 0 if they exceed 64 bits. */
static uint64_t whole_size(const model *m)
{
    tensor all[TENSORS];
    uint64_t end = HEADER;
    size_t count = list(m, all);
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = 4;
        for (size_t k = 0; k < 3 && all[i].shape[k] > 0; k++)
            if (!embla_mul_ok(bytes, all[i].shape[k], &bytes)) return 0;
        if (!embla_add_ok(end, bytes, &end)) return 0;
    }
    return end;
}

static bool sniff(const uint8_t *head, size_t have, uint64_t size)
{
    model m;
    int64_t value;
    if (have >= 4 && embla_le32(head) == LATER_MAGIC) return true;
    return have >= HEADER && !read_fields(head, &m, &value) && heads_fit(&m) &&
           whole_size(&m) == size;
}

/* ---- reading ---- */

static embla_status check_header(const embla_map *map, const uint8_t *header, model *m)
{
    int64_t value;
    const char *wrong = read_fields(header, m, &value);
    if (wrong)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: as a model of llama2.c, its %s is %" PRId64
                          ", which is out of range (LL1)",
                          map->name, wrong, value);
    if (!heads_fit(m))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: dim %" PRIu32 ", n_heads %" PRIu32 " and n_kv_heads %" PRIu32
                          " do not divide each other (LL2)",
                          map->name, m->dim, m->heads, m->kv_heads);
    uint64_t whole = whole_size(m);
    if (whole != map->size)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: according to its header the file has %" PRIu64
                          " bytes, but it has %" PRIu64 " (LL3)",
                          map->name, whole, map->size);
    return EMBLA_OK;
}

static embla_status list_tensors(const embla_map *map, const model *m, embla_directory *out)
{
    tensor all[TENSORS];
    uint64_t end = HEADER;
    size_t count = list(m, all);
    for (size_t i = 0; i < count; i++) {
        embla_entry *entry;
        EMBLA_TRY(embla_directory_add(out, all[i].name, strlen(all[i].name), &entry));
        entry->element = embla_element_of(EMBLA_F32);
        for (; entry->rank < 3 && all[i].shape[entry->rank] > 0; entry->rank++)
            entry->shape[entry->rank] = all[i].shape[entry->rank];
        entry->offset = end;
        EMBLA_TRY(embla_entry_size(map, entry, "LL3"));
        end += entry->bytes; /* cannot overflow: whole_size has checked the sum */
    }
    return EMBLA_OK;
}

static embla_status add_pairs(const model *m, embla_directory *out)
{
    const char *tied = m->tied ? "true" : "false";
    const struct {
        const char *key;
        uint32_t value;
    } pairs[] = {{"dim", m->dim},          {"hidden_dim", m->hidden},   {"n_layers", m->layers},
                 {"n_heads", m->heads},    {"n_kv_heads", m->kv_heads}, {"vocab_size", m->tokens},
                 {"seq_len", m->positions}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char text[16];
        int length = snprintf(text, sizeof text, "%" PRIu32, pairs[i].value);
        EMBLA_TRY(
            embla_directory_pair(out, pairs[i].key, strlen(pairs[i].key), text, (size_t)length));
    }
    return embla_directory_pair(out, "tie_word_embeddings", strlen("tie_word_embeddings"), tied,
                                strlen(tied));
}

static embla_status read_file(embla_map *map, const embla_open_options *options,
                              embla_directory *out)
{
    uint8_t header[HEADER] = {0};
    size_t have = map->size < HEADER ? (size_t)map->size : HEADER;
    model m;
    (void)options;
    out->format = "llama2.c";
    EMBLA_TRY(embla_map_read(map, 0, have, header));
    if (have >= 8 && embla_le32(header) == LATER_MAGIC)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: llama2.c's export version %" PRIu32
                          " is not supported; export it as version 0 (LL4)",
                          map->name, embla_le32(header + 4));
    if (have < HEADER)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the file has %zu bytes, but the header of a llama2.c model has "
                          "%d (LL3)",
                          map->name, have, HEADER);
    EMBLA_TRY(check_header(map, header, &m));
    EMBLA_TRY(list_tensors(map, &m, out));
    EMBLA_TRY(add_pairs(&m, out));
    out->tokens = m.tokens;
    return EMBLA_OK;
}

const embla_format embla_format_llama2c = {
    .name = "llama2.c", .own_words = true, .sniff = sniff, .read = read_file};
