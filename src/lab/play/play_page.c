/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the files of a page, and writes it: play/page/page.html with a script element of type
 * text/plain for each file, so that no byte of it can end the element or become part of the page.
 *
 *   <script type="application/json" id="page">   what the files are
 *   <script type="text/plain" class="file" data-path="/model/config.json">   base64
 *   <script type="text/plain" id="module">       base64 of play.wasm, compressed with gzip
 */
#include "play/play_page.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/options.h"
#include "checkpoint/checkpoint.h"
#include "files/io.h"
#include "files/map.h"

enum { ELEMENT = 80, FACTS = 4096 }; /* bytes of an element without its content, and of the JSON */

/* ---- files ---- */

uint64_t embla_play_size(uint64_t bytes)
{
    return (bytes + 2) / 3 * 4 + ELEMENT;
}

embla_status embla_play_add(embla_play_page *page, const char *path, const void *bytes, size_t size)
{
    if (page->count == EMBLA_PLAY_FILES)
        return embla_fail(EMBLA_ERR_RANGE, "a page has at most %d files; %.200s is one more",
                          (int)EMBLA_PLAY_FILES, path);
    embla_play_file *file = &page->files[page->count];
    EMBLA_TRY(embla_arena_text(&page->arena, path, strlen(path), &file->path));
    file->bytes = bytes;
    file->size = size;
    page->count++;
    page->used += embla_play_size(size) + strlen(path);
    return EMBLA_OK;
}

embla_status embla_play_read(embla_play_page *page, embla_folder folder, const char *name,
                             const char *shown, const char *path)
{
    embla_map *map = NULL;
    void *bytes = NULL;
    EMBLA_TRY(embla_map_open(folder, name, shown, true, &map));
    embla_status status = EMBLA_OK;
    if (map->size > EMBLA_PLAY_PAGE_MOST)
        status = embla_fail(EMBLA_ERR_RANGE, "%.200s has %" PRIu64 " bytes; a page has at most %d",
                            shown, map->size, (int)EMBLA_PLAY_PAGE_MOST);
    if (status == EMBLA_OK)
        status = embla_arena_take(&page->arena, (size_t)map->size, shown, &bytes);
    if (status == EMBLA_OK) status = embla_map_read(map, 0, (size_t)map->size, bytes);
    if (status == EMBLA_OK) status = embla_play_add(page, path, bytes, (size_t)map->size);
    embla_map_free(map);
    return status;
}

/* Adds a file of the demo. */
static embla_status add_demo(embla_play_page *page, const char *name, const char *path)
{
    char from[4096];
    int used = snprintf(from, sizeof from, "%s/%s", page->options->demo, name);
    if (used < 0 || (size_t)used >= sizeof from)
        return embla_fail(EMBLA_ERR_ARGUMENT, "the path of the demo's folder is too long: %.200s..",
                          page->options->demo);
    return embla_play_read(page, EMBLA_HERE, from, from, path);
}

embla_status embla_play_words(embla_play_page *page)
{
    return add_demo(page, "words.vec", "/words.vec");
}

/* Adds what every page has of the demo. */
static embla_status add_examples(embla_play_page *page)
{
    static const char *const files[] = {"names/config.json",
                                        "names/tokenizer.json",
                                        "names/model.safetensors",
                                        "village/config.json",
                                        "village/tokenizer.json",
                                        "village/model.safetensors",
                                        "five.vec",
                                        "fox.vec",
                                        "names.txt",
                                        "village.txt"};
    char path[64];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "/%s", files[i]);
        EMBLA_TRY(add_demo(page, files[i], path));
    }
    return EMBLA_OK;
}

static embla_status add_text(embla_play_page *page)
{
    char path[EMBLA_PLAY_PATH];
    const char *text = page->options->text, *name = page->options->text_name;
    if (!text) return EMBLA_OK;
    page->text_name = name ? name : text;
    const char *slash = embla_io_slash(page->text_name);
    (void)snprintf(path, sizeof path, "/text/%.400s", slash ? slash + 1 : page->text_name);
    EMBLA_TRY(embla_play_read(page, EMBLA_HERE, text, text, path));
    const embla_play_file *file = &page->files[page->count - 1];
    page->text = file->path;
    if (file->size <= EMBLA_PLAY_TEXT_MOST) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_RANGE,
                      "%.200s has %zu bytes; a text in a page has at most %d. Use a part of it",
                      text, file->size, (int)EMBLA_PLAY_TEXT_MOST);
}

/* The demo's model, opened as any other. */
static embla_status add_story(embla_play_page *page)
{
    embla_checkpoint *story = NULL;
    char path[4096];
    int used = snprintf(path, sizeof path, "%s/story", page->options->demo);
    if (used < 0 || (size_t)used >= sizeof path) return EMBLA_ERR_ARGUMENT; /* found before */
    page->name = "story";
    page->command = "embla train village.txt --preset microgpt --words 300 --dim 32 --batch 4 "
                    "--steps 4000 --threads 1 --engine none -o story";
    EMBLA_TRY(embla_checkpoint_open(path, NULL, &story));
    embla_status status = embla_play_model(page, story);
    embla_checkpoint_free(story);
    return status;
}

static embla_status collect_all(embla_play_page *page)
{
    const embla_play_options *o = page->options;
    page->used = embla_play_template_bytes + embla_play_size(o->module_bytes) + FACTS;
    EMBLA_TRY(add_examples(page));
    EMBLA_TRY(add_text(page));
    if (!o->model) return add_story(page);
    page->name = o->name ? o->name : o->model->shown;
    page->command = o->command;
    return embla_play_model(page, o->model);
}

static embla_status collect(embla_play_page *page)
{
    EMBLA_TRY(collect_all(page));
    if (page->used <= EMBLA_PLAY_PAGE_MOST) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_RANGE, "the page would have %" PRIu64 " bytes; it may have %d",
                      page->used, (int)EMBLA_PLAY_PAGE_MOST);
}

/* ---- bytes ---- */

typedef struct {
    embla_write_fn write;
    void *context;
    int64_t bytes;
    bool stopped;
    embla_base64 left;
} play_output;

static void write_plain(void *to, const char *bytes, size_t count)
{
    play_output *out = to;
    if (out->stopped || count == 0) return;
    out->stopped = !out->write(out->context, bytes, count);
    out->bytes += (int64_t)count;
}

/* Between tags, in attributes and in JSON: no character can end what it is in. */
static void write_text(play_output *out, const char *text)
{
    char escaped[8];
    const embla_json_sink to = {.write = write_plain, .to = out};
    for (; *text; text++) {
        (void)snprintf(escaped, sizeof escaped, strchr("&<>\"'", *text) ? "&#%d;" : "%c", *text);
        embla_json_write(&to, escaped);
    }
}

static void write_base64(play_output *out, const char *tag, const void *bytes, size_t count)
{
    const embla_json_sink to = {.write = write_plain, .to = out};
    embla_json_write(&to, tag);
    embla_base64_add(&out->left, &to, bytes, count);
    embla_base64_end(&out->left, &to);
    embla_json_write(&to, "</script>\n");
}

static void write_file(play_output *out, const embla_play_file *file)
{
    const embla_json_sink to = {.write = write_plain, .to = out};
    embla_json_write(&to, "<script type=\"text/plain\" class=\"file\" data-path=\"");
    write_text(out, file->path);
    write_base64(out, "\">", file->bytes, file->size);
}

/* JSON inside a script: "<" could begin its end. */
static void write_json(void *to, const char *bytes, size_t count)
{
    size_t first = 0;
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != '<') continue;
        write_plain(to, bytes + first, i - first);
        write_plain(to, "\\u003c", 6);
        first = i + 1;
    }
    write_plain(to, bytes + first, count - first);
}

/* ---- what the files are ---- */

static void json_text(const embla_json_sink *to, const char *before, const char *text)
{
    embla_json_write(to, before);
    if (text)
        (void)embla_json_write_string(to, text, strlen(text), false);
    else
        embla_json_write(to, "null");
}

static void json_whole(const embla_json_sink *to, const char *before, int64_t number)
{
    embla_json_write(to, before);
    embla_json_write_whole(to, number);
}

/* The last name of what a command calls the model, without a slash at its end. */
static const char *title_of(embla_play_page *page)
{
    const char *text = NULL;
    size_t length = strlen(page->name);
    while (length > 1 && embla_io_slash(page->name) == page->name + length - 1 &&
           embla_arena_text(&page->arena, page->name, length - 1, &text) == EMBLA_OK)
        page->name = text, length--;
    const char *slash = embla_io_slash(page->name);
    return slash && slash[1] ? slash + 1 : page->name;
}

static void json_texts(const embla_play_page *page, const embla_json_sink *to)
{
    embla_json_write(to, ",\"texts\":[");
    if (page->text) {
        json_text(to, "{\"path\":", page->text);
        json_text(to, ",\"operand\":", page->text_name);
        json_whole(to, ",\"words\":", page->options->text_words);
        embla_json_write(to, "},");
    }
    embla_json_write(to, "{\"path\":\"/names.txt\",\"operand\":\"names.txt\",\"words\":0},"
                         "{\"path\":\"/village.txt\",\"operand\":\"village.txt\",\"words\":300}]");
}

static void write_facts(const embla_play_page *page, const char *title, play_output *out)
{
    const embla_json_sink plain = {.write = write_plain, .to = out};
    const embla_json_sink to = {.write = write_json, .to = out};
    const embla_play_report *r = &page->report;
    embla_json_write(&plain, "<script type=\"application/json\" id=\"page\">");
    json_text(&to, "{\"version\":", embla_version());
    json_text(&to, ",\"title\":", page->options->title ? page->options->title : title);
    json_text(&to, ",\"model\":{\"path\":", page->model);
    json_text(&to, ",\"name\":", title);
    json_text(&to, ",\"operand\":", page->name);
    json_text(&to, ",\"command\":", page->command);
    json_text(&to, ",\"kind\":", r->decoder ? "model" : "table");
    json_whole(&to, ",\"rows\":", r->rows);
    json_whole(&to, ",\"of\":", r->all);
    json_text(&to, ",\"stored\":", r->stored);
    embla_json_write(&to, page->options->model ? ",\"demo\":false" : ",\"demo\":true");
    embla_json_write(&to, r->dtype == EMBLA_I8 ? ",\"exact\":false" : ",\"exact\":true");
    json_text(&to, "},\"words\":{\"path\":", page->has_words ? page->model : "/words.vec");
    json_text(&to, ",\"operand\":", page->has_words ? page->name : "words.vec");
    embla_json_write(&to, "},\"letters\":{\"path\":\"/names\",\"operand\":\"names\"},"
                          "\"ngram\":{\"path\":\"/village\",\"operand\":\"village\"},"
                          "\"tables\":[{\"path\":\"/five.vec\",\"operand\":\"five.vec\"},"
                          "{\"path\":\"/fox.vec\",\"operand\":\"fox.vec\"}]");
    json_texts(page, &to);
    embla_json_write(&to, "}");
    embla_json_write(&plain, "</script>\n");
}

/* ---- the page ---- */

/* Writes the template up to a mark. Returns the position after it. */
static size_t write_until(play_output *out, size_t from, const char *mark)
{
    const size_t length = strlen(mark), end = embla_play_template_bytes;
    const char *text = (const char *)embla_play_template;
    size_t at = from;
    while (at + length <= end && memcmp(text + at, mark, length) != 0) at++;
    const bool found = at + length <= end;
    write_plain(out, text + from, (found ? at : end) - from);
    return found ? at + length : end;
}

static embla_status write_page(embla_play_page *page, play_output *out)
{
    const embla_play_options *o = page->options;
    char titled[320];
    const char *title = title_of(page);
    (void)snprintf(titled, sizeof titled, "Embla: %.256s", title);
    size_t at = write_until(out, 0, "<!--embla:title-->");
    write_text(out, o->title ? o->title : titled);
    at = write_until(out, at, "<!--embla:data-->");
    write_facts(page, title, out);
    for (size_t i = 0; i < page->count; i++) write_file(out, &page->files[i]);
    write_base64(out, "<script type=\"text/plain\" id=\"module\">", o->module, o->module_bytes);
    write_plain(out, (const char *)embla_play_template + at, embla_play_template_bytes - at);
    if (out->stopped)
        return embla_fail(EMBLA_ERR_STOPPED, "the page was stopped after %" PRId64 " bytes",
                          out->bytes);
    return EMBLA_OK;
}

static embla_status check(const embla_play_options *o)
{
    const unsigned char *module = o->module;
    EMBLA_NEED_OF("embla_play_write", "module", o->module);
    EMBLA_NEED_OF("embla_play_write", "demo", o->demo);
    if (o->module_bytes < 2 || module[0] != 0x1f || module[1] != 0x8b)
        return embla_fail(EMBLA_ERR_ARGUMENT, "the module of a page is not compressed with gzip");
    if (o->rows < 0 || o->text_words < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%s is %" PRId64 "; it must be 0 or greater",
                          o->rows < 0 ? "rows" : "text_words",
                          o->rows < 0 ? o->rows : o->text_words);
    return embla_options_check(o);
}

embla_status embla_play_write(const embla_play_options *options, embla_write_fn write,
                              void *context, embla_play_report *report)
{
    EMBLA_NEED(options);
    EMBLA_NEED(write);
    EMBLA_TRY(check(options));
    embla_play_page page = {.options = options};
    play_output out = {.write = write, .context = context};
    embla_status status = collect(&page);
    if (status == EMBLA_OK) status = write_page(&page, &out);
    page.report.bytes = out.bytes;
    if (status == EMBLA_OK && report) *report = page.report;
    embla_arena_free(&page.arena);
    return status;
}
