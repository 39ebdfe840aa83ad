/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a pack as a store: one extent of groups of rows, and the index of its bundles. */
#include "store/bundles.h"
#include "store/pack.h"

static embla_status add_rows(const embla_checkpoint *cp, const embla_pack *pack, embla_store *store)
{
    const embla_entry *rows;
    EMBLA_TRY(embla_checkpoint_named(cp, EMBLA_PACK_ROWS, &rows));
    embla_extent_at e = {.rows = pack->rows,
                         .offset = {rows->offset, rows->offset + store->row.code_bytes},
                         .stride = {pack->row_bytes, pack->row_bytes},
                         .group = pack->row_pages.group,
                         .group_bytes = pack->row_pages.group_bytes};
    e.map[0] = e.map[1] = cp->shards[rows->file].map;
    return embla_extents_add(store, e);
}

/* Bundles serve reads past the page cache. The other placements have no use for them, and neither
 * has a store of some of the rows: a bundle has rows of all ranks. */
static embla_status add_parts(const embla_checkpoint *cp, const embla_pack *pack,
                              embla_store *store)
{
    EMBLA_TRY(add_rows(cp, pack, store));
    bool direct = store->options.placement == EMBLA_PLACEMENT_DIRECT;
    bool whole = store->extent_count == 1 && store->extents[0].rows == pack->rows;
    if (!direct || !whole || pack->bundles == 0 || store->extents[0].map[0]->file < 0)
        return EMBLA_OK;
    return embla_bundles_open(cp, pack, store);
}

embla_status embla_store_open_pack(const embla_checkpoint *cp, int32_t layer,
                                   const embla_store_options *options, embla_store **out)
{
    embla_pack pack = {0};
    embla_store *store = NULL;
    embla_status status = embla_pack_open(cp, &pack);
    if (status == EMBLA_OK && layer >= 0 && pack.layer >= 0 && pack.layer != layer)
        status = embla_fail(EMBLA_ERR_NOT_FOUND,
                            "%.200s: layer %d has no giant table; the pack has that of layer %d",
                            cp->shown, (int)layer, (int)pack.layer);
    if (status == EMBLA_OK) status = embla_store_begin(&pack.format, options, &store);
    if (status == EMBLA_OK) status = add_parts(cp, &pack, store);
    embla_pack_free(&pack);
    if (status == EMBLA_OK) return embla_store_finish(store, out);
    embla_store_free(store);
    return status;
}

void embla_pack_describe(const embla_pack *pack, embla_pack_report *out)
{
    bool small = pack->row_pages.group_bytes == EMBLA_PACK_PAGE;
    *out = (embla_pack_report){.version = pack->version,
                               .hasher = pack->hasher.given,
                               .rows = pack->rows,
                               .row_bytes = pack->row_bytes,
                               .rows_a_page = small ? (int64_t)pack->row_pages.group : 0,
                               .bundles = pack->bundles,
                               .rows_per_ngram = pack->rows_per_ngram,
                               .first = -1};
}
