/* SPDX-License-Identifier: Apache-2.0 */
/* How the work of a loss is cut (docs/decisions/013), and which options it has. */
#include "learn/loss.h"

#include <math.h>

#include "base/threads.h"

enum { LINE = EMBLA_LOSS_LINE };

/* Floats of all logits of a chunk (50 MiB: 256 tokens of 50,257 rows), its hidden vectors, the sums
 * of their gradients, and rows that are decoded at a time (bf16 is faster in larger products).
 * Together with the engine's own memory this stays below 64 MiB. */
enum { LOGITS = 50 << 18, VECTORS = 1 << 19, SUMS = 2 << 20, ROWS = 1 << 18, ROWS_BF16 = 5 << 18 };
enum { CHUNK_MOST = 256, BLOCK = 1424, BLOCK_LEAST = 64, GROUPS_MOST = 12 };
/* Numbers of a table (128 MiB of bf16) that is rounded once for a call, not for each chunk. */
enum { ROUNDED = 64 << 20 };
/* Numbers of a row up to which logits are computed again, if the chunk would be shorter; maximum
 * sums of blocks that are held then. */
enum { AGAIN_DIM = 128, AGAIN_CHUNK = 128, PARTS = 1 << 20 };

/* Blocks are an odd number of cache lines, so that the columns of a tile do not share one set of a
 * cache. Their number is close to a multiple of four, so that a few threads finish together. */
static size_t block_of(size_t rows)
{
    if (rows <= BLOCK_LEAST) return embla_loss_round_up(rows, LINE);
    size_t blocks = embla_loss_round_up((rows + BLOCK - 1) / BLOCK, 4);
    return embla_loss_round_up((rows + blocks - 1) / blocks, LINE) | LINE;
}

embla_loss_shape embla_loss_shape_of(size_t rows, size_t dim, bool bf16)
{
    embla_loss_shape shape = {.block = block_of(rows)};
    shape.chunk = embla_loss_least(
        embla_loss_least(LOGITS / embla_loss_round_up(rows, LINE), VECTORS / dim), CHUNK_MOST);
    size_t blocks = (rows + shape.block - 1) / shape.block;
    size_t again = embla_loss_least(PARTS / blocks, CHUNK_MOST);
    shape.again = shape.chunk < AGAIN_CHUNK && dim <= AGAIN_DIM && again > shape.chunk;
    if (shape.again) shape.chunk = again;
    if (shape.chunk > LINE) shape.chunk -= shape.chunk % LINE;
    if (shape.chunk == 0) shape.chunk = 1; /* for more than 13 million rows, or 500,000 numbers */
    shape.part = embla_loss_least(shape.block, (bf16 ? ROWS_BF16 : ROWS) / dim);
    if (shape.part == 0) shape.part = 1;
    shape.rounds = bf16 && rows <= ROUNDED / dim;
    shape.groups =
        embla_loss_least(embla_loss_least(SUMS / (shape.chunk * dim), GROUPS_MOST), blocks);
    if (shape.groups == 0) shape.groups = 1;
    return shape;
}

embla_status embla_loss_check_options(const embla_loss_options *options)
{
    if (!(options->smoothing >= 0.0 && options->smoothing < 1.0))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "smoothing is %g; it must be 0 or greater and below 1",
                          options->smoothing);
    if (!(options->z_loss >= 0.0 && isfinite(options->z_loss)))
        return embla_fail(EMBLA_ERR_ARGUMENT, "z_loss is %g; it must be finite and 0 or greater",
                          options->z_loss);
    if (!isfinite(options->weight))
        return embla_fail(EMBLA_ERR_ARGUMENT, "weight is %g; it must be finite", options->weight);
    if (options->compute != 0 && options->compute != EMBLA_F32 && options->compute != EMBLA_BF16)
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "compute is %s; a loss supports f32 and bf16",
                          embla_dtype_name(options->compute));
    return embla_threads_check(options->threads);
}
