/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a checkpoint: a file, a folder, shards listed by an index, or a GGUF in several files.
 *
 * A shard's name comes from a file, so it must be a plain name in the same folder, and symbolic
 * links are not followed. A path that the user typed may contain links. A failure frees all that
 * was opened before.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/options.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/pack_manifest.h"
#include "files/io.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"

enum { CONFIG_MOST = 4 << 20, CONFIG_DEPTH = 64, INDEX_MOST = 64000000, NAME_MOST = 255 };

/* Makes the name of a file for messages: "FOLDER/name", or only the name in the current folder. */
static embla_status make_shown(embla_checkpoint *cp, const char *name, const char **out)
{
    size_t folder = strcmp(cp->folder_name, ".") == 0 ? 0 : strlen(cp->folder_name);
    size_t length = strlen(name);
    void *memory = NULL;
    EMBLA_TRY(embla_arena_take(&cp->arena, folder + length + 2, "a path", &memory));
    char *text = memory;
    memcpy(text, cp->folder_name, folder);
    if (folder > 0 && text[folder - 1] != '/') text[folder++] = '/';
    memcpy(text + folder, name, length + 1);
    *out = text;
    return EMBLA_OK;
}

/* Reads one more file of the checkpoint. Messages call it name; opened is the name it is opened
 * by, which differs for a link. All files must have the format of the first. */
static embla_status add_file(embla_checkpoint *cp, const char *name, const char *opened,
                             bool follow, const embla_open_options *options)
{
    embla_shard *shard = &cp->shards[cp->shard_count];
    const embla_format *format = NULL;
    const char *shown = NULL;
    EMBLA_TRY(make_shown(cp, name, &shown));
    EMBLA_TRY(embla_map_open(cp->folder, opened, shown, follow, &shard->map));
    cp->shard_count++; /* from now on it is freed with the checkpoint */
    EMBLA_TRY(embla_format_of(shard->map, &format));
    if (cp->format && cp->format != format)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s has the format %s, but the files before it have %s", shown,
                          format->name, cp->format->name);
    cp->format = format;
    EMBLA_TRY(format->read(shard->map, options, &shard->directory));
    if (format == &embla_format_safetensors)
        EMBLA_TRY(embla_pack_check(&shard->directory, shard->map->name));
    cp->copy = cp->copy || shard->map->others_write;
    return EMBLA_OK;
}

static embla_status new_shards(embla_checkpoint *cp, size_t count)
{
    return embla_arena_many(&cp->arena, count, sizeof *cp->shards, "a list of files", &cp->shards);
}

/* Reads all bytes of a small file into the arena. */
static embla_status read_whole(embla_checkpoint *cp, const char *name, size_t most,
                               const char *rule, const char **shown, const char **out, size_t *size)
{
    embla_map *map = NULL;
    void *memory = NULL;
    EMBLA_TRY(make_shown(cp, name, shown));
    EMBLA_TRY(embla_map_open(cp->folder, name, *shown, true, &map));
    embla_status status = EMBLA_OK;
    if (map->size > most)
        status = embla_fail(EMBLA_ERR_FORMAT, "%.200s has %" PRIu64 " bytes; the limit is %zu (%s)",
                            *shown, map->size, most, rule);
    else
        status = embla_arena_take(&cp->arena, (size_t)map->size, *shown, &memory);
    if (status == EMBLA_OK) status = embla_map_read(map, 0, (size_t)map->size, memory);
    *size = (size_t)map->size;
    embla_map_free(map);
    *out = memory;
    return status;
}

/* ---- shards ---- */

/* A shard may be a link only as download caches make them: to ../../blobs/HEX. Returns the name
 * to open: that target, which must not be a link itself, or the shard's own name. */
static const char *resolve_link(embla_folder folder, const char *name, char target[160])
{
    static const char before[] = "../../blobs/";
    size_t front = sizeof before - 1, length = embla_io_link(folder, name, target, 160);
    if (length < front + 40 || length > front + 64 || memcmp(target, before, front) != 0)
        return name;
    return strspn(target + front, "0123456789abcdef") == length - front ? target : name;
}

static embla_status open_index(embla_checkpoint *cp, const char *name,
                               const embla_open_options *options)
{
    embla_shard_index index = {0};
    const char *shown = NULL, *bytes = NULL;
    size_t size = 0;
    EMBLA_TRY(read_whole(cp, name, INDEX_MOST, "S13", &shown, &bytes, &size));
    EMBLA_TRY(embla_safetensors_index(bytes, size, shown, &cp->arena, &index));
    EMBLA_TRY(new_shards(cp, index.shard_count));
    for (size_t i = 0; i < index.shard_count; i++) {
        const char *shard = index.shards[i];
        char target[160];
        EMBLA_TRY(add_file(cp, shard, resolve_link(cp->folder, shard, target), false, options));
        if (cp->format != &embla_format_safetensors)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: shard %.128s has the format %s, not safetensors (S13)",
                              shown, shard, cp->format->name);
    }
    if (cp->shard_count == 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s lists no shards (S13)", shown);
    return embla_safetensors_index_check(&index, shown, cp->shards, &cp->shards[0].directory);
}

/* Opens the other files of a split GGUF, whose first file is open. */
static embla_status open_splits(embla_checkpoint *cp, const char *name,
                                const embla_open_options *options)
{
    embla_shard *first = cp->shards;
    unsigned number, count;
    uint64_t tensors, found = first->directory.count;
    EMBLA_TRY(embla_gguf_split(&first->directory, first->map, &number, &count, &tensors));
    if (count <= 1) return EMBLA_OK;
    if (number != 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s is file %u of %u; open the first file (G13)",
                          first->map->name, number + 1, count);
    embla_shard only = *first;
    EMBLA_TRY(new_shards(cp, count));
    cp->shards[0] = only;
    for (unsigned i = 1; i < count; i++) {
        char sibling[256], target[160];
        unsigned its_number, its_count;
        uint64_t its_tensors;
        EMBLA_TRY(embla_gguf_split_name(name, i, count, sibling));
        EMBLA_TRY(add_file(cp, sibling, resolve_link(cp->folder, sibling, target), false, options));
        const embla_shard *shard = &cp->shards[i];
        EMBLA_TRY(
            embla_gguf_split(&shard->directory, shard->map, &its_number, &its_count, &its_tensors));
        if (its_number != i || its_count != count)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s is file %u of %u according to its keys, but %u of %u "
                              "according to its name (G13)",
                              shard->map->name, its_number + 1, its_count, i + 1, count);
        found += shard->directory.count;
    }
    if (found != tensors)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: its %u files have %" PRIu64
                          " tensors, but split.tensors.count is %" PRIu64 " (G13)",
                          first->map->name, count, found, tensors);
    return EMBLA_OK;
}

static embla_status open_file(embla_checkpoint *cp, const char *name,
                              const embla_open_options *options)
{
    static const char index[] = ".index.json";
    size_t length = strlen(name);
    if (length > sizeof index - 1 && strcmp(name + length - (sizeof index - 1), index) == 0)
        return open_index(cp, name, options);
    EMBLA_TRY(new_shards(cp, 1));
    EMBLA_TRY(add_file(cp, name, name, true, options));
    return cp->format == &embla_format_gguf ? open_splits(cp, name, options) : EMBLA_OK;
}

/* ---- folders ---- */

/* Kinds of files in a folder, in order of preference: a file of the lowest kind is opened. */
typedef enum { INDEX, MODEL, SAFETENSORS, GGUF, PICKLE, NOTHING } kind;

typedef struct {
    kind best;
    size_t count; /* files of that kind */
    char name[NAME_MOST + 1], second[NAME_MOST + 1];
} listing;

static bool ends(const char *name, const char *tail)
{
    size_t length = strlen(name), wanted = strlen(tail);
    return length >= wanted && strcmp(name + length - wanted, tail) == 0;
}

/* True for a file of a split GGUF that is not the first: "..-00002-of-00005.gguf". */
static bool is_later_split(const char *name)
{
    static const char form[] = "-00000-of-00000.gguf";
    size_t length = strlen(name), tail = sizeof form - 1;
    if (length < tail) return false;
    name += length - tail;
    for (size_t i = 0; i < tail; i++)
        if (form[i] == '0' ? name[i] < '0' || name[i] > '9' : name[i] != form[i]) return false;
    return memcmp(name + 1, "00001", 5) != 0;
}

static kind kind_of(const char *name)
{
    if (name[0] == '.') return NOTHING;
    if (ends(name, ".safetensors.index.json")) return INDEX;
    if (strcmp(name, "model.safetensors") == 0) return MODEL;
    if (ends(name, ".safetensors")) return SAFETENSORS;
    if (ends(name, ".gguf")) return is_later_split(name) ? NOTHING : GGUF;
    if (ends(name, ".pt") || ends(name, ".pth") || ends(name, ".ckpt") || ends(name, ".pkl") ||
        strncmp(name, "pytorch_model", 13) == 0)
        return ends(name, ".json") ? NOTHING : PICKLE;
    return NOTHING;
}

static embla_status count_entry(void *context, const char *name)
{
    listing *l = context;
    kind k = kind_of(name);
    size_t length = strlen(name);
    if (k == NOTHING || k > l->best || length > NAME_MOST) return EMBLA_OK;
    if (k < l->best) l->count = 0;
    l->best = k;
    memcpy(l->count++ == 0 ? l->name : l->second, name, length + 1);
    return EMBLA_OK;
}

static embla_status open_folder(embla_checkpoint *cp, const embla_open_options *options)
{
    listing l = {.best = NOTHING};
    EMBLA_TRY(embla_io_list(cp->folder, cp->folder_name, count_entry, &l));
    if (l.best == NOTHING) {
        /* sentence-transformers keeps a static model and its words in a subfolder */
        static const char inside[] = "0_StaticEmbedding";
        embla_folder inner = EMBLA_NO_FILE;
        if (embla_io_open(cp->folder, inside, EMBLA_OPEN_FOLDER, 0, &inner) == EMBLA_OK) {
            EMBLA_TRY(make_shown(cp, inside, &cp->folder_name));
            embla_io_drop(cp->folder);
            cp->folder = inner;
            return open_file(cp, "model.safetensors", options);
        }
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "%.200s has no .safetensors or .gguf file; open one of its files by name",
                          cp->folder_name);
    }
    if (l.count > 1 && l.best != PICKLE)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "%.128s has %zu model files, for example %.100s and %.100s; open one "
                          "of them by name",
                          cp->folder_name, l.count, l.name, l.second);
    return open_file(cp, l.name, options);
}

/* ---- config.json, and the list of all tensors ---- */

static embla_status note(embla_checkpoint *cp, const char *text)
{
    void *items = (void *)(uintptr_t)cp->notes;
    EMBLA_TRY(embla_arena_grow(&cp->arena, sizeof *cp->notes, cp->note_count, "notes", &items,
                               &cp->note_room));
    cp->notes = items;
    EMBLA_TRY(embla_arena_text(&cp->arena, text, strlen(text), &cp->notes[cp->note_count]));
    cp->note_count++;
    return EMBLA_OK;
}

/* A config.json that is not valid, or that this user may not read, is ignored with a note: the
 * tensors can still be used. A failing disk is an error, because the next attempt may succeed and
 * give another result. */
static embla_status read_config(embla_checkpoint *cp)
{
    const char *shown = NULL, *bytes = NULL;
    size_t size = 0;
    if (cp->format->one_table) return EMBLA_OK;
    embla_status status = read_whole(cp, "config.json", CONFIG_MOST, "T1", &shown, &bytes, &size);
    if (status == EMBLA_ERR_NOT_FOUND) return EMBLA_OK;
    if (status == EMBLA_OK)
        status = embla_json_read(bytes, size, shown, CONFIG_DEPTH, "T1", &cp->config);
    bool denied = status == EMBLA_ERR_IO && !embla_io_readable(cp->folder, "config.json");
    if (status != EMBLA_ERR_FORMAT && status != EMBLA_ERR_UNSUPPORTED && !denied) return status;
    char text[512];
    (void)snprintf(text, sizeof text, "config.json is not used: %.400s", embla_error());
    return note(cp, text);
}

static embla_status list_tensors(embla_checkpoint *cp)
{
    size_t all = 0, at = 0;
    embla_arena *arena = &cp->arena;
    for (size_t i = 0; i < cp->shard_count; i++) all += cp->shards[i].directory.count;
    EMBLA_TRY(embla_arena_many(arena, all, sizeof *cp->entries, "tensors", &cp->entries));
    EMBLA_TRY(embla_arena_many(arena, all, sizeof *cp->roles, "tensors", &cp->roles));
    EMBLA_TRY(embla_arena_many(arena, all, sizeof *cp->whys, "tensors", &cp->whys));
    EMBLA_TRY(embla_arena_many(arena, all, sizeof *cp->names, "tensors", &cp->names));
    cp->count = all;
    for (size_t i = 0; i < cp->shard_count; i++) {
        const embla_directory *directory = &cp->shards[i].directory;
        for (size_t k = 0; k < directory->count; k++, at++) {
            cp->entries[at] = directory->entries[k];
            cp->entries[at].file = (uint32_t)i;
            cp->names[at] = (embla_name){.bytes = directory->entries[k].name,
                                         .length = (uint32_t)strlen(directory->entries[k].name),
                                         .number = (uint32_t)at};
        }
    }
    EMBLA_TRY(embla_names_sort(&cp->arena, cp->names, all, &cp->index));
    const embla_name *twice = embla_names_twice(&cp->index);
    if (twice)
        return embla_fail(
            EMBLA_ERR_FORMAT, "%.200s: two of its %zu files have a tensor '%.128s' (%s)", cp->shown,
            cp->shard_count, twice->bytes, cp->format == &embla_format_gguf ? "G13" : "S13");
    return EMBLA_OK;
}

/* ---- the path ---- */

/* Splits "FILE::TENSOR" at the last "::", unless there is a file with the whole name. */
static embla_status split_path(embla_checkpoint *cp, const char *path)
{
    const char *mark = NULL;
    for (const char *at = strstr(path, "::"); at; at = strstr(at + 1, "::")) mark = at;
    if (mark && mark > path && mark[2] != '\0') {
        embla_handle handle = -1;
        if (embla_io_open(EMBLA_HERE, path, EMBLA_OPEN_READ, 0, &handle) == EMBLA_OK) {
            embla_io_drop(handle);
            mark = NULL;
        }
    } else {
        mark = NULL;
    }
    size_t length = mark ? (size_t)(mark - path) : strlen(path);
    EMBLA_TRY(embla_arena_text(&cp->arena, path, length, &cp->shown));
    return mark ? embla_arena_text(&cp->arena, mark + 2, strlen(mark + 2), &cp->chosen) : EMBLA_OK;
}

/* Whether a path could be the name of a model elsewhere, such as "openai-community/gpt2": at most
 * one slash, and no extension of letters. */
static bool is_model_name(const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *slash = strchr(path, '/'), *last = slash ? slash + 1 : path;
    const char *dot = strrchr(last, '.');
    if (*path == '.' || slash == path || *last == '.' || *last == '\0') return false;
    if (slash && strspn(path, plain) != (size_t)(slash - path)) return false;
    return last[strspn(last, plain)] == '\0' && (!dot || strpbrk(dot, "0123456789"));
}

embla_status embla_open_named(const char *path, embla_handle *handle)
{
    char said[256];
    embla_status status = embla_io_open(EMBLA_HERE, path, EMBLA_OPEN_READ, 0, handle);
    if (status != EMBLA_ERR_NOT_FOUND || !is_model_name(path)) return status;
    (void)snprintf(said, sizeof said, "%.255s", embla_error());
    return embla_fail(status,
                      "%s. Embla downloads nothing: get the model first, for example with 'hf "
                      "download %.80s --local-dir %.80s', then name its folder",
                      said, path, path);
}

/* Opens the folder that the path names, or the folder of the file that it names. *name is the
 * file's name, or NULL for a folder. */
static embla_status find_folder(embla_checkpoint *cp, const char **name)
{
    const char *slash = embla_io_slash(cp->shown);
    size_t length = slash ? (size_t)(slash - cp->shown) : 0;
    embla_file_facts found;
    embla_handle handle = -1;
    EMBLA_TRY(embla_open_named(cp->shown, &handle));
    embla_status status = embla_io_facts(handle, cp->shown, &found);
    if (status == EMBLA_OK && found.kind == EMBLA_IS_FOLDER) {
        cp->folder = handle;
        cp->folder_name = cp->shown;
        *name = NULL;
        return EMBLA_OK;
    }
    embla_io_drop(handle);
    EMBLA_TRY(status);
    if (slash == cp->shown) length = 1;
    EMBLA_TRY(slash ? embla_arena_text(&cp->arena, cp->shown, length, &cp->folder_name)
                    : embla_arena_text(&cp->arena, ".", 1, &cp->folder_name));
    *name = slash ? slash + 1 : cp->shown;
    const char *dot = strrchr(*name, '.');
    size_t stem = dot && dot > *name ? (size_t)(dot - *name) : strlen(*name);
    EMBLA_TRY(embla_arena_text(&cp->arena, *name, stem, &cp->stem));
    /* to open a file, its folder need not be readable */
    return embla_io_open(EMBLA_HERE, cp->folder_name, EMBLA_OPEN_FOLDER, 0, &cp->folder);
}

static embla_status open_all(embla_checkpoint *cp, const char *path,
                             const embla_open_options *options)
{
    const char *name = NULL;
    EMBLA_TRY(split_path(cp, path));
    EMBLA_TRY(find_folder(cp, &name));
    EMBLA_TRY(name ? open_file(cp, name, options) : open_folder(cp, options));
    EMBLA_TRY(read_config(cp));
    return embla_checkpoint_finish(cp);
}

embla_status embla_checkpoint_begin(embla_checkpoint **out)
{
    embla_arena arena = {0};
    void *memory = NULL;
    EMBLA_TRY(embla_arena_take(&arena, sizeof(embla_checkpoint), "a checkpoint", &memory));
    embla_checkpoint *cp = memory;
    cp->arena = arena;
    cp->folder = -1;
    *out = cp;
    return EMBLA_OK;
}

embla_status embla_checkpoint_finish(embla_checkpoint *cp)
{
    EMBLA_TRY(list_tensors(cp));
    EMBLA_TRY(embla_roles_find(cp));
    return embla_checkpoint_list(cp);
}

embla_status embla_checkpoint_open(const char *path, const embla_open_options *options,
                                   embla_checkpoint **out)
{
    EMBLA_TRY(embla_options_check(options));
    const embla_open_options defaults = {0};
    embla_checkpoint *cp = NULL;
    EMBLA_NEED(path);
    EMBLA_NEED(out);
    if (!options) options = &defaults;
    EMBLA_TRY(embla_checkpoint_begin(&cp));
    cp->copy = options->copy;
    embla_status status = open_all(cp, path, options);
    if (status != EMBLA_OK) {
        embla_checkpoint_free(cp);
        return status;
    }
    *out = cp;
    return EMBLA_OK;
}
