/* SPDX-License-Identifier: Apache-2.0 */
/* Writing GGUF v3. From another GGUF its keys are copied byte for byte, in order: what they
 * mean is not our business. Otherwise the file gets general.architecture, the text that came
 * along, and the words of the rows.
 *
 * The words come with tokenizer.ggml.model = "none": llama.cpp then loads no tokenizer (any
 * name it knows would need merges or scores that we do not have) and takes the number of
 * tokens from ARCHITECTURE.vocab_size, which must be the rows of the table. Other readers
 * find the words where they always are. A row without a word is called "[PADn]" and marked
 * unused, as llama.cpp's own converter does.
 *
 * The header is laid out twice by the same code: once to count its bytes, once to fill them.
 */
#include "formats/gguf.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "files/cursor.h"

enum { TOKEN_NORMAL = 1, TOKEN_UNUSED = 5 };

/* Where the header goes; bytes NULL: only counted. */
typedef struct {
    uint8_t *bytes;
    uint64_t used;
} sink;

/* What is to be written. */
typedef struct {
    const embla_contents *contents;
    const embla_gguf *source; /* NULL: keys of our own */
    bool named;               /* general.architecture is among the pairs */
    const char *vocab_size;   /* the key of that name; NULL: no labels are written */
    uint64_t keys;
    uint32_t alignment;
} plan;

/* ---- laying out ---- */

/* The sum, or the largest number there is: too long for any file. */
static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum = UINT64_MAX;
    (void)embla_add_ok(a, b, &sum);
    return sum;
}

static void put(sink *s, const void *bytes, uint64_t count)
{
    if (s->bytes && count > 0) memcpy(s->bytes + s->used, bytes, (size_t)count);
    s->used = plus(s->used, count);
}

static void put_u32(sink *s, uint32_t value)
{
    uint8_t bytes[4];
    embla_put_le32(value, bytes);
    put(s, bytes, sizeof bytes);
}

static void put_u64(sink *s, uint64_t value)
{
    uint8_t bytes[8];
    embla_put_le64(value, bytes);
    put(s, bytes, sizeof bytes);
}

static void put_string(sink *s, const char *bytes, uint64_t length)
{
    put_u64(s, length);
    put(s, bytes, length);
}

static void put_key(sink *s, const char *key, embla_gguf_type type)
{
    put_string(s, key, strlen(key));
    put_u32(s, type);
}

static void put_pair(sink *s, const char *key, const char *value)
{
    put_key(s, key, EMBLA_GGUF_STRING);
    put_string(s, value, strlen(value));
}

static void put_array(sink *s, const char *key, embla_gguf_type element, uint64_t count)
{
    put_key(s, key, EMBLA_GGUF_ARRAY);
    put_u32(s, element);
    put_u64(s, count);
}

/* Zeros up to a multiple of alignment, a power of two. */
static uint64_t padding(uint64_t at, uint32_t alignment)
{
    return (alignment - at % alignment) % alignment;
}

static void put_padding(sink *s, uint32_t alignment)
{
    static const uint8_t zeros[64];
    for (uint64_t left = padding(s->used, alignment); left > 0;) {
        uint64_t piece = left < sizeof zeros ? left : sizeof zeros;
        put(s, zeros, piece);
        left -= piece;
    }
}

/* ---- keys ---- */

/* Whether a key of the source is left out: this will be one file. */
static bool dropped(const char *key)
{
    return strncmp(key, "split.", 6) == 0;
}

/* Bytes first .. end-1 of the source, which are whole records. */
static embla_status put_records(sink *s, const plan *p, uint64_t first, uint64_t end)
{
    if (s->bytes)
        EMBLA_TRY(embla_map_read(p->contents->source_map, first, (size_t)(end - first),
                                 s->bytes + s->used));
    s->used = plus(s->used, end - first);
    return EMBLA_OK;
}

/* The keys of the source, as they are: all that lie side by side at once. */
static embla_status put_source(sink *s, const plan *p)
{
    const embla_gguf_key *keys = p->source->keys;
    size_t count = p->source->count, run = 0; /* run: the first that is not yet written */
    for (size_t i = 0; i <= count; i++) {
        if (i < count && !dropped(keys[i].key)) continue;
        if (i > run) EMBLA_TRY(put_records(s, p, keys[run].first, keys[i - 1].end));
        run = i + 1;
    }
    return EMBLA_OK;
}

/* Whether a pair is written: not where the source has it, or where we write our own. */
static bool pair_wanted(const plan *p, const char *key)
{
    if (p->source) return !embla_gguf_has(p->contents->source, key);
    return !(p->vocab_size && strcmp(key, "tokenizer.ggml.model") == 0);
}

static void put_labels(sink *s, const plan *p)
{
    const embla_contents *contents = p->contents;
    put_pair(s, "tokenizer.ggml.model", "none");
    put_key(s, p->vocab_size, EMBLA_GGUF_U32);
    put_u32(s, (uint32_t)contents->label_count);
    put_array(s, "tokenizer.ggml.tokens", EMBLA_GGUF_STRING, contents->label_count);
    for (size_t i = 0; i < contents->label_count; i++) {
        const embla_name *label = &contents->labels[i];
        char name[32];
        int length = snprintf(name, sizeof name, "[PAD%zu]", i);
        if (label->bytes)
            put_string(s, label->bytes, label->length);
        else
            put_string(s, name, (uint64_t)length);
    }
    put_array(s, "tokenizer.ggml.token_type", EMBLA_GGUF_I32, contents->label_count);
    for (size_t i = 0; i < contents->label_count; i++)
        put_u32(s, contents->labels[i].bytes ? TOKEN_NORMAL : TOKEN_UNUSED);
}

static embla_status put_keys(sink *s, const plan *p)
{
    const embla_contents *contents = p->contents;
    if (p->source)
        EMBLA_TRY(put_source(s, p));
    else if (!p->named)
        put_pair(s, "general.architecture", "embla");
    for (size_t i = 0; i < contents->pair_count; i++)
        if (pair_wanted(p, contents->pairs[i].key))
            put_pair(s, contents->pairs[i].key, contents->pairs[i].value);
    if (p->vocab_size) put_labels(s, p);
    return EMBLA_OK;
}

/* Names, shapes and places of the tensors; *end is where the last ends, from the first on. */
static void put_tensors(sink *s, const plan *p, uint64_t *end)
{
    uint64_t offset = 0;
    for (size_t i = 0; i < p->contents->count; i++) {
        const embla_part *part = &p->contents->parts[i];
        put_string(s, part->name, strlen(part->name));
        put_u32(s, part->rank);
        for (uint32_t d = part->rank; d > 0; d--) put_u64(s, part->shape[d - 1]);
        put_u32(s, (uint32_t)part->element->ggml);
        put_u64(s, offset);
        offset = plus(offset, part->bytes);
        offset = plus(offset, padding(offset, p->alignment));
    }
    *end = offset;
}

static embla_status lay_out(sink *s, const plan *p, uint64_t *size)
{
    uint64_t end;
    put(s, "GGUF", 4);
    put_u32(s, 3);
    put_u64(s, p->contents->count);
    put_u64(s, p->keys);
    EMBLA_TRY(put_keys(s, p));
    put_tensors(s, p, &end);
    put_padding(s, p->alignment);
    *size = plus(s->used, end);
    return EMBLA_OK;
}

/* ---- what can be written: whatever the reader would refuse is refused here ---- */

static embla_status check_part(const embla_part *part)
{
    uint64_t numbers = 1, bytes = 0, dim = part->rank > 0 ? part->shape[part->rank - 1] : 0;
    size_t length = strlen(part->name);
    if (length < 1 || length > EMBLA_GGUF_NAME_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s': a name of %zu bytes; GGUF has room for 1 to %d (G7)",
                          part->name, length, (int)EMBLA_GGUF_NAME_MOST);
    if (part->element->ggml < 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s': its type %s is not one of GGUF's (G8)", part->name,
                          part->element->name);
    if (part->rank < 1 || part->rank > EMBLA_GGUF_RANK_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s' has %u dimensions; GGUF has 1 to %d (G7)", part->name,
                          (unsigned)part->rank, (int)EMBLA_GGUF_RANK_MOST);
    for (uint32_t i = part->rank; i > 0; i--)
        if (part->shape[i - 1] > EMBLA_GGUF_DIM_MOST ||
            !embla_mul_ok(numbers, part->shape[i - 1], &numbers))
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "tensor '%.128s': dimension %u, %" PRIu64
                              ", is too large for GGUF (G7)",
                              part->name, (unsigned)i, part->shape[i - 1]);
    if (dim % part->element->block != 0 || !embla_element_bytes(part->element, numbers, &bytes))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s': rows of %" PRIu64 " numbers are not whole blocks of "
                          "%u (%s), or there are too many (G9)",
                          part->name, dim, (unsigned)part->element->block, part->element->name);
    if (bytes != part->bytes)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "tensor '%.128s': %" PRIu64 " bytes are given, its shape takes %" PRIu64,
                          part->name, part->bytes, bytes);
    return EMBLA_OK;
}

static embla_status check_key(const char *key)
{
    size_t length = strlen(key);
    bool ascii = true;
    for (size_t i = 0; i < length; i++) ascii = ascii && (unsigned char)key[i] < 0x80;
    if (length < 1 || length > EMBLA_GGUF_KEY_MOST || !ascii)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "key '%.128s' of %zu bytes: GGUF takes 1 to %d bytes of ASCII (G3)", key,
                          length, (int)EMBLA_GGUF_KEY_MOST);
    return EMBLA_OK;
}

/* Text under a key that readers know as something else would make a file that we, too,
 * refuse. */
static embla_status check_pair(const embla_pair *pair)
{
    static const char *const not_text[] = {"general.alignment", "tokenizer.ggml.tokens",
                                           "tokenizer.ggml.scores", "tokenizer.ggml.token_type"};
    bool other = dropped(pair->key);
    EMBLA_TRY(check_key(pair->key));
    for (size_t i = 0; i < sizeof not_text / sizeof not_text[0]; i++)
        other = other || strcmp(pair->key, not_text[i]) == 0;
    if (other)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "key '%.128s' has a meaning of its own in GGUF and cannot be text (G4)",
                          pair->key);
    if (strlen(pair->value) > EMBLA_GGUF_TEXT_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "key '%.128s': text of %zu bytes, more than %d (G3)", pair->key,
                          strlen(pair->value), (int)EMBLA_GGUF_TEXT_MOST);
    return EMBLA_OK;
}

static embla_status check_labels(const embla_contents *contents)
{
    uint64_t rows =
        contents->count > 0 && contents->parts[0].rank > 0 ? contents->parts[0].shape[0] : 0;
    if (contents->label_count != rows)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%zu labels for %" PRIu64 " rows: GGUF has one for each "
                          "(G5)",
                          contents->label_count, rows);
    if (contents->label_count > EMBLA_GGUF_ARRAY_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%zu labels, more than %d (G4)",
                          contents->label_count, (int)EMBLA_GGUF_ARRAY_MOST);
    for (size_t i = 0; i < contents->label_count; i++)
        if (contents->labels[i].bytes && contents->labels[i].length > EMBLA_GGUF_TEXT_MOST)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "the label of row %zu has %" PRIu32 " bytes, more than %d (G3)", i,
                              contents->labels[i].length, (int)EMBLA_GGUF_TEXT_MOST);
    return EMBLA_OK;
}

static embla_status check_count(uint64_t count, const char *what)
{
    if (count > EMBLA_GGUF_COUNT_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%" PRIu64 " %s, more than %d (G2)", count, what,
                          (int)EMBLA_GGUF_COUNT_MOST);
    return EMBLA_OK;
}

/* Refuses names that occur twice. */
static embla_status check_names(embla_arena *arena, embla_name *names, size_t count,
                                const char *what, const char *rule)
{
    embla_names index;
    for (size_t i = 0; i < count; i++) {
        names[i].length = (uint32_t)strlen(names[i].bytes);
        names[i].number = (uint32_t)i;
    }
    EMBLA_TRY(embla_names_sort(arena, names, count, &index));
    const embla_name *twice = embla_names_twice(&index);
    if (!twice) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_UNSUPPORTED, "%s '%.128s' would occur twice (%s)", what,
                      twice->bytes, rule);
}

static embla_status check_parts(const embla_contents *contents, embla_arena *arena)
{
    embla_name *names = NULL;
    EMBLA_TRY(check_count(contents->count, "tensors"));
    for (size_t i = 0; i < contents->count; i++) EMBLA_TRY(check_part(&contents->parts[i]));
    EMBLA_TRY(embla_arena_many(arena, contents->count, sizeof *names, "names", &names));
    for (size_t i = 0; i < contents->count; i++) names[i].bytes = contents->parts[i].name;
    return check_names(arena, names, contents->count, "tensor", "G7");
}

/* Counts the keys there will be, and sees that no two are the same. */
static embla_status check_keys(plan *p, embla_arena *arena)
{
    static const char *const ours[] = {"general.architecture", "tokenizer.ggml.model",
                                       "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"};
    const embla_contents *contents = p->contents;
    size_t count = 0, copied = 0;
    embla_name *names = NULL;
    EMBLA_TRY(embla_arena_many(arena, contents->pair_count + 5, sizeof *names, "names", &names));
    for (size_t i = 0; i < contents->pair_count; i++) {
        if (!pair_wanted(p, contents->pairs[i].key)) continue;
        EMBLA_TRY(check_pair(&contents->pairs[i]));
        names[count++].bytes = contents->pairs[i].key;
    }
    for (size_t i = 0; p->source && i < p->source->count; i++)
        copied += !dropped(p->source->keys[i].key);
    if (!p->source && !p->named) names[count++].bytes = ours[0];
    for (size_t i = 1; p->vocab_size && i < 4; i++) names[count++].bytes = ours[i];
    if (p->vocab_size) names[count++].bytes = p->vocab_size;
    p->keys = copied + count;
    EMBLA_TRY(check_count(p->keys, "keys"));
    return check_names(arena, names, count, "key", "G3");
}

/* The source that keys are copied from, if there is one. */
static const embla_gguf *source_of(const embla_contents *contents)
{
    return contents->source && contents->source_map ? embla_gguf_of(contents->source) : NULL;
}

static embla_status make_plan(const embla_contents *contents, embla_arena *arena, plan *p)
{
    const char *architecture = "embla";
    *p = (plan){.contents = contents, .alignment = embla_gguf_alignment(contents)};
    p->source = source_of(contents);
    if (p->source) return EMBLA_OK;
    for (size_t i = 0; i < contents->pair_count; i++)
        if (strcmp(contents->pairs[i].key, "general.architecture") == 0) {
            architecture = contents->pairs[i].value;
            p->named = true;
        }
    if (contents->label_count == 0) return EMBLA_OK;
    EMBLA_TRY(check_labels(contents));
    size_t room = strlen(architecture) + sizeof ".vocab_size";
    void *key = NULL;
    EMBLA_TRY(embla_arena_take(arena, room, "a key", &key));
    (void)snprintf(key, room, "%s.vocab_size", architecture);
    EMBLA_TRY(check_key(key));
    p->vocab_size = key;
    return EMBLA_OK;
}

uint32_t embla_gguf_alignment(const embla_contents *contents)
{
    const embla_gguf *source = source_of(contents);
    return source ? source->alignment : EMBLA_GGUF_ALIGNMENT;
}

embla_status embla_gguf_header(const embla_contents *contents, embla_arena *arena, uint8_t **bytes,
                               size_t *length, uint64_t *size)
{
    plan p;
    sink counted = {0}, filled = {0};
    uint64_t whole = 0;
    size_t room = 0;
    void *memory = NULL;
    EMBLA_TRY(make_plan(contents, arena, &p));
    EMBLA_TRY(check_parts(contents, arena));
    EMBLA_TRY(check_keys(&p, arena));
    EMBLA_TRY(lay_out(&counted, &p, &whole));
    if (whole > (uint64_t)INT64_MAX || !embla_size_ok(counted.used, &room))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%zu tensors and their header do not fit a file (G11)", contents->count);
    EMBLA_TRY(embla_arena_take(arena, room, "the header of a file", &memory));
    filled.bytes = memory;
    EMBLA_TRY(lay_out(&filled, &p, &whole));
    *bytes = memory;
    *length = room;
    *size = whole;
    return EMBLA_OK;
}

/* ---- the file ---- */

static embla_status write_all(embla_durable *out, const embla_contents *contents,
                              embla_arena *arena)
{
    uint8_t *bytes = NULL;
    size_t length = 0;
    uint64_t size = 0;
    uint32_t alignment = embla_gguf_alignment(contents);
    EMBLA_TRY(embla_gguf_header(contents, arena, &bytes, &length, &size));
    EMBLA_TRY(embla_durable_reserve(out, size));
    EMBLA_TRY(embla_durable_write(out, bytes, length));
    for (size_t i = 0; i < contents->count; i++) {
        EMBLA_TRY(embla_part_write(out, &contents->parts[i]));
        EMBLA_TRY(embla_durable_fill(out, 0, padding(contents->parts[i].bytes, alignment)));
    }
    return EMBLA_OK;
}

embla_status embla_gguf_write(embla_durable *out, const embla_contents *contents)
{
    embla_arena arena = {0};
    embla_status status = write_all(out, contents, &arena);
    embla_arena_free(&arena);
    return status;
}
