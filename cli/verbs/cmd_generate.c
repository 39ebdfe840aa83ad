/* SPDX-License-Identifier: Apache-2.0 */
/* embla generate: generates text from a model, one token at a time.
 *
 * Keys and values of earlier tokens are cached, so a token costs one pass through the layers. Text
 * is printed as it is generated. Sample i of text n is independent of the other texts: its step
 * number is n * 2^32 + i.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_train.h"

#include "core/language_model.h"
#include "core/line_input.h"
#include "core/model_text.h"
#include "core/progress.h"
#include "core/verbs.h"
#include "host/host.h"

typedef enum { END = 0, TOKENS = 1, POSITIONS = 2, STOPPED = 3 } reason;
static const char *const reasons[] = {"end", "tokens", "positions", "interrupted"};

typedef struct {
    cli_language_model lm;
    embla_decoder *decoder;
    embla_head head;
    embla_sample_options sample;
    int32_t *tokens; /* the prompt, then the generated tokens */
    size_t prompt;   /* tokens of the prompt */
    bool implied;    /* no prompt was given: it is not printed */
    size_t most;     /* maximum number of generated tokens per text */
    size_t places;   /* positions of the decoder */
    size_t fed;      /* positions in use */
    float *hidden;
    int64_t made;   /* generated tokens of all texts */
    double seconds; /* time for them, without prompts */
    bool json, shown;
    cli_progress progress;
} job;

/* ---- options ---- */

static int read_sampling(const cli_args *args, embla_sample_options *out)
{
    embla_sample_options o = {.top_k = cli_args_size(args, "top-k"),
                              .seed = (uint64_t)cli_args_count(args, "seed")};
    int code = cli_args_real(args, "temperature", 1000, &o.temperature);
    if (code == CLI_DONE) code = cli_args_real(args, "top-p", 1, &o.top_p);
    if (code == CLI_DONE) code = cli_args_real(args, "min-p", 1, &o.min_p);
    *out = o;
    return code;
}

/* ---- the prompt ---- */

/* Copies the one line of standard input, which the caller frees. */
static int read_line(char **out)
{
    cli_lines lines = {0};
    char *line, *copy = NULL;
    size_t length;
    int code = CLI_DONE;
    cli_line_status status;
    while (code == CLI_DONE &&
           (status = cli_lines_next(&lines, true, &line, &length)) != CLI_LINE_NONE) {
        if (status == CLI_LINE_FAILED)
            code = CLI_FAILED;
        else if (copy)
            code = cli_usage("standard input has more than one line, but a prompt is one");
        else if (!(copy = strdup(line)))
            code = cli_failed("no memory for a prompt");
    }
    if (code == CLI_DONE && !copy)
        code = cli_usage("standard input is empty; a prompt is one line");
    cli_lines_free(&lines);
    *out = copy;
    return code;
}

/* Reads the prompt and reserves memory for the generated tokens. */
static int read_prompt(const cli_args *args, job *j)
{
    const char *text = cli_args_text(args, "prompt");
    char *line = NULL;
    if (args->operand_count > 1 && text)
        return cli_usage("the prompt is given twice: '%.60s' and --prompt '%.60s'",
                         args->operands[1], text);
    if (args->operand_count > 1) text = args->operands[1];
    int64_t most = cli_args_count(args, "tokens");
    int code = text && strcmp(text, "-") == 0 ? read_line(&line) : CLI_DONE;
    if (code == CLI_DONE)
        code = cli_speaker_prompt(&j->lm.speaker, line ? line : text, &j->tokens, &j->prompt);
    free(line);
    if (code != CLI_DONE) return code;
    j->implied = !text;
    size_t room = 0;
    if (__builtin_add_overflow(j->prompt, cli_as_size(most), &room) ||
        __builtin_mul_overflow(room, sizeof *j->tokens, &room))
        return cli_usage("--tokens %" PRId64 " is too large", most);
    int32_t *grown = realloc(j->tokens, room);
    if (!grown) return cli_failed("no memory for %" PRId64 " tokens", most);
    j->tokens = grown;
    j->most = (size_t)most;
    return CLI_DONE;
}

/* A model with an end-of-text token stops when its positions are full. Another one continues, see
 * slide. */
static int make_decoder(job *j)
{
    const embla_gpt_shape *shape = &j->lm.shape;
    size_t wanted = j->prompt + j->most;
    j->places = wanted < shape->positions ? wanted : shape->positions;
    if (j->lm.speaker.ends.end_count > 0 && j->prompt > shape->positions)
        return cli_failed("--prompt is too long: %zu tokens, but the model has %zu positions",
                          j->prompt, shape->positions);
    j->hidden = malloc(shape->dim * sizeof *j->hidden);
    if (!j->hidden) return cli_failed("no memory for %zu numbers", shape->dim);
    if (embla_decoder_new(j->lm.gpt, j->places, &j->decoder) != EMBLA_OK ||
        embla_decoder_head(j->decoder, &j->head) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    return CLI_DONE;
}

/* ---- one text ---- */

/* Prints the message on a new line, after the generated text. */
static int fail_after_text(const job *j, const char *sentence)
{
    if (!j->json) putchar('\n');
    (void)fflush(stdout);
    return cli_failed("%s", sentence);
}

static int feed(job *j, const int32_t *tokens, size_t count)
{
    if (embla_decoder_append(j->decoder, tokens, count,
                             &(embla_decoder_options){.threads = j->sample.threads},
                             j->hidden) != EMBLA_OK)
        return fail_after_text(j, embla_error());
    j->fed += count;
    return CLI_DONE;
}

/* The positions are full: restarts with the last places / 2 of the first `used` tokens. */
static int slide(job *j, size_t used)
{
    size_t half = j->places > 1 ? j->places / 2 : 1;
    embla_decoder_reset(j->decoder);
    j->fed = 0;
    return feed(j, j->tokens + used - half, half);
}

static int start_text(job *j, cli_said *said)
{
    int32_t before = -1;
    embla_decoder_reset(j->decoder);
    j->fed = 0;
    for (size_t i = 0; i < j->prompt && !j->implied; i++) {
        int32_t token = j->tokens[i];
        bool silent = i == 0 && j->lm.speaker.ends.leads;
        if (!silent && !cli_said_add(said, &j->lm.speaker, before, token))
            return fail_after_text(j, said->error);
        before = token;
    }
    if (!j->json) cli_said_print(said, j->shown, stdout);
    return j->prompt > j->places ? slide(j, j->prompt) : feed(j, j->tokens, j->prompt);
}

static int sample(job *j, size_t text, size_t i, int32_t *out)
{
    embla_choice choice;
    embla_sample_options options = j->sample;
    options.step = (int64_t)((uint64_t)text << 32) + (int64_t)i;
    if (embla_head_sample(&j->head, j->hidden, 1, &options, &choice) != EMBLA_OK)
        return fail_after_text(j, embla_error());
    if (choice.token < 0)
        return fail_after_text(j, "the model's outputs are not finite, so no token can be sampled");
    *out = (int32_t)choice.token;
    return CLI_DONE;
}

/* Generates tokens after the prompt and writes their number to *count. */
static int generate(job *j, size_t text, cli_said *said, size_t *count, reason *why)
{
    int code = CLI_DONE;
    size_t i = 0;
    for (*why = TOKENS; i < j->most && code == CLI_DONE; i++) {
        int32_t token = 0, before = j->implied && i == 0 && !j->lm.speaker.ends.leads
                                        ? -1
                                        : j->tokens[j->prompt + i - 1];
        if (!cli_progress_step(&j->progress, "generate", 0, 1)) {
            *why = STOPPED;
            break;
        }
        if (i > 0 && j->fed == j->places) {
            *why = POSITIONS;
            if (j->lm.speaker.ends.end_count > 0) break;
            *why = TOKENS;
            code = slide(j, j->prompt + i);
        } else if (i > 0) {
            code = feed(j, &j->tokens[j->prompt + i - 1], 1);
        }
        if (code == CLI_DONE) code = sample(j, text, i, &token);
        if (code != CLI_DONE) break;
        j->tokens[j->prompt + i] = token;
        if (cli_speaker_ends(&j->lm.speaker, token)) {
            *why = END;
            break;
        }
        if (!cli_said_add(said, &j->lm.speaker, before, token))
            code = fail_after_text(j, said->error);
        if (!j->json) cli_said_print(said, j->shown, stdout);
    }
    if (code == CLI_DONE && !cli_said_end(said, &j->lm.speaker))
        code = fail_after_text(j, said->error);
    *count = i;
    return code;
}

static void print_json(const job *j, const cli_said *said, size_t count, reason why, cli_json *json)
{
    cli_json_open(json, NULL, '{');
    cli_json_bytes(json, "text", said->bytes ? said->bytes : "", said->count);
    cli_json_open(json, "tokens", '[');
    for (size_t i = 0; i < count; i++) cli_json_whole(json, NULL, j->tokens[j->prompt + i]);
    cli_json_close(json, ']');
    cli_json_text(json, "stopped", reasons[why]);
    cli_json_close(json, '}');
}

static int generate_text(job *j, size_t text, cli_json *json, reason *why)
{
    cli_said said = {0};
    size_t count = 0;
    if (text > 0 && j->lm.speaker.lines && !j->json) putchar('\n');
    int code = start_text(j, &said);
    double start = cli_progress_now();
    if (code == CLI_DONE) code = generate(j, text, &said, &count, why);
    j->seconds += cli_progress_now() - start;
    j->made += (int64_t)count;
    if (code == CLI_DONE && j->json) print_json(j, &said, count, *why, json);
    if (code == CLI_DONE && !j->json) {
        cli_said_print(&said, j->shown, stdout);
        putchar('\n');
    }
    cli_said_free(&said);
    return code;
}

/* ---- all texts ---- */

static void print_summary(const cli_args *args, const job *j)
{
    char tokens[CLI_CELL], speed[CLI_CELL];
    if (cli_args_flag(args, "quiet") || j->json || !cli_is_terminal(CLI_STDERR)) return;
    (void)fflush(stdout);
    fprintf(stderr, "%s in %.2f s", cli_plural(j->made, "token", tokens), j->seconds);
    if (j->seconds > 0)
        fprintf(stderr, ", %s tokens/s",
                cli_commas((int64_t)((double)j->made / j->seconds), speed));
    fputc('\n', stderr);
}

static int generate_texts(const cli_args *args, job *j)
{
    size_t count = cli_args_size(args, "count");
    cli_json json = {0};
    reason why = TOKENS;
    int code = CLI_DONE;
    if (j->json) {
        cli_json_open(&json, NULL, '{');
        cli_json_open(&json, "prompt", '[');
        for (size_t i = 0; i < j->prompt; i++) cli_json_whole(&json, NULL, j->tokens[i]);
        cli_json_close(&json, ']');
        cli_json_open(&json, "texts", '[');
    }
    cli_progress_begin(&j->progress, true);
    for (size_t n = 0; n < count && code == CLI_DONE && why != STOPPED; n++)
        code = generate_text(j, n, &json, &why);
    if (j->json) { /* after a failure too: the texts before it are complete */
        cli_json_close(&json, ']');
        cli_json_whole(&json, "made", j->made);
        cli_json_real(&json, "seconds", j->seconds);
        cli_json_real(&json, "tokens_per_second",
                      j->seconds > 0 ? (double)j->made / j->seconds : 0);
        cli_json_close(&json, '}');
        putchar('\n');
    }
    print_summary(args, j);
    (void)fflush(stdout);
    cli_progress_end(&j->progress, "interrupted");
    return code;
}

static int run(const cli_args *args)
{
    job j = {.json = cli_args_flag(args, "json"), .shown = cli_is_terminal(CLI_STDOUT)};
    int code = read_sampling(args, &j.sample);
    if (code == CLI_DONE && cli_args_count(args, "count") > INT32_MAX)
        code =
            cli_usage("--count is %s; the maximum is %d", cli_args_text(args, "count"), INT32_MAX);
    if (code == CLI_DONE && cli_args_count(args, "tokens") > INT32_MAX)
        code = cli_usage("--tokens is %s; the maximum is %d", cli_args_text(args, "tokens"),
                         INT32_MAX);
    if (code == CLI_DONE) code = cli_language_model_open(args, args->operands[0], &j.lm);
    j.sample.threads = j.lm.threads;
    if (code == CLI_DONE) code = read_prompt(args, &j);
    if (code == CLI_DONE) code = make_decoder(&j);
    if (code == CLI_DONE) code = generate_texts(args, &j);
    embla_decoder_free(j.decoder);
    cli_language_model_free(&j.lm);
    free(j.tokens);
    free(j.hidden);
    return code;
}

static const cli_option options[] = {
    {.name = "prompt",
     .value = "TEXT",
     .reads = CLI_READS_LINES,
     .help = "text to continue, the same as PROMPT; - reads it from standard input (default: the "
             "begin-of-text token, or token 0)"},
    {.name = "tokens",
     .also = "max-tokens",
     .letter = 'n',
     .value = "N",
     .standard = "256",
     .count = true,
     .help = "maximum number of tokens per text"},
    {.name = "temperature",
     .value = "X",
     .standard = "0.8",
     .help = "sampling temperature; 0 always takes the most likely token"},
    {.name = "top-k",
     .value = "N",
     .standard = "0",
     .count = true,
     .help = "sample from the N most likely tokens; 0 means all"},
    {.name = "top-p",
     .value = "X",
     .standard = "0",
     .help = "sample from the fewest tokens whose probabilities sum to X; 0 means all"},
    {.name = "min-p",
     .value = "X",
     .standard = "0",
     .help = "sample from tokens at least X times as likely as the most likely one; 0 means all"},
    {.name = "seed", .value = "S", .standard = "0", .count = true, .help = "random seed"},
    {.name = "count", .value = "N", .standard = "1", .count = true, .help = "number of texts"},
    CLI_TOKENIZER_OPTION,
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_generate = {
    .name = "generate",
    .synopsis = "MODEL [PROMPT]",
    .operand = "MODEL",
    .operands_least = 1,
    .operands_most = 2,
    .files = 1,
    .one_text = true,
    .about = "generate text from a model",
    .text = "MODEL is a folder written by 'embla train', a GPT-2 or Llama folder with config.json "
            "and safetensors, or a file of llama2.c or llm.c. The prompt and the generated text "
            "are printed as they arrive, in whole characters. The same seed gives the same text "
            "for any number of threads.\n\n"
            "If the model has an end-of-text token, a text ends with that token or when the "
            "positions are full. Each text is printed on its own line; texts that can contain line "
            "ends are separated by an empty line. A model without such a token continues with the "
            "last half of its positions when they are full.\n\n"
            "The tokenizer of the model cuts the prompt into tokens and joins tokens to text: the "
            "one in its folder (tokenizer.json, tokenizer.model, ..), or the one of --tokenizer. "
            "If there are only words (vocab.json, tokenizer.bin of llama2.c or llm.c), the two "
            "neighbours that form the word with the lowest token are merged first. A model without "
            "either prints token numbers, and its prompt is a list such as 5,7.",
    .example = "embla generate names --count 5",
    .options = options,
    .run = run};
