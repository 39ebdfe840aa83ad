/* SPDX-License-Identifier: Apache-2.0 */
/* The most frequent n-grams of a text or of a trace, as lists of row numbers.
 *
 * An n-gram is known by its row numbers: all hashes of one order have their own. Each order has a
 * hash table: a 64-bit key of the row numbers, a count, and the token where it occurred first. Two
 * n-grams with one key (one pair in 2^64) count as one. When all tokens are counted, the row
 * numbers of the most frequent ones are computed or read once more, at the token where they were.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/stop.h"
#include "checkpoint/checkpoint.h"
#include "ngram/ngram.h"

enum { BLOCK = 4096, FIRST_BITS = 12, COLUMNS_MOST = 1024 };

typedef struct {
    uint64_t key;   /* 0 means free */
    uint32_t count; /* stops at UINT32_MAX */
    uint32_t token; /* index of the token */
} gram_seen;

/* The n-grams of one order. */
typedef struct {
    gram_seen *slots;
    unsigned bits;
    size_t used;
} gram_table;

typedef struct {
    const embla_frequent_options *o;
    embla_checkpoint *trace;
    const char *tensor; /* of the trace */
    size_t tokens, rows_per_token, rows_per_ngram, orders;
    size_t history; /* tokens before a token that its row numbers depend on */
    gram_table *table;
    int64_t *rows; /* BLOCK x rows_per_token */
} counter;

struct embla_frequent {
    size_t bytes; /* of this block, including the rows */
    size_t count, rows_per_ngram;
    int64_t *rows;
};

static size_t slots_bytes(const gram_table *t)
{
    return ((size_t)1 << t->bits) * sizeof *t->slots;
}

/* ---- row numbers ---- */

/* Row numbers of tokens first .. first+count-1. */
static embla_status read_rows(const counter *c, size_t first, size_t count)
{
    const embla_frequent_options *o = c->o;
    size_t row = c->rows_per_token * sizeof *c->rows;
    int32_t before[EMBLA_NGRAM_ORDERS_MOST];
    if (c->trace)
        return embla_checkpoint_read(c->trace, c->tensor, (int64_t)(first * row), count * row,
                                     c->rows);
    for (size_t i = 0; i < c->history; i++)
        before[i] = first + i >= c->history ? o->tokens[first + i - c->history] : -1;
    const embla_ngram_options options = {.history = c->history > 0 ? before : NULL, .threads = 1};
    return embla_ngram_rows(o->ngram, o->tokens + first, 1, count, &options, c->rows);
}

/* ---- counting ---- */

/* 0 is for free slots. */
static uint64_t key_of(const int64_t *rows, size_t rows_per_ngram)
{
    uint64_t key = embla_hash_rows(rows, rows_per_ngram);
    return key != 0 ? key : 1;
}

static gram_seen *find(const gram_table *t, uint64_t key)
{
    size_t mask = ((size_t)1 << t->bits) - 1, at = (size_t)(key >> (64 - t->bits));
    while (t->slots[at].key != 0 && t->slots[at].key != key) at = (at + 1) & mask;
    return &t->slots[at];
}

static embla_status grow(gram_table *t)
{
    gram_table larger = {.bits = t->bits + 1, .used = t->used};
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(slots_bytes(&larger), "the n-grams of a text", &memory));
    larger.slots = memory;
    for (size_t i = 0; i < (size_t)1 << t->bits; i++)
        if (t->slots[i].key != 0) *find(&larger, t->slots[i].key) = t->slots[i];
    embla_mem_free(t->slots, slots_bytes(t));
    *t = larger;
    return EMBLA_OK;
}

static embla_status count_token(counter *c, size_t token, const int64_t *rows)
{
    for (size_t n = 0; n < c->orders; n++) {
        gram_table *t = &c->table[n];
        if (t->used >= (size_t)1 << (t->bits - 1)) EMBLA_TRY(grow(t));
        uint64_t key = key_of(rows + n * c->rows_per_ngram, c->rows_per_ngram);
        gram_seen *s = find(t, key);
        if (s->key == 0) {
            *s = (gram_seen){.key = key, .token = (uint32_t)token};
            t->used++;
        }
        if (s->count < UINT32_MAX) s->count++;
    }
    return EMBLA_OK;
}

static embla_status count_all(counter *c)
{
    for (size_t i = 0; i < c->tokens; i += BLOCK) {
        size_t n = c->tokens - i < BLOCK ? c->tokens - i : BLOCK;
        EMBLA_TRY(read_rows(c, i, n));
        for (size_t k = 0; k < n; k++)
            EMBLA_TRY(count_token(c, i + k, c->rows + k * c->rows_per_token));
        EMBLA_TRY(embla_progress_report(c->o->progress, c->o->context, "count", (int64_t)(i + n),
                                        (int64_t)c->tokens));
    }
    return EMBLA_OK;
}

/* ---- choosing ---- */

typedef struct {
    uint32_t count, token;
    uint32_t order;
} frequent_gram;

/* The more frequent one first; of equally frequent ones, the shorter, then the earlier. */
static int by_count(const void *a, const void *b)
{
    const frequent_gram *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

/* Lists the n-grams of one order; keeps the max_ngrams most frequent. Returns how many. */
static size_t choose(const counter *c, size_t n, frequent_gram *out)
{
    const gram_table *t = &c->table[n];
    size_t found = 0;
    for (size_t i = 0; i < (size_t)1 << t->bits; i++)
        if (t->slots[i].key != 0)
            out[found++] = (frequent_gram){
                .count = t->slots[i].count, .token = t->slots[i].token, .order = (uint32_t)n};
    qsort(out, found, sizeof *out, by_count);
    return found < c->o->max_ngrams ? found : c->o->max_ngrams;
}

static embla_status new_result(size_t count, size_t rows_per_ngram, embla_frequent **out)
{
    void *memory = NULL;
    uint64_t all = 64 + (uint64_t)count * rows_per_ngram * sizeof(int64_t); /* no overflow */
    size_t bytes = embla_size_most(all);
    EMBLA_TRY(embla_mem_many(all, 1, "frequent n-grams", &memory));
    embla_frequent *f = memory;
    *f = (embla_frequent){.bytes = bytes,
                          .count = count,
                          .rows_per_ngram = rows_per_ngram,
                          .rows = (int64_t *)(void *)((char *)memory + 64)};
    *out = f;
    return EMBLA_OK;
}

static embla_status make_result(counter *c, embla_frequent **out)
{
    size_t all = 0, kept = 0, bytes;
    void *memory = NULL;
    for (size_t n = 0; n < c->orders; n++) all += c->table[n].used;
    bytes = (all + 1) * sizeof(frequent_gram);
    EMBLA_TRY(embla_mem_new(bytes, "frequent n-grams", &memory));
    frequent_gram *list = memory;
    for (size_t n = 0; n < c->orders; n++) kept += choose(c, n, list + kept);
    qsort(list, kept, sizeof *list, by_count);
    embla_status status = new_result(kept, c->rows_per_ngram, out);
    for (size_t i = 0; i < kept && status == EMBLA_OK; i++) {
        status = read_rows(c, list[i].token, 1);
        memcpy((*out)->rows + i * c->rows_per_ngram, c->rows + list[i].order * c->rows_per_ngram,
               c->rows_per_ngram * sizeof *c->rows);
    }
    embla_mem_free(memory, bytes);
    return status;
}

/* ---- open ---- */

static embla_status open_trace(counter *c)
{
    size_t count;
    EMBLA_TRY(embla_checkpoint_open(c->o->trace, NULL, &c->trace));
    if (strcmp(c->trace->format->name, "npy") != 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s has format %s; a trace is an npy file",
                          c->o->trace, c->trace->format->name);
    const embla_tensor *t = embla_checkpoint_tensors(c->trace, &count); /* an npy file has one */
    if (strcmp(t->type, "I64") != 0 || t->rank != 2 || t->shape[1] < 1 ||
        t->shape[1] > COLUMNS_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s has %zu dimensions of %s; a trace is an npy file of I64 with 2 "
                          "dimensions, the second at most %d",
                          c->o->trace, t->rank, t->type, COLUMNS_MOST);
    c->tensor = t->name;
    c->tokens = (size_t)t->shape[0];
    c->rows_per_token = (size_t)t->shape[1];
    return EMBLA_OK;
}

static embla_status open_counter(counter *c)
{
    embla_ngram_info info = {0};
    void *memory = NULL;
    if (c->o->ngram) EMBLA_TRY(embla_ngram_describe(c->o->ngram, &info));
    if (c->o->trace) {
        EMBLA_TRY(open_trace(c));
    } else {
        c->tokens = c->o->length;
        c->rows_per_token = info.rows_per_token;
        c->history = info.history;
    }
    c->rows_per_ngram =
        c->o->rows_per_ngram > 0 ? c->o->rows_per_ngram : (size_t)info.rows_per_ngram;
    if (c->rows_per_ngram < 1 || c->rows_per_token % c->rows_per_ngram != 0 ||
        c->tokens > UINT32_MAX)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%zu tokens with %zu row numbers each, in n-grams of %zu; the first must "
                          "be below 2^32, the second a multiple of the third: set rows_per_ngram",
                          c->tokens, c->rows_per_token, c->rows_per_ngram);
    c->orders = c->rows_per_token / c->rows_per_ngram;
    EMBLA_TRY(embla_mem_new(c->orders * sizeof *c->table, "orders", &memory));
    c->table = memory;
    for (size_t n = 0; n < c->orders; n++) {
        c->table[n].bits = FIRST_BITS;
        EMBLA_TRY(embla_mem_new(slots_bytes(&c->table[n]), "the n-grams of a text", &memory));
        c->table[n].slots = memory;
    }
    EMBLA_TRY(embla_mem_new(BLOCK * c->rows_per_token * sizeof *c->rows, "row numbers", &memory));
    c->rows = memory;
    return EMBLA_OK;
}

static void close_counter(counter *c)
{
    for (size_t n = 0; c->table && n < c->orders; n++)
        if (c->table[n].slots) embla_mem_free(c->table[n].slots, slots_bytes(&c->table[n]));
    if (c->table) embla_mem_free(c->table, c->orders * sizeof *c->table);
    if (c->rows) embla_mem_free(c->rows, BLOCK * c->rows_per_token * sizeof *c->rows);
    embla_checkpoint_free(c->trace);
}

embla_status embla_frequent_new(const embla_frequent_options *options, embla_frequent **out)
{
    counter c = {.o = options};
    embla_frequent *made = NULL;
    EMBLA_TRY(embla_options_check(options));
    EMBLA_NEED(options);
    EMBLA_NEED(out);
    if (!options->trace && (!options->ngram || (options->length > 0 && !options->tokens)))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "embla_frequent_new: %s is NULL for a text of %zu tokens",
                          options->ngram ? "tokens" : "ngram", options->length);
    embla_status status = open_counter(&c);
    if (status == EMBLA_OK) status = count_all(&c);
    if (status == EMBLA_OK) status = make_result(&c, &made);
    close_counter(&c);
    if (status != EMBLA_OK) {
        embla_frequent_free(made);
        return status;
    }
    *out = made;
    return EMBLA_OK;
}

const int64_t *embla_frequent_rows(const embla_frequent *frequent, size_t *count,
                                   size_t *rows_per_ngram)
{
    if (count) *count = frequent ? frequent->count : 0;
    if (rows_per_ngram) *rows_per_ngram = frequent ? frequent->rows_per_ngram : 0;
    return frequent ? frequent->rows : NULL;
}

void embla_frequent_free(embla_frequent *frequent)
{
    if (frequent) embla_mem_free(frequent, frequent->bytes);
}
