/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel of every set this CPU can run, and every variant of every codec, against
 * the scalar one: the same bits for lengths 0..130, wherever memory begins, however it
 * is written, and not a byte outside.
 */
#include "check.h"

#include <limits.h>
#include <math.h>

#include "base/dtype.h"

enum { LONGEST = 130 };

/* The sets other than scalar that this CPU can run. */
static size_t other_sets(const embla_kernels *out[CHECK_SETS])
{
    size_t n = 0;
    for (size_t i = 1; i < CHECK_SETS; i++) {
        out[n] = embla_kernels_find(check_sets[i]);
        if (out[n]) n++;
    }
    if (n == 0) print_message("this CPU has no set but scalar\n");
    return n;
}

/* Numbers of all sizes with zeros and infinities among them, but no NaN. */
static void fill_hard(uint64_t seed, size_t n, float *out)
{
    const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, 0x1p-149f, -0x1.fffffep127f, 1.0f};
    for (size_t i = 0; i < n; i++) {
        uint64_t choice = check_below(&seed, 16);
        do out[i] = check_any_float(&seed);
        while (isnan(out[i]));
        if (choice < COUNT_OF(special)) out[i] = special[choice];
        if (choice > 12) out[i] = check_unit(&seed);
    }
}

/* ---- choosing ---- */

static void sets_that_do_not_exist_are_not_found(void **state)
{
    const char *const names[] = {"", "AVX2", "avx", "avx1024", "sve", "scalar "};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) assert_null(embla_kernels_find(names[i]));
    assert_ptr_equal(embla_kernels_find("scalar"), &embla_kernels_scalar);
}

static void every_set_has_its_name_and_all_its_kernels(void **state)
{
    (void)state;
    for (size_t i = 0; i < CHECK_SETS; i++) {
        const embla_kernels *k = embla_kernels_find(check_sets[i]);
        if (!k) continue;
        assert_string_equal(k->name, check_sets[i]);
        assert_int_equal(k->isa, i);
        assert_true(k->tokens_below && k->rows_below && k->widen && k->copy_rows && k->stream);
        assert_true(k->fence && k->scale_add && k->scale && k->dot && k->accumulate);
        assert_true(k->dots && k->reach);
        assert_true(k->maximum && k->rotate && k->uniform && k->normal);
    }
}

/* They are listed from scalar to the best, which is the one chosen. */
static void the_sets_of_this_cpu_are_listed(void **state)
{
    (void)state;
    int listed = 0;
    for (size_t i = 0; i < CHECK_SETS; i++) {
        if (!embla_kernels_find(check_sets[i])) continue;
        assert_string_equal(embla_kernels_at(listed), check_sets[i]);
        listed++;
    }
    assert_string_equal(embla_kernels_at(0), "scalar");
    assert_null(embla_kernels_at(listed));
    assert_null(embla_kernels_at(-1));
    assert_null(embla_kernels_at(INT_MAX));
}

/* The environment asks for a set; one that is not there gives scalar, never a crash. */
static void the_environment_chooses_the_set(void **state)
{
    const char *const names[] = {"scalar", "neon", "avx2", "avx512", "sse9", "AVX2"};
    const char *before = getenv("EMBLA_ISA");
    char kept[64] = "";
    (void)state;
    if (before) strncpy(kept, before, sizeof kept - 1);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const embla_kernels *there = embla_kernels_find(names[i]);
        assert_int_equal(setenv("EMBLA_ISA", names[i], 1), 0);
        embla_kernels_use(NULL);
        assert_string_equal(embla_kernels_name(), there ? names[i] : "scalar");
    }
    assert_int_equal(before ? setenv("EMBLA_ISA", kept, 1) : unsetenv("EMBLA_ISA"), 0);
    embla_kernels_use(NULL);
}

static void without_the_environment_the_best_set_is_chosen(void **state)
{
    const embla_kernels *best = &embla_kernels_scalar;
    (void)state;
    if (getenv("EMBLA_ISA") && *getenv("EMBLA_ISA")) skip_because("EMBLA_ISA is set");
    for (size_t i = 0; i < CHECK_SETS; i++)
        if (embla_kernels_find(check_sets[i])) best = embla_kernels_find(check_sets[i]);
    embla_kernels_use(NULL);
    assert_ptr_equal(embla_kernels_get(), best);
}

/* ---- ids ---- */

static void tokens_below_finds_one_bad_token_anywhere(void **state)
{
    const uint32_t limits[] = {1, 100, 65536, 1u << 31};
    (void)state;
    for (size_t s = 0; s < CHECK_SETS; s++) {
        const embla_kernels *k = embla_kernels_find(check_sets[s]);
        for (size_t l = 0; k && l < COUNT_OF(limits); l++)
            for (size_t n = 0; n <= LONGEST; n++) {
                int32_t tokens[LONGEST + 1], largest = (int32_t)(limits[l] - 1);
                for (size_t i = 0; i <= n; i++) tokens[i] = i % 2 ? largest : 0;
                tokens[n] = -1; /* one past the end is not looked at */
                assert_true(k->tokens_below(tokens, n, limits[l]));
                for (size_t at = 0; at < n; at++) {
                    int32_t good = tokens[at];
                    tokens[at] = at % 3 || limits[l] > INT32_MAX ? INT32_MIN + (int32_t)at
                                                                 : (int32_t)limits[l];
                    assert_false(k->tokens_below(tokens, n, limits[l]));
                    tokens[at] = good;
                }
            }
    }
}

static void rows_below_finds_one_bad_row_anywhere(void **state)
{
    const uint64_t limits[] = {1, 100, UINT64_C(1) << 32, (UINT64_C(1) << 40)};
    (void)state;
    for (size_t s = 0; s < CHECK_SETS; s++) {
        const embla_kernels *k = embla_kernels_find(check_sets[s]);
        for (size_t l = 0; k && l < COUNT_OF(limits); l++)
            for (size_t n = 0; n <= LONGEST; n++) {
                int64_t rows[LONGEST + 1];
                for (size_t i = 0; i <= n; i++) rows[i] = i % 2 ? (int64_t)(limits[l] - 1) : 0;
                rows[n] = -1;
                assert_true(k->rows_below(rows, n, limits[l]));
                for (size_t at = 0; at < n; at++) {
                    int64_t good = rows[at], bad[] = {-1, INT64_MIN, INT64_MAX, (int64_t)limits[l]};
                    rows[at] = bad[at % 4];
                    assert_false(k->rows_below(rows, n, limits[l]));
                    rows[at] = good;
                }
            }
    }
}

static void widening_keeps_every_token(void **state)
{
    (void)state;
    for (size_t s = 0; s < CHECK_SETS; s++) {
        const embla_kernels *k = embla_kernels_find(check_sets[s]);
        for (size_t n = 0; k && n <= LONGEST; n++) {
            int32_t tokens[LONGEST];
            uint64_t seed = n;
            check_guarded out = check_guard(n * sizeof(int64_t), 8);
            int64_t *rows = (int64_t *)(void *)out.bytes;
            for (size_t i = 0; i < n; i++) tokens[i] = (int32_t)check_next(&seed);
            k->widen(tokens, n, rows);
            for (size_t i = 0; i < n; i++) assert_true(rows[i] == tokens[i]);
            check_guards(&out);
            check_guard_free(&out);
        }
    }
}

/* ---- copies ---- */

static void copy_and_compare(const embla_kernels *k, embla_copy_job job, size_t offset)
{
    size_t size = (job.count - 1) * job.out_stride + job.row_bytes;
    check_guarded wanted = check_guard(size, offset), got = check_guard(size, offset);
    job.out = (char *)wanted.bytes;
    embla_kernels_scalar.copy_rows(&job);
    job.out = (char *)got.bytes;
    k->copy_rows(&job);
    k->fence();
    assert_memory_equal(got.block, wanted.block, got.total); /* gaps and guards included */
    check_guards(&got);
    check_guard_free(&wanted);
    check_guard_free(&got);
}

/* 21 rows: a group of 16 and a part of one, with more known than are copied. */
static void rows_are_copied_alike_whatever_their_size(void **state)
{
    enum { ROWS = 40, COUNT = 21, KNOWN = 30, MOST = 300 };
    static char data[ROWS * (MOST + 8)];
    const embla_kernels *sets[CHECK_SETS];
    int64_t rows[KNOWN];
    uint64_t seed = 1;
    (void)state;
    check_fill_bytes(2, sizeof data, data);
    for (size_t i = 0; i < KNOWN; i++) rows[i] = (int64_t)check_below(&seed, ROWS);
    size_t n = other_sets(sets);
    for (size_t s = 0; s < n; s++)
        for (size_t row_bytes = 1; row_bytes <= MOST; row_bytes++)
            for (int way = 0; way < 6; way++) {
                embla_copy_job job = {.data = data + (row_bytes + (size_t)way) % 2,
                                      .row_stride = row_bytes + row_bytes % 7,
                                      .row_bytes = row_bytes,
                                      .rows = rows,
                                      .count = COUNT,
                                      .known = KNOWN,
                                      .out_stride = row_bytes + (row_bytes + (size_t)way) % 5,
                                      .mode = (embla_write_mode)(way % 3),
                                      .fetch = way < 3};
                copy_and_compare(sets[s], job, 0);
                copy_and_compare(sets[s], job, 1 + row_bytes % 63);
            }
}

static void streaming_copies_any_bytes_anywhere(void **state)
{
    static char in[600];
    const embla_kernels *sets[CHECK_SETS];
    (void)state;
    check_fill_bytes(3, sizeof in, in);
    size_t n = other_sets(sets);
    for (size_t s = 0; s < n; s++)
        for (size_t bytes = 0; bytes <= 300; bytes++)
            for (size_t offset = 0; offset < 64; offset += 21) {
                check_guarded out = check_guard(bytes, offset);
                sets[s]->stream(out.bytes, in + offset % 5, bytes);
                sets[s]->fence();
                assert_memory_equal(out.bytes, in + offset % 5, bytes);
                check_guards(&out);
                check_guard_free(&out);
            }
}

/* ---- arithmetic ---- */

/* One call of a kernel that writes floats; x and y are in, out is in and out. */
typedef void arithmetic(const embla_kernels *k, const float *x, const float *y, size_t n,
                        float *out);

static void do_scale_add(const embla_kernels *k, const float *x, const float *y, size_t n,
                         float *out)
{
    k->scale_add(x, 27.7128f, y, n, out);
}

static void do_scale(const embla_kernels *k, const float *x, const float *y, size_t n, float *out)
{
    (void)y;
    k->scale(x, 0.3f, n, out);
}

static void do_maximum(const embla_kernels *k, const float *x, const float *y, size_t n, float *out)
{
    memcpy(out, y, n * sizeof *out);
    k->maximum(x, n, out);
}

static void do_accumulate(const embla_kernels *k, const float *x, const float *y, size_t n,
                          float *out)
{
    double sums[LONGEST];
    for (size_t i = 0; i < n; i++) sums[i] = (double)y[i] * 1.1;
    k->accumulate(x, -0.7, n, sums);
    for (size_t i = 0; i < n; i++) out[i] = (float)(sums[i] * 0x1p-8);
}

/* Pairs side by side, as the first order has them. n odd: the last is left alone. */
static void do_turn_neighbours(const embla_kernels *k, const float *x, const float *y, size_t n,
                               float *out)
{
    embla_rotate_job job = {
        .first = out, .second = out + 1, .step = 2, .pairs = n / 2, .cosine = y, .sine = y + n / 2};
    memcpy(out, x, n * sizeof *out);
    k->rotate(&job);
}

static void do_turn_halves(const embla_kernels *k, const float *x, const float *y, size_t n,
                           float *out)
{
    embla_rotate_job job = {.first = out,
                            .second = out + n / 2,
                            .step = 1,
                            .pairs = n / 2,
                            .cosine = y,
                            .sine = y + n / 2};
    memcpy(out, x, n * sizeof *out);
    k->rotate(&job);
}

static void do_uniform(const embla_kernels *k, const float *x, const float *y, size_t n, float *out)
{
    (void)x, (void)y;
    k->uniform(n * 77, n << 30, 64 * n, n, 0.02f, out);
}

static void do_normal(const embla_kernels *k, const float *x, const float *y, size_t n, float *out)
{
    (void)x, (void)y;
    k->normal(n * 77, n << 30, 64 * n, n, 0.02f, out);
}

static void arithmetic_gives_the_same_bits(void **state)
{
    arithmetic *const all[] = {do_scale_add,       do_scale,       do_maximum, do_accumulate,
                               do_turn_neighbours, do_turn_halves, do_uniform, do_normal};
    const embla_kernels *sets[CHECK_SETS];
    float x[LONGEST + 4], y[LONGEST + 4];
    (void)state;
    size_t count = other_sets(sets);
    for (size_t s = 0; s < count; s++)
        for (size_t a = 0; a < COUNT_OF(all); a++)
            for (size_t n = 0; n <= LONGEST; n++) {
                size_t offset = n % 4;
                check_guarded wanted = check_guard(n * sizeof(float), 4 * (n % 16));
                check_guarded got = check_guard(n * sizeof(float), 4 * (n % 16));
                fill_hard(n, LONGEST + 4, x);
                fill_hard(n + 1000, LONGEST + 4, y);
                all[a](&embla_kernels_scalar, x + offset, y + (3 - offset), n,
                       (float *)(void *)wanted.bytes);
                all[a](sets[s], x + offset, y + (3 - offset), n, (float *)(void *)got.bytes);
                if (memcmp(got.block, wanted.block, got.total) != 0)
                    fail_msg("%s, kernel %zu, length %zu", sets[s]->name, a, n);
                check_guards(&got);
                check_guard_free(&wanted);
                check_guard_free(&got);
            }
}

static void dot_gives_the_same_bits(void **state)
{
    const embla_kernels *sets[CHECK_SETS];
    float x[LONGEST + 4], y[LONGEST + 4];
    (void)state;
    check_fill(8, LONGEST + 4, x);
    check_fill(9, LONGEST + 4, y);
    size_t count = other_sets(sets);
    for (size_t s = 0; s < count; s++)
        for (size_t n = 0; n <= LONGEST; n++)
            for (size_t offset = 0; offset < 4; offset++) {
                double wanted = embla_kernels_scalar.dot(x + offset, y + 3 - offset, n);
                double got = sets[s]->dot(x + offset, y + 3 - offset, n);
                assert_memory_equal(&got, &wanted, sizeof got);
            }
}

/* Four rows side by side, each as `dot` has it. What is not asked for is not written. */
static void dots_are_the_bits_of_dot(void **state)
{
    float x[EMBLA_DOTS][LONGEST + 4], y[LONGEST + 4];
    (void)state;
    for (size_t r = 0; r < EMBLA_DOTS; r++) check_fill(10 + r, LONGEST + 4, x[r]);
    check_fill(9, LONGEST + 4, y);
    for (size_t s = 0; s < CHECK_SETS; s++) {
        const embla_kernels *k = embla_kernels_find(check_sets[s]);
        for (size_t n = 0; k && n <= LONGEST; n++)
            for (size_t offset = 0; offset < 4; offset++) {
                const float *rows[EMBLA_DOTS], *with = y + 3 - offset;
                double got[4][EMBLA_DOTS + 1], wanted[2][EMBLA_DOTS + 1];
                for (size_t r = 0; r < EMBLA_DOTS; r++) {
                    rows[r] = x[r] + (offset + r) % 4;
                    wanted[0][r] = embla_kernels_scalar.dot(rows[r], with, n);
                    wanted[1][r] = embla_kernels_scalar.dot(rows[r], rows[r], n);
                }
                for (size_t i = 0; i < 4; i++) got[i][EMBLA_DOTS] = 77.0;
                wanted[0][EMBLA_DOTS] = wanted[1][EMBLA_DOTS] = 77.0;
                k->dots(rows, with, n, got[0], got[1]);
                k->dots(rows, with, n, got[2], NULL);
                k->dots(rows, NULL, n, NULL, got[3]);
                assert_memory_equal(got[0], wanted[0], sizeof got[0]);
                assert_memory_equal(got[1], wanted[1], sizeof got[1]);
                assert_memory_equal(got[2], wanted[0], sizeof got[2]);
                assert_memory_equal(got[3], wanted[1], sizeof got[3]);
            }
    }
}

/* Numbers whose sum is lost in float, and sums that pass what a float can hold. */
static void dots_of_huge_numbers_are_finite(void **state)
{
    float x[100], y[100];
    (void)state;
    for (size_t i = 0; i < 100; i++) {
        x[i] = i % 2 ? 3e38f : -3e38f;
        y[i] = i % 2 ? 3e38f : 0x1p-149f;
    }
    for (size_t s = 0; s < CHECK_SETS; s++) {
        const embla_kernels *k = embla_kernels_find(check_sets[s]);
        const float *rows[EMBLA_DOTS] = {x, y, x, y};
        double out[EMBLA_DOTS], squares[EMBLA_DOTS];
        if (!k) continue;
        k->dots(rows, y, 100, out, squares);
        for (size_t r = 0; r < EMBLA_DOTS; r++) {
            assert_true(out[r] == embla_kernels_scalar.dot(rows[r], y, 100) && isfinite(out[r]));
            assert_true(squares[r] == embla_kernels_scalar.dot(rows[r], rows[r], 100));
        }
    }
}

static void what_reaches_its_limit_is_found_in_every_place(void **state)
{
    (void)state;
    for (size_t s = 0; s < CHECK_SETS; s++) {
        const embla_kernels *k = embla_kernels_find(check_sets[s]);
        for (size_t n = 0; k && n <= LONGEST; n++)
            for (uint64_t seed = 0; seed < 4; seed++) {
                float x[LONGEST + 3], limits[LONGEST + 3];
                uint32_t at[LONGEST + 1], wanted[LONGEST + 1];
                uint64_t next = n * 4 + seed;
                size_t count = 0, offset = n % 3;
                for (size_t i = 0; i < n; i++) {
                    float v = check_unit(&next), *place = &x[offset + i];
                    *place = v;
                    limits[offset + i] = v * 1.5f + 0.25f; /* reached exactly */
                    uint64_t choice = check_below(&next, 8);
                    if (choice == 0) *place = NAN;
                    if (choice == 1) limits[offset + i] = -INFINITY;
                    if (choice == 2) *place = -INFINITY;
                    if (choice > 2 && seed) limits[offset + i] += choice == 3 ? -1e-3f : 1e-3f;
                    if (!(*place * 1.5f + 0.25f < limits[offset + i]))
                        wanted[count++] = (uint32_t)i;
                }
                memset(at, 0xab, sizeof at);
                assert_int_equal(k->reach(x + offset, 1.5f, 0.25f, limits + offset, n, at), count);
                assert_memory_equal(at, wanted, count * sizeof at[0]);
                assert_int_equal(at[count], 0xabababab);
            }
    }
}

static void maximum_keeps_a_nan_from_either_side(void **state)
{
    (void)state;
    for (size_t s = 0; s < CHECK_SETS; s++) {
        const embla_kernels *k = embla_kernels_find(check_sets[s]);
        for (size_t n = 1; k && n <= LONGEST; n++) {
            float x[LONGEST], best[LONGEST];
            for (size_t i = 0; i < n; i++) x[i] = best[i] = (float)i;
            x[n / 2] = NAN;
            best[n - 1] = NAN;
            k->maximum(x, n, best);
            for (size_t i = 0; i < n; i++)
                assert_true(i == n / 2 || i == n - 1 ? isnan(best[i]) : best[i] == (float)i);
        }
    }
}

/* ---- codecs ---- */

/* Input from an odd address; output from any float, or from a line when streaming. */
typedef void compare_fn(embla_dtype dtype, embla_isa isa, size_t n);

/* Every set but scalar, every dtype, every length. */
static void compare_codecs(compare_fn *compare)
{
    const embla_kernels *sets[CHECK_SETS];
    size_t count = other_sets(sets);
    for (size_t s = 0; s < count; s++)
        for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
            size_t step = embla_dtype_find_info((embla_dtype)d)->block;
            size_t longest = step > 2 ? 10 * step : LONGEST;
            for (size_t n = 0; n <= longest; n += step) compare((embla_dtype)d, sets[s]->isa, n);
        }
}

static void compare_stored(embla_dtype dtype, embla_isa isa, size_t n, embla_write_mode store)
{
    const embla_dtype_info *info = embla_dtype_find_info(dtype);
    size_t offset = store == EMBLA_WRITE_STREAM ? 0 : 4 * (n % 16);
    check_guarded in = check_guard(embla_dtype_bytes(info, n), 1 + 2 * (n % 31));
    check_guarded wanted = check_guard(n * sizeof(float), offset);
    check_guarded got = check_guard(n * sizeof(float), offset);
    float scale = info->scaled ? 0.37f : 1.0f;
    check_fill_bytes(n + 10 * (size_t)dtype, in.size, in.bytes);
    embla_dtype_decoder(dtype, EMBLA_ISA_SCALAR)(in.bytes, n, scale, EMBLA_WRITE_PLAIN,
                                                 (float *)(void *)wanted.bytes);
    embla_dtype_decoder(dtype, isa)(in.bytes, n, scale, store, (float *)(void *)got.bytes);
    embla_kernels_find(check_sets[isa])->fence();
    if (memcmp(got.block, wanted.block, got.total) != 0)
        fail_msg("%s, %s, length %zu, store %d", info->name, check_sets[isa], n, (int)store);
    check_guards(&got);
    check_guards(&in);
    check_guard_free(&in);
    check_guard_free(&wanted);
    check_guard_free(&got);
}

static void compare_decoders(embla_dtype dtype, embla_isa isa, size_t n)
{
    for (int store = EMBLA_WRITE_PLAIN; store <= EMBLA_WRITE_STREAM; store++)
        compare_stored(dtype, isa, n, (embla_write_mode)store);
}

static void every_decoder_gives_the_same_bits(void **state)
{
    (void)state;
    compare_codecs(compare_decoders);
}

static void compare_encoders(embla_dtype dtype, embla_isa isa, size_t n)
{
    const embla_dtype_info *info = embla_dtype_find_info(dtype);
    size_t bytes = embla_dtype_bytes(info, n);
    if (!embla_dtype_writes(dtype)) return;
    check_guarded wanted = check_guard(bytes, 1 + 2 * (n % 31));
    check_guarded got = check_guard(bytes, 1 + 2 * (n % 31));
    float in[10 * 256 + 3], *from = in + n % 4;
    uint64_t seed = n + 50;
    for (size_t i = 0; i < n; i++) from[i] = i % 3 ? check_any_float(&seed) : check_unit(&seed);
    for (size_t i = 0; info->block > 1 && i < n; i++) /* some blocks without NaN */
        if (i / 32 % 2) from[i] = check_unit(&seed);
    float scale = info->scaled ? 0.37f : 1.0f;
    embla_dtype_encoder(dtype, EMBLA_ISA_SCALAR)(from, n, scale, wanted.bytes);
    embla_dtype_encoder(dtype, isa)(from, n, scale, got.bytes);
    if (memcmp(got.block, wanted.block, got.total) != 0)
        fail_msg("%s, %s, length %zu", info->name, check_sets[isa], n);
    check_guards(&got);
    check_guard_free(&wanted);
    check_guard_free(&got);
}

static void every_encoder_gives_the_same_bits(void **state)
{
    (void)state;
    compare_codecs(compare_encoders);
}

/* All 65,536 codes and all midpoints at once, where hardware does the rounding. */
static void hardware_halves_agree_with_the_scalar_ones(void **state)
{
    enum { N = 65536 };
    static uint16_t codes[N], wanted[N], got[N];
    static float numbers[N], again[N];
    const embla_kernels *sets[CHECK_SETS];
    (void)state;
    for (size_t i = 0; i < N; i++) codes[i] = (uint16_t)i;
    size_t count = other_sets(sets);
    for (size_t s = 0; s < count; s++)
        for (int d = EMBLA_F16; d <= EMBLA_BF16; d++) {
            embla_isa isa = sets[s]->isa;
            embla_dtype_decoder((embla_dtype)d, EMBLA_ISA_SCALAR)(codes, N, 1, EMBLA_WRITE_PLAIN,
                                                                  numbers);
            embla_dtype_decoder((embla_dtype)d, isa)(codes, N, 1, EMBLA_WRITE_PLAIN, again);
            assert_memory_equal(again, numbers, sizeof numbers);
            for (size_t i = 0; i < N; i++) /* halfway to the next code, in bits */
                numbers[i] = check_float_of(check_bits_of(numbers[i]) +
                                            (d == EMBLA_F16 ? 1u << 12 : 1u << 15));
            embla_dtype_encoder((embla_dtype)d, EMBLA_ISA_SCALAR)(numbers, N, 1, wanted);
            embla_dtype_encoder((embla_dtype)d, isa)(numbers, N, 1, got);
            assert_memory_equal(got, wanted, sizeof got);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_that_do_not_exist_are_not_found),
        cmocka_unit_test(the_sets_of_this_cpu_are_listed),
        cmocka_unit_test(every_set_has_its_name_and_all_its_kernels),
        cmocka_unit_test(the_environment_chooses_the_set),
        cmocka_unit_test(without_the_environment_the_best_set_is_chosen),
        cmocka_unit_test(tokens_below_finds_one_bad_token_anywhere),
        cmocka_unit_test(rows_below_finds_one_bad_row_anywhere),
        cmocka_unit_test(widening_keeps_every_token),
        cmocka_unit_test(rows_are_copied_alike_whatever_their_size),
        cmocka_unit_test(streaming_copies_any_bytes_anywhere),
        cmocka_unit_test(arithmetic_gives_the_same_bits),
        cmocka_unit_test(dot_gives_the_same_bits),
        cmocka_unit_test(dots_are_the_bits_of_dot),
        cmocka_unit_test(dots_of_huge_numbers_are_finite),
        cmocka_unit_test(what_reaches_its_limit_is_found_in_every_place),
        cmocka_unit_test(maximum_keeps_a_nan_from_either_side),
        cmocka_unit_test(every_decoder_gives_the_same_bits),
        cmocka_unit_test(every_encoder_gives_the_same_bits),
        cmocka_unit_test(hardware_halves_agree_with_the_scalar_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
