/* SPDX-License-Identifier: Apache-2.0 */
/* A stream brings one tensor from a checkpoint to a writer in blocks of a few megabytes, so that it
 * is never in memory as a whole. The stream re-encodes the tensor if asked, counts its rows, and
 * computes the checksum of what the writer got, to compare it with what is read back.
 *
 * Writers read one tensor after the other, each from front to back, in pieces of any size. Tables
 * are processed in whole rows, in buffers that all streams share.
 */
#ifndef EMBLA_RESHAPE_STREAM_H
#define EMBLA_RESHAPE_STREAM_H

#include <stdint.h>

#include "base/checksum.h"
#include "checkpoint/checkpoint.h"
#include "reshape/account.h"

enum { EMBLA_BLOCK = 4 << 20 }; /* bytes processed at a time; more if one row is longer */

/* The state of the work, for the caller's progress function. */
typedef struct {
    const embla_convert_options *options;
    const char *what;
    int64_t done, all;
    int64_t reported; /* `done` at the last report */
    int64_t when;     /* of embla_clock_ns */
} embla_meter;

typedef struct embla_stream embla_stream;

typedef struct {
    embla_checksum_state sum; /* of the bytes that the stream `summing` has returned so far */
    size_t block;             /* bytes of each of the two blocks */
    size_t floats;
    uint8_t *old_rows, *new_rows;
    float *before, *after;
    const embla_stream *owner; /* new_rows has bytes first .. first+have-1 of this stream */
    uint64_t first, have;
    const embla_stream *summing; /* the stream that a writer is reading */
    embla_meter meter;
} embla_stream_buffers;

struct embla_stream {
    const embla_checkpoint *checkpoint;
    const embla_entry *entry;
    const embla_element *element; /* the type in the new file */
    uint64_t bytes;               /* of the whole tensor in the new file */
    embla_account_line *line;
    embla_stream_buffers *buffers;
    bool by_rows;   /* processed in rows; otherwise its bytes are copied */
    bool counted;   /* its rows are counted in the account */
    bool plain_nan; /* every NaN becomes the one that text can represent */
    uint64_t rows;
    size_t dim;              /* numbers in a row if they are decoded, otherwise 0 */
    size_t old_row, new_row; /* bytes of a row */
    uint64_t next;           /* number of bytes returned so far */
    embla_checksum sum;      /* set after the last byte was returned */
};

/* Reports that the work called `what` begins, which has `all` bytes. */
EMBLA_CHECKED embla_status embla_meter_begin(embla_meter *meter, const char *what, int64_t all);
/* Adds processed bytes, and reports from time to time. EMBLA_ERR_STOPPED if the caller stops. */
EMBLA_CHECKED embla_status embla_meter_add(embla_meter *meter, size_t bytes);

/* Allocates memory for the longest rows of these streams. Call embla_stream_buffers_free
 * afterwards, also after a failure. */
EMBLA_CHECKED embla_status embla_stream_buffers_new(embla_stream_buffers *buffers,
                                                    const embla_stream *streams, size_t count);
void embla_stream_buffers_free(embla_stream_buffers *buffers);

/* Prepares a stream for reading; element, sizes and buffers are set. */
void embla_stream_begin(embla_stream *stream);
/* The read function of an embla_part; context is the stream. */
embla_status embla_stream_read(void *context, uint64_t offset, size_t bytes, void *out);
/* Reads an entry of the new file back in blocks and computes its checksum. */
EMBLA_CHECKED embla_status embla_stream_checksum(const embla_stream *stream,
                                                 const embla_checkpoint *back,
                                                 const embla_entry *entry, embla_checksum *out);

#endif
