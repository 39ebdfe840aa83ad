/* SPDX-License-Identifier: Apache-2.0 */
/* Any command line: the input is its words, each ended by a NUL byte. The line is parsed with the
 * program's own tables and executed, except for benchmarks. Promises: no crash; an invalid line
 * prints one line on stderr (seven, the usage, if there is no verb) and nothing on stdout; the
 * output is bounded by the input. The streams are replaced by counting ones, as the GNU C library
 * allows. */
#include <errno.h>

#include "bench/bench.h"
#include "core/inputs.h"
#include "core/model.h"
#include "core/verbs.h"
#include "input.h"
#include "train/train_make.h"
#include "train/words_run.h"
#include "verbs/plan_run.h"

enum { WORDS = 40, BOUND = 80 << 10 };

typedef struct {
    size_t bytes, lines;
} tally;

static ssize_t count(void *cookie, const char *text, size_t size)
{
    tally *t = cookie;
    t->bytes += size;
    for (size_t i = 0; i < size; i++) t->lines += text[i] == '\n';
    return (ssize_t)size;
}

static FILE *counting(tally *t)
{
    FILE *stream = fopencookie(t, "w", (cookie_io_functions_t){.write = count});
    if (!stream) exit(1);
    return stream;
}

/* Replaces the learning of words: options are parsed, no text is read. */
int cli_words_run(const cli_args *args, cli_words *w)
{
    PROMISE(args && w->named && w->options.dim > 0);
    return cli_failed("no text");
}

void cli_words_free(cli_words *w)
{
    for (size_t i = 0; i < w->eval_count; i++) free(w->evals[i]);
    free(w->state);
}

/* Replaces the long parts of a plan: options are parsed, nothing is measured, read or simulated. */
int cli_plan_measure(const cli_args *args, cli_plan *p, bool *speaks)
{
    PROMISE(args && p && speaks);
    return cli_failed("nothing is measured");
}

int cli_plan_read(cli_plan *p)
{
    PROMISE(p->trace);
    return cli_failed("no trace %s", p->trace);
}

int cli_plan_simulate(cli_plan *p)
{
    PROMISE(p->rank_count > 0 && p->rank_count <= CLI_PLAN_RANKS);
    return CLI_DONE;
}

/* Replaces the benchmark: options are parsed, nothing is measured. */
int bench_lookup(const bench_options *options)
{
    PROMISE(options->complain);
    return CLI_DONE;
}

int bench_open(const bench_options *options)
{
    PROMISE(options->complain);
    return CLI_DONE;
}

int bench_near(const bench_options *options)
{
    PROMISE(options->complain);
    return CLI_DONE;
}

int bench_scatter(const bench_options *options)
{
    PROMISE(options->complain);
    return CLI_DONE;
}

int bench_optim(const bench_options *options)
{
    PROMISE(options->complain);
    return CLI_DONE;
}

int bench_head(const bench_options *options)
{
    PROMISE(options->complain);
    return CLI_DONE;
}

int bench_ngram(const bench_options *options)
{
    PROMISE(options->complain);
    return CLI_DONE;
}

int bench_codec(const bench_options *options)
{
    PROMISE(options->complain);
    return CLI_DONE;
}

int bench_rows(const bench_options *options)
{
    PROMISE(options->complain);
    return CLI_DONE;
}

int bench_disk(const bench_options *options)
{
    PROMISE(options->complain);
    return CLI_DONE;
}

int bench_cluster(const bench_options *options)
{
    PROMISE(options->complain);
    return CLI_DONE;
}

int bench_text(const bench_options *options)
{
    PROMISE(options->complain);
    return CLI_DONE;
}

int bench_train(const bench_options *options)
{
    PROMISE(options->complain);
    return CLI_DONE;
}

/* Opens no file, whatever the line names. */
embla_status cli_open_path(const char *path, const embla_open_options *options,
                           embla_checkpoint **out)
{
    PROMISE(path && options && out);
    return EMBLA_ERR_NOT_FOUND;
}

/* Replaces the door of files: none is decompressed, and standard input is not read. */
int cli_inputs_open(const cli_args *args)
{
    PROMISE(args->verb);
    return CLI_DONE;
}

int cli_inputs_add(const char *path, bool quiet)
{
    (void)quiet;
    PROMISE(path);
    return CLI_DONE;
}

const char *cli_input_path(const char *typed)
{
    return typed;
}

const char *cli_input_name(const char *real)
{
    return real;
}

void cli_inputs_rename(char *text, size_t size)
{
    PROMISE(strlen(text) < size);
}

void cli_inputs_close(void)
{
}

embla_status cli_open_tokenizer(const char *path, const embla_checkpoint *checkpoint,
                                embla_tokenizer **out)
{
    PROMISE((path || checkpoint) && out);
    return EMBLA_ERR_NOT_FOUND;
}

embla_status cli_train_tokenizer(const char *text, const embla_tokenizer_train_options *options,
                                 const char *out, embla_tokenizer_trained *trained)
{
    PROMISE(text && options && out && trained);
    return EMBLA_ERR_NOT_FOUND;
}

embla_status cli_open_words(const char *path, embla_vocab **out)
{
    PROMISE(path && out);
    return EMBLA_ERR_NOT_FOUND;
}

embla_status cli_make_table(embla_dtype dtype, int64_t rows, size_t dim, embla_table **out)
{
    PROMISE(embla_dtype_name(dtype) && rows > 0 && dim > 0 && out);
    return EMBLA_ERR_MEMORY;
}

embla_status cli_open_corpus(const char *path, const embla_corpus_options *options,
                             embla_corpus **out)
{
    PROMISE(path && options && out);
    return EMBLA_ERR_NOT_FOUND;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[] = "embla", *argv[WORDS + 1] = {name}, *text = block(size + 1);
    int argc = 1;
    tally out = {0}, err = {0};
    FILE *real_out = stdout, *real_err = stderr;
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    for (size_t at = 0; at < size && argc < WORDS; at += strlen(text + at) + 1)
        argv[argc++] = text + at;

    FILE *counted_out = counting(&out), *counted_err = counting(&err);
    stdout = counted_out;
    stderr = counted_err;
    int code = cli_run(argc, argv);
    stdout = real_out;
    stderr = real_err;
    fclose(counted_out);
    fclose(counted_err);

    PROMISE(code == CLI_DONE || code == CLI_USAGE || code == CLI_FAILED);
    PROMISE(out.bytes + err.bytes <= BOUND + 2 * size);
    if (code == CLI_DONE) PROMISE(err.bytes == 0);
    if (code != CLI_DONE) PROMISE(out.bytes == 0 && (err.lines == 1 || err.lines == 7));
    free(text);
    return 0;
}
