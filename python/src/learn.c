/* SPDX-License-Identifier: Apache-2.0 */
/* Scatter: gradients of rows. Optim: updates of rows. The head: logits, best tokens, loss. */
#include "embla_learn.h"

#include "table.h"

#include <string.h>

/* ---- scatter ---- */

typedef struct {
    bind_object base; /* handle: embla_scatter */
    size_t planned;   /* tokens of the last plan */
    int64_t rows;
    size_t capacity;
} scatter;

static PyObject *scatter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    int64_t rows = 0;
    size_t capacity = 0;
    embla_scatter *handle = NULL;
    const bind_argument arguments[] = {
        {.name = "rows", .kind = 'l', .to = &rows, .required = true},
        {.name = "capacity", .kind = 'z', .to = &capacity, .required = true}};
    if (!bind_new_arguments("Scatter", args, kwargs, 2, arguments, 2)) return NULL;
    embla_status status = embla_scatter_new(rows, capacity, &handle);
    if (status != EMBLA_OK) return bind_fail(status);
    scatter *self = bind_new(type);
    if (!self) {
        embla_scatter_free(handle);
        return NULL;
    }
    self->base.handle = handle;
    self->rows = rows;
    self->capacity = capacity;
    return (PyObject *)self;
}

static PyObject *scatter_repr(PyObject *self)
{
    const scatter *s = (scatter *)(void *)self;
    return PyUnicode_FromFormat("<embla.Scatter for %lld rows, up to %zu gradients>",
                                (long long)s->rows, s->capacity);
}

static void scatter_dealloc(PyObject *self)
{
    embla_scatter_free(((bind_object *)self)->handle);
    bind_dealloc(self);
}

/* Plans the rows of a batch; returns the different rows, ascending. */
static PyObject *scatter_plan(PyObject *self, BIND_ARGS)
{
    PyObject *rows = NULL, *result = NULL;
    bind_ids ids;
    embla_scatter_options o = {0};
    const bind_argument arguments[] = {{.name = "rows", .kind = 'O', .to = &rows, .required = true},
                                       {.name = "frozen_below", .kind = 'l', .to = &o.frozen.below},
                                       {.name = "max_norm", .kind = 'f', .to = &o.max_norm},
                                       {.name = "by_count", .kind = 'b', .to = &o.by_count},
                                       {.name = "threads", .kind = 'i', .to = &o.threads}};
    if (!bind_arguments("plan", values, count, names, 1, arguments, BIND_COUNT(arguments)) ||
        !bind_ids_read(rows, "rows", &ids))
        return NULL;
    if (bind_enter(self, true)) {
        embla_scatter *handle = ((bind_object *)self)->handle;
        embla_status status;
        BIND_RUN(ids.count > BIND_SMALL,
                 status = embla_scatter_plan_rows(handle, ids.values, ids.count, &o));
        if (status == EMBLA_OK) {
            ((scatter *)(void *)self)->planned = ids.count;
            result =
                bind_array_copy(BIND_I64, embla_scatter_count(handle), embla_scatter_rows(handle));
        } else {
            bind_fail(status);
        }
        bind_leave(self, true);
    }
    bind_ids_free(&ids);
    return result;
}

/* Sums gradients (tokens, dim) for each of the rows: (rows, dim). */
static PyObject *scatter_sum(PyObject *self, PyObject *gradients)
{
    bind_floats g;
    void *data = NULL;
    PyObject *array = NULL;
    if (!bind_floats_read(gradients, "gradients", &g)) return NULL;
    if (!bind_enter(self, true)) {
        bind_floats_free(&g);
        return NULL;
    }
    scatter *s = (scatter *)(void *)self;
    size_t dim = g.rank > 0 ? (size_t)g.shape[g.rank - 1] : 0;
    size_t tokens = s->planned;
    if (g.rank < 2 || dim == 0 || g.count / dim != tokens) {
        bind_error(EMBLA_ERR_SHAPE,
                   "gradients has %zu numbers in rows of %zu; the plan has %zu "
                   "tokens",
                   g.count, dim, tokens);
    } else {
        embla_status status = EMBLA_OK;
        const Py_ssize_t shape[2] = {(Py_ssize_t)embla_scatter_count(s->base.handle),
                                     (Py_ssize_t)dim};
        array = bind_array_new(EMBLA_F32, 2, shape, &data);
        if (array)
            BIND_RUN(g.count > BIND_SMALL,
                     status = embla_scatter_sum(s->base.handle, g.values, dim, data));
        if (status != EMBLA_OK) {
            Py_CLEAR(array);
            bind_fail(status);
        }
    }
    bind_leave(self, true);
    bind_floats_free(&g);
    return bind_array_result(array);
}

static PyMethodDef scatter_methods[] = {
    BIND_METHOD("plan", scatter_plan,
                "plan(rows, *, frozen_below=0, max_norm=0.0, by_count=False, threads=0)\n--\n\n"
                "Sorts the rows of a batch; returns the different rows, ascending."),
    {"sum", scatter_sum, METH_O,
     "sum($self, gradients, /)\n--\n\nThe sums of the gradients (tokens, dim) of each row."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot scatter_slots[] = {
    {Py_tp_doc, "Scatter(rows, capacity)\n--\n\nThe backward pass of a lookup."},
    {Py_tp_new, scatter_new},
    {Py_tp_dealloc, scatter_dealloc},
    {Py_tp_repr, scatter_repr},
    {Py_tp_methods, scatter_methods},
    {0, NULL}};
static PyType_Spec scatter_spec = {.name = "embla._embla.Scatter",
                                   .basicsize = sizeof(scatter),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                   .slots = scatter_slots};

/* ---- optim ---- */

static const char *optim_name(int n)
{
    return embla_optim_name((embla_optim_kind)n);
}

static PyObject *optim_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *table = NULL;
    int kind = EMBLA_OPTIM_SGD;
    embla_optim_options o = {0};
    embla_optim *handle = NULL;
    const bind_argument arguments[] = {
        {.name = "table", .kind = 'O', .to = &table, .required = true},
        {.name = "kind", .kind = 'e', .to = &kind, .names = optim_name},
        {.name = "momentum", .kind = 'd', .to = &o.momentum},
        {.name = "beta1", .kind = 'd', .to = &o.beta1},
        {.name = "beta2", .kind = 'd', .to = &o.beta2},
        {.name = "epsilon", .kind = 'd', .to = &o.epsilon},
        {.name = "decay", .kind = 'd', .to = &o.decay},
        {.name = "nesterov", .kind = 'b', .to = &o.nesterov},
        {.name = "catch_up", .kind = 'b', .to = &o.catch_up},
        {.name = "frozen_below", .kind = 'l', .to = &o.frozen.below},
        {.name = "threads", .kind = 'i', .to = &o.threads}};
    if (!bind_new_arguments("Optim", args, kwargs, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_table_enter(table, "table"))
        return NULL;
    o.kind = (embla_optim_kind)kind;
    embla_status status = EMBLA_ERR_ARGUMENT;
    if (bind_table_writable(table)) {
        bind_table_may_change(table);
        status = embla_optim_new(bind_table_of(table), &o, &handle);
    }
    bind_leave(table, false);
    if (status != EMBLA_OK) return bind_fail(status);
    bind_object *self = bind_new(type);
    if (!self) {
        embla_optim_free(handle);
        return NULL;
    }
    self->handle = handle;
    self->keeps = Py_NewRef(table);
    return (PyObject *)self;
}

static void optim_dealloc(PyObject *self)
{
    embla_optim_free(((bind_object *)self)->handle);
    bind_dealloc(self);
}

/* step(rate, gradients, rows): for all rows, or for rows that are ascending, each once. */
static embla_status run_step(PyObject *self, double rate, const bind_floats *g, const bind_ids *ids)
{
    embla_status status;
    embla_optim *handle = ((bind_object *)self)->handle;
    if (ids)
        BIND_RUN(g->count > BIND_SMALL,
                 status = embla_optim_step_rows(handle, rate, ids->values, ids->count, g->values));
    else
        BIND_RUN(g->count > BIND_SMALL, status = embla_optim_step(handle, rate, g->values));
    return status;
}

static PyObject *optim_step(PyObject *self, BIND_ARGS)
{
    PyObject *gradients = NULL, *rows = NULL;
    double rate = 0;
    bind_floats g;
    bind_ids ids;
    size_t vectors = 0;
    const bind_argument arguments[] = {
        {.name = "rate", .kind = 'd', .to = &rate, .required = true},
        {.name = "gradients", .kind = 'O', .to = &gradients, .required = true},
        {.name = "rows", .kind = 'O', .to = &rows}};
    if (!bind_arguments("step", values, count, names, 3, arguments, BIND_COUNT(arguments)) ||
        !bind_enter(self, true))
        return NULL;
    embla_table *table = bind_table_of(((bind_object *)self)->keeps);
    bool some = rows && rows != Py_None, good = false;
    if (bind_vectors_read(gradients, "gradients", embla_table_dim(table), &g, &vectors)) {
        if (!some || bind_ids_read(rows, "rows", &ids)) {
            size_t wanted = some ? ids.count : (size_t)embla_table_rows(table);
            if (wanted != vectors) {
                bind_error(EMBLA_ERR_SHAPE, "there are gradients for %zu rows, but %zu rows",
                           vectors, wanted);
            } else {
                embla_status status = run_step(self, rate, &g, some ? &ids : NULL);
                good = status == EMBLA_OK;
                if (!good) bind_fail(status);
            }
            if (some) bind_ids_free(&ids);
        }
        bind_floats_free(&g);
    }
    bind_leave(self, true);
    return good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *optim_steps(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(embla_optim_steps(((bind_object *)self)->handle));
}

static PyObject *optim_repr(PyObject *self)
{
    const bind_object *o = (bind_object *)self;
    return PyUnicode_FromFormat("<embla.Optim of %R, %lld steps>", o->keeps,
                                (long long)embla_optim_steps(o->handle));
}

static PyMethodDef optim_methods[] = {
    BIND_METHOD("step", optim_step,
                "step(rate, gradients, rows=None)\n--\n\n"
                "Updates all rows, or these rows: ascending, each once."),
    {NULL, NULL, 0, NULL}};
static PyGetSetDef optim_getters[] = {
    {"steps", optim_steps, NULL, "The number of steps made.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot optim_slots[] = {
    {Py_tp_doc, "Optim(table, kind='sgd', *, momentum=0.0, beta1=0.9, beta2=0.999, epsilon=0.0,\n"
                "      decay=0.0, nesterov=False, catch_up=False, frozen_below=0, threads=0)\n"
                "--\n\nUpdates rows: 'sgd', 'adagrad', 'adagrad-rowwise' or 'adamw'."},
    {Py_tp_new, optim_new},
    {Py_tp_dealloc, optim_dealloc},
    {Py_tp_repr, optim_repr},
    {Py_tp_methods, optim_methods},
    {Py_tp_getset, optim_getters},
    {0, NULL}};
static PyType_Spec optim_spec = {.name = "embla._embla.Optim",
                                 .basicsize = sizeof(bind_object),
                                 .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                 .slots = optim_slots};

/* ---- head ---- */

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

/* Loss of targets, with the gradients of hidden and of the table. */
static PyObject *head_loss(PyObject *module, BIND_ARGS)
{
    PyObject *table = NULL, *hidden = NULL, *targets = NULL, *result = NULL;
    bool gradients = false;
    embla_head head = {0};
    embla_loss_options o = {0};
    embla_loss_gradients g = {0};
    embla_loss_report report = {0};
    bind_floats h;
    bind_ids ids;
    size_t vectors = 0;
    const bind_argument arguments[] = {
        {.name = "table", .kind = 'O', .to = &table, .required = true},
        {.name = "hidden", .kind = 'O', .to = &hidden, .required = true},
        {.name = "targets", .kind = 'O', .to = &targets, .required = true},
        {.name = "gradients", .kind = 'b', .to = &gradients},
        {.name = "smoothing", .kind = 'd', .to = &o.smoothing},
        {.name = "z_loss", .kind = 'd', .to = &o.z_loss},
        {.name = "sum", .kind = 'b', .to = &o.sum},
        {.name = "threads", .kind = 'i', .to = &o.threads}};
    (void)module;
    if (!bind_arguments("loss", values, count, names, 3, arguments, BIND_COUNT(arguments)) ||
        !head_begin(table, hidden, &head, &h, &vectors))
        return NULL;
    if (bind_ids_read(targets, "targets", &ids)) {
        PyObject *dh = NULL, *dt = NULL;
        int32_t *small = PyMem_Malloc((ids.count + 1) * sizeof *small);
        const Py_ssize_t rows[2] = {(Py_ssize_t)embla_table_rows(head.table),
                                    (Py_ssize_t)embla_table_dim(head.table)};
        bool good = small != NULL;
        if (!good) PyErr_NoMemory();
        for (size_t i = 0; good && i < ids.count; i++)
            small[i] = ids.values[i] < INT32_MIN || ids.values[i] > INT32_MAX
                           ? INT32_MAX
                           : (int32_t)ids.values[i];
        if (good && ids.count != vectors) {
            bind_error(EMBLA_ERR_SHAPE, "there are %zu targets, but %zu vectors", ids.count,
                       vectors);
            good = false;
        }
        if (good && gradients) {
            dh = bind_array_new(EMBLA_F32, h.rank, h.shape, (void **)&g.hidden);
            dt = dh ? bind_array_new(EMBLA_F32, 2, rows, (void **)&g.table) : NULL;
            good = dt != NULL;
            if (good) memset(g.table, 0, (size_t)rows[0] * (size_t)rows[1] * sizeof(float));
        }
        if (good) {
            embla_status status;
            BIND_RUN(true, status = embla_head_loss(&head, h.values, small, vectors, &o,
                                                    gradients ? &g : NULL, NULL, &report));
            if (status != EMBLA_OK) {
                bind_fail(status);
            } else if (gradients) {
                result =
                    Py_BuildValue("dNN", report.loss, bind_array_result(dh), bind_array_result(dt));
                dh = dt = NULL;
            } else {
                result = PyFloat_FromDouble(report.loss);
            }
        }
        Py_XDECREF(dh);
        Py_XDECREF(dt);
        PyMem_Free(small);
        bind_ids_free(&ids);
    }
    bind_floats_free(&h);
    bind_leave(table, false);
    return result;
}

static PyMethodDef functions[] = {
    BIND_METHOD("logits", head_logits,
                "logits(table, hidden, *, scale=1.0, soft_cap=0.0, threads=0)\n--\n\n"
                "The scores of all rows for hidden vectors."),
    BIND_METHOD("loss", head_loss,
                "loss(table, hidden, targets, *, gradients=False, smoothing=0.0, z_loss=0.0,\n"
                "     sum=False, threads=0)\n--\n\n"
                "The cross-entropy of targets; with gradients (loss, of hidden, of the table)."),
    {NULL, NULL, 0, NULL}};

int bind_learn_add(PyObject *module)
{
    if (bind_type_only(module, &scatter_spec) < 0 || bind_type_only(module, &optim_spec) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
