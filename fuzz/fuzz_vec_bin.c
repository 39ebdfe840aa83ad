/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as words and vectors in word2vec's binary format. vec.h has the promises. The mutator
 * writes rows: in random bytes the lengths of header and rows seldom agree. */
#include "vec.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)embla_vec_kind_of(data, size < 4096 ? size : 4096, size);
    vec_one(&embla_format_word2vec_bin, data, size);
    return 0;
}

/* Generates a header and rows that match it or, now and then, almost do. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    uint64_t s = seed;
    static const char *const words[] = {"the", "a", "\n", "a\nb", "", "\xff", "0.5", "long-word"};
    if (random_below(&s, 2) == 0 || most < 512) return LLVMFuzzerMutate(data, size, most);
    size_t rows = random_below(&s, 5), dim = 1 + random_below(&s, 4);
    size_t said = random_below(&s, 8) == 0 ? random_below(&s, 6) : rows,
           newlines = random_below(&s, 3);
    size_t used = (size_t)snprintf((char *)data, most, "%zu %zu\n", said, dim);
    for (size_t row = 0; row < rows; row++) {
        const char *word = words[random_below(&s, random_below(&s, 4) == 0 ? 8 : 2)];
        if (newlines == 2) data[used++] = '\n';
        memcpy(data + used, word, strlen(word));
        used += strlen(word);
        data[used++] = ' ';
        for (size_t i = 0; i < 4 * dim; i++) data[used++] = (uint8_t)random_below(&s, 256);
        if (newlines == 1) data[used++] = '\n';
    }
    if (random_below(&s, 8) == 0) used -= random_below(&s, used < 12 ? used : 12);
    return used;
}
