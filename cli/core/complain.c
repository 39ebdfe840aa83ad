/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on stderr. */
#include "core/complain.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/inputs.h"
#include "core/visible.h"
#include "host/host.h"

/* The columns of the terminal of stderr; 0 means that it is none. */
static int terminal_width(void)
{
    int columns, lines;
    return cli_terminal_size(CLI_STDERR, &columns, &lines) ? columns : 0;
}

/* The last message while messages are kept; in a job of several processes, our rank. */
static bool holding;
static char held[640];
static int own_rank;

void cli_complain_hold(void)
{
    holding = true;
    held[0] = '\0';
}

void cli_complain_release(int rank, bool print)
{
    holding = false;
    own_rank = rank;
    if (print && held[0]) cli_complain("%s", held);
    held[0] = '\0';
}

void cli_complain_take(char *text, size_t size)
{
    (void)snprintf(text, size, "%s", held);
    holding = false;
    held[0] = '\0';
}

/* Writes "embla: text". The text may quote any bytes; unprintable ones are escaped. On a terminal
 * no word is broken at the end of a line. */
static void write_message(FILE *out, const char *text, bool cut)
{
    const int indent = fprintf(out, "embla: "), width = terminal_width();
    int column = indent;
    for (const char *c = text; *c;) {
        size_t length = cli_printable(c, strlen(c));
        if (*c == ' ' && width > 2 * indent && column + 1 + (int)strcspn(c + 1, " ") > width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
            c++;
            continue;
        }
        column += length > 0 ? 1 : 4;
        if (length > 0)
            fprintf(out, "%.*s", (int)length, c);
        else
            fprintf(out, "\\x%02x", (unsigned)(unsigned char)*c);
        c += length > 0 ? length : 1;
    }
    fputs(cut ? " ..\n" : "\n", out);
}

/* One write for the whole message: several ranks may write to the same pipe at the same time. */
void cli_complain(const char *format, ...)
{
    char text[sizeof held];
    int used = 0;
    va_list list;
    if (own_rank > 0 && !holding) used = snprintf(text, sizeof text, "rank %d: ", own_rank);
    va_start(list, format);
    int wanted = vsnprintf(text + used, sizeof text - (size_t)used, format, list);
    va_end(list);
    const bool cut = used + wanted >= (int)sizeof text;
    cli_inputs_rename(text, sizeof text);
    if (holding) {
        memcpy(held, text, sizeof held);
        return;
    }
    char *message = NULL;
    size_t length = 0;
    FILE *out = cli_text_open(&message, &length);
    if (out) {
        write_message(out, text, cut);
        if (cli_text_close(out, &message, &length)) fwrite(message, 1, length, stderr);
        free(message);
    } else {
        write_message(stderr, text, cut);
    }
}
