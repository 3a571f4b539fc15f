/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of each node, its leader, copies the files of all ranks of the node. So the
 * load on the shared file system depends on the number of nodes, not on the number of
 * ranks. The other ranks send the leader their lists of parts, and receive the size and
 * checksum of each part. Everything else they do themselves. */
#include "src/filo_private_mpi.h"

#include "common/split_mpi.h"
#include "src/filo_layout.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Description of a part, sent to the leader. Both paths follow, with their NULs. The
 * format is binary: all ranks of a node represent numbers alike. */
typedef struct lead_part {
    uint64_t source_offset, destination_offset, length;
    size_t source_size, destination_size; /* of the paths */
    struct stat seen;
} lead_part;

/* The leader's reply: numbers per part. */
enum { FOUND_SIZE, FOUND_CRC, FOUND };

static int lead_mpi_failed(filo_job *job)
{
    return err_set(&job->err, -EIO, "find the leader of a node: MPI failed");
}

/* ---- nodes ---- */

int filo_lead_split_node(filo_job *job, MPI_Comm *node)
{
    MPI_Comm made;
    if (job->options.node)
        return split_by_string(job->own, job->options.node, node, &job->err);
    int failed = agree_mpi_check(MPI_Comm_split_type(job->own, MPI_COMM_TYPE_SHARED,
                                                     job->rank, MPI_INFO_NULL, &made),
                                 &job->err);
    int rc = filo_job_agree(job, failed);
    if (rc && !failed) MPI_Comm_free(&made);
    if (!rc) *node = made;
    return rc;
}

/* Collective, agreed. Creates the communicator of the leaders. */
static int lead_meet(filo_job *job)
{
    filo_lead *lead = &job->lead;
    MPI_Comm_rank(lead->node, &lead->rank);
    MPI_Comm_size(lead->node, &lead->size);
    int rc = agree_mpi_check(MPI_Comm_split(job->own, lead->rank ? MPI_UNDEFINED : 0,
                                            job->rank, &lead->leaders),
                             &job->err);
    if (rc) lead->leaders = MPI_COMM_NULL;
    return filo_job_agree(job, rc);
}

/* Collective, the result is this rank's own. Numbers nodes by their lowest ranks, and
 * forms groups of nodes. Ranks that are not leaders contribute 0, so the maximum over a
 * node is the number of its leader. */
static int lead_number(filo_job *job, int *wish)
{
    filo_lead *lead = &job->lead;
    enum { NUMBER, NODES, WISH, NUMBERS };
    int told[NUMBERS] = {[WISH] = *wish}, rc = 0;
    if (lead->rank == 0) {
        MPI_Comm_rank(lead->leaders, &told[NUMBER]);
        MPI_Comm_size(lead->leaders, &told[NODES]);
        rc = agree_mpi_check(MPI_Comm_split(lead->leaders,
                                            told[NUMBER] / job->options.nodes,
                                            told[NUMBER], &lead->group),
                             &job->err);
        if (rc) lead->group = MPI_COMM_NULL;
    }
    int told_all =
        MPI_Allreduce(MPI_IN_PLACE, told, NUMBERS, MPI_INT, MPI_MAX, lead->node);
    lead->number = told[NUMBER];
    lead->nodes = told[NODES];
    *wish = told[WISH];
    return rc ? rc : agree_mpi_check(told_all, &job->err);
}

/* Allocates arrays with one element per rank of the node, or per leader of the group. */
static int lead_make_room(filo_job *job)
{
    filo_lead *lead = &job->lead;
    int room = lead->size, group = 0;
    if (lead->rank > 0) return 0;
    MPI_Comm_size(lead->group, &group);
    if (group > room) room = group;
    lead->sizes = calloc((size_t)room, sizeof *lead->sizes);
    lead->offsets = calloc((size_t)room, sizeof *lead->offsets);
    lead->counts = calloc((size_t)room, sizeof *lead->counts);
    lead->starts = calloc((size_t)room, sizeof *lead->starts);
    return lead->sizes && lead->offsets && lead->counts && lead->starts ? 0 : -ENOMEM;
}

int filo_lead_meet(filo_job *job)
{
    int rc = filo_lead_split_node(job, &job->lead.node);
    return rc ? rc : lead_meet(job);
}

int filo_lead_begin(filo_job *job, int *wish)
{
    int rc = lead_number(job, wish);
    return rc || lead_make_room(job) == 0 ? rc
                                          : err_sys(&job->err, -ENOMEM, "lead a node");
}

bool filo_lead_is_here(const filo_job *job)
{
    return job->lead.node == MPI_COMM_NULL || job->lead.rank == 0;
}

static void lead_free(MPI_Comm *comm)
{
    if (*comm != MPI_COMM_NULL) MPI_Comm_free(comm);
}

void filo_lead_end(filo_lead *lead)
{
    lead_free(&lead->group);
    lead_free(&lead->leaders);
    lead_free(&lead->node);
    free(lead->told);
    free(lead->sizes);
    free(lead->offsets);
    free(lead->counts);
    free(lead->starts);
    free(lead->found);
    lead->told = NULL;
    lead->sizes = lead->offsets = lead->found = NULL;
    lead->counts = lead->starts = NULL;
}

/* ---- places ---- */

/* Collective over the leaders of a group. *base: where the bytes of this node begin in
 * its container; *size: of the container. */
static int lead_place_node(filo_job *job, uint64_t bytes, uint64_t *base, uint64_t *size)
{
    filo_lead *lead = &job->lead;
    int rank, nodes;
    MPI_Comm_rank(lead->group, &rank);
    MPI_Comm_size(lead->group, &nodes);
    int rc =
        MPI_Allgather(&bytes, 1, MPI_UINT64_T, lead->sizes, 1, MPI_UINT64_T, lead->group);
    if (rc) return lead_mpi_failed(job);
    rc = filo_layout_align(job->options.align, nodes, lead->sizes, lead->offsets, size);
    *base = lead->offsets[rank];
    return rc ? err_sys(&job->err, rc, "files of %d nodes in one container", nodes) : 0;
}

/* On a leader, which has the sizes of its ranks: computes the offsets of all ranks of the
 * node. */
static int lead_place_ranks(filo_job *job, uint64_t *size)
{
    filo_lead *lead = &job->lead;
    const uint64_t align = job->options.align;
    uint64_t bytes = 0, base = 0, unused;
    uint64_t *own = malloc((size_t)lead->size * sizeof *own);
    int rc = own ? 0 : err_sys(&job->err, -ENOMEM, "place files in containers");
    for (int r = 0; r < lead->size && own; r++)
        own[r] = lead->sizes[r];
    if (!rc && (rc = filo_layout_align(align, lead->size, own, lead->offsets, &bytes)))
        err_sys(&job->err, rc, "files of a node in one container");
    int placed = lead_place_node(job, rc ? 0 : bytes, &base, size);
    if (!rc && !placed)
        rc = filo_layout_align(align, lead->size, own, lead->offsets, &unused);
    for (int r = 0; r < lead->size; r++)
        lead->offsets[r] += base;
    free(own);
    return rc ? rc : placed;
}

int filo_lead_place(filo_job *job, uint64_t bytes, uint64_t *offset, uint64_t *size)
{
    filo_lead *lead = &job->lead;
    int told =
        MPI_Gather(&bytes, 1, MPI_UINT64_T, lead->sizes, 1, MPI_UINT64_T, 0, lead->node);
    *size = 0;
    int rc = lead->rank == 0 ? lead_place_ranks(job, size) : 0;
    int answered = MPI_Scatter(lead->offsets, 1, MPI_UINT64_T, offset, 1, MPI_UINT64_T, 0,
                               lead->node);
    return told || answered ? lead_mpi_failed(job) : rc;
}

int filo_lead_container(const filo_job *job)
{
    return job->lead.number / job->options.nodes;
}

bool filo_lead_makes_container(const filo_job *job)
{
    return job->lead.rank == 0 && job->lead.number % job->options.nodes == 0;
}

int filo_lead_count_containers(const filo_job *job)
{
    return (job->lead.nodes - 1) / job->options.nodes + 1;
}

/* ---- parts ---- */

static int lead_grow(filo_lead *lead, size_t size)
{
    size_t room = lead->told_room;
    while (room - lead->told_size < size)
        room = 2 * room + 4096;
    char *told = room > lead->told_room ? realloc(lead->told, room) : lead->told;
    if (!told) return -ENOMEM;
    lead->told = told;
    lead->told_room = room;
    return 0;
}

int filo_lead_add(filo_job *job, const axl_part *part)
{
    filo_lead *lead = &job->lead;
    lead_part told = {.source_offset = part->source_offset,
                      .destination_offset = part->destination_offset,
                      .length = part->length,
                      .source_size = strlen(part->source) + 1,
                      .destination_size = strlen(part->destination) + 1,
                      .seen = *part->seen};
    const size_t size = sizeof told + told.source_size + told.destination_size;
    if (lead_grow(lead, size) != 0) return err_sys(&job->err, -ENOMEM, "list files");
    char *at = lead->told + lead->told_size;
    memcpy(at, &told, sizeof told);
    memcpy(at + sizeof told, part->source, told.source_size);
    memcpy(at + sizeof told + told.source_size, part->destination, told.destination_size);
    lead->told_size += size;
    lead->parts++;
    return 0;
}

/* Adds the parts of one rank of the node to the transfer. */
static int lead_take(filo_job *job, const char *told, size_t size, int rank,
                     axl_transfer *transfer)
{
    int rc = 0;
    lead_part from;
    for (size_t at = 0; at < size && !rc;
         at += sizeof from + from.source_size + from.destination_size) {
        const char *source = told + at + sizeof from;
        memcpy(&from, told + at, sizeof from);
        const axl_part part = {.source = source,
                               .source_offset = from.source_offset,
                               .destination = source + from.source_size,
                               .destination_offset = from.destination_offset,
                               .length = from.length,
                               .seen = &from.seen};
        rc = axl_add_part(transfer, &part, &job->err);
        job->lead.counts[rank] += FOUND;
    }
    return rc;
}

/* On a leader: allocates memory for all lists, which begin at starts and have counts
 * bytes. */
static int lead_open_lists(filo_job *job, int rc, int most, char **all)
{
    filo_lead *lead = &job->lead;
    const uint64_t limit = (uint64_t)most;
    uint64_t bytes = 0;
    for (int r = 0; r < lead->size && bytes <= limit; bytes += lead->sizes[r++]) {
        lead->starts[r] = (int)bytes;
        lead->counts[r] = (int)lead->sizes[r];
    }
    if (rc) return rc;
    if (bytes > limit) return err_sys(&job->err, -EFBIG, "files of the node");
    *all = malloc((size_t)bytes + 1);
    return *all ? 0 : err_sys(&job->err, -ENOMEM, "files of the node");
}

/* On a leader: adds the parts of all ranks; counts and starts become those of the reply.
 */
static int lead_take_all(filo_job *job, const char *all, axl_transfer *transfer)
{
    filo_lead *lead = &job->lead;
    int rc = 0, start = 0;
    for (int r = 0; r < lead->size && !rc; r++) {
        const char *told = all + lead->starts[r];
        const size_t size = (size_t)lead->counts[r];
        lead->starts[r] = start;
        lead->counts[r] = 0;
        rc = lead_take(job, told, size, r, transfer);
        start += lead->counts[r];
    }
    return rc;
}

/* Collective, the result is this rank's own. Ranks send their lists only if the leader
 * has memory for them. */
static int lead_tell(filo_job *job, int rc, int most, char **all)
{
    filo_lead *lead = &job->lead;
    const uint64_t mine = rc ? 0 : lead->told_size;
    int gathered =
        MPI_Gather(&mine, 1, MPI_UINT64_T, lead->sizes, 1, MPI_UINT64_T, 0, lead->node);
    int open = 0;
    if (gathered && !rc) rc = lead_mpi_failed(job);
    if (lead->rank == 0) rc = lead_open_lists(job, rc, most, all);
    open = *all != NULL;
    int answered = MPI_Bcast(&open, 1, MPI_INT, 0, lead->node);
    if (answered || !open) return rc || !answered ? rc : lead_mpi_failed(job);
    int told = MPI_Gatherv(lead->told, (int)mine, MPI_BYTE, *all, lead->counts,
                           lead->starts, MPI_BYTE, 0, lead->node);
    return rc || !told ? rc : lead_mpi_failed(job);
}

int filo_lead_hand(filo_job *job, int rc, int most, axl_transfer *transfer)
{
    filo_lead *lead = &job->lead;
    char *all = NULL;
    size_t parts = (size_t)lead->parts;
    rc = lead_tell(job, rc, most, &all);
    if (!rc && all) rc = lead_take_all(job, all, transfer);
    free(all);
    free(lead->told);
    lead->told = NULL;
    if (lead->rank == 0) parts = axl_count(transfer);
    lead->found = calloc(FOUND * parts + 1, sizeof *lead->found);
    return rc || lead->found ? rc : err_sys(&job->err, -ENOMEM, "list files");
}

int filo_lead_return(filo_job *job, const axl_transfer *transfer)
{
    filo_lead *lead = &job->lead;
    uint64_t *all = lead->rank == 0 ? lead->found : NULL;
    const int count = lead->parts * FOUND;
    axl_file part;
    int rc = 0;
    for (size_t i = 0; all && i < axl_count(transfer) && !rc; i++) {
        rc = axl_get(transfer, i, &part);
        all[FOUND * i + FOUND_SIZE] = rc ? 0 : part.size;
        all[FOUND * i + FOUND_CRC] = rc ? 0 : part.crc;
    }
    int told = MPI_Scatterv(all, lead->counts, lead->starts, MPI_UINT64_T,
                            all ? MPI_IN_PLACE : (void *)lead->found, count, MPI_UINT64_T,
                            0, lead->node);
    if (told) return lead_mpi_failed(job);
    return rc ? err_sys(&job->err, rc, "what was copied") : 0;
}

void filo_lead_get(const filo_job *job, size_t part, axl_file *file)
{
    const uint64_t *found = job->lead.found + FOUND * part;
    *file = (axl_file){.size = found[FOUND_SIZE], .crc = (uint32_t)found[FOUND_CRC]};
}
