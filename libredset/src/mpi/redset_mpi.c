/* SPDX-License-Identifier: BSD-3-Clause */
/* The public calls under MPI. This file creates sets, from failure groups to places;
 * src/set does all further work over the transports of a set. */
#include "src/mpi/transport_mpi.h"
#include "src/set/set.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "common/split_mpi.h"
#include <errno.h>
#include <redset/redset_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Larger pieces are useless, and the size of a message is an int. */
#define MPI_PIECE_MAX ((size_t)1 << 30)

/* The set under MPI. Its first member is the part that src/set knows. */
typedef struct mpi_set {
    redset base;
    redset_transport_mpi world, members;
    redset_meter meter;
} mpi_set;

/* Copies text to err, unless err is NULL or rc is 0. Returns rc. */
static int mpi_report(redset_error *err, const char *text, int rc)
{
    if (rc && err) snprintf(err->text, sizeof err->text, "%s", text);
    return rc;
}

/* ---- common to create and recover ---- */

/* Collective, agreed: creates a set over a duplicate of comm, without members yet. The
 * ranks agree over comm that all have a duplicate; after that comm is not used any more.
 */
static int mpi_start(MPI_Comm comm, mpi_set **set, redset_error *err)
{
    MPI_Comm own;
    int rc = agree_possible(comm, err);
    if (rc) return rc;
    int failed = agree_mpi_check(MPI_Comm_dup(comm, &own), err);
    mpi_set *s = calloc(1, sizeof *s);
    rc = !failed && !s ? err_sys(err, -ENOMEM, "redundancy set") : failed;
    rc = agree(comm, rc, err);
    if (rc) {
        free(s);
        if (!failed) MPI_Comm_free(&own);
        return rc;
    }
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN); /* derived communicators inherit
                                                        it */
    redset_transport_mpi_init(&s->world, own);
    s->members.comm = MPI_COMM_NULL;
    s->base.world = &s->world.base;
    s->base.members = &s->members.base;
    s->base.piece = REDSET_PIECE;
    s->base.memory = REDSET_MEMORY;
    s->base.layout.ranks = s->world.base.size;
    *set = s;
    return 0;
}

/* Collective, the result is this rank's own: connects the members of each set. */
static int mpi_connect(mpi_set *set, redset_error *err)
{
    MPI_Comm members;
    const redset_place *place = &set->base.layout.place;
    int rc = agree_mpi_check(
        MPI_Comm_split(set->world.comm, place->set, place->member, &members), err);
    if (!rc) redset_transport_mpi_init(&set->members, members);
    return rc;
}

/* Returns the set to the caller if rc is 0; else frees it and reports text. */
static int mpi_finish(mpi_set *s, int rc, redset **set, const char *text,
                      redset_error *err)
{
    if (rc)
        redset_free(&s->base);
    else
        *set = &s->base;
    return mpi_report(err, text, rc);
}

redset *redset_free(redset *set)
{
    mpi_set *s = (mpi_set *)set;
    if (!s) return NULL;
    redset_transport_mpi_done(&s->members);
    redset_transport_mpi_done(&s->world);
    redset_layout_done(&s->base.layout);
    free(s);
    return NULL;
}

const redset_place *redset_get_place(const redset *set)
{
    return &set->layout.place;
}

int redset_set_piece(redset *set, size_t piece)
{
    /* a buffer of one piece for reading must fit, too */
    size_t most = set->memory > REDSET_PIECE_MIN ? set->memory : REDSET_PIECE_MIN;
    if (piece > MPI_PIECE_MAX) return -EINVAL;
    if (!piece) piece = REDSET_PIECE;
    set->piece = piece < most ? piece : most;
    return 0;
}

void redset_set_progress(redset *set,
                         void (*report)(void *arg, uint64_t done, uint64_t total),
                         void *arg)
{
    mpi_set *s = (mpi_set *)set;
    s->meter = (redset_meter){.report = report, .arg = arg};
    set->meter = report ? &s->meter : NULL;
}

/* ---- create ---- */

static int mpi_check_config(const redset_config *config, redset_error *err)
{
    if (!redset_scheme_name(config->scheme))
        return err_set(err, -EINVAL, "unknown redundancy scheme %d", config->scheme);
    if (config->scheme != REDSET_SINGLE && config->set_size < 2)
        return err_set(err, -EINVAL, "set size %d is less than 2", config->set_size);
    if (config->failures < 0)
        return err_set(err, -EINVAL, "%d members that may be lost", config->failures);
    if (config->piece > MPI_PIECE_MAX)
        return err_set(err, -EINVAL, "pieces of %zu bytes are too large", config->piece);
    if (!config->failure_group)
        return err_set(err, -EINVAL, "no failure group was named");
    if (strnlen(config->failure_group, SPLIT_STRING_SIZE) == SPLIT_STRING_SIZE)
        return err_set(err, -EINVAL, "name of the failure group is longer than %d bytes",
                       SPLIT_STRING_SIZE - 1);
    return 0;
}

/* Collective: checks that the configuration is valid, and the same on all ranks. */
static int mpi_compare_configs(const mpi_set *set, const redset_config *config,
                               redset_error *err)
{
    const int64_t wanted[REDSET_VALUES] = {
        (int64_t)config->scheme, config->set_size,        config->failures,
        (int64_t)config->piece,  (int64_t)config->memory, config->no_checksums != 0};
    bool equal = false;
    int rc = redset_transport_compare(set->base.world, mpi_check_config(config, err),
                                      wanted, &equal, err);
    if (rc || equal) return rc;
    return err_set(err, -EINVAL,
                   "ranks differ in redundancy scheme, set size, failures, piece, memory "
                   "or checksums");
}

/* Finds this process's index in the list of all groups, and the size of the largest
 * group. Groups of that size come first, so that smaller ones do not shift them against
 * each other; otherwise groups are in the order of their lowest ranks. */
static int mpi_count_groups(const mpi_set *set, MPI_Comm group, int *position,
                            int *largest, redset_error *err)
{
    int rank, size, all_full = 0, before[2] = {0, 0};
    MPI_Comm_rank(group, &rank);
    MPI_Comm_size(group, &size);
    int rc = MPI_Allreduce(&size, largest, 1, MPI_INT, MPI_MAX, set->world.comm);
    const bool is_full = size == *largest;
    const int counted[2] = {rank == 0 && is_full ? size : 0,
                            rank == 0 && !is_full ? size : 0};
    if (rc == MPI_SUCCESS)
        rc = MPI_Allreduce(&counted[0], &all_full, 1, MPI_INT, MPI_SUM, set->world.comm);
    if (rc == MPI_SUCCESS)
        rc = MPI_Exscan(counted, before, 2, MPI_INT, MPI_SUM, set->world.comm);
    if (set->world.rank == 0) before[0] = before[1] = 0; /* undefined on rank 0 in MPI */
    if (rc == MPI_SUCCESS) rc = MPI_Bcast(before, 2, MPI_INT, 0, group);
    *position = rank + (is_full ? before[0] : all_full + before[1]);
    return agree_mpi_check(rc, err);
}

/* Collective: connects the members, and gathers their ranks. */
static int mpi_gather_members(mpi_set *set, redset_error *err)
{
    redset_layout *layout = &set->base.layout;
    int rc = mpi_connect(set, err);
    layout->members = calloc((size_t)layout->place.members, sizeof *layout->members);
    if (!rc && !layout->members) rc = err_sys(err, -ENOMEM, "members of a set");
    rc = agree(set->world.comm, rc, err);
    if (rc) return rc;
    layout->members[layout->place.member] = set->world.rank;
    rc = set->members.base.gather(&set->members.base, layout->members,
                                  sizeof *layout->members, err);
    layout->place.id = layout->members[0];
    for (int i = 1; i < layout->place.members; i++)
        if (layout->members[i] < layout->place.id) layout->place.id = layout->members[i];
    return rc;
}

static int mpi_create(mpi_set *set, const redset_config *config, redset_error *err)
{
    redset *base = &set->base;
    redset_place *place = &base->layout.place;
    MPI_Comm group;
    int position = 0, largest = 0;
    int rc = mpi_compare_configs(set, config, err);
    if (rc) return rc;
    rc = split_by_string(set->world.comm, config->failure_group, &group, err);
    if (rc) return rc;
    rc = mpi_count_groups(set, group, &position, &largest, err);
    MPI_Comm_free(&group);
    int set_size = config->scheme == REDSET_SINGLE ? 1 : config->set_size;
    if (!rc &&
        (rc = redset_choose(base->layout.ranks, largest, set_size, position, place)) != 0)
        err_sys(err, rc, "choose a set");
    if (!rc) rc = redset_assign_scheme(config->scheme, config->failures, place, err);
    rc = agree(set->world.comm, rc, err);
    if (rc) return rc;
    if (config->memory) base->memory = config->memory;
    redset_set_piece(base, config->piece);
    base->layout.unchecked = config->no_checksums != 0;
    base->unsynced = config->unsynced != 0;
    return mpi_gather_members(set, err);
}

int redset_create(MPI_Comm comm, const redset_config *config, redset **set,
                  redset_error *err)
{
    redset_error cause = {""};
    mpi_set *s;
    int rc = mpi_start(comm, &s, &cause);
    if (rc) return mpi_report(err, cause.text, rc);
    return mpi_finish(s, mpi_create(s, config, &cause), set, cause.text, err);
}

/* ---- recover ---- */

/* Connects the members of located sets. All members of a layout have the same layout, so
 * a set with that number of members has exactly these members. A set has more if two
 * layouts claim the same index. */
static int mpi_connect_located(mpi_set *set, redset_error *err)
{
    const redset_place *place = &set->base.layout.place;
    const redset_transport *members = &set->members.base;
    int rc = mpi_connect(set, err);
    if (!rc && (members->size != place->members || set->members.rank != place->member))
        rc = err_set(err, REDSET_UNRECOVERABLE,
                     "survivors contradict each other: %d ranks claim a place among the "
                     "%d members of set %d",
                     members->size, place->members, place->id);
    return agree(set->world.comm, rc, err);
}

int redset_recover(MPI_Comm comm, const char *folder, const char *file, redset **set,
                   redset_error *err)
{
    redset_error cause = {""};
    mpi_set *s;
    int rc = mpi_start(comm, &s, &cause);
    if (rc) return mpi_report(err, cause.text, rc);
    rc = redset_set_locate(&s->base, folder, file, &cause);
    if (!rc) rc = mpi_connect_located(s, &cause);
    return mpi_finish(s, rc, set, cause.text, err);
}

/* ---- work on a set ---- */

int redset_encode_with(redset *set, const char *folder, const kvtree *about, int count,
                       redset_file files[], const redset_extras *extras,
                       redset_error *err)
{
    redset_error cause = {""};
    int rc = redset_set_encode(set, folder, about, count, files, extras, &cause);
    return mpi_report(err, cause.text, rc);
}

int redset_encode(redset *set, const char *folder, const kvtree *about, int count,
                  redset_file files[], redset_error *err)
{
    return redset_encode_with(set, folder, about, count, files, NULL, err);
}

int redset_rebuild(redset *set, const char *folder, redset_manifest **manifest,
                   int *rebuilt, redset_error *err)
{
    redset_error cause = {""};
    return mpi_report(err, cause.text,
                      redset_set_rebuild(set, folder, manifest, rebuilt, &cause));
}

int redset_verify(redset *set, const char *folder, int *lost, redset_error *err)
{
    redset_error cause = {""};
    return mpi_report(err, cause.text, redset_set_verify(set, folder, lost, &cause));
}

int redset_measure(redset *set, const char *folder, redset_manifest **manifest,
                   redset_error *err)
{
    redset_error cause = {""};
    return mpi_report(err, cause.text, redset_set_measure(set, folder, manifest, &cause));
}
