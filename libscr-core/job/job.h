/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_JOB_H
#define SCR_JOB_H

/* The processes of a run and its names: who takes part, on which nodes, for which user
 * and job. Fixed from SCR_Init to SCR_Finalize, the same on every rank but for the
 * position of the rank. Every other chapter works on behalf of one job and reports
 * through it. */

#include "config/identity.h"
#include "config/parameters.h"
#include "report/report.h"
#include <mpi.h>
#include <stddef.h>

#define SCR_OWNER_SIZE 400

typedef struct scr_job {
    scr_report *report;   /* where messages go */
    MPI_Comm world, node; /* all ranks; those on this node */
    int rank, ranks;      /* in world */
    int node_rank, node_ranks, nodes;
    char node_name[SCR_NODE_SIZE];
    const char *simulated_node; /* SCR_NODE_NAME: nodes may share a machine; or NULL */
    char user[SCR_USER_SIZE], id[SCR_JOB_ID_SIZE], name[128], cluster[128];
    char owner[SCR_OWNER_SIZE]; /* "<user>/scr.<job id>", or beside it (cache/job_lock) */
} scr_job;

/* Duplicates comm for the job. 0, or -ECOMM with a text. */
int scr_job_begin(scr_job *job, MPI_Comm comm, scr_report *report, kvtree_error *err);
void scr_job_end(scr_job *job);

/* Finds the node of this process, and its communicator. Collective; 0, or -ECOMM
 * with a text. */
int scr_job_find_nodes(scr_job *job, const scr_config *config, kvtree_error *err);

/* Finds user, job id, job name and cluster, rank 0's for all; off a cluster the job id
 * comes from the prefix directory. Collective, not agreed: rank 0 has 0 or -errno with a
 * text. */
int scr_job_find_names(scr_job *job, const scr_config *config, const char *prefix,
                       kvtree_error *err);

/* One number of all ranks: the greatest, the least, the sum; and that of rank 0.
 * Collective over the job. */
int scr_job_max(const scr_job *job, int number);
int scr_job_min(const scr_job *job, int number);
int scr_job_sum(const scr_job *job, int number);
int scr_job_first(const scr_job *job, int number);

/* Copies size bytes of rank 0 to all ranks. Structs have the same layout on all of them,
 * because all run the same program. Collective over the job. */
void scr_job_share(const scr_job *job, void *data, size_t size);

/* The lists of all ranks, in the order of the ranks: *all, of *total items of size bytes,
 * which the caller frees. 0 or -ENOMEM; the same on every rank. Collective. */
int scr_job_collect(const scr_job *job, size_t size, int count, const void *own,
                    int *total, void **all);

#endif
