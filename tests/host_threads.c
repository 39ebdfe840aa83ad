/* SPDX-License-Identifier: Apache-2.0 */
/* Part of every test program: with EMBLA_TEST_HOST=reversed, fresh or flush all loops run on
 * threads of a host program, in reversed order, on a new thread for each part, or on threads that
 * flush small numbers to zero. Results must be the same.
 */
#include "share_host.h"

__attribute__((constructor)) static void lend_threads(void)
{
    enum { THREADS = 4, FLUSH = 0x8040 }; /* the bits FTZ and DAZ of x86 */
    static host h;
    const char *asked = getenv("EMBLA_TEST_HOST");
    if (!asked) return;
    h = plain_host(-1);
    if (strcmp(asked, "reversed") == 0)
        h.threads = 0, h.reversed = true;
    else if (strcmp(asked, "flush") == 0)
        h.flush = FLUSH;
    else if (strcmp(asked, "fresh") != 0)
        abort();
    if (embla_set_parallel(run_on_host, &h, THREADS) != EMBLA_OK) abort();
}
