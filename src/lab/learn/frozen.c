/* SPDX-License-Identifier: Apache-2.0 */
/* Combines the three ways to specify frozen rows. Listed rows are usually few (padding), so each is
 * searched for in the batch. For many rows a mask is cheaper. */
#include "learn/frozen.h"

#include <string.h>

#include "base/mem.h"
#include "base/options.h"
#include "lookup/lookup.h"

enum { WORD = 64 };

embla_status embla_frozen_check(const embla_frozen *frozen, int64_t rows)
{
    if (!frozen) return EMBLA_OK;
    EMBLA_TRY(embla_options_check(frozen));
    if (frozen->below < 0 || frozen->below > rows)
        return embla_fail(EMBLA_ERR_RANGE,
                          "rows below %" PRId64 " are to be frozen, but the table has %" PRId64
                          " rows",
                          frozen->below, rows);
    if (frozen->count > 0 && !frozen->rows)
        return embla_fail(EMBLA_ERR_ARGUMENT, "frozen.rows is NULL, but frozen.count is %zu",
                          frozen->count);
    return embla_lookup_check_rows(frozen->rows, frozen->count, rows, "frozen row");
}

static void set_bit(uint64_t *bits, uint64_t row)
{
    bits[row / WORD] |= UINT64_C(1) << row % WORD;
}

embla_status embla_frozen_copy(const embla_frozen *frozen, int64_t rows, embla_frozen_set *out)
{
    embla_frozen_set set = {0};
    void *bits = NULL;
    EMBLA_TRY(embla_frozen_check(frozen, rows));
    if (frozen) set.below = frozen->below;
    if (frozen && (frozen->mask || frozen->count > 0)) {
        set.bytes = ((size_t)rows + WORD - 1) / WORD * sizeof *set.bits;
        EMBLA_TRY(embla_mem_new(set.bytes, "frozen rows", &bits));
        set.bits = bits;
        for (int64_t r = 0; frozen->mask && r < rows; r++)
            if (frozen->mask[r]) set_bit(set.bits, (uint64_t)r);
        for (size_t i = 0; i < frozen->count; i++) set_bit(set.bits, (uint64_t)frozen->rows[i]);
    }
    *out = set;
    return EMBLA_OK;
}

void embla_frozen_free(embla_frozen_set *set)
{
    if (!set) return;
    embla_mem_free(set->bits, set->bytes);
    *set = (embla_frozen_set){0};
}

/* The first index of rows whose value is not below row; count if there is none. */
static size_t lower_bound(int64_t row, const int64_t *rows, size_t count)
{
    size_t first = 0, last = count;
    while (first < last) {
        size_t middle = first + (last - first) / 2;
        if (rows[middle] < row)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

void embla_frozen_mark(const embla_frozen *frozen, const int64_t *rows, size_t count,
                       uint8_t *frozen_at)
{
    memset(frozen_at, 0, count);
    memset(frozen_at, 1, lower_bound(frozen->below, rows, count));
    for (size_t i = 0; frozen->mask && i < count; i++)
        if (frozen->mask[rows[i]]) frozen_at[i] = 1;
    for (size_t i = 0; i < frozen->count; i++) {
        size_t at = lower_bound(frozen->rows[i], rows, count);
        if (at < count && rows[at] == frozen->rows[i]) frozen_at[at] = 1;
    }
}
