/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that look at a whole table: spectrum, plane, layout with communities, diff; and
 * functions on vectors: pool, sinusoid, measures of two vectors. */
#include <math.h>
#include <string.h>

#include "bind.h"
#include "embla_lab.h"
#include "table.h"

/* ---- spectrum ---- */

static PyObject *shape_spectrum(PyObject *module, BIND_ARGS)
{
    PyObject *table = NULL;
    embla_spectrum_options options = {0};
    embla_spectrum_report s = {0};
    double *singular = NULL;
    const bind_argument arguments[] = {
        {.name = "table", .kind = 'O', .to = &table, .required = true},
        {.name = "centred", .kind = 'b', .to = &options.centred},
        {.name = "threads", .kind = 'i', .to = &options.threads}};
    (void)module;
    if (!bind_arguments("spectrum", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_table_enter(table, "table"))
        return NULL;
    const Py_ssize_t shape[1] = {(Py_ssize_t)embla_table_dim(bind_table_of(table))};
    PyObject *array = bind_array_new(EMBLA_F64, 1, shape, (void **)&singular);
    embla_status status = EMBLA_OK;
    if (array)
        BIND_RUN(true, status = embla_spectrum(bind_table_of(table), &options, singular, &s));
    bind_leave(table, false);
    if (!array) return NULL;
    if (status != EMBLA_OK) {
        Py_DECREF(array);
        return bind_fail(status);
    }
    return Py_BuildValue("{s:N,s:L,s:L,s:d,s:d,s:d,s:L,s:L}", "singular", bind_array_result(array),
                         "rows", (long long)s.rows, "nonfinite", (long long)s.nonfinite,
                         "effective_rank", s.effective_rank, "participation", s.participation,
                         "stable_rank", s.stable_rank, "rank_50", (long long)s.rank_50, "rank_90",
                         (long long)s.rank_90);
}

/* ---- plane and layout ---- */

static PyObject *new_points(const embla_table *table, float **xy)
{
    const Py_ssize_t shape[2] = {(Py_ssize_t)embla_table_rows(table), 2};
    return bind_array_new(EMBLA_F32, 2, shape, (void **)xy);
}

static PyObject *shape_plane(PyObject *module, BIND_ARGS)
{
    PyObject *table = NULL, *basis = NULL, *result = NULL;
    embla_plane_options options = {0};
    embla_plane_report report = {0};
    bind_ids ids = {.count = 0};
    float *xy = NULL;
    const bind_argument arguments[] = {
        {.name = "table", .kind = 'O', .to = &table, .required = true},
        {.name = "basis", .kind = 'O', .to = &basis},
        {.name = "threads", .kind = 'i', .to = &options.threads}};
    (void)module;
    ids.values = ids.few;
    if (!bind_arguments("plane", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_table_enter(table, "table"))
        return NULL;
    bool given = basis && basis != Py_None;
    if (!given || bind_ids_read(basis, "basis", &ids)) {
        PyObject *array = new_points(bind_table_of(table), &xy);
        if (array) {
            options.basis = given ? ids.values : NULL;
            options.basis_count = given ? ids.count : 0;
            embla_status status;
            BIND_RUN(true, status = embla_plane(bind_table_of(table), &options, xy, &report));
            array = bind_array_done(status, array);
            if (array) result = Py_BuildValue("N(dd)", array, report.share[0], report.share[1]);
        }
        bind_ids_free(&ids);
    }
    bind_leave(table, false);
    return result;
}

/* The communities as a list of (rows, central rows). */
static PyObject *communities_list(const embla_communities *communities)
{
    size_t count = 0;
    const embla_community *list = embla_communities_list(communities, &count);
    PyObject *result = PyList_New(0);
    for (size_t i = 0; result && i < count; i++) {
        PyObject *item =
            Py_BuildValue("LN", (long long)list[i].rows,
                          bind_array_copy(BIND_I64, list[i].central_count, list[i].central));
        if (!item || PyList_Append(result, item) < 0) Py_CLEAR(result);
        Py_XDECREF(item);
    }
    return result;
}

typedef struct {
    embla_graph_options graph;
    embla_layout_options layout;
    embla_communities_options communities;
} layout_options;

/* Neighbours of all rows, then places, then communities. Runs without the GIL. */
static embla_status run_layout(const embla_table *table, const layout_options *options, float *xy,
                               embla_communities **communities)
{
    embla_graph *graph = NULL;
    embla_status status = embla_graph_new(table, &options->graph, &graph);
    if (status == EMBLA_OK) status = embla_layout(table, graph, &options->layout, xy, NULL);
    if (status == EMBLA_OK)
        status = embla_communities_new(graph, &options->communities, communities);
    embla_graph_free(graph);
    return status;
}

static PyObject *shape_layout(PyObject *module, BIND_ARGS)
{
    PyObject *table = NULL, *result = NULL;
    bind_progress progress = {0};
    layout_options options = {
        .graph = {.progress = bind_progress_step, .context = &progress},
        .layout = {.progress = bind_progress_step, .context = &progress},
        .communities = {.progress = bind_progress_step, .context = &progress}};
    int threads = 0;
    float *xy = NULL;
    embla_communities *communities = NULL;
    const bind_argument arguments[] = {
        {.name = "table", .kind = 'O', .to = &table, .required = true},
        {.name = "steps", .kind = 'i', .to = &options.layout.steps},
        {.name = "max_communities", .kind = 'z', .to = &options.communities.max_communities},
        {.name = "threads", .kind = 'i', .to = &threads},
        {.name = "progress", .kind = 'O', .to = &progress.function}};
    (void)module;
    if (!bind_arguments("layout", values, count, names, 1, arguments, BIND_COUNT(arguments)) ||
        !bind_table_enter(table, "table"))
        return NULL;
    options.graph.threads = options.layout.threads = options.communities.threads = threads;
    PyObject *array = new_points(bind_table_of(table), &xy);
    if (array) {
        size_t labels = 0;
        embla_status status;
        BIND_RUN(true, status = run_layout(bind_table_of(table), &options, xy, &communities));
        const int32_t *label = communities ? embla_communities_labels(communities, &labels) : NULL;
        array = bind_array_done(status, array);
        if (array)
            result = Py_BuildValue("NNN", array, bind_array_copy(BIND_I32, labels, label),
                                   communities_list(communities));
        embla_communities_free(communities);
    }
    bind_leave(table, false);
    return result;
}

/* ---- diff ---- */

static PyObject *diff_dict(const embla_diff *diff, size_t most)
{
    size_t count = 0;
    embla_diff_info s;
    if (embla_diff_describe(diff, &s) != EMBLA_OK) return bind_fail(EMBLA_ERR_ARGUMENT);
    const embla_diff_row *rows = embla_diff_rows(diff, &count);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count && i < most; i++) {
        PyObject *row =
            Py_BuildValue("{s:L,s:L,s:d,s:d,s:d}", "row", (long long)rows[i].row, "other",
                          (long long)rows[i].other, "distance", rows[i].distance, "cosine",
                          rows[i].cosine, "difference", rows[i].difference);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    if (!list) return NULL;
    return Py_BuildValue(
        "{s:(LL),s:L,s:L,s:L,s:(LL),s:L,s:d,s:d,s:d,s:N}", "rows", (long long)s.rows[0],
        (long long)s.rows[1], "compared", (long long)s.compared, "same", (long long)s.same,
        "changed", (long long)s.changed, "only", (long long)s.only[0], (long long)s.only[1],
        "nonfinite", (long long)s.nonfinite, "difference", s.difference, "distance_mean",
        s.distance_mean, "cosine_mean", s.cosine_mean, "changes", list);
}

static PyObject *diff_tables(PyObject *first, PyObject *second, embla_diff_options *options,
                             PyObject *other, size_t most)
{
    bind_ids ids = {.count = 0};
    embla_diff *diff = NULL;
    ids.values = ids.few;
    if (other && other != Py_None) {
        if (!bind_ids_read(other, "other", &ids)) return NULL;
        if ((int64_t)ids.count != embla_table_rows(bind_table_of(first))) {
            bind_error(EMBLA_ERR_SHAPE, "other has %zu rows, but the first table has %lld",
                       ids.count, (long long)embla_table_rows(bind_table_of(first)));
            bind_ids_free(&ids);
            return NULL;
        }
        options->other = ids.values;
    }
    embla_status status;
    BIND_RUN(true,
             status = embla_diff_new(bind_table_of(first), bind_table_of(second), options, &diff));
    PyObject *result = status == EMBLA_OK ? diff_dict(diff, most) : bind_fail(status);
    embla_diff_free(diff);
    bind_ids_free(&ids);
    return result;
}

static PyObject *shape_diff(PyObject *module, BIND_ARGS)
{
    PyObject *first = NULL, *second = NULL, *other = NULL, *result = NULL;
    embla_diff_options options = {0};
    size_t most = SIZE_MAX;
    const bind_argument arguments[] = {
        {.name = "first", .kind = 'O', .to = &first, .required = true},
        {.name = "second", .kind = 'O', .to = &second, .required = true},
        {.name = "other", .kind = 'O', .to = &other},
        {.name = "tolerance", .kind = 'd', .to = &options.tolerance},
        {.name = "max_rows", .kind = 'z', .to = &most},
        {.name = "threads", .kind = 'i', .to = &options.threads}};
    (void)module;
    if (!bind_arguments("diff", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_table_enter(first, "first"))
        return NULL;
    if (bind_table_enter(second, "second")) {
        result = diff_tables(first, second, &options, other, most);
        bind_leave(second, false);
    }
    bind_leave(first, false);
    return result;
}

/* ---- vectors ---- */

const char *bind_pool_name(int n)
{
    static const char *const list[] = {"mean", "sum", "max", "last"};
    return n < 4 ? list[n] : NULL;
}

/* Vectors (T, dim) -> (dim), or (B, T, dim) -> (B, dim). */
static PyObject *shape_pool(PyObject *module, BIND_ARGS)
{
    PyObject *x = NULL;
    int kind = EMBLA_POOL_MEAN;
    embla_pool_options options = {0};
    bind_floats floats;
    void *data = NULL;
    const bind_argument arguments[] = {
        {.name = "vectors", .kind = 'O', .to = &x, .required = true},
        {.name = "kind", .kind = 'e', .to = &kind, .names = bind_pool_name},
        {.name = "normalize", .kind = 'b', .to = &options.normalize},
        {.name = "threads", .kind = 'i', .to = &options.threads}};
    (void)module;
    if (!bind_arguments("pool", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_floats_read(x, "vectors", &floats))
        return NULL;
    options.kind = (embla_pool_kind)kind;
    PyObject *array = NULL;
    if (floats.rank < 2 || floats.rank > 3) {
        bind_error(EMBLA_ERR_SHAPE, "vectors has %d axes; pool takes (T, dim) or (B, T, dim)",
                   floats.rank);
    } else {
        size_t dim = (size_t)floats.shape[floats.rank - 1];
        size_t length = (size_t)floats.shape[floats.rank - 2];
        size_t batch = floats.rank == 3 ? (size_t)floats.shape[0] : 1;
        const Py_ssize_t shape[2] = {floats.rank == 3 ? floats.shape[0] : (Py_ssize_t)dim,
                                     (Py_ssize_t)dim};
        array = bind_array_new(EMBLA_F32, floats.rank - 1, shape, &data);
        embla_status status = EMBLA_OK;
        if (array)
            BIND_RUN(floats.count > BIND_SMALL,
                     status = embla_pool(floats.values, batch, length, dim, &options, data));
        if (status != EMBLA_OK) {
            Py_CLEAR(array);
            bind_fail(status);
        }
    }
    bind_floats_free(&floats);
    return bind_array_result(array);
}

static PyObject *shape_sinusoid(PyObject *module, BIND_ARGS)
{
    size_t rows = 0, dim = 0;
    int64_t first = 0;
    double base = 0;
    void *data = NULL;
    const bind_argument arguments[] = {
        {.name = "count", .kind = 'z', .to = &rows, .required = true},
        {.name = "dim", .kind = 'z', .to = &dim, .required = true},
        {.name = "first", .kind = 'l', .to = &first},
        {.name = "base", .kind = 'd', .to = &base}};
    (void)module;
    if (!bind_arguments("sinusoid", values, count, names, 2, arguments, BIND_COUNT(arguments)))
        return NULL;
    const Py_ssize_t shape[2] = {(Py_ssize_t)rows, (Py_ssize_t)dim};
    PyObject *array = bind_array_new(EMBLA_F32, 2, shape, &data);
    if (!array) return NULL;
    embla_status status;
    BIND_RUN(true, status = embla_sinusoid(first, rows, dim, base, data));
    return bind_array_done(status, array);
}

/* Cosine, dot product and Euclidean distance of two vectors. */
static PyObject *shape_compare(PyObject *module, BIND_ARGS)
{
    PyObject *a = NULL, *b = NULL, *result = NULL;
    bind_floats x, y;
    const bind_argument arguments[] = {{.name = "a", .kind = 'O', .to = &a, .required = true},
                                       {.name = "b", .kind = 'O', .to = &b, .required = true}};
    (void)module;
    if (!bind_arguments("compare", values, count, names, 2, arguments, 2) ||
        !bind_floats_read(a, "a", &x))
        return NULL;
    if (bind_floats_read(b, "b", &y)) {
        if (x.rank != 1 || y.rank != 1 || x.count != y.count) {
            bind_error(EMBLA_ERR_SHAPE,
                       "compare takes two vectors of the same length, not of %zu "
                       "and %zu numbers",
                       x.count, y.count);
        } else {
            double sum = 0;
            for (size_t i = 0; i < x.count; i++) {
                double difference = (double)x.values[i] - (double)y.values[i];
                sum += difference * difference;
            }
            result = Py_BuildValue("ddd", embla_cosine(x.values, y.values, x.count),
                                   embla_dot(x.values, y.values, x.count), sqrt(sum));
        }
        bind_floats_free(&y);
    }
    bind_floats_free(&x);
    return result;
}

static PyMethodDef functions[] = {
    BIND_METHOD("spectrum", shape_spectrum,
                "spectrum(table, centred=False, *, threads=0)\n--\n\nSingular values and ranks."),
    BIND_METHOD("plane", shape_plane,
                "plane(table, basis=None, *, threads=0)\n--\n\n"
                "Points (rows, 2) by PCA, and shares of the variance."),
    BIND_METHOD("layout", shape_layout,
                "layout(table, *, steps=0, communities=0, threads=0, progress=None)\n--\n\n"
                "Points (rows, 2) by t-SNE, the community of each row, and the communities."),
    BIND_METHOD("diff", shape_diff,
                "diff(first, second, *, other=None, tolerance=0.0, max_rows=None, "
                "threads=0)\n--\n\nWhich rows differ."),
    BIND_METHOD("pool", shape_pool,
                "pool(vectors, kind='mean', *, normalize=False, threads=0)\n"
                "--\n\nMany vectors to one: 'mean', 'sum', 'max' or 'last'."),
    BIND_METHOD("sinusoid", shape_sinusoid,
                "sinusoid(count, dim, *, first=0, base=10000.0)\n--\n\n"
                "Rows of sinusoidal positions."),
    BIND_METHOD("compare", shape_compare,
                "compare(a, b)\n--\n\nCosine, dot product and distance of two vectors."),
    {NULL, NULL, 0, NULL}};

int bind_shape_add(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
