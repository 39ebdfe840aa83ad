/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator whose ranks are threads of the test: 1, 2, 3 or more ranks without MPI, and under
 * sanitizers.
 *
 *   static embla_status body(const embla_comm *comm, void *context) { .. }
 *   ..
 *   thread_comm_run(3, body, &context);            // every rank must succeed
 *   thread_comm_try(3, body, &context, results);   // or look at what each returned
 *
 * cmocka's assertions belong to the thread of the test. A body returns a status instead, and leaves
 * what shall be checked in its context. Mistakes do not hang: a call fails if another rank has
 * ended, or makes another call. An exchange that is started is done when it is waited for, so one
 * that is used too early, or whose buffers change too early, gives wrong results.
 */
#ifndef EMBLA_TESTS_THREAD_COMM_H
#define EMBLA_TESTS_THREAD_COMM_H

#include <pthread.h>
#include <stdio.h>

#include "check.h"

#include "base/status.h"
#include "embla_cluster.h"

enum { THREAD_RANKS_MOST = 16 };

/* What a rank shows to the others in a call. */
typedef struct {
    const char *call;
    const void *send;
    size_t count; /* bytes or numbers: must be equal on all ranks, except in alltoallv */
    const embla_exchange *exchange;
} thread_shown;

typedef struct {
    int size, per_host; /* ranks; ranks on each host */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int waiting, ended;
    unsigned long round; /* how often all ranks have met */
    thread_shown shown[THREAD_RANKS_MOST];
} thread_world;

typedef embla_status thread_body(const embla_comm *comm, void *context);

typedef struct {
    embla_status status;
    char sentence[512]; /* of a failure */
} thread_result;

typedef struct {
    thread_world *world;
    embla_comm comm;
    thread_body *body;
    void *context;
    thread_result result;
} thread_rank;

/* ---- meeting ---- */

/* Waits until all ranks are here. */
static inline embla_status thread_meet(thread_rank *me)
{
    thread_world *w = me->world;
    embla_status status = EMBLA_OK;
    (void)pthread_mutex_lock(&w->lock);
    unsigned long round = w->round;
    if (++w->waiting == w->size) {
        w->waiting = 0;
        w->round++;
        (void)pthread_cond_broadcast(&w->changed);
    }
    while (w->round == round && w->ended == 0) (void)pthread_cond_wait(&w->changed, &w->lock);
    if (w->round == round) {
        w->waiting--;
        status = EMBLA_ERR_IO;
    }
    (void)pthread_mutex_unlock(&w->lock);
    if (status == EMBLA_OK) return EMBLA_OK;
    return embla_fail(status, "rank %d waits, but another rank has ended", me->comm.rank);
}

/* Shows something to the other ranks. They may read it until the next meeting. */
static inline embla_status thread_show(thread_rank *me, thread_shown shown)
{
    const thread_shown *all = me->world->shown;
    me->world->shown[me->comm.rank] = shown;
    EMBLA_TRY(thread_meet(me));
    for (int r = 0; r < me->comm.size; r++)
        if (strcmp(all[r].call, shown.call) != 0 || all[r].count != shown.count)
            return embla_fail(EMBLA_ERR_ARGUMENT, "rank %d calls %s of %zu, but rank %d %s of %zu",
                              me->comm.rank, shown.call, shown.count, r, all[r].call, all[r].count);
    return EMBLA_OK;
}

/* ---- the functions of a communicator ---- */

static inline embla_status thread_alltoall(void *owner, const void *send, void *receive,
                                           size_t bytes)
{
    thread_rank *me = owner;
    EMBLA_TRY(thread_show(me, (thread_shown){.call = "alltoall", .send = send, .count = bytes}));
    for (int r = 0; r < me->comm.size && bytes > 0; r++)
        memcpy((char *)receive + (size_t)r * bytes,
               (const char *)me->world->shown[r].send + (size_t)me->comm.rank * bytes, bytes);
    return thread_meet(me);
}

static inline embla_status thread_allgather(void *owner, const void *send, void *receive,
                                            size_t bytes)
{
    thread_rank *me = owner;
    EMBLA_TRY(thread_show(me, (thread_shown){.call = "allgather", .send = send, .count = bytes}));
    for (int r = 0; r < me->comm.size && bytes > 0; r++)
        memcpy((char *)receive + (size_t)r * bytes, me->world->shown[r].send, bytes);
    return thread_meet(me);
}

static inline embla_status thread_alltoallv(void *owner, const embla_exchange *e)
{
    thread_rank *me = owner;
    embla_status status = EMBLA_OK;
    char *to = e->receive;
    EMBLA_TRY(thread_show(
        me, (thread_shown){.call = "alltoallv", .send = e->send, .count = e->unit, .exchange = e}));
    for (int r = 0; r < me->comm.size && status == EMBLA_OK; r++) {
        const embla_exchange *theirs = me->world->shown[r].exchange;
        const char *from = theirs->send;
        for (int k = 0; k < me->comm.rank; k++)
            if (theirs->send_counts[k] > 0) from += theirs->send_counts[k] * e->unit;
        size_t sent = theirs->send_counts[me->comm.rank], wanted = e->receive_counts[r];
        if (sent != wanted)
            status = embla_fail(EMBLA_ERR_ARGUMENT,
                                "rank %d sends %zu items to rank %d, which receives %zu", r, sent,
                                me->comm.rank, wanted);
        else if (sent > 0)
            memcpy(to, from, sent * e->unit);
        if (wanted > 0) to += wanted * e->unit;
    }
    embla_status met = thread_meet(me);
    return status == EMBLA_OK ? met : status;
}

/* Sums and maxima are in the order of ranks, the same bits on every rank. */
#define THREAD_REDUCE(name, type)                                                                  \
    static inline void name(const thread_world *w, size_t count, embla_comm_op op, type *out)      \
    {                                                                                              \
        for (int r = 0; r < w->size; r++) {                                                        \
            const type *x = w->shown[r].send;                                                      \
            for (size_t i = 0; i < count; i++)                                                     \
                out[i] = r == 0                    ? x[i]                                          \
                         : op == EMBLA_COMM_OP_SUM ? out[i] + x[i]                                 \
                         : x[i] > out[i]           ? x[i]                                          \
                                                   : out[i];                                                 \
        }                                                                                          \
    }
THREAD_REDUCE(thread_reduce_float, float)
THREAD_REDUCE(thread_reduce_double, double)
THREAD_REDUCE(thread_reduce_int64, int64_t)

static inline embla_status thread_allreduce(void *owner, void *values, size_t count,
                                            embla_comm_type type, embla_comm_op op)
{
    thread_rank *me = owner;
    size_t bytes = count * (type == EMBLA_COMM_TYPE_FLOAT ? sizeof(float) : sizeof(double));
    EMBLA_TRY(thread_show(me, (thread_shown){.call = "allreduce", .send = values, .count = bytes}));
    void *out = malloc(bytes > 0 ? bytes : 1);
    if (!out) return embla_fail(EMBLA_ERR_MEMORY, "no memory for %zu bytes", bytes);
    if (type == EMBLA_COMM_TYPE_FLOAT)
        thread_reduce_float(me->world, count, op, out);
    else if (type == EMBLA_COMM_TYPE_DOUBLE)
        thread_reduce_double(me->world, count, op, out);
    else
        thread_reduce_int64(me->world, count, op, out);
    embla_status status = thread_meet(me); /* from here on nobody reads values */
    if (status == EMBLA_OK && bytes > 0) memcpy(values, out, bytes);
    free(out);
    return status;
}

static inline embla_status thread_barrier(void *owner, int seconds)
{
    (void)seconds;
    EMBLA_TRY(thread_show(owner, (thread_shown){.call = "barrier"}));
    return thread_meet(owner);
}

static inline embla_status thread_start(void *owner, const embla_exchange *e, void **request)
{
    (void)owner;
    embla_exchange *kept = malloc(sizeof *kept);
    if (!kept) return embla_fail(EMBLA_ERR_MEMORY, "no memory for an exchange");
    *kept = *e;
    *request = kept;
    return EMBLA_OK;
}

static inline embla_status thread_poll(void *owner, void *request, bool wait, bool *done)
{
    *done = wait;
    if (!wait) return EMBLA_OK;
    embla_status status = thread_alltoallv(owner, request);
    free(request);
    return status;
}

/* The memory of a host's ranks is one block, as with MPI. Ranks of other hosts do not see it. */
static inline embla_status thread_window_new(void *owner, size_t bytes, embla_comm_window *out)
{
    thread_rank *me = owner;
    int n = me->comm.size, per_host = me->world->per_host;
    int first = me->comm.rank / per_host * per_host;
    int here = n - first < per_host ? n - first : per_host;
    void *mine = NULL, **parts = calloc((size_t)n, sizeof *parts);
    size_t whole = ((size_t)here * bytes + 64) / 64 * 64;
    if (first == me->comm.rank) mine = aligned_alloc(64, whole);
    if (mine) memset(mine, 0, whole);
    embla_status status = embla_fail(EMBLA_ERR_MEMORY, "no memory for %zu bytes", bytes);
    if (parts) status = thread_allgather(me, &mine, parts, sizeof mine);
    if (status == EMBLA_OK && !parts[first]) status = EMBLA_ERR_MEMORY;
    if (status != EMBLA_OK) {
        free(mine);
        free(parts);
        return status;
    }
    char *base = parts[first];
    for (int r = 0; r < n; r++)
        parts[r] = r / per_host == first / per_host ? base + (size_t)(r - first) * bytes : NULL;
    *out = (embla_comm_window){.parts = parts, .handle = mine ? mine : parts};
    return EMBLA_OK;
}

static inline void thread_window_free(void *owner, embla_comm_window *window)
{
    if (!window->handle) return;
    (void)thread_meet(owner); /* the others may still read */
    if (window->handle != window->parts) free(window->handle);
    free(window->parts);
    *window = (embla_comm_window){0};
}

/* A rank cannot end other threads. They fail when this one has returned. */
static inline void thread_abort(void *owner, const char *why)
{
    (void)owner, (void)why;
}

/* ---- running ---- */

static inline void *thread_main(void *argument)
{
    thread_rank *me = argument;
    thread_world *w = me->world;
    me->result.status = me->body(&me->comm, me->context);
    if (me->result.status != EMBLA_OK)
        (void)snprintf(me->result.sentence, sizeof me->result.sentence, "%s", embla_error());
    (void)pthread_mutex_lock(&w->lock);
    w->ended++;
    (void)pthread_cond_broadcast(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Runs body on each of `size` ranks, with the same context; per_host of them share memory. results
 * gets what each returned. */
static inline void thread_comm_hosts(int size, int per_host, thread_body *body, void *context,
                                     thread_result *results)
{
    thread_world world = {.size = size, .per_host = per_host};
    thread_rank ranks[THREAD_RANKS_MOST] = {0};
    pthread_t threads[THREAD_RANKS_MOST];
    assert_in_range(size, 1, THREAD_RANKS_MOST);
    (void)pthread_mutex_init(&world.lock, NULL);
    (void)pthread_cond_init(&world.changed, NULL);
    for (int r = 0; r < size; r++) {
        ranks[r] = (thread_rank){.world = &world, .body = body, .context = context};
        ranks[r].comm = (embla_comm){.owner = &ranks[r],
                                     .rank = r,
                                     .size = size,
                                     .name = "threads",
                                     .alltoall = thread_alltoall,
                                     .alltoallv = thread_alltoallv,
                                     .allreduce = thread_allreduce,
                                     .allgather = thread_allgather,
                                     .barrier = thread_barrier,
                                     .start = thread_start,
                                     .poll = thread_poll,
                                     .window_new = thread_window_new,
                                     .window_free = thread_window_free,
                                     .abort = thread_abort};
    }
    for (int r = 0; r < size; r++)
        assert_int_equal(pthread_create(&threads[r], NULL, thread_main, &ranks[r]), 0);
    for (int r = 0; r < size; r++) (void)pthread_join(threads[r], NULL);
    for (int r = 0; r < size; r++) results[r] = ranks[r].result;
    (void)pthread_cond_destroy(&world.changed);
    (void)pthread_mutex_destroy(&world.lock);
}

/* Every rank must have succeeded. The cause is shown, not that other ranks waited in vain. */
static inline void thread_comm_check(int size, const thread_result *results)
{
    int failed = -1;
    for (int r = 0; r < size; r++)
        if (results[r].status != EMBLA_OK &&
            (failed < 0 || strstr(results[failed].sentence, "another rank has ended")))
            failed = r;
    if (failed >= 0) fail_msg("rank %d of %d: %s", failed, size, results[failed].sentence);
}

/* The same on one host. */
static inline void thread_comm_try(int size, thread_body *body, void *context,
                                   thread_result *results)
{
    thread_comm_hosts(size, size, body, context, results);
}

/* The same; every rank must succeed. */
static inline void thread_comm_run(int size, thread_body *body, void *context)
{
    thread_result results[THREAD_RANKS_MOST];
    thread_comm_try(size, body, context, results);
    thread_comm_check(size, results);
}

#endif
