/* What `gate.c` and the compiled part of the engine share; see gate.c. */

#ifndef QMF_GATE_H
#define QMF_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gate gate_t;

struct gate {
    uint64_t epoch; /* counts what changes the connections of the loop: its turns, and what other threads did */
    bool open;      /* the loop's thread waits, and does nothing else */
    bool left;      /* another thread has left something for the loop */
    int counter;    /* of the kernel, which ends the wait */
    /* Writes to a socket, and returns how many bytes were taken; ends the connection of a socket; ends the wait. */
    size_t (*write)(int descriptor, const char *data, size_t size);
    void (*end)(int descriptor);
    void (*wake)(const gate_t *gate);
};

/* Changes with this structure. */
enum { GATE_VERSION = 1 };

#endif
