/* SPDX-License-Identifier: Apache-2.0 */
/* One tensor on its way from a checkpoint to a writer, in blocks of a few megabytes: never
 * the whole of it in memory. On the way it is re-encoded if asked, its rows are counted, and
 * what is handed out is summed up, to be compared with what is read back.
 *
 * Writers ask for one tensor after the other, each from front to back, in pieces of any
 * size; tables pass through the desk in whole rows. One desk serves all streams.
 */
#ifndef EMBLA_RESHAPE_STREAM_H
#define EMBLA_RESHAPE_STREAM_H

#include <time.h>

#include "base/checksum.h"
#include "formats/checkpoint.h"
#include "reshape/account.h"

enum { EMBLA_BLOCK = 4 << 20 }; /* bytes that are worked on at a time, or one row */

/* How far the work is, for the caller's progress. */
typedef struct {
    const embla_convert_options *options;
    const char *what;
    int64_t done, all;
    int64_t told; /* what was done when the caller was told last */
    struct timespec when;
} embla_meter;

typedef struct embla_stream embla_stream;

typedef struct {
    size_t block; /* bytes of each of the two blocks */
    size_t floats;
    uint8_t *old_rows, *new_rows;
    float *before, *after;
    const embla_stream *owner; /* whose rows new_rows are, from offset first on */
    uint64_t first, have;
    const embla_stream *summing; /* which has begun to hand out and has not ended */
    embla_checksum_state sum;    /* of what it has handed out */
    embla_meter meter;
} embla_desk;

struct embla_stream {
    const embla_checkpoint *checkpoint;
    const embla_entry *entry;
    const embla_element *element; /* as it will be stored */
    uint64_t bytes;               /* of all of it, so stored */
    embla_account_line *line;
    embla_desk *desk;
    bool by_rows;   /* passes through the desk; else as it is */
    bool counted;   /* its rows are in the account */
    bool plain_nan; /* text has one NaN: all others become it */
    uint64_t rows;
    size_t dim; /* numbers in a row, where they are decoded; else 0 */
    size_t old_row, new_row;
    uint64_t next;      /* bytes handed out */
    embla_checksum sum; /* once all is handed out */
};

/* Says that the work called what is beginning; so many bytes are due. */
EMBLA_CHECKED embla_status embla_meter_begin(embla_meter *meter, const char *what, int64_t all);
/* So many bytes more. EMBLA_ERR_IO if the caller wants no more. */
EMBLA_CHECKED embla_status embla_meter_add(embla_meter *meter, size_t bytes);

/* Memory for the longest rows of the streams there are; freed with embla_desk_free. */
EMBLA_CHECKED embla_status embla_desk_new(embla_desk *desk, const embla_stream *streams,
                                          size_t count);
void embla_desk_free(embla_desk *desk);

/* A stream of which nothing has been asked for; element, sizes and desk are set. */
void embla_stream_begin(embla_stream *stream);
/* The read of an embla_part; context is the stream. */
embla_status embla_stream_read(void *context, uint64_t offset, size_t bytes, void *out);
/* The checksum of an entry that was written, read back in blocks. */
EMBLA_CHECKED embla_status embla_stream_back(const embla_stream *stream,
                                             const embla_checkpoint *back, const embla_entry *entry,
                                             embla_checksum *out);

#endif
