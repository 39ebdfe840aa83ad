/* SPDX-License-Identifier: Apache-2.0 */
/* Index: the vectors of the lines of a text, and the nearest lines. fit: weights and components of
 * an encoder. */
#include "embla_search.h"

#include "bind.h"
#include "tokenizer.h"

static const embla_index *handle_of(PyObject *self)
{
    return ((bind_object *)self)->handle;
}

/* Two paths that a call needs, both given. */
static bool are_given(const bind_path *a, const bind_path *b)
{
    if (a->text && b->text) return true;
    PyErr_SetString(PyExc_TypeError, "a path must not be None");
    return false;
}

/* ---- creating ---- */

/* Takes the handle; the encoder lives as long as the index. */
static PyObject *wrap(PyObject *type, embla_status status, embla_index *handle, PyObject *encoder,
                      const char *path)
{
    bind_object *self = status == EMBLA_OK ? bind_new((PyTypeObject *)type) : NULL;
    if (status != EMBLA_OK) bind_fail_path(status, path);
    if (!self) {
        embla_index_free(handle);
        return NULL;
    }
    self->handle = handle;
    self->keeps = Py_NewRef(encoder);
    return (PyObject *)self;
}

static PyObject *index_make(PyObject *type, BIND_ARGS)
{
    PyObject *encoder = NULL, *self = NULL;
    const char *dtype = NULL;
    bind_path corpus = {0};
    bind_progress progress = {0};
    embla_index *handle = NULL;
    embla_index_options o = {.progress = bind_progress_step, .context = &progress};
    const bind_argument arguments[] = {
        {.name = "encoder", .kind = 'O', .to = &encoder, .required = true},
        {.name = "corpus", .kind = 'p', .to = &corpus, .required = true},
        {.name = "dtype", .kind = 's', .to = &dtype},
        {.name = "threads", .kind = 'i', .to = &o.threads},
        {.name = "progress", .kind = 'O', .to = &progress.function}};
    if (!bind_arguments("_make", values, count, names, 2, arguments, BIND_COUNT(arguments)))
        return NULL;
    if (are_given(&corpus, &corpus) && bind_dtype(dtype, &o.dtype) &&
        bind_is(encoder, bind_encoder_type, "encoder")) {
        embla_status status;
        BIND_RUN(true, status = embla_index_new(((bind_object *)encoder)->handle, corpus.text, &o,
                                                &handle));
        self = wrap(type, status, handle, encoder, corpus.text);
    }
    bind_path_free(&corpus);
    return self;
}

static PyObject *index_open(PyObject *type, BIND_ARGS)
{
    PyObject *encoder = NULL, *self = NULL;
    bind_path path = {0}, corpus = {0};
    embla_index *handle = NULL;
    const bind_argument arguments[] = {
        {.name = "path", .kind = 'p', .to = &path, .required = true},
        {.name = "encoder", .kind = 'O', .to = &encoder, .required = true},
        {.name = "corpus", .kind = 'p', .to = &corpus, .required = true}};
    if (!bind_arguments("_open", values, count, names, 3, arguments, BIND_COUNT(arguments)))
        return NULL;
    if (are_given(&path, &corpus) && bind_is(encoder, bind_encoder_type, "encoder")) {
        embla_status status;
        BIND_RUN(true, status = embla_index_open(path.text, ((bind_object *)encoder)->handle,
                                                 corpus.text, &handle));
        self = wrap(type, status, handle, encoder, path.text);
    }
    bind_path_free(&path);
    bind_path_free(&corpus);
    return self;
}

static void index_dealloc(PyObject *self)
{
    embla_index_free(((bind_object *)self)->handle);
    bind_dealloc(self);
}

/* ---- search ---- */

/* The lines that were found for one text: (text, number of the line from 0, cosine). */
static PyObject *found_list(const embla_index *index, const embla_neighbour *found, size_t top)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < top && found[i].row >= 0; i++) {
        size_t length = 0;
        int64_t number = 0;
        const char *line = embla_index_line(index, found[i].row, &length, &number);
        PyObject *text = line ? bind_word(line, length) : Py_NewRef(Py_None);
        PyObject *hit =
            text ? Py_BuildValue("NLd", text, (long long)number - 1, found[i].score) : NULL;
        if (!hit || PyList_Append(list, hit) < 0) Py_CLEAR(list);
        Py_XDECREF(hit);
    }
    return list;
}

static PyObject *found_lists(const embla_index *index, const embla_neighbour *found,
                             const bind_texts *texts, size_t top)
{
    if (texts->one) return found_list(index, found, top);
    PyObject *lists = PyList_New(0);
    for (size_t i = 0; lists && i < texts->count; i++) {
        PyObject *list = found_list(index, found + i * top, top);
        if (!list || PyList_Append(lists, list) < 0) Py_CLEAR(lists);
        Py_XDECREF(list);
    }
    return lists;
}

static PyObject *search_texts(PyObject *self, const bind_texts *texts, size_t top, int threads)
{
    embla_index_info info = {0};
    size_t bytes = 0;
    if (top < 1) return bind_error(EMBLA_ERR_ARGUMENT, "top is 0; it must be at least 1");
    if (embla_index_describe(handle_of(self), &info) != EMBLA_OK)
        return bind_fail(EMBLA_ERR_ARGUMENT);
    if (top > (uint64_t)info.rows) top = info.rows > 0 ? (size_t)info.rows : 1;
    if (__builtin_mul_overflow(texts->count, top, &bytes) ||
        __builtin_mul_overflow(bytes, sizeof(embla_neighbour), &bytes))
        bytes = SIZE_MAX;
    embla_neighbour *found = bytes <= PTRDIFF_MAX - 16 ? PyMem_Malloc(bytes + 16) : NULL;
    if (!found)
        return bind_error(EMBLA_ERR_MEMORY, "no memory for the %zu best lines of %zu questions",
                          top, texts->count);
    bind_progress progress = {.shows = true};
    const embla_search_options options = {
        .threads = threads, .progress = bind_progress_step, .context = &progress};
    const embla_texts all = {
        .texts = texts->texts, .lengths = texts->lengths, .count = texts->count};
    embla_status status;
    BIND_RUN(true, status = embla_index_search(handle_of(self), &all, top, &options, found, NULL));
    bind_progress_end(&progress);
    PyObject *result =
        status == EMBLA_OK ? found_lists(handle_of(self), found, texts, top) : bind_fail(status);
    PyMem_Free(found);
    return result;
}

static PyObject *index_search(PyObject *self, BIND_ARGS)
{
    PyObject *text = NULL;
    size_t top = 10;
    int threads = 0;
    bind_texts texts;
    const bind_argument arguments[] = {{.name = "text", .kind = 'O', .to = &text, .required = true},
                                       {.name = "top", .kind = 'z', .to = &top},
                                       {.name = "threads", .kind = 'i', .to = &threads}};
    if (!bind_arguments("_search", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_texts_read(text, "a text", &texts))
        return NULL;
    PyObject *result = search_texts(self, &texts, top, threads);
    bind_texts_free(&texts);
    return result;
}

/* ---- the rest ---- */

static PyObject *index_save(PyObject *self, PyObject *path)
{
    PyObject *bytes = NULL;
    if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
    const char *text = PyBytes_AsString(bytes);
    embla_status status;
    BIND_RUN(true, status = embla_index_write(handle_of(self), text));
    PyObject *result = status == EMBLA_OK ? Py_NewRef(Py_None) : bind_fail_path(status, text);
    Py_DECREF(bytes);
    return result;
}

static PyObject *index_info(PyObject *self, PyObject *unused)
{
    embla_index_info i = {0};
    (void)unused;
    if (embla_index_describe(handle_of(self), &i) != EMBLA_OK) return bind_fail(EMBLA_ERR_ARGUMENT);
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:n,s:s,s:N}", "lines", (long long)i.lines, "rows",
                         (long long)i.rows, "bytes", (long long)i.bytes, "text_bytes",
                         (long long)i.text_bytes, "dim", (Py_ssize_t)i.dim, "dtype",
                         embla_dtype_name(i.dtype), "stored", PyBool_FromLong(i.stored));
}

static PyMethodDef methods[] = {
    {"_make", (PyCFunction)(void (*)(void))index_make, METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     "_make(encoder, corpus, *, dtype='f32', threads=0, progress=None)\n--\n\n"
     "Encodes all lines of a text file."},
    {"_open", (PyCFunction)(void (*)(void))index_open, METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     "_open(path, encoder, corpus)\n--\n\nOpens a saved index of the same encoder and text."},
    BIND_METHOD("_search", index_search,
                "_search(text, top=10, *, threads=0)\n--\n\n"
                "The nearest lines to a text, or to each of several: (text, number, cosine)."),
    {"save", index_save, METH_O, "save($self, path, /)\n--\n\nWrites the vectors to a file."},
    {"info", index_info, METH_NOARGS, "info()\n--\n\nLines, rows, bytes, dim and dtype."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {{Py_tp_doc, "The vectors of the lines of a text; use embla.Index."},
                              {Py_tp_dealloc, index_dealloc},
                              {Py_tp_methods, methods},
                              {0, NULL}};
static PyType_Spec spec = {.name = "embla._embla.Index",
                           .basicsize = sizeof(bind_object),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                    Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = slots};

/* ---- fit ---- */

static PyObject *search_fit(PyObject *module, BIND_ARGS)
{
    PyObject *encoder = NULL, *result = NULL;
    bind_path corpus = {0}, path = {0}, counts = {0};
    bind_progress progress = {0};
    embla_fit_options o = {.progress = bind_progress_step, .context = &progress};
    embla_fit_report r = {0};
    const bind_argument arguments[] = {
        {.name = "encoder", .kind = 'O', .to = &encoder, .required = true},
        {.name = "corpus", .kind = 'p', .to = &corpus, .required = true},
        {.name = "path", .kind = 'p', .to = &path, .required = true},
        {.name = "a", .kind = 'd', .to = &o.a},
        {.name = "components", .kind = 'l', .to = &o.components},
        {.name = "counts", .kind = 'p', .to = &counts},
        {.name = "lines", .kind = 'l', .to = &o.lines},
        {.name = "threads", .kind = 'i', .to = &o.threads},
        {.name = "progress", .kind = 'O', .to = &progress.function}};
    (void)module;
    if (!bind_arguments("fit", values, count, names, 3, arguments, BIND_COUNT(arguments)))
        return NULL;
    o.counts = counts.text;
    if (are_given(&corpus, &path) && bind_is(encoder, bind_encoder_type, "encoder")) {
        embla_status status;
        BIND_RUN(true, status = embla_fit(((bind_object *)encoder)->handle, corpus.text, path.text,
                                          &o, &r));
        if (status == EMBLA_OK)
            result =
                Py_BuildValue("{s:L,s:L,s:L,s:L,s:n,s:d,s:d,s:N}", "lines", (long long)r.lines,
                              "used", (long long)r.used, "tokens", (long long)r.tokens, "unknown",
                              (long long)r.unknown, "components", (Py_ssize_t)r.components, "share",
                              r.share, "a", r.a, "weights", bind_text(r.weights));
        else
            bind_fail_path(status, corpus.text);
    }
    bind_path_free(&corpus);
    bind_path_free(&path);
    bind_path_free(&counts);
    return result;
}

static PyMethodDef functions[] = {
    BIND_METHOD("fit", search_fit,
                "fit(encoder, corpus, path, *, a=0.0, components=0, counts=None, lines=0,\n"
                "    threads=0, progress=None)\n--\n\n"
                "Fits weights and common components to a text, and writes them to a file."),
    {NULL, NULL, 0, NULL}};

int bind_search_add(PyObject *module)
{
    if (bind_type_only(module, &spec) < 0) return -1;
    return PyModule_AddFunctions(module, functions);
}
