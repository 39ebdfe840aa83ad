/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tokens from the command line and from standard input.
 *
 * A word is looked up as typed. Only `#` with a number is never a word, so that every token has one
 * spelling that always works. A backslash in front makes anything a word.
 */
#include "core/token.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "embla_lab.h"

#include "core/complain.h"
#include "core/inputs.h"
#include "core/line_input.h"
#include "core/model_text.h"
#include "core/out.h"
#include "core/visible.h"
#include "host/paths.h"

/* ---- lists of tokens ---- */

void cli_tokens_free(cli_tokens *tokens)
{
    free(tokens->ids);
    for (size_t i = 0; i < CLI_MISSING_NAMED; i++) free(tokens->missing_words[i]);
    *tokens = (cli_tokens){.unseen = tokens->unseen,
                           .texts = tokens->texts,
                           .notes = tokens->notes,
                           .whole = tokens->whole,
                           .strict = tokens->strict,
                           .least = tokens->least,
                           .split = tokens->split};
}

int cli_tokens_add(cli_tokens *tokens, int64_t id)
{
    if (tokens->count == tokens->room) {
        size_t room = tokens->room > 0 ? 2 * tokens->room : 64;
        int64_t *ids =
            room < SIZE_MAX / sizeof *ids ? realloc(tokens->ids, room * sizeof *ids) : NULL;
        if (!ids) return cli_failed("no memory for %zu tokens", room);
        tokens->ids = ids;
        tokens->room = room;
    }
    tokens->ids[tokens->count++] = id;
    return CLI_DONE;
}

/* Parses an integer of exactly length bytes, with an optional minus. */
static bool parse_integer(const char *text, size_t length, int64_t *out)
{
    size_t at = length > 0 && text[0] == '-';
    int64_t value = 0;
    if (at == length) return false;
    for (; at < length; at++) {
        if (text[at] < '0' || text[at] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, text[at] - '0', &value)) /* for INT64_MIN */
            return false;
    }
    if (text[0] != '-' && value == INT64_MIN) return false;
    *out = text[0] == '-' ? value : -value;
    return true;
}

/* Whether text is an integer of any size. */
static bool is_integer(const char *text, size_t length)
{
    size_t at = length > 0 && text[0] == '-';
    for (; at < length && text[at] >= '0' && text[at] <= '9'; at++) continue;
    return at == length && length > (text[0] == '-');
}

static int out_of_range(const char *text, size_t length)
{
    return cli_failed("token %.*s is out of range: no table has so many rows",
                      (int)(length < 60 ? length : 60), text);
}

/* An empty entry is an error, because it would shift all entries after it. */
int cli_tokens_list(cli_tokens *tokens, const char *text, const char *where)
{
    static const char spaces[] = " \t\r\n", ends[] = ", \t\r\n";
    const char *all = text + strspn(text, spaces);
    bool due = true;
    for (text = all; due || *text;) {
        size_t length = strcspn(text, ends);
        bool marked = text[0] == '#';
        int64_t id;
        if (length == 0)
            return cli_usage("%s: '%.60s' has an empty entry; expected a token number such as 5",
                             where, all);
        if (!parse_integer(text + marked, length - marked, &id)) {
            if (is_integer(text + marked, length - marked))
                return out_of_range(text + marked, length - marked);
            return cli_usage("%s: '%.*s' is not a token number such as 5", where,
                             (int)(length < 60 ? length : 60), text);
        }
        int code = cli_tokens_add(tokens, id);
        if (code != CLI_DONE) return code;
        text += length;
        text += strspn(text, spaces);
        due = *text == ',';
        if (due) text++;
        if (due) text += strspn(text, spaces);
    }
    return CLI_DONE;
}

/* ---- missing words ---- */

enum { HINT = 256, HINTS = 3, HINT_WORD = 60, SHOWN = 32 };

/* Writes a word as a user would type it, with a space for a leading U+2581 or U+0120. Returns its
 * length. */
static size_t typed_as(const char *word, size_t length, char out[HINT_WORD + 1])
{
    static const char *const signs[] = {"\xe2\x96\x81", "\xc4\xa0"};
    size_t sign = 0, used = 0;
    for (size_t i = 0; i < 2 && sign == 0; i++)
        if (length >= strlen(signs[i]) && memcmp(word, signs[i], strlen(signs[i])) == 0)
            sign = strlen(signs[i]);
    if (sign > 0) out[used++] = ' ';
    for (size_t at = sign; at < length && used < HINT_WORD; at++) out[used++] = word[at];
    out[used] = '\0';
    return used;
}

/* Whether two words differ only in case and in the leading space. */
static bool same_letters(const char *a, size_t m, const char *b, size_t n)
{
    size_t skip_a = m > 0 && a[0] == ' ', skip_b = n > 0 && b[0] == ' ';
    return m - skip_a == n - skip_b && strncasecmp(a + skip_a, b + skip_b, m - skip_a) == 0;
}

/* "; did you mean ' cat', with a space?" if only the leading space or the case differs. "; did you
 * mean 'queen' or 'queer'?" for other mistakes. "" if no word is near. */
static const char *hint(const embla_vocab *vocab, const char *word, size_t length, char text[HINT])
{
    int32_t tokens[HINTS];
    size_t found = embla_vocab_suggest(vocab, word, length, HINTS, tokens), used = 0;
    bool spaced = length > 0 && word[0] == ' ';
    text[0] = '\0';
    for (size_t i = 0; i < found; i++) {
        char other[HINT_WORD + 1];
        size_t bytes = 0;
        const char *stored = embla_vocab_word(vocab, tokens[i], &bytes);
        size_t count = typed_as(stored, bytes, other);
        bool only = i == 0 && same_letters(word, length, other, count),
             space_differs = spaced != (other[0] == ' ');
        if (only) found = 1;
        used += (size_t)snprintf(text + used, HINT - used, "%s'%s'%s",
                                 i == 0           ? "; did you mean "
                                 : i + 1 == found ? " or "
                                                  : ", ",
                                 other,
                                 !only || !space_differs ? ""
                                 : spaced                ? ", without the space"
                                                         : ", with a space");
    }
    if (found > 0) snprintf(text + used, HINT - used, "?");
    return text;
}

/* "; for text name a tokenizer with --tokenizer FILE" if a verb takes text. */
static const char *text_hint(const cli_tokens *tokens)
{
    return tokens->texts && !cli_model_tokenizer(tokens->texts)
               ? "; for text name a tokenizer: --tokenizer FILE"
               : "";
}

/* Keeps a missing word, so that one message names several. */
static int add_missing(cli_tokens *tokens, const char *word, size_t length)
{
    if (tokens->missing++ >= CLI_MISSING_NAMED) return CLI_DONE;
    char **place = &tokens->missing_words[tokens->missing - 1];
    *place = malloc(length + 1);
    if (!*place) return cli_failed("no memory for a word of %zu bytes", length);
    memcpy(*place, word, length);
    (*place)[length] = '\0';
    tokens->missing_lengths[tokens->missing - 1] = length;
    return CLI_DONE;
}

enum { PIECES = 12 }; /* of a spelling that is shown */

/* "; it can be spelled with 4 tokens: e m m a": the longest token first, from the left. "" if it
 * cannot. A tokenizer may cut the word in another way. */
static const char *spelling(const embla_vocab *vocab, const char *word, size_t length,
                            char text[HINT])
{
    char list[HINT / 2] = "";
    size_t used = 0, pieces = 0;
    text[0] = '\0';
    for (size_t at = 0, n; at < length; at += n) {
        int32_t token;
        for (n = length - at; n > 0; n--)
            if (embla_vocab_find(vocab, word + at, n, &token) == EMBLA_OK) break;
        char piece[CLI_WORD_TEXT];
        if (n == 0 || ++pieces > PIECES) return text;
        (void)cli_word_show(word + at, n, false, SHOWN, piece);
        if (used + strlen(piece) + 2 > sizeof list) return text;
        used += (size_t)snprintf(list + used, sizeof list - used, " %s", piece);
    }
    if (pieces > 1)
        (void)snprintf(text, HINT, "; it can be spelled with %zu tokens:%s", pieces, list);
    return text;
}

enum { LETTERS = 10 }; /* fewer single characters are not an alphabet */

/* Whether all words are single characters, except names such as <bos>. */
static bool has_letters_only(const embla_vocab *vocab)
{
    size_t count = 0, letters = 0;
    const embla_word *words = embla_vocab_words(vocab, &count);
    for (size_t i = 0; i < count; i++) {
        const char *text = words[i].bytes;
        const size_t length = words[i].length;
        bool name = length > 2 && ((text[0] == '<' && text[length - 1] == '>') ||
                                   (text[0] == '[' && text[length - 1] == ']'));
        if (!name && embla_utf8_length(text, length) != length) return false;
        letters += !name;
    }
    return letters >= LETTERS;
}

/* The first character that a vocabulary of letters does not have, and its length. */
static const char *missing_letter(const embla_vocab *vocab, const char *word, size_t length,
                                  size_t *bytes)
{
    int32_t token;
    for (size_t at = 0; at < length; at += *bytes) {
        *bytes = embla_utf8_length(word + at, length - at);
        if (*bytes == 0) *bytes = 1;
        if (embla_vocab_find(vocab, word + at, *bytes, &token) != EMBLA_OK) return word + at;
    }
    return NULL;
}

/* "; did you mean 'emma'?" if a word can be spelled in small letters, else "; it has a, b, c, d, e,
 * f .." */
static const char *letter_hint(const embla_vocab *vocab, const char *word, size_t length,
                               char text[HINT])
{
    char small[HINT_WORD + 1] = "";
    size_t bytes, count, used = 0;
    for (size_t i = 0; i < length && length <= HINT_WORD; i++)
        small[i] = word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] - 'A' + 'a') : word[i];
    if (small[0] && !missing_letter(vocab, small, length, &bytes)) {
        (void)snprintf(text, HINT, "; did you mean '%s'?", small);
        return text;
    }
    const embla_word *words = embla_vocab_words(vocab, &count);
    for (size_t i = 0; i < count && i < 6; i++)
        used += (size_t)snprintf(text + used, HINT - used, "%s%s", i > 0 ? ", " : "; it has ",
                                 words[i].length > 8 ? ".." : words[i].bytes);
    (void)snprintf(text + used, HINT - used, " ..");
    return text;
}

/* A word that cannot be spelled with letters: names the first letter that is missing. False if that
 * is not what is wrong. */
static bool report_letter(const embla_vocab *vocab, const char *word, size_t length,
                          const char *words, const char *note)
{
    char hint_text[HINT];
    size_t bytes = 0;
    const char *letter =
        has_letters_only(vocab) ? missing_letter(vocab, word, length, &bytes) : NULL;
    if (!letter) return false;
    const bool whole = bytes == length;
    cli_complain("%sunknown %s '%.*s': %s%.*s%s not in the vocabulary of %s letters (%s)%s", note,
                 whole ? "letter" : "word", (int)(length < 60 ? length : 60), word,
                 whole ? "it is" : "'", whole ? 0 : (int)bytes, letter, whole ? "" : "' is", words,
                 embla_vocab_source(vocab), letter_hint(vocab, word, length, hint_text));
    return true;
}

static void one_missing(const cli_tokens *tokens, const embla_vocab *vocab, const char *words,
                        const char *note)
{
    const char *word = tokens->missing_words[0];
    size_t length = tokens->missing_lengths[0];
    int cut = (int)(length < 60 ? length : 60);
    char meant[HINT];
    if (is_integer(word, length)) {
        cli_complain("%sunknown word '%.*s': it is not among the %s words of %s; write '#%.*s' for "
                     "token %.*s",
                     note, cut, word, words, embla_vocab_source(vocab), cut, word, cut, word);
        return;
    }
    if (length > 0 && strspn(word, "0123456789,") == length) {
        cli_complain("%sunknown word '%.*s': it is not among the %s words of %s; token numbers are "
                     "--ids %.*s",
                     note, cut, word, words, embla_vocab_source(vocab), cut, word);
        return;
    }
    if (report_letter(vocab, word, length, words, note)) return;
    (void)hint(vocab, word, length, meant);
    if (!meant[0] && length <= 64) (void)spelling(vocab, word, length, meant);
    cli_complain("%sunknown word '%.*s': it is not among the %s words of %s%s%s", note, cut, word,
                 words, embla_vocab_source(vocab), meant[0] ? meant : "; write '#5' for token 5",
                 length > 0 && memchr(word + 1, ' ', length - 1) ? text_hint(tokens) : "");
}

/* " ('king'?)" for 'kign', in a list of missing words. "" if it is too long. */
static const char *short_hint(const embla_vocab *vocab, const char *word, size_t length,
                              char text[CLI_CELL])
{
    char other[HINT_WORD + 1];
    int32_t token;
    size_t bytes = 0;
    text[0] = '\0';
    if (embla_vocab_suggest(vocab, word, length, 1, &token) == 0) return text;
    const char *stored = embla_vocab_word(vocab, token, &bytes);
    if (typed_as(stored, bytes, other) <= SHOWN)
        snprintf(text, CLI_CELL, " ('%.*s'?)", SHOWN, other);
    return text;
}

static void report_missing(const cli_tokens *tokens, const embla_vocab *vocab, const char *note)
{
    char words[CLI_CELL], list[CLI_MISSING_NAMED * 2 * CLI_CELL] = "", rest[CLI_CELL] = "";
    size_t used = 0;
    (void)cli_commas(embla_vocab_count(vocab), words);
    if (tokens->missing == 1) {
        one_missing(tokens, vocab, words, note);
        return;
    }
    for (size_t i = 0; i < tokens->missing && i < CLI_MISSING_NAMED; i++) {
        char meant[CLI_CELL];
        const char *word = tokens->missing_words[i];
        size_t length = tokens->missing_lengths[i];
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s'%.*s'%s%s", i > 0 ? ", " : "",
                             (int)(length < SHOWN ? length : SHOWN), word,
                             length > SHOWN ? ".." : "", short_hint(vocab, word, length, meant));
    }
    if (tokens->missing > CLI_MISSING_NAMED)
        snprintf(rest, sizeof rest, " and %zu more", tokens->missing - CLI_MISSING_NAMED);
    cli_complain("%sunknown words %s%s: they are not among the %s words of %s", note, list, rest,
                 words, embla_vocab_source(vocab));
}

static bool skipped;

bool cli_skipped_any(void)
{
    bool any = skipped;
    skipped = false;
    return any;
}

void cli_tokens_skip(const cli_tokens *tokens, const embla_vocab *vocab)
{
    if (tokens->missing == 0) return;
    report_missing(tokens, vocab, "note: skipped: ");
    skipped = true;
}

int cli_tokens_finish(const cli_tokens *tokens, const embla_vocab *vocab)
{
    if (tokens->missing == 0) return CLI_DONE;
    if (!tokens->strict && tokens->count >= (tokens->least > 0 ? tokens->least : 1)) {
        cli_tokens_skip(tokens, vocab);
        return CLI_DONE;
    }
    report_missing(tokens, vocab, "");
    return CLI_FAILED;
}

/* ---- words ---- */

/* Whether word begins with an escape as we print it (visible.c): \n \t \r \\ \x0a \u000a
 * \U0000000a. Writes its bytes to out, their number to *bytes, and returns the length of the
 * escape; else 0. */
static size_t read_escape(const char *word, size_t length, char out[4], size_t *bytes)
{
    static const char letters[] = "ntr\\", meanings[] = "\n\t\r\\";
    if (length < 2 || word[0] != '\\') return 0;
    const char *letter = word[1] ? strchr(letters, word[1]) : NULL;
    if (letter) {
        out[0] = meanings[letter - letters];
        *bytes = 1;
        return 2;
    }
    size_t digits = word[1] == 'x' ? 2 : word[1] == 'u' ? 4 : word[1] == 'U' ? 8 : 0;
    char number[9] = {0};
    if (digits == 0 || length < 2 + digits) return 0;
    memcpy(number, word + 2, digits);
    if (strspn(number, "0123456789abcdefABCDEF") != digits) return 0;
    uint32_t code = (uint32_t)strtoul(number, NULL, 16);
    if (code > 0x10ffff) return 0;
    if (digits == 2) {
        out[0] = (char)code;
        *bytes = 1;
    } else {
        *bytes = embla_utf8_encode(code, out);
    }
    return 2 + digits;
}

/* Finds a word that was typed as we print it. */
static bool find_escaped(const embla_vocab *vocab, const char *word, size_t length, int32_t *token)
{
    char *plain = malloc(length + 4);
    size_t used = 0;
    bool any = false;
    for (size_t at = 0; plain && at < length;) {
        size_t bytes = 1, step = read_escape(word + at, length - at, plain + used, &bytes);
        if (step == 0) plain[used] = word[at];
        any = any || step > 0;
        at += step > 0 ? step : 1;
        used += bytes;
    }
    bool found = plain && any && embla_vocab_find(vocab, plain, used, token) == EMBLA_OK;
    free(plain);
    return found;
}

static int add_unseen(cli_tokens *tokens, const char *word, size_t length)
{
    cli_unseen *u = tokens->unseen;
    char **words = realloc(u->words, (u->count + 1) * sizeof *words);
    if (words) u->words = words;
    char *copy = words ? cli_copy_text(word, length) : NULL;
    if (!copy) return cli_failed("no memory for a word");
    u->words[u->count++] = copy;
    return cli_tokens_add(tokens, CLI_UNSEEN - (int64_t)(u->count - 1));
}

/* Whether a tokenizer knows nothing of a text: then the text is a mistake in a word. Words alone
 * are not a tokenizer either. */
static bool is_mistake(const cli_model *model, const int32_t *tokens, size_t count)
{
    embla_tokenizer_info info;
    if (embla_tokenizer_describe(cli_model_tokenizer(model), &info) != EMBLA_OK) return true;
    if (strcmp(info.source, "words") == 0) return true;
    for (size_t i = 0; i < count; i++)
        if (tokens[i] != info.unknown) return false;
    return true;
}

/* Notes how a tokenizer cuts what looks like a word: it may be mistyped. */
static void note_cut(const cli_tokens *tokens, const char *text, size_t length, size_t count)
{
    bool word = length > 0 && !memchr(text + 1, ' ', length - 1);
    if (tokens->notes && word && count > 1)
        cli_complain("note: '%.*s' is not a token; the tokenizer cuts it into %zu",
                     (int)(length < 60 ? length : 60), text, count);
}

/* Adds the tokens of a text. *done is false if there is no tokenizer, or it has no tokens for it.
 */
static int add_text(cli_tokens *tokens, const char *text, size_t length, bool *done)
{
    const int32_t *found = NULL;
    size_t count = 0;
    int code = CLI_DONE;
    *done = tokens->texts &&
            cli_model_tokenize(tokens->texts, text, length, &found, &count) == EMBLA_OK &&
            !is_mistake(tokens->texts, found, count);
    if (!*done) return CLI_DONE;
    note_cut(tokens, text, length, count);
    if (tokens->whole && tokens->unseen && count > 1) return add_unseen(tokens, text, length);
    for (size_t i = 0; i < count && code == CLI_DONE; i++) code = cli_tokens_add(tokens, found[i]);
    return code;
}

int cli_tokens_word(cli_tokens *tokens, const embla_vocab *vocab, const char *word, size_t length)
{
    int64_t id;
    int32_t token;
    bool done = false;
    if (length > 1 && word[0] == '#' && parse_integer(word + 1, length - 1, &id))
        return cli_tokens_add(tokens, id);
    if (length > 1 && word[0] == '#' && is_integer(word + 1, length - 1))
        return out_of_range(word + 1, length - 1);
    if (vocab && memchr(word, '\\', length) && find_escaped(vocab, word, length, &token))
        return cli_tokens_add(tokens, token);
    if (length > 0 && word[0] == '\\') { /* the rest is a word in any case */
        word++;
        length--;
    }
    if (vocab && embla_vocab_find(vocab, word, length, &token) == EMBLA_OK)
        return cli_tokens_add(tokens, token);
    if (vocab && tokens->unseen && !tokens->whole) return add_unseen(tokens, word, length);
    int code = add_text(tokens, word, length, &done);
    if (done) return code;
    if (!vocab)
        return cli_failed(
            "unknown word '%.*s': the file has no vocabulary; write '#5' for token 5%s",
            (int)(length < 60 ? length : 60), word, text_hint(tokens));
    return add_missing(tokens, word, length);
}

/* An empty line is the empty word or an unknown one. */
int cli_tokens_line(cli_tokens *tokens, const embla_vocab *vocab, bool ids, const char *line,
                    size_t length, const cli_lines *from)
{
    char where[2 * CLI_CELL];
    int32_t token;
    snprintf(where, sizeof where, "%.100s, line %zu", cli_lines_name(from), from->number);
    if (ids && strlen(line) != length)
        return cli_usage("%s: '%.60s' is followed by a zero byte", where, line);
    if (ids && line[strspn(line, " \t\r")] == '\0')
        return cli_usage("%s is empty; expected a token number such as 5", where);
    if (ids) return cli_tokens_list(tokens, line, where);
    if (length == 0 && (!vocab || tokens->strict) &&
        (!vocab || embla_vocab_find(vocab, "", 0, &token) != EMBLA_OK))
        return cli_failed("%s is empty, and the vocabulary has no empty word", where);
    return cli_tokens_word(tokens, vocab, line, length);
}

/* Whether a line is several words, and not one that has spaces. */
static bool is_list(const embla_vocab *vocab, const char *line, size_t length)
{
    int32_t token;
    return length > 1 && memchr(line + 1, ' ', length - 1) &&
           (!vocab || embla_vocab_find(vocab, line, length, &token) != EMBLA_OK);
}

/* Adds the words of a line, between spaces. */
static int split_line(cli_tokens *tokens, const embla_vocab *vocab, const char *line)
{
    int code = CLI_DONE;
    for (line += strspn(line, " \t"); *line && code == CLI_DONE; line += strspn(line, " \t")) {
        size_t length = strcspn(line, " \t");
        code = cli_tokens_word(tokens, vocab, line, length);
        line += length;
    }
    return code;
}

static int add_lines(cli_tokens *tokens, const embla_vocab *vocab, bool ids, cli_lines *lines)
{
    char *line;
    size_t length;
    bool first_is_list = false;
    int code = CLI_DONE;
    cli_line_status status = CLI_LINE;
    while (code == CLI_DONE && (status = cli_lines_next(lines, true, &line, &length)) == CLI_LINE) {
        bool list = tokens->split && is_list(vocab, line, length);
        if (first_is_list || (list && lines->number > 1))
            code = cli_usage("%s, line %zu: there is one list of words: write one word on each "
                             "line, or all on one line",
                             cli_lines_name(lines), lines->number);
        else if (list)
            code = split_line(tokens, vocab, line);
        else
            code = cli_tokens_line(tokens, vocab, ids, line, length, lines);
        first_is_list = list;
    }
    cli_lines_free(lines);
    return status == CLI_LINE_FAILED ? CLI_FAILED : code;
}

int cli_tokens_lines(cli_tokens *tokens, const embla_vocab *vocab, bool ids)
{
    cli_lines lines = {0};
    return add_lines(tokens, vocab, ids, &lines);
}

static int add_file(cli_tokens *tokens, const embla_vocab *vocab, const char *path,
                    const char *where)
{
    cli_lines lines = {0};
    embla_file_facts facts;
    if (!cli_facts(cli_input_path(path), &facts))
        return cli_failed("%s: cannot open '%s': %s", where, path, cli_why());
    int code = cli_lines_open(&lines, path);
    return code == CLI_DONE ? add_lines(tokens, vocab, false, &lines) : code;
}

int cli_tokens_words(cli_tokens *tokens, const embla_vocab *vocab, const char *text,
                     const char *where)
{
    int code = CLI_DONE;
    if (text[0] == '@') return add_file(tokens, vocab, text + 1, where);
    if (strcmp(text, "-") == 0) return cli_tokens_lines(tokens, vocab, false);
    for (;; text++) {
        size_t length = strcspn(text, ",");
        if (length == 0)
            return cli_usage("%s: an empty word; separate words by commas, as in king,queen",
                             where);
        code = cli_tokens_word(tokens, vocab, text, length);
        text += length;
        if (code != CLI_DONE || *text == '\0') return code;
    }
}
