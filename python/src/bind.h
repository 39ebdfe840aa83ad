/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the Python module share: arguments, errors, handles, arrays.
 *
 * The module uses the limited API of Python 3.11, so one binary serves every later version. It
 * includes no header of NumPy: numbers come in and go out as buffers or by DLPack.
 *
 * Two rules keep the interpreter alive, whatever a caller does:
 *   ids      Row numbers and tokens are copied before they are checked. Another thread may write
 *            to the caller's array while a lookup runs without the GIL.
 *   handles  A call enters the handles that it uses and leaves them at its end. A handle is freed
 *            only while nobody is inside. An object that another one points into is referenced
 *            by it.
 */
#ifndef EMBLA_PYTHON_BIND_H
#define EMBLA_PYTHON_BIND_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "embla.h"

#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030b0000
#error "Py_buffer is in the limited API from Python 3.11 on"
#endif

/* ---- errors ---- */

/* Sets the exception of a status, with the message of the library; returns NULL. If a callback has
 * raised an exception, that one stays. */
PyObject *bind_fail(embla_status status);
/* The same for a call that opens `path`: a missing file is a FileNotFoundError, too. */
PyObject *bind_fail_path(embla_status status, const char *path);
/* Sets the exception of a status with a message of our own; returns NULL. */
PyObject *bind_error(embla_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Reads the exception classes of embla._errors. */
int bind_errors_load(void);
/* A text that a function of embla._hints makes of arguments, which `format` describes as for
 * Py_BuildValue: a tuple. NULL after an exception. */
PyObject *bind_hint(const char *function, const char *format, ...);

/* ---- arguments ---- */

/* One argument of a function. `to` points to a variable of the kind, which keeps its value if the
 * argument is missing or None.
 *   'O' PyObject *, borrowed      's' const char *, UTF-8 without a 0     'p' bind_path
 *   'l' int64_t                   'z' size_t                              'i' int
 *   'n' int64_t, 0 or greater
 *   'd' double                    'f' float                               'b' bool
 *   'u' uint64_t                  'e' int: the index of a name, found by `names` */
typedef struct {
    const char *name;
    void *to;
    const char *(*names)(int n); /* the n-th name, from `first` on; NULL past the last */
    int first;
    char kind;
    bool required;
} bind_argument;

typedef struct {
    PyObject *bytes;  /* owned; NULL if it was not given */
    const char *text; /* in the encoding of the file system */
} bind_path;
void bind_path_free(bind_path *path);

/* Reads the arguments of a METH_FASTCALL | METH_KEYWORDS function. The first `positional` of them
 * may be given without a name. False after an exception; then all paths are freed. */
bool bind_arguments(const char *function, PyObject *const *values, Py_ssize_t count,
                    PyObject *names, size_t positional, const bind_argument *arguments,
                    size_t argument_count);
/* The same for a tuple and a dict, as __new__ gets them. */
bool bind_new_arguments(const char *function, PyObject *args, PyObject *kwargs, size_t positional,
                        const bind_argument *arguments, size_t argument_count);
#define BIND_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The dtype of a name; NULL or None leaves *out as it is. False after an exception. */
bool bind_dtype(const char *name, embla_dtype *out);

/* ---- handles ---- */

/* The beginning of every object that has a handle of the library. */
typedef struct {
    PyObject_HEAD void *handle; /* NULL means not opened, or closed. Read by users only */
    atomic_int users;           /* calls and views that use it; -1 means closed */
    PyObject *keeps;            /* what the handle points into; NULL means nothing */
} bind_object;

/* A call begins to use the handle. `alone` refuses other users at the same time. False after an
 * exception: the object is closed, or another thread uses it. */
bool bind_enter(void *object, bool alone);
void bind_leave(void *object, bool alone);
/* Frees the handle by `release`. False after an exception: it is in use. */
bool bind_close(void *object, void (*release)(void *));
/* Allocates an object of a type; a Python class may be derived from it. */
void *bind_new(PyTypeObject *type);
/* Frees the memory of the object; the end of every tp_dealloc. */
void bind_dealloc(void *object);
/* Creates the type and adds it to the module. NULL after an exception. */
PyTypeObject *bind_type_add(PyObject *module, PyType_Spec *spec);
/* The same for a type that no other file needs: 0, or -1 after an exception. */
int bind_type_only(PyObject *module, PyType_Spec *spec);
/* True if `object` is of this type. Otherwise a TypeError that names `what`. */
bool bind_is(PyObject *object, PyTypeObject *type, const char *what);

extern PyTypeObject *bind_table_type, *bind_vocab_type, *bind_checkpoint_type, *bind_array_type;
extern PyTypeObject *bind_tokenizer_type, *bind_encoder_type, *bind_gpt_type, *bind_store_type;
extern PyTypeObject *bind_train_type, *bind_wordvec_type;

/* True if a Checkpoint was opened with copy=True: its tables may be changed. */
bool bind_checkpoint_copies(PyObject *object);

/* ---- the GIL ---- */

/* Work on more numbers than this releases the GIL; less is done before another thread could run. */
enum { BIND_SMALL = 4096 };
#define BIND_RUN(large, call)                                                                      \
    do {                                                                                           \
        PyThreadState *state_ = (large) ? PyEval_SaveThread() : NULL;                              \
        call;                                                                                      \
        if (state_) PyEval_RestoreThread(state_);                                                  \
    } while (0)

/* A context for embla_progress_fn: calls a Python function with (what, done, total), or only looks
 * for Ctrl-C. The library calls it without the GIL. */
typedef struct {
    PyObject *function; /* borrowed; NULL or None means none */
    bool shows;         /* in place of none: the bar of _bar.py, unless function is False */
    PyObject *bar;      /* NULL until it is needed; None if nobody can see it */
} bind_progress;
bool bind_progress_step(void *context, const char *what, int64_t done, int64_t total);
/* For one that shows a bar: a TypeError if function is neither a function nor a bool nor None. */
bool bind_progress_check(const bind_progress *progress);
/* Removes the bar. An exception that is set stays. */
void bind_progress_end(bind_progress *progress);

/* ---- arrays ---- */

enum { BIND_RANK = 64 }; /* the most axes of an array, as in memoryview and NumPy 2 */

/* A caller's buffer. Some exporters (ctypes) leave strides NULL although they are asked for them;
 * `strides` is never NULL for an array with axes. */
typedef struct {
    Py_buffer view;
    const Py_ssize_t *strides;
    Py_ssize_t own[BIND_RANK]; /* the strides of a buffer that came without */
} bind_buffer;
/* Asks for a buffer with strides and a format. False after an exception; `what` names it. */
bool bind_buffer_read(PyObject *object, bool writable, const char *what, bind_buffer *out);
void bind_buffer_free(bind_buffer *buffer);
/* The format of native numbers, a character of struct; 0 for any other. */
char bind_buffer_format(const bind_buffer *buffer);
/* True if the items follow each other in the order of C, and each is aligned. */
bool bind_buffer_plain(const bind_buffer *buffer);

/* Row numbers or tokens, copied from a number, a list, a buffer or a DLPack tensor. */
typedef struct {
    int64_t *values;
    size_t count;
    int rank; /* 0 for one number */
    Py_ssize_t shape[BIND_RANK];
    int64_t few[64];
} bind_ids;
bool bind_ids_read(PyObject *object, const char *what, bind_ids *out);
void bind_ids_free(bind_ids *ids);
/* The same numbers as int32 in new memory (free with PyMem_Free). NULL after an exception: a number
 * that is not below `limit` is an IndexError with its index. */
int32_t *bind_ids_tokens(const bind_ids *ids, const char *what, int64_t limit);

/* Floats (f32), in place if they are a contiguous buffer of f32, else converted. */
typedef struct {
    const float *values;
    size_t count;
    int rank;
    Py_ssize_t shape[BIND_RANK];
    bind_buffer buffer;
    bool held; /* buffer is to be released */
    float *own;
} bind_floats;
bool bind_floats_read(PyObject *object, const char *what, bind_floats *out);
void bind_floats_free(bind_floats *floats);
/* Reads vectors of dim numbers: (dim), (n, dim), (a, b, dim). *count gets their number. */
bool bind_vectors_read(PyObject *object, const char *what, size_t dim, bind_floats *out,
                       size_t *count);

/* The caller's memory for a result: writable, of the shape leading + (dim), the last axis without
 * gaps. */
typedef struct {
    bind_buffer buffer;
    void *data;
    size_t stride; /* bytes from one vector to the next */
    embla_dtype dtype;
} bind_output;
bool bind_output_read(PyObject *object, int rank, const Py_ssize_t *leading, size_t dim,
                      bind_output *out);
void bind_output_free(bind_output *output);

/* A new array, not filled. dtype: f32, f64, f16, bf16, i8, or BIND_I32 .. ; *data is its memory. */
enum { BIND_I32 = 1001, BIND_I64 = 1002, BIND_U8 = 1003 };
PyObject *bind_array_new(int dtype, int rank, const Py_ssize_t *shape, void **data);
/* An array over memory of `owner`, a bind_object, which counts it as a user until it is gone. */
PyObject *bind_array_view(void *owner, int dtype, int rank, const Py_ssize_t *shape,
                          const Py_ssize_t *strides, void *data, bool writable);
/* Turns a new array into numpy.ndarray if NumPy is installed; takes the reference. */
PyObject *bind_array_result(PyObject *array);
/* The same at the end of a call. After a failure it drops the array, sets the exception of the
 * status and returns NULL. */
PyObject *bind_array_done(embla_status status, PyObject *array);
/* The same for copied numbers. */
PyObject *bind_array_copy(int dtype, size_t count, const void *values);

/* Reads a DLPack tensor. False without an exception if the object is none. */
typedef struct {
    void *data;
    int rank;
    Py_ssize_t shape[BIND_RANK], strides[BIND_RANK]; /* in bytes */
    char format;                                     /* of struct: 'f', 'q', .. */
    Py_ssize_t size;                                 /* of an item */
    bool read_only;                                  /* the producer says so */
    PyObject *capsule;                               /* owned */
} bind_dlpack;
bool bind_dlpack_read(PyObject *object, bind_dlpack *out);
void bind_dlpack_free(bind_dlpack *tensor);

/* ---- texts ---- */

/* Texts of a str, bytes, or a sequence of them, as UTF-8. The strings stay valid until it is
 * freed. */
typedef struct {
    const char **texts;
    size_t *lengths, count;
    bool one; /* a single text was given */
    PyObject *keeps;
    const char *few_texts[4];
    size_t few_lengths[4];
} bind_texts;
bool bind_texts_read(PyObject *object, const char *what, bind_texts *out);
void bind_texts_free(bind_texts *texts);
/* A word as str; bytes that are not UTF-8 become surrogates, as in file names. */
PyObject *bind_word(const char *bytes, size_t length);
/* A text as str, or None for NULL. */
PyObject *bind_text(const char *text);

/* ---- dicts ---- */

/* Sets dict[name] and releases the value. False if the value is NULL, after an exception. */
bool bind_put(PyObject *dict, const char *name, PyObject *value);

/* ---- types, one file each ---- */

int bind_array_add(PyObject *module);
int bind_table_add(PyObject *module);
int bind_vocab_add(PyObject *module);
int bind_checkpoint_add(PyObject *module);
int bind_see_add(PyObject *module);
int bind_shape_add(PyObject *module);
int bind_tokenizer_add(PyObject *module);
int bind_encoder_add(PyObject *module);
int bind_search_add(PyObject *module);
int bind_gpt_add(PyObject *module);
int bind_train_add(PyObject *module);
int bind_wordvec_add(PyObject *module);
int bind_film_add(PyObject *module);
int bind_play_add(PyObject *module);
int bind_ngram_add(PyObject *module);
int bind_store_add(PyObject *module);
int bind_tickets_add(PyObject *module);
int bind_learn_add(PyObject *module);
int bind_logits_add(PyObject *module);
int bind_cost_add(PyObject *module);

#define BIND_METHOD(name, function, doc)                                                           \
    {                                                                                              \
        name, (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS, doc          \
    }
#define BIND_ARGS PyObject *const *values, Py_ssize_t count, PyObject *names

#endif
