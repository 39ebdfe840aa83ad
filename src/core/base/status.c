/* SPDX-License-Identifier: Apache-2.0 */
/* One error message per thread, in a buffer of fixed size, so that reporting an error cannot
 * fail. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[512];

void embla_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    for (char *c = message; *c; c++) /* keep it one line, whatever name was quoted */
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
}

const char *embla_error(void)
{
    return message;
}

const char *embla_status_name(embla_status status)
{
    switch (status) {
    case EMBLA_OK:
        return "ok";
    case EMBLA_ERR_ARGUMENT:
        return "argument";
    case EMBLA_ERR_MEMORY:
        return "memory";
    case EMBLA_ERR_IO:
        return "io";
    case EMBLA_ERR_FORMAT:
        return "format";
    case EMBLA_ERR_UNSUPPORTED:
        return "unsupported";
    case EMBLA_ERR_NOT_FOUND:
        return "not found";
    case EMBLA_ERR_RANGE:
        return "range";
    case EMBLA_ERR_SHAPE:
        return "shape";
    case EMBLA_ERR_STOPPED:
        return "stopped";
    case EMBLA_ERR_BUSY:
        return "busy";
    }
    return NULL;
}
