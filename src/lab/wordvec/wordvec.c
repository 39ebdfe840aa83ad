/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the rows of words, and trains them step by step. */
#include "wordvec/wordvec.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "checkpoint/vocab.h"
#include "wordvec/window.h"

enum {
    BLOCK_MOST = 16 << 10, /* bytes of text */
    BLOCK_LEAST = 512,
    STEPS_WANTED = 128, /* of an epoch: shorter texts have smaller blocks */
    POOL_MOST = 1024,   /* negatives drawn for a block */
    POOL_SHARE = 16,    /* bytes of text for each of them */
    DIM_MOST = 1 << 14,
    DISTINCT_MOST = 1 << 24, /* words that are counted at the same time */
    HOGWILD_BLOCKS = 16,     /* blocks of a step for each thread */
    PROCESS = 12 << 20       /* bytes of a process with its libraries, about */
};
static const double rate_least = 1e-4; /* of the first rate */

/* ---- options ---- */

const char *embla_wordvec_kind_name(embla_wordvec_kind kind)
{
    static const char *const names[] = {"skipgram", "cbow"};
    return (unsigned)kind < 2 ? names[kind] : NULL;
}

const char *embla_wordvec_clean_name(embla_wordvec_clean clean)
{
    static const char *const names[] = {"plain", "words", "letters"};
    return (unsigned)clean < 3 ? names[clean] : NULL;
}

static embla_status check_size(const char *what, int64_t value, int64_t least, int64_t most)
{
    if (value >= least && value <= most) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT, "%s is %" PRId64 "; it must be %" PRId64 " to %" PRId64,
                      what, value, least, most);
}

static void fill_defaults(embla_wordvec_options *o)
{
    if (o->dim == 0) o->dim = 100;
    if (o->window == 0) o->window = 5;
    if (o->negatives == 0) o->negatives = 5;
    if (o->epochs == 0) o->epochs = 5;
    if (o->rate == 0) o->rate = 0.05;
    if (o->sample == 0) o->sample = 1e-4;
    if (o->sample < 0) o->sample = 0;
    if (o->min_count == 0) o->min_count = 5;
    if (o->max_words == 0) o->max_words = EMBLA_WORDS_MOST;
    if (o->buckets == 0) o->buckets = 2000000;
}

static embla_status check_options(const embla_wordvec_options *o)
{
    if (!embla_wordvec_kind_name(o->kind) || !embla_wordvec_clean_name(o->clean))
        return embla_fail(EMBLA_ERR_ARGUMENT, "kind is %d and clean is %d; the last are %d and %d",
                          (int)o->kind, (int)o->clean, (int)EMBLA_WORDVEC_CBOW,
                          (int)EMBLA_WORDVEC_CLEAN_LETTERS);
    EMBLA_TRY(embla_threads_check(o->threads));
    EMBLA_TRY(check_size("dim", (int64_t)o->dim, 1, DIM_MOST));
    EMBLA_TRY(check_size("window", (int64_t)o->window, 1, EMBLA_WINDOW_MOST));
    EMBLA_TRY(check_size("negatives", (int64_t)o->negatives, 1, EMBLA_NEGATIVES_MOST));
    EMBLA_TRY(check_size("epochs", (int64_t)o->epochs, 1, 1 << 20));
    EMBLA_TRY(check_size("min_count", o->min_count, 1, INT64_MAX));
    EMBLA_TRY(check_size("max_words", o->max_words, 1, EMBLA_WORDS_MOST));
    if (!(o->rate > 0) || !(o->rate <= 10))
        return embla_fail(EMBLA_ERR_ARGUMENT, "rate is %g; it must be above 0 and at most 10",
                          o->rate);
    if (!(o->sample >= 0) || !(o->sample <= 1))
        return embla_fail(EMBLA_ERR_ARGUMENT, "sample is %g; it must be 0 to 1", o->sample);
    if (!(o->phrases >= 0))
        return embla_fail(EMBLA_ERR_ARGUMENT, "phrases is %g; it must be 0 or more", o->phrases);
    if (o->max_gram == 0 && o->min_gram == 0) return EMBLA_OK;
    EMBLA_TRY(check_size("max_gram", (int64_t)o->max_gram, 1, EMBLA_GRAM_LONGEST));
    EMBLA_TRY(check_size("min_gram", (int64_t)o->min_gram, 1, (int64_t)o->max_gram));
    EMBLA_TRY(check_size("buckets", o->buckets, 1, INT32_MAX));
    if (o->hogwild)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "hogwild works without n-grams only; leave out one of them");
    return EMBLA_OK;
}

/* ---- words ---- */

/* Counts the words and chooses those that get rows. */
static embla_status find_words(embla_wordvec *w, const char *path)
{
    const embla_wordvec_options *o = &w->options;
    EMBLA_TRY(embla_reading_open(path, o->clean, &w->arena, &w->reading));
    if (o->phrases > 0) EMBLA_TRY(embla_phrases_find(&w->reading, DISTINCT_MOST, o, &w->phrases));
    EMBLA_TRY(embla_count_words(&w->reading, DISTINCT_MOST, o, &w->counts));
    embla_status status =
        embla_lexicon_make(w->counts.words, o->min_count, o->max_words, o->sample, &w->lexicon);
    size_t distinct = w->counts.words->count;
    embla_word_list_free(w->counts.words);
    w->counts.words = NULL;
    EMBLA_TRY(status);
    if (w->lexicon.count >= 2) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_SHAPE,
                      "%.256s has %" PRId64 " words, %zu different ones, and %" PRId64
                      " of these occur %" PRId64
                      " times or more; at least 2 are needed: use a longer text or a smaller "
                      "--min-count",
                      path, w->counts.tokens, distinct, w->lexicon.count, o->min_count);
}

/* Cuts the text into blocks and steps. This depends on its size alone. */
static void cut_text(embla_wordvec *w)
{
    embla_step_context *s = &w->context;
    int threads = embla_threads_for(w->options.threads, SIZE_MAX);
    uint64_t size = w->reading.size, block = size / ((uint64_t)STEPS_WANTED * EMBLA_STEP_PARTS);
    block = block > BLOCK_MOST ? BLOCK_MOST : block < BLOCK_LEAST ? BLOCK_LEAST : block;
    *s = (embla_step_context){.options = &w->options,
                              .reading = &w->reading,
                              .lexicon = &w->lexicon,
                              .grams = w->options.max_gram > 0 ? &w->grams : NULL,
                              .block = block,
                              .pool = (size_t)block / POOL_SHARE,
                              .stride = (w->options.dim + EMBLA_WINDOW_LANES - 1) /
                                        EMBLA_WINDOW_LANES * EMBLA_WINDOW_LANES};
    if (s->pool > POOL_MOST) s->pool = POOL_MOST;
    s->usual = (size_t)(w->lexicon.kept * (double)block / (double)size) + 1;
    w->part_count = w->options.hogwild ? (size_t)threads : EMBLA_STEP_PARTS;
    w->per_step = (int64_t)(w->options.hogwild ? w->part_count * HOGWILD_BLOCKS : w->part_count);
    uint64_t blocks = size / block + (size % block > 0);
    w->steps_of_epoch =
        (int64_t)(blocks / (uint64_t)w->per_step) + (blocks % (uint64_t)w->per_step > 0);
}

static embla_status list_grams(embla_wordvec *w)
{
    const embla_wordvec_options *o = &w->options;
    const embla_gram_rule rule = {o->min_gram, o->max_gram, o->buckets};
    if (!w->context.grams) return EMBLA_OK;
    return embla_grams_make(&rule, w->lexicon.names, (size_t)w->lexicon.count, &w->arena,
                            &w->grams);
}

/* ---- memory ---- */

/* Words that all parts together may change in a step, for the lists of a merge. */
static size_t merge_room(const embla_wordvec *w)
{
    uint64_t most = (uint64_t)EMBLA_STEP_PARTS * embla_step_part_words(&w->context);
    return most < (uint64_t)w->lexicon.count ? (size_t)most : (size_t)w->lexicon.count;
}

/* The bytes that training takes. */
static int64_t memory_of(const embla_wordvec *w)
{
    const embla_lexicon *l = &w->lexicon;
    uint64_t row = w->context.stride * sizeof(float), count = (uint64_t)l->count;
    uint64_t bytes = PROCESS + w->reading.size + 2 * count * row +
                     w->part_count * embla_step_part_bytes(&w->context);
    /* a word: its name, twice with the vocabulary's, an index entry, count, and two numbers */
    bytes += count * (2 * sizeof(embla_name) + 2 * sizeof(void *) + 20 + 16) +
             l->index->room * sizeof *l->index->words +
             l->index->slot_count * sizeof *l->index->slots;
    if (w->context.grams) {
        bytes += (uint64_t)w->grams.count * (row + 2 * sizeof(int32_t));
        bytes += w->grams.first[l->count] * sizeof(int32_t) + count * sizeof(uint64_t);
        uint64_t changed = (uint64_t)EMBLA_STEP_PARTS * w->context.usual;
        bytes += count * row + (changed < count ? changed : count) * (row + sizeof(int32_t));
    }
    return (int64_t)bytes;
}

static embla_status make_rows(embla_wordvec *w, int64_t rows, embla_table **out)
{
    const embla_table_options options = {.row_stride = w->context.stride * sizeof(float)};
    return embla_table_new(EMBLA_F32, rows, w->options.dim, &options, out);
}

/* Random rows: uniform up to 0.5 / dim as word2vec's; with n-grams 1 / dim as fastText's. */
static embla_status make_random(embla_wordvec *w, uint64_t seed, int64_t rows, embla_table **out)
{
    const embla_init_options init = {.seed = seed,
                                     .kind = EMBLA_INIT_XAVIER,
                                     .spread = (w->context.grams ? 1.0f : 0.5f) /
                                               (float)(int)w->options.dim,
                                     .threads = w->options.threads};
    EMBLA_TRY(make_rows(w, rows, out));
    return embla_table_init(*out, &init);
}

static embla_status make_merge(embla_wordvec *w)
{
    embla_merge *m = &w->merge;
    void *changes = NULL;
    m->room = merge_room(w);
    EMBLA_TRY(embla_arena_many(&w->arena, m->room, sizeof *m->tokens, "changed words", &m->tokens));
    EMBLA_TRY(embla_arena_many(&w->arena, (uint64_t)w->grams.count, sizeof *m->changed,
                               "changed n-grams", &m->changed));
    EMBLA_TRY(
        embla_mem_many(m->room, w->context.stride * sizeof(float), "changes of words", &changes));
    m->changes = changes;
    return EMBLA_OK;
}

static embla_status make_tables(embla_wordvec *w)
{
    int64_t words = w->lexicon.count;
    EMBLA_TRY(make_random(w, w->options.seed, words, &w->input));
    EMBLA_TRY(make_rows(w, words, &w->output));
    w->context.input = embla_table_data(w->input);
    w->context.output = embla_table_data(w->output);
    if (w->context.grams) {
        EMBLA_TRY(make_random(w, w->options.seed + 1, w->grams.count, &w->gram_rows));
        w->grams.values = embla_table_data(w->gram_rows);
        EMBLA_TRY(make_rows(w, words, &w->means));
        EMBLA_TRY(make_merge(w));
    }
    EMBLA_TRY(embla_arena_many(&w->arena, w->part_count, sizeof *w->parts, "parts", &w->parts));
    for (size_t i = 0; i < w->part_count; i++)
        EMBLA_TRY(embla_step_part_make(&w->context, &w->arena, &w->parts[i]));
    return EMBLA_OK;
}

/* ---- the handle ---- */

/* Counts words and lists n-grams, but makes no rows. */
static embla_status begin(const char *path, const embla_wordvec_options *options,
                          embla_wordvec **out)
{
    void *memory = NULL;
    EMBLA_TRY(embla_options_check(options));
    EMBLA_TRY(embla_mem_new(sizeof(embla_wordvec), "words", &memory));
    embla_wordvec *w = *out = memory;
    if (options) w->options = *options;
    w->means_of = -1;
    fill_defaults(&w->options);
    EMBLA_TRY(check_options(&w->options));
    EMBLA_TRY(find_words(w, path));
    cut_text(w);
    return list_grams(w);
}

embla_status embla_wordvec_new(const char *path, const embla_wordvec_options *options,
                               embla_wordvec **out)
{
    embla_wordvec *w = NULL;
    EMBLA_NEED(path);
    EMBLA_NEED(out);
    embla_status status = begin(path, options, &w);
    if (status == EMBLA_OK) status = make_tables(w);
    if (status == EMBLA_OK)
        status = embla_vocab_of_names(w->lexicon.names, (size_t)w->lexicon.count, path, &w->vocab);
    if (status != EMBLA_OK) {
        embla_wordvec_free(w);
        return status;
    }
    *out = w;
    return EMBLA_OK;
}

void embla_wordvec_free(embla_wordvec *w)
{
    if (!w) return;
    for (size_t i = 0; w->parts && i < w->part_count; i++) embla_step_part_free(&w->parts[i]);
    embla_mem_free(w->merge.changes, w->merge.room * w->context.stride * sizeof(float));
    embla_table_free(w->input);
    embla_table_free(w->output);
    embla_table_free(w->gram_rows);
    embla_table_free(w->means);
    embla_vocab_free(w->vocab);
    embla_lexicon_free(&w->lexicon);
    embla_lexicon_free(&w->phrases);
    embla_reading_free(&w->reading);
    embla_arena_free(&w->arena);
    embla_mem_free(w, sizeof *w);
}

/* ---- facts ---- */

static void describe_text(const embla_wordvec *w, embla_wordvec_text *out)
{
    *out = (embla_wordvec_text){.bytes = (int64_t)w->reading.size,
                                .tokens = w->counts.tokens,
                                .known = w->lexicon.tokens,
                                .words = w->lexicon.count,
                                .too_long = w->counts.too_long,
                                .dropped = w->counts.dropped,
                                .grams = w->context.grams ? w->grams.count : 0,
                                .phrases = w->phrases.count,
                                .memory = memory_of(w)};
}

embla_status embla_wordvec_plan(const char *path, const embla_wordvec_options *options,
                                embla_wordvec_text *out)
{
    embla_wordvec *w = NULL;
    EMBLA_NEED(path);
    EMBLA_NEED(out);
    embla_status status = begin(path, options, &w);
    if (status == EMBLA_OK) describe_text(w, out);
    embla_wordvec_free(w);
    return status;
}

const embla_vocab *embla_wordvec_vocab(const embla_wordvec *w)
{
    return w ? w->vocab : NULL;
}

/* The means of words with their n-grams. */
static embla_status find_means(void *job, size_t first, size_t end, size_t slot)
{
    const embla_wordvec *w = job;
    size_t stride = w->context.stride;
    float *means = embla_table_data(w->means);
    (void)slot;
    for (size_t i = first; i < end; i++)
        embla_grams_mean(&w->grams, (int32_t)i, w->context.input + i * stride, stride,
                         means + i * stride);
    return EMBLA_OK;
}

embla_status embla_wordvec_table(embla_wordvec *wordvec, const embla_table **out)
{
    embla_wordvec *w = wordvec;
    EMBLA_NEED(wordvec);
    EMBLA_NEED(out);
    *out = w->context.grams ? w->means : w->input;
    if (!w->context.grams || w->means_of == w->step) return EMBLA_OK;
    size_t count = (size_t)w->lexicon.count, bytes = count * w->context.stride * sizeof(float);
    EMBLA_TRY(embla_share(embla_threads_for(w->options.threads, bytes), count, 0, find_means, w));
    w->means_of = w->step;
    return EMBLA_OK;
}

/* ---- steps ---- */

static double rate_at(const embla_wordvec *w)
{
    double left = 1 - (double)w->step / (double)embla_wordvec_steps(w);
    return w->options.rate * (left > rate_least ? left : rate_least);
}

embla_status embla_wordvec_describe(const embla_wordvec *wordvec, embla_wordvec_info *out)
{
    EMBLA_NEED(wordvec);
    EMBLA_NEED(out);
    *out = (embla_wordvec_info){
        .progress = {.step = wordvec->step,
                     .steps = embla_wordvec_steps(wordvec),
                     .epochs = (double)wordvec->step / (double)wordvec->steps_of_epoch,
                     .rate = rate_at(wordvec)}};
    describe_text(wordvec, &out->text);
    return EMBLA_OK;
}

/* The blocks of a step. */
typedef struct {
    embla_wordvec *wordvec;
    uint64_t epoch, first;
    float rate;
    _Atomic int64_t tokens; /* words that were read */
} step_blocks;

static embla_status train_some(void *job, size_t first, size_t end, size_t slot)
{
    step_blocks *b = job;
    embla_wordvec *w = b->wordvec;
    for (size_t i = first; i < end; i++) {
        embla_step_part *part = &w->parts[w->options.hogwild ? slot : i];
        embla_copies_clear(&part->input); /* a step that failed may have left some */
        embla_copies_clear(&part->output);
        embla_step_part_train(&w->context, part, b->epoch, b->first + i, b->rate);
        atomic_fetch_add(&b->tokens, part->tokens);
    }
    return EMBLA_OK;
}

/* Trains on the blocks of a step; with hogwild each slot has a part. */
static embla_status train_blocks(embla_wordvec *w, uint64_t first, size_t count,
                                 embla_wordvec_report *r)
{
    step_blocks b = {.wordvec = w,
                     .epoch = (uint64_t)(w->step / w->steps_of_epoch),
                     .first = first,
                     .rate = (float)r->rate};
    int threads = embla_threads_for(w->options.threads, SIZE_MAX);
    if ((size_t)threads > w->part_count) threads = (int)w->part_count;
    EMBLA_TRY(embla_share(threads, count, 1, train_some, &b));
    r->tokens = atomic_load(&b.tokens);
    return EMBLA_OK;
}

/* Parts train on blocks, and their changes are merged. */
static embla_status make_step(embla_wordvec *w, uint64_t first, size_t count,
                              embla_wordvec_report *r)
{
    EMBLA_TRY(embla_reading_check(&w->reading));
    w->torn = true; /* the text may change while it is read */
    EMBLA_TRY(train_blocks(w, first, count, r));
    EMBLA_TRY(embla_reading_check(&w->reading));
    if (!w->options.hogwild) EMBLA_TRY(embla_merge_rows(&w->context, w->parts, count, &w->merge));
    w->torn = false;
    return EMBLA_OK;
}

/* The sums of all parts, in their order. With hogwild a part has the last of its blocks. */
static void sum_parts(const embla_wordvec *w, size_t count, embla_wordvec_report *r)
{
    double loss = 0, pairs = 0;
    int64_t tokens = 0;
    for (size_t i = 0; i < count && i < w->part_count; i++) {
        loss += w->parts[i].loss;
        pairs += w->parts[i].pairs;
        tokens += w->parts[i].tokens;
    }
    if (!w->options.hogwild) r->tokens = tokens;
    r->loss = pairs > 0 ? loss / pairs : 0;
}

embla_status embla_wordvec_step(embla_wordvec *wordvec, embla_wordvec_report *report)
{
    embla_wordvec *w = wordvec;
    embla_wordvec_report r = {0};
    EMBLA_NEED(wordvec);
    int64_t steps = embla_wordvec_steps(w);
    if (w->step >= steps)
        return embla_fail(EMBLA_ERR_RANGE,
                          "all %" PRId64 " steps are made; there is no step %" PRId64, steps,
                          w->step);
    if (w->torn)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a load into these words failed halfway; they cannot be trained");
    uint64_t blocks = w->reading.size / w->context.block + (w->reading.size % w->context.block > 0);
    uint64_t first = (uint64_t)(w->step % w->steps_of_epoch) * (uint64_t)w->per_step;
    uint64_t left = blocks - first;
    size_t count = left < (uint64_t)w->per_step ? (size_t)left : (size_t)w->per_step;
    r.rate = rate_at(w);
    EMBLA_TRY(make_step(w, first, count, &r));
    sum_parts(w, count, &r);
    w->step++;
    r.step = w->step;
    r.steps = steps;
    r.epochs = (double)w->step / (double)w->steps_of_epoch;
    if (report) *report = r;
    return EMBLA_OK;
}
