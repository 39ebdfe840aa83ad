/* SPDX-License-Identifier: Apache-2.0 */
/* Wordvec: rows of words from raw text, step by step; Subwords: rows of words that a table lacks.
 */
#include "embla_wordvec.h"

#include <math.h>

#include "table.h"

PyTypeObject *bind_wordvec_type;

/* How many negatives, for the loss of guessing. */
typedef struct {
    bind_object base; /* handle: embla_wordvec */
    size_t negatives;
} wordvec;

static embla_wordvec *handle_of(PyObject *self)
{
    return ((bind_object *)self)->handle;
}

static const char *kind_name(int n)
{
    return embla_wordvec_kind_name((embla_wordvec_kind)n);
}

static const char *clean_name(int n)
{
    return embla_wordvec_clean_name((embla_wordvec_clean)n);
}

static PyObject *wordvec_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    bind_path text = {0};
    int kind = EMBLA_WORDVEC_SKIPGRAM, clean = EMBLA_WORDVEC_CLEAN_PLAIN;
    bind_progress progress = {0};
    embla_wordvec *handle = NULL;
    embla_wordvec_options o = {.progress = bind_progress_step, .context = &progress};
    const bind_argument arguments[] = {
        {.name = "text", .kind = 'p', .to = &text, .required = true},
        {.name = "method", .kind = 'e', .to = &kind, .names = kind_name},
        {.name = "clean", .kind = 'e', .to = &clean, .names = clean_name},
        {.name = "dim", .kind = 'z', .to = &o.dim},
        {.name = "window", .kind = 'z', .to = &o.window},
        {.name = "negatives", .kind = 'z', .to = &o.negatives},
        {.name = "epochs", .kind = 'z', .to = &o.epochs},
        {.name = "rate", .kind = 'd', .to = &o.rate},
        {.name = "sample", .kind = 'd', .to = &o.sample},
        {.name = "min_count", .kind = 'l', .to = &o.min_count},
        {.name = "max_words", .kind = 'l', .to = &o.max_words},
        {.name = "min_gram", .kind = 'z', .to = &o.min_gram},
        {.name = "max_gram", .kind = 'z', .to = &o.max_gram},
        {.name = "buckets", .kind = 'l', .to = &o.buckets},
        {.name = "phrases", .kind = 'd', .to = &o.phrases},
        {.name = "seed", .kind = 'u', .to = &o.seed},
        {.name = "hogwild", .kind = 'b', .to = &o.hogwild},
        {.name = "threads", .kind = 'i', .to = &o.threads},
        {.name = "progress", .kind = 'O', .to = &progress.function}};
    if (!bind_new_arguments("Wordvec", args, kwargs, 1, arguments, BIND_COUNT(arguments)))
        return NULL;
    if (!text.text) return PyErr_Format(PyExc_TypeError, "text must not be None");
    o.kind = (embla_wordvec_kind)kind;
    o.clean = (embla_wordvec_clean)clean;
    embla_status status;
    BIND_RUN(true, status = embla_wordvec_new(text.text, &o, &handle));
    wordvec *self = NULL;
    if (status != EMBLA_OK)
        bind_fail_path(status, text.text);
    else
        self = bind_new(type);
    if (self) {
        self->base.handle = handle;
        self->negatives = o.negatives > 0 ? o.negatives : 5;
    } else {
        embla_wordvec_free(handle);
    }
    bind_path_free(&text);
    return (PyObject *)self;
}

static void wordvec_dealloc(PyObject *self)
{
    embla_wordvec_free(handle_of(self));
    bind_dealloc(self);
}

/* Makes up to `most` steps; returns (step, steps, epochs, rate, loss). */
static PyObject *wordvec_steps(PyObject *self, BIND_ARGS)
{
    int64_t most = 1;
    embla_wordvec_info info = {0};
    const bind_argument arguments[] = {{.name = "most", .kind = 'l', .to = &most}};
    if (!bind_arguments("steps", values, count, names, 1, arguments, 1) || !bind_enter(self, true))
        return NULL;
    embla_status status = embla_wordvec_describe(handle_of(self), &info);
    embla_wordvec_report r = info.progress;
    PyThreadState *state = PyEval_SaveThread();
    for (int64_t i = 0; status == EMBLA_OK && i < most && r.step < r.steps; i++)
        status = embla_wordvec_step(handle_of(self), &r);
    PyEval_RestoreThread(state);
    bind_leave(self, true);
    if (status != EMBLA_OK) return bind_fail(status);
    return Py_BuildValue("LLddd", (long long)r.step, (long long)r.steps, r.epochs, r.rate, r.loss);
}

/* At first every probability is one half: of the word, and of each negative. */
embla_status bind_wordvec_filmed(PyObject *training, bind_filmed *out)
{
    const wordvec *w = (const wordvec *)(const void *)training;
    embla_wordvec_info info = {0};
    embla_status status = embla_wordvec_describe(w->base.handle, &info);
    *out = (bind_filmed){.vocab = embla_wordvec_vocab(w->base.handle),
                         .first = info.progress.step,
                         .guess = (1 + (double)w->negatives) * log(2)};
    return status == EMBLA_OK ? embla_wordvec_table(w->base.handle, &out->table) : status;
}

static PyObject *wordvec_counts(PyObject *self, PyObject *unused)
{
    embla_wordvec_info info = {0};
    (void)unused;
    embla_status status = embla_wordvec_describe(handle_of(self), &info);
    if (status != EMBLA_OK) return bind_fail(status);
    const embla_wordvec_text t = info.text;
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "bytes", (long long)t.bytes, "tokens",
                         (long long)t.tokens, "known", (long long)t.known, "words",
                         (long long)t.words, "grams", (long long)t.grams, "phrases",
                         (long long)t.phrases, "memory", (long long)t.memory);
}

typedef embla_status (*path_function)(void *handle, const char *path);

static embla_status do_save(void *handle, const char *path)
{
    return embla_wordvec_save(handle, path);
}

static embla_status do_load(void *handle, const char *path)
{
    return embla_wordvec_load(handle, path);
}

static embla_status do_write(void *handle, const char *path)
{
    return embla_wordvec_write(handle, path);
}

static PyObject *with_path(PyObject *self, const char *function, path_function act, BIND_ARGS)
{
    bind_path path = {0};
    const bind_argument arguments[] = {
        {.name = "path", .kind = 'p', .to = &path, .required = true}};
    if (!bind_arguments(function, values, count, names, 1, arguments, 1)) return NULL;
    if (!path.text) return PyErr_Format(PyExc_TypeError, "path must not be None");
    embla_status status = EMBLA_OK;
    bool good = bind_enter(self, true);
    if (good) {
        BIND_RUN(true, status = act(handle_of(self), path.text));
        bind_leave(self, true);
        if (status != EMBLA_OK) bind_fail_path(status, path.text);
    }
    bind_path_free(&path);
    return good && status == EMBLA_OK ? Py_NewRef(Py_None) : NULL;
}

static PyObject *wordvec_save(PyObject *self, BIND_ARGS)
{
    return with_path(self, "save", do_save, values, count, names);
}

static PyObject *wordvec_load(PyObject *self, BIND_ARGS)
{
    return with_path(self, "load", do_load, values, count, names);
}

static PyObject *wordvec_write(PyObject *self, BIND_ARGS)
{
    return with_path(self, "write", do_write, values, count, names);
}

static PyMethodDef methods[] = {
    BIND_METHOD("steps", wordvec_steps,
                "steps(most=1)\n--\n\n"
                "Makes steps: (step, steps, epochs, rate, loss)."),
    {"counts", wordvec_counts, METH_NOARGS, "counts()\n--\n\nWhat the text has."},
    BIND_METHOD("save", wordvec_save, "save(path)\n--\n\nSaves the state, to continue from."),
    BIND_METHOD("load", wordvec_load, "load(path)\n--\n\nRestores a saved state."),
    BIND_METHOD("write", wordvec_write, "write(path)\n--\n\nWrites the rows and the words."),
    {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {{Py_tp_doc, "Word vectors in training; use embla.words."},
                              {Py_tp_new, wordvec_new},
                              {Py_tp_dealloc, wordvec_dealloc},
                              {Py_tp_methods, methods},
                              {0, NULL}};
static PyType_Spec spec = {.name = "embla._embla.Wordvec",
                           .basicsize = sizeof(wordvec),
                           .flags = Py_TPFLAGS_DEFAULT,
                           .slots = slots};

/* ---- subwords ---- */

static PyObject *subwords_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *checkpoint = NULL;
    embla_subwords *handle = NULL;
    embla_status status;
    const bind_argument arguments[] = {
        {.name = "checkpoint", .kind = 'O', .to = &checkpoint, .required = true}};
    if (!bind_new_arguments("Subwords", args, kwargs, 1, arguments, 1) ||
        !bind_is(checkpoint, bind_checkpoint_type, "checkpoint"))
        return NULL;
    BIND_RUN(true, status = embla_subwords_open(((bind_object *)checkpoint)->handle, &handle));
    if (status != EMBLA_OK) return bind_fail(status);
    bind_object *self = bind_new(type);
    if (!self) {
        embla_subwords_free(handle);
        return NULL;
    }
    self->handle = handle;
    self->keeps = Py_NewRef(checkpoint); /* must outlive the handle */
    return (PyObject *)self;
}

static void subwords_dealloc(PyObject *self)
{
    embla_subwords_free(((bind_object *)self)->handle);
    bind_dealloc(self);
}

static PyObject *subwords_vector(PyObject *self, PyObject *word)
{
    const embla_subwords *handle = ((bind_object *)self)->handle;
    bind_texts texts;
    void *data = NULL;
    if (!bind_texts_read(word, "a word", &texts)) return NULL;
    const Py_ssize_t shape[1] = {(Py_ssize_t)embla_subwords_dim(handle)};
    PyObject *array = texts.one ? bind_array_new(EMBLA_F32, 1, shape, &data) : NULL;
    embla_status status = EMBLA_OK;
    if (array)
        status = embla_subwords_vector(handle, texts.texts[0], texts.lengths[0], data, NULL);
    else if (!texts.one)
        PyErr_SetString(PyExc_TypeError, "vector() takes one word");
    bind_texts_free(&texts);
    return bind_array_done(status, array);
}

static PyMethodDef subwords_methods[] = {
    {"vector", subwords_vector, METH_O,
     "vector($self, word, /)\n--\n\nThe mean of the rows of a word's n-grams."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot subwords_slots[] = {
    {Py_tp_doc, "Subwords(checkpoint)\n--\n\nRows of character n-grams."},
    {Py_tp_new, subwords_new},
    {Py_tp_dealloc, subwords_dealloc},
    {Py_tp_methods, subwords_methods},
    {0, NULL}};
static PyType_Spec subwords_spec = {.name = "embla._embla.Subwords",
                                    .basicsize = sizeof(bind_object),
                                    .flags = Py_TPFLAGS_DEFAULT,
                                    .slots = subwords_slots};

int bind_wordvec_add(PyObject *module)
{
    bind_wordvec_type = bind_type_add(module, &spec);
    if (!bind_wordvec_type) return -1;
    return bind_type_only(module, &subwords_spec);
}
