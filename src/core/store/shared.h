/* SPDX-License-Identifier: Apache-2.0 */
/* The copy that all processes of a machine share: its layout, its names and its lock. shared.c
 * builds and uses it. For store/shared*.c. */
#ifndef EMBLA_STORE_SHARED_H
#define EMBLA_STORE_SHARED_H

#include "base/checksum.h"
#include "store/store.h"

enum {
    EMBLA_COPY_NOTE_AT = 2048,
    EMBLA_COPY_SUMS_AT = 4096,
    EMBLA_COPY_DATA_AT = 2 << 20, /* rows begin on a huge page */
    EMBLA_COPY_NAME = 256
};

/* The header of a copy, in the byte order of this machine. Without padding. */
typedef struct {
    char magic[8];
    uint64_t order, version;
    uint64_t identity[2]; /* of the files: see compute_identity */
    uint64_t rows, row_bytes, dim, dtype, scales;
    uint64_t data_at, data_bytes, file_bytes;
    uint64_t piece_bytes, pieces;
    uint64_t sums[2]; /* checksum of the pieces' checksums */
    uint64_t self[2]; /* checksum of all fields above */
} embla_copy_manifest;

/* The file of the copy's first row, as it was: if it has changed, nobody can use the copy any more.
 * Without padding. A path of no bytes means that the file is not known. */
typedef struct {
    uint64_t device, inode, size;
    int64_t seconds, nanoseconds;
    char path[1024];
} embla_copy_note;

/* The checksum of a piece. */
typedef struct {
    uint64_t high, low;
} embla_copy_sum;

/* The copy that a store needs. */
typedef struct {
    const embla_store *store;
    const embla_store_options *options; /* progress and threads of this call */
    double patience;                    /* seconds to wait for the lock; 0 means no limit */
    double waited;                      /* seconds waited so far */
    embla_folder folder;
    embla_handle lock; /* -1 means not open; lock also: built without it */
    char path[1024];   /* for messages and the user */
    char lock_path[1024];
    char name[EMBLA_COPY_NAME], lock_name[EMBLA_COPY_NAME];
    char temporary[EMBLA_COPY_NAME]; /* the beginning of temporary names */
    embla_copy_manifest wanted;      /* without sums and self */
} embla_copy;

/* ---- shared_copy.c ---- */

/* Names the copy of a store and opens its folder. On failure no descriptor is open. */
EMBLA_CHECKED embla_status embla_copy_init(const embla_store *store, embla_copy *out);
/* The manifest that the copy of a store must have, without sums and self. */
EMBLA_CHECKED embla_status embla_copy_expected(const embla_store *store, embla_copy_manifest *out);
/* Reports progress; EMBLA_ERR_STOPPED if the caller cancels. */
EMBLA_CHECKED embla_status embla_copy_report(const embla_copy *c, const char *what, int64_t done);
/* Whether a file of `size` bytes that begins like this is a complete copy of any rows. */
bool embla_copy_recognised(const embla_copy_manifest *m, uint64_t size);
/* Opens and checks a copy. EMBLA_ERR_NOT_FOUND if there is none. */
EMBLA_CHECKED embla_status embla_copy_open(const embla_copy *c, const char *name, embla_map **out);
/* Computes the checksums of all pieces of the rows in a file. */
EMBLA_CHECKED embla_status embla_copy_sums(embla_handle file, const embla_copy *c,
                                           embla_copy_sum *out);

/* ---- sweep.c ---- */

/* Describes the file of the store's first row. */
embla_copy_note embla_copy_note_of(const embla_store *store);
/* Removes dead copies of this user whose names nobody has chosen. Never fails. */
void embla_copy_sweep_dead(embla_folder folder, const char *path);

/* ---- shared_lock.c ---- */

/* Takes the lock of a copy. EMBLA_ERR_BUSY if another process of this user holds it longer than
 * c->patience. If the name of the lock belongs to another user, succeeds without a lock. */
EMBLA_CHECKED embla_status embla_copy_lock(embla_copy *c);
void embla_copy_unlock(embla_copy *c);
/* Why a copy is missing: EMBLA_ERR_BUSY if another process holds its lock, otherwise
 * EMBLA_ERR_NOT_FOUND. */
EMBLA_CHECKED embla_status embla_copy_why_missing(const embla_copy *c);
/* Creates a file for a new copy and writes its name to `name`. Removes the files of builders that
 * were killed. *keeper is a second descriptor; it must stay open until the file is renamed. */
EMBLA_CHECKED embla_status embla_copy_temporary(const embla_copy *c, unsigned mode,
                                                char name[EMBLA_COPY_NAME], embla_handle *file,
                                                embla_handle *keeper);

#endif
