/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the pieces of a text over threads. Each thread takes the next block of lines and counts in
 * a list of its own; then the lists are added up. */
#include "vocabulary/train_pieces.h"

#include <string.h>

#include "base/checksum.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "base/threads.h"
#include "tokenizer/tokenize.h"

enum { BLOCK = 1 << 18, ROUND = 64 }; /* bytes of a block; blocks between two calls of progress */

typedef struct {
    embla_tokenized *tokenized;
    embla_word_list *list;
} worker;

typedef struct {
    const embla_tokenizer *t;
    const char *text;
    size_t length;
    worker *workers; /* one for each slot */
    size_t worker_count;
} counting;

/* ---- one thread ---- */

static embla_status count_line(const counting *c, worker *w, const char *line, size_t length)
{
    embla_view normal, text;
    int list = 0;
    embla_bound_begin(&w->tokenized->bound, c->t->name, "a line", length);
    EMBLA_TRY(embla_normalize_text(c->t, w->tokenized, (embla_view){line, length, NULL}, &normal));
    if (normal.count == 0) return EMBLA_OK;
    EMBLA_TRY(embla_pretokenize(c->t, w->tokenized, normal, &text, &list));
    bool copy = text.bytes != line; /* a stage has rewritten it */
    const embla_text_span *pieces = w->tokenized->pieces[list];
    for (size_t i = 0; i < w->tokenized->piece_count[list]; i++)
        EMBLA_TRY(embla_word_list_add(w->list, text.bytes + pieces[i].begin,
                                      pieces[i].end - pieces[i].begin, 1, copy, NULL));
    return EMBLA_OK;
}

/* Counts the lines that begin in bytes from .. end - 1. */
static embla_status count_block(const counting *c, worker *w, size_t from, size_t end)
{
    if (from > 0) { /* the line that began before belongs to the block before */
        const char *before = memchr(c->text + from - 1, '\n', c->length - from + 1);
        from = before ? (size_t)(before - c->text) + 1 : c->length;
    }
    while (from < end) {
        const char *line = c->text + from, *stop = memchr(line, '\n', c->length - from);
        size_t length = stop ? (size_t)(stop - line) + 1 : c->length - from;
        if (length > INT32_MAX)
            return embla_fail(EMBLA_ERR_UNSUPPORTED, "a line has %zu bytes; the limit is %d",
                              length, INT32_MAX);
        EMBLA_TRY(count_line(c, w, line, length));
        from += length;
    }
    return EMBLA_OK;
}

/* ---- all threads ---- */

/* Some blocks of the text, from number `first` on. */
typedef struct {
    const counting *counting;
    size_t first;
} some_blocks;

static embla_status count_blocks(void *job, size_t first, size_t end, size_t slot)
{
    const some_blocks *b = job;
    const counting *c = b->counting;
    for (size_t i = b->first + first; i < b->first + end; i++)
        EMBLA_TRY(count_block(c, &c->workers[slot], i * BLOCK,
                              c->length - i * BLOCK < BLOCK ? c->length : (i + 1) * BLOCK));
    return EMBLA_OK;
}

static embla_status count_all(const counting *c, const embla_tokenizer_train_options *options)
{
    size_t blocks = c->length / BLOCK + 1;
    for (size_t at = 0; at < blocks; at += ROUND) {
        size_t done = at * BLOCK < c->length ? at * BLOCK : c->length;
        EMBLA_TRY(embla_progress_report(options->progress, options->context, "count", (int64_t)done,
                                        (int64_t)c->length));
        const some_blocks b = {c, at};
        EMBLA_TRY(embla_share((int)c->worker_count, blocks - at < ROUND ? blocks - at : ROUND, 1,
                              count_blocks, &b));
    }
    return embla_progress_report(options->progress, options->context, "count", (int64_t)c->length,
                                 (int64_t)c->length);
}

/* Adds the lists of all workers to that of the first. Copies belong to the list that made them. */
static embla_status add_lists(const counting *c)
{
    for (size_t i = 1; i < c->worker_count; i++) {
        size_t count = 0;
        const embla_counted_word *words = embla_word_list_words(c->workers[i].list, &count);
        for (size_t j = 0; j < count; j++) {
            bool copy = words[j].at < c->text || words[j].at >= c->text + c->length;
            EMBLA_TRY(embla_word_list_add(c->workers[0].list, words[j].at, words[j].length,
                                          words[j].count, copy, NULL));
        }
    }
    return EMBLA_OK;
}

static embla_status make_workers(counting *c)
{
    const uint64_t seed = embla_checksum_of(c->text, c->length).low;
    for (size_t i = 0; i < c->worker_count; i++) {
        EMBLA_TRY(embla_tokenized_new(c->t, &c->workers[i].tokenized));
        EMBLA_TRY(embla_word_list_new(seed, &c->workers[i].list));
    }
    return EMBLA_OK;
}

embla_status embla_pieces_count(const embla_tokenizer *t, const char *text, size_t length,
                                const embla_tokenizer_train_options *options, embla_word_list **out)
{
    counting c = {.t = t, .text = text, .length = length};
    void *memory = NULL;
    c.worker_count = (size_t)embla_threads_for(options->threads, length * 16);
    EMBLA_TRY(embla_mem_new(c.worker_count * sizeof *c.workers, "threads", &memory));
    c.workers = memory;
    embla_status status = make_workers(&c);
    if (status == EMBLA_OK) status = count_all(&c, options);
    if (status == EMBLA_OK) status = add_lists(&c);
    if (status == EMBLA_OK) {
        *out = c.workers[0].list;
        c.workers[0].list = NULL;
    }
    for (size_t i = 0; i < c.worker_count; i++) {
        embla_tokenized_free(c.workers[i].tokenized);
        embla_word_list_free(c.workers[i].list);
    }
    embla_mem_free(memory, c.worker_count * sizeof *c.workers);
    return status;
}
