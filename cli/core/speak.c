/* SPDX-License-Identifier: Apache-2.0 */
/* Converts prompts to tokens and tokens to text.
 *
 * A prompt is split into characters, or into bytes if the vocabulary lacks a character. Then the
 * two neighbours that form the word with the lowest token are merged, until no two form a word.
 * Byte-pair vocabularies number their words in merge order, so this equals llama2.c's merging by
 * score and GPT-2's by rank, except that GPT-2 first splits text into words.
 *
 * A prompt for a model of words is cut by embla_next_word. Such words have no spaces, so a text
 * gets them back by a rule: one between two words, but none before a comma and the like.
 */
#include "core/speak.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "core/token.h"
#include "core/visible.h"
#include "embla_text.h"

#define MARK "\xe2\x96\x81" /* U+2581 */
enum { MARK_BYTES = 3, LETTER_MOST = 4, BYTE_WORD = 6 };

/* ---- GPT-2's letters for bytes ---- */

/* A printable byte is its own letter; the others, in order, are U+0100 and on. */
static bool is_printable_byte(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

static uint32_t letter_of_byte(unsigned byte)
{
    uint32_t code = 0x100;
    if (is_printable_byte(byte)) return byte;
    for (unsigned b = 0; b < byte; b++) code += !is_printable_byte(b);
    return code;
}

/* The byte that the letter at word stands for, or -1. The letter is *used bytes long. */
static int byte_of_letter(const char *word, size_t left, size_t *used)
{
    *used = embla_utf8_length(word, left);
    if (*used == 0 || *used > 2) return -1;
    uint32_t code = embla_utf8_code(word, *used);
    if (code < 0x100) return is_printable_byte(code) ? (int)code : -1;
    for (unsigned b = 0; b < 256; b++)
        if (!is_printable_byte(b) && letter_of_byte(b) == code) return (int)b;
    return -1;
}

/* ---- the vocabulary ---- */

static bool find_word(const cli_speaker *s, const char *word, size_t length, int32_t *out)
{
    int32_t token;
    size_t stored;
    if (embla_vocab_find(s->vocab, word, length, &token) != EMBLA_OK || token >= s->tokens)
        return false;
    /* embla_vocab_find also accepts a space for its mark; here the bytes must be equal */
    const char *same = embla_vocab_word(s->vocab, token, &stored);
    if (!same || stored != length || memcmp(same, word, length) != 0) return false;
    *out = token;
    return true;
}

static bool find_byte_word(const cli_speaker *s, unsigned byte, int32_t *out)
{
    char word[8];
    (void)snprintf(word, sizeof word, "<0x%02X>", byte);
    return find_word(s, word, BYTE_WORD, out);
}

static bool has_byte_letters(const cli_speaker *s)
{
    char letter[LETTER_MOST];
    int32_t token;
    for (unsigned b = 0; b < 256; b++)
        if (!find_word(s, letter, embla_utf8_encode(letter_of_byte(b), letter), &token))
            return false;
    return true;
}

/* A vocabulary of whole words has a token for words that it does not have. */
static bool find_unknown(cli_speaker *s)
{
    return find_word(s, "<unk>", 5, &s->unknown) || find_word(s, "[UNK]", 5, &s->unknown);
}

static cli_speak_style detect_style(cli_speaker *s)
{
    int32_t token;
    size_t length;
    if (has_byte_letters(s)) return CLI_SPEAK_BYTES;
    for (int64_t i = 0; i < s->tokens && !s->marked; i++) {
        const char *word = embla_vocab_word(s->vocab, (int32_t)i, &length);
        s->marked = word && length > MARK_BYTES && memcmp(word, MARK, MARK_BYTES) == 0;
    }
    if (s->marked || find_byte_word(s, '\n', &token)) return CLI_SPEAK_PIECES;
    return find_unknown(s) ? CLI_SPEAK_WORDS : CLI_SPEAK_PLAIN;
}

static bool has_line_ends(const cli_speaker *s)
{
    size_t length;
    if (s->style != CLI_SPEAK_PLAIN && s->style != CLI_SPEAK_WORDS)
        return s->style != CLI_SPEAK_NUMBERS;
    for (int64_t i = 0; i < s->tokens; i++) {
        const char *word = embla_vocab_word(s->vocab, (int32_t)i, &length);
        if (word && memchr(word, '\n', length)) return true;
    }
    return false;
}

/* ---- begin and end of a text ---- */

static void add_end(cli_speaker *s, int64_t token)
{
    if (token < 0 || token >= s->tokens || s->end_count == CLI_SPEAK_ENDS) return;
    if (!cli_speaker_ends(s, (int32_t)token)) s->ends[s->end_count++] = (int32_t)token;
}

/* Finds BOS and the tokens that end a text: from config.json or GGUF keys, by GPT-2's word, or 1
 * and 2 in llama2.c files. */
static void find_special_tokens(const cli_model *model, cli_speaker *s)
{
    static const char *const bos[] = {"bos_token_id", "tokenizer.ggml.bos_token_id", NULL};
    static const char *const eos[] = {"eos_token_id", "tokenizer.ggml.eos_token_id", NULL};
    static const char text_end[] = "<|endoftext|>";
    const char *format = embla_checkpoint_format(model->checkpoint);
    int64_t token = -1, more[CLI_SPEAK_ENDS];
    size_t count = 0;
    int32_t end = -1;
    bool known = s->vocab && find_word(s, text_end, sizeof text_end - 1, &end);
    if (cli_model_number(model, bos, &token, NULL) && token >= 0 && token < s->tokens)
        s->bos = (int32_t)token;
    else if (known)
        s->bos = end;
    else if (strcmp(format, "llama2.c") == 0 && s->tokens > 2)
        s->bos = 1;
    add_end(s, s->bos);
    if (strcmp(format, "llama2.c") == 0 && s->bos == 1) add_end(s, 2);
    if (cli_model_number(model, eos, &token, NULL)) add_end(s, token);
    if (embla_checkpoint_integers(model->checkpoint, eos[0], CLI_SPEAK_ENDS, more, &count) ==
        EMBLA_OK)
        for (size_t i = 0; i < count && i < CLI_SPEAK_ENDS; i++) add_end(s, more[i]);
    /* GPT-2 puts its token between texts, not before a prompt */
    s->leads = s->bos >= 0 && !(known && s->bos == end);
}

void cli_speaker_of_vocab(const embla_vocab *vocab, int64_t tokens, cli_speaker *out)
{
    *out = (cli_speaker){.vocab = vocab, .tokens = tokens, .bos = -1};
    if (out->vocab) out->style = detect_style(out);
    out->lines = has_line_ends(out);
}

void cli_speaker_of(const cli_model *model, int64_t tokens, cli_speaker *out)
{
    cli_speaker_of_vocab(model->vocab, tokens, out);
    find_special_tokens(model, out);
}

bool cli_speaker_ends(const cli_speaker *speaker, int32_t token)
{
    for (size_t i = 0; i < speaker->end_count; i++)
        if (speaker->ends[i] == token) return true;
    return false;
}

/* ---- prompt ---- */

typedef struct {
    const cli_speaker *speaker;
    int32_t *tokens;
    size_t count;
    char *joined; /* two words side by side */
    size_t room;
} prompt_tokens;

static int report_unknown(const cli_speaker *s, const char *text, size_t left)
{
    size_t length = embla_utf8_length(text, left);
    char words[CLI_CELL];
    if (length == 0)
        return cli_failed("--prompt: byte 0x%02x is not valid UTF-8, and not a word of %s",
                          (unsigned)(unsigned char)text[0], embla_vocab_source(s->vocab));
    return cli_failed("--prompt: '%.*s' is not among the %s of %s", (int)length, text,
                      cli_plural(embla_vocab_count(s->vocab), "word", words),
                      embla_vocab_source(s->vocab));
}

/* Appends the token of the character at text, or the tokens of its bytes; *used is their length in
 * text. */
static int add_character(prompt_tokens *p, const char *text, size_t left, size_t *used)
{
    const cli_speaker *s = p->speaker;
    size_t length = embla_utf8_length(text, left);
    int32_t token, bytes[LETTER_MOST] = {0};
    char letter[LETTER_MOST];
    *used = length > 0 ? length : 1;
    if (s->style == CLI_SPEAK_BYTES) {
        *used = 1;
        if (!find_word(s, letter, embla_utf8_encode(letter_of_byte((unsigned char)text[0]), letter),
                       &token))
            return report_unknown(s, text, left);
        p->tokens[p->count++] = token;
        return CLI_DONE;
    }
    if (find_word(s, text, *used, &token)) {
        p->tokens[p->count++] = token;
        return CLI_DONE;
    }
    for (size_t i = 0; i < *used; i++)
        if (!find_byte_word(s, (unsigned char)text[i], &bytes[i]) &&
            !find_word(s, text + i, 1, &bytes[i]))
            return report_unknown(s, text, left);
    for (size_t i = 0; i < *used; i++) p->tokens[p->count++] = bytes[i];
    return CLI_DONE;
}

/* The token of two concatenated words; INT32_MAX means none. */
static int32_t merged_token(prompt_tokens *p, int32_t a, int32_t b)
{
    size_t first, second;
    int32_t token;
    const char *left = embla_vocab_word(p->speaker->vocab, a, &first);
    const char *right = embla_vocab_word(p->speaker->vocab, b, &second);
    if (!left || !right || first + second > p->room) return INT32_MAX;
    memcpy(p->joined, left, first);
    memcpy(p->joined + first, right, second);
    return find_word(p->speaker, p->joined, first + second, &token) ? token : INT32_MAX;
}

/* Tokens of a prompt while they are merged: a list in both directions, and a heap of the pairs that
 * form a word. A pair whose tokens have changed since stays in the heap and is skipped when it
 * comes up. So n tokens take n log n steps. */
typedef struct {
    prompt_tokens *prompt;
    size_t from, end;    /* the tokens to merge */
    size_t *next, *last; /* of each token: the one after it, the one before it */
    uint64_t *heap;      /* token of the merged word << PLACE_BITS | index of its first token */
    size_t count;
} merging;

/* The lowest token comes first, and of equal ones the leftmost. A token has 31 bits. */
enum { PLACE_BITS = 33 };

static void push_pair(merging *m, uint64_t pair)
{
    size_t i = m->count++;
    for (; i > 0 && pair < m->heap[(i - 1) / 2]; i = (i - 1) / 2) m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = pair;
}

static uint64_t pop_pair(merging *m)
{
    uint64_t top = m->heap[0], moved = m->heap[--m->count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < m->count; i = child) {
        if (child + 1 < m->count && m->heap[child + 1] < m->heap[child]) child++;
        if (moved <= m->heap[child]) break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = moved;
    return top;
}

/* The token that the token at index `at` forms with the next one; INT32_MAX means none. */
static int32_t pair_at(const merging *m, size_t at)
{
    prompt_tokens *p = m->prompt;
    if (p->tokens[at] < 0 || m->next[at] >= m->end) return INT32_MAX;
    return merged_token(p, p->tokens[at], p->tokens[m->next[at]]);
}

static void add_pair(merging *m, size_t at)
{
    int32_t token = pair_at(m, at);
    if (token != INT32_MAX) push_pair(m, (uint64_t)token << PLACE_BITS | at);
}

/* Each merge removes a token and adds at most two pairs, so the heap has fewer than 3 x count. */
static void merge_pairs(merging *m)
{
    int32_t *tokens = m->prompt->tokens;
    for (size_t i = m->from; i < m->end; i++) {
        m->next[i] = i + 1;
        m->last[i] = i - 1; /* that of the first is not used */
    }
    for (size_t i = m->from; i < m->end; i++) add_pair(m, i);
    while (m->count > 0) {
        uint64_t best = pop_pair(m);
        size_t at = best & ((UINT64_C(1) << PLACE_BITS) - 1);
        int32_t token = (int32_t)(best >> PLACE_BITS);
        if (pair_at(m, at) != token) continue;
        size_t gone = m->next[at], after = m->next[gone];
        tokens[at] = token;
        tokens[gone] = -1;
        m->next[at] = after;
        if (after < m->end) m->last[after] = at;
        if (at > m->from) add_pair(m, m->last[at]);
        add_pair(m, at);
    }
    size_t kept = m->from;
    for (size_t i = m->from; i < m->end; i = m->next[i]) tokens[kept++] = tokens[i];
    m->prompt->count = kept;
}

/* A copy of text with spaces as the vocabulary marks them; pieces get one more in front. Writes its
 * length to *bytes. NULL if there is no memory. */
static char *mark_spaces(const cli_speaker *s, const char *text, size_t *bytes)
{
    bool pieces = s->style == CLI_SPEAK_PIECES;
    size_t length = strlen(text), used = 0;
    char *out = calloc(length + 1, MARK_BYTES);
    if (!out) return NULL;
    for (size_t i = pieces ? 0 : 1; i <= length; i++) {
        char c = i == 0 ? ' ' : text[i - 1];
        if (c == ' ' && s->marked) {
            memcpy(out + used, MARK, MARK_BYTES);
            used += MARK_BYTES;
        } else {
            out[used++] = c;
        }
    }
    *bytes = used;
    return out;
}

static size_t longest_word(const cli_speaker *s)
{
    size_t most = 0, length;
    for (int64_t i = 0; i < s->tokens; i++)
        if (embla_vocab_word(s->vocab, (int32_t)i, &length) && length > most) most = length;
    return most;
}

/* Appends the tokens of the words of a text. */
static void cut_words(prompt_tokens *p, const char *text, size_t bytes)
{
    const char *end = text + bytes, *word;
    for (size_t used; (used = embla_next_word(text, (size_t)(end - text), &word)) > 0;
         text = word + used) {
        int32_t token = p->speaker->unknown;
        (void)find_word(p->speaker, word, used, &token);
        p->tokens[p->count++] = token;
    }
}

static int tokenize(prompt_tokens *p, const char *written, size_t bytes)
{
    if (p->speaker->style == CLI_SPEAK_WORDS) {
        cut_words(p, written, bytes);
        return CLI_DONE;
    }
    size_t used, from = p->count;
    int code = CLI_DONE;
    for (size_t at = 0; at < bytes && code == CLI_DONE; at += used)
        code = add_character(p, written + at, bytes - at, &used);
    if (code != CLI_DONE || p->count - from < 2) return code;
    size_t count = p->count;
    merging m = {.prompt = p, .from = from, .end = count};
    p->room = longest_word(p->speaker);
    p->joined = malloc(p->room + 1);
    m.next = calloc(2 * count, sizeof *m.next); /* and m.last */
    m.heap = calloc(3 * count, sizeof *m.heap);
    m.last = m.next ? m.next + count : NULL;
    if (p->joined && m.next && m.heap && count >> PLACE_BITS == 0)
        merge_pairs(&m);
    else
        code = cli_failed("no memory for a prompt of %zu bytes", bytes);
    free(m.heap);
    free(m.next);
    free(p->joined);
    return code;
}

/* The prompt of a model without vocabulary is a list of token numbers. */
static int parse_numbers(prompt_tokens *p, const char *text)
{
    cli_tokens list = {0};
    int code = cli_tokens_list(&list, text, "--prompt of a model without vocabulary");
    for (size_t i = 0; i < list.count && code == CLI_DONE; i++) {
        if ((uint64_t)list.ids[i] >= (uint64_t)p->speaker->tokens)
            code = cli_failed("--prompt: token %" PRId64
                              " is out of range; the model has tokens 0 to %" PRId64,
                              list.ids[i], p->speaker->tokens - 1);
        else
            p->tokens[p->count++] = (int32_t)list.ids[i];
    }
    cli_tokens_free(&list);
    return code;
}

int cli_speaker_prompt(const cli_speaker *speaker, const char *text, int32_t **out, size_t *count)
{
    size_t bytes = text ? strlen(text) : 0;
    char *written = text && speaker->vocab ? mark_spaces(speaker, text, &bytes) : NULL;
    prompt_tokens p = {.speaker = speaker, .tokens = malloc((bytes + 2) * sizeof *p.tokens)};
    int code = CLI_DONE;
    if (!p.tokens || (text && speaker->vocab && !written)) {
        free(written);
        free(p.tokens);
        return cli_failed("no memory for a prompt of %zu bytes", bytes);
    }
    if (speaker->bos >= 0 && (speaker->leads || !text)) p.tokens[p.count++] = speaker->bos;
    if (text && speaker->vocab)
        code = tokenize(&p, written, bytes);
    else if (text)
        code = parse_numbers(&p, text);
    else if (p.count == 0)
        p.tokens[p.count++] = 0;
    free(written);
    if (code != CLI_DONE) {
        free(p.tokens);
        return code;
    }
    *out = p.tokens;
    *count = p.count;
    return CLI_DONE;
}

/* ---- text ---- */

static bool append(cli_said *said, const char *bytes, size_t count)
{
    if (count > said->room - said->count) {
        size_t room = 2 * said->room + count + 64;
        char *grown = realloc(said->bytes, room);
        if (!grown) return false;
        said->bytes = grown;
        said->room = room;
    }
    memcpy(said->bytes + said->count, bytes, count);
    said->count += count;
    return true;
}

static bool append_bytes(cli_said *said, const char *word, size_t length)
{
    for (size_t at = 0, used; at < length; at += used) {
        int byte = byte_of_letter(word + at, length - at, &used);
        if (used == 0) used = 1;
        const char one = (char)byte;
        if (!(byte < 0 ? append(said, word + at, used) : append(said, &one, 1))) return false;
    }
    return true;
}

/* The byte of a word such as "<0x0A>", or -1. */
static int byte_of_word(const char *word, size_t length)
{
    unsigned byte;
    char end;
    if (length != BYTE_WORD || sscanf(word, "<0x%2X%c", &byte, &end) != 2 || end != '>') return -1;
    return (int)byte;
}

static bool append_piece(cli_said *said, const cli_speaker *s, bool first, const char *word,
                         size_t length)
{
    int byte = byte_of_word(word, length);
    const char one = (char)byte;
    if (byte >= 0) return append(said, &one, 1);
    for (size_t at = 0; at < length;) {
        bool mark = s->marked && length - at >= MARK_BYTES && !memcmp(word + at, MARK, MARK_BYTES);
        bool space = mark || word[at] == ' ';
        if (!(space && first && at == 0) && !append(said, mark ? " " : word + at, 1)) return false;
        at += mark ? MARK_BYTES : 1;
    }
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
    const char *last = before < 0 ? NULL : embla_vocab_word(s->vocab, before, &before_length);
    if (last && is_spaced(last, before_length, word, length) && !append(said, " ", 1)) return false;
    return append(said, word, length);
}

bool cli_said_add(cli_said *said, const cli_speaker *s, int32_t before, int32_t token)
{
    size_t length = 0;
    char number[32];
    bool first = before < 0 || (before == s->bos && s->leads);
    const char *word = s->vocab ? embla_vocab_word(s->vocab, token, &length) : NULL;
    if (!word) {
        int used = snprintf(number, sizeof number, "%s%" PRId32,
                            s->vocab          ? "#"
                            : said->count > 0 ? " "
                                              : "",
                            token);
        return append(said, number, (size_t)used);
    }
    if (s->style == CLI_SPEAK_BYTES) return append_bytes(said, word, length);
    if (s->style == CLI_SPEAK_PIECES) return append_piece(said, s, first, word, length);
    if (s->style == CLI_SPEAK_WORDS) return append_word(said, s, first ? -1 : before, word, length);
    return append(said, word, length);
}

/* Whether further bytes could complete a character. */
static bool is_incomplete(const char *text, size_t left)
{
    char whole[LETTER_MOST];
    if (left == 0 || left >= LETTER_MOST) return false;
    memcpy(whole, text, left);
    for (size_t more = 1; left + more <= LETTER_MOST; more++)
        /* UTF-8 restricts the second byte in steps of 16 */
        for (int last = 0x80; last < 0xc0; last += 0x10) {
            memset(whole + left, 0x80, more);
            whole[left] = (char)last;
            if (embla_utf8_length(whole, left + more) == left + more) return true;
        }
    return false;
}

void cli_said_print(cli_said *said, bool last, bool shown, FILE *to)
{
    while (said->printed < said->count) {
        const char *text = said->bytes + said->printed;
        size_t left = said->count - said->printed, length = embla_utf8_length(text, left);
        if (length == 0 && !last && is_incomplete(text, left)) break;
        bool plain = !shown || text[0] == '\n' || text[0] == '\t' || length == 0;
        if (length == 0)
            (void)fputs("\xef\xbf\xbd", to);
        else if (plain || cli_printable(text, length) > 0)
            (void)fwrite(text, 1, length, to);
        else
            for (size_t i = 0; i < length; i++)
                (void)fprintf(to, "\\x%02x", (unsigned)(unsigned char)text[i]);
        said->printed += length > 0 ? length : 1;
    }
    (void)fflush(to);
}
