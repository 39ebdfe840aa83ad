/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a word: the rule of embla_next_word, for code that cuts words further. */
#ifndef EMBLA_UNICODE_CUT_H
#define EMBLA_UNICODE_CUT_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes of the word characters that follow each other at the start of a text, or of the one
 * other character that it starts with. length is at least 1. *letters tells which. */
size_t embla_run_length(const char *text, size_t length, bool *letters);

#endif
