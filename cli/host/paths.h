/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders by their paths, as the verbs need them. On all systems they are made of
 * core/system. A function that fails keeps the system's reason, see cli_why.
 */
#ifndef CLI_HOST_PATHS_H
#define CLI_HOST_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "system/system.h"

enum {
    CLI_PATH_MOST = 4096,
    CLI_NAME_MOST = 1024,
    CLI_RANDOM = 6 /* characters that make a name new */
};

/* Why a function of this room failed last, in the words of the system. */
const char *cli_why(void);
embla_system_error cli_why_error(void);
/* Keeps the reason of an outcome. Whether it worked. */
bool cli_because(embla_outcome outcome);
/* Keeps the reason that the C library left in errno. Returns false. */
bool cli_because_errno(void);

/* The facts of a file; links are followed. */
bool cli_facts(const char *path, embla_file_facts *out);
/* The facts of a name, which may be a link. */
bool cli_facts_of_name(const char *path, embla_file_facts *out);
/* Whether there is a file or a folder. */
bool cli_is_there(const char *path);
bool cli_is_file(const char *path);
bool cli_is_folder(const char *path);
bool cli_is_readable(const char *path);
/* The size of a file; 0 if there is none. */
int64_t cli_file_size(const char *path);

bool cli_make_folder(const char *path);
bool cli_remove(const char *path);
bool cli_remove_folder(const char *path);
/* Removes a folder and everything in it. */
void cli_remove_all(const char *path);
/* Without replace it fails with EMBLA_SYSTEM_EXISTS if the name is taken; a file system without
 * names for one file and without that kind of renaming cannot tell. */
bool cli_rename(const char *from, const char *to, bool replace);

/* The path ends with CLI_RANDOM characters 'X', which are replaced by others until the name is new.
 * Only this user may enter the folder. */
bool cli_new_folder(char *path);
bool cli_new_file(char *path, unsigned mode, embla_handle *out);
/* A new folder for temporary files: the folder of the system, and a name. */
bool cli_new_temporary(const char *name, char path[CLI_PATH_MOST]);

/* The last name in a path, to be shown; the path if it ends with a separator. */
const char *cli_path_title(const char *path);

bool cli_open_write(const char *path, embla_handle *out);
bool cli_close(embla_handle file);
/* Writes all bytes; *done (may be NULL) gets how many were written. */
bool cli_write_all(embla_handle file, const void *bytes, size_t count, size_t *done);

/* The names in a folder, without "." and "..". NULL after the last. */
typedef struct {
    embla_names_list *list;
} cli_names;
bool cli_names_open(const char *folder, cli_names *out);
const char *cli_names_next(cli_names *names);
void cli_names_close(cli_names *names);

/* A copy of the first bytes of a text, with a 0 after them. NULL if there is no memory. */
char *cli_copy_text(const char *text, size_t length);

#endif
