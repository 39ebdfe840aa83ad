/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a text or as a file of tokens. Promises:
 *   - a refused input gives an error message, and nothing is kept;
 *   - documents in order, spelled by the words of their tokens, are the lines of the text, as a
 *     simple loop finds them; a stream is the text; the tokens of a file are its numbers;
 *   - spelled text, encoded again, gives the same tokens;
 *   - the words of a stream are those that encode finds, and the more frequent has the lower token;
 *   - every token of every batch is below vocab, each is the target of the previous one, and an
 *     epoch together with the validation part has each target of the documents once.
 * The first bytes choose kind, documents, seed, share, batch, and where the text is split into
 * files.
 */
#include "base/mem.h"
#include "corpus/corpus.h"
#include "input.h"

enum { MOST = 4096 };
static int32_t tokens[MOST], targets[MOST];

typedef struct {
    embla_corpus_options options;
    size_t batch, length, cut; /* bytes of the first file; if all of them, there is one file */
    const uint8_t *bytes;
    size_t size;
} choice;

static embla_corpus *open_as(const choice *k, const embla_corpus_options *options)
{
    embla_corpus *c = NULL;
    embla_status status;
    if (options->kind == EMBLA_CORPUS_TOKENS) {
        embla_map *map = NULL;
        if (embla_map_bytes(k->bytes, k->size, "input", &map) != EMBLA_OK) exit(1);
        status = embla_corpus_of_map(map, options, &c);
    } else {
        const embla_corpus_part parts[] = {{"input", k->cut}, {"input2", k->size}};
        void *memory = NULL;
        if (k->size > 0 && embla_mem_new(k->size, "input", &memory) != EMBLA_OK) exit(1);
        if (k->size > 0) memcpy(memory, k->bytes, k->size);
        status = embla_corpus_of_text(memory, k->size, parts, 1 + (k->cut < k->size), options, &c);
    }
    if (status == EMBLA_OK) return c;
    PROMISE(c == NULL && strncmp(embla_error(), "input", 5) == 0);
    PROMISE(status == EMBLA_ERR_FORMAT || status == EMBLA_ERR_UNSUPPORTED ||
            status == EMBLA_ERR_SHAPE);
    return NULL;
}

/* ---- contents ---- */

/* Checks that the words of count tokens are these bytes, and the reverse. */
static void check_spelling(const embla_corpus *c, const int32_t *list, size_t count,
                           const uint8_t *bytes, size_t size)
{
    int32_t *again = (int32_t *)(void *)block(count * sizeof *again);
    size_t at = 0, length = 0, found = 0;
    for (size_t i = 0; i < count; i++) {
        const char *word = embla_corpus_word(c, list[i], &length);
        PROMISE(word && word[length] == 0 && length <= size - at);
        PROMISE(memcmp(word, bytes + at, length) == 0);
        at += length;
    }
    PROMISE(at == size);
    PROMISE(embla_corpus_tokenize(c, (const char *)bytes, size, count, again, &found) == EMBLA_OK);
    PROMISE(found == count && memcmp(again, list, count * sizeof *again) == 0);
    free(again);
}

/* Document n is this line. */
static void check_line(const embla_corpus *c, int64_t n, const uint8_t *line, size_t length)
{
    size_t used = 0;
    PROMISE(embla_corpus_batch(c, &(embla_corpus_request){.step = n, .batch = 1, .length = MOST},
                               tokens, targets, &used) == EMBLA_OK);
    PROMISE(tokens[0] == embla_corpus_bos(c) && targets[used - 1] == embla_corpus_bos(c));
    check_spelling(c, targets, used - 1, line, length);
}

/* Checks the lines of one file; returns the number of documents so far. */
static int64_t check_lines(const embla_corpus *c, int64_t n, const uint8_t *p, const uint8_t *end)
{
    if (c->codes && end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) p += 3;
    while (p < end) {
        const uint8_t *stop = p;
        while (stop < end && *stop != '\n') stop++;
        size_t length = (size_t)(stop - p);
        if (length > 0 && p[length - 1] == '\r') length--;
        if (length > 0) check_line(c, n++, p, length);
        p = stop < end ? stop + 1 : end;
    }
    return n;
}

static void check_stream(const embla_corpus *c, const choice *k)
{
    size_t count = (size_t)embla_corpus_tokens(c), at = 0;
    uint8_t *text = (uint8_t *)block(k->size);
    PROMISE(embla_corpus_batch(c,
                               &(embla_corpus_request){.step = 0, .batch = 1, .length = count - 1},
                               tokens, targets, NULL) == EMBLA_OK);
    tokens[count - 1] = targets[count - 2];
    for (int file = 0; file < 2; file++) { /* without byte order marks */
        size_t from = file ? k->cut : 0, to = file ? k->size : k->cut;
        if (c->codes && to - from >= 3 && memcmp(k->bytes + from, "\xef\xbb\xbf", 3) == 0)
            from += 3;
        if (to > from) memcpy(text + at, k->bytes + from, to - from);
        at += to - from;
    }
    check_spelling(c, tokens, count, text, at);
    free(text);
}

static void check_numbers(const embla_corpus *c, const choice *k)
{
    size_t count = (size_t)embla_corpus_tokens(c), from = k->size - count * c->width;
    if (count > MOST) return;
    PROMISE(embla_corpus_batch(c,
                               &(embla_corpus_request){.step = 0, .batch = 1, .length = count - 1},
                               tokens, targets, NULL) == EMBLA_OK);
    for (size_t i = 0; i + 1 < count; i++) {
        uint32_t number = 0;
        memcpy(&number, k->bytes + from + i * c->width, c->width);
        PROMISE((uint32_t)tokens[i] == number && embla_corpus_word(c, tokens[i], NULL) == NULL);
    }
}

/* ---- batches ---- */

static size_t check_batch(const embla_corpus *c, size_t batch, size_t length)
{
    size_t counted = 0;
    for (size_t b = 0; b < batch; b++)
        for (size_t i = 0; i < length; i++) {
            size_t at = b * length + i;
            PROMISE(tokens[at] >= 0 && tokens[at] < embla_corpus_vocab(c));
            PROMISE(targets[at] == EMBLA_TARGET_IGNORE ||
                    (targets[at] >= 0 && targets[at] < embla_corpus_vocab(c)));
            bool counts = targets[at] != EMBLA_TARGET_IGNORE;
            if (i > 0 && counts) PROMISE(tokens[at] == targets[at - 1]);
            counted += counts;
        }
    return counted;
}

static void check_batches(const embla_corpus *c, const choice *k)
{
    size_t counted = 0, used = 0, longest = k->options.documents ? MOST : k->length;
    int64_t step = 0, epoch = c->starts ? (int64_t)c->train : 2;
    for (; step < epoch; step++) {
        embla_status status = embla_corpus_batch(
            c, &(embla_corpus_request){.step = step, .batch = 1, .length = longest}, tokens,
            targets, &used);
        if (status == EMBLA_ERR_SHAPE) break;
        PROMISE(status == EMBLA_OK && used <= longest);
        counted += check_batch(c, 1, used);
    }
    if (k->batch * longest > MOST) longest = MOST / k->batch;
    if (embla_corpus_batch(
            c, &(embla_corpus_request){.step = step, .batch = k->batch, .length = longest}, tokens,
            targets, NULL) == EMBLA_OK)
        (void)check_batch(c, k->batch, longest);
    longest = k->options.documents ? MOST : k->length;
    for (step = 0;; step++) {
        embla_status status =
            embla_corpus_batch(c,
                               &(embla_corpus_request){
                                   .step = step, .batch = 1, .length = longest, .validation = true},
                               tokens, targets, &used);
        if (status == EMBLA_ERR_RANGE) break;
        PROMISE(status == EMBLA_OK);
        size_t found = check_batch(c, 1, used);
        PROMISE(found > 0);
        counted += found;
    }
    if (c->starts) PROMISE((int64_t)counted == embla_corpus_tokens(c));
}

/* ---- words ---- */

/* The same text as a stream of words, in one file. */
static void check_words(const choice *k)
{
    const embla_corpus_options options = {.kind = EMBLA_CORPUS_WORDS,
                                          .validation = -1,
                                          .in_order = true,
                                          .max_words = 1 + (int64_t)(k->options.seed % 16)};
    static int32_t again[MOST];
    choice one = *k;
    size_t count = 0, skip = 0;
    int64_t unknown = 0, counts[MOST] = {0};
    one.cut = k->size;
    embla_corpus *c = open_as(&one, &options);
    if (!c) return;
    if (k->size >= 3 && memcmp(k->bytes, "\xef\xbb\xbf", 3) == 0) skip = 3;
    PROMISE(embla_corpus_tokenize(c, (const char *)k->bytes + skip, k->size - skip, MOST, again,
                                  &count) == EMBLA_OK);
    PROMISE((int64_t)count == embla_corpus_tokens(c) && count >= 2);
    PROMISE(embla_corpus_batch(c,
                               &(embla_corpus_request){.step = 0, .batch = 1, .length = count - 1},
                               tokens, targets, NULL) == EMBLA_OK);
    PROMISE(memcmp(tokens, again, (count - 1) * sizeof *tokens) == 0);
    PROMISE(targets[count - 2] == again[count - 1]);
    for (size_t i = 0; i < count; i++) counts[again[i]]++;
    int32_t last = embla_corpus_unknown(c, &unknown);
    PROMISE(counts[last] == unknown && last + 1 == embla_corpus_vocab(c));
    for (int32_t i = 0; i < last; i++) {
        PROMISE(counts[i] > 0 && (i == 0 || counts[i] <= counts[i - 1]));
        PROMISE(embla_corpus_word(c, i, NULL) != NULL);
    }
    embla_corpus_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size < MOST ? size : MOST - 8};
    size_t live = embla_mem_live();
    choice k = {.options.kind = (embla_corpus_kind)take_below(&in, 3)};
    k.options.documents = take_below(&in, 2) == 1 && k.options.kind != EMBLA_CORPUS_TOKENS;
    k.options.seed = take_byte(&in);
    k.options.validation = ((double)take_below(&in, 12) - 1) / 11;
    k.batch = 1 + take_below(&in, 5);
    k.length = 1 + take_below(&in, 64);
    k.cut = take_byte(&in);
    k.bytes = in.data;
    k.size = in.size;
    if (k.cut > k.size || k.cut == 0) k.cut = k.size;
    embla_corpus_options all = {.kind = k.options.kind,
                                .documents = k.options.documents,
                                .validation = -1,
                                .in_order = true};
    embla_corpus *c = open_as(&k, &all);
    if (c && all.kind == EMBLA_CORPUS_TOKENS) {
        check_numbers(c, &k);
    } else if (c && all.documents) {
        int64_t n = check_lines(c, 0, k.bytes, k.bytes + k.cut);
        n = check_lines(c, n, k.bytes + k.cut, k.bytes + k.size);
        PROMISE(n == embla_corpus_documents(c));
    } else if (c) {
        check_stream(c, &k);
    }
    embla_corpus *drawn = open_as(&k, &k.options);
    PROMISE(c || !drawn);
    if (drawn) check_batches(drawn, &k);
    if (k.options.kind != EMBLA_CORPUS_TOKENS) check_words(&k);
    embla_corpus_free(c);
    embla_corpus_free(drawn);
    PROMISE(embla_mem_live() == live);
    return 0;
}
