/*
 * What happens to every message, in one call instead of a dozen: proton's events of simple messages are read in batches,
 * and a message is sent, or accepted, by one function. See native.py, which calls this, and batches_build.py.
 *
 * proton is not linked. Its functions are in the library that its Python package has loaded: native.py gives their
 * addresses once, in the order of `struct functions`.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

typedef struct {
    size_t size;
    const char *start;
} bytes_t; /* pn_bytes_t */

static struct functions {
    void *(*collector_peek)(void *);
    int (*collector_pop)(void *);
    int (*event_type)(void *);
    void *(*event_delivery)(void *);
    void *(*event_link)(void *);
    void *(*delivery)(void *, bytes_t);
    void *(*delivery_link)(void *);
    int (*delivery_updated)(void *);
    int (*delivery_aborted)(void *);
    int (*delivery_readable)(void *);
    int (*delivery_partial)(void *);
    int (*delivery_settled)(void *);
    size_t (*delivery_pending)(void *);
    uint64_t (*delivery_remote_state)(void *);
    void (*delivery_update)(void *, uint64_t);
    void (*delivery_settle)(void *);
    int (*link_is_receiver)(void *);
    void *(*link_current)(void *);
    ssize_t (*link_recv)(void *, char *, size_t);
    ssize_t (*link_send)(void *, const char *, size_t);
    int (*link_advance)(void *);
    int (*link_credit)(void *);
    size_t (*session_outgoing_bytes)(void *);
    ssize_t (*transport_pending)(void *);
    ssize_t (*transport_peek)(void *, char *, size_t);
    void (*transport_pop)(void *, size_t);
} pn;

static int DELIVERY_EVENT, FLOW_EVENT, TRANSPORT_EVENT;
static uint64_t ACCEPTED, TRANSACTIONAL;

/* A link. HOLDS: messages that the peer accepts without settling them stay unsettled. SKIP: nothing of it is simple. */
typedef struct {
    uintptr_t address;
    uint32_t number;
    uint32_t flags;
} link_t;

enum { HOLDS = 1, SKIP = 2 };

typedef struct {
    uint32_t link;
    uint32_t kind;
    uint64_t delivery;
    uint32_t offset;
    uint32_t size;
} record_t;

enum { MESSAGE = 1, SETTLED_MESSAGE = 2, OUTCOME = 3, HELD_OUTCOME = 4, FLOW = 5 };

/* Changes with what native.py and this file say to each other: a module that was compiled before is not used then. */
static int version(void) { return 4; }

static void bind(const uintptr_t *addresses, int delivery_event, int flow_event, int transport_event,
                 uint64_t accepted, uint64_t transactional)
{
    memcpy(&pn, addresses, sizeof pn);
    DELIVERY_EVENT = delivery_event;
    FLOW_EVENT = flow_event;
    TRANSPORT_EVENT = transport_event;
    ACCEPTED = accepted;
    TRANSACTIONAL = transactional;
}

/* A message that was received whole; 0 if it is not that simple, or finds no room. */
static int read_message(void *delivery, void *link, record_t *out, char *buffer, size_t size, size_t *used,
                        size_t limit)
{
    if (pn.delivery_aborted(delivery) || !pn.delivery_readable(delivery) || pn.link_current(link) != delivery ||
        pn.delivery_partial(delivery) || pn.delivery_remote_state(delivery) == TRANSACTIONAL)
        return 0;
    size_t pending = pn.delivery_pending(delivery);
    if (pending > limit || pending > size - *used)
        return 0;
    ssize_t count = pending ? pn.link_recv(link, buffer + *used, pending) : 0;
    pn.link_advance(link);
    out->offset = (uint32_t)*used;
    out->size = count > 0 ? (uint32_t)count : 0;
    *used += out->size;
    if (pn.delivery_settled(delivery)) {
        pn.delivery_settle(delivery);
        out->kind = SETTLED_MESSAGE;
    } else {
        out->kind = MESSAGE;
    }
    return 1;
}

/* The peer has accepted a message; 0 for any other outcome. */
static int read_outcome(void *delivery, unsigned holds, record_t *out)
{
    if (!pn.delivery_updated(delivery) || pn.delivery_remote_state(delivery) != ACCEPTED)
        return 0;
    if (holds && !pn.delivery_settled(delivery)) {
        out->kind = HELD_OUTCOME;
    } else {
        pn.delivery_settle(delivery);
        out->kind = OUTCOME;
    }
    out->offset = out->size = 0;
    return 1;
}

/* The link at an address among `count` links, which are in the order of their addresses; NULL if it is not there. */
static const link_t *find(const link_t *links, int count, uintptr_t address)
{
    int low = 0;
    while (low < count) {
        int middle = (low + count) / 2;
        if (links[middle].address < address)
            low = middle + 1;
        else if (links[middle].address > address)
            count = middle;
        else
            return links + middle;
    }
    return NULL;
}

/* Whether proton raises events of this type for its own output; `TRANSPORT_EVENT` only says that there is some. */
static int is_of_output(int type) { return type == FLOW_EVENT || type == TRANSPORT_EVENT; }

/*
 * Read events until one that is not simple: of another kind, on none of the links, or of a message that is.
 *
 * Returns the number of records, and sets *more if an event is left that the caller has to handle.
 */
static int collect(uintptr_t collector_address, const link_t *links, int link_count, record_t *out, int most,
                   char *buffer, size_t size, size_t limit, int flow, int *more)
{
    void *collector = (void *)collector_address;
    void *event;
    const link_t *last = NULL;
    size_t used = 0;
    int count = 0;
    *more = 0;
    while ((event = pn.collector_peek(collector))) {
        int type = pn.event_type(event);
        void *delivery = type == DELIVERY_EVENT ? pn.event_delivery(event) : 0;
        if (type == TRANSPORT_EVENT || (type == FLOW_EVENT && !flow)) {
            pn.collector_pop(collector);
            continue;
        }
        if (count == most || (!delivery && type != FLOW_EVENT)) {
            *more = 1;
            break;
        }
        void *link = delivery ? pn.delivery_link(delivery) : pn.event_link(event);
        if (!last || last->address != (uintptr_t)link)
            last = find(links, link_count, (uintptr_t)link);
        if (!last || last->flags & SKIP) {
            *more = 1;
            break;
        }
        record_t *record = out + count;
        record->link = last->number;
        record->delivery = (uint64_t)(uintptr_t)delivery;
        int simple = 1;
        if (!delivery) {
            record->kind = FLOW;
            record->offset = record->size = 0;
        } else if (pn.link_is_receiver(link)) {
            simple = read_message(delivery, link, record, buffer, size, &used, limit);
        } else {
            simple = read_outcome(delivery, last->flags & HOLDS, record);
        }
        if (!simple) {
            *more = 1;
            break;
        }
        count++;
        pn.collector_pop(collector);
    }
    return count;
}

/* Send a message; the address of its delivery, or 0 if it was settled. */
static uintptr_t send_message(uintptr_t link_address, const char *tag, size_t tag_size, const char *data, size_t size,
                              int settled)
{
    void *link = (void *)link_address;
    bytes_t bytes = {tag_size, tag};
    void *delivery = pn.delivery(link, bytes);
    pn.link_send(link, data, size);
    pn.link_advance(link);
    if (!settled)
        return (uintptr_t)delivery;
    pn.delivery_settle(delivery);
    return 0;
}

static void accept_message(uintptr_t delivery)
{
    pn.delivery_update((void *)delivery, ACCEPTED);
    pn.delivery_settle((void *)delivery);
}

static void accept_all(const uintptr_t *deliveries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        accept_message(deliveries[i]);
}

/* 0 without credit, 1 with credit, 2 with credit and as many bytes that are not written yet as allowed. */
static int readiness(uintptr_t link, uintptr_t session, size_t backlog)
{
    if (pn.link_credit((void *)link) <= 0)
        return 0;
    return pn.session_outgoing_bytes((void *)session) < backlog ? 1 : 2;
}

/*
 * Write what there is for the peer to the buffer, which holds at least one frame, without the events that proton
 * raises for its own output. Returns the number of bytes, and sets *more if an event is left.
 */
static size_t output(uintptr_t transport_address, uintptr_t collector_address, char *buffer, size_t size, int *more)
{
    void *transport = (void *)transport_address, *collector = (void *)collector_address;
    size_t used = 0;
    void *event;
    *more = 0;
    while (used < size) {
        ssize_t count = pn.transport_pending(transport);
        while ((event = pn.collector_peek(collector)) && is_of_output(pn.event_type(event)))
            pn.collector_pop(collector);
        *more = event != NULL;
        if (count <= 0)
            break;
        if ((size_t)count > size - used)
            count = (ssize_t)(size - used);
        count = pn.transport_peek(transport, buffer + used, (size_t)count);
        if (count <= 0)
            break;
        pn.transport_pop(transport, (size_t)count);
        used += (size_t)count;
    }
    return used;
}
