/* SPDX-License-Identifier: BSD-3-Clause */
/* Stops the process that may still copy for a rank of an interrupted flush on this node.
 */
#include "src/filo_private_mpi.h"

#include <errno.h>
#include <unistd.h>

int filo_flush_abandon(const char *state, int patience, filo_error *err)
{
    axl_transfer *t;
    filo_error cause = {""};
    int rc = axl_resume(state, "daemon", &t, &cause);
    if (rc == -ENOENT) return 0;
    if (rc == -EBADMSG || rc == -ENODATA) /* no process can resume it either */
        return unlink(state) == 0 ? 0 : err_sys(err, -errno, "unlink %s", state);
    if (rc) return err_set(err, rc, "%s", cause.text);
    axl_set_patience(t, patience);
    rc = axl_cancel(t, err);
    axl_free(t);
    return rc;
}
