/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as a tree, for files that are small and asked about by key: config.json, the index of
 * shards. Large ones (headers, vocabularies) are walked, see json_walk.h, which this is built
 * on. Duplicate keys (compared decoded), bytes that are not UTF-8, a 0 in a string,
 * comments, trailing commas and anything after the value are refused.
 */
#ifndef EMBLA_FILES_JSON_H
#define EMBLA_FILES_JSON_H

#include "base/status.h"

typedef struct embla_json_value embla_json_value;

/* Reads count bytes, one object or array. name is what messages call the file.
 * Brackets inside each other at most most_depth (up to 64).
 * EMBLA_ERR_FORMAT says where; the sentence ends with rule, e.g. "(T1)". */
EMBLA_CHECKED embla_status embla_json_read(const void *bytes, size_t count, const char *name,
                                           size_t most_depth, const char *rule,
                                           embla_json_value **out);
void embla_json_free(embla_json_value *value); /* NULL is fine */

/* The member of an object; NULL if there is none, or if object is NULL or no object. */
const embla_json_value *embla_json_get(const embla_json_value *object, const char *key);

typedef enum {
    EMBLA_JSON_OBJECT,
    EMBLA_JSON_ARRAY,
    EMBLA_JSON_STRING,
    EMBLA_JSON_INTEGER,
    EMBLA_JSON_REAL,
    EMBLA_JSON_TRUE,
    EMBLA_JSON_FALSE,
    EMBLA_JSON_NULL,
    EMBLA_JSON_NONE /* of a NULL pointer */
} embla_json_kind;

embla_json_kind embla_json_what(const embla_json_value *value);
/* Members of an object, items of an array; 0 of anything else. */
size_t embla_json_count(const embla_json_value *value);
/* The n-th item of an array; NULL past the end. */
const embla_json_value *embla_json_item(const embla_json_value *array, size_t n);
/* What follows it in its array or object; NULL after the last. */
const embla_json_value *embla_json_after(const embla_json_value *value);
/* Value of a string (with its length), NULL of anything else. */
const char *embla_json_string(const embla_json_value *value, size_t *length);
/* Value of an integer; false of anything else. */
bool embla_json_integer(const embla_json_value *value, int64_t *out);
/* Value of any number, the double nearest to it; false of anything else, and where it has none
 * that is finite. */
bool embla_json_double(const embla_json_value *value, double *out);

/* Each member of an object, in the order of the file. *value begins as NULL. False at the
 * end. key stays valid as long as the object. */
bool embla_json_next(const embla_json_value *object, const embla_json_value **value,
                     const char **key, size_t *key_length);

#endif
