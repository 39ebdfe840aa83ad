/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets and Ticket: rows of a store that arrive while the caller computes.
 *
 * A Ticket keeps the memory that rows are written to, and its Tickets. Whoever drops it cancels it,
 * and nothing is written after that. Tickets keep their store open.
 */
#include "embla_store.h"

#include "bind.h"

#include <string.h>

typedef struct {
    bind_object base; /* handle: embla_tickets; keeps: the store, entered until the end */
    size_t dim;
} tickets;

typedef struct {
    bind_object base; /* handle: the tickets' handle while it is under way; keeps: the Tickets */
    embla_ticket number;
    PyObject *result;   /* what wait returns */
    bind_output output; /* of the caller's memory, if held */
    bool held;
} ticket;

static PyTypeObject *ticket_type;

/* ---- tickets ---- */

static PyObject *tickets_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *store = NULL;
    embla_tickets_options o = {0};
    bind_path hot = {0};
    embla_tickets *handle = NULL;
    const bind_argument arguments[] = {
        {.name = "store", .kind = 'O', .to = &store, .required = true},
        {.name = "max_rows", .kind = 'z', .to = &o.max_rows},
        {.name = "max_bytes", .kind = 'z', .to = &o.max_bytes},
        {.name = "max_tickets", .kind = 'z', .to = &o.max_tickets},
        {.name = "hot_bytes", .kind = 'z', .to = &o.hot_bytes},
        {.name = "hot_file", .kind = 'p', .to = &hot}};
    if (!bind_new_arguments("Tickets", args, kwargs, 1, arguments, BIND_COUNT(arguments)))
        return NULL;
    o.hot_file = hot.text;
    tickets *self = NULL;
    if (bind_is(store, bind_store_type, "store") && bind_enter(store, false)) {
        embla_store_info info = {0};
        embla_status status = embla_store_describe(((bind_object *)store)->handle, &info);
        if (status == EMBLA_OK)
            status = embla_tickets_new(((bind_object *)store)->handle, &o, &handle);
        if (status != EMBLA_OK) bind_fail(status);
        if (status == EMBLA_OK) self = bind_new(type);
        if (self) {
            self->base.handle = handle;
            self->base.keeps = Py_NewRef(store); /* stays entered: it cannot be closed */
            self->dim = info.format.dim;
        } else {
            embla_tickets_free(handle);
            bind_leave(store, false);
        }
    }
    bind_path_free(&hot);
    return (PyObject *)self;
}

static void tickets_dealloc(PyObject *self)
{
    bind_object *base = (bind_object *)self;
    embla_tickets_free(base->handle);
    if (base->keeps) bind_leave(base->keeps, false);
    bind_dealloc(self);
}

/* Fills in where the rows go: the caller's memory, or a new array. */
static bool place_rows(ticket *t, const bind_ids *ids, size_t dim, PyObject *out,
                       embla_store_lookup_options *lookup, void **data)
{
    if (out) {
        if (!bind_output_read(out, ids->rank, ids->shape, dim, &t->output)) return false;
        t->held = true;
        t->result = Py_NewRef(out);
        *data = t->output.data;
        lookup->token_stride = t->output.stride;
        lookup->out_dtype = t->output.dtype;
        return true;
    }
    Py_ssize_t shape[BIND_RANK + 1];
    memcpy(shape, ids->shape, (size_t)ids->rank * sizeof *shape);
    shape[ids->rank] = (Py_ssize_t)dim;
    PyObject *array = bind_array_new(EMBLA_F32, ids->rank + 1, shape, data);
    t->result = array ? bind_array_result(array) : NULL;
    return t->result != NULL;
}

static PyObject *tickets_submit(PyObject *self, BIND_ARGS)
{
    PyObject *rows = NULL, *out = NULL;
    embla_store_lookup_options lookup = {0};
    bind_ids ids;
    void *data = NULL;
    const bind_argument arguments[] = {{.name = "rows", .kind = 'O', .to = &rows, .required = true},
                                       {.name = "out", .kind = 'O', .to = &out},
                                       {.name = "scale", .kind = 'f', .to = &lookup.scale}};
    if (!bind_arguments("submit", values, count, names, 2, arguments, BIND_COUNT(arguments)) ||
        !bind_ids_read(rows, "rows", &ids))
        return NULL;
    ticket *t = bind_new(ticket_type);
    bool good = t && place_rows(t, &ids, ((tickets *)(void *)self)->dim,
                                out == Py_None ? NULL : out, &lookup, &data);
    if (good) {
        const embla_ticket_request request = {
            .rows = ids.values, .count = ids.count, .lookup = &lookup, .out = data};
        embla_status status;
        BIND_RUN(true,
                 status = embla_ticket_submit(((bind_object *)self)->handle, &request, &t->number));
        good = status == EMBLA_OK;
        if (good) t->base.handle = ((bind_object *)self)->handle;
        if (good) t->base.keeps = Py_NewRef(self);
        if (!good) bind_fail(status);
    }
    bind_ids_free(&ids);
    if (!good) Py_CLEAR(t);
    return (PyObject *)t;
}

static PyObject *tickets_stats(PyObject *self, PyObject *unused)
{
    embla_tickets_info s = {0};
    (void)unused;
    embla_status status = embla_tickets_describe(((bind_object *)self)->handle, &s);
    if (status != EMBLA_OK) return bind_fail(status);
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "tickets",
                         (long long)s.tickets, "cancelled", (long long)s.cancelled, "busy",
                         (long long)s.busy, "asked", (long long)s.asked, "hot", (long long)s.hot,
                         "reads", (long long)s.reads, "bytes_read", (long long)s.bytes_read,
                         "bytes_useful", (long long)s.bytes_useful, "blocked", (long long)s.blocked,
                         "p50", (long long)s.p50, "p99", (long long)s.p99);
}

/* ---- a ticket ---- */

/* The ticket has ended: its memory is the caller's again. */
static void end_ticket(ticket *t)
{
    if (t->held) bind_output_free(&t->output);
    t->held = false;
    t->base.handle = NULL;
    Py_CLEAR(t->base.keeps);
}

static void ticket_dealloc(PyObject *self)
{
    ticket *t = (ticket *)(void *)self;
    if (t->base.handle) {
        embla_status status = embla_ticket_cancel(t->base.handle, t->number);
        (void)status; /* there is such a ticket */
    }
    end_ticket(t);
    Py_CLEAR(t->result);
    bind_dealloc(self);
}

/* One thread at a time; false after an exception. A ticket that has ended has no handle. */
static bool enter_ticket(PyObject *self)
{
    ticket *t = (ticket *)(void *)self;
    if (t->result) return bind_enter(self, true);
    bind_error(EMBLA_ERR_ARGUMENT, "this ticket was cancelled, or its rows could not be read");
    return false;
}

static PyObject *ticket_done(PyObject *self, PyObject *unused)
{
    ticket *t = (ticket *)(void *)self;
    bool done = true;
    embla_status status = EMBLA_OK;
    (void)unused;
    if (!t->base.handle && t->result) return PyBool_FromLong(1);
    if (!enter_ticket(self)) return NULL;
    if (t->base.handle) status = embla_ticket_done(t->base.handle, t->number, &done);
    bind_leave(self, true);
    return status == EMBLA_OK ? PyBool_FromLong(done) : bind_fail(status);
}

static PyObject *ticket_wait(PyObject *self, PyObject *unused)
{
    ticket *t = (ticket *)(void *)self;
    embla_status status = EMBLA_OK;
    PyObject *result = NULL;
    (void)unused;
    if (!t->base.handle && t->result) return Py_NewRef(t->result);
    if (!enter_ticket(self)) return NULL;
    if (t->base.handle) BIND_RUN(true, status = embla_ticket_wait(t->base.handle, t->number));
    if (status == EMBLA_OK) result = Py_NewRef(t->result);
    if (status != EMBLA_OK) bind_fail(status);
    end_ticket(t);
    if (!result) Py_CLEAR(t->result);
    bind_leave(self, true);
    return result;
}

static PyObject *ticket_cancel(PyObject *self, PyObject *unused)
{
    ticket *t = (ticket *)(void *)self;
    (void)unused;
    if (!t->base.handle) return Py_NewRef(Py_None); /* it has ended */
    if (!enter_ticket(self)) return NULL;
    embla_status status = embla_ticket_cancel(t->base.handle, t->number);
    end_ticket(t);
    Py_CLEAR(t->result);
    bind_leave(self, true);
    return status == EMBLA_OK ? Py_NewRef(Py_None) : bind_fail(status);
}

static PyObject *tickets_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<embla.Tickets of %R>", ((bind_object *)self)->keeps);
}

static PyObject *ticket_repr(PyObject *self)
{
    const ticket *t = (ticket *)(void *)self;
    if (t->base.handle) return PyUnicode_FromString("<embla.Ticket, under way>");
    return PyUnicode_FromString(t->result ? "<embla.Ticket, done>" : "<embla.Ticket, ended>");
}

/* ---- types ---- */

static PyMethodDef tickets_methods[] = {
    BIND_METHOD("submit", tickets_submit,
                "submit(rows, out=None, *, scale=1.0)\n--\n\n"
                "Starts to fetch rows, and returns a Ticket at once.\n\n"
                "BusyError means that too many are under way: wait for one first."),
    {"stats", tickets_stats, METH_NOARGS, "stats()\n--\n\nCounts, bytes and waiting times (ns)."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot tickets_slots[] = {
    {Py_tp_doc,
     "Tickets(store, *, max_rows=0, max_bytes=0, max_tickets=0, hot_bytes=0, hot_file=None)\n--\n\n"
     "Fetches rows of a store while the caller computes. The store cannot be closed\n"
     "as long as it is used."},
    {Py_tp_new, tickets_new},
    {Py_tp_dealloc, tickets_dealloc},
    {Py_tp_repr, tickets_repr},
    {Py_tp_methods, tickets_methods},
    {0, NULL}};
static PyType_Spec tickets_spec = {.name = "embla._embla.Tickets",
                                   .basicsize = sizeof(tickets),
                                   .flags = Py_TPFLAGS_DEFAULT,
                                   .slots = tickets_slots};

static PyMethodDef ticket_methods[] = {
    {"done", ticket_done, METH_NOARGS, "done()\n--\n\nWhether wait() would return at once."},
    {"wait", ticket_wait, METH_NOARGS, "wait()\n--\n\nWaits for the rows and returns them."},
    {"cancel", ticket_cancel, METH_NOARGS,
     "cancel()\n--\n\nThe rows are not wanted any more: nothing is written from now on."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot ticket_slots[] = {
    {Py_tp_doc, "Rows that are being fetched; one thread at a time uses a ticket."},
    {Py_tp_dealloc, ticket_dealloc},
    {Py_tp_repr, ticket_repr},
    {Py_tp_methods, ticket_methods},
    {0, NULL}};
static PyType_Spec ticket_spec = {.name = "embla._embla.Ticket",
                                  .basicsize = sizeof(ticket),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  .slots = ticket_slots};

int bind_tickets_add(PyObject *module)
{
    ticket_type = bind_type_add(module, &ticket_spec);
    return ticket_type ? bind_type_only(module, &tickets_spec) : -1;
}
