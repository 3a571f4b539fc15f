/* SPDX-License-Identifier: BSD-3-Clause */
/* filo_read_map: libkvtree reads the map and sends each entry to a rank, which checks all
 * entries that it receives and keeps its own. */
#include "src/filo_private_mpi.h"

#include <errno.h>
#include <stdlib.h>

static int read_map_check(filo_job *job, const kvtree *entries)
{
    for (kvtree_elem *e = kvtree_elem_first(entries); e; e = kvtree_elem_next(e)) {
        int rc = filo_map_check(kvtree_elem_hash(e), job->options.dataset, &job->err);
        if (rc)
            return err_wrap(&job->err, rc, "map %s/%s: rank %s", job->folder, job->map,
                            kvtree_elem_key(e));
    }
    return 0;
}

/* Moves the files of an entry to the end of a list. */
static int read_map_append(const kvtree_elem *e, int *count, filo_file **files)
{
    int more = 0;
    filo_file *added = NULL;
    int rc = filo_map_files(kvtree_elem_hash(e), &more, &added);
    if (rc) return rc;
    filo_file *list =
        realloc(*files, ((size_t)*count + (size_t)more + 1) * sizeof **files);
    if (!list) {
        filo_files_free(more, added);
        return -ENOMEM;
    }
    *files = list;
    for (int i = 0; i < more; i++) {
        list[*count] = added[i];
        list[(*count)++].rank = kvtree_elem_key_int(e);
    }
    free(added);
    return 0;
}

static int read_map_own_files(filo_job *job, const kvtree *entries, int *count,
                              filo_file **files)
{
    int rc = read_map_check(job, entries);
    if (rc) return rc;
    if (!(*files = calloc(1, sizeof **files))) rc = -ENOMEM;
    for (kvtree_elem *e = kvtree_elem_first(entries); e && !rc; e = kvtree_elem_next(e))
        if (job->options.every || kvtree_elem_key_int(e) == job->rank)
            rc = read_map_append(e, count, files);
    return rc ? err_sys(&job->err, rc, "list the files of the map") : 0;
}

/* Collective, agreed. entries get <rank> -> entry. */
static int read_map_entries(filo_job *job, int *ranks, kvtree *entries)
{
    const kvtree_gather map = filo_map_place(job);
    int rc = kvtree_scatter_read(&map, ranks, entries, &job->err);
    if (rc == -EBADMSG) rc = FILO_DAMAGED;
    return rc ? err_wrap(&job->err, rc, "map in %s", job->folder) : 0;
}

int filo_read_map(MPI_Comm comm, const char *folder, const char *map, int *ranks,
                  int *count, filo_file **files, const filo_options *options,
                  filo_error *err)
{
    filo_job job;
    int all = 0, own_count = 0;
    filo_file *own = NULL;
    kvtree *entries = kvtree_new();
    int rc = filo_job_begin(&job, comm, folder, map, options);
    if (rc == 0 && job.rank == 0)
        rc = filo_job_open(&job); /* the other ranks open it when they read */
    if (rc == 0 && !entries) rc = err_sys(&job.err, -ENOMEM, "read the map");
    rc = filo_job_agree(&job, rc);
    if (rc == 0) rc = read_map_entries(&job, &all, entries);
    if (rc == 0)
        rc = filo_job_agree(&job, read_map_own_files(&job, entries, &own_count, &own));
    kvtree_delete(&entries);
    if (rc == 0) {
        *ranks = all;
        *count = own_count;
        *files = own;
    } else {
        filo_files_free(own_count, own);
    }
    return filo_job_end(&job, rc, err);
}
