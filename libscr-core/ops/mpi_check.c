/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the MPI and the launcher of a program fit. The build defines the name of this
 * MPI (MPI_NAME), and how the version texts of others begin (MPI_OTHERS). */
#include "ops/mpi_check.h"

#include "common/errtext.h"
#include "common/number.h"
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* Variables in which launchers give each process the number of processes and its rank.
 * SLURM_NTASKS is not among them: it remains set if a batch script starts a program
 * itself. */
static const struct mpi_launcher {
    const char *size, *rank;
} mpi_launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                     {"PMI_SIZE", "PMI_RANK"},
                     {"FLUX_JOB_SIZE", "FLUX_TASK_RANK"},
                     {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"},
                     {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};

/* Larger than MPI_MAX_LIBRARY_VERSION_STRING of any MPI. */
enum { MPI_VERSION_SIZE = 1 << 14 };

int scr_mpi_check(kvtree_error *err)
{
    static const char *const others[] = {MPI_OTHERS};
    char version[MPI_VERSION_SIZE] = "";
    int length;
    MPI_Get_library_version(version, &length);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(version, others[i], strlen(others[i])) == 0)
            return err_set(err, -ELIBACC,
                           "the program runs with another MPI (%.*s) than SCR is built "
                           "with (%s): compile it with the latter, or use an SCR that is "
                           "built with its MPI",
                           (int)strcspn(version, ",\n"), version, MPI_NAME);
    return 0;
}

static int64_t mpi_number(const char *variable)
{
    const char *text = getenv(variable);
    int64_t number;
    return text && number_int64(text, &number) == 0 ? number : -1;
}

/* The launcher that started the fewest processes: it is the innermost one, as a launcher
 * may run under another. NULL: unknown. */
static const struct mpi_launcher *mpi_launched_by(void)
{
    const struct mpi_launcher *found = NULL;
    for (size_t i = 0; i < sizeof mpi_launchers / sizeof *mpi_launchers; i++) {
        int64_t size = mpi_number(mpi_launchers[i].size);
        if (size > 0 && (!found || size < mpi_number(found->size)))
            found = &mpi_launchers[i];
    }
    return found;
}

int scr_mpi_check_size(int ranks, kvtree_error *err)
{
    const struct mpi_launcher *by = mpi_launched_by();
    if (ranks > 1 || !by || mpi_number(by->size) == 1) return 0;
    return err_set(err, -ENOTCONN,
                   "%s=%s, but to MPI this process is the only one: each process runs "
                   "alone, with the same files. Start the program with a launcher of its "
                   "MPI (%s)",
                   by->size, getenv(by->size), MPI_NAME);
}

int scr_mpi_launched_rank(void)
{
    const struct mpi_launcher *by = mpi_launched_by();
    int64_t rank = by ? mpi_number(by->rank) : 0;
    return rank > 0 ? (int)rank : 0;
}
