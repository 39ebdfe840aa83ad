/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a double array from sorted keys. A node is a range of keys that agree in their first
 * `depth` bytes; open nodes are on a stack. The cells of a node's children are searched from
 * `cursor` on, which moves past regions that are nearly full.
 */
#include "tokenizer/trie.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/grow.h"

typedef struct {
    uint32_t state, depth;
    size_t begin, end; /* keys */
} node;

typedef struct {
    embla_trie *trie;
    const embla_trie_key *keys;
    size_t room, value_room, cursor;
    node *open; /* a stack */
    size_t open_count, open_room;
    uint8_t labels[256]; /* of the node's children, ascending */
    size_t starts[257];  /* the first key of each */
    size_t children;
} builder;

static int compare(const void *left, const void *right)
{
    const embla_trie_key *a = left, *b = right;
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = shorter > 0 ? memcmp(a->bytes, b->bytes, shorter) : 0;
    if (order != 0) return order;
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

/* Extends the cells to at least `need`. New ones are free. */
static embla_status extend(builder *b, size_t need)
{
    embla_trie *trie = b->trie;
    if (need <= trie->count) return EMBLA_OK;
    if (need >= EMBLA_TRIE_ENDS - 1024)
        return embla_fail(EMBLA_ERR_FORMAT, "a vocabulary needs %zu nodes; the limit is %" PRIu32,
                          need, EMBLA_TRIE_ENDS - 1024);
    EMBLA_TRY(embla_grow(&trie->cells, &b->room, trie->count, need, sizeof *trie->cells,
                         "the nodes of a vocabulary"));
    EMBLA_TRY(embla_grow(&trie->values, &b->value_room, trie->count, b->room, sizeof *trie->values,
                         "the values of a vocabulary"));
    for (size_t i = trie->count; i < b->room; i++)
        trie->cells[i] = (embla_trie_cell){0, EMBLA_TRIE_FREE};
    trie->count = b->room;
    return EMBLA_OK;
}

/* Lists the different bytes after the first `depth`; keys that end there are skipped. */
static void list_children(builder *b, node *n)
{
    int last = -1;
    b->children = 0;
    while (n->begin < n->end && b->keys[n->begin].length == n->depth) n->begin++;
    for (size_t i = n->begin; i < n->end; i++) {
        uint8_t c = (uint8_t)b->keys[i].bytes[n->depth];
        if (c == last) continue;
        last = c;
        b->labels[b->children] = c;
        b->starts[b->children++] = i;
    }
    b->starts[b->children] = n->end;
}

static bool all_free(const builder *b, size_t base)
{
    for (size_t i = 0; i < b->children; i++)
        if (b->trie->cells[base + b->labels[i]].check != EMBLA_TRIE_FREE) return false;
    return true;
}

/* Finds a base for which the cells of all children are free. */
static embla_status find_base(builder *b, uint32_t *out)
{
    size_t at = b->cursor, used = 0;
    for (;; at++) {
        EMBLA_TRY(extend(b, at + 512));
        if (b->trie->cells[at].check != EMBLA_TRIE_FREE) {
            used++;
            continue;
        }
        if (used == at - b->cursor) b->cursor = at, used = 0; /* no free cell before this one */
        if (all_free(b, at - b->labels[0])) break;
        if (at - b->cursor > 4096) b->cursor = at - 2048, used = 0; /* give up what is behind */
    }
    *out = (uint32_t)(at - b->labels[0]);
    return EMBLA_OK;
}

static embla_status place_children(builder *b, const node *n)
{
    uint32_t base = 0;
    EMBLA_TRY(find_base(b, &base));
    EMBLA_TRY(embla_grow(&b->open, &b->open_room, b->open_count, b->open_count + b->children,
                         sizeof *b->open, "open nodes"));
    b->trie->cells[n->state].base |= base;
    for (size_t i = 0; i < b->children; i++) {
        const uint32_t cell = base + b->labels[i];
        const embla_trie_key *first = &b->keys[b->starts[i]];
        size_t last = b->starts[i];
        b->trie->cells[cell].check = n->state;
        while (last + 1 < b->starts[i + 1] && b->keys[last + 1].length == n->depth + 1) last++;
        if (first->length == n->depth + 1) {
            b->trie->cells[cell].base = EMBLA_TRIE_ENDS;
            b->trie->values[cell] = b->keys[last].value;
        }
        b->open[b->open_count++] = (node){cell, n->depth + 1, b->starts[i], b->starts[i + 1]};
    }
    return EMBLA_OK;
}

static embla_status build(builder *b, size_t count)
{
    EMBLA_TRY(extend(b, 1024));
    b->cursor = 256; /* so that no base is negative */
    EMBLA_TRY(embla_grow(&b->open, &b->open_room, 0, 1, sizeof *b->open, "open nodes"));
    b->open[b->open_count++] = (node){0, 0, 0, count};
    while (b->open_count > 0) {
        node n = b->open[--b->open_count];
        list_children(b, &n);
        if (b->children > 0) EMBLA_TRY(place_children(b, &n));
    }
    return EMBLA_OK;
}

embla_status embla_trie_build(embla_trie *trie, embla_trie_key *keys, size_t count)
{
    builder b = {.trie = trie, .keys = keys};
    *trie = (embla_trie){0};
    if (count > 1) qsort(keys, count, sizeof *keys, compare);
    embla_status status = build(&b, count);
    embla_mem_free(b.open, b.open_room * sizeof *b.open);
    if (status == EMBLA_OK) return EMBLA_OK;
    embla_mem_free(trie->cells, b.room * sizeof *trie->cells);
    embla_mem_free(trie->values, b.value_room * sizeof *trie->values);
    *trie = (embla_trie){0};
    return status;
}

void embla_trie_free(embla_trie *trie)
{
    embla_mem_free(trie->cells, trie->count * sizeof *trie->cells);
    embla_mem_free(trie->values, trie->count * sizeof *trie->values);
    *trie = (embla_trie){0};
}
