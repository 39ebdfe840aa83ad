/* SPDX-License-Identifier: Apache-2.0 */
/* Words in binary files: the tokenizers of llama2.c and llm.c, SentencePiece's models, GGUF. The
 * input is the file. If it is accepted, each word lies in the file, in order. For the simple
 * formats the lengths add up to the file, counted here by the definition.
 *
 * The mutator usually generates a whole file with words from the input, and then sometimes changes
 * a byte: with random lengths nearly every file would be refused at once.
 */
#include "files/cursor.h"
#include "vocab.h"

/* Finds each word behind the previous one; returns the end of the last. */
static size_t check_order(const embla_vocab *vocab, const uint8_t *data, size_t size, size_t at)
{
    for (size_t i = 0; i < vocab->count; i++) {
        const embla_name *word = &vocab->words[i];
        const uint8_t *found = memmem(data + at, size - at, word->bytes, word->length);
        PROMISE(word->number == i && found);
        at = (size_t)(found - data) + word->length;
    }
    return at;
}

/* Checks that words, each with this many bytes before it, fill the file from begin on. */
static void check_exact(const embla_vocab *vocab, const uint8_t *data, size_t size, size_t begin,
                        size_t before)
{
    size_t at = begin;
    for (size_t i = 0; i < vocab->count; i++) {
        const embla_name *word = &vocab->words[i];
        PROMISE(before + word->length <= size - at);
        PROMISE(memcmp(data + at + before, word->bytes, word->length) == 0);
        at += before + word->length;
    }
    PROMISE(at == size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    embla_vocab *vocab = read_vocab(data, size, EMBLA_VOCAB_MARKED);
    size_t head = size < 4096 ? size : 4096;
    if (!vocab) return 0;
    if (embla_vocab_llmc_sniff(data, head))
        check_exact(vocab, data, size, 1024, 1);
    else if (embla_sentencepiece_sniff(data, head) || memcmp(data, "GGUF", 4) == 0)
        PROMISE(check_order(vocab, data, size, 0) <= size);
    else if (embla_vocab_llama2c_sniff(data, head))
        check_exact(vocab, data, size, 4, 8);
    embla_vocab_free(vocab);
    return 0;
}

/* ---- the mutator ---- */

typedef struct {
    uint8_t bytes[4096];
    size_t size;
} file;

static void put(file *f, const void *bytes, size_t count)
{
    if (count > sizeof f->bytes - f->size) return;
    memcpy(f->bytes + f->size, bytes, count);
    f->size += count;
}

static void put_le32(file *f, uint32_t value)
{
    uint8_t bytes[4];
    embla_put_le32(value, bytes);
    put(f, bytes, 4);
}

static void put_byte(file *f, size_t value)
{
    put(f, &(uint8_t){(uint8_t)value}, 1);
}

static void put_word(file *f, size_t kind, const uint8_t *word, size_t length)
{
    if (kind == 0) { /* llama2.c */
        put_le32(f, 0xbf800000u);
        put_le32(f, (uint32_t)length);
    } else if (kind == 1) { /* llm.c */
        put_byte(f, length);
    } else { /* SentencePiece: piece, score */
        put_byte(f, 1 << 3 | 2);
        put_byte(f, length + 7);
        put_byte(f, 1 << 3 | 2);
        put_byte(f, length);
    }
    put(f, word, length);
    if (kind == 2) {
        put_byte(f, 2 << 3 | 5);
        put_le32(f, 0);
    }
}

/* Generates a file of this kind, with words that are parts of the input. */
static void make(file *f, size_t kind, unsigned *seed, const uint8_t *data, size_t size)
{
    size_t count = 1 + choose(seed, 5);
    if (kind == 0) put_le32(f, 30);
    if (kind == 1) {
        put_le32(f, 20240328);
        put_le32(f, 1 + (uint32_t)choose(seed, 2));
        put_le32(f, (uint32_t)count);
        for (int i = 3; i < 256; i++) put_le32(f, 0);
    }
    for (size_t i = 0; i < count; i++) {
        size_t length = (kind == 1) + choose(seed, 30), at = choose(seed, size + 1);
        if (length > size - at) length = size - at;
        if (kind == 1 && length == 0)
            put_word(f, kind, (const uint8_t *)"x", 1);
        else
            put_word(f, kind, data + at, length);
    }
    if (kind == 2 && choose(seed, 2) == 0)
        put(f,
            "\x12\x03xyz\x20\x81\x01\x29"
            "eightbyt",
            17);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    file f = {.size = 0};
    if (choose(&seed, 2) == 0) return LLVMFuzzerMutate(data, size, most);
    make(&f, choose(&seed, 3), &seed, data, size);
    if (f.size > most) return LLVMFuzzerMutate(data, size, most);
    if (choose(&seed, 2) == 0) f.bytes[choose(&seed, f.size)] = (uint8_t)choose(&seed, 256);
    memcpy(data, f.bytes, f.size);
    if (choose(&seed, 4) == 0) return LLVMFuzzerMutate(data, f.size, most);
    return f.size;
}
