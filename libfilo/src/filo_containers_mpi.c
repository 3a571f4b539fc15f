/* SPDX-License-Identifier: BSD-3-Clause */
/* The offset of each rank's bytes in the sequence of all bytes: ranks of one node are
 * adjacent, so that a node accesses few containers (SCR Developer Guide 1.2, sections
 * 2.12 and 2.32.5). */
#include "src/filo_private_mpi.h"

#include "src/filo_layout.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Mode of the containers, and the group that it applies to. */
typedef struct containers_rights {
    mode_t mode;
    gid_t group;
} containers_rights;

static int containers_mpi_failed(filo_job *job)
{
    return err_set(&job->err, -EIO, "place files in containers: MPI failed");
}

/* ---- offsets ---- */

/* Collective over the ranks of a node. *before: bytes of all lower ranks of the node;
 * *all: bytes of the node, on its lowest rank. */
static int containers_add_node(MPI_Comm node, uint64_t mine, uint64_t *before,
                               uint64_t *all)
{
    int rank;
    MPI_Comm_rank(node, &rank);
    int rc = MPI_Exscan(&mine, before, 1, MPI_UINT64_T, MPI_SUM, node);
    int added = MPI_Reduce(&mine, all, 1, MPI_UINT64_T, MPI_SUM, 0, node);
    if (rank == 0) *before = 0; /* MPI leaves it undefined */
    return rc ? rc : added;
}

/* Collective, the result is this rank's own. *offset: of the first byte of this rank.
 * Nodes are in the order of their lowest ranks, and the ranks of each node are adjacent.
 */
static int containers_find_offset(filo_job *job, uint64_t mine, uint64_t *offset)
{
    MPI_Comm node;
    uint64_t before = 0, all = 0, base = 0;
    int rc = filo_lead_split_node(job, &node);
    if (rc) return rc;
    int added = containers_add_node(node, mine, &before, &all);
    int placed = MPI_Exscan(&all, &base, 1, MPI_UINT64_T, MPI_SUM, job->own);
    if (job->rank == 0) base = 0;
    int told = MPI_Bcast(&base, 1, MPI_UINT64_T, 0, node);
    MPI_Comm_free(&node);
    *offset = base + before;
    return added || placed || told ? containers_mpi_failed(job) : 0;
}

/* ---- containers ---- */

static int containers_too_long(filo_job *job)
{
    return err_set(&job->err, -EFBIG, "files of more than %lld bytes together",
                   (long long)INT64_MAX);
}

static int containers_add_sizes(filo_job *job, int count, const filo_file files[],
                                int64_t *sum)
{
    for (int i = 0; i < count; i++) {
        if (files[i].packed) continue; /* a part of a shared file */
        if (files[i].size > (uint64_t)(INT64_MAX - *sum)) return containers_too_long(job);
        *sum += (int64_t)files[i].size;
    }
    return 0;
}

/* Collective, agreed. Adds the bytes of all ranks, in two halves, whose sums cannot
 * overflow. */
static int containers_add_ranks(filo_job *job, int rc, int64_t mine, uint64_t *total)
{
    int64_t halves[2] = {mine >> 32, mine & UINT32_MAX};
    rc = agree_sum(job->own, rc, &job->err, 2, halves);
    if (rc) return rc;
    halves[0] += halves[1] >> 32;
    if (halves[0] > INT32_MAX) return containers_too_long(job);
    *total = (uint64_t)halves[0] << 32 | (uint64_t)(halves[1] & UINT32_MAX);
    return 0;
}

/* Collective, the result is this rank's own. A container grants only permissions that all
 * files grant. All groups are equal if no bit is 1 in one group and 0 in another. */
static int containers_agree_mode(filo_job *job, int count, const filo_file files[],
                                 containers_rights *rights)
{
    enum { MODE, ONES, ZEROS, NUMBERS };
    unsigned common[NUMBERS] = {[MODE] = 0666, [ONES] = UINT_MAX, [ZEROS] = UINT_MAX};
    for (int i = 0; i < count; i++) {
        if (files[i].packed) continue;
        common[MODE] &= files[i].mode;
        common[ONES] &= files[i].group;
        common[ZEROS] &= ~files[i].group;
    }
    int rc =
        MPI_Allreduce(MPI_IN_PLACE, common, NUMBERS, MPI_UNSIGNED, MPI_BAND, job->own);
    rights->group = common[ONES];
    rights->mode = beneath_mode_in_group(common[MODE], common[ONES], ~common[ZEROS]);
    rights->mode |= S_IRUSR | S_IWUSR;
    return rc ? containers_mpi_failed(job) : 0;
}

const char *filo_containers_stage(const char *name)
{
    return name + beneath_folder_length(name);
}

static int containers_stage_one(const filo_job *job, uint64_t number, uint64_t size,
                                const containers_rights *rights, batch *stage)
{
    char name[BENEATH_NAME_MAX];
    int rc = filo_container_name(job->map, number, name);
    const batch_file container = {.name = name,
                                  .from = job->stage_dir,
                                  .temporary = filo_containers_stage(name),
                                  .size = size,
                                  .mode = rights->mode,
                                  .has_group = true,
                                  .group = rights->group};
    return rc ? rc : batch_add(stage, &container, NULL);
}

static int containers_stage_own(const filo_job *job, const filo_layout *layout,
                                uint64_t offset, uint64_t bytes,
                                const containers_rights *rights, batch *stage)
{
    uint64_t i, end;
    int rc = 0;
    filo_layout_begins(layout, offset, bytes, &i, &end);
    for (; i < end && !rc; i++)
        rc = containers_stage_one(job, i, filo_layout_size(layout, i), rights, stage);
    return rc;
}

/* Collective, the result is this rank's own. Each group of nodes has one container. */
static int containers_plan_nodes(filo_job *job, int rc, int count, filo_file files[],
                                 batch *stage, int64_t *containers)
{
    int64_t mine = 0;
    uint64_t offset = 0, size = 0;
    const uint64_t number = (uint64_t)filo_lead_container(job);
    containers_rights rights;
    if (!rc) rc = containers_add_sizes(job, count, files, &mine);
    int placed = filo_lead_place(job, rc ? 0 : (uint64_t)mine, &offset, &size);
    if (!rc) rc = placed;
    int limited = containers_agree_mode(job, count, files, &rights);
    if (!rc) rc = limited;
    *containers = filo_lead_count_containers(job);
    if (rc) return rc;
    if (filo_lead_makes_container(job))
        rc = containers_stage_one(job, number, size, &rights, stage);
    for (int i = 0; i < count && !rc; i++) {
        if (files[i].packed) continue;
        rc = filo_layout_place(job->map, number, offset, &files[i]);
        offset += files[i].size;
    }
    return rc ? err_sys(&job->err, rc, "place files in containers") : 0;
}

int filo_containers_plan(filo_job *job, int rc, int count, filo_file files[],
                         batch *stage, int64_t *containers)
{
    if (job->options.align)
        return containers_plan_nodes(job, rc, count, files, stage, containers);
    filo_layout layout = {.map = job->map, .limit = job->options.container};
    int64_t mine = 0;
    uint64_t offset = 0;
    containers_rights rights;
    if (!rc) rc = containers_add_sizes(job, count, files, &mine);
    int found = containers_find_offset(job, (uint64_t)mine, &offset);
    if (!rc) rc = found;
    rc = containers_add_ranks(job, rc, mine, &layout.total);
    if (rc) return rc;
    if (filo_layout_containers(&layout) > INT_MAX)
        return err_set(&job->err, -EFBIG, "%llu bytes in containers of %llu: too many",
                       (unsigned long long)layout.total,
                       (unsigned long long)layout.limit);
    rc = containers_agree_mode(job, count, files, &rights);
    if (!rc)
        rc = containers_stage_own(job, &layout, offset, (uint64_t)mine, &rights, stage);
    for (int i = 0; i < count && !rc; i++) {
        if (files[i].packed) continue;
        rc = filo_layout_pack(&layout, offset, &files[i]);
        offset += files[i].size;
    }
    *containers = (int64_t)filo_layout_containers(&layout);
    if (rc) err_sys(&job->err, rc, "place files in containers");
    return filo_job_agree(job, rc);
}
