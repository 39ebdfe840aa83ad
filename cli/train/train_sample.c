/* SPDX-License-Identifier: Apache-2.0 */
/* The text begins where a document begins, or after a line end, and ends with the document, at the
 * last position of the model, or after SAMPLE_TOKENS tokens.
 */
#include "train/train_sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_learn.h"

#include "core/out.h"
#include "core/speak.h"
#include "core/visible.h"

enum { SAMPLE_TOKENS = 200, INDENT = 4 };
static const double sample_temperature = 0.8;

/* The token before the text: the one that begins a document, else a line end, else token 0. */
static int32_t first_token(const cli_training *t)
{
    int32_t bos = embla_corpus_bos(t->corpus);
    if (bos >= 0) return bos;
    if (t->tokenizer && embla_tokenize(t->writer_tokenized, "\n", 1, NULL) == EMBLA_OK &&
        embla_tokenized_count(t->writer_tokenized) > 0)
        return embla_tokenized_tokens(t->writer_tokenized)[0];
    for (int32_t i = 0; t->words && i < embla_corpus_vocab(t->corpus); i++)
        if (t->words[i] && strcmp(t->words[i], "\n") == 0) return i;
    return 0;
}

/* Opens the tokenizer that the training has saved. It says how tokens become text. */
static int open_tokenizer(cli_training *t)
{
    size_t size = strlen(t->folder) + sizeof "/tokenizer.json";
    char *path = malloc(size);
    if (!path) return cli_failed("no memory for the path of %s", t->folder);
    (void)snprintf(path, size, "%s/tokenizer.json", t->folder);
    embla_status status = cli_open_tokenizer(path, NULL, &t->writer);
    if (status == EMBLA_OK) status = embla_tokenized_new(t->writer, &t->writer_tokenized);
    free(path);
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

/* Appends the text to said. */
static int generate(const cli_training *t, embla_decoder *decoder, size_t most, float *hidden,
                    cli_said *said)
{
    cli_speaker speaker;
    const embla_decoder_options options = {.threads = t->options.threads};
    const int32_t bos = embla_corpus_bos(t->corpus);
    int32_t token = first_token(t), before = -1;
    embla_head head;
    cli_speaker_of_tokenizer(t->writer, t->writer_tokenized, t->shape.vocab, &speaker);
    embla_status status = embla_decoder_head(decoder, &head);
    for (size_t i = 0; status == EMBLA_OK && i < most; i++) {
        embla_choice choice = {0};
        const embla_sample_options sampling = {.temperature = sample_temperature,
                                               .seed = t->options.seed,
                                               .step = (int64_t)i,
                                               .threads = t->options.threads};
        status = embla_decoder_append(decoder, &token, 1, &options, hidden);
        if (status == EMBLA_OK) status = embla_head_sample(&head, hidden, 1, &sampling, &choice);
        if (status != EMBLA_OK || choice.token < 0 || choice.token == bos) break;
        token = (int32_t)choice.token;
        if (!cli_said_add(said, &speaker, before, token)) return cli_failed("%s", said->error);
        before = token;
    }
    if (status != EMBLA_OK) return cli_failed("%s", embla_error());
    return cli_said_end(said, &speaker) ? CLI_DONE : cli_failed("%s", said->error);
}

/* Prints the lines of text, indented, with control characters escaped. */
static void print_lines(const cli_training *t, const char *text, size_t size)
{
    char step[CLI_CELL];
    printf("%*ssample after step %s\n", INDENT, "", cli_commas(embla_train_steps(t->train), step));
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at;
        char *line = strndup(text + at, length);
        printf("%*s", 2 * INDENT, "");
        if (line) cli_out_safe(line);
        putchar('\n');
        free(line);
        at += length + 1;
    }
    putchar('\n');
}

static void print_json(const cli_training *t, const char *text, size_t size)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "event", "sample");
    cli_json_whole(&json, "step", embla_train_steps(t->train));
    (void)cli_json_bytes(&json, "text", text, size);
    cli_json_close(&json, '}');
    putchar('\n');
}

int cli_sample_print(cli_training *t)
{
    const size_t positions = t->shape.positions;
    const size_t most = positions < SAMPLE_TOKENS ? positions : SAMPLE_TOKENS;
    cli_said said = {0};
    embla_decoder *decoder = NULL;
    float *hidden = malloc(t->shape.dim * sizeof *hidden);
    int code = hidden ? CLI_DONE : cli_failed("no memory for a sample");
    if (code == CLI_DONE && t->words && !t->writer_tokenized) code = open_tokenizer(t);
    if (code == CLI_DONE && embla_decoder_new(t->gpt, most, &decoder) != EMBLA_OK)
        code = cli_failed("%s", embla_error());
    if (code == CLI_DONE) code = generate(t, decoder, most, hidden, &said);
    cli_progress_wipe(&t->progress);
    if (code == CLI_DONE && t->json) print_json(t, said.bytes ? said.bytes : "", said.count);
    if (code == CLI_DONE && !t->json) print_lines(t, said.bytes ? said.bytes : "", said.count);
    (void)fflush(stdout);
    embla_decoder_free(decoder);
    free(hidden);
    cli_said_free(&said);
    return code;
}
