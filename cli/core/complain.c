/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on stderr. */
#include "core/complain.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/visible.h"

/* A message may quote any bytes; unprintable ones are escaped. */
void cli_complain(const char *format, ...)
{
    char text[640];
    va_list list;
    va_start(list, format);
    bool cut = vsnprintf(text, sizeof text, format, list) >= (int)sizeof text;
    va_end(list);
    fputs("embla: ", stderr);
    for (const char *c = text; *c;) {
        size_t length = cli_printable(c, strlen(c));
        if (length > 0)
            fprintf(stderr, "%.*s", (int)length, c);
        else
            fprintf(stderr, "\\x%02x", (unsigned)(unsigned char)*c);
        c += length > 0 ? length : 1;
    }
    fputs(cut ? " ..\n" : "\n", stderr);
}
