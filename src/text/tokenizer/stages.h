/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for reading the stages of a tokenizer.json, which are objects with a "type". */
#ifndef EMBLA_TOKENIZER_STAGES_H
#define EMBLA_TOKENIZER_STAGES_H

#include "tokenizer/tokenizer.h"

/* "" if there is none. */
const char *embla_stage_type(const embla_json_value *value);
/* The value of a boolean; `usual` if there is none. */
bool embla_stage_flag(const embla_json_value *value, const char *key, bool usual);
/* Copies a string. EMBLA_ERR_FORMAT if there is none. */
EMBLA_CHECKED embla_status embla_stage_text(embla_tokenizer *t, const embla_json_value *value,
                                            const char *key, embla_name *out);
/* Reads {"pattern": {"String": ..} or {"Regex": ..}}. */
EMBLA_CHECKED embla_status embla_stage_pattern(embla_tokenizer *t, const embla_json_value *value,
                                               embla_pattern *out);
/* Calls read for a stage, or for each stage of a Sequence, whose array has the key `list`. NULL and
 * null have none. */
typedef embla_status embla_stage_reader(embla_tokenizer *t, const embla_json_value *value,
                                        const char *type);
EMBLA_CHECKED embla_status embla_stages_each(embla_tokenizer *t, const embla_json_value *value,
                                             const char *list, embla_stage_reader *read);

/* Appends a name to the description of the tokenizer. */
void embla_pipeline_say(embla_tokenizer *t, const char *name);

EMBLA_CHECKED embla_status embla_stage_wrong(const embla_tokenizer *t, const char *type,
                                             const char *what);
EMBLA_CHECKED embla_status embla_stage_unknown(const embla_tokenizer *t, const char *what,
                                               const char *type);

#endif
