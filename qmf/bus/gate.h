/* What `gate.c` and the compiled part of the engine share; see gate.c. */

#ifndef QMF_GATE_H
#define QMF_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct gate gate_t;

struct gate {
    uint64_t epoch; /* counts what changes the connections of the loop: its turns, and what other threads did */
    bool open;      /* the loop's thread waits, and does nothing else */
    bool left;      /* another thread has left something for the loop */
    int counter;    /* of the kernel, which ends the wait */
    int poll;       /* what the loop waits with */
    int socket;     /* that the loop's wait reads, or a thread that waits for messages; -1 for none */
    atomic_int reader; /* who reads the socket */
    /* Writes to a socket, and returns how many bytes were taken; ends the connection of a socket; ends the wait. */
    size_t (*write)(int descriptor, const char *data, size_t size);
    void (*end)(int descriptor);
    void (*wake)(const gate_t *gate);
    /* Has this thread read the socket instead of the loop's, if it can be. */
    bool (*take)(gate_t *gate);
    /* Waits for the socket and for a signal, without the interpreter, and reads. Returns how many bytes; 0 if it has none; -1 at
     * the end of the stream, or if reading failed. */
    ssize_t (*read)(int socket, int signal, int milliseconds, char *data, size_t size, bool *signaled);
    /* Undoes `take`. */
    void (*give_back)(gate_t *gate, int socket);
};

enum { NOBODY, LOOP, THREAD }; /* readers */

/* Changes with this structure. */
enum { GATE_VERSION = 2 };

#endif
