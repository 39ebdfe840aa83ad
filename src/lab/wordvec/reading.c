/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a text into words by the kind of each byte. */
#include "wordvec/reading.h"

#include <string.h>

#include "corpus/corpus.h"
#include "files/io.h"
#include "unicode/unicode.h"
#include "wordvec/phrases.h"

enum { SEPARATES = 0, PART = 1, TWO = 2 }; /* kinds; TWO begins a letter of two bytes */
enum { SMALL_FIRST = 0x80, SMALL_END = 0x800 };

/* ---- kinds of bytes ---- */

static bool is_space(int c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0;
}

static bool is_letter(int c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static uint8_t kind_of(int c, embla_wordvec_clean clean)
{
    if (clean == EMBLA_WORDVEC_CLEAN_PLAIN) return is_space(c) ? SEPARATES : PART;
    if (is_letter(c)) return PART;
    if (clean == EMBLA_WORDVEC_CLEAN_LETTERS) return SEPARATES;
    if (c >= 0xc2 && c <= 0xdf) return TWO;
    return c >= 0x80 || (c >= '0' && c <= '9') ? PART : SEPARATES;
}

/* Fills the table of small letters. All of them have two bytes in UTF-8, as their capitals. */
static embla_status make_small(embla_arena *arena, embla_reading *r)
{
    EMBLA_TRY(
        embla_arena_many(arena, 2 * (SMALL_END - SMALL_FIRST), 1, "small letters", &r->small));
    for (uint32_t c = SMALL_FIRST; c < SMALL_END; c++) {
        uint32_t s = embla_char_lower_in_place(c);
        r->small[2 * (c - SMALL_FIRST)] = (uint8_t)(0xc0 | s >> 6);
        r->small[2 * (c - SMALL_FIRST) + 1] = (uint8_t)(0x80 | (s & 0x3f));
    }
    return EMBLA_OK;
}

static embla_status make_kinds(embla_wordvec_clean clean, embla_arena *arena, embla_reading *r)
{
    uint8_t *kinds = NULL, *bytes = NULL;
    EMBLA_TRY(embla_arena_many(arena, 256, 1, "kinds of bytes", &kinds));
    EMBLA_TRY(embla_arena_many(arena, 256, 1, "kinds of bytes", &bytes));
    for (int c = 0; c < 256; c++) {
        kinds[c] = kind_of(c, clean);
        bytes[c] =
            (uint8_t)(clean != EMBLA_WORDVEC_CLEAN_PLAIN && c < 0x80 && is_letter(c) ? c | 0x20
                                                                                     : c);
    }
    r->kinds = kinds;
    r->bytes = clean == EMBLA_WORDVEC_CLEAN_PLAIN ? NULL : bytes;
    return clean == EMBLA_WORDVEC_CLEAN_WORDS ? make_small(arena, r) : EMBLA_OK;
}

/* ---- files ---- */

static embla_status add_map(embla_reading *r, embla_folder folder, const char *name,
                            const char *shown)
{
    EMBLA_TRY(embla_map_open(folder, name, shown, folder == EMBLA_HERE, &r->maps[r->count]));
    const embla_map *map = r->maps[r->count];
    r->starts[r->count] = r->size;
    r->size += map->size;
    r->starts[++r->count] = r->size;
    return embla_map_check_text(map);
}

/* Adds a file of a folder, unless it is empty. */
static embla_status add_file(embla_reading *r, embla_folder folder, const char *name)
{
    embla_file_facts found;
    embla_handle handle = -1;
    EMBLA_TRY(embla_io_open(folder, name, EMBLA_OPEN_READ | EMBLA_OPEN_NO_LINK, 0, &handle));
    embla_status status = embla_io_facts(handle, name, &found);
    embla_io_drop(handle);
    EMBLA_TRY(status);
    return found.size == 0 && found.kind == EMBLA_REGULAR_FILE ? EMBLA_OK
                                                               : add_map(r, folder, name, name);
}

static embla_status make_lists(embla_arena *arena, size_t count, embla_reading *r)
{
    EMBLA_TRY(embla_arena_many(arena, count, sizeof(void *), "files", &r->maps));
    return embla_arena_many(arena, count + 1, sizeof *r->starts, "files", &r->starts);
}

static embla_status open_folder(embla_folder folder, const char *path, embla_arena *arena,
                                embla_reading *r)
{
    embla_names sorted;
    EMBLA_TRY(embla_text_list(folder, path, arena, &sorted));
    EMBLA_TRY(make_lists(arena, sorted.count, r));
    for (size_t i = 0; i < sorted.count; i++)
        EMBLA_TRY(add_file(r, folder, sorted.sorted[i]->bytes));
    return EMBLA_OK;
}

embla_status embla_reading_open(const char *path, embla_wordvec_clean clean, embla_arena *arena,
                                embla_reading *out)
{
    embla_handle handle = -1;
    embla_file_facts found;
    EMBLA_TRY(make_kinds(clean, arena, out));
    EMBLA_TRY(embla_io_open(EMBLA_HERE, path, EMBLA_OPEN_READ, 0, &handle));
    embla_status status = embla_io_facts(handle, path, &found);
    if (status == EMBLA_OK && found.kind == EMBLA_IS_FOLDER) {
        status = open_folder(handle, path, arena, out);
    } else if (status == EMBLA_OK) {
        status = make_lists(arena, 1, out);
        if (status == EMBLA_OK) status = add_map(out, EMBLA_HERE, path, path);
    }
    embla_io_drop(handle);
    return status;
}

void embla_reading_free(embla_reading *reading)
{
    for (size_t i = 0; reading->maps && i < reading->count; i++) embla_map_free(reading->maps[i]);
    reading->count = 0;
}

embla_status embla_reading_check(const embla_reading *reading)
{
    for (size_t i = 0; i < reading->count; i++) EMBLA_TRY(embla_map_check(reading->maps[i]));
    return EMBLA_OK;
}

/* ---- words ---- */

/* The file that contains byte `at` of the sequence; files without bytes contain none. */
static size_t file_of(const embla_reading *r, uint64_t at)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->starts[middle + 1] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Sets the pointers to the part of a file that begins at `from` of the sequence. */
static void enter_file(embla_word_reader *w, uint64_t from)
{
    const embla_reading *r = w->reading;
    const embla_map *map = r->maps[w->file];
    uint64_t start = r->starts[w->file], end = r->starts[w->file + 1];
    w->end = map->bytes + map->size;
    w->at = map->bytes + (from - start);
    w->stop = w->to < end ? map->bytes + (w->to - start) : w->end;
    w->fresh = from == start;
}

void embla_reader_begin(embla_word_reader *w, const embla_reading *r, uint64_t from, uint64_t to)
{
    if (to > r->size) to = r->size;
    *w = (embla_word_reader){.reading = r, .to = to, .file = file_of(r, from)};
    if (from >= to) return;
    enter_file(w, from);
    if (from == r->starts[w->file] || r->kinds[w->at[-1]] == SEPARATES) return;
    while (w->at < w->stop && r->kinds[*w->at] != SEPARATES) w->at++; /* begun in the last block */
}

/* The word at the reader's place, cleaned. */
static void clean_word(embla_word_reader *w, const uint8_t *from, size_t length)
{
    const embla_reading *r = w->reading;
    for (size_t i = 0; i < length; i++) {
        w->cleaned[i] = r->bytes[from[i]];
        if (!r->small || r->kinds[from[i]] != TWO || i + 1 >= length ||
            (from[i + 1] & 0xc0) != 0x80)
            continue;
        size_t code = (size_t)(from[i] & 0x1f) << 6 | (from[i + 1] & 0x3f);
        memcpy(w->cleaned + i, r->small + 2 * (code - SMALL_FIRST), 2);
        i++;
    }
    w->word = w->cleaned;
}

/* Goes to the next file of the part. False if there is none. */
static bool next_file(embla_word_reader *w)
{
    const embla_reading *r = w->reading;
    if (!w->at || w->file + 1 >= r->count || r->starts[w->file + 1] >= w->to) return false;
    w->file++;
    enter_file(w, r->starts[w->file]);
    return true;
}

/* The high bit of each byte of x that is at most 0x20: white space, or a control character. */
static inline uint64_t low_bytes(uint64_t x)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    return ~(((x & 0x7f * ones) + 0x5f * ones) | x) & 0x80 * ones;
}

/* The end of the word at `at`, or most. Plain words are read eight bytes at a time. */
static inline const uint8_t *end_of_word(const embla_reading *r, const uint8_t *at,
                                         const uint8_t *most)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (!r->bytes && most - at >= 8) {
        uint64_t eight;
        memcpy(&eight, at, 8);
        uint64_t low = low_bytes(eight);
        at += low ? __builtin_ctzll(low) / 8 : 8;
        if (low && r->kinds[*at++] == SEPARATES) return at - 1;
    }
#endif
    while (at < most && r->kinds[*at] != SEPARATES) at++;
    return at;
}

bool embla_reader_single(embla_word_reader *w)
{
    const uint8_t *kinds = w->reading->kinds;
    w->new_line = false;
    for (;;) {
        w->new_line |= w->fresh;
        w->fresh = false;
        while (w->at < w->stop && kinds[*w->at] == SEPARATES) w->new_line |= *w->at++ == '\n';
        if (w->at >= w->stop) {
            if (!next_file(w)) return false;
            continue;
        }
        const uint8_t *from = w->at, *most = w->end;
        if (most - from > EMBLA_WORD_LONGEST) most = from + EMBLA_WORD_LONGEST + 1;
        w->at = end_of_word(w->reading, from, most);
        w->length = (size_t)(w->at - from);
        if (w->length <= EMBLA_WORD_LONGEST) {
            w->word = from;
            w->inside = w->reading->bytes != NULL;
            if (w->inside) clean_word(w, from, w->length);
            return true;
        }
        w->too_long++;
        while (w->at < w->stop && kinds[*w->at] != SEPARATES) w->at++;
    }
}

bool embla_reader_next(embla_word_reader *w)
{
    if (w->reading->known) return embla_phrase_pair(w);
    return w->reading->phrases ? embla_phrase_word(w) : embla_reader_single(w);
}
