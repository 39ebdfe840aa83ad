/* SPDX-License-Identifier: Apache-2.0 */
/* embla trace: records the row numbers that a text asks for, and replays them from disk.
 *
 * A trace is an npy file of int64, (tokens, rows per token). A list of hot rows is one of (rows),
 * the most frequent first; tickets read it (hot_file).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_store.h"

#include "core/amount.h"
#include "core/ending.h"
#include "core/inputs.h"
#include "core/model_text.h"
#include "core/out.h"
#include "core/verbs.h"
#include "verbs/rows_job.h"
#include "verbs/rows_stats.h"
#include "verbs/trace_file.h"

enum { WRITTEN = -1 };

/* ---- recording ---- */

typedef struct {
    int64_t row, count;
} counted;

static int by_row(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The more frequent row first; of equally frequent ones, the lower. */
static int by_count(const void *a, const void *b)
{
    const counted *x = a, *y = b;
    if (x->count != y->count) return (x->count < y->count) - (x->count > y->count);
    return (x->row > y->row) - (x->row < y->row);
}

/* Counts the rows, and puts the most frequent ones first. Returns how many different rows there
 * are; -1 means no memory. */
static int64_t sort_by_count(int64_t *rows, size_t count)
{
    counted *all = malloc(count * sizeof *all);
    size_t found = 0;
    if (!all) return -1;
    qsort(rows, count, sizeof *rows, by_row);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || rows[i] != rows[i - 1]) all[found++] = (counted){.row = rows[i]};
        all[found - 1].count++;
    }
    qsort(all, found, sizeof *all, by_count);
    for (size_t i = 0; i < found; i++) rows[i] = all[i].row;
    free(all);
    return (int64_t)found;
}

/* Writes an npy file, version 1: a header of whole 64 bytes, then the numbers. */
static bool write_npy(const char *shape, const int64_t *numbers, size_t count)
{
    enum { PREFIX = 10, HEADER = 128 };
    char header[HEADER];
    const char magic[PREFIX] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, HEADER - PREFIX, 0};
    memset(header, ' ', sizeof header);
    memcpy(header, magic, sizeof magic);
    int n = snprintf(header + PREFIX, HEADER - PREFIX,
                     "{'descr': '<i8', 'fortran_order': False, 'shape': (%s), }", shape);
    header[PREFIX + n] = ' ';
    header[HEADER - 1] = '\n';
    return fwrite(header, 1, sizeof header, stdout) == sizeof header &&
           fwrite(numbers, sizeof *numbers, count, stdout) == count;
}

/* Writes the file through stdout, which is restored for the report. Returns WRITTEN, or CLI_DONE if
 * the file is stdout itself, or another code after a message. */
static int write_file(const cli_args *args, const char *path, const char *shape,
                      const int64_t *numbers, size_t count)
{
    bool same = cli_out_is_stdout(path);
    int code = cli_out_to(path, cli_args_flag(args, "force"));
    if (code == CLI_DONE && !write_npy(shape, numbers, count))
        code = cli_failed("%s: cannot write to it", path);
    code = cli_out_done(code);
    return code == CLI_DONE && !same ? WRITTEN : code;
}

static int record(const cli_args *args, cli_rows_job *j)
{
    const char *path = cli_args_text(args, "output");
    size_t columns = j->info.rows_per_token, count = j->tokens.count * columns;
    int64_t hot = cli_args_count(args, "hot"), tokens = (int64_t)j->tokens.count;
    char shape[64];
    (void)snprintf(shape, sizeof shape, "%zu, %zu", j->tokens.count, columns);
    if (cli_args_given(args, "hot")) {
        int64_t different = sort_by_count(j->rows, count);
        if (different < 0) return cli_failed("no memory to count %zu rows", count);
        if (hot > different) hot = different;
        count = cli_as_size(hot);
        (void)snprintf(shape, sizeof shape, "%zu,", count);
    }
    int code = write_file(args, path, shape, j->rows, count);
    if (code != WRITTEN) return code;
    if (cli_args_flag(args, "json"))
        printf("{\"tokens\":%" PRId64 ",\"rows_per_token\":%zu,\"rows\":%zu}\n", tokens, columns,
               count);
    cli_out_written(args, path, false);
    return CLI_DONE;
}

/* ---- replaying ---- */

static int replay(const cli_args *args, const char *path)
{
    embla_tickets_options options = {.hot_file = cli_input_path(cli_args_text(args, "hot-file")),
                                     .hot_rows_per_ngram =
                                         cli_args_size(args, "hot-rows-per-ngram")};
    int64_t hot_bytes = 0;
    cli_model model = {0};
    cli_rows_stats stats = {0};
    cli_trace trace = {0};
    int code = cli_amount_whole(args, "hot-bytes", CLI_AMOUNT_BYTES, &hot_bytes);
    options.hot_bytes = cli_as_size(hot_bytes);
    if (code == CLI_DONE) code = cli_trace_read(path, SIZE_MAX, &trace);
    if (code == CLI_DONE) code = cli_model_open(args, args->operands[0], &model);
    if (code == CLI_DONE) cli_print_notes(args, model.checkpoint);
    if (code == CLI_DONE)
        code = cli_rows_stats_read(model.checkpoint, cli_rows_layer(args), trace.rows, trace.tokens,
                                   trace.columns, &options, &stats);
    if (code == CLI_DONE && cli_args_flag(args, "json")) {
        cli_json json = {0};
        cli_json_open(&json, NULL, '{');
        cli_rows_stats_json(&stats, &json);
        cli_json_close(&json, '}');
        putchar('\n');
    } else if (code == CLI_DONE) {
        cli_rows_stats_print(&stats);
    }
    cli_model_free(&model);
    free(trace.rows);
    return code;
}

/* ---- the verb ---- */

static int run(const cli_args *args)
{
    cli_rows_job j = {.model_name = cli_args_text(args, "model")};
    const char *trace = cli_args_text(args, "replay");
    bool hot = cli_args_given(args, "hot-bytes") || cli_args_given(args, "hot-file") ||
               cli_args_given(args, "hot-rows-per-ngram");
    if (trace && (j.model_name || args->operand_count != 1))
        return cli_usage("--replay needs one FILE: the table");
    if (trace) return replay(args, trace);
    if (hot) return cli_usage("--hot-bytes, --hot-file and --hot-rows-per-ngram need --replay");
    if (!j.model_name && args->operand_count == 0)
        return cli_usage("trace needs a FILE, or --model NAME");
    if (!cli_args_text(args, "output")) return cli_usage("trace needs -o OUT, or --replay TRACE");
    int code = cli_inputs_check(args, cli_args_text(args, "output"));
    if (code == CLI_DONE) code = cli_ending_check("output", cli_args_text(args, "output"), "npy");
    if (code == CLI_DONE) code = cli_rows_hash(args, &j);
    if (code == CLI_DONE) code = record(args, &j);
    cli_rows_free(&j);
    return code;
}

static const cli_option options[] = {
    CLI_ROWS_OPTIONS,
    {.name = "output", .letter = 'o', .value = "OUT", .help = "npy file to write"},
    {.name = "force", .help = "replace OUT if it exists"},
    {.name = "hot",
     .value = "N",
     .count = true,
     .help = "write only the N most frequent rows, the most frequent first: a list of hot rows"},
    {.name = "replay",
     .value = "TRACE",
     .reads = CLI_READS_FILE,
     .help = "read the rows of TRACE from disk, token by token, and print what that costs"},
    {.name = "hot-bytes",
     .value = "BYTES",
     .standard = "0",
     .help = "with --replay: memory for hot rows, such as 64MiB"},
    {.name = "hot-file",
     .value = "LIST",
     .reads = CLI_READS_FILE,
     .help = "with --replay: rows to keep from the beginning, as an npy file; or a pack, whose "
             "most frequent n-grams are kept"},
    {.name = "hot-rows-per-ngram",
     .value = "N",
     .count = true,
     .least = 1,
     .most = 32,
     .standard = "1",
     .help = "with --replay: keep the N rows of an n-gram together"},
    CLI_TOKENIZER_OPTION,
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_trace = {
    .name = "trace",
    .synopsis = "[FILE] [TOKEN]...",
    .operand = "TOKEN",
    .operands_most = CLI_OPERANDS_MOST,
    .files = 1,
    .instead = "model",
    .about = "record which rows of a giant table a text selects; replay them",
    .text = "Writes the row numbers of all tokens to OUT, an npy file of int64 (tokens, rows per "
            "token). "
            "Tokens are given as for 'embla rows'; 'embla tokens' makes them from a text. With "
            "--hot the most frequent rows are written instead, as a list for hot rows.\n\n"
            "--replay reads the rows of a trace from the table in FILE with the placement direct, "
            "past the page cache, one ticket for each token. It prints reads, bytes, hot rows and "
            "times.",
    .example = "embla trace --model qwen3.8-flash-next 5 6 7 -o trace.npy",
    .options = options,
    .run = run};
