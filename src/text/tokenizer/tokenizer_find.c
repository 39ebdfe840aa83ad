/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the tokenizer of a checkpoint: in its GGUF file, in its folder, in the folder above, or
 * made of its words alone.
 *
 * Some files have only the words of a byte-pair vocabulary: vocab.json, tokenizer.bin of llama2.c
 * and of llm.c. Such words are numbered in the order in which they were merged, so the merge with
 * the lowest token comes first. The words also show how they write text:
 *
 *   not UTF-8, or a word for each of GPT-2's letters for bytes   bytes, cut by GPT-2's pattern
 *   "<0x0A>", or a word that begins with U+2581                  SentencePiece: a space in front
 *   "<unk>" or "[UNK]"                                           words of embla_next_word
 *   any other                                                    characters
 */
#include <stdio.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/vocab.h"
#include "files/durable.h"
#include "tokenizer/grow.h"
#include "tokenizer/stages.h"

static const char MARK[] = "\xe2\x96\x81";
static const char text_end[] = "<|endoftext|>";

/* ---- words alone ---- */

static bool has_word(const embla_vocab *vocab, const char *word, size_t length)
{
    return embla_names_find(&vocab->index, word, length) != NULL;
}

/* Whether every byte has a word, in GPT-2's letters. */
static bool has_letters(const embla_vocab *vocab)
{
    char letter[4];
    for (unsigned b = 0; b < 256; b++)
        if (!has_word(vocab, letter, embla_utf8_encode(embla_byte_code((uint8_t)b), letter)))
            return false;
    return true;
}

static bool has_marks(const embla_vocab *vocab)
{
    for (size_t i = 0; i < vocab->count; i++)
        if (vocab->words[i].length > 3 && memcmp(vocab->words[i].bytes, MARK, 3) == 0) return true;
    return false;
}

static bool are_utf8(const embla_vocab *vocab)
{
    for (size_t i = 0; i < vocab->count; i++)
        if (embla_utf8_valid(vocab->words[i].bytes, vocab->words[i].length) !=
            vocab->words[i].length)
            return false;
    return true;
}

/* Adds all words. raw: they are bytes, which get GPT-2's letters. */
static embla_status add_words(embla_tokenizer *t, const embla_vocab *vocab, bool raw)
{
    for (size_t i = 0; i < vocab->count; i++) {
        const embla_name *word = &vocab->words[i];
        EMBLA_TRY(raw ? embla_tokenizer_add_bytes(t, (const uint8_t *)word->bytes, word->length,
                                                  word->number)
                      : embla_tokenizer_add(t, word->bytes, word->length, word->number));
    }
    return EMBLA_OK;
}

/* Whether a word stands for no text: "<0x0A>", "<s>". */
static bool is_name(const embla_name *word)
{
    return word->length > 2 && word->bytes[0] == '<' && word->bytes[word->length - 1] == '>';
}

/* The rank of a word is its token. Names are hidden: they are never found in a text. */
static embla_status rank_words(embla_tokenizer *t, bool names)
{
    uint32_t *ranks = NULL;
    EMBLA_TRY(embla_arena_many(&t->arena, t->vocab_count, sizeof *ranks, "ranks", &ranks));
    EMBLA_TRY(embla_arena_many(&t->arena, t->vocab_count, sizeof *t->hidden, "words", &t->hidden));
    for (size_t i = 0; i < t->vocab_count; i++) {
        t->hidden[i] = names && is_name(&t->vocab[i]);
        ranks[i] = t->hidden[i] ? UINT32_MAX : t->vocab[i].number;
    }
    t->kind = EMBLA_TOKENIZER_BPE;
    t->bpe.ranks = ranks;
    return EMBLA_OK;
}

static embla_status set_letters(embla_tokenizer *t)
{
    for (size_t i = 0; i < t->vocab_count; i++)
        if (embla_name_is(&t->vocab[i], text_end))
            EMBLA_TRY(embla_added_special(t, text_end, sizeof text_end - 1));
    EMBLA_TRY(embla_tokenizer_stages(t, embla_byte_stages(EMBLA_BYTE_CUT_GPT2)));
    return rank_words(t, false);
}

static embla_status set_pieces(embla_tokenizer *t, bool marked)
{
    static const char spaces[] =
        "{\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\" \"},\"decoder\":{\"type\":"
        "\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
        "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}}";
    t->bpe.has_unknown = t->bpe.fuse = t->bpe.byte_fallback = true;
    t->unknown_text = (embla_name){"<unk>", 5, 0};
    EMBLA_TRY(embla_tokenizer_stages(t, marked ? embla_llama_stages : spaces));
    return rank_words(t, true);
}

static embla_status set_words(embla_tokenizer *t, const char *unknown)
{
    t->kind = EMBLA_TOKENIZER_WORDLEVEL;
    t->unknown_text = (embla_name){unknown, (uint32_t)strlen(unknown), 0};
    EMBLA_TRY(embla_arena_many(&t->arena, 1, sizeof *t->pres, "pre-tokenizers", &t->pres));
    t->pres[0] = (embla_pre){
        .kind = EMBLA_PRE_SPLIT,
        .behavior = EMBLA_SPLIT_REMOVED,
        .invert = true,
        .pattern = {.kind = EMBLA_PATTERN_SCAN, .scan = embla_scan_next_word, .first = -1}};
    t->pre_count = 1;
    return EMBLA_OK;
}

/* A character that no word has is an error: has_unknown without a token for it. */
static embla_status set_characters(embla_tokenizer *t)
{
    t->bpe.has_unknown = true;
    EMBLA_TRY(embla_tokenizer_stages(t, "{\"decoder\":{\"type\":\"Fuse\"}}"));
    return rank_words(t, true);
}

static embla_status fill(embla_tokenizer *t, const embla_vocab *vocab)
{
    const bool raw = !are_utf8(vocab), marked = has_marks(vocab);
    EMBLA_TRY(add_words(t, vocab, raw));
    embla_status status = EMBLA_OK;
    if (raw || has_letters(vocab))
        status = set_letters(t);
    else if (marked || has_word(vocab, "<0x0A>", 6))
        status = set_pieces(t, marked);
    else if (has_word(vocab, "<unk>", 5) || has_word(vocab, "[UNK]", 5))
        status = set_words(t, has_word(vocab, "<unk>", 5) ? "<unk>" : "[UNK]");
    else
        status = set_characters(t);
    return status == EMBLA_OK ? embla_tokenizer_finish(t, NULL, 0) : status;
}

embla_status embla_tokenizer_new_words(const embla_vocab *vocab, embla_tokenizer **out)
{
    embla_tokenizer *t = NULL;
    size_t length = strlen(vocab->source);
    bool binary = length >= 4 && strcmp(vocab->source + length - 4, ".bin") == 0;
    EMBLA_TRY(embla_tokenizer_begin(vocab->source, binary ? "tokenizer.bin" : "words", &t));
    embla_status status = fill(t, vocab);
    if (status == EMBLA_OK)
        *out = t;
    else
        embla_tokenizer_free(t);
    return status;
}

/* ---- tokens as words ---- */

embla_status embla_tokenizer_words(const embla_tokenizer *tokenizer, embla_vocab **out)
{
    embla_arena scratch = {0};
    embla_name *names = NULL;
    EMBLA_NEED(tokenizer);
    EMBLA_NEED(out);
    embla_status status = embla_arena_many(&scratch, (uint64_t)tokenizer->token_end + 1,
                                           sizeof *names, "tokens", &names);
    for (size_t i = 0; status == EMBLA_OK && i < tokenizer->token_end; i++)
        if (!embla_token_name(tokenizer, (int32_t)i, false, &names[i])) names[i] = (embla_name){0};
    if (status == EMBLA_OK)
        status = embla_vocab_of_names(names, tokenizer->token_end, tokenizer->name, out);
    embla_arena_free(&scratch);
    return status;
}

/* ---- copies ---- */

enum { COPY_BYTES = 1 << 16 };

/* Where white space ends; the last byte at most. */
static size_t skip_space(const uint8_t *bytes, size_t count)
{
    size_t at = 0;
    while (at + 1 < count && strchr(" \t\r\n", bytes[at]) && bytes[at]) at++;
    return at;
}

static embla_status copy_bytes(const embla_map *map, embla_durable *file)
{
    uint8_t bytes[COPY_BYTES];
    for (uint64_t at = 0; at < map->size;) {
        size_t count = map->size - at < COPY_BYTES ? (size_t)(map->size - at) : COPY_BYTES;
        EMBLA_TRY(embla_map_read(map, at, count, bytes));
        if (at == 0 && bytes[skip_space(bytes, count)] != '{')
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "%.256s: its %" PRIu64 " bytes are no tokenizer.json, so they cannot "
                              "be copied as one",
                              map->name, map->size);
        EMBLA_TRY(embla_durable_write(file, bytes, count));
        at += count;
    }
    return EMBLA_OK;
}

embla_status embla_tokenizer_copy(const char *from, const char *to)
{
    embla_map *map = NULL;
    embla_durable *file = NULL;
    EMBLA_NEED(from);
    EMBLA_NEED(to);
    EMBLA_TRY(embla_map_open(EMBLA_HERE, from, from, true, &map));
    embla_status status = embla_durable_open(to, &file);
    if (status == EMBLA_OK) status = copy_bytes(map, file);
    embla_map_free(map);
    if (status == EMBLA_OK) return embla_durable_commit(file);
    embla_durable_abandon(file);
    return status;
}

/* ---- a checkpoint ---- */

enum { PATH_MOST = 4096 };

/* Opens the tokenizer of the checkpoint's folder. A folder without one may share that of the folder
 * above, as for words (embla_vocab_open). */
static embla_status open_beside(const embla_checkpoint *cp, embla_tokenizer **out)
{
    char above[PATH_MOST];
    embla_status status = embla_tokenizer_open_file(cp->folder_name, out);
    if (status != EMBLA_ERR_NOT_FOUND || !cp->config) return status;
    int used = snprintf(above, sizeof above, "%s/../tokenizer.json", cp->folder_name);
    if (used < 0 || (size_t)used >= sizeof above) return status;
    return embla_tokenizer_open_file(above, out);
}

/* Words that convert has written beside a table say nothing about text. */
static embla_status of_words(const embla_checkpoint *cp, embla_tokenizer **out)
{
    embla_vocab *vocab = NULL;
    embla_status status = embla_vocab_open(cp, &vocab);
    if (status == EMBLA_OK) status = embla_tokenizer_new_words(vocab, out);
    embla_vocab_free(vocab);
    if (status != EMBLA_ERR_NOT_FOUND) return status;
    return embla_fail(
        EMBLA_ERR_NOT_FOUND,
        "%.200s: it has no tokenizer.json, tokenizer.model, spiece.model, vocab.txt or "
        "vocab.json",
        cp->shown);
}

/* Whether a tokenizer.json says no more than the words: embla_gpt_save writes such a one for words
 * whose tokenizer it does not know. It cuts at spaces, and has no token for other words. */
static bool has_only_words(const embla_tokenizer *t)
{
    return t->kind == EMBLA_TOKENIZER_WORDLEVEL && t->unknown < 0 && !t->has_decoder &&
           t->normal_count == 0 && t->pre_count == 1 && t->pres[0].kind == EMBLA_PRE_SPLIT &&
           t->pres[0].pattern.kind == EMBLA_PATTERN_CHARS;
}

embla_status embla_tokenizer_open(const embla_checkpoint *cp, embla_tokenizer **out)
{
    EMBLA_NEED_OF("embla_tokenizer_open", "checkpoint", cp);
    EMBLA_NEED(out);
    if (cp->format->one_table)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: a file of word vectors has no tokenizer; name one, or use a "
                          "static model",
                          cp->shown);
    if (strcmp(embla_checkpoint_format(cp), "gguf") == 0)
        return embla_tokenizer_open_file(cp->shards[0].map->name, out);
    embla_tokenizer *t = NULL;
    embla_status status = open_beside(cp, &t);
    if (status == EMBLA_ERR_NOT_FOUND) return of_words(cp, out);
    EMBLA_TRY(status);
    if (has_only_words(t)) {
        embla_tokenizer_free(t);
        return of_words(cp, out);
    }
    *out = t;
    return EMBLA_OK;
}
