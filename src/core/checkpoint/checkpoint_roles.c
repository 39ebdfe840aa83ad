/* SPDX-License-Identifier: Apache-2.0 */
/* Queries about roles: which tensor is the token table or the head, and whether config.json or the
 * architecture ties the two. roles.c assigns the roles when a checkpoint is opened.
 */
#include <stdio.h>
#include <string.h>

#include "checkpoint/checkpoint.h"

const char *embla_role_name(embla_role role)
{
    static const char *const names[] = {"none",        "tokens",    "positions",   "head",
                                        "head bias",   "per layer", "tokens copy", "head copy",
                                        "token types", "mapping",   "weights"};
    size_t n = (size_t)role;
    return n < sizeof names / sizeof names[0] ? names[n] : NULL;
}

/* Writes "name (rows x dim), .." for all tensors with a role, for the message about several. */
static void list_candidates(const embla_checkpoint *cp, embla_role role, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < cp->count; i++) {
        const embla_entry *e = &cp->entries[i];
        if (cp->roles[i] != role || used >= size) continue;
        int more = snprintf(text + used, size - used, "%s%.100s (%" PRIu64 " x %" PRIu64 ")",
                            used > 0 ? ", " : "", e->name, e->rank > 0 ? e->shape[0] : 1,
                            e->rank > 1 ? e->shape[1] : 1);
        used += more > 0 ? (size_t)more : 0;
    }
}

const embla_entry *embla_checkpoint_only(const embla_checkpoint *cp, embla_role role, size_t *count)
{
    const embla_entry *found = NULL;
    *count = 0;
    for (size_t i = 0; i < cp->count; i++) {
        if (cp->roles[i] != role) continue;
        found = &cp->entries[i];
        ++*count;
    }
    return *count == 1 ? found : NULL;
}

/* Finds the head of a checkpoint that stores only the head, and whose flag says that the head is
 * also the token table (case 5). NULL otherwise. */
static const embla_entry *find_inverted(const embla_checkpoint *cp)
{
    const char *where;
    size_t heads;
    const embla_entry *head = embla_checkpoint_only(cp, EMBLA_ROLE_HEAD, &heads);
    if (cp->format == &embla_format_gguf) return NULL; /* GGUF has no such flag */
    return head && embla_roles_tie_flag(cp, &where) == 1 ? head : NULL;
}

embla_status embla_checkpoint_entry(const embla_checkpoint *cp, embla_role role,
                                    const embla_entry **out, const char **why)
{
    char list[400];
    size_t count;
    const embla_entry *found = embla_checkpoint_only(cp, role, &count);
    const char *rule = found ? cp->whys[found - cp->entries] : NULL;
    if (count == 0 && role == EMBLA_ROLE_TOKENS && (found = find_inverted(cp))) {
        rule = "the head, which is stored once and tied (case 5)";
        count = 1;
    }
    if (count > 1) {
        list_candidates(cp, role, list, sizeof list);
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "%.100s: %zu tensors could have the role '%s': %s; choose one with "
                          "'FILE::TENSOR'",
                          cp->shown, count, embla_role_name(role), list);
    }
    if (cp->count == 0)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "%.200s: the file has no tensors, only a vocabulary or metadata",
                          cp->shown);
    if (count == 0)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "%.200s: none of its %zu tensors has a name known for the role '%s'; "
                          "choose one with 'FILE::TENSOR'",
                          cp->shown, cp->count, embla_role_name(role));
    *out = found;
    if (why) *why = rule;
    return EMBLA_OK;
}

embla_status embla_checkpoint_role(const embla_checkpoint *cp, embla_role role, embla_tensor *out,
                                   const char **why)
{
    const embla_entry *entry = NULL;
    EMBLA_NEED_OF("embla_checkpoint_role", "checkpoint", cp);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_checkpoint_entry(cp, role, &entry, why));
    *out = cp->tensors[(size_t)(entry - cp->entries)];
    return EMBLA_OK;
}

/* ---- tied or not: the flag, and what an architecture does without one ---- */

static int flag_of(const embla_json_value *value)
{
    embla_json_kind kind = embla_json_what(value);
    return kind == EMBLA_JSON_TRUE ? 1 : kind == EMBLA_JSON_FALSE ? 0 : -1;
}

int embla_roles_tie_flag(const embla_checkpoint *cp, const char **where)
{
    static const char *const places[][2] = {
        {"tie_word_embeddings = false", "tie_word_embeddings = true"},
        {"text_config.tie_word_embeddings = false", "text_config.tie_word_embeddings = true"},
        {"weight_tying = false", "weight_tying = true"}};
    const embla_json_value *values[] = {
        embla_json_get(cp->config, "tie_word_embeddings"),
        embla_json_get(embla_json_get(cp->config, "text_config"), "tie_word_embeddings"),
        embla_json_get(cp->config, "weight_tying")};
    const char *said;
    for (size_t i = 0; i < 3; i++) {
        int flag = flag_of(values[i]);
        if (flag < 0) continue;
        *where = places[i][flag];
        return flag;
    }
    if ((said = embla_checkpoint_text(cp, "tie_word_embeddings"))) { /* llama2.c's header */
        int flag = strcmp(said, "true") == 0;
        *where = places[0][flag];
        return flag;
    }
    *where = "not set";
    return -1;
}

static bool listed(const char *word, const char *const *list)
{
    for (; word && *list; list++)
        if (strcmp(word, *list) == 0) return true;
    return false;
}

/* architectures[0] says whether this save has an output head at all. */
static bool headless(const embla_checkpoint *cp)
{
    static const char *const heads[] = {
        "LMHead",         "ForCausalLM", "ForConditionalGeneration", "ForMaskedLM",
        "ForPreTraining", "ForLMHead",   "ForCausalLMWithValueHead", "LMModel"};
    const embla_json_value *list = embla_json_get(cp->config, "architectures");
    const char *name = embla_json_string(embla_json_item(list, 0), NULL);
    for (size_t i = 0; name && i < sizeof heads / sizeof heads[0]; i++)
        if (strstr(name, heads[i])) return false;
    return name != NULL;
}

int embla_roles_tie_default(const embla_checkpoint *cp)
{
    static const char *const tied[] = {
        "gpt2",        "gpt_bigcode", "gpt_neo",    "gemma",  "gemma2",       "gemma3",
        "gemma3_text", "gemma3n",     "opt",        "bloom",  "falcon",       "mamba",
        "cohere",      "cohere2",     "xlnet",      "ctrl",   "bert",         "roberta",
        "xlm-roberta", "mpnet",       "modernbert", "albert", "electra",      "distilbert",
        "t5",          "mt5",         "umt5",       "bart",   "gemma3n_text", NULL};
    static const char *const untied[] = {
        "gptj",        "gpt_neox",  "llama", "mistral", "mixtral", "qwen2",       "qwen2_moe",
        "qwen3",       "qwen3_moe", "phi",   "phi3",    "mamba2",  "rwkv",        "deepseek_v2",
        "deepseek_v3", "olmo",      "olmo2", "olmo3",   "granite", "llama4_text", NULL};
    static const char *const gguf_encoders[] = {
        "bert",      "nomic-bert",  "nomic-bert-moe", "jina-bert-v2",    "jina-bert-v3",
        "t5encoder", "modern-bert", "neo-bert",       "gemma-embedding", NULL};
    static const char *const static_tables[] = {
        "embeddings", "embedding.weight", "0", "vectors", "array", "input", NULL};
    const char *type = embla_json_string(embla_json_get(cp->config, "model_type"), NULL);
    const embla_entry *table = NULL;
    if (cp->format->no_model) return -1;
    if (strcmp(cp->format->name, "gguf") == 0)
        return listed(embla_checkpoint_text(cp, "general.architecture"), gguf_encoders) ? -1 : 1;
    if (cp->format->tied) return 1;
    if (headless(cp)) return -1;
    if (listed(type, tied)) return 1;
    if (listed(type, untied)) return 0;
    for (size_t i = 0; i < cp->count; i++)
        if (cp->roles[i] == EMBLA_ROLE_TOKENS) table = &cp->entries[i];
    if (table && listed(table->name, static_tables)) return -1;
    return -2;
}
