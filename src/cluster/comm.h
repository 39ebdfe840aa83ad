/* SPDX-License-Identifier: Apache-2.0 */
/* How libembla_lab and a libembla_mpi know each other.
 *
 * libembla_mpi links MPI and nothing of Embla. It is loaded at run time and gets what it needs from
 * here, so that a program with a static Embla can use it too.
 */
#ifndef EMBLA_CLUSTER_COMM_H
#define EMBLA_CLUSTER_COMM_H

#include "embla_cluster.h"

/* What libembla_mpi needs. */
typedef struct {
    const char *version; /* of libembla_lab; both must be of the same version */
    /* stores the sentence of an error (embla_error) */
    void (*say)(const char *format, ...) __attribute__((format(printf, 1, 2)));
    embla_status (*mem_new)(size_t bytes, const char *what, void **out); /* base/mem.h */
    void (*mem_free)(void *memory, size_t bytes);
    int patience;             /* seconds */
    const void *communicator; /* an MPI_Comm, or NULL */
} embla_mpi_host;

/* The functions that libembla_mpi exports. The sentence of a failure is stored with say. */
typedef embla_status embla_mpi_open_fn(const embla_mpi_host *host, embla_comm **out);
typedef void embla_mpi_close_fn(embla_comm *comm);
embla_mpi_open_fn embla_mpi_open;
embla_mpi_close_fn embla_mpi_close;

/* A third one, for the benchmark: a sum of floats by MPI's own blocking call. */
int embla_mpi_bare_sum(const embla_comm *comm, float *values, int count);

enum { EMBLA_COMM_PATIENCE = 45 }; /* seconds; the default */

/* Collective: EMBLA_OK if status is EMBLA_OK on every rank. Otherwise every rank gets a failure;
 * those that did not fail themselves get a sentence that names the first that did. */
EMBLA_CHECKED embla_status embla_comm_share(const embla_comm *comm, embla_status status,
                                            const char *what);
EMBLA_CHECKED static inline embla_status embla_comm_agree(const embla_comm *comm,
                                                          embla_status status, const char *what)
{
    embla_status all = embla_comm_share(comm, status, what);
    return status != EMBLA_OK ? status : all; /* inline, so that analyzers see this */
}

/* The same in parts, to send it with other numbers: the vote of this rank, to be replaced by the
 * maximum of all ranks; and what follows from that maximum. */
int64_t embla_comm_vote(const embla_comm *comm, embla_status status);
EMBLA_CHECKED embla_status embla_comm_verdict(const embla_comm *comm, embla_status status,
                                              int64_t worst, const char *what);

/* The communicator of one process alone. */
const embla_comm *embla_comm_self(void);

#endif
