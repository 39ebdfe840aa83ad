/* SPDX-License-Identifier: Apache-2.0 */
/* Public structs end with reserved words, which later versions turn into fields
 * (docs/decisions/020-how-options-grow.md). A word that is not 0 is a field that this version does
 * not know, or a struct that was not zeroed.
 */
#ifndef EMBLA_BASE_OPTIONS_H
#define EMBLA_BASE_OPTIONS_H

#include "base/status.h"

EMBLA_CHECKED static inline embla_status embla_reserved_check(const uint64_t *reserved,
                                                              size_t count)
{
    uint64_t any = 0;
    for (size_t i = 0; i < count; i++) any |= reserved[i];
    if (any == 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "a reserved field is not 0: the struct was not zeroed, or it uses an option "
                      "that Embla %s does not have",
                      embla_version());
}

/* For a pointer to any options, which may be NULL. */
#define embla_options_check(options)                                                               \
    ((options)                                                                                     \
         ? embla_reserved_check((options)->reserved, sizeof(options)->reserved / sizeof(uint64_t)) \
         : EMBLA_OK)

#endif
