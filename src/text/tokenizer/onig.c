/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions that no scanner knows, by Oniguruma (libonig), which is loaded when a file
 * needs it. Its Unicode tables are those of the installed version, so characters that are newer may
 * be cut differently than by Hugging Face's library, which brings its own.
 *
 * The library stays loaded, because it keeps memory of its own. It is initialized, and expressions
 * are compiled, under a lock; searches need none.
 *
 * The few declarations are those of oniguruma.h (6.9); the header is not needed to build Embla.
 */
#include <limits.h>

#include "base/load.h"
#include "base/lock.h"
#include "tokenizer/pattern.h"

typedef unsigned char onig_char;
typedef struct {
    int allocated, count;
    int *begin, *end;
    void *history;
} onig_region;
typedef struct {
    void *encoding;
    onig_char *begin, *end;
} onig_error;

enum { ONIG_NONE = 0, ONIG_MISMATCH = -1, ONIG_MESSAGE = 90 };

/* For a step of an expression (counted.c). */
enum { CALLOUT_SINGLE = 0, CALLOUT_IN_PROGRESS = 1, CALLOUT_SUCCESS = 0, CALLOUT_ABORT = -999 };
typedef int onig_callout(void *args, void *user);
enum { STEP_COST = 4 }; /* a callout takes as long as so many other steps */

typedef struct {
    void *library, *utf8, *syntax;
    int (*new)(void **regex, const onig_char *begin, const onig_char *end, unsigned options,
               void *encoding, void *syntax, onig_error *error);
    void (*release)(void *regex);
    int (*search)(void *regex, const onig_char *text, const onig_char *end, const onig_char *start,
                  const onig_char *range, onig_region *region, unsigned options, void *param);
    void *(*param_new)(void);
    void (*param_free)(void *param);
    int (*param_user)(void *param, void *user);
    int (*param_retries)(void *param, unsigned long limit);
    onig_region *(*region_new)(void);
    void (*region_free)(onig_region *region, int self);
    int (*message)(onig_char *out, int code, ...);
} library;

/* A compiled expression. */
typedef struct {
    library lib;
    void *regex;
} expression;

static embla_lock compiling;

/* A symbol as a pointer of any type: POSIX allows what ISO C does not. */
static bool find(void *handle, const char *name, void *out)
{
    void *symbol = embla_load_symbol(handle, name);
    memcpy(out, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* libonig calls this for each step of an expression. */
static int count_step(void *args, void *user)
{
    embla_bound *bound = user;
    (void)args;
    bound->steps += STEP_COST;
    return bound->steps <= bound->most_steps ? CALLOUT_SUCCESS : CALLOUT_ABORT;
}

/* The functions that only versions from 6.9.6 on have. */
static bool find_counting(library *lib)
{
    static onig_char name[] = "EMBLA";
    void *h = lib->library;
    int (*set)(void *encoding, int type, onig_char *name, onig_char *end, int in,
               onig_callout *start, onig_callout *finish, int count, void *types, int optional,
               void *defaults) = NULL;
    return find(h, "onig_search_with_param", &lib->search) &&
           find(h, "onig_new_match_param", &lib->param_new) &&
           find(h, "onig_free_match_param", &lib->param_free) &&
           find(h, "onig_set_callout_user_data_of_match_param", &lib->param_user) &&
           find(h, "onig_set_retry_limit_in_match_of_match_param", &lib->param_retries) &&
           find(h, "onig_set_callout_of_name", &set) &&
           set(lib->utf8, CALLOUT_SINGLE, name, name + sizeof name - 1, CALLOUT_IN_PROGRESS,
               count_step, NULL, 0, NULL, 0, NULL) >= 0;
}

static bool find_all(library *lib)
{
    void *h = lib->library, *syntax = NULL;
    int (*initialize)(void **encodings, int count) = NULL;
    bool good = find(h, "OnigEncodingUTF8", &lib->utf8) && find(h, "onig_new", &lib->new) &&
                find(h, "onig_free", &lib->release) &&
                find(h, "onig_region_new", &lib->region_new) &&
                find(h, "onig_region_free", &lib->region_free) &&
                find(h, "onig_error_code_to_str", &lib->message) &&
                find(h, "OnigSyntaxOniguruma", &syntax) && find(h, "onig_initialize", &initialize);
    lib->syntax = syntax;
    return good && initialize(&lib->utf8, 1) == 0 && find_counting(lib);
}

static embla_status load(library *lib, const char *name)
{
    static const char *const names[] = {"libonig.so.5", "libonig.so", "libonig.5.dylib", /* macOS */
                                        "libonig-5.dll", /* Windows */ NULL};
    char why[256];
    for (size_t i = 0; names[i] && !lib->library; i++)
        lib->library = embla_load(names[i], EMBLA_LOAD_STAYS, why, sizeof why);
    if (lib->library && find_all(lib)) return EMBLA_OK;
    if (lib->library) embla_unload(lib->library);
    return embla_fail(
        EMBLA_ERR_UNSUPPORTED,
        "%.256s: a regular expression that Embla has no scanner for needs libonig 6.9.6 or "
        "later; install libonig5",
        name);
}

/* Compiles an expression. */
static int compile(expression *made, const char *text, size_t length, onig_error *error)
{
    const onig_char *begin = (const onig_char *)text;
    embla_lock_take(&compiling);
    int code = made->lib.new(&made->regex, begin, begin + length, ONIG_NONE, made->lib.utf8,
                             made->lib.syntax, error);
    embla_lock_give(&compiling);
    if (code != 0) made->regex = NULL;
    return code;
}

embla_status embla_onig_new(const char *text, size_t length, const char *name, void **out)
{
    embla_arena scratch = {0};
    const char *counted = NULL;
    size_t counted_length = 0;
    void *memory = NULL;
    onig_error error = {0};
    onig_char sentence[ONIG_MESSAGE + 1] = "";
    EMBLA_TRY(embla_mem_new(sizeof(expression), "a regular expression", &memory));
    expression *made = memory;
    embla_lock_take(&compiling);
    embla_status status = load(&made->lib, name);
    embla_lock_give(&compiling);
    if (status != EMBLA_OK) {
        embla_mem_free(memory, sizeof(expression));
        return status;
    }
    status = embla_regex_counted(text, length, name, &scratch, &counted, &counted_length);
    int code = status == EMBLA_OK ? compile(made, text, length, &error) : 0;
    if (made->regex) { /* it is valid; what runs is the one that counts */
        made->lib.release(made->regex);
        code = compile(made, counted, counted_length, &error);
    }
    embla_arena_free(&scratch);
    if (status != EMBLA_OK) {
        embla_onig_free(made);
        return status;
    }
    if (code == 0) {
        *out = made;
        return EMBLA_OK;
    }
    (void)made->lib.message(sentence, code, &error);
    embla_onig_free(made);
    return embla_fail(EMBLA_ERR_FORMAT, "%.256s: the regular expression '%.*s' is not valid: %s",
                      name, length < 128 ? (int)length : 128, text, (const char *)sentence);
}

void embla_onig_free(void *onig)
{
    expression *made = onig;
    if (!made) return;
    if (made->regex) made->lib.release(made->regex);
    embla_unload(made->lib.library);
    embla_mem_free(made, sizeof *made);
}

/* Searches from `at` in the piece, whose bytes before `at` an expression may look at. Empty matches
 * are skipped. */
static int search(const expression *made, const embla_piece *piece, size_t at, void *param,
                  onig_region *region)
{
    const onig_char *text = (const onig_char *)piece->bytes + piece->begin;
    const onig_char *end = (const onig_char *)piece->bytes + piece->end;
    for (;;) {
        const onig_char *start = (const onig_char *)piece->bytes + at;
        int code = made->lib.search(made->regex, text, end, start, end, region, ONIG_NONE, param);
        if (code < 0 || region->begin[0] < region->end[0]) return code;
        if (start == end) return ONIG_MISMATCH;
        size_t length = 0;
        at = piece->begin + (size_t)region->begin[0];
        if (at >= piece->end) return ONIG_MISMATCH;
        (void)embla_char_at(piece->bytes + at, &length);
        at += length;
    }
}

embla_status embla_onig_next(void *onig, const embla_piece *piece, size_t at, embla_bound *bound,
                             bool *found, size_t *begin, size_t *end)
{
    const expression *made = onig;
    *found = false;
    if (at == piece->end) return EMBLA_OK; /* an empty match does not count */
    onig_region *region = made->lib.region_new();
    void *param = region ? made->lib.param_new() : NULL;
    if (!param) {
        if (region) made->lib.region_free(region, 1);
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for a regular expression");
    }
    (void)made->lib.param_user(param, bound);
    (void)made->lib.param_retries(param, ULONG_MAX); /* no limit: steps are counted */
    int code = search(made, piece, at, param, region);
    made->lib.param_free(param);
    *found = code >= 0;
    if (*found) {
        *begin = piece->begin + (size_t)region->begin[0];
        *end = piece->begin + (size_t)region->end[0];
    }
    made->lib.region_free(region, 1);
    if (code >= 0 || code == ONIG_MISMATCH) return embla_bound_add(bound, STEP_COST);
    if (code == CALLOUT_ABORT) return embla_bound_slow(bound);
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "libonig gave up on a regular expression after %zu of %zu bytes (code %d)",
                      at - piece->begin, piece->end - piece->begin, code);
}
