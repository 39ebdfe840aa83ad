/* SPDX-License-Identifier: Apache-2.0 */
/* embla predict: what a model expects after a text, and how probable each token of the text was.
 *
 * Reads what `embla generate` reads. Each text is answered before the next is read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_train.h"

#include "core/advice.h"
#include "core/form.h"
#include "core/language_model.h"
#include "core/line_input.h"
#include "core/model_text.h"
#include "core/verbs.h"
#include "verbs/predict_view.h"

typedef struct {
    cli_language_model lm;
    cli_asked words; /* only its vocabulary, for names of tokens */
    const char *path;
    cli_form form;
    bool utf8, attention, has_asked;
    size_t top;
    int32_t asked;
    double temperature;
    size_t answered; /* texts */
    cli_json json;
} job;

/* ---- options ---- */

static int read_temperature(const cli_args *args, double *out)
{
    int code = cli_args_real(args, "temperature", 1000, out);
    if (code == CLI_DONE && *out == 0)
        return cli_usage("--temperature is %s; it must be above 0: at 0 'embla generate' takes the "
                         "token of rank 1",
                         cli_args_text(args, "temperature"));
    return code;
}

/* Reads --token: one token of the model. */
static int read_asked(const cli_args *args, job *j)
{
    const char *word = cli_args_text(args, "token");
    cli_tokens list = {.texts = &j->lm.model, .strict = true};
    if (!word) return CLI_DONE;
    int code = cli_tokens_word(&list, j->words.vocab, word, strlen(word));
    if (code == CLI_DONE) code = cli_tokens_finish(&list, j->words.vocab);
    if (code == CLI_DONE && list.count != 1)
        code = cli_usage("--token: '%.60s' is %zu tokens, but the next token is one", word,
                         list.count);
    else if (code == CLI_DONE && (uint64_t)list.ids[0] >= (uint64_t)j->lm.shape.vocab)
        code = cli_failed("--token: token %" PRId64
                          " is out of range; the model has tokens 0 to %" PRId64,
                          list.ids[0], j->lm.shape.vocab - 1);
    else if (code == CLI_DONE)
        j->asked = (int32_t)list.ids[0];
    j->has_asked = true;
    cli_tokens_free(&list);
    return code;
}

static int set_up(const cli_args *args, job *j)
{
    int64_t top = cli_args_count(args, "top");
    cli_sheet_kind kind;
    j->path = args->operands[0];
    int code = read_temperature(args, &j->temperature);
    if (code == CLI_DONE) code = cli_form_read(args, &j->form);
    if (code == CLI_DONE && cli_form_is_sheet(j->form, &kind) && top > CLI_PREDICTION_NEXT)
        return cli_usage("--top is %" PRId64 ", but a picture has at most %d next tokens; use "
                         "--format text or --json",
                         top, (int)CLI_PREDICTION_NEXT);
    if (code == CLI_DONE) code = cli_language_model_open(args, j->path, &j->lm);
    if (code != CLI_DONE) return code;
    j->lm.speaker.where = "TEXT";
    j->words.vocab = j->lm.model.vocab;
    j->top = (size_t)(top < j->lm.shape.vocab ? top : j->lm.shape.vocab);
    j->attention = cli_args_flag(args, "attention");
    j->utf8 = cli_utf8_wanted();
    return read_asked(args, j);
}

/* ---- one text ---- */

static int compute(job *j, cli_prediction *p)
{
    const embla_gpt_shape *s = &j->lm.shape;
    const embla_predict_options options = {.temperature = j->temperature,
                                           .top = p->top,
                                           .asked = &j->asked,
                                           .asked_count = p->asked ? 1 : 0,
                                           .threads = j->lm.threads};
    p->each = calloc(p->count, sizeof *p->each);
    p->next = calloc(p->top + 1, sizeof *p->next);
    if (j->attention) p->attention = calloc(p->count, s->layers * s->heads * sizeof(float));
    if (!p->each || !p->next || (j->attention && !p->attention))
        return cli_failed("no memory for %zu predictions", p->count + p->top);
    embla_predict_results results = {
        .next = p->next, .asked = p->asked, .each = p->each, .attention = p->attention};
    if (embla_gpt_predict(j->lm.gpt, p->tokens, p->count, &options, &results) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    p->loss = results.loss;
    return CLI_DONE;
}

static int print(job *j, const cli_prediction *p)
{
    cli_sheet_kind kind;
    if (cli_form_is_sheet(j->form, &kind)) {
        if (j->answered == 0) return cli_prediction_sheet(j->path, p, kind);
        return cli_usage(
            "a picture shows one text; put its words in quotes, or use --format text or "
            "--json");
    }
    if (j->form == CLI_FORM_JSON) {
        cli_prediction_json(p, &j->json);
        return CLI_DONE;
    }
    if (j->answered > 0) putchar('\n');
    if (j->form == CLI_FORM_TABLE)
        cli_prediction_table(p, j->utf8);
    else
        cli_prediction_text(p);
    (void)fflush(stdout);
    return CLI_DONE;
}

/* text NULL: what begins a text. */
static int predict(job *j, const char *text)
{
    embla_prediction asked;
    cli_prediction p = {.lm = &j->lm,
                        .words = &j->words,
                        .text = text,
                        .top = j->top,
                        .asked = j->has_asked ? &asked : NULL,
                        .temperature = j->temperature};
    int code = cli_speaker_prompt(&j->lm.speaker, text, &p.tokens, &p.count);
    if (code == CLI_DONE) code = compute(j, &p);
    if (code == CLI_DONE) code = print(j, &p);
    j->answered++;
    free(p.tokens);
    free(p.each);
    free(p.next);
    free(p.attention);
    return code;
}

/* ---- all texts ---- */

static int predict_lines(job *j)
{
    cli_lines lines = {0};
    char *line;
    size_t length;
    int code = CLI_DONE;
    cli_line_status status = CLI_LINE;
    while (code == CLI_DONE && (status = cli_lines_next(&lines, true, &line, &length)) == CLI_LINE)
        code = strlen(line) == length
                   ? predict(j, line)
                   : cli_usage("standard input, line %zu: '%.60s' is followed by a zero byte",
                               lines.number, line);
    if (code == CLI_DONE && status == CLI_LINE_NONE && lines.number == 0)
        code = cli_usage("standard input is empty; predict needs a text on each line");
    cli_lines_free(&lines);
    return status == CLI_LINE_FAILED ? CLI_FAILED : code;
}

static int predict_texts(const cli_args *args, job *j)
{
    int code = args->operand_count > 1 ? CLI_DONE : predict(j, NULL);
    if (j->form != CLI_FORM_JSON) cli_advise_quotes(args, 1);
    for (size_t i = 1; i < args->operand_count && code == CLI_DONE; i++)
        code =
            strcmp(args->operands[i], "-") == 0 ? predict_lines(j) : predict(j, args->operands[i]);
    return code;
}

static int predict_all(const cli_args *args, job *j)
{
    cli_json *json = &j->json;
    if (j->form != CLI_FORM_JSON) return predict_texts(args, j);
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "head", j->lm.shape.untied ? "separate" : "tied");
    cli_json_whole(json, "vocab", j->lm.shape.vocab);
    cli_json_real(json, "temperature", j->temperature);
    cli_json_open(json, "texts", '[');
    int code = predict_texts(args, j); /* after a failure too: the texts before it are complete */
    cli_json_close(json, ']');
    cli_json_close(json, '}');
    putchar('\n');
    return code;
}

static int run(const cli_args *args)
{
    job j = {0};
    int code = set_up(args, &j);
    if (code == CLI_DONE) code = cli_form_redirect(args, j.form);
    if (code == CLI_DONE) code = predict_all(args, &j);
    code = cli_out_done(code);
    cli_language_model_free(&j.lm);
    return code;
}

static const cli_option options[] = {
    {.name = "top",
     .letter = 'k',
     .value = "N",
     .standard = "10",
     .count = true,
     .help = "number of next tokens to print"},
    {.name = "token",
     .value = "TOKEN",
     .help = "print the rank, logit and probability of this next token, too: a word or #5"},
    {.name = "temperature",
     .value = "X",
     .standard = "1",
     .help = "divide the logits by X, which is above 0; it changes probabilities, not their order"},
    {.name = "attention",
     .help = "print the weights with which each head of the last token attends to the tokens"},
    CLI_FORM_OPTIONS("next.svg, .png, .html, next.txt or .json"),
    CLI_TOKENIZER_OPTION,
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_predict = {
    .name = "predict",
    .synopsis = "MODEL [TEXT]...",
    .operand = "MODEL",
    .operands_least = 1,
    .operands_most = CLI_OPERANDS_MOST,
    .files = 1,
    .about = "show how probable the next tokens of a text are",
    .text =
        "MODEL is a model as for 'embla generate'. Its tokenizer cuts each TEXT into tokens; - "
        "reads one text per line from standard input and answers each line as it arrives. Without "
        "a TEXT the tokens that begin a text are shown. A model without a tokenizer takes "
        "token numbers such as 5,7.\n\n"
        "Each token of a text gets its probability after the tokens before it, and the same in "
        "bits: -log2 of the probability. Their mean is the loss of the text in bits per token; 2 "
        "to that power is the perplexity. Then the most probable next tokens follow. A logit is "
        "the product of the head's row of a token with the last vector, and the softmax of all "
        "logits gives the probabilities. The head is the table of the tokens (tied) or a separate "
        "one.\n\n"
        "The text format has a line for each token, with tabs between part (text, next, asked), "
        "position, token, id, rank, logit, probability and bits. The lines of --attention have "
        "attention, position, token, id, layer, head and weight. An empty line separates texts.\n\n"
        "A picture (--output FILE.svg, .png or .html) shows one text: bars of probability for its "
        "tokens and the next ones, and with --attention a column of weights for each head. The "
        "middle of a text of more than 40 tokens is left out.",
    .example = "embla predict names emm --top 3",
    .options = options,
    .run = run};
