/* SPDX-License-Identifier: Apache-2.0 */
/* The object of a table, for the files that compute with one. */
#ifndef EMBLA_PYTHON_TABLE_H
#define EMBLA_PYTHON_TABLE_H

#include "bind.h"
#include "embla_lab.h"
#include "embla_train.h"

typedef struct {
    bind_object base;   /* handle: embla_table */
    bind_buffer source; /* of Table.over, if held */
    bool held;
    bool borrowed; /* the handle belongs to the object in keeps */
    bool mapped;   /* tokens share rows: a lookup goes through embla_lookup */
    bool fixed;    /* rows of a file or of a model: read-only, also where they are in memory */
    embla_sketch *sketch;
    atomic_int sketched; /* a bind_sketched */
    atomic_int searches; /* that a sketch would have made faster */
    atomic_int writers;  /* calls that change rows now */
} bind_table;

/* Whether a table has a sketch for searches. A sketch is of no use once rows have changed. */
typedef enum {
    BIND_SKETCH_NONE,
    BIND_SKETCH_MAKING,
    BIND_SKETCH_READY,
    BIND_SKETCH_NEVER /* rows have changed, or may change without our knowledge */
} bind_sketched;

/* The table of an object that was entered. */
static inline embla_table *bind_table_of(PyObject *object)
{
    return ((bind_object *)(void *)object)->handle;
}

/* Checks the type and enters the table. False after an exception. */
bool bind_table_enter(PyObject *object, const char *what);
/* False after an exception: the rows of a table that was entered must not be changed. */
bool bind_table_writable(PyObject *object);
/* The sketch of a table that was entered, or NULL. After some searches it is made. */
const embla_sketch *bind_table_sketch(PyObject *object);
/* From now on rows may change at any time, so no sketch is used. */
void bind_table_may_change(PyObject *object);
/* A table that another object owns, as its own object; `owner` is referenced, not entered. */
PyObject *bind_table_borrow(PyTypeObject *type, const embla_table *table, PyObject *owner);

/* "mean", "sum", "max" and "last": the name of a kind, or NULL after the last. */
const char *bind_pool_name(int n);

/* The method _generate of an object that has a model, which is entered: a model or a training. */
PyObject *bind_generate(PyObject *self, const embla_gpt *gpt, BIND_ARGS);

/* What a film needs of a training that was entered (film.c). */
typedef struct {
    const embla_table *table;
    const char *const *words; /* of all rows; NULL: they are in vocab */
    const embla_vocab *vocab; /* NULL means no words */
    int64_t first;            /* steps made */
    double guess;             /* the loss of guessing */
} bind_filmed;
embla_status bind_train_filmed(PyObject *training, bind_filmed *out);
embla_status bind_wordvec_filmed(PyObject *training, bind_filmed *out);

#endif
