/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of words that a table does not have, from the rows of their n-grams. */
#include "encoder/subwords.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "checkpoint/saved.h"
#include "table/row_mean.h"

/* ---- n-grams of a word ---- */

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* A byte as a signed number, as fastText has it. */
static uint32_t signed_byte(char c)
{
    uint32_t byte = (unsigned char)c;
    return byte < 0x80 ? byte : byte | UINT32_C(0xffffff00);
}

size_t embla_grams_of(const embla_gram_rule *rule, const char *word, size_t length,
                      int32_t out[EMBLA_GRAMS_MOST])
{
    char text[257 + 1];
    size_t count = 0, end = length + 2;
    text[0] = '<';
    memcpy(text + 1, word, length);
    text[length + 1] = '>';
    for (size_t i = 0; i < end; i++) {
        uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
        if (continues(text[i])) continue;
        for (size_t j = i, n = 1; j < end && n <= rule->most; n++) {
            do {
                hash = (hash ^ signed_byte(text[j])) * UINT32_C(16777619);
                j++;
            } while (j < end && continues(text[j]));
            if (n >= rule->least && !(n == 1 && (i == 0 || j == end)))
                out[count++] = (int32_t)(hash % (uint32_t)rule->buckets);
        }
    }
    return count;
}

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
static embla_status open_fasttext(embla_subwords *s, const embla_checkpoint *cp)
{
    const embla_directory *d = &cp->shards[0].directory;
    EMBLA_TRY(embla_table_open(cp, cp->entries[0].name, NULL, &s->table));
    s->first = (int64_t)d->label_count;
    s->count = s->rule.buckets;
    s->with_words = true;
    return embla_table_rows(s->table) == s->first + s->count ? EMBLA_OK : not_found(cp);
}

/* A file of embla_wordvec_write: only buckets that occur have a row. */
static embla_status open_own(embla_subwords *s, const embla_checkpoint *cp)
{
    const embla_entry *list = NULL, *rows = NULL;
    int32_t *buckets = NULL;
    if (embla_checkpoint_named(cp, "subwords", &rows) != EMBLA_OK ||
        embla_checkpoint_named(cp, "subword_buckets", &list) != EMBLA_OK)
        return not_found(cp);
    const uint64_t count = rows->shape[0];
    if (list->rank != 1 || list->shape[0] != count || list->bytes != count * sizeof *buckets)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: 'subword_buckets' has %" PRIu64
                          " bytes; 4 are needed for each of %" PRIu64 " rows",
                          cp->shown, list->bytes, count);
    EMBLA_TRY(embla_table_open(cp, "subwords", NULL, &s->table));
    s->count = embla_table_rows(s->table);
    EMBLA_TRY(embla_arena_many(&s->arena, count, sizeof *buckets, "buckets", &buckets));
    EMBLA_TRY(embla_entry_numbers(cp, list, sizeof *buckets, (size_t)count, buckets));
    for (uint64_t i = 1; i < count; i++)
        if (buckets[i] <= buckets[i - 1])
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: bucket %" PRIu64 " is %d, after %d; they must ascend",
                              cp->shown, i, (int)buckets[i], (int)buckets[i - 1]);
    s->buckets = buckets;
    return EMBLA_OK;
}

static embla_status open_rows(embla_subwords *s, const embla_checkpoint *cp)
{
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
    EMBLA_TRY(embla_arena_text(&s->arena, cp->shown, strlen(cp->shown), &s->name));
    EMBLA_TRY(strcmp(cp->format->name, "fasttext") == 0 ? open_fasttext(s, cp) : open_own(s, cp));
    if (embla_table_dtype(s->table) != EMBLA_F32 || embla_table_rows(s->table) > INT32_MAX)
        return not_found(cp);
    return EMBLA_OK;
}

embla_status embla_subwords_open(const embla_checkpoint *checkpoint, embla_subwords **out)
{
    void *memory = NULL;
    EMBLA_NEED(checkpoint);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_mem_new(sizeof(embla_subwords), "subwords", &memory));
    embla_subwords *s = memory;
    embla_status status = open_rows(s, checkpoint);
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
    embla_table_free(s->table);
    embla_arena_free(&s->arena);
    embla_mem_free(s, sizeof *s);
}

size_t embla_subwords_dim(const embla_subwords *s)
{
    return s ? embla_table_dim(s->table) : 0;
}

/* ---- vectors ---- */

/* The row of a bucket; -1 if it has none. */
static int64_t find_row(const embla_subwords *s, int32_t bucket)
{
    int64_t low = 0, high = s->count;
    if (!s->buckets) return s->first + bucket;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s->buckets[middle] < bucket)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->count && s->buckets[low] == bucket ? low : -1;
}

size_t embla_subwords_rows(const embla_subwords *s, const char *word, size_t length,
                           int32_t rows[EMBLA_GRAMS_MOST])
{
    size_t found = 0, count = embla_grams_of(&s->rule, word, length, rows);
    for (size_t i = 0; i < count; i++) {
        int64_t row = find_row(s, rows[i]);
        if (row >= 0) rows[found++] = (int32_t)row;
    }
    return found;
}

embla_status embla_subwords_vector(const embla_subwords *s, const char *word, size_t length,
                                   float *out, size_t *grams)
{
    int32_t rows[EMBLA_GRAMS_MOST];
    EMBLA_NEED_OF("embla_subwords_vector", "subwords", s);
    EMBLA_NEED(word);
    EMBLA_NEED(out);
    if (length > EMBLA_WORD_LONGEST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "the word has %zu bytes; the maximum is %d", length,
                          EMBLA_WORD_LONGEST);
    EMBLA_TRY(embla_table_check_file(s->table));
    size_t found = embla_subwords_rows(s, word, length, rows);
    if (found == 0)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "'%.*s' has no n-gram of %zu to %zu characters that %.200s has a row for",
                          (int)length, word, s->rule.least, s->rule.most, s->name);
    const embla_row_mean mean = embla_row_mean_of(s->table, embla_table_dim(s->table), NULL);
    embla_row_mean_write(&mean, rows, found, out);
    if (grams) *grams = found;
    return embla_table_check_file(s->table);
}
