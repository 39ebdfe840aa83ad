/* SPDX-License-Identifier: Apache-2.0 */
/* embla doctor: do the parts of a checkpoint agree?
 *
 * Different programs write table, head, tokenizer and config, and most vocabulary errors are silent
 * mismatches between them. Each finding gives both numbers and a remedy. The exit code is 3 if
 * there is an error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla.h"

#include "core/out.h"
#include "core/verbs.h"
#include "verbs/doctor.h"

static const char *const level_names[] = {"fine", "skipped", "warning", "error"};

/* ---- output ---- */

/* The most serious first; within a level, in the order of the checks. */
static void print_text(const cli_doctor *d)
{
    char text[3][CLI_CELL];
    for (int level = CLI_ERROR; level >= CLI_FINE; level--) {
        for (size_t i = 0; i < d->count; i++) {
            const cli_finding *finding = &d->findings[i];
            if ((int)finding->level != level) continue;
            cli_out_fact(level_names[level], "%s: %s", finding->check, finding->found);
            if (finding->remedy) cli_out_fact("", "-> %s", finding->remedy);
        }
    }
    char skipped[CLI_CELL] = "";
    if (d->of_level[CLI_SKIPPED] > 0)
        snprintf(skipped, sizeof skipped, ", %zu skipped", d->of_level[CLI_SKIPPED]);
    printf("\n%s, %s, %zu fine%s\n", cli_plural((int64_t)d->of_level[CLI_ERROR], "error", text[0]),
           cli_plural((int64_t)d->of_level[CLI_WARNING], "warning", text[1]), d->of_level[CLI_FINE],
           skipped);
}

static void print_json(const cli_doctor *d, const char *path, int code)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "checkpoint", path);
    cli_json_bool(&json, "good", code == CLI_DONE);
    cli_json_whole(&json, "errors", (int64_t)d->of_level[CLI_ERROR]);
    cli_json_whole(&json, "warnings", (int64_t)d->of_level[CLI_WARNING]);
    cli_json_open(&json, "findings", '[');
    for (size_t i = 0; i < d->count; i++) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "level", level_names[d->findings[i].level]);
        cli_json_text(&json, "check", d->findings[i].check);
        cli_json_text(&json, "found", d->findings[i].found);
        cli_json_text(&json, "remedy", d->findings[i].remedy);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    putchar('\n');
}

/* ---- the verb ---- */

/* Notes are fine, except an unused config: then flag and sizes are unknown. */
static void check_notes(cli_doctor *d)
{
    static const char unused[] = "config.json is not used";
    size_t count;
    const char *const *notes = embla_checkpoint_notes(d->model.checkpoint, &count);
    for (size_t n = 0; n < count; n++) {
        bool config = strncmp(notes[n], unused, sizeof unused - 1) == 0;
        cli_found(d, config ? CLI_WARNING : CLI_FINE, config ? "config" : "note",
                  config ? "repair config.json: its values could not be compared" : NULL, "%s",
                  notes[n]);
    }
}

static int run(const cli_args *args)
{
    cli_doctor d = {.quiet = cli_args_flag(args, "quiet"),
                    .threads = (int)cli_args_count(args, "threads")};
    const char *path = args->operands[0];
    int code = cli_model_open(args, path, &d.model);
    if (code != CLI_DONE) return code;
    d.gguf = strcmp(embla_checkpoint_format(d.model.checkpoint), "gguf") == 0;
    cli_doctor_shapes(&d);
    cli_doctor_values(&d);
    check_notes(&d);
    bool wanting =
        d.of_level[CLI_ERROR] > 0 || (cli_args_flag(args, "strict") && d.of_level[CLI_WARNING] > 0);
    code = wanting ? CLI_WANTING : CLI_DONE;
    if (d.no_memory)
        code = cli_failed("no memory for all findings");
    else if (cli_args_flag(args, "json"))
        print_json(&d, path, code);
    else
        print_text(&d);
    free(d.findings);
    cli_model_free(&d.model);
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
