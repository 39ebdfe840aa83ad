/* SPDX-License-Identifier: Apache-2.0 */
/* The first bytes of compressed files. gzip has only one method, 8, so three bytes decide; a text
 * of bytes may well begin with the first two.
 */
#include "files/packed.h"

#include <string.h>

static bool begins(const uint8_t *head, size_t length, const char *bytes, size_t count)
{
    return length >= count && memcmp(head, bytes, count) == 0;
}

/* A block or the end of the stream follows the letters and the block size, 1 to 9. */
static bool is_bzip2(const uint8_t *head, size_t length)
{
    return length >= 10 && begins(head, length, "BZh", 3) && head[3] >= '1' && head[3] <= '9' &&
           (memcmp(head + 4, "1AY&SY", 6) == 0 ||
            memcmp(head + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0);
}

static embla_status refuse(const char *name, const char *format, const char *program)
{
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "%.256s is compressed with %s; unpack it with %s first", name, format,
                      program);
}

embla_status embla_packed_check(const char *name, const uint8_t *head, size_t length, bool text)
{
    if (begins(head, length, "\x1f\x8b\x08", 3)) return refuse(name, "gzip", "gunzip");
    if (begins(head, length, "\xfd\x37zXZ\0", 6)) return refuse(name, "xz", "unxz");
    if (begins(head, length, "\x28\xb5\x2f\xfd", 4)) return refuse(name, "zstd", "unzstd");
    if (is_bzip2(head, length)) return refuse(name, "bzip2", "bunzip2");
    if (text && begins(head, length, "PK\x03\x04", 4)) return refuse(name, "zip", "unzip");
    return EMBLA_OK;
}
