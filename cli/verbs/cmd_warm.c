/* SPDX-License-Identifier: Apache-2.0 */
/* embla warm: loads a giant table into memory before its rows are needed.
 *
 * Without --shared it goes to the page cache, which drops it when memory is short. With --shared
 * all processes of the machine share one copy, which stays until it is removed.
 */
#include <stdio.h>

#include "core/stored.h"
#include "core/verbs.h"

typedef struct {
    cli_stored stored;
    int64_t before, after; /* bytes in memory; -1 means unknown */
    double seconds;        /* without opening the checkpoint */
    bool json;
} job;

/* "12.3%", or "unknown". */
static const char *percent_text(int64_t bytes, int64_t all, char text[CLI_CELL])
{
    if (bytes < 0)
        snprintf(text, CLI_CELL, "unknown");
    else
        snprintf(text, CLI_CELL, "%.1f%%", all > 0 ? 100 * (double)bytes / (double)all : 100.0);
    return text;
}

static double per_second(const job *j)
{
    return j->seconds > 0 ? (double)j->stored.info.bytes / j->seconds : 0;
}

/* ---- the page cache ---- */

static void print_cache(const job *j)
{
    const cli_stored *s = &j->stored;
    char before[CLI_CELL], after[CLI_CELL], size[CLI_CELL];
    cli_stored_facts(s);
    cli_out_fact("read", "%s in %.2f s, %.2f GB/s", cli_size(s->info.bytes, size), j->seconds,
                 per_second(j) / 1e9);
    cli_out_fact("in memory", "%s before, %s now", percent_text(j->before, s->info.bytes, before),
                 percent_text(j->after, s->info.bytes, after));
}

static void json_cache(const job *j)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_stored_json(&j->stored, &json);
    cli_json_whole(&json, "resident_before", j->before);
    cli_json_whole(&json, "resident", j->after);
    cli_json_real(&json, "seconds", j->seconds);
    cli_json_real(&json, "bytes_per_second", per_second(j));
    cli_json_close(&json, '}');
    putchar('\n');
}

/* embla_store_warm, with progress. */
static int warm(const cli_args *args, job *j, const char *interrupted)
{
    cli_stored *s = &j->stored;
    embla_store_options options = {.threads = (int)cli_args_count(args, "threads"),
                                   .progress = cli_progress_call,
                                   .context = &s->progress};
    cli_progress_begin(&s->progress, cli_args_flag(args, "quiet"));
    embla_status status = embla_store_warm(s->store, &options);
    cli_progress_end(&s->progress, interrupted);
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

static int warm_cache(const cli_args *args, job *j)
{
    embla_store_options options = {.placement = EMBLA_PLACEMENT_MAPPED};
    embla_store_info info;
    int code = cli_stored_open(args, &options, &j->stored);
    if (code != CLI_DONE) return code;
    j->before = j->stored.info.resident;
    double begun = cli_progress_now();
    code = warm(args, j, "interrupted; the part that was read stays in memory");
    if (code != CLI_DONE) return code;
    j->seconds = cli_progress_now() - begun;
    if (embla_store_describe(j->stored.store, &info) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    j->after = info.resident;
    if (j->json)
        json_cache(j);
    else
        print_cache(j);
    return CLI_DONE;
}

/* ---- a shared copy ---- */

static void print_copy(const job *j)
{
    const cli_stored *s = &j->stored;
    char huge[CLI_CELL], size[CLI_CELL];
    cli_stored_facts(s);
    cli_out_fact("copy", "%s", s->info.shared);
    if (s->info.built)
        cli_out_fact("built", "%s in %.2f s, %.2f GB/s", cli_size(s->info.bytes, size), j->seconds,
                     per_second(j) / 1e9);
    else
        cli_out_fact("found", "an existing copy; its checksums are correct (%.2f s)", j->seconds);
    cli_out_fact("huge pages", "%s%s", percent_text(s->info.huge_bytes, s->info.bytes, huge),
                 s->info.huge_bytes < 0 ? "" : " of it");
}

static void json_copy(const job *j)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_stored_json(&j->stored, &json);
    cli_json_bool(&json, "built", j->stored.info.built);
    cli_json_whole(&json, "huge_bytes", j->stored.info.huge_bytes);
    cli_json_real(&json, "seconds", j->seconds);
    cli_json_real(&json, "bytes_per_second", per_second(j));
    cli_json_close(&json, '}');
    putchar('\n');
}

static int warm_copy(const cli_args *args, job *j)
{
    embla_store_options options = {.placement = EMBLA_PLACEMENT_SHARED};
    double begun = cli_progress_now();
    int code = cli_stored_open(args, &options, &j->stored);
    if (code == CLI_DONE && !j->stored.info.built)
        code = warm(args, j, "interrupted; the copy is unchanged");
    if (code != CLI_DONE) return code;
    j->seconds = cli_progress_now() - begun;
    if (j->json)
        json_copy(j);
    else
        print_copy(j);
    return CLI_DONE;
}

static int remove_copy(const cli_args *args, job *j)
{
    embla_store_options options = {.placement = EMBLA_PLACEMENT_SHARED, .found_only = true};
    cli_stored *s = &j->stored;
    char size[CLI_CELL];
    int code = cli_stored_open(args, &options, s);
    if (code != CLI_DONE) return code;
    if (embla_store_unshare(s->store) != EMBLA_OK) return cli_failed("%s", embla_error());
    if (j->json) {
        cli_json json = {0};
        cli_json_open(&json, NULL, '{');
        cli_stored_json(s, &json);
        cli_json_bool(&json, "removed", true);
        cli_json_close(&json, '}');
        putchar('\n');
    } else {
        cli_out_fact("removed", "%s: %s, released when the last process closes it", s->info.shared,
                     cli_size(s->info.bytes, size));
    }
    return CLI_DONE;
}

/* ---- copies that nobody needs ---- */

static int sweep_copies(const cli_args *args, const job *j)
{
    static const char *const others[] = {"shared", "remove", "name", "layer", "wait"};
    const char *folder = NULL;
    embla_sweep_report report;
    char copies[CLI_CELL], size[CLI_CELL], left[CLI_CELL], kept[CLI_CELL];
    if (args->operand_count > 0)
        return cli_usage("--sweep takes no FILE: it goes through all copies of the folder");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (cli_args_given(args, others[i]))
            return cli_usage("--sweep and --%s cannot be used together", others[i]);
    int code = cli_stored_folder(args, &folder);
    if (code != CLI_DONE) return code;
    if (embla_store_sweep(folder, cli_args_flag(args, "unused"), &report) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    if (j->json) {
        cli_json json = {0};
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "folder", folder);
        cli_json_whole(&json, "copies", report.copies);
        cli_json_whole(&json, "bytes", report.bytes);
        cli_json_whole(&json, "leftover", report.leftover);
        cli_json_whole(&json, "kept", report.kept);
        cli_json_close(&json, '}');
        putchar('\n');
        return CLI_DONE;
    }
    cli_out_fact("removed", "%s cop%s, %s; %s of killed processes",
                 cli_commas(report.copies, copies), report.copies == 1 ? "y" : "ies",
                 cli_size(report.bytes, size),
                 cli_plural(report.leftover, "unfinished file", left));
    cli_out_fact("kept", "%s", cli_commas(report.kept, kept));
    return CLI_DONE;
}

/* ---- the verb ---- */

static int run(const cli_args *args)
{
    job j = {.json = cli_args_flag(args, "json")};
    bool sweep = cli_args_flag(args, "sweep");
    if (!sweep && cli_args_flag(args, "unused")) return cli_usage("--unused needs --sweep");
    if (!sweep && args->operand_count == 0) return cli_usage("warm needs a FILE, or --sweep");
    int code = sweep                           ? sweep_copies(args, &j)
               : cli_args_flag(args, "remove") ? remove_copy(args, &j)
               : cli_args_flag(args, "shared") ? warm_copy(args, &j)
                                               : warm_cache(args, &j);
    cli_stored_free(&j.stored);
    return code;
}

static const cli_option options[] = {
    {.name = "shared", .help = "create or find one copy for all processes of this machine"},
    {.name = "remove", .help = "remove the shared copy; processes that have it open keep it"},
    {.name = "sweep",
     .help =
         "remove shared copies in --folder that no process has open and whose file has changed"},
    {.name = "unused", .help = "with --sweep, remove every copy that no process has open"},
    CLI_STORED_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_warm = {
    .name = "warm",
    .synopsis = "[FILE]",
    .operand = "FILE",
    .operands_most = 1,
    .files = 1,
    .about = "load a giant table into memory",
    .text =
        "FILE is a checkpoint with a giant table, as for 'embla info'. FILE::TENSOR selects "
        "the table, with * for the number of a part ('model::a.shard_*.weight'). Its rows are "
        "read into the page cache, so that the first lookups of a mapped store do not wait for "
        "the disk. The system drops them again when memory is short.\n\n"
        "--shared creates one copy in memory for all processes of the machine, on huge pages "
        "if the system has them. One process builds it under a lock; it gets its name when it "
        "is complete. If the copy already exists, its checksums are verified. It stays in "
        "memory until 'embla warm FILE --remove' or rm.\n\n"
        "A killed process leaves its copy behind. The next process with the same table uses it. "
        "If the table's file has changed, nobody can: building another copy removes it, and so "
        "does 'embla warm --sweep'. A copy that a process has open always stays.",
    .example = "embla warm village",
    .options = options,
    .run = run};
