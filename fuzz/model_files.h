/* SPDX-License-Identifier: Apache-2.0 */
/* The files of an input of fuzz_model.c: after a byte of choices, each file is a byte that chooses
 * its name, two bytes for its length (little-endian), and its contents. */
#ifndef EMBLA_FUZZ_MODEL_FILES_H
#define EMBLA_FUZZ_MODEL_FILES_H

static const char *const model_files[] = {
    "model.safetensors", "config.json", "tokenizer.json", "model.gguf",
    "vocab.json",        "vocab.txt",   "b.safetensors",  "model.safetensors.index.json",
    "tokenizer.bin"};
enum { MODEL_FILES = sizeof model_files / sizeof model_files[0], MODEL_FILE_HEAD = 3 };

#endif
