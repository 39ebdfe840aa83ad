/* SPDX-License-Identifier: Apache-2.0 */
/* embla train: trains a model on a text.
 *
 * The command line, the text, the shape and the memory are checked before a file is written.
 * Then the training is set up (train_make.c) and run (train_run.c). With --resume the settings come
 * from a checkpoint.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/verbs.h"
#include "train/engine_choice.h"
#include "train/train_make.h"
#include "train/train_plot.h"
#include "train/train_ranks.h"
#include "train/train_run.h"
#include "train/try.h"

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
    *out = (size_t)value;
    return code;
}

/* ---- options ---- */

static const char *position_name(size_t n)
{
    static const char *const names[] = {"learned", "sinusoidal", "rotary", "none"};
    return n < sizeof names / sizeof names[0] ? names[n] : NULL;
}

/* The kind of positions, and whether the head is the token table. */
static int read_kinds(const cli_args *args, embla_gpt_shape *s)
{
    const char *positions = cli_args_text(args, "positions");
    bool tied = cli_args_flag(args, "tied"), untied = cli_args_flag(args, "untied");
    if (tied && untied) return cli_usage("--tied and --untied cannot be used together");
    if (tied || untied) s->untied = untied;
    for (size_t n = 0; positions && position_name(n); n++)
        if (strcmp(positions, position_name(n)) == 0) s->position_kind = (embla_positions_kind)n;
    return CLI_DONE;
}

/* The hidden size and the number of key-value heads keep their ratio to --dim and --heads. */
static int read_shape(const cli_args *args, embla_gpt_shape *s)
{
    size_t dim = s->dim, heads = s->heads, length = s->positions;
    int code = read_size(args, "dim", &s->dim);
    if (code == CLI_DONE) code = read_size(args, "heads", &s->heads);
    if (code == CLI_DONE) code = read_size(args, "layers", &s->layers);
    if (code == CLI_DONE) code = read_size(args, "length", &length);
    if (code == CLI_DONE) code = read_real(args, "dropout", 0, 1, &s->dropout);
    if (code == CLI_DONE) code = read_kinds(args, s);
    if (code != CLI_DONE) return code;
    s->positions = length;
    if (s->hidden > 0 && s->dim != dim) s->hidden = (s->hidden * s->dim / dim + 7) / 8 * 8;
    if (s->kv_heads > 0 && s->heads != heads) {
        s->kv_heads = s->kv_heads * s->heads / heads;
        if (s->kv_heads == 0) s->kv_heads = 1;
    }
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
    n->layer = (size_t)cli_args_count(args, "ngram-layer");
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

static const char *loss_name(size_t n)
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
    o->negatives = (size_t)negatives;
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

/* The final rate keeps the preset's ratio to the peak rate, unless it is given. */
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

static int read_intervals(const cli_args *args, cli_training *t)
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

static int read_all(const cli_args *args, cli_training *t)
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
                              .threads = t->ranks.threads};
    int code = read_training(args, &preset, t);
    if (code == CLI_DONE) code = read_real(args, "token-spread", 0, 1e6, &t->token_spread);
    if (code == CLI_DONE) code = read_shape(args, &t->shape);
    if (code == CLI_DONE) code = read_ngram(args, t);
    if (code == CLI_DONE) code = read_freeze(args, &t->options);
    if (code == CLI_DONE) code = read_loss(args, &t->options);
    if (code == CLI_DONE) code = cli_engine_read(args, &t->options.engine);
    if (code == CLI_DONE) code = read_corpus(args, t);
    if (code == CLI_DONE) code = read_intervals(args, t);
    t->validate_every = default_interval(t->steps);
    if (code == CLI_DONE) code = read_count(args, "validate-every", INT64_MAX, &t->validate_every);
    return code;
}

/* ---- a new training, or a resumed one ---- */

static int start_new(const cli_args *args, cli_training *t)
{
    if (args->operand_count == 0)
        return cli_usage("train needs a TEXT, or --resume FOLDER; see 'embla help train'");
    if (!cli_args_given(args, "output"))
        return cli_usage("train needs -o FOLDER, the folder for the model");
    t->folder = cli_args_text(args, "output");
    t->named = args->operands[0];
    int code = read_all(args, t);
    if (code == CLI_DONE) code = cli_make_free_folder(t->folder);
    return code == CLI_DONE ? cli_make_new(args, t) : code;
}

/* The options that --resume accepts. All others keep their saved values. */
static bool allowed_with_resume(const char *name)
{
    static const char *const names[] = {
        "resume",       "steps",    "plot",    "watch",        "every", "save-every", "keep",
        "json",         "quiet",    "threads", "ngram-shared", "help",  "version",    "minutes",
        "sample-every", "patience", "film",    "film-axes",    "force"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static int start_resumed(const cli_args *args, cli_training *t)
{
    const cli_option *option;
    if (args->operand_count > 0)
        return cli_usage("--resume takes no TEXT: the checkpoint names it; remove '%.60s'",
                         args->operands[0]);
    for (size_t n = 0; (option = cli_option_at(args->verb, n)); n++)
        if (args->given[n] && !allowed_with_resume(option->name))
            return cli_usage(
                "--%s cannot be used with --resume, which keeps the settings of the training",
                option->name);
    t->folder = cli_args_text(args, "resume");
    t->resumed = true;
    int code = cli_make_saved(args, t);
    if (code == CLI_DONE) code = read_intervals(args, t);
    return code == CLI_DONE ? cli_make_again(args, t) : code;
}

/* Everything before the first step. No rank waits for one that has failed. */
static int start(const cli_args *args, cli_training *t)
{
    int code = cli_args_given(args, "resume") ? start_resumed(args, t) : start_new(args, t);
    code = cli_ranks_agree(&t->ranks, code, false);
    return code == CLI_DONE ? cli_ranks_agree(&t->ranks, cli_make_ready(args, t), true) : code;
}

static int run(const cli_args *args)
{
    if (cli_args_given(args, "try")) return cli_try_main(args, read_all);
    if (cli_args_given(args, "seeds"))
        return cli_usage("--seeds needs --try; one training has one --seed");
    cli_training *t = calloc(1, sizeof *t);
    if (!t) return cli_failed("no memory for a training");
    t->log.file = -1;
    t->keep = cli_args_count(args, "keep");
    t->json = cli_args_flag(args, "json");
    t->quiet = cli_args_flag(args, "quiet");
    int code = cli_training_open(args, t);
    if (code == CLI_DONE) code = start(args, t);
    if (code == CLI_DONE) {
        code = cli_training_run(t);
        if (code != CLI_DONE && cli_ranks_many(&t->ranks)) cli_ranks_abort(&t->ranks);
    }
    cli_training_free(t);
    cli_ranks_close(&t->ranks);
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
     .help = "model shape and training settings"},
    {.name = "output",
     .letter = 'o',
     .value = "FOLDER",
     .help = "folder for the model, the checkpoints and loss.csv"},
    {.name = "resume", .value = "FOLDER", .help = "continue from the newest checkpoint in FOLDER"},
    COUNT("steps", "total number of steps; 0 writes the initial weights"),
    REAL("minutes", "end after X minutes and save; --resume continues"),
    COUNT("batch", "sequences per step"),
    COUNT("length", "tokens per sequence; also the number of positions"),
    COUNT("layers", "number of layers"),
    COUNT("heads", "attention heads; must divide --dim"),
    COUNT("dim", "embedding dimension (d_model)"),
    {.name = "positions",
     .value = "KIND",
     .choices = position_name,
     .help = "how the model knows the order of tokens"},
    REAL("token-spread", "standard deviation of the initial token rows (default: the preset's)"),
    {.name = "tied", .help = "use the token table as the head"},
    {.name = "untied", .help = "use a separate table as the head"},
    REAL("rate", "peak learning rate"),
    REAL("final-rate", "final learning rate (default: scaled from --rate as in the preset)"),
    {.name = "schedule",
     .value = "NAME",
     .choices = schedule_name,
     .help = "learning-rate schedule; wsd decays over the last fifth of the steps"},
    COUNT("warm-up",
          "steps in which the rate rises (default: the preset's, at most a tenth of --steps)"),
    REAL("beta1", "AdamW: decay rate of the mean gradient"),
    REAL("beta2", "AdamW: decay rate of the mean squared gradient"),
    REAL("decay", "weight decay, applied to matrices only"),
    REAL("clip", "clip the gradient norm to X; 0 disables clipping"),
    REAL("dropout", "dropout probability of each residual branch"),
    {.name = "seed",
     .value = "S",
     .standard = "1",
     .count = true,
     .help = "seed of the initial weights, the order of the text and dropout"},
    {.name = "bytes", .help = "use bytes as tokens instead of characters"},
    COUNT("words", "use the N most frequent words as tokens, and one token for all others"),
    {.name = "tokenizer",
     .value = "FILE",
     .reads = CLI_READS_FILE,
     .help = "use the tokens of a tokenizer.json, which is stored with the model"},
    {.name = "documents", .help = "treat each line as a separate document (default for microgpt)"},
    {.name = "tokens-file", .help = "read TEXT as a file of tokens: a .bin of llm.c, or .npy"},
    {.name = "vocab",
     .value = "FILE",
     .reads = CLI_READS_FILE,
     .help = "words of a file of tokens: tokenizer.json, vocab.json, lines of text, .."},
    {.name = "in-order", .help = "read the text in order instead of in random order"},
    {.name = "from", .value = "MODEL", .help = "start from the weights of MODEL"},
    {.name = "freeze",
     .value = "LIST",
     .help = "what does not learn: tokens, positions, trunk, or below:N for the first N rows; "
             "several with commas"},
    {.name = "loss",
     .value = "KIND",
     .standard = "full",
     .choices = loss_name,
     .help = "the loss of a step: against all tokens, or sampled against a few drawn ones"},
    COUNT("negatives", "tokens to draw for each step with --loss sampled (default: 1000)"),
    {.name = "engine",
     .value = "NAME",
     .standard = "auto",
     .choices = cli_engine_choice,
     .help = "library for matrix products; none means plain loops, whose bits do not depend on the "
             "CPU; auto means none for small models, else the library of this build"},
    {.name = "bf16", .help = "compute matrix products in bf16; weights and sums stay in f32"},
    REAL("validation", "share of the text to set aside for validation; 0 disables validation "
                       "(default: 0.1, or 0 with --documents)"),
    COUNT("validate-every", "validate every N steps (default: ten times in all)"),
    COUNT("save-every", "save a checkpoint every N steps (default: every five minutes)"),
    {.name = "keep",
     .value = "N",
     .standard = "2",
     .count = true,
     .help = "keep the N newest checkpoints"},
    COUNT("every", "report every N steps (default: ten reports, and at least one a minute)"),
    COUNT("sample-every", "print a text that the model writes, every N steps"),
    {.name = "plot",
     .value = "FILE",
     .help = "draw the loss curve to FILE (SVG) at each report; with --try the losses of all "
             "combinations"},
    {.name = "watch",
     .value = "TOKENS",
     .help = "show how the rows of TOKENS (e,m,a or #5) move, their nearest rows, and the rows "
             "that move most"},
    {.name = "film",
     .value = "FILE",
     .help = "write a page (HTML) that shows how the rows of --watch move, or those of the whole "
             "table, with the loss and texts of the model"},
    {.name = "film-axes",
     .value = "PAIRS",
     .help = "axes of the film, such as man:woman,king:queen (default: two main directions)"},
    {.name = "force", .help = "replace the FILE of --film"},
    COUNT("ngram-rows", "rows of a hashed n-gram table, which is added to the model"),
    COUNT("ngram-heads", "rows per n-gram (default: 4)"),
    {.name = "ngram-orders",
     .value = "LIST",
     .help = "lengths of the n-grams, in tokens (default: 2,3)"},
    COUNT("ngram-dim", "dim of the n-gram table (default: derived from --dim)"),
    COUNT("ngram-layer", "layer that receives the n-gram rows, from 0 (default: 0)"),
    REAL("ngram-rate", "learning rate of the n-gram rows (default: 0.05)"),
    {.name = "try",
     .value = "NAME=LIST",
     .repeats = true,
     .help = "train once with each value of an option, such as dim=8,16; several times: with each "
             "combination"},
    COUNT("seeds", "with --try: train each combination with N seeds, from --seed on (default: 1)"),
    {.name = "any-memory",
     .help = "start even if the training needs more memory than is available"},
    {.name = "ngram-shared",
     .value = "PATH",
     .help = "keep the n-gram table in this file, where other processes can read it; for example "
             "in /dev/shm"},
    COUNT("micro-batches", "cut each batch into N micro-batches and sum their gradients exactly "
                           "(default with mpirun: 12, "
                           "or --batch if that is less)"),
    {.name = "fast",
     .help = "sum the gradients of processes in floats; faster, but the result depends on their "
             "number"},
    {.name = "shard-ngrams",
     .help = "with mpirun: divide the n-gram table among the processes, for a table that is larger "
             "than the memory of a host"},
    {.name = "shard-tokens",
     .help = "with mpirun: divide the token table and a separate head among the processes, for a "
             "vocabulary whose rows and optimizer state need too much memory"},
    {.name = "patience",
     .value = "S",
     .count = true,
     .help = "with mpirun: end if another process does not answer for S seconds (default: 45)"},
    {.name = NULL}};

const cli_verb cli_verb_train = {
    .name = "train",
    .synopsis = "TEXT",
    .operand = "TEXT",
    .operands_most = 1,
    .no_stdin = "a training that is resumed reads its text again",
    .about = "train a model on a text",
    .text =
        "TEXT is a text file or a folder of text files. Its characters become the tokens, or its "
        "words with --words; with --tokenizer a tokenizer cuts it ('embla tokenizer' trains one). "
        "A decoder learns to predict the next token. FOLDER receives the model "
        "in a format that "
        "other programs open (config.json, model.safetensors, tokenizer.json), loss.csv with "
        "one line for each step, and checkpoints. Options that are not given come from the "
        "preset. The vocabulary comes from the text.\n\n"
        "Ctrl-C finishes the current step and saves. --resume FOLDER continues from there, "
        "also after a crash and with any number of threads. The result is the same, bit for "
        "bit, as without the interruption. Only --steps, --minutes, --every, --save-every, "
        "--keep, --sample-every, --plot, --watch, --film, --film-axes, --force, --ngram-shared, "
        "--patience and --threads may be given with --resume. Additional --steps use the final "
        "rate of the schedule.\n\n"
        "Under mpirun several processes train one model: mpirun -n 4 embla train ... Each has the "
        "whole model, but for tables that --shard-ngrams and --shard-tokens divide, and computes "
        "the "
        "gradients of a part of every batch. The result is the same, "
        "bit for bit, for any number of processes, also if it changes at --resume. The cores of a "
        "host are divided among its processes, unless --threads or OMP_NUM_THREADS is given.\n\n"
        "The reported loss is the mean of the last 100 steps. During training, validation uses "
        "the first part of the validation text. At the end it uses all of it, but at most one "
        "batch for every two steps. FOLDER/best is the model with the lowest validation loss "
        "during training.\n\n"
        "--try compares: every combination of the values is trained, all on the same text in the "
        "same order, and a table shows the validation losses. -o FOLDER keeps the models in a "
        "folder each, named by their settings; --resume FOLDER in place of -o continues, and "
        "reads what is already trained. A combination that is not possible has its reason in the "
        "table.\n\n"
        "--film writes a page with a slider: rows on one plane, the same for all moments. It shows "
        "the words of --watch, or all rows; of a table with more than 300 the most frequent "
        "tokens. The page is written at the end, also after Ctrl-C.\n\n"
        "On a terminal a progress line is redrawn; elsewhere lines are printed. With --json "
        "each line is an object, and \"event\" is start, report, sample, done, interrupted or out "
        "of time.",
    .example = "embla train names.txt --preset microgpt -o letters",
    .options = options,
    .ranks = true,
    .run = run};
