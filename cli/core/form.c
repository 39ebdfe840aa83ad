/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the form of an answer. */
#include "core/form.h"

#include <string.h>

#include "core/ending.h"
#include "core/vectors.h"
#include "host/host.h"

/* "auto", then the names of cli_form */
static const char *const names[] = {"auto", "table", "text", "json", "svg", "png", "html"};

const char *cli_form_name(size_t n)
{
    return n < sizeof names / sizeof names[0] ? names[n] : NULL;
}

int cli_form_read(const cli_args *args, cli_form *out)
{
    const char *format = cli_args_text(args, "format"), *name;
    const char *asked = strcmp(format, "auto") != 0 ? format : NULL;
    const bool json = cli_args_flag(args, "json");
    if (json && asked && strcmp(asked, "json") != 0)
        return cli_usage("--json and --format %s cannot be used together", format);
    int code = cli_ending_choose(args, cli_form_name, json ? "json" : asked, &name);
    if (code != CLI_DONE) return code;
    if (!name) name = cli_is_terminal(CLI_STDOUT) ? "table" : "text";
    for (int n = CLI_FORM_TABLE; n <= CLI_FORM_HTML; n++)
        if (strcmp(name, names[n + 1]) == 0) *out = (cli_form)n;
    return CLI_DONE;
}

bool cli_form_is_sheet(cli_form form, cli_sheet_kind *kind)
{
    const bool sheet = form >= CLI_FORM_SVG;
    if (sheet) *kind = (cli_sheet_kind)(form - CLI_FORM_SVG);
    return sheet;
}

int cli_form_redirect(const cli_args *args, cli_form form)
{
    return cli_vectors_redirect(args, form == CLI_FORM_PNG ? CLI_VECTORS_PNG : CLI_VECTORS_TEXT);
}
