/* SPDX-License-Identifier: Apache-2.0 */
/* A tokenizer of the words of a table, for files of word vectors, which have none. */
#ifndef CLI_CORE_WORD_TOKENIZER_H
#define CLI_CORE_WORD_TOKENIZER_H

#include "embla_text.h"

#include "core/args.h"

/* Opens the words of path, a file of word vectors, as a tokenizer that cuts text at white space. A
 * note on stderr says so, unless --quiet. False if path is no such file, or has no words;
 * embla_error() is then another one than before. */
bool cli_word_tokenizer(const cli_args *args, const char *path, embla_tokenizer **out);

#endif
