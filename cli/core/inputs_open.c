/* SPDX-License-Identifier: Apache-2.0 */
/* The door through which every file enters that a command reads. Before the verb runs, a compressed
 * file is decompressed, and standard input that is read as a file is copied, both to a temporary
 * file. The verb goes on using the name as typed, and cli_input_path finds the bytes. A fuzzer of
 * command lines replaces this file, so that it touches no file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_cluster.h"

#include "core/advice.h"
#include "core/inputs.h"
#include "core/unpack.h"
#include "host/host.h"
#include "host/paths.h"

typedef struct {
    char *typed;       /* NULL means standard input */
    char *real;        /* the path of the bytes */
    cli_unpacked file; /* what is removed at the end */
} input;

static input *list;
static size_t count;

/* ---- temporary files ---- */

static void remove_files(void)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t n = 0; n < list[i].file.link_count; n++)
            (void)embla_system_remove(EMBLA_HERE, list[i].file.links[n]);
        if (list[i].file.path) (void)embla_system_remove(EMBLA_HERE, list[i].file.path);
        if (list[i].file.folder) (void)embla_system_remove_folder(EMBLA_HERE, list[i].file.folder);
    }
}

void cli_inputs_close(void)
{
    for (size_t i = 0; i < count; i++) {
        cli_unpack_free(&list[i].file);
        free(list[i].typed);
        free(list[i].real);
    }
    free(list);
    list = NULL;
    count = 0;
}

/* ---- names ---- */

static const input *find(const char *typed)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].typed ? strcmp(list[i].typed, typed) == 0 : strcmp(typed, "-") == 0)
            return &list[i];
    return NULL;
}

const char *cli_input_path(const char *typed)
{
    const input *found = typed ? find(typed) : NULL;
    return found ? found->real : typed;
}

const char *cli_input_name(const char *real)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].real, real) == 0)
            return list[i].typed ? list[i].typed : "standard input";
    return real;
}

/* Replaces each `old` in a text of size bytes by the first `length` bytes of `new`. */
static void replace(char *text, size_t size, const char *old, const char *new, size_t length)
{
    const size_t bytes = strlen(old);
    for (char *at = text; (at = strstr(at, old)); at += length) {
        size_t rest = strlen(at + bytes) + 1, room = size - (size_t)(at - text);
        if (length >= room) return;
        if (length + rest > room) rest = room - length;
        memmove(at + length, at + bytes, rest);
        memcpy(at, new, length);
        text[size - 1] = '\0';
    }
}

void cli_inputs_rename(char *text, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = list[i].typed ? list[i].typed : "standard input";
        const char *slash = embla_system_slash(name);
        replace(text, size, list[i].real, name, strlen(name));
        if (list[i].file.folder) /* a file beside it */
            replace(text, size, list[i].file.folder, slash ? name : ".",
                    slash ? (size_t)(slash - name) : 1);
    }
}

/* Keeps a file. real is copied. */
static int keep(const char *typed, const char *real, cli_unpacked *file)
{
    input *longer = realloc(list, (count + 1) * sizeof *list);
    if (longer) list = longer;
    input new = {.typed = typed ? strdup(typed) : NULL, .real = strdup(real), .file = *file};
    if (!longer || !new.real || (typed && !new.typed)) {
        free(new.typed);
        free(new.real);
        cli_unpack_free(file);
        return cli_failed("no memory for the name of a file");
    }
    cli_at_signal(remove_files);
    list[count++] = new;
    return CLI_DONE;
}

/* ---- opening ---- */

static int add_stdin(bool quiet)
{
    cli_unpacked piped = {0}, unpacked = {0};
    int code = cli_unpack_stdin(quiet, &piped);
    if (code == CLI_DONE) code = cli_unpack(piped.path, quiet, &unpacked);
    if (code == CLI_DONE && unpacked.path) {
        cli_unpack_free(&piped);
        piped = unpacked;
    } else if (code != CLI_DONE) {
        cli_unpack_free(&piped);
    }
    return code == CLI_DONE ? keep(NULL, piped.path, &piped) : code;
}

/* Keeps 'FILE::TENSOR' too, whose FILE is kept. */
static int add_tensor(const char *path, const char *mark, const char *real)
{
    char *name = NULL;
    if (asprintf(&name, "%s%s", real, mark) < 0) return cli_failed("no memory for a name");
    int code = keep(path, name, &(cli_unpacked){0});
    free(name);
    return code;
}

int cli_inputs_add(const char *path, bool quiet)
{
    cli_unpacked unpacked = {0};
    if (find(path)) return CLI_DONE;
    if (strcmp(path, "-") == 0) return add_stdin(quiet);
    const char *mark = cli_is_there(path) ? NULL : strstr(path, "::");
    char *base = mark ? cli_copy_text(path, (size_t)(mark - path)) : NULL;
    if (mark && !base) return cli_failed("no memory for the name of a file");
    const char *file = base ? base : path;
    int code = find(file) ? CLI_DONE : cli_unpack(file, quiet, &unpacked);
    if (code == CLI_DONE && unpacked.path) code = keep(file, unpacked.path, &unpacked);
    const input *found = code == CLI_DONE && base ? find(file) : NULL;
    if (found) code = add_tensor(path, mark, found->real);
    free(base);
    return code;
}

/* Adds the value of an option: FILE, @FILE, or several with commas. */
static int add_value(const char *value, bool quiet)
{
    char *copy = strdup(value + (value[0] == '@')), *rest = NULL;
    if (!copy) return cli_failed("no memory for '%.60s'", value);
    int code = cli_inputs_add(copy, quiet);
    for (char *name = strtok_r(copy, ",", &rest); name && code == CLI_DONE;
         name = strtok_r(NULL, ",", &rest))
        if (strcmp(name, "-") != 0) code = cli_inputs_add(name, quiet);
    free(copy);
    return code;
}

/* How many operands are files. */
static size_t file_operands(const cli_args *args)
{
    const cli_verb *verb = args->verb;
    size_t files = verb->instead && cli_args_given(args, verb->instead) ? 0 : verb->files;
    return files < args->operand_count ? files : args->operand_count;
}

/* The same, and 1 for a verb that opens its only operand by itself. */
static size_t named_operands(const cli_args *args)
{
    const size_t files = file_operands(args);
    return files > 0 || args->verb->files > 0 ? files : args->verb->operands_most == 1;
}

/* Standard input can be read once. With + and - as signs, only a single - is a question. */
static int check_stdin(const cli_args *args)
{
    const cli_option *option;
    size_t uses = 0;
    for (size_t i = 0; i < args->operand_count; i++) {
        bool sign = args->verb->signs && (i == 0 || args->operand_count > 2);
        uses += strcmp(args->operands[i], "-") == 0 && (!sign || i == 0);
    }
    for (size_t n = 0; (option = cli_option_at(args->verb, n)); n++) {
        if (option->reads == CLI_READS_NOTHING || !args->values[n]) continue;
        uses += strcmp(args->values[n], "-") == 0;
    }
    if (uses < 2) return CLI_DONE;
    return cli_usage("'-' is given %zu times, but standard input can be read only once; name a "
                     "file instead",
                     uses);
}

/* Refuses - for a verb that needs a file with a name. */
static int check_names(const cli_args *args, size_t files)
{
    const char *why = args->verb->no_stdin;
    for (size_t i = 0; why && i < files && i < args->operand_count; i++)
        if (strcmp(args->operands[i], "-") == 0)
            return cli_usage("%s cannot read a file from standard input: %s; save it to a file",
                             args->verb->name, why);
    return CLI_DONE;
}

int cli_inputs_open(const cli_args *args)
{
    const cli_option *option;
    const bool quiet = cli_args_flag(args, "quiet");
    const size_t files = file_operands(args);
    int code = check_names(args, files > 0 ? files : 1);
    if (code == CLI_DONE) code = check_stdin(args);
    if (code == CLI_DONE) code = cli_advise_files(args, named_operands(args));
    /* only one process of a job has a standard input: the verb finds out how many there are */
    const bool later = args->verb->ranks && embla_comm_launched();
    for (size_t i = 0; i < files && code == CLI_DONE; i++)
        if (!later || strcmp(args->operands[i], "-") != 0)
            code = cli_inputs_add(args->operands[i], quiet);
    for (size_t n = 0; (option = cli_option_at(args->verb, n)) && code == CLI_DONE; n++) {
        const char *value = args->values[n];
        if (option->reads == CLI_READS_NOTHING || !value) continue;
        if (option->reads == CLI_READS_LINES && strcmp(value, "-") == 0) continue;
        code = add_value(value, quiet);
    }
    return code;
}
