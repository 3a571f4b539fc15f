/* SPDX-License-Identifier: BSD-3-Clause */
/* Executes schedules (schedule.h) over a transport.
 *
 * A process that is one or some of the members works on all flows at once. A process that
 * is all members works on one flow after the other, so that its memory does not grow with
 * the number of flows.
 *
 * Sums are stored in a ring of slots. A slot receives sums, the member adds its own
 * bytes, and the slot is sent, so bytes are processed while they are cached. Receives are
 * posted `reach` tasks in advance, and a send must be complete only when its slot is
 * reused, `reach` tasks later. So reading, adding and both directions of the network
 * overlap.
 *
 * Why this does not deadlock: take the least unfinished task in the order of all members.
 * Its sums were sent, because the task that sends them is less. Its member may still wait
 * for the completion of a send of `reach` tasks ago. This send was of a lower stage, as
 * fewer consecutive tasks share one stage. So the task that receives it is not greater
 * than the least one, unless it has the same stage; then the receiving member is within
 * `reach` of the task, and has posted the receive. */
#include "src/set/flow_engine.h"

#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ENGINE_ALIGNMENT = 4096 };

/* Limit of a message, so that its size fits into an int. */
#define ENGINE_MESSAGE_MAX ((size_t)1 << 30)

/* A task, for one piece. */
typedef struct engine_turn {
    const redset_task *task;
    uint64_t number; /* number of turns before this one */
    uint64_t piece;
    int next; /* index of the following task */
} engine_turn;

struct redset_engine {
    redset_transport *transport;
    redset_shape shape;
    const uint8_t *lost;
    const uint64_t *length;
    redset_schedule *schedule;
    size_t piece; /* bytes */
    int reach, slots;
    int transfers; /* per slot: a receive, and sends */
    size_t stride; /* bytes of a slot */
    unsigned char *memory, *own;
    unsigned char *gathered; /* the sums that each local member gathers */
    size_t gathered_size;    /* bytes per member */
    uint64_t *ended;     /* for each local member: 1 + number of the turn that sent its
                            gathered sums */
    unsigned char **sum; /* addresses of the sums in use */
    redset_factors factors;
    redset_port *ports;
};

/* The maximum number of members whose tasks a process executes in one schedule. All
 * processes use the same maximum, because their pieces must be equal. */
static int engine_together(const redset_engine *e)
{
    const redset_transport *t = e->transport;
    return t->count < t->size ? t->busiest : 1;
}

/* ---- turns ---- */

static size_t engine_bytes(const redset_engine *e, const engine_turn *t)
{
    uint64_t left = t->task->length - t->piece * e->piece;
    return left < e->piece ? (size_t)left : e->piece;
}

/* Advances to the next turn, or, from a zeroed turn, to the first one. False at the end.
 */
static bool engine_advance(const redset_engine *e, engine_turn *t)
{
    const redset_schedule *s = e->schedule;
    if (t->task) t->number++;
    for (;; t->piece++, t->next = 0) {
        if (t->piece * e->piece >= s->longest) return false;
        while (t->next < s->count) {
            t->task = &s->tasks[t->next++];
            if (t->piece * e->piece < t->task->length) return true;
        }
    }
}

static int engine_slot(const redset_engine *e, const engine_turn *t)
{
    return (int)(t->number % (uint64_t)e->slots);
}

static unsigned char *engine_sums(const redset_engine *e, const engine_turn *t)
{
    return e->memory + (size_t)engine_slot(e, t) * e->stride;
}

static redset_port *engine_port(const redset_engine *e, const engine_turn *t)
{
    return &e->ports[redset_transport_index(e->transport, t->task->member)];
}

/* ---- messages ---- */

/* Returns where to write a text: only the text of the first error is kept. */
static redset_error *engine_err(const redset_port *port)
{
    return port->rc ? NULL : port->err;
}

static void engine_note(redset_port *port, int rc)
{
    if (!port->rc) port->rc = rc;
}

static void engine_wait(redset_engine *e, redset_port *port, int transfer)
{
    engine_note(port, e->transport->wait(e->transport, transfer, engine_err(port)));
}

static void engine_wait_for_sends(redset_engine *e, redset_port *port, int slot)
{
    for (int i = 1; i < e->transfers; i++)
        engine_wait(e, port, slot * e->transfers + i);
}

/* Reclaims the slot of a turn, and posts the receive of its sums. */
static void engine_prepare(redset_engine *e, const engine_turn *t)
{
    const redset_task *task = t->task;
    redset_port *port = engine_port(e, t);
    int slot = engine_slot(e, t);
    size_t bytes = engine_bytes(e, t) * (size_t)task->sums;
    engine_wait_for_sends(e, port, slot);
    if (task->from < 0) return;
    redset_link link = {slot * e->transfers, task->member, task->from};
    engine_note(port, e->transport->receive(e->transport, link, engine_sums(e, t), bytes,
                                            engine_err(port)));
}

static void engine_send(redset_engine *e, const engine_turn *t)
{
    const redset_task *task = t->task;
    redset_port *port = engine_port(e, t);
    int transfer = engine_slot(e, t) * e->transfers + 1;
    size_t bytes = engine_bytes(e, t) * (size_t)(task->messages == 1 ? task->sums : 1);
    for (int i = 0; i < task->messages; i++) {
        unsigned char *from = engine_sums(e, t) + (task->copies ? 0 : (size_t)i * bytes);
        redset_link link = {transfer + i, task->member, task->to[i]};
        engine_note(
            port, e->transport->send(e->transport, link, from, bytes, engine_err(port)));
    }
}

/* ---- tasks ---- */

/* Reads the next bytes of a source; zeros after a failure. */
static void engine_read(redset_engine *e, const engine_turn *t, unsigned char *buf)
{
    redset_port *port = engine_port(e, t);
    size_t bytes = engine_bytes(e, t);
    if (!port->rc)
        port->rc =
            redset_streams_read(port->streams, t->task->stream, buf, bytes, port->err);
    if (port->rc) memset(buf, 0, bytes);
}

/* Sets the addresses of the sums that the local member of that index gathers. */
static void engine_find_gathered(const redset_engine *e, const engine_turn *t, int index)
{
    unsigned char *sums = e->gathered + (size_t)index * e->gathered_size;
    for (int i = 0; i < e->shape.failures; i++)
        e->sum[i] = sums + (size_t)i * engine_bytes(e, t);
}

/* Waits for the sends of the sums of the previous piece. Their transfers belong to the
 * slot of their turn until another turn takes the slot, and that turn waits for them. */
static void engine_reclaim_gathered(redset_engine *e, const engine_turn *t, int index)
{
    const uint64_t ended = e->ended[index];
    if (ended && t->number - (ended - 1) < (uint64_t)e->slots)
        engine_wait_for_sends(e, engine_port(e, t),
                              (int)((ended - 1) % (uint64_t)e->slots));
}

static void engine_end_gathered(redset_engine *e, const engine_turn *t, int index)
{
    const redset_task *task = t->task;
    redset_port *port = engine_port(e, t);
    const int transfer = engine_slot(e, t) * e->transfers + 1;
    const size_t bytes = engine_bytes(e, t);
    for (int i = 0; i < task->messages; i++) {
        redset_link link = {transfer + i, task->member, task->to[i]};
        engine_note(port, e->transport->send(e->transport, link, e->sum[i + 1], bytes,
                                             engine_err(port)));
    }
    if (!port->rc)
        port->rc = redset_streams_write(port->streams, task->stream, e->sum[0], bytes,
                                        port->err);
    e->ended[index] = t->number + 1;
}

/* Adds bytes of a source to the sums, or begins them. */
static void engine_add_to_sums(redset_engine *e, const engine_turn *t, int sums,
                               const unsigned char *from, bool begins)
{
    const size_t bytes = engine_bytes(e, t);
    redset_factors_set(&e->factors, sums, t->task->coefs);
    if (begins)
        redset_factors_begin(&e->factors, e->sum, from, bytes);
    else
        redset_factors_add(&e->factors, e->sum, from, bytes);
}

/* Adds the received bytes of a source to all sums. */
static void engine_gather(redset_engine *e, const engine_turn *t)
{
    const redset_task *task = t->task;
    const int index =
        engine_together(e) == 1 ? 0 : redset_transport_index(e->transport, task->member);
    engine_find_gathered(e, t, index);
    engine_wait(e, engine_port(e, t), engine_slot(e, t) * e->transfers);
    if (task->begins) engine_reclaim_gathered(e, t, index);
    engine_add_to_sums(e, t, e->shape.failures, engine_sums(e, t), task->begins);
    if (task->ends) engine_end_gathered(e, t, index);
}

/* Begins the sums, or adds to the received sums. */
static void engine_add(redset_engine *e, const engine_turn *t)
{
    const redset_task *task = t->task;
    size_t bytes = engine_bytes(e, t);
    unsigned char *sums = engine_sums(e, t);
    bool begins = task->from < 0;
    if (begins && (task->copies || (task->sums == 1 && task->coefs[0] == 1))) {
        engine_read(e, t, sums); /* the stream is the sum */
        return;
    }
    engine_read(e, t, e->own);
    engine_wait(e, engine_port(e, t), engine_slot(e, t) * e->transfers);
    for (int i = 0; i < task->sums; i++)
        e->sum[i] = sums + (size_t)i * bytes;
    engine_add_to_sums(e, t, task->sums, e->own, begins);
}

static void engine_write(redset_engine *e, const engine_turn *t)
{
    redset_port *port = engine_port(e, t);
    engine_wait(e, port, engine_slot(e, t) * e->transfers);
    if (!port->rc)
        port->rc = redset_streams_write(port->streams, t->task->stream, engine_sums(e, t),
                                        engine_bytes(e, t), port->err);
}

static void engine_run_schedule(redset_engine *e)
{
    engine_turn now = {0}, ahead = {0};
    bool more = engine_advance(e, &ahead);
    while (engine_advance(e, &now)) {
        for (; more && ahead.number < now.number + (uint64_t)e->reach;
             more = engine_advance(e, &ahead))
            engine_prepare(e, &ahead);
        if (now.task->is_target) {
            engine_write(e, &now);
        } else if (now.task->gathers) {
            engine_gather(e, &now);
        } else {
            engine_add(e, &now);
            engine_send(e, &now);
        }
    }
    for (int i = 0; i < e->slots; i++)
        engine_wait_for_sends(e, e->ports, i);
}

static bool engine_has_failed(const redset_engine *e)
{
    for (int i = 0; i < e->transport->count; i++)
        if (e->ports[i].rc) return true;
    return false;
}

void redset_engine_run(redset_engine *engine, redset_port port[])
{
    const redset_transport *t = engine->transport;
    engine->ports = port;
    if (t->count < t->size) {
        redset_schedule_members(engine->schedule, engine->lost, engine->length, t->count,
                                t->local);
        engine_run_schedule(engine);
        return;
    }
    for (int i = 0; i < t->size && !engine_has_failed(engine); i++) {
        redset_schedule_flow(engine->schedule, engine->lost, engine->length, i);
        engine_run_schedule(engine);
    }
}

/* ---- memory ---- */

/* The largest piece for which all slots, and one piece of a stream, fit into memory. All
 * members must compute the same value, whatever tasks they have. */
static size_t engine_piece(const redset *set, const redset_shape *shape, int slots)
{
    size_t sums = shape->scheme == REDSET_PARTNER ? 1 : (size_t)shape->failures;
    size_t piece =
        set->memory / ((size_t)slots * sums + 1) / ENGINE_ALIGNMENT * ENGINE_ALIGNMENT;
    if (piece < REDSET_PIECE_MIN) piece = REDSET_PIECE_MIN;
    if (piece > set->piece) piece = set->piece;
    return piece < ENGINE_MESSAGE_MAX / sums ? piece : ENGINE_MESSAGE_MAX / sums;
}

static size_t engine_align(size_t size)
{
    return (size + ENGINE_ALIGNMENT - 1) / ENGINE_ALIGNMENT * ENGINE_ALIGNMENT;
}

static int engine_allocate(redset_engine *e)
{
    uint64_t longest = 0;
    for (int i = 0; i < e->shape.members; i++)
        if (e->length[i] > longest) longest = e->length[i];
    int sums = redset_schedule_sums(&e->shape, e->lost);
    size_t most = longest < e->piece ? (size_t)longest : e->piece;
    size_t slots = (size_t)e->slots;
    bool gathers = redset_schedule_gathers(&e->shape, e->lost);
    size_t members = gathers ? (size_t)engine_together(e) : 0;
    e->transfers = 1 + redset_schedule_messages(&e->shape);
    e->stride = engine_align(most * (size_t)(gathers ? 1 : sums));
    e->gathered_size = engine_align(most * (size_t)sums);
    e->ended = calloc(members + 1, sizeof *e->ended);
    e->schedule = redset_schedule_new(&e->shape, engine_together(e));
    e->sum = calloc((size_t)sums, sizeof *e->sum);
    e->memory = io_buffer(slots * e->stride + members * e->gathered_size + most + 1);
    if (!e->schedule || !e->sum || !e->memory || !e->ended) return -ENOMEM;
    e->gathered = e->memory + slots * e->stride;
    e->own = e->gathered + members * e->gathered_size;
    int rc = redset_factors_init(&e->factors, sums);
    return rc ? rc : e->transport->reserve(e->transport, e->slots * e->transfers);
}

int redset_engine_new(const redset *set, const uint8_t lost[], const uint64_t length[],
                      redset_engine **engine, redset_error *err)
{
    redset_engine *e = calloc(1, sizeof *e);
    if (!e) return err_sys(err, -ENOMEM, "buffers");
    e->transport = set->members;
    e->shape = redset_place_shape(&set->layout.place);
    e->lost = lost;
    e->length = length;
    e->reach = redset_schedule_reach(&e->shape, engine_together(e));
    e->slots = 2 * e->reach;
    e->piece = engine_piece(set, &e->shape, e->slots);
    if (engine_allocate(e) != 0) {
        err_sys(err, -ENOMEM, "%d buffers of %zu bytes", e->slots, e->piece);
        redset_engine_free(e);
        return -ENOMEM;
    }
    *engine = e;
    return 0;
}

redset_engine *redset_engine_free(redset_engine *engine)
{
    if (!engine) return NULL;
    redset_schedule_free(engine->schedule);
    redset_factors_done(&engine->factors);
    free(engine->sum);
    free(engine->ended);
    free(engine->memory);
    free(engine);
    return NULL;
}
