/* SPDX-License-Identifier: Apache-2.0 */
/* Reads traces from npy files. `embla trace` writes int64; files of tokens are often smaller. */
#include "verbs/trace_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "embla_checkpoint.h"

#include "core/complain.h"
#include "core/inputs.h"

/* Bytes of an integer type; 0 if rows are not numbered with it. */
static size_t bytes_of(const char *type)
{
    if (strcmp(type, "I64") == 0) return 8;
    if (strcmp(type, "I32") == 0 || strcmp(type, "U32") == 0) return 4;
    return strcmp(type, "U16") == 0 ? 2 : 0;
}

static int64_t number_at(const char *type, const char *at)
{
    int32_t i32 = 0;
    uint32_t u32 = 0;
    uint16_t u16 = 0;
    if (type[0] == 'I') {
        memcpy(&i32, at, sizeof i32);
        return i32;
    }
    if (bytes_of(type) == sizeof u32) {
        memcpy(&u32, at, sizeof u32);
        return u32;
    }
    memcpy(&u16, at, sizeof u16);
    return u16;
}

/* Reads count integers. Smaller ones are read to the end of the list and widened from its front. */
static int read_numbers(const embla_checkpoint *file, const embla_tensor *t, size_t count,
                        int64_t *rows)
{
    const size_t bytes = bytes_of(t->type);
    char *read = (char *)rows + count * (sizeof *rows - bytes);
    if (embla_checkpoint_read(file, t->name, 0, count * bytes, read) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    for (size_t i = 0; bytes < sizeof *rows && i < count; i++)
        rows[i] = number_at(t->type, read + i * bytes);
    return CLI_DONE;
}

static int read_tensor(const embla_checkpoint *file, const char *path, size_t most, cli_trace *out)
{
    size_t count;
    if (strcmp(embla_checkpoint_format(file), "npy") != 0)
        return cli_failed("%s has format %s; a trace is an npy file of integers", path,
                          embla_checkpoint_format(file));
    const embla_tensor t = *embla_checkpoint_tensors(file, &count); /* an npy file has one */
    const size_t each = bytes_of(t.type);
    if (each == 0 || t.rank < 1 || t.rank > 2 || t.bytes == 0)
        return cli_failed("%s has %zu dimensions and %" PRId64 " bytes of %s; a trace is an npy "
                          "file of int64, int32, uint32 or uint16 with 1 or 2 dimensions",
                          path, t.rank, t.bytes, t.type);
    count = (size_t)t.bytes / each;
    *out = (cli_trace){.count = count < most ? count : most,
                       .tokens = (size_t)t.shape[0],
                       .columns = t.rank == 2 ? (size_t)t.shape[1] : 1};
    out->rows = malloc(out->count * sizeof *out->rows);
    if (!out->rows) return cli_failed("no memory for the %zu row numbers of %s", out->count, path);
    return read_numbers(file, &t, out->count, out->rows);
}

int cli_trace_read(const char *path, size_t most, cli_trace *out)
{
    embla_checkpoint *file = NULL;
    *out = (cli_trace){0};
    if (embla_checkpoint_open(cli_input_path(path), NULL, &file) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    int code = read_tensor(file, path, most, out);
    embla_checkpoint_free(file);
    if (code != CLI_DONE) {
        free(out->rows);
        out->rows = NULL;
    }
    return code;
}
