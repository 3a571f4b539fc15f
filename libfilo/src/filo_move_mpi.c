/* SPDX-License-Identifier: BSD-3-Clause */
/* The copying of one rank: a transfer of libaxl-lite that starts when flow control admits
 * the rank. Every file consists of parts, which are written into existing staged files.
 * So files and containers are handled alike, in both directions. */
#include "src/filo_private_mpi.h"

#include "common/array.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <zlib.h>

#define DEFAULT_METHOD "sync"

enum { DEFAULT_WIDTH = 256 };

/* ---- the list ---- */

/* Whether the transfer can use the copies of an earlier process. */
static bool move_can_resume(const filo_options *o)
{
    return o->identity && o->state;
}

/* Whether leaders copy. */
static bool move_leads(const filo_move *move)
{
    return move->job->lead.node != MPI_COMM_NULL;
}

/* With slots, all ranks start at once, and wait for a slot on their node. */
static int move_width(const filo_options *o)
{
    if (o->slots) return INT_MAX;
    return o->width ? o->width : DEFAULT_WIDTH;
}

int filo_move_begin(filo_move *move, filo_job *job, const char *base, int count,
                    filo_file files[], bool checksum)
{
    const filo_options *o = &job->options;
    const unsigned flags =
        (checksum ? AXL_CHECKSUM : 0) | (move_can_resume(o) ? AXL_COMPARE : 0);
    const axl_options options = {.flags = flags,
                                 .workers = o->workers,
                                 .buffer = o->buffer,
                                 .bandwidth = o->bandwidth,
                                 .percent = o->percent,
                                 .state = o->state,
                                 .daemon = o->daemon,
                                 .base = base};
    move->job = job;
    move->count = count;
    move->files = files;
    if (!filo_lead_is_here(job)) {
        move->step = FILO_SETTLED; /* another rank copies */
        return 0;
    }
    int rc = filo_flow_begin(&move->flow, move_leads(move) ? job->lead.leaders : job->own,
                             move_width(o), &job->err);
    if (rc) return rc;
    rc = axl_create(o->method ? o->method : DEFAULT_METHOD, &options, &move->transfer,
                    &job->err);
    if (!rc) axl_set_patience(move->transfer, o->patience);
    if (!rc) axl_set_progress(move->transfer, o->progress, o->progress_arg);
    if (!rc && o->slots)
        rc = axl_set_slots(move->transfer, o->slots, o->slot_count, &job->err);
    return rc;
}

int filo_move_add(filo_move *move, int i, const struct stat *checked, char *source,
                  uint64_t source_offset, char *destination, uint64_t destination_offset,
                  uint64_t length)
{
    const axl_part wanted = {.source = source,
                             .source_offset = source_offset,
                             .destination = destination,
                             .destination_offset = destination_offset,
                             .length = length,
                             .device = checked ? checked->st_dev : 0,
                             .inode = checked ? checked->st_ino : 0,
                             .seen = move_leads(move) ? checked : NULL};
    int *owner = array_grow(move->owner, move->parts, sizeof *owner);
    if (owner) move->owner = owner;
    int rc = 0;
    if (!source || !destination || !owner)
        rc = err_sys(&move->job->err, -ENOMEM, "list files");
    else if (move_leads(move))
        rc = filo_lead_add(move->job, &wanted);
    else
        rc = axl_add_part(move->transfer, &wanted, &move->job->err);
    if (!rc) move->owner[move->parts++] = i;
    free(source);
    free(destination);
    return rc;
}

int filo_move_hand(filo_move *move, int rc)
{
    return move_leads(move) ? filo_lead_hand(move->job, rc, INT_MAX, move->transfer) : rc;
}

/* Whether this rank copies anything. */
static bool move_has_parts(const filo_move *move)
{
    return move->transfer && axl_count(move->transfer) > 0;
}

int filo_move_continue(filo_move *move)
{
    const filo_options *o = &move->job->options;
    if (!move_can_resume(o) || !move_has_parts(move)) return 0;
    int rc = axl_continue(move->transfer, &move->job->err);
    return rc == AXL_CONTINUES ? 0 : rc;
}

/* ---- the result ---- */

/* Combines size and checksum of the parts of a file. *next: the first part of the next
 * file. */
static int move_join_parts(const filo_move *move, size_t *next, filo_file *moved)
{
    axl_file part;
    int file = move->owner[*next];
    for (; *next < move->parts && move->owner[*next] == file; ++*next) {
        int rc = 0;
        if (move_leads(move))
            filo_lead_get(move->job, *next, &part);
        else
            rc = axl_get(move->transfer, *next, &part);
        if (rc) return rc;
        moved->size += part.size;
        moved->crc = (uint32_t)crc32_combine(moved->crc, part.crc, (z_off_t)part.size);
    }
    return 0;
}

/* Names the first damaged file, and counts the others. */
static int move_report_damaged(filo_move *move, const char *first, int damaged)
{
    if (damaged == 0) return 0;
    if (damaged == 1) return err_set(&move->job->err, FILO_DAMAGED, "%s", first);
    return err_set(&move->job->err, FILO_DAMAGED,
                   "%d files of this rank are damaged, the first: %s", damaged, first);
}

/* Called when all parts are copied: compares each file with its expected size and
 * checksum. */
static int move_verify(filo_move *move)
{
    filo_error first = {""};
    size_t next = 0;
    int rc = 0, damaged = 0;
    for (int i = 0; i < move->count && !rc; i++) {
        filo_file moved = move->files[i];
        moved.size = 0;
        moved.crc = 0;
        moved.has_crc |= move->job->options.checksum != 0;
        if (next < move->parts && move->owner[next] == i)
            rc = move_join_parts(move, &next, &moved);
        if (!rc) rc = move->check(move->job, &move->files[i], &moved);
        if (!rc) move->files[i] = moved;
        if (rc != FILO_DAMAGED) continue;
        if (damaged++ == 0) first = move->job->err;
        rc = 0;
    }
    return rc ? rc : move_report_damaged(move, first.text, damaged);
}

int filo_move_return(filo_move *move)
{
    if (!move_leads(move)) return 0;
    int rc = filo_lead_return(move->job, move->transfer);
    return rc ? rc : move_verify(move);
}

/* ---- moving ---- */

static void move_fail(filo_move *move, int rc)
{
    if (!move->rc) move->rc = rc;
}

/* Ends the copies of this rank, after success or failure. */
static void move_finish(filo_move *move)
{
    filo_error err;
    int rc = filo_flow_finish(&move->flow, move->rc != 0 || move->flow.failed, &err);
    if (rc && !move->rc) move->rc = err_set(&move->job->err, rc, "%s", err.text);
    move->step = FILO_DONE;
}

/* Number of file descriptors below which batch_make leaves files open: half of the limit
 * of the process, at most half of FD_SETSIZE, because the program may call select(). 0
 * for a transfer that may be resumed: its files get their sizes first, because a file
 * that does not reach its end is copied again. */
static int move_hold(const filo_move *move)
{
    enum { MOST = FD_SETSIZE / 2 };
    struct rlimit limit;
    if (move_can_resume(&move->job->options)) return 0;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 2 > MOST) return MOST;
    return (int)(limit.rlim_cur / 2);
}

/* Passes the descriptors of new files to the transfer, which need not open them again. */
static int move_make(filo_move *move)
{
    filo_error *err = &move->job->err;
    move->stage->hold = move_hold(move);
    int rc = batch_make(move->stage, err);
    for (size_t k = 0; k < move->parts && !rc; k++) {
        int fd = -1;
        if (k == 0 || move->owner[k] != move->owner[k - 1])
            fd = batch_take(move->stage, (size_t)move->owner[k]);
        if (fd >= 0) rc = axl_set_opened(move->transfer, k, fd, err);
    }
    return rc;
}

/* Starts the copying when it is this rank's turn. */
static void move_start(filo_move *move)
{
    filo_job *job = move->job;
    if (move->flow.failed || move->rc) {
        move_finish(move);
        return;
    }
    int rc = move->stage ? move_make(move) : 0;
    if (!rc && move_has_parts(move)) rc = axl_dispatch(move->transfer, &job->err);
    move_fail(move, rc);
    move->step = FILO_MOVES;
    if (rc) move_finish(move);
}

static void move_watch(filo_move *move, bool wait)
{
    filo_job *job = move->job;
    int rc = 0;
    if (move_has_parts(move))
        rc = wait ? axl_wait(move->transfer, &job->err)
                  : axl_test(move->transfer, &job->err);
    if (rc == AXL_RUNNING) return;
    if (!rc && !move_leads(move)) rc = move_verify(move);
    move_fail(move, rc);
    move_finish(move);
}

static int move_step(filo_move *move, bool wait)
{
    bool settled = false;
    filo_error *err = &move->job->err, other;
    int rc = 0;
    if (move->step == FILO_WAITS) {
        rc = filo_flow_admit(&move->flow, wait, move->rc ? &other : err);
        if (!rc && move->flow.admitted) move_start(move);
    }
    if (!rc && move->step == FILO_MOVES) move_watch(move, wait);
    if (!rc && move->step == FILO_DONE) {
        rc = filo_flow_settle(&move->flow, wait, &settled, move->rc ? &other : err);
        if (settled) move->step = FILO_SETTLED;
    }
    return rc;
}

int filo_move_go_on(filo_move *move, bool wait)
{
    int rc = move_step(move, wait);
    move_fail(move, rc);
    if (rc) move->step = FILO_SETTLED; /* messages failed: no message will arrive */
    return move->step == FILO_SETTLED ? 0 : FILO_RUNNING;
}

void filo_move_abort(filo_move *move)
{
    if (move->step == FILO_MOVES) {
        axl_cancel(move->transfer, NULL);
        move_fail(move, -ECANCELED);
        move_finish(move);
    }
    move_fail(move, -ECANCELED); /* a waiting rank does not start */
    while (filo_move_go_on(move, true) == FILO_RUNNING) {
    }
    if (move->transfer)
        axl_cancel(move->transfer, NULL); /* removes the state file, so that the transfer
                                             is not resumed */
}

void filo_move_forget(filo_move *move)
{
    if (move->transfer) axl_cancel(move->transfer, NULL);
    filo_flow_forget(&move->flow);
}

void filo_move_end(filo_move *move)
{
    move->transfer = axl_free(move->transfer);
    filo_flow_end(&move->flow);
    free(move->owner);
    move->owner = NULL;
}
