/*
 * The wait of an event loop for its descriptors, during which other threads may do the work of the loop.
 *
 * While the loop's thread waits, the gate is open: no callback of the loop runs. A thread that has the interpreter then,
 * and does not let it go, has all that belongs to the loop for itself. The compiled part of the engine uses that to send
 * messages on the thread of the program (`native.c`): a function in C that lets the interpreter go nowhere is not
 * interrupted by signals either. See gated_loop.py.
 *
 * The wait also does what would be a call each: it wakes up threads, when they find the interpreter free and the gate open,
 * and reads one socket.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate.h"

#ifdef Py_GIL_DISABLED
#error "without the interpreter's lock, nothing keeps the loop's thread from going on"
#endif

/* Events of one wait, and signals that are given in one. */
enum { EVENTS = 64, SIGNALS = 32 };

/* What stands in place of a descriptor in what `wait` returns. */
enum { READ = -1, LEFT = -2 };

typedef struct {
    PyObject_HEAD
    gate_t gate;
    PyObject *posted;
    /* Signals that are given when the loop waits, and what they belong to. */
    PyObject *owners[SIGNALS];
    int signals[SIGNALS];
    int count;
    bool closed;
} Gate;

static void count_up(int descriptor)
{
    uint64_t one = 1;
    ssize_t done;
    do
        done = write(descriptor, &one, sizeof one);
    while (done < 0 && errno == EINTR);
}

static void wake(const gate_t *gate) { count_up(gate->counter); }

/* What the socket does not take, and why, is for the loop's thread to find out. */
static size_t write_socket(int descriptor, const char *data, size_t size)
{
    ssize_t done;
    do
        done = send(descriptor, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (done < 0 && errno == EINTR);
    return done < 0 ? 0 : (size_t)done;
}

static void end_socket(int descriptor) { shutdown(descriptor, SHUT_RDWR); }

static ssize_t receive(int socket, char *data, size_t size)
{
    ssize_t count;
    do
        count = recv(socket, data, size, MSG_DONTWAIT);
    while (count < 0 && errno == EINTR);
    if (count > 0)
        return count;
    return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : -1;
}

/* Whether the socket is free for a reader, who has it then. */
static bool become(gate_t *gate, int reader)
{
    int nobody = NOBODY;
    return atomic_compare_exchange_strong(&gate->reader, &nobody, reader);
}

static void watch_for(const gate_t *gate, int socket, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.fd = socket}};
    epoll_ctl(gate->poll, EPOLL_CTL_MOD, socket, &event);
}

static bool take_socket(gate_t *gate)
{
    if (gate->socket < 0 || !become(gate, THREAD))
        return false;
    watch_for(gate, gate->socket, 0);
    return true;
}

static ssize_t read_socket(int socket, int signal, int milliseconds, char *data, size_t size, bool *signaled)
{
    struct pollfd both[] = {{.fd = socket, .events = POLLIN}, {.fd = signal, .events = POLLIN}};
    struct epoll_event event;
    if (poll(both, 2, milliseconds) <= 0)
        return 0;
    if (both[1].revents)
        *signaled = epoll_wait(signal, &event, 1, 0) > 0;
    return both[0].revents ? receive(socket, data, size) : 0;
}

static void give_socket_back(gate_t *gate, int socket)
{
    if (gate->socket == socket) {
        watch_for(gate, socket, EPOLLIN);
        atomic_store(&gate->reader, NOBODY);
    } else {
        close(socket); /* see `unwatch` */
    }
}

static int control(Gate *self, int operation, int descriptor, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.fd = descriptor}};
    if (!epoll_ctl(self->gate.poll, operation, descriptor, &event))
        return 0;
    PyErr_SetFromErrno(PyExc_OSError);
    return -1;
}

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(names))
{
    int poll;
    PyObject *posted;
    if (!PyArg_ParseTuple(arguments, "iO", &poll, &posted))
        return NULL;
    Gate *self = (Gate *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->posted = Py_NewRef(posted);
    self->gate = (gate_t){.epoch = 1,
                          .poll = poll,
                          .socket = -1,
                          .write = write_socket,
                          .end = end_socket,
                          .wake = wake,
                          .take = take_socket,
                          .read = read_socket,
                          .give_back = give_socket_back};
    self->gate.counter = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->gate.counter < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_CLEAR(self);
    } else if (control(self, EPOLL_CTL_ADD, self->gate.counter, EPOLLIN | EPOLLET)) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

/* Wake up threads; their signals are kept until `forget`. */
static void give(const Gate *self, int count)
{
    for (int i = 0; i < count; i++)
        count_up(self->signals[i]);
}

static void forget(Gate *self, int count)
{
    PyObject *owners[SIGNALS];
    memcpy(owners, self->owners, (size_t)count * sizeof *owners);
    self->count -= count;
    memmove(self->signals, self->signals + count, (size_t)self->count * sizeof *self->signals);
    memmove(self->owners, self->owners + count, (size_t)self->count * sizeof *self->owners);
    for (int i = 0; i < count; i++)
        Py_DECREF(owners[i]);
}

PyDoc_STRVAR(wait_doc,
"wait(milliseconds, descriptor, buffer)\n\n"
"Give the signals, and wait for events; not longer than `milliseconds`, for ever if that is below 0. If `descriptor`, a\n"
"socket that is watched, can be read, it is, into `buffer`; -1 and None for no such socket.\n\n"
"Returns: a list of descriptors and their events. With READ, the bytes that were read, or 0 at the end of the stream or if\n"
"it failed. With LEFT, another thread has left something for the loop.\n");

static PyObject *wait_for_events(Gate *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "wait takes 3 arguments");
        return NULL;
    }
    int milliseconds = (int)PyLong_AsLong(arguments[0]), descriptor = (int)PyLong_AsLong(arguments[1]);
    if (PyErr_Occurred())
        return NULL;
    Py_buffer buffer = {0};
    if (descriptor >= 0 && PyObject_GetBuffer(arguments[2], &buffer, PyBUF_WRITABLE))
        return NULL;
    Py_ssize_t posted = PyObject_Size(self->posted);
    if (posted < 0) {
        PyBuffer_Release(&buffer);
        return NULL;
    }
    if (posted || self->gate.left)
        milliseconds = 0;
    struct epoll_event events[EVENTS];
    int given = self->count, found, failure;
    ssize_t size = 0;
    self->gate.open = true;
    Py_BEGIN_ALLOW_THREADS
    give(self, given);
    found = epoll_wait(self->gate.poll, events, EVENTS, milliseconds);
    failure = found < 0 ? errno : 0;
    for (int i = 0; i < found; i++)
        if (descriptor >= 0 && events[i].data.fd == descriptor && become(&self->gate, LOOP))
            size = receive(descriptor, buffer.buf, (size_t)buffer.len);
    Py_END_ALLOW_THREADS
    self->gate.open = false;
    int loop = LOOP;
    atomic_compare_exchange_strong(&self->gate.reader, &loop, NOBODY);
    self->gate.epoch++;
    forget(self, given);
    if (descriptor >= 0)
        PyBuffer_Release(&buffer);
    if (found < 0 && failure != EINTR) {
        errno = failure;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    PyObject *result = PyList_New(0);
    for (int i = 0; result && i < found; i++) {
        int number = events[i].data.fd;
        long what = (long)events[i].events;
        if (number == self->gate.counter || (number == descriptor && !size))
            continue;
        if (number == descriptor) {
            number = READ;
            what = size < 0 ? 0 : (long)size;
        }
        PyObject *pair = Py_BuildValue("il", number, what);
        if (!pair || PyList_Append(result, pair))
            Py_CLEAR(result);
        Py_XDECREF(pair);
    }
    if (result && self->gate.left) {
        self->gate.left = false;
        PyObject *pair = Py_BuildValue("ii", LEFT, 0);
        if (!pair || PyList_Append(result, pair))
            Py_CLEAR(result);
        Py_XDECREF(pair);
    }
    return result;
}

PyDoc_STRVAR(signal_doc,
"signal(descriptor, owner)\n\n"
"Wake up a thread: count up a counter of the kernel, at the next wait of the loop, or at once if it waits already, or will not\n"
"wait any more. `owner` is kept until then: it keeps the descriptor open.\n");

static PyObject *signal_thread(Gate *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "signal takes 2 arguments");
        return NULL;
    }
    int descriptor = (int)PyLong_AsLong(arguments[0]);
    if (PyErr_Occurred())
        return NULL;
    if (self->gate.open || self->closed || self->count == SIGNALS) {
        count_up(descriptor);
    } else {
        self->signals[self->count] = descriptor;
        self->owners[self->count++] = Py_NewRef(arguments[1]);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(close_doc, "close()\n\nGive the signals that are left. The loop will not wait any more.\n");

static PyObject *close_gate(Gate *self, PyObject *Py_UNUSED(nothing))
{
    int count = self->count;
    self->closed = true;
    give(self, count);
    forget(self, count);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(wake_doc, "wake()\n\nEnd the wait of the loop, if it waits; it looks itself for what was posted before.\n");

static PyObject *wake_loop(Gate *self, PyObject *Py_UNUSED(nothing))
{
    if (self->gate.open)
        wake(&self->gate);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(epoch_doc,
"epoch()\n\nWhat `native.c` has to be called with to act now, after all has been looked at that it depends on; 0 if the gate is\nshut.\n");

static PyObject *epoch(Gate *self, PyObject *Py_UNUSED(nothing))
{
    return PyLong_FromUnsignedLongLong(self->gate.open ? self->gate.epoch : 0);
}

PyDoc_STRVAR(watch_doc, "watch(descriptor)\n\nWait for a socket that `wait` reads, too.\n");

static PyObject *watch(Gate *self, PyObject *number)
{
    int descriptor = (int)PyLong_AsLong(number);
    if (PyErr_Occurred() || control(self, EPOLL_CTL_ADD, descriptor, EPOLLIN))
        return NULL;
    self->gate.socket = descriptor;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(unwatch_doc, "unwatch(descriptor)\n\nUndo `watch`.\n\n"
"Returns: whether another thread waits for the socket, which closes the descriptor.\n");

static PyObject *unwatch(Gate *self, PyObject *number)
{
    int descriptor = (int)PyLong_AsLong(number);
    if (PyErr_Occurred() || control(self, EPOLL_CTL_DEL, descriptor, 0))
        return NULL;
    int thread = THREAD;
    self->gate.socket = -1;
    return PyBool_FromLong(atomic_compare_exchange_strong(&self->gate.reader, &thread, NOBODY));
}

static void dealloc(PyObject *object)
{
    Gate *self = (Gate *)object;
    PyTypeObject *type = Py_TYPE(object);
    forget(self, self->count);
    if (self->gate.counter >= 0)
        close(self->gate.counter);
    Py_XDECREF(self->posted);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *address(Gate *self, void *Py_UNUSED(nothing)) { return PyLong_FromVoidPtr(&self->gate); }

static PyMethodDef gate_methods[] = {
    {"wait", (PyCFunction)(void (*)(void))wait_for_events, METH_FASTCALL, wait_doc},
    {"signal", (PyCFunction)(void (*)(void))signal_thread, METH_FASTCALL, signal_doc},
    {"close", (PyCFunction)(void (*)(void))close_gate, METH_NOARGS, close_doc},
    {"wake", (PyCFunction)(void (*)(void))wake_loop, METH_NOARGS, wake_doc},
    {"epoch", (PyCFunction)(void (*)(void))epoch, METH_NOARGS, epoch_doc},
    {"watch", (PyCFunction)(void (*)(void))watch, METH_O, watch_doc},
    {"unwatch", (PyCFunction)(void (*)(void))unwatch, METH_O, unwatch_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef gate_attributes[] = {
    {"address", (getter)(void (*)(void))address, NULL, "Where what the engine needs of it is, as a number.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(gate_doc,
"Gate(poll, posted)\n\n"
"The gate of a loop. `poll` is the descriptor of its epoll, `posted` a collection: while that is not empty, there is no wait.\n");

static PyType_Slot slots[] = {
    {Py_tp_new, make},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, gate_methods},
    {Py_tp_getset, gate_attributes},
    {Py_tp_doc, (void *)gate_doc},
    {0, NULL},
};

static PyType_Spec specification = {"qmf.bus._gate.Gate", sizeof(Gate), 0, Py_TPFLAGS_DEFAULT, slots};

static int start(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&specification);
    int failed = !type || PyModule_AddObjectRef(module, "Gate", type);
    Py_XDECREF(type);
    if (failed || PyModule_AddIntConstant(module, "READ", READ) || PyModule_AddIntConstant(module, "LEFT", LEFT))
        return -1;
    /* Changes with what gate.py and this file say to each other, and with `gate_t`. */
    return PyModule_AddIntConstant(module, "VERSION", GATE_VERSION);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, start},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_gate",
    .m_methods = NULL,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__gate(void)
{
    return PyModuleDef_Init(&module_definition);
}
