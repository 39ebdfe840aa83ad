/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary positions: which numbers are rotated by which angle. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/waves.h"
#include "verbs/embed_job.h"

enum { GRID_PAIRS = 6, GRID_POSITIONS = CLI_PEN_ROWS };

double cli_rotary_step(const cli_rotary *rotary, size_t pair)
{
    return pow(rotary->theta, -2.0 * (double)pair / (double)rotary->dim);
}

/* ---- a few of the pairs ---- */

/* Chooses up to `most` pairs: all, or some from the fastest to the slowest. */
static size_t choose_pairs(const cli_rotary *rotary, size_t most, size_t *out)
{
    const size_t all = rotary->dim / 2, count = all < most ? all : most;
    for (size_t n = 0; n < count; n++) out[n] = count > 1 ? n * (all - 1) / (count - 1) : 0;
    return count;
}

/* ---- text ---- */

static void put_degrees(cli_grid *grid, double radians)
{
    const double degrees = radians * 180 / acos(-1.0);
    cli_grid_put(grid,
                 degrees == 0     ? "%.0f"
                 : degrees < 0.01 ? "%.1e"
                 : degrees < 10   ? "%.2f"
                                  : "%.1f",
                 degrees);
}

void cli_rotary_table(const cli_rotary *rotary, int64_t first, size_t count,
                      char (*words)[CLI_WORD_TEXT])
{
    size_t pairs[GRID_PAIRS], shown = choose_pairs(rotary, GRID_PAIRS, pairs);
    char align[GRID_PAIRS + 3] = "";
    cli_grid grid = {.columns = shown + 1 + (words != NULL)};
    if (words) cli_grid_put(&grid, "token");
    cli_grid_put(&grid, "position");
    for (size_t n = 0; n < shown; n++) cli_grid_put(&grid, "pair %zu", pairs[n]);
    for (size_t i = 0; i < count && i < GRID_POSITIONS; i++) {
        const int64_t position = first + (int64_t)i;
        if (words) cli_grid_put(&grid, "%s", words[i]);
        cli_grid_put(&grid, "%" PRId64, position);
        for (size_t n = 0; n < shown; n++)
            put_degrees(&grid, (double)position * cli_rotary_step(rotary, pairs[n]));
    }
    memset(align, 'r', grid.columns);
    if (words) align[0] = 'l';
    cli_grid_print(&grid, align);
    if (count > GRID_POSITIONS) printf("%zu more\n", count - GRID_POSITIONS);
}

void cli_rotary_fact(const cli_rotary *rotary)
{
    cli_out_fact("positions",
                 "rotary: nothing is added; pair i of the %zu numbers of a query or key is rotated "
                 "by position x %.6g^(-2i/%zu), above in degrees%s",
                 rotary->dim, rotary->theta, rotary->dim,
                 rotary->scaled ? ", before rope_scaling" : "");
}

/* ---- JSON ---- */

void cli_rotary_json(const cli_rotary *rotary, cli_json *json)
{
    cli_json_real(json, "theta", rotary->theta);
    cli_json_whole(json, "head_dim", (int64_t)rotary->dim);
}

void cli_rotary_json_angles(const cli_rotary *rotary, int64_t position, cli_json *json)
{
    cli_json_open(json, "angles", '[');
    for (size_t pair = 0; pair < rotary->dim / 2; pair++)
        cli_json_real(json, NULL, (double)position * cli_rotary_step(rotary, pair));
    cli_json_close(json, ']');
}

/* ---- a picture for a file ---- */

int cli_rotary_sheet(const cli_rotary *rotary, const char *name, int64_t first, size_t count,
                     char (*words)[CLI_WORD_TEXT], cli_sheet_kind kind)
{
    size_t pairs[CLI_DIALS_TALL];
    double radians[CLI_DIALS_TALL];
    const char *labels[CLI_DIALS_WIDE];
    const size_t shown = count < CLI_DIALS_WIDE ? count : CLI_DIALS_WIDE;
    const size_t pair_count = choose_pairs(rotary, CLI_DIALS_TALL, pairs);
    char title[160], facts[256], about[512], some[64] = "";
    for (size_t n = 0; n < pair_count; n++) radians[n] = cli_rotary_step(rotary, pairs[n]);
    for (size_t i = 0; i < shown && words; i++) labels[i] = words[i];
    if (pair_count < rotary->dim / 2)
        snprintf(some, sizeof some, "; %zu of %zu pairs", pair_count, rotary->dim / 2);
    if (shown < count) {
        size_t used = strlen(some);
        snprintf(some + used, sizeof some - used, "; %zu of %zu positions", shown, count);
    }
    snprintf(title, sizeof title, "Rotary positions%s%.100s", name ? " of " : "", name ? name : "");
    snprintf(facts, sizeof facts, "angle of pair i at position p: p \u00d7 %.6g^(\u22122i/%zu)%s%s",
             rotary->theta, rotary->dim, some, rotary->scaled ? "; before rope_scaling" : "");
    snprintf(
        about, sizeof about,
        "Nothing is added to the rows. In attention, each pair of numbers of a query or key (%zu "
        "numbers) is rotated by an angle that grows with the position. Each dial shows the "
        "angle of one pair at one position: the first pair turns fast, the last slowly, like "
        "the hands of a clock.",
        rotary->dim);
    const cli_dials dials = {.title = title,
                             .facts = facts,
                             .about = about,
                             .words = words ? labels : NULL,
                             .count = shown,
                             .first = first,
                             .pairs = pairs,
                             .pair_count = pair_count,
                             .radians = radians};
    return cli_dials_print(kind, &dials);
}
