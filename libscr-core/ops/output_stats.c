/* SPDX-License-Identifier: BSD-3-Clause */
/* Totals of the files of all ranks, in one operation of MPI.
 *
 * A set of hashes, one bit each, shows whether two ranks gave the same name. The
 * reduction unites the sets; if two of them have a bit in common, two ranks may have a
 * name in common, and the names must be compared. With N files that happens by chance in
 * one of 2 BITS / N^2 checkpoints. */
#include "ops/output_stats.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "ops/route.h"
#include <errno.h>

enum { WORDS = 256, BITS = 64 * WORDS };

typedef struct sums {
    uint64_t failed, files, bytes, parts, meet; /* meet: two ranks had a bit in common */
    uint64_t names[WORDS];
} sums;

/* FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/); all of them count. */
static unsigned stats_hash(const char *name)
{
    uint64_t h = 14695981039346656037u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return (unsigned)((h ^ h >> 29) * 0x9e3779b97f4a7c15u >> 40) % BITS;
}

static void stats_unite(const sums *a, sums *b)
{
    b->failed += a->failed;
    b->files += a->files;
    b->bytes += a->bytes;
    b->parts += a->parts;
    b->meet |= a->meet;
    for (int i = 0; i < WORDS; i++) {
        b->meet |= a->names[i] & b->names[i];
        b->names[i] |= a->names[i];
    }
}

static void stats_unite_all(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        stats_unite((const sums *)in + i, (sums *)inout + i);
}

/* The sets of two ranks meet exactly once: that is why this is one element, which MPI
 * cannot cut. */
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
        unsigned bit = stats_hash(kvtree_elem_key(e));
        mine.names[bit / 64] |= (uint64_t)1 << bit % 64;
        mine.files++;
        mine.parts += kvtree_get(kvtree_elem_hash(e), SCR_ROUTED_LENGTH) != NULL;
    }
    if (stats_unite_ranks(scr->job.world, &mine, &all) != MPI_SUCCESS)
        return err_set(err, -EIO, "a collective call of MPI failed");
    if (all.failed) return agree(scr->job.world, rc, err);
    *totals = (scr_totals){.files = (int)all.files,
                           .bytes = (unsigned long)all.bytes,
                           .parts = (int)all.parts,
                           .distinct = !all.meet};
    return 0;
}
