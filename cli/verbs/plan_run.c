/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `embla plan` that take time or read files: speeds of the machine (--measure), a
 * trace (--trace), a simulation. A fuzzer of command lines replaces this file.
 *
 * A trace is recognised from its contents: an npy file of row numbers or tokens, a file of tokens
 * (llm.c's .bin), numbers as text, or else integers of 64 bits.
 */
#include "verbs/plan_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_train.h"

#include "core/inputs.h"
#include "host/host.h"
#include "train/ranks.h"
#include "verbs/trace_file.h"

enum { PIECE = 1024, HEAD = 4096 };
#define TRACE_MOST ((size_t)1 << 27) /* row numbers */

/* ---- measure ---- */

int cli_plan_measure(const cli_args *args, cli_plan *p, bool *speaks)
{
    const embla_comm *comm = NULL;
    *speaks = true;
    int code = cli_ranks_join(args, 0, &comm);
    if (code != CLI_DONE) return code;
    *speaks = comm->rank == 0;
    if (embla_plan_measure(comm, &p->options, &p->options.machine) != EMBLA_OK) {
        code = cli_failed("%s", embla_error());
    } else {
        int64_t here = p->options.machine.ranks;
        p->measured = true;
        if (comm->size > 1)
            (void)snprintf(p->job, sizeof p->job, "%d ranks of %s", comm->size, comm->name);
        if (!cli_args_given(args, "ranks-per-host")) p->options.ranks_per_host = here;
        if (!cli_args_given(args, "hosts") && comm->size > 1)
            p->options.hosts = comm->size / (here > 0 ? here : 1);
    }
    embla_comm_free(comm);
    return code;
}

/* ---- simulate ---- */

int cli_plan_simulate(cli_plan *p)
{
    const embla_simulation_options from = {.trace = p->rows, .count = p->row_count};
    embla_status status =
        embla_plan_simulate(&p->options, &from, p->ranks, p->rank_count, p->found);
    if (status == EMBLA_ERR_ARGUMENT) return cli_usage("%s", embla_error());
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

/* ---- trace ---- */

static int no_memory(size_t count)
{
    return cli_failed("no memory for a trace of %zu row numbers", count);
}

/* More row numbers than a simulation ever takes; the rest of a file is not read, and said to be. */
static size_t cut_long(const cli_plan *p, uint64_t count)
{
    if (count <= TRACE_MOST) return (size_t)count;
    cli_complain("%s has %" PRIu64 " row numbers; the first %zu are used", p->trace, count,
                 TRACE_MOST);
    return TRACE_MOST;
}

static int read_npy(cli_plan *p)
{
    cli_trace trace;
    int code = cli_trace_read(p->trace, TRACE_MOST, &trace);
    p->rows = trace.rows;
    p->row_count = trace.count;
    if (code == CLI_DONE) (void)cut_long(p, (uint64_t)trace.tokens * trace.columns);
    return code;
}

/* The tokens of a file, in its order and in pieces; those after the last whole piece one by one. A
 * batch has the tokens and what follows each of them, so the last token of the file is a target. */
static int read_tokens(const embla_corpus *corpus, cli_plan *p)
{
    int32_t tokens[PIECE], targets[PIECE];
    size_t count = cut_long(p, (uint64_t)embla_corpus_tokens(corpus)), last = count - 1;
    p->rows = malloc(count * sizeof *p->rows);
    if (!p->rows) return no_memory(count);
    for (size_t i = 0, length; i < last; i += length) {
        length = last - i < PIECE ? 1 : PIECE;
        if (embla_corpus_batch(corpus,
                               &(embla_corpus_request){
                                   .step = (int64_t)(i / length), .batch = 1, .length = length},
                               tokens, targets, NULL) != EMBLA_OK)
            return cli_failed("%s", embla_error());
        for (size_t k = 0; k < length; k++) p->rows[p->row_count++] = tokens[k];
        p->rows[p->row_count] = targets[length - 1];
    }
    p->row_count++;
    return CLI_DONE;
}

static bool is_text(const char *head, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!strchr("0123456789, \t\r\n", head[i]) || head[i] == '\0') return false;
    return length > 0;
}

static int read_text(FILE *file, cli_plan *p)
{
    size_t room = 0;
    char separator[2];
    for (;;) {
        (void)!fscanf(file, "%*[, \t\r\n]");
        int64_t row;
        if (fscanf(file, "%18" SCNd64, &row) != 1) break;
        if (p->row_count == room) {
            room = room > 0 ? 2 * room : PIECE;
            int64_t *more = realloc(p->rows, room * sizeof *more);
            if (!more) return no_memory(room);
            p->rows = more;
        }
        p->rows[p->row_count++] = row;
    }
    if (fscanf(file, "%1s", separator) != EOF)
        return cli_failed("%s: '%s' after %zu numbers is not part of a row number", p->trace,
                          separator, p->row_count);
    return CLI_DONE;
}

/* Little-endian integers of 64 bits. */
static int read_integers(FILE *file, cli_plan *p)
{
    long bytes = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (bytes < 0 || fseek(file, 0, SEEK_SET) != 0)
        return cli_failed("cannot read %s: %s", p->trace, strerror(errno));
    if (bytes == 0 || (size_t)bytes % sizeof(int64_t) != 0)
        return cli_failed("%s has %ld bytes, which are neither tokens, nor numbers as text, nor "
                          "integers of 8 bytes",
                          p->trace, bytes);
    size_t count = cut_long(p, (uint64_t)bytes / sizeof(int64_t));
    p->rows = malloc(count * sizeof *p->rows);
    if (!p->rows) return no_memory(count);
    p->row_count = fread(p->rows, sizeof *p->rows, count, file);
    if (p->row_count == count) return CLI_DONE;
    return cli_failed("%s ended after %zu of %zu numbers", p->trace, p->row_count, count);
}

/* Says of a trace that a simulation would refuse which file and which options are meant. */
static int check_rows(const cli_plan *p)
{
    const embla_plan_options *o = &p->options;
    const double asked = (double)o->tokens * (double)o->rows_per_token;
    if ((double)p->row_count < asked)
        return cli_failed("%s has %zu row numbers; a rank asks for %.0f in a step. Use a longer "
                          "trace, or a smaller --tokens or --per-token.",
                          p->trace, p->row_count, asked);
    for (size_t i = 0; i < p->row_count; i++)
        if (p->rows[i] < 0 || p->rows[i] >= o->rows)
            return cli_failed("%s: row %" PRId64
                              " at index %zu is out of range; --rows is %" PRId64,
                              p->trace, p->rows[i], i, o->rows);
    return CLI_DONE;
}

/* Text, or raw integers. */
static int read_plain(FILE *file, bool text, cli_plan *p)
{
    rewind(file);
    return text ? read_text(file, p) : read_integers(file, p);
}

int cli_plan_read(cli_plan *p)
{
    static const char npy[] = "\x93NUMPY";
    const embla_corpus_options options = {
        .kind = EMBLA_CORPUS_TOKENS, .validation = -1, .in_order = true};
    embla_corpus *corpus = NULL;
    char head[HEAD];
    int code;
    FILE *file = cli_file_open(cli_input_path(p->trace), "rb");
    if (!file) return cli_failed("cannot open %s: %s", p->trace, strerror(errno));
    size_t length = fread(head, 1, sizeof head, file);
    if (length >= sizeof npy - 1 && memcmp(head, npy, sizeof npy - 1) == 0)
        code = read_npy(p);
    else if (embla_corpus_open(cli_input_path(p->trace), &options, &corpus) == EMBLA_OK)
        code = read_tokens(corpus, p);
    else
        code = read_plain(file, is_text(head, length), p);
    embla_corpus_free(corpus);
    (void)fclose(file);
    return code == CLI_DONE ? check_rows(p) : code;
}
