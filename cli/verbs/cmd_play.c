/* SPDX-License-Identifier: Apache-2.0 */
/* embla play: writes a page to learn with, which has Embla itself, a model and texts in it.
 *
 * The library writes the page (embla_play_write). Here the module and the demo are found, which
 * come with the program, and a text is trained on first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_lab.h"

#include "base/utf8.h"
#include "core/ending.h"
#include "core/inputs.h"
#include "core/installed.h"
#include "core/model.h"
#include "core/out.h"
#include "core/progress.h"
#include "core/verbs.h"
#include "host/host.h"
#include "train/text_model.h"

/* Bytes of the module; of a text, as embla_play_write has it; of a file to see that it is one. */
enum { MODULE_MOST = 8000000, TEXT_MOST = 2000000, SEEN = 4096 };

typedef struct {
    const char *path; /* where the page goes */
    char demo[CLI_PATH_MOST];
    unsigned char *module;
    size_t module_bytes;
    embla_checkpoint *model; /* NULL means the demo's */
    cli_text_model text;     /* path NULL means that there is no text */
    cli_progress progress;
    char folder[CLI_PATH_MOST]; /* of the model of the text; "" means none */
    embla_play_options options;
    embla_play_report report;
} job;

/* ---- what comes with the program ---- */

static bool read_whole(const char *path, unsigned char **bytes, size_t *count)
{
    const int64_t size = cli_file_size(path);
    FILE *file = size > 0 && size <= MODULE_MOST ? cli_file_open(path, "rb") : NULL;
    unsigned char *memory = file ? malloc((size_t)size + 1) : NULL;
    bool good = memory && fread(memory, 1, (size_t)size, file) == (size_t)size;
    if (file) (void)fclose(file);
    if (!good) {
        free(memory);
        return false;
    }
    memory[size] = '\0';
    *bytes = memory;
    *count = (size_t)size;
    return true;
}

/* The version that the file of the checksum names after checksum and file: "HEX  play.wasm.gz
 * 0.1.0". */
static int check_version(const char *path)
{
    char name[CLI_PATH_MOST], version[32] = "unknown";
    unsigned char *text = NULL;
    size_t bytes;
    int used = snprintf(name, sizeof name, "%s.sha256", path);
    if (used > 0 && (size_t)used < sizeof name && read_whole(name, &text, &bytes))
        (void)sscanf((const char *)text, "%*64s %*63s %31s", version);
    free(text);
    if (strcmp(version, embla_version()) == 0) return CLI_DONE;
    return cli_failed("%s is of version %s, and this is embla %s; build it again with "
                      "packaging/wasm, or set EMBLA_PLAY to the folder of another one",
                      path, version, embla_version());
}

static int find_module(job *j)
{
    char folder[CLI_PATH_MOST], path[CLI_PATH_MOST];
    if (!cli_installed_find(&cli_installed_play, folder))
        return cli_failed("play.wasm.gz was not found, with which a page computes. Wheels and "
                          "static programs have it; packaging/wasm builds it from the source. "
                          "EMBLA_PLAY may name its folder");
    int used = snprintf(path, sizeof path, "%s/play.wasm.gz", folder);
    if (used < 0 || (size_t)used >= sizeof path) return cli_failed("%s: path too long", folder);
    int code = check_version(path);
    if (code == CLI_DONE && !read_whole(path, &j->module, &j->module_bytes))
        code = cli_failed("%s cannot be read, or is too large to be the module of a page", path);
    return code;
}

static int find_parts(job *j)
{
    int code = find_module(j);
    if (code == CLI_DONE && !cli_installed_find(&cli_installed_demo, j->demo))
        code = cli_failed("the files of the demo were not found, some of which every page has; set "
                          "EMBLA_DEMO to their folder (share/embla/demo of the installation, or "
                          "demo/ of the source)");
    j->options.module = j->module;
    j->options.module_bytes = j->module_bytes;
    j->options.demo = j->demo;
    return code;
}

/* ---- the model, or the text ---- */

/* Whether a file without a known format is a text. */
static bool is_text(const char *path)
{
    char bytes[SEEN];
    FILE *file = cli_file_open(path, "rb");
    size_t count = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file) (void)fclose(file);
    /* the last character may be cut */
    return count > 0 && !memchr(bytes, '\0', count) && embla_utf8_valid(bytes, count) + 4 > count;
}

static int check_text(const char *path, const char *named)
{
    char size[CLI_CELL];
    const int64_t bytes = cli_file_size(path);
    if (bytes <= TEXT_MOST) return CLI_DONE;
    return cli_failed("%s has %s; a text in a page has at most 2 MB. Use a part of it, such as "
                      "that of 'head -c 2000000'",
                      named, cli_size(bytes, size));
}

static int check_options(const cli_args *args, bool text)
{
    if (!text && (cli_args_given(args, "words") || cli_args_given(args, "steps")))
        return cli_usage("--%s is for a TEXT, which is trained on first",
                         cli_args_given(args, "words") ? "words" : "steps");
    if ((text || args->operand_count == 0) && cli_args_given(args, "rows"))
        return cli_usage("--rows is for a table; the model of %s goes in whole",
                         text ? "a text" : "the demo");
    return CLI_DONE;
}

/* Opens the operand. What is no model may be a text. */
static int open_operand(const cli_args *args, job *j)
{
    const char *named = args->operand_count > 0 ? args->operands[0] : NULL;
    const embla_open_options none = {0};
    embla_checkpoint *checkpoint = NULL;
    if (!named) return check_options(args, false);
    const char *path = cli_input_path(named);
    embla_status status = cli_open_path(path, &none, &checkpoint);
    embla_checkpoint_free(checkpoint);
    if (status == EMBLA_ERR_FORMAT && strstr(embla_error(), "(C15)") && is_text(path)) {
        j->text.path = path;
        j->text.named = named;
        int code = check_options(args, true);
        return code == CLI_DONE ? check_text(path, named) : code;
    }
    int code = check_options(args, false);
    if (code == CLI_DONE) code = cli_checkpoint_open(args, named, &j->model);
    if (code == CLI_DONE) cli_print_notes(args, j->model);
    j->options.model = j->model;
    j->options.name = named;
    return code;
}

/* Trains on the text in a new folder. */
static int train_text(const cli_args *args, job *j)
{
    cli_text_model *t = &j->text;
    t->words = cli_args_given(args, "words") ? cli_args_count(args, "words") : -1;
    t->steps = cli_args_given(args, "steps") ? cli_args_count(args, "steps") : -1;
    t->threads = cli_args_count(args, "threads");
    if (!cli_new_temporary("embla", j->folder)) {
        int code =
            cli_failed("cannot create a folder for a training, '%s': %s", j->folder, cli_why());
        j->folder[0] = '\0';
        return code;
    }
    int code = cli_text_model_train(t, j->folder, &j->progress);
    if (code == CLI_DONE && embla_checkpoint_open(j->folder, NULL, &j->model) != EMBLA_OK)
        code = cli_failed("%s", embla_error());
    j->options.model = j->model;
    j->options.name = t->name;
    j->options.command = t->command;
    j->options.text = t->path;
    j->options.text_name = t->named;
    j->options.text_words = t->words;
    return code;
}

/* ---- the page ---- */

static bool print_bytes(void *unused, const void *bytes, size_t count)
{
    (void)unused;
    return fwrite(bytes, 1, count, stdout) == count;
}

static int print_page(job *j)
{
    embla_status status = embla_play_write(&j->options, print_bytes, NULL, &j->report);
    if (status == EMBLA_OK || ferror(stdout)) return CLI_DONE; /* the end of the output tells */
    return cli_failed("%s", embla_error());
}

static const char *model_name(const job *j)
{
    return j->options.name ? j->options.name : "story";
}

static void print_json(const job *j)
{
    const embla_play_report *r = &j->report;
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "file", j->path);
    cli_json_whole(&json, "bytes", r->bytes);
    cli_json_text(&json, "model", model_name(j));
    cli_json_text(&json, "kind", r->decoder ? "model" : "table");
    cli_json_whole(&json, "rows", r->rows);
    cli_json_whole(&json, "of", r->all);
    cli_json_whole(&json, "dim", (int64_t)r->dim);
    cli_json_text(&json, "dtype", embla_dtype_name(r->dtype));
    cli_json_text(&json, "stored", r->stored);
    cli_json_text(&json, "command", j->options.command);
    cli_json_close(&json, '}');
    putchar('\n');
}

static void print_facts(const job *j)
{
    const embla_play_report *r = &j->report;
    char size[CLI_CELL], rows[CLI_CELL];
    cli_out_fact("written", "%s: %s", j->path, cli_size(r->bytes, size));
    cli_out_fact("model", "%s: %s of %s x %zu", model_name(j),
                 r->decoder ? "predicts the next token, with a table" : "a table",
                 cli_commas(r->all, rows), r->dim);
    cli_out_fact("stored", "%s", r->stored);
    if (j->options.command) cli_out_fact("trained by", "%s", j->options.command);
}

static int write_file(const cli_args *args, job *j)
{
    const bool same = cli_out_is_stdout(j->path), quiet = cli_args_flag(args, "quiet");
    char rows[CLI_CELL], all[CLI_CELL];
    int code = cli_out_to(j->path, cli_args_flag(args, "force"));
    if (code == CLI_DONE) code = print_page(j);
    code = cli_out_done(code);
    if (code != CLI_DONE) return code;
    if (!quiet && !cli_args_given(args, "rows") && j->report.rows < j->report.all)
        cli_complain("note: the page has the first %s of %s rows: more would make it larger than "
                     "10 MB",
                     cli_commas(j->report.rows, rows), cli_commas(j->report.all, all));
    if (same) return CLI_DONE;
    if (cli_args_flag(args, "json"))
        print_json(j);
    else if (!quiet)
        print_facts(j);
    return CLI_DONE;
}

/* ---- the verb ---- */

/* Checks that the file can be written, before long work. */
static int check_path(const cli_args *args, job *j)
{
    j->path = cli_args_text(args, "output");
    if (!j->path) return cli_usage("play needs a file to write: --output play.html");
    int code = cli_ending_check("output", j->path, "HTML");
    if (code == CLI_DONE) code = cli_inputs_check(args, j->path);
    return code == CLI_DONE ? cli_out_check(j->path, cli_args_flag(args, "force")) : code;
}

/* Trains on the text and writes the page. Its folder is removed also after Ctrl-C. */
static int run_text(const cli_args *args, job *j)
{
    const bool quiet = cli_args_flag(args, "quiet") || cli_args_flag(args, "json");
    cli_progress_begin(&j->progress, quiet);
    int code = train_text(args, j);
    if (code == CLI_DONE) code = write_file(args, j);
    if (j->folder[0]) cli_remove_all(j->folder);
    cli_progress_end(&j->progress, "interrupted");
    return code;
}

static int run(const cli_args *args)
{
    job j = {
        .options = {.rows = cli_args_count(args, "rows"), .title = cli_args_text(args, "title")}};
    int code = check_path(args, &j);
    if (code == CLI_DONE) code = find_parts(&j);
    if (code == CLI_DONE) code = open_operand(args, &j);
    if (code == CLI_DONE) code = j.text.path ? run_text(args, &j) : write_file(args, &j);
    embla_checkpoint_free(j.model);
    free(j.module);
    return code;
}

static const cli_option options[] = {
    {.name = "output", .letter = 'o', .value = "FILE", .help = "file to write: .html"},
    {.name = "force", .help = "replace FILE if it exists"},
    {.name = "title",
     .value = "TEXT",
     .help = "title of the page (default: the name of the model)"},
    {.name = "rows",
     .value = "N",
     .count = true,
     .least = 1,
     .help = "put in only the first N rows of a table (default: all, or as many as 10 MB hold)"},
    {.name = "words",
     .value = "N",
     .count = true,
     .help = "train on the words of TEXT, at most N of them; 0 means on its characters (default: "
             "300 if most lines have several words, otherwise 0)"},
    {.name = "steps",
     .value = "N",
     .count = true,
     .help = "steps of the training on TEXT (default: 4,000 on words, 1,000 on characters)"},
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_play = {
    .name = "play",
    .synopsis = "[MODEL|TEXT]",
    .operand = "MODEL or TEXT",
    .operands_most = 1,
    .files = 1,
    .about = "write a page to learn with: from a text to the next word",
    .text =
        "The page is one file that needs no network. It has Embla itself in it, compiled to "
        "WebAssembly, and computes what the program computes: type a sentence, see its tokens, "
        "their rows and positions, near rows, arrows between words and the next word; train a "
        "small model and watch its rows move. Each part shows the command that does the same.\n\n"
        "MODEL is a model or a table as for 'embla info'; without an operand it is the demo's "
        "model of words. A model that predicts, and has at most 5 MB, goes in whole. Of any other "
        "the token table goes in, with its words: as f32 if the page stays below 10 MB, otherwise "
        "in 8 bits with a scale for each row. If that is too much, the first rows that fit go in, "
        "and the page says so.\n\n"
        "TEXT is a plain text of at most 2 MB. A model of the demo's shape is trained on it first; "
        "the 'embla train' that does the same is printed.\n\n"
        "The module play.wasm.gz comes with wheels and static programs; packaging/wasm builds it. "
        "EMBLA_PLAY may name its folder.",
    .example = "embla play -o play.html",
    .options = options,
    .run = run};
