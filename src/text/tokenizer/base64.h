/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes base64 (RFC 4648): charsmaps of tokenizer.json and the ranks of tiktoken. */
#ifndef EMBLA_TOKENIZER_BASE64_H
#define EMBLA_TOKENIZER_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline int embla_base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Writes at most length / 4 * 3 + 3 bytes to out, which may be text itself. False if the text is
 * not base64. */
static inline bool embla_base64_decode(const char *text, size_t length, uint8_t *out, size_t *count)
{
    uint32_t bits = 0;
    unsigned have = 0;
    size_t used = 0;
    while (length > 0 && text[length - 1] == '=') length--;
    for (size_t i = 0; i < length; i++) {
        int digit = embla_base64_digit(text[i]);
        if (digit < 0) return false;
        bits = bits << 6 | (uint32_t)digit;
        have += 6;
        if (have >= 8) {
            have -= 8;
            out[used++] = (uint8_t)(bits >> have);
        }
    }
    *count = used;
    return length % 4 != 1;
}

#endif
