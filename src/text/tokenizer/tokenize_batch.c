/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizes many texts over threads. Each thread has an embla_tokenized of its own and takes the
 * next text that is not done; then the tokens are copied together in the order of the texts. */
#include <string.h>

#include "base/options.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "tokenizer/tokenize.h"

/* Where the tokens of a text are before they are copied. */
typedef struct {
    size_t worker, first, count;
} found;

embla_status embla_encode_workers(embla_tokenized *e, size_t count)
{
    EMBLA_TRY(embla_grow(&e->workers, &e->worker_room, e->worker_count, count, sizeof(void *),
                         "threads"));
    for (; e->worker_count < count; e->worker_count++)
        EMBLA_TRY(embla_tokenized_new(e->tokenizer, &e->workers[e->worker_count]));
    for (size_t i = 0; i < count; i++) {
        EMBLA_TRY(embla_tokenize_begin(e->workers[i], &e->options));
        e->workers[i]->texts = 2; /* padding to the longest waits until all are known */
        e->workers[i]->bound.watch = e->bound.watch;
    }
    return EMBLA_OK;
}

embla_status embla_encode_done(embla_tokenized *worker, size_t bytes)
{
    const embla_bound *bound = &worker->bound;
    return embla_watch_step(bound->watch, bound->caller, (int64_t)bytes)
               ? embla_watch_say(bound->watch)
               : EMBLA_OK;
}

embla_status embla_texts_check(const embla_texts *texts, size_t *bytes)
{
    size_t sum = 0;
    if (texts->count > 0 && (!texts->texts || !texts->lengths))
        return embla_fail(EMBLA_ERR_ARGUMENT, "there are %zu texts, but %s is NULL", texts->count,
                          texts->texts ? "texts->lengths" : "texts->texts");
    for (size_t i = 0; i < texts->count; i++) {
        if (!texts->texts[i] && texts->lengths[i] > 0)
            return embla_fail(EMBLA_ERR_ARGUMENT, "text %zu of %zu is NULL", i, texts->count);
        sum += texts->lengths[i];
    }
    *bytes = sum;
    return EMBLA_OK;
}

typedef struct {
    embla_tokenized *const *workers; /* one for each slot */
    const embla_texts *texts;
    found *list;
} batch;

static embla_status encode_some(void *job, size_t first, size_t end, size_t slot)
{
    const batch *b = job;
    embla_tokenized *w = b->workers[slot];
    w->bound.caller = embla_share_is_caller();
    for (size_t i = first; i < end; i++) {
        b->list[i] = (found){slot, w->count, 0};
        EMBLA_TRY(embla_tokenize_one(w, b->texts->texts[i], b->texts->lengths[i]));
        b->list[i].count = w->count - b->list[i].first;
        EMBLA_TRY(embla_encode_done(w, b->texts->lengths[i]));
    }
    return EMBLA_OK;
}

static embla_status encode_all(embla_tokenized *e, const embla_texts *texts, int threads,
                               found *list)
{
    EMBLA_TRY(embla_encode_workers(e, (size_t)threads));
    const batch b = {.workers = e->workers, .texts = texts, .list = list};
    return embla_share(threads, texts->count, EMBLA_TEXTS_AT_ONCE, encode_some, &b);
}

static embla_status collect(embla_tokenized *e, const found *list, size_t count, int threads)
{
    size_t total = 0;
    EMBLA_TRY(embla_grow(&e->starts, &e->start_room, 0, count + 1, sizeof *e->starts, "texts"));
    for (size_t i = 0; i < count; i++) {
        e->starts[i] = total;
        total += list[i].count;
    }
    e->starts[count] = total;
    e->texts = count;
    EMBLA_TRY(embla_tokenized_room(e, total));
    for (size_t i = 0; i < count; i++) {
        const embla_tokenized *w = e->workers[list[i].worker];
        const size_t to = e->starts[i], from = list[i].first, number = list[i].count;
        if (number == 0) continue;
        memcpy(e->tokens + to, w->tokens + from, number * sizeof *e->tokens);
        memcpy(e->special + to, w->special + from, number);
        if (e->options.offsets)
            memcpy(e->offsets + to, w->offsets + from, number * sizeof *e->offsets);
    }
    e->count = total;
    for (int i = 0; i < threads; i++) e->cut += e->workers[i]->cut;
    return embla_post_pad_batch(e);
}

static embla_status encode_batch(embla_tokenized *e, const embla_texts *texts)
{
    found *list = NULL;
    size_t room = 0, bytes = 0;
    EMBLA_TRY(embla_texts_check(texts, &bytes));
    int threads = embla_threads_for(e->options.threads, bytes * 16);
    e->watch.total = (int64_t)bytes;
    embla_status status = embla_grow(&list, &room, 0, texts->count, sizeof *list, "texts");
    if (status == EMBLA_OK) status = encode_all(e, texts, threads, list);
    if (status == EMBLA_OK) status = collect(e, list, texts->count, threads);
    embla_mem_free(list, room * sizeof *list);
    return status;
}

embla_status embla_tokenize_batch(embla_tokenized *tokenized, const embla_texts *texts,
                                  const embla_tokenize_options *options)
{
    embla_tokenized *e = tokenized;
    EMBLA_NEED(tokenized);
    EMBLA_NEED(texts);
    EMBLA_TRY(embla_options_check(texts));
    EMBLA_TRY(embla_tokenize_begin(e, options));
    embla_status status = encode_batch(e, texts);
    if (status == EMBLA_OK) status = embla_tokenizer_check(e->tokenizer);
    if (status != EMBLA_OK) e->count = e->cut = e->texts = 0;
    return status;
}
