/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `embla embed` share. */
#ifndef CLI_VERBS_EMBED_JOB_H
#define CLI_VERBS_EMBED_JOB_H

#include "core/vectors.h"

typedef enum {
    CLI_EMBED_AUTO,
    CLI_EMBED_LEARNED,
    CLI_EMBED_SINUSOIDAL,
    CLI_EMBED_ROTARY,
    CLI_EMBED_NONE
} cli_embed_kind;
/* The name of a kind; NULL past the last. */
const char *cli_embed_kind_name(size_t n);
/* What auto means for a checkpoint: not AUTO. */
cli_embed_kind cli_embed_kind_of(const embla_checkpoint *checkpoint);

/* Positions above this cannot be told apart in a double. */
#define CLI_EMBED_POSITION_MOST (INT64_C(1) << 53)

/* Rotary positions: pair i of the numbers of a head is rotated by position * theta^(-2i/dim). */
typedef struct {
    size_t dim; /* of a head, even */
    double theta;
    size_t heads; /* 0 means unknown: the whole row counts as one head */
    bool scaled;  /* the model changes these angles (rope_scaling) */
} cli_rotary;

/* Reads theta and heads from the facts of a checkpoint whose rows have dim numbers. False if a head
 * has an odd number of them. */
bool cli_rotary_read(const embla_checkpoint *checkpoint, size_t dim, cli_rotary *out);
/* Whether a checkpoint says that its positions are rotary. */
bool cli_rotary_known(const embla_checkpoint *checkpoint);
/* The angle by which pair i is rotated from one position to the next, in radians. */
double cli_rotary_step(const cli_rotary *rotary, size_t pair);
/* Prints the angles of a few positions and pairs, in degrees; words may be NULL. */
void cli_rotary_table(const cli_rotary *rotary, int64_t first, size_t count,
                      char (*words)[CLI_WORD_TEXT]);
/* Prints the line of facts below it. */
void cli_rotary_fact(const cli_rotary *rotary);
/* Prints "theta" and "head_dim" of the JSON object, and the angles of a position in radians. */
void cli_rotary_json(const cli_rotary *rotary, cli_json *json);
void cli_rotary_json_angles(const cli_rotary *rotary, int64_t position, cli_json *json);
/* Prints the dials to a file. CLI_DONE, or CLI_FAILED after a message. */
int cli_rotary_sheet(const cli_rotary *rotary, const char *name, int64_t first, size_t count,
                     char (*words)[CLI_WORD_TEXT], cli_sheet_kind kind);

/* The position table of a checkpoint. */
typedef struct {
    embla_tensor tensor;
    embla_table *table;
    int64_t zero; /* the row of position 0 */
} cli_learned;

/* Whether a checkpoint has a position table. */
bool cli_learned_known(const embla_checkpoint *checkpoint);
/* Opens it for a token table of this dim. CLI_DONE, or CLI_FAILED after a message. */
int cli_learned_open(const cli_model *model, size_t dim, cli_learned *out);

/* embla embed without tokens: the positions themselves. Returns the exit code. */
int cli_embed_positions(const cli_args *args);

#endif
