/* SPDX-License-Identifier: Apache-2.0 */
/* Scatter: gradients of rows. Optim: updates of rows. */
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

/* ---- catching up, states ---- */

/* catch_up(rows): makes outstanding updates, of all rows or of these. */
static PyObject *optim_catch_up(PyObject *self, BIND_ARGS)
{
    PyObject *rows = NULL;
    bind_ids ids = {0};
    const bind_argument arguments[] = {{.name = "rows", .kind = 'O', .to = &rows}};
    if (!bind_arguments("catch_up", values, count, names, 1, arguments, BIND_COUNT(arguments)))
        return NULL;
    bool some = rows && rows != Py_None;
    if (some && !bind_ids_read(rows, "rows", &ids)) return NULL;
    embla_status status = EMBLA_OK;
    bool entered = bind_enter(self, true);
    if (entered) {
        embla_optim *handle = ((bind_object *)self)->handle;
        /* An empty list is no row; NULL would mean all rows. */
        if (!some || ids.count > 0)
            BIND_RUN(true, status = embla_optim_catch_up(handle, some ? ids.values : NULL,
                                                         some ? ids.count : 0));
        bind_leave(self, true);
    }
    if (some) bind_ids_free(&ids);
    if (!entered) return NULL;
    return status == EMBLA_OK ? Py_NewRef(Py_None) : bind_fail(status);
}

/* One state as an array (rows, dim) of its own. NULL after an exception. */
static PyObject *state_copy(const embla_optim_state *state)
{
    const Py_ssize_t shape[2] = {(Py_ssize_t)state->rows, (Py_ssize_t)state->dim};
    void *data = NULL;
    PyObject *array = bind_array_new(EMBLA_F32, 2, shape, &data);
    if (array) memcpy(data, state->values, (size_t)state->rows * state->dim * sizeof(float));
    return bind_array_result(array);
}

/* Fills dict; the handle is entered. */
static bool put_states(embla_optim *handle, PyObject *dict)
{
    embla_optim_state state;
    embla_status status;
    BIND_RUN(true, status = embla_optim_catch_up(handle, NULL, 0));
    for (size_t n = 0; status == EMBLA_OK; n++) {
        status = embla_optim_state_at(handle, n, &state);
        if (status == EMBLA_OK && !bind_put(dict, state.name, state_copy(&state))) return false;
    }
    if (status == EMBLA_ERR_RANGE) /* past the last */
        return bind_put(dict, "steps", PyLong_FromLongLong(embla_optim_steps(handle)));
    bind_fail(status);
    return false;
}

static PyObject *optim_state(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!bind_enter(self, true)) return NULL;
    PyObject *dict = PyDict_New();
    if (dict && !put_states(((bind_object *)self)->handle, dict)) Py_CLEAR(dict);
    bind_leave(self, true);
    return dict;
}

enum { STATES_MAX = 8 };

/* What load_state reads before it changes anything. */
typedef struct {
    embla_optim_state to[STATES_MAX];
    bind_floats from[STATES_MAX];
    size_t count;
    int64_t steps;
} loaded;

/* Reads the array of one state. */
static bool read_state(PyObject *dict, loaded *l)
{
    const embla_optim_state *state = &l->to[l->count];
    bind_floats *from = &l->from[l->count];
    PyObject *array = PyDict_GetItemString(dict, state->name);
    if (!array) {
        bind_error(EMBLA_ERR_ARGUMENT, "the state has no '%s', which this optimizer needs",
                   state->name);
        return false;
    }
    Py_INCREF(array); /* reading may run Python code, which may change the dict */
    bool read = bind_floats_read(array, state->name, from);
    Py_DECREF(array);
    if (!read) return false;
    l->count++;
    if (from->rank == 2 && from->shape[0] == state->rows &&
        from->shape[1] == (Py_ssize_t)state->dim)
        return true;
    bind_error(EMBLA_ERR_SHAPE, "'%s' has %d axes and %zu numbers; it must be (%lld, %zu)",
               state->name, from->rank, from->count, (long long)state->rows, state->dim);
    return false;
}

static bool read_states(embla_optim *handle, PyObject *dict, loaded *l)
{
    embla_status status = EMBLA_OK;
    PyObject *steps = PyDict_GetItemString(dict, "steps");
    if (!steps) {
        bind_error(EMBLA_ERR_ARGUMENT, "the state has no 'steps'");
        return false;
    }
    const bind_argument number = {.name = "steps", .kind = 'l', .to = &l->steps, .required = true};
    Py_INCREF(steps);
    bool read = bind_arguments("load_state", &steps, 1, NULL, 1, &number, 1);
    Py_DECREF(steps);
    if (!read) return false;
    while (l->count < STATES_MAX) {
        status = embla_optim_state_at(handle, l->count, &l->to[l->count]);
        if (status != EMBLA_OK) break;
        if (!read_state(dict, l)) return false;
    }
    if (status != EMBLA_ERR_RANGE) {
        bind_fail(status);
        return false;
    }
    if (PyDict_Size(dict) == (Py_ssize_t)l->count + 1) return true;
    bind_error(EMBLA_ERR_ARGUMENT, "the state has %zd entries; this optimizer has %zu and 'steps'",
               PyDict_Size(dict), l->count);
    return false;
}

static PyObject *optim_load_state(PyObject *self, PyObject *dict)
{
    loaded l = {.count = 0};
    bool good = false;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "load_state needs a dict of Optim.state()");
        return NULL;
    }
    if (!bind_enter(self, true)) return NULL;
    embla_optim *handle = ((bind_object *)self)->handle;
    embla_status status = embla_optim_catch_up(handle, NULL, 0);
    if (status != EMBLA_OK) {
        bind_fail(status);
    } else if (read_states(handle, dict, &l)) {
        status = embla_optim_set_steps(handle, l.steps);
        for (size_t n = 0; status == EMBLA_OK && n < l.count; n++)
            memcpy(l.to[n].values, l.from[n].values, l.from[n].count * sizeof(float));
        good = status == EMBLA_OK;
        if (!good) bind_fail(status);
    }
    for (size_t n = 0; n < l.count; n++) bind_floats_free(&l.from[n]);
    bind_leave(self, true);
    return good ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef optim_methods[] = {
    BIND_METHOD("step", optim_step,
                "step(rate, gradients, rows=None)\n--\n\n"
                "Updates all rows, or these rows: ascending, each once."),
    BIND_METHOD("catch_up", optim_catch_up,
                "catch_up(rows=None)\n--\n\n"
                "With catch_up=True: makes the updates that these rows have missed, or all rows.\n"
                "Call it before the rows are read. Otherwise it does nothing."),
    {"state", optim_state, METH_NOARGS,
     "state($self, /)\n--\n\n"
     "Copies of the optimizer's arrays (rows, dim) by name, and 'steps'. All rows are caught up."},
    {"load_state", optim_load_state, METH_O,
     "load_state($self, state, /)\n--\n\n"
     "Continues from what state() of an equal optimizer returned. The table's rows are not part\n"
     "of it: save and load them, too."},
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

int bind_learn_add(PyObject *module)
{
    if (bind_type_only(module, &scatter_spec) < 0) return -1;
    return bind_type_only(module, &optim_spec);
}
