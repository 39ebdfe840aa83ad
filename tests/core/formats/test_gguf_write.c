/* SPDX-License-Identifier: Apache-2.0 */
/* Writing GGUF, and GGUF on a real disk: what is written reads back the same; every
 * allocation and every call to the system fails once and from then on, and neither memory
 * nor a descriptor is lost; vocabularies made by llama.cpp have the tokens they should.
 * The rules of reading are in test_gguf.c.
 */
#include <errno.h>

#include "base/byte_text.h"
#include "files/cursor.h"
#include "files/io.h"
#include "gguf_bytes.h"
#include "scratch.h"

/* ---- parts that can be written ---- */

/* Reads of a part: bytes count up from first, and are asked for from front to back. */
typedef struct {
    uint8_t first;
    uint64_t asked; /* so far */
    bool fails;
} numbers;

static embla_status read_numbers(void *context, uint64_t offset, size_t bytes, void *out)
{
    numbers *n = context;
    assert_int_equal(offset, n->asked);
    if (n->fails) return embla_fail(EMBLA_ERR_IO, "the part cannot be read");
    n->asked += bytes;
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)out)[i] = (uint8_t)(n->first + (offset + i) % 251);
    return EMBLA_OK;
}

/* rows x dim of this dtype. */
static embla_part part_of(const char *name, embla_dtype dtype, uint64_t rows, uint64_t dim,
                          numbers *context)
{
    embla_part part = {.name = name,
                       .element = embla_element_of(dtype),
                       .rank = 2,
                       .shape = {rows, dim},
                       .read = read_numbers,
                       .context = context};
    assert_true(embla_element_bytes(part.element, rows * dim, &part.bytes));
    return part;
}

static embla_status write_to(const char *path, const embla_contents *contents)
{
    embla_durable *out = NULL;
    EMBLA_TRY(embla_durable_open(path, &out));
    embla_status status = embla_format_gguf.write(out, contents);
    if (status == EMBLA_OK) return embla_durable_commit(out);
    embla_durable_abandon(out);
    return status;
}

/* A file on the disk, opened as the library opens one. */
static embla_status open_path(const char *path, opened *file)
{
    *file = (opened){0};
    file->status = embla_map_open(EMBLA_HERE, path, path, true, &file->map);
    if (file->status == EMBLA_OK)
        file->status = embla_format_gguf.read(file->map, NULL, &file->directory);
    return file->status;
}

static void check_entry(const opened *file, size_t n, const embla_part *part)
{
    const embla_entry *entry = &file->directory.entries[n];
    assert_string_equal(entry->name, part->name);
    assert_ptr_equal(entry->element, part->element);
    assert_int_equal(entry->rank, part->rank);
    for (uint32_t i = 0; i < part->rank; i++) assert_int_equal(entry->shape[i], part->shape[i]);
    assert_int_equal(entry->bytes, part->bytes);
    for (uint64_t i = 0; i < entry->bytes; i++)
        if (file->map->bytes[entry->offset + i] !=
            (uint8_t)(((numbers *)part->context)->first + i % 251))
            fail_msg("byte %" PRIu64 " of '%s' is another", i, part->name);
}

static void what_is_written_reads_back(void **state)
{
    scratch s;
    opened file;
    int64_t value = 0;
    embla_arena arena = {0};
    embla_name *words = NULL;
    size_t count = 0;
    numbers n[3] = {{.first = 1}, {.first = 2}, {.first = 3}};
    embla_part parts[3] = {part_of("token_embd.weight", EMBLA_F32, 3, 5, &n[0]),
                           part_of("quant", EMBLA_Q8_0, 2, 64, &n[1]),
                           part_of("large", EMBLA_BF16, 1100, 1001, &n[2])}; /* two pieces */
    embla_pair pairs[] = {{"title", "a table"}, {"empty", ""}};
    embla_name labels[3] = {{"the", 3, 0}, {NULL, 0, 1}, {"a\0b", 3, 2}};
    embla_contents contents = {.parts = parts,
                               .count = 3,
                               .pairs = pairs,
                               .pair_count = 2,
                               .labels = labels,
                               .label_count = 3};
    (void)state;
    scratch_new(&s);
    assert_ok(write_to(scratch_path(&s, "out.gguf"), &contents));
    assert_ok(open_path(s.path, &file));
    assert_int_equal(file.directory.count, 3);
    for (size_t i = 0; i < 3; i++) check_entry(&file, i, &parts[i]);
    assert_int_equal(file.map->size % 32, 0); /* llama.cpp reads the last padding too */
    assert_int_equal(file.directory.note_count, 0);
    assert_int_equal(embla_gguf_of(&file.directory)->version, 3);
    assert_int_equal(file.directory.pair_count, 4);
    assert_string_equal(file.directory.pairs[0].key, "general.architecture");
    assert_string_equal(file.directory.pairs[0].value, "embla");
    assert_string_equal(file.directory.pairs[1].value, "a table");
    assert_string_equal(file.directory.pairs[3].key, "tokenizer.ggml.model");
    assert_string_equal(file.directory.pairs[3].value, "none");
    assert_ok(embla_gguf_number(&file.directory, file.map, "embla.vocab_size", &value));
    assert_int_equal(value, 3);
    assert_ok(embla_gguf_strings(&file.directory, file.map, "tokenizer.ggml.tokens", &arena, &words,
                                 &count));
    assert_int_equal(count, 3);
    assert_string_equal(words[0].bytes, "the");
    assert_string_equal(words[1].bytes, "[PAD1]");
    assert_memory_equal(words[2].bytes, "a\0b", 4);
    const embla_gguf_key *types = NULL;
    assert_ok(embla_gguf_array(&file.directory, file.map, "tokenizer.ggml.token_type",
                               EMBLA_GGUF_I32, &types));
    assert_memory_equal(file.map->bytes + types->value, "\1\0\0\0\5\0\0\0\1\0\0", 12);
    embla_arena_free(&arena);
    gguf_close(&file);
    scratch_free(&s);
    assert_int_equal(embla_io_live(), 0);
}

static void nothing_at_all_can_be_written(void **state)
{
    embla_contents contents = {0};
    embla_arena arena = {0};
    uint8_t *bytes = NULL;
    size_t length = 0;
    uint64_t size = 0;
    (void)state;
    assert_ok(embla_gguf_header(&contents, &arena, &bytes, &length, &size));
    assert_int_equal(length, size);
    opened file = gguf_open(bytes, length);
    assert_ok(file.status);
    assert_int_equal(file.directory.count, 0);
    gguf_close(&file);
    embla_arena_free(&arena);
}

static embla_status header_of(const embla_contents *contents)
{
    embla_arena arena = {0};
    uint8_t *bytes = NULL;
    size_t length = 42;
    uint64_t size = 42;
    embla_status status = embla_gguf_header(contents, &arena, &bytes, &length, &size);
    if (status != EMBLA_OK) assert_true(!bytes && length == 42 && size == 42);
    embla_arena_free(&arena);
    return status;
}

static void parts_that_gguf_lacks_are_unsupported(void **state)
{
    char name[65] = "";
    numbers n = {0};
    embla_part part = part_of("", EMBLA_F32, 2, 4, &n), twice[2];
    embla_contents contents = {.parts = &part, .count = 1};
    (void)state;
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("(G7)");
    memset(name, 'n', 63);
    part.name = name;
    assert_ok(header_of(&contents));
    name[63] = 'n';
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("tensor 'nnn");
    assert_error_has("64 bytes");
    static const char *const lacking[] = {"U8", "U64", "BOOL", "F8_E4M3", "F4", "C64"};
    for (size_t i = 0; i < COUNT_OF(lacking); i++) {
        part = (embla_part){.name = "t", .rank = 1, .shape = {8}};
        part.element = embla_element_safetensors(lacking[i], strlen(lacking[i]));
        assert_true(embla_element_bytes(part.element, 8, &part.bytes));
        assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
        assert_error_has("tensor 't'");
        assert_error_has("(G8)");
    }
    part = part_of("t", EMBLA_F32, 1, 1, &n);
    part.rank = 0;
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    part.rank = 5;
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("(G7)");
    part = part_of("t", EMBLA_Q8_0, 2, 32, &n);
    part.shape[0] = 4, part.shape[1] = 16; /* whole blocks, but not in a row */
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("(G9)");
    twice[0] = twice[1] = part_of("t", EMBLA_F32, 1, 1, &n);
    contents = (embla_contents){.parts = twice, .count = 2};
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("twice (G7)");
}

static void sizes_that_do_not_fit_are_refused(void **state)
{
    const uint64_t most = UINT64_C(1) << 40;
    numbers n = {0};
    embla_part parts[5];
    embla_contents contents = {.parts = parts, .count = 1};
    char names[5][2];
    (void)state;
    parts[0] = part_of("t", EMBLA_F32, 1, 1, &n);
    parts[0].shape[0] = most + 1;
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    parts[0].shape[0] = parts[0].shape[1] = most;
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("(G7)");
    parts[0].shape[1] = UINT64_C(1) << 22;
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("(G9)");
    parts[0] = part_of("t", EMBLA_F32, 2, 2, &n);
    parts[0].bytes++;
    assert_status(header_of(&contents), EMBLA_ERR_ARGUMENT);
    for (size_t i = 0; i < 5; i++) {
        (void)snprintf(names[i], sizeof names[i], "%zu", i);
        parts[i] = part_of(names[i], EMBLA_F32, most, UINT64_C(1) << 20, &n);
    }
    for (contents.count = 2; contents.count <= 5; contents.count++) {
        assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED); /* 2^63 bytes and more */
        assert_error_has("(G11)");
    }
    contents.count = 1000001; /* not looked at */
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("(G2)");
}

static void keys_that_gguf_lacks_are_unsupported(void **state)
{
    static const char *const wrong[] = {
        "",       "caf\xc3\xa9",           "general.alignment",     "split.no",
        "split.", "tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type"};
    embla_pair pairs[2] = {{0}};
    embla_contents contents = {.pairs = pairs, .pair_count = 1};
    char *long_text = malloc((64 << 20) + 2);
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        pairs[0] = (embla_pair){wrong[i], "32"};
        assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    }
    assert_non_null(long_text);
    memset(long_text, 't', (64 << 20) + 1);
    long_text[(64 << 20) + 1] = 0;
    pairs[0] = (embla_pair){"t", long_text};
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("(G3)");
    long_text[65536] = 0;
    pairs[0] = (embla_pair){long_text, "t"};
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("65536 bytes");
    long_text[65535] = 0;
    assert_ok(header_of(&contents));
    free(long_text);
    contents.pair_count = 2;
    pairs[0] = pairs[1] = (embla_pair){"key", "value"};
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("'key' would occur twice (G3)");
    pairs[0] = pairs[1] = (embla_pair){"general.architecture", "value"};
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
}

static void labels_must_be_as_many_as_rows(void **state)
{
    numbers n = {0};
    embla_part part = part_of("t", EMBLA_F32, 3, 1, &n);
    embla_name labels[3] = {{"a", 1, 0}, {"b", 1, 1}, {"c", 1, 2}};
    embla_contents contents = {.parts = &part, .count = 1, .labels = labels, .label_count = 2};
    (void)state;
    assert_status(header_of(&contents), EMBLA_ERR_SHAPE);
    assert_error_has("2 labels for 3 rows");
    contents.count = 0;
    assert_status(header_of(&contents), EMBLA_ERR_SHAPE);
    contents.count = 1;
    part.rank = 0;
    assert_status(header_of(&contents), EMBLA_ERR_SHAPE);
    part.rank = 2;
    contents.label_count = 3;
    assert_ok(header_of(&contents));
    labels[1].length = (64 << 20) + 1; /* not looked at */
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("the label of row 1");
    contents.label_count = part.shape[0] = (1 << 28) + 1;
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("(G4)");
}

static void an_architecture_that_is_given_is_kept(void **state)
{
    numbers n = {0};
    embla_part part = part_of("t", EMBLA_F32, 1, 1, &n);
    embla_name label = {"a", 1, 0};
    embla_pair pairs[3] = {{"general.architecture", "bert"}, {"tokenizer.ggml.model", "gpt2"}};
    embla_contents contents = {.parts = &part,
                               .count = 1,
                               .labels = &label,
                               .label_count = 1,
                               .pairs = pairs,
                               .pair_count = 2};
    embla_arena arena = {0};
    uint8_t *bytes = NULL;
    size_t length = 0;
    uint64_t size = 0;
    int64_t value = 0;
    (void)state;
    assert_ok(embla_gguf_header(&contents, &arena, &bytes, &length, &size));
    gguf_bytes g = {0};
    add(&g, bytes, length);
    add_fill(&g, size - length);
    embla_arena_free(&arena);
    opened file = gguf_accepted(&g);
    assert_int_equal(file.directory.pair_count, 2);
    assert_string_equal(file.directory.pairs[0].value, "bert");
    assert_string_equal(file.directory.pairs[1].value, "none"); /* gpt2 would need merges */
    assert_ok(embla_gguf_number(&file.directory, file.map, "bert.vocab_size", &value));
    gguf_close(&file);
    pairs[2] = (embla_pair){"bert.vocab_size", "1"};
    contents.pair_count = 3;
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("'bert.vocab_size' would occur twice");
    pairs[0].value = "b\xc3\xa9rt";
    assert_status(header_of(&contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("(G3)");
}

/* The file that keys are copied from: split, aligned to 64, of version 2. */
static opened a_source(void)
{
    gguf_bytes g = {0};
    add_head(&g, 2, 1, 6);
    add_key_u32(&g, "split.no", 0);
    add_key_text(&g, "general.architecture", "llama");
    add_key_u32(&g, "general.alignment", 64);
    add_array(&g, "flags", EMBLA_GGUF_BOOL, 3), add_number(&g, 0x010001, 3);
    add_key_u32(&g, "split.count", 1);
    add_key_u32(&g, "split.tensors.count", 1);
    add_table(&g, "t", 1, 1, 0);
    add_padding(&g, 64);
    add_fill(&g, 64);
    return gguf_accepted(&g);
}

static void keys_of_a_gguf_are_copied_as_they_are(void **state)
{
    numbers n[2] = {{.first = 1}, {.first = 2}};
    embla_part parts[2] = {part_of("t", EMBLA_F32, 1, 1, &n[0]),
                           part_of("u", EMBLA_F32, 20, 1, &n[1])};
    embla_pair pairs[] = {{"general.architecture", "not this"}, {"added", "yes"}};
    opened source = a_source(), file;
    embla_contents contents = {.parts = parts,
                               .count = 2,
                               .pairs = pairs,
                               .pair_count = 2,
                               .source = &source.directory,
                               .source_map = source.map};
    scratch s;
    (void)state;
    scratch_new(&s);
    assert_ok(write_to(scratch_path(&s, "copy.gguf"), &contents));
    assert_ok(open_path(s.path, &file));
    const embla_gguf *from = embla_gguf_of(&source.directory), *to = embla_gguf_of(&file.directory);
    assert_int_equal(to->version, 3);
    assert_int_equal(to->alignment, 64);
    assert_int_equal(to->count, 4);
    for (size_t i = 0; i < 3; i++) { /* records 1, 2, 3 of the source */
        const embla_gguf_key *a = &from->keys[i + 1], *b = &to->keys[i];
        assert_int_equal(a->end - a->first, b->end - b->first);
        assert_memory_equal(source.bytes + a->first, file.map->bytes + b->first, a->end - a->first);
    }
    assert_string_equal(to->keys[3].key, "added");
    for (size_t i = 0; i < 2; i++) check_entry(&file, i, &parts[i]);
    assert_int_equal(file.directory.entries[1].offset - file.directory.entries[0].offset, 64);
    assert_int_equal(file.map->size % 64, 0);
    gguf_close(&file);
    contents.source_map = NULL; /* nothing to copy from */
    assert_ok(header_of(&contents));
    embla_directory other = {.format = "npy"};
    contents.source = &other, contents.source_map = source.map;
    assert_ok(header_of(&contents));
    assert_int_equal(embla_gguf_alignment(&contents), 32);
    gguf_close(&source);
    scratch_free(&s);
}

/* ---- memory and disk that fail ---- */

/* What is done under failures, and what it needs. */
typedef struct {
    scratch s;
    opened source;
} trial;

static embla_status try_reading(trial *t)
{
    opened file = {0};
    embla_arena arena = {0};
    embla_name *words = NULL;
    size_t count = 0;
    int64_t number = 0;
    double real = 0;
    embla_status status = open_path(scratch_path(&t->s, "in.gguf"), &file);
    if (status == EMBLA_OK)
        status = embla_gguf_strings(&file.directory, file.map, "tokenizer.ggml.tokens", &arena,
                                    &words, &count);
    if (status == EMBLA_OK)
        status = embla_gguf_number(&file.directory, file.map, "general.alignment", &number);
    if (status == EMBLA_OK) status = embla_gguf_real(&file.directory, file.map, "eps", &real);
    if (status == EMBLA_OK) assert_true(count == 3000 && number == 64 && words);
    embla_arena_free(&arena);
    gguf_close(&file);
    return status;
}

static embla_status try_writing(trial *t)
{
    numbers n[2] = {{.first = 1}, {.first = 2}};
    embla_part parts[2] = {part_of("t", EMBLA_F32, 2, 4, &n[0]),
                           part_of("u", EMBLA_F32, 100, 100, &n[1])};
    embla_name labels[2] = {{"a", 1, 0}, {NULL, 0, 1}};
    embla_pair pair = {"added", "yes"};
    embla_contents contents = {.parts = parts,
                               .count = 2,
                               .pairs = &pair,
                               .pair_count = 1,
                               .labels = labels,
                               .label_count = 2};
    EMBLA_TRY(write_to(scratch_path(&t->s, "plain.gguf"), &contents));
    contents.source = &t->source.directory;
    contents.source_map = t->source.map;
    n[0].asked = n[1].asked = 0;
    return write_to(scratch_path(&t->s, "copied.gguf"), &contents);
}

/* A file longer than a window, with text between its ends, and open as the source. */
static void begin_trial(trial *t)
{
    gguf_bytes g = {0};
    char name[32];
    scratch_new(&t->s);
    add_head(&g, 3, 102, 306);
    for (int i = 0; i < 300; i++) { /* lists of more than one block */
        (void)snprintf(name, sizeof name, "key %d", i);
        add_key_u32(&g, name, 1);
    }
    add_key_u32(&g, "general.alignment", 64);
    add_key_text(&g, "general.architecture", "llama");
    add_array(&g, "tokenizer.ggml.tokens", EMBLA_GGUF_STRING, 3000);
    for (int i = 0; i < 3000; i++)
        add_text(&g, i % 3 ? "<0x41>" : "a word of many letters, not one");
    add_array(&g, "tokenizer.ggml.token_type", EMBLA_GGUF_I32, 3000);
    for (int i = 0; i < 3000; i++) add_number(&g, i % 3 ? 6 : 1, 4);
    add_array(&g, "flags", EMBLA_GGUF_BOOL, 70000);
    for (int i = 0; i < 70000; i++) add_number(&g, 1, 1);
    add_key(&g, "eps", EMBLA_GGUF_F32), add_number(&g, 0x3f800000, 4);
    add_table(&g, "t", 2, 4, 0);
    for (uint64_t i = 1; i < 102; i++) {
        (void)snprintf(name, sizeof name, "tensor %d", (int)i);
        add_table(&g, name, 1, 1, 64 * i);
    }
    add_padding(&g, 64);
    add_fill(&g, 64 * 101 + 6); /* two bytes of the last padding */
    scratch_write(scratch_path(&t->s, "in.gguf"), g.bytes, g.used);
    free(g.bytes);
    assert_ok(open_path(t->s.path, &t->source));
    assert_int_equal(t->source.directory.note_count, 0);
}

static void end_trial(trial *t)
{
    gguf_close(&t->source);
    scratch_free(&t->s);
    assert_int_equal(embla_mem_live(), 0);
    assert_int_equal(embla_io_live(), 0);
}

/* Every failure of memory and of the system, once and for ever. Returns how many there
 * were. */
static size_t fail_all(trial *t, embla_status (*call)(trial *t), bool memory)
{
    size_t failures = 0, live = embla_mem_live(), open_before = embla_io_live();
    for (int forever = 0; forever < 2; forever++) {
        for (size_t i = 1;; i++) {
            if (memory)
                embla_mem_fail(i, forever);
            else
                embla_io_fail(i, forever, EMBLA_SYSTEM_OTHER);
            embla_status status = call(t);
            embla_mem_fail(0, false);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), open_before);
            assert_int_equal(scratch_count(&t->s, ".tmp."), 0); /* no temporary file stays */
            if (status == EMBLA_OK) break;
            assert_status(status, memory ? EMBLA_ERR_MEMORY : EMBLA_ERR_IO);
            failures++;
            assert_true(i < 10000);
        }
    }
    return failures;
}

static void every_allocation_may_fail(void **state)
{
    trial t = {0};
    (void)state;
    begin_trial(&t);
    assert_true(fail_all(&t, try_reading, true) >= 20);
    assert_true(fail_all(&t, try_writing, true) >= 20);
    end_trial(&t);
}

static void every_call_to_the_system_may_fail(void **state)
{
    trial t = {0};
    (void)state;
    begin_trial(&t);
    assert_true(fail_all(&t, try_reading, false) >= 10);
    embla_io_short(20000); /* more calls, and pieces */
    assert_true(fail_all(&t, try_reading, false) >= 10);
    assert_true(fail_all(&t, try_writing, false) >= 30);
    embla_io_short(0);
    end_trial(&t);
}

static void reads_may_come_in_pieces(void **state)
{
    trial t = {0};
    (void)state;
    begin_trial(&t);
    for (size_t piece = 7; piece < 20000; piece = piece * 7 + 2) {
        embla_io_short(piece);
        assert_ok(try_reading(&t));
        embla_io_short(0);
    }
    embla_io_short(4099);
    assert_ok(try_writing(&t));
    embla_io_short(0);
    end_trial(&t);
}

static void a_part_that_cannot_be_read_ends_the_writing(void **state)
{
    numbers n = {.fails = true};
    embla_part part = part_of("t", EMBLA_F32, 2, 4, &n);
    embla_contents contents = {.parts = &part, .count = 1};
    scratch s;
    (void)state;
    scratch_new(&s);
    assert_status(write_to(scratch_path(&s, "t.gguf"), &contents), EMBLA_ERR_IO);
    assert_error_has("the part cannot be read");
    assert_int_equal(scratch_count(&s, NULL), 0);
    scratch_free(&s);
    assert_int_equal(embla_mem_live(), 0);
}

/* Opened whole; then someone changes it: getters see other bytes than the reader did. */
static void getters_survive_a_file_that_changes(void **state)
{
    static const uint64_t lengths[] = {UINT64_MAX, (64 << 20) + 1, 64 << 20, 7};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        gguf_bytes g = {0};
        embla_arena arena = {0};
        embla_name *words = NULL;
        size_t count = 0;
        add_small_model(&g);
        opened file = gguf_accepted(&g);
        const embla_gguf_key *tokens = embla_gguf_find(&file.directory, "tokenizer.ggml.tokens");
        embla_put_le64(lengths[i], file.bytes + tokens->value);
        assert_status(embla_gguf_strings(&file.directory, file.map, "tokenizer.ggml.tokens", &arena,
                                         &words, &count),
                      EMBLA_ERR_FORMAT);
        assert_status(embla_gguf_vocab_check(&file.directory, file.map), EMBLA_ERR_FORMAT);
        embla_arena_free(&arena);
        gguf_close(&file);
    }
}

/* ---- files made by llama.cpp ---- */

static const char *data_folder(void)
{
    const char *data = getenv("EMBLA_DATA");
    if (data && *data) return data;
    print_message("EMBLA_DATA is not set: no real files\n");
    skip();
    return NULL;
}

/* Counts by a reading of these files with another program, in another language. */
static void vocabularies_of_llama_cpp_have_their_tokens(void **state)
{
    static const struct {
        const char *name, *architecture, *first, *last, *number_key;
        size_t tokens, keys;
        int64_t number;
        int bytes;
    } files[] = {
        {"gpt-2", "gpt2", "!", "<|endoftext|>", "gpt2.embedding_length", 50257, 16, 768, 0},
        {"bert-bge", "bert", "[PAD]", "\xef\xbd\x9e", "tokenizer.ggml.mask_token_id", 30522, 20,
         103, 0},
        {"phi-3", "phi3", "<unk>", "[PAD32063]", "tokenizer.ggml.eos_token_id", 32064, 26, 32000,
         256},
    };
    const char *data = data_folder();
    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char path[SCRATCH_PATH];
        opened file;
        embla_arena arena = {0};
        embla_name *words = NULL;
        size_t count = 0;
        int64_t number = 0;
        int bytes = 0;
        (void)snprintf(path, sizeof path, "%s/gguf-vocab/ggml-vocab-%s.gguf", data, files[i].name);
        assert_ok(open_path(path, &file));
        assert_int_equal(file.directory.count, 0);
        assert_int_equal(file.directory.note_count, 0);
        assert_int_equal(embla_gguf_of(&file.directory)->count, files[i].keys);
        assert_int_equal(embla_gguf_tokens(&file.directory), files[i].tokens);
        assert_string_equal(file.directory.pairs[0].value, files[i].architecture);
        assert_ok(embla_gguf_strings(&file.directory, file.map, "tokenizer.ggml.tokens", &arena,
                                     &words, &count));
        assert_int_equal(count, files[i].tokens);
        assert_string_equal(words[0].bytes, files[i].first);
        assert_string_equal(words[count - 1].bytes, files[i].last);
        for (size_t k = 0; k < count; k++)
            bytes += embla_byte_token(words[k].bytes, words[k].length) >= 0;
        assert_int_equal(bytes, files[i].bytes);
        assert_ok(embla_gguf_number(&file.directory, file.map, files[i].number_key, &number));
        assert_int_equal(number, files[i].number);
        embla_arena_free(&arena);
        gguf_close(&file);
    }
}

static void a_vocabulary_with_rows_keeps_its_keys(void **state)
{
    const char *data = data_folder();
    char path[SCRATCH_PATH];
    opened source, file;
    scratch s;
    numbers n = {.first = 7};
    embla_part part = part_of("token_embd.weight", EMBLA_F16, 32064, 8, &n);
    (void)state;
    scratch_new(&s);
    (void)snprintf(path, sizeof path, "%s/gguf-vocab/ggml-vocab-phi-3.gguf", data);
    assert_ok(open_path(path, &source));
    embla_contents contents = {
        .parts = &part, .count = 1, .source = &source.directory, .source_map = source.map};
    assert_ok(write_to(scratch_path(&s, "phi.gguf"), &contents));
    assert_ok(open_path(s.path, &file));
    const embla_gguf *from = embla_gguf_of(&source.directory), *to = embla_gguf_of(&file.directory);
    assert_int_equal(from->count, to->count);
    uint64_t length = from->keys[from->count - 1].end - 24;
    assert_int_equal(length, to->keys[to->count - 1].end - 24);
    assert_memory_equal(source.map->bytes + 24, file.map->bytes + 24, length); /* every key */
    check_entry(&file, 0, &part);
    assert_int_equal(embla_gguf_tokens(&file.directory), file.directory.entries[0].shape[0]);
    gguf_close(&file);
    gguf_close(&source);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(nothing_at_all_can_be_written),
        cmocka_unit_test(parts_that_gguf_lacks_are_unsupported),
        cmocka_unit_test(sizes_that_do_not_fit_are_refused),
        cmocka_unit_test(keys_that_gguf_lacks_are_unsupported),
        cmocka_unit_test(labels_must_be_as_many_as_rows),
        cmocka_unit_test(an_architecture_that_is_given_is_kept),
        cmocka_unit_test(keys_of_a_gguf_are_copied_as_they_are),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_call_to_the_system_may_fail),
        cmocka_unit_test(reads_may_come_in_pieces),
        cmocka_unit_test(a_part_that_cannot_be_read_ends_the_writing),
        cmocka_unit_test(getters_survive_a_file_that_changes),
        cmocka_unit_test(vocabularies_of_llama_cpp_have_their_tokens),
        cmocka_unit_test(a_vocabulary_with_rows_keeps_its_keys),
    };
    return cmocka_run_group_tests_name("gguf_write", tests, NULL, NULL);
}
