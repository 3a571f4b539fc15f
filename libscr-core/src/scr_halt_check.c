/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking at the halt file during a run. */
#include "scr_context.h"

#include "records/scr_halt.h"
#include <time.h>

void scr_halt_refresh(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    kvtree *fresh = kvtree_new();
    if (fresh && scr_halt_read(scr->prefix_fd, fresh, err) == 0) {
        kvtree_delete(&scr->halt);
        scr->halt = fresh;
        return;
    }
    scr_say(scr, 0, "warning: the halt file is not usable: %s", err);
    kvtree_delete(&fresh);
}

int scr_halt_now(struct scr *scr, int *halt)
{
    char reason[128] = "";
    int now = 0;
    if (scr->rank == 0) {
        scr_halt_refresh(scr);
        now = scr_halt_check(scr->halt, (int64_t)time(NULL), reason);
        if (now && !scr->halt_told)
            scr_event(scr, 1, &(scr_log_event){.kind = SCR_LOG_HALT, .note = reason},
                      "the run should end: %s", reason);
        else if (now)
            scr_say(scr, 1, "the run should end: %s", reason);
        scr->halt_told = now;
    }
    MPI_Bcast(&now, 1, MPI_INT, 0, scr->world);
    *halt = now;
    return SCR_SUCCESS;
}
