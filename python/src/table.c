/* SPDX-License-Identifier: Apache-2.0 */
/* Table: rows of a checkpoint, of new memory or of a caller's array; lookup and embed. */
#include "table.h"
#include "embla_checkpoint.h"

#include <string.h>

PyTypeObject *bind_table_type;

bool bind_table_enter(PyObject *object, const char *what)
{
    return bind_is(object, bind_table_type, what) && bind_enter(object, false);
}

bool bind_table_writable(PyObject *object)
{
    const embla_table *table = bind_table_of(object);
    if (!((bind_table *)(void *)object)->fixed) return true;
    bind_error(EMBLA_ERR_ARGUMENT,
               "this table of %lld x %zu is read-only: its rows belong to a file or to a model; "
               "open the file with copy=True, or write the rows to a table of Table.create",
               (long long)embla_table_rows(table), embla_table_dim(table));
    return false;
}

/* ---- sketches ---- */

enum {
    SEARCHES = 64,          /* a sketch takes as long as about so many searches without it */
    NUMBERS_MOST = 1 << 28, /* of a table that gets one unasked: 130 MB for the sketch */
};

void bind_table_may_change(PyObject *object)
{
    atomic_store(&((bind_table *)(void *)object)->sketched, BIND_SKETCH_NEVER);
}

/* A call begins to change rows. A sketch that exists or is being made is not used from now on. */
static void begin_write(bind_table *self)
{
    atomic_fetch_add(&self->writers, 1);
    if (atomic_load(&self->sketched) != BIND_SKETCH_NONE)
        atomic_store(&self->sketched, BIND_SKETCH_NEVER);
}

static void end_write(bind_table *self)
{
    atomic_fetch_sub(&self->writers, 1);
}

/* Makes the sketch, unless another thread does or rows change meanwhile. A writer adds to
 * `writers`, then reads `sketched`; who makes a sketch changes `sketched`, then reads `writers`:
 * all sequentially consistent, so one of them sees the other. NEVER is final: MAKING is only
 * replaced if it is still there. READY releases the pointer `sketch`. */
static embla_status make_sketch(bind_table *self)
{
    int none = BIND_SKETCH_NONE, making = BIND_SKETCH_MAKING;
    embla_status status = EMBLA_OK;
    if (!atomic_compare_exchange_strong(&self->sketched, &none, BIND_SKETCH_MAKING))
        return EMBLA_OK;
    if (atomic_load(&self->writers) > 0) {
        (void)atomic_compare_exchange_strong(&self->sketched, &making, BIND_SKETCH_NONE);
        return EMBLA_OK;
    }
    BIND_RUN(true, status = embla_sketch_new(self->base.handle, NULL, &self->sketch));
    (void)atomic_compare_exchange_strong(
        &self->sketched, &making, status == EMBLA_OK ? BIND_SKETCH_READY : BIND_SKETCH_NEVER);
    return status;
}

const embla_sketch *bind_table_sketch(PyObject *object)
{
    bind_table *self = (bind_table *)(void *)object;
    const embla_table *table = self->base.handle;
    if (atomic_load(&self->sketched) == BIND_SKETCH_NONE &&
        embla_table_rows(table) <= NUMBERS_MOST / (int64_t)embla_table_dim(table) &&
        atomic_fetch_add(&self->searches, 1) + 1 >= SEARCHES)
        (void)make_sketch(self); /* without one the search is slower, and the result the same */
    return atomic_load(&self->sketched) == BIND_SKETCH_READY ? self->sketch : NULL;
}

static PyObject *table_sketch(PyObject *object, PyObject *unused)
{
    bind_table *self = (bind_table *)(void *)object;
    (void)unused;
    if (!bind_enter(self, false)) return NULL;
    embla_status status = make_sketch(self);
    PyObject *bytes = NULL;
    if (status != EMBLA_OK)
        bind_fail(status);
    else if (atomic_load(&self->sketched) == BIND_SKETCH_NEVER)
        bind_error(EMBLA_ERR_UNSUPPORTED,
                   "this table has no sketch: its rows were changed, or can be changed through "
                   "an array or an optimizer");
    else if (atomic_load(&self->sketched) == BIND_SKETCH_READY)
        bytes = PyLong_FromSize_t(embla_sketch_bytes(self->sketch));
    else
        bind_error(EMBLA_ERR_BUSY, "another thread makes the sketch, or changes rows");
    bind_leave(self, false);
    return bytes;
}

/* ---- creating ---- */

static PyObject *table_open(PyObject *type, BIND_ARGS)
{
    PyObject *checkpoint = NULL;
    const char *tensor = NULL;
    embla_table_options options = {0};
    const bind_argument arguments[] = {
        {.name = "checkpoint", .kind = 'O', .to = &checkpoint, .required = true},
        {.name = "tensor", .kind = 's', .to = &tensor},
        {.name = "by_row", .kind = 'b', .to = &options.by_row},
        {.name = "scale", .kind = 'f', .to = &options.scale}};
    if (!bind_arguments("_open", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_is(checkpoint, bind_checkpoint_type, "checkpoint") || !bind_enter(checkpoint, false))
        return NULL;
    embla_table *table = NULL;
    embla_facts facts = {0};
    const embla_checkpoint *handle = ((bind_object *)checkpoint)->handle;
    embla_status status;
    BIND_RUN(true, status = embla_table_open(handle, tensor, &options, &table));
    bool mapped = status == EMBLA_OK && embla_checkpoint_facts(handle, &facts) == EMBLA_OK &&
                  facts.mapping && !options.by_row;
    bind_leave(checkpoint, false);
    if (status != EMBLA_OK) return bind_fail(status);
    bind_table *self = bind_new((PyTypeObject *)type);
    if (!self) {
        embla_table_free(table);
        return NULL;
    }
    self->base.handle = table;
    self->mapped = mapped;
    self->fixed = !bind_checkpoint_copies(checkpoint);
    return (PyObject *)self;
}

static PyObject *table_create(PyObject *type, BIND_ARGS)
{
    int64_t rows = 0;
    size_t dim = 0;
    const char *name = NULL;
    embla_dtype dtype = EMBLA_F32;
    embla_table_options options = {0};
    const bind_argument arguments[] = {{.name = "rows", .kind = 'l', .to = &rows, .required = true},
                                       {.name = "dim", .kind = 'z', .to = &dim, .required = true},
                                       {.name = "dtype", .kind = 's', .to = &name},
                                       {.name = "scale", .kind = 'f', .to = &options.scale}};
    if (!bind_arguments("create", values, count, names, 3, arguments, BIND_COUNT(arguments)) ||
        !bind_dtype(name, &dtype))
        return NULL;
    embla_table *table = NULL;
    embla_status status = embla_table_new(dtype, rows, dim, &options, &table);
    if (status != EMBLA_OK) return bind_fail(status);
    bind_table *self = bind_new((PyTypeObject *)type);
    if (self) self->base.handle = table;
    if (!self) embla_table_free(table);
    return (PyObject *)self;
}

/* What a two-dimensional array of a caller means as a table. */
typedef struct {
    const void *data;
    int64_t rows;
    size_t dim, stride, bytes;
    embla_dtype dtype;
} source;

/* The dtype of numbers with a format of struct; 0 if a table cannot have them. */
static embla_dtype dtype_of_format(char format)
{
    switch (format) {
    case 'f':
        return EMBLA_F32;
    case 'd':
        return EMBLA_F64;
    case 'e':
        return EMBLA_F16;
    case 'G':
        return EMBLA_BF16;
    case 'b':
        return EMBLA_I8;
    default:
        return (embla_dtype)0;
    }
}

/* True if items of an array can be stored numbers of the dtype: bytes, or items of the size of one
 * number in the order of this machine. */
static bool holds_stored(embla_dtype dtype, char format, Py_ssize_t item)
{
    size_t bytes = 0;
    if (item == 1) return true;
    return format && embla_dtype_row_bytes(dtype, 1, &bytes) == EMBLA_OK && bytes == (size_t)item;
}

/* Fills in the source. With a dtype the array has stored bytes, of rows of dim numbers. */
static bool read_source(const void *data, int rank, const Py_ssize_t *shape,
                        const Py_ssize_t *strides, char format, Py_ssize_t item, source *out)
{
    if (rank != 2 || shape[0] < 1 || shape[1] < 1 || (shape[1] > 1 && strides[1] != item) ||
        (shape[0] > 1 && strides[0] < shape[1] * item)) {
        bind_error(EMBLA_ERR_SHAPE,
                   "a table needs an array of rows x dim, at least 1 x 1, whose "
                   "rows have no gaps; this one has %d axes",
                   rank);
        return false;
    }
    out->data = data;
    out->rows = shape[0];
    out->stride = shape[0] > 1 ? (size_t)strides[0] : (size_t)(shape[1] * item);
    out->bytes = out->stride * ((size_t)shape[0] - 1) + (size_t)(shape[1] * item);
    if (!out->dtype) {
        out->dtype = dtype_of_format(format);
        if (out->dtype && out->dim > 0 && out->dim != (size_t)shape[1]) {
            bind_error(EMBLA_ERR_SHAPE, "dim is %zu, but the rows of the array have %zd numbers",
                       out->dim, shape[1]);
            return false;
        }
        out->dim = (size_t)shape[1];
    } else if (!holds_stored(out->dtype, format, item)) {
        out->dim = 0;
    } else if (out->dim == 0) {
        size_t bytes = 0;
        out->dim = (size_t)shape[1];
        embla_status status = embla_dtype_row_bytes(out->dtype, out->dim, &bytes);
        if (status != EMBLA_OK || bytes != (size_t)(shape[1] * item)) {
            bind_error(EMBLA_ERR_SHAPE,
                       "%zd numbers of %s do not take %zd bytes, as a row of the array does; give "
                       "dim, how many numbers a row has",
                       shape[1], embla_dtype_name(out->dtype), shape[1] * item);
            return false;
        }
    }
    if (out->dtype && out->dim > 0) return true;
    PyErr_Format(PyExc_TypeError,
                 "a table cannot be made of an array of the format '%c'; use float32, float64, "
                 "float16 or int8, or give stored bytes with dtype and dim",
                 format ? format : '?');
    return false;
}

static bool read_over(PyObject *array, bool writable, bind_table *self, source *out)
{
    if (PyObject_CheckBuffer(array)) {
        if (!bind_buffer_read(array, writable, "array", &self->source)) return false;
        const Py_buffer *view = &self->source.view;
        self->held = true;
        return read_source(view->buf, view->ndim, view->shape, self->source.strides,
                           bind_buffer_format(&self->source), view->itemsize, out);
    }
    bind_dlpack tensor;
    if (!bind_dlpack_read(array, &tensor)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "a table needs a buffer or a DLPack tensor, not %R",
                         Py_TYPE(array));
        return false;
    }
    self->base.keeps = tensor.capsule; /* the tensor lives as long as the table */
    if (writable && tensor.read_only) {
        PyErr_SetString(PyExc_BufferError, "this tensor is read-only; leave out writable=True");
        return false;
    }
    return read_source(tensor.data, tensor.rank, tensor.shape, tensor.strides, tensor.format,
                       tensor.size, out);
}

static PyObject *table_over(PyObject *type, BIND_ARGS)
{
    PyObject *array = NULL;
    const char *name = NULL;
    bool writable = false;
    embla_table_options options = {0};
    source from = {0};
    const bind_argument arguments[] = {
        {.name = "array", .kind = 'O', .to = &array, .required = true},
        {.name = "dtype", .kind = 's', .to = &name},
        {.name = "dim", .kind = 'z', .to = &from.dim},
        {.name = "writable", .kind = 'b', .to = &writable},
        {.name = "scale", .kind = 'f', .to = &options.scale}};
    if (!bind_arguments("over", values, count, names, 1, arguments, BIND_COUNT(arguments)) ||
        !bind_dtype(name, &from.dtype))
        return NULL;
    bind_table *self = bind_new((PyTypeObject *)type);
    if (!self) return NULL;
    embla_table *table = NULL;
    embla_status status = EMBLA_OK;
    bool good = read_over(array, writable, self, &from);
    if (good) {
        options.row_stride = from.stride;
        options.writable = writable;
        status = embla_table_view(
            &(embla_table_layout){.dtype = from.dtype, .rows = from.rows, .dim = from.dim},
            from.data, from.bytes, &options, &table);
    }
    self->base.handle = table;
    bind_table_may_change((PyObject *)self);
    if (status != EMBLA_OK) bind_fail(status);
    if (!table) Py_CLEAR(self);
    return (PyObject *)self;
}

PyObject *bind_table_borrow(PyTypeObject *type, const embla_table *table, PyObject *owner)
{
    bind_table *self = bind_new(type);
    if (!self) return NULL;
    self->base.handle = (void *)(uintptr_t)table;
    self->base.keeps = Py_NewRef(owner);
    self->borrowed = self->fixed = true;
    bind_table_may_change((PyObject *)self);
    return (PyObject *)self;
}

static void table_dealloc(PyObject *object)
{
    bind_table *self = (bind_table *)(void *)object;
    embla_sketch_free(self->sketch);
    if (!self->borrowed) embla_table_free(self->base.handle);
    if (self->held) bind_buffer_free(&self->source);
    bind_dealloc(self);
}

/* ---- lookup ---- */

typedef struct {
    const embla_table *table;
    bind_ids ids;
    int32_t *tokens; /* NULL means by row number */
    embla_lookup_options options;
} lookup_job;

static embla_status run_lookup(const lookup_job *job, void *out)
{
    if (job->tokens)
        return embla_lookup(job->table, job->tokens, job->ids.count, &job->options, out);
    return embla_lookup_rows(job->table, job->ids.values, job->ids.count, &job->options, out);
}

/* Into the caller's memory, which is also the result. */
static PyObject *lookup_into(lookup_job *job, PyObject *object)
{
    bind_output output;
    size_t dim = embla_table_dim(job->table);
    if (!bind_output_read(object, job->ids.rank, job->ids.shape, dim, &output)) return NULL;
    job->options.out_stride = output.stride;
    job->options.out_dtype = output.dtype;
    embla_status status;
    BIND_RUN(job->ids.count * dim > BIND_SMALL, status = run_lookup(job, output.data));
    bind_output_free(&output);
    return status == EMBLA_OK ? Py_NewRef(object) : bind_fail(status);
}

static PyObject *lookup_new(lookup_job *job)
{
    void *data = NULL;
    size_t dim = embla_table_dim(job->table);
    int rank = job->ids.rank;
    Py_ssize_t shape[BIND_RANK + 1];
    memcpy(shape, job->ids.shape, (size_t)rank * sizeof *shape);
    shape[rank] = (Py_ssize_t)dim;
    int dtype = job->options.out_dtype ? (int)job->options.out_dtype : EMBLA_F32;
    PyObject *array = bind_array_new(dtype, rank + 1, shape, &data);
    if (!array) return NULL;
    embla_status status;
    BIND_RUN(job->ids.count * dim > BIND_SMALL, status = run_lookup(job, data));
    if (status == EMBLA_OK) return dtype == EMBLA_BF16 ? array : bind_array_result(array);
    Py_DECREF(array);
    return bind_fail(status);
}

static PyObject *table_lookup(PyObject *self, BIND_ARGS)
{
    PyObject *ids = NULL, *out = NULL, *result = NULL;
    const char *dtype = NULL;
    bool by_row = false;
    lookup_job job;
    job.options = (embla_lookup_options){0};
    job.tokens = NULL;
    const bind_argument arguments[] = {
        {.name = "ids", .kind = 'O', .to = &ids, .required = true},
        {.name = "out", .kind = 'O', .to = &out},
        {.name = "dtype", .kind = 's', .to = &dtype},
        {.name = "by_row", .kind = 'b', .to = &by_row},
        {.name = "threads", .kind = 'i', .to = &job.options.threads}};
    if (!bind_arguments("lookup", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_dtype(dtype, &job.options.out_dtype) || !bind_enter(self, false))
        return NULL;
    job.table = bind_table_of(self);
    if (bind_ids_read(ids, "ids", &job.ids)) {
        bool through = ((bind_table *)(void *)self)->mapped && !by_row, good = true;
        if (through) {
            job.tokens = bind_ids_tokens(&job.ids, "token", embla_table_tokens(job.table));
            good = job.tokens != NULL;
        }
        if (good) result = out && out != Py_None ? lookup_into(&job, out) : lookup_new(&job);
        PyMem_Free(job.tokens);
        bind_ids_free(&job.ids);
    }
    bind_leave(self, false);
    return result;
}

/* ---- embed ---- */

/* Tokens (T) or (B, T), with the position table entered. */
static PyObject *embed_ids(const embla_table *table, const bind_ids *ids,
                           const embla_embed_options *options)
{
    void *data = NULL;
    size_t dim = embla_table_dim(table);
    if (ids->rank < 1 || ids->rank > 2)
        return bind_error(EMBLA_ERR_SHAPE, "tokens has %d axes; embed takes (T) or (B, T)",
                          ids->rank);
    size_t length = (size_t)ids->shape[ids->rank - 1];
    size_t batch = ids->rank == 2 ? (size_t)ids->shape[0] : 1;
    Py_ssize_t shape[3] = {ids->shape[0], ids->rank == 2 ? ids->shape[1] : (Py_ssize_t)dim,
                           (Py_ssize_t)dim};
    int32_t *tokens = bind_ids_tokens(ids, "token", embla_table_tokens(table));
    PyObject *array = tokens ? bind_array_new(EMBLA_F32, ids->rank + 1, shape, &data) : NULL;
    embla_status status = EMBLA_OK;
    if (array)
        BIND_RUN(ids->count * dim > BIND_SMALL,
                 status = embla_embed(table, tokens, batch, length, options, data));
    PyMem_Free(tokens);
    return bind_array_done(status, array);
}

static PyObject *table_embed(PyObject *self, BIND_ARGS)
{
    PyObject *tokens = NULL, *positions = NULL, *result = NULL;
    embla_embed_options options = {0};
    const bind_argument arguments[] = {
        {.name = "tokens", .kind = 'O', .to = &tokens, .required = true},
        {.name = "positions", .kind = 'O', .to = &positions},
        {.name = "first", .kind = 'l', .to = &options.first_position},
        {.name = "scale", .kind = 'f', .to = &options.scale},
        {.name = "sqrt_dim", .kind = 'b', .to = &options.sqrt_dim},
        {.name = "threads", .kind = 'i', .to = &options.threads}};
    bind_ids ids;
    if (!bind_arguments("embed", values, count, names, 2, arguments, BIND_COUNT(arguments)))
        return NULL;
    if (positions == Py_None) positions = NULL;
    if (!positions && options.first_position != 0)
        return bind_error(EMBLA_ERR_ARGUMENT, "first is %lld, but there is no table of positions",
                          (long long)options.first_position);
    if (positions && !bind_table_enter(positions, "positions")) return NULL;
    if (bind_enter(self, false)) {
        if (bind_ids_read(tokens, "tokens", &ids)) {
            if (positions) options.position_table = bind_table_of(positions);
            result = embed_ids(bind_table_of(self), &ids, &options);
            bind_ids_free(&ids);
        }
        bind_leave(self, false);
    }
    if (positions) bind_leave(positions, false);
    return result;
}

/* ---- pool ---- */

/* Tokens (T) -> (dim), or (B, T) -> (B, dim). */
static PyObject *pool_ids(const embla_table *table, const bind_ids *ids,
                          const embla_pool_options *options)
{
    void *data = NULL;
    size_t dim = embla_table_dim(table);
    if (ids->rank < 1 || ids->rank > 2)
        return bind_error(EMBLA_ERR_SHAPE, "ids has %d axes; pool takes (T) or (B, T)", ids->rank);
    size_t length = (size_t)ids->shape[ids->rank - 1];
    size_t batch = ids->rank == 2 ? (size_t)ids->shape[0] : 1;
    const Py_ssize_t shape[2] = {ids->rank == 2 ? ids->shape[0] : (Py_ssize_t)dim, (Py_ssize_t)dim};
    int32_t *tokens = bind_ids_tokens(ids, "token", embla_table_tokens(table));
    PyObject *array = tokens ? bind_array_new(EMBLA_F32, ids->rank, shape, &data) : NULL;
    embla_status status = EMBLA_OK;
    if (array)
        BIND_RUN(ids->count * dim > BIND_SMALL,
                 status = embla_lookup_pool(table, tokens, batch, length, options, data));
    PyMem_Free(tokens);
    return bind_array_done(status, array);
}

static PyObject *table_pool(PyObject *self, BIND_ARGS)
{
    PyObject *tokens = NULL, *result = NULL;
    int kind = EMBLA_POOL_MEAN;
    embla_pool_options options = {0};
    const bind_argument arguments[] = {
        {.name = "ids", .kind = 'O', .to = &tokens, .required = true},
        {.name = "kind", .kind = 'e', .to = &kind, .names = bind_pool_name},
        {.name = "normalize", .kind = 'b', .to = &options.normalize},
        {.name = "threads", .kind = 'i', .to = &options.threads}};
    bind_ids ids;
    if (!bind_arguments("pool", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_enter(self, false))
        return NULL;
    options.kind = (embla_pool_kind)kind;
    if (bind_ids_read(tokens, "ids", &ids)) {
        result = pool_ids(bind_table_of(self), &ids, &options);
        bind_ids_free(&ids);
    }
    bind_leave(self, false);
    return result;
}

/* ---- rows as they are stored ---- */

static PyObject *table_view(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!bind_enter(self, false)) return NULL;
    embla_table *table = bind_table_of(self);
    embla_dtype dtype = embla_table_dtype(table);
    bool plain = dtype == EMBLA_F32 || dtype == EMBLA_F64 || dtype == EMBLA_F16 ||
                 dtype == EMBLA_BF16 || dtype == EMBLA_I8;
    const void *data = embla_table_row(table, 0);
    bool writable = embla_table_data(table) && !((bind_table *)(void *)self)->fixed;
    size_t row = embla_table_row_bytes(table);
    const Py_ssize_t shape[2] = {(Py_ssize_t)embla_table_rows(table),
                                 (Py_ssize_t)(plain ? embla_table_dim(table) : row)};
    const Py_ssize_t strides[2] = {(Py_ssize_t)embla_table_row_stride(table),
                                   (Py_ssize_t)(plain ? row / embla_table_dim(table) : 1)};
    PyObject *array = NULL;
    if (writable) bind_table_may_change(self);
    if (data)
        array = bind_array_view(self, plain ? (int)dtype : BIND_U8, 2, shape, strides,
                                (void *)(uintptr_t)data, writable);
    else
        bind_error(EMBLA_ERR_UNSUPPORTED, "the rows of this table are not in memory");
    bind_leave(self, false);
    return array;
}

static PyObject *table_write(PyObject *self, BIND_ARGS)
{
    int64_t first = 0;
    PyObject *rows = NULL;
    bind_floats floats;
    size_t vectors = 0;
    const bind_argument arguments[] = {
        {.name = "first", .kind = 'l', .to = &first, .required = true},
        {.name = "values", .kind = 'O', .to = &rows, .required = true}};
    if (!bind_arguments("write", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_enter(self, false))
        return NULL;
    embla_status status = EMBLA_OK;
    embla_table *table = bind_table_of(self);
    bool good = bind_table_writable(self) &&
                bind_vectors_read(rows, "values", embla_table_dim(table), &floats, &vectors);
    if (good) {
        begin_write((bind_table *)(void *)self);
        BIND_RUN(floats.count > BIND_SMALL,
                 status = embla_table_write(table, first, vectors, floats.values));
        end_write((bind_table *)(void *)self);
        bind_floats_free(&floats);
    }
    bind_leave(self, false);
    if (status != EMBLA_OK) return bind_fail(status);
    return good ? Py_NewRef(Py_None) : NULL;
}

static const char *init_name(int n)
{
    static const char *const list[] = {"normal", "xavier"};
    return n < 2 ? list[n] : NULL;
}

static PyObject *table_init(PyObject *self, BIND_ARGS)
{
    embla_init_options options = {0};
    int kind = EMBLA_INIT_NORMAL;
    const bind_argument arguments[] = {
        {.name = "seed", .kind = 'u', .to = &options.seed},
        {.name = "kind", .kind = 'e', .to = &kind, .names = init_name},
        {.name = "spread", .kind = 'f', .to = &options.spread},
        {.name = "threads", .kind = 'i', .to = &options.threads}};
    if (!bind_arguments("init", values, count, names, 1, arguments, BIND_COUNT(arguments)) ||
        !bind_enter(self, false))
        return NULL;
    options.kind = (embla_init_kind)kind;
    embla_status status = EMBLA_ERR_ARGUMENT;
    if (bind_table_writable(self)) {
        begin_write((bind_table *)(void *)self);
        BIND_RUN(true, status = embla_table_init(bind_table_of(self), &options));
        end_write((bind_table *)(void *)self);
    }
    bind_leave(self, false);
    return status == EMBLA_OK ? Py_NewRef(Py_None) : bind_fail(status);
}

/* ---- what it says of itself ---- */

enum { ROWS, DIM, TOKENS, DTYPE, SCALE, PLACEMENT, ROW_BYTES };

static PyObject *table_fact(PyObject *self, void *which)
{
    if (!bind_enter(self, false)) return NULL;
    const embla_table *t = bind_table_of(self);
    PyObject *fact = NULL;
    switch ((intptr_t)which) {
    case ROWS:
        fact = PyLong_FromLongLong(embla_table_rows(t));
        break;
    case DIM:
        fact = PyLong_FromSize_t(embla_table_dim(t));
        break;
    case TOKENS:
        fact = PyLong_FromLongLong(embla_table_tokens(t));
        break;
    case DTYPE:
        fact = bind_text(embla_dtype_name(embla_table_dtype(t)));
        break;
    case SCALE:
        fact = PyFloat_FromDouble((double)embla_table_scale(t));
        break;
    case PLACEMENT:
        fact = bind_text(embla_placement_name(embla_table_placement(t)));
        break;
    default:
        fact = PyLong_FromSize_t(embla_table_row_bytes(t));
    }
    bind_leave(self, false);
    return fact;
}

static PyMethodDef methods[] = {
    {"_open", (PyCFunction)(void (*)(void))table_open, METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     "_open(checkpoint, tensor=None, *, by_row=False, scale=0.0)\n--\n\n"
     "A table of a checkpoint; tensor None means the token table."},
    {"create", (PyCFunction)(void (*)(void))table_create,
     METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     "create(rows, dim, dtype='f32', *, scale=0.0)\n--\n\nA new table of zeros, in memory."},
    {"over", (PyCFunction)(void (*)(void))table_over, METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     "over(array, *, dtype=None, dim=0, writable=False, scale=0.0)\n--\n\n"
     "A table that uses the memory of an array of rows x dim, without a copy.\n\n"
     "With dtype the array has stored bytes, for example of 'bf16' or 'q4_0'."},
    BIND_METHOD("lookup", table_lookup,
                "lookup(ids, out=None, *, dtype='f32', by_row=False, threads=0)\n--\n\n"
                "The rows of ids: integers of any shape, a list, a buffer or a DLPack tensor.\n\n"
                "The result has the shape of ids and one more axis, dim. It is written to out if\n"
                "that is given. An id outside the table is an IndexError; none is wrapped."),
    BIND_METHOD(
        "embed", table_embed,
        "embed(tokens, positions=None, *, first=0, scale=1.0, sqrt_dim=False, threads=0)\n"
        "--\n\nThe rows of tokens (T) or (B, T) times scale, plus rows of a position table."),
    BIND_METHOD("pool", table_pool,
                "pool(ids, kind='mean', *, normalize=False, threads=0)\n--\n\n"
                "The mean, sum, max or last of the rows of ids (T) or (B, T), without an array of\n"
                "these rows: one vector (dim), or one for each sequence (B, dim)."),
    {"view", table_view, METH_NOARGS,
     "view()\n--\n\nThe stored rows without a copy: an array for numpy.asarray or from_dlpack.\n\n"
     "Rows of blocks (q4_0, ..) are bytes. A table of a file is read-only, unless the file was\n"
     "opened with copy=True."},
    {"sketch", table_sketch, METH_NOARGS,
     "sketch()\n--\n\nMakes searches by cosine for one word faster, with the same results.\n\n"
     "A copy of all rows in 4 bits a number finds the candidates. Returns its bytes: a seventh\n"
     "of f32. It is made anyway after 64 searches of a table of up to 2^28 numbers, unless rows\n"
     "can change: Table.over, or a table whose view() is writable."},
    BIND_METHOD("write", table_write,
                "write(first, values)\n--\n\nEncodes rows of floats into the rows from first on."),
    BIND_METHOD("init", table_init,
                "init(seed=0, *, kind='normal', spread=0.0, threads=0)\n--\n\n"
                "Fills the table with random numbers: 'normal' or 'xavier'."),
    {NULL, NULL, 0, NULL}};
static PyGetSetDef getters[] = {
    {"rows", table_fact, NULL, "The number of rows.", (void *)ROWS},
    {"dim", table_fact, NULL, "The numbers in a row (embedding dimension).", (void *)DIM},
    {"tokens", table_fact, NULL, "How many tokens a lookup accepts.", (void *)TOKENS},
    {"dtype", table_fact, NULL, "How numbers are stored: 'f32', 'q4_0', ..", (void *)DTYPE},
    {"scale", table_fact, NULL, "What multiplies every stored number.", (void *)SCALE},
    {"placement", table_fact, NULL, "Where the rows are: 'ram', 'mapped' or 'view'.",
     (void *)PLACEMENT},
    {"row_bytes", table_fact, NULL, "The bytes of one stored row.", (void *)ROW_BYTES},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot slots[] = {{Py_tp_doc, "Rows x dim numbers of one dtype."},
                              {Py_tp_dealloc, table_dealloc},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, getters},
                              {0, NULL}};
static PyType_Spec spec = {.name = "embla._embla.Table",
                           .basicsize = sizeof(bind_table),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                    Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = slots};

int bind_table_add(PyObject *module)
{
    bind_table_type = bind_type_add(module, &spec);
    return bind_table_type ? 0 : -1;
}
