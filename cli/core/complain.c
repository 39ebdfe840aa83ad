/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on stderr. */
#include "core/complain.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/visible.h"

/* The columns of the terminal of stderr; 0 means that it is none. */
static int terminal_width(void)
{
    struct winsize size = {0};
    bool known = isatty(STDERR_FILENO) && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
    return known ? size.ws_col : 0;
}

/* A message may quote any bytes; unprintable ones are escaped. On a terminal no word is broken at
 * the end of a line. */
void cli_complain(const char *format, ...)
{
    char text[640];
    va_list list;
    va_start(list, format);
    bool cut = vsnprintf(text, sizeof text, format, list) >= (int)sizeof text;
    va_end(list);
    const int indent = fprintf(stderr, "embla: "), width = terminal_width();
    int column = indent;
    for (const char *c = text; *c;) {
        size_t length = cli_printable(c, strlen(c));
        if (*c == ' ' && width > 2 * indent && column + 1 + (int)strcspn(c + 1, " ") > width) {
            fprintf(stderr, "\n%*s", indent, "");
            column = indent;
            c++;
            continue;
        }
        column += length > 0 ? 1 : 4;
        if (length > 0)
            fprintf(stderr, "%.*s", (int)length, c);
        else
            fprintf(stderr, "\\x%02x", (unsigned)(unsigned char)*c);
        c += length > 0 ? length : 1;
    }
    fputs(cut ? " ..\n" : "\n", stderr);
}
