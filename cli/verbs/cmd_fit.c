/* SPDX-License-Identifier: Apache-2.0 */
/* embla fit: weights and common components of a static model, fitted once to a corpus. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "embla_search.h"

#include "core/complain.h"
#include "core/ending.h"
#include "core/inputs.h"
#include "core/out.h"
#include "core/progress.h"
#include "core/static_model.h"
#include "core/verbs.h"

static int read_options(const cli_args *args, embla_fit_options *o)
{
    const char *text = cli_args_text(args, "a");
    char *end = NULL;
    double a = text ? strtod(text, &end) : 0.0;
    if (text && (end == text || *end != '\0' || !isfinite(a) || a < 0))
        return cli_usage("--a is '%.60s'; it must be a number of 0 or greater", text);
    if (text && a == 0 && cli_args_given(args, "counts"))
        return cli_usage("--counts has no effect with --a 0, which means no weights");
    *o = (embla_fit_options){.a = text && a == 0 ? -1.0 : a,
                             .components = cli_args_count(args, "components"),
                             .counts = cli_input_path(cli_args_text(args, "counts")),
                             .lines = cli_args_count(args, "lines"),
                             .threads = (int)cli_args_count(args, "threads")};
    if (o->components == 0) o->components = -1;
    return CLI_DONE;
}

static void print_facts(const char *path, const embla_fit_report *r)
{
    char text[3][CLI_CELL];
    cli_out_fact("lines", "%s of %s", cli_commas(r->used, text[0]), cli_commas(r->lines, text[1]));
    cli_out_fact("tokens", "%s; %s more are unknown", cli_commas(r->tokens, text[0]),
                 cli_commas(r->unknown, text[1]));
    if (r->a > 0)
        cli_out_fact("weights", "a / (a + p) with a = %g; p by %s", r->a, r->weights);
    else
        cli_out_fact("weights", "none");
    if (r->components == 0)
        cli_out_fact("components", "none");
    else
        cli_out_fact("components", "%zu, with %.1f%% of the squared length of the vectors",
                     r->components, 100.0 * r->share);
    cli_out_fact("written", "%s", path);
}

static void print_json(const char *path, const embla_fit_report *r)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "file", path);
    cli_json_whole(&json, "lines", r->lines);
    cli_json_whole(&json, "used", r->used);
    cli_json_whole(&json, "tokens", r->tokens);
    cli_json_whole(&json, "unknown", r->unknown);
    cli_json_text(&json, "weights", r->weights);
    cli_json_real(&json, "a", r->a);
    cli_json_whole(&json, "components", (int64_t)r->components);
    cli_json_real(&json, "share", r->share);
    cli_json_close(&json, '}');
    putchar('\n');
}

static int fit(const cli_args *args, const cli_static_model *model, embla_fit_options *o)
{
    const char *path = cli_args_text(args, "output");
    cli_progress progress;
    embla_fit_report report = {0};
    o->progress = cli_progress_call;
    o->context = &progress;
    cli_progress_begin(&progress, cli_args_flag(args, "quiet"));
    embla_status status =
        embla_fit(model->encoder, cli_input_path(args->operands[1]), path, o, &report);
    cli_progress_end(&progress, status == EMBLA_OK ? "interrupted; the file is complete"
                                                   : "interrupted; nothing has been written");
    if (status != EMBLA_OK) return cli_failed("%s", embla_error());
    if (cli_args_flag(args, "json"))
        print_json(path, &report);
    else if (!cli_args_flag(args, "quiet"))
        print_facts(path, &report);
    return CLI_DONE;
}

static int run(const cli_args *args)
{
    cli_static_model model = {0};
    embla_fit_options o;
    const char *path = cli_args_text(args, "output");
    if (args->operand_count < 2) return cli_usage("fit needs a corpus: embla fit MODEL CORPUS");
    if (!path) return cli_usage("fit needs --output FILE");
    int code = read_options(args, &o);
    if (code == CLI_DONE) code = cli_inputs_check(args, path);
    if (code == CLI_DONE) code = cli_ending_no_picture(path, "a fit");
    if (code == CLI_DONE) code = cli_out_check_new(path, cli_args_flag(args, "force"));
    if (code == CLI_DONE) code = cli_static_model_open(args, false, &model);
    if (code == CLI_DONE) code = fit(args, &model, &o);
    cli_static_model_free(&model);
    return code;
}

static const cli_option options[] = {
    {.name = "output", .letter = 'o', .value = "FILE", .help = "file to write"},
    {.name = "force", .help = "replace FILE if it exists"},
    {.name = "components",
     .value = "N",
     .standard = "10",
     .count = true,
     .help = "common components to remove from vectors; 0 means none"},
    {.name = "a",
     .value = "X",
     .help = "multiply the row of a word by X / (X + p), where p is its share of all text; 0 means "
             "no weights (default: 0.001 for word vectors, 0 for other models)"},
    {.name = "counts",
     .value = "COUNTS",
     .reads = CLI_READS_FILE,
     .help = "file of lines 'word count', for p (default: the counts in the model's file; without "
             "them p falls with the rank of a word)"},
    {.name = "lines",
     .value = "N",
     .standard = "200000",
     .count = true,
     .least = 1,
     .help = "use at most N lines of CORPUS, evenly spread"},
    CLI_STATIC_MODEL_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_fit = {
    .name = "fit",
    .synopsis = "MODEL CORPUS -o FILE",
    .operand = "MODEL",
    .operands_least = 1,
    .operands_most = 2,
    .files = 2,
    .about = "fit word weights and common components to a corpus",
    .text =
        "Means of word vectors are dominated by frequent words, and by directions that all texts "
        "share. The fit gives frequent words less weight, and finds these directions in the "
        "vectors of the lines of CORPUS (SIF: Arora, Liang and Ma, 2017). 'embla encode', 'embla "
        "search' and 'embla eval --sentences' use it with --fit FILE.\n\n"
        "MODEL is any model of 'embla encode'. CORPUS is a text file with one text on each line, "
        "of "
        "the kind that will be encoded. FILE has a checksum of MODEL, and is refused for any "
        "other.",
    .example = "embla fit words.vec village.txt -o words.fit --components 2 --force",
    .options = options,
    .run = run};
