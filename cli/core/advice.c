/* SPDX-License-Identifier: Apache-2.0 */
/* Advice for command lines that are well formed, but not what was meant. Only names on disk tell:
 * `lookup cat words.vec` has both operands, in the wrong order.
 */
#include "core/advice.h"

#include <stdio.h>
#include <string.h>

#include "core/model.h"
#include "host/paths.h"

/* ---- files ---- */

/* Whether a name as typed is a file or a folder; 'FILE::TENSOR' is the file. */
static bool is_there(const char *name)
{
    char path[CLI_PATH_MOST];
    if (cli_is_there(name) || strcmp(name, "-") == 0) return true;
    const char *mark = strstr(name, "::");
    if (!mark || (size_t)(mark - name) >= sizeof path) return false;
    (void)snprintf(path, sizeof path, "%.*s", (int)(mark - name), name);
    return cli_is_there(path);
}

/* Writes the operands that are files, or those that are not. Returns the used bytes. */
static size_t write_operands(const cli_args *args, bool files, char *text, size_t size, size_t used)
{
    for (size_t i = 0; i < args->operand_count && used < size; i++) {
        const char *word = args->operands[i], *quote = strpbrk(word, " \t\"$*?") ? "'" : "";
        const bool file = strcmp(word, "-") != 0 && is_there(word);
        if (file != files) continue;
        used += (size_t)snprintf(text + used, size - used, " %s%s%s", quote, word, quote);
    }
    return used;
}

static int report_order(const cli_args *args, const char *missing)
{
    char text[240];
    size_t used = write_operands(args, true, text, sizeof text, 0);
    if (used < sizeof text) used = write_operands(args, false, text, sizeof text, used);
    if (used >= sizeof text)
        return cli_usage("%.60s: no such file or folder; the file comes first, then the words",
                         missing);
    return cli_usage("%.60s: no such file or folder; the file comes first: embla %s%s", missing,
                     args->verb->name, text);
}

/* Whether an operand behind the files is a file: they were typed in another order. */
static bool is_swapped(const cli_args *args, size_t files)
{
    const cli_verb *verb = args->verb;
    if (verb->operands_most <= files || strstr(verb->synopsis, "OUT")) return false;
    for (size_t i = files; i < args->operand_count; i++)
        if (strcmp(args->operands[i], "-") != 0 && is_there(args->operands[i])) return true;
    return false;
}

/* Finds the name in the folder of `path` that is most like its own. False if none is near. */
static bool find_similar(const char *path, char similar[CLI_NAME_MOST])
{
    const char *slash = embla_system_slash(path), *name = slash ? slash + 1 : path;
    char folder[CLI_PATH_MOST];
    size_t best = 1 + strlen(name) / 8, length = slash ? (size_t)(slash - path) + 1 : 1;
    if (length >= sizeof folder || strlen(name) < 3) return false;
    (void)snprintf(folder, sizeof folder, "%.*s", (int)length, slash ? path : ".");
    cli_names names;
    bool found = false;
    if (!cli_names_open(folder, &names)) return false;
    for (const char *other; (other = cli_names_next(&names));) {
        const size_t distance = cli_word_distance(name, other);
        if (other[0] == '.' || distance > best) continue;
        if (strcmp(name, other) == 0) continue; /* a link to nothing */
        if (found && distance == best && strcmp(similar, other) < 0) continue;
        found = true;
        best = distance;
        (void)snprintf(similar, CLI_NAME_MOST, "%s", other);
    }
    cli_names_close(&names);
    return found;
}

int cli_advise_files(const cli_args *args, size_t files)
{
    char similar[CLI_NAME_MOST];
    if (args->verb->choices) return CLI_DONE;
    for (size_t i = 0; i < files && i < args->operand_count; i++) {
        const char *name = args->operands[i], *slash = embla_system_slash(name);
        if (is_there(name)) continue;
        if (strstr(name, "://"))
            return cli_failed("%s: Embla downloads nothing; download the file first, for example "
                              "with 'curl -LO'",
                              name);
        if (!strpbrk(name, "./") && is_swapped(args, files)) return report_order(args, name);
        if (find_similar(name, similar))
            return cli_failed("%s: no such file or folder; did you mean '%.*s%s'?", name,
                              slash ? (int)(slash - name) + 1 : 0, name, similar);
        return CLI_DONE;
    }
    return CLI_DONE;
}

/* ---- texts ---- */

void cli_advise_quotes(const cli_args *args, size_t first)
{
    if (cli_args_flag(args, "quiet") || args->operand_count < first + 2) return;
    for (size_t i = first; i < args->operand_count; i++)
        if (strchr(args->operands[i], ' ') || strcmp(args->operands[i], "-") == 0) return;
    cli_complain("note: these are %zu texts; quotes make one of them: \"%.40s %.40s%s\"",
                 args->operand_count - first, args->operands[first], args->operands[first + 1],
                 args->operand_count > first + 2 ? " .." : "");
}

void cli_advise_text(const cli_args *args, const char *path)
{
    embla_checkpoint *checkpoint = NULL;
    if (cli_args_flag(args, "quiet") || strcmp(path, "-") == 0) return;
    if (cli_open_path(path, &(embla_open_options){0}, &checkpoint) != EMBLA_OK) return;
    const char *format = embla_checkpoint_format(checkpoint);
    if (strcmp(format, "npy") != 0) /* an array of tokens is read as such */
        cli_complain("note: %s is a model or a table (%s), not a text; its bytes are read as text",
                     path, format);
    embla_checkpoint_free(checkpoint);
}
