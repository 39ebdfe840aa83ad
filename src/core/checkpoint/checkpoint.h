/* SPDX-License-Identifier: Apache-2.0 */
/* The struct behind embla_checkpoint: its files, their tensors in one list, the role of each
 * tensor, and config.json. For formats/, table/ and reshape/.
 */
#ifndef EMBLA_CHECKPOINT_CHECKPOINT_H
#define EMBLA_CHECKPOINT_CHECKPOINT_H

#include "files/json.h"
#include "formats/format.h"

struct embla_checkpoint {
    embla_arena arena;
    const char *shown;      /* the path as it was given, without "::tensor" */
    const char *chosen;     /* the tensor named after "::"; NULL: none */
    embla_role chosen_role; /* what that tensor is by its name alone */
    const embla_format *format;
    embla_shard *shards;
    size_t shard_count;
    embla_entry *entries; /* the tensors of all files, in the order of the files */
    embla_role *roles;    /* the role of each entry */
    const char **whys;    /* the rule that gave each entry its role; NULL without a role */
    size_t count;
    embla_name *names; /* names of the entries; number is the entry's index */
    embla_names index;
    embla_json_value *config; /* config.json; NULL: there is none */
    const char **notes;       /* of the folder; once it is open, those of its files as well */
    size_t note_count, note_room;
    embla_tensor *tensors; /* the entries as callers see them */
    embla_file *files;
    embla_folder folder; /* where its files are, for what lies beside them; -1: nowhere */
    const char *folder_name;
    const char *stem; /* a single file's name without its extension, for NAME.vocab.txt */
    bool copy;        /* tables are read into memory */
};

/* checkpoint/checkpoint_open.c: an empty checkpoint without a folder; embla_checkpoint_free frees
 * it.
 */
EMBLA_CHECKED embla_status embla_checkpoint_begin(embla_checkpoint **out);
/* Opens the file or folder of a model that the user named. If there is none, and the name could be
 * that of a model elsewhere, the message says that nothing is downloaded. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_open_named(const char *path, embla_handle *file);
/* The last step of opening, when shards are read: lists their tensors and finds their roles. */
EMBLA_CHECKED embla_status embla_checkpoint_finish(embla_checkpoint *checkpoint);
/* Fills in tensors, files and notes: the end of embla_checkpoint_finish. */
EMBLA_CHECKED embla_status embla_checkpoint_list(embla_checkpoint *checkpoint);
/* The entry that serves as role, with the same sentences as embla_checkpoint_role. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_checkpoint_entry(const embla_checkpoint *checkpoint,
                                                                embla_role role,
                                                                const embla_entry **out,
                                                                const char **why);
/* The only entry with this role; NULL if there are none or several. *count is their number. */
const embla_entry *embla_checkpoint_only(const embla_checkpoint *checkpoint, embla_role role,
                                         size_t *count);
/* Finds the entry with this name. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_checkpoint_named(const embla_checkpoint *checkpoint,
                                                                const char *name,
                                                                const embla_entry **out);
/* What config.json has for a key, as embla_checkpoint_integer finds it; EMBLA_JSON_NONE: nothing.
 */
EMBLA_PRIVATE embla_json_kind embla_checkpoint_kind(const embla_checkpoint *checkpoint,
                                                    const char *key);
/* Reads bytes of an entry's numbers from offset. For a made entry, offset and bytes are whole
 * rows. Reads with pread, so a truncated file raises no signal. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_entry_read(const embla_checkpoint *checkpoint,
                                                          const embla_entry *entry, uint64_t offset,
                                                          size_t bytes, void *out);
/* Reads the first `count` numbers of `size` bytes, in the byte order of the machine. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_entry_numbers(const embla_checkpoint *checkpoint,
                                                             const embla_entry *entry, size_t size,
                                                             size_t count, void *out);
/* Rows and dim of an entry that can be a table: rank 2, or rank 1 as one row. EMBLA_ERR_SHAPE
 * otherwise, and if rows or dim exceed the limits of a table (C10). */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_entry_shape(const embla_entry *entry, int64_t *rows,
                                                           size_t *dim);

/* checkpoint/roles.c: sets roles and whys of an opened checkpoint. */
EMBLA_CHECKED embla_status embla_roles_find(embla_checkpoint *checkpoint);
/* checkpoint/checkpoint_roles.c */
/* The vocabulary tie flag: 1 true, 0 false, -1 not said; *where says what was found where. */
int embla_roles_tie_flag(const embla_checkpoint *checkpoint, const char **where);
/* What the architecture does without the flag: 1 tied, 0 not tied, -1 it has no head, -2
 * unknown. */
int embla_roles_tie_default(const embla_checkpoint *checkpoint);

#endif
