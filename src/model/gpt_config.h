/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint is a model of, and its sizes: what config.json or a header says. */
#ifndef EMBLA_MODEL_GPT_CONFIG_H
#define EMBLA_MODEL_GPT_CONFIG_H

#include "formats/checkpoint.h"
#include "model/gpt_families.h"

typedef struct {
    const embla_family *family;
    const char *prefix;      /* before all names but the head's */
    const embla_entry *head; /* a tensor for it, also where it is the token table; NULL: none */
    embla_gpt_shape shape;   /* whole, and checked */
} embla_gpt_config;

/* EMBLA_ERR_UNSUPPORTED and EMBLA_ERR_FORMAT say which key is not right. */
EMBLA_CHECKED embla_status embla_gpt_config_read(const embla_checkpoint *checkpoint,
                                                 embla_gpt_config *out);

#endif
