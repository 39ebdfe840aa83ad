/* SPDX-License-Identifier: Apache-2.0 */
/* A training of the page: the preset microgpt with the choices of a learner, computed by plain
 * loops, so that `embla train --preset microgpt --engine none` gives the same bits anywhere.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_learn.h"
#include "embla_train.h"

#include "answer.h"
#include "geometry.h"
#include "play.h"

enum { SAMPLE_TOKENS = 200 };

struct play_training {
    embla_corpus *corpus;
    embla_tokenizer *tokenizer; /* NULL means words or characters */
    char *tokenizer_path;
    embla_gpt *gpt;
    embla_train *train;
    embla_train_options options;
    embla_gpt_shape shape;
    embla_train_report last;
    float *before;      /* the rows before the last step */
    int32_t *read;      /* tokens of a batch, .. */
    int32_t *targets;   /* .. and those after them */
    bool *seen;         /* for each token */
    bool spaces;        /* between tokens: they are words */
    const char **words; /* the names of all tokens */
};

/* ---- making ---- */

static uint64_t seed_of(const play_choices *c)
{
    return c->seed != 0 ? (uint64_t)(uint32_t)c->seed : 1;
}

static embla_status open_corpus(play_training *t, const char *path, const char *tokenizer,
                                const play_choices *c)
{
    if (tokenizer) {
        embla_status status = embla_tokenizer_open_file(tokenizer, &t->tokenizer);
        if (status != EMBLA_OK) return status;
        t->tokenizer_path = strdup(tokenizer);
        if (!t->tokenizer_path) return answer_no_memory();
    }
    const embla_corpus_options options = {.kind = tokenizer      ? EMBLA_CORPUS_TOKENIZER
                                                  : c->words > 0 ? EMBLA_CORPUS_WORDS
                                                                 : EMBLA_CORPUS_CHARACTERS,
                                          .documents = true,
                                          .seed = seed_of(c),
                                          .max_words = c->words,
                                          .tokenizer = t->tokenizer};
    return embla_corpus_open(path, &options, &t->corpus);
}

static embla_status make(play_training *t, const play_choices *c)
{
    embla_gpt_preset preset;
    embla_status status = embla_gpt_preset_find("microgpt", &preset);
    if (status != EMBLA_OK) return status;
    embla_gpt_shape shape = preset.shape;
    if (c->positions > 0) shape.position_kind = (embla_positions_kind)(c->positions - 1);
    if (c->tied != 0) shape.untied = c->tied < 0;
    embla_gpt_resize(&shape, (size_t)(c->dim > 0 ? c->dim : 0), 0);
    shape.vocab = embla_corpus_vocab(t->corpus);
    status = embla_gpt_preset_options(&preset, c->steps > 0 ? c->steps : 0,
                                      c->rate > 0 ? c->rate : -1, preset.schedule, &t->options);
    t->spaces = !t->tokenizer && c->words > 0;
    if (c->batch > 0) t->options.batch = (size_t)c->batch;
    t->options.seed = seed_of(c);
    t->options.engine = EMBLA_TRAIN_ENGINE_NONE;
    if (status == EMBLA_OK) status = embla_gpt_new(&shape, t->options.seed, preset.spread, &t->gpt);
    if (status == EMBLA_OK) status = embla_train_new(t->gpt, t->corpus, &t->options, &t->train);
    if (status == EMBLA_OK) status = embla_train_describe(t->train, &t->options);
    return status == EMBLA_OK ? embla_gpt_describe(t->gpt, &t->shape) : status;
}

static embla_status take_memory(play_training *t)
{
    size_t vocab = (size_t)t->shape.vocab, batch = t->options.batch * t->options.length;
    t->before = malloc(vocab * t->shape.dim * sizeof *t->before);
    t->read = malloc(batch * sizeof *t->read);
    t->targets = malloc(batch * sizeof *t->targets);
    t->seen = malloc(vocab * sizeof *t->seen);
    t->words = calloc(vocab, sizeof *t->words);
    if (!t->before || !t->read || !t->targets || !t->seen || !t->words) return answer_no_memory();
    for (size_t i = 0; i < vocab; i++)
        t->words[i] = t->tokenizer ? embla_tokenizer_text(t->tokenizer, (int32_t)i, NULL)
                                   : embla_corpus_name(t->corpus, (int32_t)i);
    return EMBLA_OK;
}

play_training *play_train(const char *path, const char *tokenizer, const play_choices *choices)
{
    play_training *t = calloc(1, sizeof *t);
    if (!t) {
        answer_lack();
        return NULL;
    }
    embla_status status = open_corpus(t, path, tokenizer, choices);
    if (status == EMBLA_OK) status = make(t, choices);
    if (status == EMBLA_OK) status = take_memory(t);
    if (status == EMBLA_OK) return t;
    play_train_close(t);
    return NULL;
}

void play_train_close(play_training *training)
{
    if (!training) return;
    embla_train_free(training->train);
    embla_gpt_free(training->gpt);
    embla_corpus_free(training->corpus);
    embla_tokenizer_free(training->tokenizer);
    free(training->tokenizer_path);
    free(training->before);
    free(training->read);
    free(training->targets);
    free(training->seen);
    free(training->words);
    free(training);
}

const char *play_train_about(const play_training *training)
{
    const play_training *t = training;
    answer_begin();
    answer_whole("vocab", t->shape.vocab);
    answer_whole("dim", (int64_t)t->shape.dim);
    answer_whole("positions", (int64_t)t->shape.positions);
    answer_whole("steps", t->options.schedule.steps);
    answer_whole("parameters", embla_gpt_parameters(t->gpt));
    answer_whole("documents", embla_corpus_documents(t->corpus));
    answer_bool("tied", !t->shape.untied);
    answer_real("guessing", log((double)t->shape.vocab));
    answer_open("words", '[');
    for (int64_t i = 0; i < t->shape.vocab; i++)
        answer_text(NULL, t->words[i], t->words[i] ? strlen(t->words[i]) : 0);
    answer_close('[');
    return answer_end();
}

/* ---- steps ---- */

static const float *rows_of(const play_training *t)
{
    return embla_table_row(embla_gpt_tokens(t->gpt), 0);
}

/* Marks the tokens of the batch that a step reads. */
static embla_status mark_read(play_training *t, int64_t step)
{
    const embla_corpus_request request = {
        .step = step, .batch = t->options.batch, .length = t->options.length};
    size_t used = 0;
    embla_status status = embla_corpus_batch(t->corpus, &request, t->read, t->targets, &used);
    memset(t->seen, 0, (size_t)t->shape.vocab * sizeof *t->seen);
    for (size_t i = 0; status == EMBLA_OK && i < t->options.batch * used; i++)
        if (t->targets[i] != EMBLA_TARGET_IGNORE) t->seen[t->read[i]] = true;
    return status;
}

const char *play_train_steps(play_training *training, int32_t steps)
{
    play_training *t = training;
    const size_t dim = t->shape.dim, bytes = dim * sizeof(float);
    const float *rows = rows_of(t);
    for (int32_t i = 0; i < steps; i++) {
        if (i + 1 == steps) {
            memcpy(t->before, rows, (size_t)t->shape.vocab * bytes);
            if (mark_read(t, embla_train_steps(t->train)) != EMBLA_OK) return answer_failed();
        }
        if (embla_train_step(t->train, &t->last) != EMBLA_OK) return answer_failed();
    }
    answer_begin();
    answer_whole("step", embla_train_steps(t->train));
    answer_real("loss", t->last.loss);
    answer_real("rate", t->last.rate);
    answer_real("norm", t->last.norm);
    answer_open("read", '[');
    for (int64_t i = 0; i < t->shape.vocab && steps > 0; i++)
        if (t->seen[i]) answer_whole(NULL, i);
    answer_close('[');
    answer_open("moved", '[');
    for (int64_t i = 0; i < t->shape.vocab && steps > 0; i++)
        if (memcmp(rows + (size_t)i * dim, t->before + (size_t)i * dim, bytes) != 0)
            answer_whole(NULL, i);
    answer_close('[');
    return answer_end();
}

const float *play_train_rows(const play_training *training)
{
    return rows_of(training);
}

const float *play_train_positions(const play_training *training)
{
    embla_gpt_tensor tensor;
    if (training->shape.position_kind != EMBLA_POSITIONS_LEARNED) return NULL;
    for (size_t n = 0; embla_gpt_tensor_at(training->gpt, n, &tensor) == EMBLA_OK; n++)
        if (strcmp(tensor.name, "wpe") == 0) return tensor.values;
    return NULL;
}

const char *play_train_plane(const play_training *training, const float *aim)
{
    return geometry_plane_of(embla_gpt_tokens(training->gpt), aim ? aim : rows_of(training));
}

const char *play_train_near(const play_training *training, int32_t id, size_t top)
{
    return geometry_near(embla_gpt_tokens(training->gpt), id, top);
}

/* ---- what it writes ---- */

/* Draws tokens until the text ends. *count says how many. */
static embla_status draw_tokens(const play_training *t, embla_decoder *decoder, float *hidden,
                                double temperature, int32_t seed, int32_t tokens[SAMPLE_TOKENS],
                                size_t *count)
{
    const int32_t bos = embla_corpus_bos(t->corpus);
    const size_t most = t->shape.positions < SAMPLE_TOKENS ? t->shape.positions : SAMPLE_TOKENS;
    int32_t token = bos >= 0 ? bos : 0;
    embla_head head;
    embla_status status = embla_decoder_head(decoder, &head);
    for (size_t i = 0; status == EMBLA_OK && i < most; i++) {
        embla_choice choice = {0};
        const embla_sample_options sampling = {
            .temperature = temperature, .seed = (uint64_t)(uint32_t)seed, .step = (int64_t)i};
        status = embla_decoder_append(decoder, &token, 1, NULL, hidden);
        if (status == EMBLA_OK) status = embla_head_sample(&head, hidden, 1, &sampling, &choice);
        if (status != EMBLA_OK || choice.token < 0 || choice.token == bos) break;
        tokens[(*count)++] = token = choice.token;
    }
    return status;
}

/* The text of tokens: pieces as the tokenizer joins them, words with spaces, or characters. */
static const char *answer_said(const play_training *t, const int32_t *tokens, size_t count)
{
    embla_tokenized *pieces = NULL;
    const char *text = NULL;
    size_t length = 0;
    if (t->tokenizer &&
        (embla_tokenized_new(t->tokenizer, &pieces) != EMBLA_OK ||
         embla_detokenize(pieces, tokens, count, true, &text, &length) != EMBLA_OK)) {
        embla_tokenized_free(pieces);
        return answer_failed();
    }
    answer_begin();
    answer_open("tokens", '[');
    for (size_t i = 0; i < count; i++) answer_whole(NULL, tokens[i]);
    answer_close('[');
    if (t->tokenizer) {
        answer_text("text", text, length);
    } else {
        answer_text_open("text");
        for (size_t i = 0; i < count; i++) {
            const char *word = t->words[tokens[i]];
            if (t->spaces && i > 0) answer_text_add(" ", 1);
            if (word) answer_text_add(word, strlen(word));
        }
        answer_text_close();
    }
    embla_tokenized_free(pieces);
    return answer_end();
}

const char *play_train_sample(const play_training *training, double temperature, int32_t seed)
{
    const play_training *t = training;
    int32_t tokens[SAMPLE_TOKENS];
    size_t count = 0;
    embla_decoder *decoder = NULL;
    float *hidden = malloc(t->shape.dim * sizeof *hidden);
    if (!hidden) return answer_refused("there is not enough memory for a sample");
    embla_status status = embla_decoder_new(t->gpt, t->shape.positions, &decoder);
    if (status == EMBLA_OK)
        status = draw_tokens(t, decoder, hidden, temperature, seed, tokens, &count);
    embla_decoder_free(decoder);
    free(hidden);
    return status == EMBLA_OK ? answer_said(t, tokens, count) : answer_failed();
}

/* The tokenizer belongs to the model. */
static bool copy_tokenizer(const char *from, const char *folder)
{
    char path[256], bytes[4096];
    if (snprintf(path, sizeof path, "%s/tokenizer.json", folder) >= (int)sizeof path) return false;
    FILE *in = fopen(from, "rb"), *out = in ? fopen(path, "wb") : NULL;
    bool good = out != NULL;
    for (size_t count; good && (count = fread(bytes, 1, sizeof bytes, in)) > 0;)
        good = fwrite(bytes, 1, count, out) == count;
    if (in && ferror(in)) good = false;
    if (in) (void)fclose(in);
    if (out && fclose(out) != 0) good = false;
    return good;
}

const char *play_train_save(const play_training *training, const char *folder)
{
    const play_training *t = training;
    if (embla_train_save_model(t->train, folder, t->tokenizer ? NULL : t->words) != EMBLA_OK)
        return answer_failed();
    if (t->tokenizer && !copy_tokenizer(t->tokenizer_path, folder))
        return answer_refused("the tokenizer could not be written");
    answer_begin();
    answer_text("folder", folder, strlen(folder));
    return answer_end();
}
