/* SPDX-License-Identifier: Apache-2.0 */
/* Store: rows of giant tables, in memory, in a shared copy or in their files. */
#include "embla_store.h"

#include "bind.h"

#include <string.h>

typedef struct {
    bind_object base; /* handle: embla_store */
    size_t dim;       /* embla_store_describe asks the system, so it is kept here */
} store;

static const embla_store *handle_of(PyObject *self)
{
    return ((bind_object *)self)->handle;
}

static const char *placement_name(int n)
{
    return n == EMBLA_PLACEMENT_VIEW ? NULL : embla_placement_name((embla_placement)n);
}

static size_t dim_of(const embla_store *handle)
{
    embla_store_info info = {0};
    embla_status status = embla_store_describe(handle, &info);
    return status == EMBLA_OK ? info.format.dim : 0;
}

static PyObject *store_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *checkpoint = NULL;
    const char *tensor = NULL;
    int64_t layer = -1;
    int place = EMBLA_PLACEMENT_MAPPED;
    bind_path folder = {0};
    bind_progress progress = {0};
    embla_store *handle = NULL;
    embla_store_options o = {.progress = bind_progress_step, .context = &progress};
    const bind_argument arguments[] = {
        {.name = "checkpoint", .kind = 'O', .to = &checkpoint, .required = true},
        {.name = "tensor", .kind = 's', .to = &tensor},
        {.name = "layer", .kind = 'l', .to = &layer},
        {.name = "place", .kind = 'e', .to = &place, .names = placement_name},
        {.name = "shared_folder", .kind = 'p', .to = &folder},
        {.name = "shared_name", .kind = 's', .to = &o.shared_name},
        {.name = "found_only", .kind = 'b', .to = &o.found_only},
        {.name = "wait", .kind = 'd', .to = &o.shared_wait},
        {.name = "threads", .kind = 'i', .to = &o.threads},
        {.name = "progress", .kind = 'O', .to = &progress.function}};
    if (!bind_new_arguments("Store", args, kwargs, 2, arguments, BIND_COUNT(arguments)))
        return NULL;
    o.placement = (embla_placement)place;
    o.shared_folder = folder.text;
    store *self = NULL;
    if (layer < -1 || layer > INT32_MAX) {
        bind_error(EMBLA_ERR_ARGUMENT, "layer is %lld; it must be -1 or the number of a layer",
                   (long long)layer);
    } else if (bind_is(checkpoint, bind_checkpoint_type, "checkpoint") &&
               bind_enter(checkpoint, false)) {
        embla_status status;
        BIND_RUN(true, status = embla_store_open(((bind_object *)checkpoint)->handle, tensor,
                                                 (int32_t)layer, &o, &handle));
        bind_leave(checkpoint, false);
        if (status != EMBLA_OK)
            bind_fail(status);
        else
            self = bind_new(type);
        if (self) self->base.handle = handle;
        if (!self) embla_store_free(handle);
        if (self) self->dim = dim_of(handle);
    }
    bind_path_free(&folder);
    return (PyObject *)self;
}

static void release(void *handle)
{
    embla_store_free(handle);
}

static void store_dealloc(PyObject *self)
{
    embla_store_free(((bind_object *)self)->handle);
    bind_dealloc(self);
}

static PyObject *store_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    return bind_close(self, release) ? Py_NewRef(Py_None) : NULL;
}

/* ---- lookup ---- */

static PyObject *store_lookup(PyObject *self, BIND_ARGS)
{
    PyObject *rows = NULL, *out = NULL, *result = NULL, *array = NULL;
    embla_store_lookup_options o = {0};
    bind_ids ids;
    bind_output output;
    void *data = NULL;
    const bind_argument arguments[] = {{.name = "rows", .kind = 'O', .to = &rows, .required = true},
                                       {.name = "out", .kind = 'O', .to = &out},
                                       {.name = "scale", .kind = 'f', .to = &o.scale},
                                       {.name = "threads", .kind = 'i', .to = &o.threads}};
    if (!bind_arguments("lookup", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_enter(self, false))
        return NULL;
    if (out == Py_None) out = NULL;
    size_t dim = ((store *)(void *)self)->dim;
    embla_status status = EMBLA_OK;
    if (bind_ids_read(rows, "rows", &ids)) {
        Py_ssize_t shape[BIND_RANK + 1];
        memcpy(shape, ids.shape, (size_t)ids.rank * sizeof *shape);
        shape[ids.rank] = (Py_ssize_t)dim;
        bool good = out ? bind_output_read(out, ids.rank, ids.shape, dim, &output)
                        : (array = bind_array_new(EMBLA_F32, ids.rank + 1, shape, &data)) != NULL;
        if (good && out) {
            data = output.data;
            o.token_stride = output.stride;
            o.out_dtype = output.dtype;
        }
        if (good) {
            BIND_RUN(true,
                     status = embla_store_lookup(handle_of(self), ids.values, ids.count, &o, data));
            if (out) bind_output_free(&output);
            if (status != EMBLA_OK) bind_fail(status);
            if (status == EMBLA_OK) result = out ? Py_NewRef(out) : bind_array_result(array);
            if (status != EMBLA_OK) Py_XDECREF(array);
        }
        bind_ids_free(&ids);
    }
    bind_leave(self, false);
    return result;
}

/* ---- the rest ---- */

static PyObject *store_info(PyObject *self, PyObject *unused)
{
    embla_store_info i = {0};
    (void)unused;
    if (!bind_enter(self, false)) return NULL;
    embla_status status = embla_store_describe(handle_of(self), &i);
    PyObject *dict = NULL;
    if (status == EMBLA_OK)
        dict = Py_BuildValue(
            "{s:L,s:n,s:s,s:n,s:n,s:s,s:L,s:L,s:L,s:N,s:N}", "rows", (long long)i.rows, "dim",
            (Py_ssize_t)i.format.dim, "dtype", embla_dtype_name(i.format.dtype), "row_bytes",
            (Py_ssize_t)i.row_bytes, "parts", (Py_ssize_t)i.parts, "placement",
            embla_placement_name(i.placement), "bytes", (long long)i.bytes, "huge_bytes",
            (long long)i.huge_bytes, "resident", (long long)i.resident, "shared",
            bind_text(i.shared), "built", PyBool_FromLong(i.built));
    else
        bind_fail(status);
    bind_leave(self, false);
    return dict;
}

static PyObject *store_warm(PyObject *self, BIND_ARGS)
{
    bind_progress progress = {0};
    embla_store_options o = {.progress = bind_progress_step, .context = &progress};
    embla_status status;
    const bind_argument arguments[] = {{.name = "threads", .kind = 'i', .to = &o.threads},
                                       {.name = "progress", .kind = 'O', .to = &progress.function}};
    if (!bind_arguments("warm", values, count, names, 0, arguments, 2) || !bind_enter(self, false))
        return NULL;
    BIND_RUN(true, status = embla_store_warm(handle_of(self), &o));
    bind_leave(self, false);
    return status == EMBLA_OK ? Py_NewRef(Py_None) : bind_fail(status);
}

static PyObject *store_verify(PyObject *self, BIND_ARGS)
{
    int64_t sample = 0;
    uint64_t seed = 0;
    embla_verify_report r = {0};
    embla_status status;
    const bind_argument arguments[] = {{.name = "sample", .kind = 'l', .to = &sample},
                                       {.name = "seed", .kind = 'u', .to = &seed}};
    if (!bind_arguments("verify", values, count, names, 1, arguments, 2) ||
        !bind_enter(self, false))
        return NULL;
    BIND_RUN(true, status = embla_store_verify(handle_of(self), sample, seed, &r));
    bind_leave(self, false);
    if (status != EMBLA_OK) return bind_fail(status);
    return Py_BuildValue("{s:L,s:L,s:L}", "rows", (long long)r.rows, "different",
                         (long long)r.different, "first", (long long)r.first);
}

static PyObject *store_unshare(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!bind_enter(self, false)) return NULL;
    embla_status status = embla_store_unshare(handle_of(self));
    bind_leave(self, false);
    return status == EMBLA_OK ? Py_NewRef(Py_None) : bind_fail(status);
}

static PyMethodDef methods[] = {
    BIND_METHOD("lookup", store_lookup,
                "lookup(rows, out=None, *, scale=1.0, threads=0)\n--\n\n"
                "The rows of any shape of row numbers, with one more axis, dim."),
    {"info", store_info, METH_NOARGS, "info()\n--\n\nRows, dim, dtype, bytes, where they are."},
    BIND_METHOD("warm", store_warm,
                "warm(*, threads=0, progress=None)\n--\n\nBrings all rows into memory."),
    BIND_METHOD("verify", store_verify,
                "verify(sample=0, seed=0)\n--\n\nCompares rows with their files; 0 means all."),
    {"unshare", store_unshare, METH_NOARGS, "unshare()\n--\n\nRemoves the name of a shared copy."},
    {"close", store_close, METH_NOARGS, "close()\n--\n\nFrees the rows. It may be called twice."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {{Py_tp_doc, "Rows of a giant table; use embla.Store."},
                              {Py_tp_new, store_new},
                              {Py_tp_dealloc, store_dealloc},
                              {Py_tp_methods, methods},
                              {0, NULL}};
static PyType_Spec spec = {.name = "embla._embla.Store",
                           .basicsize = sizeof(store),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .slots = slots};

int bind_store_add(PyObject *module)
{
    return bind_type_only(module, &spec);
}
