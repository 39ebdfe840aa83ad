/* SPDX-License-Identifier: Apache-2.0 */
/* embla eval: scores a table against human answers. Files of analogies are scored by section,
 * files of pairs by correlation. The first line of a file shows which kind it is.
 *
 * Numbers are printed before names, so a name may have any length. Each score is printed with its
 * coverage, without which it means nothing.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_lab.h"

#include "core/answers.h"
#include "core/inputs.h"
#include "core/progress.h"
#include "core/static_model.h"
#include "core/verbs.h"
#include "host/paths.h"
#include "verbs/eval_sentences.h"

typedef struct {
    char *path;
    embla_eval *eval;
    bool analogies;
} scored;

typedef struct {
    cli_asked asked;
    embla_eval_options options;
    cli_progress progress;
    char what[32]; /* name and size of the current file, for progress */
    int64_t file_bytes;
    scored *files;
    size_t count, room;
} job;

/* Sums over sections. */
typedef struct {
    int64_t asked, covered, correct;
} sums;

enum { SEMANTIC, SYNTACTIC, ALL, TOTALS };
static const char *const total_names[TOTALS] = {"semantic", "syntactic", "all"};

static void add_up(const embla_eval *eval, sums out[TOTALS])
{
    size_t count;
    const embla_eval_part *part = embla_eval_parts(eval, &count);
    memset(out, 0, TOTALS * sizeof *out);
    for (size_t n = 0; n < count; n++, part++) {
        for (int i = 0; i < TOTALS; i++) {
            if (i != ALL && (i == SYNTACTIC) != part->syntactic) continue;
            out[i].asked += part->asked;
            out[i].covered += part->covered;
            out[i].correct += part->correct;
        }
    }
}

static double share(const sums *s)
{
    return s->covered > 0 ? (double)s->correct / (double)s->covered : NAN;
}

/* ---- text ---- */

enum { SCORE = 8, COUNT = 9 }; /* columns: "-0.1234", "4,194,304" */

static void print_score(double score, const char *gap)
{
    char text[CLI_CELL] = "-";
    if (isfinite(score)) snprintf(text, sizeof text, "%.4f", score);
    printf("%s%*s", gap, SCORE, text);
}

static void print_count(int64_t count)
{
    char text[CLI_CELL];
    printf("  %*s", COUNT, cli_commas(count, text));
}

static void print_name(const char *name)
{
    fputs("  ", stdout);
    cli_out_safe(name);
    putchar('\n');
}

static void print_sums(const sums *s, const char *name)
{
    print_score(share(s), "");
    print_count(s->correct);
    print_count(s->covered);
    print_count(s->asked);
    print_name(name);
}

static void print_analogies(const scored *file)
{
    sums totals[TOTALS];
    add_up(file->eval, totals);
    printf("%*s  %*s  %*s  %*s", SCORE, "accuracy", COUNT, "correct", COUNT, "covered", COUNT,
           "asked");
    print_name(cli_path_title(file->path));
    size_t count;
    const embla_eval_part *part = embla_eval_parts(file->eval, &count);
    for (size_t n = 0; n < count; n++, part++) {
        sums s = {part->asked, part->covered, part->correct};
        print_sums(&s, part->name);
    }
    bool both = totals[SEMANTIC].asked > 0 && totals[SYNTACTIC].asked > 0;
    putchar('\n');
    for (int i = both ? SEMANTIC : ALL; i < TOTALS; i++) print_sums(&totals[i], total_names[i]);
}

static void print_pairs(const job *j)
{
    printf("%*s  %*s  %*s  %*s", SCORE, "spearman", SCORE, "pearson", COUNT, "covered", COUNT,
           "asked");
    print_name("pairs");
    for (size_t i = 0; i < j->count; i++) {
        if (j->files[i].analogies) continue;
        size_t count;
        const embla_eval_part *part = embla_eval_parts(j->files[i].eval, &count); /* one */
        print_score(part->spearman, "");
        print_score(part->pearson, "  ");
        print_count(part->covered);
        print_count(part->asked);
        print_name(cli_path_title(part->name));
    }
}

static void print_missing(const scored *file)
{
    size_t count;
    const embla_eval_missing *missing = embla_eval_missing_words(file->eval, &count);
    if (count == 0) return;
    printf("\n%*s", COUNT, "times");
    fputs("  words without a row: ", stdout);
    cli_out_safe(cli_path_title(file->path));
    putchar('\n');
    for (size_t n = 0; n < count; n++) {
        char text[CLI_CELL];
        printf("%*s", COUNT, cli_commas(missing[n].times, text));
        print_name(missing[n].word);
    }
}

/* Sums asked and covered over all files of one kind. */
static sums sum_files(const job *j, bool analogies)
{
    sums all = {0};
    for (size_t i = 0; i < j->count; i++) {
        sums totals[TOTALS];
        if (j->files[i].analogies != analogies) continue;
        add_up(j->files[i].eval, totals);
        all.asked += totals[ALL].asked;
        all.covered += totals[ALL].covered;
    }
    return all;
}

static void print_text(const cli_args *args, const job *j)
{
    sums questions = sum_files(j, true), pairs = sum_files(j, false);
    char left[2][CLI_CELL];
    bool first = true;
    for (size_t i = 0; i < j->count; i++) {
        if (!j->files[i].analogies) continue;
        if (!first) putchar('\n');
        print_analogies(&j->files[i]);
        first = false;
    }
    if (pairs.asked > 0 && !first) putchar('\n');
    if (pairs.asked > 0) print_pairs(j);
    if (cli_args_flag(args, "missing"))
        for (size_t i = 0; i < j->count; i++) print_missing(&j->files[i]);
    int64_t no_question = questions.asked - questions.covered;
    int64_t no_pair = pairs.asked - pairs.covered;
    if (no_question + no_pair == 0 || cli_args_flag(args, "quiet") ||
        cli_args_flag(args, "missing"))
        return;
    (void)cli_plural(no_question, "question", left[0]);
    (void)cli_plural(no_pair, "pair", left[1]);
    putchar('\n');
    cli_out_fact("left out", "%s%s%s, because a word has no row; --missing lists the words",
                 no_question > 0 ? left[0] : "", no_question > 0 && no_pair > 0 ? " and " : "",
                 no_pair > 0 ? left[1] : "");
}

/* ---- JSON ---- */

static void json_sums(cli_json *json, const sums *s)
{
    cli_json_whole(json, "asked", s->asked);
    cli_json_whole(json, "covered", s->covered);
    cli_json_whole(json, "correct", s->correct);
    cli_json_real(json, "accuracy", share(s));
}

static void json_analogies(cli_json *json, const embla_eval *eval)
{
    sums totals[TOTALS];
    add_up(eval, totals);
    json_sums(json, &totals[ALL]);
    for (int i = 0; i < ALL; i++) {
        cli_json_open(json, total_names[i], '{');
        json_sums(json, &totals[i]);
        cli_json_close(json, '}');
    }
    cli_json_open(json, "sections", '[');
    size_t count;
    const embla_eval_part *part = embla_eval_parts(eval, &count);
    for (size_t n = 0; n < count; n++, part++) {
        sums s = {part->asked, part->covered, part->correct};
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", part->name);
        cli_json_bool(json, "syntactic", part->syntactic);
        json_sums(json, &s);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void json_pairs(cli_json *json, const embla_eval *eval)
{
    size_t count;
    const embla_eval_part *part = embla_eval_parts(eval, &count); /* one */
    cli_json_whole(json, "asked", part->asked);
    cli_json_whole(json, "covered", part->covered);
    cli_json_real(json, "spearman", part->spearman);
    cli_json_real(json, "pearson", part->pearson);
}

static void json_file(cli_json *json, const scored *file, bool missing)
{
    size_t count;
    const embla_eval_missing *words = embla_eval_missing_words(file->eval, &count);
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "file", file->path);
    if (file->analogies)
        json_analogies(json, file->eval);
    else
        json_pairs(json, file->eval);
    cli_json_whole(json, "missing_words", (int64_t)count);
    if (missing) cli_json_open(json, "missing", '[');
    for (size_t n = 0; missing && n < count; n++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "word", words[n].word);
        cli_json_whole(json, "times", words[n].times);
        cli_json_close(json, '}');
    }
    if (missing) cli_json_close(json, ']');
    cli_json_close(json, '}');
}

static void print_json(const cli_args *args, const job *j)
{
    static const char *const kinds[] = {"pairs", "analogies"};
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "checkpoint", args->operands[0]);
    cli_json_whole(&json, "rows", j->options.rows ? j->options.rows : j->asked.model.rows);
    cli_json_whole(&json, "dim", j->asked.model.dim);
    cli_json_text(&json, "kind", j->options.kind == EMBLA_ANALOGY_COS_MUL ? "3CosMul" : "3CosAdd");
    for (int analogies = 1; analogies >= 0; analogies--) {
        cli_json_open(&json, kinds[analogies], '[');
        for (size_t i = 0; i < j->count; i++)
            if (j->files[i].analogies == (analogies == 1))
                json_file(&json, &j->files[i], cli_args_flag(args, "missing"));
        cli_json_close(&json, ']');
    }
    cli_json_close(&json, '}');
    putchar('\n');
}

/* ---- files ---- */

/* The library counts questions; progress is shown in bytes of the file. */
static bool step(void *context, const char *what, int64_t done, int64_t all)
{
    job *j = context;
    (void)what;
    return cli_progress_step(&j->progress, j->what,
                             (int64_t)((double)j->file_bytes * (double)done / (double)all),
                             j->file_bytes);
}

static void begin_file(job *j, const char *path)
{
    const char *name = cli_path_title(path);
    size_t used = 0;
    j->file_bytes = cli_file_size(cli_input_path(path));
    for (; name[used] && used < sizeof j->what - 1; used++)
        j->what[used] = name[used] > ' ' && name[used] < 0x7f ? name[used] : '?';
    j->what[used] = '\0';
}

/* Reserves memory for one more file. */
static bool reserve_file(job *j)
{
    size_t room = 2 * j->room + 8;
    if (j->count < j->room) return true;
    scored *files = realloc(j->files, room * sizeof *files);
    if (!files) return false;
    j->files = files;
    j->room = room;
    return true;
}

/* Progress begins and ends here, so that it is erased before a message is printed. */
static embla_status score_file(job *j, const char *path, bool quiet)
{
    scored file = {.path = reserve_file(j) ? strdup(path) : NULL};
    const char *real = cli_input_path(path);
    if (!file.path) return EMBLA_ERR_MEMORY;
    begin_file(j, path);
    cli_progress_begin(&j->progress, quiet);
    embla_status status =
        embla_eval_new_analogies(j->asked.table, j->asked.vocab, real, &j->options, &file.eval);
    file.analogies = status == EMBLA_OK;
    if (status == EMBLA_ERR_UNSUPPORTED)
        status =
            embla_eval_new_pairs(j->asked.table, j->asked.vocab, real, &j->options, &file.eval);
    cli_progress_end(&j->progress, "interrupted; nothing has been printed");
    if (status == EMBLA_OK)
        j->files[j->count++] = file;
    else
        free(file.path);
    return status;
}

static int report_failure(const char *path, embla_status status)
{
    if (status == EMBLA_ERR_MEMORY) return cli_failed("no memory to score %s", path);
    return cli_failed("%s%s", embla_error(),
                      (status == EMBLA_ERR_FORMAT || status == EMBLA_ERR_UNSUPPORTED) &&
                              cli_eval_has_sentences(path)
                          ? "; if these are pairs of sentences, add --sentences"
                          : "");
}

static bool is_question_file(const char *name)
{
    static const char *const ends[] = {".txt", ".csv", ".tsv"};
    const char *dot = strrchr(name, '.');
    if (!dot || name[0] == '.') return false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (strcmp(dot, ends[i]) == 0) return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted names of files of questions. False if the folder cannot be listed. */
static bool list_questions(const char *path, char ***out, size_t *count)
{
    cli_names names;
    bool good = cli_names_open(path, &names);
    *out = NULL;
    *count = 0;
    if (!good) return false;
    for (const char *name; good && (name = cli_names_next(&names));) {
        if (!is_question_file(name)) continue;
        char **longer = realloc(*out, (*count + 1) * sizeof **out);
        if (longer) *out = longer;
        good = longer && ((*out)[*count] = cli_copy_text(name, strlen(name)));
        if (good) (*count)++;
    }
    cli_names_close(&names);
    if (!good) (void)cli_because(embla_system_outcome(EMBLA_SYSTEM_NO_MEMORY));
    if (*count > 0) qsort(*out, *count, sizeof **out, by_name);
    return good;
}

/* Other files in the folder (a README.txt) are skipped with a note. */
static int score_folder(job *j, const char *path, bool quiet)
{
    char **entries;
    size_t before = j->count, count;
    int code = CLI_DONE;
    if (!list_questions(path, &entries, &count)) code = cli_failed("%s: %s", path, cli_why());
    for (size_t i = 0; i < count; i++) {
        char name[CLI_PATH_MOST];
        int used = snprintf(name, sizeof name, "%s/%s", path, entries[i]);
        free(entries[i]);
        if (code != CLI_DONE || used < 0 || (size_t)used >= sizeof name) continue;
        embla_status status = score_file(j, name, quiet);
        if (status == EMBLA_OK) continue;
        if (status != EMBLA_ERR_FORMAT && status != EMBLA_ERR_UNSUPPORTED)
            code = report_failure(name, status);
        else if (!quiet)
            cli_complain("note: skipped: %s", embla_error());
    }
    free(entries);
    if (code == CLI_DONE && j->count == before)
        code =
            cli_failed("%s: none of its %zu files (.txt, .csv, .tsv) contains questions or pairs",
                       path, count);
    return code;
}

static int score_files(const cli_args *args, job *j)
{
    bool quiet = cli_args_flag(args, "quiet");
    embla_status status;
    int code = CLI_DONE;
    for (size_t i = 1; i < args->operand_count && code == CLI_DONE; i++) {
        const char *path = args->operands[i];
        if (cli_is_folder(path))
            code = score_folder(j, path, quiet);
        else if ((status = score_file(j, path, quiet)) != EMBLA_OK)
            code = report_failure(path, status);
    }
    return code;
}

/* ---- the verb ---- */

static int set_up(const cli_args *args, job *j)
{
    const char *path = args->operands[0];
    int code = cli_asked_open(args, path, &j->asked);
    const cli_model *model = &j->asked.model;
    if (code != CLI_DONE) return code;
    if (!j->asked.vocab)
        return cli_failed("%s has no vocabulary for its %" PRId64 " rows; eval needs one", path,
                          model->rows);
    j->options = (embla_eval_options){
        .rows = cli_args_count(args, "rows"),
        .threads = (int)cli_args_count(args, "threads"),
        .exact_case = cli_args_flag(args, "exact-case"),
        .kind = cli_args_flag(args, "multiply") ? EMBLA_ANALOGY_COS_MUL : EMBLA_ANALOGY_COS_ADD,
        .progress = step,
        .context = j};
    if (j->options.rows > model->rows) j->options.rows = model->rows;
    return CLI_DONE;
}

static int print_scores(const cli_args *args, const job *j)
{
    int64_t asked = sum_files(j, true).asked + sum_files(j, false).asked;
    char text[CLI_CELL];
    if (cli_args_flag(args, "json"))
        print_json(args, j);
    else
        print_text(args, j);
    if (sum_files(j, true).covered + sum_files(j, false).covered > 0) return CLI_DONE;
    return cli_failed("no score: each of the %s questions and pairs has a word without a row",
                      cli_commas(asked, text));
}

static int run(const cli_args *args)
{
    job j = {.count = 0};
    if (cli_args_given(args, "rows") && cli_args_count(args, "rows") < 1)
        return cli_usage("--rows is 0; the minimum is 1");
    if (args->operand_count < 2)
        return cli_usage("eval needs a file of questions or pairs: embla eval TABLE FILE...");
    if (cli_args_flag(args, "sentences")) return cli_eval_sentences(args);
    if (cli_args_given(args, "fit") || cli_args_given(args, "tokenizer") ||
        cli_args_given(args, "compat"))
        return cli_usage("--fit, --tokenizer and --compat need --sentences");
    int code = set_up(args, &j);
    if (code == CLI_DONE) code = score_files(args, &j);
    if (code == CLI_DONE) code = print_scores(args, &j);
    for (size_t i = 0; i < j.count; i++) {
        embla_eval_free(j.files[i].eval);
        free(j.files[i].path);
    }
    free(j.files);
    cli_asked_free(&j.asked);
    return code;
}

static const cli_option options[] = {
    {.name = "rows",
     .value = "N",
     .count = true,
     .help = "search only the first N rows of the table (default: all)"},
    {.name = "multiply", .help = "multiply cosines instead of adding them (3CosMul); slower"},
    {.name = "exact-case", .help = "do not try the lower-case form of a missing word"},
    {.name = "missing", .help = "list the words without a row, the most frequent first"},
    {.name = "sentences", .help = "FILE has pairs of sentences, and TABLE is a static model"},
    CLI_STATIC_MODEL_FIT,
    CLI_STATIC_MODEL_OPTIONS,
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_eval = {
    .name = "eval",
    .synopsis = "TABLE FILE...",
    .operand = "TABLE",
    .operands_least = 1,
    .operands_most = CLI_OPERANDS_MOST,
    .files = CLI_OPERANDS_MOST,
    .about = "score a table on analogies, and on pairs of words or sentences",
    .text =
        "TABLE is a checkpoint as for 'embla info'. FILE contains analogies or pairs; the first "
        "line shows which. For a folder, all its .txt, .csv and .tsv files are used.\n\n"
        "An analogy is four words on a line; ': name' begins a section (Google's "
        "questions-words.txt). It is correct if the row nearest to second - first + third, without "
        "these three, is that of the fourth word. Sections whose names begin with 'gram' are "
        "syntactic, all others semantic.\n\n"
        "A pair is two words and a number, separated by tabs, commas or spaces (WordSim-353, "
        "SimLex-999, MEN). The scores are Spearman's and Pearson's correlation of number and "
        "cosine. A heading, empty lines and comments (#) are skipped.\n\n"
        "A word is first looked up with a space before it, for vocabularies that mark the start of "
        "a word, then without; then both ways in lower case. Questions with a word that has no "
        "row, or a row that is not finite, are left out. 'covered' counts the remaining ones, and "
        "all scores refer to them. The exit code is 1 if nothing is covered.\n\n"
        "With --sentences, TABLE is a model of 'embla encode', and each line of FILE has fields "
        "separated by tabs: a score and two sentences, or the fields of the STS Benchmark. The "
        "scores are the correlations of score and cosine.",
    .example = "embla eval words.vec analogies.txt",
    .options = options,
    .run = run};
