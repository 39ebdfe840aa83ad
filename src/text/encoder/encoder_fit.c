/* SPDX-License-Identifier: Apache-2.0 */
/* What is fitted once to a corpus and then used for every text: weights of tokens and common
 * components (Arora, Liang and Ma, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings",
 * 2017). The file is a safetensors file with a checksum (checkpoint/saved.h):
 *
 *   components  n x dim, F32   orthogonal, of length 1: removed from every vector
 *   weights     tokens x 1, F32   what the row of a token is multiplied by
 *   metadata    format "embla.fit", version "1", model: the checksum of the model it was made for
 *
 * Each of the two may be missing. Also the checksum of a model, which ties such files to it.
 */
#include <string.h>

#include "base/byte_order.h"
#include "base/kernels.h"
#include "base/mem.h"
#include "checkpoint/saved.h"
#include "encoder/encoder.h"
#include "tokenizer/tokenize.h"

/* ---- the checksum of a model ---- */

static void sum_table(embla_checksum_state *state, const embla_table *table)
{
    const embla_row_source *source = embla_table_source(table);
    const embla_row *row = source->row;
    const uint64_t shape[] = {(uint64_t)source->rows, row->format.dim, (uint64_t)row->format.dtype};
    int64_t tokens = 0;
    const int64_t *mapping = embla_table_mapping(table, &tokens);
    const size_t size = !embla_order_differs(row->format.dtype) ? 1
                        : row->format.dtype == EMBLA_F64        ? 8
                                                         : 4; /* of a number that is turned */
    embla_checksum_numbers(state, shape, sizeof *shape, 3);
    embla_checksum_numbers(state, &row->format.scale, sizeof row->format.scale, 1);
    if (source->stride == row->bytes) {
        embla_checksum_numbers(state, source->data, size, (size_t)source->rows * row->bytes / size);
    } else {
        for (int64_t r = 0; r < source->rows; r++)
            embla_checksum_numbers(state, embla_source_at(source, r), size, row->bytes / size);
    }
    if (mapping) embla_checksum_numbers(state, mapping, sizeof *mapping, (size_t)tokens);
}

/* The strings of all tokens, and the tokens of a text with many kinds of characters: a tokenizer
 * that was edited gives others. */
static embla_status sum_tokenizer(embla_checksum_state *state, const embla_tokenizer *t)
{
    static const char probe[] =
        "The quick brown fox doesn't jump over 3,141 lazy dogs: U.S.A., e-mail  a@b.co/x_y? "
        "\xc3\x89t\xc3\xa9 "
        "\xce\xa3\xce\x91 \xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x99\x82\tna\xc3\xafve ISN\xe2\x80\x99T";
    embla_tokenized *e = NULL;
    for (size_t i = 0; i < t->token_end; i++) {
        embla_name name = {0};
        const bool has = embla_token_name(t, (int32_t)i, false, &name);
        const uint32_t length = has ? name.length : UINT32_MAX;
        embla_checksum_numbers(state, &length, sizeof length, 1);
        if (has) embla_checksum_add(state, name.bytes, name.length);
    }
    embla_checksum_add(state, t->pipeline, strlen(t->pipeline));
    EMBLA_TRY(embla_tokenized_new(t, &e));
    embla_status status = embla_tokenize(e, probe, sizeof probe - 1, NULL);
    /* a tokenizer may have no token for a character of the probe: then it says so for both */
    if (status == EMBLA_OK || status == EMBLA_ERR_NOT_FOUND) {
        embla_checksum_numbers(state, e->tokens, sizeof *e->tokens, e->count);
        status = EMBLA_OK;
    }
    embla_tokenized_free(e);
    return status;
}

embla_status embla_encoder_checksum(const embla_encoder *encoder, embla_checksum *out)
{
    embla_checksum_state state;
    const int32_t rules[] = {(int32_t)encoder->compat, encoder->asked, encoder->normalize,
                             (int32_t)encoder->rules.most};
    EMBLA_TRY(embla_table_check_file(encoder->table));
    embla_checksum_begin(&state);
    embla_checksum_numbers(&state, rules, sizeof *rules, 4);
    embla_checksum_numbers(&state, &encoder->scale, sizeof encoder->scale, 1);
    sum_table(&state, encoder->table);
    if (encoder->subwords && !encoder->subwords->with_words)
        sum_table(&state, encoder->subwords->table);
    if (encoder->weights)
        embla_checksum_numbers(&state, encoder->weights, sizeof *encoder->weights,
                               encoder->weight_count);
    if (encoder->components)
        embla_checksum_numbers(&state, encoder->components, sizeof *encoder->components,
                               encoder->component_bytes / sizeof *encoder->components);
    EMBLA_TRY(sum_tokenizer(&state, encoder->tokenizer));
    EMBLA_TRY(embla_table_check_file(encoder->table));
    *out = embla_checksum_end(&state);
    return EMBLA_OK;
}

/* ---- reading ---- */

/* A tensor of floats with these sizes; *out is NULL if there is none. rows 0 means any number. */
static embla_status find_floats(const embla_checkpoint *cp, const char *name, uint64_t rows,
                                uint64_t dim, const embla_entry **out)
{
    const embla_entry *e = NULL;
    *out = NULL;
    if (embla_checkpoint_named(cp, name, &e) != EMBLA_OK) return EMBLA_OK;
    if (e->rank != 2 || e->element != embla_element_of(EMBLA_F32) || e->shape[0] < 1 ||
        (rows > 0 && e->shape[0] != rows) || e->shape[1] != dim)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%s' has %" PRIu64 " bytes of %s; expected: %" PRIu64
                          " numbers of F32 in each row",
                          cp->shown, name, e->bytes, e->element->name, dim);
    *out = e;
    return EMBLA_OK;
}

static embla_status read_components(const embla_checkpoint *cp, embla_encoder *encoder)
{
    const embla_entry *e = NULL;
    const uint64_t dim = embla_table_dim(encoder->table);
    void *memory = NULL;
    EMBLA_TRY(find_floats(cp, "components", 0, dim, &e));
    if (!e) return EMBLA_OK;
    if (e->shape[0] > dim)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s has %" PRIu64 " components of dim %" PRIu64,
                          cp->shown, e->shape[0], dim);
    EMBLA_TRY(embla_mem_new((size_t)e->bytes, "components", &memory));
    encoder->components = memory;
    encoder->component_count = (size_t)e->shape[0];
    encoder->component_bytes = (size_t)e->bytes;
    return embla_entry_numbers(cp, e, sizeof(float), (size_t)e->bytes / sizeof(float), memory);
}

static embla_status read_weights(const embla_checkpoint *cp, embla_encoder *encoder)
{
    const embla_entry *e = NULL;
    const size_t count = encoder->tokenizer->token_end;
    void *memory = NULL;
    EMBLA_TRY(find_floats(cp, "weights", count, 1, &e));
    if (!e) return EMBLA_OK;
    EMBLA_TRY(embla_mem_many(count, sizeof(double), "the weights of tokens", &memory));
    double *weights = memory;
    float *halves = (float *)memory + count; /* the floats are read into the upper half */
    embla_status status = embla_entry_numbers(cp, e, sizeof(float), count, halves);
    for (size_t i = 0; status == EMBLA_OK && i < count; i++) {
        float weight = 0.0f;
        memcpy(&weight, (const char *)halves + i * sizeof weight, sizeof weight);
        weights[i] = (double)weight;
    }
    if (status != EMBLA_OK) {
        embla_mem_free(memory, count * sizeof(double));
        return status;
    }
    embla_mem_free(encoder->weights, encoder->weight_count * sizeof(double));
    encoder->weights = weights;
    encoder->weight_count = count;
    return EMBLA_OK;
}

static embla_status check_model(const embla_checkpoint *cp, const char *path,
                                const embla_encoder *encoder)
{
    const embla_directory *d = &cp->shards[0].directory;
    const char *format = embla_saved_value(d, "format"), *version = embla_saved_value(d, "version");
    const char *model = embla_saved_value(d, "model");
    embla_checksum sum;
    char found[EMBLA_SUM_TEXT];
    if (!format || strcmp(format, "embla.fit") != 0 || !version || strcmp(version, "1") != 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s is not a file of 'embla fit': its format is %.32s, version %.32s",
                          path, format ? format : "not said", version ? version : "not said");
    EMBLA_TRY(embla_encoder_checksum(encoder, &sum));
    embla_sum_text(sum, found);
    if (model && strcmp(model, found) == 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%.200s was fitted to another model: its checksum is %.64s, and that of this "
                      "model is %s; fit it again",
                      path, model ? model : "missing", found);
}

embla_status embla_encoder_read_fit(const char *path, embla_encoder *encoder)
{
    embla_checkpoint *cp = NULL;
    EMBLA_TRY(embla_saved_open(path, "a file of 'embla fit'", &cp));
    embla_status status = check_model(cp, path, encoder);
    if (status == EMBLA_OK) status = embla_saved_verify(cp, path);
    if (status == EMBLA_OK) status = read_components(cp, encoder);
    if (status == EMBLA_OK) status = read_weights(cp, encoder);
    embla_checkpoint_free(cp);
    return status;
}

/* ---- use ---- */

void embla_encoder_remove(const embla_encoder *encoder, float *out)
{
    const embla_kernels *kernels = embla_kernels_get();
    const size_t dim = embla_table_dim(encoder->table);
    for (size_t n = 0; n < encoder->component_count; n++) {
        const float *component = encoder->components + n * dim;
        const double dot = kernels->dot(out, component, dim);
        for (size_t i = 0; i < dim; i++)
            out[i] = (float)((double)out[i] - dot * (double)component[i]);
    }
}
