/* SPDX-License-Identifier: Apache-2.0 */
/* Exact sums: the same bits for every order, every division among ranks, every number of threads
 * and every instruction set; right to the last bit where a long double can tell.
 */
#include <float.h>
#include <math.h>

#include "check.h"
#include "thread_comm.h"

#include "base/kernels.h"
#include "base/mem.h"
#include "cluster/comm.h"
#include "cluster/exact.h"

enum { COUNT = 1000, TERMS = 24 }; /* sums (the last block is not full), and numbers in each */

typedef float terms[TERMS][COUNT];

/* ---- numbers ---- */

/* A number of any size: sign, and an exponent from low to high. */
static float any_float(uint64_t *state, int low, int high)
{
    int exponent = low + (int)check_below(state, (uint64_t)(high - low + 1));
    return ldexpf(1.0f + (float)(check_next(state) >> 41) * 0x1p-23f, exponent) *
           (check_next(state) & 1 ? 1.0f : -1.0f);
}

static void fill(terms x, uint64_t seed, int low, int high)
{
    for (size_t t = 0; t < TERMS; t++)
        for (size_t i = 0; i < COUNT; i++) x[t][i] = any_float(&seed, low, high);
}

/* Numbers of a block have one size in each term, so that the term decides about the level. */
static void fill_by_block(terms x, uint64_t seed, int low, int high)
{
    for (size_t t = 0; t < TERMS; t++)
        for (size_t i = 0; i < COUNT; i += EMBLA_EXACT_BLOCK) {
            int size = low + (int)check_below(&seed, (uint64_t)(high - low + 1));
            for (size_t k = i; k < COUNT && k < i + EMBLA_EXACT_BLOCK; k++)
                x[t][k] = any_float(&seed, size, size);
        }
}

/* ---- sums ---- */

/* Every rank gets all sums. */
static embla_status sum_all(const embla_comm *comm, embla_exact *sums, int threads, float *out)
{
    size_t levels = embla_exact_levels(sums), slice = embla_exact_slice(sums->count, sums->ranks);
    int64_t *all = malloc(levels * sizeof *all);
    float *slices = malloc((size_t)comm->size * slice * sizeof *slices);
    float *mine = calloc((size_t)comm->size * slice, sizeof *mine);
    embla_status status = embla_fail(EMBLA_ERR_MEMORY, "no memory");
    if (all && slices && mine) {
        memcpy(all, sums->levels, levels * sizeof *all);
        status =
            comm->allreduce(comm->owner, all, levels, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX);
        if (status == EMBLA_OK) status = embla_exact_sum(sums, comm, all, threads, mine);
        if (status == EMBLA_OK)
            status = comm->allgather(comm->owner, mine + (size_t)comm->rank * slice, slices,
                                     slice * sizeof *slices);
        if (status == EMBLA_OK) memcpy(out, slices, sums->count * sizeof *out);
    }
    free(all);
    free(slices);
    free(mine);
    return status;
}

/* Adds terms in the given order and rounds. */
static void sum_in_order(const terms x, const size_t *order, int threads, float out[COUNT])
{
    static float copies[3][COUNT];
    float *const at[3] = {copies[0], copies[1], copies[2]};
    embla_exact sums = {0};
    assert_ok(embla_exact_new(COUNT, 1, &sums));
    for (size_t t = 0, n; t < TERMS; t += n) {
        n = 1 + order[t] % 3; /* one or a few at once */
        if (n > TERMS - t) n = TERMS - t;
        for (size_t k = 0; k < n; k++) memcpy(copies[k], x[order[t + k]], sizeof copies[k]);
        assert_ok(embla_exact_take(&sums, at, n, threads));
        for (size_t k = 0; k < n; k++)
            for (size_t i = 0; i < COUNT; i++) assert_true(copies[k][i] == 0.0f);
    }
    assert_ok(sum_all(embla_comm_self(), &sums, threads, out));
    embla_exact_free(&sums);
}

static void in_order(size_t order[TERMS])
{
    for (size_t t = 0; t < TERMS; t++) order[t] = t;
}

static void shuffle(size_t order[TERMS], uint64_t *state)
{
    for (size_t t = TERMS; t-- > 1;) {
        size_t other = (size_t)check_below(state, t + 1), kept = order[t];
        order[t] = order[other];
        order[other] = kept;
    }
}

static void every_order_gives_the_same_bits(void **unused)
{
    (void)unused;
    static const int ranges[][2] = {{-10, 0}, {-40, 0}, {-149, 127}, {-149, -100}, {60, 122}};
    static terms x;
    float first[COUNT], again[COUNT];
    size_t order[TERMS];
    uint64_t state = 5;
    for (size_t r = 0; r < 2 * COUNT_OF(ranges); r++) {
        const int *range = ranges[r / 2];
        (r % 2 == 0 ? fill : fill_by_block)(x, 10 + r, range[0], range[1]);
        in_order(order);
        sum_in_order(x, order, 1, first);
        for (int tries = 0; tries < 20; tries++) {
            shuffle(order, &state);
            sum_in_order(x, order, 1 + tries % 3, again);
            assert_memory_equal(first, again, sizeof first);
        }
    }
}

/* Exponents that differ by less than 40 leave the sum of 24 numbers within the 64 bits of a long
 * double, so it is exact, and its rounding is the only one. */
static void sums_are_rounded_once(void **unused)
{
    (void)unused;
    static terms x;
    float out[COUNT];
    size_t order[TERMS], inexact = 0;
    in_order(order);
    for (int low = -149; low < 110; low += 7) {
        fill(x, (uint64_t)(low + 200), low, low + (low < -126 ? 10 : 8));
        sum_in_order(x, order, 1, out);
        for (size_t i = 0; i < COUNT; i++) {
            long double sum = 0;
            for (size_t t = 0; t < TERMS; t++) sum += (long double)x[t][i];
            if (out[i] != (float)sum)
                fail_msg("sum %zu from 2^%d: %a, not %La", i, low, (double)out[i], sum);
            inexact += (long double)out[i] != sum;
        }
    }
    assert_true(inexact > 1000);
}

/* A sum that is a little above or below the middle of two floats: a double would be that middle. */
static void sums_near_the_middle_of_two_floats_are_right(void **unused)
{
    (void)unused;
    static terms x;
    float out[COUNT];
    size_t order[TERMS];
    in_order(order);
    memset(x, 0, sizeof x);
    for (size_t i = 0; i < COUNT; i++) {
        float sign = i & 1 ? -1.0f : 1.0f;
        float size = ldexpf(1.0f, -2 - (int)(i % 16)); /* one level for all of them */
        x[0][i] = sign * size;
        x[1][i] = sign * size * 0x1p-24f;                            /* the middle */
        x[2][i] = sign * (i & 2 ? -1.0f : 1.0f) * ldexpf(1.0f, -60); /* and a little more or less */
    }
    sum_in_order(x, order, 1, out);
    for (size_t i = 0; i < COUNT; i++) {
        float low = fabsf(x[0][i]), high = nextafterf(low, 2.0f);
        assert_true(fabsf(out[i]) == (i & 2 ? low : high));
    }
}

static void small_numbers_beside_large_ones_keep_their_digits(void **unused)
{
    (void)unused;
    static terms x;
    float out[COUNT];
    size_t order[TERMS];
    in_order(order);
    fill(x, 3, -30, -24);
    for (size_t i = 0; i < COUNT; i += EMBLA_EXACT_BLOCK) x[TERMS - 1][i] = 0.4f;
    sum_in_order(x, order, 1, out);
    for (size_t i = 0; i < COUNT; i++) {
        double sum = 0.0;
        for (size_t t = 0; t < TERMS; t++) sum += (double)x[t][i];
        assert_near(out[i], sum, fabs(sum) * 0x1p-24 + TERMS * 0x1p-65);
    }
}

/* The bound of the header: a large number in the block costs 2^-32 of its size for each number. */
static void a_number_is_rounded_by_at_most_a_share_of_the_largest(void **unused)
{
    (void)unused;
    static terms x;
    float out[COUNT];
    size_t order[TERMS];
    in_order(order);
    for (int large = -100; large <= 100; large++) {
        fill(x, (uint64_t)(large + 300), large - 45, large - 1);
        for (size_t i = 0; i < COUNT; i++)
            if (i % EMBLA_EXACT_BLOCK == 7) x[5][i] = ldexpf(1.0f, large);
        sum_in_order(x, order, 1, out);
        for (size_t i = 0; i < COUNT; i++) {
            long double sum = 0;
            for (size_t t = 0; t < TERMS; t++) sum += (long double)x[t][i];
            long double most = ldexpl(1.0L, large - 32) * TERMS + fabsl(sum) * 0x1p-24L;
            assert_true(fabsl((long double)out[i] - sum) <= most);
        }
    }
}

static void a_nan_or_an_infinity_spoils_its_block_alone(void **unused)
{
    (void)unused;
    static terms x;
    float out[COUNT], plain[COUNT];
    size_t order[TERMS];
    uint64_t state = 9;
    fill(x, 4, -20, 10);
    in_order(order);
    sum_in_order(x, order, 1, plain);
    x[3][70] = NAN;
    x[7][200] = INFINITY;
    x[8][999] = -INFINITY;
    for (int tries = 0; tries < 5; tries++) {
        sum_in_order(x, order, 1, out);
        for (size_t i = 0; i < COUNT; i++) {
            size_t block = i / EMBLA_EXACT_BLOCK;
            bool spoiled = block == 70 / 64 || block == 200 / 64 || block == 999 / 64;
            if (spoiled)
                assert_int_equal(check_bits_of(out[i]), 0x7fc00000);
            else
                assert_int_equal(check_bits_of(out[i]), check_bits_of(plain[i]));
        }
        shuffle(order, &state);
    }
}

static void a_sum_that_is_too_large_is_infinite(void **unused)
{
    (void)unused;
    static terms x;
    float out[COUNT];
    size_t order[TERMS];
    in_order(order);
    for (size_t t = 0; t < TERMS; t++)
        for (size_t i = 0; i < COUNT; i++) x[t][i] = i & 1 ? -FLT_MAX : FLT_MAX;
    sum_in_order(x, order, 1, out);
    for (size_t i = 0; i < COUNT; i++) assert_true(out[i] == (i & 1 ? -INFINITY : INFINITY));
}

static void every_set_gives_the_bits_of_scalar(void **unused)
{
    (void)unused;
    static terms x;
    float wanted[COUNT], out[COUNT];
    size_t order[TERMS];
    in_order(order);
    fill(x, 6, -149, 127);
    x[2][300] = NAN;
    for (size_t i = 0; i < 64; i++) x[0][i] = -0.0f;
    embla_kernels_use(embla_kernels_find("scalar"));
    sum_in_order(x, order, 1, wanted);
    for (size_t i = 0; i < CHECK_SETS; i++) {
        if (!embla_kernels_find(check_sets[i])) continue;
        embla_kernels_use(embla_kernels_find(check_sets[i]));
        sum_in_order(x, order, 2, out);
        assert_memory_equal(wanted, out, sizeof out);
    }
    embla_kernels_use(NULL);
}

/* ---- ranks ---- */

typedef struct {
    const terms *x;
    size_t begin[THREAD_RANKS_MOST + 1]; /* the first term of each rank */
    float out[THREAD_RANKS_MOST][COUNT];
} division;

static embla_status sum_part(const embla_comm *comm, void *context)
{
    division *d = context;
    embla_exact sums = {0};
    float copy[COUNT];
    float *const at[1] = {copy};
    embla_status status = embla_exact_new(COUNT, (size_t)comm->size, &sums);
    for (size_t t = d->begin[comm->rank]; t < d->begin[comm->rank + 1] && status == EMBLA_OK; t++) {
        memcpy(copy, (*d->x)[t], sizeof copy);
        status = embla_exact_take(&sums, at, 1, 1);
    }
    if (status == EMBLA_OK) status = sum_all(comm, &sums, 1, d->out[comm->rank]);
    embla_exact_free(&sums);
    return status;
}

static void every_division_among_ranks_gives_the_same_bits(void **unused)
{
    (void)unused;
    static terms x;
    static division d;
    float wanted[COUNT];
    size_t order[TERMS];
    uint64_t state = 17;
    in_order(order);
    for (int range = 0; range < 3; range++) {
        fill(x, 20 + (uint64_t)range, range == 0 ? -149 : -30, range == 2 ? 127 : 0);
        if (range == 1) x[11][500] = NAN;
        sum_in_order(x, order, 1, wanted);
        for (int size = 1; size <= 6; size++) {
            d.x = (const terms *)&x;
            d.begin[size] = TERMS;
            for (int r = 1; r < size; r++) /* ranks may have no numbers */
                d.begin[r] = d.begin[r - 1] + check_below(&state, TERMS - d.begin[r - 1] + 1);
            thread_comm_run(size, sum_part, &d);
            for (int r = 0; r < size; r++) assert_memory_equal(d.out[r], wanted, sizeof wanted);
        }
    }
}

/* More sums than ranks exchange at once. */
enum { MANY = (1 << 20) + 15000 };

typedef struct {
    float *out[3];
} many_sums;

/* The size depends on the block, so blocks have different levels. */
static float many_at(size_t term, size_t i)
{
    uint64_t state = term * (uint64_t)MANY + i;
    int high = 40 - 23 * (int)(i / EMBLA_EXACT_BLOCK % 7);
    return any_float(&state, high - 10, high);
}

static embla_status sum_many(const embla_comm *comm, void *context)
{
    many_sums *m = context;
    embla_exact sums = {0};
    float *x[2] = {malloc(MANY * sizeof(float)), malloc(MANY * sizeof(float))};
    size_t each = (size_t)(comm->size == 1 ? 6 : 2), first = (size_t)comm->rank * 2;
    embla_status status = embla_fail(EMBLA_ERR_MEMORY, "no memory");
    if (x[0] && x[1]) status = embla_exact_new(MANY, (size_t)comm->size, &sums);
    for (size_t t = first; t < first + each && status == EMBLA_OK; t += 2) {
        for (size_t i = 0; i < MANY; i++) x[0][i] = many_at(t, i), x[1][i] = many_at(t + 1, i);
        status = embla_exact_take(&sums, x, 2, 2);
    }
    if (status == EMBLA_OK) status = sum_all(comm, &sums, 2, m->out[comm->rank]);
    embla_exact_free(&sums);
    free(x[0]);
    free(x[1]);
    return status;
}

static void many_sums_are_exchanged_in_several_rounds(void **unused)
{
    (void)unused;
    many_sums m;
    float *wanted = malloc(MANY * sizeof(float));
    for (size_t i = 0; i < 3; i++) assert_non_null(m.out[i] = calloc(MANY, sizeof(float)));
    assert_non_null(wanted);
    thread_comm_run(1, sum_many, &m);
    memcpy(wanted, m.out[0], MANY * sizeof(float));
    for (size_t i = 0; i < MANY; i += 997) {
        double sum = 0.0, sizes = 0.0;
        for (size_t t = 0; t < 6; t++) {
            sum += (double)many_at(t, i);
            sizes += fabs((double)many_at(t, i));
        }
        assert_near(wanted[i], sum, fabs(sum) * 0x1p-24 + sizes * 0x1p-18);
    }
    thread_comm_run(3, sum_many, &m);
    for (size_t r = 0; r < 3; r++) {
        assert_memory_equal(m.out[r], wanted, MANY * sizeof(float));
        free(m.out[r]);
    }
    free(wanted);
}

static void clearing_begins_again(void **unused)
{
    (void)unused;
    embla_exact sums = {0};
    float x[COUNT], out[COUNT], *const at[1] = {x};
    assert_ok(embla_exact_new(COUNT, 1, &sums));
    for (size_t i = 0; i < COUNT; i++) x[i] = FLT_MAX;
    x[5] = NAN;
    assert_ok(embla_exact_take(&sums, at, 1, 1));
    embla_exact_clear(&sums);
    for (size_t i = 0; i < COUNT; i++) x[i] = FLT_TRUE_MIN;
    assert_ok(embla_exact_take(&sums, at, 1, 1));
    assert_ok(sum_all(embla_comm_self(), &sums, 1, out));
    for (size_t i = 0; i < COUNT; i++) assert_true(out[i] == FLT_TRUE_MIN);
    embla_exact_free(&sums);
}

/* The parts of so many of the largest numbers still fit; one more is refused. */
static void the_number_of_additions_is_limited(void **unused)
{
    (void)unused;
    embla_exact sums = {0};
    float x, out, largest = nextafterf(0.5f, 0.0f); /* of its level */
    float *const at[1] = {&x};
    assert_ok(embla_exact_new(1, 1, &sums));
    for (int i = 0; i < EMBLA_EXACT_MOST; i++) {
        x = largest;
        assert_ok(embla_exact_take(&sums, at, 1, 1));
    }
    assert_ok(sum_all(embla_comm_self(), &sums, 1, &out));
    assert_true(out == (float)((double)largest * EMBLA_EXACT_MOST));
    x = 1.0f;
    assert_status(embla_exact_take(&sums, at, 1, 1), EMBLA_ERR_ARGUMENT);
    assert_error_has("at most 524288 numbers");
    assert_true(x == 1.0f);
    embla_exact_free(&sums);
    assert_status(embla_exact_new(SIZE_MAX / 2, 1, &sums), EMBLA_ERR_MEMORY);
    embla_mem_fail(1, false);
    assert_status(embla_exact_new(10, 2, &sums), EMBLA_ERR_MEMORY);
    embla_mem_fail(0, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_gives_the_same_bits),
        cmocka_unit_test(sums_are_rounded_once),
        cmocka_unit_test(sums_near_the_middle_of_two_floats_are_right),
        cmocka_unit_test(small_numbers_beside_large_ones_keep_their_digits),
        cmocka_unit_test(a_number_is_rounded_by_at_most_a_share_of_the_largest),
        cmocka_unit_test(a_nan_or_an_infinity_spoils_its_block_alone),
        cmocka_unit_test(a_sum_that_is_too_large_is_infinite),
        cmocka_unit_test(every_set_gives_the_bits_of_scalar),
        cmocka_unit_test(every_division_among_ranks_gives_the_same_bits),
        cmocka_unit_test(many_sums_are_exchanged_in_several_rounds),
        cmocka_unit_test(clearing_begins_again),
        cmocka_unit_test(the_number_of_additions_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
