/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the doctor share: the parts of a checkpoint that are compared, and how a check
 * reports.
 *
 * doctor_model.c finds the parts, doctor_shapes.c compares headers, doctor_values.c reads rows. A
 * check returns a failure only if the caller has to know it: memory, or a stop. Everything else
 * that goes wrong is a finding.
 */
#ifndef EMBLA_SEE_DOCTOR_H
#define EMBLA_SEE_DOCTOR_H

#include <stdbool.h>

#include "base/shown.h"
#include "base/status.h"
#include "embla_checkpoint.h"
#include "embla_lab.h"

/* Buffer sizes. A list of tokens ends after 560 bytes; one more token has at most 136. */
enum { EMBLA_DOCTOR_SENTENCE = 512, EMBLA_DOCTOR_LIST = 560, EMBLA_DOCTOR_TOKENS = 720 };

typedef struct {
    const embla_checkpoint *checkpoint;
    embla_doctor_options options;
    embla_doctor *doctor; /* takes the findings */
    bool gguf;
    bool has_table;
    bool no_matrix;     /* there is no table because no tensor is rows x dim */
    embla_tensor table; /* the token table */
    const char *why;    /* the rule that found it */
    int64_t rows, dim;  /* of the table */
    embla_facts facts;
    embla_vocab *vocab; /* NULL means no words for these rows */
    /* why there is no table or no vocabulary; "" without an error */
    char table_error[EMBLA_DOCTOR_SENTENCE], vocab_error[EMBLA_DOCTOR_SENTENCE];
    /* "8 rows, 20 tokens" if the words do not belong to the chosen tensor; else "" */
    char no_words[EMBLA_DOCTOR_SENTENCE];
    int64_t done, total; /* bytes of tensors that have been read, and of all that are read */
} embla_doctor_work;

/* Whether a failure of a call ends the examination: it says nothing about the checkpoint. */
static inline bool embla_doctor_ends(embla_status status)
{
    return status == EMBLA_ERR_MEMORY || status == EMBLA_ERR_STOPPED;
}

/* Adds a finding: all its fields but `found`, which comes from format. Texts are copied. */
EMBLA_CHECKED embla_status embla_doctor_found(embla_doctor_work *work, embla_finding finding,
                                              const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Finds table, facts and vocabulary. work->vocab is to be freed, also after a failure. */
EMBLA_CHECKED embla_status embla_doctor_model(embla_doctor_work *work);
/* Iterates over the tensors of a role, in file order; start with *n = 0. False at the end. */
bool embla_doctor_next(const embla_doctor_work *work, embla_role role, size_t *n,
                       embla_tensor *out);
/* Reads the first of keys (ends with NULL) with a numeric value; "%s" in a key stands for the
 * architecture of a GGUF. *key is its name without that. False if there is none. */
bool embla_doctor_number(const embla_doctor_work *work, const char *const *keys, int64_t *out,
                         const char **key);
/* One more than the highest token, from the vocabulary or an llm.c header; -1 means unknown. */
int64_t embla_doctor_tokens_end(const embla_doctor_work *work);
/* Tokens first .. first + count - 1 with their words: 32000 "<fill>", 32001 "</s>". At most ten are
 * named, then "..". Returns text. */
const char *embla_doctor_tokens(const embla_doctor_work *work, int64_t first, int64_t count,
                                char text[EMBLA_DOCTOR_TOKENS]);

EMBLA_CHECKED embla_status embla_doctor_shapes(embla_doctor_work *work);
EMBLA_CHECKED embla_status embla_doctor_values(embla_doctor_work *work);

#endif
