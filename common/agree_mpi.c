/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreement on a result; see agree_mpi.h. */
#include "common/agree_mpi.h"

#include "common/errtext.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { IS_ERROR, IS_VERDICT, IS_FINE };

/* The knowledge of this rank about a failure, before the failures are counted. */
typedef struct agree_failure {
    int code;              /* code of this rank; 0: this rank did not fail in the same
                            * class as the first one */
    int first, first_code; /* the lowest rank that failed, and its code */
    kvtree_error mine;     /* text of this rank */
} agree_failure;

static int agree_mpi_failed(kvtree_error *err)
{
    return err_set(err, -EIO, "a collective call of MPI failed");
}

/* Uses only the last line: implementations put the calls before the cause. */
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

/* Appends the reason of the first rank that failed differently: often one rank has the
 * cause, and the others only its consequences. */
static int agree_add_other(MPI_Comm comm, const agree_failure *f, int count,
                           kvtree_error *err)
{
    int rank, other;
    kvtree_error first = *err, text = f->mine;
    MPI_Comm_rank(comm, &rank);
    int differs = f->code < 0 && f->code != f->first_code ? rank : INT_MAX;
    if (MPI_Allreduce(&differs, &other, 1, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS ||
        MPI_Bcast(text.text, sizeof text.text, MPI_CHAR, other, comm) != MPI_SUCCESS)
        return -EIO;
    return err_set(err, 0, "%.260s; %d with another reason, first rank %d: %.200s",
                   first.text, count, other, text.text);
}

/* Prefixes the text of the first rank with the number of failed ranks. Returns 0 or -EIO.
 */
static int agree_count(MPI_Comm comm, const agree_failure *f, kvtree_error *err)
{
    enum { FAILED, DIFFERENT, COUNTS };
    const int mine[COUNTS] = {f->code != 0, f->code < 0 && f->code != f->first_code};
    int all[COUNTS];
    if (MPI_Allreduce(mine, all, COUNTS, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS)
        return -EIO;
    if (all[FAILED] == 1)
        err_wrap(err, 0, "rank %d", f->first);
    else
        err_wrap(err, 0, "on %d ranks, first rank %d", all[FAILED], f->first);
    return all[DIFFERENT] ? agree_add_other(comm, f, all[DIFFERENT], err) : 0;
}

int agree(MPI_Comm comm, int code, kvtree_error *err)
{
    int size, rank;
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
    const agree_failure f = {.code = mine.class == worst.class ? code : 0,
                             .first = worst.rank,
                             .first_code = first.code,
                             .mine = code ? *err : first.err};
    *err = first.err;
    int counted = agree_count(comm, &f, err);
    return sent != MPI_SUCCESS || counted ? agree_mpi_failed(err) : first.code;
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
