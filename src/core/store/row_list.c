/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of row numbers: npy files, and the bundles of a pack in the order of their frequency. */
#include "store/row_list.h"

#include <string.h>

#include "base/byte_order.h"
#include "checkpoint/pack_manifest.h"

enum { AT_ONCE = 512 };

typedef struct {
    size_t rows_per_ngram;
    embla_row_list_fn *add;
    void *context;
} list;

static embla_status read_npy(const list *l, const embla_checkpoint *file, const char *path)
{
    int64_t rows[AT_ONCE];
    size_t count, step = AT_ONCE / l->rows_per_ngram * l->rows_per_ngram;
    bool enough = false;
    if (strcmp(file->format->name, "npy") != 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s has format %s; a list of rows is an npy file",
                          path, file->format->name);
    const embla_tensor *array = embla_checkpoint_tensors(file, &count); /* an npy file has one */
    bool flat = array->rank == 1,
         matches = array->rank == 2 && array->shape[1] == (int64_t)l->rows_per_ngram;
    if (strcmp(array->type, "I64") != 0 || (!flat && !matches))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s has %zu dimensions of %s; a list of rows is an npy file of I64 "
                          "with 1 dimension, or with 2 of which the second is %zu",
                          path, array->rank, array->type, l->rows_per_ngram);
    int64_t all = array->shape[0] * (flat ? 1 : array->shape[1]);
    if (all % (int64_t)l->rows_per_ngram != 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s has %" PRId64 " rows, which are not whole n-grams of %zu rows",
                          path, all, l->rows_per_ngram);
    for (int64_t i = 0; i < all && !enough; i += (int64_t)step) {
        size_t n = all - i < (int64_t)step ? (size_t)(all - i) : step;
        EMBLA_TRY(embla_checkpoint_read(file, array->name, i * (int64_t)sizeof *rows,
                                        n * sizeof *rows, rows));
        embla_order_turn(rows, sizeof *rows, n);
        EMBLA_TRY(l->add(l->context, rows, n, &enough));
    }
    return EMBLA_OK;
}

/* Reads the row numbers of one bundle. */
static embla_status read_bundle(const embla_checkpoint *file, const embla_entry *bundles,
                                const embla_pack *pack, uint64_t number, int64_t *rows)
{
    uint64_t at = embla_pack_item_at(&pack->bundle_pages, number);
    for (size_t h = 0; h < pack->rows_per_ngram; h++)
        EMBLA_TRY(embla_entry_read(file, bundles,
                                   at + h * (uint64_t)(pack->row_bytes + EMBLA_PACK_NUMBER),
                                   sizeof *rows, rows + h));
    embla_order_turn(rows, sizeof *rows, pack->rows_per_ngram);
    return EMBLA_OK;
}

static embla_status read_bundles(const list *l, const embla_checkpoint *file,
                                 const embla_pack *pack)
{
    const embla_entry *order, *bundles;
    int64_t rows[EMBLA_PACK_BUNDLE_MOST];
    uint32_t numbers[AT_ONCE];
    bool enough = false;
    if (pack->bundles == 0 || (l->rows_per_ngram != 1 && l->rows_per_ngram != pack->rows_per_ngram))
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%.200s has %" PRId64 " bundles of %zu rows; bundles of %zu are needed",
                          file->shown, pack->bundles, pack->rows_per_ngram, l->rows_per_ngram);
    EMBLA_TRY(embla_checkpoint_named(file, EMBLA_PACK_ORDER, &order));
    EMBLA_TRY(embla_checkpoint_named(file, EMBLA_PACK_BUNDLES, &bundles));
    for (int64_t i = 0; i < pack->bundles && !enough; i++) {
        size_t left = (size_t)(pack->bundles - i), n = left < AT_ONCE ? left : AT_ONCE;
        if (i % AT_ONCE == 0)
            EMBLA_TRY(embla_entry_read(file, order, (uint64_t)i * sizeof *numbers,
                                       n * sizeof *numbers, numbers));
        if (i % AT_ONCE == 0) embla_order_turn(numbers, sizeof *numbers, n);
        uint32_t number = numbers[i % AT_ONCE];
        if (number >= pack->bundles)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: bundle %" PRIu32 " in the order of the bundles does not "
                              "exist; there are %" PRId64 " (K6)",
                              file->shown, number, pack->bundles);
        EMBLA_TRY(read_bundle(file, bundles, pack, number, rows));
        EMBLA_TRY(l->add(l->context, rows, pack->rows_per_ngram, &enough));
    }
    return EMBLA_OK;
}

embla_status embla_row_list_read(const char *path, size_t rows_per_ngram, embla_row_list_fn *add,
                                 void *context)
{
    embla_checkpoint *file = NULL;
    embla_pack pack = {0};
    const list l = {.rows_per_ngram = rows_per_ngram, .add = add, .context = context};
    EMBLA_TRY(embla_checkpoint_open(path, NULL, &file));
    bool packed = embla_pack_text(file) != NULL;
    embla_status status = packed ? embla_pack_open(file, &pack) : EMBLA_OK;
    if (status == EMBLA_OK)
        status = packed ? read_bundles(&l, file, &pack) : read_npy(&l, file, path);
    embla_pack_free(&pack);
    embla_checkpoint_free(file);
    return status;
}
