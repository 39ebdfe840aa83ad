/* SPDX-License-Identifier: Apache-2.0 */
/* embla demo: the small models and texts that come with the program, and five commands on them.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "embla.h"

#include "core/out.h"
#include "core/verbs.h"
#include "verbs/demo_quiz.h"

#ifndef EMBLA_DEMO_INSTALLED
#define EMBLA_DEMO_INSTALLED "/usr/local/share/embla/demo"
#endif

/* ---- the folder ---- */

static bool is_demo(const char *folder)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/words.vec", folder) < (int)sizeof path &&
           access(path, R_OK) == 0;
}

/* Finds the demo: in $EMBLA_DEMO, beside the installed program, beside the folder build/ of the
 * source tree, or where the build said that it will be installed. */
static bool find_folder(char folder[PATH_MAX])
{
    static const char *const beside[] = {"../share/embla/demo", "../../demo"};
    const char *named = getenv("EMBLA_DEMO");
    if (named) return is_demo(named) && realpath(named, folder);
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = '\0';
        char *slash = strrchr(program, '/');
        if (slash) *slash = '\0';
        for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
            char path[PATH_MAX];
            int used = snprintf(path, sizeof path, "%s/%s", program, beside[i]);
            if (used < (int)sizeof path && is_demo(path)) return realpath(path, folder) != NULL;
        }
    }
    return is_demo(EMBLA_DEMO_INSTALLED) && realpath(EMBLA_DEMO_INSTALLED, folder);
}

/* ---- a copy ---- */

static bool copy_file(const char *from, const char *to)
{
    char bytes[1 << 16];
    FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wbx") : NULL;
    bool good = out != NULL;
    for (size_t count; good && (count = fread(bytes, 1, sizeof bytes, in)) > 0;)
        good = fwrite(bytes, 1, count, out) == count;
    if (in) good = !ferror(in) && good;
    int error = errno;
    if (out && fclose(out) != 0 && good) good = false, error = errno;
    if (in) (void)fclose(in);
    errno = error;
    return good;
}

/* Copies the files and folders of from into the new folder to. */
static bool copy_folder(const char *from, const char *to, int depth)
{
    DIR *folder = opendir(from);
    bool good = folder && mkdir(to, 0777) == 0;
    for (struct dirent *entry; good && (entry = readdir(folder));) {
        char source[PATH_MAX], target[PATH_MAX];
        struct stat about;
        if (entry->d_name[0] == '.') continue;
        errno = ENAMETOOLONG;
        good = snprintf(source, sizeof source, "%s/%s", from, entry->d_name) < PATH_MAX &&
               snprintf(target, sizeof target, "%s/%s", to, entry->d_name) < PATH_MAX &&
               stat(source, &about) == 0 &&
               (!S_ISDIR(about.st_mode) ? copy_file(source, target)
                : depth < 2             ? copy_folder(source, target, depth + 1)
                                        : true);
    }
    int error = errno;
    if (folder) (void)closedir(folder);
    errno = error;
    return good;
}

static int copy_demo(const cli_args *args, const char *folder)
{
    const char *to = cli_args_text(args, "output");
    int code = cli_out_check_folder(to);
    if (code != CLI_DONE) return code;
    if (access(to, F_OK) == 0) return cli_failed("'%s' exists; choose another folder for -o", to);
    if (!copy_folder(folder, to, 0))
        return cli_failed("cannot copy the demo to '%s': %s", to, strerror(errno));
    if (cli_args_flag(args, "json")) {
        cli_json json = {0};
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "folder", to);
        cli_json_close(&json, '}');
        putchar('\n');
        return CLI_DONE;
    }
    if (cli_args_flag(args, "quiet")) return CLI_DONE;
    cli_out_fact("written", "%s", to);
    cli_out_fact("next", "cd %s", to);
    return CLI_DONE;
}

/* ---- the walk ---- */

enum { WORDS = 8 };

static const struct {
    const char *why;
    const char *command[WORDS + 1];
} steps[] = {
    {"An embedding table has a row of numbers for each token. A lookup takes tokens and returns "
     "their rows.",
     {"embla", "lookup", "words.vec", "king", "queen", "cat"}},
    {"These rows were learned from the sentences of village.txt alone. Words that are used alike "
     "got rows alike: the animals are near the cat.",
     {"embla", "near", "words.vec", "cat", "--top", "5"}},
    {"Differences have a meaning too: from man to woman is the way from king to queen.",
     {"embla", "analogy", "words.vec", "king - man + woman", "--top", "3"}},
    {"A model around a table predicts the next token. This one learned letters from names.txt, and "
     "invents names.",
     {"embla", "generate", "names", "--count", "5", "--temperature", "0.5"}},
    {"In the newest models the largest table belongs to short sequences of tokens (n-grams). A "
     "hash selects its rows. The folder village has a small one.",
     {"embla", "rows", "village", "t", "h", "e"}},
};
#define STEPS (sizeof steps / sizeof steps[0])

static void write_command(size_t step, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; steps[step].command[i] && used < size; i++) {
        const char *word = steps[step].command[i], *quote = strchr(word, ' ') ? "\"" : "";
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

static int walk(const char *folder)
{
    bool waits = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (chdir(folder) != 0) return cli_failed("cannot enter '%s': %s", folder, strerror(errno));
    cli_out_fact("folder", "%s", folder);
    int code = CLI_DONE;
    for (size_t i = 0; i < STEPS && code == CLI_DONE; i++) {
        char text[128];
        char *command[WORDS + 1];
        int count = 0;
        for (; steps[i].command[count]; count++)
            command[count] = (char *)(uintptr_t)steps[i].command[count];
        command[count] = NULL;
        if (i > 0 && !next_step(waits)) return CLI_DONE;
        write_command(i, text, sizeof text);
        printf("\n%zu. ", i + 1);
        cli_out_wrapped(steps[i].why, 3, 3);
        printf("\n   $ %s\n\n", text);
        code = cli_run(count, command);
    }
    if (code != CLI_DONE) return code;
    putchar('\n');
    cli_out_fact(
        "next",
        "'embla demo -o embla-demo && cd embla-demo' gives you a copy to work in. The examples "
        "of 'embla help VERB' and of the README run there.");
    return CLI_DONE;
}

/* ---- the verb ---- */

static int print_json(const char *folder)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "folder", folder);
    cli_json_open(&json, "commands", '[');
    for (size_t i = 0; i < STEPS; i++) {
        char text[128];
        write_command(i, text, sizeof text);
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "command", text);
        cli_json_text(&json, "about", steps[i].why);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    putchar('\n');
    return CLI_DONE;
}

static int run(const cli_args *args)
{
    char folder[PATH_MAX];
    if (!find_folder(folder))
        return cli_failed("the files of the demo were not found; set EMBLA_DEMO to their folder "
                          "(share/embla/demo of the installation, or demo/ of the source)");
    if (cli_args_given(args, "output")) return copy_demo(args, folder);
    if (cli_args_flag(args, "quiz") || cli_args_given(args, "question"))
        return cli_quiz(folder, (size_t)cli_args_count(args, "question"),
                        cli_args_flag(args, "json"));
    if (cli_args_flag(args, "json")) return print_json(folder);
    if (cli_args_flag(args, "folder")) return puts(folder) < 0 ? CLI_FAILED : CLI_DONE;
    return walk(folder);
}

static const cli_option options[] = {
    {.name = "folder", .help = "print only the folder of the files"},
    {.name = "output",
     .letter = 'o',
     .value = "FOLDER",
     .help = "copy the files to the new folder FOLDER"},
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
    .about = "show five commands on small models that come with the program",
    .text = "Runs five commands on the files of the demo and explains them. On a terminal it waits "
            "for Enter between them.\n\n--quiz asks what you expect before it shows what is. "
            "Without a terminal it prints the questions with the answers after them.\n\nThe files "
            "are words.vec (rows of 291 words, learned from "
            "village.txt), names (a model of letters, trained on names.txt), and village (a model "
            "of letters with an n-gram table, trained on village.txt). The examples of all verbs "
            "use them: they run in the folder of the demo, and those that write files in a copy of "
            "it.",
    .example = "embla demo -o embla-demo",
    .options = options,
    .run = run};
