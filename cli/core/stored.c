/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a giant table for `warm` and `verify`. A pattern of tensor names is removed from the path
 * first, because a checkpoint path cannot contain one.
 */
#include "core/stored.h"
#include "host/paths.h"
#include "system/system.h"

#include <stdlib.h>
#include <string.h>

void cli_stored_free(cli_stored *s)
{
    embla_store_free(s->store);
    embla_checkpoint_free(s->checkpoint);
}

/* The pattern in "FILE::a.shard_*.weight"; NULL if there is none. */
static const char *pattern_of(const char *path)
{
    const char *mark = NULL;
    for (const char *at = strstr(path, "::"); at; at = strstr(at + 1, "::")) mark = at;
    return mark && mark > path && strchr(mark, '*') && !cli_is_there(path) ? mark + 2 : NULL;
}

/* Opens the checkpoint, then the table. */
static embla_status open_table(const cli_args *args, int32_t layer,
                               const embla_store_options *options, const embla_open_options *open,
                               cli_stored *out)
{
    const char *pattern = pattern_of(out->path);
    char *base = pattern ? cli_copy_text(out->path, (size_t)(pattern - out->path) - 2) : NULL;
    embla_status status = cli_open_path(base ? base : out->path, open, &out->checkpoint);
    free(base);
    if (status != EMBLA_OK) return status;
    cli_print_notes(args, out->checkpoint);
    cli_progress_begin(&out->progress, cli_args_flag(args, "quiet"));
    status = embla_store_open(out->checkpoint, pattern, layer, options, &out->store);
    if (status == EMBLA_OK) status = embla_store_describe(out->store, &out->info);
    cli_progress_end(&out->progress, options->placement == EMBLA_PLACEMENT_SHARED
                                         ? "interrupted; no copy was created"
                                         : "interrupted");
    return status;
}

int cli_stored_folder(const cli_args *args, const char **out)
{
    const char *named = cli_args_text(args, "folder");
    *out = named ? named : embla_system_memory_folder();
    return *out
               ? CLI_DONE
               : cli_usage("this system has no folder for files in memory; name one with --folder");
}

int cli_stored_open(const cli_args *args, embla_store_options *options, cli_stored *out)
{
    embla_open_options open = {.lenient = cli_args_flag(args, "lenient")};
    int32_t layer = cli_args_given(args, "layer") ? (int32_t)cli_args_count(args, "layer") : -1;
    *out = (cli_stored){.path = args->operands[0]};
    if (options->placement != EMBLA_PLACEMENT_SHARED &&
        (cli_args_given(args, "name") || cli_args_given(args, "folder") ||
         cli_args_given(args, "wait")))
        return cli_usage("--name, --folder and --wait need a shared copy (warm --shared, verify "
                         "--place shared)");
    if (cli_args_given(args, "as") &&
        embla_dtype_find(cli_args_text(args, "as"), &open.as) != EMBLA_OK)
        return cli_usage("%s", embla_error());
    options->shared_name = cli_args_text(args, "name");
    if (options->placement == EMBLA_PLACEMENT_SHARED) {
        int code = cli_stored_folder(args, &options->shared_folder);
        if (code != CLI_DONE) return code;
    }
    options->shared_wait = (double)cli_args_count(args, "wait");
    options->threads = (int)cli_args_count(args, "threads");
    options->progress = cli_progress_call;
    options->context = &out->progress;
    embla_status status = open_table(args, layer, options, &open, out);
    if (status == EMBLA_ERR_ARGUMENT) return cli_usage("%s", embla_error());
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

void cli_stored_facts(const cli_stored *s)
{
    char rows[CLI_CELL], parts[CLI_CELL], size[CLI_CELL];
    cli_out_fact("table", "%s: %s of %zu %s (%zu bytes), %s, %s", s->path,
                 cli_plural(s->info.rows, "row", rows), s->info.format.dim,
                 embla_dtype_name(s->info.format.dtype), s->info.row_bytes,
                 cli_plural((int64_t)s->info.parts, "part", parts), cli_size(s->info.bytes, size));
}

void cli_stored_json(const cli_stored *s, cli_json *json)
{
    cli_json_text(json, "file", s->path);
    cli_json_whole(json, "rows", s->info.rows);
    cli_json_whole(json, "dim", (int64_t)s->info.format.dim);
    cli_json_text(json, "dtype", embla_dtype_name(s->info.format.dtype));
    cli_json_whole(json, "row_bytes", (int64_t)s->info.row_bytes);
    cli_json_whole(json, "parts", (int64_t)s->info.parts);
    cli_json_whole(json, "bytes", s->info.bytes);
    cli_json_text(json, "place", embla_placement_name(s->info.placement));
    cli_json_text(json, "copy", s->info.shared);
}
