/* SPDX-License-Identifier: Apache-2.0 */
/* embla search: the lines of a text that are nearest to a question.
 *
 * The vectors of the lines are made once and stored beside the corpus. Checksums decide whether
 * they are still those of the corpus and of the model.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_search.h"

#include "core/advice.h"
#include "core/complain.h"
#include "core/inputs.h"
#include "core/out.h"
#include "core/progress.h"
#include "core/static_model.h"
#include "core/texts.h"
#include "core/verbs.h"
#include "core/visible.h"

#include "base/utf8.h"
#include "host/host.h"
#include "host/paths.h"

enum { PATH_MOST = 4096, TOP_MOST = 100000, QUESTIONS = 256 };

typedef struct {
    const cli_args *args;
    cli_static_model model;
    embla_index *index;
    char path[PATH_MOST]; /* of the index */
    char *strange;        /* why the file with this name is not an index of ours; NULL: it is */
    bool made, as_json, quiet, terminal;
    size_t top;
    int threads;
    embla_neighbour *found; /* QUESTIONS x top */
    embla_encoded details[QUESTIONS];
    cli_json json;
    int64_t answered;
} job;

/* ---- the index ---- */

static const char *dtype_name(size_t n)
{
    static const embla_dtype all[] = {EMBLA_F32, EMBLA_F16, EMBLA_BF16};
    return n < sizeof all / sizeof all[0] ? embla_dtype_name(all[n]) : NULL;
}

/* A place that cannot be written is no reason not to answer. */
static int store_index(job *j)
{
    if (!j->strange && embla_index_write(j->index, j->path) == EMBLA_OK) return CLI_DONE;
    cli_complain("note: the index is not stored, so it is made again next time: %s. Use --index "
                 "FILE to store it elsewhere",
                 j->strange ? j->strange : embla_error());
    return CLI_DONE;
}

static int make_index(job *j, const char *corpus)
{
    cli_progress progress;
    embla_index_options options = {
        .threads = j->threads, .progress = cli_progress_call, .context = &progress};
    if (embla_dtype_find(cli_args_text(j->args, "dtype"), &options.dtype) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    cli_progress_begin(&progress, j->quiet);
    embla_status status =
        embla_index_new(j->model.encoder, cli_input_path(corpus), &options, &j->index);
    cli_progress_end(&progress, "interrupted; nothing has been stored");
    if (status != EMBLA_OK) return cli_failed("%s", embla_error());
    j->made = true;
    return store_index(j);
}

/* Whether the open index has the dtype of --dtype, if that is given. Closes it otherwise. */
static embla_index_info index_info(const job *j)
{
    embla_index_info info = {0};
    if (embla_index_describe(j->index, &info) != EMBLA_OK) info.rows = 0; /* there is an index */
    return info;
}

static bool has_dtype(job *j)
{
    const char *wanted = cli_args_text(j->args, "dtype");
    const char *stored = embla_dtype_name(index_info(j).dtype);
    if (!cli_args_given(j->args, "dtype") || strcmp(stored, wanted) == 0) return true;
    if (!j->quiet)
        cli_complain("note: %s has dtype %s, not %s; it is made again", j->path, stored, wanted);
    embla_index_free(j->index);
    j->index = NULL;
    return false;
}

/* --index, or CORPUS.embla. With --fit it is CORPUS.NAME.embla, where NAME is the name of the fit:
 * its vectors are others, and both indexes stay. */
static int name_index(job *j)
{
    const char *corpus = j->args->operands[1], *asked = cli_args_text(j->args, "index");
    const char *fit = cli_args_text(j->args, "fit"), *slash = fit ? embla_system_slash(fit) : NULL;
    int used = asked ? snprintf(j->path, sizeof j->path, "%s", asked)
                     : snprintf(j->path, sizeof j->path, "%s%s%s.embla", corpus, fit ? "." : "",
                                slash ? slash + 1
                                : fit ? fit
                                      : "");
    if (used < 0 || (size_t)used >= sizeof j->path)
        return cli_failed("the name of the index has %d bytes; the limit is %d", used,
                          PATH_MOST - 1);
    return cli_inputs_check(j->args, j->path);
}

/* A file that is not an index is never replaced. */
static int open_index(job *j)
{
    const char *corpus = j->args->operands[1];
    bool asked = cli_args_given(j->args, "index");
    int code = name_index(j);
    if (code != CLI_DONE) return code;
    embla_status status =
        embla_index_open(j->path, j->model.encoder, cli_input_path(corpus), &j->index);
    if (status == EMBLA_OK) return has_dtype(j) ? CLI_DONE : make_index(j, corpus);
    /* something that cannot be opened is there, or the folder cannot be reached */
    if ((status == EMBLA_ERR_NOT_FOUND || status == EMBLA_ERR_IO) && cli_out_exists(j->path))
        j->strange = strdup(embla_error());
    if (status != EMBLA_ERR_NOT_FOUND && status != EMBLA_ERR_ARGUMENT && status != EMBLA_ERR_IO)
        return cli_failed("the index of %s cannot be used: %s. %s%s%s --index FILE", corpus,
                          embla_error(), asked ? "Use another name for" : "Delete ",
                          asked ? "" : j->path, asked ? "" : ", or store it elsewhere with");
    if (status == EMBLA_ERR_ARGUMENT && !j->quiet)
        cli_complain("note: %s; it is made again", embla_error());
    return make_index(j, corpus);
}

/* --verify: reads the whole index, and compares its checksum. */
static int verify_index(job *j)
{
    char rows[CLI_CELL];
    embla_status status = embla_index_verify(j->path);
    if (status != EMBLA_OK)
        return cli_failed("%s%s", embla_error(),
                          status == EMBLA_ERR_FORMAT ? "; delete it, and search again" : "");
    if (!j->as_json && !j->quiet)
        cli_complain("note: %s: %s verified by their checksum", j->path,
                     cli_plural(index_info(j).rows, "vector", rows));
    return CLI_DONE;
}

/* ---- answers ---- */

/* The bytes of a line that fit on the rest of a line of the terminal. */
static size_t fitting(const char *text, size_t length, size_t columns)
{
    size_t at = 0;
    for (size_t n = 0; n < columns && at < length; n++) {
        size_t bytes = embla_utf8_length(text + at, length - at);
        at += bytes > 0 ? bytes : 1;
    }
    return at;
}

static void print_text(const job *j, const embla_neighbour *found)
{
    for (size_t n = 0; n < j->top && found[n].row >= 0; n++) {
        size_t length = 0;
        int64_t number = 0;
        const char *text = embla_index_line(j->index, found[n].row, &length, &number);
        int used = printf("%zu\t%.4f\t%" PRId64 "\t", n + 1, found[n].score, number);
        size_t shown = j->terminal && used > 0 && cli_out_width() > 40
                           ? fitting(text, length, (size_t)cli_out_width() - 30)
                           : length;
        (void)cli_word_write(text, shown, stdout);
        puts(shown < length ? ".." : "");
    }
}

static void print_json(job *j, const char *question, size_t length, const embla_encoded *detail,
                       const embla_neighbour *found)
{
    cli_json_open(&j->json, NULL, '{');
    (void)cli_json_bytes(&j->json, "text", question, length);
    cli_json_whole(&j->json, "tokens", (int64_t)detail->tokens);
    cli_json_whole(&j->json, "unknown", (int64_t)detail->unknown);
    cli_json_open(&j->json, "lines", '[');
    for (size_t n = 0; n < j->top && found[n].row >= 0; n++) {
        size_t bytes = 0;
        int64_t number = 0;
        const char *text = embla_index_line(j->index, found[n].row, &bytes, &number);
        cli_json_open(&j->json, NULL, '{');
        cli_json_whole(&j->json, "rank", (int64_t)n + 1);
        cli_json_whole(&j->json, "line", number);
        cli_json_real(&j->json, "score", found[n].score);
        (void)cli_json_bytes(&j->json, "text", text, bytes);
        cli_json_close(&j->json, '}');
    }
    cli_json_close(&j->json, ']');
    cli_json_close(&j->json, '}');
}

static void print_answer(job *j, const char *question, size_t length, const embla_encoded *detail,
                         const embla_neighbour *found)
{
    if (j->as_json) {
        print_json(j, question, length, detail, found);
    } else {
        if (j->answered > 0) putchar('\n');
        print_text(j, found);
    }
    j->answered++;
    if (detail->tokens == 0 && !j->quiet)
        cli_complain("note: question %" PRId64 " has no token that the model knows", j->answered);
}

static int answer(void *context, const cli_texts *batch)
{
    job *j = context;
    const embla_search_options options = {.threads = j->threads,
                                          .distinct = cli_args_flag(j->args, "distinct")};
    for (size_t at = 0; at < batch->count; at += QUESTIONS) {
        size_t count = batch->count - at < QUESTIONS ? batch->count - at : QUESTIONS;
        const embla_texts texts = {
            .texts = batch->texts + at, .lengths = batch->lengths + at, .count = count};
        if (embla_index_search(j->index, &texts, j->top, &options, j->found, j->details) !=
            EMBLA_OK)
            return cli_failed("%s", embla_error());
        for (size_t i = 0; i < count; i++)
            print_answer(j, batch->texts[at + i], batch->lengths[at + i], &j->details[i],
                         j->found + i * j->top);
    }
    (void)fflush(stdout);
    return CLI_DONE;
}

static int answer_all(job *j)
{
    const embla_index_info info = index_info(j);
    cli_texts texts = {
        .take = answer, .context = j, .first = 2, .field = cli_args_text(j->args, "field")};
    if (j->as_json) {
        cli_json_open(&j->json, NULL, '{');
        cli_json_text(&j->json, "index", j->path);
        cli_json_bool(&j->json, "made", j->made);
        cli_json_whole(&j->json, "lines", info.lines);
        cli_json_whole(&j->json, "rows", info.rows);
        cli_json_whole(&j->json, "dim", (int64_t)info.dim);
        cli_json_text(&j->json, "dtype", embla_dtype_name(info.dtype));
        cli_json_open(&j->json, "questions", '[');
    } else {
        cli_advise_quotes(j->args, 2);
    }
    int code = cli_texts_read(&texts, j->args);
    cli_texts_free(&texts);
    if (j->as_json) { /* after a failure too: the answers before it are complete */
        cli_json_close(&j->json, ']');
        cli_json_close(&j->json, '}');
        putchar('\n');
    }
    return code;
}

/* ---- the verb ---- */

static int set_up(job *j)
{
    const cli_args *args = j->args;
    int64_t top = cli_args_count(args, "top");
    if (args->operand_count < 2)
        return cli_usage("search needs a corpus: embla search MODEL CORPUS [QUESTION]...");
    j->top = cli_as_size(top);
    j->threads = (int)cli_args_count(args, "threads");
    j->as_json = cli_args_flag(args, "json");
    j->quiet = cli_args_flag(args, "quiet");
    j->terminal = cli_is_terminal(CLI_STDOUT);
    j->found = calloc(QUESTIONS * j->top, sizeof *j->found);
    if (!j->found) return cli_failed("no memory for %zu answers", QUESTIONS * j->top);
    int code = cli_static_model_open(args, true, &j->model);
    return code == CLI_DONE ? open_index(j) : code;
}

static int run(const cli_args *args)
{
    job *j = calloc(1, sizeof *j);
    if (!j) return cli_failed("no memory for a search");
    j->args = args;
    int code = set_up(j);
    if (code == CLI_DONE && cli_args_flag(args, "verify")) code = verify_index(j);
    if (code == CLI_DONE) code = answer_all(j);
    embla_index_free(j->index);
    cli_static_model_free(&j->model);
    free(j->found);
    free(j->strange);
    free(j);
    return code;
}

static const cli_option options[] = {
    {.name = "top",
     .letter = 'k',
     .value = "N",
     .standard = "10",
     .count = true,
     .least = 1,
     .most = TOP_MOST,
     .help = "number of lines for each question"},
    {.name = "distinct", .help = "of lines with the same text, show only one"},
    {.name = "index",
     .value = "FILE",
     .help = "where the vectors of the lines are stored (default: CORPUS.embla, or with --fit "
             "CORPUS.NAME.embla, where NAME is the name of the fit)"},
    {.name = "dtype",
     .value = "DTYPE",
     .standard = "f32",
     .choices = dtype_name,
     .help = "dtype of vectors when they are stored; f16 and bf16 take half the space"},
    {.name = "verify",
     .help = "compare the checksum of the stored vectors first, which reads all of them"},
    {.name = "file",
     .letter = 'f',
     .value = "FILE",
     .reads = CLI_READS_LINES,
     .help = "each line of FILE is a question; - is standard input"},
    {.name = "field",
     .value = "NAME",
     .help = "lines of the questions are JSON objects, and NAME is the member with the text"},
    CLI_STATIC_MODEL_FIT,
    CLI_STATIC_MODEL_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_search = {
    .name = "search",
    .synopsis = "MODEL CORPUS [QUESTION]...",
    .operand = "MODEL",
    .operands_least = 1,
    .operands_most = CLI_OPERANDS_MOST,
    .files = 2,
    .no_stdin = "the index of a corpus is stored beside it",
    .about = "find the lines of a text that are nearest to a question",
    .text =
        "MODEL is a model of 'embla encode', CORPUS a text file. The first search makes the "
        "vectors of all lines and stores them in CORPUS.embla. Later ones use that file, which has "
        "checksums of MODEL and CORPUS: if one of them has changed, it is made again. If it "
        "cannot be written, the search still answers, and says so. The vectors are under a "
        "checksum too, which only --verify reads.\n\n"
        "Every line is compared with the question by the cosine of their vectors, so the result is "
        "exact. Empty lines, and lines without a token of the model, are not searched. With - "
        "as QUESTION, or without QUESTION and --file, each line of standard input is a "
        "question.\n\n"
        "Each answer is a line of rank, cosine, number of the line and its text, separated by "
        "tabs, with an empty line between questions. Backslashes and invisible characters are "
        "escaped (\\t). On a terminal long lines are cut.",
    .example = "embla search words.vec village.txt 'a cat sleeps' --top 3",
    .options = options,
    .run = run};
