/* SPDX-License-Identifier: Apache-2.0 */
/* embla verify: compares the rows of a placement with the files, which are read again.
 *
 * It detects faults of a copy, a disk or this program: the two read paths share only the list of
 * row offsets.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/stored.h"
#include "core/verbs.h"

static const struct {
    const char *name;
    embla_placement placement;
} placements[] = {{"mapped", EMBLA_PLACEMENT_MAPPED},
                  {"direct", EMBLA_PLACEMENT_DIRECT},
                  {"ram", EMBLA_PLACEMENT_RAM},
                  {"shared", EMBLA_PLACEMENT_SHARED}};

static const char *placement_name(size_t n)
{
    return n < sizeof placements / sizeof placements[0] ? placements[n].name : NULL;
}

typedef struct {
    cli_stored stored;
    embla_verify_report verified;
    uint64_t seed;
    double seconds;
} job;

static void print_text(const job *j)
{
    const embla_verify_report *v = &j->verified;
    char rows[CLI_CELL], all[CLI_CELL], first[CLI_CELL];
    cli_stored_facts(&j->stored);
    if (j->stored.info.shared)
        cli_out_fact("placement", "shared: %s", j->stored.info.shared);
    else
        cli_out_fact("placement", "%s", embla_placement_name(j->stored.info.placement));
    if (v->rows == j->stored.info.rows)
        cli_out_fact("compared", "all %s", cli_plural(v->rows, "row", rows));
    else
        cli_out_fact(
            "compared", "%s of %s, sampled with seed %" PRIu64 ", including the first and the last",
            cli_plural(v->rows, "row", rows), cli_commas(j->stored.info.rows, all), j->seed);
    if (v->different > 0)
        cli_out_fact("different", "%s; the first is row %s", cli_plural(v->different, "row", rows),
                     cli_commas(v->first, first));
    else
        cli_out_fact("different", "none");
}

static void print_json(const job *j)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_stored_json(&j->stored, &json);
    cli_json_whole(&json, "compared", j->verified.rows);
    cli_json_whole(&json, "different", j->verified.different);
    if (j->verified.first >= 0)
        cli_json_whole(&json, "first", j->verified.first);
    else
        cli_json_text(&json, "first", NULL);
    cli_json_whole(&json, "seed", (int64_t)j->seed);
    cli_json_real(&json, "seconds", j->seconds);
    cli_json_close(&json, '}');
    putchar('\n');
}

static int verify_rows(const cli_args *args, job *j)
{
    int64_t sample = cli_args_flag(args, "all") ? 0 : cli_args_count(args, "sample");
    double begun = cli_progress_now();
    if (embla_store_verify(j->stored.store, sample, j->seed, &j->verified) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    j->seconds = cli_progress_now() - begun;
    if (cli_args_flag(args, "json"))
        print_json(j);
    else
        print_text(j);
    return j->verified.different > 0 ? CLI_WANTING : CLI_DONE;
}

static int run(const cli_args *args)
{
    job j = {.seed = (uint64_t)cli_args_count(args, "seed")};
    embla_store_options options = {.placement = EMBLA_PLACEMENT_MAPPED, .found_only = true};
    const char *place = cli_args_text(args, "place");
    for (size_t i = 0; placement_name(i); i++)
        if (strcmp(place, placement_name(i)) == 0) options.placement = placements[i].placement;
    if (cli_args_flag(args, "all") && cli_args_given(args, "sample"))
        return cli_usage("--sample and --all cannot be used together");
    if (cli_args_count(args, "sample") == 0)
        return cli_usage("--sample is 0; the minimum is 1, and --all compares every row");
    int code = cli_stored_open(args, &options, &j.stored);
    if (code == CLI_DONE) code = verify_rows(args, &j);
    cli_stored_free(&j.stored);
    return code;
}

static const cli_option options[] = {
    {.name = "place",
     .value = "PLACE",
     .standard = "mapped",
     .choices = placement_name,
     .help = "placement whose rows are compared"},
    {.name = "sample",
     .value = "N",
     .standard = "10000",
     .count = true,
     .help = "compare N random rows, including the first and the last"},
    {.name = "all", .help = "compare every row"},
    {.name = "seed", .value = "S", .standard = "0", .count = true, .help = "seed of the sample"},
    CLI_STORED_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_verify = {
    .name = "verify",
    .synopsis = "FILE",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = 1,
    .files = 1,
    .about = "compare rows of a giant table with their files",
    .text = "FILE is a checkpoint with a giant table, as for 'embla warm'. Reads rows from the "
            "mapped file, from the memory of this process (ram), or from the shared copy of 'embla "
            "warm --shared'. Then it reads the same rows again from the files, one by one, and "
            "compares the bytes.\n\n"
            "The exit code is 3 if a row differs.",
    .example = "embla verify village",
    .options = options,
    .run = run};
