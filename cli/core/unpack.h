/* SPDX-License-Identifier: Apache-2.0 */
/* Files compressed by gzip, xz or zstd are decompressed to a temporary file by that program. */
#ifndef CLI_CORE_UNPACK_H
#define CLI_CORE_UNPACK_H

#include <stdbool.h>

typedef struct {
    char *path;   /* of the temporary file; NULL if path was not compressed */
    char *folder; /* the new folder that contains it */
} cli_unpacked;

/* Decompresses path to a folder in $TMPDIR (/tmp), if its first bytes are those of a compressed
 * file. Shows progress unless quiet. CLI_DONE, or CLI_FAILED after a message. */
int cli_unpack(const char *path, bool quiet, cli_unpacked *out);
/* Copies standard input to such a file, which is then found in the same way. */
int cli_unpack_stdin(bool quiet, cli_unpacked *out);
/* Removes the temporary file. Its mappings remain. */
void cli_unpack_free(cli_unpacked *unpacked);

#endif
