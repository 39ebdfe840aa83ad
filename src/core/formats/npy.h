/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a .npy file, as NumPy writes it: for the writer, and for tests that build a file
 * in memory.
 */
#ifndef EMBLA_FORMATS_NPY_H
#define EMBLA_FORMATS_NPY_H

#include "formats/element.h"

/* Bytes of the longest header: 8 dimensions of 20 digits. */
enum { EMBLA_NPY_HEADER_MOST = 384 };

/* Magic, version 1.0, length, dictionary, spaces up to a multiple of 64, a newline: every
 * byte as NumPy has it. element has an npy name; rank is at most EMBLA_TENSOR_RANK_MAX. Returns
 * how many bytes it has. */
EMBLA_PRIVATE size_t embla_npy_header(const embla_element *element, uint32_t rank,
                                      const uint64_t *shape, char out[EMBLA_NPY_HEADER_MOST]);

#endif
