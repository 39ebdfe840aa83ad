/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text: hexadecimal digits, tokens such as "<0x0A>", and the alphabet of byte-level
 * tokenizers. GPT-2 gave every byte a character that can be printed, so that a vocabulary is text.
 */
#ifndef EMBLA_BASE_BYTE_TEXT_H
#define EMBLA_BASE_BYTE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The value of a hexadecimal digit; -1 if it is none. */
static inline int embla_hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of "<0xNN>"; -1 for any other string. */
static inline int embla_byte_token(const char *text, size_t length)
{
    if (length != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    int high = embla_hex_digit(text[3]), low = embla_hex_digit(text[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Whether a byte stands for itself: all but 00 to 20, 7F to A0, and AD. Those follow each other
 * from U+0100 on. */
static inline bool embla_byte_plain(uint8_t byte)
{
    return (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
}

/* The character that stands for a byte in a byte-level vocabulary: itself if it is printable and
 * not a space, otherwise one from U+0100 on. */
static inline uint32_t embla_byte_code(uint8_t byte)
{
    if (embla_byte_plain(byte)) return byte;
    if (byte <= 0x20) return 0x100u + byte;
    return byte == 0xad ? 0x143u : 0x121u + (byte - 0x7fu);
}

/* The byte that a character stands for; -1 if it is not in the alphabet. */
static inline int embla_byte_of_code(uint32_t code)
{
    if (code < 0x100) return embla_byte_plain((uint8_t)code) ? (int)code : -1;
    if (code <= 0x120) return (int)code - 0x100;
    if (code <= 0x142) return (int)code - 0x121 + 0x7f;
    return code == 0x143 ? 0xad : -1;
}

#endif
