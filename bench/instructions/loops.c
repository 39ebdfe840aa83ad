/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one inner loop a number of times, for count.py, which counts its instructions.
 *   loops                   prints the cases: name, numbers of a row that a call processes
 *   loops CASE SET TIMES    runs it with a kernel set
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/kernels.h"
#include "engine/score_loops.h"
#include "model/layers_product.h"
#include "near/sketch.h"

enum { DIM = 768, ROWS = EMBLA_SCORE_ROWS, STEPS = DIM / EMBLA_SKETCH_NUMBERS };

static float x[ROWS * DIM], y[ROWS * DIM], out[ROWS * DIM];
static int16_t whole[DIM];
static _Alignas(EMBLA_LINE) char bytes[ROWS * DIM * sizeof(double)];
static float lanes[ROWS * ROWS * EMBLA_SCORE_LANES], squares[ROWS * EMBLA_SCORE_LANES];

typedef struct {
    const embla_kernels *set;
    size_t times;
    embla_dtype dtype;
} job;

/* ---- the cases ---- */

static void decode(const job *j)
{
    embla_decode_fn *loop = embla_dtype_decoder(j->dtype, j->set->isa);
    for (size_t i = 0; i < j->times; i++) loop(bytes, DIM, 0.5f, EMBLA_WRITE_PLAIN, out);
}

static void encode(const job *j)
{
    embla_encode_fn *loop = embla_dtype_encoder(j->dtype, j->set->isa);
    for (size_t i = 0; i < j->times; i++) loop(x, DIM, 0.5f, bytes);
}

static void copy(const job *j)
{
    static const int64_t rows[ROWS] = {3, 1, 0, 2};
    const embla_copy_job copied = {.data = bytes,
                                   .row_stride = DIM * sizeof(float),
                                   .row_bytes = DIM * sizeof(float),
                                   .rows = rows,
                                   .count = ROWS,
                                   .known = ROWS,
                                   .out = (char *)out,
                                   .out_stride = DIM * sizeof(float),
                                   .mode = EMBLA_WRITE_AHEAD,
                                   .fetch = true};
    for (size_t i = 0; i < j->times; i++) j->set->copy_rows(&copied);
}

static const float *const rows_of_x[EMBLA_DOTS] = {x, x + DIM, x + 2 * DIM, x + 3 * DIM};

static void dots(const job *j)
{
    double sums[EMBLA_DOTS];
    for (size_t i = 0; i < j->times; i++) j->set->dots(rows_of_x, y, DIM, sums, NULL);
}

static void dots_and_squares(const job *j)
{
    double sums[EMBLA_DOTS], own[EMBLA_DOTS];
    for (size_t i = 0; i < j->times; i++) j->set->dots(rows_of_x, y, DIM, sums, own);
}

static void reach(const job *j)
{
    static uint32_t at[DIM];
    static float limits[DIM];
    for (size_t i = 0; i < DIM; i++) limits[i] = 1e9f;
    for (size_t i = 0; i < j->times; i++) (void)j->set->reach(x, 2.0f, 1.0f, limits, DIM, at);
}

static embla_score_sums sums_for(bool estimate)
{
    return (embla_score_sums){.rows = {bytes, bytes + DIM, bytes + 2 * DIM, bytes + 3 * DIM},
                              .vectors = y,
                              .n = DIM,
                              .stride = DIM,
                              .side = ROWS,
                              .count = 1,
                              .scale = 0.5f,
                              .whole = whole,
                              .from_zero = true,
                              .lanes = lanes,
                              .squares = estimate ? squares : NULL};
}

static void score(const job *j)
{
    const embla_score_sums sums = sums_for(false);
    embla_score_loop *loop = embla_score_loop_for(j->dtype, j->set->isa);
    for (size_t i = 0; i < j->times; i++) loop(&sums);
}

static void estimate(const job *j)
{
    const embla_score_sums sums = sums_for(true);
    embla_score_loop *loop = embla_score_loop_for(j->dtype, j->set->isa);
    for (size_t i = 0; i < j->times; i++) loop(&sums);
}

static void sketch(const job *j)
{
    static uint8_t block[STEPS * EMBLA_SKETCH_STEP];
    static int8_t query[8 * STEPS];
    static float factors[EMBLA_SKETCH_ROWS], errors[EMBLA_SKETCH_ROWS];
    int16_t bounds[EMBLA_SKETCH_ROWS];
    const embla_sketch_terms terms = {.query = query, .steps = STEPS};
    embla_sketch_bound *loop = EMBLA_ISA_PICK(embla_sketch_bounds, j->set->isa);
    for (size_t i = 0; i < j->times; i++) (void)loop(&terms, block, factors, errors, bounds);
}

/* A small linear layer: 48 tokens of 48 numbers, to 48 numbers each. */
static void product(const job *j)
{
    enum { SIDE = 48 };
    const embla_plain_product p = {.m = SIDE,
                                   .n = SIDE,
                                   .k = SIDE,
                                   .a = x,
                                   .b = y,
                                   .a_stride = SIDE,
                                   .b_stride = SIDE,
                                   .out_stride = SIDE,
                                   .out = out,
                                   .form = EMBLA_PRODUCT_A_B};
    for (size_t i = 0; i < j->times; i++) embla_product_plain(&p);
}

typedef struct {
    const char *name;
    void (*run)(const job *j);
    size_t numbers;
    embla_dtype dtype;
} loop_case;

static const loop_case cases[] = {
    {"copy rows", copy, ROWS *DIM, EMBLA_F32},
    {"decode f16", decode, DIM, EMBLA_F16},
    {"decode bf16", decode, DIM, EMBLA_BF16},
    {"decode f8_e4m3", decode, DIM, EMBLA_F8_E4M3},
    {"decode f8_e5m2", decode, DIM, EMBLA_F8_E5M2},
    {"decode i8", decode, DIM, EMBLA_I8},
    {"decode q8_0", decode, DIM, EMBLA_Q8_0},
    {"decode q4_0", decode, DIM, EMBLA_Q4_0},
    {"decode q4_1", decode, DIM, EMBLA_Q4_1},
    {"decode q5_0", decode, DIM, EMBLA_Q5_0},
    {"decode q5_1", decode, DIM, EMBLA_Q5_1},
    {"decode iq4_nl", decode, DIM, EMBLA_IQ4_NL},
    {"decode iq4_xs", decode, DIM, EMBLA_IQ4_XS},
    {"decode mxfp4", decode, DIM, EMBLA_MXFP4},
    {"decode nvfp4", decode, DIM, EMBLA_NVFP4},
    {"decode f4_e2m1", decode, DIM, EMBLA_F4_E2M1},
    {"encode f16", encode, DIM, EMBLA_F16},
    {"encode bf16", encode, DIM, EMBLA_BF16},
    {"dots of 4 rows", dots, EMBLA_DOTS *DIM, EMBLA_F32},
    {"dots and squares of 4 rows", dots_and_squares, EMBLA_DOTS *DIM, EMBLA_F32},
    {"reach", reach, DIM, EMBLA_F32},
    {"head f32", score, ROWS *DIM, EMBLA_F32},
    {"head bf16", score, ROWS *DIM, EMBLA_BF16},
    {"head f16", score, ROWS *DIM, EMBLA_F16},
    {"head i8", score, ROWS *DIM, EMBLA_I8},
    {"head q8_0", score, ROWS *DIM, EMBLA_Q8_0},
    {"estimate f32", estimate, ROWS *DIM, EMBLA_F32},
    {"estimate bf16", estimate, ROWS *DIM, EMBLA_BF16},
    {"estimate q8_0", estimate, ROWS *DIM, EMBLA_Q8_0},
    {"sketch of 32 rows", sketch, EMBLA_SKETCH_ROWS *DIM, EMBLA_F32},
    {"product 48 x 48 x 48", product, 48 * 48 * 48, EMBLA_F32},
};
enum { CASES = sizeof cases / sizeof cases[0] };

int main(int argc, char **argv)
{
    for (size_t i = 0; argc < 4 && i < CASES; i++)
        printf("%zu\t%s\n", cases[i].numbers, cases[i].name);
    if (argc < 4) return 0;
    for (size_t i = 0; i < ROWS * DIM; i++) x[i] = y[i] = (float)(i % 29) - 14.0f;
    embla_dtype_encoder(EMBLA_F16, EMBLA_ISA_SCALAR)(y, DIM, 1.0f, bytes);
    job j = {.set = embla_kernels_find(argv[2]), .times = strtoul(argv[3], NULL, 10)};
    for (size_t i = 0; j.set && i < CASES; i++) {
        if (strcmp(cases[i].name, argv[1]) != 0) continue;
        j.dtype = cases[i].dtype;
        embla_kernels_use(j.set);
        cases[i].run(&j);
        return 0;
    }
    (void)fprintf(stderr, "loops: there is no case '%s' or no set '%s'\n", argv[1], argv[2]);
    return 2;
}
