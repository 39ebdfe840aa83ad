/* SPDX-License-Identifier: Apache-2.0 */
/* The program `embla`: finds the verb, runs it, and makes sure its output arrived.
 *
 * stdout carries data and nothing else. Exit codes: 0 done, 1 failed, 2 wrong
 * usage, 3 checked and found wanting.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "embla.h"

#include "out.h"
#include "verbs.h"

const embla_verb *const embla_verbs[] = {
    &embla_verb_info,       &embla_verb_doctor,   &embla_verb_lookup,
    &embla_verb_near,       &embla_verb_analogy,  &embla_verb_eval,
    &embla_verb_health,     &embla_verb_spectrum, &embla_verb_diff,
    &embla_verb_map,        &embla_verb_rows,     &embla_verb_warm,
    &embla_verb_verify,     &embla_verb_train,    &embla_verb_generate,
    &embla_verb_convert,    &embla_verb_cost,     &embla_verb_bench,
    &embla_verb_completion, &embla_verb_help,     NULL};

const embla_option embla_global_options[] = {
    {.name = "json", .help = "print JSON, for programs"},
    {.name = "quiet", .letter = 'q', .help = "print no messages, only results and errors"},
    {.name = "threads",
     .value = "N",
     .standard = "0",
     .count = true,
     .help = "threads to work with; 0: the verb's own choice"},
    {.name = "help", .letter = 'h', .help = "print this help"},
    {.name = "version", .letter = 'V', .help = "print the version, kernel set and build"},
    {.name = NULL}};

static int print_version(bool as_json)
{
    const char *const names[] = {"version", "kernels", "build"};
    const char *const texts[] = {embla_version(), embla_kernels_name(), embla_build_info()};
    embla_json json = {0};
    if (!as_json) {
        printf("embla %s\n", texts[0]);
        for (size_t i = 1; i < 3; i++) printf("%-8s %s\n", names[i], texts[i]);
        return EMBLA_DONE;
    }
    embla_json_open(&json, NULL, '{');
    for (size_t i = 0; i < 3; i++) embla_json_text(&json, names[i], texts[i]);
    embla_json_close(&json, '}');
    putchar('\n');
    return EMBLA_DONE;
}

int embla_run(int argc, char **argv)
{
    embla_args args;
    int code = embla_args_parse(argc, argv, &args);
    if (code != EMBLA_DONE) return code;
    if (embla_args_flag(&args, "help")) {
        embla_help_print(args.verb, embla_args_flag(&args, "json"));
        return EMBLA_DONE;
    }
    if (embla_args_flag(&args, "version")) return print_version(embla_args_flag(&args, "json"));
    if (embla_args_count(&args, "threads") > embla_threads_most())
        return embla_usage("--threads: '%s' is more than %d, the most that are used here",
                           embla_args_text(&args, "threads"), embla_threads_most());
    if (!args.verb) {
        fputs("usage: embla VERB [OPERANDS] [OPTIONS]\nverbs:", stderr);
        for (size_t n = 0; embla_verbs[n]; n++) fprintf(stderr, " %s", embla_verbs[n]->name);
        fputs("\nSee 'embla help'.\n", stderr);
        return EMBLA_USAGE;
    }
    return args.verb->run(&args);
}

int main(int argc, char **argv)
{
    /* A reader that has seen enough (| head) ends us without a word, even where the
     * parent process told us to ignore the signal. */
    signal(SIGPIPE, SIG_DFL);
    /* A file that is cut short while we read it is a failure with a sentence, no crash. */
    if (embla_guard() != EMBLA_OK) return embla_failed("%s", embla_error());
    int code = embla_run(argc, argv);
    if (!embla_out_finish()) return embla_failed("cannot write the output: %s", strerror(errno));
    return code;
}
