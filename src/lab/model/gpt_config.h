/* SPDX-License-Identifier: Apache-2.0 */
/* Family and sizes of a model, from config.json or the header of a file. */
#ifndef EMBLA_MODEL_GPT_CONFIG_H
#define EMBLA_MODEL_GPT_CONFIG_H

#include "checkpoint/checkpoint.h"
#include "model/gpt_families.h"

typedef struct {
    const embla_family *family;
    const char *prefix;      /* before all names except the head's */
    const embla_entry *head; /* its tensor, even if equal to the token table; NULL if none */
    embla_gpt_shape shape;   /* complete and checked */
} embla_gpt_config;

/* Errors EMBLA_ERR_UNSUPPORTED and EMBLA_ERR_FORMAT name the key that is wrong. */
EMBLA_CHECKED embla_status embla_gpt_config_read(const embla_checkpoint *checkpoint,
                                                 embla_gpt_config *out);

#endif
