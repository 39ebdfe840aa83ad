/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of an answer that can be a picture in a file: what compare and predict have in common.
 */
#ifndef CLI_CORE_FORM_H
#define CLI_CORE_FORM_H

#include "core/args.h"
#include "draw/sheet.h"

typedef enum {
    CLI_FORM_TABLE, /* for people */
    CLI_FORM_TEXT,  /* for programs */
    CLI_FORM_JSON,
    CLI_FORM_SVG, /* pictures for files, in the order of cli_sheet_kind */
    CLI_FORM_PNG,
    CLI_FORM_HTML
} cli_form;

/* The form that --format or --json asks for; else that of the ending of --output; else a table on a
 * terminal and text elsewhere. CLI_USAGE after a message if they contradict each other. */
int cli_form_read(const cli_args *args, cli_form *out);
/* Whether a form is a picture for a file; *kind is its kind. */
bool cli_form_is_sheet(cli_form form, cli_sheet_kind *kind);
/* Redirects stdout to the file of --output, if it is given; end it with cli_out_done. */
int cli_form_redirect(const cli_args *args, cli_form form);

/* The n-th format; NULL past the last. */
const char *cli_form_name(size_t n);
/* files: examples of names, such as "picture.svg, .png, .html, pairs.txt or .json" */
#define CLI_FORM_OPTIONS(files)                                                                    \
    {.name = "format",                                                                             \
     .value = "FORMAT",                                                                            \
     .standard = "auto",                                                                           \
     .choices = cli_form_name,                                                                     \
     .help = "output format; auto means the extension of FILE, or a table on a terminal and text " \
             "elsewhere"},                                                                         \
        {.name = "output",                                                                         \
         .letter = 'o',                                                                            \
         .value = "FILE",                                                                          \
         .help = "write to FILE, such as " files},                                                 \
    {                                                                                              \
        .name = "force", .help = "replace FILE if it exists"                                       \
    }

#endif
