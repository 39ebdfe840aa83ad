/* SPDX-License-Identifier: Apache-2.0 */
/* The index of bundles: sorted keys, and a table of where the keys with the same first bits begin.
 * Keys are hashes, so a bucket of the table has about one key, and a search is two cache misses. */
#include "store/bundles.h"

#include "base/byte_order.h"
#include "base/hash.h"
#include "base/layout.h"
#include "base/mem.h"

bool embla_bundles_find(const embla_bundles *b, const int64_t *rows, uint64_t *at)
{
    uint64_t key = embla_hash_rows(rows, b->rows_per_ngram);
    size_t bucket = (size_t)(key >> b->shift);
    for (uint32_t i = b->starts[bucket]; i < b->starts[bucket + 1]; i++)
        if (b->keys[i] == key) {
            *at = b->offset + embla_pack_item_at(&b->pages, i);
            return true;
        }
    return false;
}

/* ---- open ---- */

static embla_status allocate(size_t count, embla_bundles **out)
{
    embla_layout layout = {0};
    void *memory = NULL;
    unsigned bits = 1;
    while (bits < 31 && (size_t)1 << bits < count) bits++;
    size_t self = embla_layout_add(&layout, 1, sizeof(embla_bundles));
    size_t starts = embla_layout_add(&layout, ((size_t)1 << bits) + 1, sizeof(uint32_t));
    size_t keys = embla_layout_add(&layout, count, sizeof(uint64_t));
    EMBLA_TRY(embla_mem_new(layout.bytes, "the index of bundles", &memory));
    char *base = memory;
    embla_bundles *b = (void *)(base + self);
    *b = (embla_bundles){.block = layout.bytes,
                         .count = count,
                         .shift = 64 - bits,
                         .starts = (void *)(base + starts),
                         .keys = (void *)(base + keys)};
    *out = b;
    return EMBLA_OK;
}

/* Keys must ascend; then the starts of all buckets follow. */
static embla_status index_keys(embla_bundles *b, const char *name)
{
    size_t bucket = 0, buckets = (size_t)1 << (64 - b->shift);
    for (size_t i = 0; i < b->count; i++) {
        if (i > 0 && b->keys[i] <= b->keys[i - 1])
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: key %zu of %zu bundles is not greater than the one before "
                              "it (K6)",
                              name, i, b->count);
        while (bucket <= (size_t)(b->keys[i] >> b->shift)) b->starts[bucket++] = (uint32_t)i;
    }
    while (bucket <= buckets) b->starts[bucket++] = (uint32_t)b->count;
    return EMBLA_OK;
}

embla_status embla_bundles_open(const embla_checkpoint *cp, const embla_pack *pack,
                                embla_store *store)
{
    embla_bundles *b = NULL;
    const embla_entry *index, *bundles;
    EMBLA_TRY(embla_checkpoint_named(cp, EMBLA_PACK_INDEX, &index));
    EMBLA_TRY(embla_checkpoint_named(cp, EMBLA_PACK_BUNDLES, &bundles));
    EMBLA_TRY(allocate((size_t)pack->bundles, &b));
    store->bundles = b; /* embla_store_free frees it */
    b->rows_per_ngram = pack->rows_per_ngram;
    b->pages = pack->bundle_pages;
    b->step = pack->row_bytes + EMBLA_PACK_NUMBER;
    b->offset = bundles->offset;
    b->source = (uint32_t)store->extents[0].source[0]; /* a pack is one file */
    EMBLA_TRY(embla_entry_read(cp, index, 0, b->count * sizeof *b->keys, b->keys));
    EMBLA_TRY(embla_pack_list_check(pack, EMBLA_PACK_LIST_INDEX,
                                    embla_checksum_of(b->keys, b->count * sizeof *b->keys),
                                    cp->shown));
    embla_order_turn(b->keys, sizeof *b->keys, b->count);
    return index_keys(b, cp->shown);
}

void embla_bundles_free(embla_bundles *bundles)
{
    if (bundles) embla_mem_free(bundles, bundles->block);
}
