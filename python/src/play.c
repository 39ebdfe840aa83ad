/* SPDX-License-Identifier: Apache-2.0 */
/* The page to learn with, as bytes: a model or a table, texts, and the module, which the Python
 * layer finds.
 */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "embla_lab.h"

/* The page so far; it grows without the GIL. */
typedef struct {
    char *bytes;
    size_t count, room;
    bool full; /* there was no memory */
} page;

static bool take(void *context, const void *bytes, size_t count)
{
    page *p = context;
    if (count > p->room - p->count) {
        size_t room = p->room + count > SIZE_MAX / 2 ? SIZE_MAX : 2 * (p->room + count);
        char *more = realloc(p->bytes, room);
        p->full = !more;
        if (!more) return false;
        p->bytes = more;
        p->room = room;
    }
    memcpy(p->bytes + p->count, bytes, count);
    p->count += count;
    return true;
}

static PyObject *result_of(const page *p, const embla_play_report *r)
{
    return Py_BuildValue("{s:y#,s:O,s:L,s:L,s:n,s:s,s:s}", "page", p->bytes, (Py_ssize_t)p->count,
                         "model", r->decoder ? Py_True : Py_False, "rows", (long long)r->rows, "of",
                         (long long)r->all, "dim", (Py_ssize_t)r->dim, "dtype",
                         embla_dtype_name(r->dtype), "stored", r->stored);
}

/* Writes it; `options` has all but the module. */
static PyObject *write_page(embla_play_options *options, PyObject *module, PyObject *checkpoint)
{
    char *bytes = NULL;
    Py_ssize_t count = 0;
    page p = {.count = 0};
    embla_play_report report = {.rows = 0};
    embla_status status;
    if (PyBytes_AsStringAndSize(module, &bytes, &count) < 0) return NULL;
    options->module = bytes;
    options->module_bytes = (size_t)count;
    if (checkpoint && !bind_enter(checkpoint, false)) return NULL;
    if (checkpoint) options->model = ((bind_object *)checkpoint)->handle;
    BIND_RUN(true, status = embla_play_write(options, take, &p, &report));
    if (checkpoint) bind_leave(checkpoint, false);
    PyObject *result = NULL;
    if (status == EMBLA_OK)
        result = result_of(&p, &report);
    else if (p.full)
        result = PyErr_NoMemory();
    else
        result = bind_fail(status);
    free(p.bytes);
    return result;
}

static PyObject *play_page(PyObject *self, BIND_ARGS)
{
    PyObject *module = NULL, *checkpoint = NULL;
    bind_path demo = {0};
    embla_play_options options = {.rows = 0};
    const bind_argument arguments[] = {
        {.name = "checkpoint", .kind = 'O', .to = &checkpoint},
        {.name = "module", .kind = 'O', .to = &module, .required = true},
        {.name = "demo", .kind = 'p', .to = &demo, .required = true},
        {.name = "name", .kind = 's', .to = &options.name},
        {.name = "rows", .kind = 'n', .to = &options.rows},
        {.name = "title", .kind = 's', .to = &options.title}};
    PyObject *result = NULL;
    (void)self;
    if (!bind_arguments("play", values, count, names, 1, arguments, BIND_COUNT(arguments)))
        return NULL;
    if (checkpoint == Py_None) checkpoint = NULL;
    options.demo = demo.text;
    if (!checkpoint || bind_is(checkpoint, bind_checkpoint_type, "checkpoint"))
        result = write_page(&options, module, checkpoint);
    bind_path_free(&demo);
    return result;
}

static PyMethodDef functions[] = {
    BIND_METHOD("play_page", play_page,
                "play_page(checkpoint=None, *, module, demo, name=None, rows=0, title=None)\n"
                "--\n\nA page to learn with, and what of the model is in it."),
    {NULL, NULL, 0, NULL}};

int bind_play_add(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
