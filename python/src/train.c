/* SPDX-License-Identifier: Apache-2.0 */
/* Train: a training of a decoder model on a text, step by step. The Python layer runs the steps. */
#include "embla_train.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

PyTypeObject *bind_train_type;

typedef struct {
    bind_object base; /* handle: embla_train */
    embla_gpt *gpt;
    embla_corpus *corpus;
    const char **words; /* of all tokens, for tokenizer.json; NULL for a file of tokens */
    double spread;
} training;

/* What a training is made of. */
typedef struct {
    embla_gpt_shape shape;
    embla_train_options options;
    embla_corpus_options corpus;
    double spread;
} settings;

static void release(training *t)
{
    embla_train_free(t->base.handle);
    embla_gpt_free(t->gpt);
    embla_corpus_free(t->corpus);
    free(t->words);
}

/* ---- making ---- */

/* The names of all tokens. */
static embla_status set_words(training *t, int64_t vocab)
{
    int64_t known = embla_corpus_vocab(t->corpus);
    t->words = calloc((size_t)vocab, sizeof *t->words);
    if (!t->words) return EMBLA_ERR_MEMORY;
    for (int64_t i = 0; i < vocab && i < known; i++)
        t->words[i] = embla_corpus_name(t->corpus, (int32_t)i);
    return EMBLA_OK;
}

/* Makes corpus, model and training; runs without the GIL. On failure the caller releases. */
static embla_status make(training *t, const char *text, settings *s)
{
    embla_train *train = NULL;
    bool tokens = s->corpus.kind == EMBLA_CORPUS_TOKENS;
    embla_status status = embla_corpus_open(text, &s->corpus, &t->corpus);
    if (status != EMBLA_OK) return status;
    int64_t needed = embla_corpus_vocab(t->corpus);
    if (!tokens || s->shape.vocab < needed) s->shape.vocab = needed;
    t->spread = s->spread;
    status = embla_gpt_new(&s->shape, s->options.seed, s->spread, &t->gpt);
    if (status == EMBLA_OK && !tokens) status = set_words(t, s->shape.vocab);
    if (status == EMBLA_OK) status = embla_train_new(t->gpt, t->corpus, &s->options, &train);
    t->base.handle = train;
    return status;
}

static PyObject *make_object(PyTypeObject *type, const char *text, settings *s,
                             const char *checkpoint)
{
    training *t = bind_new(type);
    if (!t) return NULL;
    embla_status status;
    BIND_RUN(true, status = make(t, text, s));
    if (status == EMBLA_OK && checkpoint)
        BIND_RUN(true, status = embla_train_load(t->base.handle, checkpoint));
    if (status == EMBLA_OK) return (PyObject *)t;
    bind_fail_path(status, text);
    Py_DECREF(t);
    return NULL;
}

static const char *corpus_name(int n)
{
    static const char *const list[] = {"characters", "bytes", "tokens", "words"};
    return n < 4 ? list[n] : NULL;
}

static const char *schedule_name(int n)
{
    return embla_schedule_name((embla_schedule_kind)n);
}

static const char *position_name(int n)
{
    return embla_positions_name((embla_positions_kind)n);
}

static const char *engine_name(int n)
{
    static const char *const list[] = {"auto", "none", "library"};
    return n < 3 ? list[n] : NULL;
}

static PyObject *train_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    bind_path text = {0};
    const char *name = "gpt2-mini";
    size_t dim = 0, layers = 0, heads = 0, batch = 0, length = 0;
    int64_t steps = 0, warm_up = -1;
    double rate = 0, final = -1, dropout = -1, clip = -1, decay = -1;
    int kind = -1, unit = EMBLA_CORPUS_CHARACTERS, positions = -1, untied = -1, engine = 0;
    bool bf16 = false;
    embla_gpt_preset preset = {0};
    settings s = {.spread = 0};
    const bind_argument arguments[] = {
        {.name = "text", .kind = 'p', .to = &text, .required = true},
        {.name = "preset", .kind = 's', .to = &name},
        {.name = "dim", .kind = 'z', .to = &dim},
        {.name = "layers", .kind = 'z', .to = &layers},
        {.name = "heads", .kind = 'z', .to = &heads},
        {.name = "batch", .kind = 'z', .to = &batch},
        {.name = "length", .kind = 'z', .to = &length},
        {.name = "positions", .kind = 'e', .to = &positions, .names = position_name},
        {.name = "untied", .kind = 'i', .to = &untied},
        {.name = "engine", .kind = 'e', .to = &engine, .names = engine_name},
        {.name = "steps", .kind = 'n', .to = &steps},
        {.name = "rate", .kind = 'd', .to = &rate},
        {.name = "final_rate", .kind = 'd', .to = &final},
        {.name = "warm_up", .kind = 'n', .to = &warm_up},
        {.name = "schedule", .kind = 'e', .to = &kind, .names = schedule_name},
        {.name = "dropout", .kind = 'd', .to = &dropout},
        {.name = "clip", .kind = 'd', .to = &clip},
        {.name = "decay", .kind = 'd', .to = &decay},
        {.name = "unit", .kind = 'e', .to = &unit, .names = corpus_name},
        {.name = "words", .kind = 'n', .to = &s.corpus.max_words},
        {.name = "documents", .kind = 'b', .to = &s.corpus.documents},
        {.name = "validation", .kind = 'd', .to = &s.corpus.validation},
        {.name = "seed", .kind = 'u', .to = &s.options.seed},
        {.name = "bf16", .kind = 'b', .to = &bf16},
        {.name = "threads", .kind = 'i', .to = &s.options.threads}};
    if (!bind_new_arguments("Train", args, kwargs, 2, arguments, BIND_COUNT(arguments)))
        return NULL;
    embla_status status = embla_gpt_preset_find(name, &preset);
    PyObject *self = NULL;
    if (status != EMBLA_OK || !text.text) {
        if (!text.text)
            PyErr_SetString(PyExc_TypeError, "text must not be None");
        else
            bind_fail(status);
    } else {
        embla_train_options *o = &s.options;
        s.shape = preset.shape;
        s.spread = preset.spread;
        const embla_train_options asked = *o;
        status =
            embla_gpt_preset_options(&preset, steps, rate > 0 ? rate : -1,
                                     kind >= 0 ? (embla_schedule_kind)kind : preset.schedule, o);
        o->seed = asked.seed;
        o->threads = asked.threads;
        if (batch) o->batch = batch;
        if (length) o->length = length;
        if (decay >= 0) o->decay = decay;
        if (clip >= 0) o->clip = clip;
        o->compute = bf16 ? EMBLA_BF16 : EMBLA_F32;
        if (warm_up >= 0) o->schedule.warm_up = warm_up;
        if (final >= 0) o->schedule.final = final;
        o->engine = (embla_train_engine)engine;
        if (layers) s.shape.layers = layers;
        if (length) s.shape.positions = length;
        if (positions >= 0) s.shape.position_kind = (embla_positions_kind)positions;
        if (untied >= 0) s.shape.untied = untied > 0;
        embla_gpt_resize(&s.shape, dim, heads);
        if (dropout >= 0) s.shape.dropout = dropout;
        s.corpus.kind = (embla_corpus_kind)unit;
        s.corpus.seed = o->seed;
        if (strcmp(name, "microgpt") == 0 && unit != EMBLA_CORPUS_TOKENS) s.corpus.documents = true;
        self = status == EMBLA_OK ? make_object(type, text.text, &s, NULL) : bind_fail(status);
    }
    bind_path_free(&text);
    return self;
}

/* What a checkpoint says: its step and its note. */
static PyObject *train_saved(PyObject *type, BIND_ARGS)
{
    bind_path path = {0};
    PyObject *result = NULL;
    const bind_argument arguments[] = {
        {.name = "path", .kind = 'p', .to = &path, .required = true}};
    (void)type;
    if (!bind_arguments("saved", values, count, names, 1, arguments, 1)) return NULL;
    embla_train_saved *saved = PyMem_Malloc(sizeof *saved);
    if (!saved || !path.text) {
        PyErr_SetString(saved ? PyExc_TypeError : PyExc_MemoryError, "no path, or no memory");
    } else {
        embla_status status = embla_train_describe_saved(path.text, saved);
        result = status == EMBLA_OK
                     ? Py_BuildValue("{s:L,s:L,s:N}", "step", (long long)saved->step, "steps",
                                     (long long)saved->options.schedule.steps, "note",
                                     bind_text(saved->note))
                     : bind_fail_path(status, path.text);
    }
    PyMem_Free(saved);
    bind_path_free(&path);
    return result;
}

static PyObject *train_resume(PyObject *type, BIND_ARGS)
{
    bind_path path = {0}, text = {0};
    double spread = 0;
    int threads = 0;
    PyObject *self = NULL;
    const bind_argument arguments[] = {{.name = "path", .kind = 'p', .to = &path, .required = true},
                                       {.name = "text", .kind = 'p', .to = &text, .required = true},
                                       {.name = "spread", .kind = 'd', .to = &spread},
                                       {.name = "threads", .kind = 'i', .to = &threads}};
    if (!bind_arguments("resume", values, count, names, 2, arguments, BIND_COUNT(arguments)))
        return NULL;
    embla_train_saved *saved = PyMem_Malloc(sizeof *saved);
    if (!saved || !path.text || !text.text) {
        PyErr_SetString(saved ? PyExc_TypeError : PyExc_MemoryError, "no path, or no memory");
    } else {
        embla_status status = embla_train_describe_saved(path.text, saved);
        if (status == EMBLA_OK) {
            settings s = {.shape = saved->shape,
                          .options = saved->options,
                          .corpus = saved->corpus,
                          .spread = spread};
            s.options.threads = threads;
            self = make_object((PyTypeObject *)type, text.text, &s, path.text);
        } else {
            bind_fail_path(status, path.text);
        }
    }
    PyMem_Free(saved);
    bind_path_free(&path);
    bind_path_free(&text);
    return self;
}

/* The path of the newest checkpoint of a folder, or None. */
static PyObject *train_newest(PyObject *type, BIND_ARGS)
{
    bind_path folder = {0};
    char path[PATH_MAX];
    const bind_argument arguments[] = {
        {.name = "folder", .kind = 'p', .to = &folder, .required = true}};
    (void)type;
    if (!bind_arguments("newest", values, count, names, 1, arguments, 1)) return NULL;
    if (!folder.text) return PyErr_Format(PyExc_TypeError, "folder must not be None");
    embla_status status = embla_train_newest(folder.text, path, sizeof path, NULL);
    bind_path_free(&folder);
    if (status == EMBLA_OK) return PyUnicode_DecodeFSDefault(path);
    if (status == EMBLA_ERR_NOT_FOUND || status == EMBLA_ERR_IO) Py_RETURN_NONE;
    return bind_fail(status);
}

static void train_dealloc(PyObject *self)
{
    release((training *)(void *)self);
    bind_dealloc(self);
}

/* ---- steps ---- */

static PyObject *train_step(PyObject *self, PyObject *unused)
{
    embla_train_report r = {0};
    embla_status status;
    (void)unused;
    if (!bind_enter(self, true)) return NULL;
    BIND_RUN(true, status = embla_train_step(((bind_object *)self)->handle, &r));
    bind_leave(self, true);
    if (status != EMBLA_OK) return bind_fail(status);
    return Py_BuildValue("LdddLN", (long long)r.step, r.loss, r.rate, r.norm, (long long)r.tokens,
                         PyBool_FromLong(r.skipped));
}

/* The validation loss; None if the text has no validation part. */
static PyObject *train_validate(PyObject *self, BIND_ARGS)
{
    size_t batches = 0;
    double loss = 0;
    embla_status status;
    const bind_argument arguments[] = {{.name = "batches", .kind = 'z', .to = &batches}};
    if (!bind_arguments("validate", values, count, names, 1, arguments, 1) ||
        !bind_enter(self, true))
        return NULL;
    BIND_RUN(true, status = embla_train_validate(((bind_object *)self)->handle, batches, &loss));
    bind_leave(self, true);
    if (status == EMBLA_ERR_NOT_FOUND) Py_RETURN_NONE;
    return status == EMBLA_OK ? PyFloat_FromDouble(loss) : bind_fail(status);
}

/* Saves the state to folder/checkpoints, and the model to folder. */
static PyObject *train_save(PyObject *self, BIND_ARGS)
{
    bind_path folder = {0};
    const char *note = "";
    size_t keep = 2;
    char path[PATH_MAX];
    training *t = (training *)(void *)self;
    const bind_argument arguments[] = {
        {.name = "folder", .kind = 'p', .to = &folder, .required = true},
        {.name = "note", .kind = 's', .to = &note},
        {.name = "keep", .kind = 'z', .to = &keep}};
    if (!bind_arguments("save", values, count, names, 1, arguments, BIND_COUNT(arguments)))
        return NULL;
    if (!folder.text) return PyErr_Format(PyExc_TypeError, "folder must not be None");
    embla_status status = EMBLA_OK;
    bool good = snprintf(path, sizeof path, "%s/checkpoints", folder.text) < (int)sizeof path;
    if (!good) bind_error(EMBLA_ERR_ARGUMENT, "the path of the folder is too long");
    good = good && bind_enter(self, true);
    if (good) {
        BIND_RUN(true, status = embla_gpt_save(t->gpt, folder.text, t->words));
        if (status == EMBLA_OK)
            BIND_RUN(true, status = embla_train_checkpoint(t->base.handle, path, keep, note));
        bind_leave(self, true);
    }
    if (status != EMBLA_OK) bind_fail(status);
    bind_path_free(&folder);
    return good && status == EMBLA_OK ? Py_NewRef(Py_None) : NULL;
}

static PyObject *train_check(PyObject *self, PyObject *unused)
{
    embla_status status;
    (void)unused;
    if (!bind_enter(self, true)) return NULL;
    BIND_RUN(true, status = embla_train_check(((bind_object *)self)->handle));
    bind_leave(self, true);
    return status == EMBLA_OK ? Py_NewRef(Py_None) : bind_fail(status);
}

static PyObject *train_steps(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(embla_train_steps(((bind_object *)self)->handle));
}

static PyObject *train_total(PyObject *self, void *unused)
{
    (void)unused;
    embla_train_options o;
    embla_status status = embla_train_describe(((bind_object *)self)->handle, &o);
    return status == EMBLA_OK ? PyLong_FromLongLong(o.schedule.steps) : bind_fail(status);
}

static PyObject *train_spread(PyObject *self, void *unused)
{
    (void)unused;
    return PyFloat_FromDouble(((training *)(void *)self)->spread);
}

static PyObject *train_seed(PyObject *self, void *unused)
{
    (void)unused;
    embla_train_options o;
    embla_status status = embla_train_describe(((bind_object *)self)->handle, &o);
    return status == EMBLA_OK ? PyLong_FromUnsignedLongLong(o.seed) : bind_fail(status);
}

static PyObject *train_positions(PyObject *self, void *unused)
{
    (void)unused;
    embla_gpt_shape shape;
    embla_status status = embla_gpt_describe(((training *)(void *)self)->gpt, &shape);
    return status == EMBLA_OK ? PyLong_FromSize_t(shape.positions) : bind_fail(status);
}

static PyObject *train_bos(PyObject *self, void *unused)
{
    (void)unused;
    int32_t bos = embla_corpus_bos(((training *)(void *)self)->corpus);
    return bos >= 0 ? PyLong_FromLong(bos) : Py_NewRef(Py_None);
}

static PyObject *train_generate(PyObject *self, BIND_ARGS)
{
    return bind_generate(self, ((training *)(void *)self)->gpt, values, count, names);
}

embla_status bind_train_filmed(PyObject *training_object, bind_filmed *out)
{
    const training *t = (const training *)(const void *)training_object;
    const embla_table *table = embla_gpt_tokens(t->gpt);
    *out = (bind_filmed){.table = table,
                         .words = t->words,
                         .first = embla_train_steps(t->base.handle),
                         .guess = log((double)embla_table_rows(table))};
    return EMBLA_OK;
}

/* Names of presets. */
static PyObject *train_presets(PyObject *type, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    (void)type, (void)unused;
    for (size_t n = 0; list && embla_gpt_preset_name(n); n++) {
        PyObject *name = bind_text(embla_gpt_preset_name(n));
        if (!name || PyList_Append(list, name) < 0) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

#define CLASS_METHOD(name, function, doc)                                                          \
    {                                                                                              \
        name, (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS | METH_CLASS, \
            doc                                                                                    \
    }

static PyMethodDef methods[] = {
    CLASS_METHOD("resume", train_resume,
                 "resume(path, text, *, spread=0.0, threads=0)\n--\n\n"
                 "A training as it was when a checkpoint was saved."),
    CLASS_METHOD("saved", train_saved, "saved(path)\n--\n\nThe step and the note of a checkpoint."),
    CLASS_METHOD("newest", train_newest,
                 "newest(folder)\n--\n\nThe newest checkpoint of a folder, or None."),
    {"presets", train_presets, METH_NOARGS | METH_CLASS, "presets()\n--\n\nNames of presets."},
    {"step", train_step, METH_NOARGS,
     "step()\n--\n\nMakes one step: (step, loss, rate, norm, tokens, skipped)."},
    BIND_METHOD("validate", train_validate,
                "validate(batches=0)\n--\n\nThe validation loss, or None without such a part."),
    BIND_METHOD("save", train_save,
                "save(folder, *, note='', keep=2)\n--\n\n"
                "Saves the model, and a checkpoint to continue from."),
    BIND_METHOD("_generate", train_generate,
                "_generate(prompt, tokens=256, *, ends=None, temperature=0.8, top_k=0, top_p=0.0,\n"
                "          min_p=0.0, seed=0, text=0, threads=0)\n--\n\n"
                "Tokens drawn after a prompt with the present weights, and why drawing stopped."),
    {"check", train_check, METH_NOARGS,
     "check()\n--\n\nRaises RangeError if the training has diverged."},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef getters[] = {
    {"steps", train_steps, NULL, "The number of steps made.", NULL},
    {"total", train_total, NULL, "The number of steps of the whole training.", NULL},
    {"spread", train_spread, NULL, "The spread of the initial weights.", NULL},
    {"seed", train_seed, NULL, "The seed of the training.", NULL},
    {"positions", train_positions, NULL, "The positions of the model.", NULL},
    {"bos", train_bos, NULL, "The token that begins a document; None if there is none.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot slots[] = {{Py_tp_doc, "A training of a model on a text; use embla.train."},
                              {Py_tp_new, train_new},
                              {Py_tp_dealloc, train_dealloc},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, getters},
                              {0, NULL}};
static PyType_Spec spec = {.name = "embla._embla.Train",
                           .basicsize = sizeof(training),
                           .flags = Py_TPFLAGS_DEFAULT,
                           .slots = slots};

int bind_train_add(PyObject *module)
{
    bind_train_type = bind_type_add(module, &spec);
    return bind_train_type ? 0 : -1;
}
