/* SPDX-License-Identifier: Apache-2.0 */
/* Counts words. Each thread counts a section of the text in a list of its own. The sections are
 * then added in the order of the text to the list of the whole text, which is trimmed after each
 * of them if it is too large. So the result depends on the text alone.
 */
#include "wordvec/count.h"

#include <string.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "base/threads.h"

enum {
    SECTION = 8 << 20,  /* bytes of text */
    SECTIONS_MOST = 64, /* counted at the same time */
    BATCH = 16
};

/* A seed of this process, so that no text can be made of words that collide. */
static uint64_t new_seed(void)
{
    static int place; /* its address is random where the system loads programs anywhere */
    uint64_t now = (uint64_t)embla_clock_ns();
    return embla_splitmix64((uint64_t)(uintptr_t)&place ^ now << 32 ^ now >> 32);
}

/* ---- sections ---- */

typedef struct {
    embla_word_list *words;
    int64_t tokens, too_long;
    embla_checksum sum;
} section;

/* Adds the bytes of a section to its checksum. */
static void sum_section(const embla_reading *r, uint64_t from, uint64_t to, embla_checksum *out)
{
    embla_checksum_state state;
    embla_checksum_begin(&state);
    embla_checksum_numbers(&state, &from, sizeof from, 1);
    for (size_t i = 0; i < r->count; i++) {
        uint64_t first = r->starts[i] > from ? r->starts[i] : from;
        uint64_t end = r->starts[i + 1] < to ? r->starts[i + 1] : to;
        if (first < end)
            embla_checksum_add(&state, r->maps[i]->bytes + (first - r->starts[i]),
                               (size_t)(end - first));
    }
    *out = embla_checksum_end(&state);
}

/* Words that are counted together: their slots and entries are on the way to the cache while others
 * are hashed. */
typedef struct {
    embla_word_key keys[BATCH];
    uint64_t times[BATCH];
    size_t count;
} batch;

static void add_to_batch(const embla_word_list *list, batch *b, embla_word_key key, uint64_t times)
{
    embla_word_list_fetch_slot(list, &key);
    b->keys[b->count] = key;
    b->times[b->count++] = times;
}

static embla_status count_batch(embla_word_list *list, batch *b)
{
    for (size_t i = 0; i < b->count; i++) embla_word_list_fetch_word(list, &b->keys[i]);
    for (size_t i = 0; i < b->count; i++)
        EMBLA_TRY(embla_word_list_count_key(list, &b->keys[i], b->times[i], true));
    b->count = 0;
    return EMBLA_OK;
}

static embla_status count_words(embla_word_reader *reader, section *s)
{
    uint8_t cleaned[BATCH][EMBLA_WORD_LONGEST + 1];
    batch b = {.count = 0};
    while (embla_reader_next(reader)) {
        const uint8_t *word = reader->word;
        if (reader->inside) word = memcpy(cleaned[b.count], word, reader->length);
        add_to_batch(s->words, &b, embla_word_key_of(word, reader->length, s->words->seed), 1);
        s->tokens++;
        if (b.count == BATCH) EMBLA_TRY(count_batch(s->words, &b));
    }
    return count_batch(s->words, &b);
}

static embla_status count_section(const embla_reading *r, uint64_t from, uint64_t seed, section *s)
{
    embla_word_reader reader;
    uint64_t to = r->size - from < SECTION ? r->size : from + SECTION;
    EMBLA_TRY(embla_word_list_new(seed, &s->words));
    sum_section(r, from, to, &s->sum);
    embla_reader_begin(&reader, r, from, to);
    EMBLA_TRY(count_words(&reader, s));
    s->too_long = reader.too_long;
    return EMBLA_OK;
}

/* ---- the whole text ---- */

/* Adds those words of a list that occur more than `floor` times to another. */
static embla_status add_words(const embla_word_list *from, int64_t floor, embla_word_list *to)
{
    batch b = {.count = 0};
    for (size_t i = 0; i < from->count; i++) {
        const embla_counted_word *w = &from->words[i];
        if ((int64_t)w->count <= floor) continue;
        uint32_t hash = embla_word_hash(w->at, w->length, w->first, to->seed);
        add_to_batch(to, &b, (embla_word_key){w->at, w->length, w->first, hash}, w->count);
        if (b.count == BATCH) EMBLA_TRY(count_batch(to, &b));
    }
    return count_batch(to, &b);
}

/* Copies the words that occur more than `floor` times to a new list. */
static embla_status trim_to(embla_word_list **list, int64_t floor)
{
    embla_word_list *kept = NULL;
    EMBLA_TRY(embla_word_list_new((*list)->seed, &kept));
    embla_status status = add_words(*list, floor, kept);
    if (status != EMBLA_OK) {
        embla_word_list_free(kept);
        return status;
    }
    embla_word_list_free(*list);
    *list = kept;
    return EMBLA_OK;
}

/* Drops the rarest words until at most `most` are left. */
static embla_status trim(embla_text_counts *t, size_t most)
{
    while (t->words->count > most) {
        size_t before = t->words->count;
        EMBLA_TRY(trim_to(&t->words, ++t->floor));
        t->dropped += (int64_t)(before - t->words->count);
    }
    return EMBLA_OK;
}

static embla_status add_section(embla_text_counts *t, const section *s, size_t most)
{
    EMBLA_TRY(add_words(s->words, 0, t->words));
    t->tokens += s->tokens;
    t->too_long += s->too_long;
    t->sum[0] += s->sum.high;
    t->sum[1] += s->sum.low;
    return trim(t, most);
}

typedef struct {
    const embla_reading *reading;
    uint64_t from, seed;
    section *sections;
} counting;

static embla_status count_sections(void *job, size_t first, size_t end, size_t slot)
{
    const counting *c = job;
    (void)slot;
    for (size_t i = first; i < end; i++)
        EMBLA_TRY(count_section(c->reading, c->from + i * SECTION, c->seed, &c->sections[i]));
    return EMBLA_OK;
}

/* Counts `count` sections at the same time, then adds them in order. */
static embla_status count_some(const embla_reading *r, uint64_t from, size_t count, size_t most,
                               section *sections, embla_text_counts *t)
{
    const counting c = {r, from, t->words->seed, sections};
    memset(sections, 0, count * sizeof *sections); /* also those that are left out */
    embla_status status = embla_share((int)count, count, 0, count_sections, &c);
    for (size_t i = 0; i < count; i++) {
        if (status == EMBLA_OK) status = add_section(t, &sections[i], most);
        embla_word_list_free(sections[i].words);
    }
    return status;
}

static embla_status count_all(const embla_reading *r, size_t most,
                              const embla_wordvec_options *options, embla_text_counts *t)
{
    section sections[SECTIONS_MOST];
    for (uint64_t at = 0; at < r->size;) {
        uint64_t left = r->size - at, parts = left / SECTION + (left % SECTION > 0);
        size_t threads = (size_t)embla_threads_for(options->threads, (size_t)left);
        if (threads > SECTIONS_MOST) threads = SECTIONS_MOST;
        if (threads > parts) threads = (size_t)parts;
        EMBLA_TRY(count_some(r, at, threads, most, sections, t));
        EMBLA_TRY(embla_reading_check(r));
        at = parts == threads ? r->size : at + threads * SECTION;
        EMBLA_TRY(embla_progress_report(options->progress, options->context, "count", (int64_t)at,
                                        (int64_t)r->size));
    }
    return EMBLA_OK;
}

embla_status embla_count_words(const embla_reading *r, size_t most,
                               const embla_wordvec_options *options, embla_text_counts *out)
{
    *out = (embla_text_counts){0};
    EMBLA_TRY(embla_word_list_new(new_seed(), &out->words));
    embla_status status = count_all(r, most, options, out);
    if (status != EMBLA_OK) {
        embla_word_list_free(out->words);
        out->words = NULL;
    }
    return status;
}
