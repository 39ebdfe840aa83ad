/* SPDX-License-Identifier: Apache-2.0 */
/* What vectors of texts are for: a fit to a corpus, scores on sentence pairs, and an index of
 * lines. With EMBLA_DATA also the STS Benchmark with GloVe.
 */
#include <errno.h>
#include <math.h>

#include "base/checksum.h"
#include "base/mem.h"
#include "comma_locale.h"
#include "embla_search.h"
#include "files/io.h"
#include "scratch.h"
#include "search/index.h"

enum { DIM = 4, WORDS = 8 };

static const char words[WORDS][8] = {"the", "of", "cat", "dog", "ship", "sea", "red", "blue"};

/* ---- a model and a corpus ---- */

typedef struct {
    scratch s;
    char model[SCRATCH_PATH], corpus[SCRATCH_PATH], fit[SCRATCH_PATH], index[SCRATCH_PATH];
    embla_encoder *encoder;
} place;

static void put(const char *path, const char *text)
{
    scratch_write(path, text, strlen(text));
}

static void name_files(place *p)
{
    (void)snprintf(p->model, sizeof p->model, "%s", scratch_path(&p->s, "words.txt"));
    (void)snprintf(p->corpus, sizeof p->corpus, "%s", scratch_path(&p->s, "corpus.txt"));
    (void)snprintf(p->fit, sizeof p->fit, "%s", scratch_path(&p->s, "words.fit"));
    (void)snprintf(p->index, sizeof p->index, "%s", scratch_path(&p->s, "corpus.embla"));
}

/* Rows are random around one direction that all share. */
static void put_model(const place *p, uint64_t seed)
{
    char text[4096];
    int used = 0;
    for (size_t w = 0; w < WORDS; w++) {
        used += snprintf(text + used, sizeof text - (size_t)used, "%s", words[w]);
        for (size_t k = 0; k < DIM; k++)
            used += snprintf(text + used, sizeof text - (size_t)used, " %.6f",
                             (k == 0 ? 3.0 : 0.0) + check_unit(&seed));
        text[used++] = '\n';
    }
    scratch_write(p->model, text, (size_t)used);
}

static const char corpus_text[] = "the cat of the dog\n"
                                  "\n"
                                  "The SHIP, the sea\r\n"
                                  "unknown words only\n"
                                  "red cat\n"
                                  "blue sea";
enum { LINES = 6, KEPT = 4 };

static void open_model(place *p, const char *fit)
{
    const embla_encoder_options options = {.fit = fit};
    assert_ok(embla_encoder_open(p->model, &options, &p->encoder));
}

static void close_model(place *p)
{
    embla_encoder_free(p->encoder);
    p->encoder = NULL;
}

static void begin(place *p)
{
    *p = (place){0};
    scratch_new(&p->s);
    name_files(p);
    put_model(p, 7);
    put(p->corpus, corpus_text);
    open_model(p, NULL);
}

static void end(place *p)
{
    close_model(p);
    scratch_free(&p->s);
}

static void encode(place *p, const char *text, float out[DIM])
{
    const size_t length = strlen(text);
    const embla_texts one = {.texts = &text, .lengths = &length, .count = 1};
    assert_ok(embla_encoder_encode(p->encoder, &one, NULL, out, NULL));
}

/* ---- fit ---- */

static void a_fit_removes_what_all_lines_share(void **state)
{
    place p;
    embla_fit_report report;
    float before[DIM], after[DIM];
    (void)state;
    begin(&p);
    encode(&p, "red cat", before);
    const embla_fit_options options = {.a = -1, .components = 1};
    assert_ok(embla_fit(p.encoder, p.corpus, p.fit, &options, &report));
    assert_int_equal(report.lines, LINES);
    assert_int_equal(report.used, KEPT);
    assert_int_equal(report.tokens, 13);
    assert_int_equal(report.components, 1);
    assert_true(report.share > 0.9 && report.share < 1);
    assert_string_equal(report.weights, "none");
    close_model(&p);
    open_model(&p, p.fit);
    encode(&p, "red cat", after);
    assert_true(fabs((double)after[0]) < 0.2 * fabs((double)before[0]));
    /* what was removed is one direction, which is orthogonal to what is left */
    float removed[DIM];
    for (size_t k = 0; k < DIM; k++) removed[k] = before[k] - after[k];
    assert_near(embla_dot(removed, after, DIM) / (double)before[0], 0, 1e-5);
    embla_fit_options again = {0};
    assert_status(embla_fit(p.encoder, p.corpus, p.fit, &again, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("already has a fit");
    end(&p);
}

/* The metadata of a fit have a decimal point in every locale. */
static void a_fit_is_the_same_in_every_locale(void **state)
{
    const embla_fit_options options = {.a = 0.0625};
    size_t counts[2];
    place p;
    (void)state;
    begin(&p);
    assert_ok(embla_fit(p.encoder, p.corpus, p.fit, &options, NULL));
    unsigned char *here = scratch_read(p.fit, &counts[0]);
    comma_locale_begin();
    assert_ok(embla_fit(p.encoder, p.corpus, p.fit, &options, NULL));
    comma_locale_end();
    unsigned char *there = scratch_read(p.fit, &counts[1]);
    assert_int_equal(counts[0], counts[1]);
    assert_memory_equal(here, there, counts[0]);
    free(here);
    free(there);
    end(&p);
}

/* The length of the vector of one word, over that without weights. */
static double weight_of(place *p, const char *word)
{
    float plain[DIM], weighted[DIM];
    embla_encoder *all = p->encoder;
    encode(p, word, plain);
    open_model(p, p->fit);
    encode(p, word, weighted);
    close_model(p);
    p->encoder = all;
    return (double)weighted[0] / (double)plain[0];
}

static void weights_come_from_the_rank_or_from_counts(void **state)
{
    place p;
    embla_fit_report report;
    char counts[SCRATCH_PATH];
    double sum = 0;
    (void)state;
    begin(&p);
    embla_fit_options options = {.a = 0.01, .components = -1};
    assert_ok(embla_fit(p.encoder, p.corpus, p.fit, &options, &report));
    assert_string_equal(report.weights, "rank");
    for (int i = 1; i <= WORDS; i++) sum += 1.0 / i;
    assert_near(weight_of(&p, "the"), 0.01 / (0.01 + 1 / sum), 1e-6);
    assert_near(weight_of(&p, "dog"), 0.01 / (0.01 + 0.25 / sum), 1e-6);
    (void)snprintf(counts, sizeof counts, "%s", scratch_path(&p.s, "counts.txt"));
    put(counts, "the 60\nof\t20 word\nnever 19\r\n\ncat 1\n");
    options.counts = counts;
    assert_ok(embla_fit(p.encoder, p.corpus, p.fit, &options, &report));
    assert_string_equal(report.weights, "a file of counts");
    assert_near(weight_of(&p, "the"), 0.01 / (0.01 + 0.6), 1e-6);
    assert_near(weight_of(&p, "of"), 0.01 / (0.01 + 0.2), 1e-6);
    assert_near(weight_of(&p, "cat"), 0.01 / (0.01 + 0.01), 1e-6);
    assert_near(weight_of(&p, "dog"), 1, 1e-6);
    static const char *const wrong[] = {"the\n", "the x\n", "the 5x\n", "the 9999999999999999999\n",
                                        " 5\n"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        put(counts, wrong[i]);
        assert_status(embla_fit(p.encoder, p.corpus, p.fit, &options, NULL), EMBLA_ERR_FORMAT);
        assert_error_has("line 1");
    }
    put(counts, "never 5\n");
    assert_status(embla_fit(p.encoder, p.corpus, p.fit, &options, NULL), EMBLA_ERR_ARGUMENT);
    end(&p);
}

static void a_fit_belongs_to_one_model_and_is_refused_when_damaged(void **state)
{
    place p;
    size_t size = 0;
    (void)state;
    begin(&p);
    assert_ok(embla_fit(p.encoder, p.corpus, p.fit, NULL, NULL));
    const embla_encoder_options options = {.fit = p.fit};
    embla_encoder *other = NULL;
    put_model(&p, 8);
    assert_status(embla_encoder_open(p.model, &options, &other), EMBLA_ERR_ARGUMENT);
    assert_error_has("another model");
    put_model(&p, 7);
    assert_ok(embla_encoder_open(p.model, &options, &other));
    embla_encoder_free(other);
    unsigned char *bytes = scratch_read(p.fit, &size);
    bytes[size - 1] ^= 1;
    scratch_write(p.fit, bytes, size);
    assert_status(embla_encoder_open(p.model, &options, &other), EMBLA_ERR_FORMAT);
    assert_error_has("damaged");
    free(bytes);
    put(p.fit, "text");
    assert_status(embla_encoder_open(p.model, &options, &other), EMBLA_ERR_FORMAT);
    end(&p);
}

static void a_fit_needs_a_line_with_a_vector(void **state)
{
    place p;
    (void)state;
    begin(&p);
    put(p.corpus, "nothing here\n\n");
    assert_status(embla_fit(p.encoder, p.corpus, p.fit, NULL, NULL), EMBLA_ERR_SHAPE);
    put(p.corpus, "");
    assert_status(embla_fit(p.encoder, p.corpus, p.fit, NULL, NULL), EMBLA_ERR_FORMAT);
    assert_status(embla_fit(NULL, p.corpus, p.fit, NULL, NULL), EMBLA_ERR_ARGUMENT);
    const embla_fit_options bad = {.lines = -1};
    assert_status(embla_fit(p.encoder, p.corpus, p.fit, &bad, NULL), EMBLA_ERR_ARGUMENT);
    assert_int_equal(scratch_count(&p.s, "words.fit"), 0);
    end(&p);
}

/* ---- sentence pairs ---- */

static void pairs_are_scored_by_correlation_in_every_layout(void **state)
{
    place p;
    embla_eval_part part;
    (void)state;
    begin(&p);
    put(p.corpus, "genre\tfile\tyear\tid\tscore\tone\ttwo\n"
                  "g\tf\ty\t0001\t5.0\tred cat\tred cat\n"
                  "g\tf\ty\t0002\t0.5\tred cat\tblue sea\textra\n"
                  "\n"
                  "g\tf\ty\t0003\t3\tthe ship\tunheard\n"
                  "g\tf\ty\t0004\t2.5\tthe ship\tthe sea\n");
    assert_ok(embla_eval_sentences(p.encoder, p.corpus, NULL, &part));
    assert_int_equal(part.asked, 4);
    assert_int_equal(part.covered, 3);
    assert_string_equal(part.name, p.corpus);
    assert_true(part.pearson > 0 && part.pearson <= 1);
    double pearson = part.pearson;
    put(p.corpus, "5\tred cat\tred cat\n0.5\tred cat\tblue sea\n2.5\tthe ship\tthe sea\n");
    assert_ok(embla_eval_sentences(p.encoder, p.corpus, NULL, &part));
    assert_near(part.pearson, pearson, 0);
    put(p.corpus, "1\tred cat\tred cat\t5\n2\tred cat\tblue sea\t.5\n3\tthe ship\tthe sea\t2.5\n");
    assert_ok(embla_eval_sentences(p.encoder, p.corpus, NULL, &part));
    assert_near(part.pearson, pearson, 0);
    put(p.corpus, "5\tred cat\tred cat\nno pair\n");
    assert_status(embla_eval_sentences(p.encoder, p.corpus, NULL, &part), EMBLA_ERR_FORMAT);
    assert_error_has("line 2");
    put(p.corpus, "no pair\n");
    assert_status(embla_eval_sentences(p.encoder, p.corpus, NULL, &part), EMBLA_ERR_FORMAT);
    end(&p);
}

/* ---- index ---- */

static void check_answers(const embla_index *index)
{
    static const char *const texts[] = {"a red cat", "unheard", "the SEA, a ship, the"};
    const size_t lengths[] = {9, 7, 20};
    static const int64_t first[] = {5, -1, 3};
    embla_neighbour found[3 * 6];
    embla_encoded details[3];
    const embla_texts all = {.texts = texts, .lengths = lengths, .count = 3};
    assert_ok(embla_index_search(index, &all, 6, NULL, found, details));
    for (size_t i = 0; i < 3; i++) {
        size_t length = 0;
        int64_t number = -1;
        const char *line = embla_index_line(index, found[i * 6].row, &length, &number);
        assert_int_equal(details[i].tokens > 0, first[i] > 0);
        assert_int_equal(number, first[i]);
        assert_int_equal(line != NULL, first[i] > 0);
        assert_int_equal(found[i * 6 + KEPT].row, -1); /* there are no more lines */
    }
    size_t length = 0;
    assert_memory_equal(embla_index_line(index, 1, &length, NULL), "The SHIP, the sea", 17);
    assert_int_equal(length, 17);
    assert_memory_equal(embla_index_line(index, 3, &length, NULL), "blue sea", 8);
    assert_int_equal(length, 8);
    assert_null(embla_index_line(index, KEPT, &length, NULL));
    assert_null(embla_index_line(index, -1, &length, NULL));
}

static void an_index_finds_lines_and_is_the_same_from_its_file(void **state)
{
    static const embla_dtype dtypes[] = {0, EMBLA_F16, EMBLA_BF16};
    place p;
    (void)state;
    begin(&p);
    for (size_t i = 0; i < COUNT_OF(dtypes); i++) {
        embla_index *index = NULL, *stored = NULL;
        embla_index_info info;
        const embla_index_options options = {.dtype = dtypes[i]};
        assert_ok(embla_index_new(p.encoder, p.corpus, &options, &index));
        assert_ok(embla_index_describe(index, &info));
        assert_int_equal(info.lines, LINES);
        assert_int_equal(info.rows, KEPT);
        assert_int_equal(info.dim, DIM);
        assert_int_equal(info.dtype, dtypes[i] ? dtypes[i] : EMBLA_F32);
        assert_int_equal(info.text_bytes, strlen(corpus_text));
        assert_false(info.stored);
        check_answers(index);
        assert_ok(embla_index_write(index, p.index));
        assert_ok(embla_index_open(p.index, p.encoder, p.corpus, &stored));
        assert_ok(embla_index_describe(stored, &info));
        assert_true(info.stored);
        assert_int_equal(info.rows, KEPT);
        for (int64_t r = 0; r < KEPT; r++)
            assert_memory_equal(embla_table_row(stored->table, r), embla_table_row(index->table, r),
                                embla_table_row_bytes(index->table));
        check_answers(stored);
        embla_index_free(stored);
        embla_index_free(index);
    }
    const embla_index_options bad = {.dtype = EMBLA_Q8_0};
    embla_index *index = NULL;
    assert_status(embla_index_new(p.encoder, p.corpus, &bad, &index), EMBLA_ERR_UNSUPPORTED);
    end(&p);
}

static void write_index(const place *p)
{
    embla_index *index = NULL;
    assert_ok(embla_index_new(p->encoder, p->corpus, NULL, &index));
    assert_ok(embla_index_write(index, p->index));
    embla_index_free(index);
}

static void equal_lines_are_found_once_if_asked(void **state)
{
    static const char *const texts[] = {"a red cat", "unheard", "the sea"};
    const size_t lengths[] = {9, 7, 7};
    const embla_texts all = {.texts = texts, .lengths = lengths, .count = 3};
    const embla_search_options options = {.distinct = true};
    place p;
    embla_neighbour found[3 * 4];
    embla_index *index = NULL;
    char text[4096] = "";
    (void)state;
    begin(&p);
    for (int i = 0; i < 40; i++)
        strcat(text, i == 20 ? "red ship\nthe sea\n" : "red cat\n"); /* 42 lines, 3 texts */
    put(p.corpus, text);
    assert_ok(embla_index_new(p.encoder, p.corpus, NULL, &index));
    assert_ok(embla_index_search(index, &all, 4, NULL, found, NULL));
    assert_int_equal(found[3].row, 3); /* the same line four times */
    assert_ok(embla_index_search(index, &all, 4, &options, found, NULL));
    assert_int_equal(found[0].row, 0);
    for (size_t i = 0; i < 3; i += 2) { /* all three texts, then nothing */
        int64_t sum = found[4 * i].row + found[4 * i + 1].row + found[4 * i + 2].row;
        assert_int_equal(sum, 0 + 20 + 21);
        assert_true(found[4 * i].score >= found[4 * i + 1].score);
        assert_int_equal(found[4 * i + 3].row, -1);
    }
    assert_int_equal(found[4].row, -1); /* a text without tokens */
    embla_index_free(index);
    end(&p);
}

static void an_index_belongs_to_one_corpus_and_one_model(void **state)
{
    place p;
    embla_index *index = NULL;
    (void)state;
    begin(&p);
    assert_status(embla_index_open(p.index, p.encoder, p.corpus, &index), EMBLA_ERR_NOT_FOUND);
    write_index(&p);
    put(p.corpus,
        "the cat of the dog\n\nThe SHIP, the sea\r\nunknown words only\nred cat\nblue se!");
    assert_status(embla_index_open(p.index, p.encoder, p.corpus, &index), EMBLA_ERR_ARGUMENT);
    assert_error_has("another corpus");
    put(p.corpus, corpus_text);
    assert_ok(embla_fit(p.encoder, p.corpus, p.fit, NULL, NULL));
    close_model(&p);
    open_model(&p, p.fit);
    assert_status(embla_index_open(p.index, p.encoder, p.corpus, &index), EMBLA_ERR_ARGUMENT);
    assert_error_has("another model");
    close_model(&p);
    put_model(&p, 8);
    open_model(&p, NULL);
    assert_status(embla_index_open(p.index, p.encoder, p.corpus, &index), EMBLA_ERR_ARGUMENT);
    put(p.index, "no index");
    assert_status(embla_index_open(p.index, p.encoder, p.corpus, &index), EMBLA_ERR_FORMAT);
    end(&p);
}

/* Opens an index in whose bytes `from` has become `to`. */
static embla_status open_changed(const place *p, const void *from, const void *to, size_t length)
{
    size_t size = 0;
    embla_index *index = NULL;
    write_index(p);
    unsigned char *bytes = scratch_read(p->index, &size), *at = NULL;
    for (size_t i = 0; i + length <= size && !at; i++)
        if (memcmp(bytes + i, from, length) == 0) at = bytes + i;
    assert_non_null(at);
    memcpy(at, to, length);
    scratch_write(p->index, bytes, size);
    free(bytes);
    embla_status status = embla_index_open(p->index, p->encoder, p->corpus, &index);
    embla_index_free(index);
    return status;
}

static void a_damaged_index_is_refused(void **state)
{
    const int64_t begins[] = {0, 20}, inside[] = {0, 21}, past[] = {0, 20000}, twice[] = {20, 20};
    place p;
    (void)state;
    begin(&p);
    assert_ok(open_changed(&p, begins, begins, sizeof begins));
    assert_status(open_changed(&p, begins, inside, sizeof begins), EMBLA_ERR_FORMAT);
    assert_error_has("no line of the corpus begins");
    assert_status(open_changed(&p, begins, past, sizeof begins), EMBLA_ERR_FORMAT);
    assert_error_has("below 74");
    assert_status(open_changed(&p, begins, twice, sizeof begins), EMBLA_ERR_FORMAT);
    assert_error_has("at least 21");
    assert_status(open_changed(&p, "begin\"", "begun\"", 6), EMBLA_ERR_FORMAT);
    assert_error_has("no tensor 'begin'");
    assert_status(open_changed(&p, "vectors\"", "wectors\"", 8), EMBLA_ERR_FORMAT);
    assert_status(open_changed(&p, "embla.index", "embla.indix", 11), EMBLA_ERR_FORMAT);
    assert_error_has("not an index");
    end(&p);
}

static void any_number_of_threads_gives_the_same_index(void **state)
{
    enum { MANY = 9000 };
    place p;
    embla_index *all[3] = {NULL};
    char *text = calloc(MANY, 64);
    size_t used = 0;
    uint64_t seed = 5;
    (void)state;
    begin(&p);
    for (int i = 0; i < MANY; i++) {
        for (uint64_t n = check_below(&seed, 6); n > 0; n--)
            used += (size_t)sprintf(text + used, "%s ", words[check_below(&seed, WORDS)]);
        text[used++] = '\n';
    }
    scratch_write(p.corpus, text, used);
    free(text);
    for (int t = 0; t < 3; t++) {
        const embla_index_options options = {.threads = t + 1};
        assert_ok(embla_index_new(p.encoder, p.corpus, &options, &all[t]));
        const embla_table *table = all[t]->table, *first = all[0]->table;
        assert_int_equal(embla_table_rows(table), embla_table_rows(first));
        assert_memory_equal(embla_table_row(table, 0), embla_table_row(first, 0),
                            (size_t)embla_table_rows(first) * embla_table_row_bytes(first));
    }
    for (int t = 0; t < 3; t++) embla_index_free(all[t]);
    end(&p);
}

/* ---- failures ---- */

/* Fits, opens the fit, makes an index, stores and opens it, and searches. */
static embla_status use_all(const place *p)
{
    const embla_encoder_options options = {.fit = p->fit};
    embla_encoder *plain = NULL, *fitted = NULL;
    embla_index *index = NULL, *stored = NULL;
    embla_neighbour found;
    embla_eval_part part;
    const char *text = "a ship";
    const size_t length = 6;
    const embla_texts one = {.texts = &text, .lengths = &length, .count = 1};
    char pairs[SCRATCH_PATH + 8];
    (void)snprintf(pairs, sizeof pairs, "%s.pairs", p->corpus);
    embla_status status = embla_encoder_open(p->model, NULL, &plain);
    if (status == EMBLA_OK) status = embla_fit(plain, p->corpus, p->fit, NULL, NULL);
    if (status == EMBLA_OK) status = embla_encoder_open(p->model, &options, &fitted);
    if (status == EMBLA_OK) status = embla_eval_sentences(fitted, pairs, NULL, &part);
    if (status == EMBLA_OK) status = embla_index_new(fitted, p->corpus, NULL, &index);
    if (status == EMBLA_OK) status = embla_index_write(index, p->index);
    if (status == EMBLA_OK) status = embla_index_open(p->index, fitted, p->corpus, &stored);
    if (status == EMBLA_OK) status = embla_index_search(stored, &one, 1, NULL, &found, NULL);
    if (status == EMBLA_OK)
        status = embla_index_search(stored, &one, 1, &(embla_search_options){.distinct = true},
                                    &found, NULL);
    embla_index_free(stored);
    embla_index_free(index);
    embla_encoder_free(fitted);
    embla_encoder_free(plain);
    return status;
}

static void every_allocation_and_every_call_of_the_system_may_fail(void **state)
{
    place p;
    embla_status status = EMBLA_ERR_MEMORY;
    (void)state;
    begin(&p);
    put(scratch_path(&p.s, "corpus.txt.pairs"), "1\tred cat\tred cat\n2\tthe sea\tship\n");
    assert_ok(use_all(&p)); /* the engine is loaded once, and stays */
    size_t live = embla_mem_live(), files = embla_io_live();
    for (size_t n = 1; status != EMBLA_OK; n++) {
        embla_mem_fail(n, false);
        status = use_all(&p);
        embla_mem_fail(0, false);
        if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
        assert_int_equal(embla_mem_live(), live);
        assert_int_equal(embla_io_live(), files);
        assert_true(n < 5000);
    }
    for (size_t n = 1; n < 150; n++) {
        embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
        status = use_all(&p);
        embla_io_fail(0, false, 0);
        if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_IO);
        assert_int_equal(embla_mem_live(), live);
        assert_int_equal(embla_io_live(), files);
    }
    end(&p);
}

static bool stop(void *context, const char *what, int64_t done, int64_t total)
{
    (void)what;
    ++*(int *)context;
    return done >= total && total < 0;
}

static void progress_can_stop_it(void **state)
{
    place p;
    int calls = 0;
    embla_index *index = NULL;
    const embla_index_options options = {.progress = stop, .context = &calls};
    char *text = calloc(5000, 4);
    (void)state;
    begin(&p);
    for (size_t i = 0; i < 5000; i++) memcpy(text + 4 * i, "cat\n", 4);
    scratch_write(p.corpus, text, 20000);
    free(text);
    assert_status(embla_index_new(p.encoder, p.corpus, &options, &index), EMBLA_ERR_STOPPED);
    assert_int_equal(calls, 1);
    end(&p);
}

/* ---- the STS Benchmark ---- */

/* Writes the sentences of the training part to a file, one on each line. */
static void put_sentences(const char *data, const char *path)
{
    char command[3 * SCRATCH_PATH];
    (void)snprintf(command, sizeof command,
                   "cut -f 6,7 '%s'/sts-benchmark/sts-train.csv | tr '\\t' '\\n' > '%s'", data,
                   path);
    assert_int_equal(system(command), 0);
}

static double score_sts(const place *p, const char *data, const char *fit)
{
    const embla_encoder_options options = {.fit = fit};
    embla_encoder *encoder = NULL;
    embla_eval_part part;
    char path[SCRATCH_PATH];
    (void)snprintf(path, sizeof path, "%s/sts-benchmark/sts-test.csv", data);
    assert_ok(embla_encoder_open(p->model, &options, &encoder));
    assert_ok(embla_eval_sentences(encoder, path, NULL, &part));
    assert_int_equal(part.asked, 1379);
    assert_int_equal(part.covered, 1379);
    embla_encoder_free(encoder);
    return part.pearson;
}

static void glove_keeps_its_scores_on_the_sts_benchmark(void **state)
{
    place p = {0};
    const char *data = getenv("EMBLA_DATA");
    char test[SCRATCH_PATH];
    (void)state;
    (void)snprintf(test, sizeof test, "%s/sts-benchmark/sts-test.csv", data ? data : "");
    if (!data || access(test, R_OK) != 0) {
        print_message("there is no sts-benchmark in EMBLA_DATA: skipped\n");
        skip();
    }
    (void)scratch_glove(&p.s);
    name_files(&p);
    (void)snprintf(p.model, sizeof p.model, "%s", scratch_path(&p.s, "glove.txt"));
    put_sentences(data, p.corpus);
    open_model(&p, NULL);
    assert_near(score_sts(&p, data, NULL), 0.4141, 0.0005);
    embla_fit_options options = {.components = -1};
    assert_ok(embla_fit(p.encoder, p.corpus, p.fit, &options, NULL));
    assert_near(score_sts(&p, data, p.fit), 0.5783, 0.0005);
    options.components = 10;
    assert_ok(embla_fit(p.encoder, p.corpus, p.fit, &options, NULL));
    assert_near(score_sts(&p, data, p.fit), 0.6641, 0.0005);
    end(&p);
}

/* ---- flipped bits ---- */

/* What an index answers, as one checksum: its vectors, its lines and their numbers. */
static embla_status ask_index(const place *p, embla_checksum *out)
{
    embla_index *index = NULL;
    embla_index_info info;
    embla_checksum_state state;
    EMBLA_TRY(embla_index_open(p->index, p->encoder, p->corpus, &index));
    assert_ok(embla_index_describe(index, &info));
    embla_checksum_begin(&state);
    embla_checksum_add(&state, &info.lines, sizeof info.lines);
    embla_checksum_add(&state, &info.dtype, sizeof info.dtype);
    const embla_table *table = index->table;
    for (int64_t row = 0; row < info.rows; row++) {
        size_t length = 0;
        int64_t number = 0;
        const char *line = embla_index_line(index, row, &length, &number);
        embla_checksum_add(&state, line, length);
        embla_checksum_add(&state, &number, sizeof number);
        embla_checksum_add(&state, embla_table_row(table, row), embla_table_row_bytes(table));
    }
    *out = embla_checksum_end(&state);
    embla_index_free(index);
    return EMBLA_OK;
}

/* Opening refuses all flips but those in vectors, and embla_index_verify these. */
static void no_flipped_bit_of_an_index_stays_unnoticed(void **state)
{
    embla_checksum before, after;
    size_t size = 0, opened = 0;
    place p;
    (void)state;
    begin(&p);
    write_index(&p);
    unsigned char *bytes = scratch_read(p.index, &size);
    assert_ok(ask_index(&p, &before));
    assert_ok(embla_index_verify(p.index));
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
        scratch_write(p.index, bytes, size);
        embla_status status = ask_index(&p, &after);
        bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
        if (status != EMBLA_OK) continue;
        opened++;
        if (before.high == after.high && before.low == after.low) continue;
        assert_status(embla_index_verify(p.index), EMBLA_ERR_FORMAT);
        assert_error_has("damaged");
        assert_true(bit / 8 >= size - (size_t)KEPT * DIM * sizeof(float)); /* F32 is written last */
    }
    assert_true(opened >= (size_t)KEPT * DIM * 32); /* vectors are not read */
    assert_status(embla_index_verify(p.corpus), EMBLA_ERR_FORMAT);
    assert_status(embla_index_verify(NULL), EMBLA_ERR_ARGUMENT);
    free(bytes);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fit_removes_what_all_lines_share),
        cmocka_unit_test(a_fit_is_the_same_in_every_locale),
        cmocka_unit_test(weights_come_from_the_rank_or_from_counts),
        cmocka_unit_test(a_fit_belongs_to_one_model_and_is_refused_when_damaged),
        cmocka_unit_test(a_fit_needs_a_line_with_a_vector),
        cmocka_unit_test(pairs_are_scored_by_correlation_in_every_layout),
        cmocka_unit_test(an_index_finds_lines_and_is_the_same_from_its_file),
        cmocka_unit_test(equal_lines_are_found_once_if_asked),
        cmocka_unit_test(an_index_belongs_to_one_corpus_and_one_model),
        cmocka_unit_test(a_damaged_index_is_refused),
        cmocka_unit_test(no_flipped_bit_of_an_index_stays_unnoticed),
        cmocka_unit_test(any_number_of_threads_gives_the_same_index),
        cmocka_unit_test(every_allocation_and_every_call_of_the_system_may_fail),
        cmocka_unit_test(progress_can_stop_it),
        cmocka_unit_test(glove_keeps_its_scores_on_the_sts_benchmark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
