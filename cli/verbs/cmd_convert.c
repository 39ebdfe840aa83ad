/* SPDX-License-Identifier: Apache-2.0 */
/* embla convert: converts a checkpoint to another format, or its tables to another dtype.
 *
 * The report says how many rows of each table are equal, how many were rounded, and the largest
 * difference. Other tensors are copied byte for byte. The library reads the new file back before
 * it gets its name; that is what "verified" means.
 */
#include <stdio.h>
#include <string.h>

#include "embla_lab.h"

#include "core/inputs.h"
#include "core/model.h"
#include "core/out.h"
#include "core/progress.h"
#include "core/verbs.h"

enum { COLUMNS = 7 };

/* ---- text ---- */

typedef struct {
    char cells[COLUMNS][CLI_CELL];
} cells;

static cells cells_of(const embla_account_line *line)
{
    cells c;
    bool same_type = strcmp(line->type, line->new_type) == 0;
    snprintf(c.cells[0], CLI_CELL, "%.20s%s%.20s", line->type, same_type ? "" : " > ",
             same_type ? "" : line->new_type);
    (void)cli_commas(line->rows, c.cells[1]);
    (void)cli_commas(line->new_rows, c.cells[2]);
    (void)cli_commas(line->rows_same, c.cells[3]);
    (void)cli_commas(line->rows_rounded, c.cells[4]);
    (void)cli_commas(line->rows_nonfinite, c.cells[5]);
    snprintf(c.cells[6], CLI_CELL, "%.3g", line->difference);
    return c;
}

static void print_cells(const cells *c, const int *widths, const char *name, const char *new_name)
{
    int column = printf("%-*s", widths[0], c->cells[0]);
    for (size_t i = 1; i < COLUMNS; i++) column += printf("  %*s", widths[i], c->cells[i]);
    const size_t names = strlen(name) + (new_name ? strlen(" > ") + strlen(new_name) : 0);
    fputs(cli_out_fits(column + 2 + (int)names) ? "  " : "\n  ", stdout);
    cli_out_safe(name);
    if (new_name && strcmp(name, new_name) != 0) {
        fputs(" > ", stdout);
        cli_out_safe(new_name);
    }
    putchar('\n');
}

/* Prints rows in and out of every table. */
static void print_tables(const embla_account *account)
{
    static const cells heads = {
        {"type", "rows in", "out", "same", "rounded", "not finite", "difference"}};
    size_t line_count;
    const embla_account_line *lines = embla_account_lines(account, &line_count);
    int widths[COLUMNS];
    for (size_t i = 0; i < COLUMNS; i++) widths[i] = (int)strlen(heads.cells[i]);
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) print_cells(&heads, widths, "table", NULL);
        for (size_t n = 0; n < line_count; n++) {
            const embla_account_line *line = &lines[n];
            if (!line->table || !line->new_name) continue;
            cells c = cells_of(line);
            if (pass == 1) print_cells(&c, widths, line->name, line->new_name);
            for (size_t i = 0; i < COLUMNS; i++)
                if ((int)strlen(c.cells[i]) > widths[i]) widths[i] = (int)strlen(c.cells[i]);
        }
    }
}

/* Prints a note for rows that overflowed or became zero. */
static void print_losses(const embla_account *account)
{
    size_t line_count;
    const embla_account_line *lines = embla_account_lines(account, &line_count);
    char count[CLI_CELL];
    for (size_t n = 0; n < line_count; n++) {
        const embla_account_line *line = &lines[n];
        if (line->rows_overflowed > 0)
            cli_out_fact(
                "note",
                "overflow: %s of %.128s became infinite or NaN: the numbers are too large for %s",
                cli_plural(line->rows_overflowed, "row", count), line->name, line->new_type);
        if (line->rows_vanished > 0)
            cli_out_fact(
                "note",
                "underflow: %s of %.128s became all zeros: the numbers are too small for %s",
                cli_plural(line->rows_vanished, "row", count), line->name, line->new_type);
    }
}

typedef struct {
    int64_t written, tables, others, other_bytes, left_out;
} sums;

static sums add_up(const embla_account *account)
{
    size_t line_count;
    const embla_account_line *lines = embla_account_lines(account, &line_count);
    sums s = {0};
    for (size_t n = 0; n < line_count; n++) {
        const embla_account_line *line = &lines[n];
        bool written = line->new_name != NULL;
        s.written += written;
        s.left_out += !written;
        s.tables += written && line->table;
        s.others += written && !line->table;
        s.other_bytes += written && !line->table ? line->bytes : 0;
    }
    return s;
}

static void print_checksums(const embla_account *account)
{
    size_t line_count;
    const embla_account_line *lines = embla_account_lines(account, &line_count);
    putchar('\n');
    for (size_t n = 0; n < line_count; n++) {
        const embla_account_line *line = &lines[n];
        if (!line->new_name) continue;
        printf("%s  ", line->checksum);
        cli_out_safe(line->new_name);
        putchar('\n');
    }
}

/* Names up to ten tensors that were left out; --json names all. */
static void print_left_out(const embla_account *account, int64_t left_out)
{
    size_t line_count;
    const embla_account_line *lines = embla_account_lines(account, &line_count);
    int64_t shown = 0;
    for (size_t n = 0; n < line_count && shown < 10; n++) {
        const embla_account_line *line = &lines[n];
        if (line->new_name) continue;
        cli_out_fact("left out", "%.128s%s%s", line->name, line->why ? ": " : "",
                     line->why ? line->why : "");
        shown++;
    }
    if (left_out > shown)
        cli_out_fact("left out", "%lld more; --json names them", (long long)(left_out - shown));
}

static void print_text(const embla_account *account, const char *path, bool checksums)
{
    sums s = add_up(account);
    size_t note_count;
    const char *const *notes = embla_account_notes(account, &note_count);
    char size[CLI_CELL], count[CLI_CELL];
    const embla_account_info info = cli_account_info(account);
    cli_out_fact("written", "%s: %s, %s", path, info.format, cli_size(info.bytes, size));
    if (s.tables > 0) {
        putchar('\n');
        print_tables(account);
        putchar('\n');
    }
    if (s.others > 0)
        cli_out_fact("copied", "%s, %s, byte for byte", cli_plural(s.others, "other tensor", count),
                     cli_size(s.other_bytes, size));
    print_left_out(account, s.left_out);
    print_losses(account);
    for (size_t n = 0; n < note_count; n++) cli_out_fact("note", "%s", notes[n]);
    cli_out_fact("verified", "read back, %s equal", cli_plural(s.written, "checksum", count));
    if (checksums) print_checksums(account);
}

/* ---- JSON ---- */

static void json_line(cli_json *json, const embla_account_line *line)
{
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "name", line->name);
    cli_json_text(json, "new_name", line->new_name);
    cli_json_text(json, "type", line->type);
    cli_json_text(json, "new_type", line->new_name ? line->new_type : NULL);
    if (!line->new_name) cli_json_text(json, "why", line->why);
    if (line->new_name && line->table) {
        cli_json_whole(json, "rows", line->rows);
        cli_json_whole(json, "new_rows", line->new_rows);
        cli_json_whole(json, "rows_same", line->rows_same);
        cli_json_whole(json, "rows_rounded", line->rows_rounded);
        cli_json_whole(json, "rows_not_finite", line->rows_nonfinite);
        cli_json_whole(json, "rows_overflowed", line->rows_overflowed);
        cli_json_whole(json, "rows_vanished", line->rows_vanished);
        cli_json_real(json, "difference", line->difference);
    }
    if (line->new_name) {
        cli_json_whole(json, "bytes", line->bytes);
        cli_json_text(json, "checksum", line->checksum);
    }
    cli_json_close(json, '}');
}

static void print_json(const embla_account *account, const char *from, const char *path)
{
    cli_json json = {0};
    size_t line_count, note_count;
    const embla_account_line *lines = embla_account_lines(account, &line_count);
    const char *const *notes = embla_account_notes(account, &note_count);
    const embla_account_info info = cli_account_info(account);
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "from", from);
    cli_json_text(&json, "to", path);
    cli_json_text(&json, "format", info.format);
    cli_json_whole(&json, "bytes", info.bytes);
    cli_json_open(&json, "tensors", '[');
    for (size_t n = 0; n < line_count; n++) json_line(&json, &lines[n]);
    cli_json_close(&json, ']');
    cli_json_open(&json, "notes", '[');
    for (size_t n = 0; n < note_count; n++) cli_json_text(&json, NULL, notes[n]);
    cli_json_close(&json, ']');
    cli_json_whole(&json, "checksums_equal", add_up(account).written);
    cli_json_close(&json, '}');
    putchar('\n');
}

/* ---- the verb ---- */

static int write_file(const cli_args *args, const cli_model *model, embla_account **out)
{
    const char *path = args->operands[1];
    cli_progress progress;
    embla_convert_options options = {.to = cli_args_text(args, "to"),
                                     .rows = cli_args_count(args, "rows"),
                                     .tables_only = cli_args_flag(args, "tables"),
                                     .overwrite = cli_args_flag(args, "force"),
                                     .progress = cli_progress_call,
                                     .context = &progress};
    if (cli_args_given(args, "dtype") &&
        embla_dtype_find(cli_args_text(args, "dtype"), &options.dtype) != EMBLA_OK)
        return cli_usage("%s", embla_error());
    int code = cli_inputs_check(args, path);
    if (code == CLI_DONE) code = cli_out_check_new(path, options.overwrite);
    if (code != CLI_DONE) return code;
    cli_progress_begin(&progress, cli_args_flag(args, "quiet"));
    embla_status status = embla_convert(model->checkpoint, path, &options, out);
    cli_progress_end(&progress, status == EMBLA_OK ? "interrupted; the file is complete"
                                                   : "interrupted; nothing has been written");
    return status == EMBLA_OK ? CLI_DONE : cli_convert_failed(args, status);
}

static int run(const cli_args *args)
{
    cli_model model;
    embla_account *account = NULL;
    if (args->operand_count < 2)
        return cli_usage("convert needs an output file: embla convert IN OUT");
    if (strcmp(args->operands[1], "-") == 0)
        return cli_usage("convert writes a file, not standard output");
    int code = cli_model_open(args, args->operands[0], &model);
    if (code != CLI_DONE) return code;
    code = write_file(args, &model, &account);
    if (code == CLI_DONE && cli_args_flag(args, "json"))
        print_json(account, args->operands[0], args->operands[1]);
    else if (code == CLI_DONE)
        print_text(account, args->operands[1], cli_args_flag(args, "checksums"));
    embla_account_free(account);
    cli_model_free(&model);
    return code;
}

static const cli_option options[] = {
    {.name = "to",
     .value = "FORMAT",
     .choices = embla_convert_format_name,
     .help = "format to write; taken from the extension of OUT if not given"},
    {.name = "dtype",
     .value = "DTYPE",
     .choices = cli_model_dtype,
     .listed = cli_writable_dtype,
     .help = "dtype of token table, head and positions; unchanged if not given"},
    {.name = "rows",
     .value = "N",
     .standard = "0",
     .count = true,
     .help = "write only the first N rows of the table; 0 means all"},
    {.name = "tables", .help = "write only the tables"},
    {.name = "force", .help = "replace OUT if it exists, and its NAME.vocab.txt"},
    {.name = "checksums", .help = "print the checksum of every written tensor (XXH3, 128 bits)"},
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_convert = {
    .name = "convert",
    .synopsis = "IN OUT",
    .operand = "file to read",
    .operands_least = 1,
    .operands_most = 2,
    .files = 1,
    .about = "change the format of a checkpoint or the dtype of its tables",
    .text = "Writes the checkpoint IN, named as for 'embla info', to the file OUT. The extension "
            "of OUT determines the format. A format for one table takes the token table, or the "
            "tensor named by IN::TENSOR. Other tensors are copied byte for byte. The vocabulary "
            "goes into OUT; if the format cannot hold it, it goes to NAME.vocab.txt beside OUT.\n\n"
            "For each table the report counts the rows that are equal bit for bit, rounded to the "
            "new dtype, or not finite. It also gives the largest difference.\n\n"
            "OUT gets its name after it has been written, read back and compared, so an incomplete "
            "file never replaces an existing one. IN is never changed.",
    .example = "embla convert words.vec words.safetensors --dtype bf16",
    .options = options,
    .run = run};
