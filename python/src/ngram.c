/* SPDX-License-Identifier: Apache-2.0 */
/* Ngram: tokens to row numbers of giant tables. */
#include "embla_store.h"

#include "bind.h"

#include <string.h>

static const embla_ngram *handle_of(PyObject *self)
{
    return ((bind_object *)self)->handle;
}

typedef struct {
    bind_object base;
    embla_fold *fold;
} ngram;

/* Takes the handle and the fold, which the hasher points into. */
/* The object of a hasher that was made with this status. It owns the fold. */
static PyObject *wrap(PyObject *type, embla_status status, embla_ngram *handle, embla_fold *fold)
{
    ngram *self = status == EMBLA_OK ? bind_new((PyTypeObject *)type) : NULL;
    if (status != EMBLA_OK) bind_fail(status);
    if (!self) {
        embla_ngram_free(handle);
        embla_fold_free(fold);
        return NULL;
    }
    self->base.handle = handle;
    self->fold = fold;
    return (PyObject *)self;
}

static bool read_fold(bind_path *path, embla_fold **out)
{
    if (!path->text) return true;
    embla_status status = embla_fold_open(path->text, out);
    if (status != EMBLA_OK) bind_fail_path(status, path->text);
    return status == EMBLA_OK;
}

static PyObject *ngram_model(PyObject *type, BIND_ARGS)
{
    const char *name = NULL;
    int64_t layer = -1;
    bind_path path = {0};
    embla_fold *fold = NULL;
    embla_ngram *handle = NULL;
    const bind_argument arguments[] = {{.name = "name", .kind = 's', .to = &name, .required = true},
                                       {.name = "layer", .kind = 'l', .to = &layer},
                                       {.name = "fold", .kind = 'p', .to = &path}};
    if (!bind_arguments("model", values, count, names, 1, arguments, BIND_COUNT(arguments)))
        return NULL;
    PyObject *self = NULL;
    if (layer < -1 || layer > INT32_MAX || !name) {
        bind_error(EMBLA_ERR_ARGUMENT, "layer is %lld; it must be -1 or the number of a layer",
                   (long long)layer);
    } else if (read_fold(&path, &fold)) {
        embla_status status = embla_ngram_new_model(name, (int32_t)layer, fold, &handle);
        self = wrap(type, status, handle, fold);
    }
    bind_path_free(&path);
    return self;
}

static PyObject *ngram_open(PyObject *type, BIND_ARGS)
{
    PyObject *checkpoint = NULL;
    int64_t layer = -1;
    bind_path path = {0};
    embla_fold *fold = NULL;
    embla_ngram *handle = NULL;
    const bind_argument arguments[] = {
        {.name = "checkpoint", .kind = 'O', .to = &checkpoint, .required = true},
        {.name = "layer", .kind = 'l', .to = &layer},
        {.name = "fold", .kind = 'p', .to = &path}};
    if (!bind_arguments("_open", values, count, names, 1, arguments, BIND_COUNT(arguments)))
        return NULL;
    PyObject *self = NULL;
    if (layer < -1 || layer > INT32_MAX) {
        bind_error(EMBLA_ERR_ARGUMENT, "layer is %lld; it must be -1 or the number of a layer",
                   (long long)layer);
    } else if (bind_is(checkpoint, bind_checkpoint_type, "checkpoint") && read_fold(&path, &fold)) {
        embla_status status =
            embla_ngram_open(((bind_object *)checkpoint)->handle, (int32_t)layer, fold, &handle);
        self = wrap(type, status, handle, fold);
    }
    bind_path_free(&path);
    return self;
}

static void ngram_dealloc(PyObject *self)
{
    embla_ngram_free(((bind_object *)self)->handle);
    embla_fold_free(((ngram *)(void *)self)->fold); /* the hasher pointed into it */
    bind_dealloc(self);
}

/* ---- rows ---- */

/* Earlier tokens of each sequence, -1 for none; NULL after an exception. */
static int32_t *read_history(PyObject *object, size_t batch, size_t wanted)
{
    bind_ids ids;
    if (!bind_ids_read(object, "history", &ids)) return NULL;
    int32_t *history = NULL;
    if (ids.count != batch * wanted)
        bind_error(EMBLA_ERR_SHAPE, "history has %zu tokens; %zu sequences need %zu each",
                   ids.count, batch, wanted);
    else if (!(history = PyMem_Malloc((ids.count + 1) * sizeof *history)))
        PyErr_NoMemory();
    for (size_t i = 0; history && i < ids.count; i++) {
        int64_t id = ids.values[i];
        history[i] = id < -1 || id > INT32_MAX ? INT32_MAX : (int32_t)id; /* refused as a token */
    }
    bind_ids_free(&ids);
    return history;
}

static PyObject *rows_of(const embla_ngram *handle, const bind_ids *ids, PyObject *history,
                         embla_ngram_options *options)
{
    embla_ngram_info info;
    void *data = NULL;
    embla_ngram_describe(handle, &info);
    if (ids->rank < 1 || ids->rank > 2)
        return bind_error(EMBLA_ERR_SHAPE, "tokens has %d axes; rows takes (T) or (B, T)",
                          ids->rank);
    size_t length = (size_t)ids->shape[ids->rank - 1];
    size_t batch = ids->rank == 2 ? (size_t)ids->shape[0] : 1;
    Py_ssize_t shape[3] = {ids->shape[0], ids->shape[ids->rank - 1], (Py_ssize_t)info.columns};
    if (ids->rank == 1) shape[1] = (Py_ssize_t)info.columns;
    int32_t *before = NULL, *tokens = bind_ids_tokens(ids, "token", info.tokens);
    PyObject *array = tokens ? bind_array_new(BIND_I64, ids->rank + 1, shape, &data) : NULL;
    embla_status status = EMBLA_OK;
    bool good = array != NULL;
    if (good && history && history != Py_None) {
        before = read_history(history, batch, info.history);
        good = before != NULL;
    }
    options->history = before;
    if (good)
        BIND_RUN(ids->count * info.columns > BIND_SMALL,
                 status = embla_ngram_rows(handle, tokens, batch, length, options, data));
    PyMem_Free(before);
    PyMem_Free(tokens);
    if (good && status == EMBLA_OK) return bind_array_result(array);
    Py_XDECREF(array);
    return good ? bind_fail(status) : NULL;
}

static PyObject *ngram_rows(PyObject *self, BIND_ARGS)
{
    PyObject *tokens = NULL, *history = NULL;
    bind_ids ids;
    embla_ngram_options options = {0};
    const bind_argument arguments[] = {
        {.name = "tokens", .kind = 'O', .to = &tokens, .required = true},
        {.name = "history", .kind = 'O', .to = &history},
        {.name = "threads", .kind = 'i', .to = &options.threads}};
    if (!bind_arguments("rows", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_ids_read(tokens, "tokens", &ids))
        return NULL;
    PyObject *result = rows_of(handle_of(self), &ids, history, &options);
    bind_ids_free(&ids);
    return result;
}

static PyObject *ngram_info(PyObject *self, PyObject *unused)
{
    static const char *const kinds[] = {"identity", "engram", "qwen", "longcat"};
    embla_ngram_info i;
    (void)unused;
    embla_ngram_describe(handle_of(self), &i);
    return Py_BuildValue("{s:s,s:L,s:L,s:L,s:L,s:n,s:n,s:i,s:i,s:i,s:i,s:i}", "kind",
                         (size_t)i.kind < BIND_COUNT(kinds) ? kinds[i.kind] : "?", "tokens",
                         (long long)i.tokens, "vocab", (long long)i.vocab, "rows",
                         (long long)i.rows, "used", (long long)i.used, "columns",
                         (Py_ssize_t)i.columns, "history", (Py_ssize_t)i.history, "orders",
                         i.orders, "heads", i.heads, "layer", i.layer, "pad", i.pad, "eos", i.eos);
}

static PyObject *ngram_models(PyObject *type, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    (void)type, (void)unused;
    for (size_t n = 0; list && embla_ngram_model_name(n); n++) {
        PyObject *name = bind_text(embla_ngram_model_name(n));
        if (!name || PyList_Append(list, name) < 0) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static PyMethodDef methods[] = {
    {"model", (PyCFunction)(void (*)(void))ngram_model, METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     "model(name, *, layer=-1, fold=None)\n--\n\nThe hasher of a known model; see models()."},
    {"_open", (PyCFunction)(void (*)(void))ngram_open, METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     "_open(checkpoint, *, layer=-1, fold=None)\n--\n\nThe hasher that a checkpoint describes."},
    {"models", ngram_models, METH_NOARGS | METH_CLASS, "models()\n--\n\nNames of known models."},
    BIND_METHOD("rows", ngram_rows,
                "rows(tokens, history=None, *, threads=0)\n--\n\n"
                "Row numbers (T, columns) of tokens (T), or (B, T, columns)."),
    {"info", ngram_info, METH_NOARGS, "info()\n--\n\nThe sizes of the hasher."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {
    {Py_tp_doc, "An n-gram hasher: the last few tokens select rows of a giant table."},
    {Py_tp_dealloc, ngram_dealloc},
    {Py_tp_methods, methods},
    {0, NULL}};
static PyType_Spec spec = {.name = "embla._embla.Ngram",
                           .basicsize = sizeof(ngram),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                    Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = slots};

int bind_ngram_add(PyObject *module)
{
    return bind_type_only(module, &spec);
}
