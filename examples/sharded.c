/* SPDX-License-Identifier: Apache-2.0 */
/* learn.c over many processes: each rank has some of the rows of both tables, and of their
 * optimizers. Every rank reads its own sentences. The result has the same bits for any number of
 * ranks up to four:
 *
 *   sharded                     one process
 *   mpirun -n 2 sharded         two
 */
#include <embla_cluster.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THE, DOG, BIT, MAN, END, SAW, A, CAT, VOCAB };
enum { DIM = 16, SENTENCES = 4, WORDS = 6, STEPS = 40 };
enum { TOKENS = SENTENCES * WORDS, RANKS = SENTENCES };
static const int32_t text[SENTENCES][WORDS] = {{THE, DOG, BIT, THE, MAN, END},
                                               {THE, MAN, SAW, THE, DOG, END},
                                               {A, CAT, SAW, THE, DOG, END},
                                               {THE, DOG, SAW, A, CAT, END}};

static const embla_comm *comm;

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "sharded: %s\n", embla_error());
    if (comm && comm->abort) comm->abort(comm->owner, "sharded: a rank has failed");
    exit(1);
}

static embla_sharded *new_table(uint64_t seed)
{
    const embla_sharded_options options = {
        .rows = VOCAB, .dim = DIM, .dtype = EMBLA_F32, .capacity = TOKENS, .buckets = 16};
    const embla_init_options random = {.seed = seed};
    embla_sharded *made = NULL;
    embla_table *start = NULL; /* such as the table of a checkpoint */
    must(embla_sharded_new(comm, &options, &made));
    if (seed != 1) {
        must(embla_sharded_init(made, &random));
        return made;
    }
    must(embla_table_new(EMBLA_F32, VOCAB, DIM, NULL, &start));
    must(embla_table_init(start, &random));
    must(embla_sharded_fill(made, start)); /* each rank reads its own rows: the same numbers */
    embla_table_free(start);
    return made;
}

/* The words of sentences, and the word that follows each. */
static void read_text(size_t from, size_t count, int64_t *rows, int32_t *targets)
{
    for (size_t i = 0; i < count; i++) {
        rows[i] = text[from + i / WORDS][i % WORDS];
        targets[i] = rows[i] == END ? EMBLA_TARGET_IGNORE : text[from + i / WORDS][i % WORDS + 1];
    }
}

int main(void)
{
    must(embla_comm_open(NULL, &comm)); /* no launcher: one process alone */
    if (comm->size > RANKS) return 1;
    size_t from = (size_t)(SENTENCES * comm->rank / comm->size);
    size_t end = (size_t)(SENTENCES * (comm->rank + 1) / comm->size), sentences = end - from;
    size_t count = sentences * WORDS, lengths[SENTENCES] = {WORDS, WORDS, WORDS, WORDS};
    int64_t rows[TOKENS];
    int32_t targets[TOKENS]; /* a sentence is a micro-batch: sums do not depend on the ranks */
    float hidden[TOKENS][DIM], head_gradient[VOCAB * 2 * DIM];
    read_text(from, count, rows, targets);
    embla_sharded *now = new_table(1), *next = new_table(2);
    embla_optim *now_optim = NULL, *next_optim = NULL;
    const embla_optim_options adam = {.kind = EMBLA_OPTIM_ADAMW};
    must(embla_optim_new(embla_sharded_table(now), &adam, &now_optim));
    must(embla_optim_new(embla_sharded_table(next), &adam, &next_optim));
    size_t head_numbers = (size_t)embla_table_rows(embla_sharded_table(next)) * DIM;
    if (head_numbers > sizeof head_gradient / sizeof *head_gradient) return 1;

    const embla_sharded_batch batch = {
        .rows = rows, .count = count, .lengths = lengths, .micro_batches = sentences};
    const embla_sharded_loss_batch next_words = {.hidden = hidden[0],
                                                 .targets = targets,
                                                 .count = count,
                                                 .lengths = lengths,
                                                 .micro_batches = sentences};
    embla_sharded_sums own; /* gradients of this rank's rows */
    embla_loss_report report;
    for (int step = 0; step <= STEPS; step++) {
        must(embla_sharded_lookup_start(now, rows, count));
        memset(head_gradient, 0, sizeof head_gradient); /* compute here while rows are under way */
        must(embla_sharded_lookup_poll(now));
        must(embla_sharded_lookup_finish(now, hidden[0]));
        must(embla_sharded_loss(next, &next_words, NULL, hidden[0], head_gradient, &report));
        must(embla_sharded_sum(now, &batch, hidden[0], &own));
        must(embla_optim_step_rows(now_optim, 0.02, own.rows, own.count, own.sums));
        must(embla_optim_step(next_optim, 0.02, head_gradient));
        must(embla_sharded_publish(now)), must(embla_sharded_publish(next));
        if (step % 20 == 0 && comm->rank == 0) printf("step %2d: loss %.2f\n", step, report.loss);
    }

    char folder[] = "/tmp/embla-sharded-XXXXXX", all[RANKS][sizeof folder], path[80];
    if (comm->rank == 0 && !mkdtemp(folder)) return 1;
    must(comm->allgather(comm->owner, folder, all, sizeof folder)); /* rank 0's comes first */
    int64_t saved = 0;
    must(embla_sharded_save(now, now_optim, all[0], STEPS)); /* a file for each rank, an index */
    must(embla_sharded_load(now, now_optim, all[0], &saved));
    snprintf(path, sizeof path, "%s/now.safetensors", all[0]);
    must(embla_sharded_export(now, path, "now")); /* one file, the same bytes for any ranks */
    must(embla_sharded_lookup(now, rows, count, hidden[0]));
    if (comm->rank == 0)
        printf("saved at step %d; the row of \"the\" begins %.3f\n", (int)saved,
               (double)hidden[0][0]);
    embla_optim_free(now_optim);
    embla_optim_free(next_optim);
    embla_sharded_free(now);
    embla_sharded_free(next);
    snprintf(path, sizeof path, "rm -r %s", all[0]);
    int code = comm->rank == 0 ? system(path) : 0;
    embla_comm_free(comm);
    return code != 0;
}
