/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a pack: parsed, checked, printed. Rules K1 to K5 and K8 of docs/formats.md.
 *
 * A manifest is untrusted like the rest of a file. embla_pack_complete computes all sizes from a
 * few numbers, and embla_pack_open compares them with the tensors of the file. The checksums are
 * against damage: whoever changes a manifest on purpose can compute them too.
 */
#include "checkpoint/pack_manifest.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/json_text.h"
#include "checkpoint/saved.h"

enum { DEPTH = 4, COLUMNS_MOST = 1024, ORDERS_MOST = 8 };

/* The lists: their tensors, their checksums in the manifest, and what one number of them has. */
static const struct {
    const char *tensor, *type, *key;
    uint64_t size;
} lists[EMBLA_PACK_LISTS] = {
    [EMBLA_PACK_LIST_FOLD] = {EMBLA_PACK_FOLD, "I32", "fold_checksum", 4},
    [EMBLA_PACK_LIST_INDEX] = {EMBLA_PACK_INDEX, "U64", "index_checksum", 8},
    [EMBLA_PACK_LIST_ORDER] = {EMBLA_PACK_ORDER, "U32", "order_checksum", 4},
};

/* ---- sizes ---- */

embla_pack_pages embla_pack_pages_of(uint64_t bytes)
{
    uint64_t page = EMBLA_PACK_PAGE;
    if (bytes <= page)
        return (embla_pack_pages){.bytes = bytes, .group = page / bytes, .group_bytes = page};
    return (embla_pack_pages){
        .bytes = bytes, .group = 1, .group_bytes = (bytes + page - 1) / page * page};
}

/* The bytes of the pages of `count` items. Returns false if they do not fit in a file. */
static bool pages_size(const embla_pack_pages *pages, uint64_t count, uint64_t *out)
{
    uint64_t groups = count / pages->group + (count % pages->group > 0);
    return embla_mul_ok(groups, pages->group_bytes, out) && *out <= (uint64_t)INT64_MAX / 4;
}

uint64_t embla_pack_items(const embla_pack_pages *pages, uint64_t bytes)
{
    uint64_t groups = bytes / pages->group_bytes;
    return (groups > 0 ? groups : 1) * pages->group;
}

int64_t embla_pack_block_rows(const embla_pack *pack)
{
    return pack->row_bytes < EMBLA_PACK_BLOCK ? (int64_t)(EMBLA_PACK_BLOCK / pack->row_bytes) : 1;
}

int64_t embla_pack_block_count(const embla_pack *pack)
{
    return (pack->rows - 1) / embla_pack_block_rows(pack) + 1;
}

embla_status embla_pack_complete(embla_pack *p, const char *name)
{
    if (p->rows < 1 || p->rows > EMBLA_ROWS_MOST || p->bundles < 0 || p->bundles > INT32_MAX)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: a pack of %" PRId64 " rows and %" PRId64
                          " bundles; it must have 1 to 2^40 rows and 0 to %d bundles (K2)",
                          name, p->rows, p->bundles, INT32_MAX);
    if (p->rows_per_ngram > EMBLA_PACK_BUNDLE_MOST || (p->bundles > 0) != (p->rows_per_ngram > 0))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: %" PRId64 " bundles of %zu rows; bundles have 1 to %d rows (K2)",
                          name, p->bundles, p->rows_per_ngram, EMBLA_PACK_BUNDLE_MOST);
    EMBLA_TRY(embla_row_bytes(&p->format, &p->row_bytes));
    p->row_pages = embla_pack_pages_of(p->row_bytes);
    p->bundle_pages = embla_pack_pages_of((p->rows_per_ngram > 0 ? p->rows_per_ngram : 1) *
                                          (uint64_t)(p->row_bytes + EMBLA_PACK_NUMBER));
    if (!pages_size(&p->row_pages, (uint64_t)p->rows, &p->rows_size) ||
        !pages_size(&p->bundle_pages, (uint64_t)p->bundles, &p->bundles_size))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: %" PRId64 " rows of %zu bytes do not fit in a file (K2)", name,
                          p->rows, p->row_bytes);
    return EMBLA_OK;
}

/* ---- parsing ---- */

typedef struct {
    const char *name; /* of the file */
    const embla_json_value *object;
    embla_status status; /* the first failure */
} reading;

/* The integer `key`, from least to most. */
static int64_t whole(reading *r, const char *key, int64_t least, int64_t most)
{
    int64_t value = 0;
    bool found = embla_json_integer(embla_json_get(r->object, key), &value);
    if (r->status != EMBLA_OK || (found && value >= least && value <= most)) return value;
    if (found)
        r->status = embla_fail(EMBLA_ERR_FORMAT,
                               "%.200s: '%s' of the pack is %" PRId64 "; it must be from %" PRId64
                               " to %" PRId64 " (K2)",
                               r->name, key, value, least, most);
    else
        r->status =
            embla_fail(EMBLA_ERR_FORMAT,
                       "%.200s: '%s' of the pack is missing or not an integer (K2)", r->name, key);
    return least;
}

/* The list `key` of exactly `count` integers; NULL if it is not there. */
static const int64_t *list(reading *r, embla_arena *arena, const char *key, int64_t count)
{
    const embla_json_value *array = embla_json_get(r->object, key), *item;
    int64_t *out = NULL;
    size_t n = 0;
    if (!array || r->status != EMBLA_OK) return NULL;
    if ((int64_t)embla_json_count(array) != count) {
        r->status = embla_fail(EMBLA_ERR_FORMAT,
                               "%.200s: '%s' of the pack has %zu numbers, not %" PRId64 " (K3)",
                               r->name, key, embla_json_count(array), count);
        return NULL;
    }
    r->status = embla_arena_many(arena, (uint64_t)count, sizeof *out, "a list of numbers", &out);
    if (r->status != EMBLA_OK) return NULL;
    for (item = embla_json_item(array, 0); item; item = embla_json_after(item), n++)
        if (!embla_json_integer(item, &out[n])) {
            r->status = embla_fail(EMBLA_ERR_FORMAT,
                                   "%.200s: item %zu of %" PRId64
                                   " in '%s' of the pack is not an integer (K3)",
                                   r->name, n, count, key);
            return NULL;
        }
    return out;
}

static embla_status parse_format(reading *r, embla_pack *p)
{
    const char *dtype = embla_json_string(embla_json_get(r->object, "dtype"), NULL);
    double scale = 0;
    if (!dtype || embla_dtype_find(dtype, &p->format.dtype) != EMBLA_OK)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the dtype '%.32s' of the pack is unknown to version %d (K4)",
                          r->name, dtype ? dtype : "", EMBLA_PACK_VERSION);
    p->format.dim = (size_t)whole(r, "dim", 1, (int64_t)EMBLA_DIM_MOST);
    p->format.scales = (embla_scales)whole(r, "scales", 0, EMBLA_SCALES_E4M3_16);
    EMBLA_TRY(r->status);
    bool found = embla_json_double(embla_json_get(r->object, "scale"), &scale);
    p->format.scale = (float)scale;
    if (!found || !(p->format.scale > 0 || p->format.scale < 0) ||
        p->format.scale - p->format.scale != 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the scale of the pack is %g; it must be finite and not 0 (K4)",
                          r->name, scale);
    return EMBLA_OK;
}

static embla_status parse_hasher(const embla_json_value *object, const char *name, embla_pack *p)
{
    reading r = {.name = name, .object = object};
    embla_pack_hasher h = {.given = true};
    h.kind = whole(&r, "kind", 0, 3);
    h.vocab = whole(&r, "vocab", 1, INT32_MAX);
    h.orders = whole(&r, "orders", 1, ORDERS_MOST);
    h.rows_per_ngram = whole(&r, "heads", 1, COLUMNS_MOST / ORDERS_MOST);
    h.pad = whole(&r, "pad", -1, INT32_MAX);
    h.eos = whole(&r, "eos", -1, INT32_MAX);
    h.eos_rule = whole(&r, "eos_rule", 0, 2);
    h.rows = whole(&r, "rows", 1, p->rows);
    h.fold = whole(&r, "fold", 0, INT32_MAX);
    h.multipliers = list(&r, &p->arena, "multipliers", h.orders);
    h.sizes = list(&r, &p->arena, "sizes", (h.orders - 1) * h.rows_per_ngram);
    h.offsets = list(&r, &p->arena, "offsets", (h.orders - 1) * h.rows_per_ngram);
    p->hasher = h;
    return r.status;
}

/* The checksums of the lists that the pack has. Version 1 has none. */
static embla_status parse_sums(const reading *r, embla_pack *p)
{
    for (int i = 0; i < EMBLA_PACK_LISTS && p->version > 1; i++) {
        if (embla_pack_list_bytes(p, (embla_pack_list)i) == 0) continue;
        p->sums[i] = embla_json_string(embla_json_get(r->object, lists[i].key), NULL);
        if (!p->sums[i] || strlen(p->sums[i]) != EMBLA_SUM_TEXT - 1)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: '%s' of the pack is missing or has not %d digits (K8)",
                              r->name, lists[i].key, EMBLA_SUM_TEXT - 1);
    }
    return EMBLA_OK;
}

embla_status embla_pack_parse(const char *text, const char *name, embla_pack *out)
{
    *out = (embla_pack){0};
    EMBLA_TRY(embla_json_read(text, strlen(text), name, DEPTH, "K1", &out->json));
    reading r = {.name = name, .object = out->json};
    out->version = whole(&r, "version", 1, INT32_MAX);
    if (r.status == EMBLA_OK && out->version > EMBLA_PACK_VERSION)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s is a pack of version %" PRId64
                          "; this library reads versions 1 to %d",
                          name, out->version, EMBLA_PACK_VERSION);
    out->rows = whole(&r, "rows", 1, EMBLA_ROWS_MOST);
    out->layer = (int32_t)whole(&r, "layer", -1, INT32_MAX);
    out->rows_per_ngram = (size_t)whole(&r, "bundle_heads", 0, EMBLA_PACK_BUNDLE_MOST);
    out->bundles = whole(&r, "bundles", 0, INT32_MAX);
    EMBLA_TRY(r.status);
    out->name = embla_json_string(embla_json_get(out->json, "name"), NULL);
    if (!out->name) out->name = "";
    EMBLA_TRY(parse_format(&r, out));
    embla_status status = embla_pack_complete(out, name);
    if (status == EMBLA_ERR_ARGUMENT || status == EMBLA_ERR_SHAPE) {
        char why[200];
        (void)snprintf(why, sizeof why, "%.199s", embla_error());
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: the rows of the pack: %s (K4)", name, why);
    }
    EMBLA_TRY(status);
    const embla_json_value *hasher = embla_json_get(out->json, "ngram");
    if (hasher) EMBLA_TRY(parse_hasher(hasher, name, out));
    return parse_sums(&r, out);
}

void embla_pack_free(embla_pack *pack)
{
    embla_json_free(pack->json);
    embla_arena_free(&pack->arena);
    pack->json = NULL;
}

/* ---- checksums ---- */

embla_status embla_pack_check(embla_directory *d, const char *name)
{
    const char *text = embla_saved_value(d, EMBLA_PACK_KEY);
    const char *said = embla_saved_value(d, EMBLA_PACK_KEY_SUM);
    char found[EMBLA_SUM_TEXT];
    if (!text) return EMBLA_OK;
    if (!said) /* version 1; embla_pack_open refuses other versions without it */
        return embla_directory_note(d,
                                    "the manifest of this pack has no checksum (version 1): "
                                    "'embla pack' writes packs of version %d, which have one "
                                    "(K8)",
                                    EMBLA_PACK_VERSION);
    embla_sum_text(embla_checksum_of(text, strlen(text)), found);
    if (strcmp(said, found) == 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.200s is damaged: its manifest has the checksum %s, but %.64s is recorded; "
                      "write the pack again (K8)",
                      name, found, said);
}

uint64_t embla_pack_list_bytes(const embla_pack *p, embla_pack_list list)
{
    int64_t count = list == EMBLA_PACK_LIST_FOLD ? p->hasher.fold : p->bundles;
    return lists[list].size * (uint64_t)count;
}

embla_status embla_pack_list_sum(const embla_checkpoint *cp, const embla_pack *p,
                                 embla_pack_list list, embla_checksum *out)
{
    char block[16384];
    uint64_t bytes = embla_pack_list_bytes(p, list);
    embla_checksum_state state;
    embla_checksum_begin(&state);
    for (uint64_t at = 0; at < bytes; at += sizeof block) {
        size_t n = bytes - at < sizeof block ? (size_t)(bytes - at) : sizeof block;
        EMBLA_TRY(embla_checkpoint_read(cp, lists[list].tensor, (int64_t)at, n, block));
        embla_checksum_add(&state, block, n);
    }
    *out = embla_checksum_end(&state);
    return EMBLA_OK;
}

embla_status embla_pack_list_check(const embla_pack *p, embla_pack_list list, embla_checksum sum,
                                   const char *name)
{
    char found[EMBLA_SUM_TEXT];
    embla_sum_text(sum, found);
    if (!p->sums[list] || strcmp(p->sums[list], found) == 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.200s is damaged: '%s' has the checksum %s, but %.64s is recorded; write "
                      "the pack again (K8)",
                      name, lists[list].tensor, found, p->sums[list]);
}

/* ---- the tensors of a pack ---- */

const char *embla_pack_text(const embla_checkpoint *cp)
{
    if (cp->shard_count != 1 || strcmp(embla_checkpoint_format(cp), "safetensors") != 0)
        return NULL;
    return embla_saved_value(&cp->shards[0].directory, EMBLA_PACK_KEY);
}

/* A tensor must have this type and at least `bytes` bytes, and begin a page. */
static embla_status check_tensor(const embla_checkpoint *cp, const char *name, const char *type,
                                 uint64_t bytes, bool exactly)
{
    const embla_entry *e = NULL;
    EMBLA_TRY(embla_checkpoint_named(cp, name, &e));
    if (strcmp(e->element->name, type) != 0 || e->bytes < bytes || (exactly && e->bytes != bytes) ||
        e->offset % EMBLA_PACK_PAGE != 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: '%s' is %s with %" PRIu64 " bytes at byte %" PRIu64
                          "; the pack needs %s with %" PRIu64 " bytes that begin a page of %d (K5)",
                          cp->shown, name, e->element->name, e->bytes, e->offset, type, bytes,
                          EMBLA_PACK_PAGE);
    return EMBLA_OK;
}

embla_status embla_pack_open(const embla_checkpoint *cp, embla_pack *out)
{
    EMBLA_TRY(embla_pack_parse(embla_pack_text(cp), cp->shown, out));
    if (out->version > 1 && !embla_saved_value(&cp->shards[0].directory, EMBLA_PACK_KEY_SUM))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s is a pack of version %" PRId64 " without '%s' (K8)", cp->shown,
                          out->version, EMBLA_PACK_KEY_SUM);
    uint64_t sums = 16 * ((uint64_t)embla_pack_block_count(out) + 1);
    EMBLA_TRY(check_tensor(cp, EMBLA_PACK_ROWS, "U8", out->rows_size, true));
    EMBLA_TRY(check_tensor(cp, EMBLA_PACK_SUMS, "U8", sums, true));
    for (int i = 0; i < EMBLA_PACK_LISTS; i++) {
        uint64_t bytes = embla_pack_list_bytes(out, (embla_pack_list)i);
        if (bytes > 0) EMBLA_TRY(check_tensor(cp, lists[i].tensor, lists[i].type, bytes, false));
    }
    if (out->bundles == 0) return EMBLA_OK;
    return check_tensor(cp, EMBLA_PACK_BUNDLES, "U8", out->bundles_size, true);
}

/* ---- printing ---- */

typedef struct {
    char *out; /* NULL only counts */
    size_t used;
} text_sink;

static void append(void *to, const char *bytes, size_t length)
{
    text_sink *s = to;
    if (s->out) memcpy(s->out + s->used, bytes, length);
    s->used += length;
}

static void print_whole(const embla_json_sink *to, const char *key, int64_t value)
{
    embla_json_write(to, ",\"");
    embla_json_write(to, key);
    embla_json_write(to, "\":");
    embla_json_write_whole(to, value);
}

static void print_list(const embla_json_sink *to, const char *key, const int64_t *numbers,
                       int64_t count)
{
    if (!numbers) return;
    embla_json_write(to, ",\"");
    embla_json_write(to, key);
    embla_json_write(to, "\":[");
    for (int64_t i = 0; i < count; i++) {
        if (i > 0) embla_json_write(to, ",");
        embla_json_write_whole(to, numbers[i]);
    }
    embla_json_write(to, "]");
}

static void print_hasher(const embla_json_sink *to, const embla_pack_hasher *h)
{
    embla_json_write(to, ",\"ngram\":{\"kind\":");
    embla_json_write_whole(to, h->kind);
    print_whole(to, "vocab", h->vocab);
    print_whole(to, "orders", h->orders);
    print_whole(to, "heads", h->rows_per_ngram);
    print_whole(to, "pad", h->pad);
    print_whole(to, "eos", h->eos);
    print_whole(to, "eos_rule", h->eos_rule);
    print_whole(to, "rows", h->rows);
    print_whole(to, "fold", h->fold);
    print_list(to, "multipliers", h->multipliers, h->orders);
    print_list(to, "sizes", h->sizes, (h->orders - 1) * h->rows_per_ngram);
    print_list(to, "offsets", h->offsets, (h->orders - 1) * h->rows_per_ngram);
    embla_json_write(to, "}");
}

static void print_pack(const embla_json_sink *to, const embla_pack *p)
{
    char scale[EMBLA_JSON_DIGITS];
    embla_json_digits((double)p->format.scale, 0, scale);
    embla_json_write(to, "{\"version\":");
    embla_json_write_whole(to, p->version > 0 ? p->version : EMBLA_PACK_VERSION);
    print_whole(to, "rows", p->rows);
    print_whole(to, "layer", p->layer);
    embla_json_write(to, ",\"name\":");
    (void)embla_json_write_string(to, p->name, strlen(p->name), false);
    embla_json_write(to, ",\"dtype\":\"");
    embla_json_write(to, embla_dtype_name(p->format.dtype));
    embla_json_write(to, "\"");
    print_whole(to, "dim", (int64_t)p->format.dim);
    print_whole(to, "scales", (int64_t)p->format.scales);
    embla_json_write(to, ",\"scale\":");
    embla_json_write(to, scale);
    print_whole(to, "bundle_heads", (int64_t)p->rows_per_ngram);
    print_whole(to, "bundles", p->bundles);
    if (p->hasher.given) print_hasher(to, &p->hasher);
    for (int i = 0; i < EMBLA_PACK_LISTS; i++) {
        if (!p->sums[i]) continue;
        embla_json_write(to, ",\"");
        embla_json_write(to, lists[i].key);
        embla_json_write(to, "\":");
        (void)embla_json_write_string(to, p->sums[i], strlen(p->sums[i]), false);
    }
    embla_json_write(to, "}");
}

embla_status embla_pack_print(embla_pack *pack, const char **out)
{
    text_sink counted = {0}, written = {0};
    void *memory = NULL;
    print_pack(&(embla_json_sink){.write = append, .to = &counted}, pack);
    EMBLA_TRY(embla_arena_take(&pack->arena, counted.used + 1, "a manifest", &memory));
    written.out = memory;
    print_pack(&(embla_json_sink){.write = append, .to = &written}, pack);
    *out = memory;
    return EMBLA_OK;
}
