/* SPDX-License-Identifier: Apache-2.0 */
/* A complete training run: text -> corpus -> model -> steps -> new text. The model is microGPT with
 * a token table of 27 x 16. The model learns to predict the next letter of a name. The letters
 * nearest to 'a' are printed before and after the training.
 *
 *   train [FILE]     one name a line, letters a-z; default: names.txt of the demo
 */
#include <embla_lab.h>
#include <embla_train.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 300, DIM = 16, LETTERS = 15 };

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "train: %s\n", embla_error());
    exit(1);
}

/* Prints the three letters whose rows are nearest to the row of 'a', which is token 0. */
static void print_near(const char *when, const embla_gpt *gpt)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    const int64_t a = 0;
    const embla_near_options options = {.k = 3, .rows = 26, .exclude = &a, .exclude_count = 1};
    const embla_table *table = embla_gpt_tokens(gpt);
    float row[DIM];
    embla_neighbour near[3];
    must(embla_lookup_rows(table, &a, 1, NULL, row));
    must(embla_near(table, row, 1, &options, near, NULL));
    printf("nearest to a, %s:", when);
    for (int i = 0; i < 3; i++) printf(" %c %.2f", letters[near[i].row], near[i].score);
    printf("\n");
}

static void print_name(const embla_corpus *corpus, embla_decoder *decoder, int64_t n)
{
    embla_head head;
    embla_choice next = {.token = embla_corpus_bos(corpus)};
    float hidden[DIM];
    embla_decoder_reset(decoder);
    must(embla_decoder_head(decoder, &head));
    for (int64_t i = 0; i < LETTERS; i++) {
        const int32_t token = (int32_t)next.token;
        embla_sample_options sample = {.temperature = 0.7, .seed = 1, .step = n * LETTERS + i};
        must(embla_decoder_append(decoder, &token, 1, &(embla_decoder_options){.threads = 1},
                                  hidden));
        must(embla_head_sample(&head, hidden, 1, &sample, &next));
        if (next.token == embla_corpus_bos(corpus)) break;
        printf("%s", embla_corpus_word(corpus, next.token, NULL));
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    embla_corpus *corpus = NULL;
    embla_gpt *gpt = NULL;
    embla_train *train = NULL;
    embla_decoder *decoder = NULL;
    embla_gpt_preset preset;
    embla_train_report report;
    double mean = 0;
    const embla_corpus_options lines = {.documents = true, .seed = 1};
    must(embla_corpus_open(argc > 1 ? argv[1] : "names.txt", &lines, &corpus));
    must(embla_gpt_preset_find("microgpt", &preset));
    preset.shape.vocab = embla_corpus_vocab(corpus);
    must(embla_gpt_new(&preset.shape, 1, preset.spread, &gpt));
    printf("%lld names, %lld tokens, %lld numbers to learn\n",
           (long long)embla_corpus_documents(corpus), (long long)preset.shape.vocab,
           (long long)embla_gpt_parameters(gpt));
    print_near("before", gpt);

    const embla_train_options options = {
        .batch = 1,
        .schedule = {.rate = 0.01, .steps = STEPS, .kind = EMBLA_SCHEDULE_LINEAR},
        .beta1 = preset.beta1,
        .beta2 = preset.beta2};
    must(embla_train_new(gpt, corpus, &options, &train));
    for (int step = 1; step <= STEPS; step++) {
        must(embla_train_step(train, &report));
        mean += report.loss / 100;
        if (step % 100 != 0) continue;
        printf("steps %3d to %3d: loss %.2f\n", step - 99, step, mean);
        mean = 0;
    }
    char state[] = "/tmp/embla-train-XXXXXX", *folder = mkdtemp(state), path[64];
    if (!folder) return 1;
    snprintf(path, sizeof path, "%s/state.safetensors", folder);
    must(embla_train_save(train, path, NULL)); /* everything that the next step depends on.. */
    must(embla_train_load(train, path));       /* ..so a training continues from here */
    remove(path), remove(folder);
    print_near("after", gpt);
    must(embla_decoder_new(gpt, LETTERS, &decoder));
    for (int n = 0; n < 5; n++) print_name(corpus, decoder, n);
    embla_decoder_free(decoder);
    embla_train_free(train);
    embla_gpt_free(gpt);
    embla_corpus_free(corpus);
    return 0;
}
