/* SPDX-License-Identifier: BSD-3-Clause */
/* A member's tasks under MPI, piece by piece (schedule.h).
 *
 * Sums lie in a ring of slots. A slot is received into, the member adds its own bytes,
 * and it is sent from, so the bytes are touched while they are in the cache. Receives are
 * posted `reach` tasks ahead, and a send has to be gone only when its slot is needed
 * again, `reach` tasks later; so reading, adding and both directions of the network
 * overlap.
 *
 * That this cannot lock up: take the least task, in the order of all members, that is not
 * done. Its sums were sent, as the task that sends them is less. Its member may still
 * wait for an older message to be gone, `reach` tasks ago, which was of a lower stage (no
 * more tasks than that share one), so the task that takes it is not greater than the
 * least one but for tasks of the same stage, which its member is within `reach` of, and
 * ready to receive. */
#include "src/redset_private_mpi.h"

#include "common/errtext.h"
#include "src/gf.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 0x7273, ALIGNMENT = 4096 };

/* Most bytes of a message, whose size is an int. */
#define LARGEST ((size_t)1 << 30)

typedef struct slot {
    unsigned char *sums;
    MPI_Request receive;
    MPI_Request *sends; /* one for each sum */
} slot;

/* A task for one piece. */
typedef struct turn {
    const redset_task *task;
    uint64_t number; /* of turns before it */
    uint64_t piece;
    int next; /* index of the task after it */
} turn;

struct redset_flows {
    MPI_Comm comm;
    redset_schedule *schedule;
    size_t piece; /* bytes */
    int slots, reach;
    slot *slot;
    unsigned char **sum; /* addresses of the sums that are being worked on */
    unsigned char *memory, *own;
    MPI_Request *requests;
    redset_factors factors;
    redset_streams *streams;
    int rc; /* the first error of this process */
    char *err;
};

/* ---- turns ---- */

static size_t bytes_of(const redset_flows *r, const turn *t)
{
    uint64_t left = t->task->length - t->piece * r->piece;
    return left < r->piece ? (size_t)left : r->piece;
}

/* The next one, or the first for a turn of zeros; 0 at the end. */
static int advance(const redset_flows *r, turn *t)
{
    const redset_schedule *s = r->schedule;
    if (t->task) t->number++;
    for (;; t->piece++, t->next = 0) {
        if (t->piece * r->piece >= s->longest) return 0;
        while (t->next < s->count) {
            t->task = &s->tasks[t->next++];
            if (t->piece * r->piece < t->task->length) return 1;
        }
    }
}

static slot *slot_of(const redset_flows *r, const turn *t)
{
    return &r->slot[t->number % (uint64_t)r->slots];
}

/* ---- messages ---- */

static void check(redset_flows *r, int result)
{
    if (result != MPI_SUCCESS && !r->rc) r->rc = redset_mpi(result, r->err);
}

static void wait_for_sends(redset_flows *r, slot *s)
{
    for (int i = 0; i < r->schedule->messages; i++)
        check(r, MPI_Wait(&s->sends[i], MPI_STATUS_IGNORE));
}

/* Waits until the slot is free again, and opens it for what comes. */
static void prepare(redset_flows *r, const turn *t)
{
    slot *s = slot_of(r, t);
    const redset_task *task = t->task;
    size_t bytes = bytes_of(r, t) * (size_t)task->sums;
    wait_for_sends(r, s);
    if (task->from >= 0)
        check(r, MPI_Irecv(s->sums, (int)bytes, MPI_BYTE, task->from, TAG, r->comm,
                           &s->receive));
}

static void send_sums(redset_flows *r, const turn *t)
{
    slot *s = slot_of(r, t);
    const redset_task *task = t->task;
    size_t bytes = bytes_of(r, t) * (size_t)(task->messages == 1 ? task->sums : 1);
    for (int i = 0; i < task->messages; i++) {
        unsigned char *from = s->sums + (task->copies ? 0 : (size_t)i * bytes);
        check(r, MPI_Isend(from, (int)bytes, MPI_BYTE, task->to[i], TAG, r->comm,
                           &s->sends[i]));
    }
}

/* ---- tasks ---- */

/* The stream's next bytes; after a failure zeros, so that the others get what they wait
 * for, and learn of it at the end. */
static void read_own(redset_flows *r, const turn *t, unsigned char *buf)
{
    size_t bytes = bytes_of(r, t);
    if (!r->rc)
        r->rc = redset_streams_read(r->streams, t->task->stream, buf, bytes, r->err);
    if (r->rc) memset(buf, 0, bytes);
}

/* Begins the sums, or adds to those that came. */
static void add_own(redset_flows *r, const turn *t)
{
    slot *s = slot_of(r, t);
    const redset_task *task = t->task;
    size_t bytes = bytes_of(r, t);
    bool begins = task->from < 0;
    if (begins && (task->copies || (task->sums == 1 && task->coefs[0] == 1))) {
        read_own(r, t, s->sums); /* the stream is the sum */
        return;
    }
    read_own(r, t, r->own);
    check(r, MPI_Wait(&s->receive, MPI_STATUS_IGNORE));
    if (begins) memset(s->sums, 0, bytes * (size_t)task->sums);
    for (int i = 0; i < task->sums; i++)
        r->sum[i] = s->sums + (size_t)i * bytes;
    redset_factors_set(&r->factors, task->sums, task->coefs);
    redset_add_product(&r->factors, r->sum, r->own, bytes);
}

static void take(redset_flows *r, const turn *t)
{
    slot *s = slot_of(r, t);
    check(r, MPI_Wait(&s->receive, MPI_STATUS_IGNORE));
    if (!r->rc)
        r->rc = redset_streams_write(r->streams, t->task->stream, s->sums, bytes_of(r, t),
                                     r->err);
}

int redset_flows_run(redset_flows *r, redset_streams *streams, char *err)
{
    r->streams = streams;
    r->err = err;
    r->rc = 0;
    turn now = {0}, ahead = {0};
    int left = advance(r, &ahead);
    while (advance(r, &now)) {
        for (; left && ahead.number < now.number + (uint64_t)r->reach;
             left = advance(r, &ahead))
            prepare(r, &ahead);
        if (now.task->target) {
            take(r, &now);
        } else {
            add_own(r, &now);
            send_sums(r, &now);
        }
    }
    for (int i = 0; i < r->slots; i++)
        wait_for_sends(r, &r->slot[i]);
    return r->rc;
}

/* ---- memory ---- */

/* The largest piece such that all slots, and one piece of our own, fit into memory. All
 * members must come to the same, whatever part they have. */
static size_t piece_size(const redset *set, const redset_shape *shape, int slots)
{
    size_t sums = shape->scheme == REDSET_PARTNER ? 1 : (size_t)shape->failures;
    size_t piece = set->memory / ((size_t)slots * sums + 1) / ALIGNMENT * ALIGNMENT;
    if (piece < REDSET_PIECE_MIN) piece = REDSET_PIECE_MIN;
    if (piece > set->piece) piece = set->piece;
    return piece < LARGEST / sums ? piece : LARGEST / sums;
}

/* The number rounded up. */
static size_t aligned(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int allocate(redset_flows *r)
{
    size_t sums = (size_t)r->schedule->sums, slots = (size_t)r->slots;
    size_t messages = (size_t)r->schedule->messages;
    size_t most =
        r->schedule->longest < r->piece ? (size_t)r->schedule->longest : r->piece;
    size_t stride = aligned(most * sums);
    r->slot = calloc(slots, sizeof *r->slot);
    r->requests = calloc(slots * messages + 1, sizeof *r->requests);
    r->sum = calloc(sums, sizeof *r->sum);
    r->memory = aligned_alloc(ALIGNMENT, slots * stride + aligned(most + 1));
    if (!r->slot || !r->requests || !r->sum || !r->memory) return -ENOMEM;
    for (size_t i = 0; i < slots * messages; i++)
        r->requests[i] = MPI_REQUEST_NULL;
    for (size_t i = 0; i < slots; i++)
        r->slot[i] =
            (slot){r->memory + i * stride, MPI_REQUEST_NULL, r->requests + i * messages};
    r->own = r->memory + slots * stride;
    return redset_factors_init(&r->factors, r->schedule->sums);
}

int redset_flows_new(const redset *set, const redset_shape *shape, const uint8_t lost[],
                     const uint64_t length[], redset_flows **flows, char *err)
{
    redset_flows *r = calloc(1, sizeof *r);
    if (!r) return err_sys(err, -ENOMEM, "buffers");
    r->comm = set->set;
    r->reach = redset_schedule_reach(shape);
    r->slots = 2 * r->reach;
    r->schedule = redset_schedule_new(shape, lost, length, set->layout.place.member);
    r->piece = piece_size(set, shape, r->slots);
    if (!r->schedule || allocate(r) != 0) {
        err_sys(err, -ENOMEM, "%d buffers of %zu bytes", r->slots, r->piece);
        redset_flows_free(r);
        return -ENOMEM;
    }
    *flows = r;
    return 0;
}

redset_flows *redset_flows_free(redset_flows *flows)
{
    if (!flows) return NULL;
    redset_schedule_free(flows->schedule);
    redset_factors_done(&flows->factors);
    free(flows->slot);
    free(flows->requests);
    free(flows->sum);
    free(flows->memory);
    free(flows);
    return NULL;
}
