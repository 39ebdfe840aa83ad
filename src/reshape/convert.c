/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint in another format: plan, write, read back, compare, and only then the name.
 *
 *   plan     which tensors, under which names, stored as what; which words (reshape/plan.h)
 *   write    the format's writer pulls every tensor through a stream (reshape/stream.h)
 *   verify   the temporary file is opened like any other, every tensor's bytes are summed
 *            up again and held against the sum of what was handed out
 *   commit   when both the file and the words beside it are complete: words first, then the
 *            file. If that fails the old words are put back. Two names cannot change at once:
 *            whoever ends the process between the two finds new words beside the old file
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "files/io.h"
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
    bool inside = w->place != EMBLA_LABELS_BESIDE;
    embla_contents contents = {.parts = w->parts,
                               .count = w->count,
                               .pairs = w->pairs,
                               .pair_count = w->pair_count,
                               .labels = inside ? w->labels.names : NULL,
                               .label_count = inside ? w->labels.count : 0,
                               .tokens = w->tokens == w->cp->entries ? first->directory.tokens : 0};
    int64_t all = 0;
    if (w->same_gguf) {
        contents.source = &first->directory;
        contents.source_map = first->map;
    }
    for (size_t i = 0; i < w->count; i++) all += (int64_t)w->parts[i].bytes;
    EMBLA_TRY(embla_meter_begin(&w->desk.meter, "write", all));
    EMBLA_TRY(w->format->write(d, &contents));
    for (size_t i = 0; i < w->count; i++)
        if (w->streams[i].next != w->streams[i].bytes)
            return embla_fail(EMBLA_ERR_IO,
                              "tensor '%.128s': %" PRIu64 " of %" PRIu64 " bytes were written",
                              w->parts[i].name, w->streams[i].next, w->streams[i].bytes);
    return EMBLA_OK;
}

/* ---- verify ---- */

/* What went wrong with the new file, by its name and not the temporary one's. */
static embla_status not_as_written(const embla_plan *w, embla_status status)
{
    char text[400];
    (void)snprintf(text, sizeof text, "%.390s", embla_error());
    if (status == EMBLA_ERR_MEMORY || status == EMBLA_ERR_STOPPED) return status;
    return embla_fail(EMBLA_ERR_IO, "%.128s: what was written cannot be read back: %s", w->path,
                      text);
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
        return embla_fail(
            EMBLA_ERR_IO,
            "tensor '%.128s' is %s, %" PRIu64 " bytes; %s, %" PRIu64 " bytes were written",
            part->name, entry->element->name, entry->bytes, part->element->name, part->bytes);
    EMBLA_TRY(embla_stream_back(&w->streams[n], back, entry, &sum));
    embla_account_line *line = w->streams[n].line;
    embla_account_checksum(w->streams[n].sum, line->checksum);
    if (sum.high != w->streams[n].sum.high || sum.low != w->streams[n].sum.low) {
        char found[33];
        embla_account_checksum(sum, found);
        return embla_fail(EMBLA_ERR_IO, "tensor '%.128s': its checksum is %s; %s was written",
                          part->name, found, line->checksum);
    }
    if (!w->format->one_table) return EMBLA_OK;
    return embla_arena_text(&w->account->arena, entry->name, strlen(entry->name), &line->new_name);
}

static embla_status compare_words(embla_plan *w, const embla_checkpoint *back)
{
    embla_labels_place place = w->place;
    uint64_t rows = place == EMBLA_LABELS_VEC ? w->streams[0].rows : w->labels.count;
    embla_vocab *words = NULL;
    if (place == EMBLA_LABELS_BESIDE || rows == 0 || rows > EMBLA_WORDS_MOST) return EMBLA_OK;
    EMBLA_TRY(embla_vocab_open(back, &words));
    embla_status status = embla_labels_check(&w->labels, place, rows, words);
    embla_vocab_free(words);
    return status;
}

/* Where a config.json or a name stays behind, the same tensors may mean something else. Of a
 * file that never could have a head nothing is said. */
static embla_status compare_tie(embla_plan *w, const embla_checkpoint *back)
{
    embla_tie tie;
    if (!w->has_tie || w->cp->format->one_table) return EMBLA_OK;
    embla_status status = embla_checkpoint_tie(back, EMBLA_TIE_SAMPLE, &tie);
    if (status == EMBLA_ERR_MEMORY || status == EMBLA_ERR_IO) return status;
    if (status != EMBLA_OK || tie.kind == w->tie.kind) return EMBLA_OK;
    return embla_account_say(w->account, "tied: %.200s is '%s', %.200s reads as '%s'", w->cp->shown,
                             embla_tie_name(w->tie.kind), w->path, embla_tie_name(tie.kind));
}

static embla_status compare(embla_plan *w, const embla_checkpoint *back)
{
    int64_t all = 0;
    if (back->format != w->format || back->count != w->count)
        return embla_fail(EMBLA_ERR_IO, "it is %s of %zu tensors; %s of %zu was written",
                          back->format->name, back->count, w->format->name, w->count);
    for (size_t i = 0; i < w->count; i++) all += (int64_t)w->parts[i].bytes;
    EMBLA_TRY(embla_meter_begin(&w->desk.meter, "verify", all));
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
    return status == EMBLA_OK ? EMBLA_OK : not_as_written(w, status);
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
    return status == EMBLA_OK ? EMBLA_OK : not_as_written(w, status);
}

/* The file, the words beside it, and the words that were there before, to be put back. */
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

/* The words that will be replaced, once more: written by us, so written the same again. */
static embla_status keep_old_words(embla_plan *w, embla_durable *d)
{
    embla_vocab *words = NULL;
    embla_name *names = NULL;
    embla_status status = embla_vocab_open_file(w->beside, &words);
    /* What cannot be read any more is no loss. */
    if (status != EMBLA_OK) return status == EMBLA_ERR_MEMORY ? status : EMBLA_OK;
    size_t count = words->end <= EMBLA_WORDS_MOST ? (size_t)words->end : 0;
    status = embla_arena_many(&w->arena, count, sizeof *names, "old words", &names);
    for (size_t i = 0; status == EMBLA_OK && i < words->count; i++)
        if (words->words[i].number < count) names[words->words[i].number] = words->words[i];
    if (status == EMBLA_OK) status = embla_vocab_write(d, names, count);
    embla_vocab_free(words);
    return status == EMBLA_OK ? embla_durable_sync(d, NULL) : status;
}

/* All that is to get a name, complete under another. */
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
    return keep_old_words(w, f->old_words);
}

/* What was said of a failure stays what is said, whatever comes after. */
static embla_status say_again(embla_status status, const char *text)
{
    return embla_fail(status, "%s", text);
}

/* Whether there is a file under a name, and which. */
static bool which(const char *path, struct stat *out)
{
    int fd = -1;
    if (embla_io_open(AT_FDCWD, path, O_PATH | O_NOFOLLOW, 0, &fd) != EMBLA_OK) return false;
    bool found = embla_io_stat(fd, path, out) == EMBLA_OK;
    embla_io_drop(fd);
    return found;
}

/* Whether the file under a name is this one. */
static bool is_there(const char *path, const struct stat *made)
{
    struct stat found = {0};
    return which(path, &found) && made->st_ino == found.st_ino && made->st_dev == found.st_dev;
}

/* Words as they were, if ours have got the name: the old ones, or none. */
static void put_back(embla_plan *w, files *f, const struct stat *words)
{
    embla_durable *old = f->old_words;
    if (!is_there(w->beside, words)) return;
    f->old_words = NULL;
    if (old)
        (void)!embla_durable_commit(old);
    else
        embla_io_remove(AT_FDCWD, w->beside);
}

/* Its name: one that is taken only where it may be replaced, even if it was free before. */
static embla_status give_name(embla_durable *d, bool replace)
{
    return replace ? embla_durable_commit(d) : embla_durable_commit_new(d);
}

/* Both names, one after the other. */
static embla_status commit(embla_plan *w, files *f)
{
    embla_durable *file = f->file, *words = f->words;
    const char *temporary = NULL, *beside = NULL;
    struct stat made = {0}, said = {0};
    char text[600];
    embla_status status = embla_durable_sync(file, &temporary);
    if (status == EMBLA_OK && words) status = embla_durable_sync(words, &beside);
    if (status != EMBLA_OK) return status;
    f->file = NULL;
    if (!words) return give_name(file, w->options->overwrite);
    bool known = which(temporary, &made) && which(beside, &said);
    f->words = NULL;
    status = give_name(words, w->words_replace);
    if (status == EMBLA_OK)
        status = give_name(file, w->options->overwrite);
    else
        embla_durable_abandon(file);
    if (status == EMBLA_OK) return EMBLA_OK;
    (void)snprintf(text, sizeof text, "%s", embla_error());
    /* The last step, the folder's sync, fails with the name given: then the words are right. */
    if (known && !is_there(w->path, &made)) put_back(w, f, &said);
    return say_again(status, text);
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
    const embla_convert_options defaults = {0};
    embla_plan w = {.cp = checkpoint, .path = path, .options = options ? options : &defaults};
    if (!checkpoint || !path || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_convert: %s is NULL",
                          !checkpoint ? "the checkpoint"
                          : !path     ? "the path"
                                      : "out");
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
