/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for NEON, which every 64-bit Arm CPU has. The compiler uses it for plain C too, so
 * only what it does not find is written here: lines, sums of products, and `reach`.
 *
 * A product of two floats is exact in double, so fusing it with the addition changes no bit.
 */
#include "base/kernels_body.h"

#if EMBLA_ARM

EMBLA_PLAIN_KERNELS()

static inline void copy_part(char *out, const char *in, size_t bytes)
{
    memcpy(out, in, bytes);
}

static inline void copy_line(char *out, const char *in)
{
    uint8x16x4_t line = vld1q_u8_x4((const uint8_t *)in);
    vst1q_u8_x4((uint8_t *)out, line);
}

static inline void stream_line(char *out, const char *in)
{
    uint8x16x4_t line = vld1q_u8_x4((const uint8_t *)in);
    embla_stream_neon(out, line.val[0], line.val[1]);
    embla_stream_neon(out + 32, line.val[2], line.val[3]);
}

EMBLA_COPY_KERNELS()

static void fence(void)
{
    __asm__ volatile("dmb ishst" : : : "memory");
}

enum { LANES = 16, PAIRS = LANES / 2 };

/* Sixteen sums in eight registers. */
typedef struct {
    float64x2_t of[PAIRS];
} sums16;

static inline double tree(const sums16 *s)
{
    float64x2_t four[4];
    for (int j = 0; j < 4; j++) four[j] = vaddq_f64(s->of[j], s->of[j + 4]);
    float64x2_t low = vaddq_f64(four[0], four[2]), high = vaddq_f64(four[1], four[3]);
    return vaddvq_f64(vaddq_f64(low, high));
}

enum { TOGETHER = 2 }; /* registers hold the sums of one kind of two rows, or both kinds of one */

typedef struct {
    sums16 with_y[TOGETHER], squares[TOGETHER];
} dots_sums;

/* Adds the products of sixteen numbers of each row with y and with themselves. */
EMBLA_BODY void dots_step(const float *const x[TOGETHER], size_t count, const float *y, bool with_y,
                          bool squares, dots_sums *s)
{
#pragma GCC unroll 4
    for (int j = 0; j < PAIRS; j += 2) {
        float32x4_t v = with_y ? vld1q_f32(y + 2 * j) : vdupq_n_f32(0);
        float64x2_t low = vcvt_f64_f32(vget_low_f32(v)), high = vcvt_high_f64_f32(v);
#pragma GCC unroll 2
        for (size_t r = 0; r < count; r++) {
            float64x2_t *to = s->with_y[r].of + j, *own = s->squares[r].of + j;
            float32x4_t u = vld1q_f32(x[r] + 2 * j);
            float64x2_t first = vcvt_f64_f32(vget_low_f32(u)), second = vcvt_high_f64_f32(u);
            if (with_y) to[0] = vfmaq_f64(to[0], first, low);
            if (with_y) to[1] = vfmaq_f64(to[1], second, high);
            if (squares) own[0] = vfmaq_f64(own[0], first, first);
            if (squares) own[1] = vfmaq_f64(own[1], second, second);
        }
    }
}

/* count and which results are NULL are constants after inlining. */
EMBLA_BODY void dots_of(const float *const *rows, size_t count, const float *y, size_t n,
                        double *out, double *squares)
{
    const float *x[TOGETHER] = {rows[0], rows[count - 1]};
    dots_sums s = {0};
    for (; n >= LANES; n -= LANES) {
        dots_step(x, count, y, out, squares, &s);
#pragma GCC unroll 2
        for (size_t r = 0; r < count; r++) x[r] += LANES;
        if (out) y += LANES;
    }
    if (n > 0) { /* zeros do not change a sum */
        float end[TOGETHER + 1][LANES] = {{0}};
        for (size_t r = 0; r < count; r++) {
            memcpy(end[r], x[r], n * sizeof *x[r]);
            x[r] = end[r];
        }
        if (out) memcpy(end[TOGETHER], y, n * sizeof *y);
        dots_step(x, count, end[TOGETHER], out, squares, &s);
    }
#pragma GCC unroll 2
    for (size_t r = 0; r < count; r++) {
        if (out) out[r] = tree(&s.with_y[r]);
        if (squares) squares[r] = tree(&s.squares[r]);
    }
}

static void dots(const float *const rows[EMBLA_DOTS], const float *y, size_t n, double *out,
                 double *squares)
{
    if (out && squares) {
        for (size_t r = 0; r < EMBLA_DOTS; r++) dots_of(rows + r, 1, y, n, out + r, squares + r);
    } else if (out) {
        for (size_t r = 0; r < EMBLA_DOTS; r += TOGETHER)
            dots_of(rows + r, TOGETHER, y, n, out + r, NULL);
    } else {
        for (size_t r = 0; r < EMBLA_DOTS; r += TOGETHER)
            dots_of(rows + r, TOGETHER, rows[r], n, NULL, squares + r);
    }
}

/* Few indices reach their limit, so most groups need only one test. */
static size_t reach(const float *x, float scale_by, float add, const float *limits, size_t n,
                    uint32_t *at)
{
    const float32x4_t factor = vdupq_n_f32(scale_by), plus = vdupq_n_f32(add);
    size_t found = 0, i = 0;
    for (; i + LANES <= n; i += LANES) {
        uint32x4_t below = vdupq_n_u32(~0u);
#pragma GCC unroll 4
        for (size_t j = i; j < i + LANES; j += 4) {
            float32x4_t u = vaddq_f32(vmulq_f32(vld1q_f32(x + j), factor), plus);
            below = vandq_u32(below, vcltq_f32(u, vld1q_f32(limits + j)));
        }
        if (vminvq_u32(below) != 0) continue;
        for (size_t j = i; j < i + LANES; j++)
            if (!(x[j] * scale_by + add < limits[j])) at[found++] = (uint32_t)j;
    }
    for (; i < n; i++)
        if (!(x[i] * scale_by + add < limits[i])) at[found++] = (uint32_t)i;
    return found;
}

EMBLA_KERNEL_SET(neon, EMBLA_ISA_NEON);
#endif
