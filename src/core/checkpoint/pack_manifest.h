/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a pack: what its pages contain, and the hasher of its table. docs/formats.md
 * describes the file, rules K1 to K8.
 *
 * A pack is a safetensors file. The manifest is the text of the metadata key "embla.pack", and
 * "embla.pack.checksum" is its checksum. The manifest has the checksums of the lists (fold, index,
 * order); those of rows and bundles are in a tensor. Version 1 had only the latter.
 */
#ifndef EMBLA_CHECKPOINT_PACK_MANIFEST_H
#define EMBLA_CHECKPOINT_PACK_MANIFEST_H

#include "base/checksum.h"
#include "checkpoint/checkpoint.h"

enum {
    EMBLA_PACK_VERSION = 2, /* that is written; 1 is read too */
    EMBLA_PACK_PAGE = 4096,
    EMBLA_PACK_NUMBER = 8,       /* bytes of the row number before each row of a bundle */
    EMBLA_PACK_BUNDLE_MOST = 32, /* rows of a bundle */
    EMBLA_PACK_BLOCK = 64 << 20  /* bytes of rows that share a checksum */
};

#define EMBLA_PACK_KEY     "embla.pack"
#define EMBLA_PACK_KEY_SUM "embla.pack.checksum"
#define EMBLA_PACK_ROWS    "pack.rows"    /* U8 (pages, page bytes) */
#define EMBLA_PACK_BUNDLES "pack.bundles" /* U8 (pages, page bytes) */
#define EMBLA_PACK_INDEX   "pack.index"   /* U64: keys of the bundles, ascending */
#define EMBLA_PACK_ORDER   "pack.order"   /* U32: bundles, the most frequent first */
#define EMBLA_PACK_FOLD    "pack.fold"    /* I32: the fold of the hasher */
#define EMBLA_PACK_SUMS    "pack.sums"    /* U8 (blocks, 16): checksums */

/* Items in pages: `group` of them in each `group_bytes` bytes, which are whole pages. */
typedef struct {
    uint64_t bytes; /* of an item */
    uint64_t group, group_bytes;
} embla_pack_pages;

/* The n-gram hasher of the table: fields of embla_ngram_parameters. */
typedef struct {
    bool given;
    int64_t kind, vocab, orders, rows_per_ngram, pad, eos, eos_rule;
    int64_t rows;                   /* of the table, padding included */
    int64_t fold;                   /* tokens of the fold; 0 means none */
    const int64_t *multipliers;     /* orders of them; NULL means none */
    const int64_t *sizes, *offsets; /* columns of them; NULL means none */
} embla_pack_hasher;

/* The lists of a pack. Each has a checksum in the manifest. */
typedef enum { EMBLA_PACK_LIST_FOLD, EMBLA_PACK_LIST_INDEX, EMBLA_PACK_LIST_ORDER } embla_pack_list;
enum { EMBLA_PACK_LISTS = 3 };

typedef struct {
    int64_t version; /* of the file; 0 means the newest */
    embla_row_format format;
    int64_t rows;
    int32_t layer;         /* of the table; -1 means none */
    const char *name;      /* of the table in its source */
    size_t rows_per_ngram; /* rows of a bundle; 0 means that there are no bundles */
    int64_t bundles;
    embla_pack_hasher hasher;
    const char *sums[EMBLA_PACK_LISTS]; /* checksums of the lists, as text; NULL means none */

    /* Computed from these. */
    size_t row_bytes;
    embla_pack_pages row_pages, bundle_pages;
    uint64_t rows_size, bundles_size; /* bytes of all pages of rows, and of bundles */
    embla_json_value *json;           /* the texts and lists above belong to it, or to the arena */
    embla_arena arena;
} embla_pack;

/* How items of this size are stored: as many as fit in a page, or one in several pages. */
embla_pack_pages embla_pack_pages_of(uint64_t bytes);
/* How many items are in this many bytes of pages; those of one group at least. */
uint64_t embla_pack_items(const embla_pack_pages *pages, uint64_t bytes);
/* The offset of an item in its pages. */
static inline uint64_t embla_pack_item_at(const embla_pack_pages *pages, uint64_t number)
{
    return number / pages->group * pages->group_bytes + number % pages->group * pages->bytes;
}
/* Rows that share a checksum, and the number of checksums of all rows. */
int64_t embla_pack_block_rows(const embla_pack *pack);
int64_t embla_pack_block_count(const embla_pack *pack);

/* The number of a list's bytes, 0 if the pack does not have it. */
uint64_t embla_pack_list_bytes(const embla_pack *pack, embla_pack_list list);
/* The checksum of a list, read from the file in pieces. */
EMBLA_CHECKED embla_status embla_pack_list_sum(const embla_checkpoint *checkpoint,
                                               const embla_pack *pack, embla_pack_list list,
                                               embla_checksum *out);
/* Compares the checksum of a list that was read with that of the manifest, if it has one (K8). */
EMBLA_CHECKED embla_status embla_pack_list_check(const embla_pack *pack, embla_pack_list list,
                                                 embla_checksum found, const char *name);

/* For the reader of safetensors: if the file is a pack, compares the checksum of its manifest (K8),
 * or notes that it has none. */
EMBLA_CHECKED embla_status embla_pack_check(embla_directory *directory, const char *name);
/* The manifest of a checkpoint; NULL if it is no pack. */
const char *embla_pack_text(const embla_checkpoint *checkpoint);
/* Parses a manifest. Messages call the file `name`. Free the pack in any case. */
EMBLA_CHECKED embla_status embla_pack_parse(const char *text, const char *name, embla_pack *out);
/* The same from a checkpoint that is a pack, with a check of its tensors. */
EMBLA_CHECKED embla_status embla_pack_open(const embla_checkpoint *checkpoint, embla_pack *out);
void embla_pack_free(embla_pack *pack);
/* Computes what follows from format, rows, heads and bundles; refuses what no pack can have. */
EMBLA_CHECKED embla_status embla_pack_complete(embla_pack *pack, const char *name);
/* Writes the manifest as text, into the arena of the pack. */
EMBLA_CHECKED embla_status embla_pack_print(embla_pack *pack, const char **out);

#endif
