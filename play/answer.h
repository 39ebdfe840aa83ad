/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a call: one text of JSON, in memory that the next call uses again. */
#ifndef PLAY_ANSWER_H
#define PLAY_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embla.h"

/* Begins an answer with "{". */
void answer_begin(void);
/* Ends it, and gives it; {"error": ..} if there was no memory for it. */
const char *answer_end(void);
/* Says that there was no memory, of what the library does not see. */
void answer_lack(void);
static inline embla_status answer_no_memory(void)
{
    answer_lack();
    return EMBLA_ERR_MEMORY;
}
/* {"error": ..} with play_error(). */
const char *answer_failed(void);
/* The same with a sentence of ours. */
const char *answer_refused(const char *sentence);

/* key NULL: an element of a list. Brackets are '[' and '{'. */
void answer_open(const char *key, char bracket);
void answer_close(char bracket);
void answer_text(const char *key, const char *bytes, size_t length); /* bytes NULL: null */
/* A text of several parts. */
void answer_text_open(const char *key);
void answer_text_add(const char *bytes, size_t length);
void answer_text_close(void);
void answer_whole(const char *key, int64_t number);
void answer_bool(const char *key, bool value);
/* With the digits that give the same double again; NaN and infinities are null. */
void answer_real(const char *key, double number);
/* The same for a float. */
void answer_float(const char *key, float number);
/* count lists of dim floats. */
void answer_rows(const char *key, const float *rows, size_t count, size_t dim);

#endif
