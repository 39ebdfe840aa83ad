/* SPDX-License-Identifier: Apache-2.0 */
/* embla tokenizer: trains a tokenizer on a text and writes tokenizer.json. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ending.h"
#include "core/inputs.h"
#include "core/model.h"
#include "core/out.h"
#include "core/progress.h"
#include "core/verbs.h"

/* In the order of embla_tokenizer_kind. */
static const char *const kinds[] = {"wordpiece", "words", "bpe", "unigram"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *kind_name(size_t n)
{
    return n < KINDS ? kinds[n] : NULL;
}

/* ---- options ---- */

/* Cuts the list of --special at commas, in place. The caller frees *out. */
static int read_special(char *list, const char ***out, size_t *count)
{
    size_t room = 1;
    for (const char *at = list; *at; at++) room += *at == ',';
    *out = malloc(room * sizeof **out);
    if (!*out) return cli_failed("no memory for %zu special tokens", room);
    for (*count = 0; *count < room; ++*count) {
        char *comma = strchr(list, ',');
        if (comma) *comma = '\0';
        if (*list == '\0')
            return cli_usage("--special: an empty token; separate tokens by commas, as in "
                             "[PAD],[UNK]");
        (*out)[*count] = list;
        list = comma ? comma + 1 : list;
    }
    return CLI_DONE;
}

static void read_options(const cli_args *args, embla_tokenizer_train_options *o)
{
    o->max_tokens = cli_args_count(args, "size");
    o->min_count = cli_args_count(args, "min-count");
    o->lowercase = cli_args_flag(args, "lowercase");
    o->threads = (int)cli_args_count(args, "threads");
    for (int i = 0; i < KINDS; i++)
        if (strcmp(kinds[i], cli_args_text(args, "kind")) == 0)
            o->kind = (embla_tokenizer_kind)(i + 1);
}

/* ---- report ---- */

static void print_json(const cli_args *args, const embla_tokenizer_trained *t, double seconds)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "file", cli_args_text(args, "output"));
    cli_json_text(&json, "kind", cli_args_text(args, "kind"));
    cli_json_whole(&json, "tokens", t->tokens);
    cli_json_whole(&json, "special", t->special);
    cli_json_whole(&json, "merges", t->merges);
    cli_json_whole(&json, "pieces", t->pieces);
    cli_json_real(&json, "seconds", seconds);
    cli_json_close(&json, '}');
    putchar('\n');
}

static void print_report(const cli_args *args, const embla_tokenizer_trained *t)
{
    char tokens[CLI_CELL], pieces[CLI_CELL], special[CLI_CELL];
    cli_out_fact("tokenizer", "%s: %s, %s", cli_args_text(args, "output"),
                 cli_args_text(args, "kind"), cli_plural(t->tokens, "token", tokens));
    cli_out_fact("learned", "from %s; %s", cli_plural(t->pieces, "different piece", pieces),
                 cli_plural(t->special, "special token", special));
    if (t->tokens < cli_args_count(args, "size"))
        cli_out_fact("note", "the text has no further tokens that occur often enough; use a longer "
                             "text or a smaller --size");
}

/* ---- the verb ---- */

static int train(const cli_args *args, embla_tokenizer_train_options *o)
{
    const char *path = cli_args_text(args, "output");
    bool quiet = cli_args_flag(args, "quiet");
    embla_tokenizer_trained trained;
    cli_progress progress;
    int code = cli_inputs_check(args, path);
    if (code == CLI_DONE) code = cli_ending_no_picture(path, "a tokenizer");
    if (code == CLI_DONE) code = cli_out_check_new(path, cli_args_flag(args, "force"));
    if (code != CLI_DONE) return code;
    cli_progress_begin(&progress, quiet);
    o->progress = cli_progress_call;
    o->context = &progress;
    double start = cli_progress_now();
    embla_status status = cli_train_tokenizer(args->operands[0], o, path, &trained);
    char sentence[2 * CLI_SENTENCE];
    (void)snprintf(sentence, sizeof sentence, "stopped; %s was not written", path);
    cli_progress_end(&progress, sentence);
    if (status == EMBLA_ERR_ARGUMENT) return cli_usage("%s", embla_error());
    if (status != EMBLA_OK) return cli_failed("%s", embla_error());
    if (cli_args_flag(args, "json"))
        print_json(args, &trained, cli_progress_now() - start);
    else if (!quiet)
        print_report(args, &trained);
    return CLI_DONE;
}

static int run(const cli_args *args)
{
    const char *list = cli_args_text(args, "special");
    embla_tokenizer_train_options options = {0};
    const char **special = NULL;
    if (!cli_args_given(args, "output"))
        return cli_usage("tokenizer needs -o FILE, the tokenizer.json to write");
    read_options(args, &options);
    char *copy = strdup(list ? list : "");
    int code = copy ? CLI_DONE : cli_failed("no memory for --special");
    if (code == CLI_DONE && list) code = read_special(copy, &special, &options.special_count);
    options.special = special;
    if (code == CLI_DONE) code = train(args, &options);
    free((void *)special);
    free(copy);
    return code;
}

static const cli_option options[] = {
    {.name = "output", .letter = 'o', .value = "FILE", .help = "the tokenizer.json to write"},
    {.name = "force", .help = "replace FILE if it exists"},
    {.name = "kind",
     .value = "KIND",
     .standard = "bpe",
     .choices = kind_name,
     .help = "algorithm; bpe works on bytes, so it can encode every text"},
    {.name = "size",
     .value = "N",
     .standard = "32000",
     .count = true,
     .least = 1,
     .help = "maximum number of tokens, special ones included"},
    {.name = "min-count",
     .value = "N",
     .standard = "0",
     .count = true,
     .help = "make no token of a pair (word, string) that occurs less than N times; 0 means no "
             "limit"},
    {.name = "special",
     .value = "LIST",
     .help = "special tokens, separated by commas; they become the first tokens"},
    {.name = "lowercase", .help = "turn text to lower case"},
    {.name = NULL}};

const cli_verb cli_verb_tokenizer = {
    .name = "tokenizer",
    .synopsis = "TEXT -o FILE",
    .operand = "TEXT",
    .operands_least = 1,
    .operands_most = 1,
    .files = 1,
    .about = "train a tokenizer on a text",
    .text = "TEXT is a text file or a folder of text files, in UTF-8. FILE is written as a "
            "tokenizer.json, which Hugging Face's library reads too; 'embla tokens FILE' shows how "
            "it cuts a text, and 'embla train --tokenizer FILE' trains a model with it.\n\n"
            "The kinds:\n- bpe: byte-level byte pair encoding, as in GPT-2. The most frequent pair "
            "of neighbours becomes a token, again and again. The merges are those of Hugging "
            "Face's BpeTrainer;\n- wordpiece: pieces of words as in BERT, with ## inside a "
            "word;\n- words: the most frequent words and runs of punctuation;\n- unigram: "
            "the most probable pieces of words, as in SentencePiece, which marks a space as "
            "U+2581.\nwordpiece and words get the special token [UNK] for what they do not know, "
            "unigram gets <unk>, unless --special has it.\n\n"
            "The result does not depend on the number of threads. After Ctrl-C nothing is written.",
    .example = "embla tokenizer village.txt -o tokenizer.json --size 500",
    .options = options,
    .run = run};
