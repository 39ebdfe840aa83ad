/* SPDX-License-Identifier: Apache-2.0 */
/* Reads words from binary files: the tokenizers of llama2.c and llm.c, and SentencePiece's models.
 *
 *   llama2.c       i32 bytes of the longest word; then for each: f32 score, i32 length, bytes
 *   llm.c          256 x i32: 20240328, version 1 or 2, words, ..; then for each: u8 length,
 *                  bytes (L2)
 *   SentencePiece  a protobuf message; each field 1 is a message whose field 1 is a piece
 *
 * Each file ends with its last word. Words may be any bytes; "<0x0A>" is a word of six bytes.
 */
#include <string.h>

#include "checkpoint/vocab.h"
#include "files/cursor.h"
#include "files/protobuf.h"

/* ---- llama2.c ---- */

/* There is no magic number. True for a small number followed by lengths that do not exceed it. */
bool embla_vocab_llama2c_sniff(const uint8_t *head, size_t have)
{
    size_t at = 4;
    if (have < 12) return false;
    uint32_t most = embla_le32(head);
    if (most < 1 || most > EMBLA_WORD_BYTES) return false;
    for (int i = 0; i < 2 && have - at >= 8; i++) {
        uint32_t length = embla_le32(head + at + 4);
        if (length > most) return false;
        if (length > have - at - 8) break;
        at += 8 + length;
    }
    return true;
}

static embla_status read_llama2c(embla_cursor *c, embla_vocab *vocab)
{
    int32_t most = 0, length = 0;
    const uint8_t *bytes = NULL;
    EMBLA_TRY(embla_cursor_i32(c, "the length of the longest word", &most));
    if (most < 1 || most > EMBLA_WORD_BYTES)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the longest word has %" PRId32
                          " bytes; it must have 1 to %d (L3)",
                          c->map->name, most, EMBLA_WORD_BYTES);
    for (uint64_t token = 0; embla_cursor_left(c) > 0; token++) {
        EMBLA_TRY(embla_cursor_skip(c, 4, "the score of a word"));
        EMBLA_TRY(embla_cursor_i32(c, "the length of a word", &length));
        if (length < 0 || length > most)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.256s: the word of token %" PRIu64 " has %" PRId32
                              " bytes; it must have 0 to %" PRId32 " (L3)",
                              c->map->name, token, length, most);
        EMBLA_TRY(embla_cursor_bytes(c, (uint64_t)length, "a word", &bytes));
        EMBLA_TRY(embla_vocab_add(vocab, token, bytes, (size_t)length));
    }
    return EMBLA_OK;
}

/* ---- llm.c ---- */

enum { LLMC_MAGIC = 20240328, LLMC_HEADER = 1024 };

bool embla_vocab_llmc_sniff(const uint8_t *head, size_t have)
{
    return have >= 4 && embla_le32(head) == LLMC_MAGIC;
}

static embla_status read_llmc(embla_cursor *c, embla_vocab *vocab)
{
    int32_t version = 0, count = 0;
    const uint8_t *bytes = NULL;
    uint8_t length = 0;
    EMBLA_TRY(embla_cursor_skip(c, 4, "the header"));
    EMBLA_TRY(embla_cursor_i32(c, "the header", &version));
    EMBLA_TRY(embla_cursor_i32(c, "the header", &count));
    EMBLA_TRY(embla_cursor_skip(c, LLMC_HEADER - 12, "the header"));
    if (version != 1 && version != 2)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: version %" PRId32
                          " of llm.c's tokenizer is not supported; 1 and 2 are (L2)",
                          c->map->name, version);
    if (count < 1 || (uint64_t)count > embla_cursor_left(c) / 2)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the header counts %" PRId32 " words, but %" PRIu64
                          " bytes are left (L3)",
                          c->map->name, count, embla_cursor_left(c));
    for (int32_t token = 0; token < count; token++) {
        EMBLA_TRY(embla_cursor_u8(c, "the length of a word", &length));
        if (length == 0)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.256s: the word of token %" PRId32 " of %" PRId32 " is empty (L2)",
                              c->map->name, token, count);
        EMBLA_TRY(embla_cursor_bytes(c, length, "a word", &bytes));
        EMBLA_TRY(embla_vocab_add(vocab, (uint64_t)token, bytes, length));
    }
    if (embla_cursor_left(c) > 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: after its %" PRId32 " words %" PRIu64 " bytes are left (L2)",
                          c->map->name, count, embla_cursor_left(c));
    return EMBLA_OK;
}

/* ---- SentencePiece ---- */

/* Finds the piece in a message {1: piece, 2: score, 3: type}. If there are several, the last one
 * counts, as in protobuf. */
static bool find_piece(embla_proto s, embla_proto *piece)
{
    bool found = false;
    while (s.left > 0) {
        embla_proto_tag t;
        if (!embla_proto_next(&s, &t) || t.length > s.left) return false;
        if (t.field == 1 && t.wire != 2) return false;
        if (t.field == 1) {
            *piece = (embla_proto){s.at, (size_t)t.length};
            found = true;
        }
        s.at += t.length;
        s.left -= (size_t)t.length;
    }
    return found;
}

static embla_status refuse(const embla_cursor *c, const char *what)
{
    return embla_fail(EMBLA_ERR_FORMAT, "%.256s: byte %" PRIu64 " of %" PRIu64 ": %s (C2)",
                      c->map->name, c->at, c->map->size, what);
}

static embla_status read_sentencepiece(embla_cursor *c, embla_vocab *vocab)
{
    enum { TAG_MOST = 20 }; /* two varints of ten bytes */
    for (uint64_t token = 0; embla_cursor_left(c) > 0;) {
        const uint8_t *bytes = NULL;
        uint64_t have = 0;
        embla_proto_tag t;
        embla_proto piece;
        EMBLA_TRY(embla_cursor_peek(c, TAG_MOST, &bytes, &have));
        embla_proto s = {bytes, (size_t)have};
        if (!embla_proto_next(&s, &t))
            return refuse(c, "expected a field of a SentencePiece model");
        EMBLA_TRY(embla_cursor_skip(c, have - s.left, "a tag"));
        if (t.field != 1) {
            EMBLA_TRY(embla_cursor_skip(c, t.length, "a field"));
            continue;
        }
        if (t.wire != 2) return refuse(c, "a piece is not a message");
        EMBLA_TRY(embla_cursor_bytes(c, t.length, "a piece", &bytes));
        if (!find_piece((embla_proto){bytes, (size_t)t.length}, &piece))
            return refuse(c, "the message before it has no piece");
        EMBLA_TRY(embla_vocab_add(vocab, token++, piece.at, piece.left));
    }
    return EMBLA_OK;
}

/* ---- entry points ---- */

static embla_status read_with(embla_status (*words)(embla_cursor *c, embla_vocab *vocab),
                              const embla_map *map, embla_vocab *vocab)
{
    embla_cursor cursor;
    embla_cursor_begin(&cursor, map, 0);
    embla_status status = words(&cursor, vocab);
    embla_cursor_end(&cursor);
    return status;
}

embla_status embla_vocab_llama2c(embla_map *map, embla_vocab *vocab)
{
    return read_with(read_llama2c, map, vocab);
}

embla_status embla_vocab_llmc(embla_map *map, embla_vocab *vocab)
{
    return read_with(read_llmc, map, vocab);
}

embla_status embla_vocab_sentencepiece(embla_map *map, embla_vocab *vocab)
{
    return read_with(read_sentencepiece, map, vocab);
}
