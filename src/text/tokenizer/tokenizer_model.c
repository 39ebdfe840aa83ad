/* SPDX-License-Identifier: Apache-2.0 */
/* Reads "model" of a tokenizer.json: its type, its vocabulary, and what each type has besides.
 *
 *   {"type": "BPE", "unk_token": .., "vocab": {"a": 0, ..}, "merges": ["a b", ..] or [["a", "b"]]}
 *   {"type": "Unigram", "unk_id": 0, "vocab": [["a", -3.5], ..], "byte_fallback": false}
 *   {"type": "WordPiece", "unk_token": .., "continuing_subword_prefix": "##", "vocab": {..}}
 *   {"type": "WordLevel", "unk_token": .., "vocab": {..}}
 *
 * Old files have no type: merges mean BPE, an array means Unigram, and so on.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/json_walk.h"
#include "tokenizer/grow.h"
#include "tokenizer/tokenizer.h"

enum { STRINGS_MOST = 1 << 22, MERGES_MOST = 1 << 23, CHARACTERS = 100 };

typedef struct {
    embla_tokenizer *t;
    embla_walk walk;
    embla_arena scratch;
    embla_name type, unknown, prefix, suffix;
    bool has_type, has_unknown, has_prefix, is_array, has_vocab, has_merges, has_limit;
    uint64_t limit;
    double *scores;
    size_t score_room;
    embla_name *merges; /* two for each */
    size_t merge_count, merge_room;
} reading;

static embla_status wrong(const reading *r, const char *what)
{
    return embla_fail(EMBLA_ERR_FORMAT, "%.256s: model, byte %zu of %zu: %s", r->t->name,
                      r->walk.at, r->walk.count, what);
}

/* ---- single values ---- */

static bool is_word(const embla_walk *w, char first)
{
    return w->step == EMBLA_WALK_WORD && w->raw[0] == (uint8_t)first;
}

static embla_status read_bool(const reading *r, bool *out)
{
    *out = is_word(&r->walk, 't');
    return r->walk.step == EMBLA_WALK_WORD ? EMBLA_OK : wrong(r, "expected true or false");
}

/* A string or null. */
static embla_status read_text(reading *r, embla_name *out, bool *has)
{
    if (is_word(&r->walk, 'n')) return EMBLA_OK;
    if (r->walk.step != EMBLA_WALK_STRING) return wrong(r, "expected a string or null");
    *has = true;
    return embla_walk_text(&r->walk, out);
}

/* Parses a number as Hugging Face's library does: digits as an integer of 64 bits, those that do
 * not fit dropped, then one multiplication or division by a power of ten. That is not always the
 * nearest double, and Unigram's ties depend on the last bit. */
static double parse_score(const uint8_t *raw, size_t length)
{
    uint64_t digits = 0;
    long exponent = 0, written = 0, sign = 1;
    bool negative = raw[0] == '-', after = false, full = false;
    size_t i = negative ? 1 : 0;
    for (; i < length && (raw[i] | 0x20) != 'e'; i++) {
        if (raw[i] == '.') {
            after = true;
            continue;
        }
        uint64_t digit = (uint64_t)(raw[i] - '0');
        full = full || digits > (UINT64_MAX - digit) / 10;
        if (!full) digits = digits * 10 + digit;
        exponent += full ? !after : -(long)after;
    }
    for (i++; i < length; i++) {
        if (raw[i] == '-') sign = -1;
        if (raw[i] >= '0' && raw[i] <= '9' && written < 100000)
            written = written * 10 + raw[i] - '0';
    }
    exponent += sign * written;
    double value = (double)digits;
    while (exponent < -308 && value != 0) {
        value /= 1e308;
        exponent += 308;
    }
    if (value != 0 && exponent != 0) {
        char power[32];
        (void)snprintf(power, sizeof power, "1e%ld", labs(exponent));
        double ten = strtod(power, NULL);
        value = exponent > 0 ? value * ten : value / ten;
    }
    return negative ? -value : value;
}

/* ---- the vocabulary ---- */

static embla_status check_count(const reading *r)
{
    if (r->t->vocab_count < STRINGS_MOST) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT, "%.256s: the vocabulary has more than %d strings",
                      r->t->name, STRINGS_MOST);
}

static embla_status read_members(reading *r)
{
    for (;;) {
        embla_name word;
        uint64_t token = 0;
        EMBLA_TRY(embla_walk_next(&r->walk));
        if (r->walk.step == EMBLA_WALK_CLOSE) return EMBLA_OK;
        EMBLA_TRY(check_count(r));
        EMBLA_TRY(embla_walk_text(&r->walk, &word));
        EMBLA_TRY(embla_walk_next(&r->walk));
        if (r->walk.step != EMBLA_WALK_NUMBER ||
            !embla_walk_natural(&r->walk, UINT64_C(1) << 31, &token))
            return wrong(r, "the token of a string is not an integer from 0 to 2^31-1");
        EMBLA_TRY(embla_tokenizer_add(r->t, word.bytes, word.length, token));
    }
}

/* One ["string", score]. */
static embla_status read_scored(reading *r)
{
    embla_name word;
    embla_walk *w = &r->walk;
    if (w->step != EMBLA_WALK_ARRAY) return wrong(r, "expected [\"string\", score]");
    EMBLA_TRY(check_count(r));
    EMBLA_TRY(embla_walk_next(w));
    if (w->step != EMBLA_WALK_STRING) return wrong(r, "expected a string");
    EMBLA_TRY(embla_walk_text(w, &word));
    EMBLA_TRY(embla_walk_next(w));
    if (w->step != EMBLA_WALK_NUMBER) return wrong(r, "expected a score");
    EMBLA_TRY(embla_grow(&r->scores, &r->score_room, r->t->vocab_count, r->t->vocab_count + 1,
                         sizeof *r->scores, "scores"));
    double score = parse_score(w->raw, w->length);
    if (!isfinite(score)) return wrong(r, "a score is not a finite number");
    r->scores[r->t->vocab_count] = score;
    EMBLA_TRY(embla_tokenizer_add(r->t, word.bytes, word.length, r->t->vocab_count));
    EMBLA_TRY(embla_walk_next(w));
    return w->step == EMBLA_WALK_CLOSE ? EMBLA_OK : wrong(r, "expected the end of a pair");
}

static embla_status read_vocab(reading *r)
{
    r->has_vocab = true;
    if (r->walk.step == EMBLA_WALK_OBJECT) return read_members(r);
    r->is_array = true;
    if (r->walk.step != EMBLA_WALK_ARRAY)
        return wrong(r, "vocab is neither an object nor an array");
    for (;;) {
        EMBLA_TRY(embla_walk_next(&r->walk));
        if (r->walk.step == EMBLA_WALK_CLOSE) return EMBLA_OK;
        EMBLA_TRY(read_scored(r));
    }
}

/* ---- merges ---- */

static embla_status add_half(reading *r, embla_name half)
{
    void *list = r->merges;
    EMBLA_TRY(embla_arena_grow(&r->scratch, sizeof *r->merges, r->merge_count, "merges", &list,
                               &r->merge_room));
    r->merges = list;
    r->merges[r->merge_count++] = half;
    return EMBLA_OK;
}

/* "a b": two strings with one space between them. */
static embla_status read_joined(reading *r)
{
    embla_name both;
    EMBLA_TRY(embla_walk_text(&r->walk, &both));
    const char *space = memchr(both.bytes, ' ', both.length);
    if (!space) return wrong(r, "a merge has no space in it");
    uint32_t first = (uint32_t)(space - both.bytes), rest = both.length - first - 1;
    if (memchr(space + 1, ' ', rest)) return wrong(r, "a merge has more than two parts");
    EMBLA_TRY(add_half(r, (embla_name){both.bytes, first, 0}));
    return add_half(r, (embla_name){space + 1, rest, 0});
}

static embla_status read_pair(reading *r)
{
    size_t halves = 0;
    for (;; halves++) {
        embla_name half;
        EMBLA_TRY(embla_walk_next(&r->walk));
        if (r->walk.step == EMBLA_WALK_CLOSE) break;
        if (r->walk.step != EMBLA_WALK_STRING || halves == 2)
            return wrong(r, "a merge is not two strings");
        EMBLA_TRY(embla_walk_text(&r->walk, &half));
        EMBLA_TRY(add_half(r, half));
    }
    return halves == 2 ? EMBLA_OK : wrong(r, "a merge is not two strings");
}

static embla_status read_merges(reading *r)
{
    r->has_merges = true;
    if (r->walk.step != EMBLA_WALK_ARRAY) return wrong(r, "merges is not an array");
    for (;;) {
        EMBLA_TRY(embla_walk_next(&r->walk));
        if (r->walk.step == EMBLA_WALK_CLOSE) return EMBLA_OK;
        if (r->merge_count / 2 >= MERGES_MOST)
            return embla_fail(EMBLA_ERR_FORMAT, "%.256s: there are more than %d merges", r->t->name,
                              MERGES_MOST);
        if (r->walk.step == EMBLA_WALK_STRING)
            EMBLA_TRY(read_joined(r));
        else if (r->walk.step == EMBLA_WALK_ARRAY)
            EMBLA_TRY(read_pair(r));
        else
            return wrong(r, "a merge is neither a string nor a pair");
    }
}

/* ---- the fields ---- */

static embla_status read_number(const reading *r, uint64_t *out, bool *has)
{
    if (is_word(&r->walk, 'n')) return EMBLA_OK;
    *has =
        r->walk.step == EMBLA_WALK_NUMBER && embla_walk_natural(&r->walk, UINT64_C(1) << 31, out);
    return *has ? EMBLA_OK : wrong(r, "expected an integer from 0 to 2^31-1, or null");
}

static embla_status read_field(reading *r, const embla_name *key)
{
    embla_tokenizer *t = r->t;
    bool has = false;
    uint64_t number = 0;
    if (embla_name_is(key, "vocab")) return read_vocab(r);
    if (embla_name_is(key, "merges")) return read_merges(r);
    if (embla_name_is(key, "type")) return read_text(r, &r->type, &r->has_type);
    if (embla_name_is(key, "unk_token")) return read_text(r, &r->unknown, &r->has_unknown);
    if (embla_name_is(key, "continuing_subword_prefix"))
        return read_text(r, &r->prefix, &r->has_prefix);
    if (embla_name_is(key, "end_of_word_suffix")) return read_text(r, &r->suffix, &has);
    if (embla_name_is(key, "fuse_unk")) return read_bool(r, &t->bpe.fuse);
    if (embla_name_is(key, "ignore_merges")) return read_bool(r, &t->bpe.ignore_merges);
    if (embla_name_is(key, "byte_fallback")) {
        EMBLA_TRY(read_bool(r, &t->bpe.byte_fallback));
        t->unigram.byte_fallback = t->bpe.byte_fallback;
        return EMBLA_OK;
    }
    if (embla_name_is(key, "max_input_chars_per_word"))
        return read_number(r, &r->limit, &r->has_limit);
    if (embla_name_is(key, "unk_id")) {
        EMBLA_TRY(read_number(r, &number, &has));
        t->unknown = has ? (int32_t)number : -1;
        return EMBLA_OK;
    }
    if (embla_name_is(key, "dropout")) {
        bool zero = is_word(&r->walk, 'n') || (r->walk.step == EMBLA_WALK_NUMBER &&
                                               parse_score(r->walk.raw, r->walk.length) == 0);
        if (!zero) return wrong(r, "dropout is neither null nor 0");
        return EMBLA_OK;
    }
    return embla_walk_skip(&r->walk);
}

static embla_status read_fields(reading *r)
{
    EMBLA_TRY(embla_walk_next(&r->walk));
    if (r->walk.step != EMBLA_WALK_OBJECT) return wrong(r, "model is not an object");
    for (;;) {
        embla_name key;
        EMBLA_TRY(embla_walk_next(&r->walk));
        if (r->walk.step == EMBLA_WALK_CLOSE) break;
        EMBLA_TRY(embla_walk_text(&r->walk, &key));
        EMBLA_TRY(embla_walk_next(&r->walk));
        EMBLA_TRY(read_field(r, &key));
    }
    return embla_walk_next(&r->walk); /* nothing follows */
}

/* ---- what it is ---- */

static embla_status find_kind(reading *r)
{
    static const char *const names[] = {"WordPiece", "WordLevel", "BPE", "Unigram"};
    embla_tokenizer *t = r->t;
    if (!r->has_vocab) return wrong(r, "there is no vocab");
    t->kind = r->has_merges  ? EMBLA_TOKENIZER_BPE
              : r->is_array  ? EMBLA_TOKENIZER_UNIGRAM
              : r->has_limit ? EMBLA_TOKENIZER_WORDPIECE
                             : EMBLA_TOKENIZER_WORDLEVEL;
    if (!r->has_type) return EMBLA_OK;
    for (int i = 0; i < 4; i++)
        if (embla_name_is(&r->type, names[i])) {
            t->kind = (embla_tokenizer_kind)(i + 1);
            if (r->is_array == (t->kind == EMBLA_TOKENIZER_UNIGRAM)) return EMBLA_OK;
            return wrong(r, "vocab is an array in Unigram, and an object in any other model");
        }
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "%.256s: the model is of type '%.*s'; Embla has BPE, Unigram, WordPiece and "
                      "WordLevel",
                      t->name, r->type.length < 64 ? (int)r->type.length : 64, r->type.bytes);
}

static embla_status keep(embla_tokenizer *t, const embla_name *text, embla_name *out)
{
    out->length = text->length;
    return embla_arena_text(&t->arena, text->bytes, text->length, &out->bytes);
}

static embla_status keep_fields(reading *r)
{
    embla_tokenizer *t = r->t;
    static const embla_name hashes = {"##", 2, 0}, unknown = {"[UNK]", 5, 0};
    bool piece = t->kind == EMBLA_TOKENIZER_WORDPIECE;
    t->wordpiece.most_chars = r->has_limit ? embla_size_most(r->limit) : CHARACTERS;
    EMBLA_TRY(keep(t, r->has_prefix || !piece ? &r->prefix : &hashes, &t->wordpiece.prefix));
    t->bpe.prefix = t->wordpiece.prefix;
    EMBLA_TRY(keep(t, &r->suffix, &t->bpe.suffix));
    t->bpe.has_unknown = r->has_unknown;
    if (r->has_unknown || (piece && !r->has_unknown))
        EMBLA_TRY(keep(t, r->has_unknown ? &r->unknown : &unknown, &t->unknown_text));
    if (t->kind != EMBLA_TOKENIZER_UNIGRAM) return EMBLA_OK;
    EMBLA_TRY(
        embla_arena_many(&t->arena, t->vocab_count, sizeof(double), "scores", &t->unigram.scores));
    if (t->vocab_count > 0) memcpy(t->unigram.scores, r->scores, t->vocab_count * sizeof(double));
    return EMBLA_OK;
}

static embla_status parse(reading *r, const uint8_t *bytes, size_t count)
{
    EMBLA_TRY(embla_walk_begin(&r->walk, bytes, count, r->t->name, "T1", &r->scratch));
    EMBLA_TRY(read_fields(r));
    EMBLA_TRY(find_kind(r));
    EMBLA_TRY(keep_fields(r));
    return embla_tokenizer_finish(r->t, r->merges, r->merge_count / 2);
}

embla_status embla_model_parse(embla_tokenizer *t, const uint8_t *bytes, size_t count)
{
    reading r = {.t = t};
    embla_status status = parse(&r, bytes, count);
    embla_mem_free(r.scores, r.score_room * sizeof *r.scores);
    embla_arena_free(&r.scratch);
    return status;
}
