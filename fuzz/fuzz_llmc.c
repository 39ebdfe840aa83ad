/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a model of llm.c. Promises:
 *   - sixteen tensors fill the file from its header to its end;
 *   - what was read, passed to the writer, gives the same header and, with the tensors after it,
 * the same file. The mutator chooses sizes and gives the file the matching length.
 */
#include "formats/llmc.h"
#include "models.h"

enum { FIELDS = 8, CHANNELS = 6 };

static embla_status read_nothing(void *context, uint64_t offset, size_t bytes, void *out)
{
    (void)context, (void)offset, (void)bytes, (void)out;
    return EMBLA_OK;
}

/* The writer's input; a byte of the file decides the order of the parts. */
static void check_plan(const embla_directory *d, const uint8_t *data, uint8_t header[1024])
{
    embla_part parts[EMBLA_LLMC_TENSORS];
    embla_llmc model;
    size_t turn = data[1023] % EMBLA_LLMC_TENSORS;
    PROMISE(d->count == EMBLA_LLMC_TENSORS);
    for (size_t i = 0; i < EMBLA_LLMC_TENSORS; i++) {
        const embla_entry *e = &d->entries[(i + turn) % EMBLA_LLMC_TENSORS];
        parts[i] = (embla_part){.name = e->name,
                                .element = e->element,
                                .rank = e->rank,
                                .bytes = e->bytes,
                                .read = read_nothing};
        memcpy(parts[i].shape, e->shape, sizeof e->shape);
    }
    embla_contents contents = {.parts = parts,
                               .count = EMBLA_LLMC_TENSORS,
                               .pairs = d->pairs,
                               .pair_count = d->pair_count,
                               .tokens = data[1022] & 1 ? d->tokens : 0};
    PROMISE(embla_llmc_plan(&contents, &model) == EMBLA_OK);
    for (size_t i = 0; i < EMBLA_LLMC_TENSORS; i++)
        PROMISE(strcmp(model.parts[i]->name, d->entries[i].name) == 0);
    embla_llmc_header(&model, header);
    PROMISE(memcmp(header, data, 4 * (size_t)FIELDS) == 0);
}

static void check_same(const embla_directory *a, const embla_directory *b)
{
    PROMISE(a->count == b->count && a->tokens == b->tokens && a->pair_count == b->pair_count);
    for (size_t i = 0; i < a->count; i++) {
        const embla_entry *x = &a->entries[i], *y = &b->entries[i];
        PROMISE(strcmp(x->name, y->name) == 0 && x->element == y->element && x->rank == y->rank);
        PROMISE(memcmp(x->shape, y->shape, sizeof x->shape) == 0);
        PROMISE(x->offset == y->offset && x->bytes == y->bytes);
    }
    for (size_t i = 0; i < a->pair_count; i++)
        PROMISE(strcmp(a->pairs[i].key, b->pairs[i].key) == 0 &&
                strcmp(a->pairs[i].value, b->pairs[i].value) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    embla_directory first, second;
    if (read_model(&embla_format_llmc, data, size, NULL, &first) != EMBLA_OK) return 0;
    const embla_entry *last = &first.entries[first.count - 1];
    PROMISE(first.entries[0].offset == 1024 && last->offset + last->bytes == size);
    uint8_t *written = (uint8_t *)block(size), *at = written + 1024;
    check_plan(&first, data, written);
    for (size_t i = 0; i < first.count; i++) { /* in order, as the writer copies them */
        memcpy(at, data + first.entries[i].offset, (size_t)first.entries[i].bytes);
        at += first.entries[i].bytes;
    }
    PROMISE(at == written + size);
    PROMISE(read_model(&embla_format_llmc, written, size, NULL, &second) == EMBLA_OK);
    check_same(&first, &second);
    PROMISE(memcmp(written + 1024, data + 1024, size - 1024) == 0);
    free(written);
    embla_directory_free(&first);
    embla_directory_free(&second);
    return 0;
}

/* Bytes of the file that has these sizes, if that is at most 1 MiB. */
static bool size_of(const uint8_t *data, uint64_t *out)
{
    uint64_t f[FIELDS];
    for (size_t i = 0; i < FIELDS; i++) {
        f[i] = embla_le32(data + 4 * i);
        if (i >= 2 && f[i] > 8192) return false;
    }
    uint64_t c = f[CHANNELS];
    uint64_t numbers = (f[7] + f[2] + 2) * c + f[4] * (12 * c * c + 13 * c);
    *out = 1024 + numbers * (f[1] == 5 ? 2 : 4);
    return *out <= 1 << 20;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    unsigned s = seed;
    uint64_t wanted;
    if (choose(&s, 4) == 0 || most < 1024) size = LLVMFuzzerMutate(data, size, most);
    if (choose(&s, 8) == 0 || most < 1024) return size;
    if (size < 1024) size = resize(data, size, 1024);
    if (choose(&s, 8) > 0) embla_put_le32(20240326, data);
    if (choose(&s, 8) > 0) embla_put_le32(choose(&s, 2) == 0 ? 3 : 5, data + 4);
    for (uint32_t i = choose(&s, 4); i > 0; i--)
        embla_put_le32(choose_number(&s), data + 4 * (2 + choose(&s, 6)));
    if (choose(&s, 2) == 0) embla_put_le32(embla_le32(data + 12) + choose(&s, 3), data + 28);
    if (choose(&s, 2) == 0) embla_put_le32(1 + choose(&s, 2), data + 20); /* heads that divide */
    if (choose(&s, 16) > 0 && size_of(data, &wanted) && wanted <= most)
        size = resize(data, size, (size_t)wanted);
    return size;
}
