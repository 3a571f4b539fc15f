/* SPDX-License-Identifier: BSD-3-Clause */
/* What every call has: arguments that are checked, messages of its own, a folder that is
 * opened and closed, a text that tells why it failed. */
#include "src/filo_private_mpi.h"

#include "common/agree_mpi.h"
#include "common/folder.h"
#include "common/io.h"
#include "common/replace.h"
#include "common/split_mpi.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(FILO_ERROR_SIZE == ERRTEXT_SIZE && KVTREE_ERROR_SIZE == ERRTEXT_SIZE,
               "one size of error texts");

static int duplicate(filo_job *job)
{
    int rc = agree_possible(job->comm, job->text);
    if (rc) return rc;
    if (MPI_Comm_dup(job->comm, &job->own) != MPI_SUCCESS) {
        job->own = MPI_COMM_NULL;
        return err_set(job->text, -EIO, "duplicate the communicator: MPI failed");
    }
    MPI_Comm_set_errhandler(job->own, MPI_ERRORS_RETURN);
    MPI_Comm_rank(job->own, &job->rank);
    MPI_Comm_size(job->own, &job->size);
    return 0;
}

static int check_options(filo_job *job)
{
    const filo_options *o = &job->options;
    if (o->width < 0) return err_set(job->text, -EINVAL, "a width of %d ranks", o->width);
    if (o->container > INT64_MAX)
        return err_set(job->text, -EINVAL, "containers of %llu bytes",
                       (unsigned long long)o->container);
    if (o->node && strlen(o->node) >= SPLIT_STRING_SIZE)
        return err_set(job->text, -EINVAL, "name of a node of %zu bytes",
                       strlen(o->node));
    return 0;
}

int filo_job_begin(filo_job *job, MPI_Comm comm, const char *folder, const char *map,
                   const filo_options *options)
{
    memset(job, 0, sizeof *job);
    job->comm = comm;
    job->own = MPI_COMM_NULL;
    job->folder = folder;
    job->map = map ? map : FILO_MAP;
    if (options) job->options = *options;
    job->dir = -1;
    int rc = duplicate(job);
    if (rc) return rc;
    if (!folder || !*folder) return err_set(job->text, -EINVAL, "no folder");
    rc = beneath_check_name(job->map, job->text);
    return rc ? err_wrap(job->text, rc, "name of the map") : check_options(job);
}

int filo_job_open(filo_job *job)
{
    return folder_make_below(job->options.base, job->folder, 0, &job->dir, job->text);
}

int filo_job_agree(filo_job *job, int rc)
{
    return job->own == MPI_COMM_NULL ? rc : agree(job->own, rc, job->text);
}

/* 20 bits of what must be the same on all ranks. */
static int64_t fingerprint(const filo_job *job)
{
    const filo_options *o = &job->options;
    char numbers[128];
    snprintf(numbers, sizeof numbers, "%d %" PRIu64 " %zu %d %" PRIx64, o->width,
             o->container, o->map_limit, o->node != NULL, o->id);
    unsigned h = filo_name_hash(job->folder);
    h = 31 * h + filo_name_hash(job->map);
    h = 31 * h + filo_name_hash(numbers);
    return h & 0xfffff;
}

/* n times the sum of the squares of n numbers is the square of their sum only where all
 * are equal: so every rank knows by sums whether all ranks have the same. */
int filo_job_agree_id(filo_job *job, int rc)
{
    enum { ID, SUM, SQUARES, NUMBERS };
    int64_t n[NUMBERS] = {0};
    if (job->own == MPI_COMM_NULL) return rc;
    if (!rc && job->rank == 0 && (rc = replace_draw(&job->id)) != 0)
        err_sys(job->text, rc, "random names");
    if (!rc && job->rank == 0) n[ID] = (int64_t)(job->id >> 1);
    if (!rc) n[SUM] = fingerprint(job);
    n[SQUARES] = n[SUM] * n[SUM];
    rc = agree_sum(job->own, rc, job->text, NUMBERS, n); /* the others have no id */
    job->id = job->options.id ? job->options.id : (uint64_t)n[ID];
    if (rc ||
        (uint64_t)n[SUM] * (uint64_t)n[SUM] == (uint64_t)job->size * (uint64_t)n[SQUARES])
        return rc;
    return err_set(job->text, -EINVAL,
                   "folder, map or options are not the same on all ranks");
}

kvtree_gather filo_map_place(const filo_job *job)
{
    return (kvtree_gather){.comm = job->comm,
                           .dir = job->dir,
                           .name = job->map,
                           .top = "RANK2FILE",
                           .limit = job->options.map_limit};
}

int filo_list_check(filo_job *job, int count, filo_file files[],
                    int (*check)(filo_job *, filo_file *))
{
    if (count < 0 || (count > 0 && !files))
        return err_set(job->text, -EINVAL, "no list of %d files", count);
    for (int i = 0; i < count; i++) {
        int rc = check(job, &files[i]);
        if (rc) return rc;
    }
    return 0;
}

void filo_job_meet(const filo_job *job)
{
    if (job->own != MPI_COMM_NULL) MPI_Barrier(job->own);
}

int filo_job_end(filo_job *job, int rc, char *err)
{
    if (rc) filo_job_meet(job);
    io_close(&job->dir);
    if (job->own != MPI_COMM_NULL) MPI_Comm_free(&job->own);
    return rc ? err_set(err, rc, "%s", job->text) : 0;
}
