/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of `embla train`: those of the preset, unless an option replaces them. A value that
 * is wrong by itself is refused here; what does not fit the text or another model is refused by
 * train_make.c.
 */
#include "train/train_options.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/engine_choice.h"
#include "train/train_plot.h"

enum {
    WORDS_MOST = 1 << 22, /* of embla_corpus_options */
    NEGATIVES = 1000      /* default of --negatives */
};

/* ---- numbers ---- */

/* A number with least <= number < below. *out is unchanged if the option is not given. */
static int read_real(const cli_args *args, const char *name, double least, double below,
                     double *out)
{
    const char *text = cli_args_text(args, name);
    char *end = NULL;
    if (!cli_args_given(args, name)) return CLI_DONE;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value))
        return cli_usage("--%s: '%.60s' is not a number such as 0.001", name, text);
    if (!(value >= least && value < below)) {
        if (isinf(below)) return cli_usage("--%s is %.60s; the minimum is %g", name, text, least);
        return cli_usage("--%s is %.60s; it must be at least %g and less than %g", name, text,
                         least, below);
    }
    *out = value;
    return CLI_DONE;
}

/* A count of at least 1. *out is unchanged if the option is not given. */
static int read_count(const cli_args *args, const char *name, int64_t most, int64_t *out)
{
    if (!cli_args_given(args, name)) return CLI_DONE;
    int64_t value = cli_args_count(args, name);
    if (value < 1) return cli_usage("--%s is 0; the minimum is 1", name);
    if (value > most)
        return cli_usage("--%s is %.60s; the maximum is %" PRId64, name, cli_args_text(args, name),
                         most);
    *out = value;
    return CLI_DONE;
}

static int read_size(const cli_args *args, const char *name, size_t *out)
{
    int64_t value = (int64_t)*out;
    int code = read_count(args, name, INT32_MAX, &value);
    *out = cli_as_size(value);
    return code;
}

/* ---- options ---- */

const char *cli_position_name(size_t n)
{
    return embla_positions_name((embla_positions_kind)n);
}

/* The kind of positions, and whether the head is the token table. */
static int read_kinds(const cli_args *args, embla_gpt_shape *s)
{
    const char *positions = cli_args_text(args, "positions");
    bool tied = cli_args_flag(args, "tied"), untied = cli_args_flag(args, "untied");
    if (tied && untied) return cli_usage("--tied and --untied cannot be used together");
    if (tied || untied) s->untied = untied;
    for (size_t n = 0; positions && cli_position_name(n); n++)
        if (strcmp(positions, cli_position_name(n)) == 0)
            s->position_kind = (embla_positions_kind)n;
    return CLI_DONE;
}

static int read_shape(const cli_args *args, embla_gpt_shape *s)
{
    size_t dim = 0, heads = 0, length = s->positions;
    int code = read_size(args, "dim", &dim);
    if (code == CLI_DONE) code = read_size(args, "heads", &heads);
    if (code == CLI_DONE) code = read_size(args, "layers", &s->layers);
    if (code == CLI_DONE) code = read_size(args, "length", &length);
    if (code == CLI_DONE) code = read_real(args, "dropout", 0, 1, &s->dropout);
    if (code == CLI_DONE) code = read_kinds(args, s);
    if (code != CLI_DONE) return code;
    s->positions = length;
    embla_gpt_resize(s, dim, heads);
    return CLI_DONE;
}

/* "2,3": consecutive orders from 2 on, because the table holds every order up to the largest. */
static int read_orders(const char *text, size_t *out)
{
    size_t last = 1;
    for (const char *at = text;; at++) {
        char *end;
        long value = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : 0;
        if (value != (long)last + 1 || value > 16)
            return cli_usage("--ngram-orders: '%.60s' is not a list such as 2, or 2,3, or 2,3,4",
                             text);
        last = (size_t)value;
        at = end;
        if (*at == '\0') break;
        if (*at != ',')
            return cli_usage("--ngram-orders: '%.60s' is not a list such as 2, or 2,3, or 2,3,4",
                             text);
    }
    *out = last;
    return CLI_DONE;
}

static int read_ngram(const cli_args *args, cli_training *t)
{
    static const char *const parts[] = {"ngram-heads", "ngram-orders", "ngram-dim",   "ngram-layer",
                                        "ngram-rate",  "ngram-shared", "shard-ngrams"};
    embla_gpt_ngram *n = &t->shape.ngram;
    if (!cli_args_given(args, "ngram-rows")) {
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
            if (cli_args_given(args, parts[i]))
                return cli_usage("--%s needs --ngram-rows N", parts[i]);
        return CLI_DONE;
    }
    n->seed = t->options.seed;
    int code = read_count(args, "ngram-rows", INT64_MAX, &n->rows);
    if (code == CLI_DONE) code = read_size(args, "ngram-heads", &n->heads);
    if (code == CLI_DONE) code = read_size(args, "ngram-dim", &n->dim);
    if (code == CLI_DONE && cli_args_given(args, "ngram-orders"))
        code = read_orders(cli_args_text(args, "ngram-orders"), &n->orders);
    if (code == CLI_DONE) code = read_real(args, "ngram-rate", 0, INFINITY, &t->options.ngram_rate);
    n->layer = cli_args_size(args, "ngram-layer");
    return code;
}

/* One item of --freeze: tokens, positions, trunk or below:N. */
static int read_frozen(const char *item, size_t length, embla_train_options *o)
{
    static const char *const names[] = {"tokens", "positions", "trunk"};
    static const char below[] = "below:";
    char *end = NULL;
    for (size_t n = 0; n < 3; n++)
        if (length == strlen(names[n]) && memcmp(item, names[n], length) == 0) {
            o->freeze |= 1u << n;
            return CLI_DONE;
        }
    if (length < sizeof below || memcmp(item, below, sizeof below - 1) != 0)
        return cli_usage("--freeze: '%.*s' is unknown; use tokens, positions, trunk or below:N",
                         (int)(length < 60 ? length : 60), item);
    const char *number = item + sizeof below - 1;
    long long rows = *number >= '0' && *number <= '9' ? strtoll(number, &end, 10) : 0;
    if (rows < 1 || rows > INT32_MAX || end != item + length)
        return cli_usage("--freeze: '%.*s' does not end with a number of rows such as 100",
                         (int)(length < 60 ? length : 60), item);
    o->freeze_below = rows;
    return CLI_DONE;
}

const char *cli_loss_name(size_t n)
{
    static const char *const names[] = {"full", "sampled"};
    return n < sizeof names / sizeof names[0] ? names[n] : NULL;
}

/* --loss and --negatives. */
static int read_loss(const cli_args *args, embla_train_options *o)
{
    const char *loss = cli_args_text(args, "loss");
    int64_t negatives = 0;
    if (!loss || strcmp(loss, "sampled") != 0)
        return cli_args_given(args, "negatives") ? cli_usage("--negatives needs --loss sampled")
                                                 : CLI_DONE;
    negatives = NEGATIVES;
    int code = read_count(args, "negatives", INT32_MAX, &negatives);
    o->negatives = cli_as_size(negatives);
    return code;
}

static int read_freeze(const cli_args *args, embla_train_options *o)
{
    const char *list = cli_args_text(args, "freeze");
    int code = CLI_DONE;
    while (list && code == CLI_DONE) {
        size_t length = strcspn(list, ",");
        code = read_frozen(list, length, o);
        list = list[length] == ',' ? list + length + 1 : NULL;
    }
    if (code == CLI_DONE && (o->freeze & EMBLA_FREEZE_TOKENS) && o->freeze_below > 0)
        code = cli_usage("--freeze: tokens freezes all rows; omit below:%" PRId64, o->freeze_below);
    return code;
}

static int read_training(const cli_args *args, const embla_gpt_preset *p, cli_training *t)
{
    embla_train_options *o = &t->options;
    embla_schedule *s = &o->schedule;
    embla_schedule_kind kind = p->schedule;
    const char *schedule = cli_args_text(args, "schedule");
    double rate = p->rate;
    t->steps = cli_args_given(args, "steps") ? cli_args_count(args, "steps") : p->steps;
    if (schedule)
        for (kind = 0; strcmp(embla_schedule_name(kind), schedule) != 0;) kind++;
    int code = read_real(args, "rate", 0, INFINITY, &rate);
    if (code == CLI_DONE && embla_gpt_preset_options(p, t->steps, rate, kind, o) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    if (cli_args_given(args, "warm-up")) s->warm_up = cli_args_count(args, "warm-up");
    if (code == CLI_DONE) code = read_real(args, "final-rate", 0, INFINITY, &s->final);
    if (code == CLI_DONE) code = read_real(args, "beta1", 0, 1, &o->beta1);
    if (code == CLI_DONE) code = read_real(args, "beta2", 0, 1, &o->beta2);
    if (code == CLI_DONE) code = read_real(args, "decay", 0, INFINITY, &o->decay);
    if (code == CLI_DONE) code = read_real(args, "clip", 0, INFINITY, &o->clip);
    if (code == CLI_DONE) code = read_size(args, "batch", &o->batch);
    if (code == CLI_DONE) code = read_size(args, "length", &o->length);
    return code;
}

/* What the tokens are: characters, unless one of four options is given. */
static int read_token_kind(const cli_args *args, embla_corpus_options *o)
{
    static const struct {
        const char *name;
        embla_corpus_kind kind;
    } kinds[] = {{"bytes", EMBLA_CORPUS_BYTES},
                 {"tokens-file", EMBLA_CORPUS_TOKENS},
                 {"words", EMBLA_CORPUS_WORDS},
                 {"tokenizer", EMBLA_CORPUS_TOKENIZER}};
    const char *given = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!cli_args_given(args, kinds[i].name)) continue;
        if (given) return cli_usage("--%s and --%s cannot be used together", given, kinds[i].name);
        given = kinds[i].name;
        o->kind = kinds[i].kind;
    }
    if (cli_args_given(args, "vocab") && o->kind != EMBLA_CORPUS_TOKENS)
        return cli_usage("--vocab needs --tokens-file; a text has its own vocabulary");
    return read_count(args, "words", WORDS_MOST, &o->max_words);
}

static int read_corpus(const cli_args *args, cli_training *t)
{
    embla_corpus_options *o = &t->corpus_options;
    bool documents = cli_args_flag(args, "documents");
    double share = 0;
    int code = read_token_kind(args, o);
    bool tokens = o->kind == EMBLA_CORPUS_TOKENS;
    if (code != CLI_DONE) return code;
    if (documents && tokens)
        return cli_usage(
            "--documents and --tokens-file cannot be used together: a file of tokens has no lines");
    o->documents = documents || (t->preset && strcmp(t->preset, "microgpt") == 0 && !tokens);
    o->in_order = cli_args_flag(args, "in-order");
    o->seed = t->options.seed;
    code = read_real(args, "validation", 0, 1, &share);
    o->validation = cli_args_given(args, "validation") && share == 0 ? -1 : share;
    return code;
}

/* The default interval: a tenth of the steps. */
static int64_t default_interval(int64_t steps)
{
    return steps >= 10 ? steps / 10 : 1;
}

int cli_options_read_intervals(const cli_args *args, cli_training *t)
{
    t->every_asked = cli_args_given(args, "every");
    t->every = default_interval(t->steps);
    if (cli_args_given(args, "plot")) t->plot = cli_args_text(args, "plot");
    int code = read_count(args, "every", INT64_MAX, &t->every);
    if (code == CLI_DONE) code = read_count(args, "save-every", INT64_MAX, &t->save_every);
    if (code == CLI_DONE) code = read_count(args, "keep", INT32_MAX, &t->keep);
    if (code == CLI_DONE) code = read_count(args, "sample-every", INT64_MAX, &t->sample_every);
    if (code == CLI_DONE) code = read_real(args, "minutes", 0, 1e6, &t->minutes);
    if (code == CLI_DONE && t->plot) code = cli_plot_check(args, t->plot);
    return code == CLI_DONE ? cli_film_read(args, &t->film) : code;
}

int cli_options_read(const cli_args *args, cli_training *t)
{
    static const char *const shapes[] = {"dim", "heads", "layers", "positions", "tied", "untied"};
    embla_gpt_preset preset;
    bool from = cli_args_given(args, "from");
    const char *name = cli_args_text(args, "preset");
    if (embla_gpt_preset_find(name, &preset) != EMBLA_OK) return cli_usage("%s", embla_error());
    if (!from || cli_args_given(args, "preset")) t->preset = name;
    for (size_t i = 0; !t->preset && i < sizeof shapes / sizeof shapes[0]; i++)
        if (cli_args_given(args, shapes[i]))
            return cli_usage("--%s has no effect: without --preset the shape comes from --from",
                             shapes[i]);
    t->shape = preset.shape;
    t->spread = preset.spread;
    if (from && cli_args_given(args, "token-spread"))
        return cli_usage("--token-spread has no effect: the rows come from --from");
    if (from) t->shape.dropout = -1; /* the model's own, unless --dropout is given */
    int code = read_training(args, &preset, t);
    t->options.compute = cli_args_flag(args, "bf16") ? EMBLA_BF16 : EMBLA_F32;
    t->options.seed = (uint64_t)cli_args_count(args, "seed");
    t->options.threads = t->ranks.threads;
    if (code == CLI_DONE) code = read_real(args, "token-spread", 0, 1e6, &t->token_spread);
    if (code == CLI_DONE) code = read_shape(args, &t->shape);
    if (code == CLI_DONE) code = read_ngram(args, t);
    if (code == CLI_DONE) code = read_freeze(args, &t->options);
    if (code == CLI_DONE) code = read_loss(args, &t->options);
    if (code == CLI_DONE) code = cli_engine_read(args, &t->options.engine);
    if (code == CLI_DONE) code = read_corpus(args, t);
    if (code == CLI_DONE) code = cli_options_read_intervals(args, t);
    t->validate_every = default_interval(t->steps);
    if (code == CLI_DONE) code = read_count(args, "validate-every", INT64_MAX, &t->validate_every);
    return code;
}
