/* SPDX-License-Identifier: Apache-2.0 */
/* How tables learn: the model predicts the next word of each word in four sentences. Each word has
 * a row in two tables: `now` for the word that was read, and `next`, the head, for the word that
 * is predicted. A step is lookup -> head, loss -> gradients -> scatter -> optim. After 40 steps
 * the program prints the two most probable words after "the" and after "saw".
 */
#include <embla.h>
#include <embla_learn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THE, DOG, BIT, MAN, END, SAW, A, CAT, RUN, VOCAB };
static const char *const words[] = {"the", "dog", "bit", "man", ".", "saw", "a", "cat", "run"};
static const int32_t text[] = {THE, DOG, BIT, THE, MAN, END, THE, MAN, SAW, THE, DOG, END, A,
                               CAT, SAW, THE, DOG, RUN, END, THE, DOG, SAW, A,   CAT, END};

enum { DIM = 16, TOKENS = sizeof text / sizeof text[0], STEPS = 40 };

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "learn: %s\n", embla_error());
    exit(1);
}

static void print_guesses(const embla_head *head, const embla_table *now, int32_t token)
{
    float x[DIM];
    embla_choice best[2];
    must(embla_lookup(now, &token, 1, NULL, x));
    must(embla_head_top(head, x, 1, 2, &(embla_head_options){.threads = 1}, best));
    printf("after \"%s\":", words[token]);
    for (int i = 0; i < 2; i++)
        printf(" %s %.2f", words[best[i].token], exp(best[i].log_probability));
    printf("\n");
}

int main(void)
{
    float hidden[TOKENS][DIM], back[TOKENS][DIM], rows[TOKENS][DIM], head_gradient[VOCAB][DIM];
    int32_t targets[TOKENS]; /* the word after the end of a sentence is not predicted */
    embla_table *now = NULL, *next = NULL;
    embla_optim *now_optim = NULL, *next_optim = NULL;
    embla_scatter *scatter = NULL;
    embla_optim_options adam = {.kind = EMBLA_OPTIM_ADAMW};
    embla_loss_report report;
    for (int i = 0; i < TOKENS; i++)
        targets[i] = text[i] == END ? EMBLA_TARGET_IGNORE : text[i + 1];
    must(embla_table_new(EMBLA_F32, VOCAB, DIM, NULL, &now));
    must(embla_table_new(EMBLA_F32, VOCAB, DIM, NULL, &next));
    must(embla_table_init(now, &(embla_init_options){.seed = 1}));
    must(embla_table_init(next, &(embla_init_options){.seed = 2}));
    must(embla_optim_new(now, &adam, &now_optim));
    must(embla_optim_new(next, &adam, &next_optim));
    must(embla_scatter_new(VOCAB, TOKENS, &scatter));
    must(embla_scatter_plan(scatter, text, TOKENS, NULL));

    embla_head head = {.table = next};
    embla_loss_gradients gradients = {.hidden = back[0], .table = head_gradient[0]};
    const embla_loss_batch batch = {.hidden = hidden[0], .targets = targets, .count = TOKENS};
    for (int step = 0; step <= STEPS; step++) {
        memset(head_gradient, 0, sizeof head_gradient);
        must(embla_lookup(now, text, TOKENS, NULL, hidden));
        must(embla_head_loss(&head, &batch, NULL, &gradients, &report));
        if (step % 10 == 0) printf("step %2d: loss %.2f\n", step, report.loss);
        must(embla_scatter_sum(scatter, back[0], DIM, rows[0]));
        must(embla_optim_step_rows(now_optim, 0.02, embla_scatter_rows(scatter),
                                   embla_scatter_count(scatter), rows[0]));
        must(embla_optim_step(next_optim, 0.02, head_gradient[0]));
    }
    print_guesses(&head, now, THE);
    print_guesses(&head, now, SAW);
    embla_scatter_free(scatter);
    embla_optim_free(now_optim);
    embla_optim_free(next_optim);
    embla_table_free(now);
    embla_table_free(next);
    return 0;
}
