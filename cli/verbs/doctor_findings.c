/* SPDX-License-Identifier: Apache-2.0 */
/* The list of findings, and helpers of the checks. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/visible.h"
#include "verbs/doctor.h"

void cli_found(cli_doctor *d, cli_level level, const char *check, const char *remedy,
               const char *format, ...)
{
    va_list list;
    if (d->count == d->room) {
        size_t room = d->room > 0 ? 2 * d->room : 16;
        cli_finding *more = realloc(d->findings, room * sizeof *more);
        if (!more) {
            d->no_memory = true;
            return;
        }
        d->findings = more;
        d->room = room;
    }
    cli_finding *finding = &d->findings[d->count++];
    *finding = (cli_finding){.level = level, .check = check, .remedy = remedy};
    va_start(list, format);
    vsnprintf(finding->found, sizeof finding->found, format, list);
    va_end(list);
    d->of_level[level]++;
}

bool cli_doctor_next(const cli_doctor *d, embla_role role, size_t *n, embla_tensor *out)
{
    size_t count;
    const embla_tensor *tensors = embla_checkpoint_tensors(d->model.checkpoint, &count);
    while (*n < count) {
        const embla_tensor *tensor = &tensors[(*n)++];
        if (tensor->role != role) continue;
        *out = *tensor;
        return true;
    }
    return false;
}

const char *cli_doctor_tokens(const cli_doctor *d, int64_t first, int64_t count, char text[640])
{
    size_t used = 0;
    for (int64_t i = 0; i < count && i < 10 && used < 560; i++) {
        char shown[CLI_WORD_TEXT] = "";
        size_t length = 0;
        const char *word = cli_word_of(d->model.vocab, first + i, &length);
        if (word) (void)cli_word_show(word, length, false, CLI_WORD_COLUMNS, shown);
        const char *quote =
            word && shown[0] != '"' ? "\"" : ""; /* a word with a space is already quoted */
        used +=
            (size_t)snprintf(text + used, 640 - used, "%s%" PRId64 "%s%s%s%s", i > 0 ? ", " : "",
                             first + i, word ? " " : "", quote, shown, quote);
    }
    if (count > 10) snprintf(text + used, 640 - used, " ..");
    return text;
}
