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
#include "core/visible.h"

enum { SAMPLE_TOKENS = 200, INDENT = 4 };
static const double sample_temperature = 0.8;

/* The token before the text: the one that begins a document, else a line end, else token 0. */
static int32_t first_token(const cli_training *t)
{
    int32_t bos = embla_corpus_bos(t->corpus);
    if (bos >= 0) return bos;
    for (int32_t i = 0; t->words && i < embla_corpus_vocab(t->corpus); i++)
        if (t->words[i] && strcmp(t->words[i], "\n") == 0) return i;
    return 0;
}

static void add_token(const cli_training *t, int32_t token, FILE *to)
{
    size_t length = 0;
    const char *word = t->words ? embla_corpus_word(t->corpus, token, &length) : NULL;
    if (word)
        (void)fwrite(word, 1, length, to);
    else
        fprintf(to, "%" PRId32 " ", token);
}

/* Writes the text to `to`. */
static embla_status generate(const cli_training *t, embla_decoder *decoder, size_t most,
                             float *hidden, FILE *to)
{
    const embla_decoder_options options = {.threads = t->options.threads};
    const int32_t bos = embla_corpus_bos(t->corpus);
    int32_t token = first_token(t);
    embla_head head;
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
        add_token(t, token, to);
    }
    return status;
}

/* Prints the lines of text, indented, with control characters escaped. */
static void print_lines(const cli_training *t, const char *text, size_t size)
{
    char step[CLI_CELL];
    printf("%*ssample after step %s\n", INDENT, "", cli_commas(embla_train_steps(t->train), step));
    for (size_t at = 0; at < size;) {
        size_t length = strcspn(text + at, "\n");
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
    char *text = NULL;
    size_t size = 0;
    embla_decoder *decoder = NULL;
    float *hidden = malloc(t->shape.dim * sizeof *hidden);
    FILE *to = hidden ? open_memstream(&text, &size) : NULL;
    embla_status status = EMBLA_ERR_MEMORY;
    if (to) status = embla_decoder_new(t->gpt, most, &decoder);
    if (status == EMBLA_OK) status = generate(t, decoder, most, hidden, to);
    int code = !to                  ? cli_failed("no memory for a sample")
               : status != EMBLA_OK ? cli_failed("%s", embla_error())
                                    : CLI_DONE;
    if (to && fclose(to) != 0) code = cli_failed("no memory for a sample");
    cli_progress_wipe(&t->progress);
    if (code == CLI_DONE && t->json) print_json(t, text, size);
    if (code == CLI_DONE && !t->json) print_lines(t, text, size);
    (void)fflush(stdout);
    embla_decoder_free(decoder);
    free(hidden);
    free(text);
    return code;
}
