/* SPDX-License-Identifier: Apache-2.0 */
/* The text begins where a document begins, or after a line end, and ends with the document, at the
 * last position of the model, or after the given number of tokens.
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
#include "host/host.h"
#include "host/paths.h"

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

/* What generates texts. */
typedef struct {
    embla_decoder *decoder;
    float *hidden;
    double temperature;
    uint64_t seed; /* of the next text */
    size_t left;   /* tokens that may still be generated */
} sampler;

/* Appends one text to said. *ended: the model has ended it. */
static int generate(const cli_training *t, sampler *s, cli_said *said, bool *ended)
{
    cli_speaker speaker;
    const embla_decoder_options options = {.threads = t->options.threads};
    const int32_t bos = embla_corpus_bos(t->corpus);
    int32_t token = first_token(t), before = -1;
    embla_head head;
    cli_speaker_of_tokenizer(t->writer, t->writer_tokenized, t->shape.vocab, &speaker);
    embla_decoder_reset(s->decoder);
    embla_status status = embla_decoder_head(s->decoder, &head);
    size_t most = s->left < t->shape.positions ? s->left : t->shape.positions;
    *ended = false;
    for (size_t i = 0; status == EMBLA_OK && i < most; i++) {
        embla_choice choice = {0};
        const embla_sample_options sampling = {.temperature = s->temperature,
                                               .seed = s->seed,
                                               .step = (int64_t)i,
                                               .threads = t->options.threads};
        s->left--;
        status = embla_decoder_append(s->decoder, &token, 1, &options, s->hidden);
        if (status == EMBLA_OK) status = embla_head_sample(&head, s->hidden, 1, &sampling, &choice);
        *ended = choice.token == bos;
        if (status != EMBLA_OK || choice.token < 0 || *ended) break;
        token = (int32_t)choice.token;
        if (!cli_said_add(said, &speaker, before, token)) return cli_failed("%s", said->error);
        before = token;
    }
    if (status != EMBLA_OK) return cli_failed("%s", embla_error());
    return cli_said_end(said, &speaker) ? CLI_DONE : cli_failed("%s", said->error);
}

/* Appends texts to a stream, each on a line of its own. */
static int generate_texts(const cli_training *t, size_t texts, sampler *s, FILE *to)
{
    int code = CLI_DONE;
    bool ended = true;
    for (size_t n = 0; n < texts && s->left > 0 && ended && code == CLI_DONE; n++, s->seed++) {
        cli_said said = {0};
        code = generate(t, s, &said, &ended);
        if (n > 0) (void)fputc('\n', to);
        if (said.bytes) (void)fwrite(said.bytes, 1, said.count, to);
        cli_said_free(&said);
    }
    return code;
}

int cli_sample_text(cli_training *t, const cli_sample_how *how, char **text, size_t *length)
{
    const size_t positions = t->shape.positions;
    sampler s = {.hidden = malloc(t->shape.dim * sizeof *s.hidden),
                 .temperature = how->temperature,
                 .seed = t->options.seed,
                 .left = how->tokens};
    FILE *to = cli_text_open(text, length);
    int code = s.hidden && to ? CLI_DONE : cli_failed("no memory for a sample");
    if (code == CLI_DONE && t->words && !t->writer_tokenized) code = open_tokenizer(t);
    if (code == CLI_DONE &&
        embla_decoder_new(t->gpt, positions < how->tokens ? positions : how->tokens, &s.decoder) !=
            EMBLA_OK)
        code = cli_failed("%s", embla_error());
    if (code == CLI_DONE) code = generate_texts(t, how->texts > 0 ? how->texts : 1, &s, to);
    if (to && !cli_text_close(to, text, length) && code == CLI_DONE)
        code = cli_failed("no memory for a sample");
    embla_decoder_free(s.decoder);
    free(s.hidden);
    return code;
}

/* Prints the lines of text, indented, with control characters escaped. */
static void print_lines(const cli_training *t, const char *text, size_t size)
{
    char step[CLI_CELL];
    printf("%*ssample after step %s\n", INDENT, "", cli_commas(embla_train_steps(t->train), step));
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at;
        char *line = cli_copy_text(text + at, length);
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
    const cli_sample_how how = {.temperature = sample_temperature, .tokens = SAMPLE_TOKENS};
    char *text = NULL;
    size_t length = 0;
    int code = cli_sample_text(t, &how, &text, &length);
    cli_progress_wipe(&t->progress);
    if (code == CLI_DONE && t->json) print_json(t, text, length);
    if (code == CLI_DONE && !t->json) print_lines(t, text, length);
    (void)fflush(stdout);
    free(text);
    return code;
}
