/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread_system.h"

#include "base/injected.h"

embla_outcome embla_thread_start(void *(*run)(void *argument), void *argument, embla_thread *out)
{
    embla_outcome done;
    if (!embla_injected(EMBLA_INJECT_THREAD, &done)) done = embla_system_start(run, argument, out);
    return done;
}

bool embla_thread_key_new(void (*at_end)(void *value), embla_thread_key *out)
{
    return embla_system_key(at_end, out);
}

void *embla_thread_value(embla_thread_key key)
{
    return embla_system_value(key);
}

bool embla_thread_set_value(embla_thread_key key, void *value)
{
    return embla_system_set_value(key, value);
}

void embla_signals_block(embla_signals *before)
{
    embla_system_block_signals(before);
}

void embla_signals_restore(const embla_signals *before)
{
    embla_system_restore_signals(before);
}
