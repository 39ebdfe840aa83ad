/* SPDX-License-Identifier: Apache-2.0 */
/* embla doctor: do the parts of a checkpoint agree? embla_doctor_new finds out; here its findings
 * are printed. The exit code is 3 if there is an error.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "embla_lab.h"

#include "core/model.h"
#include "core/out.h"
#include "core/progress.h"
#include "core/verbs.h"

/* ---- output ---- */

/* The sentence of a finding. The library cannot know how its caller names a tensor. */
static const char *found_text(const embla_finding *finding, char text[1024])
{
    static const char caller[] = "named by the caller";
    size_t length = strlen(finding->found), tail = sizeof caller - 1;
    bool named = strcmp(finding->check, "table") == 0 && length >= tail &&
                 strcmp(finding->found + length - tail, caller) == 0;
    if (!named) return finding->found;
    snprintf(text, 1024, "%.*snamed on the command line", (int)(length - tail), finding->found);
    return text;
}

/* The most serious first; within a level, in the order of the checks. */
static void print_text(const embla_doctor *doctor, const embla_doctor_info *info)
{
    char text[2][CLI_CELL], sentence[1024];
    size_t count;
    const embla_finding *findings = embla_doctor_findings(doctor, &count);
    for (int level = EMBLA_FINDING_LEVEL_ERROR; level >= EMBLA_FINDING_LEVEL_FINE; level--) {
        for (size_t i = 0; i < count; i++) {
            const embla_finding *finding = &findings[i];
            if ((int)finding->level != level) continue;
            cli_out_fact(embla_finding_level_name(finding->level), "%s: %s", finding->check,
                         found_text(finding, sentence));
            if (finding->remedy) cli_out_fact("", "-> %s", finding->remedy);
        }
    }
    printf("\n%s, %s, %" PRId64 " fine", cli_plural(info->errors, "error", text[0]),
           cli_plural(info->warnings, "warning", text[1]), info->fine);
    if (info->skipped > 0) printf(", %" PRId64 " skipped", info->skipped);
    putchar('\n');
}

static void print_json(const embla_doctor *doctor, const embla_doctor_info *info, const char *path,
                       bool good)
{
    cli_json json = {0};
    char sentence[1024];
    size_t count;
    const embla_finding *findings = embla_doctor_findings(doctor, &count);
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "checkpoint", path);
    cli_json_bool(&json, "good", good);
    cli_json_whole(&json, "errors", info->errors);
    cli_json_whole(&json, "warnings", info->warnings);
    cli_json_open(&json, "findings", '[');
    for (size_t i = 0; i < count; i++) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "level", embla_finding_level_name(findings[i].level));
        cli_json_text(&json, "check", findings[i].check);
        cli_json_text(&json, "found", found_text(&findings[i], sentence));
        cli_json_text(&json, "remedy", findings[i].remedy);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    putchar('\n');
}

/* ---- the verb ---- */

/* Signals are caught from the first call on. Before it the library compares table and head without
 * a call; a signal then ends the program at once. */
typedef struct {
    cli_progress progress;
    bool quiet, begun;
} watch;

static bool watch_call(void *context, const char *what, int64_t done, int64_t total)
{
    watch *w = context;
    if (!w->begun) cli_progress_begin(&w->progress, w->quiet);
    w->begun = true;
    return cli_progress_call(&w->progress, what, done, total);
}

static int print_findings(const cli_args *args, const embla_doctor *doctor)
{
    embla_doctor_info info;
    if (embla_doctor_describe(doctor, &info) != EMBLA_OK) return cli_failed("%s", embla_error());
    bool good = info.errors == 0 && !(cli_args_flag(args, "strict") && info.warnings > 0);
    if (cli_args_flag(args, "json"))
        print_json(doctor, &info, args->operands[0], good);
    else
        print_text(doctor, &info);
    return good ? CLI_DONE : CLI_WANTING;
}

static int run(const cli_args *args)
{
    watch w = {.quiet = cli_args_flag(args, "quiet")};
    const embla_doctor_options options = {
        .threads = (int)cli_args_count(args, "threads"), .progress = watch_call, .context = &w};
    embla_checkpoint *checkpoint = NULL;
    embla_doctor *doctor = NULL;
    int code = cli_checkpoint_open(args, args->operands[0], &checkpoint);
    if (code != CLI_DONE) return code;
    embla_status status = embla_doctor_new(checkpoint, &options, &doctor);
    if (w.begun) cli_progress_end(&w.progress, "interrupted");
    code = status == EMBLA_OK ? print_findings(args, doctor) : cli_failed("%s", embla_error());
    embla_doctor_free(doctor);
    embla_checkpoint_free(checkpoint);
    return code;
}

static const cli_option options[] = {
    {.name = "strict", .help = "treat warnings as errors"}, CLI_OPEN_OPTIONS, {.name = NULL}};

const cli_verb cli_verb_doctor = {
    .name = "doctor",
    .synopsis = "FILE",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = 1,
    .files = 1,
    .about = "check that table, head, tokenizer and config agree",
    .text =
        "FILE is a checkpoint as for 'embla info'. Compares:\n- the rows of the table with the "
        "tokens of the tokenizer and with the config;\n- its dim with the config;\n- the head with "
        "the table: the shape and, if both are stored, every row;\n- the head with the flag that "
        "says whether it is tied;\n- biases, positions, per-layer tables and copies.\nThen it "
        "reads all rows of the tables and reports NaN, infinities and rows of zeros.\n\n"
        "A finding is an error, a warning, fine, or skipped if there is nothing to compare. The "
        "remedy follows the arrow. The exit code is 3 if there is an error (with --strict: or a "
        "warning), and 1 if the checkpoint cannot be opened.",
    .example = "embla doctor village",
    .options = options,
    .run = run};
