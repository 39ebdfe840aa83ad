/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the program `bits` share: notes of results, and inputs that are the same
 * everywhere because they are made of integers.
 *
 * A note is one line, a name and a checksum. The checksum is of the numbers as little-endian
 * bytes, so it does not depend on the machine.
 */
#ifndef EMBLA_TESTS_BITS_H
#define EMBLA_TESTS_BITS_H

#include <stddef.h>
#include <stdint.h>

#include "embla.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* Threads of every call. */
extern int bits_threads;

/* Ends the program with the message of the library if the call failed. */
#define OK(call) bits_require((call), #call)
void bits_require(embla_status status, const char *call);

/* Zeroed memory; the program ends if there is none. */
void *bits_room(size_t bytes);

/* The path of a file in the folder of the program. It is valid for the next seven calls. */
const char *bits_path(const char *name);
void bits_write_text(const char *name, const char *text);

/* Notes one result under a name that is made as by printf. */
__attribute__((format(printf, 3, 4))) void bits_note(const void *bytes, size_t count,
                                                     const char *format, ...);
__attribute__((format(printf, 3, 4))) void bits_note_f32(const float *x, size_t count,
                                                         const char *format, ...);
__attribute__((format(printf, 3, 4))) void bits_note_f64(const double *x, size_t count,
                                                         const char *format, ...);
__attribute__((format(printf, 3, 4))) void bits_note_i32(const int32_t *x, size_t count,
                                                         const char *format, ...);
__attribute__((format(printf, 3, 4))) void bits_note_i64(const int64_t *x, size_t count,
                                                         const char *format, ...);
/* Notes the bytes of a file in the folder. */
__attribute__((format(printf, 2, 3))) void bits_note_file(const char *name, const char *format,
                                                          ...);

/* The next random number: below limit; in [-1, 1). */
uint64_t bits_below(uint64_t *seed, uint64_t limit);
float bits_unit(uint64_t *seed);
/* n numbers in (-1, 1) of many sizes, so that a sum depends on its order. The caller frees them. */
float *bits_numbers(uint64_t seed, size_t n);
int32_t *bits_tokens(uint64_t seed, size_t n, int64_t limit);
/* A table of such numbers. The dtype is one that the library writes. */
embla_table *bits_table(embla_dtype dtype, int64_t rows, size_t dim, uint64_t seed);
/* A text of made-up words, some of which are frequent: 0 at its end. The caller frees it. */
char *bits_text(uint64_t seed, size_t words, size_t words_a_line);

/* The parts, each in a file of its own. */
void bits_rows(void);
void bits_positions(void);
void bits_learn(void);
void bits_models(void);
void bits_training(void);
void bits_near(void);
void bits_see(void);
void bits_tokenizers(void);
void bits_encoder(void);
void bits_words(void);
void bits_grams(void);
void bits_files(void);

#endif
