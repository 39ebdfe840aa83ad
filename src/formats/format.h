/* SPDX-License-Identifier: Apache-2.0 */
/* What a file format offers: it recognises its files, lists the tensors in one, and, where
 * we write it, writes one. One file in files/ for each format; the table is in format.c.
 *
 * A reader checks everything before it says yes: the directory it fills is the proof that
 * every tensor lies inside the file (C9, C10). On failure the caller frees the directory.
 * Sentences of refusals begin with the file's name and end with the rule: "(S9)".
 */
#ifndef EMBLA_FORMATS_FORMAT_H
#define EMBLA_FORMATS_FORMAT_H

#include "base/arena.h"
#include "base/status.h"
#include "files/durable.h"
#include "files/map.h"
#include "files/names.h"
#include "formats/element.h"

/* One tensor of a file. */
typedef struct {
    const char *name;
    const embla_element *element;
    uint32_t rank;
    uint64_t shape[EMBLA_TENSOR_RANK_MAX]; /* slowest first: rows, then numbers in a row */
    uint64_t bytes;                        /* of all its numbers */
    uint64_t offset;                       /* in its file, where it lies as it is */
    uint32_t file;                         /* which file of a checkpoint; readers leave 0 */
    bool made; /* does not lie in the file as it is (text, columns first): see make */
} embla_entry;

typedef struct {
    const char *key, *value;
} embla_pair;

typedef struct embla_directory embla_directory;

/* What a reader found. All of it lives in the arena. Starts zeroed. */
struct embla_directory {
    const char *format; /* its name, as `embla info` prints it */
    embla_arena arena;
    embla_entry *entries;
    size_t count, room;
    embla_pair *pairs; /* metadata that is text, for people and for the next writer */
    size_t pair_count, pair_room;
    const char **notes; /* accepted, but worth a word: "2 words occur twice" */
    size_t note_count, note_room;
    /* Words that come with the rows of entries[0]: label i is of row i, label.number = i. */
    const embla_name *labels;
    size_t label_count;
    uint64_t
        tokens;  /* rows that belong to tokens, where the file says (llm.c: V of Vp); 0: not said */
    void *state; /* the reader's own, for make and for format-specific questions */
    /* Writes rows first .. first+count-1 of a made entry, as its element stores them, one
     * after the other. NULL where no entry is made. */
    embla_status (*make)(const embla_directory *directory, const embla_map *map,
                         const embla_entry *entry, uint64_t first, uint64_t count, void *out);
};

void embla_directory_free(embla_directory *directory);
/* Appends; the name, key, value or note is copied. *out is the new entry, to be filled in. */
EMBLA_CHECKED embla_status embla_directory_add(embla_directory *directory, const char *name,
                                               size_t length, embla_entry **out);
EMBLA_CHECKED embla_status embla_directory_pair(embla_directory *directory, const char *key,
                                                size_t key_length, const char *value,
                                                size_t value_length);
EMBLA_CHECKED embla_status embla_directory_note(embla_directory *directory, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What a writer is given. */
typedef struct {
    const char *name;
    const embla_element *element;
    uint32_t rank;
    uint64_t shape[EMBLA_TENSOR_RANK_MAX];
    uint64_t bytes;
    /* bytes of its numbers from offset on. Writers ask from front to back, each once. */
    embla_status (*read)(void *context, uint64_t offset, size_t bytes, void *out);
    void *context;
} embla_part;

/* Writes all bytes of a part, a piece at a time. */
EMBLA_CHECKED embla_status embla_part_write(embla_durable *out, const embla_part *part);

typedef struct {
    const embla_part *parts; /* formats of one table take parts[0] and refuse more */
    size_t count;
    const embla_pair *pairs; /* metadata */
    size_t pair_count;
    const embla_name *labels; /* of the rows of parts[0]; bytes NULL: this row has none */
    size_t label_count;       /* 0, or the rows of parts[0] */
    uint64_t tokens;          /* rows of parts[0] that belong to tokens; 0: all */
    /* Where the source is of the same format: its directory and file, for metadata that
     * only that format understands (GGUF's keys). NULL otherwise. */
    const embla_directory *source;
    const embla_map *source_map;
} embla_contents;

typedef struct {
    const char *name;      /* "safetensors"; what --to takes */
    const char *extension; /* ".safetensors": chooses the format of a file to be written; or NULL */
    bool one_table;        /* holds one table and nothing else */
    bool (*sniff)(const uint8_t *head, size_t have, uint64_t size); /* by up to 4096 first bytes */
    embla_status (*read)(embla_map *map, const embla_open_options *options, embla_directory *out);
    embla_status (*write)(embla_durable *out, const embla_contents *contents); /* NULL: never */
} embla_format;

/* In the order in which they are asked whether a file is theirs. */
extern const embla_format embla_format_pickle; /* only refuses */
extern const embla_format embla_format_gguf, embla_format_npy, embla_format_fasttext,
    embla_format_llmc, embla_format_safetensors, embla_format_llama2c, embla_format_word2vec_bin,
    embla_format_word2vec, embla_format_glove;

/* The n-th, NULL past the last. */
EMBLA_PRIVATE const embla_format *embla_format_at(size_t n);
/* Whose file this is. EMBLA_ERR_FORMAT says what its first bytes look like. */
EMBLA_CHECKED embla_status embla_format_of(const embla_map *map, const embla_format **out);
/* By name. EMBLA_ERR_NOT_FOUND lists those that can be written. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_format_find(const char *name,
                                                           const embla_format **out);

/* Refuses a tensor that cannot be: rank, shape product and bytes are filled in from
 * element, rank and shape. EMBLA_ERR_FORMAT ends with rule. */
EMBLA_CHECKED embla_status embla_entry_size(const embla_map *map, embla_entry *entry,
                                            const char *rule);

#endif
