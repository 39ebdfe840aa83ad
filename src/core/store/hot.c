/* SPDX-License-Identifier: Apache-2.0 */
/* Hot rows. An entry has the rows of one n-gram (`rows_per_ngram` of them), or one row. Entries
 * have a fixed size; a hash table with open addresses finds the entry of an n-gram by its row
 * numbers.
 *
 *   entries 0 .. fixed-1        read once, when the rows are opened, and never replaced
 *   entries fixed .. most-1     CLOCK: a hand goes round; an entry that was used since the last
 *                               round is passed over once, any other is replaced
 *
 * A static set of frequent rows finds more than recency does (61 against 59.5 % of the bigrams of a
 * text, with 100,000 n-grams), and costs no writes. The small second part follows the text.
 * Everything, the hash table included, is in one block that is not larger than the budget.
 */
#include "store/hot.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/layout.h"
#include "base/lock.h"
#include "base/mem.h"
#include "embla_checkpoint.h"
#include "lookup/lookup.h"
#include "lookup/unique.h"
#include "store/bundles.h"
#include "store/row_list.h"

struct embla_hot {
    const embla_store *store;
    size_t bytes;          /* of this block */
    size_t rows_per_ngram; /* rows of an entry */
    size_t row_bytes, code_bytes, entry_bytes;
    size_t most, fixed, used; /* entries */
    size_t hand;
    unsigned bits;    /* 2^bits slots */
    uint32_t *slots;  /* 1 + entry; 0 means free */
    int64_t *rows;    /* rows_per_ngram of each entry */
    uint8_t *touched; /* since the hand was here */
    char *entries;
    embla_lock lock;
};

/* ---- memory ---- */

typedef struct {
    size_t self, slots, rows, touched, entries, bytes;
    unsigned bits;
} places;

/* The block for `most` entries. Returns false if it is too large for any memory. */
static bool place(size_t most, size_t rows_per_ngram, size_t row_bytes, places *out)
{
    embla_layout layout = {0};
    size_t slots = embla_unique_slots(most);
    *out = (places){.bits = (unsigned)__builtin_ctzll(slots)};
    out->self = embla_layout_add(&layout, 1, sizeof(embla_hot));
    out->slots = embla_layout_add(&layout, slots, sizeof(uint32_t));
    out->rows = embla_layout_add(&layout, most, rows_per_ngram * sizeof(int64_t));
    out->touched = embla_layout_add(&layout, most, 1);
    out->entries = embla_layout_add(&layout, most, rows_per_ngram * row_bytes);
    out->bytes = layout.bytes;
    return !layout.too_large;
}

/* The largest number of entries whose block fits in the budget; 0 means that none fits. */
static size_t fit(size_t budget, size_t rows_per_ngram, size_t row_bytes, int64_t rows, places *out)
{
    size_t low = 0, high = budget / (rows_per_ngram * row_bytes); /* low fits, high may not */
    if (rows_per_ngram == 1 && (uint64_t)high > (uint64_t)rows) high = (size_t)rows;
    if (high > EMBLA_UNIQUE_MOST) high = EMBLA_UNIQUE_MOST;
    while (low < high) {
        size_t middle = high - (high - low) / 2;
        if (place(middle, rows_per_ngram, row_bytes, out) && out->bytes <= budget)
            low = middle;
        else
            high = middle - 1;
    }
    if (low > 0) (void)place(low, rows_per_ngram, row_bytes, out);
    return low;
}

/* ---- the hash table ---- */

static size_t home(const embla_hot *hot, const int64_t *rows)
{
    uint64_t key = hot->rows_per_ngram == 1 ? embla_unique_hash((uint64_t)*rows)
                                            : embla_hash_rows(rows, hot->rows_per_ngram);
    return (size_t)(key >> (64 - hot->bits));
}

/* The row numbers of the entry in a slot, which is not free. */
static const int64_t *rows_in(const embla_hot *hot, size_t slot)
{
    return hot->rows + (size_t)(hot->slots[slot] - 1) * hot->rows_per_ngram;
}

static bool is_same(const embla_hot *hot, const int64_t *a, const int64_t *b)
{
    return *a == *b &&
           (hot->rows_per_ngram == 1 || memcmp(a, b, hot->rows_per_ngram * sizeof *a) == 0);
}

/* The slot of an n-gram whose home is `at`, or the free slot where it would be. */
static size_t search_from(const embla_hot *hot, size_t at, const int64_t *rows)
{
    size_t mask = ((size_t)1 << hot->bits) - 1;
    while (hot->slots[at] != 0 && !is_same(hot, rows_in(hot, at), rows)) at = (at + 1) & mask;
    return at;
}

static size_t find_slot(const embla_hot *hot, const int64_t *rows)
{
    return search_from(hot, home(hot, rows), rows);
}

/* Frees a slot. Later slots of the same run move up, so that no search ends early. */
static void free_slot(embla_hot *hot, size_t at)
{
    size_t mask = ((size_t)1 << hot->bits) - 1;
    for (size_t next = (at + 1) & mask; hot->slots[next] != 0; next = (next + 1) & mask) {
        size_t wanted = home(hot, rows_in(hot, next));
        if (((next - wanted) & mask) < ((next - at) & mask)) continue; /* not before its home */
        hot->slots[at] = hot->slots[next];
        at = next;
    }
    hot->slots[at] = 0;
}

/* ---- rows ---- */

void embla_hot_lock(embla_hot *hot)
{
    embla_lock_take(&hot->lock);
}

void embla_hot_unlock(embla_hot *hot)
{
    embla_lock_give(&hot->lock);
}

/* Copies the part of each row of an entry to out. */
static void copy_entry(const embla_hot *hot, size_t entry, const embla_row_part *part, char *out,
                       size_t stride)
{
    const char *row = hot->entries + entry * hot->entry_bytes;
    for (size_t h = 0; h < hot->rows_per_ngram; h++, row += hot->row_bytes, out += stride) {
        memcpy(out, row + part->code_at, part->code_bytes);
        if (part->scale_bytes > 0)
            memcpy(out + part->code_bytes, row + hot->code_bytes + part->scale_at,
                   part->scale_bytes);
    }
}

static void prefetch_entry(const embla_hot *hot, size_t slot)
{
    if (hot->slots[slot] == 0) return;
    size_t entry = hot->slots[slot] - 1;
    const char *bytes = hot->entries + entry * hot->entry_bytes;
    __builtin_prefetch(rows_in(hot, slot));
    __builtin_prefetch(&hot->touched[entry], 1);
    for (size_t k = 0; k < hot->entry_bytes; k += 64) __builtin_prefetch(bytes + k);
    __builtin_prefetch(bytes + hot->entry_bytes - 1);
}

/* Each access of an entry is a cache miss. So the slots of all n-grams are prefetched, then their
 * entries, by the first slot of each, which is nearly always the right one. */
uint32_t embla_hot_find(embla_hot *hot, const int64_t *rows, size_t count,
                        const embla_row_part *part, char *out, size_t stride, uint32_t *fixed)
{
    size_t rows_per_ngram = hot->rows_per_ngram, n = count / rows_per_ngram, homes[EMBLA_HOT_GROUP];
    uint32_t found = 0,
             all = rows_per_ngram < 32 ? ((uint32_t)1 << rows_per_ngram) - 1 : UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        homes[i] = home(hot, rows + i * rows_per_ngram);
        __builtin_prefetch(&hot->slots[homes[i]]);
    }
    for (size_t i = 0; i < n; i++) prefetch_entry(hot, homes[i]);
    for (size_t i = 0; i < n; i++) {
        uint32_t slot = hot->slots[search_from(hot, homes[i], rows + i * rows_per_ngram)];
        if (slot == 0) continue;
        hot->touched[slot - 1] = 1;
        copy_entry(hot, slot - 1, part, out + i * rows_per_ngram * stride, stride);
        found |= all << i * rows_per_ngram;
        if (slot - 1 < hot->fixed) *fixed += (uint32_t)rows_per_ngram;
    }
    return found;
}

size_t embla_hot_rows_per_ngram(const embla_hot *hot)
{
    return hot->rows_per_ngram;
}

/* The entry that is replaced next. */
static size_t next_entry(embla_hot *hot)
{
    if (hot->used < hot->most) return hot->used++;
    for (;; hot->hand++) {
        if (hot->hand >= hot->most) hot->hand = hot->fixed;
        if (!hot->touched[hot->hand]) break;
        hot->touched[hot->hand] = 0;
    }
    free_slot(hot, find_slot(hot, hot->rows + hot->hand * hot->rows_per_ngram));
    return hot->hand++;
}

void embla_hot_insert(embla_hot *hot, const int64_t *rows, const char *bytes)
{
    if (hot->fixed == hot->most ||
        (hot->rows_per_ngram == 1 && !embla_store_holds(hot->store, *rows)))
        return;
    if (hot->slots[find_slot(hot, rows)] != 0) return;
    size_t entry = next_entry(hot);
    memcpy(hot->rows + entry * hot->rows_per_ngram, rows, hot->rows_per_ngram * sizeof *rows);
    hot->touched[entry] = 0;
    hot->slots[find_slot(hot, rows)] = (uint32_t)entry + 1;
    memcpy(hot->entries + entry * hot->entry_bytes, bytes, hot->entry_bytes);
}

void embla_hot_count(embla_hot *hot, int64_t *rows, int64_t *bytes)
{
    embla_hot_lock(hot);
    *rows = (int64_t)(hot->used * hot->rows_per_ngram);
    *bytes = (int64_t)hot->bytes;
    embla_hot_unlock(hot);
}

/* ---- fixed rows ---- */

typedef struct {
    embla_hot *hot;
    const embla_store *store;
} adding;

/* Adds rows to the fixed set, without their bytes. A row list is enough when the set is full. */
static embla_status add_fixed(void *context, const int64_t *rows, size_t count, bool *enough)
{
    const adding *a = context;
    embla_hot *hot = a->hot;
    size_t most = hot->most - hot->most / 8;
    EMBLA_TRY(embla_lookup_check_rows(rows, count, a->store->rows, "hot row"));
    for (size_t i = 0; i < count && hot->used < most; i += hot->rows_per_ngram) {
        /* one list serves all ranks */
        if (hot->rows_per_ngram == 1 && !embla_store_holds(a->store, rows[i])) continue;
        size_t at = find_slot(hot, rows + i);
        if (hot->slots[at] != 0) continue;
        memcpy(hot->rows + hot->used++ * hot->rows_per_ngram, rows + i,
               hot->rows_per_ngram * sizeof *rows);
        hot->slots[at] = (uint32_t)hot->used;
    }
    *enough = hot->used == most;
    return EMBLA_OK;
}

static embla_status read_fixed(embla_hot *hot, const embla_store *store)
{
    embla_row_part part;
    hot->fixed = hot->hand = hot->used;
    if (hot->fixed == 0) return EMBLA_OK;
    EMBLA_TRY(embla_row_part_of(&store->row, 0, 0, &part));
    const embla_row_source source = embla_store_source(store);
    const embla_read_job job = {.rows = hot->rows,
                                .count = hot->fixed * hot->rows_per_ngram,
                                .known = hot->fixed * hot->rows_per_ngram,
                                .part = &part,
                                .out = hot->entries,
                                .out_stride = hot->row_bytes};
    EMBLA_TRY(embla_source_read(&source, &job));
    return embla_source_check(&source);
}

/* ---- open, close ---- */

static embla_status seed(embla_hot *hot, const embla_store *store, const embla_tickets_options *o)
{
    adding a = {.hot = hot, .store = store};
    bool enough = false;
    if (o->hot_count > 0) EMBLA_TRY(add_fixed(&a, o->hot_rows, o->hot_count, &enough));
    if (o->hot_file && !enough)
        EMBLA_TRY(embla_row_list_read(o->hot_file, hot->rows_per_ngram, add_fixed, &a));
    return read_fixed(hot, store);
}

embla_status embla_hot_open(const embla_store *store, const embla_tickets_options *o,
                            embla_hot **out)
{
    places p;
    void *memory = NULL;
    size_t rows_per_ngram = o->hot_rows_per_ngram > 0 ? o->hot_rows_per_ngram : 1,
           row_bytes = store->row.bytes;
    if (rows_per_ngram > EMBLA_HOT_GROUP || o->hot_count % rows_per_ngram != 0)
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "hot_rows_per_ngram is %zu and hot_count is %zu; n-grams have 1 to %d rows, and "
            "hot_count must be a multiple of them",
            rows_per_ngram, o->hot_count, EMBLA_HOT_GROUP);
    if (rows_per_ngram > 1 && store->held < store->rows)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "hot_rows_per_ngram is %zu, but the store has %" PRId64 " of %" PRId64
                          " rows: an n-gram may have rows elsewhere; use 0, hot rows one by one",
                          rows_per_ngram, store->held, store->rows);
    size_t most = fit(o->hot_bytes, rows_per_ngram, row_bytes, store->held, &p);
    if (most == 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "hot_bytes is %zu, too few for %zu rows of %zu bytes and their index",
                          o->hot_bytes, rows_per_ngram, row_bytes);
    EMBLA_TRY(embla_mem_new(p.bytes, "hot rows", &memory));
    char *base = memory;
    embla_hot *hot = (void *)(base + p.self);
    *hot = (embla_hot){.store = store,
                       .bytes = p.bytes,
                       .rows_per_ngram = rows_per_ngram,
                       .row_bytes = row_bytes,
                       .code_bytes = store->row.code_bytes,
                       .entry_bytes = rows_per_ngram * row_bytes,
                       .most = most,
                       .bits = p.bits,
                       .slots = (void *)(base + p.slots),
                       .rows = (void *)(base + p.rows),
                       .touched = (void *)(base + p.touched),
                       .entries = base + p.entries};
    embla_status status = seed(hot, store, o);
    if (status != EMBLA_OK) {
        embla_hot_close(hot);
        return status;
    }
    *out = hot;
    return EMBLA_OK;
}

void embla_hot_close(embla_hot *hot)
{
    if (!hot) return;
    embla_mem_free(hot, hot->bytes);
}
