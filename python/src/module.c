/* SPDX-License-Identifier: Apache-2.0 */
/* The module embla._embla: its types, and facts of the library.
 *
 * The types are kept in static variables, so one interpreter of a process can load the module. A
 * second one gets an ImportError.
 */
#include "bind.h"
#include "embla_lab.h"

#ifdef Py_LIMITED_API
#define FREE_THREADED 0
#else
#define FREE_THREADED 1
#endif

static const char *dtype_at(int number)
{
    return embla_dtype_name((embla_dtype)(number + 1)); /* 0 is no dtype */
}

/* A list of the names that `at` gives for 0, 1, 2.. */
static PyObject *names(const char *(*at)(int number))
{
    PyObject *list = PyList_New(0);
    for (int n = 0; list && at(n); n++) {
        PyObject *name = bind_text(at(n));
        if (!name || PyList_Append(list, name) < 0) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static PyObject *module_facts(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_BuildValue("{s:s,s:s,s:N,s:s,s:s,s:N,s:i}", "version", embla_version(), "kernels",
                         embla_kernels_name(), "kernel_sets", names(embla_kernels_at), "build",
                         embla_build_info(), "engine", embla_engine_name(), "engine_warning",
                         bind_text(embla_engine_warning()), "threads_max", embla_max_threads());
}

static PyObject *module_dtypes(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return names(dtype_at);
}

static PyMethodDef functions[] = {
    {"facts", module_facts, METH_NOARGS, "facts()\n--\n\nVersion, kernels and engine in use."},
    {"dtypes", module_dtypes, METH_NOARGS, "dtypes()\n--\n\nThe names of all dtypes."},
    {NULL, NULL, 0, NULL}};

static int module_exec(PyObject *module)
{
    static atomic_flag loaded = ATOMIC_FLAG_INIT;
    static int (*const parts[])(PyObject *) = {
        bind_array_add, bind_vocab_add,     bind_checkpoint_add, bind_table_add,  bind_see_add,
        bind_shape_add, bind_tokenizer_add, bind_encoder_add,    bind_search_add, bind_gpt_add,
        bind_train_add, bind_wordvec_add,   bind_film_add,       bind_play_add,   bind_ngram_add,
        bind_store_add, bind_tickets_add,   bind_learn_add,      bind_logits_add, bind_cost_add};
    if (atomic_flag_test_and_set(&loaded)) {
        PyErr_SetString(PyExc_ImportError, "embla can be loaded by one interpreter of a process");
        return -1;
    }
    if (bind_errors_load() < 0) return -1;
    /* A mapped file that is cut short must not end the interpreter. */
    embla_status status = embla_guard();
    if (status != EMBLA_OK) {
        bind_fail(status);
        return -1;
    }
    for (size_t i = 0; i < BIND_COUNT(parts); i++)
        if (parts[i](module) < 0) return -1;
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
#if FREE_THREADED && defined(Py_mod_gil)
    {Py_mod_gil, Py_MOD_GIL_NOT_USED}, /* bind.h says how handles are shared */
#endif
    {0, NULL}};
static PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                 .m_name = "embla._embla",
                                 .m_doc = "The library libembla.",
                                 .m_methods = functions,
                                 .m_slots = slots};

PyMODINIT_FUNC PyInit__embla(void);
PyMODINIT_FUNC PyInit__embla(void)
{
    return PyModuleDef_Init(&definition);
}
