/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of a caller: buffers and DLPack tensors, with their shape and strides.
 *
 * Every buffer comes in by bind_buffer_read. It fills in what exporters leave out, so that no other
 * file must know which of the pointers of a Py_buffer may be NULL.
 */
#include "bind.h"
#include "dlpack.h"

/* ---- buffers ---- */

/* Strides of a buffer that came without: items follow each other in the order of C. */
static void fill_strides(bind_buffer *out)
{
    Py_ssize_t stride = out->view.itemsize;
    for (int i = out->view.ndim - 1; i >= 0; i--) {
        out->own[i] = stride;
        stride *= out->view.shape[i];
    }
    out->strides = out->own;
}

bool bind_buffer_read(PyObject *object, bool writable, const char *what, bind_buffer *out)
{
    Py_buffer *view = &out->view;
    int flags = PyBUF_FORMAT | (writable ? PyBUF_STRIDED : PyBUF_STRIDED_RO);
    if (PyObject_GetBuffer(object, view, flags) < 0) return false;
    out->strides = view->strides;
    bool good = view->ndim >= 0 && view->ndim <= BIND_RANK;
    if (!good) {
        bind_error(EMBLA_ERR_SHAPE, "%s has %d axes; an array has at most %d", what, view->ndim,
                   BIND_RANK);
    } else if (view->ndim > 0 && (!view->shape || view->suboffsets)) {
        PyErr_Format(PyExc_BufferError, "%s is a buffer without a shape, or one of pointers", what);
        good = false;
    } else if (!out->strides && view->ndim > 0) {
        fill_strides(out);
    }
    if (!good) PyBuffer_Release(view);
    return good;
}

void bind_buffer_free(bind_buffer *buffer)
{
    PyBuffer_Release(&buffer->view);
}

char bind_buffer_format(const bind_buffer *buffer)
{
    const Py_buffer *view = &buffer->view;
    const char *format = view->format ? view->format : "B";
    if (*format == '@' || *format == '=' || *format == '<') format++;
    if ((*format == '>' || *format == '!') && view->itemsize == 1) format++;
    return format[0] && !format[1] ? format[0] : '\0';
}

bool bind_buffer_plain(const bind_buffer *buffer)
{
    const Py_buffer *view = &buffer->view;
    return PyBuffer_IsContiguous(view, 'C') && view->itemsize > 0 &&
           (uintptr_t)view->buf % (uintptr_t)view->itemsize == 0;
}

/* ---- DLPack ---- */

void bind_dlpack_free(bind_dlpack *tensor)
{
    PyObject *capsule = tensor->capsule;
    if (!capsule) return;
    tensor->capsule = NULL;
    /* The capsule keeps its name, so its own destructor calls the deleter. */
    Py_DECREF(capsule);
}

static char dlpack_format(const dl_dtype *type)
{
    static const char signed_formats[] = {[1] = 'b', [2] = 'h', [4] = 'i', [8] = 'q'};
    static const char unsigned_formats[] = {[1] = 'B', [2] = 'H', [4] = 'I', [8] = 'Q'};
    size_t bytes = type->bits / 8;
    if (type->lanes != 1 || bytes > 8 || type->bits % 8 != 0) return '\0';
    if (type->code == DL_INT) return signed_formats[bytes];
    if (type->code == DL_UINT) return unsigned_formats[bytes];
    if (type->code == DL_BFLOAT) return bytes == 2 ? 'G' : '\0';
    if (type->code != DL_FLOAT) return '\0';
    return bytes == 2 ? 'e' : bytes == 4 ? 'f' : bytes == 8 ? 'd' : '\0';
}

static bool read_tensor(const dl_tensor *t, bind_dlpack *out)
{
    out->format = dlpack_format(&t->dtype);
    out->size = t->dtype.bits / 8;
    if (t->device.type != DL_CPU || !out->format || t->rank < 0 || t->rank > BIND_RANK) {
        PyErr_Format(PyExc_TypeError,
                     "a tensor must be on the CPU and have integers or floats, and at most %d axes",
                     BIND_RANK);
        return false;
    }
    out->rank = t->rank;
    out->data = (char *)t->data + t->byte_offset;
    Py_ssize_t stride = out->size;
    for (int i = t->rank - 1; i >= 0; i--) {
        out->shape[i] = (Py_ssize_t)t->shape[i];
        out->strides[i] = t->strides ? (Py_ssize_t)t->strides[i] * out->size : stride;
        stride *= out->shape[i];
    }
    return true;
}

/* A producer that cannot export its tensor: before DLPack 1.0 some raised a RuntimeError. */
static void refuse_as_buffer(void)
{
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    if (!PyErr_ExceptionMatches(PyExc_RuntimeError)) return;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_Format(PyExc_BufferError, "%S", value ? value : type);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

bool bind_dlpack_read(PyObject *object, bind_dlpack *out)
{
    out->capsule = NULL;
    out->read_only = false;
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    if (!method) {
        PyErr_Clear();
        return false;
    }
    PyObject *none = PyTuple_New(0);
    PyObject *named = Py_BuildValue("{s:(ii)}", "max_version", 1, 0);
    PyObject *capsule = none && named ? PyObject_Call(method, none, named) : NULL;
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) { /* before DLPack 1.0 */
        PyErr_Clear();
        capsule = PyObject_CallNoArgs(method);
    }
    Py_DECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(named);
    if (!capsule) {
        refuse_as_buffer();
        return false;
    }
    out->capsule = capsule;
    const dl_tensor *tensor = NULL;
    if (PyCapsule_IsValid(capsule, "dltensor"))
        tensor = &((dl_managed *)PyCapsule_GetPointer(capsule, "dltensor"))->tensor;
    else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dl_managed_versioned *v = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        tensor = v->major == 1 ? &v->tensor : NULL;
        out->read_only = tensor && (v->flags & DL_READ_ONLY);
    }
    if (!tensor) PyErr_SetString(PyExc_TypeError, "__dlpack__ gave no tensor of a known version");
    if (tensor && read_tensor(tensor, out)) return true;
    bind_dlpack_free(out);
    return false;
}
