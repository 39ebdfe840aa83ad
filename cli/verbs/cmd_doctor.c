/* SPDX-License-Identifier: Apache-2.0 */
/* embla doctor: do the parts of a checkpoint agree?
 *
 * Table, head, tokenizer and config are written by different programs, and most of what
 * goes wrong with vocabularies goes wrong between them, without a word. Each finding says
 * what was found with both numbers, and what helps. Exit code 3 where something is wrong.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla.h"

#include "core/out.h"
#include "core/token.h"
#include "core/verbs.h"
#include "verbs/doctor.h"

static const char *const level_names[] = {"fine", "skipped", "warning", "error"};

/* ---- findings ---- */

void cli_found(cli_doctor *d, cli_level level, const char *check, const char *remedy,
               const char *format, ...)
{
    va_list list;
    if (d->count == d->room) {
        size_t room = d->room > 0 ? 2 * d->room : 16;
        cli_finding *more = realloc(d->findings, room * sizeof *more);
        if (!more) {
            d->no_memory = true;
            return;
        }
        d->findings = more;
        d->room = room;
    }
    cli_finding *finding = &d->findings[d->count++];
    *finding = (cli_finding){.level = level, .check = check, .remedy = remedy};
    va_start(list, format);
    vsnprintf(finding->found, sizeof finding->found, format, list);
    va_end(list);
    d->of_level[level]++;
}

bool cli_doctor_next(const cli_doctor *d, embla_role role, size_t *n, embla_tensor *out)
{
    size_t count;
    const embla_tensor *tensors = embla_checkpoint_tensors(d->model.checkpoint, &count);
    while (*n < count) {
        const embla_tensor *tensor = &tensors[(*n)++];
        if (tensor->role != role) continue;
        *out = *tensor;
        return true;
    }
    return false;
}

const char *cli_doctor_tokens(const cli_doctor *d, int64_t first, int64_t count, char text[640])
{
    size_t used = 0;
    for (int64_t i = 0; i < count && i < 10 && used < 560; i++) {
        char shown[CLI_WORD_TEXT] = "";
        size_t length = 0;
        const char *word = cli_word_of(d->model.vocab, first + i, &length);
        if (word) (void)cli_word_show(word, length, false, CLI_WORD_COLUMNS, shown);
        const char *quote = word && shown[0] != '"' ? "\"" : ""; /* one with a space has its own */
        used +=
            (size_t)snprintf(text + used, 640 - used, "%s%" PRId64 "%s%s%s%s", i > 0 ? ", " : "",
                             first + i, word ? " " : "", quote, shown, quote);
    }
    if (count > 10) snprintf(text + used, 640 - used, " ..");
    return text;
}

/* ---- what is printed ---- */

/* The worst first; within a level in the order of the checks. */
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

/* A note is fine, but a config that says nothing leaves the flag and the sizes unknown. */
static void check_notes(cli_doctor *d)
{
    static const char unused[] = "config.json is not used";
    size_t count;
    const char *const *notes = embla_checkpoint_notes(d->model.checkpoint, &count);
    for (size_t n = 0; n < count; n++) {
        bool config = strncmp(notes[n], unused, sizeof unused - 1) == 0;
        cli_found(d, config ? CLI_WARNING : CLI_FINE, config ? "config" : "note",
                  config ? "mend config.json: what it says could not be compared" : NULL, "%s",
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
    {.name = "strict", .help = "a warning counts as an error"}, CLI_OPEN_OPTIONS, {.name = NULL}};

const cli_verb cli_verb_doctor = {
    .name = "doctor",
    .synopsis = "FILE",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = 1,
    .about = "whether table, head, tokenizer and config agree",
    .text = "FILE is a checkpoint as 'embla info' takes it. Compares the rows of the table with "
            "the tokens of the tokenizer and with the config; its dim with the config; the head "
            "with the table, in shape and, if both are stored, row by row; the head with the flag "
            "that says whether it is tied; biases, positions, per-layer tables and copies. Then "
            "reads all rows of the tables for NaN, infinities and zeros.\n\n"
            "Each finding is an error, a warning, fine, or skipped where there is nothing to "
            "compare, with what helps after the arrow. The "
            "exit code is 3 where there is an error (with --strict: or a warning), and 1 only "
            "where the checkpoint could not be opened.",
    .example = "embla doctor examples/quick-brown-fox.vec",
    .options = options,
    .run = run};
