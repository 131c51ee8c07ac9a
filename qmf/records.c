/*
 * Instances of classes that have slots only, filled without their `__init__`. See qmf/_compile.py, which uses this, and
 * scripts/c_extensions.py.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <structmember.h>

/* The number of `VERSION` of the module; `_compile.py` takes only the one that it knows. */
enum { VERSION = 2 };

typedef struct {
    PyObject_VAR_HEAD
    vectorcallfunc call;
    PyTypeObject *cls;
    int acyclic;
    Py_ssize_t offsets[];
} maker_t;

static PyObject *make(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    maker_t *maker = (maker_t *)self;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (count != Py_SIZE(self) || (names && PyTuple_GET_SIZE(names))) {
        PyErr_Format(PyExc_TypeError, "%s takes %zd values by position", maker->cls->tp_name, Py_SIZE(self));
        return NULL;
    }
    PyObject *made = maker->cls->tp_alloc(maker->cls, 0);
    for (Py_ssize_t i = 0; made && i < count; i++)
        *(PyObject **)((char *)made + maker->offsets[i]) = Py_NewRef(arguments[i]);
    if (made && maker->acyclic && PyObject_IS_GC(made))
        PyObject_GC_UnTrack(made);
    return made;
}

static int maker_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((maker_t *)self)->cls);
    return 0;
}

static int maker_clear(PyObject *self)
{
    (void)self; /* calls need the class, and the class alone makes no cycle that another one does not break */
    return 0;
}

static void maker_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_DECREF(((maker_t *)self)->cls);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMemberDef maker_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(maker_t, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot maker_slots[] = {
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, maker_members},
    {Py_tp_traverse, maker_traverse},
    {Py_tp_clear, maker_clear},
    {Py_tp_dealloc, maker_dealloc},
    {Py_tp_doc, "Makes instances of a class; called with a value for each of its slots."},
    {0, NULL},
};

static PyType_Spec maker_spec = {
    .name = "qmf._records.Maker",
    .basicsize = offsetof(maker_t, offsets),
    .itemsize = sizeof(Py_ssize_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = maker_slots,
};

/* Where a slot is in the instances of a class; 0, with an exception, if it has none of this name. */
static Py_ssize_t slot_offset(PyTypeObject *cls, PyObject *name)
{
    PyObject *found = PyObject_GetAttr((PyObject *)cls, name);
    Py_ssize_t offset = 0;
    if (found && Py_IS_TYPE(found, &PyMemberDescr_Type)) {
        PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
        if (member->type == T_OBJECT_EX && PyType_IsSubtype(cls, ((PyMemberDescrObject *)found)->d_common.d_type))
            offset = member->offset;
    }
    if (found && !offset)
        PyErr_Format(PyExc_TypeError, "%R is no slot of %s", name, cls->tp_name);
    Py_XDECREF(found);
    return offset;
}

PyDoc_STRVAR(maker_doc,
"maker(cls, names, acyclic)\n\n"
"A function that makes instances of a class of Python, and takes a value for each slot in `names`, a tuple, by position.\n"
"No `__init__` and no `__new__` runs. The collector of cycles does not look at instances if `acyclic` is true: their\n"
"values must not refer to them, not even by way of others. Raises TypeError if one of the names is no slot.\n");

static PyObject *maker(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 3 || !PyType_Check(arguments[0]) || !PyTuple_Check(arguments[1]) ||
        !(((PyTypeObject *)arguments[0])->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        PyErr_SetString(PyExc_TypeError, "maker takes a class of Python, a tuple and a boolean");
        return NULL;
    }
    PyTypeObject *cls = (PyTypeObject *)arguments[0], *type = *(PyTypeObject **)PyModule_GetState(module);
    Py_ssize_t size = PyTuple_GET_SIZE(arguments[1]);
    int acyclic = PyObject_IsTrue(arguments[2]);
    if (acyclic < 0)
        return NULL;
    maker_t *made = PyObject_GC_NewVar(maker_t, type, size);
    if (!made)
        return NULL;
    made->call = make;
    made->acyclic = acyclic;
    made->cls = (PyTypeObject *)Py_NewRef((PyObject *)cls);
    for (Py_ssize_t i = 0; i < size; i++) {
        made->offsets[i] = slot_offset(cls, PyTuple_GET_ITEM(arguments[1], i));
        if (!made->offsets[i]) {
            PyObject_GC_Track(made);
            Py_DECREF(made);
            return NULL;
        }
    }
    PyObject_GC_Track(made);
    return (PyObject *)made;
}

static PyMethodDef functions[] = {
    {"maker", (PyCFunction)(void (*)(void))maker, METH_FASTCALL, maker_doc},
    {NULL, NULL, 0, NULL},
};

static int fill_module(PyObject *module)
{
    PyObject **type = PyModule_GetState(module);
    *type = PyType_FromSpec(&maker_spec);
    return *type ? PyModule_AddIntConstant(module, "VERSION", VERSION) : -1;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    PyObject **type = PyModule_GetState(module);
    Py_VISIT(*type);
    return 0;
}

static int module_clear(PyObject *module)
{
    PyObject **type = PyModule_GetState(module);
    Py_CLEAR(*type);
    return 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, fill_module},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_records",
    .m_size = sizeof(PyObject *),
    .m_methods = functions,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
};

PyMODINIT_FUNC PyInit__records(void)
{
    return PyModuleDef_Init(&module_definition);
}
