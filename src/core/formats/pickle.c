/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises pickles in order to refuse them (rule P). A pickle is a program, and the only way to
 * read it is to run it. Nothing in a pickle is interpreted here. Do not add a reader for "the
 * harmless opcodes": that is how other loaders were exploited, twice.
 *
 * This format is tried before all others, so it must not accept their files. A safetensors header
 * of 640 bytes also begins with 80 02, and so does a llama2.c model of dim 640. There the next
 * byte is not an opcode, or a header length and a brace follow. To miss a pickle is harmless,
 * because no other reader runs anything. Zip archives are distinguished by the names of their
 * members.
 */
#include <string.h>

#include "files/cursor.h"
#include "formats/format.h"

enum { MEMBERS_MOST = 64, MEMBER_HEAD = 30, NAME_MOST = 256, GENSIM_HEAD = 512 };

/* The magic number of torch's old files, 0x1950a86a20f9469cfc6c, as pickle protocol 2 and later
 * writes it, and as protocols 0 and 1 write it. */
static const uint8_t torch_long[] = {0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                                     0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
static const char torch_text[] = "L119547037146038801333356L\n";

static bool begins(const uint8_t *head, size_t have, const void *with, size_t length)
{
    return have >= length && memcmp(head, with, length) == 0;
}

static bool is_zip(const uint8_t *head, size_t have)
{
    return begins(head, have, "PK\x03\x04", 4);
}

/* True if the byte is an opcode of a pickle. */
static bool is_opcode(uint8_t byte)
{
    static const char plain[] = "().012BCFGIJKLMNPQRSTUVX]abcdeghijlopqrstu}";
    return (byte >= 0x81 && byte <= 0x98) || (byte != 0 && strchr(plain, byte) != NULL);
}

/* True for a header length below 2^32 that is followed by a brace, or by the spaces that the
 * option lenient allows before it. */
static bool is_safetensors(const uint8_t *head, size_t have)
{
    return have >= 9 && embla_le32(head + 4) == 0 && head[8] != 0 &&
           strchr("{ \t\r\n", head[8]) != NULL;
}

static bool is_pickle(const uint8_t *head, size_t have)
{
    if (begins(head, have, torch_text, sizeof torch_text - 1) ||
        begins(head, have, torch_long, sizeof torch_long))
        return true;
    if (have < 2 || head[0] != 0x80 || head[1] < 2 || head[1] > 5) return false;
    return have == 2 || (is_opcode(head[2]) && !is_safetensors(head, have));
}

static bool sniff(const uint8_t *head, size_t have, uint64_t size)
{
    (void)size;
    return is_zip(head, have) || is_pickle(head, have);
}

/* ---- zip archives ---- */

typedef struct {
    char first[NAME_MOST + 1]; /* name of the first member */
    bool pickle;               /* some name ends with .pkl */
    bool arrays;               /* all names end with .npy */
} archive;

static bool ends(const char *name, size_t length, const char *with)
{
    size_t tail = strlen(with);
    return length >= tail && memcmp(name + length - tail, with, tail) == 0;
}

/* Reads the name of the member at offset. *next is the offset of the next member, or 0: there is
 * none, or its offset is unknown (lengths that follow the data, or have 64 bits). */
static embla_status read_member(const embla_map *map, uint64_t offset, archive *out, uint64_t *next)
{
    uint8_t head[MEMBER_HEAD];
    char name[NAME_MOST + 1] = "";
    *next = 0;
    if (map->size - offset < MEMBER_HEAD) return EMBLA_OK;
    EMBLA_TRY(embla_map_read(map, offset, sizeof head, head));
    uint64_t length = embla_le16(head + 26), left = map->size - offset - MEMBER_HEAD;
    if (!is_zip(head, 4) || length > left) return EMBLA_OK;
    size_t have = length < NAME_MOST ? (size_t)length : NAME_MOST;
    EMBLA_TRY(embla_map_read(map, offset + MEMBER_HEAD, have, name));
    if (out->first[0] == '\0') memcpy(out->first, name, sizeof name);
    if (ends(name, have, ".pkl")) out->pickle = true;
    out->arrays = out->arrays && ends(name, have, ".npy");
    uint64_t bytes = embla_le32(head + 18), after = length + embla_le16(head + 28);
    bool known = (head[6] & 8) == 0 && bytes != UINT32_MAX;
    if (known && bytes + after < left) *next = offset + MEMBER_HEAD + after + bytes;
    return EMBLA_OK;
}

static embla_status refuse_zip(const embla_map *map)
{
    archive found = {.arrays = true};
    uint64_t next = 0;
    for (int i = 0; i < MEMBERS_MOST && !found.pickle; i++) {
        EMBLA_TRY(read_member(map, next, &found, &next));
        if (next == 0) break;
    }
    if (found.pickle)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: this is a pickle, which can run any program when it is loaded; "
                          "convert it to safetensors in a sandbox (P)",
                          map->name);
    if (found.arrays && found.first[0] != '\0')
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: this is an npz archive of arrays such as '%.128s', which is not "
                          "supported; save one array as .npy (N6)",
                          map->name, found.first);
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "%.200s: this is a zip archive (its first member is '%.128s'), which is not "
                      "supported; extract the file with the tensors (P)",
                      map->name, found.first);
}

/* Whether a pickle is one of gensim's: its classes are named near the beginning. */
static embla_status is_gensim(const embla_map *map, bool *out)
{
    static const char mark[] = "gensim.models";
    char head[GENSIM_HEAD];
    const char *dot = strrchr(map->name, '.');
    size_t have = map->size < sizeof head ? (size_t)map->size : sizeof head;
    EMBLA_TRY(embla_map_read(map, 0, have, head));
    *out = dot && strcmp(dot, ".kv") == 0;
    for (size_t i = 0; i + sizeof mark - 1 <= have && !*out; i++)
        *out = memcmp(head + i, mark, sizeof mark - 1) == 0;
    return EMBLA_OK;
}

static embla_status read_file(embla_map *map, const embla_open_options *options,
                              embla_directory *out)
{
    uint8_t head[4];
    bool gensim = false;
    (void)options;
    out->format = "pickle";
    if (map->size >= sizeof head) {
        EMBLA_TRY(embla_map_read(map, 0, sizeof head, head));
        if (is_zip(head, sizeof head)) return refuse_zip(map);
    }
    EMBLA_TRY(is_gensim(map, &gensim));
    if (gensim)
        return embla_fail(
            EMBLA_ERR_UNSUPPORTED,
            "%.200s: this is a pickle of gensim, which can run any program when it is "
            "loaded; if you trust it, load it with gensim in Python and convert it "
            "with embla.gensim.from_gensim (P)",
            map->name);
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "%.200s: this is a pickle, which can run any program when it is loaded; "
                      "convert it to safetensors in a sandbox (P)",
                      map->name);
}

const embla_format embla_format_pickle = {.name = "pickle", .sniff = sniff, .read = read_file};
