/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the format of an output file, and refuses names that would lie about it. */
#include "core/ending.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/inputs.h"
#include "core/out.h"
#include "host/paths.h"

enum { ENDINGS = 256 }; /* bytes of a list of endings */

/* The ending without its dot; "" if there is none. A leading dot begins a hidden file's name. */
static const char *ending_of(const char *path)
{
    const char *slash = embla_system_slash(path), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot && dot > name ? dot + 1 : "";
}

/* Whether an ending belongs to a format. */
static bool names(const char *ending, const char *format)
{
    if (strcmp(format, "text") == 0) return strcasecmp(ending, "txt") == 0;
    if (strcmp(format, "html") == 0 && strcasecmp(ending, "htm") == 0) return true;
    return strcasecmp(ending, format) == 0;
}

/* In the order of cli_sheet_kind. */
static const char *const pictures[] = {"svg", "png", "html"};
enum { PICTURES = sizeof pictures / sizeof pictures[0] };

/* The picture that an ending promises; NULL if it promises none. */
static const char *picture_of(const char *ending)
{
    for (size_t i = 0; i < PICTURES; i++)
        if (names(ending, pictures[i])) return pictures[i];
    return NULL;
}

/* Whether a format is for a terminal and has no files. */
static bool has_no_file(const char *format)
{
    static const char *const shown[] = {"picture", "auto", "table"};
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        if (strcmp(format, shown[i]) == 0) return true;
    return false;
}

/* ".svg, .png or .html" */
static const char *list_endings(cli_choices formats, char text[ENDINGS])
{
    size_t used = 0, left = 0;
    text[0] = '\0';
    for (size_t n = 0; formats(n); n++) left += !has_no_file(formats(n));
    for (size_t n = 0; formats(n) && used < ENDINGS; n++) {
        const char *name = formats(n);
        if (has_no_file(name)) continue;
        left--;
        used += (size_t)snprintf(text + used, ENDINGS - used, ".%s%s",
                                 strcmp(name, "text") == 0 ? "txt" : name,
                                 left > 1    ? ", "
                                 : left == 1 ? " or "
                                             : "");
    }
    return text;
}

/* Whether the name says nothing, because a device, a pipe or standard output has it. */
static bool is_no_file(const char *path)
{
    embla_file_facts file;
    return cli_out_is_stdout(path) || (cli_facts(path, &file) && file.kind != EMBLA_REGULAR_FILE &&
                                       file.kind != EMBLA_IS_FOLDER);
}

int cli_ending_choose(const cli_args *args, cli_choices formats, const char *asked,
                      const char **out)
{
    const char *path = cli_args_text(args, "output");
    char list[ENDINGS];
    *out = asked;
    if (!path || is_no_file(path)) return CLI_DONE;
    int code = cli_inputs_check(args, path);
    if (code != CLI_DONE) return code;
    const char *ending = ending_of(path), *picture = picture_of(ending);
    if (asked && picture && strcmp(asked, picture) != 0)
        return cli_usage("--output: '%s' has the extension of a picture, but the format is %s; "
                         "choose another name, or let the extension choose the format",
                         path, asked);
    if (asked) return CLI_DONE;
    for (size_t n = 0; formats(n); n++)
        if (!has_no_file(formats(n)) && names(ending, formats(n))) *out = formats(n);
    if (*out) return CLI_DONE;
    return cli_usage(
        "--output: the extension of '%s' is none of %s's formats; use %s, or --format, "
        "which allows any name",
        path, args->verb->name, list_endings(formats, list));
}

int cli_ending_check(const char *option, const char *path, const char *format)
{
    const char *ending = path ? ending_of(path) : "";
    char own[16];
    size_t length = 0;
    if (!ending[0] || names(ending, format)) return CLI_DONE;
    for (; format[length] && length + 1 < sizeof own; length++)
        own[length] = (char)tolower((unsigned char)format[length]);
    own[length] = '\0';
    return cli_usage("--%s writes %s, not '.%s'; choose a name that ends in .%s", option, format,
                     ending, own);
}

int cli_ending_sheet(const char *option, const char *path, cli_sheet_kind *out)
{
    const char *ending = ending_of(path);
    *out = CLI_SHEET_SVG;
    if (!ending[0]) return CLI_DONE;
    for (int i = 0; i < PICTURES; i++) {
        *out = (cli_sheet_kind)i;
        if (names(ending, pictures[i])) return CLI_DONE;
    }
    return cli_usage("--%s writes SVG, PNG or HTML, not '.%s'; choose a name that ends in .svg, "
                     ".png or .html",
                     option, ending);
}

int cli_ending_no_picture(const char *path, const char *what)
{
    if (!path || !picture_of(ending_of(path))) return CLI_DONE;
    return cli_usage("--output: '%s' has the extension of a picture, but %s is written; choose "
                     "another name",
                     path, what);
}
