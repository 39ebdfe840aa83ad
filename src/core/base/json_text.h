/* SPDX-License-Identifier: Apache-2.0 */
/* How values look in JSON: the escapes of a string and the digits of a number. Bytes go to a
 * sink, so that the same code writes to a file, to memory and to standard output.
 *
 * Header only, and without headers of the library other than base/utf8.h: the program includes
 * it too (docs/decisions/018).
 */
#ifndef EMBLA_BASE_JSON_TEXT_H
#define EMBLA_BASE_JSON_TEXT_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

/* Where bytes of JSON go. */
typedef struct {
    void (*write)(void *to, const char *bytes, size_t length);
    void *to;
} embla_json_sink;

static inline void embla_json_write(const embla_json_sink *sink, const char *text)
{
    sink->write(sink->to, text, strlen(text));
}

/* The escape of the character at text, or "" if it needs none. `bytes` are its bytes; 0 means that
 * it is not UTF-8. */
static inline void embla_json_escape(const char *text, size_t bytes, bool escape_delete,
                                     char out[8])
{
    unsigned char c = (unsigned char)*text;
    out[0] = '\0';
    if (bytes == 0)
        memcpy(out, "\\ufffd", sizeof "\\ufffd");
    else if (c == '"' || c == '\\')
        memcpy(out, (const char[]){'\\', (char)c, '\0'}, 3);
    else if (c < 0x20 || (c == 0x7f && escape_delete))
        (void)snprintf(out, 8, "\\u%04x", (unsigned)c);
}

/* A string in quotes. Control characters, quotes and backslashes are escaped; DEL only with
 * `escape_delete`, for terminals. A byte that is not UTF-8 becomes U+FFFD. Returns whether all
 * bytes were UTF-8. */
static inline bool embla_json_write_string(const embla_json_sink *sink, const char *text,
                                           size_t length, bool escape_delete)
{
    bool valid = true;
    size_t first = 0, i = 0; /* text[first] .. text[i - 1] need no escape */
    embla_json_write(sink, "\"");
    while (i < length) {
        char escape[8];
        size_t bytes = embla_utf8_length(text + i, length - i);
        embla_json_escape(text + i, bytes, escape_delete, escape);
        valid = valid && bytes > 0;
        if (escape[0]) {
            sink->write(sink->to, text + first, i - first);
            embla_json_write(sink, escape);
            first = i + (bytes > 0 ? bytes : 1);
        }
        i += bytes > 0 ? bytes : 1;
    }
    sink->write(sink->to, text + first, length - first);
    embla_json_write(sink, "\"");
    return valid;
}

static inline void embla_json_write_whole(const embla_json_sink *sink, int64_t number)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRId64, number);
    embla_json_write(sink, digits);
}

static inline void embla_json_write_bool(const embla_json_sink *sink, bool value)
{
    embla_json_write(sink, value ? "true" : "false");
}

enum { EMBLA_JSON_DIGITS = 64 };

/* The digits of a number, with a point in every locale. precision 0 means the fewest significant
 * digits that give the number back. NaN and infinities are null. */
static inline void embla_json_digits(double number, int precision, char out[EMBLA_JSON_DIGITS])
{
    char digits[EMBLA_JSON_DIGITS];
    size_t used = 0;
    int most = precision > 0 ? precision : 17;
    if (!isfinite(number)) {
        memcpy(out, "null", sizeof "null");
        return;
    }
    for (int some = precision > 0 ? precision : 1; some <= most; some++) {
        (void)snprintf(digits, sizeof digits, "%.*g", some, number);
        if (strtod(digits, NULL) == number) break;
    }
    for (const char *c = digits; *c; c++) { /* a locale's point may have several bytes */
        bool plain = (*c >= '0' && *c <= '9') || *c == 'e' || *c == '-' || *c == '+';
        if (plain || used == 0 || out[used - 1] != '.') out[used++] = plain ? *c : '.';
    }
    out[used] = '\0';
}

#endif
