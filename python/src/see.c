/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that study a table: near, analogy, odd, eval, health. */
#include <string.h>

#include "bind.h"
#include "embla_lab.h"
#include "table.h"

static const char *measure_name(int n)
{
    return embla_measure_name((embla_measure)n);
}

/* ---- near ---- */

/* Row numbers and scores of n x k neighbours, as (ids, scores). */
static PyObject *split_neighbours(const embla_neighbour *found, int rank, const Py_ssize_t *shape,
                                  size_t count)
{
    int64_t *ids = NULL;
    double *scores = NULL;
    PyObject *a = bind_array_new(BIND_I64, rank, shape, (void **)&ids);
    PyObject *b = a ? bind_array_new(EMBLA_F64, rank, shape, (void **)&scores) : NULL;
    for (size_t i = 0; b && i < count; i++) {
        ids[i] = found[i].row;
        scores[i] = found[i].score;
    }
    if (!b) {
        Py_XDECREF(a);
        return NULL;
    }
    a = bind_array_result(a);
    b = bind_array_result(b);
    if (a && b) return Py_BuildValue("NN", a, b);
    Py_XDECREF(a);
    Py_XDECREF(b);
    return NULL;
}

static embla_neighbour *neighbours_new(size_t vectors, size_t top)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(vectors, top, &bytes) ||
        __builtin_mul_overflow(bytes, sizeof(embla_neighbour), &bytes))
        bytes = SIZE_MAX;
    embla_neighbour *found = bytes <= PTRDIFF_MAX - 16 ? PyMem_Malloc(bytes + 16) : NULL;
    if (!found)
        bind_error(EMBLA_ERR_MEMORY, "no memory for the %zu best rows of %zu queries", top,
                   vectors);
    return found;
}

/* Checks how many rows are asked for. For one query more than there are rows means all. */
static bool read_top(const embla_table *table, bool one, size_t *top)
{
    const uint64_t rows = (uint64_t)embla_table_rows(table);
    if (*top < 1) {
        bind_error(EMBLA_ERR_ARGUMENT, "top is 0; it must be at least 1");
        return false;
    }
    if (one && *top > rows) *top = (size_t)rows;
    return true;
}

/* Rows to leave out: (left) for every query, or (n, left). */
static bool read_excluded(PyObject *object, size_t vectors, bind_ids *ids,
                          embla_near_options *options, int64_t **repeated)
{
    if (!bind_ids_read(object, "exclude", ids)) return false;
    options->exclude_count = ids->rank == 2 ? (size_t)ids->shape[1] : ids->count;
    options->exclude = ids->values;
    if (ids->rank == 2 && (size_t)ids->shape[0] != vectors) {
        bind_error(EMBLA_ERR_SHAPE, "exclude has %zd lists, but there are %zu queries",
                   ids->shape[0], vectors);
        return false;
    }
    if (ids->rank == 2 || vectors == 1 || ids->count == 0) return true;
    size_t bytes = 0;
    if (__builtin_mul_overflow(vectors * sizeof **repeated, ids->count, &bytes)) bytes = SIZE_MAX;
    *repeated = bytes < PTRDIFF_MAX ? PyMem_Malloc(bytes) : NULL;
    if (!*repeated) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < vectors; i++)
        memcpy(*repeated + i * ids->count, ids->values, ids->count * sizeof **repeated);
    options->exclude = *repeated;
    return true;
}

static PyObject *near_vectors(const embla_table *table, const bind_floats *queries, size_t vectors,
                              size_t top, embla_near_options *options)
{
    Py_ssize_t shape[BIND_RANK];
    if (!read_top(table, queries->rank == 1, &top)) return NULL;
    memcpy(shape, queries->shape, (size_t)queries->rank * sizeof *shape);
    shape[queries->rank - 1] = (Py_ssize_t)top;
    embla_neighbour *found = neighbours_new(vectors, top);
    if (!found) return NULL;
    embla_status status;
    options->k = top;
    BIND_RUN(true, status = embla_near(table, queries->values, vectors, options, found, NULL));
    PyObject *result = status == EMBLA_OK
                           ? split_neighbours(found, queries->rank, shape, vectors * top)
                           : bind_fail(status);
    PyMem_Free(found);
    return result;
}

static PyObject *see_near(PyObject *module, BIND_ARGS)
{
    PyObject *table = NULL, *vectors = NULL, *excluded = NULL, *result = NULL;
    size_t top = 10, queries = 0;
    int measure = EMBLA_MEASURE_COSINE;
    bind_progress progress = {.shows = true};
    embla_near_options options = {.progress = bind_progress_step, .context = &progress};
    const bind_argument arguments[] = {
        {.name = "table", .kind = 'O', .to = &table, .required = true},
        {.name = "queries", .kind = 'O', .to = &vectors, .required = true},
        {.name = "top", .kind = 'z', .to = &top},
        {.name = "measure", .kind = 'e', .to = &measure, .names = measure_name},
        {.name = "rows", .kind = 'l', .to = &options.rows},
        {.name = "exclude", .kind = 'O', .to = &excluded},
        {.name = "threads", .kind = 'i', .to = &options.threads},
        {.name = "progress", .kind = 'O', .to = &progress.function}};
    bind_floats floats;
    bind_ids ids = {.count = 0};
    int64_t *repeated = NULL;
    (void)module;
    if (!bind_arguments("near", values, count, names, 3, arguments, BIND_COUNT(arguments)) ||
        !bind_progress_check(&progress) || !bind_table_enter(table, "table"))
        return NULL;
    options.measure = (embla_measure)measure;
    ids.values = ids.few;
    if (bind_vectors_read(vectors, "queries", embla_table_dim(bind_table_of(table)), &floats,
                          &queries)) {
        bool good = true;
        if (excluded && excluded != Py_None)
            good = read_excluded(excluded, queries, &ids, &options, &repeated);
        if (queries <= 4 && options.measure == EMBLA_MEASURE_COSINE)
            options.sketch = bind_table_sketch(table);
        if (good) result = near_vectors(bind_table_of(table), &floats, queries, top, &options);
        bind_ids_free(&ids);
        PyMem_Free(repeated);
        bind_floats_free(&floats);
    }
    bind_progress_end(&progress);
    bind_leave(table, false);
    return result;
}

/* ---- analogy and odd ---- */

static const char *analogy_name(int n)
{
    static const char *const list[] = {"add", "multiply"};
    return n < 2 ? list[n] : NULL;
}

static PyObject *see_analogy(PyObject *module, BIND_ARGS)
{
    PyObject *table = NULL, *plus = NULL, *minus = NULL, *result = NULL;
    size_t top = 10;
    int kind = EMBLA_ANALOGY_COS_ADD;
    embla_analogy_options options = {0};
    bind_ids a, b;
    const bind_argument arguments[] = {
        {.name = "table", .kind = 'O', .to = &table, .required = true},
        {.name = "plus", .kind = 'O', .to = &plus, .required = true},
        {.name = "minus", .kind = 'O', .to = &minus, .required = true},
        {.name = "top", .kind = 'z', .to = &top},
        {.name = "kind", .kind = 'e', .to = &kind, .names = analogy_name},
        {.name = "rows", .kind = 'l', .to = &options.rows},
        {.name = "keep_words", .kind = 'b', .to = &options.keep_words},
        {.name = "threads", .kind = 'i', .to = &options.threads}};
    (void)module;
    if (!bind_arguments("analogy", values, count, names, 4, arguments, BIND_COUNT(arguments)) ||
        !bind_table_enter(table, "table"))
        return NULL;
    options.kind = (embla_analogy_kind)kind;
    if (bind_ids_read(plus, "plus", &a)) {
        if (bind_ids_read(minus, "minus", &b)) {
            bool good = read_top(bind_table_of(table), true, &top);
            embla_neighbour *found = good ? neighbours_new(1, top) : NULL;
            embla_status status = EMBLA_OK;
            if (found) {
                const embla_analogy_question question = {.plus = a.values,
                                                         .plus_count = a.count,
                                                         .minus = b.values,
                                                         .minus_count = b.count};
                options.k = top;
                BIND_RUN(true, status = embla_analogy(bind_table_of(table), &question, &options,
                                                      found, NULL));
                const Py_ssize_t shape[1] = {(Py_ssize_t)top};
                result =
                    status == EMBLA_OK ? split_neighbours(found, 1, shape, top) : bind_fail(status);
            }
            PyMem_Free(found);
            bind_ids_free(&b);
        }
        bind_ids_free(&a);
    }
    bind_leave(table, false);
    return result;
}

static PyObject *see_odd(PyObject *module, BIND_ARGS)
{
    PyObject *table = NULL, *rows = NULL, *result = NULL;
    bind_ids ids;
    double *cosines = NULL;
    size_t odd = 0;
    const bind_argument arguments[] = {
        {.name = "table", .kind = 'O', .to = &table, .required = true},
        {.name = "rows", .kind = 'O', .to = &rows, .required = true}};
    (void)module;
    if (!bind_arguments("odd", values, count, names, 2, arguments, 2) ||
        !bind_table_enter(table, "table"))
        return NULL;
    if (bind_ids_read(rows, "rows", &ids)) {
        const Py_ssize_t shape[1] = {(Py_ssize_t)ids.count};
        PyObject *array = bind_array_new(EMBLA_F64, 1, shape, (void **)&cosines);
        if (array) {
            embla_status status;
            BIND_RUN(true, status = embla_odd_row(bind_table_of(table), ids.values, ids.count,
                                                  cosines, &odd));
            array = bind_array_done(status, array);
            if (array) result = Py_BuildValue("nN", (Py_ssize_t)odd, array);
        }
        bind_ids_free(&ids);
    }
    bind_leave(table, false);
    return result;
}

/* ---- eval ---- */

static PyObject *part_dict(const embla_eval_part *p)
{
    PyObject *dict = PyDict_New();
    bool good = dict && bind_put(dict, "name", bind_text(p->name)) &&
                bind_put(dict, "syntactic", PyBool_FromLong(p->syntactic)) &&
                bind_put(dict, "asked", PyLong_FromLongLong(p->asked)) &&
                bind_put(dict, "covered", PyLong_FromLongLong(p->covered)) &&
                bind_put(dict, "correct", PyLong_FromLongLong(p->correct)) &&
                bind_put(dict, "spearman", PyFloat_FromDouble(p->spearman)) &&
                bind_put(dict, "pearson", PyFloat_FromDouble(p->pearson));
    if (!good) Py_CLEAR(dict);
    return dict;
}

static PyObject *parts_list(const embla_eval *eval)
{
    size_t count = 0;
    const embla_eval_part *parts = embla_eval_parts(eval, &count);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *part = part_dict(&parts[i]);
        if (!part || PyList_Append(list, part) < 0) Py_CLEAR(list);
        Py_XDECREF(part);
    }
    return list;
}

static PyObject *missing_dict(const embla_eval *eval)
{
    size_t count = 0;
    const embla_eval_missing *words = embla_eval_missing_words(eval, &count);
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < count; i++) {
        PyObject *word = bind_text(words[i].word), *times = PyLong_FromLongLong(words[i].times);
        if (!word || !times || PyDict_SetItem(dict, word, times) < 0) Py_CLEAR(dict);
        Py_XDECREF(word);
        Py_XDECREF(times);
    }
    return dict;
}

static PyObject *eval_dict(const embla_eval *eval, bool pairs)
{
    PyObject *dict = PyDict_New();
    bool good = dict && bind_put(dict, "parts", parts_list(eval)) &&
                bind_put(dict, "missing", missing_dict(eval)) &&
                bind_put(dict, "kind", bind_text(pairs ? "pairs" : "analogies"));
    if (!good) Py_CLEAR(dict);
    return dict;
}

static PyObject *see_eval(PyObject *module, BIND_ARGS)
{
    PyObject *table = NULL, *vocab = NULL, *result = NULL;
    bind_path path = {0};
    bool pairs = false;
    int kind = EMBLA_ANALOGY_COS_ADD;
    bind_progress progress = {0};
    embla_eval_options options = {.progress = bind_progress_step, .context = &progress};
    const bind_argument arguments[] = {
        {.name = "table", .kind = 'O', .to = &table, .required = true},
        {.name = "vocab", .kind = 'O', .to = &vocab, .required = true},
        {.name = "path", .kind = 'p', .to = &path, .required = true},
        {.name = "pairs", .kind = 'b', .to = &pairs},
        {.name = "rows", .kind = 'l', .to = &options.rows},
        {.name = "exact_case", .kind = 'b', .to = &options.exact_case},
        {.name = "kind", .kind = 'e', .to = &kind, .names = analogy_name},
        {.name = "threads", .kind = 'i', .to = &options.threads},
        {.name = "progress", .kind = 'O', .to = &progress.function}};
    (void)module;
    if (!bind_arguments("eval", values, count, names, 4, arguments, BIND_COUNT(arguments)))
        return NULL;
    options.kind = (embla_analogy_kind)kind;
    if (path.text && bind_is(vocab, bind_vocab_type, "vocab") && bind_table_enter(table, "table")) {
        embla_eval *eval = NULL;
        embla_status status;
        const embla_vocab *words = ((bind_object *)vocab)->handle;
        BIND_RUN(true, status = (pairs ? embla_eval_new_pairs : embla_eval_new_analogies)(
                           bind_table_of(table), words, path.text, &options, &eval));
        bind_leave(table, false);
        result = status == EMBLA_OK ? eval_dict(eval, pairs) : bind_fail_path(status, path.text);
        embla_eval_free(eval);
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError, "path must not be None");
    }
    bind_path_free(&path);
    return result;
}

/* ---- health ---- */

static PyObject *groups_list(const embla_health *health)
{
    size_t count = 0;
    const embla_health_group *groups = embla_health_groups(health, &count);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *rows = bind_array_copy(BIND_I64, (size_t)groups[i].count, groups[i].rows);
        PyObject *group =
            rows ? Py_BuildValue("{s:N,s:d,s:d,s:d}", "rows", rows, "norm_min", groups[i].norm_min,
                                 "norm_max", groups[i].norm_max, "cosine_min", groups[i].cosine_min)
                 : NULL;
        if (!group || PyList_Append(list, group) < 0) Py_CLEAR(list);
        Py_XDECREF(group);
    }
    return list;
}

static PyObject *duplicates_list(const embla_health *health)
{
    size_t count = 0;
    const embla_health_duplicate *pairs = embla_health_duplicates(health, &count);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *pair = Py_BuildValue("LL", (long long)pairs[i].row, (long long)pairs[i].original);
        if (!pair || PyList_Append(list, pair) < 0) Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
}

static bool put_info(PyObject *dict, const embla_health_info *s)
{
    return bind_put(dict, "rows", PyLong_FromLongLong(s->rows)) &&
           bind_put(dict, "dim", PyLong_FromLongLong(s->dim)) &&
           bind_put(dict, "padding", PyLong_FromLongLong(s->padding)) &&
           bind_put(dict, "norm_min", PyFloat_FromDouble(s->norm_min)) &&
           bind_put(dict, "norm_max", PyFloat_FromDouble(s->norm_max)) &&
           bind_put(dict, "norm_mean", PyFloat_FromDouble(s->norm_mean)) &&
           bind_put(dict, "norm_deviation", PyFloat_FromDouble(s->norm_deviation)) &&
           bind_put(dict, "norm_quantiles",
                    bind_array_copy(EMBLA_F64, EMBLA_HEALTH_QUANTILES, s->norm_quantiles)) &&
           bind_put(dict, "norm_bins",
                    bind_array_copy(BIND_I64, EMBLA_HEALTH_BINS, s->norm_bins)) &&
           bind_put(dict, "anisotropy", PyFloat_FromDouble(s->anisotropy)) &&
           bind_put(dict, "mean_norm", PyFloat_FromDouble(s->mean_norm)) &&
           bind_put(dict, "from_mean", PyFloat_FromDouble(s->from_mean)) &&
           bind_put(dict, "from_mean_deviation", PyFloat_FromDouble(s->from_mean_deviation)) &&
           bind_put(dict, "uncertain", PyLong_FromLongLong(s->uncertain));
}

static PyObject *health_dict(const embla_health *health)
{
    size_t n = 0, zero = 0, unused = 0, ranked = 0;
    const int64_t *nonfinite = embla_health_nonfinite(health, &n);
    const int64_t *zeros = embla_health_zero(health, &zero);
    const int64_t *never = embla_health_unused(health, &unused);
    const embla_neighbour *order = embla_health_ranked(health, &ranked);
    const Py_ssize_t shape[1] = {(Py_ssize_t)ranked};
    PyObject *dict = PyDict_New();
    embla_health_info info = {0};
    bool good =
        dict && embla_health_describe(health, &info) == EMBLA_OK && put_info(dict, &info) &&
        bind_put(dict, "nonfinite", bind_array_copy(BIND_I64, n, nonfinite)) &&
        bind_put(dict, "zero", bind_array_copy(BIND_I64, zero, zeros)) &&
        bind_put(dict, "unused", bind_array_copy(BIND_I64, unused, never)) &&
        bind_put(dict, "duplicates", duplicates_list(health)) &&
        bind_put(dict, "groups", groups_list(health)) &&
        bind_put(dict, "ranked_by",
                 bind_text(info.ranked_by == EMBLA_HEALTH_RANKING_NORM ? "norm" : "unused")) &&
        bind_put(dict, "ranked", split_neighbours(order, 1, shape, ranked));
    if (!good) Py_CLEAR(dict);
    return dict;
}

static PyObject *see_health(PyObject *module, BIND_ARGS)
{
    PyObject *table = NULL, *unused = NULL, *result = NULL;
    embla_health_options options = {0};
    bind_ids ids = {.count = 0};
    embla_health *health = NULL;
    const bind_argument arguments[] = {
        {.name = "table", .kind = 'O', .to = &table, .required = true},
        {.name = "unused", .kind = 'O', .to = &unused},
        {.name = "tokens", .kind = 'l', .to = &options.tokens},
        {.name = "alike", .kind = 'd', .to = &options.alike},
        {.name = "untied", .kind = 'b', .to = &options.untied},
        {.name = "threads", .kind = 'i', .to = &options.threads}};
    (void)module;
    ids.values = ids.few;
    if (!bind_arguments("health", values, count, names, 1, arguments, BIND_COUNT(arguments)) ||
        !bind_table_enter(table, "table"))
        return NULL;
    bool given = unused && unused != Py_None;
    if (!given || bind_ids_read(unused, "unused", &ids)) {
        options.unused = given ? ids.values : NULL;
        options.unused_count = given ? ids.count : 0;
        embla_status status;
        BIND_RUN(true, status = embla_health_new(bind_table_of(table), &options, &health));
        result = status == EMBLA_OK ? health_dict(health) : bind_fail(status);
        embla_health_free(health);
        bind_ids_free(&ids);
    }
    bind_leave(table, false);
    return result;
}

static PyMethodDef functions[] = {
    BIND_METHOD("near", see_near,
                "near(table, queries, top=10, *, measure='cosine', rows=0, "
                "exclude=None, threads=0)\n--\n\nRow numbers and scores."),
    BIND_METHOD("analogy", see_analogy,
                "analogy(table, plus, minus, top=10, *, kind='add', rows=0, "
                "keep_words=False, threads=0)\n--\n\nRow numbers and scores."),
    BIND_METHOD("odd", see_odd,
                "odd(table, rows)\n--\n\nThe index of the row that does not match."),
    BIND_METHOD("eval", see_eval,
                "eval(table, vocab, path, pairs=False, *, rows=0, "
                "exact_case=False, kind='add', threads=0, progress=None)\n--\n\n"
                "Scores a file of analogies or of pairs."),
    BIND_METHOD("health", see_health,
                "health(table, *, unused=None, tokens=0, alike=0.0, "
                "untied=False, threads=0)\n--\n\nWhat is wrong with rows."),
    {NULL, NULL, 0, NULL}};

int bind_see_add(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
