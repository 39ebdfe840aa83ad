/* SPDX-License-Identifier: Apache-2.0 */
/* Reads words from JSON: Hugging Face's tokenizer.json, and vocab.json.
 *
 *   tokenizer.json  {.. "added_tokens": [{"id": 5, "content": "<s>" ..} ..],
 *                       "model": {.. "vocab": words ..} ..}
 *   vocab.json      words
 *   words           {"the": 5, ..}, or [["the", -3.2], ..], or ["the", ..]; in an array the
 *                   index is the token; a score may be null
 *
 * The form of the words decides how they are read; model.type is ignored. Nothing else in the
 * file is used (merges, regular expressions, scores).
 */
#include <string.h>

#include "checkpoint/vocab.h"
#include "files/cursor.h"
#include "files/json_walk.h"

enum { FILE_MOST = 64000000, ADDED_MOST = 65536 };
#define TOKENS_MOST (UINT64_C(1) << 31)

typedef struct {
    embla_walk walk;
    embla_arena scratch;
    embla_vocab *vocab;
    embla_name *added; /* added_tokens; number is the id */
    size_t added_count, added_room;
    bool has_words;
} reading;

static embla_status wrong(const reading *r, const char *what, const char *rule)
{
    return embla_fail(EMBLA_ERR_FORMAT, "%.256s: byte %zu of %zu: %s (%s)", r->walk.name,
                      r->walk.at, r->walk.count, what, rule);
}

static int shown(const embla_name *name)
{
    return name->length < 128 ? (int)name->length : 128;
}

/* Reads the value of this step as the id of a word. */
static embla_status read_id(const reading *r, const embla_name *word, uint32_t *out)
{
    const embla_walk *w = &r->walk;
    uint64_t id = 0;
    if (w->step != EMBLA_WALK_NUMBER)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: byte %zu of %zu: the id of '%.*s' is not a number (T2)", w->name,
                          w->at, w->count, shown(word), word->bytes);
    if (!embla_walk_natural(w, TOKENS_MOST, &id))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the id of '%.*s' is %.*s, not an integer from 0 to 2^31-1 (T2)",
                          w->name, shown(word), word->bytes, w->length < 32 ? (int)w->length : 32,
                          (const char *)w->raw);
    *out = (uint32_t)id;
    return EMBLA_OK;
}

/* True if this step is the word null. */
static bool is_null(const embla_walk *w)
{
    return w->step == EMBLA_WALK_WORD && w->raw[0] == 'n';
}

/* ---- words ---- */

/* Adds a member of {"the": 5, ..}; the current step is its value. */
static embla_status add_member(reading *r, const embla_name *word)
{
    uint32_t id = 0;
    EMBLA_TRY(read_id(r, word, &id));
    return embla_vocab_add(r->vocab, id, word->bytes, word->length);
}

static embla_status read_members(reading *r)
{
    embla_walk *w = &r->walk;
    for (;;) {
        EMBLA_TRY(embla_walk_next(w));
        if (w->step == EMBLA_WALK_CLOSE) return EMBLA_OK;
        embla_name word = w->keys[w->key_count - 1];
        EMBLA_TRY(embla_walk_next(w));
        EMBLA_TRY(add_member(r, &word));
    }
}

/* Adds the string of this step as the word of token id. */
static embla_status add_string(reading *r, uint64_t id)
{
    embla_name word;
    if (r->walk.step != EMBLA_WALK_STRING) return wrong(r, "expected a word", "T2");
    EMBLA_TRY(embla_walk_text(&r->walk, &word));
    return embla_vocab_add(r->vocab, id, word.bytes, word.length);
}

/* Adds an item of [["the", -3.2], ..] or of ["the", ..]; the first item decides which it is. */
static embla_status add_item(reading *r, uint64_t id, bool *pairs)
{
    embla_walk *w = &r->walk;
    if (id == 0) *pairs = w->step == EMBLA_WALK_ARRAY;
    if (!*pairs) return add_string(r, id);
    if (w->step != EMBLA_WALK_ARRAY)
        return wrong(r, "a word has no score, but those before it have", "T2");
    EMBLA_TRY(embla_walk_next(w));
    EMBLA_TRY(add_string(r, id));
    EMBLA_TRY(embla_walk_next(w));
    if (w->step != EMBLA_WALK_NUMBER && !is_null(w))
        return wrong(r, "the score of a word is not a number", "T2");
    EMBLA_TRY(embla_walk_next(w));
    return w->step == EMBLA_WALK_CLOSE ? EMBLA_OK
                                       : wrong(r, "expected only a word and its score", "T2");
}

static embla_status read_items(reading *r)
{
    bool pairs = false;
    for (uint64_t id = 0;; id++) {
        EMBLA_TRY(embla_walk_next(&r->walk));
        if (r->walk.step == EMBLA_WALK_CLOSE) return EMBLA_OK;
        EMBLA_TRY(add_item(r, id, &pairs));
    }
}

/* ---- tokenizer.json ---- */

static bool is(const embla_name *key, const char *text)
{
    return key->length == strlen(text) && memcmp(key->bytes, text, key->length) == 0;
}

static embla_status read_model(reading *r)
{
    embla_walk *w = &r->walk;
    if (w->step != EMBLA_WALK_OBJECT) return wrong(r, "model is not an object", "T2");
    for (;;) {
        EMBLA_TRY(embla_walk_next(w));
        if (w->step == EMBLA_WALK_CLOSE) return EMBLA_OK;
        bool words = is(&w->keys[w->key_count - 1], "vocab");
        EMBLA_TRY(embla_walk_next(w));
        r->has_words = r->has_words || words;
        if (!words)
            EMBLA_TRY(embla_walk_skip(w));
        else if (w->step == EMBLA_WALK_OBJECT)
            EMBLA_TRY(read_members(r));
        else if (w->step == EMBLA_WALK_ARRAY)
            EMBLA_TRY(read_items(r));
        else
            return wrong(r, "model.vocab is neither an object nor an array", "T2");
    }
}

/* Reads one object of added_tokens. */
static embla_status read_added(reading *r, embla_name *out)
{
    embla_walk *w = &r->walk;
    bool has_id = false, has_content = false;
    static const embla_name unknown = {"an added token", 14, 0};
    if (w->step != EMBLA_WALK_OBJECT) return wrong(r, "an added token is not an object", "T3");
    for (;;) {
        EMBLA_TRY(embla_walk_next(w));
        if (w->step == EMBLA_WALK_CLOSE) break;
        embla_name key = w->keys[w->key_count - 1], text;
        EMBLA_TRY(embla_walk_next(w));
        if (is(&key, "id")) {
            EMBLA_TRY(read_id(r, has_content ? out : &unknown, &out->number));
            has_id = true;
        } else if (is(&key, "content")) {
            if (w->step != EMBLA_WALK_STRING) return wrong(r, "content is not a string", "T3");
            EMBLA_TRY(embla_walk_text(w, &text));
            out->bytes = text.bytes;
            out->length = text.length;
            has_content = true;
        } else {
            EMBLA_TRY(embla_walk_skip(w));
        }
    }
    return has_id && has_content ? EMBLA_OK
                                 : wrong(r, "an added token has no id or no content", "T3");
}

static embla_status read_all_added(reading *r)
{
    embla_walk *w = &r->walk;
    if (is_null(w)) return EMBLA_OK;
    if (w->step != EMBLA_WALK_ARRAY) return wrong(r, "added_tokens is not an array", "T3");
    for (;;) {
        void *list = r->added;
        EMBLA_TRY(embla_walk_next(w));
        if (w->step == EMBLA_WALK_CLOSE) return EMBLA_OK;
        if (r->added_count >= ADDED_MOST)
            return embla_fail(EMBLA_ERR_FORMAT, "%.256s: there are more than %d added tokens (T3)",
                              w->name, ADDED_MOST);
        EMBLA_TRY(embla_arena_grow(&r->scratch, sizeof *r->added, r->added_count, "added tokens",
                                   &list, &r->added_room));
        r->added = list;
        EMBLA_TRY(read_added(r, &r->added[r->added_count]));
        r->added_count++;
    }
}

/* Adds the added tokens that are not among the model's words. If one is, the model's id is used,
 * as in the tokenizers library, which also ignores an empty one. */
static embla_status merge_added(reading *r)
{
    embla_names index = {0};
    void *memory = NULL;
    EMBLA_TRY(embla_names_sort(&r->scratch, r->added, r->added_count, &index));
    EMBLA_TRY(embla_arena_take(&r->scratch, r->added_count, "added tokens", &memory));
    bool *known = memory; /* by added token; if a word has two ids, by that of the lowest id */
    for (size_t i = 0; index.count > 0 && i < r->vocab->count; i++) {
        const embla_name *word = &r->vocab->words[i];
        const embla_name *found = embla_names_find(&index, word->bytes, word->length);
        if (found) known[found - r->added] = true;
    }
    for (size_t i = 0; i < r->added_count; i++) {
        const embla_name *word = &r->added[i];
        const embla_name *first = embla_names_find(&index, word->bytes, word->length);
        if (word->length > 0 && !known[first - r->added])
            EMBLA_TRY(embla_vocab_add(r->vocab, word->number, word->bytes, word->length));
    }
    return EMBLA_OK;
}

/* ---- the file ---- */

/* Reads an object. It is a list of words if its first value is a number; in a tokenizer.json it
 * never is. */
static embla_status read_object(reading *r)
{
    embla_walk *w = &r->walk;
    bool words = false;
    for (bool first = true;; first = false) {
        EMBLA_TRY(embla_walk_next(w));
        if (w->step == EMBLA_WALK_CLOSE) break;
        embla_name key = w->keys[w->key_count - 1];
        EMBLA_TRY(embla_walk_next(w));
        if (first) words = w->step == EMBLA_WALK_NUMBER;
        if (words)
            EMBLA_TRY(add_member(r, &key));
        else if (is(&key, "model"))
            EMBLA_TRY(read_model(r));
        else if (is(&key, "added_tokens"))
            EMBLA_TRY(read_all_added(r));
        else
            EMBLA_TRY(embla_walk_skip(w));
    }
    if (!words && !r->has_words)
        return wrong(
            r, "found neither model.vocab (tokenizer.json) nor words with ids (vocab.json)", "T2");
    return merge_added(r);
}

static embla_status read_value(reading *r, const uint8_t *bytes, size_t count, const char *name)
{
    embla_walk *w = &r->walk;
    EMBLA_TRY(embla_walk_begin(w, bytes, count, name, "T1", &r->scratch));
    EMBLA_TRY(embla_walk_next(w));
    if (w->step == EMBLA_WALK_OBJECT)
        EMBLA_TRY(read_object(r));
    else if (w->step == EMBLA_WALK_ARRAY)
        EMBLA_TRY(read_items(r));
    else
        return wrong(r, "expected an object or an array", "T1");
    return embla_walk_next(w); /* anything after the value is refused */
}

embla_status embla_vocab_json(embla_map *map, embla_vocab *vocab)
{
    reading r = {.vocab = vocab};
    embla_cursor cursor;
    const uint8_t *bytes = NULL;
    if (map->size > FILE_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: JSON of %" PRIu64 " bytes; the limit is %d (T1)", map->name,
                          map->size, FILE_MOST);
    embla_cursor_begin(&cursor, map, 0);
    embla_status status = embla_cursor_bytes(&cursor, map->size, "the JSON", &bytes);
    if (status == EMBLA_OK) status = read_value(&r, bytes, (size_t)map->size, map->name);
    embla_arena_free(&r.scratch);
    embla_cursor_end(&cursor);
    return status;
}

/* True for "{" followed by a key or "}", and for "[" followed by a string, "[" or "]". More than
 * the first byte is checked because a list of words may begin with "[PAD]". */
bool embla_vocab_json_sniff(const uint8_t *head, size_t have)
{
    char marks[2] = {0};
    size_t found = 0;
    for (size_t i = 0; i < have && found < 2; i++)
        if (head[i] != ' ' && head[i] != '\n' && head[i] != '\r' && head[i] != '\t')
            marks[found++] = (char)head[i];
    if (marks[0] == '{') return marks[1] == '"' || marks[1] == '}';
    return marks[0] == '[' && (marks[1] == '"' || marks[1] == '[' || marks[1] == ']');
}
