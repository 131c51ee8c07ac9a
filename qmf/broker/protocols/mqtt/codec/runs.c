/*
 * Runs of packets of MQTT, many in one call: publications that differ from one another in packet id and payload alone,
 * which become messages as they are stored, and the reverse; and PUBACK. What is not that simple, incomplete or not
 * allowed is left to the functions in Python, so that errors are made there alone. See runs.py, which uses this, and
 * scripts/c_extensions.py.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The body of a stored message: one section of data, with a length of one byte or of four. */
static const unsigned char SHORT_DATA[4] = {0x00, 0x53, 0x75, 0xA0}, LONG_DATA[4] = {0x00, 0x53, 0x75, 0xB0};

static PyObject *name_message, *name_data, *name_expires_at;

/* Append to a list; takes the reference. Returns 0 or, with an exception, -1. */
static int append(PyObject *list, PyObject *item)
{
    int failed = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return failed;
}

/* The stored form of a message; NULL with an exception. */
static PyObject *stored(const Py_buffer *prefix, const unsigned char *payload, Py_ssize_t size)
{
    int head = size < 0x100 ? 5 : 8;
    PyObject *data = PyBytes_FromStringAndSize(NULL, prefix->len + head + size);
    if (!data)
        return NULL;
    unsigned char *place = (unsigned char *)PyBytes_AS_STRING(data);
    memcpy(place, prefix->buf, (size_t)prefix->len);
    place += prefix->len;
    memcpy(place, head == 5 ? SHORT_DATA : LONG_DATA, 4);
    place += 4;
    for (int left = head - 5; left >= 0; left--)
        *place++ = (unsigned char)(size >> (8 * (head == 5 ? 0 : left)));
    memcpy(place, payload, (size_t)size);
    return data;
}

/* The rest of a packet as its length says, which is read from `place` on; -1 if there is more to it than that. */
static Py_ssize_t read_length(const unsigned char *data, Py_ssize_t end, Py_ssize_t *place)
{
    Py_ssize_t length = 0;
    for (int shift = 0; shift <= 21 && *place < end; shift += 7) {
        unsigned char byte = data[(*place)++];
        length |= (Py_ssize_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return byte || !shift ? length : -1;
    }
    return -1;
}

PyDoc_STRVAR(read_publications_doc,
"read_publications(data, position, first, topic, properties, prefix, most, max_size)\n\n"
"Read PUBLISH packets from `position` on, while they begin with the byte `first`, and have these encoded fields, but `most`\n"
"at most. `properties` has their length, and is empty in 3.1.1. `prefix` is what the stored messages begin with.\n\n"
"Returns: the stored messages, their packet ids (none with QoS 0), and where the packet begins that does not belong to\n"
"them.\n");

static PyObject *read_publications(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer data, topic, properties, prefix;
    Py_ssize_t position, most, max_size;
    int first;
    if (!PyArg_ParseTuple(arguments, "y*niy*y*y*nn", &data, &position, &first, &topic, &properties, &prefix, &most,
                          &max_size))
        return NULL;
    const unsigned char *bytes = data.buf;
    bool has_id = first & 6;
    Py_ssize_t head = topic.len + (has_id ? 2 : 0) + properties.len;
    PyObject *messages = PyList_New(0), *ids = PyList_New(0), *found = NULL;
    int failed = !messages || !ids;
    while (!failed && most-- > 0 && position >= 0 && position < data.len && bytes[position] == first) {
        Py_ssize_t place = position + 1, length = read_length(bytes, data.len, &place);
        Py_ssize_t end = place + length;
        if (length < head || end > data.len || end - position > max_size ||
            memcmp(bytes + place, topic.buf, (size_t)topic.len))
            break;
        place += topic.len;
        long id = 0;
        if (has_id) {
            id = (long)bytes[place] << 8 | bytes[place + 1];
            place += 2;
            if (!id)
                break;
        }
        if (memcmp(bytes + place, properties.buf, (size_t)properties.len))
            break;
        place += properties.len;
        failed = append(messages, stored(&prefix, bytes + place, end - place)) ||
                 (has_id && append(ids, PyLong_FromLong(id)));
        position = end;
    }
    if (!failed)
        found = Py_BuildValue("OOn", messages, ids, position);
    Py_XDECREF(messages);
    Py_XDECREF(ids);
    PyBuffer_Release(&data);
    PyBuffer_Release(&topic);
    PyBuffer_Release(&properties);
    PyBuffer_Release(&prefix);
    return found;
}

PyDoc_STRVAR(read_acknowledgements_doc,
"read_acknowledgements(data, position)\n\n"
"Read PUBACK packets without a reason code from `position` on.\n\n"
"Returns: their packet ids, and where the packet begins that is none of them.\n");

static PyObject *read_acknowledgements(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer data;
    Py_ssize_t position;
    if (!PyArg_ParseTuple(arguments, "y*n", &data, &position))
        return NULL;
    const unsigned char *bytes = data.buf;
    PyObject *ids = PyList_New(0), *found = NULL;
    int failed = !ids;
    while (!failed && position >= 0 && position + 4 <= data.len && bytes[position] == 0x40 && bytes[position + 1] == 2) {
        long id = (long)bytes[position + 2] << 8 | bytes[position + 3];
        if (!id)
            break;
        failed = append(ids, PyLong_FromLong(id));
        position += 4;
    }
    if (!failed)
        found = Py_BuildValue("On", ids, position);
    Py_XDECREF(ids);
    PyBuffer_Release(&data);
    return found;
}

PyDoc_STRVAR(write_acknowledgements_doc,
"write_acknowledgements(ids)\n\n"
"PUBACK packets without a reason code, for the packet ids of a list.\n");

static PyObject *write_acknowledgements(PyObject *Py_UNUSED(module), PyObject *ids)
{
    if (!PyList_Check(ids)) {
        PyErr_SetString(PyExc_TypeError, "packet ids are not in a list");
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(ids);
    PyObject *found = PyBytes_FromStringAndSize(NULL, 4 * count);
    if (!found)
        return NULL;
    unsigned char *place = (unsigned char *)PyBytes_AS_STRING(found);
    for (Py_ssize_t i = 0; i < count; i++) {
        long id = PyLong_AsLong(PyList_GET_ITEM(ids, i));
        if (id < 1 || id > 0xFFFF) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "a packet id is out of range");
            Py_DECREF(found);
            return NULL;
        }
        *place++ = 0x40;
        *place++ = 2;
        *place++ = (unsigned char)(id >> 8);
        *place++ = (unsigned char)id;
    }
    return found;
}

/* The payload of a stored message, if that is its only section of data, of which the descriptor belongs to the head; NULL
 * if not. */
static const unsigned char *payload_of(PyObject *data, const Py_buffer *head, Py_ssize_t *size)
{
    Py_ssize_t left = PyBytes_GET_SIZE(data) - head->len - 2;
    const unsigned char *place = (const unsigned char *)PyBytes_AS_STRING(data);
    if (left < 0 || memcmp(place, head->buf, (size_t)head->len))
        return NULL;
    place += head->len;
    if (*place == SHORT_DATA[3]) {
        *size = place[1];
        return *size == left ? place + 2 : NULL;
    }
    if (left < 3 || *place != LONG_DATA[3])
        return NULL;
    *size = (Py_ssize_t)place[1] << 24 | (Py_ssize_t)place[2] << 16 | (Py_ssize_t)place[3] << 8 | place[4];
    return *size == left - 3 ? place + 5 : NULL;
}

/* The stored bytes of an entry's message, if it has no time to live; NULL, without an exception, if it has one or is paged,
 * and with one for something that is no entry. */
static PyObject *data_of(PyObject *entry)
{
    PyObject *message = PyObject_GetAttr(entry, name_message);
    PyObject *expiry = message ? PyObject_GetAttr(message, name_expires_at) : NULL;
    PyObject *data = expiry == Py_None ? PyObject_GetAttr(message, name_data) : NULL;
    if (data && !PyBytes_Check(data))
        Py_CLEAR(data);
    Py_XDECREF(expiry);
    Py_XDECREF(message);
    return data;
}

static unsigned char *write_length(unsigned char *place, Py_ssize_t length)
{
    while (length > 0x7F) {
        *place++ = (unsigned char)(length & 0x7F) | 0x80;
        length >>= 7;
    }
    *place++ = (unsigned char)length;
    return place;
}

/* A message that is to be sent: what holds its bytes, and its payload in them. */
typedef struct {
    PyObject *data;
    const unsigned char *payload;
    Py_ssize_t size;
} outgoing_t;

enum { MOST = 256, MAX_LENGTH = 268435455, LONGEST_HEAD = 5 };

PyDoc_STRVAR(write_publications_doc,
"write_publications(entries, start, head, first, topic, properties, ids, max_size, backlog)\n\n"
"PUBLISH packets for the messages of a list of entries, from `start` on, that are stored with `head`, including the\n"
"descriptor of data, before their payload, and have no time to live. `first`, `topic` and `properties` are as of `read_publications`; `ids` are their packet ids,\n"
"or None with QoS 0. It ends before a packet larger than `max_size`, and behind the one with which there are `backlog`\n"
"bytes.\n\n"
"Returns: the packets, and their number.\n");

static Py_ssize_t collect(PyObject *entries, Py_ssize_t start, Py_ssize_t most, const Py_buffer *head, Py_ssize_t fields,
                          Py_ssize_t max_size, Py_ssize_t backlog, outgoing_t *outgoing, Py_ssize_t *room)
{
    Py_ssize_t count = 0;
    while (count < most && start + count < PyList_GET_SIZE(entries) && *room < backlog) {
        outgoing_t *next = outgoing + count;
        next->data = data_of(PyList_GET_ITEM(entries, start + count));
        if (!next->data)
            break;
        next->payload = payload_of(next->data, head, &next->size);
        if (!next->payload || fields + next->size > MAX_LENGTH || fields + next->size + LONGEST_HEAD > max_size) {
            Py_DECREF(next->data);
            break;
        }
        *room += fields + next->size + LONGEST_HEAD;
        count++;
    }
    return count;
}

static PyObject *write_publications(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer head, topic, properties;
    Py_ssize_t start, max_size, backlog, room = 0, most = MOST;
    PyObject *entries, *ids, *packets = NULL;
    int first;
    if (!PyArg_ParseTuple(arguments, "O!ny*iy*y*Onn", &PyList_Type, &entries, &start, &head, &first, &topic, &properties,
                          &ids, &max_size, &backlog))
        return NULL;
    outgoing_t outgoing[MOST];
    Py_ssize_t count = 0;
    bool has_id = ids != Py_None;
    if (has_id && !PyList_Check(ids))
        PyErr_SetString(PyExc_TypeError, "packet ids are not in a list");
    else if (has_id && PyList_GET_SIZE(ids) < most)
        most = PyList_GET_SIZE(ids);
    Py_ssize_t fields = topic.len + (has_id ? 2 : 0) + properties.len;
    if (!PyErr_Occurred() && start >= 0)
        count = collect(entries, start, most, &head, fields, max_size, backlog, outgoing, &room);
    if (!PyErr_Occurred())
        packets = PyBytes_FromStringAndSize(NULL, room);
    unsigned char *place = packets ? (unsigned char *)PyBytes_AS_STRING(packets) : NULL;
    for (Py_ssize_t i = 0; place && i < count; i++) {
        *place++ = (unsigned char)first;
        place = write_length(place, fields + outgoing[i].size);
        memcpy(place, topic.buf, (size_t)topic.len);
        place += topic.len;
        if (has_id) {
            long id = PyLong_AsLong(PyList_GET_ITEM(ids, i));
            if (id < 1 || id > 0xFFFF) {
                if (!PyErr_Occurred())
                    PyErr_SetString(PyExc_ValueError, "a packet id is out of range");
                break;
            }
            *place++ = (unsigned char)(id >> 8);
            *place++ = (unsigned char)id;
        }
        memcpy(place, properties.buf, (size_t)properties.len);
        place += properties.len;
        memcpy(place, outgoing[i].payload, (size_t)outgoing[i].size);
        place += outgoing[i].size;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        Py_DECREF(outgoing[i].data);
    PyObject *found = NULL;
    if (packets && !PyErr_Occurred() && !_PyBytes_Resize(&packets, place - (unsigned char *)PyBytes_AS_STRING(packets)))
        found = Py_BuildValue("On", packets, count);
    Py_XDECREF(packets);
    PyBuffer_Release(&head);
    PyBuffer_Release(&topic);
    PyBuffer_Release(&properties);
    return found;
}

static PyMethodDef methods[] = {
    {"read_publications", read_publications, METH_VARARGS, read_publications_doc},
    {"read_acknowledgements", read_acknowledgements, METH_VARARGS, read_acknowledgements_doc},
    {"write_acknowledgements", write_acknowledgements, METH_O, write_acknowledgements_doc},
    {"write_publications", write_publications, METH_VARARGS, write_publications_doc},
    {NULL, NULL, 0, NULL},
};

static int start(PyObject *module)
{
    name_message = PyUnicode_InternFromString("message");
    name_data = PyUnicode_InternFromString("data");
    name_expires_at = PyUnicode_InternFromString("expires_at");
    if (!name_message || !name_data || !name_expires_at)
        return -1;
    /* Changes with what runs.py and this file say to each other: a module that was compiled before is not used. */
    return PyModule_AddIntConstant(module, "VERSION", 1);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, start},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_runs",
    .m_methods = methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__runs(void)
{
    return PyModuleDef_Init(&module_definition);
}
