/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of cases by name, numbers of threads, random tokens, and n-grams of a text. */
#include "bench/cases.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure.h"
#include "embla_store.h"

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

/* ---- n-grams of a text ---- */

/* Splits text: an optional space and up to ten letters or digits, or any other byte. Returns its
 * bytes. */
static size_t piece(const unsigned char *text, size_t bytes)
{
    enum { LETTERS = 10 };
    size_t space = bytes > 1 && text[0] == ' ' && (isalnum(text[1]) || text[1] >= 128), n = space;
    while (n < bytes && n < space + LETTERS && (isalnum(text[n]) || text[n] >= 128)) n++;
    return n > 0 ? n : 1;
}

/* Tokens like those of a tokenizer with a vocabulary of that size: each piece becomes a number. */
static bool text_tokens(int64_t vocab, size_t count, int32_t *out)
{
    enum { TEXT_BYTES = 1 << 20 };
    const char *folder = getenv("EMBLA_DATA");
    char command[4096];
    unsigned char *text = malloc(TEXT_BYTES);
    if (!folder || !text || strchr(folder, '\'') ||
        snprintf(command, sizeof command,
                 "xz -dc '%s/enwiki100/enwiki-2015-100m.txt.xz' 2>/dev/null",
                 folder) >= (int)sizeof command) {
        free(text);
        return false;
    }
    FILE *pipe = popen(command, "r");
    size_t bytes = pipe ? fread(text, 1, TEXT_BYTES, pipe) : 0, made = 0, n;
    if (pipe) (void)pclose(pipe);
    for (size_t at = 0; at < bytes && made < count; at += n) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
        n = piece(text + at, bytes - at);
        for (size_t i = 0; i < n; i++) hash = (hash ^ text[at + i]) * UINT64_C(0x100000001b3);
        out[made++] = (int32_t)((hash ^ hash >> 32) % (uint64_t)vocab);
    }
    free(text);
    return made == count;
}

bool bench_text_rows(const char *model, size_t count, size_t heads, int64_t table_rows,
                     int64_t *rows)
{
    embla_ngram *ngram = NULL;
    embla_ngram_info info = {0};
    int32_t *tokens = malloc(count * sizeof *tokens);
    bool made = tokens && embla_ngram_new_model(model, -1, NULL, &ngram) == EMBLA_OK;
    made = made && embla_ngram_describe(ngram, &info) == EMBLA_OK && info.rows_per_token == heads &&
           text_tokens(info.tokens, count, tokens) &&
           embla_ngram_rows(ngram, tokens, 1, count, NULL, rows) == EMBLA_OK;
    for (size_t i = 0; made && i < count * heads; i++) rows[i] %= table_rows;
    embla_ngram_free(ngram);
    free(tokens);
    return made;
}
