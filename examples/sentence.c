/* SPDX-License-Identifier: Apache-2.0 */
/* "the quick brown fox." as a picture. On the left is the table of twelve rows, with the token
 * that selects each row. On the right is the 5 x 8 result, in the order of the sentence. Colour is
 * used only on a terminal, and not if NO_COLOR is set.
 */
#include <embla.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 12, DIM = 8, TOKENS = 5 };

static const float numbers[ROWS][DIM] = {
    {-0.26f, -0.93f, 0.42f, -0.17f, 0.16f, -0.18f, 0.11f, -0.03f},
    {-0.44f, 0.36f, 0.30f, -0.46f, 0.11f, -0.96f, 0.90f, -0.80f},
    {-0.55f, 0.34f, -0.10f, 0.03f, 0.81f, -0.98f, 0.54f, -0.77f},
    {-0.73f, 0.94f, -0.38f, 0.11f, -0.80f, -0.18f, 0.79f, -0.98f},
    {-0.18f, 0.54f, -0.09f, 0.27f, -0.81f, 0.09f, 0.38f, -0.93f},
    {-0.25f, 0.57f, -0.31f, 0.97f, -0.32f, 0.26f, -0.25f, 0.59f},
    {-0.50f, 0.57f, -0.88f, 0.43f, -0.07f, 0.14f, -0.94f, 0.87f},
    {-0.48f, 0.57f, -0.16f, 0.00f, -0.33f, 0.67f, -0.16f, 0.55f},
    {0.52f, -0.43f, -0.94f, 0.50f, -0.02f, 0.42f, -0.06f, 0.08f},
    {0.02f, -0.62f, 0.29f, 0.58f, -0.13f, 0.74f, -0.85f, 0.61f},
    {0.59f, -0.08f, 0.74f, -0.26f, -0.47f, 0.84f, -0.09f, 0.23f},
    {0.61f, -0.19f, 0.63f, -0.37f, 0.92f, -0.30f, -0.90f, 0.49f}};
static const char *const words[TOKENS] = {"the", "quick", "brown", "fox", "."};
static const int32_t tokens[TOKENS] = {2, 5, 7, 11, 0};

static void print_row(const float *row)
{
    for (int j = 0; j < DIM; j++) printf(" %5.2f", (double)row[j]);
}

/* The word that selects a row, or NULL. */
static const char *word_of(int row)
{
    for (int i = 0; i < TOKENS; i++)
        if (tokens[i] == row) return words[i];
    return NULL;
}

int main(void)
{
    const char *no_color = getenv("NO_COLOR");
    bool color = isatty(STDOUT_FILENO) && !(no_color && no_color[0]);
    float out[TOKENS][DIM];
    embla_table *table = NULL;
    if (embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = DIM},
                         numbers, sizeof numbers, NULL, &table) != EMBLA_OK ||
        embla_lookup(table, tokens, TOKENS, NULL, out) != EMBLA_OK) {
        fprintf(stderr, "sentence: %s\n", embla_error());
        embla_table_free(table);
        return 1;
    }

    printf("%-9s%-55s%s\n", "token", "row of the 12 x 8 table", "result, 5 x 8");
    for (int row = 0; row < ROWS; row++) {
        const char *word = word_of(row);
        printf("%-5s %s ", word ? word : "", word ? "->" : "  ");
        printf("%s%2d", color && word ? "\033[7m" : "", row);
        print_row(numbers[row]);
        printf("%s", color && word ? "\033[0m" : "");
        if (row < TOKENS) {
            printf("    %-5s", words[row]);
            print_row(out[row]);
        }
        printf("\n");
    }
    embla_table_free(table);
    return 0;
}
