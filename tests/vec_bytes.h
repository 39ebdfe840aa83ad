/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of words and vectors share: the three formats, files given as string
 * literals, and a row of two floats as all of them hold it.
 */
#ifndef EMBLA_TESTS_VEC_BYTES_H
#define EMBLA_TESTS_VEC_BYTES_H

#include "base/byte_order.h"
#include "formats/vec.h"
#include "one_table.h"

#define TEXT   (&embla_format_word2vec)
#define GLOVE  (&embla_format_glove)
#define BINARY (&embla_format_word2vec_bin)

static inline const char *target_of(const embla_format *format)
{
    return format == BINARY ? "vec_bin" : "vec";
}

/* bytes as a string literal, which may hold zeros. */
#define REFUSES(format, seed, bytes, rule)                                                         \
    one_refuses(format, target_of(format), seed, bytes, sizeof(bytes) - 1, false,                  \
                EMBLA_ERR_FORMAT, rule)
#define REFUSES_EVEN_LENIENT(format, seed, bytes, rule)                                            \
    do {                                                                                           \
        REFUSES(format, seed, bytes, rule);                                                        \
        one_refuses(format, target_of(format), NULL, bytes, sizeof(bytes) - 1, true,               \
                    EMBLA_ERR_FORMAT, rule);                                                       \
    } while (0)
#define ACCEPTS(format, seed, bytes, out)                                                          \
    one_accepts(format, target_of(format), seed, bytes, sizeof(bytes) - 1, NULL, out)
#define LENIENT(format, bytes, out)                                                                \
    one_accepts(format, target_of(format), NULL, bytes, sizeof(bytes) - 1,                         \
                &(const embla_open_options){.lenient = true}, out)

/* Two floats in binary: 1 and -2. */
#define ONE_TWO "\0\0\x80\x3f\0\0\0\xc0"

static inline void one_two(const one_file *f, uint64_t row)
{
    float values[2];
    assert_ok(one_make(f, row, 1, values)); /* as a file has them */
    embla_order_turn(values, sizeof *values, 2);
    assert_true(values[0] == 1.0f && values[1] == -2.0f);
}

#endif
