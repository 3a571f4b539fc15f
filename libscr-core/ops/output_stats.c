/* SPDX-License-Identifier: BSD-3-Clause */
/* Totals of the files of all ranks, in one MPI operation. plan/name_set.h determines
 * whether two ranks may have given the same name; only then the names must be
 * compared. */
#include "ops/output_stats.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "ops/route.h"
#include "plan/name_set.h"
#include <errno.h>

typedef struct sums {
    uint64_t failed, files, bytes, parts;
    scr_name_set names;
} sums;

static void stats_unite(const sums *a, sums *b)
{
    b->failed += a->failed;
    b->files += a->files;
    b->bytes += a->bytes;
    b->parts += a->parts;
    scr_name_set_unite(&b->names, &a->names);
}

static void stats_unite_all(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        stats_unite((const sums *)in + i, (sums *)inout + i);
}

/* Unites the sums of all ranks. The sets of any two ranks must be united exactly once, so
 * the sums are one element, which MPI cannot split. */
static int stats_unite_ranks(MPI_Comm comm, const sums *mine, sums *all)
{
    MPI_Op op;
    MPI_Datatype type;
    int rc = MPI_Op_create(stats_unite_all, 1, &op);
    if (rc != MPI_SUCCESS) return rc;
    rc = MPI_Type_contiguous((int)sizeof *mine, MPI_BYTE, &type);
    if (rc == MPI_SUCCESS) {
        MPI_Type_commit(&type);
        rc = MPI_Allreduce(mine, all, 1, type, op, comm);
        MPI_Type_free(&type);
    }
    MPI_Op_free(&op);
    return rc;
}

int scr_totals_agree(struct scr *scr, int rc, unsigned long bytes, scr_totals *totals,
                     kvtree_error *err)
{
    sums mine = {.failed = rc != 0, .bytes = bytes}, all = {.failed = 0};
    const kvtree_elem *e = kvtree_elem_first(scr->output.routed);
    for (; e; e = kvtree_elem_next(e)) {
        scr_name_set_add(&mine.names, kvtree_elem_key(e), scr->job.rank, scr->job.ranks);
        mine.files++;
        mine.parts += kvtree_get(kvtree_elem_hash(e), SCR_ROUTED_LENGTH) != NULL;
    }
    if (stats_unite_ranks(scr->job.world, &mine, &all) != MPI_SUCCESS)
        return err_set(err, -EIO, "a collective call of MPI failed");
    if (all.failed) return agree(scr->job.world, rc, err);
    *totals = (scr_totals){.files = (long)all.files,
                           .bytes = (unsigned long)all.bytes,
                           .parts = (long)all.parts,
                           .distinct = scr_name_set_is_distinct(&all.names)};
    return 0;
}
