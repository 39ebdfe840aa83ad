/* SPDX-License-Identifier: Apache-2.0 */
/* An inference engine in one page, which vendors its sources: two requests are decoded in turns,
 * and the rows of a giant table come from disk while the layers compute. It needs two files of
 * packaging/amalgamate, and no CMake:
 *
 *   packaging/amalgamate . && cc engine.c embla_rows.c -lpthread -o engine
 *
 *   engine             a small made-up table
 *   engine FILE        the giant table of a checkpoint, or of a pack, that describes its hasher
 *
 * The layers are made up too: a state for each request, which the rows change. What is real is when
 * an engine submits, waits and cancels.
 */
#if defined(__has_include)
#if __has_include("embla_rows.h")
#include "embla_rows.h"
#define HAVE_ROWS
#endif
#endif
#ifndef HAVE_ROWS
#include <embla_store.h>
#endif
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROMPT = 12, NEW = 10, REQUESTS = 2, CANDIDATES = 2, HISTORY = 8, CORPUS = 5000 };

/* The model: a table, its hasher, and tickets for its rows. */
typedef struct {
    embla_checkpoint *checkpoint;
    embla_ngram *ngram;
    embla_ngram_info info;
    embla_store *store;
    embla_store_info table;
    embla_tickets *tickets;
} model;

/* A request: its tokens so far, and what the layers have made of them. */
typedef struct {
    int32_t tokens[PROMPT + NEW];
    size_t count;
    uint64_t state;
    float *rows; /* (PROMPT, columns, dim): the ticket writes here */
    float *drafts[CANDIDATES];
    embla_ticket ticket;
    embla_ticket guesses[CANDIDATES];
    int32_t guessed[CANDIDATES];
} request;

static void must(bool done)
{
    if (done) return;
    fprintf(stderr, "engine: %s\n", *embla_error() ? embla_error() : "no memory, or no file");
    exit(1);
}

/* ---- the model ---- */

/* A token of a vocabulary: one of at most 97, after the first three, which are often special. */
static int32_t made_token(int64_t vocabulary, uint64_t number)
{
    int64_t first = vocabulary > 3 ? 3 : 0;
    int64_t most = vocabulary - first < 97 ? vocabulary - first : 97;
    return (int32_t)(first + (int64_t)(number % (uint64_t)most));
}

static int32_t corpus_token(int64_t vocabulary, size_t i)
{
    return made_token(vocabulary, i * i / 7 + i % 5); /* some n-grams are frequent */
}

/* Writes a made-up table, and packs it: one read for each row, and for each frequent n-gram. */
static void make_pack(const char *folder, const char *path)
{
    const embla_ngram_parameters parameters = {.kind = EMBLA_NGRAM_QWEN,
                                               .vocab = 100,
                                               .orders = 3,
                                               .rows_per_ngram = 8,
                                               .base = 2000,
                                               .seed = 1234,
                                               .eos = 2};
    const embla_row_format format = {.dim = 32, .dtype = EMBLA_F8_E4M3, .scale = 0x1p-8f};
    const embla_store_options direct = {.placement = EMBLA_PLACEMENT_DIRECT};
    int32_t tokens[CORPUS];
    char plain[128];
    embla_ngram *ngram = NULL;
    embla_ngram_info info;
    embla_store *store = NULL;
    embla_frequent *frequent = NULL;
    must(embla_ngram_new(&parameters, &ngram) == EMBLA_OK);
    must(embla_ngram_describe(ngram, &info) == EMBLA_OK);
    snprintf(plain, sizeof plain, "%s/table", folder);
    FILE *file = fopen(plain, "wb");
    must(file != NULL);
    for (int64_t i = 0; i < info.rows * 32; i++) must(putc((int)(i * 11 % 89), file) != EOF);
    must(fclose(file) == 0);
    for (size_t i = 0; i < CORPUS; i++) tokens[i] = corpus_token(parameters.vocab, i);

    const embla_extent extent = {.file = plain, .rows = info.rows};
    must(embla_store_open_extents(&format, &extent, 1, &direct, &store) == EMBLA_OK);
    const embla_frequent_options count = {
        .ngram = ngram, .tokens = tokens, .length = CORPUS, .max_ngrams = 200};
    must(embla_frequent_new(&count, &frequent) == EMBLA_OK);
    embla_pack_options how = {.ngram = ngram, .name = "a made-up table"};
    how.bundles = embla_frequent_rows(frequent, &how.bundle_count, &how.rows_per_ngram);
    must(embla_pack_write(store, path, &how, NULL) == EMBLA_OK);
    embla_frequent_free(frequent);
    embla_store_free(store);
    embla_ngram_free(ngram);
    remove(plain);
}

static void open_model(model *m, const char *path, bool packed)
{
    const embla_store_options direct = {.placement = EMBLA_PLACEMENT_DIRECT};
    must(embla_checkpoint_open(path, NULL, &m->checkpoint) == EMBLA_OK);
    must(embla_ngram_open(m->checkpoint, -1, NULL, &m->ngram) == EMBLA_OK);
    must(embla_store_open(m->checkpoint, NULL, -1, &direct, &m->store) == EMBLA_OK);
    must(embla_store_describe(m->store, &m->table) == EMBLA_OK);
    must(embla_ngram_describe(m->ngram, &m->info) == EMBLA_OK);
    must(m->info.history <= HISTORY);
    /* frequent n-grams stay in memory, all heads together; those of a pack are known */
    const embla_tickets_options keep = {.hot_bytes = 32 << 10,
                                        .hot_rows_per_ngram = (size_t)m->info.rows_per_ngram,
                                        .hot_file = packed ? path : NULL};
    must(embla_tickets_new(m->store, &keep, &m->tickets) == EMBLA_OK);
}

static void close_model(model *m)
{
    embla_tickets_free(m->tickets);
    embla_store_free(m->store);
    embla_ngram_free(m->ngram);
    embla_checkpoint_free(m->checkpoint);
}

/* ---- tickets ---- */

/* Submits tokens that follow the first `count` tokens of a request. They need not be its own. */
static embla_ticket submit(const model *m, const request *r, size_t count, const int32_t *tokens,
                           size_t length, float *out)
{
    int32_t history[HISTORY];
    embla_ticket ticket = 0;
    for (size_t i = 0; i < m->info.history; i++) {
        size_t back = m->info.history - i;
        history[i] = back <= count ? r->tokens[count - back] : -1;
    }
    const embla_ticket_request wanted = {
        .ngram = m->ngram, .tokens = tokens, .length = length, .history = history, .out = out};
    embla_status status = embla_ticket_submit(m->tickets, &wanted, &ticket);
    must(status == EMBLA_OK); /* EMBLA_ERR_BUSY: wait for an older ticket, then try again */
    return ticket;
}

/* ---- layers ---- */

static void first_layers(request *r)
{
    r->state = r->state * 6364136223846793005u + (uint64_t)r->tokens[r->count - 1];
}

/* The layer that uses the rows of one token. */
static void table_layer(const model *m, request *r, const float *rows)
{
    for (size_t i = 0; i < m->info.rows_per_token * m->table.format.dim; i++) {
        uint32_t bits;
        memcpy(&bits, &rows[i], sizeof bits);
        r->state = (r->state ^ bits) * 0x9E3779B97F4A7C15u;
    }
}

static int32_t sample(const model *m, const request *r)
{
    return made_token(m->info.tokens, r->state >> 33);
}

/* ---- requests ---- */

static void begin(const model *m, request *r, size_t number)
{
    size_t token = m->info.rows_per_token * m->table.format.dim;
    r->rows = malloc(PROMPT * token * sizeof(float));
    for (size_t c = 0; c < CANDIDATES; c++) r->drafts[c] = malloc(token * sizeof(float));
    must(r->rows && r->drafts[0] && r->drafts[1]);
    for (size_t i = 0; i < PROMPT; i++)
        r->tokens[i] = corpus_token(m->info.tokens, 100 * number + i);
    r->count = PROMPT;
    r->ticket = submit(m, r, 0, r->tokens, PROMPT, r->rows); /* a prefill is one ticket */
}

static void end(request *r)
{
    free(r->rows);
    for (size_t c = 0; c < CANDIDATES; c++) free(r->drafts[c]);
}

/* One token of a request. The rows of its last token are under way, or are those of a guess. */
static void step(const model *m, request *r)
{
    size_t token = m->info.rows_per_token * m->table.format.dim;
    first_layers(r); /* the disk works */
    if (r->ticket != 0) must(embla_ticket_wait(m->tickets, r->ticket) == EMBLA_OK);
    r->ticket = 0;
    size_t last = r->count == PROMPT ? PROMPT - 1 : 0;
    table_layer(m, r, r->rows + last * token);

    /* A draft model would guess: rows of both guesses are fetched while the layers compute. */
    for (size_t c = 0; c < CANDIDATES; c++) {
        r->guessed[c] = c == 0 ? sample(m, r) : corpus_token(m->info.tokens, r->count);
        r->guesses[c] = submit(m, r, r->count, &r->guessed[c], 1, r->drafts[c]);
    }
    first_layers(r);
    int32_t next = r->state & 1024 ? r->guessed[0] : sample(m, r);
    r->tokens[r->count++] = next;
    bool found = false;
    for (size_t c = 0; c < CANDIDATES; c++) {
        if (r->guessed[c] != next || found) { /* the loser's ticket never writes to its draft */
            must(embla_ticket_cancel(m->tickets, r->guesses[c]) == EMBLA_OK);
            continue;
        }
        must(embla_ticket_wait(m->tickets, r->guesses[c]) == EMBLA_OK);
        memcpy(r->rows, r->drafts[c], token * sizeof(float));
        found = true;
    }
    if (!found) r->ticket = submit(m, r, r->count - 1, &next, 1, r->rows);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/embla-engine-XXXXXX", made[128];
    const char *path = argc > 1 ? argv[1] : made;
    model m = {0};
    request requests[REQUESTS] = {0};
    embla_tickets_info stats;
    if (argc == 1) {
        must(mkdtemp(folder) != NULL);
        snprintf(made, sizeof made, "%s/packed.safetensors", folder);
        make_pack(folder, path);
    }
    open_model(&m, path, argc == 1);
    for (size_t i = 0; i < REQUESTS; i++) begin(&m, &requests[i], i);
    for (size_t n = 0; n < NEW; n++)
        for (size_t i = 0; i < REQUESTS; i++) step(&m, &requests[i]);
    for (size_t i = 0; i < REQUESTS; i++) {
        printf("request %zu:", i);
        for (size_t k = PROMPT; k < requests[i].count; k++)
            printf(" %" PRId32, requests[i].tokens[k]);
        putchar('\n');
        end(&requests[i]);
    }
    must(embla_tickets_describe(m.tickets, &stats) == EMBLA_OK);
    close_model(&m);
    if (argc == 1) printf("rows: %" PRId64 " asked for\n", stats.asked);
    fprintf(stderr, "%" PRId64 " hot, %" PRId64 " from bundles, %" PRId64 " reads\n", stats.hot,
            stats.bundled, stats.reads);
    if (argc == 1) remove(path), rmdir(folder);
    return 0;
}
