/* SPDX-License-Identifier: Apache-2.0 */
/* embla_tokenized: the tokens of a call and the memory for making them, one for each call that runs
 * at the same time. */
#ifndef EMBLA_PYTHON_TOKENIZER_H
#define EMBLA_PYTHON_TOKENIZER_H

#include "bind.h"
#include "embla_text.h"

/* Those that no call uses now. They are kept, so that a call allocates nothing. */
enum { BIND_SPARE = 4 };
typedef struct {
    _Atomic(embla_tokenized *) spare[BIND_SPARE];
} bind_pool;

/* One of the tokenizer; NULL after an exception. */
embla_tokenized *bind_pool_take(bind_pool *pool, const embla_tokenizer *tokenizer);
void bind_pool_return(bind_pool *pool, embla_tokenized *tokenized);
void bind_pool_free(bind_pool *pool);

/* The object of an encoder. */
typedef struct {
    bind_object base; /* handle: embla_encoder */
    bind_pool pool;
    size_t dim;
} bind_encoder;

#endif
