/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that train one model together end with the same bits, whatever their number: weights,
 * optimizer, losses, validation and files. Ranks are threads here (thread_comm.h). What does not
 * fit together is refused on all ranks, and a failure of one is a failure of all.
 */
#include "engine.h"
#include "team_job.h"

#include "cluster/comm.h"
#include "cluster/team_slices.h"
#include "corpus/corpus.h"
#include "files/map.h"

/* ---- sums of floats ---- */

/* Slices that are sent in several rounds. Sums of small integers are exact. */
static embla_status sum_slices(const embla_comm *comm, void *context)
{
    enum { COUNT = (1 << 20) + 77 };
    size_t rank = (size_t)comm->rank, ranks = (size_t)comm->size, wrong = 0;
    embla_team_slices s;
    float *values = malloc(COUNT * sizeof *values);
    (void)context;
    if (!values) return embla_fail(EMBLA_ERR_MEMORY, "no memory for the test");
    for (size_t i = 0; i < COUNT; i++) values[i] = (float)(i % 1021 * (rank + 1));
    EMBLA_TRY(embla_team_slices_new(comm, COUNT, &s));
    EMBLA_TRY(embla_team_slices_sum(&s, values, COUNT));
    for (size_t i = 0; i < COUNT; i++)
        wrong += values[i] != (float)(i / s.slice == rank ? i % 1021 * ranks * (ranks + 1) / 2 : 0);
    EMBLA_TRY(embla_team_slices_gather(&s, values, COUNT * sizeof *values, s.slice * sizeof *values,
                                       true));
    for (size_t i = 0; i < COUNT; i++)
        wrong += values[i] != (float)(i % 1021 * ranks * (ranks + 1) / 2);
    embla_team_slices_free(&s);
    free(values);
    return wrong == 0 ? EMBLA_OK : embla_fail(EMBLA_ERR_FORMAT, "%zu sums are wrong", wrong);
}

static void slices_of_any_number_of_ranks_are_summed(void **unused)
{
    (void)unused;
    for (int size = 2; size <= 7; size++) thread_comm_run(size, sum_slices, NULL);
}

/* ---- the same bits ---- */

static void any_number_of_ranks_gives_the_same_bits(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    for (size_t i = 0; i < COUNT_OF(variants); i++) {
        embla_corpus *corpus = corpus_of(&variants[i]);
        job j = job_of(&variants[i], corpus);
        run_job(&j, 1);
        outcome one = j.found[0];
        for (int size = 1; size <= SHARDS; size++) {
            j.threads = 1 + size % 2;
            run_job(&j, size);
            same(&j.found[0], &one);
        }
        if (j.v->options.negatives == 0) assert_true(one.losses[STEPS - 1] < one.losses[0]);
        embla_corpus_free(corpus);
    }
}

static void one_shard_is_the_training_without_ranks(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    for (size_t i = 0; i < COUNT_OF(variants); i++) {
        embla_corpus *corpus = corpus_of(&variants[i]);
        job j = job_of(&variants[i], corpus), plain = j;
        plain.alone = true;
        j.team.micro_batches = 1;
        run_job(&j, 1);
        run_job(&plain, 1);
        same(&j.found[0], &plain.found[0]);
        embla_corpus_free(corpus);
    }
}

/* Without dropout and negatives, shards change nothing but the rounding. */
static void shards_and_floats_differ_by_rounding_alone(void **unused)
{
    (void)unused;
    embla_corpus *corpus = corpus_of(&variants[0]);
    job plain = job_of(&variants[0], corpus), exact = plain, fast = plain;
    plain.alone = true;
    fast.team.fast = true;
    run_job(&plain, 1);
    run_job(&exact, 2);
    for (int size = 1; size <= 4; size++) {
        run_job(&fast, size);
        for (size_t s = 0; s < STEPS; s++) {
            assert_near(fast.found[0].losses[s], exact.found[0].losses[s], 1e-5);
            assert_near(fast.found[0].losses[s], plain.found[0].losses[s], 1e-5);
            assert_near(exact.found[0].norms[s], plain.found[0].norms[s], 1e-4);
            assert_near(fast.found[0].norms[s], plain.found[0].norms[s], 1e-4);
        }
    }
    assert_memory_not_equal(&exact.found[0].state, &plain.found[0].state,
                            sizeof plain.found[0].state);
    embla_corpus_free(corpus);
}

static void validation_is_that_of_one_process(void **unused)
{
    (void)unused;
    embla_corpus *corpus = corpus_of(&variants[1]);
    job j = job_of(&variants[1], corpus), plain = j;
    plain.alone = true;
    j.until = plain.until = 0;
    run_job(&j, 3);
    run_job(&plain, 1);
    assert_true(j.found[0].validation == plain.found[0].validation);
    embla_corpus_free(corpus);
}

/* ---- files ---- */

static void a_training_is_resumed_by_another_number_of_ranks(void **unused)
{
    (void)unused;
    scratch s;
    scratch_new(&s);
    char half[SCRATCH_PATH], first[SCRATCH_PATH], again[SCRATCH_PATH];
    (void)snprintf(half, sizeof half, "%s", scratch_path(&s, "half.safetensors"));
    (void)snprintf(first, sizeof first, "%s", scratch_path(&s, "first.safetensors"));
    (void)snprintf(again, sizeof again, "%s", scratch_path(&s, "again.safetensors"));
    const variant *v = &variants[3];
    embla_corpus *corpus = corpus_of(v);
    job whole = job_of(v, corpus);
    whole.save = first;
    run_job(&whole, 2);
    for (int size = 1; size <= 4; size++) {
        job begin = job_of(v, corpus), end = begin;
        begin.until = STEPS / 2;
        begin.save = half;
        end.load = half;
        end.save = again;
        run_job(&begin, size);
        run_job(&end, 5 - size);
        assert_memory_equal(&end.found[0].state, &whole.found[0].state, sizeof(embla_checksum));
        same_file(first, again);
    }
    embla_corpus_free(corpus);
    scratch_free(&s);
}

static void the_file_says_how_batches_were_cut(void **unused)
{
    (void)unused;
    scratch s;
    scratch_new(&s);
    embla_team_options saved;
    thread_result results[2];
    embla_corpus *corpus = corpus_of(&variants[0]);
    job j = job_of(&variants[0], corpus);
    j.until = 1;
    j.save = scratch_path(&s, "x.safetensors");
    run_job(&j, 2);
    assert_ok(embla_team_describe_saved(j.save, &saved));
    assert_int_equal(saved.micro_batches, SHARDS);
    assert_false(saved.fast);
    j.load = j.save;
    j.save = NULL;
    j.team.micro_batches = 4;
    thread_comm_try(2, run_rank, &j, results);
    assert_non_null(strstr(results[0].sentence,
                           "the saved training run has micro_batches 5, but this one "
                           "has 4"));
    j.team = (embla_team_options){.micro_batches = SHARDS, .fast = true};
    thread_comm_try(1, run_rank, &j, results);
    assert_non_null(strstr(results[0].sentence, "has fast 0, but this one has 1"));
    embla_corpus_free(corpus);
    scratch_free(&s);
}

/* ---- n-gram tables that are divided among the ranks ---- */

static void a_divided_table_gives_the_bits_of_a_whole_one(void **unused)
{
    (void)unused;
    scratch s;
    scratch_new(&s);
    const model_place whole = place_of(&s, "whole"), parts = place_of(&s, "parts");
    embla_corpus *corpus = corpus_of(&variants[3]);
    job j = job_of(&variants[3], corpus);
    j.model = whole.folder;
    run_job(&j, 2);
    const outcome wanted = j.found[0];
    for (int size = 1; size <= SHARDS; size++) {
        j.team.shard_ngrams = true;
        j.model = parts.folder;
        j.send = size % 2 == 0;
        j.threads = 1 + size % 2;
        run_job(&j, size);
        same_but_rows(&j.found[0], &wanted);
        same_file(whole.weights, parts.weights);
    }
    embla_corpus_free(corpus);
    remove_folder(&s, "whole");
    remove_folder(&s, "parts");
    scratch_free(&s);
}

static void a_divided_table_is_saved_and_resumed_by_others(void **unused)
{
    (void)unused;
    scratch s;
    scratch_new(&s);
    const model_place first = place_of(&s, "first"), last = place_of(&s, "last");
    char half[SCRATCH_PATH], again[SCRATCH_PATH];
    (void)snprintf(half, sizeof half, "%s", scratch_path(&s, "half.safetensors"));
    (void)snprintf(again, sizeof again, "%s", scratch_path(&s, "again.safetensors"));
    embla_corpus *corpus = corpus_of(&variants[3]);
    job whole = job_of(&variants[3], corpus);
    whole.team.shard_ngrams = true;
    whole.model = first.folder;
    run_job(&whole, 3);
    for (int size = 1; size <= 4; size++) {
        job begin = job_of(&variants[3], corpus), end;
        begin.team.shard_ngrams = true;
        end = begin;
        begin.until = STEPS / 2;
        begin.save = half; /* the second time there are rows of this step already */
        end.load = half;
        end.save = again;
        end.model = last.folder;
        run_job(&begin, size);
        run_job(&end, 5 - size);
        assert_memory_equal(&end.found[0].optimizer, &whole.found[0].optimizer,
                            sizeof(embla_checksum));
        assert_true(end.found[0].validation == whole.found[0].validation);
        same_file(first.weights, last.weights);
    }
    thread_result results[2];
    job other = job_of(&variants[3], corpus);
    other.load = half;
    thread_comm_try(2, run_rank, &other, results);
    assert_non_null(strstr(results[0].sentence,
                           "the saved training run has shard_ngrams 1, but this one has 0"));
    other = job_of(&variants[0], corpus);
    other.team.shard_ngrams = true;
    thread_comm_try(2, run_rank, &other, results);
    assert_non_null(strstr(results[1].sentence, "the model has no n-gram table"));
    embla_corpus_free(corpus);
    (void)scratch_each(&s, remove_folder, ".safetensors.");
    remove_folder(&s, "first");
    remove_folder(&s, "last");
    scratch_free(&s);
}

/* ---- failures ---- */

static embla_status other_clip(embla_train_options *options)
{
    options->clip = 0.25;
    return EMBLA_OK;
}

static void change_weight(embla_train *t)
{
    ((float *)(void *)t->gpt->weights)[3] += 0.5f;
}

static void change_step(embla_train *t)
{
    t->step++;
}

/* A weight that the comparison of this step does not cover is found at a later one. */
static void what_differs_between_ranks_is_refused(void **unused)
{
    (void)unused;
    embla_corpus *corpus = corpus_of(&variants[1]);
    job j = job_of(&variants[1], corpus);
    j.odd = 2;
    j.before = other_clip;
    refused(&j, 3, 2, EMBLA_ERR_ARGUMENT,
            "rank 0: its training run has clip 0.5, but this one has 0.25");
    refused(&j, 3, 1, EMBLA_ERR_ARGUMENT, "rank 2 failed: its settings are not those of rank 0");
    j.before = NULL;
    j.change = change_weight;
    refused(&j, 3, 0, EMBLA_ERR_ARGUMENT, "the ranks have different weights before step 0");
    j.change = change_step;
    refused(&j, 3, 1, EMBLA_ERR_ARGUMENT, "the ranks are at different steps, from 0 to 1");
    embla_corpus_free(corpus);
}

static void a_team_must_fit_the_batch(void **unused)
{
    (void)unused;
    embla_corpus *corpus = corpus_of(&variants[0]);
    job j = job_of(&variants[0], corpus);
    j.team.micro_batches = 8;
    refused(&j, 2, 1, EMBLA_ERR_ARGUMENT, "8 micro-batches, but a batch has only 7 sequences");
    j.team.micro_batches = 2;
    refused(&j, 3, 0, EMBLA_ERR_ARGUMENT,
            "3 ranks, but a batch of 7 sequences has only 2 micro-batches");
    j.team.micro_batches = 0; /* the default: one for each sequence */
    refused(&j, 8, 0, EMBLA_ERR_ARGUMENT,
            "8 ranks, but a batch of 7 sequences has only 7 micro-batches");
    run_job(&j, 7);
    j.team.reserved[2] = 1;
    refused(&j, 1, 0, EMBLA_ERR_UNSUPPORTED, "a reserved field is not 0");
    embla_corpus_free(corpus);
}

static void what_cannot_join_is_refused(void **unused)
{
    (void)unused;
    embla_corpus *corpus = corpus_of(&variants[0]);
    embla_gpt *gpt = NULL;
    embla_train *train = NULL;
    embla_team_options joined;
    embla_gpt_shape shape = variants[0].shape;
    shape.vocab = embla_corpus_vocab(corpus);
    assert_ok(embla_gpt_new(&shape, 1, 0.08, &gpt));
    assert_ok(embla_train_new(gpt, corpus, &variants[0].options, &train));
    assert_status(embla_train_describe_team(train, &joined), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_train_describe_team(NULL, &joined), EMBLA_ERR_ARGUMENT);
    assert_status(embla_train_join(NULL, embla_comm_self(), NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_train_join(train, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_train_join(train, embla_comm_self(), NULL));
    assert_ok(embla_train_describe_team(train, &joined));
    assert_int_equal(joined.micro_batches, BATCH);
    assert_status(embla_train_join(train, embla_comm_self(), NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("has joined 1 ranks already");
    embla_train_free(train);
    embla_gpt_free(gpt);
    embla_corpus_free(corpus);
}

/* Each allocation of a rank that joins fails once; the training stays as it was. */
static void check_join_without_memory(const embla_team_options *team)
{
    const variant *v = &variants[3];
    embla_corpus *corpus = corpus_of(v);
    embla_gpt *gpt = NULL;
    embla_train *train = NULL;
    embla_gpt_shape shape = v->shape;
    size_t failed = 0;
    shape.vocab = embla_corpus_vocab(corpus);
    assert_ok(embla_gpt_new(&shape, 1, 0.08, &gpt));
    assert_ok(embla_train_new(gpt, corpus, &v->options, &train));
    for (size_t n = 1, live = embla_mem_live();; n++) {
        embla_mem_fail(n, false);
        embla_status status = embla_train_join(train, embla_comm_self(), team);
        embla_mem_fail(0, false);
        if (status == EMBLA_OK) break;
        assert_status(status, EMBLA_ERR_MEMORY);
        assert_null(train->shared);
        assert_int_equal(embla_mem_live(), live);
        failed++;
    }
    assert_true(failed >= 5);
    assert_ok(embla_train_step(train, NULL));
    embla_train_free(train);
    embla_gpt_free(gpt);
    embla_corpus_free(corpus);
}

static void a_rank_without_memory_does_not_join(void **unused)
{
    (void)unused;
    check_join_without_memory(NULL);
    check_join_without_memory(&(embla_team_options){.shard_ngrams = true});
}

/* Each allocation of the first step fails once. The step is then made again, with the same bits. */
static void a_step_that_failed_can_be_made_again(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    const variant *v = &variants[2]; /* negatives need memory */
    embla_corpus *corpus = corpus_of(v);
    embla_gpt_shape shape = v->shape;
    embla_checksum wanted = {0};
    size_t failed = 0;
    shape.vocab = embla_corpus_vocab(corpus);
    for (size_t n = 0; n < 40; n++) { /* 0 means that none fails */
        embla_gpt *gpt = NULL;
        embla_train *train = NULL;
        assert_ok(embla_gpt_new(&shape, 1, 0.08, &gpt));
        assert_ok(embla_train_new(gpt, corpus, &v->options, &train));
        assert_ok(embla_train_join(train, embla_comm_self(), NULL));
        embla_mem_fail(n, false);
        embla_status status = embla_train_step(train, NULL);
        embla_mem_fail(0, false);
        if (status != EMBLA_OK) {
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_ok(embla_train_step(train, NULL));
            failed++;
        }
        embla_checksum found = sum_of(train);
        if (n == 0) wanted = found;
        assert_memory_equal(&found, &wanted, sizeof found);
        embla_train_free(train);
        embla_gpt_free(gpt);
    }
    assert_true(failed > 0);
    embla_corpus_free(corpus);
}

/* Lets a rank read batches from a file that was changed while it was open. */
static embla_corpus changed;
static void lose_corpus(embla_train *t)
{
    embla_map *map = changed.map;
    changed = *t->corpus;
    changed.map = map;
    changed.vocab = 1;
    t->corpus = &changed;
}

/* A rank that cannot read its batches takes part all the same, so that no other waits for it. */
static void a_validation_that_fails_on_one_rank_fails_on_all(void **unused)
{
    (void)unused;
    scratch s;
    scratch_new(&s);
    embla_corpus *corpus = corpus_of(&variants[3]);
    job j = job_of(&variants[3], corpus);
    const char *path = scratch_path(&s, "tokens.bin");
    scratch_write(path, "tokens", 6);
    assert_ok(embla_map_open(EMBLA_HERE, path, path, true, &changed.map));
    j.until = 0;
    j.odd = 1;
    j.change = lose_corpus;
    for (int how = 0; how < 4; how++) {
        if (how >= 2 && no_engine()) continue;
        j.team.shard_ngrams = how % 2 > 0;
        j.team.shard_tokens = how >= 2;
        refused(&j, 3, 1, EMBLA_ERR_IO, "was changed while it was open");
        refused(&j, 3, 2, EMBLA_ERR_IO, "rank 1 failed");
    }
    embla_map_free(changed.map);
    embla_corpus_free(corpus);
    scratch_free(&s);
}

/* The communicator of one process, with shared memory and with a barrier that is watched. */
static embla_status new_window(void *owner, size_t bytes, embla_comm_window *out)
{
    (void)owner;
    out->parts = malloc(sizeof *out->parts);
    assert_non_null(out->parts);
    out->parts[0] = out->handle = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(out->handle);
    memset(out->handle, 0, bytes);
    return EMBLA_OK;
}

static void free_window(void *owner, embla_comm_window *window)
{
    (void)owner;
    free(window->handle);
    free(window->parts);
    *window = (embla_comm_window){0};
}

static embla_status waiting = EMBLA_OK; /* what it returns */
static int patient;                     /* calls that wait for files */
static embla_status seen_barrier(void *owner, int seconds)
{
    (void)owner;
    patient += seconds == EMBLA_COMM_SAVING;
    return waiting == EMBLA_OK ? EMBLA_OK : embla_fail(waiting, "a rank is lost");
}

/* A training of one process that has divided its n-gram rows. */
static void open_divided(const embla_corpus *corpus, embla_gpt **gpt, embla_train **train)
{
    static embla_comm comm;
    comm = *embla_comm_self();
    comm.barrier = seen_barrier;
    comm.window_new = new_window;
    comm.window_free = free_window;
    embla_gpt_shape shape = variants[3].shape;
    shape.vocab = embla_corpus_vocab(corpus);
    assert_ok(embla_gpt_new(&shape, 1, 0.08, gpt));
    assert_ok(embla_train_new(*gpt, corpus, &variants[3].options, train));
    assert_ok(embla_train_join(*train, &comm, &(embla_team_options){.shard_ngrams = true}));
}

static void a_step_that_changed_only_ngram_rows_is_not_saved(void **unused)
{
    (void)unused;
    scratch s;
    scratch_new(&s);
    const char *path = scratch_path(&s, "x.safetensors");
    embla_corpus *corpus = corpus_of(&variants[3]);
    embla_gpt *gpt = NULL;
    embla_train *train = NULL;
    open_divided(corpus, &gpt, &train);
    assert_ok(embla_train_save(train, path, NULL));
    waiting = EMBLA_ERR_IO; /* for the other ranks, before they read the new rows */
    assert_status(embla_train_step(train, NULL), EMBLA_ERR_IO);
    waiting = EMBLA_OK;
    assert_status(embla_train_save(train, path, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("failed halfway");
    assert_status(embla_train_step(train, NULL), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_train_load(train, path));
    assert_ok(embla_train_step(train, NULL));
    embla_train_free(train);
    embla_gpt_free(gpt);
    embla_corpus_free(corpus);
    remove_folder(&s, "x.safetensors.ngram");
    scratch_free(&s);
}

static void ranks_wait_long_for_files(void **unused)
{
    (void)unused;
    scratch s;
    scratch_new(&s);
    char folder[SCRATCH_PATH], path[SCRATCH_PATH];
    (void)snprintf(folder, sizeof folder, "%s", scratch_path(&s, "checkpoints"));
    embla_corpus *corpus = corpus_of(&variants[3]);
    embla_gpt *gpt = NULL;
    embla_train *train = NULL;
    open_divided(corpus, &gpt, &train);
    patient = 0;
    assert_ok(embla_train_checkpoint(train, folder, 1, NULL));
    assert_int_equal(patient, 6); /* the old file, 3 for the rows, the new file, old checkpoints */
    assert_ok(embla_train_newest(folder, path, sizeof path, NULL));
    assert_ok(embla_train_load(train, path));
    assert_int_equal(patient, 9); /* checked, loaded, the rows */
    embla_train_free(train);
    embla_gpt_free(gpt);
    embla_corpus_free(corpus);
    scratch inside;
    (void)snprintf(inside.folder, sizeof inside.folder, "%.200s/checkpoints", s.folder);
    remove_folder(&inside, "step-0000000000.safetensors.ngram");
    scratch_free(&inside);
    scratch_free(&s);
}

static void a_file_that_one_rank_cannot_use_fails_on_all(void **unused)
{
    (void)unused;
    scratch s;
    scratch_new(&s);
    embla_corpus *corpus = corpus_of(&variants[0]);
    job j = job_of(&variants[0], corpus);
    j.until = 1;
    j.load = scratch_path(&s, "missing.safetensors");
    refused(&j, 3, 1, EMBLA_ERR_NOT_FOUND, "missing.safetensors");
    j.load = NULL;
    j.save = scratch_path(&s, "no/folder.safetensors");
    refused(&j, 3, 2, EMBLA_ERR_NOT_FOUND, "rank 0 failed: it cannot save the training");
    embla_corpus_free(corpus);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_of_any_number_of_ranks_are_summed),
        cmocka_unit_test(any_number_of_ranks_gives_the_same_bits),
        cmocka_unit_test(one_shard_is_the_training_without_ranks),
        cmocka_unit_test(shards_and_floats_differ_by_rounding_alone),
        cmocka_unit_test(validation_is_that_of_one_process),
        cmocka_unit_test(a_training_is_resumed_by_another_number_of_ranks),
        cmocka_unit_test(the_file_says_how_batches_were_cut),
        cmocka_unit_test(a_divided_table_gives_the_bits_of_a_whole_one),
        cmocka_unit_test(a_divided_table_is_saved_and_resumed_by_others),
        cmocka_unit_test(what_differs_between_ranks_is_refused),
        cmocka_unit_test(a_team_must_fit_the_batch),
        cmocka_unit_test(what_cannot_join_is_refused),
        cmocka_unit_test(a_rank_without_memory_does_not_join),
        cmocka_unit_test(a_step_that_failed_can_be_made_again),
        cmocka_unit_test(a_validation_that_fails_on_one_rank_fails_on_all),
        cmocka_unit_test(a_step_that_changed_only_ngram_rows_is_not_saved),
        cmocka_unit_test(ranks_wait_long_for_files),
        cmocka_unit_test(a_file_that_one_rank_cannot_use_fails_on_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
