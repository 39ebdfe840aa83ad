/* SPDX-License-Identifier: Apache-2.0 */
/* embla tokens: text to the tokens of a tokenizer, and back.
 *
 * Texts come from the command line, from a file or from standard input, line by line. They are
 * encoded in batches over threads (core/texts.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_text.h"

#include "core/inputs.h"
#include "core/line_input.h"
#include "core/model.h"
#include "core/out.h"
#include "core/texts.h"
#include "core/verbs.h"
#include "core/visible.h"
#include "core/word_tokenizer.h"
#include "draw/pen.h"
#include "host/host.h"

enum { AUTO, IDS, PIECES, TEXT, FORMATS };
static const char *const formats[FORMATS] = {"auto", "ids", "pieces", "text"};

typedef struct {
    embla_tokenizer *tokenizer, *other; /* other: --compare */
    embla_tokenized *tokenized, *other_tokenized;
    embla_tokenize_options options;
    const char *second; /* --pair; NULL means none */
    int format;
    bool json, count, decode, offsets, color, quiet;
    int64_t texts, bytes, tokens, other_tokens, cut;
} job;

/* ---- one text ---- */

/* The result of one text of a batch. */
typedef struct {
    const char *text;
    size_t length, count;
    const int32_t *tokens;
    const embla_text_span *spans;
    const uint8_t *special;
} result;

static result result_of(const embla_tokenized *e, size_t i, const char *text, size_t length)
{
    const size_t *starts = embla_tokenized_starts(e);
    const embla_text_span *spans = embla_tokenized_offsets(e);
    size_t first = starts[i];
    return (result){.text = text,
                    .length = length,
                    .count = starts[i + 1] - first,
                    .tokens = embla_tokenized_tokens(e) + first,
                    .spans = spans ? spans + first : NULL,
                    .special = embla_tokenized_special(e) + first};
}

/* Prints tokens with spaces between them; much faster than printf. */
static void print_ids(const result *r)
{
    char line[4096];
    size_t used = 0;
    for (size_t i = 0; i < r->count; i++) {
        char digits[12];
        size_t n = 0;
        uint32_t number = (uint32_t)r->tokens[i];
        if (used > sizeof line - 16) {
            (void)fwrite(line, 1, used, stdout);
            used = 0;
        }
        if (i > 0) line[used++] = ' ';
        do digits[n++] = (char)('0' + number % 10);
        while ((number /= 10) > 0);
        while (n > 0) line[used++] = digits[--n];
    }
    line[used++] = '\n';
    (void)fwrite(line, 1, used, stdout);
}

static void print_pieces(const job *j, const result *r)
{
    for (size_t i = 0; i < r->count; i++) {
        size_t length = 0;
        const char *piece = embla_tokenizer_text(j->tokenizer, r->tokens[i], &length);
        (void)printf("%" PRId32 "\t", r->tokens[i]);
        if (piece) (void)cli_word_write(piece, length, stdout);
        if (j->offsets && r->spans)
            (void)printf("\t%" PRIu32 "\t%" PRIu32, r->spans[i].begin, r->spans[i].end);
        (void)putchar('\n');
    }
}

/* Prints the text with a mark, or a change of colour, between its tokens. A token that begins
 * inside a character that was printed already is not shown again. */
static void print_cut(const job *j, const result *r)
{
    static const char *const paints[] = {"\033[48;5;24m", "\033[48;5;58m", "\033[48;5;53m",
                                         "\033[48;5;22m"};
    size_t at = 0, shown = 0;
    for (size_t i = 0; r->spans && i < r->count; i++) {
        const embla_text_span span = r->spans[i];
        if (span.begin < at || span.begin == span.end) continue;
        (void)cli_word_write(r->text + at, span.begin - at, stdout);
        if (j->color)
            (void)fputs(paints[shown % 4], stdout);
        else if (shown > 0)
            (void)putchar('|');
        (void)cli_word_write(r->text + span.begin, span.end - span.begin, stdout);
        if (j->color) (void)fputs("\033[0m", stdout);
        at = span.end;
        shown++;
    }
    (void)cli_word_write(r->text + at, r->length - at, stdout);
    (void)putchar('\n');
}

/* Prints a list of small numbers, if there is one. */
static void print_json_bytes(cli_json *json, const char *key, const uint8_t *list, size_t count)
{
    if (!list) return;
    cli_json_open(json, key, '[');
    for (size_t i = 0; i < count; i++) cli_json_whole(json, NULL, list[i]);
    cli_json_close(json, ']');
}

static void print_json_result(const embla_tokenizer *tokenizer, const result *r, cli_json *json)
{
    cli_json_whole(json, "count", (int64_t)r->count);
    cli_json_open(json, "tokens", '[');
    for (size_t i = 0; i < r->count; i++) cli_json_whole(json, NULL, r->tokens[i]);
    cli_json_close(json, ']');
    cli_json_open(json, "pieces", '[');
    for (size_t i = 0; i < r->count; i++) {
        size_t length = 0;
        const char *piece = embla_tokenizer_text(tokenizer, r->tokens[i], &length);
        (void)cli_json_bytes(json, NULL, piece ? piece : "", length);
    }
    cli_json_close(json, ']');
    cli_json_open(json, "offsets", '[');
    for (size_t i = 0; r->spans && i < r->count; i++) {
        cli_json_open(json, NULL, '[');
        cli_json_whole(json, NULL, r->spans[i].begin);
        cli_json_whole(json, NULL, r->spans[i].end);
        cli_json_close(json, ']');
    }
    cli_json_close(json, ']');
    cli_json_open(json, "special", '[');
    for (size_t i = 0; i < r->count; i++) cli_json_bool(json, NULL, r->special[i]);
    cli_json_close(json, ']');
}

static void print_json(const job *j, const result *r)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    (void)cli_json_bytes(&json, "text", r->text, r->length);
    print_json_result(j->tokenizer, r, &json);
    print_json_bytes(&json, "types", embla_tokenized_types(j->tokenized), r->count);
    print_json_bytes(&json, "texts", embla_tokenized_sides(j->tokenized), r->count);
    cli_json_close(&json, '}');
    (void)putchar('\n');
}

static void print_result(const job *j, const result *r)
{
    if (j->json)
        print_json(j, r);
    else if (j->format == PIECES)
        print_pieces(j, r);
    else if (j->format == TEXT)
        print_cut(j, r);
    else
        print_ids(r);
}

/* ---- batches ---- */

/* Each text of a batch is the first of a pair, if there is a second one. */
static int encode_pairs(job *j, const cli_texts *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (embla_tokenize_pair(j->tokenized, batch->texts[i], batch->lengths[i], j->second,
                                strlen(j->second), &j->options) != EMBLA_OK)
            return cli_failed("%s", embla_error());
        j->texts++;
        j->bytes += (int64_t)batch->lengths[i];
        j->tokens += (int64_t)embla_tokenized_count(j->tokenized);
        j->cut += (int64_t)embla_tokenized_cut(j->tokenized);
        result r = result_of(j->tokenized, 0, batch->texts[i], batch->lengths[i]);
        if (!j->count) print_result(j, &r);
    }
    (void)fflush(stdout);
    return CLI_DONE;
}

static int encode(const job *j, const cli_texts *batch, embla_tokenized *e)
{
    const embla_texts texts = {
        .texts = batch->texts, .lengths = batch->lengths, .count = batch->count};
    embla_status status = embla_tokenize_batch(e, &texts, &j->options);
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

/* Prints how both tokenizers cut a text. */
static void print_both(const job *j, const cli_texts *batch, size_t i)
{
    const embla_tokenized *both[] = {j->tokenized, j->other_tokenized};
    if (j->json) {
        const embla_tokenizer *tokenizers[] = {j->tokenizer, j->other};
        cli_json json = {0};
        cli_json_open(&json, NULL, '{');
        (void)cli_json_bytes(&json, "text", batch->texts[i], batch->lengths[i]);
        for (size_t k = 0; k < 2; k++) {
            result r = result_of(both[k], i, batch->texts[i], batch->lengths[i]);
            cli_json_open(&json, k == 0 ? "a" : "b", '{');
            print_json_result(tokenizers[k], &r, &json);
            cli_json_close(&json, '}');
        }
        cli_json_close(&json, '}');
        (void)putchar('\n');
        return;
    }
    for (size_t k = 0; k < 2; k++) {
        result r = result_of(both[k], i, batch->texts[i], batch->lengths[i]);
        (void)printf("%c %5zu  ", k == 0 ? 'A' : 'B', r.count);
        print_cut(j, &r);
    }
}

static int encode_batch(void *context, const cli_texts *batch)
{
    job *j = context;
    if (j->second) return encode_pairs(j, batch);
    int code = encode(j, batch, j->tokenized);
    if (code == CLI_DONE && j->other) code = encode(j, batch, j->other_tokenized);
    if (code != CLI_DONE) return code;
    j->texts += (int64_t)batch->count;
    j->bytes += (int64_t)batch->bytes;
    j->tokens += (int64_t)embla_tokenized_count(j->tokenized);
    j->cut += (int64_t)embla_tokenized_cut(j->tokenized);
    if (j->other) j->other_tokens += (int64_t)embla_tokenized_count(j->other_tokenized);
    for (size_t i = 0; !j->count && i < batch->count; i++) {
        result r = result_of(j->tokenized, i, batch->texts[i], batch->lengths[i]);
        if (j->other)
            print_both(j, batch, i);
        else
            print_result(j, &r);
    }
    (void)fflush(stdout);
    return CLI_DONE;
}

/* ---- decoding ---- */

/* Parses tokens that are separated by spaces or commas. */
static int parse_tokens(const char *text, int32_t **tokens, size_t *count)
{
    size_t room = strlen(text) / 2 + 1;
    *count = 0;
    *tokens = malloc(room * sizeof **tokens);
    if (!*tokens) return cli_failed("no memory for %zu tokens", room);
    for (const char *at = text; *at;) {
        char *end = NULL;
        if (strchr(" ,\t[]", *at)) {
            at++;
            continue;
        }
        errno = 0;
        long number = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : -1;
        if (number < 0 || number > INT32_MAX || errno != 0)
            return cli_failed("'%.32s' is not a token; expected an integer from 0 to 2^31-1", at);
        (*tokens)[(*count)++] = (int32_t)number;
        at = end;
    }
    return CLI_DONE;
}

/* A token that the tokenizer does not have would leave a gap in the text. */
static int check_tokens(const job *j, const int32_t *tokens, size_t count)
{
    embla_tokenizer_info info;
    size_t i = 0;
    while (i < count && embla_tokenizer_text(j->tokenizer, tokens[i], NULL)) i++;
    if (i == count) return CLI_DONE;
    if (embla_tokenizer_describe(j->tokenizer, &info) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    return cli_failed("token %" PRId32 " at index %zu does not exist: the tokenizer has the tokens "
                      "0 to %" PRId64 "%s",
                      tokens[i], i, info.tokens - 1, tokens[i] < info.tokens ? ", with gaps" : "");
}

static int decode_line(const job *j, const char *line)
{
    int32_t *tokens = NULL;
    const char *text = NULL;
    size_t count = 0, length = 0;
    int code = parse_tokens(line, &tokens, &count);
    if (code == CLI_DONE) code = check_tokens(j, tokens, count);
    if (code == CLI_DONE && embla_detokenize(j->tokenized, tokens, count, !j->options.add_special,
                                             &text, &length) != EMBLA_OK)
        code = cli_failed("%s", embla_error());
    free(tokens);
    if (code != CLI_DONE) return code;
    if (j->json) {
        cli_json json = {0};
        cli_json_open(&json, NULL, '{');
        (void)cli_json_bytes(&json, "text", text, length);
        cli_json_close(&json, '}');
    } else {
        (void)fwrite(text, 1, length, stdout);
    }
    (void)putchar('\n');
    return CLI_DONE;
}

static int decode_lines(const job *j)
{
    cli_lines lines = {0};
    char *line = NULL;
    size_t length = 0;
    int code = CLI_DONE;
    while (code == CLI_DONE) {
        cli_line_status status = cli_lines_next(&lines, true, &line, &length);
        if (status == CLI_LINE_FAILED) code = CLI_FAILED;
        if (status != CLI_LINE) break;
        code = decode_line(j, line);
    }
    cli_lines_free(&lines);
    return code;
}

/* Joins the operands, so that tokens may be given as one or as several. */
static int decode_operands(const job *j, const cli_args *args)
{
    size_t room = 1, used = 0;
    for (size_t i = 1; i < args->operand_count; i++) room += strlen(args->operands[i]) + 1;
    char *line = malloc(room);
    if (!line) return cli_failed("no memory for %zu bytes", room);
    for (size_t i = 1; i < args->operand_count; i++) {
        size_t length = strlen(args->operands[i]);
        memcpy(line + used, args->operands[i], length);
        used += length;
        line[used++] = ' ';
    }
    line[used] = '\0';
    int code = decode_line(j, line);
    free(line);
    return code;
}

/* ---- the verb ---- */

static const char *format_name(size_t n)
{
    return n < FORMATS ? formats[n] : NULL;
}

/* A file of word vectors has words, which serve as a tokenizer. */
static int open_tokenizer(const cli_args *args, const char *path, embla_tokenizer **tokenizer,
                          embla_tokenized **tokenized)
{
    if (cli_open_tokenizer(path, NULL, tokenizer) != EMBLA_OK) {
        char error[CLI_SENTENCE];
        (void)snprintf(error, sizeof error, "%s", embla_error());
        if (!cli_word_tokenizer(args, path, tokenizer)) return cli_failed("%s", error);
    }
    if (embla_tokenized_new(*tokenizer, tokenized) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    return CLI_DONE;
}

static int set_up(job *j, const cli_args *args)
{
    const char *other = cli_args_text(args, "compare"), *format = cli_args_text(args, "format");
    while (strcmp(formats[j->format], format) != 0) j->format++;
    j->json = cli_args_flag(args, "json");
    j->quiet = cli_args_flag(args, "quiet");
    j->count = cli_args_flag(args, "count");
    j->decode = cli_args_flag(args, "decode");
    j->offsets = cli_args_flag(args, "offsets");
    j->color = cli_color_wanted(cli_args_text(args, "color"));
    if (j->decode && (j->count || other || cli_args_given(args, "file")))
        return cli_usage(
            "--decode prints text; it goes with neither --count, --compare nor --file");
    j->second = cli_args_text(args, "pair");
    if (j->second && (j->decode || other))
        return cli_usage("--pair encodes two texts; it goes with neither --decode nor --compare");
    if (j->second && strcmp(j->second, "-") == 0)
        return cli_usage("--pair takes a text; pass the first texts as lines of standard input");
    if (j->second && j->format == TEXT && !j->json)
        return cli_usage("--pair goes with --format ids or pieces or --json, not with text");
    if (j->second && j->format == AUTO)
        j->format = j->offsets || cli_is_terminal(CLI_STDOUT) ? PIECES : IDS;
    if (j->format == AUTO)
        j->format = j->offsets ? PIECES : cli_is_terminal(CLI_STDOUT) && !j->json ? TEXT : IDS;
    if (j->offsets && j->format != PIECES && !j->json)
        return cli_usage("--offsets goes with --format pieces or --json, not with --format %s",
                         formats[j->format]);
    j->options = (embla_tokenize_options){
        .add_special = cli_args_flag(args, "special"),
        .plain = cli_args_flag(args, "plain"),
        .strict = cli_args_flag(args, "strict"),
        .offsets = !j->count && (j->offsets || j->json || other || j->format == TEXT),
        .max_tokens = cli_args_size(args, "max-tokens"),
        .threads = (int)cli_args_count(args, "threads")};
    int code = open_tokenizer(args, args->operands[0], &j->tokenizer, &j->tokenized);
    if (code == CLI_DONE && other)
        code = open_tokenizer(args, other, &j->other, &j->other_tokenized);
    return code;
}

static int encode_all(job *j, const cli_args *args)
{
    cli_texts texts = {.take = encode_batch, .context = j};
    int code = cli_texts_read(&texts, args);
    cli_texts_free(&texts);
    return code;
}

static void print_totals(const job *j)
{
    cli_json json = {0};
    if (!j->json) {
        (void)printf("%" PRId64 "\n", j->tokens);
        if (j->other) (void)printf("%" PRId64 "\n", j->other_tokens);
        return;
    }
    cli_json_open(&json, NULL, '{');
    cli_json_whole(&json, "texts", j->texts);
    cli_json_whole(&json, "bytes", j->bytes);
    cli_json_whole(&json, "tokens", j->tokens);
    if (j->other) cli_json_whole(&json, "other_tokens", j->other_tokens);
    cli_json_close(&json, '}');
    (void)putchar('\n');
}

/* --compile: writes the tables of the tokenizer to a file. */
static int compile(const cli_args *args)
{
    const char *out = cli_args_text(args, "compile");
    if (args->operand_count > 1 || cli_args_given(args, "file"))
        return cli_usage("--compile converts a tokenizer; it needs no text");
    int code = cli_inputs_check(args, out);
    if (code == CLI_DONE) code = cli_out_check_new(out, cli_args_flag(args, "force"));
    if (code != CLI_DONE) return code;
    if (embla_tokenizer_compile(cli_input_path(args->operands[0]), out) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    if (cli_args_flag(args, "json")) {
        cli_json json = {0};
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "file", out);
        cli_json_close(&json, '}');
        (void)putchar('\n');
    }
    return CLI_DONE;
}

static int run_job(job *j, const cli_args *args)
{
    char cut[CLI_CELL];
    if (cli_args_given(args, "compile")) return compile(args);
    int code = set_up(j, args);
    if (code != CLI_DONE) return code;
    bool lines = args->operand_count == 1 ||
                 (args->operand_count == 2 && strcmp(args->operands[1], "-") == 0);
    if (j->decode) return lines ? decode_lines(j) : decode_operands(j, args);
    code = encode_all(j, args);
    if (code != CLI_DONE) return code;
    if (j->count) print_totals(j);
    if (j->cut > 0 && !j->quiet)
        cli_complain("--max-tokens %s has removed %s", cli_args_text(args, "max-tokens"),
                     cli_plural(j->cut, "token", cut));
    return CLI_DONE;
}

static int run(const cli_args *args)
{
    job j = {0};
    int code = run_job(&j, args);
    embla_tokenized_free(j.tokenized);
    embla_tokenized_free(j.other_tokenized);
    embla_tokenizer_free(j.tokenizer);
    embla_tokenizer_free(j.other);
    return code;
}

static const cli_option options[] = {
    CLI_TEXTS_FILE,
    {.name = "format",
     .value = "FORMAT",
     .standard = "auto",
     .choices = format_name,
     .help =
         "ids: one line of tokens for each text. pieces: one line for each token, with its "
         "string. text: the text, cut into tokens. auto means text on a terminal, otherwise ids"},
    {.name = "offsets", .help = "print where each token begins and ends in the text, in bytes"},
    {.name = "count", .help = "print only the number of tokens of all texts"},
    {.name = "decode", .help = "convert tokens to text; TEXT is tokens"},
    {.name = "compare",
     .value = "OTHER",
     .reads = CLI_READS_FILE,
     .help = "show how TOKENIZER (A) and OTHER (B) cut the same texts"},
    {.name = "pair",
     .value = "TEXT",
     .help = "encode each text together with this second one; use --special for the tokens "
             "between them"},
    {.name = "compile",
     .value = "OUT",
     .help = "write the tables of a tokenizer.json to OUT, a TOKENIZER that opens in milliseconds"},
    {.name = "force", .help = "replace OUT if it exists"},
    {.name = "special", .help = "add special tokens such as [CLS]; with --decode, print them"},
    {.name = "plain", .help = "treat special tokens in a text as ordinary text"},
    {.name = "strict", .help = "refuse text that is not valid UTF-8"},
    {.name = "max-tokens",
     .value = "N",
     .standard = "0",
     .count = true,
     .help = "keep at most N tokens of each text, and say how many were removed; 0 means all"},
    {.name = "color",
     .value = "WHEN",
     .standard = "auto",
     .choices = cli_color_name,
     .help = "use colour for --format text; auto means on a terminal, unless NO_COLOR is set"},
    {.name = NULL}};

const cli_verb cli_verb_tokens = {
    .name = "tokens",
    .synopsis = "TOKENIZER [TEXT]...",
    .operand = "TOKENIZER",
    .operands_least = 1,
    .operands_most = CLI_OPERANDS_MOST,
    .files = 1,
    .about = "convert text to the tokens of a model, and back",
    .text =
        "TOKENIZER is a tokenizer.json, a SentencePiece model, a GGUF file, a file of tiktoken's "
        "ranks, a vocab.txt, a file of --compile, or a folder with a tokenizer.json, a "
        "SentencePiece "
        "model or a vocab.txt. A file of word vectors has no tokenizer: texts are cut at spaces "
        "into its words. The tokens of the others are "
        "those that the "
        "library which wrote the file gives for the same text. With - as TEXT, or without TEXT and "
        "--file, each line of standard input is a text.\n\n"
        "Each part of a text that is not valid UTF-8 is replaced by U+FFFD, unless --strict is "
        "given. Nothing is truncated, unless --max-tokens is given.\n\n"
        "--json prints an object for each text: text, count, tokens, pieces, offsets in bytes, "
        "and special (true for tokens that --special has added). With --pair it also has types "
        "(type "
        "ids) and texts (1 or 2 for a token of the first or second text, otherwise 0). With "
        "--compare the members after text are in two objects, a and b.",
    .example = "embla tokens names emma --format pieces",
    .options = options,
    .run = run};
