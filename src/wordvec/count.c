/* SPDX-License-Identifier: Apache-2.0 */
/* Counts words. Each thread counts a section of the text in a table of its own. The sections are
 * then added in the order of the text to the table of the whole text, which is trimmed after each
 * of them if it is too large. So the result depends on the text alone.
 */
#include "wordvec/count.h"

#include <string.h>
#include <time.h>

#include "base/checksum.h"
#include "base/failure.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/stop.h"
#include "base/threads.h"

enum {
    SECTION = 8 << 20,    /* bytes of text */
    SECTIONS_MOST = 64,   /* counted at the same time */
    ROOM_FIRST = 1 << 12, /* slots of a new table */
    TEXT_PIECE = 1 << 18  /* bytes */
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

static inline uint64_t hash_word(const uint8_t *p, size_t length, uint64_t seed)
{
    uint64_t h = seed ^ length * EMBLA_GOLDEN, piece;
    for (; length >= 8; p += 8, length -= 8) {
        memcpy(&piece, p, 8);
        h = (h ^ piece) * UINT64_C(0xBF58476D1CE4E5B9);
        h ^= h >> 32;
    }
    piece = 0;
    if (length >= 4) {
        uint32_t first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + length - 4, 4);
        piece = (uint64_t)first << 32 | last;
    } else if (length > 0) {
        piece = (uint64_t)p[0] << 16 | (uint64_t)p[length / 2] << 8 | p[length - 1];
    }
    return embla_mix64(h ^ piece);
}

uint64_t embla_word_hash(const uint8_t *word, size_t length, uint64_t seed)
{
    return hash_word(word, length, seed);
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
        size_t at = c->slots[i].hash & (room - 1);
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
    if (c->left < length + 1) {
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

static inline embla_status count_word(embla_counter *c, const uint8_t *word, size_t length,
                                      uint64_t hash, int64_t times)
{
    size_t at = hash & (c->room - 1);
    for (; c->slots[at].count != 0; at = (at + 1) & (c->room - 1)) {
        embla_word_slot *slot = &c->slots[at];
        if (slot->hash == hash && slot->text[0] == length &&
            memcmp(slot->text + 1, word, length) == 0) {
            slot->count += times;
            return EMBLA_OK;
        }
    }
    embla_word_slot slot = {.hash = hash, .count = times};
    EMBLA_TRY(keep_text(c, word, length, &slot.text));
    c->slots[at] = slot;
    return ++c->used > c->room / 2 ? grow(c) : EMBLA_OK;
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

static embla_status count_section(const embla_reading *r, uint64_t from, uint64_t seed, section *s)
{
    embla_word_reader reader;
    uint64_t to = r->size - from < SECTION ? r->size : from + SECTION;
    EMBLA_TRY(counter_new(seed, ROOM_FIRST, &s->words));
    sum_section(r, from, to, &s->sum);
    embla_reader_begin(&reader, r, from, to);
    while (embla_reader_next(&reader)) {
        s->tokens++;
        EMBLA_TRY(count_word(&s->words, reader.word, reader.length,
                             hash_word(reader.word, reader.length, seed), 1));
    }
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
        if (s->count > floor)
            status = count_word(&kept, s->text + 1, s->text[0], s->hash, s->count);
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
        if (slot->count > 0)
            EMBLA_TRY(
                count_word(&t->words, slot->text + 1, slot->text[0], slot->hash, slot->count));
    }
    t->tokens += s->tokens;
    t->too_long += s->too_long;
    t->sum[0] += s->sum.high;
    t->sum[1] += s->sum.low;
    return trim(t, most);
}

/* Counts up to `count` sections at the same time, then adds them in order. */
static embla_status count_some(const embla_reading *r, uint64_t from, size_t count, size_t most,
                               section *sections, embla_text_counts *t)
{
    embla_failure failed = EMBLA_NO_FAILURE;
#pragma omp parallel for num_threads((int)count) schedule(static, 1)
    for (size_t i = 0; i < count; i++) {
        sections[i] = (section){0};
        embla_failure_keep(&failed,
                           count_section(r, from + i * SECTION, t->words.seed, &sections[i]));
    }
    embla_status status = embla_failure_say(&failed);
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
        size_t team = (size_t)embla_threads_for(options->threads, (size_t)left);
        if (team > SECTIONS_MOST) team = SECTIONS_MOST;
        if (team > parts) team = (size_t)parts;
        EMBLA_TRY(count_some(r, at, team, most, sections, t));
        EMBLA_TRY(embla_reading_check(r));
        at = parts == team ? r->size : at + team * SECTION;
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
