/* SPDX-License-Identifier: Apache-2.0 */
/* embla embed without tokens: rows of positions, or angles of rotary ones, as data or as a picture.
 * Without a FILE the positions are those of a formula.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/verbs.h"
#include "draw/waves.h"
#include "host/paths.h"
#include "verbs/embed_job.h"

enum { LENGTH = 64, LENGTH_ROTARY = 8, LENGTH_MOST = 1 << 20 };
enum { DIM = 64, DIM_ROTARY = 16, DIM_MOST = 1 << 16 }; /* without a FILE */

typedef struct {
    cli_asked asked; /* nothing without a FILE */
    const char *name;
    cli_vectors_form form;
    cli_embed_kind kind; /* not AUTO, not NONE */
    cli_learned learned;
    cli_rotary rotary;
    size_t dim, shown; /* numbers of a row, and those that are printed */
    int64_t first;
    size_t count;
    float *values; /* count x dim; NULL if rotary */
} job;

/* ---- options ---- */

static int open_model(const cli_args *args, job *j)
{
    const char *path = args->operands[0];
    int code = cli_asked_open(args, path, &j->asked);
    if (code != CLI_DONE) return code;
    const embla_checkpoint *checkpoint = j->asked.model.checkpoint;
    j->name = cli_path_title(path);
    j->dim = embla_table_dim(j->asked.table);
    if (j->kind == CLI_EMBED_AUTO) j->kind = cli_embed_kind_of(checkpoint);
    if (j->kind == CLI_EMBED_NONE)
        return cli_failed("%s has no positions of its own; use --positions sinusoidal or rotary",
                          path);
    if (j->kind == CLI_EMBED_ROTARY && !cli_rotary_read(checkpoint, j->dim, &j->rotary))
        return cli_failed("a head of %s has %zu numbers, which are no pairs to rotate", path,
                          j->rotary.dim);
    return j->kind == CLI_EMBED_LEARNED ? cli_learned_open(&j->asked.model, j->dim, &j->learned)
                                        : CLI_DONE;
}

/* --dim is the dim of the formula, or with a FILE the numbers to print. */
static int read_dim(const cli_args *args, job *j)
{
    const bool given = cli_args_given(args, "dim"), rotary = j->kind == CLI_EMBED_ROTARY;
    const int64_t dim = given ? cli_args_count(args, "dim") : rotary ? DIM_ROTARY : DIM;
    if (args->operand_count == 0) {
        if (dim < 2 || dim > DIM_MOST || dim % 2 != 0)
            return cli_usage("--dim is %" PRId64 "; it must be even, from 2 to %d", dim,
                             (int)DIM_MOST);
        j->dim = cli_as_size(dim);
        j->rotary = (cli_rotary){.dim = j->dim, .theta = 10000};
    } else if (given && (dim < 1 || dim > (int64_t)j->dim || rotary)) {
        return rotary ? cli_usage("--dim needs positions that are rows; rotary ones are angles")
                      : cli_usage("--dim is %" PRId64
                                  "; it must be between 1 and %zu, the dim of the table",
                                  dim, j->dim);
    }
    j->shown = given && !rotary ? (size_t)dim : j->dim;
    return CLI_DONE;
}

static int read_length(const cli_args *args, job *j)
{
    const bool given = cli_args_given(args, "length");
    int64_t length = given                         ? cli_args_count(args, "length")
                     : j->kind == CLI_EMBED_ROTARY ? LENGTH_ROTARY
                                                   : LENGTH;
    j->first = cli_args_count(args, "first-position");
    if (length > LENGTH_MOST || j->first > CLI_EMBED_POSITION_MOST)
        return cli_usage("--first-position and --length can be at most %" PRId64 " and %d",
                         CLI_EMBED_POSITION_MOST, (int)LENGTH_MOST);
    if (j->kind == CLI_EMBED_LEARNED) {
        const int64_t all = embla_table_rows(j->learned.table) - j->learned.zero;
        if (!given && length > all - j->first && j->first < all) length = all - j->first;
        if (j->first > all - length)
            return cli_failed("the position table '%.128s' has %" PRId64
                              " positions, but --first-position %" PRId64 " and --length %" PRId64
                              " need %" PRId64 "; use smaller ones",
                              j->learned.tensor.name, all, j->first, length, j->first + length);
    }
    j->count = cli_as_size(length);
    return CLI_DONE;
}

static int check_sheet(const job *j)
{
    cli_sheet_kind kind;
    if (j->kind == CLI_EMBED_ROTARY || !cli_vectors_is_sheet(j->form, &kind)) return CLI_DONE;
    if (j->count > CLI_WAVES_POSITIONS)
        return cli_usage("--length is %zu; a picture has at most %d positions", j->count,
                         (int)CLI_WAVES_POSITIONS);
    return CLI_DONE;
}

static int make_values(job *j)
{
    embla_status status = EMBLA_OK;
    if (j->kind == CLI_EMBED_ROTARY) return CLI_DONE;
    j->values = malloc(j->count * j->dim * sizeof *j->values);
    int64_t *rows = malloc(j->count * sizeof *rows);
    if (!j->values || !rows) {
        free(rows);
        return cli_failed("no memory for %zu positions", j->count);
    }
    for (size_t i = 0; i < j->count; i++) rows[i] = j->learned.zero + j->first + (int64_t)i;
    status = j->kind == CLI_EMBED_LEARNED
                 ? embla_lookup_rows(j->learned.table, rows, j->count, NULL, j->values)
                 : embla_sinusoid(j->first, j->count, j->dim, 0, j->values);
    free(rows);
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

/* ---- a terminal ---- */

static void print_rows(const job *j)
{
    const size_t most = j->shown < CLI_PEN_NUMBERS ? j->shown : CLI_PEN_NUMBERS;
    const size_t rows = j->count <= CLI_PEN_ROWS ? j->count : CLI_PEN_ROWS - 1;
    float values[CLI_PEN_ROWS * CLI_PEN_NUMBERS] = {0};
    char text[32];
    for (size_t i = 0; i < rows; i++)
        memcpy(values + i * CLI_PEN_NUMBERS, j->values + i * j->dim, most * sizeof *values);
    const cli_pen_cells cells = cli_pen_measure(&(const float *){values}, 1, rows, most);
    const int64_t last = j->first + (int64_t)rows - 1;
    const size_t digits = (size_t)snprintf(text, sizeof text, "%" PRId64, last);
    size_t count = most;
    while (count > 1 && digits + count * cells.wide + 3 > (size_t)cli_pen_width()) count--;
    puts("position\n");
    for (size_t i = 0; i < rows; i++) {
        cli_pen pen = {0};
        cli_pen_row(&pen, &cells, j->first + (int64_t)i, digits, values + i * CLI_PEN_NUMBERS,
                    count, count < j->dim, 0);
        putchar('\n');
    }
    if (rows < j->count) printf("%zu more\n", j->count - rows);
}

static void print_facts(const job *j)
{
    char count[CLI_CELL];
    putchar('\n');
    if (j->kind == CLI_EMBED_ROTARY)
        cli_rotary_fact(&j->rotary);
    else if (j->kind == CLI_EMBED_LEARNED)
        cli_out_fact(
            "positions", "learned: tensor '%.128s' has %s", j->learned.tensor.name,
            cli_plural(embla_table_rows(j->learned.table) - j->learned.zero, "position", count));
    else
        cli_out_fact("positions",
                     "sinusoidal: sine and cosine of position / 10000^(2i/dim), dim %zu", j->dim);
}

/* ---- data ---- */

/* The numbers of a position: of its row, or its angles. */
static void print_position(const job *j, size_t i, cli_json *json)
{
    const int64_t position = j->first + (int64_t)i;
    const char gap = j->form == CLI_VECTORS_TSV ? '\t' : ' ';
    const size_t numbers = j->values ? j->shown : j->rotary.dim / 2;
    if (json) {
        cli_json_open(json, NULL, '{');
        cli_json_whole(json, "position", position);
        if (!j->values) {
            cli_rotary_json_angles(&j->rotary, position, json);
        } else {
            cli_json_open(json, "values", '[');
            for (size_t k = 0; k < numbers; k++)
                cli_json_real(json, NULL, (double)j->values[i * j->dim + k]);
            cli_json_close(json, ']');
        }
        cli_json_close(json, '}');
        return;
    }
    printf("%" PRId64, position);
    for (size_t k = 0; k < numbers; k++)
        printf("%c%.9g", k == 0 ? '\t' : gap,
               j->values ? (double)j->values[i * j->dim + k]
                         : (double)position * cli_rotary_step(&j->rotary, k));
    putchar('\n');
}

/* npy, raw and fvecs: numbers alone. */
static void print_binary(const job *j)
{
    if (j->form == CLI_VECTORS_NPY) cli_vectors_npy(j->count, j->shown);
    for (size_t i = 0; i < j->count; i++) {
        if (j->form == CLI_VECTORS_FVECS)
            cli_vectors_fvecs(j->values + i * j->dim, j->shown);
        else
            cli_vectors_raw(j->values + i * j->dim, j->shown);
    }
}

static void print_json(const job *j)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "positions", cli_embed_kind_name(j->kind));
    cli_json_text(&json, "position_tensor", j->learned.table ? j->learned.tensor.name : NULL);
    cli_json_whole(&json, "dim", (int64_t)j->shown);
    if (!j->values) cli_rotary_json(&j->rotary, &json);
    cli_json_open(&json, "rows", '[');
    for (size_t i = 0; i < j->count; i++) print_position(j, i, &json);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    putchar('\n');
}

static void print_data(const job *j)
{
    cli_json json = {0};
    if (j->form == CLI_VECTORS_JSON)
        print_json(j);
    else if (j->form == CLI_VECTORS_NPY || j->form == CLI_VECTORS_RAW ||
             j->form == CLI_VECTORS_FVECS)
        print_binary(j);
    for (size_t i = 0; i < j->count; i++) {
        json.comma = false;
        if (j->form == CLI_VECTORS_JSONL) {
            print_position(j, i, &json);
            putchar('\n');
        } else if (j->form == CLI_VECTORS_TEXT || j->form == CLI_VECTORS_TSV) {
            print_position(j, i, NULL);
        }
    }
}

/* ---- a picture for a file ---- */

static int print_sheet(const job *j, cli_sheet_kind kind)
{
    const bool waves = j->kind == CLI_EMBED_SINUSOIDAL;
    const size_t most = CLI_WAVES_NUMBERS, dim = j->shown < most ? j->shown : most;
    char title[160], facts[256], shown[64] = "";
    if (j->kind == CLI_EMBED_ROTARY)
        return cli_rotary_sheet(&j->rotary, j->name, j->first, j->count, NULL, kind);
    float *values = malloc(j->count * dim * sizeof *values);
    if (!values) return cli_failed("no memory for %zu positions", j->count);
    for (size_t i = 0; i < j->count; i++)
        memcpy(values + i * dim, j->values + i * j->dim, dim * sizeof *values);
    if (dim < j->dim) snprintf(shown, sizeof shown, ", the first %zu of %zu numbers", dim, j->dim);
    snprintf(title, sizeof title, waves ? "Sinusoidal positions" : "Learned positions of %.100s",
             j->name ? j->name : "");
    if (waves)
        snprintf(facts, sizeof facts,
                 "column 2i of position p is sin(p / 10000^(2i/%zu)), column 2i+1 the cosine%s",
                 j->dim, shown);
    else
        snprintf(facts, sizeof facts, "%zu rows of '%.100s', which are added to rows of tokens%s",
                 j->count, j->learned.tensor.name, shown);
    const cli_waves picture = {
        .title = title,
        .facts = facts,
        .about = waves ? "Positions from left to right, the numbers of their rows from top to "
                         "bottom; blue is negative, orange positive. The first columns are fast "
                         "waves, the last ones slow. Some of them are drawn as lines below."
                       : "Positions from left to right, the numbers of their rows from top to "
                         "bottom; blue is negative, orange positive.",
        .values = values,
        .count = j->count,
        .dim = dim,
        .whole = j->dim,
        .first = j->first,
        .waves = waves};
    int code = cli_waves_print(kind, &picture);
    free(values);
    return code;
}

/* ---- the verb ---- */

static int set_up(const cli_args *args, job *j)
{
    const char *wanted = cli_args_text(args, "positions"), *part = cli_args_text(args, "part");
    int code = cli_vectors_choose(args, cli_vectors_format, cli_args_flag(args, "plain"), &j->form);
    if (code != CLI_DONE) return code;
    while (strcmp(cli_embed_kind_name(j->kind), wanted) != 0) j->kind++;
    if (cli_args_given(args, "part") && strcmp(part, "positions") != 0)
        return cli_usage("--part %s needs a TOKEN, or --ids", part);
    if (args->operand_count == 0 && j->kind != CLI_EMBED_SINUSOIDAL && j->kind != CLI_EMBED_ROTARY)
        return cli_usage("embed needs a FILE; only --positions sinusoidal and rotary do without");
    if (args->operand_count > 0) code = open_model(args, j);
    if (code == CLI_DONE) code = read_dim(args, j);
    if (code == CLI_DONE) code = read_length(args, j);
    if (code == CLI_DONE) code = check_sheet(j);
    if (code != CLI_DONE) return code;
    if (j->kind == CLI_EMBED_ROTARY &&
        (j->form == CLI_VECTORS_NPY || j->form == CLI_VECTORS_RAW || j->form == CLI_VECTORS_FVECS))
        return cli_usage("rotary positions are angles, not rows; use text, tsv, json or a picture");
    return CLI_DONE;
}

static int print(const cli_args *args, const job *j)
{
    cli_sheet_kind kind;
    if (cli_vectors_is_sheet(j->form, &kind)) return print_sheet(j, kind);
    if (j->form != CLI_VECTORS_PICTURE) {
        print_data(j);
        return CLI_DONE;
    }
    if (j->kind == CLI_EMBED_ROTARY)
        cli_rotary_table(&j->rotary, j->first, j->count, NULL);
    else
        print_rows(j);
    if (!cli_args_flag(args, "quiet")) print_facts(j);
    return CLI_DONE;
}

int cli_embed_positions(const cli_args *args)
{
    job j = {.count = 0};
    int code = set_up(args, &j);
    if (code == CLI_DONE) code = make_values(&j);
    if (code == CLI_DONE) code = cli_vectors_redirect(args, j.form);
    if (code == CLI_DONE) code = print(args, &j);
    code = cli_out_done(code);
    free(j.values);
    embla_table_free(j.learned.table);
    cli_asked_free(&j.asked);
    return code;
}
