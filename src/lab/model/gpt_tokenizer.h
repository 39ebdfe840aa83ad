/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a model, and the tokenizer.json that has them. */
#ifndef EMBLA_MODEL_GPT_TOKENIZER_H
#define EMBLA_MODEL_GPT_TOKENIZER_H

#include "base/arena.h"
#include "files/durable.h"
#include "files/names.h"

typedef struct {
    int64_t count;
    embla_name *words; /* count of them; NULL if there are none */
    uint8_t *special;  /* one for each word: not text, but a special token */
    int64_t bos;       /* the only special token besides <unk>; -1 if there is none, or several */
    bool bytes;        /* the first 256 words are the bytes */
} embla_gpt_words;

/* Checks the words of all tokens and gives those without text a name. EMBLA_ERR_ARGUMENT if two are
 * equal, or one is not UTF-8. */
EMBLA_CHECKED embla_status embla_gpt_words_check(embla_arena *arena, const char *const *words,
                                                 int64_t count, embla_gpt_words *out);
EMBLA_CHECKED embla_status embla_gpt_tokenizer_write(const embla_gpt_words *words,
                                                     embla_durable *file);

#endif
