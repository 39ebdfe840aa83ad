/* SPDX-License-Identifier: Apache-2.0 */
/* embla new: a table of random numbers from a seed, written to a file of any format.
 *
 * The table is made in memory in its dtype; embla_convert writes it and reads it back.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/inputs.h"
#include "core/memory.h"
#include "core/model.h"
#include "core/progress.h"
#include "core/verbs.h"

static const char *const kinds[] = {"normal", "xavier"};

typedef struct {
    const char *path;
    int64_t rows, dim;
    int64_t bytes; /* of all rows */
    embla_dtype dtype;
    embla_init_options init;
    embla_vocab *vocab; /* NULL means no words */
    embla_table *table;
    embla_checkpoint *checkpoint; /* of table and vocab */
    embla_account *account;
} job;

/* ---- options ---- */

/* Reads --rows, --dim and --dtype; computes the bytes. */
static int read_sizes(const cli_args *args, job *j)
{
    size_t row_bytes;
    char rows[CLI_CELL], dim[CLI_CELL];
    j->dim = cli_args_count(args, "dim");
    j->rows = cli_args_given(args, "rows") ? cli_args_count(args, "rows")
              : j->vocab                   ? embla_vocab_end(j->vocab)
                                           : 0;
    if (embla_dtype_find(cli_args_text(args, "dtype"), &j->dtype) != EMBLA_OK)
        return cli_usage("%s", embla_error());
    if (j->rows < 1) return cli_usage("--rows is %" PRId64 "; the minimum is 1", j->rows);
    if (j->dim < 1) return cli_usage("--dim is %" PRId64 "; the minimum is 1", j->dim);
    if (embla_dtype_row_bytes(j->dtype, cli_as_size(j->dim), &row_bytes) != EMBLA_OK)
        return cli_usage("%s", embla_error());
    if ((uint64_t)row_bytes > INT64_MAX ||
        __builtin_mul_overflow(j->rows, (int64_t)row_bytes, &j->bytes))
        return cli_usage("a table of %s x %s does not fit in 64 bits", cli_commas(j->rows, rows),
                         cli_commas(j->dim, dim));
    if (j->vocab && embla_vocab_end(j->vocab) > j->rows)
        return cli_usage("--words has %s, but --rows is %s; every word needs a row",
                         cli_plural(embla_vocab_end(j->vocab), "word", dim),
                         cli_commas(j->rows, rows));
    return CLI_DONE;
}

static int read_options(const cli_args *args, job *j)
{
    const char *words = cli_args_text(args, "words"), *init = cli_args_text(args, "init");
    j->path = cli_args_text(args, "output");
    if (!j->path) return cli_usage("new needs a file to write: --output table.safetensors");
    if (strcmp(j->path, "-") == 0) return cli_usage("new writes a file, not standard output");
    if (!cli_args_given(args, "dim")) return cli_usage("new also needs --dim");
    if (!cli_args_given(args, "rows") && !words)
        return cli_usage("new also needs --rows, or --words with a word for each row");
    if (words && cli_open_words(words, &j->vocab) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    j->init = (embla_init_options){.seed = (uint64_t)cli_args_count(args, "seed"),
                                   .kind = strcmp(init, "xavier") == 0 ? EMBLA_INIT_XAVIER
                                                                       : EMBLA_INIT_NORMAL,
                                   .threads = (int)cli_args_count(args, "threads")};
    return read_sizes(args, j);
}

/* ---- report ---- */

static double spread_of(const job *j)
{
    return j->init.kind == EMBLA_INIT_XAVIER ? sqrt(2 / ((double)j->rows + (double)j->dim))
                                             : 1 / sqrt((double)j->dim);
}

static void print_facts(const job *j)
{
    char rows[CLI_CELL], dim[CLI_CELL], size[CLI_CELL];
    cli_out_fact("table", "%s x %s, %s: %s bytes", cli_commas(j->rows, rows),
                 cli_commas(j->dim, dim), embla_dtype_name(j->dtype), cli_commas(j->bytes, size));
    if (j->init.kind == EMBLA_INIT_XAVIER)
        cli_out_fact("numbers", "uniform from -%.4g to %.4g, sqrt(2 / (rows + dim)); seed %" PRIu64,
                     spread_of(j), spread_of(j), j->init.seed);
    else
        cli_out_fact("numbers", "normal, standard deviation %.4g, 1 / sqrt(dim); seed %" PRIu64,
                     spread_of(j), j->init.seed);
    if (j->vocab)
        cli_out_fact("words", "%s, from %s", cli_plural(embla_vocab_count(j->vocab), "word", rows),
                     cli_input_name(embla_vocab_source(j->vocab)));
}

static void print_text(const job *j)
{
    size_t count, lines;
    const char *const *notes = embla_account_notes(j->account, &count);
    char size[CLI_CELL];
    const embla_account_info info = cli_account_info(j->account);
    cli_out_fact("written", "%s: %s, %s", j->path, info.format, cli_size(info.bytes, size));
    print_facts(j);
    for (size_t n = 0; n < count; n++) cli_out_fact("note", "%s", notes[n]);
    cli_out_fact("verified", "read back, checksum %s",
                 embla_account_lines(j->account, &lines)->checksum);
}

static void print_json(const job *j)
{
    cli_json json = {0};
    size_t count = 0, lines;
    const char *const *notes = j->account ? embla_account_notes(j->account, &count) : NULL;
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "file", j->path);
    cli_json_bool(&json, "written", j->account != NULL);
    cli_json_whole(&json, "rows", j->rows);
    cli_json_whole(&json, "dim", j->dim);
    cli_json_text(&json, "dtype", embla_dtype_name(j->dtype));
    cli_json_whole(&json, "table_bytes", j->bytes);
    cli_json_text(&json, "init", kinds[j->init.kind]);
    cli_json_real(&json, "spread", spread_of(j));
    cli_json_whole(&json, "seed", (int64_t)j->init.seed);
    cli_json_whole(&json, "words", j->vocab ? embla_vocab_count(j->vocab) : 0);
    if (j->account) {
        const embla_account_info info = cli_account_info(j->account);
        cli_json_text(&json, "format", info.format);
        cli_json_whole(&json, "bytes", info.bytes);
        cli_json_text(&json, "checksum", embla_account_lines(j->account, &lines)->checksum);
        cli_json_open(&json, "notes", '[');
        for (size_t n = 0; n < count; n++) cli_json_text(&json, NULL, notes[n]);
        cli_json_close(&json, ']');
    }
    cli_json_close(&json, '}');
    putchar('\n');
}

/* ---- the verb ---- */

static int fill_table(job *j)
{
    if (cli_make_table(j->dtype, j->rows, (size_t)j->dim, &j->table) != EMBLA_OK ||
        embla_table_init(j->table, &j->init) != EMBLA_OK ||
        embla_checkpoint_view(j->table, j->vocab, &j->checkpoint) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    return CLI_DONE;
}

/* A file of llm.c holds a whole model, so a table alone cannot be one. */
static const char *format_name(size_t n)
{
    size_t at = 0;
    while (embla_convert_format_name(at) && strcmp(embla_convert_format_name(at), "llm.c") != 0)
        at++;
    return embla_convert_format_name(n < at ? n : n + 1);
}

static int write_file(const cli_args *args, job *j)
{
    cli_progress progress;
    const embla_convert_options options = {.to = cli_args_text(args, "to"),
                                           .overwrite = cli_args_flag(args, "force"),
                                           .progress = cli_progress_call,
                                           .context = &progress};
    int code = cli_inputs_check(args, j->path);
    if (code == CLI_DONE) code = cli_out_check_new(j->path, options.overwrite);
    if (code == CLI_DONE)
        code = cli_memory_check(j->bytes, "the table",
                                "use fewer --rows, a smaller --dim or a shorter --dtype");
    if (code == CLI_DONE) code = fill_table(j);
    if (code != CLI_DONE) return code;
    cli_progress_begin(&progress, cli_args_flag(args, "quiet"));
    embla_status status = embla_convert(j->checkpoint, j->path, &options, &j->account);
    cli_progress_end(&progress, status == EMBLA_OK ? "interrupted; the file is complete"
                                                   : "interrupted; nothing has been written");
    return status == EMBLA_OK ? CLI_DONE : cli_convert_failed(args, status);
}

static int run(const cli_args *args)
{
    job j = {0};
    bool dry = cli_args_flag(args, "dry-run");
    int code = read_options(args, &j);
    if (code == CLI_DONE && !dry) code = write_file(args, &j);
    if (code == CLI_DONE && cli_args_flag(args, "json"))
        print_json(&j);
    else if (code == CLI_DONE && dry)
        print_facts(&j);
    else if (code == CLI_DONE)
        print_text(&j);
    embla_account_free(j.account);
    embla_checkpoint_free(j.checkpoint);
    embla_table_free(j.table);
    embla_vocab_free(j.vocab);
    return code;
}

static const char *kind_name(size_t n)
{
    return n < sizeof kinds / sizeof kinds[0] ? kinds[n] : NULL;
}

static const cli_option options[] = {
    {.name = "output", .letter = 'o', .value = "FILE", .help = "file to write"},
    {.name = "rows",
     .value = "N",
     .count = true,
     .help = "rows of the table (default: as many as --words has)"},
    {.name = "dim", .value = "N", .count = true, .help = "embedding dimension (d_model)"},
    {.name = "init",
     .value = "INIT",
     .standard = "normal",
     .choices = kind_name,
     .help = "distribution of the numbers"},
    {.name = "seed", .value = "S", .standard = "1", .count = true, .help = "random seed"},
    {.name = "words",
     .value = "FILE",
     .reads = CLI_READS_FILE,
     .help = "words of the rows: one on each line, or a tokenizer.json"},
    {.name = "dtype",
     .value = "DTYPE",
     .standard = "f32",
     .choices = cli_model_dtype,
     .listed = cli_writable_dtype,
     .help = "dtype of the table"},
    {.name = "to",
     .value = "FORMAT",
     .choices = format_name,
     .help = "format to write; taken from the extension of FILE if not given"},
    {.name = "dry-run", .help = "print the size, and write nothing"},
    {.name = "force", .help = "replace FILE if it exists, and its NAME.vocab.txt"},
    {.name = NULL}};

const cli_verb cli_verb_new = {
    .name = "new",
    .synopsis = "-o FILE",
    .operand = "operand",
    .about = "make a table of random numbers from a seed",
    .text = "Writes a table as it is before training. The extension of FILE determines the format, "
            "as for 'embla convert'. A number depends only on the seed, its row, its column and "
            "the distribution, so it is the same on every machine.\n\n"
            "The distributions:\n- normal: mean 0, standard deviation 1 / sqrt(dim);\n- xavier: "
            "uniform between -s and s, with s = sqrt(2 / (rows + dim)).\n\n"
            "Words go into FILE; if the format cannot hold them, they go to NAME.vocab.txt beside "
            "FILE. FILE gets its name after it has been written, read back and compared.",
    .example = "embla new -o random.safetensors --rows 100 --dim 8 --seed 42 --force",
    .options = options,
    .run = run};
