/* SPDX-License-Identifier: BSD-3-Clause */
/* What is left of a rank of a flush where nobody resumes it. */
#include "src/filo_private_mpi.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* First nobody moves anything any more. */
static void remove_files(const axl_transfer *t, uint64_t keep)
{
    axl_file file;
    uint64_t id;
    for (size_t i = 0; i < axl_count(t); i++)
        if (axl_get(t, i, &file) == 0 && filo_temporary_id(file.destination, &id) == 0 &&
            (!keep || id != keep))
            unlink(file.destination); /* it may be gone, or another rank may do it */
}

int filo_flush_abandon(const char *state, uint64_t keep, int patience, char *err)
{
    axl_transfer *t;
    char text[ERRTEXT_SIZE] = "";
    int rc = axl_resume(state, "daemon", &t, text);
    if (rc == -ENOENT) return 0;
    if (rc == -EBADMSG || rc == -ENODATA) /* nobody can tell, or go on with it */
        return unlink(state) == 0 ? 0 : err_sys(err, -errno, "unlink %s", state);
    if (rc) return err_set(err, rc, "%s", text);
    axl_set_patience(t, patience);
    rc = axl_cancel(t, err);
    if (!rc) remove_files(t, keep);
    axl_free(t);
    return rc;
}
