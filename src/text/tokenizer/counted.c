/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites a regular expression so that libonig calls Embla while it works: a callout, (*EMBLA), at
 * the front of each alternative and at the end of whatever is repeated.
 *
 *   a*a*[^a]    (*EMBLA)(?:a(*EMBLA))*(?:a(*EMBLA))*[^a]
 *
 * The expression matches what it matched before. Between two callouts libonig does at most as much
 * as the expression is long, so their number bounds its time: its own limits count only how often
 * it goes back, and (?>a*) never does. What one step could make long is refused: a back-reference,
 * a call, a repeat in a look-behind, a count above 1000.
 */
#include <string.h>

#include "tokenizer/pattern.h"

enum { LONGEST = 8192, DEPTH = 64, COUNT_MOST = 1000 };
static const char CALLOUT[] = "(*EMBLA)";

typedef struct {
    const char *name, *text;
    size_t length, at;
    char *out;
    size_t used;
    size_t atom;   /* where the last atom begins in `out`; SIZE_MAX if nothing can be repeated */
    size_t groups; /* that are open */
    struct {
        size_t start; /* in `out` */
        bool behind;  /* in a look-behind */
    } open[DEPTH + 1];
} rewriting;

static embla_status refuse(const rewriting *r, const char *what)
{
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "%.256s: byte %zu of the regular expression '%.*s' %s, which Embla does not "
                      "run because its time has no bound",
                      r->name, r->at, r->length < 128 ? (int)r->length : 128, r->text, what);
}

static void put(rewriting *r, const char *bytes, size_t length)
{
    memcpy(r->out + r->used, bytes, length);
    r->used += length;
}

static char peek(const rewriting *r, size_t ahead)
{
    return r->at + ahead < r->length ? r->text[r->at + ahead] : 0;
}

static bool behind(const rewriting *r)
{
    return r->open[r->groups].behind;
}

static void put_callout(rewriting *r)
{
    if (!behind(r)) put(r, CALLOUT, sizeof CALLOUT - 1);
}

/* Copies an atom of `length` bytes. */
static void put_atom(rewriting *r, size_t length)
{
    if (length > r->length - r->at) length = r->length - r->at; /* libonig says what is wrong */
    r->atom = r->used;
    put(r, r->text + r->at, length);
    r->at += length;
}

/* ---- atoms ---- */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Bytes up to and with '}', which is after `from` bytes. */
static size_t braced(const rewriting *r, size_t from)
{
    while (r->at + from < r->length && peek(r, from) != '}') from++;
    return from + 1;
}

/* The length of an escape; 0 if it is not one that is known. */
static size_t escape_length(const rewriting *r)
{
    const char c = peek(r, 1);
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if ((c == 'p' || c == 'P' || c == 'x') && peek(r, 2) == '{') return braced(r, 3);
    if (c == 'u') return 6;
    if (c == 'x') { /* \xE3\x81 would be two bytes of one character */
        if (!is_hex(peek(r, 2))) return 2;
        if (!is_hex(peek(r, 3))) return 3;
        return peek(r, 2) < '8' ? 4 : 0;
    }
    if (c >= '0' && c <= '9') return 0;
    if ((uint8_t)c >= 0x80) return 0;
    return c == 0 || !letter || strchr("dDsSwWhHntrfvaebBAZzGR", c) ? 2 : 0;
}

/* The length of a set, with the sets in it. */
static embla_status set_length(const rewriting *r, size_t *out)
{
    size_t depth = 0, i = 0;
    do {
        const char c = peek(r, i++);
        if (c == '[') {
            depth++;
            if (peek(r, i) == '^') i++;
            if (peek(r, i) == ']') return refuse(r, "is a set that begins with ']'");
        }
        if (c == ']') depth--;
        if (c == '\\') i++;
    } while (depth > 0 && r->at + i < r->length);
    *out = i;
    return EMBLA_OK;
}

static embla_status copy_atom(rewriting *r)
{
    size_t length = 0;
    const char c = peek(r, 0);
    if (c == '\\') {
        length = escape_length(r);
        if (length == 0) return refuse(r, "is a back-reference or a rare escape");
    } else if (c == '[') {
        EMBLA_TRY(set_length(r, &length));
    } else {
        (void)embla_char_at(r->text + r->at, &length);
    }
    put_atom(r, length);
    return EMBLA_OK;
}

/* ---- groups ---- */

/* The length of what opens a group; 0 if the group is not of a kind that is known. *alone: it is
 * (?i), which opens none. */
static size_t group_head(const rewriting *r, bool *look_behind, bool *alone)
{
    const char c = peek(r, 2), d = peek(r, 3);
    size_t i = 2;
    if (peek(r, 1) == '*') return 0;
    if (peek(r, 1) != '?') return 1;
    if (c && strchr(":=!>", c)) return 3;
    *look_behind = c == '<' && (d == '=' || d == '!');
    if (*look_behind) return 4;
    if (c == '<') {
        for (i = 3; peek(r, i) && peek(r, i) != '>'; i++) {
        }
        return peek(r, i) ? i + 1 : 0;
    }
    while (peek(r, i) && strchr("ims-", peek(r, i))) i++;
    *alone = peek(r, i) == ')';
    return *alone || peek(r, i) == ':' ? i + 1 : 0;
}

static embla_status open_group(rewriting *r)
{
    bool look_behind = false, alone = false;
    const size_t length = group_head(r, &look_behind, &alone);
    if (length == 0) return refuse(r, "opens a group of a rare kind");
    if (r->groups == DEPTH) return refuse(r, "opens a group in 64 others");
    const bool inside = behind(r) || look_behind;
    put_atom(r, length);
    if (!alone) {
        r->groups++;
        r->open[r->groups].start = r->atom;
        r->open[r->groups].behind = inside;
        put_callout(r);
    }
    r->atom = SIZE_MAX;
    return EMBLA_OK;
}

static void close_group(rewriting *r)
{
    const size_t start = r->open[r->groups].start;
    put_atom(r, 1);
    if (r->groups > 0) r->atom = start; /* otherwise libonig refuses it */
    if (r->groups > 0) r->groups--;
}

/* ---- repeats ---- */

/* The length of {n}, {n,}, {,m} or {n,m}; 0 if it is nothing of the kind. */
static size_t interval_length(const rewriting *r, bool *large)
{
    size_t i = 1, digits = 0, commas = 0, number = 0;
    for (; peek(r, i) == ',' || (peek(r, i) >= '0' && peek(r, i) <= '9'); i++) {
        const bool comma = peek(r, i) == ',';
        commas += comma;
        digits += !comma;
        number = comma ? 0 : number * 10 + (size_t)(peek(r, i) - '0');
        if (number > COUNT_MOST) *large = true;
        if (*large) number = COUNT_MOST;
    }
    return peek(r, i) == '}' && digits > 0 && commas < 2 ? i + 1 : 0;
}

/* The length of what repeats the last atom; 0 if nothing does. */
static size_t repeat_length(const rewriting *r, bool *large)
{
    const char c = peek(r, 0);
    size_t length = c == '*' || c == '+' || c == '?' ? 1 : c == '{' ? interval_length(r, large) : 0;
    if (length > 0 && (peek(r, length) == '?' || peek(r, length) == '+')) length++;
    return length;
}

static embla_status repeat(rewriting *r, size_t length)
{
    static const char before[] = "(?:";
    const size_t atom = r->atom, more = sizeof before - 1;
    if (behind(r)) return refuse(r, "repeats something in a look-behind");
    if (atom == SIZE_MAX) return refuse(r, "repeats nothing");
    memmove(r->out + atom + more, r->out + atom, r->used - atom);
    memcpy(r->out + atom, before, more);
    r->used += more;
    put(r, CALLOUT, sizeof CALLOUT - 1);
    put(r, ")", 1);
    put_atom(r, length);
    r->atom = atom;
    return EMBLA_OK;
}

/* ---- all of it ---- */

static embla_status rewrite(rewriting *r)
{
    put_callout(r);
    r->atom = SIZE_MAX;
    while (r->at < r->length) {
        bool large = false;
        const char c = peek(r, 0);
        const size_t length = repeat_length(r, &large);
        if (large) return refuse(r, "has a count above 1000");
        if (length > 0) {
            EMBLA_TRY(repeat(r, length));
        } else if (c == '(') {
            EMBLA_TRY(open_group(r));
        } else if (c == ')') {
            close_group(r);
        } else if (c == '|') {
            put_atom(r, 1);
            r->atom = SIZE_MAX;
            put_callout(r);
        } else {
            EMBLA_TRY(copy_atom(r));
        }
    }
    return EMBLA_OK;
}

embla_status embla_regex_counted(const char *text, size_t length, const char *name,
                                 embla_arena *arena, const char **out, size_t *out_length)
{
    rewriting r = {.name = name, .text = text, .length = length};
    if (length > LONGEST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: a regular expression has %zu bytes; the limit is %d", name,
                          length, LONGEST);
    /* a byte that repeats has the most: 3 before the atom, a callout and 1 after it */
    EMBLA_TRY(embla_arena_many(arena, (length + 1) * (sizeof CALLOUT + 8), 1,
                               "a regular expression", &r.out));
    EMBLA_TRY(rewrite(&r));
    *out = r.out;
    *out_length = r.used;
    return EMBLA_OK;
}
