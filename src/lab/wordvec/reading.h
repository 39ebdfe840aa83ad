/* SPDX-License-Identifier: Apache-2.0 */
/* A text as words. The files are mapped and read again in each epoch; no tokens are stored.
 *
 * All files together are one sequence of bytes, which is cut into blocks of equal size. A word
 * belongs to the block in which it begins, and ends with its file at the latest. So blocks can be
 * read in any order, by any number of threads, and together they have every word once.
 */
#ifndef EMBLA_WORDVEC_READING_H
#define EMBLA_WORDVEC_READING_H

#include "base/arena.h"
#include "embla_wordvec.h"
#include "encoder/subwords.h"
#include "files/map.h"

struct embla_lexicon;

typedef struct {
    embla_map **maps;
    uint64_t *starts; /* of each file in the sequence of all bytes; at last the end */
    size_t count;
    uint64_t size; /* bytes of all files */
    uint8_t
        *small; /* U+0080 to U+07FF in lower case, two bytes of UTF-8 each; NULL means as it is */
    const uint8_t *kinds; /* 256: what a byte is (reading.c) */
    /* Phrases (phrases.h): while pairs are counted, the words that may be part of one; afterwards
     * the pairs that are read as one word. NULL means none. */
    const struct embla_lexicon *known, *phrases;
    const uint8_t *bytes; /* 256: the byte that a word gets for it */
} embla_reading;

/* Maps a file, or the files of a folder in the order of their names. */
EMBLA_CHECKED embla_status embla_reading_open(const char *path, embla_wordvec_clean clean,
                                              embla_arena *arena, embla_reading *out);
void embla_reading_free(embla_reading *reading);
/* EMBLA_ERR_IO if a file has become shorter. */
EMBLA_CHECKED embla_status embla_reading_check(const embla_reading *reading);

/* The words of a part of the text, one after the other. */
typedef struct {
    const embla_reading *reading;
    size_t file;
    uint64_t to; /* no word begins from here on */
    const uint8_t *at, *stop,
        *end;            /* in this file: the next byte, the end of the part, of the file */
    bool new_line;       /* a line ended before the word */
    bool fresh;          /* a file began, and no word of it was read yet */
    int64_t too_long;    /* words skipped */
    size_t length;       /* of the word */
    const uint8_t *word; /* in the file, or in `cleaned` */
    bool inside;         /* the word is in this struct: the next call overwrites it */
    uint8_t cleaned[EMBLA_WORD_LONGEST + 1];
    /* of phrases: the word before, or the next one if it has been read already; and both together
     */
    uint8_t other[EMBLA_WORD_LONGEST + 1], both[2 * EMBLA_WORD_LONGEST + 2];
    size_t other_length;
    bool has_other, other_new_line;
} embla_word_reader;

/* Begins to read bytes from .. to of the sequence. */
void embla_reader_begin(embla_word_reader *reader, const embla_reading *reading, uint64_t from,
                        uint64_t to);
/* Finds the next word. False at the end. */
bool embla_reader_next(embla_word_reader *reader);
/* The same without phrases. */
bool embla_reader_single(embla_word_reader *reader);

#endif
