/* SPDX-License-Identifier: BSD-3-Clause */
/* filo_register: a map for files that are already in the directory. */
#include "src/filo_private_mpi.h"

#include "common/crc32.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes read at a time. */
#define STEP ((size_t)1 << 20)

static int register_check_file(filo_job *job, filo_file *file)
{
    int rc = beneath_check_name(file->name, &job->err);
    if (!rc && filo_map_owns(job, file->name))
        rc = err_set(&job->err, -EINVAL, "file name \"%s\" belongs to the map %s",
                     file->name, job->map);
    return rc;
}

static int register_read_crc(filo_job *job, filo_file *file, int fd)
{
    char *buffer = io_buffer(STEP);
    uint64_t done = 0;
    ssize_t n = buffer ? 0 : -ENOMEM;
    file->crc = 0;
    while (n >= 0 && done < file->size) {
        size_t left = file->size - done < STEP ? (size_t)(file->size - done) : STEP;
        n = io_read(fd, buffer, left);
        if (n == 0) n = -EIO; /* the file was truncated meanwhile */
        if (n > 0) file->crc = crc32_add(file->crc, buffer, (size_t)n);
        if (n > 0) done += (uint64_t)n;
    }
    free(buffer);
    if (n < 0) return err_sys(&job->err, (int)n, "read %s/%s", job->folder, file->name);
    file->has_crc = 1;
    return 0;
}

static int register_inspect(filo_job *job, filo_file *file)
{
    struct stat st;
    int fd, rc = beneath_open(job->dir, file->name, O_RDONLY, 0, &fd, &job->err);
    if (rc) return err_wrap(&job->err, rc, "file %s", file->name);
    rc = io_fsync(fd);
    if (rc) err_sys(&job->err, rc, "fsync %s/%s", job->folder, file->name);
    /* the modification time is final only after the fsync */
    if (!rc && fstat(fd, &st) != 0)
        rc = err_sys(&job->err, -errno, "stat %s/%s", job->folder, file->name);
    if (!rc) {
        file->size = (uint64_t)st.st_size;
        file->has_crc = 0;
        filo_file_note_time(file, &st);
    }
    if (!rc && job->options.checksum) rc = register_read_crc(job, file, fd);
    io_close(&fd);
    return rc;
}

/* Collective, agreed. */
static int register_write_map(filo_job *job, int count, filo_file files[])
{
    kvtree *folders = NULL, *entry = NULL;
    int rc = filo_job_open(job);
    for (int i = 0; i < count && !rc; i++)
        rc = register_inspect(job, &files[i]);
    rc = filo_job_agree(job, rc);
    if (rc) return rc;
    rc = job->rank
             ? 0
             : filo_map_make_folder(job->options.base, job->folder, job->map, &job->err);
    /* the directories exist; this call distributes the work of syncing them */
    rc = filo_folders_make(job, rc, count, files, &folders);
    rc = rc ? rc : filo_map_make(job, count, files, &entry);
    rc = filo_job_agree(job, rc);
    if (!rc) rc = filo_commit(job, NULL, folders, entry, 0);
    kvtree_delete(&entry);
    kvtree_delete(&folders);
    return rc;
}

int filo_register(MPI_Comm comm, const char *folder, const char *map, int count,
                  filo_file files[], const filo_options *options, filo_error *err)
{
    filo_job job;
    int rc = filo_job_begin(&job, comm, folder, map, options);
    if (!rc) rc = filo_map_check_name(&job);
    if (!rc) rc = filo_list_check(&job, count, files, register_check_file);
    rc = filo_job_agree_key(&job, rc);
    if (!rc) rc = filo_names_compare(&job, 0, count, files, NULL);
    if (!rc) rc = register_write_map(&job, count, files);
    return filo_job_end(&job, rc, err);
}
