/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the run should end, and whether it is time for a checkpoint: what rank 0 knows
 * and which signals any rank saw, brought together by one operation of MPI. */
#include "ops/stop.h"

#include "config/signals.h"
#include "halt/halt.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Once, until it can be used again: applications ask at every step. */
static void tell_unusable(struct scr *scr, const char *why)
{
    if (!scr->halt.unusable)
        scr_say(&scr->report, 0, "warning: the halt file is not usable: %s", why);
    scr->halt.unusable = 1;
}

void scr_halt_refresh(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    kvtree *fresh = kvtree_new();
    if (fresh && scr_halt_read(scr->prefix.fd, fresh, err) == 0) {
        kvtree_delete(&scr->halt.file);
        scr->halt.file = fresh;
        scr->halt.unusable = 0;
        return;
    }
    tell_unusable(scr, err);
    kvtree_delete(&fresh);
}

/* In place of a file that cannot be read, what was known of it. */
static int replace_file(struct scr *scr, scr_changer *change, void *arg, char *err)
{
    tell_unusable(scr, err);
    int rc = change(scr->halt.file, arg);
    return rc > 0 ? scr_halt_write(scr->prefix.fd, scr->halt.file, err) : rc;
}

void scr_halt_update(struct scr *scr, scr_changer *change, void *arg)
{
    char err[SCR_ERR_TEXT] = "no memory";
    kvtree *fresh = kvtree_new();
    int rc = fresh ? scr_halt_change(scr->prefix.fd, change, arg, fresh, err) : -ENOMEM;
    if (rc == 0) {
        kvtree_delete(&scr->halt.file);
        scr->halt.file = fresh;
        return;
    }
    kvtree_delete(&fresh);
    if (rc == -EBADMSG) rc = replace_file(scr, change, arg, err);
    if (rc)
        scr_say(&scr->report, 0, "warning: the halt file could not be written: %s", err);
}

static int add_reason(kvtree *halt, void *reason)
{
    return scr_halt_add_reason(halt, *(const char **)reason);
}

void scr_halt_record(struct scr *scr, const char *reason)
{
    scr_halt_update(scr, add_reason, &reason);
}

int64_t scr_halt_today(void)
{
    return (int64_t)time(NULL);
}

static void tell(struct scr *scr, const char *reason)
{
    int wish = !scr->halt.signal && scr_halt_is_wish(scr->halt.file, scr_halt_today());
    scr_event(&scr->report, 0, &(scr_log_event){.kind = SCR_LOG_HALT, .note = reason},
              "the run should end: %s%s%s", reason,
              wish ? "; to go on: scr_halt --remove " : "", wish ? scr->prefix.path : "");
    scr->halt.told = 1;
}

/* On rank 0: 1 when a condition holds. */
static int check(struct scr *scr)
{
    char reason[SCR_HALT_REASON_SIZE] = "";
    scr_halt_refresh(scr);
    int now = scr_halt_check(scr->halt.file, &scr->halt.end, scr_halt_today(), reason);
    if (now && !scr->halt.told)
        tell(scr, reason);
    else if (!now)
        scr->halt.told = 0;
    return now;
}

void scr_halt_tell(struct scr *scr)
{
    if (scr->job.rank == 0 && !scr->set.halt_exit) check(scr);
}

/* Rank from saw the signal; all ranks know that. */
static void take_signal(struct scr *scr, int number, int from)
{
    char node[SCR_NODE_SIZE], reason[SCR_NODE_SIZE + 80];
    memcpy(node, scr->job.node_name, sizeof node);
    if (from != 0) MPI_Bcast(node, sizeof node, MPI_CHAR, from, scr->job.world);
    scr->halt.signal = number;
    if (scr->job.rank != 0) return;
    snprintf(reason, sizeof reason, SCR_HALT_SIGNAL ": SIG%s came to rank %d on node %s",
             scr_signal_text(number), from, node);
    scr_halt_record(scr, reason);
    tell(scr, reason);
}

int scr_look(struct scr *scr, int *need, int *halt)
{
    enum { SIGNAL, HALT, NEED, VOTES, NUMBERS = 128 };
    int64_t votes[VOTES] = {0};
    int seen = scr->halt.signal ? 0 : scr_signal_seen();
    /* the greatest is that of the lowest rank */
    if (seen) votes[SIGNAL] = (int64_t)(scr->job.ranks - scr->job.rank) * NUMBERS + seen;
    if (scr->job.rank == 0) {
        votes[HALT] = check(scr) || scr->halt.signal;
        votes[NEED] = need && scr_advise(scr, votes[HALT] != 0);
    }
    if (MPI_Allreduce(MPI_IN_PLACE, votes, VOTES, MPI_INT64_T, MPI_MAX, scr->job.world) !=
        MPI_SUCCESS)
        return SCR_FAILURE;
    int64_t signal = votes[SIGNAL];
    if (signal)
        take_signal(scr, (int)(signal % NUMBERS),
                    scr->job.ranks - (int)(signal / NUMBERS));
    *halt = votes[HALT] || signal;
    if (need) *need = votes[NEED] || signal;
    return SCR_SUCCESS;
}
