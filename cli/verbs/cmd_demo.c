/* SPDX-License-Identifier: Apache-2.0 */
/* embla demo: the small models and texts that come with the program, and a walk through them: text,
 * tokens, rows, positions, a step of training, nearest rows, an analogy, the next word, costs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla.h"

#include "core/installed.h"
#include "core/out.h"
#include "core/verbs.h"
#include "host/host.h"
#include "host/paths.h"
#include "verbs/demo_quiz.h"

/* ---- a copy ---- */

static bool copy_file(const char *from, const char *to)
{
    char bytes[1 << 16];
    FILE *in = cli_file_open(from, "rb"), *out = in ? cli_file_open(to, "wbx") : NULL;
    bool good = out != NULL;
    for (size_t count; good && (count = fread(bytes, 1, sizeof bytes, in)) > 0;)
        good = fwrite(bytes, 1, count, out) == count;
    if (in) good = !ferror(in) && good;
    if (!good) (void)cli_because_errno();
    if (out && fclose(out) != 0 && good) good = cli_because_errno();
    if (in) (void)fclose(in);
    return good;
}

/* Whether both files have the same bytes. */
static bool same_file(const char *a, const char *b)
{
    char ours[1 << 14], theirs[1 << 14];
    FILE *first = cli_file_open(a, "rb"), *second = first ? cli_file_open(b, "rb") : NULL;
    bool same = second != NULL;
    for (size_t count = 1; same && count > 0;) {
        count = fread(ours, 1, sizeof ours, first);
        same = fread(theirs, 1, sizeof theirs, second) == count && memcmp(ours, theirs, count) == 0;
    }
    same = same && !ferror(first) && !ferror(second);
    if (first) (void)fclose(first);
    if (second) (void)fclose(second);
    return same;
}

/* Copies the files and folders of `from` into the new folder `to`; with `there` compares them
 * instead. On failure `at` is the file or folder. */
static bool each_file(const char *from, const char *to, int depth, bool there,
                      char at[CLI_PATH_MOST])
{
    cli_names names;
    bool listed = cli_names_open(from, &names), good = listed && (there || cli_make_folder(to));
    (void)snprintf(at, CLI_PATH_MOST, "%s", to);
    for (const char *name; good && (name = cli_names_next(&names));) {
        char source[CLI_PATH_MOST], target[CLI_PATH_MOST];
        if (name[0] == '.') continue;
        good = snprintf(source, sizeof source, "%s/%s", from, name) < CLI_PATH_MOST &&
               snprintf(target, sizeof target, "%s/%s", to, name) < CLI_PATH_MOST;
        if (!good) (void)cli_because(embla_system_outcome(EMBLA_SYSTEM_NOT_FOUND));
        const bool inner = good && cli_is_folder(source);
        if (!good || (inner && depth == 2)) continue;
        if (inner) {
            good = each_file(source, target, depth + 1, there, at);
        } else {
            good = there ? same_file(source, target) : copy_file(source, target);
            if (!good) memcpy(at, target, sizeof target);
        }
    }
    if (listed) cli_names_close(&names);
    return good;
}

/* A copy that is there is used again. */
static int copy_demo(const cli_args *args, const char *folder)
{
    const char *to = cli_args_text(args, "output");
    char at[CLI_PATH_MOST];
    int code = cli_out_check_folder(to);
    if (code != CLI_DONE) return code;
    const bool there = cli_is_there(to);
    if (there && !cli_installed_is(&cli_installed_demo, to))
        return cli_failed("'%s' exists; choose another folder for -o", to);
    const bool good = each_file(folder, to, 0, there, at);
    if (!good && there)
        return cli_failed("'%s' exists, but %s is missing or has changed; remove the folder, or "
                          "choose another one for -o",
                          to, at);
    if (!good) return cli_failed("cannot copy the demo to '%s': %s: %s", to, at, cli_why());
    if (cli_args_flag(args, "json")) {
        cli_json json = {0};
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "folder", to);
        cli_json_bool(&json, "unchanged", there);
        cli_json_close(&json, '}');
        putchar('\n');
        return CLI_DONE;
    }
    if (cli_args_flag(args, "quiet")) return CLI_DONE;
    cli_out_fact(there ? "unchanged" : "written", "%s", to);
    cli_out_fact("next", "cd %s", to);
    return CLI_DONE;
}

/* ---- the walk ---- */

enum { WORDS = 16, COMMANDS = 3 };

typedef struct {
    const char *why;
    const char *before; /* shown to people who type the commands again, and not run */
    /* With more than one, all write into a folder that is removed, and only the last one prints. */
    const char *commands[COMMANDS][WORDS];
} demo_step;

static const demo_step steps[] = {
    {"A text becomes tokens. Here a token is a word, and its id is its place in a list. The id is "
     "a name, not a quantity.",
     NULL,
     {{"embla", "tokens", "story", "the cat sat on a mat", "--format", "pieces"}}},
    {"The embedding table has a row of numbers for each token. Token i selects row i; nothing is "
     "computed.",
     NULL,
     {{"embla", "lookup", "story", "the", "cat"}}},
    {"A second table has a row for each position. The model computes with the sum of both, so it "
     "knows where a word stands.",
     NULL,
     {{"embla", "embed", "story", "the", "cat", "sat", "on", "a", "mat"}}},
    {"The rows start as random numbers. A step of training reads one sentence and moves the rows "
     "of its words, no others.",
     "rm -rf old new",
     {{"embla", "train", "village.txt", "--preset", "microgpt", "--words", "300", "--steps", "0",
       "-o", "old", "-q"},
      {"embla", "train", "village.txt", "--preset", "microgpt", "--words", "300", "--steps", "1",
       "-o", "new", "-q"},
      {"embla", "diff", "old", "new", "--top", "6"}}},
    {"After 4,000 steps, words that are used alike have rows alike. words.vec is the table of the "
     "model.",
     NULL,
     {{"embla", "near", "words.vec", "cat", "--top", "5"}}},
    {"Differences have a meaning too: from man to woman is the way from king to queen.",
     NULL,
     {{"embla", "analogy", "words.vec", "king - man + woman", "--top", "3"}}},
    {"The model around the table gives each word the probability that it is the next one.",
     NULL,
     {{"embla", "predict", "story", "the king", "--top", "5"}}},
    {"The tables of a real model are large. A lookup copies two rows of them; the head reads a "
     "whole table for each token.",
     NULL,
     {{"embla", "cost", "gpt2"}}},
};
#define STEPS (sizeof steps / sizeof steps[0])

/* The index of the command that prints. */
static size_t last_command(const demo_step *step)
{
    size_t last = 0;
    while (last + 1 < COMMANDS && step->commands[last + 1][0]) last++;
    return last;
}

static void write_command(const char *const words[WORDS], char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < WORDS && words[i] && used < size; i++) {
        const char *word = words[i], *quote = strchr(word, ' ') ? "\"" : "";
        int length =
            snprintf(text + used, size - used, "%s%s%s%s", i ? " " : "", quote, word, quote);
        used += (size_t)length;
    }
}

/* Waits for Enter if a person reads along. False if they want to stop. */
static bool next_step(bool waits)
{
    if (!waits) return true;
    fputs("\nEnter continues, q ends: ", stdout);
    (void)fflush(stdout);
    int first = getchar();
    for (int c = first; c != '\n' && c != EOF;) c = getchar();
    return first != 'q' && first != EOF;
}

/* Runs a command. A relative file name of the demo is found in `folder`; NULL means here. A
 * difference that 'embla diff' has found is no failure. */
static int run_command(const char *const words[WORDS], const char *folder)
{
    char path[CLI_PATH_MOST];
    char *command[WORDS + 1] = {NULL};
    int count = 0;
    for (; count < WORDS && words[count]; count++) command[count] = (char *)(uintptr_t)words[count];
    if (folder && count > 2 &&
        snprintf(path, sizeof path, "%s/%s", folder, words[2]) < (int)sizeof path &&
        cli_is_readable(path))
        command[2] = path;
    int code = cli_run(count, command);
    return code == CLI_WANTING ? CLI_DONE : code;
}

/* The commands of a step that write files, in the current folder. */
static int run_writing(const demo_step *step, const char *folder)
{
    size_t last = last_command(step);
    int code = CLI_DONE;
    const bool silent = cli_stdout_silence();
    for (size_t i = 0; i < last && code == CLI_DONE; i++)
        code = run_command(step->commands[i], folder);
    (void)fflush(stdout);
    if (silent) (void)cli_stdout_restore();
    return code == CLI_DONE ? run_command(step->commands[last], folder) : code;
}

/* Runs them in a new folder, which it removes. */
static int run_in_new_folder(const demo_step *step, const char *folder)
{
    char here[CLI_PATH_MOST];
    if (!cli_new_temporary("embla", here))
        return cli_failed("cannot create a folder for a training, '%s': %s", here, cli_why());
    int code = cli_enter_folder(here) ? run_writing(step, folder)
                                      : cli_failed("cannot enter '%s': %s", here, cli_why());
    if (!cli_enter_folder(folder) && code == CLI_DONE)
        code = cli_failed("cannot enter '%s': %s", folder, cli_why());
    cli_remove_all(here);
    return code;
}

static int run_step(size_t number, const char *folder)
{
    const demo_step *step = &steps[number];
    char text[128];
    printf("\n%zu. ", number + 1);
    cli_out_wrapped(step->why, 3, 3);
    putchar('\n');
    if (step->before) cli_out_command(step->before);
    for (size_t i = 0; i <= last_command(step); i++) {
        write_command(step->commands[i], text, sizeof text);
        cli_out_command(text);
    }
    putchar('\n');
    return last_command(step) > 0 ? run_in_new_folder(step, folder)
                                  : run_command(step->commands[0], NULL);
}

static int walk(const char *folder)
{
    bool waits = cli_is_terminal(CLI_STDIN) && cli_is_terminal(CLI_STDOUT);
    if (!cli_enter_folder(folder)) return cli_failed("cannot enter '%s': %s", folder, cli_why());
    cli_out_fact("folder", "%s", folder);
    int code = CLI_DONE;
    for (size_t i = 0; i < STEPS && code == CLI_DONE; i++) {
        if (i > 0 && !next_step(waits)) return CLI_DONE;
        code = run_step(i, folder);
    }
    if (code != CLI_DONE) return code;
    putchar('\n');
    cli_out_fact(
        "next",
        "'embla demo -o embla-demo && cd embla-demo' gives you a copy to work in. The examples "
        "of 'embla help VERB' and of the README run there.");
    cli_out_fact("then", "'embla demo --quiz' asks %d questions about what you have seen.",
                 CLI_QUESTIONS);
    return CLI_DONE;
}

/* ---- the verb ---- */

static void print_command(cli_json *json, const char *command, const char *why)
{
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "command", command);
    cli_json_text(json, "about", why);
    cli_json_close(json, '}');
}

static int print_json(const char *folder)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "folder", folder);
    cli_json_open(&json, "commands", '[');
    for (size_t i = 0; i < STEPS; i++) {
        if (steps[i].before) print_command(&json, steps[i].before, steps[i].why);
        for (size_t c = 0; c <= last_command(&steps[i]); c++) {
            char text[128];
            write_command(steps[i].commands[c], text, sizeof text);
            print_command(&json, text, steps[i].why);
        }
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    putchar('\n');
    return CLI_DONE;
}

static int run(const cli_args *args)
{
    char folder[CLI_PATH_MOST];
    if (!cli_installed_find(&cli_installed_demo, folder))
        return cli_failed("the files of the demo were not found; set EMBLA_DEMO to their folder "
                          "(share/embla/demo of the installation, or demo/ of the source)");
    if (cli_args_given(args, "output")) return copy_demo(args, folder);
    if (cli_args_flag(args, "quiz") || cli_args_given(args, "question"))
        return cli_quiz(folder, cli_args_size(args, "question"), cli_args_flag(args, "json"));
    if (cli_args_flag(args, "json")) return print_json(folder);
    if (cli_args_flag(args, "folder")) return puts(folder) < 0 ? CLI_FAILED : CLI_DONE;
    return walk(folder);
}

static const cli_option options[] = {
    {.name = "folder", .help = "print only the folder of the files"},
    {.name = "output",
     .letter = 'o',
     .value = "FOLDER",
     .help = "copy the files to FOLDER; a copy that is there is used again"},
    {.name = "quiz", .help = "ask questions about embeddings, and show the answers by commands"},
    {.name = "question",
     .value = "N",
     .count = true,
     .least = 1,
     .most = CLI_QUESTIONS,
     .help = "ask only question N of the quiz"},
    {.name = NULL}};

const cli_verb cli_verb_demo = {
    .name = "demo",
    .synopsis = "",
    .operand = "operand",
    .about = "walk from a text to the next word, on small models",
    .text = "Shows in eight short steps how a text becomes tokens, rows and positions, how rows "
            "learn, what they mean, and how a model predicts the next word. Each step is a command "
            "on the files of the demo. On a terminal it waits for Enter between them.\n\n--quiz "
            "asks what you expect before it shows what is. Without a terminal it prints the "
            "questions with the answers after them.\n\nThe files are story (a model of words, "
            "trained on village.txt), words.vec (its table: the rows "
            "of 300 words), names (a model of letters, trained on names.txt), village (a model of "
            "letters with an n-gram table, trained on village.txt), and five.vec and fox.vec "
            "(tables of 5 and 12 rows to compute by hand). The examples of all verbs use them: "
            "they run in the folder of the demo, and those that write files in a copy of it.",
    .example = "embla demo -o embla-demo",
    .options = options,
    .run = run};
