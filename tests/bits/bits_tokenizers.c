/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers of every kind: trained on a text, then used with offsets, as a batch, and back to
 * text. Also the words of a table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "embla_text.h"
#include "embla_train.h"

static const char *const samples[] = {
    "Le roi et la reine.",
    "an manna 12,345 b\xc3\xa9 ka",
    "  two  spaces\tand\nlines ",
    "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e \xf0\x9f\x99\x82 \xff broken",
    "",
};

static void note_tokens(const embla_tokenizer *tokenizer, const char *name)
{
    const embla_tokenize_options options = {
        .add_special = true, .offsets = true, .threads = bits_threads};
    size_t lengths[COUNT_OF(samples)];
    embla_tokenized *tokenized = NULL;
    for (size_t i = 0; i < COUNT_OF(samples); i++) lengths[i] = strlen(samples[i]);
    const embla_texts texts = {.texts = samples, .lengths = lengths, .count = COUNT_OF(samples)};
    OK(embla_tokenized_new(tokenizer, &tokenized));
    OK(embla_tokenize_batch(tokenized, &texts, &options));
    size_t count = embla_tokenized_count(tokenized);
    int32_t *tokens = bits_room(count * sizeof *tokens), *spans = bits_room(2 * count * 4);
    const embla_text_span *offsets = embla_tokenized_offsets(tokenized);
    for (size_t i = 0; i < count; i++) {
        tokens[i] = embla_tokenized_tokens(tokenized)[i];
        spans[2 * i] = (int32_t)offsets[i].begin;
        spans[2 * i + 1] = (int32_t)offsets[i].end;
    }
    bits_note_i32(tokens, count, "tokenizer.%s.tokens", name);
    bits_note_i32(spans, 2 * count, "tokenizer.%s.offsets", name);
    const char *text;
    size_t length;
    OK(embla_detokenize(tokenized, tokens, count, true, &text, &length));
    bits_note(text, length, "tokenizer.%s.text", name);
    embla_tokenized_free(tokenized);
    free(spans);
    free(tokens);
}

static void note_tokenizer(embla_tokenizer_kind kind, bool lowercase, const char *name)
{
    static const char *const special[] = {"<s>", "</s>"};
    const embla_tokenizer_train_options options = {.kind = kind,
                                                   .max_tokens =
                                                       kind == EMBLA_TOKENIZER_BPE ? 320 : 180,
                                                   .special = special,
                                                   .special_count = 2,
                                                   .lowercase = lowercase,
                                                   .threads = bits_threads};
    embla_tokenizer *tokenizer = NULL;
    OK(embla_tokenizer_train(bits_path("train.txt"), bits_path("tokenizer.json"), &options, NULL));
    bits_note_file("tokenizer.json", "tokenizer.%s.file", name);
    OK(embla_tokenizer_open_file(bits_path("tokenizer.json"), &tokenizer));
    note_tokens(tokenizer, name);
    embla_tokenizer_free(tokenizer);
    if (kind == EMBLA_TOKENIZER_BPE) {
        char compiled[64];
        OK(embla_tokenizer_compile(bits_path("tokenizer.json"), bits_path("tokenizer.bin")));
        OK(embla_tokenizer_open_file(bits_path("tokenizer.bin"), &tokenizer));
        (void)snprintf(compiled, sizeof compiled, "%s.compiled", name);
        note_tokens(tokenizer, compiled);
        embla_tokenizer_free(tokenizer);
        remove(bits_path("tokenizer.bin"));
    }
    remove(bits_path("tokenizer.json"));
}

/* A tokenizer of WordPiece with the normalizer and the template of BERT. */
static void note_bert(void)
{
    static const char file[] =
        "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":["
        "{\"id\":1,\"content\":\"[CLS]\",\"special\":true,\"normalized\":false},"
        "{\"id\":2,\"content\":\"[SEP]\",\"special\":true,\"normalized\":false}],"
        "\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
        "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},"
        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"post_processor\":{"
        "\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",2],\"cls\":[\"[CLS]\",1]},"
        "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"
        "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\","
        "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,"
        "\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,\"le\":3,\"roi\":4,\"et\":5,\"la\":6,"
        "\"re\":7,\"##ine\":8,\".\":9,\"an\":10,\"man\":11,\"##na\":12,\"be\":13,\"##ka\":14,"
        "\"1\":15,\"##2\":16,\",\":17,\"##345\":18,\"3\":19,\"##45\":20,\"two\":21}}}";
    embla_tokenizer *tokenizer = NULL;
    OK(embla_tokenizer_open_bytes(file, sizeof file - 1, "bert", &tokenizer));
    note_tokens(tokenizer, "bert");
    embla_tokenizer_free(tokenizer);
}

void bits_tokenizers(void)
{
    char *text = bits_text(81, 3000, 11);
    bits_write_text("train.txt", text);
    note_tokenizer(EMBLA_TOKENIZER_BPE, false, "bpe");
    note_tokenizer(EMBLA_TOKENIZER_WORDPIECE, true, "wordpiece");
    note_tokenizer(EMBLA_TOKENIZER_WORDLEVEL, false, "wordlevel");
    note_tokenizer(EMBLA_TOKENIZER_UNIGRAM, false, "unigram");
    note_bert();
    remove(bits_path("train.txt"));
    free(text);
}
