/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a .npy file. Promises:
 *   - a refused file gives an error message, and nothing is kept;
 *   - an array that is used as stored lies inside the file;
 *   - converted rows are those of a simple loop over the file's numbers;
 *   - an accepted array, written again with our own header, reads back equal;
 *   - lenient accepts everything that strict accepts, and reads it the same.
 * The mutator writes dictionaries: random bytes seldom pass the magic number and the length, and
 * never change a shape together with the number of data bytes.
 */
#include "base/mem.h"
#include "formats/format.h"
#include "formats/npy.h"
#include "input.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

static embla_map *open_bytes(const void *bytes, size_t size)
{
    embla_map *map = NULL;
    if (embla_map_bytes(bytes, size, "fuzz.npy", &map) != EMBLA_OK) exit(1);
    return map;
}

/* The offset of number i, in C order, in the file's data. */
static uint64_t place(const embla_entry *e, bool fortran, uint64_t i)
{
    if (!fortran || e->rank != 2) return i;
    return i % e->shape[1] * e->shape[0] + i / e->shape[1];
}

/* Compares the converted rows with a loop. There are two reasons for a conversion; here they are
 * found by searching the header for words, without its grammar. */
static uint8_t *make_all(const embla_directory *d, const embla_map *map)
{
    const embla_entry *e = d->entries;
    uint64_t rows = e->rank > 1 ? e->shape[0] : 1, size = e->element->block_bits / 8;
    bool fortran = memmem(map->bytes, e->offset, "True", 4) != NULL;
    bool swapped = size > 1 && (memmem(map->bytes, e->offset, "'>", 2) != NULL ||
                                memmem(map->bytes, e->offset, "\">", 2) != NULL);
    uint8_t *out = (uint8_t *)block((size_t)e->bytes);
    PROMISE(d->make(d, map, e, rows + 1, 0, out) == EMBLA_ERR_RANGE);
    PROMISE(d->make(d, map, e, rows, 1, out) == EMBLA_ERR_RANGE);
    embla_status status = d->make(d, map, e, 0, rows, out);
    if (status != EMBLA_OK) {
        PROMISE(fortran && e->rank > 2);
        free(out);
        return NULL;
    }
    for (uint64_t i = 0; i < e->bytes / size; i++)
        for (uint64_t b = 0; b < size; b++)
            PROMISE(
                out[i * size + b] ==
                map->bytes[e->offset + place(e, fortran, i) * size + (swapped ? size - 1 - b : b)]);
    if (rows > 1 && e->bytes > 0) { /* and one row alone */
        uint64_t row = e->bytes / rows;
        uint8_t *one = (uint8_t *)block((size_t)row);
        PROMISE(d->make(d, map, e, rows - 1, 1, one) == EMBLA_OK);
        PROMISE(memcmp(one, out + (rows - 1) * row, (size_t)row) == 0);
        free(one);
    }
    return out;
}

static void write_again(const embla_entry *e, const uint8_t *numbers)
{
    char head[EMBLA_NPY_HEADER_MOST];
    embla_directory again = {0};
    if (!e->element->npy) return;
    size_t length = embla_npy_header(e->element, e->rank, e->shape, head);
    size_t size = length + (size_t)e->bytes;
    char *bytes = block(size);
    memcpy(bytes, head, length);
    if (e->bytes > 0) memcpy(bytes + length, numbers, (size_t)e->bytes);
    embla_map *map = open_bytes(bytes, size);
    PROMISE(embla_format_npy.read(map, NULL, &again) == EMBLA_OK);
    const embla_entry *a = again.entries;
    PROMISE(a->element == e->element && a->rank == e->rank && a->bytes == e->bytes);
    PROMISE(memcmp(a->shape, e->shape, sizeof a->shape) == 0);
    PROMISE(!a->made && a->offset == length && again.note_count == 0);
    embla_directory_free(&again);
    embla_map_free(map);
    free(bytes);
}

static void check(const embla_map *map, const embla_directory *d)
{
    const embla_entry *e = d->entries;
    PROMISE(d->count == 1 && e->rank <= EMBLA_TENSOR_RANK_MAX && e->element);
    PROMISE(e->offset <= map->size && e->bytes <= map->size - e->offset);
    uint8_t *made = e->made ? make_all(d, map) : NULL;
    if (!e->made || made) write_again(e, made ? made : map->bytes + e->offset);
    free(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t live = embla_mem_live();
    embla_map *map = open_bytes(data, size);
    const embla_open_options lenient = {.lenient = true, .as = EMBLA_BF16};
    embla_directory strict = {0}, loose = {0};
    bool yes = embla_format_npy.read(map, NULL, &strict) == EMBLA_OK;
    if (yes)
        check(map, &strict);
    else
        PROMISE(strncmp(embla_error(), "fuzz.npy: ", 10) == 0);
    if (embla_format_npy.read(map, &lenient, &loose) == EMBLA_OK) {
        check(map, &loose);
        if (yes) PROMISE(memcmp(strict.entries->shape, loose.entries->shape, 64) == 0);
    } else {
        PROMISE(!yes);
    }
    embla_directory_free(&strict);
    embla_directory_free(&loose);
    embla_map_free(map);
    PROMISE(embla_mem_live() == live);
    return 0;
}

/* ---- the mutator ---- */

#define ANY(state, list) (list)[random_below(state, sizeof(list) / sizeof *(list))]

/* Writes a shape, and its number of elements if that is small. */
static size_t put_shape(uint64_t *s, char *out, size_t room, size_t *numbers)
{
    static const char *const odd[] = {"(,)",
                                      "(6)",
                                      "(-1, 2)",
                                      "(2L, 3L)",
                                      "[2, 3]",
                                      "(2,3",
                                      "(2 3)",
                                      "(4294967296, 4294967296)",
                                      "(9999999999999999999,)",
                                      "(1, 1, 1, 1, 1, 1, 1, 1, 1)"};
    size_t rank = random_below(s, 4), used = 1;
    *numbers = 1;
    if (random_below(s, 8) == 0) return (size_t)snprintf(out, room, "%s", ANY(s, odd));
    out[0] = '(';
    for (size_t i = 0; i < rank; i++) {
        size_t dim = random_below(s, random_below(s, 8) == 0 ? 100 : 7);
        *numbers *= dim;
        used += (size_t)snprintf(out + used, room - used, "%zu%s", dim,
                                 i + 1 < rank || rank == 1 ? ", " : "");
    }
    return used + (size_t)snprintf(out + used, room - used, ")");
}

/* Writes a dictionary with the usual three keys, sometimes in another order or with odd values. */
static size_t put_dictionary(uint64_t *s, char *out, size_t room, size_t *bytes)
{
    static const char *const types[] = {"<f4", "<f2", "<f8", ">f4", ">f2", ">f8", "|i1",
                                        "|u1", "<i4", ">u8", "=f4", "<V2", "|O",  "<U3",
                                        "<c8", "<f3", "",    ">",   "[("};
    static const char *const orders[] = {"False", "True", "False", "True", "0", "true"};
    static const size_t sizes[] = {1, 2, 4, 8};
    char shape[128], pairs[3][192];
    size_t numbers, first = random_below(s, 3), second = (first + 1 + random_below(s, 2)) % 3;
    const char *type = ANY(s, types), *quote = random_below(s, 8) == 0 ? "\"" : "'";
    (void)put_shape(s, shape, sizeof shape, &numbers);
    (void)snprintf(pairs[0], sizeof pairs[0], "%sdescr%s: %s%s%s", quote, quote,
                   type[0] == '[' ? "" : quote, type, type[0] == '[' ? "" : quote);
    (void)snprintf(pairs[1], sizeof pairs[1], "'fortran_order': %s", ANY(s, orders));
    (void)snprintf(pairs[2], sizeof pairs[2], "'shape':%s%s", random_below(s, 4) == 0 ? "" : " ",
                   shape);
    size_t last = random_below(s, 16) == 0 ? first : 3 - first - second;
    *bytes =
        numbers * (type[0] && type[1] && type[2] >= '1' && type[2] <= '8' ? (size_t)(type[2] - '0')
                                                                          : ANY(s, sizes));
    return (size_t)snprintf(out, room, "{%s, %s, %s%s}%*s", pairs[first], pairs[second],
                            pairs[last], random_below(s, 2) == 0 ? ", " : "",
                            (int)(1 + random_below(s, 20)), "\n");
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    uint64_t s = seed;
    char text[640];
    size_t data_bytes = 0, prefix, length, have;
    if (random_below(&s, 3) == 0 || most < 1024) return LLVMFuzzerMutate(data, size, most);
    uint8_t major =
        (uint8_t)(random_below(&s, 16) == 0 ? random_below(&s, 256) : 1 + random_below(&s, 3));
    prefix = major == 1 ? 10 : 12;
    if (random_below(&s, 3) == 0 && size > prefix) { /* the dictionary there is, changed a little */
        length = size - prefix < sizeof text ? size - prefix : sizeof text;
        memcpy(text, data + prefix, length);
        char *newline = memchr(text, '\n', length);
        length = newline ? (size_t)(newline - text) + 1 : length;
        data_bytes = size - prefix - length;
        length = LLVMFuzzerMutate((uint8_t *)text, length, sizeof text);
    } else {
        length = put_dictionary(&s, text, sizeof text, &data_bytes);
        if (random_below(&s, 8) == 0) data_bytes += random_below(&s, 8);
    }
    have = size > prefix + length ? size - prefix - length : 0;
    if (data_bytes > most - prefix - length) data_bytes = most - prefix - length;
    if (data_bytes > have) {
        size_t from = prefix + length + have;
        for (size_t i = have; i < data_bytes; i++, from++) data[from] = (uint8_t)next_random(&s);
    }
    memcpy(data, "\x93NUMPY", 6);
    data[6] = major;
    data[7] = 0;
    for (size_t i = 8; i < prefix; i++) data[i] = (uint8_t)(length >> (8 * (i - 8)));
    memcpy(data + prefix, text, length);
    return prefix + length + data_bytes;
}
