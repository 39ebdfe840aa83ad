/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts with units: a number, then perhaps a space, then one of the suffixes of its kind. */
#include "core/amount.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER = 48 };

typedef struct {
    const char *name;
    double factor;
} suffix;

static const suffix counts[] = {{"", 1},    {"k", 1e3},  {"K", 1e3}, {"M", 1e6},
                                {"G", 1e9}, {"T", 1e12}, {NULL, 0}};
static const suffix bytes[] = {{"", 1},         {"B", 1},        {"kB", 1e3},     {"KB", 1e3},
                               {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},    {"PB", 1e15},
                               {"k", 1e3},      {"K", 1e3},      {"M", 1e6},      {"G", 1e9},
                               {"T", 1e12},     {"P", 1e15},     {"KiB", 0x1p10}, {"MiB", 0x1p20},
                               {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"PiB", 0x1p50}, {NULL, 0}};
static const suffix speeds[] = {
    {"B/s", 1},           {"kB/s", 1e3},     {"MB/s", 1e6},       {"GB/s", 1e9},
    {"TB/s", 1e12},       {"GiB/s", 0x1p30}, {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8},
    {"Tbit/s", 1e12 / 8}, {NULL, 0}};
static const suffix times[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {NULL, 0}};

static const struct {
    const suffix *suffixes;
    const char *example;
} kinds[] = {[CLI_AMOUNT_COUNT] = {counts, "1000000, 1,000,000, 1e9 or 10G"},
             [CLI_AMOUNT_BYTES] = {bytes, "512GB, 64GiB or 5e11"},
             [CLI_AMOUNT_SPEED] = {speeds, "25GB/s or 200Gbit/s, with its unit"},
             [CLI_AMOUNT_TIME] = {times, "2us, 0.5ms or 1s, with its unit"}};

/* The length of the number at the start of text: digits, separators, a point, an exponent. */
static size_t number_length(const char *text)
{
    size_t length = strspn(text, "0123456789.,_");
    const char *rest = text + length;
    if (length == 0 || (*rest != 'e' && *rest != 'E')) return length;
    size_t sign = rest[1] == '-' || rest[1] == '+', digits = strspn(rest + 1 + sign, "0123456789");
    return digits > 0 ? length + 1 + sign + digits : length;
}

static bool parse_number(const char *text, size_t length, double *out)
{
    char copy[NUMBER], plain[NUMBER], *end = NULL;
    if (length == 0 || length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    bool separated = strpbrk(copy, ",_") != NULL;
    if (separated && !cli_args_digits(copy, plain, sizeof plain)) return false;
    *out = strtod(separated ? plain : copy, &end);
    return *end == '\0' && end != copy && isfinite(*out);
}

int cli_amount_read(const cli_args *args, const char *name, cli_amount kind, double *out)
{
    const char *text = cli_args_text(args, name);
    size_t length = number_length(text);
    const char *unit = text + length + strspn(text + length, " ");
    double value;
    if (parse_number(text, length, &value))
        for (const suffix *s = kinds[kind].suffixes; s->name; s++)
            if (strcmp(s->name, unit) == 0) {
                *out = value * s->factor;
                return CLI_DONE;
            }
    return cli_usage("--%s: '%.60s' is not an amount such as %s", name, text, kinds[kind].example);
}

int cli_amount_whole(const cli_args *args, const char *name, cli_amount kind, int64_t *out)
{
    double value;
    int code = cli_amount_read(args, name, kind, &value);
    if (code != CLI_DONE) return code;
    if (!(value < 0x1p63))
        return cli_usage("--%s: '%.60s' does not fit in 64 bits", name, cli_args_text(args, name));
    if (value != floor(value))
        return cli_usage("--%s is %.60s; it must be a whole number", name,
                         cli_args_text(args, name));
    *out = (int64_t)value;
    return CLI_DONE;
}
