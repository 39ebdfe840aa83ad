/* SPDX-License-Identifier: Apache-2.0 */
/* What has gone wrong in other readers of whole models: pickles that ran, configurations
 * that named code, a fastText model that never ended. Each is tried through the one public
 * door, with files of our own making; every pickle here would make a file if it were run,
 * and a watch on the folder says which files were opened at all. Numbers are the rows of the
 * list in docs/formats.md; the id says where it was told.
 */
#include <sys/inotify.h>

#include "../models.h"
#include "../toy.h"

/* A program for pickle's machine: posix.system("touch FOLDER/ran"). */
static model_file program(const scratch *s)
{
    model_file f = {.size = 0};
    char command[300];
    snprintf(command, sizeof command, "touch %s/ran", s->folder);
    put(&f,
        "\x80\x02"
        "cposix\nsystem\nX",
        17);
    put_i32(&f, (int64_t)strlen(command));
    put(&f, command, strlen(command));
    put(&f, "\x85R.", 3);
    return f;
}

/* Refused, whatever is asked for; and nothing ran. */
static void refused_by_every_option(scratch *s, const char *name, const char *rule)
{
    char path[SCRATCH_PATH];
    snprintf(path, sizeof path, "%s", name[0] ? scratch_path(s, name) : s->folder);
    for (int i = 0; i < 8; i++) {
        embla_open_options options = {
            .lenient = i & 1, .copy = (i & 2) != 0, .as = i & 4 ? EMBLA_BF16 : 0};
        embla_checkpoint *checkpoint = NULL;
        assert_status(embla_checkpoint_open(path, &options, &checkpoint), EMBLA_ERR_UNSUPPORTED);
        assert_null(checkpoint);
        assert_error_has(rule);
    }
    assert_int_equal(scratch_count(s, "ran"), 0);
}

static void put_member(model_file *f, const char *name, const model_file *content)
{
    put(f, "PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0", 18);
    put_i32(f, (int64_t)content->size);
    put_i32(f, (int64_t)content->size);
    put_i32(f, (int64_t)strlen(name)); /* and no extra bytes */
    put(f, name, strlen(name));
    put(f, content->bytes, content->size);
}

/* ---- 34: numpy.load runs a pickle ---- */

static void row_34_cve_2019_6446_an_array_of_objects(void **state)
{
    static const char header[] = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }     \n";
    scratch s;
    model_file f = {.size = 0};
    (void)state;
    scratch_new(&s);
    model_file run = program(&s);
    put(&f, "\x93NUMPY\x01\0", 8);
    put_u8(&f, sizeof header - 1);
    put_u8(&f, 0);
    put(&f, header, sizeof header - 1);
    put(&f, run.bytes, run.size);
    scratch_write(scratch_path(&s, "vectors.npy"), f.bytes, f.size);
    refused_by_every_option(&s, "vectors.npy", "(N3)");
    assert_error_has("pickle");
    scratch_free(&s);
}

/* What numpy.load falls back to where a file is no array: whatever it is called. */
static void row_34_cve_2019_6446_a_pickle_called_npy(void **state)
{
    scratch s;
    (void)state;
    scratch_new(&s);
    model_file run = program(&s);
    scratch_write(scratch_path(&s, "vectors.npy"), run.bytes, run.size);
    refused_by_every_option(&s, "vectors.npy", "(P)");
    scratch_free(&s);
}

static void row_34_cve_2019_6446_objects_in_an_npz(void **state)
{
    scratch s;
    model_file f = {.size = 0};
    (void)state;
    scratch_new(&s);
    model_file run = program(&s);
    put_member(&f, "vectors.npy", &run);
    scratch_write(scratch_path(&s, "vectors.npz"), f.bytes, f.size);
    refused_by_every_option(&s, "vectors.npz", "(N6)");
    scratch_free(&s);
}

/* ---- 35: "weights only" did not hold ---- */

static void row_35_cve_2025_32434_torch_zip(void **state)
{
    const char *const names[] = {"pytorch_model.bin", "model.pt", "model.safetensors",
                                 "model.gguf"}; /* the name decides nothing */
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        scratch s;
        model_file f = {.size = 0}, version = {.size = 0};
        scratch_new(&s);
        model_file run = program(&s);
        put_u8(&version, '3');
        put_member(&f, "archive/version", &version);
        put_member(&f, "archive/data.pkl", &run);
        scratch_write(scratch_path(&s, names[i]), f.bytes, f.size);
        refused_by_every_option(&s, names[i], "(P)");
        refused_by_every_option(&s, "", "(P)"); /* the folder it is in */
        scratch_free(&s);
    }
}

static void row_35_cve_2026_24747_torch_before_zip(void **state)
{
    scratch s;
    model_file f = {.size = 0};
    (void)state;
    scratch_new(&s);
    model_file run = program(&s);
    put(&f, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
    put(&f, run.bytes, run.size);
    scratch_write(scratch_path(&s, "model.pth"), f.bytes, f.size);
    refused_by_every_option(&s, "model.pth", "(P)");
    scratch_free(&s);
}

/* ---- 36: the configuration names code ---- */

/* Names of files opened in the folder since the watch began, each with a space after. */
static void opened(int watch, char *out, size_t room)
{
    _Alignas(struct inotify_event) char events[8192];
    size_t used = 0;
    ssize_t got;
    out[0] = '\0';
    while ((got = read(watch, events, sizeof events)) > 0) {
        for (ssize_t at = 0; at < got;) {
            struct inotify_event event;
            memcpy(&event, events + at, sizeof event);
            const char *name = events + at + sizeof event;
            if (event.len > 0 && used < room)
                used += (size_t)snprintf(out + used, room - used, "%s ", name);
            at += (ssize_t)(sizeof event + event.len);
        }
    }
    close(watch);
}

static int watch(const scratch *s)
{
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(inotify_add_watch(fd, s->folder, IN_OPEN | IN_ACCESS) >= 0);
    return fd;
}

static const char evil_config[] =
    "{\"model_type\": \"evil\", \"architectures\": [\"EvilModel\"],"
    " \"auto_map\": {\"AutoConfig\": \"evil.EvilConfig\", \"AutoModel\": \"evil.EvilModel\","
    " \"AutoTokenizer\": [\"evil.EvilTokenizer\", null]},"
    " \"trust_remote_code\": true, \"custom_pipelines\": {\"a\": {\"impl\": \"evil.Pipe\"}},"
    " \"model_file\": \"evil.py\", \"_attn_implementation\": \"other/repository:evil\","
    " \"vocab_size\": 6, \"hidden_size\": 4, \"tie_word_embeddings\": true}";

/* A folder with good weights, and a configuration that would have code run. */
static void evil_folder(scratch *s)
{
    const toy_tensor tensors[] = {{"model.embed_tokens.weight", 6, 4, 1}};
    scratch_new(s);
    model_file run = program(s);
    toy_safetensors(scratch_path(s, "model.safetensors"), tensors, 1);
    scratch_write(scratch_path(s, "config.json"), evil_config, sizeof evil_config - 1);
    scratch_write(scratch_path(s, "evil.py"), "import os\n", 10);
    scratch_write(scratch_path(s, "evil.so"), "\x7f\x45LF", 4);
    scratch_write(scratch_path(s, "training_args.bin"), run.bytes, run.size);
    scratch_write(scratch_path(s, "pytorch_model.bin"), run.bytes, run.size);
    scratch_write(scratch_path(s, "optimizer.pt"), run.bytes, run.size);
}

static void row_36_cve_2026_4372_cve_2026_5843_config_names_code(void **state)
{
    scratch s;
    char names[2048];
    embla_checkpoint *checkpoint = NULL;
    embla_table *table = NULL;
    embla_tie tie;
    embla_vocab *vocab = NULL;
    (void)state;
    evil_folder(&s);
    int fd = watch(&s);
    assert_ok(embla_checkpoint_open(s.folder, NULL, &checkpoint));
    assert_ok(embla_table_open(checkpoint, NULL, NULL, &table));
    assert_ok(embla_checkpoint_tie(checkpoint, 0, &tie));
    assert_status(embla_vocab_open(checkpoint, &vocab), EMBLA_ERR_NOT_FOUND);
    assert_int_equal(embla_table_rows(table), 6);
    embla_table_free(table);
    embla_checkpoint_free(checkpoint);
    opened(fd, names, sizeof names);
    assert_non_null(strstr(names, "model.safetensors ")); /* the watch does see */
    assert_non_null(strstr(names, "config.json "));
    const char *const never[] = {"evil", "training_args", "pytorch_model", "optimizer", "ran"};
    for (size_t i = 0; i < COUNT_OF(never); i++)
        if (strstr(names, never[i])) fail_msg("'%s' was opened: %s", never[i], names);
    assert_int_equal(scratch_count(&s, "ran"), 0);
    scratch_free(&s);
}

/* Without good weights the pickle beside them is refused, not read "as a fallback". */
static void row_36_cve_2024_3568_no_fallback_to_a_pickle(void **state)
{
    scratch s;
    char path[SCRATCH_PATH];
    (void)state;
    evil_folder(&s);
    snprintf(path, sizeof path, "%s", scratch_path(&s, "model.safetensors"));
    scratch_write(path, "\x02\0\0\0\0\0\0\0{", 9); /* now broken */
    embla_checkpoint *checkpoint = NULL;
    assert_status(embla_checkpoint_open(s.folder, NULL, &checkpoint), EMBLA_ERR_FORMAT);
    assert_error_has("model.safetensors");
    unlink(path); /* now gone */
    refused_by_every_option(&s, "", "(P)");
    scratch_free(&s);
}

/* ---- 43: a fastText model that is cut short or spoilt ---- */

/* In others the loop over a word's bytes never sees the end, and takes memory for ever:
 * here the file is refused before a hundredth allocation. */
static void row_43_fasttext_1087_cut_inside_a_word(void **state)
{
    fasttext_model m = fasttext_plain();
    model_file f = fasttext_file(&m);
    (void)state;
    for (size_t size = 1; size < f.size; size++) {
        embla_directory d = {0};
        embla_mem_fail(100, true);
        embla_status status = read_bytes(&embla_format_fasttext, f.bytes, size, NULL, &d);
        embla_mem_fail(0, false);
        assert_status(status, EMBLA_ERR_FORMAT);
        embla_directory_free(&d);
    }
    f.size = 92; /* a word that goes on to the end of a file, and one past its longest */
    while (f.size < 92 + 5000) put_u8(&f, 'x');
    refuses(&embla_format_fasttext, &f, NULL, "F3");
    f.size = 92 + 4000;
    refuses(&embla_format_fasttext, &f, NULL, "F3");
    assert_error_has("ends inside word 0");
}

/* A corrupt download, loaded without a word, that ends the process when it is used: each
 * byte of the front spoilt in turn is refused, or every row is still inside the file. */
static void row_43_fasttext_1087_spoilt_bytes(void **state)
{
    fasttext_model models[] = {fasttext_plain(), fasttext_quantized()};
    const uint8_t flips[] = {0x01, 0x80, 0xff, 0x40};
    size_t refused = 0, accepted = 0;
    (void)state;
    for (size_t k = 0; k < COUNT_OF(models); k++) {
        model_file f = fasttext_file(&models[k]);
        for (size_t i = 0; i < 220; i++) {
            for (size_t j = 0; j < COUNT_OF(flips); j++) {
                embla_directory d = {0};
                f.bytes[i] ^= flips[j];
                if (read_bytes(&embla_format_fasttext, f.bytes, f.size, NULL, &d) == EMBLA_OK) {
                    accepted++;
                    for (size_t e = 0; e < d.count; e++)
                        assert_true(d.entries[e].offset <= f.size - d.entries[e].bytes);
                } else {
                    refused++;
                }
                f.bytes[i] ^= flips[j];
                embla_directory_free(&d);
            }
        }
    }
    assert_true(refused > 400);
    assert_true(accepted > 100); /* letters of words, counts, numbers of matrices */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_34_cve_2019_6446_an_array_of_objects),
        cmocka_unit_test(row_34_cve_2019_6446_a_pickle_called_npy),
        cmocka_unit_test(row_34_cve_2019_6446_objects_in_an_npz),
        cmocka_unit_test(row_35_cve_2025_32434_torch_zip),
        cmocka_unit_test(row_35_cve_2026_24747_torch_before_zip),
        cmocka_unit_test(row_36_cve_2026_4372_cve_2026_5843_config_names_code),
        cmocka_unit_test(row_36_cve_2024_3568_no_fallback_to_a_pickle),
        cmocka_unit_test(row_43_fasttext_1087_cut_inside_a_word),
        cmocka_unit_test(row_43_fasttext_1087_spoilt_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
