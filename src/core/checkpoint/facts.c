/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a checkpoint: what a model does with its token table and no table shows. Where
 * positions begin, what a row is multiplied by, which row a token has. Each fact comes with the
 * rule that decided it; docs/formats.md has the rules with their sources.
 */
#include "checkpoint/facts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "files/cursor.h"
#include "formats/gguf.h"

/* ---- Model2Vec: the row and the weight of each token ---- */

/* The tensors `mapping` and `weights` belong to the tensor `embeddings`, and to no other. */
static const embla_entry *find_model2vec(const embla_checkpoint *cp, const embla_entry *table,
                                         embla_role role)
{
    size_t count;
    if (strcmp(table->name, "embeddings") != 0) return NULL;
    return embla_checkpoint_only(cp, role, &count);
}

const embla_entry *embla_facts_mapping(const embla_checkpoint *cp, const embla_entry *table)
{
    return find_model2vec(cp, table, EMBLA_ROLE_MAPPING);
}

/* Bytes of a row number; 0 if the tensor's type is another. */
static size_t number_bytes(const embla_entry *mapping)
{
    const char *type = mapping->element->name;
    return strcmp(type, "I32") == 0 ? 4 : strcmp(type, "I64") == 0 ? 8 : 0;
}

embla_status embla_facts_mapping_count(const embla_checkpoint *cp, const embla_entry *mapping,
                                       int64_t *out)
{
    uint64_t most = (uint64_t)INT32_MAX + 1;
    if (number_bytes(mapping) == 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' is %s; the rows of tokens are I32 or I64 (M1)",
                          cp->shown, mapping->name, mapping->element->name);
    if (mapping->rank != 1)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' has %u dimensions; the rows of tokens have 1 "
                          "(M1)",
                          cp->shown, mapping->name, (unsigned)mapping->rank);
    if (mapping->shape[0] < 1 || mapping->shape[0] > most)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' has the rows of %" PRIu64
                          " tokens; it must be between 1 and %" PRIu64 " (M1)",
                          cp->shown, mapping->name, mapping->shape[0], most);
    *out = (int64_t)mapping->shape[0];
    return EMBLA_OK;
}

enum { ENTRIES = 4096 }; /* read at a time */

embla_status embla_facts_mapping_read(const embla_checkpoint *cp, const embla_entry *mapping,
                                      int64_t rows, int64_t *out)
{
    uint8_t bytes[8 * ENTRIES];
    uint64_t count = mapping->shape[0], size = number_bytes(mapping);
    for (uint64_t at = 0; at < count; at += ENTRIES) {
        size_t n = count - at < ENTRIES ? (size_t)(count - at) : ENTRIES;
        EMBLA_TRY(embla_entry_read(cp, mapping, at * size, n * (size_t)size, bytes));
        for (size_t i = 0; i < n; i++) {
            int64_t row = size == 8 ? (int64_t)embla_le64(bytes + 8 * i)
                                    : (int64_t)(int32_t)embla_le32(bytes + 4 * i);
            if (row < 0 || row >= rows)
                return embla_fail(EMBLA_ERR_FORMAT,
                                  "%.200s: tensor '%.128s' gives token %" PRIu64 " row %" PRId64
                                  ": the table has %" PRId64 " rows (M2)",
                                  cp->shown, mapping->name, at + i, row, rows);
            out[at + i] = row;
        }
    }
    return EMBLA_OK;
}

/* ---- the architecture ---- */

static bool is_gguf(const embla_checkpoint *cp)
{
    return cp->format == &embla_format_gguf;
}

/* A GGUF says itself what it is; a config.json beside it may belong to another file. */
static const char *find_architecture(const embla_checkpoint *cp, const char **key)
{
    static const char *const keys[] = {"model_type", "general.architecture",
                                       "text_config.model_type"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (is_gguf(cp) && i != 1) continue;
        const char *text = embla_checkpoint_text(cp, keys[i]);
        if (!text) continue;
        *key = keys[i];
        return text;
    }
    return NULL;
}

static bool listed(const char *word, const char *const *list)
{
    for (; word && *list; list++)
        if (strcmp(word, *list) == 0) return true;
    return false;
}

/* Whether the architecture, or that of the text part of a multimodal model, is in the list. */
static bool is_one_of(const embla_checkpoint *cp, const embla_facts *facts, const char *const *list)
{
    if (listed(facts->architecture, list)) return true;
    return !is_gguf(cp) && listed(embla_checkpoint_text(cp, "text_config.model_type"), list);
}

/* A number of config.json or of its text_config. *found is false if neither has the key. */
static embla_status read_number(const embla_checkpoint *cp, const char *key, double *out,
                                bool *found)
{
    char inner[128];
    (void)snprintf(inner, sizeof inner, "text_config.%.100s", key);
    const char *const keys[] = {key, inner};
    *found = false;
    for (size_t i = 0; i < 2 && !*found; i++) {
        embla_status status = embla_checkpoint_real(cp, keys[i], out);
        if (status == EMBLA_ERR_MEMORY || status == EMBLA_ERR_IO) return status;
        *found = status == EMBLA_OK;
    }
    return EMBLA_OK;
}

static bool is_true(const embla_checkpoint *cp, const char *key)
{
    return !is_gguf(cp) && embla_checkpoint_kind(cp, key) == EMBLA_JSON_TRUE;
}

/* ---- positions ---- */

/* The converter to GGUF removes the rows before position 0. */
static embla_status find_first_position(const embla_checkpoint *cp, embla_facts *facts)
{
    static const char *const two[] = {"opt", "bart", "mbart", "mpnet", NULL};
    static const char *const after_padding[] = {"roberta", "xlm-roberta", "camembert", NULL};
    double pad;
    bool found;
    if (is_gguf(cp)) return EMBLA_OK;
    if (is_one_of(cp, facts, two)) {
        facts->first_position = 2;
        facts->first_position_why = "OPT, BART and MPNet keep two rows before position 0";
    } else if (is_one_of(cp, facts, after_padding)) {
        EMBLA_TRY(read_number(cp, "pad_token_id", &pad, &found));
        bool usable = found && pad >= 0 && pad < INT32_MAX && pad == floor(pad);
        facts->first_position = usable ? (int64_t)pad + 1 : 2;
        facts->first_position_why = usable ? "RoBERTa: position 0 is row pad_token_id + 1"
                                           : "RoBERTa: position 0 is row pad_token_id + 1, and "
                                             "pad_token_id is 1 by default";
    }
    return EMBLA_OK;
}

/* ---- what a row is multiplied by ---- */

/* The number that the checkpoint has for key, if it is one that rows can be multiplied by. */
static embla_status scale_by_key(const embla_checkpoint *cp, const char *key, const char *why,
                                 embla_facts *facts)
{
    double value;
    bool found;
    EMBLA_TRY(read_number(cp, key, &value, &found));
    if (!found || facts->scale_why) return EMBLA_OK;
    bool usable = isfinite(value) && value > 0;
    facts->scale = usable ? value : 1;
    facts->scale_why = usable ? why : "the number in the checkpoint is not above 0 and is ignored";
    return EMBLA_OK;
}

static embla_status scale_of_gguf(const embla_checkpoint *cp, embla_facts *facts)
{
    char key[160];
    if (!facts->architecture) return EMBLA_OK;
    (void)snprintf(key, sizeof key, "%.100s.embedding_scale", facts->architecture);
    const embla_directory *directory = &cp->shards[0].directory;
    if (!embla_gguf_has(directory, key)) return EMBLA_OK;
    return scale_by_key(cp, key, "embedding_scale", facts);
}

/* Gemma 3n has a second vocabulary table, whose rows are scaled by the width of one layer. */
static embla_status scale_of_layers(const embla_checkpoint *cp, embla_facts *facts)
{
    double width;
    bool found;
    EMBLA_TRY(read_number(cp, "hidden_size_per_layer_input", &width, &found));
    if (!found || !(width >= 1 && width <= (double)EMBLA_DIM_MOST)) return EMBLA_OK;
    facts->scale = sqrt(width);
    facts->scale_why = "sqrt(hidden_size_per_layer_input), as Gemma 3n does";
    return EMBLA_OK;
}

static embla_status find_scale(const embla_checkpoint *cp, size_t dim, embla_facts *facts)
{
    static const char *const gemma[] = {"gemma",   "gemma2",       "gemma3",          "gemma3_text",
                                        "gemma3n", "gemma3n_text", "gemma-embedding", NULL};
    if (facts->role == EMBLA_ROLE_PER_LAYER) return scale_of_layers(cp, facts);
    if (facts->role != EMBLA_ROLE_TOKENS && facts->role != EMBLA_ROLE_TOKENS_COPY) return EMBLA_OK;
    if (is_gguf(cp)) {
        EMBLA_TRY(scale_of_gguf(cp, facts));
    } else {
        EMBLA_TRY(scale_by_key(cp, "embedding_multiplier", "embedding_multiplier", facts));
        EMBLA_TRY(scale_by_key(cp, "scale_emb", "scale_emb", facts));
    }
    bool root = is_one_of(cp, facts, gemma), flag = is_true(cp, "scale_embedding");
    if (facts->scale_why || (!root && !flag)) return EMBLA_OK;
    facts->scale = sqrt((double)dim);
    facts->scale_why = root ? "sqrt(dim), as Gemma does" : "sqrt(dim): scale_embedding is true";
    return EMBLA_OK;
}

/* ---- all of them ---- */

static void find_tokens(const embla_checkpoint *cp, const embla_entry *table, int64_t rows,
                        embla_facts *facts)
{
    const embla_entry *mapping = embla_facts_mapping(cp, table);
    const embla_entry *weights = find_model2vec(cp, table, EMBLA_ROLE_WEIGHTS);
    facts->tokens = rows;
    facts->tokens_why = "the rows of the table";
    if (mapping) {
        facts->tokens = mapping->rank == 1 ? (int64_t)mapping->shape[0] : 0;
        facts->tokens_why = "the length of the tensor 'mapping'";
        facts->mapping = mapping->name;
    }
    if (weights) facts->weights = weights->name;
}

embla_status embla_checkpoint_facts(const embla_checkpoint *cp, embla_facts *out)
{
    embla_facts facts = {.scale = 1};
    const embla_entry *table = NULL;
    int64_t rows = 0;
    size_t dim = 0;
    EMBLA_NEED_OF("embla_checkpoint_facts", "checkpoint", cp);
    EMBLA_NEED(out);
    facts.architecture = find_architecture(cp, &facts.architecture_why);
    EMBLA_TRY(find_first_position(cp, &facts));
    if (embla_checkpoint_entry(cp, EMBLA_ROLE_TOKENS, &table, NULL) == EMBLA_OK &&
        embla_entry_shape(table, &rows, &dim) == EMBLA_OK) {
        facts.named = cp->chosen != NULL;
        facts.role = facts.named ? cp->chosen_role : EMBLA_ROLE_TOKENS;
        find_tokens(cp, table, rows, &facts);
        EMBLA_TRY(find_scale(cp, dim, &facts));
    }
    *out = facts;
    return EMBLA_OK;
}
