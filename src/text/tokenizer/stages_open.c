/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the normalizers, pre-tokenizers and added tokens of a tokenizer.json. A Sequence, however
 * deep, becomes one list. A type that is not known is an error that names it. */
#include "tokenizer/stages.h"

#include <stdio.h>
#include <string.h>

#include "tokenizer/grow.h"

/* ---- helpers for values ---- */

embla_status embla_stage_wrong(const embla_tokenizer *t, const char *type, const char *what)
{
    return embla_fail(EMBLA_ERR_FORMAT, "%.256s: %.64s: %s", t->name, type, what);
}

embla_status embla_stage_unknown(const embla_tokenizer *t, const char *what, const char *type)
{
    return embla_fail(EMBLA_ERR_UNSUPPORTED, "%.256s: the %s '%.64s' is not one that Embla has",
                      t->name, what, type);
}

void embla_pipeline_say(embla_tokenizer *t, const char *name)
{
    size_t used = strlen(t->pipeline), left = sizeof t->pipeline - used;
    (void)snprintf(t->pipeline + used, left, "%s%.64s", used > 0 ? ", " : "", name);
}

const char *embla_stage_type(const embla_json_value *value)
{
    const char *type = embla_json_string(embla_json_get(value, "type"), NULL);
    return type ? type : "";
}

bool embla_stage_flag(const embla_json_value *value, const char *key, bool usual)
{
    embla_json_kind kind = embla_json_what(embla_json_get(value, key));
    if (kind == EMBLA_JSON_TRUE) return true;
    return kind == EMBLA_JSON_FALSE ? false : usual;
}

embla_status embla_stage_text(embla_tokenizer *t, const embla_json_value *value, const char *key,
                              embla_name *out)
{
    size_t length = 0;
    const char *text = embla_json_string(embla_json_get(value, key), &length);
    if (!text)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: %.64s has no string '%s'", t->name,
                          embla_stage_type(value), key);
    out->length = (uint32_t)length;
    return embla_arena_text(&t->arena, text, length, &out->bytes);
}

embla_status embla_stages_each(embla_tokenizer *t, const embla_json_value *value, const char *list,
                               embla_stage_reader *read)
{
    const embla_json_value *later[64];
    const embla_json_value *at = embla_json_what(value) == EMBLA_JSON_NULL ? NULL : value;
    size_t depth = 0;
    while (at || depth > 0) {
        if (!at) {
            at = later[--depth];
            continue;
        }
        const embla_json_value *next = at == value ? NULL : embla_json_after(at);
        if (strcmp(embla_stage_type(at), "Sequence") == 0) {
            if (depth == sizeof later / sizeof later[0])
                return embla_stage_wrong(t, "Sequence", "nested more than 64 deep");
            later[depth++] = next;
            at = embla_json_item(embla_json_get(at, list), 0);
            continue;
        }
        EMBLA_TRY(read(t, at, embla_stage_type(at)));
        embla_pipeline_say(t, embla_stage_type(at));
        at = next;
    }
    return EMBLA_OK;
}

embla_status embla_stage_pattern(embla_tokenizer *t, const embla_json_value *value,
                                 embla_pattern *out)
{
    const embla_json_value *pattern = embla_json_get(value, "pattern");
    size_t length = 0;
    const char *regex = embla_json_string(embla_json_get(pattern, "Regex"), &length);
    if (!regex) {
        out->kind = EMBLA_PATTERN_TEXT;
        return embla_stage_text(t, pattern, "String", &out->text);
    }
    out->kind = EMBLA_PATTERN_SCAN;
    out->scan = embla_scanner_of(regex, length, &out->first);
    if (out->scan) return EMBLA_OK;
    EMBLA_TRY(embla_onig_new(regex, length, t->name, &out->onig));
    out->kind = EMBLA_PATTERN_ONIG;
    return EMBLA_OK;
}

/* ---- normalizers ---- */

static embla_status new_normal(embla_tokenizer *t, embla_normal_kind kind, embla_normal **out)
{
    void *list = t->normals;
    EMBLA_TRY(embla_arena_grow(&t->arena, sizeof *t->normals, t->normal_count, "normalizers", &list,
                               &t->normal_room));
    t->normals = list;
    *out = &t->normals[t->normal_count++];
    **out = (embla_normal){.kind = kind};
    return EMBLA_OK;
}

static embla_status add_normal(embla_tokenizer *t, embla_normal_kind kind, uint32_t mask)
{
    embla_normal *stage = NULL;
    EMBLA_TRY(new_normal(t, kind, &stage));
    stage->mask = mask;
    embla_normal_prepare(stage);
    return EMBLA_OK;
}

static embla_status read_bert(embla_tokenizer *t, const embla_json_value *value)
{
    bool lower = embla_stage_flag(value, "lowercase", true);
    bool accents = embla_stage_flag(value, "strip_accents", lower);
    if (embla_stage_flag(value, "clean_text", true))
        EMBLA_TRY(add_normal(t, EMBLA_NORMAL_CLEAN, 0));
    if (embla_stage_flag(value, "handle_chinese_chars", true))
        EMBLA_TRY(add_normal(t, EMBLA_NORMAL_HAN, 0));
    if (accents) {
        EMBLA_TRY(add_normal(t, EMBLA_NORMAL_NFD, 0));
        EMBLA_TRY(add_normal(t, EMBLA_NORMAL_DROP, EMBLA_CHAR_BERT_ACCENT));
    }
    return lower ? add_normal(t, EMBLA_NORMAL_LOWER, 0) : EMBLA_OK;
}

static embla_status read_replace(embla_tokenizer *t, const embla_json_value *value)
{
    embla_normal *stage = NULL;
    EMBLA_TRY(new_normal(t, EMBLA_NORMAL_REPLACE, &stage));
    EMBLA_TRY(embla_stage_text(t, value, "content", &stage->content));
    return embla_stage_pattern(t, value, &stage->pattern);
}

static embla_status read_charsmap(embla_tokenizer *t, const embla_json_value *value)
{
    embla_normal *stage = NULL;
    size_t length = 0;
    const char *text = embla_json_string(embla_json_get(value, "precompiled_charsmap"), &length);
    if (!text || length == 0) return EMBLA_OK; /* null and "" change nothing */
    EMBLA_TRY(new_normal(t, EMBLA_NORMAL_CHARSMAP, &stage));
    return embla_charsmap_parse(t, text, length, &stage->map);
}

static embla_status read_normal(embla_tokenizer *t, const embla_json_value *value, const char *type)
{
    static const struct {
        const char *type;
        embla_normal_kind kind;
        uint32_t mask;
    } simple[] = {
        {"Lowercase", EMBLA_NORMAL_LOWER, 0},
        {"NFC", EMBLA_NORMAL_NFC, 0},
        {"NFD", EMBLA_NORMAL_NFD, 0},
        {"NFKC", EMBLA_NORMAL_NFKC, 0},
        {"NFKD", EMBLA_NORMAL_NFKD, 0},
        {"Nmt", EMBLA_NORMAL_NMT, 0},
        {"ByteLevel", EMBLA_NORMAL_BYTES, 0},
        {"StripAccents", EMBLA_NORMAL_DROP, EMBLA_CHAR_ACCENT},
    };
    embla_normal *stage = NULL;
    for (size_t i = 0; i < sizeof simple / sizeof simple[0]; i++)
        if (strcmp(type, simple[i].type) == 0) return add_normal(t, simple[i].kind, simple[i].mask);
    if (strcmp(type, "BertNormalizer") == 0) return read_bert(t, value);
    if (strcmp(type, "Replace") == 0) return read_replace(t, value);
    if (strcmp(type, "Precompiled") == 0) return read_charsmap(t, value);
    if (strcmp(type, "Prepend") == 0) {
        EMBLA_TRY(new_normal(t, EMBLA_NORMAL_PREPEND, &stage));
        return embla_stage_text(t, value, "prepend", &stage->content);
    }
    if (strcmp(type, "Strip") == 0) {
        EMBLA_TRY(new_normal(t, EMBLA_NORMAL_STRIP, &stage));
        stage->left = embla_stage_flag(value, "strip_left", true);
        stage->right = embla_stage_flag(value, "strip_right", true);
        return EMBLA_OK;
    }
    return embla_stage_unknown(t, "normalizer", type);
}

embla_status embla_normals_parse(embla_tokenizer *t, const embla_json_value *value)
{
    EMBLA_TRY(embla_stages_each(t, value, "normalizers", read_normal));
    return embla_normals_join(t);
}

/* ---- pre-tokenizers ---- */

static embla_status new_pre(embla_tokenizer *t, embla_pre_kind kind, embla_pre **out)
{
    void *list = t->pres;
    EMBLA_TRY(embla_arena_grow(&t->arena, sizeof *t->pres, t->pre_count, "pre-tokenizers", &list,
                               &t->pre_room));
    t->pres = list;
    *out = &t->pres[t->pre_count++];
    **out = (embla_pre){.kind = kind};
    return EMBLA_OK;
}

static embla_status add_chars(embla_tokenizer *t, uint32_t mask, embla_split_behavior behavior)
{
    embla_pre *stage = NULL;
    EMBLA_TRY(new_pre(t, EMBLA_PRE_SPLIT, &stage));
    stage->pattern = embla_pattern_chars(mask);
    stage->behavior = behavior;
    return EMBLA_OK;
}

static embla_status read_behavior(const embla_tokenizer *t, const embla_json_value *value,
                                  const char *usual, embla_split_behavior *out)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const char *name = embla_json_string(embla_json_get(value, "behavior"), NULL);
    if (!name) name = usual;
    for (int i = 0; name && i < 5; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (embla_split_behavior)i;
            return EMBLA_OK;
        }
    return embla_stage_wrong(t, embla_stage_type(value), "its behavior is not one that exists");
}

/* After ByteLevel a pattern sees mapped bytes, so its string becomes bytes. */
static embla_status unmap_pattern(embla_tokenizer *t, embla_pattern *p)
{
    char *bytes = NULL;
    size_t count = 0;
    if (p->kind == EMBLA_PATTERN_ONIG)
        return embla_stage_wrong(t, "Split",
                                 "a regular expression that Embla has no scanner for "
                                 "cannot follow ByteLevel");
    if (!t->byte_level || p->kind != EMBLA_PATTERN_TEXT) return EMBLA_OK;
    EMBLA_TRY(embla_arena_many(&t->arena, p->text.length + 1, 1, "a pattern", &bytes));
    if (!embla_unmap(p->text.bytes, p->text.length, bytes, &count)) count = 0; /* never matches */
    p->text = (embla_name){bytes, (uint32_t)count, 0};
    return EMBLA_OK;
}

static embla_status read_split(embla_tokenizer *t, const embla_json_value *value)
{
    embla_pre *stage = NULL;
    EMBLA_TRY(new_pre(t, EMBLA_PRE_SPLIT, &stage));
    EMBLA_TRY(read_behavior(t, value, NULL, &stage->behavior));
    stage->invert = embla_stage_flag(value, "invert", false);
    EMBLA_TRY(embla_stage_pattern(t, value, &stage->pattern));
    return t->byte_level ? unmap_pattern(t, &stage->pattern) : EMBLA_OK;
}

static embla_status read_bytes(embla_tokenizer *t, const embla_json_value *value)
{
    embla_pre *stage = NULL;
    if (embla_json_what(embla_json_get(value, "trim_offsets")) == EMBLA_JSON_NONE)
        return embla_stage_wrong(t, "ByteLevel", "it has no trim_offsets");
    if (t->byte_level) return embla_stage_wrong(t, "ByteLevel", "it occurs twice");
    EMBLA_TRY(new_pre(t, EMBLA_PRE_BYTES, &stage));
    stage->prefix_space = embla_stage_flag(value, "add_prefix_space", true);
    stage->use_regex = embla_stage_flag(value, "use_regex", true);
    t->byte_level = true;
    return EMBLA_OK;
}

static embla_status read_scheme(const embla_tokenizer *t, const embla_json_value *value,
                                embla_prepend *out)
{
    static const char *const names[] = {"never", "first", "always"};
    const char *name = embla_json_string(embla_json_get(value, "prepend_scheme"), NULL);
    *out = EMBLA_PREPEND_ALWAYS;
    for (int i = 0; name && i < 3; i++)
        if (strcmp(name, names[i]) == 0) *out = (embla_prepend)i;
    if (name && strcmp(name, names[*out]) != 0)
        return embla_stage_wrong(t, "Metaspace", "prepend_scheme is not always, first or never");
    if (!embla_stage_flag(value, "add_prefix_space", true) && *out != EMBLA_PREPEND_NEVER)
        return embla_stage_wrong(t, "Metaspace",
                                 "add_prefix_space is false, but prepend_scheme is not never");
    return EMBLA_OK;
}

static embla_status read_metaspace(embla_tokenizer *t, const embla_json_value *value)
{
    embla_pre *stage = NULL;
    if (t->byte_level) return embla_stage_wrong(t, "Metaspace", "it cannot follow ByteLevel");
    EMBLA_TRY(new_pre(t, EMBLA_PRE_METASPACE, &stage));
    EMBLA_TRY(read_scheme(t, value, &stage->prepend));
    EMBLA_TRY(embla_stage_text(t, value, "replacement", &stage->replacement));
    if (stage->replacement.length == 0 ||
        embla_utf8_length(stage->replacement.bytes, stage->replacement.length) !=
            stage->replacement.length)
        return embla_stage_wrong(t, "Metaspace", "its replacement is not one character");
    stage->split = embla_stage_flag(value, "split", true);
    stage->behavior = EMBLA_SPLIT_NEXT;
    stage->pattern = (embla_pattern){.kind = EMBLA_PATTERN_TEXT, .text = stage->replacement};
    t->need_spans = t->need_spans || stage->prepend == EMBLA_PREPEND_FIRST;
    return EMBLA_OK;
}

static embla_status read_fixed(embla_tokenizer *t, const embla_json_value *value)
{
    embla_pre *stage = NULL;
    int64_t length = 5;
    (void)embla_json_integer(embla_json_get(value, "length"), &length);
    if (length < 1) return embla_stage_wrong(t, "FixedLength", "its length is below 1");
    EMBLA_TRY(new_pre(t, EMBLA_PRE_FIXED, &stage));
    stage->length = embla_size_most((uint64_t)length);
    return EMBLA_OK;
}

static embla_status read_words(embla_tokenizer *t)
{
    embla_pre *stage = NULL;
    EMBLA_TRY(new_pre(t, EMBLA_PRE_SPLIT, &stage));
    stage->pattern =
        (embla_pattern){.kind = EMBLA_PATTERN_SCAN, .scan = embla_scan_words, .first = -1};
    stage->behavior = EMBLA_SPLIT_REMOVED;
    stage->invert = true;
    return EMBLA_OK;
}

static embla_status read_delimiter(embla_tokenizer *t, const embla_json_value *value)
{
    embla_pre *stage = NULL;
    EMBLA_TRY(new_pre(t, EMBLA_PRE_SPLIT, &stage));
    stage->pattern.kind = EMBLA_PATTERN_TEXT;
    stage->behavior = EMBLA_SPLIT_REMOVED;
    EMBLA_TRY(embla_stage_text(t, value, "delimiter", &stage->pattern.text));
    return t->byte_level ? unmap_pattern(t, &stage->pattern) : EMBLA_OK;
}

static embla_status read_pre(embla_tokenizer *t, const embla_json_value *value, const char *type)
{
    embla_pre *stage = NULL;
    embla_split_behavior behavior = EMBLA_SPLIT_ISOLATED;
    if (strcmp(type, "BertPreTokenizer") == 0 && !t->byte_level)
        return new_pre(t, EMBLA_PRE_BERT, &stage);
    if (strcmp(type, "ByteLevel") == 0) return read_bytes(t, value);
    if (strcmp(type, "Split") == 0) return read_split(t, value);
    if (strcmp(type, "Metaspace") == 0) return read_metaspace(t, value);
    if (strcmp(type, "FixedLength") == 0) return read_fixed(t, value);
    if (strcmp(type, "UnicodeScripts") == 0) return new_pre(t, EMBLA_PRE_SCRIPTS, &stage);
    if (strcmp(type, "Whitespace") == 0) return read_words(t);
    if (strcmp(type, "CharDelimiterSplit") == 0) return read_delimiter(t, value);
    if (strcmp(type, "WhitespaceSplit") == 0)
        return add_chars(t, EMBLA_CHAR_WHITE, EMBLA_SPLIT_REMOVED);
    if (strcmp(type, "Punctuation") == 0) {
        EMBLA_TRY(read_behavior(t, value, "Isolated", &behavior));
        return add_chars(t, EMBLA_CHAR_PUNCT, behavior);
    }
    if (strcmp(type, "Digits") == 0) {
        bool each = embla_stage_flag(value, "individual_digits", false);
        return add_chars(t, EMBLA_CHAR_NUMERIC,
                         each ? EMBLA_SPLIT_ISOLATED : EMBLA_SPLIT_CONTIGUOUS);
    }
    return embla_stage_unknown(t, "pre-tokenizer", type);
}

embla_status embla_pres_parse(embla_tokenizer *t, const embla_json_value *value)
{
    return embla_stages_each(t, value, "pretokenizers", read_pre);
}

/* ---- added tokens ---- */

embla_status embla_added_parse(embla_tokenizer *t, const embla_json_value *value)
{
    const embla_json_value *at = embla_json_item(value, 0);
    t->added_count = 0;
    EMBLA_TRY(embla_arena_many(&t->arena, embla_json_count(value), sizeof *t->added, "added tokens",
                               &t->added));
    for (; at; at = embla_json_after(at)) {
        embla_added *a = &t->added[t->added_count++];
        EMBLA_TRY(embla_stage_text(t, at, "content", &a->content));
        a->special = embla_stage_flag(at, "special", false);
        a->single_word = embla_stage_flag(at, "single_word", false);
        a->left = embla_stage_flag(at, "lstrip", false);
        a->right = embla_stage_flag(at, "rstrip", false);
        a->normalized = embla_stage_flag(at, "normalized", !a->special);
    }
    return EMBLA_OK;
}
