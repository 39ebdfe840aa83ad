/* SPDX-License-Identifier: Apache-2.0 */
/* A whole folder: config.json, weights and words together, as a user downloads them. model_files.h
 * describes the input. Promises:
 *   - every call succeeds or leaves a sentence, and in the end nothing stays allocated or open;
 *   - rows of a store are the same bytes in every placement;
 *   - n-grams name rows of their table;
 *   - what embla_convert and embla_gpt_save have written can be opened.
 */
#include "base/mem.h"
#include "embla_checkpoint.h"
#include "embla_lab.h"
#include "embla_store.h"
#include "embla_train.h"
#include "files/io.h"
#include "folder.h"
#include "model_files.h"
#include "models.h"

enum { FILES_MOST = 6, SOME = 4096 };

#define SAID(status) PROMISE((status) == EMBLA_OK || *embla_error())

/* ---- the input ---- */

/* The file at `at`: the offset of its contents and its length. False after the last. */
static bool file_at(const uint8_t *data, size_t size, size_t at, size_t *first, size_t *length)
{
    if (at >= size || size - at < MODEL_FILE_HEAD) return false;
    *first = at + MODEL_FILE_HEAD;
    *length = (size_t)(data[at + 1] | data[at + 2] << 8);
    if (*length > size - *first) *length = size - *first;
    return true;
}

static void write_files(const uint8_t *data, size_t size)
{
    size_t first, length, at = 1;
    for (int i = 0; i < FILES_MOST && file_at(data, size, at, &first, &length); i++) {
        folder_write(model_files[data[at] % MODEL_FILES], data + first, length);
        at = first + length;
    }
}

/* Changes one file and sets its length. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    size_t first = 0, length = 0, at = 1, count = 0;
    for (; file_at(data, size, at, &first, &length); at = first + length) count++;
    if (count == 0 || choose(&seed, 8) == 0) return LLVMFuzzerMutate(data, size, most);
    at = 1;
    for (uint32_t skip = choose(&seed, (uint32_t)count);; skip--, at = first + length)
        if (!file_at(data, size, at, &first, &length) || skip == 0) break;
    size_t after = size - first - length, room = most - first - after;
    if (room > 65535) room = 65535;
    if (length > room) return LLVMFuzzerMutate(data, size, most);
    uint8_t *file = (uint8_t *)block(room);
    memcpy(file, data + first, length);
    size_t changed = strstr(model_files[data[at] % MODEL_FILES], ".safetensors")
                         ? mutate_safetensors(file, length, room, &seed)
                         : LLVMFuzzerMutate(file, length, room);
    memmove(data + first + changed, data + first + length, after);
    memcpy(data + first, file, changed);
    free(file);
    data[at + 1] = (uint8_t)changed;
    data[at + 2] = (uint8_t)(changed >> 8);
    return first + changed + after;
}

/* ---- what is asked of a checkpoint ---- */

static void use_table(const embla_checkpoint *cp, const char *name)
{
    embla_table *table = NULL;
    embla_status status = embla_table_open(cp, name, NULL, &table);
    SAID(status);
    PROMISE((status == EMBLA_OK) == (table != NULL));
    int64_t rows = table ? embla_table_rows(table) : 0;
    if (rows > 0 && embla_table_dim(table) <= SOME) {
        float *out = (float *)(void *)block(2 * embla_table_dim(table) * sizeof *out);
        const int64_t ends[2] = {0, rows - 1};
        PROMISE(embla_lookup_rows(table, ends, 2, NULL, out) == EMBLA_OK);
        free(out);
    }
    embla_table_free(table);
}

static void use_tensors(const embla_checkpoint *cp)
{
    size_t count;
    const embla_tensor *tensors = embla_checkpoint_tensors(cp, &count);
    embla_tensor found;
    embla_facts facts;
    embla_tie tie;
    for (size_t i = 0; i < count; i++) {
        PROMISE(embla_checkpoint_find(cp, tensors[i].name, &found) == EMBLA_OK);
        if (i < 8) use_table(cp, tensors[i].name);
    }
    use_table(cp, NULL);
    for (int role = EMBLA_ROLE_TOKENS; role <= EMBLA_ROLE_WEIGHTS; role++)
        SAID(embla_checkpoint_role(cp, (embla_role)role, &found, NULL));
    SAID(embla_checkpoint_facts(cp, &facts));
    SAID(embla_checkpoint_tie(cp, 0, &tie));
}

static void use_words(const embla_checkpoint *cp)
{
    embla_vocab *vocab = NULL;
    size_t count = 0;
    embla_status status = embla_vocab_open(cp, &vocab);
    SAID(status);
    if (status != EMBLA_OK) return;
    const embla_word *words = embla_vocab_words(vocab, &count);
    PROMISE((int64_t)count == embla_vocab_count(vocab));
    for (size_t i = 0; i < count; i++) {
        int32_t token;
        PROMISE(words[i].token >= 0 && words[i].token < embla_vocab_end(vocab));
        SAID(embla_vocab_find(vocab, words[i].bytes, words[i].length, &token));
    }
    embla_vocab_free(vocab);
}

static void use_ngrams(const embla_checkpoint *cp)
{
    enum { LENGTH = 3 };
    embla_ngram *ngram = NULL;
    embla_ngram_info info;
    embla_status status = embla_ngram_open(cp, -1, NULL, &ngram);
    SAID(status);
    if (status != EMBLA_OK) return;
    PROMISE(embla_ngram_describe(ngram, &info) == EMBLA_OK);
    int32_t last = info.tokens > INT32_MAX ? INT32_MAX : (int32_t)(info.tokens - 1);
    if (info.rows_per_token <= SOME && info.tokens > 0) {
        const int32_t tokens[LENGTH] = {0, last, last / 2};
        int64_t *rows = (int64_t *)(void *)block(LENGTH * info.rows_per_token * sizeof *rows);
        PROMISE(embla_ngram_rows(ngram, tokens, 1, LENGTH, NULL, rows) == EMBLA_OK);
        for (size_t i = 0; i < LENGTH * info.rows_per_token; i++)
            PROMISE(rows[i] >= 0 && rows[i] < info.rows);
        free(rows);
    }
    embla_ngram_free(ngram);
}

/* The first and the last row of a store, as they are stored. False if there is no such store. */
static bool read_store(const embla_checkpoint *cp, const char *name, embla_placement placement,
                       char *out, size_t *bytes)
{
    const embla_store_options options = {
        .placement = placement, .shared_folder = folder, .shared_name = "copy"};
    const embla_store_lookup_options raw = {.raw = true};
    embla_store *store = NULL;
    embla_store_info info;
    embla_status status = embla_store_open(cp, name, -1, &options, &store);
    SAID(status);
    if (status != EMBLA_OK) return false;
    PROMISE(embla_store_describe(store, &info) == EMBLA_OK);
    const int64_t ends[2] = {0, info.rows - 1};
    *bytes = 0;
    if (info.rows > 0 && info.row_bytes <= SOME) {
        *bytes = 2 * info.row_bytes;
        PROMISE(embla_store_lookup(store, ends, 2, &raw, out) == EMBLA_OK);
    }
    if (placement == EMBLA_PLACEMENT_SHARED) PROMISE(embla_store_unshare(store) == EMBLA_OK);
    embla_store_free(store);
    return true;
}

/* Copies take longer than all else, so the input chooses whether they are made. */
static void use_store(const embla_checkpoint *cp, bool copies)
{
    static const embla_placement places[] = {EMBLA_PLACEMENT_MAPPED, EMBLA_PLACEMENT_READ,
                                             EMBLA_PLACEMENT_RAM, EMBLA_PLACEMENT_SHARED};
    size_t all = copies ? sizeof places / sizeof places[0] : 2;
    size_t count, bytes[2];
    char *rows[2] = {block(2 * SOME), block(2 * SOME)};
    const embla_tensor *tensors = embla_checkpoint_tensors(cp, &count);
    for (size_t n = 0; n < 2; n++) { /* the giant table, then the first tensor */
        const char *name = n == 1 && count > 0 ? tensors[0].name : NULL;
        if (n == 1 && !name) break;
        bool first = read_store(cp, name, places[0], rows[0], &bytes[0]);
        for (size_t i = 1; first && i < all; i++) {
            PROMISE(read_store(cp, name, places[i], rows[1], &bytes[1]));
            PROMISE(bytes[0] == bytes[1] && memcmp(rows[0], rows[1], bytes[0]) == 0);
        }
    }
    free(rows[0]);
    free(rows[1]);
}

/* ---- what is made of it ---- */

static void use_model(const embla_checkpoint *cp, bool save)
{
    embla_gpt *gpt = NULL, *again = NULL;
    embla_decoder *decoder = NULL;
    embla_checkpoint *saved = NULL;
    char path[FOLDER_PATH];
    embla_status status = embla_gpt_open(cp, &gpt);
    SAID(status);
    if (status != EMBLA_OK) return;
    embla_gpt_shape shape = {.vocab = 1};
    SAID(embla_gpt_describe(gpt, &shape));
    const int32_t tokens[2] = {0, (int32_t)(shape.vocab - 1)};
    SAID(status = embla_decoder_new(gpt, 2, &decoder));
    if (status == EMBLA_OK) SAID(embla_decoder_append(decoder, tokens, 2, NULL, NULL));
    embla_decoder_free(decoder);
    if (save) {
        PROMISE(embla_gpt_save(gpt, folder_path("saved", path), NULL) == EMBLA_OK);
        PROMISE(embla_checkpoint_open(path, NULL, &saved) == EMBLA_OK);
        PROMISE(embla_gpt_open(saved, &again) == EMBLA_OK);
        PROMISE(embla_gpt_parameters(gpt) == embla_gpt_parameters(again));
        embla_gpt_free(again);
        embla_checkpoint_free(saved);
    }
    embla_gpt_free(gpt);
}

static void use_convert(const embla_checkpoint *cp, const char *name, bool tables_only)
{
    const embla_convert_options options = {.tables_only = tables_only, .overwrite = true};
    embla_account *account = NULL;
    embla_checkpoint *written = NULL;
    char path[FOLDER_PATH];
    embla_status status = embla_convert(cp, folder_path(name, path), &options, &account);
    SAID(status);
    if (status != EMBLA_OK) return;
    embla_account_free(account);
    status = embla_checkpoint_open(path, NULL, &written);
    if (status != EMBLA_OK) fprintf(stderr, "%s\n", embla_error());
    PROMISE(status == EMBLA_OK);
    embla_checkpoint_free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const outputs[] = {"out.safetensors", "out.gguf", "out.npy", "out.vec"};
    size_t memory = embla_mem_live(), files = embla_io_live();
    embla_checkpoint *cp = NULL;
    folder_make("model");
    folder_clear(folder, false);
    uint8_t choice = size > 0 ? data[0] : 0;
    if (size > 0) write_files(data, size);
    const embla_open_options options = {.lenient = choice & 1, .copy = choice & 2};
    embla_status status = embla_checkpoint_open(folder, &options, &cp);
    SAID(status);
    if (status == EMBLA_OK) {
        use_tensors(cp);
        use_words(cp);
        use_ngrams(cp);
        use_store(cp, choice & 64);
        use_model(cp, choice & 4);
        use_convert(cp, outputs[choice >> 3 & 3], choice & 32);
        embla_checkpoint_free(cp);
    }
    PROMISE(embla_mem_live() == memory && embla_io_live() == files);
    return 0;
}
