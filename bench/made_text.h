/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up language for the benchmarks of text: its words, texts in which they are distributed as
 * in real text, and tokenizers for it. Always the same bytes. */
#ifndef BENCH_MADE_TEXT_H
#define BENCH_MADE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    char *bytes;
    size_t count, room;
    bool failed; /* there was not enough memory */
} bench_string;

void bench_string_free(bench_string *s);

enum { BENCH_WORDS = 30000, BENCH_KNOWN_WORDS = 20000 };

/* About `bytes` bytes of text: with capitals, digits, punctuation and some letters outside ASCII.
 * A line has some twenty words; if not `lines`, the text is one line. */
bench_string bench_made_text(size_t bytes, bool lines);

typedef enum { BENCH_WORDPIECE, BENCH_BPE, BENCH_UNIGRAM, BENCH_TOKENIZERS } bench_tokenizer_kind;

/* The tokenizer.json of a kind. BENCH_KNOWN_WORDS words are one token each: WordPiece as in BERT,
 * byte-level BPE as in GPT-2, Unigram as in T5. */
bench_string bench_made_tokenizer(bench_tokenizer_kind kind);

#endif
