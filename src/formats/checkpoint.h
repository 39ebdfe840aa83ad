/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind the one door: the files of a checkpoint, their tensors in one list,
 * what each is for, and config.json. For files/, table/ and reshape/.
 */
#ifndef EMBLA_FORMATS_CHECKPOINT_H
#define EMBLA_FORMATS_CHECKPOINT_H

#include "files/json.h"
#include "formats/format.h"

/* One file of it. */
typedef struct {
    embla_map *map;
    embla_directory directory;
} embla_shard;

struct embla_checkpoint {
    embla_arena arena;
    const char *shown;  /* the path as it was given, without "::tensor" */
    const char *chosen; /* the tensor named after "::"; NULL: none */
    const embla_format *format;
    embla_shard *shards;
    size_t shard_count;
    embla_entry *entries; /* of all files, in their order */
    embla_role *roles;    /* one for each */
    const char **whys;    /* one for each: the rule that gave the role; NULL without */
    size_t count;
    embla_name *names; /* of the entries, number = which entry */
    embla_names index;
    embla_json_value *config; /* config.json; NULL: there is none */
    const char **notes;       /* of the folder; once it is open, those of its files as well */
    size_t note_count, note_room;
    embla_tensor *tensors; /* the entries as callers see them */
    embla_file *files;
    int folder; /* where its files are, for what lies beside them; -1: nowhere */
    const char *folder_name;
    const char *stem; /* of a single file: its name without extension, for NAME.vocab.txt */
    bool copy;        /* tables go to memory */
};

/* Fills in tensors, files and notes: the last step of opening. */
EMBLA_CHECKED embla_status embla_checkpoint_list(embla_checkpoint *checkpoint);
/* The entry that serves as role, with the same sentences as embla_checkpoint_role. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_checkpoint_entry(const embla_checkpoint *checkpoint,
                                                                embla_role role,
                                                                const embla_entry **out,
                                                                const char **why);
/* The only entry of a role; NULL if there is none or several. *count is how many there are. */
const embla_entry *embla_checkpoint_only(const embla_checkpoint *checkpoint, embla_role role,
                                         size_t *count);
/* The entry called name. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_checkpoint_named(const embla_checkpoint *checkpoint,
                                                                const char *name,
                                                                const embla_entry **out);
/* What config.json has for a key, as embla_checkpoint_integer finds it; EMBLA_JSON_NONE: nothing.
 */
EMBLA_PRIVATE embla_json_kind embla_checkpoint_kind(const embla_checkpoint *checkpoint,
                                                    const char *key);
/* bytes of an entry's numbers from offset on, made where they do not lie in the file (then
 * offset and bytes are whole rows). By pread: no signal, whatever happens to the file. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_entry_read(const embla_checkpoint *checkpoint,
                                                          const embla_entry *entry, uint64_t offset,
                                                          size_t bytes, void *out);
/* Rows and numbers in a row of an entry that can be a table: rank 2, or rank 1 as one row.
 * EMBLA_ERR_SHAPE otherwise, and where a number is outside what a table can have (C10). */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_entry_shape(const embla_entry *entry, int64_t *rows,
                                                           size_t *dim);

/* formats/roles.c: fills roles and whys of an opened checkpoint. */
EMBLA_CHECKED embla_status embla_roles_find(embla_checkpoint *checkpoint);
/* The vocabulary tie flag: 1 true, 0 false, -1 not said; *where says what was found where. */
int embla_roles_tie_flag(const embla_checkpoint *checkpoint, const char **where);
/* What the architecture does where the flag is not said: 1 ties, 0 does not, -1 has no head,
 * -2 not known. */
int embla_roles_tie_default(const embla_checkpoint *checkpoint);

#endif
