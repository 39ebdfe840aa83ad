/* SPDX-License-Identifier: Apache-2.0 */
/* JSON, parsed by us and by jansson: both accept it or neither does, and the trees are the same.
 * Allowed differences: we stop at 64 levels and at a 0 byte (jansson ignores one after a number);
 * jansson refuses numbers too large for 63 bits or a double, and NaN and Infinity. */
#include <jansson.h>

#include "base/mem.h"
#include "files/json.h"
#include "input.h"

enum { DEPTH = 64 };

/* The nesting depth of brackets outside of strings. */
static size_t depth_of(const uint8_t *data, size_t size)
{
    size_t depth = 0, most = 0;
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '"') {
            for (i++; i < size && data[i] != '"'; i++) i += data[i] == '\\';
        } else if (data[i] == '{' || data[i] == '[') {
            if (++depth > most) most = depth;
        } else if ((data[i] == '}' || data[i] == ']') && depth > 0) {
            depth--;
        }
    }
    return most;
}

/* True for a letter that begins NaN or Infinity, as Python writes them. */
static bool python(const uint8_t *data, size_t size)
{
    return memchr(data, 'N', size) || memchr(data, 'I', size);
}

static void same(const embla_json_value *ours, json_t *theirs);

static void same_members(const embla_json_value *ours, json_t *theirs)
{
    const embla_json_value *value = NULL;
    const char *key;
    size_t length, members = 0;
    while (embla_json_next(ours, &value, &key, &length)) {
        PROMISE(strlen(key) == length);
        same(value, json_object_get(theirs, key));
        PROMISE(embla_json_get(ours, key) == value);
        members++;
    }
    PROMISE(members == json_object_size(theirs) && members == embla_json_count(ours));
}

/* Checks that a value does not convert to any other type. */
static void no_other(const embla_json_value *ours)
{
    const embla_json_value *none = NULL;
    embla_json_kind kind = embla_json_what(ours);
    const char *key;
    size_t length = 7;
    int64_t number;
    if (kind != EMBLA_JSON_OBJECT)
        PROMISE(!embla_json_get(ours, "") && !embla_json_next(ours, &none, &key, &length));
    if (kind != EMBLA_JSON_ARRAY) PROMISE(!embla_json_item(ours, 0));
    if (kind == EMBLA_JSON_ARRAY) PROMISE(!embla_json_item(ours, embla_json_count(ours)));
    if (kind != EMBLA_JSON_INTEGER) PROMISE(!embla_json_integer(ours, &number));
    PROMISE((embla_json_string(ours, NULL) != NULL) == (kind == EMBLA_JSON_STRING));
    if (kind > EMBLA_JSON_ARRAY) PROMISE(embla_json_count(ours) == 0);
}

static void same(const embla_json_value *ours, json_t *theirs)
{
    int64_t number = 0;
    size_t length = 0;
    const char *text = embla_json_string(ours, &length);
    PROMISE(theirs);
    no_other(ours);
    switch (embla_json_what(ours)) {
    case EMBLA_JSON_OBJECT:
        PROMISE(json_is_object(theirs));
        same_members(ours, theirs);
        break;
    case EMBLA_JSON_ARRAY:
        PROMISE(json_array_size(theirs) == embla_json_count(ours) && json_is_array(theirs));
        for (size_t i = 0; i < embla_json_count(ours) && i < 64; i++)
            same(embla_json_item(ours, i), json_array_get(theirs, i));
        break;
    case EMBLA_JSON_STRING:
        PROMISE(json_string_length(theirs) == length);
        PROMISE(memcmp(json_string_value(theirs), text, length) == 0);
        break;
    case EMBLA_JSON_INTEGER:
        PROMISE(embla_json_integer(ours, &number) && json_integer_value(theirs) == number);
        break;
    case EMBLA_JSON_REAL:
        PROMISE(json_is_real(theirs));
        break;
    default:
        PROMISE(json_is_boolean(theirs) || json_is_null(theirs));
        PROMISE(json_is_true(theirs) == (embla_json_what(ours) == EMBLA_JSON_TRUE));
        PROMISE(json_is_null(theirs) == (embla_json_what(ours) == EMBLA_JSON_NULL));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    embla_json_value *ours = NULL;
    json_error_t error;
    size_t live = embla_mem_live(), length = 7;
    embla_status status = embla_json_read(data, size, "x", DEPTH, "T1", &ours);
    json_t *theirs = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &error);
    if (status == EMBLA_OK && theirs) same(ours, theirs);
    no_other(NULL);
    PROMISE(!embla_json_string(NULL, &length) && length == 0);
    if (status == EMBLA_OK && !theirs)
        PROMISE(json_error_code(&error) == json_error_numeric_overflow || python(data, size));
    if (status != EMBLA_OK)
        PROMISE(!theirs || depth_of(data, size) > DEPTH || memchr(data, 0, size));
    json_decref(theirs);
    embla_json_free(ours);
    PROMISE(embla_mem_live() == live);
    return 0;
}
