/* SPDX-License-Identifier: Apache-2.0 */
/* The best rows so far: a heap of fixed capacity with the worst kept row at its root.
 *
 * There is one order for all lists of best rows: the higher score first, and of equal scores the
 * lower row number first. What is kept depends on scores and row numbers alone, never on the order
 * in which rows are added, so any number of threads keeps the same rows. Memory is the caller's.
 */
#ifndef EMBLA_BASE_BEST_H
#define EMBLA_BASE_BEST_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row number (or a token) and its score, which is not NaN. */
typedef struct {
    int64_t row;
    double score;
} embla_scored;

typedef struct {
    embla_scored *items;
    size_t count, room;
} embla_best;

static inline bool embla_is_better(embla_scored a, embla_scored b)
{
    return a.score > b.score || (a.score == b.score && a.row < b.row);
}

/* Scores below this are not added. */
static inline double embla_best_least(const embla_best *best)
{
    return best->count < best->room ? -HUGE_VAL : best->items[0].score;
}

/* Moves item down from the root of the heap until both items below it are better. */
static inline void embla_best_sift_down(embla_scored *items, size_t count, embla_scored item)
{
    size_t at = 0;
    for (size_t below = 1; below < count; below = 2 * at + 1) {
        if (below + 1 < count && embla_is_better(items[below], items[below + 1])) below++;
        if (!embla_is_better(item, items[below])) break;
        items[at] = items[below];
        at = below;
    }
    items[at] = item;
}

/* Adds item if there is room, or in place of the worst item if it is better than that. */
static inline void embla_best_add(embla_best *best, embla_scored item)
{
    embla_scored *items = best->items;
    if (best->count == best->room) {
        if (best->room > 0 && embla_is_better(item, items[0]))
            embla_best_sift_down(items, best->count, item);
        return;
    }
    size_t at = best->count++;
    for (size_t above; at > 0; at = above) {
        above = (at - 1) / 2;
        if (!embla_is_better(items[above], item)) break;
        items[at] = items[above];
    }
    items[at] = item;
}

/* Adds all items of other. */
static inline void embla_best_join(embla_best *best, const embla_best *other)
{
    for (size_t i = 0; i < other->count; i++) embla_best_add(best, other->items[i]);
}

/* Sorts the items, the best first. Nothing can be added after this. */
static inline void embla_best_sort(embla_best *best)
{
    for (size_t left = best->count; left > 1; left--) {
        embla_scored worst = best->items[0];
        embla_best_sift_down(best->items, left - 1, best->items[left - 1]);
        best->items[left - 1] = worst;
    }
}

/* ---- the best items one by one: cheaper than sorting if few are wanted ---- */

/* Moves item down from `at` until both items below it are worse. */
static inline void embla_best_settle(embla_scored *items, size_t count, size_t at,
                                     embla_scored item)
{
    for (size_t below = 2 * at + 1; below < count; below = 2 * at + 1) {
        if (below + 1 < count && embla_is_better(items[below + 1], items[below])) below++;
        if (!embla_is_better(items[below], item)) break;
        items[at] = items[below];
        at = below;
    }
    items[at] = item;
}

/* Turns the heap around, with the best item at its root. Nothing can be added after this. */
static inline void embla_best_turn(embla_best *best)
{
    for (size_t at = best->count / 2; at-- > 0;)
        embla_best_settle(best->items, best->count, at, best->items[at]);
}

/* Takes the best item out of the first `left` items of a heap that was turned, and puts it behind
 * them: after n calls the n best are at the end, the best one last. */
static inline void embla_best_take(embla_best *best, size_t left)
{
    embla_scored first = best->items[0];
    embla_best_settle(best->items, left - 1, 0, best->items[left - 1]);
    best->items[left - 1] = first;
}

#endif
