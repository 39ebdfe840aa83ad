/* SPDX-License-Identifier: Apache-2.0 */
/* cost: parameters, bytes and operations of a model's tables. */
#include "bind.h"
#include "embla_lab.h"

static PyObject *part(const embla_cost_part *p)
{
    return Py_BuildValue("LL", (long long)p->parameters, (long long)p->bytes);
}

static PyObject *notes_list(const embla_cost_model *model)
{
    PyObject *list = PyList_New(0);
    for (size_t n = 0; list && embla_cost_note(model, n); n++) {
        PyObject *note = bind_text(embla_cost_note(model, n));
        if (!note || PyList_Append(list, note) < 0) Py_CLEAR(list);
        Py_XDECREF(note);
    }
    return list;
}

static PyObject *cost_dict(const embla_cost_model *model, const embla_cost *c)
{
    PyObject *dict = PyDict_New();
    bool good =
        dict && bind_put(dict, "tokens", part(&c->tokens)) &&
        bind_put(dict, "positions", part(&c->positions)) &&
        bind_put(dict, "head", part(&c->head)) && bind_put(dict, "ngram", part(&c->ngram)) &&
        bind_put(dict, "trunk", part(&c->trunk)) && bind_put(dict, "inputs", part(&c->inputs)) &&
        bind_put(dict, "tables", part(&c->tables)) && bind_put(dict, "total", part(&c->total)) &&
        bind_put(dict, "lookup_bytes", PyLong_FromLongLong(c->lookup_bytes)) &&
        bind_put(dict, "one_hot_madds", PyLong_FromLongLong(c->one_hot_madds)) &&
        bind_put(dict, "head_madds", PyLong_FromLongLong(c->head_madds)) &&
        bind_put(dict, "head_bytes", PyLong_FromLongLong(c->head_bytes)) &&
        bind_put(dict, "read_bytes", PyLong_FromLongLong(c->read_bytes)) &&
        bind_put(dict, "head_layers", PyFloat_FromDouble(c->head_layers)) &&
        bind_put(dict, "notes", notes_list(model));
    if (!good) Py_CLEAR(dict);
    return dict;
}

static PyObject *cost(PyObject *module, BIND_ARGS)
{
    const char *preset = NULL, *dtype = NULL, *ngram_dtype = NULL;
    embla_cost_model asked = {0}, model = {0};
    embla_cost result = {0};
    PyObject *tied = NULL;
    const bind_argument arguments[] = {
        {.name = "preset", .kind = 's', .to = &preset},
        {.name = "rows", .kind = 'l', .to = &asked.rows},
        {.name = "dim", .kind = 'l', .to = &asked.dim},
        {.name = "positions", .kind = 'l', .to = &asked.positions},
        {.name = "layers", .kind = 'l', .to = &asked.layers},
        {.name = "trunk", .kind = 'l', .to = &asked.trunk},
        {.name = "ngram_rows", .kind = 'l', .to = &asked.ngram_rows},
        {.name = "ngram_dim", .kind = 'l', .to = &asked.ngram_dim},
        {.name = "ngram_rows_per_token", .kind = 'l', .to = &asked.ngram_rows_per_token},
        {.name = "dtype", .kind = 's', .to = &dtype},
        {.name = "ngram_dtype", .kind = 's', .to = &ngram_dtype},
        {.name = "tied", .kind = 'O', .to = &tied}};
    (void)module;
    if (!bind_arguments("cost", values, count, names, 1, arguments, BIND_COUNT(arguments)))
        return NULL;
    embla_status status = preset ? embla_cost_preset(preset, &model) : EMBLA_OK;
    if (status != EMBLA_OK) return bind_fail(status);
    if (asked.rows) model.rows = asked.rows;
    if (asked.dim) model.dim = asked.dim;
    if (asked.positions) model.positions = asked.positions;
    if (asked.layers) model.layers = asked.layers;
    if (asked.trunk) model.trunk = asked.trunk;
    if (asked.ngram_rows) model.ngram_rows = asked.ngram_rows;
    if (asked.ngram_dim) model.ngram_dim = asked.ngram_dim;
    if (asked.ngram_rows_per_token) model.ngram_rows_per_token = asked.ngram_rows_per_token;
    if (tied && tied != Py_None) {
        int truth = PyObject_IsTrue(tied);
        if (truth < 0) return NULL;
        model.untied = truth == 0;
    }
    if (!bind_dtype(dtype, &model.dtype) || !bind_dtype(ngram_dtype, &model.ngram_dtype))
        return NULL;
    status = embla_cost_compute(&model, &result);
    return status == EMBLA_OK ? cost_dict(&model, &result) : bind_fail(status);
}

/* Names of published models, with what they are. */
static PyObject *cost_presets(PyObject *module, PyObject *unused)
{
    PyObject *dict = PyDict_New();
    (void)module, (void)unused;
    for (size_t n = 0; dict && embla_cost_preset_name(n); n++)
        if (!bind_put(dict, embla_cost_preset_name(n), bind_text(embla_cost_preset_about(n))))
            Py_CLEAR(dict);
    return dict;
}

static PyMethodDef functions[] = {
    BIND_METHOD(
        "cost", cost,
        "cost(preset=None, *, rows=0, dim=0, positions=0, layers=0, trunk=0, ngram_rows=0,\n"
        "     ngram_dim=0, ngram_rows_per_token=0, dtype=None, ngram_dtype=None, tied=None)\n"
        "--\n\nParameters, bytes and operations of a model's tables."),
    {"cost_presets", cost_presets, METH_NOARGS, "cost_presets()\n--\n\nPublished models."},
    {NULL, NULL, 0, NULL}};

int bind_cost_add(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
