/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate of a step is a function of the step's number, so a resumed training needs only
 * that number.
 *
 * After warm-up the rate is a mix of rate and final: rate * (1 - share) + final * share. This form
 * is exact at both ends: a share of 0 gives rate, a share of 1 gives final.
 */
#include <math.h>

#include "base/elementary.h"
#include "base/options.h"
#include "base/status.h"
#include "embla_learn.h"

static const char *const names[] = {"constant", "linear", "cosine", "wsd"};
enum { KINDS = sizeof names / sizeof names[0] };

const char *embla_schedule_name(embla_schedule_kind kind)
{
    return (unsigned)kind < KINDS ? names[kind] : NULL;
}

static embla_status check_rate(const char *what, double rate)
{
    if (!isfinite(rate) || rate < 0.0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the %s of a schedule is %g; it must be finite and 0 or greater", what,
                          rate);
    return EMBLA_OK;
}

static embla_status check_steps(const embla_schedule *s)
{
    bool needed = s->kind != EMBLA_SCHEDULE_CONSTANT;
    if (s->steps < (needed ? 1 : 0))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a %s schedule of %" PRId64 " steps; it needs at least %d",
                          names[s->kind], s->steps, needed ? 1 : 0);
    if (s->warm_up < 0 || ((needed || s->steps > 0) && s->warm_up > s->steps))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%" PRId64 " warm-up steps in a schedule of %" PRId64 " steps",
                          s->warm_up, s->steps);
    if (s->kind == EMBLA_SCHEDULE_WSD && (s->decay < 0 || s->decay > s->steps - s->warm_up))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%" PRId64 " decay steps, but only %" PRId64 " are left after warm-up",
                          s->decay, s->steps - s->warm_up);
    return EMBLA_OK;
}

static embla_status check(const embla_schedule *s, int64_t step)
{
    if ((unsigned)s->kind >= KINDS)
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown schedule kind %d; kinds are 0 to %d",
                          (int)s->kind, KINDS - 1);
    EMBLA_TRY(check_rate("rate", s->rate));
    EMBLA_TRY(check_rate("final", s->final));
    EMBLA_TRY(check_steps(s));
    if (step < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "step is %" PRId64 "; it must be 0 or greater", step);
    return EMBLA_OK;
}

/* How far a step after warm-up is between rate and final, 0 .. 1. */
static double share_of(const embla_schedule *s, int64_t step)
{
    if (s->kind == EMBLA_SCHEDULE_CONSTANT) return 0.0;
    if (s->kind == EMBLA_SCHEDULE_WSD) { /* the decay begins at the last stable step */
        int64_t stable = s->steps - s->decay;
        return step < stable ? 0.0 : (double)(step - stable + 1) / (double)s->decay;
    }
    /* The first step after warm-up has rate, the last one final. If they are the same step, it has
     * rate. */
    int64_t line = s->steps - 1 - s->warm_up;
    double share = line > 0 ? (double)(step - s->warm_up) / (double)line : 0.0;
    return s->kind == EMBLA_SCHEDULE_COSINE
               ? 0.5 * (1.0 - embla_cos(3.14159265358979323846 * share))
               : share;
}

embla_status embla_schedule_rate(const embla_schedule *schedule, int64_t step, double *out)
{
    EMBLA_TRY(embla_options_check(schedule));
    EMBLA_NEED(schedule);
    EMBLA_NEED(out);
    EMBLA_TRY(check(schedule, step));
    const embla_schedule *s = schedule;
    if (s->kind != EMBLA_SCHEDULE_CONSTANT && step >= s->steps) step = s->steps - 1;
    if (step < s->warm_up) {
        *out = s->rate * ((double)(step + 1) / (double)s->warm_up);
        return EMBLA_OK;
    }
    double share = share_of(s, step);
    *out = s->rate * (1.0 - share) + s->final * share;
    return EMBLA_OK;
}
