/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of cases by name, and random tokens. */
#include "bench/cases.h"

#include <stdio.h>
#include <stdlib.h>

int bench_begin(const char *bench, const bench_options *options, bench_cases *out)
{
    int wrong = 0;
    *out = (bench_cases){.bench = bench, .options = options};
    if (options->case_regex)
        wrong = regcomp(&out->regex, options->case_regex, REG_EXTENDED | REG_NOSUB);
    if (!wrong) return 0;
    char why[96];
    (void)regerror(wrong, &out->regex, why, sizeof why);
    options->complain("--case '%.60s': %s", options->case_regex, why);
    return 2;
}

bool bench_wants(bench_cases *cases, const char *name, bool standard)
{
    const bench_options *options = cases->options;
    if (options->case_regex) standard = regexec(&cases->regex, name, 0, NULL, 0) == 0;
    if (!standard) return false;
    cases->asked_for++;
    if (!options->list) return true;
    if (options->json)
        printf("{\"bench\":\"%s\",\"case\":\"%s\"}\n", cases->bench, name);
    else
        printf("%s\n", name);
    return false;
}

int bench_end(bench_cases *cases, int exit_code)
{
    const bench_options *options = cases->options;
    if (exit_code == 0 && cases->asked_for == 0) {
        options->complain("bench %s: no case matches '%.60s'; --list shows them", cases->bench,
                          options->case_regex);
        exit_code = 2;
    }
    if (options->case_regex) regfree(&cases->regex);
    return exit_code;
}

static uint64_t next_random(uint64_t *state) /* xorshift64*, Vigna 2016 */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

/* Searches the cumulative probabilities. */
bool bench_tokens(bool zipf, int64_t rows, size_t count, int32_t *out)
{
    uint64_t state = 20260815;
    double *sums = malloc((size_t)rows * sizeof *sums), sum = 0.0;
    if (!sums) return false;
    for (int64_t k = 0; k < rows; k++) sums[k] = sum += zipf ? 1.0 / (double)(k + 1) : 1.0;
    for (size_t i = 0; i < count; i++) {
        double wanted = (double)(next_random(&state) >> 11) * 0x1p-53 * sum;
        int64_t low = 0, high = rows - 1;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (sums[middle] > wanted)
                high = middle;
            else
                low = middle + 1;
        }
        out[i] = (int32_t)low;
    }
    free(sums);
    return true;
}
