/* SPDX-License-Identifier: Apache-2.0 */
/* --film FILE.html of `embla train` and `embla words`: a page that shows how rows move. The library
 * collects the rows and writes the page (embla_film_new).
 */
#ifndef CLI_TRAIN_FILM_FILE_H
#define CLI_TRAIN_FILM_FILE_H

#include "embla_lab.h"

#include "core/args.h"
#include "core/out.h"

enum { CLI_FILM_ROWS = 300, CLI_FILM_ENDS = 4 }; /* rows at most, and ends of two axes */

/* What is filmed: rows with their words, and the ends of two axes. */
typedef struct {
    int64_t rows[CLI_FILM_ROWS + CLI_FILM_ENDS];
    const char *words[CLI_FILM_ROWS + CLI_FILM_ENDS]; /* NULL means no word */
    size_t count;
    int64_t axes[CLI_FILM_ENDS];
    bool has_axes;
} cli_film_rows;

/* Zeroed there is none. */
typedef struct {
    const char *path;  /* NULL means no film */
    const char *axes;  /* the value of --film-axes; NULL means none */
    bool force;        /* replace the file */
    embla_film *film;  /* NULL before cli_film_begin */
    cli_film_rows *of; /* the same */
    int64_t bytes;     /* of the written page */
} cli_film;

/* Reads the options and checks the file, before long work. Returns the exit code. */
int cli_film_read(const cli_args *args, cli_film *out);
/* Chooses rows: the listed ones, or the first ones (listed NULL); at most CLI_FILM_ROWS, and as
 * many as fit in memory. */
int cli_film_choose(cli_film *film, const embla_table *table, const int64_t *listed, size_t count);
/* Reads "man:woman,king:queen" and adds the rows. find writes the row of a word; it returns the
 * exit code, after a message. */
typedef int cli_film_find(void *context, const char *word, size_t length, int64_t *row);
int cli_film_read_axes(cli_film *film, cli_film_find *find, void *context);
/* Makes the film of the chosen rows, whose words are set. text is the file that is learned; other
 * fields of options are kept. */
int cli_film_begin(cli_film *film, const embla_table *table, const char *text,
                   const embla_film_options *options);
/* Adds the present rows, after `step` steps. */
int cli_film_moment(cli_film *film, const embla_table *table, int64_t step, const char *text,
                    size_t length);
/* Writes the page. */
int cli_film_write(cli_film *film);
/* Prints facts: before the first step, and about the written page. */
void cli_film_say_start(const cli_film *film);
void cli_film_say_end(const cli_film *film);
void cli_film_free(cli_film *film);

#endif
