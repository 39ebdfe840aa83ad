/* SPDX-License-Identifier: Apache-2.0 */
/* Communities of tied rows, by Louvain's method (Blondel et al. 2008). Each point begins as a
 * community of its own and moves to the community of its ties that gains most: the weight of its
 * ties there, less the weight that chance would give them. When no point moves, communities become
 * the points of a smaller graph, and the same begins again. Then small communities join others.
 *
 * Points are visited in their order by one thread, and of equal gains the first one counts. Nothing
 * is random, so the result is the same everywhere.
 */
#include <string.h>

#include "base/best.h"
#include "base/options.h"
#include "base/stop.h"
#include "base/threads.h"
#include "map/graph.h"
#include "near/order.h"

enum { MOST_UNASKED = 24, MOST = 1024, CENTRAL = 16, LEVELS = 12, PASSES = 12, SMALL = 1000 };

static const char what[] = "communities of rows";

struct embla_communities {
    embla_arena arena;
    int32_t *labels; /* rows */
    size_t rows;
    embla_community *list;
    size_t count;
};

/* A graph of points, or of communities of points. */
typedef struct {
    int32_t count;
    const int64_t *start; /* count + 1 */
    const int32_t *to;
    const float *weight;
    double *total; /* count: all ties of a point; a tie between points inside it counts twice */
    int64_t *size; /* count: points of the lowest level */
} level;

typedef struct {
    embla_arena *working;
    const embla_communities_options *options;
    const embla_ties *ties;
    int32_t *community; /* of each point of the lowest level */
    double *links;      /* by community: weight of the ties found so far; 0 between uses */
    int32_t *found;     /* communities whose links are not 0 */
    int32_t found_count;
} search;

static embla_status take(embla_arena *arena, uint64_t count, size_t size, void *out)
{
    return embla_arena_many(arena, count, size, what, out);
}

/* Adds the ties of a point to the links of the communities where they lead. */
static void add_links(search *s, const level *l, int32_t point, const int32_t *community)
{
    for (int64_t tie = l->start[point]; tie < l->start[point + 1]; tie++) {
        int32_t to = community[l->to[tie]];
        if (to < 0) continue;
        if (s->links[to] == 0.0) s->found[s->found_count++] = to;
        s->links[to] += (double)l->weight[tie];
    }
}

static void clear_links(search *s)
{
    for (int32_t i = 0; i < s->found_count; i++) s->links[s->found[i]] = 0.0;
    s->found_count = 0;
}

/* ---- Louvain's method ---- */

/* Moves each point once. sums has the total of each community. Returns how many points moved. */
static int32_t move_points(search *s, const level *l, double all, int32_t *community, double *sums)
{
    int32_t moved = 0;
    for (int32_t i = 0; i < l->count; i++) {
        int32_t from = community[i], best = from;
        double share = l->total[i] / all;
        add_links(s, l, i, community);
        sums[from] -= l->total[i];
        double most = s->links[from] - share * sums[from];
        for (int32_t f = 0; f < s->found_count; f++) {
            int32_t to = s->found[f];
            double gain = s->links[to] - share * sums[to];
            if (gain > most * (1.0 + 1e-12) + 1e-12) {
                most = gain;
                best = to;
            }
        }
        sums[best] += l->total[i];
        community[i] = best;
        moved += best != from;
        clear_links(s);
    }
    return moved;
}

/* Numbers communities from 0 in the order of their first points. Returns their number. */
static int32_t renumber(int32_t *community, int32_t count, int32_t *number)
{
    int32_t used = 0;
    for (int32_t i = 0; i < count; i++) number[i] = -1;
    for (int32_t i = 0; i < count; i++) {
        if (number[community[i]] < 0) number[community[i]] = used++;
        community[i] = number[community[i]];
    }
    return used;
}

/* Sorts points by community; begin has one entry more than there are communities. */
static void sort_members(const int32_t *community, int32_t count, int32_t communities,
                         int32_t *begin, int32_t *members)
{
    for (int32_t i = 0; i < count; i++) begin[community[i] + 1]++;
    for (int32_t c = 0; c < communities; c++) begin[c + 1] += begin[c];
    for (int32_t i = 0; i < count; i++) members[begin[community[i]]++] = i;
    for (int32_t c = communities; c > 0; c--) begin[c] = begin[c - 1];
    begin[0] = 0;
}

/* Makes the graph whose points are the communities of l. */
static embla_status shrink(search *s, const level *l, const int32_t *community, int32_t communities,
                           level *out)
{
    uint64_t count = (uint64_t)communities, ties = (uint64_t)l->start[l->count];
    int32_t *begin = NULL, *members = NULL, *to = NULL;
    int64_t *start = NULL;
    float *weight = NULL;
    *out = (level){.count = communities};
    if (count * count < ties) ties = count * count;
    EMBLA_TRY(take(s->working, count + 1, sizeof *begin, &begin));
    EMBLA_TRY(take(s->working, (uint64_t)l->count, sizeof *members, &members));
    EMBLA_TRY(take(s->working, count + 1, sizeof *start, &start));
    EMBLA_TRY(take(s->working, ties, sizeof *to, &to));
    EMBLA_TRY(take(s->working, ties, sizeof *weight, &weight));
    EMBLA_TRY(take(s->working, count, sizeof *out->total, &out->total));
    EMBLA_TRY(take(s->working, count, sizeof *out->size, &out->size));
    sort_members(community, l->count, communities, begin, members);
    for (int32_t c = 0; c < communities; c++) {
        int64_t at = start[c];
        for (int32_t m = begin[c]; m < begin[c + 1]; m++) {
            add_links(s, l, members[m], community);
            out->total[c] += l->total[members[m]];
            out->size[c] += l->size[members[m]];
        }
        for (int32_t f = 0; f < s->found_count; f++) {
            if (s->found[f] == c) continue;
            to[at] = s->found[f];
            weight[at++] = (float)s->links[s->found[f]];
        }
        start[c + 1] = at;
        clear_links(s);
    }
    out->start = start;
    out->to = to;
    out->weight = weight;
    return EMBLA_OK;
}

/* Moves the points of one level until few move. Sets *communities to the number of communities. */
static embla_status settle(search *s, const level *l, int number, int32_t *community,
                           int32_t *communities)
{
    double all = 0, *sums = NULL;
    int32_t *numbers = NULL;
    EMBLA_TRY(take(s->working, (uint64_t)l->count, sizeof *sums, &sums));
    EMBLA_TRY(take(s->working, (uint64_t)l->count, sizeof *numbers, &numbers));
    for (int32_t i = 0; i < l->count; i++) {
        community[i] = i;
        sums[i] = l->total[i];
        all += l->total[i];
    }
    for (int pass = 0; pass < PASSES; pass++) {
        EMBLA_TRY(embla_progress_report(s->options->progress, s->options->context, "communities",
                                        number * PASSES + pass, LEVELS * PASSES));
        int32_t moved = move_points(s, l, all, community, sums);
        if (moved <= l->count / 1000) break;
    }
    *communities = renumber(community, l->count, numbers);
    return EMBLA_OK;
}

/* Finds communities level by level. last becomes the graph of the communities. */
static embla_status find_communities(search *s, level *last)
{
    int32_t *community = NULL, communities = 0;
    EMBLA_TRY(take(s->working, (uint64_t)last->count, sizeof *community, &community));
    for (int number = 0; number < LEVELS; number++) {
        level next;
        EMBLA_TRY(settle(s, last, number, community, &communities));
        if (communities == last->count) break;
        for (int32_t i = 0; i < s->ties->count; i++) s->community[i] = community[s->community[i]];
        EMBLA_TRY(shrink(s, last, community, communities, &next));
        *last = next;
    }
    return embla_progress_report(s->options->progress, s->options->context, "communities",
                                 LEVELS * PASSES, LEVELS * PASSES);
}

/* ---- small communities join others ---- */

typedef struct {
    const level *l;
    int32_t *group;       /* of each community; -1 means that it was dropped */
    int32_t *head, *next; /* members of each group: the first, and the one after each; -1 ends */
    double *total, all;   /* of each group: all its ties; of all groups together */
    int64_t *size;        /* of each group in points; 0 means that it has joined another */
    int32_t count;
} merging;

/* Joins a group to the group where it gains most, as in move_points. Without ties, it is dropped.
 */
static void join_or_drop(search *s, merging *m, int32_t group)
{
    int32_t best = -1, last = m->head[group];
    double most = 0, share = m->total[group] / m->all;
    for (int32_t c = m->head[group]; c >= 0; c = m->next[c]) add_links(s, m->l, c, m->group);
    for (int32_t f = 0; f < s->found_count; f++) {
        int32_t to = s->found[f];
        double gain = s->links[to] - share * m->total[to];
        if (to == group || (best >= 0 && gain <= most)) continue;
        best = to;
        most = gain;
    }
    clear_links(s);
    for (int32_t c = m->head[group]; c >= 0; c = m->next[c]) {
        m->group[c] = best;
        last = c;
    }
    if (best >= 0) {
        m->next[last] = m->head[best];
        m->head[best] = m->head[group];
        m->size[best] += m->size[group];
        m->total[best] += m->total[group];
    }
    m->size[group] = 0;
    m->count--;
}

/* The smallest group; of equal ones the last. */
static int32_t smallest(const merging *m)
{
    int32_t found = -1;
    for (int32_t g = 0; g < m->l->count; g++)
        if (m->size[g] > 0 && (found < 0 || m->size[g] <= m->size[found])) found = g;
    return found;
}

static embla_status merge_small(search *s, const level *l, merging *m)
{
    uint64_t count = (uint64_t)l->count;
    int32_t most =
        (int32_t)(s->options->max_communities > 0 ? s->options->max_communities : MOST_UNASKED);
    embla_key *order = NULL, *space = NULL;
    *m = (merging){.l = l, .count = l->count};
    EMBLA_TRY(take(s->working, count, sizeof *m->group, &m->group));
    EMBLA_TRY(take(s->working, count, sizeof *m->head, &m->head));
    EMBLA_TRY(take(s->working, count, sizeof *m->next, &m->next));
    EMBLA_TRY(take(s->working, count, sizeof *m->size, &m->size));
    EMBLA_TRY(take(s->working, count, sizeof *m->total, &m->total));
    EMBLA_TRY(take(s->working, count, sizeof *order, &order));
    EMBLA_TRY(take(s->working, count, sizeof *space, &space));
    for (int32_t c = 0; c < l->count; c++) {
        m->group[c] = m->head[c] = c;
        m->next[c] = -1;
        m->size[c] = l->size[c];
        m->total[c] = l->total[c];
        m->all += l->total[c];
        order[c] = (embla_key){.key = (uint64_t)l->size[c], .row = c};
    }
    embla_order(order, space, (size_t)count);
    for (uint64_t i = 0; i < count; i++) {
        int32_t group = (int32_t)order[i].row;
        if (m->size[group] > 0 && m->size[group] < s->ties->count / SMALL)
            join_or_drop(s, m, group);
    }
    while (m->count > most) join_or_drop(s, m, smallest(m));
    return EMBLA_OK;
}

/* ---- the result ---- */

/* Numbers groups by their size, largest first. number becomes the label of each group. */
static embla_status order_groups(search *s, const merging *m, int32_t *number)
{
    embla_key *order = NULL, *space = NULL;
    size_t used = 0;
    EMBLA_TRY(take(s->working, (uint64_t)m->count, sizeof *order, &order));
    EMBLA_TRY(take(s->working, (uint64_t)m->count, sizeof *space, &space));
    for (int32_t g = 0; g < m->l->count; g++)
        if (m->size[g] > 0)
            order[used++] = (embla_key){.key = UINT64_MAX - (uint64_t)m->size[g], .row = g};
    embla_order(order, space, used);
    for (size_t i = 0; i < used; i++) number[order[i].row] = (int32_t)i;
    return EMBLA_OK;
}

/* Finds the points of each community with the most weight of ties inside it. */
static embla_status find_central(search *s, embla_communities *out)
{
    const embla_ties *ties = s->ties;
    embla_best *best = NULL;
    embla_scored *items = NULL;
    int64_t *central = NULL;
    EMBLA_TRY(take(s->working, out->count, sizeof *best, &best));
    EMBLA_TRY(take(s->working, out->count * CENTRAL, sizeof *items, &items));
    EMBLA_TRY(take(&out->arena, out->count * CENTRAL, sizeof *central, &central));
    for (size_t c = 0; c < out->count; c++)
        best[c] = (embla_best){.items = items + c * CENTRAL, .room = CENTRAL};
    for (int32_t i = 0; i < ties->count; i++) {
        double sum = 0;
        int32_t label = out->labels[ties->rows[i]];
        if (label < 0) continue;
        for (int64_t tie = ties->start[i]; tie < ties->start[i + 1]; tie++)
            if (out->labels[ties->rows[ties->to[tie]]] == label) sum += (double)ties->weight[tie];
        embla_best_add(&best[label], (embla_scored){ties->rows[i], sum});
        out->list[label].rows++;
    }
    for (size_t c = 0; c < out->count; c++) {
        embla_best_sort(&best[c]);
        out->list[c].central = central + c * CENTRAL;
        out->list[c].central_count = best[c].count;
        for (size_t i = 0; i < best[c].count; i++) central[c * CENTRAL + i] = best[c].items[i].row;
    }
    return EMBLA_OK;
}

static embla_status write_result(search *s, const merging *m, embla_communities *out)
{
    int32_t *number = NULL;
    EMBLA_TRY(take(s->working, (uint64_t)m->l->count, sizeof *number, &number));
    EMBLA_TRY(order_groups(s, m, number));
    EMBLA_TRY(take(&out->arena, (uint64_t)m->count, sizeof *out->list, &out->list));
    out->count = (size_t)m->count;
    for (size_t row = 0; row < out->rows; row++) out->labels[row] = -1;
    for (int32_t i = 0; i < s->ties->count; i++) {
        int32_t group = m->group[s->community[i]];
        out->labels[s->ties->rows[i]] = group < 0 ? -1 : number[group];
    }
    return find_central(s, out);
}

/* The lowest level: every point by itself. */
static embla_status first_level(search *s, level *out)
{
    const embla_ties *ties = s->ties;
    uint64_t count = (uint64_t)ties->count;
    *out =
        (level){.count = ties->count, .start = ties->start, .to = ties->to, .weight = ties->weight};
    EMBLA_TRY(take(s->working, count, sizeof *out->total, &out->total));
    EMBLA_TRY(take(s->working, count, sizeof *out->size, &out->size));
    for (int32_t i = 0; i < ties->count; i++) {
        out->size[i] = 1;
        for (int64_t tie = ties->start[i]; tie < ties->start[i + 1]; tie++)
            out->total[i] += (double)ties->weight[tie];
    }
    return EMBLA_OK;
}

/* The ties of a row lead to a twentieth of all rows at most. If they led to more, groups that have
 * little in common would be one community: Louvain's method does not see groups whose ties are few
 * among all (Fortunato and Barthelemy 2007). */
static size_t most_ties(int64_t rows)
{
    const int64_t most = rows / 20;
    return (size_t)(most < 10 ? 10 : most > EMBLA_TIES_MOST ? EMBLA_TIES_MOST : most);
}

static embla_status build(const embla_graph *graph, const embla_communities_options *options,
                          embla_arena *working, embla_communities *out)
{
    embla_ties ties;
    search s = {.working = working, .options = options, .ties = &ties};
    level l;
    merging m;
    EMBLA_TRY(embla_ties_of(graph, most_ties(graph->finite), options->threads, working, &ties));
    out->rows = (size_t)graph->rows;
    EMBLA_TRY(take(&out->arena, out->rows, sizeof *out->labels, &out->labels));
    EMBLA_TRY(take(working, (uint64_t)ties.count, sizeof *s.community, &s.community));
    EMBLA_TRY(take(working, (uint64_t)ties.count, sizeof *s.links, &s.links));
    EMBLA_TRY(take(working, (uint64_t)ties.count, sizeof *s.found, &s.found));
    for (int32_t i = 0; i < ties.count; i++) s.community[i] = i;
    EMBLA_TRY(first_level(&s, &l));
    EMBLA_TRY(find_communities(&s, &l));
    EMBLA_TRY(merge_small(&s, &l, &m));
    return write_result(&s, &m, out);
}

embla_status embla_communities_new(const embla_graph *graph,
                                   const embla_communities_options *options,
                                   embla_communities **out)
{
    const embla_communities_options none = {0};
    embla_arena working = {0};
    embla_communities made = {0}, *communities = NULL;
    EMBLA_TRY(embla_options_check(options));
    if (!options) options = &none;
    EMBLA_NEED(graph);
    EMBLA_NEED(out);
    if (options->max_communities > MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "max_communities is %zu; the maximum is %d",
                          options->max_communities, MOST);
    EMBLA_TRY(embla_threads_check(options->threads));
    embla_status status = build(graph, options, &working, &made);
    if (status == EMBLA_OK) status = take(&made.arena, 1, sizeof *communities, &communities);
    embla_arena_free(&working);
    if (status != EMBLA_OK) {
        embla_arena_free(&made.arena);
        return status;
    }
    *communities = made;
    *out = communities;
    return EMBLA_OK;
}

void embla_communities_free(embla_communities *communities)
{
    if (!communities) return;
    embla_arena arena = communities->arena; /* the arena holds the handle itself */
    embla_arena_free(&arena);
}

const embla_community *embla_communities_list(const embla_communities *communities, size_t *count)
{
    *count = communities ? communities->count : 0;
    return communities ? communities->list : NULL;
}

const int32_t *embla_communities_labels(const embla_communities *communities, size_t *count)
{
    *count = communities ? communities->rows : 0;
    return communities ? communities->labels : NULL;
}
