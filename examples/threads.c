/* SPDX-License-Identifier: Apache-2.0 */
/* A program that has threads of its own, and lends them to Embla. Without this, Embla starts
 * threads when a call is large enough, and there are then two pools for the same CPUs.
 *
 * The host's function gets parts of one call. It must call each part once and return when all have
 * returned; which thread runs which part does not matter. Here one new thread runs each part; a
 * real host has threads that wait.
 */
#include <embla.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROWS = 1000, DIM = 64, TOKENS = 100000 };

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "threads: %s\n", embla_error());
    exit(1);
}

/* ---- the host's threads ---- */

typedef struct {
    embla_parallel_part part;
    void *job;
    size_t index;
} one_part;

static void *run_part(void *argument)
{
    const one_part *p = argument;
    p->part(p->job, p->index);
    return NULL;
}

static void run_parts(void *context, size_t count, embla_parallel_part part, void *job)
{
    pthread_t threads[THREADS];
    one_part parts[THREADS];
    size_t *most = context, started = 0;
    if (count > *most) *most = count;
    for (size_t i = 0; i < count; i++) parts[i] = (one_part){part, job, i};
    while (started + 1 < count &&
           pthread_create(&threads[started], NULL, run_part, &parts[started]) == 0)
        started++;
    for (size_t i = started; i < count; i++) (void)run_part(&parts[i]); /* the calling thread too */
    for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

/* ---- the program ---- */

int main(void)
{
    static int32_t tokens[TOKENS];
    static float ours[TOKENS * DIM], lent[TOKENS * DIM];
    const embla_lookup_options options = {.threads = THREADS};
    embla_table *table = NULL;
    size_t most = 0;
    must(embla_table_new(EMBLA_F32, ROWS, DIM, NULL, &table));
    must(embla_table_init(table, &(embla_init_options){.seed = 1}));
    for (int i = 0; i < TOKENS; i++) tokens[i] = i * 7 % ROWS;

    must(embla_lookup(table, tokens, TOKENS, &options, ours));
    must(embla_set_parallel(run_parts, &most, THREADS));
    printf("threads 0 means %d now\n", embla_default_threads());
    must(embla_lookup(table, tokens, TOKENS, &options, lent));
    must(embla_set_parallel(NULL, NULL, 0)); /* Embla's own threads again */
    printf("%d rows in %zu parts on the host's threads: %s\n", TOKENS, most,
           memcmp(ours, lent, sizeof ours) == 0 ? "the same bytes" : "OTHER BYTES");
    embla_table_free(table);
    return 0;
}
