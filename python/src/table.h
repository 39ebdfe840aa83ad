/* SPDX-License-Identifier: Apache-2.0 */
/* The object of a table, for the files that compute with one. */
#ifndef EMBLA_PYTHON_TABLE_H
#define EMBLA_PYTHON_TABLE_H

#include "bind.h"

typedef struct {
    bind_object base; /* handle: embla_table */
    Py_buffer source; /* of Table.over, if held */
    bool held;
    bool borrowed; /* the handle belongs to the object in keeps */
    bool mapped;   /* tokens share rows: a lookup goes through embla_lookup */
} bind_table;

/* The table of an object that was entered. */
static inline embla_table *bind_table_of(PyObject *object)
{
    return ((bind_object *)(void *)object)->handle;
}

/* Checks the type and enters the table. False after an exception. */
bool bind_table_enter(PyObject *object, const char *what);
/* A table that another object owns, as its own object; `owner` is referenced, not entered. */
PyObject *bind_table_borrow(PyTypeObject *type, const embla_table *table, PyObject *owner);

#endif
