/* SPDX-License-Identifier: Apache-2.0 */
/* embla doesnt-match: finds the word that does not match the others.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/answers.h"
#include "core/verbs.h"

enum { LEAST = 3 }; /* of two words none is odd */

typedef struct {
    cli_asked asked;
    cli_rank rank;
    cli_tokens tokens;
    int64_t *rows;
    double *cosines;
    embla_neighbour *found; /* the row that matches least first */
} job;

static int worse_first(const void *a, const void *b)
{
    const embla_neighbour *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static int find_odd(job *j)
{
    const size_t count = j->tokens.count;
    size_t odd = 0;
    j->cosines = malloc(count * sizeof *j->cosines);
    j->found = calloc(count, sizeof *j->found);
    if (!j->cosines || !j->found) return cli_failed("no memory for %zu rows", count);
    if (embla_odd_row(j->asked.table, j->rows, count, j->cosines, &odd) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    for (size_t i = 0; i < count; i++)
        j->found[i] = (embla_neighbour){.row = j->rows[i], .score = j->cosines[i]};
    qsort(j->found, count, sizeof *j->found, worse_first);
    return CLI_DONE;
}

static void print_answer(const job *j)
{
    char word[CLI_WORD_TEXT];
    int64_t token = cli_asked_token(&j->asked, j->found[0].row, &(int64_t){0});
    if (j->rank.form == CLI_RANK_JSON) {
        cli_json json = {0};
        cli_json_open(&json, NULL, '{');
        cli_token_json(&j->asked, token, &json);
        cli_rank_json(&j->rank, j->found, &json);
        cli_json_close(&json, '}');
        putchar('\n');
        return;
    }
    if (j->rank.form == CLI_RANK_TABLE) {
        (void)cli_token_show(&j->asked, token, !j->rank.utf8, CLI_WORD_COLUMNS, word);
        printf("%s does not match; cosine with the mean of all %zu\n\n", word, j->tokens.count);
    }
    cli_rank_print(&j->rank, j->found, 1);
}

static int set_up(const cli_args *args, job *j)
{
    char count[CLI_CELL];
    int code = cli_asked_open(args, args->operands[0], &j->asked);
    if (code == CLI_DONE) code = cli_rank_set_up(args, false, &j->asked, &j->rank);
    j->tokens.split = true;
    j->tokens.least = LEAST;
    if (code == CLI_DONE) code = cli_asked_tokens(args, &j->asked, &j->tokens);
    if (code == CLI_DONE && j->tokens.count < LEAST)
        code = cli_usage("doesnt-match has %s; it needs at least %d",
                         cli_plural((int64_t)j->tokens.count, "token", count), (int)LEAST);
    if (code == CLI_DONE) code = cli_asked_rows(&j->asked, &j->tokens, &j->rows);
    if (j->rank.top > j->tokens.count) j->rank.top = j->tokens.count;
    return code == CLI_DONE ? cli_asked_find_tokens(&j->asked) : code;
}

static int run(const cli_args *args)
{
    job j = {0};
    int code = set_up(args, &j);
    if (code == CLI_DONE) code = find_odd(&j);
    if (code == CLI_DONE) print_answer(&j);
    free(j.rows);
    free(j.cosines);
    free(j.found);
    cli_tokens_free(&j.tokens);
    cli_asked_free(&j.asked);
    return code;
}

static const cli_option options[] = {
    CLI_RANK_TOP, CLI_RANK_FORMAT, CLI_OPEN_OPTIONS, {.name = NULL}};

const cli_verb cli_verb_doesnt_match = {
    .name = "doesnt-match",
    .synopsis = "FILE TOKEN TOKEN TOKEN...",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = CLI_OPERANDS_MOST,
    .files = 1,
    .about = "find the word that does not match the others",
    .text = "FILE is a checkpoint as for 'embla info'. TOKEN is a word or '#5' as for 'embla "
            "lookup'; - reads them from standard input, one on each line or all on one line. An "
            "unknown word is skipped with a note, and the exit code is 3, if three others are "
            "left.\n\n"
            "The rows of the tokens are divided by their norms and averaged. The first row of the "
            "output has the smallest cosine with that mean: its word does not match the others.\n\n"
            "The text format is that of 'embla near': rank, token, id and cosine, separated by "
            "tabs.",
    .example = "embla doesnt-match words.vec cat dog tuesday horse",
    .options = options,
    .run = run};
