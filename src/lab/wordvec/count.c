/* SPDX-License-Identifier: Apache-2.0 */
/* Counts words. Each thread counts a section of the text in a table of its own. The sections are
 * then added in the order of the text to the table of the whole text, which is trimmed after each
 * of them if it is too large. So the result depends on the text alone.
 */
#include "wordvec/count.h"

#include <string.h>
#include <time.h>

#include "base/checksum.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "base/threads.h"

enum {
    SECTION = 8 << 20,    /* bytes of text */
    SECTIONS_MOST = 64,   /* counted at the same time */
    ROOM_FIRST = 1 << 12, /* slots of a new table */
    BATCH = 16,
    TEXT_PIECE = 1 << 18 /* bytes */
};

/* ---- hashing ---- */

uint64_t embla_word_seed(void)
{
    static int place; /* its address is random where the system loads programs anywhere */
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return embla_splitmix64((uint64_t)(uintptr_t)&place ^ (uint64_t)now.tv_nsec << 32 ^
                            (uint64_t)now.tv_sec);
}

/* The first 8 bytes of a word as a number; a shorter word is followed by zeros. */
static inline uint64_t first_bytes(const uint8_t *p, size_t length)
{
    uint64_t first = 0;
    if (length >= 8) {
        memcpy(&first, p, 8);
    } else if (length >= 4) { /* the two halves overlap */
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + length - 4, 4);
        first = low | (uint64_t)high << (8 * (length - 4));
    } else {
        for (size_t i = 0; i < length; i++) first |= (uint64_t)p[i] << (8 * i);
    }
    return first;
}

/* first is first_bytes(p, length). */
static inline uint64_t hash_word(const uint8_t *p, size_t length, uint64_t first, uint64_t seed)
{
    uint64_t h = embla_mix64(seed ^ length * EMBLA_GOLDEN ^ first);
    for (size_t at = 8; at < length; at += 8) h = embla_mix64(h ^ first_bytes(p + at, length - at));
    return h;
}

uint64_t embla_word_hash(const uint8_t *word, size_t length, uint64_t seed)
{
    return hash_word(word, length, first_bytes(word, length), seed);
}

/* ---- a table of words ---- */

static embla_status counter_new(uint64_t seed, size_t room, embla_counter *c)
{
    void *slots = NULL;
    EMBLA_TRY(embla_mem_new(room * sizeof *c->slots, "a table of words", &slots));
    *c = (embla_counter){.slots = slots, .room = room, .seed = seed};
    return EMBLA_OK;
}

void embla_counter_free(embla_counter *c)
{
    embla_mem_free(c->slots, c->room * sizeof *c->slots);
    embla_arena_free(&c->arena);
    *c = (embla_counter){0};
}

/* Doubles the table. */
static embla_status grow(embla_counter *c)
{
    size_t room = 2 * c->room;
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(room * sizeof *c->slots, "a table of words", &memory));
    embla_word_slot *slots = memory;
    for (size_t i = 0; i < c->room; i++) {
        if (c->slots[i].count == 0) continue;
        const embla_word_slot *s = &c->slots[i];
        size_t at = hash_word(s->text + 1, s->length, s->first, c->seed) & (room - 1);
        while (slots[at].count != 0) at = (at + 1) & (room - 1);
        slots[at] = c->slots[i];
    }
    embla_mem_free(c->slots, c->room * sizeof *c->slots);
    c->slots = slots;
    c->room = room;
    return EMBLA_OK;
}

static embla_status keep_text(embla_counter *c, const uint8_t *word, size_t length,
                              const uint8_t **out)
{
    if (!c->space || c->left < length + 1) {
        EMBLA_TRY(embla_arena_many(&c->arena, TEXT_PIECE, 1, "words", &c->space));
        c->left = TEXT_PIECE;
    }
    uint8_t *text = c->space;
    text[0] = (uint8_t)length;
    memcpy(text + 1, word, length);
    c->space += length + 1;
    c->left -= length + 1;
    *out = text;
    return EMBLA_OK;
}

/* A word to be counted. */
typedef struct {
    const uint8_t *word;
    size_t length;
    uint64_t first, hash;
} found_word;

/* Whether a slot has this word. */
static inline bool is_same(const embla_word_slot *slot, const found_word *w)
{
    if (slot->tag != (uint32_t)(w->hash >> 32) || slot->first != w->first ||
        slot->length != w->length)
        return false;
    return w->length <= 8 || memcmp(slot->text + 9, w->word + 8, w->length - 8) == 0;
}

static inline embla_status count_word(embla_counter *c, const found_word *w, int64_t times)
{
    size_t at = w->hash & (c->room - 1);
    for (; c->slots[at].count != 0; at = (at + 1) & (c->room - 1)) {
        if (!is_same(&c->slots[at], w)) continue;
        c->slots[at].count += times;
        return EMBLA_OK;
    }
    embla_word_slot slot = {.first = w->first,
                            .tag = (uint32_t)(w->hash >> 32),
                            .length = (uint32_t)w->length,
                            .count = times};
    EMBLA_TRY(keep_text(c, w->word, w->length, &slot.text));
    c->slots[at] = slot;
    return ++c->used > c->room / 2 ? grow(c) : EMBLA_OK;
}

/* Adds the word of a slot of another table. */
static embla_status count_slot(embla_counter *c, const embla_word_slot *slot)
{
    const found_word w = {slot->text + 1, slot->length, slot->first,
                          hash_word(slot->text + 1, slot->length, slot->first, c->seed)};
    return count_word(c, &w, slot->count);
}

/* ---- sections ---- */

typedef struct {
    embla_counter words;
    int64_t tokens, too_long;
    embla_checksum sum;
} section;

/* Adds the bytes of a section to its checksum. */
static void sum_section(const embla_reading *r, uint64_t from, uint64_t to, embla_checksum *out)
{
    embla_checksum_state state;
    embla_checksum_begin(&state);
    embla_checksum_add(&state, &from, sizeof from);
    for (size_t i = 0; i < r->count; i++) {
        uint64_t first = r->starts[i] > from ? r->starts[i] : from;
        uint64_t end = r->starts[i + 1] < to ? r->starts[i + 1] : to;
        if (first < end)
            embla_checksum_add(&state, r->maps[i]->bytes + (first - r->starts[i]),
                               (size_t)(end - first));
    }
    *out = embla_checksum_end(&state);
}

/* Counts a few words at a time: their slots are on the way to the cache while others are hashed. */
static embla_status count_words(embla_word_reader *reader, section *s)
{
    uint8_t cleaned[BATCH][EMBLA_WORD_LONGEST + 1];
    found_word words[BATCH];
    size_t count = BATCH;
    while (count == BATCH) {
        for (count = 0; count < BATCH && embla_reader_next(reader); count++) {
            found_word *w = &words[count];
            *w = (found_word){reader->word, reader->length, 0, 0};
            if (reader->inside) w->word = memcpy(cleaned[count], reader->word, reader->length);
            w->first = first_bytes(w->word, w->length);
            w->hash = hash_word(w->word, w->length, w->first, s->words.seed);
            __builtin_prefetch(&s->words.slots[w->hash & (s->words.room - 1)], 1);
        }
        for (size_t i = 0; i < count; i++) EMBLA_TRY(count_word(&s->words, &words[i], 1));
        s->tokens += (int64_t)count;
    }
    return EMBLA_OK;
}

static embla_status count_section(const embla_reading *r, uint64_t from, uint64_t seed, section *s)
{
    embla_word_reader reader;
    uint64_t to = r->size - from < SECTION ? r->size : from + SECTION;
    EMBLA_TRY(counter_new(seed, ROOM_FIRST, &s->words));
    sum_section(r, from, to, &s->sum);
    embla_reader_begin(&reader, r, from, to);
    EMBLA_TRY(count_words(&reader, s));
    s->too_long = reader.too_long;
    return EMBLA_OK;
}

/* ---- the whole text ---- */

/* Copies the words that occur more than `floor` times to a new table. */
static embla_status trim_to(embla_counter *c, int64_t floor)
{
    embla_counter kept;
    EMBLA_TRY(counter_new(c->seed, c->room, &kept));
    embla_status status = EMBLA_OK;
    for (size_t i = 0; i < c->room && status == EMBLA_OK; i++) {
        const embla_word_slot *s = &c->slots[i];
        if (s->count > floor) status = count_slot(&kept, s);
    }
    if (status != EMBLA_OK) {
        embla_counter_free(&kept);
        return status;
    }
    embla_counter_free(c);
    *c = kept;
    return EMBLA_OK;
}

/* Drops the rarest words until at most `most` are left. */
static embla_status trim(embla_text_counts *t, size_t most)
{
    while (t->words.used > most) {
        size_t before = t->words.used;
        EMBLA_TRY(trim_to(&t->words, ++t->floor));
        t->dropped += (int64_t)(before - t->words.used);
    }
    return EMBLA_OK;
}

static embla_status add_section(embla_text_counts *t, const section *s, size_t most)
{
    for (size_t i = 0; i < s->words.room; i++) {
        const embla_word_slot *slot = &s->words.slots[i];
        if (slot->count > 0) EMBLA_TRY(count_slot(&t->words, slot));
    }
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
    const counting c = {r, from, t->words.seed, sections};
    memset(sections, 0, count * sizeof *sections); /* also those that are left out */
    embla_status status = embla_share((int)count, count, 0, count_sections, &c);
    for (size_t i = 0; i < count; i++) {
        if (status == EMBLA_OK) status = add_section(t, &sections[i], most);
        embla_counter_free(&sections[i].words);
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
    EMBLA_TRY(counter_new(embla_word_seed(), ROOM_FIRST, &out->words));
    embla_status status = count_all(r, most, options, out);
    if (status != EMBLA_OK) embla_counter_free(&out->words);
    return status;
}
