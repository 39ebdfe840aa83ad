/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a sharded table.
 *
 * Row r is number r / buckets in bucket r % buckets. Buckets have an order, the place of a bucket
 * is its number with the bits reversed, and a rank owns a range of places. So rows that follow each
 * other are on different ranks: the first rows of a vocabulary are often the most frequent ones.
 * A rank's table has its buckets one after the other, each with the same number of rows. So a
 * bucket is one block of memory: a file has it as one tensor, and a product of it has the same
 * shape for any number of ranks.
 *
 * The ranks of one host allocate their tables in one window, all of the same size. Together they
 * are one table too (`near`), whose rows need not be sent.
 */
#ifndef EMBLA_CLUSTER_SHARDED_H
#define EMBLA_CLUSTER_SHARDED_H

#include "base/scratch.h"
#include "cluster/buckets.h"
#include "cluster/comm.h"

/* What a lookup waits for. */
typedef enum {
    EMBLA_SHARDED_NOTHING,
    EMBLA_SHARDED_COUNTS,  /* how many rows each rank asks for */
    EMBLA_SHARDED_NUMBERS, /* which */
    EMBLA_SHARDED_ROWS
} embla_sharded_stage;

struct embla_sharded {
    const embla_comm *comm;
    embla_sharded_options options; /* with defaults filled in */
    size_t bytes;                  /* of this block */
    size_t bucket_rows;            /* rows of each bucket, some of them not used */
    size_t first, buckets;         /* the range of this rank's places */
    unsigned shift;                /* the number of buckets is 2^shift */
    int32_t *rank_of;              /* for each bucket, the rank that owns it, */
    int64_t *local_of;             /* its first row in the table of that rank, */
    int64_t *near_of;              /* and in near; not set if the rank is on another host */
    embla_table *table;            /* its rows */
    /* The rows of all ranks of this host, or NULL if rows are always sent. */
    embla_comm_window window;
    embla_table *near;
    int64_t part_rows;   /* rows of near that each rank has */
    int64_t *near_first; /* for each rank, its first row in near; -1 if it is on another host */
    bool all_near;       /* no rank is on another host */
    /* A lookup under way. */
    bool busy;
    embla_sharded_stage stage;
    size_t count, unique;   /* row numbers; different ones */
    void *request;          /* rows that are being sent */
    uint32_t *slots;        /* arrays of capacity: for lookup/unique.h, */
    int64_t *found, *where; /* different rows; for each row number, its row in staged */
    int64_t *place;         /* for each different row, its row in staged */
    int64_t *numbers;       /* rows in the table of their owner, in the order of staged */
    size_t *counts;         /* 4 x ranks: rows to get from each rank, to send to each */
    embla_table *staged;    /* rows that were fetched, those of rank 0 first, then those of near */
    int64_t staged_rows;    /* room in staged */
    embla_scratch asked, answer; /* numbers that others ask for, and the rows for them */
    /* Sums of gradients. */
    embla_scatter *mine, *owned; /* within a shard of this rank; at the owner */
    size_t owned_capacity;
    embla_scratch parts, sent, received, keys, sums;
    embla_scratch loss; /* everything that embla_sharded_loss needs */
};

/* The bucket at a place. */
static inline size_t embla_sharded_bucket(const embla_sharded *s, size_t place)
{
    return embla_buckets_place(place, s->options.buckets);
}

/* Rows of a bucket that are used. */
static inline int64_t embla_sharded_used(const embla_sharded *s, size_t bucket)
{
    int64_t rest = s->options.rows - (int64_t)bucket, all = (int64_t)s->options.buckets;
    return rest <= 0 ? 0 : (rest + all - 1) / all;
}

/* The rank that owns a row, and the row's number there. The row must exist. */
static inline int embla_sharded_rank(const embla_sharded *s, int64_t row)
{
    return s->rank_of[(size_t)row & (s->options.buckets - 1)];
}

static inline int64_t embla_sharded_at(const embla_sharded *s, const int64_t *begin, int64_t row)
{
    return begin[(size_t)row & (s->options.buckets - 1)] + (row >> s->shift);
}

/* The rank that owns a row, and the number of the row in that rank's table; -1 if there is no such
 * row. */
int embla_sharded_owner(const embla_sharded *sharded, int64_t row);
int64_t embla_sharded_local(const embla_sharded *sharded, int64_t row);
/* The row that a row of this rank's table is; -1 if it is not used. */
int64_t embla_sharded_global(const embla_sharded *sharded, int64_t local);

/* EMBLA_ERR_BUSY while a lookup is under way: others may not use its counts, nor exchange anything
 * between its exchanges. It is under way on all ranks, so each refuses by itself. */
EMBLA_CHECKED embla_status embla_sharded_idle(const embla_sharded *sharded);
/* Ends a lookup that may be under way; its rows are lost. Collective. */
void embla_sharded_settle(embla_sharded *sharded);

/* embla_sharded_lookup of rows as they are stored. Collective. */
EMBLA_CHECKED embla_status embla_sharded_fetch(embla_sharded *sharded, const int64_t *rows,
                                               size_t count, void *out);

/* The name of the index in a folder of embla_sharded_save. */
#define EMBLA_SHARDED_INDEX "model.safetensors.index.json"

/* Reads bytes of all rows in order, as embla_part does: front to back, each once. */
typedef embla_status embla_sharded_read(void *rows, uint64_t offset, size_t bytes, void *out);
/* What rank 0 does with the rows: rows[i] is for reading table i. */
typedef embla_status embla_sharded_use(void *context, embla_sharded_read *read, void *const *rows);
enum { EMBLA_SHARDED_STREAMS = 3 };
/* Calls use on rank 0, which reads the rows of up to EMBLA_SHARDED_STREAMS tables, in any order of
 * tables; other ranks send them. Collective. */
EMBLA_CHECKED embla_status embla_sharded_stream(embla_sharded *const *tables, size_t count,
                                                embla_sharded_use *use, void *context);

/* EMBLA_ERR_SHAPE unless the lengths of the shards sum to count. lengths NULL: one shard. `what`
 * names what is counted. */
EMBLA_CHECKED embla_status embla_sharded_check_lengths(const size_t *lengths, size_t shards,
                                                       size_t count, const char *what);

/* Makes room in kept memory. Its contents are lost if it grows. */
EMBLA_CHECKED static inline embla_status embla_sharded_room(embla_scratch *kept, size_t bytes,
                                                            const char *what)
{
    embla_scratch_use use;
    EMBLA_TRY(embla_scratch_begin(kept, bytes, what, &use));
    embla_scratch_end(&use);
    return EMBLA_OK;
}

#endif
