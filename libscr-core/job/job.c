/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes of a run, and its names (SCR Developer Guide 1.2, section 2.26). */
#include "job/job.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/split_mpi.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int scr_job_begin(scr_job *job, MPI_Comm comm, scr_report *report, kvtree_error *err)
{
    job->report = report;
    job->node = MPI_COMM_NULL;
    MPI_Comm_rank(comm, &job->rank);
    MPI_Comm_size(comm, &job->ranks);
    report->rank = job->rank;
    int failed = agree_mpi_check(MPI_Comm_dup(comm, &job->world), err);
    if (failed) job->world = MPI_COMM_NULL;
    return agree(comm, failed, err);
}

void scr_job_end(scr_job *job)
{
    if (job->node != MPI_COMM_NULL) MPI_Comm_free(&job->node);
    if (job->world != MPI_COMM_NULL) MPI_Comm_free(&job->world);
}

int scr_job_find_nodes(scr_job *job, const scr_config *config, kvtree_error *err)
{
    job->simulated_node = scr_config_get(config, "SCR_NODE_NAME", NULL);
    if (job->simulated_node)
        snprintf(job->node_name, sizeof job->node_name, "%s", job->simulated_node);
    else
        scr_identity_node(job->node_name);
    int rc = split_by_string(job->world, job->node_name, &job->node, err);
    if (rc) return rc;
    MPI_Comm_rank(job->node, &job->node_rank);
    MPI_Comm_size(job->node, &job->node_ranks);
    job->nodes = job->node_rank == 0;
    return agree_mpi_check(
        MPI_Allreduce(MPI_IN_PLACE, &job->nodes, 1, MPI_INT, MPI_SUM, job->world), err);
}

static int job_copy_name(char *to, size_t size, const char *from, const char *what,
                         kvtree_error *err)
{
    if (strlen(from) >= size)
        return err_set(err, -EINVAL, "%s \"%.60s...\" is too long", what, from);
    strcpy(to, from);
    return 0;
}

static int job_find_id(scr_job *job, const scr_config *config, const char *prefix,
                       kvtree_error *err)
{
    const char *id = scr_config_get(config, "SCR_JOB_ID", NULL);
    if (id && *id) return job_copy_name(job->id, sizeof job->id, id, "SCR_JOB_ID", err);
    int rc = scr_identity_job(prefix, job->id, err);
    if (rc == SCR_IDENTITY_OF_LAUNCH)
        scr_say(job->report, SCR_MSG_RUN_JOB_ID_OF_LAUNCH,
                "job id %s is that of this launch alone: the next one finds no cache, "
                "and nothing saves it; start the program by scr_run, or set SCR_JOB_ID",
                job->id);
    return rc < 0 ? rc : 0;
}

static int job_find_user(scr_job *job, const scr_config *config, kvtree_error *err)
{
    const char *user = scr_config_get(config, "SCR_USER_NAME", NULL);
    if (user)
        return job_copy_name(job->user, sizeof job->user, user, "SCR_USER_NAME", err);
    scr_identity_user(job->user);
    return 0;
}

/* On rank 0. Reads the names. */
static int job_read_names(scr_job *job, const scr_config *config, const char *prefix,
                          kvtree_error *err)
{
    const char *name = scr_config_get(config, "SCR_JOB_NAME", NULL);
    const char *cluster = scr_config_get(config, "SCR_CLUSTER_NAME", NULL);
    int rc = job_find_user(job, config, err);
    if (!rc)
        rc = job_copy_name(job->name, sizeof job->name, name ? name : "", "SCR_JOB_NAME",
                           err);
    if (!rc)
        rc = job_copy_name(job->cluster, sizeof job->cluster, cluster ? cluster : "",
                           "SCR_CLUSTER_NAME", err);
    if (!rc) rc = job_find_id(job, config, prefix, err);
    if (rc) return rc;
    snprintf(job->owner, sizeof job->owner, "%s/scr.%s", job->user, job->id);
    if (strchr(job->user, '/') || strchr(job->id, '/'))
        return err_set(err, -EINVAL,
                       "the user \"%s\" or the job id \"%s\" has a slash; set "
                       "SCR_USER_NAME or SCR_JOB_ID",
                       job->user, job->id);
    rc = beneath_check_name(job->owner, err);
    return rc ? err_wrap(err, rc, "SCR_USER_NAME or SCR_JOB_ID") : 0;
}

int scr_job_find_names(scr_job *job, const scr_config *config, const char *prefix,
                       kvtree_error *err)
{
    int rc = job->rank == 0 ? job_read_names(job, config, prefix, err) : 0;
    scr_job_share(job, job->user, sizeof job->user);
    scr_job_share(job, job->id, sizeof job->id);
    scr_job_share(job, job->name, sizeof job->name);
    scr_job_share(job, job->cluster, sizeof job->cluster);
    scr_job_share(job, job->owner, sizeof job->owner);
    return rc;
}

static int job_reduce(const scr_job *job, int number, MPI_Op op)
{
    int all = number;
    MPI_Allreduce(&number, &all, 1, MPI_INT, op, job->world);
    return all;
}

int scr_job_max(const scr_job *job, int number)
{
    return job_reduce(job, number, MPI_MAX);
}

int scr_job_min(const scr_job *job, int number)
{
    return job_reduce(job, number, MPI_MIN);
}

int scr_job_sum(const scr_job *job, int number)
{
    return job_reduce(job, number, MPI_SUM);
}

int scr_job_first(const scr_job *job, int number)
{
    scr_job_share(job, &number, sizeof number);
    return number;
}

void scr_job_share(const scr_job *job, void *data, size_t size)
{
    MPI_Bcast(data, (int)size, MPI_BYTE, 0, job->world);
}

int scr_job_collect(const scr_job *job, size_t size, int count, const void *own,
                    int *total, void **all)
{
    MPI_Datatype item;
    int *counts = calloc(2 * (size_t)job->ranks, sizeof *counts), sum = 0;
    *all = NULL;
    if (scr_job_max(job, !counts)) {
        free(counts);
        return -ENOMEM;
    }
    MPI_Allgather(&count, 1, MPI_INT, counts, 1, MPI_INT, job->world);
    for (int i = 0; i < job->ranks; sum += counts[i++])
        counts[job->ranks + i] = sum;
    *total = sum;
    *all = calloc((size_t)sum + 1, size);
    int lacking = scr_job_max(job, !*all);
    if (!lacking) {
        MPI_Type_contiguous((int)size, MPI_BYTE, &item);
        MPI_Type_commit(&item);
        MPI_Allgatherv(own, count, item, *all, counts, counts + job->ranks, item,
                       job->world);
        MPI_Type_free(&item);
    } else {
        free(*all);
        *all = NULL;
    }
    free(counts);
    return lacking ? -ENOMEM : 0;
}
