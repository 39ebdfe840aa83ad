/* SPDX-License-Identifier: Apache-2.0 */
/* embla train: a text in, a model out.
 *
 * The line is read, and everything that can be wrong with it is found, before a file is written:
 * text, shape and memory are checked first, then the training is made (train_make.c) and run
 * (train_run.c). With --resume all of it comes from a checkpoint instead.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/verbs.h"
#include "train/train_make.h"
#include "train/train_plot.h"
#include "train/train_run.h"

/* ---- numbers ---- */

/* A number of at least `least`, below `below`. What is not given stays as it is. */
static int read_real(const cli_args *args, const char *name, double least, double below,
                     double *out)
{
    const char *text = cli_args_text(args, name);
    char *end = NULL;
    if (!cli_args_given(args, name)) return CLI_DONE;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value))
        return cli_usage("--%s: '%.60s' is not a number like 0.001", name, text);
    if (!(value >= least && value < below)) {
        if (isinf(below)) return cli_usage("--%s: '%.60s' is below %g", name, text, least);
        return cli_usage("--%s: '%.60s' is not from %g to below %g", name, text, least, below);
    }
    *out = value;
    return CLI_DONE;
}

/* A count of 1 at least; what is not given stays as it is. */
static int read_count(const cli_args *args, const char *name, int64_t most, int64_t *out)
{
    if (!cli_args_given(args, name)) return CLI_DONE;
    int64_t value = cli_args_count(args, name);
    if (value < 1) return cli_usage("--%s: 1 at least", name);
    if (value > most)
        return cli_usage("--%s: '%.60s' is more than %" PRId64, name, cli_args_text(args, name),
                         most);
    *out = value;
    return CLI_DONE;
}

static int read_size(const cli_args *args, const char *name, size_t *out)
{
    int64_t value = (int64_t)*out;
    int code = read_count(args, name, INT32_MAX, &value);
    *out = (size_t)value;
    return code;
}

/* ---- what is asked for ---- */

/* The numbers inside the feed-forward part, and the heads that share, keep their proportion. */
static int read_shape(const cli_args *args, embla_gpt_shape *s)
{
    size_t dim = s->dim, heads = s->heads, length = s->positions;
    int code = read_size(args, "dim", &s->dim);
    if (code == CLI_DONE) code = read_size(args, "heads", &s->heads);
    if (code == CLI_DONE) code = read_size(args, "layers", &s->layers);
    if (code == CLI_DONE) code = read_size(args, "length", &length);
    if (code == CLI_DONE) code = read_real(args, "dropout", 0, 1, &s->dropout);
    if (code != CLI_DONE) return code;
    s->positions = length;
    if (s->hidden > 0 && s->dim != dim) s->hidden = (s->hidden * s->dim / dim + 7) / 8 * 8;
    if (s->kv_heads > 0 && s->heads != heads) {
        s->kv_heads = s->kv_heads * s->heads / heads;
        if (s->kv_heads == 0) s->kv_heads = 1;
    }
    return CLI_DONE;
}

/* "2,3": orders from 2 on, none left out, since the table has all of them. */
static int read_orders(const char *text, size_t *out)
{
    size_t last = 1;
    for (const char *at = text;; at++) {
        char *end;
        long value = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : 0;
        if (value != (long)last + 1 || value > 16)
            return cli_usage("--ngram-orders: '%.60s' is not 2, or 2,3, or 2,3,4 ..: orders from "
                             "2 on",
                             text);
        last = (size_t)value;
        at = end;
        if (*at == '\0') break;
        if (*at != ',')
            return cli_usage("--ngram-orders: '%.60s' is not 2, or 2,3, or 2,3,4 ..", text);
    }
    *out = last;
    return CLI_DONE;
}

static int read_ngram(const cli_args *args, cli_training *t)
{
    static const char *const parts[] = {"ngram-heads", "ngram-orders", "ngram-dim",
                                        "ngram-layer", "ngram-rate",   "ngram-shared"};
    embla_gpt_ngram *n = &t->shape.ngram;
    if (!cli_args_given(args, "ngram-rows")) {
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
            if (cli_args_given(args, parts[i]))
                return cli_usage("--%s goes with --ngram-rows N", parts[i]);
        return CLI_DONE;
    }
    n->seed = t->options.seed;
    int code = read_count(args, "ngram-rows", INT64_MAX, &n->rows);
    if (code == CLI_DONE) code = read_size(args, "ngram-heads", &n->heads);
    if (code == CLI_DONE) code = read_size(args, "ngram-dim", &n->dim);
    if (code == CLI_DONE && cli_args_given(args, "ngram-orders"))
        code = read_orders(cli_args_text(args, "ngram-orders"), &n->orders);
    if (code == CLI_DONE) code = read_real(args, "ngram-rate", 0, INFINITY, &t->options.ngram_rate);
    n->layer = (size_t)cli_args_count(args, "ngram-layer");
    return code;
}

/* Rates fall to the same share of the highest, unless both are given. */
static int read_training(const cli_args *args, const embla_gpt_preset *p, cli_training *t)
{
    embla_train_options *o = &t->options;
    embla_schedule *s = &o->schedule;
    const char *schedule = cli_args_text(args, "schedule");
    t->steps = cli_args_given(args, "steps") ? cli_args_count(args, "steps") : p->steps;
    *s = (embla_schedule){.rate = p->rate,
                          .steps = t->steps > 0 ? t->steps : p->steps,
                          .warm_up = p->warm_up,
                          .kind = p->schedule};
    if (s->warm_up > s->steps / 10) s->warm_up = s->steps / 10;
    if (cli_args_given(args, "warm-up")) s->warm_up = cli_args_count(args, "warm-up");
    if (schedule)
        for (s->kind = 0; strcmp(embla_schedule_name(s->kind), schedule) != 0;) s->kind++;
    if (s->kind == EMBLA_SCHEDULE_WSD) s->decay = s->steps / 5;
    int code = read_real(args, "rate", 0, INFINITY, &s->rate);
    s->final = s->kind == EMBLA_SCHEDULE_CONSTANT || !(p->rate > 0)
                   ? s->rate
                   : s->rate * (p->final_rate / p->rate);
    if (s->rate == p->rate && s->kind != EMBLA_SCHEDULE_CONSTANT) s->final = p->final_rate;
    if (code == CLI_DONE) code = read_real(args, "final-rate", 0, INFINITY, &s->final);
    if (code == CLI_DONE) code = read_real(args, "beta1", 0, 1, &o->beta1);
    if (code == CLI_DONE) code = read_real(args, "beta2", 0, 1, &o->beta2);
    if (code == CLI_DONE) code = read_real(args, "decay", 0, INFINITY, &o->decay);
    if (code == CLI_DONE) code = read_real(args, "clip", 0, INFINITY, &o->clip);
    if (code == CLI_DONE) code = read_size(args, "batch", &o->batch);
    if (code == CLI_DONE) code = read_size(args, "length", &o->length);
    return code;
}

static int read_corpus(const cli_args *args, cli_training *t)
{
    embla_corpus_options *o = &t->corpus_options;
    bool bytes = cli_args_flag(args, "bytes"), tokens = cli_args_flag(args, "tokens-file");
    bool documents = cli_args_flag(args, "documents");
    double share = 0;
    if (bytes && tokens) return cli_usage("--bytes and --tokens-file exclude each other");
    if (documents && tokens)
        return cli_usage("--documents and --tokens-file exclude each other: a file of tokens has "
                         "no lines");
    o->kind = bytes ? EMBLA_CORPUS_BYTES : tokens ? EMBLA_CORPUS_TOKENS : EMBLA_CORPUS_CHARACTERS;
    o->documents = documents || (t->preset && strcmp(t->preset, "microgpt") == 0 && !tokens);
    o->in_order = cli_args_flag(args, "in-order");
    o->seed = t->options.seed;
    int code = read_real(args, "validation", 0, 1, &share);
    o->validation = cli_args_given(args, "validation") && share == 0 ? -1 : share;
    return code;
}

/* How often something is done where nothing is said: ten times. */
static int64_t tenth(int64_t steps)
{
    return steps >= 10 ? steps / 10 : 1;
}

static int read_habits(const cli_args *args, cli_training *t)
{
    t->every_asked = cli_args_given(args, "every");
    t->every = tenth(t->steps);
    t->plot = cli_args_text(args, "plot");
    int code = read_count(args, "every", INT64_MAX, &t->every);
    if (code == CLI_DONE) code = read_count(args, "save-every", INT64_MAX, &t->save_every);
    if (code == CLI_DONE) code = read_count(args, "keep", INT32_MAX, &t->keep);
    if (code == CLI_DONE && t->plot) code = cli_plot_check(t->plot);
    return code;
}

static int read_all(const cli_args *args, cli_training *t)
{
    static const char *const shapes[] = {"dim", "heads", "layers"};
    embla_gpt_preset preset;
    bool from = cli_args_given(args, "from");
    const char *name = cli_args_text(args, "preset");
    if (embla_gpt_preset_find(name, &preset) != EMBLA_OK) return cli_usage("%s", embla_error());
    if (!from || cli_args_given(args, "preset")) t->preset = name;
    for (size_t i = 0; !t->preset && i < 3; i++)
        if (cli_args_given(args, shapes[i]))
            return cli_usage("--%s, but the shape is that of --from where no --preset is given",
                             shapes[i]);
    t->shape = preset.shape;
    t->spread = preset.spread;
    if (from) t->shape.dropout = -1; /* that of the model, unless it is given */
    t->options =
        (embla_train_options){.batch = preset.batch,
                              .length = preset.length,
                              .beta1 = preset.beta1,
                              .beta2 = preset.beta2,
                              .epsilon = preset.epsilon,
                              .decay = preset.decay,
                              .clip = preset.clip,
                              .compute = cli_args_flag(args, "bf16") ? EMBLA_BF16 : EMBLA_F32,
                              .seed = (uint64_t)cli_args_count(args, "seed"),
                              .threads = (int)cli_args_count(args, "threads")};
    int code = read_training(args, &preset, t);
    if (code == CLI_DONE) code = read_shape(args, &t->shape);
    if (code == CLI_DONE) code = read_ngram(args, t);
    if (code == CLI_DONE) code = read_corpus(args, t);
    if (code == CLI_DONE) code = read_habits(args, t);
    t->validate_every = tenth(t->steps);
    if (code == CLI_DONE) code = read_count(args, "validate-every", INT64_MAX, &t->validate_every);
    return code;
}

/* ---- a new one, or one that goes on ---- */

static int begin_new(const cli_args *args, cli_training *t)
{
    if (args->operand_count == 0)
        return cli_usage("train needs a TEXT, or --resume FOLDER; see 'embla help train'");
    if (!cli_args_given(args, "output"))
        return cli_usage("train needs -o FOLDER, where the model goes");
    t->folder = cli_args_text(args, "output");
    t->named = args->operands[0];
    int code = read_all(args, t);
    if (code == CLI_DONE) code = cli_make_free_folder(t->folder);
    return code == CLI_DONE ? cli_make_new(args, t) : code;
}

/* All else is as it was when the training was begun. */
static bool may_change(const char *name)
{
    static const char *const names[] = {"resume",       "steps", "plot",   "watch", "every",
                                        "save-every",   "keep",  "json",   "quiet", "threads",
                                        "ngram-shared", "help",  "version"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static int begin_again(const cli_args *args, cli_training *t)
{
    const cli_option *option;
    if (args->operand_count > 0)
        return cli_usage("--resume knows the text it goes on with; '%.60s' is one too many",
                         args->operands[0]);
    for (size_t n = 0; (option = cli_option_at(args->verb, n)); n++)
        if (args->given[n] && !may_change(option->name))
            return cli_usage("--%s cannot be given with --resume: the training goes on as it was "
                             "begun",
                             option->name);
    t->folder = cli_args_text(args, "resume");
    t->resumed = true;
    t->options.threads = (int)cli_args_count(args, "threads");
    int code = cli_make_saved(args, t);
    if (code == CLI_DONE) code = read_habits(args, t);
    return code == CLI_DONE ? cli_make_again(args, t) : code;
}

static int run(const cli_args *args)
{
    cli_training *t = calloc(1, sizeof *t);
    if (!t) return cli_failed("no memory for a training");
    t->log.file = -1;
    t->keep = cli_args_count(args, "keep");
    t->json = cli_args_flag(args, "json");
    t->quiet = cli_args_flag(args, "quiet");
    int code = cli_args_given(args, "resume") ? begin_again(args, t) : begin_new(args, t);
    if (code == CLI_DONE) code = cli_training_run(t);
    cli_training_free(t);
    free(t);
    return code;
}

/* ---- the table ---- */

static const char *schedule_name(size_t n)
{
    return embla_schedule_name((embla_schedule_kind)n);
}

#define COUNT(option, text)                                                                        \
    {                                                                                              \
        .name = option, .value = "N", .count = true, .help = text                                  \
    }
#define REAL(option, text)                                                                         \
    {                                                                                              \
        .name = option, .value = "X", .help = text                                                 \
    }

static const cli_option options[] = {
    {.name = "preset",
     .value = "NAME",
     .standard = "gpt2-mini",
     .choices = embla_gpt_preset_name,
     .help = "the shape of the model, and how it is trained where nothing else is said"},
    {.name = "output", .letter = 'o', .value = "FOLDER", .help = "where all of it goes"},
    {.name = "resume", .value = "FOLDER", .help = "go on from the newest checkpoint of FOLDER"},
    COUNT("steps", "steps of the whole training; 0 writes the first weights"),
    COUNT("batch", "sequences of a step"),
    COUNT("length", "tokens of a sequence, and positions of the model"),
    COUNT("layers", "layers"),
    COUNT("heads", "heads of attention, that share the numbers of a row"),
    COUNT("dim", "numbers in a row"),
    REAL("rate", "the highest learning rate"),
    REAL("final-rate", "the last one; not given: the same share of the highest as the preset's"),
    {.name = "schedule",
     .value = "NAME",
     .choices = schedule_name,
     .help = "how the rate falls; wsd: over the last fifth of the steps"},
    COUNT("warm-up", "steps in which the rate rises; not given: a tenth of all at most"),
    REAL("beta1", "of AdamW: how long it remembers gradients.."),
    REAL("beta2", "..and their squares"),
    REAL("decay", "weight decay of matrices"),
    REAL("clip", "the longest gradient; 0: any"),
    REAL("dropout", "share of each branch that is dropped in training"),
    {.name = "seed",
     .value = "S",
     .standard = "1",
     .count = true,
     .help = "of the first weights, of the order of the text, and of dropout"},
    {.name = "bytes", .help = "tokens are bytes, not characters"},
    {.name = "documents", .help = "each line is a text of its own; microgpt's way"},
    {.name = "tokens-file", .help = "TEXT is a file of tokens: llm.c's .bin, or .npy"},
    {.name = "in-order", .help = "take the text as it comes, not in a drawn order"},
    {.name = "from", .value = "MODEL", .help = "begin with the weights of MODEL"},
    {.name = "bf16", .help = "matrix products in bf16, weights and sums in f32"},
    REAL("validation", "share of the text that is kept for validation; 0: none (default: 0.1, of "
                       "documents none)"),
    COUNT("validate-every", "steps between validations; not given: ten in all"),
    COUNT("save-every", "steps between checkpoints; not given: five minutes"),
    {.name = "keep",
     .value = "N",
     .standard = "2",
     .count = true,
     .help = "how many checkpoints are kept, the newest"},
    COUNT("every", "steps between reports; not given: ten in all, and one each minute"),
    {.name = "plot", .value = "FILE", .help = "draw the loss to FILE, an SVG, at each report"},
    {.name = "watch",
     .value = "TOKENS",
     .help = "show how rows move, and what is near them: e,m,a or #5, and those that move most"},
    COUNT("ngram-rows", "rows of a hashed n-gram table beside the model"),
    COUNT("ngram-heads", "rows for each n-gram (default: 4)"),
    {.name = "ngram-orders", .value = "LIST", .help = "tokens of an n-gram (default: 2,3)"},
    COUNT("ngram-dim", "numbers in a row of it; not given: by the model's dim"),
    COUNT("ngram-layer", "the layer, from 0, that takes what is found"),
    REAL("ngram-rate", "learning rate of its rows (default: 0.05)"),
    {.name = "ngram-shared",
     .value = "PATH",
     .help = "keep it where other processes read it, in /dev/shm for instance"},
    {.name = NULL}};

const cli_verb cli_verb_train = {
    .name = "train",
    .synopsis = "TEXT",
    .operand = "TEXT",
    .operands_most = 1,
    .about = "train a model on a text",
    .text =
        "TEXT is a text file, or a folder of them. Its characters become tokens, a decoder learns "
        "to say which comes next, and FOLDER gets the model as others open it (config.json, "
        "model.safetensors, tokenizer.json), loss.csv with a line for each step, and checkpoints. "
        "Numbers that are not given are the preset's; a preset's vocabulary gives way to the "
        "text's.\n\n"
        "Ctrl-C ends the step and saves; --resume FOLDER goes on, with the same numbers, bit for "
        "bit, as if nothing had happened, also after a crash and with any number of threads. With "
        "it only --steps, --every, --save-every, --keep, --plot, --watch, --ngram-shared and "
        "--threads may be given. More --steps than were asked for at first go on at the last rate "
        "of the schedule.\n\n"
        "On the way the loss is the mean of the last 100 steps, and validation looks at the first "
        "part of what is kept for it; at the end, at all of it, if that is not more than half as "
        "many "
        "batches as there were steps. On a terminal a line is redrawn; "
        "elsewhere lines are printed, with --json one object on each, its kind in \"event\": "
        "start, report, done or interrupted.",
    .example = "seq 500 > numbers.txt && embla train numbers.txt --preset microgpt -o numbers",
    .options = options,
    .run = run};
