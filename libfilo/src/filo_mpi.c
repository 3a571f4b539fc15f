/* SPDX-License-Identifier: BSD-3-Clause */
/* What every call has: arguments that are checked, a folder that is opened and closed, a
 * text that tells why it failed; and the way in which files move. */
#include "src/filo_private_mpi.h"

#include "common/folder.h"
#include "common/io.h"
#include <axl/axl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(FILO_ERROR_SIZE == ERRTEXT_SIZE && AXL_ERROR_SIZE == ERRTEXT_SIZE &&
                   KVTREE_ERROR_SIZE == ERRTEXT_SIZE,
               "one size of error texts");

#define DEFAULT_METHOD "sync"

/* ---- a call ---- */

static int check_method(const char *method, char *err)
{
    axl_transfer *transfer;
    int rc = axl_create(method, NULL, &transfer, err);
    if (rc == 0) axl_free(transfer);
    return rc;
}

int filo_job_begin(filo_job *job, MPI_Comm comm, const char *folder, const char *map,
                   const filo_options *options)
{
    const filo_options none = {0}, *o = options ? options : &none;
    memset(job, 0, sizeof *job);
    job->comm = comm;
    MPI_Comm_rank(comm, &job->rank);
    MPI_Comm_size(comm, &job->size);
    job->folder = folder;
    job->map = map ? map : FILO_MAP;
    job->method = o->method ? o->method : DEFAULT_METHOD;
    job->checksum = o->checksum;
    job->map_limit = o->map_limit;
    job->dir = -1;
    if (!folder || !*folder) return err_set(job->text, -EINVAL, "no folder");
    int rc = beneath_check_name(job->map, job->text);
    if (rc) return err_wrap(job->text, rc, "name of the map");
    return check_method(job->method, job->text);
}

int filo_job_open(filo_job *job)
{
    return folder_make(job->folder, 0, &job->dir, job->text);
}

kvtree_gather filo_map_place(const filo_job *job)
{
    return (kvtree_gather){.comm = job->comm,
                           .dir = job->dir,
                           .name = job->map,
                           .top = "RANK2FILE",
                           .limit = job->map_limit};
}

int filo_list_check(filo_job *job, int count, const filo_file files[],
                    int (*check)(filo_job *, const filo_file *))
{
    if (count < 0 || (count > 0 && !files))
        return err_set(job->text, -EINVAL, "no list of %d files", count);
    for (int i = 0; i < count; i++) {
        int rc = check(job, &files[i]);
        if (rc) return rc;
    }
    return 0;
}

int filo_job_end(filo_job *job, int rc, char *err)
{
    io_close(&job->dir);
    return rc ? err_set(err, rc, "%s", job->text) : 0;
}

/* ---- moving ---- */

static int add_file(axl_transfer *transfer, const filo_job *job,
                    enum filo_direction direction, const filo_file *file, char *err)
{
    char *path;
    if (asprintf(&path, "%s/%s", job->folder, file->name) < 0)
        return err_sys(err, -ENOMEM, "add %s", file->name);
    int rc = direction == FILO_OUT ? axl_add(transfer, file->local, path, err)
                                   : axl_add(transfer, path, file->local, err);
    free(path);
    return rc;
}

static int run(axl_transfer *transfer, filo_job *job, enum filo_direction direction,
               int count, const filo_file files[])
{
    int rc = 0;
    for (int i = 0; i < count && rc == 0; i++)
        rc = add_file(transfer, job, direction, &files[i], job->text);
    if (rc == 0) rc = axl_dispatch(transfer, job->text);
    return rc ? rc : axl_wait(transfer, job->text);
}

int filo_move(filo_job *job, enum filo_direction direction, int checksum, int count,
              const filo_file files[], filo_file result[])
{
    axl_transfer *transfer;
    const axl_options options = {.flags = AXL_KEEP_MODE | (checksum ? AXL_CHECKSUM : 0)};
    int rc = axl_create(job->method, &options, &transfer, job->text);
    if (rc) return rc;
    rc = run(transfer, job, direction, count, files);
    for (int i = 0; i < count && rc == 0; i++) {
        axl_file moved;
        rc = axl_get(transfer, (size_t)i, &moved);
        result[i] = files[i];
        result[i].size = moved.size;
        result[i].crc = moved.crc;
        result[i].has_crc = checksum != 0;
    }
    axl_free(transfer);
    return rc;
}
