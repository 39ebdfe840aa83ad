/* SPDX-License-Identifier: Apache-2.0 */
/* embla embed: what a model computes with: for each token its row, times the model's factor, plus
 * the row of its position.
 *
 * The factor and the row of position 0 are facts of the checkpoint. Positions come from its
 * position table, or from a formula. All tokens and positions are checked before anything is
 * printed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/vectors.h"
#include "core/verbs.h"
#include "draw/picture.h"

enum { AUTO, LEARNED, SINUSOIDAL, NONE, KINDS };
static const char *const kinds[KINDS] = {"auto", "learned", "sinusoidal", "none"};
enum { SUM, ROWS, POSITIONS, PARTS };
static const char *const parts[PARTS] = {"sum", "rows", "positions"};

/* Positions above this cannot be told apart in a double. */
#define POSITION_MOST (INT64_C(1) << 53)

typedef struct {
    cli_vectors vectors;
    int32_t *tokens;      /* those of vectors */
    int kind;             /* not AUTO */
    bool rotary;          /* the model rotates queries and keys instead */
    embla_tensor tensor;  /* LEARNED: the position table */
    embla_table *learned; /* the same */
    int64_t first;        /* --first-position */
    int64_t *positions;   /* the row of each token's position; NULL without a position table */
    int part;             /* what the data formats contain */
} job;

static size_t dim_of(const job *j)
{
    return embla_table_dim(j->vectors.asked.table);
}

/* ---- vectors ---- */

static embla_status make_rows(const job *j, size_t at, size_t count, float *out)
{
    const embla_embed_options options = {.scale = (float)j->vectors.asked.model.facts.scale,
                                         .threads = j->vectors.threads};
    return embla_embed(j->vectors.asked.table, j->tokens + at, 1, count, &options, out);
}

static embla_status make_positions(const job *j, size_t at, size_t count, float *out)
{
    const embla_lookup_options options = {.threads = j->vectors.threads};
    if (j->kind == LEARNED)
        return embla_lookup_rows(j->learned, j->positions + at, count, &options, out);
    if (j->kind == SINUSOIDAL)
        return embla_sinusoid(j->first + (int64_t)at, count, dim_of(j), 0, out);
    memset(out, 0, count * dim_of(j) * sizeof *out);
    return EMBLA_OK;
}

static embla_status make_sum(const job *j, size_t at, size_t count, float *out)
{
    const embla_embed_options options = {.position_table = j->learned,
                                         .positions = j->positions ? j->positions + at : NULL,
                                         .scale = (float)j->vectors.asked.model.facts.scale,
                                         .threads = j->vectors.threads};
    return embla_embed(j->vectors.asked.table, j->tokens + at, 1, count, &options, out);
}

/* Adds rows to what embla_sinusoid wrote, as a table of `count` positions. */
static embla_status add_rows(const job *j, const float *positions, size_t at, size_t count,
                             float *out)
{
    embla_table *view = NULL;
    embla_embed_options options = {.scale = (float)j->vectors.asked.model.facts.scale,
                                   .threads = j->vectors.threads};
    embla_status status = embla_table_view(
        &(embla_table_layout){.dtype = EMBLA_F32, .rows = (int64_t)count, .dim = dim_of(j)},
        positions, count * dim_of(j) * sizeof *positions, NULL, &view);
    options.position_table = view;
    if (status == EMBLA_OK)
        status = embla_embed(j->vectors.asked.table, j->tokens + at, 1, count, &options, out);
    embla_table_free(view);
    return status;
}

static int add_sinusoid(const job *j, size_t at, size_t count, float *out)
{
    float *positions = malloc(count * dim_of(j) * sizeof *positions);
    if (!positions) return cli_failed("no memory for %zu positions", count);
    embla_status status = make_positions(j, at, count, positions);
    if (status == EMBLA_OK) status = add_rows(j, positions, at, count, out);
    free(positions);
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

static int make_part(const job *j, int part, size_t at, size_t count, float *out)
{
    if (part == SUM && j->kind == SINUSOIDAL) return add_sinusoid(j, at, count, out);
    embla_status status = part == SUM    ? make_sum(j, at, count, out)
                          : part == ROWS ? make_rows(j, at, count, out)
                                         : make_positions(j, at, count, out);
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

/* ---- data ---- */

static int make_data(const void *context, size_t at, size_t count, float *out)
{
    const job *j = context;
    return make_part(j, j->part, at, count, out);
}

static void json_facts(const void *context, cli_json *json)
{
    const job *j = context;
    cli_json_text(json, "part", parts[j->part]);
    cli_json_text(json, "positions", kinds[j->kind]);
    cli_json_text(json, "position_tensor", j->learned ? j->tensor.name : NULL);
    cli_json_real(json, "scale", j->vectors.asked.model.facts.scale);
}

static void json_position(const void *context, size_t i, cli_json *json)
{
    const job *j = context;
    cli_json_whole(json, "position", j->first + (int64_t)i);
    if (j->positions) cli_json_whole(json, "position_row", j->positions[i]);
}

static int print_data(const job *j)
{
    return cli_vectors_print(&j->vectors, &(cli_vectors_source){.context = j,
                                                                .make = make_data,
                                                                .json = json_facts,
                                                                .json_token = json_position});
}

/* ---- picture ---- */

typedef struct {
    float values[PARTS][CLI_PEN_ROWS * CLI_PEN_NUMBERS];
    int64_t positions[CLI_PEN_ROWS]; /* positions, not rows of the position table */
    char headings[PARTS][2 * CLI_CELL];
} drawing;

static int read_values(const job *j, drawing *d)
{
    static const int order[PARTS] = {ROWS, POSITIONS, SUM};
    const size_t dim = dim_of(j), all = j->vectors.tokens.count;
    size_t count = all < CLI_PEN_ROWS ? all : CLI_PEN_ROWS;
    float *out = malloc(count * dim * sizeof *out);
    int code = out ? CLI_DONE : cli_failed("no memory for %zu rows", count);
    for (size_t p = 0; p < PARTS && code == CLI_DONE; p++) {
        code = make_part(j, order[p], 0, count, out);
        for (size_t i = 0; i < count && code == CLI_DONE; i++)
            for (size_t k = 0; k < CLI_PEN_NUMBERS && k < dim; k++)
                d->values[p][i * CLI_PEN_NUMBERS + k] = out[i * dim + k];
    }
    for (size_t i = 0; i < count; i++) d->positions[i] = j->first + (int64_t)i;
    free(out);
    return code;
}

static void write_headings(const job *j, drawing *d)
{
    const embla_table *table = j->vectors.asked.table;
    const embla_facts *facts = &j->vectors.asked.model.facts;
    char times[CLI_CELL] = "", rows[CLI_CELL], dim[CLI_CELL];
    if (facts->scale != 1) snprintf(times, sizeof times, " x %.4g", facts->scale);
    (void)cli_commas((int64_t)dim_of(j), dim);
    snprintf(d->headings[0], sizeof d->headings[0], "rows%.20s, %.30s x %.30s", times,
             cli_commas(embla_table_rows(table), rows), dim);
    if (j->learned)
        snprintf(d->headings[1], sizeof d->headings[1], "positions, %.30s x %.30s",
                 cli_commas(embla_table_rows(j->learned), rows), dim);
    else
        snprintf(d->headings[1], sizeof d->headings[1], "positions, sinusoidal");
    snprintf(d->headings[2], sizeof d->headings[2], "sum, %.30s x %.30s",
             cli_commas((int64_t)j->vectors.tokens.count, rows), dim);
}

static int draw(const cli_args *args, const job *j, bool *drawn)
{
    drawing d = {0};
    size_t count = j->vectors.dim < CLI_PEN_NUMBERS ? j->vectors.dim : CLI_PEN_NUMBERS;
    int code = read_values(j, &d);
    if (code != CLI_DONE) return code;
    write_headings(j, &d);
    const cli_sum sum = {.tokens = cli_vectors_tokens(&j->vectors),
                         .headings = {d.headings[0], d.headings[1], d.headings[2]},
                         .values = {d.values[0], j->kind == NONE ? NULL : d.values[1], d.values[2]},
                         .count = count,
                         .dim = dim_of(j),
                         .positions = d.positions,
                         .color = cli_color_wanted(cli_args_text(args, "color"))};
    return cli_sum_draw(&sum, drawn);
}

static void print_positions(const job *j)
{
    const embla_facts *facts = &j->vectors.asked.model.facts;
    char count[CLI_CELL];
    if (j->kind == LEARNED)
        cli_out_fact(
            "positions", "learned: tensor '%.128s' has %s%s%s", j->tensor.name,
            cli_plural(embla_table_rows(j->learned) - facts->first_position, "position", count),
            facts->first_position_why ? "; " : "",
            facts->first_position_why ? facts->first_position_why : "");
    else if (j->kind == SINUSOIDAL)
        cli_out_fact("positions", "sinusoidal: sine and cosine of position / 10000^(2i/dim)");
    else
        cli_out_fact("positions", "none%s",
                     j->rotary ? ": the model rotates queries and keys instead (rotary)" : "");
}

static void print_facts(const job *j)
{
    const embla_facts *facts = &j->vectors.asked.model.facts;
    embla_tensor types;
    print_positions(j);
    cli_vectors_facts(&j->vectors);
    if (facts->scale_why)
        cli_out_fact("scaling", "rows are multiplied by %.9g: %s", facts->scale, facts->scale_why);
    if (embla_checkpoint_role(j->vectors.asked.model.checkpoint, EMBLA_ROLE_TOKEN_TYPES, &types,
                              NULL) == EMBLA_OK)
        cli_out_fact("left out", "the model also adds a row of '%.128s' (token types)", types.name);
}

static int print_picture(const cli_args *args, const job *j)
{
    bool drawn = true;
    int code = j->vectors.tokens.count > 0 ? draw(args, j, &drawn) : CLI_DONE;
    if (code == CLI_DONE && !drawn) return print_data(j);
    if (code != CLI_DONE || cli_args_flag(args, "quiet")) return code;
    if (j->vectors.tokens.count > 0) putchar('\n');
    print_facts(j);
    return code;
}

/* ---- positions ---- */

static bool has_position_table(const embla_checkpoint *checkpoint)
{
    size_t count;
    const embla_tensor *tensors = embla_checkpoint_tensors(checkpoint, &count);
    for (size_t n = 0; n < count; n++)
        if (tensors[n].role == EMBLA_ROLE_POSITIONS) return true;
    return false;
}

/* Chooses the kind of positions for --positions auto. */
static void choose_kind(job *j)
{
    const embla_checkpoint *checkpoint = j->vectors.asked.model.checkpoint;
    const char *said = embla_checkpoint_text(checkpoint, "positions"); /* in models of ours */
    double theta;
    j->kind = has_position_table(checkpoint) ? LEARNED : NONE;
    if (j->kind == NONE && said && strcmp(said, "sinusoidal") == 0) j->kind = SINUSOIDAL;
    j->rotary = j->kind == NONE &&
                embla_checkpoint_real(checkpoint, "rope_theta", &theta) == EMBLA_OK &&
                !(said && strcmp(said, "none") == 0);
}

static int open_learned(job *j)
{
    const embla_checkpoint *checkpoint = j->vectors.asked.model.checkpoint;
    if (!has_position_table(checkpoint))
        return cli_failed("the checkpoint has no position table; use --positions sinusoidal, or "
                          "none");
    if (embla_checkpoint_role(checkpoint, EMBLA_ROLE_POSITIONS, &j->tensor, NULL) != EMBLA_OK ||
        embla_table_open(checkpoint, j->tensor.name, NULL, &j->learned) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    if (embla_table_dim(j->learned) != dim_of(j))
        return cli_failed("the position table '%.128s' has dim %zu, but the token table has %zu: "
                          "they cannot be added",
                          j->tensor.name, embla_table_dim(j->learned), dim_of(j));
    return CLI_DONE;
}

/* The row of each token's position. */
static int number_positions(job *j)
{
    const int64_t offset = j->vectors.asked.model.facts.first_position;
    const int64_t all = embla_table_rows(j->learned) - offset;
    const int64_t count = (int64_t)j->vectors.tokens.count;
    if (count > 0 && j->first > all - count) {
        int64_t bad = j->first < all ? all - j->first : 0; /* the first token past the end */
        char word[CLI_WORD_TEXT];
        (void)cli_token_show(&j->vectors.asked, j->vectors.tokens.ids[bad], true, CLI_WORD_COLUMNS,
                             word);
        return cli_failed("token %s at index %" PRId64 " has position %" PRId64
                          ", but the position table '%.128s' has %" PRId64
                          " positions, from 0 on; use fewer tokens or a smaller --first-position",
                          word, bad, j->first + bad, j->tensor.name, all > 0 ? all : 0);
    }
    j->positions = malloc(((size_t)count + 1) * sizeof *j->positions);
    if (!j->positions) return cli_failed("no memory for %" PRId64 " positions", count);
    for (int64_t i = 0; i < count; i++) j->positions[i] = offset + j->first + i;
    return CLI_DONE;
}

static int set_up_positions(const cli_args *args, job *j)
{
    const char *wanted = cli_args_text(args, "positions");
    while (strcmp(kinds[j->kind], wanted) != 0) j->kind++;
    if (j->kind == AUTO) choose_kind(j);
    j->first = cli_args_count(args, "first-position");
    if (j->kind == NONE && cli_args_given(args, "first-position"))
        return cli_usage("--first-position needs positions, but this table has none; use "
                         "--positions sinusoidal");
    if (j->first > POSITION_MOST)
        return cli_usage("--first-position is %" PRId64 "; the maximum is %" PRId64, j->first,
                         POSITION_MOST);
    if (j->kind != LEARNED) return CLI_DONE;
    int code = open_learned(j);
    return code == CLI_DONE ? number_positions(j) : code;
}

/* ---- the verb ---- */

/* Tokens are int32_t, as in a model. */
static int narrow_tokens(job *j)
{
    const cli_tokens *tokens = &j->vectors.tokens;
    j->tokens = malloc((tokens->count + 1) * sizeof *j->tokens);
    if (!j->tokens) return cli_failed("no memory for %zu tokens", tokens->count);
    for (size_t i = 0; i < tokens->count; i++) {
        if (tokens->ids[i] > INT32_MAX)
            return cli_failed("token %" PRId64 " at index %zu is too large; the maximum is %d",
                              tokens->ids[i], i, INT32_MAX);
        j->tokens[i] = (int32_t)tokens->ids[i];
    }
    return CLI_DONE;
}

static int set_up(const cli_args *args, job *j)
{
    const char *part = cli_args_text(args, "part");
    int code = cli_vectors_open(args, false, true, &j->vectors);
    if (code != CLI_DONE) return code;
    while (strcmp(parts[j->part], part) != 0) j->part++;
    if (cli_args_given(args, "part") && j->vectors.form == CLI_VECTORS_PICTURE)
        return cli_usage("--part needs a format of data, such as --format text; the picture has "
                         "all parts");
    code = set_up_positions(args, j);
    if (code == CLI_DONE) code = narrow_tokens(j);
    return code == CLI_DONE ? cli_vectors_redirect(args, j->vectors.form) : code;
}

static int run(const cli_args *args)
{
    job j = {0};
    int code = set_up(args, &j);
    if (code == CLI_DONE)
        code = j.vectors.form == CLI_VECTORS_PICTURE ? print_picture(args, &j) : print_data(&j);
    code = cli_out_done(code);
    embla_table_free(j.learned);
    free(j.positions);
    free(j.tokens);
    cli_vectors_free(&j.vectors);
    return code;
}

static const char *kind_name(size_t n)
{
    return n < KINDS ? kinds[n] : NULL;
}

static const char *part_name(size_t n)
{
    return n < PARTS ? parts[n] : NULL;
}

static const cli_option options[] = {{.name = "first-position",
                                      .value = "P",
                                      .standard = "0",
                                      .count = true,
                                      .help = "position of the first token"},
                                     {.name = "positions",
                                      .value = "KIND",
                                      .standard = "auto",
                                      .choices = kind_name,
                                      .help = "positions to add; auto means those of the model"},
                                     {.name = "part",
                                      .value = "PART",
                                      .standard = "sum",
                                      .choices = part_name,
                                      .help = "what the formats of data contain"},
                                     CLI_VECTORS_OPTIONS,
                                     CLI_OPEN_OPTIONS,
                                     {.name = NULL}};

const cli_verb cli_verb_embed = {
    .name = "embed",
    .synopsis = "FILE [TOKEN]...",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = CLI_OPERANDS_MOST,
    .files = 1,
    .about = "add the rows of tokens and of their positions",
    .text =
        "FILE is a checkpoint and TOKEN a token, as for 'embla lookup'. The tokens are one "
        "sequence: the first has position 0, or --first-position. Each vector is what the model "
        "computes with: the row of the token (what), plus the row of its position (where).\n\n"
        "Facts of the architecture are applied: some models multiply a row by sqrt(dim) or "
        "another factor, and in some position 0 is a later row of the position table. The picture "
        "says so. An unknown word is an error, because it would shift the positions. A token "
        "after the last position is an error too. Then nothing is printed.\n\n"
        "The kinds of positions:\n- learned: the position table of the checkpoint;\n- sinusoidal: "
        "column 2i of position p is sin(p / 10000^(2i/dim)), column 2i+1 the cosine;\n- none: "
        "models with rotary positions add none. They rotate queries and keys instead.\n\n"
        "The formats are those of 'embla lookup'. The formats of data contain the sum, or one of "
        "its parts with --part.",
    .example = "embla embed names e m m a",
    .options = options,
    .run = run};
