/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a checkpoint that describe n-grams: read, and compared with what the rules give. */
#include "ngram/ngram_keys.h"

#include <stdio.h>

embla_status embla_keys_fail(const embla_keys *r, const char *what)
{
    return embla_fail(EMBLA_ERR_FORMAT, "%.200s describes n-grams, but %s", r->cp->shown, what);
}

bool embla_keys_name(const embla_keys *r, const char *name, int n, char key[200])
{
    const char *before = r->group ? r->group : n == 0 ? "" : "text_config.";
    int length = snprintf(key, 200, "%s%s", before, name);
    return n < (r->group ? 1 : 2) && length > 0 && length < 200;
}

embla_status embla_keys_integer(const embla_keys *r, embla_key_names called, int64_t *out,
                                bool *found)
{
    char key[200];
    *found = false;
    for (size_t i = 0; called[i]; i++)
        for (int n = 0; embla_keys_name(r, called[i], n, key); n++) {
            embla_status status = embla_checkpoint_integer(r->cp, key, out);
            *found = status == EMBLA_OK;
            if (status != EMBLA_ERR_NOT_FOUND) return status;
        }
    return EMBLA_OK;
}

embla_status embla_keys_need(const embla_keys *r, embla_key_names called, int64_t *out)
{
    char text[128];
    bool found;
    EMBLA_TRY(embla_keys_integer(r, called, out, &found));
    if (found && *out >= 0 && *out <= INT32_MAX) return EMBLA_OK;
    if (found)
        (void)snprintf(text, sizeof text, "'%.60s' is %" PRId64 ", not from 0 to %d", called[0],
                       *out, INT32_MAX);
    else
        (void)snprintf(text, sizeof text, "'%.60s' is missing", called[0]);
    return embla_keys_fail(r, text);
}

embla_status embla_keys_need32(const embla_keys *r, embla_key_names called, int32_t *out)
{
    int64_t value = 0;
    EMBLA_TRY(embla_keys_need(r, called, &value));
    *out = (int32_t)value;
    return EMBLA_OK;
}

embla_status embla_keys_list(embla_keys *r, embla_key_names called, const int64_t **out,
                             size_t *count)
{
    char key[200];
    int64_t *numbers = NULL;
    *out = NULL;
    *count = 0;
    for (size_t i = 0; called[i]; i++)
        for (int n = 0; embla_keys_name(r, called[i], n, key); n++) {
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

embla_status embla_keys_layers(embla_keys *r, embla_key_names called, int64_t first, int32_t layer)
{
    const int64_t *numbers;
    size_t count;
    EMBLA_TRY(embla_keys_list(r, called, &numbers, &count));
    if (count > EMBLA_NGRAM_LAYERS_MOST)
        return embla_keys_fail(r, "more than 256 layers have a table");
    for (size_t i = 0; numbers && i < count; i++) {
        if (numbers[i] < first || numbers[i] > INT32_MAX)
            return embla_keys_fail(r, "the number of a layer is out of range");
        r->layers[i] = (int32_t)(numbers[i] - first);
    }
    r->layer_count = count;
    EMBLA_TRY(embla_ngram_choose(r->cp->shown, r->layers, count, layer, &r->table));
    return EMBLA_OK;
}

embla_status embla_keys_part(const embla_keys *r, const char *what, const int64_t *numbers,
                             size_t count, size_t each, const int64_t **out)
{
    char text[128];
    size_t tables = r->layer_count > 0 ? r->layer_count : 1;
    if (!numbers) return EMBLA_OK;
    if (count != tables * each) {
        (void)snprintf(text, sizeof text, "it has %zu %s; %zu tables need %zu each", count, what,
                       tables, each);
        return embla_keys_fail(r, text);
    }
    *out = numbers + r->table * each;
    return EMBLA_OK;
}

size_t embla_keys_rows_per_token(const embla_ngram_parameters *p)
{
    return p->orders > 1 && p->rows_per_ngram > 0
               ? ((size_t)p->orders - 1) * (size_t)p->rows_per_ngram
               : 0;
}

embla_status embla_keys_check_shape(const embla_keys *r)
{
    const embla_ngram_parameters *p = &r->p;
    char text[128];
    if (p->orders >= 2 && p->orders <= EMBLA_NGRAM_ORDERS_MOST && p->rows_per_ngram >= 1 &&
        p->rows_per_ngram <= EMBLA_NGRAM_ROWS_MOST)
        return EMBLA_OK;
    (void)snprintf(text, sizeof text,
                   "it has orders up to %" PRId32 " with %" PRId32
                   " rows each; supported: 2 to %d and 1 to %d",
                   p->orders, p->rows_per_ngram, (int)EMBLA_NGRAM_ORDERS_MOST,
                   (int)EMBLA_NGRAM_ROWS_MOST);
    return embla_keys_fail(r, text);
}

static embla_status compare_constants(const embla_keys *r, const char *what, const int64_t *stated,
                                      const int64_t *derived, size_t count)
{
    char text[160];
    for (size_t i = 0; i < count; i++)
        if (stated[i] != derived[i]) {
            (void)snprintf(text, sizeof text,
                           "%s %zu is %" PRId64
                           "; computed from its parameters it would be %" PRId64,
                           what, i, stated[i], derived[i]);
            return embla_keys_fail(r, text);
        }
    return EMBLA_OK;
}

embla_status embla_keys_check_sizes(const embla_keys *r)
{
    int64_t derived[(EMBLA_NGRAM_ORDERS_MOST - 1) * EMBLA_NGRAM_ROWS_MOST];
    size_t rows_per_token = embla_keys_rows_per_token(&r->p);
    if (!r->p.sizes || r->p.base < 1) return EMBLA_OK;
    EMBLA_TRY(embla_ngram_primes(r->p.base, r->table * rows_per_token, rows_per_token, derived));
    return compare_constants(r, "the size of hash", r->p.sizes, derived, rows_per_token);
}

embla_status embla_keys_check_multipliers(const embla_keys *r, int64_t seed)
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

embla_status embla_keys_eos(embla_keys *r, int32_t *out)
{
    const int64_t *several;
    size_t count;
    EMBLA_TRY(embla_keys_list(r, (embla_key_names){"eos_token_id", NULL}, &several, &count));
    if (!several) return embla_keys_need32(r, (embla_key_names){"eos_token_id", NULL}, out);
    if (several[0] < 0 || several[0] > INT32_MAX)
        return embla_keys_fail(r, "its EOS is not a token");
    *out = (int32_t)several[0];
    return EMBLA_OK;
}
