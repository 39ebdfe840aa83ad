/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens that begin and end a text. Files name them in many ways, and some not at all. */
#include <string.h>

#include "embla_checkpoint.h"
#include "embla_train.h"

static bool known(int64_t token, int64_t tokens)
{
    return token >= 0 && token < tokens;
}

static void add_end(embla_text_ends *t, int64_t token, int64_t tokens)
{
    if (!known(token, tokens) || t->end_count == EMBLA_TEXT_ENDS) return;
    for (size_t i = 0; i < t->end_count; i++)
        if (t->ends[i] == token) return;
    t->ends[t->end_count++] = (int32_t)token;
}

/* The number of the first of these keys that the checkpoint has. */
static bool number_of(const embla_checkpoint *checkpoint, const char *const *keys, int64_t *out)
{
    for (; *keys; keys++)
        if (embla_checkpoint_integer(checkpoint, *keys, out) == EMBLA_OK) return true;
    return false;
}

/* GPT-2's token; -1 means none. */
static int32_t between_texts(const embla_tokenizer *tokenizer, int64_t tokens)
{
    static const char word[] = "<|endoftext|>";
    int32_t token = tokenizer ? embla_tokenizer_token(tokenizer, word, sizeof word - 1) : -1;
    return known(token, tokens) ? token : -1;
}

void embla_text_ends_find(const embla_checkpoint *checkpoint, const embla_tokenizer *tokenizer,
                          int64_t tokens, embla_text_ends *out)
{
    static const char *const bos[] = {"bos_token_id", "tokenizer.ggml.bos_token_id", NULL};
    static const char *const eos[] = {"eos_token_id", "tokenizer.ggml.eos_token_id", NULL};
    const bool llama2c = strcmp(embla_checkpoint_format(checkpoint), "llama2.c") == 0 && tokens > 2;
    const int32_t between = between_texts(tokenizer, tokens);
    int64_t token = -1, more[EMBLA_TEXT_ENDS];
    size_t count = 0;
    *out = (embla_text_ends){.begin = -1};
    if (number_of(checkpoint, bos, &token) && known(token, tokens))
        out->begin = (int32_t)token;
    else if (between >= 0)
        out->begin = between;
    else if (llama2c)
        out->begin = 1;
    out->leads = out->begin >= 0 && out->begin != between;
    add_end(out, out->begin, tokens);
    if (llama2c && out->begin == 1) add_end(out, 2, tokens);
    if (number_of(checkpoint, eos, &token)) add_end(out, token, tokens);
    if (embla_checkpoint_integers(checkpoint, eos[0], EMBLA_TEXT_ENDS, more, &count) == EMBLA_OK)
        for (size_t i = 0; i < count && i < EMBLA_TEXT_ENDS; i++) add_end(out, more[i], tokens);
}
