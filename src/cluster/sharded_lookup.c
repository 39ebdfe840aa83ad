/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups in a sharded table.
 *
 *   row numbers -> different rows, ordered by owner      (places)
 *   counts, then row numbers, to their owners            (send_counts, send_numbers)
 *   owners: rows, as they are stored, to those who asked (send_rows)
 *   rows -> vectors, one for each row number             (finish)
 *
 * Each exchange is started, and the next one follows when it is done: embla_sharded_lookup_poll and
 * _finish go on from where the lookup is.
 *
 * Rows of ranks on the same host are not sent: they are read from the window. If all ranks are on
 * one host, nothing is exchanged at all, and rows are not even counted: the lookup is the one of a
 * table.
 */
#include "cluster/sharded.h"

#include <string.h>

#include "lookup/lookup.h"
#include "lookup/unique.h"

/* ---- check ---- */

embla_status embla_sharded_idle(const embla_sharded *s)
{
    if (!s->busy) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_BUSY,
                      "a lookup is under way in the sharded table; finish it before another call");
}

static embla_status check(const embla_sharded *s, const int64_t *rows, size_t count)
{
    if (count > s->options.capacity)
        return embla_fail(EMBLA_ERR_ARGUMENT, "count is %zu; the capacity is %zu row numbers",
                          count, s->options.capacity);
    if (count > 0 && !rows)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu row numbers, but the list is NULL", count);
    return embla_lookup_check_rows(rows, count, s->options.rows, "row");
}

/* ---- one host ---- */

/* Writes the rows in `near` of the row numbers to where. */
static void find_near(embla_sharded *s, const int64_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) s->where[i] = embla_sharded_at(s, s->near_of, rows[i]);
}

/* ---- places ---- */

/* The list that a different row is in: its rank, or the last list if it is near. */
static size_t list_of(const embla_sharded *s, int64_t row)
{
    int rank = embla_sharded_rank(s, row);
    bool here = rank == s->comm->rank || s->near_first[rank] >= 0;
    return here ? (size_t)s->comm->size : (size_t)rank;
}

/* Orders the different rows by list: their places in staged, their numbers at their owners, and the
 * number of rows of each list. */
static void find_places(embla_sharded *s)
{
    size_t lists = (size_t)s->comm->size + 1, *counts = s->counts, *at = s->counts + 3 * lists;
    const int64_t *last = s->near ? s->near_of : s->local_of;
    memset(counts, 0, lists * sizeof *counts);
    for (size_t u = 0; u < s->unique; u++) {
        size_t list = list_of(s, s->found[u]);
        counts[list]++;
        s->place[u] = (int64_t)list;
    }
    at[0] = 0;
    for (size_t i = 1; i < lists; i++) at[i] = at[i - 1] + counts[i - 1];
    for (size_t u = 0; u < s->unique; u++) {
        size_t list = (size_t)s->place[u], place = at[list]++;
        s->place[u] = (int64_t)place;
        s->numbers[place] =
            embla_sharded_at(s, list == lists - 1 ? last : s->local_of, s->found[u]);
    }
    for (size_t i = 0; i < s->count; i++) s->where[i] = s->place[s->where[i]];
}

/* Makes room for rows that are fetched. */
static embla_status room_staged(embla_sharded *s)
{
    if ((int64_t)s->unique <= s->staged_rows) return EMBLA_OK;
    int64_t rows = (int64_t)s->unique + (int64_t)s->unique / 4;
    embla_table_free(s->staged);
    s->staged = NULL;
    s->staged_rows = 0;
    EMBLA_TRY(embla_table_new(s->options.dtype, rows, s->options.dim, NULL, &s->staged));
    s->staged_rows = rows;
    return EMBLA_OK;
}

/* ---- exchanges ---- */

static size_t sum_of(const size_t *counts, int ranks)
{
    size_t sum = 0;
    for (int r = 0; r < ranks; r++) sum += counts[r];
    return sum;
}

/* Begins an exchange. Without functions for that it is made at once. */
static embla_status send(embla_sharded *s, embla_sharded_stage stage, const embla_exchange *e)
{
    const embla_comm *c = s->comm;
    s->stage = stage;
    if (c->start && c->poll) return c->start(c->owner, e, &s->request);
    return c->alltoallv(c->owner, e);
}

/* Tells every owner how many rows it is asked for. */
static embla_status send_counts(embla_sharded *s)
{
    size_t lists = (size_t)s->comm->size + 1, *ones = s->counts + 2 * lists;
    for (size_t r = 0; r < lists; r++) ones[r] = 1;
    const embla_exchange exchange = {.send = s->counts,
                                     .send_counts = ones,
                                     .receive = s->counts + lists,
                                     .receive_counts = ones,
                                     .unit = sizeof(size_t)};
    return send(s, EMBLA_SHARDED_COUNTS, &exchange);
}

/* Rows that others want from us: a number for each rank. */
static const size_t *wanted(const embla_sharded *s)
{
    return s->counts + s->comm->size + 1;
}

static embla_status send_numbers(embla_sharded *s)
{
    EMBLA_TRY(embla_sharded_room(&s->asked,
                                 (sum_of(wanted(s), s->comm->size) + 1) * sizeof(int64_t),
                                 "the row numbers that other ranks ask for"));
    const embla_exchange exchange = {.send = s->numbers,
                                     .send_counts = s->counts,
                                     .receive = s->asked.memory,
                                     .receive_counts = wanted(s),
                                     .unit = sizeof(int64_t)};
    return send(s, EMBLA_SHARDED_NUMBERS, &exchange);
}

/* Sends the rows that others asked for, and receives ours into staged. */
static embla_status send_rows(embla_sharded *s)
{
    size_t row_bytes = embla_table_row_bytes(s->table), n = sum_of(wanted(s), s->comm->size);
    const embla_lookup_options raw = {.raw = true, .threads = s->options.threads};
    EMBLA_TRY(embla_sharded_room(&s->answer, (n + 1) * row_bytes, "rows for other ranks"));
    EMBLA_TRY(embla_lookup_rows(s->table, s->asked.memory, n, &raw, s->answer.memory));
    const embla_exchange exchange = {.send = s->answer.memory,
                                     .send_counts = wanted(s),
                                     .receive = s->staged ? embla_table_data(s->staged) : NULL,
                                     .receive_counts = s->counts,
                                     .unit = row_bytes};
    return send(s, EMBLA_SHARDED_ROWS, &exchange);
}

/* Goes on as far as exchanges are done, or (wait) to the end. */
static embla_status advance(embla_sharded *s, bool wait)
{
    while (s->stage != EMBLA_SHARDED_NOTHING) {
        bool done = true;
        if (s->request) EMBLA_TRY(s->comm->poll(s->comm->owner, s->request, wait, &done));
        if (!done) return EMBLA_OK;
        s->request = NULL;
        if (s->stage == EMBLA_SHARDED_COUNTS)
            EMBLA_TRY(send_numbers(s));
        else if (s->stage == EMBLA_SHARDED_NUMBERS)
            EMBLA_TRY(send_rows(s));
        else
            s->stage = EMBLA_SHARDED_NOTHING;
    }
    return EMBLA_OK;
}

/* Copies the rows of this host to staged, after those that are received. */
static embla_status fetch_near(embla_sharded *s)
{
    size_t far = sum_of(s->counts, s->comm->size), n = s->unique - far;
    const embla_lookup_options raw = {.raw = true, .threads = s->options.threads};
    if (n == 0) return EMBLA_OK;
    char *to = embla_table_data(s->staged);
    return embla_lookup_rows(s->near ? s->near : s->table, s->numbers + far, n, &raw,
                             to + far * embla_table_row_bytes(s->staged));
}

/* ---- the calls ---- */

/* Finds the different rows and their places. Without memory for them there are none. */
static embla_status find_rows(embla_sharded *s, const int64_t *rows)
{
    s->unique = embla_unique_find(rows, s->count, s->slots, s->found, s->where);
    embla_status status = room_staged(s);
    if (status != EMBLA_OK) s->count = s->unique = 0;
    find_places(s);
    return status;
}

embla_status embla_sharded_lookup_start(embla_sharded *sharded, const int64_t *rows, size_t count)
{
    embla_sharded *s = sharded;
    EMBLA_NEED(sharded);
    EMBLA_TRY(embla_sharded_idle(s));
    embla_status status = check(s, rows, count);
    s->count = status == EMBLA_OK ? count : 0;
    if (s->all_near) {
        find_near(s, rows, s->count);
    } else {
        embla_status found = find_rows(s, rows);
        EMBLA_TRY(send_counts(s));
        if (found == EMBLA_OK) found = fetch_near(s);
        if (status == EMBLA_OK) status = found;
    }
    if (status != EMBLA_OK) { /* this rank takes part without rows, so that no other waits for it */
        EMBLA_TRY(advance(s, true));
        return status;
    }
    s->busy = true;
    return EMBLA_OK;
}

embla_status embla_sharded_lookup_poll(embla_sharded *sharded)
{
    if (!sharded || !sharded->busy)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_sharded_lookup_poll: no lookup is under way");
    return advance(sharded, false);
}

void embla_sharded_settle(embla_sharded *s)
{
    if (s->busy && advance(s, true) != EMBLA_OK) s->stage = EMBLA_SHARDED_NOTHING;
    s->busy = false;
}

/* Writes the rows of a started lookup, as floats or as they are stored. */
static embla_status finish(embla_sharded *s, bool raw, void *out)
{
    s->busy = false;
    EMBLA_TRY(advance(s, true));
    if (s->count == 0) return EMBLA_OK;
    const embla_lookup_options options = {
        .raw = raw, .out_dtype = raw ? 0 : EMBLA_F32, .threads = s->options.threads};
    return embla_lookup_rows(s->all_near ? s->near : s->staged, s->where, s->count, &options, out);
}

embla_status embla_sharded_lookup_finish(embla_sharded *sharded, float *out)
{
    if (!sharded || !sharded->busy)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "embla_sharded_lookup_finish: no lookup is under way");
    return finish(sharded, false, out);
}

embla_status embla_sharded_lookup(embla_sharded *sharded, const int64_t *rows, size_t count,
                                  float *out)
{
    EMBLA_NEED(sharded);
    EMBLA_TRY(embla_sharded_lookup_start(sharded, rows, count));
    return finish(sharded, false, out);
}

embla_status embla_sharded_fetch(embla_sharded *sharded, const int64_t *rows, size_t count,
                                 void *out)
{
    EMBLA_TRY(embla_sharded_lookup_start(sharded, rows, count));
    return finish(sharded, true, out);
}
