/* SPDX-License-Identifier: Apache-2.0 */
/* base64 (RFC 4648): read in tokenizers (charsmaps, ranks of tiktoken), written into pages, which
 * the browser decodes.
 *
 * Header only, and without headers of the library other than base/json_text.h: the program includes
 * it too (docs/decisions/018).
 */
#ifndef EMBLA_BASE_BASE64_H
#define EMBLA_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_text.h"

/* ---- reading ---- */

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

/* ---- writing ---- */

/* Bytes that are still to be written: fewer than three. Zeroed there are none. */
typedef struct {
    uint8_t left[3];
    size_t count;
} embla_base64;

/* Four letters for three bytes, of which `count` are there. */
static inline void embla_base64_letters(const uint8_t bytes[3], size_t count, char out[4])
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
    for (size_t i = 0; i < 4; i++) out[i] = i <= count ? letters[bits >> (18 - 6 * i) & 63] : '=';
}

/* The end of a text. */
static inline void embla_base64_end(embla_base64 *from, const embla_json_sink *to)
{
    char out[4];
    if (from->count == 0) return;
    embla_base64_letters(from->left, from->count, out);
    to->write(to->to, out, sizeof out);
    *from = (embla_base64){.count = 0};
}

static inline void embla_base64_add(embla_base64 *from, const embla_json_sink *to,
                                    const void *bytes, size_t count)
{
    const uint8_t *in = bytes;
    char out[1024];
    size_t used = 0;
    for (; count > 0 && (from->count > 0 || count < 3); in++, count--) {
        from->left[from->count++] = *in;
        if (from->count == 3) embla_base64_end(from, to);
    }
    for (; count >= 3; in += 3, count -= 3) {
        embla_base64_letters(in, 3, out + used);
        used += 4;
        if (used == sizeof out) to->write(to->to, out, used), used = 0;
    }
    if (used > 0) to->write(to->to, out, used);
    for (; count > 0; in++, count--) from->left[from->count++] = *in;
}

#endif
