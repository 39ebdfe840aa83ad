/* SPDX-License-Identifier: Apache-2.0 */
/* Pickles are recognised in order to be refused (rule P): a pickle is a program, and running
 * it is the only way to read it. No part of one is ever interpreted here, and no reader for
 * "the harmless opcodes" belongs here: that is how others were broken into twice.
 *
 * Asked before all other formats, so it must not take their files: a safetensors header of
 * 640 bytes begins 80 02 too, and so does a llama2.c model of dim 640. In those a byte
 * follows that begins no pickle, or the whole of the length and its brace. A wrong no is
 * harmless, since whoever says yes instead runs nothing either.
 * Zip archives are told apart by the names of their members, which are only looked at.
 */
#include <string.h>

#include "files/cursor.h"
#include "formats/format.h"

enum { MEMBERS_MOST = 64, MEMBER_HEAD = 30, NAME_MOST = 256 };

/* The number that torch's old files begin with, 0x1950a86a20f9469cfc6c, as a pickle of
 * protocol 2 and up writes it, and as protocol 0 and 1 do. */
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

/* A byte that stands for an instruction of a pickle. */
static bool is_opcode(uint8_t byte)
{
    static const char plain[] = "().012BCFGIJKLMNPQRSTUVX]abcdeghijlopqrstu}";
    return (byte >= 0x81 && byte <= 0x98) || (byte != 0 && strchr(plain, byte) != NULL);
}

/* A header length below 2^32 and the brace it counts from, or the spaces that lenient
 * allows before it. */
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

/* ---- what is in a zip ---- */

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

/* The member at offset, and where the next begins: 0 if that cannot be told from here
 * (lengths that follow the data, or are of 64 bits), or if there is none. */
static embla_status look_at_member(const embla_map *map, uint64_t offset, archive *out,
                                   uint64_t *next)
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
    bool said = (head[6] & 8) == 0 && bytes != UINT32_MAX;
    if (said && bytes + after < left) *next = offset + MEMBER_HEAD + after + bytes;
    return EMBLA_OK;
}

static embla_status refuse_zip(const embla_map *map)
{
    archive found = {.arrays = true};
    uint64_t next = 0;
    for (int i = 0; i < MEMBERS_MOST && !found.pickle; i++) {
        EMBLA_TRY(look_at_member(map, next, &found, &next));
        if (next == 0) break;
    }
    if (found.pickle)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: pickle checkpoint refused: a pickle is a program; convert it to "
                          "safetensors in a sandbox (P)",
                          map->name);
    if (found.arrays && found.first[0] != '\0')
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: npz refused, a zip of arrays such as '%.128s'; save one array "
                          "as .npy (N6)",
                          map->name, found.first);
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "%.200s: zip archive refused, its first member is '%.128s'; take out the "
                      "file that holds the tensors (P)",
                      map->name, found.first);
}

static embla_status read_file(embla_map *map, const embla_open_options *options,
                              embla_directory *out)
{
    uint8_t head[4];
    (void)options;
    out->format = "pickle";
    if (map->size >= sizeof head) {
        EMBLA_TRY(embla_map_read(map, 0, sizeof head, head));
        if (is_zip(head, sizeof head)) return refuse_zip(map);
    }
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "%.200s: pickle checkpoint refused: a pickle is a program; convert it to "
                      "safetensors in a sandbox (P)",
                      map->name);
}

const embla_format embla_format_pickle = {.name = "pickle", .sniff = sniff, .read = read_file};
