/* SPDX-License-Identifier: Apache-2.0 */
/* The dtype table: one row for each way to store numbers.
 *
 * A new dtype needs a value in embla.h, a row in the table in dtype.c, and a codec file with its
 * loops. A row of numbers is a whole number of blocks, each of `block` numbers in `block_bytes`
 * bytes. Every variant of a codec gives the same bits.
 */
#ifndef EMBLA_BASE_DTYPE_H
#define EMBLA_BASE_DTYPE_H

#include "base/isa.h"
#include "base/lines.h"
#include "base/status.h"

/* n is a whole number of blocks. Pointers need no alignment, but out begins a cache line if mode is
 * STREAM. in and out do not overlap. */
typedef void embla_decode_fn(const void *in, size_t n, float scale, embla_write_mode mode,
                             float *out);
typedef void embla_encode_fn(const float *in, size_t n, float scale, void *out);

/* The loops of one dtype, by instruction set. NULL means that the next lower set is used. A
 * read-only dtype has no loop for encoding. */
typedef struct {
    embla_decode_fn *decode[EMBLA_ISA_COUNT];
    embla_encode_fn *encode[EMBLA_ISA_COUNT];
} embla_codec;

typedef struct {
    const char *name;
    size_t block; /* a power of two, so that loops over rows need no division */
    size_t block_bytes;
    bool scaled; /* has a scale besides its bytes */
    const embla_codec *codec;
} embla_dtype_info;

/* Every block divides this many numbers, so a row can be decoded piece by piece. */
enum { EMBLA_PIECE = 256 };

/* The largest table. */
#define EMBLA_ROWS_MOST ((int64_t)1 << 40)
#define EMBLA_DIM_MOST  ((size_t)1 << 20)

extern const embla_codec embla_codec_f32, embla_codec_f64, embla_codec_f16, embla_codec_bf16,
    embla_codec_f8_e4m3, embla_codec_f8_e5m2, embla_codec_i8, embla_codec_q8_0, embla_codec_q4_0,
    embla_codec_q4_1, embla_codec_q5_0, embla_codec_q5_1, embla_codec_q3_k, embla_codec_q4_k,
    embla_codec_q5_k, embla_codec_q6_k, embla_codec_iq4_nl, embla_codec_iq4_xs, embla_codec_mxfp4,
    embla_codec_nvfp4, embla_codec_f4_e2m1;

/* NULL if there is no such dtype. */
const embla_dtype_info *embla_dtype_find_info(embla_dtype dtype);
/* The same, with an error message. */
EMBLA_CHECKED embla_status embla_dtype_check(embla_dtype dtype, const embla_dtype_info **out);
/* Refuses a scale that is not finite, or that the dtype does not have; 0 becomes 1. */
EMBLA_CHECKED embla_status embla_dtype_scale(embla_dtype dtype, float scale, float *out);

/* The loop of a set, or of the next lower set that has one. The encoder is NULL for a read-only
 * dtype: call embla_dtype_check_writes first. */
EMBLA_PRIVATE embla_decode_fn *embla_dtype_decoder(embla_dtype dtype, embla_isa isa);
EMBLA_PRIVATE embla_encode_fn *embla_dtype_encoder(embla_dtype dtype, embla_isa isa);

/* True if the dtype can be encoded; false also if there is no such dtype. */
EMBLA_PRIVATE bool embla_dtype_writes(embla_dtype dtype);
/* The same with an error message, EMBLA_ERR_UNSUPPORTED. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_dtype_check_writes(embla_dtype dtype);

/* Bytes of n numbers, n a whole number of blocks. */
static inline size_t embla_dtype_bytes(const embla_dtype_info *info, size_t n)
{
    return (n >> __builtin_ctzll(info->block)) * info->block_bytes;
}

#endif
