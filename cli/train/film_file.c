/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a film, its rows and its axes. What `embla train` and `embla words` do differently is
 * in train_film.c and words_film.c.
 */
#include "train/film_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/inputs.h"
#include "host/paths.h"

enum { MEMORY = 64000000, MOMENTS = 120 }; /* bytes of all moments; the library's default */

/* ---- before the training ---- */

/* Adds a row, unless it is there. There is room for the ends of the axes. */
static void add_row(cli_film_rows *of, int64_t row)
{
    for (size_t i = 0; i < of->count; i++)
        if (of->rows[i] == row) return;
    of->rows[of->count++] = row;
}

int cli_film_read(const cli_args *args, cli_film *out)
{
    out->path = cli_args_text(args, "film");
    out->axes = cli_args_text(args, "film-axes");
    out->force = cli_args_flag(args, "force");
    if (!out->path) return out->axes ? cli_usage("--film-axes needs --film FILE.html") : CLI_DONE;
    const char *dot = strrchr(out->path, '.');
    if (!dot || strchr(dot, '/') || strcasecmp(dot, ".html") != 0)
        return cli_usage("--film %.200s: a film is a page; choose a name that ends in .html",
                         out->path);
    int code = cli_inputs_check(args, out->path);
    return code == CLI_DONE ? cli_out_check_new(out->path, out->force) : code;
}

int cli_film_choose(cli_film *film, const embla_table *table, const int64_t *listed, size_t count)
{
    size_t fit = MEMORY / (MOMENTS * sizeof(uint16_t) * embla_table_dim(table));
    film->of = calloc(1, sizeof *film->of);
    if (!film->of) return cli_failed("no memory for the rows of a film");
    if (count > CLI_FILM_ROWS) count = CLI_FILM_ROWS;
    if (count > fit) count = fit > 0 ? fit : 1;
    for (size_t i = 0; i < count; i++) add_row(film->of, listed ? listed[i] : (int64_t)i);
    return CLI_DONE;
}

/* Cuts an end of an axis from text: it goes to `end` or to the end of the list. */
static int read_end(cli_film *film, const char **at, char end, cli_film_find *find, void *context,
                    int64_t *row)
{
    const char *stop = **at ? strchr(*at + 1, end) : NULL; /* a word may begin with a colon */
    size_t length = stop ? (size_t)(stop - *at) : strlen(*at);
    if (length == 0 || (end == ':' && !stop))
        return cli_usage("--film-axes: '%.60s' is not two pairs, such as man:woman,king:queen",
                         film->axes);
    int code = find(context, *at, length, row);
    *at += length + (stop != NULL);
    return code;
}

int cli_film_read_axes(cli_film *film, cli_film_find *find, void *context)
{
    static const char ends[CLI_FILM_ENDS] = {':', ',', ':', ','};
    const char *at = film->axes;
    int code = CLI_DONE;
    if (!at) return CLI_DONE;
    for (size_t i = 0; i < CLI_FILM_ENDS && code == CLI_DONE; i++)
        code = read_end(film, &at, ends[i], find, context, &film->of->axes[i]);
    if (code == CLI_DONE && *at)
        code = cli_usage("--film-axes: '%.60s' is more than two pairs, such as "
                         "man:woman,king:queen",
                         film->axes);
    film->of->has_axes = true;
    for (size_t i = 0; i < CLI_FILM_ENDS && code == CLI_DONE; i++)
        add_row(film->of, film->of->axes[i]);
    return code;
}

int cli_film_begin(cli_film *film, const embla_table *table, const char *text,
                   const embla_film_options *options)
{
    embla_film_options o = *options;
    o.rows = film->of->rows;
    o.row_count = film->of->count;
    o.words = film->of->words;
    o.axes = film->of->has_axes ? film->of->axes : NULL;
    o.title = strcmp(text, "-") == 0 ? "standard input" : cli_path_title(text);
    embla_status status = embla_film_new(table, &o, &film->film);
    if (status == EMBLA_OK) return CLI_DONE;
    return status == EMBLA_ERR_ARGUMENT ? cli_usage("--film: %s", embla_error())
                                        : cli_failed("--film: %s", embla_error());
}

/* ---- during the training ---- */

int cli_film_moment(cli_film *film, const embla_table *table, int64_t step, const char *text,
                    size_t length)
{
    if (embla_film_add(film->film, table, step, text, length) == EMBLA_OK) return CLI_DONE;
    return cli_failed("--film: %s", embla_error());
}

/* ---- after the training ---- */

int cli_film_write(cli_film *film)
{
    if (embla_film_write(film->film, film->path, film->force) != EMBLA_OK)
        return cli_failed("--film: %s", embla_error());
    film->bytes = cli_file_size(film->path);
    return CLI_DONE;
}

void cli_film_say_start(const cli_film *film)
{
    embla_film_info info;
    char rows[CLI_CELL], size[CLI_CELL];
    if (!film->film || embla_film_describe(film->film, &info) != EMBLA_OK) return;
    cli_out_fact("film", "%s: %s, %s of memory", film->path,
                 cli_plural((int64_t)info.rows, "row", rows), cli_size(info.bytes, size));
}

void cli_film_say_end(const cli_film *film)
{
    embla_film_info info;
    char rows[CLI_CELL], moments[CLI_CELL], size[CLI_CELL];
    if (!film->film || embla_film_describe(film->film, &info) != EMBLA_OK) return;
    if (film->bytes == 0) return;
    cli_out_fact("film", "%s: %s of %s, %s", film->path,
                 cli_plural((int64_t)info.moments, "moment", moments),
                 cli_plural((int64_t)info.rows, "row", rows), cli_size(film->bytes, size));
}

void cli_film_free(cli_film *film)
{
    embla_film_free(film->film);
    free(film->of);
    *film = (cli_film){0};
}
