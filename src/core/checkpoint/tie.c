/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether the head is tied to the token table, by the cases of docs/formats.md. It is
 * strict: a head is never used as a table, nor a table as a head, unless their bytes are equal or
 * the flag says so.
 */
#include <math.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/mem.h"
#include "checkpoint/checkpoint.h"

enum { BLOCK = 1 << 20 };

const char *embla_tie_name(embla_tie_kind kind)
{
    static const char *const names[] = {NULL,      "tied",           "tied, stored twice",
                                        "untied",  "tied, inverted", "head missing",
                                        "no head", "no table"};
    size_t n = (size_t)kind;
    return n < sizeof names / sizeof names[0] ? names[n] : NULL;
}

/* Raises *most to the largest |a - b| of count numbers; two NaNs, or two equal infinities, count
 * as equal. */
static embla_status measure_difference(embla_dtype a_type, void *a, embla_dtype b_type, void *b,
                                       size_t count, float *space, double *most)
{
    embla_order_rows(a_type, a, count * (a_type == EMBLA_F64 ? 8 : 4));
    embla_order_rows(b_type, b, count * (b_type == EMBLA_F64 ? 8 : 4));
    EMBLA_TRY(embla_dtype_decode(a_type, a, count, 0, space));
    EMBLA_TRY(embla_dtype_decode(b_type, b, count, 0, space + count));
    for (size_t i = 0; i < count; i++) {
        double gap = fabs((double)space[i] - (double)space[count + i]);
        if (isnan(gap)) gap = isnan(space[i]) && isnan(space[count + i]) ? 0 : INFINITY;
        if (gap > *most) *most = gap;
    }
    return EMBLA_OK;
}

typedef struct {
    const embla_checkpoint *cp;
    const embla_entry *table, *head;
    int64_t rows;
    size_t dim, table_row, head_row; /* table_row and head_row: bytes of a row */
    size_t block;                    /* rows compared at a time */
    char *space;
    bool decoded; /* both can be decoded to floats */
    bool same;
} comparison;

/* True if a row is a whole number of bytes; with types below a byte (F4) it need not be. */
static bool whole_rows(const embla_entry *entry, int64_t rows)
{
    uint64_t row = entry->bytes / (uint64_t)rows;
    return row > 0 && row * (uint64_t)rows == entry->bytes;
}

/* Compares rows first .. first+count-1 of both. */
static embla_status compare_rows(comparison *c, int64_t first, size_t count, embla_tie *tie)
{
    char *a = c->space, *b = a + c->block * c->table_row;
    EMBLA_TRY(
        embla_entry_read(c->cp, c->table, (uint64_t)first * c->table_row, count * c->table_row, a));
    EMBLA_TRY(
        embla_entry_read(c->cp, c->head, (uint64_t)first * c->head_row, count * c->head_row, b));
    tie->rows_compared += (int64_t)count;
    bool same = c->table->element == c->head->element && memcmp(a, b, count * c->table_row) == 0;
    if (same) return EMBLA_OK;
    c->same = false;
    size_t used = c->block * (c->table_row + c->head_row); /* rounded up: floats are aligned */
    float *numbers = (float *)(void *)(a + (used + 63) / 64 * 64);
    for (size_t i = 0; c->decoded && i < count; i++)
        EMBLA_TRY(measure_difference(c->table->element->dtype, a + i * c->table_row,
                                     c->head->element->dtype, b + i * c->head_row, c->dim, numbers,
                                     &tie->difference));
    return EMBLA_OK;
}

/* Compares all rows, or about `sample` of them. A sampled comparison ends at a difference. */
static embla_status compare_all(comparison *c, int64_t sample, embla_tie *tie)
{
    bool few = sample > 0 && sample < c->rows;
    int64_t step = few ? (c->rows - 1) / sample + 1 : (int64_t)c->block;
    for (int64_t row = 0; row < c->rows; row += step) {
        int64_t left = c->rows - row, most = few ? 1 : (int64_t)c->block;
        EMBLA_TRY(compare_rows(c, row, (size_t)(left < most ? left : most), tie));
        if (few && !c->same) break;
    }
    tie->sampled = few && c->same;
    return EMBLA_OK;
}

/* *same becomes true if table and head hold the same bytes. */
static embla_status compare(const embla_checkpoint *cp, const embla_entry *table,
                            const embla_entry *head, int64_t sample, embla_tie *tie, bool *same)
{
    comparison c = {.cp = cp, .table = table, .head = head, .same = true};
    int64_t head_rows;
    size_t head_dim;
    void *space = NULL;
    *same = false; /* also if one of them cannot be a table */
    if (embla_entry_shape(table, &c.rows, &c.dim) != EMBLA_OK ||
        embla_entry_shape(head, &head_rows, &head_dim) != EMBLA_OK || head_rows != c.rows ||
        head_dim != c.dim)
        return EMBLA_OK;
    if (!whole_rows(table, c.rows) || !whole_rows(head, c.rows)) {
        if (table->element != head->element || table->bytes == 0) return EMBLA_OK;
        c.rows = (int64_t)table->bytes; /* compare single bytes */
    }
    c.table_row = (size_t)(table->bytes / (uint64_t)c.rows);
    c.head_row = (size_t)(head->bytes / (uint64_t)c.rows);
    c.decoded = table->element->dtype != 0 && head->element->dtype != 0;
    size_t row = c.table_row + c.head_row;
    c.block = row < BLOCK ? BLOCK / row : 1;
    size_t bytes = c.block * row + 128 + 2 * c.dim * sizeof(float);
    EMBLA_TRY(embla_mem_new(bytes, "rows to compare", &space));
    c.space = space;
    embla_status status = compare_all(&c, sample, tie);
    embla_mem_free(space, bytes);
    *same = c.same;
    return status;
}

/* There are a table and a head: cases 1, 2 and 2c. */
static embla_status tie_of_both(const embla_checkpoint *cp, const embla_entry *table,
                                const embla_entry *head, int flag, int64_t sample, embla_tie *tie)
{
    bool same;
    EMBLA_TRY(compare(cp, table, head, sample, tie, &same));
    if (same) {
        tie->kind = EMBLA_TIE_STORED_TWICE;
        tie->rule = "1";
        return EMBLA_OK;
    }
    tie->kind = EMBLA_TIE_UNTIED;
    tie->conflict = flag == 1;
    tie->rule = tie->conflict ? "2c" : "2";
    return EMBLA_OK;
}

/* There is a table but no head: cases 3, 4 and 6, and architectures without a head. */
static void tie_of_table(const embla_checkpoint *cp, int flag, embla_tie *tie)
{
    bool gguf = strcmp(cp->format->name, "gguf") == 0;
    int standard = embla_roles_tie_default(cp);
    if (standard == -1) {
        tie->kind = EMBLA_TIE_NO_HEAD;
        tie->rule = "no head";
    } else if (gguf) {
        tie->kind = EMBLA_TIE_TIED;
        tie->rule = "6";
        tie->flag = "a GGUF without output.weight is tied";
    } else if (flag == 1 || (flag < 0 && standard == 1)) {
        tie->kind = EMBLA_TIE_TIED;
        tie->rule = "3";
        if (flag < 0) tie->flag = "not set; the architecture's default is true";
    } else {
        tie->kind = EMBLA_TIE_HEAD_MISSING;
        tie->rule = "4";
        if (flag < 0 && standard == 0) tie->flag = "not set; the architecture's default is false";
    }
}

embla_status embla_checkpoint_tie(const embla_checkpoint *cp, int64_t sample, embla_tie *out)
{
    embla_tie tie = {0};
    size_t tables, heads;
    EMBLA_NEED_OF("embla_checkpoint_tie", "checkpoint", cp);
    EMBLA_NEED(out);
    const embla_entry *table = embla_checkpoint_only(cp, EMBLA_ROLE_TOKENS, &tables);
    const embla_entry *head = embla_checkpoint_only(cp, EMBLA_ROLE_HEAD, &heads);
    bool gguf = strcmp(cp->format->name, "gguf") == 0;
    int flag = embla_roles_tie_flag(cp, &tie.flag);
    if (gguf) { /* GGUF has no flag; a config.json beside it belongs to another file */
        flag = -1;
        tie.flag = "GGUF has no tie flag";
    }
    if (tables > 1 || heads > 1)
        return embla_checkpoint_entry(cp, tables > 1 ? EMBLA_ROLE_TOKENS : EMBLA_ROLE_HEAD, &table,
                                      NULL);
    if (table && head) {
        EMBLA_TRY(tie_of_both(cp, table, head, flag, sample, &tie));
    } else if (table) {
        tie_of_table(cp, flag, &tie);
    } else if (head && flag == 1) {
        tie.kind = EMBLA_TIE_INVERTED;
        tie.rule = "5";
    } else {
        tie.kind = EMBLA_TIE_NO_TABLE;
        tie.rule = head ? "head only" : "neither";
    }
    *out = tie;
    return EMBLA_OK;
}
