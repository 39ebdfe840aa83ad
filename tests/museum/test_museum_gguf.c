/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong in other readers of GGUF, tried on ours: each test replays a published
 * vulnerability with a file of our own making, and names the rule that stops it. Rows are
 * those of the list of past vulnerabilities; ids are of CVE, GHSA or the project's tracker.
 */
#include <errno.h>
#include <sys/resource.h>
#include <time.h>

#include "../gguf_bytes.h"
#include "../scratch.h"
#include "files/cursor.h"
#include "files/io.h"

static const uint64_t one_number[4] = {1, 1, 1, 1};
static const uint64_t quarter[2] = {UINT64_C(1) << 40, UINT64_C(1) << 20}; /* 2^62 bytes of f32 */

/* n_kv times the size of a record wrapped, and a small block took many records. */
static void row_1_cve_2024_23605_n_kv_wraps(void **state)
{
    (void)state;
    for (int shift = 20; shift < 64; shift++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, (UINT64_C(1) << shift) + 1);
        add_key_u32(&g, "general.alignment", 32);
        gguf_refused(&g, "(G2)");
        add_head(&g, 3, (UINT64_C(1) << shift) + 1, 0);
        add_tensor(&g, "t", 1, one_number, 0, 0);
        gguf_refused(&g, "(G2)");
    }
}

/* n_dims was believed, and dims were written past an array of four. */
static void row_2_cve_2024_21802_dims_are_not_bounded(void **state)
{
    static const uint32_t ranks[] = {0, 5, 16, 255, 1U << 29, (1U << 30) + 4, UINT32_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ranks); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 1, 0);
        add_text(&g, "t");
        add_number(&g, ranks[i], 4);
        for (int k = 0; k < 300; k++) add_number(&g, 1, 8);
        gguf_refused(&g, "(G7)");
    }
}

/* After a failed read more keys were freed than had been read. */
static void row_3_ghsa_p5mv_gjc5_mwqv_what_was_not_read_is_freed(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    add_small_model(&g);
    for (size_t length = 0; length <= g.used; length++) { /* every place to stop at */
        opened file = gguf_open(g.bytes, length);
        assert_int_equal(file.status == EMBLA_OK, length == g.used);
        gguf_close(&file);
        assert_int_equal(embla_mem_live(), 0);
    }
    for (int forever = 0; forever < 2; forever++) {
        for (size_t i = 1;; i++) { /* every allocation that can fail */
            embla_mem_fail(i, forever);
            opened file = gguf_open(g.bytes, g.used);
            embla_mem_fail(0, false);
            gguf_close(&file);
            assert_int_equal(embla_mem_live(), 0);
            if (file.status == EMBLA_OK) break;
            assert_status(file.status, EMBLA_ERR_MEMORY);
        }
    }
    free(g.bytes);
}

static embla_status read_path(const char *path)
{
    embla_map *map = NULL;
    embla_directory directory = {0};
    embla_status status = embla_map_open(EMBLA_HERE, path, path, true, &map);
    if (status == EMBLA_OK) status = embla_format_gguf.read(map, NULL, &directory);
    embla_directory_free(&directory);
    embla_map_free(map);
    return status;
}

static void row_3_ghsa_p5mv_gjc5_mwqv_every_read_may_fail(void **state)
{
    gguf_bytes g = {0};
    scratch s;
    (void)state;
    scratch_new(&s);
    add_small_model(&g);
    scratch_write(scratch_path(&s, "small.gguf"), g.bytes, g.used);
    free(g.bytes);
    embla_io_short(16);
    for (int forever = 0; forever < 2; forever++) {
        for (size_t i = 1;; i++) {
            embla_io_fail(i, forever, EMBLA_SYSTEM_OTHER);
            embla_status status = read_path(s.path);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), 0);
            assert_int_equal(embla_io_live(), 0);
            if (status == EMBLA_OK) break;
            assert_status(status, EMBLA_ERR_IO);
        }
    }
    embla_io_short(0);
    scratch_free(&s);
}

/* ctx->size, the sum of all sizes, wrapped: a small block for large tensors. */
static void row_10_cve_2025_53630_sum_of_sizes_wraps(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    add_head(&g, 3, 5, 0);
    for (uint64_t i = 0; i < 4; i++) { /* 4 x 2^62 is 0 */
        char name[2] = {(char)('a' + i), 0};
        add_tensor(&g, name, 2, quarter, 0, i << 62);
    }
    add_tensor(&g, "small", 1, one_number, 0, 0); /* where it would be after the wrap */
    add_padding(&g, 32);
    add_fill(&g, 64);
    gguf_refused(&g, "(G11)");
}

/* The mended sum did not wrap; adding the overhead to it did. */
static void row_11_cve_2026_27940_overhead_and_size_wrap(void **state)
{
    const uint64_t rest[2] = {(UINT64_C(1) << 40) - 1, UINT64_C(1) << 20}; /* 2^22 less */
    const uint64_t last[1] = {(UINT64_C(1) << 22) - 32};
    gguf_bytes g = {0};
    (void)state;
    add_head(&g, 3, 5, 0);
    for (uint64_t i = 0; i < 4; i++) {
        char name[2] = {(char)('a' + i), 0};
        add_tensor(&g, name, 2, i < 3 ? quarter : rest, 0, i << 62);
    }
    add_tensor(&g, "e", 1, last, 24, UINT64_MAX - (UINT64_C(1) << 22) + 1); /* up to 2^64 - 32 */
    add_padding(&g, 32);
    add_fill(&g, 64);
    gguf_refused(&g, "(G11)");
    assert_error_has("follow a header of");
}

/* ggml_nbytes and GGML_PAD rounded up past the end of 64 bits: a size of 0. */
static void row_12_cve_2026_33298_rounding_up_wraps(void **state)
{
    static const struct {
        uint64_t dims[4];
        uint32_t type;
        const char *rule;
    } cases[] = {
        {{UINT64_C(1) << 32, UINT64_C(1) << 32, 1, 1}, 0, "(G7)"},  /* elements: 2^64 */
        {{UINT64_C(1) << 31, UINT64_C(1) << 31, 1, 1}, 0, "(G9)"},  /* bytes: 2^64 */
        {{UINT64_C(1) << 31, UINT64_C(1) << 30, 2, 1}, 28, "(G9)"}, /* bytes: 2^65 */
        {{0xffffffff, 0x100000001, 1, 1}, 24, "(G9)"},              /* bytes: 2^64 - 1, padded: 0 */
        {{0xffffffe0, 0x100000001, 1, 1}, 8, "(G9)"},
        {{UINT64_C(1) << 40, UINT64_C(1) << 23, 1, 1}, 24, "(G9)"}, /* above INT64_MAX */
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 1, 0);
        add_tensor(&g, "t", 4, cases[i].dims, cases[i].type, 0);
        add_padding(&g, 32);
        add_fill(&g, 64);
        gguf_refused(&g, cases[i].rule);
    }
}

/* general.alignment had no upper bound, and was used to round up. */
static void row_13_llama_cpp_24997_alignment_without_bound(void **state)
{
    static const uint32_t values[] = {0, 1, 3, 1U << 17, 1U << 30, 1U << 31, UINT32_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 1, 1);
        add_key_u32(&g, "general.alignment", values[i]);
        add_tensor(&g, "t", 1, one_number, 0, 0);
        add_padding(&g, 32);
        add_fill(&g, 64);
        gguf_refused(&g, "(G6)");
    }
    gguf_bytes g = {0};
    add_head(&g, 3, 0, 1);
    add_key(&g, "general.alignment", EMBLA_GGUF_U64), add_number(&g, UINT64_C(1) << 40, 8);
    gguf_refused(&g, "(G6)");
}

/* Most memory this process has had, in bytes. */
static size_t most_memory(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (size_t)usage.ru_maxrss * 1024;
}

/* Files of 43 to 160 bytes took gigabytes, or a loop that never ended. */
static void row_14_ggml_1516_small_file_large_memory(void **state)
{
    static const uint64_t huge[] = {UINT64_C(1) << 30, UINT64_C(1) << 40, UINT64_C(1) << 62,
                                    INT64_MAX, UINT64_MAX};
    size_t before = most_memory();
    clock_t start = clock();
    (void)state;
    for (size_t i = 0; i < COUNT_OF(huge); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 1), add_number(&g, huge[i], 8), add_fill(&g, 11); /* a key */
        gguf_refused(&g, "(G3)");
        add_head(&g, 3, 0, 1), add_key(&g, "k", EMBLA_GGUF_STRING), add_number(&g, huge[i], 8);
        gguf_refused(&g, "(G3)");
        for (uint32_t type = 0; type < EMBLA_GGUF_TYPES; type++) {
            add_head(&g, 3, 0, 1), add_array(&g, "k", type, huge[i]), add_fill(&g, 16);
            gguf_refused(&g, "(G4)");
        }
        add_head(&g, 3, 0, 1), add_array(&g, "k", EMBLA_GGUF_STRING, 2);
        add_number(&g, huge[i], 8), add_fill(&g, 8);
        gguf_refused(&g, "(G3)");
        add_head(&g, 3, huge[i], 0), add_fill(&g, 100);
        gguf_refused(&g, "(G2)");
        add_head(&g, 3, 0, huge[i]), add_fill(&g, 100);
        gguf_refused(&g, "(G2)");
        add_head(&g, 3, 1, 0), add_number(&g, huge[i], 8), add_fill(&g, 16); /* a name */
        gguf_refused(&g, "(G7)");
    }
    assert_true(most_memory() - before < 32 << 20);
    assert_true((clock() - start) / CLOCKS_PER_SEC < 5);
}

/* The length of a token was cast to 32 bits, came out negative, and passed the check. */
static void row_15_cve_2025_49847_length_of_a_token_is_cast(void **state)
{
    static const uint64_t lengths[] = {
        UINT64_C(1) << 31,       (UINT64_C(1) << 31) + 3,      UINT64_C(0xffffffff),
        (UINT64_C(1) << 32) + 3, UINT64_C(0xffffffff80000003), UINT64_MAX - 2};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 1);
        add_array(&g, "tokenizer.ggml.tokens", EMBLA_GGUF_STRING, 2);
        add_number(&g, lengths[i], 8), add(&g, "the", 3);
        add_text(&g, "end");
        gguf_refused(&g, "(G3)");
    }
}

/* "<0x-1>" was parsed by stoi, and the byte written to bytes[-1]. */
static void row_17_llama_cpp_25969_byte_token_minus_one(void **state)
{
    static const char *const texts[] = {"<0x-1>", "<0x+7>", "<0x 7>", "<0xFFFF>", "<0x7>",
                                        "<0x>",   "<0x7g>", "<0>",    "-1",       "<0x\t7>"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 2);
        add_array(&g, "tokenizer.ggml.tokens", EMBLA_GGUF_STRING, 1);
        add_text(&g, texts[i]);
        add_array(&g, "tokenizer.ggml.token_type", EMBLA_GGUF_I32, 1);
        add_number(&g, 6, 4);
        gguf_refused(&g, "(G12)");
    }
}

/* Scores of one byte each were read as four: past the end of the block. */
static void row_18_huntr_scores_as_int8(void **state)
{
    (void)state;
    for (uint32_t type = 0; type < EMBLA_GGUF_TYPES; type++) {
        gguf_bytes g = {0};
        if (type == EMBLA_GGUF_F32 || type == EMBLA_GGUF_ARRAY) continue;
        add_head(&g, 3, 0, 2);
        add_array(&g, "tokenizer.ggml.tokens", EMBLA_GGUF_STRING, 4);
        for (int i = 0; i < 4; i++) add_text(&g, "t");
        add_array(&g, "tokenizer.ggml.scores", type, 4);
        for (int i = 0; i < 32; i++) add_number(&g, 0, 1);
        gguf_refused(&g, "(G5)");
    }
}

/* The right type, but fewer of them than tokens. */
static void row_18_huntr_fewer_scores_than_tokens(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    add_head(&g, 3, 0, 2);
    add_array(&g, "tokenizer.ggml.tokens", EMBLA_GGUF_STRING, 4);
    for (int i = 0; i < 4; i++) add_text(&g, "t");
    add_array(&g, "tokenizer.ggml.scores", EMBLA_GGUF_F32, 1);
    add_number(&g, 0, 4);
    gguf_refused(&g, "(G5)");
}

/* A shape or offset beyond the file: what lay behind it in memory was given away. */
static void row_20_cve_2026_7482_tensor_beyond_the_file(void **state)
{
    static const struct {
        uint64_t rows, offset;
    } cases[] = {{5, 0},  {1 << 20, 0},           {UINT64_C(1) << 40, 0},
                 {1, 64}, {1, UINT64_C(1) << 40}, {1, UINT64_MAX - 31},
                 {4, 32}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 1, 0);
        add_table(&g, "token_embd.weight", cases[i].rows, 4, cases[i].offset);
        add_padding(&g, 32);
        add_fill(&g, 64); /* four rows */
        gguf_refused(&g, "(G10)");
    }
}

/* A download that stopped, mapped: SIGBUS at the first row that is not there. */
static void row_22_llama_cpp_6774_truncated_file(void **state)
{
    gguf_bytes g = {0};
    scratch s;
    (void)state;
    scratch_new(&s);
    add_small_model(&g);
    for (size_t length = 1; length < g.used; length++) {
        scratch_write(scratch_path(&s, "cut.gguf"), g.bytes, length);
        assert_status(read_path(s.path), EMBLA_ERR_FORMAT);
    }
    free(g.bytes);
    scratch_free(&s);
    assert_int_equal(embla_io_live(), 0);
}

/* Cut while open: after the size was asked for, before or after it was read. */
static void row_22_llama_cpp_6774_truncated_while_open(void **state)
{
    gguf_bytes g = {0};
    scratch s;
    (void)state;
    scratch_new(&s);
    add_head(&g, 3, 1, 1); /* 9,000 bytes of words */
    add_array(&g, "tokenizer.ggml.tokens", EMBLA_GGUF_STRING, 1000);
    for (int i = 0; i < 1000; i++) add_text(&g, "w");
    add_table(&g, "t", 1000, 4, 0);
    add_padding(&g, 32);
    add_fill(&g, 16000);
    for (off_t length = 0; length < 9000; length += 1024) { /* within the words */
        embla_map *map = NULL;
        embla_directory directory = {0};
        embla_arena arena = {0};
        embla_name *names = NULL;
        size_t count = 0;
        scratch_write(scratch_path(&s, "cut.gguf"), g.bytes, g.used);
        assert_ok(embla_map_open(EMBLA_HERE, s.path, SHOWN, true, &map));
        assert_int_equal(truncate(s.path, length), 0);
        assert_status(embla_format_gguf.read(map, NULL, &directory), EMBLA_ERR_IO);
        embla_directory_free(&directory);
        embla_map_free(map);

        scratch_write(s.path, g.bytes, g.used);
        assert_ok(embla_map_open(EMBLA_HERE, s.path, SHOWN, true, &map));
        assert_ok(embla_format_gguf.read(map, NULL, &directory));
        assert_int_equal(truncate(s.path, length), 0);
        embla_status status =
            embla_gguf_strings(&directory, map, "tokenizer.ggml.tokens", &arena, &names, &count);
        assert_status(status, EMBLA_ERR_IO);
        assert_error_has("was truncated while it was open");
        embla_arena_free(&arena);
        embla_directory_free(&directory);
        embla_map_free(map);
    }
    free(g.bytes);
    scratch_free(&s);
    assert_int_equal(embla_mem_live(), 0);
    assert_int_equal(embla_io_live(), 0);
}

/* Products of dimensions in an int: 2^32 elements were 0, and a small block took them all. */
static void row_29_cve_2025_62609_elements_counted_in_32_bits(void **state)
{
    static const uint64_t dims[][4] = {
        {65536, 65536, 1, 1}, {65536, 65537, 1, 1},         {1 << 16, 1 << 15, 1, 1},
        {256, 256, 256, 256}, {UINT64_C(1) << 32, 1, 1, 1}, {(UINT64_C(1) << 32) + 1, 1, 1, 1}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(dims); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 1, 0);
        add_tensor(&g, "t", 4, dims[i], 0, 0);
        add_padding(&g, 32);
        add_fill(&g, 64);
        gguf_refused(&g, "(G10)");
    }
}

/* A pointer into the file that nothing had checked: names, texts and arrays at its end. */
static void row_29_mlx_4136_lengths_at_the_end_of_the_file(void **state)
{
    gguf_bytes whole = {0};
    (void)state;
    add_small_model(&whole);
    for (size_t at = 24; at + 8 <= whole.used; at++) { /* every 8 bytes as a length */
        static const uint64_t values[] = {0,         1,         255, 65536, UINT64_C(1) << 32,
                                          INT64_MAX, UINT64_MAX};
        for (size_t i = 0; i < COUNT_OF(values); i++) {
            gguf_bytes g = {0};
            add(&g, whole.bytes, whole.used);
            embla_put_le64(values[i], g.bytes + at);
            opened file = gguf_open(g.bytes, g.used);
            for (size_t k = 0; file.status == EMBLA_OK && k < file.directory.count; k++) {
                const embla_entry *entry = &file.directory.entries[k];
                assert_true(entry->offset <= g.used && entry->bytes <= g.used - entry->offset);
            }
            gguf_close(&file);
            free(g.bytes);
        }
    }
    free(whole.bytes);
    assert_int_equal(embla_mem_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_1_cve_2024_23605_n_kv_wraps),
        cmocka_unit_test(row_2_cve_2024_21802_dims_are_not_bounded),
        cmocka_unit_test(row_3_ghsa_p5mv_gjc5_mwqv_what_was_not_read_is_freed),
        cmocka_unit_test(row_3_ghsa_p5mv_gjc5_mwqv_every_read_may_fail),
        cmocka_unit_test(row_10_cve_2025_53630_sum_of_sizes_wraps),
        cmocka_unit_test(row_11_cve_2026_27940_overhead_and_size_wrap),
        cmocka_unit_test(row_12_cve_2026_33298_rounding_up_wraps),
        cmocka_unit_test(row_13_llama_cpp_24997_alignment_without_bound),
        cmocka_unit_test(row_14_ggml_1516_small_file_large_memory),
        cmocka_unit_test(row_15_cve_2025_49847_length_of_a_token_is_cast),
        cmocka_unit_test(row_17_llama_cpp_25969_byte_token_minus_one),
        cmocka_unit_test(row_18_huntr_scores_as_int8),
        cmocka_unit_test(row_18_huntr_fewer_scores_than_tokens),
        cmocka_unit_test(row_20_cve_2026_7482_tensor_beyond_the_file),
        cmocka_unit_test(row_22_llama_cpp_6774_truncated_file),
        cmocka_unit_test(row_22_llama_cpp_6774_truncated_while_open),
        cmocka_unit_test(row_29_cve_2025_62609_elements_counted_in_32_bits),
        cmocka_unit_test(row_29_mlx_4136_lengths_at_the_end_of_the_file),
    };
    return cmocka_run_group_tests_name("museum_gguf", tests, NULL, NULL);
}
