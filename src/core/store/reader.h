/* SPDX-License-Identifier: Apache-2.0 */
/* Reads rows from files by whole pages, past the page cache, many pages at once.
 *
 *   rows -> pieces: the one or two byte ranges of each row, sorted by file and offset
 *   pieces -> reads: neighbouring pieces in the same few pages are one read
 *   reads -> slots: page-aligned buffers; as many reads are under way as there are slots
 *   slots -> out: when a read has ended, its pieces are copied to their rows
 *
 * A gather is the list of pieces of one call. Several gathers share the reader and take turns, one
 * read each, so a short one is not held up by a long one. Any number of threads may use a reader.
 * Nothing is allocated after it is opened.
 */
#ifndef EMBLA_STORE_READER_H
#define EMBLA_STORE_READER_H

#include "base/failure.h"
#include "store/store.h"

typedef struct embla_reader embla_reader;
typedef struct embla_gather embla_gather;

/* A byte range of a row in a file. */
typedef struct {
    uint64_t at;     /* offset in the file */
    uint32_t source; /* index into store->sources */
    uint32_t item;   /* 4 * index of the row in the gather + which range it is */
} embla_row_piece;

enum { EMBLA_GATHER_MOST = 1 << 29 }; /* rows of a gather */

struct embla_gather {
    const embla_store *store;
    const int64_t *rows;        /* row i is rows[i]; needed until the gather has ended */
    const embla_row_part *part; /* of every row */
    char *out;                  /* row i goes to out + i * out_stride */
    size_t out_stride;
    embla_row_piece *pieces; /* room for EMBLA_PLANES of each row */
    size_t count;            /* of them; set by embla_gather_add */
    size_t bundled;          /* rows that are read from bundles; set by embla_gather_add */
    /* Called without a lock when all reads have ended, by the thread that notices it. The gather
     * belongs to this function then. NULL means none: embla_reader_wait returns. */
    void (*complete)(embla_gather *gather);
    embla_failure failure;
    int64_t reads, pages; /* so far */

    /* Used by the reader, under its lock. */
    size_t next;   /* pieces before this one are being read, or have been */
    size_t flying; /* reads under way */
    bool ended;
    embla_gather *after; /* in the queue of gathers with pieces to read */
};

/* Opens the reader of a store; options.reader and options.depth choose. */
EMBLA_CHECKED embla_status embla_reader_open(const embla_store *store, embla_reader **out);
/* All gathers must have ended. NULL is allowed. */
void embla_reader_close(embla_reader *reader);
void embla_reader_describe(const embla_reader *reader, embla_store_info *out);

/* Prepares a gather without pieces. */
void embla_gather_init(embla_gather *gather, const embla_store *store, const int64_t *rows,
                       const embla_row_part *part, char *out, size_t out_stride,
                       embla_row_piece *pieces);
/* The number of rows that embla_gather_add takes at once: whole n-grams of the store's bundles. */
size_t embla_gather_step(const embla_store *store);
/* Adds the pieces of rows first .. first+count-1, at most embla_gather_step of them, without those
 * whose bit in `found` is set. Rows in memory of the caller are copied at once. */
void embla_gather_add(embla_gather *gather, size_t first, size_t count, uint32_t found);

/* Starts to read. It returns before the reads end. Do not use the gather until embla_reader_wait or
 * embla_reader_poll says that it has ended, or until complete is called. */
EMBLA_CHECKED embla_status embla_reader_start(embla_reader *reader, embla_gather *gather);
/* Waits until the gather has ended. Only for gathers without `complete`. Its failure has the
 * status. */
void embla_reader_wait(embla_reader *reader, embla_gather *gather);
/* Whether it has ended, without waiting. */
bool embla_reader_poll(embla_reader *reader, embla_gather *gather);
/* Gives a gather up: reads that have not begun never will. Returns true if it has ended, or ends
 * now; it is the caller's then. Otherwise complete is called when its other reads have ended, or
 * its own `complete` if it had one. */
bool embla_reader_drop(embla_reader *reader, embla_gather *gather,
                       void (*complete)(embla_gather *gather));
/* For tests: how often a thread of the reader was woken. */
size_t embla_reader_wakes(embla_reader *reader);

/* store/direct.c. The reader of a store; NULL for the other placements. */
embla_reader *embla_direct_reader(const embla_store *store);

#endif
