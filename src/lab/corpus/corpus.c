/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a corpus. The files of a text are read whole; a file of tokens is mapped. corpus_text.c and
 * corpus_tokens.c make tokens of them.
 *
 * For a folder, the sizes of all files are found first, so that memory is allocated once. A file
 * whose size has changed by the time it is read is refused.
 */
#include "corpus/corpus.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/options.h"
#include "files/io.h"
#include "files/names.h"

enum { FILES_MOST = 1 << 20 }; /* files of a folder */

/* ---- the handle ---- */

void embla_corpus_free(embla_corpus *corpus)
{
    if (!corpus) return;
    embla_map_free(corpus->map);
    embla_mem_free(corpus->held, corpus->held_bytes);
    embla_arena_free(&corpus->arena);
    embla_mem_free(corpus, sizeof *corpus);
}

embla_status embla_corpus_new(const embla_corpus_options *options, embla_corpus **out)
{
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(sizeof(embla_corpus), "a corpus", &memory));
    embla_corpus *c = memory;
    c->options = *options;
    c->documents = c->width = 1;
    c->bos = -1;
    *out = c;
    return EMBLA_OK;
}

embla_status embla_corpus_split(embla_corpus *c, const char *name)
{
    double share = c->options.validation;
    uint64_t all = c->starts ? c->documents : c->count, least = c->starts ? 1 : 2;
    if (share == 0 && !c->starts) share = 0.1;
    c->train = share > 0 ? (uint64_t)((1 - share) * (double)all) : all;
    if (c->train < least)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%.256s is too short: of its %" PRIu64 " %s, %" PRIu64
                          " are left for training after %g are set aside for validation; at least "
                          "%" PRIu64 " are needed",
                          name, all, c->starts ? "documents" : "tokens", c->train,
                          share > 0 ? share : 0, least);
    return EMBLA_OK;
}

/* ---- reading texts ---- */

/* The files that are read: one file, or those of a folder. */
typedef struct {
    embla_arena arena;
    const char *path;
    size_t count;
    embla_corpus_part *parts;
    void *bytes;
    size_t size;
} files;

/* Gets the size of an open file, which must be a regular one. */
static embla_status get_size(embla_handle file, const char *name, embla_file_facts *found,
                             uint64_t *out)
{
    EMBLA_TRY(embla_io_facts(file, name, found));
    if (found->kind != EMBLA_REGULAR_FILE)
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%.256s is %s, not a file of text", name,
                          found->kind == EMBLA_IS_FOLDER ? "a folder"
                          : found->kind == EMBLA_IS_PIPE ? "a pipe"
                                                         : "a device or socket");
    *out = found->size;
    return EMBLA_OK;
}

static embla_status read_file(embla_handle file, const char *name, uint64_t size, uint8_t *out)
{
    size_t got = 0;
    EMBLA_TRY(embla_io_pread(file, name, 0, (size_t)size, out, &got));
    if (got < size)
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s was truncated while it was read: it had %" PRIu64
                          " bytes and now has %zu",
                          name, size, got);
    return EMBLA_OK;
}

static embla_status allocate_bytes(files *f, uint64_t size)
{
    if (!embla_size_ok(size, &f->size))
        return embla_fail(EMBLA_ERR_MEMORY, "out of memory for %" PRIu64 " bytes of text", size);
    return size > 0 ? embla_mem_new(f->size, "a text", &f->bytes) : EMBLA_OK;
}

/* The names of a folder's files. */
typedef struct {
    embla_arena *arena;
    const char *path;
    embla_name *names;
    size_t count, room;
} listing;

static embla_status add_name(void *context, const char *name)
{
    listing *l = context;
    void *list = l->names;
    const char *copy = NULL;
    if (name[0] == '.') return EMBLA_OK;
    if (l->count == FILES_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%.256s has more than %d files", l->path,
                          FILES_MOST);
    EMBLA_TRY(embla_arena_text(l->arena, name, strlen(name), &copy));
    EMBLA_TRY(
        embla_arena_grow(l->arena, sizeof *l->names, l->count, "names of files", &list, &l->room));
    l->names = list;
    l->names[l->count] = (embla_name){copy, (uint32_t)strlen(copy), (uint32_t)l->count};
    l->count++;
    return EMBLA_OK;
}

embla_status embla_text_list(embla_folder folder, const char *path, embla_arena *arena,
                             embla_names *out)
{
    listing l = {.arena = arena, .path = path};
    EMBLA_TRY(embla_io_list(folder, path, add_name, &l));
    return embla_names_sort(arena, l.names, l.count, out);
}

static embla_status list_folder(files *f, embla_folder folder)
{
    embla_names sorted = {0};
    EMBLA_TRY(embla_text_list(folder, f->path, &f->arena, &sorted));
    f->count = sorted.count;
    if (f->count == 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s is a folder without files", f->path);
    EMBLA_TRY(
        embla_arena_many(&f->arena, f->count, sizeof *f->parts, "files of a folder", &f->parts));
    for (size_t i = 0; i < f->count; i++) f->parts[i].name = sorted.sorted[i]->bytes;
    return EMBLA_OK;
}

/* Gets the size of a file of a folder and, if out is not NULL, reads its bytes. Links are not
 * followed, so every file is in the folder. */
static embla_status read_entry(embla_folder folder, const char *name, uint64_t *size, uint8_t *out)
{
    embla_file_facts found;
    uint64_t now = 0;
    embla_handle file = -1;
    EMBLA_TRY(embla_io_open(folder, name, EMBLA_OPEN_READ | EMBLA_OPEN_NO_LINK, 0, &file));
    embla_status status = get_size(file, name, &found, &now);
    if (status == EMBLA_OK && out && now != *size)
        status = embla_fail(EMBLA_ERR_IO,
                            "%.256s was changed while it was read: it had %" PRIu64
                            " bytes and now has %" PRIu64,
                            name, *size, now);
    if (status == EMBLA_OK && out) status = read_file(file, name, now, out);
    if (status == EMBLA_OK) *size = now;
    embla_io_drop(file);
    return status;
}

/* Finds all sizes first, so that memory is allocated once. Files are opened one at a time. */
static embla_status read_folder(files *f, embla_folder folder)
{
    uint64_t all = 0, size = 0;
    EMBLA_TRY(list_folder(f, folder));
    for (size_t i = 0; i < f->count; i++) {
        EMBLA_TRY(read_entry(folder, f->parts[i].name, &size, NULL));
        if (!embla_add_ok(all, size, &all) || all > PTRDIFF_MAX)
            return embla_fail(EMBLA_ERR_MEMORY, "out of memory for the text of %zu files",
                              f->count);
        f->parts[i].end = (size_t)all;
    }
    EMBLA_TRY(allocate_bytes(f, all));
    for (size_t i = 0; i < f->count && f->size > 0; i++) {
        size_t from = i > 0 ? f->parts[i - 1].end : 0;
        size = f->parts[i].end - from;
        EMBLA_TRY(read_entry(folder, f->parts[i].name, &size, (uint8_t *)f->bytes + from));
    }
    return EMBLA_OK;
}

/* Adds the folder's name to the front of the message. */
static embla_status fail_in_folder(embla_status status, const char *path)
{
    char sentence[512];
    (void)snprintf(sentence, sizeof sentence, "%s", embla_error());
    return strncmp(sentence, path, strlen(path)) == 0
               ? status
               : embla_fail(status, "%.256s: %s", path, sentence);
}

static embla_status read_text(files *f, embla_handle file, bool *folder)
{
    embla_file_facts found;
    uint64_t size = 0;
    embla_status status = get_size(file, f->path, &found, &size);
    *folder = status == EMBLA_ERR_UNSUPPORTED && found.kind == EMBLA_IS_FOLDER;
    if (*folder) return read_folder(f, file);
    EMBLA_TRY(status);
    if (size == 0) return embla_fail(EMBLA_ERR_FORMAT, "%.256s is empty: it has 0 bytes", f->path);
    f->count = 1;
    EMBLA_TRY(embla_arena_many(&f->arena, 1, sizeof *f->parts, "a file", &f->parts));
    EMBLA_TRY(allocate_bytes(f, size));
    f->parts[0] = (embla_corpus_part){f->path, f->size};
    return read_file(file, f->path, size, f->bytes);
}

embla_status embla_text_read(const char *path, embla_text_user *use, void *context)
{
    files f = {.path = path};
    bool folder = false;
    embla_handle file = -1;
    EMBLA_TRY(embla_io_open(EMBLA_HERE, path, EMBLA_OPEN_READ, 0, &file));
    embla_status status = read_text(&f, file, &folder);
    embla_io_drop(file);
    if (status == EMBLA_OK)
        status = use(context, f.bytes, f.size, f.parts, f.count);
    else
        embla_mem_free(f.bytes, f.size);
    embla_arena_free(&f.arena);
    return status != EMBLA_OK && folder ? fail_in_folder(status, path) : status;
}

typedef struct {
    const embla_corpus_options *options;
    embla_corpus **out;
} opening;

static embla_status make_corpus(void *context, void *bytes, size_t size,
                                const embla_corpus_part *parts, size_t count)
{
    const opening *o = context;
    return o->options->kind == EMBLA_CORPUS_TOKENIZER
               ? embla_corpus_of_tokenizer(bytes, size, parts, count, o->options, o->out)
               : embla_corpus_of_text(bytes, size, parts, count, o->options, o->out);
}

static embla_status open_text(const char *path, const embla_corpus_options *options,
                              embla_corpus **out)
{
    opening o = {options, out};
    return embla_text_read(path, make_corpus, &o);
}

/* ---- opening ---- */

static embla_status open_tokens(const char *path, const embla_corpus_options *options,
                                embla_corpus **out)
{
    embla_map *map = NULL;
    EMBLA_TRY(embla_map_open(EMBLA_HERE, path, path, true, &map));
    return embla_corpus_of_map(map, options, out);
}

embla_status embla_corpus_open(const char *path, const embla_corpus_options *options,
                               embla_corpus **out)
{
    EMBLA_TRY(embla_options_check(options));
    static const embla_corpus_options plain = {0};
    if (!options) options = &plain;
    EMBLA_NEED(path);
    EMBLA_NEED(out);
    if ((unsigned)options->kind > EMBLA_CORPUS_TOKENIZER)
        return embla_fail(EMBLA_ERR_ARGUMENT, "kind is %d; it must be 0 to %d", (int)options->kind,
                          (int)EMBLA_CORPUS_TOKENIZER);
    if ((options->kind == EMBLA_CORPUS_TOKENIZER) != (options->tokenizer != NULL))
        return embla_fail(EMBLA_ERR_ARGUMENT, "tokenizer is %s, but kind is %d",
                          options->tokenizer ? "set" : "NULL", (int)options->kind);
    if (options->max_words < 0 || options->max_words > EMBLA_CORPUS_WORDS_MOST ||
        (options->max_words > 0 && options->kind != EMBLA_CORPUS_WORDS))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "words is %" PRId64 "; it must be 0 to %d, and 0 unless tokens are words",
                          options->max_words, (int)EMBLA_CORPUS_WORDS_MOST);
    if (!(options->validation < 1))
        return embla_fail(EMBLA_ERR_ARGUMENT, "validation is %g; it must be below 1",
                          options->validation);
    if (options->kind != EMBLA_CORPUS_TOKENS) return open_text(path, options, out);
    if (options->documents)
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "%.256s: a file of tokens cannot be split into documents; only lines of a "
            "text can",
            path);
    return open_tokens(path, options, out);
}
