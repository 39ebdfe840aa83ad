/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a map. The nearest rows of all rows are found once: a layout, communities and the
 * neighbours of a page all come from them.
 */
#include "draw/map_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/args.h"
#include "core/progress.h"

enum { BATCH = 1024, NEAREST = 30 }; /* rows per lookup; nearest rows of a layout */

typedef struct {
    const embla_table *table;
    cli_map *map;
    int threads;
    cli_progress progress;
    embla_graph *graph; /* NULL if nothing needs it */
} job;

/* The progress function of the library, which counts rows, steps or rounds. */
static bool report(void *context, const char *what, int64_t done, int64_t total)
{
    cli_progress *progress = context;
    progress->unit = strcmp(what, "neighbours") == 0 ? "rows"
                     : strcmp(what, "layout") == 0   ? "steps"
                                                     : "rounds";
    return cli_progress_step(progress, what, done, total);
}

static int status_code(embla_status status)
{
    if (status == EMBLA_OK) return CLI_DONE;
    /* after a signal, cli_progress_end prints the message */
    return status == EMBLA_ERR_STOPPED ? CLI_FAILED : cli_failed("%s", embla_error());
}

/* ---- norms ---- */

/* Computes the norms of all rows; NaN for those that are not finite. */
static int compute_norms(const job *j)
{
    const embla_lookup_options options = {.threads = j->threads};
    size_t dim = embla_table_dim(j->table);
    int64_t rows[BATCH], all = j->map->rows;
    float *values = malloc(BATCH * dim * sizeof *values);
    embla_status status = EMBLA_OK;
    if (!values) return cli_failed("no memory for %d rows", BATCH);
    for (int64_t first = 0; first < all && status == EMBLA_OK; first += BATCH) {
        size_t count = (size_t)(all - first < BATCH ? all - first : BATCH);
        for (size_t i = 0; i < count; i++) rows[i] = first + (int64_t)i;
        status = embla_lookup_rows(j->table, rows, count, &options, values);
        for (size_t i = 0; i < count && status == EMBLA_OK; i++) {
            bool finite = true;
            for (size_t k = 0; k < dim; k++) finite = finite && isfinite(values[i * dim + k]);
            float norm = finite ? (float)embla_norm(values + i * dim, dim) : NAN;
            j->map->norms[first + (int64_t)i] = norm;
        }
    }
    free(values);
    return status_code(status);
}

/* ---- nearest rows ---- */

/* A neighbour as a page has it: CLI_MAP_NEAR_BYTES bytes. */
static void store_neighbour(embla_neighbour found, uint8_t *to)
{
    double score = found.score < -1 ? -1 : found.score > 1 ? 1 : found.score;
    unsigned place = (unsigned)((score + 1) / 2 * 65535 + 0.5);
    for (int b = 0; b < 3; b++) to[b] = (uint8_t)((uint32_t)found.row >> (8 * b));
    to[3] = (uint8_t)place;
    to[4] = (uint8_t)(place >> 8);
}

static int store_neighbours(const job *j)
{
    cli_map *map = j->map;
    int64_t others = map->rows - map->nonfinite - 1;
    if (others < 1) map->why_none = "There is no other row.";
    if ((int64_t)map->neighbours > others) map->neighbours = others > 0 ? (size_t)others : 0;
    if (map->neighbours == 0) return CLI_DONE;
    size_t row_bytes = map->neighbours * CLI_MAP_NEAR_BYTES;
    map->near = malloc((size_t)map->rows * row_bytes);
    if (!map->near)
        return cli_failed("no memory for the neighbours of %lld rows", (long long)map->rows);
    memset(map->near, 0xff, (size_t)map->rows * row_bytes); /* none */
    for (int64_t row = 0; row < map->rows; row++) {
        size_t count;
        const embla_neighbour *found = embla_graph_near(j->graph, row, &count);
        for (size_t i = 0; i < count && i < map->neighbours; i++)
            store_neighbour(found[i], map->near + (size_t)row * row_bytes + i * CLI_MAP_NEAR_BYTES);
    }
    return CLI_DONE;
}

/* ---- positions ---- */

static int project(const job *j)
{
    embla_plane_report found = {0};
    cli_map *map = j->map;
    const embla_plane_options options = {.basis = map->by_arrows ? map->arrows : NULL,
                                         .basis_count = 2 * map->arrow_count,
                                         .threads = j->threads};
    embla_status status = embla_plane(j->table, &options, map->places, &found);
    map->nonfinite = found.nonfinite;
    for (int axis = 0; axis < 2; axis++)
        map->share[axis] = isfinite(found.share[axis]) ? found.share[axis] : 0;
    return status_code(status);
}

static int lay_out(job *j)
{
    embla_layout_report found = {0};
    const embla_layout_options options = {
        .threads = j->threads, .progress = report, .context = &j->progress};
    embla_status status = embla_layout(j->table, j->graph, &options, j->map->places, &found);
    j->map->nonfinite = found.nonfinite;
    return status_code(status);
}

/* Everything that takes long. */
static int compute(job *j, bool communities)
{
    cli_map *map = j->map;
    size_t k = map->neighbours;
    int code = CLI_DONE;
    if ((communities || map->by_neighbours) && k < NEAREST) k = NEAREST;
    const embla_graph_options options = {
        .k = k, .threads = j->threads, .progress = report, .context = &j->progress};
    if (k > 0) code = status_code(embla_graph_new(j->table, &options, &j->graph));
    if (code == CLI_DONE) code = map->by_neighbours ? lay_out(j) : project(j);
    if (code == CLI_DONE && communities) {
        const embla_communities_options how = {.max_communities = CLI_MAP_COMMUNITIES,
                                               .threads = j->threads,
                                               .progress = report,
                                               .context = &j->progress};
        code = status_code(embla_communities_new(j->graph, &how, &map->communities));
    }
    if (code == CLI_DONE) code = compute_norms(j);
    return code == CLI_DONE ? store_neighbours(j) : code;
}

int cli_map_compute(const embla_table *table, int threads, bool quiet, bool communities,
                    cli_map *map)
{
    job j = {.table = table, .map = map, .threads = threads};
    size_t rows = (size_t)map->rows;
    map->places = malloc(rows * 2 * sizeof *map->places);
    map->norms = malloc(rows * sizeof *map->norms);
    if (!map->places || !map->norms)
        return cli_failed("no memory for the positions of %zu rows", rows);
    cli_progress_begin(&j.progress, quiet);
    int code = compute(&j, communities);
    cli_progress_end(&j.progress, "interrupted; nothing has been written");
    embla_graph_free(j.graph);
    return code;
}

void cli_map_release(cli_map *map)
{
    free(map->places);
    free(map->norms);
    free(map->near);
    embla_communities_free(map->communities);
}
