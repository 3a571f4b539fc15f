/* SPDX-License-Identifier: BSD-3-Clause */
/* Output to the prefix directory itself, as an operation of the run; the files and
 * records are the task of prefix/direct_io.c. */
#include "ops/route.h"

#include "common/agree_mpi.h"

int scr_bypass_start(struct scr *scr, kvtree_error *err)
{
    scr_flush_wait_for(scr, scr->lifecycle.open.name);
    return scr_direct_begin(&scr->prefix, &scr->lifecycle.open, err);
}

int scr_bypass_complete(struct scr *scr, int valid, kvtree_error *err)
{
    bool mapped = false;
    int64_t files = kvtree_size(scr->output.routed);
    int rc = scr_routed_check(scr, valid, err);
    rc = agree_sum(scr->job.world, rc, err, 1, &files);
    rc = rc ? rc : scr_routed_any(files > 0, err);
    if (!rc)
        rc = scr_direct_complete(&scr->prefix, &scr->lifecycle.open, scr->output.routed,
                                 scr->restart.below, &mapped, err);
    if (!rc) return SCR_SUCCESS;
    return mapped ? SCR_ERR_PREFIX : SCR_ERR_INVALID;
}
