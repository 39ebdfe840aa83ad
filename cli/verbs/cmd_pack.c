/* SPDX-License-Identifier: Apache-2.0 */
/* embla pack: writes a giant table to a file from which each row is one read, and each frequent
 * n-gram too.
 *
 * N-grams to bundle come from a text, from a trace, or from a list. The library writes the file and
 * compares it with the source; this verb reads the arguments and prints the result.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_store.h"

#include "core/inputs.h"
#include "core/model_text.h"
#include "core/out.h"
#include "core/progress.h"
#include "core/verbs.h"
#include "host/host.h"
#include "host/paths.h"
#include "verbs/rows_job.h"

typedef struct {
    cli_model model;
    embla_fold *fold;
    embla_ngram *ngram; /* NULL means that the source has none */
    embla_store *store;
    embla_frequent *frequent;
    int32_t *tokens; /* of --text */
    size_t count, room;
    cli_progress progress;
    embla_pack_report report;
    double seconds;
} job;

static int library_error(void)
{
    return cli_failed("%s", embla_error());
}

/* ---- the source ---- */

static int open_hasher(const cli_args *args, job *j)
{
    const char *fold = cli_args_text(args, "fold"), *name = cli_args_text(args, "model");
    int32_t layer = cli_rows_layer(args);
    if (fold && embla_fold_open(cli_input_path(fold), &j->fold) != EMBLA_OK) return library_error();
    embla_status status = name ? embla_ngram_new_model(name, layer, j->fold, &j->ngram)
                               : embla_ngram_open(j->model.checkpoint, layer, j->fold, &j->ngram);
    return status == EMBLA_OK || (!name && status == EMBLA_ERR_NOT_FOUND) ? CLI_DONE
                                                                          : library_error();
}

static int open_source(const cli_args *args, job *j)
{
    const embla_store_options direct = {.placement = EMBLA_PLACEMENT_DIRECT,
                                        .threads = (int)cli_args_count(args, "threads")};
    int code = cli_model_open(args, args->operands[0], &j->model);
    if (code == CLI_DONE) code = cli_model_use_tokenizer(args, &j->model);
    if (code != CLI_DONE) return code;
    if (embla_store_open(j->model.checkpoint, NULL, cli_rows_layer(args), &direct, &j->store) !=
        EMBLA_OK)
        return library_error();
    return open_hasher(args, j);
}

/* ---- frequent n-grams ---- */

static bool append(job *j, const int32_t *tokens, size_t count)
{
    if (j->count + count > j->room) {
        size_t room = 2 * j->room + count + 4096;
        int32_t *larger = realloc(j->tokens, room * sizeof *larger);
        if (!larger) return false;
        j->tokens = larger;
        j->room = room;
    }
    memcpy(j->tokens + j->count, tokens, count * sizeof *tokens);
    j->count += count;
    return true;
}

/* Reads a line with its end. False at the end of the file, if reading fails, or without memory; the
 * last sets *full. */
static bool next_line(FILE *file, char **line, size_t *room, size_t *length, bool *full)
{
    *length = 0;
    for (int c; (c = getc(file)) != EOF;) {
        if (*length == *room) {
            const size_t more = *room ? 2 * *room : 4096;
            char *grown = realloc(*line, more);
            *full = !grown;
            if (*full) return false;
            *line = grown;
            *room = more;
        }
        (*line)[(*length)++] = (char)c;
        if (c == '\n') break;
    }
    return *length > 0 && !ferror(file);
}

/* The tokens of a text, line by line, as one sequence. */
static int read_text(const char *path, job *j)
{
    FILE *file = cli_file_open(cli_input_path(path), "rb");
    char *line = NULL;
    size_t room = 0, length;
    bool full = false;
    int code = CLI_DONE;
    if (!file) return cli_failed("%s: cannot open it", path);
    if (!cli_model_tokenizer(&j->model))
        code =
            cli_failed("--text needs a tokenizer, and the source has none: use --tokenizer FILE");
    while (code == CLI_DONE && next_line(file, &line, &room, &length, &full)) {
        const int32_t *tokens = NULL;
        size_t count = 0;
        if (cli_model_tokenize(&j->model, line, length, &tokens, &count) != EMBLA_OK)
            code = library_error();
        else if (!append(j, tokens, count))
            code = cli_failed("no memory for %zu tokens", j->count + count);
    }
    if (full) code = cli_failed("%s: no memory for a line of %zu bytes", path, length);
    if (code == CLI_DONE && ferror(file)) code = cli_failed("%s: cannot read it", path);
    (void)fclose(file);
    free(line);
    return code;
}

static int count_ngrams(const cli_args *args, job *j)
{
    const char *text = cli_args_text(args, "text");
    embla_frequent_options options = {.ngram = j->ngram,
                                      .trace = cli_input_path(cli_args_text(args, "trace")),
                                      .rows_per_ngram = cli_args_size(args, "rows-per-ngram"),
                                      .max_ngrams = cli_args_size(args, "frequent"),
                                      .progress = cli_progress_call,
                                      .context = &j->progress};
    if (!text && !options.trace) return CLI_DONE;
    if (text && !j->ngram)
        return cli_failed("--text needs a hasher, and %s has none: use --model NAME",
                          args->operands[0]);
    int code = text ? read_text(text, j) : CLI_DONE;
    if (code != CLI_DONE) return code;
    options.tokens = j->tokens;
    options.length = j->count;
    j->progress.unit = "tokens";
    cli_progress_begin(&j->progress, cli_args_flag(args, "quiet"));
    embla_status status = embla_frequent_new(&options, &j->frequent);
    cli_progress_end(&j->progress, "interrupted; nothing was written");
    j->progress = (cli_progress){0};
    return status == EMBLA_OK ? CLI_DONE : library_error();
}

/* ---- output ---- */

static void print_text(const cli_args *args, const job *j, const char *path)
{
    const embla_pack_report *r = &j->report;
    char rows[CLI_CELL], bundles[CLI_CELL], size[CLI_CELL];
    cli_out_fact("pack", "%s: %s of %zu bytes, %s", path, cli_plural(r->rows, "row", rows),
                 r->row_bytes, cli_size(r->bytes, size));
    if (r->rows_a_page > 0)
        cli_out_fact("pages", "%" PRId64 " rows in each 4,096 bytes; none crosses a page",
                     r->rows_a_page);
    if (r->bundles > 0)
        cli_out_fact("bundles", "%s of %zu rows", cli_commas(r->bundles, bundles),
                     r->rows_per_ngram);
    if (r->different > 0 || r->bundles_wrong > 0) return;
    bool alone = cli_args_flag(args, "verify") && args->operand_count == 1;
    bool summed = r->version > 1; /* the manifest has a checksum, which opening has compared */
    cli_commas(r->rows, rows);
    if (alone)
        cli_out_fact("verified", "all %s rows%s, by their checksums", rows,
                     summed ? " and the manifest" : "");
    else
        cli_out_fact("verified", "all %s rows%s, bit for bit", rows,
                     r->hasher_compared ? " and the hasher" : "");
    if (!alone && r->hasher && !r->hasher_compared)
        cli_out_fact("hasher", "%s; %s has none: --model NAME compares it with that of a model",
                     summed ? "by its checksum" : "not verified", args->operands[0]);
}

static void print_json(const job *j, const char *path)
{
    const embla_pack_report *r = &j->report;
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "file", path);
    cli_json_whole(&json, "rows", r->rows);
    cli_json_whole(&json, "row_bytes", (int64_t)r->row_bytes);
    cli_json_whole(&json, "rows_a_page", r->rows_a_page);
    cli_json_whole(&json, "bundles", r->bundles);
    cli_json_whole(&json, "rows_per_ngram", (int64_t)r->rows_per_ngram);
    cli_json_whole(&json, "bytes", r->bytes);
    cli_json_whole(&json, "different", r->different);
    cli_json_whole(&json, "first", r->first);
    cli_json_whole(&json, "bundles_wrong", r->bundles_wrong);
    cli_json_whole(&json, "version", r->version);
    cli_json_bool(&json, "hasher", r->hasher);
    cli_json_bool(&json, "hasher_compared", r->hasher_compared);
    cli_json_close(&json, '}');
    putchar('\n');
}

static int print_report(const cli_args *args, const job *j, const char *path)
{
    const embla_pack_report *r = &j->report;
    if (cli_args_flag(args, "json"))
        print_json(j, path);
    else
        print_text(args, j, path);
    if (r->different > 0)
        cli_complain("%s differs from %s in %" PRId64 " of %" PRId64
                     " rows, the first is row %" PRId64
                     ": the source has changed since it was packed",
                     path, args->operands[0], r->different, r->rows, r->first);
    else if (r->bundles_wrong > 0)
        cli_complain("%s is damaged: %" PRId64 " of %" PRId64 " bundles differ from its rows", path,
                     r->bundles_wrong, r->bundles);
    return r->different > 0 || r->bundles_wrong > 0 ? CLI_WANTING : CLI_DONE;
}

/* ---- the verb ---- */

static int verify(const cli_args *args, job *j, const char *path)
{
    embla_checkpoint *pack = NULL;
    int code = args->operand_count == 2 ? open_source(args, j) : CLI_DONE;
    if (code != CLI_DONE) return code;
    if (embla_checkpoint_open(cli_input_path(path), NULL, &pack) != EMBLA_OK)
        return library_error();
    const embla_pack_options options = {
        .ngram = j->ngram, .progress = cli_progress_call, .context = &j->progress};
    cli_print_notes(args, pack);
    cli_progress_begin(&j->progress, cli_args_flag(args, "quiet"));
    embla_status status = embla_pack_verify(pack, j->store, &options, &j->report);
    cli_progress_end(&j->progress, "interrupted; the pack is unchanged");
    code = status == EMBLA_OK ? print_report(args, j, path) : library_error();
    embla_checkpoint_free(pack);
    return code;
}

/* The last name of the source's path: a pack is copied to other machines, and tells nothing of the
 * folders of this one. */
static void name_source(const char *path, char name[CLI_PATH_MOST])
{
    size_t length = (size_t)snprintf(name, CLI_PATH_MOST, "%s", path);
    if (length >= CLI_PATH_MOST) length = CLI_PATH_MOST - 1;
    while (length > 1 && embla_system_slash(name) == name + length - 1) name[--length] = '\0';
    const char *last = cli_path_title(name);
    memmove(name, last, strlen(last) + 1);
}

static int write_pack(const cli_args *args, job *j, const char *path)
{
    char name[CLI_PATH_MOST];
    size_t count = 0, each = cli_args_size(args, "rows-per-ngram");
    int code = open_source(args, j);
    if (code == CLI_DONE) code = count_ngrams(args, j);
    if (code != CLI_DONE) return code;
    const int64_t *rows = j->frequent ? embla_frequent_rows(j->frequent, &count, &each) : NULL;
    name_source(args->operands[0], name);
    const embla_pack_options options = {.name = name,
                                        .ngram = j->ngram,
                                        .rows_per_ngram = each,
                                        .bundles = rows,
                                        .bundle_count = count,
                                        .bundle_file =
                                            cli_input_path(cli_args_text(args, "bundles")),
                                        .overwrite = cli_args_flag(args, "force"),
                                        .progress = cli_progress_call,
                                        .context = &j->progress};
    cli_progress_begin(&j->progress, cli_args_flag(args, "quiet"));
    embla_status status = embla_pack_write(j->store, path, &options, &j->report);
    cli_progress_end(&j->progress, "interrupted; no pack was written");
    return status == EMBLA_OK ? print_report(args, j, path) : library_error();
}

static int run(const cli_args *args)
{
    job j = {0};
    bool verifying = cli_args_flag(args, "verify");
    bool counted = cli_args_given(args, "text") || cli_args_given(args, "trace");
    if (!verifying && args->operand_count < 2) return cli_usage("pack needs a SOURCE and an OUT");
    if (counted != cli_args_given(args, "frequent"))
        return cli_usage("--frequent N and one of --text and --trace need each other");
    if (cli_args_given(args, "text") && cli_args_given(args, "trace"))
        return cli_usage("--text and --trace are two ways to say the same; give one of them");
    const char *path = args->operands[args->operand_count - 1];
    if (!verifying && strcmp(path, "-") == 0)
        return cli_usage("OUT is -, but a pack cannot go to a pipe: it is read again and renamed");
    int code = verifying ? CLI_DONE : cli_inputs_check(args, path);
    if (code == CLI_DONE && !verifying)
        code = cli_out_check_new(path, cli_args_flag(args, "force"));
    if (code == CLI_DONE) code = verifying ? verify(args, &j, path) : write_pack(args, &j, path);
    embla_frequent_free(j.frequent);
    embla_store_free(j.store);
    embla_ngram_free(j.ngram);
    embla_fold_free(j.fold);
    cli_model_free(&j.model);
    free(j.tokens);
    return code;
}

static const cli_option options[] = {
    {.name = "frequent",
     .value = "N",
     .count = true,
     .help = "bundle the N most frequent n-grams of each order, counted in --text or --trace"},
    {.name = "text",
     .value = "FILE",
     .reads = CLI_READS_FILE,
     .help = "text to count n-grams in; - reads standard input"},
    {.name = "trace",
     .value = "FILE",
     .reads = CLI_READS_FILE,
     .help = "row numbers to count n-grams in: an npy file of 'embla trace'"},
    {.name = "bundles",
     .value = "FILE",
     .reads = CLI_READS_FILE,
     .help = "bundle the n-grams of a list: an npy file of int64 (n-grams, rows per n-gram), or "
             "another pack"},
    {.name = "rows-per-ngram",
     .value = "N",
     .count = true,
     .help = "rows of an n-gram, 1 to 32 (default: those of the hasher)"},
    {.name = "verify",
     .help = "write nothing; compare OUT with SOURCE, or only with its checksums if it is alone"},
    {.name = "force", .help = "replace OUT if it exists"},
    {.name = "model",
     .value = "NAME",
     .choices = embla_ngram_model_name,
     .help = "use the hasher of a known model (default: the one that SOURCE describes)"},
    {.name = "layer",
     .value = "N",
     .count = true,
     .most = INT32_MAX,
     .help = "layer whose table is packed (default: the first with a table)"},
    {.name = "fold",
     .value = "FILE",
     .reads = CLI_READS_FILE,
     .help = "npy file of int32 that maps each token to its folded token (DeepSeek)"},
    CLI_TOKENIZER_OPTION,
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_pack = {
    .name = "pack",
    .synopsis = "SOURCE OUT",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = 2,
    .files = 1,
    .about = "write a giant table so that each row is one read",
    .text = "Writes the giant table of the checkpoint SOURCE to the file OUT. Scales follow the "
            "numbers of their row, and no row crosses a page of 4,096 bytes: reading a row past "
            "the page cache is one read of one page. With --frequent or --bundles, the rows of "
            "frequent n-grams are stored a second time, side by side, so that one read brings "
            "all rows of an n-gram.\n\n"
            "OUT is used like SOURCE, by 'embla rows', 'embla trace', 'embla verify' and by "
            "programs; it has the hasher of SOURCE. It appears when it is complete and all its "
            "rows have been compared with those of SOURCE. SOURCE is not changed. --verify repeats "
            "the comparison, of the hasher too; its exit code is 3 if a row of SOURCE has changed, "
            "and 1 if OUT is damaged or has another hasher.",
    .example = "embla pack village packed.safetensors",
    .options = options,
    .run = run};
