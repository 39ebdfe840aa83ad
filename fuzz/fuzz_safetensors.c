/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors reader and writer: the input is the file. In every accepted file each data byte
 * belongs to exactly one tensor, counted here by the definition, and no name occurs twice. Written
 * again, the file reads back equal; written once more, it has the same bytes.
 *
 * Random changes hardly ever pass the length at the front and the offsets that must be consecutive.
 * The mutator below changes the JSON. Then it usually repairs the length and adjusts the data to
 * the end of the last tensor. Now and then it generates a whole valid file.
 */
#include "base/mem.h"
#include "files/cursor.h"
#include "formats/safetensors.h"
#include "input.h"

/* ---- the promises ---- */

static embla_status read_file(const void *bytes, size_t size, bool lenient, embla_directory *out)
{
    embla_map *map = NULL;
    const embla_open_options options = {.lenient = lenient};
    PROMISE(embla_map_bytes(bytes, size, "input", &map) == EMBLA_OK);
    embla_status status =
        embla_format_safetensors.read(map, lenient || size % 2 == 0 ? &options : NULL, out);
    embla_map_free(map);
    return status;
}

/* The number of bits is the product of type and shape: after dividing by all of them, 1 is left. */
static void check_entry(const embla_entry *entry)
{
    uint64_t left = 8 * entry->bytes; /* not above the input's size: cannot wrap */
    bool empty = false;
    PROMISE(entry->element->safetensors && entry->element->block == 1);
    PROMISE(entry->rank <= EMBLA_TENSOR_RANK_MAX && !entry->made);
    for (uint32_t i = 0; i < entry->rank; i++) empty |= entry->shape[i] == 0;
    if (empty) {
        PROMISE(left == 0);
        return;
    }
    PROMISE(left % entry->element->block_bits == 0);
    left /= entry->element->block_bits;
    for (uint32_t i = 0; i < entry->rank; i++) {
        PROMISE(left % entry->shape[i] == 0);
        left /= entry->shape[i];
    }
    PROMISE(left == 1);
}

/* Each data byte is covered once. */
static void check_tiling(const uint8_t *data, size_t size, const embla_directory *d)
{
    size_t begin = 8 + (size_t)embla_le64(data);
    uint8_t *covered = (uint8_t *)block(size);
    memset(covered, 0, size);
    for (size_t i = 0; i < d->count; i++) {
        const embla_entry *entry = &d->entries[i];
        PROMISE(entry->offset >= begin && entry->offset <= size);
        PROMISE(entry->bytes <= size - entry->offset);
        for (size_t j = 0; j < entry->bytes; j++) covered[entry->offset + j]++;
        check_entry(entry);
        for (size_t j = 0; j < i; j++) PROMISE(strcmp(entry->name, d->entries[j].name) != 0);
    }
    for (size_t i = begin; i < size; i++) PROMISE(covered[i] == 1);
    free(covered);
}

typedef struct {
    uint8_t *bytes;
    size_t size;
} image;

/* The file that the writer makes of a directory, with its numbers from data. */
static image write_again(const uint8_t *data, const embla_directory *d)
{
    embla_arena arena = {0};
    embla_part *parts = (embla_part *)(void *)block(d->count * sizeof(embla_part));
    uint8_t *header = NULL;
    uint32_t *order = NULL;
    size_t length = 0;
    for (size_t i = 0; i < d->count; i++) {
        const embla_entry *e = &d->entries[i];
        parts[i] = (embla_part){
            .name = e->name, .element = e->element, .rank = e->rank, .bytes = e->bytes};
        memcpy(parts[i].shape, e->shape, sizeof e->shape);
    }
    const embla_contents contents = {
        .parts = parts, .count = d->count, .pairs = d->pairs, .pair_count = d->pair_count};
    PROMISE(embla_safetensors_header(&contents, &arena, &header, &length, &order) == EMBLA_OK);
    PROMISE(length % 64 == 0);
    image out = {.size = length};
    for (size_t i = 0; i < d->count; i++) out.size += parts[i].bytes;
    out.bytes = (uint8_t *)block(out.size);
    memcpy(out.bytes, header, length);
    for (size_t i = 0; i < d->count; i++) {
        const embla_entry *e = &d->entries[order[i]];
        memcpy(out.bytes + length, data + e->offset, e->bytes);
        length += e->bytes;
    }
    free(parts);
    embla_arena_free(&arena);
    return out;
}

static void check_same(const uint8_t *data, const embla_directory *d, const uint8_t *data2,
                       const embla_directory *d2)
{
    PROMISE(d->count == d2->count && d->pair_count == d2->pair_count);
    for (size_t i = 0; i < d->pair_count; i++) {
        PROMISE(strcmp(d->pairs[i].key, d2->pairs[i].key) == 0);
        PROMISE(strcmp(d->pairs[i].value, d2->pairs[i].value) == 0);
    }
    for (size_t i = 0; i < d->count; i++) {
        const embla_entry *e = &d->entries[i], *e2 = NULL;
        for (size_t j = 0; j < d2->count && !e2; j++)
            if (strcmp(d2->entries[j].name, e->name) == 0) e2 = &d2->entries[j];
        PROMISE(e2 && e->element == e2->element && e->rank == e2->rank && e->bytes == e2->bytes);
        PROMISE(memcmp(e->shape, e2->shape, sizeof e->shape) == 0);
        PROMISE(memcmp(data + e->offset, data2 + e2->offset, e->bytes) == 0);
        PROMISE(e2->element->block_bits < 8 || e2->offset % (e2->element->block_bits / 8) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    embla_directory d = {0}, d2 = {0};
    size_t live = embla_mem_live();
    bool ours = embla_format_safetensors.sniff(data, size, size);
    embla_status status = read_file(data, size, false, &d);
    if (status != EMBLA_OK) {
        PROMISE(status == EMBLA_ERR_FORMAT && strncmp(embla_error(), "input: ", 7) == 0);
        PROMISE(strstr(embla_error(), " (S"));
        embla_directory_free(&d);
        bool space = size > 8 && data[8] != '\0' && strchr(" \t\r\n", data[8]);
        if (space)
            status = read_file(data, size, true, &d); /* the only thing that lenient changes */
    }
    if (status == EMBLA_OK) {
        PROMISE(ours);
        check_tiling(data, size, &d);
        image second = write_again(data, &d);
        PROMISE(read_file(second.bytes, second.size, false, &d2) == EMBLA_OK);
        check_same(data, &d, second.bytes, &d2);
        image third = write_again(second.bytes, &d2);
        PROMISE(third.size == second.size);
        PROMISE(memcmp(third.bytes, second.bytes, third.size) == 0);
        free(third.bytes);
        free(second.bytes);
    }
    embla_directory_free(&d2);
    embla_directory_free(&d);
    PROMISE(embla_mem_live() == live);
    return 0;
}

/* ---- the mutator ---- */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

enum { TEXT = 4096 };

/* A file in two pieces. */
typedef struct {
    char text[TEXT + 1]; /* of the header, with a 0 after it */
    size_t length;
    size_t data;   /* bytes of data */
    uint32_t next; /* random numbers */
} draft;

static uint32_t below(draft *d, uint32_t limit)
{
    d->next = d->next * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)d->next * limit >> 32);
}

/* Replaces text[at .. at+old-1]; does nothing if there is no room. */
static void splice(draft *d, size_t at, size_t old, const char *with)
{
    size_t length = strlen(with);
    if (d->length - old + length > TEXT) return;
    memmove(d->text + at + length, d->text + at + old, d->length - at - old + 1);
    memcpy(d->text + at, with, length);
    d->length += length - old;
}

/* The index after a random byte that is one of these; length if there is none. */
static size_t after_one_of(draft *d, const char *bytes)
{
    size_t from = d->length > 0 ? below(d, (uint32_t)d->length) : 0;
    for (size_t i = 0; i < d->length; i++) {
        size_t at = (from + i) % d->length;
        if (d->text[at] != '\0' && strchr(bytes, d->text[at])) return at + 1;
    }
    return d->length;
}

static void change_number(draft *d)
{
    static const char *const numbers[] = {"0",
                                          "1",
                                          "2",
                                          "3",
                                          "4",
                                          "8",
                                          "16",
                                          "32",
                                          "255",
                                          "4096",
                                          "2147483648",
                                          "4294967296",
                                          "4294967297",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "18446744073709551615",
                                          "-1",
                                          "01",
                                          "1.0",
                                          "1e1",
                                          "\"1\"",
                                          "true",
                                          "null",
                                          "[]"};
    size_t at = after_one_of(d, "[,"), old;
    for (old = 0; d->text[at + old] >= '0' && d->text[at + old] <= '9'; old++) continue;
    if (old > 0)
        splice(d, at, old,
               numbers[below(d, below(d, 4) > 0 ? 8 : sizeof numbers / sizeof *numbers)]);
}

static void change_dtype(draft *d)
{
    const char *place = strstr(d->text + below(d, (uint32_t)d->length + 1), "\"dtype\":\"");
    if (!place) return;
    const embla_element *element = embla_element_at(below(d, 24));
    size_t at = (size_t)(place - d->text) + 9;
    splice(d, at, strcspn(d->text + at, "\""), element->name);
}

static void insert_piece(draft *d)
{
    static const char *const pieces[] = {
        "\"n\":{\"dtype\":\"I8\",\"shape\":[],\"data_offsets\":[0,1]},",
        "\"e\":{\"dtype\":\"F4\",\"shape\":[0],\"data_offsets\":[0,0]},",
        "\"__metadata__\":{\"k\":\"v\"},",
        "\"k\":\"v\",",
        "\"k\":1,",
        "\"shape\":[1],",
        "\"dtype\":\"F32\",",
        "\"data_offsets\":[0,4],",
        "1,",
        "{",
        "}",
        "[",
        "]",
        "\"",
        ",",
        ":",
        "\\u0061",
        "\\u0000",
        "\\n",
        "\\ud83d\\ude00",
        " ",
        "\n",
        "true,"};
    splice(d, after_one_of(d, "{}[],:\""), 0, pieces[below(d, sizeof pieces / sizeof *pieces)]);
}

/* Generates a valid header: up to 6 tensors, with names out of order. */
static void make_header(draft *d)
{
    uint32_t count = below(d, 7), names = below(d, 6), at = 0;
    char piece[200];
    d->length = 0;
    d->text[0] = '\0';
    splice(d, 0, 0, "{");
    if (below(d, 3) == 0)
        splice(d, 1, 0,
               count > 0 ? "\"__metadata__\":{\"a\":\"\\u00e9\\\"\"}," : "\"__metadata__\":{}");
    for (uint32_t i = 0; i < count; i++) {
        const embla_element *element = embla_element_at(below(d, 22));
        uint32_t rows = 4 * below(d, 3), dim = 1 + below(d, 3),
                 bytes = rows * dim * element->block_bits / 8;
        (void)snprintf(piece, sizeof piece,
                       "\"%c\":{\"dtype\":\"%s\",\"shape\":[%u,%u],\"data_offsets\":[%u,%u]}%s",
                       'a' + (char)((i + names) % 6), element->name, rows, dim, at, at + bytes,
                       i + 1 < count ? "," : "}");
        splice(d, d->length, 0, piece);
        at += bytes;
    }
    if (count == 0) splice(d, d->length, 0, "}");
    for (uint32_t pad = below(d, 8); pad > 0; pad--) splice(d, d->length, 0, " ");
}

/* Gives the data the length of the last end of data_offsets, if that is small. */
static void fit_data(draft *d)
{
    d->data = 0;
    for (const char *p = d->text; (p = strstr(p, "data_offsets\":["));) {
        p += strcspn(p, ",");
        unsigned long end = *p ? strtoul(p + 1, NULL, 10) : 0;
        if (end <= TEXT && end > d->data) d->data = end;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    static draft d;
    uint8_t prefix[8] = {0};
    d.next = seed;
    if (below(&d, 8) == 0 || size < 8) return LLVMFuzzerMutate(data, size, most);
    uint64_t length = embla_le64(data);
    if (length > size - 8) length = size - 8;
    d.length = length < TEXT ? (size_t)length : TEXT;
    d.data = size - 8 - (size_t)length;
    memcpy(d.text, data + 8, d.length);
    d.text[d.length] = '\0';
    for (uint32_t steps = 1 + below(&d, 3); steps > 0; steps--) {
        switch (below(&d, 6)) {
        case 0:
            if (d.length == 0) break;
            d.length = LLVMFuzzerMutate((uint8_t *)d.text, d.length, TEXT);
            d.text[d.length] = '\0';
            break;
        case 1:
            if (below(&d, 3) == 0) make_header(&d);
            break;
        case 2:
            change_dtype(&d);
            break;
        case 3:
            insert_piece(&d);
            break;
        default:
            change_number(&d);
        }
    }
    if (below(&d, 4) > 0) fit_data(&d);
    embla_put_le64(below(&d, 16) > 0 ? d.length : below(&d, 200), prefix);
    if (most < 8 + d.length) return LLVMFuzzerMutate(data, size, most);
    if (d.data > most - 8 - d.length) d.data = most - 8 - d.length;
    memcpy(data, prefix, 8);
    memcpy(data + 8, d.text, d.length);
    for (size_t i = 0; i < d.data; i++) data[8 + d.length + i] = (uint8_t)(7 * i + 1);
    return 8 + d.length + d.data;
}
