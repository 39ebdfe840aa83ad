/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a JSON tree from the steps of json_walk, in one arena and without recursion.
 *
 * A value takes 88 bytes and its text, so the number of values is limited. All memory comes from
 * base/mem: running out of it is a status, as everywhere.
 */
#include "files/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "files/json_walk.h"

/* A file may have FREE_VALUES values, and one more for each VALUE_BYTES bytes. Without this limit
 * a list of a million zeros would take forty times its size in memory (C5). */
enum { FREE_VALUES = 65536, VALUE_BYTES = 8 };

struct embla_json_value {
    embla_json_kind kind;
    uint32_t length;        /* bytes of text */
    uint32_t key_length;    /* bytes of a member's key */
    uint32_t items;         /* number of values in an object or array */
    const char *key, *text; /* with a 0 after them */
    int64_t integer;        /* the value of an integer */
    double real;            /* the value of any other number; NaN means it has no finite value */
    embla_json_value *parent, *first, *last, *next;
};

typedef struct {
    embla_json_value value; /* the first field, so that a root's address is its tree's */
    embla_arena arena;
} tree;

typedef struct {
    embla_walk walk;
    size_t most_depth, values;
    tree *tree;
    embla_json_value *open; /* the innermost object or array that is not closed yet */
    const char *key;        /* the key of the value that comes next */
    uint32_t key_length;
} builder;

static embla_status wrong(const builder *b, const char *what)
{
    return embla_fail(EMBLA_ERR_FORMAT, "%.256s: JSON, byte %zu of %zu: %s (%s)", b->walk.name,
                      b->walk.at, b->walk.count, what, b->walk.rule);
}

/* Copies the key or string of this step. A 0 is refused: most readers would stop at it. */
static embla_status copy_text(builder *b, const char **text, uint32_t *length)
{
    embla_name name;
    EMBLA_TRY(embla_walk_text(&b->walk, &name));
    if (memchr(name.bytes, 0, name.length)) return wrong(b, "a string contains a 0 byte");
    *length = name.length;
    return embla_arena_text(&b->tree->arena, name.bytes, name.length, text);
}

/* Parses a number. strtod gets the digits without the point, and a corrected exponent: only the
 * decimal point depends on the locale. */
static double parse_real(const uint8_t *raw, size_t length)
{
    char text[64], exponent[8], *end = NULL;
    size_t used = 0, i = 0;
    long point = 0;
    bool after = false;
    for (; i < length && raw[i] != 'e' && raw[i] != 'E'; i++) {
        bool digit = raw[i] >= '0' && raw[i] <= '9', minus = raw[i] == '-' && i == 0;
        if (raw[i] == '.')
            after = true;
        else if ((!digit && !minus) || used >= sizeof text - 16)
            return NAN; /* Python's NaN and Infinity, or more than 48 digits */
        else
            text[used++] = (char)raw[i];
        point += after && digit;
    }
    size_t left = i < length ? length - i - 1 : 0;
    if (left >= sizeof exponent) return NAN;
    memcpy(exponent, raw + length - left, left);
    exponent[left] = '\0';
    (void)snprintf(text + used, sizeof text - used, "e%ld", strtol(exponent, NULL, 10) - point);
    double value = strtod(text, &end);
    return *end == '\0' && isfinite(value) ? value : NAN;
}

static void parse_number(builder *b, embla_json_value *value)
{
    const embla_walk *w = &b->walk;
    bool minus = w->raw[0] == '-', whole = true;
    uint64_t size = 0;
    for (size_t i = minus; i < w->length; i++)
        whole = whole && w->raw[i] >= '0' && w->raw[i] <= '9';
    value->kind = EMBLA_JSON_REAL;
    value->real = parse_real(w->raw, w->length);
    if (!whole) return;
    embla_walk digits = *w; /* the same number without its sign */
    digits.raw += minus;
    digits.length -= minus;
    if (!embla_walk_natural(&digits, ((uint64_t)1 << 63) + minus, &size))
        return; /* too large for int64_t: it stays a real */
    value->kind = EMBLA_JSON_INTEGER;
    value->integer = (int64_t)(minus ? 0 - size : size);
}

/* Sets value from the current step. */
static embla_status set_value(builder *b, embla_json_value *value)
{
    switch (b->walk.step) {
    case EMBLA_WALK_OBJECT:
        value->kind = EMBLA_JSON_OBJECT;
        return EMBLA_OK;
    case EMBLA_WALK_ARRAY:
        value->kind = EMBLA_JSON_ARRAY;
        return EMBLA_OK;
    case EMBLA_WALK_STRING:
        value->kind = EMBLA_JSON_STRING;
        return copy_text(b, &value->text, &value->length);
    case EMBLA_WALK_NUMBER:
        parse_number(b, value);
        return EMBLA_OK;
    default: /* true, false, null */
        value->kind = b->walk.raw[0] == 't'   ? EMBLA_JSON_TRUE
                      : b->walk.raw[0] == 'f' ? EMBLA_JSON_FALSE
                                              : EMBLA_JSON_NULL;
        return EMBLA_OK;
    }
}

/* Appends a new value to the innermost open object or array. */
static embla_status append(builder *b, embla_json_value **out)
{
    void *memory = NULL;
    embla_json_value *parent = b->open;
    if (++b->values > FREE_VALUES + b->walk.count / VALUE_BYTES)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: JSON, byte %zu of %zu: more than %zu values (%s)", b->walk.name,
                          b->walk.at, b->walk.count, FREE_VALUES + b->walk.count / VALUE_BYTES,
                          b->walk.rule);
    EMBLA_TRY(embla_arena_take(&b->tree->arena, sizeof(embla_json_value), "JSON", &memory));
    embla_json_value *value = memory;
    value->parent = parent;
    value->key = b->key;
    value->key_length = b->key_length;
    b->key = NULL;
    if (parent->last)
        parent->last->next = value;
    else
        parent->first = value;
    parent->last = value;
    parent->items++;
    *out = value;
    return EMBLA_OK;
}

static embla_status build(builder *b)
{
    embla_walk *w = &b->walk;
    embla_json_value *value = &b->tree->value;
    for (;;) {
        EMBLA_TRY(embla_walk_next(w));
        if (w->step == EMBLA_WALK_END) return EMBLA_OK;
        if (w->step == EMBLA_WALK_CLOSE) {
            b->open = b->open->parent;
            continue;
        }
        if (w->step == EMBLA_WALK_KEY) {
            EMBLA_TRY(copy_text(b, &b->key, &b->key_length));
            continue;
        }
        if (b->open) EMBLA_TRY(append(b, &value));
        EMBLA_TRY(set_value(b, value));
        bool bracket = w->step == EMBLA_WALK_OBJECT || w->step == EMBLA_WALK_ARRAY;
        if (!b->open && !bracket) return wrong(b, "expected an object or an array");
        if (bracket) b->open = value;
        if (w->depth > b->most_depth)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.256s: JSON, byte %zu of %zu: nested more than %zu deep (%s)",
                              w->name, w->at, w->count, b->most_depth, w->rule);
    }
}

embla_status embla_json_read(const void *bytes, size_t count, const char *name, size_t most_depth,
                             const char *rule, embla_json_value **out)
{
    builder b = {.most_depth = most_depth};
    embla_arena own = {0}, scratch = {0};
    void *memory = NULL;
    if (count > UINT32_MAX)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: JSON of %zu bytes; the limit is %" PRIu32 " (%s)", name, count,
                          UINT32_MAX, rule);
    EMBLA_TRY(embla_arena_take(&own, sizeof(tree), "JSON", &memory));
    b.tree = memory;
    b.tree->arena = own;
    embla_status status = embla_walk_begin(&b.walk, bytes, count, name, rule, &scratch);
    b.walk.python = true; /* Python's json module writes most config.json files */
    if (status == EMBLA_OK) status = build(&b);
    embla_arena_free(&scratch);
    if (status != EMBLA_OK) {
        embla_json_free(&b.tree->value);
        return status;
    }
    *out = &b.tree->value;
    return EMBLA_OK;
}

void embla_json_free(embla_json_value *value)
{
    if (!value) return;
    embla_arena arena = ((tree *)(void *)value)->arena; /* a copy: the arena holds the tree */
    embla_arena_free(&arena);
}

const embla_json_value *embla_json_get(const embla_json_value *object, const char *key)
{
    size_t length = strlen(key);
    if (!object || object->kind != EMBLA_JSON_OBJECT) return NULL;
    for (const embla_json_value *v = object->first; v; v = v->next)
        if (v->key_length == length && memcmp(v->key, key, length) == 0) return v;
    return NULL;
}

embla_json_kind embla_json_what(const embla_json_value *value)
{
    return value ? value->kind : EMBLA_JSON_NONE;
}

size_t embla_json_count(const embla_json_value *value)
{
    return value ? value->items : 0;
}

const embla_json_value *embla_json_item(const embla_json_value *array, size_t n)
{
    if (!array || array->kind != EMBLA_JSON_ARRAY) return NULL;
    const embla_json_value *v = array->first;
    while (v && n-- > 0) v = v->next;
    return v;
}

const embla_json_value *embla_json_after(const embla_json_value *value)
{
    return value ? value->next : NULL;
}

const char *embla_json_string(const embla_json_value *value, size_t *length)
{
    if (length) *length = value ? value->length : 0;
    return value ? value->text : NULL;
}

bool embla_json_integer(const embla_json_value *value, int64_t *out)
{
    if (!value || value->kind != EMBLA_JSON_INTEGER) return false;
    *out = value->integer;
    return true;
}

bool embla_json_double(const embla_json_value *value, double *out)
{
    bool integer = value && value->kind == EMBLA_JSON_INTEGER;
    if (!integer && (!value || value->kind != EMBLA_JSON_REAL || !isfinite(value->real)))
        return false;
    *out = integer ? (double)value->integer : value->real;
    return true;
}

bool embla_json_next(const embla_json_value *object, const embla_json_value **value,
                     const char **key, size_t *key_length)
{
    if (!object || object->kind != EMBLA_JSON_OBJECT) return false;
    *value = *value ? (*value)->next : object->first;
    if (!*value) return false;
    *key = (*value)->key;
    *key_length = (*value)->key_length;
    return true;
}
