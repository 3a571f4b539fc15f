/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreement on a result; see agree_mpi.h. */
#include "common/agree_mpi.h"

#include "common/errtext.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { IS_ERROR, IS_VERDICT, IS_FINE };

static int agree_mpi_failed(kvtree_error *err)
{
    return err_set(err, -EIO, "a collective call of MPI failed");
}

/* Only the last line: implementations put calls above the cause. */
int agree_mpi_check(int result, kvtree_error *err)
{
    char why[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (result == MPI_SUCCESS) return 0;
    MPI_Error_string(result, why, &length);
    while (length > 0 && why[length - 1] == '\n')
        why[--length] = 0;
    const char *line = strrchr(why, '\n');
    return err_set(err, -ECOMM, "MPI: %s", line ? line + 1 : why);
}

int agree_possible(MPI_Comm comm, kvtree_error *err)
{
    int between_groups = 0;
    if (comm == MPI_COMM_NULL) return err_set(err, -EINVAL, "MPI_COMM_NULL");
    MPI_Comm_test_inter(comm, &between_groups);
    return between_groups ? err_set(err, -EINVAL, "an intercommunicator") : 0;
}

int agree(MPI_Comm comm, int code, kvtree_error *err)
{
    int size, rank, failed;
    MPI_Comm_size(comm, &size);
    if (size == 1) return code;
    MPI_Comm_rank(comm, &rank);
    struct {
        int class, rank;
    } mine = {code < 0 ? IS_ERROR : code > 0 ? IS_VERDICT : IS_FINE, rank}, worst;
    if (MPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MINLOC, comm) != MPI_SUCCESS)
        return agree_mpi_failed(err);
    if (worst.class == IS_FINE) return 0;

    struct {
        int code;
        kvtree_error err;
    } first;
    memset(&first, 0, sizeof first);
    first.code = code;
    if (rank == worst.rank)
        snprintf(first.err.text, sizeof first.err.text, "%s", err->text);
    int sent = MPI_Bcast(&first, (int)sizeof first, MPI_BYTE, worst.rank, comm);
    int is_same = mine.class == worst.class;
    int counted = MPI_Allreduce(&is_same, &failed, 1, MPI_INT, MPI_SUM, comm);
    if (sent != MPI_SUCCESS || counted != MPI_SUCCESS) return agree_mpi_failed(err);
    snprintf(err->text, sizeof err->text, "%s", first.err.text);
    if (failed == 1) return err_wrap(err, first.code, "rank %d", worst.rank);
    return err_wrap(err, first.code, "on %d ranks, first rank %d", failed, worst.rank);
}

int agree_sum(MPI_Comm comm, int code, kvtree_error *err, int count, int64_t numbers[])
{
    int64_t mine[1 + AGREE_NUMBERS_MAX] = {code != 0}, sum[1 + AGREE_NUMBERS_MAX];
    for (int i = 0; i < count; i++)
        mine[1 + i] = numbers[i];
    if (MPI_Allreduce(mine, sum, 1 + count, MPI_INT64_T, MPI_SUM, comm) != MPI_SUCCESS)
        return agree_mpi_failed(err);
    if (sum[0]) return agree(comm, code, err);
    for (int i = 0; i < count; i++)
        numbers[i] = sum[1 + i];
    return 0;
}
