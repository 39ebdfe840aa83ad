/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files of analogies (Google's questions-words.txt) and of pairs with a score (WordSim,
 * SimLex, MEN ..). They are written by hand and by spreadsheets: CR LF, a byte order mark, a
 * heading, empty lines and comments (#) are accepted. Any other unexpected line is refused with its
 * number, because silently skipped questions make scores incomparable.
 *
 * Duplicate words are found by sorting, not by a hash table that a file could flood.
 */
#include "see/eval.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "files/cursor.h"

/* Bytes of a line or field, without blanks at its ends. */
typedef struct {
    const uint8_t *at;
    size_t length;
} span;

enum { FIELDS = 5 }; /* one more field than any line may have */

typedef struct {
    const embla_map *map;
    embla_eval_file *file;
    uint64_t line;   /* number of the current line, from 1 */
    bool begun;      /* the kind is checked: a line with content came before */
    embla_name *met; /* all words of all lines, in order */
    size_t met_count, met_room;
    size_t section_room, score_room;
} reader;

/* ---- lines ---- */

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static span trimmed(const uint8_t *from, const uint8_t *end)
{
    while (from < end && is_blank(*from)) from++;
    while (end > from && is_blank(end[-1])) end--;
    return (span){from, (size_t)(end - from)};
}

static embla_status line_too_long(const reader *r, size_t length, bool whole)
{
    return embla_fail(
        EMBLA_ERR_FORMAT, "%.256s: line %" PRIu64 " has %zu bytes%s; at most %d are allowed",
        r->map->name, r->line, length, whole ? "" : " and more", EMBLA_EVAL_LINE_BYTES);
}

/* Reads the next line, without its end. There is one. */
static embla_status next_line(embla_cursor *c, reader *r, span *out)
{
    if (r->line >= EMBLA_EVAL_LINES)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: line %" PRIu64 " at byte %" PRIu64
                          ": the file has more than %d lines",
                          r->map->name, r->line + 1, c->at, EMBLA_EVAL_LINES);
    r->line++;
    for (uint64_t wanted = 4096;; wanted *= 2) {
        const uint8_t *bytes = NULL;
        uint64_t have = 0;
        bool last = wanted >= embla_cursor_left(c);
        EMBLA_TRY(embla_cursor_peek(c, wanted, &bytes, &have));
        const uint8_t *newline = memchr(bytes, '\n', (size_t)have);
        if (!newline && !last && have <= EMBLA_EVAL_LINE_BYTES + 1) continue;
        size_t length = newline ? (size_t)(newline - bytes) : (size_t)have;
        bool cr = length > 0 && bytes[length - 1] == '\r';
        if (length - cr > EMBLA_EVAL_LINE_BYTES)
            return line_too_long(r, length - cr, newline || last);
        *out = (span){bytes, length - cr};
        return embla_cursor_skip(c, length + (newline != NULL), "a line");
    }
}

static embla_status check_text(const reader *r, span line)
{
    size_t valid = embla_utf8_valid(line.at, line.length);
    if (valid < line.length)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: line %" PRIu64 ", byte %zu of %zu: not UTF-8",
                          r->map->name, r->line, valid + 1, line.length);
    for (size_t i = 0; i < line.length; i++)
        if (line.at[i] < 0x20 && line.at[i] != '\t')
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.256s: line %" PRIu64 ", byte %zu of %zu is 0x%02x: not text",
                              r->map->name, r->line, i + 1, line.length, line.at[i]);
    return EMBLA_OK;
}

/* ---- fields ---- */

/* Splits at each separator, so fields may be empty; blanks around them are removed. Returns how
 * many fields there are; the first FIELDS of them are in out. */
static size_t split_at(span line, uint8_t separator, span *out)
{
    const uint8_t *from = line.at, *end = line.at + line.length;
    size_t count = 0;
    for (const uint8_t *p = from;; p++) {
        if (p < end && *p != separator) continue;
        if (count < FIELDS) out[count] = trimmed(from, p);
        count++;
        if (p == end) return count;
        from = p + 1;
    }
}

/* Splits at runs of blanks, and also of commas if they separate. */
static size_t split_runs(span line, bool commas, span *out)
{
    const uint8_t *p = line.at, *end = line.at + line.length;
    size_t count = 0;
    for (;;) {
        while (p < end && (is_blank(*p) || (commas && *p == ','))) p++;
        if (p == end) return count;
        const uint8_t *from = p;
        while (p < end && !is_blank(*p) && !(commas && *p == ',')) p++;
        if (count < FIELDS) out[count] = (span){from, (size_t)(p - from)};
        count++;
    }
}

static size_t count_of(span line, uint8_t c)
{
    size_t count = 0;
    for (size_t i = 0; i < line.length; i++) count += line.at[i] == c;
    return count;
}

/* The fields of a line of pairs. If there are two tabs, or else two commas, only these separate,
 * and fields may contain blanks ("New York"). */
static size_t pair_fields(span line, span *out)
{
    if (count_of(line, '\t') >= 2) return split_at(line, '\t', out);
    if (count_of(line, ',') >= 2) return split_at(line, ',', out);
    return split_runs(line, true, out);
}

/* value times 10 to power. Both factors are exact up to 10^22, so the result is rounded once. */
static double times_ten_to(double value, int64_t power)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    while (power != 0 && value > 0 && isfinite(value)) {
        int64_t step = power > 22 ? 22 : power < -22 ? -22 : power;
        value = step > 0 ? value * tens[step] : value / tens[-step];
        power -= step;
    }
    return value;
}

/* Reads the digits and the point of a number at p: its value is *mantissa times 10 to *power, with
 * as many digits as fit. Returns the end; NULL if there is no digit. */
static const uint8_t *read_digits(const uint8_t *p, const uint8_t *end, uint64_t *mantissa,
                                  int64_t *power)
{
    bool point = false, digit = false;
    for (; p < end && ((*p >= '0' && *p <= '9') || (*p == '.' && !point)); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        digit = true;
        if (*mantissa < UINT64_C(1000000000000000000)) { /* below 10^18: one more digit fits */
            *mantissa = 10 * *mantissa + (uint64_t)(*p - '0');
            *power -= point;
        } else {
            *power += !point;
        }
    }
    return digit ? p : NULL;
}

static bool read_sign(const uint8_t **p, const uint8_t *end)
{
    bool minus = *p < end && **p == '-';
    *p += *p < end && (**p == '-' || **p == '+');
    return minus;
}

bool embla_eval_score(const void *text, size_t length, double *out)
{
    const uint8_t *p = text, *end = p + length;
    uint64_t mantissa = 0;
    int64_t power = 0, exponent = 0;
    bool minus = read_sign(&p, end);
    p = read_digits(p, end, &mantissa, &power);
    if (!p) return false;
    if (p < end && (*p | 0x20) == 'e') {
        p++;
        bool down = read_sign(&p, end);
        if (p == end) return false;
        for (; p < end && *p >= '0' && *p <= '9'; p++)
            if (exponent < 100000) exponent = 10 * exponent + (*p - '0');
        power += down ? -exponent : exponent;
    }
    double value = times_ten_to((double)mantissa, power);
    if (p != end || !isfinite(value)) return false;
    *out = minus ? -value : value;
    return true;
}

/* ---- the kind of a file ---- */

static embla_eval_kind kind_of(span line)
{
    span fields[FIELDS];
    double number;
    if (line.at[0] == ':') return EMBLA_EVAL_ANALOGIES;
    if (pair_fields(line, fields) == 3) return EMBLA_EVAL_PAIRS;
    bool four = split_runs(line, false, fields) == 4 &&
                !embla_eval_score(fields[3].at, fields[3].length, &number);
    return four ? EMBLA_EVAL_ANALOGIES : EMBLA_EVAL_PAIRS;
}

static embla_status check_kind(const reader *r, span line)
{
    embla_eval_kind kind = kind_of(line);
    if (kind == r->file->kind) return EMBLA_OK;
    return kind == EMBLA_EVAL_ANALOGIES
               ? embla_fail(EMBLA_ERR_UNSUPPORTED,
                            "%.256s contains questions of 4 words (line %" PRIu64
                            "), not pairs of 2 words",
                            r->map->name, r->line)
               : embla_fail(EMBLA_ERR_UNSUPPORTED,
                            "%.256s contains no questions of 4 words (line %" PRIu64
                            " looks like a line of a file of pairs)",
                            r->map->name, r->line);
}

/* ---- questions and pairs ---- */

static embla_status add_section(reader *r, span name)
{
    embla_eval_file *f = r->file;
    void *list = f->sections;
    const char *copy = NULL;
    EMBLA_TRY(embla_arena_text(&f->arena, name.at, name.length, &copy));
    EMBLA_TRY(embla_arena_grow(&f->arena, sizeof *f->sections, f->section_count, "sections", &list,
                               &r->section_room));
    f->sections = list;
    f->sections[f->section_count++] = (embla_eval_section){.name = copy, .first = f->count};
    return EMBLA_OK;
}

/* Copies the words of one question. */
static embla_status add_words(reader *r, const span *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *list = r->met;
        const char *copy = NULL;
        EMBLA_TRY(embla_arena_text(&r->file->arena, fields[i].at, fields[i].length, &copy));
        EMBLA_TRY(embla_arena_grow(&r->file->arena, sizeof *r->met, r->met_count, "words", &list,
                                   &r->met_room));
        r->met = list;
        r->met[r->met_count] =
            (embla_name){copy, (uint32_t)fields[i].length, (uint32_t)r->met_count};
        r->met_count++;
    }
    r->file->count++;
    return EMBLA_OK;
}

static embla_status add_question(reader *r, span line)
{
    span fields[FIELDS];
    embla_eval_file *f = r->file;
    if (line.at[0] == ':') {
        span name = trimmed(line.at + 1, line.at + line.length);
        if (name.length > 0) return add_section(r, name);
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: line %" PRIu64 " begins a section without a name", r->map->name,
                          r->line);
    }
    size_t count = split_runs(line, false, fields);
    if (count != EMBLA_EVAL_ANALOGIES)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: line %" PRIu64 " has %zu words; a question has 4", r->map->name,
                          r->line, count);
    if (f->section_count == 0) EMBLA_TRY(add_section(r, (span){(const uint8_t *)"questions", 9}));
    f->sections[f->section_count - 1].count++;
    return add_words(r, fields, count);
}

static embla_status add_pair(reader *r, span line, bool first)
{
    span fields[FIELDS];
    embla_eval_file *f = r->file;
    size_t count = pair_fields(line, fields);
    double score = 0;
    void *list = f->scores;
    bool number = count >= 1 && count <= FIELDS &&
                  embla_eval_score(fields[count - 1].at, fields[count - 1].length, &score);
    if (first && !number && count <= FIELDS) return EMBLA_OK; /* a heading */
    if (count != 3)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: line %" PRIu64 " has %zu fields; a pair has 3, two words and "
                          "a number",
                          r->map->name, r->line, count);
    if (!number || fields[0].length == 0 || fields[1].length == 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: line %" PRIu64 ": %s '%.*s' is not a %s",
                          r->map->name, r->line, number ? "an empty field" : "the third field",
                          number ? 0 : (int)(fields[2].length < 64 ? fields[2].length : 64),
                          (const char *)fields[2].at, number ? "word" : "number");
    EMBLA_TRY(
        embla_arena_grow(&f->arena, sizeof *f->scores, f->count, "scores", &list, &r->score_room));
    f->scores = list;
    f->scores[f->count] = score;
    return add_words(r, fields, EMBLA_EVAL_PAIRS);
}

static embla_status parse_line(reader *r, span line)
{
    if (r->line == 1 && line.length >= 3 && memcmp(line.at, "\xef\xbb\xbf", 3) == 0)
        line = (span){line.at + 3, line.length - 3}; /* a byte order mark */
    EMBLA_TRY(check_text(r, line));
    bool first = !r->begun;
    span words = trimmed(line.at, line.at + line.length);
    if (words.length == 0 || words.at[0] == '#') return EMBLA_OK;
    if (first) EMBLA_TRY(check_kind(r, words));
    r->begun = true;
    return r->file->kind == EMBLA_EVAL_ANALOGIES ? add_question(r, words)
                                                 : add_pair(r, words, first);
}

/* ---- numbering words ---- */

static embla_status number_words(reader *r)
{
    embla_eval_file *f = r->file;
    embla_names sorted = {0};
    EMBLA_TRY(embla_names_sort(&f->arena, r->met, r->met_count, &sorted));
    EMBLA_TRY(embla_arena_many(&f->arena, r->met_count, sizeof *f->items, "questions", &f->items));
    /* Equal words are sorted by position, so the first of a run is the first occurrence. */
    for (size_t i = 0, first = 0; i < sorted.count; i++) {
        const embla_name *name = sorted.sorted[i], *other = sorted.sorted[first];
        if (name->length != other->length || memcmp(name->bytes, other->bytes, name->length) != 0)
            first = i;
        f->items[name->number] = sorted.sorted[first]->number;
        f->word_count += first == i;
    }
    EMBLA_TRY(embla_arena_many(&f->arena, f->word_count, sizeof *f->words, "words", &f->words));
    for (size_t i = 0, next = 0; i < r->met_count; i++) {
        if (f->items[i] == i) {
            f->words[next] = (embla_name){r->met[i].bytes, r->met[i].length, 0};
            f->items[i] = (uint32_t)next++;
        } else {
            f->items[i] = f->items[f->items[i]]; /* a repeated word has its number already */
        }
        f->words[f->items[i]].number++;
    }
    return EMBLA_OK;
}

static embla_status read_lines(embla_cursor *c, reader *r)
{
    while (embla_cursor_left(c) > 0) {
        span line = {0};
        EMBLA_TRY(next_line(c, r, &line));
        EMBLA_TRY(parse_line(r, line));
    }
    if (r->file->count == 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: %" PRIu64 " lines, but no %s", r->map->name,
                          r->line,
                          r->file->kind == EMBLA_EVAL_ANALOGIES ? "questions of four words"
                                                                : "pairs of words with a number");
    return number_words(r);
}

embla_status embla_eval_read(const embla_map *map, embla_eval_kind kind, embla_eval_file *out)
{
    embla_eval_file file = {.kind = kind};
    reader r = {.map = map, .file = &file};
    embla_cursor cursor;
    embla_cursor_begin(&cursor, map, 0);
    embla_status status = read_lines(&cursor, &r);
    embla_cursor_end(&cursor);
    if (status != EMBLA_OK) {
        embla_eval_file_free(&file);
        return status;
    }
    *out = file;
    return EMBLA_OK;
}

void embla_eval_file_free(embla_eval_file *file)
{
    embla_arena_free(&file->arena);
    *file = (embla_eval_file){0};
}
