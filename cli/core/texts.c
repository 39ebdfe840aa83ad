/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of texts. */
#include "core/texts.h"

#include <stdlib.h>
#include <string.h>

#include "core/line_input.h"

enum { BATCH_BYTES = 1 << 22, BATCH_TEXTS = 1 << 16 };

static int finish(cli_texts *t)
{
    if (t->count == 0) return CLI_DONE;
    int code = t->take(t->context, t);
    t->bytes = t->count = 0;
    return code;
}

static bool make_room(cli_texts *t, size_t length)
{
    if (length <= t->room - t->bytes) return true;
    size_t room = length > BATCH_BYTES ? length : BATCH_BYTES; /* only when the batch is empty */
    char *memory = realloc(t->memory, room);
    if (!memory) return false;
    t->memory = memory;
    t->room = room;
    return true;
}

static int add(cli_texts *t, const char *text, size_t length)
{
    int code = CLI_DONE;
    if (t->count == BATCH_TEXTS || length > t->room - t->bytes) code = finish(t);
    if (code != CLI_DONE) return code;
    if (!make_room(t, length)) return cli_failed("no memory for a text of %zu bytes", length);
    if (length > 0) memcpy(t->memory + t->bytes, text, length);
    t->texts[t->count] = t->memory + t->bytes;
    t->lengths[t->count++] = length;
    t->bytes += length;
    return CLI_DONE;
}

static int add_line(cli_texts *t, const cli_lines *lines, char *line, size_t length)
{
    if (!t->field) return add(t, line, length);
    const char *wrong = cli_json_member(line, length, t->field, &line, &length);
    if (wrong)
        return cli_failed("line %zu of %s: %s '%s'", lines->number, cli_lines_name(lines), wrong,
                          t->field);
    return add(t, line, length);
}

static int read_lines(cli_texts *t, cli_lines *lines)
{
    char *line = NULL;
    size_t length = 0;
    int code = CLI_DONE;
    while (code == CLI_DONE) {
        cli_line_status status = cli_lines_next(lines, t->count == 0, &line, &length);
        if (status == CLI_LINE_FAILED) return CLI_FAILED;
        if (status == CLI_LINE_NONE) return CLI_DONE;
        code = status == CLI_LINE ? add_line(t, lines, line, length) : finish(t);
    }
    return code;
}

static int read_file(cli_texts *t, const char *path)
{
    cli_lines lines = {0};
    int code = cli_lines_open(&lines, path);
    if (code == CLI_DONE) code = read_lines(t, &lines);
    cli_lines_free(&lines);
    return code;
}

int cli_texts_read(cli_texts *t, const cli_args *args)
{
    const char *path = cli_args_text(args, "file");
    int code = CLI_DONE;
    t->texts = malloc(BATCH_TEXTS * sizeof *t->texts);
    t->lengths = malloc(BATCH_TEXTS * sizeof *t->lengths);
    if (!t->texts || !t->lengths || !make_room(t, 1))
        return cli_failed("no memory for %d bytes of text", BATCH_BYTES);
    if (t->first == 0) t->first = 1;
    for (size_t i = t->first; code == CLI_DONE && i < args->operand_count; i++) {
        const char *text = args->operands[i];
        code = strcmp(text, "-") == 0 ? read_file(t, text) : add(t, text, strlen(text));
    }
    if (code == CLI_DONE && (path || args->operand_count == t->first))
        code = read_file(t, path ? path : "-");
    return code == CLI_DONE ? finish(t) : code;
}

void cli_texts_free(cli_texts *t)
{
    free(t->memory);
    free((void *)t->texts);
    free(t->lengths);
}
