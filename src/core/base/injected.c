/* SPDX-License-Identifier: Apache-2.0 */
#include "base/injected.h"

#include <stdatomic.h>

typedef struct {
    atomic_size_t countdown; /* n: the n-th call from now fails; 0 means off */
    atomic_bool forever;
    atomic_int error;
} injection;

static injection injections[EMBLA_INJECT_KINDS];

void embla_inject(embla_inject_kind kind, size_t n, bool forever, embla_system_error error)
{
    injection *it = &injections[kind];
    atomic_store(&it->error, (int)error);
    atomic_store(&it->forever, forever);
    atomic_store(&it->countdown, n);
}

bool embla_injected(embla_inject_kind kind, embla_outcome *out)
{
    injection *it = &injections[kind];
    size_t n = atomic_load(&it->countdown);
    do { /* the count is shared by all threads; each call counts once */
        if (n == 0) return false;
        if (n == 1 && atomic_load(&it->forever)) break;
    } while (!atomic_compare_exchange_weak(&it->countdown, &n, n - 1));
    if (n > 1) return false;
    *out = embla_system_outcome((embla_system_error)atomic_load(&it->error));
    return true;
}
