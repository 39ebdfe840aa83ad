/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of layers_product.h for one precision: see real.h. No include guard: it is included
 * twice.
 *
 * The result is made in strips of two VECs of columns. The rows of b that a strip needs are read
 * where they lie, or, where b is turned or the strip is not full, copied to a panel on the stack
 * with zeros for the columns that are not there. Four rows of the result are held in registers
 * while k goes by.
 */

/* A panel: `depth` rows of a strip. */
typedef struct {
    const REAL *at;
    size_t stride;
    size_t depth;
} OF(panel);

/* rows x vecs VECs of the result; rows and vecs are constants after inlining. */
EMBLA_BODY void OF(strip_rows)(const size_t rows, const size_t vecs, const REAL *a, size_t a_row,
                               size_t a_deep, const OF(panel) * b, REAL *out, size_t out_stride,
                               bool add)
{
    VEC sum[EMBLA_PRODUCT_FEW][2] = {0};
    for (size_t p = 0; p < b->depth; p++) {
        const REAL *line = b->at + p * b->stride;
        for (size_t r = 0; r < rows; r++) {
            REAL factor = a[r * a_row + p * a_deep];
            for (size_t v = 0; v < vecs; v++)
                sum[r][v] += *(const VEC *)(line + v * WIDTH) * factor;
        }
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < vecs; v++) {
            VEC *to = (VEC *)(out + r * out_stride + v * WIDTH);
            if (add) sum[r][v] += *to;
            *to = sum[r][v];
        }
}

/* All m rows of a strip of vecs VECs, of which `columns` numbers exist. */
EMBLA_BODY void OF(strip)(const size_t vecs, const embla_plain_product *p, size_t first,
                          const OF(panel) * b, size_t column, size_t columns)
{
    bool turned = p->form == EMBLA_PRODUCT_AT_B, add = p->add || first > 0,
         whole = columns == vecs * WIDTH;
    size_t a_row = turned ? 1 : p->a_stride, a_deep = turned ? p->a_stride : 1;
    const REAL *a = (const REAL *)p->a + first * a_deep;
    REAL *out = (REAL *)p->out + column;
    REAL part[EMBLA_PRODUCT_FEW * 2 * WIDTH];
    for (size_t i = 0; i < p->m;) {
        size_t rows = p->m - i < EMBLA_PRODUCT_FEW ? 1 : EMBLA_PRODUCT_FEW;
        REAL *to = whole ? out + i * p->out_stride : part;
        size_t stride = whole ? p->out_stride : vecs * WIDTH;
        if (rows == 1)
            OF(strip_rows)(1, vecs, a + i * a_row, a_row, a_deep, b, to, stride, whole && add);
        else
            OF(strip_rows)
        (EMBLA_PRODUCT_FEW, vecs, a + i * a_row, a_row, a_deep, b, to, stride, whole && add);
        for (size_t r = 0; !whole && r < rows; r++)
            for (size_t c = 0; c < columns; c++) {
                REAL *at = out + (i + r) * p->out_stride + c;
                *at = add ? *at + part[r * stride + c] : part[r * stride + c];
            }
        i += rows;
    }
}

/* Copies rows first .. first+depth-1 of b for this strip. */
EMBLA_BODY void OF(fill_panel)(const embla_plain_product *p, size_t first, size_t depth,
                               size_t column, size_t columns, size_t width, REAL *panel)
{
    const REAL *b = p->b;
    if (columns < width)
        for (size_t i = 0; i < depth * width; i++) panel[i] = 0;
    if (p->form == EMBLA_PRODUCT_A_BT) OF(embla_transpose)
    (b + column * p->b_stride + first, p->b_stride, columns, depth, panel, width);
    else for (size_t i = 0; i < depth; i++) for (size_t c = 0; c < columns; c++)
        panel[i * width + c] = b[(first + i) * p->b_stride + column + c];
}

/* Each number is a dot product: a few rows of a with transposed b. */
EMBLA_BODY void OF(dots)(const embla_plain_product *p)
{
    for (size_t j = 0; j < p->n; j++)
        for (size_t i = 0; i < p->m; i++) {
            const REAL *a = (const REAL *)p->a + i * p->a_stride;
            const REAL *b = (const REAL *)p->b + j * p->b_stride;
            REAL *out = (REAL *)p->out + i * p->out_stride + j, lanes[WIDTH];
            VEC sum = {0};
            size_t at = 0;
            for (; at + WIDTH <= p->k; at += WIDTH)
                sum += *(const VEC *)(a + at) * *(const VEC *)(b + at);
            *(VEC *)lanes = sum;
            for (size_t l = 0; at + l < p->k; l++) lanes[l] += a[at + l] * b[at + l];
            for (size_t half = WIDTH / 2; half > 0; half /= 2)
                for (size_t l = 0; l < half; l++) lanes[l] += lanes[l + half];
            *out = p->add ? *out + lanes[0] : lanes[0];
        }
}

EMBLA_BODY void OF(product_body)(const embla_plain_product *p)
{
    REAL space[EMBLA_PRODUCT_DEPTH * 2 * WIDTH];
    if (p->form == EMBLA_PRODUCT_A_BT && p->m < EMBLA_PRODUCT_FEW) {
        OF(dots)(p);
        return;
    }
    for (size_t column = 0; column < p->n; column += 2 * WIDTH) {
        size_t columns = p->n - column < 2 * WIDTH ? p->n - column : 2 * WIDTH;
        size_t vecs = columns > WIDTH ? 2 : 1, first = 0;
        bool copied = p->form == EMBLA_PRODUCT_A_BT || columns < vecs * WIDTH;
        do { /* at least once: with k = 0 the result is 0 */
            size_t left = p->k - first;
            OF(panel) b = {.depth = left < EMBLA_PRODUCT_DEPTH ? left : EMBLA_PRODUCT_DEPTH};
            b.at = copied ? space : (const REAL *)p->b + first * p->b_stride + column;
            b.stride = copied ? vecs * WIDTH : p->b_stride;
            if (copied) OF(fill_panel)(p, first, b.depth, column, columns, vecs * WIDTH, space);
            if (vecs == 2)
                OF(strip)(2, p, first, &b, column, columns);
            else
                OF(strip)(1, p, first, &b, column, columns);
            first += b.depth;
        } while (first < p->k);
    }
}

EMBLA_ISA_FUNCTION(void, OF(product), (const embla_plain_product *p), OF(product_body)(p);)
