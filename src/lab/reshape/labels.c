/* SPDX-License-Identifier: Apache-2.0 */
/* Words by row. Usually token i has row i. Some models have fewer rows than tokens, and a tensor
 * that maps tokens to rows; then the tensor is written too, and words stay indexed by token.
 *
 * A GGUF has a word for each row. Rows without one are called "[PADn]" there and marked unused.
 * Such a made-up word is not copied to the new file.
 */
#include "reshape/labels.h"

#include <stdio.h>
#include <string.h>

#include "files/cursor.h"
#include "files/io.h"
#include "formats/gguf.h"
#include "formats/vec.h"
#include "reshape/plan.h"

enum { TOKEN_UNUSED = 5 };

/* Describes tokenizer.ggml.token_type as a tensor; false if there is none. */
static bool find_types(const embla_checkpoint *cp, embla_entry *out)
{
    const embla_gguf_key *key =
        embla_gguf_find(&cp->shards[0].directory, "tokenizer.ggml.token_type");
    if (!key) return false;
    *out = (embla_entry){.name = key->key, .bytes = 4 * key->count, .offset = key->value};
    return true; /* it is an array of i32: the reader has checked that (G5) */
}

/* *out becomes true if a word is only a made-up name of a row without a word. */
static embla_status is_padding(const embla_checkpoint *cp, const embla_entry *types,
                               const embla_name *word, bool *out)
{
    char name[32];
    uint8_t type[4];
    int length = snprintf(name, sizeof name, "[PAD%" PRIu32 "]", word->number);
    *out = false;
    if (word->length != (uint32_t)length || memcmp(word->bytes, name, (size_t)length) != 0)
        return EMBLA_OK;
    if (4 * ((uint64_t)word->number + 1) > types->bytes) return EMBLA_OK;
    EMBLA_TRY(embla_entry_read(cp, types, 4 * (uint64_t)word->number, sizeof type, type));
    *out = embla_le32(type) == TOKEN_UNUSED;
    return EMBLA_OK;
}

static embla_status sort_by_row(const embla_checkpoint *cp, embla_account *account,
                                embla_labels *labels)
{
    size_t past = 0, used = 0, rows = labels->count;
    const embla_vocab *vocab = labels->vocab;
    embla_entry types;
    bool typed = find_types(cp, &types);
    for (size_t i = 0; i < vocab->count; i++) {
        const embla_name *word = &vocab->words[i];
        bool padding = false;
        if (typed) EMBLA_TRY(is_padding(cp, &types, word, &padding));
        if (padding) continue;
        if (word->number >= rows) {
            past++;
            continue;
        }
        labels->names[word->number] = *word;
        used++;
    }
    if (used == 0) labels->count = 0; /* all words are beyond the last row */
    if (past == 0) return EMBLA_OK;
    return embla_account_note(account, "%zu words of %.128s are left out: there are only %zu rows",
                              past, embla_vocab_source(vocab), rows);
}

static bool ends(const char *text, const char *tail)
{
    size_t length = strlen(text), wanted = strlen(tail);
    return length >= wanted && strcmp(text + length - wanted, tail) == 0;
}

embla_status embla_labels_find(const embla_checkpoint *cp, const embla_entry *tokens, bool mapped,
                               embla_arena *arena, embla_account *account, embla_labels *out)
{
    uint64_t rows = tokens->rank > 1 ? tokens->shape[0] : 1;
    embla_status status = embla_vocab_open(cp, &out->vocab);
    if (status == EMBLA_ERR_NOT_FOUND) return EMBLA_OK;
    if (status == EMBLA_ERR_MEMORY || status == EMBLA_ERR_IO) return status;
    if (status != EMBLA_OK)
        return embla_account_note(account, "the words are left out, they cannot be read: %.400s",
                                  embla_error());
    if (mapped) rows = (uint64_t)embla_vocab_end(out->vocab);
    if (rows > EMBLA_WORDS_MOST)
        return embla_account_note(account, "words are left out: %" PRIu64 " rows, the limit is %d",
                                  rows, (int)EMBLA_WORDS_MOST);
    const char *source = embla_vocab_source(out->vocab);
    /* The words may belong to another table than the one that the caller chose. */
    if (cp->chosen && !mapped && !embla_vocab_fits(out->vocab, (int64_t)rows))
        return embla_account_note(account,
                                  "%" PRId64
                                  " words of %.128s are left out: they do not fit the %" PRIu64
                                  " rows of '%.128s'",
                                  embla_vocab_count(out->vocab), source, rows, tokens->name);
    out->own = cp->shards[0].directory.label_count > 0 || ends(source, ".vocab.txt") ||
               strcmp(source, "tokenizer.ggml.tokens") == 0;
    EMBLA_TRY(embla_arena_many(arena, rows, sizeof *out->names, "words", &out->names));
    out->count = (size_t)rows;
    return sort_by_row(cp, account, out);
}

void embla_labels_free(embla_labels *labels)
{
    embla_vocab_free(labels->vocab);
}

/* True if a row's word is written unchanged. */
static bool is_usable(const embla_labels *labels, embla_labels_place place, uint64_t row)
{
    if (row >= labels->count || !labels->names[row].bytes) return false;
    return place != EMBLA_LABELS_ROWS ||
           embla_vec_word_ok(labels->names[row].bytes, labels->names[row].length);
}

embla_status embla_labels_note(const embla_labels *labels, embla_labels_place place, uint64_t rows,
                               const char *format, embla_account *account)
{
    uint64_t without = 0;
    for (uint64_t row = 0; row < labels->count; row++) without += !is_usable(labels, place, row);
    if (labels->count == 0) without = rows;
    if (without == 0 || place == EMBLA_LABELS_BESIDE) return EMBLA_OK;
    return embla_account_note(account,
                              "%" PRIu64 " of %" PRIu64 " rows have no word that %s can hold; "
                              "they are written as %s",
                              without, rows, format,
                              place == EMBLA_LABELS_ROWS ? "#row" : "[PADrow]");
}

embla_status embla_labels_check(const embla_labels *labels, embla_labels_place place, uint64_t rows,
                                const embla_vocab *words)
{
    for (uint64_t row = 0; row < rows; row++) {
        char number[40];
        size_t length = 0, wanted_length = 0;
        int32_t token = row <= INT32_MAX ? (int32_t)row : -1; /* -1 has no word */
        const char *found = embla_vocab_word(words, token, &length), *wanted = number;
        (void)snprintf(number, sizeof number,
                       place == EMBLA_LABELS_ROWS ? "#%" PRIu64 : "[PAD%" PRIu64 "]", row);
        wanted_length = strlen(number);
        if (is_usable(labels, place, row)) {
            wanted = labels->names[row].bytes;
            wanted_length = labels->names[row].length;
        } else if (place == EMBLA_LABELS_BESIDE) {
            wanted = NULL;
        } else if (place == EMBLA_LABELS_LIST && !found) {
            continue; /* a reader that recognises "[PADn]" reports no word */
        }
        if (wanted ? found && length == wanted_length && memcmp(found, wanted, length) == 0
                   : !found)
            continue;
        return embla_fail(EMBLA_ERR_IO,
                          "the word of row %" PRIu64 " (%zu bytes) was read back as a different "
                          "word (%zu bytes)",
                          row, wanted ? wanted_length : 0, found ? length : 0);
    }
    return EMBLA_OK;
}

/* ---- beside the file ---- */

/* *out becomes true if the source has its words in the file where those of the new file would go:
 * x.npy and x.safetensors share x.vocab.txt. */
static embla_status shares_words(const embla_plan *w, bool *out)
{
    embla_file_facts theirs, ours;
    bool there = false;
    *out = false;
    if (w->cp->folder < 0) return EMBLA_OK; /* a table in memory */
    EMBLA_TRY(embla_durable_facts(w->cp->folder, embla_vocab_source(w->labels.vocab), true, &theirs,
                                  &there));
    if (there) EMBLA_TRY(embla_durable_facts(EMBLA_HERE, w->beside, true, &ours, &there));
    *out = there && embla_same_file(theirs.id, ours.id);
    return EMBLA_OK;
}

/* *out becomes true if the existing file has the words that would be written. A file that cannot be
 * read has not. */
static embla_status same_words(const embla_plan *w, bool *out)
{
    embla_vocab *words = NULL;
    embla_status status = embla_vocab_open_file(w->beside, &words);
    *out = false;
    if (status != EMBLA_OK) return status == EMBLA_ERR_FORMAT ? EMBLA_OK : status;
    *out = words->end <= (int64_t)w->labels.count &&
           embla_labels_check(&w->labels, EMBLA_LABELS_BESIDE, w->labels.count, words) == EMBLA_OK;
    embla_vocab_free(words);
    return EMBLA_OK;
}

/* Checks NAME.vocab.txt. It may be absent, or have the same words, or older words that we wrote.
 * Any other file is never replaced, nor is a file that is being read. */
static embla_status check_beside(embla_plan *w)
{
    embla_file_facts found;
    bool there = false, same = false;
    w->words_beside = true;
    EMBLA_TRY(embla_durable_facts(EMBLA_HERE, w->beside, false, &found, &there));
    for (size_t i = 0; there && i < w->cp->shard_count; i++)
        if (embla_same_file(w->cp->shards[i].map->id, found.id))
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "%.256s is one of the source files; words cannot be written there",
                              w->beside);
    EMBLA_TRY(embla_vocab_beside_check(w->beside, &there));
    if (!there) return EMBLA_OK;
    EMBLA_TRY(same_words(w, &same));
    w->words_replace = true;
    w->words_beside = !same;
    if (same) return EMBLA_OK;
    EMBLA_TRY(embla_durable_target(w->beside, w->options->overwrite));
    return embla_vocab_beside_alone(w->beside, w->path);
}

/* True if the new file finds the words of the source by itself: both are in the folder of the
 * tokenizer, and the format looks there (words.c). */
static bool finds_words(const embla_plan *w)
{
    return !w->elsewhere && !w->format->one_table && !w->labels.own && !w->cp->format->own_words;
}

/* Plans the words of a format without words: they go beside the file, unless they are there. */
static embla_status plan_beside(embla_plan *w)
{
    embla_file_facts found;
    bool shared = false, there = false;
    EMBLA_TRY(shares_words(w, &shared));
    EMBLA_TRY(embla_durable_facts(EMBLA_HERE, w->beside, false, &found, &there));
    if (!there && finds_words(w))
        return embla_account_note(w->account, "its words are those of %.256s, beside it",
                                  embla_vocab_source(w->labels.vocab));
    if (!shared) EMBLA_TRY(check_beside(w));
    return embla_account_note(w->account, "its words are in %.256s", w->beside);
}

static embla_status collect_words(embla_plan *w)
{
    if (!w->tokens || w->copies_keys) return EMBLA_OK;
    EMBLA_TRY(
        embla_labels_find(w->cp, w->tokens, w->mapping != NULL, &w->arena, w->account, &w->labels));
    if (w->labels.count > w->streams[0].rows && !w->mapping && w->options->rows > 0)
        w->labels.count = (size_t)w->streams[0].rows;
    if (w->format->labels == EMBLA_LABELS_LIST && w->tokens->rank != 2) w->labels.count = 0;
    if (w->format->labels == EMBLA_LABELS_ROWS ||
        (w->format->labels == EMBLA_LABELS_LIST && w->labels.count > 0))
        return embla_labels_note(&w->labels, w->format->labels, w->streams[0].rows, w->format->name,
                                 w->account);
    return w->format->labels == EMBLA_LABELS_BESIDE && w->labels.count > 0 ? plan_beside(w)
                                                                           : EMBLA_OK;
}

/* Adds a note about an old NAME.vocab.txt: readers will use it for the new file. */
static embla_status note_old_words(embla_plan *w)
{
    embla_file_facts found;
    bool there = false;
    if (w->labels.count > 0 || w->format->labels != EMBLA_LABELS_BESIDE) return EMBLA_OK;
    EMBLA_TRY(embla_durable_facts(EMBLA_HERE, w->beside, false, &found, &there));
    if (!there) return EMBLA_OK;
    return embla_account_note(w->account,
                              "%.256s existed before; readers will use its words for the new file",
                              w->beside);
}

embla_status embla_plan_words(embla_plan *w)
{
    EMBLA_TRY(embla_vocab_beside(w->path, &w->arena, &w->beside));
    EMBLA_TRY(collect_words(w));
    return note_old_words(w);
}
