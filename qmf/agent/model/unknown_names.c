/*
 * A base of managed objects that sets attributes as `object` does, and asks the class for the error when an object has
 * no such attribute. A `__setattr__` in Python would be called for every assignment; this costs nothing until one fails.
 * See unknown_names.py, which uses it, and scripts/c_extensions.py.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Raises the error of the class, unless it has the attribute: one without a setter keeps the error that is raised. */
static void name_similar(PyObject *type, PyObject *name)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *error = PyErr_GetRaisedException();
#else
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
#endif
    PyObject *done = PyObject_HasAttr(type, name) ? Py_NewRef(Py_None)
                                                  : PyObject_CallMethod(type, "_qmf_refuse_attribute", "O", name);
#if PY_VERSION_HEX >= 0x030C0000
    if (done)
        PyErr_SetRaisedException(error);
    else
        Py_XDECREF(error);
#else
    if (done) {
        PyErr_Restore(kind, error, trace);
    } else {
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(trace);
    }
#endif
    Py_XDECREF(done);
}

static int set_attribute(PyObject *self, PyObject *name, PyObject *value)
{
    int failed = PyObject_GenericSetAttr(self, name, value);
    if (failed && PyErr_ExceptionMatches(PyExc_AttributeError))
        name_similar((PyObject *)Py_TYPE(self), name);
    return failed;
}

static PyType_Slot type_slots[] = {
    {Py_tp_setattro, set_attribute},
    {Py_tp_doc, "Base of objects whose class makes the error for attributes that they don't have."},
    {0, NULL},
};

static PyType_Spec type_spec = {
    .name = "qmf.agent.model._unknown_names.NamesSimilar",
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = type_slots,
};

static int add_type(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&type_spec);
    int failed = type ? PyModule_AddObjectRef(module, "NamesSimilar", type) : -1;
    Py_XDECREF(type);
    return failed;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, add_type},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_unknown_names",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__unknown_names(void)
{
    return PyModuleDef_Init(&module_definition);
}
