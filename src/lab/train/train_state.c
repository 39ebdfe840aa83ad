/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of a checkpoint: the model's shape, the options, the corpus and the progress, as
 * pairs of key and text.
 *
 * One table lists all fields with their offsets in embla_train_state. Writing, reading and
 * comparing are loops over it. Numbers are exact: a double is written as an integer times a power
 * of two, such as "5764607523034235p-59", independent of locale and rounding.
 *
 * A corpus is identified by its number of tokens, how they are drawn, and their XXH3. If a file of
 * tokens has more than SAMPLE_ABOVE bytes, only PIECES evenly spaced pieces and the last one are
 * hashed, because reading the whole file from disk would take too long.
 */
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "corpus/corpus.h"

#define KEY_MARK "embla.training"
#define VERSION  "1"
#define KEY_NOTE "note"

enum { SAMPLE_ABOVE = 64 << 20, PIECES = 64, PIECE_BYTES = 1 << 16, TEXT = 48 };

/* ---- table of fields ---- */

typedef enum { SIZE, COUNT, SEED, REAL, FLAG, CHOICE } field_kind;
typedef enum { PLACE, MODEL, OPTION, CORPUS } field_group; /* PLACE is not compared */

typedef struct {
    const char *key;
    field_kind kind;
    field_group group;
    size_t at;
    bool later; /* not in the first files: written only if it is not 0, and 0 if it is missing */
} field;

#define AT(member) offsetof(embla_train_state, member)
#define SHAPE(name, kind)                                                                          \
    {                                                                                              \
        "model." #name, kind, MODEL, AT(saved.shape.name), false                                   \
    }
#define TRAIN(name, kind)                                                                          \
    {                                                                                              \
        "options." #name, kind, OPTION, AT(saved.options.name), false                              \
    }
#define TEXTS(name, kind)                                                                          \
    {                                                                                              \
        "corpus." #name, kind, CORPUS, AT(saved.corpus.name), false                                \
    }

static const field fields[] = {
    {"step", COUNT, PLACE, AT(saved.step), false},
    {"updates", COUNT, PLACE, AT(updates), false},
    {"second_rows", FLAG, PLACE, AT(split.second), true},
    SHAPE(vocab, COUNT),
    SHAPE(dim, SIZE),
    SHAPE(layers, SIZE),
    SHAPE(heads, SIZE),
    SHAPE(kv_heads, SIZE),
    SHAPE(hidden, SIZE),
    SHAPE(positions, SIZE),
    SHAPE(norm, CHOICE),
    SHAPE(activation, CHOICE),
    SHAPE(position_kind, CHOICE),
    SHAPE(norm_epsilon, REAL),
    SHAPE(rope_theta, REAL),
    SHAPE(rope_order, CHOICE),
    SHAPE(dropout, REAL),
    SHAPE(no_gain, FLAG),
    SHAPE(biases, FLAG),
    SHAPE(untied, FLAG),
    SHAPE(norm_first, FLAG),
    SHAPE(no_norm_last, FLAG),
    SHAPE(ngram.rows, COUNT),
    SHAPE(ngram.heads, SIZE),
    SHAPE(ngram.orders, SIZE),
    SHAPE(ngram.dim, SIZE),
    SHAPE(ngram.layer, SIZE),
    SHAPE(ngram.seed, SEED),
    TRAIN(batch, SIZE),
    TRAIN(length, SIZE),
    TRAIN(schedule.rate, REAL),
    TRAIN(schedule.final, REAL),
    TRAIN(schedule.steps, COUNT),
    TRAIN(schedule.warm_up, COUNT),
    TRAIN(schedule.decay, COUNT),
    TRAIN(schedule.kind, CHOICE),
    TRAIN(beta1, REAL),
    TRAIN(beta2, REAL),
    TRAIN(epsilon, REAL),
    TRAIN(decay, REAL),
    TRAIN(clip, REAL),
    TRAIN(ngram_rate, REAL),
    TRAIN(compute, CHOICE),
    TRAIN(seed, SEED),
    TEXTS(kind, CHOICE),
    TEXTS(documents, FLAG),
    TEXTS(validation, REAL),
    TEXTS(seed, SEED),
    TEXTS(in_order, FLAG),
    {"corpus.tokens", COUNT, CORPUS, AT(tokens), false},
    {"corpus.vocab", COUNT, CORPUS, AT(vocab), false},
    {"corpus.lines", COUNT, CORPUS, AT(documents), false},
    {"corpus.sum.high", SEED, CORPUS, AT(sum.high), false},
    {"corpus.sum.low", SEED, CORPUS, AT(sum.low), false},
    {"corpus.words", COUNT, CORPUS, AT(saved.corpus.max_words), true},
    {"options.freeze", CHOICE, OPTION, AT(saved.options.freeze), true},
    {"options.freeze_below", COUNT, OPTION, AT(saved.options.freeze_below), true},
    {"options.negatives", SIZE, OPTION, AT(saved.options.negatives), true},
    {"options.no_engine", FLAG, OPTION, AT(no_engine), true},
    {"options.micro_batches", SIZE, OPTION, AT(split.micro_batches), true},
    {"options.fast", FLAG, OPTION, AT(split.fast), true},
    {"options.shard_ngrams", FLAG, OPTION, AT(split.ngrams), true},
    {"options.shard_tokens", FLAG, OPTION, AT(split.tokens), true},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

_Static_assert(sizeof(int) == sizeof(embla_norm_kind) && sizeof(int) == sizeof(embla_dtype),
               "an enum is stored as an int is");

/* ---- numbers as text ---- */

static void write_real(double value, char out[TEXT])
{
    int exponent = 0;
    long long digits = (long long)ldexp(frexp(value, &exponent), 53);
    (void)snprintf(out, TEXT, "%lldp%d", digits, digits == 0 ? 0 : exponent - 53);
}

/* Parses an integer at *text and advances *text behind it. */
static bool parse_integer(const char **text, uint64_t most, uint64_t *out)
{
    const char *c = *text;
    uint64_t value = 0;
    for (; *c >= '0' && *c <= '9'; c++) {
        uint64_t digit = (uint64_t)(*c - '0');
        if (digit > most || value > (most - digit) / 10) return false;
        value = 10 * value + digit;
    }
    if (c == *text) return false;
    *text = c;
    *out = value;
    return true;
}

static bool parse_real(const char *text, double *out)
{
    uint64_t digits, exponent;
    bool below = *text == '-';
    if (below) text++;
    if (!parse_integer(&text, (uint64_t)1 << 53, &digits) || *text++ != 'p') return false;
    bool small = *text == '-';
    if (small) text++;
    if (!parse_integer(&text, 2000, &exponent) || *text != '\0') return false;
    double value = ldexp((double)digits, small ? -(int)exponent : (int)exponent);
    *out = below ? -value : value;
    return isfinite(value);
}

static void field_text(const embla_train_state *state, const field *f, char out[TEXT])
{
    const char *at = (const char *)state + f->at;
    uint64_t whole = 0;
    size_t size;
    double real;
    int choice;
    bool flag;
    switch (f->kind) {
    case REAL:
        memcpy(&real, at, sizeof real);
        write_real(real, out);
        return;
    case FLAG:
        memcpy(&flag, at, sizeof flag);
        whole = flag;
        break;
    case CHOICE:
        memcpy(&choice, at, sizeof choice);
        whole = (uint64_t)choice;
        break;
    case SIZE:
        memcpy(&size, at, sizeof size);
        whole = size;
        break;
    default: /* a non-negative int64_t and a uint64_t have the same bytes */
        memcpy(&whole, at, sizeof whole);
        break;
    }
    (void)snprintf(out, TEXT, "%" PRIu64, whole);
}

static bool parse_field(const char *text, const field *f, embla_train_state *out)
{
    static const uint64_t most[] = {[SIZE] = PTRDIFF_MAX,
                                    [COUNT] = INT64_MAX,
                                    [SEED] = UINT64_MAX,
                                    [FLAG] = 1,
                                    [CHOICE] = INT32_MAX};
    char *at = (char *)out + f->at;
    uint64_t whole;
    double real;
    if (f->kind == REAL) {
        if (!parse_real(text, &real)) return false;
        memcpy(at, &real, sizeof real);
        return true;
    }
    if (!parse_integer(&text, most[f->kind], &whole) || *text != '\0') return false;
    int choice = (int)whole;
    bool flag = whole != 0;
    size_t size = (size_t)whole;
    if (f->kind == FLAG)
        memcpy(at, &flag, sizeof flag);
    else if (f->kind == SIZE)
        memcpy(at, &size, sizeof size);
    else if (f->kind == CHOICE)
        memcpy(at, &choice, sizeof choice);
    else
        memcpy(at, &whole, sizeof whole);
    return true;
}

/* ---- the corpus ---- */

embla_status embla_train_sum(const embla_corpus *corpus, embla_checksum *out)
{
    const embla_corpus *c = corpus;
    uint64_t bytes = c->count * c->width;
    embla_checksum_state state;
    embla_checksum_begin(&state);
    if (c->map) EMBLA_TRY(embla_map_check(c->map));
    if (bytes <= SAMPLE_ABOVE || !c->map) {
        embla_checksum_add(&state, c->at, (size_t)bytes);
    } else {
        for (uint64_t i = 0; i <= PIECES; i++)
            embla_checksum_add(&state, c->at + (bytes - PIECE_BYTES) / PIECES * i, PIECE_BYTES);
        embla_checksum_add(&state, c->at + bytes - PIECE_BYTES, PIECE_BYTES);
    }
    if (c->map) EMBLA_TRY(embla_map_check(c->map));
    for (size_t i = 0; i < c->character_count; i++)
        embla_checksum_add(&state, c->characters[i].text, sizeof c->characters[i].text);
    for (size_t i = 0; i < c->word_count; i++)
        embla_checksum_add(&state, c->words[i].bytes, c->words[i].length + 1);
    *out = embla_checksum_end(&state);
    return EMBLA_OK;
}

/* ---- the state ---- */

void embla_train_state_of(const embla_train *train, embla_train_state *out)
{
    memset(out, 0, sizeof *out);
    out->saved.shape = train->gpt->shape;
    out->saved.options = train->options;
    out->saved.options.threads = 0; /* results do not depend on it, so the file must not either */
    out->saved.corpus = train->corpus->options;
    out->saved.step = train->step;
    out->no_engine = train->options.engine == EMBLA_TRAIN_ENGINE_NONE;
    out->updates = train->updates;
    out->tokens = embla_corpus_tokens(train->corpus);
    out->vocab = embla_corpus_vocab(train->corpus);
    out->documents = embla_corpus_documents(train->corpus);
    out->sum = train->sum;
}

embla_status embla_train_state_write(const embla_train_state *state, embla_arena *arena,
                                     embla_pair **pairs, size_t *count)
{
    embla_pair *list = NULL;
    char text[TEXT];
    EMBLA_TRY(embla_arena_many(arena, FIELDS + 3, sizeof *list, "metadata", &list));
    list[0] = (embla_pair){KEY_MARK, VERSION};
    list[1] = (embla_pair){KEY_NOTE, state->saved.note};
    size_t used = 2;
    for (size_t i = 0; i < FIELDS; i++) {
        field_text(state, &fields[i], text);
        if (fields[i].later && strcmp(text, "0") == 0) continue;
        list[used].key = fields[i].key;
        EMBLA_TRY(embla_arena_text(arena, text, strlen(text), &list[used++].value));
    }
    *pairs = list;
    *count = used;
    return EMBLA_OK;
}

embla_status embla_train_state_read(const embla_directory *directory, const char *name,
                                    embla_train_state *out)
{
    const char *version = embla_saved_value(directory, KEY_MARK);
    const char *note = embla_saved_value(directory, KEY_NOTE);
    memset(out, 0, sizeof *out);
    if (!version)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s is not a training checkpoint: it has no '" KEY_MARK "'", name);
    if (strcmp(version, VERSION) != 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s is a checkpoint of version '%.32s'; only version " VERSION
                          " is supported",
                          name, version);
    if (!note || strlen(note) >= sizeof out->saved.note)
        return embla_fail(
            EMBLA_ERR_FORMAT,
            "%.200s: the note has %zu bytes; a note of fewer than %zu bytes is required", name,
            note ? strlen(note) : 0, sizeof out->saved.note);
    memcpy(out->saved.note, note, strlen(note) + 1);
    for (size_t i = 0; i < FIELDS; i++) {
        const char *text = embla_saved_value(directory, fields[i].key);
        if (!text && fields[i].later) continue; /* stays 0 */
        if (!text || !parse_field(text, &fields[i], out))
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: '%s' is '%.48s', which is not a valid value", name,
                              fields[i].key, text ? text : "(missing)");
    }
    out->saved.options.engine =
        out->no_engine ? EMBLA_TRAIN_ENGINE_NONE : EMBLA_TRAIN_ENGINE_LIBRARY;
    if (out->saved.step > EMBLA_TRAIN_STEPS_MOST || out->updates > out->saved.step)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: %" PRId64 " updates, but only %" PRId64 " steps", name,
                          out->updates, out->saved.step);
    return EMBLA_OK;
}

/* ---- comparing ---- */

/* The value of a field as text for people. */
static void field_text_for_people(const embla_train_state *state, const field *f, char out[TEXT])
{
    double real;
    field_text(state, f, out);
    if (f->kind != REAL) return;
    memcpy(&real, (const char *)state + f->at, sizeof real);
    (void)snprintf(out, TEXT, "%.17g", real);
}

static embla_status compare_sums(const embla_train_state *ours, const embla_train_state *other,
                                 const char *name, bool saved)
{
    char a[EMBLA_SUM_TEXT], b[EMBLA_SUM_TEXT];
    if (ours->sum.high == other->sum.high && ours->sum.low == other->sum.low) return EMBLA_OK;
    embla_sum_text(other->sum, a);
    embla_sum_text(ours->sum, b);
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%.200s: %s a corpus with the checksum %s, this one "
                      "has %s: the same number of tokens, but different ones",
                      name, saved ? "the saved training run used" : "it has", a, b);
}

embla_status embla_train_state_compare(const embla_train_state *ours,
                                       const embla_train_state *other, const char *name, bool saved)
{
    static const char *const owners[][2] = {
        [MODEL] = {"its model", "the saved model"},
        [OPTION] = {"its training run", "the saved training run"},
        [CORPUS] = {"its corpus", "the corpus of the saved training run"}};
    for (size_t i = 0; i < FIELDS; i++) {
        const field *f = &fields[i];
        char a[TEXT], b[TEXT];
        if (f->group == PLACE || f->at == AT(sum.high) || f->at == AT(sum.low)) continue;
        field_text(other, f, a);
        field_text(ours, f, b);
        if (strcmp(a, b) == 0) continue;
        field_text_for_people(other, f, a);
        field_text_for_people(ours, f, b);
        return embla_fail(f->group == MODEL ? EMBLA_ERR_SHAPE : EMBLA_ERR_ARGUMENT,
                          "%.200s: %s has %s %s, but this one has %s", name,
                          owners[f->group][saved], strchr(f->key, '.') + 1, a, b);
    }
    return compare_sums(ours, other, name, saved);
}
