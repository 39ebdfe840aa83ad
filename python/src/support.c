/* SPDX-License-Identifier: Apache-2.0 */
/* Errors, arguments and handles of the Python module. */
#include "bind.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- errors ---- */

static PyObject *classes[EMBLA_ERR_BUSY + 1], *missing_file;

int bind_errors_load(void)
{
    static const char *const names[] = {
        [EMBLA_OK] = "Error",
        [EMBLA_ERR_ARGUMENT] = "ArgumentError",
        [EMBLA_ERR_MEMORY] = "OutOfMemoryError",
        [EMBLA_ERR_IO] = "FileError",
        [EMBLA_ERR_FORMAT] = "FormatError",
        [EMBLA_ERR_UNSUPPORTED] = "UnsupportedError",
        [EMBLA_ERR_NOT_FOUND] = "NotFoundError",
        [EMBLA_ERR_RANGE] = "RangeError",
        [EMBLA_ERR_SHAPE] = "ShapeError",
        [EMBLA_ERR_STOPPED] = "StoppedError",
        [EMBLA_ERR_BUSY] = "BusyError",
    };
    PyObject *module = PyImport_ImportModule("embla._errors");
    if (!module) return -1;
    for (size_t i = 0; i < BIND_COUNT(names); i++) {
        classes[i] = PyObject_GetAttrString(module, names[i]);
        if (!classes[i]) return -1;
    }
    missing_file = PyObject_GetAttrString(module, "MissingFileError");
    Py_DECREF(module);
    return missing_file ? 0 : -1;
}

static PyObject *raise_text(PyObject *class, const char *text)
{
    PyObject *message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    if (message) PyErr_SetObject(class, message);
    Py_XDECREF(message);
    return NULL;
}

PyObject *bind_fail(embla_status status)
{
    if (PyErr_Occurred()) return NULL;
    const char *text = embla_error();
    size_t n = status > EMBLA_OK && status <= EMBLA_ERR_BUSY ? (size_t)status : 0;
    const char *name = embla_status_name(status);
    return raise_text(classes[n], *text ? text : name ? name : "unknown status");
}

PyObject *bind_fail_path(embla_status status, const char *path)
{
    if ((status == EMBLA_ERR_IO || status == EMBLA_ERR_NOT_FOUND) && path && !PyErr_Occurred()) {
        const char *tensor = strstr(path, "::");
        size_t length = tensor ? (size_t)(tensor - path) : strlen(path);
        char *file = PyMem_Malloc(length + 1);
        if (!file) return PyErr_NoMemory();
        memcpy(file, path, length);
        file[length] = '\0';
        bool there = access(file, F_OK) == 0;
        PyMem_Free(file);
        if (!there) return raise_text(missing_file, embla_error());
    }
    return bind_fail(status);
}

PyObject *bind_error(embla_status status, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return raise_text(classes[status], text);
}

PyObject *bind_hint(const char *function, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    PyObject *arguments = Py_VaBuildValue(format, list);
    va_end(list);
    PyObject *module = arguments ? PyImport_ImportModule("embla._hints") : NULL;
    PyObject *callable = module ? PyObject_GetAttrString(module, function) : NULL;
    PyObject *text = callable ? PyObject_CallObject(callable, arguments) : NULL;
    Py_XDECREF(callable);
    Py_XDECREF(module);
    Py_XDECREF(arguments);
    return text;
}

/* ---- one argument ---- */

void bind_path_free(bind_path *path)
{
    Py_CLEAR(path->bytes);
    path->text = NULL;
}

static bool read_path(PyObject *value, bind_path *out)
{
    PyObject *bytes = NULL;
    if (!PyUnicode_FSConverter(value, &bytes)) return false;
    out->bytes = bytes;
    out->text = PyBytes_AsString(bytes);
    return out->text != NULL;
}

static bool read_text(const bind_argument *a, PyObject *value, const char **out)
{
    Py_ssize_t length = 0;
    if (!PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s must be a str, not %R", a->name, Py_TYPE(value));
        return false;
    }
    const char *text = PyUnicode_AsUTF8AndSize(value, &length);
    if (!text) return false;
    if (strlen(text) != (size_t)length) {
        bind_error(EMBLA_ERR_ARGUMENT, "%s contains a character with the code 0", a->name);
        return false;
    }
    *out = text;
    return true;
}

/* The integer of an argument as an int; NULL after an exception. New reference. */
static PyObject *index_of(const bind_argument *a, PyObject *value)
{
    if (PyIndex_Check(value)) return PyNumber_Index(value);
    return PyErr_Format(PyExc_TypeError, "%s must be an integer, not %R", a->name, Py_TYPE(value));
}

/* Says that an integer is outside its range; returns false. */
static bool out_of_range(const bind_argument *a, PyObject *number, long long least,
                         unsigned long long most)
{
    PyObject *digits = PyObject_Str(number); /* Python refuses to print thousands of digits */
    if (!digits) PyErr_Clear();
    const char *text = digits ? PyUnicode_AsUTF8AndSize(digits, NULL) : NULL;
    if (!text || strlen(text) > 60) text = "a number of more than 60 digits";
    bind_error(EMBLA_ERR_ARGUMENT, "%s is %s; it must be between %lld and %llu", a->name, text,
               least, most);
    Py_XDECREF(digits);
    return false;
}

static bool read_integer(const bind_argument *a, PyObject *value, int64_t least, int64_t most,
                         int64_t *out)
{
    PyObject *index = index_of(a, value);
    if (!index) return false;
    int overflow = 0;
    int64_t number = PyLong_AsLongLongAndOverflow(index, &overflow);
    bool good = !(number == -1 && PyErr_Occurred());
    if (good && (overflow || number < least || number > most))
        good = out_of_range(a, index, least, (unsigned long long)most);
    Py_DECREF(index);
    *out = number;
    return good;
}

static bool read_real(const bind_argument *a, PyObject *value, double *out)
{
    *out = PyFloat_AsDouble(value);
    if (!(*out == -1.0 && PyErr_Occurred())) return true;
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        bind_error(EMBLA_ERR_ARGUMENT, "%s is an integer that is too large for a float", a->name);
    }
    return false;
}

static bool read_name(const bind_argument *a, PyObject *value, int *out)
{
    const char *text = NULL;
    char list[512] = "";
    size_t used = 0;
    if (!read_text(a, value, &text)) return false;
    for (int n = a->first; a->names(n); n++) {
        if (strcmp(text, a->names(n)) == 0) {
            *out = n;
            return true;
        }
        int more = snprintf(list + used, sizeof list - used, "%s%s", n > a->first ? ", " : "",
                            a->names(n));
        if (more > 0 && used + (size_t)more < sizeof list) used += (size_t)more;
    }
    bind_error(EMBLA_ERR_ARGUMENT, "%s is '%.100s'; it must be one of: %s", a->name, text, list);
    return false;
}

static bool read_unsigned(const bind_argument *a, PyObject *value, uint64_t *out)
{
    PyObject *index = index_of(a, value);
    if (!index) return false;
    unsigned long long number = PyLong_AsUnsignedLongLong(index);
    bool good = !(number == (unsigned long long)-1 && PyErr_Occurred());
    if (!good) {
        PyErr_Clear();
        good = out_of_range(a, index, 0, UINT64_MAX);
    }
    Py_DECREF(index);
    if (good) *out = number;
    return good;
}

static bool read_one(const bind_argument *a, PyObject *value)
{
    int64_t integer = 0;
    double real = 0;
    bool good = true;
    if (a->kind == 'O') {
        *(PyObject **)a->to = value;
        return true;
    }
    if (value == Py_None) return true;
    switch (a->kind) {
    case 's':
        return read_text(a, value, a->to);
    case 'p':
        return read_path(value, a->to);
    case 'u':
        return read_unsigned(a, value, a->to);
    case 'e':
        return read_name(a, value, a->to);
    case 'l':
    case 'n':
        good = read_integer(a, value, a->kind == 'n' ? 0 : INT64_MIN, INT64_MAX, &integer);
        if (good) *(int64_t *)a->to = integer;
        return good;
    case 'z':
        good = read_integer(a, value, 0, PTRDIFF_MAX, &integer);
        if (good) *(size_t *)a->to = (size_t)integer;
        return good;
    case 'i':
        good = read_integer(a, value, 0, INT32_MAX, &integer);
        if (good) *(int *)a->to = (int)integer;
        return good;
    case 'd':
    case 'f':
        good = read_real(a, value, &real);
        if (good && a->kind == 'd') *(double *)a->to = real;
        if (good && a->kind == 'f') *(float *)a->to = (float)real;
        return good;
    default: { /* 'b' */
        int truth = PyObject_IsTrue(value);
        if (truth >= 0) *(bool *)a->to = truth > 0;
        return truth >= 0;
    }
    }
}

/* ---- all arguments ---- */

static void free_paths(const bind_argument *arguments, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (arguments[i].kind == 'p') bind_path_free(arguments[i].to);
}

enum { ARGUMENTS_MOST = 40 };

/* Sets the exception for an argument that the function does not have; similar names are named. */
static void refuse_name(const char *function, PyObject *name, const bind_argument *arguments,
                        size_t argument_count)
{
    PyObject *known = PyList_New(0);
    for (size_t k = 0; known && k < argument_count; k++) {
        PyObject *one = PyUnicode_FromString(arguments[k].name);
        if (!one || PyList_Append(known, one) < 0) Py_CLEAR(known);
        Py_XDECREF(one);
    }
    PyObject *text = known ? bind_hint("unknown", "(sOO)", function, name, known) : NULL;
    if (text) PyErr_SetObject(PyExc_TypeError, text);
    Py_XDECREF(text);
    Py_XDECREF(known);
}

/* Puts a named value into its place. */
static bool place_named(const char *function, PyObject *name, PyObject *value,
                        const bind_argument *arguments, size_t argument_count, PyObject **found)
{
    for (size_t k = 0; k < argument_count; k++) {
        if (PyUnicode_CompareWithASCIIString(name, arguments[k].name) != 0) continue;
        if (found[k]) {
            PyErr_Format(PyExc_TypeError, "%s() got two values for '%s'", function,
                         arguments[k].name);
            return false;
        }
        found[k] = value;
        return true;
    }
    refuse_name(function, name, arguments, argument_count);
    return false;
}

static bool read_found(const char *function, const bind_argument *arguments, size_t argument_count,
                       PyObject **found)
{
    for (size_t k = 0; k < argument_count; k++) {
        bool good = true;
        if (found[k])
            good = read_one(&arguments[k], found[k]);
        else if (arguments[k].required) {
            PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", function,
                         arguments[k].name);
            good = false;
        }
        if (!good) {
            free_paths(arguments, argument_count);
            return false;
        }
    }
    return true;
}

static bool too_many(const char *function, Py_ssize_t count, size_t positional)
{
    if ((size_t)count <= positional) return false;
    PyErr_Format(PyExc_TypeError, "%s() takes at most %zu positional arguments, but got %zd",
                 function, positional, count);
    return true;
}

bool bind_arguments(const char *function, PyObject *const *values, Py_ssize_t count,
                    PyObject *names, size_t positional, const bind_argument *arguments,
                    size_t argument_count)
{
    PyObject *found[ARGUMENTS_MOST];
    /* only as many as there are: a lookup of one row notices the rest */
    for (size_t i = 0; i < argument_count; i++) found[i] = NULL;
    if (too_many(function, count, positional)) return false;
    for (Py_ssize_t i = 0; i < count; i++) found[i] = values[i];
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < named; i++)
        if (!place_named(function, PyTuple_GetItem(names, i), values[count + i], arguments,
                         argument_count, found))
            return false;
    return read_found(function, arguments, argument_count, found);
}

bool bind_new_arguments(const char *function, PyObject *args, PyObject *kwargs, size_t positional,
                        const bind_argument *arguments, size_t argument_count)
{
    PyObject *found[ARGUMENTS_MOST] = {NULL}, *name, *value;
    Py_ssize_t count = PyTuple_Size(args), at = 0;
    if (too_many(function, count, positional)) return false;
    for (Py_ssize_t i = 0; i < count; i++) found[i] = PyTuple_GetItem(args, i);
    while (kwargs && PyDict_Next(kwargs, &at, &name, &value))
        if (!place_named(function, name, value, arguments, argument_count, found)) return false;
    return read_found(function, arguments, argument_count, found);
}

bool bind_dtype(const char *name, embla_dtype *out)
{
    if (!name) return true;
    embla_status status = embla_dtype_find(name, out);
    if (status == EMBLA_OK) return true;
    bind_error(EMBLA_ERR_ARGUMENT, "%s", embla_error());
    return false;
}

/* ---- handles ---- */

enum { CLOSED = -1, ALONE = 1 << 24 };

static const char *type_name(void *object, char text[64])
{
    PyObject *name = PyType_GetName(Py_TYPE((PyObject *)object));
    const char *found = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    (void)snprintf(text, 64, "%s", found ? found : "object");
    Py_XDECREF(name);
    if (!found) PyErr_Clear();
    return text;
}

bool bind_enter(void *object, bool alone)
{
    bind_object *o = object;
    char name[64];
    int users = atomic_load_explicit(&o->users, memory_order_relaxed);
    for (;;) {
        if (users < 0) {
            bind_error(EMBLA_ERR_ARGUMENT, "this %s is closed", type_name(object, name));
            return false;
        }
        if (users >= ALONE || (alone && users > 0)) {
            bind_error(EMBLA_ERR_BUSY, "this %s is in use by another call or by a view of it",
                       type_name(object, name));
            return false;
        }
        if (!atomic_compare_exchange_weak(&o->users, &users, alone ? ALONE : users + 1)) continue;
        if (o->handle) return true;
        bind_leave(o, alone); /* never opened */
        users = CLOSED;
    }
}

void bind_leave(void *object, bool alone)
{
    atomic_fetch_sub(&((bind_object *)object)->users, alone ? ALONE : 1);
}

bool bind_close(void *object, void (*release)(void *))
{
    bind_object *o = object;
    char name[64];
    int users = 0;
    if (!atomic_compare_exchange_strong(&o->users, &users, CLOSED)) {
        if (users == CLOSED) return true;
        bind_error(EMBLA_ERR_BUSY, "this %s cannot be closed: a call or a view uses it",
                   type_name(object, name));
        return false;
    }
    void *handle = o->handle;
    o->handle = NULL;
    if (handle) release(handle);
    Py_CLEAR(o->keeps);
    return true;
}

void *bind_new(PyTypeObject *type)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return allocate(type, 0);
}

void bind_dealloc(void *object)
{
    PyTypeObject *type = Py_TYPE((PyObject *)object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_CLEAR(((bind_object *)object)->keeps);
    release(object);
    Py_DECREF((PyObject *)type);
}

PyTypeObject *bind_type_add(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (!type) return NULL;
    const char *name = strrchr(spec->name, '.');
    if (PyModule_AddObjectRef(module, name ? name + 1 : spec->name, type) < 0) Py_CLEAR(type);
    return (PyTypeObject *)type;
}

int bind_type_only(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = (PyObject *)bind_type_add(module, spec);
    Py_XDECREF(type);
    return type ? 0 : -1;
}

bool bind_is(PyObject *object, PyTypeObject *type, const char *what)
{
    if (object && PyObject_TypeCheck(object, type)) return true;
    PyErr_Format(PyExc_TypeError, "%s must be an embla %R, not %R", what, type,
                 object ? (PyObject *)Py_TYPE(object) : Py_None);
    return false;
}

/* ---- progress ---- */

bool bind_progress_check(const bind_progress *progress)
{
    PyObject *f = progress->function;
    if (!f || f == Py_None || PyBool_Check(f) || PyCallable_Check(f)) return true;
    PyErr_Format(PyExc_TypeError, "progress must be a function, or False for no bar, not %R", f);
    return false;
}

/* What is called: the caller's function or a bar. NULL if there is none, or if there is an
 * exception. */
static PyObject *called(bind_progress *progress)
{
    PyObject *f = progress->function ? progress->function : Py_None;
    if (f != Py_None && !PyBool_Check(f)) return f;
    if (f == Py_False || !progress->shows) return NULL;
    if (!progress->bar) {
        PyObject *module = PyImport_ImportModule("embla._bar");
        if (module) progress->bar = PyObject_CallMethod(module, "begin", NULL);
        Py_XDECREF(module);
    }
    return progress->bar == Py_None ? NULL : progress->bar;
}

void bind_progress_end(bind_progress *progress)
{
    PyObject *type, *value, *trace;
    if (progress->bar && progress->bar != Py_None) {
        PyErr_Fetch(&type, &value, &trace);
        PyObject *answer = PyObject_CallMethod(progress->bar, "close", NULL);
        if (!answer) PyErr_Clear();
        Py_XDECREF(answer);
        PyErr_Restore(type, value, trace);
    }
    Py_CLEAR(progress->bar);
}

/* If an exception is set, it stays in this thread until the call has ended. */
bool bind_progress_step(void *context, const char *what, int64_t done, int64_t total)
{
    PyGILState_STATE state = PyGILState_Ensure();
    bool go_on = PyErr_CheckSignals() == 0;
    PyObject *function = go_on ? called(context) : NULL;
    if (function) {
        PyObject *answer =
            PyObject_CallFunction(function, "sLL", what, (long long)done, (long long)total);
        go_on = answer && answer != Py_False;
        Py_XDECREF(answer);
    } else if (PyErr_Occurred()) {
        go_on = false;
    }
    PyGILState_Release(state);
    return go_on;
}

/* ---- values ---- */

PyObject *bind_word(const char *bytes, size_t length)
{
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)length, "surrogateescape");
}

PyObject *bind_text(const char *text)
{
    if (!text) Py_RETURN_NONE;
    return bind_word(text, strlen(text));
}

bool bind_put(PyObject *dict, const char *name, PyObject *value)
{
    if (!value) return false;
    int code = PyDict_SetItemString(dict, name, value);
    Py_DECREF(value);
    return code == 0;
}
