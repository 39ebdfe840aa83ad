/* SPDX-License-Identifier: Apache-2.0 */
/* llm.c's GPT-2 checkpoints (rules L1 to L3): a header of 256 integers, then sixteen tensors
 * without names or offsets. Six of the integers determine all shapes.
 *
 * The reader and the writer use one list of shapes. Only the size of the file can prove that the
 * header is right, so it must match exactly. llm.c's other files begin with similar magic numbers;
 * they are recognised so that the message can say what they are. The head is always the token
 * table.
 */
#include "formats/llmc.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "files/cursor.h"

enum { MAGIC = 20240326, VERSION_F32 = 3, VERSION_BF16 = 5 };
enum { LAYERS_MOST = 1024, PADDING_MOST = 4096, FIELDS = 8 };
enum { SHAPE_TEXT = EMBLA_TENSOR_RANK_MAX * 23 + 1 };

/* Dimensions of a tensor: Vp, T, L, C, 3C, 4C. END ends a shape. */
enum { END, ROWS, POSITIONS, LAYERS, C1, C3, C4 };

static const struct {
    const char *name;
    uint8_t shape[4];
} tensors[EMBLA_LLMC_TENSORS] = {
    {"wte", {ROWS, C1}},
    {"wpe", {POSITIONS, C1}},
    {"ln1w", {LAYERS, C1}},
    {"ln1b", {LAYERS, C1}},
    {"qkvw", {LAYERS, C3, C1}},
    {"qkvb", {LAYERS, C3}},
    {"attprojw", {LAYERS, C1, C1}},
    {"attprojb", {LAYERS, C1}},
    {"ln2w", {LAYERS, C1}},
    {"ln2b", {LAYERS, C1}},
    {"fcw", {LAYERS, C4, C1}},
    {"fcb", {LAYERS, C4}},
    {"fcprojw", {LAYERS, C1, C4}},
    {"fcprojb", {LAYERS, C1}},
    {"lnfw", {C1}},
    {"lnfb", {C1}},
};

/* llm.c's other files, which are recognised but not read (L2). */
static const struct {
    uint32_t magic;
    const char *what;
} others[] = {
    {20240327, "the reference state of its tests"},
    {20240328, "a tokenizer, which can be opened as a vocabulary"},
    {20240520, "tokens for training"},
    {20240522, "an evaluation set"},
    {20240527, "the state of a training run"},
    {20240801, "Llama 3 tokens for training"},
    {20240803, "a Llama 3 model"},
};
enum { OTHERS = sizeof others / sizeof others[0] };

static uint64_t size_of(const embla_llmc *m, uint8_t kind)
{
    const uint64_t c = m->channels;
    const uint64_t sizes[] = {
        [ROWS] = m->rows, [POSITIONS] = m->positions, [LAYERS] = m->layers, [C1] = c, [C3] = 3 * c,
        [C4] = 4 * c,
    };
    return sizes[kind];
}

/* Writes the shape of tensor n and returns its rank. */
static uint32_t shape_of(const embla_llmc *m, size_t n, uint64_t shape[4])
{
    uint32_t rank = 0;
    for (; tensors[n].shape[rank] != END; rank++) shape[rank] = size_of(m, tensors[n].shape[rank]);
    return rank;
}

/* ---- reading ---- */

static const char *other_file(uint32_t magic)
{
    for (size_t i = 0; i < OTHERS; i++)
        if (others[i].magic == magic) return others[i].what;
    return NULL;
}

static bool sniff(const uint8_t *head, size_t have, uint64_t size)
{
    (void)size;
    return have >= 4 && (embla_le32(head) == MAGIC || other_file(embla_le32(head)));
}

static embla_status check_magic(const embla_map *map, const uint8_t *header)
{
    uint32_t magic = embla_le32(header);
    const char *what = other_file(magic);
    if (what)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: this file of llm.c (magic number %" PRIu32
                          ") is %s, not a GPT-2 model (L2)",
                          map->name, magic, what);
    if (magic != MAGIC)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the magic number is %" PRIu32 ", but that of a model is %d (L1)",
                          map->name, magic, MAGIC);
    return EMBLA_OK;
}

/* Reads the six sizes, which are signed in the file. */
static embla_status read_sizes(const embla_map *map, const uint8_t *header, embla_llmc *m)
{
    const char *const names[] = {"max_seq_len", "vocab_size", "num_layers",
                                 "num_heads",   "channels",   "padded_vocab_size"};
    uint32_t *const sizes[] = {&m->positions, &m->tokens,   &m->layers,
                               &m->heads,     &m->channels, &m->rows};
    for (size_t i = 0; i < 6; i++) {
        uint32_t value = embla_le32(header + 4 * (i + 2));
        if (value > INT32_MAX)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.256s: %s is %" PRId64 "; it must not be negative (L3)", map->name,
                              names[i], (int64_t)value - (INT64_C(1) << 32));
        if (value == 0)
            return embla_fail(EMBLA_ERR_FORMAT, "%.256s: %s is 0; it must be at least 1 (L1)",
                              map->name, names[i]);
        *sizes[i] = value;
    }
    return EMBLA_OK;
}

/* Checks the sizes against each other, for reading and for writing. */
static embla_status check_sizes(const char *name, embla_status status, const embla_llmc *m)
{
    if (m->layers > LAYERS_MOST)
        return embla_fail(status, "%.256s: %" PRIu32 " layers; the limit is %d (L1)", name,
                          m->layers, LAYERS_MOST);
    if (m->rows < m->tokens || m->rows - m->tokens > PADDING_MOST)
        return embla_fail(status,
                          "%.256s: %" PRIu32 " rows for %" PRIu32
                          " tokens; 0 to %d rows may be padding (L1)",
                          name, m->rows, m->tokens, PADDING_MOST);
    if (m->channels % m->heads != 0)
        return embla_fail(
            status, "%.256s: %" PRIu32 " channels cannot be divided by %" PRIu32 " heads (L1)",
            name, m->channels, m->heads);
    return EMBLA_OK;
}

static embla_status list_tensors(const embla_map *map, const embla_llmc *m, embla_directory *out)
{
    uint64_t end = EMBLA_LLMC_HEADER;
    for (size_t i = 0; i < EMBLA_LLMC_TENSORS; i++) {
        embla_entry *entry;
        EMBLA_TRY(embla_directory_add(out, tensors[i].name, strlen(tensors[i].name), &entry));
        entry->element = m->element;
        entry->rank = shape_of(m, i, entry->shape);
        entry->offset = end;
        EMBLA_TRY(embla_entry_size(map, entry, "L1"));
        if (!embla_add_ok(end, entry->bytes, &end))
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.256s: %s ends beyond 2^64, but the file ends at %" PRIu64 " (L1)",
                              map->name, entry->name, map->size);
    }
    if (end != map->size)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: according to its header the file has %" PRIu64
                          " bytes, but it has %" PRIu64 " (L1)",
                          map->name, end, map->size);
    return EMBLA_OK;
}

static embla_status add_pairs(const embla_llmc *m, embla_directory *out)
{
    const struct {
        const char *key;
        uint32_t value;
    } pairs[] = {{"max_seq_len", m->positions}, {"vocab_size", m->tokens},
                 {"num_layers", m->layers},     {"num_heads", m->heads},
                 {"channels", m->channels},     {"padded_vocab_size", m->rows}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char text[16];
        int length = snprintf(text, sizeof text, "%" PRIu32, pairs[i].value);
        EMBLA_TRY(
            embla_directory_pair(out, pairs[i].key, strlen(pairs[i].key), text, (size_t)length));
    }
    return EMBLA_OK;
}

static embla_status read_file(embla_map *map, const embla_open_options *options,
                              embla_directory *out)
{
    uint8_t header[4 * FIELDS];
    embla_llmc m = {0};
    (void)options;
    out->format = "llm.c";
    if (map->size < 4)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the file has %" PRIu64 " bytes, but the header has %d (L1)",
                          map->name, map->size, EMBLA_LLMC_HEADER);
    EMBLA_TRY(embla_map_read(map, 0, 4, header));
    EMBLA_TRY(check_magic(map, header));
    if (map->size < EMBLA_LLMC_HEADER)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the file has %" PRIu64 " bytes, but the header has %d (L1)",
                          map->name, map->size, EMBLA_LLMC_HEADER);
    EMBLA_TRY(embla_map_read(map, 0, sizeof header, header));
    uint32_t version = embla_le32(header + 4);
    if (version != VERSION_F32 && version != VERSION_BF16)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: version %" PRIu32
                          " is not supported; %d (f32) and %d (bf16) are (L1)",
                          map->name, version, VERSION_F32, VERSION_BF16);
    m.element = embla_element_of(version == VERSION_F32 ? EMBLA_F32 : EMBLA_BF16);
    EMBLA_TRY(read_sizes(map, header, &m));
    EMBLA_TRY(check_sizes(map->name, EMBLA_ERR_FORMAT, &m));
    EMBLA_TRY(list_tensors(map, &m, out));
    EMBLA_TRY(add_pairs(&m, out));
    out->tokens = m.tokens;
    return EMBLA_OK;
}

/* ---- writing ---- */

static const embla_part *find_part(const embla_contents *contents, const char *name)
{
    for (size_t i = 0; i < contents->count; i++)
        if (strcmp(contents->parts[i].name, name) == 0) return &contents->parts[i];
    return NULL;
}

/* Finds the sixteen tensors and checks that there are no others. */
static embla_status find_parts(const embla_contents *contents, embla_llmc *m)
{
    for (size_t i = 0; i < EMBLA_LLMC_TENSORS; i++) {
        m->parts[i] = find_part(contents, tensors[i].name);
        if (!m->parts[i])
            return embla_fail(
                EMBLA_ERR_UNSUPPORTED,
                "llm.c: a model needs %d tensors, but none is called '%s' (number of tensors: "
                "%zu)",
                EMBLA_LLMC_TENSORS, tensors[i].name, contents->count);
    }
    if (contents->count != EMBLA_LLMC_TENSORS)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "llm.c: a model has %d tensors; %zu cannot be written",
                          EMBLA_LLMC_TENSORS, contents->count);
    return EMBLA_OK;
}

/* Parses the value of a pair as an integer from 1 to 2^31-1; 0 if there is no such pair. */
static uint32_t pair_number(const embla_contents *contents, const char *key)
{
    for (size_t i = 0; i < contents->pair_count; i++) {
        uint64_t value = 0;
        const char *c = contents->pairs[i].value;
        if (strcmp(contents->pairs[i].key, key) != 0) continue;
        for (; *c >= '0' && *c <= '9' && value <= INT32_MAX; c++)
            value = 10 * value + (uint64_t)(*c - '0');
        return *c == '\0' && value <= INT32_MAX ? (uint32_t)value : 0;
    }
    return 0;
}

static embla_status size_from(const embla_part *part, size_t dimension, uint32_t *out)
{
    uint64_t size = dimension < part->rank ? part->shape[dimension] : 0;
    if (size < 1 || size > INT32_MAX)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "llm.c: dimension %zu of '%s' is %" PRIu64 "; it must be 1 to %" PRId32,
                          dimension, part->name, size, INT32_MAX);
    *out = (uint32_t)size;
    return EMBLA_OK;
}

/* Writes a shape for messages: "2 x 12 x 4". */
static const char *shape_text(const uint64_t *shape, uint32_t rank, char out[SHAPE_TEXT])
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < rank && i < EMBLA_TENSOR_RANK_MAX; i++)
        used += (size_t)snprintf(out + used, SHAPE_TEXT - used, "%s%" PRIu64, i > 0 ? " x " : "",
                                 shape[i]);
    return out;
}

static embla_status check_part(const embla_llmc *m, size_t n)
{
    char has[SHAPE_TEXT], must[SHAPE_TEXT];
    uint64_t shape[4], bytes = 0, count = 1;
    const embla_part *part = m->parts[n];
    uint32_t rank = shape_of(m, n, shape);
    if (part->element != m->element)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "llm.c: '%s' is %s, but 'wte' is %s; all tensors must be F32, or all "
                          "BF16",
                          part->name, part->element->name, m->element->name);
    if (part->rank != rank || memcmp(part->shape, shape, rank * sizeof *shape) != 0)
        return embla_fail(
            EMBLA_ERR_SHAPE, "llm.c: '%s' is %s; with these 'wte', 'wpe' and 'ln1w' it must be %s",
            part->name, shape_text(part->shape, part->rank, has), shape_text(shape, rank, must));
    for (uint32_t i = 0; i < rank; i++)
        if (!embla_mul_ok(count, shape[i], &count))
            return embla_fail(EMBLA_ERR_SHAPE, "llm.c: '%s' (%s) has more than 2^64 numbers",
                              part->name, shape_text(shape, rank, must));
    if (!embla_element_bytes(m->element, count, &bytes) || bytes != part->bytes)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "llm.c: '%s' has %" PRIu64 " bytes, but %" PRIu64
                          " numbers, which need another size",
                          part->name, part->bytes, count);
    return EMBLA_OK;
}

static embla_status find_heads(const embla_contents *contents, embla_llmc *m)
{
    m->heads = pair_number(contents, "num_heads");
    if (m->heads > 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "llm.c: the number of heads is unknown: none of the %zu pairs of metadata is "
                      "'num_heads' with a positive integer",
                      contents->pair_count);
}

/* Finds the number of rows that belong to tokens: from the contents, else from the metadata of an
 * llm.c file, else all rows. */
static embla_status find_tokens(const embla_contents *contents, embla_llmc *m)
{
    uint64_t tokens = contents->tokens;
    if (tokens == 0) tokens = pair_number(contents, "vocab_size");
    if (tokens == 0) tokens = m->rows;
    if (tokens > m->rows)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "llm.c: there are %" PRIu64 " tokens, but 'wte' has only %" PRIu32
                          " rows",
                          tokens, m->rows);
    m->tokens = (uint32_t)tokens;
    return EMBLA_OK;
}

embla_status embla_llmc_plan(const embla_contents *contents, embla_llmc *out)
{
    embla_llmc m = {0};
    EMBLA_TRY(find_parts(contents, &m));
    m.element = m.parts[0]->element;
    if (m.element->dtype != EMBLA_F32 && m.element->dtype != EMBLA_BF16)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "llm.c: 'wte' is %s; only F32 and BF16 can be written", m.element->name);
    EMBLA_TRY(size_from(m.parts[0], 0, &m.rows));
    EMBLA_TRY(size_from(m.parts[0], 1, &m.channels));
    EMBLA_TRY(size_from(m.parts[1], 0, &m.positions));
    EMBLA_TRY(size_from(m.parts[2], 0, &m.layers));
    for (size_t i = 0; i < EMBLA_LLMC_TENSORS; i++) EMBLA_TRY(check_part(&m, i));
    EMBLA_TRY(find_heads(contents, &m));
    EMBLA_TRY(find_tokens(contents, &m));
    EMBLA_TRY(check_sizes("llm.c", EMBLA_ERR_UNSUPPORTED, &m));
    *out = m;
    return EMBLA_OK;
}

void embla_llmc_header(const embla_llmc *model, uint8_t out[EMBLA_LLMC_HEADER])
{
    const uint32_t fields[FIELDS] = {
        MAGIC,
        model->element->dtype == EMBLA_F32 ? VERSION_F32 : VERSION_BF16,
        model->positions,
        model->tokens,
        model->layers,
        model->heads,
        model->channels,
        model->rows,
    };
    memset(out, 0, EMBLA_LLMC_HEADER);
    for (size_t i = 0; i < FIELDS; i++) embla_put_le32(fields[i], out + 4 * i);
}

static embla_status write_file(embla_durable *out, const embla_contents *contents)
{
    embla_llmc m;
    uint64_t size = EMBLA_LLMC_HEADER;
    uint8_t header[EMBLA_LLMC_HEADER];
    EMBLA_TRY(embla_llmc_plan(contents, &m));
    for (size_t i = 0; i < EMBLA_LLMC_TENSORS; i++)
        if (!embla_add_ok(size, m.parts[i]->bytes, &size))
            return embla_fail(EMBLA_ERR_SHAPE, "llm.c: '%s' ends beyond 2^64 bytes",
                              m.parts[i]->name);
    EMBLA_TRY(embla_durable_reserve(out, size));
    embla_llmc_header(&m, header);
    EMBLA_TRY(embla_durable_write(out, header, sizeof header));
    for (size_t i = 0; i < EMBLA_LLMC_TENSORS; i++) EMBLA_TRY(embla_part_write(out, m.parts[i]));
    return EMBLA_OK;
}

/* The numbers of the header, as the reader lists them. */
static bool keeps(const embla_pair *pair, size_t count, size_t bytes)
{
    static const char *const keys[] = {"max_seq_len", "vocab_size", "num_layers",
                                       "num_heads",   "channels",   "padded_vocab_size"};
    (void)count;
    (void)bytes;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(pair->key, keys[i]) == 0) return true;
    return false;
}

const embla_format embla_format_llmc = {.name = "llm.c",
                                        .tied = true,
                                        .sniff = sniff,
                                        .read = read_file,
                                        .write = write_file,
                                        .keeps = keeps};
