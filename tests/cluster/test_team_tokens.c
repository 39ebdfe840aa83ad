/* SPDX-License-Identifier: Apache-2.0 */
/* A team whose ranks divide the token table, and a separate head: the bits of the training do not
 * depend on the number of ranks, and the losses are those of a team that has the tables whole, but
 * for rounding. Files are those of any number of ranks. What cannot be divided is refused.
 */
#include "engine.h"
#include "team_job.h"

#include <errno.h>

#include "cluster/comm.h"
#include "files/io.h"
#include "learn/scatter_sum.h"
#include "model/gpt_pass.h"
#include "model/gpt_trunk.h"

/* Models: one with a separate head; GPT-2 with dropout; Llama with frozen rows; one with n-grams in
 * bf16. */
static const variant llama = {
    "llama, frozen",
    {.dim = 32, .layers = 1, .heads = 4, .kv_heads = 2, .hidden = 48, .positions = 24, LLAMA_KIND},
    {.batch = BATCH, .length = 23, .schedule = RATE, .decay = 0.1, .freeze_below = 5},
    false};

static const variant *variant_at(size_t n)
{
    const variant *all[] = {&variants[0], &variants[1], &llama, &variants[3]};
    return n < COUNT_OF(all) ? all[n] : NULL;
}

static job tokens_job(const variant *v, const embla_corpus *corpus)
{
    job j = job_of(v, corpus);
    j.team.shard_tokens = true;
    j.team.shard_ngrams = v->shape.ngram.rows > 0;
    return j;
}

/* ---- the same bits ---- */

static void any_number_of_ranks_gives_the_same_bits(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    scratch s;
    scratch_new(&s);
    const model_place first = place_of(&s, "first"), again = place_of(&s, "again");
    for (size_t i = 0; variant_at(i); i++) {
        embla_corpus *corpus = corpus_of(variant_at(i));
        job j = tokens_job(variant_at(i), corpus);
        j.model = first.folder;
        run_job(&j, 1);
        const outcome one = j.found[0];
        assert_true(one.losses[STEPS - 1] < one.losses[0]);
        j.model = again.folder;
        for (int size = 1; size <= SHARDS; size++) {
            j.threads = 1 + size % 2;
            j.send = size % 2 == 0;
            run_job(&j, size);
            same(&j.found[0], &one);
            same_file(first.weights, again.weights);
        }
        embla_corpus_free(corpus);
    }
    remove_folder(&s, "first");
    remove_folder(&s, "again");
    scratch_free(&s);
}

/* Losses of steps, and of the validation after them. bf16 rounds the head of a whole table, but not
 * that of a divided one. */
static void losses_are_those_of_whole_tables(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    for (size_t i = 0; variant_at(i); i++) {
        embla_corpus *corpus = corpus_of(variant_at(i));
        job whole = job_of(variant_at(i), corpus), divided = tokens_job(variant_at(i), corpus);
        double near = variant_at(i)->options.compute == EMBLA_BF16 ? 2e-2 : 1e-5;
        run_job(&whole, 2);
        run_job(&divided, 3);
        for (size_t n = 0; n < STEPS; n++) {
            assert_near(divided.found[0].losses[n], whole.found[0].losses[n], near);
            assert_near(divided.found[0].norms[n], whole.found[0].norms[n], 10 * near);
        }
        assert_near(divided.found[0].validation, whole.found[0].validation, near);
        embla_corpus_free(corpus);
    }
}

static void floats_differ_by_rounding_alone(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    for (size_t i = 0; i < 3; i += 2) { /* without dropout, whose masks depend on the pieces */
        embla_corpus *corpus = corpus_of(variant_at(i));
        job exact = tokens_job(variant_at(i), corpus), fast = exact;
        fast.team.fast = true;
        run_job(&exact, 2);
        for (int size = 1; size <= 3; size += 2) {
            run_job(&fast, size);
            for (size_t n = 0; n < STEPS; n++)
                assert_near(fast.found[0].losses[n], exact.found[0].losses[n], 1e-5);
            assert_near(fast.found[0].validation, exact.found[0].validation, 1e-5);
        }
        embla_corpus_free(corpus);
    }
}

/* ---- what a rank has ---- */

static void the_model_has_no_token_rows(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    scratch s;
    scratch_new(&s);
    embla_corpus *corpus = corpus_of(&variants[0]);
    embla_gpt *gpt = NULL;
    embla_train *train = NULL;
    embla_decoder *decoder = NULL;
    embla_gpt_tensor tensor;
    const int32_t token = 1;
    const embla_team_options team = {.shard_tokens = true};
    embla_gpt_shape shape = variants[0].shape;
    shape.vocab = embla_corpus_vocab(corpus);
    assert_ok(embla_gpt_new(&shape, 1, 0.08, &gpt));
    assert_ok(embla_train_new(gpt, corpus, &variants[0].options, &train));
    int64_t parameters = embla_gpt_parameters(gpt);
    size_t numbers = gpt->numbers, rows = (size_t)shape.vocab * shape.dim;
    assert_ok(embla_train_join(train, embla_comm_self(), &team));
    embla_team_options joined;
    assert_ok(embla_train_describe_team(train, &joined));
    assert_true(joined.shard_tokens);
    assert_true(gpt->numbers <= numbers - 2 * rows);
    assert_int_equal(embla_gpt_parameters(gpt), parameters);
    assert_null(embla_gpt_tokens(gpt));
    for (size_t i = 0; embla_gpt_tensor_at(gpt, i, &tensor) == EMBLA_OK; i++)
        assert_true(strcmp(tensor.name, "wte") != 0 && strcmp(tensor.name, "lm_head") != 0);
    assert_status(
        embla_gpt_loss(
            gpt, &(embla_gpt_batch){.tokens = &token, .targets = &token, .batch = 1, .length = 1},
            NULL, NULL),
        EMBLA_ERR_UNSUPPORTED);
    assert_error_has("token rows of the model are kept by its training");
    assert_status(embla_decoder_new(gpt, 4, &decoder), EMBLA_ERR_UNSUPPORTED);
    assert_status(embla_gpt_save(gpt, scratch_path(&s, "x"), NULL), EMBLA_ERR_UNSUPPORTED);
    embla_train_free(train);
    embla_gpt_free(gpt);
    embla_corpus_free(corpus);
    scratch_free(&s);
}

/* The weights of a model but for its rows stay where others find them, and so does a saved model:
 * before the first step it is that of a whole table. */
static void dividing_changes_no_number(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    scratch s;
    scratch_new(&s);
    const model_place whole = place_of(&s, "whole"), divided = place_of(&s, "divided");
    for (size_t i = 0; variant_at(i); i++) {
        embla_corpus *corpus = corpus_of(variant_at(i));
        job a = job_of(variant_at(i), corpus), b = tokens_job(variant_at(i), corpus);
        a.until = b.until = 0;
        a.model = whole.folder;
        b.model = divided.folder;
        run_job(&a, 1);
        run_job(&b, 3);
        same_file(whole.weights, divided.weights);
        embla_corpus_free(corpus);
    }
    remove_folder(&s, "whole");
    remove_folder(&s, "divided");
    scratch_free(&s);
}

/* ---- the halves of a pass ---- */

enum { SEQUENCES = 3, LENGTH = 11, N = SEQUENCES * LENGTH };

/* The gradient of every tensor, rounded differently. */
static void compare_gradients(const embla_gpt *a, const embla_gpt *b)
{
    embla_gpt_tensor x, y;
    for (size_t i = 0; embla_gpt_tensor_at(a, i, &x) == EMBLA_OK; i++) {
        assert_ok(embla_gpt_tensor_at(b, i, &y));
        for (size_t k = 0; k < (size_t)x.rows * x.dim; k++)
            assert_near(x.gradient[k], y.gradient[k], 1e-5);
    }
}

static void two_halves_are_a_whole_pass(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    for (size_t v = 0; v < 3; v++) {
        embla_gpt_shape shape = variant_at(v)->shape;
        embla_gpt *whole = NULL, *halves = NULL;
        embla_scatter *scatter = NULL;
        int32_t tokens[N], targets[N];
        float rows[N * 32], hidden[N * 32];
        const embla_gpt_options options = {.seed = 5};
        shape.vocab = 19;
        for (int i = 0; i < N; i++) tokens[i] = i * 7 % 19, targets[i] = (i * 5 + 2) % 19;
        targets[4] = EMBLA_TARGET_IGNORE;
        assert_ok(embla_gpt_new(&shape, 1, 0.3, &whole));
        assert_ok(embla_gpt_new(&shape, 1, 0.3, &halves));
        assert_ok(embla_gpt_reserve(whole, SEQUENCES, LENGTH));
        assert_ok(embla_gpt_reserve(halves, SEQUENCES, LENGTH));
        assert_ok(embla_gpt_backward(
            whole,
            &(embla_gpt_batch){
                .tokens = tokens, .targets = targets, .batch = SEQUENCES, .length = LENGTH},
            &options, NULL));
        const embla_gpt_given given = {
            .batch = {.tokens = tokens, .targets = targets, .batch = SEQUENCES, .length = LENGTH},
            .rows = rows};
        const embla_head head = {.table = halves->head ? halves->head : halves->tokens};
        const embla_loss_gradients gradients = {
            .hidden = hidden, .table = embla_gpt_gradient(halves, embla_gpt_head_slot(halves))};
        assert_ok(embla_lookup(halves->tokens, tokens, N, NULL, rows));
        assert_ok(embla_gpt_pass_forward(halves, &given, &options, true, hidden));
        assert_memory_equal(hidden, embla_gpt_hidden(whole), N * shape.dim * sizeof(float));
        assert_ok(embla_head_loss(
            &head, &(embla_loss_batch){.hidden = hidden, .targets = targets, .count = N}, NULL,
            &gradients, NULL));
        assert_ok(embla_gpt_pass_backward(halves, &given, &options, v % 2 == 0, hidden, rows));
        assert_ok(embla_scatter_new(shape.vocab, N, &scatter));
        assert_ok(embla_scatter_plan(scatter, tokens, N, NULL));
        assert_ok(
            embla_scatter_add(scatter, rows, shape.dim, embla_gpt_gradient(halves, EMBLA_GPT_WTE)));
        compare_gradients(whole, halves);
        embla_scatter_free(scatter);
        embla_gpt_free(whole);
        embla_gpt_free(halves);
    }
}

/* ---- files ---- */

static void check_resumed(const variant *v, scratch *s)
{
    const model_place first = place_of(s, "first"), last = place_of(s, "last");
    char half[SCRATCH_PATH], again[SCRATCH_PATH];
    (void)snprintf(half, sizeof half, "%s", scratch_path(s, "half.safetensors"));
    (void)snprintf(again, sizeof again, "%s", scratch_path(s, "again.safetensors"));
    embla_corpus *corpus = corpus_of(v);
    job whole = tokens_job(v, corpus);
    whole.model = first.folder;
    run_job(&whole, 3);
    for (int size = 1; size <= 4; size++) {
        job begin = tokens_job(v, corpus), end = begin;
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
    embla_corpus_free(corpus);
}

static void a_training_is_resumed_by_another_number_of_ranks(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    scratch s;
    scratch_new(&s);
    check_resumed(&variants[0], &s); /* a separate head */
    check_resumed(&variants[3], &s); /* n-gram rows too */
    embla_team_options saved;
    thread_result results[2];
    embla_corpus *corpus = corpus_of(&variants[3]);
    job j = job_of(&variants[3], corpus);
    j.load = scratch_path(&s, "half.safetensors");
    assert_ok(embla_team_describe_saved(j.load, &saved));
    assert_true(saved.shard_tokens && saved.shard_ngrams);
    j.team.shard_ngrams = true;
    thread_comm_try(2, run_rank, &j, results);
    assert_non_null(strstr(results[0].sentence, "the saved training run has shard_tokens 1, but "
                                                "this one has 0"));
    embla_corpus_free(corpus);
    (void)scratch_each(&s, remove_folder, ".safetensors.");
    remove_folder(&s, "first");
    remove_folder(&s, "last");
    scratch_free(&s);
}

/* A training of one process that has divided all its tables. */
static void open_alone(const variant *v, const embla_corpus *corpus, embla_gpt **gpt,
                       embla_train **train)
{
    const embla_team_options team = {.shard_ngrams = true, .shard_tokens = true};
    embla_gpt_shape shape = v->shape;
    shape.vocab = embla_corpus_vocab(corpus);
    assert_ok(embla_gpt_new(&shape, 1, 0.08, gpt));
    assert_ok(embla_train_new(*gpt, corpus, &v->options, train));
    assert_ok(embla_train_join(*train, embla_comm_self(), &team));
}

/* Loads a file in a new training. Returns its step. */
static int64_t step_of(const variant *v, const embla_corpus *corpus, const char *path)
{
    embla_gpt *gpt = NULL;
    embla_train *train = NULL;
    open_alone(v, corpus, &gpt, &train);
    assert_ok(embla_train_load(train, path));
    int64_t step = embla_train_steps(train);
    assert_ok(embla_train_step(train, NULL));
    embla_train_free(train);
    embla_gpt_free(gpt);
    return step;
}

/* A training is saved under the same name again and again. From the n-th call on, the disk is full:
 * then the save before is still there, with its rows. */
static void check_saved_again(scratch *s, const char *path)
{
    const variant *v = &variants[3];
    embla_corpus *corpus = corpus_of(v);
    embla_gpt *gpt = NULL;
    embla_train *train = NULL;
    size_t failed = 0;
    open_alone(v, corpus, &gpt, &train);
    assert_ok(embla_train_save(train, path, NULL));
    for (size_t n = 1;; n++) {
        int64_t before = embla_train_steps(train);
        assert_ok(embla_train_step(train, NULL));
        embla_io_fail(n, true, EMBLA_SYSTEM_NO_SPACE);
        embla_status status = embla_train_save(train, path, NULL);
        embla_io_fail(0, false, 0);
        int64_t found = step_of(v, corpus, path);
        if (status == EMBLA_OK) assert_int_equal(found, before + 1);
        if (status == EMBLA_OK) break;
        failed++;
        assert_true(found == before || found == before + 1); /* renamed, but not yet synced */
        assert_ok(embla_train_save(train, path, NULL));
        assert_int_equal(step_of(v, corpus, path), before + 1);
    }
    assert_true(failed > 20);
    assert_ok(embla_train_step(train, NULL));
    assert_ok(embla_train_save(train, path, NULL));
    assert_int_equal(scratch_count(s, NULL), 3); /* the file, and a folder for each table */
    /* rows that have not changed are not written again */
    size_t second = scratch_count(s, ".2.");
    assert_ok(embla_train_save(train, path, NULL));
    assert_int_equal(scratch_count(s, ".2."), second);
    assert_ok(embla_train_load(train, path));
    assert_ok(embla_train_save(train, path, "again"));
    assert_int_equal(scratch_count(s, ".2."), second);
    assert_int_equal(step_of(v, corpus, path), embla_train_steps(train));
    embla_train_free(train);
    embla_gpt_free(gpt);
    embla_corpus_free(corpus);
}

static void a_save_under_the_same_name_is_complete_or_unchanged(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    scratch s;
    scratch_new(&s);
    check_saved_again(&s, scratch_path(&s, "state.safetensors"));
    (void)scratch_each(&s, remove_folder, ".safetensors.");
    scratch_free(&s);
}

/* ---- failures ---- */

static embla_status draw_negatives(embla_train_options *options)
{
    options->negatives = 8;
    return EMBLA_OK;
}

static void what_cannot_be_divided_is_refused(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    embla_corpus *corpus = corpus_of(&variants[1]);
    job j = tokens_job(&variants[1], corpus);
    embla_gpt *gpt = NULL;
    embla_train *train = NULL;
    embla_gpt_shape shape = variants[1].shape;
    const embla_team_options team = {.shard_tokens = true};
    j.before = draw_negatives;
    j.odd = 1;
    refused(&j, 2, 1, EMBLA_ERR_UNSUPPORTED, "not against 8 drawn ones");
    shape.vocab = embla_corpus_vocab(corpus);
    assert_ok(embla_gpt_new(&shape, 1, 0.08, &gpt));
    assert_ok(embla_train_new(gpt, corpus, &variants[1].options, &train));
    assert_ok(embla_train_step(train, NULL));
    assert_status(embla_train_join(train, embla_comm_self(), &team), EMBLA_ERR_ARGUMENT);
    assert_error_has("before the first step, but the training has made 1");
    embla_train_free(train);
    embla_gpt_free(gpt);
    embla_corpus_free(corpus);
}

/* Runs before a rank's first step: its batch has a token that the model does not have. */
static void lose_batch(embla_train *t)
{
    t->ahead = t->step; /* the other buffer is used as the batch of this step */
    t->ahead_used = t->options.length;
    if (!t->tokens[1]) return;
    for (size_t i = 0; i < t->options.batch * t->options.length; i++) t->tokens[!t->now][i] = -7;
}

/* A rank that cannot look up its rows takes part all the same, so that no other waits for it. */
static void a_failure_of_one_rank_is_one_of_all(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    thread_result results[3];
    embla_corpus *corpus = corpus_of(&variants[3]); /* n-grams: it has two buffers for batches */
    job j = tokens_job(&variants[3], corpus);
    j.team.shard_ngrams = false;
    j.odd = 1;
    j.change = lose_batch;
    thread_comm_try(3, run_rank, &j, results);
    for (int r = 0; r < 3; r++) assert_true(results[r].status != EMBLA_OK);
    assert_non_null(strstr(results[1].sentence, "-7"));
    embla_corpus_free(corpus);
}

/* Each allocation of a rank that joins fails once; the training stays as it was. Then each one of
 * the first step; it is made again, with the same bits. */
static void a_rank_without_memory_changes_nothing(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    const variant *v = &variants[0];
    embla_corpus *corpus = corpus_of(v);
    embla_gpt_shape shape = v->shape;
    const embla_team_options team = {.shard_tokens = true};
    embla_checksum wanted = {0};
    size_t failed = 0;
    shape.vocab = embla_corpus_vocab(corpus);
    for (size_t n = 0; n < 40; n++) { /* 0 means that none fails */
        embla_gpt *gpt = NULL;
        embla_train *train = NULL;
        assert_ok(embla_gpt_new(&shape, 1, 0.08, &gpt));
        assert_ok(embla_train_new(gpt, corpus, &v->options, &train));
        size_t live = embla_mem_live();
        embla_mem_fail(n, false);
        embla_status status = embla_train_join(train, embla_comm_self(), &team);
        embla_mem_fail(0, false);
        if (status != EMBLA_OK) {
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_null(train->shared);
            assert_int_equal(embla_mem_live(), live);
            assert_non_null(embla_gpt_tokens(gpt));
            assert_ok(embla_train_join(train, embla_comm_self(), &team));
            failed++;
        }
        embla_mem_fail(n, false);
        status = embla_train_step(train, NULL);
        embla_mem_fail(0, false);
        if (status != EMBLA_OK) {
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_ok(embla_train_step(train, NULL));
            failed++;
        }
        assert_ok(embla_train_step(train, NULL)); /* it depends on the token rows */
        embla_checksum found = sum_of(train);
        if (n == 0) wanted = found;
        assert_memory_equal(&found, &wanted, sizeof found);
        embla_train_free(train);
        embla_gpt_free(gpt);
    }
    assert_true(failed > 15);
    embla_corpus_free(corpus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_ranks_gives_the_same_bits),
        cmocka_unit_test(losses_are_those_of_whole_tables),
        cmocka_unit_test(floats_differ_by_rounding_alone),
        cmocka_unit_test(the_model_has_no_token_rows),
        cmocka_unit_test(dividing_changes_no_number),
        cmocka_unit_test(two_halves_are_a_whole_pass),
        cmocka_unit_test(a_training_is_resumed_by_another_number_of_ranks),
        cmocka_unit_test(a_save_under_the_same_name_is_complete_or_unchanged),
        cmocka_unit_test(what_cannot_be_divided_is_refused),
        cmocka_unit_test(a_failure_of_one_rank_is_one_of_all),
        cmocka_unit_test(a_rank_without_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
