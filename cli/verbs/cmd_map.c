/* SPDX-License-Identifier: Apache-2.0 */
/* embla map: draws every row as a point on a plane, as a web page, an SVG or a PNG.
 *
 * Everything is computed first, then written through a temporary file. A page contains no vectors,
 * so the exact neighbours of every row are computed here, unless that takes long and was not
 * requested.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_lab.h"

#include "core/answers.h"
#include "core/ending.h"
#include "core/inputs.h"
#include "core/out.h"
#include "core/progress.h"
#include "core/verbs.h"
#include "draw/map_points.h"
#include "draw/paint.h"
#include "host/paths.h"

/* Rows of a map without --rows; maximum of --neighbours; rows per lookup; maximum of --words. */
enum { WIDTH_LEAST = 600, HEIGHT_LEAST = 450 }; /* smaller, text overlaps and is cut */
enum { ROWS_UNASKED = 300000, NEIGHBOURS_MOST = 100, PIECE = 1024, WORDS_MOST = 1000 };
enum { ARROWS_MOST = 100 };
/* Multiply-adds for nearest rows that were not asked for: about ten seconds on two cores. */
static const double MADDS_UNASKED = 2e12;
/* Rows from which on the layout auto is one of neighbours: PCA shows few rows well, and a layout
 * needs more than the 30 nearest rows to choose from. */
enum { ROWS_LAYOUT = 500 };

enum { HTML, SVG, PNG, KINDS };
static const char *const kinds[KINDS] = {"html", "svg", "png"};
static const char *const layouts[] = {"auto", "neighbours", "pca", "arrows"};
static const char *const colors[] = {"community", "norm", "row", "none"};
static const char *const themes[] = {"auto", "light", "dark"};

static const char *kind_name(size_t n)
{
    return n < KINDS ? kinds[n] : NULL;
}

static const char *layout_name(size_t n)
{
    return n < sizeof layouts / sizeof layouts[0] ? layouts[n] : NULL;
}

static const char *color_name(size_t n)
{
    return n < sizeof colors / sizeof colors[0] ? colors[n] : NULL;
}

static const char *theme_name(size_t n)
{
    return n < sizeof themes / sizeof themes[0] ? themes[n] : NULL;
}

typedef struct {
    cli_asked asked;
    embla_table *table; /* of map.rows rows: that of asked, or a copy of its first rows */
    cli_map map;
    const char *path;
    char title[256], why_none[256];
    int kind, threads;
    bool quiet, communities; /* communities: find them */
    int64_t bytes;           /* size of the file; -1 means unknown */
} job;

/* ---- options ---- */

static int read_kind(const cli_args *args, job *j)
{
    const char *path = cli_args_text(args, "output"), *name = cli_args_text(args, "format");
    if (!path) return cli_usage("map needs a file to write: --output map.html, .svg or .png");
    j->path = path;
    int code = cli_ending_choose(args, kind_name, name, &name);
    if (code != CLI_DONE) return code;
    if (!name) return cli_usage("map needs --format html, svg or png to write to '%s'", path);
    while (j->kind < PNG && strcmp(name, kinds[j->kind]) != 0) j->kind++;
    if (j->kind != HTML && cli_args_given(args, "neighbours"))
        return cli_usage("--neighbours needs a page (.html): a picture does not show them");
    if (cli_args_flag(args, "only") && !cli_args_given(args, "words") &&
        !cli_args_given(args, "arrows"))
        return cli_usage("--only needs --words or --arrows, the rows to draw");
    if (strcmp(cli_args_text(args, "layout"), "arrows") == 0 && !cli_args_given(args, "arrows"))
        return cli_usage("--layout arrows needs --arrows");
    return j->kind == PNG ? cli_paint_load() : CLI_DONE;
}

/* "1600x1200" */
static int read_size(const cli_args *args, job *j)
{
    const char *text = cli_args_text(args, "size");
    char rest;
    j->map.width = j->kind == SVG ? 1200 : 1600;
    j->map.height = j->kind == SVG ? 900 : 1200;
    if (!text) return CLI_DONE;
    if (j->kind == HTML)
        return cli_usage("--size needs a picture (.svg, .png): a page fills its window");
    if (sscanf(text, "%5dx%5d%c", &j->map.width, &j->map.height, &rest) != 2 ||
        j->map.width < WIDTH_LEAST || j->map.height < HEIGHT_LEAST || j->map.width > 16000 ||
        j->map.height > 16000 || j->map.width * j->map.height > 64000000)
        return cli_usage("--size: '%.20s' is not WxH, such as 1600x1200; the minimum is %dx%d, "
                         "the maximum 64,000,000 pixels",
                         text, (int)WIDTH_LEAST, (int)HEIGHT_LEAST);
    return CLI_DONE;
}

/* Checks that the file can be written, before the long computation. */
static int check_path(const cli_args *args, const job *j)
{
    int code = cli_inputs_check(args, j->path);
    return code == CLI_DONE ? cli_out_check(j->path, cli_args_flag(args, "force")) : code;
}

/* Chooses the layout and the colours that were not given; madds is the cost of a search for the
 * nearest rows of all rows. */
static void read_layout(const cli_args *args, double madds, job *j)
{
    const char *layout = cli_args_text(args, "layout"), *color = cli_args_text(args, "color");
    bool choose = strcmp(layout, "auto") == 0, arrows = cli_args_given(args, "arrows");
    j->map.by_arrows = choose ? arrows : strcmp(layout, "arrows") == 0;
    j->map.by_neighbours = choose ? !arrows && j->map.rows >= ROWS_LAYOUT && madds <= MADDS_UNASKED
                                  : strcmp(layout, "neighbours") == 0;
    j->map.color = color ? color : j->map.by_neighbours ? "community" : "row";
    /* a page can change its colours, so it has communities whenever the nearest rows are known */
    j->communities =
        strcmp(j->map.color, "community") == 0 || (j->map.by_neighbours && j->kind == HTML);
}

/* How many rows, and how many neighbours of each. */
static int read_counts(const cli_args *args, job *j)
{
    cli_map *map = &j->map;
    int64_t wanted = cli_args_count(args, "rows"), near = cli_args_count(args, "neighbours");
    char all[CLI_CELL];
    bool asked = cli_args_given(args, "rows");
    if (asked && (wanted < 1 || wanted > CLI_MAP_ROWS_MOST))
        return cli_usage("--rows is %" PRId64 "; it must be between 1 and %d", wanted,
                         CLI_MAP_ROWS_MOST);
    if (!asked && map->all > ROWS_UNASKED)
        return cli_failed("the table has %s rows, and a map of more than 300,000 is slow to open; "
                          "use --rows 300000 for the first 300,000",
                          cli_commas(map->all, all));
    map->rows = asked && wanted < map->all ? wanted : map->all;
    if (near > NEIGHBOURS_MOST)
        return cli_usage("--neighbours is %" PRId64 "; the maximum is %d", near, NEIGHBOURS_MOST);
    map->neighbours = j->kind == HTML ? (size_t)near : 0;
    double madds = (double)map->rows * (double)map->rows * (double)map->dim;
    read_layout(args, madds, j);
    map->why_none = NULL;
    if (j->kind == HTML && cli_args_given(args, "neighbours") && near == 0)
        map->why_none = "This file contains no neighbours: it was made with --neighbours 0.";
    bool found = j->communities || map->by_neighbours; /* they are known anyway */
    if (madds <= MADDS_UNASKED || found || cli_args_given(args, "neighbours") || j->kind != HTML)
        return CLI_DONE;
    map->neighbours = 0;
    snprintf(j->why_none, sizeof j->why_none,
             "This file contains no neighbours: finding them takes %.1e multiply-adds, about %.0f "
             "seconds or more. 'embla map --neighbours 8' finds them.",
             madds, madds / 1.5e11);
    map->why_none = j->why_none;
    return CLI_DONE;
}

/* ---- computing the map ---- */

/* With --rows: replaces the table by a copy of its first rows, as stored. */
static int copy_first_rows(job *j)
{
    embla_table *part = NULL;
    const embla_table_options options = {.scale = embla_table_scale(j->table)};
    const embla_lookup_options raw = {.raw = true, .threads = j->threads};
    int64_t rows[PIECE];
    if (j->map.rows == j->map.all) return CLI_DONE;
    if (embla_table_new(embla_table_dtype(j->table), j->map.rows, embla_table_dim(j->table),
                        &options, &part) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    size_t stride = embla_table_row_bytes(j->table);
    for (int64_t at = 0; at < j->map.rows; at += PIECE) {
        size_t count = (size_t)(j->map.rows - at < PIECE ? j->map.rows - at : PIECE);
        for (size_t i = 0; i < count; i++) rows[i] = at + (int64_t)i;
        char *to = (char *)embla_table_data(part) + (size_t)at * stride;
        if (embla_lookup_rows(j->table, rows, count, &raw, to) != EMBLA_OK) {
            embla_table_free(part);
            return cli_failed("%s", embla_error());
        }
    }
    j->table = part;
    return CLI_DONE;
}

/* Finds the first token of each row, which gives the row its word. */
static int find_tokens(job *j)
{
    if (!j->asked.model.facts.mapping || !j->map.vocab) return CLI_DONE;
    j->map.tokens = malloc((size_t)j->map.rows * sizeof *j->map.tokens);
    if (!j->map.tokens) return cli_failed("no memory for %" PRId64 " rows", j->map.rows);
    return cli_first_tokens(j->table, j->map.rows, j->map.tokens, NULL);
}

/* ---- --words and --arrows ---- */

/* Marks the rows of tokens, each once. The first `words` tokens are those of --words. */
static int mark_rows(job *j, const cli_tokens *tokens, const int64_t *rows, size_t words)
{
    cli_map *map = &j->map;
    char number[CLI_CELL], all[CLI_CELL];
    map->listed = calloc(tokens->count, sizeof *map->listed);
    map->is_listed = calloc((size_t)map->rows, sizeof *map->is_listed);
    if (!map->listed || !map->is_listed)
        return cli_failed("no memory for %" PRId64 " rows", map->rows);
    for (size_t i = 0; i < tokens->count; i++) {
        if (rows[i] >= map->rows)
            return cli_failed("--%s: row %s is not on a map of %s; use a larger --rows",
                              i < words ? "words" : "arrows", cli_commas(rows[i], number),
                              cli_plural(map->rows, "row", all));
        if (map->is_listed[rows[i]]) continue;
        map->is_listed[rows[i]] = true;
        map->listed[map->listed_count++] = rows[i];
    }
    return CLI_DONE;
}

static int read_words(const cli_args *args, const job *j, cli_tokens *tokens)
{
    const char *list = cli_args_text(args, "words");
    if (!list) return CLI_DONE;
    int code = cli_tokens_words(tokens, j->asked.vocab, list, "--words");
    if (code == CLI_DONE && tokens->count + tokens->missing == 0)
        code = cli_usage("--words: the list is empty");
    if (code == CLI_DONE && tokens->count > WORDS_MOST)
        code = cli_usage("--words: %zu words; the maximum is %d", tokens->count, WORDS_MOST);
    return code;
}

/* Adds the two tokens of each arrow of "king:queen,man:woman". A colon at the start or at the end
 * of a word belongs to the word. */
static int read_arrows(const cli_args *args, const job *j, cli_tokens *tokens)
{
    const char *list = cli_args_text(args, "arrows");
    size_t before = tokens->count, arrows = 0;
    int code = CLI_DONE;
    for (const char *at = list; at && code == CLI_DONE; at = strchr(at, ',')) {
        at += *at == ',' && at > list;
        size_t length = strcspn(at, ",");
        const char *colon = length > 1 ? memchr(at + 1, ':', length - 1) : NULL;
        if (!colon || colon + 1 == at + length)
            return cli_usage("--arrows: '%.*s' is not FROM:TO, such as king:queen",
                             (int)(length < 60 ? length : 60), at);
        code = cli_tokens_word(tokens, j->asked.vocab, at, (size_t)(colon - at));
        if (code == CLI_DONE)
            code = cli_tokens_word(tokens, j->asked.vocab, colon + 1,
                                   length - (size_t)(colon + 1 - at));
        arrows++;
        tokens->count -= (tokens->count - before) % 2; /* an arrow needs both ends */
    }
    if (code == CLI_DONE && arrows > ARROWS_MOST)
        code = cli_usage("--arrows: %zu arrows; the maximum is %d", arrows, ARROWS_MOST);
    return code;
}

/* Keeps the rows of the arrows, which are the tokens after the first `words`. */
static int set_arrows(job *j, const cli_tokens *tokens, const int64_t *rows, size_t words)
{
    size_t count = tokens->count - words;
    if (count == 0) return CLI_DONE;
    j->map.arrows = malloc(count * sizeof *rows);
    if (!j->map.arrows) return cli_failed("no memory for %zu arrows", count / 2);
    memcpy(j->map.arrows, rows + words, count * sizeof *rows);
    j->map.arrow_count = count / 2;
    return CLI_DONE;
}

static int read_marks(const cli_args *args, job *j)
{
    cli_tokens tokens = {0};
    int64_t *rows = NULL;
    int code = read_words(args, j, &tokens);
    size_t words = tokens.count;
    if (code == CLI_DONE) code = read_arrows(args, j, &tokens);
    if (code == CLI_DONE) code = cli_tokens_finish(&tokens, j->asked.vocab);
    if (code == CLI_DONE) code = cli_asked_rows(&j->asked, &tokens, &rows);
    if (code == CLI_DONE && tokens.count > 0) code = mark_rows(j, &tokens, rows, words);
    if (code == CLI_DONE) code = set_arrows(j, &tokens, rows, words);
    free(rows);
    cli_tokens_free(&tokens);
    return code;
}

/* Notes which highlighted rows have no position. */
static void note_nonfinite(const cli_map *map)
{
    for (size_t i = 0; i < map->listed_count; i++)
        if (isnan(map->places[2 * map->listed[i]]))
            cli_complain("note: row %" PRId64 " contains NaN or infinity and is not on the map",
                         map->listed[i]);
}

/* --only: the other rows lose their positions after the plane has been computed from all. */
static void drop_positions(cli_map *map)
{
    for (int64_t row = 0; row < map->rows; row++)
        if (!map->is_listed[row]) map->places[2 * row] = map->places[2 * row + 1] = NAN;
}

/* Computes positions, norms, words and neighbours. */
static int compute_map(job *j)
{
    int code = find_tokens(j); /* first, because the copy of the first rows has no mapping */
    if (code == CLI_DONE) code = copy_first_rows(j);
    if (code == CLI_DONE)
        code = cli_map_compute(j->table, j->threads, j->quiet, j->communities, &j->map);
    if (code != CLI_DONE) return code;
    if (!j->quiet) note_nonfinite(&j->map);
    if (j->map.only) drop_positions(&j->map);
    cli_map_frame_all(&j->map);
    return CLI_DONE;
}

/* ---- report ---- */

static void print_json_communities(const cli_map *map, cli_json *json)
{
    size_t count;
    const embla_community *list = embla_communities_list(map->communities, &count);
    cli_json_open(json, "communities", '[');
    for (size_t c = 0; c < count; c++) {
        cli_json_open(json, NULL, '{');
        cli_json_whole(json, "rows", list[c].rows);
        cli_json_open(json, "central", '[');
        for (size_t i = 0; i < list[c].central_count; i++)
            cli_json_whole(json, NULL, list[c].central[i]);
        cli_json_close(json, ']');
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void print_json(const job *j)
{
    const cli_map *map = &j->map;
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "file", j->path);
    cli_json_text(&json, "format", kinds[j->kind]);
    cli_json_whole(&json, "bytes", j->bytes);
    cli_json_whole(&json, "rows", map->all);
    cli_json_whole(&json, "dim", map->dim);
    cli_json_whole(&json, "points", map->points);
    cli_json_whole(&json, "nonfinite", map->nonfinite);
    cli_json_text(&json, "layout", cli_map_layout(map));
    if (!map->by_neighbours) {
        cli_json_open(&json, "share", '[');
        for (int axis = 0; axis < 2; axis++) cli_json_real(&json, NULL, map->share[axis]);
        cli_json_close(&json, ']');
    }
    cli_json_text(&json, "color", map->color);
    if (map->communities) print_json_communities(map, &json);
    if (map->listed) {
        cli_json_open(&json, "words", '[');
        for (size_t i = 0; i < map->listed_count; i++) cli_json_whole(&json, NULL, map->listed[i]);
        cli_json_close(&json, ']');
    }
    if (map->arrows) {
        cli_json_open(&json, "arrows", '[');
        for (size_t i = 0; i < map->arrow_count; i++) {
            cli_json_open(&json, NULL, '[');
            for (size_t end = 0; end < 2; end++)
                cli_json_whole(&json, NULL, map->arrows[2 * i + end]);
            cli_json_close(&json, ']');
        }
        cli_json_close(&json, ']');
    }
    if (j->kind == HTML) cli_json_whole(&json, "neighbours", (int64_t)map->neighbours);
    cli_json_close(&json, '}');
    putchar('\n');
}

/* The number of communities, and the names of the largest. */
static void print_communities(const cli_map *map)
{
    enum { NAMED = 3 };
    size_t count, used = 0;
    char names[256] = "", name[CLI_WORD_TEXT];
    (void)embla_communities_list(map->communities, &count);
    for (size_t c = 0; c < count && c < NAMED; c++) {
        cli_map_community_name(map, c, 2, name, sizeof name);
        used += (size_t)snprintf(names + used, sizeof names - used, "%s(%.80s)", c > 0 ? " " : "",
                                 name);
        if (used >= sizeof names) break;
    }
    cli_out_fact("communities", "%zu: %s%s", count, names, count > NAMED ? " .." : "");
}

static void print_facts(const job *j)
{
    const cli_map *map = &j->map;
    char size[CLI_CELL], count[CLI_CELL];
    cli_out_fact("written", "%s: %s, %s", j->path, cli_plural(map->points, "point", count),
                 cli_size(j->bytes, size));
    if (map->rows < map->all) cli_out_fact("rows", "the first of %s", cli_commas(map->all, count));
    if (map->nonfinite > 0)
        cli_out_fact("left out", "%s with a NaN or an infinity",
                     cli_plural(map->nonfinite, "row", count));
    if (map->by_neighbours)
        cli_out_fact("layout", "near rows are near each other; large distances have no meaning");
    else
        cli_out_fact("axes", "%.1f %% and %.1f %% of the variance%s", 100 * map->share[0],
                     100 * map->share[1],
                     map->by_arrows ? " of the ends of the arrows, whose plane this is" : "");
    if (map->communities) print_communities(map);
    if (map->outside > 0 && j->kind != HTML)
        cli_out_fact("beyond",
                     "%s outside the frame, which would otherwise shrink the rest to a spot",
                     cli_plural(map->outside, "point", count));
    if (j->kind != HTML) return;
    if (map->neighbours > 0)
        cli_out_fact("neighbours", "%zu per row, exact, by cosine", map->neighbours);
    else
        cli_out_fact("neighbours", "none. %s", map->why_none ? map->why_none : "");
}

/* ---- the verb ---- */

static int set_up(const cli_args *args, job *j)
{
    const char *title = cli_args_text(args, "title"), *name = args->operands[0];
    int code = cli_asked_open(args, name, &j->asked);
    if (code != CLI_DONE) return code;
    j->table = j->asked.table;
    /* a folder's name may end in a slash */
    char path[CLI_PATH_MOST];
    snprintf(path, sizeof path, "%s", name);
    for (size_t end = strlen(path); end > 1 && embla_system_slash(path) == path + end - 1;)
        path[--end] = '\0';
    snprintf(j->title, sizeof j->title, "%.200s", cli_path_title(path));
    j->map.title = title ? title : j->title;
    j->map.all = embla_table_rows(j->table);
    j->map.dim = (int64_t)embla_table_dim(j->table);
    j->map.vocab = j->asked.vocab;
    j->map.theme = cli_args_text(args, "theme");
    j->threads = (int)cli_args_count(args, "threads");
    j->quiet = cli_args_flag(args, "quiet");
    j->map.only = cli_args_flag(args, "only");
    code = read_counts(args, j);
    if (code == CLI_DONE) code = read_marks(args, j);
    return code == CLI_DONE ? check_path(args, j) : code;
}

static int write_picture(const cli_map *map, int kind)
{
    return kind == HTML ? cli_map_html(map) : kind == SVG ? cli_map_svg(map) : cli_map_png(map);
}

/* Writes the picture to the file, then the report to the original stdout. */
static int write_file(const cli_args *args, job *j)
{
    bool same = cli_out_is_stdout(j->path);
    int code = cli_out_to(j->path, cli_args_flag(args, "force"));
    if (code == CLI_DONE) code = write_picture(&j->map, j->kind);
    code = cli_out_done(code);
    if (code == CLI_DONE && !same) {
        j->bytes = cli_file_size(j->path);
        if (cli_args_flag(args, "json"))
            print_json(j);
        else if (!j->quiet)
            print_facts(j);
    }
    return code;
}

static int run(const cli_args *args)
{
    job j = {0};
    int code = read_kind(args, &j);
    if (code == CLI_DONE) code = read_size(args, &j);
    if (code == CLI_DONE) code = set_up(args, &j);
    if (code == CLI_DONE) code = compute_map(&j);
    if (code == CLI_DONE) code = write_file(args, &j);
    cli_map_release(&j.map);
    free(j.map.tokens);
    free(j.map.listed);
    free(j.map.is_listed);
    free(j.map.arrows);
    if (j.table != j.asked.table) embla_table_free(j.table);
    cli_asked_free(&j.asked);
    return code;
}

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "file to write: .html, .svg or .png"},
    {.name = "format",
     .value = "KIND",
     .choices = kind_name,
     .help = "format to write; taken from the extension of FILE if not given"},
    {.name = "force", .help = "replace FILE if it exists"},
    {.name = "title", .value = "TEXT", .help = "title of the map (default: the name of the file)"},
    {.name = "layout",
     .value = "LAYOUT",
     .standard = "auto",
     .choices = layout_name,
     .help = "neighbours keeps near rows near (t-SNE); pca projects on the two main directions; "
             "arrows on those of the ends of --arrows. auto is arrows with --arrows, otherwise "
             "neighbours from 500 rows on, unless that takes long"},
    {.name = "color",
     .value = "WHAT",
     .choices = color_name,
     .help =
         "colour by community, norm or row number; in many tables a high row number means a rare "
         "word (default: community with --layout neighbours, otherwise row)"},
    {.name = "neighbours",
     .value = "K",
     .standard = "8",
     .count = true,
     .help = "nearest rows to show in a page; 0 means none"},
    {.name = "words",
     .value = "LIST",
     .reads = CLI_READS_LINES,
     .help = "highlight and always label these rows: words or #row, separated by commas, or @FILE "
             "or - with one on each line"},
    {.name = "arrows",
     .value = "LIST",
     .help = "draw arrows between rows, such as king:queen,man:woman, and highlight both ends"},
    {.name = "only",
     .help = "draw only the rows of --words and --arrows, on the plane of all rows"},
    {.name = "rows",
     .value = "N",
     .count = true,
     .help = "draw only the first N rows (default: all)"},
    {.name = "size",
     .value = "WxH",
     .help =
         "size of a picture in pixels, at least 600x450 (default: 1600x1200, or 1200x900 for SVG)"},
    {.name = "theme",
     .value = "THEME",
     .standard = "auto",
     .choices = theme_name,
     .help = "colour theme; auto follows the reader's system, and is light in a PNG"},
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_map = {
    .name = "map",
    .synopsis = "FILE",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = 1,
    .files = 1,
    .about = "draw every row as a point on a plane: a web page, an SVG or a PNG",
    .text =
        "FILE is a checkpoint as for 'embla info'. All rows are drawn, up to 300,000; a larger "
        "table needs --rows. --layout neighbours places every row near its nearest rows, by "
        "cosine in all directions; the axes and large distances have no meaning. --layout pca "
        "projects the rows onto their first two principal components and states how much of "
        "the variance they show; rows that are close there can be far apart in the other "
        "directions. --layout arrows is the same with the components of the ends of the arrows, "
        "which shows an analogy best. Communities are groups of rows that are near each other in "
        "all "
        "directions. "
        "They are named by their most central words.\n\n"
        "A page (.html) is one file that needs no network. It shows the word under the "
        "pointer, a search box, and the nearest rows of a clicked row, by cosine in all "
        "directions. A button or the key a draws arrows: click two rows. The nearest rows are "
        "computed when the page is made. If that takes too "
        "long they are left out, unless --neighbours is given. A picture (.svg, .png) shows "
        "words where there is space: of up to 200 rows all, of more rows some, early rows "
        "first.",
    .example = "embla map words.vec -o words.html",
    .options = options,
    .run = run};
