/*
 * Maps of AMQP 0-10 whose values are plain: numbers, text, binary, maps and lists of these. What is not plain, or not
 * valid, is left to the functions in Python, which know all types and make the errors. See plain_maps.py, which uses
 * this, and scripts/c_extensions.py.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    INT8 = 0x01, UINT8 = 0x02, BOOLEAN = 0x08, INT16 = 0x11, UINT16 = 0x12, INT32 = 0x21, UINT32 = 0x22, FLOAT = 0x23,
    INT64 = 0x31, UINT64 = 0x32, DOUBLE = 0x33, DATETIME = 0x38, BINARY8 = 0x80, TEXT8 = 0x85, BINARY16 = 0x90,
    TEXT16 = 0x95, BINARY32 = 0xA0, MAP = 0xA8, LIST = 0xA9, VOID = 0xF0, BIT = 0xF1
};

/* Levels of maps and lists, and the types of values that are sent with a code of their own: of `bind`. */
static int max_depth;
enum { MOST_TYPES = 16 };
static struct {
    PyTypeObject *type;
    int code;
} types[MOST_TYPES];
static int type_count;

/* Reading. A function that returns NULL or a negative number without an exception has found something not plain. */

typedef struct {
    const unsigned char *data;
    Py_ssize_t pos, end;
    int text;
} input_t;

static uint64_t take_number(input_t *input, int width)
{
    uint64_t value = 0;
    for (int i = 0; i < width; i++)
        value = value << 8 | input->data[input->pos++];
    return value;
}

static PyObject *plain_or_null(PyObject *found)
{
    if (!found && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
        PyErr_Clear();
    return found;
}

static PyObject *read_text(input_t *input, int width, bool is_text)
{
    if (input->end - input->pos < width)
        return NULL;
    Py_ssize_t size = (Py_ssize_t)take_number(input, width);
    if (input->end - input->pos < size)
        return NULL;
    const char *start = (const char *)input->data + input->pos;
    input->pos += size;
    if (is_text || input->text) {
        PyObject *found = plain_or_null(PyUnicode_DecodeUTF8(start, size, NULL));
        if (found || is_text || PyErr_Occurred())
            return found;
    }
    return PyBytes_FromStringAndSize(start, size);
}

static PyObject *read_map(input_t *input, int depth);
static PyObject *read_list(input_t *input, int depth);

static PyObject *read_real(input_t *input, int width)
{
    uint64_t bits = take_number(input, width);
    if (width == 4) {
        uint32_t half = (uint32_t)bits;
        float single;
        memcpy(&single, &half, sizeof single);
        return PyFloat_FromDouble(single);
    }
    double real;
    memcpy(&real, &bits, sizeof real);
    return PyFloat_FromDouble(real);
}

static PyObject *read_value(input_t *input, int depth)
{
    if (input->pos >= input->end)
        return NULL;
    int code = input->data[input->pos++];
    int width = code < 0x10 ? 1 : code < 0x20 ? 2 : code < 0x30 ? 4 : code < 0x40 ? 8 : 0;
    if (input->end - input->pos < width)
        return NULL;
    switch (code) {
    case UINT8: case UINT16: case UINT32: case UINT64:
        return PyLong_FromUnsignedLongLong(take_number(input, width));
    case INT8:
        return PyLong_FromLong((int8_t)take_number(input, 1));
    case INT16:
        return PyLong_FromLong((int16_t)take_number(input, 2));
    case INT32:
        return PyLong_FromLong((int32_t)take_number(input, 4));
    case INT64: case DATETIME:
        return PyLong_FromLongLong((int64_t)take_number(input, 8));
    case BOOLEAN:
        return PyBool_FromLong((long)take_number(input, 1));
    case FLOAT: case DOUBLE:
        return read_real(input, width);
    case TEXT8: case BINARY8:
        return read_text(input, 1, code == TEXT8);
    case TEXT16: case BINARY16:
        return read_text(input, 2, code == TEXT16);
    case BINARY32:
        return read_text(input, 4, false);
    case MAP:
        return read_map(input, depth);
    case LIST:
        return read_list(input, depth);
    case VOID:
        return Py_NewRef(Py_None);
    case BIT:
        return Py_NewRef(Py_True);
    default:
        return NULL;
    }
}

/* Read size and count; `least` is how many bytes an item has at least. Returns where the items end; negative if they
 * cannot. */
static Py_ssize_t enter(input_t *input, int depth, Py_ssize_t least, Py_ssize_t *count)
{
    if (depth >= max_depth || input->end - input->pos < 8)
        return -1;
    Py_ssize_t size = (Py_ssize_t)take_number(input, 4);
    Py_ssize_t end = input->pos + size;
    *count = (Py_ssize_t)take_number(input, 4);
    if (size < 4 || end > input->end || *count > (end - input->pos) / least)
        return -1;
    return end;
}

static PyObject *read_map(input_t *input, int depth)
{
    Py_ssize_t count, end = enter(input, depth, 2, &count);
    PyObject *out = end < 0 ? NULL : PyDict_New();
    if (!out)
        return NULL;
    for (; count > 0; count--) {
        PyObject *key = read_text(input, 1, true);
        PyObject *value = key ? read_value(input, depth + 1) : NULL;
        int failed = value ? PyDict_SetItem(out, key, value) : -1;
        Py_XDECREF(key);
        Py_XDECREF(value);
        if (failed) {
            Py_DECREF(out);
            return NULL;
        }
    }
    if (input->pos != end)
        Py_CLEAR(out);
    return out;
}

static PyObject *read_list(input_t *input, int depth)
{
    Py_ssize_t count, end = enter(input, depth, 1, &count);
    PyObject *out = end < 0 ? NULL : PyList_New(0);
    if (!out)
        return NULL;
    for (; count > 0; count--) {
        PyObject *value = read_value(input, depth + 1);
        int failed = value ? PyList_Append(out, value) : -1;
        Py_XDECREF(value);
        if (failed) {
            Py_DECREF(out);
            return NULL;
        }
    }
    if (input->pos != end)
        Py_CLEAR(out);
    return out;
}

PyDoc_STRVAR(decode_doc,
"decode(data, text, is_map)\n\n"
"Decode bytes that are one map, or one list, and nothing else.\n\n"
"Returns: the same as the function in Python; None if it has to do it.\n");

static PyObject *decode(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 3 || !PyBytes_Check(arguments[0])) {
        PyErr_SetString(PyExc_TypeError, "decode takes bytes and two booleans");
        return NULL;
    }
    input_t input = {.data = (const unsigned char *)PyBytes_AS_STRING(arguments[0]),
                     .end = PyBytes_GET_SIZE(arguments[0]),
                     .text = PyObject_IsTrue(arguments[1])};
    int is_map = PyObject_IsTrue(arguments[2]);
    if (input.text < 0 || is_map < 0)
        return NULL;
    PyObject *found = is_map ? read_map(&input, 0) : read_list(&input, 0);
    if (found && input.pos != input.end)
        Py_CLEAR(found);
    if (!found && !PyErr_Occurred())
        Py_RETURN_NONE;
    return found;
}

/* Writing. Functions return 0; 1 for what is not plain; or, with an exception, -1. */

typedef struct {
    char *data;
    size_t used, size;
    char own[512];
} output_t;

static int reserve(output_t *output, size_t more)
{
    if (output->size - output->used >= more)
        return 0;
    size_t wanted = 2 * (output->used + more);
    bool first = output->data == output->own;
    char *grown = PyMem_Realloc(first ? NULL : output->data, wanted);
    if (!grown) {
        PyErr_NoMemory();
        return -1;
    }
    if (first)
        memcpy(grown, output->own, output->used);
    output->data = grown;
    output->size = wanted;
    return 0;
}

static void put_at(char *place, uint64_t value, int width)
{
    for (int i = width - 1; i >= 0; i--, value >>= 8)
        place[i] = (char)(value & 0xFF);
}

static int put_number(output_t *output, int code, uint64_t value, int width)
{
    if (reserve(output, 9))
        return -1;
    output->data[output->used++] = (char)code;
    put_at(output->data + output->used, value, width);
    output->used += (size_t)width;
    return 0;
}

static int put_bytes(output_t *output, int code16, const char *raw, Py_ssize_t size)
{
    if (size > 0xFFFFFFFF)
        return 1;
    if (put_number(output, size <= 0xFFFF ? code16 : BINARY32, (uint64_t)size, size <= 0xFFFF ? 2 : 4) ||
        reserve(output, (size_t)size))
        return -1;
    memcpy(output->data + output->used, raw, (size_t)size);
    output->used += (size_t)size;
    return 0;
}

static int put_text(output_t *output, PyObject *value)
{
    Py_ssize_t size;
    const char *raw = PyUnicode_AsUTF8AndSize(value, &size);
    if (!raw) { /* lone surrogates */
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
            return -1;
        PyErr_Clear();
        return 1;
    }
    return put_bytes(output, TEXT16, raw, size);
}

static int put_int(output_t *output, int code, PyObject *value)
{
    static const int64_t LOW[] = {INT8_MIN, INT16_MIN, INT32_MIN, INT64_MIN};
    static const int64_t HIGH[] = {INT8_MAX, INT16_MAX, INT32_MAX, INT64_MAX};
    static const int64_t UNSIGNED[] = {UINT8_MAX, UINT16_MAX, UINT32_MAX};
    int overflow, kind = code >> 4, width = 1 << kind;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (number == -1 && PyErr_Occurred())
        return -1;
    if (code & 2) { /* without a sign */
        if (kind < 3 && !overflow && number >= 0 && number <= UNSIGNED[kind])
            return put_number(output, code, (uint64_t)number, width);
        if (kind == 3 && !overflow && number >= 0)
            return put_number(output, code, (uint64_t)number, width);
        return 1;
    }
    if (overflow || number < LOW[kind] || number > HIGH[kind])
        return 1;
    return put_number(output, code, (uint64_t)number, width);
}

static int put_real(output_t *output, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return put_number(output, DOUBLE, bits, 8);
}

static int put_map(output_t *output, PyObject *value, int depth);
static int put_list(output_t *output, PyObject *value, int depth);

static int put_value(output_t *output, PyObject *value, int depth)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyUnicode_Type)
        return put_text(output, value);
    if (type == &PyLong_Type)
        return put_int(output, INT64, value);
    for (int i = 0; i < type_count; i++)
        if (types[i].type == type)
            return put_int(output, types[i].code, value);
    if (type == &PyBool_Type)
        return put_number(output, BOOLEAN, value == Py_True, 1);
    if (value == Py_None)
        return put_number(output, VOID, 0, 0);
    if (type == &PyFloat_Type)
        return put_real(output, PyFloat_AS_DOUBLE(value));
    if (type == &PyBytes_Type)
        return put_bytes(output, BINARY16, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    if (type != &PyDict_Type && type != &PyList_Type)
        return 1;
    if (depth + 1 >= max_depth)
        return 1;
    int code = type == &PyDict_Type ? MAP : LIST;
    if (put_number(output, code, 0, 0))
        return -1;
    return code == MAP ? put_map(output, value, depth + 1) : put_list(output, value, depth + 1);
}

/* Leave room for size and count of a map or list; returns where they are, or a negative number. */
static Py_ssize_t open_items(output_t *output)
{
    if (reserve(output, 8))
        return -1;
    Py_ssize_t place = (Py_ssize_t)output->used;
    output->used += 8;
    return place;
}

static int close_items(output_t *output, Py_ssize_t place, Py_ssize_t count)
{
    size_t size = output->used - (size_t)place - 4;
    if (size > 0xFFFFFFFF)
        return 1;
    put_at(output->data + place, size, 4);
    put_at(output->data + place + 4, (uint64_t)count, 4);
    return 0;
}

static int put_map(output_t *output, PyObject *value, int depth)
{
    Py_ssize_t place = open_items(output), pos = 0, size;
    if (place < 0)
        return -1;
    PyObject *key, *item;
    while (PyDict_Next(value, &pos, &key, &item)) {
        if (Py_TYPE(key) != &PyUnicode_Type)
            return 1;
        const char *raw = PyUnicode_AsUTF8AndSize(key, &size);
        if (!raw) {
            if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
                return -1;
            PyErr_Clear();
            return 1;
        }
        if (size > 0xFF)
            return 1;
        if (reserve(output, (size_t)size + 1))
            return -1;
        output->data[output->used++] = (char)size;
        memcpy(output->data + output->used, raw, (size_t)size);
        output->used += (size_t)size;
        int failed = put_value(output, item, depth);
        if (failed)
            return failed;
    }
    return close_items(output, place, PyDict_GET_SIZE(value));
}

static int put_list(output_t *output, PyObject *value, int depth)
{
    Py_ssize_t place = open_items(output);
    if (place < 0)
        return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); i++) {
        int failed = put_value(output, PyList_GET_ITEM(value, i), depth);
        if (failed)
            return failed;
    }
    return close_items(output, place, PyList_GET_SIZE(value));
}

PyDoc_STRVAR(encode_doc,
"encode(value, depth)\n\n"
"Encode a dict or list with its size field; `depth` is the number of maps and lists around it, without the outermost.\n\n"
"Returns: the bytes, the same as those of the functions in Python; None if they have to do it.\n");

static PyObject *encode(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "encode takes 2 arguments");
        return NULL;
    }
    long depth = PyLong_AsLong(arguments[1]);
    if (depth == -1 && PyErr_Occurred())
        return NULL;
    output_t output = {.used = 0, .size = sizeof output.own};
    output.data = output.own;
    int failed = PyDict_CheckExact(arguments[0])   ? put_map(&output, arguments[0], (int)depth)
                 : PyList_CheckExact(arguments[0]) ? put_list(&output, arguments[0], (int)depth)
                                                   : 1;
    PyObject *found = failed < 0 ? NULL : failed ? Py_NewRef(Py_None)
                                                 : PyBytes_FromStringAndSize(output.data, (Py_ssize_t)output.used);
    if (output.data != output.own)
        PyMem_Free(output.data);
    return found;
}

PyDoc_STRVAR(bind_doc,
"bind(max_depth, types)\n\n"
"Tell how many levels maps and lists may have, and the type codes of the classes of numbers that have one of their own:\n"
"pairs of class and code.\n");

static PyObject *bind(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *pairs, *type;
    if (!PyArg_ParseTuple(arguments, "iO!", &max_depth, &PyList_Type, &pairs))
        return NULL;
    if (PyList_GET_SIZE(pairs) > MOST_TYPES) {
        PyErr_SetString(PyExc_ValueError, "too many types");
        return NULL;
    }
    type_count = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs); i++) {
        int code;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(pairs, i), "O!i", &PyType_Type, &type, &code))
            return NULL;
        types[type_count].type = (PyTypeObject *)Py_NewRef(type); /* lives as long as this module */
        types[type_count++].code = code;
    }
    Py_RETURN_NONE;
}

#include "calls.c"

static PyMethodDef methods[] = {
    {"bind", bind, METH_VARARGS, bind_doc},
    {"decode", (PyCFunction)(void (*)(void))decode, METH_FASTCALL, decode_doc},
    {"encode", (PyCFunction)(void (*)(void))encode, METH_FASTCALL, encode_doc},
    {"encode_call", (PyCFunction)(void (*)(void))encode_call, METH_FASTCALL, encode_call_doc},
    {"read_answers", (PyCFunction)(void (*)(void))read_answers, METH_FASTCALL, read_answers_doc},
    {NULL, NULL, 0, NULL},
};

static int start(PyObject *module)
{
    /* Changes with what plain_maps.py and this file say to each other: a module compiled before is not used. */
    return PyModule_AddIntConstant(module, "VERSION", 2);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, start},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_plain_maps",
    .m_methods = methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__plain_maps(void)
{
    return PyModuleDef_Init(&module_definition);
}
