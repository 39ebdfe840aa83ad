/* SPDX-License-Identifier: Apache-2.0 */
/* What `embla doctor` has found: a list that the checks add to, each finding with its level,
 * what was found with both numbers, and what helps.
 *
 * The checks are in two files: doctor_shapes.c compares what headers say, doctor_values.c
 * reads the rows.
 */
#ifndef EMBLA_CLI_DOCTOR_H
#define EMBLA_CLI_DOCTOR_H

#include "embla.h"

#include "model.h"

/* skipped: what it would compare is not there */
typedef enum { EMBLA_FINE, EMBLA_SKIPPED, EMBLA_WARNING, EMBLA_ERROR, EMBLA_LEVELS } embla_level;

typedef struct {
    embla_level level;
    const char *check;  /* one word: "rows" */
    const char *remedy; /* NULL: nothing needs to be done */
    char found[1024];
} embla_finding;

typedef struct {
    embla_model model;
    bool gguf;
    embla_finding *findings;
    size_t count, room;
    size_t of_level[EMBLA_LEVELS];
    bool no_memory; /* a finding was lost */
    bool quiet;     /* no progress */
    int threads;
} embla_doctor;

/* Adds a finding. */
void embla_found(embla_doctor *doctor, embla_level level, const char *check, const char *remedy,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The tensors of a role, in their order: *n is 0 at first and moves on. False at the end. */
bool embla_doctor_next(const embla_doctor *doctor, embla_role role, size_t *n, embla_tensor *out);
/* " 32000 "<fill>", 32001 "</s>"": tokens with their words, at most ten of the count from first
 * on, and ".." for the rest. Returns text. */
const char *embla_doctor_tokens(const embla_doctor *doctor, int64_t first, int64_t count,
                                char text[640]);

void embla_doctor_shapes(embla_doctor *doctor);
void embla_doctor_values(embla_doctor *doctor);

#endif
