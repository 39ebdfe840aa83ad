/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench rows: lookups in a store of 4 GiB in memory, all of it written. One call is a prefill
 * of 2,048 tokens, to the same place each time.
 *
 * A case is ROW/IDS/WHAT.
 *   ROW   bytes and format of a row: Qwen's 160 numbers in f8, q8_0 and iq4_nl, 16 rows per token;
 *         DeepSeek-V4.1's 256 in f8 with scales, 24 rows per token
 *   IDS   uniform: no duplicates; text: n-grams of a text, hashed as in the model
 *   WHAT  raw          stored bytes; limit: a bare memcpy loop over the same rows; goal 0.9
 *         raw/threads  two threads; limit: twice the speed of one; goal 0.9
 *         raw/pages    memory on huge pages; limit: the same on small ones; goal 1.4
 *         f32          decoded; limit: raw; goal 0.59 (1.7 times as long)
 *         f32/naive    decoded row by row without prefetching: for comparison
 *         f32/step     decoded, 32 tokens per call: results stay in a cache; limit: raw, the same
 *         bf16         decoded and converted; limit: raw
 *         batch        raw, by embla_batch_lookup; limit: raw
 *
 * The text is read from $EMBLA_DATA/enwiki100 by xz. BENCH_GIB sets another size of the table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "bench/bench.h"
#include "bench/cases.h"
#include "bench/measure.h"
#include "embla_store.h"

enum { TOKENS = 2048, SETS = 16, TURNS = 21, STEP_TOKENS = 32, MOST_COLUMNS = 24 };

typedef struct {
    const char *name;
    embla_row_format format;
    const char *model; /* the model of the n-grams */
    size_t heads;
} row_kind;

static const row_kind kinds[] = {
    {"160/f8_e4m3",
     {.dim = 160, .dtype = EMBLA_F8_E4M3, .scale = 0x1p-12f},
     "qwen3.8-flash-next",
     16},
    {"264/f8_e4m3+ue8m0",
     {.dim = 256, .dtype = EMBLA_F8_E4M3, .scales = EMBLA_SCALES_UE8M0_32},
     "deepseek-v4.1-flash",
     24},
    {"170/q8_0", {.dim = 160, .dtype = EMBLA_Q8_0}, "qwen3.8-flash-next", 16},
    {"90/iq4_nl", {.dim = 160, .dtype = EMBLA_IQ4_NL}, "qwen3.8-flash-next", 16},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *const id_kinds[] = {"uniform", "text"};
enum { UNIFORM, TEXT, ID_KINDS };

/* Everything that one case needs. */
typedef struct {
    const row_kind *kind;
    size_t row_bytes;
    int64_t table_rows;
    const char *data;
    const embla_store *store, *small; /* small: the same rows on small pages */
    embla_batch *batch;
    const int64_t *rows; /* SETS x TOKENS x heads */
    char *out;
    size_t tokens; /* of one call: TOKENS or STEP_TOKENS */
    int threads;
    embla_dtype dtype;
    bool failed;
} bench_case;

/* ---- what is timed ---- */

/* Ours and the limit use the same rows, but never directly after each other: they would find them
 * in a cache. */
static const int64_t *set_at(const bench_case *c, size_t step)
{
    size_t set = (step / 2 + step % 2 * (SETS / 2)) % SETS;
    return c->rows + set * TOKENS * c->kind->heads;
}

/* Looks up all tokens of a set, some at a time, with the store's lookup or the batch's. */
static void lookup_set(bench_case *c, const embla_store *store, bool raw, bool batch, int threads,
                       size_t step)
{
    const embla_store_lookup_options options = {
        .rows_per_token = c->kind->heads, .raw = raw, .threads = threads, .out_dtype = c->dtype};
    size_t count = c->tokens * c->kind->heads;
    const int64_t *rows = set_at(c, step);
    for (size_t t = 0; t < TOKENS; t += c->tokens, rows += count) {
        embla_status status = batch ? embla_batch_lookup(c->batch, rows, count, &options, c->out)
                                    : embla_store_lookup(store, rows, count, &options, c->out);
        if (status != EMBLA_OK) c->failed = true;
    }
}

static void run_raw(void *context, size_t step)
{
    bench_case *c = context;
    lookup_set(c, c->store, true, false, c->threads, step);
}

static void run_raw_alone(void *context, size_t step)
{
    bench_case *c = context;
    lookup_set(c, c->store, true, false, 1, step);
}

static void run_raw_small(void *context, size_t step)
{
    bench_case *c = context;
    lookup_set(c, c->small, true, false, c->threads, step);
}

static void run_decoded(void *context, size_t step)
{
    bench_case *c = context;
    lookup_set(c, c->store, false, false, c->threads, step);
}

static void run_batch(void *context, size_t step)
{
    bench_case *c = context;
    lookup_set(c, c->store, true, true, c->threads, step);
}

typedef struct {
    const bench_case *c;
    const int64_t *rows;
} row_set;

/* The obvious loop. */
static embla_status copy_rows(void *job, size_t first, size_t end, size_t slot)
{
    const row_set *s = job;
    size_t bytes = s->c->row_bytes;
    (void)slot;
    for (size_t i = first; i < end; i++)
        memcpy(s->c->out + i * bytes, s->c->data + (size_t)s->rows[i] * bytes, bytes);
    return EMBLA_OK;
}

static void run_memcpy(void *context, size_t step)
{
    bench_case *c = context;
    const row_set s = {.c = c, .rows = set_at(c, step)};
    bench_shared(c->threads, TOKENS * c->kind->heads, 0, copy_rows, &s);
}

/* The obvious loop that decodes: no row is prefetched. */
static embla_status decode_rows(void *job, size_t first, size_t end, size_t slot)
{
    const row_set *s = job;
    const embla_row_format *f = &s->c->kind->format;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        float *out = (float *)(void *)s->c->out + i * f->dim;
        const char *row = s->c->data + (size_t)s->rows[i] * s->c->row_bytes;
        EMBLA_TRY(f->scales == EMBLA_SCALES_NONE
                      ? embla_dtype_decode(f->dtype, row, f->dim, f->scale, out)
                      : embla_row_decode(f, row, 1, out));
    }
    return EMBLA_OK;
}

static void run_naive(void *context, size_t step)
{
    bench_case *c = context;
    const row_set s = {.c = c, .rows = set_at(c, step)};
    if (embla_share(c->threads, TOKENS * c->kind->heads, 0, decode_rows, &s) != EMBLA_OK)
        c->failed = true;
}

/* ---- cases ---- */

typedef struct {
    const char *name, *limit_is;
    bench_fn *ours, *limit;
    embla_dtype dtype;
    size_t tokens;
    double limit_times; /* the limit is this many times the measured value */
    bench_usual usual;
    bool standard[ID_KINDS];
    bool first_only; /* in the default set only for the first kind of row */
} what_kind;

static const what_kind whats[] = {
    {"raw", "memcpy", run_raw, run_memcpy, EMBLA_F32, TOKENS, 1.0, BENCH_BOTH, {true, true}, false},
    {"raw/threads",
     "1 thread x 2",
     run_raw,
     run_raw_alone,
     EMBLA_F32,
     TOKENS,
     2.0,
     BENCH_TWO,
     {true, true},
     false},
    {"raw/pages",
     "small pages",
     run_raw,
     run_raw_small,
     EMBLA_F32,
     TOKENS,
     1.0,
     BENCH_BOTH,
     {true, false},
     false},
    {"f32", "raw", run_decoded, run_raw, EMBLA_F32, TOKENS, 1.0, BENCH_BOTH, {true, true}, false},
    {"f32/naive",
     "raw",
     run_naive,
     run_raw,
     EMBLA_F32,
     TOKENS,
     1.0,
     BENCH_ONE,
     {true, false},
     false},
    {"f32/step",
     "raw",
     run_decoded,
     run_raw,
     EMBLA_F32,
     STEP_TOKENS,
     1.0,
     BENCH_ONE,
     {true, false},
     false},
    {"bf16", "raw", run_decoded, run_raw, EMBLA_BF16, TOKENS, 1.0, BENCH_BOTH, {true, false}, true},
    {"batch", "raw", run_batch, run_raw, EMBLA_F32, TOKENS, 1.0, BENCH_ONE, {false, true}, true},
};
enum { WHATS = sizeof whats / sizeof whats[0] };

/* Verifies the last result row by row: figures for wrong rows are worthless. */
static bool is_right(bench_case *c, const what_kind *what)
{
    bool raw = what->ours != run_decoded && what->ours != run_naive;
    size_t dim = c->kind->format.dim, bytes = raw ? c->row_bytes : dim * sizeof(float);
    const int64_t *rows = set_at(c, 7);
    float want[256];
    char narrow[512];
    if (c->dtype != EMBLA_F32) bytes = dim * 2;
    c->tokens = TOKENS;
    memset(c->out, 0xff, TOKENS * c->kind->heads * bytes);
    what->ours(c, 7);
    for (size_t i = 0; i < TOKENS * c->kind->heads && !c->failed; i++) {
        const char *row = c->data + (size_t)rows[i] * c->row_bytes;
        const void *wanted = raw ? (const void *)row : want;
        if (!raw && embla_row_decode(&c->kind->format, row, 1, want) != EMBLA_OK) return false;
        if (c->dtype != EMBLA_F32) {
            if (embla_dtype_encode(c->dtype, want, dim, 0.0f, narrow) != EMBLA_OK) return false;
            wanted = narrow;
        }
        if (memcmp(c->out + i * bytes, wanted, bytes) != 0) return false;
    }
    return !c->failed;
}

static int run_case(bench_case *c, const what_kind *what, const char *name,
                    const bench_options *options)
{
    const bench_teams teams = bench_teams_for(options, what->usual);
    for (size_t t = 0; t < teams.count; t++) {
        c->threads = teams.threads[t];
        double rows = (double)TOKENS * (double)c->kind->heads * 1e-6;
        c->dtype = what->dtype;
        c->tokens = what->tokens;
        bench_times times = bench_measure(what->ours, what->limit, c, TURNS, 1);
        if (!is_right(c, what)) {
            options->complain("bench rows: %s: wrong rows: %s", name, embla_error());
            return 1;
        }
        bench_result result = {.bench = "rows",
                               .name = name,
                               .threads = c->threads,
                               .unit = "Mrows/s",
                               .limit_is = what->limit_is,
                               .value = rows / times.seconds,
                               .limit = what->limit_times * rows / times.limit_seconds};
        bench_print(options, &result);
    }
    return 0;
}

/* ---- memory ---- */

static size_t table_bytes(void)
{
    const char *text = getenv("BENCH_GIB");
    long gib = text ? strtol(text, NULL, 10) : 0;
    return (size_t)(gib >= 1 && gib <= 1024 ? gib : 4) << 30;
}

/* Available memory according to the system; SIZE_MAX if unknown. */
static size_t available(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[256];
    unsigned long long kilobytes;
    size_t found = SIZE_MAX;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1)
            found = (size_t)kilobytes * 1024;
    if (file) (void)fclose(file);
    return found;
}

/* Random bytes without bit 6: no f8 is NaN, and the f16 scale of a block is below 2. */
enum { FILL_BLOCK = 1 << 20 };
static embla_status fill_blocks(void *job, size_t first, size_t end, size_t slot)
{
    char *memory = job;
    (void)slot;
    for (size_t b = first; b < end; b++) {
        uint64_t *words = (void *)(memory + b * FILL_BLOCK);
        for (size_t i = 0; i < FILL_BLOCK / sizeof *words; i++) {
            uint64_t random = embla_splitmix64((b * FILL_BLOCK + i) * EMBLA_GOLDEN);
            words[i] = random & UINT64_C(0xBFBFBFBFBFBFBFBF);
        }
    }
    return EMBLA_OK;
}

static void fill(char *memory, size_t bytes)
{
    bench_shared(bench_threads(), bytes / FILL_BLOCK, 0, fill_blocks, memory);
}

/* Fills scales from 2^-15 to 2^0, as in real tables. */
typedef struct {
    char *memory;
    size_t row_bytes, scale_bytes;
} scaling;

static embla_status fill_scales_of(void *job, size_t first, size_t end, size_t slot)
{
    const scaling *s = job;
    (void)slot;
    for (size_t r = first; r < end; r++) {
        char *scales = s->memory + (r + 1) * s->row_bytes - s->scale_bytes;
        for (size_t i = 0; i < s->scale_bytes; i++) scales[i] = (char)(112 + (r + i) % 16);
    }
    return EMBLA_OK;
}

static void fill_scales(char *memory, int64_t rows, size_t row_bytes, size_t scale_bytes)
{
    const scaling s = {.memory = memory, .row_bytes = row_bytes, .scale_bytes = scale_bytes};
    if (scale_bytes > 0) bench_shared(bench_threads(), (size_t)rows, 0, fill_scales_of, &s);
}

/* Copies the bytes to pages of 4 KiB; NULL if there is not enough memory. */
static char *small_pages(const char *data, size_t bytes, const bench_options *options)
{
    size_t spare = (size_t)1 << 30;
    if (available() < bytes + spare) {
        options->complain("bench rows: pages: no memory for a second table: left out");
        return NULL;
    }
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        options->complain("bench rows: pages: no memory for a second table: left out");
        return NULL;
    }
    (void)madvise(memory, bytes, MADV_NOHUGEPAGE);
    memcpy(memory, data, bytes);
    return memory;
}

/* ---- row numbers ---- */

/* No duplicates: one row from each of count ranges of equal width, then shuffled. */
static void uniform_rows(size_t count, int64_t table_rows, int64_t *rows)
{
    uint64_t width = (uint64_t)table_rows / count;
    for (size_t i = 0; i < count; i++)
        rows[i] =
            (int64_t)(i * width + embla_splitmix64(i * EMBLA_GOLDEN) % (width > 0 ? width : 1));
    for (size_t i = count; i > 1; i--) {
        size_t j = (size_t)(embla_splitmix64((count + i) * EMBLA_GOLDEN) % i);
        int64_t other = rows[i - 1];
        rows[i - 1] = rows[j];
        rows[j] = other;
    }
}

/* ---- running ---- */

typedef struct {
    const bench_options *options;
    bench_cases cases;
    char *data, *small, *out; /* the table, a copy on small pages, results */
    size_t bytes;
    int64_t *rows;
    bool small_tried;
} session;

/* Allocates the memory of all cases, when the first is wanted. */
static bool have_memory(session *s)
{
    if (s->data) return true;
    s->bytes = table_bytes();
    if (available() < s->bytes + ((size_t)1 << 30)) return false;
    s->data = bench_memory(s->bytes);
    s->out = bench_memory((size_t)TOKENS * MOST_COLUMNS * 256 * sizeof(float));
    s->rows = malloc(sizeof *s->rows * SETS * TOKENS * MOST_COLUMNS);
    if (!s->data || !s->out || !s->rows) return false;
    fill(s->data, s->bytes);
    return true;
}

/* Runs a case of one kind of row. */
static int run_what(session *s, bench_case *c, int ids, const what_kind *what, const char *name)
{
    size_t count = (size_t)SETS * TOKENS * c->kind->heads;
    embla_store *small = NULL;
    int exit_code = 1;
    if (!c->rows && ids == UNIFORM) uniform_rows(count, c->table_rows, s->rows);
    if (!c->rows && ids == TEXT &&
        !bench_text_rows(c->kind->model, SETS * TOKENS, c->kind->heads, c->table_rows, s->rows)) {
        s->options->complain("bench rows: %s: no text in EMBLA_DATA, or no xz: left out", name);
        return 0;
    }
    c->rows = s->rows;
    if (what->limit == run_raw_small) {
        if (!s->small && !s->small_tried) s->small = small_pages(s->data, s->bytes, s->options);
        s->small_tried = true;
        if (!s->small) return 0;
        if (embla_store_view(&c->kind->format, c->table_rows, s->small, s->bytes, 0, &small) !=
            EMBLA_OK)
            return 1;
        c->small = small;
    }
    if (what->ours != run_batch ||
        embla_batch_new(c->store, TOKENS * c->kind->heads, &c->batch) == EMBLA_OK)
        exit_code = run_case(c, what, name, s->options);
    embla_batch_free(c->batch);
    c->batch = NULL;
    embla_store_free(small);
    return exit_code;
}

static int run_kind(session *s, const row_kind *kind)
{
    bench_case c = {.kind = kind};
    embla_store *store = NULL;
    int exit_code = 0;
    for (int ids = 0; ids < ID_KINDS; ids++) {
        c.rows = NULL;
        for (size_t w = 0; w < WHATS && exit_code == 0; w++) {
            char name[96];
            bool standard = whats[w].standard[ids] && (!whats[w].first_only || kind == kinds);
            (void)snprintf(name, sizeof name, "%s/%s/%s", kind->name, id_kinds[ids], whats[w].name);
            if (!bench_wants(&s->cases, name, standard)) continue;
            if (!have_memory(s)) {
                s->options->complain("bench rows: no memory for a table of %zu bytes", s->bytes);
                return 1;
            }
            if (!store) {
                size_t dim = kind->format.dim;
                if (embla_row_bytes(&kind->format, &c.row_bytes) != EMBLA_OK) return 1;
                c.table_rows = (int64_t)(s->bytes / c.row_bytes);
                fill_scales(s->data, c.table_rows, c.row_bytes,
                            kind->format.scales == EMBLA_SCALES_NONE ? 0 : dim / 32);
                if (embla_store_view(&kind->format, c.table_rows, s->data, s->bytes, 0, &store) !=
                    EMBLA_OK)
                    return 1;
                c.store = store;
                c.data = s->data;
                c.out = s->out;
            }
            exit_code = run_what(s, &c, ids, &whats[w], name);
        }
    }
    embla_store_free(store);
    return exit_code;
}

int bench_rows(const bench_options *options)
{
    session s = {.options = options};
    int exit_code = bench_begin("rows", options, &s.cases);
    if (exit_code != 0) return exit_code;
    for (size_t i = 0; i < KINDS && exit_code == 0; i++) exit_code = run_kind(&s, &kinds[i]);
    if (s.small) (void)munmap(s.small, s.bytes);
    free(s.rows);
    free(s.out);
    free(s.data);
    return bench_end(&s.cases, exit_code);
}
