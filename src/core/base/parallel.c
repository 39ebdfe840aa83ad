/* SPDX-License-Identifier: Apache-2.0 */
/* A call is cut into parts. Threads claim the next part from a counter until none is left: the
 * caller, and whoever comes to help. The part's number is the slot. If the loop has a grain, who
 * has a part claims tiles from a second counter.
 *
 * The host's function decides only when and where help comes. It does not decide which part a
 * thread does. So a host that drops a part, or runs one twice, changes no result; we count its
 * calls to report it.
 */
#include "base/parallel.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cpus.h"
#include "base/lines.h"
#include "base/lock.h"
#include "base/rounding.h"
#include "base/thread_pool.h"

enum { THREADS_MOST = 4096, WORD_BITS = 64 };

/* Hands out numbers. All threads write it, so it has a cache line for itself. */
typedef struct {
    _Alignas(EMBLA_LINE) atomic_size_t next;
    char unused[EMBLA_LINE - sizeof(atomic_size_t)];
} counter;

typedef struct {
    counter part, tile;
    embla_share_fn *body; /* from here on: read often, rarely written */
    void *job;
    size_t parts, count, grain, tiles; /* grain 0: tiles is not used */
    atomic_size_t failed;              /* the lowest range that failed; SIZE_MAX is none. Written
                                          under `failing`; others read it to skip work only */
    embla_rounding rounding;           /* of the caller's thread */
    embla_status status;               /* of the failure, and its message, under `failing` */
    char sentence[512];

    size_t host_count;                                     /* the parts that the host was told */
    _Atomic uint64_t host_calls[THREADS_MOST / WORD_BITS]; /* a bit for each that it has called */
    atomic_size_t twice;                                   /* one that it called twice; SIZE_MAX */
} call;

static embla_lock failing;

/* The loop that this thread works on, and whether it helps another thread with it. */
static _Thread_local const call *current;
static _Thread_local bool helping;

/* ---- work ---- */

static void keep_failure(call *c, size_t first, embla_status status)
{
    embla_lock_take(&failing);
    if (first < atomic_load_explicit(&c->failed, memory_order_relaxed)) {
        c->status = status;
        (void)snprintf(c->sentence, sizeof c->sentence, "%s", embla_error());
        atomic_store_explicit(&c->failed, first, memory_order_relaxed);
    }
    embla_lock_give(&failing);
}

/* Ranges are claimed in ascending order. So when one fails, all below it have been claimed, and are
 * done; those above it do not matter any more. */
static void run_range(call *c, size_t first, size_t end, size_t slot)
{
    if (first > atomic_load_explicit(&c->failed, memory_order_relaxed)) return;
    embla_status status = c->body(c->job, first, end, slot);
    if (status != EMBLA_OK) keep_failure(c, first, status);
}

/* The first index of a part; the product of count and part could overflow. */
static size_t start_of(const call *c, size_t part)
{
    size_t each = c->count / c->parts, left = c->count % c->parts;
    return part * each + part * left / c->parts;
}

static void run_part(call *c, size_t part)
{
    if (c->grain == 0) {
        run_range(c, start_of(c, part), start_of(c, part + 1), part);
        return;
    }
    size_t tile;
    while ((tile = atomic_fetch_add_explicit(&c->tile.next, 1, memory_order_relaxed)) < c->tiles) {
        size_t first = tile * c->grain, left = c->count - first;
        run_range(c, first, first + (left < c->grain ? left : c->grain), part);
    }
}

/* The counters are relaxed: they only hand out numbers. What bodies read and write is ordered by
 * entering and leaving the place. */
static void run_parts(call *c)
{
    size_t part;
    while ((part = atomic_fetch_add_explicit(&c->part.next, 1, memory_order_relaxed)) < c->parts)
        run_part(c, part);
}

/* ---- help ---- */

static bool note_host_call(call *c, size_t index)
{
    if (index == EMBLA_POOL_THREAD) return true;
    uint64_t bit = (uint64_t)1 << index % WORD_BITS;
    if (index < c->host_count &&
        !(atomic_fetch_or_explicit(&c->host_calls[index / WORD_BITS], bit, memory_order_relaxed) &
          bit))
        return true;
    atomic_store_explicit(&c->twice, index, memory_order_relaxed);
    return false;
}

/* Another thread may have another rounding mode, or flush small numbers to zero: then its results
 * would have other bits. So it works with the caller's settings. */
static void help(void *with, size_t index)
{
    call *c = with;
    if (!note_host_call(c, index)) return;
    const call *before = current;
    bool helped = helping;
    embla_rounding own = embla_rounding_get(), used = embla_rounding_take(&own, &c->rounding);
    helping = helped || before != c; /* a host may call a part on the calling thread itself */
    current = c;
    run_parts(c);
    current = before;
    helping = helped;
    embla_rounding_write(&used, &own);
}

/* ---- the host's function ---- */

/* `users` counts the loops that run in parallel now. CHANGING is set while the fields are written:
 * a loop that begins then stays on its own thread. Setting it acquires, and clearing it releases,
 * the fields; so do beginning and ending a loop. */
enum { CHANGING = 1 << 30 };
static atomic_int users;
static embla_parallel_run host_run; /* NULL means our own pool */
static void *host_context;
static atomic_int host_threads; /* 0 means the default */

static int default_threads;
static embla_once counted;

static void count_threads(void)
{
    const char *asked =
        getenv("OMP_NUM_THREADS"); /* a list, one number for each level of nesting */
    long number = asked ? strtol(asked, NULL, 10) : 0;
    default_threads = number >= 1 && number <= THREADS_MOST ? (int)number : embla_cpus();
}

int embla_default_threads(void)
{
    if (current || !embla_pool_is_here()) return 1;
    int threads = atomic_load_explicit(&host_threads, memory_order_relaxed);
    if (threads > 0) return threads;
    embla_once_run(&counted, count_threads);
    return default_threads;
}

size_t embla_share_width(void)
{
    return current ? current->parts : 1;
}

bool embla_share_is_caller(void)
{
    return !helping;
}

embla_status embla_set_parallel(embla_parallel_run run, void *context, int threads)
{
    int none = 0;
    if (threads < (run ? 1 : 0) || threads > THREADS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "embla_set_parallel: threads is %d; it must be from %d to %d", threads,
                          run ? 1 : 0, THREADS_MOST);
    if (!embla_pool_is_here())
        return embla_fail(
            EMBLA_ERR_UNSUPPORTED,
            "embla_set_parallel: this process was forked after its parent used Embla's "
            "threads; it uses the calling thread only");
    if (!atomic_compare_exchange_strong_explicit(&users, &none, CHANGING, memory_order_acquire,
                                                 memory_order_relaxed))
        return embla_fail(EMBLA_ERR_BUSY,
                          "embla_set_parallel: a call runs in parallel now; set the "
                          "function before or after all calls");
    host_run = run;
    host_context = context;
    atomic_store_explicit(&host_threads, threads, memory_order_relaxed);
    atomic_fetch_sub_explicit(&users, CHANGING, memory_order_release);
    return EMBLA_OK;
}

static void host_part(void *place, size_t index)
{
    (void)embla_place_help(place, index);
}

/* The host has kept its contract: it called each part once, and all have returned. */
static embla_status check_host(call *c, embla_place_end end)
{
    size_t twice = atomic_load_explicit(&c->twice, memory_order_relaxed), dropped = 0;
    if (c->host_count == 0) return EMBLA_OK;
    if (twice != SIZE_MAX)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the function of embla_set_parallel called part %zu %s of %zu parts",
                          twice, twice < c->host_count ? "twice," : "", c->host_count);
    while (dropped < c->host_count &&
           atomic_load_explicit(&c->host_calls[dropped / WORD_BITS], memory_order_relaxed) >>
                   dropped % WORD_BITS &
               1)
        dropped++;
    if (dropped < c->host_count)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the function of embla_set_parallel did not call part %zu of %zu parts",
                          dropped, c->host_count);
    if (end == EMBLA_PLACE_WAITED)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the function of embla_set_parallel returned before its %zu parts did",
                          c->host_count);
    return EMBLA_OK;
}

/* ---- a call ---- */

/* Field by field: to clear the message and the bits would take longer than an empty loop. */
static void prepare(call *c, size_t parts, size_t count, size_t grain)
{
    c->parts = parts;
    c->count = count;
    c->grain = grain;
    c->tiles = grain > 0 ? (count - 1) / grain + 1 : 0;
    c->rounding = embla_rounding_get();
    c->status = EMBLA_OK;
    c->host_count = 0;
    atomic_init(&c->part.next, 0);
    atomic_init(&c->tile.next, 0);
    atomic_init(&c->failed, SIZE_MAX);
    atomic_init(&c->twice, SIZE_MAX);
    if (!host_run) return;
    size_t threads = (size_t)atomic_load_explicit(&host_threads, memory_order_relaxed);
    c->host_count = parts < threads ? parts : threads;
    for (size_t i = 0; i * WORD_BITS < c->host_count; i++) atomic_init(&c->host_calls[i], 0);
}

/* After the host's function has returned, the caller does what is left, if it dropped a part. */
static embla_status run_call(call *c, embla_place *place)
{
    current = c;
    if (c->host_count > 0)
        host_run(host_context, c->host_count, host_part, place);
    else
        embla_pool_call((int)(c->parts < THREADS_MOST ? c->parts : THREADS_MOST) - 1);
    run_parts(c);
    current = NULL;
    embla_place_end end = embla_place_close(place);
    if (end == EMBLA_PLACE_LOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "this process was forked inside a loop whose other threads it lacks");
    if (c->status != EMBLA_OK) return embla_fail(c->status, "%s", c->sentence);
    return check_host(c, end);
}

embla_status embla_share_parts(size_t parts, size_t count, size_t grain, embla_share_fn *body,
                               void *job)
{
    size_t most = grain > 0 ? (count - 1) / grain + 1 : count;
    if (parts > most) parts = most;
    if (parts <= 1 || current || !embla_pool_is_here()) return body(job, 0, count, 0);
    call c;
    embla_place *place = NULL;
    if (atomic_fetch_add_explicit(&users, 1, memory_order_acquire) < CHANGING) {
        prepare(&c, parts, count, grain);
        c.body = body;
        c.job = job;
        place = embla_place_open(help, &c, c.host_count > 0);
    }
    embla_status status = place ? run_call(&c, place) : body(job, 0, count, 0);
    atomic_fetch_sub_explicit(&users, 1, memory_order_release);
    return status;
}
