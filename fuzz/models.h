/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the fuzz targets of model files: reading bytes as a file of one format, checks of every
 * directory, and choices for mutators that keep a file's numbers consistent with its size. With
 * random changes nearly every file would be refused for its length. */
#ifndef EMBLA_FUZZ_MODELS_H
#define EMBLA_FUZZ_MODELS_H

#include "base/mem.h"
#include "files/cursor.h"
#include "formats/format.h"
#include "input.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

/* Checks that every tensor lies in the file, after the previous one, and has the length of its
 * shape. */
static inline void check_directory(const embla_directory *d, const embla_format *format,
                                   size_t size)
{
    uint64_t end = 0;
    PROMISE(strcmp(d->format, format->name) == 0);
    for (size_t i = 0; i < d->count; i++) {
        const embla_entry *e = &d->entries[i];
        uint64_t count = 1, bytes = 0;
        for (uint32_t k = 0; k < e->rank; k++) {
            PROMISE(e->shape[k] > 0);
            count *= e->shape[k];
        }
        PROMISE(e->rank >= 1 && e->rank <= EMBLA_TENSOR_RANK_MAX);
        PROMISE(embla_element_bytes(e->element, count, &bytes) && bytes == e->bytes);
        PROMISE(e->offset >= end && e->offset <= size && e->bytes <= size - e->offset);
        PROMISE(!e->made && e->file == 0 && e->name[0] != '\0');
        end = e->offset + e->bytes;
    }
}

/* Reads the bytes. An accepted directory is checked, and the caller frees it. After an error
 * nothing is left allocated. */
static inline embla_status read_model(const embla_format *format, const uint8_t *data, size_t size,
                                      const embla_open_options *options, embla_directory *out)
{
    embla_map *map = NULL;
    size_t live = embla_mem_live();
    *out = (embla_directory){0};
    PROMISE(embla_map_bytes(data, size, "model", &map) == EMBLA_OK);
    embla_status status = format->read(map, options, out);
    bool sniffed = format->sniff(data, size < 4096 ? size : 4096, size);
    if (status == EMBLA_OK) {
        PROMISE(sniffed);
        check_directory(out, format, size);
    } else {
        PROMISE(status == EMBLA_ERR_FORMAT || status == EMBLA_ERR_UNSUPPORTED);
        PROMISE(strncmp(embla_error(), "model", 5) == 0);
        embla_directory_free(out);
    }
    embla_map_free(map);
    if (status != EMBLA_OK) PROMISE(embla_mem_live() == live);
    return status;
}

/* ---- for mutators ---- */

/* 0 .. limit-1. */
static inline uint32_t choose(unsigned *seed, uint32_t limit)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)*seed * limit) >> 32);
}

/* A small number, or one at the end of a range. */
static inline uint32_t choose_number(unsigned *seed)
{
    static const uint32_t ends[] = {0,       0xffffffffu, 0x7fffffffu, 0x80000000u,
                                    0x10000, 0x10001,     1025,        4097};
    return choose(seed, 8) > 0 ? choose(seed, 9) : ends[choose(seed, 8)];
}

/* Changes the length of data from size to wanted; new bytes are zeros. */
static inline size_t resize(uint8_t *data, size_t size, size_t wanted)
{
    if (wanted > size) memset(data + size, 0, wanted - size);
    return wanted;
}

/* Changes the header of a safetensors file, or the numbers after it, and sets the header's length.
 * Returns the new size. */
static inline size_t mutate_safetensors(uint8_t *data, size_t size, size_t most, unsigned *seed)
{
    if (size <= 8 || embla_le64(data) > size - 8) return LLVMFuzzerMutate(data, size, most);
    size_t header = (size_t)embla_le64(data), numbers = size - 8 - header;
    if (numbers > 0 && choose(seed, 4) == 0)
        return 8 + header + LLVMFuzzerMutate(data + 8 + header, numbers, most - 8 - header);
    char *aside = block(numbers);
    if (numbers > 0) memcpy(aside, data + 8 + header, numbers);
    header = LLVMFuzzerMutate(data + 8, header, most - 8 - numbers);
    embla_put_le64(header, data);
    if (numbers > 0) memcpy(data + 8 + header, aside, numbers);
    free(aside);
    return 8 + header + numbers;
}

#endif
