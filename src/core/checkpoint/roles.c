/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the role of each tensor by the names that architectures use.
 *
 * A rule is compared with the end of a name, in whole components between dots. The components
 * before it must be prefixes that wrappers and families add (see `outer`). So a copy inside a
 * layer (`model.layers.61.embed_tokens.weight`) or a table of a vision tower never becomes the
 * token table. A tensor that no rule names has no role; nothing is guessed.
 */
#include <stdio.h>
#include <string.h>

#include "checkpoint/checkpoint.h"

typedef enum {
    SUFFIX, /* only outer prefixes come before it */
    WHOLE,  /* nothing comes before it */
    LAYER   /* "layers.N." or "blk.N." comes before it, and anything before that */
} match;

typedef struct {
    embla_role role;
    match where;
    const char *name;
} rule;

/* The first matching rule decides. */
static const rule rules[] = {
    {EMBLA_ROLE_TOKENS, WHOLE, "token_embd.weight"}, /* GGUF */
    {EMBLA_ROLE_TOKENS, SUFFIX, "wte.weight"},
    {EMBLA_ROLE_TOKENS, SUFFIX, "embed_tokens.weight"},
    {EMBLA_ROLE_TOKENS, SUFFIX, "embed_in.weight"},
    {EMBLA_ROLE_TOKENS, SUFFIX, "tok_embeddings.weight"},
    {EMBLA_ROLE_TOKENS, SUFFIX, "word_embeddings.weight"},
    {EMBLA_ROLE_TOKENS, SUFFIX, "shared.weight"},                     /* T5, BART */
    {EMBLA_ROLE_TOKENS, SUFFIX, "transformer.word_embedding.weight"}, /* XLNet */
    {EMBLA_ROLE_TOKENS, SUFFIX, "transformer.w.weight"},              /* CTRL */
    {EMBLA_ROLE_TOKENS, SUFFIX, "backbone.embeddings.weight"},        /* Mamba */
    {EMBLA_ROLE_TOKENS, SUFFIX, "backbone.embedding.weight"},
    {EMBLA_ROLE_TOKENS, SUFFIX, "rwkv.embeddings.weight"},
    {EMBLA_ROLE_TOKENS, WHOLE, "model.embeddings.weight"}, /* RWKV 7 */
    {EMBLA_ROLE_TOKENS, WHOLE, "layers.0.wte.weight"},     /* phi-1 */
    {EMBLA_ROLE_TOKENS, WHOLE, "embeddings"},              /* Model2Vec */
    {EMBLA_ROLE_TOKENS, WHOLE, "embedding.weight"},        /* static models */
    {EMBLA_ROLE_TOKENS, WHOLE, "0"},
    {EMBLA_ROLE_TOKENS, WHOLE, "wte"},     /* llm.c, microGPT */
    {EMBLA_ROLE_TOKENS, WHOLE, "vectors"}, /* word vectors */
    {EMBLA_ROLE_TOKENS, WHOLE, "array"},   /* npy */
    {EMBLA_ROLE_TOKENS, WHOLE, "input"},   /* fastText */
    {EMBLA_ROLE_POSITIONS, WHOLE, "position_embd.weight"},
    {EMBLA_ROLE_POSITIONS, SUFFIX, "wpe.weight"},
    {EMBLA_ROLE_POSITIONS, SUFFIX, "position_embeddings.weight"},
    {EMBLA_ROLE_POSITIONS, SUFFIX, "embed_positions.weight"},
    {EMBLA_ROLE_POSITIONS, WHOLE, "wpe"},
    {EMBLA_ROLE_HEAD, WHOLE, "output.weight"}, /* GGUF, Meta, InternLM2 */
    {EMBLA_ROLE_HEAD, SUFFIX, "lm_head.weight"},
    {EMBLA_ROLE_HEAD, SUFFIX, "embed_out.weight"},
    {EMBLA_ROLE_HEAD, SUFFIX, "model.transformer.ff_out.weight"}, /* OLMo */
    {EMBLA_ROLE_HEAD, SUFFIX, "cls.predictions.decoder.weight"},
    {EMBLA_ROLE_HEAD, SUFFIX, "predictions.decoder.weight"},
    {EMBLA_ROLE_HEAD, SUFFIX, "lm_head.decoder.weight"},
    {EMBLA_ROLE_HEAD, SUFFIX, "lm_head.linear.weight"},
    {EMBLA_ROLE_HEAD, SUFFIX, "generator_lm_head.weight"},
    {EMBLA_ROLE_HEAD, SUFFIX, "vocab_projector.weight"},
    {EMBLA_ROLE_HEAD, SUFFIX, "lm_loss.weight"},
    {EMBLA_ROLE_HEAD, SUFFIX, "transformer.output_layer.weight"},
    {EMBLA_ROLE_HEAD, WHOLE, "head.weight"},    /* RWKV */
    {EMBLA_ROLE_HEAD, WHOLE, "decoder.weight"}, /* ModernBERT */
    {EMBLA_ROLE_HEAD, WHOLE, "lm_head"},        /* microGPT */
    {EMBLA_ROLE_HEAD_BIAS, WHOLE, "output.bias"},
    {EMBLA_ROLE_HEAD_BIAS, SUFFIX, "lm_head.bias"},
    {EMBLA_ROLE_HEAD_BIAS, SUFFIX, "embed_out.bias"},
    {EMBLA_ROLE_HEAD_BIAS, SUFFIX, "lm_head.linear.bias"},
    {EMBLA_ROLE_HEAD_BIAS, SUFFIX, "lm_loss.bias"},
    {EMBLA_ROLE_HEAD_BIAS, SUFFIX, "cls.predictions.bias"},
    {EMBLA_ROLE_HEAD_BIAS, SUFFIX, "predictions.bias"},
    {EMBLA_ROLE_HEAD_BIAS, SUFFIX, "generator_lm_head.bias"},
    {EMBLA_ROLE_HEAD_BIAS, SUFFIX, "vocab_projector.bias"},
    {EMBLA_ROLE_HEAD_BIAS, SUFFIX, "final_logits_bias"},
    {EMBLA_ROLE_HEAD_BIAS, WHOLE, "decoder.bias"},
    {EMBLA_ROLE_PER_LAYER, SUFFIX, "embed_tokens_per_layer.weight"},
    {EMBLA_ROLE_PER_LAYER, WHOLE, "per_layer_token_embd.weight"},
    {EMBLA_ROLE_TOKENS_COPY, LAYER, "embed_tokens.weight"}, /* DeepSeek's MTP layers */
    {EMBLA_ROLE_TOKENS_COPY, LAYER, "nextn.embed_tokens.weight"},
    {EMBLA_ROLE_HEAD_COPY, LAYER, "shared_head.head.weight"},
    {EMBLA_ROLE_HEAD_COPY, LAYER, "nextn.shared_head_head.weight"},
    {EMBLA_ROLE_TOKEN_TYPES, SUFFIX, "token_type_embeddings.weight"},
    {EMBLA_ROLE_TOKEN_TYPES, WHOLE, "token_types.weight"},
};
enum { RULES = sizeof rules / sizeof rules[0] };

/* Components that may come before a SUFFIX. */
static const char *const outer[] = {
    "model",   "transformer", "bert",      "roberta",  "mpnet",      "distilbert",
    "electra", "albert",      "deberta",   "gpt_neox", "backbone",   "language_model",
    "rwkv",    "base_model",  "_orig_mod", "module",   "encoder",    "decoder",
    "cls",     "embeddings",  "embedding", "embd",     "text_model", "generator"};

static bool is_outer(const char *component, size_t length)
{
    for (size_t i = 0; i < sizeof outer / sizeof outer[0]; i++)
        if (strlen(outer[i]) == length && memcmp(outer[i], component, length) == 0) return true;
    return false;
}

/* True if the first length bytes, which end with a dot, are only outer prefixes. */
static bool all_outer(const char *front, size_t length)
{
    while (length > 0) {
        const char *dot = memchr(front, '.', length);
        size_t part = (size_t)(dot - front);
        if (!is_outer(front, part)) return false;
        front += part + 1;
        length -= part + 1;
    }
    return true;
}

/* True if the first length bytes end with "layers.N." or "blk.N.". */
static bool in_layer(const char *front, size_t length)
{
    size_t end = length > 0 ? length - 1 : 0, at = end;
    while (at > 0 && front[at - 1] >= '0' && front[at - 1] <= '9') at--;
    if (at == end || at == 0 || front[at - 1] != '.') return false;
    front += at - 1; /* at the dot before the number */
    return (at >= 7 && memcmp(front - 6, "layers", 6) == 0 && (at == 7 || front[-7] == '.')) ||
           (at >= 4 && memcmp(front - 3, "blk", 3) == 0 && (at == 4 || front[-4] == '.'));
}

static bool matches(const rule *r, const char *name)
{
    size_t length = strlen(name), tail = strlen(r->name);
    if (tail > length || strcmp(name + length - tail, r->name) != 0) return false;
    size_t front = length - tail;
    if (front == 0) return r->where != LAYER;
    if (r->where == WHOLE || name[front - 1] != '.') return false;
    return r->where == SUFFIX ? all_outer(name, front) : in_layer(name, front);
}

/* phi-1 names its head as if it were the last layer: layers.N.linear.weight and .bias. */
static void find_phi1(embla_checkpoint *cp)
{
    long last = -1, number;
    int end;
    if (!embla_names_find(&cp->index, "layers.0.wte.weight", 19)) return;
    for (size_t i = 0; i < cp->count; i++) {
        end = 0;
        if (sscanf(cp->entries[i].name, "layers.%6ld.linear.weight%n", &number, &end) == 1 &&
            end > 0 && cp->entries[i].name[end] == '\0' && number > last)
            last = number;
    }
    if (last < 0) return;
    for (size_t i = 0; i < cp->count; i++) {
        char weight[64], bias[64];
        (void)snprintf(weight, sizeof weight, "layers.%ld.linear.weight", last);
        (void)snprintf(bias, sizeof bias, "layers.%ld.linear.bias", last);
        if (strcmp(cp->entries[i].name, weight) == 0) {
            cp->roles[i] = EMBLA_ROLE_HEAD;
            cp->whys[i] = "layers.N.linear.weight";
        } else if (strcmp(cp->entries[i].name, bias) == 0) {
            cp->roles[i] = EMBLA_ROLE_HEAD_BIAS;
            cp->whys[i] = "layers.N.linear.bias";
        }
    }
}

/* True if the name ends with parent.embed_tokens.weight, e.g. decoder.embed_tokens.weight. */
static bool is_table_of(const char *name, const char *parent)
{
    const char *at = strstr(name, parent);
    return at && (at == name || at[-1] == '.') &&
           strcmp(at + strlen(parent), ".embed_tokens.weight") == 0;
}

/* An encoder-decoder may store the table three times. The token table is the shared one, else the
 * encoder's, else the decoder's; the others are copies. */
static void choose_shared(embla_checkpoint *cp)
{
    size_t shared = cp->count, encoder = cp->count, decoder = cp->count;
    for (size_t i = 0; i < cp->count; i++) {
        if (cp->roles[i] != EMBLA_ROLE_TOKENS) continue;
        if (strcmp(cp->whys[i], "shared.weight") == 0) shared = i;
        if (is_table_of(cp->entries[i].name, "encoder")) encoder = i;
        if (is_table_of(cp->entries[i].name, "decoder")) decoder = i;
    }
    bool has_shared = shared < cp->count, has_encoder = encoder < cp->count;
    if (has_shared && has_encoder) cp->roles[encoder] = EMBLA_ROLE_TOKENS_COPY;
    if ((has_shared || has_encoder) && decoder < cp->count)
        cp->roles[decoder] = EMBLA_ROLE_TOKENS_COPY;
}

/* Model2Vec may store fewer rows than tokens, with a row number and a weight for each token. */
static void find_mapping(embla_checkpoint *cp)
{
    bool model2vec = embla_names_find(&cp->index, "embeddings", 10) != NULL;
    for (size_t i = 0; model2vec && i < cp->count; i++) {
        bool mapping = strcmp(cp->entries[i].name, "mapping") == 0;
        if (!mapping && strcmp(cp->entries[i].name, "weights") != 0) continue;
        cp->roles[i] = mapping ? EMBLA_ROLE_MAPPING : EMBLA_ROLE_WEIGHTS;
        cp->whys[i] = cp->entries[i].name;
    }
}

/* "FILE::TENSOR" makes that tensor the token table, and no other. */
static embla_status apply_chosen(embla_checkpoint *cp)
{
    const embla_entry *entry = NULL;
    EMBLA_TRY(embla_checkpoint_named(cp, cp->chosen, &entry));
    embla_role role = cp->roles[entry - cp->entries];
    for (size_t i = 0; i < cp->count; i++)
        if (cp->roles[i] == EMBLA_ROLE_TOKENS) cp->roles[i] = EMBLA_ROLE_NONE;
    cp->chosen_role = role;
    cp->roles[entry - cp->entries] = EMBLA_ROLE_TOKENS;
    cp->whys[entry - cp->entries] = "named by the caller";
    return EMBLA_OK;
}

/* If there are several candidates, removes those whose dim differs from config.json's. */
static embla_status drop_other_widths(embla_checkpoint *cp)
{
    static const char *const keys[] = {"hidden_size",
                                       "n_embd",
                                       "d_model",
                                       "embedding_size",
                                       "hidden_dim",
                                       "word_embed_proj_dim",
                                       "text_config.hidden_size"};
    int64_t widths[sizeof keys / sizeof keys[0]];
    size_t known = 0, candidates = 0, fitting = 0;
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        embla_status status = embla_checkpoint_integer(cp, keys[k], &widths[known]);
        if (status == EMBLA_ERR_MEMORY || status == EMBLA_ERR_IO) return status;
        known += status == EMBLA_OK;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < cp->count; i++) {
            const embla_entry *e = &cp->entries[i];
            bool fit = false;
            if (cp->roles[i] != EMBLA_ROLE_TOKENS) continue;
            for (size_t k = 0; k < known; k++)
                fit = fit || (e->rank == 2 && e->shape[1] == (uint64_t)widths[k]);
            if (pass == 0) {
                candidates++;
                fitting += fit;
            } else if (!fit) {
                cp->roles[i] = EMBLA_ROLE_NONE;
            }
        }
        if (candidates < 2 || fitting == 0) break;
    }
    return EMBLA_OK;
}

embla_status embla_roles_find(embla_checkpoint *cp)
{
    bool found = false;
    for (size_t i = 0; i < cp->count; i++) {
        for (size_t r = 0; r < RULES && cp->roles[i] == EMBLA_ROLE_NONE; r++) {
            if (!matches(&rules[r], cp->entries[i].name)) continue;
            cp->roles[i] = rules[r].role;
            cp->whys[i] = rules[r].name;
        }
        /* a table has two dimensions */
        if (cp->roles[i] == EMBLA_ROLE_TOKENS && cp->entries[i].rank != 2 &&
            !(cp->format->one_table && cp->entries[i].rank == 1))
            cp->roles[i] = EMBLA_ROLE_NONE;
        found = found || cp->roles[i] != EMBLA_ROLE_NONE;
    }
    find_phi1(cp);
    find_mapping(cp);
    choose_shared(cp);
    EMBLA_TRY(drop_other_widths(cp));
    /* of a quantized fastText model only the output matrix is read, which is no table of words */
    if (!found && cp->count == 1 && cp->entries[0].rank == 2 &&
        cp->format != &embla_format_fasttext) {
        cp->roles[0] = EMBLA_ROLE_TOKENS;
        cp->whys[0] = "the only tensor";
    }
    return cp->chosen ? apply_chosen(cp) : EMBLA_OK;
}
