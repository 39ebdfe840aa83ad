/* SPDX-License-Identifier: Apache-2.0 */
/* A file of tokens that another program wrote: a shard of llm.c, or a one-dimensional .npy.
 *
 * The file is mapped and used in place. It is scanned once: the highest token gives the size of the
 * vocabulary, and an invalid token is found here rather than in the middle of a training run.
 */
#include <string.h>

#include "corpus/corpus.h"
#include "files/cursor.h"
#include "files/packed.h"
#include "formats/format.h"

enum {
    WINDOW = 1 << 20,      /* bytes scanned at a time */
    LLMC_HEADER = 256 * 4, /* bytes before the tokens of llm.c */
    LLMC_U16 = 20240520,   /* with version 1: GPT-2's tokens */
    LLMC_U32 = 20240801,   /* with version 7: Llama 3's tokens */
    LLMC_MODEL = 20240326,
    TOKEN_MOST = INT32_MAX - 1 /* the highest token; the vocabulary's size is one more */
};

/* Offset, number and width in bytes of a file's tokens. */
typedef struct {
    uint64_t offset, count;
    unsigned width;
} layout;

static embla_status llmc_layout(const embla_map *map, const uint8_t *head, layout *out)
{
    uint32_t magic = embla_le32(head), version = embla_le32(head + 4);
    unsigned width = magic == LLMC_U16 ? 2 : 4;
    uint32_t wanted = width == 2 ? 1 : 7;
    uint64_t count = embla_le32(head + 8), bytes = (map->size - LLMC_HEADER) / width;
    if (version != wanted)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: version %" PRIu32 " of llm.c's tokens is not supported; %" PRIu32
                          " is",
                          map->name, version, wanted);
    if (count != bytes || (map->size - LLMC_HEADER) % width != 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the header counts %" PRIu64 " tokens of %u bytes, but %" PRIu64
                          " bytes follow it",
                          map->name, count, width, map->size - LLMC_HEADER);
    *out = (layout){LLMC_HEADER, count, width};
    return EMBLA_OK;
}

static embla_status npy_layout(embla_map *map, const embla_format *npy, layout *out)
{
    embla_directory directory = {0};
    embla_status status = npy->read(map, NULL, &directory);
    const embla_entry *e = directory.entries;
    if (status == EMBLA_OK) {
        const char *type = e->element->name;
        bool read =
            strcmp(type, "U16") == 0 || strcmp(type, "U32") == 0 || strcmp(type, "I32") == 0;
        if (!read || e->made || e->rank != 1)
            status = embla_fail(EMBLA_ERR_UNSUPPORTED,
                                "%.256s: the array is %s with %" PRIu32
                                " dimensions%s; tokens must be u2, u4 or i4 with 1 dimension, "
                                "little-endian",
                                map->name, type, e->rank, e->made ? ", big-endian" : "");
        else
            *out = (layout){e->offset, e->shape[0], e->element->block_bits / 8};
    }
    embla_arena_free(&directory.arena);
    return status;
}

static embla_status find_layout(embla_map *map, const uint8_t *head, uint64_t have, layout *out)
{
    const embla_format *npy = NULL;
    uint32_t magic = have >= 4 ? embla_le32(head) : 0;
    EMBLA_TRY(embla_format_find("npy", &npy));
    EMBLA_TRY(embla_packed_check(map->name, head, (size_t)have, true));
    if (npy->sniff(head, (size_t)have, map->size)) return npy_layout(map, npy, out);
    if (have >= LLMC_HEADER && (magic == LLMC_U16 || magic == LLMC_U32))
        return llmc_layout(map, head, out);
    return embla_fail(
        EMBLA_ERR_FORMAT, "%.256s (%" PRIu64 " bytes, beginning with %" PRIu32 ") is %s", map->name,
        map->size, magic,
        magic == LLMC_MODEL ? "a model of llm.c, not a file of tokens"
                            : "neither a file of llm.c's tokens nor .npy; open a text "
                              "as characters or bytes");
}

/* Finds the highest token. It reads with pread, so a truncated file raises no signal. */
static embla_status find_highest(const embla_map *map, const layout *l, embla_cursor *c,
                                 uint32_t *highest)
{
    embla_cursor_begin(c, map, l->offset);
    for (uint64_t done = 0; done < l->count;) {
        const uint8_t *p = NULL;
        uint64_t have = 0, left = (l->count - done) * l->width;
        EMBLA_TRY(embla_cursor_peek(c, left < WINDOW ? left : WINDOW, &p, &have));
        size_t count = (size_t)(have / l->width);
        for (size_t i = 0; i < count; i++) {
            uint32_t token = l->width == 2 ? embla_le16(p + 2 * i) : embla_le32(p + 4 * i);
            if (token > TOKEN_MOST)
                return embla_fail(EMBLA_ERR_FORMAT,
                                  "%.256s: token %" PRIu64 " is 0x%08" PRIx32
                                  "; tokens must be 0 to %d",
                                  map->name, done + i, token, (int)TOKEN_MOST);
            if (token > *highest) *highest = token;
        }
        EMBLA_TRY(embla_cursor_skip(c, (uint64_t)count * l->width, "tokens"));
        done += count;
    }
    return EMBLA_OK;
}

static embla_status open_map(embla_corpus *c, embla_cursor *cursor)
{
    layout l = {0};
    const uint8_t *head = NULL;
    uint64_t have = 0;
    uint32_t highest = 0;
    embla_cursor_begin(cursor, c->map, 0);
    EMBLA_TRY(embla_cursor_peek(cursor, 4096, &head, &have));
    EMBLA_TRY(find_layout(c->map, head, have, &l));
    embla_cursor_end(cursor);
    EMBLA_TRY(find_highest(c->map, &l, cursor, &highest));
    c->at = c->map->bytes + l.offset;
    c->count = l.count;
    c->width = l.width;
    c->vocab = (int64_t)highest + 1;
    return embla_corpus_split(c, c->map->name);
}

embla_status embla_corpus_of_map(embla_map *map, const embla_corpus_options *options,
                                 embla_corpus **out)
{
    embla_corpus *c = NULL;
    embla_cursor cursor = {0};
    embla_status status = embla_corpus_new(options, &c);
    if (status != EMBLA_OK) {
        embla_map_free(map);
        return status;
    }
    c->map = map;
    status = open_map(c, &cursor);
    embla_cursor_end(&cursor);
    if (status != EMBLA_OK) {
        embla_corpus_free(c);
        return status;
    }
    *out = c;
    return EMBLA_OK;
}
