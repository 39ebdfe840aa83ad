/* SPDX-License-Identifier: Apache-2.0 */
/* embla diff: compares two tables, row by row or word by word.
 *
 * In two checkpoints of one model equal row numbers mean equal tokens. If the vocabularies differ,
 * rows are matched by word, so that a table that was trimmed, extended or reordered is compared
 * token by token.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla.h"
#include "embla_lab.h"

#include "core/answers.h"
#include "core/out.h"
#include "core/verbs.h"
#include "core/visible.h"

typedef struct {
    const cli_args *args;
    cli_asked asked[2];
    bool by_word;
    int64_t
        *other; /* by word: for each row of the first table, the row of the second; -1 means none */
    int64_t moved; /* matched rows whose number differs */
    embla_diff *diff;
    embla_diff_info info;
    const embla_diff_row *rows; /* by distance, the largest first */
    int64_t top;
    double tolerance;
    bool utf8;
} job;

/* ---- matching rows ---- */

static const char *word_at(const job *j, int which, int64_t row, size_t *length)
{
    const cli_asked *asked = &j->asked[which];
    return cli_word_of(asked->vocab, row, length);
}

static bool has_words(const job *j, int which)
{
    return j->asked[which].vocab && !j->asked[which].model.facts.mapping;
}

/* Whether both tables have the same word for this row. */
static bool same_word(const job *j, int64_t row)
{
    size_t a = 0, b = 0;
    const char *x = word_at(j, 0, row, &a), *y = word_at(j, 1, row, &b);
    return x && y && a == b && memcmp(x, y, a) == 0;
}

static bool words_differ(const job *j)
{
    int64_t end = embla_vocab_end(j->asked[0].vocab);
    if (embla_vocab_end(j->asked[1].vocab) != end) return true;
    for (int64_t row = 0; row < end; row++) {
        size_t length;
        bool none = !word_at(j, 0, row, &length) && !word_at(j, 1, row, &length);
        if (!none && !same_word(j, row)) return true;
    }
    return false;
}

/* Whether a lookup of the word gives this row. Another row with the same word is matched only with
 * the same row number, never with a wrong partner. */
static bool is_first(const job *j, int which, int64_t row, const char *word, size_t length)
{
    int32_t token;
    return embla_vocab_find(j->asked[which].vocab, word, length, &token) == EMBLA_OK &&
           token == row;
}

static int match_words(job *j)
{
    int64_t rows[2] = {embla_table_rows(j->asked[0].table), embla_table_rows(j->asked[1].table)};
    j->other = malloc((size_t)rows[0] * sizeof *j->other);
    if (!j->other) return cli_failed("no memory for %" PRId64 " rows", rows[0]);
    for (int64_t row = 0; row < rows[0]; row++) {
        size_t length = 0, other_length = 0;
        int32_t token;
        const char *word = word_at(j, 0, row, &length), *other;
        j->other[row] = row < rows[1] && same_word(j, row) ? row : -1;
        if (j->other[row] >= 0 || !word || !is_first(j, 0, row, word, length)) continue;
        if (embla_vocab_find(j->asked[1].vocab, word, length, &token) != EMBLA_OK) continue;
        other =
            word_at(j, 1, token, &other_length); /* find also accepts other spellings of a space */
        if (token >= rows[1] || other_length != length || memcmp(other, word, length) != 0)
            continue;
        if (token < rows[0] && same_word(j, token)) continue; /* that row is already matched */
        j->other[row] = token;
        j->moved += token != row;
    }
    return CLI_DONE;
}

static int choose_matching(job *j)
{
    const cli_args *args = j->args;
    bool both = has_words(j, 0) && has_words(j, 1);
    if (cli_args_flag(args, "by-word") && cli_args_flag(args, "by-row"))
        return cli_usage("--by-word and --by-row cannot be used together");
    if (cli_args_flag(args, "by-word") && !both)
        return cli_failed("--by-word: %s has no words for its rows",
                          args->operands[has_words(j, 0) ? 1 : 0]);
    j->by_word = cli_args_flag(args, "by-word") ||
                 (both && !cli_args_flag(args, "by-row") && words_differ(j));
    return j->by_word ? match_words(j) : CLI_DONE;
}

/* ---- set up ---- */

static int read_tolerance(job *j)
{
    const char *text = cli_args_text(j->args, "tolerance");
    char *end = NULL;
    j->tolerance = strtod(text, &end);
    if (end == text || *end != '\0' || !(j->tolerance >= 0) || !isfinite(j->tolerance))
        return cli_usage("--tolerance: '%.40s' is not a number of 0 or more", text);
    return CLI_DONE;
}

static int set_up(job *j)
{
    int code = read_tolerance(j);
    for (int i = 0; i < 2 && code == CLI_DONE; i++) {
        code = cli_asked_open(j->args, j->args->operands[i], &j->asked[i]);
        if (code == CLI_DONE) code = cli_asked_find_tokens(&j->asked[i]);
    }
    if (code == CLI_DONE) code = choose_matching(j);
    if (code != CLI_DONE) return code;
    const embla_diff_options options = {.other = j->other,
                                        .tolerance = j->tolerance,
                                        .threads = (int)cli_args_count(j->args, "threads")};
    if (embla_diff_new(j->asked[0].table, j->asked[1].table, &options, &j->diff) != EMBLA_OK ||
        embla_diff_describe(j->diff, &j->info) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    size_t count;
    j->rows = embla_diff_rows(j->diff, &count);
    j->top = cli_args_count(j->args, "top");
    if (j->top > j->info.changed) j->top = j->info.changed;
    j->utf8 = cli_utf8_wanted();
    return CLI_DONE;
}

/* ---- text ---- */

static void print_table_fact(const job *j, int which)
{
    const embla_tensor *tensor = &j->asked[which].model.table;
    char shape[CLI_CELL];
    cli_out_fact(which == 0 ? "first" : "second", "%s: %s, %s, %s", j->args->operands[which],
                 tensor->name, cli_shape_text(tensor, shape), tensor->type);
}

/* The words of rows that only one table has, at most NAMED of them. */
static void print_only(const job *j, int which)
{
    enum { NAMED = 12 };
    char text[800] = "", word[CLI_WORD_TEXT], rows[CLI_CELL], more[CLI_CELL];
    size_t used = 0;
    int64_t count = j->info.only[which], all = j->info.rows[which], shown = 0;
    int64_t from = j->by_word ? 0 : j->info.compared;
    if (count == 0) return;
    char *met = NULL;
    if (which == 1 && j->by_word) met = calloc((size_t)all, 1);
    for (int64_t row = 0; met && row < j->info.rows[0]; row++)
        if (j->other[row] >= 0) met[j->other[row]] = 1;
    if (which == 1 && j->by_word && !met) from = all; /* no memory: print only the number */
    for (int64_t row = from; row < all && shown < NAMED && used < 640; row++) {
        if (j->by_word && (which == 0 ? j->other[row] >= 0 : met[row])) continue;
        (void)cli_token_show(&j->asked[which], cli_asked_token(&j->asked[which], row, NULL),
                             !j->utf8, 16, word);
        const char *quote = strchr(word, ',') && word[0] != '"' ? "\"" : "";
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%s",
                                 shown++ > 0 ? ", " : ": ", quote, word, quote);
    }
    free(met);
    if (shown > 0 && count > shown)
        snprintf(text + used, sizeof text - used, " and %s more", cli_commas(count - shown, more));
    cli_out_fact(which == 0 ? "only in first" : "only in 2nd", "%s%s",
                 cli_plural(count, "row", rows), text);
}

/* The word of a changed row in the first table, padded to columns. */
static void print_word(const job *j, const embla_diff_row *r, size_t columns)
{
    char word[CLI_WORD_TEXT];
    size_t wide = cli_token_show(&j->asked[0], cli_asked_token(&j->asked[0], r->row, NULL),
                                 !j->utf8, CLI_WORD_COLUMNS, word);
    printf("  %s%*s", word, (int)(columns > wide ? columns - wide : 0), "");
}

static void print_changed(const job *j)
{
    size_t columns = strlen("token");
    for (int64_t n = 0; n < j->top; n++) {
        const embla_diff_row *r = &j->rows[n];
        char word[CLI_WORD_TEXT];
        size_t wide = cli_token_show(&j->asked[0], cli_asked_token(&j->asked[0], r->row, NULL),
                                     !j->utf8, CLI_WORD_COLUMNS, word);
        columns = wide > columns ? wide : columns;
    }
    if (j->top == 0) return;
    printf("\nrank  %-*s  %8s  ", (int)columns, "token", "row");
    if (j->by_word) printf("%8s  ", "2nd row");
    printf("%10s  %9s  %10s\n", "distance", "cosine", "largest");
    for (int64_t n = 0; n < j->top; n++) {
        const embla_diff_row *r = &j->rows[n];
        printf("%4" PRId64, n + 1);
        print_word(j, r, columns);
        printf("  %8" PRId64 "  ", r->row);
        if (j->by_word) printf("%8" PRId64 "  ", r->other);
        printf("%10.5g  ", r->distance);
        if (isnan(r->cosine))
            printf("%9s", "-");
        else
            printf("%9.6f", r->cosine);
        printf("  %10.5g\n", r->difference);
    }
}

static void print_text(const job *j, int code)
{
    const embla_diff_info *s = &j->info;
    char a[CLI_CELL], b[CLI_CELL];
    for (int i = 0; i < 2; i++) print_table_fact(j, i);
    if (j->by_word)
        cli_out_fact("matched", "by word: %s, %s with a different row number",
                     cli_plural(s->compared, "row", a), cli_commas(j->moved, b));
    else
        cli_out_fact("matched", "by row number: %s", cli_plural(s->compared, "row", a));
    cli_out_fact("same", "%s", cli_plural(s->same, "row", a));
    if (s->changed > 0 && isfinite(s->distance_mean) && isfinite(s->cosine_mean))
        cli_out_fact(
            "changed",
            "%s: mean distance %.5g, mean cosine %.6f, largest difference of two numbers %.5g",
            cli_plural(s->changed, "row", a), s->distance_mean, s->cosine_mean, s->difference);
    else
        cli_out_fact("changed", "%s", cli_plural(s->changed, "row", a));
    if (s->nonfinite > 0)
        cli_out_fact("not finite", "%s with a NaN or an infinity in either table",
                     cli_plural(s->nonfinite, "row", a));
    for (int i = 0; i < 2; i++) print_only(j, i);
    print_changed(j);
    if (code == CLI_DONE)
        cli_out_fact("result", "no difference%s", j->tolerance > 0 ? " beyond the tolerance" : "");
}

/* ---- JSON ---- */

static void json_changed(const job *j, cli_json *json)
{
    cli_json_open(json, "largest", '[');
    for (int64_t n = 0; n < j->top; n++) {
        const embla_diff_row *r = &j->rows[n];
        int64_t token = cli_asked_token(&j->asked[0], r->row, NULL);
        cli_json_open(json, NULL, '{');
        cli_token_json(&j->asked[0], token, json);
        cli_json_whole(json, "row", r->row);
        cli_json_whole(json, "other", r->other);
        cli_json_real(json, "distance", r->distance);
        cli_json_real(json, "cosine", r->cosine);
        cli_json_real(json, "difference", r->difference);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void print_json(const job *j, int code)
{
    const embla_diff_info *s = &j->info;
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "first", j->args->operands[0]);
    cli_json_text(&json, "second", j->args->operands[1]);
    cli_json_text(&json, "matched_by", j->by_word ? "word" : "row");
    cli_json_bool(&json, "good", code == CLI_DONE);
    cli_json_open(&json, "rows", '[');
    for (int i = 0; i < 2; i++) cli_json_whole(&json, NULL, s->rows[i]);
    cli_json_close(&json, ']');
    cli_json_whole(&json, "compared", s->compared);
    if (j->by_word) cli_json_whole(&json, "moved", j->moved);
    cli_json_whole(&json, "same", s->same);
    cli_json_whole(&json, "changed", s->changed);
    cli_json_whole(&json, "nonfinite", s->nonfinite);
    cli_json_whole(&json, "only_first", s->only[0]);
    cli_json_whole(&json, "only_second", s->only[1]);
    cli_json_real(&json, "tolerance", j->tolerance);
    cli_json_real(&json, "difference", s->difference);
    cli_json_real(&json, "distance_mean", s->distance_mean);
    cli_json_real(&json, "cosine_mean", s->cosine_mean);
    json_changed(j, &json);
    cli_json_close(&json, '}');
    putchar('\n');
}

/* ---- the verb ---- */

static int run(const cli_args *args)
{
    job j = {.args = args};
    int code = set_up(&j);
    if (code == CLI_DONE) {
        const embla_diff_info *s = &j.info;
        if (s->changed + s->only[0] + s->only[1] + j.moved > 0) code = CLI_WANTING;
        if (cli_args_flag(args, "json"))
            print_json(&j, code);
        else
            print_text(&j, code);
    }
    free(j.other);
    embla_diff_free(j.diff);
    for (int i = 0; i < 2; i++) cli_asked_free(&j.asked[i]);
    return code;
}

static const cli_option options[] = {{.name = "top",
                                      .letter = 'k',
                                      .value = "N",
                                      .standard = "10",
                                      .count = true,
                                      .help = "number of the largest changes to list"},
                                     {.name = "by-word", .help = "match rows by word"},
                                     {.name = "by-row", .help = "match rows by row number"},
                                     {.name = "tolerance",
                                      .value = "X",
                                      .standard = "0",
                                      .help = "treat numbers that differ by at most X as equal"},
                                     CLI_OPEN_OPTIONS,
                                     {.name = NULL}};

const cli_verb cli_verb_diff = {
    .name = "diff",
    .synopsis = "FILE FILE",
    .operand = "FILE",
    .operands_least = 2,
    .operands_most = 2,
    .files = 2,
    .about = "compare two tables, row by row or word by word",
    .text = "Each FILE is a checkpoint as for 'embla info'. Rows are matched by row number. If "
            "both tables have words, and the words or their order differ, rows are matched by "
            "word. Decoded numbers are compared, so two dtypes or formats with the same values are "
            "equal; f64 is compared in full precision.\n\n"
            "The rows with the largest Euclidean distance are listed, with the cosine of both rows "
            "and the largest difference of two numbers. A changed row with a NaN or an infinity in "
            "either table has an infinite distance.\n\n"
            "The exit code is 0 if all rows and words are equal and in the same order. It is 3 if "
            "a row changed, moved, or exists in only one table.",
    .example = "embla diff words.vec words.vec",
    .options = options,
    .run = run};
