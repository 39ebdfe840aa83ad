/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint in another format: plan, write, read back, compare, and only then the name.
 *
 *   plan     which tensors, under which names, stored as what; which words (reshape/plan.h)
 *   write    the format's writer pulls every tensor through a stream (reshape/stream.h)
 *   verify   the temporary file is opened like any other, every tensor's bytes are summed
 *            up again and held against the sum of what was handed out
 *   commit   words beside the file first, then the file: a reader of the new file never
 *            finds the old words
 */
#include <stdio.h>
#include <string.h>

#include "reshape/plan.h"

const char *embla_convert_format(size_t n)
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
    if (status == EMBLA_ERR_MEMORY || w->desk.meter.stopped) return status;
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
    EMBLA_TRY(embla_checkpoint_vocab(back, &words));
    embla_status status = embla_labels_check(&w->labels, place, rows, words);
    embla_vocab_free(words);
    return status;
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
    return compare_words(w, back);
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
    embla_status status = embla_vocab_open(temporary, &words);
    if (status == EMBLA_OK)
        status = embla_labels_check(&w->labels, EMBLA_LABELS_BESIDE, w->labels.count, words);
    embla_vocab_free(words);
    return status == EMBLA_OK ? EMBLA_OK : not_as_written(w, status);
}

/* Words first: the name of the file is the last thing that happens. */
static embla_status commit_words(embla_plan *w)
{
    embla_durable *d = NULL;
    if (!w->words_beside) return EMBLA_OK;
    EMBLA_TRY(embla_durable_open(w->beside, &d));
    embla_status status = write_words(w, d);
    if (status == EMBLA_OK) return embla_durable_commit(d);
    embla_durable_abandon(d);
    return status;
}

static embla_status write_and_commit(embla_plan *w)
{
    embla_durable *d = NULL;
    const char *temporary = NULL;
    EMBLA_TRY(embla_durable_open(w->path, &d));
    embla_status status = write_file(w, d);
    if (status == EMBLA_OK) status = embla_durable_sync(d, &temporary);
    if (status == EMBLA_OK) status = verify(w, temporary);
    if (status == EMBLA_OK) status = commit_words(w);
    w->account->bytes = (int64_t)embla_durable_size(d);
    if (status == EMBLA_OK) return embla_durable_commit(d);
    embla_durable_abandon(d);
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
