/* SPDX-License-Identifier: Apache-2.0 */
/* embla_cluster.h - one table over many processes, with the same bits for any number of them.
 *
 *   processes -> comm: exchange, sum, wait
 *   rows 0 .. V-1 -> buckets (row modulo the number of buckets) -> each process owns whole buckets
 *   row numbers -> sharded lookup -> vectors -> your model -> gradients -> sharded sum -> the
 *     owner's optimizer (embla_learn.h)
 *
 * Most programs need none of this: the vocabulary table of every language model fits in the memory
 * of one host. It is for tables whose rows and optimizer state together are larger than that, and
 * for trainings that need more cores than one host has. docs/cluster.md helps to decide.
 *
 * A process is a rank: 0 .. size-1. A call marked "collective" must be made by all ranks, in the
 * same order; it returns when this rank's part is done. If it fails on one rank, it fails on all,
 * unless a rank is lost, or a comment says otherwise. Link libembla_cluster. It links no MPI:
 * embla_comm_open loads libembla_mpi.
 */
#ifndef EMBLA_CLUSTER_H
#define EMBLA_CLUSTER_H

#include "embla_learn.h"
#include "embla_train.h"
#include "embla_wordvec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- comm: the processes of a job ---- */

typedef enum {
    EMBLA_COMM_TYPE_FLOAT = 0,
    EMBLA_COMM_TYPE_DOUBLE = 1,
    EMBLA_COMM_TYPE_INT64 = 2
} embla_comm_type;
typedef enum { EMBLA_COMM_OP_SUM = 0, EMBLA_COMM_OP_MAX = 1 } embla_comm_op;

/* What one rank sends to each rank, and gets from each: items of `unit` bytes, those for rank 0
 * first, without gaps. Counts are numbers of items, one for each rank. */
typedef struct {
    const void *send;
    const size_t *send_counts;
    void *receive;
    const size_t *receive_counts;
    size_t unit;
    uint64_t reserved[4]; /* must be 0 */
} embla_exchange;

/* Memory that the ranks of one host share. parts[r] is the part of rank r, as this process sees it;
 * NULL if rank r is on another host. Parts of the same size follow each other without gaps. */
typedef struct {
    void **parts;
    void *handle; /* of the communicator */
    uint64_t reserved[4];
} embla_comm_window;

/* A communicator: functions that connect the ranks. Trainers that have their own, for example
 * torch.distributed, fill in this struct. owner is passed to every function. All functions but
 * abort are collective. One thread at a time calls them. */
typedef struct embla_comm {
    void *owner;
    int rank, size;
    const char *name; /* for people: "Open MPI 4.1.4" */
    /* bytes for each rank, from each rank */
    embla_status (*alltoall)(void *owner, const void *send, void *receive, size_t bytes);
    embla_status (*alltoallv)(void *owner, const embla_exchange *exchange);
    /* Replaces values by their sum or maximum over all ranks. Every rank gets the same bits. */
    embla_status (*allreduce)(void *owner, void *values, size_t count, embla_comm_type type,
                              embla_comm_op op);
    /* bytes of each rank, those of rank 0 first */
    embla_status (*allgather)(void *owner, const void *send, void *receive, size_t bytes);
    /* seconds: how long to wait for the other ranks; 0 means the default */
    embla_status (*barrier)(void *owner, int seconds);
    /* An alltoallv that goes on while the caller computes. *request is then not NULL. Buffers and
     * counts must stay as they are until it is done. Both may be NULL: exchanges then do not
     * overlap. */
    embla_status (*start)(void *owner, const embla_exchange *exchange, void **request);
    /* Lets a started exchange make progress. *done: it has ended, and the request is gone. wait:
     * returns only then. */
    embla_status (*poll)(void *owner, void *request, bool wait, bool *done);
    /* Shared memory, zeroed. Both may be NULL: rows are then always sent. */
    embla_status (*window_new)(void *owner, size_t bytes, embla_comm_window *out);
    void (*window_free)(void *owner, embla_comm_window *window);
    /* Ends all ranks of the job. Does not return unless the communicator cannot end them. */
    void (*abort)(void *owner, const char *why);
    uint64_t reserved[4]; /* must be 0 */
} embla_comm;

/* Seconds that a barrier waits for ranks that may be reading or writing files. */
enum { EMBLA_COMM_SAVING = 900 };

typedef struct {
    /* Seconds to wait for other ranks in one call; then the call fails with EMBLA_ERR_IO and names
     * the ranks that do not answer. 0 means 45 */
    int patience;
    /* The path of a libembla_mpi; NULL means the one for the MPI that started this process:
     * libembla_mpi_openmpi.so or libembla_mpi_mpich.so */
    const char *library;
    /* Points to an MPI_Comm of a program that has started MPI itself, and will end it; NULL means
     * that MPI is started here, and all its ranks take part */
    const void *communicator;
    /* What the ranks are going to do together, such as a program and its command; 63 bytes of it
     * count. If ranks say different things, the call fails on all of them. NULL means "" */
    const char *work;
    uint64_t reserved[4]; /* must be 0 */
} embla_comm_options;

/* Whether an MPI launcher (mpirun, mpiexec, srun) started this process. */
EMBLA_API bool embla_comm_launched(void);
/* Joins the job that this process was started in: loads libembla_mpi and starts MPI. If no launcher
 * started the process and the options name neither library nor communicator, *out is the
 * communicator of one process alone. Collective. options NULL means the defaults.
 * EMBLA_ERR_NOT_FOUND if libembla_mpi or its MPI is not installed. EMBLA_ERR_ARGUMENT if the ranks
 * have come for different work. */
EMBLA_API EMBLA_CHECKED embla_status embla_comm_open(const embla_comm_options *options,
                                                     const embla_comm **out);
/* Leaves the job. Ends MPI if embla_comm_open started it; it cannot be started again. If a rank
 * does not answer any more, nothing is ended: MPI would wait for it. Collective. */
EMBLA_API void embla_comm_free(const embla_comm *comm);

/* ---- sharded table: every rank has some of the rows ---- */

typedef struct embla_sharded embla_sharded;

typedef struct {
    int64_t rows;
    size_t dim;
    embla_dtype dtype;
    /* Row r is in bucket r modulo buckets, and each rank owns a range of buckets. A power of two,
     * at most 65,536. Files and the loss of embla_sharded_loss depend on it, other results do not.
     * 0 means 1,024, and fewer for a small table: rows / 256, at least 16 */
    size_t buckets;
    size_t capacity; /* most row numbers of one lookup or sum on this rank */
    /* Send rows even to ranks on the same host. Default: they read each other's memory. */
    bool send;
    int threads;
    uint64_t reserved[4]; /* must be 0 */
} embla_sharded_options;

/* Creates a table of zeros. comm must outlive it. Collective, with the same options except
 * capacity and threads. EMBLA_ERR_ARGUMENT if there are more ranks than buckets. */
EMBLA_API EMBLA_CHECKED embla_status embla_sharded_new(const embla_comm *comm,
                                                       const embla_sharded_options *options,
                                                       embla_sharded **out);
/* Ends a lookup that is under way, too. Collective. */
EMBLA_API void embla_sharded_free(embla_sharded *sharded);
/* Fills all rows with the numbers that embla_table_init gives a whole table. Collective. */
EMBLA_API EMBLA_CHECKED embla_status embla_sharded_init(embla_sharded *sharded,
                                                        const embla_init_options *options);
/* Copies all rows from a table of the same sizes and dtype, for example one in a file that every
 * rank opens: each rank reads its own rows only. Collective. */
EMBLA_API EMBLA_CHECKED embla_status embla_sharded_fill(embla_sharded *sharded,
                                                        const embla_table *table);

/* This rank's rows as a table, for embla_optim_new. Buckets follow each other; each has the same
 * number of rows, so some buckets end with a row that is not used. */
EMBLA_API embla_table *embla_sharded_table(embla_sharded *sharded);
/* Looks up rows, each rank its own list, as f32 (count x dim). A row that occurs often in the list
 * is fetched once, and sent as it is stored. Collective; ranks may have 0 rows. EMBLA_ERR_RANGE for
 * a row that does not exist, EMBLA_ERR_MEMORY without memory for the rows; the other ranks get
 * theirs all the same. But a rank without memory for rows that others ask for fails alone, and they
 * wait in vain: an agreement would cost every lookup another exchange. */
EMBLA_API EMBLA_CHECKED embla_status embla_sharded_lookup(embla_sharded *sharded,
                                                          const int64_t *rows, size_t count,
                                                          float *out);
/* The same in two parts, to compute in between: start sends the row numbers and rows, finish
 * writes out. Rows are those at the time of start: no row may change before finish. Call poll often
 * in between, because an exchange may make progress only then. Until finish, all other collective
 * functions of this table but embla_sharded_free return EMBLA_ERR_BUSY; do not call other
 * collective functions with the same communicator either. */
EMBLA_API EMBLA_CHECKED embla_status embla_sharded_lookup_start(embla_sharded *sharded,
                                                                const int64_t *rows, size_t count);
EMBLA_API EMBLA_CHECKED embla_status embla_sharded_lookup_poll(embla_sharded *sharded);
EMBLA_API EMBLA_CHECKED embla_status embla_sharded_lookup_finish(embla_sharded *sharded,
                                                                 float *out);

/* Row numbers with a gradient each. */
typedef struct {
    const int64_t *rows;
    size_t count;
    /* The list is cut into micro-batches, pieces of the batch that do not depend on the number of
     * ranks: lengths has the number of row numbers of each of this rank's. NULL means one. */
    const size_t *lengths;
    size_t micro_batches;
    uint64_t reserved[4]; /* must be 0 */
} embla_sharded_batch;

/* Sums at the owner of their rows, valid until the next call. */
typedef struct {
    const int64_t
        *rows;         /* of this rank's table, those that have a gradient: ascending, each once */
    const float *sums; /* count x dim */
    size_t count;
    uint64_t reserved[4];
} embla_sharded_sums;

/* Sums gradients (batch->count x dim) for each row, at its owner. Sums are those of embla_scatter
 * with pieces of the same lengths: within a micro-batch in double, rounded to float, then over the
 * micro-batches of all ranks in order. Collective. */
EMBLA_API EMBLA_CHECKED embla_status embla_sharded_sum(embla_sharded *sharded,
                                                       const embla_sharded_batch *batch,
                                                       const float *gradients,
                                                       embla_sharded_sums *out);
/* Waits until all ranks have changed their rows, so that the next lookup sees the new ones. Call it
 * after embla_optim_step_rows. Collective. */
EMBLA_API EMBLA_CHECKED embla_status embla_sharded_publish(embla_sharded *sharded);

/* ---- head: the loss of targets over all rows ---- */

typedef struct {
    /* Sum over ranks in float, with larger products: faster, but the bits depend on the number of
     * ranks. Default: the same bits for any number */
    bool fast;
    double weight;        /* multiplies gradients, not the loss; 0 means 1 */
    uint64_t reserved[4]; /* must be 0 */
} embla_sharded_loss_options;

/* Hidden vectors and their targets: those of this rank. */
typedef struct {
    const float *hidden;    /* count x dim */
    const int32_t *targets; /* count */
    size_t count;
    const size_t *lengths; /* tokens of each micro-batch, as in embla_sharded_batch */
    size_t micro_batches;
    uint64_t reserved[4]; /* must be 0 */
} embla_sharded_loss_batch;

/* Computes the mean cross-entropy of targets under the logits hidden . row of all rows, for the
 * tokens of all ranks together: embla_head_loss with a head that no rank has whole. gradient (count
 * x dim, may be NULL, may be hidden) gets the gradient of hidden, and that of this rank's rows is
 * added to table (rows of embla_sharded_table x dim, may be NULL); gradient must be NULL on all
 * ranks or on none, and so must table. A rank holds the logits of one micro-batch for its own rows.
 * Targets that are EMBLA_TARGET_IGNORE do not count. report (may be NULL) is the same on all ranks.
 * Collective. EMBLA_ERR_UNSUPPORTED without an engine. */
EMBLA_API EMBLA_CHECKED embla_status embla_sharded_loss(embla_sharded *sharded,
                                                        const embla_sharded_loss_batch *batch,
                                                        const embla_sharded_loss_options *options,
                                                        float *gradient, float *table,
                                                        embla_loss_report *report);

/* ---- files ---- */

/* Saves the rows, and the state of their optimizer (NULL means none), to a folder: a safetensors
 * file for each rank, with a tensor for each bucket, and an index that is written last. So the
 * folder has the last complete save at any time; files of earlier ones are removed afterwards. step
 * is any number of the caller. The ranks need a file system that they share. Collective. */
EMBLA_API EMBLA_CHECKED embla_status embla_sharded_save(embla_sharded *sharded, embla_optim *optim,
                                                        const char *folder, int64_t step);
/* Loads what embla_sharded_save wrote, with any number of ranks. The table must have the saved
 * sizes, dtype and buckets, the optimizer the saved kind. *step (may be NULL) is the saved number.
 * If it fails, rows may be old, new or mixed. Collective. */
EMBLA_API EMBLA_CHECKED embla_status embla_sharded_load(embla_sharded *sharded, embla_optim *optim,
                                                        const char *folder, int64_t *step);
/* Writes all rows to one safetensors file with one tensor of this name, through rank 0. The bytes
 * do not depend on the number of ranks. The file is complete or unchanged. Collective. */
EMBLA_API EMBLA_CHECKED embla_status embla_sharded_export(embla_sharded *sharded, const char *path,
                                                          const char *name);

/* ---- team: ranks that train one model together ---- */

typedef struct {
    /* Pieces of a batch that do not depend on the number of ranks. Each rank computes the gradients
     * of some of them. At least as many as ranks, at most as many as sequences in a batch. 0 means
     * 12, or the sequences in a batch if there are fewer. */
    size_t micro_batches;
    /* Default: the gradients of each micro-batch are computed alone, and summed exactly. Then the
     * bits of the training depend on the number of micro-batches, but not on the number of ranks.
     * true: a rank computes all its micro-batches at once, and floats are summed as the
     * communicator does. It is faster, and results depend on the number of ranks, by rounding. */
    bool fast;
    /* Each rank has some of the rows of the model's n-gram table, with the state of their
     * optimizer, for a table that is larger than the memory of a host. Results are those of a table
     * that every rank has whole. embla_train_save then writes a folder beside its file, FILE.ngram,
     * to which every rank writes; FILE.2.ngram if the FILE that it replaces needs the first. Keep
     * file and folder together. Save the model with embla_train_save_model. */
    bool shard_ngrams;
    /* Each rank has some of the rows of the token table, and of a separate head, with their
     * gradients and the state of their optimizer. All ranks compute the loss together. The bits do
     * not depend on the number of ranks either, but they are not those of a table that every rank
     * has whole: the logits are computed bucket by bucket. The model then has no token rows:
     * embla_gpt_tokens is NULL, only this training can use it, and "wte" and "lm_head" are no
     * tensors of it. embla_train_save writes the folders FILE.tokens and FILE.head, or
     * FILE.2.tokens and FILE.2.head. Save the model with embla_train_save_model. */
    bool shard_tokens;
    uint64_t reserved[4]; /* must be 0 */
} embla_team_options;

/* Lets all ranks make the steps of a training together. Every rank has created the same model and
 * the same training (embla_train_new); comm must outlive it. Each rank has all weights, computes
 * the gradients of its micro-batches, and updates a slice of the weights; it has the state of the
 * optimizer for that slice. Then all ranks get the new weights. From now on embla_train_step,
 * _validate, _save, _checkpoint and _load are collective and give every rank the same results. Rank
 * 0 alone writes files; every rank reads them. A training that was saved by some number of ranks
 * may be loaded by any other number. With one micro-batch the training stays as it was without this
 * call. options NULL means the defaults. Collective. EMBLA_ERR_ARGUMENT or EMBLA_ERR_SHAPE names
 * what differs from rank 0; also if there are more ranks than micro-batches, or more micro-batches
 * than sequences. With shard_tokens: EMBLA_ERR_UNSUPPORTED for negatives and without an engine,
 * EMBLA_ERR_ARGUMENT after the first step; load a checkpoint after joining.
 */
EMBLA_API EMBLA_CHECKED embla_status embla_train_join(embla_train *train, const embla_comm *comm,
                                                      const embla_team_options *options);
/* The options of embla_train_join, with all defaults filled in. EMBLA_ERR_NOT_FOUND if it was not
 * called, or for one micro-batch. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_describe_team(const embla_train *train,
                                                               embla_team_options *out);
/* The options that a checkpoint of a training was made with, for embla_train_join before it is
 * loaded. micro_batches is 0 if embla_train_join was not called. EMBLA_ERR_FORMAT if the file is no
 * checkpoint. */
EMBLA_API EMBLA_CHECKED embla_status embla_team_describe_saved(const char *path,
                                                               embla_team_options *out);

/* ---- plan: what a table over many hosts costs ----
 *
 * A model, computed from sizes and from the speeds of a machine: nothing is measured, unless
 * embla_plan_measure has measured the speeds. docs/cluster.md has the formulas. */

/* The speeds of a host. 0 means the default of a field. */
typedef struct {
    int64_t memory;   /* bytes for rows, optimizer state and buffers; 0 means 512e9 */
    double network;   /* bytes per second, in each direction; 0 means 25e9 */
    double latency;   /* seconds for each message of a rank; 0 means 2e-6 */
    double bandwidth; /* bytes per second, read or written in memory; 0 means 200e9 */
    double dedup;  /* seconds to find out whether a row number is new, and to order the new ones by
                      owner; 0 means 18e-9 */
    double owner;  /* seconds to find the owner of a row number alone; 0 means 2e-9 */
    double row;    /* seconds to reach a row at a random place, besides its bytes */
    int64_t ranks; /* of the host, that were measured at the same time; 0 means not measured */
    uint64_t reserved[4]; /* must be 0 */
} embla_plan_machine;

typedef struct {
    /* The table, as in embla_sharded_options. */
    int64_t rows;
    size_t dim;
    embla_dtype dtype;
    size_t scale_bytes; /* bytes of scales of each row, beside its numbers */
    size_t buckets;     /* 0 means 1,024, fewer for a small table, more for many ranks */
    bool send;          /* send rows even to ranks on the same host */
    /* Updates: the dtype must be f32, bf16 or f16. */
    embla_optim_kind optimizer;
    bool momentum; /* SGD with momentum */
    bool frozen;   /* rows are only looked up: no gradients, no optimizer */
    /* A step. */
    int64_t tokens;         /* of each rank; at least 1 */
    int64_t rows_per_token; /* 0 means 1 */
    double zipf;   /* row i has a probability proportional to (i + 1)^-zipf; 0 means all the same */
    double unique; /* share of different rows among a rank's row numbers; 0 means from zipf */
    size_t out_bytes; /* written for each row number; 0 means 4 dim, which is f32 */
    /* The cluster. */
    int64_t hosts;          /* 0 means as many as the table needs */
    int64_t ranks_per_host; /* 0 means 1. All ranks together are at most 65,536 */
    int64_t group; /* for EMBLA_PLAN_EXCHANGE_GROUPS: ranks that share a copy of the table; must
                    * divide the ranks. 0 means the most that do, up to 256 */
    embla_plan_machine machine;
    uint64_t reserved[4]; /* must be 0 */
} embla_plan_options;

/* How ranks exchange rows. The library has FLAT; the others are what a caller's communicator can
 * do. */
typedef enum {
    EMBLA_PLAN_EXCHANGE_FLAT = 0,      /* every rank sends to every rank */
    EMBLA_PLAN_EXCHANGE_TWO_LEVEL = 1, /* through one rank of a square: fewer messages, twice the
                                          bytes */
    EMBLA_PLAN_EXCHANGE_GROUPS = 2     /* groups that have a copy of the table each, and exchange
                                          the gradients of the rows that were used */
} embla_plan_exchange;
enum { EMBLA_PLAN_EXCHANGES = 3 };

/* A part of a step: the bytes that a rank moves, and the seconds this takes. */
typedef struct {
    double bytes, seconds;
} embla_plan_part;

typedef struct {
    embla_plan_part dedup;     /* find the different rows; bytes are those of row numbers */
    embla_plan_part numbers;   /* row numbers over the network */
    embla_plan_part gather;    /* rows into buffers */
    embla_plan_part rows;      /* rows over the network */
    embla_plan_part expand;    /* vectors, one for each row number */
    double latency;            /* seconds: the messages of a lookup, however short */
    double lookup;             /* seconds: all of the above, one after the other */
    double overlapped;         /* seconds: the same without dedup, if network and memory work at the
                                  same time */
    embla_plan_part backward;  /* gradients to the owners of their rows; bytes on the network */
    embla_plan_part optimizer; /* the owners' updates */
    double step;               /* seconds: lookup, backward and optimizer */
    uint64_t reserved[4];
} embla_plan_times;

typedef enum {
    EMBLA_PLAN_VERDICT_ONE_HOST = 0, /* everything fits in the memory of one host */
    EMBLA_PLAN_VERDICT_FITS = 1,     /* it fits, and bytes take longer than messages */
    EMBLA_PLAN_VERDICT_LATENCY = 2,  /* it fits, but the messages of a flat exchange take longer
                                        than its bytes */
    EMBLA_PLAN_VERDICT_MEMORY = 3    /* it does not fit */
} embla_plan_verdict;

typedef struct {
    int64_t hosts, ranks;
    size_t buckets;
    size_t row_bytes, state_bytes; /* of one row */
    int64_t table;                 /* bytes of the whole table with its optimizer state */
    /* Bytes on the fullest host; buffers are those of lookups and gradients, with the vectors and
     * gradients of the caller. */
    int64_t host_rows, host_state, host_buffers, host_bytes;
    int64_t min_hosts; /* hosts that are enough; 0 means that no number of hosts is */
    double unique;     /* share of different rows among a rank's row numbers */
    double wire;       /* bytes on the network for each token of a flat lookup */
    double flat_limit; /* ranks from which messages take longer than bytes in a flat exchange */
    int64_t group;     /* ranks of a group; its hosts hold host_rows * ranks / group */
    bool group_fits;   /* whether they can */
    embla_plan_times times[EMBLA_PLAN_EXCHANGES];
    embla_plan_exchange fastest; /* for a whole step, among those that fit */
    embla_plan_verdict verdict;
    uint64_t reserved[4];
} embla_plan_report;

/* Computes a plan. EMBLA_ERR_ARGUMENT for sizes that are missing or too large,
 * EMBLA_ERR_UNSUPPORTED for a dtype that cannot be trained. */
EMBLA_API EMBLA_CHECKED embla_status embla_plan_compute(const embla_plan_options *options,
                                                        embla_plan_report *out);

/* Measures the speeds of this host, for rows of options->dim and options->dtype, in a second or
 * two: bandwidth, dedup, owner and row; with more than one rank also network and latency. Other
 * fields are those of options->machine, with defaults filled in. All ranks work at the same time
 * and get the same figures, those of the slowest. Collective. */
EMBLA_API EMBLA_CHECKED embla_status embla_plan_measure(const embla_comm *comm,
                                                        const embla_plan_options *options,
                                                        embla_plan_machine *out);

/* Row numbers for a simulation. */
typedef struct {
    const int64_t *trace; /* row numbers in the order of a real text; NULL means draws by zipf */
    size_t count;
    uint64_t seed;        /* of draws */
    size_t max_rows;      /* row numbers to simulate; 0 means 2^24 */
    uint64_t reserved[4]; /* must be 0 */
} embla_simulation_options;

/* What a simulation of a number of ranks found. */
typedef struct {
    int64_t ranks;
    int64_t senders; /* ranks whose row numbers were simulated; if fewer than ranks, load_max is an
                        upper estimate */
    double unique;   /* share of different rows among a rank's row numbers */
    double load_max; /* rows that the busiest owner is asked for, divided by the mean */
    double message_mean, message_max;             /* rows of a message from one owner to one rank */
    double empty;                                 /* share of messages without a row */
    embla_plan_times times[EMBLA_PLAN_EXCHANGES]; /* of the busiest ranks */
    uint64_t reserved[4];
} embla_simulation;

/* Simulates a step of each number of ranks: every rank takes its tokens from the trace, finds its
 * different rows and asks their owners. options->hosts is ignored; a number of ranks below
 * ranks_per_host is one host. The times are a model's. EMBLA_ERR_RANGE for a row number of the
 * trace that the table does not have. */
EMBLA_API EMBLA_CHECKED embla_status embla_plan_simulate(const embla_plan_options *options,
                                                         const embla_simulation_options *from,
                                                         const int64_t *ranks, size_t count,
                                                         embla_simulation *out);

#ifdef __cplusplus
}
#endif
#endif
