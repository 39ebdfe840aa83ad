/* SPDX-License-Identifier: Apache-2.0 */
/* A state machine: the state says what is expected next, and open brackets are on a stack of
 * fixed depth. There is no recursion, so no file can exhaust the stack. Strings are checked when
 * they are scanned, so decoding one cannot fail. The keys of all open objects are in one list;
 * when an object closes, its part of the list is searched for duplicates.
 */
#include "files/json_walk.h"

#include <string.h>

#include "base/utf8.h"

enum {
    EXPECT_VALUE,
    EXPECT_FIRST, /* after an opening bracket: a value, a key, or the closing bracket */
    EXPECT_NEXT   /* after a value: a comma, a closing bracket, or the end */
};

static embla_status wrong(const embla_walk *w, size_t at, const char *what)
{
    return embla_fail(EMBLA_ERR_FORMAT, "%.256s: JSON, byte %zu of %zu: %s (%s)", w->name, at,
                      w->count, what, w->rule);
}

static void skip_space(embla_walk *w)
{
    while (w->at < w->count) {
        uint8_t c = w->bytes[w->at];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
        w->at++;
    }
}

/* ---- strings ---- */

/* Parses four hexadecimal digits at p; -1 if they are not. */
static int32_t parse_hex4(const uint8_t *p)
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

/* Decodes the escape sequence at p, where p[0] is a backslash and left bytes remain. *used is the
 * number of bytes it takes. Returns the code point, or -1 if the sequence is not valid; a lone
 * surrogate is not. */
static int32_t decode_escape(const uint8_t *p, size_t left, size_t *used)
{
    static const char letters[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    if (left < 2) return -1;
    const char *letter = p[1] ? strchr(letters, p[1]) : NULL;
    *used = letter ? 2 : 6;
    if (letter) return codes[letter - letters];
    if (p[1] != 'u' || left < 6) return -1;
    int32_t code = parse_hex4(p + 2);
    if (code < 0xd800 || code > 0xdfff) return code;
    if (code > 0xdbff || left < 12 || p[6] != '\\' || p[7] != 'u') return -1;
    int32_t low = parse_hex4(p + 8);
    if (low < 0xdc00 || low > 0xdfff) return -1;
    *used = 12;
    return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

/* Scans the string whose opening quotation mark is at w->at. */
static embla_status scan_string(embla_walk *w)
{
    size_t begin = ++w->at;
    w->escaped = false;
    while (w->at < w->count && w->bytes[w->at] != '"') {
        size_t used = 1;
        if (w->bytes[w->at] < 0x20)
            return wrong(w, w->at, "unescaped control character in a string");
        if (w->bytes[w->at] == '\\') {
            w->escaped = true;
            if (decode_escape(w->bytes + w->at, w->count - w->at, &used) < 0)
                return wrong(w, w->at, "invalid escape sequence");
        }
        w->at += used;
    }
    if (w->at == w->count) return wrong(w, begin, "the string does not end");
    w->raw = w->bytes + begin;
    w->length = w->at++ - begin;
    if (w->length > w->most_text)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the string at byte %zu has %zu bytes; the limit is %zu (%s)",
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
    char *text = room; /* the decoded text is never longer than the escaped one */
    for (size_t at = 0; at < w->length; at += used) {
        if (w->raw[at] == '\\') {
            int32_t code = decode_escape(w->raw + at, w->length - at, &used);
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

static bool scan_digits(embla_walk *w)
{
    if (!digit_at(w)) return false;
    while (digit_at(w)) w->at++;
    return true;
}

static bool scan_one_of(embla_walk *w, uint8_t a, uint8_t b)
{
    if (w->at == w->count || (w->bytes[w->at] != a && w->bytes[w->at] != b)) return false;
    w->at++;
    return true;
}

/* Scans NaN, Infinity or -Infinity, which Python's json writes and JSON does not allow. */
static bool scan_python(embla_walk *w)
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

static embla_status scan_number(embla_walk *w)
{
    size_t begin = w->at;
    (void)scan_one_of(w, '-', '-');
    bool good = scan_one_of(w, '0', '0') || scan_digits(w);
    if (good && scan_one_of(w, '.', '.')) good = scan_digits(w);
    if (good && scan_one_of(w, 'e', 'E')) {
        (void)scan_one_of(w, '+', '-');
        good = scan_digits(w);
    }
    if (!good) return wrong(w, w->at, "expected a digit of a number");
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

static embla_status scan_word(embla_walk *w)
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
    return wrong(w, w->at, "expected a value");
}

/* ---- brackets and keys ---- */

static embla_status open_bracket(embla_walk *w)
{
    bool object = w->bytes[w->at] == '{';
    if (w->depth == EMBLA_WALK_DEPTH)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: JSON, byte %zu of %zu: nested more than %d deep (%s)", w->name,
                          w->at, w->count, EMBLA_WALK_DEPTH, w->rule);
    w->is_object[w->depth] = object;
    w->first_key[w->depth++] = w->key_count;
    w->at++;
    w->expected = EXPECT_FIRST;
    w->step = object ? EMBLA_WALK_OBJECT : EMBLA_WALK_ARRAY;
    return EMBLA_OK;
}

/* Finds the second of two equal keys of the object that closes; NULL if all differ. */
static embla_status find_duplicate(embla_walk *w, size_t first, const embla_name **out)
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
    w->expected = EXPECT_NEXT;
    w->step = EMBLA_WALK_CLOSE;
    if (w->is_object[w->depth]) EMBLA_TRY(find_duplicate(w, first, &twice));
    if (twice)
        return embla_fail(
            EMBLA_ERR_FORMAT, "%.256s: JSON, byte %" PRIu32 " of %zu: duplicate key '%.*s' (%s)",
            w->name, twice->number, w->count, twice->length < 128 ? (int)twice->length : 128,
            twice->bytes, w->twice_rule ? w->twice_rule : w->rule);
    w->key_count = first;
    return EMBLA_OK;
}

static embla_status scan_key(embla_walk *w)
{
    void *list = w->keys;
    if (w->at == w->count || w->bytes[w->at] != '"') return wrong(w, w->at, "expected a key");
    EMBLA_TRY(scan_string(w));
    EMBLA_TRY(
        embla_arena_grow(w->scratch, sizeof *w->keys, w->key_count, "keys", &list, &w->key_room));
    w->keys = list;
    EMBLA_TRY(embla_walk_text(w, &w->keys[w->key_count]));
    w->key_count++;
    skip_space(w);
    if (!scan_one_of(w, ':', ':')) return wrong(w, w->at, "expected a colon after the key");
    w->expected = EXPECT_VALUE;
    w->step = EMBLA_WALK_KEY;
    return EMBLA_OK;
}

/* ---- steps ---- */

static embla_status scan_value(embla_walk *w)
{
    uint8_t c = w->at < w->count ? w->bytes[w->at] : 0;
    if (c == '{' || c == '[') return open_bracket(w);
    w->expected = EXPECT_NEXT;
    if (c == '"') {
        w->step = EMBLA_WALK_STRING;
        return scan_string(w);
    }
    if (scan_python(w)) return EMBLA_OK;
    if (c == '-' || (c >= '0' && c <= '9')) {
        w->step = EMBLA_WALK_NUMBER;
        return scan_number(w);
    }
    w->step = EMBLA_WALK_WORD;
    return scan_word(w);
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
                      .expected = EXPECT_VALUE};
    size_t valid = embla_utf8_valid(bytes, count);
    return valid == count ? EMBLA_OK : wrong(w, valid, "the text is not valid UTF-8");
}

embla_status embla_walk_next(embla_walk *w)
{
    skip_space(w);
    if (w->depth == 0 && w->expected == EXPECT_NEXT) {
        w->step = EMBLA_WALK_END;
        return w->at == w->count ? EMBLA_OK : wrong(w, w->at, "unexpected text after the value");
    }
    if (w->depth > 0) {
        bool object = w->is_object[w->depth - 1];
        bool closes = w->at < w->count && w->bytes[w->at] == (object ? '}' : ']');
        if (closes && (w->expected == EXPECT_FIRST || w->expected == EXPECT_NEXT))
            return close_bracket(w);
        if (w->expected == EXPECT_NEXT) {
            if (!scan_one_of(w, ',', ','))
                return wrong(w, w->at, "expected a comma or a closing bracket");
            skip_space(w);
        }
        if (object && w->expected != EXPECT_VALUE) return scan_key(w);
    }
    return scan_value(w);
}

embla_status embla_walk_skip(embla_walk *w)
{
    size_t outside = w->depth;
    if (w->step != EMBLA_WALK_OBJECT && w->step != EMBLA_WALK_ARRAY) return EMBLA_OK;
    do EMBLA_TRY(embla_walk_next(w));
    while (w->depth >= outside);
    return EMBLA_OK;
}
