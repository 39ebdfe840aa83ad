/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a command reads, and whether one of them is the output. */
#include "core/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/model.h"
#include "core/unpack.h"
#include "host/host.h"
#include "host/paths.h"

static bool is_same(const char *path, const embla_file_facts *that)
{
    embla_file_facts file;
    return embla_worked(embla_system_facts_at(EMBLA_HERE, path, true, &file)) &&
           embla_same_file(file.id, that->id);
}

/* Whether that is NAME.vocab.txt, which has the words of the input NAME.ext. */
static bool is_vocab(const char *input, const embla_file_facts *that)
{
    char path[CLI_PATH_MOST];
    const char *slash = embla_system_slash(input), *dot = strrchr(slash ? slash + 1 : input, '.');
    size_t length =
        dot && dot > (slash ? slash + 1 : input) ? (size_t)(dot - input) : strlen(input);
    int used = snprintf(path, sizeof path, "%.*s.vocab.txt", (int)length, input);
    return used > 0 && (size_t)used < sizeof path && is_same(path, that);
}

/* Whether that is a file beside the tensors of a model, from which settings or words are read. */
static bool is_beside(const char *folder, int length, const embla_file_facts *that)
{
    char path[CLI_PATH_MOST];
    for (size_t n = 0; cli_beside_name(n); n++) {
        int used = snprintf(path, sizeof path, "%.*s/%s", length, folder, cli_beside_name(n));
        if (used > 0 && (size_t)used < sizeof path && is_same(path, that)) return true;
    }
    return false;
}

static bool is_separator(char c)
{
    const char text[2] = {c, '\0'};
    return embla_system_slash(text) != NULL;
}

/* Whether path is inside folder. */
static bool is_inside(const char *folder, const char *path)
{
    char *outer = cli_path_real(folder), *inner = cli_path_real(path);
    size_t length = outer ? strlen(outer) : 0;
    if (length > 0 && is_separator(outer[length - 1])) length--; /* "/", or the root of a drive */
    bool inside =
        outer && inner && strncmp(outer, inner, length) == 0 && is_separator(inner[length]);
    free(outer);
    free(inner);
    return inside;
}

/* Whether that is a file of the model that input names: of a folder, or of the list of its parts. A
 * folder that is not a model holds texts, and all its files are read. */
static bool is_of_model(const char *input, const char *path, const embla_file_facts *that)
{
    embla_file_facts file;
    embla_checkpoint *checkpoint = NULL;
    const char *dot = strrchr(input, '.'), *slash = embla_system_slash(input);
    bool folder = embla_worked(embla_system_facts_at(EMBLA_HERE, input, true, &file)) &&
                  file.kind == EMBLA_IS_FOLDER,
         found = false;
    bool list = dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".gguf") == 0);
    if (!folder && !list && !(dot && strcmp(dot, ".safetensors") == 0)) return false;
    bool model =
        (folder || list) && cli_open_path(input, &(embla_open_options){0}, &checkpoint) == EMBLA_OK;
    if (folder && !model) return is_inside(input, path);
    if (model) {
        size_t count;
        const embla_file *files = embla_checkpoint_files(checkpoint, &count);
        for (size_t n = 0; n < count && !found; n++) found = is_same(files[n].name, that);
        embla_checkpoint_free(checkpoint);
    }
    if (folder) return found || is_beside(input, (int)strlen(input), that);
    return found || is_beside(slash ? input : ".", slash ? (int)(slash - input) : 1, that);
}

/* The same for an operand or the value of an option, which may be 'FILE::TENSOR', or no file. */
static bool is_read(const char *input, const char *path, const embla_file_facts *that)
{
    char name[CLI_PATH_MOST];
    const char *tensor = strstr(input, "::");
    int length = tensor && tensor > input ? (int)(tensor - input) : (int)strlen(input);
    if (length >= (int)sizeof name) return false;
    (void)snprintf(name, sizeof name, "%.*s", length, input);
    return is_same(name, that) || is_vocab(name, that) || is_of_model(name, path, that);
}

/* The same for a list of files with commas between them (--eval A,B). */
static bool is_listed(const char *list, const embla_file_facts *that)
{
    char name[CLI_PATH_MOST];
    while (*list) {
        size_t length = strcspn(list, ",");
        if (length < sizeof name) {
            (void)snprintf(name, sizeof name, "%.*s", (int)length, list);
            if (is_same(name, that)) return true;
        }
        list += length + (list[length] == ',');
    }
    return false;
}

/* Whether the value of an option names a file that is written. */
static bool is_written(const cli_option *option)
{
    static const char *const names[] = {"output", "plot", "film", "compile", "index"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
        if (strcmp(option->name, names[n]) == 0) return true;
    return false;
}

int cli_inputs_check(const cli_args *args, const char *path)
{
    embla_file_facts that, input;
    if (!embla_worked(embla_system_facts_at(EMBLA_HERE, path, true, &that)) ||
        that.kind != EMBLA_REGULAR_FILE)
        return CLI_DONE;
    bool found = embla_worked(embla_system_facts(cli_stream_handle(CLI_STDIN), &input)) &&
                 embla_same_file(input.id, that.id); /* embla encode .. -o texts.txt <texts.txt */
    const size_t files = args->verb->files > 0 ? args->verb->files : args->operand_count;
    for (size_t n = 0; n < args->operand_count && n < files && !found; n++) /* others are words */
        found = args->operands[n] != path && is_read(args->operands[n], path, &that);
    for (size_t n = 0; cli_option_at(args->verb, n) && !found; n++) {
        const cli_option *option = cli_option_at(args->verb, n);
        if (!option->value || !args->given[n] || is_written(option)) continue;
        found = is_read(args->values[n], path, &that) || is_listed(args->values[n], &that);
    }
    if (!found) return CLI_DONE;
    return cli_failed("%s is the input file and cannot be overwritten; choose another name", path);
}
