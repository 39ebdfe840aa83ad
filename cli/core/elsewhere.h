/* SPDX-License-Identifier: Apache-2.0 */
/* What other tools call our options. */
#ifndef CLI_CORE_ELSEWHERE_H
#define CLI_CORE_ELSEWHERE_H

#include "core/args.h"

/* The option of verb that other tools call name, which has no dashes in front: "vocab-size" is
 * `size` of tokenizer. NULL means that none is known. */
const char *cli_elsewhere_option(const cli_verb *verb, const char *name);

/* Whether other tools name the file to read with this option. */
bool cli_elsewhere_input(const char *name);

#endif
