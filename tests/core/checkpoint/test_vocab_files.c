/* SPDX-License-Identifier: Apache-2.0 */
/* Words in text and in binary files; files told apart; a system that fails. Words in JSON are
 * in test_vocab.c, real files in test_vocab_real.c.
 */
#include "vocab_bytes.h"

#include <errno.h>

#include "files/io.h"
#include "scratch.h"

/* ---- text ---- */

static embla_vocab *lines_of(const char *text)
{
    return vocab_of(text, strlen(text), EMBLA_VOCAB_LINES);
}

static void refuse_lines(const void *bytes, size_t count, const char *text, const char *rule)
{
    vocab_refused(bytes, count, EMBLA_VOCAB_LINES, EMBLA_ERR_FORMAT, text, rule);
}

static void each_line_is_a_word(void **state)
{
    static const char *const same[] = {"[PAD]\n\nthe\n the \n", "[PAD]\n\nthe\n the ",
                                       "[PAD]\r\n\r\nthe\r\n the \r\n", "[PAD]\r\n\nthe\n the \r"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(same); i++) {
        embla_vocab *vocab = lines_of(same[i]);
        assert_int_equal(embla_vocab_count(vocab), 4);
        assert_word(vocab, 0, "[PAD]");
        assert_word(vocab, 1, "");
        assert_word(vocab, 2, "the");
        assert_word(vocab, 3, " the ");
        embla_vocab_free(vocab);
    }
    embla_vocab *vocab = lines_of("a\nb\r\n\\n\n#embla-vocab 1\n");
    assert_word(vocab, 1, "b\r"); /* the first line ends without CR: so this is a word */
    assert_word(vocab, 2, "\\n");
    assert_word(vocab, 3, "#embla-vocab 1");
    embla_vocab_free(vocab);
    vocab = lines_of("\n");
    assert_int_equal(embla_vocab_count(vocab), 1);
    assert_word(vocab, 0, "");
    embla_vocab_free(vocab);
}

static void rule_t1_text_is_utf8_without_zeros(void **state)
{
    (void)state;
    refuse_lines("a\nb\xff\nc\n", 7, "line 2, byte 1 of 2: not valid UTF-8", "(T1)");
    refuse_lines("a\n\xe2\x96", 4, "line 2, byte 0 of 2: not valid UTF-8", "(T1)");
    refuse_lines("a\0b\n", 4, "line 1 (3 bytes) contains a 0 byte", "(T1)");
    refuse_lines("", 0, "there are no words", "(T2)");
}

static void rule_t1_a_word_above_1_mib_is_refused(void **state)
{
    vocab_bytes b = {0};
    (void)state;
    put_text(&b, "x\n");
    put_times(&b, "a", 1 << 20);
    embla_vocab *vocab = vocab_of(b.bytes, b.used, EMBLA_VOCAB_LINES);
    assert_word_bytes(vocab, 1, b.bytes + 2, 1 << 20);
    embla_vocab_free(vocab);
    put_text(&b, "b\ny\n");
    refuse_lines(b.bytes, b.used, "token 1 has 1048577 bytes; the limit is 1048576", "(T1)");
    put_times(&b, "0123456789abcdef", 1 << 19);
    refuse_lines(b.bytes, b.used, "token 1 has", "(T1)");
    memset(b.bytes, 'x', b.used);
    refuse_lines(b.bytes, b.used, "line at byte 0 is longer than 4194304", "(T1)");
    put_end(&b);
}

static void rule_v1_our_own_text_has_escapes(void **state)
{
    static const char text[] =
        "#embla-vocab 1\nthe\n\\-\na\\nb\\r\\\\\\x00\\xfF\n\n\\\\-\n\\-\n\\-";
    static const char *const wrong[] = {"\\",    "a\\",  "\\t",  "\\x", "\\x1", "\\xg0",
                                        "\\x0g", "\\-a", "a\\-", "\\N", "\\0"};
    (void)state;
    for (int hint = EMBLA_VOCAB_MARKED; hint <= EMBLA_VOCAB_ANY; hint++) {
        embla_vocab *vocab = vocab_of(text, strlen(text), (embla_vocab_hint)hint);
        assert_int_equal(embla_vocab_count(vocab), 4);
        assert_int_equal(embla_vocab_end(vocab), 5);
        assert_word(vocab, 0, "the");
        assert_no_word(vocab, 1);
        assert_word_bytes(vocab, 2, "a\nb\r\\\0\xff", 7);
        assert_word(vocab, 3, "");
        assert_word(vocab, 4, "\\-");
        embla_vocab_free(vocab);
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char file[64];
        (void)snprintf(file, sizeof file, "#embla-vocab 1\nthe\n%s\n", wrong[i]);
        refuse_lines(file, strlen(file), "line 3: invalid escape", "(V1)");
    }
    refuse_lines("#embla-vocab 1", 14, "there are no words", "(T2)");
    refuse_lines("#embla-vocab 1\na\n\xff\n", 19, "line 3, byte 0 of 1: not valid UTF-8", "(T1)");
    embla_vocab *vocab =
        lines_of("#embla-vocab 1\r\nthe\r\n\\-\r\na\\r\r\n"); /* through an editor */
    assert_word(vocab, 0, "the");
    assert_no_word(vocab, 1);
    assert_word(vocab, 2, "a\r");
    embla_vocab_free(vocab);
    vocab = lines_of("#embla-vocab 10\n\\q\n"); /* any other first line is a word */
    assert_word(vocab, 0, "#embla-vocab 10");
    assert_word(vocab, 1, "\\q");
    embla_vocab_free(vocab);
}

static void what_is_written_reads_back_whatever_the_bytes(void **state)
{
    enum { WORDS = 700 };
    static char bytes[WORDS][24];
    static embla_name names[WORDS];
    scratch s;
    uint64_t seed = 3;
    embla_durable *out = NULL;
    embla_vocab *vocab = NULL;
    (void)state;
    for (size_t i = 0; i < WORDS; i++) {
        static const char often[] = "\\\n\r-x\0n\x7f\xe2\x96\x81 a";
        size_t length = i < 256 ? 1 : check_below(&seed, sizeof bytes[i]);
        for (size_t j = 0; j < length; j++) {
            bool any = check_below(&seed, 2) == 0;
            bytes[i][j] = any ? (char)check_next(&seed) : often[check_below(&seed, 13)];
            if (i < 256) bytes[i][j] = (char)i;
        }
        names[i] = (embla_name){bytes[i], (uint32_t)length, 0};
        if (i % 50 == 49) names[i].bytes = NULL;
    }
    scratch_new(&s);
    assert_ok(embla_durable_open(scratch_path(&s, "x.vocab.txt"), &out));
    assert_ok(embla_vocab_write(out, names, WORDS));
    assert_ok(embla_durable_commit(out));
    size_t size = 0;
    unsigned char *text = scratch_read(scratch_path(&s, "x.vocab.txt"), &size);
    for (size_t i = 0; i < size; i++) /* nothing in it that a terminal or an editor minds */
        assert_true(text[i] == '\n' || (text[i] >= 0x20 && text[i] != 0x7f));
    free(text);
    assert_ok(embla_vocab_open_file(scratch_path(&s, "x.vocab.txt"), &vocab));
    for (size_t i = 0; i < WORDS; i++) {
        if (names[i].bytes)
            assert_word_bytes(vocab, (int32_t)i, names[i].bytes, names[i].length);
        else
            assert_no_word(vocab, (int32_t)i);
    }
    embla_vocab_free(vocab);
    scratch_free(&s);
}

/* ---- llama2.c ---- */

static void put_llama2c(vocab_bytes *b, const char *word, int64_t length)
{
    put_i32(b, 0x3f800000);
    put_i32(b, length);
    put_text(b, word);
}

static void refuse_bytes(const vocab_bytes *b, const char *text, const char *rule)
{
    vocab_refused(b->bytes, b->used, EMBLA_VOCAB_MARKED, EMBLA_ERR_FORMAT, text, rule);
}

static void words_of_llama2c(void **state)
{
    vocab_bytes b = {0};
    (void)state;
    put_i32(&b, 5);
    put_llama2c(&b, "<unk>", 5);
    put_llama2c(&b, "", 0);
    put_llama2c(&b, " he", 3);
    embla_vocab *vocab = vocab_of(b.bytes, b.used, EMBLA_VOCAB_MARKED);
    assert_int_equal(embla_vocab_count(vocab), 3);
    assert_word(vocab, 1, "");
    assert_found(vocab, " he", 2);
    embla_vocab_free(vocab);
    for (size_t cut = 1; cut < b.used; cut++) { /* at its end, or where a word ends */
        embla_vocab *shorter = NULL;
        embla_status status = vocab_read(b.bytes, b.used - cut, EMBLA_VOCAB_MARKED, &shorter);
        bool whole = cut == 11 || cut == 19;
        assert_int_equal(status, whole ? EMBLA_OK : EMBLA_ERR_FORMAT);
        embla_vocab_free(shorter);
    }
    b.used -= 4;
    refuse_bytes(&b, "the length of a word at byte 29 needs 4 bytes, but only 3", "(C2)");
    put_end(&b);
}

static void rule_l3_lengths_of_llama2c_are_in_range(void **state)
{
    const int64_t wrong[] = {-1, 6, INT32_MIN, INT32_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        vocab_bytes b = {0};
        put_i32(&b, 5);
        put_llama2c(&b, "abc", 3);
        put_llama2c(&b, "abc", 3);
        put_llama2c(&b, "abcdefghij", wrong[i]);
        refuse_bytes(&b, "the word of token 2 has", "(L3)");
        put_end(&b);
    }
    for (size_t i = 0; i < 3; i++) { /* the reader itself: such a file is not taken for one */
        const int64_t most[] = {0, -1, (1 << 20) + 1};
        embla_vocab vocab = {.source = SHOWN};
        embla_map *map = NULL;
        vocab_bytes b = {0};
        put_i32(&b, most[i]);
        put_llama2c(&b, "", 0);
        assert_ok(embla_map_bytes(b.bytes, b.used, SHOWN, &map));
        assert_status(embla_vocab_llama2c(map, &vocab), EMBLA_ERR_FORMAT);
        assert_error_has("(L3)");
        refuse_bytes(&b, "not a vocabulary", "(C15)");
        embla_map_free(map);
        put_end(&b);
    }
}

/* ---- llm.c ---- */

static void put_llmc(vocab_bytes *b, int64_t version, int64_t count)
{
    put_i32(b, 20240328);
    put_i32(b, version);
    put_i32(b, count);
    put_i32(b, 50256);
    for (int i = 4; i < 256; i++) put_i32(b, 0);
}

static void rule_l2_versions_1_and_2_are_read_others_refused(void **state)
{
    (void)state;
    for (int64_t version = -1; version <= 4; version++) {
        vocab_bytes b = {0};
        put_llmc(&b, version, 3);
        put_text(&b, "\x01!\x04 the\x02\xff\xfe");
        if (version == 1 || version == 2) {
            embla_vocab *vocab = vocab_of(b.bytes, b.used, EMBLA_VOCAB_MARKED);
            assert_int_equal(embla_vocab_count(vocab), 3);
            assert_word(vocab, 0, "!");
            assert_word(vocab, 1, " the");
            assert_word(vocab, 2, "\xff\xfe");
            embla_vocab_free(vocab);
        } else {
            refuse_bytes(&b, "1 and 2 are (L2)", "(L2)");
        }
        put_end(&b);
    }
}

static void rule_l2_a_word_of_no_bytes_is_refused(void **state)
{
    vocab_bytes b = {0};
    (void)state;
    put_llmc(&b, 2, 2);
    put(&b, "\x01!\0 ", 4);
    refuse_bytes(&b, "token 1 of 2 is empty", "(L2)");
    put_end(&b);
}

static void rule_l2_the_file_ends_with_its_last_word(void **state)
{
    vocab_bytes b = {0};
    (void)state;
    put_llmc(&b, 2, 2);
    put_text(&b, "\x01!\x02"
                 "ab");
    for (size_t size = 4; size < b.used; size++)
        vocab_refused(b.bytes, size, EMBLA_VOCAB_MARKED, EMBLA_ERR_FORMAT, "", ")");
    b.used--;
    refuse_bytes(&b, "a word at byte 1027 needs 2 bytes, but only 1", "(C2)");
    put_text(&b, "bc");
    refuse_bytes(&b, "after its 2 words 1 bytes are left", "(L2)");
    put_end(&b);
}

static void rule_l3_a_count_of_words_that_cannot_be_is_refused(void **state)
{
    const int64_t wrong[] = {0, -1, INT32_MIN, INT32_MAX, 3};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        vocab_bytes b = {0};
        put_llmc(&b, 1, wrong[i]);
        put_text(&b, "\x01!\x02"
                     "ab");
        refuse_bytes(&b, "words, but 5 bytes are left", "(L3)");
        put_end(&b);
    }
}

/* ---- SentencePiece ---- */

static void put_field(vocab_bytes *b, int tag, const void *bytes, size_t count)
{
    put(b, &(char){(char)tag}, 1);
    put(b, &(char){(char)count}, 1);
    put(b, bytes, count);
}

static void put_piece(vocab_bytes *b, const char *piece)
{
    vocab_bytes message = {0};
    put_field(&message, 1 << 3 | 2, piece, strlen(piece));
    put_text(&message, "\x15"
                       "abcd");         /* its score */
    put_text(&message, "\x18\x81\x02"); /* its type, of two bytes */
    put_field(b, 1 << 3 | 2, message.bytes, message.used);
    put_end(&message);
}

static void words_of_sentencepiece(void **state)
{
    vocab_bytes b = {0};
    (void)state;
    put_piece(&b, "<unk>");
    put_field(&b, 2 << 3 | 2, "trainer", 7);
    put_piece(&b, "\xe2\x96\x81the");
    put_text(&b, "\x31"
                 "eight by");                     /* field 6, eight bytes */
    put_text(&b, "\xb8\xff\x7f\xff\xff\xff\x07"); /* a field of a large number, a number */
    put_text(&b, "\x1d"
                 "four");
    put_piece(&b, "");
    embla_vocab *vocab = vocab_of(b.bytes, b.used, EMBLA_VOCAB_MARKED);
    assert_int_equal(embla_vocab_count(vocab), 3);
    assert_word(vocab, 0, "<unk>");
    assert_word(vocab, 2, "");
    assert_found(vocab, " the", 1);
    embla_vocab_free(vocab);
    for (size_t cut = 1; cut < b.used - 16; cut++) { /* no byte past the end is touched */
        vocab = NULL;
        embla_status status = vocab_read(b.bytes, b.used - cut, EMBLA_VOCAB_MARKED, &vocab);
        assert_true(status == EMBLA_OK || status == EMBLA_ERR_FORMAT);
        embla_vocab_free(vocab);
    }
    put_end(&b);
}

static void rule_c2_broken_sentencepiece_is_refused(void **state)
{
    static const struct {
        const char *bytes, *says;
    } wrong[] = {
        {"\x0b", "expected a field of a"},                                     /* a group */
        {"\x02\x01x", "expected a field of a"},                                /* field 0 */
        {"\x0e", "expected a field of a"},                                     /* wire type 6 */
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", "expected a field of a"}, /* above 2^64 */
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "expected a field of a"},
        {"\x92\x80\x80\x80\x80\x80\x80\x80\x80\x02\x01x",
         "expected a field of a"}, /* 18, cut to 64 bits */
        {"\x92\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x01x", "expected a field of a"},
        {"\x12\x05"
         "abcd",
         "a field at byte"}, /* longer than the file */
        {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", "a field at byte"},
        {"\x0a\x05"
         "abcd",
         "a piece at byte"},
        {"\x08\x05", "a piece is not a message"},
        {"\x0a\x02\x18\x01", "has no piece"},
        {"\x0a\x02\x08\x01", "has no piece"},  /* a number in place of the piece */
        {"\x0a\x03\x0a\x02x", "has no piece"}, /* longer than the message */
        {"\x0a\x04\x0a\x01x\x80", "has no piece"},
        {"\x0a\x06\x0a\x01x\x15"
         "ab",
         "has no piece"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        vocab_bytes b = {0};
        put_piece(&b, "<unk>");
        put_text(&b, wrong[i].bytes);
        refuse_bytes(&b, wrong[i].says, "(C2)");
        put_end(&b);
    }
}

/* ---- files told apart ---- */

static void files_are_told_apart_by_their_bytes(void **state)
{
    static const char *const text[] = {
        "the\na\n", "[PAD]\n[UNK]\n",   "{\nx\n",          "{}x\n", "\n!\n\n", "\n\n\n\n\n\n",
        "\nab\nc",  "#embla-vocab 2\n", "#embla-vocab 11", "[\n",   "{",       "\n\x05\n"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(text); i++) {
        if (text[i][1] == '}') continue; /* an object and more: JSON, and refused as such */
        vocab_refused(text[i], strlen(text[i]), EMBLA_VOCAB_MARKED, EMBLA_ERR_FORMAT,
                      "not a vocabulary of a supported format", "(C15)");
        embla_vocab_free(vocab_of_text(text[i]));
    }
    /* A list of words that looks like JSON: its name decides. */
    embla_vocab *vocab = lines_of("{\n\"\n:\n}\n");
    assert_int_equal(embla_vocab_count(vocab), 4);
    embla_vocab_free(vocab);
    refuse("{\n\"\n:\n}\n", "JSON, byte", "(T1)");
    assert_int_equal(embla_vocab_hint_of("a/vocab.txt"), EMBLA_VOCAB_LINES);
    assert_int_equal(embla_vocab_hint_of(".txt"), EMBLA_VOCAB_LINES);
    assert_int_equal(embla_vocab_hint_of("txt"), EMBLA_VOCAB_ANY);
    assert_int_equal(embla_vocab_hint_of("vocab.txt.json"), EMBLA_VOCAB_ANY);
}

static void a_gguf_without_tokens_has_no_words(void **state)
{
    static const char bytes[] = "GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    embla_vocab *vocab = NULL;
    size_t live = embla_mem_live();
    (void)state;
    assert_status(vocab_read(bytes, sizeof bytes, EMBLA_VOCAB_ANY, &vocab), EMBLA_ERR_NOT_FOUND);
    assert_error_has("tokenizer.ggml.tokens");
    assert_status(vocab_read(bytes, sizeof bytes - 1, EMBLA_VOCAB_ANY, &vocab), EMBLA_ERR_FORMAT);
    assert_int_equal(embla_mem_live(), live);
}

/* ---- a system that fails ---- */

/* A GGUF file of two tokens. */
static void put_gguf(vocab_bytes *b)
{
    static const char key[] = "tokenizer.ggml.tokens";
    put_text(b, "GGUF");
    put_i32(b, 3);
    for (int i = 0; i < 2; i++) put_i32(b, 0);
    put_i32(b, 1);
    put_i32(b, 0);
    put_i32(b, sizeof key - 1);
    put_i32(b, 0);
    put_text(b, key);
    put_i32(b, 9);
    put_i32(b, 8);
    put_i32(b, 2);
    put_i32(b, 0);
    for (int i = 0; i < 2; i++) {
        put_i32(b, 1);
        put_i32(b, 0);
        put_text(b, i ? "b" : "a");
    }
}

enum { KINDS = 7 };

static void put_kind(vocab_bytes *b, int kind)
{
    switch (kind) {
    case 0:
        put_text(b,
                 "{\"added_tokens\":[{\"id\":9,\"content\":\"<\\u0041>\"}],\"model\":{\"vocab\":{"
                 "\"k\":0,\"a\":8,\"b\":1,\"c\":2,\"d\":3,\"e\":4,\"f\":5,\"g\":6,\"h\":7}}}");
        break;
    case 1:
        put_text(b, "[\"a\",\"b\\n\"]");
        break;
    case 2:
        put_text(b, "#embla-vocab 1\na\nb\\n");
        break;
    case 3:
        put_i32(b, 3);
        put_llama2c(b, "a", 1);
        put_llama2c(b, "b", 1);
        break;
    case 4:
        put_llmc(b, 1, 2);
        put_text(b, "\x01"
                    "a\x01"
                    "b");
        break;
    case 5:
        put_piece(b, "a");
        put_piece(b, "b");
        break;
    default:
        put_gguf(b);
    }
}

static void an_allocation_that_fails_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2 * KINDS; kind++) {
        vocab_bytes b = {0};
        size_t failures = 0, live = embla_mem_live();
        put_kind(&b, kind / 2);
        for (size_t n = 1;; n++) {
            embla_vocab *vocab = NULL;
            int32_t token = 0;
            embla_mem_fail(n, kind % 2 == 1);
            embla_status status = vocab_read(b.bytes, b.used, EMBLA_VOCAB_MARKED, &vocab);
            if (status == EMBLA_OK) status = embla_vocab_find(vocab, " x", 2, &token);
            embla_mem_fail(0, false);
            embla_vocab_free(vocab);
            assert_int_equal(embla_mem_live(), live);
            if (status == EMBLA_ERR_NOT_FOUND) break;
            assert_status(status, EMBLA_ERR_MEMORY);
            failures++;
        }
        assert_true(failures >= 5); /* map, handle, arena, index, sorting, .. */
        put_end(&b);
    }
}

static void a_file_call_that_fails_is_reported_and_leaks_nothing(void **state)
{
    scratch s;
    (void)state;
    scratch_new(&s);
    for (int kind = 0; kind < 2 * KINDS; kind++) {
        vocab_bytes b = {0};
        size_t failures = 0, live = embla_mem_live(), files = embla_io_live();
        put_kind(&b, kind / 2);
        scratch_write(scratch_path(&s, "x"), b.bytes, b.used);
        for (size_t n = 1;; n++) {
            embla_vocab *vocab = NULL;
            embla_io_fail(n, kind % 2 == 1, EMBLA_SYSTEM_OTHER);
            embla_status status = embla_vocab_open_file(scratch_path(&s, "x"), &vocab);
            embla_io_fail(0, false, 0);
            embla_vocab_free(vocab);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), files);
            if (status == EMBLA_OK) break;
            assert_status(status, EMBLA_ERR_IO);
            assert_null(vocab);
            failures++;
        }
        assert_true(failures >= 4); /* open, stat, map, read */
        embla_io_short(3);          /* and reads that give little at a time */
        embla_vocab *vocab = NULL;
        assert_ok(embla_vocab_open_file(scratch_path(&s, "x"), &vocab));
        embla_io_short(0);
        assert_found(vocab, "a", kind / 2 == 0 ? 8 : 0);
        embla_vocab_free(vocab);
        put_end(&b);
    }
    embla_vocab *vocab = NULL;
    assert_status(embla_vocab_open_file(scratch_path(&s, "y"), &vocab), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_vocab_open_file(s.folder, &vocab), EMBLA_ERR_UNSUPPORTED);
    scratch_free(&s);
}

static void writing_that_fails_is_reported(void **state)
{
    const embla_name names[] = {{"a\n", 2, 0}, {NULL, 0, 0}};
    scratch s;
    size_t failures = 0, live = embla_mem_live();
    (void)state;
    scratch_new(&s);
    for (size_t n = 1;; n++) {
        embla_durable *out = NULL;
        embla_io_fail(n, true, EMBLA_SYSTEM_NO_SPACE);
        embla_status status = embla_durable_open(scratch_path(&s, "x"), &out);
        if (status == EMBLA_OK) {
            status = embla_vocab_write(out, names, 2);
            if (status == EMBLA_OK)
                status = embla_durable_commit(out);
            else
                embla_durable_abandon(out);
        }
        embla_io_fail(0, false, 0);
        assert_int_equal(embla_mem_live(), live);
        if (status == EMBLA_OK) break;
        assert_status(status, EMBLA_ERR_IO);
        failures++;
    }
    assert_true(failures > 0);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_is_a_word),
        cmocka_unit_test(rule_t1_text_is_utf8_without_zeros),
        cmocka_unit_test(rule_t1_a_word_above_1_mib_is_refused),
        cmocka_unit_test(rule_v1_our_own_text_has_escapes),
        cmocka_unit_test(what_is_written_reads_back_whatever_the_bytes),
        cmocka_unit_test(words_of_llama2c),
        cmocka_unit_test(rule_l3_lengths_of_llama2c_are_in_range),
        cmocka_unit_test(rule_l2_versions_1_and_2_are_read_others_refused),
        cmocka_unit_test(rule_l2_a_word_of_no_bytes_is_refused),
        cmocka_unit_test(rule_l2_the_file_ends_with_its_last_word),
        cmocka_unit_test(rule_l3_a_count_of_words_that_cannot_be_is_refused),
        cmocka_unit_test(words_of_sentencepiece),
        cmocka_unit_test(rule_c2_broken_sentencepiece_is_refused),
        cmocka_unit_test(files_are_told_apart_by_their_bytes),
        cmocka_unit_test(a_gguf_without_tokens_has_no_words),
        cmocka_unit_test(an_allocation_that_fails_is_reported_and_leaks_nothing),
        cmocka_unit_test(a_file_call_that_fails_is_reported_and_leaks_nothing),
        cmocka_unit_test(writing_that_fails_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
