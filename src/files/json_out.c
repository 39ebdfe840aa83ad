/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as it is written: see files/json_out.h. Numbers have a point in every locale.
 */
#include "files/json_out.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void embla_json_put(embla_json_out *t, const char *bytes, size_t length)
{
    if (t->status == EMBLA_OK) t->status = embla_durable_write(t->out, bytes, length);
}

void embla_json_say(embla_json_out *t, const char *format, ...)
{
    char some[256];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(some, sizeof some, format, list);
    va_end(list);
    embla_json_put(t, some, length > 0 && (size_t)length < sizeof some ? (size_t)length : 0);
}

/* A string of JSON. bytes are UTF-8. */
void embla_json_say_string(embla_json_out *t, const char *bytes, size_t length)
{
    embla_json_put(t, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c < 0x20)
            embla_json_say(t, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            embla_json_say(t, "\\%c", c);
        else
            embla_json_put(t, bytes + i, 1);
    }
    embla_json_put(t, "\"", 1);
}

/* "  "key": " of a member. */
void embla_json_say_key(embla_json_out *t, const char *key)
{
    embla_json_say(t, ",\n  \"%s\": ", key);
}

void embla_json_say_whole(embla_json_out *t, const char *key, int64_t value)
{
    embla_json_say_key(t, key);
    embla_json_say(t, "%" PRId64, value);
}

void embla_json_say_flag(embla_json_out *t, const char *key, bool value)
{
    embla_json_say_key(t, key);
    embla_json_say(t, "%s", value ? "true" : "false");
}

void embla_json_say_text(embla_json_out *t, const char *key, const char *value)
{
    embla_json_say_key(t, key);
    embla_json_say_string(t, value, strlen(value));
}

/* The fewest digits that give the number back, with a point in every locale. */
void embla_json_say_real(embla_json_out *t, const char *key, double value)
{
    char digits[64], out[64];
    size_t used = 0;
    for (int precision = 1; precision <= 17; precision++) {
        (void)snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) break;
    }
    for (const char *c = digits; *c; c++) {
        bool plain = (*c >= '0' && *c <= '9') || *c == 'e' || *c == '-' || *c == '+';
        if (plain || used == 0 || out[used - 1] != '.') out[used++] = plain ? *c : '.';
    }
    embla_json_say_key(t, key);
    embla_json_put(t, out, used);
    if (!memchr(out, '.', used) && !memchr(out, 'e', used)) embla_json_put(t, ".0", 2);
}

/* A token, or null. */
void embla_json_say_token(embla_json_out *t, const char *key, int64_t token)
{
    embla_json_say_key(t, key);
    if (token < 0)
        embla_json_say(t, "null");
    else
        embla_json_say(t, "%" PRId64, token);
}
