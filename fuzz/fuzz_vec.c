/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as words and vectors in text, read as word2vec's or GloVe's format, whichever is
 * detected. In short inputs every field is also parsed as a decimal number, which must have the
 * bits that strtof gives. vec.h has the other promises. */
#include "files/decimal.h"
#include "vec.h"

enum { SHORT = 256 }; /* bytes of input whose fields are all tried; longer ones would be slow */

/* strtof accepts more than we do (leading spaces, hexadecimal), never less, and gives the same
 * bits. */
static void check_number(const uint8_t *field, size_t length)
{
    char text[SHORT + 1], *end;
    float ours = 0.0f;
    const uint8_t *after = embla_decimal_read(field, field + length, &ours);
    if (!after) return;
    PROMISE(after > field && after <= field + length);
    size_t used = (size_t)(after - field);
    memcpy(text, field, used);
    text[used] = '\0';
    float theirs = strtof(text, &end);
    PROMISE(end == text + used && memcmp(&ours, &theirs, sizeof ours) == 0);
    size_t written = embla_decimal_write(ours, text);
    PROMISE(written <= EMBLA_DECIMAL_MOST);
    PROMISE(embla_decimal_read((uint8_t *)text, (uint8_t *)text + written, &theirs) ==
            (uint8_t *)text + written);
    PROMISE(vec_same(&ours, &theirs, 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    embla_vec_kind kind = embla_vec_kind_of(data, size < 4096 ? size : 4096, size);
    embla_vec_header header;
    bool headed = embla_vec_header_of(data, size, &header);
    PROMISE(headed || kind == EMBLA_VEC_NONE || kind == EMBLA_VEC_GLOVE);
    vec_one(&embla_format_word2vec, data, size);
    vec_one(&embla_format_glove, data, size);
    if (size > SHORT) return 0;
    for (size_t i = 0, from = 0; i <= size; i++) {
        if (i < size && !embla_vec_separator(data[i]) && data[i] != '\n') continue;
        check_number(data + from, i - from);
        from = i + 1;
    }
    return 0;
}
