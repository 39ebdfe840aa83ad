/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: of one process, and of the job that a launcher started. */
#include "cluster/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/load.h"
#include "base/mem.h"
#include "base/options.h"
#include "files/io.h"

/* ---- one process ---- */

static embla_status self_alltoall(void *owner, const void *send, void *receive, size_t bytes)
{
    (void)owner;
    if (bytes > 0) memmove(receive, send, bytes);
    return EMBLA_OK;
}

static embla_status self_alltoallv(void *owner, const embla_exchange *e)
{
    if (e->send_counts[0] != e->receive_counts[0])
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a rank sends itself %zu items, but receives %zu from itself",
                          e->send_counts[0], e->receive_counts[0]);
    return self_alltoall(owner, e->send, e->receive, e->send_counts[0] * e->unit);
}

static embla_status self_allreduce(void *owner, void *values, size_t count, embla_comm_type type,
                                   embla_comm_op op)
{
    (void)owner, (void)values, (void)count, (void)type, (void)op;
    return EMBLA_OK;
}

static embla_status self_barrier(void *owner, int seconds)
{
    (void)owner, (void)seconds;
    return EMBLA_OK;
}

/* The exchange is done when it is started; the request only says that there was one. */
static embla_status self_start(void *owner, const embla_exchange *e, void **request)
{
    static char started;
    EMBLA_TRY(self_alltoallv(owner, e));
    *request = &started;
    return EMBLA_OK;
}

static embla_status self_poll(void *owner, void *request, bool wait, bool *done)
{
    (void)owner, (void)request, (void)wait;
    *done = true;
    return EMBLA_OK;
}

/* Memory of one process, with the list of parts in front. */
typedef struct {
    size_t bytes;
    void *memory;
    void *parts[1];
} self_window;

static embla_status self_window_new(void *owner, size_t bytes, embla_comm_window *out)
{
    (void)owner;
    void *memory = NULL, *handle = NULL;
    EMBLA_TRY(embla_mem_new(bytes, "rows of a sharded table", &memory));
    embla_status status = embla_mem_new(sizeof(self_window), "a window", &handle);
    if (status != EMBLA_OK) {
        embla_mem_free(memory, bytes);
        return status;
    }
    self_window *window = handle;
    *window = (self_window){.bytes = bytes, .memory = memory, .parts = {memory}};
    *out = (embla_comm_window){.parts = window->parts, .handle = window};
    return EMBLA_OK;
}

static void self_window_free(void *owner, embla_comm_window *window)
{
    (void)owner;
    self_window *handle = window->handle;
    if (!handle) return;
    embla_mem_free(handle->memory, handle->bytes);
    embla_mem_free(handle, sizeof *handle);
    *window = (embla_comm_window){0};
}

const embla_comm *embla_comm_self(void)
{
    static const embla_comm self = {.size = 1,
                                    .name = "one process",
                                    .alltoall = self_alltoall,
                                    .alltoallv = self_alltoallv,
                                    .allreduce = self_allreduce,
                                    .allgather = self_alltoall,
                                    .barrier = self_barrier,
                                    .start = self_start,
                                    .poll = self_poll,
                                    .window_new = self_window_new,
                                    .window_free = self_window_free};
    return &self;
}

/* ---- a job ---- */

/* The environment of each launcher: Open MPI's mpirun and Slurm with PMIx; MPICH's mpiexec and
 * Slurm with PMI. */
static bool by_open_mpi(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK");
}

static bool by_mpich(void)
{
    return getenv("PMI_RANK") || getenv("PMI_SIZE");
}

bool embla_comm_launched(void)
{
    return by_open_mpi() || by_mpich();
}

enum { PATH = 4096 };

/* The folder of the library or program that this code is in, with a slash at the end. */
static void own_folder(char out[PATH])
{
    char path[PATH];
    out[0] = '\0';
    if (!embla_load_home((const void *)embla_version(), path, sizeof path)) return;
    const char *slash = embla_io_slash(path);
    if (slash) (void)snprintf(out, PATH, "%.*s", (int)(slash - path + 1), path);
}

#ifndef EMBLA_MPI_INSTALLED
#define EMBLA_MPI_INSTALLED ""
#endif

/* Loads a library by path, or by name: beside us, where it is built, where it is installed, in the
 * system. Returns NULL with a reason. */
static void *load(const char *path, const char *name, char reason[PATH])
{
    static const char *const places[] = {"", "src/", EMBLA_MPI_BESIDE_LIBRARY,
                                         EMBLA_MPI_BESIDE_PROGRAM};
    char folder[PATH], candidate[2 * PATH];
    void *library = NULL;
    own_folder(folder);
    for (size_t i = 0; !path && folder[0] && i < sizeof places / sizeof *places; i++) {
        (void)snprintf(candidate, sizeof candidate, "%s%s%s", folder, places[i], name);
        if ((library = embla_load(candidate, EMBLA_LOAD_GLOBAL, reason, PATH))) return library;
    }
    (void)snprintf(candidate, sizeof candidate, "%s%s", EMBLA_MPI_INSTALLED, name);
    if (!path && strlen(EMBLA_MPI_INSTALLED) > 0 &&
        (library = embla_load(candidate, EMBLA_LOAD_GLOBAL, reason, PATH)))
        return library;
    return embla_load(path ? path : name, EMBLA_LOAD_GLOBAL, reason, PATH);
}

/* The library that is loaded: how its communicator is closed. */
typedef struct {
    embla_comm *comm;
    embla_mpi_close_fn *close;
} joined;
static joined now;

enum { WORK = 64 };

/* Ranks that do different work would meet each other's messages in the middle of their own: MPI
 * ends the job then, or they wait. So they compare it first. */
static embla_status compare_work(const embla_comm *comm, const char *work)
{
    char mine[WORK] = "", *all = NULL;
    void *memory = NULL;
    size_t bytes = (size_t)comm->size * WORK;
    int other = 0;
    (void)snprintf(mine, sizeof mine, "%s", work ? work : "");
    embla_status status = embla_mem_new(bytes, "the work of all ranks", &memory);
    status = embla_comm_agree(comm, status, "it has no memory for the work of all ranks");
    all = memory;
    if (status == EMBLA_OK) status = comm->allgather(comm->owner, mine, all, WORK);
    while (status == EMBLA_OK && other < comm->size && memcmp(all + other * WORK, mine, WORK) == 0)
        other++;
    if (status == EMBLA_OK && other < comm->size)
        status = embla_fail(EMBLA_ERR_ARGUMENT,
                            "rank %d of %d runs '%s', but rank %d runs '%.63s'; all ranks of a job "
                            "must run the same",
                            comm->rank, comm->size, mine, other, all + other * WORK);
    embla_mem_free(memory, bytes);
    return status;
}

embla_status embla_comm_open(const embla_comm_options *options, const embla_comm **out)
{
    EMBLA_TRY(embla_options_check(options));
    const embla_comm_options defaults = {0};
    char reason[PATH];
    if (!options) options = &defaults;
    EMBLA_NEED(out);
    if (options->patience < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "patience is %d seconds; it must be 0 or greater",
                          options->patience);
    if (!options->library && !options->communicator && !embla_comm_launched()) {
        *out = embla_comm_self();
        return EMBLA_OK;
    }
    if (now.comm)
        return embla_fail(EMBLA_ERR_BUSY, "a communicator is open already; close it first");
    const char *name =
        by_mpich() && !by_open_mpi() ? "libembla_mpi_mpich.so" : "libembla_mpi_openmpi.so";
    void *library = load(options->library, name, reason);
    if (!library)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "this process was started by MPI, but its library cannot be loaded: %s",
                          reason);
    embla_mpi_open_fn *open = (embla_mpi_open_fn *)embla_load_symbol(library, "embla_mpi_open");
    embla_mpi_close_fn *close = (embla_mpi_close_fn *)embla_load_symbol(library, "embla_mpi_close");
    if (!open || !close)
        return embla_fail(EMBLA_ERR_FORMAT, "%s is not a library of Embla for MPI",
                          options->library ? options->library : name);
    const embla_mpi_host host = {.version = embla_version(),
                                 .say = embla_say,
                                 .mem_new = embla_mem_new,
                                 .mem_free = embla_mem_free,
                                 .patience =
                                     options->patience ? options->patience : EMBLA_COMM_PATIENCE,
                                 .communicator = options->communicator};
    EMBLA_TRY(open(&host, &now.comm));
    now.close = close;
    embla_status status = now.comm->size > 1 ? compare_work(now.comm, options->work) : EMBLA_OK;
    if (status == EMBLA_OK)
        *out = now.comm;
    else
        embla_comm_free(now.comm);
    return status;
}

void embla_comm_free(const embla_comm *comm)
{
    if (!comm || comm != now.comm) return;
    now.close(now.comm);
    now = (joined){0};
}

/* ---- agreement ---- */

/* The first rank that failed has the greatest number; its status is in the low bits. */
int64_t embla_comm_vote(const embla_comm *comm, embla_status status)
{
    if (status == EMBLA_OK) return 0;
    return ((int64_t)(comm->size - comm->rank) << 8) | (int64_t)status;
}

embla_status embla_comm_verdict(const embla_comm *comm, embla_status status, int64_t worst,
                                const char *what)
{
    if (status != EMBLA_OK || worst == 0) return status;
    return embla_fail((embla_status)(worst & 0xff), "rank %d failed: %s",
                      comm->size - (int)(worst >> 8), what);
}

embla_status embla_comm_share(const embla_comm *comm, embla_status status, const char *what)
{
    int64_t worst = embla_comm_vote(comm, status);
    EMBLA_TRY(comm->allreduce(comm->owner, &worst, 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX));
    return embla_comm_verdict(comm, status, worst, what);
}
