/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/eval_sentences.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_search.h"

#include "core/complain.h"
#include "core/inputs.h"
#include "core/out.h"
#include "core/progress.h"
#include "core/static_model.h"
#include "host/host.h"
#include "host/paths.h"

static void print_score(double score)
{
    if (isfinite(score))
        printf("%8.4f  ", score);
    else
        printf("%8s  ", "-");
}

static void print_text(const embla_eval_part *part, bool first)
{
    char text[2][CLI_CELL];
    if (first) printf("%8s  %8s  %9s  %9s  sentences\n", "spearman", "pearson", "covered", "asked");
    print_score(part->spearman);
    print_score(part->pearson);
    printf("%9s  %9s  ", cli_commas(part->covered, text[0]), cli_commas(part->asked, text[1]));
    cli_out_safe(cli_path_title(part->name));
    putchar('\n');
}

static void print_json(cli_json *json, const embla_eval_part *part)
{
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "file", part->name);
    cli_json_whole(json, "asked", part->asked);
    cli_json_whole(json, "covered", part->covered);
    cli_json_real(json, "spearman", part->spearman);
    cli_json_real(json, "pearson", part->pearson);
    cli_json_close(json, '}');
}

static int score(const cli_args *args, const cli_static_model *model, const char *path,
                 embla_eval_part *part)
{
    cli_progress progress;
    const embla_eval_options options = {.threads = (int)cli_args_count(args, "threads"),
                                        .progress = cli_progress_call,
                                        .context = &progress};
    cli_progress_begin(&progress, cli_args_flag(args, "quiet"));
    embla_status status =
        embla_eval_sentences(model->encoder, cli_input_path(path), &options, part);
    cli_progress_end(&progress, "interrupted");
    part->name = path; /* as typed */
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

static int score_all(const cli_args *args, const cli_static_model *model, embla_eval_part *parts,
                     size_t count)
{
    const bool as_json = cli_args_flag(args, "json");
    cli_json json = {0};
    int64_t covered = 0;
    int code = CLI_DONE;
    for (size_t i = 0; i < count && code == CLI_DONE; i++) {
        code = score(args, model, args->operands[i + 1], &parts[i]);
        covered += parts[i].covered;
    }
    if (code != CLI_DONE) return code;
    if (as_json) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "model", args->operands[0]);
        cli_json_text(&json, "compat", embla_compat_name(model->info.compat));
        cli_json_whole(&json, "components", (int64_t)model->info.components);
        cli_json_open(&json, "sentences", '[');
    }
    for (size_t i = 0; i < count; i++) {
        if (as_json)
            print_json(&json, &parts[i]);
        else
            print_text(&parts[i], i == 0);
    }
    if (as_json) {
        cli_json_close(&json, ']');
        cli_json_close(&json, '}');
        putchar('\n');
    }
    return covered > 0 ? CLI_DONE : cli_failed("no score: no pair has two sentences with a vector");
}

int cli_eval_sentences(const cli_args *args)
{
    cli_static_model model = {0};
    size_t count = args->operand_count - 1;
    embla_eval_part *parts = calloc(count, sizeof *parts);
    int code = parts ? cli_static_model_open(args, true, &model)
                     : cli_failed("no memory for %zu files", count);
    if (code == CLI_DONE) code = score_all(args, &model, parts, count);
    cli_static_model_free(&model);
    free(parts);
    return code;
}

/* The fields of a line that have several words. */
static int count_sentences(const char *line, char mark)
{
    int found = 0;
    while (*line) {
        size_t length = 0, words = 0;
        for (; line[length] && line[length] != mark; length++)
            words += isalpha((unsigned char)line[length]) &&
                     (length == 0 || isspace((unsigned char)line[length - 1]));
        found += words >= 2;
        line += length + (line[length] == mark);
    }
    return found;
}

bool cli_eval_has_sentences(const char *path)
{
    enum { LINES = 5 };
    char line[4096];
    bool found = false;
    FILE *file = cli_file_open(path, "r");
    for (int n = 0; file && n < LINES && !found && fgets(line, sizeof line, file); n++)
        found = count_sentences(line, strchr(line, '\t') ? '\t' : ',') >= 2;
    if (file) (void)fclose(file);
    return found;
}
