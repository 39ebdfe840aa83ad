/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what needs an engine of matrix products, which a machine may lack. */
#ifndef EMBLA_TESTS_ENGINE_H
#define EMBLA_TESTS_ENGINE_H

#include "check.h"
#include "embla_lab.h"

static inline bool no_engine(void)
{
    return strcmp(embla_engine_name(), "none") == 0;
}

#define SKIP_WITHOUT_ENGINE()                                                                      \
    if (no_engine()) {                                                                             \
        print_message("no engine: %s\n", embla_engine_warning());                                  \
        skip();                                                                                    \
    }

#endif
