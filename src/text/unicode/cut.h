/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a text, and parts of words for code that cuts them further. */
#ifndef EMBLA_UNICODE_CUT_H
#define EMBLA_UNICODE_CUT_H

#include "base/status.h"

/* Finds the next word of a text. Its address goes to *word; the result is its length in bytes, 0 if
 * there is no further word. The next search begins at *word + length.
 *   word character  A-Z, a-z, 0-9 and all characters from U+00C0 on, except U+00D7, U+00F7, U+2000
 *                   to U+2BFF, U+3000 to U+303F, U+FE10 to U+FE6F, U+FF00 to U+FF0F and U+1F000 to
 *                   U+1FAFF
 *   word            as many word characters as follow each other; ' or U+2019 between two of them
 *                   belongs to the word (don't)
 *   line end        LF is a word of its own
 *   separator       spaces and other white space, control characters; they belong to no word
 *   any other       a word of its own: punctuation, symbols, a byte that is not valid UTF-8 */
EMBLA_PRIVATE size_t embla_next_word(const char *text, size_t length, const char **word);

/* The bytes of the word characters that follow each other at the start of a text, or of the one
 * other character that it starts with. length is at least 1. *letters tells which. */
size_t embla_run_length(const char *text, size_t length, bool *letters);

#endif
