/* SPDX-License-Identifier: Apache-2.0 */
/* Gpt: a decoder model, its tensors and its token table; drawing and predicting tokens. */
#include "embla_train.h"
#include "table.h"

#include <math.h>
#include <string.h>

PyTypeObject *bind_gpt_type;

static embla_gpt *handle_of(PyObject *self)
{
    return ((bind_object *)self)->handle;
}

static PyObject *gpt_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *source = NULL;
    embla_gpt *handle = NULL;
    embla_status status;
    const bind_argument arguments[] = {
        {.name = "checkpoint", .kind = 'O', .to = &source, .required = true}};
    if (!bind_new_arguments("Gpt", args, kwargs, 1, arguments, 1) ||
        !bind_is(source, bind_checkpoint_type, "checkpoint") || !bind_enter(source, false))
        return NULL;
    BIND_RUN(true, status = embla_gpt_open(((bind_object *)source)->handle, &handle));
    bind_leave(source, false);
    if (status != EMBLA_OK) return bind_fail(status);
    bind_object *self = bind_new(type);
    if (self) self->handle = handle;
    if (!self) embla_gpt_free(handle);
    return (PyObject *)self;
}

static void gpt_dealloc(PyObject *self)
{
    embla_gpt_free(handle_of(self));
    bind_dealloc(self);
}

/* ---- generating ---- */

typedef struct {
    const embla_gpt *gpt;
    embla_sample_options sample;
    int32_t *tokens; /* the prompt, then what is drawn */
    size_t prompt, most, places;
    const bind_ids *ends;
    size_t made;
    const char *stopped;
    embla_decoder *decoder;
    embla_head head;
    float *hidden;
    size_t fed;
} generation;

static bool is_end(const generation *g, int32_t token)
{
    for (size_t i = 0; i < g->ends->count; i++)
        if (g->ends->values[i] == token) return true;
    return false;
}

static embla_status feed(generation *g, const int32_t *tokens, size_t count)
{
    const embla_decoder_options options = {.threads = g->sample.threads};
    embla_status status = embla_decoder_append(g->decoder, tokens, count, &options, g->hidden);
    if (status == EMBLA_OK) g->fed += count;
    return status;
}

/* The positions are full: starts again with the last half of them. */
static embla_status slide(generation *g, size_t used)
{
    size_t half = g->places > 1 ? g->places / 2 : 1;
    embla_decoder_reset(g->decoder);
    g->fed = 0;
    return feed(g, g->tokens + used - half, half);
}

/* Draws tokens until an end, the limit, or Ctrl-C. Runs without the GIL. */
static embla_status draw(generation *g, int64_t text)
{
    bind_progress none = {0};
    embla_status status =
        g->prompt > g->places ? slide(g, g->prompt) : feed(g, g->tokens, g->prompt);
    g->stopped = "tokens";
    for (size_t i = 0; status == EMBLA_OK && i < g->most; i++) {
        embla_choice choice = {.token = -1};
        embla_sample_options options = g->sample;
        options.step = (int64_t)((uint64_t)text << 32) + (int64_t)i;
        if (i % 16 == 0 && !bind_progress_step(&none, "generate", 0, 1)) return EMBLA_ERR_STOPPED;
        if (i > 0 && g->fed == g->places) {
            if (g->ends->count > 0) {
                g->stopped = "positions";
                break;
            }
            status = slide(g, g->prompt + i);
        } else if (i > 0) {
            status = feed(g, &g->tokens[g->prompt + i - 1], 1);
        }
        if (status == EMBLA_OK)
            status = embla_head_sample(&g->head, g->hidden, 1, &options, &choice);
        if (status != EMBLA_OK || choice.token < 0) break;
        if (is_end(g, choice.token)) {
            g->stopped = "end";
            break;
        }
        g->tokens[g->prompt + i] = choice.token;
        g->made = i + 1;
    }
    return status;
}

static embla_status prepare(generation *g)
{
    size_t wanted = g->prompt + g->most;
    embla_gpt_shape shape;
    embla_status status = embla_gpt_describe(g->gpt, &shape);
    if (status != EMBLA_OK) return status;
    g->places = wanted < shape.positions ? wanted : shape.positions;
    status = embla_decoder_new(g->gpt, g->places, &g->decoder);
    return status == EMBLA_OK ? embla_decoder_head(g->decoder, &g->head) : status;
}

static PyObject *generate(generation *g, const bind_ids *prompt, int64_t text)
{
    embla_gpt_shape shape;
    PyObject *list = NULL;
    embla_status described = embla_gpt_describe(g->gpt, &shape);
    if (described != EMBLA_OK) return bind_fail(described);
    if (prompt->count < 1 || g->most > INT32_MAX || prompt->count > INT32_MAX)
        return bind_error(EMBLA_ERR_ARGUMENT,
                          "the prompt needs at least 1 token; it has %zu, and "
                          "%zu are to be drawn",
                          prompt->count, g->most);
    g->prompt = prompt->count;
    int32_t *tokens = bind_ids_tokens(prompt, "token", shape.vocab);
    if (!tokens) return NULL;
    g->tokens = PyMem_Realloc(tokens, (g->prompt + g->most + 1) * sizeof *tokens);
    g->hidden = PyMem_Malloc(shape.dim * sizeof *g->hidden);
    if (!g->tokens || !g->hidden) {
        PyErr_NoMemory();
    } else {
        embla_status status = prepare(g);
        if (status == EMBLA_OK) BIND_RUN(true, status = draw(g, text));
        if (status != EMBLA_OK) bind_fail(status);
        if (status == EMBLA_OK) list = PyList_New((Py_ssize_t)g->made);
        for (size_t i = 0; list && i < g->made; i++) {
            PyObject *token = PyLong_FromLong(g->tokens[g->prompt + i]);
            if (!token) Py_CLEAR(list);
            if (token) (void)PyList_SetItem(list, (Py_ssize_t)i, token);
        }
    }
    embla_decoder_free(g->decoder);
    PyMem_Free(g->tokens ? g->tokens : tokens);
    PyMem_Free(g->hidden);
    return list ? Py_BuildValue("Ns", list, g->stopped) : NULL;
}

PyObject *bind_generate(PyObject *self, const embla_gpt *gpt, BIND_ARGS)
{
    PyObject *prompt = NULL, *ends = NULL, *result = NULL;
    int64_t text = 0;
    bind_ids ids, stops = {.count = 0};
    generation g = {.gpt = gpt, .most = 256, .sample = {.temperature = 0.8}, .ends = &stops};
    const bind_argument arguments[] = {
        {.name = "prompt", .kind = 'O', .to = &prompt, .required = true},
        {.name = "tokens", .kind = 'z', .to = &g.most},
        {.name = "ends", .kind = 'O', .to = &ends},
        {.name = "temperature", .kind = 'd', .to = &g.sample.temperature},
        {.name = "top_k", .kind = 'z', .to = &g.sample.top_k},
        {.name = "top_p", .kind = 'd', .to = &g.sample.top_p},
        {.name = "min_p", .kind = 'd', .to = &g.sample.min_p},
        {.name = "seed", .kind = 'u', .to = &g.sample.seed},
        {.name = "text", .kind = 'l', .to = &text},
        {.name = "threads", .kind = 'i', .to = &g.sample.threads}};
    stops.values = stops.few;
    if (!bind_arguments("_generate", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_enter(self, false))
        return NULL;
    bool good = !ends || ends == Py_None || bind_ids_read(ends, "ends", &stops);
    if (good && bind_ids_read(prompt, "prompt", &ids)) {
        result = generate(&g, &ids, text);
        bind_ids_free(&ids);
    }
    bind_ids_free(&stops);
    bind_leave(self, false);
    return result;
}

static PyObject *gpt_generate(PyObject *self, BIND_ARGS)
{
    return bind_generate(self, handle_of(self), values, count, names);
}

/* ---- predicting ---- */

static PyObject *predicted(const embla_prediction *list, size_t count)
{
    PyObject *result = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; result && i < count; i++) {
        PyObject *one = Py_BuildValue("(idd)", (int)list[i].token, (double)list[i].logit,
                                      exp(list[i].log_probability));
        if (!one) Py_CLEAR(result);
        if (one) (void)PyList_SetItem(result, (Py_ssize_t)i, one);
    }
    return result;
}

static PyObject *predict(const embla_gpt *gpt, const bind_ids *prompt,
                         embla_predict_options *options)
{
    embla_gpt_shape shape;
    PyObject *result = NULL;
    embla_status status = embla_gpt_describe(gpt, &shape);
    if (status != EMBLA_OK) return bind_fail(status);
    if (options->top > (uint64_t)shape.vocab) options->top = (size_t)shape.vocab;
    int32_t *tokens = bind_ids_tokens(prompt, "token", shape.vocab);
    if (!tokens) return NULL;
    embla_prediction *list = PyMem_Malloc((options->top + 1) * sizeof *list);
    if (list) {
        embla_predict_results results = {.next = list};
        BIND_RUN(true, status = embla_gpt_predict(gpt, tokens, prompt->count, options, &results));
        result = status == EMBLA_OK ? predicted(list, options->top) : bind_fail(status);
    } else {
        PyErr_NoMemory();
    }
    PyMem_Free(list);
    PyMem_Free(tokens);
    return result;
}

static PyObject *gpt_predict(PyObject *self, BIND_ARGS)
{
    PyObject *prompt = NULL, *result = NULL;
    bind_ids ids;
    embla_predict_options options = {.top = 10, .temperature = 1};
    const bind_argument arguments[] = {
        {.name = "prompt", .kind = 'O', .to = &prompt, .required = true},
        {.name = "top", .kind = 'z', .to = &options.top},
        {.name = "temperature", .kind = 'd', .to = &options.temperature},
        {.name = "threads", .kind = 'i', .to = &options.threads}};
    if (!bind_arguments("_predict", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_enter(self, false))
        return NULL;
    if (options.temperature == 0) {
        bind_error(EMBLA_ERR_ARGUMENT, "temperature is 0; it must be above 0");
    } else if (bind_ids_read(prompt, "prompt", &ids)) {
        result = predict(handle_of(self), &ids, &options);
        bind_ids_free(&ids);
    }
    bind_leave(self, false);
    return result;
}

/* ---- what it is made of ---- */

static PyObject *gpt_shape(PyObject *self, PyObject *unused)
{
    embla_gpt_shape shape, *s = &shape;
    (void)unused;
    embla_status status = embla_gpt_describe(handle_of(self), &shape);
    if (status != EMBLA_OK) return bind_fail(status);
    return Py_BuildValue(
        "{s:L,s:n,s:n,s:n,s:n,s:n,s:n,s:N,s:L,s:s}", "vocab", (long long)s->vocab, "dim",
        (Py_ssize_t)s->dim, "layers", (Py_ssize_t)s->layers, "heads", (Py_ssize_t)s->heads,
        "kv_heads", (Py_ssize_t)s->kv_heads, "hidden", (Py_ssize_t)s->hidden, "positions",
        (Py_ssize_t)s->positions, "tied", PyBool_FromLong(!s->untied), "parameters",
        (long long)embla_gpt_parameters(handle_of(self)), "family", embla_gpt_family(s));
}

static PyObject *text_ends(const embla_checkpoint *checkpoint, int64_t tokens)
{
    embla_tokenizer *tokenizer = NULL;
    embla_text_ends found;
    PyObject *begin = NULL, *ends = NULL;
    BIND_RUN(true, {
        if (embla_tokenizer_open(checkpoint, &tokenizer) != EMBLA_OK) tokenizer = NULL;
        embla_text_ends_find(checkpoint, tokenizer, tokens, &found);
    });
    embla_tokenizer_free(tokenizer);
    begin = found.begin < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(found.begin);
    ends = PyList_New((Py_ssize_t)found.end_count);
    for (size_t i = 0; ends && i < found.end_count; i++) {
        PyObject *one = PyLong_FromLong(found.ends[i]);
        if (!one) Py_CLEAR(ends);
        if (one) (void)PyList_SetItem(ends, (Py_ssize_t)i, one);
    }
    if (begin && ends) return Py_BuildValue("(NNN)", begin, ends, PyBool_FromLong(found.leads));
    Py_XDECREF(begin);
    Py_XDECREF(ends);
    return NULL;
}

static PyObject *gpt_ends(PyObject *self, PyObject *source)
{
    embla_gpt_shape shape;
    if (!bind_is(source, bind_checkpoint_type, "checkpoint")) return NULL;
    embla_status status = embla_gpt_describe(handle_of(self), &shape);
    if (status != EMBLA_OK) return bind_fail(status);
    if (!bind_enter(source, false)) return NULL;
    PyObject *result = text_ends(((bind_object *)source)->handle, shape.vocab);
    bind_leave(source, false);
    return result;
}

/* Tensors by name, as views of the model's memory. */
static PyObject *gpt_tensors(PyObject *self, PyObject *unused)
{
    PyObject *dict = PyDict_New();
    embla_gpt_tensor t;
    (void)unused;
    for (size_t n = 0; dict && n < embla_gpt_tensor_count(handle_of(self)); n++) {
        if (embla_gpt_tensor_at(handle_of(self), n, &t) != EMBLA_OK) break;
        const Py_ssize_t shape[2] = {(Py_ssize_t)t.rows, (Py_ssize_t)t.dim};
        PyObject *view =
            bind_array_result(bind_array_view(self, EMBLA_F32, 2, shape, NULL, t.values, false));
        if (!bind_put(dict, t.name, view)) Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *gpt_table(PyObject *self, PyObject *type)
{
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, bind_table_type))
        return PyErr_Format(PyExc_TypeError, "the argument must be Table or a class of it");
    return bind_table_borrow((PyTypeObject *)type, embla_gpt_tokens(handle_of(self)), self);
}

static PyMethodDef methods[] = {
    BIND_METHOD("_generate", gpt_generate,
                "_generate(prompt, tokens=256, *, ends=None, temperature=0.8, top_k=0, top_p=0.0,\n"
                "          min_p=0.0, seed=0, text=0, threads=0)\n--\n\n"
                "Tokens drawn after a prompt, and why drawing stopped."),
    BIND_METHOD("_predict", gpt_predict,
                "_predict(prompt, top=10, *, temperature=1.0, threads=0)\n--\n\n"
                "The most probable tokens after a prompt: id, logit, probability of each."),
    {"shape", gpt_shape, METH_NOARGS, "shape()\n--\n\nThe sizes of the model."},
    {"tensors", gpt_tensors, METH_NOARGS, "tensors()\n--\n\nIts tensors by name, without a copy."},
    {"_ends", gpt_ends, METH_O,
     "_ends($self, checkpoint, /)\n--\n\n"
     "The token that begins a text, those that end one, and whether the first leads a prompt."},
    {"_table", gpt_table, METH_O, "_table($self, type, /)\n--\n\nThe token table."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {{Py_tp_doc, "Gpt(checkpoint)\n--\n\nA decoder model."},
                              {Py_tp_new, gpt_new},
                              {Py_tp_dealloc, gpt_dealloc},
                              {Py_tp_methods, methods},
                              {0, NULL}};
static PyType_Spec spec = {.name = "embla._embla.Gpt",
                           .basicsize = sizeof(bind_object),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .slots = slots};

int bind_gpt_add(PyObject *module)
{
    bind_gpt_type = bind_type_add(module, &spec);
    return bind_gpt_type ? 0 : -1;
}
