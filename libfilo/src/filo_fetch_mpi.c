/* SPDX-License-Identifier: BSD-3-Clause */
/* filo_fetch: look at all files, copy, compare; each step is agreed on before the next.
 * A cache that is not whole is of no use, so a failure anywhere empties it everywhere. */
#include "src/filo_private_mpi.h"

#include "common/agree_mpi.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int damaged_size(filo_job *job, const filo_file *file, uint64_t size)
{
    return err_set(job->text, FILO_DAMAGED,
                   "%s/%s has %" PRIu64 " bytes, but its map says %" PRIu64, job->folder,
                   file->name, size, file->size);
}

static int check_file(filo_job *job, const filo_file *file)
{
    struct stat st;
    if (!file->local)
        return err_set(job->text, -EINVAL, "file \"%s\" has no local path", file->name);
    int rc = beneath_check_name(file->name, job->text);
    if (rc) return rc;
    rc = beneath_stat(job->dir, file->name, &st, job->text);
    if (rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP)
        return err_wrap(job->text, FILO_DAMAGED, "folder %s", job->folder);
    if (rc) return err_wrap(job->text, rc, "folder %s", job->folder);
    if (!S_ISREG(st.st_mode))
        return err_set(job->text, FILO_DAMAGED, "%s/%s is not a regular file",
                       job->folder, file->name);
    return (uint64_t)st.st_size == file->size
               ? 0
               : damaged_size(job, file, (uint64_t)st.st_size);
}

static int compare(filo_job *job, const filo_file *known, const filo_file *moved)
{
    if (moved->size != known->size) return damaged_size(job, known, moved->size);
    if (job->checksum && known->has_crc && moved->crc != known->crc)
        return err_set(job->text, FILO_DAMAGED,
                       "%s/%s was altered: CRC32 0x%08" PRIx32
                       ", but its map says 0x%08" PRIx32,
                       job->folder, known->name, moved->crc, known->crc);
    return 0;
}

static int copy_files(filo_job *job, int count, const filo_file files[])
{
    filo_file *moved = calloc((size_t)count + 1, sizeof *moved);
    if (!moved) return err_sys(job->text, -ENOMEM, "fetch %d files", count);
    int rc = filo_move(job, FILO_IN, job->checksum, count, files, moved);
    for (int i = 0; i < count && rc == 0; i++)
        rc = compare(job, &files[i], &moved[i]);
    free(moved);
    return rc;
}

static void remove_local(int count, const filo_file files[])
{
    for (int i = 0; i < count; i++)
        unlink(files[i].local);
}

int filo_fetch(MPI_Comm comm, const char *folder, int count, filo_file files[],
               const filo_options *options, char *err)
{
    filo_job job;
    int rc = filo_job_begin(&job, comm, folder, NULL, options);
    if (rc == 0) rc = filo_job_open(&job);
    if (rc == 0) rc = filo_list_check(&job, count, files, check_file);
    rc = agree(comm, rc, job.text);
    if (rc == 0) {
        rc = agree(comm, copy_files(&job, count, files), job.text);
        if (rc) remove_local(count, files);
    }
    return filo_job_end(&job, rc, err);
}
