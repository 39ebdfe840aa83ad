/* SPDX-License-Identifier: Apache-2.0 */
/* What is tried: --try NAME=VALUE,VALUE..
 *
 * A combination becomes a command line: that of the user with the values of the combination in it.
 * So a value is read and refused as if it had been typed as an option. What changes the tokens or
 * the validation text cannot be tried, because losses would not be comparable.
 */
#include "host/host.h"
#include "train/try.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS_MOST = 1000 };

/* The options that can be tried. A flag is tried as yes and no; `off` is the flag that says no. */
static const struct {
    const char *name, *off;
    bool flag;
} names[] = {{.name = "dim"},
             {.name = "heads"},
             {.name = "layers"},
             {.name = "length"},
             {.name = "positions"},
             {.name = "tied", .off = "untied", .flag = true},
             {.name = "token-spread"},
             {.name = "batch"},
             {.name = "steps"},
             {.name = "rate"},
             {.name = "final-rate"},
             {.name = "schedule"},
             {.name = "warm-up"},
             {.name = "beta1"},
             {.name = "beta2"},
             {.name = "decay"},
             {.name = "clip"},
             {.name = "dropout"},
             {.name = "loss"},
             {.name = "negatives"},
             {.name = "bf16", .flag = true},
             {.name = "ngram-rows"},
             {.name = "ngram-heads"},
             {.name = "ngram-dim"},
             {.name = "ngram-layer"},
             {.name = "ngram-rate"}};
enum { NAMES = sizeof names / sizeof names[0] };

static const char *name_at(size_t n)
{
    return n < NAMES ? names[n].name : NULL;
}

/* Index of a name of length bytes; NAMES if it is none. */
static size_t find_name(const char *name, size_t length)
{
    size_t n = 0;
    while (n < NAMES &&
           (strlen(names[n].name) != length || memcmp(names[n].name, name, length) != 0))
        n++;
    return n;
}

/* ---- reading ---- */

static int unknown_name(const char *name, size_t length)
{
    char list[512];
    int shown = (int)(length < 40 ? length : 40);
    if (length == 4 && memcmp(name, "seed", 4) == 0)
        return cli_usage("--try: for several seeds use --seeds N, which trains with N of them");
    return cli_usage("--try: '%.*s' cannot be tried; use one of %s", shown, name,
                     cli_choices_text(name_at, list, sizeof list));
}

/* Splits the values at the commas. */
static int split_values(cli_try_axis *axis)
{
    for (char *at = axis->list; at;) {
        char *comma = strchr(at, ',');
        if (comma) *comma = '\0';
        if (*at == '\0' || strlen(at) > CLI_TRY_VALUE)
            return cli_usage("--try %s: '%.60s' is not a value of --%s", axis->name, at,
                             axis->name);
        if (axis->count == CLI_TRY_VALUES)
            return cli_usage("--try %s has more than %d values", axis->name, CLI_TRY_VALUES);
        for (size_t i = 0; i < axis->count; i++)
            if (strcmp(axis->values[i], at) == 0)
                return cli_usage("--try %s: %s is there twice", axis->name, at);
        axis->values[axis->count++] = at;
        at = comma ? comma + 1 : NULL;
    }
    return CLI_DONE;
}

static int read_axis(const char *text, cli_try *x)
{
    size_t length = strcspn(text, "="), n = find_name(text, length);
    if (n == NAMES) return unknown_name(text, length);
    const char *name = names[n].name, *off = names[n].off;
    if (text[length] == '\0' || text[length + 1] == '\0')
        return cli_usage("--try %s needs values: --try %s=%s", name, name,
                         names[n].flag ? "yes,no" : "A,B,C");
    if (cli_args_given(x->args, name))
        return cli_usage("--%s and --try %s cannot be used together", name, name);
    if (off && cli_args_given(x->args, off))
        return cli_usage("--%s and --try %s cannot be used together", off, name);
    for (size_t i = 0; i < x->axis_count; i++)
        if (x->axes[i].name == name)
            return cli_usage("--try %s is there twice; write all values in one list", name);
    if (x->axis_count == CLI_TRY_AXES)
        return cli_usage("--try: at most %d options can be tried at once", CLI_TRY_AXES);
    cli_try_axis *axis = &x->axes[x->axis_count++];
    axis->name = name;
    axis->list = strdup(text + length + 1);
    return axis->list ? split_values(axis) : cli_failed("no memory for the values of --try");
}

/* What belongs to one training, or needs several processes. */
static int check_others(const cli_args *args)
{
    static const char *const refused[] = {"watch",    "sample-every", "every",
                                          "minutes",  "ngram-shared", "shard-ngrams",
                                          "patience", "shard-tokens"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (cli_args_given(args, refused[i]))
            return cli_usage("--%s cannot be used with --try, which trains many models; remove it",
                             refused[i]);
    if (args->operand_count == 0)
        return cli_usage("train --try needs a TEXT, also with --resume; see 'embla help train'");
    if (cli_args_given(args, "resume") && cli_args_given(args, "output"))
        return cli_usage("--resume names the folder of the runs; remove -o");
    return CLI_DONE;
}

int cli_try_read(const cli_args *args, cli_try *x)
{
    const char *text;
    x->args = args;
    x->json = cli_args_flag(args, "json");
    x->quiet = cli_args_flag(args, "quiet");
    x->resume = cli_args_given(args, "resume");
    x->folder = cli_args_text(args, x->resume ? "resume" : "output");
    x->plot = cli_args_text(args, "plot");
    x->first_seed = cli_args_count(args, "seed");
    x->seeds = cli_args_given(args, "seeds") ? cli_args_size(args, "seeds") : 1;
    if (x->seeds < 1 || x->seeds > SEEDS_MOST)
        return cli_usage("--seeds is %zu; it must be 1 to %d", x->seeds, SEEDS_MOST);
    if (x->first_seed > INT64_MAX - SEEDS_MOST)
        return cli_usage("--seed is too large for --seeds, which counts from it");
    int code = check_others(args);
    for (size_t n = 0; code == CLI_DONE && (text = cli_args_each(args, "try", n)); n++)
        code = read_axis(text, x);
    x->combinations = 1;
    for (size_t i = 0; code == CLI_DONE && i < x->axis_count; i++) {
        x->combinations *= x->axes[i].count;
        if (x->combinations * x->seeds > CLI_TRY_RUNS)
            code = cli_usage("--try: these are more than %d runs; try fewer values", CLI_TRY_RUNS);
    }
    return code;
}

void cli_try_free(cli_try *x)
{
    for (size_t i = 0; i < x->axis_count; i++) free(x->axes[i].list);
}

/* ---- a combination ---- */

const char *cli_try_value(const cli_try *x, size_t combination, size_t axis)
{
    for (size_t i = x->axis_count - 1; i > axis; i--) combination /= x->axes[i].count;
    return x->axes[axis].values[combination % x->axes[axis].count];
}

static int set_flag(cli_args *args, size_t n, const char *value)
{
    bool yes = strcmp(value, "yes") == 0;
    if (!yes && strcmp(value, "no") != 0)
        return cli_usage("--try %s: '%s' is unknown; use yes or no", names[n].name, value);
    if (yes) return cli_args_set(args, names[n].name, "");
    return names[n].off ? cli_args_set(args, names[n].off, "") : CLI_DONE;
}

int cli_try_settings(cli_try *x, size_t combination)
{
    int code = CLI_DONE;
    x->run_args = *x->args;
    cli_args_unset(&x->run_args, "plot");
    for (size_t i = 0; code == CLI_DONE && i < x->axis_count; i++) {
        const char *name = x->axes[i].name, *value = cli_try_value(x, combination, i);
        size_t n = find_name(name, strlen(name));
        code = names[n].flag ? set_flag(&x->run_args, n, value)
                             : cli_args_set(&x->run_args, name, value);
    }
    return code;
}

const char *cli_try_name(const cli_try *x, size_t combination, const char *gap,
                         char text[CLI_TRY_NAME])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < x->axis_count && used < CLI_TRY_NAME; i++)
        used += (size_t)snprintf(text + used, CLI_TRY_NAME - used, "%s%s=%s", i > 0 ? gap : "",
                                 x->axes[i].name, cli_try_value(x, combination, i));
    return text;
}

char *cli_try_folder(const cli_try *x, size_t run)
{
    char name[CLI_TRY_NAME], *path = NULL;
    size_t size = 0;
    FILE *to = cli_text_open(&path, &size);
    if (!to) return NULL;
    fprintf(to, "%s/%s,seed=%" PRId64, x->folder, cli_try_name(x, run / x->seeds, ",", name),
            x->first_seed + (int64_t)(run % x->seeds));
    if (cli_text_close(to, &path, &size)) return path;
    free(path);
    return NULL;
}
