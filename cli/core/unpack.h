/* SPDX-License-Identifier: Apache-2.0 */
/* Files compressed by gzip, xz, zstd or bzip2 are decompressed to a temporary file by that program.
 */
#ifndef CLI_CORE_UNPACK_H
#define CLI_CORE_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

/* A file from which settings or words of a model are read has one of these names and is beside it.
 * Returns the n-th, NULL past the last. */
const char *cli_beside_name(size_t n);

enum { CLI_UNPACKED_LINKS = 16 };
typedef struct {
    char *path;                      /* of the temporary file; NULL if path was not compressed */
    char *folder;                    /* the new folder that contains it */
    char *links[CLI_UNPACKED_LINKS]; /* beside it: links to the files beside the compressed one */
    size_t link_count;
} cli_unpacked;

/* Decompresses path to a folder in $TMPDIR (/tmp), if its first bytes are those of a compressed
 * file. Shows progress unless quiet. CLI_DONE, or CLI_FAILED after a message. */
int cli_unpack(const char *path, bool quiet, cli_unpacked *out);
/* Copies standard input to such a file, which is then found in the same way. */
int cli_unpack_stdin(bool quiet, cli_unpacked *out);
/* The program that makes files with these first bytes, up to 10; NULL means none. */
const char *cli_packed_with(const unsigned char *first, size_t count);
/* Removes the temporary file. Its mappings remain. */
void cli_unpack_free(cli_unpacked *unpacked);

#endif
