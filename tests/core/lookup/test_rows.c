/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup over a store, against an oracle that does one row after the other: embla_row_decode
 * (test_row.c checks it), then columns, sum, scale and dtype as the header says. What is asked
 * for is drawn at random, from a fixed seed, so that formats, layouts, parts, dtypes, kernel sets
 * and threads meet in many ways.
 */
#include <errno.h>
#include <math.h>
#include <sys/wait.h>

#include "base/byte_order.h"
#include "base/mem.h"
#include "embla_store.h"
#include "files/io.h"
#include "scratch.h"
#include "store/store.h"

/* ---- formats ---- */

typedef struct {
    embla_row_format format;
    size_t rows;
} table_kind;

#define KIND(type, d, s, k, n)                                                                     \
    {                                                                                              \
        {.dim = (d), .dtype = (type), .scales = (s), .scale = (k)}, (n)                            \
    }

static const table_kind kinds[] = {
    KIND(EMBLA_F32, 20, 0, 0, 301),
    KIND(EMBLA_F64, 5, 0, 0, 77),
    KIND(EMBLA_F16, 33, 0, 0, 301),
    KIND(EMBLA_BF16, 64, 0, 0, 301),
    KIND(EMBLA_F8_E4M3, 160, 0, 0.25f, 2000), /* larger than a cache: lines are asked for ahead */
    KIND(EMBLA_F8_E4M3, 256, EMBLA_SCALES_UE8M0_32, 0, 1100),
    KIND(EMBLA_F8_E4M3, 80, EMBLA_SCALES_UE8M0_32, 0.5f, 50), /* the last group is short */
    KIND(EMBLA_F8_E4M3, 384, EMBLA_SCALES_UE8M0_128, 0, 50),
    KIND(EMBLA_F8_E5M2, 48, 0, 3.0f, 50),
    KIND(EMBLA_I8, 49, 0, 0.0078125f, 50),
    KIND(EMBLA_Q8_0, 160, 0, 0, 1700),
    KIND(EMBLA_Q4_0, 64, 0, 0, 50),
    KIND(EMBLA_Q4_1, 64, 0, 0, 50),
    KIND(EMBLA_Q5_0, 64, 0, 0, 50),
    KIND(EMBLA_Q5_1, 64, 0, 0, 50),
    KIND(EMBLA_Q3_K, 256, 0, 0, 50),
    KIND(EMBLA_Q4_K, 512, 0, 0, 50),
    KIND(EMBLA_Q5_K, 256, 0, 0, 50),
    KIND(EMBLA_Q6_K, 256, 0, 0, 50),
    KIND(EMBLA_IQ4_NL, 160, 0, 0, 3100),
    KIND(EMBLA_IQ4_XS, 256, 0, 0, 50),
    KIND(EMBLA_MXFP4, 64, 0, 0, 50),
    KIND(EMBLA_NVFP4, 128, 0, 0, 50),
    KIND(EMBLA_F4_E2M1, 160, EMBLA_SCALES_E4M3_16, 0.5f, 50),
    KIND(EMBLA_F4_E2M1, 16, 0, 0, 50),
    KIND(EMBLA_BF16, 8960, 0, 0, 17), /* 17,920 bytes: a row of Gemma's per-layer table */
    KIND(EMBLA_F8_E4M3, 20480, EMBLA_SCALES_UE8M0_32, 0, 9), /* more than is staged at once */
    KIND(EMBLA_F64, 3000, 0, 0, 9),
    KIND(EMBLA_F32, 1, 0, 0, 1),
};

/* A table of random bytes, NaN and infinity among them, in memory and in a file. */
typedef struct {
    embla_row_format format;
    int64_t rows;
    size_t row_bytes, stride, bytes;
    unsigned char *data;
    float *decoded; /* rows x dim */
} table;

static void table_make(table *t, const table_kind *kind, size_t stride_more, uint64_t seed)
{
    *t = (table){.format = kind->format, .rows = (int64_t)kind->rows};
    assert_ok(embla_row_bytes(&t->format, &t->row_bytes));
    t->stride = t->row_bytes + stride_more;
    t->bytes = (kind->rows - 1) * t->stride + t->row_bytes;
    t->data = malloc(t->bytes);
    t->decoded = malloc(kind->rows * t->format.dim * sizeof(float));
    assert_true(t->data && t->decoded);
    check_fill_bytes(seed, t->bytes, t->data);
    for (size_t r = 0; r < kind->rows; r++)
        assert_ok(embla_row_decode(&t->format, t->data + r * t->stride, 1,
                                   t->decoded + r * t->format.dim));
}

static void table_free(table *t)
{
    free(t->data);
    free(t->decoded);
}

static embla_store *table_view(const table *t)
{
    embla_store *store = NULL;
    assert_ok(embla_store_view(&t->format, t->rows, t->data, t->bytes, t->stride, &store));
    return store;
}

/* The same table from a file, its scales in a plane of their own if it has some. */
static embla_store *table_file(const table *t, scratch *s, embla_placement place)
{
    const embla_store_options options = {
        .placement = place, .shared_folder = s->folder, .threads = 1};
    embla_row row;
    assert_ok(embla_row_of(&t->format, &row));
    size_t rows = (size_t)t->rows, codes = rows * row.code_bytes;
    unsigned char *planes = malloc(rows * row.bytes);
    embla_store *store = NULL;
    assert_non_null(planes);
    for (size_t r = 0; r < rows; r++) {
        memcpy(planes + r * row.code_bytes, t->data + r * t->stride, row.code_bytes);
        memcpy(planes + codes + r * row.scale_bytes, t->data + r * t->stride + row.code_bytes,
               row.scale_bytes);
    }
    const char *path = scratch_path(s, "table");
    scratch_write(path, planes, rows * row.bytes);
    const embla_extent extent = {
        .file = path, .rows = t->rows, .scale_offset = row.scale_bytes ? (int64_t)codes : 0};
    assert_ok(embla_store_open_extents(&t->format, &extent, 1, &options, &store));
    free(planes);
    return store;
}

/* ---- the oracle ---- */

typedef struct {
    embla_store_lookup_options options;
    int64_t *rows;
    size_t tokens, heads, count, vectors; /* of a token */
    size_t token_stride, head_stride, vector_bytes;
    size_t bytes, offset; /* of the output, and where it begins in a line */
} question;

static size_t group_of(const embla_row_format *format)
{
    embla_row row;
    assert_ok(embla_row_of(format, &row));
    return row.group;
}

static size_t columns_of(const table *t, const embla_store_lookup_options *o)
{
    return o->columns ? o->columns : t->format.dim - o->first_column;
}

static size_t vector_bytes(const table *t, const embla_store_lookup_options *o)
{
    embla_row row;
    embla_row_part part;
    if (o->raw) {
        assert_ok(embla_row_of(&t->format, &row));
        assert_ok(embla_row_part_of(&row, o->first_column, o->columns, &part));
        return part.bytes;
    }
    return columns_of(t, o) * (o->out_dtype == EMBLA_F32 || o->out_dtype == 0 ? 4 : 2);
}

static bool arithmetic(const embla_store_lookup_options *o)
{
    return o->sum || (o->scale != 0.0f && o->scale != 1.0f);
}

/* Stored bytes: numbers, then scales. */
static void oracle_raw(const table *t, const question *q, size_t i, char *out)
{
    embla_row row;
    embla_row_part part;
    assert_ok(embla_row_of(&t->format, &row));
    assert_ok(embla_row_part_of(&row, q->options.first_column, q->options.columns, &part));
    const unsigned char *in = t->data + (size_t)q->rows[i] * t->stride;
    memcpy(out, in + part.code_at, part.code_bytes);
    memcpy(out + part.code_bytes, in + row.code_bytes + part.scale_at, part.scale_bytes);
}

/* A token's sum (or one row) as floats, then as it is wanted. */
static void oracle_vector(const table *t, const question *q, size_t token, size_t head, char *out)
{
    const embla_store_lookup_options *o = &q->options;
    size_t n = columns_of(t, o), from = q->vectors == 1 && o->sum ? 0 : head;
    size_t to = o->sum ? q->heads : head + 1;
    if (o->out_dtype == t->format.dtype && !arithmetic(o)) { /* every bit is kept */
        oracle_raw(t, q, token * q->heads + head, out);
        return;
    }
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t h = from; h < to; h++) {
        int64_t row = q->rows[token * q->heads + h];
        const float *y = t->decoded + (size_t)row * t->format.dim + o->first_column;
        for (size_t i = 0; i < n; i++) x[i] = h == from ? y[i] : x[i] + y[i];
    }
    for (size_t i = 0; i < n && arithmetic(o) && o->scale != 0.0f; i++) x[i] *= o->scale;
    if (o->out_dtype == 0 || o->out_dtype == EMBLA_F32)
        memcpy(out, x, n * sizeof *x);
    else
        assert_ok(embla_dtype_encode(o->out_dtype, x, n, 0.0f, out));
    free(x);
}

/* All of the output, gaps included. */
static void oracle(const table *t, const question *q, unsigned char *out)
{
    for (size_t token = 0; token < q->tokens; token++)
        for (size_t h = 0; h < q->vectors; h++) {
            char *at = (char *)out + token * q->token_stride + h * q->head_stride;
            if (q->options.raw)
                oracle_raw(t, q, token * q->heads + h, at);
            else
                oracle_vector(t, q, token, h, at);
        }
}

static bool is_nan16(embla_dtype dtype, uint16_t x)
{
    return dtype == EMBLA_BF16 ? (x & 0x7fff) > 0x7f80 : (x & 0x7fff) > 0x7c00;
}

/* The same bits, but that a NaN which was added or scaled may be another one. */
static bool same(const question *q, const unsigned char *a, const unsigned char *b)
{
    const embla_store_lookup_options *o = &q->options;
    if (!arithmetic(o) || o->raw) return memcmp(a, b, q->bytes) == 0;
    for (size_t token = 0; token < q->tokens; token++)
        for (size_t h = 0; h < q->vectors; h++)
            for (size_t k = 0; k < q->vector_bytes;) {
                size_t at = token * q->token_stride + h * q->head_stride + k;
                bool wide = o->out_dtype == 0 || o->out_dtype == EMBLA_F32;
                uint32_t x[2] = {a[at] | (uint32_t)a[at + 1] << 8,
                                 b[at] | (uint32_t)b[at + 1] << 8};
                if (wide) memcpy(&x[0], a + at, 4);
                if (wide) memcpy(&x[1], b + at, 4);
                k += wide ? 4 : 2;
                if (x[0] == x[1]) continue;
                if (wide ? !(isnan(check_float_of(x[0])) && isnan(check_float_of(x[1])))
                         : !(is_nan16(o->out_dtype, (uint16_t)x[0]) &&
                             is_nan16(o->out_dtype, (uint16_t)x[1])))
                    return false;
            }
    return true;
}

/* ---- questions ---- */

static void draw_layout(question *q, uint64_t *seed)
{
    embla_store_lookup_options *o = &q->options;
    size_t v = q->vector_bytes, pad = check_below(seed, 2) ? check_below(seed, 40) : 0;
    q->head_stride = v;
    q->token_stride = q->vectors * v;
    switch (check_below(seed, 4)) {
    case 0: /* defaults */
        break;
    case 1: /* each token apart */
        o->token_stride = q->token_stride = q->vectors * v + pad;
        break;
    case 2: /* each vector apart; of a sum there is one */
        if (o->sum) break;
        o->row_stride = q->head_stride = v + pad;
        q->token_stride = q->vectors * q->head_stride;
        break;
    default: /* head-major */
        if (o->sum || q->tokens == 0) break;
        o->token_stride = q->token_stride = v + pad;
        o->row_stride = q->head_stride = q->tokens * q->token_stride + pad;
        if (q->vectors == 1) q->head_stride = q->token_stride;
        break;
    }
}

/* large: enough tokens that eight threads have something to do. */
static void draw(const table *t, question *q, uint64_t *seed, bool large)
{
    static const size_t head_counts[] = {1, 2, 3, 8, 16};
    static const embla_dtype dtypes[] = {0, EMBLA_F32, EMBLA_BF16, EMBLA_F16};
    static const int threads[] = {1, 2, 3, 8};
    *q = (question){.heads = large ? 16 : head_counts[check_below(seed, 5)]};
    embla_store_lookup_options *o = &q->options;
    size_t group = group_of(&t->format), groups = (t->format.dim + group - 1) / group;
    q->tokens = large ? 90 : check_below(seed, t->format.dim > 4096 ? 5 : 40);
    q->count = q->tokens * q->heads;
    o->rows_per_token = q->heads == 1 && check_below(seed, 2) ? 0 : q->heads;
    o->threads = threads[check_below(seed, 4)];
    o->raw = check_below(seed, 4) == 0;
    o->sum = !o->raw && check_below(seed, 3) == 0;
    o->scale = o->raw || check_below(seed, 3) != 0 ? (float)check_below(seed, 2) : 1.5f;
    o->out_dtype = o->raw ? (embla_dtype)99 : dtypes[check_below(seed, 4)];
    if (check_below(seed, 2)) {
        size_t first = check_below(seed, groups), n = 1 + check_below(seed, groups - first);
        o->first_column = first * group;
        o->columns = check_below(seed, 3) == 0 ? 0 : n * group;
        if (o->first_column + o->columns > t->format.dim)
            o->columns = t->format.dim - o->first_column;
    }
    q->vectors = o->sum ? 1 : q->heads;
    q->vector_bytes = vector_bytes(t, o);
    draw_layout(q, seed);
    q->rows = malloc((q->count + 1) * sizeof *q->rows);
    assert_non_null(q->rows);
    for (size_t i = 0; i < q->count; i++)
        q->rows[i] = (int64_t)check_below(seed, (uint64_t)t->rows);
    if (q->count > 1) q->rows[0] = t->rows - 1, q->rows[q->count - 1] = 0;
    q->bytes = q->tokens == 0 ? 0
                              : (q->tokens - 1) * q->token_stride +
                                    (q->vectors - 1) * q->head_stride + q->vector_bytes;
    q->offset = check_below(seed, 3) == 0 ? check_below(seed, 9) : 0;
}

static void ask(const table *t, const embla_store *store, const question *q)
{
    check_guarded got = check_guard(q->bytes, q->offset), want = check_guard(q->bytes, 0);
    oracle(t, q, want.bytes);
    assert_ok(embla_store_lookup(store, q->rows, q->count, &q->options, got.bytes));
    const embla_store_lookup_options *o = &q->options;
    if (!same(q, got.bytes, want.bytes))
        fail_msg("%s dim %zu: %zu rows of %zu tokens, first %zu columns %zu, dtype %d, scale %g, "
                 "strides %zu %zu, %d threads%s%s",
                 embla_dtype_name(t->format.dtype), t->format.dim, q->heads, q->tokens,
                 o->first_column, o->columns, (int)o->out_dtype, (double)o->scale, o->token_stride,
                 o->row_stride, o->threads, o->sum ? ", sum" : "", o->raw ? ", raw" : "");
    check_guards(&got);
    check_guard_free(&got);
    check_guard_free(&want);
}

static void every_format_is_as_row_after_row(void **state)
{
    uint64_t seed = 1;
    (void)state;
    for (size_t set = 0; set < CHECK_SETS; set++) {
        const embla_kernels *kernels = embla_kernels_find(check_sets[set]);
        if (!kernels) continue;
        embla_kernels_use(kernels);
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            table t;
            table_make(&t, &kinds[k], k % 3 == 0 ? 0 : k % 3 == 1 ? 5 : 32, k + 1);
            embla_store *store = table_view(&t);
            for (int i = 0; i < 30; i++) {
                question q;
                draw(&t, &q, &seed, i < 6 && t.format.dim <= 512);
                ask(&t, store, &q);
                free(q.rows);
            }
            embla_store_free(store);
            table_free(&t);
        }
    }
    embla_kernels_use(NULL);
}

static void every_placement_is_as_row_after_row(void **state)
{
    static const embla_placement places[] = {EMBLA_PLACEMENT_RAM, EMBLA_PLACEMENT_SHARED,
                                             EMBLA_PLACEMENT_MAPPED, EMBLA_PLACEMENT_READ};
    static const size_t some[] = {0, 4, 5, 6, 10, 23, 25, 26};
    uint64_t seed = 2;
    (void)state;
    for (size_t p = 0; p < COUNT_OF(places); p++)
        for (size_t k = 0; k < COUNT_OF(some); k++) {
            table t;
            scratch s;
            if (embla_order_differs(kinds[some[k]].format.dtype)) continue; /* stores refuse them */
            scratch_new(&s);
            table_make(&t, &kinds[some[k]], 0, k + 1);
            embla_store *store = table_file(&t, &s, places[p]);
            for (int i = 0; i < 12; i++) {
                question q;
                draw(&t, &q, &seed, i < 2 && t.format.dim <= 512);
                ask(&t, store, &q);
                free(q.rows);
            }
            embla_store_free(store);
            table_free(&t);
            scratch_free(&s);
        }
}

/* Large results are written in other ways: ahead of the store, or past the caches (EMBLA_WRITE). */
static void large_results_are_right(void **state)
{
    static const size_t some[] = {4, 5, 10, 9}; /* of the last, vectors are no whole lines */
    uint64_t seed = 3;
    (void)state;
    for (size_t k = 0; k < COUNT_OF(some); k++)
        for (int pass = 0; pass < 6; pass++) {
            table t;
            question q;
            table_make(&t, &kinds[some[k]], 0, k + 1);
            embla_store *store = table_view(&t);
            size_t tokens = t.format.dim < 100 ? 3000 : 900;
            q = (question){.tokens = tokens, .heads = 16, .count = tokens * 16, .vectors = 16};
            q.options =
                (embla_store_lookup_options){.rows_per_token = 16, .scale = pass < 2 ? 0.0f : 2.0f};
            q.options.threads = 1 + pass % 3;
            q.options.out_dtype = pass >= 4 ? EMBLA_BF16 : EMBLA_F32;
            q.vector_bytes = q.head_stride = vector_bytes(&t, &q.options);
            q.token_stride = 16 * q.head_stride;
            q.bytes = q.tokens * q.token_stride;
            q.rows = malloc(q.count * sizeof *q.rows);
            assert_non_null(q.rows);
            for (size_t i = 0; i < q.count; i++)
                q.rows[i] = (int64_t)check_below(&seed, (uint64_t)t.rows);
            ask(&t, store, &q);
            free(q.rows);
            embla_store_free(store);
            table_free(&t);
        }
}

static void one_row_for_all_and_all_rows_for_one(void **state)
{
    table t;
    (void)state;
    table_make(&t, &kinds[4], 0, 9);
    embla_store *store = table_view(&t);
    for (int64_t row = 0; row < t.rows; row += t.rows - 1) {
        int64_t rows[40];
        question q = {.tokens = 40, .heads = 1, .count = 40, .vectors = 1, .rows = rows};
        for (size_t i = 0; i < 40; i++) rows[i] = row;
        q.vector_bytes = q.head_stride = q.token_stride = vector_bytes(&t, &q.options);
        q.bytes = 40 * q.vector_bytes;
        ask(&t, store, &q);
        q.tokens = 1; /* all of them one token, added */
        q.options.rows_per_token = q.heads = 40;
        q.options.sum = true;
        q.bytes = q.vector_bytes;
        ask(&t, store, &q);
    }
    embla_store_free(store);
    table_free(&t);
}

/* (a + b) + c is not a + (b + c) in floats: the order of heads is the order of the sum, and the
 * scale comes last. */
static void sums_are_in_order_and_scaled_at_the_end(void **state)
{
    static const float numbers[3] = {1e8f, -1e8f, 1.0f};
    static const struct {
        int64_t rows[3];
        float sum;
    } orders[] = {{{0, 1, 2}, 1.0f}, {{0, 2, 1}, 0.0f}, {{2, 0, 1}, 0.0f}, {{1, 0, 2}, 1.0f}};
    const embla_row_format format = {.dim = 1, .dtype = EMBLA_F32};
    embla_store_lookup_options options = {.rows_per_token = 3, .sum = true};
    embla_store *store = NULL;
    (void)state;
    assert_ok(embla_store_view(&format, 3, numbers, sizeof numbers, 0, &store));
    for (size_t i = 0; i < COUNT_OF(orders); i++) {
        float out = 7.0f;
        options.scale = 0.0f;
        assert_ok(embla_store_lookup(store, orders[i].rows, 3, &options, &out));
        assert_true(out == orders[i].sum);
        options.scale = 1e38f; /* before the sum it would be infinite */
        assert_ok(embla_store_lookup(store, orders[i].rows, 3, &options, &out));
        assert_true(out == orders[i].sum * 1e38f);
    }
    embla_store_free(store);
}

/* ---- what is refused ---- */

typedef struct {
    embla_store_lookup_options options;
    size_t count;
    embla_status status;
    const char *text;
} refusal;

static void what_cannot_be_is_refused(void **state)
{
    static const refusal refusals[] = {
        {{.threads = -1}, 6, EMBLA_ERR_ARGUMENT, "threads is -1"},
        {{.rows_per_token = 4},
         6,
         EMBLA_ERR_SHAPE,
         "6 row numbers cannot be divided into tokens with 4"},
        {{.raw = true, .sum = true}, 6, EMBLA_ERR_ARGUMENT, "stored bytes cannot be added"},
        {{.raw = true, .scale = 2.0f},
         6,
         EMBLA_ERR_ARGUMENT,
         "stored bytes cannot be scaled; scale is 2"},
        {{.scale = INFINITY}, 6, EMBLA_ERR_ARGUMENT, "the scale is inf"},
        {{.scale = NAN}, 6, EMBLA_ERR_ARGUMENT, "must be finite"},
        {{.out_dtype = EMBLA_Q8_0},
         6,
         EMBLA_ERR_UNSUPPORTED,
         "out_dtype is q8_0 (8); a lookup writes f32"},
        {{.out_dtype = (embla_dtype)99}, 6, EMBLA_ERR_UNSUPPORTED, "out_dtype is unknown (99)"},
        {{.first_column = 16}, 6, EMBLA_ERR_SHAPE, ""},
        {{.first_column = 32, .columns = 33}, 6, EMBLA_ERR_SHAPE, ""},
        {{.first_column = 256}, 6, EMBLA_ERR_RANGE, ""},
        {{.columns = 288}, 6, EMBLA_ERR_RANGE, ""},
        {{.token_stride = 1023},
         6,
         EMBLA_ERR_SHAPE,
         "stride is 1023 bytes, less than a vector's 1024"},
        {{.rows_per_token = 2, .row_stride = 1020}, 6, EMBLA_ERR_SHAPE, "row stride is 1020 bytes"},
        {{.rows_per_token = 2, .sum = true, .row_stride = 2048},
         6,
         EMBLA_ERR_ARGUMENT,
         "a sum has one vector"},
        {{.rows_per_token = 2, .token_stride = 2047}, 6, EMBLA_ERR_SHAPE, "3 tokens of 2"},
        {{.rows_per_token = 2, .token_stride = 1024, .row_stride = 3071},
         6,
         EMBLA_ERR_SHAPE,
         "overlap"},
        {{.rows_per_token = 2, .token_stride = 1500, .row_stride = 1500},
         6,
         EMBLA_ERR_SHAPE,
         "overlap"},
        {{.token_stride = SIZE_MAX / 2}, 6, EMBLA_ERR_ARGUMENT, "do not fit in memory"},
        {{.rows_per_token = 2, .row_stride = SIZE_MAX - 5},
         6,
         EMBLA_ERR_ARGUMENT,
         "do not fit in memory"},
    };
    table t;
    check_guarded out = check_guard(6 * 1024, 0);
    int64_t rows[6] = {0, 1, 2, 3, 4, 5};
    (void)state;
    table_make(&t, &kinds[5], 0, 1);
    embla_store *store = table_view(&t);
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        const refusal *r = &refusals[i];
        embla_status status = embla_store_lookup(store, rows, r->count, &r->options, out.bytes);
        if (status != r->status)
            fail_msg("refusal %zu: %s %s", i, embla_status_name(status), embla_error());
        assert_error_has(r->text);
        check_untouched(&out);
    }
    /* these are looked at even if nothing is wanted */
    for (size_t i = 0; i < 14; i++) {
        if (i == 1) continue;
        assert_int_equal(embla_store_lookup(store, NULL, 0, &refusals[i].options, NULL),
                         refusals[i].status);
    }
    embla_store_free(store);
    table_free(&t);
    check_guard_free(&out);
}

static void rows_outside_the_table_are_refused(void **state)
{
    static const int64_t wrong[] = {1100, -1, INT64_MIN, INT64_MAX};
    table t;
    check_guarded out = check_guard(40 * 1024, 0);
    int64_t rows[40] = {0};
    char text[64];
    (void)state;
    table_make(&t, &kinds[5], 0, 1);
    embla_store *store = table_view(&t);
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        for (size_t at = 0; at < 40; at += 39) {
            rows[at] = wrong[i];
            assert_status(embla_store_lookup(store, rows, 40, NULL, out.bytes), EMBLA_ERR_RANGE);
            (void)snprintf(text, sizeof text,
                           "row %" PRId64 " at index %zu is out of range: the table has 1100",
                           wrong[i], at);
            assert_error_has(text);
            rows[at] = 0;
        }
    check_untouched(&out);
    assert_status(embla_store_lookup(NULL, rows, 1, NULL, out.bytes), EMBLA_ERR_ARGUMENT);
    assert_error_has("store is NULL");
    assert_status(embla_store_lookup(store, NULL, 1, NULL, out.bytes), EMBLA_ERR_ARGUMENT);
    assert_error_has("the list of row numbers or tokens is NULL");
    assert_status(embla_store_lookup(store, rows, 1, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("out is NULL");
    assert_ok(embla_store_lookup(store, NULL, 0, NULL, NULL));
    check_untouched(&out);
    embla_store_free(store);
    table_free(&t);
    check_guard_free(&out);
}

/* Layouts that are odd but put nothing over anything are taken. */
static void strides_that_do_not_matter_are_free(void **state)
{
    table t;
    int64_t rows[4] = {3, 1, 4, 1};
    (void)state;
    table_make(&t, &kinds[4], 0, 1);
    embla_store *store = table_view(&t);
    size_t v = 640;
    question one = {.tokens = 4, .heads = 1, .count = 4, .vectors = 1, .rows = rows};
    one.options = (embla_store_lookup_options){.token_stride = v + 8, .row_stride = 2 * v};
    one.vector_bytes = v;
    one.token_stride = one.head_stride = v + 8;
    one.bytes = 3 * (v + 8) + v;
    ask(&t, store, &one); /* one head: its stride is not looked at */
    question token = {.tokens = 1, .heads = 4, .count = 4, .vectors = 4, .rows = rows};
    token.options =
        (embla_store_lookup_options){.rows_per_token = 4, .token_stride = v, .row_stride = v + 4};
    token.vector_bytes = token.token_stride = v;
    token.head_stride = v + 4;
    token.bytes = 3 * (v + 4) + v;
    ask(&t, store, &token); /* one token: nor is its */
    embla_store_free(store);
    table_free(&t);
}

/* ---- what fails, and where ---- */

static void nothing_is_allocated(void **state)
{
    table t;
    scratch s;
    uint64_t seed = 5;
    (void)state;
    scratch_new(&s);
    table_make(&t, &kinds[5], 0, 1);
    embla_store *store = table_file(&t, &s, EMBLA_PLACEMENT_READ);
    size_t live = embla_mem_live();
    for (int i = 0; i < 20; i++) {
        question q;
        draw(&t, &q, &seed, i == 0);
        char *out = malloc(q.bytes + 1);
        assert_non_null(out);
        embla_mem_fail(1, true);
        assert_ok(embla_store_lookup(store, q.rows, q.count, &q.options, out));
        embla_mem_fail(0, false);
        assert_int_equal(embla_mem_live(), live);
        free(out);
        free(q.rows);
    }
    embla_store_free(store);
    table_free(&t);
    scratch_free(&s);
}

/* Every call to the system fails once, with one thread and with two. */
static void whatever_fails_is_a_status(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        table t;
        scratch s;
        int64_t rows[600];
        scratch_new(&s);
        table_make(&t, &kinds[5], 0, 1);
        embla_store *store = table_file(&t, &s, EMBLA_PLACEMENT_READ);
        for (int i = 0; i < 600; i++) rows[i] = i;
        float *out = malloc(600 * 256 * sizeof *out);
        assert_non_null(out);
        const embla_store_lookup_options options = {.threads = threads};
        size_t live = embla_io_live(), n = 1;
        for (;; n += n < 4 ? 1 : 97) {
            embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
            embla_status status = embla_store_lookup(store, rows, 600, &options, out);
            embla_io_fail(0, false, 0);
            if (status == EMBLA_OK) break;
            assert_int_equal(status, EMBLA_ERR_IO);
            assert_error_has("table");
            assert_error_has("Input/output error");
            assert_int_equal(embla_io_live(), live);
        }
        assert_true(n > 1200); /* a row is two reads; and the file is looked at, twice */
        free(out);
        embla_store_free(store);
        table_free(&t);
        scratch_free(&s);
    }
}

/* One row: its reads, and the file looked at before and after. */
static void files_are_looked_at_before_and_after(void **state)
{
    table t;
    scratch s;
    int64_t row = 3;
    float out[256];
    size_t calls[2] = {0, 0};
    (void)state;
    scratch_new(&s);
    table_make(&t, &kinds[5], 0, 1);
    embla_store *store = table_file(&t, &s, EMBLA_PLACEMENT_READ);
    for (size_t which = 0; which < 2; which++)
        for (embla_status status = EMBLA_ERR_IO; status != EMBLA_OK; calls[which]++) {
            embla_io_fail(calls[which] + 1, false, EMBLA_SYSTEM_OTHER);
            status = which == 0 ? embla_sources_check(store)
                                : embla_store_lookup(store, &row, 1, NULL, out);
            embla_io_fail(0, false, 0);
        }
    assert_int_equal(calls[1] - 1, 2 + 2 * (calls[0] - 1));
    embla_store_free(store);
    table_free(&t);
    scratch_free(&s);
}

static void a_file_cut_short_is_a_status(void **state)
{
    static const embla_placement places[] = {EMBLA_PLACEMENT_MAPPED, EMBLA_PLACEMENT_READ};
    (void)state;
    for (size_t p = 0; p < COUNT_OF(places); p++) {
        table t;
        scratch s;
        int64_t row = 1099;
        float out[256] = {0};
        scratch_new(&s);
        table_make(&t, &kinds[5], 0, 1);
        embla_store *store = table_file(&t, &s, places[p]);
        assert_ok(embla_store_lookup(store, &row, 1, NULL, out));
        assert_int_equal(truncate(scratch_path(&s, "table"), 100), 0);
        memset(out, 0x5a, sizeof out);
        assert_status(embla_store_lookup(store, &row, 1, NULL, out), EMBLA_ERR_IO);
        assert_int_equal(check_bits_of(out[0]), 0x5a5a5a5a); /* noticed before */
        embla_store_free(store);
        table_free(&t);
        scratch_free(&s);
    }
}

static void a_forked_child_can_look_up(void **state)
{
    table t;
    question q;
    uint64_t seed = 8;
    int ended = 1;
    (void)state;
    table_make(&t, &kinds[4], 0, 1);
    embla_store *store = table_view(&t);
    draw(&t, &q, &seed, true);
    q.options.threads = 2;
    char *out = malloc(q.bytes);
    assert_non_null(out);
    assert_ok(embla_store_lookup(store, q.rows, q.count, &q.options, out));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(240); /* should it hang; no bound on its speed */
        embla_status status = embla_store_lookup(store, q.rows, q.count, &q.options, out);
        free(out);
        free(q.rows);
        embla_store_free(store);
        table_free(&t);
        _exit(status != EMBLA_OK);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    free(out);
    free(q.rows);
    embla_store_free(store);
    table_free(&t);
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_is_as_row_after_row),
        cmocka_unit_test(every_placement_is_as_row_after_row),
        cmocka_unit_test(large_results_are_right),
        cmocka_unit_test(one_row_for_all_and_all_rows_for_one),
        cmocka_unit_test(sums_are_in_order_and_scaled_at_the_end),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(rows_outside_the_table_are_refused),
        cmocka_unit_test(strides_that_do_not_matter_are_free),
        cmocka_unit_test(nothing_is_allocated),
        cmocka_unit_test(whatever_fails_is_a_status),
        cmocka_unit_test(files_are_looked_at_before_and_after),
        cmocka_unit_test(a_file_cut_short_is_a_status),
        cmocka_unit_test(a_forked_child_can_look_up),
    };
    if (count > 1) cmocka_set_test_filter(words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
