/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a reader. gather.c knows the pieces of rows, reader.c opens a reader,
 * reader_run.c reads. */
#ifndef EMBLA_STORE_GATHER_H
#define EMBLA_STORE_GATHER_H

#include "base/lock.h"
#include "base/origin.h"
#include "base/thread_system.h"
#include "files/io.h"
#include "files/io_ring.h"
#include "store/reader.h"

/* Whole pages of a file, for some pieces of a gather. */
typedef struct {
    size_t first, count; /* pieces */
    uint32_t source;
    uint64_t offset; /* in the file */
    size_t bytes;    /* to read: whole pages */
    size_t needed;   /* the file may end after these */
} embla_page_read;

size_t embla_row_piece_bytes(const embla_gather *gather, const embla_row_piece *piece);
char *embla_row_piece_out(const embla_gather *gather, const embla_row_piece *piece);
/* Sorts the pieces by file and offset. */
void embla_gather_sort(embla_gather *gather);
embla_page_read embla_gather_next(embla_gather *gather, size_t most);
void embla_gather_copy(embla_gather *gather, const embla_store *store, const embla_page_read *read,
                       const char *memory, int64_t result);

/* A read that is under way, in the slot's own pages. */
typedef struct {
    embla_gather *gather;
    embla_page_read read;
} embla_slot;

struct embla_reader {
    const embla_store *store;
    embla_reader_kind kind;
    char why[256]; /* why a better kind is not used; may be empty */
    size_t bytes;  /* of this block */
    size_t depth;  /* slots */
    size_t slot_bytes;
    char *pages; /* of slot i: from i * slot_bytes on; aligned to EMBLA_DIRECT */
    embla_slot *slots;
    uint32_t *free_slots;  /* indices */
    embla_handle *direct;  /* for each source: a file for direct reads, or -1 */
    embla_thread *threads; /* its own; unused if the caller's threads run */
    size_t thread_count;
    embla_origin origin;
    embla_ring ring;

    embla_lock lock;            /* for all that follows, the queues of the ring, and the gathers */
    embla_condition ended;      /* a gather has ended, or nobody reaps any more */
    embla_condition work;       /* for the threads of the reader */
    embla_gather *first, *last; /* gathers with pieces that no read has begun for */
    size_t free_count;          /* of free_slots */
    size_t flying;              /* reads under way */
    size_t notified;            /* gathers with `complete` that have not ended */
    size_t waiters;             /* threads in embla_reader_wait */
    size_t idle;                /* threads that wait for work */
    size_t wakes;
    size_t running; /* threads of the caller that have not returned */
    bool reaping;   /* a thread takes results from the ring; no other may */
    bool stopping;
    bool alone; /* the system has no threads: whoever starts a gather reads */
};

/* The threads of a reader: one that takes results from the ring, or many that read. */
void *embla_reader_reap_all(void *reader);
void *embla_reader_read_all(void *reader);

#endif
