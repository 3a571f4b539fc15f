/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots limit how many transfers of a node move files at a time. Slot number i is the
 * lock of <name>.<i> (axl_owner.c), which ends with the process that holds it, however
 * the process ends. Processes do not communicate: waiting processes poll. */
#include "src/axl_work.h"

#include "common/errtext.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds between two looks. */
#define LOOK 0.05

int axl_set_slots(axl_transfer *transfer, const char *name, int count, axl_error *err)
{
    if (count < 1 || count > AXL_SLOTS_MAX || transfer->slot_path)
        return err_set(err, -EINVAL, "%d slots of %s: %s", count, name,
                       transfer->slot_path ? "the transfer has slots already"
                                           : "their number is out of range");
    transfer->slot_path = axl_absolute(name);
    transfer->slot_count = count;
    return transfer->slot_path ? 0 : err_sys(err, -ENOMEM, "slots of %s", name);
}

static int slots_name(const axl_transfer *t, int i, char name[PATH_MAX])
{
    int n = snprintf(name, PATH_MAX, "%s.%d", t->slot_path, i);
    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Tries to take a slot. -EBUSY: all slots are taken. Any other error: locks do not work
 * here, and no transfer waits. */
static int slots_take(axl_transfer *t)
{
    char name[PATH_MAX];
    int rc = -EBUSY;
    for (int i = 0; i < t->slot_count && rc == -EBUSY; i++) {
        rc = slots_name(t, i, name);
        if (!rc) rc = axl_owner_take(name, &t->slot_fd, NULL);
        if (!rc) t->slot = i;
    }
    return rc;
}

void axl_slots_enter(axl_work *work)
{
    axl_transfer *t = work->transfer;
    if (!t->slot_path) return;
    pthread_mutex_lock(&work->lock);
    while (work->entering && !axl_work_is_over(work))
        pthread_cond_wait(&work->changed, &work->lock);
    work->entering = !work->entered && !axl_work_is_over(work);
    while (work->entering) { /* only one worker is here */
        pthread_mutex_unlock(&work->lock);
        bool taken = slots_take(t) != -EBUSY;
        pthread_mutex_lock(&work->lock);
        work->entered = taken;
        work->entering = !taken && !axl_work_is_over(work);
        work->looks++;
        /* bytes not moved while waiting are not made up for */
        if (taken)
            axl_throttle_begin(&work->throttle, t->bandwidth, t->percent,
                               axl_seconds(CLOCK_MONOTONIC));
        if (work->entering)
            axl_work_pause_until(work, axl_seconds(CLOCK_MONOTONIC) + LOOK);
    }
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);
}

void axl_slots_leave(axl_transfer *transfer)
{
    char name[PATH_MAX];
    if (transfer->slot_fd >= 0 && slots_name(transfer, transfer->slot, name) == 0)
        axl_owner_drop(name, &transfer->slot_fd);
}

uint64_t axl_slots_looks(const axl_transfer *transfer)
{
    axl_work *w = transfer->work;
    if (!w) return 0;
    pthread_mutex_lock(&w->lock);
    uint64_t looks = w->looks;
    pthread_mutex_unlock(&w->lock);
    return looks;
}
