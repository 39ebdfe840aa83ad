/* SPDX-License-Identifier: Apache-2.0 */
/* embla near: finds the rows nearest to the rows of tokens, or to vectors.
 *
 * All queries are read and checked before the table is searched. One pass over the table answers up
 * to QUERIES queries, so a long list needs little more memory than a short one.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/answers.h"
#include "core/line_input.h"
#include "core/verbs.h"
#include "host/host.h"

enum {
    QUERIES = 1024, /* maximum of one pass */
    QUERY_BYTES = 64 << 20,
    EXCLUDED = 1000 /* maximum of --exclude */
};

typedef struct {
    cli_asked asked;
    cli_rank rank;
    cli_tokens tokens;
    int64_t *rows;       /* the row of each token */
    cli_tokens excluded; /* --exclude */
    int64_t *excluded_rows;
    float *vectors; /* from --vector; NULL means that the queries are tokens */
    size_t count;   /* number of queries */
    size_t printed; /* answers before these queries */
    size_t dim, room;
    embla_near_options options;
    bool self;
    cli_json json;
} job;

/* ---- vectors ---- */

/* Parses dim finite numbers, separated by commas or white space. */
static int read_vector(const char *text, size_t dim, const char *where, float *out)
{
    static const char gaps[] = " \t\r\n,";
    size_t count = 0;
    for (text += strspn(text, gaps); *text; text += strspn(text, gaps)) {
        size_t length = strcspn(text, gaps);
        char *end;
        double value = strtod(text, &end);
        if (end != text + length || !isfinite((float)value))
            return cli_usage("%s: '%.*s' is not a finite number such as -0.25", where,
                             (int)(length < 60 ? length : 60), text);
        if (count < dim) out[count] = (float)value;
        count++;
        text += length;
    }
    if (count != dim) return cli_usage("%s has %zu numbers, but a row has %zu", where, count, dim);
    return CLI_DONE;
}

/* Appends a vector. NULL if there is no memory. */
static float *next_vector(job *j)
{
    if (j->count == j->room) {
        size_t room = j->room > 0 ? 2 * j->room : 1, bytes;
        if (__builtin_mul_overflow(room, j->dim * sizeof(float), &bytes)) return NULL;
        float *vectors = realloc(j->vectors, bytes);
        if (!vectors) return NULL;
        j->vectors = vectors;
        j->room = room;
    }
    return j->vectors + j->count++ * j->dim;
}

static int add_vector(job *j, const char *text, const char *where)
{
    float *vector = next_vector(j);
    if (!vector) return cli_failed("no memory for vector %zu", j->count + 1);
    return read_vector(text, j->dim, where, vector);
}

static int read_vectors(job *j)
{
    cli_lines lines = {0};
    char *line, where[CLI_CELL];
    size_t length;
    int code = CLI_DONE;
    cli_line_status status = CLI_LINE;
    while (code == CLI_DONE &&
           (status = cli_lines_next(&lines, true, &line, &length)) == CLI_LINE) {
        snprintf(where, sizeof where, "standard input, line %zu", lines.number);
        if (strlen(line) != length)
            code = cli_usage("%s: '%.60s' is followed by a zero byte", where, line);
        else
            code = add_vector(j, line, where);
    }
    cli_lines_free(&lines);
    return status == CLI_LINE_FAILED ? CLI_FAILED : code;
}

/* ---- queries ---- */

static int read_input(const cli_args *args, job *j)
{
    const char *vector = cli_args_text(args, "vector");
    int code = CLI_DONE;
    if (vector) {
        code = strcmp(vector, "-") == 0 ? read_vectors(j) : add_vector(j, vector, "--vector");
    } else {
        code = cli_asked_tokens(args, &j->asked, &j->tokens);
        if (code == CLI_DONE) code = cli_asked_rows(&j->asked, &j->tokens, &j->rows);
        j->count = j->tokens.count;
    }
    if (code == CLI_DONE && j->count == 0)
        code = cli_usage("standard input is empty: near needs a token or a vector");
    return code;
}

/* A cosine needs a direction, which a vector of zeros does not have. */
static int check_direction(const job *j, size_t n, const float *vector)
{
    char word[CLI_WORD_TEXT];
    size_t i = 0;
    while (i < j->dim && vector[i] == 0) i++;
    if (i < j->dim || j->options.measure != EMBLA_MEASURE_COSINE) return CLI_DONE;
    if (j->vectors)
        return cli_failed("vector %zu is zero, so it has no direction and no cosine; use "
                          "--measure dot or euclidean",
                          n + 1);
    (void)cli_token_show(&j->asked, j->tokens.ids[n], true, CLI_WORD_COLUMNS, word);
    return cli_failed("the row of token %" PRId64 " (%s) is zero, so it has no direction and no "
                      "cosine; use --measure dot or euclidean",
                      j->tokens.ids[n], word);
}

/* Copies the vectors of queries at .. at + count - 1 to out. */
static int read_queries(const job *j, size_t at, size_t count, float *out)
{
    int code = CLI_DONE;
    if (j->vectors) {
        memcpy(out, j->vectors + at * j->dim, count * j->dim * sizeof *out);
        for (size_t i = 0; i < count && code == CLI_DONE; i++)
            code = check_direction(j, at + i, out + i * j->dim);
        return code;
    }
    code =
        cli_asked_vectors(&j->asked, j->tokens.ids + at, j->rows + at, count, j->rank.threads, out);
    for (size_t i = 0; i < count && code == CLI_DONE; i++)
        code = check_direction(j, at + i, out + i * j->dim);
    for (size_t i = 0; i < count && code == CLI_DONE; i++)
        code = cli_asked_check_row(&j->asked, j->tokens.ids[at + i], out + i * j->dim,
                                   "has no neighbours");
    return code;
}

/* ---- answers ---- */

static void print_heading(const job *j, size_t n)
{
    char word[CLI_WORD_TEXT], rows[CLI_CELL];
    if (j->vectors)
        snprintf(word, sizeof word, "vector %zu", j->printed + n + 1);
    else
        (void)cli_token_show(&j->asked, j->tokens.ids[n], !j->rank.utf8, CLI_WORD_COLUMNS, word);
    printf("%s%s", j->printed + n > 0 ? "\n" : "", word);
    if (!j->vectors && j->rows[n] < 0)
        fputs(j->tokens.whole ? ", a text" : ", not in the vocabulary", stdout);
    else if (!j->vectors && j->asked.vocab)
        printf(", token %" PRId64, j->tokens.ids[n]);
    printf(": %s among %s\n\n", embla_measure_name(j->options.measure),
           cli_plural(j->rank.rows, "row", rows));
}

static void print_json(job *j, size_t n, const embla_neighbour *found)
{
    cli_json_open(&j->json, NULL, '{');
    if (j->vectors) {
        cli_json_whole(&j->json, "vector", (int64_t)n + 1);
    } else {
        cli_token_json(&j->asked, j->tokens.ids[n], &j->json);
        if (j->rows[n] >= 0) {
            cli_json_whole(&j->json, "id", j->tokens.ids[n]);
            cli_json_whole(&j->json, "row", j->rows[n]);
        } else {
            cli_json_text(&j->json, "id", NULL);
            cli_json_text(&j->json, "row", NULL);
        }
    }
    cli_rank_json(&j->rank, found, &j->json);
    cli_json_close(&j->json, '}');
}

/* Cosine bars have the same scale in every list; other measures have no maximum. */
static void print_answer(job *j, size_t n, const embla_neighbour *found)
{
    if (j->rank.form == CLI_RANK_JSON) {
        print_json(j, n, found);
        return;
    }
    if (j->rank.form == CLI_RANK_TABLE)
        print_heading(j, n);
    else if (j->printed + n > 0)
        putchar('\n');
    cli_rank_print(&j->rank, found, j->options.measure == EMBLA_MEASURE_COSINE ? 1 : 0);
}

typedef struct {
    float *queries;
    int64_t *exclude; /* for each query its own row, then the rows of --exclude */
    embla_neighbour *found;
    size_t most;
} buffers;

static int search(job *j, const buffers *b, embla_near_report *report)
{
    embla_near_options options = j->options;
    options.k = j->rank.top;
    int code = CLI_DONE;
    for (size_t at = 0; at < j->count && code == CLI_DONE; at += b->most) {
        size_t count = j->count - at < b->most ? j->count - at : b->most;
        code = read_queries(j, at, count, b->queries);
        if (code != CLI_DONE) return code;
        for (size_t i = 0; i < count; i++) {
            int64_t *rows = b->exclude + i * (1 + j->excluded.count);
            rows[0] = j->rows && !j->self ? j->rows[at + i] : -1;
            for (size_t n = 0; n < j->excluded.count; n++) rows[1 + n] = j->excluded_rows[n];
        }
        options.exclude = b->exclude;
        options.exclude_count = 1 + j->excluded.count;
        if (embla_near(j->asked.table, b->queries, count, &options, b->found, report) != EMBLA_OK)
            return cli_failed("%s", embla_error());
        for (size_t i = 0; i < count; i++) print_answer(j, at + i, b->found + i * j->rank.top);
    }
    return code;
}

static int search_all(job *j, embla_near_report *report)
{
    size_t each = j->dim * sizeof(float) + j->rank.top * sizeof(embla_neighbour);
    buffers b = {.most = each < QUERY_BYTES / QUERIES ? QUERIES : QUERY_BYTES / each + 1};
    if (b.most > j->count) b.most = j->count;
    b.queries = malloc(b.most * j->dim * sizeof *b.queries);
    b.exclude = calloc(b.most * (1 + j->excluded.count), sizeof *b.exclude);
    b.found = calloc(b.most * j->rank.top, sizeof *b.found);
    int code = b.queries && b.exclude && b.found ? search(j, &b, report)
                                                 : cli_failed("no memory for %zu answers", b.most);
    free(b.queries);
    free(b.exclude);
    free(b.found);
    return code;
}

static int print_answers(job *j)
{
    embla_near_report report = {0};
    bool json = j->rank.form == CLI_RANK_JSON;
    if (json) {
        cli_json_open(&j->json, NULL, '{');
        cli_json_text(&j->json, "measure", embla_measure_name(j->options.measure));
        cli_json_open(&j->json, "queries", '[');
    }
    int code = search_all(j, &report);
    if (json) { /* after a failure too: the answers before it are complete */
        cli_json_close(&j->json, ']');
        cli_json_whole(&j->json, "rows", j->rank.rows);
        cli_json_whole(&j->json, "nonfinite", report.nonfinite);
        cli_json_close(&j->json, '}');
        putchar('\n');
    }
    if (code == CLI_DONE) cli_rank_report(&j->rank, &report);
    return code;
}

/* ---- answers to lines as they arrive ---- */

/* Adds the lines that have arrived, at least one. *more is false when the input has ended. */
static int read_batch(job *j, cli_lines *lines, bool *more)
{
    int code = CLI_DONE;
    *more = true;
    while (code == CLI_DONE && j->tokens.count < QUERIES) {
        char *line;
        size_t length;
        cli_line_status status = cli_lines_next(lines, j->tokens.count == 0, &line, &length);
        if (status == CLI_LINE_LATER) break;
        *more = status == CLI_LINE;
        if (!*more) return status == CLI_LINE_NONE ? CLI_DONE : CLI_FAILED;
        code = cli_tokens_line(&j->tokens, j->asked.vocab, false, line, length, lines);
        if (j->tokens.missing > 0) break; /* answer before this one is reported */
    }
    return code;
}

/* Answers a batch. A word that is missing is noted after the answers before it. */
static int answer_batch(job *j, embla_near_report *report)
{
    int code = cli_asked_rows(&j->asked, &j->tokens, &j->rows);
    j->count = j->tokens.count;
    if (code == CLI_DONE && j->count > 0) code = search_all(j, report);
    j->printed += j->count;
    (void)fflush(stdout);
    if (code == CLI_DONE) cli_tokens_skip(&j->tokens, j->asked.vocab);
    free(j->rows);
    j->rows = NULL;
    cli_tokens_free(&j->tokens);
    return code;
}

/* Answers each line before the next is needed. On a terminal a mistake does not end it. */
static int answer_lines(job *j)
{
    cli_lines lines = {0};
    embla_near_report report = {0};
    bool talks = cli_is_terminal(CLI_STDIN), more = true;
    int code = CLI_DONE;
    while (more && code == CLI_DONE) {
        if (talks) fputs("token> ", stderr);
        int read = read_batch(j, &lines, &more);
        code = answer_batch(j, &report); /* lines before a wrong one are answered */
        if (code == CLI_DONE) code = read;
        if (talks && more) code = CLI_DONE;
    }
    if (talks) fputc('\n', stderr);
    if (code == CLI_DONE && j->printed == 0 && lines.number > 0 && !talks)
        code = CLI_FAILED; /* all words are unknown, and were noted */
    else if (code == CLI_DONE && j->printed == 0 && !talks)
        code = cli_usage("standard input is empty: near needs a token or a vector");
    cli_lines_free(&lines);
    if (code == CLI_DONE) cli_rank_report(&j->rank, &report);
    return code;
}

/* ---- the verb ---- */

/* Whether the only token is '-' and answers can be printed one after the other. */
static bool is_stream(const cli_args *args, const job *j)
{
    return args->operand_count == 2 && strcmp(args->operands[1], "-") == 0 &&
           j->rank.form != CLI_RANK_JSON;
}

static const char *measure_name(size_t n)
{
    return embla_measure_name((embla_measure)n);
}

/* Reads --exclude: rows that are in no list. */
static int read_excluded(const cli_args *args, job *j)
{
    const char *list = cli_args_text(args, "exclude");
    if (!list) return CLI_DONE;
    int code = cli_tokens_words(&j->excluded, j->asked.vocab, list, "--exclude");
    if (code == CLI_DONE) code = cli_tokens_finish(&j->excluded, j->asked.vocab);
    if (code == CLI_DONE && j->excluded.count > EXCLUDED)
        code = cli_usage("--exclude has %zu tokens; the maximum is %d", j->excluded.count,
                         (int)EXCLUDED);
    return code == CLI_DONE ? cli_asked_rows(&j->asked, &j->excluded, &j->excluded_rows) : code;
}

static int set_up(const cli_args *args, job *j)
{
    int code = cli_asked_open(args, args->operands[0], &j->asked);
    if (code == CLI_DONE) {
        cli_asked_allow_unseen(&j->asked, &j->tokens);
        code = cli_asked_allow_text(args, true, &j->asked, &j->tokens);
    }
    if (code == CLI_DONE) code = cli_rank_set_up(args, true, &j->asked, &j->rank);
    if (code != CLI_DONE) return code;
    j->dim = embla_table_dim(j->asked.table);
    j->self = cli_args_flag(args, "self");
    j->options = (embla_near_options){.rows = j->rank.rows, .threads = j->rank.threads};
    while (strcmp(embla_measure_name(j->options.measure), cli_args_text(args, "measure")) != 0)
        j->options.measure++;
    code = read_excluded(args, j);
    if (code == CLI_DONE && !is_stream(args, j)) code = read_input(args, j);
    return code == CLI_DONE ? cli_asked_find_tokens(&j->asked) : code;
}

static int run(const cli_args *args)
{
    job j = {0};
    bool vector = cli_args_given(args, "vector"), words = args->operand_count > 1;
    if (!vector && !words)
        return cli_usage("near needs a TOKEN, or --vector; '-' reads tokens from standard input");
    if (vector && words)
        return cli_usage("--vector cannot be used with the token '%.60s'", args->operands[1]);
    int code = set_up(args, &j);
    if (code == CLI_DONE) code = is_stream(args, &j) ? answer_lines(&j) : print_answers(&j);
    free(j.rows);
    free(j.excluded_rows);
    free(j.vectors);
    cli_tokens_free(&j.excluded);
    cli_tokens_free(&j.tokens);
    cli_asked_free(&j.asked);
    return code;
}

static const cli_option options[] = {
    CLI_RANK_OPTIONS,
    {.name = "measure",
     .value = "MEASURE",
     .standard = "cosine",
     .choices = measure_name,
     .help = "similarity or distance"},
    {.name = "self", .help = "include the token's own row in the results"},
    {.name = "exclude",
     .value = "LIST",
     .reads = CLI_READS_LINES,
     .help = "leave out these tokens: words or #5, separated by commas, or @FILE or - with one "
             "on each line"},
    {.name = "vector",
     .value = "NUMBERS",
     .reads = CLI_READS_LINES,
     .help = "search for a vector, 0.5,-1,..; - reads one per line from standard input"},
    CLI_TOKENIZER_OPTION,
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_near = {
    .name = "near",
    .synopsis = "FILE [TOKEN]...",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = CLI_OPERANDS_MOST,
    .files = 1,
    .about = "find the rows nearest to those of tokens",
    .text =
        "FILE is a checkpoint as for 'embla info'. TOKEN is a word or '#5' as for 'embla "
        "lookup'; - reads one token per line from standard input and answers each line as it "
        "arrives. An unknown word is skipped with a note, and the exit code is 3; it is 1 if no "
        "word is known. Each token gets its own list, the nearest row first; ties are in row "
        "order. "
        "What is no word is text for the tokenizer of the model: if it has several tokens, the "
        "rows nearest to its vector are found, which is that of 'embla encode'. "
        "Every row of the table is "
        "compared, in the dtype in which it is stored, so the result is exact. Rows with a NaN "
        "or an infinity are skipped, and their number is reported.\n\n"
        "The measures:\n- cosine of the angle, larger is nearer; a row of zeros has 0;\n- dot, the "
        "sum of products, larger is nearer;\n- euclidean, the distance, smaller is nearer.\n\n"
        "The text format has one line per row: rank, token, id and score, separated by tabs, "
        "with an empty line between lists. Backslashes and invisible characters in words are "
        "escaped (\\n, \\x1b). A row without a word is printed as #5. If several tokens share "
        "a row, the first of them is printed.",
    .example = "embla near words.vec cat --top 5",
    .options = options,
    .run = run};
