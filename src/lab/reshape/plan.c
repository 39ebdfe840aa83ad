/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the plan of a conversion. What can be refused without writing is refused here, or by the
 * format's writer before its first byte.
 */
#include "reshape/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "files/io.h"

enum {
    ROW_MOST = 64 << 20 /* bytes of one row, which is in memory as a whole */
};

static embla_role role_of(const embla_plan *w, const embla_entry *entry)
{
    return w->cp->roles[entry - w->cp->entries];
}

/* ---- the format ---- */

static bool ends(const char *text, const char *tail)
{
    size_t length = strlen(text), wanted = strlen(tail);
    return length > wanted && strcmp(text + length - wanted, tail) == 0;
}

static embla_status format_by_extension(const char *path, const embla_format **out)
{
    char list[256] = "";
    size_t used = 0;
    const embla_format *format;
    for (size_t i = 0; (format = embla_format_at(i)); i++) {
        if (!format->write || !format->extension) continue;
        if (ends(path, format->extension)) {
            *out = format;
            return EMBLA_OK;
        }
        int more = snprintf(list + used, sizeof list - used, "%s%s (%s)", used > 0 ? ", " : "",
                            format->extension, format->name);
        if (more > 0 && (size_t)more < sizeof list - used) used += (size_t)more;
    }
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%.128s: unknown file extension; use one of %s, or name the format%s", path,
                      list, ends(path, ".bin") ? ", such as word2vec-bin," : "");
}

/* ---- tensors ---- */

static bool is_table(embla_role role)
{
    return role == EMBLA_ROLE_TOKENS || role == EMBLA_ROLE_HEAD || role == EMBLA_ROLE_POSITIONS ||
           role == EMBLA_ROLE_PER_LAYER || role == EMBLA_ROLE_TOKENS_COPY ||
           role == EMBLA_ROLE_HEAD_COPY;
}

/* The name of a tensor in the new file. A format may prescribe the names of tables, heads and
 * positions; a source of the same format has them already. */
static const char *new_name(const embla_plan *w, const embla_entry *entry)
{
    embla_role role = entry == w->tokens ? EMBLA_ROLE_TOKENS : role_of(w, entry);
    bool alone = entry == w->tokens || (w->role_count[role] == 1 && role != EMBLA_ROLE_TOKENS);
    const char *name = NULL;
    if (alone && w->format->tensor_name && w->format != w->cp->format)
        name = w->format->tensor_name(role);
    return name ? name : entry->name;
}

/* The reason why a tensor is left out; NULL if it is written. */
static const char *reason_left_out(const embla_plan *w, const embla_entry *entry)
{
    if (w->format->one_table) return entry == w->tokens ? NULL : "the format holds one table";
    if (w->options->tables_only && role_of(w, entry) == EMBLA_ROLE_NONE)
        return "not one of the tables";
    return NULL;
}

/* The last format in the list that holds many tensors, also of this type. */
static const char *format_with(const embla_element *element)
{
    const embla_format *format;
    const char *name = "no format";
    for (size_t i = 0; (format = embla_format_at(i)); i++)
        if (format->write && !format->one_table && format->holds && format->holds(element))
            name = format->name;
    return name;
}

/* Refuses a type that the format lacks; the message names a format that has it. */
static embla_status check_type(const embla_plan *w, const embla_entry *entry,
                               const embla_element *element)
{
    if (!w->format->holds || w->format->holds(element)) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "tensor '%.128s' is %s, which %s does not have; %s has %s (%s)%s",
                      entry->name, element->name, w->format->name, format_with(element),
                      element->name, w->format->type_rule,
                      w->format->one_table && element->dtype != 0 ? "; or convert it to f32" : "");
}

/* Chooses the type that a tensor is written as. */
static embla_status choose_element(const embla_plan *w, const embla_entry *entry,
                                   const embla_element **out)
{
    embla_dtype only = w->format->only, dtype = only != 0 ? only : w->options->dtype;
    *out = entry->element;
    if (only != 0 && w->options->dtype != 0 && w->options->dtype != only)
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%s can hold only %s, not %s", w->format->name,
                          embla_dtype_name(only), embla_dtype_name(w->options->dtype));
    if (dtype == 0 || entry->element->dtype == dtype) return EMBLA_OK;
    if (entry != w->tokens && !is_table(role_of(w, entry))) return EMBLA_OK;
    if (entry->element->dtype == 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s' is %s, which cannot be decoded, so it cannot be stored "
                          "as %s",
                          entry->name, entry->element->name, embla_dtype_name(dtype));
    if (dtype == EMBLA_I8 || dtype == EMBLA_F4_E2M1)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s': %s needs a separate scale, which no format can store; "
                          "use %s, which has its own scales",
                          entry->name, embla_dtype_name(dtype),
                          dtype == EMBLA_I8 ? "q8_0" : "nvfp4");
    if (!embla_dtype_writes(dtype))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s' cannot be stored as %s: %s can be read but not written",
                          entry->name, embla_dtype_name(dtype), embla_dtype_name(dtype));
    *out = embla_element_of(dtype);
    return EMBLA_OK;
}

/* Computes rows and bytes of a row, before and after. Rows of tables are counted in the account. */
static embla_status measure(const embla_plan *w, embla_stream *s)
{
    const embla_entry *e = s->entry;
    bool recode = s->element != e->element;
    int64_t rows = 0;
    size_t dim = 0;
    uint64_t bytes = e->bytes;
    bool table = e == w->tokens || is_table(role_of(w, e));
    embla_status status = table ? embla_entry_shape(e, &rows, &dim) : EMBLA_ERR_SHAPE;
    if (recode || w->format->labels == EMBLA_LABELS_ROWS) EMBLA_TRY(status);
    table = status == EMBLA_OK;
    s->bytes = e->bytes;
    if (!table && !e->made) return EMBLA_OK;
    s->rows = table ? (uint64_t)rows : e->rank > 1 ? e->shape[0] : 1;
    if (s->rows == 0 || bytes == 0) return EMBLA_OK;
    /* Rows of types below a byte (F4) need not be whole bytes; they are copied unchanged. */
    if (bytes < s->rows || bytes % s->rows != 0) return EMBLA_OK;
    if (bytes / s->rows > ROW_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s': a row has %" PRIu64 " bytes; the limit is %d", e->name,
                          bytes / s->rows, (int)ROW_MOST);
    s->old_row = s->new_row = (size_t)(bytes / s->rows);
    s->by_rows = true;
    s->counted = table;
    s->dim = table ? dim : 0;
    if (w->options->rows > 0 && (uint64_t)w->options->rows < s->rows) {
        s->rows = (uint64_t)w->options->rows;
        s->bytes = s->rows * s->new_row;
    }
    if (!recode) return EMBLA_OK;
    if (embla_dtype_row_bytes(s->element->dtype, dim, &s->new_row) != EMBLA_OK)
        return embla_fail(
            EMBLA_ERR_SHAPE,
            "tensor '%.128s': rows of %zu numbers are not whole blocks of %s (%u); f16, bf16 and "
            "f8_e4m3 have no blocks",
            e->name, dim, embla_dtype_name(s->element->dtype), (unsigned)s->element->block);
    if (!embla_mul_ok(s->rows, s->new_row, &s->bytes) || s->bytes > (uint64_t)INT64_MAX)
        return embla_fail(EMBLA_ERR_SHAPE, "tensor '%.128s' would be too large for a file",
                          e->name);
    return EMBLA_OK;
}

/* Adds a tensor that is written: its stream, its part and its line in the account. */
static embla_status add_part(embla_plan *w, const embla_entry *entry)
{
    embla_stream *s = &w->streams[w->count];
    embla_part *part = &w->parts[w->count];
    embla_account_line *line = &w->account->lines[entry - w->cp->entries];
    *s = (embla_stream){.checkpoint = w->cp, .entry = entry, .line = line, .buffers = &w->buffers};
    EMBLA_TRY(choose_element(w, entry, &s->element));
    EMBLA_TRY(measure(w, s));
    EMBLA_TRY(check_type(w, entry, s->element));
    s->plain_nan = w->format->decimals;
    embla_stream_begin(s);
    *part = (embla_part){.name = new_name(w, entry),
                         .element = s->element,
                         .rank = entry->rank,
                         .bytes = s->bytes,
                         .read = embla_stream_read,
                         .context = s};
    memcpy(part->shape, entry->shape, sizeof part->shape);
    const uint64_t all = part->shape[0];
    if (s->counted && part->rank > 1) part->shape[0] = s->rows;
    if (w->format->labels == EMBLA_LABELS_ROWS && part->rank == 1) { /* one row */
        part->shape[1] = part->shape[0];
        part->shape[0] = 1;
        part->rank = 2;
    }
    EMBLA_TRY(
        embla_arena_text(&w->account->arena, part->name, strlen(part->name), &line->new_name));
    line->new_type = s->element->name;
    line->table = s->counted;
    line->new_rows = s->counted ? (int64_t)s->rows : 0;
    line->rows = s->counted && part->rank > 1 ? (int64_t)all : line->new_rows;
    line->bytes = (int64_t)s->bytes;
    w->count++;
    return EMBLA_OK;
}

static embla_status collect_parts(embla_plan *w)
{
    const embla_checkpoint *cp = w->cp;
    EMBLA_TRY(embla_arena_many(&w->arena, cp->count, sizeof *w->parts, "tensors", &w->parts));
    EMBLA_TRY(embla_arena_many(&w->arena, cp->count, sizeof *w->streams, "tensors", &w->streams));
    for (size_t i = 0; i < cp->count; i++) {
        const embla_entry *entry = &cp->entries[i];
        embla_account_line *line = &w->account->lines[i];
        EMBLA_TRY(
            embla_arena_text(&w->account->arena, entry->name, strlen(entry->name), &line->name));
        line->type = entry->element->name;
        line->why = reason_left_out(w, entry);
    }
    /* Labels belong to the first part. */
    if (w->tokens && !reason_left_out(w, w->tokens)) EMBLA_TRY(add_part(w, w->tokens));
    for (size_t i = 0; i < cp->count; i++)
        if (&cp->entries[i] != w->tokens && !w->account->lines[i].why)
            EMBLA_TRY(add_part(w, &cp->entries[i]));
    if (w->count > 0) return EMBLA_OK;
    if (cp->count == 0)
        return embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s: there is nothing to write: no tensors",
                          cp->shown);
    return embla_fail(EMBLA_ERR_NOT_FOUND,
                      "%.200s: there is nothing to write: none of its %zu tensors has a name known "
                      "for a table",
                      cp->shown, cp->count);
}

/* The option dtype changes only tables; without a known table it would do nothing. */
static embla_status need_table(const embla_plan *w)
{
    bool known = w->tokens != NULL;
    for (size_t i = 0; !known && i < w->cp->count; i++) known = is_table(w->cp->roles[i]);
    if (known || w->options->dtype == 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_NOT_FOUND,
                      "%.200s has no known table, and only tables can change their dtype; choose a "
                      "tensor with 'FILE::TENSOR'",
                      w->cp->shown);
}

/* The option rows cuts one table; other tensors would no longer fit it. */
static embla_status check_rows(const embla_plan *w)
{
    const embla_convert_options *o = w->options;
    if (o->rows < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "rows is %" PRId64 "; it must be at least 0",
                          o->rows);
    if (o->rows == 0) return EMBLA_OK;
    if (w->count != 1 || w->mapping)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: only one table can be cut to %" PRId64
                          " rows, but %zu tensors are written%s; choose one with 'FILE::TENSOR'",
                          w->cp->shown, o->rows, w->count,
                          w->mapping ? " and tokens share rows" : "");
    if (!w->streams[0].counted || w->copies_keys)
        return embla_fail(
            EMBLA_ERR_UNSUPPORTED, "tensor '%.128s' cannot be cut to %" PRId64 " rows: %s",
            w->streams[0].entry->name, o->rows,
            w->copies_keys ? "a copy in the same format keeps all words; write another format"
                           : "it is no table");
    return EMBLA_OK;
}

/* Finds Model2Vec's mapping of tokens to rows, which only formats of many tensors can store. */
static embla_status find_mapping(embla_plan *w)
{
    const embla_checkpoint *cp = w->cp;
    bool other = cp->chosen && w->tokens && strcmp(w->tokens->name, "embeddings") != 0;
    for (size_t i = 0; i < cp->count; i++) {
        w->role_count[cp->roles[i]]++;
        if (w->tokens && !other && cp->roles[i] == EMBLA_ROLE_MAPPING && cp->entries[i].rank == 1)
            w->mapping = &cp->entries[i];
    }
    if (!w->mapping || !w->tokens || w->copies_keys || w->format->mapping) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "%.200s: %" PRIu64 " tokens share %" PRIu64
                      " rows through '%.128s', which %s cannot store; safetensors can",
                      cp->shown, w->mapping->shape[0], w->tokens->shape[0], w->mapping->name,
                      w->format->name);
}

/* ---- metadata ---- */

/* True if a pair names the program that wrote the file, in the old format or in the new one. */
static bool is_saver(const embla_plan *w, const embla_pair *pair)
{
    const embla_pair *theirs = w->cp->format->saver, *ours = w->format->saver;
    return (theirs && strcmp(pair->key, theirs->key) == 0) ||
           (ours && strcmp(pair->key, ours->key) == 0);
}

static size_t count_unlisted(const embla_plan *w, const embla_directory *directory)
{
    return w->cp->format->unlisted_keys ? w->cp->format->unlisted_keys(directory) : 0;
}

/* Counts the metadata of all files after the first that is lost. The first file's metadata is
 * written; an equal pair at the same index in another file is not lost. */
static size_t count_later_keys(const embla_plan *w)
{
    const embla_directory *first = &w->cp->shards[0].directory;
    size_t lost = 0;
    for (size_t i = 1; i < w->cp->shard_count; i++) {
        const embla_directory *d = &w->cp->shards[i].directory;
        lost += count_unlisted(w, d);
        for (size_t k = 0; k < d->pair_count; k++)
            lost += !is_saver(w, &d->pairs[k]) &&
                    (k >= first->pair_count || strcmp(d->pairs[k].key, first->pairs[k].key) != 0 ||
                     strcmp(d->pairs[k].value, first->pairs[k].value) != 0);
    }
    return lost;
}

/* "true" or "false" if config.json has the tie flag; otherwise NULL. */
static const char *tie_flag(const embla_plan *w)
{
    const char *flag = w->cp->config && w->has_tie ? w->tie.flag : NULL;
    if (flag && ends(flag, " = true")) return "true";
    return flag && ends(flag, " = false") ? "false" : NULL;
}

/* config.json is not copied. Only its tie flag, which a table needs, is written as metadata. */
static embla_status copy_tie_flag(embla_plan *w)
{
    const char *flag = tie_flag(w);
    const embla_pair pair = {"tie_word_embeddings", flag ? flag : "true"};
    bool present = false;
    if (!w->cp->config || !w->elsewhere || !w->format->keeps || !w->format->keeps(&pair, 0, 0))
        return EMBLA_OK;
    if (!flag && !embla_checkpoint_text(w->cp, "model_type")) return EMBLA_OK;
    for (size_t i = 0; i < w->pair_count; i++)
        present = present || strcmp(w->pairs[i].key, pair.key) == 0;
    if (flag && !present && !w->copies_keys) w->pairs[w->pair_count++] = pair;
    return embla_account_note(w->account, w->format->config
                                              ? "config.json is not copied; copy it yourself"
                                              : "config.json is not copied; only its tie flag "
                                                "becomes a key of the file");
}

/* Copies the pairs of the source's first file that the format keeps; returns how many are lost. */
static size_t copy_pairs(embla_plan *w, bool *saved)
{
    const embla_directory *first = &w->cp->shards[0].directory;
    size_t lost = 0, bytes = 0;
    for (size_t i = 0; i < first->pair_count; i++) {
        const embla_pair *pair = &first->pairs[i];
        if (is_saver(w, pair) && !w->format->saver) continue;
        *saved = *saved || is_saver(w, pair);
        if (w->format->keeps && w->format->keeps(pair, w->pair_count, bytes)) {
            bytes += strlen(pair->key) + strlen(pair->value);
            w->pairs[w->pair_count++] = *pair;
        } else {
            lost++;
        }
    }
    return lost;
}

static embla_status collect_pairs(embla_plan *w)
{
    const embla_directory *first = &w->cp->shards[0].directory;
    bool saved = false;
    size_t lost = count_later_keys(w);
    EMBLA_TRY(embla_arena_many(&w->arena, first->pair_count + 2, sizeof *w->pairs, "metadata",
                               &w->pairs));
    if (!w->copies_keys) lost += count_unlisted(w, first) + copy_pairs(w, &saved);
    EMBLA_TRY(copy_tie_flag(w));
    if (w->format->saver && w->pair_count > 0 && !saved)
        w->pairs[w->pair_count++] = *w->format->saver;
    if (lost == 0) return EMBLA_OK;
    return embla_account_note(w->account, "%zu of the keys of its metadata %s left out", lost,
                              lost == 1 ? "is" : "are");
}

/* ---- folder and tie ---- */

/* Finds out whether path is in another folder than the source, whose other files are not copied. */
static embla_status find_folder(embla_plan *w)
{
    const char *slash = embla_io_slash(w->path);
    size_t length = slash ? (size_t)(slash - w->path) + 1 : 1;
    embla_file_facts theirs, ours;
    bool there = false;
    const char *name = NULL;
    w->elsewhere = true;
    if (w->cp->folder < 0) return EMBLA_OK;
    EMBLA_TRY(embla_arena_text(&w->arena, slash ? w->path : ".", length, &name));
    EMBLA_TRY(embla_durable_facts(EMBLA_HERE, name, true, &ours, &there));
    if (!there) return EMBLA_OK; /* embla_durable_open reports that */
    EMBLA_TRY(embla_io_facts(w->cp->folder, w->cp->folder_name, &theirs));
    w->elsewhere = !embla_same_file(theirs.id, ours.id);
    return EMBLA_OK;
}

/* Finds the tie of the source, to compare it with the new file's. */
static embla_status find_tie(embla_plan *w)
{
    if (w->format->one_table) return EMBLA_OK; /* such a file has no head */
    embla_status status = embla_checkpoint_tie(w->cp, EMBLA_TIE_SAMPLE, &w->tie);
    if (status == EMBLA_ERR_MEMORY || status == EMBLA_ERR_IO) return status;
    w->has_tie = status == EMBLA_OK;
    return EMBLA_OK;
}

/* ---- the whole plan ---- */

static embla_status choose_format(embla_plan *w)
{
    if (w->options->to)
        EMBLA_TRY(embla_format_find(w->options->to, &w->format));
    else
        EMBLA_TRY(format_by_extension(w->path, &w->format));
    w->copies_keys = w->format->copies_keys && w->format == w->cp->format;
    w->account->format = w->format->name;
    return embla_durable_target(w->path, w->options->overwrite);
}

embla_status embla_plan_make(embla_plan *w)
{
    EMBLA_TRY(choose_format(w));
    embla_status status = embla_checkpoint_entry(w->cp, EMBLA_ROLE_TOKENS, &w->tokens, NULL);
    if (w->format->one_table) EMBLA_TRY(status); /* other formats do not need a token table */
    EMBLA_TRY(find_mapping(w));
    EMBLA_TRY(need_table(w));
    EMBLA_TRY(find_folder(w));
    EMBLA_TRY(collect_parts(w));
    EMBLA_TRY(check_rows(w));
    EMBLA_TRY(find_tie(w));
    EMBLA_TRY(collect_pairs(w));
    EMBLA_TRY(embla_plan_words(w));
    w->buffers.meter.options = w->options;
    return embla_stream_buffers_new(&w->buffers, w->streams, w->count);
}

void embla_plan_free(embla_plan *w)
{
    embla_stream_buffers_free(&w->buffers);
    embla_labels_free(&w->labels);
    embla_arena_free(&w->arena);
}
