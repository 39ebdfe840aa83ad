/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the format of a file, or says what the file is instead; functions that all readers share.
 */
#include "formats/format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "files/protobuf.h"

#define LISTED(format) &embla_format_##format,
static const embla_format *const formats[] = {EMBLA_FORMATS(LISTED)};
enum { FORMATS = sizeof formats / sizeof formats[0], HEAD = 4096, PIECE = 1 << 20 };

const embla_format *embla_format_at(size_t n)
{
    return n < FORMATS ? formats[n] : NULL;
}

/* ---- files of no known format ---- */

static bool begins(const uint8_t *head, size_t have, const char *bytes, size_t length)
{
    return have >= length && memcmp(head, bytes, length) == 0;
}

/* True if there are no control characters except tab and line ends. */
static bool is_text(const uint8_t *head, size_t have)
{
    for (size_t i = 0; i < have; i++)
        if (head[i] < 0x20 && head[i] != '\t' && head[i] != '\n' && head[i] != '\r') return false;
    return have > 0;
}

/* True for UTF-8 of several lines or words without control characters. A character may be cut at
 * the end. */
static bool is_words(const uint8_t *head, size_t have)
{
    size_t at = 0, gaps = 0;
    for (size_t n; at < have && (n = embla_utf8_length(head + at, have - at)) > 0; at += n)
        gaps += head[at] == ' ' || head[at] == '\n';
    return is_text(head, have) && at + 3 >= have && gaps > 0;
}

/* True for "<!DOCTYPE html" or "<html", which a server may send instead of a file. */
static bool is_html(const uint8_t *head, size_t have)
{
    static const char *const marks[] = {"<!doctype html", "<html"};
    for (size_t m = 0; m < 2; m++) {
        size_t length = strlen(marks[m]), i = 0;
        if (have < length) continue;
        for (; i < length; i++) {
            uint8_t c = head[i] >= 'A' && head[i] <= 'Z' ? (uint8_t)(head[i] | 0x20) : head[i];
            if (c != (uint8_t)marks[m][i]) break;
        }
        if (i == length) return true;
    }
    return false;
}

/* True for the bytes 0x0a, length, 0x0a, length, piece, and the tag of the piece's score. */
bool embla_sentencepiece_sniff(const uint8_t *head, size_t have)
{
    embla_proto s = {head, have};
    embla_proto_tag outer, inner;
    if (!embla_proto_next(&s, &outer) || outer.field != 1 || outer.wire != 2) return false;
    if (!embla_proto_next(&s, &inner) || inner.field != 1 || inner.wire != 2) return false;
    return inner.length < outer.length && inner.length < s.left &&
           s.at[inner.length] == (2 << 3 | 5);
}

/* Describes a file of a well-known kind that is often opened by mistake; NULL if it is none. */
static const char *describe_known(const uint8_t *head, size_t have)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *what;
    } known[] = {
        {"%PDF-", 5, "a PDF document"},
        {"\x89PNG", 4, "a PNG image"},
        {"version https://git-lfs.github.com/spec/", 40,
         "a Git LFS pointer, download the file itself (git lfs pull)"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (begins(head, have, known[i].bytes, known[i].length)) return known[i].what;
    size_t at = begins(head, have, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (at < have &&
           (head[at] == ' ' || head[at] == '\n' || head[at] == '\r' || head[at] == '\t'))
        at++;
    if (is_html(head + at, have - at)) return "a web page";
    if (at < have && (head[at] == '{' || head[at] == '[') && is_text(head + at, have - at))
        return "JSON, a tokenizer or a configuration without weights";
    if (embla_sentencepiece_sniff(head, have))
        return "a SentencePiece model, which has words but no weights";
    return is_words(head + at, have - at)
               ? "a text, not a table; embla words and embla train learn a table from a text"
               : NULL;
}

/* Writes the names of all formats that can be read: "gguf, npy, ..". */
static const char *list_names(char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < FORMATS; i++) {
        if (formats[i] == &embla_format_pickle) continue;
        int more =
            snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", formats[i]->name);
        if (more > 0 && (size_t)more < size - used) used += (size_t)more;
    }
    return text;
}

static embla_status refuse(const embla_map *map, const uint8_t *head, size_t have)
{
    char shown[3 * 8 + 1] = "", names[192];
    const char *what = describe_known(head, have);
    (void)list_names(names, sizeof names);
    if (what)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: this is %s; supported formats: %s (C15)",
                          map->name, what, names);
    for (size_t i = 0; i < 8 && i < have; i++) (void)snprintf(shown + 3 * i, 4, "%02x ", head[i]);
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.200s: unknown format: %" PRIu64
                      " bytes that begin with %.*s; supported formats: %s (C15)",
                      map->name, map->size, (int)strlen(shown) - 1, shown, names);
}

embla_status embla_format_of(const embla_map *map, const embla_format **out)
{
    uint8_t head[HEAD];
    size_t have = map->size < HEAD ? (size_t)map->size : HEAD;
    EMBLA_TRY(embla_map_read(map, 0, have, head));
    for (size_t i = 0; i < FORMATS; i++) {
        if (!formats[i]->sniff(head, have, map->size)) continue;
        *out = formats[i];
        return EMBLA_OK;
    }
    return refuse(map, head, have);
}

embla_status embla_format_find(const char *name, const embla_format **out)
{
    char names[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < FORMATS; i++) {
        if (!formats[i]->write) continue;
        if (strcmp(formats[i]->name, name) == 0) {
            *out = formats[i];
            return EMBLA_OK;
        }
        int more = snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "",
                            formats[i]->name);
        if (more > 0 && (size_t)more < sizeof names - used) used += (size_t)more;
    }
    return embla_fail(EMBLA_ERR_NOT_FOUND,
                      "'%.64s' is not a format that can be written; these are: %s", name, names);
}

void embla_directory_free(embla_directory *directory)
{
    embla_arena_free(&directory->arena);
    *directory = (embla_directory){0};
}

embla_status embla_directory_add(embla_directory *directory, const char *name, size_t length,
                                 embla_entry **out)
{
    void *items = directory->entries;
    const char *copy = NULL;
    EMBLA_TRY(embla_arena_grow(&directory->arena, sizeof *directory->entries, directory->count,
                               "a list of tensors", &items, &directory->room));
    directory->entries = items;
    EMBLA_TRY(embla_arena_text(&directory->arena, name, length, &copy));
    *out = &directory->entries[directory->count++];
    **out = (embla_entry){.name = copy};
    return EMBLA_OK;
}

embla_status embla_directory_pair(embla_directory *directory, const char *key, size_t key_length,
                                  const char *value, size_t value_length)
{
    void *items = directory->pairs;
    embla_pair pair = {0};
    EMBLA_TRY(embla_arena_grow(&directory->arena, sizeof *directory->pairs, directory->pair_count,
                               "metadata", &items, &directory->pair_room));
    directory->pairs = items;
    EMBLA_TRY(embla_arena_text(&directory->arena, key, key_length, &pair.key));
    EMBLA_TRY(embla_arena_text(&directory->arena, value, value_length, &pair.value));
    directory->pairs[directory->pair_count++] = pair;
    return EMBLA_OK;
}

embla_status embla_directory_note(embla_directory *directory, const char *format, ...)
{
    void *items = (void *)(uintptr_t)directory->notes;
    char text[400];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    EMBLA_TRY(embla_arena_grow(&directory->arena, sizeof *directory->notes, directory->note_count,
                               "notes", &items, &directory->note_room));
    directory->notes = items;
    EMBLA_TRY(embla_arena_text(&directory->arena, text, strlen(text),
                               &directory->notes[directory->note_count]));
    directory->note_count++;
    return EMBLA_OK;
}

embla_status embla_entry_size(const embla_map *map, embla_entry *entry, const char *rule)
{
    uint64_t count = 1, bytes = 0;
    if (entry->rank > EMBLA_TENSOR_RANK_MAX)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' has %u dimensions, above %d (%s)", map->name,
                          entry->name, (unsigned)entry->rank, EMBLA_TENSOR_RANK_MAX, rule);
    for (uint32_t i = 0; i < entry->rank; i++)
        if (!embla_mul_ok(count, entry->shape[i], &count))
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: tensor '%.128s' is too large: the product of its %u "
                              "dimensions exceeds 64 bits (%s)",
                              map->name, entry->name, (unsigned)entry->rank, rule);
    if (!embla_element_bytes(entry->element, count, &bytes))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s': %" PRIu64 " numbers of type %s are not a whole "
                          "number of blocks, or too many (%s)",
                          map->name, entry->name, count, entry->element->name, rule);
    entry->bytes = bytes;
    return EMBLA_OK;
}

static embla_status copy_pieces(embla_durable *out, const embla_part *part, void *piece)
{
    for (uint64_t done = 0; done < part->bytes;) {
        size_t now = part->bytes - done < PIECE ? (size_t)(part->bytes - done) : PIECE;
        EMBLA_TRY(part->read(part->context, done, now, piece));
        EMBLA_TRY(embla_durable_write(out, piece, now));
        done += now;
    }
    return EMBLA_OK;
}

embla_status embla_part_write(embla_durable *out, const embla_part *part)
{
    size_t size = part->bytes < PIECE ? (size_t)part->bytes : PIECE;
    void *piece = NULL;
    EMBLA_TRY(embla_mem_new(size, "a piece of a tensor", &piece));
    embla_status status = copy_pieces(out, part, piece);
    embla_mem_free(piece, size);
    return status;
}
