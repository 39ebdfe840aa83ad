/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises compressed files. The library reads no compressed file: it says which program unpacks
 * it. Without this check a compressed text would be read as words that nobody wrote.
 */
#ifndef EMBLA_FILES_PACKED_H
#define EMBLA_FILES_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The first bytes of a file that decide whether it is compressed. */
enum { EMBLA_PACKED_HEAD = 10 };

/* EMBLA_ERR_UNSUPPORTED if the file begins with the bytes of gzip, xz, zstd or bzip2. text: of zip
 * too, which in other files is a container that its own format reports. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_packed_check(const char *name, const uint8_t *head,
                                                            size_t length, bool text);

#endif
