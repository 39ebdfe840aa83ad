/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a tokenizer.json of the words of a table: white space separates words, and a word that the
 * table does not have is an error that names it.
 */
#include "core/word_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json_text.h"
#include "base/utf8.h"

#include "core/model.h"
#include "core/out.h"
#include "host/host.h"

static void write_file(void *to, const char *bytes, size_t length)
{
    (void)fwrite(bytes, 1, length, to);
}

/* Writes the words with their tokens. Of equal words the first counts; words that are not UTF-8 are
 * left out, because a text never has them. */
static void write_words(const embla_vocab *vocab, const embla_json_sink *sink)
{
    size_t count;
    const char *gap = "";
    const embla_word *words = embla_vocab_words(vocab, &count);
    for (size_t i = 0; i < count; i++) {
        int32_t first = 0;
        char number[24];
        if (embla_utf8_valid(words[i].bytes, words[i].length) != words[i].length ||
            embla_vocab_find(vocab, words[i].bytes, words[i].length, &first) != EMBLA_OK ||
            first != words[i].token)
            continue;
        embla_json_write(sink, gap);
        (void)embla_json_write_string(sink, words[i].bytes, words[i].length, false);
        (void)snprintf(number, sizeof number, ":%d", (int)first);
        embla_json_write(sink, number);
        gap = ",";
    }
}

/* The bytes of the tokenizer.json; the caller frees them. NULL if there is no memory. */
static char *make_json(const embla_vocab *vocab, size_t *length)
{
    char *json = NULL;
    FILE *file = cli_text_open(&json, length);
    if (!file) return NULL;
    const embla_json_sink sink = {.write = write_file, .to = file};
    embla_json_write(&sink, "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,"
                            "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},"
                            "\"post_processor\":null,\"decoder\":null,"
                            "\"model\":{\"type\":\"WordLevel\",\"vocab\":{");
    write_words(vocab, &sink);
    embla_json_write(&sink, "},\"unk_token\":\"<unk>\"}}");
    if (cli_text_close(file, &json, length)) return json;
    free(json);
    return NULL;
}

bool cli_word_tokenizer(const cli_args *args, const char *path, embla_tokenizer **out)
{
    embla_checkpoint *checkpoint = NULL;
    embla_vocab *vocab = NULL;
    char *json = NULL, words[CLI_CELL];
    size_t length = 0;
    bool good = cli_open_path(path, NULL, &checkpoint) == EMBLA_OK &&
                embla_tokenizer_open(checkpoint, out) == EMBLA_ERR_UNSUPPORTED &&
                embla_vocab_open(checkpoint, &vocab) == EMBLA_OK && embla_vocab_count(vocab) > 0 &&
                (json = make_json(vocab, &length)) != NULL &&
                embla_tokenizer_open_bytes(json, length, path, out) == EMBLA_OK;
    if (good && !cli_args_flag(args, "quiet"))
        cli_complain("note: %s has no tokenizer; texts are cut at spaces into its %s", path,
                     cli_plural(embla_vocab_count(vocab), "word", words));
    free(json);
    embla_vocab_free(vocab);
    embla_checkpoint_free(checkpoint);
    return good;
}
