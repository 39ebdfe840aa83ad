/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as a tree, for small files that are queried by key: config.json, the index of shards.
 * Large files (headers, vocabularies) are parsed with json_walk.h, which this is built on.
 *
 * Refused are duplicate keys (compared after decoding), bytes that are not UTF-8, a 0 in a
 * string, comments, trailing commas, and anything after the value.
 */
#ifndef EMBLA_FILES_JSON_H
#define EMBLA_FILES_JSON_H

#include "base/status.h"

typedef struct embla_json_value embla_json_value;

/* Parses count bytes that are one object or array. Messages call the file `name`. Objects and
 * arrays may be nested most_depth deep, at most 64. EMBLA_ERR_FORMAT: the message says where, and
 * ends with the rule, e.g. "(T1)". */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_json_read(const void *bytes, size_t count,
                                                         const char *name, size_t most_depth,
                                                         const char *rule, embla_json_value **out);
EMBLA_PRIVATE void embla_json_free(embla_json_value *value); /* NULL is allowed */

/* The member of an object with this key. NULL if there is none, or if `object` is NULL or not an
 * object. */
EMBLA_PRIVATE const embla_json_value *embla_json_get(const embla_json_value *object,
                                                     const char *key);

typedef enum {
    EMBLA_JSON_OBJECT,
    EMBLA_JSON_ARRAY,
    EMBLA_JSON_STRING,
    EMBLA_JSON_INTEGER,
    EMBLA_JSON_REAL,
    EMBLA_JSON_TRUE,
    EMBLA_JSON_FALSE,
    EMBLA_JSON_NULL,
    EMBLA_JSON_NONE /* for a NULL pointer */
} embla_json_kind;

EMBLA_PRIVATE embla_json_kind embla_json_what(const embla_json_value *value);
/* The number of members of an object or items of an array; 0 for anything else. */
EMBLA_PRIVATE size_t embla_json_count(const embla_json_value *value);
/* Item n of an array, from 0; NULL past the end. */
EMBLA_PRIVATE const embla_json_value *embla_json_item(const embla_json_value *array, size_t n);
/* The next value in the same array or object; NULL after the last. */
EMBLA_PRIVATE const embla_json_value *embla_json_after(const embla_json_value *value);
/* The text of a string and its length; NULL for anything else. length may be NULL. */
EMBLA_PRIVATE const char *embla_json_string(const embla_json_value *value, size_t *length);
/* The value of an integer; returns false for anything else. */
EMBLA_PRIVATE bool embla_json_integer(const embla_json_value *value, int64_t *out);
/* The value of any number, as the nearest double. Returns false for anything else, and if that
 * double is not finite. */
bool embla_json_double(const embla_json_value *value, double *out);

/* Steps through the members of an object in the order of the file; *value is NULL at first.
 * Returns false at the end. *key is valid as long as the object. */
bool embla_json_next(const embla_json_value *object, const embla_json_value **value,
                     const char **key, size_t *key_length);

#endif
