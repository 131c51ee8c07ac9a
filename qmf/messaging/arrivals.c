/*
 * Messages that arrive: the deliveries of a read are made in one call, and a message that differs from others of its link
 * in its content and its ids alone is taken apart. See arrivals.py; all other messages are left to the functions in Python.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <descrobject.h>
#include <structmember.h>

/* Ids of a message, at most; type codes of AMQP. */
enum { IDS = 2, SMALL_LIST = 0xc0, LARGE_LIST = 0xd0, SHORT_TEXT = 0xa1 };

static PyObject *name_content, *name_properties, *name_delivery, *name_dict, *no_arguments;

PyDoc_STRVAR(places_doc,
"places(kind, names)\n\n"
"Where objects of a class have some of their slots.\n\n"
"Returns: bytes for `make`.\n");

static PyObject *places(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyType_Check(arguments[0]) || !PyTuple_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "places takes a class and a tuple");
        return NULL;
    }
    Py_ssize_t sum = PyTuple_GET_SIZE(arguments[1]);
    PyObject *found = PyBytes_FromStringAndSize(NULL, sum * (Py_ssize_t)sizeof(Py_ssize_t));
    for (Py_ssize_t i = 0; found && i < sum; i++) {
        PyObject *slot = PyObject_GetAttr(arguments[0], PyTuple_GET_ITEM(arguments[1], i));
        PyMemberDef *member = slot && Py_TYPE(slot) == &PyMemberDescr_Type ? ((PyMemberDescrObject *)slot)->d_member : NULL;
        if (!member || member->type != T_OBJECT_EX) {
            if (slot)
                PyErr_Format(PyExc_TypeError, "%R is no slot", PyTuple_GET_ITEM(arguments[1], i));
            Py_CLEAR(found);
        } else {
            memcpy(PyBytes_AS_STRING(found) + i * (Py_ssize_t)sizeof(Py_ssize_t), &member->offset, sizeof(Py_ssize_t));
        }
        Py_XDECREF(slot);
    }
    return found;
}

static void set_slot(PyObject *object, const char *places, Py_ssize_t number, PyObject *value)
{
    Py_ssize_t offset;
    memcpy(&offset, places + number * (Py_ssize_t)sizeof offset, sizeof offset);
    *(PyObject **)((char *)object + offset) = Py_NewRef(value);
}

PyDoc_STRVAR(make_doc,
"make(kind, places, shared, items)\n\n"
"Make objects of a class, without its `__init__`. `places` are of the slots to be set; the values of the first ones are\n"
"`shared`, the two others are set to the two values of each of `items`.\n\n"
"Returns: a list, with an object for each item.\n");

static PyObject *make(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 4 || !PyType_Check(arguments[0]) || !PyBytes_Check(arguments[1]) || !PyTuple_Check(arguments[2]) ||
        !PyList_Check(arguments[3]) ||
        PyBytes_GET_SIZE(arguments[1]) != (PyTuple_GET_SIZE(arguments[2]) + 2) * (Py_ssize_t)sizeof(Py_ssize_t)) {
        PyErr_SetString(PyExc_TypeError, "make takes a class, places, a tuple with two values less, and a list");
        return NULL;
    }
    PyTypeObject *kind = (PyTypeObject *)arguments[0];
    const char *places = PyBytes_AS_STRING(arguments[1]);
    PyObject *shared = arguments[2], *items = arguments[3];
    Py_ssize_t common = PyTuple_GET_SIZE(shared), sum = PyList_GET_SIZE(items);
    PyObject *made = PyList_New(sum);
    for (Py_ssize_t i = 0; made && i < sum; i++) {
        PyObject *item = i < PyList_GET_SIZE(items) ? PyList_GET_ITEM(items, i) : NULL;
        PyObject *object = NULL;
        if (!item || !PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 2)
            PyErr_SetString(PyExc_TypeError, "an item is not a pair");
        else
            object = kind->tp_alloc(kind, 0);
        if (!object) {
            Py_CLEAR(made);
            break;
        }
        for (Py_ssize_t j = 0; j < common; j++)
            set_slot(object, places, j, PyTuple_GET_ITEM(shared, j));
        set_slot(object, places, common, PyTuple_GET_ITEM(item, 0));
        set_slot(object, places, common + 1, PyTuple_GET_ITEM(item, 1));
        PyList_SET_ITEM(made, i, object);
    }
    return made;
}

static uint64_t width_of(const unsigned char *data)
{
    return (uint64_t)data[0] << 24 | (uint64_t)data[1] << 16 | (uint64_t)data[2] << 8 | data[3];
}

/* Whether a message has these bytes at a place, and more behind them. */
static bool has_at(PyObject *bytes, const unsigned char *data, Py_ssize_t size, Py_ssize_t place)
{
    Py_ssize_t count = PyBytes_GET_SIZE(bytes);
    return size - place > count && !memcmp(data + place, PyBytes_AS_STRING(bytes), (size_t)count);
}

/* Where the content of a message begins whose type and size are at `place`, with one of two type codes; 0 if it has others. */
static Py_ssize_t find_content(Py_ssize_t place, long small, long large, const unsigned char *data, Py_ssize_t size)
{
    if (size < place + 2)
        return 0;
    if (data[place] == small && data[place + 1] == size - place - 2)
        return place + 2;
    if (data[place] != large || size < place + 5)
        return 0;
    return width_of(data + place + 1) == (uint64_t)(size - place - 5) ? place + 5 : 0;
}

/* What `IdForm.find` does: the ids of a message of a form, and where its content's type is; 0 if it has another form.
 * `texts` gets where the ids are, and their sizes. */
static Py_ssize_t find_ids(PyObject *form, const unsigned char *data, Py_ssize_t size, Py_ssize_t texts[IDS][2])
{
    PyObject *before = PyTuple_GET_ITEM(form, 1), *parts = PyTuple_GET_ITEM(form, 2), *last = PyTuple_GET_ITEM(form, 3);
    Py_ssize_t left = -PyLong_AsSsize_t(PyTuple_GET_ITEM(form, 4)), place = PyBytes_GET_SIZE(before);
    if (!has_at(before, data, size, 0) || size < place + 5)
        return 0;
    if (PyTuple_GET_ITEM(form, 5) == Py_True) {
        if (data[place] != LARGE_LIST)
            return 0;
        left += (Py_ssize_t)width_of(data + place + 1);
        place += 5;
    } else {
        if (data[place] != SMALL_LIST)
            return 0;
        left += data[place + 1];
        place += 2;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts); i++) {
        PyObject *part = PyTuple_GET_ITEM(parts, i);
        if (!has_at(part, data, size, place))
            return 0;
        place += PyBytes_GET_SIZE(part) + 2;
        if (size < place || data[place - 2] != SHORT_TEXT || size - place < data[place - 1])
            return 0;
        texts[i][0] = place;
        texts[i][1] = data[place - 1];
        place += data[place - 1];
        left -= texts[i][1];
    }
    return !left && has_at(last, data, size, place) ? place + PyBytes_GET_SIZE(last) : 0;
}

/* All attributes of a message: those that are known, with properties of its own. NULL with an exception. */
static PyObject *attributes_of(PyObject *known, PyObject *content, PyObject *delivery)
{
    PyObject *attributes = PyDict_Copy(known);
    PyObject *properties = attributes ? PyDict_GetItemWithError(known, name_properties) : NULL;
    PyObject *own = properties && PyDict_Check(properties) ? PyDict_Copy(properties) : NULL;
    if (!own || PyDict_SetItem(attributes, name_content, content) ||
        PyDict_SetItem(attributes, name_properties, own) || PyDict_SetItem(attributes, name_delivery, delivery)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "there are no properties");
        Py_CLEAR(attributes);
    }
    Py_XDECREF(own);
    return attributes;
}

PyDoc_STRVAR(take_apart_doc,
"take_apart(kind, known, data, delivery)\n\n"
"Decode a message. `kind` is its class; `known` what it has in common with others: the bytes before the type code of its\n"
"content, or the `place` of an `IdForm` for them, with the names of its attributes; two type codes, of short and of long\n"
"content; whether the content is text; and a dict of its attributes.\n\n"
"Returns: the message, with `delivery`; None if it has not these in common.\n");

/* Whether something describes a form, as `IdForm.place` does, with names. */
static bool is_form(PyObject *form)
{
    if (!PyTuple_Check(form) || PyTuple_GET_SIZE(form) != 6)
        return false;
    PyObject *names = PyTuple_GET_ITEM(form, 0), *parts = PyTuple_GET_ITEM(form, 2);
    if (!PyTuple_Check(names) || !PyTuple_Check(parts) || PyTuple_GET_SIZE(parts) > IDS ||
        PyTuple_GET_SIZE(names) != PyTuple_GET_SIZE(parts) || !PyBytes_Check(PyTuple_GET_ITEM(form, 1)) ||
        !PyBytes_Check(PyTuple_GET_ITEM(form, 3)) || !PyLong_Check(PyTuple_GET_ITEM(form, 4)))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts); i++)
        if (!PyBytes_Check(PyTuple_GET_ITEM(parts, i)))
            return false;
    return true;
}

/* Set the ids of a message in its attributes. Returns 0; 1 if one is not text; or, with an exception, -1. */
static int set_ids(PyObject *attributes, PyObject *names, const char *data, Py_ssize_t texts[IDS][2])
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *text = PyUnicode_DecodeUTF8(data + texts[i][0], texts[i][1], NULL);
        if (!text && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
            PyErr_Clear();
            return 1;
        }
        int failed = !text || PyDict_SetItem(attributes, PyTuple_GET_ITEM(names, i), text);
        Py_XDECREF(text);
        if (failed)
            return -1;
    }
    return 0;
}

static PyObject *take_apart(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 4 || !PyType_Check(arguments[0]) || !PyTuple_Check(arguments[1]) ||
        PyTuple_GET_SIZE(arguments[1]) != 5 || !PyDict_Check(PyTuple_GET_ITEM(arguments[1], 4)) ||
        !(PyBytes_Check(PyTuple_GET_ITEM(arguments[1], 0)) || is_form(PyTuple_GET_ITEM(arguments[1], 0)))) {
        PyErr_SetString(PyExc_TypeError, "take_apart takes a class, a tuple of five, bytes and an object");
        return NULL;
    }
    PyTypeObject *kind = (PyTypeObject *)arguments[0];
    PyObject *known = arguments[1], *data = arguments[2], *head = PyTuple_GET_ITEM(known, 0);
    PyObject *names = PyTuple_Check(head) ? PyTuple_GET_ITEM(head, 0) : NULL;
    if (!PyBytes_CheckExact(data))
        Py_RETURN_NONE;
    long small = PyLong_AsLong(PyTuple_GET_ITEM(known, 1)), large = PyLong_AsLong(PyTuple_GET_ITEM(known, 2));
    if (PyErr_Occurred())
        return NULL;
    const char *raw = PyBytes_AS_STRING(data);
    Py_ssize_t size = PyBytes_GET_SIZE(data);
    const unsigned char *octets = (const unsigned char *)raw;
    Py_ssize_t texts[IDS][2];
    Py_ssize_t place = names                            ? find_ids(head, octets, size, texts)
                       : has_at(head, octets, size, 0) ? PyBytes_GET_SIZE(head)
                                                        : 0;
    if (!place || !(place = find_content(place, small, large, octets, size)))
        Py_RETURN_NONE;
    PyObject *content;
    if (PyTuple_GET_ITEM(known, 3) == Py_True) {
        content = PyUnicode_DecodeUTF8(raw + place, size - place, NULL);
        if (!content && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
            PyErr_Clear();
            Py_RETURN_NONE;
        }
    } else {
        content = PyBytes_FromStringAndSize(raw + place, size - place);
    }
    PyObject *attributes = content ? attributes_of(PyTuple_GET_ITEM(known, 4), content, arguments[3]) : NULL;
    int unlike = attributes && names ? set_ids(attributes, names, raw, texts) : 0;
    if (unlike) {
        Py_DECREF(content);
        Py_DECREF(attributes);
        return unlike < 0 ? NULL : Py_NewRef(Py_None);
    }
    PyObject *message = attributes ? kind->tp_new(kind, no_arguments, NULL) : NULL;
    /* By the descriptor of `__dict__`: it knows where an interpreter keeps attributes that are not in a dict yet. */
    if (message && PyObject_GenericSetAttr(message, name_dict, attributes))
        Py_CLEAR(message);
    Py_XDECREF(content);
    Py_XDECREF(attributes);
    return message;
}

static PyMethodDef methods[] = {
    {"places", (PyCFunction)(void (*)(void))places, METH_FASTCALL, places_doc},
    {"make", (PyCFunction)(void (*)(void))make, METH_FASTCALL, make_doc},
    {"take_apart", (PyCFunction)(void (*)(void))take_apart, METH_FASTCALL, take_apart_doc},
    {NULL, NULL, 0, NULL},
};

static int start(PyObject *module)
{
    name_content = PyUnicode_InternFromString("content");
    name_properties = PyUnicode_InternFromString("properties");
    name_delivery = PyUnicode_InternFromString("delivery");
    name_dict = PyUnicode_InternFromString("__dict__");
    no_arguments = PyTuple_New(0);
    if (!name_content || !name_properties || !name_delivery || !name_dict || !no_arguments)
        return -1;
    /* Changes with what arrivals.py and this file say to each other: a module that was compiled before is not used. */
    return PyModule_AddIntConstant(module, "VERSION", 3);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, start},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_arrivals",
    .m_methods = methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__arrivals(void)
{
    return PyModuleDef_Init(&module_definition);
}
