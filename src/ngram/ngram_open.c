/* SPDX-License-Identifier: Apache-2.0 */
/* The hasher of a model, as a checkpoint says.
 *
 * Its own constants win; where the rules give others, the file or the rules are of another model,
 * and a wrong row is a number like any other: that is refused, with both numbers.
 *
 *   DeepSeek   config.json "engram_..", GGUF ARCH.engram.*
 *   Qwen       config.json "ngram_size", .. and I64 tensors; GGUF ARCH.ple.*
 *   LongCat    config.json "ngram_vocab_size_ratio" or "oe_vocab_size_ratio", ..
 *   Gemma      config.json "vocab_size_per_layer_input"; GGUF embedding_length_per_layer_input
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "formats/checkpoint.h"
#include "formats/gguf.h"
#include "ngram/ngram.h"

/* ---- what a checkpoint says ---- */

typedef struct {
    const embla_checkpoint *cp;
    const char *group; /* GGUF: "ARCH.engram."; NULL: config.json, or text_config in it */
    embla_arena arena; /* lists of the file */
    embla_ngram_parameters p;
    int32_t layers[EMBLA_NGRAM_LAYERS_MOST]; /* from 0 on */
    size_t layer_count, table;
    embla_fold *own;   /* what the file folds by */
    int64_t rows;      /* that the table has; 0: not said */
    bool exactly;      /* rows are as many as the rules give, not only enough */
    bool vocab_stated; /* so that multipliers can be derived */
} reading;

typedef const char *const names[]; /* of one thing, as files call it; NULL after the last */

static embla_status wrong(const reading *r, const char *what)
{
    return embla_fail(EMBLA_ERR_FORMAT, "%.200s speaks of n-grams but %s", r->cp->shown, what);
}

/* The n-th place where a name may stand; false past the last. */
static bool place(const reading *r, const char *name, int n, char key[200])
{
    const char *before = r->group ? r->group : n == 0 ? "" : "text_config.";
    int length = snprintf(key, 200, "%s%s", before, name);
    return n < (r->group ? 1 : 2) && length > 0 && length < 200;
}

/* A whole number; *out is left alone, and *found false, where there is none. */
static embla_status number(const reading *r, names called, int64_t *out, bool *found)
{
    char key[200];
    *found = false;
    for (size_t i = 0; called[i]; i++)
        for (int n = 0; place(r, called[i], n, key); n++) {
            embla_status status = embla_checkpoint_integer(r->cp, key, out);
            *found = status == EMBLA_OK;
            if (status != EMBLA_ERR_NOT_FOUND) return status;
        }
    return EMBLA_OK;
}

/* One that there must be, in 0 .. INT32_MAX. */
static embla_status need(const reading *r, names called, int64_t *out)
{
    char text[128];
    bool found;
    EMBLA_TRY(number(r, called, out, &found));
    if (found && *out >= 0 && *out <= INT32_MAX) return EMBLA_OK;
    if (found)
        (void)snprintf(text, sizeof text, "'%.60s' is %" PRId64 ", outside 0 to %d", called[0],
                       *out, INT32_MAX);
    else
        (void)snprintf(text, sizeof text, "does not say '%.60s'", called[0]);
    return wrong(r, text);
}

static embla_status need_small(const reading *r, names called, int32_t *out)
{
    int64_t value = 0;
    EMBLA_TRY(need(r, called, &value));
    *out = (int32_t)value;
    return EMBLA_OK;
}

/* A list, in the arena; NULL where there is none. */
static embla_status list(reading *r, names called, const int64_t **out, size_t *count)
{
    char key[200];
    int64_t *numbers = NULL;
    *out = NULL;
    *count = 0;
    for (size_t i = 0; called[i]; i++)
        for (int n = 0; place(r, called[i], n, key); n++) {
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

/* The layers that have a table; files count them from `first` on. */
static embla_status read_layers(reading *r, names called, int64_t first, int32_t layer)
{
    const int64_t *numbers;
    size_t count;
    EMBLA_TRY(list(r, called, &numbers, &count));
    if (count > EMBLA_NGRAM_LAYERS_MOST) return wrong(r, "has more than 256 layers with a table");
    for (size_t i = 0; numbers && i < count; i++) {
        if (numbers[i] < first || numbers[i] > INT32_MAX)
            return wrong(r, "has a table at a layer that cannot be");
        r->layers[i] = (int32_t)(numbers[i] - first);
    }
    r->layer_count = count;
    EMBLA_TRY(embla_ngram_choose(r->cp->shown, r->layers, count, layer, &r->table));
    return EMBLA_OK;
}

/* This table's part of a list that has `each` numbers for every table. */
static embla_status part(const reading *r, const char *what, const int64_t *numbers, size_t count,
                         size_t each, const int64_t **out)
{
    char text[128];
    size_t tables = r->layer_count > 0 ? r->layer_count : 1;
    if (!numbers) return EMBLA_OK;
    if (count != tables * each) {
        (void)snprintf(text, sizeof text, "has %zu %s where %zu tables have %zu each", count, what,
                       tables, each);
        return wrong(r, text);
    }
    *out = numbers + r->table * each;
    return EMBLA_OK;
}

static size_t columns_of(const embla_ngram_parameters *p)
{
    return p->orders > 1 && p->heads > 0 ? ((size_t)p->orders - 1) * (size_t)p->heads : 0;
}

/* What a model does not pass on its way to embla_ngram_new: before lists are cut by them. */
static embla_status check_shape(const reading *r)
{
    const embla_ngram_parameters *p = &r->p;
    char text[128];
    if (p->orders >= 2 && p->orders <= EMBLA_NGRAM_ORDERS_MOST && p->heads >= 1 &&
        p->heads <= EMBLA_NGRAM_HEADS_MOST)
        return EMBLA_OK;
    (void)snprintf(text, sizeof text,
                   "has orders up to %" PRId32 " of %" PRId32 " heads: 2 to %d, 1 to %d", p->orders,
                   p->heads, (int)EMBLA_NGRAM_ORDERS_MOST, (int)EMBLA_NGRAM_HEADS_MOST);
    return wrong(r, text);
}

static embla_status same(const reading *r, const char *what, const int64_t *stated,
                         const int64_t *derived, size_t count)
{
    char text[160];
    for (size_t i = 0; i < count; i++)
        if (stated[i] != derived[i]) {
            (void)snprintf(text, sizeof text,
                           "its %s %zu is %" PRId64 ", and by the rules %" PRId64, what, i,
                           stated[i], derived[i]);
            return wrong(r, text);
        }
    return EMBLA_OK;
}

static embla_status compare_sizes(const reading *r)
{
    int64_t derived[(EMBLA_NGRAM_ORDERS_MOST - 1) * EMBLA_NGRAM_HEADS_MOST];
    size_t columns = columns_of(&r->p);
    if (!r->p.sizes || r->p.base < 1) return EMBLA_OK;
    EMBLA_TRY(embla_ngram_primes(r->p.base, r->table * columns, columns, derived));
    return same(r, "size of head", r->p.sizes, derived, columns);
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
    return same(r, "multiplier", p->multipliers, derived, (size_t)p->orders);
}

/* EOS: transformers takes the first of a list. */
static embla_status read_eos(reading *r, int32_t *out)
{
    const int64_t *several;
    size_t count;
    EMBLA_TRY(list(r, (names){"eos_token_id", NULL}, &several, &count));
    if (!several) return need_small(r, (names){"eos_token_id", NULL}, out);
    if (several[0] < 0 || several[0] > INT32_MAX) return wrong(r, "has an EOS that is no token");
    *out = (int32_t)several[0];
    return EMBLA_OK;
}

/* ---- DeepSeek ---- */

/* The file's own fold; with one of the caller's, that must be the same. */
static embla_status read_fold(reading *r, const embla_fold *fold)
{
    const int64_t *map;
    size_t count;
    EMBLA_TRY(list(r, (names){"token_map", NULL}, &map, &count));
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
                              "%.200s: token %zu counts as %" PRId64 ", and in the fold that was "
                              "given as %" PRId64 " (-1: not there)",
                              r->cp->shown, i, ours, given);
    }
    return EMBLA_OK;
}

/* The vocabulary after folding, and what stands before the start. */
static embla_status read_engram_vocab(reading *r, names vocab, names raw_pad, names folded_pad)
{
    embla_ngram_parameters *p = &r->p;
    int64_t pad = EMBLA_NGRAM_PAD_TOKEN;
    bool found;
    EMBLA_TRY(number(r, vocab, &p->vocab, &r->vocab_stated));
    if (!r->vocab_stated && !p->fold)
        return wrong(r, "not of how many different tokens there are: it takes a fold");
    if (!r->vocab_stated) p->vocab = p->fold->count;
    r->vocab_stated = true;
    if (p->fold && p->fold->count != p->vocab)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%.200s: its vocabulary folds to %" PRId64 ", the fold has %" PRId64
                          " different numbers",
                          r->cp->shown, p->vocab, p->fold->count);
    if (folded_pad) EMBLA_TRY(number(r, folded_pad, &pad, &found));
    if (folded_pad && found) {
        if (pad < 0 || pad >= p->vocab) return wrong(r, "its pad is no token");
        p->pad = (int32_t)pad;
        return EMBLA_OK;
    }
    EMBLA_TRY(number(r, raw_pad, &pad, &found));
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
    EMBLA_TRY(need(r, (names){"engram_vocab_size", NULL}, &p->base));
    EMBLA_TRY(
        need_small(r, (names){"engram_max_ngram_size", "engram_ngram_size", NULL}, &p->orders));
    EMBLA_TRY(need_small(r, (names){"engram_n_heads", "engram_num_heads", "engram_heads", NULL},
                         &p->heads));
    EMBLA_TRY(check_shape(r));
    EMBLA_TRY(read_layers(r, (names){"engram_layer_ids", "engram_layers", NULL}, 0, layer));
    if (r->layer_count == 0) return wrong(r, "does not say 'engram_layer_ids'");
    EMBLA_TRY(number(r, (names){"engram_seed", NULL}, &p->seed, &found));
    EMBLA_TRY(read_engram_vocab(r, (names){"engram_compressed_vocab_size", NULL},
                                (names){"engram_pad_token_id", "engram_pad_id", NULL}, NULL));
    EMBLA_TRY(list(r, (names){"engram_num_embeddings", NULL}, &rows, &count));
    EMBLA_TRY(part(r, "numbers of rows", rows, count, 1, &one));
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
    EMBLA_TRY(list(r, multipliers, &numbers, &count));
    EMBLA_TRY(part(r, "multipliers", numbers, count, (size_t)p->orders, &p->multipliers));
    EMBLA_TRY(list(r, sizes, &numbers, &count));
    EMBLA_TRY(part(r, "sizes of heads", numbers, count, columns, &p->sizes));
    EMBLA_TRY(list(r, offsets, &numbers, &count));
    return part(r, "offsets of heads", numbers, count, columns, &p->offsets);
}

static embla_status open_engram_gguf(reading *r, int32_t layer, const embla_fold *fold)
{
    embla_ngram_parameters *p = &r->p;
    bool found;
    p->kind = EMBLA_NGRAM_ENGRAM;
    EMBLA_TRY(need_small(r, (names){"max_ngram_size", "ngram_size", NULL}, &p->orders));
    EMBLA_TRY(need_small(r, (names){"heads_per_ngram", "head_count", "heads", "n_heads", NULL},
                         &p->heads));
    EMBLA_TRY(check_shape(r));
    EMBLA_TRY(read_layers(r, (names){"layers", "layer_ids", NULL}, 0, layer));
    if (r->layer_count == 0) return wrong(r, "does not say at which layers");
    EMBLA_TRY(read_fold(r, fold));
    EMBLA_TRY(read_engram_vocab(r, (names){"compressed_vocab_size", NULL},
                                (names){"pad_token_id", NULL}, (names){"pad_id", NULL}));
    EMBLA_TRY(read_constants(
        r, (names){"multipliers", "layer_multipliers", "hash_multipliers", NULL},
        (names){"primes", "head_vocab_sizes", "head_bucket_sizes", "hash_primes", NULL},
        (names){"offsets", "head_offsets", "hash_offsets", NULL}));
    EMBLA_TRY(number(r, (names){"vocab_size", "base", NULL}, &p->base, &found));
    if (!found && !p->sizes) return wrong(r, "has neither sizes of heads nor a base for them");
    p->layer = r->layers[r->table];
    return EMBLA_OK;
}

/* ---- Qwen ---- */

/* The I64 tensor that ends with name: the one of this layer where several have one. */
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
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' is %u dimensions of %s, not a list of I64",
                          r->cp->shown, found->name, (unsigned)found->rank, found->element->name);
    EMBLA_TRY(embla_arena_many(&r->arena, found->shape[0], sizeof *numbers, "constants", &numbers));
    EMBLA_TRY(embla_entry_read(r->cp, found, 0, (size_t)found->bytes, numbers));
    *out = numbers;
    *count = (size_t)found->shape[0];
    return EMBLA_OK;
}

static embla_status need_count(const reading *r, const char *what, size_t have, size_t want)
{
    char text[128];
    if (have == 0 || have == want) return EMBLA_OK;
    (void)snprintf(text, sizeof text, "has %zu %s, not %zu", have, what, want);
    return wrong(r, text);
}

/* Rows that its giant table has, where that is here; and its vocabulary. */
static void look_at_tables(reading *r)
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
    EMBLA_TRY(need_small(r, (names){"ngram_size", NULL}, &p->orders));
    EMBLA_TRY(need_small(r, (names){"heads_per_ngram", NULL}, &p->heads));
    EMBLA_TRY(check_shape(r));
    EMBLA_TRY(read_layers(r, (names){"ple_layer_ids", NULL}, 1, layer)); /* one-based here */
    EMBLA_TRY(need(r, (names){"vocab_size", NULL}, &p->vocab));
    r->vocab_stated = true;
    EMBLA_TRY(read_eos(r, &p->eos));
    EMBLA_TRY(number(r, (names){"ngram_vocab_size_base", NULL}, &p->base, &based));
    EMBLA_TRY(number(r, (names){"seed", NULL}, &seed, &seeded));
    p->multiple = EMBLA_NGRAM_QWEN_MULTIPLE;
    EMBLA_TRY(number(r, (names){"make_ngram_vocab_size_divisible_by", NULL}, &p->multiple,
                     &(bool){false}));
    EMBLA_TRY(read_tensor(r, "layer_multipliers", &p->multipliers, &multipliers));
    EMBLA_TRY(read_tensor(r, "ngram_heads_vocab_sizes", &p->sizes, &sizes));
    EMBLA_TRY(read_tensor(r, "ngram_heads_offsets", &p->offsets, &offsets));
    EMBLA_TRY(need_count(r, "multipliers", multipliers, (size_t)p->orders));
    EMBLA_TRY(need_count(r, "sizes of heads", sizes, columns_of(p)));
    EMBLA_TRY(need_count(r, "offsets of heads", offsets, columns_of(p)));
    if (!based && !p->sizes) return wrong(r, "has neither sizes of heads nor a base for them");
    p->layer = (int32_t)r->table;
    /* config.json may have a seed that is for other things: the published one is tried too */
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
    EMBLA_TRY(need_small(r, (names){"ngram_size", NULL}, &p->orders));
    EMBLA_TRY(need_small(r, (names){"heads_per_ngram", NULL}, &p->heads));
    EMBLA_TRY(check_shape(r));
    EMBLA_TRY(read_layers(r, (names){"layers", NULL}, 0, layer));
    EMBLA_TRY(need_small(r, (names){"eos_token_id", NULL}, &p->eos));
    EMBLA_TRY(read_constants(r, (names){"layer_multipliers", NULL},
                             (names){"head_vocab_sizes", NULL}, (names){"head_offsets", NULL}));
    if (!p->sizes || !p->multipliers) return wrong(r, "has no sizes of heads, or no multipliers");
    (void)snprintf(key, sizeof key, "%.*svocab_size", (int)(strlen(r->group) - strlen("ple.")),
                   r->group);
    embla_status status = embla_checkpoint_integer(r->cp, key, &p->vocab);
    if (status != EMBLA_OK && status != EMBLA_ERR_NOT_FOUND) return status;
    r->vocab_stated = status == EMBLA_OK;
    look_at_tables(r);
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
                          "%.200s: n-grams of '%.60s' are hashed in a way of its own; LongCat's is "
                          "known",
                          r->cp->shown, type);
    p->kind = EMBLA_NGRAM_LONGCAT;
    p->ratio = ratio;
    EMBLA_TRY(embla_ngram_choose(r->cp->shown, NULL, 0, layer, &r->table));
    EMBLA_TRY(need_small(r, (names){"emb_neighbor_num", "oe_neighbor_num", NULL}, &p->orders));
    EMBLA_TRY(need_small(r, (names){"emb_split_num", "oe_split_num", NULL}, &p->heads));
    EMBLA_TRY(need(r, (names){"vocab_size_text", "vocab_size", NULL}, &p->vocab));
    return read_eos(r, &p->eos);
}

static embla_status open_identity(reading *r, int32_t layer)
{
    r->p.kind = EMBLA_NGRAM_IDENTITY;
    EMBLA_TRY(embla_ngram_choose(r->cp->shown, NULL, 0, layer, &r->table));
    if (r->group) {
        look_at_tables(r);
        if (r->rows > 0) r->p.vocab = r->rows;
        return EMBLA_OK;
    }
    return need(r, (names){"vocab_size_per_layer_input", NULL}, &r->p.vocab);
}

/* ---- which of them ---- */

static bool says(reading *r, names called)
{
    int64_t value;
    bool found;
    return number(r, called, &value, &found) != EMBLA_OK || found;
}

static embla_status nothing(const reading *r)
{
    return embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s says nothing of n-grams or per-layer rows",
                      r->cp->shown);
}

static embla_status open_config(reading *r, int32_t layer, const embla_fold *fold)
{
    static const char *const ratios[] = {"ngram_vocab_size_ratio", "oe_vocab_size_ratio", NULL};
    char key[200];
    double ratio;
    if (says(r, (names){"engram_vocab_size", "engram_max_ngram_size", NULL}))
        return open_engram_config(r, layer, fold);
    if (fold)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%.200s: a fold goes with engram only", r->cp->shown);
    if (says(r, (names){"ngram_vocab_size_base", "heads_per_ngram", NULL}))
        return open_qwen_config(r, layer);
    for (size_t i = 0; ratios[i]; i++)
        for (int n = 0; place(r, ratios[i], n, key); n++)
            if (embla_checkpoint_real(r->cp, key, &ratio) == EMBLA_OK)
                return open_longcat(r, layer, ratio);
    if (says(r, (names){"vocab_size_per_layer_input", NULL})) return open_identity(r, layer);
    return nothing(r);
}

static embla_status open_gguf(reading *r, int32_t layer, const embla_fold *fold)
{
    const char *arch = embla_checkpoint_text(r->cp, "general.architecture");
    char group[128];
    if (!arch || strlen(arch) > 64) return nothing(r);
    (void)snprintf(group, sizeof group, "%s.engram.", arch);
    r->group = group;
    embla_status status = EMBLA_OK;
    if (says(r, (names){"max_ngram_size", "ngram_size", NULL})) {
        status = open_engram_gguf(r, layer, fold);
    } else if (fold) {
        status =
            embla_fail(EMBLA_ERR_ARGUMENT, "%.200s: a fold goes with engram only", r->cp->shown);
    } else {
        (void)snprintf(group, sizeof group, "%s.ple.", arch);
        if (says(r, (names){"ngram_size", NULL})) {
            status = open_qwen_gguf(r, layer);
        } else {
            (void)snprintf(group, sizeof group, "%s.", arch);
            bool per_layer = says(r, (names){"embedding_length_per_layer_input", NULL});
            status = per_layer ? open_identity(r, layer) : nothing(r);
        }
    }
    r->group = NULL;
    return status;
}

/* The hasher of what was read; what is wrong with it is wrong with the file. */
static embla_status make(reading *r, embla_ngram **out)
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
        (void)snprintf(sentence, sizeof sentence, "%s", embla_error());
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: %s", r->cp->shown, sentence);
    }
    EMBLA_TRY(status);
    if (r->rows > 0 && (r->exactly ? r->rows != made->rows : r->rows < made->used)) {
        (void)snprintf(text, sizeof text,
                       "its table has %" PRId64 " rows, and by the rules %" PRId64, r->rows,
                       r->exactly ? made->rows : made->used);
        embla_ngram_free(made);
        return wrong(r, text);
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
    if (status == EMBLA_OK) status = make(&r, out);
    embla_fold_free(r.own);
    embla_arena_free(&r.arena);
    return status;
}
