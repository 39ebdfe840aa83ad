/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a GGUF file's keys, queried by type (G5): numbers, the vocabulary (G12), and which
 * file of a split model this is (G13). A key of another type than the caller expects is refused,
 * never converted: in another reader, scores stored as bytes and read as floats caused reads
 * beyond the buffer.
 */
#include "formats/gguf.h"

#include <stdio.h>
#include <string.h>

#include "base/byte_text.h"
#include "base/checked.h"
#include "files/cursor.h"

enum { TOKEN_BYTE = 6 }; /* the token_type of a token that is one byte */

const embla_gguf *embla_gguf_of(const embla_directory *directory)
{
    bool ours = directory->format && strcmp(directory->format, embla_format_gguf.name) == 0;
    return ours ? directory->state : NULL;
}

/* ---- getters ---- */

const embla_gguf_key *embla_gguf_find(const embla_directory *directory, const char *key)
{
    const embla_gguf *gguf = embla_gguf_of(directory);
    const embla_name *name = gguf ? embla_names_find(&gguf->index, key, strlen(key)) : NULL;
    return name ? &gguf->keys[name->number] : NULL;
}

bool embla_gguf_has(const embla_directory *directory, const char *key)
{
    return embla_gguf_find(directory, key) != NULL;
}

static embla_status find_or_fail(const embla_directory *directory, const embla_map *map,
                                 const char *key, const embla_gguf_key **out)
{
    const embla_gguf_key *found = embla_gguf_find(directory, key);
    if (!found)
        return embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s: there is no key '%.128s'", map->name, key);
    *out = found;
    return EMBLA_OK;
}

static embla_status wrong_type(const embla_map *map, const embla_gguf_key *key, const char *wanted)
{
    bool array = key->type == EMBLA_GGUF_ARRAY;
    return embla_fail(EMBLA_ERR_FORMAT, "%.200s: key '%.128s' is %s%s, not %s (G5)", map->name,
                      key->key, array ? "an array of " : "of type ",
                      embla_gguf_type_name(key->element), wanted);
}

/* Reads the bytes of a number, not of an array, as a little-endian integer. */
static embla_status raw_number(const embla_map *map, const embla_gguf_key *key, uint64_t *out)
{
    uint8_t bytes[8] = {0};
    EMBLA_TRY(embla_map_read(map, key->value, (size_t)embla_gguf_type_bytes(key->type), bytes));
    *out = embla_le64(bytes);
    return EMBLA_OK;
}

embla_status embla_gguf_number(const embla_directory *directory, const embla_map *map,
                               const char *key, int64_t *out)
{
    const embla_gguf_key *found;
    uint64_t raw = 0;
    bool is_signed = false;
    EMBLA_TRY(find_or_fail(directory, map, key, &found));
    switch (found->type) {
    case EMBLA_GGUF_I8:
    case EMBLA_GGUF_I16:
    case EMBLA_GGUF_I32:
    case EMBLA_GGUF_I64:
        is_signed = true;
        break;
    case EMBLA_GGUF_U8:
    case EMBLA_GGUF_U16:
    case EMBLA_GGUF_U32:
    case EMBLA_GGUF_U64:
    case EMBLA_GGUF_BOOL:
        break;
    default:
        return wrong_type(map, found, "an integer");
    }
    EMBLA_TRY(raw_number(map, found, &raw));
    uint64_t top = UINT64_C(1) << (8 * embla_gguf_type_bytes(found->type) - 1);
    if (is_signed) raw = (raw ^ top) - top; /* sign extension; unsigned overflow is intended */
    if (!is_signed && raw > (uint64_t)INT64_MAX)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: key '%.128s' is %" PRIu64 "; the limit is %" PRId64 " (G5)",
                          map->name, key, raw, INT64_MAX);
    memcpy(out, &raw, sizeof *out);
    return EMBLA_OK;
}

embla_status embla_gguf_real(const embla_directory *directory, const embla_map *map,
                             const char *key, double *out)
{
    const embla_gguf_key *found;
    uint64_t raw = 0;
    EMBLA_TRY(find_or_fail(directory, map, key, &found));
    if (found->type != EMBLA_GGUF_F32 && found->type != EMBLA_GGUF_F64)
        return wrong_type(map, found, "f32 or f64");
    EMBLA_TRY(raw_number(map, found, &raw));
    if (found->type == EMBLA_GGUF_F64) {
        memcpy(out, &raw, sizeof *out);
    } else {
        uint32_t low = (uint32_t)raw;
        float value;
        memcpy(&value, &low, sizeof value);
        *out = (double)value;
    }
    return EMBLA_OK;
}

embla_status embla_gguf_array(const embla_directory *directory, const embla_map *map,
                              const char *key, embla_gguf_type element, const embla_gguf_key **out)
{
    const embla_gguf_key *found;
    char wanted[32];
    EMBLA_TRY(find_or_fail(directory, map, key, &found));
    (void)snprintf(wanted, sizeof wanted, "an array of %s", embla_gguf_type_name(element));
    if (found->type != EMBLA_GGUF_ARRAY || found->element != element)
        return wrong_type(map, found, wanted);
    *out = found;
    return EMBLA_OK;
}

static embla_status copy_strings(embla_cursor *c, embla_arena *arena, embla_name *names,
                                 size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes;
        uint64_t length; /* at most 64 MiB (G3); if the file has changed, the cursor fails */
        EMBLA_TRY(embla_cursor_u64(c, "the length of a string", &length));
        EMBLA_TRY(embla_cursor_bytes(c, length, "a string", &bytes));
        EMBLA_TRY(embla_arena_text(arena, bytes, (size_t)length, &names[i].bytes));
        names[i].length = (uint32_t)length;
        names[i].number = (uint32_t)i;
    }
    return EMBLA_OK;
}

embla_status embla_gguf_strings(const embla_directory *directory, const embla_map *map,
                                const char *key, embla_arena *arena, embla_name **out,
                                size_t *count)
{
    const embla_gguf_key *found;
    embla_cursor c;
    embla_name *names = NULL;
    EMBLA_TRY(embla_gguf_array(directory, map, key, EMBLA_GGUF_STRING, &found));
    /* each string takes at least 8 bytes of the file, and 16 here */
    size_t many = (size_t)found->count;
    EMBLA_TRY(embla_arena_many(arena, many, sizeof *names, "a list of words", &names));
    embla_cursor_begin(&c, map, found->value);
    embla_status status = copy_strings(&c, arena, names, many);
    embla_cursor_end(&c);
    if (status != EMBLA_OK) return status;
    *out = names;
    *count = many;
    return EMBLA_OK;
}

/* ---- the vocabulary ---- */

#define TOKENS      "tokenizer.ggml.tokens"
#define SCORES      "tokenizer.ggml.scores"
#define TOKEN_TYPES "tokenizer.ggml.token_type"

uint64_t embla_gguf_tokens(const embla_directory *directory)
{
    const embla_gguf_key *tokens = embla_gguf_find(directory, TOKENS);
    return tokens ? tokens->count : 0;
}

/* Checks that every token of type BYTE is "<0xHH>". Other tokens may look like that, too. */
static embla_status check_bytes(embla_cursor *types, embla_cursor *tokens, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t length;
        int32_t type;
        EMBLA_TRY(embla_cursor_i32(types, "the type of a token", &type));
        EMBLA_TRY(embla_cursor_u64(tokens, "the length of a token", &length));
        if (type != TOKEN_BYTE) {
            EMBLA_TRY(embla_cursor_skip(tokens, length, "a token"));
            continue;
        }
        const uint8_t *text = (const uint8_t *)"";
        if (length == 6) EMBLA_TRY(embla_cursor_bytes(tokens, length, "a token", &text));
        if (embla_byte_token((const char *)text, (size_t)length) < 0)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: token %" PRIu64 " has the type BYTE, but its %" PRIu64
                              " bytes are not of the form '<0xHH>': '%.6s' (G12)",
                              tokens->map->name, i, length, (const char *)text);
    }
    return EMBLA_OK;
}

/* Checks an array that belongs to the tokens: it has this type and as many elements. It may be
 * absent; *out is then NULL. */
static embla_status check_beside(const embla_directory *directory, const embla_map *map,
                                 const char *key, embla_gguf_type element,
                                 const embla_gguf_key **out)
{
    const embla_gguf_key *found;
    uint64_t tokens = embla_gguf_tokens(directory);
    *out = NULL;
    if (!embla_gguf_has(directory, key)) return EMBLA_OK;
    EMBLA_TRY(embla_gguf_array(directory, map, key, element, &found));
    if (found->count != tokens)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: %s has %" PRIu64 " elements, but there are %" PRIu64
                          " tokens (G5)",
                          map->name, key, found->count, tokens);
    *out = found;
    return EMBLA_OK;
}

embla_status embla_gguf_vocab_check(const embla_directory *directory, const embla_map *map)
{
    const embla_gguf_key *tokens = NULL, *scores, *types;
    embla_cursor types_at, tokens_at;
    if (embla_gguf_has(directory, TOKENS))
        EMBLA_TRY(embla_gguf_array(directory, map, TOKENS, EMBLA_GGUF_STRING, &tokens));
    EMBLA_TRY(check_beside(directory, map, SCORES, EMBLA_GGUF_F32, &scores));
    EMBLA_TRY(check_beside(directory, map, TOKEN_TYPES, EMBLA_GGUF_I32, &types));
    if (!tokens || !types) return EMBLA_OK;
    embla_cursor_begin(&types_at, map, types->value);
    embla_cursor_begin(&tokens_at, map, tokens->value);
    embla_status status = check_bytes(&types_at, &tokens_at, tokens->count);
    embla_cursor_end(&types_at);
    embla_cursor_end(&tokens_at);
    return status;
}

/* ---- several files ---- */

/* Reads a key that every file with split.count must have. */
static embla_status read_split(const embla_directory *directory, const embla_map *map,
                               const char *key, int64_t *out)
{
    if (!embla_gguf_has(directory, key))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: there is a key split.count, but no key %s (G13)", map->name,
                          key);
    return embla_gguf_number(directory, map, key, out);
}

embla_status embla_gguf_split(const embla_directory *directory, const embla_map *map,
                              unsigned *number, unsigned *count, uint64_t *tensors)
{
    int64_t no = 0, files = 0, all = 0;
    if (embla_gguf_has(directory, "split.count"))
        EMBLA_TRY(embla_gguf_number(directory, map, "split.count", &files));
    if (files == 0) { /* tools that merge splits write 0 */
        *number = 0;
        *count = 1;
        *tensors = directory->count;
        return EMBLA_OK;
    }
    EMBLA_TRY(read_split(directory, map, "split.no", &no));
    EMBLA_TRY(read_split(directory, map, "split.tensors.count", &all));
    if (files < 0 || files > EMBLA_GGUF_SPLITS_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: split.count is %" PRId64 "; it must be 1 to %d (G13)", map->name,
                          files, (int)EMBLA_GGUF_SPLITS_MOST);
    if (no < 0 || no >= files)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: split.no is %" PRId64 "; it must be 0 to %" PRId64
                          ", below split.count (G13)",
                          map->name, no, files - 1);
    if (all < 0 || (uint64_t)all < directory->count ||
        (files == 1 && (uint64_t)all > directory->count))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: split.tensors.count is %" PRId64 " for %" PRId64
                          " files, but this file alone has %zu tensors (G13)",
                          map->name, all, files, directory->count);
    *number = (unsigned)no;
    *count = (unsigned)files;
    *tensors = (uint64_t)all;
    return EMBLA_OK;
}

/* Parses five digits; -1 if they are not. */
static long parse_digits5(const char *text)
{
    long value = 0;
    for (int i = 0; i < 5; i++) {
        if (text[i] < '0' || text[i] > '9') return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

embla_status embla_gguf_split_name(const char *name, unsigned number, unsigned count, char out[256])
{
    static const char pattern[] = "-00001-of-00005.gguf";
    size_t length = strlen(name), tail = sizeof pattern - 1;
    if (count < 1 || count > EMBLA_GGUF_SPLITS_MOST || number >= count)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "file %u of %u files: the number must be below the count, and the count "
                          "at most %d",
                          number, count, (int)EMBLA_GGUF_SPLITS_MOST);
    const char *end = name + (length > tail ? length - tail : 0);
    if (length <= tail || length > 255 || strchr(name, '/') || end[0] != '-' ||
        parse_digits5(end + 1) < 1 || parse_digits5(end + 1) > (long)count ||
        memcmp(end + 6, "-of-", 4) != 0 || parse_digits5(end + 10) != (long)count ||
        memcmp(end + 15, ".gguf", 5) != 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s is one of %u files, but its name is not of the form "
                          "NAME-00001-of-%05u.gguf (G13)",
                          name, count, count);
    char suffix[sizeof "-4294967295-of-4294967295.gguf"];
    (void)snprintf(suffix, sizeof suffix, "-%05u-of-%05u.gguf", number + 1, count);
    memcpy(out, name, length - tail);
    memcpy(out + length - tail, suffix, tail + 1); /* with five digits each, as long as pattern */
    return EMBLA_OK;
}
