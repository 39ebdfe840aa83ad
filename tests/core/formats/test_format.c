/* SPDX-License-Identifier: Apache-2.0 */
/* Whose file is this: what is named by mistake is called by its name, all else is shown by its
 * first bytes, and the formats that are read are listed each time (rule C15).
 */
#include "check.h"

#include "formats/format.h"

#define READ_HERE                                                                                  \
    "gguf, npy, fasttext, llm.c, safetensors, llama2.c, word2vec-bin, word2vec, glove (C15)"

static void is_refused(const void *bytes, size_t size, const char *sentence)
{
    embla_map *map = NULL;
    const embla_format *format = NULL;
    assert_ok(embla_map_bytes(bytes, size, "file", &map));
    assert_status(embla_format_of(map, &format), EMBLA_ERR_FORMAT);
    assert_null(format);
    assert_error_has(sentence);
    assert_error_has(READ_HERE);
    embla_map_free(map);
}

#define REFUSED(bytes, sentence) is_refused(bytes, sizeof(bytes) - 1, "file: this is " sentence ";")

static void rule_c15_documents_are_named(void **state)
{
    (void)state;
    REFUSED("%PDF-1.7\n%\xe2\xe3", "a PDF document");
    REFUSED("\x89PNG\r\n\x1a\n", "a PNG image");
    REFUSED("<!DOCTYPE html>\n<html>", "a web page");
    REFUSED("\n <HTML lang=\"en\">", "a web page");
    REFUSED("\xef\xbb\xbf<!doctype HTML>", "a web page");
    REFUSED("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
            "a Git LFS pointer, download the file itself (git lfs pull)");
}

static void rule_c15_words_and_configurations_are_named(void **state)
{
    (void)state;
    REFUSED("{\"model_type\": \"llama\", \"vocab_size\": 32000}",
            "JSON, a tokenizer or a configuration without weights");
    REFUSED("\n[1, 2]", "JSON, a tokenizer or a configuration without weights");
    REFUSED("\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\2\x0a\x0c\x0a\3<s>\x15\0\0\0\0\x18\3",
            "a SentencePiece model, which has words but no weights");
}

static void rule_c15_a_text_is_no_table(void **state)
{
    (void)state;
    REFUSED("nothing here",
            "a text, not a table; embla words and embla train learn a table from a text");
    REFUSED("philip\nzo\xc3\xab\n",
            "a text, not a table; embla words and embla train learn a table from a text");
    is_refused("philip", 6, "unknown format: 6 bytes"); /* one word may be anything */
}

static void rule_c15_what_is_not_known_is_shown_by_its_bytes(void **state)
{
    (void)state;
    is_refused("nothing\1here", 12,
               "file: unknown format: 12 bytes that begin with 6e 6f 74 68 69 6e 67 01; "
               "supported formats: ");
    is_refused("nothing here \xff\xfe\xff\xfe", 17, "unknown format: 17 bytes");      /* no UTF-8 */
    is_refused("{\1\2\3", 4, "unknown format: 4 bytes that begin with 7b 01 02 03;"); /* no text */
    is_refused("BZ", 2, "unknown format: 2 bytes that begin with 42 5a;");
    is_refused("<htm", 4, "unknown format: 4 bytes that begin with 3c 68 74 6d;");
    is_refused("", 0, "unknown format: 0 bytes that begin with ;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_c15_documents_are_named),
        cmocka_unit_test(rule_c15_words_and_configurations_are_named),
        cmocka_unit_test(rule_c15_a_text_is_no_table),
        cmocka_unit_test(rule_c15_what_is_not_known_is_shown_by_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
