/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of cases by name, numbers of threads, and random tokens. */
#include "bench/cases.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/measure.h"

int bench_begin(const char *bench, const bench_options *options, bench_cases *out)
{
    enum { FLAGS = REG_EXTENDED | REG_NOSUB };
    int wrong = 0;
    *out = (bench_cases){.bench = bench, .options = options};
    if (options->case_regex) wrong = regcomp(&out->regex, options->case_regex, FLAGS);
    if (!wrong && options->all && regcomp(&out->set, options->all->set, FLAGS) != 0) {
        options->complain("bench %s: no memory", bench);
        if (options->case_regex) regfree(&out->regex);
        return 1;
    }
    if (!wrong) return 0;
    char why[96];
    (void)regerror(wrong, &out->regex, why, sizeof why);
    options->complain("--case '%.60s': %s", options->case_regex, why);
    return 2;
}

static bool is_in_set(const bench_cases *cases, const char *name, bool standard)
{
    const bench_options *options = cases->options;
    char full[128];
    if (!options->all)
        return options->case_regex ? regexec(&cases->regex, name, 0, NULL, 0) == 0 : standard;
    (void)snprintf(full, sizeof full, "%s/%s", cases->bench, name);
    return regexec(&cases->set, name, 0, NULL, 0) == 0 &&
           (!options->case_regex || regexec(&cases->regex, full, 0, NULL, 0) == 0);
}

bool bench_wants(bench_cases *cases, const char *name, bool standard)
{
    const bench_options *options = cases->options;
    if (!is_in_set(cases, name, standard)) return false;
    cases->asked_for++;
    if (options->list) {
        if (options->json)
            printf("{\"bench\":\"%s\",\"case\":\"%s\"}\n", cases->bench, name);
        else
            printf("%s%s%s\n", options->all ? cases->bench : "", options->all ? "/" : "", name);
    } else if (options->all) {
        options->all->at(name);
    }
    return !options->list;
}

int bench_end(bench_cases *cases, int exit_code)
{
    const bench_options *options = cases->options;
    if (options->all) {
        options->all->asked_for += cases->asked_for;
        regfree(&cases->set);
    } else if (exit_code == 0 && cases->asked_for == 0) {
        options->complain("bench %s: no case matches '%.60s'; --list shows them", cases->bench,
                          options->case_regex);
        exit_code = 2;
    }
    if (options->case_regex) regfree(&cases->regex);
    return exit_code;
}

bench_teams bench_teams_for(const bench_options *options, bench_usual usual)
{
    if (usual == BENCH_ALONE) return (bench_teams){.count = 1, .threads = {1}};
    if (options->threads > 0) return (bench_teams){.count = 1, .threads = {options->threads}};
    if (options->all) {
        int all = bench_threads();
        return (bench_teams){.count = all > 1 ? 2 : 1, .threads = {1, all}};
    }
    if (usual == BENCH_BOTH) return (bench_teams){.count = 2, .threads = {1, 2}};
    return (bench_teams){.count = 1, .threads = {usual == BENCH_ONE ? 1 : 2}};
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
