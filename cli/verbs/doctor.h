/* SPDX-License-Identifier: Apache-2.0 */
/* What `embla doctor` has found: a list that the checks add to, each finding with its level,
 * what was found with both numbers, and what helps.
 *
 * The checks are in two files: doctor_shapes.c compares what headers say, doctor_values.c
 * reads the rows.
 */
#ifndef CLI_VERBS_DOCTOR_H
#define CLI_VERBS_DOCTOR_H

#include "embla.h"

#include "core/model.h"

/* skipped: what it would compare is not there */
typedef enum { CLI_FINE, CLI_SKIPPED, CLI_WARNING, CLI_ERROR, CLI_LEVELS } cli_level;

typedef struct {
    cli_level level;
    const char *check;  /* one word: "rows" */
    const char *remedy; /* NULL: nothing needs to be done */
    char found[1024];
} cli_finding;

typedef struct {
    cli_model model;
    bool gguf;
    cli_finding *findings;
    size_t count, room;
    size_t of_level[CLI_LEVELS];
    bool no_memory; /* a finding was lost */
    bool quiet;     /* no progress */
    int threads;
} cli_doctor;

/* Adds a finding. */
void cli_found(cli_doctor *doctor, cli_level level, const char *check, const char *remedy,
               const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The tensors of a role, in their order: *n is 0 at first and moves on. False at the end. */
bool cli_doctor_next(const cli_doctor *doctor, embla_role role, size_t *n, embla_tensor *out);
/* " 32000 "<fill>", 32001 "</s>"": tokens with their words, at most ten of the count from first
 * on, and ".." for the rest. Returns text. */
const char *cli_doctor_tokens(const cli_doctor *doctor, int64_t first, int64_t count,
                              char text[640]);

void cli_doctor_shapes(cli_doctor *doctor);
void cli_doctor_values(cli_doctor *doctor);

#endif
