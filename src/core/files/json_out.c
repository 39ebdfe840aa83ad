/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as it is written: see files/json_out.h. Numbers have a point in every locale.
 */
#include "files/json_out.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json_text.h"

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

static void write_durable(void *to, const char *bytes, size_t length)
{
    embla_json_put(to, bytes, length);
}

void embla_json_say_string(embla_json_out *t, const char *bytes, size_t length)
{
    const embla_json_sink sink = {.write = write_durable, .to = t};
    (void)embla_json_write_string(&sink, bytes, length, false);
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

/* A point or an exponent shows that it is no integer. */
void embla_json_say_real(embla_json_out *t, const char *key, double value)
{
    char digits[EMBLA_JSON_DIGITS];
    embla_json_digits(value, 0, digits);
    embla_json_say_key(t, key);
    embla_json_say(t, "%s%s", digits, strpbrk(digits, ".e") || !isfinite(value) ? "" : ".0");
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
