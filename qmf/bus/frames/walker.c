/*
 * Walks the frames of a connection in one direction, and stops at those that the engine has to know of. The same as
 * `PythonWalker` in walker.py, which says more; see also scripts/c_extensions.py. A part of the engine's compiled
 * functions, too (native.c).
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes of a frame that are looked at; all fields that matter are among them. */
enum { HEAD = 128 };

/* As `Kind` in walker.py. */
enum { FORMAT = 1, LINK_ECHO, SESSION_ECHO, BEGIN, ATTACH, PADDED_TAG, INCOMPLETE, AVAILABLE };

typedef struct {
    uint64_t start;
    uint64_t end;
    uint32_t kind;
    uint32_t value;
    uint32_t channel;
} stop_t;

typedef struct {
    uint64_t skip;     /* bytes of the frame that are still to come */
    uint32_t outgoing; /* the direction */
    uint32_t lost;     /* this is not AMQP: nothing is looked at any more */
    uint32_t head_size;
    stop_t due;   /* of the frame; its kind is 0 if it is none of those that matter */
    stop_t found; /* by the last call */
    uint8_t head[HEAD];
} walker_t;

static const uint8_t PROTOCOL[] = "AMQP";

/* Changes with what walker.py and this file say to each other: a module that was compiled before is not used then. */
static inline int version(void) { return 3; }

static uint32_t read_uint32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Positions of the fields of a list at `pos`, at most `most`; returns how many there are whole before `end`. */
static int read_fields(const uint8_t *bytes, size_t pos, size_t end, int most, size_t *positions)
{
    uint32_t count;
    if (pos + 3 <= end && bytes[pos] == 0xc0) {
        count = bytes[pos + 2];
        pos += 3;
    } else if (pos + 9 <= end && bytes[pos] == 0xd0) {
        count = read_uint32(bytes + pos + 5);
        pos += 9;
    } else {
        return 0;
    }
    int found = 0;
    while (found < most && (uint32_t)found < count && pos < end) {
        static const uint8_t widths[] = {0, 0, 0, 0, 0, 1, 2, 4, 8, 16};
        unsigned kind = bytes[pos] >> 4;
        size_t width;
        if (kind >= 4 && kind < 10)
            width = widths[kind];
        else if ((kind & 1) == 0 && kind >= 10 && pos + 2 <= end)
            width = 1 + (size_t)bytes[pos + 1];
        else if ((kind & 1) == 1 && kind >= 10 && pos + 5 <= end)
            width = 4 + (size_t)read_uint32(bytes + pos + 1);
        else
            break;
        if (width > end - pos - 1)
            break;
        positions[found++] = pos;
        pos += 1 + width;
    }
    return found;
}

/* An unsigned number, or what stands for none. */
static uint32_t read_number(const uint8_t *bytes)
{
    return bytes[0] == 0x70 ? read_uint32(bytes + 1) : bytes[0] == 0x52 ? bytes[1] : 0;
}

static int read_flag(const uint8_t *bytes) { return bytes[0] == 0x41 || (bytes[0] == 0x56 && bytes[1] == 1); }

/* What a frame of which `known` bytes are there means; its kind and value are set in `out`. */
static void look(const uint8_t *frame, size_t known, int outgoing, stop_t *out)
{
    out->kind = 0;
    size_t pos = (size_t)frame[4] * 4, fields[10];
    if (frame[5] != 0 || pos < 8 || pos + 4 > known || frame[pos] != 0)
        return;
    unsigned code;
    if (frame[pos + 1] == 0x53) {
        code = frame[pos + 2];
        pos += 3;
    } else if (frame[pos + 1] == 0x80 && pos + 10 <= known && !read_uint32(frame + pos + 2)) {
        code = read_uint32(frame + pos + 6);
        pos += 10;
    } else {
        return;
    }
    out->channel = (uint32_t)frame[6] << 8 | frame[7];
    if (code == 0x14) {
        if (read_fields(frame, pos, known, 4, fields) < 4)
            return;
        if (!outgoing) {
            out->value = read_number(frame + fields[3]);
            out->kind = out->value ? FORMAT : 0;
        } else if (frame[fields[2]] == 0xa0 && frame[fields[2] + 1] == 12 && frame[fields[3]] == 0x43) {
            out->value = (uint32_t)fields[2];
            out->kind = PADDED_TAG;
        }
    } else if (code == 0x13 && !outgoing) {
        size_t found = read_fields(frame, pos, known, 10, fields);
        if (found == 10 && read_flag(frame + fields[9])) {
            out->value = read_number(frame + fields[5]) + read_number(frame + fields[6]);
            out->kind = frame[fields[4]] == 0x40 ? SESSION_ECHO : LINK_ECHO;
        } else if (found >= 8 && frame[fields[4]] != 0x40 && frame[fields[7]] != 0x40) {
            out->value = read_number(frame + fields[7]);
            out->kind = AVAILABLE;
        }
    } else if (code == 0x11 && !outgoing) {
        out->kind = BEGIN;
    } else if (code == 0x12 && outgoing) {
        out->kind = ATTACH;
    }
}

/* Bytes of a frame, or of a protocol header, which has the size of a frame without body. */
static uint32_t frame_length(const uint8_t *bytes) { return memcmp(bytes, PROTOCOL, 4) ? read_uint32(bytes) : 8; }

/* Bytes of a frame that have to be there to look at it. */
static size_t wanted(const uint8_t *bytes)
{
    uint32_t length = frame_length(bytes);
    return length < HEAD ? length : HEAD;
}

/* Take bytes of a frame that comes in pieces; 1 when there are enough to look at it. */
static int collect_head(walker_t *walker, const uint8_t *bytes, size_t size, size_t *pos)
{
    while (walker->head_size < 8 || walker->head_size < wanted(walker->head)) {
        if (*pos == size)
            return 0;
        walker->head[walker->head_size++] = bytes[(*pos)++];
    }
    return 1;
}

static int stop_incomplete(walker_t *walker, size_t size)
{
    stop_t *out = &walker->found;
    out->kind = INCOMPLETE;
    out->start = walker->due.start;
    out->end = size;
    out->channel = out->value = 0;
    return 1;
}

/* Walk on from `offset`; 1 if a stop is found, 0 at the end of the data. */
static int next_stop(walker_t *walker, const char *data, size_t size, size_t offset)
{
    const uint8_t *bytes = (const uint8_t *)data;
    size_t pos = offset;
    walker->due.start = pos;
    while (pos < size && !walker->lost) {
        if (!walker->skip) {
            const uint8_t *frame = bytes + pos;
            size_t known = size - pos, copied = 0;
            if (!walker->head_size)
                walker->due.start = pos;
            if (walker->head_size || known < 8 || known < wanted(frame)) {
                if (walker->outgoing)
                    return stop_incomplete(walker, size);
                if (!collect_head(walker, bytes, size, &pos))
                    return 0;
                frame = walker->head;
                known = copied = walker->head_size;
                walker->head_size = 0;
            }
            uint32_t length = frame_length(frame);
            if (length < 8) {
                walker->lost = 1;
                return 0;
            }
            walker->due.kind = 0;
            if (memcmp(frame, PROTOCOL, 4))
                look(frame, known < length ? known : length, (int)walker->outgoing, &walker->due);
            if (walker->due.kind == ATTACH && known < length)
                return stop_incomplete(walker, size);
            walker->skip = length - copied;
        }
        uint64_t step = walker->skip < size - pos ? walker->skip : size - pos;
        pos += step;
        walker->skip -= step;
        /* What is sent has to be changed now. */
        if ((!walker->skip || walker->outgoing) && walker->due.kind) {
            walker->found = walker->due;
            walker->found.end = pos;
            walker->due.kind = 0;
            return 1;
        }
    }
    return 0;
}
