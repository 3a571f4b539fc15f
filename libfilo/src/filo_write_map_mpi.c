/* SPDX-License-Identifier: BSD-3-Clause */
/* The map of the files of a job, written either by the ranks of this job or, with the
 * option ranks, by another number of ranks. In the second case rank 0 writes the map. It
 * receives the entries one by one, in the order of the ranks that wrote the files: the
 * entry of rank r comes from process r modulo the size of the job. */
#include "src/filo_private_mpi.h"

#include <errno.h>
#include <kvtree/kvtree_gather.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- entries ---- */

/* Fills entries with <process> -> <rank> -> entry. */
static int write_map_address(const filo_job *job, int count, const filo_file files[],
                             kvtree *entries)
{
    int rc = 0;
    for (int i = 0; i < count && !rc; i++) {
        const int rank = files[i].rank;
        char process[16];
        snprintf(process, sizeof process, "%d", rank % job->size);
        kvtree *entry = kvtree_set_kv_int(entries, process, rank);
        rc = entry ? filo_map_fill(entry, 1, &files[i]) : -ENOMEM;
    }
    return rc;
}

int filo_map_make(filo_job *job, int count, const filo_file files[], kvtree **entry)
{
    *entry = kvtree_new();
    int rc = *entry ? 0 : -ENOMEM;
    if (!rc && job->options.ranks)
        rc = write_map_address(job, count, files, *entry);
    else if (!rc)
        rc = filo_map_fill(*entry, count, files);
    if (!rc && !job->options.ranks)
        rc = filo_map_set_dataset(*entry, job->options.dataset);
    if (!rc) return 0;
    kvtree_delete(entry);
    return err_sys(&job->err, rc, "make the map");
}

/* ---- the map of another number of ranks ---- */

typedef struct write_map_source {
    filo_job *job;
    kvtree *entries; /* of this process: <rank> -> entry */
    int next;        /* first rank without an entry */
} write_map_source;

/* A rank without files has an entry, too. */
static int write_map_own_entry(const write_map_source *s, int rank, kvtree *entry)
{
    char key[16];
    snprintf(key, sizeof key, "%d", rank);
    int rc = kvtree_merge(entry, kvtree_get(s->entries, key));
    return rc ? rc : filo_map_fill(entry, 0, NULL);
}

/* Called on rank 0 by kvtree_gather_write_all. A sender that failed sends an empty tree.
 */
static int write_map_give(void *arg, int rank, kvtree *entry, kvtree_error *err)
{
    write_map_source *s = arg;
    const filo_job *job = s->job;
    const int from = rank % job->size;
    s->next = rank + 1;
    int rc =
        from ? kvtree_recv(entry, from, job->comm) : write_map_own_entry(s, rank, entry);
    if (!rc && !kvtree_get(entry, "FILE")) rc = -ENOMEM;
    rc = rc ? rc : filo_map_set_dataset(entry, job->options.dataset);
    return rc ? err_sys(err, rc, "entry of rank %d", rank) : 0;
}

static int write_map_send_all(const write_map_source *s)
{
    const filo_job *job = s->job;
    int first = 0;
    for (int rank = job->rank; rank < job->options.ranks; rank += job->size) {
        kvtree *entry = kvtree_new();
        int rc = entry ? write_map_own_entry(s, rank, entry) : -ENOMEM;
        int sent = kvtree_send(rc ? NULL : entry, 0, job->comm);
        kvtree_delete(&entry);
        if (!first) first = rc ? rc : sent;
    }
    return first;
}

/* On rank 0. After a failure, receives the remaining messages, because the other ranks
 * still send them. */
static int write_map_receive_all(write_map_source *s)
{
    filo_job *job = s->job;
    const kvtree_gather_place to = {.dir = job->dir,
                                    .name = job->map,
                                    .top = FILO_MAP_TOP,
                                    .limit = job->options.map_limit};
    int rc =
        kvtree_gather_write_all(&to, job->options.ranks, write_map_give, s, &job->err);
    for (; s->next < job->options.ranks; s->next++) {
        kvtree *rest = s->next % job->size ? kvtree_new() : NULL;
        if (s->next % job->size) kvtree_recv(rest, s->next % job->size, job->comm);
        kvtree_delete(&rest);
    }
    return rc;
}

/* Collective. Sends each process its entries, and merges the received trees, one per
 * sender. */
static int write_map_exchange(write_map_source *s, const kvtree *entries)
{
    kvtree *received = kvtree_new();
    s->entries = kvtree_new();
    int rc = kvtree_exchange(entries, received, s->job->comm);
    if (!rc && !s->entries) rc = -ENOMEM;
    for (kvtree_elem *e = kvtree_elem_first(received); e && !rc; e = kvtree_elem_next(e))
        rc = kvtree_merge(s->entries, kvtree_elem_hash(e));
    kvtree_delete(&received);
    return rc ? err_sys(&s->job->err, rc, "exchange entries of the map") : 0;
}

int filo_map_write_all(filo_job *job, const kvtree *entry)
{
    const kvtree_gather map = filo_map_place(job);
    if (!job->options.ranks) return kvtree_gather_write(&map, entry, &job->err);
    write_map_source s = {.job = job};
    int rc = filo_job_agree(job, write_map_exchange(&s, entry));
    if (!rc) {
        rc = job->rank ? write_map_send_all(&s) : write_map_receive_all(&s);
        if (rc && job->rank) err_sys(&job->err, rc, "send entries of the map");
        rc = filo_job_agree(job, rc);
    }
    kvtree_delete(&s.entries);
    return rc;
}

/* ---- a map alone ---- */

static int write_map_check_file(filo_job *job, filo_file *file)
{
    return beneath_check_name(file->name, &job->err);
}

/* Collective, agreed. */
static int write_map_alone(filo_job *job, int count, const filo_file files[])
{
    kvtree *entry = NULL;
    int rc = job->rank ? 0
                       : filo_map_make_folder(job->options.base, job->folder, job->map,
                                              &job->err);
    rc = filo_job_agree(job, rc);
    if (rc) return rc;
    rc = job->rank == 0 ? filo_job_open(job) : 0; /* the other ranks open it when they
                                                     write */
    rc = rc ? rc : filo_map_make(job, count, files, &entry);
    rc = filo_job_agree(job, rc);
    rc = rc ? rc : filo_map_write_all(job, entry);
    kvtree_delete(&entry);
    return rc;
}

int filo_write_map(MPI_Comm comm, const char *folder, const char *map, int count,
                   filo_file files[], const filo_options *options, filo_error *err)
{
    filo_job job;
    int rc = filo_job_begin(&job, comm, folder, map, options);
    if (!rc) rc = filo_map_check_name(&job);
    if (!rc) rc = filo_list_check(&job, count, files, write_map_check_file);
    rc = filo_job_agree_key(&job, rc);
    if (!rc) rc = filo_names_compare(&job, 0, count, files, NULL);
    if (!rc) rc = write_map_alone(&job, count, files);
    return filo_job_end(&job, rc, err);
}
