/* SPDX-License-Identifier: BSD-3-Clause */
/* Duplicate names: two ranks that list the same name would overwrite each other's file.
 * Each name is sent to the rank that its hash selects, where equal names meet. No rank
 * receives more than its share of the names. */
#include "src/filo_private_mpi.h"

#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* FNV-1a, 32 bits (http://www.isthe.com/chongo/tech/comp/fnv/). The final mixing is
 * needed because the low bits of FNV-1a are poor for names that differ in few places. */
unsigned filo_name_hash(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return (h ^ h >> 15) * 0x9e3779b1u >> 8;
}

static int names_address(filo_job *job, int count, const filo_file files[], kvtree *send)
{
    for (int i = 0; i < count; i++) {
        char judge[16];
        const char *name = files[i].name;
        snprintf(judge, sizeof judge, "%u", filo_name_hash(name) % (unsigned)job->size);
        kvtree *names = kvtree_get(send, judge);
        if (!names) names = kvtree_set(send, judge, NULL);
        if (kvtree_get(names, name))
            return err_set(&job->err, -EEXIST, "file name \"%s\" is listed twice", name);
        if (!kvtree_set(names, name, NULL))
            return err_sys(&job->err, -ENOMEM, "compare file names");
    }
    return 0;
}

/* ---- the lowest rank of a name ---- */

/* Replies to each sender the names that a lower rank has as well. Senders come in any
 * order. */
static int names_find_lowest(kvtree *received, kvtree *reply)
{
    kvtree_elem *sender, *name;
    kvtree *seen = kvtree_new(); /* name -> lowest rank */
    int rc = seen ? kvtree_sort_int(received, KVTREE_SORT_ASCENDING) : -ENOMEM;
    for (sender = kvtree_elem_first(received); sender && !rc;
         sender = kvtree_elem_next(sender)) {
        const char *rank = kvtree_elem_key(sender);
        for (name = kvtree_elem_first(kvtree_elem_hash(sender)); name && !rc;
             name = kvtree_elem_next(name)) {
            const char *text = kvtree_elem_key(name);
            const char *lowest = kvtree_elem_get_first_val(seen, text);
            if (!lowest) {
                rc = kvtree_set_kv(seen, text, rank) ? 0 : -ENOMEM;
                continue;
            }
            kvtree *told = kvtree_get(reply, rank);
            if (!told) told = kvtree_set(reply, rank, NULL);
            rc = kvtree_set_kv(told, text, lowest) ? 0 : -ENOMEM;
        }
    }
    kvtree_delete(&seen);
    return rc;
}

/* Finds the owners of all names, from the replies. */
static int names_take_owners(const kvtree *replies, int rank, int count,
                             const filo_file files[], int owner[])
{
    kvtree *all = kvtree_new();
    const kvtree_elem *e = kvtree_elem_first(replies);
    int rc = all ? 0 : -ENOMEM;
    for (; e && !rc; e = kvtree_elem_next(e))
        rc = kvtree_merge(all, kvtree_elem_hash(e));
    for (int i = 0; i < count && !rc; i++) {
        const char *lowest = kvtree_elem_get_first_val(all, files[i].name);
        owner[i] = lowest ? atoi(lowest) : rank;
    }
    kvtree_delete(&all);
    return rc;
}

/* Collective, the result is this rank's own; rc is of this rank so far. */
static int names_find_owners(filo_job *job, int rc, int count, const filo_file files[],
                             int owner[])
{
    kvtree *send = kvtree_new(), *received = kvtree_new();
    kvtree *reply = kvtree_new(), *replies = kvtree_new();
    if (!rc && !(send && received && reply && replies))
        rc = err_sys(&job->err, -ENOMEM, "compare file names");
    if (!rc) rc = names_address(job, count, files, send);
    int met = kvtree_exchange(send, received, job->comm);
    if (!rc && !met) met = names_find_lowest(received, reply);
    int told = kvtree_exchange(reply, replies, job->comm);
    if (!met) met = told;
    if (!rc && !met) met = names_take_owners(replies, job->rank, count, files, owner);
    if (!rc && met) rc = err_sys(&job->err, met, "compare file names");
    kvtree_delete(&send);
    kvtree_delete(&received);
    kvtree_delete(&reply);
    kvtree_delete(&replies);
    return rc;
}

int filo_names_compare(filo_job *job, int rc, int count, const filo_file files[],
                       filo_shared *shared)
{
    int all;
    if (job->shares && job->options.align) rc = filo_job_agree(job, rc);
    if (job->shares && !rc) rc = filo_shared_plan(job, count, files, shared);
    if (job->shares && rc) return rc;
    filo_file *list = filo_shared_join(shared, count, files, FILO_ALL, &all);
    int *owner = list ? calloc((size_t)all + 1, sizeof *owner) : NULL;
    if (!rc && !owner) rc = err_sys(&job->err, -ENOMEM, "compare file names");
    rc = names_find_owners(job, rc, all, list, owner);
    for (int i = 0; i < all && !rc; i++)
        if (owner[i] != job->rank)
            rc = err_set(&job->err, -EEXIST,
                         "file name \"%s\" is listed by ranks %d and %d", list[i].name,
                         owner[i], job->rank);
    free(owner);
    free(list);
    return filo_job_agree(job, rc);
}

/* ---- the calls ---- */

/* Collective, agreed. */
static int names_check_list(filo_job *job, MPI_Comm comm, int count,
                            const filo_file files[])
{
    int64_t parts = 0;
    int rc = filo_job_begin(job, comm, ".", NULL, NULL);
    if (!rc && (count < 0 || (count > 0 && !files)))
        rc = err_set(&job->err, -EINVAL, "no list of %d files", count);
    for (int i = 0; i < count && !rc; i++) {
        rc = beneath_check_name(files[i].name, &job->err);
        for (int s = 0; files[i].packed && s < files[i].segments && !rc; s++, parts++)
            rc = beneath_check_name(files[i].segment[s].container, &job->err);
    }
    rc = filo_job_agree_sum(job, rc, 1, &parts);
    job->shares = parts > 0;
    return rc;
}

int filo_find_owners(MPI_Comm comm, int count, const filo_file files[], int owner[],
                     filo_error *err)
{
    filo_job job;
    int rc = names_check_list(&job, comm, count, files);
    if (!rc) rc = filo_job_agree(&job, names_find_owners(&job, 0, count, files, owner));
    return filo_job_end(&job, rc, err);
}

int filo_check_names(MPI_Comm comm, int count, const filo_file files[], filo_error *err)
{
    filo_job job;
    filo_shared shared = {.count = 0};
    int rc = names_check_list(&job, comm, count, files);
    if (!rc) rc = filo_names_compare(&job, 0, count, files, &shared);
    filo_shared_end(&shared);
    return filo_job_end(&job, rc, err);
}
