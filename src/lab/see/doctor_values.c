/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the doctor that read rows: tied head, equal copies, NaN and infinities, rows of
 * zeros. All rows are read, a few megabytes at a time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/stop.h"
#include "see/doctor.h"

enum { PIECE = 4 << 20 };

/* Tells the caller that `part` bytes of the current tensor are read. */
static embla_status report_bytes(const embla_doctor_work *w, int64_t part)
{
    return embla_progress_report(w->options.progress, w->options.context, "reading", w->done + part,
                                 w->total);
}

/* ---- tied ---- */

/* How many rows were compared: "in all 512 rows". A sample is not mistaken for the whole table. */
static const char *compared_text(const embla_tie *tie, char text[EMBLA_SHOWN_NUMBER])
{
    char rows[EMBLA_SHOWN_NUMBER];
    (void)snprintf(text, EMBLA_SHOWN_NUMBER, "%s %.40s%s", tie->sampled ? "in the" : "in all",
                   embla_show_count(tie->rows_compared, "row", rows),
                   tie->sampled ? " compared" : "");
    return text;
}

static void verdict_text(const embla_tie *tie, char *text, size_t size)
{
    char rows[EMBLA_SHOWN_NUMBER];
    switch (tie->kind) {
    case EMBLA_TIE_TIED:
        (void)snprintf(text, size, "yes, the head uses the token table");
        return;
    case EMBLA_TIE_STORED_TWICE:
        (void)snprintf(text, size, "yes, but stored twice: table and head are equal %s",
                       compared_text(tie, rows));
        return;
    case EMBLA_TIE_UNTIED:
        (void)snprintf(text, size, "no, the head is a separate tensor%s",
                       tie->conflict ? ", although the flag says that it is tied" : "");
        return;
    case EMBLA_TIE_INVERTED:
        (void)snprintf(text, size, "yes, only the head is stored, and the table uses it");
        return;
    case EMBLA_TIE_HEAD_MISSING:
        (void)snprintf(text, size, "no, but the head is missing from the file");
        return;
    case EMBLA_TIE_NO_HEAD:
        (void)snprintf(text, size, "the model has no head");
        return;
    case EMBLA_TIE_NO_TABLE:
        (void)snprintf(text, size, "there is no token table");
        return;
    }
    text[0] = '\0';
}

const char *embla_tie_text(const embla_tie *tie, char *text, size_t size)
{
    char words[160];
    if (!text || size == 0) return text;
    text[0] = '\0';
    if (!tie) return text;
    verdict_text(tie, words, sizeof words);
    /* the other rules say that there is nothing to tie, whatever the flag */
    if (tie->flag && tie->rule && tie->rule[0] >= '0' && tie->rule[0] <= '9')
        (void)snprintf(text, size, "%s (%s%s)", words,
                       strncmp(tie->flag, "not set", 7) == 0 ? "flag " : "", tie->flag);
    else
        (void)snprintf(text, size, "%s", words);
    return text;
}

/* The finding of a tie, with its remedy; the sentence is the tie's own, or made in check_tie. */
static embla_finding judge_tie(const embla_tie *tie, const embla_tensor *head)
{
    embla_finding f = {
        .level = EMBLA_FINDING_LEVEL_ERROR, .check = "tied", .tensor = head ? head->name : NULL};
    if (tie->conflict) {
        f.remedy = "set the flag to false: some loaders keep both tensors, others drop the head";
    } else if (tie->kind == EMBLA_TIE_STORED_TWICE) {
        f.level = EMBLA_FINDING_LEVEL_WARNING;
        f.remedy = "set tie_word_embeddings to true and remove the head (a GGUF needs no flag)";
    } else if (tie->kind == EMBLA_TIE_HEAD_MISSING && strcmp(tie->flag, "not set") == 0) {
        f.level = EMBLA_FINDING_LEVEL_WARNING;
        f.remedy = "put the model's config.json beside the file: it says whether the model has its "
                   "own head";
    } else if (tie->kind == EMBLA_TIE_HEAD_MISSING) {
        f.remedy = "find the file with the head, or set tie_word_embeddings to true if the model "
                   "was trained so";
    } else if (tie->kind == EMBLA_TIE_NO_TABLE) {
        f.remedy = "set tie_word_embeddings to true if the head is also the table";
    } else {
        f.level = EMBLA_FINDING_LEVEL_FINE;
    }
    return f;
}

static embla_status report_tie(embla_doctor_work *w, const embla_tie *tie, const embla_tensor *head)
{
    char text[EMBLA_DOCTOR_SENTENCE], number[EMBLA_SHOWN_NUMBER];
    const embla_finding finding = judge_tie(tie, head);
    (void)embla_tie_text(tie, text, sizeof text);
    if (tie->conflict)
        return embla_doctor_found(w, finding, "%s; the largest difference in %s is %.6g", text,
                                  embla_show_count(tie->rows_compared, "row", number),
                                  tie->difference);
    if (tie->kind == EMBLA_TIE_STORED_TWICE)
        return embla_doctor_found(w, finding, "%s; storing it once would save %s bytes", text,
                                  embla_show_commas(head ? head->bytes : 0, number));
    if (tie->kind == EMBLA_TIE_HEAD_MISSING && finding.level == EMBLA_FINDING_LEVEL_WARNING)
        return embla_doctor_found(w, finding,
                                  "there is no head, and neither a flag nor a known architecture "
                                  "says whether the model has one (case %s)",
                                  tie->rule);
    if (tie->kind == EMBLA_TIE_NO_TABLE)
        return embla_doctor_found(w, finding,
                                  "there is a head but no table, and no flag says that the head is "
                                  "the table");
    return embla_doctor_found(w, finding, "%s", text);
}

static embla_status check_tie(embla_doctor_work *w)
{
    embla_tie tie;
    embla_tensor head = {0};
    size_t n = 0;
    if (w->no_matrix) return EMBLA_OK; /* reported by check_table */
    embla_status status = embla_checkpoint_tie(w->checkpoint, 0, &tie);
    if (embla_doctor_ends(status)) return status;
    if (status != EMBLA_OK && !w->has_table) return EMBLA_OK; /* reported by check_table */
    if (status != EMBLA_OK)
        return embla_doctor_found(w,
                                  (embla_finding){.level = EMBLA_FINDING_LEVEL_ERROR,
                                                  .check = "tied",
                                                  .remedy = "choose the tensor with FILE::TENSOR"},
                                  "%s", embla_error());
    bool has_head = embla_doctor_next(w, EMBLA_ROLE_HEAD, &n, &head);
    if (tie.kind == EMBLA_TIE_NO_TABLE && !has_head) return EMBLA_OK;
    return report_tie(w, &tie, has_head ? &head : NULL);
}

/* ---- copies ---- */

/* Compares the bytes of a and b, piece by piece. */
static embla_status compare_bytes(const embla_doctor_work *w, const embla_tensor *a,
                                  const embla_tensor *b, char *space, bool *equal)
{
    *equal = true;
    for (int64_t at = 0; at < a->bytes && *equal; at += PIECE) {
        size_t bytes = (size_t)(a->bytes - at < PIECE ? a->bytes - at : PIECE);
        EMBLA_TRY(embla_checkpoint_read(w->checkpoint, a->name, at, bytes, space));
        EMBLA_TRY(embla_checkpoint_read(w->checkpoint, b->name, at, bytes, space + PIECE));
        *equal = memcmp(space, space + PIECE, bytes) == 0;
        EMBLA_TRY(report_bytes(w, at + (int64_t)bytes));
    }
    return EMBLA_OK;
}

static embla_status check_copy(embla_doctor_work *w, const embla_tensor *of,
                               const embla_tensor *copy, char *space)
{
    char a[EMBLA_SHOWN_NUMBER], b[EMBLA_SHOWN_NUMBER];
    embla_finding finding = {.level = EMBLA_FINDING_LEVEL_WARNING,
                             .check = "copies",
                             .remedy = "change a table and its copies together",
                             .tensor = copy->name};
    bool equal = false;
    if (strcmp(of->type, copy->type) != 0 || of->bytes != copy->bytes)
        return embla_doctor_found(w, finding, "%.128s is %s, %s, but %.128s is %s, %s", copy->name,
                                  embla_show_shape(copy->shape, copy->rank, a), copy->type,
                                  of->name, embla_show_shape(of->shape, of->rank, b), of->type);
    embla_status status = compare_bytes(w, of, copy, space, &equal);
    if (embla_doctor_ends(status)) return status;
    if (status != EMBLA_OK) {
        finding.level = EMBLA_FINDING_LEVEL_ERROR;
        finding.remedy = "repair or download the file again: it cannot be read to its end";
        return embla_doctor_found(w, finding, "%s", embla_error());
    }
    if (equal) {
        finding.level = EMBLA_FINDING_LEVEL_FINE;
        finding.remedy = NULL;
    }
    return embla_doctor_found(w, finding, "%.128s %s %.128s", copy->name,
                              equal ? "equals" : "differs from", of->name);
}

/* The copies of the tensor with a role. */
static embla_status check_role(embla_doctor_work *w, embla_role role, embla_role copies,
                               embla_arena *arena)
{
    embla_tensor of, copy;
    char *space = NULL;
    size_t n = 0;
    embla_status status = embla_checkpoint_role(w->checkpoint, role, &of, NULL);
    if (embla_doctor_ends(status)) return status;
    if (status != EMBLA_OK) return EMBLA_OK;
    while (embla_doctor_next(w, copies, &n, &copy)) {
        if (!space) EMBLA_TRY(embla_arena_many(arena, 2, PIECE, "tensors to compare", &space));
        EMBLA_TRY(check_copy(w, &of, &copy, space));
        w->done += copy.bytes;
    }
    return EMBLA_OK;
}

static embla_status check_copies(embla_doctor_work *w)
{
    embla_arena arena = {0};
    embla_status status = check_role(w, EMBLA_ROLE_TOKENS, EMBLA_ROLE_TOKENS_COPY, &arena);
    if (status == EMBLA_OK) status = check_role(w, EMBLA_ROLE_HEAD, EMBLA_ROLE_HEAD_COPY, &arena);
    embla_arena_free(&arena);
    return status;
}

/* ---- numbers ---- */

typedef struct {
    int64_t not_finite, first_not_finite; /* rows with a NaN or an infinity */
    int64_t zero, first_zero;             /* rows of zeros */
    int64_t padding, first_padding;       /* rows of zeros without a token; not counted in zero */
} tally;

static void count_row(tally *t, const float *values, size_t dim, int64_t row, int64_t tokens)
{
    bool finite = true, zero = true;
    for (size_t k = 0; k < dim; k++) {
        finite = finite && isfinite(values[k]);
        zero = zero && values[k] == 0.0f;
    }
    if (!finite && t->not_finite++ == 0) t->first_not_finite = row;
    if (zero && row >= tokens && t->padding++ == 0) t->first_padding = row;
    if (zero && row < tokens && t->zero++ == 0) t->first_zero = row;
}

/* Rows from `tokens` on are padding. row_bytes is for progress. */
static embla_status read_rows(embla_doctor_work *w, const embla_table *table, int64_t tokens,
                              int64_t row_bytes, embla_arena *arena, tally *t)
{
    const embla_lookup_options options = {.threads = w->options.threads};
    int64_t rows = embla_table_rows(table), *numbers = NULL;
    size_t dim = embla_table_dim(table), most = PIECE / (dim * sizeof(float));
    float *values = NULL;
    if (most == 0) most = 1;
    if ((uint64_t)most > (uint64_t)rows) most = (size_t)rows;
    EMBLA_TRY(embla_arena_many(arena, most, dim * sizeof *values, "rows to check", &values));
    EMBLA_TRY(embla_arena_many(arena, most, sizeof *numbers, "row numbers", &numbers));
    for (int64_t at = 0; at < rows; at += (int64_t)most) {
        size_t count = rows - at < (int64_t)most ? (size_t)(rows - at) : most;
        for (size_t i = 0; i < count; i++) numbers[i] = at + (int64_t)i;
        EMBLA_TRY(embla_lookup_rows(table, numbers, count, &options, values));
        for (size_t i = 0; i < count; i++) count_row(t, values + i * dim, dim, numbers[i], tokens);
        EMBLA_TRY(report_bytes(w, (at + (int64_t)count) * row_bytes));
    }
    return EMBLA_OK;
}

/* A row as its token with its word, or as a number. */
static const char *row_text(const embla_doctor_work *w, const embla_tensor *tensor, int64_t row,
                            char text[EMBLA_DOCTOR_TOKENS])
{
    bool tokens = tensor->role == EMBLA_ROLE_TOKENS || tensor->role == EMBLA_ROLE_HEAD;
    return tokens ? embla_doctor_tokens(w, row, 1, text) : embla_show_commas(row, text);
}

static embla_status report_zeros(embla_doctor_work *w, const embla_tensor *tensor, const tally *t)
{
    char a[EMBLA_SHOWN_NUMBER], word[EMBLA_DOCTOR_TOKENS];
    embla_finding finding = {.level = EMBLA_FINDING_LEVEL_FINE,
                             .check = "zeros",
                             .tensor = tensor->name,
                             .rows = t->zero > 1 ? t->zero : t->zero + t->padding,
                             .first_row = t->zero > 0 ? t->first_zero : t->first_padding};
    (void)embla_show_count(finding.rows, "row", a);
    if (finding.rows == 0) return EMBLA_OK;
    if (t->zero <= 1)
        return embla_doctor_found(w, finding, "%.128s: all zero in %s%s", tensor->name, a,
                                  t->zero == 0 ? ", of padding" : "");
    finding.level = EMBLA_FINDING_LEVEL_WARNING;
    finding.remedy = "these are often tokens that were never trained: exclude them from statistics";
    return embla_doctor_found(w, finding, "%.128s: all zero in %s, the first is %s", tensor->name,
                              a, row_text(w, tensor, t->first_zero, word));
}

static embla_status report_numbers(embla_doctor_work *w, const embla_tensor *tensor, const tally *t)
{
    char a[EMBLA_SHOWN_NUMBER], word[EMBLA_DOCTOR_TOKENS];
    embla_finding finding = {.level = EMBLA_FINDING_LEVEL_ERROR,
                             .check = "numbers",
                             .remedy = "such a row makes every sum with it NaN or infinite: "
                                       "restore it from an earlier checkpoint",
                             .tensor = tensor->name,
                             .rows = t->not_finite,
                             .first_row = t->first_not_finite};
    if (t->not_finite > 0)
        EMBLA_TRY(embla_doctor_found(w, finding,
                                     "%.128s: a NaN or an infinity in %s, the first is %s",
                                     tensor->name, embla_show_count(t->not_finite, "row", a),
                                     row_text(w, tensor, t->first_not_finite, word)));
    EMBLA_TRY(report_zeros(w, tensor, t));
    if (t->not_finite > 0) return EMBLA_OK;
    finding.level = EMBLA_FINDING_LEVEL_FINE;
    finding.remedy = NULL;
    return embla_doctor_found(w, finding, "%.128s: all are finite", tensor->name);
}

/* The tally of a tensor's rows. They are read by row: embla_doctor_values checks a mapping. */
static embla_status tally_rows(embla_doctor_work *w, const embla_tensor *tensor, tally *t)
{
    const embla_table_options by_row = {.by_row = true};
    embla_table *table = NULL;
    embla_arena arena = {0};
    bool of_tokens = tensor->role != EMBLA_ROLE_POSITIONS;
    int64_t end = embla_doctor_tokens_end(w);
    int64_t tokens = of_tokens && end >= 0 && !w->facts.mapping ? end : INT64_MAX;
    EMBLA_TRY(embla_table_open(w->checkpoint, tensor->name, &by_row, &table));
    int64_t row_bytes = tensor->bytes / embla_table_rows(table);
    embla_status status = read_rows(w, table, tokens, row_bytes, &arena, t);
    embla_arena_free(&arena);
    embla_table_free(table);
    return status;
}

static embla_status check_numbers(embla_doctor_work *w, const embla_tensor *tensor)
{
    tally t = {0};
    embla_finding finding = {.check = "type",
                             .level = EMBLA_FINDING_LEVEL_WARNING,
                             .remedy = "convert it with the tool that wrote it",
                             .tensor = tensor->name};
    if (tensor->rank > 2 && w->no_matrix) return EMBLA_OK; /* reported by check_table */
    if (tensor->dtype == 0)
        return embla_doctor_found(
            w, finding, "%.128s is stored as %s, which is unsupported: its rows were not checked",
            tensor->name, tensor->type);
    embla_status status = tally_rows(w, tensor, &t);
    if (embla_doctor_ends(status)) return status;
    if (status == EMBLA_OK) return report_numbers(w, tensor, &t);
    finding.check = "numbers";
    finding.level = EMBLA_FINDING_LEVEL_ERROR;
    finding.remedy = "make sure that the file is complete: its rows cannot be read";
    return embla_doctor_found(w, finding, "%s", embla_error());
}

/* ---- all of it ---- */

/* The library checks a mapping when it opens the table. */
static embla_status check_mapping(embla_doctor_work *w)
{
    embla_table *table = NULL;
    if (!w->facts.mapping) return EMBLA_OK;
    embla_status status = embla_table_open(w->checkpoint, NULL, NULL, &table);
    embla_table_free(table);
    if (embla_doctor_ends(status)) return status;
    if (status != EMBLA_ERR_FORMAT) return EMBLA_OK;
    return embla_doctor_found(
        w,
        (embla_finding){.level = EMBLA_FINDING_LEVEL_ERROR,
                        .check = "mapping",
                        .remedy = "store the mapping of this table as I32 or I64",
                        .tensor = w->facts.mapping},
        "%s", embla_error());
}

/* Bytes of all tensors with a role. */
static int64_t bytes_of(const embla_doctor_work *w, embla_role role)
{
    embla_tensor tensor;
    int64_t bytes = 0;
    for (size_t n = 0; embla_doctor_next(w, role, &n, &tensor);) bytes += tensor.bytes;
    return bytes;
}

embla_status embla_doctor_values(embla_doctor_work *work)
{
    static const embla_role roles[] = {EMBLA_ROLE_TOKENS, EMBLA_ROLE_HEAD, EMBLA_ROLE_PER_LAYER,
                                       EMBLA_ROLE_POSITIONS};
    embla_tensor tensor;
    work->total = bytes_of(work, EMBLA_ROLE_TOKENS_COPY) + bytes_of(work, EMBLA_ROLE_HEAD_COPY);
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        work->total += bytes_of(work, roles[i]);
    EMBLA_TRY(check_tie(work));
    EMBLA_TRY(check_copies(work));
    EMBLA_TRY(check_mapping(work));
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        for (size_t n = 0; embla_doctor_next(work, roles[i], &n, &tensor);) {
            EMBLA_TRY(check_numbers(work, &tensor));
            work->done += tensor.bytes;
        }
    }
    return EMBLA_OK;
}
