/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the words of a checkpoint's rows: in the file itself if it has them, otherwise in files
 * beside it. Files that certainly belong to the checkpoint are tried first.
 */
#include <stdio.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/vocab.h"
#include "files/io.h"
#include "formats/gguf.h"

/* Reads the vocabulary from a file in the checkpoint's folder; EMBLA_ERR_NOT_FOUND if there is no
 * such file. */
static embla_status read_beside(const embla_checkpoint *cp, const char *name, embla_vocab **out)
{
    embla_map *map = NULL;
    EMBLA_TRY(embla_map_open(cp->folder, name, name, true, &map));
    /* only a .txt may be plain lines of words: a tokenizer.json may turn out to be a web page */
    bool lines = embla_vocab_hint_of(name) == EMBLA_VOCAB_LINES;
    embla_status status =
        embla_vocab_read(map, name, lines ? EMBLA_VOCAB_LINES : EMBLA_VOCAB_MARKED, out);
    embla_map_free(map);
    return status;
}

/* llama2.c's tokenizer has no fixed name: it is the only file tok*.bin, with a word for each row.
 */
typedef struct {
    char name[256];
    size_t count;
} candidates;

static embla_status count_tokenizer(void *context, const char *name)
{
    candidates *f = context;
    size_t length = strlen(name);
    if (strncmp(name, "tok", 3) != 0 || length < 7 || length >= sizeof f->name ||
        strcmp(name + length - 4, ".bin") != 0)
        return EMBLA_OK;
    memcpy(f->name, name, length + 1);
    f->count++;
    return EMBLA_OK;
}

static embla_status read_llama2c(const embla_checkpoint *cp, embla_vocab **out)
{
    candidates f = {.count = 0};
    embla_vocab *vocab = NULL;
    EMBLA_TRY(embla_io_list(cp->folder, cp->folder_name, count_tokenizer, &f));
    if (f.count != 1)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "%.200s: its folder has %zu files tok*.bin; exactly 1 is needed",
                          cp->shown, f.count);
    EMBLA_TRY(read_beside(cp, f.name, &vocab));
    if (embla_vocab_end(vocab) != (int64_t)cp->entries[0].shape[0]) {
        embla_status status = embla_fail(
            EMBLA_ERR_NOT_FOUND, "%.128s has %" PRId64 " words, but the table has %" PRIu64 " rows",
            f.name, embla_vocab_end(vocab), cp->entries[0].shape[0]);
        embla_vocab_free(vocab);
        return status;
    }
    *out = vocab;
    return EMBLA_OK;
}

embla_status embla_vocab_open(const embla_checkpoint *cp, embla_vocab **out)
{
    /* The last one: variants of a model in subfolders share the tokenizer of their parent. */
    static const char *const names[] = {"tokenizer.json",   "vocab.json",      "vocab.txt",
                                        "tokenizer.bin",    "tokenizer.model", "spiece.model",
                                        "../tokenizer.json"};
    char own[512];
    EMBLA_NEED_OF("embla_vocab_open", "checkpoint", cp);
    EMBLA_NEED(out);
    const embla_directory *first = &cp->shards[0].directory;
    if (first->label_count > 0)
        return embla_vocab_of_names(first->labels, first->label_count, "the file itself", out);
    if (cp->format == &embla_format_gguf && embla_gguf_tokens(first) > 0)
        return embla_vocab_of_gguf(cp->shards[0].map, first, "tokenizer.ggml.tokens", out);
    embla_status status = EMBLA_ERR_NOT_FOUND;
    int length = cp->stem ? snprintf(own, sizeof own, "%s.vocab.txt", cp->stem) : 0;
    if (length > 0 && (size_t)length < sizeof own) status = read_beside(cp, own, out);
    if (status != EMBLA_ERR_NOT_FOUND) return status;
    if (cp->format == &embla_format_llama2c) status = read_llama2c(cp, out);
    size_t count = cp->config ? 7 : 6;
    if (cp->format->one_table) count = 0; /* a vector file has its own words or none */
    for (size_t i = 0; status == EMBLA_ERR_NOT_FOUND && i < count; i++)
        status = read_beside(cp, names[i], out);
    if (status != EMBLA_ERR_NOT_FOUND) return status;
    return embla_fail(EMBLA_ERR_NOT_FOUND,
                      "%.200s has no words for its rows, and there is no tokenizer.json, "
                      "vocab.json, vocab.txt or %.100s.vocab.txt beside it",
                      cp->shown, cp->stem ? cp->stem : "NAME");
}
