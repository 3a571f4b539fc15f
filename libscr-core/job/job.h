/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_JOB_H
#define SCR_JOB_H

/* The processes of a run, their nodes, and the names of user and job. Constant from
 * SCR_Init to SCR_Finalize, and the same on every rank except for the position of the
 * rank. Every other chapter works on behalf of one job and reports through it. */

#include "config/identity.h"
#include "config/parameters.h"
#include "report/report.h"
#include <mpi.h>
#include <stddef.h>

#define SCR_OWNER_SIZE 400

typedef struct scr_job {
    scr_report *report;   /* destination of messages */
    MPI_Comm world, node; /* all ranks; the ranks on this node */
    int rank, ranks;      /* in world */
    int node_rank, node_ranks, nodes;
    char node_name[SCR_NODE_SIZE];
    const char *simulated_node; /* SCR_NODE_NAME: nodes may share a machine; or NULL */
    char user[SCR_USER_SIZE], id[SCR_JOB_ID_SIZE], name[128], cluster[128];
    char owner[SCR_OWNER_SIZE]; /* "<user>/scr.<job id>", or a name beside it
                                   (cache/job_lock.c) */
} scr_job;

/* Duplicates comm for the job. 0, or -ECOMM with a text. */
int scr_job_begin(scr_job *job, MPI_Comm comm, scr_report *report, kvtree_error *err);
void scr_job_end(scr_job *job);

/* Finds the node of this process, and its communicator. Collective; 0, or -ECOMM
 * with a text. */
int scr_job_find_nodes(scr_job *job, const scr_config *config, kvtree_error *err);

/* Finds user, job id, job name and cluster on rank 0, for all ranks. Outside of a cluster
 * the job id is derived from the prefix directory. Collective, not agreed: only rank 0
 * returns 0 or -errno with a text, the others 0. */
int scr_job_find_names(scr_job *job, const scr_config *config, const char *prefix,
                       kvtree_error *err);

/* Reduce a number of all ranks to its maximum, minimum or sum, or return that of rank 0.
 * Collective over the job. */
int scr_job_max(const scr_job *job, int number);
int scr_job_min(const scr_job *job, int number);
int scr_job_sum(const scr_job *job, int number);
int scr_job_first(const scr_job *job, int number);

/* Copies size bytes from rank 0 to all ranks. Structs have the same layout on all of
 * them, because all run the same program. Collective over the job. */
void scr_job_share(const scr_job *job, void *data, size_t size);

/* Concatenates the lists of all ranks in rank order: *all, of *total items of size bytes,
 * which the caller frees. 0 or -ENOMEM, the same on every rank. Collective. */
int scr_job_collect(const scr_job *job, size_t size, int count, const void *own,
                    int *total, void **all);

#endif
