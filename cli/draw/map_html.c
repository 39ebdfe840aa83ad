/* SPDX-License-Identifier: Apache-2.0 */
/* The map as one page that needs nothing else: map_page.html with the rows in it.
 *
 * Places, norms, words and neighbours are base64, in scripts that are no scripts to a browser:
 * no byte of a vocabulary can end them or become part of the page. What is text by nature
 * (the title, a sentence) stands in attributes, escaped.
 */
#include "draw/map_frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "core/args.h"

/* ---- base64 ---- */

typedef struct {
    uint8_t left[3];
    size_t count;
} base64;

static void flush64(base64 *to)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = (uint32_t)to->left[0] << 16 | (uint32_t)to->left[1] << 8 | to->left[2];
    char out[4];
    for (size_t i = 0; i < 4; i++)
        out[i] = i <= to->count ? letters[bits >> (18 - 6 * i) & 63] : '=';
    (void)fwrite(out, 1, 4, stdout);
    *to = (base64){0};
}

static void put64(base64 *to, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to->left[to->count++] = ((const uint8_t *)bytes)[i];
        if (to->count == 3) flush64(to);
    }
}

static void begin64(const char *id)
{
    printf("<script type=\"text/plain\" id=\"%s\">", id);
}

static void end64(base64 *to)
{
    if (to->count > 0) flush64(to);
    puts("</script>");
}

/* Little-endian, as browsers are. */
static void put_floats(const char *id, const float *numbers, int64_t count)
{
    base64 to = {0};
    begin64(id);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &numbers[i], 4);
        const uint8_t bytes[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                                  (uint8_t)(bits >> 24)};
        put64(&to, bytes, 4);
    }
    end64(&to);
}

/* ---- words ---- */

enum { LONGEST = 200 }; /* bytes of a word that a page needs */

/* Whole characters of a word, at most LONGEST bytes. */
static size_t cut(const char *word, size_t length)
{
    size_t at = 0;
    while (at < length) {
        size_t bytes = embla_utf8_length(word + at, length - at);
        bytes = bytes > 0 ? bytes : 1;
        if (at + bytes > LONGEST) break;
        at += bytes;
    }
    return at;
}

/* One on each line. Backslashes are doubled in words, so one alone is none: no word. */
static int put_words(const cli_map *map)
{
    base64 to = {0};
    char *line = NULL;
    size_t used = 0;
    FILE *text = open_memstream(&line, &used);
    if (!text) return cli_failed("no memory for the words");
    begin64("data-words");
    for (int64_t row = 0; row < map->rows; row++) {
        size_t length, kept;
        const char *word = cli_map_word(map, row, &length);
        rewind(text);
        if (row > 0) (void)fputc('\n', text);
        kept = word ? cut(word, length) : 0;
        if (word) (void)cli_word_write(word, kept, text);
        if (!word) (void)fputc('\\', text);
        if (word && kept < length) (void)fputs("..", text);
        if (fflush(text) != 0) break;
        put64(&to, line, (size_t)ftello(text));
    }
    end64(&to);
    bool good = ferror(text) == 0;
    (void)fclose(text);
    free(line);
    return good ? CLI_DONE : cli_failed("no memory for the words");
}

/* ---- the page ---- */

static void put_escaped(const char *text)
{
    while (*text) {
        size_t bytes = cli_printable(text, strlen(text));
        if (bytes == 0)
            printf("\\x%02x", (unsigned)(unsigned char)*text);
        else if (strchr("&<>\"'", *text))
            printf("&#%d;", *text);
        else
            (void)fwrite(text, 1, bytes, stdout);
        text += bytes > 0 ? bytes : 1;
    }
}

static void put_attribute(const char *name, const char *text)
{
    printf(" data-%s=\"", name);
    put_escaped(text);
    putchar('"');
}

static int put_data(const cli_map *map)
{
    fputs("<div id=\"meta\" hidden", stdout);
    put_attribute("title", map->title);
    put_attribute("color", map->color);
    put_attribute("theme", map->theme);
    put_attribute("whynone", map->why_none ? map->why_none : "");
    printf(" data-rows=\"%lld\" data-all=\"%lld\" data-dim=\"%lld\" data-nonfinite=\"%lld\"",
           (long long)map->rows, (long long)map->all, (long long)map->dim,
           (long long)map->nonfinite);
    printf(" data-share=\"%.6g %.6g\" data-k=\"%zu\" data-home=\"%.9g %.9g %.9g %.9g\"></div>\n",
           map->share[0], map->share[1], map->neighbours, map->middle[0], map->middle[1],
           map->half[0], map->half[1]);
    put_floats("data-xy", map->places, 2 * map->rows);
    put_floats("data-norm", map->norms, map->rows);
    int code = map->vocab ? put_words(map) : CLI_DONE;
    if (map->neighbours > 0) {
        base64 to = {0};
        begin64("data-near");
        put64(&to, map->near, (size_t)map->rows * map->neighbours * CLI_MAP_NEAR_BYTES);
        end64(&to);
    }
    return code;
}

/* The page up to a mark; returns what comes after it. */
static const unsigned char *put_until(const unsigned char *from, const char *mark)
{
    const unsigned char *end = cli_map_page + cli_map_page_bytes;
    const unsigned char *at = memmem(from, (size_t)(end - from), mark, strlen(mark));
    (void)fwrite(from, 1, (size_t)((at ? at : end) - from), stdout);
    return at ? at + strlen(mark) : end;
}

int cli_map_html(const cli_map *map)
{
    const unsigned char *rest = put_until(cli_map_page, "<!--embla:title-->");
    put_escaped(map->title);
    rest = put_until(rest, "<!--embla:data-->");
    int code = put_data(map);
    (void)fwrite(rest, 1, (size_t)(cli_map_page + cli_map_page_bytes - rest), stdout);
    return code;
}
