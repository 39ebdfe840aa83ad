/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows are near: exact searches, sketches, analogies, odd rows, graphs, communities, and the
 * scores of analogy and pair files. */
#include <stdio.h>
#include <stdlib.h>

#include "bits.h"
#include "embla_lab.h"

enum { ROWS = 900, DIM = 70, K = 12 };

static void note_neighbours(const embla_neighbour *found, size_t count, const char *format,
                            const char *a, const char *b)
{
    char name[128];
    double *numbers = bits_room(2 * count * sizeof *numbers);
    for (size_t i = 0; i < count; i++) {
        numbers[2 * i] = (double)found[i].row;
        numbers[2 * i + 1] = found[i].score;
    }
    (void)snprintf(name, sizeof name, "%s.%s.%s", format, a, b);
    bits_note_f64(numbers, 2 * count, "%s", name);
    free(numbers);
}

static void note_searches(const embla_table *table, const char *dtype)
{
    enum { QUERIES = 9 };
    static embla_neighbour found[QUERIES * K];
    float *queries = bits_numbers(61, QUERIES * DIM);
    const int64_t excluded[2 * QUERIES] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
    for (int m = 0; embla_measure_name((embla_measure)m); m++) {
        const embla_near_options options = {.k = K,
                                            .threads = bits_threads,
                                            .measure = (embla_measure)m,
                                            .exclude = excluded,
                                            .exclude_count = 2};
        OK(embla_near(table, queries, QUERIES, &options, found, NULL));
        note_neighbours(found, QUERIES * K, "near", dtype, embla_measure_name(options.measure));
        OK(embla_near(table, queries, 1, &options, found, NULL));
        note_neighbours(found, K, "near.one", dtype, embla_measure_name(options.measure));
    }
    embla_sketch *sketch = NULL;
    OK(embla_sketch_new(table, &(embla_sketch_options){.threads = bits_threads}, &sketch));
    const embla_near_options by_sketch = {.k = K, .threads = bits_threads, .sketch = sketch};
    OK(embla_near(table, queries, 3, &by_sketch, found, NULL));
    note_neighbours(found, 3 * K, "near", dtype, "sketch");
    embla_sketch_free(sketch);
    free(queries);
}

static void note_analogies(const embla_table *table, const char *dtype)
{
    const int64_t plus[] = {3, 700, 41}, minus[] = {12, 5};
    const embla_analogy_question question = {
        .plus = plus, .minus = minus, .plus_count = 3, .minus_count = 2};
    embla_analogy_options options = {.k = K, .threads = bits_threads};
    embla_neighbour found[K];
    double cosines[3];
    size_t odd;
    OK(embla_analogy(table, &question, &options, found, NULL));
    note_neighbours(found, K, "analogy", dtype, "add");
    options.kind = EMBLA_ANALOGY_COS_MUL;
    OK(embla_analogy(table, &question, &options, found, NULL));
    note_neighbours(found, K, "analogy", dtype, "mul");
    OK(embla_odd_row(table, plus, 3, cosines, &odd));
    bits_note_f64(cosines, 3, "odd.%s", dtype);
}

static void note_graph(const embla_table *table)
{
    embla_graph *graph = NULL;
    embla_communities *communities = NULL;
    embla_neighbour *all = bits_room(ROWS * K * sizeof *all);
    size_t count;
    OK(embla_graph_new(table, &(embla_graph_options){.k = K, .threads = bits_threads}, &graph));
    for (int64_t r = 0; r < ROWS; r++) {
        const embla_neighbour *near = embla_graph_near(graph, r, &count);
        for (size_t i = 0; i < count; i++) all[(size_t)r * K + i] = near[i];
    }
    note_neighbours(all, ROWS * K, "graph", "f32", "near");
    OK(embla_communities_new(graph, &(embla_communities_options){.threads = bits_threads},
                             &communities));
    const int32_t *labels = embla_communities_labels(communities, &count);
    bits_note_i32(labels, count, "communities");
    embla_communities_free(communities);
    embla_graph_free(graph);
    free(all);
}

/* ---- files of questions ---- */

/* "w0" is row 0. The words are those of a file of word vectors. */
static void write_vectors(const embla_table *table)
{
    FILE *file = fopen(bits_path("eval.txt"), "wb");
    float *row = bits_room(DIM * sizeof *row);
    if (!file) exit(1);
    for (int64_t r = 0; r < ROWS; r++) {
        OK(embla_lookup_rows(table, &r, 1, NULL, row));
        fprintf(file, "w%d", (int)r);
        for (size_t i = 0; i < DIM; i++) fprintf(file, " %.9g", (double)row[i]);
        fputc('\n', file);
    }
    fclose(file);
    free(row);
}

static void write_questions(void)
{
    char *text = bits_room(200 * 40), *at = text;
    uint64_t seed = 62;
    at += sprintf(at, ": first\n");
    for (int i = 0; i < 60; i++) {
        int word[3];
        for (int k = 0; k < 3; k++) word[k] = (int)bits_below(&seed, 40);
        at += sprintf(at, "w%d w%d w%d w%d\n", word[0], word[1], word[2], word[1]);
    }
    bits_write_text("analogies.txt", text);
    at = text;
    for (int i = 0; i < 80; i++) {
        int left = (int)bits_below(&seed, ROWS), right = (int)bits_below(&seed, ROWS);
        at += sprintf(at, "w%d\tw%d\t%d\n", left, right, (int)bits_below(&seed, 10));
    }
    bits_write_text("pairs.txt", text);
    free(text);
}

static void note_part(const embla_eval *eval, const char *name)
{
    size_t count;
    const embla_eval_part *part = embla_eval_parts(eval, &count);
    const double numbers[] = {(double)part->asked, (double)part->covered, (double)part->correct,
                              part->spearman, part->pearson};
    bool pairs = part->spearman <= 1; /* otherwise NaN, whose sign is no promise */
    bits_note_f64(numbers, pairs ? 5 : 3, "eval.%s", name);
}

static void note_eval(const embla_table *table)
{
    const embla_eval_options options = {.threads = bits_threads};
    embla_checkpoint *checkpoint = NULL;
    embla_table *vectors = NULL;
    embla_vocab *vocab = NULL;
    embla_eval *eval = NULL;
    write_vectors(table);
    write_questions();
    OK(embla_checkpoint_open(bits_path("eval.txt"), NULL, &checkpoint));
    OK(embla_table_open(checkpoint, NULL, NULL, &vectors));
    OK(embla_vocab_open(checkpoint, &vocab));
    OK(embla_eval_new_analogies(vectors, vocab, bits_path("analogies.txt"), &options, &eval));
    note_part(eval, "analogies");
    embla_eval_free(eval);
    OK(embla_eval_new_pairs(vectors, vocab, bits_path("pairs.txt"), &options, &eval));
    note_part(eval, "pairs");
    embla_eval_free(eval);
    embla_vocab_free(vocab);
    embla_table_free(vectors);
    embla_checkpoint_free(checkpoint);
    remove(bits_path("eval.txt"));
    remove(bits_path("analogies.txt"));
    remove(bits_path("pairs.txt"));
}

void bits_near(void)
{
    const embla_dtype dtypes[] = {EMBLA_F32, EMBLA_F16, EMBLA_I8};
    for (size_t i = 0; i < COUNT_OF(dtypes); i++) {
        embla_table *table = bits_table(dtypes[i], ROWS, DIM, 63);
        note_searches(table, embla_dtype_name(dtypes[i]));
        note_analogies(table, embla_dtype_name(dtypes[i]));
        if (i == 0) note_graph(table);
        if (i == 0) note_eval(table);
        embla_table_free(table);
    }
}
