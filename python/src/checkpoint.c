/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint: a file or a model's folder, its tensors and facts; whether its parts agree; and
 * writing it in another format.
 */
#include "bind.h"
#include "embla_checkpoint.h"
#include "embla_lab.h"
#include "table.h"

#include <string.h>

PyTypeObject *bind_checkpoint_type;

typedef struct {
    bind_object base;        /* handle: embla_checkpoint */
    PyObject *table, *vocab; /* of a view; entered until the checkpoint is gone */
    bool copies;             /* opened with copy=True: its tables may be changed */
} checkpoint;

static const embla_checkpoint *handle_of(PyObject *self)
{
    return ((bind_object *)self)->handle;
}

static PyObject *wrap(PyTypeObject *type, embla_checkpoint *handle)
{
    bind_object *self = bind_new(type);
    if (self) self->handle = handle;
    if (!self) embla_checkpoint_free(handle);
    return (PyObject *)self;
}

static PyObject *checkpoint_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    bind_path path = {0};
    const char *as = NULL;
    embla_open_options options = {0};
    embla_checkpoint *handle = NULL;
    embla_status status;
    const bind_argument arguments[] = {{.name = "path", .kind = 'p', .to = &path, .required = true},
                                       {.name = "lenient", .kind = 'b', .to = &options.lenient},
                                       {.name = "copy", .kind = 'b', .to = &options.copy},
                                       {.name = "npy_dtype", .kind = 's', .to = &as}};
    if (!bind_new_arguments("Checkpoint", args, kwargs, 1, arguments, BIND_COUNT(arguments)))
        return NULL;
    if (!path.text) return PyErr_Format(PyExc_TypeError, "path must not be None");
    if (!bind_dtype(as, &options.as)) {
        bind_path_free(&path);
        return NULL;
    }
    BIND_RUN(true, status = embla_checkpoint_open(path.text, &options, &handle));
    if (status != EMBLA_OK) bind_fail_path(status, path.text);
    bind_path_free(&path);
    PyObject *self = status == EMBLA_OK ? wrap(type, handle) : NULL;
    if (self) ((checkpoint *)(void *)self)->copies = options.copy;
    return self;
}

bool bind_checkpoint_copies(PyObject *object)
{
    return ((checkpoint *)(void *)object)->copies;
}

/* Checkpoint.over(table, vocab): a checkpoint of a table in memory. */
static PyObject *checkpoint_over(PyObject *type, BIND_ARGS)
{
    PyObject *table = NULL, *vocab = NULL;
    embla_checkpoint *handle = NULL;
    const bind_argument arguments[] = {
        {.name = "table", .kind = 'O', .to = &table, .required = true},
        {.name = "vocab", .kind = 'O', .to = &vocab}};
    if (!bind_arguments("over", values, count, names, 2, arguments, 2)) return NULL;
    if (vocab == Py_None) vocab = NULL;
    if (vocab && !bind_is(vocab, bind_vocab_type, "vocab")) return NULL;
    if (!bind_table_enter(table, "table")) return NULL;
    embla_status status = embla_checkpoint_view(
        bind_table_of(table), vocab ? ((bind_object *)vocab)->handle : NULL, &handle);
    checkpoint *self = NULL;
    if (status == EMBLA_OK)
        self = (checkpoint *)(void *)wrap((PyTypeObject *)type, handle);
    else
        bind_fail(status);
    if (!self) {
        bind_leave(table, false);
        return NULL;
    }
    self->table = Py_NewRef(table); /* stays entered */
    self->vocab = Py_XNewRef(vocab);
    return (PyObject *)self;
}

static void checkpoint_dealloc(PyObject *object)
{
    checkpoint *self = (checkpoint *)(void *)object;
    embla_checkpoint_free(self->base.handle);
    if (self->table) bind_leave(self->table, false);
    Py_CLEAR(self->table);
    Py_CLEAR(self->vocab);
    bind_dealloc(self);
}

/* ---- tensors ---- */

static PyObject *tensor_dict(const embla_tensor *t)
{
    PyObject *dict = PyDict_New(), *shape = PyTuple_New((Py_ssize_t)t->rank);
    bool good = dict && shape;
    for (size_t i = 0; good && i < t->rank; i++) {
        PyObject *size = PyLong_FromLongLong(t->shape[i]);
        good = size && PyTuple_SetItem(shape, (Py_ssize_t)i, size) == 0;
    }
    if (!good) Py_CLEAR(shape);
    good = shape && bind_put(dict, "name", bind_text(t->name)) &&
           bind_put(dict, "type", bind_text(t->type)) &&
           bind_put(dict, "dtype", bind_text(embla_dtype_name(t->dtype))) &&
           bind_put(dict, "role",
                    bind_text(t->role == EMBLA_ROLE_NONE ? NULL : embla_role_name(t->role))) &&
           bind_put(dict, "shape", shape) &&
           bind_put(dict, "bytes", PyLong_FromLongLong(t->bytes)) &&
           bind_put(dict, "offset", PyLong_FromLongLong(t->offset)) &&
           bind_put(dict, "file", bind_text(t->file));
    if (!good) Py_CLEAR(dict);
    return dict;
}

static PyObject *checkpoint_tensors(PyObject *self, PyObject *unused)
{
    size_t count = 0;
    (void)unused;
    const embla_tensor *tensors = embla_checkpoint_tensors(handle_of(self), &count);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *dict = tensor_dict(&tensors[i]);
        if (!dict || PyList_Append(list, dict) < 0) Py_CLEAR(list);
        Py_XDECREF(dict);
    }
    return list;
}

/* Stored bytes of a tensor. */
static PyObject *checkpoint_read(PyObject *self, BIND_ARGS)
{
    const char *name = NULL;
    int64_t offset = 0, bytes = -1;
    embla_tensor tensor;
    void *data = NULL;
    const bind_argument arguments[] = {{.name = "name", .kind = 's', .to = &name, .required = true},
                                       {.name = "offset", .kind = 'l', .to = &offset},
                                       {.name = "bytes", .kind = 'l', .to = &bytes}};
    if (!bind_arguments("read", values, count, names, 3, arguments, 3)) return NULL;
    if (!name) return PyErr_Format(PyExc_TypeError, "name must not be None");
    embla_status status = embla_checkpoint_find(handle_of(self), name, &tensor);
    if (status != EMBLA_OK) return bind_fail(status);
    if (offset < 0 || offset > tensor.bytes || bytes < -1 || bytes > tensor.bytes - offset)
        return bind_error(EMBLA_ERR_RANGE,
                          "tensor '%.200s' has %lld bytes; %lld from %lld on were "
                          "asked for",
                          name, (long long)tensor.bytes, (long long)bytes, (long long)offset);
    const Py_ssize_t shape[1] = {(Py_ssize_t)(bytes < 0 ? tensor.bytes - offset : bytes)};
    PyObject *array = bind_array_new(BIND_U8, 1, shape, &data);
    if (!array) return NULL;
    BIND_RUN(true,
             status = embla_checkpoint_read(handle_of(self), name, offset, (size_t)shape[0], data));
    return bind_array_done(status, array);
}

/* ---- facts ---- */

static PyObject *checkpoint_facts(PyObject *self, PyObject *unused)
{
    embla_facts f = {0};
    (void)unused;
    embla_status status = embla_checkpoint_facts(handle_of(self), &f);
    if (status != EMBLA_OK) return bind_fail(status);
    PyObject *dict = PyDict_New();
    bool good = dict && bind_put(dict, "architecture", bind_text(f.architecture)) &&
                bind_put(dict, "architecture_why", bind_text(f.architecture_why)) &&
                bind_put(dict, "tokens", PyLong_FromLongLong(f.tokens)) &&
                bind_put(dict, "tokens_why", bind_text(f.tokens_why)) &&
                bind_put(dict, "mapping", bind_text(f.mapping)) &&
                bind_put(dict, "weights", bind_text(f.weights)) &&
                bind_put(dict, "first_position", PyLong_FromLongLong(f.first_position)) &&
                bind_put(dict, "first_position_why", bind_text(f.first_position_why)) &&
                bind_put(dict, "scale", PyFloat_FromDouble(f.scale)) &&
                bind_put(dict, "scale_why", bind_text(f.scale_why));
    if (!good) Py_CLEAR(dict);
    return dict;
}

static PyObject *checkpoint_tie(PyObject *self, BIND_ARGS)
{
    int64_t sample = 0;
    embla_tie tie = {0};
    embla_status status;
    const bind_argument arguments[] = {{.name = "sample", .kind = 'n', .to = &sample}};
    if (!bind_arguments("tie", values, count, names, 1, arguments, 1)) return NULL;
    BIND_RUN(true, status = embla_checkpoint_tie(handle_of(self), sample, &tie));
    if (status != EMBLA_OK) return bind_fail(status);
    PyObject *dict = PyDict_New();
    bool good = dict && bind_put(dict, "kind", bind_text(embla_tie_name(tie.kind))) &&
                bind_put(dict, "rule", bind_text(tie.rule)) &&
                bind_put(dict, "flag", bind_text(tie.flag)) &&
                bind_put(dict, "conflict", PyBool_FromLong(tie.conflict)) &&
                bind_put(dict, "sampled", PyBool_FromLong(tie.sampled)) &&
                bind_put(dict, "rows_compared", PyLong_FromLongLong(tie.rows_compared)) &&
                bind_put(dict, "difference", PyFloat_FromDouble(tie.difference));
    if (!good) Py_CLEAR(dict);
    return dict;
}

/* An integer, a number or a text of the metadata, or None. */
static PyObject *checkpoint_value(PyObject *self, BIND_ARGS)
{
    const char *key = NULL;
    int64_t integer = 0;
    double real = 0;
    const bind_argument arguments[] = {{.name = "key", .kind = 's', .to = &key, .required = true}};
    if (!bind_arguments("value", values, count, names, 1, arguments, 1)) return NULL;
    if (!key) return PyErr_Format(PyExc_TypeError, "key must not be None");
    if (embla_checkpoint_integer(handle_of(self), key, &integer) == EMBLA_OK)
        return PyLong_FromLongLong(integer);
    if (embla_checkpoint_real(handle_of(self), key, &real) == EMBLA_OK)
        return PyFloat_FromDouble(real);
    return bind_text(embla_checkpoint_text(handle_of(self), key));
}

static PyObject *checkpoint_format(PyObject *self, void *unused)
{
    (void)unused;
    return bind_text(embla_checkpoint_format(handle_of(self)));
}

static PyObject *checkpoint_files(PyObject *self, void *unused)
{
    size_t count = 0;
    (void)unused;
    const embla_file *files = embla_checkpoint_files(handle_of(self), &count);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *item = Py_BuildValue("NL", bind_text(files[i].name), (long long)files[i].bytes);
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *text_list(const char *const *texts, size_t count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *item = bind_text(texts[i]);
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *checkpoint_notes(PyObject *self, void *unused)
{
    size_t count = 0;
    (void)unused;
    const char *const *notes = embla_checkpoint_notes(handle_of(self), &count);
    return text_list(notes, count);
}

/* ---- doctor ---- */

/* (level, check, found, remedy) of each finding. */
static PyObject *findings_list(const embla_doctor *doctor)
{
    size_t count = 0;
    const embla_finding *findings = embla_doctor_findings(doctor, &count);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        const embla_finding *f = &findings[i];
        PyObject *item =
            Py_BuildValue("NNNN", bind_text(embla_finding_level_name(f->level)),
                          bind_text(f->check), bind_text(f->found), bind_text(f->remedy));
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *checkpoint_doctor(PyObject *self, BIND_ARGS)
{
    bind_progress progress = {0};
    embla_doctor *doctor = NULL;
    embla_doctor_info info = {0};
    embla_status status;
    PyObject *result = NULL;
    embla_doctor_options options = {.progress = bind_progress_step, .context = &progress};
    const bind_argument arguments[] = {{.name = "threads", .kind = 'i', .to = &options.threads},
                                       {.name = "progress", .kind = 'O', .to = &progress.function}};
    if (!bind_arguments("_doctor", values, count, names, 0, arguments, BIND_COUNT(arguments)) ||
        !bind_enter(self, false))
        return NULL;
    BIND_RUN(true, status = embla_doctor_new(handle_of(self), &options, &doctor));
    bind_leave(self, false);
    if (status == EMBLA_OK) status = embla_doctor_describe(doctor, &info);
    if (status == EMBLA_OK)
        result = Py_BuildValue("LLN", (long long)info.errors, (long long)info.warnings,
                               findings_list(doctor));
    else
        bind_fail(status);
    embla_doctor_free(doctor);
    return result;
}

/* ---- convert ---- */

static PyObject *line_dict(const embla_account_line *l)
{
    PyObject *dict = PyDict_New();
    bool good = dict && bind_put(dict, "name", bind_text(l->name)) &&
                bind_put(dict, "new_name", bind_text(l->new_name)) &&
                bind_put(dict, "type", bind_text(l->type)) &&
                bind_put(dict, "new_type", bind_text(l->new_type)) &&
                bind_put(dict, "why", bind_text(l->why)) &&
                bind_put(dict, "table", PyBool_FromLong(l->table)) &&
                bind_put(dict, "rows", PyLong_FromLongLong(l->rows)) &&
                bind_put(dict, "new_rows", PyLong_FromLongLong(l->new_rows)) &&
                bind_put(dict, "same", PyLong_FromLongLong(l->rows_same)) &&
                bind_put(dict, "rounded", PyLong_FromLongLong(l->rows_rounded)) &&
                bind_put(dict, "nonfinite", PyLong_FromLongLong(l->rows_nonfinite)) &&
                bind_put(dict, "overflowed", PyLong_FromLongLong(l->rows_overflowed)) &&
                bind_put(dict, "vanished", PyLong_FromLongLong(l->rows_vanished)) &&
                bind_put(dict, "difference", PyFloat_FromDouble(l->difference)) &&
                bind_put(dict, "bytes", PyLong_FromLongLong(l->bytes)) &&
                bind_put(dict, "checksum", bind_text(l->checksum));
    if (!good) Py_CLEAR(dict);
    return dict;
}

static PyObject *account_dict(const embla_account *account)
{
    size_t count = 0, notes = 0;
    const embla_account_line *lines = embla_account_lines(account, &count);
    const char *const *texts = embla_account_notes(account, &notes);
    PyObject *dict = PyDict_New(), *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *line = line_dict(&lines[i]);
        if (!line || PyList_Append(list, line) < 0) Py_CLEAR(list);
        Py_XDECREF(line);
    }
    embla_account_info info = {0};
    bool good = dict && embla_account_describe(account, &info) == EMBLA_OK &&
                bind_put(dict, "lines", list) && bind_put(dict, "notes", text_list(texts, notes)) &&
                bind_put(dict, "format", bind_text(info.format)) &&
                bind_put(dict, "bytes", PyLong_FromLongLong(info.bytes));
    if (!good) Py_CLEAR(dict);
    return dict;
}

static PyObject *checkpoint_convert(PyObject *self, BIND_ARGS)
{
    bind_path path = {0};
    const char *dtype = NULL;
    bind_progress progress = {0};
    embla_account *account = NULL;
    embla_status status;
    embla_convert_options options = {.progress = bind_progress_step, .context = &progress};
    const bind_argument arguments[] = {
        {.name = "path", .kind = 'p', .to = &path, .required = true},
        {.name = "format", .kind = 's', .to = &options.to},
        {.name = "dtype", .kind = 's', .to = &dtype},
        {.name = "rows", .kind = 'l', .to = &options.rows},
        {.name = "tables_only", .kind = 'b', .to = &options.tables_only},
        {.name = "overwrite", .kind = 'b', .to = &options.overwrite},
        {.name = "progress", .kind = 'O', .to = &progress.function}};
    if (!bind_arguments("convert", values, count, names, 1, arguments, BIND_COUNT(arguments)))
        return NULL;
    if (!path.text) return PyErr_Format(PyExc_TypeError, "path must not be None");
    PyObject *result = NULL;
    if (bind_dtype(dtype, &options.dtype) && bind_enter(self, false)) {
        BIND_RUN(true, status = embla_convert(handle_of(self), path.text, &options, &account));
        bind_leave(self, false);
        result = status == EMBLA_OK ? account_dict(account) : bind_fail(status);
        embla_account_free(account);
    }
    bind_path_free(&path);
    return result;
}

static PyMethodDef methods[] = {
    {"over", (PyCFunction)(void (*)(void))checkpoint_over,
     METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     "over(table, vocab=None)\n--\n\nA checkpoint of a table in memory, to convert it."},
    {"tensors", checkpoint_tensors, METH_NOARGS,
     "tensors()\n--\n\nName, type, dtype, role, shape and place of every tensor."},
    BIND_METHOD("read", checkpoint_read,
                "read(name, offset=0, bytes=-1)\n--\n\nStored bytes of a tensor."),
    {"facts", checkpoint_facts, METH_NOARGS,
     "facts()\n--\n\nHow the model uses its tables: architecture, tokens, mapping, scale, .."},
    BIND_METHOD("tie", checkpoint_tie,
                "tie(sample=0)\n--\n\nWhether the head uses the token table, and what decided."),
    BIND_METHOD("value", checkpoint_value,
                "value(key)\n--\n\nAn entry of the metadata or of config.json, or None."),
    BIND_METHOD("_doctor", checkpoint_doctor,
                "_doctor(*, threads=0, progress=None)\n--\n\n"
                "Errors, warnings, and (level, check, found, remedy) of each finding."),
    BIND_METHOD("convert", checkpoint_convert,
                "convert(path, *, format=None, dtype=None, rows=0, tables_only=False,\n"
                "        overwrite=False, progress=None)\n--\n\n"
                "Writes the checkpoint in another format or dtype; the result is the account."),
    {NULL, NULL, 0, NULL}};
static PyGetSetDef getters[] = {
    {"format", checkpoint_format, NULL, "'safetensors', 'gguf', 'npy', 'word2vec', ..", NULL},
    {"files", checkpoint_files, NULL, "Name and bytes of each file.", NULL},
    {"notes", checkpoint_notes, NULL, "Sentences about what is unusual but was accepted.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot slots[] = {
    {Py_tp_doc, "Checkpoint(path, *, lenient=False, copy=False, npy_dtype=None)\n--\n\n"
                "A file or a model's folder, and the tensors in it."},
    {Py_tp_new, checkpoint_new},
    {Py_tp_dealloc, checkpoint_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL}};
static PyType_Spec spec = {.name = "embla._embla.Checkpoint",
                           .basicsize = sizeof(checkpoint),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .slots = slots};

int bind_checkpoint_add(PyObject *module)
{
    bind_checkpoint_type = bind_type_add(module, &spec);
    return bind_checkpoint_type ? 0 : -1;
}
