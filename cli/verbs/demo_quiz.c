/* SPDX-License-Identifier: Apache-2.0 */
/* The questions of embla demo --quiz, and how they are asked.
 *
 * Who predicts first and then looks learns more than who only looks. So nothing of an answer is
 * shown before the learner has committed one. An answer states no number of a trained model: a
 * command computes it. Commands that write run in a temporary folder with links to the demo.
 */
#include "verbs/demo_quiz.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/out.h"
#include "core/verbs.h"
#include "host/host.h"
#include "host/paths.h"

/* ---- the questions ---- */

enum { CHOICES = 3, COMMANDS = 4 };

/* Either choices, of which `right` is the right one, or a number. */
static const struct {
    const char *text;
    const char *choices[CHOICES];
    double number, tolerance;
    const char *answer;
    const char *commands[COMMANDS]; /* as typed after "embla" */
    char right;
    bool writes; /* the commands write files */
} questions[CLI_QUESTIONS] = {
    {.text = "In the model names the token of e is 4, that of d is 3 and that of z is 25. Is the "
             "row of e nearer to the row of d than to the row of z?",
     .choices = {"yes, 4 is next to 3", "no, a token is a name and not a quantity",
                 "only before training"},
     .right = 'b',
     .answer = "A token only selects a row. How alike two rows are comes from the use of their "
               "letters, not from the numbers 3, 4 and 25.",
     .commands = {"compare names e d z"}},
    {.text = "All tokens get other numbers, and the rows of the table move with them. What does "
             "the model lose?",
     .choices = {"what it has learned", "the order of the alphabet", "nothing"},
     .right = 'c',
     .answer = "A token is only the number of its row. The same letters still select the same "
               "rows, so all results are the same.",
     .commands = {"tokens names emma --format pieces"}},
    {.text = "five.vec is a table of 5 x 4 numbers. How many multiplications does the lookup of "
             "the tokens 2, 3 and 0 take?",
     .number = 0,
     .answer = "Nothing is multiplied; 3 rows of 4 numbers are copied.",
     .commands = {"lookup five.vec --ids 2,3,0"}},
    {.text = "A one-hot vector times a table of 128,000 x 4,096 gives the same row. One product in "
             "how many is not by zero?",
     .number = 128000,
     .answer = "Of 524,288,000 multiplications 4,096 are with the 1 of the vector. The bits of the "
               "result are those of a lookup, the work is not.",
     .commands = {"cost --rows 128,000 --dim 4,096"}},
    {.text = "The model adds to the row of a letter the row of its position. In emma, do both m "
             "become the same vector?",
     .choices = {"yes, it is the same letter", "no: the same row of the table, but another sum",
                 "no: each m has its own row in the table"},
     .right = 'b',
     .answer = "Both select the same row of the table. Another row is added to it at each "
               "position, so the sums differ.",
     .commands = {"embed names e m m a"}},
    {.text = "names has 27 letters and 16 positions. How many different vectors can e become?",
     .number = 16,
     .answer = "One for each position.",
     .commands = {"embed names e --first-position 4", "embed names e --first-position 5"}},
    {.text = "Without positions, a and b change places in the input. What changes in the result of "
             "the embedding?",
     .choices = {"nothing at all", "the order of the rows, and nothing else",
                 "the numbers of both rows"},
     .right = 'b',
     .answer = "The rows change places as their letters do. Without positions a sequence is a set "
               "for all that does not look at the order.",
     .commands = {"embed names a b --positions none", "embed names b a --positions none"}},
    {.text = "A model of one layer, trained without positions, continues elin and lein. Can it "
             "tell them apart?",
     .choices = {"yes, the letters come in another order", "no", "only if it is trained longer"},
     .right = 'b',
     .answer =
         "One layer sees its last token and which tokens came before it, but not in which "
         "order. So the same letters follow both, with the same probabilities. Two layers see "
         "more, because the causal mask shows each token only those before it.",
     .commands = {"train names.txt --preset microgpt --positions none -o n -q",
                  "predict n elin --top 3", "predict n lein --top 3"},
     .writes = true},
    {.text = "names has rows for the positions 0 to 15. Which row is added at position 16?",
     .choices = {"row 0 again", "zeros", "none, this is an error"},
     .right = 'c',
     .answer =
         "A table has no row beyond its last. A model with learned positions cannot read more.",
     .commands = {"embed names e --first-position 16"}},
    {.text = "Which row of five.vec has the lowest cosine with row 0?",
     .number = 4,
     .answer = "Its cosine is -0.87. By the dot product row 1 is the furthest (-0.60), because it "
               "is longer.",
     .commands = {"near five.vec 0 --top 4", "near five.vec 0 --top 4 --measure dot"}},
    {.text = "All numbers of row 0 of five.vec are doubled. What stays the same?",
     .choices = {"its norm", "its dot product with row 2", "its cosine with row 2"},
     .right = 'c',
     .answer =
         "The cosine: it measures the direction alone. Norm and dot product (0.07) are doubled.",
     .commands = {"compare five.vec 0 2"}},
    {.text = "A table has 400 random rows. With how many numbers in a row is the nearest neighbour "
             "of a row nearer, by cosine?",
     .choices = {"with 8", "with 512", "both the same"},
     .right = 'a',
     .answer = "With 8. In 512 dimensions random directions are almost at right angles to each "
               "other. So a cosine of 0.3 is little in 8 dimensions and much in 512.",
     .commands = {"new --rows 400 --dim 8 -o small.safetensors -q",
                  "near small.safetensors '#1' --top 1",
                  "new --rows 400 --dim 512 -o large.safetensors -q",
                  "near large.safetensors '#1' --top 1"},
     .writes = true},
    {.text = "A model of 27 letters has learned nothing. What is its loss, about?",
     .number = 3.2958,
     .tolerance = 0.15,
     .answer = "This is ln 27, the loss of guessing among 27. Random weights are a little worse.",
     .commands = {"train names.txt --preset microgpt --steps 1 -o a"},
     .writes = true},
    {.text = "One step of training reads the name livia, which begins and ends with <bos>. How "
             "many of the 27 rows of the token table change?",
     .number = 5,
     .answer = "Those of l, i, v, a and <bos>. Only rows that were looked up have a gradient.",
     .commands = {"train names.txt --preset microgpt --steps 0 -o before -q",
                  "train names.txt --preset microgpt --steps 1 -o after -q", "diff before after"},
     .writes = true},
    {.text = "The same step of training runs with --freeze tokens. How many rows of the token "
             "table change?",
     .number = 0,
     .answer = "The rest of the model still learns.",
     .commands = {"train names.txt --preset microgpt --steps 0 -o b -q",
                  "train names.txt --preset microgpt --steps 1 --freeze tokens -o f -q",
                  "diff b f"},
     .writes = true},
    {.text = "The rows nearest to e in names are mostly vowels. Why?",
     .choices = {"vowels are marked in the vocabulary",
                 "vowels are near each other in the alphabet",
                 "the same letters come before and after them"},
     .right = 'c',
     .answer = "Letters with the same neighbours get the same gradients, and become alike. Nothing "
               "tells the model what a vowel is.",
     .commands = {"near names e --top 5"}},
    {.text = "king - man + woman gives queen in words.vec. What does king - cat + dog give?",
     .choices = {"a word far from queen", "a word near king, such as queen", "an animal"},
     .right = 'b',
     .answer = "cat and dog are alike, so the arrow between them is short and the sum stays near "
               "king. An answer near the first word proves little: compare it with what that word "
               "alone has as its nearest row.",
     .commands = {"analogy words.vec king - cat + dog --top 3", "near words.vec king --top 3"}},
    {.text = "What does the answer of king - man + woman leave out?",
     .choices = {"rare words", "its own three words", "nothing"},
     .right = 'b',
     .answer = "The words of the question are no answers, by rule. Often one of them is the "
               "nearest row of the sum. Here king is the second.",
     .commands = {"analogy words.vec king - man + woman --top 4 --keep-words"}},
    {.text = "The head of GPT-2 uses the token table (tied). What does this save?",
     .choices = {"half of the multiplications", "memory", "both"},
     .right = 'b',
     .answer = "Memory alone. V x d multiply-adds are made for every token, tied or not.",
     .commands = {"cost gpt2"}},
    {.text =
         "The temperature goes from 1 to 0.1. What happens to the probabilities of the next token?",
     .choices = {"the order changes", "the first gains, and the order stays", "all become equal"},
     .right = 'b',
     .answer = "Logits are divided by the temperature, so their order stays and the first gains. "
               "At 0 it is always chosen.",
     .commands = {"predict names emm --top 3", "predict names emm --top 3 --temperature 0.1"}},
};

static char choice_letter(size_t i)
{
    return (char)('a' + (char)i);
}

/* "b", "128,000" or "3.3". */
static const char *right_text(size_t q, char text[CLI_CELL])
{
    if (questions[q].right)
        (void)snprintf(text, CLI_CELL, "%c", questions[q].right);
    else if (questions[q].tolerance > 0)
        (void)snprintf(text, CLI_CELL, "about %.2f", questions[q].number);
    else
        (void)cli_commas((int64_t)questions[q].number, text);
    return text;
}

/* ---- commands ---- */

enum { WORDS = 24 };

/* Runs a command. Its words are separated by spaces; quotes around a word are removed. */
static int run_command(const char *command)
{
    char text[160], *words[WORDS + 1], *rest = NULL, embla[] = "embla";
    int count = 0;
    (void)snprintf(text, sizeof text, "%s", command);
    words[count++] = embla;
    for (char *word = strtok_r(text, " ", &rest); word && count < WORDS;
         word = strtok_r(NULL, " ", &rest)) {
        const size_t length = strlen(word);
        if (length > 1 && word[0] == '\'') {
            word[length - 1] = '\0';
            word++;
        }
        words[count++] = word;
    }
    words[count] = NULL;
    return cli_run(count, words);
}

static void run_commands(size_t q)
{
    for (size_t i = 0; i < COMMANDS && questions[q].commands[i]; i++) {
        char command[176];
        (void)snprintf(command, sizeof command, "embla %s", questions[q].commands[i]);
        putchar('\n');
        cli_out_command(command);
        putchar('\n');
        (void)fflush(stdout);
        (void)run_command(questions[q].commands[i]); /* one of them shows an error */
    }
}

/* Makes a temporary folder with links to the files of the demo, and enters it. */
static bool enter_links(const char *folder, char path[CLI_PATH_MOST])
{
    cli_names names;
    if (!cli_new_temporary("embla-quiz", path) || !cli_names_open(folder, &names)) return false;
    bool good = cli_enter_folder(path);
    for (const char *name; good && (name = cli_names_next(&names));) {
        char target[CLI_PATH_MOST];
        if (name[0] == '.') continue;
        good = snprintf(target, sizeof target, "%s/%s", folder, name) < CLI_PATH_MOST &&
               cli_because(cli_link_file(target, name));
    }
    cli_names_close(&names);
    return good;
}

static void show_commands(const char *folder, size_t q)
{
    char path[CLI_PATH_MOST] = "";
    if (!questions[q].writes) {
        run_commands(q);
        return;
    }
    if (enter_links(folder, path))
        run_commands(q);
    else
        cli_complain("cannot make the folder '%s' for the commands: %s", path, cli_why());
    if (cli_enter_folder(folder) && *path) cli_remove_all(path);
}

/* ---- on a terminal ---- */

typedef struct {
    size_t asked, answered, right;
} score;

typedef enum { RIGHT, WRONG, SKIPPED, UNCLEAR, ENDED } verdict;

static verdict judge(size_t q, const char *line)
{
    char digits[32], *end = NULL;
    while (isspace((unsigned char)*line)) line++;
    if (*line == '\0') return SKIPPED;
    if (strcasecmp(line, "q") == 0 || strcasecmp(line, "quit") == 0) return ENDED;
    if (questions[q].right) {
        const char letter = (char)tolower((unsigned char)*line);
        const bool one = line[1 + (line[1] == ')')] == '\0';
        if (!one || letter < 'a' || letter >= choice_letter(CHOICES)) return UNCLEAR;
        return letter == questions[q].right ? RIGHT : WRONG;
    }
    const char *text = cli_args_digits(line, digits, sizeof digits) ? digits : line;
    const double number = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(number)) return UNCLEAR;
    return fabs(number - questions[q].number) <= questions[q].tolerance ? RIGHT : WRONG;
}

/* Reads a line without its end. False at the end of the input. */
static bool read_line(char *line, size_t size)
{
    (void)fflush(stdout);
    if (!fgets(line, (int)size, stdin)) return false;
    if (!strchr(line, '\n'))
        for (int c = getchar(); c != '\n' && c != EOF;) c = getchar();
    size_t length = strcspn(line, "\r\n");
    while (length > 0 && line[length - 1] == ' ') length--;
    line[length] = '\0';
    return true;
}

static void print_question(size_t q)
{
    cli_out_wrapped(questions[q].text, printf("%2zu. ", q + 1), 4);
    for (size_t i = 0; i < CHOICES && questions[q].choices[i]; i++)
        cli_out_wrapped(questions[q].choices[i], printf("    %c) ", choice_letter(i)), 7);
}

/* Asks until there is an answer, or none is wanted. */
static verdict ask(size_t q)
{
    char line[80];
    for (;;) {
        printf("\n    Your answer, %s (Enter skips, q ends): ",
               questions[q].right ? "a, b or c" : "a number");
        if (!read_line(line, sizeof line)) return ENDED;
        const verdict found = judge(q, line);
        if (found != UNCLEAR) return found;
        printf("    '");
        cli_out_safe(line);
        printf("' is not %s.\n", questions[q].right ? "a, b or c" : "a number such as 12 or 0.5");
    }
}

static void show_answer(const char *folder, size_t q, verdict found)
{
    char text[CLI_CELL];
    printf("\n    %s: %s.\n    ",
           found == RIGHT   ? "Right"
           : found == WRONG ? "No"
                            : "The answer",
           right_text(q, text));
    cli_out_wrapped(questions[q].answer, 4, 4);
    show_commands(folder, q);
}

static void print_score(const score *s)
{
    printf("\n%zu of %zu right", s->right, s->answered);
    if (s->asked > s->answered) printf(", %zu skipped", s->asked - s->answered);
    printf("\n");
}

static int ask_all(const char *folder, size_t first, size_t end)
{
    char line[8];
    score s = {0};
    for (size_t q = first; q < end; q++) {
        if (q > first) {
            printf("\nEnter continues, q ends: ");
            if (!read_line(line, sizeof line) || line[0] == 'q') break;
        }
        putchar('\n');
        print_question(q);
        const verdict found = ask(q);
        if (found == ENDED) break;
        s.asked++;
        s.answered += found != SKIPPED;
        s.right += found == RIGHT;
        show_answer(folder, q, found);
    }
    print_score(&s);
    return CLI_DONE;
}

/* ---- without a terminal ---- */

static int print_all(size_t first, size_t end)
{
    char text[CLI_CELL];
    for (size_t q = first; q < end; q++) {
        print_question(q);
        putchar('\n');
    }
    printf("Answers\n");
    for (size_t q = first; q < end; q++) {
        const int column = printf("\n%2zu. Answer: %s. ", q + 1, right_text(q, text)) - 1;
        cli_out_wrapped(questions[q].answer, column, 4);
        for (size_t i = 0; i < COMMANDS && questions[q].commands[i]; i++)
            printf("    $ embla %s\n", questions[q].commands[i]);
    }
    return CLI_DONE;
}

static void json_question(size_t q, cli_json *json)
{
    cli_json_open(json, NULL, '{');
    cli_json_whole(json, "number", (int64_t)q + 1);
    cli_json_text(json, "question", questions[q].text);
    cli_json_open(json, "choices", '[');
    for (size_t i = 0; i < CHOICES && questions[q].choices[i]; i++)
        cli_json_text(json, NULL, questions[q].choices[i]);
    cli_json_close(json, ']');
    if (questions[q].right)
        cli_json_text(json, "answer", (const char[]){questions[q].right, '\0'});
    else
        cli_json_real(json, "answer", questions[q].number);
    cli_json_text(json, "about", questions[q].answer);
    cli_json_open(json, "commands", '[');
    for (size_t i = 0; i < COMMANDS && questions[q].commands[i]; i++) {
        char command[176];
        (void)snprintf(command, sizeof command, "embla %s", questions[q].commands[i]);
        cli_json_text(json, NULL, command);
    }
    cli_json_close(json, ']');
    cli_json_bool(json, "writes", questions[q].writes);
    cli_json_close(json, '}');
}

static int print_json(size_t first, size_t end)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "questions", '[');
    for (size_t q = first; q < end; q++) json_question(q, &json);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    putchar('\n');
    return CLI_DONE;
}

int cli_quiz(const char *folder, size_t number, bool as_json)
{
    const size_t first = number > 0 ? number - 1 : 0, end = number > 0 ? number : CLI_QUESTIONS;
    if (as_json) return print_json(first, end);
    if (!cli_is_terminal(CLI_STDIN) || !cli_is_terminal(CLI_STDOUT)) return print_all(first, end);
    if (!cli_enter_folder(folder)) return cli_failed("cannot enter '%s': %s", folder, cli_why());
    return ask_all(folder, first, end);
}
