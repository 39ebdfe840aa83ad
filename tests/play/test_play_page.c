/* SPDX-License-Identifier: Apache-2.0 */
/* The page that embla_play_write writes: its files, what of a model goes in, and what is refused.
 * The files are read back as the page's module opens them.
 */
#include "scratch.h"

#include <errno.h>
#include <math.h>

#include "base/base64.h"
#include "base/mem.h"
#include "embla_lab.h"
#include "files/io.h"
#include "rows.h"

static const unsigned char module[] = {0x1f, 0x8b, 'x'};

/* ---- pages in memory ---- */

typedef struct {
    char *text;
    size_t count, room;
    size_t most; /* bytes that are taken */
} written;

static bool take(void *context, const void *bytes, size_t count)
{
    written *w = context;
    if (w->count + count > w->most) return false;
    while (w->count + count + 1 > w->room) {
        w->room = 2 * w->room + 4096;
        w->text = realloc(w->text, w->room);
        assert_non_null(w->text);
    }
    memcpy(w->text + w->count, bytes, count);
    w->count += count;
    w->text[w->count] = '\0';
    return true;
}

static embla_play_options plain_options(void)
{
    return (embla_play_options){.module = module, .module_bytes = sizeof module, .demo = DEMO};
}

static written write_page(const embla_play_options *options, embla_play_report *report)
{
    written w = {.most = SIZE_MAX};
    assert_ok(embla_play_write(options, take, &w, report));
    assert_int_equal(w.count, report->bytes);
    return w;
}

/* The bytes of a file of the page, which the caller frees; NULL if there is none. */
static uint8_t *file_of(const written *w, const char *path, size_t *count)
{
    char tag[256];
    (void)snprintf(tag, sizeof tag, "class=\"file\" data-path=\"%s\">", path);
    const char *at = strstr(w->text, tag);
    if (!at) return NULL;
    at += strlen(tag);
    const size_t length = strcspn(at, "<");
    uint8_t *bytes = malloc(length + 4);
    assert_non_null(bytes);
    assert_true(embla_base64_decode(at, length, bytes, count));
    return bytes;
}

static void keep_file(const written *w, const char *path, scratch *s, const char *name)
{
    size_t count = 0;
    uint8_t *bytes = file_of(w, path, &count);
    assert_non_null(bytes);
    scratch_write(scratch_path(s, name), bytes, count);
    free(bytes);
}

/* Opens the table of a page as the module does, and its words. */
static void open_rows(const written *w, embla_table **table, embla_vocab **words)
{
    scratch s;
    embla_checkpoint *checkpoint = NULL;
    scratch_new(&s);
    keep_file(w, "/model/table.safetensors", &s, "table.safetensors");
    if (words) keep_file(w, "/model/table.vocab.txt", &s, "table.vocab.txt");
    assert_ok(embla_checkpoint_open(scratch_path(&s, "table.safetensors"), NULL, &checkpoint));
    assert_ok(rows_open(checkpoint, table));
    if (words) assert_ok(embla_vocab_open(checkpoint, words));
    embla_checkpoint_free(checkpoint);
    scratch_free(&s);
}

/* ---- tables ---- */

enum { ROWS = 30000, DIM = 60 };

/* A table that goes in as i8; its scales differ by rows, and three rows are special. */
static embla_table *new_large(void)
{
    embla_table *table = NULL;
    assert_ok(embla_table_new(EMBLA_F32, ROWS, DIM, NULL, &table));
    assert_ok(embla_table_init(table, &(embla_init_options){.seed = 5}));
    float *x = embla_table_data(table);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < DIM; i++) x[r * DIM + i] *= powf(10, (float)(r % 9) - 4);
    x[3 * DIM + 7] = NAN;
    x[4 * DIM + 8] = -INFINITY;
    memset(x + (size_t)5 * DIM, 0, DIM * sizeof *x);
    for (size_t i = 0; i < DIM; i++) x[6 * DIM + i] = 1e-44f; /* a scale that is no normal number */
    return table;
}

static void each_row_of_8_bits_has_its_own_precision(void **state)
{
    (void)state;
    embla_table *table = new_large(), *back = NULL;
    embla_checkpoint *checkpoint = NULL;
    embla_play_report report;
    assert_ok(embla_checkpoint_view(table, NULL, &checkpoint));
    embla_play_options options = plain_options();
    options.model = checkpoint;
    written w = write_page(&options, &report);
    assert_false(report.decoder);
    assert_int_equal(report.dtype, EMBLA_I8);
    assert_int_equal(report.rows, ROWS);
    assert_int_equal(report.all, ROWS);
    assert_int_equal(report.dim, DIM);
    open_rows(&w, &back, NULL);
    assert_int_equal(embla_table_dtype(back), EMBLA_F32);
    const float *x = embla_table_data(table), *y = embla_table_data(back);
    for (size_t r = 0; r < ROWS; r++) {
        double most = 0;
        for (size_t i = 0; i < DIM; i++) most = fmax(most, fabs((double)x[r * DIM + i]));
        for (size_t i = 0; i < DIM; i++) {
            if (r == 3 || r == 4)
                assert_true(isnan(y[r * DIM + i]));
            else
                assert_true(fabs((double)x[r * DIM + i] - (double)y[r * DIM + i]) <=
                            most / 253.9 + 1e-38);
        }
    }
    free(w.text);
    embla_checkpoint_free(checkpoint);
    embla_table_free(back);
    embla_table_free(table);
}

static void a_small_table_is_exact_and_keeps_words_of_any_bytes(void **state)
{
    (void)state;
    static float x[4 * 2] = {1, 2, NAN, 4, -INFINITY, 6, 7, -0.0f};
    const embla_table_layout layout = {.dtype = EMBLA_F32, .rows = 4, .dim = 2};
    const char text[] = "3 2\n</script> 1 2\n\xff\xfe\\ 3 4\n\"q\" 5 6\n";
    embla_table *table = NULL, *back = NULL;
    embla_checkpoint *checkpoint = NULL;
    embla_vocab *words = NULL, *again = NULL;
    embla_play_report report;
    scratch s;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "odd.vec"), text, sizeof text - 1);
    assert_ok(embla_checkpoint_open(s.path, NULL, &checkpoint));
    assert_ok(embla_vocab_open(checkpoint, &words));
    embla_checkpoint_free(checkpoint);
    assert_ok(embla_table_view(&layout, x, sizeof x, NULL, &table));
    assert_ok(embla_checkpoint_view(table, words, &checkpoint)); /* the last row has no word */
    embla_play_options options = plain_options();
    options.model = checkpoint;
    options.name = "</script>";
    written w = write_page(&options, &report);
    assert_int_equal(report.dtype, EMBLA_F32);
    open_rows(&w, &back, &again);
    for (int64_t r = 0; r < 4; r++)
        assert_memory_equal(embla_table_row(back, r), x + 2 * r, 2 * sizeof *x);
    assert_int_equal(embla_vocab_count(again), 3);
    for (int32_t t = 0; t < 3; t++)
        assert_string_equal(embla_vocab_word(again, t, NULL), embla_vocab_word(words, t, NULL));
    assert_null(strstr(w.text, "</script>\""));
    assert_non_null(strstr(w.text, "\"operand\":\"\\u003c/script>\""));
    assert_null(strstr(w.text, "data-path=\"/words.vec\"")); /* the table has words of its own */
    free(w.text);
    embla_checkpoint_free(checkpoint);
    embla_vocab_free(again);
    embla_vocab_free(words);
    embla_table_free(back);
    embla_table_free(table);
    scratch_free(&s);
}

static void a_table_too_large_for_a_page_is_cut_only_where_nobody_asked(void **state)
{
    (void)state;
    embla_table *table = NULL, *back = NULL;
    embla_checkpoint *checkpoint = NULL;
    embla_play_report report, same;
    assert_ok(embla_table_new(EMBLA_F32, 40000, 256, NULL, &table));
    assert_ok(embla_checkpoint_view(table, NULL, &checkpoint));
    embla_play_options options = plain_options();
    options.model = checkpoint;
    written w = write_page(&options, &report);
    assert_in_range(report.rows, 20000, 39999);
    assert_int_equal(report.all, 40000);
    assert_in_range(report.bytes, 9900000, 10000000);
    assert_non_null(strstr(report.stored, "the first "));
    open_rows(&w, &back, NULL);
    assert_int_equal(embla_table_rows(back), report.rows);
    embla_table_free(back);
    free(w.text);

    options.rows = report.rows; /* as many as fit, also if they are asked for */
    w = write_page(&options, &same);
    assert_int_equal(same.rows, report.rows);
    free(w.text);
    w = (written){.most = SIZE_MAX};
    options.rows = report.rows + 1;
    assert_status(embla_play_write(&options, take, &w, NULL), EMBLA_ERR_RANGE);
    assert_error_has("a page of 10 MB takes at most");
    assert_int_equal(w.count, 0);
    options.rows = 50000; /* all of them */
    assert_status(embla_play_write(&options, take, &w, NULL), EMBLA_ERR_RANGE);
    options.rows = 10;
    w = write_page(&options, &same);
    assert_int_equal(same.rows, 10);
    assert_int_equal(same.dtype, EMBLA_F32);
    free(w.text);
    embla_checkpoint_free(checkpoint);
    embla_table_free(table);
}

static void tokens_that_share_rows_have_one_each(void **state)
{
    (void)state;
    enum { TOKENS = 5 };
    static const float x[3 * 2] = {1, 2, 3, 4, 5, 6};
    char header[512];
    static const char layout[] =
        "{\"embeddings\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":"
        "[20,44]},\"mapping\":{\"dtype\":\"I32\",\"shape\":[5],"
        "\"data_offsets\":[0,20]}}";
    static const int32_t mapping[TOKENS] = {2, 0, 0, 1, 2};
    embla_checkpoint *checkpoint = NULL;
    embla_table *back = NULL;
    embla_play_report report;
    scratch s;
    scratch_new(&s);
    memset(header, ' ', sizeof header);
    const uint64_t length = 168;
    assert_true(sizeof layout - 1 <= length);
    memcpy(header, &length, 8);
    memcpy(header + 8, layout, sizeof layout - 1);
    memcpy(header + 8 + length, mapping, sizeof mapping);
    memcpy(header + 8 + length + sizeof mapping, x, sizeof x);
    scratch_write(scratch_path(&s, "model.safetensors"), header,
                  8 + length + sizeof mapping + sizeof x);
    assert_ok(embla_checkpoint_open(s.path, NULL, &checkpoint));
    embla_play_options options = plain_options();
    options.model = checkpoint;
    written w = write_page(&options, &report);
    assert_int_equal(report.rows, TOKENS);
    assert_non_null(strstr(report.stored, "without the other tensor of the model"));
    open_rows(&w, &back, NULL);
    for (int64_t t = 0; t < TOKENS; t++)
        assert_memory_equal(embla_table_row(back, t), x + 2 * (size_t)mapping[t], 2 * sizeof *x);
    free(w.text);
    embla_table_free(back);
    embla_checkpoint_free(checkpoint);
    scratch_free(&s);
}

/* ---- models and texts ---- */

static void a_model_that_predicts_goes_in_with_the_bytes_of_its_files(void **state)
{
    (void)state;
    embla_play_report report, other;
    embla_play_options options = plain_options();
    embla_checkpoint *story = NULL;
    written demo = write_page(&options, &report);
    assert_true(report.decoder);
    assert_int_equal(report.rows, 302);
    size_t count = 0, have = 0;
    uint8_t *bytes = file_of(&demo, "/model/model.safetensors", &count);
    unsigned char *there = scratch_read(DEMO "/story/model.safetensors", &have);
    assert_int_equal(count, have);
    assert_memory_equal(bytes, there, have);
    free(bytes);
    free(there);
    bytes = file_of(&demo, "/model/no.json", &count);
    assert_null(bytes);

    /* the same model by its folder: only the command that has trained it is missing */
    assert_ok(embla_checkpoint_open(DEMO "/story", NULL, &story));
    options.model = story;
    options.name = "story/";
    written w = write_page(&options, &other);
    assert_non_null(strstr(demo.text, "\"command\":\"embla train village.txt"));
    assert_non_null(strstr(w.text, "\"name\":\"story\",\"operand\":\"story\",\"command\":null"));
    options.rows = 5;
    w.most = w.count;
    assert_status(embla_play_write(&options, take, &w, NULL), EMBLA_ERR_ARGUMENT);
    free(w.text);
    free(demo.text);
    embla_checkpoint_free(story);
}

static void a_text_comes_first_and_a_title_is_text(void **state)
{
    (void)state;
    scratch s;
    embla_play_report report;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "a\"b.txt"), "</script>", 9);
    embla_play_options options = plain_options();
    options.text = s.path;
    options.text_name = "dir/a\"b.txt";
    options.text_words = 7;
    options.title = "<b>\"&'";
    written w = write_page(&options, &report);
    assert_non_null(strstr(w.text, "<title>&#60;b&#62;&#34;&#38;&#39;</title>"));
    assert_non_null(strstr(w.text, "\"texts\":[{\"path\":\"/text/a\\\"b.txt\",\"operand\":"
                                   "\"dir/a\\\"b.txt\",\"words\":7},{\"path\":\"/names.txt\""));
    size_t count = 0;
    uint8_t *bytes = file_of(&w, "/text/a&#34;b.txt", &count);
    assert_int_equal(count, 9);
    assert_memory_equal(bytes, "</script>", 9);
    free(bytes);
    free(w.text);

    char *large = calloc(1, 2000001);
    assert_non_null(large);
    scratch_write(scratch_path(&s, "large.txt"), large, 2000001);
    free(large);
    w = (written){.most = SIZE_MAX};
    options.text = s.path;
    assert_status(embla_play_write(&options, take, &w, NULL), EMBLA_ERR_RANGE);
    assert_int_equal(w.count, 0);
    scratch_free(&s);
}

/* ---- what is refused ---- */

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    written w = {.most = 0};
    const embla_play_options good = plain_options();
    embla_play_options o = good;
    assert_status(embla_play_write(NULL, take, &w, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_play_write(&good, NULL, &w, NULL), EMBLA_ERR_ARGUMENT);
    o.module = NULL;
    assert_status(embla_play_write(&o, take, &w, NULL), EMBLA_ERR_ARGUMENT);
    o = good, o.demo = NULL;
    assert_status(embla_play_write(&o, take, &w, NULL), EMBLA_ERR_ARGUMENT);
    o = good, o.module = "text", o.module_bytes = 4;
    assert_status(embla_play_write(&o, take, &w, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("gzip");
    o = good, o.rows = -1;
    assert_status(embla_play_write(&o, take, &w, NULL), EMBLA_ERR_ARGUMENT);
    o = good, o.text_words = -1;
    assert_status(embla_play_write(&o, take, &w, NULL), EMBLA_ERR_ARGUMENT);
    o = good, o.reserved[2] = 1;
    assert_status(embla_play_write(&o, take, &w, NULL), EMBLA_ERR_UNSUPPORTED);
    o = good, o.demo = "/nowhere";
    assert_status(embla_play_write(&o, take, &w, NULL), EMBLA_ERR_NOT_FOUND);
    o = good, o.text = "/nowhere/text";
    assert_status(embla_play_write(&o, take, &w, NULL), EMBLA_ERR_NOT_FOUND);
}

static void a_reader_that_stops_ends_the_page(void **state)
{
    (void)state;
    embla_play_report report = {.rows = 77};
    const embla_play_options options = plain_options();
    for (size_t most = 0; most < 200000; most += 49999) {
        written w = {.most = most};
        assert_status(embla_play_write(&options, take, &w, &report), EMBLA_ERR_STOPPED);
        assert_int_equal(report.rows, 77);
        free(w.text);
    }
}

static embla_status whole_page(const embla_table *table, const embla_vocab *words)
{
    embla_checkpoint *checkpoint = NULL;
    embla_play_options options = plain_options();
    embla_status status = table ? embla_checkpoint_view(table, words, &checkpoint) : EMBLA_OK;
    written w = {.most = SIZE_MAX};
    options.model = checkpoint;
    if (status == EMBLA_OK) status = embla_play_write(&options, take, &w, NULL);
    if (status != EMBLA_OK) assert_int_equal(w.count, 0);
    embla_checkpoint_free(checkpoint);
    free(w.text);
    return status;
}

static void failures_leave_nothing_behind(void **state)
{
    (void)state;
    embla_checkpoint *file = NULL;
    embla_table *table = NULL;
    embla_vocab *words = NULL;
    assert_ok(embla_checkpoint_open(DEMO "/words.vec", NULL, &file));
    assert_ok(embla_table_open(file, NULL, NULL, &table));
    assert_ok(embla_vocab_open(file, &words));
    for (int kind = 0; kind < 4; kind++) {
        const bool memory = kind % 2 == 0, own = kind < 2;
        size_t failures = 0;
        for (size_t at = 1;; at++) {
            size_t live = embla_mem_live(), open = embla_io_live();
            if (memory)
                embla_mem_fail(at, true);
            else
                embla_io_fail(at, true, EMBLA_SYSTEM_OTHER);
            embla_status status = whole_page(own ? NULL : table, words);
            embla_mem_fail(0, false);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), open);
            if (status == EMBLA_OK) break;
            assert_status(status, memory ? EMBLA_ERR_MEMORY : EMBLA_ERR_IO);
            failures++;
        }
        assert_true(failures >= 10);
    }
    embla_vocab_free(words);
    embla_table_free(table);
    embla_checkpoint_free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_of_8_bits_has_its_own_precision),
        cmocka_unit_test(a_small_table_is_exact_and_keeps_words_of_any_bytes),
        cmocka_unit_test(a_table_too_large_for_a_page_is_cut_only_where_nobody_asked),
        cmocka_unit_test(tokens_that_share_rows_have_one_each),
        cmocka_unit_test(a_model_that_predicts_goes_in_with_the_bytes_of_its_files),
        cmocka_unit_test(a_text_comes_first_and_a_title_is_text),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(a_reader_that_stops_ends_the_page),
        cmocka_unit_test(failures_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
