/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of `embla train`: what computes its matrix products. */
#ifndef CLI_TRAIN_ENGINE_CHOICE_H
#define CLI_TRAIN_ENGINE_CHOICE_H

#include "train/training.h"

/* The names of --engine, from n = 0 on; NULL past the last. */
const char *cli_engine_choice(size_t n);
/* Reads --engine. Returns an exit code, after a message if it is not CLI_DONE. */
int cli_engine_read(const cli_args *args, embla_train_engine *out);
/* The library that computes large products of this training; NULL if plain loops compute all. */
const char *cli_engine_used(const cli_training *t);

#endif
