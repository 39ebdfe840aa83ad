/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens become rows, rows become tokens, ranked rows are printed.
 *
 * For people a table: words escaped, a bar beside each score. For programs lines with tabs
 * between rank, token, id and score, and nothing else.
 */
#include "core/answers.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the table that is asked ---- */

/* What is worth a word goes where it does not mix with data. */
static void print_notes(const cli_model *model)
{
    size_t count;
    const char *const *notes = embla_checkpoint_notes(model->checkpoint, &count);
    if (model->vocab_error[0]) cli_complain("no words: %s", model->vocab_error);
    if (model->no_words[0]) cli_complain("no words: %s", model->no_words);
    for (size_t n = 0; n < count; n++) cli_complain("note: %s", notes[n]);
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
    if (!cli_args_flag(args, "quiet")) print_notes(&out->model);
    return CLI_DONE;
}

void cli_asked_free(cli_asked *asked)
{
    free(asked->first);
    free(asked->sharing);
    embla_table_free(asked->table);
    cli_model_free(&asked->model);
    *asked = (cli_asked){0};
}

int cli_asked_tokens(const cli_args *args, const cli_asked *asked, cli_tokens *tokens)
{
    int code = CLI_DONE;
    for (size_t i = 1; i < args->operand_count && code == CLI_DONE; i++) {
        const char *word = args->operands[i];
        if (strcmp(word, "-") == 0)
            code = cli_tokens_lines(tokens, asked->vocab, false, stdin);
        else
            code = cli_tokens_word(tokens, asked->vocab, word, strlen(word));
    }
    return code == CLI_DONE ? cli_tokens_finish(tokens, asked->vocab) : code;
}

/* ---- Model2Vec: the row of a token stands in a tensor ---- */

enum { ENTRIES = 512 }; /* read at a time */

/* Little-endian, as files keep it. */
static int64_t entry_of(const unsigned char *bytes, size_t size)
{
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;) value = value << 8 | bytes[i];
    return size == 8 ? (int64_t)value : (int32_t)(uint32_t)value;
}

/* The rows of count tokens, at most ENTRIES, from token on. */
static int read_entries(const cli_asked *asked, int64_t token, size_t count, int64_t *rows)
{
    const embla_tensor *mapping = &asked->model.mapping;
    unsigned char bytes[8 * ENTRIES];
    size_t size = strcmp(mapping->type, "I64") == 0 ? 8 : 4;
    if (strcmp(mapping->type, "I64") != 0 && strcmp(mapping->type, "I32") != 0)
        return cli_failed("tensor '%.128s' is %s: row numbers are I32 or I64", mapping->name,
                          mapping->type);
    if (embla_checkpoint_read(asked->model.checkpoint, mapping->name, token * (int64_t)size,
                              count * size, bytes) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    for (size_t i = 0; i < count; i++) rows[i] = entry_of(bytes + i * size, size);
    return CLI_DONE;
}

static int map_rows(const cli_asked *asked, const cli_tokens *tokens, int64_t *rows)
{
    int64_t most = cli_model_tokens_most(&asked->model);
    int code = CLI_DONE;
    for (size_t i = 0; i < tokens->count && code == CLI_DONE; i++) {
        int64_t token = tokens->ids[i];
        if (token < 0 || token >= most)
            return cli_failed("token %" PRId64 " at place %zu: the mapping has %" PRId64 " tokens",
                              token, i, most);
        code = read_entries(asked, token, 1, &rows[i]);
    }
    return code;
}

/* The library refuses the whole list for one that is outside, with a sentence that names
 * it, before it writes anything. */
static int check_rows(const cli_asked *asked, const int64_t *rows, size_t count)
{
    float nothing[1] = {0};
    bool outside = false, wide = asked->model.has_mapping;
    for (size_t i = 0; i < count; i++) {
        outside = outside || rows[i] < 0 || rows[i] >= embla_table_rows(asked->table);
        wide = wide || rows[i] != (int32_t)rows[i];
    }
    if (!outside) return CLI_DONE;
    embla_status status = EMBLA_OK;
    int32_t *tokens = wide ? NULL : malloc(count * sizeof *tokens);
    for (size_t i = 0; tokens && i < count; i++) tokens[i] = (int32_t)rows[i];
    if (tokens)
        status = embla_lookup(asked->table, tokens, count, NULL, nothing);
    else
        status = embla_lookup_rows(asked->table, rows, count, NULL, nothing);
    free(tokens);
    return cli_failed("%s", status == EMBLA_OK ? "a row is outside the table" : embla_error());
}

int cli_asked_rows(const cli_asked *asked, const cli_tokens *tokens, int64_t **rows)
{
    *rows = NULL;
    if (tokens->count == 0) return CLI_DONE;
    int64_t *list = malloc(tokens->count * sizeof *list);
    if (!list) return cli_failed("no memory for %zu rows", tokens->count);
    memcpy(list, tokens->ids, tokens->count * sizeof *list);
    int code = asked->model.has_mapping ? map_rows(asked, tokens, list) : CLI_DONE;
    if (code == CLI_DONE) code = check_rows(asked, list, tokens->count);
    if (code == CLI_DONE)
        *rows = list;
    else
        free(list);
    return code;
}

/* A row that is outside is `doctor`'s business: no token of it is ever printed. */
static void turn(cli_asked *asked, int64_t token, const int64_t *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t row = entries[i];
        if (row < 0 || row >= embla_table_rows(asked->table)) continue;
        if (asked->sharing[row]++ == 0) asked->first[row] = token + (int64_t)i;
    }
}

int cli_asked_turn(cli_asked *asked)
{
    int64_t entries[ENTRIES], most = cli_model_tokens_most(&asked->model);
    size_t rows = (size_t)embla_table_rows(asked->table);
    int code = CLI_DONE;
    if (!asked->model.has_mapping || asked->first) return CLI_DONE;
    asked->first = calloc(rows, sizeof *asked->first);
    asked->sharing = calloc(rows, sizeof *asked->sharing);
    if (!asked->first || !asked->sharing) return cli_failed("no memory for %zu rows", rows);
    for (int64_t at = 0; at < most && code == CLI_DONE; at += ENTRIES) {
        size_t count = most - at < ENTRIES ? (size_t)(most - at) : ENTRIES;
        code = read_entries(asked, at, count, entries);
        if (code == CLI_DONE) turn(asked, at, entries, count);
    }
    return code;
}

int64_t cli_asked_token(const cli_asked *asked, int64_t row, int64_t *sharing)
{
    int64_t tokens = asked->sharing ? asked->sharing[row] : 1;
    if (sharing) *sharing = tokens;
    if (tokens == 0) return -1;
    return asked->first ? asked->first[row] : row;
}

int cli_asked_svg(const cli_args *args, const cli_asked *asked, int (*draw)(const void *job),
                  const void *job)
{
    const char *path = cli_args_text(args, "svg");
    if (!path) return CLI_DONE;
    if (cli_model_has_file(&asked->model, path))
        return cli_failed("%s is the file that is read; it is not overwritten", path);
    int out = dup(STDOUT_FILENO);
    if (out < 0) return cli_failed("no way to write %s beside standard output", path);
    int code = cli_out_to(path, cli_args_flag(args, "force"));
    if (code == CLI_DONE) {
        code = cli_out_done(draw(job)); /* says what went wrong */
        if (dup2(out, STDOUT_FILENO) < 0) code = cli_failed("%s could not be written", path);
    }
    (void)close(out);
    return code;
}

/* ---- tokens in print ---- */

bool cli_utf8_wanted(void)
{
    (void)setlocale(LC_CTYPE, "");
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static const char *word_of(const cli_asked *asked, int64_t token, size_t *length)
{
    *length = 0;
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
        char *hex = malloc(2 * length + 1); /* what the text could not say */
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

int cli_rank_set_up(const cli_args *args, const cli_asked *asked, cli_rank *out)
{
    const char *format = cli_args_text(args, "format");
    int64_t all = embla_table_rows(asked->table), top = cli_args_count(args, "top");
    int64_t rows = cli_args_given(args, "rows") ? cli_args_count(args, "rows") : all;
    bool json = cli_args_flag(args, "json"), people = isatty(STDOUT_FILENO);
    if (top < 1) return cli_usage("--top: 0 rows are no answer; 1 is the least");
    if (rows < 1) return cli_usage("--rows: in 0 rows nothing is found; 1 is the least");
    if (json && strcmp(format, "auto") != 0)
        return cli_usage("--json and --format %s exclude each other", format);
    if (strcmp(format, "auto") != 0) people = strcmp(format, "table") == 0;
    if (rows > all) rows = all;
    *out = (cli_rank){.asked = asked,
                      .form = json     ? CLI_RANK_JSON
                              : people ? CLI_RANK_TABLE
                                       : CLI_RANK_TEXT,
                      .quiet = cli_args_flag(args, "quiet"),
                      .utf8 = cli_utf8_wanted(),
                      .rows = rows,
                      .top = (size_t)(top < rows ? top : rows),
                      .threads = (int)cli_args_count(args, "threads")};
    return CLI_DONE;
}

static size_t count_of(const cli_rank *rank, const embla_neighbour *found)
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

/* Digits that tell rows apart, in as many columns for small scores as for large ones. */
static int score_text(double score, double largest, char text[CLI_CELL])
{
    return snprintf(text, CLI_CELL, largest < 1e5 ? "%.4f" : "%.6g", score);
}

static double largest_of(const embla_neighbour *found, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs(found[i].score));
    return largest;
}

enum { BAR = 12 }; /* columns of one that is full */

/* In eighths of a column where there are signs for them; a score below zero has none. padded:
 * something comes after it. */
static void print_bar(double part, bool utf8, bool padded)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int steps = part > 0 ? (int)(8 * BAR * fmin(part, 1) + 0.5) : 0;
    int full = utf8 ? steps / 8 : (steps + 4) / 8, rest = utf8 ? steps % 8 : 0;
    if (full + rest > 0 || padded) printf("  ");
    for (int i = 0; i < full; i++) fputs(utf8 ? "█" : "#", stdout);
    fputs(eighths[rest], stdout);
    if (padded) printf("%*s", BAR - full - (rest > 0), "");
}

typedef struct {
    int rank, token, id, score; /* columns */
} widths;

static void print_line(const cli_rank *rank, const embla_neighbour *found, size_t n,
                       const widths *wide, double largest, double bars)
{
    char word[CLI_WORD_TEXT], score[CLI_CELL];
    int64_t sharing, token = cli_asked_token(rank->asked, found->row, &sharing);
    size_t columns = cli_token_show(rank->asked, token, !rank->utf8, CLI_WORD_COLUMNS, word);
    (void)score_text(found->score, largest, score);
    printf("%*zu  %s%*s  %*" PRId64 "  %*s", wide->rank, n, word, wide->token - (int)columns, "",
           wide->id, token, wide->score, score);
    print_bar(bars > 0 ? found->score / bars : 0, rank->utf8, sharing > 1);
    if (sharing > 1) printf("  and %s", cli_plural(sharing - 1, "other token", score));
    putchar('\n');
}

static int wider(int a, int b)
{
    return a > b ? a : b;
}

static void print_table(const cli_rank *rank, const embla_neighbour *found, size_t count,
                        double bars)
{
    char text[CLI_WORD_TEXT], cell[CLI_CELL];
    double largest = largest_of(found, count);
    widths wide = {(int)strlen("rank"), (int)strlen("token"), (int)strlen("id"),
                   (int)strlen("score")};
    for (size_t i = 0; i < count; i++) {
        int64_t token = cli_asked_token(rank->asked, found[i].row, NULL);
        size_t columns = cli_token_show(rank->asked, token, !rank->utf8, CLI_WORD_COLUMNS, text);
        wide.token = wider(wide.token, (int)columns);
        wide.id = wider(wide.id, snprintf(cell, sizeof cell, "%" PRId64, token));
        wide.score = wider(wide.score, score_text(found[i].score, largest, cell));
    }
    wide.rank = wider(wide.rank, snprintf(cell, sizeof cell, "%zu", count));
    printf("%*s  %-*s  %*s  %*s\n", wide.rank, "rank", wide.token, "token", wide.id, "id",
           wide.score, "score");
    for (size_t i = 0; i < count; i++)
        print_line(rank, &found[i], i + 1, &wide, largest, bars > 0 ? bars : largest);
    if (count == 0) printf("%*s  there is no other row\n", wide.rank, "-");
}

void cli_rank_print(const cli_rank *rank, const embla_neighbour *found, double bars)
{
    size_t count = count_of(rank, found);
    if (rank->form == CLI_RANK_TEXT)
        print_text(rank, found, count);
    else
        print_table(rank, found, count, bars);
}

void cli_rank_json(const cli_rank *rank, const embla_neighbour *found, cli_json *json)
{
    size_t count = count_of(rank, found);
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
        cli_out_fact("left out", "%s that hold%s a NaN or an infinity", rows,
                     report->nonfinite == 1 ? "s" : "");
    } else if (rank->form == CLI_RANK_TEXT) {
        cli_complain("note: %s left out that hold%s a NaN or an infinity", rows,
                     report->nonfinite == 1 ? "s" : "");
    }
}
