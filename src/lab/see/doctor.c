/* SPDX-License-Identifier: Apache-2.0 */
/* Do the parts of a checkpoint agree?
 *
 * Different programs write table, head, tokenizer and config, and most vocabulary errors are silent
 * mismatches between them. Each finding gives both numbers and a remedy. All texts are copied to
 * the handle: it does not need the checkpoint.
 */
#include "see/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/options.h"
#include "base/threads.h"

enum { FOUND = 1024 }; /* bytes of a sentence, with its 0 */

struct embla_doctor {
    embla_arena arena; /* all of it */
    embla_doctor_info info;
    embla_finding *findings;
    size_t count, room;
};

const char *embla_finding_level_name(embla_finding_level level)
{
    static const char *const names[] = {"fine", "skipped", "warning", "error"};
    size_t n = (size_t)level;
    return n < sizeof names / sizeof names[0] ? names[n] : NULL;
}

/* ---- findings ---- */

static void count_level(embla_doctor_info *info, embla_finding_level level)
{
    switch (level) {
    case EMBLA_FINDING_LEVEL_FINE:
        info->fine++;
        return;
    case EMBLA_FINDING_LEVEL_SKIPPED:
        info->skipped++;
        return;
    case EMBLA_FINDING_LEVEL_WARNING:
        info->warnings++;
        return;
    case EMBLA_FINDING_LEVEL_ERROR:
        info->errors++;
        return;
    }
}

/* Replaces a text, which may be NULL, by a copy. */
static embla_status keep_text(embla_doctor *d, const char **text)
{
    if (!*text) return EMBLA_OK;
    return embla_arena_text(&d->arena, *text, strlen(*text), text);
}

embla_status embla_doctor_found(embla_doctor_work *work, embla_finding finding, const char *format,
                                ...)
{
    embla_doctor *d = work->doctor;
    char text[FOUND];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    void *findings = d->findings;
    EMBLA_TRY(embla_arena_grow(&d->arena, sizeof finding, d->count, "findings of a checkpoint",
                               &findings, &d->room));
    d->findings = findings;
    finding.found = text;
    if (finding.rows == 0) finding.first_row = -1;
    EMBLA_TRY(keep_text(d, &finding.found));
    EMBLA_TRY(keep_text(d, &finding.remedy));
    EMBLA_TRY(keep_text(d, &finding.tensor));
    d->findings[d->count++] = finding;
    count_level(&d->info, finding.level);
    return EMBLA_OK;
}

/* ---- all of it ---- */

/* Notes are fine, except an unused config: then flag and sizes are unknown. */
static embla_status check_notes(embla_doctor_work *w)
{
    static const char unused[] = "config.json is not used";
    size_t count;
    const char *const *notes = embla_checkpoint_notes(w->checkpoint, &count);
    for (size_t n = 0; n < count; n++) {
        embla_finding finding = {.level = EMBLA_FINDING_LEVEL_FINE, .check = "note"};
        if (strncmp(notes[n], unused, sizeof unused - 1) == 0)
            finding =
                (embla_finding){.level = EMBLA_FINDING_LEVEL_WARNING,
                                .check = "config",
                                .remedy = "repair config.json: its values could not be compared"};
        EMBLA_TRY(embla_doctor_found(w, finding, "%s", notes[n]));
    }
    return EMBLA_OK;
}

static embla_status examine(embla_doctor_work *w)
{
    EMBLA_TRY(embla_doctor_model(w));
    EMBLA_TRY(embla_doctor_shapes(w));
    EMBLA_TRY(embla_doctor_values(w));
    return check_notes(w);
}

embla_status embla_doctor_new(const embla_checkpoint *checkpoint,
                              const embla_doctor_options *options, embla_doctor **out)
{
    EMBLA_TRY(embla_options_check(options));
    embla_arena arena = {0};
    embla_doctor_work w = {.checkpoint = checkpoint};
    if (options) w.options = *options;
    EMBLA_NEED(checkpoint);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_threads_check(w.options.threads));
    EMBLA_TRY(embla_arena_many(&arena, 1, sizeof *w.doctor, "findings of a checkpoint", &w.doctor));
    w.doctor->arena = arena;
    embla_status status = examine(&w);
    embla_vocab_free(w.vocab);
    if (status != EMBLA_OK) {
        embla_doctor_free(w.doctor);
        return status;
    }
    *out = w.doctor;
    return EMBLA_OK;
}

void embla_doctor_free(embla_doctor *doctor)
{
    if (!doctor) return;
    embla_arena arena = doctor->arena; /* the arena holds the struct that it is part of */
    embla_arena_free(&arena);
}

/* ---- results ---- */

embla_status embla_doctor_describe(const embla_doctor *doctor, embla_doctor_info *out)
{
    EMBLA_NEED(doctor);
    EMBLA_NEED(out);
    *out = doctor->info;
    return EMBLA_OK;
}

const embla_finding *embla_doctor_findings(const embla_doctor *doctor, size_t *count)
{
    *count = doctor ? doctor->count : 0;
    return doctor ? doctor->findings : NULL;
}
