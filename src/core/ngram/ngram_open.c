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
 *   packs      the manifest (checkpoint/pack_manifest.h)
 */
#include <stdio.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/dtype.h"
#include "formats/gguf.h"
#include "ngram/ngram_keys.h"

/* ---- DeepSeek ---- */

/* Reads the fold in the file. If the caller gave one too, both must be the same. */
static embla_status read_fold(embla_keys *r, const embla_fold *fold)
{
    const int64_t *map;
    size_t count;
    EMBLA_TRY(embla_keys_list(r, (embla_key_names){"token_map", NULL}, &map, &count));
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
static embla_status read_engram_vocab(embla_keys *r, embla_key_names vocab, embla_key_names raw_pad,
                                      embla_key_names folded_pad)
{
    embla_ngram_parameters *p = &r->p;
    int64_t pad = EMBLA_NGRAM_PAD_TOKEN;
    bool found;
    EMBLA_TRY(embla_keys_integer(r, vocab, &p->vocab, &r->vocab_stated));
    if (!r->vocab_stated && !p->fold)
        return embla_keys_fail(r, "the size of the folded vocabulary is missing; pass a fold");
    if (!r->vocab_stated) p->vocab = p->fold->count;
    r->vocab_stated = true;
    if (p->fold && p->fold->count != p->vocab)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%.200s: its folded vocabulary has %" PRId64
                          " tokens, but the fold has %" PRId64 " different numbers",
                          r->cp->shown, p->vocab, p->fold->count);
    if (folded_pad) EMBLA_TRY(embla_keys_integer(r, folded_pad, &pad, &found));
    if (folded_pad && found) {
        if (pad < 0 || pad >= p->vocab) return embla_keys_fail(r, "its pad is not a token");
        p->pad = (int32_t)pad;
        return EMBLA_OK;
    }
    EMBLA_TRY(embla_keys_integer(r, raw_pad, &pad, &found));
    return embla_ngram_pad(p->fold, pad, &p->pad);
}

static embla_status open_engram_config(embla_keys *r, int32_t layer, const embla_fold *fold)
{
    embla_ngram_parameters *p = &r->p;
    const int64_t *rows, *one = NULL;
    size_t count;
    bool found;
    p->kind = EMBLA_NGRAM_ENGRAM;
    p->fold = fold;
    EMBLA_TRY(embla_keys_need(r, (embla_key_names){"engram_vocab_size", NULL}, &p->base));
    EMBLA_TRY(embla_keys_need32(
        r, (embla_key_names){"engram_max_ngram_size", "engram_ngram_size", NULL}, &p->orders));
    EMBLA_TRY(embla_keys_need32(
        r, (embla_key_names){"engram_n_heads", "engram_num_heads", "engram_heads", NULL},
        &p->rows_per_ngram));
    EMBLA_TRY(embla_keys_check_shape(r));
    EMBLA_TRY(embla_keys_layers(r, (embla_key_names){"engram_layer_ids", "engram_layers", NULL}, 0,
                                layer));
    if (r->layer_count == 0) return embla_keys_fail(r, "'engram_layer_ids' is missing");
    EMBLA_TRY(embla_keys_integer(r, (embla_key_names){"engram_seed", NULL}, &p->seed, &found));
    EMBLA_TRY(read_engram_vocab(r, (embla_key_names){"engram_compressed_vocab_size", NULL},
                                (embla_key_names){"engram_pad_token_id", "engram_pad_id", NULL},
                                NULL));
    EMBLA_TRY(embla_keys_list(r, (embla_key_names){"engram_num_embeddings", NULL}, &rows, &count));
    EMBLA_TRY(embla_keys_part(r, "numbers of rows", rows, count, 1, &one));
    if (one) r->rows = *one;
    r->exactly = true;
    p->layer = r->layers[r->table];
    return EMBLA_OK;
}

static embla_status read_constants(embla_keys *r, embla_key_names multipliers,
                                   embla_key_names sizes, embla_key_names offsets)
{
    embla_ngram_parameters *p = &r->p;
    const int64_t *numbers;
    size_t count, rows_per_token = embla_keys_rows_per_token(p);
    EMBLA_TRY(embla_keys_list(r, multipliers, &numbers, &count));
    EMBLA_TRY(
        embla_keys_part(r, "multipliers", numbers, count, (size_t)p->orders, &p->multipliers));
    EMBLA_TRY(embla_keys_list(r, sizes, &numbers, &count));
    EMBLA_TRY(embla_keys_part(r, "sizes of hashes", numbers, count, rows_per_token, &p->sizes));
    EMBLA_TRY(embla_keys_list(r, offsets, &numbers, &count));
    return embla_keys_part(r, "offsets of hashes", numbers, count, rows_per_token, &p->offsets);
}

static embla_status open_engram_gguf(embla_keys *r, int32_t layer, const embla_fold *fold)
{
    embla_ngram_parameters *p = &r->p;
    bool found;
    p->kind = EMBLA_NGRAM_ENGRAM;
    EMBLA_TRY(
        embla_keys_need32(r, (embla_key_names){"max_ngram_size", "ngram_size", NULL}, &p->orders));
    EMBLA_TRY(embla_keys_need32(
        r, (embla_key_names){"heads_per_ngram", "head_count", "heads", "n_heads", NULL},
        &p->rows_per_ngram));
    EMBLA_TRY(embla_keys_check_shape(r));
    EMBLA_TRY(embla_keys_layers(r, (embla_key_names){"layers", "layer_ids", NULL}, 0, layer));
    if (r->layer_count == 0)
        return embla_keys_fail(r, "the list of layers with a table is missing");
    EMBLA_TRY(read_fold(r, fold));
    EMBLA_TRY(read_engram_vocab(r, (embla_key_names){"compressed_vocab_size", NULL},
                                (embla_key_names){"pad_token_id", NULL},
                                (embla_key_names){"pad_id", NULL}));
    EMBLA_TRY(read_constants(
        r, (embla_key_names){"multipliers", "layer_multipliers", "hash_multipliers", NULL},
        (embla_key_names){"primes", "head_vocab_sizes", "head_bucket_sizes", "hash_primes", NULL},
        (embla_key_names){"offsets", "head_offsets", "hash_offsets", NULL}));
    EMBLA_TRY(
        embla_keys_integer(r, (embla_key_names){"vocab_size", "base", NULL}, &p->base, &found));
    if (!found && !p->sizes)
        return embla_keys_fail(
            r, "the sizes of its hashes are missing, and there is no base to compute them from");
    p->layer = r->layers[r->table];
    return EMBLA_OK;
}

/* ---- Qwen ---- */

/* Finds the I64 tensor whose name ends with `name`. If several layers have one, that of this
 * layer. */
static embla_status read_tensor(embla_keys *r, const char *name, const int64_t **out, size_t *count)
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
    *count = (size_t)found->shape[0]; /* they fit in memory */
    EMBLA_TRY(embla_entry_numbers(r->cp, found, sizeof *numbers, *count, numbers));
    *out = numbers;
    return EMBLA_OK;
}

static embla_status check_count(const embla_keys *r, const char *what, size_t have, size_t want)
{
    char text[128];
    if (have == 0 || have == want) return EMBLA_OK;
    (void)snprintf(text, sizeof text, "it has %zu %s; expected: %zu", have, what, want);
    return embla_keys_fail(r, text);
}

/* Takes the number of rows and the vocabulary from the tensors, if they are in this file. */
static void read_table_sizes(embla_keys *r)
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

static embla_status open_qwen_config(embla_keys *r, int32_t layer)
{
    embla_ngram_parameters *p = &r->p;
    size_t multipliers, sizes, offsets;
    int64_t seed = EMBLA_NGRAM_QWEN_SEED;
    bool based, seeded;
    p->kind = EMBLA_NGRAM_QWEN;
    EMBLA_TRY(embla_keys_need32(r, (embla_key_names){"ngram_size", NULL}, &p->orders));
    EMBLA_TRY(embla_keys_need32(r, (embla_key_names){"heads_per_ngram", NULL}, &p->rows_per_ngram));
    EMBLA_TRY(embla_keys_check_shape(r));
    EMBLA_TRY(embla_keys_layers(r, (embla_key_names){"ple_layer_ids", NULL}, 1,
                                layer)); /* counted from 1 here */
    EMBLA_TRY(embla_keys_need(r, (embla_key_names){"vocab_size", NULL}, &p->vocab));
    r->vocab_stated = true;
    EMBLA_TRY(embla_keys_eos(r, &p->eos));
    EMBLA_TRY(
        embla_keys_integer(r, (embla_key_names){"ngram_vocab_size_base", NULL}, &p->base, &based));
    EMBLA_TRY(embla_keys_integer(r, (embla_key_names){"seed", NULL}, &seed, &seeded));
    p->multiple = EMBLA_NGRAM_QWEN_MULTIPLE;
    EMBLA_TRY(embla_keys_integer(r, (embla_key_names){"make_ngram_vocab_size_divisible_by", NULL},
                                 &p->multiple, &(bool){false}));
    EMBLA_TRY(read_tensor(r, "layer_multipliers", &p->multipliers, &multipliers));
    EMBLA_TRY(read_tensor(r, "ngram_heads_vocab_sizes", &p->sizes, &sizes));
    EMBLA_TRY(read_tensor(r, "ngram_heads_offsets", &p->offsets, &offsets));
    EMBLA_TRY(check_count(r, "multipliers", multipliers, (size_t)p->orders));
    EMBLA_TRY(check_count(r, "sizes of hashes", sizes, embla_keys_rows_per_token(p)));
    EMBLA_TRY(check_count(r, "offsets of hashes", offsets, embla_keys_rows_per_token(p)));
    if (!based && !p->sizes)
        return embla_keys_fail(
            r, "the sizes of its hashes are missing, and there is no base to compute them from");
    p->layer = (int32_t)r->table;
    /* The seed in config.json may be for something else, so the published seed is tried first. */
    p->seed = EMBLA_NGRAM_QWEN_SEED;
    if (seeded && p->multipliers &&
        embla_keys_check_multipliers(r, EMBLA_NGRAM_QWEN_SEED) != EMBLA_OK)
        p->seed = seed;
    return EMBLA_OK;
}

static embla_status open_qwen_gguf(embla_keys *r, int32_t layer)
{
    embla_ngram_parameters *p = &r->p;
    char key[200];
    p->kind = EMBLA_NGRAM_QWEN;
    p->seed = EMBLA_NGRAM_QWEN_SEED;
    p->multiple = EMBLA_NGRAM_QWEN_MULTIPLE;
    EMBLA_TRY(embla_keys_need32(r, (embla_key_names){"ngram_size", NULL}, &p->orders));
    EMBLA_TRY(embla_keys_need32(r, (embla_key_names){"heads_per_ngram", NULL}, &p->rows_per_ngram));
    EMBLA_TRY(embla_keys_check_shape(r));
    EMBLA_TRY(embla_keys_layers(r, (embla_key_names){"layers", NULL}, 0, layer));
    EMBLA_TRY(embla_keys_need32(r, (embla_key_names){"eos_token_id", NULL}, &p->eos));
    EMBLA_TRY(read_constants(r, (embla_key_names){"layer_multipliers", NULL},
                             (embla_key_names){"head_vocab_sizes", NULL},
                             (embla_key_names){"head_offsets", NULL}));
    if (!p->sizes || !p->multipliers)
        return embla_keys_fail(r, "the sizes of its hashes or the multipliers are missing");
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

static embla_status open_longcat(embla_keys *r, int32_t layer, double ratio)
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
    EMBLA_TRY(embla_keys_need32(r, (embla_key_names){"emb_neighbor_num", "oe_neighbor_num", NULL},
                                &p->orders));
    EMBLA_TRY(embla_keys_need32(r, (embla_key_names){"emb_split_num", "oe_split_num", NULL},
                                &p->rows_per_ngram));
    EMBLA_TRY(
        embla_keys_need(r, (embla_key_names){"vocab_size_text", "vocab_size", NULL}, &p->vocab));
    return embla_keys_eos(r, &p->eos);
}

static embla_status open_identity(embla_keys *r, int32_t layer)
{
    r->p.kind = EMBLA_NGRAM_IDENTITY;
    EMBLA_TRY(embla_ngram_choose(r->cp->shown, NULL, 0, layer, &r->table));
    if (r->group) {
        read_table_sizes(r);
        if (r->rows > 0) r->p.vocab = r->rows;
        return EMBLA_OK;
    }
    return embla_keys_need(r, (embla_key_names){"vocab_size_per_layer_input", NULL}, &r->p.vocab);
}

/* ---- our own models ---- */

/* The table that a training of ours has made: Qwen's hash, in one layer. */
static embla_status open_own(embla_keys *r, int32_t layer)
{
    embla_ngram_parameters *p = &r->p;
    int64_t rows = 0;
    bool found, seeded;
    p->kind = EMBLA_NGRAM_QWEN;
    EMBLA_TRY(embla_keys_need32(r, (embla_key_names){"ngram_orders", NULL}, &p->orders));
    EMBLA_TRY(embla_keys_need32(r, (embla_key_names){"ngram_heads", NULL}, &p->rows_per_ngram));
    EMBLA_TRY(embla_keys_check_shape(r));
    EMBLA_TRY(embla_keys_integer(r, (embla_key_names){"ngram_rows", NULL}, &rows, &found));
    EMBLA_TRY(embla_keys_integer(r, (embla_key_names){"ngram_seed", NULL}, &p->seed, &seeded));
    if (!found || !seeded || rows < 1 || rows > EMBLA_ROWS_MOST)
        return embla_keys_fail(r, "'ngram_rows' or 'ngram_seed' is missing or out of range");
    EMBLA_TRY(embla_keys_need(r, (embla_key_names){"vocab_size", NULL}, &p->vocab));
    EMBLA_TRY(embla_keys_need32(r, (embla_key_names){"ngram_layer", NULL}, &r->layers[0]));
    r->layer_count = 1;
    EMBLA_TRY(embla_ngram_choose(r->cp->shown, r->layers, 1, layer, &r->table));
    int64_t rows_per_token = (int64_t)embla_keys_rows_per_token(p);
    p->base = rows_per_token > 0 ? rows / rows_per_token : 0;
    p->eos = (int32_t)(p->vocab - 1);
    return EMBLA_OK;
}

/* ---- packs ---- */

static embla_status fail_no_ngram(const embla_keys *r);

static embla_status read_pack_fold(embla_keys *r)
{
    int64_t tokens = r->pack.hasher.fold;
    EMBLA_TRY(embla_fold_room((uint64_t)tokens, &r->own));
    EMBLA_TRY(embla_checkpoint_read(r->cp, EMBLA_PACK_FOLD, 0, (size_t)tokens * sizeof(int32_t),
                                    r->own->values));
    EMBLA_TRY(embla_pack_list_check(
        &r->pack, EMBLA_PACK_LIST_FOLD,
        embla_checksum_of(r->own->values, (size_t)tokens * sizeof(int32_t)), r->cp->shown));
    embla_order_turn(r->own->values, sizeof *r->own->values, (size_t)tokens);
    r->p.fold = r->own;
    return embla_fold_check(r->own, r->cp->shown);
}

/* The constants are those of the hasher that the pack was made with. */
static embla_status open_pack(embla_keys *r, int32_t layer, const embla_fold *fold)
{
    const embla_pack_hasher *h = &r->pack.hasher;
    EMBLA_TRY(embla_pack_open(r->cp, &r->pack));
    if (!h->given) return fail_no_ngram(r);
    r->p = (embla_ngram_parameters){.kind = (embla_ngram_kind)h->kind,
                                    .vocab = h->vocab,
                                    .orders = (int32_t)h->orders,
                                    .rows_per_ngram = (int32_t)h->rows_per_ngram,
                                    .pad = (int32_t)h->pad,
                                    .eos = (int32_t)h->eos,
                                    .eos_rule = (embla_ngram_eos)h->eos_rule,
                                    .fold = fold,
                                    .multipliers = h->multipliers,
                                    .sizes = h->sizes,
                                    .offsets = h->offsets};
    bool hashed = r->p.kind != EMBLA_NGRAM_IDENTITY,
         products = hashed && !(h->kind == EMBLA_NGRAM_LONGCAT);
    if ((hashed && (!h->sizes || !h->offsets)) || (products && !h->multipliers))
        return embla_keys_fail(r, "its pack has no sizes, offsets or multipliers");
    r->rows = h->rows;
    if (r->pack.layer >= 0) {
        r->layers[r->layer_count++] = r->pack.layer;
        EMBLA_TRY(embla_ngram_choose(r->cp->shown, r->layers, 1, layer, &r->table));
        if (r->p.kind == EMBLA_NGRAM_ENGRAM) r->p.layer = r->pack.layer;
    }
    return h->fold > 0 && !fold ? read_pack_fold(r) : EMBLA_OK;
}

/* ---- which model ---- */

static bool has_key(embla_keys *r, embla_key_names called)
{
    int64_t value;
    bool found;
    return embla_keys_integer(r, called, &value, &found) != EMBLA_OK || found;
}

static embla_status fail_no_ngram(const embla_keys *r)
{
    return embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s has no n-gram table and no per-layer table",
                      r->cp->shown);
}

static embla_status open_config(embla_keys *r, int32_t layer, const embla_fold *fold)
{
    static const char *const ratios[] = {"ngram_vocab_size_ratio", "oe_vocab_size_ratio", NULL};
    char key[200];
    double ratio;
    if (has_key(r, (embla_key_names){"engram_vocab_size", "engram_max_ngram_size", NULL}))
        return open_engram_config(r, layer, fold);
    if (fold) return embla_fail(EMBLA_ERR_ARGUMENT, "%.200s: only engram has a fold", r->cp->shown);
    if (has_key(r, (embla_key_names){"ngram_vocab_size_base", "heads_per_ngram", NULL}))
        return open_qwen_config(r, layer);
    for (size_t i = 0; ratios[i]; i++)
        for (int n = 0; embla_keys_name(r, ratios[i], n, key); n++)
            if (embla_checkpoint_real(r->cp, key, &ratio) == EMBLA_OK)
                return open_longcat(r, layer, ratio);
    if (has_key(r, (embla_key_names){"vocab_size_per_layer_input", NULL}))
        return open_identity(r, layer);
    if (has_key(r, (embla_key_names){"ngram_rows", NULL})) return open_own(r, layer);
    return fail_no_ngram(r);
}

static embla_status open_gguf(embla_keys *r, int32_t layer, const embla_fold *fold)
{
    const char *arch = embla_checkpoint_text(r->cp, "general.architecture");
    char group[128];
    if (!arch || strlen(arch) > 64) return fail_no_ngram(r);
    (void)snprintf(group, sizeof group, "%s.engram.", arch);
    r->group = group;
    embla_status status = EMBLA_OK;
    if (has_key(r, (embla_key_names){"max_ngram_size", "ngram_size", NULL})) {
        status = open_engram_gguf(r, layer, fold);
    } else if (fold) {
        status = embla_fail(EMBLA_ERR_ARGUMENT, "%.200s: only engram has a fold", r->cp->shown);
    } else {
        (void)snprintf(group, sizeof group, "%s.ple.", arch);
        if (has_key(r, (embla_key_names){"ngram_size", NULL})) {
            status = open_qwen_gguf(r, layer);
        } else {
            (void)snprintf(group, sizeof group, "%s.", arch);
            bool per_layer =
                has_key(r, (embla_key_names){"embedding_length_per_layer_input", NULL});
            status = per_layer ? open_identity(r, layer) : fail_no_ngram(r);
        }
    }
    r->group = NULL;
    return status;
}

/* Creates the hasher. Wrong parameters are reported as errors of the file. */
static embla_status make_hasher(embla_keys *r, embla_ngram **out)
{
    char sentence[300], text[160];
    embla_ngram *made = NULL;
    r->p.layers = r->layers;
    r->p.layer_count = r->p.kind == EMBLA_NGRAM_ENGRAM ? r->layer_count : 0;
    if (r->p.kind == EMBLA_NGRAM_ENGRAM || r->p.kind == EMBLA_NGRAM_QWEN) {
        EMBLA_TRY(embla_keys_check_sizes(r));
        EMBLA_TRY(embla_keys_check_multipliers(r, r->p.seed));
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
        return embla_keys_fail(r, text);
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
    embla_keys r = {.cp = checkpoint};
    EMBLA_NEED(checkpoint);
    EMBLA_NEED(out);
    bool gguf = strcmp(embla_checkpoint_format(checkpoint), "gguf") == 0;
    embla_status status = embla_pack_text(checkpoint) ? open_pack(&r, layer, fold)
                          : gguf                      ? open_gguf(&r, layer, fold)
                                                      : open_config(&r, layer, fold);
    if (status == EMBLA_OK) status = make_hasher(&r, out);
    embla_fold_free(r.own);
    embla_pack_free(&r.pack);
    embla_arena_free(&r.arena);
    return status;
}
