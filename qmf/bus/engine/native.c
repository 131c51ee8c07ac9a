/*
 * What happens to every message, for many messages in one call: bytes of the peer are given to proton and its events of
 * simple messages are read; messages are sent, or accepted; output is taken. The frames are walked meanwhile, which is
 * why the walker is a part of this. See native.py, which calls this, and scripts/c_extensions.py.
 *
 * proton is not linked. Its functions are in the library that its Python package has loaded: native.py gives their
 * addresses once, in the order of `struct functions`. Connections and links are addresses, as numbers.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "../frames/walker.c"
#include "../gate.h"

typedef struct {
    size_t size;
    const char *start;
} bytes_t; /* pn_bytes_t */

static struct functions {
    void *(*collector_peek)(void *);
    bool (*collector_pop)(void *);
    int (*event_type)(void *);
    void *(*event_delivery)(void *);
    void *(*event_link)(void *);
    void *(*delivery)(void *, bytes_t);
    bytes_t (*delivery_tag)(void *);
    void *(*delivery_link)(void *);
    void *(*delivery_local)(void *);
    void *(*delivery_remote)(void *);
    void *(*disposition_data)(void *);
    void (*data_clear)(void *);
    ssize_t (*data_decode)(void *, const char *, size_t);
    ssize_t (*data_encode)(void *, char *, size_t);
    bool (*delivery_updated)(void *);
    bool (*delivery_aborted)(void *);
    bool (*delivery_readable)(void *);
    bool (*delivery_partial)(void *);
    bool (*delivery_settled)(void *);
    size_t (*delivery_pending)(void *);
    uint64_t (*delivery_remote_state)(void *);
    void (*delivery_update)(void *, uint64_t);
    void (*delivery_settle)(void *);
    bool (*link_is_receiver)(void *);
    void *(*link_current)(void *);
    ssize_t (*link_recv)(void *, char *, size_t);
    ssize_t (*link_send)(void *, const char *, size_t);
    bool (*link_advance)(void *);
    int (*link_credit)(void *);
    bool (*link_get_drain)(void *);
    size_t (*session_outgoing_bytes)(void *);
    ssize_t (*transport_capacity)(void *);
    ssize_t (*transport_push)(void *, const char *, size_t);
    ssize_t (*transport_pending)(void *);
    ssize_t (*transport_peek)(void *, char *, size_t);
    void (*transport_pop)(void *, size_t);
} pn;

enum { FUNCTIONS = sizeof pn / sizeof(void *) };

static int DELIVERY_EVENT, FLOW_EVENT, TRANSPORT_EVENT;
static uint64_t ACCEPTED, TRANSACTIONAL;

/* Names of attributes of links, and of deliveries; the others are of what a thread that waits for messages looks at. */
static PyObject *name_received, *name_sent, *name_accepting, *name_confirming, *name_next_tag, *name_rows, *name_numbered,
    *name_direct, *name_unsettled, *name_waiters, *name_threads, *name_fetching, *name_fetching_threads, *name_messages,
    *name_credit, *name_on_message, *name_extend;

/* A link. HOLDS: messages that the peer accepts without settling them stay unsettled. SKIP: nothing of it is simple.
 * QUIET: that the peer has given credit need not be reported; that it wants it used up is. TAGGED: we receive, and the
 * peer chooses the delivery tags, numbers of eight bytes. */
typedef struct {
    uint64_t address;
    uint32_t number;
    uint32_t flags;
} link_t;

enum { HOLDS = 1, SKIP = 2, QUIET = 4, TAGGED = 8 };

/* Bytes of such a delivery tag. */
enum { TAG = 8 };

/* Which changes of credit are handled. */
enum { NO_FLOW, LOUD_FLOW, ALL_FLOW };

/* Kinds of batches; what their last item is, see `collect`. */
enum { MESSAGES = 1, ACCEPTED_ALL = 2, HELD = 3, FORGOTTEN = 4, FLOW = 5, ACCEPTED_IN = 6, CONFIRMED = 7 };

/* Bytes of a transactional state at most; see transactions.py. */
enum { MAX_STATE = 256 };

/* A delivery as a number: its address, rotated. The lowest bits of addresses are all the same, and dictionaries would
 * put many of them in one place. See native.py, where it is done as well. */
static PyObject *number_of(void *delivery)
{
    uint64_t address = (uintptr_t)delivery;
    return PyLong_FromUnsignedLongLong(address >> 4 | address << 60);
}

static void *delivery_at(PyObject *number)
{
    uint64_t rotated = PyLong_AsUnsignedLongLong(number);
    return (void *)(uintptr_t)(rotated << 4 | rotated >> 60);
}

/* What was read so far: batches, and the one that the next message or outcome may belong to. References are borrowed
 * from `batches`, but for `known`. */
typedef struct {
    PyObject *links;
    PyObject *batches;
    PyObject *items;
    PyObject *link;
    PyObject *known; /* of the link: its messages received, by delivery tag; or sent ones, or those to be confirmed, by
                        address */
    int kind;
    uint32_t number;
    unsigned long long next; /* delivery tag */
} reading_t;

/* The attribute of a link with the messages that batches of a kind are about. */
static PyObject *known_by(int kind)
{
    return kind == MESSAGES ? name_received : kind == CONFIRMED ? name_confirming : name_sent;
}

/* A dictionary that is an attribute of a link; NULL with an exception. */
static PyObject *dictionary_of(PyObject *link, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(link, name);
    if (found && !PyDict_Check(found)) {
        PyErr_SetString(PyExc_TypeError, "the messages of a link are not in a dictionary");
        Py_CLEAR(found);
    }
    return found;
}

/* Make what comes next part of a batch: of this kind, and on this link. Returns 0 or, with an exception, -1. */
static int choose_batch(reading_t *reading, int kind, uint32_t number)
{
    if (reading->kind == kind && reading->number == number)
        return 0;
    if ((Py_ssize_t)number >= PyList_GET_SIZE(reading->links)) {
        PyErr_SetString(PyExc_IndexError, "a link that is not in the list");
        return -1;
    }
    if (!reading->link || reading->number != number || known_by(reading->kind) != known_by(kind))
        Py_CLEAR(reading->known);
    reading->link = PyList_GET_ITEM(reading->links, number);
    reading->kind = 0;
    if (!reading->known && kind != FLOW && !(reading->known = dictionary_of(reading->link, known_by(kind))))
        return -1;
    PyObject *items = PyList_New(0);
    PyObject *batch = items ? Py_BuildValue("iOO", kind, reading->link, items) : NULL;
    Py_XDECREF(items);
    int failed = batch ? PyList_Append(reading->batches, batch) : -1;
    Py_XDECREF(batch);
    if (failed)
        return -1;
    reading->items = items;
    reading->kind = kind;
    reading->number = number;
    return 0;
}

/* Append to the batch; takes the reference. */
static int append(reading_t *reading, PyObject *item)
{
    int failed = item ? PyList_Append(reading->items, item) : -1;
    Py_XDECREF(item);
    return failed;
}

/* The delivery tag that the peer chose, as a number; 0 if it is none. */
static bool read_tag(void *delivery, unsigned long long *number)
{
    bytes_t tag = pn.delivery_tag(delivery);
    if (tag.size != TAG)
        return false;
    *number = 0;
    for (size_t i = 0; i < TAG; i++)
        *number = *number << 8 | (unsigned char)tag.start[i];
    return true;
}

/* The peer has settled a message that it sent, after we have given it an outcome. Returns 1; 0 if it is anything else; or,
 * with an exception, -1. */
static int read_confirmation(reading_t *reading, uint32_t number, void *delivery, void *link)
{
    if (pn.delivery_aborted(delivery) || (pn.delivery_readable(delivery) && pn.link_current(link) == delivery) ||
        !pn.delivery_settled(delivery))
        return 0;
    if (choose_batch(reading, CONFIRMED, number))
        return -1;
    PyObject *address = number_of(delivery);
    PyObject *tag = address ? PyDict_GetItemWithError(reading->known, address) : NULL;
    int failed = !address || (!tag && PyErr_Occurred());
    if (tag) {
        Py_INCREF(tag);
        PyObject *received = dictionary_of(reading->link, name_received);
        failed = !received || PyDict_DelItem(reading->known, address);
        if (!failed && PyDict_DelItem(received, tag)) {
            failed = !PyErr_ExceptionMatches(PyExc_KeyError);
            if (!failed)
                PyErr_Clear();
        }
        Py_XDECREF(received);
        failed = failed || PyList_Append(reading->items, tag);
        Py_DECREF(tag);
        pn.delivery_settle(delivery);
    }
    Py_XDECREF(address);
    return failed ? -1 : 1;
}

/* A message that was received whole. Returns 1; 0 if it is not that simple; or, with an exception, -1. */
static int read_message(reading_t *reading, const link_t *row, void *delivery, void *link, size_t limit)
{
    if (pn.delivery_aborted(delivery) || !pn.delivery_readable(delivery) || pn.link_current(link) != delivery ||
        pn.delivery_partial(delivery) || pn.delivery_remote_state(delivery) == TRANSACTIONAL)
        return 0;
    size_t pending = pn.delivery_pending(delivery);
    if (pending > limit)
        return 0;
    int settled = pn.delivery_settled(delivery), tagged = row->flags & TAGGED;
    unsigned long long chosen = reading->next;
    if (tagged && !settled && !read_tag(delivery, &chosen))
        return 0;
    if (choose_batch(reading, MESSAGES, row->number))
        return -1;
    PyObject *data = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)pending);
    PyObject *tag = settled ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(chosen);
    PyObject *address = settled ? NULL : number_of(delivery);
    int failed = !data || !tag || (!settled && !address);
    if (!failed && pending) {
        ssize_t count = pn.link_recv(link, PyBytes_AS_STRING(data), pending);
        if (count != (ssize_t)pending)
            failed = _PyBytes_Resize(&data, count > 0 ? count : 0);
    }
    if (!failed && !settled)
        failed = PyDict_SetItem(reading->known, tag, address);
    if (!failed)
        failed = append(reading, PyTuple_Pack(2, tag, data));
    Py_XDECREF(data);
    Py_XDECREF(tag);
    Py_XDECREF(address);
    if (failed)
        return -1;
    pn.link_advance(link);
    if (settled)
        pn.delivery_settle(delivery);
    else if (!tagged)
        reading->next++;
    return 1;
}

/* Whether the peer's state of a delivery is the one that was last found to be acceptance in a transaction. Returns -1
 * with an exception. */
static int is_accepted_in(const reading_t *reading, uint32_t number, void *delivery)
{
    char state[MAX_STATE];
    PyObject *known = PyObject_GetAttr(PyList_GET_ITEM(reading->links, number), name_accepting);
    if (!known)
        return -1;
    int same = 0;
    if (PyBytes_Check(known) && PyBytes_GET_SIZE(known)) {
        ssize_t size = pn.data_encode(pn.disposition_data(pn.delivery_remote(delivery)), state, sizeof state);
        same = size == PyBytes_GET_SIZE(known) && !memcmp(state, PyBytes_AS_STRING(known), (size_t)size);
    }
    Py_DECREF(known);
    return same;
}

/* The peer has accepted a message. Returns 1; 0 for any other outcome; or, with an exception, -1. */
static int read_outcome(reading_t *reading, uint32_t number, void *delivery, unsigned holds)
{
    if (!pn.delivery_updated(delivery))
        return 0;
    uint64_t state = pn.delivery_remote_state(delivery);
    if (state == TRANSACTIONAL && !holds) {
        int same = (Py_ssize_t)number < PyList_GET_SIZE(reading->links) ? is_accepted_in(reading, number, delivery) : 0;
        if (same != 1)
            return same;
    } else if (state != ACCEPTED) {
        return 0;
    }
    int held = holds && !pn.delivery_settled(delivery);
    if (choose_batch(reading, held ? HELD : state == TRANSACTIONAL ? ACCEPTED_IN : ACCEPTED_ALL, number))
        return -1;
    PyObject *address = number_of(delivery);
    PyObject *tag = address ? PyDict_GetItemWithError(reading->known, address) : NULL;
    int failed = 0;
    if (!address || (!tag && PyErr_Occurred())) {
        failed = -1;
    } else if (tag) {
        Py_INCREF(tag);
        failed = PyDict_DelItem(reading->known, address);
        if (!failed)
            failed = append(reading, held ? PyTuple_Pack(2, tag, address) : Py_NewRef(tag));
        Py_DECREF(tag);
    } else if (!held) {
        failed = choose_batch(reading, FORGOTTEN, number) || append(reading, Py_NewRef(address));
    }
    Py_XDECREF(address);
    if (failed)
        return -1;
    if (!held)
        pn.delivery_settle(delivery);
    return 1;
}

/* The link at an address among `count` links, which are in the order of their addresses; NULL if it is not there. */
static const link_t *find(const link_t *links, Py_ssize_t count, uintptr_t address)
{
    Py_ssize_t low = 0;
    while (low < count) {
        Py_ssize_t middle = (low + count) / 2;
        if (links[middle].address < address)
            low = middle + 1;
        else if (links[middle].address > address)
            count = middle;
        else
            return links + middle;
    }
    return NULL;
}

/* Whether there is a frame that the engine has to know of in the data from `offset` on; the walker is where it was then. */
static bool has_stop(walker_t *walker, const char *data, size_t size, size_t offset)
{
    walker_t before = *walker;
    if (!next_stop(walker, data, size, offset))
        return false;
    *walker = before;
    return true;
}

/* Whether proton raises events of this type for its own output; `TRANSPORT_EVENT` only says that there is some. */
static bool is_of_output(int type) { return type == FLOW_EVENT || type == TRANSPORT_EVENT; }

/*
 * Read events until one that is not simple: of another kind, on none of the links, or of a message that is.
 *
 * Returns 1 if an event is left that the caller has to handle, 0 if none is, and -1 with an exception.
 */
static int read_events(reading_t *reading, void *collector, const Py_buffer *table, size_t limit, int flow)
{
    const link_t *links = table->buf, *last = NULL;
    Py_ssize_t count = table->len / (Py_ssize_t)sizeof(link_t);
    void *event;
    while ((event = pn.collector_peek(collector))) {
        int type = pn.event_type(event);
        void *delivery = type == DELIVERY_EVENT ? pn.event_delivery(event) : NULL;
        if (type == TRANSPORT_EVENT || (type == FLOW_EVENT && flow == NO_FLOW)) {
            pn.collector_pop(collector);
            continue;
        }
        if (!delivery && type != FLOW_EVENT)
            return 1;
        void *link = delivery ? pn.delivery_link(delivery) : pn.event_link(event);
        if (!last || last->address != (uintptr_t)link)
            last = find(links, count, (uintptr_t)link);
        if (!last || last->flags & SKIP)
            return 1;
        int simple;
        if (!delivery && flow == LOUD_FLOW && last->flags & QUIET && !pn.link_get_drain(link))
            simple = 1;
        else if (!delivery)
            simple = choose_batch(reading, FLOW, last->number) ? -1 : 1;
        else if (pn.link_is_receiver(link)) {
            simple = last->flags & TAGGED ? read_confirmation(reading, last->number, delivery, link) : 0;
            if (!simple)
                simple = read_message(reading, last, delivery, link, limit);
        } else
            simple = read_outcome(reading, last->number, delivery, last->flags & HOLDS);
        if (simple != 1)
            return simple < 0 ? -1 : 1;
        pn.collector_pop(collector);
    }
    return 0;
}

/* What bytes of the peer are fed with, see `feed`. */
typedef struct {
    void *transport;
    void *collector;
    walker_t *walker;
    PyObject *rows;
    size_t limit;
    int flow;
} peer_t;

/* See `feed`. */
static PyObject *feed_bytes(const peer_t *peer, reading_t *reading, const char *data, Py_ssize_t offset, Py_ssize_t end)
{
    Py_buffer table;
    if (PyObject_GetBuffer(peer->rows, &table, PyBUF_SIMPLE))
        return NULL;
    if (peer->walker && offset >= 0 && offset < end && has_stop(peer->walker, data, (size_t)end, (size_t)offset)) {
        PyBuffer_Release(&table);
        Py_RETURN_NONE;
    }
    PyObject *failure = Py_None;
    int more = -1;
    if ((reading->batches = PyList_New(0)))
        more = read_events(reading, peer->collector, &table, peer->limit, peer->flow);
    while (more == 0 && offset >= 0 && offset < end) {
        ssize_t room = pn.transport_capacity(peer->transport);
        if (room <= 0)
            break;
        if (room > end - offset)
            room = end - offset;
        ssize_t taken = pn.transport_push(peer->transport, data + offset, (size_t)room);
        offset += room;
        if (taken != room) {
            failure = PyLong_FromSsize_t(taken);
            if (!failure)
                more = -1;
            break;
        }
        more = read_events(reading, peer->collector, &table, peer->limit, peer->flow);
    }
    Py_CLEAR(reading->known);
    PyBuffer_Release(&table);
    if (more < 0) {
        Py_XDECREF(reading->batches);
        return NULL;
    }
    bool idle = peer->walker && !more && failure == Py_None && offset >= end && !pn.transport_pending(peer->transport);
    return Py_BuildValue("NNKnNN", reading->batches, PyBool_FromLong(more), reading->next, offset,
                         failure == Py_None ? Py_NewRef(failure) : failure, PyBool_FromLong(idle));
}

PyDoc_STRVAR(feed_doc,
"feed(transport, collector, table, links, data, offset, end, limit, flow, next, walker)\n\n"
"Give the bytes of the peer from `offset` to `end` to proton, and read simple events meanwhile, until one that is not\n"
"simple. `flow`: 0 drops changes of credit, 1 those of quiet links, 2 none. `walker` is the address of that of the frames\n"
"that are received; 0 if they were walked before.\n\n"
"Returns: batches of what was read, (kind, link, items) each; whether an event is left that is not simple; the delivery\n"
"tag to go on with; how far the data was used; what proton returned for bytes that it did not take as a whole, else None;\n"
"with a walker, whether all was read and proton has nothing to write. None, and nothing is done, if the walker finds a frame that the engine has to know of.\n");

static PyObject *feed(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 11 || !PyList_Check(arguments[3])) {
        PyErr_SetString(PyExc_TypeError, "feed takes 11 arguments, of which the fourth is a list");
        return NULL;
    }
    void *transport = PyLong_AsVoidPtr(arguments[0]), *collector = PyLong_AsVoidPtr(arguments[1]);
    Py_ssize_t offset = PyLong_AsSsize_t(arguments[5]), end = PyLong_AsSsize_t(arguments[6]);
    size_t limit = PyLong_AsSize_t(arguments[7]);
    int flow = (int)PyLong_AsLong(arguments[8]);
    walker_t *walker = PyLong_AsVoidPtr(arguments[10]);
    reading_t reading = {.links = arguments[3], .next = PyLong_AsUnsignedLongLong(arguments[9])};
    if (PyErr_Occurred())
        return NULL;
    Py_buffer data;
    if (PyObject_GetBuffer(arguments[4], &data, PyBUF_SIMPLE))
        return NULL;
    if (end > data.len)
        end = data.len;
    peer_t peer = {transport, collector, walker, arguments[2], limit, flow};
    PyObject *found = feed_bytes(&peer, &reading, data.buf, offset, end);
    PyBuffer_Release(&data);
    return found;
}

/* Give a delivery a transactional state, as encoded bytes. */
static void set_state(void *delivery, PyObject *state)
{
    void *local = pn.disposition_data(pn.delivery_local(delivery));
    pn.data_clear(local);
    pn.data_decode(local, PyBytes_AS_STRING(state), (size_t)PyBytes_GET_SIZE(state));
    pn.delivery_update(delivery, TRANSACTIONAL);
}

/* Send a message with a delivery tag, or NULL for one that is made of its number. Unless it is settled, it is noted in `sent`,
 * else that is NULL. Returns 0 or, with an exception, -1. */
static int send_message(void *link, PyObject *data, const char *tag, unsigned long long number, PyObject *state,
                        PyObject *sent)
{
    static const char digits[] = "0123456789abcdef";
    char made[TAG];
    /* It must be unique among the unsettled ones of its link; proton copies it. */
    for (int digit = 0; digit < TAG; digit++)
        made[digit] = digits[(number >> (28 - 4 * digit)) & 15];
    bytes_t bytes = {TAG, tag ? tag : made};
    void *delivery = pn.delivery(link, bytes);
    if (state)
        set_state(delivery, state);
    pn.link_send(link, PyBytes_AS_STRING(data), (size_t)PyBytes_GET_SIZE(data));
    pn.link_advance(link);
    if (!sent) {
        pn.delivery_settle(delivery);
        return 0;
    }
    PyObject *address = number_of(delivery), *noted = PyLong_FromUnsignedLongLong(number);
    int failed = !address || !noted || PyDict_SetItem(sent, address, noted);
    Py_XDECREF(address);
    Py_XDECREF(noted);
    return failed ? -1 : 0;
}

PyDoc_STRVAR(send_doc,
"send(link, session, sent, messages, start, settled, backlog, tag, state)\n\n"
"Send the messages of a list from `start` on, while there is credit and the bytes of the session that wait to be\n"
"written are fewer than `backlog`; delivery tags are numbers from `tag` on, or the numbers of a list, one for each message\n"
"of the other. Unsettled ones are noted in `sent`. `state` is the encoded transactional state that they have, or None.\n\n"
"Returns: how many were sent.\n");

static PyObject *send_messages(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 9 || !PyDict_Check(arguments[2]) || !PyList_Check(arguments[3]) ||
        (arguments[8] != Py_None && !PyBytes_Check(arguments[8]))) {
        PyErr_SetString(PyExc_TypeError, "send takes 9 arguments: the third a dict, the fourth a list, the last bytes");
        return NULL;
    }
    void *link = PyLong_AsVoidPtr(arguments[0]), *session = PyLong_AsVoidPtr(arguments[1]);
    PyObject *sent = arguments[2], *messages = arguments[3];
    PyObject *state = arguments[8] == Py_None ? NULL : arguments[8];
    Py_ssize_t start = PyLong_AsSsize_t(arguments[4]), sum = 0;
    int settled = PyObject_IsTrue(arguments[5]);
    size_t backlog = PyLong_AsSize_t(arguments[6]);
    PyObject *tags = PyList_Check(arguments[7]) ? arguments[7] : NULL;
    unsigned long long next = tags ? 0 : PyLong_AsUnsignedLongLong(arguments[7]);
    if (PyErr_Occurred())
        return NULL;
    if (tags && PyList_GET_SIZE(tags) != PyList_GET_SIZE(messages)) {
        PyErr_SetString(PyExc_ValueError, "not as many delivery tags as messages");
        return NULL;
    }
    for (Py_ssize_t i = start < 0 ? 0 : start; i < PyList_GET_SIZE(messages); i++) {
        if (pn.link_credit(link) <= 0 || pn.session_outgoing_bytes(session) >= backlog)
            break;
        PyObject *data = PyList_GET_ITEM(messages, i);
        if (!PyBytes_Check(data)) {
            PyErr_SetString(PyExc_TypeError, "a message is not bytes");
            return NULL;
        }
        char tag[TAG];
        if (tags && (next = PyLong_AsUnsignedLongLong(PyList_GET_ITEM(tags, i))) == (unsigned long long)-1 && PyErr_Occurred())
            return NULL;
        for (int digit = 0; tags && digit < TAG; digit++)
            tag[digit] = (char)(next >> (56 - 8 * digit));
        if (send_message(link, data, tags ? tag : NULL, next, state, settled ? NULL : sent))
            return NULL;
        next++;
        sum++;
    }
    return PyLong_FromSsize_t(sum);
}

/* See `accept`; without a state, or a dictionary, these are NULL. Returns 0 or, with an exception, -1. */
static int accept_messages(PyObject *received, PyObject *tags, PyObject *state, PyObject *confirming)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tags); i++) {
        PyObject *tag = PyList_GET_ITEM(tags, i);
        PyObject *address = PyDict_GetItemWithError(received, tag);
        if (!address) {
            if (PyErr_Occurred())
                return -1;
            continue;
        }
        void *delivery = delivery_at(address);
        if (PyErr_Occurred())
            return -1;
        if (state) {
            set_state(delivery, state);
            continue;
        }
        if (confirming ? PyDict_SetItem(confirming, address, tag) : PyDict_DelItem(received, tag))
            return -1;
        pn.delivery_update(delivery, ACCEPTED);
        if (!confirming)
            pn.delivery_settle(delivery);
    }
    return 0;
}

PyDoc_STRVAR(accept_doc,
"accept(received, tags, state, confirming)\n\n"
"Accept messages that are in `received`, addresses by delivery tag. Other tags are left out. `state` is a transactional\n"
"state as encoded bytes that they are given, or None. Without it they are settled and taken out; unless `confirming` is a\n"
"dictionary, where their tags are noted by their addresses instead.\n");

static PyObject *accept(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 4 || !PyDict_Check(arguments[0]) || !PyList_Check(arguments[1]) ||
        (arguments[2] != Py_None && !PyBytes_Check(arguments[2])) ||
        (arguments[3] != Py_None && !PyDict_Check(arguments[3]))) {
        PyErr_SetString(PyExc_TypeError, "accept takes a dict, a list, bytes or None, and a dict or None");
        return NULL;
    }
    PyObject *state = arguments[2] == Py_None ? NULL : arguments[2];
    if (accept_messages(arguments[0], arguments[1], state, arguments[3] == Py_None ? NULL : arguments[3]))
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(room_doc,
"room(link, session, backlog)\n\n"
"Credit of a link, or -1 if so many bytes of its session wait to be written that no message may be sent.\n");

static PyObject *room(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "room takes 3 arguments");
        return NULL;
    }
    void *link = PyLong_AsVoidPtr(arguments[0]), *session = PyLong_AsVoidPtr(arguments[1]);
    size_t backlog = PyLong_AsSize_t(arguments[2]);
    if (PyErr_Occurred())
        return NULL;
    long credit = pn.link_credit(link);
    if (credit > 0 && pn.session_outgoing_bytes(session) >= backlog)
        credit = -1;
    else if (credit < 0)
        credit = 0;
    return PyLong_FromLong(credit);
}

/* Where output is put together: kept, once it has grown. A call takes it for itself, since proton may call Python, and
 * Python another thread. */
static char *output_buffer;
static size_t output_size;

typedef struct {
    char *buffer;
    size_t size;
    size_t used;
    bool more; /* an event is left */
} output_t;

/* Take bytes for the peer, see `output`; `keep_buffer` follows. Returns 0 or, with an exception, -1. */
static int take_output(output_t *taken, void *transport, void *collector, size_t most)
{
    void *event = NULL;
    *taken = (output_t){.buffer = output_buffer, .size = output_size};
    output_buffer = NULL;
    output_size = 0;
    do {
        ssize_t pending = pn.transport_pending(transport);
        while ((event = pn.collector_peek(collector)) && is_of_output(pn.event_type(event)))
            pn.collector_pop(collector);
        if (pending <= 0)
            break;
        if ((size_t)pending > taken->size - taken->used) {
            size_t wanted = 2 * (taken->used + (size_t)pending);
            char *grown = PyMem_Realloc(taken->buffer, wanted);
            if (!grown) {
                PyErr_NoMemory();
                return -1;
            }
            taken->buffer = grown;
            taken->size = wanted;
        }
        pending = pn.transport_peek(transport, taken->buffer + taken->used, (size_t)pending);
        if (pending <= 0)
            break;
        pn.transport_pop(transport, (size_t)pending);
        taken->used += (size_t)pending;
    } while (taken->used < most);
    taken->more = event != NULL;
    return 0;
}

static void keep_buffer(output_t *taken)
{
    if (taken->size > output_size) {
        PyMem_Free(output_buffer);
        output_buffer = taken->buffer;
        output_size = taken->size;
    } else {
        PyMem_Free(taken->buffer);
    }
}

PyDoc_STRVAR(output_doc,
"output(transport, collector, most, walker)\n\n"
"Take bytes for the peer, up to `most` or a frame more, without the events that proton raises for its own output.\n"
"`walker` is the address of that of the frames that are sent, or 0.\n\n"
"Returns: the bytes; whether an event is left; whether the bytes have to be walked: there is no walker, or it has found a\n"
"frame that the engine has to know of, and is where it was.\n");

static PyObject *output(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "output takes 4 arguments");
        return NULL;
    }
    void *transport = PyLong_AsVoidPtr(arguments[0]), *collector = PyLong_AsVoidPtr(arguments[1]);
    size_t most = PyLong_AsSize_t(arguments[2]);
    walker_t *walker = PyLong_AsVoidPtr(arguments[3]);
    if (PyErr_Occurred())
        return NULL;
    output_t taken;
    PyObject *found = NULL;
    if (!take_output(&taken, transport, collector, most)) {
        bool walked = !taken.used || (walker && !has_stop(walker, taken.buffer, taken.used, 0));
        found = Py_BuildValue("y#NN", taken.buffer ? taken.buffer : "", (Py_ssize_t)taken.used,
                              PyBool_FromLong(taken.more), PyBool_FromLong(!walked));
    }
    keep_buffer(&taken);
    return found;
}

/* A connection, as a thread that is not its loop's sees it while the gate is open; see lane.py. */
typedef struct {
    gate_t *gate;
    int descriptor;
    void *transport;
    void *collector;
    walker_t *walker;
    PyObject *unwritten; /* lists; borrowed */
    PyObject *unwalked;
    PyObject *unread;
} lane_t;

/* The lane that a tuple describes. Returns 0 or, with an exception, -1. */
static int find_lane(lane_t *lane, PyObject *place)
{
    if (!PyTuple_Check(place) || PyTuple_GET_SIZE(place) != 8 || !PyList_Check(PyTuple_GET_ITEM(place, 5)) ||
        !PyList_Check(PyTuple_GET_ITEM(place, 6)) || !PyList_Check(PyTuple_GET_ITEM(place, 7))) {
        PyErr_SetString(PyExc_TypeError, "a lane is a tuple of five numbers and three lists");
        return -1;
    }
    *lane = (lane_t){
        .gate = PyLong_AsVoidPtr(PyTuple_GET_ITEM(place, 0)),
        .descriptor = (int)PyLong_AsLong(PyTuple_GET_ITEM(place, 1)),
        .transport = PyLong_AsVoidPtr(PyTuple_GET_ITEM(place, 2)),
        .collector = PyLong_AsVoidPtr(PyTuple_GET_ITEM(place, 3)),
        .walker = PyLong_AsVoidPtr(PyTuple_GET_ITEM(place, 4)),
        .unwritten = PyTuple_GET_ITEM(place, 5),
        .unwalked = PyTuple_GET_ITEM(place, 6),
        .unread = PyTuple_GET_ITEM(place, 7),
    };
    return PyErr_Occurred() ? -1 : 0;
}

/* Enter the gate of the lane that the first of the arguments describes, if it is as it was in the epoch of the second.
 * Returns 1; 0 if it is not; or, with an exception, -1. Nothing from here on may let the interpreter go, or run Python. */
static int enter(lane_t *lane, PyObject *const *arguments)
{
    if (find_lane(lane, arguments[0]))
        return -1;
    unsigned long long epoch = PyLong_AsUnsignedLongLong(arguments[1]);
    if (PyErr_Occurred())
        return -1;
    if (!lane->gate->open || lane->gate->epoch != epoch)
        return 0;
    lane->gate->epoch++;
    return 1;
}

/* Leave something for the loop, and wake it up. */
static void leave_rest(lane_t *lane, PyObject *list, const char *data, size_t size)
{
    if (size) {
        PyObject *rest = PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
        if (!rest || PyList_Append(list, rest)) {
            /* Bytes are missing in what the peer gets: end the connection. */
            PyErr_Clear();
            lane->gate->end(lane->descriptor);
        }
        Py_XDECREF(rest);
    }
    lane->gate->left = true;
    lane->gate->wake(lane->gate);
}

/* Write what proton has for the peer. What the loop has to do is left for it; where that cannot be, the connection ends. */
static void write_at_once(lane_t *lane)
{
    output_t taken;
    if (take_output(&taken, lane->transport, lane->collector, SIZE_MAX)) {
        PyErr_Clear();
        lane->gate->end(lane->descriptor);
    } else if (taken.used && (!lane->walker || has_stop(lane->walker, taken.buffer, taken.used, 0))) {
        leave_rest(lane, lane->unwalked, taken.buffer, taken.used);
    } else {
        size_t done = taken.used ? lane->gate->write(lane->descriptor, taken.buffer, taken.used) : 0;
        if (done < taken.used || taken.more)
            leave_rest(lane, lane->unwritten, taken.buffer + done, taken.used - done);
    }
    keep_buffer(&taken);
}

PyDoc_STRVAR(send_at_once_doc,
"send_at_once(lane, epoch, link, session, sent, data, backlog, deliveries, unsettled, item)\n\n"
"Send a message and write it, on any thread, if the gate of the lane is open, and nothing has changed since the epoch.\n"
"`link`, `session`, `sent` and `backlog` are as of `send`; the delivery tag is the `next_tag` of `deliveries`; `item` is\n"
"noted in `unsettled` by it.\n\n"
"Returns: whether it was sent. If not, nothing has happened.\n");

static PyObject *send_at_once(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 10 || !PyDict_Check(arguments[4]) || !PyBytes_Check(arguments[5]) || !PyDict_Check(arguments[8])) {
        PyErr_SetString(PyExc_TypeError, "send_at_once takes 10 arguments: two dicts, and bytes");
        return NULL;
    }
    void *link = PyLong_AsVoidPtr(arguments[2]), *session = PyLong_AsVoidPtr(arguments[3]);
    PyObject *deliveries = arguments[7];
    size_t backlog = PyLong_AsSize_t(arguments[6]);
    PyObject *tag = PyObject_GetAttr(deliveries, name_next_tag);
    unsigned long long number = tag ? PyLong_AsUnsignedLongLong(tag) : 0;
    PyObject *next = PyErr_Occurred() ? NULL : PyLong_FromUnsignedLongLong(number + 1);
    lane_t lane;
    int entered = next ? enter(&lane, arguments) : -1;
    if (entered == 1 && (pn.link_credit(link) <= 0 || pn.session_outgoing_bytes(session) >= backlog))
        entered = 0;
    if (entered == 1) {
        if (PyObject_SetAttr(deliveries, name_next_tag, next) || PyDict_SetItem(arguments[8], tag, arguments[9])) {
            entered = -1; /* nothing is sent */
        } else {
            if (send_message(link, arguments[5], NULL, number, NULL, arguments[4])) {
                /* Its outcome would not be known: the connection ends, and it is sent again. */
                PyErr_Clear();
                lane.gate->end(lane.descriptor);
            }
            write_at_once(&lane);
        }
    }
    Py_XDECREF(tag);
    Py_XDECREF(next);
    return entered < 0 ? NULL : PyBool_FromLong(entered);
}

PyDoc_STRVAR(accept_at_once_doc,
"accept_at_once(lane, epoch, received, tags)\n\n"
"Accept messages, as `accept` does without the rest, and write that; `lane` and `epoch` are as of `send_at_once`.\n\n"
"Returns: whether they were accepted. If not, nothing has happened.\n");

static PyObject *accept_at_once(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 4 || !PyDict_Check(arguments[2]) || !PyList_Check(arguments[3])) {
        PyErr_SetString(PyExc_TypeError, "accept_at_once takes 4 arguments: the third a dict, the fourth a list");
        return NULL;
    }
    lane_t lane;
    int entered = enter(&lane, arguments);
    if (entered == 1) {
        if (accept_messages(arguments[2], arguments[3], NULL, NULL))
            entered = -1;
        write_at_once(&lane);
    }
    return entered < 0 ? NULL : PyBool_FromLong(entered);
}

#include "reading.c"

PyDoc_STRVAR(bind_doc,
"bind(addresses, delivery_event, flow_event, transport_event, accepted, transactional)\n\n"
"Tell where proton's functions are, and its numbers of what is looked for.\n");

static PyObject *bind(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *addresses;
    unsigned long long accepted, transactional;
    if (!PyArg_ParseTuple(arguments, "O!iiiKK", &PyList_Type, &addresses, &DELIVERY_EVENT, &FLOW_EVENT, &TRANSPORT_EVENT,
                          &accepted, &transactional))
        return NULL;
    if (PyList_GET_SIZE(addresses) != FUNCTIONS) {
        PyErr_SetString(PyExc_ValueError, "a wrong number of functions");
        return NULL;
    }
    uintptr_t found[FUNCTIONS];
    for (int i = 0; i < FUNCTIONS; i++) {
        found[i] = (uintptr_t)PyLong_AsVoidPtr(PyList_GET_ITEM(addresses, i));
        if (!found[i]) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "a function is missing");
            return NULL;
        }
    }
    memcpy(&pn, found, sizeof pn);
    ACCEPTED = accepted;
    TRANSACTIONAL = transactional;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"bind", bind, METH_VARARGS, bind_doc},
    {"feed", (PyCFunction)(void (*)(void))feed, METH_FASTCALL, feed_doc},
    {"send", (PyCFunction)(void (*)(void))send_messages, METH_FASTCALL, send_doc},
    {"accept", (PyCFunction)(void (*)(void))accept, METH_FASTCALL, accept_doc},
    {"room", (PyCFunction)(void (*)(void))room, METH_FASTCALL, room_doc},
    {"output", (PyCFunction)(void (*)(void))output, METH_FASTCALL, output_doc},
    {"send_at_once", (PyCFunction)(void (*)(void))send_at_once, METH_FASTCALL, send_at_once_doc},
    {"read_at_once", (PyCFunction)(void (*)(void))read_at_once, METH_FASTCALL, read_at_once_doc},
    {"accept_at_once", (PyCFunction)(void (*)(void))accept_at_once, METH_FASTCALL, accept_at_once_doc},
    {NULL, NULL, 0, NULL},
};

static int find_names(void)
{
    static const struct {
        PyObject **name;
        const char *text;
    } names[] = {
        {&name_received, "received"},   {&name_sent, "sent"},               {&name_accepting, "accepting"},
        {&name_confirming, "confirming"}, {&name_next_tag, "next_tag"},     {&name_rows, "rows"},
        {&name_numbered, "numbered"},   {&name_direct, "direct"},           {&name_extend, "extend"},
        {&name_unsettled, "unsettled"}, {&name_waiters, "waiters"},         {&name_threads, "threads"},
        {&name_fetching, "fetching"},   {&name_messages, "messages"},       {&name_fetching_threads, "fetching_threads"},
        {&name_credit, "credit"},       {&name_on_message, "on_message"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(*names[i].name = PyUnicode_InternFromString(names[i].text)))
            return -1;
    return 0;
}

static int start(PyObject *module)
{
    if (find_names())
        return -1;
    /* Changes with what native.py and this file say to each other, and with `walker_t`: a module that was compiled before
     * is not used. */
    if (PyModule_AddIntConstant(module, "WALKER", version()))
        return -1;
    if (PyModule_AddIntConstant(module, "GATE", GATE_VERSION))
        return -1;
    return PyModule_AddIntConstant(module, "VERSION", 8);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, start},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_native",
    .m_methods = methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&module_definition);
}
