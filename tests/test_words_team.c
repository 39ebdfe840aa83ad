/* SPDX-License-Identifier: Apache-2.0 */
/* Words that several ranks learn together get the bits of one process alone: rows, losses and saved
 * states. Ranks are threads here (thread_comm.h). What does not fit together is refused on all
 * ranks, and a failure of one is a failure of all.
 */
#include <stdio.h>

#include "check.h"
#include "scratch.h"
#include "slow.h"
#include "thread_comm.h"

#include "base/checksum.h"
#include "base/mem.h"
#include "wordvec/wordvec.h"

/* ---- texts ---- */

typedef struct {
    scratch s;
    char text[SCRATCH_PATH], other[SCRATCH_PATH], state[SCRATCH_PATH];
} place;

/* Lines of words, of which low numbers are frequent. */
static void write_words(const char *path, size_t count, uint64_t seed)
{
    char *bytes = malloc(16 * count);
    size_t used = 0;
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++) {
        size_t most = 1 + (size_t)check_below(&seed, 500);
        int end = check_below(&seed, 12) == 0 ? '\n' : ' ';
        used += (size_t)sprintf(bytes + used, "w%zu%c", (size_t)check_below(&seed, most), end);
    }
    scratch_write(path, bytes, used);
    free(bytes);
}

static void new_place(place *p)
{
    scratch_new(&p->s);
    (void)snprintf(p->text, sizeof p->text, "%s", scratch_path(&p->s, "text"));
    (void)snprintf(p->other, sizeof p->other, "%s", scratch_path(&p->s, "other"));
    (void)snprintf(p->state, sizeof p->state, "%s", scratch_path(&p->s, "state"));
    write_words(p->text, SLOW_BUILD ? 8000 : 30000, 5);
    write_words(p->other, 8000, 6);
}

/* The options whose code differs. */
static const embla_wordvec_options kinds[] = {
    {.dim = 20, .window = 3, .epochs = 2, .sample = -1, .least = 1, .seed = 1},
    {.dim = 33, .window = 5, .epochs = 2, .least = 2, .seed = 2, .kind = EMBLA_WORDVEC_CBOW},
    {.dim = 16, .epochs = 1, .least = 1, .gram_least = 2, .gram_most = 4, .negatives = 9},
    {.dim = 16,
     .epochs = 1,
     .least = 1,
     .gram_least = 2,
     .gram_most = 3,
     .kind = EMBLA_WORDVEC_CBOW}};

/* ---- a job ---- */

/* What ranks do, and what they find. */
typedef struct {
    const place *p;
    embla_wordvec_options options;
    int64_t steps;   /* to make; 0 means all */
    bool load, save; /* begin from the saved state; save one at the end */
    int odd;         /* a rank that has something else; -1 means none */
    bool other_text, other_step, other_rows, short_text;
    embla_checksum rows[THREAD_RANKS_MOST];
    double losses;  /* the sum of rank 0 */
    int64_t tokens; /* likewise */
} job;

static embla_checksum sum_of(const embla_wordvec *w)
{
    size_t row = w->shop.stride * sizeof(float);
    embla_checksum_state state;
    embla_checksum_begin(&state);
    embla_checksum_add(&state, w->shop.input, (size_t)w->lexicon.count * row);
    embla_checksum_add(&state, w->shop.output, (size_t)w->lexicon.count * row);
    if (w->shop.grams) embla_checksum_add(&state, w->grams.values, (size_t)w->grams.count * row);
    return embla_checksum_end(&state);
}

static embla_status make_steps(const embla_comm *comm, job *j, embla_wordvec *w)
{
    embla_wordvec_report r;
    double losses = 0;
    int64_t tokens = 0;
    EMBLA_TRY(embla_wordvec_progress(w, &r));
    while (r.step < r.steps && (j->steps == 0 || r.step < j->steps)) {
        if (j->odd == comm->rank && j->short_text && truncate(j->p->text, 10) != 0)
            return EMBLA_ERR_IO;
        if (j->odd == comm->rank && j->other_rows) w->shop.output[0] += 1;
        EMBLA_TRY(embla_wordvec_step(w, &r));
        losses += r.loss;
        tokens += r.tokens;
    }
    if (comm->rank == 0) {
        j->losses = losses;
        j->tokens = tokens;
    }
    j->rows[comm->rank] = sum_of(w);
    return j->save && comm->rank == 0 ? embla_wordvec_save(w, j->p->state) : EMBLA_OK;
}

static embla_status body(const embla_comm *comm, void *context)
{
    job *j = context;
    bool odd = j->odd == comm->rank;
    embla_wordvec *w = NULL;
    EMBLA_TRY(embla_wordvec_new(odd && j->other_text ? j->p->other : j->p->text, &j->options, &w));
    embla_status status = j->load ? embla_wordvec_load(w, j->p->state) : EMBLA_OK;
    if (status == EMBLA_OK && odd && j->other_step) status = embla_wordvec_step(w, NULL);
    if (status == EMBLA_OK) status = embla_wordvec_join(w, comm);
    if (status == EMBLA_OK) status = make_steps(comm, j, w);
    embla_wordvec_free(w);
    return status;
}

/* ---- the same bits ---- */

static void check_same(const job *found, int ranks, const job *wanted)
{
    for (int r = 0; r < ranks; r++)
        assert_memory_equal(&found->rows[r], &wanted->rows[0], sizeof wanted->rows[0]);
    assert_true(found->losses == wanted->losses);
    assert_int_equal(found->tokens, wanted->tokens);
}

/* Ranks of which per_host share memory. */
static void check_team(job *j, int ranks, int per_host, const job *alone)
{
    thread_result results[THREAD_RANKS_MOST];
    memset(j->rows, 0, sizeof j->rows);
    thread_comm_hosts(ranks, per_host, body, j, results);
    thread_comm_check(ranks, results);
    check_same(j, ranks, alone);
}

static void ranks_do_not_matter(void **state)
{
    static const int numbers[] = {2, 3, 5, 8};
    place p;
    (void)state;
    new_place(&p);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        job alone = {.p = &p, .options = kinds[i], .odd = -1, .steps = SLOW_BUILD ? 20 : 0};
        thread_comm_run(1, body, &alone);
        assert_true(alone.tokens > 0);
        for (size_t n = 0; n < COUNT_OF(numbers); n++) {
            job team = alone;
            team.options.threads = 1 + (int)n % 2;
            check_team(&team, numbers[n], numbers[n], &alone);
            if (n < 2) check_team(&team, numbers[n], 1, &alone); /* rows are sent */
            if (n == 2) check_team(&team, numbers[n], 3, &alone);
        }
    }
    scratch_free(&p.s);
}

static void another_number_of_ranks_continues(void **state)
{
    place p;
    (void)state;
    new_place(&p);
    for (size_t i = 1; i < 3; i++) {
        job whole = {.p = &p, .options = kinds[i], .odd = -1, .steps = 30};
        thread_comm_run(1, body, &whole);
        job half = {.p = &p, .options = kinds[i], .odd = -1, .steps = 11, .save = true};
        thread_comm_run(3, body, &half);
        job rest = {.p = &p, .options = kinds[i], .odd = -1, .steps = 30, .load = true};
        thread_comm_run(2, body, &rest);
        for (int r = 0; r < 2; r++)
            assert_memory_equal(&rest.rows[r], &whole.rows[0], sizeof whole.rows[0]);
    }
    scratch_free(&p.s);
}

/* ---- failures ---- */

/* All ranks fail, and the ranks' sentences have `part`. Each is on a host of its own: ranks that
 * share rows cannot have different ones. */
static void check_refused(job *j, int ranks, embla_status status, const char *part)
{
    thread_result results[THREAD_RANKS_MOST];
    thread_comm_hosts(ranks, 1, body, j, results);
    for (int r = 0; r < ranks; r++) {
        assert_int_equal(results[r].status, status);
        if (!strstr(results[r].sentence, part)) fail_msg("rank %d: %s", r, results[r].sentence);
    }
}

static void what_differs_is_refused(void **state)
{
    place p;
    (void)state;
    new_place(&p);
    job j = {.p = &p, .options = kinds[0], .odd = 1, .other_text = true};
    check_refused(&j, 3, EMBLA_ERR_ARGUMENT, "the 3 ranks have different texts, options or steps");
    j = (job){.p = &p, .options = kinds[0], .odd = 2, .other_step = true};
    check_refused(&j, 3, EMBLA_ERR_ARGUMENT, "the 3 ranks have different texts, options or steps");
    j = (job){.p = &p, .options = kinds[0], .odd = 0, .other_rows = true};
    check_refused(&j, 2, EMBLA_ERR_ARGUMENT, "the ranks have different rows before step 0");
    j = (job){.p = &p, .options = kinds[0], .odd = -1};
    j.options.hogwild = true;
    check_refused(&j, 2, EMBLA_ERR_UNSUPPORTED,
                  "hogwild works in one process only, and there are 2");
    j.options.hogwild = false;
    check_refused(&j, 9, EMBLA_ERR_ARGUMENT, "9 ranks, but a step of words has 8 parts");
    scratch_free(&p.s);
}

static void a_text_that_shrinks_fails_on_all(void **state)
{
    place p;
    (void)state;
    new_place(&p);
    job j = {.p = &p, .options = kinds[0], .odd = 1, .short_text = true, .steps = 2};
    check_refused(&j, 3, EMBLA_ERR_IO, "");
    scratch_free(&p.s);
}

/* Each allocation of a rank that joins fails once; the words stay as they were. */
static void a_rank_without_memory_does_not_join(void **state)
{
    place p;
    embla_wordvec *w = NULL;
    size_t failed = 0;
    (void)state;
    new_place(&p);
    assert_ok(embla_wordvec_new(p.text, &kinds[2], &w));
    assert_status(embla_wordvec_join(NULL, embla_comm_self()), EMBLA_ERR_ARGUMENT);
    assert_status(embla_wordvec_join(w, NULL), EMBLA_ERR_ARGUMENT);
    for (size_t n = 1, live = embla_mem_live();; n++) {
        embla_mem_fail(n, false);
        embla_status status = embla_wordvec_join(w, embla_comm_self());
        embla_mem_fail(0, false);
        assert_int_equal(embla_mem_live(), live);
        if (status == EMBLA_OK) break;
        assert_status(status, EMBLA_ERR_MEMORY);
        failed++;
    }
    assert_true(failed >= 2);
    assert_ok(embla_wordvec_step(w, NULL));
    embla_wordvec_free(w);
    scratch_free(&p.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_do_not_matter),
                                       cmocka_unit_test(another_number_of_ranks_continues),
                                       cmocka_unit_test(what_differs_is_refused),
                                       cmocka_unit_test(a_text_that_shrinks_fails_on_all),
                                       cmocka_unit_test(a_rank_without_memory_does_not_join)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
