/* SPDX-License-Identifier: Apache-2.0 */
/* Meaning from use: learns rows of words from raw text in half a second, then prints cosines before
 * and after, and king - man + woman.
 *
 *   words [FILE]     a text with these words; default: village.txt of the demo
 */
#include <embla.h>
#include <embla_lab.h>
#include <embla_wordvec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "words: %s\n", embla_error());
    exit(1);
}

static int32_t token_of(const embla_wordvec *words, const char *word)
{
    int32_t token;
    must(embla_vocab_find(embla_wordvec_vocab(words), word, strlen(word), &token));
    return token;
}

static void print_cosine(const embla_wordvec *words, const embla_table *table, const char *a,
                         const char *b)
{
    const float *x = embla_table_row(table, token_of(words, a));
    const float *y = embla_table_row(table, token_of(words, b));
    printf("  %s, %s: %.2f\n", a, b, embla_cosine(x, y, embla_table_dim(table)));
}

static void print_cosines(embla_wordvec *words, const char *when)
{
    const embla_table *table;
    must(embla_wordvec_table(words, &table));
    printf("%s\n", when);
    print_cosine(words, table, "cat", "dog");
    print_cosine(words, table, "cat", "tuesday");
    print_cosine(words, table, "monday", "tuesday");
}

int main(int argc, char **argv)
{
    const embla_wordvec_options options = {
        .clean = EMBLA_WORDVEC_CLEAN_WORDS, .dim = 32, .epochs = 30, .sample = 0.001, .seed = 1};
    embla_wordvec *words;
    embla_wordvec_report report = {.steps = 1};
    must(embla_wordvec_new(argc > 1 ? argv[1] : "village.txt", &options, &words));
    print_cosines(words, "before: random rows");
    while (report.step < report.steps) must(embla_wordvec_step(words, &report));
    print_cosines(words, "after:");

    const embla_table *table;
    embla_neighbour best;
    float query[32];
    int64_t rows[3] = {token_of(words, "king"), token_of(words, "man"), token_of(words, "woman")};
    must(embla_wordvec_table(words, &table));
    for (size_t k = 0; k < 32; k++) {
        const float *king = embla_table_row(table, rows[0]), *man = embla_table_row(table, rows[1]);
        query[k] = king[k] - man[k] + ((const float *)embla_table_row(table, rows[2]))[k];
    }
    const embla_near_options near = {.k = 1, .exclude = rows, .exclude_count = 3};
    must(embla_near(table, query, 1, &near, &best, NULL));
    printf("king - man + woman: %s\n",
           embla_vocab_word(embla_wordvec_vocab(words), (int32_t)best.row, NULL));
    embla_wordvec_free(words);
    return 0;
}
