/* SPDX-License-Identifier: Apache-2.0 */
/* What a training changes and what it leaves as it is.
 *
 * The block of weights is divided into runs of numbers that are treated alike: with weight decay,
 * without, or frozen. A frozen run is neither updated nor decayed, so it keeps its bits. Its
 * gradients are computed (those of other tensors need them on the way), but are no part of the
 * gradient norm.
 */
#include "train/train.h"

enum {
    FREEZE_ALL = EMBLA_FREEZE_TOKENS | EMBLA_FREEZE_POSITIONS | EMBLA_FREEZE_TRUNK,
};

/* The bit that freezes a tensor; 0 for a separate head and for the matrices of n-grams. */
static unsigned bit_of(const embla_gpt *gpt, size_t slot)
{
    if (slot == EMBLA_GPT_WTE) return EMBLA_FREEZE_TOKENS;
    if (slot == EMBLA_GPT_WPE) return EMBLA_FREEZE_POSITIONS;
    if (slot == EMBLA_GPT_LM_HEAD || slot >= embla_gpt_ngram_slot(&gpt->shape, 0)) return 0;
    return EMBLA_FREEZE_TRUNK;
}

static bool is_frozen(const embla_gpt *gpt, const embla_train_options *o, const embla_gpt_part *p)
{
    bool table = p->slot == EMBLA_GPT_WTE || p->slot == EMBLA_GPT_LM_HEAD;
    return (o->freeze & bit_of(gpt, p->slot)) != 0 || (table && o->freeze_below >= p->rows);
}

embla_status embla_train_freeze_check(const embla_gpt *gpt, const embla_train_options *o)
{
    if ((o->freeze & ~(unsigned)FREEZE_ALL) != 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "freeze is %u; it must be from 0 to %d", o->freeze,
                          (int)FREEZE_ALL);
    if (o->freeze_below < 0 || o->freeze_below > gpt->shape.vocab)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "freeze_below is %" PRId64 "; it must be from 0 to %" PRId64
                          ", the rows of the table",
                          o->freeze_below, gpt->shape.vocab);
    if ((o->freeze & EMBLA_FREEZE_POSITIONS) && gpt->part_of[EMBLA_GPT_WPE] < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the model has no learned positions to freeze; its positions are: %s",
                          embla_gpt_positions[gpt->shape.position_kind]);
    for (size_t i = 0; i < gpt->part_count; i++)
        if (!is_frozen(gpt, o, &gpt->parts[i])) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "all %zu tensors of the model are frozen, so nothing would be learned",
                      gpt->part_count);
}

/* Ends the last run at `end`, or adds one if the numbers before `end` are treated differently. */
static void add_run(embla_train *t, size_t end, bool decays, bool frozen)
{
    const embla_train_run *last = &t->runs[t->run_count > 0 ? t->run_count - 1 : 0];
    bool same = t->run_count > 0 && last->decays == decays && last->frozen == frozen;
    if (!same) t->run_count++;
    t->runs[t->run_count - 1] = (embla_train_run){end, decays, frozen};
}

/* A gap between tensors belongs to the tensor before it. */
void embla_train_divide(embla_train *t)
{
    const embla_gpt *gpt = t->gpt;
    const embla_train_options *o = &t->options;
    for (size_t i = 0; i < gpt->part_count; i++) {
        const embla_gpt_part *part = &gpt->parts[i];
        bool frozen = is_frozen(gpt, o, part);
        bool table = part->slot == EMBLA_GPT_WTE || part->slot == EMBLA_GPT_LM_HEAD;
        if (table && !frozen && o->freeze_below > 0)
            add_run(t, part->at + (size_t)o->freeze_below * part->dim, part->decays, true);
        add_run(t, i + 1 < gpt->part_count ? gpt->parts[i + 1].at : gpt->numbers, part->decays,
                frozen);
    }
}
