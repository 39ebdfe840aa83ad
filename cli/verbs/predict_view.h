/* SPDX-License-Identifier: Apache-2.0 */
/* What `embla predict` has computed for one text, and its forms: table, text, JSON, picture.
 */
#ifndef CLI_VERBS_PREDICT_VIEW_H
#define CLI_VERBS_PREDICT_VIEW_H

#include "core/answers.h"
#include "core/language_model.h"
#include "draw/sheet.h"

enum { CLI_PREDICTION_NEXT = 64 }; /* next tokens of a picture */

typedef struct {
    const cli_language_model *lm;
    const cli_asked *words; /* names of tokens */
    const char *text;       /* as typed; NULL: none was given */
    int32_t *tokens;        /* count: the text, with the token that begins one if there is one */
    size_t count;
    embla_prediction *each; /* count: the tokens of the text */
    embla_prediction *next; /* top: the most probable tokens after it */
    size_t top;
    embla_prediction *asked; /* --token; NULL: not given */
    float *attention; /* layers x heads x count: weights of the last token; NULL: not wanted */
    double loss;      /* mean of the text's tokens but the first, in nats */
    double temperature;
} cli_prediction;

/* -log2 of a token's probability. */
double cli_prediction_bits(const embla_prediction *prediction);
/* Four decimals; a small probability keeps its digits. */
void cli_prediction_probability(const embla_prediction *prediction, char cell[CLI_CELL]);
/* exp(loss). Returns cell. */
const char *cli_prediction_perplexity(double loss, char cell[CLI_CELL]);
/* Whether the first token is the one that begins a text, which was not typed. */
bool cli_prediction_leads(const cli_prediction *p);

/* For people. */
void cli_prediction_table(const cli_prediction *p, bool utf8);
/* For programs: a line for each token, with tabs. */
void cli_prediction_text(const cli_prediction *p);
/* One element of an array. */
void cli_prediction_json(const cli_prediction *p, cli_json *json);
/* A picture, of at most CLI_PREDICTION_NEXT next tokens, to stdout. path is the model's. CLI_DONE,
 * or CLI_FAILED after a message. */
int cli_prediction_sheet(const char *path, const cli_prediction *p, cli_sheet_kind kind);

#endif
