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

#include "doctor.h"
#include "out.h"
#include "token.h"
#include "verbs.h"

static const char *const level_names[] = {"fine", "skipped", "warning", "error"};

/* ---- findings ---- */

void embla_found(embla_doctor *d, embla_level level, const char *check, const char *remedy,
                 const char *format, ...)
{
    va_list list;
    if (d->count == d->room) {
        size_t room = d->room > 0 ? 2 * d->room : 16;
        embla_finding *more = realloc(d->findings, room * sizeof *more);
        if (!more) {
            d->no_memory = true;
            return;
        }
        d->findings = more;
        d->room = room;
    }
    embla_finding *finding = &d->findings[d->count++];
    *finding = (embla_finding){.level = level, .check = check, .remedy = remedy};
    va_start(list, format);
    vsnprintf(finding->found, sizeof finding->found, format, list);
    va_end(list);
    d->of_level[level]++;
}

bool embla_doctor_next(const embla_doctor *d, embla_role role, size_t *n, embla_tensor *out)
{
    embla_tensor tensor;
    while (embla_checkpoint_tensor(d->model.checkpoint, (*n)++, &tensor) == EMBLA_OK) {
        if (tensor.role != role) continue;
        *out = tensor;
        return true;
    }
    return false;
}

const char *embla_doctor_tokens(const embla_doctor *d, int64_t first, int64_t count, char text[640])
{
    size_t used = 0;
    for (int64_t i = 0; i < count && i < 10 && used < 560; i++) {
        char shown[EMBLA_WORD_TEXT] = "";
        size_t length = 0;
        const char *word =
            d->model.vocab ? embla_vocab_word(d->model.vocab, first + i, &length) : NULL;
        if (word) (void)embla_word_show(word, length, false, EMBLA_WORD_COLUMNS, shown);
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
static void print_text(const embla_doctor *d)
{
    char text[3][EMBLA_CELL];
    for (int level = EMBLA_ERROR; level >= EMBLA_FINE; level--) {
        for (size_t i = 0; i < d->count; i++) {
            const embla_finding *finding = &d->findings[i];
            if ((int)finding->level != level) continue;
            embla_out_fact(level_names[level], "%s: %s", finding->check, finding->found);
            if (finding->remedy) embla_out_fact("", "-> %s", finding->remedy);
        }
    }
    char skipped[EMBLA_CELL] = "";
    if (d->of_level[EMBLA_SKIPPED] > 0)
        snprintf(skipped, sizeof skipped, ", %zu skipped", d->of_level[EMBLA_SKIPPED]);
    printf("\n%s, %s, %zu fine%s\n",
           embla_plural((int64_t)d->of_level[EMBLA_ERROR], "error", text[0]),
           embla_plural((int64_t)d->of_level[EMBLA_WARNING], "warning", text[1]),
           d->of_level[EMBLA_FINE], skipped);
}

static void print_json(const embla_doctor *d, const char *path, int code)
{
    embla_json json = {0};
    embla_json_open(&json, NULL, '{');
    embla_json_text(&json, "checkpoint", path);
    embla_json_bool(&json, "good", code == EMBLA_DONE);
    embla_json_whole(&json, "errors", (int64_t)d->of_level[EMBLA_ERROR]);
    embla_json_whole(&json, "warnings", (int64_t)d->of_level[EMBLA_WARNING]);
    embla_json_open(&json, "findings", '[');
    for (size_t i = 0; i < d->count; i++) {
        embla_json_open(&json, NULL, '{');
        embla_json_text(&json, "level", level_names[d->findings[i].level]);
        embla_json_text(&json, "check", d->findings[i].check);
        embla_json_text(&json, "found", d->findings[i].found);
        embla_json_text(&json, "remedy", d->findings[i].remedy);
        embla_json_close(&json, '}');
    }
    embla_json_close(&json, ']');
    embla_json_close(&json, '}');
    putchar('\n');
}

/* ---- the verb ---- */

/* A note is fine, but a config that says nothing leaves the flag and the sizes unknown. */
static void check_notes(embla_doctor *d)
{
    static const char unused[] = "config.json is not used";
    const char *note;
    for (size_t n = 0; (note = embla_checkpoint_note(d->model.checkpoint, n)); n++) {
        bool config = strncmp(note, unused, sizeof unused - 1) == 0;
        embla_found(d, config ? EMBLA_WARNING : EMBLA_FINE, config ? "config" : "note",
                    config ? "mend config.json: what it says could not be compared" : NULL, "%s",
                    note);
    }
}

static int run(const embla_args *args)
{
    embla_doctor d = {.quiet = embla_args_flag(args, "quiet"),
                      .threads = (int)embla_args_count(args, "threads")};
    const char *path = args->operands[0];
    int code = embla_model_open(args, path, &d.model);
    if (code != EMBLA_DONE) return code;
    d.gguf = strcmp(embla_checkpoint_format(d.model.checkpoint), "gguf") == 0;
    embla_doctor_shapes(&d);
    embla_doctor_values(&d);
    check_notes(&d);
    bool wanting = d.of_level[EMBLA_ERROR] > 0 ||
                   (embla_args_flag(args, "strict") && d.of_level[EMBLA_WARNING] > 0);
    code = wanting ? EMBLA_WANTING : EMBLA_DONE;
    if (d.no_memory)
        code = embla_failed("no memory for all findings");
    else if (embla_args_flag(args, "json"))
        print_json(&d, path, code);
    else
        print_text(&d);
    free(d.findings);
    embla_model_free(&d.model);
    return code;
}

static const embla_option options[] = {
    {.name = "strict", .help = "a warning counts as an error"}, EMBLA_OPEN_OPTIONS, {.name = NULL}};

const embla_verb embla_verb_doctor = {
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
