/* SPDX-License-Identifier: Apache-2.0 */
/* The account: lines and notes in one arena, and the counting of rows.
 *
 * A row counts as the same if all its numbers are equal bit for bit, and otherwise as rounded.
 * Three more counts are kept: rows with a NaN or an infinity before or after; rows that have one
 * only after; and rows that are all zeros only after.
 */
#include "reshape/account.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "files/cursor.h"

embla_status embla_account_new(size_t count, embla_account **out)
{
    embla_arena arena = {0};
    embla_account *account = NULL;
    embla_account_line *lines = NULL;
    embla_status status = embla_arena_many(&arena, 1, sizeof *account, "an account", &account);
    if (status == EMBLA_OK)
        status = embla_arena_many(&arena, count, sizeof *lines, "an account", &lines);
    if (status != EMBLA_OK) {
        embla_arena_free(&arena);
        return status;
    }
    *account = (embla_account){.arena = arena, .lines = lines, .count = count};
    *out = account;
    return EMBLA_OK;
}

void embla_account_free(embla_account *account)
{
    if (!account) return;
    embla_arena arena = account->arena;
    embla_arena_free(&arena);
}

embla_status embla_account_note(embla_account *account, const char *format, ...)
{
    void *items = (void *)(uintptr_t)account->notes;
    char text[600];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    EMBLA_TRY(embla_arena_grow(&account->arena, sizeof *account->notes, account->note_count,
                               "notes", &items, &account->note_room));
    account->notes = items;
    EMBLA_TRY(embla_arena_text(&account->arena, text, strlen(text),
                               &account->notes[account->note_count]));
    account->note_count++;
    return EMBLA_OK;
}

/* ---- rows ---- */

static double wide_at(const uint8_t *wide, size_t i)
{
    uint64_t bits = embla_le64(wide + 8 * i);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* True if no number has all bits of the exponent set. The loop has no branch, so the compiler can
 * vectorise it. */
static bool all_finite(const float *values, size_t dim)
{
    uint32_t found = 0;
    for (size_t i = 0; i < dim; i++) found |= (bits_of(values[i]) & 0x7f800000u) == 0x7f800000u;
    return found == 0;
}

static bool all_finite_wide(const uint8_t *wide, size_t dim)
{
    for (size_t i = 0; i < dim; i++)
        if (!isfinite(wide_at(wide, i))) return false;
    return true;
}

void embla_account_row(embla_account_line *line, const float *before, const uint8_t *wide,
                       const float *after, size_t dim)
{
    uint32_t changed = 0, left = 0; /* bits that differ, and bits that are set afterwards */
    bool was_zero = true;
    double most = line->difference;
    bool was_finite = wide ? all_finite_wide(wide, dim) : all_finite(before, dim);
    bool is_finite = all_finite(after, dim);
    for (size_t i = 0; i < dim; i++) {
        double old = wide ? wide_at(wide, i) : (double)before[i];
        double gap = fabs(old - (double)after[i]);
        changed |= bits_of(before[i]) ^ bits_of(after[i]);
        if (wide && old != (double)before[i]) changed = 1;
        if (gap > most && isfinite(gap)) most = gap; /* infinities do not count */
        was_zero = was_zero && old == 0;
        left |= bits_of(after[i]) & 0x7fffffffu;
    }
    line->difference = most;
    line->rows_same += changed == 0;
    line->rows_rounded += changed != 0;
    line->rows_nonfinite += !was_finite || !is_finite;
    line->rows_overflowed += was_finite && !is_finite;
    line->rows_vanished += !was_zero && left == 0;
}

void embla_account_same(embla_account_line *line, const float *values, const uint8_t *wide,
                        size_t dim)
{
    line->rows_same++;
    line->rows_nonfinite += wide ? !all_finite_wide(wide, dim) : !all_finite(values, dim);
}

void embla_account_checksum(embla_checksum sum, char out[33])
{
    (void)snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, sum.high, sum.low);
}

/* ---- queries ---- */

const embla_account_line *embla_account_lines(const embla_account *account, size_t *count)
{
    *count = account ? account->count : 0;
    return account ? account->lines : NULL;
}

const char *const *embla_account_notes(const embla_account *account, size_t *count)
{
    *count = account ? account->note_count : 0;
    return account ? account->notes : NULL;
}

embla_status embla_account_describe(const embla_account *account, embla_account_info *out)
{
    EMBLA_NEED(account);
    EMBLA_NEED(out);
    *out = (embla_account_info){.format = account->format, .bytes = account->bytes};
    return EMBLA_OK;
}
