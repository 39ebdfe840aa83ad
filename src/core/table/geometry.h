/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EMBLA_TABLE_GEOMETRY_H
#define EMBLA_TABLE_GEOMETRY_H

#include "base/status.h"

/* Divides x by its norm. A zero vector is not changed. */
EMBLA_PRIVATE void embla_normalize(float *x, size_t n);

#endif
