/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and texts of a caller: a number, nested lists, a buffer of any strides, or a DLPack
 * tensor.
 *
 * Integers are always copied to int64 (bind.h says why). Floats are used in place if they are f32
 * without gaps.
 */
#include <stdio.h>
#include <string.h>

#include "bind.h"

/* ---- strided numbers ---- */

/* A buffer, or a DLPack tensor, as its items. */
typedef struct {
    const char *data;
    int rank;
    const Py_ssize_t *shape, *strides;
    char format;
    Py_ssize_t item;
} items;

static items items_of(const bind_buffer *buffer)
{
    const Py_buffer *view = &buffer->view;
    return (items){.data = view->buf,
                   .rank = view->ndim,
                   .shape = view->shape,
                   .strides = buffer->strides,
                   .format = bind_buffer_format(buffer),
                   .item = view->itemsize};
}

static bool integer_format(char format, Py_ssize_t item, char *kind)
{
    *kind = strchr("bhilqn", format) && format ? 'i' : strchr("BHILQN", format) ? 'u' : '\0';
    return format && *kind && (item == 1 || item == 2 || item == 4 || item == 8);
}

static int64_t load_integer(const char *at, Py_ssize_t item, char kind)
{
    union {
        int8_t i1;
        uint8_t u1;
        int16_t i2;
        uint16_t u2;
        int32_t i4;
        uint32_t u4;
        int64_t i8;
    } n = {0};
    memcpy(&n, at, (size_t)item);
    switch (item) {
    case 1:
        return kind == 'i' ? n.i1 : n.u1;
    case 2:
        return kind == 'i' ? n.i2 : n.u2;
    case 4:
        return kind == 'i' ? (int64_t)n.i4 : (int64_t)n.u4;
    default:
        /* an unsigned number of 2^63 and more is out of range, as INT64_MAX is */
        return kind == 'u' && n.i8 < 0 ? INT64_MAX : n.i8;
    }
}

/* A half as a float: embla_dtype_decode knows all of them. */
static float load_float(const char *at, char format)
{
    float single = 0;
    double both = 0;
    if (format == 'f') {
        memcpy(&single, at, sizeof single);
    } else if (format == 'd') {
        memcpy(&both, at, sizeof both);
        single = (float)both;
    } else {
        embla_status status =
            embla_dtype_decode(format == 'e' ? EMBLA_F16 : EMBLA_BF16, at, 1, 0, &single);
        (void)status; /* one number of a known dtype */
    }
    return single;
}

/* True if the items follow each other without gaps, in the order of C. */
static bool without_gaps(const items *in)
{
    Py_ssize_t expected = in->item;
    for (int i = in->rank - 1; i >= 0; i--) {
        if (in->shape[i] > 1 && in->strides[i] != expected) return false;
        expected *= in->shape[i];
    }
    return true;
}

/* The two kinds of ids that are usual, without gaps. False for any other. */
static bool copy_usual(const items *in, size_t count, int64_t *out)
{
    char kind = 0;
    if (!integer_format(in->format, in->item, &kind) || kind != 'i' || !without_gaps(in))
        return false;
    if (in->item == 8) {
        memcpy(out, in->data, count * sizeof *out);
        return true;
    }
    for (size_t i = 0; in->item == 4 && i < count; i++) {
        int32_t id;
        memcpy(&id, in->data + i * sizeof id, sizeof id);
        out[i] = id;
    }
    return in->item == 4;
}

/* Copies items in the order of C: to integers, or to floats. */
static void copy_items(const items *in, int64_t *integers, float *floats)
{
    Py_ssize_t at[BIND_RANK] = {0};
    char kind = 0;
    (void)integer_format(in->format, in->item, &kind);
    for (int i = 0; i < in->rank; i++)
        if (in->shape[i] == 0) return;
    for (const char *from = in->data;;) {
        if (integers)
            *integers++ = load_integer(from, in->item, kind);
        else
            *floats++ = load_float(from, in->format);
        int axis = in->rank - 1;
        for (; axis >= 0; axis--) {
            from += in->strides[axis];
            if (++at[axis] < in->shape[axis]) break;
            from -= in->strides[axis] * in->shape[axis];
            at[axis] = 0;
        }
        if (axis < 0) return;
    }
}

static bool count_items(int rank, const Py_ssize_t *shape, size_t *out)
{
    size_t product = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++) empty = empty || shape[i] == 0;
    for (int i = 0; i < rank && !empty; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(product, (size_t)shape[i], &product)) {
            bind_error(EMBLA_ERR_SHAPE, "the shape of the array is too large");
            return false;
        }
    *out = empty ? 0 : product;
    return true;
}

/* ---- integers ---- */

static bool ids_room(bind_ids *out)
{
    out->values = out->few;
    if (out->count <= BIND_COUNT(out->few)) return true;
    out->values = out->count <= PTRDIFF_MAX / sizeof *out->values
                      ? PyMem_Malloc(out->count * sizeof *out->values)
                      : NULL;
    if (!out->values) PyErr_NoMemory();
    return out->values != NULL;
}

static bool ids_of_items(const items *in, const char *what, bind_ids *out)
{
    char kind = 0;
    if (!integer_format(in->format, in->item, &kind)) {
        PyErr_Format(PyExc_TypeError, "%s must be integers; this array has the format '%c'", what,
                     in->format ? in->format : '?');
        return false;
    }
    out->rank = in->rank;
    for (int i = 0; i < in->rank; i++) out->shape[i] = in->shape[i]; /* NULL for rank 0 */
    if (!count_items(in->rank, in->shape, &out->count) || !ids_room(out)) return false;
    if (out->count > 0 && !copy_usual(in, out->count, out->values))
        copy_items(in, out->values, NULL);
    return true;
}

static bool ids_of_buffer(PyObject *object, const char *what, bind_ids *out)
{
    bind_buffer buffer;
    if (!bind_buffer_read(object, false, what, &buffer)) return false;
    const items in = items_of(&buffer);
    bool good = ids_of_items(&in, what, out);
    bind_buffer_free(&buffer);
    return good;
}

static bool one_id(PyObject *object, int64_t *out)
{
    PyObject *index = PyNumber_Index(object);
    if (!index) return false;
    int overflow = 0;
    *out = PyLong_AsLongLongAndOverflow(index, &overflow);
    if (overflow) *out = overflow > 0 ? INT64_MAX : INT64_MIN; /* out of range of any table */
    Py_DECREF(index);
    return !PyErr_Occurred();
}

/* The shape of nested lists, from their first items. */
static bool list_shape(PyObject *list, int *rank, Py_ssize_t *shape)
{
    PyObject *at = Py_NewRef(list);
    for (*rank = 0; PyList_Check(at) || PyTuple_Check(at);) {
        if (*rank == 8) {
            Py_DECREF(at);
            bind_error(EMBLA_ERR_SHAPE, "a list is nested more than 8 deep");
            return false;
        }
        Py_ssize_t size = PySequence_Size(at);
        shape[(*rank)++] = size;
        if (size <= 0) break;
        PyObject *first = PySequence_GetItem(at, 0);
        Py_DECREF(at);
        if (!first) return false;
        at = first;
    }
    Py_DECREF(at);
    return true;
}

/* Writes the numbers of nested lists. All lists of a level must have the same length. */
static bool read_list(PyObject *list, int level, int rank, const Py_ssize_t *shape, size_t *at,
                      int64_t *integers, float *floats)
{
    if (level == rank) {
        if (integers) return one_id(list, &integers[(*at)++]);
        floats[(*at)++] = (float)PyFloat_AsDouble(list);
        return !PyErr_Occurred();
    }
    if (!(PyList_Check(list) || PyTuple_Check(list)) || PySequence_Size(list) != shape[level]) {
        bind_error(EMBLA_ERR_SHAPE, "the lists differ in length: expected %zd items", shape[level]);
        return false;
    }
    for (Py_ssize_t i = 0; i < shape[level]; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        bool good = item && read_list(item, level + 1, rank, shape, at, integers, floats);
        Py_XDECREF(item);
        if (!good) return false;
    }
    return true;
}

bool bind_ids_read(PyObject *object, const char *what, bind_ids *out)
{
    out->values = out->few;
    out->rank = 0;
    out->count = 1;
    if (PyLong_Check(object)) return one_id(object, out->few);
    if (PyObject_CheckBuffer(object)) return ids_of_buffer(object, what, out);
    if (PyList_Check(object) || PyTuple_Check(object)) {
        size_t at = 0;
        bool good = list_shape(object, &out->rank, out->shape) &&
                    count_items(out->rank, out->shape, &out->count) && ids_room(out) &&
                    read_list(object, 0, out->rank, out->shape, &at, out->values, NULL);
        if (!good) bind_ids_free(out);
        return good;
    }
    bind_dlpack tensor;
    if (bind_dlpack_read(object, &tensor)) {
        const items in = {tensor.data,    tensor.rank,   tensor.shape,
                          tensor.strides, tensor.format, tensor.size};
        bool good = ids_of_items(&in, what, out);
        bind_dlpack_free(&tensor);
        return good;
    }
    if (!PyErr_Occurred() && PyIndex_Check(object)) return one_id(object, out->few);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError,
                     "%s must be an integer, or a list, buffer or DLPack tensor of "
                     "integers, not %R",
                     what, Py_TYPE(object));
    return false;
}

void bind_ids_free(bind_ids *ids)
{
    if (ids->values != ids->few) PyMem_Free(ids->values);
    ids->values = ids->few;
}

int32_t *bind_ids_tokens(const bind_ids *ids, const char *what, int64_t limit)
{
    const int64_t most = (int64_t)INT32_MAX + 1; /* a table of more rows is used by row number */
    int32_t *tokens = PyMem_Malloc((ids->count + 1) * sizeof *tokens);
    if (limit > most) limit = most;
    if (!tokens) {
        PyErr_NoMemory();
        return NULL;
    }
    for (size_t i = 0; i < ids->count; i++) {
        int64_t id = ids->values[i];
        if ((uint64_t)id >= (uint64_t)limit) {
            bind_error(EMBLA_ERR_RANGE, "%s %lld at index %zu is out of range: there are %lld",
                       what, (long long)id, i, (long long)limit);
            PyMem_Free(tokens);
            return NULL;
        }
        tokens[i] = (int32_t)id;
    }
    return tokens;
}

/* ---- floats ---- */

static bool floats_room(bind_floats *out)
{
    out->own = out->count <= PTRDIFF_MAX / sizeof(float)
                   ? PyMem_Malloc((out->count + 1) * sizeof(float))
                   : NULL;
    out->values = out->own;
    if (!out->own) PyErr_NoMemory();
    return out->own != NULL;
}

static bool floats_of_items(const items *in, const char *what, bool in_place, bind_floats *out)
{
    if (!in->format || !strchr("fdeG", in->format)) {
        PyErr_Format(PyExc_TypeError, "%s must be floats; this array has the format '%c'", what,
                     in->format ? in->format : '?');
        return false;
    }
    out->rank = in->rank;
    for (int i = 0; i < in->rank; i++) out->shape[i] = in->shape[i]; /* NULL for rank 0 */
    if (!count_items(in->rank, in->shape, &out->count)) return false;
    if (in_place) {
        out->values = (const float *)(const void *)in->data;
        return true;
    }
    if (!floats_room(out)) return false;
    copy_items(in, NULL, out->own);
    return true;
}

static bool floats_of_buffer(PyObject *object, const char *what, bind_floats *out)
{
    if (!bind_buffer_read(object, false, what, &out->buffer)) return false;
    const items in = items_of(&out->buffer);
    bool direct = in.format == 'f' && bind_buffer_plain(&out->buffer);
    bool good = floats_of_items(&in, what, direct, out);
    out->held = good && direct;
    if (!out->held) bind_buffer_free(&out->buffer);
    return good;
}

bool bind_floats_read(PyObject *object, const char *what, bind_floats *out)
{
    out->held = false;
    out->own = NULL;
    if (PyObject_CheckBuffer(object)) return floats_of_buffer(object, what, out);
    if (PyList_Check(object) || PyTuple_Check(object)) {
        size_t at = 0;
        bool good = list_shape(object, &out->rank, out->shape) &&
                    count_items(out->rank, out->shape, &out->count) && floats_room(out) &&
                    read_list(object, 0, out->rank, out->shape, &at, NULL, out->own);
        if (!good) bind_floats_free(out);
        return good;
    }
    bind_dlpack tensor;
    if (bind_dlpack_read(object, &tensor)) {
        const items in = {tensor.data,    tensor.rank,   tensor.shape,
                          tensor.strides, tensor.format, tensor.size};
        bool good = floats_of_items(&in, what, false, out);
        bind_dlpack_free(&tensor);
        return good;
    }
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError,
                     "%s must be a list, buffer or DLPack tensor of floats, not %R", what,
                     Py_TYPE(object));
    return false;
}

void bind_floats_free(bind_floats *floats)
{
    if (floats->held) bind_buffer_free(&floats->buffer);
    floats->held = false;
    PyMem_Free(floats->own);
    floats->own = NULL;
}

bool bind_vectors_read(PyObject *object, const char *what, size_t dim, bind_floats *out,
                       size_t *count)
{
    if (!bind_floats_read(object, what, out)) return false;
    if (out->rank < 1 || (size_t)out->shape[out->rank - 1] != dim) {
        bind_error(EMBLA_ERR_SHAPE, "%s has vectors of %zd numbers, but the table's dim is %zu",
                   what, out->rank < 1 ? (Py_ssize_t)1 : out->shape[out->rank - 1], dim);
        bind_floats_free(out);
        return false;
    }
    *count = dim > 0 ? out->count / dim : 0;
    return true;
}

/* ---- the caller's memory for a result ---- */

static bool output_shape(const bind_buffer *buffer, int rank, const Py_ssize_t *leading, size_t dim,
                         size_t *stride)
{
    const Py_buffer *view = &buffer->view;
    bool good = view->ndim == rank + 1 && (size_t)view->shape[rank] == dim &&
                (dim <= 1 || buffer->strides[rank] == view->itemsize);
    for (int i = 0; good && i < rank; i++) good = view->shape[i] == leading[i];
    if (!good) return false;
    Py_ssize_t row = (Py_ssize_t)dim * view->itemsize;
    if (rank == 0 || PyBuffer_IsContiguous(view, 'C')) {
        *stride = (size_t)row;
        return true;
    }
    *stride = (size_t)buffer->strides[0];
    return rank == 1 && buffer->strides[0] >= row;
}

/* "2 x 3" of the first axes; too many of them are cut. */
static const char *shape_text(int rank, const Py_ssize_t *shape, char text[64])
{
    int at = 0;
    text[0] = '\0';
    for (int i = 0; i < rank && at < 40; i++)
        at += snprintf(text + at, (size_t)(64 - at), "%s%zd", i ? " x " : "", shape[i]);
    return text;
}

bool bind_output_read(PyObject *object, int rank, const Py_ssize_t *leading, size_t dim,
                      bind_output *out)
{
    if (!bind_buffer_read(object, true, "out", &out->buffer)) return false;
    const Py_buffer *view = &out->buffer.view;
    char format = bind_buffer_format(&out->buffer);
    out->dtype = format == 'f' ? EMBLA_F32 : format == 'e' ? EMBLA_F16 : (embla_dtype)0;
    out->data = view->buf;
    if (!out->dtype)
        PyErr_Format(PyExc_TypeError,
                     "out must have float32 or float16 numbers, not the format '%s'",
                     view->format ? view->format : "B");
    else if (output_shape(&out->buffer, rank, leading, dim, &out->stride))
        return true;
    else {
        char is[64], wanted[64];
        bind_error(EMBLA_ERR_SHAPE, "out is %s; it must be %s%s%zu, with rows without gaps",
                   shape_text(view->ndim, view->shape, is), shape_text(rank, leading, wanted),
                   rank ? " x " : "", dim);
    }
    bind_buffer_free(&out->buffer);
    return false;
}

void bind_output_free(bind_output *output)
{
    bind_buffer_free(&output->buffer);
}

/* ---- texts ---- */

static bool one_text(PyObject *object, const char *what, const char **text, size_t *length)
{
    Py_ssize_t size = 0;
    if (PyUnicode_Check(object)) {
        *text = PyUnicode_AsUTF8AndSize(object, &size);
    } else if (PyBytes_Check(object)) {
        char *bytes = NULL;
        if (PyBytes_AsStringAndSize(object, &bytes, &size) < 0) return false;
        *text = bytes;
    } else {
        PyErr_Format(PyExc_TypeError, "%s must be str or bytes, not %R", what, Py_TYPE(object));
        return false;
    }
    *length = (size_t)size;
    return *text != NULL;
}

bool bind_texts_read(PyObject *object, const char *what, bind_texts *out)
{
    *out = (bind_texts){.texts = out->few_texts, .lengths = out->few_lengths, .count = 1};
    out->one = PyUnicode_Check(object) || PyBytes_Check(object);
    if (out->one) {
        out->keeps = Py_NewRef(object);
        if (one_text(object, what, &out->texts[0], &out->lengths[0])) return true;
        bind_texts_free(out);
        return false;
    }
    /* a tuple of our own: nobody can take a text out of it while we work without the GIL */
    out->keeps = PySequence_Tuple(object);
    if (!out->keeps && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "%s must be str or bytes, or a list of them, not %R", what,
                     Py_TYPE(object));
    if (!out->keeps) return false;
    out->count = (size_t)PyTuple_Size(out->keeps);
    if (out->count > BIND_COUNT(out->few_texts)) {
        out->texts = PyMem_Malloc(out->count * sizeof *out->texts);
        out->lengths = PyMem_Malloc(out->count * sizeof *out->lengths);
    }
    bool good = out->texts && out->lengths;
    if (!good) PyErr_NoMemory();
    for (size_t i = 0; good && i < out->count; i++)
        good = one_text(PyTuple_GetItem(out->keeps, (Py_ssize_t)i), what, &out->texts[i],
                        &out->lengths[i]);
    if (!good) bind_texts_free(out);
    return good;
}

void bind_texts_free(bind_texts *texts)
{
    if (texts->texts != texts->few_texts) PyMem_Free(texts->texts);
    if (texts->lengths != texts->few_lengths) PyMem_Free(texts->lengths);
    texts->texts = NULL;
    texts->lengths = NULL;
    Py_CLEAR(texts->keeps);
}
