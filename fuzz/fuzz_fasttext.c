/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a fastText model, strictly and leniently. Promises:
 *   - input and output lie inside the file, and output ends it;
 *   - the words are those of the dictionary, byte for byte, one for each row they name;
 *   - what is accepted strictly is accepted leniently, with the same tensors.
 * The mutator changes a few bytes or numbers, then walks the file and repairs what is inconsistent:
 * sizes, types of words, shapes, lengths. Now and then it leaves one of these unrepaired.
 */
#include "models.h"

/* Offsets of what comes before the words. */
enum { MAGIC = 0, VERSION = 4, ARGUMENTS = 8, T = 56, SIZE = 64, WORDS = 68, LABELS = 72 };
enum { TOKENS = 76, PRUNED = 84, ENTRIES = 92 };
enum { DIM = 8, LOSS = 32, MODEL = 36, BUCKET = 40, MINN = 44, MAXN = 48 };

static void check_words(const embla_directory *d, const uint8_t *data, size_t size)
{
    size_t at = ENTRIES;
    PROMISE(d->label_count == 0 || d->label_count == embla_le32(data + WORDS));
    PROMISE(d->tokens == d->label_count);
    PROMISE(d->label_count == 0 || d->label_count <= d->entries[0].shape[0]);
    for (size_t i = 0; i < d->label_count; i++) {
        const embla_name *word = &d->labels[i];
        PROMISE(word->number == i && word->length <= 4096 && word->length < size - at);
        PROMISE(memcmp(word->bytes, data + at, (size_t)word->length + 1) == 0);
        at += (size_t)word->length + 10;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    embla_open_options plain = {0}, lenient = {.lenient = true};
    embla_directory strict, loose;
    embla_status status =
        read_model(&embla_format_fasttext, data, size, size % 2 == 0 ? &plain : NULL, &strict);
    embla_status again = read_model(&embla_format_fasttext, data, size, &lenient, &loose);
    PROMISE(status != EMBLA_OK || again == EMBLA_OK);
    if (again == EMBLA_OK) {
        check_words(&loose, data, size);
        PROMISE(loose.count + loose.note_count >= 2); /* a tensor or a note for each matrix */
        if (loose.count > 0 && strcmp(loose.entries[loose.count - 1].name, "output") == 0)
            PROMISE(loose.entries[loose.count - 1].offset + loose.entries[loose.count - 1].bytes ==
                    size);
    }
    if (status == EMBLA_OK) {
        PROMISE(strict.count == loose.count && strict.label_count == loose.label_count);
        for (size_t i = 0; i < strict.count; i++)
            PROMISE(strict.entries[i].offset == loose.entries[i].offset);
        embla_directory_free(&strict);
    }
    if (again == EMBLA_OK) embla_directory_free(&loose);
    return 0;
}

/* ---- the mutator ---- */

typedef struct {
    uint8_t *data;
    size_t size, most, at;
    unsigned seed;
} draft;

/* Makes the next bytes part of the file; NULL if there is no room for them. */
static uint8_t *next(draft *d, uint64_t bytes)
{
    if (bytes > d->most - d->at) return NULL;
    if (d->size - d->at < bytes) d->size = resize(d->data, d->size, d->at + (size_t)bytes);
    d->at += (size_t)bytes;
    return d->data + d->at - bytes;
}

/* True most of the time. */
static bool mend(draft *d)
{
    return choose(&d->seed, 40) > 0;
}

static bool number32(draft *d, uint32_t value)
{
    uint8_t *p = next(d, 4);
    if (p && mend(d)) embla_put_le32(value, p);
    return p;
}

static bool number64(draft *d, uint64_t value)
{
    uint8_t *p = next(d, 8);
    if (p && mend(d)) embla_put_le64(value, p);
    return p;
}

/* A flag that may be either. */
static bool flag(draft *d, bool *out)
{
    uint8_t *p = next(d, 1);
    if (p && mend(d)) *p &= 1;
    *out = p && *p == 1;
    return p;
}

static void limit(draft *d, size_t offset, uint32_t least, uint32_t most)
{
    uint32_t value = embla_le32(d->data + offset);
    if ((value < least || value > most) && mend(d))
        embla_put_le32(least + value % (most - least + 1), d->data + offset);
}

static bool mend_front(draft *d)
{
    if (!next(d, ENTRIES)) return false;
    if (mend(d)) embla_put_le32(793712314, d->data + MAGIC);
    limit(d, VERSION, 11, 12);
    limit(d, DIM, 1, 3);
    limit(d, LOSS, 1, 4);
    limit(d, MODEL, 1, 3);
    limit(d, BUCKET, 0, 5);
    limit(d, MINN, 0, 64);
    limit(d, MAXN, 0, 64);
    if (mend(d)) d->data[T + 7] &= 0x7e;
    limit(d, WORDS, 0, 4);
    limit(d, LABELS, 0, 2);
    if (mend(d)) d->data[TOKENS + 7] &= 0x7f;
    uint32_t size = embla_le32(d->data + WORDS) + embla_le32(d->data + LABELS);
    if (mend(d)) embla_put_le32(size, d->data + SIZE);
    uint64_t pruned = embla_le64(d->data + PRUNED);
    if (pruned + 1 > 3 && mend(d)) embla_put_le64(choose(&d->seed, 2) - 1ULL, d->data + PRUNED);
    return true;
}

static bool mend_words(draft *d)
{
    uint32_t words = embla_le32(d->data + WORDS), size = embla_le32(d->data + SIZE);
    uint64_t pruned = embla_le64(d->data + PRUNED), bucket = embla_le32(d->data + BUCKET);
    for (uint32_t i = 0; i < size && i < 8; i++) {
        uint8_t *end = d->at < d->size ? memchr(d->data + d->at, 0, d->size - d->at) : NULL;
        uint8_t *p = next(d, end ? (uint64_t)(end - (d->data + d->at)) + 10 : 10);
        if (!p) return false;
        p = d->data + d->at;
        if (mend(d)) p[-2] &= 0x7f;
        if (mend(d)) p[-1] = i < words ? 0 : 1;
    }
    for (uint64_t i = 0; pruned != UINT64_MAX && i < pruned && i < 3; i++) {
        uint8_t *p = next(d, 8);
        if (!p) return false;
        if (mend(d)) embla_put_le32((uint32_t)(bucket > 0 ? embla_le32(p) % bucket : 0), p);
        if (mend(d)) embla_put_le32((uint32_t)(embla_le32(p + 4) % pruned), p + 4);
    }
    return true;
}

static bool mend_quantizer(draft *d, uint32_t dim, uint32_t width)
{
    uint32_t parts = (dim + width - 1) / width;
    return number32(d, dim) && number32(d, parts) && number32(d, width) &&
           number32(d, dim - (parts - 1) * width) && next(d, (uint64_t)dim * 1024);
}

static bool mend_matrix(draft *d, uint64_t rows, bool quantized)
{
    bool norms = false;
    uint32_t dim = embla_le32(d->data + DIM) % 4, width = 1 + choose(&d->seed, 3);
    if (dim == 0) dim = 1;
    if (width > dim) width = dim;
    if (rows > 16) return false;
    if (quantized && !flag(d, &norms)) return false;
    if (!number64(d, rows) || !number64(d, dim)) return false;
    if (!quantized) return next(d, rows * dim * 4);
    uint32_t codes = (uint32_t)rows * ((dim + width - 1) / width);
    if (!number32(d, codes) || !next(d, codes) || !mend_quantizer(d, dim, width)) return false;
    return !norms || (next(d, rows) && mend_quantizer(d, 1, 1));
}

/* Repairs the file, until there is no room. */
static void mend_file(draft *d)
{
    bool quantized = false, output_quantized = false;
    if (!mend_front(d) || !mend_words(d)) return;
    uint64_t words = embla_le32(d->data + WORDS), pruned = embla_le64(d->data + PRUNED);
    uint64_t kept = pruned == UINT64_MAX ? embla_le32(d->data + BUCKET) : pruned;
    bool supervised = embla_le32(d->data + MODEL) == 3;
    if (!flag(d, &quantized)) return;
    if (pruned != UINT64_MAX && mend(d)) {
        d->data[d->at - 1] = 1;
        quantized = true;
    }
    if (!mend_matrix(d, words + kept, quantized) || !flag(d, &output_quantized)) return;
    uint64_t outputs = supervised ? embla_le32(d->data + LABELS) : words;
    if (!mend_matrix(d, outputs, quantized && output_quantized)) return;
    if (mend(d)) d->size = d->at;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    draft d = {.data = data, .size = size, .most = most, .seed = seed};
    if (choose(&d.seed, 4) == 0) d.size = LLVMFuzzerMutate(data, size, most);
    if (choose(&d.seed, 8) == 0 || most < ENTRIES) return d.size;
    for (uint32_t i = choose(&d.seed, 3); i > 0 && d.size >= ENTRIES; i--)
        embla_put_le32(choose_number(&d.seed), data + 4 * choose(&d.seed, ENTRIES / 4));
    mend_file(&d);
    return d.size > 0 ? d.size : 1;
}
