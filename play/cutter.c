/* SPDX-License-Identifier: Apache-2.0 */
#include "cutter.h"

#include <stdlib.h>
#include <string.h>

#include "embla_train.h"

#include "answer.h"

embla_status cutter_begin(play_cutter *cutter, embla_tokenizer *tokenizer)
{
    cutter->tokenizer = tokenizer;
    return embla_tokenized_new(tokenizer, &cutter->tokenized);
}

void cutter_end(play_cutter *cutter)
{
    embla_tokenized_free(cutter->tokenized);
    embla_tokenizer_free(cutter->tokenizer);
}

play_cutter *play_cutter_open(const char *path)
{
    embla_tokenizer *tokenizer = NULL;
    play_cutter *cutter = calloc(1, sizeof *cutter);
    if (!cutter) {
        answer_lack();
        return NULL;
    }
    embla_status status = embla_tokenizer_open_file(path, &tokenizer);
    if (status == EMBLA_OK) status = cutter_begin(cutter, tokenizer);
    if (status == EMBLA_OK) return cutter;
    play_cutter_close(cutter);
    return NULL;
}

play_cutter *play_cutter_train(const char *text, const char *path, int32_t tokens)
{
    static const char *const special[] = {"<|endoftext|>"};
    const embla_tokenizer_train_options options = {
        .max_tokens = tokens, .special = special, .special_count = 1};
    if (embla_tokenizer_train(text, path, &options, NULL) != EMBLA_OK) return NULL;
    return play_cutter_open(path);
}

void play_cutter_close(play_cutter *cutter)
{
    if (!cutter) return;
    cutter_end(cutter);
    free(cutter);
}

const char *play_cut(play_cutter *cutter, const char *text)
{
    const embla_tokenize_options options = {.offsets = true};
    embla_tokenizer_info info;
    if (embla_tokenizer_describe(cutter->tokenizer, &info) != EMBLA_OK ||
        embla_tokenize(cutter->tokenized, text, strlen(text), &options) != EMBLA_OK)
        return answer_failed();
    const int32_t *tokens = embla_tokenized_tokens(cutter->tokenized);
    const embla_text_span *spans = embla_tokenized_offsets(cutter->tokenized);
    answer_begin();
    answer_whole("vocab", info.vocab);
    answer_open("tokens", '[');
    for (size_t i = 0; i < embla_tokenized_count(cutter->tokenized); i++) {
        size_t length = 0;
        const char *piece = embla_tokenizer_text(cutter->tokenizer, tokens[i], &length);
        answer_open(NULL, '{');
        answer_whole("id", tokens[i]);
        answer_text("text", piece, length);
        answer_whole("begin", spans[i].begin);
        answer_whole("end", spans[i].end);
        answer_close('{');
    }
    answer_close('[');
    return answer_end();
}
