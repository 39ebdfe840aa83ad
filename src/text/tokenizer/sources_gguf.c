/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers in the keys of a GGUF file. The tokens are those that llama.cpp gives.
 *
 *   tokenizer.ggml.model: "llama" is BPE as SentencePiece has it, with scores; "gpt2" is byte-level
 *   BPE with merges, cut as tokenizer.ggml.pre says; "bert" is WordPiece, in which a mark begins
 * the first string of a word; "t5" is SentencePiece's Unigram, with scores
 *
 *   tokenizer.ggml.token_type: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
 */
#include <string.h>

#include "formats/gguf.h"
#include "tokenizer/grow.h"
#include "tokenizer/stages.h"

static const char MARK[] = "\xe2\x96\x81";
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, BYTE = 6 };

typedef struct {
    embla_tokenizer *t;
    const embla_map *map;
    embla_directory directory;
    embla_arena scratch;
    embla_name *strings;
    size_t count;
    uint32_t *types; /* NULL: all are normal */
} reading;

/* A key that is a string; "" if there is none. */
static embla_status read_text(reading *r, const char *key, char text[64])
{
    const embla_gguf_key *found = embla_gguf_find(&r->directory, key);
    uint8_t head[8];
    text[0] = '\0';
    if (!found || found->type != EMBLA_GGUF_STRING) return EMBLA_OK;
    EMBLA_TRY(embla_map_read(r->map, found->value, 8, head));
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | head[i];
    if (length > 63) return EMBLA_OK;
    EMBLA_TRY(embla_map_read(r->map, found->value + 8, (size_t)length, text));
    text[length] = '\0';
    return EMBLA_OK;
}

static embla_status read_types(reading *r)
{
    const embla_gguf_key *key = NULL;
    if (!embla_gguf_has(&r->directory, "tokenizer.ggml.token_type")) return EMBLA_OK;
    EMBLA_TRY(
        embla_gguf_array(&r->directory, r->map, "tokenizer.ggml.token_type", EMBLA_GGUF_I32, &key));
    EMBLA_TRY(embla_arena_many(&r->scratch, r->count, sizeof *r->types, "types", &r->types));
    return embla_map_read(r->map, key->value, r->count * sizeof *r->types, r->types);
}

static uint32_t type_of(const reading *r, size_t i)
{
    return r->types ? r->types[i] : NORMAL;
}

/* Special tokens are cut out of a text, as llama.cpp does when it parses them. */
static embla_status add_special(reading *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (type_of(r, i) == CONTROL || type_of(r, i) == USER_DEFINED)
            EMBLA_TRY(embla_added_special(r->t, r->strings[i].bytes, r->strings[i].length));
    return EMBLA_OK;
}

static embla_status add_strings(reading *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (embla_utf8_valid(r->strings[i].bytes, r->strings[i].length) != r->strings[i].length)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.256s: the string of token %zu is not valid UTF-8", r->t->name, i);
        EMBLA_TRY(embla_tokenizer_add(r->t, r->strings[i].bytes, r->strings[i].length, i));
    }
    return EMBLA_OK;
}

/* ---- llama ---- */

const char embla_llama_stages[] =
    "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
    "\"prepend\":\"\xe2\x96\x81\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
    "\"content\":\"\xe2\x96\x81\"}]},\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"},"
    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}}";

static embla_status read_scores(reading *r, float **out)
{
    const embla_gguf_key *key = NULL;
    EMBLA_TRY(
        embla_gguf_array(&r->directory, r->map, "tokenizer.ggml.scores", EMBLA_GGUF_F32, &key));
    EMBLA_TRY(embla_arena_many(&r->scratch, r->count, sizeof **out, "scores", out));
    return embla_map_read(r->map, key->value, r->count * sizeof **out, *out);
}

static embla_status read_llama(reading *r)
{
    embla_tokenizer *t = r->t;
    float *scores = NULL;
    bool *normal = NULL;
    EMBLA_TRY(add_strings(r));
    EMBLA_TRY(add_special(r));
    EMBLA_TRY(read_scores(r, &scores));
    EMBLA_TRY(embla_arena_many(&r->scratch, r->count, sizeof *normal, "types", &normal));
    EMBLA_TRY(embla_arena_many(&t->arena, r->count, sizeof *t->hidden, "types", &t->hidden));
    for (size_t i = 0; i < r->count; i++) {
        normal[i] = type_of(r, i) == NORMAL && scores[i] == scores[i]; /* not NaN */
        t->hidden[i] = type_of(r, i) != NORMAL;
        if (type_of(r, i) == UNKNOWN) t->unknown_text = t->vocab[i];
    }
    t->kind = EMBLA_TOKENIZER_BPE;
    t->bpe.has_unknown = t->bpe.fuse = t->bpe.byte_fallback = true;
    EMBLA_TRY(embla_bpe_rank_scores(t, scores, normal));
    EMBLA_TRY(embla_tokenizer_stages(t, embla_llama_stages));
    return embla_tokenizer_finish(t, NULL, 0);
}

/* ---- t5 ---- */

/* A key that is true or false. */
static embla_status read_flag(reading *r, const char *key, bool *out)
{
    int64_t number = *out;
    if (!embla_gguf_has(&r->directory, key)) return EMBLA_OK;
    EMBLA_TRY(embla_gguf_number(&r->directory, r->map, key, &number));
    *out = number != 0;
    return EMBLA_OK;
}

/* The map of characters is an array of u8 or i8. Without it characters stay as they are. */
static embla_status read_map(reading *r, embla_unigram_parts *parts)
{
    static const char name[] = "tokenizer.ggml.precompiled_charsmap";
    const embla_gguf_key *key = embla_gguf_find(&r->directory, name);
    uint8_t *bytes = NULL;
    if (!key) return EMBLA_OK;
    bool i8 = key->type == EMBLA_GGUF_ARRAY && key->element == EMBLA_GGUF_I8;
    EMBLA_TRY(
        embla_gguf_array(&r->directory, r->map, name, i8 ? EMBLA_GGUF_I8 : EMBLA_GGUF_U8, &key));
    parts->map_bytes = (size_t)key->count;
    EMBLA_TRY(embla_arena_many(&r->scratch, parts->map_bytes, 1, "a map of characters", &bytes));
    parts->map = bytes;
    return embla_map_read(r->map, key->value, parts->map_bytes, bytes);
}

static embla_status read_t5(reading *r)
{
    embla_unigram_parts parts = {.map = (const uint8_t *)"", .dummy = true, .remove_extra = true};
    EMBLA_TRY(add_strings(r));
    EMBLA_TRY(add_special(r));
    EMBLA_TRY(read_scores(r, &parts.scores));
    EMBLA_TRY(read_map(r, &parts));
    EMBLA_TRY(read_flag(r, "tokenizer.ggml.add_space_prefix", &parts.dummy));
    EMBLA_TRY(read_flag(r, "tokenizer.ggml.remove_extra_whitespaces", &parts.remove_extra));
    EMBLA_TRY(embla_arena_many(&r->scratch, r->count, 1, "types", &parts.types));
    for (size_t i = 0; i < r->count; i++) {
        parts.types[i] = type_of(r, i) <= BYTE ? (uint8_t)type_of(r, i) : 0;
        parts.bytes |= type_of(r, i) == BYTE;
    }
    return embla_sentencepiece_unigram(r->t, &parts);
}

/* ---- gpt2 ---- */

/* The merges "a b" as pairs of names. */
static embla_status read_merges(reading *r, embla_name **out, size_t *count)
{
    embla_name *lines = NULL, *halves = NULL;
    EMBLA_TRY(embla_gguf_strings(&r->directory, r->map, "tokenizer.ggml.merges", &r->scratch,
                                 &lines, count));
    EMBLA_TRY(embla_arena_many(&r->scratch, *count * 2, sizeof *halves, "merges", &halves));
    for (size_t i = 0; i < *count; i++) {
        const char *space =
            lines[i].length > 1 ? memchr(lines[i].bytes + 1, ' ', lines[i].length - 1) : NULL;
        if (!space || embla_utf8_valid(lines[i].bytes, lines[i].length) != lines[i].length)
            return embla_fail(EMBLA_ERR_FORMAT, "%.256s: merge %zu of %zu is not two strings",
                              r->t->name, i, *count);
        uint32_t first = (uint32_t)(space - lines[i].bytes);
        halves[2 * i] = (embla_name){lines[i].bytes, first, 0};
        halves[2 * i + 1] = (embla_name){space + 1, lines[i].length - first - 1, 0};
    }
    *out = halves;
    return EMBLA_OK;
}

/* Names of tokenizer.ggml.pre and the pattern that each means in llama.cpp. */
static const struct {
    const char *name;
    embla_byte_cut cut;
    bool ignore_merges;
} pres[] = {{"", EMBLA_BYTE_CUT_GPT2, false},
            {"default", EMBLA_BYTE_CUT_GPT2, false},
            {"gpt-2", EMBLA_BYTE_CUT_GPT2, false},
            {"phi-2", EMBLA_BYTE_CUT_GPT2, false},
            {"jina-es", EMBLA_BYTE_CUT_GPT2, false},
            {"jina-de", EMBLA_BYTE_CUT_GPT2, false},
            {"jina-v2-es", EMBLA_BYTE_CUT_GPT2, false},
            {"jina-v2-de", EMBLA_BYTE_CUT_GPT2, false},
            {"llama-bpe", EMBLA_BYTE_CUT_CL100K, true},
            {"llama3", EMBLA_BYTE_CUT_CL100K, true},
            {"llama-v3", EMBLA_BYTE_CUT_CL100K, true},
            {"falcon3", EMBLA_BYTE_CUT_CL100K, true},
            {"pixtral", EMBLA_BYTE_CUT_CL100K, true},
            {"qwen2", EMBLA_BYTE_CUT_QWEN, false},
            {"deepseek-r1-qwen", EMBLA_BYTE_CUT_QWEN, false},
            {"gpt-4o", EMBLA_BYTE_CUT_O200K, false},
            {"llama4", EMBLA_BYTE_CUT_O200K, false}};
enum { PRES = sizeof pres / sizeof pres[0] };

static embla_status read_gpt2(reading *r)
{
    char pre[64];
    embla_name *merges = NULL;
    size_t count = 0, i = 0;
    EMBLA_TRY(read_text(r, "tokenizer.ggml.pre", pre));
    while (i < PRES && strcmp(pre, pres[i].name) != 0) i++;
    if (i == PRES)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: tokenizer.ggml.pre is '%s'; Embla has gpt-2, llama-bpe, qwen2 "
                          "and gpt-4o, and names that mean the same",
                          r->t->name, pre);
    EMBLA_TRY(add_strings(r));
    EMBLA_TRY(add_special(r));
    EMBLA_TRY(embla_tokenizer_stages(r->t, embla_byte_stages(pres[i].cut)));
    EMBLA_TRY(read_merges(r, &merges, &count));
    r->t->kind = EMBLA_TOKENIZER_BPE;
    r->t->bpe.ignore_merges = pres[i].ignore_merges;
    return embla_tokenizer_finish(r->t, merges, count);
}

/* ---- bert ---- */

/* A mark begins a word; what has none continues one and gets "##". */
static embla_status read_bert(reading *r)
{
    char text[512];
    bool cased = false;
    for (size_t i = 0; i < r->count; i++) {
        const embla_name *s = &r->strings[i];
        bool special = s->length > 0 && s->bytes[0] == '[' && s->bytes[s->length - 1] == ']';
        bool first = s->length > 3 && memcmp(s->bytes, MARK, 3) == 0;
        size_t length = first ? s->length - 3 : s->length;
        if (length > sizeof text - 2)
            return embla_fail(EMBLA_ERR_FORMAT, "%.256s: the string of token %zu has %zu bytes",
                              r->t->name, i, length);
        size_t used = first || special ? 0 : 2;
        text[0] = text[1] = '#';
        memcpy(text + used, s->bytes + (first ? 3 : 0), length);
        for (size_t j = 0; !special && j < length; j++)
            cased = cased || (text[used + j] >= 'A' && text[used + j] <= 'Z');
        EMBLA_TRY(embla_tokenizer_add(r->t, text, used + length, i));
    }
    return embla_wordpiece_finish(r->t, cased);
}

/* ---- the file ---- */

static embla_status read_keys(reading *r)
{
    char model[64];
    EMBLA_TRY(read_text(r, "tokenizer.ggml.model", model));
    if (!embla_gguf_has(&r->directory, "tokenizer.ggml.tokens"))
        return embla_fail(EMBLA_ERR_NOT_FOUND, "%.256s: it has no key tokenizer.ggml.tokens",
                          r->t->name);
    EMBLA_TRY(embla_gguf_strings(&r->directory, r->map, "tokenizer.ggml.tokens", &r->scratch,
                                 &r->strings, &r->count));
    EMBLA_TRY(read_types(r));
    if (strcmp(model, "llama") == 0) return read_llama(r);
    if (strcmp(model, "gpt2") == 0) return read_gpt2(r);
    if (strcmp(model, "bert") == 0) return read_bert(r);
    if (strcmp(model, "t5") == 0) return read_t5(r);
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "%.256s: tokenizer.ggml.model is '%s'; Embla has llama, gpt2, bert and t5",
                      r->t->name, model);
}

embla_status embla_tokenizer_of_gguf(embla_tokenizer *t, struct embla_map *map)
{
    reading r = {.t = t, .map = map};
    embla_open_options options = {0};
    embla_status status = embla_gguf_read(map, &options, &r.directory);
    if (status == EMBLA_OK) status = read_keys(&r);
    embla_directory_free(&r.directory);
    embla_arena_free(&r.scratch);
    return status;
}
