/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of DLPack 1.0 (dmlc/dlpack, include/dlpack/dlpack.h): how libraries hand tensors to
 * each other. Only what a tensor on the CPU needs.
 *
 * A capsule named "dltensor" has a dl_managed, one named "dltensor_versioned" a
 * dl_managed_versioned. Who takes the tensor renames the capsule to "used_.." and calls the deleter
 * when it is done.
 */
#ifndef EMBLA_PYTHON_DLPACK_H
#define EMBLA_PYTHON_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1, DL_READ_ONLY = 1 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4 };

typedef struct {
    int32_t type, id;
} dl_device;

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} dl_dtype;

typedef struct {
    void *data;
    dl_device device;
    int32_t rank;
    dl_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in items; NULL means no gaps */
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *);
} dl_managed;

typedef struct dl_managed_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_managed_versioned *);
    uint64_t flags;
    dl_tensor tensor;
} dl_managed_versioned;

#endif
