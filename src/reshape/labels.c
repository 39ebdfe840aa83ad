/* SPDX-License-Identifier: Apache-2.0 */
/* Words by row. Row and token are the same number but in models that keep fewer rows than
 * tokens and a tensor that maps one to the other; there the first word of a row is its label.
 */
#include "reshape/labels.h"

#include <stdio.h>
#include <string.h>

#include "files/cursor.h"
#include "files/vec.h"

enum { WINDOW = 512 };

/* The row of each token, from the tensor that says so, a window of it at a time. */
typedef struct {
    const embla_checkpoint *checkpoint;
    const embla_entry *entry; /* NULL: row and token are the same */
    size_t width;             /* bytes of a number */
    uint64_t count, first, have;
    uint8_t window[WINDOW * 8];
} mapping;

static void find_mapping(const embla_checkpoint *cp, const embla_entry *tokens, mapping *m)
{
    *m = (mapping){.checkpoint = cp};
    if (cp->chosen && strcmp(tokens->name, "embeddings") != 0) return;
    for (size_t i = 0; i < cp->count; i++) {
        const embla_entry *e = &cp->entries[i];
        bool wide = strcmp(e->element->name, "I64") == 0;
        if (cp->roles[i] != EMBLA_ROLE_MAPPING || e->rank != 1 || e->made) continue;
        if (!wide && strcmp(e->element->name, "I32") != 0) continue;
        m->entry = e;
        m->width = wide ? 8 : 4;
        m->count = e->shape[0];
    }
}

/* *row is at least 2^63 for a token without a row. */
static embla_status row_of(mapping *m, uint64_t token, uint64_t *row)
{
    *row = m->entry ? UINT64_MAX : token;
    if (!m->entry || token >= m->count) return EMBLA_OK;
    if (token < m->first || token - m->first >= m->have) {
        m->first = token;
        m->have = m->count - token < WINDOW ? m->count - token : WINDOW;
        EMBLA_TRY(embla_entry_read(m->checkpoint, m->entry, token * m->width,
                                   (size_t)m->have * m->width, m->window));
    }
    const uint8_t *at = m->window + (token - m->first) * m->width;
    *row = m->width == 8 ? embla_le64(at) : embla_le32(at);
    return EMBLA_OK;
}

static embla_status by_row(const embla_checkpoint *cp, const embla_entry *tokens,
                           embla_account *account, embla_labels *labels)
{
    mapping m;
    size_t past = 0;
    const embla_vocab *vocab = labels->vocab;
    find_mapping(cp, tokens, &m);
    for (size_t i = 0; i < vocab->count; i++) {
        const embla_name *word = &vocab->words[i];
        uint64_t row;
        EMBLA_TRY(row_of(&m, word->number, &row));
        if (row >= labels->count) {
            past++;
            continue;
        }
        if (labels->names[row].bytes) continue;
        labels->names[row] = *word;
        labels->names[row].number = (uint32_t)row;
    }
    if (past == 0) return EMBLA_OK;
    return embla_account_say(account, "%zu words of %.128s have no row among %zu: left out", past,
                             embla_vocab_source(vocab), labels->count);
}

static bool ends(const char *text, const char *tail)
{
    size_t length = strlen(text), wanted = strlen(tail);
    return length >= wanted && strcmp(text + length - wanted, tail) == 0;
}

embla_status embla_labels_find(const embla_checkpoint *cp, const embla_entry *tokens,
                               embla_arena *arena, embla_account *account, embla_labels *out)
{
    uint64_t rows = tokens->rank > 1 ? tokens->shape[0] : 1;
    void *names = NULL;
    embla_status status = embla_checkpoint_vocab(cp, &out->vocab);
    if (status == EMBLA_ERR_NOT_FOUND) return EMBLA_OK;
    if (status == EMBLA_ERR_MEMORY || status == EMBLA_ERR_IO) return status;
    if (status != EMBLA_OK)
        return embla_account_say(account, "its words cannot be read: %.400s", embla_error());
    if (rows > EMBLA_WORDS_MOST)
        return embla_account_say(account, "%" PRIu64 " rows, more than %d: words are left out",
                                 rows, (int)EMBLA_WORDS_MOST);
    const char *source = embla_vocab_source(out->vocab);
    /* A table that was named may be another than the one the words belong to. */
    if (cp->chosen && !embla_vocab_fits(out->vocab, (int64_t)rows))
        return embla_account_say(
            account, "%" PRId64 " words of %.128s for %" PRIu64 " rows of '%.128s': left out",
            embla_vocab_count(out->vocab), source, rows, tokens->name);
    out->own = cp->shards[0].directory.label_count > 0 || ends(source, ".vocab.txt") ||
               strcmp(source, "tokenizer.ggml.tokens") == 0;
    EMBLA_TRY(embla_arena_take(arena, (size_t)rows * sizeof(embla_name), "words", &names));
    out->names = names;
    out->count = (size_t)rows;
    return by_row(cp, tokens, account, out);
}

void embla_labels_free(embla_labels *labels)
{
    embla_vocab_free(labels->vocab);
}

/* Whether a row's word is written as it is. */
static bool usable(const embla_labels *labels, embla_labels_place place, uint64_t row)
{
    if (row >= labels->count || !labels->names[row].bytes) return false;
    return place != EMBLA_LABELS_VEC ||
           embla_vec_word_ok(labels->names[row].bytes, labels->names[row].length);
}

embla_status embla_labels_note(const embla_labels *labels, embla_labels_place place, uint64_t rows,
                               const char *format, embla_account *account)
{
    uint64_t without = 0;
    for (uint64_t row = 0; row < labels->count; row++) without += !usable(labels, place, row);
    if (labels->count == 0) without = rows;
    if (without == 0 || place == EMBLA_LABELS_BESIDE) return EMBLA_OK;
    return embla_account_say(account,
                             "%" PRIu64 " of %" PRIu64 " rows have no word that %s can hold: "
                             "written as %s",
                             without, rows, format,
                             place == EMBLA_LABELS_VEC ? "#row" : "[PADrow]");
}

embla_status embla_labels_check(const embla_labels *labels, embla_labels_place place, uint64_t rows,
                                const embla_vocab *words)
{
    for (uint64_t row = 0; row < rows; row++) {
        char number[40];
        size_t length = 0, due_length = 0;
        const char *found = embla_vocab_word(words, (int64_t)row, &length), *due = number;
        (void)snprintf(number, sizeof number,
                       place == EMBLA_LABELS_VEC ? "#%" PRIu64 : "[PAD%" PRIu64 "]", row);
        due_length = strlen(number);
        if (usable(labels, place, row)) {
            due = labels->names[row].bytes;
            due_length = labels->names[row].length;
        } else if (place == EMBLA_LABELS_BESIDE) {
            due = NULL;
        }
        if (due ? found && length == due_length && memcmp(found, due, length) == 0 : !found)
            continue;
        return embla_fail(EMBLA_ERR_IO,
                          "the word of row %" PRIu64 ", %zu bytes, was read back as %zu bytes that "
                          "are not the same",
                          row, due ? due_length : 0, found ? length : 0);
    }
    return EMBLA_OK;
}
