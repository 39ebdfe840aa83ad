/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizer: text to tokens and back. Detokenizer: text of tokens while they arrive. */
#include "tokenizer.h"

#include <string.h>

PyTypeObject *bind_tokenizer_type;
static PyTypeObject *stream_type;

typedef struct {
    bind_object base; /* handle: embla_tokenizer */
    bind_pool pool;
} tokenizer;

static const embla_tokenizer *handle_of(PyObject *self)
{
    return ((bind_object *)self)->handle;
}

/* ---- memory for calls ---- */

embla_tokenized *bind_pool_take(bind_pool *pool, const embla_tokenizer *handle)
{
    embla_tokenized *tokenized = NULL;
    for (size_t i = 0; i < BIND_SPARE && !tokenized; i++)
        tokenized = atomic_exchange(&pool->spare[i], NULL);
    if (tokenized) return tokenized;
    embla_status status = embla_tokenized_new(handle, &tokenized);
    if (status != EMBLA_OK) bind_fail(status);
    return tokenized;
}

void bind_pool_return(bind_pool *pool, embla_tokenized *tokenized)
{
    for (size_t i = 0; i < BIND_SPARE; i++) {
        embla_tokenized *none = NULL;
        if (atomic_compare_exchange_strong(&pool->spare[i], &none, tokenized)) return;
    }
    embla_tokenized_free(tokenized);
}

void bind_pool_free(bind_pool *pool)
{
    for (size_t i = 0; i < BIND_SPARE; i++)
        embla_tokenized_free(atomic_exchange(&pool->spare[i], NULL));
}

/* ---- the object ---- */

static PyObject *tokenizer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    bind_path path = {0};
    embla_tokenizer *handle = NULL;
    embla_status status;
    const bind_argument arguments[] = {
        {.name = "path", .kind = 'p', .to = &path, .required = true}};
    if (!bind_new_arguments("Tokenizer", args, kwargs, 1, arguments, 1)) return NULL;
    if (!path.text) return PyErr_Format(PyExc_TypeError, "path must not be None");
    BIND_RUN(true, status = embla_tokenizer_open_file(path.text, &handle));
    if (status != EMBLA_OK) bind_fail_path(status, path.text);
    bind_path_free(&path);
    if (status != EMBLA_OK) return NULL;
    tokenizer *self = bind_new(type);
    if (self) self->base.handle = handle;
    if (!self) embla_tokenizer_free(handle);
    return (PyObject *)self;
}

static PyObject *tokenizer_from_bytes(PyObject *type, BIND_ARGS)
{
    PyObject *data = NULL;
    const char *name = "the bytes";
    embla_tokenizer *handle = NULL;
    embla_status status;
    Py_buffer view;
    const bind_argument arguments[] = {{.name = "data", .kind = 'O', .to = &data, .required = true},
                                       {.name = "name", .kind = 's', .to = &name}};
    if (!bind_arguments("from_bytes", values, count, names, 2, arguments, BIND_COUNT(arguments)))
        return NULL;
    if (!name) return PyErr_Format(PyExc_TypeError, "name must not be None");
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) return NULL;
    BIND_RUN(true, status = embla_tokenizer_open_bytes(view.buf, (size_t)view.len, name, &handle));
    PyBuffer_Release(&view);
    if (status != EMBLA_OK) return bind_fail(status);
    tokenizer *self = bind_new((PyTypeObject *)(void *)type);
    if (self) self->base.handle = handle;
    if (!self) embla_tokenizer_free(handle);
    return (PyObject *)self;
}

static void tokenizer_dealloc(PyObject *object)
{
    tokenizer *self = (tokenizer *)(void *)object;
    bind_pool_free(&self->pool);
    embla_tokenizer_free(self->base.handle);
    bind_dealloc(self);
}

/* ---- tokens of texts ---- */

/* Lists of int are the fastest thing that Python code can use. */
static PyObject *token_list(const int32_t *tokens, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *token = PyLong_FromLong(tokens[i]);
        if (!token) Py_CLEAR(list);
        if (token) (void)PyList_SetItem(list, (Py_ssize_t)i, token);
    }
    return list;
}

static PyObject *token_lists(const embla_tokenized *tokenized, size_t texts)
{
    const int32_t *tokens = embla_tokenized_tokens(tokenized);
    const size_t *starts = embla_tokenized_starts(tokenized);
    PyObject *lists = PyList_New((Py_ssize_t)texts);
    for (size_t i = 0; lists && i < texts; i++) {
        PyObject *list = token_list(tokens + starts[i], starts[i + 1] - starts[i]);
        if (!list) Py_CLEAR(lists);
        if (list) (void)PyList_SetItem(lists, (Py_ssize_t)i, list);
    }
    return lists;
}

/* All tokens of a batch in one array, and where each text begins. */
static PyObject *token_arrays(const embla_tokenized *tokenized, size_t texts)
{
    int64_t *at = NULL;
    const Py_ssize_t shape[1] = {(Py_ssize_t)texts + 1};
    const size_t *starts = embla_tokenized_starts(tokenized);
    PyObject *begins = bind_array_new(BIND_I64, 1, shape, (void **)&at);
    for (size_t i = 0; begins && i <= texts; i++) at[i] = (int64_t)starts[i];
    PyObject *tokens = bind_array_copy(BIND_I32, embla_tokenized_count(tokenized),
                                       embla_tokenized_tokens(tokenized));
    begins = bind_array_result(begins);
    if (tokens && begins) return Py_BuildValue("NN", tokens, begins);
    Py_XDECREF(tokens);
    Py_XDECREF(begins);
    return NULL;
}

static PyObject *tokens_and_spans(const embla_tokenized *tokenized)
{
    size_t count = embla_tokenized_count(tokenized);
    const embla_text_span *spans = embla_tokenized_offsets(tokenized);
    PyObject *tokens = token_list(embla_tokenized_tokens(tokenized), count);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *span =
            Py_BuildValue("kk", (unsigned long)spans[i].begin, (unsigned long)spans[i].end);
        if (!span || PyList_Append(list, span) < 0) Py_CLEAR(list);
        Py_XDECREF(span);
    }
    if (tokens && list) return Py_BuildValue("NN", tokens, list);
    Py_XDECREF(tokens);
    Py_XDECREF(list);
    return NULL;
}

typedef struct {
    embla_tokenize_options options;
    bool arrays;
} encode_how;

static PyObject *encode_texts(tokenizer *self, const bind_texts *texts, const encode_how *how)
{
    embla_tokenized *tokenized = bind_pool_take(&self->pool, self->base.handle);
    if (!tokenized) return NULL;
    const embla_texts all = {
        .texts = texts->texts, .lengths = texts->lengths, .count = texts->count};
    embla_status status;
    if (texts->one)
        BIND_RUN(texts->lengths[0] > BIND_SMALL,
                 status =
                     embla_tokenize(tokenized, texts->texts[0], texts->lengths[0], &how->options));
    else
        BIND_RUN(true, status = embla_tokenize_batch(tokenized, &all, &how->options));
    PyObject *result;
    if (status != EMBLA_OK)
        result = bind_fail(status);
    else if (texts->one && how->options.offsets)
        result = tokens_and_spans(tokenized);
    else if (texts->one)
        result = token_list(embla_tokenized_tokens(tokenized), embla_tokenized_count(tokenized));
    else
        result = how->arrays ? token_arrays(tokenized, texts->count)
                             : token_lists(tokenized, texts->count);
    bind_pool_return(&self->pool, tokenized);
    return result;
}

static PyObject *tokenizer_encode(PyObject *self, BIND_ARGS)
{
    PyObject *text = NULL, *result = NULL;
    bind_progress progress = {.shows = true};
    encode_how how = {.options = {.progress = bind_progress_step, .context = &progress}};
    bind_texts texts;
    const bind_argument arguments[] = {
        {.name = "text", .kind = 'O', .to = &text, .required = true},
        {.name = "special", .kind = 'b', .to = &how.options.add_special},
        {.name = "plain", .kind = 'b', .to = &how.options.plain},
        {.name = "offsets", .kind = 'b', .to = &how.options.offsets},
        {.name = "arrays", .kind = 'b', .to = &how.arrays},
        {.name = "max_tokens", .kind = 'z', .to = &how.options.max_tokens},
        {.name = "strict", .kind = 'b', .to = &how.options.strict},
        {.name = "threads", .kind = 'i', .to = &how.options.threads},
        {.name = "progress", .kind = 'O', .to = &progress.function}};
    if (!bind_arguments("encode", values, count, names, 1, arguments, BIND_COUNT(arguments)) ||
        !bind_progress_check(&progress) || !bind_texts_read(text, "a text", &texts))
        return NULL;
    if (how.options.offsets && !texts.one)
        bind_error(EMBLA_ERR_ARGUMENT, "offsets=True takes one text, not a list of texts");
    else
        result = encode_texts((tokenizer *)(void *)self, &texts, &how);
    bind_progress_end(&progress);
    bind_texts_free(&texts);
    return result;
}

static PyObject *tokenizer_decode(PyObject *object, BIND_ARGS)
{
    tokenizer *self = (tokenizer *)(void *)object;
    PyObject *tokens = NULL, *result = NULL;
    bool keep_special = false;
    bind_ids ids;
    const bind_argument arguments[] = {
        {.name = "tokens", .kind = 'O', .to = &tokens, .required = true},
        {.name = "keep_special", .kind = 'b', .to = &keep_special}};
    if (!bind_arguments("decode", values, count, names, 1, arguments, 2) ||
        !bind_ids_read(tokens, "tokens", &ids))
        return NULL;
    int32_t *small = bind_ids_tokens(&ids, "token", INT32_MAX);
    embla_tokenized *tokenized = small ? bind_pool_take(&self->pool, self->base.handle) : NULL;
    if (tokenized) {
        const char *text = NULL;
        size_t length = 0;
        embla_status status;
        BIND_RUN(ids.count > BIND_SMALL, status = embla_detokenize(tokenized, small, ids.count,
                                                                   !keep_special, &text, &length));
        result = status == EMBLA_OK ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace")
                                    : bind_fail(status);
        bind_pool_return(&self->pool, tokenized);
    }
    PyMem_Free(small);
    bind_ids_free(&ids);
    return result;
}

/* ---- tokens that arrive ---- */

static PyObject *tokenizer_stream(PyObject *self, BIND_ARGS)
{
    bool keep_special = false;
    embla_detokenizer *handle = NULL;
    const bind_argument arguments[] = {{.name = "keep_special", .kind = 'b', .to = &keep_special}};
    if (!bind_arguments("stream", values, count, names, 0, arguments, 1)) return NULL;
    const embla_detokenizer_options options = {.skip_special = !keep_special};
    embla_status status = embla_detokenizer_new(handle_of(self), &options, &handle);
    if (status != EMBLA_OK) return bind_fail(status);
    bind_object *stream = bind_new(stream_type);
    if (stream) stream->handle = handle;
    if (stream) stream->keeps = Py_NewRef(self);
    if (!stream) embla_detokenizer_free(handle);
    return (PyObject *)stream;
}

static void stream_dealloc(PyObject *self)
{
    embla_detokenizer_free(((bind_object *)self)->handle); /* before the tokenizer */
    bind_dealloc(self);
}

/* The new text; leaves the handle that the call has entered. */
static PyObject *stream_text(PyObject *self, embla_status status, const char *text, size_t length)
{
    PyObject *result = status == EMBLA_OK
                           ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace")
                           : bind_fail(status);
    bind_leave(self, true);
    return result;
}

static PyObject *stream_add(PyObject *self, BIND_ARGS)
{
    PyObject *tokens = NULL, *result = NULL;
    bind_ids ids;
    const bind_argument arguments[] = {
        {.name = "tokens", .kind = 'O', .to = &tokens, .required = true}};
    if (!bind_arguments("add", values, count, names, 1, arguments, 1) ||
        !bind_ids_read(tokens, "tokens", &ids))
        return NULL;
    int32_t *small = bind_ids_tokens(&ids, "token", INT32_MAX);
    if (small && bind_enter(self, true)) {
        const char *text = NULL;
        size_t length = 0;
        embla_status status;
        BIND_RUN(ids.count > BIND_SMALL,
                 status = embla_detokenizer_add(((bind_object *)self)->handle, small, ids.count,
                                                &text, &length));
        result = stream_text(self, status, text, length);
    }
    PyMem_Free(small);
    bind_ids_free(&ids);
    return result;
}

static PyObject *stream_end(PyObject *self, PyObject *unused)
{
    const char *text = NULL;
    size_t length = 0;
    (void)unused;
    if (!bind_enter(self, true)) return NULL;
    embla_status status = embla_detokenizer_end(((bind_object *)self)->handle, &text, &length);
    return stream_text(self, status, text, length);
}

static PyObject *stream_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<embla.Detokenizer of %R>", ((bind_object *)self)->keeps);
}

/* ---- single tokens ---- */

static PyObject *tokenizer_text(PyObject *self, BIND_ARGS)
{
    int64_t token = 0;
    size_t length = 0;
    const bind_argument arguments[] = {
        {.name = "token", .kind = 'l', .to = &token, .required = true}};
    if (!bind_arguments("text", values, count, names, 1, arguments, 1)) return NULL;
    const char *text = token < 0 || token > INT32_MAX
                           ? NULL
                           : embla_tokenizer_text(handle_of(self), (int32_t)token, &length);
    if (!text) Py_RETURN_NONE;
    return bind_word(text, length);
}

static PyObject *tokenizer_token(PyObject *self, BIND_ARGS)
{
    PyObject *text = NULL;
    bind_texts texts;
    const bind_argument arguments[] = {
        {.name = "text", .kind = 'O', .to = &text, .required = true}};
    if (!bind_arguments("token", values, count, names, 1, arguments, 1) ||
        !bind_texts_read(text, "text", &texts))
        return NULL;
    int32_t token = -1;
    if (texts.one) token = embla_tokenizer_token(handle_of(self), texts.texts[0], texts.lengths[0]);
    bool one = texts.one;
    bind_texts_free(&texts);
    if (!one) return PyErr_Format(PyExc_TypeError, "text must be one str or bytes");
    if (token < 0) Py_RETURN_NONE;
    return PyLong_FromLong(token);
}

static PyObject *tokenizer_info(PyObject *self, PyObject *unused)
{
    embla_tokenizer_info i;
    (void)unused;
    embla_status status = embla_tokenizer_describe(handle_of(self), &i);
    if (status != EMBLA_OK) return bind_fail(status);
    PyObject *dict = PyDict_New();
    bool good = dict && bind_put(dict, "kind", bind_text(i.kind_name)) &&
                bind_put(dict, "source", bind_text(i.source)) &&
                bind_put(dict, "pipeline", bind_text(i.pipeline)) &&
                bind_put(dict, "vocab", PyLong_FromLongLong(i.vocab)) &&
                bind_put(dict, "added", PyLong_FromLongLong(i.added)) &&
                bind_put(dict, "tokens", PyLong_FromLongLong(i.tokens)) &&
                bind_put(dict, "merges", PyLong_FromLongLong(i.merges)) &&
                bind_put(dict, "byte_level", PyBool_FromLong(i.byte_level)) &&
                bind_put(dict, "unknown", PyLong_FromLong(i.unknown)) &&
                bind_put(dict, "max_tokens", PyLong_FromSize_t(i.max_tokens));
    if (!good) Py_CLEAR(dict);
    return dict;
}

static Py_ssize_t tokenizer_length(PyObject *self)
{
    embla_tokenizer_info info;
    embla_status status = embla_tokenizer_describe(handle_of(self), &info);
    if (status == EMBLA_OK) return (Py_ssize_t)info.tokens;
    bind_fail(status);
    return -1;
}

static PyMethodDef methods[] = {
    BIND_METHOD("encode", tokenizer_encode,
                "encode(text, *, special=False, plain=False, offsets=False, arrays=False,\n"
                "       max_tokens=0, strict=False, threads=0, progress=None)\n--\n\n"
                "The tokens of a text, or a list of them for each of several texts.\n\n"
                "offsets=True gives (tokens, spans in bytes) of one text. arrays=True gives the\n"
                "tokens of all texts in one array, and where each text begins."),
    BIND_METHOD("decode", tokenizer_decode,
                "decode(tokens, *, keep_special=False)\n--\n\nThe text of tokens."),
    BIND_METHOD("stream", tokenizer_stream,
                "stream(*, keep_special=False)\n--\n\n"
                "A Detokenizer: the text of tokens while they arrive."),
    BIND_METHOD("text", tokenizer_text, "text(token)\n--\n\nThe string of a token, or None."),
    BIND_METHOD("token", tokenizer_token,
                "token(text)\n--\n\nThe token with this string, or None."),
    {"_from_bytes", (PyCFunction)(void (*)(void))tokenizer_from_bytes,
     METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     "_from_bytes(data, name='the bytes')\n--\n\nA tokenizer of the bytes of its file."},
    {"info", tokenizer_info, METH_NOARGS, "info()\n--\n\nWhat the tokenizer is made of."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {
    {Py_tp_doc, "Tokenizer(path)\n--\n\nA tokenizer.json, SentencePiece model, GGUF file, file of "
                "tiktoken's ranks or vocab.txt, or a folder with one of them."},
    {Py_tp_new, tokenizer_new},
    {Py_tp_dealloc, tokenizer_dealloc},
    {Py_tp_methods, methods},
    {Py_sq_length, tokenizer_length},
    {0, NULL}};
static PyType_Spec spec = {.name = "embla._embla.Tokenizer",
                           .basicsize = sizeof(tokenizer),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .slots = slots};

static PyMethodDef stream_methods[] = {
    BIND_METHOD("add", stream_add,
                "add(tokens)\n--\n\n"
                "The new text of one token or several.\n\n"
                "It may be empty: a character of several tokens waits until it is complete."),
    {"end", stream_end, METH_NOARGS,
     "end()\n--\n\nThe text that was held back: U+FFFD for a character that is not complete."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot stream_slots[] = {
    {Py_tp_doc, "The text of tokens while they arrive; Tokenizer.stream() makes it.\n\n"
                "One thread at a time uses it."},
    {Py_tp_dealloc, stream_dealloc},
    {Py_tp_repr, stream_repr},
    {Py_tp_methods, stream_methods},
    {0, NULL}};
static PyType_Spec stream_spec = {.name = "embla._embla.Detokenizer",
                                  .basicsize = sizeof(bind_object),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  .slots = stream_slots};

int bind_tokenizer_add(PyObject *module)
{
    stream_type = bind_type_add(module, &stream_spec);
    if (!stream_type) return -1;
    bind_tokenizer_type = bind_type_add(module, &spec);
    return bind_tokenizer_type ? 0 : -1;
}
