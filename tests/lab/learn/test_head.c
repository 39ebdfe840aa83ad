/* SPDX-License-Identifier: Apache-2.0 */
/* Logits against sums in double over decoded rows, in every dtype, for one vector (a pass over
 * the table) and for many (products); the same bits for every number of threads and, in a pass,
 * for every instruction set; the soft cap against the C library's tanh.
 */
#include <math.h>
#include <unistd.h>

#include "base/half.h"
#include "base/math.h"
#include "base/mem.h"
#include "check.h"
#include "embla_learn.h"
#include "engine/score.h"
#include "learn/head.h"
#include "scratch.h"
#include "table/access.h"

static const int thread_counts[] = {1, 2, 3, 4, 8};

static float *new_floats(size_t n)
{
    float *x = malloc((n > 0 ? n : 1) * sizeof *x);
    assert_non_null(x);
    return x;
}

static float *filled(uint64_t seed, size_t n)
{
    float *x = new_floats(n);
    check_fill(seed, n, x);
    return x;
}

static double capped(double x, double cap)
{
    return cap == 0.0 ? x : isinf(x) && x < 0 ? x : cap * tanh(x / cap);
}

/* One logit in double; *size is the sum of magnitudes, for the tolerance. */
static double reference(const embla_head *head, const float *row, const float *hidden, size_t dim,
                        int64_t token, double *size)
{
    double sum = 0.0, scale = head->scale == 0.0f ? 1.0 : (double)head->scale;
    *size = 0.0;
    for (size_t i = 0; i < dim; i++) {
        sum += (double)row[i] * (double)hidden[i];
        *size += fabs((double)row[i] * (double)hidden[i]);
    }
    *size *= fabs(scale);
    sum *= scale;
    if (head->bias) {
        sum += (double)head->bias[token];
        *size += fabs((double)head->bias[token]);
    }
    return capped(sum, (double)head->soft_cap);
}

static void check_logits(const embla_head *head, const float *hidden, size_t count, int threads)
{
    const embla_table *table = head->table;
    size_t dim = embla_table_dim(table);
    int64_t rows = head->rows > 0 ? head->rows : embla_table_rows(table);
    check_guarded out = check_guard(count * (size_t)rows * sizeof(float), 4);
    float *row = new_floats(dim), *logits = (float *)(void *)out.bytes;
    assert_ok(
        embla_head_logits(head, hidden, count, &(embla_head_options){.threads = threads}, logits));
    check_guards(&out);
    for (int64_t r = 0; r < rows; r++) {
        check_row(table, r, row);
        for (size_t v = 0; v < count; v++) {
            double size, got = (double)logits[v * (size_t)rows + (size_t)r];
            double wanted = reference(head, row, hidden + v * dim, dim, r, &size);
            if (isnan(wanted) && isnan(got)) continue;
            if (isinf(wanted) && got == wanted) continue;
            assert_near(got, wanted, ((double)dim / 16 + 40) * 0x1p-24 * size + 1e-37);
        }
    }
    free(row);
    check_guard_free(&out);
}

static void test_every_dtype(void **state)
{
    static const size_t dims[] = {32, 64, 96, 288, 544};
    static const size_t counts[] = {1, 2, 3, 4, 5, 9};
    (void)state;
    for (int dtype = CHECK_FIRST_DTYPE; dtype <= CHECK_LAST_DTYPE; dtype++)
        for (size_t d = 0; d < COUNT_OF(dims); d++)
            for (size_t c = 0; c < COUNT_OF(counts); c++) {
                size_t dim = check_dim((embla_dtype)dtype, dims[d]);
                embla_table *table = check_table((embla_dtype)dtype, 23, dim, 5 + d);
                float *hidden = filled(c + 1, counts[c] * dim), *bias = filled(9, 23);
                check_logits(&(embla_head){.table = table}, hidden, counts[c], 1);
                check_logits(&(embla_head){.table = table, .bias = bias, .scale = -2.5f}, hidden,
                             counts[c], 2);
                check_logits(&(embla_head){.table = table, .rows = 18, .soft_cap = 0.75f}, hidden,
                             counts[c], 2);
                free(hidden);
                free(bias);
                embla_table_free(table);
            }
}

static void test_odd_dims(void **state)
{
    static const size_t dims[] = {1, 2, 3, 15, 16, 17, 31, 33, 100, 255, 257, 300};
    static const embla_dtype dtypes[] = {EMBLA_F32, EMBLA_F64, EMBLA_F16, EMBLA_BF16, EMBLA_I8};
    static const int64_t rows[] = {1, 2, 3, 4, 5, 7, 8, 70};
    (void)state;
    for (size_t t = 0; t < COUNT_OF(dtypes); t++)
        for (size_t d = 0; d < COUNT_OF(dims); d++)
            for (size_t r = 0; r < COUNT_OF(rows); r++) {
                embla_table *table = check_table(dtypes[t], rows[r], dims[d], d + 50);
                float *hidden = filled(d + 1, 6 * dims[d]);
                check_logits(&(embla_head){.table = table}, hidden, 1, 1);
                check_logits(&(embla_head){.table = table}, hidden, 4, 1);
                check_logits(&(embla_head){.table = table}, hidden, 6, 1);
                free(hidden);
                embla_table_free(table);
            }
}

/* Rows that begin anywhere, with bytes between them that are NaN as floats. */
static void test_views(void **state)
{
    enum { ROWS = 40, DIM = 100 };
    static const size_t offsets[] = {0, 4, 1, 2, 3}, gaps[] = {0, 4, 1, 64};
    (void)state;
    for (size_t o = 0; o < COUNT_OF(offsets); o++)
        for (size_t g = 0; g < COUNT_OF(gaps); g++)
            for (int half = 0; half < 2; half++) {
                embla_dtype dtype = half ? EMBLA_BF16 : EMBLA_F32;
                embla_table *from = check_table(dtype, ROWS, DIM, 3), *view = NULL;
                size_t row_bytes = embla_table_row_bytes(from), stride = row_bytes + gaps[g];
                check_guarded bytes = check_guard((ROWS - 1) * stride + row_bytes, offsets[o]);
                memset(bytes.bytes, 0xff, bytes.size);
                for (size_t r = 0; r < ROWS; r++)
                    memcpy(bytes.bytes + r * stride, embla_table_row(from, (int64_t)r), row_bytes);
                embla_table_options options = {.row_stride = stride};
                assert_ok(embla_table_view(
                    &(embla_table_layout){.dtype = dtype, .rows = ROWS, .dim = DIM}, bytes.bytes,
                    bytes.size, &options, &view));
                float *hidden = filled(4, 7 * DIM), *a = new_floats(7 * ROWS),
                      *b = new_floats(7 * ROWS);
                for (size_t count = 1; count <= 7; count += 3) {
                    check_logits(&(embla_head){.table = view}, hidden, count, 1);
                    assert_ok(embla_head_logits(&(embla_head){.table = view}, hidden, count,
                                                &(embla_head_options){.threads = 1}, a));
                    assert_ok(embla_head_logits(&(embla_head){.table = from}, hidden, count,
                                                &(embla_head_options){.threads = 1}, b));
                    if (count <= 4) assert_memory_equal(a, b, count * ROWS * sizeof *a);
                }
                free(hidden);
                free(a);
                free(b);
                embla_table_free(view);
                embla_table_free(from);
                check_guard_free(&bytes);
            }
}

static void test_same_bits(void **state)
{
    enum { ROWS = 2500, DIM = 160 };
    static const embla_dtype dtypes[] = {EMBLA_F32, EMBLA_BF16, EMBLA_Q8_0, EMBLA_F16, EMBLA_Q4_0};
    static const size_t counts[] = {1, 2, 3, 4, 5, 140};
    (void)state;
    for (size_t t = 0; t < COUNT_OF(dtypes); t++)
        for (size_t c = 0; c < COUNT_OF(counts); c++) {
            embla_table *table = check_table(dtypes[t], ROWS, DIM, 3);
            float *hidden = filled(7, counts[c] * DIM), *bias = filled(8, ROWS);
            size_t bytes = counts[c] * ROWS * sizeof(float);
            float *wanted = new_floats(bytes / 4), *out = new_floats(bytes / 4);
            embla_head head = {.table = table, .bias = bias, .scale = 3.0f, .soft_cap = 2.0f};
            assert_ok(embla_head_logits(&head, hidden, counts[c],
                                        &(embla_head_options){.threads = 1}, wanted));
            if (counts[c] <= 5) check_logits(&head, hidden, counts[c], 1); /* several chunks */
            for (size_t i = 1; i < COUNT_OF(thread_counts); i++) {
                memset(out, 0, bytes);
                assert_ok(embla_head_logits(&head, hidden, counts[c],
                                            &(embla_head_options){.threads = thread_counts[i]},
                                            out));
                assert_memory_equal(out, wanted, bytes);
            }
            for (size_t s = 0; s < CHECK_SETS && counts[c] <= 4; s++) {
                if (!embla_kernels_find(check_sets[s])) continue;
                embla_kernels_use(embla_kernels_find(check_sets[s]));
                memset(out, 0, bytes);
                assert_ok(embla_head_logits(&head, hidden, counts[c],
                                            &(embla_head_options){.threads = 2}, out));
                assert_memory_equal(out, wanted, bytes);
            }
            embla_kernels_use(NULL);
            free(out);
            free(wanted);
            free(bias);
            free(hidden);
            embla_table_free(table);
        }
}

/* The order of the sums, by its definition: 16 lanes, products rounded, a tree. */
static void test_order(void **state)
{
    enum { ROWS = 9, DIM = 416 };
    (void)state;
    for (int q = 0; q < 2; q++) {
        embla_table *table = check_table(q ? EMBLA_Q8_0 : EMBLA_F32, ROWS, DIM, 77);
        float *hidden = filled(5, 6 * DIM), out[6 * ROWS], row[DIM];
        embla_score(&(embla_score_job){.rows = embla_table_source(table),
                                       .n = ROWS,
                                       .vectors = hidden,
                                       .count = 6,
                                       .dots = out,
                                       .stride = ROWS});
        for (size_t v = 0; v < 6; v++)
            for (size_t r = 0; r < ROWS; r++) {
                const float *h = hidden + v * DIM;
                volatile float lanes[16] = {0}, product, other;
                check_row(table, (int64_t)r, row);
                const unsigned char *block = embla_table_row(table, (int64_t)r);
                for (size_t i = 0; i < DIM && !q; i++) {
                    product = row[i] * h[i];
                    lanes[i % 16] += product;
                }
                for (size_t i = 0; i < DIM && q; i += 32, block += 34)
                    for (size_t j = 0; j < 16; j++) {
                        const signed char *bytes = (const signed char *)block + 2;
                        float d = embla_f32_from_f16(embla_load_u16(block));
                        product = (float)bytes[j] * h[i + j];
                        other = (float)bytes[j + 16] * h[i + j + 16];
                        product += other;
                        product *= d;
                        lanes[j] += product;
                    }
                for (size_t half = 8; half > 0; half /= 2)
                    for (size_t j = 0; j < half; j++) lanes[j] += lanes[j + half];
                assert_int_equal(check_bits_of(lanes[0]), check_bits_of(out[v * ROWS + r]));
            }
        free(hidden);
        embla_table_free(table);
    }
}

static void test_strange_numbers(void **state)
{
    enum { ROWS = 12, DIM = 33 };
    embla_table *table = check_table(EMBLA_F32, ROWS, DIM, 4);
    float *rows = embla_table_data(table), bias[ROWS] = {0}, out[5 * ROWS];
    float *hidden = filled(6, 5 * DIM);
    (void)state;
    rows[2 * DIM + 32] = NAN;
    rows[3 * DIM + 5] = INFINITY;
    for (size_t i = 0; i < DIM; i++) rows[4 * DIM + i] = 1e38f;
    for (size_t i = 0; i < DIM; i++) rows[5 * DIM + i] = 1e-42f;
    for (size_t i = 0; i < 5 * DIM; i++) hidden[i] = fabsf(hidden[i]) + 0.5f;
    bias[7] = -INFINITY;
    bias[8] = INFINITY;
    bias[9] = NAN;
    for (int cap = 0; cap < 2; cap++)
        for (size_t count = 1; count <= 5; count += 4) {
            embla_head head = {.table = table, .bias = bias, .soft_cap = cap ? 30.0f : 0.0f};
            assert_ok(
                embla_head_logits(&head, hidden, count, &(embla_head_options){.threads = 1}, out));
            for (size_t v = 0; v < count; v++) {
                const float *x = out + v * ROWS;
                assert_true(isnan(x[2]) && isnan(x[9]));
                assert_true(cap ? x[3] == 30.0f && x[4] == 30.0f && x[8] == 30.0f
                                : isinf(x[3]) && x[3] > 0 && isinf(x[4]) && isinf(x[8]));
                assert_true(x[5] > 0.0f && x[5] < 1e-39f);
                assert_true(isinf(x[7]) && x[7] < 0.0f); /* barred, capped or not */
                assert_true(isfinite(x[0]) && isfinite(x[6]));
            }
        }
    free(hidden);
    embla_table_free(table);
}

static void test_tanh(void **state)
{
    double worst = 0.0;
    (void)state;
    for (uint32_t bits = 0x20000000u; bits < 0x41400000u; bits += 997) {
        double x = (double)check_float_of(bits), got = (double)embla_tanh((float)x);
        double off = fabs(got / tanh(x) - 1.0);
        if (off > worst) worst = off;
        assert_true(embla_tanh((float)-x) == -(float)got);
    }
    assert_true(worst < 2e-7);
    assert_true(embla_tanh(0.0f) == 0.0f && signbit(embla_tanh(-0.0f)));
    assert_true(embla_tanh(INFINITY) == 1.0f && embla_tanh(-INFINITY) == -1.0f);
    assert_true(embla_tanh(1e-40f) == 1e-40f && embla_tanh(9.2f) == 1.0f);
    assert_true(isnan(embla_tanh(NAN)) && embla_tanh(3e38f) == 1.0f);
}

/* The slope is that of the cap, by differences in double; the same bits on every set. */
static void test_soft_cap(void **state)
{
    enum { N = 203 };
    float x[N], capped_x[N], slopes[N], first[N], first_slopes[N];
    (void)state;
    for (size_t s = 0; s < CHECK_SETS; s++) {
        if (!embla_kernels_find(check_sets[s])) continue;
        embla_kernels_use(embla_kernels_find(check_sets[s]));
        for (size_t i = 0; i < N; i++) x[i] = ((float)i - 100.0f) * 1.3f;
        x[0] = -INFINITY;
        x[1] = INFINITY;
        x[2] = NAN;
        memcpy(capped_x, x, sizeof x);
        embla_soft_cap(capped_x, N, 20.0f);
        for (size_t i = 0; i < N; i++) slopes[i] = 3.0f;
        embla_soft_cap_back(capped_x, N, 20.0f, slopes);
        assert_true(isinf(capped_x[0]) && capped_x[0] < 0 && slopes[0] == 0.0f);
        assert_true(capped_x[1] == 20.0f && slopes[1] == 0.0f);
        assert_true(isnan(capped_x[2]) && isnan(slopes[2]));
        for (size_t i = 3; i < N; i++) {
            double h = 1e-4, at = (double)x[i];
            double slope = (capped(at + h, 20.0) - capped(at - h, 20.0)) / (2 * h);
            assert_near(capped_x[i], capped(at, 20.0), 20.0 * 2e-7);
            assert_near(slopes[i], 3.0 * slope, 3e-6);
        }
        if (s == 0) memcpy(first, capped_x, sizeof first);
        if (s == 0) memcpy(first_slopes, slopes, sizeof slopes);
        capped_x[2] = first[2]; /* the bits of a NaN are the CPU's */
        slopes[2] = first_slopes[2];
        assert_memory_equal(first, capped_x, sizeof first);
        assert_memory_equal(first_slopes, slopes, sizeof slopes);
    }
    embla_kernels_use(NULL);
}

static void test_bad_arguments(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 10, 8, 1);
    float hidden[8] = {0};
    check_guarded out = check_guard(10 * sizeof(float), 0);
    float *logits = (float *)(void *)out.bytes;
    embla_head head = {.table = table};
    (void)state;
#define REFUSED(h, x, n, t, o, text)                                                               \
    do {                                                                                           \
        assert_status(embla_head_logits(h, x, n, &(embla_head_options){.threads = t}, o),          \
                      EMBLA_ERR_ARGUMENT);                                                         \
        assert_error_has(text);                                                                    \
    } while (0)
    REFUSED(NULL, hidden, 1, 1, logits, "NULL");
    REFUSED(&(embla_head){0}, hidden, 1, 1, logits, "NULL");
    REFUSED(&head, NULL, 1, 1, logits, "hidden is NULL");
    REFUSED(&head, hidden, 1, 1, NULL, "out is NULL");
    REFUSED(&head, hidden, 1, -1, logits, "threads is -1");
    REFUSED(&head, hidden, SIZE_MAX / 64, 1, logits, "do not fit in memory");
    REFUSED(&head, hidden, SIZE_MAX / 16, 1, logits, "do not fit in memory");
    head.rows = 11;
    REFUSED(&head, hidden, 1, 1, logits, "11 tokens, but its table has 10 rows");
    head.rows = -1;
    REFUSED(&head, hidden, 1, 1, logits, "-1 tokens");
    head.rows = 0;
    head.scale = NAN;
    REFUSED(&head, hidden, 1, 1, logits, "scale");
    head.scale = 1.0f;
    head.soft_cap = -1.0f;
    REFUSED(&head, hidden, 1, 1, logits, "soft cap is -1");
    head.soft_cap = INFINITY;
    REFUSED(&head, hidden, 1, 1, logits, "soft cap");
    check_untouched(&out);
    head.soft_cap = 0.0f;
    assert_ok(embla_head_logits(&head, NULL, 0, &(embla_head_options){.threads = 1}, NULL));
    check_guard_free(&out);
    embla_table_free(table);
}

/* A token is an int32_t: row 2^31 would have no name. Nothing of the table is touched. */
static void a_head_has_at_most_two_to_the_31_tokens(void **state)
{
    static const char bytes[1];
    embla_table *table = NULL;
    embla_choice choice;
    const float hidden[1] = {1.0f};
    (void)state;
    assert_ok(embla_table_view(
        &(embla_table_layout){.dtype = EMBLA_I8, .rows = ((int64_t)1 << 31) + 1, .dim = 1}, bytes,
        (size_t)1 << 32, NULL, &table));
    assert_status(embla_head_top(&(embla_head){.table = table}, hidden, 1, 1, NULL, &choice),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("the head has 2147483649 tokens");
    embla_table_free(table);
}

static void test_no_memory(void **state)
{
    (void)state;
    for (size_t count = 1; count <= 6; count += 5) {
        embla_table *table = check_table(EMBLA_BF16, 30, 20, 1);
        float *hidden = filled(1, count * 20);
        check_guarded out = check_guard(count * 30 * sizeof(float), 0);
        embla_head head = {.table = table};
        size_t failures = 0;
        for (size_t at = 1;; at++) {
            size_t live = embla_mem_live();
            embla_mem_fail(at, false);
            embla_status status =
                embla_head_logits(&head, hidden, count, &(embla_head_options){.threads = 1},
                                  (float *)(void *)out.bytes);
            embla_mem_fail(0, false);
            assert_int_equal(embla_mem_live(), live);
            if (status == EMBLA_OK) break;
            assert_status(status, EMBLA_ERR_MEMORY);
            check_untouched(&out);
            failures++;
        }
        assert_true(failures > 0);
        free(hidden);
        check_guard_free(&out);
        embla_table_free(table);
    }
}

/* Rows in a mapped file, and a file that is cut short. */
static void test_mapped(void **state)
{
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (64, 32), }";
    char bytes[128 + 64 * 32 * 4];
    embla_table *from = check_table(EMBLA_F32, 64, 32, 2), *table = NULL;
    embla_checkpoint *checkpoint = NULL;
    float *hidden = filled(3, 6 * 32);
    check_guarded out = check_guard(6 * 64 * sizeof(float), 0);
    embla_choice choice = {.token = 5};
    scratch s;
    (void)state;
    scratch_new(&s);
    memset(bytes, ' ', 128);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(bytes + 10, header, sizeof header - 1);
    bytes[127] = '\n';
    memcpy(bytes + 128, embla_table_row(from, 0), sizeof bytes - 128);
    scratch_write(scratch_path(&s, "a.npy"), bytes, sizeof bytes);
    assert_int_equal(chmod(scratch_path(&s, "a.npy"), 0644), 0);
    assert_ok(embla_checkpoint_open(s.path, NULL, &checkpoint));
    assert_ok(embla_table_open(checkpoint, NULL, NULL, &table));
    embla_head head = {.table = table};
    check_logits(&head, hidden, 1, 2);
    check_logits(&head, hidden, 6, 2);
    assert_int_equal(truncate(s.path, 4096), 0);
    assert_status(embla_head_logits(&head, hidden, 1, &(embla_head_options){.threads = 1},
                                    (float *)(void *)out.bytes),
                  EMBLA_ERR_IO);
    assert_status(embla_head_top(&head, hidden, 1, 1, &(embla_head_options){.threads = 1}, &choice),
                  EMBLA_ERR_IO);
    check_untouched(&out);
    assert_int_equal(choice.token, 5);
    check_guard_free(&out);
    free(hidden);
    embla_table_free(table);
    embla_table_free(from);
    embla_checkpoint_free(checkpoint);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_dtype),
        cmocka_unit_test(test_odd_dims),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_strange_numbers),
        cmocka_unit_test(test_tanh),
        cmocka_unit_test(test_soft_cap),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(a_head_has_at_most_two_to_the_31_tokens),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_mapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
