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
    if (!name) {
        PyErr_SetString(PyExc_TypeError, "name must not be None");
    } else if (layer < -1 || layer > INT32_MAX) {
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

/* A writable buffer of int64 of this shape, without gaps. False after an exception. */
static bool read_out(PyObject *object, int rank, const Py_ssize_t *shape, bind_buffer *out)
{
    if (!bind_buffer_read(object, true, "out", out)) return false;
    char format = bind_buffer_format(out);
    bool good = out->view.itemsize == sizeof(int64_t) && (format == 'l' || format == 'q') &&
                out->view.ndim == rank && bind_buffer_plain(out);
    for (int i = 0; good && i < rank; i++) good = out->view.shape[i] == shape[i];
    if (good) return true;
    bind_buffer_free(out);
    bind_error(EMBLA_ERR_SHAPE, "out must be int64 without gaps, of %d axes, the last one of %zd",
               rank, shape[rank - 1]);
    return false;
}

/* What rows takes, and where the result goes. */
typedef struct {
    PyObject *history, *out; /* NULL means none */
    embla_ngram_options options;
    embla_ngram_info info;
    int32_t *tokens;
    int rank;
    Py_ssize_t shape[3]; /* of the result */
} rows_job;

/* Takes the shape of the tokens; false after an exception. */
static bool set_shape(rows_job *job, int rank, const Py_ssize_t *shape)
{
    if (rank < 1 || rank > 2) {
        bind_error(EMBLA_ERR_SHAPE, "tokens has %d axes; rows takes (T) or (B, T)", rank);
        return false;
    }
    job->rank = rank;
    memcpy(job->shape, shape, (size_t)rank * sizeof *shape);
    job->shape[rank] = (Py_ssize_t)job->info.rows_per_token;
    return true;
}

/* Copies tokens that are int32 without gaps already: the library checks their range. *good is false
 * after an exception. Returns false if they are something else. */
static bool copy_tokens(PyObject *object, rows_job *job, bool *good)
{
    Py_buffer view;
    if (!PyObject_CheckBuffer(object)) return false;
    if (PyObject_GetBuffer(object, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        return false;
    }
    bool same = view.itemsize == sizeof(int32_t) && view.format && strcmp(view.format, "i") == 0;
    if (same) {
        *good = set_shape(job, view.ndim, view.shape);
        if (*good) job->tokens = PyMem_Malloc((size_t)view.len + 1);
        if (*good && !job->tokens) PyErr_NoMemory();
        *good = job->tokens != NULL;
        if (*good && view.len > 0) memcpy(job->tokens, view.buf, (size_t)view.len);
    }
    PyBuffer_Release(&view);
    return same;
}

static bool read_tokens(PyObject *object, rows_job *job)
{
    bind_ids ids;
    bool good = false;
    if (copy_tokens(object, job, &good)) return good;
    if (!bind_ids_read(object, "tokens", &ids)) return false;
    good = set_shape(job, ids.rank, ids.shape);
    if (good) job->tokens = bind_ids_tokens(&ids, "token", job->info.tokens);
    bind_ids_free(&ids);
    return job->tokens != NULL;
}

static embla_status run_rows(const embla_ngram *handle, const rows_job *job, void *data)
{
    const size_t length = (size_t)job->shape[job->rank - 1];
    const size_t batch = job->rank == 2 ? (size_t)job->shape[0] : 1;
    embla_status status;
    BIND_RUN(batch * length * job->info.rows_per_token > BIND_SMALL,
             status = embla_ngram_rows(handle, job->tokens, batch, length, &job->options, data));
    return status;
}

/* Into the caller's memory, or into a new array. */
static PyObject *write_rows(const embla_ngram *handle, const rows_job *job)
{
    void *data = NULL;
    if (job->out) {
        bind_buffer buffer;
        if (!read_out(job->out, job->rank + 1, job->shape, &buffer)) return NULL;
        embla_status status = run_rows(handle, job, buffer.view.buf);
        bind_buffer_free(&buffer);
        return status == EMBLA_OK ? Py_NewRef(job->out) : bind_fail(status);
    }
    PyObject *array = bind_array_new(BIND_I64, job->rank + 1, job->shape, &data);
    if (!array) return NULL;
    return bind_array_done(run_rows(handle, job, data), array);
}

static PyObject *ngram_rows(PyObject *self, BIND_ARGS)
{
    PyObject *tokens = NULL, *result = NULL;
    rows_job job = {0};
    const bind_argument arguments[] = {
        {.name = "tokens", .kind = 'O', .to = &tokens, .required = true},
        {.name = "history", .kind = 'O', .to = &job.history},
        {.name = "out", .kind = 'O', .to = &job.out},
        {.name = "threads", .kind = 'i', .to = &job.options.threads}};
    if (!bind_arguments("rows", values, count, names, 2, arguments, BIND_COUNT(arguments)))
        return NULL;
    if (job.history == Py_None) job.history = NULL;
    if (job.out == Py_None) job.out = NULL;
    embla_status status = embla_ngram_describe(handle_of(self), &job.info);
    if (status != EMBLA_OK) return bind_fail(status);
    if (read_tokens(tokens, &job)) {
        int32_t *before = NULL;
        if (job.history)
            before = read_history(job.history, job.rank == 2 ? (size_t)job.shape[0] : 1,
                                  job.info.history);
        job.options.history = before;
        if (before || !job.history) result = write_rows(handle_of(self), &job);
        PyMem_Free(before);
    }
    PyMem_Free(job.tokens);
    return result;
}

static PyObject *ngram_info(PyObject *self, PyObject *unused)
{
    static const char *const kinds[] = {"identity", "engram", "qwen", "longcat"};
    embla_ngram_info i;
    (void)unused;
    embla_status status = embla_ngram_describe(handle_of(self), &i);
    if (status != EMBLA_OK) return bind_fail(status);
    return Py_BuildValue(
        "{s:s,s:L,s:L,s:L,s:L,s:n,s:n,s:i,s:i,s:i,s:i,s:i}", "kind",
        (size_t)i.kind < BIND_COUNT(kinds) ? kinds[i.kind] : "?", "tokens", (long long)i.tokens,
        "vocab", (long long)i.vocab, "rows", (long long)i.rows, "used", (long long)i.used,
        "rows_per_token", (Py_ssize_t)i.rows_per_token, "history", (Py_ssize_t)i.history, "orders",
        i.orders, "rows_per_ngram", i.rows_per_ngram, "layer", i.layer, "pad", i.pad, "eos", i.eos);
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
                "rows(tokens, history=None, *, out=None, threads=0)\n--\n\n"
                "Row numbers (T, rows_per_token) of tokens (T), or (B, T, rows_per_token).\n\n"
                "They are written to out, int64, if that is given: new memory costs time."),
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
