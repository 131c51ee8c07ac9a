/*
 * Calls of methods, and their answers: a whole message in one go, where only its correlation id and the map in its body
 * differ from those of others. A part of plain_maps.c, which has the functions for the maps. See plain_maps.py.
 */

/* What a data section begins with, before its size. */
static const char DATA8[] = {0x00, 0x53, 0x75, (char)0xA0}, DATA32[] = {0x00, 0x53, 0x75, (char)0xB0};
/* The section of the properties, and its list with seven items, of either size. */
static const char PROPERTIES[] = {0x00, 0x53, 0x73};
enum { LIST8 = 0xC0, LIST32 = 0xD0, STRING8 = 0xA1, ITEMS = 7 };

enum { HEADER, BEFORE, BEHIND, OTHERS, LEADING, FOLLOWING, PARTS };

static char *put_raw(char *place, const void *raw, size_t size)
{
    memcpy(place, raw, size);
    return place + size;
}

static char *put_big(char *place, uint64_t value, int width)
{
    put_at(place, value, width);
    return place + width;
}

PyDoc_STRVAR(encode_call_doc,
"encode_call(parts, number, values)\n\n"
"Encode a message. `parts` are six bytes objects: the header section; the properties before the correlation id; those\n"
"behind it; the sections behind these; of the body, the number of its items and those before `values`; those behind.\n"
"`number` is the correlation id: text of ASCII, at most 255 characters; `values` a dict.\n\n"
"Returns: the bytes; None if the functions in Python have to do it.\n");

static PyObject *encode_call(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 3 || !PyTuple_Check(arguments[0]) || PyTuple_GET_SIZE(arguments[0]) != PARTS ||
        !PyUnicode_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "encode_call takes a tuple of six, text and a dict");
        return NULL;
    }
    const char *raw[PARTS], *number;
    size_t sizes[PARTS];
    for (int i = 0; i < PARTS; i++) {
        PyObject *part = PyTuple_GET_ITEM(arguments[0], i);
        if (!PyBytes_Check(part)) {
            PyErr_SetString(PyExc_TypeError, "a part is not bytes");
            return NULL;
        }
        raw[i] = PyBytes_AS_STRING(part);
        sizes[i] = (size_t)PyBytes_GET_SIZE(part);
    }
    Py_ssize_t digits;
    if (!(number = PyUnicode_AsUTF8AndSize(arguments[1], &digits)))
        return NULL;
    if (!PyDict_CheckExact(arguments[2]) || digits > 0xFF)
        Py_RETURN_NONE;
    output_t output = {.used = 0, .size = sizeof output.own};
    output.data = output.own;
    PyObject *found = NULL;
    int failed = put_map(&output, arguments[2], 1);
    if (!failed) {
        size_t list = sizes[BEFORE] + 2 + (size_t)digits + sizes[BEHIND];
        size_t body = sizes[LEADING] + output.used + sizes[FOLLOWING], whole = 4 + body;
        bool small_list = list < 0xFF, small_data = whole <= 0xFF;
        size_t size = sizes[HEADER] + sizeof PROPERTIES + (small_list ? 3 : 9) + list + sizes[OTHERS] +
                      sizeof DATA8 + (small_data ? 1 : 4) + whole;
        found = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
        if (found) {
            char *place = put_raw(PyBytes_AS_STRING(found), raw[HEADER], sizes[HEADER]);
            place = put_raw(place, PROPERTIES, sizeof PROPERTIES);
            *place++ = (char)(small_list ? LIST8 : LIST32);
            place = put_big(place, list + (small_list ? 1 : 4), small_list ? 1 : 4);
            place = put_big(place, ITEMS, small_list ? 1 : 4);
            place = put_raw(place, raw[BEFORE], sizes[BEFORE]);
            *place++ = (char)STRING8;
            *place++ = (char)digits;
            place = put_raw(place, number, (size_t)digits);
            place = put_raw(place, raw[BEHIND], sizes[BEHIND]);
            place = put_raw(place, raw[OTHERS], sizes[OTHERS]);
            place = put_raw(place, small_data ? DATA8 : DATA32, sizeof DATA8);
            place = put_big(place, whole, small_data ? 1 : 4);
            place = put_big(place, body, 4);
            place = put_raw(place, raw[LEADING], sizes[LEADING]);
            place = put_raw(place, output.data, output.used);
            put_raw(place, raw[FOLLOWING], sizes[FOLLOWING]);
        }
    }
    if (output.data != output.own)
        PyMem_Free(output.data);
    return failed > 0 ? Py_NewRef(Py_None) : found;
}

/* The number that text of ASCII digits is; a negative one if it is none, or too long. */
static long long read_number(const char *text, Py_ssize_t size)
{
    long long number = 0;
    if (size < 1 || size > 18)
        return -1;
    for (Py_ssize_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        number = 10 * number + (text[i] - '0');
    }
    return number;
}

/* The outputs in the body of an answer, a new reference; NULL, without an exception, if there is anything else. */
static PyObject *read_outputs(const char *data, Py_ssize_t size, PyObject *key)
{
    Py_ssize_t begin = (Py_ssize_t)sizeof DATA8 + 1;
    if (size < begin)
        return NULL;
    if (!memcmp(data, DATA8, sizeof DATA8)) {
        if (begin + (unsigned char)data[4] != size)
            return NULL;
    } else if (!memcmp(data, DATA32, sizeof DATA32) && size >= begin + 3) {
        input_t input = {.data = (const unsigned char *)data, .pos = begin - 1, .end = size};
        begin += 3;
        if (begin + (Py_ssize_t)take_number(&input, 4) != size)
            return NULL;
    } else {
        return NULL;
    }
    input_t input = {.data = (const unsigned char *)data, .pos = begin, .end = size, .text = true};
    PyObject *body = read_map(&input, 0), *outputs = NULL;
    if (body && input.pos == size && PyDict_GET_SIZE(body) == 1)
        outputs = PyDict_GetItemWithError(body, key);
    if (outputs)
        outputs = PyDict_CheckExact(outputs) ? Py_NewRef(outputs) : NULL;
    Py_XDECREF(body);
    return outputs;
}

/* An answer with a known head as (correlation id, outputs, mark of the head); Py_None for another message. New. */
static PyObject *read_answer(PyObject *message, PyObject *heads, PyObject *key)
{
    const char *data = PyBytes_AS_STRING(message);
    Py_ssize_t size = PyBytes_GET_SIZE(message);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(heads); i++) {
        PyObject *before, *behind, *mark, *head = PyList_GET_ITEM(heads, i);
        Py_ssize_t digits;
        if (!PyTuple_Check(head) || !PyArg_ParseTuple(head, "SnSO", &before, &digits, &behind, &mark))
            return NULL;
        Py_ssize_t begin = PyBytes_GET_SIZE(before), end = begin + digits, body = end + PyBytes_GET_SIZE(behind);
        if (digits < 0 || size < body || memcmp(data, PyBytes_AS_STRING(before), (size_t)begin) ||
            memcmp(data + end, PyBytes_AS_STRING(behind), (size_t)(body - end)))
            continue;
        long long number = read_number(data + begin, digits);
        PyObject *outputs = number < 0 ? NULL : read_outputs(data + body, size - body, key);
        if (!outputs)
            return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
        if (i) { /* the head that was found last is looked at first */
            PyList_SET_ITEM(heads, i, PyList_GET_ITEM(heads, i - 1));
            PyList_SET_ITEM(heads, i - 1, head);
        }
        return Py_BuildValue("LNO", number, outputs, mark);
    }
    return Py_NewRef(Py_None);
}

PyDoc_STRVAR(read_answers_doc,
"read_answers(messages, heads, key)\n\n"
"Take answers apart whose bytes before the body are those of an earlier one, but for the correlation id. `heads` are\n"
"these, a list of tuples: the bytes before the id; the size of the id; the bytes behind; anything. Those that fit move\n"
"towards the beginning. `key` is the only one that the map of the body has, for a map.\n\n"
"Returns: a list, for each message, bytes, (correlation id as a number, the map, the last item of its head), or the\n"
"message itself if the functions in Python have to take it apart.\n");

static PyObject *read_answers(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 3 || !PyList_Check(arguments[0]) || !PyList_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "read_answers takes two lists and text");
        return NULL;
    }
    PyObject *found = PyList_New(0);
    for (Py_ssize_t i = 0; found && i < PyList_GET_SIZE(arguments[0]); i++) {
        PyObject *message = PyList_GET_ITEM(arguments[0], i), *answer;
        if (!PyBytes_Check(message)) {
            PyErr_SetString(PyExc_TypeError, "a message is not bytes");
            answer = NULL;
        } else {
            answer = read_answer(message, arguments[1], arguments[2]);
        }
        if (!answer || PyList_Append(found, answer == Py_None ? message : answer))
            Py_CLEAR(found);
        Py_XDECREF(answer);
    }
    return found;
}
