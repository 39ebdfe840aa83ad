/* SPDX-License-Identifier: Apache-2.0 */
/* Why a model needs positions. Without them "the dog bit the man" and "the man bit the dog" give
 * the same five vectors in another order. With a row added for each position, they do not.
 */
#include <embla.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 4, POSITIONS = 8, DIM = 16, LENGTH = 5 };
enum { THE, DOG, BIT, MAN };

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "order: %s\n", embla_error());
    exit(1);
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, DIM * sizeof(float));
}

/* True if both sentences give the same set of vectors. */
static bool same_set(const embla_table *tokens, const embla_table *positions)
{
    const int32_t pair[2][LENGTH] = {{THE, DOG, BIT, THE, MAN}, {THE, MAN, BIT, THE, DOG}};
    float x[2][LENGTH][DIM];
    must(embla_embed(tokens, positions, pair[0], 2, LENGTH, NULL, x));
    for (int i = 0; i < 2; i++) qsort(x[i], LENGTH, sizeof x[i][0], by_bytes);
    return memcmp(x[0], x[1], sizeof x[0]) == 0;
}

int main(void)
{
    embla_table *tokens = NULL, *learned = NULL, *sinusoid = NULL;
    must(embla_table_new(EMBLA_F32, VOCAB, DIM, NULL, &tokens));
    must(embla_table_new(EMBLA_F32, POSITIONS, DIM, NULL, &learned));
    must(embla_table_new(EMBLA_F32, POSITIONS, DIM, NULL, &sinusoid));
    must(embla_table_init(tokens, &(embla_init_options){.seed = 1}));
    must(embla_table_init(learned, &(embla_init_options){.seed = 2}));
    must(embla_sinusoid(0, POSITIONS, DIM, 0, embla_table_data(sinusoid)));

    printf("\"the dog bit the man\" and \"the man bit the dog\" give the same set of vectors\n");
    printf("  without positions:         %s\n", same_set(tokens, NULL) ? "yes" : "no");
    printf("  with learned positions:    %s\n", same_set(tokens, learned) ? "yes" : "no");
    printf("  with sinusoidal positions: %s\n", same_set(tokens, sinusoid) ? "yes" : "no");
    embla_table_free(tokens);
    embla_table_free(learned);
    embla_table_free(sinusoid);
    return 0;
}
