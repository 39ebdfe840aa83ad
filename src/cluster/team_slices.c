/* SPDX-License-Identifier: Apache-2.0 */
/* Slices are sent in rounds, a piece of each at a time, so that the memory for it stays small and
 * in the cache.
 */
#include "cluster/team_slices.h"

#include <string.h>

#include "base/layout.h"
#include "base/mem.h"
#include "cluster/exact.h"

enum {
    SENT = 2 << 20,     /* bytes from all ranks at once.. */
    SENT_LEAST = 16384, /* ..or more, with this many from each rank */
    LINE = 64           /* a piece is whole cache lines, so it begins and ends with a number */
};

embla_status embla_team_slices_new(const embla_comm *comm, size_t count, embla_team_slices *out)
{
    embla_layout layout = {0};
    void *memory = NULL;
    size_t ranks = (size_t)comm->size, slice = embla_exact_slice(count, ranks);
    size_t sent = SENT / ranks > SENT_LEAST ? SENT / ranks : SENT_LEAST;
    sent = sent / LINE * LINE;
    if (sent > slice * sizeof(float)) sent = slice * sizeof(float);
    size_t sending = embla_layout_add(&layout, ranks > 1 ? ranks : 0, sent);
    size_t received = embla_layout_add(&layout, ranks > 1 ? ranks : 0, sent);
    EMBLA_TRY(embla_mem_new(layout.bytes, "slices of all ranks", &memory));
    char *block = memory;
    *out = (embla_team_slices){.comm = comm,
                               .slice = slice,
                               .sent = sent,
                               .sending = block + sending,
                               .received = block + received,
                               .bytes = layout.bytes};
    return EMBLA_OK;
}

void embla_team_slices_free(embla_team_slices *slices)
{
    embla_mem_free(slices->sending, slices->bytes);
    *slices = (embla_team_slices){0};
}

/* Bytes of a slice that are still there: of those of rank r, from `at` on, at most `most`. */
static size_t bytes_at(size_t bytes, size_t slice, size_t r, size_t at, size_t most)
{
    size_t from = r * slice + at, left = from < bytes ? bytes - from : 0;
    return left < most ? left : most;
}

embla_status embla_team_slices_gather(const embla_team_slices *s, void *values, size_t bytes,
                                      size_t slice, bool everyone)
{
    const embla_comm *c = s->comm;
    size_t rank = (size_t)c->rank, ranks = (size_t)c->size;
    char *all = values;
    for (size_t at = 0, n; at < slice && ranks > 1; at += n) {
        n = slice - at < s->sent ? slice - at : s->sent;
        size_t mine = bytes_at(bytes, slice, rank, at, n);
        if (mine > 0) memcpy(s->sending, all + rank * slice + at, mine);
        EMBLA_TRY(c->allgather(c->owner, s->sending, s->received, n));
        for (size_t r = 0; r < ranks && (everyone || rank == 0); r++) {
            size_t some = r == rank ? 0 : bytes_at(bytes, slice, r, at, n);
            if (some > 0) memcpy(all + r * slice + at, s->received + r * n, some);
        }
    }
    return EMBLA_OK;
}

/* Moves the next piece of each slice to what is sent. */
static void take_pieces(const embla_team_slices *s, char *all, size_t bytes, size_t at, size_t n)
{
    size_t slice = s->slice * sizeof(float);
    for (size_t r = 0; r < (size_t)s->comm->size; r++) {
        size_t some = bytes_at(bytes, slice, r, at, n);
        if (some == 0) continue;
        memcpy(s->sending + r * n, all + r * slice + at, some);
        memset(all + r * slice + at, 0, some);
    }
}

embla_status embla_team_slices_sum(const embla_team_slices *s, float *values, size_t count)
{
    const embla_comm *c = s->comm;
    size_t slice = s->slice * sizeof *values, bytes = count * sizeof *values;
    size_t rank = (size_t)c->rank, ranks = (size_t)c->size;
    for (size_t at = 0, n; at < slice && ranks > 1; at += n) {
        n = slice - at < s->sent ? slice - at : s->sent;
        take_pieces(s, (char *)values, bytes, at, n);
        EMBLA_TRY(c->alltoall(c->owner, s->sending, s->received, n));
        size_t mine = bytes_at(bytes, slice, rank, at, n) / sizeof *values;
        for (size_t r = 0; r < ranks && mine > 0; r++) {
            float *to = values + rank * s->slice + at / sizeof *values;
            const float *from = (const float *)(void *)(s->received + r * n);
            for (size_t i = 0; i < mine; i++) to[i] += from[i];
        }
    }
    return EMBLA_OK;
}
