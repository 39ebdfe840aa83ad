/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint of `embla train`, as --resume reads it: the input is the file. A wrong checksum is
 * set right and the file is tried again, because nearly every change would be refused for it.
 * Promises:
 *   - every call succeeds or leaves a sentence, and in the end nothing stays allocated or open;
 *   - after a load that fails, the training is as before and makes a step;
 *   - a load that succeeds can be saved and loaded again, with the same step;
 *   - a described model fits in the file, so that nobody allocates more than it justifies.
 */
#include "base/mem.h"
#include "embla_train.h"
#include "files/io.h"
#include "models.h"
#include "training.h"

enum { SUM = 32, MEMORY_MOST = 64 << 20 };
static const char file_name[] = "step-0000000002.safetensors";

#define SAID(status) PROMISE((status) == EMBLA_OK || *embla_error())

/* Sets the checksum in a file to the one that the last message says. False if it says none. */
static bool set_sum(uint8_t *data, size_t size)
{
    static const char key[] = "\"checksum\":\"", said[] = "have the checksum ";
    const char *found = strstr(embla_error(), said);
    uint8_t *at = size > 0 ? memmem(data, size, key, sizeof key - 1) : NULL;
    if (!found || !at || strlen(found) < sizeof said - 1 + SUM) return false;
    at += sizeof key - 1;
    if ((size_t)(data + size - at) < SUM) return false;
    memcpy(at, found + sizeof said - 1, SUM);
    return true;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return mutate_safetensors(data, size, most, &seed);
}

/* As --resume does: the model, the corpus and the training that the file describes. */
static void use_described(const char *path)
{
    embla_train_saved saved;
    embla_gpt_memory plan;
    embla_corpus *own = NULL;
    training t = {0};
    char words[FOLDER_PATH];
    embla_status status = embla_train_describe_saved(path, &saved);
    SAID(status);
    if (status != EMBLA_OK) return;
    PROMISE(embla_gpt_plan_memory(&saved.shape, 1, 1, &plan) == EMBLA_OK);
    PROMISE(plan.weights <= MEMORY_MOST);
    size_t length = saved.options.length;
    if (embla_gpt_plan_memory(&saved.shape, saved.options.batch,
                              length > 0 ? length : saved.shape.positions, &plan) != EMBLA_OK ||
        plan.total > MEMORY_MOST)
        return;
    SAID(status = embla_corpus_open(folder_path("text", words), &saved.corpus, &own));
    if (status == EMBLA_OK) SAID(status = embla_gpt_new(&saved.shape, 1, 0, &t.gpt));
    if (status == EMBLA_OK) SAID(status = embla_train_new(t.gpt, own, &saved.options, &t.train));
    if (status == EMBLA_OK) SAID(status = embla_train_load(t.train, path));
    if (status == EMBLA_OK) SAID(embla_train_step(t.train, NULL));
    training_stop(&t);
    embla_corpus_free(own);
}

static void use_loaded(embla_train *train)
{
    char path[FOLDER_PATH];
    int64_t step = embla_train_steps(train);
    PROMISE(embla_train_save(train, folder_path("again", path), NULL) == EMBLA_OK);
    PROMISE(embla_train_load(train, path) == EMBLA_OK && embla_train_steps(train) == step);
    SAID(embla_train_step(train, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[FOLDER_PATH], newest[FOLDER_PATH];
    training_set_up();
    size_t memory = embla_mem_live(), files = embla_io_live();
    uint8_t *own = (uint8_t *)block(size);
    if (size > 0) memcpy(own, data, size);
    (void)folder_path(file_name, path);
    training t = training_start();
    embla_status status = EMBLA_OK;
    for (int i = 0; i < 2; i++) {
        folder_write(file_name, own, size);
        SAID(embla_train_newest(folder, newest, sizeof newest, NULL));
        status = embla_train_load(t.train, path);
        SAID(status);
        if (status == EMBLA_OK || !set_sum(own, size)) break;
    }
    if (status == EMBLA_OK)
        use_loaded(t.train);
    else
        PROMISE(embla_train_steps(t.train) == 0 && embla_train_step(t.train, NULL) == EMBLA_OK);
    use_described(path);
    training_stop(&t);
    free(own);
    PROMISE(embla_mem_live() == memory && embla_io_live() == files);
    return 0;
}
