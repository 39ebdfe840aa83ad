/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the library and how it was built. */
#include "embla.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

const char *embla_version(void)
{
    return TEXT(EMBLA_VERSION_MAJOR) "." TEXT(EMBLA_VERSION_MINOR) "." TEXT(EMBLA_VERSION_PATCH);
}

const char *embla_build_info(void)
{
    return COMPILER;
}
