/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the nearest words of a word, and the answers to an analogy, by cosine. FILE is any
 * checkpoint with words; the default is words.vec of the demo.
 *
 *   neighbours [FILE WORD [PLUS MINUS WORD]]     PLUS - MINUS + WORD
 */
#include <embla_lab.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K = 3 };

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "neighbours: %s\n", embla_error());
    exit(1);
}

static int64_t row_of(const embla_vocab *vocab, const char *word)
{
    int32_t token;
    must(embla_vocab_find(vocab, word, strlen(word), &token));
    return token;
}

static void print(const embla_vocab *vocab, const char *what, const embla_neighbour found[K])
{
    printf("%s\n", what);
    for (int i = 0; i < K && found[i].row >= 0; i++)
        printf("  %-8s %7.4f\n", embla_vocab_word(vocab, (int32_t)found[i].row, NULL),
               found[i].score);
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "words.vec";
    const char *word = argc > 2 ? argv[2] : "cat";
    embla_checkpoint *checkpoint = NULL;
    embla_table *table = NULL;
    embla_vocab *vocab = NULL;
    embla_neighbour found[K];
    embla_near_report report;
    must(embla_checkpoint_open(path, NULL, &checkpoint));
    must(embla_table_open(checkpoint, NULL, NULL, &table));
    must(embla_vocab_open(checkpoint, &vocab));

    /* The query is the row of the word. The word itself is left out of the result. */
    int64_t row = row_of(vocab, word);
    float *query = malloc(embla_table_dim(table) * sizeof *query);
    if (!query) return 1;
    must(embla_lookup_rows(table, &row, 1, NULL, query));
    const embla_near_options options = {.k = K, .exclude = &row, .exclude_count = 1};
    must(embla_near(table, query, 1, &options, found, &report));
    print(vocab, word, found);
    printf("of %" PRId64 " rows, %" PRId64 " not finite\n", report.rows, report.nonfinite);

    if (argc == 1 || argc > 5) {
        int64_t plus[] = {row_of(vocab, argc > 5 ? argv[3] : "king"),
                          row_of(vocab, argc > 5 ? argv[5] : "woman")};
        int64_t minus[] = {row_of(vocab, argc > 5 ? argv[4] : "man")};
        const embla_analogy_question question = {
            .plus = plus, .plus_count = 2, .minus = minus, .minus_count = 1};
        must(embla_analogy(table, &question, &(embla_analogy_options){.k = K}, found, NULL));
        print(vocab, argc > 5 ? "the analogy" : "king - man + woman", found);
    }

    free(query);
    embla_vocab_free(vocab);
    embla_table_free(table);
    embla_checkpoint_free(checkpoint);
    return 0;
}
