/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: up to 19 digits become an integer, which is converted to a double and multiplied or
 * divided by a power of ten. The result is within 4 units in the last place of the exact value.
 * That determines the float, unless the double is that close to the midpoint of two floats.
 * There, and at the ends of the range, strtof decides; that is one number in 30 million. The text
 * passed to strtof has no decimal point, so the locale does not matter.
 *
 * Writing: tries 1, 2, .. 9 digits until the text reads back to the same float. 9 always do.
 */
#include "files/decimal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/cursor.h"

/* 10^0 .. 10^63, each the nearest double; up to 10^22 they are exact. */
static const double tens[] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31,
    1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39, 1e40, 1e41, 1e42, 1e43, 1e44, 1e45, 1e46, 1e47,
    1e48, 1e49, 1e50, 1e51, 1e52, 1e53, 1e54, 1e55, 1e56, 1e57, 1e58, 1e59, 1e60, 1e61, 1e62, 1e63};
enum { TENS = sizeof tens / sizeof tens[0] };

enum {
    DIGITS = 19,        /* digits that always fit an integer of 64 bits */
    TEXT_DIGITS = 128,  /* the midpoint of two floats has at most 113 */
    EXPONENT = 1 << 30, /* larger exponents are treated as this one */
    TEXT_EXPONENT = 9999
};

static bool is_digit(uint8_t c)
{
    return (uint8_t)(c - '0') < 10;
}

/* 10^power; power is at most 15. */
static uint64_t power_of_ten(size_t power)
{
    return (uint64_t)tens[power];
}

/* ---- the nearest float ---- */

/* The float nearest to m * 10^exponent, where m has a relative error below 1e-18. Returns false
 * if a double is not exact enough to decide. m is not 0. */
static bool nearest_by_double(uint64_t m, int64_t exponent, float *out)
{
    uint64_t bits;
    if (exponent <= -TENS || exponent >= TENS) return false;
    double d = exponent < 0 ? (double)m / tens[-exponent] : (double)m * tens[exponent];
    if (!(d >= 0x1p-126 && d < 0x1p127)) return false; /* subnormal or close to infinity */
    memcpy(&bits, &d, sizeof bits);
    /* A double's fraction has 29 bits more than a float's; 1 << 28 is the midpoint. Three
     * roundings of half a unit each, and the error of m, sum to less than 4 units. */
    if ((bits & 0x1fffffff) - ((1 << 28) - 4) <= 8) return false;
    *out = (float)d;
    return true;
}

/* The same by strtof. text has the digits; this appends "e" and the exponent. */
static __attribute__((noinline)) float nearest_by_text(char *text, size_t digits, int64_t exponent)
{
    int before = errno; /* strtof sets it on overflow, which is not an error here */
    int shown = exponent > TEXT_EXPONENT    ? TEXT_EXPONENT
                : exponent < -TEXT_EXPONENT ? -TEXT_EXPONENT
                                            : (int)exponent;
    (void)snprintf(text + digits, 8, "e%d", shown);
    float value = strtof(text, NULL);
    errno = before;
    return value;
}

static float nearest(uint64_t m, int64_t exponent)
{
    char text[DIGITS + 2 + 8];
    float value = 0.0f;
    if (m == 0 || nearest_by_double(m, exponent, &value)) return value;
    int digits = snprintf(text, DIGITS + 2, "%" PRIu64, m);
    return nearest_by_text(text, (size_t)digits, exponent);
}

/* The same for more than DIGITS digits, with or without a point among them. exponent belongs to
 * the last digit. Of the digits after the first TEXT_DIGITS it only matters whether one is not
 * 0. */
static __attribute__((noinline)) float nearest_of_many(const uint8_t *from, const uint8_t *to,
                                                       int64_t exponent)
{
    char text[TEXT_DIGITS + 1 + 8];
    size_t digits = 0;
    uint64_t m = 0;
    int64_t dropped = 0;
    bool more = false;
    float value;
    for (const uint8_t *p = from; p < to; p++) {
        if (!is_digit(*p) || (digits == 0 && *p == '0')) continue;
        if (digits < TEXT_DIGITS) {
            if (digits < DIGITS) m = 10 * m + (uint64_t)(*p - '0');
            text[digits++] = (char)*p;
        } else {
            dropped++;
            more = more || *p != '0';
        }
    }
    if (digits == 0) return 0.0f;
    if (digits <= DIGITS) return nearest(m, exponent);
    if (nearest_by_double(m, exponent + dropped + (int64_t)digits - DIGITS, &value)) return value;
    if (more) {
        text[digits++] = '1';
        dropped--;
    }
    return nearest_by_text(text, digits, exponent + dropped);
}

/* ---- reading ---- */

/* True if the bytes at p begin with word, in upper or lower case. */
static bool begins_with(const uint8_t *p, const uint8_t *end, const char *word)
{
    for (; *word; word++, p++)
        if (p == end || (*p | 0x20) != (uint8_t)*word) return false;
    return true;
}

static const uint8_t *read_word(const uint8_t *p, const uint8_t *end, float *out)
{
    if (begins_with(p, end, "nan")) {
        *out = NAN;
        return p + 3;
    }
    if (!begins_with(p, end, "inf")) return NULL;
    *out = INFINITY;
    return begins_with(p, end, "infinity") ? p + 8 : p + 3;
}

/* Reads the exponent after an e. Returns NULL if there is none. */
static const uint8_t *read_exponent(const uint8_t *p, const uint8_t *end, int64_t *out)
{
    int64_t exponent = 0;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end || !is_digit(*p)) return NULL;
    for (; p < end && is_digit(*p); p++)
        if (exponent < EXPONENT) exponent = 10 * exponent + (*p - '0');
    *out = negative ? -exponent : exponent;
    return p;
}

/* Appends the digits at p to m, eight bytes at a time. The number of digits varies, so a loop
 * over single digits would end with a mispredicted branch, which costs more than all the
 * arithmetic. If there are too many digits m overflows, and the caller does not use it. */
static const uint8_t *read_digits(const uint8_t *p, const uint8_t *end, uint64_t *m)
{
    while (end - p >= 8) {
        uint64_t x = embla_le64(p) ^ UINT64_C(0x3030303030303030);
        uint64_t others = ((x + UINT64_C(0x7676767676767676)) | x) & UINT64_C(0x8080808080808080);
        int digits = others ? __builtin_ctzll(others) / 8 : 8;
        if (digits == 0) return p;
        x <<= 64 - 8 * digits; /* the last digit is in the highest byte, zeros before the first */
        x = x * 10 + (x >> 8); /* every second byte now holds a pair of digits */
        x = ((x >> 0 & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x000F424000000064) +
             (x >> 16 & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x0000271000000001)) >>
            32;
        *m = *m * power_of_ten((size_t)digits) + (x & UINT64_C(0xFFFFFFFF));
        p += digits;
        if (digits < 8) return p;
    }
    for (; p < end && is_digit(*p); p++) *m = 10 * *m + (uint64_t)(*p - '0');
    return p;
}

static const uint8_t *read_unsigned(const uint8_t *p, const uint8_t *end, float *out)
{
    const uint8_t *from = p, *point = NULL;
    uint64_t m = 0;
    int64_t exponent = 0;
    for (; p < end && is_digit(*p); p++) m = 10 * m + (uint64_t)(*p - '0');
    if (p == from) return read_word(p, end, out);
    if (p < end && *p == '.') {
        point = p;
        p = read_digits(p + 1, end, &m);
        if (p == point + 1) return NULL;
    }
    const uint8_t *to = p;
    if (p < end && (*p | 0x20) == 'e') {
        p = read_exponent(p + 1, end, &exponent);
        if (!p) return NULL;
    }
    if (point) exponent -= to - point - 1;
    bool many = to - from - (point != NULL) > DIGITS;
    *out = many ? nearest_of_many(from, to, exponent) : nearest(m, exponent);
    return p;
}

const uint8_t *embla_decimal_read(const uint8_t *from, const uint8_t *end, float *out)
{
    float value;
    if (from >= end) return NULL;
    bool negative = *from == '-'; /* half of all numbers are, so a branch would be mispredicted */
    const uint8_t *after = read_unsigned(from + (negative | (*from == '+')), end, &value);
    if (!after) return NULL;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits |= (uint32_t)negative << 31;
    memcpy(out, &bits, sizeof bits);
    return after;
}

bool embla_decimal_is(const uint8_t *bytes, size_t length)
{
    float value;
    return embla_decimal_read(bytes, bytes + length, &value) == bytes + length;
}

/* ---- writing ---- */

enum { LONG = 15 }; /* digits of the integer that is rounded to fewer digits */

/* value (finite, greater than 0) as an integer of 15 digits times 10^(power - 14); the error is
 * less than 1. *power is the power of ten of the first digit. */
static uint64_t long_digits(float value, int *power)
{
    int exponent;
    (void)frexpf(value, &exponent);
    int first = (int)floor((exponent - 1) * 0.30102999566398120); /* log10(2); or one more */
    for (;; first++) {
        int shift = LONG - 1 - first;
        double scaled = shift < 0 ? (double)value / tens[-shift] : (double)value * tens[shift];
        if (scaled >= 1e15) continue;
        *power = first;
        return (uint64_t)scaled;
    }
}

/* The fewest digits that read back to value, as an integer that does not end in 0. *power is the
 * power of ten of its first digit, *count the number of digits. */
static uint64_t short_digits(float value, int *power, size_t *count)
{
    uint64_t all = long_digits(value, power), n = 0;
    bool normal = value >= 0x1p-126f;
    for (*count = 1;; ++*count) {
        uint64_t unit = power_of_ten(LONG - *count);
        n = (all + unit / 2) / unit;
        /* A number whose relative distance from a normal float is above 2^-24 reads back to
         * another float, so it need not be tried. */
        uint64_t off = n * unit > all ? n * unit - all : all - n * unit;
        if (*count < 9 && normal && off > (all >> 23) + 2) continue;
        if (*count == 9 || nearest(n, *power - (int)*count + 1) == value) break;
    }
    if (n == 10) { /* 9 was rounded up to 10; with more digits, the single digit 1 had sufficed */
        n = 1;
        ++*power;
    }
    return n;
}

/* Writes the digits of n to out[0 .. count-1]. */
static void write_digits(uint64_t n, size_t count, char *out)
{
    for (; count > 0; n /= 10) out[--count] = (char)('0' + n % 10);
}

/* Writes 0.00012, 12.5, 1200. */
static size_t write_plain(uint64_t n, size_t count, int power, char *out)
{
    if (power < 0) {
        size_t zeros = (size_t)-power; /* including the one before the point */
        memset(out, '0', zeros + 1);
        out[1] = '.';
        write_digits(n, count, out + zeros + 1);
        return zeros + 1 + count;
    }
    size_t whole = (size_t)power + 1;
    write_digits(n, count, out);
    if (count <= whole) {
        memset(out + count, '0', whole - count);
        return whole;
    }
    memmove(out + whole + 1, out + whole, count - whole);
    out[whole] = '.';
    return count + 1;
}

/* Writes 1.2e-7. */
static size_t write_with_exponent(uint64_t n, size_t count, int power, char *out)
{
    size_t used = 1, size = (size_t)(power < 0 ? -power : power), digits = size < 10 ? 1 : 2;
    write_digits(n, count, out + 1);
    out[0] = out[1];
    if (count > 1) {
        out[1] = '.';
        used = count + 1;
    }
    out[used++] = 'e';
    if (power < 0) out[used++] = '-';
    write_digits(size, digits, out + used);
    return used + digits;
}

size_t embla_decimal_write(float value, char out[EMBLA_DECIMAL_MOST])
{
    const char *word = isnan(value) ? "nan" : isinf(value) ? "inf" : value == 0.0f ? "0" : "";
    size_t sign = signbit(value) && !isnan(value) ? 1 : 0, count = 0;
    int power = 0;
    if (sign > 0) *out++ = '-';
    for (; word[count]; count++) out[count] = word[count];
    if (count > 0) return sign + count;
    uint64_t n = short_digits(fabsf(value), &power, &count);
    if (power >= -4 && power <= 8) return sign + write_plain(n, count, power, out);
    return sign + write_with_exponent(n, count, power, out);
}
