/* SPDX-License-Identifier: Apache-2.0 */
/* Learns a Unigram model: strings with probabilities, such that the best way to cut a piece into
 * strings is the most probable one (Kudo 2018). The steps and constants are those of SentencePiece
 * and of Hugging Face's UnigramTrainer, which ends step 5 differently:
 *
 *   1. start from the strings of train_seeds.c
 *   2. twice: expect how often each string is used, over all ways to cut each piece (forward and
 *      backward sums); strings below 0.5 are dropped, the others get the score
 *      digamma(expected) - digamma(sum)
 *   3. stop if at most 1.1 times the wanted number are left
 *   4. keep the three quarters whose loss would cost most probability, and go on with step 2
 *   5. keep all characters of the text and the strings with the highest scores (SentencePiece)
 *
 * The result has the same bits for any number of threads and on every machine: expected counts are
 * added up as integers, and exponentials and logarithms use exactly rounded operations only.
 * Probabilities are multiplied, not added as logarithms; sums that become small are multiplied by
 * 2^300, and how often is noted.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "base/threads.h"
#include "base/utf8.h"
#include "tokenizer/grow.h"
#include "vocabulary/train_math.h"
#include "vocabulary/train_pieces.h"

#define SHRINK          0.75
#define UNKNOWN_PENALTY 10.0
#define LEAST_EXPECTED  0.5
#define STEP_OF_MISSING 0.0001 /* between the scores of characters that were dropped */
#define SMALL           1e-100 /* sums below this are multiplied by 2^LIFT */
enum {
    LIFT = 300,
    EM_STEPS = 2,
    AT_ONCE = 64, /* pieces or strings that a thread takes */
    EDGES = EMBLA_SEED_CHARS + 1,
    WINDOW = 4 * EMBLA_SEED_CHARS
};

/* A string of the model, or the unknown character (item -1), that begins at a place of a piece. */
typedef struct {
    size_t end;
    int32_t item;
} edge;

/* The best way to cut the text before a place. */
typedef struct {
    double score;
    uint32_t start;
    int32_t item;
} path;

/* What each slot of a shared loop has for itself. */
typedef struct {
    void *memory;
    double *forward, *backward; /* sums at each byte of a piece */
    int32_t *lifts;             /* of forward */
    path *paths;
    int64_t *counts; /* by string: how often it is used, in `unit`s */
    int64_t unknown;
} worker;

typedef struct {
    const embla_tokenizer_train_options *options;
    embla_counted_word *words;
    size_t word_count, longest;
    embla_seeds seeds;      /* the model's strings; dropped ones have the probability 0 */
    embla_seed *characters; /* those of the text */
    size_t character_count, character_room;
    double *chances; /* by string: its probability */
    size_t chance_room, alive;
    embla_trie trie;
    double least, unknown, unknown_chance; /* lowest score; score of an unknown character */
    double unit;                           /* 1 in counts, a power of 2 */
    worker *workers;
    size_t worker_count, worker_bytes; /* of what each has */
} learning;

/* ---- ways to cut ---- */

static double lift(double x, int32_t times)
{
    return times == 0 ? x : ldexp(x, LIFT * times);
}

/* Lists the strings that begin at a place, and the unknown character if the first character is not
 * one of them. */
static size_t list_edges(const learning *l, const char *text, size_t length, size_t at,
                         edge edges[EDGES])
{
    size_t count = 0, size = 0;
    uint32_t state = 0;
    bool single = false;
    (void)embla_char_at(text + at, &size);
    for (size_t end = at; end < length && embla_trie_step(&l->trie, &state, (uint8_t)text[end]);) {
        int32_t item = embla_trie_value(&l->trie, state);
        end++;
        if (item < 0 || l->chances[item] == 0) continue;
        edges[count++] = (edge){end, item};
        single |= end - at == size;
    }
    if (!single) edges[count++] = (edge){at + size, -1};
    return count;
}

static double chance_of(const learning *l, int32_t item)
{
    return item < 0 ? l->unknown_chance : l->chances[item];
}

static double score_of(const learning *l, int32_t item)
{
    return item < 0 ? l->unknown : l->seeds.items[item].score;
}

/* Finds the best way to cut a text; `without` is a string that must not be used. Of equally good
 * ones the first one wins. Returns its score. */
static double find_best(const learning *l, path *paths, const char *text, size_t length,
                        int32_t without)
{
    edge edges[EDGES];
    for (size_t i = 0; i <= length; i++) paths[i].start = UINT32_MAX;
    paths[0] = (path){0, 0, -1};
    for (size_t at = 0, size = 0; at < length; at += size) {
        size_t count = list_edges(l, text, length, at, edges);
        (void)embla_char_at(text + at, &size);
        for (size_t i = 0; i < count; i++) {
            path *to = &paths[edges[i].end];
            if (edges[i].item == without && without >= 0) continue;
            double score = paths[at].score + score_of(l, edges[i].item);
            if (to->start == UINT32_MAX || score > to->score)
                *to = (path){score, (uint32_t)at, edges[i].item};
        }
    }
    return paths[length].score;
}

/* ---- expected counts ---- */

static int32_t sum_forward(const learning *l, worker *w, const char *text, size_t length)
{
    edge edges[EDGES];
    int32_t lifts = 0;
    memset(w->forward, 0, (length + 1) * sizeof *w->forward);
    w->forward[0] = 1;
    for (size_t at = 0, size = 0; at < length; at += size) {
        size_t count = list_edges(l, text, length, at, edges);
        (void)embla_char_at(text + at, &size);
        if (w->forward[at] < SMALL) {
            for (size_t i = at; i <= length && i <= at + WINDOW; i++)
                w->forward[i] = lift(w->forward[i], 1);
            lifts++;
        }
        w->lifts[at] = lifts;
        for (size_t i = 0; i < count; i++)
            w->forward[edges[i].end] += w->forward[at] * chance_of(l, edges[i].item);
    }
    return lifts;
}

/* Adds the expected use of each string in a piece that occurs `times` times. */
static void expect_piece(const learning *l, worker *w, const embla_counted_word *word)
{
    edge edges[EDGES];
    const size_t length = word->length;
    const int32_t all = sum_forward(l, w, word->at, length);
    const double most = (double)word->count * l->unit, share = most / w->forward[length];
    int32_t lifts = 0;
    w->backward[length] = 1;
    for (size_t at = length; at > 0;) {
        double sum = 0;
        do at--;
        while (at > 0 && ((uint8_t)word->at[at] & 0xc0) == 0x80);
        size_t count = list_edges(l, word->at, length, at, edges);
        for (size_t i = 0; i < count; i++) {
            double after = chance_of(l, edges[i].item) * w->backward[edges[i].end];
            sum += after;
            if (edges[i].item < 0) continue;
            double use = lift(w->forward[at] * after * share, all - w->lifts[at] - lifts);
            w->counts[edges[i].item] += (int64_t)((use < most ? use : most) + 0.5);
        }
        w->backward[at] = sum;
        if (sum >= SMALL) continue;
        for (size_t i = at; i <= length && i <= at + WINDOW; i++)
            w->backward[i] = lift(w->backward[i], 1);
        lifts++;
    }
}

/* Counts the strings of the best way to cut a piece. */
static void count_best(const learning *l, worker *w, const embla_counted_word *word)
{
    (void)find_best(l, w->paths, word->at, word->length, -1);
    for (size_t at = word->length; at > 0; at = w->paths[at].start) {
        int64_t *count = w->paths[at].item < 0 ? &w->unknown : &w->counts[w->paths[at].item];
        *count += (int64_t)word->count;
    }
}

typedef void word_fn(const learning *l, worker *w, const embla_counted_word *word);

typedef struct {
    const learning *l;
    word_fn *count;
} counting;

static embla_status count_some(void *job, size_t first, size_t end, size_t slot)
{
    const counting *c = job;
    for (size_t i = first; i < end; i++) c->count(c->l, &c->l->workers[slot], &c->l->words[i]);
    return EMBLA_OK;
}

/* Calls a function for each piece, and adds the counts of all threads to those of the first. */
static embla_status count_words(learning *l, word_fn *count)
{
    const counting c = {l, count};
    for (size_t i = 0; i < l->worker_count; i++) {
        memset(l->workers[i].counts, 0, l->seeds.count * sizeof *l->workers[i].counts);
        l->workers[i].unknown = 0;
    }
    EMBLA_TRY(embla_share((int)l->worker_count, l->word_count, AT_ONCE, count_some, &c));
    for (size_t i = 1; i < l->worker_count; i++) {
        for (size_t j = 0; j < l->seeds.count; j++)
            l->workers[0].counts[j] += l->workers[i].counts[j];
        l->workers[0].unknown += l->workers[i].unknown;
    }
    return EMBLA_OK;
}

/* ---- the model ---- */

/* Computes what follows from the scores of the strings that are alive. */
static void set_chances(learning *l)
{
    l->least = INFINITY;
    l->alive = 0;
    for (size_t i = 0; i < l->seeds.count; i++) {
        double score = l->seeds.items[i].score;
        l->chances[i] = embla_exp_below(score);
        if (l->chances[i] == 0) continue;
        if (score < l->least) l->least = score;
        l->alive++;
    }
    if (l->alive == 0) l->least = 0;
    l->unknown = l->least - UNKNOWN_PENALTY;
    l->unknown_chance = embla_exp_below(l->unknown);
}

static embla_status build_trie(learning *l)
{
    const size_t bytes = (l->seeds.count + 1) * sizeof(embla_trie_key);
    void *memory = NULL;
    embla_trie_free(&l->trie);
    EMBLA_TRY(embla_mem_new(bytes, "strings", &memory));
    embla_trie_key *keys = memory;
    for (size_t i = 0; i < l->seeds.count; i++)
        keys[i] = (embla_trie_key){l->seeds.items[i].bytes, l->seeds.items[i].length, (int32_t)i};
    embla_status status = embla_trie_build(&l->trie, keys, l->seeds.count);
    embla_mem_free(keys, bytes);
    return status;
}

static void set_first_scores(learning *l)
{
    double sum = 0;
    for (size_t i = 0; i < l->seeds.count; i++) sum += l->seeds.items[i].score;
    for (size_t i = 0; i < l->seeds.count; i++)
        l->seeds.items[i].score = embla_log_of(l->seeds.items[i].score) - embla_log_of(sum);
}

static embla_status improve_scores(learning *l)
{
    const int64_t *counts = l->workers[0].counts;
    double sum = 0;
    EMBLA_TRY(count_words(l, expect_piece));
    for (size_t i = 0; i < l->seeds.count; i++)
        if ((double)counts[i] / l->unit >= LEAST_EXPECTED) sum += (double)counts[i] / l->unit;
    const double all = embla_digamma_of(sum);
    for (size_t i = 0; i < l->seeds.count; i++) {
        double expected = (double)counts[i] / l->unit;
        l->seeds.items[i].score =
            expected >= LEAST_EXPECTED ? embla_digamma_of(expected) - all : -INFINITY;
    }
    set_chances(l);
    return EMBLA_OK;
}

/* ---- pruning ---- */

/* A string, and how much probability is lost without it: +infinity for one that has to stay,
 * -infinity for one that is not needed. */
typedef struct {
    double loss;
    uint32_t item;
} candidate;

/* The highest first, of equal ones the first item. */
static int by_loss(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->loss != b->loss) return a->loss > b->loss ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

typedef struct {
    const learning *l;
    candidate *list;
    double sum, words; /* uses of strings, and words, in the text */
} losing;

/* How much is lost if each use of a string is replaced by the second best way to cut it. */
static double loss_of(const losing *p, worker *w, size_t item)
{
    const learning *l = p->l;
    const embla_seed *seed = &l->seeds.items[item];
    const int64_t *counts = l->workers[0].counts;
    const double own = (double)counts[item];
    size_t size = 0, parts = 0;
    if (l->chances[item] == 0) return -INFINITY;
    (void)embla_char_at(seed->bytes, &size);
    if (size == seed->length) return INFINITY; /* a character has no other way */
    if (find_best(l, w->paths, seed->bytes, seed->length, (int32_t)item) > seed->score)
        return own > 0 ? INFINITY : -INFINITY;
    if (own == 0) return -INFINITY;
    for (size_t at = seed->length; at > 0; at = w->paths[at].start) parts++;
    double after = embla_log_of(p->sum + own * (double)(parts - 1)), other = 0;
    for (size_t at = seed->length; at > 0; at = w->paths[at].start) {
        int32_t part = w->paths[at].item;
        double count = (double)(part < 0 ? l->workers[0].unknown : counts[part]);
        other += embla_log_of(count + own) - after;
    }
    return own / p->words * (embla_log_of(own) - embla_log_of(p->sum) - other);
}

static embla_status lose_some(void *job, size_t first, size_t end, size_t slot)
{
    const losing *p = job;
    for (size_t i = first; i < end; i++)
        p->list[i] = (candidate){loss_of(p, &p->l->workers[slot], i), (uint32_t)i};
    return EMBLA_OK;
}

static embla_status find_losses(const learning *l, candidate *list)
{
    losing p = {.l = l, .list = list, .sum = (double)l->workers[0].unknown};
    for (size_t i = 0; i < l->seeds.count; i++) p.sum += (double)l->workers[0].counts[i];
    for (size_t i = 0; i < l->word_count; i++) p.words += (double)l->words[i].count;
    return embla_share((int)l->worker_count, l->seeds.count, AT_ONCE, lose_some, &p);
}

/* Keeps the strings whose loss is highest, in the order of their losses. */
static embla_status keep_best(learning *l, candidate *list, size_t wanted)
{
    const size_t room = l->seeds.count + 1;
    size_t count = 0;
    void *memory = NULL;
    EMBLA_TRY(find_losses(l, list));
    qsort(list, l->seeds.count, sizeof *list, by_loss);
    EMBLA_TRY(embla_mem_new(room * sizeof(embla_seed), "strings", &memory));
    embla_seed *kept = memory;
    for (size_t i = 0; i < l->seeds.count && list[i].loss > -INFINITY; i++)
        if (count < wanted || list[i].loss == INFINITY)
            kept[count++] = l->seeds.items[list[i].item];
    embla_mem_free(l->seeds.items, l->seeds.room * sizeof *l->seeds.items);
    l->seeds.items = kept;
    l->seeds.room = room;
    l->seeds.count = count;
    EMBLA_TRY(build_trie(l));
    set_chances(l);
    return EMBLA_OK;
}

/* The token of unknown characters is among the strings that the reference counts. */
static embla_status prune(learning *l, size_t enough)
{
    const size_t wanted = (size_t)((double)(l->alive + 1) * SHRINK);
    const size_t bytes = (l->seeds.count + 1) * sizeof(candidate);
    void *list = NULL;
    EMBLA_TRY(count_words(l, count_best));
    EMBLA_TRY(embla_mem_new(bytes, "strings", &list));
    embla_status status = keep_best(l, list, (wanted > enough ? wanted : enough) - 1);
    embla_mem_free(list, bytes);
    return status;
}

/* Steps 2 to 4. */
static embla_status improve(learning *l)
{
    const size_t enough = (size_t)l->options->max_tokens * 11 / 10;
    const size_t first = l->seeds.count + 1;
    for (;;) {
        size_t before = l->seeds.count;
        for (int i = 0; i < EM_STEPS; i++) {
            size_t more = l->alive + 1 > enough ? l->alive + 1 - enough : 0;
            size_t all = first > enough ? first - enough : 1;
            EMBLA_TRY(embla_progress_report(l->options->progress, l->options->context, "prune",
                                            more < all ? (int64_t)(all - more) : 0, (int64_t)all));
            EMBLA_TRY(improve_scores(l));
        }
        if (l->alive + 1 <= enough) return EMBLA_OK;
        EMBLA_TRY(prune(l, enough));
        if (l->seeds.count >= before) return EMBLA_OK; /* nothing can be left out */
    }
}

/* ---- the result ---- */

/* Whether a string is one of the special tokens, which are all that learned has yet. */
static bool is_special(const embla_learned *learned, const embla_seed *seed)
{
    for (size_t i = 0; i < learned->count; i++)
        if (learned->tokens[i].length == seed->length &&
            memcmp(learned->tokens[i].bytes, seed->bytes, seed->length) == 0)
            return true;
    return false;
}

/* Lists the characters of the text. One that was dropped gets a score near the lowest one, the more
 * frequent ones a higher one. */
static size_t list_characters(const learning *l, const embla_learned *learned, embla_seed *out)
{
    double missing = l->least;
    size_t count = 0;
    for (size_t i = l->character_count; i-- > 0;) {
        embla_seed c = l->characters[i];
        int32_t item = embla_trie_find(&l->trie, 0, c.bytes, c.length);
        bool alive = item >= 0 && l->chances[item] > 0;
        c.score = alive ? l->seeds.items[item].score : missing;
        if (!alive) missing += STEP_OF_MISSING;
        if (!is_special(learned, &c)) out[count++] = c;
    }
    return count;
}

/* Lists the longer strings of the model. */
static size_t list_strings(const learning *l, const embla_learned *learned, embla_seed *out)
{
    size_t count = 0, size = 0;
    for (size_t i = 0; i < l->seeds.count; i++) {
        const embla_seed *seed = &l->seeds.items[i];
        (void)embla_char_at(seed->bytes, &size);
        if (size == seed->length || l->chances[i] == 0) continue;
        if (!is_special(learned, seed)) out[count++] = *seed;
    }
    return count;
}

static int by_score(const void *left, const void *right)
{
    const embla_seed *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    int order = memcmp(a->bytes, b->bytes, a->length < b->length ? a->length : b->length);
    if (order != 0) return order;
    return a->length < b->length ? -1 : a->length > b->length;
}

/* Appends the characters and the best strings to the special tokens, the highest score first. */
static embla_status add_tokens(const learning *l, embla_learned *learned, embla_seed *found)
{
    const size_t special = learned->count, most = (size_t)l->options->max_tokens - special;
    size_t count = list_characters(l, learned, found);
    size_t strings = list_strings(l, learned, found + count);
    if (strings > 1) qsort(found + count, strings, sizeof *found, by_score);
    count = count + strings < most ? count + strings : most;
    if (count > 1) qsort(found, count, sizeof *found, by_score);
    EMBLA_TRY(embla_grow(&learned->scores, &learned->score_room, 0, special + count + 1,
                         sizeof *learned->scores, "scores"));
    for (size_t i = 0; i < special; i++) learned->scores[i] = 0;
    for (size_t i = 0; i < count; i++) {
        learned->scores[special + i] = found[i].score;
        EMBLA_TRY(embla_learned_add(learned, found[i].bytes, found[i].length));
    }
    return EMBLA_OK;
}

static embla_status finish(const learning *l, embla_learned *learned)
{
    const size_t bytes = (l->seeds.count + l->character_count + 1) * sizeof(embla_seed);
    void *found = NULL;
    EMBLA_TRY(embla_mem_new(bytes, "tokens", &found));
    embla_status status = add_tokens(l, learned, found);
    embla_mem_free(found, bytes);
    return status;
}

/* ---- all of it ---- */

static int by_bytes(const void *left, const void *right)
{
    const embla_counted_word *a = left, *b = right;
    int order = memcmp(a->at, b->at, a->length < b->length ? a->length : b->length);
    if (order != 0) return order;
    return a->length < b->length ? -1 : a->length > b->length;
}

/* Sorts the pieces, so that their order does not depend on threads, and chooses the unit. */
static void begin_words(learning *l)
{
    double total = 1;
    int power = 0;
    if (l->word_count > 1) qsort(l->words, l->word_count, sizeof *l->words, by_bytes);
    l->longest = WINDOW;
    for (size_t i = 0; i < l->word_count; i++) {
        if (l->words[i].length > l->longest) l->longest = l->words[i].length;
        total += (double)l->words[i].count * (double)l->words[i].length;
    }
    (void)frexp(total, &power);
    l->unit = ldexp(1, 61 - power); /* no sum of counts reaches 2^62 */
}

static embla_status keep_characters(learning *l, const embla_learned *learned)
{
    const size_t count = l->seeds.characters;
    if (learned->count + count > (size_t)l->options->max_tokens)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a vocabulary of %" PRId64
                          " tokens is too small: the special tokens and the characters of the "
                          "text are %zu",
                          l->options->max_tokens, learned->count + count);
    EMBLA_TRY(embla_grow(&l->characters, &l->character_room, 0, count + 1, sizeof *l->characters,
                         "characters"));
    if (count > 0) memcpy(l->characters, l->seeds.items, count * sizeof *l->characters);
    l->character_count = count;
    return EMBLA_OK;
}

static embla_status make_workers(learning *l)
{
    const size_t places = l->longest + 1, count = l->seeds.count;
    void *memory = NULL;
    size_t threads = (size_t)embla_threads_for(l->options->threads, l->word_count * 4096);
    EMBLA_TRY(embla_mem_new(threads * sizeof *l->workers, "threads", &memory));
    l->workers = memory;
    l->worker_count = threads;
    l->worker_bytes = places * (2 * sizeof(double) + sizeof(path) + sizeof(int32_t)) +
                      (count + 1) * sizeof(int64_t);
    for (size_t i = 0; i < threads; i++) {
        worker *w = &l->workers[i];
        EMBLA_TRY(embla_mem_new(l->worker_bytes, "counts of strings", &w->memory));
        w->forward = w->memory;
        w->backward = w->forward + places;
        w->counts = (int64_t *)(w->backward + places);
        w->paths = (path *)(w->counts + count + 1);
        w->lifts = (int32_t *)(w->paths + places);
    }
    return EMBLA_OK;
}

static embla_status learn(learning *l, embla_learned *learned)
{
    begin_words(l);
    EMBLA_TRY(embla_seeds_make(l->words, l->word_count, l->options, &l->seeds));
    EMBLA_TRY(keep_characters(l, learned));
    EMBLA_TRY(embla_grow(&l->chances, &l->chance_room, 0, l->seeds.count + 1, sizeof *l->chances,
                         "probabilities"));
    EMBLA_TRY(make_workers(l));
    EMBLA_TRY(build_trie(l));
    set_first_scores(l);
    set_chances(l);
    EMBLA_TRY(improve(l));
    return finish(l, learned);
}

embla_status embla_unigram_learn(const embla_word_list *pieces,
                                 const embla_tokenizer_train_options *options,
                                 embla_learned *learned)
{
    learning l = {.options = options};
    l.words = embla_word_list_words(pieces, &l.word_count);
    embla_status status = learn(&l, learned);
    for (size_t i = 0; i < l.worker_count; i++)
        embla_mem_free(l.workers[i].memory, l.workers[i].memory ? l.worker_bytes : 0);
    embla_mem_free(l.workers, l.worker_count * sizeof *l.workers);
    embla_trie_free(&l.trie);
    embla_mem_free(l.chances, l.chance_room * sizeof *l.chances);
    embla_mem_free(l.characters, l.character_room * sizeof *l.characters);
    embla_seeds_free(&l.seeds);
    return status;
}
