/*
 * A thread that waits for messages reads the connection itself, while the loop's thread waits as well; a part of native.c.
 *
 * What comes of a read is applied here if it is simple: messages of the link that the thread waits for, and acceptances of
 * messages that nobody waits for. All else is left to the loop's thread, which is woken up for that. The interpreter is held
 * from the end of the wait for the socket until all is applied or left, and no Python runs: no other thread, and no handler
 * of a signal, sees anything that is half done.
 */

/* What a thread reads for, the items of a tuple: see `ThreadActions.wait_and_read`. */
enum { TABLE, LIMIT, WALKER, DELIVERIES, OWN_LINK, WINDOW, ARRIVED, CONDITION, SESSION, RECEIVER, NETWORK, MAKER, ITEMS };

/* Bytes of a read, at most. */
enum { READ_SIZE = 16384 };

/* Whether an attribute, a collection, is empty; -1 with an exception. */
static int is_empty(PyObject *owner, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(owner, name);
    Py_ssize_t size = found ? PyObject_Size(found) : -1;
    Py_XDECREF(found);
    return size < 0 ? -1 : !size;
}

/* Deliveries for messages, as `deliveries.delivery_maker` makes them. NULL with an exception. */
static PyObject *make_deliveries(PyObject *const *what, PyObject *items)
{
    PyObject *make, *kind, *places, *numbers;
    if (!PyArg_ParseTuple(what[MAKER], "OOOO", &make, &kind, &places, &numbers))
        return NULL;
    PyObject *number = PyIter_Next(numbers);
    PyObject *shared = number ? PyTuple_Pack(6, what[RECEIVER], what[NETWORK], what[OWN_LINK], number, Py_False, Py_False) : NULL;
    PyObject *made = shared ? PyObject_CallFunctionObjArgs(make, kind, places, shared, items, NULL) : NULL;
    Py_XDECREF(number);
    Py_XDECREF(shared);
    return made;
}

/* The credit that is left after so many messages; -1 if there was less, or, with an exception, if it is not known. */
static long credit_after(PyObject *window, Py_ssize_t count)
{
    PyObject *credit = PyObject_GetAttr(window, name_credit);
    long left = credit ? PyLong_AsLong(credit) : -1;
    Py_XDECREF(credit);
    return left < (long)count ? -1 : left - (long)count;
}

/* Whether messages are for the thread that waits alone: no other fetches, no handler is called; -1 with an exception. */
static int are_own(PyObject *const *what)
{
    PyObject *handler = PyObject_GetAttr(what[SESSION], name_on_message);
    if (!handler)
        return -1;
    Py_DECREF(handler);
    if (handler != Py_None)
        return 0;
    int alone = is_empty(what[CONDITION], name_fetching);
    if (alone != 1)
        return alone;
    PyObject *signals = PyObject_GetAttr(what[CONDITION], name_fetching_threads);
    Py_ssize_t threads = signals ? PyObject_Size(signals) : -1;
    Py_XDECREF(signals);
    return threads < 0 ? -1 : threads == 1;
}

/* Messages have come on the link that the thread waits for. Returns 1; 0 if they are for the loop; -1 with an exception. */
static int add_messages(PyObject *const *what, PyObject *items)
{
    Py_ssize_t count = PyList_GET_SIZE(items);
    long left = credit_after(what[WINDOW], count);
    int own = left < 0 ? (PyErr_Occurred() ? -1 : 0) : are_own(what);
    if (own != 1)
        return own;
    PyObject *messages = PyObject_GetAttr(what[ARRIVED], name_messages), *rest = PyLong_FromLong(left);
    PyObject *made = messages && rest ? make_deliveries(what, items) : NULL;
    PyObject *done = made ? PyObject_CallMethodObjArgs(messages, name_extend, made, NULL) : NULL;
    int failed = !done || PyObject_SetAttr(what[WINDOW], name_credit, rest) || PyList_SetSlice(items, 0, count, NULL);
    Py_XDECREF(messages);
    Py_XDECREF(rest);
    Py_XDECREF(made);
    Py_XDECREF(done);
    return failed ? -1 : 1;
}

/* The peer has accepted messages of a link. Returns 1; 0 if that is for the loop: somebody waits; -1 with an exception. */
static int drop_accepted(PyObject *const *what, PyObject *link, PyObject *tags)
{
    int unawaited = is_empty(what[CONDITION], name_waiters);
    if (unawaited == 1)
        unawaited = is_empty(what[CONDITION], name_threads);
    if (unawaited != 1)
        return unawaited;
    PyObject *owner = PyObject_GetAttr(link, name_direct);
    PyObject *unsettled = owner && owner != Py_None ? PyObject_GetAttr(owner, name_unsettled) : NULL;
    if (owner && !unsettled && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear(); /* no sender */
    int simple = PyErr_Occurred() ? -1 : unsettled && PyDict_Check(unsettled);
    for (Py_ssize_t i = 0; simple == 1 && i < PyList_GET_SIZE(tags); i++) {
        PyObject *item = PyDict_GetItemWithError(unsettled, PyList_GET_ITEM(tags, i));
        simple = item ? PyBytes_CheckExact(item) : PyErr_Occurred() ? -1 : 0;
    }
    for (Py_ssize_t i = 0; simple == 1 && i < PyList_GET_SIZE(tags); i++)
        if (PyDict_DelItem(unsettled, PyList_GET_ITEM(tags, i)))
            simple = -1;
    if (simple == 1 && PyList_SetSlice(tags, 0, PyList_GET_SIZE(tags), NULL))
        simple = -1;
    Py_XDECREF(owner);
    Py_XDECREF(unsettled);
    return simple;
}

/* Apply what is simple of the batches of `feed`: their items are gone then. Returns 1 if that was all, 0 if something is for
 * the loop, -1 with an exception. `*own` is set if there are messages. */
static int apply(PyObject *const *what, PyObject *batches, bool *own)
{
    int all = 1;
    for (Py_ssize_t i = 0; all == 1 && i < PyList_GET_SIZE(batches); i++) {
        PyObject *batch = PyList_GET_ITEM(batches, i), *link = PyTuple_GET_ITEM(batch, 1), *items = PyTuple_GET_ITEM(batch, 2);
        long kind = PyLong_AsLong(PyTuple_GET_ITEM(batch, 0));
        if (kind == MESSAGES && link == what[OWN_LINK]) {
            all = add_messages(what, items);
            *own = *own || all == 1;
        } else {
            all = kind == ACCEPTED_ALL ? drop_accepted(what, link, items) : 0;
        }
    }
    return all;
}

/* Leave bytes to the loop's thread, with what has come of them, or None. Where that cannot be, the connection ends. */
static void leave_read(lane_t *lane, const char *data, Py_ssize_t size, PyObject *found)
{
    PyObject *left = Py_BuildValue("y#O", data, size, found);
    if (!left || PyList_Append(lane->unread, left)) {
        PyErr_Clear();
        lane->gate->end(lane->descriptor);
    }
    Py_XDECREF(left);
    lane->gate->left = true;
    lane->gate->wake(lane->gate);
}

/* Feed bytes of the peer, and apply or leave what comes of them. Returns 1 if the thread has to look at what has happened, 0
 * if it can go on waiting, -1 with an exception. */
static int take_in(lane_t *lane, PyObject *const *what, const char *data, Py_ssize_t size)
{
    PyObject *rows = PyObject_GetAttr(what[TABLE], name_rows), *links = PyObject_GetAttr(what[TABLE], name_numbered);
    PyObject *next = PyObject_GetAttr(what[DELIVERIES], name_next_tag);
    reading_t reading = {.links = links, .next = next ? PyLong_AsUnsignedLongLong(next) : 0};
    peer_t peer = {lane->transport, lane->collector, PyLong_AsVoidPtr(what[WALKER]), rows, PyLong_AsSize_t(what[LIMIT]), LOUD_FLOW};
    PyObject *found = NULL;
    int result = -1;
    if (PyErr_Occurred())
        goto end;
    if (!lane->gate->open || lane->gate->left || rows == Py_None || !PyList_Check(links))
        found = Py_NewRef(Py_None);
    else
        found = feed_bytes(&peer, &reading, data, 0, size);
    if (!found)
        goto end;
    bool own = false;
    int all = 0;
    if (found != Py_None) {
        lane->gate->epoch++;
        if (PyObject_SetAttr(what[DELIVERIES], name_next_tag, PyTuple_GET_ITEM(found, 2)))
            goto end;
        if ((all = apply(what, PyTuple_GET_ITEM(found, 0), &own)) < 0)
            goto end;
    }
    /* The last says that proton has nothing to write, and that there is nothing else to be done. */
    if (all && PyTuple_GET_ITEM(found, 5) == Py_True) {
        result = own;
    } else {
        leave_read(lane, data, size, found);
        result = 1;
    }
end:
    Py_XDECREF(rows);
    Py_XDECREF(links);
    Py_XDECREF(next);
    Py_XDECREF(found);
    return result;
}

static long long milliseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

PyDoc_STRVAR(read_at_once_doc,
"read_at_once(lane, signal, seconds, what)\n\n"
"Wait for messages, and read them, on any thread, if the gate of the lane is open and nobody else does. `signal` is the\n"
"descriptor of an epoll, which ends the wait, too; for `what`, see `ThreadActions.wait_and_read`.\n\n"
"Returns: whether something may have happened; None, at once, if the thread has to wait in another way.\n");

static PyObject *read_at_once(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    lane_t lane;
    if (count != 4 || !PyTuple_Check(arguments[3]) || PyTuple_GET_SIZE(arguments[3]) != ITEMS) {
        PyErr_SetString(PyExc_TypeError, "read_at_once takes 4 arguments, the last a tuple of twelve");
        return NULL;
    }
    int signal = (int)PyLong_AsLong(arguments[1]);
    long long left = (long long)(PyFloat_AsDouble(arguments[2]) * 1000) + 1, end = milliseconds_now() + left;
    if (PyErr_Occurred() || find_lane(&lane, arguments[0]))
        return NULL;
    PyObject *const *what = &PyTuple_GET_ITEM(arguments[3], 0);
    walker_t *walker = PyLong_AsVoidPtr(what[WALKER]);
    if (!walker && PyErr_Occurred())
        return NULL;
    if (!walker || !lane.gate->open || lane.gate->left || !lane.gate->take(lane.gate))
        Py_RETURN_NONE;
    int socket = lane.gate->socket, result = 0;
    bool signaled = false;
    char data[READ_SIZE];
    /* Not longer than it was asked for: handlers of signals run after this, and acceptances may come for ever. */
    for (; !result && !signaled && left > 0; left = end - milliseconds_now()) {
        ssize_t size;
        Py_BEGIN_ALLOW_THREADS
        size = lane.gate->read(socket, signal, left < INT_MAX ? (int)left : INT_MAX, data, sizeof data, &signaled);
        Py_END_ALLOW_THREADS
        if (size < 0 || lane.gate->socket != socket) {
            result = 1; /* the end is for the loop; what the loop has ended is gone */
        } else if (size > 0) {
            int collects = PyGC_Disable();
            result = take_in(&lane, what, data, size);
            if (collects)
                PyGC_Enable();
        } else {
            break;
        }
    }
    if (result < 0)
        lane.gate->end(lane.descriptor);
    lane.gate->give_back(lane.gate, socket);
    return result < 0 ? NULL : PyBool_FromLong(result || signaled);
}
