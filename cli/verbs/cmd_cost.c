/* SPDX-License-Identifier: Apache-2.0 */
/* embla cost: computes what the tables of a model cost.
 *
 * One model is printed part by part, several as one line each. Options change a preset or describe
 * a new model. A checkpoint is added up as it is stored; with options it is computed like a preset.
 * Shares are printed only if the size of the whole model is known. GB are decimal: 128,000 x 4,096
 * is 2.10 GB in f32 and 1.05 GB in bf16.
 */
#include <stdio.h>
#include <string.h>

#include "embla_lab.h"

#include "core/inputs.h"
#include "core/model.h"
#include "core/out.h"
#include "core/verbs.h"
#include "core/visible.h"
#include "host/paths.h"

enum { PRESETS_MOST = 16 };

typedef struct {
    const char *name; /* of the preset or the file; NULL means that only options describe it */
    const char *about;
    embla_cost_model model;
    embla_cost cost;
    bool changed; /* options changed it: about no longer describes it */
} priced;

static const char *dtype_name(size_t n)
{
    return embla_dtype_name((embla_dtype)(n + 1));
}

/* ---- a model from preset and options ---- */

static void set_sizes(const cli_args *args, bool all, embla_cost_model *model)
{
    static const char *const names[] = {"rows",
                                        "dim",
                                        "positions",
                                        "layers",
                                        "trunk",
                                        "ngram-rows",
                                        "ngram-dim",
                                        "ngram-rows-per-token",
                                        "ngram-scale-bytes"};
    int64_t *const fields[] = {&model->rows,
                               &model->dim,
                               &model->positions,
                               &model->layers,
                               &model->trunk,
                               &model->ngram_rows,
                               &model->ngram_dim,
                               &model->ngram_rows_per_token,
                               &model->ngram_scale_bytes};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (all || cli_args_given(args, names[i])) *fields[i] = cli_args_count(args, names[i]);
}

/* Drops preset values that an option has made invalid. */
static void drop_stale(const cli_args *args, embla_cost_model *model)
{
    bool trunk = cli_args_given(args, "trunk"), layers = cli_args_given(args, "layers");
    bool total = cli_args_given(args, "total");
    if (!trunk && (layers || total || cli_args_given(args, "dim"))) model->trunk = 0;
    if (!layers && (trunk || total)) model->layers = 0;
    if (cli_args_given(args, "ngram-dtype") && !cli_args_given(args, "ngram-scale-bytes"))
        model->ngram_scale_bytes = 0;
}

static int compute(const cli_args *args, priced *out)
{
    const int64_t all = cli_args_count(args, "total");
    if (embla_cost_compute(&out->model, &out->cost) != EMBLA_OK)
        return cli_usage("%s", embla_error());
    if (!cli_args_given(args, "total")) return CLI_DONE;
    if (all < out->cost.tables.parameters) {
        char tables[CLI_CELL], total[CLI_CELL];
        return cli_usage("--total is too small: the tables alone have %s parameters, more than %s",
                         cli_commas(out->cost.tables.parameters, tables), cli_commas(all, total));
    }
    out->model.trunk = all - out->cost.tables.parameters;
    return embla_cost_compute(&out->model, &out->cost) == EMBLA_OK ? CLI_DONE
                                                                   : cli_usage("%s", embla_error());
}

static bool same_model(const embla_cost_model *a, const embla_cost_model *b)
{
    return a->rows == b->rows && a->dim == b->dim && a->positions == b->positions &&
           a->layers == b->layers && a->trunk == b->trunk && a->ngram_rows == b->ngram_rows &&
           a->ngram_dim == b->ngram_dim && a->ngram_rows_per_token == b->ngram_rows_per_token &&
           a->ngram_scale_bytes == b->ngram_scale_bytes && a->dtype == b->dtype &&
           a->ngram_dtype == b->ngram_dtype && a->untied == b->untied && a->headless == b->headless;
}

/* ---- a preset or a file ---- */

static bool is_preset(const char *name)
{
    for (size_t n = 0; embla_cost_preset_name(n); n++)
        if (strcmp(embla_cost_preset_name(n), name) == 0) return true;
    return false;
}

/* A file of the same name comes before a preset. */
static bool is_file(const char *name)
{
    return cli_is_there(cli_input_path(name)) || strstr(name, "::") ||
           (strchr(name, '/') && !is_preset(name));
}

static int read_file(const cli_args *args, const char *name, priced *out)
{
    embla_checkpoint *checkpoint = NULL;
    int code = cli_checkpoint_open(args, name, &checkpoint);
    if (code != CLI_DONE) return code;
    if (is_preset(name) && !cli_args_flag(args, "quiet"))
        cli_complain("note: '%s' is a file here; for the preset of this name, run the command in "
                     "another folder",
                     name);
    cli_print_notes(args, checkpoint);
    if (embla_cost_checkpoint(checkpoint, &out->model, &out->cost) != EMBLA_OK)
        code = cli_failed("%s", embla_error());
    embla_checkpoint_free(checkpoint);
    return code;
}

static int read_preset(const char *name, priced *out)
{
    if (name[strspn(name, "0123456789,_x")] == '\0')
        return cli_usage("'%s' is neither a PRESET nor a FILE; a table of your own is --rows N "
                         "--dim N",
                         name);
    if (!is_preset(name)) return cli_unknown_word("PRESET or FILE", name, embla_cost_preset_name);
    for (size_t n = 0; embla_cost_preset_name(n); n++)
        if (strcmp(embla_cost_preset_name(n), name) == 0) out->about = embla_cost_preset_about(n);
    if (embla_cost_preset(name, &out->model) != EMBLA_OK) return cli_usage("%s", embla_error());
    return CLI_DONE;
}

/* Lets options change the model. */
static int change(const cli_args *args, priced *entry)
{
    embla_cost_model *model = &entry->model;
    embla_status status = EMBLA_OK;
    if (!entry->name || cli_args_given(args, "dtype"))
        status = embla_dtype_find(cli_args_text(args, "dtype"), &model->dtype);
    if (status == EMBLA_OK && cli_args_given(args, "ngram-dtype"))
        status = embla_dtype_find(cli_args_text(args, "ngram-dtype"), &model->ngram_dtype);
    if (status != EMBLA_OK) return cli_usage("%s", embla_error());

    set_sizes(args, !entry->name, model);
    if (model->ngram_rows == 0 && (model->ngram_dim > 0 || model->ngram_rows_per_token > 0 ||
                                   model->ngram_scale_bytes > 0 || model->ngram_dtype))
        return cli_usage("the other --ngram options need --ngram-rows");
    if (model->ngram_rows > 0 && (model->ngram_dim == 0 || model->ngram_rows_per_token == 0))
        return cli_usage("--ngram-rows needs --ngram-dim and --ngram-rows-per-token");
    drop_stale(args, model);
    if (cli_args_given(args, "tied")) model->untied = false;
    if (cli_args_given(args, "untied")) model->untied = true;
    if (cli_args_given(args, "tied") || cli_args_given(args, "untied")) model->headless = false;
    return CLI_DONE;
}

static int describe(const cli_args *args, const char *name, priced *out)
{
    priced entry = {.name = name};
    const bool file = name && is_file(name);
    int code = file ? read_file(args, name, &entry) : name ? read_preset(name, &entry) : CLI_DONE;
    const embla_cost_model before = entry.model;
    if (code == CLI_DONE) code = change(args, &entry);
    if (code != CLI_DONE) return code;
    entry.changed = name && !same_model(&entry.model, &before);
    if (entry.changed && entry.model.dtype == 0)
        return cli_usage("%s: the dtype of its token table is not one that can be computed with; "
                         "add --dtype",
                         name);
    if (!file || entry.changed || cli_args_given(args, "total")) {
        code = compute(args, &entry);
        entry.changed = name && !same_model(&entry.model, &before);
    }
    if (code == CLI_DONE) *out = entry;
    return code;
}

/* ---- text ---- */

static const char *share_text(const priced *entry, int64_t parameters, char text[CLI_CELL])
{
    if (entry->cost.trunk.parameters == 0) return "-";
    if (parameters == entry->cost.total.parameters) return "100%";
    snprintf(text, CLI_CELL, "%.2f%%",
             100 * (double)parameters / (double)entry->cost.total.parameters);
    return text;
}

static const char *shape_text(int64_t rows, int64_t dim, char text[CLI_CELL])
{
    char a[CLI_CELL], b[CLI_CELL];
    snprintf(text, CLI_CELL, "%.27sx%.27s", cli_commas(rows, a), cli_commas(dim, b));
    return text;
}

static void add_part(cli_grid *grid, const priced *entry, bool exact, const char *name,
                     const char *rows, embla_cost_part part)
{
    char text[CLI_CELL];
    cli_grid_put(grid, "%s", name);
    cli_grid_put(grid, "%s", rows);
    cli_grid_put(grid, "%s", cli_commas(part.parameters, text));
    if (exact) cli_grid_put(grid, "%s", cli_commas(part.bytes, text));
    cli_grid_put(grid, "%s", cli_size(part.bytes, text));
    if (entry->cost.trunk.parameters > 0)
        cli_grid_put(grid, "%s", share_text(entry, part.parameters, text));
}

/* What the head is: a shape, or a word. */
static const char *head_text(const embla_cost_model *model, char text[CLI_CELL])
{
    if (model->untied) return shape_text(model->rows, model->dim, text);
    return model->headless ? "none" : "tied";
}

static const char *head_word(const embla_cost_model *model)
{
    return model->untied ? "untied" : model->headless ? "none" : "tied";
}

static const char *dtype_text(const embla_cost_model *model)
{
    return model->dtype ? embla_dtype_name(model->dtype) : "another dtype";
}

/* exact: with a column of bytes beside the sizes. */
static void list_parts(const priced *entry, bool exact, cli_grid *grid)
{
    static const char *const heads[] = {"part",  "rows x dim", "parameters",
                                        "bytes", "size",       "share"};
    const embla_cost_model *model = &entry->model;
    const embla_cost *cost = &entry->cost;
    bool whole = cost->trunk.parameters > 0;
    char text[CLI_CELL];
    *grid = (cli_grid){.columns = (size_t)4 + exact + whole};
    for (size_t i = 0; i < (whole ? 6U : 5U); i++)
        if (exact || i != 3) cli_grid_put(grid, "%s", heads[i]);
    add_part(grid, entry, exact, "token table", shape_text(model->rows, model->dim, text),
             cost->tokens);
    if (model->positions > 0)
        add_part(grid, entry, exact, "positions", shape_text(model->positions, model->dim, text),
                 cost->positions);
    if (model->ngram_rows > 0)
        add_part(grid, entry, exact, "n-gram tables",
                 shape_text(model->ngram_rows, model->ngram_dim, text), cost->ngram);
    if (model->positions > 0 || model->ngram_rows > 0)
        add_part(grid, entry, exact, "input tables", "", cost->inputs);
    add_part(grid, entry, exact, "head", head_text(model, text), cost->head);
    add_part(grid, entry, exact, "all tables", "", cost->tables);
    if (whole) add_part(grid, entry, exact, "trunk", "", cost->trunk);
    if (whole) add_part(grid, entry, exact, "total", "", cost->total);
}

/* A narrow terminal gets the sizes alone. */
static void print_parts(const priced *entry)
{
    cli_grid grid;
    list_parts(entry, true, &grid);
    if (!cli_grid_fits(&grid)) list_parts(entry, false, &grid);
    static const char *const align[] = {"lrrr", "lrrrr", "lrrrrr"};
    cli_grid_print(&grid, align[grid.columns - 4]);
}

static void add_work(cli_grid *grid, const char *what, int64_t count, const char *unit)
{
    char text[CLI_CELL];
    cli_grid_put(grid, "%s", what);
    cli_grid_put(grid, "%s", cli_commas(count, text));
    cli_grid_put(grid, "%s", unit);
}

/* The work of the head, and what tying changes. */
static void add_head(const priced *entry, cli_grid *grid)
{
    const embla_cost_model *model = &entry->model;
    const embla_cost *cost = &entry->cost;
    char text[CLI_CELL];
    add_work(grid, "head, one token", cost->head_madds, "multiply-adds");
    cli_grid_put(grid, "reads %s", cli_size(cost->head_bytes, text));
    cli_grid_put(grid, "  as attention");
    cli_grid_put(grid, "%.2f", cost->head_layers);
    cli_grid_put(grid, "layers");
    cli_grid_put(grid, "of 4 dim^2 multiply-adds");
    if (cost->read_bytes > 0) {
        cli_grid_put(grid, "  of the bytes read");
        cli_grid_put(grid, "%.2f%%", 100 * (double)cost->head_bytes / (double)cost->read_bytes);
        cli_grid_put(grid, "share");
        cli_grid_put(grid, "of %s in all", cli_size(cost->read_bytes, text));
    }
    const embla_cost_part saved = model->untied ? cost->head : cost->tokens;
    add_work(grid, model->untied ? "tying would save" : "tying saves", saved.parameters,
             "parameters");
    cli_grid_put(grid, "%s; same operations", cli_size(saved.bytes, text));
}

static void print_work(const priced *entry)
{
    const embla_cost_model *model = &entry->model;
    const embla_cost *cost = &entry->cost;
    cli_grid grid = {.columns = 4, .no_heading = true};
    char text[CLI_CELL];
    int64_t rows =
        1 + (model->positions > 0) + (model->ngram_rows > 0 ? model->ngram_rows_per_token : 0);

    add_work(&grid, "lookup, one token", cost->lookup_bytes, "bytes");
    cli_grid_put(&grid, "%s row%s, copied", cli_commas(rows, text), rows == 1 ? "" : "s");
    add_work(&grid, "as a one-hot product", cost->one_hot_madds, "multiply-adds");
    cli_grid_put(&grid, "all but %s by zero", cli_commas(model->dim, text));
    if (!model->headless) add_head(entry, &grid);
    cli_grid_print(&grid, "lrll");
}

static void print_one(const priced *entry)
{
    const embla_cost_model *model = &entry->model;
    char text[CLI_CELL];
    if (entry->name) {
        cli_out_safe(entry->name);
        printf("%s: ", entry->changed ? ", changed" : "");
    }
    printf("%s, %s, head %s\n", shape_text(model->rows, model->dim, text), dtype_text(model),
           head_word(model));
    if (entry->about && !entry->changed) cli_out_wrapped(entry->about, 0, 0);
    putchar('\n');
    print_parts(entry);
    putchar('\n');
    print_work(entry);
    if (embla_cost_note(model, 0)) putchar('\n');
    for (size_t n = 0; embla_cost_note(model, n); n++)
        cli_out_fact("note", "%s", embla_cost_note(model, n));
}

static void print_several(const priced *entries, size_t count)
{
    static const char *const heads[] = {"model",  "rows x dim", "dtype", "head",
                                        "tables", "of all",     "lookup"};
    cli_grid grid = {.columns = 7};
    char text[CLI_CELL];
    for (size_t i = 0; i < 7; i++) cli_grid_put(&grid, "%s", heads[i]);
    for (size_t i = 0; i < count; i++) {
        const embla_cost_model *model = &entries[i].model;
        const embla_cost *cost = &entries[i].cost;
        char name[CLI_WORD_TEXT];
        (void)cli_word_show(entries[i].name, strlen(entries[i].name), false, CLI_WORD_COLUMNS,
                            name);
        cli_grid_put(&grid, "%s%s", name, entries[i].changed ? ", changed" : "");
        cli_grid_put(&grid, "%s", shape_text(model->rows, model->dim, text));
        cli_grid_put(&grid, "%s", model->dtype ? embla_dtype_name(model->dtype) : "-");
        cli_grid_put(&grid, "%s", head_word(model));
        cli_grid_put(&grid, "%s", cli_size(cost->tables.bytes, text));
        cli_grid_put(&grid, "%s", share_text(&entries[i], cost->tables.parameters, text));
        cli_grid_put(&grid, "%s", cli_size(cost->lookup_bytes, text));
    }
    cli_grid_print(&grid, "lrllrrr");
}

/* ---- JSON ---- */

static void json_part(cli_json *json, const char *key, embla_cost_part part)
{
    cli_json_open(json, key, '{');
    cli_json_count(json, "parameters", part.parameters);
    cli_json_count(json, "bytes", part.bytes);
    cli_json_close(json, '}');
}

static void json_entry(cli_json *json, const priced *entry)
{
    const embla_cost_model *model = &entry->model;
    const embla_cost *cost = &entry->cost;
    embla_dtype ngram_dtype = model->ngram_dtype ? model->ngram_dtype : model->dtype;
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "model", entry->name);
    cli_json_bool(json, "changed", entry->changed);
    cli_json_count(json, "rows", model->rows);
    cli_json_count(json, "dim", model->dim);
    cli_json_count(json, "positions", model->positions);
    cli_json_count(json, "layers", model->layers);
    cli_json_text(json, "dtype", embla_dtype_name(model->dtype));
    if (model->headless)
        cli_json_text(json, "tied", NULL);
    else
        cli_json_bool(json, "tied", !model->untied);
    cli_json_count(json, "ngram_rows", model->ngram_rows);
    cli_json_count(json, "ngram_dim", model->ngram_dim);
    cli_json_count(json, "ngram_rows_per_token", model->ngram_rows_per_token);
    cli_json_count(json, "ngram_scale_bytes", model->ngram_scale_bytes);
    cli_json_text(json, "ngram_dtype", model->ngram_rows ? embla_dtype_name(ngram_dtype) : NULL);
    json_part(json, "token_table", cost->tokens);
    json_part(json, "position_table", cost->positions);
    json_part(json, "head", cost->head);
    json_part(json, "ngram_tables", cost->ngram);
    json_part(json, "input_tables", cost->inputs);
    json_part(json, "tables", cost->tables);
    json_part(json, "trunk", cost->trunk);
    json_part(json, "total", cost->total);
    if (cost->trunk.parameters > 0)
        cli_json_real(json, "tables_share",
                      (double)cost->tables.parameters / (double)cost->total.parameters);
    else
        cli_json_text(json, "tables_share", NULL);
    cli_json_count(json, "lookup_bytes_per_token", cost->lookup_bytes);
    cli_json_count(json, "one_hot_madds_per_token", cost->one_hot_madds);
    cli_json_count(json, "head_madds_per_token", cost->head_madds);
    cli_json_count(json, "head_bytes_per_token", cost->head_bytes);
    cli_json_real(json, "head_attention_layers", cost->head_layers);
    if (cost->read_bytes > 0) {
        cli_json_count(json, "read_bytes_per_token", cost->read_bytes);
        cli_json_real(json, "head_read_share", (double)cost->head_bytes / (double)cost->read_bytes);
    } else {
        cli_json_text(json, "read_bytes_per_token", NULL);
        cli_json_text(json, "head_read_share", NULL);
    }
    cli_json_open(json, "notes", '[');
    for (size_t n = 0; embla_cost_note(model, n); n++)
        cli_json_text(json, NULL, embla_cost_note(model, n));
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

static void json_all(const priced *entries, size_t count)
{
    cli_json json = {0};
    if (count == 1) {
        json_entry(&json, &entries[0]);
    } else {
        cli_json_open(&json, NULL, '{');
        cli_json_open(&json, "models", '[');
        for (size_t i = 0; i < count; i++) json_entry(&json, &entries[i]);
        cli_json_close(&json, ']');
        cli_json_close(&json, '}');
    }
    putchar('\n');
}

/* ---- the verb ---- */

static int list(bool as_json)
{
    cli_json json = {0};
    const char *name;
    if (as_json) {
        cli_json_open(&json, NULL, '{');
        cli_json_open(&json, "presets", '[');
    }
    for (size_t n = 0; (name = embla_cost_preset_name(n)); n++) {
        if (!as_json) {
            cli_out_wrapped(embla_cost_preset_about(n), printf("%-20s ", name), 21);
            continue;
        }
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "name", name);
        cli_json_text(&json, "about", embla_cost_preset_about(n));
        cli_json_close(&json, '}');
    }
    if (as_json) {
        cli_json_close(&json, ']');
        cli_json_close(&json, '}');
        putchar('\n');
    }
    return CLI_DONE;
}

static int run(const cli_args *args)
{
    priced entries[PRESETS_MOST];
    size_t count = args->operand_count > 0 ? args->operand_count : 1;
    bool json = cli_args_flag(args, "json");
    if (cli_args_flag(args, "list") && args->operand_count > 0)
        return cli_usage("--list prints all presets; it takes no PRESET and no FILE");
    if (cli_args_flag(args, "list")) return list(json);
    if (args->operand_count == 0 && cli_args_given(args, "rows") != cli_args_given(args, "dim"))
        return cli_usage("cost also needs --%s", cli_args_given(args, "rows") ? "dim" : "rows");
    if (args->operand_count == 0 && !cli_args_given(args, "rows"))
        return cli_usage("cost needs a PRESET, a FILE, or --rows and --dim; 'embla cost --list' "
                         "prints the presets");
    if (cli_args_given(args, "tied") && cli_args_given(args, "untied"))
        return cli_usage("--tied and --untied cannot be used together");
    if (cli_args_given(args, "total") &&
        (cli_args_given(args, "trunk") || cli_args_given(args, "layers")))
        return cli_usage("--total cannot be used with --trunk or --layers");
    for (size_t i = 0; i < count; i++) {
        int code = describe(args, args->operand_count > 0 ? args->operands[i] : NULL, &entries[i]);
        if (code != CLI_DONE) return code;
    }
    if (json)
        json_all(entries, count);
    else if (count == 1)
        print_one(&entries[0]);
    else
        print_several(entries, count);
    return CLI_DONE;
}

#define COUNT(option, meaning, zero)                                                               \
    {                                                                                              \
        .name = option, .value = "N", .count = true, .standard = zero, .help = meaning             \
    }
static const cli_option options[] = {
    COUNT("rows", "rows of the token table", NULL),
    COUNT("dim", "embedding dimension (d_model)", NULL),
    COUNT("positions", "rows of a learned position table", "0"),
    {.name = "dtype",
     .value = "DTYPE",
     .standard = "f32",
     .choices = dtype_name,
     .help = "dtype of tables and trunk"},
    {.name = "tied", .standard = "on", .help = "treat the head as tied to the token table"},
    {.name = "untied", .help = "treat the head as a separate table"},
    COUNT("layers", "layers of a GPT trunk, with 12 dim^2 parameters each", "0"),
    COUNT("trunk", "parameters outside the tables, instead of --layers", "0"),
    COUNT("total", "parameters of the whole model, instead of --trunk", NULL),
    COUNT("ngram-rows", "rows of all hashed n-gram tables together", "0"),
    COUNT("ngram-dim", "dim of the n-gram tables", "0"),
    COUNT("ngram-rows-per-token", "n-gram rows looked up per token", "0"),
    {.name = "ngram-dtype",
     .value = "DTYPE",
     .choices = dtype_name,
     .help = "dtype of the n-gram tables; --dtype if not given"},
    COUNT("ngram-scale-bytes", "bytes of scales per n-gram row", "0"),
    {.name = "list", .help = "print the presets and the sources of their figures"},
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_cost = {
    .name = "cost",
    .synopsis = "[PRESET|FILE]...",
    .operand = "PRESET",
    .operands_most = PRESETS_MOST,
    .files = PRESETS_MOST,
    .choices = embla_cost_preset_name,
    .or_files = true,
    .about = "compute parameters, bytes and operations of a model's tables",
    .text =
        "Prints the parameters, bytes and share of each table. Also prints the bytes that a lookup "
        "reads and the multiply-adds of the head, both for one token. A tied head needs as many "
        "operations as an untied one. The head is compared with attention layers, which have 4 "
        "dim^2 multiply-adds each, and with all weights that are read for one token. Several "
        "models are compared, one per line: the "
        "bytes of all tables, their share of the parameters, and the bytes of one lookup. Notes "
        "name figures that are often quoted for such a model and are wrong.\n\n"
        "FILE is a checkpoint as for 'embla info'. Its tensors are added up as they are stored; "
        "the trunk is all that is no table and no head. Masks and other constants do not count. "
        "If a PRESET is also the name of a file, the file is meant.\n\n"
        "Options change presets and files; a changed file is computed in one dtype. Without a "
        "PRESET or FILE, --rows and --dim are required and the other "
        "options have the defaults below. Shares are printed if the size of the trunk is known. "
        "kB, MB and GB are decimal.",
    .example = "embla cost --rows 128,000 --dim 4,096 --dtype bf16 --total 70_000_000_000",
    .options = options,
    .run = run};
