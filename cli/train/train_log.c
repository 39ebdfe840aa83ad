/* SPDX-License-Identifier: Apache-2.0 */
/* Writes loss.csv without a system call for each step, and reads it back. Numbers have 17 digits,
 * enough to read back the same double.
 */
#include "train/train_log.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/args.h"
#include "host/host.h"
#include "host/paths.h"

static const char header[] = "step,loss,validation,rate,norm,tokens,seconds\n";

enum { LINE_MOST = 256, FIELDS = 7 };

/* ---- reading ---- */

/* Parses seven fields, separated by commas, and a line end. validation may be empty. */
static bool parse_line(const char *text, cli_log_line *out)
{
    double values[FIELDS];
    for (size_t i = 0; i < FIELDS; i++) {
        bool empty = i == 2 && *text == ',';
        char *end = NULL;
        values[i] = empty ? NAN : strtod(text, &end);
        const char *after = empty ? text : end;
        if (!empty && after == text) return false;
        if (*after != (i + 1 < FIELDS ? ',' : '\n')) return false;
        text = after + 1;
    }
    if (!(values[0] >= 0 && values[0] < 9e15 && values[5] >= 0 && values[5] < 9e15)) return false;
    *out = (cli_log_line){.step = (int64_t)values[0],
                          .loss = values[1],
                          .validation = values[2],
                          .rate = values[3],
                          .norm = values[4],
                          .tokens = (int64_t)values[5],
                          .seconds = values[6]};
    return *text == '\0';
}

bool cli_log_read(const char *path, int64_t below,
                  void (*visit)(void *context, const cli_log_line *), void *context, int64_t *end)
{
    char text[LINE_MOST];
    int64_t last = -1, good = 0;
    cli_log_line line;
    FILE *from = cli_file_open(path, "r");
    if (!from) return cli_because_errno();
    if (fgets(text, sizeof text, from) && strcmp(text, header) == 0) {
        good = (int64_t)strlen(text);
        while (fgets(text, sizeof text, from) && parse_line(text, &line) && line.step > last &&
               line.step < below) {
            if (visit) visit(context, &line);
            good += (int64_t)strlen(text);
            last = line.step;
        }
    }
    bool read = !ferror(from) || cli_because_errno();
    (void)fclose(from);
    if (end) *end = good;
    return read;
}

/* ---- writing ---- */

int cli_log_open(const char *folder, cli_log *out)
{
    size_t size = strlen(folder) + sizeof "/loss.csv";
    cli_log log = {.file = EMBLA_NO_FILE, .path = malloc(size)};
    if (!log.path) return cli_failed("no memory for a path of %zu bytes", size);
    (void)snprintf(log.path, size, "%s/loss.csv", folder);
    int code = CLI_DONE;
    if (!cli_open_write(log.path, &log.file))
        code = cli_failed("%s: %s", log.path, cli_why());
    else if (embla_system_lock(log.file, EMBLA_LOCK_ALONE).error == EMBLA_SYSTEM_BUSY)
        code = cli_failed("%s is in use by another training", folder);
    if (code == CLI_DONE)
        *out = log;
    else
        cli_log_close(&log);
    return code;
}

/* Whether the file begins with the header, or with as much of it as a crash left. */
static bool is_log(const char *path)
{
    char text[sizeof header] = "";
    FILE *from = cli_file_open(path, "r");
    if (!from) return true; /* cli_log_read reports that */
    size_t got = fread(text, 1, sizeof header - 1, from);
    (void)fclose(from);
    return memcmp(text, header, got) == 0;
}

int cli_log_cut(cli_log *log, int64_t step, void (*visit)(void *context, const cli_log_line *),
                void *context)
{
    int64_t end = 0;
    log->used = 0;
    if (!is_log(log->path))
        return cli_failed("%s does not begin as 'embla train' writes it, so it is not replaced; "
                          "rename it, and a new one is made",
                          log->path);
    if (!cli_log_read(log->path, step, visit, context, &end) ||
        !cli_because(embla_system_set_size(log->file, (uint64_t)end)) ||
        !cli_because(cli_seek_end(log->file)) ||
        (end == 0 && !cli_write_all(log->file, header, strlen(header), NULL)))
        return cli_failed("%s: %s", log->path, cli_why());
    return CLI_DONE;
}

bool cli_log_add(cli_log *log, const cli_log_line *line)
{
    char validation[32] = "";
    if (log->room - log->used < LINE_MOST) {
        size_t room = log->room > 0 ? 2 * log->room : 1 << 16;
        char *text = realloc(log->text, room);
        if (!text) return false;
        log->text = text;
        log->room = room;
    }
    if (!isnan(line->validation))
        (void)snprintf(validation, sizeof validation, "%.17g", line->validation);
    log->used += (size_t)snprintf(log->text + log->used, log->room - log->used,
                                  "%" PRId64 ",%.17g,%s,%.17g,%.17g,%" PRId64 ",%.6f\n", line->step,
                                  line->loss, validation, line->rate, line->norm, line->tokens,
                                  line->seconds);
    return true;
}

bool cli_log_flush(cli_log *log, bool sure)
{
    size_t done;
    bool good = cli_write_all(log->file, log->text, log->used, &done);
    if (done > 0) memmove(log->text, log->text + done, log->used - done);
    log->used -= done;
    return good && (!sure || cli_because(embla_system_sync(log->file)));
}

void cli_log_close(cli_log *log)
{
    if (log->file != EMBLA_NO_FILE) (void)embla_system_close(log->file);
    free(log->path);
    free(log->text);
    *log = (cli_log){.file = EMBLA_NO_FILE};
}
