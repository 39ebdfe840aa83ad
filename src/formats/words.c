/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a checkpoint's rows: from the file itself where it has them, else from what
 * lies beside it, in an order that goes from what surely belongs to it to what may.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "files/io.h"
#include "formats/checkpoint.h"
#include "formats/gguf.h"
#include "formats/vocab.h"

/* A file of the checkpoint's folder; EMBLA_ERR_NOT_FOUND if there is none. */
static embla_status beside(const embla_checkpoint *cp, const char *name, embla_vocab **out)
{
    embla_map *map = NULL;
    EMBLA_TRY(embla_map_open(cp->folder, name, name, true, &map));
    /* nothing but a .txt is taken for lines of words: not a web page called tokenizer.json */
    bool lines = embla_vocab_hint_of(name) == EMBLA_VOCAB_LINES;
    embla_status status =
        embla_vocab_read(map, name, lines ? EMBLA_VOCAB_LINES : EMBLA_VOCAB_MARKED, out);
    embla_map_free(map);
    return status;
}

/* llama2.c's tokenizer has no fixed name: the only file tok*.bin, with a word for each row. */
typedef struct {
    char name[256];
    size_t count;
} found;

static embla_status look(void *context, const char *name)
{
    found *f = context;
    size_t length = strlen(name);
    if (strncmp(name, "tok", 3) != 0 || length < 7 || length >= sizeof f->name ||
        strcmp(name + length - 4, ".bin") != 0)
        return EMBLA_OK;
    memcpy(f->name, name, length + 1);
    f->count++;
    return EMBLA_OK;
}

static embla_status llama2c_words(const embla_checkpoint *cp, embla_vocab **out)
{
    found f = {.count = 0};
    embla_vocab *vocab = NULL;
    EMBLA_TRY(embla_io_list(cp->folder, cp->folder_name, look, &f));
    if (f.count != 1)
        return embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s: %zu files tok*.bin beside it, not 1",
                          cp->shown, f.count);
    EMBLA_TRY(beside(cp, f.name, &vocab));
    if (embla_vocab_end(vocab) != (int64_t)cp->entries[0].shape[0]) {
        embla_status status = embla_fail(
            EMBLA_ERR_NOT_FOUND, "%.128s has %" PRId64 " words, and the table %" PRIu64 " rows",
            f.name, embla_vocab_end(vocab), cp->entries[0].shape[0]);
        embla_vocab_free(vocab);
        return status;
    }
    *out = vocab;
    return EMBLA_OK;
}

embla_status embla_vocab_open(const embla_checkpoint *cp, embla_vocab **out)
{
    /* The last: variants of one model in folders of their own share what lies above them. */
    static const char *const names[] = {"tokenizer.json", "vocab.json", "vocab.txt",
                                        "tokenizer.bin", "../tokenizer.json"};
    char own[512];
    if (!cp || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_vocab_open: %s is NULL",
                          cp ? "out" : "the checkpoint");
    const embla_directory *first = &cp->shards[0].directory;
    if (first->label_count > 0)
        return embla_vocab_of_names(first->labels, first->label_count, "the file itself", out);
    if (cp->format == &embla_format_gguf && embla_gguf_tokens(first) > 0)
        return embla_vocab_of_gguf(cp->shards[0].map, first, "tokenizer.ggml.tokens", out);
    embla_status status = EMBLA_ERR_NOT_FOUND;
    int length = cp->stem ? snprintf(own, sizeof own, "%s.vocab.txt", cp->stem) : 0;
    if (length > 0 && (size_t)length < sizeof own) status = beside(cp, own, out);
    if (status != EMBLA_ERR_NOT_FOUND) return status;
    if (cp->format == &embla_format_llama2c) status = llama2c_words(cp, out);
    size_t places = cp->config ? 5 : 4;
    if (cp->format->one_table) places = 0; /* a vector file brings its own words or none */
    for (size_t i = 0; status == EMBLA_ERR_NOT_FOUND && i < places; i++)
        status = beside(cp, names[i], out);
    if (status != EMBLA_ERR_NOT_FOUND) return status;
    return embla_fail(EMBLA_ERR_NOT_FOUND,
                      "%.200s: no words for its rows, neither in it nor beside it "
                      "(tokenizer.json, vocab.json, vocab.txt, %.100s.vocab.txt)",
                      cp->shown, cp->stem ? cp->stem : "NAME");
}
