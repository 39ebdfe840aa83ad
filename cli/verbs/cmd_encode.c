/* SPDX-License-Identifier: Apache-2.0 */
/* embla encode: text to vectors with a static model.
 *
 * Texts are encoded and printed batch by batch (core/texts.h). Only npy keeps all vectors in
 * memory, because their number comes first in such a file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_text.h"

#include "core/static_model.h"
#include "core/texts.h"
#include "core/vectors.h"
#include "core/verbs.h"

#include "base/utf8.h"

enum { PIECE_BYTES = 4 << 20 }; /* of the vectors that are made at a time */

typedef struct {
    cli_static_model model;
    embla_encode_options options;
    cli_vectors_form form;
    size_t dim;
    cli_json json;
    float *vectors; /* of a piece of a batch; for npy of all texts */
    embla_encoded *details;
    size_t room, detail_room; /* in vectors */
    size_t kept;              /* vectors that wait for the header of npy */
    int64_t texts, truncated, unknown;
    int64_t rows; /* of SQL */
} job;

/* ---- options ---- */

static const char *overflow_name(size_t n)
{
    return n == 0 ? "error" : n == 1 ? "truncate" : NULL;
}

static int read_options(job *j, const cli_args *args)
{
    bool unit = cli_args_flag(args, "normalize"), no_unit = cli_args_flag(args, "no-normalize");
    if (unit && no_unit) return cli_usage("--normalize and --no-normalize exclude each other");
    if (cli_args_given(args, "overflow") && cli_args_count(args, "max-tokens") == 0)
        return cli_usage("--overflow needs --max-tokens N: without it no text is too long");
    j->options =
        (embla_encode_options){.dim = cli_args_size(args, "dim"),
                               .normalize = unit      ? EMBLA_NORMALIZE_YES
                                            : no_unit ? EMBLA_NORMALIZE_NO
                                                      : EMBLA_NORMALIZE_MODEL,
                               .max_tokens = cli_args_size(args, "max-tokens"),
                               .truncate = strcmp(cli_args_text(args, "overflow"), "truncate") == 0,
                               .plain = cli_args_flag(args, "plain"),
                               .strict = cli_args_flag(args, "strict"),
                               .threads = (int)cli_args_count(args, "threads")};
    return cli_vectors_choose(args, cli_vectors_text_format, false, &j->form);
}

static int open_encoder(job *j, const cli_args *args)
{
    int code = cli_static_model_open(args, true, &j->model);
    if (code != CLI_DONE) return code;
    if (j->options.dim > j->model.info.dim || (cli_args_given(args, "dim") && j->options.dim == 0))
        return cli_usage("--dim is %zu; it must be between 1 and %zu, the dim of the table",
                         j->options.dim, j->model.info.dim);
    j->dim = j->options.dim > 0 ? j->options.dim : j->model.info.dim;
    return CLI_DONE;
}

/* ---- printing ---- */

static void print_numbers(const float *values, size_t dim, char gap)
{
    for (size_t k = 0; k < dim; k++) {
        if (k > 0) putchar(gap);
        printf("%.9g", (double)values[k]);
    }
    putchar('\n');
}

static void print_json(job *j, const char *text, size_t length, const embla_encoded *detail,
                       const float *values)
{
    cli_json_open(&j->json, NULL, '{');
    (void)cli_json_bytes(&j->json, "text", text, length);
    cli_json_whole(&j->json, "tokens", (int64_t)detail->tokens);
    cli_json_whole(&j->json, "unknown", (int64_t)detail->unknown);
    cli_json_bool(&j->json, "truncated", detail->truncated);
    cli_json_open(&j->json, "values", '[');
    for (size_t k = 0; k < j->dim; k++) cli_json_real(&j->json, NULL, values[k]);
    cli_json_close(&j->json, ']');
    cli_json_close(&j->json, '}');
}

/* Text of a row of COPY: what separates columns and rows is escaped, and what is no UTF-8, or a
 * zero, becomes U+FFFD, because PostgreSQL refuses it. */
static void print_sql_text(const char *text, size_t length)
{
    static const char escaped[] = "\\\t\n\r", letters[] = "\\tnr";
    for (size_t at = 0; at < length;) {
        size_t bytes = text[at] == '\0' ? 0 : embla_utf8_length(text + at, length - at);
        const char *found = bytes == 1 ? strchr(escaped, text[at]) : NULL;
        if (found)
            printf("\\%c", letters[found - escaped]);
        else
            (void)fwrite(bytes > 0 ? text + at : "\xef\xbf\xbd", 1, bytes > 0 ? bytes : 3, stdout);
        at += bytes > 0 ? bytes : 1;
    }
}

/* A row for pgvector: number, text and vector. */
static void print_sql(job *j, const char *text, size_t length, const float *values)
{
    printf("%" PRId64 "\t", ++j->rows);
    print_sql_text(text, length);
    for (size_t k = 0; k < j->dim; k++) printf("%s%.9g", k == 0 ? "\t[" : ",", (double)values[k]);
    fputs("]\n", stdout);
}

static void print_vector(job *j, const char *text, size_t length, const embla_encoded *detail,
                         const float *values)
{
    switch (j->form) {
    case CLI_VECTORS_JSON:
        print_json(j, text, length, detail, values);
        break;
    case CLI_VECTORS_JSONL:
        j->json.comma = false;
        print_json(j, text, length, detail, values);
        putchar('\n');
        break;
    case CLI_VECTORS_NPY: /* at the end */
        break;
    case CLI_VECTORS_RAW:
        cli_vectors_raw(values, j->dim);
        break;
    case CLI_VECTORS_FVECS:
        cli_vectors_fvecs(values, j->dim);
        break;
    case CLI_VECTORS_SQL:
        print_sql(j, text, length, values);
        break;
    default:
        print_numbers(values, j->dim, j->form == CLI_VECTORS_TSV ? '\t' : ' ');
        break;
    }
}

static void print_head(job *j)
{
    if (j->form == CLI_VECTORS_SQL)
        printf("CREATE EXTENSION IF NOT EXISTS vector;\n"
               "CREATE TABLE IF NOT EXISTS texts (id bigint PRIMARY KEY, text text, embedding "
               "vector(%zu));\n"
               "COPY texts (id, text, embedding) FROM stdin;\n",
               j->dim);
    if (j->form != CLI_VECTORS_JSON) return;
    bool unit = j->options.normalize == EMBLA_NORMALIZE_MODEL
                    ? j->model.info.normalize
                    : j->options.normalize == EMBLA_NORMALIZE_YES;
    cli_json_open(&j->json, NULL, '{');
    cli_json_whole(&j->json, "dim", (int64_t)j->dim);
    cli_json_text(&j->json, "dtype", "f32");
    cli_json_text(&j->json, "compat", embla_compat_name(j->model.info.compat));
    cli_json_text(&j->json, "compat_why", j->model.info.why);
    cli_json_bool(&j->json, "normalized", unit);
    cli_json_open(&j->json, "texts", '[');
}

static void print_tail(job *j)
{
    if (j->form == CLI_VECTORS_NPY) {
        cli_vectors_npy(j->kept, j->dim);
        for (size_t i = 0; i < j->kept; i++) cli_vectors_raw(j->vectors + i * j->dim, j->dim);
    }
    if (j->form == CLI_VECTORS_SQL) fputs("\\.\n", stdout);
    if (j->form != CLI_VECTORS_JSON) return;
    cli_json_close(&j->json, ']');
    cli_json_close(&j->json, '}');
    putchar('\n');
}

/* ---- batches ---- */

/* Makes room for `more` vectors after those that are kept. */
static int make_room(job *j, size_t more)
{
    size_t need = j->kept + more, room = 2 * j->room > need ? 2 * j->room : need;
    if (more > j->detail_room) {
        embla_encoded *details = realloc(j->details, more * sizeof *details);
        if (!details) return cli_failed("no memory for %zu texts", more);
        j->details = details;
        j->detail_room = more;
    }
    if (need <= j->room) return CLI_DONE;
    float *vectors = NULL;
    if (room <= SIZE_MAX / sizeof *vectors / j->dim)
        vectors = realloc(j->vectors, room * j->dim * sizeof *vectors);
    if (!vectors) return cli_failed("no memory for %zu vectors of %zu numbers", room, j->dim);
    j->vectors = vectors;
    j->room = room;
    return CLI_DONE;
}

static int encode_piece(job *j, const cli_texts *batch, size_t at, size_t count)
{
    int code = make_room(j, count);
    if (code != CLI_DONE) return code;
    float *out = j->vectors + j->kept * j->dim;
    const embla_texts texts = {
        .texts = batch->texts + at, .lengths = batch->lengths + at, .count = count};
    if (embla_encoder_encode(j->model.encoder, &texts, &j->options, out, j->details) != EMBLA_OK)
        return j->texts == 0 ? cli_failed("%s", embla_error())
                             : cli_failed("after %" PRId64 " texts: %s", j->texts, embla_error());
    for (size_t i = 0; i < count; i++) {
        print_vector(j, batch->texts[at + i], batch->lengths[at + i], &j->details[i],
                     out + i * j->dim);
        j->truncated += j->details[i].truncated;
        j->unknown += j->details[i].tokens == 0 && batch->lengths[at + i] > 0;
    }
    j->texts += (int64_t)count;
    if (j->form == CLI_VECTORS_NPY) j->kept += count;
    return CLI_DONE;
}

static int encode_batch(void *context, const cli_texts *batch)
{
    job *j = context;
    size_t most = PIECE_BYTES / (j->dim * sizeof(float)) + 1;
    int code = CLI_DONE;
    for (size_t at = 0; code == CLI_DONE && at < batch->count; at += most)
        code = encode_piece(j, batch, at, batch->count - at < most ? batch->count - at : most);
    (void)fflush(stdout);
    return code;
}

/* ---- the verb ---- */

static int encode_all(job *j, const cli_args *args)
{
    cli_texts texts = {.take = encode_batch, .context = j, .field = cli_args_text(args, "field")};
    print_head(j);
    int code = cli_texts_read(&texts, args);
    cli_texts_free(&texts);
    if (code != CLI_DONE) return code;
    print_tail(j);
    if (j->truncated > 0 && !cli_args_flag(args, "quiet"))
        cli_complain("%" PRId64 " of %" PRId64 " texts were truncated", j->truncated, j->texts);
    if (j->unknown > 0 && !cli_args_flag(args, "quiet"))
        cli_complain("note: %" PRId64 " of %" PRId64 " texts have no token that the model knows; "
                     "their vectors are zero",
                     j->unknown, j->texts);
    return CLI_DONE;
}

static int run(const cli_args *args)
{
    job j = {0};
    int code = read_options(&j, args);
    if (code == CLI_DONE) code = open_encoder(&j, args);
    if (code == CLI_DONE) code = cli_vectors_redirect(args, j.form);
    if (code == CLI_DONE) code = encode_all(&j, args);
    code = cli_out_done(code);
    cli_static_model_free(&j.model);
    free(j.vectors);
    free(j.details);
    return code;
}

static const cli_option options[] = {
    CLI_TEXTS_FILE,
    {.name = "field",
     .value = "NAME",
     .help = "lines of the file are JSON objects, and NAME is the member with the text"},
    CLI_STATIC_MODEL_OPTIONS,
    CLI_STATIC_MODEL_FIT,
    {.name = "normalize", .help = "divide each vector by its norm, whatever the model says"},
    {.name = "no-normalize", .help = "do not divide vectors by their norms"},
    {.name = "dim",
     .value = "N",
     .count = true,
     .help = "keep only the first N numbers of each vector, before it is normalised"},
    {.name = "max-tokens",
     .value = "N",
     .standard = "0",
     .count = true,
     .help = "limit for the tokens of a text; 0 means none"},
    {.name = "overflow",
     .value = "ACTION",
     .standard = "error",
     .choices = overflow_name,
     .help = "what happens to a text with more than --max-tokens tokens"},
    {.name = "plain", .help = "treat special tokens in a text as ordinary text"},
    {.name = "strict", .help = "refuse text that is not valid UTF-8"},
    {.name = "format",
     .value = "FORMAT",
     .standard = "text",
     .choices = cli_vectors_text_format,
     .help = "output format; taken from the extension of FILE if not given"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "write to FILE, such as vectors.npy"},
    {.name = "force", .help = "replace FILE if it exists"},
    {.name = NULL}};

const cli_verb cli_verb_encode = {
    .name = "encode",
    .synopsis = "MODEL [TEXT]...",
    .operand = "MODEL",
    .operands_least = 1,
    .operands_most = CLI_OPERANDS_MOST,
    .files = 1,
    .about = "convert text to vectors with a static model",
    .text =
        "The vector of a text is the mean of the rows of its tokens. MODEL is a folder of "
        "Model2Vec or of sentence-transformers' StaticEmbedding, a file of WordLlama, word vectors "
        "(GloVe, word2vec, fastText), or any checkpoint with a token table and a tokenizer, as a "
        "stand-in. With - as TEXT, or without TEXT and --file, each line of standard input is a "
        "text.\n\n"
        "No text is truncated, unless --max-tokens or --compat asks for it; a message then says "
        "how many were. A text without tokens has a vector of zeros, which a note counts.\n\n"
        "Formats:\n- text: the numbers of a text on one line, with spaces between them;\n- tsv: "
        "the same with tabs;\n- json: one object, with the text and the number of its tokens; "
        "null for a number that is not finite;\n- jsonl: one object per text;\n- npy, raw: "
        "little-endian f32;\n- fvecs: the same with the dim, a 32-bit integer, before each vector "
        "(faiss, usearch);\n- sql: statements for psql that fill a table 'texts' of pgvector.",
    .example = "embla encode names emma olivia --dim 4",
    .options = options,
    .run = run};
