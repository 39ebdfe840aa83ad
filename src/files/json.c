/* SPDX-License-Identifier: Apache-2.0 */
/* jansson behind the few calls of json.h. The only file that includes it.
 *
 * jansson reads by recursion, 2,048 deep, and takes numbers we do not: a scan of the bytes
 * beforehand, without recursion, keeps both from it.
 */
#include "files/json.h"

#include <jansson.h>
#include <string.h>

typedef struct {
    const uint8_t *bytes;
    size_t count, at;
} scan;

/* Past the string that begins at s->at. */
static bool pass_string(scan *s)
{
    for (s->at++; s->at < s->count; s->at++) {
        if (s->bytes[s->at] == '\\')
            s->at++;
        else if (s->bytes[s->at] == '"')
            return true;
    }
    return false;
}

/* A character of a number other than a digit, where only natural numbers are allowed. */
static bool odd_number(const scan *s)
{
    uint8_t c = s->bytes[s->at];
    uint8_t last = s->at > 0 ? s->bytes[s->at - 1] : 0;
    if (c == '-' || c == '+' || c == '.') return true;
    return (c == 'e' || c == 'E') && last >= '0' && last <= '9';
}

static embla_status look_over(scan *s, const char *name, const embla_json_limits *limits,
                              const char *rule)
{
    size_t depth = 0;
    for (; s->at < s->count; s->at++) {
        uint8_t c = s->bytes[s->at];
        if (c == '"') {
            if (!pass_string(s)) break; /* jansson says where */
        } else if (c == '{' || c == '[') {
            if (++depth > limits->most_depth)
                return embla_fail(EMBLA_ERR_FORMAT,
                                  "%.256s: at byte %zu brackets are more than %zu deep (%s)", name,
                                  s->at, limits->most_depth, rule);
        } else if (c == '}' || c == ']') {
            if (depth > 0) depth--;
        } else if (limits->only_naturals && odd_number(s)) {
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.256s: at byte %zu a number has a sign, a fraction or an "
                              "exponent (%s)",
                              name, s->at, rule);
        }
    }
    return EMBLA_OK;
}

embla_status embla_json_read(const void *bytes, size_t count, const char *name,
                             const embla_json_limits *limits, const char *rule,
                             embla_json_value **out)
{
    scan s = {.bytes = bytes, .count = count};
    json_error_t error;
    EMBLA_TRY(look_over(&s, name, limits, rule));
    json_t *value = json_loadb(bytes, count, JSON_REJECT_DUPLICATES, &error);
    if (!value && json_error_code(&error) == json_error_out_of_memory)
        return embla_fail(EMBLA_ERR_MEMORY, "%.256s: no memory for its JSON", name);
    if (!value && json_error_code(&error) == json_error_duplicate_key)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: at byte %d a key occurs twice (%s)", name,
                          error.position, strcmp(rule, "S4") == 0 ? "S5" : rule);
    if (!value)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: at byte %d: %.128s (%s)", name, error.position,
                          error.text, rule);
    *out = value;
    return EMBLA_OK;
}

void embla_json_free(embla_json_value *value)
{
    json_decref(value);
}

const embla_json_value *embla_json_get(const embla_json_value *object, const char *key)
{
    return json_object_get(object, key);
}

embla_json_kind embla_json_what(const embla_json_value *value)
{
    if (!value) return EMBLA_JSON_NONE;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return EMBLA_JSON_OBJECT;
    case JSON_ARRAY:
        return EMBLA_JSON_ARRAY;
    case JSON_STRING:
        return EMBLA_JSON_STRING;
    case JSON_INTEGER:
        return EMBLA_JSON_INTEGER;
    case JSON_REAL:
        return EMBLA_JSON_REAL;
    case JSON_TRUE:
        return EMBLA_JSON_TRUE;
    case JSON_FALSE:
        return EMBLA_JSON_FALSE;
    case JSON_NULL:
        break;
    }
    return EMBLA_JSON_NULL;
}

size_t embla_json_count(const embla_json_value *value)
{
    return json_is_object(value) ? json_object_size(value) : json_array_size(value);
}

const embla_json_value *embla_json_item(const embla_json_value *array, size_t n)
{
    return json_array_get(array, n);
}

const char *embla_json_string(const embla_json_value *value, size_t *length)
{
    if (length) *length = json_string_length(value);
    return json_string_value(value);
}

bool embla_json_integer(const embla_json_value *value, int64_t *out)
{
    if (!json_is_integer(value)) return false;
    *out = json_integer_value(value);
    return true;
}

bool embla_json_next(const embla_json_value *object, void **place, const char **key,
                     size_t *key_length, const embla_json_value **value)
{
    json_t *o = (json_t *)(uintptr_t)object; /* jansson's iterators take no const */
    *place = *place ? json_object_iter_next(o, *place) : json_object_iter(o);
    if (!*place) return false;
    *key = json_object_iter_key(*place);
    *key_length = strlen(*key); /* jansson refuses a 0 in a key */
    *value = json_object_iter_value(*place);
    return true;
}
