/* SPDX-License-Identifier: Apache-2.0 */
/* fastText's .bin and .ftz (rules F1 to F6): arguments, dictionary, then two matrices.
 *
 * The file does not contain the sizes of its parts, so it is scanned once, front to back, and every
 * count is compared with the bytes left before it is used. (fastText's own reader loops forever on
 * a file that is truncated inside a word.) The rows of the input matrix are the words, then the
 * buckets that n-grams share. fastText prints the mean of a word's row and of its n-grams' rows;
 * here the table has the rows as stored. A product-quantized matrix has no rows of floats: it is
 * checked and mentioned in a note.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "files/cursor.h"
#include "formats/format.h"

enum { MAGIC = 793712314, OLDEST = 11, NEWEST = 12 };
enum { DIM_MOST = 65536, GRAM_MOST = 64, WORD_MOST = 4096 };
enum { CENTROIDS = 256 }; /* ksub: codes are bytes */

/* The twelve integers of the arguments, in the order of the file. */
enum {
    DIM,
    WINDOW,
    EPOCH,
    MIN_COUNT,
    NEGATIVE,
    WORD_NGRAMS,
    LOSS,
    MODEL,
    BUCKET,
    MIN_GRAM,
    MAX_GRAM,
    RATE,
    ARGUMENTS
};

/* As `fasttext dump FILE args` prints them; numbered from 1. */
static const char *const losses[] = {"hs", "ns", "softmax", "one-vs-all"};
static const char *const models[] = {"cbow", "sg", "sup"};
enum { LOSSES = 4, MODELS = 3, SUPERVISED = 3 };

typedef struct {
    embla_cursor cursor;
    const embla_map *map;
    embla_directory *out;
    int32_t arguments[ARGUMENTS];
    int32_t words, labels;
    int64_t pruned; /* number of n-grams that were kept; -1 means all */
    embla_name *names;
    int64_t *counts; /* how often each word occurs */
} reader;

/* ---- F1, F2: prefix and arguments ---- */

static embla_status read_prefix(reader *r)
{
    int32_t magic, version;
    EMBLA_TRY(embla_cursor_i32(&r->cursor, "the magic number", &magic));
    if (magic != MAGIC)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the magic number is %" PRId32 ", but fastText's is %d (F1)",
                          r->map->name, magic, MAGIC);
    EMBLA_TRY(embla_cursor_i32(&r->cursor, "the version", &version));
    if (version < OLDEST || version > NEWEST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: version %" PRId32 " is not supported; %d and %d are (F1)",
                          r->map->name, version, OLDEST, NEWEST);
    return EMBLA_OK;
}

static embla_status check_argument(const reader *r, const char *what, int32_t value, int32_t least,
                                   int32_t most)
{
    if (value >= least && value <= most) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: %s is %" PRId32 "; it must be %" PRId32 " to %" PRId32 " (F2)",
                      r->map->name, what, value, least, most);
}

static embla_status check_arguments(const reader *r)
{
    const int32_t *a = r->arguments;
    EMBLA_TRY(check_argument(r, "dim", a[DIM], 1, DIM_MOST));
    EMBLA_TRY(check_argument(r, "loss", a[LOSS], 1, LOSSES));
    EMBLA_TRY(check_argument(r, "model", a[MODEL], 1, MODELS));
    EMBLA_TRY(check_argument(r, "bucket", a[BUCKET], 0, INT32_MAX));
    EMBLA_TRY(check_argument(r, "minn", a[MIN_GRAM], 0, GRAM_MOST));
    EMBLA_TRY(check_argument(r, "maxn", a[MAX_GRAM], 0, GRAM_MOST));
    /* `fasttext -maxn 0` writes minn 3 and maxn 0: a model without n-grams. */
    if (a[MAX_GRAM] > 0 && a[MIN_GRAM] > a[MAX_GRAM])
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the shortest n-gram has %" PRId32
                          " characters, more than the longest with %" PRId32 " (F2)",
                          r->map->name, a[MIN_GRAM], a[MAX_GRAM]);
    return EMBLA_OK;
}

static embla_status read_arguments(reader *r)
{
    uint64_t bits;
    double sampling;
    for (size_t i = 0; i < ARGUMENTS; i++)
        EMBLA_TRY(embla_cursor_i32(&r->cursor, "an argument", &r->arguments[i]));
    EMBLA_TRY(embla_cursor_u64(&r->cursor, "the sampling threshold", &bits));
    memcpy(&sampling, &bits, sizeof sampling);
    if (!isfinite(sampling))
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: t is %f; it must be a finite number (F2)",
                          r->map->name, sampling);
    return check_arguments(r);
}

/* ---- F3: dictionary ---- */

/* Reads word n of the dictionary: the bytes before its 0. */
static embla_status read_word(reader *r, int32_t n, const char **word, uint32_t *length)
{
    const uint8_t *bytes;
    uint64_t have;
    EMBLA_TRY(embla_cursor_peek(&r->cursor, WORD_MOST + 1, &bytes, &have));
    const uint8_t *end = have > 0 ? memchr(bytes, 0, (size_t)have) : NULL;
    if (!end && have <= WORD_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the file ends inside word %" PRId32 ", at byte %" PRIu64 " (F3)",
                          r->map->name, n, r->map->size);
    if (!end)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: word %" PRId32 " is longer than %d bytes (F3)",
                          r->map->name, n, WORD_MOST);
    *length = (uint32_t)(end - bytes);
    if (n < r->words) EMBLA_TRY(embla_arena_text(&r->out->arena, bytes, *length, word));
    return embla_cursor_skip(&r->cursor, (uint64_t)*length + 1, "a word");
}

/* Reads entry n of the dictionary. fastText writes words before labels, and entry i is row i, so
 * the file must have this order. */
static embla_status read_entry(reader *r, int32_t n)
{
    embla_name name = {.number = (uint32_t)n};
    int64_t count;
    uint8_t type, wanted = n < r->words ? 0 : 1;
    EMBLA_TRY(read_word(r, n, &name.bytes, &name.length));
    EMBLA_TRY(embla_cursor_i64(&r->cursor, "the count of a word", &count));
    EMBLA_TRY(embla_cursor_u8(&r->cursor, "the type of a word", &type));
    if (count < 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the count of word %" PRId32 " is %" PRId64
                          "; it must not be negative (F3)",
                          r->map->name, n, count);
    if (type > 1)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: word %" PRId32 " has the type %u; it must be 0 or 1 (F3)",
                          r->map->name, n, (unsigned)type);
    if (type != wanted)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: entry %" PRId32 " is a %s, but the %" PRId32
                          " words come first, then the labels (F3)",
                          r->map->name, n, type == 0 ? "word" : "label", r->words);
    if (n < r->words) {
        r->names[n] = name;
        r->counts[n] = count;
    }
    return EMBLA_OK;
}

static embla_status read_counts(reader *r, int32_t *size)
{
    int64_t tokens;
    EMBLA_TRY(embla_cursor_i32(&r->cursor, "the size of the dictionary", size));
    EMBLA_TRY(embla_cursor_i32(&r->cursor, "the number of words", &r->words));
    EMBLA_TRY(embla_cursor_i32(&r->cursor, "the number of labels", &r->labels));
    EMBLA_TRY(embla_cursor_i64(&r->cursor, "the number of tokens", &tokens));
    EMBLA_TRY(embla_cursor_i64(&r->cursor, "the number of n-grams kept", &r->pruned));
    if (r->words < 0 || r->labels < 0 || tokens < 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: %" PRId32 " words, %" PRId32 " labels, %" PRId64
                          " tokens: none may be negative (F3)",
                          r->map->name, r->words, r->labels, tokens);
    if ((int64_t)*size != (int64_t)r->words + r->labels)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the dictionary has %" PRId32 " entries, but %" PRId32
                          " words and %" PRId32 " labels (F3)",
                          r->map->name, *size, r->words, r->labels);
    uint64_t left = embla_cursor_left(&r->cursor);
    if ((uint64_t)*size > left / 10) /* each has a 0, eight bytes of count, one of type */
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the dictionary has %" PRId32 " entries, but only %" PRIu64
                          " bytes are left for them (F3)",
                          r->map->name, *size, left);
    return EMBLA_OK;
}

/* Reads the new bucket of each n-gram that was kept. */
static embla_status read_pruning(reader *r)
{
    uint64_t left = embla_cursor_left(&r->cursor);
    if (r->pruned < -1 || (r->pruned > 0 && (uint64_t)r->pruned > left / 8))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: %" PRId64 " n-grams were kept, but only %" PRIu64
                          " bytes are left for them (F3)",
                          r->map->name, r->pruned, left);
    for (int64_t i = 0; i < r->pruned; i++) {
        int32_t from, to;
        EMBLA_TRY(embla_cursor_i32(&r->cursor, "an n-gram", &from));
        EMBLA_TRY(embla_cursor_i32(&r->cursor, "an n-gram", &to));
        if (from < 0 || from >= r->arguments[BUCKET] || to < 0 || to >= r->pruned)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.256s: n-gram %" PRId32 " of %" PRId32 " moves to bucket %" PRId32
                              " of %" PRId64 ", which is out of range (F3)",
                              r->map->name, from, r->arguments[BUCKET], to, r->pruned);
    }
    return EMBLA_OK;
}

static embla_status read_dictionary(reader *r)
{
    int32_t size;
    EMBLA_TRY(read_counts(r, &size));
    EMBLA_TRY(embla_arena_many(&r->out->arena, (uint64_t)r->words, sizeof *r->names,
                               "words of rows", &r->names));
    EMBLA_TRY(embla_arena_many(&r->out->arena, (uint64_t)r->words, sizeof *r->counts,
                               "counts of words", &r->counts));
    for (int32_t i = 0; i < size; i++) EMBLA_TRY(read_entry(r, i));
    return read_pruning(r);
}

/* ---- F4, F5: matrices ---- */

/* Reads and checks the shape, with which both kinds of matrix begin. */
static embla_status read_shape(reader *r, const char *name, int64_t rows, const char *rule)
{
    int64_t m, n;
    EMBLA_TRY(embla_cursor_i64(&r->cursor, "the rows of a matrix", &m));
    EMBLA_TRY(embla_cursor_i64(&r->cursor, "the dim of a matrix", &n));
    if (m < 1 || n < 1 || n != r->arguments[DIM] || m != rows)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: %s is %" PRId64 " x %" PRId64 "; it must be %" PRId64
                          " x %" PRId32 " (%s)",
                          r->map->name, name, m, n, rows, r->arguments[DIM], rule);
    return EMBLA_OK;
}

static embla_status read_dense(reader *r, const char *name, int64_t rows)
{
    embla_entry *entry;
    EMBLA_TRY(read_shape(r, name, rows, "F4"));
    EMBLA_TRY(embla_directory_add(r->out, name, strlen(name), &entry));
    entry->element = embla_element_of(EMBLA_F32);
    entry->rank = 2;
    entry->shape[0] = (uint64_t)rows;
    entry->shape[1] = (uint64_t)r->arguments[DIM];
    entry->offset = r->cursor.at;
    EMBLA_TRY(embla_entry_size(r->map, entry, "F4"));
    uint64_t left = embla_cursor_left(&r->cursor);
    if (entry->bytes > left)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: %s needs %" PRIu64 " bytes, but only %" PRIu64 " are left (F4)",
                          r->map->name, name, entry->bytes, left);
    return embla_cursor_skip(&r->cursor, entry->bytes, name);
}

/* Reads a product quantizer. A row of dim numbers is cut into *parts pieces of `width` numbers, the
 * last possibly shorter; each piece is one of 256 centroids. The centroids follow: dim x 256
 * floats. */
static embla_status read_quantizer(reader *r, const char *name, int32_t dim, int32_t *parts)
{
    int32_t have, width, last;
    EMBLA_TRY(embla_cursor_i32(&r->cursor, "the dim of a quantizer", &have));
    EMBLA_TRY(embla_cursor_i32(&r->cursor, "the pieces of a quantizer", parts));
    EMBLA_TRY(embla_cursor_i32(&r->cursor, "the width of a piece", &width));
    EMBLA_TRY(embla_cursor_i32(&r->cursor, "the width of the last piece", &last));
    /* A width above dim is valid and gives one piece. Numbers are multiplied only after they are
     * known to be small. */
    bool fits = have == dim && width >= 1 && *parts >= 1 && *parts <= dim;
    if (!fits || *parts != ((int64_t)dim + width - 1) / width ||
        last != dim - (int64_t)(*parts - 1) * width)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: %s: the quantizer has %" PRId32 " numbers in %" PRId32
                          " pieces of %" PRId32 ", the last of %" PRId32 ", but rows have %" PRId32
                          " numbers (F5)",
                          r->map->name, name, have, *parts, width, last, dim);
    uint64_t left = embla_cursor_left(&r->cursor), bytes = (uint64_t)dim * CENTROIDS * 4;
    if (bytes > left)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: %s: the quantizer needs %" PRIu64 " bytes, but only %" PRIu64
                          " are left (F5)",
                          r->map->name, name, bytes, left);
    return embla_cursor_skip(&r->cursor, bytes, "a quantizer");
}

static embla_status read_flag(reader *r, const char *what, bool *out)
{
    uint8_t value;
    EMBLA_TRY(embla_cursor_u8(&r->cursor, what, &value));
    if (value > 1)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: %s is %u; it must be 0 or 1 (F5)",
                          r->map->name, what, (unsigned)value);
    *out = value == 1;
    return EMBLA_OK;
}

/* Reads the norms of the rows: one byte for each, then a quantizer of one number. */
static embla_status read_norms(reader *r, const char *name, int64_t rows)
{
    int32_t parts;
    uint64_t left = embla_cursor_left(&r->cursor);
    if ((uint64_t)rows > left)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: %s: the norms of %" PRId64 " rows follow, but only %" PRIu64
                          " bytes are left (F5)",
                          r->map->name, name, rows, left);
    EMBLA_TRY(embla_cursor_skip(&r->cursor, (uint64_t)rows, "norms"));
    return read_quantizer(r, name, 1, &parts);
}

static embla_status read_quantized(reader *r, const char *name, int64_t rows)
{
    uint64_t begin = r->cursor.at, left, wanted;
    bool norms;
    int32_t codes, parts;
    EMBLA_TRY(read_flag(r, "the flag for norms", &norms));
    EMBLA_TRY(read_shape(r, name, rows, "F5"));
    EMBLA_TRY(embla_cursor_i32(&r->cursor, "the number of codes", &codes));
    left = embla_cursor_left(&r->cursor);
    if (codes < 0 || (uint64_t)codes > left)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: %s has %" PRId32 " codes, but only %" PRIu64
                          " bytes are left (F5)",
                          r->map->name, name, codes, left);
    EMBLA_TRY(embla_cursor_skip(&r->cursor, (uint64_t)codes, "codes"));
    EMBLA_TRY(read_quantizer(r, name, r->arguments[DIM], &parts));
    if (!embla_mul_ok((uint64_t)rows, (uint64_t)parts, &wanted) || (uint64_t)codes != wanted)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: %s has %" PRId32 " codes, but %" PRId64 " rows of %" PRId32
                          " pieces (F5)",
                          r->map->name, name, codes, rows, parts);
    if (norms) EMBLA_TRY(read_norms(r, name, rows));
    return embla_directory_note(
        r->out, "%s is product-quantized (%" PRIu64 " bytes) and cannot be read as a table", name,
        r->cursor.at - begin);
}

static embla_status read_matrices(reader *r)
{
    bool quantized, output_quantized;
    int64_t kept = r->pruned >= 0 ? r->pruned : r->arguments[BUCKET];
    int64_t outputs = r->arguments[MODEL] == SUPERVISED ? r->labels : r->words;
    EMBLA_TRY(read_flag(r, "the flag for a quantized input", &quantized));
    if (!quantized && r->pruned >= 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: %" PRId64 " n-grams were kept (pruning), but only quantized "
                          "models are pruned, and input is not quantized (F5)",
                          r->map->name, r->pruned);
    EMBLA_TRY(quantized ? read_quantized(r, "input", r->words + kept)
                        : read_dense(r, "input", r->words + kept));
    EMBLA_TRY(read_flag(r, "the flag for a quantized output", &output_quantized));
    /* fastText uses the second flag only if the first is set. */
    EMBLA_TRY(quantized && output_quantized ? read_quantized(r, "output", outputs)
                                            : read_dense(r, "output", outputs));
    if (embla_cursor_left(&r->cursor) > 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the model ends at byte %" PRIu64 ", but the file at %" PRIu64
                          " (F6)",
                          r->map->name, r->cursor.at, r->map->size);
    if (quantized) return EMBLA_OK; /* there are no rows to look up */
    r->out->labels = r->names;
    r->out->label_counts = r->counts;
    r->out->label_count = (size_t)r->words;
    r->out->tokens = (uint64_t)r->words;
    if (r->arguments[BUCKET] == 0 || r->arguments[MAX_GRAM] == 0) return EMBLA_OK;
    return embla_directory_note(r->out, "rows are as stored; fastText's vector of a word is the "
                                        "mean of its row and the rows of its n-grams");
}

/* ---- the whole ---- */

static embla_status add_number(embla_directory *out, const char *key, int32_t value)
{
    char text[16];
    int length = snprintf(text, sizeof text, "%" PRId32, value);
    return embla_directory_pair(out, key, strlen(key), text, (size_t)length);
}

static embla_status add_pairs(const reader *r)
{
    const int32_t *a = r->arguments;
    const char *model = models[a[MODEL] - 1], *loss = losses[a[LOSS] - 1];
    EMBLA_TRY(add_number(r->out, "dim", a[DIM]));
    EMBLA_TRY(add_number(r->out, "minn", a[MIN_GRAM]));
    EMBLA_TRY(add_number(r->out, "maxn", a[MAX_GRAM]));
    EMBLA_TRY(add_number(r->out, "bucket", a[BUCKET]));
    EMBLA_TRY(embla_directory_pair(r->out, "model", 5, model, strlen(model)));
    return embla_directory_pair(r->out, "loss", 4, loss, strlen(loss));
}

static embla_status read_all(reader *r)
{
    EMBLA_TRY(read_prefix(r));
    EMBLA_TRY(read_arguments(r));
    EMBLA_TRY(read_dictionary(r));
    EMBLA_TRY(read_matrices(r));
    return add_pairs(r);
}

static bool sniff(const uint8_t *head, size_t have, uint64_t size)
{
    (void)size;
    return have >= 4 && embla_le32(head) == MAGIC;
}

static embla_status read_file(embla_map *map, const embla_open_options *options,
                              embla_directory *out)
{
    (void)options; /* the option lenient allows nothing here */
    reader r = {.map = map, .out = out};
    out->format = "fasttext";
    embla_cursor_begin(&r.cursor, map, 0);
    embla_status status = read_all(&r);
    embla_cursor_end(&r.cursor);
    return status;
}

const embla_format embla_format_fasttext = {
    .name = "fasttext", .no_model = true, .sniff = sniff, .read = read_file};
