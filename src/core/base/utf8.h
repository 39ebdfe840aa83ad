/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: how long a character is, which code point it is, and the way back. Surrogates, overlong
 * forms and anything above U+10FFFF are not UTF-8 (C13).
 *
 * Header only, and without other headers of the library: the program includes it too
 * (docs/decisions/018).
 */
#ifndef EMBLA_BASE_UTF8_H
#define EMBLA_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes of the character that text begins with, 1 to 4. 0 if the `left` bytes of text do not begin
 * with a whole one. */
static inline size_t embla_utf8_length(const void *text, size_t left)
{
    const uint8_t *p = text;
    if (left == 0) return 0;
    if (p[0] < 0x80) return 1;
    size_t length = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
    if (length == 0 || length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if (p[0] == 0xe0 && p[1] < 0xa0) return 0; /* overlong */
    if (p[0] == 0xed && p[1] > 0x9f) return 0; /* a surrogate */
    if (p[0] == 0xf0 && p[1] < 0x90) return 0; /* overlong */
    if (p[0] == 0xf4 && p[1] > 0x8f) return 0; /* above U+10FFFF */
    return length;
}

/* The code point of a character whose length embla_utf8_length has found. */
static inline uint32_t embla_utf8_code(const void *text, size_t length)
{
    const uint8_t *p = text;
    uint32_t code = length == 1 ? p[0] : p[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) code = code << 6 | (p[i] & 0x3fu);
    return code;
}

/* How many bytes from the front are whole characters; count if all are. */
static inline size_t embla_utf8_valid(const void *text, size_t count)
{
    const uint8_t *bytes = text;
    size_t at = 0;
    while (at < count) {
        uint64_t eight;
        if (count - at >= 8) { /* eight bytes of ASCII at once */
            memcpy(&eight, bytes + at, 8);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                at += 8;
                continue;
            }
        }
        size_t length = embla_utf8_length(bytes + at, count - at);
        if (length == 0) return at;
        at += length;
    }
    return at;
}

/* Writes a code point, at most U+10FFFF, and returns its bytes, 1 to 4. */
static inline size_t embla_utf8_encode(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((0xf00 >> length & 0xff) | code);
    return length;
}

#endif
