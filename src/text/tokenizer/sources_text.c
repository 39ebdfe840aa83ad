/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers in plain text: vocab.txt of BERT, and the ranks of tiktoken.
 *
 *   vocab.txt  one string of WordPiece on each line; the number of the line is the token
 *   tiktoken   lines of "base64 rank": byte-level BPE, in which any two tokens merge if a token has
 *              their bytes, the lowest rank first
 *
 * Neither file says how a text is cut. A vocab.txt with capital letters is cased. The number of
 * ranks tells which of the known vocabularies it is, and with it the pattern.
 */
#include <string.h>

#include "base/base64.h"
#include "tokenizer/grow.h"
#include "tokenizer/stages.h"

enum { LINES_MOST = 1 << 22 };

/* The next line without its end; false after the last. */
static bool next_line(const uint8_t *bytes, size_t count, size_t *at, embla_name *line)
{
    if (*at >= count) return false;
    const uint8_t *begin = bytes + *at, *end = memchr(begin, '\n', count - *at);
    size_t length = end ? (size_t)(end - begin) : count - *at;
    *at += length + (end ? 1 : 0);
    if (length > 0 && begin[length - 1] == '\r') length--;
    *line = (embla_name){(const char *)begin, (uint32_t)length, 0};
    return true;
}

/* ---- vocab.txt ---- */

static bool has_capital(const embla_name *s)
{
    if (s->length > 0 && s->bytes[0] == '[') return false; /* [CLS] */
    for (size_t i = 0; i < s->length; i++)
        if (s->bytes[i] >= 'A' && s->bytes[i] <= 'Z') return true;
    return false;
}

static embla_status add_template(embla_tokenizer *t)
{
    int32_t cls = -1, sep = -1;
    for (size_t i = 0; i < t->vocab_count; i++) {
        if (embla_name_is(&t->vocab[i], "[CLS]")) cls = (int32_t)t->vocab[i].number;
        if (embla_name_is(&t->vocab[i], "[SEP]")) sep = (int32_t)t->vocab[i].number;
    }
    return cls < 0 || sep < 0 ? EMBLA_OK : embla_post_ends(t, cls, sep, false);
}

embla_status embla_wordpiece_finish(embla_tokenizer *t, bool cased)
{
    static const char *const special[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    static const char stages[] =
        "{\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
        "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},"
        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
        "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}}";
    static const char cased_stages[] =
        "{\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
        "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":false},"
        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
        "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}}";
    EMBLA_TRY(embla_tokenizer_stages(t, cased ? cased_stages : stages));
    t->kind = EMBLA_TOKENIZER_WORDPIECE;
    t->wordpiece.prefix = (embla_name){"##", 2, 0};
    t->wordpiece.most_chars = 100;
    t->unknown_text = (embla_name){"[UNK]", 5, 0};
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        for (size_t j = 0; j < t->vocab_count; j++)
            if (embla_name_is(&t->vocab[j], special[i]))
                EMBLA_TRY(embla_added_special(t, special[i], strlen(special[i])));
    EMBLA_TRY(add_template(t));
    return embla_tokenizer_finish(t, NULL, 0);
}

embla_status embla_vocab_txt_parse(embla_tokenizer *t, const uint8_t *bytes, size_t count)
{
    embla_name line;
    size_t at = 0, valid = embla_utf8_valid(bytes, count);
    bool cased = false, unknown = false;
    if (valid < count)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: it is no tokenizer: byte %zu of %zu is not valid UTF-8", t->name,
                          valid, count);
    while (next_line(bytes, count, &at, &line)) {
        if (t->vocab_count >= LINES_MOST)
            return embla_fail(EMBLA_ERR_FORMAT, "%.256s: it has more than %d lines", t->name,
                              LINES_MOST);
        cased = cased || has_capital(&line);
        unknown = unknown || embla_name_is(&line, "[UNK]");
        EMBLA_TRY(embla_tokenizer_add(t, line.bytes, line.length, t->vocab_count));
    }
    if (!unknown)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: none of its %zu lines is [UNK], so it is not a vocab.txt of "
                          "WordPiece",
                          t->name, t->vocab_count);
    return embla_wordpiece_finish(t, cased);
}

/* ---- tiktoken ---- */

static bool read_rank(const embla_name *line, embla_name *text, uint64_t *rank)
{
    const char *space = memchr(line->bytes, ' ', line->length);
    if (!space || space == line->bytes) return false;
    *text = (embla_name){line->bytes, (uint32_t)(space - line->bytes), 0};
    *rank = 0;
    size_t digits = line->length - text->length - 1;
    if (digits == 0 || digits > 9) return false;
    for (size_t i = 0; i < digits; i++) {
        if (space[1 + i] < '0' || space[1 + i] > '9') return false;
        *rank = *rank * 10 + (uint64_t)(space[1 + i] - '0');
    }
    return text->length % 4 == 0;
}

bool embla_tiktoken_sniff(const uint8_t *bytes, size_t count)
{
    embla_name line, text;
    uint64_t rank = 0;
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        if (!next_line(bytes, count < 4096 ? count : 4096, &at, &line)) return i > 0;
        if (!read_rank(&line, &text, &rank)) return false;
        for (size_t j = 0; j < text.length; j++)
            if (embla_base64_digit(text.bytes[j]) < 0 && text.bytes[j] != '=') return false;
    }
    return true;
}

embla_status embla_tokenizer_add_bytes(embla_tokenizer *t, const uint8_t *bytes, size_t count,
                                       uint64_t token)
{
    char text[4096];
    size_t length = 0;
    if (count > sizeof text / 2)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the string of token %" PRIu64 " has %zu bytes; the limit is %zu",
                          t->name, token, count, sizeof text / 2);
    for (size_t i = 0; i < count; i++)
        length += embla_utf8_encode(embla_byte_code(bytes[i]), text + length);
    return embla_tokenizer_add(t, text, length, token);
}

const char *embla_byte_stages(embla_byte_cut cut)
{
#define TIKTOKEN(pattern)                                                                          \
    "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","            \
    "\"pattern\":{\"Regex\":\"" pattern "\"},\"behavior\":\"Isolated\",\"invert\":false},"         \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"                    \
    "\"use_regex\":false}]},\"decoder\":{\"type\":\"ByteLevel\"}}"
#define ENDINGS  "'s|'t|'re|'ve|'m|'ll|'d"
#define FOLDED   "(?i:" ENDINGS ")"
#define REST     "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define CAPITALS "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]"
#define SMALL    "[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]"
#define BEFORE   "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?"
    static const char gpt2[] =
        TIKTOKEN(ENDINGS "| ?\\\\p{L}+| ?\\\\p{N}+| ?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|"
                         "\\\\s+");
    static const char cl100k[] = TIKTOKEN(FOLDED "|" BEFORE "\\\\p{L}+|\\\\p{N}{1,3}" REST);
    static const char qwen[] = TIKTOKEN(FOLDED "|" BEFORE "\\\\p{L}+|\\\\p{N}" REST);
    static const char o200k[] =
        TIKTOKEN(BEFORE CAPITALS "*" SMALL "+" FOLDED "?|" BEFORE CAPITALS "+" SMALL "*" FOLDED
                                 "?|\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|"
                                 "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+");
    static const char *const all[] = {gpt2, cl100k, qwen, o200k};
    return all[cut];
}

/* Which pattern a vocabulary of this size goes with. */
static embla_byte_cut cut_of(size_t count)
{
    if (count < 60000) return EMBLA_BYTE_CUT_GPT2;
    if (count >= 150000 && count < 160000) return EMBLA_BYTE_CUT_QWEN;
    return count >= 190000 ? EMBLA_BYTE_CUT_O200K : EMBLA_BYTE_CUT_CL100K;
}

static embla_status read_ranks(embla_tokenizer *t, const uint8_t *bytes, size_t count)
{
    embla_name line, text;
    uint64_t rank = 0;
    size_t at = 0, length = 0;
    while (next_line(bytes, count, &at, &line)) {
        uint8_t token[2048];
        if (line.length == 0) continue;
        if (!read_rank(&line, &text, &rank) || text.length > 2000 ||
            !embla_base64_decode(text.bytes, text.length, token, &length))
            return embla_fail(EMBLA_ERR_FORMAT, "%.256s: byte %zu of %zu: expected \"base64 rank\"",
                              t->name, at, count);
        if (t->vocab_count >= LINES_MOST)
            return embla_fail(EMBLA_ERR_FORMAT, "%.256s: it has more than %d lines", t->name,
                              LINES_MOST);
        EMBLA_TRY(embla_tokenizer_add_bytes(t, token, length, rank));
    }
    return EMBLA_OK;
}

embla_status embla_tiktoken_parse(embla_tokenizer *t, const uint8_t *bytes, size_t count)
{
    uint32_t *ranks = NULL;
    EMBLA_TRY(read_ranks(t, bytes, count));
    EMBLA_TRY(embla_tokenizer_stages(t, embla_byte_stages(cut_of(t->vocab_count))));
    EMBLA_TRY(embla_arena_many(&t->arena, t->vocab_count, sizeof *ranks, "ranks", &ranks));
    for (size_t i = 0; i < t->vocab_count; i++) ranks[i] = t->vocab[i].number;
    t->bpe.ranks = ranks;
    t->bpe.ignore_merges = true;
    t->kind = EMBLA_TOKENIZER_BPE;
    return embla_tokenizer_finish(t, NULL, 0);
}
