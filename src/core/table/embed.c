/* SPDX-License-Identifier: Apache-2.0 */
/* x[b][t] = tokens[id] * scale + positions[p]: a lookup that also adds a position row. Positions
 * are added, not concatenated. */
#include <math.h>

#include "base/checked.h"
#include "base/options.h"
#include "base/status.h"
#include "lookup/lookup.h"
#include "table/table.h"

embla_status embla_embed(const embla_table *table, const int32_t *tokens, size_t batch,
                         size_t length, const embla_embed_options *options, void *out)
{
    EMBLA_TRY(embla_options_check(options));
    const embla_embed_options defaults = {0};
    uint64_t count;
    if (!options) options = &defaults;
    if (!table) return embla_fail(EMBLA_ERR_ARGUMENT, "the token table is NULL");
    if (!options->position_table && (options->positions || options->first_position != 0))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "positions are given, but the position table is NULL");
    if (!embla_mul_ok(batch, length, &count) || count > SIZE_MAX)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu sequences of %zu tokens do not fit in memory",
                          batch, length);
    float scale = options->scale == 0.0f ? 1.0f : options->scale;
    if (options->sqrt_dim) scale *= (float)sqrt((double)table->row.format.dim);
    embla_lookup_call call = {
        .source = &table->source,
        .tokens = tokens,
        .count = (size_t)count,
        .token_rows = table->token_rows,
        .token_count = table->token_count,
        .position_rows = options->positions,
        .first_position = options->first_position,
        .length = length,
        .scale = scale,
        .out_dtype = options->out_dtype,
        .token_stride = options->out_stride,
        .out = out,
        .threads = options->threads,
    };
    if (!options->position_table) return embla_lookup_perform(&call);
    call.positions = &options->position_table->source;
    return embla_lookup_perform(&call);
}
