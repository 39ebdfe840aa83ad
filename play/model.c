/* SPDX-License-Identifier: Apache-2.0 */
/* A model of the page, or a table with words: tokens, rows, neighbours, the next word. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "embla.h"
#include "embla_checkpoint.h"
#include "embla_lab.h"
#include "embla_text.h"
#include "embla_train.h"

#include "answer.h"
#include "geometry.h"
#include "play.h"

enum { WORD_POSITIONS = 64 }; /* positions of a model that computes them */

struct play_model {
    embla_table *table;
    embla_table *positions; /* learned, or what embla_sinusoid wrote; NULL means none */
    float *waves;           /* the numbers of computed positions */
    embla_vocab *vocab;     /* NULL means that rows have no words */
    embla_tokenizer *tokenizer;
    embla_tokenized *tokenized;
    embla_gpt *gpt; /* NULL means a table alone */
    embla_gpt_shape shape;
};

void *play_take(size_t bytes)
{
    return malloc(bytes > 0 ? bytes : 1);
}

void play_give(void *memory)
{
    free(memory);
}

const char *play_error(void)
{
    return embla_error();
}

const char *play_version(void)
{
    answer_begin();
    answer_text("version", embla_version(), strlen(embla_version()));
    answer_text("kernels", embla_kernels_name(), strlen(embla_kernels_name()));
    answer_text("build", embla_build_info(), strlen(embla_build_info()));
    return answer_end();
}

/* ---- opening ---- */

static embla_status open_positions(play_model *m, const embla_checkpoint *checkpoint)
{
    embla_tensor found;
    size_t dim = embla_table_dim(m->table);
    if (m->gpt && m->shape.position_kind == EMBLA_POSITIONS_SINUSOIDAL) {
        size_t count = m->shape.positions < WORD_POSITIONS ? m->shape.positions : WORD_POSITIONS;
        const embla_table_layout layout = {.dtype = EMBLA_F32, .rows = (int64_t)count, .dim = dim};
        m->waves = malloc(count * dim * sizeof *m->waves);
        if (!m->waves) return EMBLA_ERR_MEMORY;
        embla_status status = embla_sinusoid(0, count, dim, 0, m->waves);
        return status == EMBLA_OK ? embla_table_view(&layout, m->waves, count * dim * sizeof(float),
                                                     NULL, &m->positions)
                                  : status;
    }
    if (embla_checkpoint_role(checkpoint, EMBLA_ROLE_POSITIONS, &found, NULL) != EMBLA_OK)
        return EMBLA_OK;
    return embla_table_open(checkpoint, found.name, NULL, &m->positions);
}

/* What a file need not have: a tokenizer, words, a model around the table. */
static embla_status open_parts(play_model *m, const embla_checkpoint *checkpoint)
{
    embla_status status = EMBLA_OK;
    if (embla_gpt_open(checkpoint, &m->gpt) == EMBLA_OK)
        status = embla_gpt_describe(m->gpt, &m->shape);
    if (status == EMBLA_OK && embla_tokenizer_open(checkpoint, &m->tokenizer) == EMBLA_OK)
        status = embla_tokenized_new(m->tokenizer, &m->tokenized);
    if (status == EMBLA_OK && embla_vocab_open(checkpoint, &m->vocab) != EMBLA_OK) m->vocab = NULL;
    return status == EMBLA_OK ? open_positions(m, checkpoint) : status;
}

play_model *play_open(const char *path)
{
    embla_checkpoint *checkpoint = NULL;
    play_model *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    embla_status status = embla_checkpoint_open(path, NULL, &checkpoint);
    if (status == EMBLA_OK) status = embla_table_open(checkpoint, NULL, NULL, &m->table);
    if (status == EMBLA_OK) status = open_parts(m, checkpoint);
    embla_checkpoint_free(checkpoint);
    if (status == EMBLA_OK) return m;
    play_close(m);
    return NULL;
}

void play_close(play_model *model)
{
    if (!model) return;
    embla_gpt_free(model->gpt);
    embla_tokenized_free(model->tokenized);
    embla_tokenizer_free(model->tokenizer);
    embla_vocab_free(model->vocab);
    embla_table_free(model->positions);
    embla_table_free(model->table);
    free(model->waves);
    free(model);
}

static void answer_word(const play_model *m, int32_t token)
{
    size_t length = 0;
    const char *word = m->vocab ? embla_vocab_word(m->vocab, token, &length) : NULL;
    answer_text(NULL, word, length);
}

const char *play_about(const play_model *model)
{
    int64_t rows = embla_table_rows(model->table);
    const char *kind = model->gpt ? embla_positions_name(model->shape.position_kind)
                                  : embla_positions_name(EMBLA_POSITIONS_NONE);
    answer_begin();
    answer_whole("rows", rows);
    answer_whole("dim", (int64_t)embla_table_dim(model->table));
    answer_whole("positions", model->positions ? embla_table_rows(model->positions) : 0);
    answer_text("kind", kind, strlen(kind));
    answer_bool("model", model->gpt != NULL);
    answer_bool("tied", model->gpt && !model->shape.untied);
    answer_open("words", '[');
    for (int64_t i = 0; i < rows; i++) answer_word(model, (int32_t)i);
    answer_close('[');
    return answer_end();
}

/* ---- text to tokens to vectors ---- */

const char *play_tokens(play_model *model, const char *text)
{
    if (!model->tokenizer) return answer_refused("this table has words, but no tokenizer");
    if (embla_tokenize(model->tokenized, text, strlen(text), NULL) != EMBLA_OK)
        return answer_failed();
    const int32_t *tokens = embla_tokenized_tokens(model->tokenized);
    answer_begin();
    answer_open("tokens", '[');
    for (size_t i = 0; i < embla_tokenized_count(model->tokenized); i++) {
        size_t length = 0;
        const char *piece = embla_tokenizer_text(model->tokenizer, tokens[i], &length);
        answer_open(NULL, '{');
        answer_whole("id", tokens[i]);
        answer_text("text", piece, length);
        answer_close('{');
    }
    answer_close('[');
    return answer_end();
}

/* Rows, positions and sums of count tokens, in three parts of `out`. */
static embla_status embed(const play_model *m, const int32_t *ids, size_t count, int32_t first,
                          float *out)
{
    const size_t numbers = count * embla_table_dim(m->table);
    const embla_embed_options options = {.position_table = m->positions, .first_position = first};
    embla_status status = embla_lookup(m->table, ids, count, NULL, out);
    if (status != EMBLA_OK || !m->positions) return status;
    status = embla_embed(m->table, ids, 1, count, &options, out + 2 * numbers);
    for (size_t i = 0; i < count && status == EMBLA_OK; i++) {
        const int64_t position = first + (int64_t)i;
        status = embla_lookup_rows(m->positions, &position, 1, NULL,
                                   out + numbers + i * embla_table_dim(m->table));
    }
    return status;
}

const char *play_embed(const play_model *model, const int32_t *ids, size_t count, int32_t first)
{
    const size_t dim = embla_table_dim(model->table);
    float *values = calloc(count + 1, 3 * dim * sizeof *values);
    if (!values) return answer_refused("there is not enough memory for these rows");
    if (embed(model, ids, count, first, values) != EMBLA_OK) {
        free(values);
        return answer_failed();
    }
    answer_begin();
    answer_rows("rows", values, count, dim);
    if (model->positions) {
        answer_rows("positions", values + count * dim, count, dim);
        answer_rows("sums", values + 2 * count * dim, count, dim);
    }
    free(values);
    return answer_end();
}

/* ---- geometry ---- */

const char *play_compare(const play_model *model, int32_t a, int32_t b)
{
    return geometry_compare(model->table, a, b);
}

const char *play_near(const play_model *model, int32_t id, size_t top)
{
    return geometry_near(model->table, id, top);
}

const char *play_analogy(const play_model *model, const int32_t *plus, size_t plus_count,
                         const int32_t *minus, size_t minus_count, size_t top, int keep)
{
    enum { MOST = 16 };
    int64_t rows[2][MOST];
    embla_neighbour found[GEOMETRY_MOST];
    if (plus_count > MOST || minus_count > MOST)
        return answer_refused("a question has at most 16 words to add and 16 to subtract");
    if (top > GEOMETRY_MOST) top = GEOMETRY_MOST;
    for (size_t i = 0; i < plus_count; i++) rows[0][i] = plus[i];
    for (size_t i = 0; i < minus_count; i++) rows[1][i] = minus[i];
    const embla_analogy_question question = {
        .plus = rows[0], .minus = rows[1], .plus_count = plus_count, .minus_count = minus_count};
    const embla_analogy_options options = {.k = top, .keep_words = keep != 0};
    if (embla_analogy(model->table, &question, &options, found, NULL) != EMBLA_OK)
        return answer_failed();
    return geometry_answer(found, top);
}

const char *play_plane(const play_model *model)
{
    return geometry_plane(model->table);
}

/* ---- the next word ---- */

static void answer_prediction(const embla_prediction *p)
{
    answer_open(NULL, '{');
    answer_whole("id", p->token);
    answer_float("logit", p->logit);
    answer_real("probability", exp(p->log_probability));
    answer_whole("rank", p->rank);
    answer_close('{');
}

const char *play_predict(const play_model *model, const int32_t *ids, size_t count,
                         double temperature, size_t top)
{
    if (!model->gpt) return answer_refused("this is a table without a model around it");
    embla_prediction *all = calloc(top + count + 1, sizeof *all);
    if (!all) return answer_refused("there is not enough memory for these predictions");
    const embla_predict_options options = {.temperature = temperature, .top = top};
    embla_predict_results results = {.next = all, .each = all + top};
    embla_status status = embla_gpt_predict(model->gpt, ids, count, &options, &results);
    if (status == EMBLA_OK) {
        answer_begin();
        answer_open("next", '[');
        for (size_t i = 0; i < top; i++) answer_prediction(&all[i]);
        answer_close('[');
        answer_open("each", '[');
        for (size_t i = 0; i < count; i++) answer_prediction(&all[top + i]);
        answer_close('[');
        answer_real("loss", results.loss);
    }
    free(all);
    return status == EMBLA_OK ? answer_end() : answer_failed();
}
