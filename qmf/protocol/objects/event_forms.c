/*
 * Events that look like earlier ones: compared with what is known of them, in one call, and kept as bytes; their values
 * are read from these when somebody asks. See event_forms.py, which uses this, and scripts/c_extensions.py.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The number of `VERSION` of the module; `event_forms.py` takes only the one that it knows. */
enum { VERSION = 2 };

/* What a form consists of, in order; `event_forms.py` makes these. Those from CONSTANT on are values. */
enum { BYTES, ENTER, LEAVE, CONSTANT, NUMBER, RAW, SIZED, NESTED };

/* How a map in a list begins. */
static const char MAP_CODE = (char)0xA8;

/* Maps around each other, and values, of a form. */
enum { MOST_MAPS = 2, MOST_VALUES = 400, SIZE_FIELD = 4 };

typedef struct {
    int kind;
    int format;         /* NUMBER: of the module struct; SIZED: 1 for text, 0 for binary */
    Py_ssize_t width;   /* NUMBER, RAW: bytes of the value; SIZED: of its length; BYTES: how many */
    PyObject *object;   /* BYTES, CONSTANT: they; NESTED: dict of those known, by their bytes */
    PyObject *check;    /* NESTED: called with bytes that are not known; true if they are valid */
    PyObject *read;     /* RAW, NESTED: makes the value of its bytes */
} step_t;

typedef struct {
    PyObject_VAR_HEAD
    PyObject *names;       /* of the values, a tuple */
    PyObject *indexes;     /* numbers of the values among all of the form, by name */
    PyObject *class_key, *make_event, *make_values, *nearest, *no_severity;
    PyObject *kept;        /* holds what the steps refer to */
    Py_ssize_t timestamp, severity; /* numbers of these values; -1 for none */
    Py_ssize_t count;      /* values */
    step_t steps[];
} form_t;

static uint64_t big(const unsigned char *data, Py_ssize_t width)
{
    uint64_t value = 0;
    for (Py_ssize_t i = 0; i < width; i++)
        value = value << 8 | data[i];
    return value;
}

/* Whether bytes are UTF-8; negative with an exception. */
static int is_text(const char *data, Py_ssize_t size)
{
    Py_ssize_t i = 0;
    while (i < size && !(data[i] & 0x80))
        i++;
    if (i == size)
        return 1;
    PyObject *text = PyUnicode_DecodeUTF8(data, size, NULL);
    if (!text) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
            return -1;
        PyErr_Clear();
        return 0;
    }
    Py_DECREF(text);
    return 1;
}

/* Whether a map or list is valid; negative with an exception. */
static int is_valid(const step_t *step, const char *data, Py_ssize_t size)
{
    PyObject *raw = PyBytes_FromStringAndSize(data, size);
    int found = raw ? PyDict_Contains(step->object, raw) : -1;
    if (!found) {
        PyObject *checked = PyObject_CallOneArg(step->check, raw);
        found = checked ? PyObject_IsTrue(checked) : -1;
        Py_XDECREF(checked);
    }
    Py_XDECREF(raw);
    return found;
}

/*
 * Compare what is between `pos` and `end` with a form, and note where its values are: of those with a length, where this
 * is. 1 if it has the form, 0 if not, negative with an exception.
 */
static int match(const form_t *form, const char *data, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t *places)
{
    Py_ssize_t stops[MOST_MAPS], inside = 0, size;
    int valid;
    for (Py_ssize_t i = 0; i < Py_SIZE(form); i++) {
        const step_t *step = &form->steps[i];
        if (step->kind >= CONSTANT)
            *places++ = pos;
        switch (step->kind) {
        case BYTES:
            if (end - pos < step->width || memcmp(data + pos, PyBytes_AS_STRING(step->object), (size_t)step->width))
                return 0;
            pos += step->width;
            break;
        case ENTER:
            if (end - pos < SIZE_FIELD)
                return 0;
            size = (Py_ssize_t)big((const unsigned char *)data + pos, SIZE_FIELD);
            pos += SIZE_FIELD;
            stops[inside++] = pos + size;
            break;
        case LEAVE:
            if (stops[--inside] != pos)
                return 0;
            break;
        case NUMBER: case RAW:
            if (end - pos < step->width)
                return 0;
            pos += step->width;
            break;
        case SIZED: case NESTED:
            if (end - pos < step->width)
                return 0;
            size = (Py_ssize_t)big((const unsigned char *)data + pos, step->width);
            if (end - pos - step->width < size)
                return 0;
            if (step->kind == NESTED)
                valid = is_valid(step, data + pos, step->width + size);
            else
                valid = step->format ? is_text(data + pos + step->width, size) : 1;
            if (valid <= 0)
                return valid;
            pos += step->width + size;
            break;
        default:
            break;
        }
    }
    return pos == end;
}

static PyObject *number_at(const step_t *step, const unsigned char *data)
{
    uint64_t bits = big(data, step->width);
    switch (step->format) {
    case 'b':
        return PyLong_FromLong((int8_t)bits);
    case 'h':
        return PyLong_FromLong((int16_t)bits);
    case 'i':
        return PyLong_FromLong((int32_t)bits);
    case 'q':
        return PyLong_FromLongLong((int64_t)bits);
    case '?':
        return PyBool_FromLong(bits != 0);
    case 'f': {
        uint32_t half = (uint32_t)bits;
        float single;
        memcpy(&single, &half, sizeof single);
        return PyFloat_FromDouble(single);
    }
    case 'd': {
        double real;
        memcpy(&real, &bits, sizeof real);
        return PyFloat_FromDouble(real);
    }
    default:
        return PyLong_FromUnsignedLongLong(bits);
    }
}

/* The value of a step, of data that matched. */
static PyObject *value_at(const step_t *step, const char *data, Py_ssize_t pos)
{
    if (step->kind == CONSTANT)
        return Py_NewRef(step->object);
    if (step->kind == NUMBER)
        return number_at(step, (const unsigned char *)data + pos);
    Py_ssize_t size = step->width;
    if (step->kind != RAW)
        size += (Py_ssize_t)big((const unsigned char *)data + pos, step->width);
    if (step->kind != SIZED) {
        PyObject *raw = PyBytes_FromStringAndSize(data + pos, size);
        PyObject *value = raw ? PyObject_CallOneArg(step->read, raw) : NULL;
        Py_XDECREF(raw);
        return value;
    }
    const char *begin = data + pos + step->width;
    PyObject *text = PyUnicode_DecodeUTF8(begin, size - step->width, NULL);
    if (text || step->format || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
        return text;
    PyErr_Clear(); /* binary that is no text stays binary */
    return PyBytes_FromStringAndSize(begin, size - step->width);
}

/* The value with a number, of bytes that matched. */
static PyObject *find_value(const form_t *form, PyObject *raw, Py_ssize_t number)
{
    const char *data = PyBytes_AS_STRING(raw);
    Py_ssize_t pos = 0, end = PyBytes_GET_SIZE(raw);
    for (const step_t *step = form->steps;; step++) {
        Py_ssize_t size = step->kind == ENTER ? SIZE_FIELD : step->width;
        if (end - pos >= size && (step->kind == SIZED || step->kind == NESTED))
            size += (Py_ssize_t)big((const unsigned char *)data + pos, step->width);
        if (end - pos < size) {
            PyErr_SetString(PyExc_ValueError, "the bytes are those of another event");
            return NULL;
        }
        if (step->kind >= CONSTANT && number-- == 0)
            return value_at(step, data, pos);
        pos += size;
    }
}

static const step_t *nth_value(const form_t *form, Py_ssize_t number)
{
    const step_t *step = form->steps;
    while (step->kind < CONSTANT || number-- > 0)
        step++;
    return step;
}

static PyObject *severity_of(const form_t *form, const char *data, const Py_ssize_t *places)
{
    if (form->severity < 0)
        return Py_NewRef(form->no_severity);
    PyObject *value = value_at(nth_value(form, form->severity), data, places[form->severity]);
    long number = value ? PyLong_AsLong(value) : -1;
    if (value && number >= 0 && number <= 7)
        return value;
    if (value)
        PyErr_Clear(); /* one that is larger than a long is as far away as any */
    PyObject *nearest = value ? PyObject_CallOneArg(form->nearest, value) : NULL;
    Py_XDECREF(value);
    return nearest;
}

/* The event between two offsets of bytes, behind its size field; Py_None if it has another form. New. */
static PyObject *read_event(form_t *form, const char *data, Py_ssize_t pos, Py_ssize_t end)
{
    Py_ssize_t places[MOST_VALUES];
    int found = match(form, data, pos, end, places);
    if (found <= 0)
        return found ? NULL : Py_NewRef(Py_None);
    PyObject *raw = PyBytes_FromStringAndSize(data + pos, end - pos), *event = NULL;
    PyObject *timestamp = form->timestamp < 0
                              ? PyLong_FromLong(0)
                              : value_at(nth_value(form, form->timestamp), data, places[form->timestamp]);
    PyObject *severity = severity_of(form, data, places), *values = NULL;
    if (raw) {
        PyObject *parts[] = {NULL, (PyObject *)form, raw, Py_None};
        values = PyObject_Vectorcall(form->make_values, parts + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    if (values && timestamp && severity) {
        PyObject *parts[] = {NULL, values, form->class_key, timestamp, severity, Py_None};
        event = PyObject_Vectorcall(form->make_event, parts + 1, 5 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    Py_XDECREF(raw);
    Py_XDECREF(timestamp);
    Py_XDECREF(severity);
    Py_XDECREF(values);
    return event;
}

/* Take bytes and two numbers from the arguments of a function; 0, or negative with an exception. */
static int take_three(PyObject *const *arguments, Py_ssize_t count, Py_ssize_t *first, Py_ssize_t *second)
{
    if (count != 3 || !PyBytes_Check(arguments[0])) {
        PyErr_SetString(PyExc_TypeError, "events are read from bytes, with two numbers");
        return -1;
    }
    *first = PyLong_AsSsize_t(arguments[1]);
    *second = PyLong_AsSsize_t(arguments[2]);
    return PyErr_Occurred() ? -1 : 0;
}

PyDoc_STRVAR(read_doc,
"read(data, pos, end)\n\n"
"The event between two offsets of bytes, of which the first is that of its size field; None if it has another form.");

static PyObject *form_read(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Py_ssize_t pos, end;
    if (take_three(arguments, count, &pos, &end))
        return NULL;
    if (pos < 0 || end > PyBytes_GET_SIZE(arguments[0]) || end - pos < SIZE_FIELD)
        Py_RETURN_NONE;
    return read_event((form_t *)self, PyBytes_AS_STRING(arguments[0]), pos + SIZE_FIELD, end);
}

PyDoc_STRVAR(read_run_doc,
"read_run(data, pos, count)\n\n"
"The events of this form, at most so many, that follow each other from an offset of a list on: those before the first\n"
"that has another form, or is none.\n\n"
"Returns: they, and the offset behind them.");

static PyObject *form_read_run(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Py_ssize_t pos, wanted;
    if (take_three(arguments, count, &pos, &wanted))
        return NULL;
    const char *data = PyBytes_AS_STRING(arguments[0]);
    Py_ssize_t stop = PyBytes_GET_SIZE(arguments[0]);
    PyObject *events = PyList_New(0);
    for (; events && wanted > 0 && pos >= 0 && stop - pos > SIZE_FIELD && data[pos] == MAP_CODE; wanted--) {
        Py_ssize_t begin = pos + 1 + SIZE_FIELD;
        Py_ssize_t size = (Py_ssize_t)big((const unsigned char *)data + pos + 1, SIZE_FIELD);
        if (size > stop - begin)
            break;
        PyObject *event = read_event((form_t *)self, data, begin, begin + size);
        if (event == Py_None) {
            Py_DECREF(event);
            break;
        }
        if (!event || PyList_Append(events, event))
            Py_CLEAR(events);
        Py_XDECREF(event);
        pos = begin + size;
    }
    PyObject *found = events ? Py_BuildValue("Nn", events, pos) : NULL;
    return found;
}

/* What gives the values of an event their meaning: see `ValuesLayout` in lazy_values.py. */

/* The bytes among the arguments of a method of the layout, of which there are `wanted`; NULL with an exception. */
static PyObject *bytes_of(PyObject *const *arguments, Py_ssize_t count, Py_ssize_t wanted)
{
    if (count == wanted && PyBytes_Check(arguments[0]))
        return arguments[0];
    PyErr_SetString(PyExc_TypeError, "the layout of events takes bytes, a place and perhaps a name");
    return NULL;
}

static PyObject *form_get(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    form_t *form = (form_t *)self;
    PyObject *raw = bytes_of(arguments, count, 3);
    PyObject *index = raw ? PyDict_GetItemWithError(form->indexes, arguments[2]) : NULL;
    if (!index) {
        if (!PyErr_Occurred())
            PyErr_SetObject(PyExc_KeyError, arguments[2]);
        return NULL;
    }
    return find_value(form, raw, PyLong_AsSsize_t(index));
}

static PyObject *form_has(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (!bytes_of(arguments, count, 3))
        return NULL;
    int found = PyDict_Contains(((form_t *)self)->indexes, arguments[2]);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

static PyObject *form_names_of(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    return bytes_of(arguments, count, 2) ? Py_NewRef(((form_t *)self)->names) : NULL;
}

static PyObject *form_unpack(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    form_t *form = (form_t *)self;
    PyObject *raw = bytes_of(arguments, count, 2), *values = raw ? PyDict_New() : NULL, *name, *index;
    Py_ssize_t at = 0;
    while (values && PyDict_Next(form->indexes, &at, &name, &index)) {
        PyObject *value = find_value(form, raw, PyLong_AsSsize_t(index));
        if (!value || PyDict_SetItem(values, name, value))
            Py_CLEAR(values);
        Py_XDECREF(value);
    }
    return values;
}

static PyObject *form_raw(PyObject *Py_UNUSED(self), PyObject *const *arguments, Py_ssize_t count)
{
    return Py_XNewRef(bytes_of(arguments, count, 2));
}

static PyObject *form_detach(PyObject *Py_UNUSED(self), PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *raw = bytes_of(arguments, count, 2);
    return raw ? PyTuple_Pack(2, raw, arguments[1]) : NULL;
}

#define METHOD(name, doc) {#name, (PyCFunction)(void (*)(void))form_##name, METH_FASTCALL, doc}

static PyMethodDef form_methods[] = {
    METHOD(read, read_doc),
    METHOD(read_run, read_run_doc),
    METHOD(get, "get(data, at, name): one value; raises KeyError for a name that has none."),
    METHOD(has, "has(data, at, name): true for a name that has a value."),
    METHOD(names_of, "names_of(data, at): the names, in order."),
    METHOD(unpack, "unpack(data, at): all values, in order."),
    METHOD(raw, "raw(data, at): the bytes of the event."),
    METHOD(detach, "detach(data, at): the arguments, for an event has bytes of its own."),
    {NULL, NULL, 0, NULL},
};

#define FOR_EACH(visit) \
    visit(form->names); visit(form->indexes); visit(form->class_key); visit(form->make_event); \
    visit(form->make_values); visit(form->nearest); visit(form->no_severity); visit(form->kept)

static int form_traverse(PyObject *self, visitproc visit, void *arg)
{
    form_t *form = (form_t *)self;
    Py_VISIT(Py_TYPE(self));
    FOR_EACH(Py_VISIT);
    return 0;
}

static void form_dealloc(PyObject *self)
{
    form_t *form = (form_t *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    FOR_EACH(Py_XDECREF);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyType_Slot form_slots[] = {
    {Py_tp_methods, form_methods},
    {Py_tp_traverse, form_traverse},
    {Py_tp_dealloc, form_dealloc},
    {Py_tp_doc, "What events of one kind have in common: reads them, and gives their bytes a meaning."},
    {0, NULL},
};

static PyType_Spec form_spec = {
    .name = "qmf.protocol.objects._event_forms.EventForm",
    .basicsize = offsetof(form_t, steps),
    .itemsize = sizeof(step_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = form_slots,
};

/* Fill a step from a tuple: the kind, and by kind what `step_t` has. 0, or negative with an exception. */
static int fill_step(step_t *step, PyObject *given)
{
    static const char *const formats[] = {"iS", "i", "i", "iO", "iCn", "inO", "inp", "inO!OO"};
    int kind = PyTuple_Check(given) && PyTuple_GET_SIZE(given) ? (int)PyLong_AsLong(PyTuple_GET_ITEM(given, 0)) : -1;
    if (kind < BYTES || kind > NESTED) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a step is a tuple that begins with its kind");
        return -1;
    }
    int parsed;
    switch (kind) {
    case BYTES: case CONSTANT:
        parsed = PyArg_ParseTuple(given, formats[kind], &step->kind, &step->object);
        break;
    case NUMBER:
        parsed = PyArg_ParseTuple(given, formats[kind], &step->kind, &step->format, &step->width);
        break;
    case RAW:
        parsed = PyArg_ParseTuple(given, formats[kind], &step->kind, &step->width, &step->read);
        break;
    case SIZED:
        parsed = PyArg_ParseTuple(given, formats[kind], &step->kind, &step->width, &step->format);
        break;
    case NESTED:
        parsed = PyArg_ParseTuple(given, formats[kind], &step->kind, &step->width, &PyDict_Type, &step->object,
                                  &step->check, &step->read);
        break;
    default:
        parsed = PyArg_ParseTuple(given, formats[kind], &step->kind);
    }
    if (kind == BYTES && parsed)
        step->width = PyBytes_GET_SIZE(step->object);
    return parsed ? 0 : -1;
}

/* Fill the steps of a form. 0, or negative with an exception: they must not be too many, nor leave what was not entered. */
static int fill_steps(form_t *form)
{
    Py_ssize_t inside = 0;
    for (Py_ssize_t i = 0; i < Py_SIZE(form); i++) {
        step_t *step = &form->steps[i];
        if (fill_step(step, PyTuple_GET_ITEM(form->kept, i)))
            return -1;
        form->count += step->kind >= CONSTANT;
        inside += (step->kind == ENTER) - (step->kind == LEAVE);
        if (inside < 0 || inside > MOST_MAPS || form->count > MOST_VALUES || step->width < 0 || step->width > 16 * 1024) {
            PyErr_SetString(PyExc_ValueError, "the steps of a form do not fit together, or are too many");
            return -1;
        }
    }
    return 0;
}

/* Whether all numbers of values are those of values. */
static bool fits(const form_t *form)
{
    PyObject *name, *index;
    Py_ssize_t at = 0;
    while (PyDict_Next(form->indexes, &at, &name, &index)) {
        Py_ssize_t number = PyLong_Check(index) ? PyLong_AsSsize_t(index) : -1;
        if (number < 0 || number >= form->count)
            return false;
    }
    return form->timestamp < form->count && form->severity < form->count;
}

PyDoc_STRVAR(form_doc,
"form(steps, names, indexes, timestamp, severity, class_key, make_event, make_values, nearest, no_severity)\n\n"
"Make a form. `steps` are a tuple of tuples, see event_forms.py; `names` the names of the values, `indexes` a dict of\n"
"their numbers among all values in the steps; `timestamp` and `severity` the numbers of these, -1 for none.\n"
"`make_event` takes the fields of an event, and `make_values` the form, bytes and None. `nearest` gives the severity for\n"
"a number that is none, and `no_severity` is that of events without.\n");

static PyObject *make_form(PyObject *module, PyObject *arguments)
{
    PyObject *steps, *names, *indexes, *key, *make_event, *make_values, *nearest, *no_severity;
    Py_ssize_t timestamp, severity;
    if (!PyArg_ParseTuple(arguments, "O!O!O!nnOOOOO", &PyTuple_Type, &steps, &PyTuple_Type, &names, &PyDict_Type,
                          &indexes, &timestamp, &severity, &key, &make_event, &make_values, &nearest, &no_severity))
        return NULL;
    PyTypeObject *type = *(PyTypeObject **)PyModule_GetState(module);
    form_t *form = PyObject_GC_NewVar(form_t, type, PyTuple_GET_SIZE(steps));
    if (!form)
        return NULL;
    memset(form->steps, 0, (size_t)PyTuple_GET_SIZE(steps) * sizeof(step_t));
    form->names = Py_NewRef(names);
    form->indexes = Py_NewRef(indexes);
    form->class_key = Py_NewRef(key);
    form->make_event = Py_NewRef(make_event);
    form->make_values = Py_NewRef(make_values);
    form->nearest = Py_NewRef(nearest);
    form->no_severity = Py_NewRef(no_severity);
    form->kept = Py_NewRef(steps);
    form->timestamp = timestamp;
    form->severity = severity;
    form->count = 0;
    PyObject_GC_Track(form);
    if (!fill_steps(form) && fits(form))
        return (PyObject *)form;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "a form has no value with such a number");
    Py_DECREF(form);
    return NULL;
}

static PyMethodDef functions[] = {
    {"form", make_form, METH_VARARGS, form_doc},
    {NULL, NULL, 0, NULL},
};

static int fill_module(PyObject *module)
{
    PyObject **type = PyModule_GetState(module);
    *type = PyType_FromSpec(&form_spec);
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
    .m_name = "_event_forms",
    .m_size = sizeof(PyObject *),
    .m_methods = functions,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
};

PyMODINIT_FUNC PyInit__event_forms(void)
{
    return PyModuleDef_Init(&module_definition);
}
