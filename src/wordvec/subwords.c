/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of words that a table does not have, from the rows of their n-grams. Rows stay in the
 * file and are read one at a time: a word has a few dozen n-grams.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "formats/saved.h"
#include "wordvec/grams.h"
#include "wordvec/reading.h"

struct embla_subwords {
    embla_arena arena;
    const embla_checkpoint *checkpoint;
    const embla_entry *rows;
    embla_gram_rule rule;
    uint64_t first;         /* the row of bucket 0, if all buckets have one (fastText) */
    const int32_t *buckets; /* of each row, ascending; NULL if all buckets have one */
    uint64_t count;         /* rows of n-grams */
    size_t dim;
};

/* ---- opening ---- */

/* An integer of the metadata; 0 if there is none. */
static int64_t number_of(const embla_directory *d, const char *key)
{
    const char *text = embla_saved_value(d, key);
    return text ? strtoll(text, NULL, 10) : 0;
}

static embla_status not_found(const embla_checkpoint *cp)
{
    return embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s has no rows of character n-grams (subwords)",
                      cp->shown);
}

/* fastText's .bin: the rows of buckets follow those of words in one matrix. */
static embla_status open_fasttext(embla_subwords *s)
{
    const embla_checkpoint *cp = s->checkpoint;
    const embla_directory *d = &cp->shards[0].directory;
    s->rows = &cp->entries[0];
    s->first = d->label_count;
    if (s->rows->shape[0] != s->first + (uint64_t)s->rule.buckets) return not_found(cp);
    s->count = (uint64_t)s->rule.buckets;
    return EMBLA_OK;
}

/* A file of embla_wordvec_write: only buckets that occur have a row. */
static embla_status open_own(embla_subwords *s)
{
    const embla_checkpoint *cp = s->checkpoint;
    const embla_entry *list = NULL;
    int32_t *buckets = NULL;
    if (embla_checkpoint_named(cp, "subwords", &s->rows) != EMBLA_OK ||
        embla_checkpoint_named(cp, "subword_buckets", &list) != EMBLA_OK)
        return not_found(cp);
    s->count = s->rows->shape[0];
    if (list->rank != 1 || list->shape[0] != s->count || list->bytes != s->count * sizeof *buckets)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: 'subword_buckets' has %" PRIu64
                          " bytes; 4 are needed for each of %" PRIu64 " rows",
                          cp->shown, list->bytes, s->count);
    EMBLA_TRY(embla_arena_many(&s->arena, s->count, sizeof *buckets, "buckets", &buckets));
    EMBLA_TRY(embla_entry_read(cp, list, 0, (size_t)list->bytes, buckets));
    for (uint64_t i = 1; i < s->count; i++)
        if (buckets[i] <= buckets[i - 1])
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: bucket %" PRIu64 " is %d, after %d; they must ascend",
                              cp->shown, i, (int)buckets[i], (int)buckets[i - 1]);
    s->buckets = buckets;
    return EMBLA_OK;
}

static embla_status open_rows(embla_subwords *s)
{
    const embla_checkpoint *cp = s->checkpoint;
    const embla_directory *d = &cp->shards[0].directory;
    int64_t least = number_of(d, "minn"), most = number_of(d, "maxn");
    s->rule.buckets = number_of(d, "bucket");
    if (cp->shard_count != 1 || cp->count == 0 || most < 1) return not_found(cp);
    if (least < 1 || least > most || most > EMBLA_GRAM_LONGEST || s->rule.buckets < 1 ||
        s->rule.buckets > INT32_MAX)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s has n-grams of %" PRId64 " to %" PRId64 " characters in %" PRId64
                          " buckets; 1 to %d characters and up to %d buckets are supported",
                          cp->shown, least, most, s->rule.buckets, EMBLA_GRAM_LONGEST, INT32_MAX);
    s->rule.least = (size_t)least;
    s->rule.most = (size_t)most;
    EMBLA_TRY(strcmp(cp->format->name, "fasttext") == 0 ? open_fasttext(s) : open_own(s));
    if (s->rows->rank != 2 || s->rows->element != embla_element_of(EMBLA_F32)) return not_found(cp);
    s->dim = (size_t)s->rows->shape[1];
    return EMBLA_OK;
}

embla_status embla_subwords_open(const embla_checkpoint *checkpoint, embla_subwords **out)
{
    void *memory = NULL;
    if (!checkpoint || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_subwords_open: %s is NULL",
                          checkpoint ? "out" : "the checkpoint");
    EMBLA_TRY(embla_mem_new(sizeof(embla_subwords), "subwords", &memory));
    embla_subwords *s = memory;
    s->checkpoint = checkpoint;
    embla_status status = open_rows(s);
    if (status != EMBLA_OK) {
        embla_subwords_free(s);
        return status;
    }
    *out = s;
    return EMBLA_OK;
}

void embla_subwords_free(embla_subwords *s)
{
    if (!s) return;
    embla_arena_free(&s->arena);
    embla_mem_free(s, sizeof *s);
}

size_t embla_subwords_dim(const embla_subwords *s)
{
    return s ? s->dim : 0;
}

/* ---- vectors ---- */

/* The row of a bucket. False if it has none. */
static bool find_row(const embla_subwords *s, int32_t bucket, uint64_t *out)
{
    uint64_t low = 0, high = s->count;
    *out = s->first + (uint64_t)bucket;
    if (!s->buckets) return true;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (s->buckets[middle] < bucket)
            low = middle + 1;
        else
            high = middle;
    }
    *out = low;
    return low < s->count && s->buckets[low] == bucket;
}

static embla_status add_rows(const embla_subwords *s, const int32_t *buckets, size_t count,
                             float *row, float *out, size_t *found)
{
    size_t bytes = s->dim * sizeof *row;
    for (size_t i = 0; i < count; i++) {
        uint64_t at;
        if (!find_row(s, buckets[i], &at)) continue;
        EMBLA_TRY(embla_entry_read(s->checkpoint, s->rows, at * bytes, bytes, row));
        for (size_t k = 0; k < s->dim; k++) out[k] += row[k];
        ++*found;
    }
    return EMBLA_OK;
}

embla_status embla_subwords_vector(const embla_subwords *s, const char *word, size_t length,
                                   float *out, size_t *grams)
{
    int32_t buckets[EMBLA_GRAMS_MOST];
    void *row = NULL;
    size_t found = 0;
    if (!s || !word || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_subwords_vector: %s is NULL",
                          !s      ? "the handle"
                          : !word ? "word"
                                  : "out");
    if (length > EMBLA_WORD_LONGEST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "the word has %zu bytes; the maximum is %d", length,
                          EMBLA_WORD_LONGEST);
    EMBLA_TRY(embla_mem_new(s->dim * sizeof(float), "a row", &row));
    for (size_t k = 0; k < s->dim; k++) out[k] = 0;
    size_t count = embla_grams_of(&s->rule, word, length, buckets);
    embla_status status = add_rows(s, buckets, count, row, out, &found);
    embla_mem_free(row, s->dim * sizeof(float));
    EMBLA_TRY(status);
    if (found == 0)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "'%.*s' has %zu n-grams, and %.200s has a row for none of them",
                          (int)length, word, count, s->checkpoint->shown);
    for (size_t k = 0; k < s->dim; k++) out[k] /= (float)(int)found;
    if (grams) *grams = found;
    return EMBLA_OK;
}
