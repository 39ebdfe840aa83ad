/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a string in a line of JSON. Strings are decoded in place, because a decoded string is never
 * longer than its escapes. What comes after the member is not checked.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

#include "core/texts.h"

/* A position in the line. */
typedef struct {
    char *at, *end;
} cursor;

static void skip_space(cursor *c)
{
    while (c->at < c->end && strchr(" \t\r\n", *c->at) && *c->at != '\0') c->at++;
}

static bool take(cursor *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

static bool read_hex(cursor *c, uint32_t *out)
{
    static const char digits[] = "0123456789abcdef";
    *out = 0;
    if (c->end - c->at < 4) return false;
    for (int i = 0; i < 4; i++, c->at++) {
        const char *digit = *c->at ? strchr(digits, *c->at | 0x20) : NULL;
        if (!digit) return false;
        *out = *out * 16 + (uint32_t)(digit - digits);
    }
    return true;
}

/* The code point after \u; half of a surrogate pair becomes U+FFFD. */
static bool read_code(cursor *c, uint32_t *out)
{
    uint32_t low = 0;
    if (!read_hex(c, out)) return false;
    if (*out < 0xd800 || *out > 0xdfff) return true;
    bool pair = *out < 0xdc00 && c->end - c->at >= 6 && c->at[0] == '\\' && c->at[1] == 'u';
    cursor next = {c->at + 2, c->end};
    if (pair && !read_hex(&next, &low)) return false;
    if (low < 0xdc00 || low > 0xdfff) {
        *out = 0xfffd;
        return true;
    }
    *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
    *c = next;
    return true;
}

static bool read_escape(cursor *c, char **out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    uint32_t code = 0;
    char name = c->at < c->end ? *c->at++ : '\0';
    const char *found = name ? strchr(names, name) : NULL;
    if (found) {
        *(*out)++ = values[found - names];
        return true;
    }
    if (name != 'u' || !read_code(c, &code)) return false;
    *out += embla_utf8_encode(code, *out);
    return true;
}

static bool read_string(cursor *c, char **text, size_t *length)
{
    if (!take(c, '"')) return false;
    char *out = *text = c->at;
    while (c->at < c->end && *c->at != '"') {
        char byte = *c->at++;
        if (byte != '\\')
            *out++ = byte;
        else if (!read_escape(c, &out))
            return false;
    }
    *length = (size_t)(out - *text);
    return take(c, '"');
}

/* Skips a value: up to the comma or the bracket that ends it. */
static bool skip_value(cursor *c)
{
    size_t depth = 0, length = 0;
    char *text = NULL;
    skip_space(c);
    for (; c->at < c->end; c->at++) {
        char byte = *c->at;
        if (depth == 0 && (byte == ',' || byte == '}' || byte == ']')) return true;
        if (byte == '"') {
            if (!read_string(c, &text, &length)) return false;
            c->at--;
        }
        if (byte == '{' || byte == '[') depth++;
        if (byte == '}' || byte == ']') depth--;
    }
    return false;
}

const char *cli_json_member(char *line, size_t length, const char *key, char **text,
                            size_t *text_length)
{
    static const char wrong[] = "it is not a JSON object with a string";
    cursor c = {line, line + length};
    if (!take(&c, '{')) return wrong;
    do {
        char *name = NULL;
        size_t size = 0;
        skip_space(&c);
        if (c.at < c.end && *c.at == '}') break;
        if (!read_string(&c, &name, &size) || !take(&c, ':')) return wrong;
        bool found = size == strlen(key) && memcmp(name, key, size) == 0;
        skip_space(&c);
        if (found) return read_string(&c, text, text_length) ? NULL : wrong;
        if (!skip_value(&c)) return wrong;
    } while (take(&c, ','));
    return "the object has no member";
}
