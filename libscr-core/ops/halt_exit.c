/* SPDX-License-Identifier: BSD-3-Clause */
/* SCR_HALT_EXIT=1: the only case in which SCR ends the process, because the user
 * requested it (SCR Developer Guide 1.2, section 2.20). First all work of SCR_Finalize is
 * done, and MPI is finalized: launchers may treat an exit without MPI_Finalize as a
 * crash. */
#include "ops/stop.h"

#include "halt/halt.h"
#include <stdio.h>
#include <stdlib.h>

/* Whether the run has all processes: MPI_Finalize waits for all, so either all exit or
 * none. */
static int halt_exit_has_all(const scr_job *job)
{
    int result;
    return MPI_Comm_compare(job->world, MPI_COMM_WORLD, &result) == MPI_SUCCESS &&
           result != MPI_UNEQUAL;
}

/* On rank 0: records the condition for scripts, as only this run may know it, and reports
 * the exit to the user, as its exit code may be 0. */
static void halt_exit_report(struct scr *scr)
{
    char why[SCR_HALT_REASON_SIZE] = "", reason[SCR_HALT_REASON_SIZE + 32];
    scr_halt_run_reason(&scr->halt, why);
    scr_say(&scr->report, SCR_MSG_HALT_EXIT, "the run is ended (SCR_HALT_EXIT=1): %s",
            why);
    snprintf(reason, sizeof reason, SCR_HALT_EXITED ": %s", why);
    scr_halt_run_record(&scr->halt, reason);
}

void scr_halt_exit(struct scr *scr)
{
    int halt = 0;
    if (!scr->set.halt_exit || scr_look(scr, NULL, &halt) != SCR_SUCCESS || !halt) return;
    if (!halt_exit_has_all(&scr->job)) {
        scr_say(&scr->report, SCR_MSG_HALT_EXIT_REFUSED,
                "SCR_HALT_EXIT=1 does not end this run: SCR_Init_comm was given some of "
                "its processes");
        scr->set.halt_exit = 0;
        return;
    }
    if (scr->job.rank == 0) halt_exit_report(scr);
    int rc = scr_finish(scr);
    scr_release(scr);
    scr->lifecycle.state = SCR_STATE_FINALIZED; /* for handlers that run at exit */
    MPI_Finalize();
    exit(rc == SCR_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE);
}
