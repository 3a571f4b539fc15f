/* SPDX-License-Identifier: BSD-3-Clause */
/* redset_adopt: src/set finds the processes that act for ranks of an encode, and the
 * processes of one set share a communicator of their own. */
#include "src/mpi/transport_acting_mpi.h"
#include "src/mpi/transport_mpi.h"
#include "src/set/set_adopt.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include <errno.h>
#include <redset/redset_mpi.h>
#include <stdlib.h>
#include <string.h>

/* MPI guarantees at least these tags, 0 .. 32767. */
enum { ADOPT_TAGS = 32768 };

static int adopt_compare(const void *x, const void *y)
{
    const int *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

/* Sorts processes and removes duplicates. Returns their number. */
static int adopt_unique(int count, int process[])
{
    int kept = 0;
    qsort(process, (size_t)count, sizeof *process, adopt_compare);
    for (int i = 0; i < count; i++)
        if (i == 0 || process[i] != process[kept - 1]) process[kept++] = process[i];
    return kept;
}

/* Returns the index of a process in a sorted list that contains it. */
static int adopt_index(int count, const int process[], int wanted)
{
    const int *found =
        bsearch(&wanted, process, (size_t)count, sizeof *process, adopt_compare);
    return (int)(found - process);
}

/* The processes of a set, before they have a communicator. */
typedef struct adopt_meeting {
    MPI_Group group;
    int count;
    int process[];
} adopt_meeting;

static int adopt_make_group(MPI_Comm world, adopt_meeting *m, redset_error *err)
{
    MPI_Group all;
    int rc = agree_mpi_check(MPI_Comm_group(world, &all), err);
    if (rc) return rc;
    rc = agree_mpi_check(MPI_Group_incl(all, m->count, m->process, &m->group), err);
    MPI_Group_free(&all);
    return rc;
}

static int adopt_prepare(void *arg, int size, const int actor[], void **meeting,
                         redset_error *err)
{
    const size_t numbers = (size_t)size * sizeof *actor;
    adopt_meeting *m = malloc(sizeof *m + numbers);
    if (!m) return err_sys(err, -ENOMEM, "members of a set");
    memcpy(m->process, actor, numbers);
    m->count = adopt_unique(size, m->process);
    int rc = adopt_make_group(((redset_transport_mpi *)arg)->comm, m, err);
    if (rc)
        free(m);
    else
        *meeting = m;
    return rc;
}

static void adopt_leave(void *meeting)
{
    MPI_Group_free(&((adopt_meeting *)meeting)->group);
    free(meeting);
}

static int adopt_make_transport(MPI_Comm comm, int size, const int actor[],
                                const adopt_meeting *m, redset_transport **members)
{
    int *place = calloc((size_t)size, sizeof *place);
    if (!place) return -ENOMEM;
    for (int i = 0; i < size; i++)
        place[i] = adopt_index(m->count, m->process, actor[i]);
    *members = redset_transport_acting(comm, size, place);
    free(place);
    return *members ? 0 : -ENOMEM;
}

static int adopt_connect(void *arg, int id, int size, const int actor[],
                         const void *meeting, redset_transport **members,
                         redset_error *err)
{
    const adopt_meeting *m = meeting;
    MPI_Comm comm = MPI_COMM_NULL, world = ((redset_transport_mpi *)arg)->comm;
    *members = NULL;
    int rc = agree_mpi_check(
        MPI_Comm_create_group(world, m->group, id % ADOPT_TAGS, &comm), err);
    if (rc) return rc;
    rc = adopt_make_transport(comm, size, actor, m, members);
    if (!rc) return 0;
    MPI_Comm_free(&comm);
    return err_sys(err, rc, "members of a set");
}

static void adopt_release(redset_transport *members)
{
    redset_transport_acting_free(members);
}

int redset_adopt_with(MPI_Comm comm, const char *folder, int ranks, int count,
                      redset_acted list[],
                      void (*report)(void *arg, uint64_t done, uint64_t total), void *arg,
                      redset_error *err)
{
    MPI_Comm own;
    redset_meter meter = {.report = report, .arg = arg};
    redset_error cause = {""};
    redset_transport_mpi world;
    int rc = agree_possible(comm, &cause);
    if (rc) return err_set(err, rc, "%s", cause.text);
    int failed = agree_mpi_check(MPI_Comm_dup(comm, &own), &cause);
    rc = agree(comm, failed, &cause);
    if (rc) {
        if (!failed) MPI_Comm_free(&own);
        return err_set(err, rc, "%s", cause.text);
    }
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN); /* derived communicators inherit
                                                        it */
    redset_transport_mpi_init(&world, own);
    const redset_adopt_host host = {.world = &world.base,
                                    .prepare = adopt_prepare,
                                    .connect = adopt_connect,
                                    .release = adopt_release,
                                    .leave = adopt_leave,
                                    .arg = &world,
                                    .meter = report ? &meter : NULL};
    for (int i = 0; i < count; i++) {
        list[i].manifest = NULL;
        list[i].rebuilt = 0;
    }
    rc = redset_set_adopt(&host, folder, ranks, count, list, &cause);
    redset_transport_mpi_done(&world);
    return rc ? err_set(err, rc, "%s", cause.text) : 0;
}

int redset_adopt(MPI_Comm comm, const char *folder, int ranks, int count,
                 redset_acted list[], redset_error *err)
{
    return redset_adopt_with(comm, folder, ranks, count, list, NULL, NULL, err);
}
