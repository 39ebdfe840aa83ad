/* SPDX-License-Identifier: Apache-2.0 */
/* The list of element types. A type that several formats have is one entry with a name for each
 * format, so that a tensor read from one format can be written to another.
 *
 * Rule S7 has the bits of safetensors' types, G8 the blocks of GGUF's, N3 the letters of npy;
 * test_element.c repeats those three lists. npy has no letter for BF16: its reader is told what
 * '<V2' means and calls embla_element_of.
 */
#include "formats/element.h"

#include <string.h>

#include "base/checked.h"

#define NONE ((embla_dtype)0)

/* A type that any of the three formats may have; bits of one number. */
#define PLAIN(name, bits, dtype, safetensors, ggml, npy)                                           \
    {                                                                                              \
        name, safetensors, npy, 1, bits, dtype, ggml                                               \
    }
/* A type of GGUF only; numbers and bytes of a block. */
#define BLOCK(name, numbers, bytes, dtype, ggml)                                                   \
    {                                                                                              \
        name, NULL, NULL, numbers, 8 * (bytes), dtype, ggml                                        \
    }

static const embla_element elements[] = {
    PLAIN("F32", 32, EMBLA_F32, "F32", 0, "f4"),
    PLAIN("F16", 16, EMBLA_F16, "F16", 1, "f2"),
    PLAIN("BF16", 16, EMBLA_BF16, "BF16", 30, NULL),
    PLAIN("F64", 64, EMBLA_F64, "F64", 28, "f8"),
    PLAIN("I8", 8, EMBLA_I8, "I8", 24, "i1"),
    PLAIN("I16", 16, NONE, "I16", 25, "i2"),
    PLAIN("I32", 32, NONE, "I32", 26, "i4"),
    PLAIN("I64", 64, NONE, "I64", 27, "i8"),
    PLAIN("U8", 8, NONE, "U8", -1, "u1"),
    PLAIN("U16", 16, NONE, "U16", -1, "u2"),
    PLAIN("U32", 32, NONE, "U32", -1, "u4"),
    PLAIN("U64", 64, NONE, "U64", -1, "u8"),
    PLAIN("BOOL", 8, NONE, "BOOL", -1, NULL),
    PLAIN("C64", 64, NONE, "C64", -1, NULL),
    PLAIN("F8_E4M3", 8, EMBLA_F8_E4M3, "F8_E4M3", -1, NULL),
    PLAIN("F8_E5M2", 8, EMBLA_F8_E5M2, "F8_E5M2", -1, NULL),
    PLAIN("F8_E8M0", 8, NONE, "F8_E8M0", -1, NULL),
    PLAIN("F8_E4M3FNUZ", 8, NONE, "F8_E4M3FNUZ", -1, NULL),
    PLAIN("F8_E5M2FNUZ", 8, NONE, "F8_E5M2FNUZ", -1, NULL),
    PLAIN("F6_E2M3", 6, NONE, "F6_E2M3", -1, NULL),
    PLAIN("F6_E3M2", 6, NONE, "F6_E3M2", -1, NULL),
    PLAIN("F4", 4, NONE, "F4", -1, NULL),
    BLOCK("Q4_0", 32, 18, EMBLA_Q4_0, 2),
    BLOCK("Q4_1", 32, 20, EMBLA_Q4_1, 3),
    BLOCK("Q5_0", 32, 22, EMBLA_Q5_0, 6),
    BLOCK("Q5_1", 32, 24, EMBLA_Q5_1, 7),
    BLOCK("Q8_0", 32, 34, EMBLA_Q8_0, 8),
    BLOCK("Q8_1", 32, 36, NONE, 9),
    BLOCK("Q2_K", 256, 84, NONE, 10),
    BLOCK("Q3_K", 256, 110, EMBLA_Q3_K, 11),
    BLOCK("Q4_K", 256, 144, EMBLA_Q4_K, 12),
    BLOCK("Q5_K", 256, 176, EMBLA_Q5_K, 13),
    BLOCK("Q6_K", 256, 210, EMBLA_Q6_K, 14),
    BLOCK("Q8_K", 256, 292, NONE, 15),
    BLOCK("IQ2_XXS", 256, 66, NONE, 16),
    BLOCK("IQ2_XS", 256, 74, NONE, 17),
    BLOCK("IQ3_XXS", 256, 98, NONE, 18),
    BLOCK("IQ1_S", 256, 50, NONE, 19),
    BLOCK("IQ4_NL", 32, 18, EMBLA_IQ4_NL, 20),
    BLOCK("IQ3_S", 256, 110, NONE, 21),
    BLOCK("IQ2_S", 256, 82, NONE, 22),
    BLOCK("IQ4_XS", 256, 136, EMBLA_IQ4_XS, 23),
    BLOCK("IQ1_M", 256, 56, NONE, 29),
    BLOCK("TQ1_0", 256, 54, NONE, 34),
    BLOCK("TQ2_0", 256, 66, NONE, 35),
    BLOCK("MXFP4", 32, 17, EMBLA_MXFP4, 39),
    BLOCK("NVFP4", 64, 36, EMBLA_NVFP4, 40),
    BLOCK("Q1_0", 128, 18, NONE, 41),
    BLOCK("Q2_0", 64, 18, NONE, 42),
};
enum { COUNT = sizeof elements / sizeof elements[0] };

const embla_element *embla_element_safetensors(const char *name, size_t length)
{
    for (size_t i = 0; i < COUNT; i++) {
        const char *have = elements[i].safetensors;
        if (have && strlen(have) == length && memcmp(have, name, length) == 0) return &elements[i];
    }
    return NULL;
}

const embla_element *embla_element_ggml(uint32_t id)
{
    for (size_t i = 0; i < COUNT; i++)
        if (elements[i].ggml >= 0 && (uint32_t)elements[i].ggml == id) return &elements[i];
    return NULL;
}

const embla_element *embla_element_npy(const char *letter_and_size)
{
    for (size_t i = 0; i < COUNT; i++)
        if (elements[i].npy && strcmp(elements[i].npy, letter_and_size) == 0) return &elements[i];
    return NULL;
}

const embla_element *embla_element_of(embla_dtype dtype)
{
    for (size_t i = 0; i < COUNT; i++)
        if (dtype != NONE && elements[i].dtype == dtype) return &elements[i];
    return NULL;
}

embla_status embla_element_find(embla_dtype dtype, const char *what, const embla_element **out)
{
    *out = embla_element_of(dtype);
    if (*out) return EMBLA_OK;
    return embla_fail(
        EMBLA_ERR_UNSUPPORTED,
        "%.128s has rows of %s, which need a separate scale; no format can store them", what,
        embla_dtype_name(dtype));
}

const embla_element *embla_element_at(size_t n)
{
    return n < COUNT ? &elements[n] : NULL;
}

bool embla_element_bytes(const embla_element *element, uint64_t count, uint64_t *out)
{
    uint64_t blocks = count / element->block, bytes;
    if (count % element->block != 0) return false;
    /* Eight blocks take block_bits bytes. Counting by eights keeps the products below the number
     * of bits, which could overflow although the number of bytes does not. */
    uint64_t rest = blocks % 8 * element->block_bits;
    if (rest % 8 != 0) return false;
    if (!embla_mul_ok(blocks / 8, element->block_bits, &bytes) ||
        !embla_add_ok(bytes, rest / 8, &bytes) || bytes > (uint64_t)INT64_MAX)
        return false;
    *out = bytes;
    return true;
}
