/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench: runs a benchmark by name, or a set of cases of all.
 *
 * The benchmarks themselves are in bench/, one function each. Their figures are
 * ratios to a limit measured in the same run.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "core/out.h"
#include "core/progress.h"
#include "core/verbs.h"
#include "embla.h"
#include "host/host.h"

/* The last has no function: it runs all others. `set` finds the cases that it runs. */
static const struct {
    const char *name;
    const char *about;
    int (*run)(const bench_options *options);
    const char *set;
} benches[] = {
    {"lookup", "lookup of rows by number, against memcpy of the same bytes", bench_lookup,
     "^(27x16|8449x768|50257x768)/f32/.*/(rotating|recycled)$|"
     "^50257x768/(f32/.*/(single|one-hot)|(f16|bf16|q8_0|q4_0|q4_k)/uniform/rotating)$"},
    {"open", "lookup of rows of a file, against memcpy from its mapping", bench_open,
     "^262144x1024/"},
    {"near", "nearest rows, against reading the table and against the bare matrix product",
     bench_near, "^400000x100/|^131072x4096/(bf16|q8_0)/"},
    {"scatter", "gradients of rows, against memcpy of the same bytes", bench_scatter,
     "^50257x768/zipf/"},
    {"optim", "optimizer steps, against bare streams over the same numbers", bench_optim,
     "/(adamw|sgd|adagrad-rowwise)/"},
    {"head", "head and loss for one token, against reading and against bare matrix products",
     bench_head, "/50257x768/|/131072x4096/(bf16|q8_0)$|^loss/1024x768x50257/(f32|bf16)$"},
    {"ngram", "row numbers of n-grams, against the same loop with hardware division", bench_ngram,
     "/4096$"},
    {"codec", "decoding of rows in cache, against memcpy of the floats", bench_codec,
     "^[^/]*/[^/]*$"},
    {"rows", "lookup in a giant table, against a bare memcpy loop over the same row numbers",
     bench_rows, "/(raw|f32|bf16)$"},
    {"disk", "rows of a table on disk, against page faults and bare reads of the same pages",
     bench_disk, "^none$"},
    {"train", "a training step, against the bare matrix products of that step", bench_train,
     "^(microgpt|nano|gpt2-256x6)/|^gpt2/4x64/"},
    {"text", "text to tokens and to vectors, against finding words and summing rows", bench_text,
     "^(wordpiece|bpe|unigram|vector)$|^open/"},
    {"cluster", "a sharded table under mpirun, against its parts and against bare MPI",
     bench_cluster, "^owners$"},
    {"all", "a set of cases of every benchmark, on 1 thread and on all", NULL, NULL}};
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
            cli_out_wrapped(benches[i].about, printf("%-8s ", benches[i].name), 9);
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

/* ---- all benchmarks ---- */

/* The line on stderr that says which benchmark is running. It catches no signals, because a
 * benchmark does not ask whether one came. */
static cli_progress progress;
static size_t current;
static bool as_json, quiet, begun;

/* The model of the CPU, or "unknown". */
static void find_cpu(char *out, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    (void)snprintf(out, size, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        const char *value = strstr(line, ": ");
        if (!value || strncmp(line, "model name", 10) != 0) continue;
        (void)snprintf(out, size, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
        break;
    }
    if (file) (void)fclose(file);
}

/* What the figures belong to. */
static void print_machine(void)
{
    char cpu[160];
    find_cpu(cpu, sizeof cpu);
    if (as_json) {
        cli_json json = {0};
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "cpu", cpu);
        cli_json_text(&json, "version", embla_version());
        cli_json_close(&json, '}');
        putchar('\n');
    } else if (!quiet) {
        printf("Embla %s, %s\n", embla_version(), cpu);
    }
    (void)fflush(stdout);
}

/* A case begins, or (NULL) something will be printed. The first case prints the heading. */
static void draw_case(const char *name)
{
    char line[160];
    if (!name) {
        cli_progress_wipe(&progress);
        (void)fflush(stderr);
        return;
    }
    if (!begun) print_machine();
    begun = true;
    (void)snprintf(line, sizeof line, "benchmark %zu of %zu: %s %s", current + 1, BENCHES - 1,
                   benches[current].name, name);
    if ((size_t)cli_progress_width() < strlen(line)) line[cli_progress_width()] = '\0';
    cli_progress_draw(&progress, line);
}

static void complain_alone(const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    cli_progress_wipe(&progress);
    cli_complain("%s", text);
}

/* Runs every benchmark, also after one that failed. */
static int run_all(bench_options options)
{
    bench_all all = {.at = draw_case};
    int exit_code = CLI_DONE;
    as_json = options.json;
    quiet = options.quiet;
    progress.shown = !quiet && cli_is_terminal(CLI_STDERR);
    options.all = &all;
    options.complain = complain_alone;
    for (current = 0; benches[current].run && exit_code != CLI_USAGE; current++) {
        all.set = benches[current].set;
        all.about = benches[current].about;
        int code = benches[current].run(&options);
        if (code != CLI_DONE) exit_code = code;
    }
    cli_progress_wipe(&progress);
    if (exit_code == CLI_DONE && all.asked_for == 0)
        return cli_usage("bench all: no case matches '%.60s'; --list shows them",
                         options.case_regex);
    return exit_code;
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
        if (strcmp(benches[i].name, args->operands[0]) == 0)
            return benches[i].run ? benches[i].run(&options) : run_all(options);
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
    .text =
        "Runs BENCHMARK, each case on 1 and on 2 threads (T), or on --threads. Cases of lookup "
        "are named SHAPE/DTYPE/IDS/OUTPUT. The output goes to memory larger than the caches "
        "(rotating), to the same buffer each time (recycled), or is one row per call (single); "
        "one-hot computes 16 rows as the product of one-hot vectors and the table, and a line says "
        "how many times faster the lookup of these rows is. "
        "Cases of open are named SHAPE/DTYPE/WHAT: all rows of a file are looked up in order "
        "(scan), or the file is opened and closed (open). The file has 1 GiB unless --case "
        "chooses another; it is written to $TMPDIR or /tmp and removed at the end. "
        "Cases of text are on a made-up language: KIND tokenizes lines, KIND/line one line of 10 "
        "MB, KIND/decode goes back; vector is lines to vectors, open/ opens a tokenizer.\n\n"
        "BENCHMARK all runs a set of cases of every benchmark, each on 1 thread and on all, or on "
        "--threads. It leaves out what takes long: the f32 tables with 131072x4096 numbers, "
        "GPT-2 with 1024 tokens, most dtypes and most optimizers; --list prints what it runs. "
        "It takes at most 10 minutes on 2 idle cores, 5 GiB of memory and 1 GiB of disk. --case "
        "chooses from its cases by BENCHMARK/CASE. With --json the first line names the CPU and "
        "the version; bench/compare.py of the source compares two such files.\n\n"
        "The output is the speed, the limit that is measured alternately with it (memcpy of "
        "the same bytes, or the lookup in f32), and their ratio; above 1 is faster than the "
        "limit. With --json each case is one JSON object per line.",
    .example = "embla bench lookup --case '27x16/f32/uniform/.*'",
    .options = options,
    .ranks = true,
    .run = run};
