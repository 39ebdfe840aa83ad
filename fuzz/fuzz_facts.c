/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of a checkpoint: the input is its config.json, after 13 bytes that choose the name of
 * the table and the entries of a mapping. The checkpoint is a folder with a table of 5 x 2, a
 * mapping of 3 tokens and their weights. Promises:
 *   - what is refused is refused with a sentence;
 *   - scale is finite and above 0, the first position is 0 or greater;
 *   - the table opens if and only if each entry of the mapping is a row, and each token then has
 *     the row that the mapping says.
 */
#include <math.h>

#include "embla_checkpoint.h"
#include "folder.h"

enum { ROWS = 5, DIM = 2, TOKENS = 3 };

static void write_weights(const char *table, const int32_t *mapping)
{
    char bytes[1024] = {0};
    const float numbers[ROWS * DIM] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    uint64_t header = (uint64_t)snprintf(
        bytes + 8, sizeof bytes - 8,
        "{\"%s\":{\"dtype\":\"F32\",\"shape\":[5,2],\"data_offsets\":[0,40]},"
        "\"mapping\":{\"dtype\":\"I32\",\"shape\":[3],\"data_offsets\":[40,52]},"
        "\"weights\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[52,64]}}",
        table);
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + 8 + header, numbers, sizeof numbers);
    memcpy(bytes + 8 + header + sizeof numbers, mapping, TOKENS * sizeof *mapping);
    folder_write("model.safetensors", bytes, 8 + header + 64);
}

static void check_table(const embla_checkpoint *cp, const embla_facts *facts,
                        const int32_t *mapping)
{
    embla_table *table = NULL;
    int64_t rows[TOKENS];
    bool right = true;
    for (size_t i = 0; i < TOKENS; i++) right = right && mapping[i] >= 0 && mapping[i] < ROWS;
    embla_status status = embla_table_open(cp, NULL, NULL, &table);
    PROMISE((status == EMBLA_OK) == (!facts->mapping || right));
    PROMISE(status == EMBLA_OK || (status == EMBLA_ERR_FORMAT && !table && *embla_error()));
    if (!table) return;
    PROMISE(facts->tokens == embla_table_tokens(table));
    if (facts->mapping) {
        PROMISE(embla_table_find_rows(table, (const int32_t[]){0, 1, 2}, TOKENS, rows) == EMBLA_OK);
        for (size_t i = 0; i < TOKENS; i++) PROMISE(rows[i] == mapping[i]);
    }
    embla_table_free(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"embeddings", "model.embed_tokens.weight",
                                        "model.embed_tokens_per_layer.weight", "nothing"};
    input in = {data, size};
    int32_t mapping[TOKENS];
    embla_checkpoint *cp = NULL;
    embla_facts facts;
    folder_make("facts");
    const char *name = names[take_below(&in, sizeof names / sizeof names[0])];
    take(&in, mapping, sizeof mapping);
    write_weights(name, mapping);
    folder_write("config.json", in.data, in.size);
    embla_status status = embla_checkpoint_open(folder, NULL, &cp);
    if (status != EMBLA_OK) {
        PROMISE(!cp && *embla_error());
        return 0;
    }
    status = embla_checkpoint_facts(cp, &facts);
    PROMISE(status == EMBLA_OK || *embla_error());
    if (status == EMBLA_OK) {
        PROMISE(isfinite(facts.scale) && facts.scale > 0 && facts.first_position >= 0);
        PROMISE((facts.scale == 1) || facts.scale_why);
        PROMISE((facts.role == EMBLA_ROLE_NONE) == (facts.tokens == 0));
        if (facts.role != EMBLA_ROLE_NONE) check_table(cp, &facts, mapping);
    }
    embla_checkpoint_free(cp);
    return 0;
}
