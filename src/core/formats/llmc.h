/* SPDX-License-Identifier: Apache-2.0 */
/* The header of an llm.c model, separate from its file: the writer plans it, and a test compares it
 * with the header that was read.
 */
#ifndef EMBLA_FORMATS_LLMC_H
#define EMBLA_FORMATS_LLMC_H

#include "formats/format.h"

enum { EMBLA_LLMC_HEADER = 1024, EMBLA_LLMC_TENSORS = 16 };

typedef struct {
    uint32_t positions; /* max_seq_len, T */
    uint32_t tokens;    /* vocab_size, V */
    uint32_t layers;    /* L */
    uint32_t heads;     /* NH */
    uint32_t channels;  /* C, the dim */
    uint32_t rows;      /* padded_vocab_size, Vp: V and the padding */
    const embla_element *element;
    /* parts[n] is the part of the contents that becomes tensor n of the file. */
    const embla_part *parts[EMBLA_LLMC_TENSORS];
} embla_llmc;

/* Plans a file of these contents. Refuses contents that are not a GPT-2 with llm.c's names; the
 * message says what is missing or does not fit. */
EMBLA_CHECKED embla_status embla_llmc_plan(const embla_contents *contents, embla_llmc *out);
/* Writes the header of that file. */
void embla_llmc_header(const embla_llmc *model, uint8_t out[EMBLA_LLMC_HEADER]);

#endif
