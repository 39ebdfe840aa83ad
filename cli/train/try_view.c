/* SPDX-License-Identifier: Apache-2.0 */
/* Prints an experiment: a table with a row for each combination, which appears when its runs are
 * done, or one JSON object.
 */
#include "train/try.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/out.h"
#include "train/train_view.h"

enum { LOSS = 10, PARAMETERS = 12, SECONDS = 9 }; /* columns */

/* ---- the beginning ---- */

const char *cli_try_time(double seconds, char text[CLI_CELL])
{
    if (seconds < 1)
        (void)snprintf(text, CLI_CELL, "less than a second");
    else if (seconds < 120)
        (void)snprintf(text, CLI_CELL, "about %.0f s", seconds);
    else if (seconds < 7200)
        (void)snprintf(text, CLI_CELL, "about %.0f minutes", seconds / 60);
    else
        (void)snprintf(text, CLI_CELL, "about %.1f hours", seconds / 3600);
    return text;
}

/* The columns of an axis: its name and its values. */
static int axis_width(const cli_try_axis *axis)
{
    size_t width = strlen(axis->name);
    for (size_t i = 0; i < axis->count; i++)
        if (strlen(axis->values[i]) > width) width = strlen(axis->values[i]);
    return (int)width;
}

void cli_try_show_facts(const cli_try *x, size_t left)
{
    char runs[CLI_CELL], combinations[CLI_CELL], seeds[CLI_CELL * 3] = "", number[CLI_CELL];
    char finished[CLI_CELL * 3] = "";
    size_t all = x->combinations * x->seeds;
    cli_view_text(&x->base);
    if (x->share_is_ours)
        cli_out_fact("note", "a tenth of the documents is set aside, because --try compares "
                             "validation losses; --validation X sets another share");
    if (x->seeds > 1)
        (void)snprintf(seeds, sizeof seeds, " x %zu seeds (%" PRId64 " to %" PRId64 ")", x->seeds,
                       x->first_seed, x->first_seed + (int64_t)x->seeds - 1);
    if (left < all)
        (void)snprintf(finished, sizeof finished, "; %s already trained",
                       cli_commas((int64_t)(all - left), number));
    cli_out_fact("runs", "%s: %s%s, all on the same text in the same order%s",
                 cli_commas((int64_t)all, runs),
                 cli_plural((int64_t)x->combinations, "combination", combinations), seeds,
                 finished);
    cli_out_fact("time", "%s, by a few steps of each combination", cli_try_time(x->left, number));
    putchar('\n');
}

/* ---- the table ---- */

/* Whether parameters and seconds fit on the terminal beside the losses. */
static bool has_costs(const cli_try *x)
{
    int columns = LOSS + (x->seeds > 1 ? 2 * (LOSS + 2) : 0) + PARAMETERS + SECONDS;
    for (size_t i = 0; i < x->axis_count; i++) columns += axis_width(&x->axes[i]) + 2;
    return cli_out_fits(columns);
}

void cli_try_show_heading(const cli_try *x)
{
    for (size_t i = 0; i < x->axis_count; i++)
        printf("%-*s  ", axis_width(&x->axes[i]), x->axes[i].name);
    printf("%*s", LOSS, "validation");
    if (x->seeds > 1) printf("  %*s  %*s", LOSS, "lowest", LOSS, "highest");
    if (has_costs(x)) printf("%*s%*s", PARAMETERS, "parameters", SECONDS, "seconds");
    putchar('\n');
    (void)fflush(stdout);
}

void cli_try_show_row(const cli_try *x, size_t combination)
{
    cli_try_summary s;
    char number[CLI_CELL], text[1024];
    int used = 0;
    cli_try_sum(x, combination, &s);
    if (s.trained + s.failed == 0) return;
    for (size_t i = 0; i < x->axis_count; i++)
        used += printf("%-*s  ", axis_width(&x->axes[i]), cli_try_value(x, combination, i));
    if (s.trained > 0) {
        printf("%*.4f", LOSS, s.mean);
        if (x->seeds > 1) printf("  %*.4f  %*.4f", LOSS, s.lowest, LOSS, s.highest);
        if (has_costs(x))
            printf("%*s%*.*f", PARAMETERS, cli_commas(s.parameters, number), SECONDS,
                   s.seconds < 10 ? 3 : 1, s.seconds);
        putchar('\n');
    }
    if (s.failed > 0) {
        if (s.trained > 0) printf("%*s", used, "");
        if (s.trained > 0)
            (void)snprintf(text, sizeof text, "%zu of %zu failed; seed %" PRId64 ": %s", s.failed,
                           s.failed + s.trained, s.reason_of_seed, s.reason);
        else
            (void)snprintf(text, sizeof text, "failed: %s", s.reason);
        cli_out_wrapped(text, used, used);
    }
    (void)fflush(stdout);
}

/* ---- the end ---- */

/* The combination with the lowest mean; x->combinations if none was trained. */
static size_t find_lowest(const cli_try *x, size_t *trained)
{
    size_t lowest = x->combinations;
    double mean = INFINITY;
    cli_try_summary s;
    *trained = 0;
    for (size_t c = 0; c < x->combinations; c++) {
        cli_try_sum(x, c, &s);
        if (s.trained == 0) continue;
        (*trained)++;
        if (s.mean < mean) lowest = c, mean = s.mean;
    }
    return lowest;
}

/* How many combinations have a run that is as good as the worst run of the lowest one: for them
 * another seed may turn the order around. */
static size_t count_near(const cli_try *x, size_t lowest)
{
    cli_try_summary best, s;
    size_t count = 0;
    cli_try_sum(x, lowest, &best);
    for (size_t c = 0; c < x->combinations; c++) {
        cli_try_sum(x, c, &s);
        count += c != lowest && s.lowest <= best.highest; /* false for a NaN */
    }
    return count;
}

void cli_try_show_end(const cli_try *x)
{
    char name[CLI_TRY_NAME], near[CLI_CELL * 3] = "", number[CLI_CELL];
    cli_try_summary s;
    size_t trained, lowest = find_lowest(x, &trained);
    if (x->quiet || trained == 0) return;
    cli_try_sum(x, lowest, &s);
    size_t others = s.trained > 1 ? count_near(x, lowest) : 0;
    if (others > 0)
        (void)snprintf(near, sizeof near, "; the losses of %s overlap with its own",
                       cli_plural((int64_t)others, "other", number));
    putchar('\n');
    if (trained > 1)
        cli_out_fact("lowest", "%.4f: %s%s", s.mean, cli_try_name(x, lowest, ", ", name), near);
    if (x->folder) {
        cli_out_fact("written", "%s: a folder for each run", x->folder);
        cli_out_fact("next", "embla generate %s/%s,seed=%" PRId64, x->folder,
                     cli_try_name(x, lowest, ",", name),
                     x->first_seed + (int64_t)(s.best % x->seeds));
    }
    if (x->plot) cli_out_written(x->args, x->plot, false);
}

/* ---- JSON ---- */

static void json_settings(const cli_try *x, size_t combination, cli_json *json)
{
    cli_json_open(json, "settings", '{');
    for (size_t i = 0; i < x->axis_count; i++)
        cli_json_text(json, x->axes[i].name, cli_try_value(x, combination, i));
    cli_json_close(json, '}');
}

static void json_run(const cli_try *x, size_t run, cli_json *json)
{
    const cli_try_result *r = &x->results[run];
    char *folder = x->folder ? cli_try_folder(x, run) : NULL;
    bool trained = r->done && !r->reason;
    cli_json_open(json, NULL, '{');
    json_settings(x, run / x->seeds, json);
    cli_json_whole(json, "seed", x->first_seed + (int64_t)(run % x->seeds));
    cli_json_text(json, "folder", folder);
    cli_json_text(json, "failed", r->reason);
    cli_json_real(json, "validation", trained ? r->validation : NAN);
    cli_json_real(json, "mean_loss", trained ? r->loss : NAN);
    cli_json_real(json, "seconds", trained ? r->seconds : NAN);
    cli_json_close(json, '}');
    free(folder);
}

static void json_combination(const cli_try *x, size_t combination, cli_json *json)
{
    cli_try_summary s;
    cli_try_sum(x, combination, &s);
    cli_json_open(json, NULL, '{');
    json_settings(x, combination, json);
    cli_json_whole(json, "trained", (int64_t)s.trained);
    cli_json_whole(json, "failed", (int64_t)s.failed);
    cli_json_real(json, "validation", s.mean);
    cli_json_real(json, "lowest", s.lowest);
    cli_json_real(json, "highest", s.highest);
    cli_json_real(json, "deviation", s.deviation);
    cli_json_whole(json, "parameters", s.parameters);
    cli_json_real(json, "seconds", s.trained > 0 ? s.seconds : NAN);
    cli_json_close(json, '}');
}

void cli_try_json(const cli_try *x)
{
    cli_json json = {0};
    double kept = x->base.corpus_options.validation;
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "text", x->base.text);
    cli_json_real(&json, "validation_share", kept > 0 ? kept : 0.1);
    cli_json_bool(&json, "complete", !x->stopped);
    cli_json_open(&json, "runs", '[');
    for (size_t i = 0; i < x->combinations * x->seeds; i++)
        if (x->results[i].done) json_run(x, i, &json);
    cli_json_close(&json, ']');
    cli_json_open(&json, "combinations", '[');
    for (size_t c = 0; c < x->combinations; c++) json_combination(x, c, &json);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    putchar('\n');
}
