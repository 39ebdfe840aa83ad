/* SPDX-License-Identifier: Apache-2.0 */
/* Corpus, model and training of `embla train`. The vocabulary of a model comes from its text. With
 * --from, shape and words must equal those of the other model, or rows would change their meaning;
 * only a file of tokens with --vocab may have further tokens, for which rows are added.
 */
#include "train/train_make.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "core/advice.h"
#include "core/inputs.h"
#include "core/memory.h"
#include "core/model.h"
#include "core/out.h"
#include "host/host.h"
#include "host/paths.h"
#include "train/train_film.h"
#include "train/train_ranks.h"
#include "train/train_view.h"

/* Arguments that do not fit together are wrong usage; other errors are failures. */
static int library_error(embla_status status)
{
    if (status == EMBLA_ERR_ARGUMENT || status == EMBLA_ERR_SHAPE)
        return cli_usage("%s", embla_error());
    return cli_failed("%s", embla_error());
}

/* ---- the folder ---- */

static char *join(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path) (void)snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static bool folder_has(const char *folder, const char *name)
{
    char *path = join(folder, name);
    bool there = path && cli_out_exists(path);
    free(path);
    return there;
}

/* Whether the folder has an entry, or cannot be listed although it is there. */
static bool folder_is_full(const char *folder, const char *name)
{
    char *path = join(folder, name);
    cli_names names;
    bool listed = path && cli_names_open(path, &names);
    bool full = listed ? cli_names_next(&names) != NULL : path && cli_out_exists(path);
    if (listed) cli_names_close(&names);
    free(path);
    return full;
}

int cli_make_free_folder(const char *folder)
{
    static const char *const names[] = {"config.json", "model.safetensors", "tokenizer.json",
                                        "loss.csv"};
    static const char *const folders[] = {"best", "checkpoints"};
    char *checkpoints = join(folder, "checkpoints"), path[CLI_PATH_MOST];
    bool training =
        checkpoints && embla_train_newest(checkpoints, path, sizeof path, NULL) == EMBLA_OK;
    free(checkpoints);
    if (training)
        return cli_failed("%s already contains a training run; use --resume %s to continue it, or "
                          "choose another -o",
                          folder, folder);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (folder_has(folder, names[i]))
            return cli_failed(
                "%s already contains %s, which would be overwritten; choose another folder", folder,
                names[i]);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (folder_is_full(folder, folders[i]))
            return cli_failed("%s already contains %s with files in it, which might be "
                              "overwritten; choose another folder",
                              folder, folders[i]);
    return CLI_DONE;
}

static int set_folder(cli_training *t)
{
    if (!t->folder) return CLI_DONE;
    t->checkpoints = join(t->folder, "checkpoints");
    return t->checkpoints ? CLI_DONE : cli_failed("no memory for the path of %s", t->folder);
}

/* The absolute path, for the note of a checkpoint; it must fit in one line. */
static int absolute_path(const char *path, char **out)
{
    if (strcmp(path, "-") == 0)
        return cli_usage("a model has files with names; train --from cannot read standard input");
    *out = cli_path_real(path);
    if (!*out) return cli_failed("%s: %s", path, cli_why());
    if (strchr(*out, '\n')) return cli_failed("%s: the path contains a line end; rename it", path);
    return CLI_DONE;
}

/* ---- the text ---- */

/* Opens the tokenizer of --tokenizer, or of a resumed training the one in its folder. */
static int open_tokenizer(const cli_args *args, cli_training *t)
{
    const char *given = cli_args_text(args, "tokenizer");
    embla_tokenizer_info info;
    if (t->corpus_options.kind != EMBLA_CORPUS_TOKENIZER) return CLI_DONE;
    if (t->resumed || folder_has(given, "tokenizer.json"))
        t->tokenizer_path = join(t->resumed ? t->folder : given, "tokenizer.json");
    else
        t->tokenizer_path = strdup(given);
    if (!t->tokenizer_path) return cli_failed("no memory for the path of a tokenizer");
    if (cli_open_tokenizer(t->tokenizer_path, NULL, &t->tokenizer) != EMBLA_OK ||
        embla_tokenizer_describe(t->tokenizer, &info) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    if (strcmp(info.source, "tokenizer.json") != 0)
        return cli_failed("%s is a tokenizer in the format %s; training needs a tokenizer.json, "
                          "which is stored with the model",
                          t->tokenizer_path, info.source);
    if (embla_tokenizer_words(t->tokenizer, &t->vocab) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    t->corpus_options.tokenizer = t->tokenizer;
    return CLI_DONE;
}

static int open_corpus(const cli_args *args, cli_training *t)
{
    int code = open_tokenizer(args, t);
    if (code == CLI_DONE) code = cli_inputs_add(t->text, cli_args_flag(args, "quiet"));
    if (code != CLI_DONE) return code;
    if (!t->resumed && !t->ranks.follows) cli_advise_text(args, t->named ? t->named : t->text);
    embla_status status = cli_open_corpus(t->text, &t->corpus_options, &t->corpus);
    if (status == EMBLA_ERR_FORMAT && strstr(embla_error(), "open it as bytes"))
        return cli_failed("%s: use --bytes", embla_error());
    if (status != EMBLA_OK) return library_error(status);
    int32_t token, target;
    t->validates = embla_corpus_batch(t->corpus,
                                      &(embla_corpus_request){
                                          .step = 0, .batch = 1, .length = 1, .validation = true},
                                      &token, &target, NULL) == EMBLA_OK;
    return CLI_DONE;
}

/* Opens the words of a file of tokens: those of --vocab, or of a resumed training those in its
 * folder. */
static int open_vocab(const cli_args *args, cli_training *t)
{
    const char *path = cli_args_text(args, "vocab");
    char *own = NULL;
    int64_t tokens = embla_corpus_vocab(t->corpus);
    if (t->corpus_options.kind != EMBLA_CORPUS_TOKENS) return CLI_DONE;
    if (t->resumed && folder_has(t->folder, "tokenizer.json"))
        path = own = join(t->folder, "tokenizer.json");
    embla_status status = path ? cli_open_words(path, &t->vocab) : EMBLA_OK;
    free(own);
    if (status != EMBLA_OK) return cli_failed("%s", embla_error());
    if (t->vocab && embla_vocab_end(t->vocab) < tokens)
        return cli_failed("%s has words for tokens 0 to %" PRId64 ", but %s has token %" PRId64
                          "; use the vocabulary that the tokens were made with",
                          embla_vocab_source(t->vocab), embla_vocab_end(t->vocab) - 1,
                          t->named ? t->named : t->text, tokens - 1);
    return CLI_DONE;
}

/* The words of a vocabulary file. A word that an earlier token has already is left out: each word
 * of a tokenizer.json has one token. */
static int copy_words(cli_training *t)
{
    size_t count = 0;
    const embla_word *words = embla_vocab_words(t->vocab, &count);
    for (size_t i = 0; i < count; i++) {
        int32_t first = -1;
        if (embla_utf8_valid(words[i].bytes, words[i].length) != words[i].length)
            return cli_failed("%s: the word of token %" PRId32 " is not valid UTF-8; use the "
                              "tokenizer.json or vocab.json of the same tokenizer",
                              embla_vocab_source(t->vocab), words[i].token);
        if (embla_vocab_find(t->vocab, words[i].bytes, words[i].length, &first) != EMBLA_OK ||
            first >= words[i].token)
            t->words[words[i].token] = words[i].bytes;
    }
    return CLI_DONE;
}

/* The words of all tokens, for tokenizer.json; a file of tokens has none without --vocab. */
static int set_words(cli_training *t)
{
    int64_t vocab = t->shape.vocab, known = embla_corpus_vocab(t->corpus);
    if (t->corpus_options.kind == EMBLA_CORPUS_TOKENS && !t->vocab) return CLI_DONE;
    t->words = calloc((size_t)vocab, sizeof *t->words);
    if (!t->words) return cli_failed("no memory for %" PRId64 " words", vocab);
    if (t->vocab) return copy_words(t);
    for (int64_t i = 0; i < vocab && i < known; i++)
        t->words[i] = embla_corpus_name(t->corpus, (int32_t)i);
    return CLI_DONE;
}

/* ---- weights of another model ---- */

typedef struct {
    const char *name;
    int64_t asked, found;
} shape_field;

static int compare_shapes(const cli_training *t, const embla_gpt_shape *b)
{
    const embla_gpt_shape *a = &t->shape;
    const shape_field fields[] = {{"dim", (int64_t)a->dim, (int64_t)b->dim},
                                  {"layers", (int64_t)a->layers, (int64_t)b->layers},
                                  {"heads", (int64_t)a->heads, (int64_t)b->heads},
                                  {"kv heads", (int64_t)(a->kv_heads ? a->kv_heads : a->heads),
                                   (int64_t)(b->kv_heads ? b->kv_heads : b->heads)},
                                  {"hidden size", (int64_t)(a->hidden ? a->hidden : 4 * a->dim),
                                   (int64_t)(b->hidden ? b->hidden : 4 * b->dim)},
                                  {"kind of norm", a->norm, b->norm},
                                  {"activation", a->activation, b->activation},
                                  {"kind of positions", a->position_kind, b->position_kind},
                                  {"separate head", a->untied, b->untied},
                                  {"biases", a->biases, b->biases},
                                  {"norms without gain", a->no_gain, b->no_gain},
                                  {"first norm", a->norm_first, b->norm_first},
                                  {"no last norm", a->no_norm_last, b->no_norm_last}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].asked != fields[i].found)
            return cli_usage("%s does not have the requested shape: %s is %" PRId64 ", but %" PRId64
                             " is requested; omit --preset to use its own shape",
                             t->from, fields[i].name, fields[i].found, fields[i].asked);
    return CLI_DONE;
}

/* Rows that the table needs: one for each token of the text and for each word of --vocab. */
static int64_t tokens_needed(const cli_training *t)
{
    int64_t tokens = embla_corpus_vocab(t->corpus);
    int64_t words = t->vocab ? embla_vocab_end(t->vocab) : 0;
    return words > tokens ? words : tokens;
}

/* The word of a token of the text or of --vocab; NULL if it has none. */
static const char *word_of(const cli_training *t, int32_t token, size_t *length)
{
    return t->vocab ? embla_vocab_word(t->vocab, token, length)
                    : embla_corpus_word(t->corpus, token, length);
}

/* Checks that both vocabularies have the same words, if they are known, and the same number of
 * tokens. A file of tokens may have fewer, and with --vocab more: for those rows are added. */
static int compare_words(const cli_training *t, const embla_gpt_shape *shape,
                         const embla_checkpoint *checkpoint)
{
    int64_t vocab = tokens_needed(t), both = vocab < shape->vocab ? vocab : shape->vocab;
    embla_vocab *words = NULL;
    int code = CLI_DONE;
    if (t->corpus_options.kind != EMBLA_CORPUS_TOKENS && vocab != shape->vocab)
        return cli_failed("%s has %" PRId64 " tokens, but %s has %" PRId64, t->from, shape->vocab,
                          t->text, vocab);
    if (!t->vocab && vocab > shape->vocab)
        return cli_failed("%s has %" PRId64 " tokens, but %s has %" PRId64
                          "; to add rows for them, name their words with --vocab FILE",
                          t->from, shape->vocab, t->text, vocab);
    if (embla_vocab_open(checkpoint, &words) != EMBLA_OK) return CLI_DONE;
    for (int64_t i = 0; i < both && code == CLI_DONE; i++) {
        size_t a = 0, b = 0;
        const char *ours = word_of(t, (int32_t)i, &a);
        const char *theirs = embla_vocab_word(words, (int32_t)i, &b);
        if (ours && theirs && (a != b || memcmp(ours, theirs, a) != 0))
            code = cli_failed(
                "the vocabularies differ: token %" PRId64 " is '%.20s' in %s, but '%.20s' in %s", i,
                theirs, t->from, ours, t->vocab ? embla_vocab_source(t->vocab) : t->text);
    }
    embla_vocab_free(words);
    return code;
}

/* Creates a model of t's shape and copies the weights of source. Tensors and rows that source lacks
 * keep their initial values. */
static int copy_weights(cli_training *t, const embla_gpt *source)
{
    embla_gpt_tensor from, to;
    embla_status status = embla_gpt_new(&t->shape, t->options.seed, t->spread, &t->gpt);
    if (status != EMBLA_OK) return library_error(status);
    for (size_t i = 0; embla_gpt_tensor_at(t->gpt, i, &to) == EMBLA_OK; i++)
        for (size_t k = 0; embla_gpt_tensor_at(source, k, &from) == EMBLA_OK; k++)
            if (strcmp(from.name, to.name) == 0 && from.rows <= to.rows && from.dim == to.dim)
                memcpy(to.values, from.values, (size_t)from.rows * to.dim * sizeof *to.values);
    return CLI_DONE;
}

/* Uses *source directly if its options match, and sets it to NULL; else copies its weights. */
static int use_source(cli_training *t, embla_gpt **source)
{
    embla_gpt_shape found;
    if (embla_gpt_describe(*source, &found) != EMBLA_OK) return cli_failed("%s", embla_error());
    double dropout = t->shape.dropout;
    embla_gpt_ngram ngram = t->shape.ngram;
    t->shape = found;
    if (dropout < 0) dropout = found.dropout;
    t->shape.dropout = dropout;
    if (ngram.rows > 0) {
        if (found.ngram.rows > 0)
            return cli_usage("%s already has an n-gram table; omit --ngram-rows", t->from);
        t->shape.ngram = ngram;
    }
    if (tokens_needed(t) > found.vocab) {
        t->shape.vocab = tokens_needed(t);
        t->added_rows = t->shape.vocab - found.vocab;
    }
    if (dropout == found.dropout && ngram.rows == 0 && t->added_rows == 0) {
        t->gpt = *source;
        *source = NULL;
        return CLI_DONE;
    }
    if (found.ngram.rows > 0)
        return cli_usage("%s has an n-gram table, so %s", t->from,
                         t->added_rows > 0 ? "no rows can be added; use a text with the same tokens"
                                           : "its dropout cannot be changed; omit --dropout");
    return copy_weights(t, *source);
}

/* Opens the model of --from. With --preset it must have that shape. */
static int load_model(cli_training *t)
{
    embla_checkpoint *checkpoint = NULL;
    embla_gpt *source = NULL;
    embla_gpt_shape shape;
    embla_open_options options = {0};
    int code = cli_inputs_add(t->from, true);
    if (code != CLI_DONE) return code;
    if (cli_open_path(t->from, &options, &checkpoint) != EMBLA_OK ||
        embla_gpt_open(checkpoint, &source) != EMBLA_OK ||
        embla_gpt_describe(source, &shape) != EMBLA_OK) {
        code = cli_failed("%s", embla_error());
    } else {
        if (t->preset) code = compare_shapes(t, &shape);
        if (code == CLI_DONE) code = compare_words(t, &shape, checkpoint);
        if (!t->preset && t->options.length > shape.positions) t->options.length = shape.positions;
        if (code == CLI_DONE) code = use_source(t, &source);
    }
    embla_gpt_free(source);
    embla_checkpoint_free(checkpoint);
    return code;
}

/* ---- the model ---- */

/* --token-spread: the token table, which is the first tensor, begins with another spread. */
static void scale_rows(const cli_training *t)
{
    embla_gpt_tensor rows;
    double spread = t->spread > 0 ? t->spread : 1 / sqrt((double)t->shape.dim);
    if (!(t->token_spread > 0) || embla_gpt_tensor_at(t->gpt, 0, &rows) != EMBLA_OK) return;
    for (size_t i = 0; i < (size_t)rows.rows * rows.dim; i++)
        rows.values[i] *= (float)(t->token_spread / spread);
}

static int make_model(cli_training *t)
{
    if (t->from) return load_model(t);
    embla_status status = embla_gpt_new(&t->shape, t->options.seed, t->spread, &t->gpt);
    if (status == EMBLA_OK) scale_rows(t);
    return status == EMBLA_OK ? CLI_DONE : library_error(status);
}

static int make_training(const cli_args *args, cli_training *t)
{
    const char *shared = cli_args_text(args, "ngram-shared");
    char memory[CLI_CELL];
    if (shared && t->shape.ngram.rows == 0)
        return cli_usage("--ngram-shared needs a model with an n-gram table; add --ngram-rows");
    if (t->team.shard_ngrams && shared)
        return cli_usage(
            "--shard-ngrams divides the n-gram table, --ngram-shared keeps it in one file; "
            "use one of them");
    if (t->team.shard_ngrams && t->sample_every > 0)
        return cli_usage(
            "--sample-every needs the whole n-gram table, which --shard-ngrams divides; "
            "use 'embla generate' on the saved model");
    if (t->team.shard_tokens && t->sample_every > 0)
        return cli_usage("--sample-every needs the whole token table, which --shard-tokens "
                         "divides; use 'embla generate' on the saved model");
    if (t->team.shard_tokens && (cli_args_given(args, "watch") || t->noted_watch))
        return cli_usage("--watch needs the whole token table, which --shard-tokens divides; use "
                         "'embla near' on the saved model");
    if (t->team.shard_tokens && t->film.path)
        return cli_usage("--film needs the whole token table, which --shard-tokens divides; use "
                         "'embla map' on the saved model");
    if (shared && !t->ranks.follows && embla_gpt_ngram_share(t->gpt, shared) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    embla_status status = embla_train_new(t->gpt, t->corpus, &t->options, &t->train);
    if (status == EMBLA_ERR_MEMORY)
        return cli_failed("%s; this training needs %s", embla_error(), cli_view_memory(t, memory));
    return status == EMBLA_OK ? CLI_DONE : library_error(status);
}

/* Starts --watch. For a resumed training the initial rows are created again, to measure how far
 * rows have moved. */
static int start_watch(const cli_args *args, cli_training *t)
{
    const char *list = cli_args_text(args, "watch");
    if (!list) list = t->noted_watch;
    t->watched = list;
    embla_gpt *now = t->gpt;
    int code = CLI_DONE;
    if (!list) return CLI_DONE;
    if (t->resumed) {
        t->gpt = NULL;
        code = make_model(t);
    }
    embla_gpt *start = t->gpt;
    t->gpt = now;
    if (code == CLI_DONE) code = cli_watch_open(t->corpus, t->words, now, start, list, &t->watch);
    if (start != now) embla_gpt_free(start);
    return code;
}

/* The text replaces the preset's vocabulary size; a file of tokens may use a larger preset. There
 * is a row for each word of --vocab. */
static void set_vocab(cli_training *t)
{
    bool tokens = t->corpus_options.kind == EMBLA_CORPUS_TOKENS;
    if (!tokens || t->shape.vocab < tokens_needed(t)) t->shape.vocab = tokens_needed(t);
}

/* With --shard-tokens: bytes of the rows that the ranks divide; 0 without it. */
static int64_t divided_bytes(const cli_training *t)
{
    int64_t tables = t->shape.untied ? 2 : 1, row = (int64_t)(t->shape.dim * sizeof(float));
    return t->team.shard_tokens ? tables * t->shape.vocab * row : 0;
}

embla_status cli_make_plan(const cli_training *t, embla_gpt_memory *out)
{
    embla_status status =
        embla_gpt_plan_memory(&t->shape, t->options.batch, t->options.length, out);
    if (status != EMBLA_OK) return status;
    int64_t rows = divided_bytes(t), elsewhere = rows - rows / t->ranks.comm->size;
    if (t->joins && t->team.micro_batches != 1 && !t->team.fast) {
        /* exact sums: two integers for each number, and three blocks of gradients that wait */
        int64_t sums =
            (2 * (int64_t)(sizeof(int64_t) / sizeof(float)) + 3) * (out->gradients - rows);
        out->gradients += sums;
        out->total += sums;
    }
    /* every rank has all divided rows once, when it creates the model */
    out->gradients -= elsewhere;
    out->optimizer -= 2 * elsewhere;
    out->total -= 3 * elsewhere;
    if (t->options.compute != EMBLA_BF16) return EMBLA_OK;
    out->weights += out->rounded;
    out->total += out->rounded;
    return EMBLA_OK;
}

/* All ranks of this host need memory. */
static int check_memory(const cli_args *args, const cli_training *t, const embla_gpt_memory *plan)
{
    int64_t bytes;
    if (cli_args_flag(args, "any-memory")) return CLI_DONE;
    if (__builtin_mul_overflow(plan->total, (int64_t)t->ranks.here, &bytes)) bytes = INT64_MAX;
    return cli_memory_check(bytes, "this training",
                            "use a smaller --batch, --length or model, or --any-memory to start "
                            "anyway");
}

int cli_make_text(const cli_args *args, cli_training *t)
{
    int code = absolute_path(args->operands[0], &t->text);
    if (code == CLI_DONE) code = open_corpus(args, t);
    return code == CLI_DONE ? open_vocab(args, t) : code;
}

int cli_make_new(const cli_args *args, cli_training *t)
{
    embla_gpt_memory plan;
    embla_status status = EMBLA_OK;
    const char *from = cli_args_text(args, "from");
    int code = set_folder(t);
    if (code == CLI_DONE && from) code = absolute_path(from, &t->from);
    if (code == CLI_DONE && !t->lender) code = cli_make_text(args, t);
    if (code != CLI_DONE) return code;
    set_vocab(t);
    if (!t->from) status = cli_make_plan(t, &plan);
    if (status != EMBLA_OK) return library_error(status);
    if (!t->from) code = check_memory(args, t, &plan);
    if (code == CLI_DONE) code = make_model(t);
    if (code == CLI_DONE) code = set_words(t);
    if (code == CLI_DONE) code = make_training(args, t);
    return code;
}

int cli_make_ready(const cli_args *args, cli_training *t)
{
    int code = cli_training_join(t);
    if (code == CLI_DONE && t->resumed && embla_train_load(t->train, t->checkpoint) != EMBLA_OK)
        code = cli_failed("%s", embla_error());
    if (code == CLI_DONE && !t->ranks.follows) code = start_watch(args, t);
    if (code == CLI_DONE && !t->ranks.follows) code = cli_train_film_start(t);
    return code;
}

/* ---- resuming ---- */

/* The text of the checkpoint, or TEXT if it has moved. Loading compares its tokens. */
static int find_saved_text(const cli_args *args, cli_training *t)
{
    if (args->operand_count > 0) {
        free(t->text);
        t->text = NULL;
        t->named = args->operands[0];
        return absolute_path(t->named, &t->text);
    }
    if (!t->text)
        return cli_failed("%s was not written by 'embla train': it does not name its text",
                          t->checkpoint);
    if (!cli_is_there(t->text))
        return cli_failed("%s, the text of this training, is not there; if it has moved: embla "
                          "train TEXT --resume %s",
                          t->text, t->folder);
    return CLI_DONE;
}

int cli_make_saved(const cli_args *args, cli_training *t)
{
    embla_train_saved *saved = malloc(sizeof *saved);
    embla_team_options team;
    int code = set_folder(t);
    t->checkpoint = malloc(CLI_PATH_MOST);
    if (code == CLI_DONE && (!saved || !t->checkpoint))
        code = cli_failed("no memory for the saved settings");
    if (code == CLI_DONE && cli_is_there(t->folder) && !cli_is_there(t->checkpoints))
        code = cli_failed("%s has no training that can be continued: it has no folder "
                          "'checkpoints'. To begin one with its weights: embla train TEXT --from "
                          "%s -o FOLDER",
                          t->folder, t->folder);
    if (code == CLI_DONE && (embla_train_newest(t->checkpoints, t->checkpoint, CLI_PATH_MOST,
                                                &t->damaged) != EMBLA_OK ||
                             embla_train_describe_saved(t->checkpoint, saved) != EMBLA_OK ||
                             embla_team_describe_saved(t->checkpoint, &team) != EMBLA_OK))
        code = cli_failed("%s", embla_error());
    if (code == CLI_DONE) {
        t->shape = saved->shape;
        t->options = saved->options;
        t->options.threads = t->ranks.threads;
        t->joins = t->joins || team.micro_batches > 0;
        t->team = team;
        if (team.micro_batches == 0) t->team.micro_batches = 1; /* it stays as it was */
        t->corpus_options = saved->corpus;
        t->first = saved->step;
        cli_training_read_note(t, saved->note);
        code = find_saved_text(args, t);
    }
    free(saved);
    if (code != CLI_DONE || !cli_args_given(args, "steps")) return code;
    t->steps = cli_args_count(args, "steps");
    if (t->steps < t->first)
        code = cli_usage("--steps is %" PRId64 ", but the training has already completed %" PRId64
                         " steps",
                         t->steps, t->first);
    return code;
}

int cli_make_again(const cli_args *args, cli_training *t)
{
    int code = t->ranks.follows ? CLI_DONE : cli_log_open(t->folder, &t->log);
    if (code == CLI_DONE) code = open_corpus(args, t);
    if (code == CLI_DONE) code = open_vocab(args, t);
    if (code == CLI_DONE) code = set_words(t);
    if (code != CLI_DONE) return code;
    if (embla_gpt_new(&t->shape, t->options.seed, t->spread, &t->gpt) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    return make_training(args, t);
}
