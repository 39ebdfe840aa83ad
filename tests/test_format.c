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

static void rule_c15_compressed_files_are_named(void **state)
{
    (void)state;
    REFUSED("\xfd"
            "7zXZ\0\0\4",
            "compressed (xz): unpack it first");
    REFUSED("\x1f\x8b\x08\0\0\0\0\0", "compressed (gzip): unpack it first");
    REFUSED("\x28\xb5\x2f\xfd\x04\0", "compressed (zstd): unpack it first");
    REFUSED("BZh91AY&SY", "compressed (bzip2): unpack it first");
}

static void rule_c15_documents_are_named(void **state)
{
    (void)state;
    REFUSED("%PDF-1.7\n%\xe2\xe3", "a PDF document");
    REFUSED("\x89PNG\r\n\x1a\n", "a picture (PNG)");
    REFUSED("<!DOCTYPE html>\n<html>", "a web page");
    REFUSED("\n <HTML lang=\"en\">", "a web page");
    REFUSED("\xef\xbb\xbf<!doctype HTML>", "a web page");
    REFUSED("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
            "a Git LFS pointer: the file itself was not downloaded");
}

static void rule_c15_words_and_configurations_are_named(void **state)
{
    (void)state;
    REFUSED("{\"model_type\": \"llama\", \"vocab_size\": 32000}",
            "JSON: a tokenizer or configuration, not weights");
    REFUSED("\n[1, 2]", "JSON: a tokenizer or configuration, not weights");
    REFUSED("\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\2\x0a\x0c\x0a\3<s>\x15\0\0\0\0\x18\3",
            "a SentencePiece model: words, not weights");
}

static void rule_c15_what_is_not_known_is_shown_by_its_bytes(void **state)
{
    (void)state;
    is_refused("nothing here", 12,
               "file: its 12 bytes, beginning 6e 6f 74 68 69 6e 67 20 are of no format that is "
               "read here; these are: ");
    is_refused("{\1\2\3", 4, "file: its 4 bytes, beginning 7b 01 02 03 are"); /* no text */
    is_refused("BZ", 2, "file: its 2 bytes, beginning 42 5a are");            /* cut short */
    is_refused("<htm", 4, "file: its 4 bytes, beginning 3c 68 74 6d are");
    is_refused("", 0, "file: its 0 bytes, beginning are");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_c15_compressed_files_are_named),
        cmocka_unit_test(rule_c15_documents_are_named),
        cmocka_unit_test(rule_c15_words_and_configurations_are_named),
        cmocka_unit_test(rule_c15_what_is_not_known_is_shown_by_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
