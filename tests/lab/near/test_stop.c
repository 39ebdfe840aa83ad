/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on several threads that their caller can stop: searches, tokens and vectors of texts. Each
 * is made larger until it lasts long enough for the progress function to be called, so the speed of
 * the machine does not matter.
 */
#include "base/stop.h"

#include <pthread.h>
#include <stdio.h>

#include "embla_search.h"
#include "near/near.h"
#include "scratch.h"

enum { DIM = 64, ROWS = 4000, LARGEST = 1 << 22 };

/* ---- the progress function ---- */

typedef struct {
    int calls, most; /* the call that stops; 0 means none */
    pthread_t caller;
    char what[16];
    int64_t done;
} seen;

static bool see(void *context, const char *what, int64_t done, int64_t total)
{
    seen *s = context;
    assert_true(pthread_equal(s->caller, pthread_self()));
    if (strcmp(s->what, what) != 0) s->done = 0;
    (void)snprintf(s->what, sizeof s->what, "%s", what);
    assert_true(done >= s->done && done <= total && total > 0);
    s->done = done;
    return ++s->calls != s->most;
}

static void test_only_the_caller_asks(void **state)
{
    seen s = {.most = 2, .caller = pthread_self()};
    embla_watch watch;
    (void)state;
    embla_watch_begin(&watch, see, &s, "rows");
    watch.total = 10;
    assert_false(embla_watch_step(&watch, true, 1)); /* too early */
    assert_int_equal(s.calls, 0);
    watch.next = 0;
    assert_false(embla_watch_step(&watch, false, 2));
    assert_int_equal(s.calls, 0);
    assert_false(embla_watch_step(&watch, true, 3));
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.done, 6);
    assert_ok(embla_watch_say(&watch));
    watch.next = 0;
    assert_true(embla_watch_step(&watch, true, 1));
    assert_true(embla_watch_step(&watch, false, 0)); /* the others see it */
    assert_status(embla_watch_say(&watch), EMBLA_ERR_STOPPED);
    assert_string_equal(embla_error(), "stopped by the caller: rows, 7 of 10 done");
    watch.next = 0;
    assert_true(embla_watch_step(&watch, true, 1)); /* and it is not asked again */
    assert_int_equal(s.calls, 2);
    assert_false(embla_watch_step(NULL, true, 1));
    assert_ok(embla_watch_say(NULL));
}

/* ---- the calls ---- */

static const char sentence[] = "the cat and the dog see 12 ships, not Xylophones! ";

typedef struct {
    scratch s;
    embla_table *table;
    embla_encoder *encoder;
    embla_tokenized *tokenized;
    embla_index *index;
    float *numbers; /* queries, or vectors of texts */
    const char **texts;
    size_t *lengths;
    char *text; /* sentences */
    embla_neighbour *found;
} place;

static void *many(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    assert_non_null(memory);
    return memory;
}

static void put_files(place *p)
{
    char text[8192], lines[4096] = "";
    int used = 0;
    uint64_t seed = 3;
    const char *const words[] = {"the", "cat", "and", "dog", "see", "ships"};
    for (size_t w = 0; w < 6; w++) {
        used += snprintf(text + used, sizeof text - (size_t)used, "%s", words[w]);
        for (size_t k = 0; k < DIM; k++)
            used += snprintf(text + used, sizeof text - (size_t)used, " %.4f", check_unit(&seed));
        text[used++] = '\n';
    }
    scratch_write(scratch_path(&p->s, "words.vec"), text, (size_t)used);
    used = 0;
    for (int i = 0; i < 64; i++)
        used += snprintf(lines + used, sizeof lines - (size_t)used, "the cat %d and the dog\n", i);
    scratch_write(scratch_path(&p->s, "corpus.txt"), lines, (size_t)used);
}

static int begin(void **state)
{
    place *p = many(1, sizeof *p);
    scratch_new(&p->s);
    put_files(p);
    assert_ok(embla_encoder_open(scratch_path(&p->s, "words.vec"), NULL, &p->encoder));
    assert_ok(embla_tokenized_new(embla_encoder_tokenizer(p->encoder), &p->tokenized));
    assert_ok(embla_index_new(p->encoder, scratch_path(&p->s, "corpus.txt"), NULL, &p->index));
    p->table = check_table(EMBLA_F32, ROWS, DIM, 1);
    *state = p;
    return 0;
}

static void make_room(place *p, size_t count)
{
    const size_t length = sizeof sentence - 1;
    p->numbers = many(count * DIM, sizeof *p->numbers);
    p->found = many(count, sizeof *p->found);
    p->texts = many(count, sizeof *p->texts);
    p->lengths = many(count, sizeof *p->lengths);
    p->text = many(count, length);
    check_fill(2, count * DIM, p->numbers);
    for (size_t i = 0; i < count; i++) {
        memcpy(p->text + i * length, sentence, length);
        p->texts[i] = p->text + i * length;
        p->lengths[i] = length;
    }
}

static void free_room(place *p)
{
    free(p->numbers);
    free(p->found);
    free(p->texts);
    free(p->lengths);
    free(p->text);
}

static int end(void **state)
{
    place *p = *state;
    embla_table_free(p->table);
    embla_index_free(p->index);
    embla_tokenized_free(p->tokenized);
    embla_encoder_free(p->encoder);
    scratch_free(&p->s);
    free(p);
    return 0;
}

typedef embla_status call(place *p, size_t count, int threads, seen *s);

static embla_status near_products(place *p, size_t count, int threads, seen *s)
{
    const embla_near_options o = {.k = 1, .threads = threads, .progress = see, .context = s};
    return embla_near(p->table, p->numbers, count, &o, p->found, NULL);
}

static embla_status near_scans(place *p, size_t count, int threads, seen *s)
{
    const embla_near_options o = {.k = 1, .threads = threads, .progress = see, .context = s};
    return embla_near_by(EMBLA_NEAR_BY_SCAN, p->table, p->numbers, count, &o, p->found, NULL, NULL);
}

static embla_status one_text(place *p, size_t count, int threads, seen *s)
{
    const embla_tokenize_options o = {.threads = threads, .progress = see, .context = s};
    return embla_tokenize(p->tokenized, p->text, count * (sizeof sentence - 1), &o);
}

static embla_status batch(place *p, size_t count, int threads, seen *s)
{
    const embla_texts some = {.texts = p->texts, .lengths = p->lengths, .count = count};
    const embla_tokenize_options o = {.threads = threads, .progress = see, .context = s};
    return embla_tokenize_batch(p->tokenized, &some, &o);
}

static embla_status vectors(place *p, size_t count, int threads, seen *s)
{
    const embla_texts some = {.texts = p->texts, .lengths = p->lengths, .count = count};
    const embla_encode_options o = {.threads = threads, .progress = see, .context = s};
    return embla_encoder_encode(p->encoder, &some, &o, p->numbers, NULL);
}

static embla_status search(place *p, size_t count, int threads, seen *s)
{
    const embla_texts some = {.texts = p->texts, .lengths = p->lengths, .count = count};
    const embla_search_options o = {.threads = threads, .progress = see, .context = s};
    return embla_index_search(p->index, &some, 1, &o, p->found, NULL);
}

static call *const calls[] = {near_products, near_scans, one_text, batch, vectors, search};
enum { CALLS = sizeof calls / sizeof calls[0] };

/* The status of a call that is long enough for its function to be called `most` times or, if most
 * is 0, at least once. */
static embla_status run(place *p, call *c, int threads, int most, seen *s)
{
    embla_status status = EMBLA_OK;
    for (size_t count = 1024; count <= LARGEST; count *= 2) {
        *s = (seen){.most = most, .caller = pthread_self()};
        make_room(p, count);
        status = c(p, count, threads, s);
        free_room(p);
        if (s->calls > 0 && s->calls >= most) return status;
        assert_ok(status);
    }
    fail_msg("%d calls of the progress function, even with %d queries or texts", s->calls, LARGEST);
    return status;
}

static void test_a_call_stops(void **state)
{
    seen s;
    for (size_t i = 0; i < CALLS; i++)
        for (int threads = 1; threads <= 2; threads++)
            for (int most = 1; most <= 2; most++) {
                assert_status(run(*state, calls[i], threads, most, &s), EMBLA_ERR_STOPPED);
                assert_int_equal(s.calls, most);
                assert_non_null(strstr(embla_error(), "stopped by the caller: "));
            }
    place *p = *state;
    assert_int_equal(embla_tokenized_count(p->tokenized), 0); /* no partial tokens */
}

static void test_a_call_that_goes_on_ends_well(void **state)
{
    seen s;
    for (size_t i = 0; i < CALLS; i++) assert_ok(run(*state, calls[i], 2, 0, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_caller_asks),
        cmocka_unit_test_setup_teardown(test_a_call_stops, begin, end),
        cmocka_unit_test_setup_teardown(test_a_call_that_goes_on_ends_well, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
