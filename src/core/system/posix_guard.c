/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of SIGBUS: it replaces a lost page of a mapped file by zeros, or passes the signal to
 * the handler that was installed before. It calls only mmap, sigaction and raise. */
#include "system/system_memory.h"

#include "system/posix.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

static struct sigaction before; /* written only before ours is set */
static bool (*_Atomic ours)(uintptr_t address);
static atomic_size_t page;

static bool replace_page(const siginfo_t *info)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    size_t bytes = atomic_load(&page);
    if (!atomic_load(&ours)(at)) return false;
    void *start = (void *)(at & ~(uintptr_t)(bytes - 1));
    /* writable, because the lost page of a private map may be written to */
    return mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) == start;
}

/* Does what would have happened if this handler had not been installed. */
static void pass_on(int number, siginfo_t *info, void *context, bool sent)
{
    bool plain = !(before.sa_flags & SA_SIGINFO);
    if (plain && before.sa_handler == SIG_IGN && sent) return;
    if ((plain && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)) ||
        (before.sa_flags & (int)SA_RESETHAND)) {
        /* Restore the old handler and let the signal happen again. A faulting access is repeated
         * when we return; a signal that was sent is sent again, and is blocked until then. */
        (void)sigaction(SIGBUS, &before, NULL);
        if (sent) (void)raise(number);
    } else if (plain) {
        before.sa_handler(number);
    } else {
        before.sa_sigaction(number, info, context);
    }
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    int error = errno;
    bool sent = info->si_code <= 0; /* by kill or raise; such a signal has no address */
    if (atomic_load(&ours) && (sent || !replace_page(info))) pass_on(number, info, context, sent);
    errno = error;
}

embla_outcome embla_system_guard(bool (*is_ours)(uintptr_t address))
{
    struct sigaction handler = {0};
    if (sigaction(SIGBUS, NULL, &before) != 0) return embla_posix_failed();
    atomic_store(&page, embla_system_page());
    atomic_store(&ours, is_ours);
    handler.sa_sigaction = on_signal;
    handler.sa_flags = SA_SIGINFO | SA_ONSTACK; /* other threads may have small stacks */
    handler.sa_mask = before.sa_mask;           /* for the old handler, which we may call */
    return embla_posix_ended(sigaction(SIGBUS, &handler, NULL));
}
