/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a conversion. Whatever can be refused without writing is refused here, or by
 * the format's writer before its first byte.
 */
#include "reshape/plan.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "files/io.h"
#include "files/utf8.h"

enum { ROW_MOST = 64 << 20 }; /* bytes of one row that has to be in memory at once */

static bool is(const embla_format *format, const char *name)
{
    return strcmp(format->name, name) == 0;
}

static embla_role role_of(const embla_plan *w, const embla_entry *entry)
{
    return w->cp->roles[entry - w->cp->entries];
}

/* ---- which format ---- */

static bool ends(const char *text, const char *tail)
{
    size_t length = strlen(text), wanted = strlen(tail);
    return length > wanted && strcmp(text + length - wanted, tail) == 0;
}

static embla_status by_extension(const char *path, const embla_format **out)
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
                      "%.128s: its extension means no format: %s; or name the format", path, list);
}

/* ---- what is at the path ---- */

/* A name that is free, or a file that may be replaced. Links and devices never are: what
 * they stand for would not be replaced, or should not be. */
static embla_status check_place(const char *path, bool overwrite)
{
    struct stat found;
    int fd = -1;
    embla_status status = embla_io_open(AT_FDCWD, path, O_PATH | O_NOFOLLOW, 0, &fd);
    if (status == EMBLA_ERR_NOT_FOUND) return EMBLA_OK; /* a folder that is missing: D1 says so */
    EMBLA_TRY(status);
    status = embla_io_stat(fd, path, &found);
    embla_io_drop(fd);
    EMBLA_TRY(status);
    if (!S_ISREG(found.st_mode))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%.256s is %s: name a file to be written", path,
                          S_ISDIR(found.st_mode)   ? "a folder"
                          : S_ISLNK(found.st_mode) ? "a symbolic link"
                                                   : "a device or a pipe");
    if (!overwrite)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%.256s exists, %" PRId64 " bytes: it is replaced only if asked", path,
                          (int64_t)found.st_size);
    return EMBLA_OK;
}

/* "DIR/NAME.vocab.txt" for "DIR/NAME.ext", where embla_checkpoint_vocab looks for it. */
static embla_status name_beside(embla_plan *w)
{
    const char *slash = strrchr(w->path, '/'), *name = slash ? slash + 1 : w->path;
    const char *dot = strrchr(name, '.');
    size_t length = dot && dot > name ? (size_t)(dot - w->path) : strlen(w->path);
    size_t room = length + sizeof ".vocab.txt";
    void *memory = NULL;
    EMBLA_TRY(embla_arena_take(&w->arena, room, "a path", &memory));
    (void)snprintf(memory, room, "%.*s.vocab.txt", (int)length, w->path);
    w->beside = memory;
    return EMBLA_OK;
}

/* ---- which tensors ---- */

static bool is_table(embla_role role)
{
    return role == EMBLA_ROLE_TOKENS || role == EMBLA_ROLE_HEAD || role == EMBLA_ROLE_POSITIONS ||
           role == EMBLA_ROLE_PER_LAYER || role == EMBLA_ROLE_TOKENS_COPY ||
           role == EMBLA_ROLE_HEAD_COPY;
}

/* GGUF has names of its own for what the other formats call as they like. */
static const char *name_in_gguf(const embla_plan *w, const embla_entry *entry)
{
    static const struct {
        embla_role role;
        const char *name;
    } names[] = {{EMBLA_ROLE_TOKENS, "token_embd.weight"},
                 {EMBLA_ROLE_POSITIONS, "position_embd.weight"},
                 {EMBLA_ROLE_HEAD, "output.weight"},
                 {EMBLA_ROLE_HEAD_BIAS, "output.bias"},
                 {EMBLA_ROLE_PER_LAYER, "per_layer_token_embd.weight"}};
    embla_role role = entry == w->tokens ? EMBLA_ROLE_TOKENS : role_of(w, entry);
    const embla_entry *only = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].role != role) continue;
        if (entry == w->tokens) return names[i].name;
        bool alone = embla_checkpoint_entry(w->cp, role, &only, NULL) == EMBLA_OK && only == entry;
        return alone ? names[i].name : entry->name;
    }
    return entry->name;
}

/* Why a tensor does not go along; NULL if it does. */
static const char *left_out(const embla_plan *w, const embla_entry *entry)
{
    if (w->format->one_table) return entry == w->tokens ? NULL : "the format holds one table";
    if (w->options->tables_only && role_of(w, entry) == EMBLA_ROLE_NONE)
        return "not one of the tables";
    return NULL;
}

/* What a tensor is to be stored as. */
static embla_status choose_element(const embla_plan *w, const embla_entry *entry,
                                   const embla_element **out)
{
    bool vec = w->place == EMBLA_LABELS_VEC;
    embla_dtype dtype = vec ? EMBLA_F32 : w->options->dtype;
    *out = entry->element;
    if (vec && w->options->dtype != 0 && w->options->dtype != EMBLA_F32)
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%s holds f32 and nothing else, not %s",
                          w->format->name, embla_dtype_name(w->options->dtype));
    if (dtype == 0 || entry->element->dtype == dtype) return EMBLA_OK;
    if (entry != w->tokens && !is_table(role_of(w, entry))) return EMBLA_OK;
    if (entry->element->dtype == 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s' is %s, which cannot be decoded to be stored as %s",
                          entry->name, entry->element->name, embla_dtype_name(dtype));
    *out = embla_element_of(dtype);
    return EMBLA_OK;
}

/* Rows and their bytes, before and after; where they are tables they are counted. */
static embla_status measure(const embla_plan *w, embla_stream *s)
{
    const embla_entry *e = s->entry;
    bool recode = s->element != e->element;
    int64_t rows = 0;
    size_t dim = 0;
    uint64_t bytes = e->bytes;
    bool table = e == w->tokens || is_table(role_of(w, e));
    embla_status status = table ? embla_entry_shape(e, &rows, &dim) : EMBLA_ERR_SHAPE;
    if (recode || w->place == EMBLA_LABELS_VEC) EMBLA_TRY(status);
    table = status == EMBLA_OK;
    s->bytes = e->bytes;
    if (!table && !e->made) return EMBLA_OK;
    s->rows = table ? (uint64_t)rows : e->rank > 1 ? e->shape[0] : 1;
    if (s->rows == 0 || bytes == 0) return EMBLA_OK;
    if (bytes / s->rows > ROW_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s': a row of %" PRIu64 " bytes, above %d", e->name,
                          bytes / s->rows, (int)ROW_MOST);
    s->old_row = s->new_row = (size_t)(bytes / s->rows);
    s->by_rows = true;
    s->counted = table;
    s->dim = table ? dim : 0;
    if (!recode) return EMBLA_OK;
    if (embla_dtype_row_bytes(s->element->dtype, dim, &s->new_row) != EMBLA_OK)
        return embla_fail(
            EMBLA_ERR_SHAPE, "tensor '%.128s': rows of %zu numbers are not whole blocks of %s (%u)",
            e->name, dim, embla_dtype_name(s->element->dtype), (unsigned)s->element->block);
    if (!embla_mul_ok(s->rows, s->new_row, &s->bytes) || s->bytes > (uint64_t)INT64_MAX)
        return embla_fail(EMBLA_ERR_SHAPE, "tensor '%.128s' would be too long for a file", e->name);
    return EMBLA_OK;
}

/* One tensor that goes along: its stream, its part, its line. */
static embla_status add_part(embla_plan *w, const embla_entry *entry)
{
    embla_stream *s = &w->streams[w->count];
    embla_part *part = &w->parts[w->count];
    embla_account_line *line = &w->account->lines[entry - w->cp->entries];
    bool to_gguf = is(w->format, "gguf") && !is(w->cp->format, "gguf");
    *s = (embla_stream){.checkpoint = w->cp, .entry = entry, .line = line, .desk = &w->desk};
    EMBLA_TRY(choose_element(w, entry, &s->element));
    EMBLA_TRY(measure(w, s));
    s->plain_nan = w->text;
    embla_stream_begin(s);
    *part = (embla_part){.name = to_gguf ? name_in_gguf(w, entry) : entry->name,
                         .element = s->element,
                         .rank = entry->rank,
                         .bytes = s->bytes,
                         .read = embla_stream_read,
                         .context = s};
    memcpy(part->shape, entry->shape, sizeof part->shape);
    if (w->place == EMBLA_LABELS_VEC && part->rank == 1) { /* one row */
        part->shape[1] = part->shape[0];
        part->shape[0] = 1;
        part->rank = 2;
    }
    EMBLA_TRY(
        embla_arena_text(&w->account->arena, part->name, strlen(part->name), &line->new_name));
    line->new_type = s->element->name;
    line->table = s->counted;
    line->rows = line->new_rows = s->counted ? (int64_t)s->rows : 0;
    line->bytes = (int64_t)s->bytes;
    w->count++;
    return EMBLA_OK;
}

static embla_status collect_parts(embla_plan *w)
{
    const embla_checkpoint *cp = w->cp;
    void *parts = NULL, *streams = NULL;
    EMBLA_TRY(embla_arena_take(&w->arena, cp->count * sizeof *w->parts, "tensors", &parts));
    EMBLA_TRY(embla_arena_take(&w->arena, cp->count * sizeof *w->streams, "tensors", &streams));
    w->parts = parts;
    w->streams = streams;
    for (size_t i = 0; i < cp->count; i++) {
        const embla_entry *entry = &cp->entries[i];
        embla_account_line *line = &w->account->lines[i];
        EMBLA_TRY(
            embla_arena_text(&w->account->arena, entry->name, strlen(entry->name), &line->name));
        line->type = entry->element->name;
        line->why = left_out(w, entry);
    }
    /* Labels belong to the first part. */
    if (w->tokens && !left_out(w, w->tokens)) EMBLA_TRY(add_part(w, w->tokens));
    for (size_t i = 0; i < cp->count; i++)
        if (&cp->entries[i] != w->tokens && !w->account->lines[i].why)
            EMBLA_TRY(add_part(w, &cp->entries[i]));
    if (w->count > 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_NOT_FOUND,
                      "%.200s: none of its %zu tensors is known as a table: nothing to write",
                      cp->shown, cp->count);
}

/* ---- metadata ---- */

/* Whether the format can keep this text. */
static bool pair_fits(const embla_plan *w, const embla_pair *pair)
{
    static const char *const gguf_numbers[] = {"general.alignment", "tokenizer.ggml.tokens",
                                               "tokenizer.ggml.scores",
                                               "tokenizer.ggml.token_type"};
    size_t key = strlen(pair->key), value = strlen(pair->value);
    if (is(w->format, "gguf")) {
        bool fits = key > 0 && key < 65536 && strncmp(pair->key, "split.", 6) != 0;
        for (size_t i = 0; i < key; i++) fits = fits && (unsigned char)pair->key[i] < 0x80;
        for (size_t i = 0; i < sizeof gguf_numbers / sizeof gguf_numbers[0]; i++)
            fits = fits && strcmp(pair->key, gguf_numbers[i]) != 0;
        return fits;
    }
    return embla_utf8_valid((const uint8_t *)pair->key, key) == key &&
           embla_utf8_valid((const uint8_t *)pair->value, value) == value;
}

static embla_status collect_pairs(embla_plan *w)
{
    const embla_directory *first = &w->cp->shards[0].directory;
    bool safetensors = is(w->format, "safetensors"), has_format = false;
    size_t dropped = 0;
    void *memory = NULL;
    if (w->format->one_table || w->same_gguf) return EMBLA_OK; /* no place; copied anyway */
    EMBLA_TRY(embla_arena_take(&w->arena, (first->pair_count + 1) * sizeof *w->pairs, "metadata",
                               &memory));
    w->pairs = memory;
    for (size_t i = 0; i < first->pair_count; i++) {
        const embla_pair *pair = &first->pairs[i];
        bool fits = pair_fits(w, pair);
        /* What safetensors says of the program it was saved by means nothing elsewhere. */
        bool saver = strcmp(pair->key, "format") == 0;
        has_format = has_format || saver;
        dropped += !fits;
        if (fits && (safetensors || !saver)) w->pairs[w->pair_count++] = *pair;
    }
    /* Metadata without it is refused by a well-known reader of safetensors. */
    if (safetensors && w->pair_count > 0 && !has_format)
        w->pairs[w->pair_count++] = (embla_pair){"format", "pt"};
    if (dropped == 0) return EMBLA_OK;
    return embla_account_say(w->account, "%zu texts of its metadata cannot be in %s: left out",
                             dropped, w->format->name);
}

/* ---- words ---- */

/* Whether the words of the source are in the very file where those of the new one would be:
 * x.npy made of x.safetensors has the same x.vocab.txt. */
static embla_status shares_words(const embla_plan *w, bool *out)
{
    const char *paths[2] = {embla_vocab_source(w->labels.vocab), w->beside};
    int folders[2] = {w->cp->folder, AT_FDCWD};
    struct stat found[2];
    *out = false;
    for (int i = 0; i < 2; i++) {
        int fd = -1;
        embla_status status = embla_io_open(folders[i], paths[i], O_PATH, 0, &fd);
        if (status == EMBLA_ERR_NOT_FOUND) return EMBLA_OK;
        EMBLA_TRY(status);
        status = embla_io_stat(fd, paths[i], &found[i]);
        embla_io_drop(fd);
        EMBLA_TRY(status);
    }
    *out = found[0].st_dev == found[1].st_dev && found[0].st_ino == found[1].st_ino;
    return EMBLA_OK;
}

/* For formats that have no place for words: beside the file if they came with the source; of
 * a tokenizer that lies beside the source only a word is said. */
static embla_status place_beside(embla_plan *w)
{
    bool shared = false;
    if (!w->labels.own)
        return embla_account_say(w->account, "its words are those of %.256s: to be copied along",
                                 embla_vocab_source(w->labels.vocab));
    EMBLA_TRY(shares_words(w, &shared));
    w->words_beside = !shared;
    if (!shared) EMBLA_TRY(check_place(w->beside, w->options->overwrite));
    return embla_account_say(w->account, "its words are in %.256s", w->beside);
}

static embla_status collect_words(embla_plan *w)
{
    EMBLA_TRY(name_beside(w));
    if (!w->tokens || w->same_gguf) return EMBLA_OK;
    EMBLA_TRY(embla_labels_find(w->cp, w->tokens, &w->arena, w->account, &w->labels));
    if (w->place == EMBLA_LABELS_GGUF && w->tokens->rank != 2) w->labels.count = 0;
    if (w->place == EMBLA_LABELS_VEC || (w->place == EMBLA_LABELS_GGUF && w->labels.count > 0))
        return embla_labels_note(&w->labels, w->place, w->streams[0].rows, w->format->name,
                                 w->account);
    return w->place == EMBLA_LABELS_BESIDE && w->labels.count > 0 ? place_beside(w) : EMBLA_OK;
}

/* An old NAME.vocab.txt would be taken for the words of the new file. */
static embla_status warn_of_old_words(embla_plan *w)
{
    int fd = -1;
    if (w->labels.own || w->place != EMBLA_LABELS_BESIDE) return EMBLA_OK;
    embla_status status = embla_io_open(AT_FDCWD, w->beside, O_PATH | O_NOFOLLOW, 0, &fd);
    if (status == EMBLA_ERR_NOT_FOUND) return EMBLA_OK;
    EMBLA_TRY(status);
    embla_io_drop(fd);
    return embla_account_say(w->account, "%.256s was there before and will be taken for its words",
                             w->beside);
}

/* ---- all of it ---- */

static embla_status choose_format(embla_plan *w)
{
    if (w->options->to)
        EMBLA_TRY(embla_format_find(w->options->to, &w->format));
    else
        EMBLA_TRY(by_extension(w->path, &w->format));
    w->text = is(w->format, "word2vec") || is(w->format, "glove");
    w->place = w->text || is(w->format, "word2vec-bin") ? EMBLA_LABELS_VEC
               : is(w->format, "gguf")                  ? EMBLA_LABELS_GGUF
                                                        : EMBLA_LABELS_BESIDE;
    w->same_gguf = is(w->format, "gguf") && is(w->cp->format, "gguf");
    w->account->format = w->format->name;
    return check_place(w->path, w->options->overwrite);
}

embla_status embla_plan_make(embla_plan *w)
{
    EMBLA_TRY(choose_format(w));
    embla_status status = embla_checkpoint_entry(w->cp, EMBLA_ROLE_TOKENS, &w->tokens, NULL);
    if (w->format->one_table) EMBLA_TRY(status); /* others go without */
    EMBLA_TRY(collect_parts(w));
    EMBLA_TRY(collect_pairs(w));
    EMBLA_TRY(collect_words(w));
    EMBLA_TRY(warn_of_old_words(w));
    w->desk.meter.options = w->options;
    return embla_desk_new(&w->desk, w->streams, w->count);
}

void embla_plan_free(embla_plan *w)
{
    embla_desk_free(&w->desk);
    embla_labels_free(&w->labels);
    embla_arena_free(&w->arena);
}
