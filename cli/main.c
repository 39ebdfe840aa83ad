/* SPDX-License-Identifier: Apache-2.0 */
/* The program `embla`: finds the verb, runs it and checks that its output was written.
 *
 * stdout carries data and nothing else. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the check
 * found a problem, or unknown words were skipped.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "embla.h"
#include "embla_cluster.h"

#include "core/environment.h"
#include "core/inputs.h"
#include "core/out.h"
#include "core/token.h"
#include "core/verbs.h"
#include "host/host.h"

const cli_verb *const cli_verbs[] = {
    &cli_verb_demo,       &cli_verb_info,      &cli_verb_doctor,
    &cli_verb_lookup,     &cli_verb_embed,     &cli_verb_near,
    &cli_verb_analogy,    &cli_verb_compare,   &cli_verb_doesnt_match,
    &cli_verb_eval,       &cli_verb_health,    &cli_verb_spectrum,
    &cli_verb_diff,       &cli_verb_map,       &cli_verb_play,
    &cli_verb_rows,       &cli_verb_trace,     &cli_verb_pack,
    &cli_verb_warm,       &cli_verb_verify,    &cli_verb_words,
    &cli_verb_tokens,     &cli_verb_tokenizer, &cli_verb_encode,
    &cli_verb_fit,        &cli_verb_search,    &cli_verb_train,
    &cli_verb_predict,    &cli_verb_generate,  &cli_verb_new,
    &cli_verb_convert,    &cli_verb_cost,      &cli_verb_plan,
#ifndef EMBLA_NO_BENCH
    &cli_verb_bench,
#endif
    &cli_verb_completion, &cli_verb_help,      NULL};

const cli_option cli_global_options[] = {
    {.name = "json", .help = "print JSON"},
    {.name = "quiet", .letter = 'q', .help = "print only results and errors"},
    {.name = "threads",
     .value = "N",
     .standard = "0",
     .count = true,
     .help = "number of threads; 0 means the default of the verb"},
    {.name = "help", .letter = 'h', .help = "print this help"},
    {.name = "version", .letter = 'V', .help = "print the version, kernel set and build"},
    {.name = NULL}};

static int print_version(bool as_json)
{
    const char *const names[] = {"version", "kernels", "build"};
    const char *const texts[] = {embla_version(), embla_kernels_name(), embla_build_info()};
    cli_json json = {0};
    if (!as_json) {
        printf("embla %s\n", texts[0]);
        for (size_t i = 1; i < 3; i++) printf("%-8s %s\n", names[i], texts[i]);
        return CLI_DONE;
    }
    cli_json_open(&json, NULL, '{');
    for (size_t i = 0; i < 3; i++) cli_json_text(&json, names[i], texts[i]);
    cli_json_open(&json, "kernel_sets", '[');
    for (int k = 0; embla_kernels_at(k); k++) cli_json_text(&json, NULL, embla_kernels_at(k));
    cli_json_close(&json, ']');
    cli_json_text(&json, "engine", embla_engine_name());
    cli_json_open(&json, "dtypes", '[');
    for (int d = 1; embla_dtype_name((embla_dtype)d); d++)
        cli_json_text(&json, NULL, embla_dtype_name((embla_dtype)d));
    cli_json_close(&json, ']');
    cli_json_open(&json, "placements", '[');
    for (int p = 0; embla_placement_name((embla_placement)p); p++)
        cli_json_text(&json, NULL, embla_placement_name((embla_placement)p));
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    putchar('\n');
    return CLI_DONE;
}

int cli_run(int argc, char **argv)
{
    cli_args args;
    int code = cli_args_parse(argc, argv, &args);
    if (code != CLI_DONE) return code;
    if (cli_args_flag(&args, "help")) {
        cli_help_print(args.verb, cli_args_flag(&args, "json"));
        return CLI_DONE;
    }
    if (cli_args_flag(&args, "version")) return print_version(cli_args_flag(&args, "json"));
    if (cli_args_count(&args, "threads") > embla_max_threads())
        return cli_usage("--threads is %s; the maximum on this machine is %d",
                         cli_args_text(&args, "threads"), embla_max_threads());
    if (!args.verb) {
        int column = 2 * CLI_WIDTH;
        fputs("usage: embla VERB [OPERANDS] [OPTIONS]\nverbs:", stderr);
        for (size_t n = 0; cli_verbs[n]; n++) {
            int length = 1 + (int)strlen(cli_verbs[n]->name);
            if (column + length > CLI_WIDTH) column = fprintf(stderr, "\n ") - 1;
            column += fprintf(stderr, " %s", cli_verbs[n]->name);
        }
        fputs("\nSee 'embla help', or try 'embla demo'.\n", stderr);
        return CLI_USAGE;
    }
    if (!args.verb->ranks && embla_comm_launched() && !cli_args_flag(&args, "quiet"))
        cli_complain("note: %s does without MPI: each process of the job runs it by itself",
                     args.verb->name);
    code = cli_inputs_open(&args);
    if (code == CLI_DONE) code = args.verb->run(&args);
    cli_inputs_close();
    const bool skipped = cli_skipped_any();
    return code == CLI_DONE && skipped ? CLI_WANTING : code;
}

int main(int argc, char **argv)
{
    cli_host_prepare(&argc, &argv);
    cli_environment_prepare();
    /* A file that is truncated while it is read gives an error message, not a crash. */
    if (embla_guard() != EMBLA_OK) return cli_failed("%s", embla_error());
    int code = cli_run(argc, argv);
    if (!cli_out_finish()) {
        if (cli_is_pipe_error(errno)) cli_end_by_pipe(); /* if no signal did that */
        return cli_failed("cannot write the output: %s", strerror(errno));
    }
    return code;
}
