/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about the rows of a table: of a model that was opened, and of one that learns. */
#ifndef PLAY_GEOMETRY_H
#define PLAY_GEOMETRY_H

#include <stddef.h>
#include <stdint.h>

#include "embla_lab.h"

enum { GEOMETRY_MOST = 64 }; /* neighbours of an answer */

const char *geometry_compare(const embla_table *table, int32_t a, int32_t b);
const char *geometry_near(const embla_table *table, int32_t id, size_t top);
/* The plane of `count` rows; with count 0, of all. */
const char *geometry_plane(const embla_table *table, const int32_t *basis, size_t count);
/* Rows (f32) on the plane of the rows `aim`, which are as many. */
const char *geometry_plane_of(const embla_table *rows, const float *aim);
/* {"near": [..]} without the places that found nothing. */
const char *geometry_answer(const embla_neighbour *found, size_t count);

#endif
