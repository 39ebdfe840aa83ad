/* SPDX-License-Identifier: Apache-2.0 */
/* A pull parser for JSON: it goes from front to back, one step at a time, and builds no tree. It
 * is for files with megabytes of words; a tree would take twenty times the memory of a header,
 * and most of the time.
 *
 * It refuses what files/json.h refuses: bytes that are not UTF-8, nesting too deep, a key twice
 * in one object (compared after decoding), lone surrogates, anything after the value.
 *
 *   EMBLA_TRY(embla_walk_begin(&w, bytes, count, name, "T1", &scratch));
 *   EMBLA_TRY(embla_walk_next(&w));        w.step is now, for example, EMBLA_WALK_OBJECT
 */
#ifndef EMBLA_FILES_JSON_WALK_H
#define EMBLA_FILES_JSON_WALK_H

#include "base/arena.h"
#include "base/status.h"
#include "files/names.h"

enum { EMBLA_WALK_DEPTH = 64, EMBLA_WALK_TEXT = 1 << 20 };

typedef enum {
    EMBLA_WALK_OBJECT, /* an object begins; then key, value, key, value .. close */
    EMBLA_WALK_ARRAY,  /* an array begins; then value, value .. close */
    EMBLA_WALK_CLOSE,
    EMBLA_WALK_KEY,
    EMBLA_WALK_STRING,
    EMBLA_WALK_NUMBER,
    EMBLA_WALK_WORD, /* true, false, null */
    EMBLA_WALK_END   /* the end of the text, after its one value */
} embla_walk_step;

typedef struct {
    embla_walk_step step;
    /* The text of a key, string, number or word as written, without quotation marks. */
    const uint8_t *raw;
    size_t length;
    bool escaped; /* it contains a backslash */

    /* Private to the parser. */
    const uint8_t *bytes;
    size_t count, at; /* count below 2^32 */
    const char *name, *rule;
    /* The caller may set these three after embla_walk_begin. */
    const char *twice_rule; /* the rule named for a duplicate key; NULL means `rule` */
    bool python;            /* accept NaN, Infinity and -Infinity as numbers */
    size_t most_text;       /* the most bytes of a string; EMBLA_WALK_TEXT by default */
    embla_arena *scratch;
    int expected;
    size_t depth;
    bool is_object[EMBLA_WALK_DEPTH];
    size_t first_key[EMBLA_WALK_DEPTH]; /* index in keys of each open object's first key */
    embla_name *keys;                   /* keys of all open objects; number is the offset */
    size_t key_count, key_room;
} embla_walk;

/* Begins to parse. Keys and decoded strings are kept in scratch. Messages call the file `name`
 * and end with the rule. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_walk_begin(embla_walk *w, const uint8_t *bytes,
                                                          size_t count, const char *name,
                                                          const char *rule, embla_arena *scratch);
/* Parses the next step. Must not be called after EMBLA_WALK_END. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_walk_next(embla_walk *w);
/* Skips a value: from its first step, which is the current one, to its last. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_walk_skip(embla_walk *w);
/* Decodes the key or string of this step; out points into scratch or into the JSON itself. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_walk_text(const embla_walk *w, embla_name *out);
/* Parses the number of this step; false unless it is a natural number below limit. */
EMBLA_PRIVATE bool embla_walk_natural(const embla_walk *w, uint64_t limit, uint64_t *out);

#endif
