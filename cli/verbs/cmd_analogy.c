/* SPDX-License-Identifier: Apache-2.0 */
/* embla analogy: solves king - man + woman.
 *
 * Signs and words are separate operands, or one operand with spaces. Every word except the first
 * needs a sign; the first may have one. Three words without signs are a question of word2vec: man
 * king woman is king - man + woman. Anything else is an error, because confusing a sign with a word
 * would give a plausible but wrong answer.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/answers.h"
#include "core/line_input.h"
#include "core/verbs.h"

enum { SIDE_MOST = 16 }; /* of embla_analogy: tokens that are added, and as many subtracted */

typedef struct {
    cli_asked asked;
    cli_rank rank;
    const char *parts[CLI_OPERANDS_MOST]; /* the question: words and signs */
    size_t part_count;
    char *split; /* memory of the parts, if one operand was split */
    cli_tokens tokens;
    bool minus[CLI_OPERANDS_MOST]; /* the sign of each token */
    int64_t *rows;                 /* the row of each token */
    embla_analogy_options options;
    size_t answered;
    bool quiet;
} job;

/* ---- the question ---- */

static bool is_sign(const char *word)
{
    return strcmp(word, "+") == 0 || strcmp(word, "-") == 0;
}

/* Splits a question in one operand, "king - man + woman", at its spaces. */
static int split_question(const char *text, job *j)
{
    j->split = strdup(text);
    if (!j->split) return cli_failed("no memory for '%.60s'", text);
    for (char *word = strtok(j->split, " "); word; word = strtok(NULL, " ")) {
        if (j->part_count == CLI_OPERANDS_MOST)
            return cli_usage("the question has more than %d words and signs", CLI_OPERANDS_MOST);
        j->parts[j->part_count++] = word;
    }
    return CLI_DONE;
}

/* Gives three words without signs the signs of word2vec. */
static void add_signs(job *j)
{
    const char *const *words = j->parts;
    if (j->part_count != 3 || is_sign(words[0]) || is_sign(words[1]) || is_sign(words[2])) return;
    const char *const question[] = {words[1], "-", words[0], "+", words[2]};
    if (!j->quiet) cli_complain("note: the question is %s - %s + %s", words[1], words[0], words[2]);
    memcpy(j->parts, question, sizeof question);
    j->part_count = 5;
}

static int read_question(const cli_args *args, job *j)
{
    const char *const *words = args->operands + 1;
    size_t count = args->operand_count - 1;
    if (count == 1 && (strstr(words[0], " - ") || strstr(words[0], " + ")))
        return split_question(words[0], j);
    for (size_t i = 0; i < count; i++) j->parts[j->part_count++] = words[i];
    add_signs(j);
    return CLI_DONE;
}

/* Checks the order of signs and words, and stores the sign of each token. */
static int read_signs(job *j)
{
    size_t words = 0;
    bool due = true, minus = false; /* due: the next part must be a word */
    for (size_t i = 0; i < j->part_count; i++) {
        const char *word = j->parts[i];
        bool sign = is_sign(word);
        if (sign && due && i > 0)
            return cli_usage("expected a token after '%s', not '%s'; write '\\%s' for the word %s",
                             j->parts[i - 1], word, word, word);
        if (!sign && !due)
            return cli_usage("expected + or - between '%.60s' and '%.60s'", j->parts[i - 1], word);
        if (sign)
            minus = word[0] == '-';
        else
            j->minus[words++] = minus;
        due = sign;
    }
    if (due) return cli_usage("expected a token after '%s'", j->parts[j->part_count - 1]);
    size_t less = 0;
    for (size_t i = 0; i < words; i++) less += j->minus[i];
    if (words - less > SIDE_MOST || less > SIDE_MOST)
        return cli_usage(
            "the question adds %zu tokens and subtracts %zu; the maximum is %d of each",
            words - less, less, (int)SIDE_MOST);
    return CLI_DONE;
}

/* Whether a question was typed without spaces: king-man+woman. */
static bool is_glued(const job *j)
{
    const char *word = j->parts[0];
    int32_t token;
    return j->part_count == 1 && strpbrk(word, "+-") && j->asked.vocab &&
           embla_vocab_find(j->asked.vocab, word, strlen(word), &token) != EMBLA_OK;
}

static int read_words(job *j)
{
    int code = CLI_DONE;
    if (is_glued(j))
        return cli_usage("'%.60s' is one word; write spaces around + and -, as in king - man + "
                         "woman",
                         j->parts[0]);
    for (size_t i = 0; i < j->part_count && code == CLI_DONE; i++) {
        const char *word = j->parts[i];
        if (!is_sign(word)) code = cli_tokens_word(&j->tokens, j->asked.vocab, word, strlen(word));
    }
    return code;
}

/* ---- the answer ---- */

static const char *kind_name(const job *j)
{
    return j->options.kind == EMBLA_ANALOGY_COS_MUL ? "3CosMul" : "3CosAdd";
}

/* Prints the question as it was parsed. */
static void print_question(const job *j)
{
    char word[CLI_WORD_TEXT], rows[CLI_CELL];
    for (size_t i = 0; i < j->tokens.count; i++) {
        (void)cli_token_show(&j->asked, j->tokens.ids[i], !j->rank.utf8, CLI_WORD_COLUMNS, word);
        printf("%s%s%s%s", i > 0 ? " " : "",
               j->minus[i] ? "-"
               : i > 0     ? "+"
                           : "",
               i > 0 || j->minus[i] ? " " : "", word);
    }
    printf(": %s among %s\n\n", kind_name(j), cli_plural(j->rank.rows, "row", rows));
}

/* ---- the control ---- */

/* What the first added token alone gives: its nearest row, and its cosine with the answer. They
 * show what the arrow has done. Words of the question do not count as the nearest row, unless they
 * may be answers. */
typedef struct {
    int64_t of;            /* the token */
    embla_neighbour found; /* its nearest row */
    double answer;         /* its cosine with the first answer */
    bool is;               /* there is one: the question has more than one word */
} control;

static bool is_asked(const job *j, int64_t row)
{
    for (size_t i = 0; i < j->tokens.count; i++)
        if (j->rows[i] == row) return true;
    return false;
}

/* Finds the cosine of two rows. */
static bool find_cosine(const job *j, int64_t a, int64_t b, double *out)
{
    const int64_t rows[] = {a, b};
    const size_t dim = embla_table_dim(j->asked.table);
    float *vectors = calloc(2 * dim, sizeof *vectors);
    bool good = vectors &&
                cli_asked_vectors(&j->asked, rows, rows, 2, j->rank.threads, vectors) == CLI_DONE;
    if (good) *out = embla_cosine(vectors, vectors + dim, dim);
    free(vectors);
    return good;
}

static control find_control(const job *j, int64_t answer)
{
    enum { MOST = 2 * SIDE_MOST + 1 };
    embla_neighbour near[MOST];
    control c = {0};
    size_t first = 0, k = j->tokens.count + 1;
    while (first < j->tokens.count && j->minus[first]) first++;
    if (first == j->tokens.count || j->tokens.count < 2 || j->rank.form == CLI_RANK_TEXT ||
        answer < 0 || !find_cosine(j, j->rows[first], answer, &c.answer))
        return c;
    if ((int64_t)k > j->rank.rows) k = (size_t)j->rank.rows;
    const embla_analogy_options options = {
        .k = k, .rows = j->options.rows, .threads = j->options.threads};
    const embla_analogy_question question = {.plus = &j->rows[first], .plus_count = 1};
    if (embla_analogy(j->asked.table, &question, &options, near, NULL) != EMBLA_OK)
        return c; /* a row of zeros has no nearest row */
    c.of = j->tokens.ids[first];
    for (size_t i = 0; i < k && near[i].row >= 0 && !c.is; i++) {
        c.found = near[i];
        c.is = j->options.keep_words || !is_asked(j, near[i].row);
    }
    return c;
}

/* The word of a row. */
static const char *row_word(const job *j, int64_t row, char text[CLI_WORD_TEXT])
{
    int64_t sharing;
    const int64_t token = cli_asked_token(&j->asked, row, &sharing);
    (void)cli_token_show(&j->asked, token, !j->rank.utf8, CLI_WORD_COLUMNS, text);
    return text;
}

static void print_control(const job *j, const control *c, const embla_neighbour *found)
{
    char of[CLI_WORD_TEXT], answer[CLI_WORD_TEXT], near[CLI_WORD_TEXT];
    if (!c->is || j->rank.quiet) return;
    (void)cli_token_show(&j->asked, c->of, !j->rank.utf8, CLI_WORD_COLUMNS, of);
    putchar('\n');
    if (found[0].row == c->found.row)
        cli_out_fact("control", "%s alone: its nearest row is %s, too (cosine %.4f)", of,
                     row_word(j, found[0].row, answer), c->answer);
    else
        cli_out_fact("control", "%s alone: cosine %.4f with %s; its nearest row is %s (%.4f)", of,
                     c->answer, row_word(j, found[0].row, answer), row_word(j, c->found.row, near),
                     c->found.score);
}

static void json_control(const job *j, const control *c, cli_json *json)
{
    int64_t sharing;
    if (!c->is) {
        cli_json_text(json, "control", NULL);
        return;
    }
    const int64_t token = cli_asked_token(&j->asked, c->found.row, &sharing);
    cli_json_open(json, "control", '{');
    cli_json_whole(json, "of", c->of);
    cli_json_real(json, "cosine", c->answer);
    cli_json_open(json, "nearest", '{');
    cli_token_json(&j->asked, token, json);
    cli_json_whole(json, "id", token);
    cli_json_whole(json, "row", c->found.row);
    cli_json_real(json, "score", c->found.score);
    cli_json_close(json, '}');
    cli_json_close(json, '}');
}

/* ---- output ---- */

static void print_side(const job *j, bool minus, cli_json *json)
{
    cli_json_open(json, minus ? "minus" : "plus", '[');
    for (size_t i = 0; i < j->tokens.count; i++) {
        if (j->minus[i] != minus) continue;
        cli_json_open(json, NULL, '{');
        cli_token_json(&j->asked, j->tokens.ids[i], json);
        cli_json_whole(json, "id", j->tokens.ids[i]);
        cli_json_whole(json, "row", j->rows[i]);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void print_json(const job *j, const embla_neighbour *found, const control *c,
                       const embla_near_report *report)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "kind", kind_name(j));
    print_side(j, false, &json);
    print_side(j, true, &json);
    cli_rank_json(&j->rank, found, &json);
    json_control(j, c, &json);
    cli_json_whole(&json, "rows", j->rank.rows);
    cli_json_whole(&json, "nonfinite", report->nonfinite);
    cli_json_close(&json, '}');
    putchar('\n');
}

static void print_answer(const job *j, const embla_neighbour *found, const control *c,
                         const embla_near_report *report)
{
    if (j->rank.form == CLI_RANK_JSON) {
        print_json(j, found, c, report);
        return;
    }
    if (j->rank.form == CLI_RANK_TABLE) print_question(j);
    cli_rank_print(&j->rank, found, j->options.kind == EMBLA_ANALOGY_COS_ADD ? 1 : 0);
    if (j->rank.form == CLI_RANK_TABLE) print_control(j, c, found);
    cli_rank_report(&j->rank, report);
}

static int solve(const job *j)
{
    int64_t plus[SIDE_MOST], minus[SIDE_MOST];
    size_t more = 0, less = 0;
    embla_near_report report = {0};
    int code = CLI_DONE;
    embla_neighbour *found = calloc(j->rank.top, sizeof *found);
    if (!found) return cli_failed("no memory for %zu rows", j->rank.top);
    for (size_t i = 0; i < j->tokens.count; i++) {
        if (j->minus[i])
            minus[less++] = j->rows[i];
        else
            plus[more++] = j->rows[i];
    }
    const embla_analogy_question question = {
        .plus = plus, .plus_count = more, .minus = minus, .minus_count = less};
    if (embla_analogy(j->asked.table, &question, &j->options, found, &report) != EMBLA_OK)
        code = cli_failed("%s", embla_error());
    if (code == CLI_DONE) {
        const control c = find_control(j, found[0].row);
        print_answer(j, found, &c, &report);
    }
    free(found);
    return code;
}

/* ---- questions ---- */

static int ask(job *j)
{
    int code = cli_asked_rows(&j->asked, &j->tokens, &j->rows);
    if (code == CLI_DONE && j->answered > 0 && j->rank.form != CLI_RANK_JSON) putchar('\n');
    if (code == CLI_DONE) code = solve(j);
    j->answered++;
    return code;
}

static void forget_question(job *j)
{
    free(j->rows);
    free(j->split);
    cli_tokens_free(&j->tokens);
    j->rows = NULL;
    j->split = NULL;
    j->part_count = 0;
}

/* Asks the question of a line. A question with an unknown word is skipped. */
static int ask_line(job *j, const char *line)
{
    int code = split_question(line, j);
    if (code == CLI_DONE) add_signs(j);
    if (code == CLI_DONE && j->part_count > 0) code = read_signs(j);
    if (code == CLI_DONE) code = read_words(j);
    if (code != CLI_DONE || j->part_count == 0) return code;
    if (j->tokens.missing == 0) return ask(j);
    cli_tokens_skip(&j->tokens, j->asked.vocab);
    return CLI_DONE;
}

static int ask_lines(job *j)
{
    cli_lines lines = {0};
    char *line;
    size_t length;
    int code = CLI_DONE;
    cli_line_status status = CLI_LINE;
    while (code == CLI_DONE &&
           (status = cli_lines_next(&lines, true, &line, &length)) == CLI_LINE) {
        code = ask_line(j, line);
        (void)fflush(stdout);
        forget_question(j);
    }
    if (status == CLI_LINE_FAILED) code = CLI_FAILED;
    if (code == CLI_DONE && lines.number == 0)
        code = cli_usage("standard input is empty: analogy needs a question on each line");
    else if (code == CLI_DONE && j->answered == 0)
        code = CLI_FAILED; /* all questions have unknown words, which were noted */
    cli_lines_free(&lines);
    return code;
}

/* ---- the verb ---- */

static int set_up(const cli_args *args, job *j)
{
    int code = cli_asked_open(args, args->operands[0], &j->asked);
    if (code == CLI_DONE) code = cli_rank_set_up(args, true, &j->asked, &j->rank);
    j->options = (embla_analogy_options){
        .k = j->rank.top,
        .rows = j->rank.rows,
        .threads = j->rank.threads,
        .keep_words = cli_args_flag(args, "keep-words"),
        .kind = cli_args_flag(args, "multiply") ? EMBLA_ANALOGY_COS_MUL : EMBLA_ANALOGY_COS_ADD};
    return code;
}

static int run(const cli_args *args)
{
    job j = {.quiet = cli_args_flag(args, "quiet"), .tokens.strict = true};
    if (args->operand_count < 2)
        return cli_usage("analogy needs tokens, such as king - man + woman");
    bool lines = args->operand_count == 2 && strcmp(args->operands[1], "-") == 0;
    int code = lines ? CLI_DONE : read_question(args, &j);
    if (code == CLI_DONE && !lines) code = read_signs(&j);
    if (code == CLI_DONE) code = set_up(args, &j);
    if (code == CLI_DONE && !lines) code = read_words(&j);
    if (code == CLI_DONE && !lines) code = cli_tokens_finish(&j.tokens, j.asked.vocab);
    if (code == CLI_DONE) code = cli_asked_find_tokens(&j.asked);
    if (code == CLI_DONE) code = lines ? ask_lines(&j) : ask(&j);
    forget_question(&j);
    cli_asked_free(&j.asked);
    return code;
}

static const cli_option options[] = {
    CLI_RANK_OPTIONS,
    {.name = "multiply", .help = "multiply cosines instead of adding them (3CosMul)"},
    {.name = "keep-words", .help = "allow tokens of the question as answers"},
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_analogy = {
    .name = "analogy",
    .synopsis = "FILE TOKEN [+|- TOKEN]...",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = CLI_OPERANDS_MOST,
    .files = 1,
    .about = "solve analogies such as king - man + woman",
    .text =
        "FILE is a checkpoint as for 'embla info'. TOKEN is a word or '#5' as for 'embla lookup'. "
        "+ and - have spaces around them; the whole question may be one operand in quotes. Three "
        "tokens without signs, man king woman, mean king - man + woman. - alone reads one question "
        "on each line from standard input; "
        "a question with an unknown word is skipped with a note, and the exit code is 3. '\\-' is "
        "the word -, and "
        "'\\-x' is a word that begins with -.\n\n"
        "Rows are normalised to length 1, added and subtracted; the answers are the rows with the "
        "largest cosine with the sum (3CosAdd). With --multiply (3CosMul) the score is a ratio. "
        "Its numerator is the product of (1 + cosine) / 2 over the added tokens, its denominator "
        "the same over the subtracted tokens. So no single word can outweigh the others. Tokens of "
        "the question are excluded unless --keep-words is given.\n\n"
        "As a control, the format table and --json have the cosine of the first answer with the "
        "first added token alone, and the nearest row of that token. An answer that was as near "
        "before owes little to the arrow.\n\n"
        "The text format is that of 'embla near': rank, token, id and score, separated by tabs.",
    .example = "embla analogy words.vec king - man + woman --top 3",
    .options = options,
    .signs = true,
    .run = run};
