/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece's models: the tokens are those of Google's library.
 *
 *   message: field 1, repeated: {1: string, 2: f32 score, 3: type}; 2: {3: model type, 35: byte
 *   fallback}; 3: {2: map of characters, 3: a mark in front, 4: extra spaces removed, 5: spaces
 *   become marks}
 *
 * Unigram adds scores in float. BPE merges any two tokens whose strings make a third one, the
 * highest score first. Offsets are those of characters that a rule replaces as a whole.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/cursor.h"
#include "files/protobuf.h"
#include "tokenizer/tokenize.h"

enum { PIECES_MOST = 1 << 22 };
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 };
enum { UNIGRAM = 1, BPE = 2 };

typedef struct {
    embla_tokenizer *t;
    float *scores;
    uint8_t *types;
    size_t score_room, type_room;
    uint64_t model, escape, suffix;
    bool bytes, dummy, remove_extra;
    embla_proto map;
} reading;

static embla_status wrong(const reading *r, const char *what)
{
    return embla_fail(EMBLA_ERR_FORMAT, "%.256s: SentencePiece model: %s after %zu pieces",
                      r->t->name, what, r->t->vocab_count);
}

/* ---- the message ---- */

static bool skip(embla_proto *s, const embla_proto_tag *tag)
{
    if (tag->length > s->left) return false;
    s->at += tag->length;
    s->left -= (size_t)tag->length;
    return true;
}

static embla_status read_piece(reading *r, embla_proto s)
{
    embla_tokenizer *t = r->t;
    const size_t number = t->vocab_count;
    embla_proto text = {(const uint8_t *)"", 0};
    uint32_t bits = 0;
    uint64_t type = NORMAL;
    float score = 0;
    while (s.left > 0) {
        embla_proto_tag tag;
        if (!embla_proto_next(&s, &tag)) return wrong(r, "a piece is damaged");
        const uint8_t *value = s.at;
        if (!skip(&s, &tag)) return wrong(r, "a piece is damaged");
        if (tag.field == 1 && tag.wire == 2) text = (embla_proto){value, (size_t)tag.length};
        if (tag.field == 2 && tag.wire == 5) bits = embla_le32(value);
        if (tag.field == 3 && tag.wire == 0) type = tag.number;
    }
    memcpy(&score, &bits, sizeof score);
    if (!isfinite(score) || type < NORMAL || type > BYTE)
        return wrong(r, "a piece has no finite score, or an unknown type");
    if (number >= PIECES_MOST) return wrong(r, "there are too many pieces");
    EMBLA_TRY(
        embla_grow(&r->scores, &r->score_room, number, number + 1, sizeof *r->scores, "scores"));
    EMBLA_TRY(embla_grow(&r->types, &r->type_room, number, number + 1, 1, "types"));
    r->scores[number] = score;
    r->types[number] = (uint8_t)type;
    if (embla_utf8_valid(text.at, text.left) != text.left)
        return wrong(r, "a piece is not valid UTF-8");
    return embla_tokenizer_add(t, (const char *)text.at, text.left, number);
}

/* Reads trainer_spec or normalizer_spec. */
static embla_status read_spec(reading *r, embla_proto s, bool normalizer)
{
    while (s.left > 0) {
        embla_proto_tag tag;
        if (!embla_proto_next(&s, &tag)) return wrong(r, "a specification is damaged");
        const uint8_t *value = s.at;
        if (!skip(&s, &tag)) return wrong(r, "a specification is damaged");
        if (normalizer && tag.field == 2 && tag.wire == 2)
            r->map = (embla_proto){value, (size_t)tag.length};
        if (tag.wire != 0) continue;
        if (normalizer && tag.field == 3) r->dummy = tag.number != 0;
        if (normalizer && tag.field == 4) r->remove_extra = tag.number != 0;
        if (normalizer && tag.field == 5) r->escape = tag.number;
        if (!normalizer && tag.field == 3) r->model = tag.number;
        if (!normalizer && tag.field == 24) r->suffix = tag.number;
        if (!normalizer && tag.field == 35) r->bytes = tag.number != 0;
    }
    return EMBLA_OK;
}

static embla_status read_message(reading *r, embla_proto s)
{
    while (s.left > 0) {
        embla_proto_tag tag;
        if (!embla_proto_next(&s, &tag)) return wrong(r, "the file is damaged");
        const embla_proto value = {s.at, (size_t)tag.length};
        if (!skip(&s, &tag)) return wrong(r, "the file ends too early");
        if (tag.wire != 2) continue;
        if (tag.field == 1) EMBLA_TRY(read_piece(r, value));
        if (tag.field == 2 || tag.field == 3) EMBLA_TRY(read_spec(r, value, tag.field == 3));
    }
    if (!r->scores || !r->types) return wrong(r, "the file ends");
    if (r->model != UNIGRAM && r->model != BPE)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: its model type is %" PRIu64
                          "; Embla has 1 (Unigram) and 2 (BPE)",
                          r->t->name, r->model);
    if (!r->escape || r->suffix)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: it keeps spaces, or puts marks after words; Embla has neither",
                          r->t->name);
    return EMBLA_OK;
}

/* ---- the tokenizer ---- */

/* Scores of Unigram. A string that users defined wins over all that it is made of. */
static embla_status set_scores(reading *r)
{
    embla_tokenizer *t = r->t;
    float highest = -INFINITY;
    EMBLA_TRY(
        embla_arena_many(&t->arena, t->vocab_count, sizeof(double), "scores", &t->unigram.scores));
    for (size_t i = 0; i < t->vocab_count; i++)
        if (r->types[i] == NORMAL && r->scores[i] > highest) highest = r->scores[i];
    for (size_t i = 0; i < t->vocab_count; i++) {
        float length = (float)t->vocab[i].length;
        bool defined = r->types[i] == USER_DEFINED;
        t->unigram.scores[i] =
            defined ? (double)(float)((double)(length * highest) - 0.1) : (double)r->scores[i];
    }
    t->unigram.single = true;
    t->unigram.byte_fallback = r->bytes;
    return EMBLA_OK;
}

typedef struct {
    float score;
    uint32_t index;
} scored;

static int by_score(const void *left, const void *right)
{
    const scored *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

embla_status embla_bpe_rank_scores(embla_tokenizer *t, const float *scores, const bool *normal)
{
    uint32_t *ranks = NULL;
    scored *order = NULL;
    EMBLA_TRY(embla_arena_many(&t->arena, t->vocab_count, sizeof *ranks, "ranks", &ranks));
    EMBLA_TRY(embla_arena_many(&t->arena, t->vocab_count, sizeof *order, "ranks", &order));
    for (size_t i = 0; i < t->vocab_count; i++) order[i] = (scored){scores[i], (uint32_t)i};
    if (t->vocab_count > 1) qsort(order, t->vocab_count, sizeof *order, by_score);
    for (size_t i = 0, rank = 0; i < t->vocab_count; i++) { /* equal scores have equal ranks */
        if (i > 0 && order[i].score != order[i - 1].score) rank = i;
        ranks[order[i].index] = normal[order[i].index] ? (uint32_t)rank : UINT32_MAX;
    }
    t->bpe.ranks = ranks;
    return EMBLA_OK;
}

static embla_status set_merges(reading *r)
{
    embla_tokenizer *t = r->t;
    bool *normal = NULL;
    EMBLA_TRY(embla_arena_many(&t->arena, t->vocab_count, sizeof *normal, "ranks", &normal));
    for (size_t i = 0; i < t->vocab_count; i++) {
        normal[i] = r->types[i] == NORMAL;
        if (r->types[i] == USER_DEFINED || r->types[i] == UNUSED)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "%.256s: token %zu of the BPE model is defined by users or unused, "
                              "which Embla does not support",
                              t->name, i);
    }
    t->bpe.has_unknown = t->bpe.fuse = true;
    t->bpe.byte_fallback = r->bytes;
    return embla_bpe_rank_scores(t, r->scores, normal);
}

static embla_status set_up(reading *r)
{
    embla_tokenizer *t = r->t;
    EMBLA_TRY(embla_arena_many(&t->arena, t->vocab_count, sizeof *t->hidden, "pieces", &t->hidden));
    for (size_t i = 0; i < t->vocab_count; i++) {
        t->hidden[i] = r->types[i] != NORMAL && r->types[i] != USER_DEFINED;
        if (r->types[i] == UNKNOWN) t->unknown = (int32_t)i;
    }
    EMBLA_TRY(embla_tokenizer_stages(
        t, "{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},"
           "{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\"}]}}"));
    EMBLA_TRY(embla_arena_many(&t->arena, 1, sizeof *t->normals, "normalizers", &t->normals));
    t->normals[0] = (embla_normal){
        .kind = EMBLA_NORMAL_SENTENCEPIECE, .left = r->dummy, .right = r->remove_extra};
    t->normal_count = 1;
    EMBLA_TRY(embla_charsmap_read(t, r->map.at, r->map.left, &t->normals[0].map));
    t->kind = r->model == BPE ? EMBLA_TOKENIZER_BPE : EMBLA_TOKENIZER_UNIGRAM;
    EMBLA_TRY(r->model == BPE ? set_merges(r) : set_scores(r));
    return embla_tokenizer_finish(t, NULL, 0);
}

embla_status embla_sentencepiece_unigram(embla_tokenizer *t, embla_unigram_parts *parts)
{
    reading r = {.t = t,
                 .scores = parts->scores,
                 .types = parts->types,
                 .model = UNIGRAM,
                 .bytes = parts->bytes,
                 .dummy = parts->dummy,
                 .remove_extra = parts->remove_extra,
                 .map = {parts->map, parts->map_bytes}};
    for (size_t i = 0; i < t->vocab_count; i++)
        if (!isfinite(r.scores[i]) || r.types[i] < NORMAL || r.types[i] > BYTE)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.256s: token %zu has the score %g and the type %d; expected a "
                              "finite score and a type from %d to %d",
                              t->name, i, (double)r.scores[i], r.types[i], NORMAL, BYTE);
    return set_up(&r);
}

embla_status embla_sentencepiece_parse(embla_tokenizer *t, const uint8_t *bytes, size_t count)
{
    reading r = {.t = t, .model = UNIGRAM, .escape = 1, .dummy = true, .remove_extra = true};
    embla_status status = read_message(&r, (embla_proto){bytes, count});
    if (status == EMBLA_OK) status = set_up(&r);
    embla_mem_free(r.scores, r.score_room * sizeof *r.scores);
    embla_mem_free(r.types, r.type_room);
    return status;
}

/* ---- normalizing ---- */

/* What the front of a text becomes: the string of the longest prefix in the map, or its first
 * character. */
static const char *map_front(const embla_normal *stage, embla_tokenized *e, const embla_view *view,
                             size_t at, size_t *used, size_t *length)
{
    const char *text = view->bytes + at;
    size_t steps = 0;
    const char *mapped = embla_charsmap_longest(&stage->map, text, view->count - at, used, &steps);
    e->bound.steps += steps;
    if (mapped) {
        *length = strlen(mapped);
        e->bound.steps += *length;
        if (embla_utf8_valid(mapped, *length) == *length) return mapped;
    }
    (void)embla_char_at(text, used);
    *length = *used;
    return text;
}

static embla_status put_marked(embla_strand *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        EMBLA_TRY(text[i] == ' ' ? embla_strand_insert(out, "\xe2\x96\x81", 3)
                                 : embla_strand_insert(out, text + i, 1));
    return EMBLA_OK;
}

static void remove_last_marks(embla_strand *out)
{
    while (out->count >= 3 && memcmp(out->bytes + out->count - 3, "\xe2\x96\x81", 3) == 0)
        out->count -= 3;
}

embla_status embla_sentencepiece_apply(const embla_normal *stage, embla_tokenized *e,
                                       embla_strand *out, bool *changed)
{
    const embla_view view = out->from;
    size_t at = 0, used = 0, length = 0;
    const bool extra = stage->right; /* extra spaces are removed */
    bool after_space = extra, begun = false;
    *changed = true;
    for (; at < view.count; at += used) {
        const char *text = map_front(stage, e, &view, at, &used, &length);
        EMBLA_TRY(embla_bound_add(&e->bound, 1));
        embla_strand_skip(out, at + used);
        for (; after_space && length > 0 && *text == ' '; length--) text++;
        if (length > 0) {
            if (!begun && stage->left) EMBLA_TRY(embla_strand_insert(out, "\xe2\x96\x81", 3));
            begun = true;
            EMBLA_TRY(put_marked(out, text, length));
            after_space = extra && text[length - 1] == ' ';
        }
    }
    if (extra) remove_last_marks(out);
    return EMBLA_OK;
}
