/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the map as one self-contained page: map_page.html with the data of the rows.
 *
 * Positions, norms, words and neighbours are base64 in script elements of type text/plain, so that
 * no byte of a vocabulary can end the element or become part of the page. Title and messages are
 * escaped attributes.
 */
#include "draw/map_frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "core/args.h"

/* ---- base64 ---- */

static void print_bytes(void *unused, const char *bytes, size_t length)
{
    (void)unused;
    (void)fwrite(bytes, 1, length, stdout);
}

static const embla_json_sink page = {.write = print_bytes};

static void print_base64(embla_base64 *to, const void *bytes, size_t count)
{
    embla_base64_add(to, &page, bytes, count);
}

static void begin_base64(const char *id)
{
    printf("<script type=\"text/plain\" id=\"%s\">", id);
}

static void end_base64(embla_base64 *to)
{
    embla_base64_end(to, &page);
    puts("</script>");
}

/* Little-endian, as in browsers. */
static void print_floats(const char *id, const float *numbers, int64_t count)
{
    embla_base64 to = {0};
    begin_base64(id);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &numbers[i], 4);
        const uint8_t bytes[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                                  (uint8_t)(bits >> 24)};
        print_base64(&to, bytes, 4);
    }
    end_base64(&to);
}

/* ---- words ---- */

enum { LONGEST = 200 }; /* maximum bytes of a word in a page */

/* The length of a word in whole characters, at most LONGEST bytes. */
static size_t truncated_length(const char *word, size_t length)
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

/* One word per line. Words have doubled backslashes, so a single backslash means no word. */
static int print_words(const cli_map *map)
{
    embla_base64 to = {0};
    begin_base64("data-words");
    for (int64_t row = 0; row < map->rows; row++) {
        char line[LONGEST * EMBLA_SHOWN_CHARACTER + 4];
        size_t length, used = 0;
        const char *word = cli_map_word(map, row, &length);
        const size_t kept = word ? truncated_length(word, length) : 0;
        if (row > 0) line[used++] = '\n';
        if (word) used += cli_word_text(word, kept, line + used);
        if (!word) line[used++] = '\\';
        if (word && kept < length) line[used++] = '.', line[used++] = '.';
        print_base64(&to, line, used);
    }
    end_base64(&to);
    return CLI_DONE;
}

/* ---- the page ---- */

static void print_escaped(const char *text)
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

static void print_attribute(const char *name, const char *text)
{
    printf(" data-%s=\"", name);
    print_escaped(text);
    putchar('"');
}

/* Where each community is, and its most central rows: "x y row row ..;x y row ..". */
static int print_community_list(const cli_map *map)
{
    enum { NAMED = 4 };
    size_t count;
    const embla_community *list = embla_communities_list(map->communities, &count);
    double *places = map->communities ? cli_map_community_places(map) : NULL;
    if (map->communities && !places) return cli_failed("no memory for the names of communities");
    fputs(" data-communities=\"", stdout);
    for (size_t c = 0; places && c < count; c++) {
        printf("%s%.6g %.6g", c > 0 ? ";" : "", places[2 * c], places[2 * c + 1]);
        for (size_t i = 0; i < list[c].central_count && i < NAMED; i++)
            printf(" %lld", (long long)list[c].central[i]);
    }
    putchar('"');
    free(places);
    return CLI_DONE;
}

/* The community of each row, one byte; 255 means none. */
static void print_community_labels(const cli_map *map)
{
    size_t count;
    embla_base64 to = {0};
    const int32_t *labels = embla_communities_labels(map->communities, &count);
    begin_base64("data-community");
    for (size_t row = 0; row < count; row++) {
        uint8_t label = labels[row] < 0 ? 255 : (uint8_t)labels[row];
        print_base64(&to, &label, 1);
    }
    end_base64(&to);
}

static int print_data(const cli_map *map)
{
    fputs("<div id=\"meta\" hidden", stdout);
    print_attribute("layout", cli_map_layout(map));
    int code = print_community_list(map);
    print_attribute("only", map->only ? "yes" : "");
    fputs(" data-picked=\"", stdout);
    for (size_t i = 0; i < map->listed_count; i++)
        printf("%s%lld", i > 0 ? " " : "", (long long)map->listed[i]);
    putchar('"');
    fputs(" data-arrows=\"", stdout);
    for (size_t i = 0; i < map->arrow_count; i++)
        printf("%s%lld %lld", i > 0 ? ";" : "", (long long)map->arrows[2 * i],
               (long long)map->arrows[2 * i + 1]);
    putchar('"');
    print_attribute("title", map->title);
    print_attribute("color", map->color);
    print_attribute("theme", map->theme);
    print_attribute("whynone", map->why_none ? map->why_none : "");
    printf(" data-rows=\"%lld\" data-all=\"%lld\" data-dim=\"%lld\" data-nonfinite=\"%lld\"",
           (long long)map->rows, (long long)map->all, (long long)map->dim,
           (long long)map->nonfinite);
    printf(" data-share=\"%.6g %.6g\" data-k=\"%zu\" data-home=\"%.9g %.9g %.9g %.9g\"></div>\n",
           map->share[0], map->share[1], map->neighbours, map->middle[0], map->middle[1],
           map->half[0], map->half[1]);
    print_floats("data-xy", map->places, 2 * map->rows);
    print_floats("data-norm", map->norms, map->rows);
    if (map->communities) print_community_labels(map);
    if (map->vocab && code == CLI_DONE) code = print_words(map);
    if (map->neighbours > 0) {
        embla_base64 to = {0};
        begin_base64("data-near");
        print_base64(&to, map->near, (size_t)map->rows * map->neighbours * CLI_MAP_NEAR_BYTES);
        end_base64(&to);
    }
    return code;
}

/* Prints the page up to a mark. Returns the position after it. */
static const unsigned char *print_until(const unsigned char *from, const char *mark)
{
    const unsigned char *end = cli_map_page + cli_map_page_bytes;
    const size_t length = strlen(mark);
    const unsigned char *at = from;
    while ((size_t)(end - at) >= length && memcmp(at, mark, length) != 0) at++;
    const bool found = (size_t)(end - at) >= length;
    (void)fwrite(from, 1, (size_t)((found ? at : end) - from), stdout);
    return found ? at + length : end;
}

int cli_map_html(const cli_map *map)
{
    const unsigned char *rest = print_until(cli_map_page, "<!--embla:title-->");
    print_escaped(map->title);
    rest = print_until(rest, "<!--embla:data-->");
    int code = print_data(map);
    (void)fwrite(rest, 1, (size_t)(cli_map_page + cli_map_page_bytes - rest), stdout);
    return code;
}
