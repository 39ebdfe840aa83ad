/* SPDX-License-Identifier: Apache-2.0 */
/* Why a model needs positions, and three ways to have them.
 *
 * Without positions "the dog bit the man" and "the man bit the dog" give the same five vectors in
 * another order. Attention does not help: it is permutation-equivariant, so "dog" gets the same
 * vector in both sentences. With a row added for each position it does not. Rotary positions add
 * nothing; they rotate queries and keys, so that a dot product depends on the distance of two
 * positions and on nothing else.
 */
#include <embla.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 4, POSITIONS = 8, DIM = 16, LENGTH = 5 };
enum { THE, DOG, BIT, MAN };
static const int32_t pair[2][LENGTH] = {{THE, DOG, BIT, THE, MAN}, {THE, MAN, BIT, THE, DOG}};
enum { FIRST_DOG = 1, SECOND_DOG = 4 }; /* where the dog is in each sentence */

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "order: %s\n", embla_error());
    exit(1);
}

static embla_table *random_table(int64_t rows, uint64_t seed)
{
    embla_table *table = NULL;
    must(embla_table_new(EMBLA_F32, rows, DIM, NULL, &table));
    must(embla_table_init(table, &(embla_init_options){.seed = seed}));
    return table;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, DIM * sizeof(float));
}

/* True if both sentences give the same set of vectors. */
static bool same_set(const embla_table *tokens, const embla_table *positions)
{
    float x[2][LENGTH][DIM];
    must(embla_embed(tokens, pair[0], 2, LENGTH,
                     &(embla_embed_options){.position_table = positions}, x));
    for (int i = 0; i < 2; i++) qsort(x[i], LENGTH, sizeof x[i][0], by_bytes);
    return memcmp(x[0], x[1], sizeof x[0]) == 0;
}

/* out = x times the transpose of w (DIM x DIM) */
static void project(const float *x, const embla_table *w, float *out)
{
    for (int i = 0; i < DIM; i++) out[i] = (float)embla_dot(x, embla_table_row(w, i), DIM);
}

/* One attention head without a mask: out[t] = sum of softmax(q[t] k[u] / sqrt(DIM)) v[u]. */
static void attend(float x[LENGTH][DIM], embla_table *const w[3], double out[LENGTH][DIM])
{
    float q[LENGTH][DIM], k[LENGTH][DIM], v[LENGTH][DIM];
    for (int t = 0; t < LENGTH; t++) {
        project(x[t], w[0], q[t]);
        project(x[t], w[1], k[t]);
        project(x[t], w[2], v[t]);
    }
    for (int t = 0; t < LENGTH; t++) {
        double weights[LENGTH], sum = 0;
        for (int u = 0; u < LENGTH; u++)
            sum += weights[u] = exp(embla_dot(q[t], k[u], DIM) / sqrt(DIM));
        memset(out[t], 0, sizeof out[t]);
        for (int u = 0; u < LENGTH; u++)
            for (int i = 0; i < DIM; i++) out[t][i] += weights[u] / sum * (double)v[u][i];
    }
}

/* True if attention gives "dog" the same vector in both sentences. */
static bool same_dog(const embla_table *tokens, const embla_table *positions,
                     embla_table *const w[3])
{
    float x[2][LENGTH][DIM];
    double y[2][LENGTH][DIM], most = 0;
    must(embla_embed(tokens, pair[0], 2, LENGTH,
                     &(embla_embed_options){.position_table = positions}, x));
    for (int i = 0; i < 2; i++) attend(x[i], w, y[i]);
    for (int i = 0; i < DIM; i++) most = fmax(most, fabs(y[0][FIRST_DOG][i] - y[1][SECOND_DOG][i]));
    return most < 1e-6; /* sums in another order */
}

/* The dot product of a query at position m and a key at position n, both rotated. */
static double rotated(const embla_rope *rope, const float *query, const float *key, int64_t m,
                      int64_t n)
{
    float q[DIM], k[DIM];
    memcpy(q, query, sizeof q);
    memcpy(k, key, sizeof k);
    must(embla_rope_apply(rope, &m, 1, 1, NULL, q));
    must(embla_rope_apply(rope, &n, 1, 1, NULL, k));
    return embla_dot(q, k, DIM);
}

static void show_rotary(const embla_table *tokens)
{
    static const int64_t places[][2] = {{3, 0}, {4, 1}, {103, 100}, {1, 0}, {0, 3}};
    embla_rope *rope = NULL;
    float q[DIM], most = 0;
    must(embla_rope_new(DIM, NULL, &rope));
    printf("rotary: query . key of \"dog\" and \"man\" depends on their distance alone\n");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        printf("  positions %3d and %3d, distance %2d: %7.4f\n", (int)places[i][0],
               (int)places[i][1], (int)(places[i][0] - places[i][1]),
               rotated(rope, embla_table_row(tokens, DOG), embla_table_row(tokens, MAN),
                       places[i][0], places[i][1]));
    /* Gradients of a rotated query go back through the transpose. A rotation keeps lengths, so it
     * is the inverse as well. */
    memcpy(q, embla_table_row(tokens, DOG), sizeof q);
    must(embla_rope_apply(rope, &places[2][0], 1, 1, NULL, q));
    must(embla_rope_transpose(rope, &places[2][0], 1, 1, NULL, q));
    for (int i = 0; i < DIM; i++)
        most = fmaxf(most, fabsf(q[i] - ((const float *)embla_table_row(tokens, DOG))[i]));
    printf("  rotated by position %d and back, \"dog\" is its row again: %s\n", (int)places[2][0],
           most < 1e-6f ? "yes" : "no");
    embla_rope_free(rope);
}

int main(void)
{
    embla_table *tokens = random_table(VOCAB, 1), *learned = random_table(POSITIONS, 2);
    embla_table *sinusoid = random_table(POSITIONS, 0); /* overwritten */
    embla_table *w[3] = {random_table(DIM, 3), random_table(DIM, 4), random_table(DIM, 5)};
    must(embla_sinusoid(0, POSITIONS, DIM, 0, embla_table_data(sinusoid)));
    const embla_table *const positions[] = {NULL, learned, sinusoid};
    const char *const names[] = {"without positions:", "learned positions:", "sinusoidal:"};

    printf("\"the dog bit the man\" and \"the man bit the dog\" give the same set of vectors\n");
    for (int i = 0; i < 3; i++)
        printf("  %-18s %s\n", names[i], same_set(tokens, positions[i]) ? "yes" : "no");
    printf("after attention \"dog\" has the same vector in both\n");
    for (int i = 0; i < 3; i++)
        printf("  %-18s %s\n", names[i], same_dog(tokens, positions[i], w) ? "yes" : "no");
    show_rotary(tokens);
    for (int i = 0; i < 3; i++) embla_table_free(w[i]);
    embla_table_free(tokens);
    embla_table_free(learned);
    embla_table_free(sinusoid);
    return 0;
}
