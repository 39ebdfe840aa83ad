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
#include "draw/tables.h"
#include "host/paths.h"
#include "verbs/embed_job.h"

enum { SUM, ROWS, POSITIONS, PARTS };
static const char *const parts[PARTS] = {"sum", "rows", "positions"};

typedef struct {
    cli_vectors vectors;
    int32_t *tokens;     /* those of vectors */
    cli_embed_kind kind; /* not AUTO */
    cli_rotary rotary;
    cli_learned learned; /* the position table, if kind is LEARNED */
    int64_t first;       /* --first-position */
    int64_t *positions;  /* the row of each token's position; NULL without a position table */
    int part;            /* what the data formats contain */
} job;

/* Whether anything is added to the rows. */
static bool adds_positions(const job *j)
{
    return j->kind == CLI_EMBED_LEARNED || j->kind == CLI_EMBED_SINUSOIDAL;
}

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
    if (j->kind == CLI_EMBED_LEARNED)
        return embla_lookup_rows(j->learned.table, j->positions + at, count, &options, out);
    if (j->kind == CLI_EMBED_SINUSOIDAL)
        return embla_sinusoid(j->first + (int64_t)at, count, dim_of(j), 0, out);
    memset(out, 0, count * dim_of(j) * sizeof *out);
    return EMBLA_OK;
}

static embla_status make_sum(const job *j, size_t at, size_t count, float *out)
{
    const embla_embed_options options = {.position_table = j->learned.table,
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
    if (part == SUM && j->kind == CLI_EMBED_SINUSOIDAL) return add_sinusoid(j, at, count, out);
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
    cli_json_text(json, "positions", cli_embed_kind_name(j->kind));
    cli_json_text(json, "position_tensor", j->learned.table ? j->learned.tensor.name : NULL);
    cli_json_real(json, "scale", j->vectors.asked.model.facts.scale);
    if (j->kind == CLI_EMBED_ROTARY) cli_rotary_json(&j->rotary, json);
}

static void json_position(const void *context, size_t i, cli_json *json)
{
    const job *j = context;
    cli_json_whole(json, "position", j->first + (int64_t)i);
    if (j->positions) cli_json_whole(json, "position_row", j->positions[i]);
    if (j->kind == CLI_EMBED_ROTARY)
        cli_rotary_json_angles(&j->rotary, j->first + (int64_t)i, json);
}

static int print_data(const job *j)
{
    return cli_vectors_print(&j->vectors, &(cli_vectors_source){.context = j,
                                                                .make = make_data,
                                                                .json = json_facts,
                                                                .json_token = json_position});
}

/* ---- the two tables ---- */

typedef struct {
    float values[PARTS][CLI_PEN_ROWS * CLI_PEN_NUMBERS];
    int64_t positions[CLI_PEN_ROWS]; /* positions, not rows of the position table */
    char headings[PARTS][2 * CLI_CELL];
    char tables[2][2 * CLI_CELL + 8]; /* "what: rows, 27 x 16" */
} drawing;

static int read_token_row(const void *context, int64_t row, float *out)
{
    const job *j = context;
    const float scale = (float)j->vectors.asked.model.facts.scale;
    if (embla_lookup_rows(j->vectors.asked.table, &row, 1, NULL, out) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    for (size_t k = 0; k < dim_of(j); k++) out[k] *= scale;
    return CLI_DONE;
}

static int read_position_row(const void *context, int64_t row, float *out)
{
    const job *j = context;
    embla_status status = j->learned.table ? embla_lookup_rows(j->learned.table, &row, 1, NULL, out)
                                           : embla_sinusoid(row, 1, dim_of(j), 0, out);
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

/* The tables of tokens and of positions; computed has the positions of a formula. */
static void view_tables(const job *j, const drawing *d, const int64_t *computed,
                        cli_table_view views[2])
{
    views[0] = (cli_table_view){.heading = adds_positions(j) ? d->tables[0] : d->headings[0],
                                .name = "row",
                                .all = embla_table_rows(j->vectors.asked.table),
                                .chosen = j->vectors.rows,
                                .context = j,
                                .read = read_token_row};
    views[1] =
        (cli_table_view){.heading = d->tables[1],
                         .name = "position",
                         .all = j->learned.table ? embla_table_rows(j->learned.table) : INT64_MAX,
                         .zero = j->learned.zero,
                         .chosen = j->positions ? j->positions : computed,
                         .context = j,
                         .read = read_position_row};
}

/* ---- picture ---- */

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
    if (j->learned.table)
        snprintf(d->headings[1], sizeof d->headings[1], "positions, %.30s x %.30s",
                 cli_commas(embla_table_rows(j->learned.table), rows), dim);
    else
        snprintf(d->headings[1], sizeof d->headings[1], "positions, sinusoidal");
    snprintf(d->headings[2], sizeof d->headings[2], "%s, %.30s x %.30s",
             adds_positions(j) ? "sum" : "result",
             cli_commas((int64_t)j->vectors.tokens.count, rows), dim);
    snprintf(d->tables[0], sizeof d->tables[0], "what: %s", d->headings[0]);
    snprintf(d->tables[1], sizeof d->tables[1], "where: %s", d->headings[1]);
}

static int draw(const cli_args *args, const job *j, bool *drawn)
{
    drawing d = {0};
    size_t count = j->vectors.dim < CLI_PEN_NUMBERS ? j->vectors.dim : CLI_PEN_NUMBERS;
    int code = read_values(j, &d);
    if (code != CLI_DONE) return code;
    write_headings(j, &d);
    const cli_sum sum = {
        .tokens = cli_vectors_tokens(&j->vectors),
        .headings = {d.headings[0], d.headings[1], d.headings[2]},
        .values = {d.values[0], adds_positions(j) ? d.values[1] : NULL, d.values[2]},
        .count = count,
        .dim = dim_of(j),
        .positions = d.positions,
        .color = cli_color_wanted(cli_args_text(args, "color"))};
    cli_table_view views[2];
    bool tables = false;
    view_tables(j, &d, d.positions, views);
    if (adds_positions(j) && !cli_args_flag(args, "quiet"))
        code = cli_tables_draw(views, &sum.tokens, dim_of(j), sum.color, &tables);
    if (tables) putchar('\n');
    return code == CLI_DONE ? cli_sum_draw(&sum, drawn) : code;
}

static void print_positions(const job *j)
{
    const embla_facts *facts = &j->vectors.asked.model.facts;
    char count[CLI_CELL];
    if (j->kind == CLI_EMBED_LEARNED)
        cli_out_fact(
            "positions", "learned: tensor '%.128s' has %s%s%s", j->learned.tensor.name,
            cli_plural(embla_table_rows(j->learned.table) - j->learned.zero, "position", count),
            facts->first_position_why ? "; " : "",
            facts->first_position_why ? facts->first_position_why : "");
    else if (j->kind == CLI_EMBED_SINUSOIDAL)
        cli_out_fact("positions", "sinusoidal: sine and cosine of position / 10000^(2i/dim)");
    else if (j->kind == CLI_EMBED_ROTARY)
        cli_rotary_fact(&j->rotary);
    else
        cli_out_fact("positions", "none");
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

/* The words of the first tokens; NULL after a message. */
static char (*words_of(const job *j, size_t count))[CLI_WORD_TEXT]
{
    char(*words)[CLI_WORD_TEXT] = malloc((count + 1) * sizeof *words);
    if (!words) (void)cli_failed("no memory for %zu words", count);
    for (size_t i = 0; words && i < count; i++)
        (void)cli_token_show(&j->vectors.asked, j->vectors.tokens.ids[i], !cli_utf8_wanted(),
                             CLI_PEN_WORD, words[i]);
    return words;
}

static int print_angles(const job *j)
{
    const size_t count = j->vectors.tokens.count;
    char(*words)[CLI_WORD_TEXT] = words_of(j, count < CLI_PEN_ROWS ? count : CLI_PEN_ROWS);
    if (!words) return CLI_FAILED;
    if (count > 0) cli_rotary_table(&j->rotary, j->first, count, words);
    if (count > 0) putchar('\n');
    free(words);
    return CLI_DONE;
}

static int print_picture(const cli_args *args, const job *j)
{
    bool drawn = true;
    int code = j->vectors.tokens.count > 0 ? draw(args, j, &drawn) : CLI_DONE;
    if (code == CLI_DONE && !drawn) return print_data(j);
    if (code != CLI_DONE || cli_args_flag(args, "quiet")) return code;
    if (j->vectors.tokens.count > 0) putchar('\n');
    if (j->kind == CLI_EMBED_ROTARY) code = print_angles(j);
    print_facts(j);
    return code;
}

/* ---- a picture for a file ---- */

/* Fills what the pictures of tables say. */
typedef struct {
    char title[160], facts[256], about[512];
} sheet_words;

static void write_words(const cli_args *args, const job *j, size_t numbers, sheet_words *w)
{
    const char *path = args->operands[0];
    const bool two = adds_positions(j);
    char count[CLI_CELL], shown[64] = "";
    (void)cli_plural((int64_t)j->vectors.tokens.count, "token", count);
    if (numbers < dim_of(j))
        snprintf(shown, sizeof shown, "; the first %zu of %zu numbers", numbers, dim_of(j));
    snprintf(w->title, sizeof w->title,
             two ? "What + where: x = token + position in %.100s"
                 : "What a model computes with: rows of tokens in %.100s",
             cli_path_title(path));
    if (two)
        snprintf(w->facts, sizeof w->facts, "%s from position %" PRId64 "%s", count, j->first,
                 shown);
    else
        snprintf(w->facts, sizeof w->facts, "%s; no positions are added%s", count, shown);
    snprintf(w->about, sizeof w->about,
             two ? "Each token selects a row of the token table (what), its position a row of the "
                   "position table (where). Both rows are added, number by number: x is what the "
                   "model computes with. Blue numbers are negative, orange ones positive."
                 : "Each token selects a row of the token table. Blue numbers are negative, orange "
                   "ones positive.");
}

static int print_tables(const cli_args *args, const job *j, cli_sheet_kind kind)
{
    const size_t views = adds_positions(j) ? 2 : 1, dim = dim_of(j);
    const size_t shown = cli_tables_shown(j->vectors.tokens.count, views);
    float *sums = malloc((shown * dim + 1) * sizeof *sums);
    int64_t *computed = malloc((shown + 1) * sizeof *computed); /* positions of a formula */
    drawing d = {0};
    cli_table_view both[2];
    sheet_words w;
    int code = sums && computed ? CLI_DONE : cli_failed("no memory for %zu rows", shown);
    for (size_t i = 0; i < shown && code == CLI_DONE; i++) computed[i] = j->first + (int64_t)i;
    if (code == CLI_DONE && shown > 0) code = make_part(j, SUM, 0, shown, sums);
    write_headings(j, &d);
    view_tables(j, &d, computed, both);
    write_words(args, j, cli_vectors_numbers(args, &j->vectors), &w);
    const cli_tables tables = {.title = w.title,
                               .facts = w.facts,
                               .about = w.about,
                               .asked = &j->vectors.asked,
                               .tokens = j->vectors.tokens.ids,
                               .count = j->vectors.tokens.count,
                               .views = {both[0], both[1]},
                               .view_count = views,
                               .results = sums,
                               .result = d.headings[2],
                               .dim = dim,
                               .numbers = cli_vectors_numbers(args, &j->vectors)};
    if (code == CLI_DONE) code = cli_tables_print(kind, &tables);
    free(computed);
    free(sums);
    return code;
}

static int print_sheet(const cli_args *args, const job *j, cli_sheet_kind kind)
{
    const char *path = args->operands[0];
    const size_t count = j->vectors.tokens.count;
    if (j->kind != CLI_EMBED_ROTARY) return print_tables(args, j, kind);
    char(*words)[CLI_WORD_TEXT] = words_of(j, count);
    if (!words) return CLI_FAILED;
    int code = cli_rotary_sheet(&j->rotary, cli_path_title(path), j->first, count, words, kind);
    free(words);
    return code;
}

/* ---- positions ---- */

/* The row of each token's position. */
static int number_positions(job *j)
{
    const int64_t all = embla_table_rows(j->learned.table) - j->learned.zero;
    const int64_t count = (int64_t)j->vectors.tokens.count;
    if (count > 0 && j->first > all - count) {
        int64_t bad = j->first < all ? all - j->first : 0; /* the first token past the end */
        char word[CLI_WORD_TEXT];
        (void)cli_token_show(&j->vectors.asked, j->vectors.tokens.ids[bad], true, CLI_WORD_COLUMNS,
                             word);
        return cli_failed("token %s at index %" PRId64 " has position %" PRId64
                          ", but the position table '%.128s' has %" PRId64
                          " positions, from 0 on; use fewer tokens or a smaller --first-position",
                          word, bad, j->first + bad, j->learned.tensor.name, all > 0 ? all : 0);
    }
    j->positions = malloc(((size_t)count + 1) * sizeof *j->positions);
    if (!j->positions) return cli_failed("no memory for %" PRId64 " positions", count);
    for (int64_t i = 0; i < count; i++) j->positions[i] = j->learned.zero + j->first + i;
    return CLI_DONE;
}

static int set_up_positions(const cli_args *args, job *j)
{
    const char *wanted = cli_args_text(args, "positions");
    const cli_model *model = &j->vectors.asked.model;
    while (strcmp(cli_embed_kind_name(j->kind), wanted) != 0) j->kind++;
    if (j->kind == CLI_EMBED_AUTO) j->kind = cli_embed_kind_of(model->checkpoint);
    j->first = cli_args_count(args, "first-position");
    if (j->kind == CLI_EMBED_NONE && cli_args_given(args, "first-position"))
        return cli_usage("--first-position needs positions, but this table has none; use "
                         "--positions sinusoidal");
    if (j->first > CLI_EMBED_POSITION_MOST)
        return cli_usage("--first-position is %" PRId64 "; the maximum is %" PRId64, j->first,
                         CLI_EMBED_POSITION_MOST);
    if (j->kind == CLI_EMBED_ROTARY && !cli_rotary_read(model->checkpoint, dim_of(j), &j->rotary))
        return cli_failed("a head has %zu numbers, which are no pairs to rotate", j->rotary.dim);
    if (j->kind == CLI_EMBED_ROTARY && j->part == POSITIONS && j->vectors.form != CLI_VECTORS_JSON)
        return cli_usage("rotary positions are no rows to print; --json and the picture have their "
                         "angles");
    if (j->kind != CLI_EMBED_LEARNED) return CLI_DONE;
    int code = cli_learned_open(model, dim_of(j), &j->learned);
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
    cli_sheet_kind kind;
    int code = CLI_DONE;
    if (cli_args_given(args, "length"))
        return cli_usage("--length is for positions without a TOKEN; each token has one position");
    code = cli_vectors_open(args, false, true, &j->vectors);
    if (code != CLI_DONE) return code;
    while (strcmp(parts[j->part], part) != 0) j->part++;
    if (cli_args_given(args, "part") &&
        (j->vectors.form == CLI_VECTORS_PICTURE || cli_vectors_is_sheet(j->vectors.form, &kind)))
        return cli_usage("--part needs a format of data, such as --format text; the picture has "
                         "all parts");
    code = set_up_positions(args, j);
    if (code == CLI_DONE) code = narrow_tokens(j);
    return code == CLI_DONE ? cli_vectors_redirect(args, j->vectors.form) : code;
}

static int print(const cli_args *args, const job *j)
{
    cli_sheet_kind kind;
    if (cli_vectors_is_sheet(j->vectors.form, &kind)) return print_sheet(args, j, kind);
    return j->vectors.form == CLI_VECTORS_PICTURE ? print_picture(args, j) : print_data(j);
}

/* Whether the command asks for positions alone. */
static bool has_no_tokens(const cli_args *args)
{
    return args->operand_count < 2 && !cli_args_given(args, "ids") &&
           (cli_args_given(args, "positions") || cli_args_given(args, "part"));
}

static int run(const cli_args *args)
{
    job j = {0};
    if (has_no_tokens(args)) return cli_embed_positions(args);
    if (args->operand_count == 0) return cli_usage("embed needs a FILE; see 'embla help embed'");
    int code = set_up(args, &j);
    if (code == CLI_DONE) code = print(args, &j);
    code = cli_out_done(code);
    embla_table_free(j.learned.table);
    free(j.positions);
    free(j.tokens);
    cli_vectors_free(&j.vectors);
    return code;
}

static const char *part_name(size_t n)
{
    return n < PARTS ? parts[n] : NULL;
}

static const cli_option options[] = {{.name = "length",
                                      .value = "N",
                                      .count = true,
                                      .least = 1,
                                      .help = "positions to print without a TOKEN (default: 64, "
                                              "or 8 rotary ones)"},
                                     {.name = "first-position",
                                      .value = "P",
                                      .standard = "0",
                                      .count = true,
                                      .help = "position of the first token"},
                                     {.name = "positions",
                                      .value = "KIND",
                                      .standard = "auto",
                                      .choices = cli_embed_kind_name,
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
    .synopsis = "[FILE [TOKEN]...]",
    .operand = "FILE",
    .operands_most = CLI_OPERANDS_MOST,
    .files = 1,
    .about = "add the rows of tokens and of their positions",
    .text =
        "FILE is a checkpoint and TOKEN a token, as for 'embla lookup'. The tokens are one "
        "sequence: the first has position 0, or --first-position. Each vector is what the model "
        "computes with: the row of the token (what), plus the row of its position (where). The "
        "picture shows both tables with the chosen rows marked, then the sums; with --quiet only "
        "the sums.\n\n"
        "Facts of the architecture are applied: some models multiply a row by sqrt(dim) or "
        "another factor, and in some position 0 is a later row of the position table. The picture "
        "says so. An unknown word is an error, because it would shift the positions. A token "
        "after the last position is an error too. Then nothing is printed.\n\n"
        "The kinds of positions:\n- learned: the position table of the checkpoint;\n- sinusoidal: "
        "column 2i of position p is sin(p / 10000^(2i/dim)), column 2i+1 the cosine;\n- rotary: "
        "nothing is added. The model rotates pair i of the numbers of a query or key by the angle "
        "p x theta^(-2i/dim), where dim is that of a head; the picture has the angles in degrees, "
        "JSON in radians;\n- none: nothing is added.\n\n"
        "Without a TOKEN, --positions (or --part positions) prints positions alone: those of FILE, "
        "or without FILE sinusoidal or rotary ones of --dim numbers (default: 64, or 16 rotary "
        "ones).\n\n"
        "The formats are those of 'embla lookup', and the extension of --output chooses one of "
        "them. "
        "The formats of data contain the sum, or one of its parts with --part. A picture (.svg, "
        ".png, .html) shows both tables with the chosen rows and their sum; positions alone as "
        "cells and waves, rotary ones as dials.",
    .example = "embla embed names e m m a",
    .options = options,
    .run = run};
