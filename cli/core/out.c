/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for people, aligned columns, wrapped text, and a JSON writer that escapes.
 *
 * Plain ASCII without colour: a pipe gets the same bytes as a terminal, so a test can compare them.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/shown.h"
#include "core/args.h"
#include "core/out.h"
#include "core/visible.h"
#include "host/host.h"
#include "host/paths.h"

const char *cli_commas(int64_t number, char text[CLI_CELL])
{
    return embla_show_commas(number, text);
}

const char *cli_size(int64_t bytes, char text[CLI_CELL])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes / 1000;
    size_t unit = 0;
    if (bytes < 1000) {
        snprintf(text, CLI_CELL, "%" PRId64 " B", bytes);
        return text;
    }
    /* 999,995 bytes and more would print as 1000.00 kB. */
    for (; value >= 999.995 && unit < 5; unit++) value /= 1000;
    snprintf(text, CLI_CELL, "%.2f %s", value, units[unit]);
    return text;
}

int cli_out_width(void)
{
    int columns, lines;
    if (!cli_terminal_size(CLI_STDOUT, &columns, &lines)) return CLI_WIDTH;
    return columns < 40 ? 40 : columns > 100 ? 100 : columns;
}

bool cli_out_fits(int columns)
{
    return columns <= cli_out_width() || !cli_is_terminal(CLI_STDOUT);
}

static void wrap(const char *text, int column, int indent, int width)
{
    int start = column;
    while (*text) {
        if (*text == '\n') {
            printf("\n%*s", text[1] && text[1] != '\n' ? indent : 0, "");
            start = column = indent;
            text++;
            continue;
        }
        int length = (int)strcspn(text, " \n");
        if (column > start && column + 1 + length > width) {
            printf("\n%*s", indent, "");
            start = column = indent;
        }
        if (column > start) column += printf(" ");
        column += printf("%.*s", length, text);
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

void cli_out_wrapped(const char *text, int column, int indent)
{
    int width = cli_out_width();
    wrap(text, column, indent, width < CLI_WIDTH ? width : CLI_WIDTH);
}

void cli_out_fact(const char *label, const char *format, ...)
{
    char text[1024], shown[4 * sizeof text];
    size_t used = 0;
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    for (const char *c = text; *c;) {
        size_t length = cli_printable(c, strlen(c));
        if (length > 0)
            memcpy(shown + used, c, length);
        else
            snprintf(shown + used, 5, "\\x%02x", (unsigned)(unsigned char)*c);
        used += length > 0 ? length : 4;
        c += length > 0 ? length : 1;
    }
    shown[used] = '\0';
    wrap(shown, printf("%-*s", CLI_LABEL, label), CLI_LABEL, cli_out_width());
}

/* Where a line of a command of at most `width` columns ends: at the last space outside quotes, if
 * the command is longer. */
static size_t line_end(const char *text, size_t width)
{
    const size_t length = strlen(text);
    size_t end = length;
    bool quoted = false;
    if (length <= width) return length;
    for (size_t i = 0; i < length && (i + 2 <= width || end == length); i++) { /* room for " \\" */
        if (text[i] == '"') quoted = !quoted;
        if (text[i] == ' ' && !quoted) end = i;
    }
    return end;
}

void cli_out_command(const char *text)
{
    const size_t width = (size_t)cli_out_width() - 5;
    const char *before = "   $ ";
    for (size_t end; *text; text += end + (text[end] == ' '), before = "     ") {
        end = line_end(text, width);
        printf("%s%.*s%s\n", before, (int)end, text, text[end] ? " \\" : "");
    }
}

const char *cli_out_block(double share, int tall, int line, bool utf8)
{
    static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    int full = share > 0 ? (int)(share * 8 * tall + 0.5) : 0, here;
    if (share > 0 && full == 0) full = 1;
    here = full - 8 * line;
    here = here < 0 ? 0 : here > 8 ? 8 : here;
    return utf8 ? eighths[here] : here > 4 ? "#" : here > 0 ? "." : " ";
}

void cli_out_bar(double part, int columns, bool utf8, bool padded)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int steps = part > 0 ? (int)(8 * columns * (part < 1 ? part : 1) + 0.5) : 0;
    int full = utf8 ? steps / 8 : (steps + 4) / 8, rest = utf8 ? steps % 8 : 0;
    if (full + rest > 0 || padded) printf("  ");
    for (int i = 0; i < full; i++) fputs(utf8 ? "█" : "#", stdout);
    fputs(eighths[rest], stdout);
    if (padded) printf("%*s", columns - full - (rest > 0), "");
}

void cli_grid_put(cli_grid *grid, const char *format, ...)
{
    va_list list;
    assert(grid->used < sizeof grid->cells / sizeof grid->cells[0]);
    va_start(list, format);
    vsnprintf(grid->cells[grid->used++], CLI_CELL, format, list);
    va_end(list);
}

/* Prints a cell; `after` spaces follow it, -after spaces precede it. */
static void print_cell(const char *cell, int after)
{
    printf("%*s%s%*s", after < 0 ? -after : 0, "", cell, after > 0 ? after : 0, "");
}

/* For a terminal that is too narrow: each row as its first cell, and below it the other cells, with
 * the headings of their columns if there are any. */
static void print_narrow(const cli_grid *grid)
{
    char line[8 * CLI_CELL] = "";
    for (size_t i = grid->no_heading ? 0 : grid->columns; i < grid->used; i++) {
        size_t column = i % grid->columns, used = strlen(line);
        const char *cell = grid->cells[i];
        if (column == 0)
            printf("%s\n", cell);
        else if (!grid->no_heading && *cell)
            printf("  %s: %s\n", grid->cells[column], cell);
        else if (*cell)
            snprintf(line + used, sizeof line - used, "%s%s",
                     used == 0                     ? ""
                     : column + 1 == grid->columns ? "; "
                                                   : " ",
                     cell);
        if (column + 1 < grid->columns || !line[0]) continue;
        cli_out_wrapped(line, printf("    "), 4);
        line[0] = '\0';
    }
}

/* Returns the columns of the whole grid. */
static int measure(const cli_grid *grid, int widths[16])
{
    int whole = -2;
    assert(grid->columns <= 16);
    for (size_t column = 0; column < grid->columns; column++) {
        widths[column] = 0;
        for (size_t i = column; i < grid->used; i += grid->columns) {
            int wide = (int)cli_columns(grid->cells[i]);
            if (wide > widths[column]) widths[column] = wide;
        }
        whole += widths[column] + 2;
    }
    return whole;
}

bool cli_grid_fits(const cli_grid *grid)
{
    int widths[16];
    return cli_out_fits(measure(grid, widths));
}

void cli_grid_print(const cli_grid *grid, const char *align)
{
    int widths[16];
    assert(grid->columns == strlen(align));
    if (!cli_out_fits(measure(grid, widths))) {
        print_narrow(grid);
        return;
    }
    for (size_t i = 0; i < grid->used; i++) {
        size_t column = i % grid->columns;
        bool last = column + 1 == grid->columns;
        int rest = widths[column] - (int)cli_columns(grid->cells[i]);
        print_cell(grid->cells[i], align[column] == 'r' ? -rest : last ? 0 : rest);
        printf(last ? "\n" : "  ");
    }
}

static void write_stdout(void *to, const char *bytes, size_t length)
{
    (void)to;
    (void)fwrite(bytes, 1, length, stdout);
}

static const embla_json_sink standard_output = {.write = write_stdout};

/* Writes a JSON string. DEL is escaped, because a terminal may interpret it. */
static bool write_string(const char *text, size_t length)
{
    return embla_json_write_string(&standard_output, text, length, true);
}

static void begin_value(cli_json *json, const char *key)
{
    if (json->comma) putchar(',');
    json->comma = true;
    if (!key) return;
    (void)write_string(key, strlen(key));
    putchar(':');
}

void cli_json_open(cli_json *json, const char *key, char bracket)
{
    begin_value(json, key);
    putchar(bracket);
    json->comma = false;
}

void cli_json_close(cli_json *json, char bracket)
{
    putchar(bracket);
    json->comma = true;
}

void cli_json_text(cli_json *json, const char *key, const char *text)
{
    begin_value(json, key);
    if (text)
        (void)write_string(text, strlen(text));
    else
        fputs("null", stdout);
}

bool cli_json_bytes(cli_json *json, const char *key, const char *bytes, size_t length)
{
    begin_value(json, key);
    return write_string(bytes, length);
}

void cli_json_whole(cli_json *json, const char *key, int64_t number)
{
    begin_value(json, key);
    embla_json_write_whole(&standard_output, number);
}

void cli_json_real(cli_json *json, const char *key, double number)
{
    char digits[EMBLA_JSON_DIGITS];
    begin_value(json, key);
    embla_json_digits(number, 9, digits);
    embla_json_write(&standard_output, digits);
}

void cli_json_bool(cli_json *json, const char *key, bool value)
{
    begin_value(json, key);
    embla_json_write_bool(&standard_output, value);
}

void cli_out_safe(const char *text)
{
    (void)cli_word_write(text, strlen(text), stdout);
}

const char *cli_plural(int64_t number, const char *word, char text[CLI_CELL])
{
    return embla_show_count(number, word, text);
}

/* ---- to a file ---- */

/* Static, because a signal may remove the file. One file at a time. */
static char *target, *temporary;
static const char *typed_path; /* the path as typed */
static bool device;            /* typed_path is written directly */
static bool replaces;          /* a file with the name of target may be replaced */

static void remove_temporary(void)
{
    if (temporary) (void)embla_system_remove(EMBLA_HERE, temporary);
}

static void reset_target(void)
{
    free(target);
    free(temporary);
    target = temporary = NULL;
    typed_path = NULL;
    device = replaces = false;
}

/* Creates a file with a new name beside path, with the mode of the file it replaces. NULL if that
 * fails, else its name. */
static char *create_beside(const char *path, const embla_file_facts *old, embla_handle *file)
{
    const size_t size = strlen(path) + sizeof ".XXXXXX";
    char *name = malloc(size);
    if (!name) {
        (void)cli_because(embla_system_outcome(EMBLA_SYSTEM_NO_MEMORY));
        return NULL;
    }
    (void)snprintf(name, size, "%s.XXXXXX", path);
    bool made = cli_new_file(name, old ? 0600 : 0666, file);
    if (made && (!old || cli_because(embla_system_set_mode(*file, old->mode & 0777)))) return name;
    if (made) {
        (void)embla_system_close(*file);
        (void)embla_system_remove(EMBLA_HERE, name);
    }
    free(name);
    return NULL;
}

/* Diverts stdout to a new file beside target. */
static bool open_temporary(const embla_file_facts *old)
{
    embla_handle file;
    temporary = create_beside(target, old, &file);
    if (!temporary) return false;
    cli_at_signal(remove_temporary);
    embla_outcome done = cli_stdout_divert(file);
    (void)embla_system_close(file);
    if (!embla_worked(done)) remove_temporary();
    return cli_because(done);
}

static int refuse_existing(const char *path)
{
    return cli_failed("%s already exists; choose another name, or use --force to replace it", path);
}

bool cli_out_exists(const char *path)
{
    embla_file_facts found;
    return cli_facts_of_name(path, &found);
}

int cli_out_check_beside(const char *path, bool ours, bool force)
{
    if (!cli_out_exists(path)) return CLI_DONE;
    if (!ours)
        return cli_failed("%s exists and was not written by this program, so it is never replaced; "
                          "choose another name for the output",
                          path);
    return force ? CLI_DONE : refuse_existing(path);
}

bool cli_out_is_stdout(const char *path)
{
    embla_file_facts file, out;
    if (strcmp(path, "-") == 0) return true;
    return cli_facts(path, &file) &&
           embla_worked(embla_system_facts(cli_stream_handle(CLI_STDOUT), &out)) &&
           embla_same_file(file.id, out.id);
}

int cli_out_check_folder(const char *path)
{
    const char *slash = embla_system_slash(path);
    char *folder = slash ? cli_copy_text(path, slash == path ? 1 : (size_t)(slash - path))
                         : cli_copy_text(".", 1);
    int code = CLI_DONE;
    if (!folder) return cli_failed("no memory for the path %.200s", path);
    embla_outcome able = cli_folder_writable(folder);
    if (able.error == EMBLA_SYSTEM_NOT_FOUND)
        code = cli_failed("%s cannot be written: the folder %s does not exist; create it first",
                          path, folder);
    else if (!cli_because(able))
        code = cli_failed("%s: %s", path, cli_why());
    free(folder);
    return code;
}

int cli_out_check(const char *path, bool force)
{
    if (cli_out_is_stdout(path)) return CLI_DONE;
    if (cli_out_exists(path)) /* links are followed */
        return cli_is_file(path) && !force ? refuse_existing(path) : CLI_DONE;
    return cli_out_check_folder(path);
}

int cli_out_check_new(const char *path, bool force)
{
    embla_file_facts found;
    if (strcmp(path, "-") == 0)
        return cli_usage("'-' is not a file name; the result cannot go to standard output");
    if (!cli_facts_of_name(path, &found)) return cli_out_check_folder(path);
    if (found.kind != EMBLA_REGULAR_FILE)
        return cli_failed("%s is %s; choose the name of a file to write", path,
                          found.kind == EMBLA_IS_FOLDER ? "a folder"
                          : found.kind == EMBLA_IS_LINK ? "a symbolic link"
                                                        : "a device or a pipe");
    return force ? CLI_DONE : refuse_existing(path);
}

/* Diverts stdout to a device or a pipe. */
static int open_device(const char *path)
{
    embla_handle file;
    if (!cli_because(embla_system_open(EMBLA_HERE, path, EMBLA_OPEN_WRITE, 0, &file)))
        return cli_failed("%s: %s", path, cli_why());
    embla_outcome done = cli_stdout_divert(file);
    (void)embla_system_close(file);
    if (!cli_because(done)) return cli_failed("%s: %s", path, cli_why());
    typed_path = path;
    device = true;
    return CLI_DONE;
}

int cli_out_to(const char *path, bool force)
{
    embla_file_facts link, old;
    bool there = cli_facts_of_name(path, &link), found = there && cli_facts(path, &old);
    if (cli_out_is_stdout(path)) return CLI_DONE;
    if (found && old.kind != EMBLA_REGULAR_FILE) return open_device(path);
    if (there && !force) return refuse_existing(path);
    if (!there && cli_out_check_folder(path) != CLI_DONE) return CLI_FAILED;
    typed_path = path;
    replaces = force;
    target = found ? cli_path_real(path) : cli_copy_text(path, strlen(path)); /* follow links */
    if (target && open_temporary(found ? &old : NULL)) return CLI_DONE;
    reset_target();
    return cli_failed("%s: %s", path, cli_why());
}

int cli_out_done(int code)
{
    if (!temporary && !device) return code;
    bool written = cli_out_finish() || cli_because_errno();
    bool named = written && (device || code != CLI_DONE || cli_rename(temporary, target, replaces));
    if (code != CLI_DONE || !named) {
        remove_temporary();
        cli_stdout_drop(); /* the error is reported already, or below */
    }
    if (code == CLI_DONE && !named)
        code = written && cli_why_error() == EMBLA_SYSTEM_EXISTS
                   ? refuse_existing(typed_path)
                   : cli_failed("%s: %s", typed_path, cli_why());
    if (!cli_stdout_restore() && code == CLI_DONE)
        code =
            cli_failed("standard output is lost after %s was written: %s", typed_path, cli_why());
    reset_target();
    return code;
}

/* Diverts stdout to the file while print runs, whose code is *code. */
static bool print_to(embla_handle file, int (*print)(const void *context), const void *context,
                     int *code)
{
    if (!cli_because(cli_stdout_divert(file))) return false;
    *code = print(context);
    bool good = fflush(stdout) == 0 || cli_because_errno();
    if (!good) clearerr(stdout);
    return cli_stdout_restore() && good;
}

int cli_out_draw(const char *path, int (*print)(const void *context), const void *context)
{
    embla_file_facts old;
    embla_handle file = EMBLA_NO_FILE;
    bool found = cli_facts(path, &old);
    char *real = found ? cli_path_real(path) : cli_copy_text(path, strlen(path)); /* follow links */
    char *name = real ? create_beside(real, found ? &old : NULL, &file) : NULL;
    int code = CLI_DONE;
    bool good = name && print_to(file, print, context, &code) && code == CLI_DONE;
    if (name) (void)embla_system_close(file);
    if (good) good = cli_rename(name, real, true);
    if (!good && name) (void)embla_system_remove(EMBLA_HERE, name);
    free(name);
    free(real);
    if (good || code != CLI_DONE) return code;
    return cli_failed("%s: %s", path, cli_why());
}

void cli_out_written(const cli_args *args, const char *path, bool apart)
{
    char size[CLI_CELL];
    if (cli_args_flag(args, "json") || cli_args_flag(args, "quiet")) return;
    if (!cli_is_file(path)) return;
    if (apart) putchar('\n');
    cli_out_fact("written", "%s: %s", path, cli_size(cli_file_size(path), size));
}

bool cli_out_finish(void)
{
    errno = 0;
    bool was_bad = ferror(stdout) != 0;
    bool flushed = fflush(stdout) == 0;
    if (was_bad && errno == 0) { /* an old error: write one byte to get errno */
        clearerr(stdout);
        bool able = putchar('\n') != EOF && fflush(stdout) == 0;
        if (able) errno = EIO;
    }
    return flushed && !was_bad;
}
