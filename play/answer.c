/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "play.h"

static struct {
    char *bytes;
    size_t count, room;
    bool failed; /* no memory: what follows is dropped */
    bool comma;  /* before the next element */
} answer;

static const char no_memory[] = "{\"error\":\"there is not enough memory for the answer\"}";

static void add(const char *bytes, size_t count)
{
    if (answer.failed) return;
    if (answer.room - answer.count <= count) {
        const bool fits = count < SIZE_MAX / 2 - answer.count;
        size_t room = fits ? (answer.count + count + 1) * 2 : 0;
        char *more = fits ? realloc(answer.bytes, room) : NULL;
        if (!more) {
            answer.failed = true;
            return;
        }
        answer.bytes = more;
        answer.room = room;
    }
    memcpy(answer.bytes + answer.count, bytes, count);
    answer.count += count;
    answer.bytes[answer.count] = '\0';
}

__attribute__((format(printf, 1, 2))) static void print(const char *format, ...)
{
    char text[64];
    va_list list;
    va_start(list, format);
    int count = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    add(text, count > 0 ? (size_t)count : 0);
}

/* A part of a text in quotes. Bytes that are not UTF-8 are left to the reader, which replaces them.
 */
static void escape(const char *bytes, size_t length)
{
    size_t from = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        add(bytes + from, i - from);
        from = i + 1;
        print(c < 0x20 ? "\\u%04x" : "\\%c", c);
    }
    add(bytes + from, length - from);
}

static void quote(const char *bytes, size_t length)
{
    add("\"", 1);
    escape(bytes, length);
    add("\"", 1);
}

static void begin_element(const char *key)
{
    if (answer.comma) add(",", 1);
    answer.comma = true;
    if (!key) return;
    quote(key, strlen(key));
    add(":", 1);
}

void answer_begin(void)
{
    answer.count = 0;
    answer.failed = answer.comma = false;
    add("{", 1);
}

const char *answer_end(void)
{
    add("}", 1);
    return answer.failed ? no_memory : answer.bytes;
}

const char *answer_refused(const char *sentence)
{
    answer_begin();
    answer_text("error", sentence, strlen(sentence));
    return answer_end();
}

static bool lacked; /* memory, since the last message */

void answer_lack(void)
{
    lacked = true;
}

const char *play_error(void)
{
    if (!lacked) return embla_error();
    lacked = false;
    return "there is not enough memory in this page";
}

const char *answer_failed(void)
{
    return answer_refused(play_error());
}

void answer_open(const char *key, char bracket)
{
    begin_element(key);
    add(&bracket, 1);
    answer.comma = false;
}

void answer_close(char bracket)
{
    add(bracket == '[' ? "]" : "}", 1);
    answer.comma = true;
}

void answer_text(const char *key, const char *bytes, size_t length)
{
    begin_element(key);
    if (bytes)
        quote(bytes, length);
    else
        add("null", 4);
}

void answer_text_open(const char *key)
{
    begin_element(key);
    add("\"", 1);
}

void answer_text_add(const char *bytes, size_t length)
{
    escape(bytes, length);
}

void answer_text_close(void)
{
    add("\"", 1);
}

void answer_whole(const char *key, int64_t number)
{
    begin_element(key);
    print("%" PRId64, number);
}

void answer_bool(const char *key, bool value)
{
    begin_element(key);
    print("%s", value ? "true" : "false");
}

void answer_real(const char *key, double number)
{
    begin_element(key);
    if (isfinite(number))
        print("%.17g", number);
    else
        add("null", 4);
}

void answer_float(const char *key, float number)
{
    begin_element(key);
    if (isfinite(number))
        print("%.9g", (double)number);
    else
        add("null", 4);
}

void answer_rows(const char *key, const float *rows, size_t count, size_t dim)
{
    answer_open(key, '[');
    for (size_t i = 0; i < count; i++) {
        answer_open(NULL, '[');
        for (size_t k = 0; k < dim; k++) answer_float(NULL, rows[i * dim + k]);
        answer_close('[');
    }
    answer_close('[');
}
