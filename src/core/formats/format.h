/* SPDX-License-Identifier: Apache-2.0 */
/* A file format: it recognises its files, lists the tensors of a file, and, if the format can be
 * written, writes one. Each format has its own .c file; the list of formats is EMBLA_FORMATS.
 *
 * A reader checks everything before it succeeds. The directory it fills is the proof that every
 * tensor is inside the file (C9, C10). If a reader fails, the caller frees the directory. Its
 * message begins with the file's name and a colon, and ends with the rule, e.g. "(S9)".
 */
#ifndef EMBLA_FORMATS_FORMAT_H
#define EMBLA_FORMATS_FORMAT_H

#include "base/arena.h"
#include "base/status.h"
#include "embla_checkpoint.h"
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

/* What a reader found, all of it in the arena. It starts as zeros. */
struct embla_directory {
    const char *format; /* the format's name, for people */
    embla_arena arena;
    embla_entry *entries;
    size_t count, room;
    embla_pair *pairs; /* metadata that is text, for people and for the next writer */
    size_t pair_count, pair_room;
    const char **notes; /* unusual but accepted, e.g. "2 words occur twice" */
    size_t note_count, note_room;
    /* Words of the rows of entries[0]: label i belongs to row i, and label.number is i. */
    const embla_name *labels;
    size_t label_count;
    const int64_t *label_counts; /* how often each word occurs in its text; NULL means unknown */
    /* Number of rows that belong to tokens, if the file has it (llm.c: V of Vp); 0 means unknown.
     */
    uint64_t tokens;
    void *state; /* private to the reader: for make and for queries of its format */
    /* Writes rows first .. first+count-1 of a made entry to out, in the entry's element type and
     * without gaps. NULL if no entry is made. */
    embla_status (*make)(const embla_directory *directory, const embla_map *map,
                         const embla_entry *entry, uint64_t first, uint64_t count, void *out);
};

/* One file of a checkpoint, and what its reader found. */
typedef struct {
    embla_map *map;
    embla_directory directory;
} embla_shard;

EMBLA_PRIVATE void embla_directory_free(embla_directory *directory);
/* Append a tensor, a pair of metadata, or a note; all text is copied. *out is the new entry, which
 * the caller fills in. */
EMBLA_CHECKED embla_status embla_directory_add(embla_directory *directory, const char *name,
                                               size_t length, embla_entry **out);
EMBLA_CHECKED embla_status embla_directory_pair(embla_directory *directory, const char *key,
                                                size_t key_length, const char *value,
                                                size_t value_length);
EMBLA_CHECKED embla_status embla_directory_note(embla_directory *directory, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* One tensor that a writer writes. */
typedef struct {
    const char *name;
    const embla_element *element;
    uint32_t rank;
    uint64_t shape[EMBLA_TENSOR_RANK_MAX];
    uint64_t bytes;
    /* Reads bytes of its numbers from offset. A writer reads each part once, front to back. */
    embla_status (*read)(void *context, uint64_t offset, size_t bytes, void *out);
    void *context;
} embla_part;

/* Writes all bytes of a part, one piece after the other. */
EMBLA_CHECKED embla_status embla_part_write(embla_durable *out, const embla_part *part);

typedef struct {
    const embla_part *parts; /* a format that holds one table writes parts[0] and refuses more */
    size_t count;
    const embla_pair *pairs; /* metadata */
    size_t pair_count;
    const embla_name *labels; /* words of the rows of parts[0]; bytes NULL means no word */
    size_t label_count;       /* 0, or the number of rows of parts[0] */
    uint64_t tokens;          /* rows of parts[0] that belong to tokens; 0 means all */
    uint64_t align;           /* safetensors: the data begin at a multiple of this; 0 means 64 */
    /* If the source has the same format: its directory and file, for metadata that only this
     * format has (GGUF's keys). NULL otherwise. */
    const embla_directory *source;
    const embla_map *source_map;
} embla_contents;

/* Where the words of a table's rows are written. */
typedef enum {
    EMBLA_LABELS_BESIDE = 0, /* not in the file: they go to NAME.vocab.txt */
    EMBLA_LABELS_ROWS = 1,   /* with each row, without spaces; "#row" for a row without a word */
    EMBLA_LABELS_LIST = 2    /* as a list of all words; "[PADrow]" for a row without a word */
} embla_labels_place;

/* All that is known about a format. Other rooms ask these fields, and do not compare names. */
typedef struct {
    const char *name;      /* e.g. "safetensors" */
    const char *extension; /* e.g. ".safetensors": the default format of such a file; or NULL */
    bool one_table;        /* a file holds one table and nothing else */
    bool no_model; /* rows, and perhaps their words, without a model: no head, no tokenizer */
    bool tied;     /* the head of its models is always the token table */
    /* Words are in a file beside it which readers of other formats do not look for. */
    bool own_words;
    /* True if a file of this size with these first bytes (at most 4096) has this format. */
    bool (*sniff)(const uint8_t *head, size_t have, uint64_t size);
    embla_status (*read)(embla_map *map, const embla_open_options *options, embla_directory *out);
    /* The number of keys that the reader did not list in directory->pairs and that a writer of
     * another format loses. NULL means none. */
    size_t (*unlisted_keys)(const embla_directory *directory);

    /* NULL means that the format is only read. The fields below are for formats with a writer. */
    embla_status (*write)(embla_durable *out, const embla_contents *contents);
    bool decimals; /* numbers are text: a NaN has no bits, and no sign */
    embla_labels_place labels;
    embla_dtype only; /* the one dtype that it holds; 0 means those that `holds` allows */
    bool (*holds)(const embla_element *element); /* NULL means that only the writer knows */
    const char *type_rule;                       /* the rule of docs/formats.md about types */
    /* The name that the format prescribes for the tensor of a role, or NULL; NULL means that names
     * are free. */
    const char *(*tensor_name)(embla_role role);
    bool mapping; /* a tensor that maps tokens to rows (Model2Vec) has a meaning in it */
    /* True if a pair can be written as metadata after `count` others that have `bytes` bytes
     * together. NULL means that the format has no metadata. */
    bool (*keeps)(const embla_pair *pair, size_t count, size_t bytes);
    /* The pair that names the program that wrote the file: expected beside other metadata, without
     * a meaning in other formats. NULL means none. */
    const embla_pair *saver;
    bool config;      /* a config.json beside the file is part of a model */
    bool copies_keys; /* from a source of the same format the writer copies all keys and words */
} embla_format;

/* All formats, in the order in which their sniff functions are called: those with a magic number
 * first, those without one last. pickle only refuses. */
#define EMBLA_FORMATS(X)                                                                           \
    X(pickle)                                                                                      \
    X(gguf)                                                                                        \
    X(npy)                                                                                         \
    X(fasttext)                                                                                    \
    X(llmc)                                                                                        \
    X(safetensors)                                                                                 \
    X(llama2c)                                                                                     \
    X(word2vec_bin)                                                                                \
    X(word2vec)                                                                                    \
    X(glove)
#define EMBLA_FORMAT_DECLARE(format) extern const embla_format embla_format_##format;
EMBLA_FORMATS(EMBLA_FORMAT_DECLARE)

/* Format n, from 0; NULL past the last. */
EMBLA_PRIVATE const embla_format *embla_format_at(size_t n);
/* Detects the format of a file from its contents. EMBLA_ERR_FORMAT: the message shows its first
 * bytes. */
EMBLA_CHECKED embla_status embla_format_of(const embla_map *map, const embla_format **out);
/* Finds a format that can be written by its name. EMBLA_ERR_NOT_FOUND: the message lists them. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_format_find(const char *name,
                                                           const embla_format **out);

/* True if a file with these first bytes is a SentencePiece model: a vocabulary, not a table. */
EMBLA_PRIVATE bool embla_sentencepiece_sniff(const uint8_t *head, size_t have);

/* Computes entry->bytes from element, rank and shape, and refuses a tensor whose size is not
 * possible. The message of EMBLA_ERR_FORMAT ends with the rule. */
EMBLA_CHECKED embla_status embla_entry_size(const embla_map *map, embla_entry *entry,
                                            const char *rule);

#endif
