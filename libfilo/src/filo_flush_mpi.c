/* SPDX-License-Identifier: BSD-3-Clause */
/* filo_flush (SCR Developer Guide 1.2, section 2.32): check, make the folder, copy, write
 * the map. Each step is agreed on before the next one starts. */
#include "src/filo_private_mpi.h"

#include "common/agree_mpi.h"
#include "common/folder.h"
#include "common/io.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- before anything is written ---- */

static int check_file(filo_job *job, const filo_file *file)
{
    struct stat st;
    int rc = beneath_check_name(file->name, job->text);
    if (rc) return rc;
    if (kvtree_gather_owns(job->map, file->name))
        return err_set(job->text, -EINVAL, "file name \"%s\" belongs to the map %s",
                       file->name, job->map);
    if (!file->local)
        return err_set(job->text, -EINVAL, "file \"%s\" has no local path", file->name);
    if (lstat(file->local, &st) != 0)
        return err_sys(job->text, -errno, "stat %s", file->local);
    if (!S_ISREG(st.st_mode))
        return err_set(job->text, -EINVAL, "%s is not a regular file", file->local);
    if ((uint64_t)st.st_size != file->size)
        return err_set(job->text, -EIO, "%s has %lld bytes, not %" PRIu64, file->local,
                       (long long)st.st_size, file->size);
    return 0;
}

/* ---- the folder ---- */

/* Opens the folder of the map; it and all above it are made where missing. */
static int make_folders(filo_job *job, int *parent)
{
    char *path;
    const char *slash = strrchr(job->map, '/');
    int length = slash ? (int)(slash - job->map) : 0;
    if (asprintf(&path, "%s/%.*s", job->folder, length, job->map) < 0)
        return err_sys(job->text, -ENOMEM, "make folder %s", job->folder);
    int rc = folder_make(path, 0777, parent, job->text);
    free(path);
    return rc;
}

/* A root of an earlier map goes before the first file may be replaced that it names. */
static int prepare_folder(filo_job *job)
{
    int parent;
    if (job->rank != 0) return 0;
    int rc = make_folders(job, &parent);
    if (rc) return rc;
    rc = filo_job_open(job);
    if (rc == 0) rc = beneath_unlink(job->dir, job->map, job->text);
    if (rc == 0 && (rc = io_fsync(parent)) != 0)
        err_sys(job->text, rc, "fsync of the folder of %s/%s", job->folder, job->map);
    io_close(&parent);
    return rc;
}

/* Collective, agreed. */
static int write_map(filo_job *job, const kvtree *entry)
{
    const kvtree_gather map = filo_map_place(job);
    int rc = kvtree_gather_write(&map, entry, job->text);
    return rc ? err_wrap(job->text, rc, "map in %s", job->folder) : 0;
}

/* ---- the files ---- */

/* Compares what passed by with what the caller said about it. */
static int compare(filo_job *job, const filo_file *given, const filo_file *moved)
{
    if (moved->size != given->size)
        return err_set(job->text, -EIO, "%s has %" PRIu64 " bytes, not %" PRIu64,
                       given->local, moved->size, given->size);
    if (given->has_crc && moved->crc != given->crc)
        return err_set(job->text, -EIO,
                       "%s was altered: CRC32 0x%08" PRIx32 ", not 0x%08" PRIx32,
                       given->local, moved->crc, given->crc);
    return 0;
}

static int copy_files(filo_job *job, int count, const filo_file files[],
                      filo_file moved[])
{
    int checksum = job->checksum;
    for (int i = 0; i < count; i++)
        checksum |= files[i].has_crc;
    int rc = job->dir < 0 ? filo_job_open(job) : 0;
    if (rc == 0) rc = filo_move(job, FILO_OUT, checksum, count, files, moved);
    for (int i = 0; i < count && rc == 0; i++)
        rc = compare(job, &files[i], &moved[i]);
    return rc;
}

/* Collective, agreed. All after the arguments were found good. */
static int flush(filo_job *job, int count, const filo_file files[], filo_file moved[])
{
    kvtree *entry = NULL;
    int rc = filo_names_compare(job, count, files);
    if (rc) return rc;
    rc = agree(job->comm, prepare_folder(job), job->text);
    if (rc) return rc;
    rc = copy_files(job, count, files, moved);
    if (rc == 0 && !(entry = filo_map_entry(count, moved)))
        rc = err_sys(job->text, -ENOMEM, "make the map");
    rc = agree(job->comm, rc, job->text);
    if (rc == 0) rc = write_map(job, entry);
    kvtree_delete(&entry);
    return rc;
}

int filo_flush(MPI_Comm comm, const char *folder, const char *map, int count,
               filo_file files[], const filo_options *options, char *err)
{
    filo_job job;
    filo_file *moved = NULL;
    int rc = filo_job_begin(&job, comm, folder, map, options);
    if (rc == 0) rc = filo_list_check(&job, count, files, check_file);
    if (rc == 0 && !(moved = calloc((size_t)count + 1, sizeof *moved)))
        rc = err_sys(job.text, -ENOMEM, "flush %d files", count);
    rc = agree(comm, rc, job.text);
    if (rc == 0) rc = flush(&job, count, files, moved);
    for (int i = 0; i < count && rc == 0; i++)
        files[i] = moved[i];
    free(moved);
    return filo_job_end(&job, rc, err);
}
