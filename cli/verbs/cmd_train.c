/* SPDX-License-Identifier: Apache-2.0 */
/* embla train: trains a model on a text.
 *
 * The options (train_options.c), the text, the shape and the memory are checked before a file is
 * written. Then the training is set up (train_make.c) and run (train_run.c). With --resume the
 * settings come from a checkpoint.
 */
#include <stdlib.h>
#include <string.h>

#include "core/verbs.h"
#include "train/engine_choice.h"
#include "train/train_make.h"
#include "train/train_options.h"
#include "train/train_ranks.h"
#include "train/train_run.h"
#include "train/try.h"

/* ---- a new training, or a resumed one ---- */

static int start_new(const cli_args *args, cli_training *t)
{
    if (args->operand_count == 0)
        return cli_usage("train needs a TEXT, or --resume FOLDER; see 'embla help train'");
    if (!cli_args_given(args, "output"))
        return cli_usage("train needs -o FOLDER, the folder for the model");
    t->folder = cli_args_text(args, "output");
    t->named = args->operands[0];
    int code = cli_options_read(args, t);
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
    for (size_t n = 0; (option = cli_option_at(args->verb, n)); n++)
        if (args->given[n] && !allowed_with_resume(option->name))
            return cli_usage(
                "--%s cannot be used with --resume, which keeps the settings of the training",
                option->name);
    t->folder = cli_args_text(args, "resume");
    t->resumed = true;
    int code = cli_make_saved(args, t);
    if (code == CLI_DONE) code = cli_options_read_intervals(args, t);
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
    if (cli_args_given(args, "try")) return cli_try_main(args);
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
    COUNT("heads", "attention heads, which must divide --dim (default: the preset's, or the most "
                   "below it that divide --dim)"),
    COUNT("dim", "embedding dimension (d_model)"),
    {.name = "positions",
     .value = "KIND",
     .choices = cli_position_name,
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
     .choices = cli_loss_name,
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
             "combinations (.svg, .png or .html)"},
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
        "bit, as without the interruption. The checkpoint names the text; TEXT says where it is "
        "now, if it has moved. Only --steps, --minutes, --every, --save-every, "
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
