/* SPDX-License-Identifier: Apache-2.0 */
/* Array: numbers of a result, or a view of a handle's memory. It has the buffer protocol and
 * DLPack, so numpy.asarray, memoryview and torch.from_dlpack take it without a copy.
 *
 * An array owns its memory, or it is a view: then it is a user of the object that owns the memory
 * (bind_enter), which therefore cannot be closed.
 */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "dlpack.h"
#include "system/system_memory.h"

typedef struct {
    bind_object base; /* handle: own memory; NULL for a view */
    PyObject *owner;  /* of a view */
    void *data;
    int dtype, rank;
    bool writable;
    const char *format; /* of struct */
    Py_ssize_t item, bytes;
    Py_ssize_t shape[BIND_RANK], strides[BIND_RANK];
} array;

PyTypeObject *bind_array_type;

typedef struct {
    const char *name, *format;
    Py_ssize_t item;
    int dtype;
    uint8_t code; /* of DLPack */
} number_type;

/* No format of struct means bf16: a buffer of it has its bits ('H'), a DLPack tensor its type. */
static const number_type types[] = {
    {"float32", "f", 4, EMBLA_F32, DL_FLOAT}, {"float64", "d", 8, EMBLA_F64, DL_FLOAT},
    {"float16", "e", 2, EMBLA_F16, DL_FLOAT}, {"bfloat16", "H", 2, EMBLA_BF16, DL_BFLOAT},
    {"int8", "b", 1, EMBLA_I8, DL_INT},       {"int32", "i", 4, BIND_I32, DL_INT},
    {"int64", "q", 8, BIND_I64, DL_INT},      {"uint8", "B", 1, BIND_U8, DL_UINT},
};

static const number_type *type_of(int dtype)
{
    for (size_t i = 0; i < BIND_COUNT(types); i++)
        if (types[i].dtype == dtype) return &types[i];
    return &types[BIND_COUNT(types) - 1];
}

/* ---- memory ---- */

enum { LINE = 64, HUGE_PAGE = 1 << 21 };

/* A large result is on huge pages, as NumPy's are: fewer page faults. */
static void *allocate(size_t bytes)
{
    size_t unit = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : LINE;
    void *memory = embla_system_take_block(unit, (bytes + unit) / unit * unit);
    if (memory && unit == HUGE_PAGE) embla_system_huge_pages(memory, bytes);
    return memory;
}

static array *new_array(int dtype, int rank, const Py_ssize_t *shape)
{
    const number_type *type = type_of(dtype);
    if (rank > BIND_RANK) {
        bind_error(EMBLA_ERR_SHAPE, "the result needs %d axes; an array has at most %d", rank,
                   BIND_RANK);
        return NULL;
    }
    array *a = bind_new(bind_array_type);
    if (!a) return NULL;
    a->dtype = dtype;
    a->rank = rank;
    a->format = type->format;
    a->item = a->bytes = type->item;
    for (int i = rank - 1; i >= 0; i--) {
        a->shape[i] = shape[i];
        a->strides[i] = a->bytes;
        if (__builtin_mul_overflow(a->bytes, shape[i], &a->bytes)) {
            Py_DECREF(a);
            bind_error(EMBLA_ERR_MEMORY, "the result has more than 2**63 bytes");
            return NULL;
        }
    }
    return a;
}

PyObject *bind_array_new(int dtype, int rank, const Py_ssize_t *shape, void **data)
{
    array *a = new_array(dtype, rank, shape);
    if (!a) return NULL;
    a->base.handle = a->bytes <= PTRDIFF_MAX - 2 * HUGE_PAGE ? allocate((size_t)a->bytes) : NULL;
    if (!a->base.handle) {
        bind_error(EMBLA_ERR_MEMORY, "no memory for a result of %zd bytes", a->bytes);
        Py_DECREF(a);
        return NULL;
    }
    a->data = *data = a->base.handle;
    a->writable = true;
    return (PyObject *)a;
}

PyObject *bind_array_view(void *owner, int dtype, int rank, const Py_ssize_t *shape,
                          const Py_ssize_t *strides, void *data, bool writable)
{
    array *a = new_array(dtype, rank, shape);
    if (!a) return NULL;
    if (!bind_enter(owner, false)) {
        Py_DECREF(a);
        return NULL;
    }
    a->owner = Py_NewRef((PyObject *)owner);
    a->data = data;
    a->writable = writable;
    for (int i = 0; strides && i < rank; i++) a->strides[i] = strides[i];
    return (PyObject *)a;
}

PyObject *bind_array_copy(int dtype, size_t count, const void *values)
{
    void *data = NULL;
    const Py_ssize_t shape[1] = {(Py_ssize_t)count};
    PyObject *a = bind_array_new(dtype, 1, shape, &data);
    if (!a) return NULL;
    if (count > 0) memcpy(data, values, count * (size_t)type_of(dtype)->item);
    return bind_array_result(a);
}

static void array_dealloc(PyObject *self)
{
    array *a = (array *)self;
    embla_system_give_block(a->base.handle);
    if (a->owner) bind_leave(a->owner, false);
    Py_CLEAR(a->owner);
    bind_dealloc(self);
}

/* ---- NumPy ---- */

/* numpy.asarray, or Py_None if NumPy is not installed; borrowed. NULL after an exception. */
static PyObject *numpy_asarray(void)
{
    static PyObject *asarray;
    if (!asarray) {
        PyObject *numpy = PyImport_ImportModule("numpy");
        PyObject *found = numpy ? PyObject_GetAttrString(numpy, "asarray") : NULL;
        Py_XDECREF(numpy);
        if (!found && !PyErr_ExceptionMatches(PyExc_ImportError)) return NULL;
        PyErr_Clear();
        asarray = found ? found : Py_NewRef(Py_None);
    }
    return asarray;
}

PyObject *bind_array_result(PyObject *a)
{
    PyObject *asarray = a ? numpy_asarray() : NULL;
    if (asarray == Py_None) return a;
    PyObject *result = asarray ? PyObject_CallFunctionObjArgs(asarray, a, NULL) : NULL;
    int rank = a ? ((array *)a)->rank : 0;
    if (asarray && !result && rank > 32 && PyErr_ExceptionMatches(PyExc_RuntimeError)) {
        PyErr_Clear();
        bind_error(EMBLA_ERR_SHAPE, "the result has %d axes, and NumPy before 2.0 allows 32", rank);
    }
    Py_XDECREF(a);
    return result;
}

PyObject *bind_array_done(embla_status status, PyObject *made)
{
    if (status == EMBLA_OK) return bind_array_result(made);
    Py_DECREF(made);
    return bind_fail(status);
}

/* ---- buffer ---- */

static bool contiguous(const array *a)
{
    Py_ssize_t expected = a->item;
    for (int i = a->rank - 1; i >= 0; i--) {
        if (a->shape[i] > 1 && a->strides[i] != expected) return false;
        expected *= a->shape[i];
    }
    return true;
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    array *a = (array *)self;
    view->obj = NULL;
    if ((flags & PyBUF_WRITABLE) && !a->writable) {
        PyErr_SetString(PyExc_BufferError, "this array is read-only");
        return -1;
    }
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !contiguous(a)) {
        PyErr_SetString(PyExc_BufferError, "this array has gaps between its rows");
        return -1;
    }
    *view = (Py_buffer){.buf = a->data,
                        .obj = Py_NewRef(self),
                        .len = a->bytes,
                        .itemsize = a->item,
                        .readonly = !a->writable,
                        .ndim = a->rank,
                        .format = (flags & PyBUF_FORMAT) ? (char *)(uintptr_t)a->format : NULL,
                        .shape = (flags & PyBUF_ND) ? a->shape : NULL,
                        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? a->strides : NULL};
    return 0;
}

/* ---- DLPack ---- */

typedef struct {
    union {
        dl_managed old;
        dl_managed_versioned versioned;
    } tensor;
    PyObject *owner;
    int64_t shape[BIND_RANK], strides[BIND_RANK];
} exported;

static void delete_exported(exported *e)
{
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(e->owner);
    PyGILState_Release(state);
    free(e);
}

static void delete_old(dl_managed *tensor)
{
    delete_exported(tensor->context);
}

static void delete_versioned(dl_managed_versioned *tensor)
{
    delete_exported(tensor->context);
}

/* Nobody took the tensor out of the capsule: a consumer renames it. */
static void capsule_end(PyObject *capsule)
{
    dl_managed *old = NULL;
    dl_managed_versioned *versioned = NULL;
    if (PyCapsule_IsValid(capsule, "dltensor"))
        old = PyCapsule_GetPointer(capsule, "dltensor");
    else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (old) old->deleter(old);
    if (versioned) versioned->deleter(versioned);
}

static void fill_tensor(const array *a, exported *e, dl_tensor *out)
{
    const number_type *type = type_of(a->dtype);
    for (int i = 0; i < a->rank; i++) {
        e->shape[i] = a->shape[i];
        e->strides[i] = a->strides[i] / a->item;
    }
    *out = (dl_tensor){.data = a->data,
                       .device = {.type = DL_CPU},
                       .rank = a->rank,
                       .dtype = {.code = type->code, .bits = (uint8_t)(8 * a->item), .lanes = 1},
                       .shape = e->shape,
                       .strides = e->strides};
}

/* True if the consumer knows DLPack 1.0, which can say that an array is read-only. */
static bool versioned_wanted(PyObject *version)
{
    if (!version || !PyTuple_Check(version) || PyTuple_Size(version) != 2) return false;
    long major = PyLong_AsLong(PyTuple_GetItem(version, 0));
    if (PyErr_Occurred()) PyErr_Clear();
    return major >= 1;
}

static PyObject *array_dlpack(PyObject *self, BIND_ARGS)
{
    array *a = (array *)self;
    PyObject *stream = NULL, *version = NULL, *device = NULL, *copy = NULL;
    const bind_argument arguments[] = {{.name = "stream", .kind = 'O', .to = &stream},
                                       {.name = "max_version", .kind = 'O', .to = &version},
                                       {.name = "dl_device", .kind = 'O', .to = &device},
                                       {.name = "copy", .kind = 'O', .to = &copy}};
    if (!bind_arguments("__dlpack__", values, count, names, 0, arguments, BIND_COUNT(arguments)))
        return NULL;
    if (copy == Py_True || (stream && stream != Py_None)) {
        PyErr_SetString(PyExc_BufferError, "an array of embla is on the CPU and is not copied");
        return NULL;
    }
    bool versioned = versioned_wanted(version);
    if (!versioned && !a->writable) {
        PyErr_SetString(PyExc_BufferError, "this array is read-only, which DLPack before version "
                                           "1.0 cannot say; use numpy.asarray, or copy it");
        return NULL;
    }
    exported *e = calloc(1, sizeof *e);
    if (!e) return PyErr_NoMemory();
    e->owner = Py_NewRef(self);
    PyObject *capsule;
    if (versioned) {
        dl_managed_versioned *t = &e->tensor.versioned;
        *t = (dl_managed_versioned){.major = 1,
                                    .context = e,
                                    .deleter = delete_versioned,
                                    .flags = a->writable ? 0 : DL_READ_ONLY};
        fill_tensor(a, e, &t->tensor);
        capsule = PyCapsule_New(t, "dltensor_versioned", capsule_end);
    } else {
        dl_managed *t = &e->tensor.old;
        *t = (dl_managed){.context = e, .deleter = delete_old};
        fill_tensor(a, e, &t->tensor);
        capsule = PyCapsule_New(t, "dltensor", capsule_end);
    }
    if (!capsule) delete_exported(e);
    return capsule;
}

static PyObject *array_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("ii", DL_CPU, 0);
}

/* ---- what it says of itself ---- */

static PyObject *array_shape(PyObject *self, void *unused)
{
    const array *a = (array *)self;
    (void)unused;
    PyObject *shape = PyTuple_New(a->rank);
    for (int i = 0; shape && i < a->rank; i++) {
        PyObject *size = PyLong_FromSsize_t(a->shape[i]);
        if (!size || PyTuple_SetItem(shape, i, size) < 0) Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *array_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(type_of(((array *)self)->dtype)->name);
}

static Py_ssize_t array_length(PyObject *self)
{
    const array *a = (array *)self;
    if (a->rank > 0) return a->shape[0];
    PyErr_SetString(PyExc_TypeError, "an array of rank 0 has no length");
    return -1;
}

static PyObject *array_repr(PyObject *self)
{
    PyObject *asarray = numpy_asarray();
    if (!asarray) return NULL;
    return bind_hint("array", "(OO)", self, asarray == Py_None ? Py_False : Py_True);
}

/* ---- numbers, one by one ---- */

static PyObject *number_at(const array *a, const char *at)
{
    double wide = 0;
    float real = 0;
    int64_t integer = 0;
    int32_t narrow = 0;
    switch (a->dtype) {
    case EMBLA_F64:
        memcpy(&wide, at, sizeof wide);
        return PyFloat_FromDouble(wide);
    case EMBLA_I8:
        return PyLong_FromLong(*(const signed char *)at);
    case BIND_U8:
        return PyLong_FromLong(*(const unsigned char *)at);
    case BIND_I32:
        memcpy(&narrow, at, sizeof narrow);
        return PyLong_FromLong(narrow);
    case BIND_I64:
        memcpy(&integer, at, sizeof integer);
        return PyLong_FromLongLong(integer);
    default: { /* f32, f16 and bf16 */
        embla_status status = embla_dtype_decode((embla_dtype)a->dtype, at, 1, 0, &real);
        return status == EMBLA_OK ? PyFloat_FromDouble((double)real) : bind_fail(status);
    }
    }
}

/* The part of this array that an integer or a slice of one axis selects: a view, or a number. An
 * integer removes the axis. */
static PyObject *select_part(array *a, int axis, PyObject *key)
{
    Py_ssize_t shape[BIND_RANK], strides[BIND_RANK], begin = 0, end = 0, step = 1;
    int rank = a->rank;
    if (axis >= rank)
        return PyErr_Format(PyExc_IndexError, "this array has %d axes; there are more indices",
                            rank);
    memcpy(shape, a->shape, sizeof shape);
    memcpy(strides, a->strides, sizeof strides);
    if (PySlice_Check(key)) {
        if (PySlice_Unpack(key, &begin, &end, &step) < 0) return NULL;
        shape[axis] = PySlice_AdjustIndices(a->shape[axis], &begin, &end, step);
        if (shape[axis] == 0) begin = 0;
        if (shape[axis] > 1) strides[axis] *= step; /* a huge step leaves one item at most */
    } else if (PyIndex_Check(key)) {
        Py_ssize_t size = a->shape[axis], index = PyNumber_AsSsize_t(key, PyExc_IndexError);
        if (index == -1 && PyErr_Occurred()) return NULL;
        begin = index < 0 ? index + size : index;
        if (begin < 0 || begin >= size)
            return PyErr_Format(PyExc_IndexError,
                                "index %zd is out of range: axis %d has the "
                                "size %zd",
                                index, axis, size);
        rank--;
        for (int i = axis; i < rank; i++) {
            shape[i] = a->shape[i + 1];
            strides[i] = a->strides[i + 1];
        }
    } else {
        return PyErr_Format(PyExc_TypeError,
                            "an index must be an integer or a slice, not %R; "
                            "numpy.asarray(array) takes every other index",
                            Py_TYPE(key));
    }
    char *data = (char *)a->data + begin * a->strides[axis];
    if (rank == 0) return number_at(a, data);
    void *owner = a->owner ? (void *)a->owner : (void *)a;
    return bind_array_view(owner, a->dtype, rank, shape, strides, data, a->writable);
}

static PyObject *array_item(PyObject *self, Py_ssize_t index)
{
    PyObject *key = PyLong_FromSsize_t(index);
    PyObject *item = key ? select_part((array *)self, 0, key) : NULL;
    Py_XDECREF(key);
    return item;
}

/* a[i], a[i:j], a[i, j:k] */
static PyObject *array_subscript(PyObject *self, PyObject *key)
{
    if (!PyTuple_Check(key)) return select_part((array *)self, 0, key);
    PyObject *part = Py_NewRef(self);
    int axis = 0;
    for (Py_ssize_t i = 0; part && i < PyTuple_Size(key); i++) {
        PyObject *one = PyTuple_GetItem(key, i), *next = NULL;
        if (Py_TYPE(part) == bind_array_type)
            next = select_part((array *)part, axis, one);
        else
            PyErr_Format(PyExc_IndexError, "this array has %d axes, but there are %zd indices",
                         ((array *)self)->rank, PyTuple_Size(key));
        if (PySlice_Check(one)) axis++;
        Py_DECREF(part);
        part = next;
    }
    return part;
}

static PyObject *array_tolist(PyObject *self, PyObject *unused)
{
    const array *a = (array *)self;
    (void)unused;
    if (a->rank == 0) return number_at(a, a->data);
    PyObject *list = PyList_New(a->shape[0]);
    for (Py_ssize_t i = 0; list && i < a->shape[0]; i++) {
        PyObject *item = array_item(self, i);
        if (item && a->rank > 1) {
            PyObject *inner = array_tolist(item, NULL);
            Py_DECREF(item);
            item = inner;
        }
        if (!item) Py_CLEAR(list);
        if (item) (void)PyList_SetItem(list, i, item);
    }
    return list;
}

/* Without NumPy there is no arithmetic, and the message says what helps. With it the other operand
 * may be an ndarray, which computes with buffers. */
static PyObject *no_arithmetic(PyObject *a, PyObject *b)
{
    (void)a, (void)b;
    PyObject *asarray = numpy_asarray();
    if (asarray == Py_None)
        PyErr_SetString(PyExc_TypeError, "an embla.Array has no arithmetic; install NumPy "
                                         "(pip install numpy), and results are NumPy's arrays");
    if (!asarray || asarray == Py_None) return NULL;
    return Py_NewRef(Py_NotImplemented);
}

static PyMethodDef methods[] = {
    BIND_METHOD("__dlpack__", array_dlpack, "A DLPack capsule of these numbers, without a copy."),
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS, "The CPU: (1, 0)."},
    {"tolist", array_tolist, METH_NOARGS, "The numbers as nested lists."},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef getters[] = {
    {"shape", array_shape, NULL, "The size of each axis.", NULL},
    {"dtype", array_dtype, NULL, "The name of the type: 'float32', 'int64', ..", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot slots[] = {
    {Py_tp_doc, "Numbers of a result or of a table, as a buffer and by DLPack."},
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_repr, array_repr},
    {Py_sq_length, array_length},
    {Py_sq_item, array_item},
    {Py_mp_length, array_length},
    {Py_mp_subscript, array_subscript},
    {Py_nb_add, no_arithmetic},
    {Py_nb_subtract, no_arithmetic},
    {Py_nb_multiply, no_arithmetic},
    {Py_nb_true_divide, no_arithmetic},
    {Py_nb_matrix_multiply, no_arithmetic},
    {Py_bf_getbuffer, get_buffer},
    {0, NULL}};
static PyType_Spec spec = {.name = "embla._embla.Array",
                           .basicsize = sizeof(array),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = slots};

int bind_array_add(PyObject *module)
{
    bind_array_type = bind_type_add(module, &spec);
    return bind_array_type ? 0 : -1;
}
