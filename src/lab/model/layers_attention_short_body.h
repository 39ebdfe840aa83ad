/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of short sequences for one precision: see real.h. No include guard: it is included
 * twice.
 *
 * All scores of a head fit into the cache, so nothing is cut into tiles. What a head needs is
 * copied close together, rows filled up with zeros to whole VECs and their number to a multiple
 * of SHORT_ROWS; then every product is a sum of rows, SHORT_ROWS of them at a time in registers,
 * and leaves out the keys that no row of them sees. Each number is a sum in the order of tokens
 * (of a score: of a head's numbers), one rounding for each product and each sum.
 */

/* Copies rows of x (`tokens` of them), times scale, to rows of `wide` numbers; pads with zeros to
 * `rows`. */
EMBLA_BODY void OF(pack)(const short_job *job, const REAL *x, size_t stride, REAL scale, REAL *out)
{
    size_t size = job->size, wide = job->wide, length = job->length;
    for (size_t t = 0; t < job->rows; t++, out += wide) {
        size_t n = t < length ? size : 0;
        for (size_t i = 0; i < n; i++) out[i] = x[t * stride + i] * scale;
        for (size_t i = n; i < wide; i++) out[i] = 0;
    }
}

/* The same transposed: size rows of `keys` numbers. */
EMBLA_BODY void OF(pack_transposed)(const short_job *job, const REAL *x, size_t stride, REAL *out)
{
    OF(embla_transpose)(x, stride, job->length, job->size, out, job->keys);
    for (size_t i = 0; i < job->size; i++)
        for (size_t t = job->length; t < job->keys; t++) out[i * job->keys + t] = 0;
}

/* The reverse: copies rows to x, times scale. */
EMBLA_BODY void OF(unpack)(const short_job *job, const REAL *rows, REAL scale, size_t stride,
                           REAL *x)
{
    for (size_t t = 0; t < job->length; t++)
        for (size_t i = 0; i < job->size; i++) x[t * stride + i] = rows[t * job->wide + i] * scale;
}

/* SHORT_ROWS rows of vecs VECs: row r is the sum over t < count of factor (r, t) times row t of b.
 * If `add`, it is added to out. */
EMBLA_BODY void OF(sum_rows)(const size_t vecs, const REAL *a, size_t a_row, size_t a_deep,
                             const REAL *b, size_t b_stride, size_t count, bool add, REAL *out,
                             size_t out_stride)
{
    VEC sum[SHORT_ROWS][2] = {0};
    for (size_t t = 0; t < count; t++)
        for (size_t r = 0; r < SHORT_ROWS; r++) {
            REAL factor = a[r * a_row + t * a_deep];
            for (size_t v = 0; v < vecs; v++)
                sum[r][v] += *(const VEC *)(b + t * b_stride + v * WIDTH) * factor;
        }
    for (size_t r = 0; r < SHORT_ROWS; r++)
        for (size_t v = 0; v < vecs; v++) {
            VEC *to = (VEC *)(out + r * out_stride + v * WIDTH);
            if (add) sum[r][v] += *to;
            *to = sum[r][v];
        }
}

/* The same for `columns` numbers, a multiple of WIDTH. */
EMBLA_BODY void OF(sum_wide_body)(const REAL *a, size_t a_row, size_t a_deep, const REAL *b,
                                  size_t b_stride, size_t count, bool add, REAL *out,
                                  size_t out_stride, size_t columns)
{
    size_t c = 0;
    for (; c + 2 * WIDTH <= columns; c += 2 * WIDTH)
        OF(sum_rows)(2, a, a_row, a_deep, b + c, b_stride, count, add, out + c, out_stride);
    if (c < columns)
        OF(sum_rows)(1, a, a_row, a_deep, b + c, b_stride, count, add, out + c, out_stride);
}
EMBLA_ISA_FUNCTION(void, OF(sum_wide),
                   (const REAL *a, size_t a_row, size_t a_deep, const REAL *b, size_t b_stride,
                    size_t count, bool add, REAL *out, size_t out_stride, size_t columns),
                   OF(sum_wide_body)(a, a_row, a_deep, b, b_stride, count, add, out, out_stride,
                                     columns);)

/* How many columns of scores the rows row .. row+SHORT_ROWS-1 need. */
EMBLA_BODY size_t OF(columns_of)(size_t row)
{
    return (row + SHORT_ROWS + WIDTH - 1) / WIDTH * WIDTH;
}

/* Replaces one row of scores, of which `seen` of n are not masked, by exponentials relative to
 * base. */
EMBLA_BODY void OF(raise_row)(REAL *row, size_t seen, size_t n, REAL base)
{
    for (size_t i = seen; i < n; i++) row[i] = -(REAL)INFINITY;
    OF(embla_exp_row)(row, n, base, row);
}

/* ---- forward ---- */

EMBLA_BODY void OF(short_forward_body)(const short_job *job, const OF(head) * h, REAL *space)
{
    size_t wide = job->wide, keys = job->keys, block = job->rows * wide;
    REAL *q = space, *v = q + block, *kt = v + block, *scores = kt + job->size * keys;
    REAL *out = scores + SHORT_ROWS * keys;
    OF(pack)(job, h->q, job->q_stride, (REAL)job->scale, q);
    OF(pack)(job, h->v, job->kv_stride, 1, v);
    OF(pack_transposed)(job, h->k, job->kv_stride, kt);
    for (size_t row = 0; row < job->length; row += SHORT_ROWS) {
        size_t n = OF(columns_of)(row), count = row + SHORT_ROWS;
        REAL share[SHORT_ROWS] = {0};
        EMBLA_PICK(OF(sum_wide))
        (q + row * wide, wide, 1, kt, keys, job->size, false, scores, keys, n);
        for (size_t r = 0; r < SHORT_ROWS && row + r < job->length; r++) {
            REAL *line = scores + r * keys, most = OF(embla_max_row)(line, row + r + 1);
            OF(raise_row)(line, row + r + 1, n, most);
            double sum = OF(embla_sum_row)(line, n);
            share[r] = (REAL)(1.0 / sum);
            h->sums[row + r] = (REAL)((double)most + log(sum));
        }
        EMBLA_PICK(OF(sum_wide))(scores, keys, 1, v, wide, count, false, out, wide, wide);
        for (size_t r = 0; r < SHORT_ROWS && row + r < job->length; r++)
            for (size_t i = 0; i < job->size; i++)
                h->made[(row + r) * job->out_stride + i] = out[r * wide + i] * share[r];
    }
}
EMBLA_ISA_FUNCTION(void, OF(short_forward), (const short_job *job, const OF(head) * h, REAL *space),
                   OF(short_forward_body)(job, h, space);)

/* ---- backward ---- */

/* Computes probabilities and gradients of scores for SHORT_ROWS tokens from `row` on. */
EMBLA_BODY void OF(short_steps)(const short_job *job, const OF(head) * h, size_t row, const REAL *q,
                                const REAL *dout, const REAL *kt, const REAL *vt, REAL *p,
                                REAL *steps)
{
    size_t wide = job->wide, keys = job->keys, n = OF(columns_of)(row);
    EMBLA_PICK(OF(sum_wide))(q + row * wide, wide, 1, kt, keys, job->size, false, p, keys, n);
    EMBLA_PICK(OF(sum_wide))
    (dout + row * wide, wide, 1, vt, keys, job->size, false, steps, keys, n);
    for (size_t r = 0; r < SHORT_ROWS; r++) {
        size_t t = row + r < job->length ? row + r : job->length - 1;
        REAL *line = p + r * keys, *step = steps + r * keys;
        REAL less = OF(dot)(dout + t * wide, h->out + t * job->out_stride, job->size);
        OF(raise_row)(line, row + r < job->length ? t + 1 : 0, n, h->stats[t]);
        for (size_t i = 0; i < n; i++) step[i] = line[i] * (step[i] - less);
    }
}

/* One head of a group: dq is written. dk and dv (as packed rows) are written by the first head of
 * the group and added to by the others. */
EMBLA_BODY void OF(short_back_body)(const short_job *job, const OF(head) * h, bool add, REAL *space)
{
    size_t wide = job->wide, keys = job->keys, block = job->rows * wide, columns = job->size * keys;
    REAL *dk = space, *dv = dk + block, *q = dv + block, *k = q + block, *dout = k + block;
    REAL *kt = dout + block, *vt = kt + columns, *p = vt + columns, *steps = p + job->rows * keys;
    OF(pack)(job, h->q, job->q_stride, (REAL)job->scale, q);
    OF(pack)(job, h->k, job->kv_stride, 1, k);
    OF(pack)(job, h->dout, job->out_stride, 1, dout);
    OF(pack_transposed)(job, h->k, job->kv_stride, kt);
    OF(pack_transposed)(job, h->v, job->kv_stride, vt);
    for (size_t row = 0; row < job->length; row += SHORT_ROWS)
        OF(short_steps)(job, h, row, q, dout, kt, vt, p + row * keys, steps + row * keys);
    for (size_t row = 0; row < job->length; row += SHORT_ROWS) {
        size_t later = job->length - row, at = row * keys + row;
        EMBLA_PICK(OF(sum_wide))
        (p + at, 1, keys, dout + row * wide, wide, later, add, dv + row * wide, wide, wide);
        EMBLA_PICK(OF(sum_wide))
        (steps + at, 1, keys, q + row * wide, wide, later, add, dk + row * wide, wide, wide);
    }
    for (size_t row = 0; row < job->length; row += SHORT_ROWS) /* q is no longer needed */
        EMBLA_PICK(OF(sum_wide))
    (steps + row * keys, keys, 1, k, wide, row + SHORT_ROWS, false, q + row * wide, wide, wide);
    OF(unpack)(job, q, (REAL)job->scale, job->q_stride, h->dq);
    if (!h->dk) return;
    OF(unpack)(job, dk, 1, job->kv_stride, h->dk);
    OF(unpack)(job, dv, 1, job->kv_stride, h->dv);
}
EMBLA_ISA_FUNCTION(void, OF(short_back),
                   (const short_job *job, const OF(head) * h, bool add, REAL *space),
                   OF(short_back_body)(job, h, add, space);)
