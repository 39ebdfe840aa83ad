/* SPDX-License-Identifier: Apache-2.0 */
/* embla verify: rows as a placement has them, compared with their files, read once more.
 *
 * For whoever does not trust a copy, a disk or this program. The two ways to a row share no more
 * than the list of where rows are.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "stored.h"
#include "verbs.h"

static const struct {
    const char *name;
    embla_place place;
} places[] = {
    {"mapped", EMBLA_PLACE_MAPPED}, {"ram", EMBLA_PLACE_RAM}, {"shared", EMBLA_PLACE_SHARED}};

static const char *place_name(size_t n)
{
    return n < sizeof places / sizeof places[0] ? places[n].name : NULL;
}

typedef struct {
    embla_stored stored;
    embla_verified verified;
    uint64_t seed;
    double seconds;
} job;

static void print_text(const job *j)
{
    const embla_verified *v = &j->verified;
    char rows[EMBLA_CELL], all[EMBLA_CELL], first[EMBLA_CELL];
    embla_stored_facts(&j->stored);
    if (j->stored.info.shared)
        embla_out_fact("placement", "shared: %s", j->stored.info.shared);
    else
        embla_out_fact("placement", "%s", embla_place_name(j->stored.info.place));
    if (v->rows == j->stored.info.rows)
        embla_out_fact("compared", "all %s", embla_plural(v->rows, "row", rows));
    else
        embla_out_fact("compared", "%s of %s, chosen by seed %" PRIu64 ", the first and the last",
                       embla_plural(v->rows, "row", rows), embla_commas(j->stored.info.rows, all),
                       j->seed);
    if (v->different > 0)
        embla_out_fact("different", "%s; the first is row %s",
                       embla_plural(v->different, "row", rows), embla_commas(v->first, first));
    else
        embla_out_fact("different", "none");
}

static void print_json(const job *j)
{
    embla_json json = {0};
    embla_json_open(&json, NULL, '{');
    embla_stored_json(&j->stored, &json);
    embla_json_whole(&json, "compared", j->verified.rows);
    embla_json_whole(&json, "different", j->verified.different);
    if (j->verified.first >= 0)
        embla_json_whole(&json, "first", j->verified.first);
    else
        embla_json_text(&json, "first", NULL);
    embla_json_whole(&json, "seed", (int64_t)j->seed);
    embla_json_real(&json, "seconds", j->seconds);
    embla_json_close(&json, '}');
    putchar('\n');
}

static int compare(const embla_args *args, job *j)
{
    int64_t sample = embla_args_flag(args, "all") ? 0 : embla_args_count(args, "sample");
    double begun = embla_progress_now();
    if (embla_store_verify(j->stored.store, sample, j->seed, &j->verified) != EMBLA_OK)
        return embla_failed("%s", embla_error());
    j->seconds = embla_progress_now() - begun;
    if (embla_args_flag(args, "json"))
        print_json(j);
    else
        print_text(j);
    return j->verified.different > 0 ? EMBLA_WANTING : EMBLA_DONE;
}

static int run(const embla_args *args)
{
    job j = {.seed = (uint64_t)embla_args_count(args, "seed")};
    embla_store_options options = {.place = EMBLA_PLACE_MAPPED, .found_only = true};
    const char *place = embla_args_text(args, "place");
    for (size_t i = 0; place_name(i); i++)
        if (strcmp(place, place_name(i)) == 0) options.place = places[i].place;
    if (embla_args_flag(args, "all") && embla_args_given(args, "sample"))
        return embla_usage("--sample and --all cannot both be meant");
    if (embla_args_count(args, "sample") == 0)
        return embla_usage("--sample: '0' rows show nothing; --all compares every row");
    int code = embla_stored_open(args, &options, "reading", &j.stored);
    if (code == EMBLA_DONE) code = compare(args, &j);
    embla_stored_free(&j.stored);
    return code;
}

static const embla_option options[] = {
    {.name = "place",
     .value = "PLACE",
     .standard = "mapped",
     .choices = place_name,
     .help = "where the rows are that are compared"},
    {.name = "sample",
     .value = "N",
     .standard = "10000",
     .count = true,
     .help = "compare N rows, the first and the last among them"},
    {.name = "all", .help = "compare every row"},
    {.name = "seed",
     .value = "S",
     .standard = "0",
     .count = true,
     .help = "another seed chooses other rows"},
    EMBLA_STORED_OPTIONS,
    {.name = NULL}};

const embla_verb embla_verb_verify = {
    .name = "verify",
    .synopsis = "FILE",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = 1,
    .about = "compare rows of a giant table with their files",
    .text = "FILE is a checkpoint with a giant table, as for 'embla warm'. Opens it mapped, in "
            "memory of this process (ram), or as the shared copy that 'embla warm --shared' has "
            "made, takes rows from there, reads the same rows from the files once more, one by "
            "one, and compares bytes.\n\n"
            "The exit code is 3 if a row is different.",
    .example = "embla convert examples/quick-brown-fox.vec b.npy && embla verify b.npy::array",
    .options = options,
    .run = run};
