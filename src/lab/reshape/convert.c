/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a checkpoint to another format: plan, write, read back, compare, and only then rename.
 *
 *   plan     chooses tensors, their names and types, and words (reshape/plan.h)
 *   write    the format's writer reads every tensor from a stream (reshape/stream.h)
 *   verify   the temporary file is opened like any other; the checksum of every tensor is
 *            compared with that of what was written
 *   commit   when the file and the words beside it are complete, the words are renamed, then the
 *            file. If that fails the old words are restored. Two names cannot change at once: if
 *            the process dies between the two, new words are beside the old file.
 */
#include <stdio.h>
#include <string.h>

#include "files/io.h"

#include "base/options.h"
#include "reshape/plan.h"

const char *embla_convert_format_name(size_t n)
{
    const embla_format *format;
    for (size_t i = 0; (format = embla_format_at(i)); i++)
        if (format->write && n-- == 0) return format->name;
    return NULL;
}

/* ---- write ---- */

static embla_status write_file(embla_plan *w, embla_durable *d)
{
    const embla_shard *first = &w->cp->shards[0];
    bool inside = w->format->labels != EMBLA_LABELS_BESIDE;
    embla_contents contents = {.parts = w->parts,
                               .count = w->count,
                               .pairs = w->pairs,
                               .pair_count = w->pair_count,
                               .labels = inside ? w->labels.names : NULL,
                               .label_count = inside ? w->labels.count : 0,
                               .tokens = w->tokens == w->cp->entries ? first->directory.tokens : 0};
    int64_t all = 0;
    if (w->copies_keys) {
        contents.source = &first->directory;
        contents.source_map = first->map;
    }
    for (size_t i = 0; i < w->count; i++) all += (int64_t)w->parts[i].bytes;
    EMBLA_TRY(embla_meter_begin(&w->buffers.meter, "write", all));
    EMBLA_TRY(w->format->write(d, &contents));
    for (size_t i = 0; i < w->count; i++)
        if (w->streams[i].next != w->streams[i].bytes)
            return embla_fail(EMBLA_ERR_IO,
                              "tensor '%.128s': %" PRIu64 " of %" PRIu64 " bytes were written",
                              w->parts[i].name, w->streams[i].next, w->streams[i].bytes);
    return EMBLA_OK;
}

/* ---- verify ---- */

/* Reports a failure to read back the new file, with its own name and not the temporary one's. */
static embla_status fail_verify(const embla_plan *w, embla_status status)
{
    char text[400];
    (void)snprintf(text, sizeof text, "%.390s", embla_error());
    if (status == EMBLA_ERR_MEMORY || status == EMBLA_ERR_STOPPED) return status;
    return embla_fail(EMBLA_ERR_IO, "%.128s: the written file failed its check: %s", w->path, text);
}

static embla_status compare_part(embla_plan *w, size_t n, const embla_checkpoint *back)
{
    const embla_part *part = &w->parts[n];
    const embla_entry *entry = back->entries;
    embla_checksum sum;
    if (!w->format->one_table) EMBLA_TRY(embla_checkpoint_named(back, part->name, &entry));
    bool same =
        entry->element == part->element && entry->rank == part->rank && entry->bytes == part->bytes;
    for (uint32_t i = 0; same && i < part->rank; i++) same = entry->shape[i] == part->shape[i];
    if (!same)
        return embla_fail(EMBLA_ERR_IO,
                          "tensor '%.128s' was read back as %s of %" PRIu64
                          " bytes, but %s of %" PRIu64 " bytes was written",
                          part->name, entry->element->name, entry->bytes, part->element->name,
                          part->bytes);
    EMBLA_TRY(embla_stream_checksum(&w->streams[n], back, entry, &sum));
    embla_account_line *line = w->streams[n].line;
    embla_account_checksum(w->streams[n].sum, line->checksum);
    if (sum.high != w->streams[n].sum.high || sum.low != w->streams[n].sum.low) {
        char found[33];
        embla_account_checksum(sum, found);
        return embla_fail(
            EMBLA_ERR_IO,
            "tensor '%.128s': its checksum is %s, but that of the written bytes is %s", part->name,
            found, line->checksum);
    }
    if (!w->format->one_table) return EMBLA_OK;
    return embla_arena_text(&w->account->arena, entry->name, strlen(entry->name), &line->new_name);
}

static embla_status compare_words(embla_plan *w, const embla_checkpoint *back)
{
    embla_labels_place place = w->format->labels;
    uint64_t rows = place == EMBLA_LABELS_ROWS ? w->streams[0].rows : w->labels.count;
    embla_vocab *words = NULL;
    if (place == EMBLA_LABELS_BESIDE || rows == 0 || rows > EMBLA_WORDS_MOST) return EMBLA_OK;
    EMBLA_TRY(embla_vocab_open(back, &words));
    embla_status status = embla_labels_check(&w->labels, place, rows, words);
    embla_vocab_free(words);
    return status;
}

/* Adds a note if the tie differs: without config.json, or with other names, the same tensors may
 * mean something else. A source that can have no head is not compared. */
static embla_status compare_tie(embla_plan *w, const embla_checkpoint *back)
{
    embla_tie tie;
    if (!w->has_tie || w->cp->format->one_table) return EMBLA_OK;
    embla_status status = embla_checkpoint_tie(back, EMBLA_TIE_SAMPLE, &tie);
    if (status == EMBLA_ERR_MEMORY || status == EMBLA_ERR_IO) return status;
    if (status != EMBLA_OK || tie.kind == w->tie.kind) return EMBLA_OK;
    return embla_account_note(w->account, "tied: %.200s is '%s', but %.200s is '%s'", w->cp->shown,
                              embla_tie_name(w->tie.kind), w->path, embla_tie_name(tie.kind));
}

static embla_status compare(embla_plan *w, const embla_checkpoint *back)
{
    int64_t all = 0;
    if (back->format != w->format || back->count != w->count)
        return embla_fail(EMBLA_ERR_IO, "it is %s with %zu tensors, but %s with %zu was written",
                          back->format->name, back->count, w->format->name, w->count);
    for (size_t i = 0; i < w->count; i++) all += (int64_t)w->parts[i].bytes;
    EMBLA_TRY(embla_meter_begin(&w->buffers.meter, "verify", all));
    for (size_t i = 0; i < w->count; i++) EMBLA_TRY(compare_part(w, i, back));
    EMBLA_TRY(compare_words(w, back));
    return compare_tie(w, back);
}

static embla_status verify(embla_plan *w, const char *temporary)
{
    embla_checkpoint *back = NULL;
    embla_status status = embla_checkpoint_open(temporary, NULL, &back);
    if (status == EMBLA_OK) status = compare(w, back);
    embla_checkpoint_free(back);
    return status == EMBLA_OK ? EMBLA_OK : fail_verify(w, status);
}

/* ---- both files ---- */

static embla_status write_words(embla_plan *w, embla_durable *d)
{
    const char *temporary = NULL;
    embla_vocab *words = NULL;
    EMBLA_TRY(embla_vocab_write(d, w->labels.names, w->labels.count));
    EMBLA_TRY(embla_durable_sync(d, &temporary));
    embla_status status = embla_vocab_open_file(temporary, &words);
    if (status == EMBLA_OK)
        status = embla_labels_check(&w->labels, EMBLA_LABELS_BESIDE, w->labels.count, words);
    embla_vocab_free(words);
    return status == EMBLA_OK ? EMBLA_OK : fail_verify(w, status);
}

/* The file, the words beside it, and a copy of the old words, to restore them. */
typedef struct {
    embla_durable *file, *words, *old_words;
} files;

static void abandon(files *f)
{
    embla_durable_abandon(f->file);
    embla_durable_abandon(f->words);
    embla_durable_abandon(f->old_words);
    *f = (files){0};
}

/* Copies the words that will be replaced. We wrote them, so writing them again gives the same
 * bytes. */
static embla_status copy_old_words(embla_plan *w, embla_durable *d)
{
    embla_vocab *words = NULL;
    embla_name *names = NULL;
    embla_status status = embla_vocab_open_file(w->beside, &words);
    /* Words that cannot be read are not worth restoring. */
    if (status != EMBLA_OK) return status == EMBLA_ERR_MEMORY ? status : EMBLA_OK;
    size_t count = words->end <= EMBLA_WORDS_MOST ? (size_t)words->end : 0;
    status = embla_arena_many(&w->arena, count, sizeof *names, "old words", &names);
    for (size_t i = 0; status == EMBLA_OK && i < words->count; i++)
        if (words->words[i].number < count) names[words->words[i].number] = words->words[i];
    if (status == EMBLA_OK) status = embla_vocab_write(d, names, count);
    embla_vocab_free(words);
    return status == EMBLA_OK ? embla_durable_sync(d, NULL) : status;
}

/* Writes all files completely, under temporary names. */
static embla_status write_all(embla_plan *w, files *f)
{
    const char *temporary = NULL;
    EMBLA_TRY(embla_durable_open(w->path, &f->file));
    EMBLA_TRY(write_file(w, f->file));
    EMBLA_TRY(embla_durable_sync(f->file, &temporary));
    EMBLA_TRY(verify(w, temporary));
    w->account->bytes = (int64_t)embla_durable_size(f->file);
    if (!w->words_beside) return EMBLA_OK;
    EMBLA_TRY(embla_durable_open(w->beside, &f->words));
    EMBLA_TRY(write_words(w, f->words));
    if (!w->words_replace) return EMBLA_OK;
    EMBLA_TRY(embla_durable_open(w->beside, &f->old_words));
    return copy_old_words(w, f->old_words);
}

/* Restores the message of a failure that later calls may have overwritten. */
static embla_status fail_again(embla_status status, const char *text)
{
    return embla_fail(status, "%s", text);
}

/* Gets the facts of the file with this name; false if there is none. */
static bool find_facts(const char *path, embla_file_facts *out)
{
    bool there = false;
    return embla_durable_facts(EMBLA_HERE, path, false, out, &there) == EMBLA_OK && there;
}

/* True if the file with this name is `made`. */
static bool is_there(const char *path, const embla_file_facts *made)
{
    embla_file_facts found = {0};
    return find_facts(path, &found) && embla_same_file(made->id, found.id);
}

/* Restores the old words, or removes the new ones if there were none, if the new ones were
 * renamed. */
static void restore_words(embla_plan *w, files *f, const embla_file_facts *words)
{
    embla_durable *old = f->old_words;
    if (!is_there(w->beside, words)) return;
    f->old_words = NULL;
    if (old)
        (void)!embla_durable_commit(old);
    else
        embla_io_remove(EMBLA_HERE, w->beside);
}

/* Renames a file to its name. An existing file is replaced only if `replace` is true, also if it
 * appeared after the plan was made. */
static embla_status rename_file(embla_durable *d, bool replace)
{
    return replace ? embla_durable_commit(d) : embla_durable_commit_new(d);
}

/* Renames both files, one after the other. */
static embla_status commit(embla_plan *w, files *f)
{
    embla_durable *file = f->file, *words = f->words;
    const char *temporary = NULL, *beside = NULL;
    embla_file_facts made = {0}, new_words = {0};
    char text[600];
    embla_status status = embla_durable_sync(file, &temporary);
    if (status == EMBLA_OK && words) status = embla_durable_sync(words, &beside);
    if (status != EMBLA_OK) return status;
    f->file = NULL;
    if (!words) return rename_file(file, w->options->overwrite);
    bool known = find_facts(temporary, &made) && find_facts(beside, &new_words);
    f->words = NULL;
    status = rename_file(words, w->words_replace);
    if (status == EMBLA_OK)
        status = rename_file(file, w->options->overwrite);
    else
        embla_durable_abandon(file);
    if (status == EMBLA_OK) return EMBLA_OK;
    (void)snprintf(text, sizeof text, "%s", embla_error());
    /* If only the last step failed, the sync of the folder, the file has its name, and the new
     * words are right. */
    if (known && !is_there(w->path, &made)) restore_words(w, f, &new_words);
    return fail_again(status, text);
}

static embla_status write_and_commit(embla_plan *w)
{
    files f = {0};
    embla_status status = write_all(w, &f);
    if (status == EMBLA_OK) status = commit(w, &f);
    abandon(&f);
    return status;
}

embla_status embla_convert(const embla_checkpoint *checkpoint, const char *path,
                           const embla_convert_options *options, embla_account **out)
{
    EMBLA_TRY(embla_options_check(options));
    const embla_convert_options defaults = {0};
    embla_plan w = {.cp = checkpoint, .path = path, .options = options ? options : &defaults};
    EMBLA_NEED(checkpoint);
    EMBLA_NEED(path);
    EMBLA_NEED(out);
    if (w.options->dtype != 0 && !embla_dtype_name(w.options->dtype))
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_convert: there is no dtype %d",
                          (int)w.options->dtype);
    EMBLA_TRY(embla_account_new(checkpoint->count, &w.account));
    embla_status status = embla_plan_make(&w);
    if (status == EMBLA_OK) status = write_and_commit(&w);
    embla_plan_free(&w);
    if (status != EMBLA_OK) {
        embla_account_free(w.account);
        return status;
    }
    *out = w.account;
    return EMBLA_OK;
}
