/* SPDX-License-Identifier: Apache-2.0 */
/* embla words: learns a table of words from raw text. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/advice.h"
#include "core/inputs.h"
#include "core/verbs.h"
#include "host/host.h"
#include "host/paths.h"
#include "train/ranks.h"
#include "train/words_run.h"

enum { WORDS_MOST = 1 << 22 }; /* of a vocabulary */

/* ---- options ---- */

/* A count of the command line; 0 means that the option is not given and has no default. */
static size_t size_of(const cli_args *args, const char *name)
{
    return cli_args_size(args, name);
}

/* A positive number; with zero, 0 is allowed and becomes -1, which turns the option off. */
static int read_real(const cli_args *args, const char *name, bool zero, double most, double *out)
{
    char *end = NULL;
    if (!cli_args_given(args, name)) return CLI_DONE;
    const char *text = cli_args_text(args, name);
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value))
        return cli_usage("--%s: '%.60s' is not a number such as 0.05", name, text);
    if (value < 0 || (value == 0 && !zero))
        return cli_usage("--%s is %.60s; it must be %s", name, text,
                         zero ? "0 or more" : "more than 0");
    if (value > most) return cli_usage("--%s is %.60s; the maximum is %g", name, text, most);
    *out = value == 0 ? -1 : value;
    return CLI_DONE;
}

/* --subwords 3-6 */
static int read_grams(const cli_args *args, embla_wordvec_options *o)
{
    unsigned least = 0, most = 0;
    char rest = 0;
    if (!cli_args_given(args, "subwords")) return CLI_DONE;
    const char *text = cli_args_text(args, "subwords");
    if (sscanf(text, "%3u-%3u%c", &least, &most, &rest) != 2 || least < 1 || least > most ||
        most > 16)
        return cli_usage("--subwords: '%.60s' is not a range such as 3-6, of 1 to 16 characters",
                         text);
    o->min_gram = least;
    o->max_gram = most;
    return CLI_DONE;
}

static int read_options(const cli_args *args, embla_wordvec_options *o)
{
    const char *kind = cli_args_text(args, "kind"), *clean = cli_args_text(args, "clean");
    *o = (embla_wordvec_options){.seed = (uint64_t)cli_args_count(args, "seed"),
                                 .hogwild = cli_args_flag(args, "hogwild"),
                                 .dim = size_of(args, "dim"),
                                 .window = size_of(args, "window"),
                                 .negatives = size_of(args, "negatives"),
                                 .epochs = size_of(args, "epochs"),
                                 .min_count = cli_args_count(args, "min-count"),
                                 .max_words = cli_args_count(args, "max-words"),
                                 .buckets = cli_args_count(args, "buckets"),
                                 .rate = 0.05,
                                 .sample = 1e-4};
    while (strcmp(embla_wordvec_kind_name(o->kind), kind) != 0) o->kind++;
    while (strcmp(embla_wordvec_clean_name(o->clean), clean) != 0) o->clean++;
    int code = read_real(args, "rate", false, 10, &o->rate);
    if (code == CLI_DONE) code = read_real(args, "sample", true, 1, &o->sample);
    if (code == CLI_DONE) code = read_real(args, "phrases", false, DBL_MAX, &o->phrases);
    if (code == CLI_DONE) code = read_grams(args, o);
    if (code == CLI_DONE && o->buckets > 0 && o->max_gram == 0)
        return cli_usage("--buckets has no effect without --subwords");
    if (code == CLI_DONE && o->hogwild && o->max_gram > 0)
        return cli_usage("--hogwild and --subwords cannot be used together");
    return code;
}

/* --eval A,B */
static int read_evals(const cli_args *args, cli_words *w)
{
    if (!cli_args_given(args, "eval")) return CLI_DONE;
    const char *at = cli_args_text(args, "eval");
    while (*at) {
        size_t length = strcspn(at, ",");
        if (length == 0 || w->eval_count == CLI_WORDS_EVALS)
            return cli_usage("--eval takes 1 to %d files, separated by commas",
                             (int)CLI_WORDS_EVALS);
        char *path = cli_copy_text(at, length);
        if (!path) return cli_failed("no memory for a name");
        w->evals[w->eval_count++] = path;
        FILE *file = cli_file_open(cli_input_path(path), "r");
        if (!file) return cli_failed("--eval: %s: cannot open it", path);
        (void)fclose(file);
        at += length + (at[length] == ',');
    }
    return CLI_DONE;
}

static int read_all(const cli_args *args, cli_words *w)
{
    w->named = args->operands[0];
    w->json = cli_args_flag(args, "json");
    w->quiet = cli_args_flag(args, "quiet");
    w->resume = cli_args_flag(args, "resume");
    w->force = cli_args_flag(args, "force");
    w->dry_run = cli_args_flag(args, "dry-run");
    w->save_every = (double)cli_args_count(args, "save-every");
    cli_advise_text(args, w->named);
    int code = read_options(args, &w->options);
    w->options.threads = (int)cli_args_count(args, "threads");
    if (code == CLI_DONE) code = read_evals(args, w);
    if (code == CLI_DONE && !w->dry_run) code = cli_film_read(args, &w->film);
    if (code != CLI_DONE || w->dry_run) return code;
    if (!cli_args_given(args, "output"))
        return cli_usage("words needs -o FILE, for example -o words.safetensors");
    w->output = cli_args_text(args, "output");
    if (asprintf(&w->state, "%s.state", w->output) < 0) {
        w->state = NULL;
        return cli_failed("no memory for a name");
    }
    w->plot = cli_args_text(args, "plot");
    return CLI_DONE;
}

/* One process learns the words. The processes of a job would all write the same file. */
static int check_alone(const cli_args *args)
{
    const embla_comm *comm = NULL;
    if (!embla_comm_launched()) return CLI_DONE;
    int code = cli_ranks_join(args, 0, &comm);
    if (code == CLI_DONE && comm->size > 1) {
        code = CLI_USAGE;
        if (comm->rank == 0)
            code = cli_usage("words are learned by one process, and this job has %d; start embla "
                             "words without mpirun",
                             comm->size);
    }
    embla_comm_free(comm);
    return code;
}

static int run(const cli_args *args)
{
    int code = check_alone(args);
    if (code != CLI_DONE) return code;
    cli_words *w = calloc(1, sizeof *w);
    if (!w) return cli_failed("no memory for a training");
    code = read_all(args, w);
    if (code == CLI_DONE) code = cli_words_run(args, w);
    cli_words_free(w);
    free(w);
    return code;
}

/* ---- the table ---- */

static const char *kind_name(size_t n)
{
    return embla_wordvec_kind_name((embla_wordvec_kind)n);
}

static const char *clean_name(size_t n)
{
    return embla_wordvec_clean_name((embla_wordvec_clean)n);
}

/* The limits are those of embla_wordvec_new; 0 means no maximum. */
#define COUNT(option, given, from, to, text)                                                       \
    {                                                                                              \
        .name = option, .value = "N", .standard = given, .count = true, .least = from, .most = to, \
        .help = text                                                                               \
    }

static const cli_option options[] = {
    {.name = "output", .letter = 'o', .value = "FILE", .help = "file for the table and its words"},
    {.name = "kind",
     .value = "KIND",
     .standard = "skipgram",
     .choices = kind_name,
     .help = "what is predicted: the word from each neighbour, or from their mean (cbow, faster)"},
    {.name = "clean",
     .value = "HOW",
     .standard = "plain",
     .choices = clean_name,
     .help = "plain: words are between white space; words: letters and digits of any language, in "
             "lower case; letters: a to z, in lower case"},
    COUNT("dim", "100", 1, 16384, "numbers in a row"),
    COUNT("window", "5", 1, 50, "largest distance of neighbours; each window is 1 to N"),
    COUNT("negatives", "5", 1, 63, "words drawn at random for each window"),
    COUNT("epochs", "5", 1, 1 << 20, "times the text is read"),
    {.name = "rate",
     .value = "X",
     .standard = "0.05",
     .help = "learning rate at the start; it falls to 0"},
    {.name = "sample",
     .value = "X",
     .standard = "1e-4",
     .help = "words above this share of the text are left out at random; 0 keeps all"},
    COUNT("min-count", "5", 1, 0, "words that occur less often get no row"),
    COUNT("max-words", NULL, 1, WORDS_MOST, "only the N most frequent words get a row"),
    {.name = "phrases",
     .value = "X",
     .help = "read two words as one (new_york) if their score is above X; 100 is usual"},
    {.name = "subwords",
     .value = "MIN-MAX",
     .help = "also learn rows of character n-grams, as fastText does; 3-6 is usual"},
    COUNT("buckets", NULL, 1, INT32_MAX, "n-grams share N rows at most (default: 2,000,000)"),
    COUNT("seed", "1", 0, 0, "seed of the initial rows and of everything drawn"),
    {.name = "hogwild", .help = "do not wait for other threads: faster, but not reproducible"},
    {.name = "resume", .help = "continue from FILE.state"},
    COUNT("save-every", "300", 0, 0, "seconds between saved states"),
    {.name = "eval",
     .value = "FILES",
     .reads = CLI_READS_FILE,
     .help = "score analogies or pairs after each epoch; several with commas"},
    {.name = "watch",
     .value = "WORDS",
     .reads = CLI_READS_LINES,
     .help = "show the cosines of these words while they learn: cat,dog,tuesday"},
    {.name = "plot", .value = "FILE", .help = "draw these cosines, or the loss, to FILE (SVG)"},
    {.name = "film",
     .value = "FILE",
     .help = "write a page (HTML) that shows how the rows of --watch move, or of the most frequent "
             "words, with the loss"},
    {.name = "film-axes",
     .value = "PAIRS",
     .help = "axes of the film, such as man:woman,king:queen (default: two main directions)"},
    {.name = "dry-run", .help = "count the words and say how much memory training takes"},
    {.name = "force",
     .help = "replace FILE, that of --film, and a NAME.vocab.txt or FILE.state that embla wrote"},
    {.name = NULL}};

const cli_verb cli_verb_words = {
    .name = "words",
    .synopsis = "TEXT",
    .operand = "TEXT",
    .operands_least = 1,
    .operands_most = 1,
    .files = 1,
    .about = "learn a table of words from raw text",
    .text =
        "TEXT is a text file, a folder of text files, or - for standard input. Words that are used "
        "alike get rows alike. The "
        "methods are word2vec's (skip-gram and CBOW with negative sampling) and, with --subwords, "
        "fastText's. A line is a context of its own: no window crosses its end.\n\n"
        "FILE gets the rows, most frequent word first. With a name that ends in .safetensors it "
        "also gets the counts of the words and the rows of n-grams; the words go to "
        "NAME.vocab.txt beside it. Other formats are chosen by the end of the name: "
        ".vec and .bin (word2vec), .txt (GloVe), .npy, .gguf. With subwords 'embla near' and "
        "'embla lookup' also accept words "
        "that the text does not have.\n\n"
        "The same text, options and seed give the same file, bit for bit, with any number of "
        "threads. Ctrl-C saves to FILE.state, and the same command with --resume continues, also "
        "after a crash; the result is the same as without the interruption.",
    .example = "embla words village.txt -o village-words.safetensors --clean words --epochs 20",
    .options = options,
    .ranks = true,
    .run = run};
