/* SPDX-License-Identifier: Apache-2.0 */
/* JSON walked from front to back, one step at a time, nothing built: for files whose JSON is
 * megabytes of words. A tree would take twenty times the memory of a header, and most
 * of the time.
 *
 * The same refusals as in files/json.h: bytes that are not UTF-8, nesting too deep, a key
 * twice in one object (compared decoded), lone surrogates, anything after the value.
 *
 *   EMBLA_TRY(embla_walk_begin(&w, bytes, count, name, "T1", &scratch));
 *   EMBLA_TRY(embla_walk_next(&w));        w.step is now EMBLA_WALK_OBJECT, say
 */
#ifndef EMBLA_FILES_JSON_WALK_H
#define EMBLA_FILES_JSON_WALK_H

#include "base/arena.h"
#include "base/status.h"
#include "files/names.h"

enum { EMBLA_WALK_DEPTH = 64, EMBLA_WALK_TEXT = 1 << 20 };

typedef enum {
    EMBLA_WALK_OBJECT, /* one begins; then key, value, key, value .. close */
    EMBLA_WALK_ARRAY,  /* one begins; then value, value .. close */
    EMBLA_WALK_CLOSE,
    EMBLA_WALK_KEY,
    EMBLA_WALK_STRING,
    EMBLA_WALK_NUMBER,
    EMBLA_WALK_WORD, /* true, false, null */
    EMBLA_WALK_END   /* after the one value there is nothing more */
} embla_walk_step;

typedef struct {
    embla_walk_step step;
    /* Of a key, string, number or word: what was written, without quotation marks. */
    const uint8_t *raw;
    size_t length;
    bool escaped; /* a backslash is in it */

    /* The walk's own. */
    const uint8_t *bytes;
    size_t count, at; /* count below 2^32 */
    const char *name, *rule;
    const char *twice_rule; /* of a key that stands twice; NULL: rule. Set after begin */
    bool python;            /* NaN, Infinity and -Infinity are numbers. Set after begin */
    size_t most_text;       /* bytes of a string; EMBLA_WALK_TEXT unless set after begin */
    embla_arena *scratch;
    int awaited;
    size_t depth;
    bool is_object[EMBLA_WALK_DEPTH];
    size_t first_key[EMBLA_WALK_DEPTH]; /* of each open object, in keys */
    embla_name *keys;                   /* of all open objects; number is where it stands */
    size_t key_count, key_room;
} embla_walk;

/* Keys and decoded strings are kept in scratch. name is what messages call the file; they
 * end with rule. */
EMBLA_CHECKED embla_status embla_walk_begin(embla_walk *w, const uint8_t *bytes, size_t count,
                                            const char *name, const char *rule,
                                            embla_arena *scratch);
/* One step on. Not to be called after EMBLA_WALK_END. */
EMBLA_CHECKED embla_status embla_walk_next(embla_walk *w);
/* The step is the first of a value: goes on to its last. */
EMBLA_CHECKED embla_status embla_walk_skip(embla_walk *w);
/* The key or string of this step, decoded: in scratch, or in the bytes themselves. */
EMBLA_CHECKED embla_status embla_walk_text(const embla_walk *w, embla_name *out);
/* The number of this step is 0 | [1-9][0-9]* and below limit. */
bool embla_walk_natural(const embla_walk *w, uint64_t limit, uint64_t *out);

#endif
