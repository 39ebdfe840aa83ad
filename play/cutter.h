/* SPDX-License-Identifier: Apache-2.0 */
/* A tokenizer that cuts the texts of the page. */
#ifndef PLAY_CUTTER_H
#define PLAY_CUTTER_H

#include "embla_text.h"

#include "play.h"

struct play_cutter {
    embla_tokenizer *tokenizer;
    embla_tokenized *tokenized;
};

/* Takes the tokenizer, also if it fails. */
embla_status cutter_begin(play_cutter *cutter, embla_tokenizer *tokenizer);
void cutter_end(play_cutter *cutter);

#endif
