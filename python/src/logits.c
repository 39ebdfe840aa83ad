/* SPDX-License-Identifier: Apache-2.0 */
/* The head: logits of all rows, and the loss of targets with its gradients. */
#include "embla_learn.h"

#include "table.h"

#include <string.h>

/* Reads hidden vectors for the head of a table, which is entered on success. */
static bool head_begin(PyObject *table, PyObject *hidden, embla_head *head, bind_floats *h,
                       size_t *vectors)
{
    if (!bind_table_enter(table, "table")) return false;
    head->table = bind_table_of(table);
    if (bind_vectors_read(hidden, "hidden", embla_table_dim(head->table), h, vectors)) return true;
    bind_leave(table, false);
    return false;
}

static PyObject *head_logits(PyObject *module, BIND_ARGS)
{
    PyObject *table = NULL, *hidden = NULL;
    embla_head head = {0};
    embla_head_options o = {0};
    bind_floats h;
    size_t vectors = 0;
    void *data = NULL;
    const bind_argument arguments[] = {
        {.name = "table", .kind = 'O', .to = &table, .required = true},
        {.name = "hidden", .kind = 'O', .to = &hidden, .required = true},
        {.name = "scale", .kind = 'f', .to = &head.scale},
        {.name = "soft_cap", .kind = 'f', .to = &head.soft_cap},
        {.name = "threads", .kind = 'i', .to = &o.threads}};
    (void)module;
    if (!bind_arguments("logits", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !head_begin(table, hidden, &head, &h, &vectors))
        return NULL;
    Py_ssize_t shape[BIND_RANK];
    memcpy(shape, h.shape, (size_t)h.rank * sizeof *shape);
    shape[h.rank - 1] = (Py_ssize_t)embla_table_rows(head.table);
    PyObject *array = bind_array_new(EMBLA_F32, h.rank, shape, &data);
    embla_status status = EMBLA_OK;
    if (array) BIND_RUN(true, status = embla_head_logits(&head, h.values, vectors, &o, data));
    bind_floats_free(&h);
    bind_leave(table, false);
    return bind_array_done(status, array);
}

/* ---- loss ---- */

typedef struct {
    embla_head head;
    embla_loss_options options;
    embla_negatives negatives; /* .negatives 0 means the loss over all tokens */
    bind_floats hidden;
    int32_t *targets;
    size_t count;
    bool gradients;
} loss_call;

/* The targets as int32. A number that does not fit becomes one that no table has. */
static bool read_targets(loss_call *c, const bind_ids *ids)
{
    if (ids->count != c->count) {
        bind_error(EMBLA_ERR_SHAPE, "there are %zu targets, but %zu vectors", ids->count, c->count);
        return false;
    }
    c->targets = PyMem_Malloc((ids->count + 1) * sizeof *c->targets);
    if (!c->targets) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < ids->count; i++)
        c->targets[i] = ids->values[i] < INT32_MIN || ids->values[i] > INT32_MAX
                            ? INT32_MAX
                            : (int32_t)ids->values[i];
    return true;
}

/* Over all tokens: the loss, or (loss, gradient of hidden, gradient of the table). */
static PyObject *full_loss(const loss_call *c)
{
    embla_loss_gradients g = {0};
    embla_loss_report report = {0};
    PyObject *hidden = NULL, *table = NULL;
    embla_status status = EMBLA_OK;
    const Py_ssize_t shape[2] = {(Py_ssize_t)embla_table_rows(c->head.table),
                                 (Py_ssize_t)embla_table_dim(c->head.table)};
    if (c->gradients) {
        hidden = bind_array_new(EMBLA_F32, c->hidden.rank, c->hidden.shape, (void **)&g.hidden);
        table = hidden ? bind_array_new(EMBLA_F32, 2, shape, (void **)&g.table) : NULL;
        if (!table) {
            Py_XDECREF(hidden);
            return NULL;
        }
        memset(g.table, 0, (size_t)shape[0] * (size_t)shape[1] * sizeof(float));
    }
    BIND_RUN(true, status = embla_head_loss(&c->head,
                                            &(embla_loss_batch){.hidden = c->hidden.values,
                                                                .targets = c->targets,
                                                                .count = c->count},
                                            &c->options, c->gradients ? &g : NULL, &report));
    if (status == EMBLA_OK)
        return c->gradients ? Py_BuildValue("dNN", report.loss, bind_array_result(hidden),
                                            bind_array_result(table))
                            : PyFloat_FromDouble(report.loss);
    Py_XDECREF(hidden);
    Py_XDECREF(table);
    return bind_fail(status);
}

/* The gradients of the rows that took part, as arrays of their number. Takes hidden. */
static PyObject *sampled_result(const loss_call *c, double loss, PyObject *hidden,
                                const embla_sampled_gradients *g)
{
    void *data = NULL;
    const Py_ssize_t shape[2] = {(Py_ssize_t)g->touched,
                                 (Py_ssize_t)embla_table_dim(c->head.table)};
    PyObject *table = bind_array_new(EMBLA_F32, 2, shape, &data);
    PyObject *rows = table ? bind_array_copy(BIND_I64, g->touched, g->rows) : NULL;
    if (!rows) {
        Py_XDECREF(table);
        Py_DECREF(hidden);
        return NULL;
    }
    if (g->touched > 0)
        memcpy(data, g->table, g->touched * embla_table_dim(c->head.table) * sizeof(float));
    return Py_BuildValue("dNNN", loss, bind_array_result(hidden), rows, bind_array_result(table));
}

/* Against drawn tokens: the loss, or (loss, gradient of hidden, rows, gradients of these rows). */
static PyObject *sampled_loss(const loss_call *c)
{
    embla_sampled_gradients g = {0};
    embla_loss_report report = {0};
    PyObject *hidden = NULL, *result = NULL;
    embla_status status = EMBLA_OK;
    bool room = true;
    /* The library refuses more; so much memory is not needed to hear it. */
    bool possible = c->negatives.negatives <= INT32_MAX;
    if (c->gradients && possible) {
        size_t rows = c->count + c->negatives.negatives, dim = embla_table_dim(c->head.table);
        hidden = bind_array_new(EMBLA_F32, c->hidden.rank, c->hidden.shape, (void **)&g.hidden);
        if (!hidden) return NULL;
        g.rows = PyMem_Calloc(rows, sizeof *g.rows);
        g.table = PyMem_Calloc(rows, dim * sizeof *g.table);
        room = g.rows && g.table;
        if (!room) bind_error(EMBLA_ERR_MEMORY, "no memory for the gradients of %zu rows", rows);
    }
    if (room) {
        BIND_RUN(true, status = embla_sampled_loss(&c->head,
                                                   &(embla_loss_batch){.hidden = c->hidden.values,
                                                                       .targets = c->targets,
                                                                       .count = c->count},
                                                   &c->negatives, &c->options, hidden ? &g : NULL,
                                                   &report));
        if (status != EMBLA_OK)
            bind_fail(status);
        else if (hidden)
            result = sampled_result(c, report.loss, Py_NewRef(hidden), &g);
        else
            result = PyFloat_FromDouble(report.loss);
    }
    PyMem_Free(g.rows);
    PyMem_Free(g.table);
    Py_XDECREF(hidden);
    return result;
}

static PyObject *head_loss(PyObject *module, BIND_ARGS)
{
    PyObject *table = NULL, *hidden = NULL, *targets = NULL, *result = NULL;
    loss_call c = {.gradients = false};
    bool uniform = false;
    bind_ids ids;
    const bind_argument arguments[] = {
        {.name = "table", .kind = 'O', .to = &table, .required = true},
        {.name = "hidden", .kind = 'O', .to = &hidden, .required = true},
        {.name = "targets", .kind = 'O', .to = &targets, .required = true},
        {.name = "gradients", .kind = 'b', .to = &c.gradients},
        {.name = "smoothing", .kind = 'd', .to = &c.options.smoothing},
        {.name = "z_loss", .kind = 'd', .to = &c.options.z_loss},
        {.name = "sum", .kind = 'b', .to = &c.options.sum},
        {.name = "negatives", .kind = 'z', .to = &c.negatives.negatives},
        {.name = "seed", .kind = 'u', .to = &c.negatives.seed},
        {.name = "step", .kind = 'l', .to = &c.negatives.step},
        {.name = "uniform", .kind = 'b', .to = &uniform},
        {.name = "threads", .kind = 'i', .to = &c.options.threads}};
    (void)module;
    if (!bind_arguments("loss", values, count, names, 3, arguments, BIND_COUNT(arguments)) ||
        !head_begin(table, hidden, &c.head, &c.hidden, &c.count))
        return NULL;
    if (uniform) c.negatives.proposal = EMBLA_PROPOSAL_UNIFORM;
    if (bind_ids_read(targets, "targets", &ids)) {
        if (read_targets(&c, &ids))
            result = c.negatives.negatives > 0 ? sampled_loss(&c) : full_loss(&c);
        PyMem_Free(c.targets);
        bind_ids_free(&ids);
    }
    bind_floats_free(&c.hidden);
    bind_leave(table, false);
    return result;
}

static PyMethodDef functions[] = {
    BIND_METHOD("logits", head_logits,
                "logits(table, hidden, *, scale=1.0, soft_cap=0.0, threads=0)\n--\n\n"
                "The scores of all rows for hidden vectors."),
    BIND_METHOD("loss", head_loss,
                "loss(table, hidden, targets, *, gradients=False, smoothing=0.0, z_loss=0.0,\n"
                "     sum=False, negatives=0, seed=0, step=0, uniform=False, threads=0)\n--\n\n"
                "The cross-entropy of targets; with gradients (loss, of hidden, of the table).\n"
                "With negatives, targets are compared with that many drawn rows instead of all:\n"
                "frequent ones, which come first, more often, unless uniform. The same seed and\n"
                "step draw the same. With gradients (loss, of hidden, rows, of these rows)."),
    {NULL, NULL, 0, NULL}};

int bind_logits_add(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
