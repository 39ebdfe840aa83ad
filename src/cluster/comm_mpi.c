/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator over MPI 3.1. The only file that includes mpi.h; libembla_mpi is this file alone.
 *
 * Every collective call is a non-blocking one and a loop that tests it. So a rank that is lost, or
 * a network that is cut, ends in a failure after some seconds and not in a wait for ever. While it
 * waits, a rank offers its core to others: there may be more ranks than cores.
 *
 * Counts are numbers of items of a committed datatype, because MPI 3.1 counts with an int: 2^31
 * rows, not bytes. Windows are made by allocate, which all implementations have right, and freed on
 * every path, because MPICH ends the process over one that is left. But after a rank is lost,
 * nothing is freed: MPI would wait for it.
 *
 * Memory is taken when ranks join, or before they agree, so that none fails alone in a call.
 */
#include "cluster/comm.h"

#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TYPES = 8,
    NAME = 64,
    ANSWER = 10,     /* seconds for ranks to answer a roll call */
    PIECE = 1 << 18, /* bytes of a piece of a large sum */
    EAGER = 1000     /* tests of a request before others get the core: some 50 us */
};

/* This file links nothing of Embla, so it has a clock of its own. */
static double clock_seconds(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A committed datatype of `unit` bytes. */
typedef struct {
    size_t unit;
    MPI_Datatype type;
} item_type;

/* A started exchange: MPI keeps pointers to the counts. */
typedef struct {
    MPI_Request request;
    bool taken;
    int counts[]; /* 4 x size */
} started;

/* The owner of a communicator. */
typedef struct {
    embla_comm comm;
    embla_mpi_host host;
    MPI_Comm all;    /* a duplicate, so that our messages meet no others */
    MPI_Comm roll;   /* for roll calls */
    MPI_Comm node;   /* the ranks of this host */
    int *node_ranks; /* for each rank, its number in node, or MPI_UNDEFINED */
    int *counts;     /* 4 x size: what MPI wants as int */
    char *received;  /* pieces of a sum, one of each rank */
    started *first;  /* for an exchange; those beside it take memory */
    item_type types[TYPES];
    size_t next_type;
    char name[NAME];
    bool started; /* MPI was started here, and must be ended here */
    bool lost;    /* a rank does not answer */
} job;

/* ---- errors ---- */

static embla_status failed(const job *j, const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    (void)MPI_Error_string(code, text, &length);
    j->host.say("rank %d of %d: %s failed in MPI: %s", j->comm.rank, j->comm.size, what, text);
    return EMBLA_ERR_IO;
}

/* ---- memory ---- */

static embla_status take(const job *j, size_t bytes, void *out)
{
    void *memory = NULL;
    embla_status status = j->host.mem_new(bytes, "a communicator", &memory);
    memcpy(out, &memory, sizeof memory);
    return status;
}

static void drop(const job *j, void *memory, size_t bytes)
{
    j->host.mem_free(memory, bytes);
}

static size_t counts_bytes(const job *j)
{
    return 4 * (size_t)j->comm.size * sizeof(int);
}

static size_t started_bytes(const job *j)
{
    return sizeof(started) + counts_bytes(j);
}

static size_t received_bytes(const job *j)
{
    return j->comm.size > 1 ? (size_t)j->comm.size * PIECE : 0;
}

/* Adds " N" to a list in text. */
static void add_number(char *text, size_t size, int number)
{
    size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "%s%d", used > 0 ? ", " : "", number);
}

/* Sends a byte to every other rank and waits for theirs; writes the ranks that do not answer. All
 * ranks that wait in the same call come here at about the same time. Requests that stay open are
 * left to the end of the process. */
static void call_roll(const job *j, char *missing, size_t size)
{
    static char sent = 1;
    int others = j->comm.size;
    MPI_Request *requests = NULL;
    char *answers = NULL;
    double end = clock_seconds() + ANSWER;
    int open = others - 1;
    missing[0] = '\0';
    if (take(j, (size_t)others * 2 * sizeof(MPI_Request), &requests) != EMBLA_OK ||
        take(j, (size_t)others, &answers) != EMBLA_OK)
        open = 0;
    for (int r = 0; open > 0 && r < others; r++) {
        requests[2 * r] = requests[2 * r + 1] = MPI_REQUEST_NULL;
        if (r == j->comm.rank) continue;
        (void)MPI_Irecv(answers + r, 1, MPI_CHAR, r, 0, j->roll, &requests[2 * r]);
        (void)MPI_Isend(&sent, 1, MPI_CHAR, r, 0, j->roll, &requests[2 * r + 1]);
    }
    while (open > 0 && clock_seconds() < end) {
        for (int r = 0; r < others; r++) {
            int done = 0;
            if (requests[2 * r] == MPI_REQUEST_NULL) continue;
            if (MPI_Test(&requests[2 * r], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done) open--;
        }
        (void)sched_yield();
    }
    for (int r = 0; open > 0 && r < others; r++)
        if (requests[2 * r] != MPI_REQUEST_NULL) add_number(missing, size, r);
    /* answers and requests stay: MPI may still write to them */
}

static embla_status too_long(job *j, const char *what, int seconds)
{
    char missing[256];
    call_roll(j, missing, sizeof missing);
    j->lost = j->lost || missing[0];
    if (missing[0])
        j->host.say("rank %d of %d waited %d seconds for %s; no answer from rank %s. The process "
                    "has ended or hangs, or the network is cut",
                    j->comm.rank, j->comm.size, seconds, what, missing);
    else
        j->host.say("rank %d of %d waited %d seconds for %s; all ranks still answer: one of them "
                    "is too slow, or made another call",
                    j->comm.rank, j->comm.size, seconds, what);
    return EMBLA_ERR_IO;
}

/* ---- waiting ---- */

/* Tests a request until it is done, for at most `seconds`. The first tests follow each other; then
 * the core is offered to others between two of them. */
static embla_status wait_for(job *j, MPI_Request *request, const char *what, int seconds)
{
    double since = 0.0;
    for (unsigned long turn = 0;; turn++) {
        int done = 0, code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) return failed(j, what, code);
        if (done) return EMBLA_OK;
        if (turn < EAGER) continue;
        (void)sched_yield();
        if (turn % 256 != 0) continue;
        if (since == 0.0) since = clock_seconds();
        if (clock_seconds() - since > seconds) return too_long(j, what, seconds);
    }
}

static embla_status begun(job *j, int code, MPI_Request *request, const char *what)
{
    if (code != MPI_SUCCESS) return failed(j, what, code);
    return wait_for(j, request, what, j->host.patience);
}

/* ---- datatypes ---- */

/* The datatype of `unit` bytes. A few are kept. */
static embla_status type_of(job *j, size_t unit, MPI_Datatype *out)
{
    for (size_t i = 0; i < TYPES; i++)
        if (j->types[i].unit == unit) {
            *out = j->types[i].type;
            return EMBLA_OK;
        }
    if (unit < 1 || unit > INT_MAX) {
        j->host.say("an item of %zu bytes cannot be sent; at most %d bytes are possible", unit,
                    INT_MAX);
        return EMBLA_ERR_UNSUPPORTED;
    }
    item_type *slot = &j->types[j->next_type++ % TYPES];
    if (slot->unit > 0) (void)MPI_Type_free(&slot->type);
    slot->unit = 0;
    int code = MPI_Type_contiguous((int)unit, MPI_BYTE, &slot->type);
    if (code == MPI_SUCCESS) code = MPI_Type_commit(&slot->type);
    if (code != MPI_SUCCESS) return failed(j, "a datatype", code);
    slot->unit = unit;
    *out = slot->type;
    return EMBLA_OK;
}

/* Writes counts and offsets as int. */
static embla_status as_int(const job *j, const size_t *counts, int *out, int *at)
{
    size_t total = 0;
    for (int r = 0; r < j->comm.size; r++) {
        at[r] = (int)total;
        if (counts[r] > INT_MAX || (total += counts[r]) > INT_MAX) {
            j->host.say("an exchange of %zu items or more on rank %d; MPI counts up to %d: use "
                        "smaller batches",
                        total, j->comm.rank, INT_MAX);
            return EMBLA_ERR_UNSUPPORTED;
        }
        out[r] = (int)counts[r];
    }
    return EMBLA_OK;
}

/* ---- the functions of a communicator ---- */

static embla_status mpi_alltoall(void *owner, const void *send, void *receive, size_t bytes)
{
    job *j = owner;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Request request;
    embla_status status = type_of(j, bytes, &type);
    if (status != EMBLA_OK) return status;
    return begun(j, MPI_Ialltoall(send, 1, type, receive, 1, type, j->all, &request), &request,
                 "an all-to-all exchange");
}

/* Starts an exchange; counts is room for 4 x size numbers. */
static embla_status start_into(job *j, const embla_exchange *e, int *counts, MPI_Request *request)
{
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int n = j->comm.size;
    embla_status status = type_of(j, e->unit, &type);
    if (status == EMBLA_OK) status = as_int(j, e->send_counts, counts, counts + n);
    if (status == EMBLA_OK) status = as_int(j, e->receive_counts, counts + 2 * n, counts + 3 * n);
    if (status != EMBLA_OK) return status;
    int code = MPI_Ialltoallv(e->send, counts, counts + n, type, e->receive, counts + 2 * n,
                              counts + 3 * n, type, j->all, request);
    return code == MPI_SUCCESS ? EMBLA_OK : failed(j, "an exchange of rows", code);
}

static embla_status mpi_alltoallv(void *owner, const embla_exchange *e)
{
    job *j = owner;
    MPI_Request request;
    embla_status status = start_into(j, e, j->counts, &request);
    if (status != EMBLA_OK) return status;
    return wait_for(j, &request, "an exchange of rows", j->host.patience);
}

static void end_started(const job *j, started *s)
{
    s->taken = false;
    if (s != j->first) drop(j, s, started_bytes(j));
}

static embla_status mpi_start(void *owner, const embla_exchange *e, void **request)
{
    job *j = owner;
    started *s = j->first;
    embla_status status = s->taken ? take(j, started_bytes(j), &s) : EMBLA_OK;
    if (status != EMBLA_OK) return status;
    status = start_into(j, e, s->counts, &s->request);
    s->taken = status == EMBLA_OK;
    if (status != EMBLA_OK)
        end_started(j, s);
    else
        *request = s;
    return status;
}

static embla_status mpi_poll(void *owner, void *request, bool wait, bool *done)
{
    job *j = owner;
    started *s = request;
    int ended = 0;
    *done = false;
    if (wait) {
        embla_status status = wait_for(j, &s->request, "an exchange of rows", j->host.patience);
        if (status != EMBLA_OK) return status;
        ended = 1;
    } else {
        int code = MPI_Test(&s->request, &ended, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) return failed(j, "an exchange of rows", code);
    }
    if (ended) end_started(j, s);
    *done = ended != 0;
    return EMBLA_OK;
}

/* A sum or maximum of few values. */
static embla_status reduce_few(job *j, void *values, size_t count, MPI_Datatype type, MPI_Op op)
{
    MPI_Request request;
    return begun(j, MPI_Iallreduce(MPI_IN_PLACE, values, (int)count, type, op, j->all, &request),
                 &request, "a sum over all ranks");
}

/* The same of many: every rank gets a piece from each, combines them in the order of ranks, and
 * sends the result to all. Open MPI's Iallreduce takes three times as long. The pieces are of
 * `bytes` bytes; received has room for one from each rank. */
static embla_status reduce_piece(job *j, char *values, size_t bytes, char *received,
                                 MPI_Datatype number, size_t numbers, MPI_Op op)
{
    MPI_Request request;
    MPI_Datatype piece = MPI_DATATYPE_NULL;
    embla_status status = type_of(j, bytes, &piece);
    if (status != EMBLA_OK) return status;
    int code = MPI_Ialltoall(values, 1, piece, received, 1, piece, j->all, &request);
    status = begun(j, code, &request, "a sum over all ranks");
    if (status != EMBLA_OK) return status;
    for (int r = 1; r < j->comm.size && code == MPI_SUCCESS; r++)
        code = MPI_Reduce_local(received + (size_t)r * bytes, received, (int)numbers, number, op);
    if (code != MPI_SUCCESS) return failed(j, "a sum", code);
    code = MPI_Iallgather(received, 1, piece, values, 1, piece, j->all, &request);
    return begun(j, code, &request, "a sum over all ranks");
}

static embla_status mpi_allreduce(void *owner, void *values, size_t count, embla_comm_type type,
                                  embla_comm_op op)
{
    enum { FEW = 16384 }; /* bytes of all values */
    static const size_t sizes[] = {sizeof(float), sizeof(double), sizeof(int64_t)};
    const MPI_Datatype types[] = {MPI_FLOAT, MPI_DOUBLE, MPI_INT64_T};
    job *j = owner;
    char *at = values;
    size_t size = sizes[type], ranks = (size_t)j->comm.size;
    MPI_Op how = op == EMBLA_COMM_OP_MAX ? MPI_MAX : MPI_SUM;
    embla_status status = EMBLA_OK;
    if (ranks == 1) return EMBLA_OK;
    while (count * size > FEW && count >= ranks && status == EMBLA_OK) {
        size_t n = count / ranks < PIECE / size ? count / ranks : PIECE / size;
        status = reduce_piece(j, at, n * size, j->received, types[type], n, how);
        at += ranks * n * size;
        count -= ranks * n;
    }
    if (status != EMBLA_OK || count == 0) return status;
    return reduce_few(j, at, count, types[type], how);
}

static embla_status mpi_allgather(void *owner, const void *send, void *receive, size_t bytes)
{
    job *j = owner;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Request request;
    embla_status status = type_of(j, bytes, &type);
    if (status != EMBLA_OK) return status;
    return begun(j, MPI_Iallgather(send, 1, type, receive, 1, type, j->all, &request), &request,
                 "data of all ranks");
}

static embla_status mpi_barrier(void *owner, int seconds)
{
    job *j = owner;
    MPI_Request request;
    int code = MPI_Ibarrier(j->all, &request);
    if (code != MPI_SUCCESS) return failed(j, "a wait for all ranks", code);
    return wait_for(j, &request, "all ranks", seconds > 0 ? seconds : j->host.patience);
}

/* ---- windows ---- */

typedef struct {
    MPI_Win window;
    void *parts[];
} shared;

static size_t shared_bytes(const job *j)
{
    return sizeof(shared) + (size_t)j->comm.size * sizeof(void *);
}

/* EMBLA_OK if status is EMBLA_OK on all ranks of this host. */
static embla_status agree_here(job *j, embla_status status)
{
    MPI_Request request;
    int worst = (int)status;
    int code = MPI_Iallreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MAX, j->node, &request);
    embla_status waited = begun(j, code, &request, "the ranks of this host");
    if (status == EMBLA_OK) status = waited;
    if (status != EMBLA_OK) return status;
    if (worst != EMBLA_OK) j->host.say("another rank of this host has no memory for a window");
    return (embla_status)worst;
}

static embla_status mpi_window_new(void *owner, size_t bytes, embla_comm_window *out)
{
    job *j = owner;
    void *mine = NULL;
    shared *s = NULL;
    embla_status status = agree_here(j, take(j, shared_bytes(j), &s));
    if (status != EMBLA_OK) {
        if (s) drop(j, s, shared_bytes(j));
        return status;
    }
    int code =
        MPI_Win_allocate_shared((MPI_Aint)bytes, 1, MPI_INFO_NULL, j->node, &mine, &s->window);
    if (code != MPI_SUCCESS) {
        drop(j, s, shared_bytes(j));
        return failed(j, "shared memory", code);
    }
    for (int r = 0; r < j->comm.size && code == MPI_SUCCESS; r++) {
        MPI_Aint size;
        int unit;
        if (j->node_ranks[r] != MPI_UNDEFINED)
            code = MPI_Win_shared_query(s->window, j->node_ranks[r], &size, &unit, &s->parts[r]);
    }
    if (code == MPI_SUCCESS) code = MPI_Win_lock_all(MPI_MODE_NOCHECK, s->window);
    if (code != MPI_SUCCESS) {
        (void)MPI_Win_free(&s->window);
        drop(j, s, shared_bytes(j));
        return failed(j, "shared memory", code);
    }
    if (bytes > 0) memset(mine, 0, bytes);
    *out = (embla_comm_window){.parts = s->parts, .handle = s};
    return EMBLA_OK;
}

static void mpi_window_free(void *owner, embla_comm_window *window)
{
    const job *j = owner;
    shared *s = window->handle;
    if (!s) return;
    if (j->lost) {
        *window = (embla_comm_window){0};
        return;
    }
    (void)MPI_Win_unlock_all(s->window);
    (void)MPI_Win_free(&s->window);
    drop(j, s, shared_bytes(j));
    *window = (embla_comm_window){0};
}

/* MPI tells the launcher to end the job. If the launcher cannot be reached, a signal ends this
 * process after some seconds. */
static void mpi_abort(void *owner, const char *why)
{
    job *j = owner;
    (void)why; /* the program has printed it */
    (void)alarm(5);
    (void)MPI_Abort(j->all, 1);
}

/* ---- open, close ---- */

/* The name of the implementation: the first words of a text that may have several lines. */
static void name_of(char out[NAME])
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    size_t n = 0;
    (void)MPI_Get_library_version(text, &length);
    for (const char *c = text; *c && *c != ',' && *c != '\n' && n + 1 < NAME; c++) {
        bool space = *c == ' ' || *c == '\t';
        if (!space || (n > 0 && out[n - 1] != ' ')) out[n++] = space ? ' ' : *c;
    }
    out[n] = '\0';
}

/* Finds the ranks of this host. */
static int find_node(job *j)
{
    MPI_Group all, node;
    int n = j->comm.size, *ranks = j->counts; /* not used yet */
    for (int r = 0; r < n; r++) ranks[r] = r;
    int code = MPI_Comm_split_type(j->all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &j->node);
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(j->node, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) code = MPI_Comm_group(j->all, &all);
    if (code == MPI_SUCCESS) {
        code = MPI_Comm_group(j->node, &node);
        if (code == MPI_SUCCESS) {
            code = MPI_Group_translate_ranks(all, n, ranks, node, j->node_ranks);
            (void)MPI_Group_free(&node);
        }
        (void)MPI_Group_free(&all);
    }
    return code;
}

static int join(job *j, MPI_Comm from)
{
    int code = MPI_Comm_dup(from, &j->all);
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(j->all, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) code = MPI_Comm_dup(j->all, &j->roll);
    if (code == MPI_SUCCESS) code = MPI_Comm_rank(j->all, &j->comm.rank);
    if (code == MPI_SUCCESS) code = MPI_Comm_size(j->all, &j->comm.size);
    if (code != MPI_SUCCESS) return code;
    int failed = take(j, counts_bytes(j), &j->node_ranks) != EMBLA_OK ||
                 take(j, counts_bytes(j), &j->counts) != EMBLA_OK ||
                 take(j, started_bytes(j), &j->first) != EMBLA_OK ||
                 (j->comm.size > 1 && take(j, received_bytes(j), &j->received) != EMBLA_OK);
    code = MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, j->all);
    if (code == MPI_SUCCESS && failed) code = MPI_ERR_NO_MEM;
    return code == MPI_SUCCESS ? find_node(j) : code;
}

static void leave(job *j)
{
    if (j->lost) return; /* MPI may still use the memory, and its end would wait */
    for (size_t i = 0; i < TYPES; i++)
        if (j->types[i].unit > 0) (void)MPI_Type_free(&j->types[i].type);
    if (j->node != MPI_COMM_NULL) (void)MPI_Comm_free(&j->node);
    if (j->roll != MPI_COMM_NULL) (void)MPI_Comm_free(&j->roll);
    if (j->all != MPI_COMM_NULL) (void)MPI_Comm_free(&j->all);
    if (j->started) (void)MPI_Finalize();
    drop(j, j->node_ranks, counts_bytes(j));
    drop(j, j->counts, counts_bytes(j));
    drop(j, j->first, started_bytes(j));
    drop(j, j->received, received_bytes(j));
    drop(j, j, sizeof *j);
}

static void set_functions(job *j)
{
    j->comm.owner = j;
    j->comm.name = j->name;
    j->comm.alltoall = mpi_alltoall;
    j->comm.alltoallv = mpi_alltoallv;
    j->comm.allreduce = mpi_allreduce;
    j->comm.allgather = mpi_allgather;
    j->comm.barrier = mpi_barrier;
    j->comm.start = mpi_start;
    j->comm.poll = mpi_poll;
    j->comm.window_new = mpi_window_new;
    j->comm.window_free = mpi_window_free;
    j->comm.abort = mpi_abort;
}

__attribute__((visibility("default"))) embla_status embla_mpi_open(const embla_mpi_host *host,
                                                                   embla_comm **out)
{
    int initialized = 0, provided;
    if (strcmp(host->version, EMBLA_MPI_VERSION) != 0) {
        host->say("libembla_mpi is of version %s, but libembla_lab of version %s; install both "
                  "of the same version",
                  EMBLA_MPI_VERSION, host->version);
        return EMBLA_ERR_UNSUPPORTED;
    }
    void *memory = NULL;
    embla_status made = host->mem_new(sizeof(job), "a communicator", &memory);
    if (made != EMBLA_OK) return made;
    job *j = memory;
    j->host = *host;
    j->all = j->roll = j->node = MPI_COMM_NULL;
    (void)MPI_Initialized(&initialized);
    int code = MPI_SUCCESS;
    if (!initialized) {
        code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
        j->started = code == MPI_SUCCESS;
        /* Open MPI reports what fails in a test of a request there, and ends the job by default */
        if (j->started) (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    if (code == MPI_SUCCESS)
        code = join(j, host->communicator ? *(const MPI_Comm *)host->communicator : MPI_COMM_WORLD);
    if (code != MPI_SUCCESS) {
        embla_status status = failed(j, "the start", code);
        leave(j);
        return status;
    }
    name_of(j->name);
    set_functions(j);
    *out = &j->comm;
    return EMBLA_OK;
}

__attribute__((visibility("default"))) void embla_mpi_close(embla_comm *comm)
{
    if (comm) leave(comm->owner);
}

/* For the benchmark: the bare call that mpi_allreduce is compared with. */
__attribute__((visibility("default"))) int embla_mpi_bare_sum(const embla_comm *comm, float *values,
                                                              int count)
{
    const job *j = comm->owner;
    return MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_FLOAT, MPI_SUM, j->all);
}
