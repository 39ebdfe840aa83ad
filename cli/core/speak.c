/* SPDX-License-Identifier: Apache-2.0 */
/* Converts prompts to tokens and tokens to text.
 *
 * The text of tokens comes from the library's detokenizer, which holds back a character that is not
 * complete. Whole words and token numbers are written here.
 */
#include "core/speak.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "core/model_text.h"
#include "core/token.h"
#include "core/visible.h"

/* ---- the tokenizer ---- */

static int32_t find_token(const cli_speaker *s, const char *word)
{
    int32_t token = s->tokenizer ? embla_tokenizer_token(s->tokenizer, word, strlen(word)) : -1;
    return token < s->tokens ? token : -1;
}

static bool has_line_ends(const cli_speaker *s, bool byte_level)
{
    size_t length = 0;
    if (!s->tokenizer) return false;
    if (byte_level || find_token(s, "<0x0A>") >= 0) return true;
    for (int64_t i = 0; i < s->tokens; i++) {
        const char *word = embla_tokenizer_text(s->tokenizer, (int32_t)i, &length);
        if (word && memchr(word, '\n', length)) return true;
    }
    return false;
}

void cli_speaker_of_tokenizer(const embla_tokenizer *tokenizer, embla_tokenized *tokenized,
                              int64_t tokens, cli_speaker *out)
{
    embla_tokenizer_info info = {0};
    *out = (cli_speaker){.tokenizer = tokenizer,
                         .tokenized = tokenized,
                         .tokens = tokens,
                         .unknown = -1,
                         .ends = {.begin = -1},
                         .where = "--prompt"};
    if (!tokenizer || embla_tokenizer_describe(tokenizer, &info) != EMBLA_OK) return;
    out->unknown = info.unknown;
    bool words = info.kind == EMBLA_TOKENIZER_WORDLEVEL && info.unknown >= 0;
    out->style = words ? CLI_SPEAK_WORDS : CLI_SPEAK_TEXT;
    out->lines = has_line_ends(out, info.byte_level);
}

/* ---- begin and end of a text ---- */

void cli_speaker_of(const cli_model *model, int64_t tokens, cli_speaker *out)
{
    const embla_tokenizer *tokenizer = cli_model_tokenizer(model);
    cli_speaker_of_tokenizer(tokenizer, cli_model_tokenized(model), tokens, out);
    embla_text_ends_find(model->checkpoint, tokenizer, tokens, &out->ends);
}

bool cli_speaker_ends(const cli_speaker *speaker, int32_t token)
{
    for (size_t i = 0; i < speaker->ends.end_count; i++)
        if (speaker->ends.ends[i] == token) return true;
    return false;
}

/* ---- prompt ---- */

/* Says which word of the text the model does not know, if there is one: it reads the unknown token
 * there, and its answer is about that. */
static void note_unknown(const cli_speaker *s, const char *text)
{
    const int32_t *tokens = embla_tokenized_tokens(s->tokenized);
    const embla_text_span *spans = embla_tokenized_offsets(s->tokenized);
    size_t length = 0;
    const char *unknown = embla_tokenizer_text(s->tokenizer, s->unknown, &length);
    for (size_t i = 0; unknown && i < embla_tokenized_count(s->tokenized); i++) {
        size_t bytes = spans[i].end - spans[i].begin;
        const char *word = text + spans[i].begin;
        if (tokens[i] != s->unknown || (bytes == length && memcmp(word, unknown, bytes) == 0))
            continue;
        cli_complain("note: '%.*s' is not in the vocabulary; the model reads %.*s in its place",
                     (int)(bytes < 60 ? bytes : 60), word, (int)length, unknown);
        return;
    }
}

/* The tokens of a prompt as 64-bit numbers: by the tokenizer, or a list of numbers. */
static int read_prompt(const cli_speaker *s, const char *text, cli_tokens *list)
{
    char where[2 * CLI_CELL];
    (void)snprintf(where, sizeof where, "%s without a tokenizer (--tokenizer FILE)", s->where);
    if (!s->tokenizer) return cli_tokens_list(list, text, where);
    const embla_tokenize_options where_in_text = {.offsets = true};
    if (embla_tokenize(s->tokenized, text, strlen(text), &where_in_text) != EMBLA_OK)
        return cli_failed("%s: %s", s->where, embla_error());
    if (s->unknown >= 0 && !s->quiet) note_unknown(s, text);
    const int32_t *tokens = embla_tokenized_tokens(s->tokenized);
    size_t count = embla_tokenized_count(s->tokenized);
    int code = count > 0 ? CLI_DONE : cli_failed("%s: '%.60s' has no tokens", s->where, text);
    for (size_t i = 0; i < count && code == CLI_DONE; i++) code = cli_tokens_add(list, tokens[i]);
    return code;
}

static int check_prompt(const cli_speaker *s, const cli_tokens *list)
{
    for (size_t i = 0; i < list->count; i++)
        if ((uint64_t)list->ids[i] >= (uint64_t)s->tokens)
            return cli_failed("%s: token %" PRId64
                              " is out of range; the model has tokens 0 to %" PRId64 "%s",
                              s->where, list->ids[i], s->tokens - 1,
                              s->tokenizer ? "; use the tokenizer that it was trained with" : "");
    return CLI_DONE;
}

int cli_speaker_prompt(const cli_speaker *speaker, const char *text, int32_t **out, size_t *count)
{
    cli_tokens list = {0};
    int code = CLI_DONE;
    if (speaker->ends.begin >= 0 && (speaker->ends.leads || !text))
        code = cli_tokens_add(&list, speaker->ends.begin);
    if (code == CLI_DONE && text) code = read_prompt(speaker, text, &list);
    if (code == CLI_DONE && list.count == 0) code = cli_tokens_add(&list, 0);
    if (code == CLI_DONE) code = check_prompt(speaker, &list);
    int32_t *tokens = code == CLI_DONE ? malloc(list.count * sizeof *tokens) : NULL;
    if (code == CLI_DONE && !tokens) code = cli_failed("no memory for %zu tokens", list.count);
    for (size_t i = 0; tokens && i < list.count; i++) tokens[i] = (int32_t)list.ids[i];
    *count = list.count;
    if (tokens) *out = tokens;
    cli_tokens_free(&list);
    return code;
}

/* ---- text ---- */

static bool append(cli_said *said, const char *bytes, size_t count)
{
    if (count > said->room - said->count) {
        size_t room = 2 * said->room + count + 64;
        char *grown = realloc(said->bytes, room);
        said->error = "no memory for the text";
        if (!grown) return false;
        said->bytes = grown;
        said->room = room;
    }
    if (count > 0) memcpy(said->bytes + said->count, bytes, count);
    said->count += count;
    return true;
}

/* Whether a space comes between two words: not beside a line end or a hyphen, not before marks that
 * follow a word, not after those that precede one. */
static bool is_spaced(const char *before, size_t before_length, const char *word, size_t length)
{
    bool glued_left = length == 1 && strchr("\n.,;:!?)]}%-", word[0]);
    bool glued_right = before_length == 1 && strchr("\n([{$#-'", before[0]);
    return !glued_left && !glued_right;
}

static bool append_word(cli_said *said, const cli_speaker *s, int32_t before, const char *word,
                        size_t length)
{
    size_t before_length = 0;
    const char *last =
        before < 0 ? NULL : embla_tokenizer_text(s->tokenizer, before, &before_length);
    if (last && is_spaced(last, before_length, word, length) && !append(said, " ", 1)) return false;
    return append(said, word, length);
}

/* Appends what the detokenizer gave. */
static bool append_new(cli_said *said, embla_status status, const char *text, size_t length)
{
    if (status == EMBLA_OK) return append(said, text, length);
    said->error = embla_error();
    return false;
}

static bool append_token(cli_said *said, const cli_speaker *s, int32_t token)
{
    const char *text = NULL;
    size_t length = 0;
    embla_status status = EMBLA_OK;
    if (!said->detokenizer) status = embla_detokenizer_new(s->tokenizer, NULL, &said->detokenizer);
    if (status == EMBLA_OK)
        status = embla_detokenizer_add(said->detokenizer, &token, 1, &text, &length);
    return append_new(said, status, text, length);
}

static bool append_number(cli_said *said, const char *sign, int32_t token)
{
    char number[32];
    int used = snprintf(number, sizeof number, "%s%" PRId32, sign, token);
    return append(said, number, (size_t)used);
}

bool cli_said_add(cli_said *said, const cli_speaker *s, int32_t before, int32_t token)
{
    size_t length = 0;
    bool first = before < 0 || (before == s->ends.begin && s->ends.leads);
    if (s->style == CLI_SPEAK_NUMBERS)
        return append_number(said, said->count > 0 ? " " : "", token);
    const char *word = embla_tokenizer_text(s->tokenizer, token, &length);
    if (!word) return cli_said_end(said, s) && append_number(said, "#", token);
    if (s->style == CLI_SPEAK_WORDS) return append_word(said, s, first ? -1 : before, word, length);
    return append_token(said, s, token);
}

bool cli_said_end(cli_said *said, const cli_speaker *s)
{
    const char *text = NULL;
    size_t length = 0;
    if (s->style != CLI_SPEAK_TEXT || !said->detokenizer) return true;
    embla_status status = embla_detokenizer_end(said->detokenizer, &text, &length);
    return append_new(said, status, text, length);
}

void cli_said_print(cli_said *said, bool shown, FILE *to)
{
    while (said->printed < said->count) {
        const char *text = said->bytes + said->printed;
        size_t left = said->count - said->printed, length = embla_utf8_length(text, left);
        bool plain = !shown || text[0] == '\n' || text[0] == '\t';
        if (length == 0) length = 1;
        if (plain || cli_printable(text, length) > 0)
            (void)fwrite(text, 1, length, to);
        else
            for (size_t i = 0; i < length; i++)
                (void)fprintf(to, "\\x%02x", (unsigned)(unsigned char)text[i]);
        said->printed += length;
    }
    (void)fflush(to);
}

void cli_said_free(cli_said *said)
{
    free(said->bytes);
    embla_detokenizer_free(said->detokenizer);
    *said = (cli_said){0};
}
