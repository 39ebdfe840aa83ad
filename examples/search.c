/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of whole texts, and a search by meaning. An encoder makes the mean of the rows of a
 * text's tokens. An index has the vectors of all lines of a file; a question finds the nearest.
 * MODEL is a file of word vectors or a static model, CORPUS a text file; the default is the demo.
 *
 *   search [MODEL CORPUS QUESTION]
 */
#include <embla_search.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K = 3 };

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "search: %s\n", embla_error());
    exit(1);
}

/* The cosine of two texts: their vectors are normalised here, so it is the dot product. */
static void compare(const embla_encoder *encoder, const char *a, const char *b)
{
    const char *texts[] = {a, b};
    const size_t lengths[] = {strlen(a), strlen(b)};
    const embla_encode_options unit = {.normalize = EMBLA_NORMALIZE_YES};
    embla_encoder_info info;
    must(embla_encoder_describe(encoder, &info));
    float *vectors = malloc(2 * info.dim * sizeof *vectors);
    if (!vectors) exit(1);
    must(embla_encoder_encode(encoder, &(embla_texts){texts, lengths, 2, {0}}, &unit, vectors,
                              NULL));
    printf("%5.2f  \"%s\", \"%s\"\n", embla_dot(vectors, vectors + info.dim, info.dim), a, b);
    free(vectors);
}

static void find(const embla_index *index, const char *question)
{
    const size_t length = strlen(question);
    const embla_search_options options = {.distinct = true};
    embla_neighbour found[K];
    embla_encoded seen;
    must(embla_index_search(index, &(embla_texts){&question, &length, 1, {0}}, K, &options, found,
                            &seen));
    printf("%s (%zu words, %zu unknown)\n", question, seen.tokens, seen.unknown);
    for (int i = 0; i < K && found[i].row >= 0; i++) {
        int64_t number;
        size_t bytes;
        const char *line = embla_index_line(index, found[i].row, &bytes, &number);
        printf("  line %" PRId64 ": %.*s\n", number, (int)bytes, line);
    }
}

int main(int argc, char **argv)
{
    const char *corpus = argc > 2 ? argv[2] : "village.txt";
    embla_encoder *encoder = NULL;
    embla_index *index = NULL;
    embla_index_info info;
    must(embla_encoder_open(argc > 1 ? argv[1] : "words.vec", NULL, &encoder));
    if (argc == 1) {
        compare(encoder, "the king ruled the land", "the queen ruled the land");
        compare(encoder, "the king ruled the land", "we eat soup on tuesday");
    }
    must(embla_index_new(encoder, corpus, NULL, &index));
    must(embla_index_describe(index, &info));
    printf("%" PRId64 " of %" PRId64 " lines have a vector\n", info.rows, info.lines);
    find(index, argc > 3 ? argv[3] : "the queen on a throne");

    embla_index_free(index);
    embla_encoder_free(encoder);
    return 0;
}
