/* SPDX-License-Identifier: Apache-2.0 */
/* embla analogy: king - man + woman.
 *
 * Signs and words are operands of their own. A sign stands before each word but the first,
 * which may have one; anything else is an error, because a word that was meant as a sign, or
 * a sign as a word, would give an answer that looks like one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/answers.h"
#include "core/verbs.h"

typedef struct {
    cli_asked asked;
    cli_rank rank;
    cli_tokens tokens;
    bool minus[CLI_OPERANDS_MOST]; /* of each token: its sign */
    int64_t *rows;                 /* of each token */
    embla_analogy_options options;
} job;

/* ---- the question ---- */

static bool is_sign(const char *word)
{
    return strcmp(word, "+") == 0 || strcmp(word, "-") == 0;
}

/* All in one operand is a word that no vocabulary has. */
static int check_quotes(const cli_args *args)
{
    const char *word = args->operands[1];
    if (args->operand_count == 2 && (strstr(word, " - ") || strstr(word, " + ")))
        return cli_usage("'%.60s' is one operand: write words and signs as operands of their "
                         "own, without quotes around all of them",
                         word);
    return CLI_DONE;
}

/* Signs stand where they should; the tokens' signs are known. */
static int read_signs(const cli_args *args, job *j)
{
    size_t words = 0;
    bool due = true, minus = false; /* due: a word comes next */
    for (size_t i = 1; i < args->operand_count; i++) {
        const char *word = args->operands[i];
        bool sign = is_sign(word);
        if (sign && due && i > 1)
            return cli_usage("after '%s' a token is due, not '%s'; write '\\%s' for the word %s",
                             args->operands[i - 1], word, word, word);
        if (!sign && !due)
            return cli_usage("between '%.60s' and '%.60s' a + or - is due", args->operands[i - 1],
                             word);
        if (sign)
            minus = word[0] == '-';
        else
            j->minus[words++] = minus;
        due = sign;
    }
    if (due)
        return cli_usage("after '%s' a token is due, and nothing comes",
                         args->operands[args->operand_count - 1]);
    return check_quotes(args);
}

static int read_words(const cli_args *args, job *j)
{
    int code = CLI_DONE;
    for (size_t i = 1; i < args->operand_count && code == CLI_DONE; i++) {
        const char *word = args->operands[i];
        if (!is_sign(word)) code = cli_tokens_word(&j->tokens, j->asked.vocab, word, strlen(word));
    }
    return code == CLI_DONE ? cli_tokens_finish(&j->tokens, j->asked.vocab) : code;
}

/* ---- the answer ---- */

static const char *kind_name(const job *j)
{
    return j->options.kind == EMBLA_ANALOGY_COS_MUL ? "3CosMul" : "3CosAdd";
}

/* As it was understood. */
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

static void print_json(const job *j, const embla_neighbour *found, const embla_near_report *report)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "kind", kind_name(j));
    print_side(j, false, &json);
    print_side(j, true, &json);
    cli_rank_json(&j->rank, found, &json);
    cli_json_whole(&json, "rows", j->rank.rows);
    cli_json_whole(&json, "nonfinite", report->nonfinite);
    cli_json_close(&json, '}');
    putchar('\n');
}

static void print_answer(const job *j, const embla_neighbour *found,
                         const embla_near_report *report)
{
    if (j->rank.form == CLI_RANK_JSON) {
        print_json(j, found, report);
        return;
    }
    if (j->rank.form == CLI_RANK_TABLE) print_question(j);
    cli_rank_print(&j->rank, found, j->options.kind == EMBLA_ANALOGY_COS_ADD ? 1 : 0);
    cli_rank_report(&j->rank, report);
}

static int answer(const job *j)
{
    int64_t plus[CLI_OPERANDS_MOST], minus[CLI_OPERANDS_MOST];
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
    if (embla_analogy(j->asked.table, plus, more, minus, less, j->rank.top, &j->options, found,
                      &report) != EMBLA_OK)
        code = cli_failed("%s", embla_error());
    else
        print_answer(j, found, &report);
    free(found);
    return code;
}

/* ---- the verb ---- */

static int set_up(const cli_args *args, job *j)
{
    int code = cli_asked_open(args, args->operands[0], &j->asked);
    if (code == CLI_DONE) code = cli_rank_set_up(args, &j->asked, &j->rank);
    if (code == CLI_DONE) code = read_words(args, j);
    if (code == CLI_DONE) code = cli_asked_rows(&j->asked, &j->tokens, &j->rows);
    j->options = (embla_analogy_options){
        .rows = j->rank.rows,
        .threads = j->rank.threads,
        .keep_words = cli_args_flag(args, "keep-words"),
        .kind = cli_args_flag(args, "multiply") ? EMBLA_ANALOGY_COS_MUL : EMBLA_ANALOGY_COS_ADD};
    return code == CLI_DONE ? cli_asked_find_tokens(&j->asked) : code;
}

static int run(const cli_args *args)
{
    job j = {0};
    if (args->operand_count < 2) return cli_usage("analogy needs tokens, like king - man + woman");
    int code = read_signs(args, &j);
    if (code == CLI_DONE) code = set_up(args, &j);
    if (code == CLI_DONE) code = answer(&j);
    free(j.rows);
    cli_tokens_free(&j.tokens);
    cli_asked_free(&j.asked);
    return code;
}

static const cli_option options[] = {
    CLI_RANK_OPTIONS,
    {.name = "multiply", .help = "3CosMul: cosines are multiplied, not added"},
    {.name = "keep-words", .help = "tokens of the question may be answers"},
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_analogy = {
    .name = "analogy",
    .synopsis = "FILE TOKEN [+|- TOKEN]...",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = CLI_OPERANDS_MOST,
    .about = "what king - man + woman comes to",
    .text =
        "FILE is a checkpoint as 'embla info' takes it, TOKEN a word or '#5' as 'embla lookup' "
        "takes it. + and - are operands of their own, with spaces around them; '\\-' is the "
        "word -, '\\-x' a word that begins with one.\n\n"
        "Rows are brought to length 1, added and subtracted, and the rows nearest to the sum "
        "by cosine are the answer (3CosAdd). With --multiply (3CosMul) the score is the "
        "product of (1 + cosine) / 2 with each token that is added, over the product of the "
        "same with each that is subtracted: no single word can outweigh the others. Tokens of "
        "the question are no answers unless --keep-words says so.\n\n"
        "text is one line for each row: rank, token, id and score, tabs between them, as 'embla "
        "near' prints it.",
    .example = "embla analogy examples/quick-brown-fox.vec quick - slow + lazy --top 3",
    .options = options,
    .signs = true,
    .run = run};
