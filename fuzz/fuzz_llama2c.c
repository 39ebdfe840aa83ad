/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a model of llama2.c. That format has no magic number, so the same bytes are also
 * tried as a pickle, which is detected before it. Promises:
 *   - the tensors fill the file from its header to its end;
 *   - a file is recognised if and only if it is read, or is a later export;
 *   - no file that is read is taken for a pickle, and a pickle is always refused.
 * The mutator chooses sizes and gives the file the matching length.
 */
#include "models.h"

enum { FIELDS = 7, HEADER = 28 };

static const uint32_t later = 0x616b3432;

static void check_pickle(const uint8_t *data, size_t size, bool taken)
{
    embla_directory d;
    bool sniffed = embla_format_pickle.sniff(data, size < 4096 ? size : 4096, size);
    PROMISE(!(sniffed && taken));
    PROMISE(read_model(&embla_format_pickle, data, size, NULL, &d) == EMBLA_ERR_UNSUPPORTED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    embla_directory d;
    embla_status status = read_model(&embla_format_llama2c, data, size, NULL, &d);
    bool sniffed = embla_format_llama2c.sniff(data, size < 4096 ? size : 4096, size);
    bool newer = size >= 4 && embla_le32(data) == later;
    PROMISE(sniffed == (status == EMBLA_OK || newer));
    PROMISE((status == EMBLA_ERR_UNSUPPORTED) == (newer && size >= 8));
    check_pickle(data, size, status == EMBLA_OK);
    if (status != EMBLA_OK) return 0;
    bool tied = (int32_t)embla_le32(data + 20) > 0;
    const embla_entry *last = &d.entries[d.count - 1];
    PROMISE(d.count == (tied ? 13 : 14));
    PROMISE(d.entries[0].offset == HEADER && last->offset + last->bytes == size);
    PROMISE(d.entries[0].shape[0] == d.tokens && d.entries[0].shape[1] == embla_le32(data));
    for (size_t i = 1; i < d.count; i++)
        PROMISE(d.entries[i].offset == d.entries[i - 1].offset + d.entries[i - 1].bytes);
    if (!tied) PROMISE(memcmp(d.entries[0].shape, last->shape, sizeof last->shape) == 0);
    embla_directory_free(&d);
    return 0;
}

/* Bytes of the file that has these sizes, if that is at most 1 MiB. */
static bool size_of(const uint8_t *data, uint64_t *out)
{
    uint64_t f[FIELDS];
    for (size_t i = 0; i < FIELDS; i++) f[i] = embla_le32(data + 4 * i);
    uint64_t tables = f[5] > INT32_MAX ? 2 : 1;
    if (tables == 2) f[5] = (uint32_t)-f[5];
    for (size_t i = 0; i < FIELDS; i++)
        if (f[i] < 1 || f[i] > 8192) return false;
    uint64_t d = f[0], head = d / f[3], numbers = tables * f[5] * d + d + f[6] * (head / 2) * 2;
    numbers += f[2] * (2 * d + 2 * d * d + 2 * d * head * f[4] + 3 * d * f[1]);
    *out = HEADER + 4 * numbers;
    return *out <= 1 << 20;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    unsigned s = seed;
    uint64_t wanted;
    if (choose(&s, 4) == 0 || most < HEADER) size = LLVMFuzzerMutate(data, size, most);
    if (choose(&s, 8) == 0 || most < HEADER) return size;
    if (size < HEADER) size = resize(data, size, HEADER);
    if (choose(&s, 8) > 0) {
        for (uint32_t i = choose(&s, 4); i > 0; i--)
            embla_put_le32(choose_number(&s), data + 4 * choose(&s, FIELDS));
        if (choose(&s, 2) == 0) { /* heads that fit */
            uint32_t kv = 1 + choose(&s, 2), heads = kv * (1 + choose(&s, 2));
            embla_put_le32(heads * 2 * (1 + choose(&s, 2)), data);
            embla_put_le32(heads, data + 12);
            embla_put_le32(kv, data + 16);
        }
        if (choose(&s, 4) == 0) embla_put_le32(0u - embla_le32(data + 20), data + 20);
    }
    if (choose(&s, 64) == 0) embla_put_le32(later, data);
    if (choose(&s, 16) > 0 && size_of(data, &wanted) && wanted <= most)
        size = resize(data, size, (size_t)wanted);
    return size;
}
