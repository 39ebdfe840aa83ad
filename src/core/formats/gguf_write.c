/* SPDX-License-Identifier: Apache-2.0 */
/* Writes GGUF version 3. If the source is a GGUF, its keys are copied byte for byte and in order,
 * without interpreting them. Otherwise the file gets general.architecture, the metadata that is
 * text, and the words of the rows.
 *
 * With the words goes tokenizer.ggml.model = "none". llama.cpp then loads no tokenizer; any name
 * it knows would need merges or scores that we do not have. It takes the number of tokens from
 * ARCHITECTURE.vocab_size, which must be the number of rows. Other readers find the words under
 * their usual key. A row without a word is called "[PADn]" and marked unused, as llama.cpp's own
 * converter does.
 *
 * The same code lays out the header twice: first to count its bytes, then to fill them.
 */
#include "formats/gguf.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "files/cursor.h"

enum { TOKEN_NORMAL = 1, TOKEN_UNUSED = 5 };

/* Where the header is written; bytes NULL means that it is only counted. */
typedef struct {
    uint8_t *bytes;
    uint64_t used;
} sink;

/* What is to be written. */
typedef struct {
    const embla_contents *contents;
    const embla_gguf *source; /* whose keys are copied; NULL if the source is not a GGUF */
    bool named;               /* general.architecture is among the pairs */
    const char *vocab_size;   /* the key ARCHITECTURE.vocab_size; NULL: no labels are written */
    uint64_t keys;
    uint32_t alignment;
} plan;

/* ---- layout ---- */

/* The sum, or UINT64_MAX if it overflows, which is too large for any file. */
static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    uint64_t sum = UINT64_MAX;
    (void)embla_add_ok(a, b, &sum);
    return sum;
}

static void append(sink *s, const void *bytes, uint64_t count)
{
    if (s->bytes && count > 0) memcpy(s->bytes + s->used, bytes, (size_t)count);
    s->used = add_saturated(s->used, count);
}

static void append_u32(sink *s, uint32_t value)
{
    uint8_t bytes[4];
    embla_put_le32(value, bytes);
    append(s, bytes, sizeof bytes);
}

static void append_u64(sink *s, uint64_t value)
{
    uint8_t bytes[8];
    embla_put_le64(value, bytes);
    append(s, bytes, sizeof bytes);
}

static void append_string(sink *s, const char *bytes, uint64_t length)
{
    append_u64(s, length);
    append(s, bytes, length);
}

static void append_key(sink *s, const char *key, embla_gguf_type type)
{
    append_string(s, key, strlen(key));
    append_u32(s, type);
}

static void append_pair(sink *s, const char *key, const char *value)
{
    append_key(s, key, EMBLA_GGUF_STRING);
    append_string(s, value, strlen(value));
}

static void append_array(sink *s, const char *key, embla_gguf_type element, uint64_t count)
{
    append_key(s, key, EMBLA_GGUF_ARRAY);
    append_u32(s, element);
    append_u64(s, count);
}

/* The number of bytes up to the next multiple of alignment, a power of two. */
static uint64_t padding(uint64_t at, uint32_t alignment)
{
    return (alignment - at % alignment) % alignment;
}

static void append_padding(sink *s, uint32_t alignment)
{
    static const uint8_t zeros[64];
    for (uint64_t left = padding(s->used, alignment); left > 0;) {
        uint64_t piece = left < sizeof zeros ? left : sizeof zeros;
        append(s, zeros, piece);
        left -= piece;
    }
}

/* ---- keys ---- */

/* True if a key of the source is left out: the result is one file, not a split model. */
static bool is_dropped(const char *key)
{
    return strncmp(key, "split.", 6) == 0;
}

/* Copies bytes first .. end-1 of the source, which are whole records. */
static embla_status copy_records(sink *s, const plan *p, uint64_t first, uint64_t end)
{
    if (s->bytes)
        EMBLA_TRY(embla_map_read(p->contents->source_map, first, (size_t)(end - first),
                                 s->bytes + s->used));
    s->used = add_saturated(s->used, end - first);
    return EMBLA_OK;
}

/* Copies the keys of the source unchanged, adjacent ones together. */
static embla_status copy_source(sink *s, const plan *p)
{
    const embla_gguf_key *keys = p->source->keys;
    size_t count = p->source->count, run = 0; /* run: the first key that is not written yet */
    for (size_t i = 0; i <= count; i++) {
        if (i < count && !is_dropped(keys[i].key)) continue;
        if (i > run) EMBLA_TRY(copy_records(s, p, keys[run].first, keys[i - 1].end));
        run = i + 1;
    }
    return EMBLA_OK;
}

/* True if a pair is written: neither the source has its key nor do we write our own. */
static bool is_wanted(const plan *p, const char *key)
{
    if (p->source) return !embla_gguf_has(p->contents->source, key);
    return !(p->vocab_size && strcmp(key, "tokenizer.ggml.model") == 0);
}

static void append_labels(sink *s, const plan *p)
{
    const embla_contents *contents = p->contents;
    append_pair(s, "tokenizer.ggml.model", "none");
    append_key(s, p->vocab_size, EMBLA_GGUF_U32);
    append_u32(s, (uint32_t)contents->label_count);
    append_array(s, "tokenizer.ggml.tokens", EMBLA_GGUF_STRING, contents->label_count);
    for (size_t i = 0; i < contents->label_count; i++) {
        const embla_name *label = &contents->labels[i];
        char name[32];
        int length = snprintf(name, sizeof name, "[PAD%zu]", i);
        if (label->bytes)
            append_string(s, label->bytes, label->length);
        else
            append_string(s, name, (uint64_t)length);
    }
    append_array(s, "tokenizer.ggml.token_type", EMBLA_GGUF_I32, contents->label_count);
    for (size_t i = 0; i < contents->label_count; i++)
        append_u32(s, contents->labels[i].bytes ? TOKEN_NORMAL : TOKEN_UNUSED);
}

static embla_status append_keys(sink *s, const plan *p)
{
    const embla_contents *contents = p->contents;
    if (p->source)
        EMBLA_TRY(copy_source(s, p));
    else if (!p->named)
        append_pair(s, "general.architecture", "embla");
    for (size_t i = 0; i < contents->pair_count; i++)
        if (is_wanted(p, contents->pairs[i].key))
            append_pair(s, contents->pairs[i].key, contents->pairs[i].value);
    if (p->vocab_size) append_labels(s, p);
    return EMBLA_OK;
}

/* Appends names, shapes and offsets of the tensors. *end is the end of the last tensor, relative
 * to the first. */
static void append_tensors(sink *s, const plan *p, uint64_t *end)
{
    uint64_t offset = 0;
    for (size_t i = 0; i < p->contents->count; i++) {
        const embla_part *part = &p->contents->parts[i];
        append_string(s, part->name, strlen(part->name));
        append_u32(s, part->rank);
        for (uint32_t d = part->rank; d > 0; d--) append_u64(s, part->shape[d - 1]);
        append_u32(s, (uint32_t)part->element->ggml);
        append_u64(s, offset);
        offset = add_saturated(offset, part->bytes);
        offset = add_saturated(offset, padding(offset, p->alignment));
    }
    *end = offset;
}

static embla_status lay_out(sink *s, const plan *p, uint64_t *size)
{
    uint64_t end;
    append(s, "GGUF", 4);
    append_u32(s, 3);
    append_u64(s, p->contents->count);
    append_u64(s, p->keys);
    EMBLA_TRY(append_keys(s, p));
    append_tensors(s, p, &end);
    append_padding(s, p->alignment);
    *size = add_saturated(s->used, end);
    return EMBLA_OK;
}

/* ---- checks: what the reader would refuse is refused here ---- */

static embla_status check_part(const embla_part *part)
{
    uint64_t numbers = 1, bytes = 0, dim = part->rank > 0 ? part->shape[part->rank - 1] : 0;
    size_t length = strlen(part->name);
    if (length < 1 || length > EMBLA_GGUF_NAME_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s': its name has %zu bytes; in GGUF it has 1 to %d (G7)",
                          part->name, length, (int)EMBLA_GGUF_NAME_MOST);
    if (part->element->ggml < 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s' has the type %s, which GGUF does not have (G8)",
                          part->name, part->element->name);
    if (part->rank < 1 || part->rank > EMBLA_GGUF_RANK_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s' has %u dimensions; GGUF has 1 to %d (G7)", part->name,
                          (unsigned)part->rank, (int)EMBLA_GGUF_RANK_MOST);
    for (uint32_t i = part->rank; i > 0; i--)
        if (part->shape[i - 1] > EMBLA_GGUF_DIM_MOST ||
            !embla_mul_ok(numbers, part->shape[i - 1], &numbers))
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "tensor '%.128s': dimension %u is %" PRIu64
                              ", which is too large for GGUF (G7)",
                              part->name, (unsigned)i, part->shape[i - 1]);
    if (dim % part->element->block != 0 || !embla_element_bytes(part->element, numbers, &bytes))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s': rows of %" PRIu64 " numbers are not whole blocks of "
                          "%u (%s), or there are too many (G9)",
                          part->name, dim, (unsigned)part->element->block, part->element->name);
    if (bytes != part->bytes)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "tensor '%.128s' has %" PRIu64 " bytes, but its shape needs %" PRIu64,
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
                          "key '%.128s' (%zu bytes) cannot be a key of GGUF: it must be 1 to %d "
                          "bytes of ASCII (G3)",
                          key, length, (int)EMBLA_GGUF_KEY_MOST);
    return EMBLA_OK;
}

/* Refuses text under a key that must have another type: our reader would refuse such a file. */
static embla_status check_pair(const embla_pair *pair)
{
    static const char *const not_text[] = {"general.alignment", "tokenizer.ggml.tokens",
                                           "tokenizer.ggml.scores", "tokenizer.ggml.token_type"};
    bool other = is_dropped(pair->key);
    EMBLA_TRY(check_key(pair->key));
    for (size_t i = 0; i < sizeof not_text / sizeof not_text[0]; i++)
        other = other || strcmp(pair->key, not_text[i]) == 0;
    if (other)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "key '%.128s' is reserved in GGUF and cannot be text (G4)", pair->key);
    if (strlen(pair->value) > EMBLA_GGUF_TEXT_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "key '%.128s' has text of %zu bytes; the limit is %d (G3)", pair->key,
                          strlen(pair->value), (int)EMBLA_GGUF_TEXT_MOST);
    return EMBLA_OK;
}

/* Keys whose values are numbers or lists, which the writer makes itself. */
static bool is_own_key(const char *key)
{
    static const char *const keys[] = {"general.alignment", "tokenizer.ggml.tokens",
                                       "tokenizer.ggml.scores", "tokenizer.ggml.token_type"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return is_dropped(key);
}

bool embla_gguf_keeps(const embla_pair *pair, size_t count, size_t bytes)
{
    size_t key = strlen(pair->key);
    (void)count;
    (void)bytes;
    if (key < 1 || key > EMBLA_GGUF_KEY_MOST || strlen(pair->value) > EMBLA_GGUF_TEXT_MOST)
        return false;
    for (size_t i = 0; i < key; i++)
        if ((unsigned char)pair->key[i] >= 0x80) return false;
    return !is_own_key(pair->key);
}

static embla_status check_labels(const embla_contents *contents)
{
    uint64_t rows =
        contents->count > 0 && contents->parts[0].rank > 0 ? contents->parts[0].shape[0] : 0;
    if (contents->label_count != rows)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%zu labels for %" PRIu64 " rows: GGUF needs one for each row "
                          "(G5)",
                          contents->label_count, rows);
    if (contents->label_count > EMBLA_GGUF_ARRAY_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%zu labels are too many for GGUF: the limit is %d (G4)",
                          contents->label_count, (int)EMBLA_GGUF_ARRAY_MOST);
    for (size_t i = 0; i < contents->label_count; i++)
        if (contents->labels[i].bytes && contents->labels[i].length > EMBLA_GGUF_TEXT_MOST)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "the label of row %zu has %" PRIu32 " bytes; the limit is %d (G3)", i,
                              contents->labels[i].length, (int)EMBLA_GGUF_TEXT_MOST);
    return EMBLA_OK;
}

static embla_status check_count(uint64_t count, const char *what)
{
    if (count > EMBLA_GGUF_COUNT_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%" PRIu64 " %s are too many for GGUF: the limit is %d (G2)", count, what,
                          (int)EMBLA_GGUF_COUNT_MOST);
    return EMBLA_OK;
}

/* Refuses duplicate names. */
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

/* Counts the keys of the file and refuses duplicates. */
static embla_status check_keys(plan *p, embla_arena *arena)
{
    static const char *const ours[] = {"general.architecture", "tokenizer.ggml.model",
                                       "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"};
    const embla_contents *contents = p->contents;
    size_t count = 0, copied = 0;
    embla_name *names = NULL;
    EMBLA_TRY(embla_arena_many(arena, contents->pair_count + 5, sizeof *names, "names", &names));
    for (size_t i = 0; i < contents->pair_count; i++) {
        if (!is_wanted(p, contents->pairs[i].key)) continue;
        EMBLA_TRY(check_pair(&contents->pairs[i]));
        names[count++].bytes = contents->pairs[i].key;
    }
    for (size_t i = 0; p->source && i < p->source->count; i++)
        copied += !is_dropped(p->source->keys[i].key);
    if (!p->source && !p->named) names[count++].bytes = ours[0];
    for (size_t i = 1; p->vocab_size && i < 4; i++) names[count++].bytes = ours[i];
    if (p->vocab_size) names[count++].bytes = p->vocab_size;
    p->keys = copied + count;
    EMBLA_TRY(check_count(p->keys, "keys"));
    return check_names(arena, names, count, "key", "G3");
}

/* The source that keys are copied from; NULL if there is none. */
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
                          "%zu tensors and their header are too large for a file (G11)",
                          contents->count);
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
