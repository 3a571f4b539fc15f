/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes that the ranks of a node have moved; see tally.h. */
#include "ops/tally.h"

#include "common/beneath.h"
#include "common/io.h"
#include "ops/context.h"
#include <fcntl.h>

#define TALLY_NAME "progress.scrinfo"

/* The slot of a rank. A slot of an earlier operation counts as zero. */
typedef struct tally_place {
    uint64_t operation, done, total;
} tally_place;

void scr_tally_init(scr_tally *t)
{
    for (int kind = 0; kind < SCR_TALLY_KINDS; kind++)
        t->channels[kind] = (scr_tally_channel){.fd = -1, .kind = (scr_tally_kind)kind};
}

void scr_tally_open(scr_tally *t, const scr_job *job, int control_fd)
{
    const bool makes = job->node_rank == 0;
    int fd = -1;
    if (makes)
        beneath_open(control_fd, TALLY_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600, &fd, NULL);
    MPI_Barrier(job->node);
    if (!makes) beneath_open(control_fd, TALLY_NAME, O_RDWR, 0, &fd, NULL);
    MPI_Barrier(job->node);
    if (makes) beneath_unlink(control_fd, TALLY_NAME, NULL);
    for (int kind = 0; kind < SCR_TALLY_KINDS; kind++) {
        t->channels[kind].fd = fd;
        t->channels[kind].own = job->node_rank;
        t->channels[kind].count = job->node_ranks;
    }
}

void scr_tally_close(scr_tally *t)
{
    io_close(&t->channels[0].fd);
    scr_tally_init(t);
}

static off_t tally_offset(const scr_tally_channel *c, int rank)
{
    return (off_t)(rank * SCR_TALLY_KINDS + (int)c->kind) * (off_t)sizeof(tally_place);
}

/* If the write fails, this rank shows no progress. */
static void tally_fill(void *arg, uint64_t done, uint64_t total)
{
    const scr_tally_channel *c = arg;
    const tally_place place = {c->operation, done, total};
    io_pwrite(c->fd, &place, sizeof place, tally_offset(c, c->own));
}

void scr_tally_begin(scr_tally *t, scr_tally_kind kind)
{
    scr_tally_channel *c = &t->channels[kind];
    c->operation++;
    if (c->fd >= 0) tally_fill(c, 0, 0);
}

scr_tally_report *scr_tally_reporter(const scr_tally *t)
{
    return t->channels[0].fd >= 0 ? tally_fill : NULL;
}

void *scr_tally_arg(scr_tally *t, scr_tally_kind kind)
{
    return &t->channels[kind];
}

static void tally_sum(void *arg, uint64_t *done, uint64_t *total)
{
    const scr_tally_channel *c = arg;
    for (int rank = 0; rank < c->count; rank++) {
        tally_place place;
        if (io_pread(c->fd, &place, sizeof place, tally_offset(c, rank)) !=
                (ssize_t)sizeof place ||
            place.operation != c->operation)
            continue;
        *done += place.done;
        *total += place.total;
    }
}

scr_progress_source scr_tally_source(scr_tally *t, scr_tally_kind kind)
{
    scr_tally_channel *c = &t->channels[kind];
    return (scr_progress_source){c->fd >= 0 ? tally_sum : NULL, c};
}

void scr_show_progress(struct scr *scr, scr_progress *progress, scr_message message,
                       const char *what, const scr_dataset *d)
{
    const scr_tally_kind kind =
        message == SCR_MSG_FLUSH_PROGRESS ? SCR_TALLY_FLUSH : SCR_TALLY_FILES;
    if (kind == SCR_TALLY_FILES) scr_tally_begin(&scr->tally, kind);
    scr->cache.meter.done = scr->cache.meter.total = 0;
    scr_progress_begin(&scr->report, progress, scr_tally_source(&scr->tally, kind), NULL,
                       message, "%s of dataset %d (%.150s)", what, d->id, d->name);
}
