/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench: runs a benchmark by name.
 *
 * The benchmarks themselves are in bench/, one function each. Their figures are
 * ratios to a limit measured in the same run.
 */
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "core/out.h"
#include "core/verbs.h"

static const struct {
    const char *name;
    const char *about;
    int (*run)(const bench_options *options);
} benches[] = {
    {"lookup", "lookup of rows by number, against memcpy of the same bytes", bench_lookup},
    {"open", "lookup of rows of a file, against memcpy from its mapping", bench_open},
    {"near", "nearest rows, against reading the table and against the bare matrix product",
     bench_near},
    {"scatter", "gradients of rows, against memcpy of the same bytes", bench_scatter},
    {"optim", "optimizer steps, against bare streams over the same numbers", bench_optim},
    {"head", "head and loss for one token, against reading and against bare matrix products",
     bench_head},
    {"ngram", "row numbers of n-grams, against the same loop with hardware division", bench_ngram},
    {"codec", "decoding of rows in cache, against memcpy of the floats", bench_codec},
    {"rows", "lookup in a giant table, against a bare memcpy loop over the same row numbers",
     bench_rows},
    {"train", "a training step, against the bare matrix products of that step", bench_train}};
#define BENCHES (sizeof benches / sizeof benches[0])

static const char *bench_name(size_t n)
{
    return n < BENCHES ? benches[n].name : NULL;
}

static int list(bool as_json)
{
    cli_json json = {0};
    if (as_json) {
        cli_json_open(&json, NULL, '{');
        cli_json_open(&json, "benchmarks", '[');
    }
    for (size_t i = 0; i < BENCHES; i++) {
        if (!as_json) {
            printf("%-8s %s\n", benches[i].name, benches[i].about);
            continue;
        }
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "name", benches[i].name);
        cli_json_text(&json, "about", benches[i].about);
        cli_json_close(&json, '}');
    }
    if (as_json) {
        cli_json_close(&json, ']');
        cli_json_close(&json, '}');
        putchar('\n');
    }
    return CLI_DONE;
}

static int run(const cli_args *args)
{
    bench_options options = {.case_regex = cli_args_text(args, "case"),
                             .threads = (int)cli_args_count(args, "threads"),
                             .json = cli_args_flag(args, "json"),
                             .quiet = cli_args_flag(args, "quiet"),
                             .list = cli_args_flag(args, "list"),
                             .complain = cli_complain};
    if (args->operand_count == 0)
        return options.list
                   ? list(options.json)
                   : cli_usage("bench needs a BENCHMARK; 'embla bench --list' prints them");
    for (size_t i = 0; i < BENCHES; i++)
        if (strcmp(benches[i].name, args->operands[0]) == 0) return benches[i].run(&options);
    return cli_failed("%s: no such benchmark", args->operands[0]);
}

static const cli_option options[] = {
    {.name = "case",
     .value = "REGEX",
     .help = "run the cases whose names match this extended regular expression, instead of the "
             "default set"},
    {.name = "list",
     .help = "print the names of the cases, or of the benchmarks, without running them"},
    {.name = NULL}};

const cli_verb cli_verb_bench = {
    .name = "bench",
    .synopsis = "[BENCHMARK]",
    .operand = "BENCHMARK",
    .operands_most = 1,
    .choices = bench_name,
    .about = "measure speed against a limit measured in the same run",
    .text = "Runs BENCHMARK, each case on 1 and on 2 threads (T), or on --threads. Cases of lookup "
            "are named SHAPE/DTYPE/IDS/OUTPUT. The output goes to memory larger than the caches "
            "(rotating), to the same buffer each time (recycled), or is one row per call (single); "
            "one-hot computes 16 rows as the product of one-hot vectors and the table. "
            "Cases of open are named SHAPE/DTYPE/WHAT: all rows of a file are looked up in order "
            "(scan), or the file is opened and closed (open). The file has 1 GiB unless --case "
            "chooses another; it is written to $TMPDIR or /tmp and removed at the end.\n\n"
            "The output is the speed, the limit that is measured alternately with it (memcpy of "
            "the same bytes, or the lookup in f32), and their ratio; above 1 is faster than the "
            "limit. With --json each case is one JSON object per line.",
    .example = "embla bench lookup --case '27x16/f32/uniform/.*'",
    .options = options,
    .run = run};
