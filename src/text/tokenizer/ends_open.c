/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what comes after the model in a tokenizer.json: post-processor, truncation, padding and
 * decoders. */
#include <string.h>

#include "tokenizer/stages.h"

/* ---- post-processors ---- */

static embla_status wrong_template(const embla_tokenizer *t, const char *what)
{
    return embla_stage_wrong(t, "post_processor", what);
}

/* Tokens that a template adds to each text, and its parts. */
enum { TEMPLATE_MOST = 256 };

static embla_status begin_template(embla_tokenizer *t, embla_template *out, size_t parts)
{
    if (out->count > 0) return wrong_template(t, "more than one of them adds tokens");
    if (parts > TEMPLATE_MOST) return wrong_template(t, "it has more than 256 parts");
    return embla_arena_many(&t->arena, parts, sizeof *out->parts, "a template", &out->parts);
}

static void add_text(embla_template *out, uint8_t number, uint8_t type)
{
    out->parts[out->count++] = (embla_template_part){.text = number, .type = type};
}

static void add_tokens(embla_template *out, const int32_t *tokens, size_t count, uint8_t type)
{
    out->parts[out->count++] = (embla_template_part){0, type, tokens, count};
    out->added += count;
}

static embla_status read_token(const embla_tokenizer *t, const embla_json_value *value,
                               int32_t *out)
{
    int64_t number = -1;
    if (!embla_json_integer(value, &number) || number < 0 || number > INT32_MAX)
        return wrong_template(t, "a token is not an integer from 0 to 2^31-1");
    *out = (int32_t)number;
    return EMBLA_OK;
}

/* {"SpecialToken": {"id": "[CLS]"}}: the tokens are in special_tokens. */
static embla_status read_special(embla_tokenizer *t, embla_template *out,
                                 const embla_json_value *all, const char *id, uint8_t type)
{
    const embla_json_value *ids = embla_json_get(embla_json_get(all, id), "ids");
    int32_t *tokens = NULL;
    size_t count = embla_json_count(ids);
    if (count == 0) return wrong_template(t, "special_tokens lacks one that the template uses");
    if (count + out->added > TEMPLATE_MOST)
        return wrong_template(t, "it adds more than 256 tokens to a text");
    EMBLA_TRY(embla_arena_many(&t->arena, count, sizeof *tokens, "a template", &tokens));
    const embla_json_value *at = embla_json_item(ids, 0);
    for (size_t i = 0; i < count; i++, at = embla_json_after(at))
        EMBLA_TRY(read_token(t, at, &tokens[i]));
    add_tokens(out, tokens, count, type);
    return EMBLA_OK;
}

static embla_status read_type(const embla_tokenizer *t, const embla_json_value *part, uint8_t *out)
{
    const embla_json_value *value = embla_json_get(part, "type_id");
    int64_t number = 0;
    if (embla_json_what(value) == EMBLA_JSON_NONE) return EMBLA_OK;
    if (!embla_json_integer(value, &number) || number < 0 || number > UINT8_MAX)
        return wrong_template(t, "a type_id is not an integer from 0 to 255");
    *out = (uint8_t)number;
    return EMBLA_OK;
}

/* "single" or "pair" of a TemplateProcessing. */
static embla_status read_parts(embla_tokenizer *t, const embla_json_value *value, const char *key,
                               embla_template *out)
{
    const embla_json_value *list = embla_json_get(value, key);
    const embla_json_value *special = embla_json_get(value, "special_tokens");
    EMBLA_TRY(begin_template(t, out, embla_json_count(list)));
    for (const embla_json_value *at = embla_json_item(list, 0); at; at = embla_json_after(at)) {
        const embla_json_value *sequence = embla_json_get(at, "Sequence");
        const embla_json_value *part = sequence ? sequence : embla_json_get(at, "SpecialToken");
        const char *name = embla_json_string(embla_json_get(part, "id"), NULL);
        uint8_t type = 0;
        if (!name) return wrong_template(t, "a part of the template has no id");
        EMBLA_TRY(read_type(t, part, &type));
        if (!sequence)
            EMBLA_TRY(read_special(t, out, special, name, type));
        else if (strcmp(name, "A") == 0)
            add_text(out, 1, type);
        else if (strcmp(name, "B") == 0 && out == &t->post.pair)
            add_text(out, 2, type);
        else
            return wrong_template(t, "the template of one text names a second one");
    }
    return EMBLA_OK;
}

/* Between two texts RoBERTa has two of sep, and all of its type ids are 0. */
embla_status embla_post_ends(embla_tokenizer *t, int32_t cls, int32_t sep, bool roberta)
{
    embla_template *const both[] = {&t->post.single, &t->post.pair};
    const uint8_t second = roberta ? 0 : 1;
    int32_t *tokens = NULL;
    EMBLA_TRY(begin_template(t, both[0], 3));
    EMBLA_TRY(begin_template(t, both[1], 6));
    EMBLA_TRY(embla_arena_many(&t->arena, 2, sizeof *tokens, "a template", &tokens));
    tokens[0] = cls;
    tokens[1] = sep;
    for (size_t i = 0; i < 2; i++) {
        add_tokens(both[i], tokens, 1, 0);
        add_text(both[i], 1, 0);
        add_tokens(both[i], tokens + 1, 1, 0);
    }
    if (roberta) add_tokens(both[1], tokens + 1, 1, 0);
    add_text(both[1], 2, second);
    add_tokens(both[1], tokens + 1, 1, second);
    return EMBLA_OK;
}

/* BertProcessing and RobertaProcessing: "cls" and "sep" are ["[CLS]", 101]. */
static embla_status read_ends(embla_tokenizer *t, const embla_json_value *value, bool roberta)
{
    int32_t cls = 0, sep = 0;
    EMBLA_TRY(read_token(t, embla_json_item(embla_json_get(value, "cls"), 1), &cls));
    EMBLA_TRY(read_token(t, embla_json_item(embla_json_get(value, "sep"), 1), &sep));
    return embla_post_ends(t, cls, sep, roberta);
}

static embla_status read_post(embla_tokenizer *t, const embla_json_value *value, const char *type)
{
    bool roberta = strcmp(type, "RobertaProcessing") == 0;
    if (roberta || strcmp(type, "ByteLevel") == 0) {
        t->post.trim = embla_stage_flag(value, "trim_offsets", true);
        t->post.trim_prefix = embla_stage_flag(value, "add_prefix_space", true);
        return roberta ? read_ends(t, value, true) : EMBLA_OK;
    }
    if (strcmp(type, "TemplateProcessing") == 0) {
        EMBLA_TRY(read_parts(t, value, "single", &t->post.single));
        return read_parts(t, value, "pair", &t->post.pair);
    }
    if (strcmp(type, "BertProcessing") == 0) return read_ends(t, value, false);
    return embla_stage_unknown(t, "post-processor", type);
}

embla_status embla_post_parse(embla_tokenizer *t, const embla_json_value *value)
{
    return embla_stages_each(t, value, "processors", read_post);
}

/* ---- truncation and padding ---- */

static embla_status read_size(const embla_tokenizer *t, const embla_json_value *value,
                              const char *what, size_t *out)
{
    int64_t number = 0;
    if (embla_json_what(value) == EMBLA_JSON_NULL || embla_json_what(value) == EMBLA_JSON_NONE)
        return EMBLA_OK;
    if (!embla_json_integer(value, &number) || number < 0 || number > INT32_MAX)
        return embla_stage_wrong(t, what, "a length is not an integer from 0 to 2^31-1");
    *out = (size_t)number;
    return EMBLA_OK;
}

/* A length of padding, which decides how much memory a text needs. */
static embla_status read_pad(const embla_tokenizer *t, const embla_json_value *value, size_t *out)
{
    enum { PAD_MOST = 1 << 20 };
    EMBLA_TRY(read_size(t, value, "padding", out));
    if (*out <= PAD_MOST) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT, "%.256s: padding to %zu tokens; the limit is %d", t->name,
                      *out, PAD_MOST);
}

static bool has_text(const embla_json_value *value, const char *key, const char *text)
{
    const char *found = embla_json_string(embla_json_get(value, key), NULL);
    return found && strcmp(found, text) == 0;
}

embla_status embla_limits_parse(embla_tokenizer *t, const embla_json_value *truncation,
                                const embla_json_value *padding)
{
    embla_limit *cut = &t->truncation, *pad = &t->padding;
    const embla_json_value *strategy = embla_json_get(padding, "strategy");
    size_t token = 0, type = 0;
    cut->on = embla_json_what(truncation) == EMBLA_JSON_OBJECT;
    cut->left = has_text(truncation, "direction", "Left");
    cut->only_first = has_text(truncation, "strategy", "OnlyFirst");
    cut->only_second = has_text(truncation, "strategy", "OnlySecond");
    EMBLA_TRY(read_size(t, embla_json_get(truncation, "max_length"), "truncation", &cut->most));
    pad->on = embla_json_what(padding) == EMBLA_JSON_OBJECT;
    pad->left = has_text(padding, "direction", "Left");
    pad->longest = embla_json_what(strategy) == EMBLA_JSON_STRING;
    EMBLA_TRY(read_pad(t, embla_json_get(strategy, "Fixed"), &pad->most));
    EMBLA_TRY(read_pad(t, embla_json_get(padding, "pad_to_multiple_of"), &pad->multiple));
    EMBLA_TRY(read_size(t, embla_json_get(padding, "pad_id"), "padding", &token));
    EMBLA_TRY(read_size(t, embla_json_get(padding, "pad_type_id"), "padding", &type));
    pad->token = (int32_t)token;
    pad->type = type > UINT8_MAX ? UINT8_MAX : (uint8_t)type;
    return EMBLA_OK;
}

/* ---- decoders ---- */

static embla_status read_strip(embla_tokenizer *t, const embla_json_value *value, embla_rejoin *d)
{
    EMBLA_TRY(embla_stage_text(t, value, "content", &d->text));
    EMBLA_TRY(read_size(t, embla_json_get(value, "start"), "Strip", &d->start));
    return read_size(t, embla_json_get(value, "stop"), "Strip", &d->stop);
}

static embla_status read_ctc(embla_tokenizer *t, const embla_json_value *value, embla_rejoin *d)
{
    EMBLA_TRY(embla_stage_text(t, value, "word_delimiter_token", &d->content));
    if (d->content.length > 0) return EMBLA_OK;
    return embla_stage_wrong(t, "CTC", "word_delimiter_token is empty");
}

static embla_status read_decoder(embla_tokenizer *t, const embla_json_value *value,
                                 const char *type)
{
    static const struct {
        const char *type;
        embla_rejoin_kind kind;
        const char *text; /* the key of the string that it needs */
    } known[] = {
        {"Replace", EMBLA_UN_REPLACE, "content"},
        {"ByteLevel", EMBLA_UN_BYTES, NULL},
        {"WordPiece", EMBLA_UN_WORDPIECE, "prefix"},
        {"Metaspace", EMBLA_UN_METASPACE, "replacement"},
        {"BPEDecoder", EMBLA_UN_SUFFIX, "suffix"},
        {"ByteFallback", EMBLA_UN_FALLBACK, NULL},
        {"Fuse", EMBLA_UN_FUSE, NULL},
        {"Strip", EMBLA_UN_STRIP, NULL},
        {"CTC", EMBLA_UN_CTC, "pad_token"},
    };
    void *list = t->decoders;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(type, known[i].type) != 0) continue;
        EMBLA_TRY(embla_arena_grow(&t->arena, sizeof *t->decoders, t->decoder_count, "decoders",
                                   &list, &t->decoder_room));
        t->decoders = list;
        embla_rejoin *d = &t->decoders[t->decoder_count++];
        *d = (embla_rejoin){.kind = known[i].kind};
        d->cleanup = embla_stage_flag(value, "cleanup", true);
        d->keep_first = has_text(value, "prepend_scheme", "never");
        if (known[i].text) EMBLA_TRY(embla_stage_text(t, value, known[i].text, &d->text));
        if (d->kind == EMBLA_UN_CTC) return read_ctc(t, value, d);
        if (d->kind == EMBLA_UN_REPLACE) return embla_stage_pattern(t, value, &d->pattern);
        return d->kind == EMBLA_UN_STRIP ? read_strip(t, value, d) : EMBLA_OK;
    }
    return embla_stage_unknown(t, "decoder", type);
}

embla_status embla_decoders_parse(embla_tokenizer *t, const embla_json_value *value)
{
    t->has_decoder = embla_json_what(value) == EMBLA_JSON_OBJECT;
    return embla_stages_each(t, value, "decoders", read_decoder);
}
