/* SPDX-License-Identifier: Apache-2.0 */
#include "core/line_input.h"

#include <stdlib.h>
#include <string.h>

#include "core/complain.h"
#include "core/inputs.h"
#include "core/unpack.h"
#include "host/host.h"
#include "host/paths.h"

enum { READ_BYTES = 1 << 16 };

const char *cli_lines_name(const cli_lines *lines)
{
    return lines->name ? lines->name : "standard input";
}

int cli_lines_open(cli_lines *lines, const char *path)
{
    *lines = (cli_lines){0};
    if (strcmp(path, "-") == 0) return CLI_DONE;
    embla_handle file;
    if (!cli_because(cli_stream_open(cli_input_path(path), &file)))
        return cli_failed("cannot open %s: %s", path, cli_why());
    *lines = (cli_lines){.file = file, .name = path};
    return CLI_DONE;
}

static embla_handle handle_of(const cli_lines *lines)
{
    return lines->name ? lines->file : cli_stream_handle(CLI_STDIN);
}

/* A compressed standard input cannot be decompressed once its lines are read. */
static bool is_packed(const cli_lines *lines)
{
    const char *program = cli_packed_with((const unsigned char *)lines->bytes, lines->used);
    if (!program) return false;
    (void)cli_failed("%s is compressed with %s; decompress it on the way: %s -dc FILE | embla ..",
                     cli_lines_name(lines), program, program);
    return true;
}

/* Makes room for READ_BYTES and the zero after a last line without an end. */
static bool make_room(cli_lines *lines)
{
    if (lines->at > 0) {
        memmove(lines->bytes, lines->bytes + lines->at, lines->used - lines->at);
        lines->used -= lines->at;
        lines->at = 0;
    }
    if (lines->room - lines->used > READ_BYTES) return true;
    size_t room = 2 * lines->room + READ_BYTES + 1;
    char *bytes = realloc(lines->bytes, room);
    if (!bytes) return false;
    lines->bytes = bytes;
    lines->room = room;
    return true;
}

static bool read_more(cli_lines *lines)
{
    embla_outcome done;
    size_t count;
    if (!make_room(lines)) {
        (void)cli_failed("no memory for a line of %zu bytes", lines->used);
        return false;
    }
    do {
        done = cli_stream_read(handle_of(lines), lines->bytes + lines->used, READ_BYTES, &count);
    } while (done.error == EMBLA_SYSTEM_INTERRUPTED);
    if (!cli_because(done)) {
        (void)cli_failed("cannot read %s: %s", cli_lines_name(lines), cli_why());
        return false;
    }
    lines->used += count;
    lines->ended = count == 0;
    return true;
}

cli_line_status cli_lines_next(cli_lines *lines, bool wait, char **line, size_t *length)
{
    char *end;
    size_t seen = 0; /* bytes without a line end */
    for (;;) {
        size_t left = lines->used - lines->at;
        end = left > seen ? memchr(lines->bytes + lines->at + seen, '\n', left - seen) : NULL;
        if (end || lines->ended) break;
        seen = left;
        if (!wait && !cli_stream_ready(handle_of(lines))) return CLI_LINE_LATER;
        if (!read_more(lines)) return CLI_LINE_FAILED;
    }
    if (!end && lines->at == lines->used) return CLI_LINE_NONE;
    if (lines->number == 0 && is_packed(lines)) return CLI_LINE_FAILED;
    *line = lines->bytes + lines->at;
    *length = end ? (size_t)(end - *line) : lines->used - lines->at;
    lines->at += *length + (end != NULL);
    lines->number++;
    if (end && *length > 0 && (*line)[*length - 1] == '\r') (*length)--;
    (*line)[*length] = '\0';
    return CLI_LINE;
}

void cli_lines_free(cli_lines *lines)
{
    if (lines->name) (void)embla_system_close(lines->file);
    free(lines->bytes);
    *lines = (cli_lines){0};
}
