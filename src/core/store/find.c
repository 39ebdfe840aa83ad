/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the tensors of a checkpoint that form its giant table.
 *
 * A table is found by name, by a pattern with '*' for the number of a part, or by the names that
 * models use. A table may have scales in a separate tensor: one for the whole table, or one for
 * each group of numbers in a row. Type and shape decide which. A tensor of any other shape is
 * refused, because a guess could decode to wrong numbers.
 *
 *   pattern -> parts (entries) -> a format and one or two planes for each -> extents
 */
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/pack_manifest.h"
#include "store/store.h"

/* ---- names ---- */

/* The names that models use: the text before and after the number of a part. If `after` is NULL,
 * the table has one part, and `before` is the end of its name. */
static const struct {
    const char *before, *after;
} rules[] = {
    {"ngram_embedding.shard_", ".weight"},      /* Qwen, as published */
    {"ngram_embedding.shards.", ".weight"},     /* converted */
    {"ngram_embeddings.embedders.", ".weight"}, /* LongCat: one for each order and split */
    {"ngram_embedding.weight", NULL},           /* Qwen, in one part */
    {"per_layer_token_embd.weight", NULL},      /* GGUF: Qwen, Gemma */
    {"embed_tokens_per_layer.weight", NULL},    /* Gemma */
    {"engram_embd.weight", NULL},               /* GGUF: DeepSeek */
    {"ngram.table", NULL},                      /* embla_gpt_save */
};

static bool ends_with(const char *name, const char *tail)
{
    size_t length = strlen(name), wanted = strlen(tail);
    return length >= wanted && strcmp(name + length - wanted, tail) == 0;
}

/* Parses digits as a number. False if there are none, or more than nine. */
static bool parse_digits(const char *text, size_t *length, int64_t *number)
{
    size_t n = strspn(text, "0123456789");
    int64_t value = 0;
    if (n < 1 || n > 9) return false;
    for (size_t i = 0; i < n; i++) value = 10 * value + (text[i] - '0');
    *length = n;
    *number = value;
    return true;
}

/* The layer number in a name, or -1. */
static int32_t layer_of(const char *name)
{
    static const char *const words[] = {"layers.", "blk."};
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
        size_t length;
        int64_t number;
        const char *at = strstr(name, words[w]);
        if (at && parse_digits(at + strlen(words[w]), &length, &number)) return (int32_t)number;
    }
    return -1;
}

static const embla_entry *find_entry(const embla_checkpoint *cp, const char *name)
{
    const embla_name *found = embla_names_find(&cp->index, name, strlen(name));
    return found ? &cp->entries[found->number] : NULL;
}

/* DeepSeek: the table has a scale for each group of each row. Its projections also have "engram" in
 * their names, but one scale for each block of rows. */
static bool is_engram(const embla_checkpoint *cp, const embla_entry *e)
{
    char name[512];
    size_t length = strlen(e->name), tail = strlen(".weight");
    if (!strstr(e->name, "engram") || !ends_with(e->name, ".weight") || e->rank != 2 ||
        length >= sizeof name)
        return false;
    (void)snprintf(name, sizeof name, "%.*s.scale", (int)(length - tail), e->name);
    const embla_entry *scale = find_entry(cp, name);
    return scale && scale->rank == 2 && scale->shape[0] == e->shape[0];
}

/* True if an entry belongs to a giant table. *at and *length give the number of the part in its
 * name; *length is 0 if the table has only one part. */
static bool is_table_part(const embla_checkpoint *cp, const embla_entry *e, size_t *at,
                          size_t *length)
{
    int64_t number;
    *at = *length = 0;
    for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++) {
        const char *found = strstr(e->name, rules[r].before);
        if (!rules[r].after) {
            if (ends_with(e->name, rules[r].before)) return true;
            continue;
        }
        if (!found) continue;
        found += strlen(rules[r].before);
        if (!parse_digits(found, length, &number) || strcmp(found + *length, rules[r].after) != 0) {
            *length = 0;
            continue;
        }
        *at = (size_t)(found - e->name);
        return true;
    }
    return is_engram(cp, e);
}

/* ---- the giant table of a checkpoint ---- */

typedef struct {
    const char *pattern; /* with '*' for the number of a part */
    int32_t layer;
    uint64_t rows; /* of all parts */
} candidate;

typedef struct {
    const embla_checkpoint *cp;
    embla_arena arena;
    candidate *list;
    size_t count, room;
} search;

static embla_status add_candidate(search *s, const embla_entry *e, size_t at, size_t length)
{
    size_t all = strlen(e->name);
    void *memory = NULL, *list = s->list;
    EMBLA_TRY(embla_arena_take(&s->arena, all + 2, "a name", &memory));
    char *pattern = memory;
    if (length == 0)
        memcpy(pattern, e->name, all + 1);
    else
        (void)snprintf(pattern, all + 2, "%.*s*%s", (int)at, e->name, e->name + at + length);
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->list[i].pattern, pattern) == 0) {
            s->list[i].rows += e->rank > 0 ? e->shape[0] : 0;
            return EMBLA_OK;
        }
    EMBLA_TRY(embla_arena_grow(&s->arena, sizeof *s->list, s->count, "the list of tables", &list,
                               &s->room));
    s->list = list;
    s->list[s->count++] = (candidate){
        .pattern = pattern, .layer = layer_of(pattern), .rows = e->rank > 0 ? e->shape[0] : 0};
    return EMBLA_OK;
}

static void list_candidates(const search *s, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < s->count && used < size; i++) {
        int more = snprintf(text + used, size - used, "%s'%.100s' (%" PRIu64 " rows)",
                            i > 0 ? ", " : "", s->list[i].pattern, s->list[i].rows);
        used += more > 0 ? (size_t)more : 0;
    }
}

/* Finds the pattern of the only table of a layer. -1 means the lowest layer with a table. */
static embla_status choose_table(search *s, int32_t layer, const char **out)
{
    enum { MOST = 1024 }; /* maximum number of tables, one for each layer */
    char list[400];
    size_t found = 0;
    for (size_t i = 0; i < s->cp->count && s->count < MOST; i++) {
        size_t at, length;
        if (is_table_part(s->cp, &s->cp->entries[i], &at, &length))
            EMBLA_TRY(add_candidate(s, &s->cp->entries[i], at, length));
    }
    if (s->count == 0)
        return embla_fail(
            EMBLA_ERR_NOT_FOUND,
            "%.200s: none of its %zu tensors is recognised as a giant table; name the tensor",
            s->cp->shown, s->cp->count);
    if (s->count == 1 && s->list[0].layer < 0) layer = -1; /* one table for all layers */
    for (size_t i = 0, all = layer < 0 ? s->count : 0; i < all; i++)
        if (i == 0 || s->list[i].layer < layer) layer = s->list[i].layer;
    for (size_t i = 0; i < s->count; i++) {
        if (s->list[i].layer != layer) continue;
        *out = s->list[i].pattern;
        found++;
    }
    list_candidates(s, list, sizeof list);
    if (found == 0)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "%.100s: layer %d has no giant table; tables found: %s", s->cp->shown,
                          (int)layer, list);
    if (found > 1)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "%.100s: %zu tensors could be the giant table: %s; name one of them",
                          s->cp->shown, found, list);
    return EMBLA_OK;
}

/* ---- parts ---- */

/* True if a name matches the pattern; *number is the number in place of '*'. */
static bool matches_pattern(const char *name, const char *pattern, const char *star,
                            int64_t *number)
{
    size_t before = (size_t)(star - pattern), length;
    return strncmp(name, pattern, before) == 0 && parse_digits(name + before, &length, number) &&
           strcmp(name + before + length, star + 1) == 0;
}

/* Stores the entry of each part at the index of its number. */
static embla_status sort_parts(const search *s, const char *pattern, const char *star,
                               const embla_entry **parts, size_t count)
{
    const embla_checkpoint *cp = s->cp;
    int64_t number, highest = 0;
    for (size_t i = 0; i < cp->count; i++) {
        if (!matches_pattern(cp->entries[i].name, pattern, star, &number)) continue;
        if (number > highest) highest = number;
        if (number >= (int64_t)count) continue;
        if (parts[number])
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.100s: part %" PRId64
                              " of '%.128s' occurs twice, as '%.128s' and as '%.128s'",
                              cp->shown, number, pattern, parts[number]->name, cp->entries[i].name);
        parts[number] = &cp->entries[i];
    }
    for (size_t i = 0; i < count; i++)
        if (!parts[i])
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.100s: part %zu of '%.128s' is missing; there are %zu parts, and "
                              "the highest number is %" PRId64,
                              cp->shown, i, pattern, count, highest);
    return EMBLA_OK;
}

/* Finds the entries of a name or a pattern, in order. */
static embla_status find_parts(search *s, const char *pattern, const embla_entry ***out,
                               size_t *count)
{
    const embla_checkpoint *cp = s->cp;
    const char *star = strchr(pattern, '*');
    bool whole = !star || embla_names_find(&cp->index, pattern, strlen(pattern)) != NULL;
    const embla_entry *only = NULL;
    int64_t number;
    size_t found = 0;
    if (whole) EMBLA_TRY(embla_checkpoint_named(cp, pattern, &only));
    if (!whole && strchr(star + 1, '*'))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "'%.128s' has more than one '*'; one '*' stands for the number of a part",
                          pattern);
    for (size_t i = 0; !whole && i < cp->count; i++)
        found += matches_pattern(cp->entries[i].name, pattern, star, &number);
    if (!whole && found == 0)
        return embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s: no tensor is called '%.128s'", cp->shown,
                          pattern);
    *count = whole ? 1 : found;
    EMBLA_TRY(
        embla_arena_many(&s->arena, *count, sizeof(const embla_entry *), "the list of parts", out));
    if (!whole) return sort_parts(s, pattern, star, *out, *count);
    (*out)[0] = only;
    return EMBLA_OK;
}

/* ---- scales ---- */

/* One part: its format, rows and tensors. */
typedef struct {
    embla_row_format format;
    int64_t rows;
    const embla_entry *codes, *scales; /* scales is NULL if there is no scale for each group */
} part;

/* Finds a tensor that belongs to the numbers: their name with another ending. If a table has parts,
 * one tensor for all parts is found as well: the pattern without the word before the number. */
static const embla_entry *find_companion(const embla_checkpoint *cp, const char *name,
                                         const char *pattern, const char *const *tails)
{
    char text[512];
    size_t length = strlen(name), weight = strlen(".weight");
    if (!ends_with(name, ".weight") || length + 32 > sizeof text) return NULL;
    for (size_t t = 0; tails[t]; t++) {
        (void)snprintf(text, sizeof text, "%.*s.%s", (int)(length - weight), name, tails[t]);
        const embla_entry *found = find_entry(cp, text);
        if (found) return found;
    }
    const char *star = strchr(pattern, '*');
    if (!star || star - pattern < 2) return NULL;
    size_t dot = (size_t)(star - pattern) - 1; /* "a.shards.*.weight" -> "a." */
    while (dot > 0 && pattern[dot - 1] != '.') dot--;
    for (size_t t = 0; tails[t]; t++) {
        (void)snprintf(text, sizeof text, "%.*s%s", (int)dot, pattern, tails[t]);
        const embla_entry *found = find_entry(cp, text);
        if (found) return found;
    }
    return NULL;
}

static const char *const scale_tails[] = {"scale", "weight_scale", "weight_scale_inv", NULL};
static const char *const second_tails[] = {"weight_scale_2", NULL};

/* "F8_E8M0 (12, 5)" */
static const char *shape_text(const embla_entry *e, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s (", e->element->name);
    for (uint32_t i = 0; i < e->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRIu64, i > 0 ? ", " : "",
                                 e->shape[i]);
    if (used < size) (void)snprintf(text + used, size - used, ")");
    return text;
}

/* One number of f32, bf16 or f16. */
static bool is_scalar(const embla_entry *e)
{
    uint64_t count = 1;
    embla_dtype dtype = e->element->dtype;
    for (uint32_t i = 0; i < e->rank; i++) count *= e->shape[i] == 1 ? 1 : 2;
    return count == 1 && (dtype == EMBLA_F32 || dtype == EMBLA_BF16 || dtype == EMBLA_F16);
}

static embla_status multiply_scalar(const embla_checkpoint *cp, const embla_entry *e, float *out)
{
    unsigned char bytes[4] = {0};
    float value = 0.0f;
    EMBLA_TRY(embla_entry_read(cp, e, 0, (size_t)e->bytes < 4 ? (size_t)e->bytes : 4, bytes));
    if (e->element->dtype == EMBLA_F32)
        memcpy(&value, bytes, sizeof value);
    else
        value = e->element->dtype == EMBLA_BF16 ? embla_f32_from_bf16(embla_load_u16(bytes))
                                                : embla_f32_from_f16(embla_load_u16(bytes));
    if (!(value > 0.0f) && !(value < 0.0f)) /* 0 would mean 1 in a row format */
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the scale '%.128s' is %g; it must be a number other than 0",
                          cp->shown, e->name, (double)value);
    *out *= value;
    return EMBLA_OK;
}

static bool has_shape(const embla_entry *e, const char *type, uint64_t rows, uint64_t columns)
{
    return e->rank == 2 && strcmp(e->element->name, type) == 0 && e->shape[0] == rows &&
           e->shape[1] == columns;
}

/* Determines the groups from type and shape. EMBLA_SCALES_NONE if no known groups match. */
static embla_scales scale_groups(const embla_entry *e, const part *p)
{
    uint64_t rows = (uint64_t)p->rows, dim = p->format.dim;
    static const char *const types[] = {"F8_E8M0", "U8"};
    for (size_t t = 0; t < 2; t++) {
        if (has_shape(e, types[t], rows, (dim + 31) / 32)) return EMBLA_SCALES_UE8M0_32;
        if (has_shape(e, types[t], rows, (dim + 127) / 128)) return EMBLA_SCALES_UE8M0_128;
    }
    return has_shape(e, "F8_E4M3", rows, (dim + 15) / 16) ? EMBLA_SCALES_E4M3_16
                                                          : EMBLA_SCALES_NONE;
}

static embla_status read_scales(const embla_checkpoint *cp, const char *pattern, part *p)
{
    char codes[96], scales[96];
    const embla_entry *e = find_companion(cp, p->codes->name, pattern, scale_tails);
    const embla_entry *second = find_companion(cp, p->codes->name, pattern, second_tails);
    float scale = 1.0f;
    if (e && is_scalar(e)) {
        EMBLA_TRY(multiply_scalar(cp, e, &scale));
    } else if (e) {
        p->format.scales = scale_groups(e, p);
        p->scales = e;
        if (p->format.scales == EMBLA_SCALES_NONE)
            return embla_fail(EMBLA_ERR_SHAPE,
                              "%.100s: '%.100s' is %s; this is not a valid shape for the scales of "
                              "'%.100s', which is %s",
                              cp->shown, e->name, shape_text(e, scales, sizeof scales),
                              p->codes->name, shape_text(p->codes, codes, sizeof codes));
        if (e->made)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "%.200s: '%.128s' is not stored row by row in its file", cp->shown,
                              e->name);
    }
    if (second && second != e) {
        if (!is_scalar(second))
            return embla_fail(EMBLA_ERR_SHAPE, "%.200s: '%.128s' is %s, not one number", cp->shown,
                              second->name, shape_text(second, scales, sizeof scales));
        EMBLA_TRY(multiply_scalar(cp, second, &scale));
    }
    p->format.scale = scale;
    return EMBLA_OK;
}

/* ---- a part ---- */

static embla_status read_part(const embla_checkpoint *cp, const embla_entry *e, const char *pattern,
                              part *out)
{
    part p = {.codes = e, .format.dtype = e->element->dtype};
    if (e->made)
        return embla_fail(
            EMBLA_ERR_UNSUPPORTED,
            "%.200s: '%.128s' is not stored row by row in its file; use embla_table_open",
            cp->shown, e->name);
    EMBLA_TRY(embla_entry_shape(e, &p.rows, &p.format.dim));
    if (strcmp(e->element->name, "U8") == 0 && find_companion(cp, e->name, pattern, scale_tails)) {
        p.format.dtype = EMBLA_F4_E2M1; /* two numbers in a byte */
        p.format.dim *= 2;
    }
    if (p.format.dtype == 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: tensor '%.128s' has type %s, which cannot be a table", cp->shown,
                          e->name, e->element->name);
    EMBLA_TRY(read_scales(cp, pattern, &p));
    *out = p;
    return EMBLA_OK;
}

/* All parts of a table must have the same row format. */
static embla_status check_same_format(const embla_checkpoint *cp, const part *first, const part *p,
                                      size_t number)
{
    const embla_row_format *a = &first->format, *b = &p->format;
    if (a->dim != b->dim || a->dtype != b->dtype || a->scales != b->scales)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%.100s: part %zu ('%.100s') has rows of %zu %s with scales %d, but part "
                          "0 has rows of %zu %s with scales %d",
                          cp->shown, number, p->codes->name, b->dim, embla_dtype_name(b->dtype),
                          (int)b->scales, a->dim, embla_dtype_name(a->dtype), (int)a->scales);
    if (a->scale < b->scale || a->scale > b->scale)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.100s: part %zu ('%.100s') has the scale %.9g, but part 0 has %.9g; "
                          "all parts of a table must have the same scale",
                          cp->shown, number, p->codes->name, (double)b->scale, (double)a->scale);
    return EMBLA_OK;
}

static embla_status add_part(const embla_checkpoint *cp, const part *p, embla_store *store)
{
    embla_extent_at e = {.rows = p->rows};
    e.map[0] = cp->shards[p->codes->file].map;
    e.offset[0] = p->codes->offset;
    e.stride[0] = store->row.code_bytes;
    if (p->scales) {
        e.map[1] = cp->shards[p->scales->file].map;
        e.offset[1] = p->scales->offset;
        e.stride[1] = store->row.scale_bytes;
    }
    return embla_extents_add(store, e);
}

/* ---- opening ---- */

/* Creates a store with the format of the first part and adds all parts. */
static embla_status open_parts(search *s, const char *pattern, const embla_store_options *options,
                               embla_store **out)
{
    const embla_entry **entries = NULL;
    size_t count = 0;
    part first, p;
    EMBLA_TRY(find_parts(s, pattern, &entries, &count));
    EMBLA_TRY(read_part(s->cp, entries[0], pattern, &first));
    EMBLA_TRY(embla_store_begin(&first.format, options, out));
    EMBLA_TRY(add_part(s->cp, &first, *out));
    for (size_t i = 1; i < count; i++) {
        EMBLA_TRY(read_part(s->cp, entries[i], pattern, &p));
        EMBLA_TRY(check_same_format(s->cp, &first, &p, i));
        EMBLA_TRY(add_part(s->cp, &p, *out));
    }
    return EMBLA_OK;
}

embla_status embla_store_open(const embla_checkpoint *cp, const char *name, int32_t layer,
                              const embla_store_options *options, embla_store **out)
{
    search s = {.cp = cp};
    embla_store *store = NULL;
    EMBLA_NEED_OF("embla_store_open", "checkpoint", cp);
    EMBLA_NEED(out);
    if (layer < -1)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "layer is %d; it must be -1 (the first layer with a table) or greater",
                          (int)layer);
    const char *pattern = name ? name : cp->chosen;
    if (!pattern && embla_pack_text(cp)) return embla_store_open_pack(cp, layer, options, out);
    embla_status status = pattern ? EMBLA_OK : choose_table(&s, layer, &pattern);
    if (status == EMBLA_OK) status = open_parts(&s, pattern, options, &store);
    embla_arena_free(&s.arena);
    if (status == EMBLA_OK) return embla_store_finish(store, out);
    embla_store_free(store);
    return status;
}
