/* SPDX-License-Identifier: Apache-2.0 */
/* One body for each kind of step, compiled for each instruction set.
 *
 * A block of BLOCK numbers is a cache line. While it is updated, the same line of the next numbers
 * is prefetched, because the hardware cannot guess where the next row begins. The divisions and the
 * root of AdamW take less time than its seven arrays take to pass through memory.
 *
 * Catching up is the same arithmetic with a gradient of 0, not a closed formula: a power of keep or
 * beta would not have the bits of so many roundings. Only operations that provably change nothing
 * are left out (see `replay_body`).
 */
#include "learn/steps.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/math.h"

#if EMBLA_X86
#include <immintrin.h>
#elif EMBLA_ARM
#include <arm_neon.h>
#endif

enum { BLOCK = 16 };

/* For a loop over a block. gcc would unroll a short loop before it vectorizes, and then not
 * vectorize it. clang needs no pragma, and warns if a sanitizer prevents vectorization. */
#if defined(__clang__)
#define VECTORS
#else
#define VECTORS _Pragma("omp simd")
#endif

/* ---- constants of steps ---- */

static embla_step_kind kind_of(const embla_optim_options *options)
{
    switch (options->kind) {
    case EMBLA_OPTIM_ADAGRAD:
        return EMBLA_STEP_ADAGRAD;
    case EMBLA_OPTIM_ADAGRAD_ROWWISE:
        return EMBLA_STEP_ROWWISE;
    case EMBLA_OPTIM_ADAMW:
        return EMBLA_STEP_ADAMW;
    default:
        break;
    }
    if (options->nesterov) return EMBLA_STEP_NESTEROV;
    return options->momentum != 0.0 ? EMBLA_STEP_MOMENTUM : EMBLA_STEP_SGD;
}

embla_rule embla_rule_of(const embla_optim_options *options)
{
    double beta1 = options->beta1 != 0.0 ? options->beta1 : 0.9;
    double beta2 = options->beta2 != 0.0 ? options->beta2 : 0.999;
    double epsilon = options->kind == EMBLA_OPTIM_ADAMW ? 1e-8 : 1e-10;
    if (options->epsilon != 0.0) epsilon = options->epsilon;
    return (embla_rule){.kind = kind_of(options),
                        .exact_beta1 = beta1,
                        .exact_beta2 = beta2,
                        .decay = options->decay,
                        .momentum = (float)options->momentum,
                        .beta1 = (float)beta1,
                        .rest1 = (float)(1.0 - beta1),
                        .beta2 = (float)beta2,
                        .rest2 = (float)(1.0 - beta2),
                        .epsilon = (float)epsilon};
}

/* base^exponent by squaring: the pow of two C libraries may differ in the last bit. */
static double power(double base, int64_t exponent)
{
    double result = 1.0;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result *= base;
        base *= base;
    }
    return result;
}

bool embla_moment_of(const embla_rule *rule, int64_t step, double rate, embla_moment *out)
{
    double keep = 1.0 - rate * rule->decay, pace = rate, root = 1.0;
    if (rule->kind == EMBLA_STEP_ADAMW) {
        pace = rate / (1.0 - power(rule->exact_beta1, step));
        root = 1.0 / sqrt(1.0 - power(rule->exact_beta2, step));
    }
    if (!(fabs(keep) <= FLT_MAX) || !(pace <= FLT_MAX)) return false;
    *out = (embla_moment){.keep = (float)keep, .rate = (float)pace, .root = (float)root};
    return true;
}

/* ---- one number ---- */

/* A mean without further gradients shrinks every step and, rounded to nearest, stays at a few times
 * the smallest subnormal number forever. It changes nothing, but CPUs are many times slower with
 * such numbers. So a mean below 2^-100, and squares below the smallest normal number, become 0. */
EMBLA_BODY float faded(float x, float least)
{
    return fabsf(x) < least ? 0.0f : x;
}

/* The order of operations is part of the contract: docs/numerics.md repeats it. */
EMBLA_BODY void step_number(embla_step_kind kind, const embla_rule *r, const embla_moment *t,
                            float divisor, float g, float *w, float *a, float *b)
{
    float kept = *w * t->keep;
    switch (kind) {
    case EMBLA_STEP_MOMENTUM:
        *a = faded(r->momentum * *a + g, 0x1p-100f);
        *w = kept - t->rate * *a;
        break;
    case EMBLA_STEP_NESTEROV:
        *a = faded(r->momentum * *a + g, 0x1p-100f);
        *w = kept - t->rate * (g + r->momentum * *a);
        break;
    case EMBLA_STEP_ADAGRAD:
        *a = *a + g * g;
        *w = kept - (t->rate * g) / (sqrtf(*a) + r->epsilon);
        break;
    case EMBLA_STEP_ROWWISE:
        *w = kept - (t->rate * g) / divisor;
        break;
    case EMBLA_STEP_ADAMW:
        *a = faded(r->beta1 * *a + r->rest1 * g, 0x1p-100f);
        *b = faded(r->beta2 * *b + (r->rest2 * g) * g, FLT_MIN);
        *w = kept - (t->rate * *a) / (sqrtf(*b) * t->root + r->epsilon);
        break;
    default:
        *w = kept - t->rate * g;
        break;
    }
}

EMBLA_BODY bool uses_a(embla_step_kind kind)
{
    return kind != EMBLA_STEP_SGD && kind != EMBLA_STEP_ROWWISE;
}

/* ---- a step ---- */

/* Numbers of one block, loaded, updated and stored: arrays that become registers. */
EMBLA_BODY void step_block(embla_step_kind kind, const embla_rule *r, const embla_moment *t,
                           float divisor, const float *restrict g, float *restrict w,
                           float *restrict a, float *restrict b)
{
    VECTORS
    for (size_t j = 0; j < BLOCK; j++)
        step_number(kind, r, t, divisor, g[j], &w[j], uses_a(kind) ? &a[j] : NULL,
                    kind == EMBLA_STEP_ADAMW ? &b[j] : NULL);
}

EMBLA_BODY void fetch(const float *next, size_t i)
{
    if (next) __builtin_prefetch(next + i, 1);
}

EMBLA_BODY void step_body(embla_step_kind kind, const embla_rule *rule, const embla_moment *moment,
                          const embla_numbers *numbers)
{
    const embla_rule r = *rule; /* a copy, which writes through w cannot change */
    const embla_moment t = *moment;
    const embla_numbers x = *numbers;
    size_t i = 0;
    for (; i + BLOCK <= x.n; i += BLOCK) {
        fetch(x.next_w, i);
        if (uses_a(kind)) fetch(x.next_a, i);
        if (kind == EMBLA_STEP_ADAMW) fetch(x.next_b, i);
        if (x.next_g) __builtin_prefetch(x.next_g + i, 0);
        step_block(kind, &r, &t, x.divisor, x.g + i, x.w + i, uses_a(kind) ? x.a + i : NULL,
                   kind == EMBLA_STEP_ADAMW ? x.b + i : NULL);
    }
    for (; i < x.n; i++)
        step_number(kind, &r, &t, x.divisor, x.g[i], &x.w[i], uses_a(kind) ? &x.a[i] : NULL,
                    kind == EMBLA_STEP_ADAMW ? &x.b[i] : NULL);
}

/* ---- the squares of a row ---- */

/* The sum of squares with the bits of the kernel `dot`: sixteen partial sums in double, added as a
 * tree. It is here because the row's weights (next) must be prefetched meanwhile: adagrad-rowwise
 * reads the gradient before it can update them. It is written by hand, because compilers do not
 * vectorize it. */
static double squares_scalar(const float *g, size_t n, const float *next)
{
    double sums[EMBLA_SUMS] = {0};
    size_t i = 0;
    for (; i + EMBLA_SUMS <= n; i += EMBLA_SUMS) {
        fetch(next, i);
        for (size_t j = 0; j < EMBLA_SUMS; j++) sums[j] += (double)g[i + j] * (double)g[i + j];
    }
    for (size_t j = 0; i + j < n; j++) sums[j] += (double)g[i + j] * (double)g[i + j];
    return embla_add_tree(sums);
}

#if EMBLA_X86

/* Adds four sums: 2 + 2, 1 + 1. */
EMBLA_AVX2 static inline double join_avx2(__m256d four)
{
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

EMBLA_AVX2 static inline __m256d add_square_avx2(__m256d sums, const float *g)
{
    __m256d x = _mm256_cvtps_pd(_mm_loadu_ps(g));
    return _mm256_add_pd(sums, _mm256_mul_pd(x, x));
}

EMBLA_AVX2 static double squares_avx2(const float *g, size_t n, const float *next)
{
    __m256d sums[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),
                       _mm256_setzero_pd()};
    float last[BLOCK] = {0}; /* numbers past the end are zeros, which change no sum */
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        fetch(next, i);
        for (size_t q = 0; q < 4; q++) sums[q] = add_square_avx2(sums[q], g + i + 4 * q);
    }
    if (i < n) memcpy(last, g + i, (n - i) * sizeof *last);
    for (size_t q = 0; q < 4; q++) sums[q] = add_square_avx2(sums[q], last + 4 * q);
    return join_avx2(
        _mm256_add_pd(_mm256_add_pd(sums[0], sums[2]), _mm256_add_pd(sums[1], sums[3])));
}

EMBLA_AVX512 static inline __m512d add_square_avx512(__m512d sums, __m256 half)
{
    __m512d x = _mm512_cvtps_pd(half);
    return _mm512_add_pd(sums, _mm512_mul_pd(x, x));
}

EMBLA_AVX512 static double squares_avx512(const float *g, size_t n, const float *next)
{
    __m512d low = _mm512_setzero_pd(), high = _mm512_setzero_pd();
    float last[BLOCK] = {0};
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        fetch(next, i);
        low = add_square_avx512(low, _mm256_loadu_ps(g + i));
        high = add_square_avx512(high, _mm256_loadu_ps(g + i + 8));
    }
    if (i < n) memcpy(last, g + i, (n - i) * sizeof *last);
    low = add_square_avx512(low, _mm256_loadu_ps(last));
    high = add_square_avx512(high, _mm256_loadu_ps(last + 8));
    low = _mm512_add_pd(low, high);
    return join_avx2(
        _mm256_add_pd(_mm512_castpd512_pd256(low), _mm512_maskz_extractf64x4_pd(0xf, low, 1)));
}

#endif

#if EMBLA_ARM

/* Sixteen numbers. The square of a float is exact in double, so it may be fused with the addition.
 */
EMBLA_BODY void add_squares_neon(float64x2_t sums[8], const float *g)
{
#pragma GCC unroll 4
    for (size_t q = 0; q < 8; q += 2) {
        float32x4_t x = vld1q_f32(g + 2 * q);
        float64x2_t low = vcvt_f64_f32(vget_low_f32(x)), high = vcvt_high_f64_f32(x);
        sums[q] = vfmaq_f64(sums[q], low, low);
        sums[q + 1] = vfmaq_f64(sums[q + 1], high, high);
    }
}

static double squares_neon(const float *g, size_t n, const float *next)
{
    float64x2_t sums[8] = {0};
    float last[BLOCK] = {0};
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        fetch(next, i);
        add_squares_neon(sums, g + i);
    }
    if (i < n) memcpy(last, g + i, (n - i) * sizeof *last);
    add_squares_neon(sums, last);
    for (size_t half = 4; half > 0; half /= 2)
        for (size_t q = 0; q < half; q++) sums[q] = vaddq_f64(sums[q], sums[q + half]);
    return vaddvq_f64(sums[0]);
}

#endif

/* Adagrad-rowwise, one row: the mean of squares is added in f32. */
EMBLA_BODY void step_row_body(const embla_rule *rule, const embla_moment *moment,
                              const embla_numbers *numbers, double squares)
{
    embla_numbers x = *numbers;
    *x.a += (float)(squares / (double)x.n);
    x.divisor = sqrtf(*x.a) + rule->epsilon;
    x.next_w = NULL; /* prefetched later */
    step_body(EMBLA_STEP_ROWWISE, rule, moment, &x);
}

/* ---- missed steps ---- */

/* Kinds whose step with a gradient of 0 is only decay: rate * 0 / divisor is +0 (rates are finite
 * and not negative, divisors positive), and w - 0 is w. */
EMBLA_BODY bool only_decays(embla_step_kind kind)
{
    return kind == EMBLA_STEP_SGD || kind == EMBLA_STEP_ADAGRAD || kind == EMBLA_STEP_ROWWISE;
}

/* Whether all numbers of a block are +0. */
EMBLA_BODY bool all_zero(const float *x)
{
    uint32_t bits = 0;
    for (size_t j = 0; j < BLOCK; j++) bits |= embla_bits(x[j]);
    return bits == 0;
}

/* The remaining steps once all means are +0: they stay so, and a step is w * keep - 0. */
EMBLA_BODY void replay_decay(embla_step_kind kind, const embla_rule *r, const embla_moment *moments,
                             size_t count, float *w, float *b)
{
    for (size_t s = 0; s < count; s++) {
        VECTORS
        for (size_t j = 0; j < BLOCK; j++) w[j] *= moments[s].keep;
    }
    if (kind != EMBLA_STEP_ADAMW) return;
    for (size_t s = 0; s < count && !all_zero(b); s++) {
        VECTORS
        for (size_t j = 0; j < BLOCK; j++) b[j] = faded(r->beta2 * b[j], FLT_MIN);
    }
}

/* count steps of n <= BLOCK numbers. Means fade to +0 in a few hundred steps; from then on roots
 * and divisions are left out. */
EMBLA_BODY void replay_block(embla_step_kind kind, const embla_rule *r, const embla_moment *moments,
                             size_t count, const embla_numbers *x, size_t i, size_t n)
{
    enum { SOME = 16 }; /* steps between checks whether means are 0 */
    float w[BLOCK] = {0}, a[BLOCK] = {0}, b[BLOCK] = {0};
    size_t s = 0;
    for (size_t j = 0; j < n; j++) {
        w[j] = x->w[i + j];
        if (!only_decays(kind)) a[j] = x->a[i + j];
        if (kind == EMBLA_STEP_ADAMW) b[j] = x->b[i + j];
    }
    while (s < count && !(only_decays(kind) || all_zero(a))) {
        for (size_t end = count - s < SOME ? count : s + SOME; s < end; s++) {
            VECTORS
            for (size_t j = 0; j < BLOCK; j++)
                step_number(kind, r, &moments[s], 1.0f, 0.0f, &w[j], &a[j], &b[j]);
        }
    }
    replay_decay(kind, r, moments + s, count - s, w, b);
    for (size_t j = 0; j < n; j++) {
        x->w[i + j] = w[j];
        if (!only_decays(kind)) x->a[i + j] = a[j];
        if (kind == EMBLA_STEP_ADAMW) x->b[i + j] = b[j];
    }
}

EMBLA_BODY void replay_body(embla_step_kind kind, const embla_rule *rule,
                            const embla_moment *moments, size_t count, const embla_numbers *numbers)
{
    const embla_rule r = *rule;
    const embla_numbers x = *numbers;
    size_t i = 0;
    for (; i + BLOCK <= x.n; i += BLOCK) replay_block(kind, &r, moments, count, &x, i, BLOCK);
    if (i < x.n) replay_block(kind, &r, moments, count, &x, i, x.n - i);
}

/* ---- a function for each kind and set ---- */

#define STEP(name, kind)                                                                           \
    EMBLA_ISA_FUNCTION(                                                                            \
        void, name,                                                                                \
        (const embla_rule *rule, const embla_moment *moment, const embla_numbers *numbers),        \
        step_body(kind, rule, moment, numbers);)
STEP(step_sgd, EMBLA_STEP_SGD)
STEP(step_momentum, EMBLA_STEP_MOMENTUM)
STEP(step_nesterov, EMBLA_STEP_NESTEROV)
STEP(step_adagrad, EMBLA_STEP_ADAGRAD)
STEP(step_adamw, EMBLA_STEP_ADAMW)

/* Written out, because each set calls its own squares. */
static void step_rowwise_scalar(const embla_rule *rule, const embla_moment *moment,
                                const embla_numbers *numbers)
{
    step_row_body(rule, moment, numbers, squares_scalar(numbers->g, numbers->n, numbers->w));
}
#if EMBLA_X86
EMBLA_AVX2 static void step_rowwise_avx2(const embla_rule *rule, const embla_moment *moment,
                                         const embla_numbers *numbers)
{
    step_row_body(rule, moment, numbers, squares_avx2(numbers->g, numbers->n, numbers->w));
}
EMBLA_AVX512 static void step_rowwise_avx512(const embla_rule *rule, const embla_moment *moment,
                                             const embla_numbers *numbers)
{
    step_row_body(rule, moment, numbers, squares_avx512(numbers->g, numbers->n, numbers->w));
}
#endif
#if EMBLA_ARM
static void step_rowwise_neon(const embla_rule *rule, const embla_moment *moment,
                              const embla_numbers *numbers)
{
    step_row_body(rule, moment, numbers, squares_neon(numbers->g, numbers->n, numbers->w));
}
#endif
static embla_step_fn *const step_rowwise[EMBLA_ISA_COUNT] =
    EMBLA_ISA_TABLE(step_rowwise_scalar, step_rowwise_neon, step_rowwise_avx2, step_rowwise_avx512);

#define REPLAY(name, kind)                                                                         \
    EMBLA_ISA_FUNCTION(void, name,                                                                 \
                       (const embla_rule *rule, const embla_moment *moments, size_t count,         \
                        const embla_numbers *numbers),                                             \
                       replay_body(kind, rule, moments, count, numbers);)
REPLAY(replay_sgd, EMBLA_STEP_SGD)
REPLAY(replay_momentum, EMBLA_STEP_MOMENTUM)
REPLAY(replay_nesterov, EMBLA_STEP_NESTEROV)
REPLAY(replay_adamw, EMBLA_STEP_ADAMW)

embla_steps embla_steps_of(embla_step_kind kind, embla_isa isa)
{
    static const struct {
        embla_step_fn *const *step;
        embla_replay_fn *const *replay;
    } tables[EMBLA_STEP_COUNT] = {[EMBLA_STEP_SGD] = {step_sgd, replay_sgd},
                                  [EMBLA_STEP_MOMENTUM] = {step_momentum, replay_momentum},
                                  [EMBLA_STEP_NESTEROV] = {step_nesterov, replay_nesterov},
                                  [EMBLA_STEP_ADAGRAD] = {step_adagrad, replay_sgd},
                                  [EMBLA_STEP_ROWWISE] = {step_rowwise, replay_sgd},
                                  [EMBLA_STEP_ADAMW] = {step_adamw, replay_adamw}};
    return (embla_steps){.step = EMBLA_ISA_PICK(tables[kind].step, isa),
                         .replay = EMBLA_ISA_PICK(tables[kind].replay, isa)};
}
