/* SPDX-License-Identifier: Apache-2.0 */
/* A machine with one state, what is awaited, and a stack of open brackets that has a fixed
 * depth: no recursion, whatever is in the file. Strings are checked when they are passed
 * over, so that decoding one cannot go wrong. Keys of open objects lie in one list; when
 * an object closes its part of the list is searched for a key that stands there twice.
 */
#include "files/json_walk.h"

#include <string.h>

#include "base/utf8.h"

enum {
    AWAIT_VALUE,
    AWAIT_FIRST, /* a bracket has just opened: a value, a key, or its close */
    AWAIT_NEXT   /* a value has ended: a comma, a close, or the end */
};

static embla_status wrong(const embla_walk *w, size_t at, const char *what)
{
    return embla_fail(EMBLA_ERR_FORMAT, "%.256s: JSON, byte %zu of %zu: %s (%s)", w->name, at,
                      w->count, what, w->rule);
}

static void pass_space(embla_walk *w)
{
    while (w->at < w->count) {
        uint8_t c = w->bytes[w->at];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
        w->at++;
    }
}

/* ---- strings ---- */

/* Four hexadecimal digits at p as a number; -1 if they are not. */
static int32_t four_digits(const uint8_t *p)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t c = p[i], low = c | 0x20;
        int32_t digit = c >= '0' && c <= '9'       ? c - '0'
                        : low >= 'a' && low <= 'f' ? low - 'a' + 10
                                                   : -1;
        if (digit < 0) return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* The character that p[0 .. left-1] begins with, written after a backslash (p[0]). *used is
 * how many bytes that took. -1 if there is no such escape; lone surrogates are none. */
static int32_t escape_at(const uint8_t *p, size_t left, size_t *used)
{
    static const char letters[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    if (left < 2) return -1;
    const char *letter = p[1] ? strchr(letters, p[1]) : NULL;
    *used = letter ? 2 : 6;
    if (letter) return codes[letter - letters];
    if (p[1] != 'u' || left < 6) return -1;
    int32_t code = four_digits(p + 2);
    if (code < 0xd800 || code > 0xdfff) return code;
    if (code > 0xdbff || left < 12 || p[6] != '\\' || p[7] != 'u') return -1;
    int32_t low = four_digits(p + 8);
    if (low < 0xdc00 || low > 0xdfff) return -1;
    *used = 12;
    return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

/* Passes over the string whose quotation mark is at w->at. */
static embla_status pass_string(embla_walk *w)
{
    size_t begin = ++w->at;
    w->escaped = false;
    while (w->at < w->count && w->bytes[w->at] != '"') {
        size_t used = 1;
        if (w->bytes[w->at] < 0x20) return wrong(w, w->at, "a control character in a string");
        if (w->bytes[w->at] == '\\') {
            w->escaped = true;
            if (escape_at(w->bytes + w->at, w->count - w->at, &used) < 0)
                return wrong(w, w->at, "an escape that means no character");
        }
        w->at += used;
    }
    if (w->at == w->count) return wrong(w, begin, "a string without end");
    w->raw = w->bytes + begin;
    w->length = w->at++ - begin;
    if (w->length > w->most_text)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the string at byte %zu has %zu bytes, more than %zu (%s)",
                          w->name, begin, w->length, w->most_text, w->rule);
    return EMBLA_OK;
}

embla_status embla_walk_text(const embla_walk *w, embla_name *out)
{
    void *room = NULL;
    size_t length = 0, used = 1;
    *out = (embla_name){(const char *)w->raw, (uint32_t)w->length, (uint32_t)(w->raw - w->bytes)};
    if (!w->escaped) return EMBLA_OK;
    EMBLA_TRY(embla_arena_take(w->scratch, w->length, "a string", &room));
    char *text = room; /* never longer than it is written */
    for (size_t at = 0; at < w->length; at += used) {
        if (w->raw[at] == '\\') {
            int32_t code = escape_at(w->raw + at, w->length - at, &used);
            length += embla_utf8_encode((uint32_t)code, text + length);
        } else {
            text[length++] = (char)w->raw[at];
            used = 1;
        }
    }
    out->bytes = text;
    out->length = (uint32_t)length;
    return EMBLA_OK;
}

/* ---- numbers ---- */

static bool digit_at(const embla_walk *w)
{
    return w->at < w->count && w->bytes[w->at] >= '0' && w->bytes[w->at] <= '9';
}

static bool pass_digits(embla_walk *w)
{
    if (!digit_at(w)) return false;
    while (digit_at(w)) w->at++;
    return true;
}

static bool pass_one_of(embla_walk *w, uint8_t a, uint8_t b)
{
    if (w->at == w->count || (w->bytes[w->at] != a && w->bytes[w->at] != b)) return false;
    w->at++;
    return true;
}

/* What Python's json writes for numbers that JSON does not have. */
static bool pass_python(embla_walk *w)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; w->python && i < 3; i++) {
        size_t length = strlen(words[i]);
        if (length > w->count - w->at || memcmp(w->bytes + w->at, words[i], length) != 0) continue;
        w->raw = w->bytes + w->at;
        w->length = length;
        w->at += length;
        w->step = EMBLA_WALK_NUMBER;
        return true;
    }
    return false;
}

static embla_status pass_number(embla_walk *w)
{
    size_t begin = w->at;
    (void)pass_one_of(w, '-', '-');
    bool good = pass_one_of(w, '0', '0') || pass_digits(w);
    if (good && pass_one_of(w, '.', '.')) good = pass_digits(w);
    if (good && pass_one_of(w, 'e', 'E')) {
        (void)pass_one_of(w, '+', '-');
        good = pass_digits(w);
    }
    if (!good) return wrong(w, w->at, "a number that lacks a digit");
    w->raw = w->bytes + begin;
    w->length = w->at - begin;
    return EMBLA_OK;
}

bool embla_walk_natural(const embla_walk *w, uint64_t limit, uint64_t *out)
{
    uint64_t value = 0;
    if (w->length > 19) return false; /* 10^19 is below 2^64 */
    for (size_t i = 0; i < w->length; i++) {
        if (w->raw[i] < '0' || w->raw[i] > '9') return false;
        value = value * 10 + (uint64_t)(w->raw[i] - '0');
    }
    if (value >= limit) return false;
    *out = value;
    return true;
}

static embla_status pass_word(embla_walk *w)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if (length > w->count - w->at || memcmp(w->bytes + w->at, words[i], length) != 0) continue;
        w->raw = w->bytes + w->at;
        w->length = length;
        w->at += length;
        return EMBLA_OK;
    }
    return wrong(w, w->at, "neither a value nor a bracket where one is due");
}

/* ---- brackets and keys ---- */

static embla_status open_bracket(embla_walk *w)
{
    bool object = w->bytes[w->at] == '{';
    if (w->depth == EMBLA_WALK_DEPTH)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: JSON, byte %zu of %zu: brackets more than %d deep (%s)", w->name,
                          w->at, w->count, EMBLA_WALK_DEPTH, w->rule);
    w->is_object[w->depth] = object;
    w->first_key[w->depth++] = w->key_count;
    w->at++;
    w->awaited = AWAIT_FIRST;
    w->step = object ? EMBLA_WALK_OBJECT : EMBLA_WALK_ARRAY;
    return EMBLA_OK;
}

/* The second of two keys that are the same, of an object that closes; NULL if all differ. */
static embla_status key_twice(embla_walk *w, size_t first, const embla_name **out)
{
    size_t count = w->key_count - first;
    embla_names sorted;
    *out = NULL;
    if (count < 2) return EMBLA_OK;
    const embla_name *keys = w->keys + first;
    if (count > 8) {
        EMBLA_TRY(embla_names_sort(w->scratch, keys, count, &sorted));
        *out = embla_names_twice(&sorted);
        return EMBLA_OK;
    }
    for (size_t i = 1; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (keys[i].length == keys[j].length &&
                memcmp(keys[i].bytes, keys[j].bytes, keys[i].length) == 0)
                *out = &keys[i];
    return EMBLA_OK;
}

static embla_status close_bracket(embla_walk *w)
{
    size_t first = w->first_key[--w->depth];
    const embla_name *twice = NULL;
    w->at++;
    w->awaited = AWAIT_NEXT;
    w->step = EMBLA_WALK_CLOSE;
    if (w->is_object[w->depth]) EMBLA_TRY(key_twice(w, first, &twice));
    if (twice)
        return embla_fail(
            EMBLA_ERR_FORMAT, "%.256s: JSON, byte %" PRIu32 " of %zu: key '%.*s' stands twice (%s)",
            w->name, twice->number, w->count, twice->length < 128 ? (int)twice->length : 128,
            twice->bytes, w->twice_rule ? w->twice_rule : w->rule);
    w->key_count = first;
    return EMBLA_OK;
}

static embla_status pass_key(embla_walk *w)
{
    void *list = w->keys;
    if (w->at == w->count || w->bytes[w->at] != '"')
        return wrong(w, w->at, "no key where one is due");
    EMBLA_TRY(pass_string(w));
    EMBLA_TRY(
        embla_arena_grow(w->scratch, sizeof *w->keys, w->key_count, "keys", &list, &w->key_room));
    w->keys = list;
    EMBLA_TRY(embla_walk_text(w, &w->keys[w->key_count]));
    w->key_count++;
    pass_space(w);
    if (!pass_one_of(w, ':', ':')) return wrong(w, w->at, "no colon after a key");
    w->awaited = AWAIT_VALUE;
    w->step = EMBLA_WALK_KEY;
    return EMBLA_OK;
}

/* ---- steps ---- */

static embla_status pass_value(embla_walk *w)
{
    uint8_t c = w->at < w->count ? w->bytes[w->at] : 0;
    if (c == '{' || c == '[') return open_bracket(w);
    w->awaited = AWAIT_NEXT;
    if (c == '"') {
        w->step = EMBLA_WALK_STRING;
        return pass_string(w);
    }
    if (pass_python(w)) return EMBLA_OK;
    if (c == '-' || (c >= '0' && c <= '9')) {
        w->step = EMBLA_WALK_NUMBER;
        return pass_number(w);
    }
    w->step = EMBLA_WALK_WORD;
    return pass_word(w);
}

embla_status embla_walk_begin(embla_walk *w, const uint8_t *bytes, size_t count, const char *name,
                              const char *rule, embla_arena *scratch)
{
    *w = (embla_walk){.bytes = bytes,
                      .count = count,
                      .name = name,
                      .rule = rule,
                      .scratch = scratch,
                      .most_text = EMBLA_WALK_TEXT,
                      .awaited = AWAIT_VALUE};
    size_t valid = embla_utf8_valid(bytes, count);
    return valid == count ? EMBLA_OK : wrong(w, valid, "not UTF-8");
}

embla_status embla_walk_next(embla_walk *w)
{
    pass_space(w);
    if (w->depth == 0 && w->awaited == AWAIT_NEXT) {
        w->step = EMBLA_WALK_END;
        return w->at == w->count ? EMBLA_OK : wrong(w, w->at, "more after the value");
    }
    if (w->depth > 0) {
        bool object = w->is_object[w->depth - 1];
        bool closes = w->at < w->count && w->bytes[w->at] == (object ? '}' : ']');
        if (closes && (w->awaited == AWAIT_FIRST || w->awaited == AWAIT_NEXT))
            return close_bracket(w);
        if (w->awaited == AWAIT_NEXT) {
            if (!pass_one_of(w, ',', ',')) return wrong(w, w->at, "neither a comma nor a close");
            pass_space(w);
        }
        if (object && w->awaited != AWAIT_VALUE) return pass_key(w);
    }
    return pass_value(w);
}

embla_status embla_walk_skip(embla_walk *w)
{
    size_t outside = w->depth;
    if (w->step != EMBLA_WALK_OBJECT && w->step != EMBLA_WALK_ARRAY) return EMBLA_OK;
    do EMBLA_TRY(embla_walk_next(w));
    while (w->depth >= outside);
    return EMBLA_OK;
}
