/* SPDX-License-Identifier: Apache-2.0 */
/* Vocab: the words that rows stand for. */
#include "bind.h"
#include "embla_lab.h"

PyTypeObject *bind_vocab_type;

static const embla_vocab *vocab_of(PyObject *self)
{
    return ((bind_object *)self)->handle;
}

/* Takes the handle. */
static PyObject *wrap(PyTypeObject *type, embla_vocab *vocab)
{
    bind_object *self = bind_new(type);
    if (self) self->handle = vocab;
    if (!self) embla_vocab_free(vocab);
    return (PyObject *)self;
}

/* Vocab(source): the words of a checkpoint, or of a file. */
static PyObject *vocab_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *source = NULL;
    embla_vocab *vocab = NULL;
    bind_path path = {0};
    embla_status status;
    const bind_argument arguments[] = {
        {.name = "source", .kind = 'O', .to = &source, .required = true}};
    if (!bind_new_arguments("Vocab", args, kwargs, 1, arguments, 1)) return NULL;
    if (PyObject_TypeCheck(source, bind_checkpoint_type)) {
        if (!bind_enter(source, false)) return NULL;
        BIND_RUN(true, status = embla_vocab_open(((bind_object *)source)->handle, &vocab));
        bind_leave(source, false);
        return status == EMBLA_OK ? wrap(type, vocab) : bind_fail(status);
    }
    const bind_argument file[] = {{.name = "source", .kind = 'p', .to = &path}};
    PyObject *const one[] = {source};
    if (!bind_arguments("Vocab", one, 1, NULL, 1, file, 1)) return NULL;
    if (!path.text)
        return PyErr_Format(PyExc_TypeError, "Vocab() needs a path or a Checkpoint, not None");
    BIND_RUN(true, status = embla_vocab_open_file(path.text, &vocab));
    if (status != EMBLA_OK) bind_fail_path(status, path.text);
    bind_path_free(&path);
    return status == EMBLA_OK ? wrap(type, vocab) : NULL;
}

static void vocab_dealloc(PyObject *self)
{
    embla_vocab_free(((bind_object *)self)->handle);
    bind_dealloc(self);
}

/* ---- words and tokens ---- */

/* A word as the bytes of the file: surrogates become the bytes they stand for. New reference. */
static PyObject *word_bytes(PyObject *word)
{
    if (PyBytes_Check(word)) return Py_NewRef(word);
    if (PyUnicode_Check(word)) return PyUnicode_AsEncodedString(word, "utf-8", "surrogateescape");
    return PyErr_Format(PyExc_TypeError, "a word must be str or bytes, not %R", Py_TYPE(word));
}

/* The token of a word; -1 if there is none, -2 after an exception. */
static int64_t find(PyObject *self, PyObject *word)
{
    int32_t token = -1;
    char *text = NULL;
    Py_ssize_t length = 0;
    PyObject *bytes = word_bytes(word);
    if (!bytes) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) return -2;
        PyErr_Clear(); /* a lone surrogate is in no file */
        return -1;
    }
    bool good = PyBytes_AsStringAndSize(bytes, &text, &length) == 0;
    if (good && embla_vocab_find(vocab_of(self), text, (size_t)length, &token) != EMBLA_OK)
        token = -1;
    Py_DECREF(bytes);
    return good ? token : -2;
}

static PyObject *vocab_find(PyObject *self, PyObject *word)
{
    int64_t token = find(self, word);
    if (token == -2) return NULL;
    if (token < 0) Py_RETURN_NONE;
    return PyLong_FromLongLong(token);
}

static int vocab_contains(PyObject *self, PyObject *word)
{
    if (PyLong_Check(word)) {
        int overflow = 0;
        long long token = PyLong_AsLongLongAndOverflow(word, &overflow);
        return !overflow && token >= 0 && token <= INT32_MAX &&
               embla_vocab_word(vocab_of(self), (int32_t)token, NULL) != NULL;
    }
    int64_t token = find(self, word);
    return token == -2 ? -1 : token >= 0;
}

static PyObject *vocab_word(PyObject *self, PyObject *index)
{
    size_t length = 0;
    int overflow = 0;
    PyObject *number = PyNumber_Index(index);
    if (!number) return NULL;
    long long token = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (token == -1 && PyErr_Occurred()) return NULL;
    const char *word = overflow || token < 0 || token > INT32_MAX
                           ? NULL
                           : embla_vocab_word(vocab_of(self), (int32_t)token, &length);
    if (!word) Py_RETURN_NONE;
    return bind_word(word, length);
}

static PyObject *vocab_suggest(PyObject *self, BIND_ARGS)
{
    PyObject *word = NULL, *list = NULL;
    size_t most = 5;
    int32_t tokens[64];
    char *text = NULL;
    Py_ssize_t length = 0;
    const bind_argument arguments[] = {{.name = "word", .kind = 'O', .to = &word, .required = true},
                                       {.name = "max_words", .kind = 'z', .to = &most}};
    if (!bind_arguments("suggest", values, count, names, 2, arguments, 2)) return NULL;
    PyObject *bytes = word_bytes(word);
    if (!bytes) return NULL;
    if (most > BIND_COUNT(tokens)) most = BIND_COUNT(tokens);
    if (PyBytes_AsStringAndSize(bytes, &text, &length) == 0) {
        size_t found;
        BIND_RUN(true,
                 found = embla_vocab_suggest(vocab_of(self), text, (size_t)length, most, tokens));
        list = PyList_New(0);
        for (size_t i = 0; list && i < found; i++) {
            size_t size = 0;
            const char *spelling = embla_vocab_word(vocab_of(self), tokens[i], &size);
            PyObject *item = spelling ? bind_word(spelling, size) : NULL;
            if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
            Py_XDECREF(item);
        }
    }
    Py_DECREF(bytes);
    return list;
}

/* All words by token, None where a token has none. */
static PyObject *vocab_list(PyObject *self, PyObject *unused)
{
    size_t count = 0;
    (void)unused;
    const embla_word *words = embla_vocab_words(vocab_of(self), &count);
    Py_ssize_t end = (Py_ssize_t)embla_vocab_end(vocab_of(self));
    PyObject *list = PyList_New(end);
    Py_ssize_t at = 0;
    for (size_t i = 0; list && i <= count; i++) {
        Py_ssize_t next = i < count ? words[i].token : end;
        for (; at < next; at++) (void)PyList_SetItem(list, at, Py_NewRef(Py_None));
        if (i == count) break;
        PyObject *word = bind_word(words[i].bytes, words[i].length);
        if (!word) Py_CLEAR(list);
        if (word) (void)PyList_SetItem(list, at++, word);
    }
    return list;
}

static Py_ssize_t vocab_length(PyObject *self)
{
    return (Py_ssize_t)embla_vocab_count(vocab_of(self));
}

static PyObject *vocab_end(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(embla_vocab_end(vocab_of(self)));
}

static PyObject *vocab_source(PyObject *self, void *unused)
{
    (void)unused;
    return bind_text(embla_vocab_source(vocab_of(self)));
}

static PyMethodDef methods[] = {
    {"find", vocab_find, METH_O, "find($self, word, /)\n--\n\nThe token of a word, or None."},
    {"word", vocab_word, METH_O, "word($self, token, /)\n--\n\nThe word of a token, or None."},
    BIND_METHOD("suggest", vocab_suggest,
                "suggest(word, max_words=5)\n--\n\nWords with a similar spelling, the best first."),
    {"list", vocab_list, METH_NOARGS,
     "list()\n--\n\nAll words by token; None where a token has no word."},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef getters[] = {
    {"end", vocab_end, NULL, "The highest token plus 1.", NULL},
    {"source", vocab_source, NULL, "The file that the words came from.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Vocab(source)\n--\n\nThe words that rows stand for, of a Checkpoint or of a file."},
    {Py_tp_new, vocab_new},
    {Py_tp_dealloc, vocab_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_sq_length, vocab_length},
    {Py_sq_contains, vocab_contains},
    {0, NULL}};
static PyType_Spec spec = {.name = "embla._embla.Vocab",
                           .basicsize = sizeof(bind_object),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .slots = slots};

int bind_vocab_add(PyObject *module)
{
    bind_vocab_type = bind_type_add(module, &spec);
    return bind_vocab_type ? 0 : -1;
}
