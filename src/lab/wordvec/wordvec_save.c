/* SPDX-License-Identifier: Apache-2.0 */
/* Saves the state of a training, loads it, and writes the result.
 *
 * A state has the rows of words as inputs and as outputs, those of n-grams, and as metadata the
 * options, the text's checksum and the step. The words are not saved: the text has them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/checksum.h"
#include "base/finite.h"
#include "base/json_text.h"
#include "checkpoint/saved.h"
#include "checkpoint/vocab.h"
#include "files/durable.h"
#include "wordvec/wordvec.h"

#define KEY_MARK "embla_wordvec"
#define KEY_STEP "step"

enum { PAIRS_MOST = 24, TEXT = 64 };

/* ---- metadata ---- */

typedef struct {
    embla_arena *arena;
    embla_pair pairs[PAIRS_MOST];
    size_t count;
} pair_list;

__attribute__((format(printf, 3, 4))) static embla_status add_pair(pair_list *l, const char *key,
                                                                   const char *format, ...)
{
    char text[TEXT];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    embla_pair *pair = &l->pairs[l->count++];
    pair->key = key;
    return embla_arena_text(l->arena, text, length > 0 ? (size_t)length : 0, &pair->value);
}

static embla_status add_real(pair_list *l, const char *key, double value)
{
    char digits[EMBLA_JSON_DIGITS];
    embla_json_digits(value, 17, digits); /* the same in every locale */
    return add_pair(l, key, "%s", digits);
}

/* Everything that must be equal to continue a training. */
static embla_status list_settings(const embla_wordvec *w, pair_list *l)
{
    const embla_wordvec_options *o = &w->options;
    char sum[EMBLA_SUM_TEXT];
    embla_sum_text((embla_checksum){w->counts.sum[0], w->counts.sum[1]}, sum);
    EMBLA_TRY(add_pair(l, KEY_MARK, "1"));
    EMBLA_TRY(add_pair(l, "text", "%s", sum));
    EMBLA_TRY(add_pair(l, "text bytes", "%" PRIu64, w->reading.size));
    EMBLA_TRY(add_pair(l, "kind", "%s", embla_wordvec_kind_name(o->kind)));
    EMBLA_TRY(add_pair(l, "clean", "%s", embla_wordvec_clean_name(o->clean)));
    EMBLA_TRY(add_pair(l, "dim", "%zu", o->dim));
    EMBLA_TRY(add_pair(l, "window", "%zu", o->window));
    EMBLA_TRY(add_pair(l, "negatives", "%zu", o->negatives));
    EMBLA_TRY(add_pair(l, "epochs", "%zu", o->epochs));
    EMBLA_TRY(add_real(l, "rate", o->rate));
    EMBLA_TRY(add_real(l, "sample", o->sample));
    EMBLA_TRY(add_pair(l, "min_count", "%" PRId64, o->min_count));
    EMBLA_TRY(add_pair(l, "max_words", "%" PRId64, o->max_words));
    EMBLA_TRY(add_real(l, "phrases", o->phrases));
    EMBLA_TRY(add_pair(l, "subwords", "%zu-%zu", o->min_gram, o->max_gram));
    EMBLA_TRY(add_pair(l, "buckets", "%" PRId64, o->max_gram > 0 ? o->buckets : 0));
    EMBLA_TRY(add_pair(l, "seed", "%" PRIu64, o->seed));
    EMBLA_TRY(add_pair(l, "hogwild", "%d", o->hogwild));
    return add_pair(l, "blocks of a step", "%" PRId64, w->per_step);
}

/* The tensors of a state: rows with their padding. */
static embla_status list_tensors(const embla_wordvec *w, embla_saved *v)
{
    size_t stride = w->context.stride;
    EMBLA_TRY(embla_saved_begin(v, 3));
    EMBLA_TRY(embla_saved_add(v, "input", EMBLA_F32, w->lexicon.count, stride, w->context.input));
    EMBLA_TRY(embla_saved_add(v, "output", EMBLA_F32, w->lexicon.count, stride, w->context.output));
    if (!w->context.grams) return EMBLA_OK;
    return embla_saved_add(v, "grams", EMBLA_F32, w->grams.count, stride, w->grams.values);
}

/* ---- saving ---- */

embla_status embla_wordvec_save(const embla_wordvec *wordvec, const char *path)
{
    const embla_wordvec *w = wordvec;
    EMBLA_NEED(wordvec);
    EMBLA_NEED(path);
    if (w->torn)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a load into these words failed halfway; they cannot be saved");
    embla_saved v = {0};
    pair_list l = {.arena = &v.arena};
    embla_status status = list_settings(w, &l);
    if (status == EMBLA_OK) status = add_pair(&l, KEY_STEP, "%" PRId64, w->step);
    if (status == EMBLA_OK) status = list_tensors(w, &v);
    if (status == EMBLA_OK) status = embla_saved_write(&v, l.pairs, l.count, path);
    embla_arena_free(&v.arena);
    return status;
}

/* ---- loading ---- */

/* The settings of the file must be ours; the message has the first that is not. */
static embla_status compare_settings(const pair_list *ours, const embla_directory *d,
                                     const char *path)
{
    if (!embla_saved_value(d, KEY_MARK))
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s is not a saved training of words", path);
    for (size_t i = 0; i < ours->count; i++) {
        const char *key = ours->pairs[i].key, *value = embla_saved_value(d, key);
        if (value && strcmp(value, ours->pairs[i].value) == 0) continue;
        if (strncmp(key, "text", 4) == 0)
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "%.200s is of another text: its %s is %.64s, not %.64s", path,
                              strcmp(key, "text") == 0 ? "checksum" : "number of bytes",
                              value ? value : "missing", ours->pairs[i].value);
        return embla_fail(EMBLA_ERR_ARGUMENT, "%.200s was saved with %s %.64s, not %.64s", path,
                          key, value ? value : "missing", ours->pairs[i].value);
    }
    return EMBLA_OK;
}

static embla_status read_step(const embla_wordvec *w, const embla_directory *d, const char *path,
                              int64_t *out)
{
    const char *text = embla_saved_value(d, KEY_STEP);
    char *end = NULL;
    long long step = text ? strtoll(text, &end, 10) : -1;
    if (text && *text && !*end && step >= 0 && step <= embla_wordvec_steps(w)) {
        *out = step;
        return EMBLA_OK;
    }
    return embla_fail(EMBLA_ERR_FORMAT, "%.200s: its step is %.32s; it must be 0 to %" PRId64, path,
                      text ? text : "missing", embla_wordvec_steps(w));
}

static embla_status load_all(embla_wordvec *w, const embla_checkpoint *cp, const char *path,
                             embla_saved *v)
{
    const embla_directory *d = &cp->shards[0].directory;
    pair_list l = {.arena = &v->arena};
    int64_t step;
    EMBLA_TRY(list_settings(w, &l));
    EMBLA_TRY(compare_settings(&l, d, path));
    EMBLA_TRY(read_step(w, d, path, &step));
    EMBLA_TRY(list_tensors(w, v));
    EMBLA_TRY(embla_saved_check(v, cp, path));
    w->torn = true; /* from here on rows change */
    EMBLA_TRY(embla_saved_copy(v, cp, path));
    w->torn = false;
    w->step = step;
    w->means_of = -1;
    return EMBLA_OK;
}

embla_status embla_wordvec_load(embla_wordvec *wordvec, const char *path)
{
    embla_wordvec *w = wordvec;
    embla_checkpoint *cp = NULL;
    embla_saved v = {0};
    EMBLA_NEED(wordvec);
    EMBLA_NEED(path);
    EMBLA_TRY(embla_saved_open(path, "a saved training of words", &cp));
    embla_status status = load_all(w, cp, path, &v);
    embla_arena_free(&v.arena);
    embla_checkpoint_free(cp);
    return status;
}

/* ---- the result ---- */

/* Rows without their padding. */
typedef struct {
    const char *values;
    size_t row_bytes, row_stride;
    size_t size; /* bytes of a number */
} rows_of;

static embla_status read_rows(void *context, uint64_t offset, size_t bytes, void *out)
{
    const rows_of *r = context;
    for (size_t done = 0; done < bytes;) {
        uint64_t row = (offset + done) / r->row_bytes, at = (offset + done) % r->row_bytes;
        size_t n = r->row_bytes - (size_t)at;
        if (n > bytes - done) n = bytes - done;
        memcpy((char *)out + done, r->values + row * r->row_stride + at, n);
        done += n;
    }
    embla_order_turn(out, r->size, bytes / r->size);
    return EMBLA_OK;
}

static embla_part part_of(const char *name, const char *type, uint64_t rows, size_t dim,
                          rows_of *from)
{
    bool vector = dim == 0;
    return (embla_part){.name = name,
                        .element = embla_element_safetensors(type, strlen(type)),
                        .rank = vector ? 1 : 2,
                        .shape = {rows, dim},
                        .bytes = rows * from->row_bytes,
                        .read = read_rows,
                        .context = from};
}

static embla_status write_rows(embla_wordvec *w, pair_list *l, embla_durable *file)
{
    const embla_table *table = NULL;
    const embla_format *format = NULL;
    size_t dim = w->options.dim, row = dim * sizeof(float),
           stride = w->context.stride * sizeof(float);
    EMBLA_TRY(embla_wordvec_table(w, &table));
    uint64_t words = (uint64_t)w->lexicon.count, grams = (uint64_t)w->grams.count;
    rows_of tokens = {embla_table_row(table, 0), row, stride, sizeof(float)};
    rows_of counts = {(const char *)w->lexicon.counts, sizeof(int64_t), sizeof(int64_t),
                      sizeof(int64_t)};
    rows_of subwords = {(const char *)w->grams.values, row, stride, sizeof(float)};
    rows_of buckets = {(const char *)w->grams.buckets, sizeof(int32_t), sizeof(int32_t),
                       sizeof(int32_t)};
    const embla_part parts[] = {part_of("embedding.weight", "F32", words, dim, &tokens),
                                part_of("counts", "I64", words, 0, &counts),
                                part_of("subwords", "F32", grams, dim, &subwords),
                                part_of("subword_buckets", "I32", grams, 0, &buckets)};
    const embla_contents contents = {.parts = parts,
                                     .count = w->context.grams ? 4 : 2,
                                     .pairs = l->pairs,
                                     .pair_count = l->count};
    EMBLA_TRY(embla_format_find("safetensors", &format));
    return format->write(file, &contents);
}

/* What the file says about itself. The names of n-grams' settings are fastText's. */
static embla_status list_result(const embla_wordvec *w, pair_list *l)
{
    const embla_wordvec_options *o = &w->options;
    EMBLA_TRY(list_settings(w, l));
    l->count--; /* blocks of a step */
    if (!w->context.grams) return EMBLA_OK;
    EMBLA_TRY(add_pair(l, "minn", "%zu", o->min_gram));
    EMBLA_TRY(add_pair(l, "maxn", "%zu", o->max_gram));
    return add_pair(l, "bucket", "%" PRId64, o->buckets);
}

/* Finds NAME.vocab.txt for NAME.safetensors; *replace becomes true if we wrote it before. */
static embla_status plan_words(const char *path, embla_arena *arena, const char **words,
                               bool *replace)
{
    EMBLA_TRY(embla_durable_target(path, true)); /* a folder, a link, a device */
    EMBLA_TRY(embla_vocab_beside(path, arena, words));
    EMBLA_TRY(embla_vocab_beside_check(*words, replace));
    return *replace ? embla_vocab_beside_alone(*words, path) : EMBLA_OK;
}

static embla_status write_both(embla_wordvec *w, const char *path, embla_arena *arena)
{
    embla_durable *file = NULL, *words = NULL;
    pair_list l = {.arena = arena};
    const char *words_path = NULL;
    bool replace = false;
    embla_status status = plan_words(path, arena, &words_path, &replace);
    if (status == EMBLA_OK) status = list_result(w, &l);
    if (status == EMBLA_OK) status = embla_durable_open(path, &file);
    if (status == EMBLA_OK) status = embla_durable_open(words_path, &words);
    if (status == EMBLA_OK) status = write_rows(w, &l, file);
    if (status == EMBLA_OK)
        status = embla_vocab_write(words, w->lexicon.names, (size_t)w->lexicon.count);
    if (status == EMBLA_OK) status = embla_durable_sync(file, NULL);
    if (status == EMBLA_OK) {
        status = replace ? embla_durable_commit(words) : embla_durable_commit_new(words);
        words = NULL;
    }
    if (status == EMBLA_OK) return embla_durable_commit(file);
    embla_durable_abandon(words);
    embla_durable_abandon(file);
    return status;
}

/* A rate that is too high makes rows grow without bound. */
embla_status embla_wordvec_check(embla_wordvec *wordvec)
{
    const embla_table *table = NULL;
    int64_t bad = 0;
    EMBLA_NEED(wordvec);
    EMBLA_TRY(embla_wordvec_table(wordvec, &table));
    for (int64_t row = 0; row < wordvec->lexicon.count; row++)
        bad += !embla_all_finite(embla_table_row(table, row), wordvec->options.dim);
    if (bad == 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_RANGE,
                      "%" PRId64 " of %" PRId64
                      " rows are NaN or infinite, so nothing is written; train again with a lower "
                      "rate than %g",
                      bad, wordvec->lexicon.count, wordvec->options.rate);
}

embla_status embla_wordvec_write(embla_wordvec *wordvec, const char *path)
{
    embla_wordvec *w = wordvec;
    embla_arena arena = {0};
    EMBLA_NEED(wordvec);
    EMBLA_NEED(path);
    EMBLA_TRY(embla_wordvec_check(w));
    embla_status status = write_both(w, path, &arena);
    embla_arena_free(&arena);
    return status;
}

embla_status embla_wordvec_write_check(const char *path)
{
    embla_arena arena = {0};
    const char *words = NULL;
    bool replace = false;
    EMBLA_NEED(path);
    embla_status status = plan_words(path, &arena, &words, &replace);
    embla_arena_free(&arena);
    return status;
}
