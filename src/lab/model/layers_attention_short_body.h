/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of short sequences. No include guard: it is included once, by layers_attention.c, after
 * what it uses.
 *
 * All scores of a head fit into the cache, so nothing is cut into tiles. What a head needs is
 * copied close together, rows filled up with zeros to whole vectors and their number to a multiple
 * of SHORT_ROWS; then every product is a sum of rows, SHORT_ROWS of them at a time in registers,
 * and leaves out the keys that no row of them sees. Each number is a sum in the order of tokens
 * (of a score: of a head's numbers), one rounding for each product and each sum.
 */

/* Copies rows of x (`tokens` of them), times scale, to rows of `wide` numbers; pads with zeros to
 * `rows`. */
EMBLA_BODY void pack(const short_job *job, const float *x, size_t stride, float scale, float *out)
{
    size_t size = job->size, wide = job->wide, length = job->length;
    for (size_t t = 0; t < job->rows; t++, out += wide) {
        size_t n = t < length ? size : 0;
        for (size_t i = 0; i < n; i++) out[i] = x[t * stride + i] * scale;
        for (size_t i = n; i < wide; i++) out[i] = 0;
    }
}

/* The same transposed: size rows of `keys` numbers. */
EMBLA_BODY void pack_transposed(const short_job *job, const float *x, size_t stride, float *out)
{
    embla_transpose(x, stride, job->length, job->size, out, job->keys);
    for (size_t i = 0; i < job->size; i++)
        for (size_t t = job->length; t < job->keys; t++) out[i * job->keys + t] = 0;
}

/* The reverse: copies rows to x, times scale. */
EMBLA_BODY void unpack(const short_job *job, const float *rows, float scale, size_t stride,
                       float *x)
{
    for (size_t t = 0; t < job->length; t++)
        for (size_t i = 0; i < job->size; i++) x[t * stride + i] = rows[t * job->wide + i] * scale;
}

/* SHORT_ROWS rows of `columns` numbers, a multiple of EMBLA_VEC: row r is the sum over t < count of
 * factor (r, t) times row t of b. If `add`, it is added to out. */
EMBLA_BODY void sum_wide_body(const float *a, size_t a_row, size_t a_deep, const float *b,
                              size_t b_stride, size_t count, bool add, float *out,
                              size_t out_stride, size_t columns)
{
    embla_row_sums sums = {a, a_row, a_deep, b, b_stride, count};
    size_t c = 0;
    for (; c + 2 * EMBLA_VEC <= columns; c += 2 * EMBLA_VEC, sums.b += 2 * EMBLA_VEC)
        embla_sum_rows(SHORT_ROWS, 2, &sums, add, out + c, out_stride);
    if (c < columns) embla_sum_rows(SHORT_ROWS, 1, &sums, add, out + c, out_stride);
}
EMBLA_ISA_FUNCTION(void, sum_wide,
                   (const float *a, size_t a_row, size_t a_deep, const float *b, size_t b_stride,
                    size_t count, bool add, float *out, size_t out_stride, size_t columns),
                   sum_wide_body(a, a_row, a_deep, b, b_stride, count, add, out, out_stride,
                                 columns);)

/* How many columns of scores the rows row .. row+SHORT_ROWS-1 need. */
EMBLA_BODY size_t columns_of(size_t row)
{
    return (row + SHORT_ROWS + EMBLA_VEC - 1) / EMBLA_VEC * EMBLA_VEC;
}

/* Replaces one row of scores, of which `seen` of n are not masked, by exponentials relative to
 * base. */
EMBLA_BODY void raise_row(float *row, size_t seen, size_t n, float base)
{
    for (size_t i = seen; i < n; i++) row[i] = -INFINITY;
    embla_exp_row_f32(row, n, base, row);
}

/* ---- forward ---- */

EMBLA_BODY void short_forward_body(const short_job *job, const one_head *h, float *space)
{
    size_t wide = job->wide, keys = job->keys, block = job->rows * wide;
    float *q = space, *v = q + block, *kt = v + block, *scores = kt + job->size * keys;
    float *out = scores + SHORT_ROWS * keys;
    pack(job, h->q, job->q_stride, (float)job->scale, q);
    pack(job, h->v, job->kv_stride, 1, v);
    pack_transposed(job, h->k, job->kv_stride, kt);
    for (size_t row = 0; row < job->length; row += SHORT_ROWS) {
        size_t n = columns_of(row), count = row + SHORT_ROWS;
        float share[SHORT_ROWS] = {0};
        EMBLA_PICK(sum_wide)(q + row * wide, wide, 1, kt, keys, job->size, false, scores, keys, n);
        for (size_t r = 0; r < SHORT_ROWS && row + r < job->length; r++) {
            float *line = scores + r * keys, most = embla_max_row_f32(line, row + r + 1);
            raise_row(line, row + r + 1, n, most);
            double sum = embla_sum_row_f32(line, n);
            share[r] = (float)(1.0 / sum);
            h->sums[row + r] = (float)((double)most + embla_log(sum));
        }
        EMBLA_PICK(sum_wide)(scores, keys, 1, v, wide, count, false, out, wide, wide);
        for (size_t r = 0; r < SHORT_ROWS && row + r < job->length; r++)
            for (size_t i = 0; i < job->size; i++)
                h->made[(row + r) * job->out_stride + i] = out[r * wide + i] * share[r];
    }
}
EMBLA_ISA_FUNCTION(void, short_forward, (const short_job *job, const one_head *h, float *space),
                   short_forward_body(job, h, space);)

/* ---- backward ---- */

/* Computes probabilities and gradients of scores for SHORT_ROWS tokens from `row` on. */
EMBLA_BODY void short_steps(const short_job *job, const one_head *h, size_t row, const float *q,
                            const float *dout, const float *kt, const float *vt, float *p,
                            float *steps)
{
    size_t wide = job->wide, keys = job->keys, n = columns_of(row);
    EMBLA_PICK(sum_wide)(q + row * wide, wide, 1, kt, keys, job->size, false, p, keys, n);
    EMBLA_PICK(sum_wide)(dout + row * wide, wide, 1, vt, keys, job->size, false, steps, keys, n);
    for (size_t r = 0; r < SHORT_ROWS; r++) {
        size_t t = row + r < job->length ? row + r : job->length - 1;
        float *line = p + r * keys, *step = steps + r * keys;
        float less = dot(dout + t * wide, h->out + t * job->out_stride, job->size);
        raise_row(line, row + r < job->length ? t + 1 : 0, n, h->stats[t]);
        for (size_t i = 0; i < n; i++) step[i] = line[i] * (step[i] - less);
    }
}

/* One head of a group: dq is written. dk and dv (as packed rows) are written by the first head of
 * the group and added to by the others. */
EMBLA_BODY void short_back_body(const short_job *job, const one_head *h, bool add, float *space)
{
    size_t wide = job->wide, keys = job->keys, block = job->rows * wide, columns = job->size * keys;
    float *dk = space, *dv = dk + block, *q = dv + block, *k = q + block, *dout = k + block;
    float *kt = dout + block, *vt = kt + columns, *p = vt + columns, *steps = p + job->rows * keys;
    pack(job, h->q, job->q_stride, (float)job->scale, q);
    pack(job, h->k, job->kv_stride, 1, k);
    pack(job, h->dout, job->out_stride, 1, dout);
    pack_transposed(job, h->k, job->kv_stride, kt);
    pack_transposed(job, h->v, job->kv_stride, vt);
    for (size_t row = 0; row < job->length; row += SHORT_ROWS)
        short_steps(job, h, row, q, dout, kt, vt, p + row * keys, steps + row * keys);
    for (size_t row = 0; row < job->length; row += SHORT_ROWS) {
        size_t later = job->length - row, at = row * keys + row;
        EMBLA_PICK(sum_wide)
        (p + at, 1, keys, dout + row * wide, wide, later, add, dv + row * wide, wide, wide);
        EMBLA_PICK(sum_wide)
        (steps + at, 1, keys, q + row * wide, wide, later, add, dk + row * wide, wide, wide);
    }
    for (size_t row = 0; row < job->length; row += SHORT_ROWS) /* q is no longer needed */
        EMBLA_PICK(sum_wide)
    (steps + row * keys, keys, 1, k, wide, row + SHORT_ROWS, false, q + row * wide, wide, wide);
    unpack(job, q, (float)job->scale, job->q_stride, h->dq);
    if (!h->dk) return;
    unpack(job, dk, 1, job->kv_stride, h->dk);
    unpack(job, dv, 1, job->kv_stride, h->dv);
}
EMBLA_ISA_FUNCTION(void, short_back,
                   (const short_job *job, const one_head *h, bool add, float *space),
                   short_back_body(job, h, add, space);)
