/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a checkpoint that the doctor compares: table, facts, vocabulary, numbers of the
 * config. A part that is missing or broken is no failure: the reason becomes text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "see/doctor.h"

static void copy_error(char text[EMBLA_DOCTOR_SENTENCE])
{
    (void)snprintf(text, EMBLA_DOCTOR_SENTENCE, "%s", embla_error());
}

/* ---- the table ---- */

/* Reports a tensor that is not rows x dim. */
static void report_shape(embla_doctor_work *w, const embla_tensor *tensor)
{
    char shape[EMBLA_SHOWN_NUMBER];
    w->no_matrix = true;
    (void)snprintf(w->table_error, EMBLA_DOCTOR_SENTENCE,
                   "tensor '%.128s', %s, has %zu dimensions; a table has 2, rows x dim",
                   tensor->name, embla_show_shape(tensor->shape, tensor->rank, shape),
                   tensor->rank);
}

/* If no tensor has rank 1 or 2, choosing one would not help; the message says so. */
static void report_no_table(embla_doctor_work *w)
{
    size_t count;
    const embla_tensor *tensors = embla_checkpoint_tensors(w->checkpoint, &count);
    copy_error(w->table_error);
    for (size_t n = 0; n < count; n++)
        if (tensors[n].rank == 1 || tensors[n].rank == 2) return;
    if (count > 0 && tensors[0].rank > 2) report_shape(w, &tensors[0]);
}

/* A table has rank 2; a single row may be stored with rank 1. */
static embla_status find_table(embla_doctor_work *w)
{
    embla_status status =
        embla_checkpoint_role(w->checkpoint, EMBLA_ROLE_TOKENS, &w->table, &w->why);
    if (embla_doctor_ends(status)) return status;
    if (status != EMBLA_OK) {
        report_no_table(w);
        return EMBLA_OK;
    }
    if (w->table.rank > 2) {
        report_shape(w, &w->table);
        return EMBLA_OK;
    }
    w->has_table = true;
    w->rows = w->table.rank > 1 ? w->table.shape[0] : 1;
    w->dim = w->table.rank > 0 ? w->table.shape[w->table.rank - 1] : 1;
    return EMBLA_OK;
}

/* ---- the vocabulary ---- */

/* Whether a row of the chosen tensor belongs to a token. */
static bool has_words(embla_role role)
{
    return role == EMBLA_ROLE_TOKENS || role == EMBLA_ROLE_TOKENS_COPY || role == EMBLA_ROLE_HEAD ||
           role == EMBLA_ROLE_PER_LAYER;
}

/* Drops the vocabulary if the chosen tensor is not a table of tokens, or has too few rows. */
static void drop_foreign_words(embla_doctor_work *w)
{
    char rows[EMBLA_SHOWN_NUMBER], tokens[EMBLA_SHOWN_NUMBER];
    const embla_facts *facts = &w->facts;
    if (!w->vocab || !w->has_table || !facts->named || facts->role == EMBLA_ROLE_TOKENS) return;
    int64_t end = embla_vocab_end(w->vocab);
    if (has_words(facts->role) && facts->tokens >= end) return;
    if (has_words(facts->role))
        (void)snprintf(w->no_words, sizeof w->no_words, "%s, %s",
                       embla_show_count(facts->tokens, "row", rows),
                       embla_show_count(end, "token", tokens));
    else
        (void)snprintf(w->no_words, sizeof w->no_words,
                       "the rows of tensor '%.128s' do not belong to tokens", w->table.name);
    embla_vocab_free(w->vocab);
    w->vocab = NULL;
}

static embla_status open_words(embla_doctor_work *w)
{
    embla_status status = EMBLA_ERR_NOT_FOUND;
    if (w->facts.role != EMBLA_ROLE_POSITIONS && w->facts.role != EMBLA_ROLE_TOKEN_TYPES)
        status = embla_vocab_open(w->checkpoint, &w->vocab);
    if (embla_doctor_ends(status)) return status;
    if (status != EMBLA_OK && status != EMBLA_ERR_NOT_FOUND) copy_error(w->vocab_error);
    drop_foreign_words(w);
    return EMBLA_OK;
}

embla_status embla_doctor_model(embla_doctor_work *work)
{
    work->gguf = strcmp(embla_checkpoint_format(work->checkpoint), "gguf") == 0;
    EMBLA_TRY(find_table(work));
    EMBLA_TRY(embla_checkpoint_facts(work->checkpoint, &work->facts));
    return open_words(work);
}

/* ---- tensors and numbers ---- */

bool embla_doctor_next(const embla_doctor_work *work, embla_role role, size_t *n, embla_tensor *out)
{
    size_t count;
    const embla_tensor *tensors = embla_checkpoint_tensors(work->checkpoint, &count);
    while (*n < count) {
        const embla_tensor *tensor = &tensors[(*n)++];
        if (tensor->role != role) continue;
        *out = *tensor;
        return true;
    }
    return false;
}

/* Reads an integer, also from text: formats without a config keep their header as text. */
static bool read_integer(const embla_checkpoint *checkpoint, const char *key, int64_t *out)
{
    char *end;
    if (embla_checkpoint_integer(checkpoint, key, out) == EMBLA_OK) return true;
    const char *text = embla_checkpoint_text(checkpoint, key);
    if (!text || text[0] < '0' || text[0] > '9' || strlen(text) > 18) return false;
    long long value = strtoll(text, &end, 10);
    if (*end != '\0') return false;
    *out = value;
    return true;
}

bool embla_doctor_number(const embla_doctor_work *work, const char *const *keys, int64_t *out,
                         const char **key)
{
    const char *architecture = embla_checkpoint_text(work->checkpoint, "general.architecture");
    for (; *keys; keys++) {
        char name[128];
        const char *mark = strstr(*keys, "%s");
        if (mark && !architecture) continue;
        if (mark)
            (void)snprintf(name, sizeof name, "%.*s%.64s%.40s", (int)(mark - *keys), *keys,
                           architecture, mark + 2);
        else
            (void)snprintf(name, sizeof name, "%s", *keys);
        if (!read_integer(work->checkpoint, name, out)) continue;
        *key = mark ? mark + 3 : *keys; /* after "%s." */
        return true;
    }
    return false;
}

int64_t embla_doctor_tokens_end(const embla_doctor_work *work)
{
    int64_t tokens = 0;
    if (work->vocab) return embla_vocab_end(work->vocab);
    bool has_count = strcmp(embla_checkpoint_format(work->checkpoint), "llm.c") == 0 &&
                     work->facts.role == EMBLA_ROLE_TOKENS;
    return has_count && read_integer(work->checkpoint, "vocab_size", &tokens) ? tokens : -1;
}

/* ---- tokens as text ---- */

static const char *word_of(const embla_vocab *vocab, int64_t token, size_t *length)
{
    if (!vocab || token < 0 || token > INT32_MAX) return NULL;
    return embla_vocab_word(vocab, (int32_t)token, length);
}

const char *embla_doctor_tokens(const embla_doctor_work *work, int64_t first, int64_t count,
                                char text[EMBLA_DOCTOR_TOKENS])
{
    size_t used = 0;
    for (int64_t i = 0; i < count && i < 10 && used < EMBLA_DOCTOR_LIST; i++) {
        char shown[EMBLA_SHOWN_WORD] = "";
        size_t length = 0;
        const char *word = word_of(work->vocab, first + i, &length);
        if (word) (void)embla_show_word(word, length, false, EMBLA_SHOWN_WIDTH, NULL, shown);
        const char *quote =
            word && shown[0] != '"' ? "\"" : ""; /* a word with a space is already quoted */
        used +=
            (size_t)snprintf(text + used, EMBLA_DOCTOR_TOKENS - used, "%s%" PRId64 "%s%s%s%s",
                             i > 0 ? ", " : "", first + i, word ? " " : "", quote, shown, quote);
    }
    if (count > 10) (void)snprintf(text + used, EMBLA_DOCTOR_TOKENS - used, " ..");
    return text;
}
