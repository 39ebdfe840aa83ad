/* SPDX-License-Identifier: Apache-2.0 */
/* Film: how the rows of a training move. The Python layer asks after each step whether a moment is
 * due, and writes the page at the end.
 */
#include <string.h>

#include "embla_lab.h"

#include "table.h"

enum { ROWS = 300 };

static embla_film *handle_of(PyObject *self)
{
    return ((bind_object *)self)->handle;
}

/* False after an exception. */
static bool is_training(PyObject *object)
{
    return PyObject_TypeCheck(object, bind_train_type) ||
           bind_is(object, bind_wordvec_type, "training");
}

/* What a film needs of a training that was entered. */
static embla_status read_training(PyObject *training, bind_filmed *out)
{
    if (PyObject_TypeCheck(training, bind_train_type)) return bind_train_filmed(training, out);
    return bind_wordvec_filmed(training, out);
}

/* Makes a film of the first rows. */
static embla_status make(const bind_filmed *what, const char *title, int64_t steps,
                         embla_film **out)
{
    const char *words[ROWS] = {NULL};
    int64_t rows = embla_table_rows(what->table);
    embla_film_options options = {.row_count = (size_t)(rows < ROWS ? rows : ROWS),
                                  .words = words,
                                  .first = what->first,
                                  .steps = steps > what->first ? steps : what->first,
                                  .guess = what->guess,
                                  .title = title};
    for (size_t i = 0; i < options.row_count; i++)
        words[i] = what->words   ? what->words[i]
                   : what->vocab ? embla_vocab_word(what->vocab, (int32_t)i, NULL)
                                 : NULL;
    return embla_film_new(what->table, &options, out);
}

static PyObject *film_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *training = NULL;
    const char *title = NULL;
    int64_t steps = 0;
    bind_filmed what = {0};
    embla_film *handle = NULL;
    const bind_argument arguments[] = {
        {.name = "training", .kind = 'O', .to = &training, .required = true},
        {.name = "steps", .kind = 'n', .to = &steps},
        {.name = "title", .kind = 's', .to = &title}};
    if (!bind_new_arguments("Film", args, kwargs, 1, arguments, BIND_COUNT(arguments)) ||
        !is_training(training) || !bind_enter(training, true))
        return NULL;
    embla_status status = read_training(training, &what);
    if (status == EMBLA_OK) status = make(&what, title, steps, &handle);
    bind_leave(training, true);
    if (status != EMBLA_OK) return bind_fail(status);
    bind_object *self = bind_new(type);
    if (self) {
        self->handle = handle;
        self->keeps = Py_NewRef(training);
    } else {
        embla_film_free(handle);
    }
    return (PyObject *)self;
}

static void film_dealloc(PyObject *self)
{
    embla_film_free(handle_of(self));
    bind_dealloc(self);
}

static PyObject *film_due(PyObject *self, BIND_ARGS)
{
    int64_t step = 0;
    double loss = 0;
    const bind_argument arguments[] = {
        {.name = "step", .kind = 'l', .to = &step, .required = true},
        {.name = "loss", .kind = 'd', .to = &loss, .required = true}};
    if (!bind_arguments("due", values, count, names, 2, arguments, 2) || !bind_enter(self, true))
        return NULL;
    bool due = embla_film_due(handle_of(self), step, loss);
    bind_leave(self, true);
    return PyBool_FromLong(due);
}

static PyObject *film_add(PyObject *self, BIND_ARGS)
{
    int64_t step = 0;
    bind_filmed what = {0};
    const char *text = NULL;
    embla_status status = EMBLA_OK;
    PyObject *training = ((bind_object *)self)->keeps;
    const bind_argument arguments[] = {{.name = "step", .kind = 'l', .to = &step, .required = true},
                                       {.name = "text", .kind = 's', .to = &text}};
    if (!bind_arguments("add", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_enter(self, true))
        return NULL;
    bool good = bind_enter(training, true);
    if (good) {
        status = read_training(training, &what);
        if (status == EMBLA_OK)
            status =
                embla_film_add(handle_of(self), what.table, step, text, text ? strlen(text) : 0);
        bind_leave(training, true);
    }
    bind_leave(self, true);
    if (!good) return NULL;
    return status == EMBLA_OK ? Py_NewRef(Py_None) : bind_fail(status);
}

static PyObject *film_write(PyObject *self, BIND_ARGS)
{
    bind_path path = {0};
    embla_status status = EMBLA_OK;
    const bind_argument arguments[] = {
        {.name = "path", .kind = 'p', .to = &path, .required = true}};
    if (!bind_arguments("write", values, count, names, 1, arguments, 1)) return NULL;
    if (!path.text) return PyErr_Format(PyExc_TypeError, "path must not be None");
    bool good = bind_enter(self, true);
    if (good) {
        BIND_RUN(true, status = embla_film_write(handle_of(self), path.text, false));
        bind_leave(self, true);
        if (status != EMBLA_OK) bind_fail_path(status, path.text);
    }
    bind_path_free(&path);
    return good && status == EMBLA_OK ? Py_NewRef(Py_None) : NULL;
}

/* The step of the last moment; -1 means none. */
static PyObject *film_step(PyObject *self, void *unused)
{
    embla_film_info info = {0};
    (void)unused;
    embla_status status = embla_film_describe(handle_of(self), &info);
    return status == EMBLA_OK ? PyLong_FromLongLong(info.step) : bind_fail(status);
}

static PyObject *film_moments(PyObject *self, void *unused)
{
    embla_film_info info = {0};
    (void)unused;
    embla_status status = embla_film_describe(handle_of(self), &info);
    return status == EMBLA_OK ? PyLong_FromSize_t(info.moments) : bind_fail(status);
}

static PyMethodDef methods[] = {
    BIND_METHOD("due", film_due,
                "due(step, loss)\n--\n\nNotes the loss of a step; whether a moment is due."),
    BIND_METHOD("add", film_add,
                "add(step, text=None)\n--\n\n"
                "Adds the rows as they are now, and what the model writes."),
    BIND_METHOD("write", film_write, "write(path)\n--\n\nWrites the page to a new file."),
    {NULL, NULL, 0, NULL}};
static PyGetSetDef getters[] = {
    {"step", film_step, NULL, "The step of the last moment; -1 means none.", NULL},
    {"moments", film_moments, NULL, "The number of moments.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot slots[] = {{Py_tp_doc, "A film of a training; use film= of embla.train."},
                              {Py_tp_new, film_new},
                              {Py_tp_dealloc, film_dealloc},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, getters},
                              {0, NULL}};
static PyType_Spec spec = {.name = "embla._embla.Film",
                           .basicsize = sizeof(bind_object),
                           .flags = Py_TPFLAGS_DEFAULT,
                           .slots = slots};

int bind_film_add(PyObject *module)
{
    return bind_type_only(module, &spec);
}
