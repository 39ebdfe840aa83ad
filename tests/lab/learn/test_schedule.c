/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of steps: both ends exact, the way between by the formula, past the end the last. */
#include <math.h>

#include "check.h"
#include "embla_learn.h"

static double rate_of(const embla_schedule *schedule, int64_t step)
{
    double rate = -1.0;
    assert_ok(embla_schedule_rate(schedule, step, &rate));
    return rate;
}

static void names(void **state)
{
    static const char *const wanted[] = {"constant", "linear", "cosine", "wsd"};
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        assert_string_equal(embla_schedule_name((embla_schedule_kind)kind), wanted[kind]);
    assert_null(embla_schedule_name((embla_schedule_kind)4));
    assert_null(embla_schedule_name((embla_schedule_kind)-1));
}

static void constant_needs_no_steps(void **state)
{
    embla_schedule s = {.rate = 0.1};
    (void)state;
    assert_true(rate_of(&s, 0) == 0.1);
    assert_true(rate_of(&s, INT64_MAX) == 0.1);
    s = (embla_schedule){.rate = 0.1, .final = 7.0, .steps = 3, .warm_up = 2};
    assert_true(rate_of(&s, 0) == 0.05);
    assert_true(rate_of(&s, 1) == 0.1);
    assert_true(rate_of(&s, 2) == 0.1);
    assert_true(rate_of(&s, 3) == 0.1);
    s = (embla_schedule){.rate = 0.1, .warm_up = 4}; /* without steps */
    assert_true(rate_of(&s, 0) == 0.025);
    assert_true(rate_of(&s, 9) == 0.1);
}

static void warm_up_is_a_line_to_rate(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        embla_schedule s = {.rate = 0.3, .final = 0.1, .steps = 100, .warm_up = 10};
        s.kind = (embla_schedule_kind)kind;
        s.decay = 20;
        for (int64_t step = 0; step < 10; step++)
            assert_near(rate_of(&s, step), 0.3 * (double)(step + 1) / 10.0, 1e-16);
        assert_true(rate_of(&s, 9) == 0.3);
        assert_true(rate_of(&s, 10) == 0.3);
        assert_true(rate_of(&s, 99) == (kind == 0 ? 0.3 : 0.1));
        assert_true(rate_of(&s, 100) == rate_of(&s, 99));
        assert_true(rate_of(&s, INT64_MAX) == rate_of(&s, 99));
    }
}

static void linear_and_cosine_come_down_to_final(void **state)
{
    embla_schedule line = {.rate = 0.3,
                           .final = 0.1,
                           .steps = 11,
                           .warm_up = 0,
                           .decay = 0,
                           .kind = EMBLA_SCHEDULE_LINEAR};
    embla_schedule cosine = {.rate = 0.3,
                             .final = 0.1,
                             .steps = 11,
                             .warm_up = 0,
                             .decay = 0,
                             .kind = EMBLA_SCHEDULE_COSINE};
    (void)state;
    assert_true(rate_of(&line, 0) == 0.3 && rate_of(&cosine, 0) == 0.3);
    assert_true(rate_of(&line, 10) == 0.1 && rate_of(&cosine, 10) == 0.1);
    for (int64_t step = 0; step < 11; step++) {
        double share = (double)step / 10.0;
        assert_near(rate_of(&line, step), 0.3 - 0.2 * share, 1e-15);
        assert_near(rate_of(&cosine, step), 0.1 + 0.1 * (1.0 + cos(acos(-1.0) * share)), 1e-15);
    }
    line.warm_up = cosine.warm_up = 3; /* the line begins after it */
    assert_near(rate_of(&line, 4), 0.3 - 0.2 / 7.0, 1e-15);
    assert_near(rate_of(&cosine, 4), 0.1 + 0.1 * (1.0 + cos(acos(-1.0) / 7.0)), 1e-15);
    line.final = 0.9; /* up is fine too */
    assert_true(rate_of(&line, 10) == 0.9);
}

static void wsd_is_stable_then_comes_down(void **state)
{
    embla_schedule s = {.rate = 0.4,
                        .final = 0.0,
                        .steps = 20,
                        .warm_up = 5,
                        .decay = 4,
                        .kind = EMBLA_SCHEDULE_WSD};
    (void)state;
    for (int64_t step = 5; step < 16; step++) assert_true(rate_of(&s, step) == 0.4);
    assert_near(rate_of(&s, 16), 0.3, 1e-16);
    assert_near(rate_of(&s, 17), 0.2, 1e-16);
    assert_near(rate_of(&s, 18), 0.1, 1e-16);
    assert_true(rate_of(&s, 19) == 0.0);
    assert_true(rate_of(&s, 20) == 0.0);
    s.decay = 0; /* never */
    assert_true(rate_of(&s, 19) == 0.4);
    s.decay = 15; /* at once */
    assert_near(rate_of(&s, 5), 0.4 * 14.0 / 15.0, 1e-16);
    s.decay = 1;
    assert_true(rate_of(&s, 18) == 0.4 && rate_of(&s, 19) == 0.0);
}

static void a_single_step_has_rate(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        embla_schedule s = {.rate = 0.3, .steps = 1, .kind = (embla_schedule_kind)kind};
        assert_true(rate_of(&s, 0) == 0.3);
        s.steps = s.warm_up = 4; /* all of it warm-up */
        assert_true(rate_of(&s, 3) == 0.3 && rate_of(&s, 4) == 0.3);
        assert_near(rate_of(&s, 1), 0.15, 1e-16);
    }
}

static void huge_numbers_of_steps(void **state)
{
    embla_schedule s = {.rate = 1.0,
                        .final = 0.5,
                        .steps = INT64_MAX,
                        .warm_up = 0,
                        .decay = 0,
                        .kind = EMBLA_SCHEDULE_LINEAR};
    (void)state;
    assert_true(rate_of(&s, 0) == 1.0);
    assert_true(rate_of(&s, INT64_MAX) == 0.5);
    assert_near(rate_of(&s, INT64_MAX / 2), 0.75, 1e-12);
    s.kind = EMBLA_SCHEDULE_WSD;
    s.warm_up = INT64_MAX - 1;
    s.decay = 1;
    assert_near(rate_of(&s, INT64_MAX / 2), 0.5, 1e-12);
    assert_true(rate_of(&s, INT64_MAX) == 0.5);
}

static void what_cannot_be_is_refused(void **state)
{
    static const struct {
        embla_schedule schedule;
        int64_t step;
        const char *text;
    } wrong[] = {
        {{.rate = NAN}, 0, "the rate of a schedule is nan"},
        {{.rate = INFINITY}, 0, "rate of a schedule is inf"},
        {{.rate = -1.0}, 0, "rate of a schedule is -1;"},
        {{.final = -2.0}, 0, "final of a schedule is -2;"},
        {{.final = NAN}, 0, "final of a schedule is nan"},
        {{.kind = (embla_schedule_kind)4}, 0, "kind 4"},
        {{.steps = -1}, 0, "-1 steps"},
        {{.kind = EMBLA_SCHEDULE_LINEAR}, 0, "linear schedule of 0 steps"},
        {{.kind = EMBLA_SCHEDULE_COSINE, .steps = -5}, 0, "cosine schedule of -5"},
        {{.kind = EMBLA_SCHEDULE_WSD}, 0, "wsd schedule of 0"},
        {{.warm_up = -3}, 0, "-3 warm-up steps"},
        {{.warm_up = 3, .steps = 2}, 0, "3 warm-up steps in a schedule of 2"},
        {{.kind = EMBLA_SCHEDULE_LINEAR, .warm_up = 3, .steps = 2}, 0, "3 warm-up steps"},
        {{.kind = EMBLA_SCHEDULE_WSD, .warm_up = 3, .steps = 5, .decay = 3},
         0,
         "3 decay steps, but only 2"},
        {{.kind = EMBLA_SCHEDULE_WSD, .steps = 5, .decay = -1}, 0, "-1 decay steps"},
        {{.rate = 1.0}, -1, "step is -1"},
    };
    double out = 77.0;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_status(embla_schedule_rate(&wrong[i].schedule, wrong[i].step, &out),
                      EMBLA_ERR_ARGUMENT);
        assert_error_has(wrong[i].text);
        assert_true(out == 77.0);
    }
    assert_status(embla_schedule_rate(NULL, 0, &out), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_schedule_rate: schedule is NULL");
    assert_status(embla_schedule_rate(&wrong[0].schedule, 0, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("out is NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(constant_needs_no_steps),
        cmocka_unit_test(warm_up_is_a_line_to_rate),
        cmocka_unit_test(linear_and_cosine_come_down_to_final),
        cmocka_unit_test(wsd_is_stable_then_comes_down),
        cmocka_unit_test(a_single_step_has_rate),
        cmocka_unit_test(huge_numbers_of_steps),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
