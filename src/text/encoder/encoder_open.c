/* SPDX-License-Identifier: Apache-2.0 */
/* Opens static models: finds out which library a folder belongs to, and reads the table, the
 * weights of the tokens, the tokenizer and whether vectors are normalised.
 *
 *   config.json                        Model2Vec
 *   config_sentence_transformers.json  sentence-transformers, also one folder up from
 *                                      0_StaticEmbedding; modules.json lists what it does
 *   neither, tensor embedding.weight   WordLlama
 *   a file of word vectors             its own words; also a table with NAME.vocab.txt beside it
 *   any other token table              the mean of its rows
 *
 * If a folder has both files, config.json decides, as in Model2Vec.
 */
#include <stdio.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/mem.h"
#include "base/options.h"
#include "checkpoint/checkpoint.h"
#include "encoder/encoder.h"

enum { JSON_MOST = 4 << 20, JSON_DEPTH = 64 };

static const char st_config[] = "config_sentence_transformers.json";

/* ---- small files of a folder ---- */

/* Reads a JSON file of the checkpoint's folder. *out is NULL if there is none. */
static embla_status read_json(const embla_checkpoint *cp, const char *name, embla_json_value **out)
{
    embla_map *map = NULL;
    void *bytes = NULL;
    char shown[512];
    *out = NULL;
    (void)snprintf(shown, sizeof shown, "%.400s/%.80s", cp->folder_name, name);
    embla_status status = embla_map_open(cp->folder, name, shown, true, &map);
    if (status == EMBLA_ERR_NOT_FOUND) return EMBLA_OK;
    EMBLA_TRY(status);
    size_t size = (size_t)map->size;
    if (map->size > JSON_MOST)
        status = embla_fail(EMBLA_ERR_FORMAT, "%.400s has %" PRIu64 " bytes; the limit is %d (T1)",
                            shown, map->size, JSON_MOST);
    if (status == EMBLA_OK) status = embla_mem_new(size + 1, "a JSON file", &bytes);
    if (status == EMBLA_OK) status = embla_map_read(map, 0, size, bytes);
    if (status == EMBLA_OK) status = embla_json_read(bytes, size, shown, JSON_DEPTH, "T1", out);
    if (bytes) embla_mem_free(bytes, size + 1);
    embla_map_free(map);
    return status;
}

/* Whether the table is in the subfolder that sentence-transformers makes. */
static bool is_inner(const embla_checkpoint *cp)
{
    static const char inner[] = "0_StaticEmbedding";
    const char *name = cp->folder_name;
    size_t length = strlen(name), tail = sizeof inner - 1;
    while (length > 1 && name[length - 1] == '/') length--;
    if (length < tail || memcmp(name + length - tail, inner, tail) != 0) return false;
    return length == tail || name[length - tail - 1] == '/';
}

/* Reads a JSON file of sentence-transformers: in the folder, or above its subfolder. */
static embla_status read_st_json(const embla_checkpoint *cp, const char *name,
                                 embla_json_value **out)
{
    char above[128];
    EMBLA_TRY(read_json(cp, name, out));
    if (*out || !is_inner(cp)) return EMBLA_OK;
    (void)snprintf(above, sizeof above, "../%.100s", name);
    return read_json(cp, above, out);
}

/* ---- sentence-transformers ---- */

/* The last component of a module's type: "Normalize". The ones before it have changed often. */
static const char *module_type(const embla_json_value *module)
{
    const char *type = embla_json_string(embla_json_get(module, "type"), NULL);
    const char *dot = type ? strrchr(type, '.') : NULL;
    return dot ? dot + 1 : type ? type : "(none)";
}

static embla_status read_modules(const embla_checkpoint *cp, embla_encoder *encoder)
{
    embla_json_value *list = NULL;
    embla_status status = read_st_json(cp, "modules.json", &list);
    for (size_t i = 0; status == EMBLA_OK && i < embla_json_count(list); i++) {
        const char *type = module_type(embla_json_item(list, i));
        if (strcmp(type, "Normalize") == 0)
            encoder->normalize = true;
        else if (strcmp(type, "StaticEmbedding") != 0)
            status = embla_fail(EMBLA_ERR_UNSUPPORTED,
                                "%.200s: module %zu of %zu is %.64s; Embla has only "
                                "StaticEmbedding and Normalize",
                                cp->shown, i, embla_json_count(list), type);
    }
    embla_json_free(list);
    return status;
}

/* A default prompt is text that sentence-transformers puts in front of every input. */
static embla_status refuse_prompt(const embla_checkpoint *cp, const embla_json_value *config)
{
    const char *name = embla_json_string(embla_json_get(config, "default_prompt_name"), NULL);
    const char *prompt =
        name ? embla_json_string(embla_json_get(embla_json_get(config, "prompts"), name), NULL)
             : NULL;
    if (!prompt || !*prompt) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "%.200s: it puts the prompt '%.64s' in front of every text, which Embla "
                      "does not; use another compat and put it there yourself",
                      cp->shown, name);
}

/* ---- which rules ---- */

static bool is_static_name(const char *name)
{
    return strcmp(name, "embeddings") == 0 || strcmp(name, "embedding.weight") == 0 ||
           strcmp(name, "0") == 0;
}

/* Chooses the rules by what lies in the folder. */
static void detect(const embla_checkpoint *cp, const char *table, bool st, embla_encoder *encoder)
{
    bool word_llama = strcmp(table, "embedding.weight") == 0;
    if (encoder->tokenizer->kind == EMBLA_TOKENIZER_WORDS) {
        encoder->compat = EMBLA_COMPAT_WORDS;
        encoder->why = "word vectors: the text is cut into the table's own words";
    } else if (!is_static_name(table) || strcmp(embla_checkpoint_format(cp), "gguf") == 0) {
        encoder->compat = EMBLA_COMPAT_TABLE;
        encoder->why = "the checkpoint is not a static model: its own token table is used";
    } else if (cp->config) {
        encoder->compat = EMBLA_COMPAT_MODEL2VEC;
        encoder->why = "config.json beside a static table";
    } else if (st) {
        encoder->compat = EMBLA_COMPAT_ST;
        encoder->why = st_config;
    } else {
        encoder->compat = word_llama ? EMBLA_COMPAT_WORDLLAMA : EMBLA_COMPAT_MODEL2VEC;
        encoder->why = word_llama ? "tensor 'embedding.weight' without a config.json"
                                  : "tensor 'embeddings' without a config.json";
    }
}

static embla_status find_normalize(const embla_checkpoint *cp, embla_encoder *encoder)
{
    embla_json_kind said = embla_checkpoint_kind(cp, "normalize");
    if (embla_compat_is_st(encoder->compat)) return read_modules(cp, encoder);
    if (encoder->compat == EMBLA_COMPAT_WORDLLAMA || encoder->compat == EMBLA_COMPAT_TABLE ||
        encoder->compat == EMBLA_COMPAT_WORDS)
        return EMBLA_OK;
    if (said == EMBLA_JSON_NONE && !cp->config) return read_modules(cp, encoder);
    encoder->normalize = said == EMBLA_JSON_TRUE ||
                         (said == EMBLA_JSON_NONE && encoder->compat == EMBLA_COMPAT_MODEL2VEC_RS);
    return EMBLA_OK;
}

/* Newer versions of Model2Vec store their maximum length; null means none. */
static void find_most(const embla_checkpoint *cp, embla_encoder *encoder)
{
    int64_t most = 0;
    embla_json_kind said = embla_checkpoint_kind(cp, "max_length");
    if (encoder->rules.most == 0) return;
    if (said == EMBLA_JSON_NULL) encoder->rules.most = 0;
    if (said == EMBLA_JSON_INTEGER &&
        embla_checkpoint_integer(cp, "max_length", &most) == EMBLA_OK && most > 0)
        encoder->rules.most = embla_size_most((uint64_t)most);
}

static embla_status choose_rules(const embla_checkpoint *cp, const char *table, embla_compat asked,
                                 embla_encoder *encoder)
{
    embla_json_value *config = NULL;
    EMBLA_TRY(read_st_json(cp, st_config, &config));
    detect(cp, table, config != NULL, encoder);
    encoder->asked = asked != EMBLA_COMPAT_AUTO;
    if (encoder->asked) {
        encoder->compat = asked;
        encoder->why = "named by the caller";
    }
    encoder->rules = *embla_compat_rules_of(encoder->compat);
    find_most(cp, encoder);
    embla_status status = EMBLA_OK;
    if (embla_compat_is_st(encoder->compat)) status = refuse_prompt(cp, config);
    embla_json_free(config);
    EMBLA_TRY(status);
    return find_normalize(cp, encoder);
}

/* ---- weights ---- */

enum { WEIGHTS = 1024 }; /* read at a time */

static embla_status read_weight_part(const embla_checkpoint *cp, const embla_tensor *tensor,
                                     size_t at, size_t count, double *out)
{
    double bytes[WEIGHTS];
    float floats[WEIGHTS];
    size_t size = 0;
    EMBLA_TRY(embla_dtype_row_bytes(tensor->dtype, 1, &size));
    EMBLA_TRY(embla_checkpoint_read(cp, tensor->name, (int64_t)(at * size), count * size, bytes));
    embla_order_rows(tensor->dtype, bytes, count * size);
    if (tensor->dtype == EMBLA_F64) {
        memcpy(out, bytes, count * sizeof *out);
        return EMBLA_OK;
    }
    EMBLA_TRY(embla_dtype_decode(tensor->dtype, bytes, count, 0.0f, floats));
    for (size_t i = 0; i < count; i++) out[i] = (double)floats[i];
    return EMBLA_OK;
}

static embla_status read_weights(const embla_checkpoint *cp, const char *name,
                                 embla_encoder *encoder)
{
    embla_tensor tensor;
    void *memory = NULL;
    EMBLA_TRY(embla_checkpoint_find(cp, name, &tensor));
    bool plain = tensor.dtype == EMBLA_F64 || tensor.dtype == EMBLA_F32 ||
                 tensor.dtype == EMBLA_F16 || tensor.dtype == EMBLA_BF16;
    if (tensor.rank != 1 || !plain || tensor.shape[0] < 1 || tensor.shape[0] > EMBLA_TOKENS_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.64s' is %s with %zu dimensions; the weights of "
                          "tokens are a list of F64, F32, F16 or BF16 (M3)",
                          cp->shown, name, tensor.type, tensor.rank);
    size_t count = (size_t)tensor.shape[0];
    EMBLA_TRY(embla_mem_many(count, sizeof(double), "the weights of tokens", &memory));
    encoder->weights = memory;
    encoder->weight_count = count;
    for (size_t at = 0; at < count; at += WEIGHTS)
        EMBLA_TRY(read_weight_part(cp, &tensor, at, count - at < WEIGHTS ? count - at : WEIGHTS,
                                   encoder->weights + at));
    return EMBLA_OK;
}

/* ---- the tokenizer ---- */

static embla_status open_tokenizer(const embla_checkpoint *cp, const char *path,
                                   embla_tokenizer **out)
{
    return path ? embla_tokenizer_open_file(path, out) : embla_tokenizer_open(cp, out);
}

/* The tokenizer of the model or, if it has none, one of the words of its rows. */
static embla_status open_text(const embla_checkpoint *cp, const embla_encoder_options *options,
                              embla_encoder *encoder)
{
    const bool asked = options->compat == EMBLA_COMPAT_WORDS;
    char said[512];
    if (options->tokenizer && asked)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%.200s: with the compat words a text is cut into the words of the "
                          "table; %.200s is not used",
                          cp->shown, options->tokenizer);
    if (asked || (!options->tokenizer && embla_encoder_has_words(cp)))
        return embla_encoder_open_words(cp, encoder);
    embla_status status = open_tokenizer(cp, options->tokenizer, &encoder->tokenizer);
    if (status == EMBLA_OK && embla_names_rows(encoder->tokenizer->name)) {
        embla_tokenizer_free(encoder->tokenizer);
        encoder->tokenizer = NULL;
        return embla_encoder_open_words(cp, encoder);
    }
    if (status != EMBLA_ERR_NOT_FOUND || options->tokenizer) return status;
    (void)snprintf(said, sizeof said, "%s", embla_error());
    status = embla_encoder_open_words(cp, encoder);
    return status == EMBLA_ERR_NOT_FOUND ? embla_fail(status, "%s", said) : status;
}

/* Characters of a string, which may not be UTF-8. */
static size_t count_characters(const embla_name *text)
{
    size_t count = 0;
    for (size_t i = 0; i < text->length; i++) count += ((uint8_t)text->bytes[i] & 0xc0) != 0x80;
    return count;
}

enum { LENGTHS = 1024 }; /* a longer string counts as this long */

/* The k-th smallest of the lengths that were counted. */
static size_t pick_length(const size_t counts[LENGTHS], size_t k)
{
    size_t length = 0;
    for (size_t seen = counts[0]; seen <= k && length + 1 < LENGTHS;) seen += counts[++length];
    return length;
}

/* The median length of the strings of all tokens, in characters: model2vec 0.10. Its twin in Rust
 * counts bytes, without added tokens, and takes the upper of two medians. */
static size_t median_length(const embla_tokenizer *t, bool rust)
{
    size_t counts[LENGTHS] = {0}, all = 0, end = rust ? t->vocab_count : t->token_end;
    for (size_t i = 0; i < end; i++) {
        embla_name text;
        if (rust)
            text = embla_vocab_name(t, i);
        else if (!embla_token_name(t, (int32_t)i, false, &text))
            continue;
        size_t length = rust ? text.length : count_characters(&text);
        counts[length < LENGTHS ? length : LENGTHS - 1]++;
        all++;
    }
    if (all == 0) return 0;
    if (rust) return pick_length(counts, all / 2);
    return (pick_length(counts, (all - 1) / 2) + pick_length(counts, all / 2)) / 2;
}

/* ---- all of it ---- */

/* Every token that the tokenizer can give has a row, and a weight if there are any. */
static embla_status check_tokens(const embla_checkpoint *cp, const embla_encoder *encoder)
{
    const embla_tokenizer *t = encoder->tokenizer;
    int64_t end = (int64_t)t->token_end, limit = embla_table_tokens(encoder->table);
    if (encoder->rules.pads && t->padding.on && t->padding.token >= end)
        end = (int64_t)t->padding.token + 1;
    if (!encoder->rules.clips && end > limit)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%.200s: the tokenizer has tokens up to %" PRId64
                          ", but the table has rows for %" PRId64 " tokens",
                          cp->shown, end - 1, limit);
    if (encoder->weights && end > (int64_t)encoder->weight_count)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%.200s: the tokenizer has tokens up to %" PRId64
                          ", but there are weights for %zu tokens",
                          cp->shown, end - 1, encoder->weight_count);
    return EMBLA_OK;
}

/* Rows of n-grams are added to rows of words, so they are as long. */
static embla_status check_subwords(const embla_checkpoint *cp, const embla_encoder *encoder)
{
    const size_t words = embla_table_dim(encoder->table);
    const size_t grams = encoder->subwords ? embla_table_dim(encoder->subwords->table) : words;
    if (grams == words) return EMBLA_OK;
    return embla_fail(
        EMBLA_ERR_SHAPE,
        "%.200s: rows of words have %zu numbers, rows of their n-grams %zu; both must "
        "have the same",
        cp->shown, words, grams);
}

static embla_status fill(const embla_checkpoint *cp, const embla_encoder_options *options,
                         embla_encoder *encoder)
{
    const embla_entry *entry = NULL;
    embla_facts facts;
    EMBLA_TRY(embla_checkpoint_entry(cp, EMBLA_ROLE_TOKENS, &entry, NULL));
    EMBLA_TRY(embla_checkpoint_facts(cp, &facts));
    EMBLA_TRY(embla_encoder_pool_new(&encoder->pool));
    EMBLA_TRY(open_text(cp, options, encoder));
    EMBLA_TRY(choose_rules(cp, entry->name, options->compat, encoder));
    const embla_compat_rules *rules = &encoder->rules;
    const embla_table_options by_row = {.by_row = !rules->weighted};
    EMBLA_TRY(embla_table_open(cp, NULL, &by_row, &encoder->table));
    if (rules->weighted && facts.weights) EMBLA_TRY(read_weights(cp, facts.weights, encoder));
    encoder->scale = encoder->compat == EMBLA_COMPAT_TABLE ? facts.scale : 1.0;
    if (rules->most > 0)
        encoder->characters =
            median_length(encoder->tokenizer, encoder->compat == EMBLA_COMPAT_MODEL2VEC_RS);
    EMBLA_TRY(check_tokens(cp, encoder));
    EMBLA_TRY(check_subwords(cp, encoder));
    return options->fit ? embla_encoder_read_fit(options->fit, encoder) : EMBLA_OK;
}

embla_status embla_encoder_open(const char *path, const embla_encoder_options *options,
                                embla_encoder **out)
{
    const embla_encoder_options defaults = {0};
    embla_checkpoint *cp = NULL;
    void *memory = NULL;
    EMBLA_TRY(embla_options_check(options));
    if (!options) options = &defaults;
    EMBLA_NEED(path);
    EMBLA_NEED(out);
    if (!embla_compat_name(options->compat))
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown compat %d; kinds are 0 to %d",
                          (int)options->compat, (int)EMBLA_COMPAT_ST5);
    EMBLA_TRY(embla_checkpoint_open(path, NULL, &cp));
    embla_status status = embla_mem_new(sizeof(embla_encoder), "an encoder", &memory);
    if (status == EMBLA_OK) status = fill(cp, options, memory);
    embla_checkpoint_free(cp);
    if (status == EMBLA_OK)
        *out = memory;
    else
        embla_encoder_free(memory);
    return status;
}

void embla_encoder_free(embla_encoder *encoder)
{
    if (!encoder) return;
    embla_encoder_pool_free(encoder->pool);
    embla_tokenizer_free(encoder->tokenizer);
    embla_subwords_free(encoder->subwords);
    embla_mem_free(encoder->weights, encoder->weight_count * sizeof(double));
    embla_mem_free(encoder->counts, encoder->count_count * sizeof(int64_t));
    embla_mem_free(encoder->components, encoder->component_bytes);
    embla_table_free(encoder->table);
    embla_mem_free(encoder, sizeof *encoder);
}

const embla_tokenizer *embla_encoder_tokenizer(const embla_encoder *encoder)
{
    return encoder ? encoder->tokenizer : NULL;
}

embla_status embla_encoder_describe(const embla_encoder *encoder, embla_encoder_info *out)
{
    EMBLA_NEED(encoder);
    EMBLA_NEED(out);
    *out = (embla_encoder_info){.compat = encoder->compat,
                                .why = encoder->why,
                                .rows = embla_table_rows(encoder->table),
                                .dim = embla_table_dim(encoder->table),
                                .dtype = embla_table_dtype(encoder->table),
                                .normalize = encoder->normalize,
                                .mapping = embla_table_mapping(encoder->table, NULL) != NULL,
                                .weights = encoder->weights != NULL,
                                .tokens = (int64_t)encoder->tokenizer->token_end,
                                .components = encoder->component_count,
                                .subwords = encoder->subwords != NULL,
                                .counts = encoder->counts != NULL};
    return EMBLA_OK;
}
