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
#include "cutter.h"
#include "geometry.h"
#include "play.h"
#include "rows.h"

struct play_model {
    embla_table *table;
    embla_table *positions; /* learned; NULL means none */
    embla_vocab *vocab;     /* NULL means that rows have no words */
    play_cutter cutter;     /* its tokenizer is NULL if the file has none */
    embla_table *head;      /* a separate head; NULL means that the table is the head */
    embla_gpt *gpt;         /* NULL means a table alone */
    embla_gpt_shape shape;
    embla_text_ends ends;
};

void *play_take(size_t bytes)
{
    return malloc(bytes > 0 ? bytes : 1);
}

void play_give(void *memory)
{
    free(memory);
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
    if (embla_checkpoint_role(checkpoint, EMBLA_ROLE_POSITIONS, &found, NULL) != EMBLA_OK)
        return EMBLA_OK;
    return embla_table_open(checkpoint, found.name, NULL, &m->positions);
}

/* A list of words beside a table is no tokenizer: words are what is between white space. */
static embla_status begin_cutter(play_model *m, embla_tokenizer *tokenizer)
{
    embla_tokenizer_info info;
    embla_status status = embla_tokenizer_describe(tokenizer, &info);
    if (status == EMBLA_OK && (m->gpt || strcmp(info.source, "tokenizer.json") == 0))
        return cutter_begin(&m->cutter, tokenizer);
    embla_tokenizer_free(tokenizer);
    return status;
}

/* What a file need not have: a tokenizer, words, a model around the table. */
static embla_status open_parts(play_model *m, const embla_checkpoint *checkpoint)
{
    embla_status status = EMBLA_OK;
    embla_tokenizer *tokenizer = NULL;
    embla_tensor head;
    if (embla_gpt_open(checkpoint, &m->gpt) == EMBLA_OK)
        status = embla_gpt_describe(m->gpt, &m->shape);
    if (status == EMBLA_OK && embla_tokenizer_open(checkpoint, &tokenizer) == EMBLA_OK)
        status = begin_cutter(m, tokenizer);
    m->ends.begin = -1;
    if (status == EMBLA_OK && m->gpt)
        embla_text_ends_find(checkpoint, m->cutter.tokenizer, m->shape.vocab, &m->ends);
    if (status == EMBLA_OK && m->gpt && m->shape.untied &&
        embla_checkpoint_role(checkpoint, EMBLA_ROLE_HEAD, &head, NULL) == EMBLA_OK)
        status = embla_table_open(checkpoint, head.name, NULL, &m->head);
    if (status == EMBLA_OK && embla_vocab_open(checkpoint, &m->vocab) != EMBLA_OK) m->vocab = NULL;
    return status == EMBLA_OK ? open_positions(m, checkpoint) : status;
}

play_model *play_open(const char *path)
{
    embla_checkpoint *checkpoint = NULL;
    play_model *m = calloc(1, sizeof *m);
    if (!m) {
        answer_lack();
        return NULL;
    }
    embla_status status = embla_checkpoint_open(path, NULL, &checkpoint);
    if (status == EMBLA_OK) status = rows_open(checkpoint, &m->table);
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
    cutter_end(&model->cutter);
    embla_table_free(model->head);
    embla_vocab_free(model->vocab);
    embla_table_free(model->positions);
    embla_table_free(model->table);
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
    answer_whole("positions", model->positions ? embla_table_rows(model->positions)
                              : model->gpt     ? (int64_t)model->shape.positions
                                               : 0);
    answer_text("kind", kind, strlen(kind));
    answer_bool("model", model->gpt != NULL);
    answer_whole("bos", model->ends.begin);
    answer_bool("leads", model->ends.leads);
    answer_bool("tied", model->gpt && !model->shape.untied);
    answer_bool("head", model->head != NULL);
    answer_open("words", '[');
    for (int64_t i = 0; i < rows; i++) answer_word(model, (int32_t)i);
    answer_close('[');
    return answer_end();
}

/* ---- text to tokens to vectors ---- */

/* The row of a word, or of "#5", which names a row by its number. */
static int32_t row_of(const play_model *m, const char *word, size_t length)
{
    int32_t token = -1;
    if (m->vocab && embla_vocab_find(m->vocab, word, length, &token) == EMBLA_OK) return token;
    int64_t number = 0;
    if (length < 2 || length > 10 || word[0] != '#') return -1;
    for (size_t i = 1; i < length; i++) {
        if (word[i] < '0' || word[i] > '9') return -1;
        number = 10 * number + (word[i] - '0');
    }
    return number < embla_table_rows(m->table) ? (int32_t)number : -1;
}

/* A table without a tokenizer: what is between white space is a word. */
static const char *cut_words(const play_model *m, const char *text)
{
    static const char white[] = " \t\r\n";
    answer_begin();
    answer_whole("vocab", embla_table_rows(m->table));
    answer_open("tokens", '[');
    for (size_t at = strspn(text, white); text[at];) {
        const size_t length = strcspn(text + at, white);
        answer_open(NULL, '{');
        answer_whole("id", row_of(m, text + at, length));
        answer_text("text", text + at, length);
        answer_whole("begin", (int64_t)at);
        answer_whole("end", (int64_t)(at + length));
        answer_close('{');
        at += length;
        at += strspn(text + at, white);
    }
    answer_close('[');
    return answer_end();
}

const char *play_tokens(play_model *model, const char *text)
{
    return model->cutter.tokenizer ? play_cut(&model->cutter, text) : cut_words(model, text);
}

/* A table of waves in `positions`, which stays the caller's. */
static embla_status make_waves(float *positions, size_t count, size_t dim, int32_t first,
                               embla_table **out)
{
    const embla_table_layout layout = {.dtype = EMBLA_F32, .rows = (int64_t)count, .dim = dim};
    embla_status status = embla_sinusoid(first, count, dim, 0, positions);
    if (status != EMBLA_OK) return status;
    return embla_table_view(&layout, positions, count * dim * sizeof *positions, NULL, out);
}

const char *play_text(const play_model *model, const int32_t *ids, size_t count)
{
    const char *text = NULL;
    size_t length = 0;
    if (model->cutter.tokenizer) {
        if (embla_detokenize(model->cutter.tokenized, ids, count, true, &text, &length) != EMBLA_OK)
            return answer_failed();
        answer_begin();
        answer_text("text", text, length);
        return answer_end();
    }
    answer_begin();
    answer_text_open("text");
    for (size_t i = 0; i < count; i++) {
        const char *word = model->vocab ? embla_vocab_word(model->vocab, ids[i], &length) : NULL;
        if (i > 0) answer_text_add(" ", 1);
        if (word) answer_text_add(word, length);
    }
    answer_text_close();
    return answer_end();
}

/* Rows, positions and sums of count tokens, in three parts of `out`. */
static embla_status embed(const play_model *m, const int32_t *ids, size_t count, int32_t first,
                          embla_positions_kind kind, float *out)
{
    const size_t dim = embla_table_dim(m->table), numbers = count * dim;
    float *positions = out + numbers, *sums = positions + numbers;
    const bool learned = kind == EMBLA_POSITIONS_LEARNED;
    embla_table *waves = NULL;
    embla_status status = embla_lookup(m->table, ids, count, NULL, out);
    if (status != EMBLA_OK || count == 0 || kind == EMBLA_POSITIONS_NONE) return status;
    if (!learned) status = make_waves(positions, count, dim, first, &waves);
    const embla_embed_options options = {.position_table = learned ? m->positions : waves,
                                         .first_position = learned ? first : 0};
    if (status == EMBLA_OK) status = embla_embed(m->table, ids, 1, count, &options, sums);
    for (size_t i = 0; i < count && learned && status == EMBLA_OK; i++) {
        const int64_t position = first + (int64_t)i;
        status = embla_lookup_rows(m->positions, &position, 1, NULL, positions + i * dim);
    }
    embla_table_free(waves);
    return status;
}

/* The angles by which rotary positions rotate the pairs of a query or key. */
static void answer_degrees(const play_model *m, size_t count, int32_t first)
{
    const size_t dim = embla_table_dim(m->table), heads = m->gpt ? m->shape.heads : 1;
    const size_t numbers = dim / heads;
    const double theta = m->gpt ? m->shape.rope_theta : 10000;
    answer_open("degrees", '[');
    for (size_t i = 0; i < count; i++) {
        answer_open(NULL, '[');
        for (size_t pair = 0; pair < numbers / 2; pair++)
            answer_real(NULL, (double)(first + (int64_t)i) * 180 / acos(-1.0) *
                                  pow(theta, -2.0 * (double)pair / (double)numbers));
        answer_close('[');
    }
    answer_close('[');
}

static embla_positions_kind kind_of(const play_model *m, int32_t kind)
{
    if (kind >= EMBLA_POSITIONS_LEARNED && kind <= EMBLA_POSITIONS_NONE)
        return (embla_positions_kind)kind;
    if (m->gpt) return m->shape.position_kind;
    return m->positions ? EMBLA_POSITIONS_LEARNED : EMBLA_POSITIONS_NONE;
}

const char *play_embed(const play_model *model, const int32_t *ids, size_t count, int32_t first,
                       int32_t kind)
{
    const size_t dim = embla_table_dim(model->table);
    const embla_positions_kind positions = kind_of(model, kind);
    const bool added =
        positions == EMBLA_POSITIONS_LEARNED || positions == EMBLA_POSITIONS_SINUSOIDAL;
    if (positions == EMBLA_POSITIONS_LEARNED && !model->positions)
        return answer_refused("this model has no table of positions");
    float *values = calloc(count + 1, 3 * dim * sizeof *values);
    if (!values) return answer_refused("there is not enough memory for these rows");
    const embla_positions_kind summed = added ? positions : EMBLA_POSITIONS_NONE;
    if (embed(model, ids, count, first, summed, values) != EMBLA_OK) {
        free(values);
        return answer_failed();
    }
    answer_begin();
    answer_rows("rows", values, count, dim);
    if (added) {
        answer_rows("positions", values + count * dim, count, dim);
        answer_rows("sums", values + 2 * count * dim, count, dim);
    }
    if (positions == EMBLA_POSITIONS_ROTARY) answer_degrees(model, count, first);
    free(values);
    return answer_end();
}

const char *play_one_hot(const play_model *model, int32_t id)
{
    const size_t dim = embla_table_dim(model->table);
    const int64_t rows = embla_table_rows(model->table);
    float *product = calloc(3 * dim, sizeof *product), *row = product + dim, *looked = row + dim;
    if (!product) return answer_refused("there is not enough memory for three rows");
    embla_status status = embla_lookup(model->table, &id, 1, NULL, looked);
    for (int64_t r = 0; r < rows && status == EMBLA_OK; r++) {
        const float hot = r == id ? 1 : 0;
        status = embla_lookup_rows(model->table, &r, 1, NULL, row);
        for (size_t k = 0; k < dim; k++) product[k] += hot * row[k];
    }
    if (status == EMBLA_OK) {
        const bool same = memcmp(product, looked, dim * sizeof *product) == 0;
        answer_begin();
        answer_open("row", '[');
        for (size_t k = 0; k < dim; k++) answer_float(NULL, product[k]);
        answer_close('[');
        answer_bool("same", same);
        answer_whole("multiplications", rows * (int64_t)dim);
        answer_whole("by_zero", (rows - 1) * (int64_t)dim);
    }
    free(product);
    return status == EMBLA_OK ? answer_end() : answer_failed();
}

/* ---- geometry ---- */

/* The token table, or a separate head. */
static const embla_table *side(const play_model *m, int32_t head)
{
    return head && m->head ? m->head : m->table;
}

const char *play_compare(const play_model *model, int32_t a, int32_t b, int32_t head)
{
    return geometry_compare(side(model, head), a, b);
}

const char *play_near(const play_model *model, int32_t id, size_t top, int32_t head)
{
    return geometry_near(side(model, head), id, top);
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

const char *play_plane(const play_model *model, const int32_t *basis, size_t count)
{
    return geometry_plane(model->table, basis, count);
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
