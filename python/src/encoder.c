/* SPDX-License-Identifier: Apache-2.0 */
/* Encoder: texts to vectors with a static model. */
#include "tokenizer.h"

PyTypeObject *bind_encoder_type;
typedef bind_encoder encoder;

static const char *compat_name(int n)
{
    return embla_compat_name((embla_compat)n);
}

static PyObject *encoder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    bind_path path = {0}, words = {0}, fit = {0};
    int compat = EMBLA_COMPAT_AUTO;
    embla_encoder *handle = NULL;
    embla_status status;
    const bind_argument arguments[] = {
        {.name = "path", .kind = 'p', .to = &path, .required = true},
        {.name = "tokenizer", .kind = 'p', .to = &words},
        {.name = "compat", .kind = 'e', .to = &compat, .names = compat_name},
        {.name = "fit", .kind = 'p', .to = &fit}};
    if (!bind_new_arguments("Encoder", args, kwargs, 1, arguments, BIND_COUNT(arguments)))
        return NULL;
    encoder *self = NULL;
    if (!path.text) {
        PyErr_SetString(PyExc_TypeError, "path must not be None");
    } else {
        const embla_encoder_options options = {
            .tokenizer = words.text, .compat = (embla_compat)compat, .fit = fit.text};
        BIND_RUN(true, status = embla_encoder_open(path.text, &options, &handle));
        if (status != EMBLA_OK)
            bind_fail_path(status, path.text);
        else
            self = bind_new(type);
        if (self) {
            embla_encoder_info info = {0};
            if (embla_encoder_describe(handle, &info) != EMBLA_OK)
                info.dim = 0; /* it cannot fail */
            self->base.handle = handle;
            self->dim = info.dim;
        } else {
            embla_encoder_free(handle);
        }
    }
    bind_path_free(&path);
    bind_path_free(&words);
    bind_path_free(&fit);
    return (PyObject *)self;
}

static void encoder_dealloc(PyObject *object)
{
    encoder *self = (encoder *)(void *)object;
    bind_pool_free(&self->pool);
    embla_encoder_free(self->base.handle);
    bind_dealloc(self);
}

/* ---- encode ---- */

static const char *normalize_name(int n)
{
    static const char *const list[] = {"model", "yes", "no"};
    return n < 3 ? list[n] : NULL;
}

static const char *overflow_name(int n)
{
    static const char *const list[] = {"error", "truncate"};
    return n < 2 ? list[n] : NULL;
}

static embla_status run_encode(const encoder *self, const bind_texts *texts,
                               const embla_encode_options *options, float *out)
{
    const embla_texts all = {
        .texts = texts->texts, .lengths = texts->lengths, .count = texts->count};
    embla_status status;
    BIND_RUN(true, status = embla_encoder_encode(self->base.handle, &all, options, out, NULL));
    return status;
}

/* Into out if it is given, else into a new array. */
static PyObject *encode(encoder *self, const bind_texts *texts, const embla_encode_options *options,
                        PyObject *out)
{
    size_t dim = options->dim > 0 ? options->dim : self->dim;
    const Py_ssize_t leading[1] = {(Py_ssize_t)texts->count};
    const Py_ssize_t shape[2] = {texts->one ? (Py_ssize_t)dim : leading[0], (Py_ssize_t)dim};
    bind_output output;
    void *data = NULL;
    PyObject *array = NULL;
    if (out && !bind_output_read(out, texts->one ? 0 : 1, leading, dim, &output)) return NULL;
    if (out && (output.dtype != EMBLA_F32 || !bind_buffer_plain(&output.buffer))) {
        bind_output_free(&output);
        return bind_error(EMBLA_ERR_SHAPE, "out must have float32 numbers without gaps, aligned");
    }
    if (!out) array = bind_array_new(EMBLA_F32, texts->one ? 1 : 2, shape, &data);
    if (!out && !array) return NULL;
    embla_status status = run_encode(self, texts, options, out ? output.data : data);
    if (out) bind_output_free(&output);
    if (status == EMBLA_OK) return out ? Py_NewRef(out) : bind_array_result(array);
    Py_XDECREF(array);
    return bind_fail(status);
}

static PyObject *encoder_encode(PyObject *self, BIND_ARGS)
{
    PyObject *text = NULL, *out = NULL;
    bind_texts texts;
    bind_progress progress = {.shows = true};
    embla_encode_options options = {.progress = bind_progress_step, .context = &progress};
    int normalize = EMBLA_NORMALIZE_MODEL, overflow = 0;
    const bind_argument arguments[] = {
        {.name = "text", .kind = 'O', .to = &text, .required = true},
        {.name = "out", .kind = 'O', .to = &out},
        {.name = "dim", .kind = 'z', .to = &options.dim},
        {.name = "normalize", .kind = 'e', .to = &normalize, .names = normalize_name},
        {.name = "max_tokens", .kind = 'z', .to = &options.max_tokens},
        {.name = "overflow", .kind = 'e', .to = &overflow, .names = overflow_name},
        {.name = "plain", .kind = 'b', .to = &options.plain},
        {.name = "strict", .kind = 'b', .to = &options.strict},
        {.name = "threads", .kind = 'i', .to = &options.threads},
        {.name = "progress", .kind = 'O', .to = &progress.function}};
    if (!bind_arguments("encode", values, count, names, 1, arguments, BIND_COUNT(arguments)) ||
        !bind_progress_check(&progress) || !bind_texts_read(text, "a text", &texts))
        return NULL;
    options.normalize = (embla_normalize_kind)normalize;
    options.truncate = overflow == 1;
    PyObject *result = NULL;
    if (options.dim > ((encoder *)(void *)self)->dim)
        bind_error(EMBLA_ERR_RANGE, "dim is %zu, but the model has %zu numbers", options.dim,
                   ((encoder *)(void *)self)->dim);
    else
        result = encode((encoder *)(void *)self, &texts, &options, out == Py_None ? NULL : out);
    bind_progress_end(&progress);
    bind_texts_free(&texts);
    return result;
}

/* The tokens of one text, as the encoder's tokenizer gives them. */
static PyObject *encoder_tokens(PyObject *object, PyObject *text)
{
    encoder *self = (encoder *)(void *)object;
    bind_texts texts;
    PyObject *list = NULL;
    if (!bind_texts_read(text, "a text", &texts)) return NULL;
    embla_tokenized *tokenized =
        bind_pool_take(&self->pool, embla_encoder_tokenizer(self->base.handle));
    if (tokenized && texts.one) {
        embla_status status = embla_tokenize(tokenized, texts.texts[0], texts.lengths[0], NULL);
        size_t n = embla_tokenized_count(tokenized);
        const int32_t *tokens = embla_tokenized_tokens(tokenized);
        if (status != EMBLA_OK) bind_fail(status);
        if (status == EMBLA_OK) list = PyList_New(0);
        for (size_t i = 0; list && i < n; i++) {
            PyObject *token = PyLong_FromLong(tokens[i]);
            if (!token || PyList_Append(list, token) < 0) Py_CLEAR(list);
            Py_XDECREF(token);
        }
    } else if (tokenized) {
        PyErr_SetString(PyExc_TypeError, "tokens() takes one text");
    }
    if (tokenized) bind_pool_return(&self->pool, tokenized);
    bind_texts_free(&texts);
    return list;
}

static PyObject *encoder_info(PyObject *self, PyObject *unused)
{
    embla_encoder_info i;
    (void)unused;
    embla_status status = embla_encoder_describe(((bind_object *)self)->handle, &i);
    if (status != EMBLA_OK) return bind_fail(status);
    PyObject *dict = PyDict_New();
    bool good = dict && bind_put(dict, "compat", bind_text(embla_compat_name(i.compat))) &&
                bind_put(dict, "why", bind_text(i.why)) &&
                bind_put(dict, "rows", PyLong_FromLongLong(i.rows)) &&
                bind_put(dict, "dim", PyLong_FromSize_t(i.dim)) &&
                bind_put(dict, "dtype", bind_text(embla_dtype_name(i.dtype))) &&
                bind_put(dict, "normalize", PyBool_FromLong(i.normalize)) &&
                bind_put(dict, "mapping", PyBool_FromLong(i.mapping)) &&
                bind_put(dict, "weights", PyBool_FromLong(i.weights)) &&
                bind_put(dict, "components", PyLong_FromSize_t(i.components)) &&
                bind_put(dict, "subwords", PyBool_FromLong(i.subwords)) &&
                bind_put(dict, "counts", PyBool_FromLong(i.counts)) &&
                bind_put(dict, "tokens", PyLong_FromLongLong(i.tokens));
    if (!good) Py_CLEAR(dict);
    return dict;
}

static PyObject *encoder_dim(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(((encoder *)(void *)self)->dim);
}

static PyMethodDef methods[] = {
    BIND_METHOD(
        "encode", encoder_encode,
        "encode(text, *, out=None, dim=0, normalize='model', max_tokens=0,\n"
        "       overflow='error', plain=False, strict=False, threads=0, progress=None)\n--\n\n"
        "The vector of a text (dim), or of a list of texts (n, dim).\n\n"
        "No text is truncated unless max_tokens and overflow='truncate' say so."),
    {"tokens", encoder_tokens, METH_O, "tokens($self, text, /)\n--\n\nThe tokens of a text."},
    {"info", encoder_info, METH_NOARGS, "info()\n--\n\nWhat the encoder is made of."},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef getters[] = {{"dim", encoder_dim, NULL, "The numbers of a vector.", NULL},
                                {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot slots[] = {
    {Py_tp_doc, "Encoder(path, *, tokenizer=None, compat='auto', fit=None)\n--\n\n"
                "A static model: a folder of Model2Vec or sentence-transformers, a file of "
                "WordLlama, or a checkpoint with a tokenizer. Nothing is downloaded."},
    {Py_tp_new, encoder_new},
    {Py_tp_dealloc, encoder_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL}};
static PyType_Spec spec = {.name = "embla._embla.Encoder",
                           .basicsize = sizeof(encoder),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .slots = slots};

int bind_encoder_add(PyObject *module)
{
    bind_encoder_type = bind_type_add(module, &spec);
    return bind_encoder_type ? 0 : -1;
}
