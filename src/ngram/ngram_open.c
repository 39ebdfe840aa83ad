/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the hasher of a model from a checkpoint.
 *
 * The constants in the file are used. If they differ from those that the rules give, the file is
 * refused, and the message has both numbers: a wrong hasher would silently look up wrong rows.
 *
 *   DeepSeek   config.json "engram_..", GGUF ARCH.engram.*
 *   Qwen       config.json "ngram_size", .. and I64 tensors; GGUF ARCH.ple.*
 *   LongCat    config.json "ngram_vocab_size_ratio" or "oe_vocab_size_ratio", ..
 *   Gemma      config.json "vocab_size_per_layer_input"; GGUF embedding_length_per_layer_input
 *   our own    config.json of embla_gpt_save: "ngram_rows", "ngram_heads", ..
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "formats/checkpoint.h"
#include "formats/gguf.h"
#include "ngram/ngram.h"

/* ---- reading keys ---- */

typedef struct {
    const embla_checkpoint *cp;
    const char *group; /* GGUF: "ARCH.engram."; NULL means config.json, or text_config in it */
    embla_arena arena; /* lists that were read from the file */
    embla_ngram_parameters p;
    int32_t layers[EMBLA_NGRAM_LAYERS_MOST]; /* counted from 0 */
    size_t layer_count, table;
    embla_fold *own;   /* the fold in the file */
    int64_t rows;      /* of the table in the file; 0 if unknown */
    bool exactly;      /* rows must be equal to the computed number, not only large enough */
    bool vocab_stated; /* the vocabulary is known, so multipliers can be computed */
} reading;

typedef const char *const names[]; /* alternative names of one key; ends with NULL */

static embla_status fail_format(const reading *r, const char *what)
{
    return embla_fail(EMBLA_ERR_FORMAT, "%.200s describes n-grams, but %s", r->cp->shown, what);
}

/* Writes the n-th key where a name may be found. False after the last. */
static bool key_at(const reading *r, const char *name, int n, char key[200])
{
    const char *before = r->group ? r->group : n == 0 ? "" : "text_config.";
    int length = snprintf(key, 200, "%s%s", before, name);
    return n < (r->group ? 1 : 2) && length > 0 && length < 200;
}

/* Reads an integer. If there is none, *out is unchanged and *found is false. */
static embla_status read_integer(const reading *r, names called, int64_t *out, bool *found)
{
    char key[200];
    *found = false;
    for (size_t i = 0; called[i]; i++)
        for (int n = 0; key_at(r, called[i], n, key); n++) {
            embla_status status = embla_checkpoint_integer(r->cp, key, out);
            *found = status == EMBLA_OK;
            if (status != EMBLA_ERR_NOT_FOUND) return status;
        }
    return EMBLA_OK;
}

/* Reads a required integer, 0 to INT32_MAX. */
static embla_status require_integer(const reading *r, names called, int64_t *out)
{
    char text[128];
    bool found;
    EMBLA_TRY(read_integer(r, called, out, &found));
    if (found && *out >= 0 && *out <= INT32_MAX) return EMBLA_OK;
    if (found)
        (void)snprintf(text, sizeof text, "'%.60s' is %" PRId64 ", not from 0 to %d", called[0],
                       *out, INT32_MAX);
    else
        (void)snprintf(text, sizeof text, "'%.60s' is missing", called[0]);
    return fail_format(r, text);
}

static embla_status require_int32(const reading *r, names called, int32_t *out)
{
    int64_t value = 0;
    EMBLA_TRY(require_integer(r, called, &value));
    *out = (int32_t)value;
    return EMBLA_OK;
}

/* Reads a list of integers into the arena. NULL if there is none. */
static embla_status read_list(reading *r, names called, const int64_t **out, size_t *count)
{
    char key[200];
    int64_t *numbers = NULL;
    *out = NULL;
    *count = 0;
    for (size_t i = 0; called[i]; i++)
        for (int n = 0; key_at(r, called[i], n, key); n++) {
            embla_status status = embla_checkpoint_integers(r->cp, key, 0, NULL, count);
            if (status == EMBLA_ERR_NOT_FOUND) continue;
            if (status != EMBLA_OK || *count == 0) return status;
            EMBLA_TRY(embla_arena_many(&r->arena, *count, sizeof *numbers, "constants", &numbers));
            EMBLA_TRY(embla_checkpoint_integers(r->cp, key, *count, numbers, count));
            *out = numbers;
            return EMBLA_OK;
        }
    return EMBLA_OK;
}

/* Reads the layers with a table. In the file they are counted from `first`. */
static embla_status read_layers(reading *r, names called, int64_t first, int32_t layer)
{
    const int64_t *numbers;
    size_t count;
    EMBLA_TRY(read_list(r, called, &numbers, &count));
    if (count > EMBLA_NGRAM_LAYERS_MOST) return fail_format(r, "more than 256 layers have a table");
    for (size_t i = 0; numbers && i < count; i++) {
        if (numbers[i] < first || numbers[i] > INT32_MAX)
            return fail_format(r, "the number of a layer is out of range");
        r->layers[i] = (int32_t)(numbers[i] - first);
    }
    r->layer_count = count;
    EMBLA_TRY(embla_ngram_choose(r->cp->shown, r->layers, count, layer, &r->table));
    return EMBLA_OK;
}

/* The part of a list for this table, if the list has `each` numbers for every table. */
static embla_status table_part(const reading *r, const char *what, const int64_t *numbers,
                               size_t count, size_t each, const int64_t **out)
{
    char text[128];
    size_t tables = r->layer_count > 0 ? r->layer_count : 1;
    if (!numbers) return EMBLA_OK;
    if (count != tables * each) {
        (void)snprintf(text, sizeof text, "it has %zu %s; %zu tables need %zu each", count, what,
                       tables, each);
        return fail_format(r, text);
    }
    *out = numbers + r->table * each;
    return EMBLA_OK;
}

static size_t columns_of(const embla_ngram_parameters *p)
{
    return p->orders > 1 && p->heads > 0 ? ((size_t)p->orders - 1) * (size_t)p->heads : 0;
}

/* Checked here because lists are split by these numbers before embla_ngram_new checks them. */
static embla_status check_shape(const reading *r)
{
    const embla_ngram_parameters *p = &r->p;
    char text[128];
    if (p->orders >= 2 && p->orders <= EMBLA_NGRAM_ORDERS_MOST && p->heads >= 1 &&
        p->heads <= EMBLA_NGRAM_HEADS_MOST)
        return EMBLA_OK;
    (void)snprintf(text, sizeof text,
                   "it has orders up to %" PRId32 " with %" PRId32
                   " heads each; supported: 2 to %d and 1 to %d",
                   p->orders, p->heads, (int)EMBLA_NGRAM_ORDERS_MOST, (int)EMBLA_NGRAM_HEADS_MOST);
    return fail_format(r, text);
}

static embla_status compare_constants(const reading *r, const char *what, const int64_t *stated,
                                      const int64_t *derived, size_t count)
{
    char text[160];
    for (size_t i = 0; i < count; i++)
        if (stated[i] != derived[i]) {
            (void)snprintf(text, sizeof text,
                           "%s %zu is %" PRId64
                           "; computed from its parameters it would be %" PRId64,
                           what, i, stated[i], derived[i]);
            return fail_format(r, text);
        }
    return EMBLA_OK;
}

static embla_status compare_sizes(const reading *r)
{
    int64_t derived[(EMBLA_NGRAM_ORDERS_MOST - 1) * EMBLA_NGRAM_HEADS_MOST];
    size_t columns = columns_of(&r->p);
    if (!r->p.sizes || r->p.base < 1) return EMBLA_OK;
    EMBLA_TRY(embla_ngram_primes(r->p.base, r->table * columns, columns, derived));
    return compare_constants(r, "the size of head", r->p.sizes, derived, columns);
}

static embla_status compare_multipliers(const reading *r, int64_t seed)
{
    int64_t derived[EMBLA_NGRAM_ORDERS_MOST];
    const embla_ngram_parameters *p = &r->p;
    uint64_t from = (uint64_t)seed + 10007 * (uint64_t)p->layer;
    bool possible = p->vocab >= 1 && p->vocab <= EMBLA_NGRAM_VOCAB_MOST;
    if (!p->multipliers || !r->vocab_stated || !possible) return EMBLA_OK;
    if (p->kind == EMBLA_NGRAM_ENGRAM)
        embla_ngram_engram_multipliers(p->vocab, from, (size_t)p->orders, derived);
    else
        embla_ngram_qwen_multipliers(p->vocab, from, (size_t)p->orders, derived);
    return compare_constants(r, "multiplier", p->multipliers, derived, (size_t)p->orders);
}

/* transformers uses the first EOS of a list. */
static embla_status read_eos(reading *r, int32_t *out)
{
    const int64_t *several;
    size_t count;
    EMBLA_TRY(read_list(r, (names){"eos_token_id", NULL}, &several, &count));
    if (!several) return require_int32(r, (names){"eos_token_id", NULL}, out);
    if (several[0] < 0 || several[0] > INT32_MAX) return fail_format(r, "its EOS is not a token");
    *out = (int32_t)several[0];
    return EMBLA_OK;
}

/* ---- DeepSeek ---- */

/* Reads the fold in the file. If the caller gave one too, both must be the same. */
static embla_status read_fold(reading *r, const embla_fold *fold)
{
    const int64_t *map;
    size_t count;
    EMBLA_TRY(read_list(r, (names){"token_map", NULL}, &map, &count));
    r->p.fold = fold;
    if (!map) return EMBLA_OK;
    EMBLA_TRY(embla_fold_room(count, &r->own));
    for (size_t i = 0; i < count; i++)
        r->own->values[i] = map[i] >= 0 && map[i] <= INT32_MAX ? (int32_t)map[i] : -1;
    EMBLA_TRY(embla_fold_check(r->own, r->cp->shown));
    if (!fold) {
        r->p.fold = r->own;
        return EMBLA_OK;
    }
    for (size_t i = 0; i < count || i < (size_t)fold->tokens; i++) {
        int64_t ours = i < count ? map[i] : -1;
        int64_t given = i < (size_t)fold->tokens ? fold->values[i] : -1;
        if (ours != given)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: token %zu is folded to %" PRId64
                              ", but the given fold has %" PRId64 " (-1 means missing)",
                              r->cp->shown, i, ours, given);
    }
    return EMBLA_OK;
}

/* Reads the size of the folded vocabulary, and the pad token. */
static embla_status read_engram_vocab(reading *r, names vocab, names raw_pad, names folded_pad)
{
    embla_ngram_parameters *p = &r->p;
    int64_t pad = EMBLA_NGRAM_PAD_TOKEN;
    bool found;
    EMBLA_TRY(read_integer(r, vocab, &p->vocab, &r->vocab_stated));
    if (!r->vocab_stated && !p->fold)
        return fail_format(r, "the size of the folded vocabulary is missing; pass a fold");
    if (!r->vocab_stated) p->vocab = p->fold->count;
    r->vocab_stated = true;
    if (p->fold && p->fold->count != p->vocab)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%.200s: its folded vocabulary has %" PRId64
                          " tokens, but the fold has %" PRId64 " different numbers",
                          r->cp->shown, p->vocab, p->fold->count);
    if (folded_pad) EMBLA_TRY(read_integer(r, folded_pad, &pad, &found));
    if (folded_pad && found) {
        if (pad < 0 || pad >= p->vocab) return fail_format(r, "its pad is not a token");
        p->pad = (int32_t)pad;
        return EMBLA_OK;
    }
    EMBLA_TRY(read_integer(r, raw_pad, &pad, &found));
    return embla_ngram_pad(p->fold, pad, &p->pad);
}

static embla_status open_engram_config(reading *r, int32_t layer, const embla_fold *fold)
{
    embla_ngram_parameters *p = &r->p;
    const int64_t *rows, *one = NULL;
    size_t count;
    bool found;
    p->kind = EMBLA_NGRAM_ENGRAM;
    p->fold = fold;
    EMBLA_TRY(require_integer(r, (names){"engram_vocab_size", NULL}, &p->base));
    EMBLA_TRY(
        require_int32(r, (names){"engram_max_ngram_size", "engram_ngram_size", NULL}, &p->orders));
    EMBLA_TRY(require_int32(r, (names){"engram_n_heads", "engram_num_heads", "engram_heads", NULL},
                            &p->heads));
    EMBLA_TRY(check_shape(r));
    EMBLA_TRY(read_layers(r, (names){"engram_layer_ids", "engram_layers", NULL}, 0, layer));
    if (r->layer_count == 0) return fail_format(r, "'engram_layer_ids' is missing");
    EMBLA_TRY(read_integer(r, (names){"engram_seed", NULL}, &p->seed, &found));
    EMBLA_TRY(read_engram_vocab(r, (names){"engram_compressed_vocab_size", NULL},
                                (names){"engram_pad_token_id", "engram_pad_id", NULL}, NULL));
    EMBLA_TRY(read_list(r, (names){"engram_num_embeddings", NULL}, &rows, &count));
    EMBLA_TRY(table_part(r, "numbers of rows", rows, count, 1, &one));
    if (one) r->rows = *one;
    r->exactly = true;
    p->layer = r->layers[r->table];
    return EMBLA_OK;
}

static embla_status read_constants(reading *r, names multipliers, names sizes, names offsets)
{
    embla_ngram_parameters *p = &r->p;
    const int64_t *numbers;
    size_t count, columns = columns_of(p);
    EMBLA_TRY(read_list(r, multipliers, &numbers, &count));
    EMBLA_TRY(table_part(r, "multipliers", numbers, count, (size_t)p->orders, &p->multipliers));
    EMBLA_TRY(read_list(r, sizes, &numbers, &count));
    EMBLA_TRY(table_part(r, "sizes of heads", numbers, count, columns, &p->sizes));
    EMBLA_TRY(read_list(r, offsets, &numbers, &count));
    return table_part(r, "offsets of heads", numbers, count, columns, &p->offsets);
}

static embla_status open_engram_gguf(reading *r, int32_t layer, const embla_fold *fold)
{
    embla_ngram_parameters *p = &r->p;
    bool found;
    p->kind = EMBLA_NGRAM_ENGRAM;
    EMBLA_TRY(require_int32(r, (names){"max_ngram_size", "ngram_size", NULL}, &p->orders));
    EMBLA_TRY(require_int32(r, (names){"heads_per_ngram", "head_count", "heads", "n_heads", NULL},
                            &p->heads));
    EMBLA_TRY(check_shape(r));
    EMBLA_TRY(read_layers(r, (names){"layers", "layer_ids", NULL}, 0, layer));
    if (r->layer_count == 0) return fail_format(r, "the list of layers with a table is missing");
    EMBLA_TRY(read_fold(r, fold));
    EMBLA_TRY(read_engram_vocab(r, (names){"compressed_vocab_size", NULL},
                                (names){"pad_token_id", NULL}, (names){"pad_id", NULL}));
    EMBLA_TRY(read_constants(
        r, (names){"multipliers", "layer_multipliers", "hash_multipliers", NULL},
        (names){"primes", "head_vocab_sizes", "head_bucket_sizes", "hash_primes", NULL},
        (names){"offsets", "head_offsets", "hash_offsets", NULL}));
    EMBLA_TRY(read_integer(r, (names){"vocab_size", "base", NULL}, &p->base, &found));
    if (!found && !p->sizes)
        return fail_format(
            r, "the sizes of its heads are missing, and there is no base to compute them from");
    p->layer = r->layers[r->table];
    return EMBLA_OK;
}

/* ---- Qwen ---- */

/* Finds the I64 tensor whose name ends with `name`. If several layers have one, that of this
 * layer. */
static embla_status read_tensor(reading *r, const char *name, const int64_t **out, size_t *count)
{
    char mark[32];
    int64_t *numbers = NULL;
    const embla_entry *found = NULL;
    int32_t layer = r->layer_count > 0 ? r->layers[r->table] : -1;
    (void)snprintf(mark, sizeof mark, ".%" PRId32 ".", layer);
    for (size_t i = 0; i < r->cp->count; i++) {
        const char *full = r->cp->entries[i].name;
        size_t length = strlen(full), tail = strlen(name);
        bool ends = length >= tail && strcmp(full + length - tail, name) == 0;
        if (ends && (!found || strstr(full, mark))) found = &r->cp->entries[i];
    }
    *out = NULL;
    *count = 0;
    if (!found) return EMBLA_OK;
    if (found->rank != 1 || strcmp(found->element->name, "I64") != 0 || found->shape[0] < 1)
        return embla_fail(
            EMBLA_ERR_FORMAT,
            "%.200s: tensor '%.128s' has %u dimensions and type %s; expected one dimension of I64",
            r->cp->shown, found->name, (unsigned)found->rank, found->element->name);
    EMBLA_TRY(embla_arena_many(&r->arena, found->shape[0], sizeof *numbers, "constants", &numbers));
    EMBLA_TRY(embla_entry_read(r->cp, found, 0, (size_t)found->bytes, numbers));
    *out = numbers;
    *count = (size_t)found->shape[0];
    return EMBLA_OK;
}

static embla_status check_count(const reading *r, const char *what, size_t have, size_t want)
{
    char text[128];
    if (have == 0 || have == want) return EMBLA_OK;
    (void)snprintf(text, sizeof text, "it has %zu %s; expected: %zu", have, what, want);
    return fail_format(r, text);
}

/* Takes the number of rows and the vocabulary from the tensors, if they are in this file. */
static void read_table_sizes(reading *r)
{
    size_t count;
    const embla_entry *table = embla_checkpoint_only(r->cp, EMBLA_ROLE_PER_LAYER, &count);
    const embla_entry *tokens = embla_checkpoint_only(r->cp, EMBLA_ROLE_TOKENS, &count);
    if (table && table->rank == 2 && table->shape[0] <= (uint64_t)EMBLA_ROWS_MOST)
        r->rows = (int64_t)table->shape[0];
    if (r->p.vocab == 0 && tokens && tokens->rank == 2 &&
        tokens->shape[0] <= EMBLA_NGRAM_VOCAB_MOST)
        r->p.vocab = (int64_t)tokens->shape[0];
    if (r->p.vocab == 0) r->p.vocab = (int64_t)embla_gguf_tokens(&r->cp->shards[0].directory);
}

static embla_status open_qwen_config(reading *r, int32_t layer)
{
    embla_ngram_parameters *p = &r->p;
    size_t multipliers, sizes, offsets;
    int64_t seed = EMBLA_NGRAM_QWEN_SEED;
    bool based, seeded;
    p->kind = EMBLA_NGRAM_QWEN;
    EMBLA_TRY(require_int32(r, (names){"ngram_size", NULL}, &p->orders));
    EMBLA_TRY(require_int32(r, (names){"heads_per_ngram", NULL}, &p->heads));
    EMBLA_TRY(check_shape(r));
    EMBLA_TRY(read_layers(r, (names){"ple_layer_ids", NULL}, 1, layer)); /* counted from 1 here */
    EMBLA_TRY(require_integer(r, (names){"vocab_size", NULL}, &p->vocab));
    r->vocab_stated = true;
    EMBLA_TRY(read_eos(r, &p->eos));
    EMBLA_TRY(read_integer(r, (names){"ngram_vocab_size_base", NULL}, &p->base, &based));
    EMBLA_TRY(read_integer(r, (names){"seed", NULL}, &seed, &seeded));
    p->multiple = EMBLA_NGRAM_QWEN_MULTIPLE;
    EMBLA_TRY(read_integer(r, (names){"make_ngram_vocab_size_divisible_by", NULL}, &p->multiple,
                           &(bool){false}));
    EMBLA_TRY(read_tensor(r, "layer_multipliers", &p->multipliers, &multipliers));
    EMBLA_TRY(read_tensor(r, "ngram_heads_vocab_sizes", &p->sizes, &sizes));
    EMBLA_TRY(read_tensor(r, "ngram_heads_offsets", &p->offsets, &offsets));
    EMBLA_TRY(check_count(r, "multipliers", multipliers, (size_t)p->orders));
    EMBLA_TRY(check_count(r, "sizes of heads", sizes, columns_of(p)));
    EMBLA_TRY(check_count(r, "offsets of heads", offsets, columns_of(p)));
    if (!based && !p->sizes)
        return fail_format(
            r, "the sizes of its heads are missing, and there is no base to compute them from");
    p->layer = (int32_t)r->table;
    /* The seed in config.json may be for something else, so the published seed is tried first. */
    p->seed = EMBLA_NGRAM_QWEN_SEED;
    if (seeded && p->multipliers && compare_multipliers(r, EMBLA_NGRAM_QWEN_SEED) != EMBLA_OK)
        p->seed = seed;
    return EMBLA_OK;
}

static embla_status open_qwen_gguf(reading *r, int32_t layer)
{
    embla_ngram_parameters *p = &r->p;
    char key[200];
    p->kind = EMBLA_NGRAM_QWEN;
    p->seed = EMBLA_NGRAM_QWEN_SEED;
    p->multiple = EMBLA_NGRAM_QWEN_MULTIPLE;
    EMBLA_TRY(require_int32(r, (names){"ngram_size", NULL}, &p->orders));
    EMBLA_TRY(require_int32(r, (names){"heads_per_ngram", NULL}, &p->heads));
    EMBLA_TRY(check_shape(r));
    EMBLA_TRY(read_layers(r, (names){"layers", NULL}, 0, layer));
    EMBLA_TRY(require_int32(r, (names){"eos_token_id", NULL}, &p->eos));
    EMBLA_TRY(read_constants(r, (names){"layer_multipliers", NULL},
                             (names){"head_vocab_sizes", NULL}, (names){"head_offsets", NULL}));
    if (!p->sizes || !p->multipliers)
        return fail_format(r, "the sizes of its heads or the multipliers are missing");
    (void)snprintf(key, sizeof key, "%.*svocab_size", (int)(strlen(r->group) - strlen("ple.")),
                   r->group);
    embla_status status = embla_checkpoint_integer(r->cp, key, &p->vocab);
    if (status != EMBLA_OK && status != EMBLA_ERR_NOT_FOUND) return status;
    r->vocab_stated = status == EMBLA_OK;
    read_table_sizes(r);
    p->layer = (int32_t)r->table;
    return EMBLA_OK;
}

/* ---- LongCat, Gemma ---- */

static embla_status open_longcat(reading *r, int32_t layer, double ratio)
{
    embla_ngram_parameters *p = &r->p;
    const char *type = embla_checkpoint_text(r->cp, "model_type");
    if (type && !strstr(type, "longcat"))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: the n-gram hash of '%.60s' is not supported; only LongCat's is",
                          r->cp->shown, type);
    p->kind = EMBLA_NGRAM_LONGCAT;
    p->ratio = ratio;
    EMBLA_TRY(embla_ngram_choose(r->cp->shown, NULL, 0, layer, &r->table));
    EMBLA_TRY(require_int32(r, (names){"emb_neighbor_num", "oe_neighbor_num", NULL}, &p->orders));
    EMBLA_TRY(require_int32(r, (names){"emb_split_num", "oe_split_num", NULL}, &p->heads));
    EMBLA_TRY(require_integer(r, (names){"vocab_size_text", "vocab_size", NULL}, &p->vocab));
    return read_eos(r, &p->eos);
}

static embla_status open_identity(reading *r, int32_t layer)
{
    r->p.kind = EMBLA_NGRAM_IDENTITY;
    EMBLA_TRY(embla_ngram_choose(r->cp->shown, NULL, 0, layer, &r->table));
    if (r->group) {
        read_table_sizes(r);
        if (r->rows > 0) r->p.vocab = r->rows;
        return EMBLA_OK;
    }
    return require_integer(r, (names){"vocab_size_per_layer_input", NULL}, &r->p.vocab);
}

/* ---- our own models ---- */

/* The table that a training of ours has made: Qwen's hash, in one layer. */
static embla_status open_own(reading *r, int32_t layer)
{
    embla_ngram_parameters *p = &r->p;
    int64_t rows = 0;
    bool found, seeded;
    p->kind = EMBLA_NGRAM_QWEN;
    EMBLA_TRY(require_int32(r, (names){"ngram_orders", NULL}, &p->orders));
    EMBLA_TRY(require_int32(r, (names){"ngram_heads", NULL}, &p->heads));
    EMBLA_TRY(check_shape(r));
    EMBLA_TRY(read_integer(r, (names){"ngram_rows", NULL}, &rows, &found));
    EMBLA_TRY(read_integer(r, (names){"ngram_seed", NULL}, &p->seed, &seeded));
    if (!found || !seeded || rows < 1 || rows > EMBLA_ROWS_MOST)
        return fail_format(r, "'ngram_rows' or 'ngram_seed' is missing or out of range");
    EMBLA_TRY(require_integer(r, (names){"vocab_size", NULL}, &p->vocab));
    EMBLA_TRY(require_int32(r, (names){"ngram_layer", NULL}, &r->layers[0]));
    r->layer_count = 1;
    EMBLA_TRY(embla_ngram_choose(r->cp->shown, r->layers, 1, layer, &r->table));
    int64_t columns = (int64_t)columns_of(p);
    p->base = columns > 0 ? rows / columns : 0;
    p->eos = (int32_t)(p->vocab - 1);
    return EMBLA_OK;
}

/* ---- which model ---- */

static bool has_key(reading *r, names called)
{
    int64_t value;
    bool found;
    return read_integer(r, called, &value, &found) != EMBLA_OK || found;
}

static embla_status fail_no_ngram(const reading *r)
{
    return embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s has no n-gram table and no per-layer table",
                      r->cp->shown);
}

static embla_status open_config(reading *r, int32_t layer, const embla_fold *fold)
{
    static const char *const ratios[] = {"ngram_vocab_size_ratio", "oe_vocab_size_ratio", NULL};
    char key[200];
    double ratio;
    if (has_key(r, (names){"engram_vocab_size", "engram_max_ngram_size", NULL}))
        return open_engram_config(r, layer, fold);
    if (fold) return embla_fail(EMBLA_ERR_ARGUMENT, "%.200s: only engram has a fold", r->cp->shown);
    if (has_key(r, (names){"ngram_vocab_size_base", "heads_per_ngram", NULL}))
        return open_qwen_config(r, layer);
    for (size_t i = 0; ratios[i]; i++)
        for (int n = 0; key_at(r, ratios[i], n, key); n++)
            if (embla_checkpoint_real(r->cp, key, &ratio) == EMBLA_OK)
                return open_longcat(r, layer, ratio);
    if (has_key(r, (names){"vocab_size_per_layer_input", NULL})) return open_identity(r, layer);
    if (has_key(r, (names){"ngram_rows", NULL})) return open_own(r, layer);
    return fail_no_ngram(r);
}

static embla_status open_gguf(reading *r, int32_t layer, const embla_fold *fold)
{
    const char *arch = embla_checkpoint_text(r->cp, "general.architecture");
    char group[128];
    if (!arch || strlen(arch) > 64) return fail_no_ngram(r);
    (void)snprintf(group, sizeof group, "%s.engram.", arch);
    r->group = group;
    embla_status status = EMBLA_OK;
    if (has_key(r, (names){"max_ngram_size", "ngram_size", NULL})) {
        status = open_engram_gguf(r, layer, fold);
    } else if (fold) {
        status = embla_fail(EMBLA_ERR_ARGUMENT, "%.200s: only engram has a fold", r->cp->shown);
    } else {
        (void)snprintf(group, sizeof group, "%s.ple.", arch);
        if (has_key(r, (names){"ngram_size", NULL})) {
            status = open_qwen_gguf(r, layer);
        } else {
            (void)snprintf(group, sizeof group, "%s.", arch);
            bool per_layer = has_key(r, (names){"embedding_length_per_layer_input", NULL});
            status = per_layer ? open_identity(r, layer) : fail_no_ngram(r);
        }
    }
    r->group = NULL;
    return status;
}

/* Creates the hasher. Wrong parameters are reported as errors of the file. */
static embla_status make_hasher(reading *r, embla_ngram **out)
{
    char sentence[300], text[160];
    embla_ngram *made = NULL;
    r->p.layers = r->layers;
    r->p.layer_count = r->p.kind == EMBLA_NGRAM_ENGRAM ? r->layer_count : 0;
    if (r->p.kind == EMBLA_NGRAM_ENGRAM || r->p.kind == EMBLA_NGRAM_QWEN) {
        EMBLA_TRY(compare_sizes(r));
        EMBLA_TRY(compare_multipliers(r, r->p.seed));
    }
    embla_status status = embla_ngram_new(&r->p, &made);
    if (status == EMBLA_ERR_ARGUMENT) {
        (void)snprintf(sentence, sizeof sentence, "%.299s", embla_error());
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: %s", r->cp->shown, sentence);
    }
    EMBLA_TRY(status);
    if (r->rows > 0 && (r->exactly ? r->rows != made->rows : r->rows < made->used)) {
        (void)snprintf(text, sizeof text,
                       "its table has %" PRId64
                       " rows; computed from its parameters it would have %" PRId64,
                       r->rows, r->exactly ? made->rows : made->used);
        embla_ngram_free(made);
        return fail_format(r, text);
    }
    if (r->rows > 0) made->rows = r->rows;
    made->layer = r->layer_count > 0 ? r->layers[r->table] : -1;
    if (r->own && r->p.fold == r->own) {
        made->own = r->own;
        r->own = NULL;
    }
    *out = made;
    return EMBLA_OK;
}

embla_status embla_ngram_open(const embla_checkpoint *checkpoint, int32_t layer,
                              const embla_fold *fold, embla_ngram **out)
{
    reading r = {.cp = checkpoint};
    if (!checkpoint || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_ngram_open: %s is NULL",
                          checkpoint ? "out" : "the checkpoint");
    bool gguf = strcmp(embla_checkpoint_format(checkpoint), "gguf") == 0;
    embla_status status = gguf ? open_gguf(&r, layer, fold) : open_config(&r, layer, fold);
    if (status == EMBLA_OK) status = make_hasher(&r, out);
    embla_fold_free(r.own);
    embla_arena_free(&r.arena);
    return status;
}
