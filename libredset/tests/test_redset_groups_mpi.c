/* SPDX-License-Identifier: BSD-3-Clause */
/* Failure groups of all kinds: no two members of a set are of one group. The loss of a
 * whole group is the loss of one member in some sets, which all sets can bear except
 * those that have no other member. */
#include "snapshot_mpi.h"

/* From a rank to the number of its group, at most that of the ranks. */
typedef int grouping(const job *j, int rank);

static int one_each(const job *j, int rank)
{
    return rank;
}

static int pairs(const job *j, int rank)
{
    return rank / 2;
}

static int even_and_odd(const job *j, int rank)
{
    return rank % 2;
}

static int all_together(const job *j, int rank)
{
    return 0;
}

static int first_alone(const job *j, int rank)
{
    return rank == 0;
}

static int last_alone(const job *j, int rank)
{
    return rank == j->ranks - 1;
}

/* Nodes of 1, 2 and 5 ranks, and then of four each. */
static int one_two_five(const job *j, int rank)
{
    return rank < 1 ? 0 : rank < 3 ? 1 : rank < 8 ? 2 : 3 + (rank - 8) / 4;
}

/* The same sizes, but neighbors in rank are in different groups. */
static int scattered(const job *j, int rank)
{
    int step = j->ranks % 5 ? 5 : 3;
    return one_two_five(j, rank * step % j->ranks);
}

enum {
    ONE_EACH,
    PAIRS,
    EVEN_AND_ODD,
    ALL_TOGETHER,
    FIRST_ALONE,
    LAST_ALONE,
    ONE_TWO_FIVE,
    SCATTERED,
    GROUPINGS
};

static grouping *const groupings[GROUPINGS] = {one_each,     pairs,       even_and_odd,
                                               all_together, first_alone, last_alone,
                                               one_two_five, scattered};

static redset *create(const job *j, int kind, int set_size)
{
    char node[32];
    redset_error err = {""};
    redset *set = NULL;
    snprintf(node, sizeof node, "n%d", groupings[kind](j, j->rank));
    const redset_config config = {.scheme = j->scheme,
                                  .set_size = set_size,
                                  .failure_group = node,
                                  .piece = j->piece,
                                  .failures = j->failures};
    CHECK_INT(redset_create(j->comm, &config, &set, &err), 0);
    CHECK_STR(err.text, "");
    return set;
}

/* ---- members of sets ---- */

static int largest_group(const job *j, int kind)
{
    int largest = 0;
    for (int rank = 0; rank < j->ranks; rank++) {
        int count = 0;
        for (int other = 0; other < j->ranks; other++)
            count += groupings[kind](j, other) == groupings[kind](j, rank);
        if (count > largest) largest = count;
    }
    return largest;
}

/* Whether no two members of this rank's set named the same group. */
static void check_place(const job *j, const redset_place *place, int group)
{
    int mine[3] = {place->set, group, place->member};
    int *all = malloc((size_t)j->ranks * sizeof mine), members = 0, lowest = -1;
    MPI_Allgather(mine, 3, MPI_INT, all, 3, MPI_INT, j->comm);
    for (int i = 0; i < j->ranks; i++) {
        if (all[3 * i] != place->set) continue;
        if (lowest < 0) lowest = i;
        members++;
        if (i == j->rank) continue;
        CHECK(all[3 * i + 1] != group);
        CHECK(all[3 * i + 2] != place->member);
    }
    CHECK_INT(members, place->members);
    CHECK_INT(lowest, place->id);
    CHECK(place->member >= 0 && place->member < place->members);
    CHECK_INT(place->scheme, members == 1 ? REDSET_SINGLE : j->scheme);
    CHECK_INT(place->failures, members > j->failures ? j->failures : members - 1);
    free(all);
}

static void test_sets_have_members_of_different_groups(job *j, int set_size)
{
    for (int kind = 0; kind < GROUPINGS; kind++) {
        redset *set = create(j, kind, set_size);
        if (!set) continue;
        const redset_place *place = redset_get_place(set);
        int largest = largest_group(j, kind);
        check_place(j, place, groupings[kind](j, j->rank));
        /* as many sets as leave each set its size, unless a group needs more */
        int sets = j->ranks / (set_size * largest) * largest;
        CHECK_INT(place->sets, sets > largest ? sets : largest);
        CHECK(redset_free(set) == NULL);
    }
    CHECK(redset_free(NULL) == NULL);
}

static void test_one_group_of_all_becomes_single(job *j)
{
    redset *set = create(j, ALL_TOGETHER, 4);
    const redset_place *place = redset_get_place(set);
    CHECK_INT(place->scheme, REDSET_SINGLE);
    CHECK_INT(place->sets, j->ranks);
    CHECK_INT(place->id, j->rank);
    CHECK_INT(place->members, 1);
    CHECK_INT(place->failures, 0);
    redset_free(set);
}

/* ---- a whole group is lost ---- */

/* Loses a group. In a set without another member the loss cannot be rebuilt. */
static void lose_group(job *j, snapshot *s, int lost, int entries)
{
    int alone = lost && redset_get_place(s->set)->members == 1;
    if (lost) job_lose(j);
    if (!job_any(j, alone)) {
        recover_again(j, s);
        expect_rebuilt(j, s, lost, entries);
        return;
    }
    expect_hopeless(j, s, "(SINGLE over 1 ranks) lost members 0");
    char path[1200];
    scratch_path(path, j->folder, s->name);
    job_write(j, 0);
    if (lost) scratch_put(path, s->file, s->size);
}

static void test_lost_group_is_rebuilt(job *j, int kind, int set_size)
{
    redset_error err = {""};
    snapshot s = {.set = create(j, kind, set_size)};
    CHECK_INT(job_encode(j, s.set, &err), 0);
    job_name(s.set, s.name);
    s.file = scratch_read(j->folder, s.name, &s.size);
    int entries = scratch_count(j->folder), own = groupings[kind](j, j->rank);
    for (int group = 0; group <= j->ranks; group++)
        if (job_any(j, own == group)) lose_group(j, &s, own == group, entries);
    forget(j, &s);
}

int main(int argc, char **argv)
{
    static const redset_scheme schemes[] = {REDSET_XOR, REDSET_PARTNER, REDSET_RS};
    job j;
    check_begin(&argc, &argv);
    job_begin(&j, MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) {
        j.scheme = schemes[i];
        j.failures = j.scheme == REDSET_RS ? 2 : 1;
        for (int set_size = 2; set_size <= (i == 0 ? 5 : 2); set_size++)
            test_sets_have_members_of_different_groups(&j, set_size);
        test_one_group_of_all_becomes_single(&j);
        /* nodes with equal numbers of ranks: test_redset_rebuild_mpi.c */
        for (int kind = ALL_TOGETHER; kind < GROUPINGS; kind++)
            test_lost_group_is_rebuilt(&j, kind, 3);
    }
    job_end(&j);
    return check_end();
}
