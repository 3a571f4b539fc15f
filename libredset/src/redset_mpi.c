/* SPDX-License-Identifier: BSD-3-Clause */
/* Making sets for a new encode: from each process's failure group to its place. */
#include "src/redset_private_mpi.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "common/split_mpi.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Larger pieces than this need no one, and their size fits an int of MPI. */
#define LARGEST_PIECE ((size_t)1 << 30)

int redset_report(char *err, const char *text, int rc)
{
    if (rc && err) snprintf(err, REDSET_ERROR_SIZE, "%s", text);
    return rc;
}

int redset_mpi(int result, char *text)
{
    char why[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (result == MPI_SUCCESS) return 0;
    MPI_Error_string(result, why, &length);
    return err_set(text, -ECOMM, "MPI: %s", why);
}

int redset_agree_equal(MPI_Comm comm, int rc, const int64_t values[REDSET_VALUES],
                       bool *equal, char *text)
{
    enum { N = REDSET_VALUES };
    int64_t mine[2 * N + 1], most[2 * N + 1];
    for (int i = 0; i < N; i++) {
        mine[i] = values ? values[i] : INT64_MIN;
        mine[N + i] = values ? ~values[i] : INT64_MIN; /* unlike -, of any value */
    }
    mine[2 * N] = rc != 0;
    int result = MPI_Allreduce(mine, most, 2 * N + 1, MPI_INT64_T, MPI_MAX, comm);
    if (result != MPI_SUCCESS) return redset_mpi(result, text);
    if (most[2 * N]) return agree(comm, rc, text);
    *equal = true;
    for (int i = 0; i < N; i++)
        if (most[i] != INT64_MIN && most[i] != ~most[N + i]) *equal = false;
    return 0;
}

/* Before anything else comm is duplicated, so that nothing but that happens on it. */
int redset_start(MPI_Comm comm, redset **set, char *text)
{
    MPI_Comm own;
    int rc = agree_possible(comm, text);
    rc = rc ? rc : redset_mpi(MPI_Comm_dup(comm, &own), text);
    if (rc) return rc;
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN); /* parts of it inherit that */
    redset *s = calloc(1, sizeof *s);
    rc = agree(own, s ? 0 : err_sys(text, -ENOMEM, "redundancy set"), text);
    if (rc) {
        free(s);
        MPI_Comm_free(&own);
        return rc;
    }
    s->comm = own;
    s->set = MPI_COMM_NULL;
    s->piece = REDSET_PIECE;
    s->memory = REDSET_MEMORY;
    MPI_Comm_rank(s->comm, &s->rank);
    MPI_Comm_size(s->comm, &s->layout.ranks);
    *set = s;
    return 0;
}

int redset_set_piece(redset *set, size_t piece)
{
    /* one that is read alone, without sums, has to fit, too */
    size_t most = set->memory > REDSET_PIECE_MIN ? set->memory : REDSET_PIECE_MIN;
    if (piece > LARGEST_PIECE) return -EINVAL;
    if (!piece) piece = REDSET_PIECE;
    set->piece = piece < most ? piece : most;
    return 0;
}

static int check_config(const redset_config *config, char *text)
{
    if (!redset_scheme_name(config->scheme))
        return err_set(text, -EINVAL, "unknown redundancy scheme %d", config->scheme);
    if (config->scheme != REDSET_SINGLE && config->set_size < 2)
        return err_set(text, -EINVAL, "set size %d is less than 2", config->set_size);
    if (config->failures < 0)
        return err_set(text, -EINVAL, "%d members that may be lost", config->failures);
    if (config->piece > LARGEST_PIECE)
        return err_set(text, -EINVAL, "pieces of %zu bytes are too large", config->piece);
    if (!config->failure_group)
        return err_set(text, -EINVAL, "no failure group was named");
    if (strnlen(config->failure_group, SPLIT_STRING_SIZE) == SPLIT_STRING_SIZE)
        return err_set(text, -EINVAL, "name of the failure group is longer than %d bytes",
                       SPLIT_STRING_SIZE - 1);
    return 0;
}

/* Collective: what all ranks want is possible, and the same. */
static int check_configs(MPI_Comm comm, const redset_config *config, char *text)
{
    const int64_t wanted[REDSET_VALUES] = {
        (int64_t)config->scheme, config->set_size,        config->failures,
        (int64_t)config->piece,  (int64_t)config->memory, config->no_checksums != 0};
    bool equal = false;
    int rc = redset_agree_equal(comm, check_config(config, text), wanted, &equal, text);
    if (rc || equal) return rc;
    return err_set(text, -EINVAL,
                   "ranks differ in redundancy scheme, set size, failures, piece, memory "
                   "or checksums");
}

/* This process's index when all groups are written down one after the other, in the order
 * of their lowest ranks. */
static int count_groups(const redset *set, MPI_Comm group, int *position, int *largest)
{
    int rank, size, before = 0;
    MPI_Comm_rank(group, &rank);
    MPI_Comm_size(group, &size);
    int counted = rank == 0 ? size : 0;
    int rc = MPI_Allreduce(&size, largest, 1, MPI_INT, MPI_MAX, set->comm);
    if (rc == MPI_SUCCESS)
        rc = MPI_Exscan(&counted, &before, 1, MPI_INT, MPI_SUM, set->comm);
    if (set->rank == 0) before = 0; /* MPI leaves it undefined there */
    if (rc == MPI_SUCCESS) rc = MPI_Bcast(&before, 1, MPI_INT, 0, group);
    *position = before + rank;
    return rc;
}

static int find_position(const redset *set, const char *failure_group, int *position,
                         int *largest)
{
    MPI_Comm group;
    int rc = split_by_string(set->comm, failure_group, &group);
    if (rc != MPI_SUCCESS) return rc;
    rc = count_groups(set, group, position, largest);
    MPI_Comm_free(&group);
    return rc;
}

/* Collective: from the numbers of place to members that know each other. */
static int gather_members(redset *set, char *text)
{
    redset_place *place = &set->layout.place;
    int rc =
        redset_mpi(MPI_Comm_split(set->comm, place->set, place->member, &set->set), text);
    if (rc) return rc;
    set->layout.members = calloc((size_t)place->members, sizeof *set->layout.members);
    rc = set->layout.members ? 0 : err_sys(text, -ENOMEM, "members of a set");
    rc = agree(set->comm, rc, text);
    if (rc) return rc;
    rc = MPI_Allgather(&set->rank, 1, MPI_INT, set->layout.members, 1, MPI_INT, set->set);
    if (rc == MPI_SUCCESS)
        rc = MPI_Allreduce(&set->rank, &place->id, 1, MPI_INT, MPI_MIN, set->set);
    return redset_mpi(rc, text);
}

static int create(redset *set, const redset_config *config, char *text)
{
    redset_place *place = &set->layout.place;
    int position = 0, largest = 0;
    int rc = check_configs(set->comm, config, text);
    if (rc) return rc;
    rc = redset_mpi(find_position(set, config->failure_group, &position, &largest), text);
    if (rc) return rc;
    int set_size = config->scheme == REDSET_SINGLE ? 1 : config->set_size;
    rc = redset_choose(set->layout.ranks, largest, set_size, position, place);
    if (rc) err_sys(text, rc, "choose a set");
    if (!rc) rc = redset_choose_scheme(config->scheme, config->failures, place, text);
    rc = agree(set->comm, rc, text);
    if (rc) return rc;
    if (config->memory) set->memory = config->memory;
    redset_set_piece(set, config->piece);
    set->layout.unchecked = config->no_checksums != 0;
    set->unsynced = config->unsynced != 0;
    return gather_members(set, text);
}

int redset_create(MPI_Comm comm, const redset_config *config, redset **set, char *err)
{
    char text[ERRTEXT_SIZE] = "";
    redset *s;
    int rc = redset_start(comm, &s, text);
    if (rc) return redset_report(err, text, rc);
    rc = create(s, config, text);
    if (rc) {
        redset_free(s);
        return redset_report(err, text, rc);
    }
    *set = s;
    return 0;
}

redset *redset_free(redset *set)
{
    if (!set) return NULL;
    if (set->set != MPI_COMM_NULL) MPI_Comm_free(&set->set);
    MPI_Comm_free(&set->comm);
    redset_layout_done(&set->layout);
    free(set);
    return NULL;
}

const redset_place *redset_get_place(const redset *set)
{
    return &set->layout.place;
}
