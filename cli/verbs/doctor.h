/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of `embla doctor`: a level, the observation with both numbers, and a remedy.
 *
 * doctor_shapes.c compares headers; doctor_values.c reads rows.
 */
#ifndef CLI_VERBS_DOCTOR_H
#define CLI_VERBS_DOCTOR_H

#include "embla_checkpoint.h"

#include "core/model.h"

/* skipped: there is nothing to compare */
typedef enum { CLI_FINE, CLI_SKIPPED, CLI_WARNING, CLI_ERROR, CLI_LEVELS } cli_level;

typedef struct {
    cli_level level;
    const char *check;  /* one word: "rows" */
    const char *remedy; /* NULL means that nothing needs to be done */
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

/* Iterates over the tensors of a role, in file order; start with *n = 0. False at the end. */
bool cli_doctor_next(const cli_doctor *doctor, embla_role role, size_t *n, embla_tensor *out);
/* Tokens first .. first + count - 1 with their words: 32000 "<fill>", 32001 "</s>". At most ten are
 * named, then "..". Returns text. */
const char *cli_doctor_tokens(const cli_doctor *doctor, int64_t first, int64_t count,
                              char text[640]);

void cli_doctor_shapes(cli_doctor *doctor);
void cli_doctor_values(cli_doctor *doctor);

#endif
