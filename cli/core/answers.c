/* SPDX-License-Identifier: Apache-2.0 */
/* Converts tokens to rows and back, and prints ranked rows.
 *
 * The table format is for people: escaped words and a bar for each score. The text format is for
 * programs: rank, token, id and score, separated by tabs.
 */
#include "core/answers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ending.h"
#include "core/inputs.h"
#include "host/host.h"

/* ---- the queried table ---- */

static void print_notes(const cli_args *args, const cli_model *model)
{
    bool quiet = cli_args_flag(args, "quiet");
    if (model->vocab_error[0] && !quiet) cli_complain("no words: %s", model->vocab_error);
    if (model->no_words[0] && !quiet) cli_complain("no words: %s", model->no_words);
    cli_print_notes(args, model->checkpoint);
}

int cli_asked_open(const cli_args *args, const char *path, cli_asked *out)
{
    *out = (cli_asked){0};
    int code = cli_model_open(args, path, &out->model);
    if (code != CLI_DONE) return code;
    if (out->model.no_matrix) return cli_failed("%s", out->model.table_error);
    if (embla_table_open(out->model.checkpoint, NULL, NULL, &out->table) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    out->vocab = out->model.vocab;
    if (embla_subwords_open(out->model.checkpoint, &out->subwords) != EMBLA_OK)
        out->subwords = NULL;
    print_notes(args, &out->model);
    return CLI_DONE;
}

void cli_asked_free(cli_asked *asked)
{
    free(asked->first);
    free(asked->sharing);
    for (size_t i = 0; i < asked->unseen.count; i++) free(asked->unseen.words[i]);
    free(asked->unseen.words);
    embla_subwords_free(asked->subwords);
    embla_table_free(asked->table);
    cli_model_free(&asked->model);
    *asked = (cli_asked){0};
}

/* Notes that a word with a space before it is another token: most words in a text have one. */
static void note_space(const embla_vocab *vocab, const char *word)
{
    char spaced[64];
    int32_t token;
    if (!vocab || word[0] == ' ' || word[0] == '#' || word[0] == '\\' || strlen(word) > 60) return;
    (void)snprintf(spaced, sizeof spaced, " %s", word);
    if (embla_vocab_find(vocab, word, strlen(word), &token) == EMBLA_OK &&
        embla_vocab_find(vocab, spaced, strlen(spaced), &token) == EMBLA_OK)
        cli_complain("note: '%s', with a space before it, is another token (#%" PRId32 ")", spaced,
                     token);
}

int cli_asked_tokens(const cli_args *args, const cli_asked *asked, cli_tokens *tokens)
{
    int code = CLI_DONE;
    for (size_t i = 1; i < args->operand_count && code == CLI_DONE; i++) {
        const char *word = args->operands[i];
        bool lines = strcmp(word, "-") == 0;
        code = lines ? cli_tokens_lines(tokens, asked->vocab, false)
                     : cli_tokens_word(tokens, asked->vocab, word, strlen(word));
        if (code == CLI_DONE && !lines && !cli_args_flag(args, "quiet"))
            note_space(asked->vocab, word);
    }
    if (asked->unseen.count > 0 && !tokens->whole && !cli_args_flag(args, "quiet"))
        cli_complain("note: '%.60s'%s not in the vocabulary; vectors of such words are means of "
                     "their n-grams",
                     asked->unseen.words[0], asked->unseen.count > 1 ? " and others are" : " is");
    return code == CLI_DONE ? cli_tokens_finish(tokens, asked->vocab) : code;
}

/* ---- tokens to rows, rows to tokens ---- */

/* Tokens are int32_t. A larger number can be a row of a giant table, but not a mapped token. */
static int find_rows(const cli_asked *asked, const cli_tokens *tokens, int64_t *rows,
                     int32_t *narrow)
{
    size_t count = tokens->count, wide = count; /* index of the first that does not fit int32_t */
    for (size_t i = count; i-- > 0;) {
        narrow[i] = (int32_t)tokens->ids[i];
        if (narrow[i] != tokens->ids[i] && !cli_unseen_word(&asked->unseen, tokens->ids[i]))
            wide = i;
    }
    if (wide < count && asked->model.facts.mapping)
        return cli_failed("token %" PRId64 " at index %zu is out of range: the mapping has %" PRId64
                          " tokens",
                          tokens->ids[wide], wide, asked->model.facts.tokens);
    memcpy(rows, tokens->ids, count * sizeof *rows);
    for (size_t i = 0; i < count; i++) /* checked below as row 0, which every table has */
        if (cli_unseen_word(&asked->unseen, tokens->ids[i])) rows[i] = narrow[i] = 0;
    embla_status status = wide < count ? embla_table_check_rows(asked->table, rows, count)
                                       : embla_table_find_rows(asked->table, narrow, count, rows);
    for (size_t i = 0; i < count; i++)
        if (cli_unseen_word(&asked->unseen, tokens->ids[i])) rows[i] = -1;
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

void cli_asked_allow_unseen(cli_asked *asked, cli_tokens *tokens)
{
    bool fits =
        asked->subwords && embla_subwords_dim(asked->subwords) == embla_table_dim(asked->table);
    tokens->unseen = fits && asked->vocab ? &asked->unseen : NULL;
}

int cli_asked_allow_text(const cli_args *args, bool whole, cli_asked *asked, cli_tokens *tokens)
{
    int code = cli_model_use_tokenizer(args, &asked->model);
    if (code != CLI_DONE) return code;
    asked->vocab = asked->model.vocab;
    tokens->texts = &asked->model;
    tokens->notes = !cli_args_flag(args, "quiet");
    tokens->whole = whole && !tokens->unseen;
    if (tokens->whole) tokens->unseen = &asked->unseen;
    return CLI_DONE;
}

int cli_asked_vectors(const cli_asked *asked, const int64_t *tokens, const int64_t *rows,
                      size_t count, int threads, float *out)
{
    const embla_lookup_options options = {.threads = threads};
    size_t dim = embla_table_dim(asked->table), end;
    embla_status status = EMBLA_OK;
    for (size_t i = 0; i < count && status == EMBLA_OK; i = end) {
        for (end = i; end < count && rows[end] >= 0;) end++;
        if (end > i) {
            status = embla_lookup_rows(asked->table, rows + i, end - i, &options, out + i * dim);
        } else {
            const char *word = cli_unseen_word(&asked->unseen, tokens[i]);
            end = i + 1;
            if (asked->subwords)
                status =
                    embla_subwords_vector(asked->subwords, word, strlen(word), out + i * dim, NULL);
            else if (cli_model_encode(&asked->model, word, strlen(word), dim, out + i * dim) !=
                     CLI_DONE)
                return CLI_FAILED;
        }
    }
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

int cli_asked_rows(const cli_asked *asked, const cli_tokens *tokens, int64_t **rows)
{
    *rows = NULL;
    if (tokens->count == 0) return CLI_DONE;
    int64_t *list = malloc(tokens->count * sizeof *list);
    int32_t *narrow = malloc(tokens->count * sizeof *narrow);
    int code = list && narrow ? CLI_DONE : cli_failed("no memory for %zu rows", tokens->count);
    if (code == CLI_DONE) code = find_rows(asked, tokens, list, narrow);
    free(narrow);
    if (code == CLI_DONE)
        *rows = list;
    else
        free(list);
    return code;
}

int cli_asked_check_row(const cli_asked *asked, int64_t token, const float *row,
                        const char *trouble)
{
    char word[CLI_WORD_TEXT];
    for (size_t i = 0; i < embla_table_dim(asked->table); i++) {
        if (isfinite(row[i])) continue;
        (void)cli_token_show(asked, token, true, CLI_WORD_COLUMNS, word);
        return cli_failed("token %" PRId64 " (%s) %s: number %zu of its row is %s", token, word,
                          trouble, i,
                          isnan(row[i]) ? "NaN"
                          : row[i] < 0  ? "-infinity"
                                        : "infinity");
    }
    return CLI_DONE;
}

int cli_asked_find_tokens(cli_asked *asked)
{
    size_t rows = (size_t)embla_table_rows(asked->table);
    if (!asked->model.facts.mapping || asked->first) return CLI_DONE;
    asked->first = malloc(rows * sizeof *asked->first);
    asked->sharing = malloc(rows * sizeof *asked->sharing);
    if (!asked->first || !asked->sharing) return cli_failed("no memory for %zu rows", rows);
    return cli_first_tokens(asked->table, (int64_t)rows, asked->first, asked->sharing);
}

int64_t cli_asked_token(const cli_asked *asked, int64_t row, int64_t *sharing)
{
    int64_t tokens = asked->sharing ? asked->sharing[row] : 1;
    if (sharing) *sharing = tokens;
    if (tokens == 0) return -1;
    return asked->first ? asked->first[row] : row;
}

int cli_asked_check_plot(const cli_args *args)
{
    const char *path = cli_args_text(args, "plot");
    if (path && strcmp(path, "-") == 0)
        return cli_usage("--plot needs the name of a file: standard output has the report");
    int code = path ? cli_inputs_check(args, path) : CLI_DONE;
    if (code == CLI_DONE) code = cli_ending_check("plot", path, "SVG");
    return path && code == CLI_DONE ? cli_out_check(path, cli_args_flag(args, "force")) : code;
}

int cli_asked_plot(const cli_args *args, int (*draw)(const void *job), const void *job)
{
    const char *path = cli_args_text(args, "plot");
    if (!path) return CLI_DONE;
    int code = cli_out_to(path, cli_args_flag(args, "force"));
    return code == CLI_DONE ? cli_out_done(draw(job)) : code; /* draw prints the message */
}

/* ---- printing tokens ---- */

bool cli_utf8_wanted(void)
{
    return cli_host_utf8();
}

static const char *word_of(const cli_asked *asked, int64_t token, size_t *length)
{
    *length = 0;
    const char *unseen = cli_unseen_word(&asked->unseen, token);
    if (unseen) *length = strlen(unseen);
    if (unseen) return unseen;
    return cli_word_of(asked->vocab, token, length);
}

size_t cli_token_show(const cli_asked *asked, int64_t token, bool ascii, size_t columns,
                      char text[CLI_WORD_TEXT])
{
    size_t length;
    const char *word = word_of(asked, token, &length);
    if (word) return cli_word_show(word, length, ascii, columns, text);
    return (size_t)snprintf(text, CLI_WORD_TEXT, token < 0 ? "-" : "#%" PRId64, token);
}

void cli_token_write(const cli_asked *asked, int64_t token)
{
    size_t length;
    const char *word = word_of(asked, token, &length);
    if (word)
        (void)cli_word_write(word, length, stdout);
    else if (token >= 0)
        printf("#%" PRId64, token);
}

void cli_token_json(const cli_asked *asked, int64_t token, cli_json *json)
{
    size_t length;
    const char *word = word_of(asked, token, &length);
    if (!word) {
        cli_json_text(json, "token", NULL);
    } else if (!cli_json_bytes(json, "token", word, length)) {
        char *hex = malloc(2 * length + 1); /* the exact bytes */
        for (size_t b = 0; hex && b < length; b++)
            snprintf(hex + 2 * b, 3, "%02x", (unsigned)(unsigned char)word[b]);
        cli_json_text(json, "token_hex", hex);
        free(hex);
    }
}

/* ---- ranked rows ---- */

static const char *const formats[] = {"auto", "table", "text"};

const char *cli_rank_format(size_t n)
{
    return n < sizeof formats / sizeof formats[0] ? formats[n] : NULL;
}

int cli_rank_read_form(const cli_args *args, cli_rank_form *out)
{
    const char *format = cli_args_text(args, "format");
    bool json = cli_args_flag(args, "json"), people = cli_is_terminal(CLI_STDOUT);
    if (json && strcmp(format, "auto") != 0)
        return cli_usage("--json and --format %s cannot be used together", format);
    if (strcmp(format, "auto") != 0) people = strcmp(format, "table") == 0;
    *out = json ? CLI_RANK_JSON : people ? CLI_RANK_TABLE : CLI_RANK_TEXT;
    return CLI_DONE;
}

int cli_rank_set_up(const cli_args *args, bool searches, const cli_asked *asked, cli_rank *out)
{
    int64_t all = embla_table_rows(asked->table), top = cli_args_count(args, "top");
    int64_t rows = searches && cli_args_given(args, "rows") ? cli_args_count(args, "rows") : all;
    cli_rank_form form;
    int code = cli_rank_read_form(args, &form);
    if (code != CLI_DONE) return code;
    if (rows > all) rows = all;
    *out = (cli_rank){.asked = asked,
                      .form = form,
                      .quiet = cli_args_flag(args, "quiet"),
                      .utf8 = cli_utf8_wanted(),
                      .rows = rows,
                      .top = (size_t)(top < rows || !searches ? top : rows),
                      .threads = (int)cli_args_count(args, "threads")};
    return CLI_DONE;
}

static size_t count_found(const cli_rank *rank, const embla_neighbour *found)
{
    size_t count = 0;
    while (count < rank->top && found[count].row >= 0) count++;
    return count;
}

static void print_text(const cli_rank *rank, const embla_neighbour *found, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t token = cli_asked_token(rank->asked, found[i].row, NULL);
        printf("%zu\t", i + 1);
        cli_token_write(rank->asked, token);
        printf("\t%" PRId64 "\t%.9g\n", token, found[i].score);
    }
}

/* Large scores get significant digits, so that columns stay narrow. */
static int format_score(double score, double largest, char text[CLI_CELL])
{
    return snprintf(text, CLI_CELL, largest < 1e5 ? "%.4f" : "%.6g", score);
}

static double largest_of(const embla_neighbour *found, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs(found[i].score));
    return largest;
}

enum { BAR = 12 }; /* columns of a full bar; fewer on a narrow terminal */

typedef struct {
    int rank, token, id, score, bar; /* columns */
} widths;

static void print_line(const cli_rank *rank, const embla_neighbour *found, size_t n,
                       const widths *wide, double largest, double bars)
{
    char word[CLI_WORD_TEXT], score[CLI_CELL];
    int64_t sharing, token = cli_asked_token(rank->asked, found->row, &sharing);
    size_t columns = cli_token_show(rank->asked, token, !rank->utf8, CLI_WORD_COLUMNS, word);
    (void)format_score(found->score, largest, score);
    printf("%*zu  %s%*s  %*" PRId64 "  %*s", wide->rank, n, word, wide->token - (int)columns, "",
           wide->id, token, wide->score, score);
    cli_out_bar(bars > 0 ? found->score / bars : 0, wide->bar, rank->utf8, sharing > 1);
    if (sharing > 1) printf("  and %s", cli_plural(sharing - 1, "other token", score));
    putchar('\n');
}

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

static void print_table(const cli_rank *rank, const embla_neighbour *found, size_t count,
                        double bars)
{
    char text[CLI_WORD_TEXT], cell[CLI_CELL];
    double largest = largest_of(found, count);
    widths wide = {(int)strlen("rank"), (int)strlen("token"), (int)strlen("id"),
                   (int)strlen("score"), BAR};
    for (size_t i = 0; i < count; i++) {
        int64_t token = cli_asked_token(rank->asked, found[i].row, NULL);
        size_t columns = cli_token_show(rank->asked, token, !rank->utf8, CLI_WORD_COLUMNS, text);
        wide.token = max_int(wide.token, (int)columns);
        wide.id = max_int(wide.id, snprintf(cell, sizeof cell, "%" PRId64, token));
        wide.score = max_int(wide.score, format_score(found[i].score, largest, cell));
    }
    wide.rank = max_int(wide.rank, snprintf(cell, sizeof cell, "%zu", count));
    wide.bar = cli_out_width() - wide.rank - wide.token - wide.id - wide.score - 8;
    wide.bar = wide.bar > BAR ? BAR : max_int(wide.bar, 0);
    printf("%*s  %-*s  %*s  %*s\n", wide.rank, "rank", wide.token, "token", wide.id, "id",
           wide.score, "score");
    for (size_t i = 0; i < count; i++)
        print_line(rank, &found[i], i + 1, &wide, largest, bars > 0 ? bars : largest);
    if (count == 0) printf("%*s  no other row\n", wide.rank, "-");
}

void cli_rank_print(const cli_rank *rank, const embla_neighbour *found, double bars)
{
    size_t count = count_found(rank, found);
    if (rank->form == CLI_RANK_TEXT)
        print_text(rank, found, count);
    else
        print_table(rank, found, count, bars);
}

void cli_rank_json(const cli_rank *rank, const embla_neighbour *found, cli_json *json)
{
    size_t count = count_found(rank, found);
    cli_json_open(json, "neighbours", '[');
    for (size_t i = 0; i < count; i++) {
        int64_t sharing, token = cli_asked_token(rank->asked, found[i].row, &sharing);
        cli_json_open(json, NULL, '{');
        cli_json_whole(json, "rank", (int64_t)i + 1);
        cli_token_json(rank->asked, token, json);
        cli_json_whole(json, "id", token);
        cli_json_whole(json, "row", found[i].row);
        if (rank->asked->sharing) cli_json_whole(json, "tokens", sharing);
        cli_json_real(json, "score", found[i].score);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

void cli_rank_report(const cli_rank *rank, const embla_near_report *report)
{
    char rows[CLI_CELL];
    if (report->nonfinite == 0 || rank->quiet) return;
    (void)cli_plural(report->nonfinite, "row", rows);
    if (rank->form == CLI_RANK_TABLE) {
        putchar('\n');
        cli_out_fact("left out", "%s with a NaN or an infinity", rows);
    } else if (rank->form == CLI_RANK_TEXT) {
        cli_complain("note: skipped %s with a NaN or an infinity", rows);
    }
}
